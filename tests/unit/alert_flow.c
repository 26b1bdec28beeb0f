/* Alerts from the first sign to the receiver: one alert and one recovery for one thing that goes
 * wrong, told at least once, whatever fails in between. */
#include "alert_world.h"

#include "sys/crypto.h"

#include <stdio.h>
#include <stdlib.h>

static const char one_and_one[] = "raised oldest_due PAY\nrecovered oldest_due PAY\n";

/* ---- one thing that goes wrong is one alert ---- */

/* CASE 95: nobody takes the tasks of a queue for ten minutes. */
static void workers_stopped_for_ten_minutes_are_one_alert_and_one_recovery(void **state)
{
    struct world *w = world_new();
    (void)state;

    world_start(w);
    world_submit(w, 3);
    world_run(w, 299);
    assert_int_equal(w->posts_n, 0);
    world_run(w, 301);
    assert_string_equal(world_heard(w), "raised oldest_due PAY\n");
    assert_non_null(strstr(w->posts[0].body, "the oldest due task of PAY has waited 5m"));
    world_work_off(w, 3);
    world_run(w, 120);
    assert_string_equal(world_heard(w), one_and_one);
    assert_int_equal(w->posts_n, 2);
    assert_string_equal(world_rows(w), "oldest_due x1 ended: ops raised sent 1 HTTP_204 ops "
                                       "recovered sent 1 HTTP_204\n");
    world_free(w);
}

static void a_breaker_open_for_ten_minutes_is_one_alert_and_one_recovery(void **state)
{
    struct world *w = world_new();
    (void)state;

    world_start(w);
    world_submit(w, 120);
    w->breaker_open = true;
    world_run(w, 600);
    w->breaker_open = false;
    world_run(w, 30);
    world_work_off(w, 120);
    world_run(w, 600);
    assert_string_equal(world_heard(w), "raised breaker PAY\nrecovered breaker PAY\n");
    assert_non_null(strstr(w->posts[0].body, "HTTP_503 from shop.test"));
    world_free(w);
}

static void a_figure_that_wavers_about_its_limit_is_one_alert(void **state)
{
    struct world *w = world_new();
    (void)state;

    w->conf.alerts.oldest_due = BS_SEC(0);
    world_start(w);
    world_submit(w, 100);
    for (int i = 0; i < 10; i++) {
        world_run(w, 20);
        world_work_off(w, 15);
        world_run(w, 20);
        world_submit(w, 15);
    }
    assert_string_equal(world_heard(w), "raised backlog PAY\n");
    world_work_off(w, 21);
    world_run(w, 30);
    assert_string_equal(world_heard(w), "raised backlog PAY\nrecovered backlog PAY\n");
    world_free(w);
}

static void a_pause_is_told_with_who_and_why(void **state)
{
    struct world *w = world_new();
    struct bs_op op;
    (void)state;

    world_start(w);
    op = world_op(w, BS_OP_QUEUE_PAUSE);
    op.queue_pause =
        (struct bs_op_queue_pause){ S("PAY"), S("upgrade of the shop"), S("li"), true };
    assert_int_equal(world_apply(w, &op), BS_OK);
    world_run(w, 30);
    assert_non_null(strstr(w->posts[0].body, "PAY is paused: li: upgrade of the shop"));
    op = world_op(w, BS_OP_QUEUE_PAUSE);
    op.queue_pause = (struct bs_op_queue_pause){ S("PAY"), S("done"), S("li"), false };
    assert_int_equal(world_apply(w, &op), BS_OK);
    world_run(w, 30);
    assert_string_equal(world_heard(w), "raised pause PAY\nrecovered pause PAY\n");
    world_free(w);
}

static void events_are_one_alert_until_it_is_quiet(void **state)
{
    struct world *w = world_new();
    (void)state;

    world_start(w);
    for (int i = 0; i < 30; i++) {
        world_event(w, "manual");
        world_run(w, 20);
    }
    assert_string_equal(world_heard(w), "raised manual PAY\n");
    world_run(w, 620);
    assert_string_equal(world_heard(w), "raised manual PAY\n");
    assert_string_equal(world_rows(w), "manual x30 ended: ops raised sent 1 HTTP_204\n");
    world_event(w, "manual");
    world_run(w, 20);
    assert_string_equal(world_heard(w), "raised manual PAY\nraised manual PAY\n");
    world_free(w);
}

/* ---- the way to the receiver ---- */

static void alerts_that_begin_together_go_out_in_one_signed_post(void **state)
{
    struct world *w = world_new();
    BS_CLEANUP(bs_buf_free) struct bs_buf signature = { .max = 128 };
    (void)state;

    world_start(w);
    world_event(w, "manual");
    world_run(w, 3);
    world_event(w, "max_retries");
    world_run(w, 30);
    assert_string_equal(world_heard(w), "raised manual PAY\nraised max_retries PAY\n");
    assert_int_equal(w->posts_n, 1);
    const struct post *p = &w->posts[0];
    assert_string_equal(p->url, "POST http://ops.test/");
    assert_non_null(strstr(p->body, "{\"version\":1,\"node\":\"node-1\",\"alerts\":[{\"id\":\""));
    assert_non_null(strstr(p->body, "\"task_no\":\"4711\""));
    bs_webhook_sign(&signature, &w->hooks[0].secret, bs_str_of(p->id),
                    strtoll(p->timestamp, NULL, 10), bs_str_of(p->body));
    assert_string_equal(p->signature, bs_buf_str(&signature).p);
    assert_true(llabs(strtoll(p->timestamp, NULL, 10) - p->at.us / 1000000) <= 1);
    world_free(w);
}

static void a_receiver_that_is_down_is_tried_again_and_told_once_a_phase(void **state)
{
    struct world *w = world_new();
    (void)state;

    w->status = 503;
    world_start(w);
    world_submit(w, 1);
    world_run(w, 310 + 60);
    assert_string_equal(world_heard(w), "");
    assert_non_null(strstr(world_rows(w), "oldest_due x1 open: ops raised pending 4 HTTP_503"));
    assert_string_equal(w->posts[0].id, w->posts[1].id);
    w->status = 0;
    world_run(w, 80);
    assert_non_null(strstr(world_rows(w), "raised pending 5 CONNECT_REFUSED"));
    world_work_off(w, 1);
    w->status = 200;
    world_run(w, 300);
    assert_string_equal(world_heard(w), one_and_one);
    world_free(w);
}

static void what_ended_before_it_was_told_is_told_as_both(void **state)
{
    struct world *w = world_new();
    (void)state;

    w->alerts.group_wait = BS_SEC(60);
    world_start(w);
    w->breaker_open = true;
    world_run(w, 15);
    w->breaker_open = false;
    world_run(w, 120);
    assert_string_equal(world_heard(w), "raised breaker PAY\nrecovered breaker PAY\n");
    assert_int_equal(w->posts_n, 1);
    world_free(w);
}

static void gone_is_given_up_at_once_and_nobody_after_three_days(void **state)
{
    struct world *w = world_new();
    (void)state;

    w->status = 410;
    world_start(w);
    world_event(w, "manual");
    world_run(w, 30);
    assert_string_equal(world_rows(w), "manual x1 open: ops raised given_up 1 HTTP_410\n");
    w->status = 500;
    world_event(w, "max_retries");
    world_run(w, 30);
    w->clock.at = bs_time_add(w->clock.at, BS_SEC(3 * 86400));
    world_run(w, 30);
    assert_non_null(strstr(world_rows(w), "ops raised given_up 4 HTTP_500"));
    uint32_t n = w->posts_n;
    world_run(w, 1200);
    assert_int_equal(w->posts_n, n);
    world_free(w);
}

/* One alert that the receiver cannot read holds up nobody for ever. */
static void a_batch_that_is_not_liked_is_sent_in_smaller_ones(void **state)
{
    struct world *w = world_new();
    (void)state;

    w->status = 413;
    world_start(w);
    world_event(w, "manual");
    world_event(w, "max_retries");
    world_run(w, 8);
    assert_int_equal(w->posts_n, 1);
    w->status = 200;
    world_run(w, 60);
    assert_int_equal(w->posts_n, 3);
    assert_string_equal(world_heard(w), "raised manual PAY\nraised max_retries PAY\n");
    world_free(w);
}

static void a_receiver_that_is_removed_gets_nothing_more(void **state)
{
    struct world *w = world_new();
    struct bs_alert_conf without;
    struct bs_queues queues;
    (void)state;

    w->status = 503;
    world_start(w);
    world_event(w, "manual");
    world_run(w, 30);
    without = w->alerts;
    without.webhooks_n = 0;
    queues = w->queues;
    queues.alerts = &without;
    atomic_store(&w->slot.now, &queues);
    uint32_t n = w->posts_n;
    world_run(w, 60);
    assert_int_equal(w->posts_n, n);
    assert_non_null(strstr(world_rows(w), "ops raised given_up 3 REMOVED"));
    world_free(w);
}

/* ---- what fails in between ---- */

static void a_restart_in_between_loses_nothing(void **state)
{
    struct world *w = world_new();
    (void)state;

    world_start(w);
    world_submit(w, 1);
    world_run(w, 302);
    assert_int_equal(w->posts_n, 0);
    for (int i = 0; i < 3; i++) {
        world_crash(w);
        world_start(w);
        world_run(w, 1);
    }
    world_run(w, 20);
    assert_string_equal(world_heard(w), "raised oldest_due PAY\n");
    world_work_off(w, 1);
    world_crash(w);
    world_start(w);
    world_run(w, 30);
    assert_string_equal(world_heard(w), one_and_one);
    world_free(w);
}

static uint32_t heard(struct world *w, const char *line)
{
    uint32_t n = 0;

    for (const char *p = world_heard(w); (p = strstr(p, line)) != NULL; p++)
        n++;
    return n;
}

/* Every single call to the database fails once, before or after it was done. */
static void whatever_call_of_the_store_fails_both_are_told(void **state)
{
    (void)state;
    for (int64_t k = 1; k < 300; k++) {
        struct world *w = world_new();
        enum bs_fault_when when = k % 2 ? BS_FAULT_BEFORE : BS_FAULT_AFTER;

        world_start(w);
        w->breaker_open = true;
        bs_faulty_plan(w->db, &(struct bs_fault_plan){ .when = when, .fail_in = (k + 1) / 2 });
        world_run(w, 30);
        w->breaker_open = false;
        world_run(w, 60);
        assert_int_equal(bs_faulty_trips(w->db), 1);
        assert_int_equal(heard(w, "raised breaker PAY\n"), 1);
        assert_int_equal(heard(w, "recovered breaker PAY\n"), 1);
        assert_string_equal(world_rows(w), "breaker x1 ended: ops raised sent 1 HTTP_204 ops "
                                           "recovered sent 1 HTTP_204\n");
        world_free(w);
    }
}

/* CASE 95: the alert that cannot be written is told all the same, and written afterwards. */
static void a_store_that_fails_is_told_while_it_fails_and_recorded_after(void **state)
{
    struct world *w = world_new();
    (void)state;

    world_start(w);
    bs_faulty_plan(w->db, &(struct bs_fault_plan){ .fail_in = 1, .for_ever = true });
    world_run(w, 5);
    assert_int_equal(w->posts_n, 0);
    world_run(w, 30);
    assert_string_equal(world_heard(w), "raised store_failing store\n");
    assert_non_null(strstr(w->posts[0].body, "the store has taken no writes for 5s: "));
    assert_string_equal(world_rows(w), "");
    bs_faulty_plan(w->db, &(struct bs_fault_plan){ 0 });
    world_run(w, 30);
    assert_string_equal(world_heard(w),
                        "raised store_failing store\nrecovered store_failing store\n");
    assert_int_equal(w->posts_n, 2);
    assert_string_equal(world_rows(w), "store_failing x1 ended: ops raised sent 1 HTTP_204 ops "
                                       "recovered sent 1 HTTP_204\n");
    const char *first = strstr(w->posts[0].body, "\"id\":\"");
    assert_memory_equal(first, strstr(w->posts[1].body, "\"id\":\""), 20);
    world_free(w);
}

/* It fails again while its own record is being written: still one alert, and it ends. */
static void a_store_that_fails_again_at_once_is_still_one_alert(void **state)
{
    struct world *w = world_new();
    (void)state;

    world_start(w);
    for (int64_t k = 1; k < 30; k++) {
        const struct bs_fault_plan away = { .fail_in = 1, .for_ever = true };

        bs_faulty_plan(w->db, &away);
        world_run(w, 12);
        bs_faulty_plan(w->db, &(struct bs_fault_plan){ .fail_in = k, .when = BS_FAULT_AFTER });
        world_run(w, 60);
        assert_int_equal(heard(w, "raised store_failing store\n"), k);
        assert_int_equal(heard(w, "recovered store_failing store\n"), k);
    }
    world_free(w);
}

static void without_anything_to_watch_nothing_is_done(void **state)
{
    struct world *w = world_new();
    (void)state;

    w->queues.alerts = NULL;
    world_start(w);
    w->breaker_open = true;
    world_event(w, "manual");
    world_run(w, 60);
    assert_int_equal(w->posts_n, 0);
    assert_string_equal(world_rows(w), "manual x1 open:\n");
    world_free(w);
}

/* ---- the sign of life ---- */

static void a_sign_of_life_is_given_only_while_all_is_well(void **state)
{
    struct world *w = world_new();
    (void)state;

    w->alerts.ping_url = S("http://life.test/ping");
    w->ready = false;
    world_start(w);
    world_run(w, 120);
    assert_int_equal(w->posts_n, 0);
    w->ready = true;
    world_run(w, 179);
    assert_int_equal(w->posts_n, 3);
    assert_string_equal(w->posts[0].url, "GET http://life.test/ping");
    w->status = 0;
    world_run(w, 60);
    assert_int_equal(w->posts_n, 4);
    bs_alerts_store_health(w->actor, false, NULL);
    w->alerts.webhooks_n = 0;
    world_run(w, 180);
    assert_int_equal(w->posts_n, 4);
    BS_CLEANUP(bs_buf_free) struct bs_buf text = { .max = 65536 };
    bs_alerts_metrics(w->actor, &text);
    assert_non_null(strstr(bs_buf_str(&text).p, "\nbackstop_ping_ok 0\n"));
    world_free(w);
}

static void metrics_count_what_is_open_and_what_was_told(void **state)
{
    struct world *w = world_new();
    BS_CLEANUP(bs_buf_free) struct bs_buf text = { .max = 65536 };
    (void)state;

    world_start(w);
    w->breaker_open = true;
    world_run(w, 30);
    w->status = 503;
    world_event(w, "manual");
    world_run(w, 12);
    bs_alerts_metrics(w->actor, &text);
    const char *t = bs_buf_str(&text).p;
    assert_non_null(strstr(t, "\nbackstop_alerts_open{kind=\"breaker\"} 1\n"));
    assert_non_null(strstr(t, "\nbackstop_alerts_open{kind=\"manual\"} 1\n"));
    assert_non_null(strstr(t, "\nbackstop_alert_deliveries_total{state=\"sent\"} 1\n"));
    assert_non_null(strstr(t, "\nbackstop_alert_deliveries_total{state=\"failed\"} "));
    assert_non_null(strstr(t, "\nbackstop_alert_deliveries_pending 1\n"));
    assert_null(strstr(t, "backstop_ping_ok"));
    world_free(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(workers_stopped_for_ten_minutes_are_one_alert_and_one_recovery),
        cmocka_unit_test(a_breaker_open_for_ten_minutes_is_one_alert_and_one_recovery),
        cmocka_unit_test(a_figure_that_wavers_about_its_limit_is_one_alert),
        cmocka_unit_test(a_pause_is_told_with_who_and_why),
        cmocka_unit_test(events_are_one_alert_until_it_is_quiet),
        cmocka_unit_test(alerts_that_begin_together_go_out_in_one_signed_post),
        cmocka_unit_test(a_receiver_that_is_down_is_tried_again_and_told_once_a_phase),
        cmocka_unit_test(what_ended_before_it_was_told_is_told_as_both),
        cmocka_unit_test(gone_is_given_up_at_once_and_nobody_after_three_days),
        cmocka_unit_test(a_batch_that_is_not_liked_is_sent_in_smaller_ones),
        cmocka_unit_test(a_receiver_that_is_removed_gets_nothing_more),
        cmocka_unit_test(a_restart_in_between_loses_nothing),
        cmocka_unit_test(whatever_call_of_the_store_fails_both_are_told),
        cmocka_unit_test(a_store_that_fails_is_told_while_it_fails_and_recorded_after),
        cmocka_unit_test(a_store_that_fails_again_at_once_is_still_one_alert),
        cmocka_unit_test(without_anything_to_watch_nothing_is_done),
        cmocka_unit_test(a_sign_of_life_is_given_only_while_all_is_well),
        cmocka_unit_test(metrics_count_what_is_open_and_what_was_told),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
