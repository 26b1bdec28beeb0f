/* The contract: what is opened and what is refused. */
#include "world.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static bs_rc open_url(struct world *w, const char *file, bool migrate, struct bs_store **ret)
{
    char url[160];

    snprintf(url, sizeof(url), "sqlite:%s/%s", w->dir, file);
    const struct bs_store_options o = { .url = url, .mode = BS_STORE_WRITER, .migrate = migrate };
    return bs_store_open(&o, ret, &w->err);
}

static void path_of(struct world *w, const char *file, char *out, size_t size)
{
    snprintf(out, size, "%s/%s", w->dir, file);
}

static void write_at(struct world *w, const char *file, off_t at, const char *bytes, size_t n)
{
    char path[160];

    path_of(w, file, path, sizeof(path));
    int fd = open(path, O_CREAT | O_WRONLY, 0600);
    assert_true(fd >= 0);
    assert_int_equal(pwrite(fd, bytes, n, at), (ssize_t)n);
    close(fd);
}

static void an_empty_store_is_made_ready_and_is_private(void **state)
{
    struct world *w = *state;
    struct bs_store *s = NULL;
    struct stat st;
    char path[160];

    assert_int_equal(open_url(w, "new.db", false, &s), BS_OK);
    assert_int_equal(bs_store_version(s), bs_store_program_version);
    path_of(w, "new.db", path, sizeof(path));
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    bs_store_close(s);
}

static void a_store_keeps_everything_when_it_is_opened_again(void **state)
{
    struct world *w = *state;
    int64_t id = put_one(w, "r-1");

    const char *before = whole_text(w);
    world_reopen(w);
    assert_string_equal(whole_text(w), before);
    assert_int_equal(state_of(w, id), BS_WAITING);
}

static void a_store_that_another_writer_holds_is_refused(void **state)
{
    struct world *w = *state;
    struct bs_store *a = NULL, *b = NULL;

    assert_int_equal(open_url(w, "one.db", false, &a), BS_OK);
    assert_int_equal(open_url(w, "one.db", false, &b), BS_E_REFUSED);
    assert_non_null(strstr(w->err.msg, "in use by another"));
    bs_store_close(a);
    assert_int_equal(open_url(w, "one.db", false, &b), BS_OK);
    bs_store_close(b);
}

static void set_version(struct world *w, const char *file, int version)
{
    struct bs_store *s = NULL;
    char path[160], sql[256];

    assert_int_equal(open_url(w, file, false, &s), BS_OK);
    bs_store_close(s);
    /* Through the world's own driver: the other file is attached for a moment. */
    path_of(w, file, path, sizeof(path));
    snprintf(sql, sizeof(sql), "ATTACH '%s' AS o", path);
    assert_int_equal(w->db->ops->script(w->db, sql, &w->err), BS_OK);
    snprintf(sql, sizeof(sql), "UPDATE o.meta SET value = %d WHERE name = 'schema_version'",
             version);
    assert_int_equal(w->db->ops->script(w->db, sql, &w->err), BS_OK);
    assert_int_equal(w->db->ops->script(w->db, "DETACH o", &w->err), BS_OK);
}

static void a_newer_store_is_refused(void **state)
{
    struct world *w = *state;
    struct bs_store *s = NULL;

    set_version(w, "newer.db", bs_store_program_version + 1);
    assert_int_equal(open_url(w, "newer.db", true, &s), BS_E_REFUSED);
    assert_non_null(strstr(w->err.msg, "newer program"));
}

static void an_older_store_names_the_command_that_brings_it_up_to_date(void **state)
{
    struct world *w = *state;
    struct bs_store *s = NULL;

    set_version(w, "older.db", 0);
    assert_int_equal(open_url(w, "older.db", false, &s), BS_E_REFUSED);
    assert_non_null(strstr(w->err.msg, "backstop migrate"));
}

static void a_file_that_is_no_database_is_refused(void **state)
{
    struct world *w = *state;
    struct bs_store *s = NULL;
    char junk[4096];

    memset(junk, 'j', sizeof(junk));
    write_at(w, "junk.db", 0, junk, sizeof(junk));
    assert_int_equal(open_url(w, "junk.db", false, &s), BS_E_CORRUPT);
}

static void a_database_of_another_program_is_refused_and_left_alone(void **state)
{
    struct world *w = *state;
    struct bs_store *s = NULL;
    char sql[200];

    snprintf(sql, sizeof(sql), "ATTACH '%s/foreign.db' AS o; CREATE TABLE o.t (x); DETACH o",
             w->dir);
    assert_int_equal(w->db->ops->script(w->db, sql, &w->err), BS_OK);
    assert_int_equal(open_url(w, "foreign.db", true, &s), BS_E_CORRUPT);
    assert_non_null(strstr(w->err.msg, "another program"));
}

static void a_damaged_store_is_refused(void **state)
{
    struct world *w = *state;
    struct bs_store *s = NULL;
    char zeros[4096 * 3] = { 0 };

    assert_int_equal(open_url(w, "damaged.db", false, &s), BS_OK);
    bs_store_close(s);
    write_at(w, "damaged.db", 4096 * 4, zeros, sizeof(zeros));
    assert_int_equal(open_url(w, "damaged.db", false, &s), BS_E_CORRUPT);
    assert_non_null(strstr(w->err.msg, "damaged"));
}

static void a_path_that_cannot_be_opened_says_so(void **state)
{
    struct world *w = *state;
    struct bs_store *s = NULL;
    char url[160];

    assert_int_not_equal(open_url(w, "no/such/folder/x.db", false, &s), BS_OK);
    snprintf(url, sizeof(url), "sqlite:%s/none.db", w->dir);
    const struct bs_store_options o = { .url = url, .mode = BS_STORE_READER };
    assert_int_equal(bs_store_open(&o, &s, &w->err), BS_E_UNAVAILABLE);
    const struct bs_store_options odd = { .url = "oracle:x" };
    assert_int_equal(bs_store_open(&odd, &s, &w->err), BS_E_INVALID);
}

static void the_check_sees_what_does_not_fit(void **state)
{
    struct world *w = *state;
    BS_CLEANUP(bs_buf_free) struct bs_buf report = { .max = 1 << 16 };
    static const char *const damage[] = {
        "UPDATE queue_stat SET n = n + 1",
        "DELETE FROM request_key",
        "UPDATE effect_key SET task_id = 5",
        "UPDATE task SET due_at = NULL",
        "UPDATE task SET due_at = NULL, blocked_key = 'o:1', blocked_at = 1",
    };
    struct bs_task *t = sample(w, "r-1");

    t->effect_key = BS_STR("e");
    put(w, t);
    for (size_t i = 0; i < BS_COUNT(damage); i++) {
        bs_buf_reset(&report);
        assert_int_equal(w->db->ops->begin(w->db, NULL), BS_OK);
        assert_int_equal(w->db->ops->script(w->db, damage[i], &w->err), BS_OK);
        assert_int_equal(w->db->ops->commit(w->db, NULL), BS_OK);
        assert_int_equal(bs_store_check(w->store, &report, &w->err), BS_OK);
        assert_string_not_equal(bs_buf_str(&report).p, "");
    }
    world_close(w);
}

static void the_database_repeats_the_rules_of_states(void **state)
{
    struct world *w = *state;
    static const char *const wrong[] = {
        "UPDATE task SET task_status = 'LOST'",
        "UPDATE task SET task_status = 'PROCESSING'",
        "UPDATE task SET task_status = 'SUCCESS'",
        "UPDATE task SET locked_until = 1",
        "UPDATE task SET run_key = 'k'",
        "UPDATE task SET close_pending = 1",
        "UPDATE task SET priority = 4",
        "UPDATE task SET blocked_key = 'k'",
    };

    put_one(w, "r-1");
    for (size_t i = 0; i < BS_COUNT(wrong); i++)
        assert_int_equal(w->db->ops->script(w->db, wrong[i], NULL), BS_E_CONFLICT);
}

static void a_view_shows_tasks_to_people(void **state)
{
    struct world *w = *state;

    put_one(w, "r-1");
    assert_int_equal(w->db->ops->script(w->db,
                                        "CREATE TEMP TABLE seen (n INTEGER CHECK (n = 1)); INSERT "
                                        "INTO seen SELECT count(*) FROM compensation_task WHERE "
                                        "create_time = '2026-11-30T16:00:00.000Z'",
                                        &w->err),
                     BS_OK);
}

static void a_driver_table_with_a_hole_is_refused(void **state)
{
    struct world *w = *state;
    struct bs_db_ops holed = *w->db->ops;
    struct bs_db db = { &holed };

    assert_int_equal(bs_db_check(&db, NULL), BS_OK);
    holed.next = NULL;
    assert_int_equal(bs_db_check(&db, NULL), BS_E_INVALID);
    assert_int_equal(bs_db_check(NULL, NULL), BS_E_INVALID);
}

int run_open_cases(void)
{
    const struct CMUnitTest cases[] = {
        CASE(an_empty_store_is_made_ready_and_is_private),
        CASE(a_store_keeps_everything_when_it_is_opened_again),
        CASE(a_store_that_another_writer_holds_is_refused),
        CASE(a_newer_store_is_refused),
        CASE(an_older_store_names_the_command_that_brings_it_up_to_date),
        CASE(a_file_that_is_no_database_is_refused),
        CASE(a_database_of_another_program_is_refused_and_left_alone),
        CASE(a_damaged_store_is_refused),
        CASE(a_path_that_cannot_be_opened_says_so),
        CASE(the_check_sees_what_does_not_fit),
        CASE(the_database_repeats_the_rules_of_states),
        CASE(a_view_shows_tasks_to_people),
        CASE(a_driver_table_with_a_hole_is_refused),
    };

    return cmocka_run_group_tests_name("open", cases, NULL, NULL);
}
