/* The contract: queues, orphans, figures, alerts, tokens. */
#include "world.h"

#include <stdio.h>

/* ---- figures ---- */

static const struct bs_stat_row *stat_of(struct world *w, enum bs_state state, const char *currency)
{
    struct bs_stat_row *rows = NULL;
    uint32_t n = 0;

    assert_int_equal(bs_store_stats(w->store, &w->arena, &rows, &n, NULL), BS_OK);
    for (uint32_t i = 0; i < n; i++) {
        if (rows[i].state == state && bs_str_is(rows[i].currency, currency))
            return &rows[i];
    }
    return NULL;
}

static void the_figures_equal_the_rows(void **state)
{
    struct world *w = *state;
    struct bs_task *without = sample(w, "r-3");

    without->money = (struct bs_money){ 0 };
    put_one(w, "r-1");
    put_one(w, "r-2");
    put(w, without);
    assert_int_equal(stat_of(w, BS_WAITING, "CNY")->count, 2);
    assert_int_equal(stat_of(w, BS_WAITING, "CNY")->amount, 12820);
    assert_int_equal(stat_of(w, BS_WAITING, "")->count, 1);
    assert_int_equal(stat_of(w, BS_WAITING, "")->amount, 0);

    assert_int_equal(finish(w, claim_one(w), BS_OUT_UNKNOWN, "TIMEOUT"), BS_OK);
    const struct bs_stat_row *retry = stat_of(w, BS_RETRY, "CNY");
    assert_int_equal(retry->count, 1);
    assert_int_equal(retry->amount, 6410);
    assert_int_equal(retry->unknown, 1);
    assert_int_equal(stat_of(w, BS_WAITING, "CNY")->count, 1);
    assert_null(stat_of(w, BS_PROCESSING, "CNY"));
}

static void figures_survive_many_groups_in_one_batch(void **state)
{
    struct world *w = *state;
    enum { N = 600 };
    static struct bs_op ops[N], *list[N];

    for (int i = 0; i < N; i++) {
        struct bs_task *t = sample(w, bs_arena_fmt(&w->arena, "r-%d", i).p);
        t->biz_type = bs_arena_fmt(&w->arena, "Q%d", i);
        ops[i] = submit_op(w, t, "c");
        list[i] = &ops[i];
    }
    apply_all(w, list, N);
    struct bs_stat_row *rows = NULL;
    uint32_t n = 0;
    assert_int_equal(bs_store_stats(w->store, &w->arena, &rows, &n, NULL), BS_OK);
    assert_int_equal(n, N);
    const struct bs_hints *h = bs_store_hints(w->store);
    assert_int_equal(h->n, BS_COUNT(h->items));
    assert_true(h->overflowed);
}

static void sums_beyond_64_bits_never_refuse_a_task(void **state)
{
    struct world *w = *state;
    int64_t ids[3];

    for (int i = 0; i < 3; i++) {
        struct bs_task *t = sample(w, (const char *[]){ "a", "b", "c" }[i]);
        t->money.minor = i < 2 ? INT64_MAX : 5;
        ids[i] = put(w, t);
    }
    assert_int_equal(act(w, ids[0], BS_ACT_CLOSE, "other"), BS_OK);
    assert_int_equal(act(w, ids[1], BS_ACT_CLOSE, "other"), BS_OK);
    assert_int_equal(stat_of(w, BS_WAITING, "CNY")->amount, 5);
}

/* ---- queues ---- */

static bs_rc pause_queue(struct world *w, bool paused, struct bs_op *op)
{
    *op = op_of(w, BS_OP_QUEUE_PAUSE);
    op->queue_pause = (struct bs_op_queue_pause){
        .biz_type = QUEUE, .reason = BS_STR("deploy"), .operator= BS_STR("li.na"), .paused = paused
    };
    return apply(w, op);
}

static void a_paused_queue_is_remembered_with_who_and_why(void **state)
{
    struct world *w = *state;
    struct bs_queue_row *rows = NULL;
    uint32_t n = 0;
    struct bs_op op;

    put_one(w, "r-1");
    advance(w, 3);
    assert_int_equal(pause_queue(w, true, &op), BS_OK);
    op.rerun = true;
    assert_int_equal(apply(w, &op), BS_OK);
    world_reopen(w);
    assert_int_equal(bs_store_queues(w->store, &w->arena, &rows, &n, NULL), BS_OK);
    assert_int_equal(n, 1);
    assert_str(rows[0].biz_type, "PAY_CALLBACK");
    assert_true(rows[0].paused);
    assert_str(rows[0].reason, "deploy");
    assert_str(rows[0].operator, "li.na");
    assert_int_equal(rows[0].at.us, START_US + 3);
    assert_int_equal(rows[0].oldest_due.us, START_US);
    assert_int_equal(pause_queue(w, false, &op), BS_OK);
    assert_int_equal(audit_count(w), 2);
    assert_int_equal(bs_store_queues(w->store, &w->arena, &rows, &n, NULL), BS_OK);
    assert_false(rows[0].paused);
}

static const struct bs_queue_row *only_queue(struct world *w)
{
    struct bs_queue_row *rows = NULL;
    uint32_t n = 0;

    assert_int_equal(bs_store_queues(w->store, &w->arena, &rows, &n, NULL), BS_OK);
    assert_int_equal(n, 1);
    return &rows[0];
}

static void resuming_what_nobody_knows_makes_no_queue(void **state)
{
    struct world *w = *state;
    struct bs_queue_row *rows = NULL;
    struct bs_op op = op_of(w, BS_OP_QUEUE_PAUSE);
    uint32_t n = 0;

    op.queue_pause = (struct bs_op_queue_pause){
        .biz_type = QUEUE, .reason = BS_STR("gone"), .operator= BS_STR("li.na"), .known = true
    };
    assert_int_equal(apply(w, &op), BS_E_NOT_FOUND);
    assert_int_equal(bs_store_queues(w->store, &w->arena, &rows, &n, NULL), BS_OK);
    assert_int_equal(n, 0);
    struct bs_op pause;
    assert_int_equal(pause_queue(w, true, &pause), BS_OK);
    op.id = bs_ids_next(&w->ids, w->now);
    assert_int_equal(apply(w, &op), BS_OK);
    assert_int_equal(bs_store_queues(w->store, &w->arena, &rows, &n, NULL), BS_OK);
    assert_int_equal(n, 1);
    assert_false(rows[0].paused);
}

static void a_queue_knows_since_when_the_first_waits_for_a_person(void **state)
{
    struct world *w = *state;
    int64_t a = put_one(w, "r-1"), b = put_one(w, "r-2");

    assert_int_equal(only_queue(w)->oldest_manual.us, 0);
    advance(w, 10);
    assert_int_equal(act(w, b, BS_ACT_HOLD, NULL), BS_OK);
    advance(w, 10);
    assert_int_equal(act(w, a, BS_ACT_HOLD, NULL), BS_OK);
    assert_int_equal(only_queue(w)->oldest_manual.us, START_US + 10);
    assert_int_equal(act(w, b, BS_ACT_UNHOLD, NULL), BS_OK);
    assert_int_equal(only_queue(w)->oldest_manual.us, START_US + 20);
    assert_int_equal(act(w, a, BS_ACT_RESOLVE, "other"), BS_OK);
    assert_int_equal(only_queue(w)->oldest_manual.us, 0);
}

static uint32_t orphans(struct world *w, const struct bs_queues *queues, uint32_t limit, bool *more)
{
    struct bs_op op = op_of(w, BS_OP_ORPHANS);

    op.orphans = (struct bs_op_orphans){ .queues = queues, .after = BS_SEC(300), .limit = limit };
    assert_int_equal(apply(w, &op), BS_OK);
    *more = op.orphans.ret_more;
    return op.orphans.ret_manual;
}

static void tasks_of_a_queue_that_nobody_configures_go_to_a_person_after_a_while(void **state)
{
    struct world *w = *state;
    const struct bs_queues none = { 0 };
    bool more = false;
    int64_t a = put_one(w, "r-1"), b = put_one(w, "r-2"), c = put_serial(w, "r-3", "o:1");
    int64_t d = put_serial(w, "r-4", "o:1");

    assert_int_equal(orphans(w, &none, 2, &more), 0);
    advance(w, 299999999);
    assert_int_equal(orphans(w, &none, 2, &more), 0);
    advance(w, 1);
    assert_int_equal(orphans(w, &none, 2, &more), 2);
    assert_true(more);
    assert_int_equal(orphans(w, &none, 100, &more), 2);
    assert_false(more);
    const int64_t ids[] = { a, b, c, d };
    for (size_t i = 0; i < BS_COUNT(ids); i++) {
        assert_int_equal(state_of(w, ids[i]), BS_MANUAL);
        assert_str(get(w, ids[i]).manual_code, "NO_HANDLER");
    }
    assert_string_equal(log_text(w, a), "submit>WAITING no_handler>MANUAL");
    assert_string_equal(alerts_text(w), "no_handler PAY_CALLBACK x2\n");
}

static void blocked_orphans_are_found_through_those_in_front_of_them(void **state)
{
    struct world *w = *state;
    const struct bs_queues none = { 0 };
    bool more = false;

    for (int i = 0; i < 4; i++)
        put_serial(w, (const char *[]){ "a", "b", "c", "d" }[i], "o:1");
    struct bs_task *t = &claim(w, 10)->task;
    assert_int_equal(finish(w, t, BS_OUT_SUCCESS, ""), BS_OK);
    orphans(w, &none, 100, &more);
    advance(w, 300000000);
    assert_int_equal(orphans(w, &none, 100, &more), 3);
}

static void a_queue_that_is_configured_again_starts_over(void **state)
{
    struct world *w = *state;
    const struct bs_queues none = { 0 };
    const struct bs_queue_conf conf = { .biz_type = QUEUE };
    const struct bs_queues one = { &conf, 1 };
    bool more = false;

    put_one(w, "r-1");
    orphans(w, &none, 10, &more);
    advance(w, 200000000);
    assert_int_equal(orphans(w, &one, 10, &more), 0);
    advance(w, 200000000);
    assert_int_equal(orphans(w, &none, 10, &more), 0);
    advance(w, 299999999);
    assert_int_equal(orphans(w, &none, 10, &more), 0);
    advance(w, 1);
    assert_int_equal(orphans(w, &none, 10, &more), 1);
}

/* ---- alerts ---- */

static void the_same_alert_is_counted_not_repeated(void **state)
{
    struct world *w = *state;
    const struct bs_alert_filter f = { .limit = 10 };
    struct bs_alert_row *rows = NULL;
    uint32_t n = 0;
    struct bs_op op;

    for (int i = 0; i < 3; i++) {
        op = op_of(w, BS_OP_ALERT);
        op.alert = (struct bs_op_alert){ .kind = BS_STR("store"),
                                         .subject = BS_STR("disk"),
                                         .message = BS_STR("full"),
                                         .biz_type = QUEUE,
                                         .task_id = 4 };
        assert_int_equal(apply(w, &op), BS_OK);
        advance(w, 10);
    }
    op.rerun = true;
    assert_int_equal(apply(w, &op), BS_OK);
    assert_int_equal(bs_store_alerts(w->store, &f, &w->arena, &rows, &n, NULL), BS_OK);
    assert_int_equal(n, 1);
    assert_str(rows[0].kind, "store");
    assert_str(rows[0].subject, "disk");
    assert_str(rows[0].message, "full");
    assert_str(rows[0].biz_type, "PAY_CALLBACK");
    assert_int_equal(rows[0].task_id, 4);
    assert_int_equal(rows[0].count, 3);
    assert_int_equal(rows[0].first_at.us, START_US);
    assert_int_equal(rows[0].last_at.us, START_US + 20);
}

/* ---- tokens ---- */

static struct bs_op token_op(struct world *w, const char *name, uint8_t hash)
{
    struct bs_op op = op_of(w, BS_OP_TOKEN_ADD);

    op.token_add = (struct bs_op_token_add){ .name = bs_str_of(name),
                                             .role = BS_STR("operator"),
                                             .queues = BS_STR("A,B"),
                                             .operator= BS_STR("root"),
                                             .reason = BS_STR("for the builds") };
    op.token_add.hash.b[0] = hash;
    return op;
}

static void tokens_are_added_and_revoked_with_a_growing_version(void **state)
{
    struct world *w = *state;
    struct bs_token_row *rows = NULL;
    int64_t before = 0, after = 0, last = 0;
    uint32_t n = 0;

    assert_int_equal(bs_store_tokens_version(w->store, &before, NULL), BS_OK);
    struct bs_op add = token_op(w, "ci", 7);
    assert_int_equal(apply(w, &add), BS_OK);
    add.rerun = true;
    assert_int_equal(apply(w, &add), BS_OK);
    assert_int_equal(bs_store_tokens(w->store, &w->arena, &rows, &n, &after, NULL), BS_OK);
    assert_int_equal(after, before + 1);
    assert_int_equal(n, 1);
    assert_str(rows[0].name, "ci");
    assert_str(rows[0].role, "operator");
    assert_str(rows[0].queues, "A,B");
    assert_int_equal(rows[0].hash.b[0], 7);
    assert_int_equal(rows[0].revoked_at.us, 0);

    struct bs_op same = token_op(w, "ci", 8);
    assert_int_equal(apply(w, &same), BS_E_CONFLICT);
    struct bs_op revoke = op_of(w, BS_OP_TOKEN_REVOKE);
    revoke.token_revoke = (struct bs_op_token_revoke){ BS_STR("ci"), BS_STR("root"), BS_STR("") };
    assert_int_equal(apply(w, &revoke), BS_OK);
    revoke.rerun = true;
    assert_int_equal(apply(w, &revoke), BS_OK);
    struct bs_op twice = op_of(w, BS_OP_TOKEN_REVOKE);
    twice.token_revoke = revoke.token_revoke;
    assert_int_equal(apply(w, &twice), BS_E_NOT_FOUND);
    assert_int_equal(apply(w, &same), BS_OK);
    assert_int_equal(bs_store_tokens(w->store, &w->arena, &rows, &n, &last, NULL), BS_OK);
    assert_int_equal(last, before + 3);
    assert_int_equal(n, 2);
    assert_int_equal(rows[0].revoked_at.us, START_US);
    assert_int_equal(audit_count(w), 3);
}

static void the_audit_says_what_a_token_could_do_and_why(void **state)
{
    struct world *w = *state;
    struct bs_op add = token_op(w, "ci", 7), revoke = op_of(w, BS_OP_TOKEN_REVOKE);
    struct bs_op all = token_op(w, "all", 8);
    struct bs_audit_row *rows = NULL;
    uint32_t n = 0;

    all.token_add.queues = all.token_add.reason = BS_STR("");
    revoke.token_revoke =
        (struct bs_op_token_revoke){ BS_STR("ci"), BS_STR("root"), BS_STR("it was shown around") };
    assert_int_equal(apply(w, &add), BS_OK);
    assert_int_equal(apply(w, &revoke), BS_OK);
    assert_int_equal(apply(w, &all), BS_OK);
    assert_int_equal(bs_store_audit(w->store, 0, 10, &w->arena, &rows, &n, NULL), BS_OK);
    assert_int_equal(n, 3);
    for (uint32_t i = 0; i < n; i++) {
        if (bs_str_is(rows[i].object, "token:all")) {
            assert_int_equal(rows[i].reason.n, 0);
            assert_str(rows[i].after, "{\"role\":\"operator\",\"queues\":[],\"revoked\":false}");
        } else if (bs_str_is(rows[i].action, "token_add")) {
            assert_str(rows[i].reason, "for the builds");
            assert_int_equal(rows[i].before.n, 0);
            assert_str(rows[i].after,
                       "{\"role\":\"operator\",\"queues\":[\"A\",\"B\"],\"revoked\":false}");
        } else {
            assert_str(rows[i].reason, "it was shown around");
            assert_str(rows[i].before,
                       "{\"role\":\"operator\",\"queues\":[\"A\",\"B\"],\"revoked\":false}");
            assert_str(rows[i].after,
                       "{\"role\":\"operator\",\"queues\":[\"A\",\"B\"],\"revoked\":true}");
        }
    }
}

int run_queue_cases(void)
{
    const struct CMUnitTest cases[] = {
        CASE(the_figures_equal_the_rows),
        CASE(figures_survive_many_groups_in_one_batch),
        CASE(sums_beyond_64_bits_never_refuse_a_task),
        CASE(a_paused_queue_is_remembered_with_who_and_why),
        CASE(resuming_what_nobody_knows_makes_no_queue),
        CASE(a_queue_knows_since_when_the_first_waits_for_a_person),
        CASE(tasks_of_a_queue_that_nobody_configures_go_to_a_person_after_a_while),
        CASE(blocked_orphans_are_found_through_those_in_front_of_them),
        CASE(a_queue_that_is_configured_again_starts_over),
        CASE(the_same_alert_is_counted_not_repeated),
        CASE(tokens_are_added_and_revoked_with_a_growing_version),
        CASE(the_audit_says_what_a_token_could_do_and_why),
    };

    return cmocka_run_group_tests_name("queue", cases, NULL, NULL);
}
