/* A store that fails and a process that dies at any moment: nothing is lost, nothing is done twice
 * without need. */
#include "engine_world.h"

#include <stdio.h>

static const int64_t second = 1000000, minute = 60000000;

static void submit_many(struct world *w, int64_t *ids, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        char key[16];

        (void)snprintf(key, sizeof(key), "r-%u", i);
        ids[i] = world_submit(w, key, "");
    }
}

static void all_succeeded(struct world *w, const int64_t *ids, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        BS_CLEANUP(bs_arena_free) struct bs_arena a = { 0 };

        assert_string_equal(bs_state_name(world_task(w, ids[i], &a).state), "SUCCESS");
    }
}

static void fences_grow(struct world *w)
{
    for (uint32_t i = 0; i < w->sights_n; i++)
        for (uint32_t j = 0; j < i; j++)
            if (w->sights[i].key[0] && strcmp(w->sights[i].key, w->sights[j].key) == 0)
                assert_true(w->sights[i].fence > w->sights[j].fence);
}

static void results_outlive_a_store_that_is_away(void **state)
{
    struct world *w = world_new();
    struct bs_engine_figures f;
    int64_t ids[8];
    (void)state;

    world_says(w, (struct line){ .match = "POST", .status = 204, .after_us = 2 * second });
    world_start(w);
    submit_many(w, ids, 8);
    world_run(w, second);
    assert_int_equal(w->fake->running_n, 4);
    bs_faulty_plan(w->db, &(struct bs_fault_plan){ .fail_in = 1, .for_ever = true });
    world_run(w, 20 * second);
    bs_engine_figures(w->engine, &f);
    assert_int_equal(f.settled[BS_OUT_SUCCESS], 0);
    assert_int_equal(f.running, 0);
    assert_false(bs_engine_idle(w->engine));
    bs_faulty_plan(w->db, &(struct bs_fault_plan){ 0 });
    world_run(w, minute);
    bs_engine_figures(w->engine, &f);
    assert_int_equal(f.settled[BS_OUT_SUCCESS], 8);
    assert_int_equal(f.stale, 0);
    assert_int_equal(w->sights_n, 8);
    all_succeeded(w, ids, 8);
    world_free(w);
}

/* Every statement and every commit fails once, before and after it was done. */
static void a_fault_at_any_call_of_the_store_loses_nothing(void **state)
{
    (void)state;

    for (int when = 0; when < 2; when++) {
        for (int64_t n = 1; n < 120; n++) {
            struct world *w = world_new();
            int64_t ids[3];

            w->confs[0].concurrency = 2;
            world_start(w);
            submit_many(w, ids, 3);
            bs_faulty_plan(
                w->db, &(struct bs_fault_plan){ .fail_in = n,
                                                .when = when ? BS_FAULT_AFTER : BS_FAULT_BEFORE });
            world_run(w, 10 * second);
            if (bs_faulty_trips(w->db) == 0)
                n = 1000;
            assert_int_equal(w->sights_n, 3);
            all_succeeded(w, ids, 3);
            world_free(w);
        }
    }
}

static void a_full_lane_of_the_committer_only_delays(void **state)
{
    struct world *w = world_new();
    int64_t ids[40];
    (void)state;

    w->lane_cap = 1;
    w->commit_us = 5000;
    w->confs[0].concurrency = 16;
    world_start(w);
    submit_many(w, ids, 40);
    world_settle(w, minute);
    assert_int_equal(w->sights_n, 40);
    all_succeeded(w, ids, 40);
    world_free(w);
}

static void claims_stop_while_results_cannot_be_stored(void **state)
{
    struct world *w = world_new();
    struct bs_engine_figures f;
    static int64_t ids[400];
    (void)state;

    w->confs[0].concurrency = 32;
    w->commit_us = 3000000; /* a very slow disk */
    world_says(w, (struct line){ .match = "POST", .status = 204, .after_us = 1000 });
    world_start(w);
    submit_many(w, ids, 400);
    for (int i = 0; i < 300; i++) {
        world_run(w, 100000);
        bs_engine_figures(w->engine, &f);
        assert_in_range(f.leased, 0, 4 * 32);
    }
    world_free(w);
}

/* Kills the process after every number of turns; what was accepted ends, and calls of one key carry
 * growing fences. Run under the address sanitizer this is also the test of bs_engine_free. */
static void a_crash_at_any_moment_loses_nothing(void **state)
{
    (void)state;

    for (uint32_t turns = 0; turns < 60; turns++) {
        struct world *w = world_new();
        int64_t ids[5];

        world_looks(w);
        w->confs[0].look_url = S("http://shop.test/orders/{biz_id}");
        w->confs[0].concurrency = 2;
        w->confs[0].lease = BS_SEC(20);
        w->commit_us = 700;
        world_says(w, (struct line){ .match = "GET",
                                     .status = 200,
                                     .body = "{\"verdict\":\"go_on\"}",
                                     .after_us = 300 });
        world_says(w, (struct line){ .match = "POST", .status = 204, .after_us = 900 });
        world_start(w);
        submit_many(w, ids, 5);
        world_turns(w, turns);
        world_crash(w);
        world_start(w);
        world_run(w, 2 * minute);
        assert_true(bs_engine_idle(w->engine));
        all_succeeded(w, ids, 5);
        fences_grow(w);
        assert_in_range(world_seen(w, "POST", NULL), 5, 7);
        world_free(w);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(results_outlive_a_store_that_is_away),
        cmocka_unit_test(a_fault_at_any_call_of_the_store_loses_nothing),
        cmocka_unit_test(a_full_lane_of_the_committer_only_delays),
        cmocka_unit_test(claims_stop_while_results_cannot_be_stored),
        cmocka_unit_test(a_crash_at_any_moment_loses_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
