/* The contract: alerts are grouped, begin and end once, and who is told of them is kept. */
#include "world.h"

#include <stdio.h>

/* ---- small verbs ---- */

static struct bs_op begin_op(struct world *w, const char *kind, const char *subject)
{
    struct bs_op op = op_of(w, BS_OP_ALERT);

    op.alert = (struct bs_op_alert){ .kind = bs_str_of(kind),
                                     .subject = bs_str_of(subject),
                                     .biz_type = QUEUE,
                                     .message = BS_STR("it began"),
                                     .condition = true };
    return op;
}

static struct bs_op end_op(struct world *w, const char *kind, const char *subject)
{
    struct bs_op op = op_of(w, BS_OP_ALERT_CLEAR);

    op.alert_clear = (struct bs_op_alert_clear){ .kind = bs_str_of(kind),
                                                 .subject = bs_str_of(subject),
                                                 .message = BS_STR("it is over"),
                                                 .tell = true };
    return op;
}

static struct bs_alert_row *alerts(struct world *w, enum bs_alert_which which, uint32_t *ret_n)
{
    const struct bs_alert_filter f = { .which = which, .limit = 100 };
    struct bs_alert_row *rows = NULL;

    assert_int_equal(bs_store_alerts(w->store, &f, &w->arena, &rows, ret_n, &w->err), BS_OK);
    return rows;
}

static uint32_t alerts_n(struct world *w, enum bs_alert_which which)
{
    uint32_t n = 0;

    alerts(w, which, &n);
    return n;
}

static int64_t newest(struct world *w)
{
    uint32_t n = 0;
    const struct bs_alert_row *rows = alerts(w, BS_ALERTS_ALL, &n);

    assert_true(n > 0);
    return rows[0].id;
}

static int64_t begin(struct world *w, const char *kind, const char *subject)
{
    struct bs_op op = begin_op(w, kind, subject);

    assert_int_equal(apply(w, &op), BS_OK);
    return newest(w);
}

static void end(struct world *w, const char *kind, const char *subject)
{
    struct bs_op op = end_op(w, kind, subject);

    assert_int_equal(apply(w, &op), BS_OK);
}

static const struct bs_str both[] = { { "ops", 3 }, { "boss", 4 } };

static void plan(struct world *w, int64_t alert_id, uint32_t phases)
{
    struct bs_op op = op_of(w, BS_OP_ALERT_PLAN);

    op.alert_plan =
        (struct bs_op_alert_plan){ alert_id, phases, both, 2, bs_time_add(w->now, BS_SEC(5)) };
    assert_int_equal(apply(w, &op), BS_OK);
    op.rerun = true;
    assert_int_equal(apply(w, &op), BS_OK);
}

static void told(struct world *w, struct bs_delivery d)
{
    struct bs_op op = op_of(w, BS_OP_ALERT_TOLD);

    op.alert_told = (struct bs_op_alert_told){ &d, 1 };
    assert_int_equal(apply(w, &op), BS_OK);
    op.rerun = true;
    assert_int_equal(apply(w, &op), BS_OK);
}

/* "deliverer phase state attempts code" lines. */
static const char *deliveries_text(struct world *w, int64_t alert_id)
{
    BS_CLEANUP(bs_buf_free) struct bs_buf out = { .max = 4096 };
    struct bs_delivery *d = NULL;
    uint32_t n = 0;

    assert_int_equal(bs_store_deliveries(w->store, alert_id, &w->arena, &d, &n, &w->err), BS_OK);
    for (uint32_t i = 0; i < n; i++)
        bs_buf_fmt(&out, "%.*s %s %s %lld %.*s\n", BS_STR_FMT(d[i].deliverer),
                   bs_alert_phase_name(d[i].phase), bs_delivery_state_name(d[i].state),
                   (long long)d[i].attempts, BS_STR_FMT(d[i].code));
    return to_text(w, bs_buf_str(&out));
}

/* "id phase" of what may be told to "ops" now. */
static const char *due_text(struct world *w)
{
    BS_CLEANUP(bs_buf_free) struct bs_buf out = { .max = 4096 };
    struct bs_delivery_due *d = NULL;
    uint32_t n = 0;

    assert_int_equal(
        bs_store_deliveries_due(w->store, both[0], w->now, 50, &w->arena, &d, &n, &w->err), BS_OK);
    for (uint32_t i = 0; i < n; i++)
        bs_buf_fmt(&out, "%.*s %s\n", BS_STR_FMT(d[i].alert.subject),
                   bs_alert_phase_name(d[i].phase));
    return to_text(w, bs_buf_str(&out));
}

/* ---- grouping ---- */

/* CASE 95: a storm is one alert with a count, not one a task. */
static void a_hundred_tasks_that_go_to_a_person_are_one_alert(void **state)
{
    struct world *w = *state;
    char key[16];
    uint32_t n = 0;

    for (int i = 0; i < 100; i++) {
        snprintf(key, sizeof(key), "r-%d", i);
        put_one(w, key);
    }
    int64_t last = 0;
    for (const struct bs_leased *l = claim(w, 100); l; l = l->next) {
        assert_int_equal(finish(w, &l->task, BS_OUT_MANUAL, "HTTP_422"), BS_OK);
        last = l->task.id;
    }
    assert_string_equal(alerts_text(w), "manual PAY_CALLBACK HTTP_422 x100\n");
    const struct bs_alert_row *rows = alerts(w, BS_ALERTS_ALL, &n);
    assert_int_equal(rows[0].task_id, last);
    assert_str(rows[0].biz_type, "PAY_CALLBACK");
}

static void quiet(struct world *w, int64_t unless_after_us)
{
    struct bs_op op = op_of(w, BS_OP_ALERT_CLEAR);

    op.alert_clear = (struct bs_op_alert_clear){ .kind = BS_STR("max_retries"),
                                                 .subject = QUEUE,
                                                 .unless_after = { unless_after_us } };
    assert_int_equal(apply(w, &op), BS_OK);
}

static void event(struct world *w)
{
    struct bs_op op = op_of(w, BS_OP_ALERT);

    op.alert = (struct bs_op_alert){ .kind = BS_STR("max_retries"), .subject = QUEUE };
    assert_int_equal(apply(w, &op), BS_OK);
}

static void an_alert_about_events_ends_silently_and_the_next_event_begins_another(void **state)
{
    struct world *w = *state;
    uint32_t n = 0;

    event(w);
    advance(w, 1000000);
    event(w);
    quiet(w, w->now.us - 1);
    assert_int_equal(alerts_n(w, BS_ALERTS_OPEN), 1);
    advance(w, 1000000);
    quiet(w, w->now.us - 1000000);
    assert_int_equal(alerts_n(w, BS_ALERTS_OPEN), 0);
    event(w);
    const struct bs_alert_row *rows = alerts(w, BS_ALERTS_ALL, &n);
    assert_int_equal(n, 2);
    assert_true(rows[0].open && rows[0].count == 1);
    assert_true(!rows[1].open && rows[1].count == 2);
    assert_int_equal(rows[1].recovered_at.us, rows[0].first_at.us);
    assert_int_equal(rows[1].unplanned, BS_ALERT_RAISED);
}

/* ---- conditions ---- */

static void a_condition_is_not_counted_while_it_lasts(void **state)
{
    struct world *w = *state;
    uint32_t n = 0;

    begin(w, "backlog", "PAY_CALLBACK");
    begin(w, "backlog", "PAY_CALLBACK");
    begin(w, "backlog", "REFUND");
    assert_string_equal(alerts_text(w), "backlog PAY_CALLBACK x1\nbacklog REFUND x1\n");
    advance(w, 7);
    end(w, "backlog", "PAY_CALLBACK");
    const struct bs_alert_row *rows = alerts(w, BS_ALERTS_ENDED, &n);
    assert_int_equal(n, 1);
    assert_int_equal(rows[0].recovered_at.us, w->now.us);
    assert_str(rows[0].recovered_message, "it is over");
    assert_int_equal(rows[0].unplanned, BS_ALERT_PHASES);
}

static void begin_and_end_run_again_change_nothing(void **state)
{
    struct world *w = *state;
    struct bs_op b = begin_op(w, "backlog", "PAY_CALLBACK");
    struct bs_op e = end_op(w, "backlog", "PAY_CALLBACK");
    struct bs_op again = begin_op(w, "backlog", "PAY_CALLBACK");
    struct bs_op *ops[] = { &b, &e, &again };

    apply_all(w, ops, 3);
    const char *first = whole_text(w);
    for (int i = 0; i < 3; i++)
        ops[i]->rerun = true;
    apply_all(w, ops, 3);
    assert_string_equal(whole_text(w), first);
    assert_int_equal(alerts_n(w, BS_ALERTS_OPEN), 1);
    assert_int_equal(alerts_n(w, BS_ALERTS_ENDED), 1);
}

/* ---- who is told ---- */

static void what_is_planned_is_told_once_to_each(void **state)
{
    struct world *w = *state;
    int64_t id = begin(w, "pause", "PAY_CALLBACK");

    assert_int_equal(alerts_n(w, BS_ALERTS_UNPLANNED), 1);
    plan(w, id, BS_ALERT_RAISED);
    assert_int_equal(alerts_n(w, BS_ALERTS_UNPLANNED), 0);
    end(w, "pause", "PAY_CALLBACK");
    assert_int_equal(alerts_n(w, BS_ALERTS_UNPLANNED), 1);
    plan(w, id, BS_ALERT_RECOVERED);
    assert_int_equal(alerts_n(w, BS_ALERTS_UNPLANNED), 0);
    assert_string_equal(due_text(w), "PAY_CALLBACK raised\nPAY_CALLBACK recovered\n");
    told(w, (struct bs_delivery){ id, BS_ALERT_RAISED, both[0], BS_DELIVERY_SENT, 1, w->now,
                                  BS_STR_NONE, BS_STR_NONE, w->now, w->now });
    assert_string_equal(due_text(w), "PAY_CALLBACK recovered\n");
    assert_string_equal(deliveries_text(w, id),
                        "boss raised pending 0 \nboss recovered pending 0 \n"
                        "ops raised sent 1 \nops recovered pending 0 \n");
}

static void a_recovery_waits_for_its_begin_and_ends_with_it(void **state)
{
    struct world *w = *state;
    int64_t id = begin(w, "pause", "PAY_CALLBACK");
    struct bs_delivery d = { id,
                             BS_ALERT_RAISED,
                             both[0],
                             BS_DELIVERY_PENDING,
                             1,
                             bs_time_add(w->now, BS_SEC(10)),
                             BS_STR("HTTP_503"),
                             BS_STR_NONE,
                             w->now,
                             BS_TIME_NONE };

    plan(w, id, BS_ALERT_RAISED);
    told(w, d);
    end(w, "pause", "PAY_CALLBACK");
    plan(w, id, BS_ALERT_RECOVERED);
    assert_string_equal(due_text(w), "");
    advance(w, 10000000);
    assert_string_equal(due_text(w), "PAY_CALLBACK raised\nPAY_CALLBACK recovered\n");
    d.state = BS_DELIVERY_GIVEN_UP;
    d.attempts = 2;
    told(w, d);
    assert_string_equal(due_text(w), "");
    d.state = BS_DELIVERY_SENT;
    told(w, d);
    assert_string_equal(deliveries_text(w, id),
                        "boss raised pending 0 \nboss recovered pending 0 \n"
                        "ops raised given_up 2 HTTP_503\nops recovered given_up 0 HTTP_503\n");
}

static void what_failed_with_the_store_is_recorded_when_it_is_well(void **state)
{
    struct world *w = *state;
    struct bs_op op = op_of(w, BS_OP_ALERT_RECORD);
    const struct bs_delivery raised[] = {
        { .deliverer = both[0],
          .state = BS_DELIVERY_SENT,
          .attempts = 1,
          .created_at = w->now,
          .sent_at = w->now },
        { .deliverer = both[1], .attempts = 3, .created_at = w->now },
    };

    begin(w, "pause", "PAY_CALLBACK");
    op.alert_record = (struct bs_op_alert_record){ .kind = BS_STR("store_failing"),
                                                   .subject = BS_STR("store"),
                                                   .message = BS_STR("no space"),
                                                   .recovered_message = BS_STR("well again"),
                                                   .first_at = w->now,
                                                   .recovered_at = w->now,
                                                   .raised = raised,
                                                   .raised_n = 2 };
    for (int i = 0; i < 2; i++) {
        assert_int_equal(apply(w, &op), BS_OK);
        op.rerun = true;
    }
    assert_string_equal(deliveries_text(w, op.id), "boss raised pending 3 \nops raised sent 1 \n");
    assert_int_equal(alerts_n(w, BS_ALERTS_ENDED), 1);
    struct bs_deliverer_row *rows = NULL;
    uint32_t n = 0;
    assert_int_equal(bs_store_deliverers(w->store, &w->arena, &rows, &n, &w->err), BS_OK);
    assert_int_equal(n, 1);
    assert_str(rows[0].name, "boss");
    assert_int_equal(rows[0].pending, 1);
}

/* ---- figures of people ---- */

static void the_oldest_task_in_manual_is_known_without_a_scan(void **state)
{
    struct world *w = *state;
    struct bs_queue_row *rows = NULL;
    uint32_t n = 0;

    put_one(w, "r-1");
    put_one(w, "r-2");
    for (const struct bs_leased *l = claim(w, 2); l; l = l->next) {
        assert_int_equal(finish(w, &l->task, BS_OUT_MANUAL, "HTTP_422"), BS_OK);
        advance(w, 1000000);
    }
    assert_int_equal(bs_store_queues(w->store, &w->arena, &rows, &n, &w->err), BS_OK);
    assert_int_equal(n, 1);
    assert_int_equal(rows[0].oldest_manual.us, w->now.us - 2000000);
}

int run_alert_cases(void)
{
    const struct CMUnitTest cases[] = {
        CASE(a_hundred_tasks_that_go_to_a_person_are_one_alert),
        CASE(an_alert_about_events_ends_silently_and_the_next_event_begins_another),
        CASE(a_condition_is_not_counted_while_it_lasts),
        CASE(begin_and_end_run_again_change_nothing),
        CASE(what_is_planned_is_told_once_to_each),
        CASE(a_recovery_waits_for_its_begin_and_ends_with_it),
        CASE(what_failed_with_the_store_is_recorded_when_it_is_well),
        CASE(the_oldest_task_in_manual_is_known_without_a_scan),
    };

    return cmocka_run_group_tests_name("alerts", cases, NULL, NULL);
}
