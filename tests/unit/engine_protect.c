/* Queue protection: an outage downstream is not amplified, a flood hurts nobody else. */
#include "engine_world.h"

#include <stdio.h>
#include <stdlib.h>

static const int64_t second = 1000000, minute = 60000000;

static void submit_to(struct world *w, const char *biz_type, uint32_t from, uint32_t n,
                      const char *more)
{
    w->biz_type = biz_type;
    for (uint32_t i = from; i < from + n; i++) {
        char key[48];

        (void)snprintf(key, sizeof(key), "%s-%u", biz_type, i);
        (void)world_submit(w, key, more);
    }
}

/* How many tasks of a queue stand in a state, by the figures. */
static int64_t count_of(struct world *w, const char *biz_type, enum bs_state state)
{
    BS_CLEANUP(bs_arena_free) struct bs_arena a = { 0 };
    struct bs_store_options o = { .url = w->url, .mode = BS_STORE_READER };
    struct bs_store *s = NULL;
    struct bs_stat_row *rows = NULL;
    uint32_t n = 0;
    int64_t sum = 0;

    assert_int_equal(bs_store_open(&o, &s, NULL), BS_OK);
    assert_int_equal(bs_store_stats(s, &a, &rows, &n, NULL), BS_OK);
    for (uint32_t i = 0; i < n; i++)
        if (bs_str_is(rows[i].biz_type, biz_type) && rows[i].state == state)
            sum += rows[i].count;
    bs_store_close(s);
    return sum;
}

struct alerts {
    uint32_t n, open;
    char message[512];
};

static struct alerts alerts_of(struct world *w, const char *kind)
{
    BS_CLEANUP(bs_arena_free) struct bs_arena a = { 0 };
    struct bs_store_options o = { .url = w->url, .mode = BS_STORE_READER };
    struct bs_alert_filter filter = { .limit = 200 };
    struct bs_store *s = NULL;
    struct bs_alert_row *rows = NULL;
    struct alerts ret = { 0 };
    uint32_t n = 0;

    assert_int_equal(bs_store_open(&o, &s, NULL), BS_OK);
    assert_int_equal(bs_store_alerts(s, &filter, &a, &rows, &n, NULL), BS_OK);
    for (uint32_t i = 0; i < n; i++) {
        if (kind && !bs_str_is(rows[i].kind, kind))
            continue;
        ret.n++;
        ret.open += rows[i].open;
        (void)snprintf(ret.message, sizeof(ret.message), "%.*s", BS_STR_FMT(rows[i].message));
    }
    bs_store_close(s);
    return ret;
}

static uint32_t seen_at(struct world *w, const char *part)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < w->sights_n; i++)
        n += strstr(w->sights[i].url, part) != NULL;
    return n;
}

/* All tasks of the shop's calls so far still have their whole budget. */
static void nobody_spent_budget(struct world *w, int64_t first, uint32_t n)
{
    BS_CLEANUP(bs_arena_free) struct bs_arena a = { 0 };

    for (uint32_t i = 0; i < n; i++)
        assert_int_equal(world_task(w, first + i, &a).retry_count, 0);
}

/* CASE 21 */
static void a_missing_handler_costs_few_calls_no_budget_one_alert_and_one_recovery(void **state)
{
    struct world *w = world_new();
    int64_t ids[500];
    (void)state;

    world_says(w, (struct line){ .match = "POST", .status = 404, .after_us = 20000 });
    world_start(w);
    for (int i = 0; i < 500; i++) {
        char key[16];

        (void)snprintf(key, sizeof(key), "r-%d", i);
        ids[i] = world_submit(w, key, "");
    }
    world_run(w, 4 * second);
    assert_true(w->sights_n <= 4 + 3);
    world_run(w, 10 * minute);
    assert_true(w->sights_n <= 4 + 3 + 15); /* a probe after 5, 10, 20, 40 s, then every minute */
    assert_true(w->sights_n >= 4 + 10);
    assert_int_equal(count_of(w, "PAY_CALLBACK", BS_SUCCESS), 0);
    assert_int_equal(
        count_of(w, "PAY_CALLBACK", BS_WAITING) + count_of(w, "PAY_CALLBACK", BS_RETRY), 500);
    for (int i = 0; i < 500; i++)
        nobody_spent_budget(w, ids[i], 1);
    assert_int_equal(alerts_of(w, NULL).n, 1);
    assert_int_equal(alerts_of(w, "breaker").open, 1);
    assert_contains(bs_str_of(alerts_of(w, "breaker").message),
                    "handler: 3 endpoint faults in a row, the last HTTP_404");

    w->lines_n = 0; /* mended */
    world_run(w, 2 * minute);
    assert_int_equal(count_of(w, "PAY_CALLBACK", BS_SUCCESS), 500);
    for (int i = 0; i < 500; i++)
        nobody_spent_budget(w, ids[i], 1);
    assert_int_equal(alerts_of(w, NULL).n, 1);
    assert_int_equal(alerts_of(w, "breaker").open, 0);
    world_free(w);
}

static void a_host_that_refuses_ten_times_is_left_alone_and_the_rest_keeps_its_budget(void **state)
{
    BS_CLEANUP(bs_arena_free) struct bs_arena a = { 0 };
    struct world *w = world_new();
    int64_t ids[40];
    int64_t spent = 0;
    (void)state;

    world_says(w, (struct line){ .match = "POST",
                                 .wire = BS_WIRE_CONNECT_REFUSED,
                                 .unsent = true,
                                 .after_us = 1000 });
    world_start(w);
    for (int i = 0; i < 40; i++) {
        char key[16];

        (void)snprintf(key, sizeof(key), "r-%d", i);
        ids[i] = world_submit(w, key, "");
    }
    world_run(w, 5 * minute);
    for (int i = 0; i < 40; i++)
        spent += world_task(w, ids[i], &a).retry_count;
    assert_int_equal(spent, 10); /* those that tripped it */
    assert_true(w->sights_n <= 10 + 3 + 9);
    assert_int_equal(alerts_of(w, "breaker").open, 1);
    w->lines_n = 0;
    world_run(w, 5 * minute);
    assert_int_equal(count_of(w, "PAY_CALLBACK", BS_SUCCESS), 40);
    world_free(w);
}

static void waiting_behind_a_breaker_makes_nobody_older_not_even_the_one_who_tries(void **state)
{
    struct world *w = world_new();
    (void)state;

    w->confs[0].policy.max_age = BS_SEC(3);
    world_says(w, (struct line){ .match = "POST", .status = 404, .after_us = 20000 });
    world_start(w);
    submit_to(w, "PAY_CALLBACK", 0, 3, "");
    world_run(w, second);
    w->lines_n = 0;
    world_says(w, (struct line){ .match = "POST", .status = 500, .after_us = 20000 });
    world_run(w, 5500000); /* 5 s behind the breaker, less than 3 s that count */
    assert_true(w->sights_n > 3);
    assert_int_equal(count_of(w, "PAY_CALLBACK", BS_MANUAL), 0);
    world_run(w, minute); /* then the last call at the end of its age */
    assert_int_equal(count_of(w, "PAY_CALLBACK", BS_MANUAL), 3);
    world_free(w);
}

/* What the committer does not take is told again, and nobody spins until then. */
static void the_alert_of_a_breaker_gets_through_a_full_committer(void **state)
{
    struct world *w = world_new();
    (void)state;

    w->lane_cap = 1;
    world_adds(w, "REFUND", "depot.test");
    world_says(w, (struct line){ .match = "POST", .status = 404, .after_us = 20000 });
    world_start(w);
    submit_to(w, "PAY_CALLBACK", 0, 20, "");
    submit_to(w, "REFUND", 0, 20, "");
    world_run(w, 10 * second);
    assert_int_equal(alerts_of(w, "breaker").open, 2);
    w->lines_n = 0;
    world_run(w, 2 * minute);
    assert_int_equal(alerts_of(w, "breaker").n, 2);
    assert_int_equal(alerts_of(w, "breaker").open, 0);
    world_free(w);
}

static void calls_that_hang_or_fail_do_not_trip_the_breaker(void **state)
{
    static const struct line lines[] = {
        { .match = "POST", .status = 500, .body = "" },
        { .match = "POST", .status = 503, .body = "" },
        { .match = "POST", .status = 422, .body = "" },
        { .match = "POST", .status = 409, .body = "" },
        { .match = "POST", .wire = BS_WIRE_RESET },
        { .match = "POST", .wire = BS_WIRE_TIMEOUT, .after_us = 10000000 },
    };
    (void)state;

    for (size_t i = 0; i < BS_COUNT(lines); i++) {
        struct world *w = world_new();

        world_says(w, lines[i]);
        world_start(w);
        submit_to(w, "PAY_CALLBACK", 0, 30, "");
        world_run(w, 2 * minute);
        assert_true(world_seen(w, "POST", NULL) >= 30);
        assert_int_equal(alerts_of(w, "breaker").n, 0);
        world_free(w);
    }
}

static void the_look_up_has_a_breaker_of_its_own_and_nobody_is_called_blindly(void **state)
{
    struct world *w = world_new();
    (void)state;

    world_looks(w);
    w->confs[0].look_url = S("http://orders.test/orders/{order_no}");
    w->confs[0].look_host = S("orders.test:80");
    world_says(w, (struct line){ .match = "GET", .status = 404, .body = "" });
    world_start(w);
    submit_to(w, "PAY_CALLBACK", 0, 1, ",\"order_no\":\"A1\"");
    submit_to(w, "PAY_CALLBACK", 1, 1, ",\"order_no\":\"A2\"");
    submit_to(w, "PAY_CALLBACK", 2, 1, ",\"order_no\":\"A3\"");
    submit_to(w, "PAY_CALLBACK", 3, 1, ",\"order_no\":\"A4\"");
    world_run(w, 4 * second);
    assert_int_equal(world_seen(w, "GET", NULL), 4);
    world_run(w, minute);
    assert_true(world_seen(w, "GET", NULL) <= 4 + 5);
    assert_int_equal(world_seen(w, "POST", NULL), 0);
    assert_contains(bs_str_of(alerts_of(w, "breaker").message),
                    "order_check: 3 endpoint faults in a row, the last CHECK_HTTP_404");
    w->lines_n = 0;
    world_says(w,
               (struct line){ .match = "GET", .status = 200, .body = "{\"verdict\":\"go_on\"}" });
    world_run(w, 2 * minute);
    assert_int_equal(count_of(w, "PAY_CALLBACK", BS_SUCCESS), 4);
    assert_int_equal(alerts_of(w, "breaker").open, 0);
    world_free(w);
}

static void another_address_in_the_configuration_is_another_endpoint(void **state)
{
    static struct bs_queue_conf conf;
    static struct bs_queues moved;
    struct world *w = world_new();
    (void)state;

    world_says(w, (struct line){ .match = "shop.test", .status = 404, .after_us = 1000 });
    world_start(w);
    submit_to(w, "PAY_CALLBACK", 0, 8, "");
    world_run(w, 3 * minute);
    assert_int_equal(alerts_of(w, "breaker").open, 1);
    conf = w->confs[0];
    conf.handler_url = S("http://new.test/pay");
    conf.handler_host = S("new.test:80");
    moved = (struct bs_queues){ &conf, 1 };
    atomic_store(&w->slot.now, &moved);
    bs_engine_reload(w->engine);
    world_run(w, 3 * second);
    assert_true(seen_at(w, "new.test") > 0);
    world_run(w, minute + 20 * second);
    assert_int_equal(count_of(w, "PAY_CALLBACK", BS_SUCCESS), 8);
    assert_int_equal(alerts_of(w, "breaker").open, 0);
    world_free(w);
}

static void after_503_with_retry_after_300_nobody_calls_that_host_for_300_s(void **state)
{
    struct world *w = world_new();
    (void)state;

    world_adds(w, "REFUND", "shop.test"); /* the same host */
    world_adds(w, "SHIP", "depot.test");
    world_says(w,
               (struct line){
                   .match = "/pay", .status = 503, .body = "", .retry_after_s = 300, .times = 1 });
    world_start(w);
    submit_to(w, "PAY_CALLBACK", 0, 1, "");
    world_run(w, second);
    assert_int_equal(seen_at(w, "shop.test"), 1);
    struct bs_time asked = w->sights[0].to;
    for (uint32_t i = 1; i < 10; i++) {
        submit_to(w, "PAY_CALLBACK", i, 1, "");
        submit_to(w, "REFUND", i, 1, "");
        submit_to(w, "SHIP", i, 1, "");
        world_run(w, 30 * second);
    }
    assert_int_equal(seen_at(w, "shop.test"), 1);
    assert_int_equal(count_of(w, "SHIP", BS_SUCCESS), 9);
    world_run(w, 2 * minute);
    assert_int_equal(seen_at(w, "shop.test"), 1 + 10 + 9);
    for (uint32_t i = 1; i < w->sights_n; i++)
        if (strstr(w->sights[i].url, "shop.test"))
            assert_true(bs_time_diff(w->sights[i].from, asked).us >= 300 * second);
    assert_int_equal(count_of(w, "PAY_CALLBACK", BS_SUCCESS), 10);
    world_free(w);
}

static void a_hosts_limit_holds_over_all_its_queues_and_its_places_go_round(void **state)
{
    static const struct bs_host_conf hosts[] = { { { "shop.test:80", 12 }, 3 } };
    struct world *w = world_new();
    (void)state;

    world_adds(w, "REFUND", "shop.test");
    w->queues.hosts = hosts;
    w->queues.hosts_n = 1;
    world_says(w, (struct line){ .match = "POST", .status = 204, .after_us = 200000 });
    world_start(w);
    submit_to(w, "PAY_CALLBACK", 0, 60, "");
    submit_to(w, "REFUND", 0, 60, "");
    world_run(w, 4 * second);
    assert_int_equal(w->fake->running_max, 3);
    int64_t pays = count_of(w, "PAY_CALLBACK", BS_SUCCESS);
    int64_t refunds = count_of(w, "REFUND", BS_SUCCESS);
    assert_true(pays + refunds >= 50); /* 3 places, 5 a second each */
    assert_true(pays >= 15 && refunds >= 15);
    world_settle(w, minute);
    assert_int_equal(count_of(w, "PAY_CALLBACK", BS_SUCCESS), 60);
    assert_int_equal(count_of(w, "REFUND", BS_SUCCESS), 60);
    assert_int_equal(w->fake->running_max, 3);
    world_free(w);
}

static void a_reload_changes_limits_and_rates_of_what_waits(void **state)
{
    static const struct bs_host_conf few[] = { { { "shop.test:80", 12 }, 1 } };
    static const struct bs_host_conf more[] = { { { "shop.test:80", 12 }, 4 } };
    static struct bs_queue_conf conf;
    static struct bs_queues second_conf;
    struct world *w = world_new();
    (void)state;

    w->queues.hosts = few;
    w->queues.hosts_n = 1;
    world_says(w, (struct line){ .match = "POST", .status = 204, .after_us = 100000 });
    world_start(w);
    submit_to(w, "PAY_CALLBACK", 0, 200, "");
    world_run(w, 2 * second);
    assert_int_equal(w->fake->running_max, 1);
    second_conf = (struct bs_queues){ w->confs, 1, .hosts = more, .hosts_n = 1 };
    atomic_store(&w->slot.now, &second_conf);
    bs_engine_reload(w->engine);
    world_run(w, 2 * second);
    assert_int_equal(w->fake->running_max, 4);
    uint32_t before = w->sights_n;
    conf = w->confs[0];
    conf.rate = (struct bs_rate){ 5, { second } };
    second_conf.items = &conf;
    w->queues = second_conf;
    atomic_store(&w->slot.now, &w->queues);
    bs_engine_reload(w->engine);
    world_run(w, 4 * second);
    /* What was claimed before it is called at the new rate too. */
    assert_in_range(w->sights_n - before, 18, 5 * 4 + 8);
    world_free(w);
}

static void no_more_calls_start_in_any_second_than_the_rate_says(void **state)
{
    struct world *w = world_new();
    (void)state;

    w->confs[0].rate = (struct bs_rate){ 20, { second } };
    w->confs[0].concurrency = 32;
    world_says(w, (struct line){ .match = "POST", .status = 204, .after_us = 30000 });
    world_start(w);
    submit_to(w, "PAY_CALLBACK", 0, 200, "");
    struct bs_time begun = world_now(w);
    world_settle(w, minute);
    assert_int_equal(w->sights_n, 200);
    for (uint32_t i = 20; i < w->sights_n; i++)
        assert_true(bs_time_diff(w->sights[i].from, w->sights[i - 20].from).us >= second);
    int64_t took = bs_time_diff(world_now(w), begun).us;
    assert_true(took >= 9900000 && took <= 11 * second);
    world_free(w);
}

static void a_slow_rate_waits_with_few_leases(void **state)
{
    struct world *w = world_new();
    struct bs_engine_figures f;
    (void)state;

    w->confs[0].rate = (struct bs_rate){ 6, { minute } };
    world_start(w);
    submit_to(w, "PAY_CALLBACK", 0, 50, "");
    world_run(w, minute);
    assert_in_range(w->sights_n, 6, 7);
    bs_engine_figures(w->engine, &f);
    assert_true(f.claims <= 7);
    world_free(w);
}

static void queues_whose_calls_hang_leave_places_for_the_others(void **state)
{
    struct world *w = world_new();
    (void)state;

    w->calls_max = 16;
    w->confs[0].concurrency = 16;
    world_adds(w, "REFUND", "depot.test");
    world_says(w, (struct line){ .match = "/pay", .status = 204, .after_us = 60 * second });
    world_start(w);
    submit_to(w, "PAY_CALLBACK", 0, 100, "");
    world_run(w, second);
    submit_to(w, "REFUND", 0, 100, "");
    world_run(w, 3 * second);
    assert_int_equal(count_of(w, "REFUND", BS_SUCCESS), 100);
    world_free(w);
}

static void a_flood_of_tasks_of_one_busy_order_holds_up_the_others_for_no_time(void **state)
{
    struct world *w = world_new();
    (void)state;

    world_says(w,
               (struct line){ .match = "PAY_CALLBACK-0", .status = 204, .after_us = 9 * second });
    world_start(w);
    bs_engine_pause(w->engine, S("PAY_CALLBACK"), true);
    submit_to(w, "PAY_CALLBACK", 0, 3000, ",\"order_no\":\"A1\"");
    (void)world_submit(w, "other", ",\"order_no\":\"A2\"");
    bs_engine_pause(w->engine, S("PAY_CALLBACK"), false);
    world_run(w, second / 10);
    assert_int_equal(world_seen(w, "POST", "other"), 1);
    world_free(w);
}

static void a_flood_of_urgent_tasks_does_not_starve_the_last_priority(void **state)
{
    BS_CLEANUP(bs_arena_free) struct bs_arena a = { 0 };
    struct world *w = world_new();
    (void)state;

    world_says(w, (struct line){ .match = "POST", .status = 204, .after_us = 50000 });
    world_start(w);
    submit_to(w, "PAY_CALLBACK", 0, 2000, ",\"priority\":0");
    int64_t last = world_submit(w, "last", ",\"priority\":3");
    world_run(w, 5 * second);
    assert_true(count_of(w, "PAY_CALLBACK", BS_WAITING) > 1000);
    assert_string_equal(bs_state_name(world_task(w, last, &a).state), "SUCCESS");
    world_free(w);
}

static void what_the_engine_tells_of_a_queue_is_what_is(void **state)
{
    struct world *w = world_new();
    struct bs_engine_queue q[2];
    struct bs_hist_view v;
    (void)state;

    world_adds(w, "REFUND", "depot.test");
    world_says(w, (struct line){ .match = "/REFUND", .status = 403, .after_us = 1000 });
    world_says(w, (struct line){ .match = "/pay", .status = 204, .after_us = 3000 });
    world_start(w);
    submit_to(w, "PAY_CALLBACK", 0, 10, "");
    submit_to(w, "REFUND", 0, 5, "");
    world_run(w, second);
    assert_int_equal(bs_engine_queues(w->engine, q, 2), 2);
    assert_string_equal(q[0].biz_type, "PAY_CALLBACK");
    assert_false(q[0].breaker_open);
    assert_int_equal(q[0].running, 0);
    bs_hist_read(q[0].calls, &v);
    assert_int_equal(v.count, 10);
    assert_int_equal(v.sum_us, 30000);
    bs_hist_read(q[0].ends, &v);
    assert_int_equal(v.count, 10);
    bs_hist_read(q[0].waits, &v);
    assert_int_equal(v.count, 10);
    assert_true(q[1].breaker_open);
    assert_int_equal(q[1].openings, 1);
    assert_int_equal(bs_time_diff(q[1].until, q[1].since).us, 5 * second);
    assert_contains(bs_str_of(q[1].why), "HTTP_403");
    world_free(w);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_missing_handler_costs_few_calls_no_budget_one_alert_and_one_recovery),
        cmocka_unit_test(a_host_that_refuses_ten_times_is_left_alone_and_the_rest_keeps_its_budget),
        cmocka_unit_test(waiting_behind_a_breaker_makes_nobody_older_not_even_the_one_who_tries),
        cmocka_unit_test(the_alert_of_a_breaker_gets_through_a_full_committer),
        cmocka_unit_test(calls_that_hang_or_fail_do_not_trip_the_breaker),
        cmocka_unit_test(the_look_up_has_a_breaker_of_its_own_and_nobody_is_called_blindly),
        cmocka_unit_test(another_address_in_the_configuration_is_another_endpoint),
        cmocka_unit_test(after_503_with_retry_after_300_nobody_calls_that_host_for_300_s),
        cmocka_unit_test(a_hosts_limit_holds_over_all_its_queues_and_its_places_go_round),
        cmocka_unit_test(a_reload_changes_limits_and_rates_of_what_waits),
        cmocka_unit_test(no_more_calls_start_in_any_second_than_the_rate_says),
        cmocka_unit_test(a_slow_rate_waits_with_few_leases),
        cmocka_unit_test(queues_whose_calls_hang_leave_places_for_the_others),
        cmocka_unit_test(a_flood_of_tasks_of_one_busy_order_holds_up_the_others_for_no_time),
        cmocka_unit_test(a_flood_of_urgent_tasks_does_not_starve_the_last_priority),
        cmocka_unit_test(what_the_engine_tells_of_a_queue_is_what_is),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
