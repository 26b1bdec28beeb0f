/* A backup: written beside its place under another name, looked through, synced, then named. */
#include "store/inner.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PATH_MAX_BYTES = 1000, LOOK_LIMIT_S = 24 * 3600 };

/* Where the copy is made: gone at the end, unless it got its name. */
struct attempt {
    char path[PATH_MAX_BYTES + 32];
    bool made;
};

static void remove_beside(const char *path, const char *suffix)
{
    char name[PATH_MAX_BYTES + 48];

    snprintf(name, sizeof(name), "%s%s", path, suffix);
    unlink(name);
}

static void clear_attempt(struct attempt *a)
{
    if (!a->made)
        return;
    remove_beside(a->path, "-wal");
    remove_beside(a->path, "-shm");
    unlink(a->path);
    a->made = false;
}

static bs_rc fail_file(const char *what, const char *path, struct bs_err *err)
{
    return bs_fail(err, BS_E_UNAVAILABLE, "cannot %s %.200s: %s", what, path, strerror(errno));
}

/* A log that is there already would be taken for the copy's. */
static bs_rc refuse_taken(const char *file, struct bs_err *err)
{
    static const char *const suffixes[] = { "", "-wal", "-journal", "-shm" };
    char name[PATH_MAX_BYTES + 16];
    struct stat st;

    if (strlen(file) == 0 || strlen(file) >= PATH_MAX_BYTES)
        return bs_fail(err, BS_E_INVALID, "the file's name must have 1 to %d bytes",
                       PATH_MAX_BYTES - 1);
    for (size_t i = 0; i < BS_COUNT(suffixes); i++) {
        snprintf(name, sizeof(name), "%s%s", file, suffixes[i]);
        if (lstat(name, &st) == 0)
            return bs_fail(err, BS_E_CONFLICT, "%.200s is there already; a backup is a new file",
                           name);
    }
    return BS_OK;
}

static bs_rc make_attempt(struct attempt *a, const char *file, struct bs_err *err)
{
    snprintf(a->path, sizeof(a->path), "%s.tmp-%ld", file, (long)getpid());
    int fd = open(a->path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

    if (fd < 0)
        return fail_file("make", a->path, err);
    a->made = true;
    close(fd);
    return BS_OK;
}

/* ---- looking through the copy ---- */

static bs_rc count_tasks(struct bs_store *s, int64_t *ret, struct bs_err *err)
{
    BS_CLEANUP(bs_arena_free) struct bs_arena a = { 0 };
    struct bs_stat_row *rows = NULL;
    uint32_t n = 0;

    BS_TRY(bs_store_stats(s, &a, &rows, &n, err));
    *ret = 0;
    for (uint32_t i = 0; i < n; i++)
        *ret += rows[i].count;
    return BS_OK;
}

static bs_rc quick_check(struct bs_store *s, struct bs_err *err)
{
    struct bs_val finding[1];
    bool found = false;

    BS_TRY(s->db->ops->begin(s->db, err));
    bs_rc rc = store_one(s, BS_SQL_QUICK_CHECK, NULL, 0, finding, 1, &found, err);
    if (rc == BS_OK && found && !bs_str_is(finding[0].s, "ok"))
        rc = bs_fail(err, BS_E_CORRUPT, "the copy is damaged, as the store may be: %.*s",
                     BS_STR_FMT(finding[0].s));
    s->db->ops->rollback(s->db);
    return rc;
}

static bs_rc look_through(const char *path, int64_t *ret_tasks, struct bs_err *err)
{
    char url[PATH_MAX_BYTES + 48];
    const struct bs_store_options o = { .url = url,
                                        .mode = BS_STORE_READER,
                                        .read_limit = BS_SEC(LOOK_LIMIT_S) };
    struct bs_store *copy = NULL;

    snprintf(url, sizeof(url), "sqlite:%s", path);
    BS_TRY(bs_store_open(&o, &copy, err));
    bs_rc rc = quick_check(copy, err);
    if (rc == BS_OK)
        rc = count_tasks(copy, ret_tasks, err);
    bs_store_close(copy);
    return rc;
}

/* ---- to stable storage, and its name ---- */

static bs_rc sync_path(const char *path, int flags, struct bs_err *err)
{
    int fd = open(path, flags | O_RDONLY | O_CLOEXEC);
    bool synced = fd >= 0 && fsync(fd) == 0;
    bs_rc rc = synced ? BS_OK : fail_file("sync", path, err);

    if (fd >= 0)
        close(fd);
    return rc;
}

static bs_rc sync_folder(const char *file, struct bs_err *err)
{
    char folder[PATH_MAX_BYTES];
    const char *slash = strrchr(file, '/');

    if (!slash)
        snprintf(folder, sizeof(folder), ".");
    else
        snprintf(folder, sizeof(folder), "%.*s", slash == file ? 1 : (int)(slash - file), file);
    return sync_path(folder, O_DIRECTORY, err);
}

/* Whoever made the file meanwhile keeps it; where the file system cannot say so, a look must do. */
static bs_rc give_name(struct attempt *a, const char *file, struct bs_err *err)
{
    int failed = renameat2(AT_FDCWD, a->path, AT_FDCWD, file, RENAME_NOREPLACE);

    if (failed && (errno == EINVAL || errno == ENOSYS)) {
        BS_TRY(refuse_taken(file, err));
        failed = rename(a->path, file);
    }
    if (failed && errno == EEXIST)
        return refuse_taken(file, err);
    if (failed)
        return fail_file("name", file, err);
    a->made = false;
    return BS_OK;
}

static bs_rc size_of(const char *path, int64_t *ret, struct bs_err *err)
{
    struct stat st;

    if (stat(path, &st) != 0)
        return fail_file("read", path, err);
    *ret = (int64_t)st.st_size;
    return BS_OK;
}

bs_rc bs_store_backup(struct bs_store *s, const char *file, struct bs_backup *ret,
                      struct bs_err *err)
{
    BS_CLEANUP(clear_attempt) struct attempt a = { .made = false };

    STORE_CHECK(s);
    BS_TRY(refuse_taken(file, err));
    BS_TRY(make_attempt(&a, file, err));
    BS_TRY(s->db->ops->copy(s->db, a.path, err));
    BS_TRY(look_through(a.path, &ret->tasks, err));
    BS_TRY(size_of(a.path, &ret->bytes, err));
    BS_TRY(sync_path(a.path, 0, err));
    BS_TRY(give_name(&a, file, err));
    return sync_folder(file, err);
}
