/* Alerts while the world changes under them: a reload, receivers that come and go, a clock that was
 * wrong. */
#include "alert_world.h"

#include <stdio.h>
#include <stdlib.h>

struct reload {
    struct bs_alert_conf alerts;
    struct bs_queues queues;
};

/* As a reload does: another snapshot, which begins as a copy of the first. */
static void reload_begin(struct world *w, struct reload *r)
{
    r->alerts = w->alerts;
    r->queues = w->queues;
    r->queues.alerts = &r->alerts;
}

static void reload_end(struct world *w, struct reload *r)
{
    atomic_store(&w->slot.now, &r->queues);
}

/* ---- a reload ---- */

static void a_reload_takes_over_a_shorter_check_at_once(void **state)
{
    struct world *w = world_new();
    struct reload r;
    (void)state;

    w->alerts.check_every = BS_SEC(3600);
    world_start(w);
    world_run(w, 30);
    w->breaker_open = true;
    reload_begin(w, &r);
    r.alerts.check_every = BS_SEC(1);
    reload_end(w, &r);
    world_run(w, 2);
    assert_string_equal(world_rows(w), "breaker x1 open: ops raised pending 0\n");
    w->breaker_open = false;
    world_run(w, 10);
    assert_string_equal(world_heard(w), "raised breaker PAY\nrecovered breaker PAY\n");
    world_free(w);
}

static bool tells_of_ping(struct world *w)
{
    BS_CLEANUP(bs_buf_free) struct bs_buf text = { .max = 65536 };

    bs_alerts_metrics(w->actor, &text);
    return strstr(bs_buf_str(&text).p, "backstop_ping_ok") != NULL;
}

static void a_reload_takes_over_the_ping_at_once(void **state)
{
    struct world *w = world_new();
    struct reload other, often, none;
    (void)state;

    w->alerts.ping_url = S("http://life.test/old");
    w->alerts.ping_every = BS_SEC(3600);
    world_start(w);
    world_run(w, 30);
    assert_int_equal(w->posts_n, 1);
    reload_begin(w, &other);
    other.alerts.ping_url = S("http://life.test/new");
    reload_end(w, &other);
    world_run(w, 30);
    assert_int_equal(w->posts_n, 2);
    assert_string_equal(w->posts[1].url, "GET http://life.test/new");
    reload_begin(w, &often);
    often.alerts.ping_url = S("http://life.test/new");
    often.alerts.ping_every = BS_SEC(10);
    reload_end(w, &often);
    world_run(w, 21);
    assert_int_equal(w->posts_n, 5);
    assert_true(tells_of_ping(w));
    reload_begin(w, &none);
    none.alerts.ping_url = BS_STR_NONE;
    reload_end(w, &none);
    world_run(w, 30);
    assert_int_equal(w->posts_n, 5);
    assert_false(tells_of_ping(w));
    world_free(w);
}

static void the_answer_to_a_ping_of_before_a_reload_says_nothing(void **state)
{
    struct world *w = world_new();
    struct reload r;
    (void)state;

    w->alerts.ping_url = S("http://life.test/ping");
    w->takes_us = 5000000;
    world_start(w);
    world_run(w, 2);
    assert_int_equal(w->posts_n, 1);
    reload_begin(w, &r);
    r.alerts.ping_url = BS_STR_NONE;
    reload_end(w, &r);
    world_run(w, 30);
    assert_false(tells_of_ping(w));
    world_free(w);
}

/* ---- receivers that come and go ---- */

static void who_came_after_the_begin_is_not_told_of_the_recovery(void **state)
{
    struct world *w = world_new();
    struct reload r;
    (void)state;

    world_start(w);
    w->breaker_open = true;
    world_run(w, 30);
    w->hooks[1] = w->hooks[0];
    w->hooks[1].name = S("boss");
    reload_begin(w, &r);
    r.alerts.webhooks_n = 2;
    reload_end(w, &r);
    w->breaker_open = false;
    world_run(w, 30);
    assert_string_equal(world_rows(w), "breaker x1 ended: ops raised sent 1 HTTP_204 ops "
                                       "recovered sent 1 HTTP_204\n");
    world_free(w);
}

static void who_was_away_in_between_is_not_told_of_the_recovery(void **state)
{
    struct world *w = world_new();
    struct reload without, again;
    (void)state;

    w->status = 503;
    world_start(w);
    w->breaker_open = true;
    world_run(w, 30);
    reload_begin(w, &without);
    without.alerts.webhooks_n = 0;
    reload_end(w, &without);
    world_run(w, 30);
    reload_begin(w, &again);
    reload_end(w, &again);
    w->status = 204;
    w->breaker_open = false;
    world_run(w, 30);
    assert_string_equal(world_heard(w), "");
    world_free(w);
}

static void who_is_gone_is_not_told_of_the_recovery(void **state)
{
    struct world *w = world_new();
    (void)state;

    w->status = 410;
    world_start(w);
    w->breaker_open = true;
    world_run(w, 30);
    w->status = 204;
    w->breaker_open = false;
    world_run(w, 30);
    assert_string_equal(world_heard(w), "");
    assert_string_equal(world_rows(w), "breaker x1 ended: ops raised given_up 1 HTTP_410\n");
    world_free(w);
}

/* ---- a clock that was wrong ---- */

enum { DAYS = 4 * 86400 };

/* What happened while the clock was days ahead holds up nothing once it is right. */
static void what_is_from_the_future_swallows_nothing(void **state)
{
    struct world *w = world_new();
    struct bs_time right = w->clock.at;
    (void)state;

    w->clock.at = bs_time_add(right, BS_SEC(DAYS));
    w->status = 503;
    world_start(w);
    world_event(w, "manual");
    world_run(w, 30);
    assert_string_equal(world_rows(w), "manual x1 open: ops raised pending 3 HTTP_503\n");
    world_crash(w);
    w->clock.at = right;
    bs_ids_init(&w->ids, 1);
    w->status = 204;
    world_start(w);
    world_run(w, 30);
    assert_string_equal(world_heard(w), "raised manual PAY\n");
    world_event(w, "manual");
    world_run(w, 30);
    assert_string_equal(world_heard(w), "raised manual PAY\nraised manual PAY\n");
    world_free(w);
}

static void a_condition_from_the_future_ends_too(void **state)
{
    struct world *w = world_new();
    struct bs_time right = w->clock.at;
    (void)state;

    w->clock.at = bs_time_add(right, BS_SEC(DAYS));
    world_start(w);
    w->breaker_open = true;
    world_run(w, 30);
    world_crash(w);
    w->clock.at = right;
    bs_ids_init(&w->ids, 1);
    w->breaker_open = false;
    world_start(w);
    world_run(w, 30);
    assert_string_equal(world_heard(w), "raised breaker PAY\nrecovered breaker PAY\n");
    world_free(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_reload_takes_over_a_shorter_check_at_once),
        cmocka_unit_test(a_reload_takes_over_the_ping_at_once),
        cmocka_unit_test(the_answer_to_a_ping_of_before_a_reload_says_nothing),
        cmocka_unit_test(who_came_after_the_begin_is_not_told_of_the_recovery),
        cmocka_unit_test(who_was_away_in_between_is_not_told_of_the_recovery),
        cmocka_unit_test(who_is_gone_is_not_told_of_the_recovery),
        cmocka_unit_test(what_is_from_the_future_swallows_nothing),
        cmocka_unit_test(a_condition_from_the_future_ends_too),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
