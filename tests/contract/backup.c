/* The contract: a backup is the store of one instant, whole or not there at all. */
#include "world.h"

#include <dirent.h>
#include <stdio.h>
#include <sys/stat.h>

static const char *in_folder(struct world *w, const char *name)
{
    return bs_arena_fmt(&w->arena, "%s/%s", w->dir, name).p;
}

/* Beside the store's own files. */
static uint32_t count_copies(struct world *w)
{
    DIR *d = opendir(w->dir);
    uint32_t n = 0;

    assert_non_null(d);
    for (struct dirent *e; (e = readdir(d)) != NULL;)
        n += strncmp(e->d_name, "copy", 4) == 0;
    closedir(d);
    return n;
}

static struct bs_store *open_copy(struct world *w, const char *file)
{
    const struct bs_store_options o = { .url = bs_arena_fmt(&w->arena, "sqlite:%s", file).p,
                                        .mode = BS_STORE_WRITER };
    struct bs_store *copy = NULL;

    if (bs_store_open(&o, &copy, &w->err) != BS_OK)
        fail_msg("the copy does not open: %s", w->err.msg);
    return copy;
}

static void a_backup_is_the_store_of_its_instant_and_can_be_served(void **state)
{
    struct world *w = *state;
    const char *file = in_folder(w, "copy.db");
    struct bs_backup b = { 0 };
    struct stat st;

    put_one(w, "r-1");
    assert_int_equal(finish(w, claim_one(w), BS_OUT_SUCCESS, ""), BS_OK);
    put_one(w, "r-2");
    const char *then = whole_text(w);
    assert_int_equal(bs_store_backup(w->store, file, &b, &w->err), BS_OK);
    assert_int_equal(b.tasks, 2);
    assert_int_equal(stat(file, &st), 0);
    assert_int_equal(st.st_size, b.bytes);
    assert_int_equal(st.st_mode & 0777, 0600);
    assert_int_equal(count_copies(w), 1);
    put_one(w, "r-3");

    struct bs_store *own = w->store;
    w->store = open_copy(w, file);
    assert_string_equal(whole_text(w), then);
    assert_sound(w);
    put_one(w, "r-4");
    bs_store_close(w->store);
    w->store = own;
}

static void a_backup_never_replaces_a_file(void **state)
{
    static const char *const there[] = { "copy", "copy-wal", "copy-journal" };
    struct world *w = *state;
    struct bs_backup b = { 0 };

    put_one(w, "r-1");
    for (size_t i = 0; i < BS_COUNT(there); i++) {
        FILE *f = fopen(in_folder(w, there[i]), "w");
        assert_non_null(f);
        fclose(f);
        assert_int_equal(bs_store_backup(w->store, in_folder(w, "copy"), &b, &w->err),
                         BS_E_CONFLICT);
        assert_non_null(strstr(w->err.msg, there[i]));
        assert_int_equal(count_copies(w), 1);
        assert_int_equal(remove(in_folder(w, there[i])), 0);
    }
    assert_int_equal(bs_store_backup(w->store, in_folder(w, "store.db"), &b, &w->err),
                     BS_E_CONFLICT);
    assert_int_equal(bs_store_backup(w->store, "", &b, &w->err), BS_E_INVALID);
    assert_int_equal(bs_store_backup(w->store, in_folder(w, "no/folder/copy"), &b, &w->err),
                     BS_E_UNAVAILABLE);
}

static void a_backup_that_fails_leaves_nothing_behind(void **state)
{
    struct world *w = *state;
    struct bs_backup b = { 0 };

    put_one(w, "r-1");
    for (int when = BS_FAULT_BEFORE; when <= BS_FAULT_AFTER; when++) {
        bs_faulty_plan(w->db,
                       &(struct bs_fault_plan){ .when = (enum bs_fault_when)when, .fail_in = 1 });
        assert_int_equal(bs_store_backup(w->store, in_folder(w, "copy"), &b, &w->err),
                         BS_E_UNAVAILABLE);
        assert_int_equal(count_copies(w), 0);
    }
    bs_faulty_plan(w->db, &(struct bs_fault_plan){ 0 });
    assert_int_equal(bs_store_backup(w->store, in_folder(w, "copy"), &b, &w->err), BS_OK);
}

int run_backup_cases(void)
{
    const struct CMUnitTest cases[] = {
        CASE(a_backup_is_the_store_of_its_instant_and_can_be_served),
        CASE(a_backup_never_replaces_a_file),
        CASE(a_backup_that_fails_leaves_nothing_behind),
    };

    return cmocka_run_group_tests_name("backup", cases, NULL, NULL);
}
