/* The orderly end: what is in flight finishes within the grace, the rest is given back. */
#include "engine_world.h"

#include <stdio.h>

static const int64_t second = 1000000, minute = 60000000;

static void submit_many(struct world *w, int64_t *ids, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        char key[16], more[48];

        (void)snprintf(key, sizeof(key), "r-%u", i);
        (void)snprintf(more, sizeof(more), ",\"order_no\":\"A%u\"", i);
        ids[i] = world_submit(w, key, more);
    }
}

static void with_a_long_grace_twenty_in_flight_all_finish(void **state)
{
    BS_CLEANUP(bs_arena_free) struct bs_arena a = { 0 };
    struct world *w = world_new();
    int64_t ids[30];
    (void)state;

    w->confs[0].concurrency = 20;
    world_says(w, (struct line){ .match = "POST", .status = 204, .after_us = 5 * second });
    world_start(w);
    submit_many(w, ids, 30);
    world_run(w, second);
    assert_int_equal(w->fake->running_n, 20);
    assert_false(bs_engine_idle(w->engine));
    bs_engine_drain(w->engine, bs_time_add(world_now(w), BS_SEC(10)));
    world_settle(w, 10 * second);
    assert_int_equal(world_now(w).us, NOW.us + 5 * second);
    assert_int_equal(world_seen(w, "POST", NULL), 20);
    for (int i = 0; i < 30; i++)
        assert_string_equal(bs_state_name(world_task(w, ids[i], &a).state),
                            i < 20 ? "SUCCESS" : "WAITING");
    world_run(w, minute);
    assert_int_equal(w->sights_n, 20);
    world_free(w);
}

static void with_a_short_grace_the_sent_are_unknown_and_the_unsent_are_not(void **state)
{
    BS_CLEANUP(bs_arena_free) struct bs_arena a = { 0 };
    struct world *w = world_new();
    int64_t ids[20];
    (void)state;

    world_looks(w);
    w->confs[0].concurrency = 20;
    world_says(w,
               (struct line){ .match = "GET", .status = 200, .body = "{\"verdict\":\"go_on\"}" });
    world_says(
        w,
        (struct line){
            .match = "\nr-1", .status = 204, .after_us = 5 * second, .unsent = true, .times = 11 });
    world_says(w, (struct line){ .match = "POST", .status = 204, .after_us = 5 * second });
    world_start(w);
    submit_many(w, ids, 20);
    world_run(w, second);
    assert_int_equal(world_seen(w, "POST", NULL), 20);
    bs_engine_drain(w->engine, bs_time_add(world_now(w), BS_SEC(1)));
    world_settle(w, second);
    for (int i = 0; i < 20; i++) {
        struct bs_task t = world_task(w, ids[i], &a);
        bool unsent = i == 1 || i >= 10;

        assert_string_equal(bs_state_name(t.state), "WAITING");
        assert_int_equal(t.retry_count, 0);
        assert_int_equal(t.attempt_no, 1);
        assert_int_equal(t.crash_count, 0);
        assert_int_equal(t.outcome_unknown, !unsent);
        /* What was sent is not run again before its call's own time limit. */
        if (!unsent)
            assert_int_equal(t.next_execute_at.us, NOW.us + 10 * second);
        else
            assert_true(t.next_execute_at.us <= NOW.us + 2 * second);
    }
    world_crash(w);
    world_start(w);
    world_run(w, 7 * second);
    assert_int_equal(world_seen(w, "POST", NULL), 31);
    world_run(w, minute);
    assert_int_equal(world_seen(w, "POST", NULL), 40);
    assert_int_equal(world_seen(w, "GET", NULL), 40);
    for (int i = 0; i < 20; i++) {
        char key[16];

        (void)snprintf(key, sizeof(key), "r-%d", i);
        assert_int_equal(world_seen(w, "POST", key), 2);
        assert_string_equal(bs_state_name(world_task(w, ids[i], &a).state), "SUCCESS");
    }
    world_free(w);
}

static void a_look_that_ends_in_the_grace_starts_no_call(void **state)
{
    BS_CLEANUP(bs_arena_free) struct bs_arena a = { 0 };
    struct world *w = world_new();
    int64_t id;
    (void)state;

    world_looks(w);
    world_says(w, (struct line){ .match = "GET",
                                 .status = 200,
                                 .after_us = 2 * second,
                                 .body = "{\"verdict\":\"go_on\"}" });
    world_start(w);
    submit_many(w, &id, 1);
    world_run(w, second);
    bs_engine_drain(w->engine, bs_time_add(world_now(w), BS_SEC(10)));
    world_settle(w, 2 * second);
    struct bs_task t = world_task(w, id, &a);
    assert_string_equal(bs_state_name(t.state), "WAITING");
    assert_false(t.outcome_unknown);
    assert_int_equal(world_seen(w, "POST", NULL), 0);
    world_free(w);
}

static void a_look_that_is_cut_is_not_unknown(void **state)
{
    BS_CLEANUP(bs_arena_free) struct bs_arena a = { 0 };
    struct world *w = world_new();
    int64_t id;
    (void)state;

    world_looks(w);
    world_says(w,
               (struct line){ .match = "GET", .status = 200, .after_us = 2 * second, .body = "" });
    world_start(w);
    submit_many(w, &id, 1);
    world_run(w, second);
    bs_engine_drain(w->engine, world_now(w));
    world_settle(w, 0);
    struct bs_task t = world_task(w, id, &a);
    assert_string_equal(bs_state_name(t.state), "WAITING");
    assert_false(t.outcome_unknown);
    assert_true(w->sights[0].cancelled);
    world_free(w);
}

/* Claimed ahead, or brought by a claim that was out when the drain began. */
static void what_only_waited_is_given_back_at_once(void **state)
{
    struct world *w = world_new();
    struct bs_engine_figures f;
    int64_t ids[100];
    (void)state;

    w->commit_us = 2000;
    world_says(w, (struct line){ .match = "POST", .status = 204, .after_us = 1000 });
    world_start(w);
    submit_many(w, ids, 100);
    world_run(w, 20000);
    bs_engine_figures(w->engine, &f);
    assert_true(f.leased > 4);
    bs_engine_drain(w->engine, bs_time_add(world_now(w), BS_SEC(10)));
    world_settle(w, 20000);
    bs_engine_figures(w->engine, &f);
    assert_true(f.released > 0);
    assert_int_equal(f.leased, 0);
    assert_int_equal(f.settled[BS_OUT_SUCCESS] + f.settled[BS_OUT_UNSENT], f.calls + f.released);
    assert_int_equal(f.settled[BS_OUT_SUCCESS], f.calls);
    world_free(w);
}

static void an_idle_engine_is_drained_at_once(void **state)
{
    struct world *w = world_new();
    (void)state;

    world_start(w);
    world_run(w, second);
    bs_engine_drain(w->engine, bs_time_add(world_now(w), BS_SEC(10)));
    assert_true(bs_engine_idle(w->engine));
    world_free(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(with_a_long_grace_twenty_in_flight_all_finish),
        cmocka_unit_test(with_a_short_grace_the_sent_are_unknown_and_the_unsent_are_not),
        cmocka_unit_test(a_look_that_ends_in_the_grace_starts_no_call),
        cmocka_unit_test(a_look_that_is_cut_is_not_unknown),
        cmocka_unit_test(what_only_waited_is_given_back_at_once),
        cmocka_unit_test(an_idle_engine_is_drained_at_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
