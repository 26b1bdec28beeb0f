/* A task's way through the engine: claimed, looked up, called, settled. */
#include "engine_world.h"

#include <stdio.h>

static const int64_t second = 1000000, minute = 60000000, hour = INT64_C(3600000000);

static void state_is(struct world *w, int64_t id, enum bs_state want)
{
    BS_CLEANUP(bs_arena_free) struct bs_arena a = { 0 };
    struct bs_task t = world_task(w, id, &a);

    assert_string_equal(bs_state_name(t.state), bs_state_name(want));
}

/* Every call of one key carries a greater fence than the one before. */
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

static void a_due_task_is_called_once_and_succeeds(void **state)
{
    BS_CLEANUP(bs_arena_free) struct bs_arena a = { 0 };
    struct world *w = world_new();
    (void)state;

    world_start(w);
    int64_t id = world_submit(w, "r-1", "");
    world_settle(w, second);
    world_run(w, hour);
    struct bs_task t = world_task(w, id, &a);
    assert_string_equal(bs_state_name(t.state), "SUCCESS");
    assert_int_equal(t.attempt_no, 1);
    assert_int_equal(t.retry_count, 0);
    assert_int_equal(world_seen(w, NULL, NULL), 1);
    assert_string_equal(w->sights[0].method, "POST");
    assert_string_equal(w->sights[0].url, "http://shop.test/pay");
    assert_string_equal(w->sights[0].key, "r-1");
    assert_string_equal(w->sights[0].attempt, "1");
    assert_int_equal(w->sights[0].fence, t.lease_token);
    assert_int_equal(w->sights[0].timeout.us, 10 * second);
    world_free(w);
}

static void a_task_is_not_called_before_it_is_due(void **state)
{
    struct world *w = world_new();
    (void)state;

    world_start(w);
    int64_t id = world_submit(w, "r-1", ",\"delay\":\"90s\"");
    world_run(w, 89 * second);
    assert_int_equal(world_seen(w, NULL, NULL), 0);
    world_run(w, 2 * second);
    assert_int_equal(world_seen(w, NULL, NULL), 1);
    assert_int_equal(w->sights[0].from.us, NOW.us + 90 * second);
    state_is(w, id, BS_SUCCESS);
    world_free(w);
}

static void the_payload_arrives_byte_for_byte(void **state)
{
    static const char *const payloads[] = {
        "{\"amount\":1.10,\"id\":12345678901234567890123,\"a\":1,\"a\":2}",
        "[1e400,-0.0]",
        "{\"n\":\"\\ud83d\"}",
        "{\"memo\":\"a\\u0000b\"}",
        "{\"t\":\"\xf0\xa0\xae\xb7\xf0\x9f\x8d\x9c\", \"sp\" : [ 1 ,\n 2 ] }",
    };
    struct world *w = world_new();
    (void)state;

    world_start(w);
    for (size_t i = 0; i < BS_COUNT(payloads); i++) {
        char key[16], more[256], want[256];

        (void)snprintf(key, sizeof(key), "r-%zu", i);
        (void)snprintf(more, sizeof(more), ",\"payload\":%s", payloads[i]);
        (void)snprintf(want, sizeof(want), ",\"payload\":%s,\"order\":null}", payloads[i]);
        (void)world_submit(w, key, more);
        world_settle(w, second);
        assert_contains(bs_str_of(w->sights[i].body), want);
    }
    (void)world_submit(w, "raw", ",\"payload_base64\":\"AP88eC8+\"");
    world_settle(w, second);
    assert_contains(bs_str_of(w->sights[w->sights_n - 1].body),
                    ",\"payload_base64\":\"AP88eC8+\",\"order\":null}");
    world_free(w);
}

static void unknown_then_nine_503_is_a_persons_matter_with_outcome_unknown(void **state)
{
    BS_CLEANUP(bs_arena_free) struct bs_arena a = { 0 };
    struct world *w = world_new();
    (void)state;

    world_says(w, (struct line){ .match = "POST", .wire = BS_WIRE_RESET, .times = 1 });
    world_says(w, (struct line){ .match = "POST", .status = 503, .body = "" });
    world_start(w);
    int64_t id = world_submit(w, "r-1", "");
    world_run(w, 7 * hour);
    struct bs_task t = world_task(w, id, &a);
    assert_string_equal(bs_state_name(t.state), "MANUAL");
    assert_text(t.manual_code, "OUTCOME_UNKNOWN");
    assert_text(t.last_error_code, "HTTP_503");
    assert_true(t.outcome_unknown);
    assert_int_equal(t.retry_count, 10);
    assert_int_equal(world_seen(w, "POST", "r-1"), 10);
    fences_grow(w, "r-1");
    assert_contains(bs_str_of(w->sights[1].body), "\"attempt\":2,\"outcome_unknown\":true");
    world_free(w);
}

static void ten_known_failures_end_with_a_person_and_are_not_unknown(void **state)
{
    BS_CLEANUP(bs_arena_free) struct bs_arena a = { 0 };
    struct world *w = world_new();
    (void)state;

    world_says(w,
               (struct line){ .match = "POST", .wire = BS_WIRE_CONNECT_REFUSED, .unsent = true });
    world_start(w);
    int64_t id = world_submit(w, "r-1", "");
    world_run(w, 7 * hour);
    struct bs_task t = world_task(w, id, &a);
    assert_string_equal(bs_state_name(t.state), "MANUAL");
    assert_text(t.last_error_code, "CONNECT_REFUSED");
    assert_false(t.outcome_unknown);
    assert_int_equal(world_seen(w, "POST", "r-1"), 10);
    world_free(w);
}

static void the_default_delays_are_the_seeds(void **state)
{
    static const int64_t minutes[] = { 0, 1, 3, 10, 30, 60, 60, 60, 60, 60 };
    struct world *w = world_new();
    (void)state;

    world_says(w, (struct line){ .match = "POST", .status = 409, .body = "" });
    world_start(w);
    (void)world_submit(w, "r-1", "");
    world_run(w, 7 * hour);
    assert_int_equal(w->sights_n, 10);
    for (uint32_t i = 1; i < 10; i++)
        assert_int_equal(w->sights[i].from.us - w->sights[i - 1].to.us, minutes[i] * minute);
    world_free(w);
}

static void each_status_goes_its_way(void **state)
{
    static const struct {
        int status;
        const char *state;
        int32_t retry_count;
    } rows[] = {
        { 204, "SUCCESS", 0 }, { 422, "MANUAL", 0 }, { 400, "MANUAL", 0 }, { 408, "RETRY", 1 },
        { 409, "RETRY", 1 },   { 429, "RETRY", 1 },  { 404, "RETRY", 0 },  { 302, "RETRY", 0 },
        { 500, "RETRY", 1 },   { 200, "RETRY", 1 },
    };
    struct world *w = world_new();
    (void)state;

    world_start(w);
    for (size_t i = 0; i < BS_COUNT(rows); i++) {
        BS_CLEANUP(bs_arena_free) struct bs_arena a = { 0 };
        char key[16];

        (void)snprintf(key, sizeof(key), "r-%d", rows[i].status);
        w->lines_n = 0;
        world_says(w, (struct line){ .match = key, .status = rows[i].status, .body = "{\"a\":1}" });
        int64_t id = world_submit(w, key, "");
        world_settle(w, second);
        struct bs_task t = world_task(w, id, &a);
        if (strcmp(bs_state_name(t.state), rows[i].state) != 0 ||
            t.retry_count != rows[i].retry_count)
            fail_msg("%d: %s, %d", rows[i].status, bs_state_name(t.state), t.retry_count);
    }
    world_free(w);
}

static void a_handlers_own_wish_decides_the_next_try(void **state)
{
    struct world *w = world_new();
    (void)state;

    world_says(w, (struct line){ .match = "POST",
                                 .status = 200,
                                 .times = 1,
                                 .body = "{\"outcome\":\"retry\",\"retry_after\":\"30s\"}" });
    world_start(w);
    int64_t id = world_submit(w, "r-1", "");
    world_run(w, 10 * minute);
    assert_int_equal(w->sights_n, 2);
    assert_int_equal(w->sights[1].from.us - w->sights[0].to.us, 30 * second);
    state_is(w, id, BS_SUCCESS);
    world_free(w);
}

/* ---- the look before the act */

static const char order[] = ",\"order_no\":\"A 1\"";

static void a_look_that_says_go_on_is_handed_to_the_handler(void **state)
{
    struct world *w = world_new();
    (void)state;

    world_looks(w);
    world_says(w, (struct line){ .match = "GET",
                                 .status = 200,
                                 .body = " {\"verdict\": \"go_on\", \"status\":\"NEW\"}\n" });
    world_start(w);
    int64_t id = world_submit(w, "r-1", order);
    world_settle(w, second);
    state_is(w, id, BS_SUCCESS);
    assert_int_equal(w->sights_n, 2);
    assert_string_equal(w->sights[0].method, "GET");
    assert_string_equal(w->sights[0].url, "http://shop.test/orders/A%201");
    assert_int_equal(w->sights[0].timeout.us, 3 * second);
    assert_string_equal(w->sights[1].method, "POST");
    assert_contains(bs_str_of(w->sights[1].body),
                    ",\"order\":{\"verdict\": \"go_on\", \"status\":\"NEW\"}}");
    world_free(w);
}

static void each_other_verdict_ends_without_a_call(void **state)
{
    static const struct {
        int status;
        const char *body, *state, *code, *manual_code;
    } rows[] = {
        { 200, "{\"verdict\":\"finished\"}", "SUCCESS", "ORDER_ALREADY_FINISHED", "" },
        { 200, "{\"verdict\":\"state_conflict\",\"status\":\"REFUNDED\"}", "MANUAL",
          "ORDER_STATE_CONFLICT", "ORDER_STATE_CONFLICT" },
        { 200, "{\"verdict\":\"go_on\",\"amount\":\"6400\"}", "MANUAL", "AMOUNT_MISMATCH",
          "AMOUNT_MISMATCH" },
        { 200, "{\"verdict\":\"go_on\",\"currency\":\"USD\"}", "MANUAL", "CURRENCY_MISMATCH",
          "CURRENCY_MISMATCH" },
        { 200, "{\"verdict\":\"not_found\"}", "RETRY", "ORDER_NOT_FOUND", "" },
        { 404, "", "RETRY", "CHECK_HTTP_404", "" },
        { 200, "<html>login</html>", "RETRY", "CHECK_BAD_REPLY", "" },
        { 500, "", "RETRY", "CHECK_HTTP_500", "" },
    };
    struct world *w = world_new();
    (void)state;

    world_looks(w);
    world_start(w);
    for (size_t i = 0; i < BS_COUNT(rows); i++) {
        BS_CLEANUP(bs_arena_free) struct bs_arena a = { 0 };
        char key[16], more[128];

        (void)snprintf(key, sizeof(key), "r-%zu", i);
        (void)snprintf(more, sizeof(more),
                       ",\"order_no\":\"O%zu\",\"amount\":\"6410\",\"currency\":\"CNY\"", i);
        w->lines_n = 0;
        world_says(w,
                   (struct line){ .match = "GET", .status = rows[i].status, .body = rows[i].body });
        int64_t id = world_submit(w, key, more);
        world_settle(w, second);
        struct bs_task t = world_task(w, id, &a);
        if (strcmp(bs_state_name(t.state), rows[i].state) != 0)
            fail_msg("%s: %s", rows[i].body, bs_state_name(t.state));
        assert_text(t.last_error_code, rows[i].code);
        assert_text(t.manual_code, rows[i].manual_code);
        assert_int_equal(t.retry_count, 0);
    }
    assert_int_equal(world_seen(w, "POST", NULL), 0);
    world_free(w);
}

static void an_order_that_appears_later_is_finished_without_a_person(void **state)
{
    struct world *w = world_new();
    (void)state;

    world_looks(w);
    world_says(
        w, (struct line){
               .match = "GET", .status = 200, .body = "{\"verdict\":\"not_found\"}", .times = 3 });
    world_says(w,
               (struct line){ .match = "GET", .status = 200, .body = "{\"verdict\":\"go_on\"}" });
    world_start(w);
    int64_t id = world_submit(w, "r-1", ",\"order_no\":\"B2002\"");
    world_run(w, 2 * minute);
    state_is(w, id, BS_SUCCESS);
    assert_int_equal(world_seen(w, "GET", NULL), 4);
    assert_int_equal(world_seen(w, "POST", NULL), 1);
    world_free(w);
}

static void a_look_that_needs_what_the_task_lacks_is_a_persons_matter(void **state)
{
    BS_CLEANUP(bs_arena_free) struct bs_arena a = { 0 };
    struct world *w = world_new();
    (void)state;

    world_looks(w);
    world_start(w);
    int64_t id = world_submit(w, "r-1", "");
    world_settle(w, second);
    struct bs_task t = world_task(w, id, &a);
    assert_string_equal(bs_state_name(t.state), "MANUAL");
    assert_text(t.manual_code, "CHECK_FIELD_MISSING");
    assert_contains(t.last_error_msg, "order_no");
    assert_int_equal(w->sights_n, 0);
    world_free(w);
}

static void an_unknown_result_is_looked_up_and_not_repeated(void **state)
{
    BS_CLEANUP(bs_arena_free) struct bs_arena a = { 0 };
    struct world *w = world_new();
    (void)state;

    world_looks(w);
    world_says(w,
               (struct line){
                   .match = "GET", .status = 200, .body = "{\"verdict\":\"go_on\"}", .times = 1 });
    world_says(
        w, (struct line){ .match = "GET", .status = 200, .body = "{\"verdict\":\"finished\"}" });
    world_says(w, (struct line){ .match = "POST", .wire = BS_WIRE_RESET });
    world_start(w);
    int64_t id = world_submit(w, "r-1", order);
    world_run(w, second);
    assert_true(world_task(w, id, &a).outcome_unknown);
    world_run(w, hour);
    struct bs_task t = world_task(w, id, &a);
    assert_string_equal(bs_state_name(t.state), "SUCCESS");
    assert_false(t.outcome_unknown);
    assert_int_equal(world_seen(w, "POST", NULL), 1);
    assert_int_equal(world_seen(w, "GET", NULL), 2);
    world_free(w);
}

static void a_look_that_says_go_on_clears_the_unknown_mark(void **state)
{
    BS_CLEANUP(bs_arena_free) struct bs_arena a = { 0 };
    struct world *w = world_new();
    (void)state;

    world_looks(w);
    world_says(w,
               (struct line){ .match = "GET", .status = 200, .body = "{\"verdict\":\"go_on\"}" });
    world_says(w, (struct line){ .match = "POST", .wire = BS_WIRE_RESET, .times = 1 });
    world_says(w, (struct line){ .match = "POST", .status = 409, .body = "" });
    world_start(w);
    int64_t id = world_submit(w, "r-1", order);
    world_run(w, second);
    assert_true(world_task(w, id, &a).outcome_unknown);
    world_run(w, 2 * minute);
    struct bs_task t = world_task(w, id, &a);
    assert_false(t.outcome_unknown);
    assert_int_equal(t.retry_count, 2);
    world_free(w);
}

/* ---- room */

static void submit_many(struct world *w, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        char key[16];

        (void)snprintf(key, sizeof(key), "r-%u", i);
        (void)world_submit(w, key, "");
    }
}

static void calls_in_flight_reach_the_concurrency_and_never_exceed_it(void **state)
{
    static const int64_t call_us[] = { 200, 3000, 50000, 2000000 };
    (void)state;

    for (size_t i = 0; i < BS_COUNT(call_us); i++) {
        struct world *w = world_new();
        struct bs_engine_figures f;

        w->commit_us = 1000;
        world_says(w, (struct line){ .match = "POST", .status = 204, .after_us = call_us[i] });
        world_start(w);
        submit_many(w, 60);
        world_settle(w, minute);
        bs_engine_figures(w->engine, &f);
        assert_int_equal(world_seen(w, "POST", NULL), 60);
        assert_int_equal(f.settled[BS_OUT_SUCCESS], 60);
        assert_int_equal(f.running, 0);
        assert_int_equal(f.leased, 0);
        assert_int_equal(w->fake->running_max, 4);
        world_free(w);
    }
}

static void quick_calls_do_not_wait_for_the_next_claim(void **state)
{
    struct world *w = world_new();
    (void)state;

    w->confs[0].concurrency = 8;
    w->commit_us = 2000;
    world_says(w, (struct line){ .match = "POST", .status = 204, .after_us = 2000 });
    world_start(w);
    submit_many(w, 800);
    int64_t from = world_now(w).us;
    world_settle(w, minute);
    int64_t took = world_now(w).us - from;
    assert_int_equal(world_seen(w, "POST", NULL), 800);
    assert_int_equal(w->fake->running_max, 8);
    /* 800 calls of 2 ms, 8 at a time, are 200 ms; claim, call, claim … would be 600. */
    if (took > 300000)
        fail_msg("%lld us", (long long)took);
    world_free(w);
}

static void slow_calls_are_not_claimed_ahead(void **state)
{
    struct world *w = world_new();
    struct bs_engine_figures f;
    (void)state;

    w->commit_us = 1000;
    world_says(w, (struct line){ .match = "POST", .status = 204, .after_us = 500000 });
    world_start(w);
    submit_many(w, 40);
    for (int i = 0; i < 40; i++) {
        world_run(w, 100000);
        bs_engine_figures(w->engine, &f);
        assert_in_range(f.leased, 0, 4 + 4); /* running, and results on their way */
    }
    world_free(w);
}

static void all_queues_together_have_a_limit(void **state)
{
    struct world *w = world_new();
    (void)state;

    w->calls_max = 3;
    world_says(w, (struct line){ .match = "POST", .status = 204, .after_us = 20000 });
    world_start(w);
    submit_many(w, 30);
    world_settle(w, minute);
    assert_int_equal(world_seen(w, "POST", NULL), 30);
    assert_int_equal(w->fake->running_max, 3);
    world_free(w);
}

static void tasks_of_one_order_run_one_after_the_other(void **state)
{
    struct world *w = world_new();
    (void)state;

    world_says(w, (struct line){ .match = "POST", .status = 204, .after_us = 100000 });
    world_start(w);
    for (int i = 0; i < 6; i++) {
        char key[16];

        (void)snprintf(key, sizeof(key), "r-%d", i);
        (void)world_submit(w, key, ",\"order_no\":\"A1\"");
    }
    world_settle(w, minute);
    assert_int_equal(world_seen(w, "POST", NULL), 6);
    assert_int_equal(w->fake->running_max, 1);
    world_free(w);
}

/* ---- pause and reload */

static void a_paused_queue_starts_nothing_until_it_is_resumed(void **state)
{
    struct world *w = world_new();
    (void)state;

    world_says(w, (struct line){ .match = "POST", .status = 204, .after_us = 3000 });
    w->commit_us = 1000;
    world_start(w);
    submit_many(w, 100);
    world_run(w, 20000);
    bs_engine_pause(w->engine, S("PAY_CALLBACK"), true);
    int64_t at = world_now(w).us;
    world_run(w, minute);
    uint32_t seen = w->sights_n;
    assert_in_range(seen, 4, 90);
    for (uint32_t i = 0; i < seen; i++)
        assert_true(w->sights[i].from.us <= at);
    assert_true(bs_engine_idle(w->engine));
    bs_engine_pause(w->engine, S("PAY_CALLBACK"), false);
    world_settle(w, minute);
    assert_int_equal(w->sights_n, 100);
    world_free(w);
}

static void a_reload_brings_a_new_queue_and_takes_one_away(void **state)
{
    struct world *w = world_new();
    static struct bs_queues none = { 0 };
    (void)state;

    world_start(w);
    int64_t id = world_submit(w, "r-1", ",\"delay\":\"10s\"");
    atomic_store(&w->slot.now, &none);
    bs_engine_reload(w->engine);
    world_run(w, minute);
    state_is(w, id, BS_WAITING);
    assert_int_equal(w->sights_n, 0);
    atomic_store(&w->slot.now, &w->queues);
    bs_engine_reload(w->engine);
    world_run(w, second);
    state_is(w, id, BS_SUCCESS);
    world_free(w);
}

static void tasks_of_a_queue_that_nobody_has_go_to_a_person(void **state)
{
    BS_CLEANUP(bs_arena_free) struct bs_arena a = { 0 };
    struct world *w = world_new();
    static struct bs_queues none = { 0 };
    (void)state;

    w->orphans_after = BS_SEC(60);
    world_start(w);
    int64_t id = world_submit(w, "r-1", ",\"delay\":\"1s\"");
    atomic_store(&w->slot.now, &none);
    bs_engine_reload(w->engine);
    world_run(w, 50 * second);
    state_is(w, id, BS_WAITING);
    world_run(w, 2 * minute);
    struct bs_task t = world_task(w, id, &a);
    assert_string_equal(bs_state_name(t.state), "MANUAL");
    assert_text(t.manual_code, "NO_HANDLER");
    world_free(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_due_task_is_called_once_and_succeeds),
        cmocka_unit_test(a_task_is_not_called_before_it_is_due),
        cmocka_unit_test(the_payload_arrives_byte_for_byte),
        cmocka_unit_test(unknown_then_nine_503_is_a_persons_matter_with_outcome_unknown),
        cmocka_unit_test(ten_known_failures_end_with_a_person_and_are_not_unknown),
        cmocka_unit_test(the_default_delays_are_the_seeds),
        cmocka_unit_test(each_status_goes_its_way),
        cmocka_unit_test(a_handlers_own_wish_decides_the_next_try),
        cmocka_unit_test(a_look_that_says_go_on_is_handed_to_the_handler),
        cmocka_unit_test(each_other_verdict_ends_without_a_call),
        cmocka_unit_test(an_order_that_appears_later_is_finished_without_a_person),
        cmocka_unit_test(a_look_that_needs_what_the_task_lacks_is_a_persons_matter),
        cmocka_unit_test(an_unknown_result_is_looked_up_and_not_repeated),
        cmocka_unit_test(a_look_that_says_go_on_clears_the_unknown_mark),
        cmocka_unit_test(calls_in_flight_reach_the_concurrency_and_never_exceed_it),
        cmocka_unit_test(quick_calls_do_not_wait_for_the_next_claim),
        cmocka_unit_test(slow_calls_are_not_claimed_ahead),
        cmocka_unit_test(all_queues_together_have_a_limit),
        cmocka_unit_test(tasks_of_one_order_run_one_after_the_other),
        cmocka_unit_test(a_paused_queue_starts_nothing_until_it_is_resumed),
        cmocka_unit_test(a_reload_brings_a_new_queue_and_takes_one_away),
        cmocka_unit_test(tasks_of_a_queue_that_nobody_has_go_to_a_person),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
