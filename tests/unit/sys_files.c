/* Whole files, locks, folders, peers, in a folder that is removed afterwards. */
#include "sys/files.h"

#include "check.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[64];
static char path[128];

static const char *in_folder(const char *name)
{
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    return path;
}

static int make_folder(void **state)
{
    (void)state;
    snprintf(folder, sizeof(folder), "/tmp/bs-files-XXXXXX");
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
    static const char *const names[] = { "file", "lock", "link", "new/x" };

    (void)state;
    for (size_t i = 0; i < BS_COUNT(names); i++)
        unlink(in_folder(names[i]));
    rmdir(in_folder("new"));
    return rmdir(folder);
}

static void put(const char *name, struct bs_str bytes)
{
    int fd = open(in_folder(name), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, bytes.p, bytes.n), (ssize_t)bytes.n);
    close(fd);
}

static void a_path_has_one_real_name_before_and_after_its_file_is_there(void **state)
{
    char target[128], link[128], got[128];
    struct bs_err err;

    (void)state;
    snprintf(target, sizeof(target), "%s/file", folder);
    snprintf(link, sizeof(link), "%s/link", folder);
    assert_int_equal(bs_path_real(in_folder("../none/file"), got, sizeof(got), &err),
                     BS_E_UNAVAILABLE);
    assert_int_equal(bs_path_real(in_folder("./file"), got, sizeof(got), &err), BS_OK);
    assert_string_equal(got, target);
    assert_int_equal(symlink(target, link), 0);
    assert_int_equal(bs_path_real(link, got, sizeof(got), &err), BS_E_UNAVAILABLE);
    put("file", BS_STR("x"));
    assert_int_equal(bs_path_real(link, got, sizeof(got), &err), BS_OK);
    assert_string_equal(got, target);
    assert_int_equal(bs_path_real(link, got, strlen(target), &err), BS_E_LIMIT);
    assert_int_equal(bs_path_real("file", got, sizeof(got), &err), BS_OK);
    assert_int_equal(got[0], '/');
    unlink(link);
    unlink(target);
}

static void a_file_is_read_whole_or_not_at_all(void **state)
{
    BS_CLEANUP(bs_arena_free) struct bs_arena a = { 0 };
    struct bs_str got = BS_STR("same");
    struct bs_err err;

    (void)state;
    put("file", BS_STR("a\0b\n"));
    assert_int_equal(bs_file_read(&a, in_folder("file"), 3, &got, &err), BS_E_LIMIT);
    assert_int_equal(bs_file_read(&a, in_folder("none"), 9, &got, &err), BS_E_NOT_FOUND);
    assert_int_equal(err.sys, ENOENT);
    assert_non_null(strstr(err.msg, "No such file"));
    assert_int_equal(bs_file_read(&a, folder, 9, &got, &err), BS_E_UNAVAILABLE);
    assert_int_equal(err.sys, EISDIR);
    assert_int_equal(bs_file_read(&a, in_folder("file/x"), 9, &got, &err), BS_E_UNAVAILABLE);
    assert_str(got, "same");
    assert_int_equal(bs_file_read(&a, in_folder("file"), 4, &got, NULL), BS_OK);
    assert_str(got, "a\0b\n");
    put("file", BS_STR(""));
    assert_int_equal(bs_file_read(&a, in_folder("file"), 4, &got, NULL), BS_OK);
    assert_int_equal(got.n, 0);
    assert_non_null(got.p);
}

static void a_large_file_is_read_in_pieces(void **state)
{
    BS_CLEANUP(bs_arena_free) struct bs_arena a = { 0 };
    char *big = malloc(1 << 20);
    struct bs_str got;

    (void)state;
    assert_non_null(big);
    for (size_t i = 0; i < 1 << 20; i++)
        big[i] = (char)(i * 31 >> 5);
    put("file", (struct bs_str){ big, 1 << 20 });
    assert_int_equal(bs_file_read(&a, in_folder("file"), 1 << 20, &got, NULL), BS_OK);
    assert_slice(got, (struct bs_str){ big, 1 << 20 });
    assert_int_equal(bs_file_read(&a, in_folder("file"), (1 << 20) - 1, &got, NULL), BS_E_LIMIT);
    struct bs_arena small = { .max = 1000 };
    assert_int_equal(bs_file_read(&small, in_folder("file"), 1 << 20, &got, NULL), BS_E_NOMEM);
    bs_arena_free(&small);
    free(big);
}

static void a_lock_has_one_holder(void **state)
{
    struct bs_err err;
    struct stat st;
    int first = -1;
    int second = -1;

    (void)state;
    assert_int_equal(bs_file_lock(in_folder("lock"), &first, &err), BS_OK);
    assert_true(first >= 0);
    assert_int_equal(fstat(first, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    assert_int_equal(fcntl(first, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
    assert_int_equal(bs_file_lock(in_folder("lock"), &second, &err), BS_E_REFUSED);
    assert_int_equal(second, -1);
    close(first);
    assert_int_equal(bs_file_lock(in_folder("lock"), &second, &err), BS_OK);
    close(second);
    assert_int_equal(bs_file_lock(in_folder("none/lock"), &second, &err), BS_E_UNAVAILABLE);
    assert_int_equal(err.sys, ENOENT);
    assert_int_equal(symlink("lock", in_folder("link")), 0);
    assert_int_equal(bs_file_lock(in_folder("link"), &second, &err), BS_E_UNAVAILABLE);
    assert_int_equal(err.sys, ELOOP);
}

static void the_folder_of_a_file_is_made_one_level(void **state)
{
    struct bs_err err;
    struct stat st;

    (void)state;
    assert_int_equal(bs_folder_of(in_folder("new/x"), &err), BS_OK);
    assert_int_equal(stat(in_folder("new"), &st), 0);
    assert_true(S_ISDIR(st.st_mode));
    assert_int_equal(st.st_mode & 0777, 0700);
    assert_int_equal(bs_folder_of(in_folder("new/x"), &err), BS_OK);
    assert_int_equal(bs_folder_of(in_folder("none/deeper/x"), &err), BS_E_UNAVAILABLE);
    put("file", BS_STR("x"));
    assert_int_equal(bs_folder_of(in_folder("file/x"), &err), BS_E_UNAVAILABLE);
    assert_int_equal(bs_folder_of("plain-name", &err), BS_OK);
    assert_int_equal(bs_folder_of("/x", &err), BS_OK);
    char *long_path = malloc(6000);
    assert_non_null(long_path);
    memset(long_path, 'x', 5999);
    long_path[5000] = '/';
    long_path[5999] = '\0';
    assert_int_equal(bs_folder_of(long_path, &err), BS_E_LIMIT);
    free(long_path);
}

static void only_a_unix_peer_has_a_uid(void **state)
{
    uint32_t uid = 77;
    int pair[2];

    (void)state;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    assert_true(bs_peer_uid(pair[0], &uid));
    assert_int_equal(uid, getuid());
    uid = 77;
    int tcp = socket(AF_INET, SOCK_STREAM, 0);
    assert_true(tcp >= 0);
    assert_false(bs_peer_uid(tcp, &uid));
    close(tcp);
    close(pair[0]);
    close(pair[1]);
    assert_false(bs_peer_uid(pair[0], &uid));
    assert_false(bs_peer_uid(-1, &uid));
    assert_int_equal(uid, 77);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_path_has_one_real_name_before_and_after_its_file_is_there),
        cmocka_unit_test(a_file_is_read_whole_or_not_at_all),
        cmocka_unit_test(a_large_file_is_read_in_pieces),
        cmocka_unit_test(a_lock_has_one_holder),
        cmocka_unit_test(the_folder_of_a_file_is_made_one_level),
        cmocka_unit_test(only_a_unix_peer_has_a_uid),
    };

    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
