/* Maintenance, stepped by hand beside a real committer on a real store: passes over finished tasks
 * in small slices that give way, and checkpoints. */
#include "keep/keep.h"

#include "db/faulty.h"
#include "db/sqlite.h"
#include "sys/log.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>

#define START_US INT64_C(1796054400000000)
#define SECOND_US INT64_C(1000000)
#define DAY_US (INT64_C(86400) * SECOND_US)

enum { TASKS_MAX = 1000 };

struct world {
    char dir[64], path[96], url[128];
    struct bs_clock_manual clock;
    struct bs_ids ids;
    struct bs_queues queues;
    struct bs_queues_slot slot;
    struct bs_db *db; /* the fault injector */
    struct bs_store *store;
    struct bs_committer *committer;
    struct bs_keep *keep;
    int64_t commit_us; /* how long a commit takes */
    struct bs_arena arena;
};

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *ftw)
{
    (void)st;
    (void)kind;
    (void)ftw;
    return remove(path);
}

static void open_store(struct world *w)
{
    const struct bs_sqlite_options so = { .path = w->path };
    struct bs_db *real = NULL;

    assert_int_equal(bs_sqlite_open(&so, &real, NULL), BS_OK);
    w->db = bs_faulty_new(real);
    const struct bs_store_options o = { .mode = BS_STORE_WRITER, .db = w->db };
    assert_int_equal(bs_store_open(&o, &w->store, NULL), BS_OK);
}

static struct world *world_new(void)
{
    struct world *w = calloc(1, sizeof(*w));

    assert_non_null(w);
    snprintf(w->dir, sizeof(w->dir), "/tmp/bs-keep-XXXXXX");
    assert_non_null(mkdtemp(w->dir));
    snprintf(w->path, sizeof(w->path), "%s/store.db", w->dir);
    snprintf(w->url, sizeof(w->url), "sqlite:%s", w->path);
    bs_clock_manual_init(&w->clock, (struct bs_time){ START_US });
    bs_ids_init(&w->ids, 1);
    w->slot.now = &w->queues;
    open_store(w);
    return w;
}

/* The store goes to the committer. */
static void start(struct world *w, bool with_checkpoints)
{
    const struct bs_committer_options c = { .store = w->store, .clock = &w->clock.base };
    struct bs_keep_options k = { .queues = &w->slot, .clock = &w->clock.base, .ids = &w->ids };

    assert_int_equal(bs_committer_new(&c, &w->committer, NULL), BS_OK);
    k.committer = w->committer;
    k.store_url = with_checkpoints ? w->url : NULL;
    k.store_path = w->path;
    assert_int_equal(bs_keep_new(&k, &w->keep, NULL), BS_OK);
}

/* Whatever was moved: the store is sound. */
static void world_free(struct world *w)
{
    BS_CLEANUP(bs_buf_free) struct bs_buf report = { .max = 1 << 16 };

    bs_keep_quiet(w->keep);
    bs_committer_free(w->committer);
    bs_keep_free(w->keep);
    open_store(w);
    assert_int_equal(bs_store_check(w->store, &report, NULL), BS_OK);
    assert_string_equal(bs_buf_str(&report).p, "");
    bs_store_close(w->store);
    bs_arena_free(&w->arena);
    nftw(w->dir, remove_one, 8, FTW_DEPTH | FTW_PHYS);
    free(w);
}

/* ---- tasks ---- */

static struct bs_task row(struct world *w, int i)
{
    struct bs_str key = bs_arena_fmt(&w->arena, "r-%lld-%d", (long long)w->clock.at.us, i);

    return (struct bs_task){ .request_id = key,
                             .biz_id = key,
                             .biz_type = BS_STR("PAY_CALLBACK"),
                             .merchant_no = BS_STR("default"),
                             .source = BS_SRC_API,
                             .state = BS_WAITING,
                             .max_retry_count = 10,
                             .version = 1,
                             .created_by = BS_STR("shop"),
                             .created_at = w->clock.at,
                             .updated_at = w->clock.at,
                             .next_execute_at = w->clock.at,
                             .due_at = w->clock.at };
}

static void apply(struct world *w, struct bs_op *ops, uint32_t n)
{
    struct bs_op *list[TASKS_MAX];

    assert_true(n <= TASKS_MAX);
    for (uint32_t i = 0; i < n; i++)
        list[i] = &ops[i];
    assert_int_equal(bs_store_apply(w->store, list, n, NULL), BS_OK);
    for (uint32_t i = 0; i < n; i++)
        assert_int_equal(ops[i].rc, BS_OK);
}

/* n tasks that somebody closed, before start. */
static void put_closed(struct world *w, uint32_t n)
{
    static struct bs_task tasks[TASKS_MAX];
    static struct bs_op ops[TASKS_MAX];

    for (uint32_t i = 0; i < n; i++) {
        tasks[i] = row(w, (int)i);
        tasks[i].id = bs_ids_next(&w->ids, w->clock.at);
        ops[i] = (struct bs_op){ .kind = BS_OP_SUBMIT, .id = tasks[i].id, .now = w->clock.at };
        ops[i].submit.task = &tasks[i];
        ops[i].submit.request_fp = bs_sha256_of(tasks[i].request_id);
    }
    apply(w, ops, n);
    for (uint32_t i = 0; i < n; i++) {
        ops[i] = (struct bs_op){ .kind = BS_OP_ACT,
                                 .id = bs_ids_next(&w->ids, w->clock.at),
                                 .now = w->clock.at };
        ops[i].act = (struct bs_op_act){ .task_id = tasks[i].id,
                                         .action = BS_ACT_CLOSE,
                                         .reason = BS_STR("r"),
                                         .conclusion = BS_STR("other"),
                                         .operator= BS_STR("li.na") };
    }
    apply(w, ops, n);
}

static void keep_for(struct world *w, int64_t archive_days, int64_t purge_days)
{
    w->queues.history =
        (struct bs_history_conf){ BS_US(archive_days * DAY_US), BS_US(purge_days * DAY_US) };
}

static void advance(struct world *w, int64_t us)
{
    w->clock.at.us += us;
}

/* Both actors until `us` have passed; the clock jumps to whatever is due next. */
static void run_for(struct world *w, int64_t us)
{
    struct bs_actor *keep = bs_keep_actor(w->keep), *committer = bs_committer_actor(w->committer);
    struct bs_time end = bs_time_add(w->clock.at, BS_US(us));

    while (bs_time_before(w->clock.at, end)) {
        struct bs_time next = keep->step(keep, w->clock.at);
        bool works = bs_mailbox_count(committer->in, BS_RANK_MAINTENANCE) > 0;

        if (works)
            advance(w, w->commit_us);
        next = bs_time_min(next, committer->step(committer, w->clock.at));
        if (bs_mailbox_count(keep->in, 0) == 0)
            w->clock.at = bs_time_min(bs_time_max(next, w->clock.at), end);
    }
}

static struct bs_keep_figures figures(struct world *w)
{
    struct bs_keep_figures f;

    bs_keep_figures(w->keep, &f);
    return f;
}

/* ---- passes ---- */

static void a_pass_moves_what_is_old_slice_by_slice_with_pauses(void **state)
{
    struct world *w = world_new();
    (void)state;

    put_closed(w, 1000);
    advance(w, 31 * DAY_US);
    keep_for(w, 30, 0);
    start(w, false);
    run_for(w, 50000); /* a slice of 50, a pause, one of 100, a pause */
    assert_in_range(figures(w).archived, 50, 350);
    assert_int_equal(figures(w).passes, 0);
    run_for(w, 10 * SECOND_US);
    assert_int_equal(figures(w).archived, 1000);
    assert_int_equal(figures(w).purged, 0);
    assert_int_equal(figures(w).passes, 1);
    assert_true(figures(w).last_pass.us > START_US + 31 * DAY_US);
    world_free(w);
}

static void a_pass_comes_every_hour(void **state)
{
    struct world *w = world_new();
    (void)state;

    keep_for(w, 30, 0);
    start(w, false);
    run_for(w, SECOND_US);
    assert_int_equal(figures(w).passes, 1);
    run_for(w, 3590 * SECOND_US);
    assert_int_equal(figures(w).passes, 1);
    run_for(w, 10 * SECOND_US);
    assert_int_equal(figures(w).passes, 2);
    world_free(w);
}

static void purging_follows_archiving_in_the_same_pass(void **state)
{
    struct world *w = world_new();
    (void)state;

    put_closed(w, 100);
    advance(w, 60 * DAY_US);
    put_closed(w, 10);
    advance(w, 31 * DAY_US);
    keep_for(w, 30, 90);
    start(w, false);
    run_for(w, 10 * SECOND_US);
    assert_int_equal(figures(w).archived, 110);
    assert_int_equal(figures(w).purged, 100);
    assert_int_equal(figures(w).passes, 1);
    world_free(w);
}

static void what_is_set_to_never_stays_for_ever(void **state)
{
    struct world *w = world_new();
    (void)state;

    put_closed(w, 10);
    advance(w, 5000 * DAY_US);
    start(w, false);
    run_for(w, 7200 * SECOND_US);
    assert_int_equal(figures(w).archived + figures(w).purged, 0);
    world_free(w);
}

static void another_configuration_is_followed_within_seconds(void **state)
{
    static struct bs_queues other = { .history = { { 30 * DAY_US }, { 0 } } };
    struct world *w = world_new();
    (void)state;

    put_closed(w, 300);
    advance(w, 31 * DAY_US);
    start(w, false);
    run_for(w, 60 * SECOND_US);
    assert_int_equal(figures(w).archived, 0);
    w->slot.now = &other;
    run_for(w, 11 * SECOND_US);
    assert_int_equal(figures(w).archived, 300);
    world_free(w);
}

static void a_pass_ends_when_the_file_now_says_never(void **state)
{
    static struct bs_queues never = { 0 };
    struct world *w = world_new();
    (void)state;

    put_closed(w, 1000);
    advance(w, 31 * DAY_US);
    keep_for(w, 30, 0);
    start(w, false);
    run_for(w, 1000);
    w->slot.now = &never;
    run_for(w, 60 * SECOND_US);
    assert_in_range(figures(w).archived, 1, 100);
    world_free(w);
}

static void slices_become_small_where_the_committer_is_slow(void **state)
{
    struct world *w = world_new();
    (void)state;

    put_closed(w, 1000);
    advance(w, 31 * DAY_US);
    keep_for(w, 30, 0);
    w->commit_us = 100000;
    start(w, false);
    run_for(w, 5 * SECOND_US); /* 120 ms each: 50 + 25 + 12 and then 10s */
    assert_in_range(figures(w).archived, 200, 500);
    w->commit_us = 0;
    run_for(w, 2 * SECOND_US);
    assert_int_equal(figures(w).archived, 1000);
    world_free(w);
}

static void a_store_that_is_away_interrupts_a_pass_and_loses_nothing(void **state)
{
    (void)state;
    for (int64_t n = 1; n < 40; n++) {
        struct world *w = world_new();

        put_closed(w, 120);
        advance(w, 100 * DAY_US);
        keep_for(w, 30, 90);
        start(w, false);
        bs_faulty_plan(w->db, &(struct bs_fault_plan){
                                  .fail_in = n, .when = n % 2 ? BS_FAULT_BEFORE : BS_FAULT_AFTER });
        run_for(w, 30 * SECOND_US);
        bs_faulty_plan(w->db, &(struct bs_fault_plan){ 0 });
        run_for(w, 30 * SECOND_US);
        /* A slice whose answer was lost is not counted again. */
        assert_in_range(figures(w).archived, 0, 120);
        assert_int_equal(figures(w).passes, 1);
        world_free(w);
    }
}

/* ---- checkpoints ---- */

static void the_log_is_moved_into_the_file_when_it_is_worth_it(void **state)
{
    struct world *w = world_new();
    (void)state;

    for (int i = 0; i < 4; i++) {
        put_closed(w, 1000);
        advance(w, SECOND_US);
    }
    start(w, true);
    run_for(w, 2 * SECOND_US);
    assert_int_equal(figures(w).checkpoints, 1);
    assert_true(figures(w).wal_bytes > 4 << 20);
    run_for(w, 10 * SECOND_US);
    assert_int_equal(figures(w).checkpoints, 1);
    world_free(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_pass_moves_what_is_old_slice_by_slice_with_pauses),
        cmocka_unit_test(a_pass_comes_every_hour),
        cmocka_unit_test(purging_follows_archiving_in_the_same_pass),
        cmocka_unit_test(what_is_set_to_never_stays_for_ever),
        cmocka_unit_test(another_configuration_is_followed_within_seconds),
        cmocka_unit_test(a_pass_ends_when_the_file_now_says_never),
        cmocka_unit_test(slices_become_small_where_the_committer_is_slow),
        cmocka_unit_test(a_store_that_is_away_interrupts_a_pass_and_loses_nothing),
        cmocka_unit_test(the_log_is_moved_into_the_file_when_it_is_worth_it),
    };

    bs_log_setup(2, 1, BS_LOG_ERROR);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
