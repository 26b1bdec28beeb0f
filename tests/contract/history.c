/* The contract: finished tasks move to history and are read there as before; what is purged is
 * gone, its keys are not. */
#include "world.h"

#include <stdio.h>

#define DAY_US (INT64_C(86400) * 1000000)

/* ---- verbs ---- */

static struct bs_op slice_op(struct world *w, enum bs_op_kind kind, int64_t older_days,
                             uint32_t limit)
{
    struct bs_op op = op_of(w, kind);

    op.slice = (struct bs_op_slice){ .before = bs_time_add(w->now, BS_US(-older_days * DAY_US)),
                                     .limit = limit };
    return op;
}

/* A whole pass; how many were moved, in how many slices. */
static uint32_t pass(struct world *w, enum bs_op_kind kind, int64_t older_days, uint32_t limit,
                     uint32_t *ret_slices)
{
    struct bs_op op = slice_op(w, kind, older_days, limit);
    uint32_t moved = 0, slices = 0;

    do {
        assert_int_equal(apply(w, &op), BS_OK);
        moved += op.slice.ret_moved;
        slices++;
        op.slice.after_id = op.slice.ret_after_id;
    } while (op.slice.ret_more);
    if (ret_slices)
        *ret_slices = slices;
    return moved;
}

static uint32_t archive(struct world *w)
{
    return pass(w, BS_OP_ARCHIVE, 30, 100, NULL);
}

static bool has_row(struct world *w, enum bs_sql sql, int64_t id)
{
    struct bs_val key = bs_i64(id), col[1];
    bool there = false, more = true;

    assert_int_equal(w->db->ops->run(w->db, sql, &key, 1, NULL, NULL), BS_OK);
    while (more) {
        assert_int_equal(w->db->ops->next(w->db, sql, col, 1, &more, NULL), BS_OK);
        there = there || more;
    }
    return there;
}

static bool in_history(struct world *w, int64_t id)
{
    bool live = has_row(w, BS_SQL_TASK_GET, id), old = has_row(w, BS_SQL_HISTORY_GET, id);

    assert_true(live != old);
    return old;
}

static int64_t put_done(struct world *w, const char *key, enum bs_outcome_kind kind)
{
    int64_t id = put_one(w, key);

    assert_int_equal(finish(w, claim_one(w), kind, kind == BS_OUT_SUCCESS ? "" : "HTTP_422"),
                     BS_OK);
    return id;
}

static int64_t put_closed(struct world *w, const char *key)
{
    int64_t id = put_one(w, key);

    assert_int_equal(act(w, id, BS_ACT_CLOSE, "done_elsewhere"), BS_OK);
    return id;
}

static int64_t put_finished_with_numbers(struct world *w, const char *key)
{
    struct bs_task *t = sample(w, key);

    t->order_no = bs_arena_fmt(&w->arena, "order-%s", key);
    t->payment_no = bs_arena_fmt(&w->arena, "pay-%s", key);
    t->channel_trade_no = bs_arena_fmt(&w->arena, "trade-%s", key);
    t->refund_no = bs_arena_fmt(&w->arena, "refund-%s", key);
    int64_t id = put(w, t);
    assert_int_equal(finish(w, claim_one(w), BS_OUT_SUCCESS, ""), BS_OK);
    return id;
}

/* ---- what moves ---- */

static void only_what_is_finished_and_old_moves(void **state)
{
    struct world *w = *state;
    int64_t success = put_done(w, "r-1", BS_OUT_SUCCESS),
            manual = put_done(w, "r-2", BS_OUT_MANUAL);
    int64_t closed = put_closed(w, "r-3"), retry = put_one(w, "r-4");

    assert_int_equal(finish(w, claim_one(w), BS_OUT_FAILED, "HTTP_503"), BS_OK);
    advance(w, INT64_C(600000000));
    int64_t processing = put_one(w, "r-5");
    struct bs_task *running = &claim(w, 10)->task;
    assert_non_null(running);
    advance(w, 31 * DAY_US);
    int64_t waiting = put_one(w, "r-6"), young = put_closed(w, "r-7");

    assert_int_equal(archive(w), 2);
    assert_true(in_history(w, success));
    assert_true(in_history(w, closed));
    const int64_t stay[] = { manual, retry, processing, waiting, young };
    for (size_t i = 0; i < BS_COUNT(stay); i++)
        assert_false(in_history(w, stay[i]));
    assert_int_equal(archive(w), 0);
}

static void a_task_that_is_200_days_old_and_in_manual_is_still_there(void **state)
{
    struct world *w = *state;
    int64_t id = put_done(w, "r-1", BS_OUT_MANUAL);

    advance(w, 200 * DAY_US);
    assert_int_equal(archive(w), 0);
    assert_int_equal(pass(w, BS_OP_PURGE, 90, 100, NULL), 0);
    assert_false(in_history(w, id));
    assert_int_equal(state_of(w, id), BS_MANUAL);
    assert_int_equal(act(w, id, BS_ACT_RETRY, ""), BS_OK);
    assert_int_equal(claim_one(w)->id, id);
}

static void an_old_task_that_somebody_closed_yesterday_stays(void **state)
{
    struct world *w = *state;
    int64_t id = put_done(w, "r-1", BS_OUT_MANUAL);

    advance(w, 40 * DAY_US);
    assert_int_equal(act(w, id, BS_ACT_RESOLVE, "done_elsewhere"), BS_OK);
    advance(w, DAY_US);
    assert_int_equal(archive(w), 0);
    assert_false(in_history(w, id));
    advance(w, 30 * DAY_US);
    assert_int_equal(archive(w), 1);
    assert_true(in_history(w, id));
}

static void a_pass_goes_in_slices_over_what_stays_too(void **state)
{
    struct world *w = *state;
    uint32_t slices = 0;

    for (int i = 0; i < 25; i++)
        put_done(w, bs_arena_fmt(&w->arena, "r-%d", i).p,
                 i % 5 == 0 ? BS_OUT_SUCCESS : BS_OUT_MANUAL);
    advance(w, 31 * DAY_US);
    struct bs_op first = slice_op(w, BS_OP_ARCHIVE, 30, 10);
    assert_int_equal(apply(w, &first), BS_OK);
    assert_int_equal(first.slice.ret_moved, 2);
    assert_true(first.slice.ret_more);
    assert_int_equal(pass(w, BS_OP_ARCHIVE, 30, 10, &slices), 3);
    assert_int_equal(slices, 3);
}

static void what_is_younger_than_the_limit_is_not_even_looked_at(void **state)
{
    struct world *w = *state;

    put_done(w, "r-1", BS_OUT_SUCCESS);
    advance(w, 31 * DAY_US);
    for (int i = 0; i < 20; i++)
        put_done(w, bs_arena_fmt(&w->arena, "young-%d", i).p, BS_OUT_SUCCESS);
    struct bs_op op = slice_op(w, BS_OP_ARCHIVE, 30, 5);
    assert_int_equal(apply(w, &op), BS_OK);
    assert_int_equal(op.slice.ret_moved, 1);
    assert_false(op.slice.ret_more);
}

/* ---- reading ---- */

static uint32_t find_by(struct world *w, const struct bs_task_filter *f, int64_t id)
{
    struct bs_task_page page;
    uint32_t found = 0;

    assert_int_equal(bs_store_tasks(w->store, f, &w->arena, &page, &w->err), BS_OK);
    for (uint32_t i = 0; i < page.n; i++)
        found += page.items[i].id == id;
    return found;
}

static void an_archived_task_is_found_by_every_number_and_its_log_is_whole(void **state)
{
    struct world *w = *state;
    int64_t id = put_finished_with_numbers(w, "7");
    const char *log = log_text(w, id);

    advance(w, 31 * DAY_US);
    assert_int_equal(archive(w), 1);
    const struct bs_task_filter by[] = {
        { .order_no = BS_STR("order-7"), .limit = 10 },
        { .payment_no = BS_STR("pay-7"), .limit = 10 },
        { .channel_trade_no = BS_STR("trade-7"), .limit = 10 },
        { .refund_no = BS_STR("refund-7"), .limit = 10 },
        { .biz_id = BS_STR("7"), .limit = 10 },
        { .request_id = BS_STR("7"), .limit = 10 },
        { .state = BS_SUCCESS, .limit = 10 },
        { .limit = 10 },
    };
    for (size_t i = 0; i < BS_COUNT(by); i++)
        assert_int_equal(find_by(w, &by[i], id), 1);
    const struct bs_task_filter waiting = { .state = BS_WAITING, .limit = 10 };
    assert_int_equal(find_by(w, &waiting, id), 0);
    struct bs_task t = get(w, id);
    assert_int_equal(t.state, BS_SUCCESS);
    assert_str(t.payload, "{\"a\":1}");
    assert_str(t.order_no, "order-7");
    assert_string_equal(log_text(w, id), log);
    assert_string_equal(log, "submit>WAITING claim>PROCESSING succeeded>SUCCESS");
}

static void a_list_goes_on_from_live_tasks_into_history_without_a_gap(void **state)
{
    struct world *w = *state;
    struct bs_task_filter f = { .limit = 3 };
    struct bs_task_page page;
    int64_t ids[12], seen = 0;

    for (int i = 0; i < 12; i++)
        ids[i] = put_done(w, bs_arena_fmt(&w->arena, "r-%d", i).p,
                          i % 3 ? BS_OUT_SUCCESS : BS_OUT_MANUAL);
    advance(w, 31 * DAY_US);
    assert_int_equal(archive(w), 8);
    do {
        assert_int_equal(bs_store_tasks(w->store, &f, &w->arena, &page, &w->err), BS_OK);
        for (uint32_t i = 0; i < page.n; i++)
            assert_int_equal(page.items[i].id, ids[11 - seen++]);
        f.before_id = page.next_before_id;
    } while (f.before_id);
    assert_int_equal(seen, 12);
}

static void archiving_changes_nothing_that_can_be_read(void **state)
{
    struct world *w = *state;

    put_finished_with_numbers(w, "r-1");
    put_done(w, "r-2", BS_OUT_MANUAL);
    put_closed(w, "r-3");
    put_serial(w, "r-4", "o:1");
    advance(w, 31 * DAY_US);
    const char *before = whole_text(w);
    assert_int_equal(archive(w), 2);
    assert_string_equal(whole_text(w), before);
    assert_sound(w);
}

static void what_is_asked_of_an_archived_task_is_refused_like_of_any_finished_one(void **state)
{
    struct world *w = *state;
    int64_t id = put_done(w, "r-1", BS_OUT_SUCCESS);

    advance(w, 31 * DAY_US);
    assert_int_equal(archive(w), 1);
    struct bs_op op = act_op(w, id, BS_ACT_RETRY, "");
    assert_int_equal(apply(w, &op), BS_E_CONFLICT);
    assert_non_null(strstr(op.err.msg, "the task has ended"));
    assert_int_equal(audit_count(w), 0);
}

static void a_late_result_for_an_archived_task_is_recorded_as_stale(void **state)
{
    struct world *w = *state;
    int64_t id = put_one(w, "r-1");
    struct bs_task lost = *claim_one(w);

    advance(w, 61000000);
    assert_int_equal(reap(w), 1);
    assert_int_equal(finish(w, claim_one(w), BS_OUT_SUCCESS, ""), BS_OK);
    advance(w, 31 * DAY_US);
    assert_int_equal(archive(w), 1);
    assert_int_equal(finish(w, &lost, BS_OUT_FAILED, "HTTP_503"), BS_E_STALE);
    assert_int_equal(state_of(w, id), BS_SUCCESS);
    assert_non_null(strstr(log_text(w, id), "stale_result>-"));
}

/* ---- keys ---- */

static enum bs_submitted submit_again(struct world *w, const char *key, const char *effect,
                                      const char *content, int64_t *ret_first)
{
    struct bs_task *t = sample(w, key);

    t->effect_key = bs_str_of(effect);
    struct bs_op op = submit_op(w, t, content);
    assert_int_equal(apply(w, &op), BS_OK);
    *ret_first = op.submit.ret_task_id;
    return op.submit.ret_what;
}

static void check_known(struct world *w, int64_t id)
{
    int64_t first = 0;

    assert_int_equal(submit_again(w, "r-1", "e-1", "content", &first),
                     BS_SUBMITTED_DUPLICATE_REQUEST);
    assert_int_equal(first, id);
    assert_int_equal(submit_again(w, "r-1", "e-1", "other", &first), BS_SUBMITTED_CONFLICT_REQUEST);
    assert_int_equal(first, id);
    const char *another = bs_arena_fmt(&w->arena, "again-%lld", (long long)w->now.us).p;
    assert_int_equal(submit_again(w, another, "e-1", "content", &first),
                     BS_SUBMITTED_DUPLICATE_EFFECT);
    assert_int_equal(first, id);
    assert_int_equal(submit_again(w, "r-9", "e-1", "other", &first), BS_SUBMITTED_CONFLICT_EFFECT);
    assert_int_equal(first, id);
}

static void the_same_request_id_and_effect_key_on_day_31_are_still_known(void **state)
{
    struct world *w = *state;
    struct bs_task *t = sample(w, "r-1");

    t->effect_key = BS_STR("e-1");
    int64_t id = put(w, t);
    assert_int_equal(finish(w, claim_one(w), BS_OUT_SUCCESS, ""), BS_OK);
    advance(w, 31 * DAY_US);
    assert_int_equal(archive(w), 1);
    check_known(w, id);
    assert_non_null(strstr(log_text(w, id), "linked>-"));

    advance(w, 400 * DAY_US);
    assert_int_equal(pass(w, BS_OP_PURGE, 365, 100, NULL), 1);
    check_known(w, id);
}

/* ---- purge ---- */

static void what_is_purged_is_gone_with_payload_and_log_and_the_figures_know(void **state)
{
    struct world *w = *state;
    int64_t old = put_finished_with_numbers(w, "r-1"), live = put_closed(w, "r-2");
    struct bs_stat_row *rows = NULL;
    struct bs_task t;
    uint32_t n = 0;

    advance(w, 31 * DAY_US);
    int64_t young = put_done(w, "r-3", BS_OUT_SUCCESS);
    assert_int_equal(archive(w), 2);
    advance(w, 31 * DAY_US);
    assert_int_equal(archive(w), 1);
    assert_int_equal(pass(w, BS_OP_PURGE, 60, 1, NULL), 2);

    assert_int_equal(bs_store_task(w->store, old, &w->arena, &t, &w->err), BS_E_NOT_FOUND);
    assert_non_null(strstr(w->err.msg, "purged"));
    assert_int_equal(bs_store_task(w->store, live, &w->arena, &t, &w->err), BS_E_NOT_FOUND);
    assert_int_equal(bs_store_task(w->store, INT64_MAX, &w->arena, &t, &w->err), BS_E_NOT_FOUND);
    assert_null(strstr(w->err.msg, "purged"));
    assert_false(has_row(w, BS_SQL_PAYLOAD_GET, old));
    assert_false(has_row(w, BS_SQL_LOG_FIRST, old));
    assert_true(in_history(w, young));
    assert_int_equal(bs_store_stats(w->store, &w->arena, &rows, &n, NULL), BS_OK);
    assert_int_equal(n, 1);
    assert_int_equal(rows[0].state, BS_SUCCESS);
    assert_int_equal(rows[0].count, 1);
    assert_int_equal(rows[0].amount, 6410);
    assert_int_equal(audit_count(w), 1);
}

static void a_rerun_of_archive_or_purge_counts_nothing_twice(void **state)
{
    struct world *w = *state;

    put_done(w, "r-1", BS_OUT_SUCCESS);
    put_done(w, "r-2", BS_OUT_SUCCESS);
    advance(w, 31 * DAY_US);
    for (int kind = BS_OP_ARCHIVE; kind <= BS_OP_PURGE; kind++) {
        struct bs_op op = slice_op(w, (enum bs_op_kind)kind, 30, 10);
        assert_int_equal(apply(w, &op), BS_OK);
        assert_int_equal(op.slice.ret_moved, 2);
        op.rerun = true;
        assert_int_equal(apply(w, &op), BS_OK);
        assert_int_equal(op.slice.ret_moved, 0);
        assert_false(op.slice.ret_more);
        assert_sound(w);
    }
}

/* ---- damage ---- */

static void damage(struct world *w, const char *sql)
{
    assert_int_equal(w->db->ops->script(w->db, sql, &w->err), BS_OK);
}

static void assert_found(struct world *w, const char *what)
{
    BS_CLEANUP(bs_buf_free) struct bs_buf report = { .max = 1 << 16 };

    assert_int_equal(bs_store_check(w->store, &report, &w->err), BS_OK);
    if (!strstr(bs_buf_str(&report).p, what))
        fail_msg("not in the report: %s\n%s", what, bs_buf_str(&report).p);
}

static void damage_in_history_is_found(void **state)
{
    static const struct {
        const char *done, *found, *undone;
    } cases[] = {
        { "UPDATE task_history SET task_status = 'MANUAL'", "is MANUAL in history",
          "UPDATE task_history SET task_status = 'SUCCESS'" },
        { "UPDATE task_history SET amount = amount + 1", "the figures of PAY_CALLBACK SUCCESS CNY",
          "UPDATE task_history SET amount = amount - 1" },
        { "UPDATE task_history SET request_id = 'x'", "has no request_key",
          "UPDATE task_history SET request_id = 'r-1'" },
        { "UPDATE task_history SET id = id + 1", "which is not there",
          "UPDATE task_history SET id = id - 1" },
        { "UPDATE task_history SET effect_key = 'x'", "which does not have it",
          "UPDATE task_history SET effect_key = 'e-1'" },
    };
    struct world *w = *state;
    struct bs_task *t = sample(w, "r-1");

    t->effect_key = BS_STR("e-1");
    put(w, t);
    assert_int_equal(finish(w, claim_one(w), BS_OUT_SUCCESS, ""), BS_OK);
    advance(w, 31 * DAY_US);
    assert_int_equal(archive(w), 1);
    for (size_t i = 0; i < BS_COUNT(cases); i++) {
        damage(w, cases[i].done);
        assert_found(w, cases[i].found);
        damage(w, cases[i].undone);
        assert_sound(w);
    }
}

int run_history_cases(void)
{
    const struct CMUnitTest cases[] = {
        CASE(only_what_is_finished_and_old_moves),
        CASE(a_task_that_is_200_days_old_and_in_manual_is_still_there),
        CASE(an_old_task_that_somebody_closed_yesterday_stays),
        CASE(a_pass_goes_in_slices_over_what_stays_too),
        CASE(what_is_younger_than_the_limit_is_not_even_looked_at),
        CASE(an_archived_task_is_found_by_every_number_and_its_log_is_whole),
        CASE(a_list_goes_on_from_live_tasks_into_history_without_a_gap),
        CASE(archiving_changes_nothing_that_can_be_read),
        CASE(what_is_asked_of_an_archived_task_is_refused_like_of_any_finished_one),
        CASE(a_late_result_for_an_archived_task_is_recorded_as_stale),
        CASE(the_same_request_id_and_effect_key_on_day_31_are_still_known),
        CASE(what_is_purged_is_gone_with_payload_and_log_and_the_figures_know),
        CASE(a_rerun_of_archive_or_purge_counts_nothing_twice),
        CASE(damage_in_history_is_found),
    };

    return cmocka_run_group_tests_name("history", cases, NULL, NULL);
}
