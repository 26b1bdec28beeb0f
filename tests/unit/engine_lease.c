/* Leases: renewal, takeover after a crash, the poison task, results that come too late. */
#include "engine_world.h"

#include <stdio.h>

static const int64_t second = 1000000, minute = 60000000;

static void fences_grow(struct world *w, const char *key)
{
    int64_t last = 0;

    for (uint32_t i = 0; i < w->sights_n; i++) {
        if (strcmp(w->sights[i].key, key) != 0)
            continue;
        assert_true(w->sights[i].fence > last);
        last = w->sights[i].fence;
    }
}

static void a_renewed_lease_outlives_a_long_call(void **state)
{
    BS_CLEANUP(bs_arena_free) struct bs_arena a = { 0 };
    struct world *w = world_new();
    (void)state;

    w->confs[0].renew = true;
    w->confs[0].lease = BS_SEC(10);
    w->confs[0].call_timeout = BS_SEC(30);
    world_says(w, (struct line){ .match = "POST", .status = 204, .after_us = 25 * second });
    world_start(w);
    int64_t id = world_submit(w, "r-1", "");
    world_run(w, 20 * second);
    struct bs_task t = world_task(w, id, &a);
    assert_string_equal(bs_state_name(t.state), "PROCESSING");
    assert_in_range(t.locked_until.us - world_now(w).us, 6 * second, 10 * second);
    world_run(w, minute);
    t = world_task(w, id, &a);
    assert_string_equal(bs_state_name(t.state), "SUCCESS");
    assert_int_equal(t.attempt_no, 1);
    assert_int_equal(t.crash_count, 0);
    assert_int_equal(world_seen(w, "POST", NULL), 1);
    assert_int_equal(w->sights[0].timeout.us, 30 * second);
    world_free(w);
}

static void a_call_that_is_not_renewed_ends_before_its_lease(void **state)
{
    BS_CLEANUP(bs_arena_free) struct bs_arena a = { 0 };
    struct world *w = world_new();
    (void)state;

    w->confs[0].lease = BS_SEC(8);
    w->confs[0].call_timeout = BS_SEC(30);
    world_says(w, (struct line){ .match = "POST", .status = 204, .after_us = 25 * second });
    world_start(w);
    int64_t id = world_submit(w, "r-1", "");
    world_run(w, 20 * second);
    struct bs_task t = world_task(w, id, &a);
    assert_string_equal(bs_state_name(t.state), "RETRY");
    assert_text(t.last_error_code, "TIMEOUT");
    assert_int_equal(t.crash_count, 0);
    assert_int_equal(w->sights[0].timeout.us, 7 * second);
    world_free(w);
}

static void a_crash_in_a_call_is_taken_over_when_the_lease_ends(void **state)
{
    BS_CLEANUP(bs_arena_free) struct bs_arena a = { 0 };
    struct world *w = world_new();
    (void)state;

    world_looks(w);
    w->confs[0].lease = BS_SEC(20);
    world_says(w,
               (struct line){ .match = "GET", .status = 200, .body = "{\"verdict\":\"go_on\"}" });
    world_says(w, (struct line){ .match = "POST", .status = 204, .after_us = 5 * second });
    world_start(w);
    int64_t id = world_submit(w, "r-1", ",\"order_no\":\"A1\"");
    world_run(w, second);
    assert_int_equal(world_seen(w, "POST", NULL), 1);
    world_crash(w);
    world_start(w);
    world_run(w, 18 * second);
    assert_int_equal(w->sights_n, 2);
    world_run(w, 9 * second);
    struct bs_task t = world_task(w, id, &a);
    assert_string_equal(bs_state_name(t.state), "SUCCESS");
    assert_int_equal(t.attempt_no, 2);
    assert_int_equal(w->sights_n, 4);
    assert_string_equal(w->sights[2].method, "GET");
    assert_string_equal(w->sights[3].method, "POST");
    assert_in_range(w->sights[2].from.us, NOW.us + 20 * second, NOW.us + 21 * second + 1000);
    assert_contains(bs_str_of(w->sights[3].body), "\"attempt\":2,\"outcome_unknown\":false");
    fences_grow(w, "r-1");
    world_free(w);
}

static void a_task_that_kills_the_worker_goes_to_a_person_and_the_others_finish(void **state)
{
    BS_CLEANUP(bs_arena_free) struct bs_arena a = { 0 };
    struct world *w = world_new();
    int64_t good[6];
    (void)state;

    w->confs[0].lease = BS_SEC(15);
    world_says(w, (struct line){ .match = "POST", .status = 204, .after_us = 300000 });
    world_start(w);
    int64_t bad = world_submit(w, "poison", "");
    for (int i = 0; i < 6; i++) {
        char key[16];

        (void)snprintf(key, sizeof(key), "good-%d", i);
        good[i] = world_submit(w, key, "");
    }
    for (uint32_t kills = 0, i = 0; i < 2000; i++) {
        world_run(w, 100000);
        if (world_seen(w, "POST", "poison") > kills) {
            kills++;
            world_crash(w);
            world_start(w);
        }
    }
    struct bs_task t = world_task(w, bad, &a);
    assert_string_equal(bs_state_name(t.state), "MANUAL");
    assert_text(t.manual_code, "WORKER_LOST");
    assert_true(t.outcome_unknown);
    assert_int_equal(world_seen(w, "POST", "poison"), 3);
    fences_grow(w, "poison");
    for (int i = 0; i < 6; i++)
        assert_string_equal(bs_state_name(world_task(w, good[i], &a).state), "SUCCESS");
    world_free(w);
}

/* Two crashes with all of them in flight make all of them suspects. */
static void suspects_run_one_at_a_time_and_the_rest_goes_on(void **state)
{
    BS_CLEANUP(bs_arena_free) struct bs_arena a = { 0 };
    struct world *w = world_new();
    int64_t ids[4];
    (void)state;

    w->confs[0].lease = BS_SEC(15);
    world_says(w, (struct line){ .match = "POST", .status = 204, .after_us = 4 * second });
    world_start(w);
    for (int i = 0; i < 4; i++) {
        char key[16];

        (void)snprintf(key, sizeof(key), "s-%d", i);
        ids[i] = world_submit(w, key, "");
    }
    for (int i = 0; i < 2; i++) {
        world_run(w, second);
        world_crash(w);
        world_start(w);
        world_run(w, 15 * second);
    }
    assert_int_equal(world_task(w, ids[3], &a).crash_count, 2);
    for (int i = 0; i < 9; i++) {
        char key[16];

        (void)snprintf(key, sizeof(key), "n-%d", i);
        (void)world_submit(w, key, "");
    }
    world_run(w, 25 * second);
    for (int i = 0; i < 4; i++)
        assert_string_equal(bs_state_name(world_task(w, ids[i], &a).state), "SUCCESS");
    assert_int_equal(w->sights_n, 8 + 4 + 9);
    struct bs_time last = BS_TIME_NONE;
    for (uint32_t i = 8; i < w->sights_n; i++) {
        if (w->sights[i].key[0] != 's')
            continue;
        assert_true(w->sights[i].from.us >= last.us);
        last = w->sights[i].to;
    }
    assert_int_equal(w->fake->running_max, 4);
    world_free(w);
}

/* The one place for suspects goes round: a queue that claims all the time does not keep it. */
static void a_busy_queue_does_not_keep_the_suspects_of_another_waiting(void **state)
{
    BS_CLEANUP(bs_arena_free) struct bs_arena a = { 0 };
    struct world *w = world_new();
    (void)state;

    w->confs[1] = w->confs[0];
    w->confs[1].biz_type = S("REFUND");
    w->confs[1].lease = BS_SEC(15);
    w->queues.n = 2;
    w->commit_us = 40000;
    world_says(w, (struct line){ .match = "busy", .status = 204, .after_us = 1000 });
    world_says(w, (struct line){ .match = "suspect", .after_us = 4 * second, .times = 2 });
    world_says(w, (struct line){ .match = "suspect", .status = 409, .body = "", .times = 1 });
    world_start(w);
    w->biz_type = "REFUND";
    int64_t id = world_submit(w, "suspect", "");
    for (int i = 0; i < 2; i++) {
        world_run(w, second);
        world_crash(w);
        world_start(w);
        world_run(w, 15 * second);
    }
    assert_int_equal(world_task(w, id, &a).crash_count, 2);
    assert_int_equal(world_seen(w, "POST", "suspect"), 3);
    world_run(w, w->sights[w->sights_n - 1].to.us + 59 * second - world_now(w).us);
    w->biz_type = "PAY_CALLBACK";
    for (int i = 0; i < 2000; i++) {
        char key[16];

        (void)snprintf(key, sizeof(key), "busy-%d", i);
        (void)world_submit(w, key, "");
    }
    world_run(w, 4 * second);
    assert_true(world_seen(w, "POST", NULL) < 2000);
    assert_int_equal(world_seen(w, "POST", "suspect"), 4);
    world_free(w);
}

/* Somebody else settles the task while our call runs: ours is refused and changes nothing. */
static void a_result_that_comes_too_late_is_refused(void **state)
{
    BS_CLEANUP(bs_arena_free) struct bs_arena a = { 0 };
    struct world *w = world_new();
    struct bs_engine_figures f;
    (void)state;

    world_says(w,
               (struct line){ .match = "POST", .status = 422, .after_us = 5 * second, .body = "" });
    world_start(w);
    int64_t id = world_submit(w, "r-1", "");
    world_run(w, second);
    struct bs_task t = world_task(w, id, &a);
    struct bs_op op = { .kind = BS_OP_FINISH,
                        .id = bs_ids_next(&w->ids, w->clock.at),
                        .now = w->clock.at };
    op.finish.task = &t;
    op.finish.policy = &w->confs[0].policy;
    op.finish.outcome = (struct bs_outcome){ .kind = BS_OUT_SUCCESS };
    assert_int_equal(world_apply(w, &op), BS_OK);
    world_settle(w, 10 * second);
    bs_engine_figures(w->engine, &f);
    assert_int_equal(f.stale, 1);
    t = world_task(w, id, &a);
    assert_string_equal(bs_state_name(t.state), "SUCCESS");
    world_free(w);
}

/* The same with a lease that is renewed: the renewal notices first, the call still ends. */
static void a_lost_lease_is_noticed_by_its_renewal(void **state)
{
    BS_CLEANUP(bs_arena_free) struct bs_arena a = { 0 };
    struct world *w = world_new();
    struct bs_engine_figures f;
    (void)state;

    w->confs[0].renew = true;
    w->confs[0].lease = BS_SEC(9);
    w->confs[0].call_timeout = BS_SEC(30);
    world_says(w, (struct line){ .match = "POST", .status = 204, .after_us = 20 * second });
    world_start(w);
    int64_t id = world_submit(w, "r-1", "");
    world_run(w, second);
    struct bs_task t = world_task(w, id, &a);
    struct bs_op op = { .kind = BS_OP_FINISH,
                        .id = bs_ids_next(&w->ids, w->clock.at),
                        .now = w->clock.at };
    op.finish.task = &t;
    op.finish.policy = &w->confs[0].policy;
    op.finish.outcome = (struct bs_outcome){ .kind = BS_OUT_MANUAL, .code = S("HTTP_422") };
    assert_int_equal(world_apply(w, &op), BS_OK);
    world_settle(w, 30 * second);
    bs_engine_figures(w->engine, &f);
    assert_int_equal(f.stale, 1);
    assert_false(w->sights[0].cancelled);
    assert_string_equal(bs_state_name(world_task(w, id, &a).state), "MANUAL");
    world_free(w);
}

/* Quick calls make the engine claim ahead; then one hangs and the next in line cannot start. */
static void a_task_that_waited_too_long_is_given_back_unsent(void **state)
{
    BS_CLEANUP(bs_arena_free) struct bs_arena a = { 0 };
    struct world *w = world_new();
    struct bs_engine_figures f;
    int64_t last = 0;
    (void)state;

    w->confs[0].concurrency = 1;
    w->confs[0].lease = BS_US(14 * second);
    w->commit_us = 2000;
    world_says(w, (struct line){ .match = "r-20", .status = 204, .after_us = 9 * second });
    world_says(w, (struct line){ .match = "POST", .status = 204, .after_us = 1000 });
    world_start(w);
    for (int i = 0; i < 25; i++) {
        char key[16];

        (void)snprintf(key, sizeof(key), "r-%d", i);
        last = world_submit(w, key, "");
    }
    world_run(w, 5 * second);
    bs_engine_figures(w->engine, &f);
    assert_int_equal(f.calls, 21);
    assert_true(f.released >= 1);
    world_run(w, minute);
    for (int i = 0; i < 25; i++) {
        char key[16];

        (void)snprintf(key, sizeof(key), "r-%d", i);
        assert_int_equal(world_seen(w, "POST", key), 1);
    }
    struct bs_task t = world_task(w, last, &a);
    assert_string_equal(bs_state_name(t.state), "SUCCESS");
    assert_int_equal(t.retry_count, 0);
    world_free(w);
}

static void a_lease_just_above_its_limit_does_not_go_round_in_circles(void **state)
{
    struct world *w = world_new();
    struct bs_engine_figures f;
    (void)state;

    w->confs[0].lease = BS_US(11 * second + 1);
    w->commit_us = 50000;
    world_says(w, (struct line){ .match = "POST", .status = 204, .after_us = 9 * second });
    world_start(w);
    (void)world_submit(w, "r-1", "");
    world_run(w, minute);
    bs_engine_figures(w->engine, &f);
    assert_int_equal(f.released, 0);
    assert_int_equal(f.settled[BS_OUT_SUCCESS], 1);
    assert_int_equal(w->sights_n, 1);
    world_free(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_renewed_lease_outlives_a_long_call),
        cmocka_unit_test(a_call_that_is_not_renewed_ends_before_its_lease),
        cmocka_unit_test(a_crash_in_a_call_is_taken_over_when_the_lease_ends),
        cmocka_unit_test(a_task_that_kills_the_worker_goes_to_a_person_and_the_others_finish),
        cmocka_unit_test(suspects_run_one_at_a_time_and_the_rest_goes_on),
        cmocka_unit_test(a_busy_queue_does_not_keep_the_suspects_of_another_waiting),
        cmocka_unit_test(a_result_that_comes_too_late_is_refused),
        cmocka_unit_test(a_lost_lease_is_noticed_by_its_renewal),
        cmocka_unit_test(a_task_that_waited_too_long_is_given_back_unsent),
        cmocka_unit_test(a_lease_just_above_its_limit_does_not_go_round_in_circles),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
