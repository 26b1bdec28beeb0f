/* The contract: the story under faults leaves nothing out, and every read tells of a fault. */
#include "world.h"

#include <stdio.h>
#include <string.h>

/* ---- the reads ---- */

/* What the reads ask about. */
static int64_t task_id, archived_id, alert_id;

static bs_rc read_task(struct world *w)
{
    struct bs_task t;
    bs_rc rc = bs_store_task(w->store, task_id, &w->arena, &t, &w->err);

    return rc == BS_OK ? bs_store_task(w->store, archived_id, &w->arena, &t, &w->err) : rc;
}

/* By every member that has a way of its own to the rows. */
static bs_rc read_tasks(struct world *w)
{
    const struct bs_str key = BS_STR("a");
    const struct bs_task_filter by[] = {
        { .limit = 2 },
        { .limit = 2, .state = BS_MANUAL },
        { .limit = 2, .state = BS_RETRY },
        { .limit = 2, .state = BS_WAITING },
        { .limit = 2, .request_id = key },
        { .limit = 2, .biz_id = key },
        { .limit = 2, .order_no = key },
        { .limit = 2, .payment_no = key },
        { .limit = 2, .channel_trade_no = key },
        { .limit = 2, .refund_no = key },
    };
    struct bs_task_page page;
    bs_rc rc = BS_OK;

    for (size_t i = 0; i < BS_COUNT(by) && rc == BS_OK; i++)
        rc = bs_store_tasks(w->store, &by[i], &w->arena, &page, &w->err);
    return rc;
}

static bs_rc read_log(struct world *w)
{
    struct bs_log_page page = { 0 };
    bs_rc rc = BS_OK;

    do {
        rc = bs_store_log(w->store, task_id, page.next_after, 1, &w->arena, &page, &w->err);
    } while (rc == BS_OK && page.next_after);
    return rc;
}

static bs_rc read_stats(struct world *w)
{
    struct bs_stat_row *rows;
    uint32_t n;

    return bs_store_stats(w->store, &w->arena, &rows, &n, &w->err);
}

static bs_rc read_queues(struct world *w)
{
    struct bs_queue_row *rows;
    uint32_t n;

    return bs_store_queues(w->store, &w->arena, &rows, &n, &w->err);
}

static bs_rc read_time_high(struct world *w)
{
    struct bs_time t;

    return bs_store_time_high(w->store, &t, &w->err);
}

static bs_rc read_alerts(struct world *w)
{
    struct bs_alert_row *rows = NULL;
    uint32_t n;
    bs_rc rc = BS_OK;

    for (int which = BS_ALERTS_ALL; which <= BS_ALERTS_UNPLANNED && rc == BS_OK; which++) {
        const struct bs_alert_filter f = { .which = (enum bs_alert_which)which, .limit = 10 };
        rc = bs_store_alerts(w->store, &f, &w->arena, &rows, &n, &w->err);
    }
    return rc;
}

static bs_rc read_deliveries(struct world *w)
{
    struct bs_delivery *rows;
    uint32_t n;

    return bs_store_deliveries(w->store, alert_id, &w->arena, &rows, &n, &w->err);
}

static bs_rc read_deliveries_due(struct world *w)
{
    struct bs_delivery_due *rows;
    uint32_t n;

    return bs_store_deliveries_due(w->store, BS_STR("ops"), w->now, 10, &w->arena, &rows, &n,
                                   &w->err);
}

static bs_rc read_deliverers(struct world *w)
{
    struct bs_deliverer_row *rows;
    uint32_t n;

    return bs_store_deliverers(w->store, &w->arena, &rows, &n, &w->err);
}

static bs_rc read_tokens(struct world *w)
{
    struct bs_token_row *rows;
    uint32_t n;
    int64_t version;
    bs_rc rc = bs_store_tokens(w->store, &w->arena, &rows, &n, &version, &w->err);

    return rc == BS_OK ? bs_store_tokens_version(w->store, &version, &w->err) : rc;
}

static bs_rc read_audit(struct world *w)
{
    struct bs_audit_row *rows;
    uint32_t n;

    return bs_store_audit(w->store, 0, 10, &w->arena, &rows, &n, &w->err);
}

static bs_rc read_check(struct world *w)
{
    BS_CLEANUP(bs_buf_free) struct bs_buf report = { .max = 1 << 16 };

    return bs_store_check(w->store, &report, &w->err);
}

static bs_rc checkpoint(struct world *w)
{
    int64_t left;

    return bs_store_checkpoint(w->store, &left, &w->err);
}

/* Every function of store.h that reads, and the two that look after the file. */
static const struct {
    const char *name;
    bs_rc (*run)(struct world *w);
} reads[] = {
    { "task", read_task },
    { "tasks", read_tasks },
    { "log", read_log },
    { "stats", read_stats },
    { "queues", read_queues },
    { "time_high", read_time_high },
    { "alerts", read_alerts },
    { "deliveries", read_deliveries },
    { "deliveries_due", read_deliveries_due },
    { "deliverers", read_deliverers },
    { "tokens", read_tokens },
    { "audit", read_audit },
    { "check", read_check },
    { "checkpoint", checkpoint },
};

/* The story, and one more task that has been through several hands. */
static struct world *told(void)
{
    struct world *w = world_new(contract_factory);
    struct bs_alert_row *rows = NULL;
    struct bs_task_page page;
    uint32_t n = 0;

    story(w);
    assert_int_equal(
        bs_store_tasks(w->store, &(struct bs_task_filter){ .limit = 1 }, &w->arena, &page, &w->err),
        BS_OK);
    archived_id = page.items[0].id;
    task_id = put_one(w, "asked");
    assert_int_equal(act(w, task_id, BS_ACT_HOLD, ""), BS_OK);
    assert_int_equal(act(w, task_id, BS_ACT_UNHOLD, ""), BS_OK);
    assert_int_equal(act(w, task_id, BS_ACT_HOLD, ""), BS_OK);
    assert_int_equal(bs_store_alerts(w->store, &(struct bs_alert_filter){ .limit = 1 }, &w->arena,
                                     &rows, &n, &w->err),
                     BS_OK);
    assert_int_equal(n, 1);
    alert_id = rows[0].id;
    return w;
}

/* Each of a read's calls fails once; gives how many there were. */
static int64_t disturb(struct world *w, size_t i, enum bs_fault_when when)
{
    for (int64_t at = 1;; at++) {
        uint64_t before = bs_faulty_trips(w->db);

        bs_faulty_plan(w->db, &(struct bs_fault_plan){ .when = when, .fail_in = at });
        w->err = (struct bs_err){ 0 };
        bs_rc rc = reads[i].run(w);
        bool tripped = bs_faulty_trips(w->db) > before;
        bs_faulty_plan(w->db, &(struct bs_fault_plan){ 0 });
        if (!tripped)
            return rc == BS_OK ? at - 1 : -1;
        if (rc != BS_E_UNAVAILABLE || !strstr(w->err.msg, "fault:"))
            fail_msg("%s, call %lld: %s \"%s\"", reads[i].name, (long long)at, bs_rc_name(rc),
                     w->err.msg);
    }
}

static void every_read_tells_of_a_fault_and_is_right_afterwards(void **state)
{
    struct world *w = told();
    const char *wanted = whole_text(w);

    (void)state;
    for (size_t i = 0; i < BS_COUNT(reads); i++) {
        for (int when = BS_FAULT_BEFORE; when <= BS_FAULT_AFTER; when++) {
            int64_t calls = disturb(w, i, (enum bs_fault_when)when);
            if (calls <= 0)
                fail_msg("%s: %lld calls: %s", reads[i].name, (long long)calls, w->err.msg);
        }
        assert_string_equal(whole_text(w), wanted);
    }
    world_end(w);
}

/* ---- nothing is left out ---- */

/* Statements that neither the story nor a read above runs, and why. */
static const struct {
    enum bs_sql sql;
    const char *why;
} left_out[] = {
    { BS_SQL_CHECKPOINT_RESTART, "only with a WAL of 128 MiB" },
    { BS_SQL_QUICK_CHECK, "fault.c opens a store that is there already" },
    { BS_SQL_STORE_BYTES, "likewise" },
};

static bool is_left_out(enum bs_sql sql)
{
    for (size_t i = 0; i < BS_COUNT(left_out); i++) {
        if (left_out[i].sql == sql)
            return true;
    }
    return false;
}

static void the_story_and_the_reads_run_every_statement(void **state)
{
    struct world *w = told();
    int wrong = 0;

    (void)state;
    for (size_t i = 0; i < BS_COUNT(reads); i++)
        assert_int_equal(reads[i].run(w), BS_OK);
    for (int i = 0; i < BS_SQL_COUNT; i++) {
        bool ran = bs_faulty_runs(w->db, (enum bs_sql)i) > 0;

        if (ran != is_left_out((enum bs_sql)i))
            continue;
        print_error("%s %s\n", bs_sql_names[i], ran ? "is left out, but runs" : "is never run");
        wrong++;
    }
    world_end(w);
    assert_int_equal(wrong, 0);
}

#define NAME(name) #name,

static void the_story_has_every_operation_and_every_action(void **state)
{
    static const char *const names[] = { BS_OP_LIST(NAME) };

    (void)state;
    world_end(told());
    for (size_t i = 0; i < BS_COUNT(names); i++) {
        if (!story_reached_op((enum bs_op_kind)i))
            fail_msg("the story has no %s", names[i]);
    }
    for (int i = 0; i < BS_ACTION_COUNT; i++) {
        if (!story_reached_act((enum bs_action)i))
            fail_msg("nobody says %s in the story", bs_action_name((enum bs_action)i));
    }
}

int run_reach_cases(void)
{
    const struct CMUnitTest cases[] = {
        cmocka_unit_test(every_read_tells_of_a_fault_and_is_right_afterwards),
        cmocka_unit_test(the_story_and_the_reads_run_every_statement),
        cmocka_unit_test(the_story_has_every_operation_and_every_action),
    };

    return cmocka_run_group_tests_name("reach", cases, NULL, NULL);
}
