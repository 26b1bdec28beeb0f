/* What every route has in common: paths, methods, content types, parameters, limits; and the open
 * ones. */
#include "api_fake.h"

#include "api/metrics.h"
#include "check.h"

#include <unistd.h>

static int start(void **state)
{
    (void)state;
    fake_start();
    fake.task = (struct bs_task){ .id = 42, .biz_type = BS_STR("PAY"), .state = BS_MANUAL };
    return 0;
}

static int stop(void **state)
{
    (void)state;
    fake_stop();
    return 0;
}

static void unknown_paths_are_404_with_and_without_a_token(void **state)
{
    static const char *const paths[] = { "/",
                                         "/v1",
                                         "/v1/",
                                         "/v1/task",
                                         "/v1/tasks/",
                                         "/v1/tasks//log",
                                         "/v1/tasks/42/",
                                         "/v1/tasks/42/log/",
                                         "/v1/tasks/42/nothing",
                                         "/v1/queues/PAY/",
                                         "/v2/tasks",
                                         "/healthz/" };

    (void)state;
    for (size_t i = 0; i < BS_COUNT(paths); i++) {
        struct fake_request *q;

        if (fake_ask(BS_GET, paths[i], NULL, "", &q) != 404)
            fail_msg("%s: %d", paths[i], q->status);
        assert_string_equal(q->type, "application/problem+json");
        assert_str(fake_member(q, "type"), "urn:backstop:problem:not-found");
        fake_free(q);
        assert_int_equal(fake_ask(BS_GET, paths[i], "tok-admin", "", NULL), 404);
    }
}

static void a_wrong_method_is_405_with_what_is_allowed(void **state)
{
    static const struct {
        enum bs_method method;
        const char *path, *allow;
    } table[] = {
        { BS_PUT, "/v1/tasks", "GET, POST" },
        { BS_METHOD_OTHER, "/v1/tokens", "GET, POST" },
        { BS_DELETE, "/v1/tasks/42", "GET" },
        { BS_POST, "/v1/tasks/42", "GET" },
        { BS_POST, "/healthz", "GET" },
        { BS_GET, "/v1/tasks/42/close", "POST" },
        { BS_PUT, "/v1/tasks/batch", "GET, POST" },
    };

    (void)state;
    for (size_t i = 0; i < BS_COUNT(table); i++) {
        struct fake_request *q;

        assert_int_equal(fake_ask(table[i].method, table[i].path, "tok-admin", "", &q), 405);
        assert_string_equal(fake_answered(q, "Allow"), table[i].allow);
        assert_str(fake_member(q, "code"), "METHOD_NOT_ALLOWED");
        fake_free(q);
    }
}

static int with_type(const char *path, const char *type)
{
    struct fake_request *q = fake_request(BS_POST, path, "tok-admin", BS_STR("[]"));

    fake_header(q, "Content-Type", type);
    fake_send(q);
    int status = q->status;
    fake_free(q);
    return status;
}

static void a_body_of_another_type_is_415(void **state)
{
    (void)state;
    assert_int_equal(with_type("/v1/tasks", "application/x-www-form-urlencoded"), 415);
    assert_int_equal(with_type("/v1/tasks", "application/x-ndjson"), 415);
    assert_int_equal(with_type("/v1/tasks", "text/json"), 415);
    assert_int_equal(with_type("/v1/tasks", "Application/JSON ; charset=utf-8"), 400);
    assert_int_equal(with_type("/v1/tasks", ""), 400);
    assert_int_equal(with_type("/v1/tasks/batch", "application/x-ndjson"), 200);
    assert_int_equal(with_type("/v1/tasks/batch", "application/json"), 200);
    assert_int_equal(with_type("/v1/tasks/42/close", "text/plain"), 415);
}

static void unknown_doubled_and_broken_parameters_are_400(void **state)
{
    static const struct {
        const char *target, *code;
    } table[] = {
        { "/v1/tasks?statu=WAITING", "UNKNOWN_PARAMETER" },
        { "/v1/tasks?=x", "UNKNOWN_PARAMETER" },
        { "/v1/tasks/42?x=1", "UNKNOWN_PARAMETER" },
        { "/v1/version?x=1", "UNKNOWN_PARAMETER" },
        { "/v1/tasks?limit=1&limit=1", "BAD_PARAMETER" },
        { "/v1/tasks?status=", "BAD_PARAMETER" },
        { "/v1/tasks?status=waiting", "BAD_PARAMETER" },
        { "/v1/tasks?source=SHOP", "BAD_PARAMETER" },
        { "/v1/tasks?limit=0", "BAD_PARAMETER" },
        { "/v1/tasks?limit=201", "BAD_PARAMETER" },
        { "/v1/tasks?limit=ten", "BAD_PARAMETER" },
        { "/v1/tasks?cursor=abc", "BAD_PARAMETER" },
        { "/v1/tasks?cursor=-1", "BAD_PARAMETER" },
        { "/v1/tasks?created_from=yesterday", "BAD_PARAMETER" },
        { "/v1/tasks?created_to=2026-13-01T00:00:00Z", "BAD_PARAMETER" },
        { "/v1/tasks?order_no=\xff", "BAD_PARAMETER" },
        { "/v1/tasks?order_no=a\nb", "BAD_PARAMETER" },
        { "/v1/tasks/42/log?limit=0", "BAD_PARAMETER" },
        { "/v1/alerts?status=WAITING", "UNKNOWN_PARAMETER" },
        { "/v1/audit?cursor=0", "BAD_PARAMETER" },
    };

    (void)state;
    for (size_t i = 0; i < BS_COUNT(table); i++) {
        struct fake_request *q;

        if (fake_ask(BS_GET, table[i].target, "tok-viewer", "", &q) != 400)
            fail_msg("%s: %d", table[i].target, q->status);
        assert_slice(fake_member(q, "code"), bs_str_of(table[i].code));
        fake_free(q);
    }
    assert_int_equal(fake_ask(BS_POST, "/v1/tasks?x=1", "tok-admin", "{}", NULL), 400);
    assert_int_equal(fake_ask(BS_GET, "/healthz?probe=1", NULL, "", NULL), 200);
}

static bool wanted(enum bs_method method, const char *path, const char *token, bool local,
                   uint32_t uid)
{
    struct fake_request *q = fake_request(method, path, token, BS_STR(""));

    q->r.local = local;
    q->r.peer_uid = uid;
    bool yes = bs_api_wants_body(fake.api, &q->r);
    fake_free(q);
    return yes;
}

static void only_the_body_of_who_may_ask_is_wanted(void **state)
{
    (void)state;
    assert_true(wanted(BS_POST, "/v1/tasks", "tok-service", false, 0));
    assert_true(wanted(BS_POST, "/v1/tasks", NULL, true, 0));
    assert_true(wanted(BS_POST, "/v1/tasks", NULL, true, (uint32_t)geteuid()));
    assert_true(wanted(BS_GET, "/healthz", NULL, false, 0));
    assert_false(wanted(BS_POST, "/v1/tasks", NULL, false, 0));
    assert_false(wanted(BS_POST, "/v1/tasks", NULL, true, (uint32_t)geteuid() + 1));
    assert_false(wanted(BS_POST, "/v1/tasks", "tok-none", false, 0));
    assert_false(wanted(BS_POST, "/v1/tasks", "tok-none", true, 0));
    assert_false(wanted(BS_POST, "/v1/tasks", "tok-gone", false, 0));
    assert_false(wanted(BS_POST, "/v1/tasks/batch", "tok-viewer", false, 0));
    assert_false(wanted(BS_POST, "/nowhere", "tok-admin", false, 0));
}

/* The token may have come while the body was thrown away: then nothing of it can be judged. */
static void a_body_that_was_not_kept_is_never_taken_for_an_empty_one(void **state)
{
    static const struct {
        const char *token;
        int status;
    } table[] = { { NULL, 401 }, { "tok-viewer", 403 }, { "tok-service", 503 } };

    (void)state;
    for (size_t i = 0; i < BS_COUNT(table); i++) {
        struct fake_request *q = fake_request(BS_POST, "/v1/tasks", table[i].token, BS_STR(""));

        q->r.unread = true;
        fake_begin(q);
        assert_int_equal(q->status, table[i].status);
        if (q->status == 503)
            assert_slice(fake_member(q, "code"), BS_STR("BUSY"));
        fake_free(q);
    }
    assert_int_equal(fake.sent, 0);
}

static void each_route_has_its_own_limit_for_bodies(void **state)
{
    (void)state;
    assert_int_equal(bs_api_body_max(fake.api, BS_POST, BS_STR("/v1/tasks")), 512 << 10);
    assert_int_equal(bs_api_body_max(fake.api, BS_POST, BS_STR("/v1/tasks/batch")), 8 << 20);
    assert_int_equal(bs_api_body_max(fake.api, BS_POST, BS_STR("/v1/tasks/1/close")), 16 << 10);
    assert_int_equal(bs_api_body_max(fake.api, BS_GET, BS_STR("/v1/tasks")), 16 << 10);
    assert_int_equal(bs_api_body_max(fake.api, BS_POST, BS_STR("/nowhere")), 16 << 10);
}

static void the_servers_own_refusals_are_problems_too(void **state)
{
    static const struct {
        int status;
        const char *code, *retry;
    } table[] = { { 400, "BAD_REQUEST", "" },
                  { 413, "TOO_BIG", "" },
                  { 408, "TOO_SLOW", "" },
                  { 503, "STOPPING", "1" } };

    (void)state;
    for (size_t i = 0; i < BS_COUNT(table); i++) {
        struct fake_request *q = fake_request(BS_POST, "/v1/tasks", NULL, BS_STR(""));

        bs_api_refuse(fake.api, &q->r, table[i].status);
        assert_int_equal(q->status, table[i].status);
        assert_string_equal(q->type, "application/problem+json");
        assert_slice(fake_member(q, "code"), bs_str_of(table[i].code));
        assert_string_equal(fake_answered(q, "Retry-After"), table[i].retry);
        fake_free(q);
    }
}

static void health_readiness_and_version_are_told(void **state)
{
    struct fake_request *q;

    (void)state;
    assert_int_equal(fake_ask(BS_GET, "/healthz", NULL, "", &q), 200);
    assert_str(bs_buf_str(&q->body), "ok\n");
    fake_free(q);
    assert_int_equal(fake_ask(BS_GET, "/readyz", NULL, "", &q), 200);
    assert_str(bs_buf_str(&q->body), "ready\n");
    fake_free(q);
    fake.not_ready = true;
    assert_int_equal(fake_ask(BS_GET, "/readyz", NULL, "", &q), 503);
    assert_str(bs_buf_str(&q->body), "draining\n");
    fake_free(q);
    assert_int_equal(fake_ask(BS_GET, "/v1/version", "tok-service", "", &q), 200);
    assert_str(fake_member(q, "store_version"), "4");
    assert_str(fake_member(q, "node"), "n1");
    assert_true(fake_member(q, "version").n >= 5);
    fake_free(q);
}

static bool has(struct fake_request *q, const char *line)
{
    return strstr(q->body.p, line) != NULL;
}

static void metrics_come_from_the_store_the_committer_and_the_program(void **state)
{
    struct fake_request *q;

    (void)state;
    fake.alerts_n = 3;
    assert_int_equal(fake_ask(BS_GET, "/metrics", NULL, "", &q), 200);
    assert_string_equal(q->type, "text/plain; version=0.0.4; charset=utf-8");
    assert_true(has(q, "\nbackstop_tasks{biz_type=\"PAY\",status=\"SUCCESS\"} 3\n"));
    assert_true(has(q, "\nbackstop_tasks{biz_type=\"OLD\",status=\"WAITING\"} 4\n"));
    assert_true(has(q, "\nbackstop_tasks{biz_type=\"NOTE\",status=\"MANUAL\"} 0\n"));
    assert_true(has(q, "\nbackstop_tasks_amount{biz_type=\"PAY\",status=\"SUCCESS\",currency="
                       "\"CNY\"} 9007199254740995\n"));
    assert_true(has(q, "\nbackstop_exposure_amount{biz_type=\"PAY\",currency=\"CNY\"} 0\n"));
    assert_true(has(q, "\nbackstop_exposure_amount{biz_type=\"MONEY\",currency=\"CNY\"} 7\n"));
    assert_true(has(q, "\nbackstop_tasks_unknown{biz_type=\"MONEY\"} 1\n"));
    assert_true(has(q, "\nbackstop_tasks_unknown{biz_type=\"NOTE\"} 0\n"));
    assert_true(has(q, "\nbackstop_oldest_due_seconds{biz_type=\"PAY\"} 90\n"));
    assert_true(has(q, "\nbackstop_oldest_due_seconds{biz_type=\"NOTE\"} 0\n"));
    assert_true(has(q, "\nbackstop_oldest_manual_seconds{biz_type=\"PAY\"} 7200\n"));
    assert_true(has(q, "\nbackstop_queue_running{biz_type=\"PAY\"} 3\n"));
    assert_true(has(q, "\nbackstop_queue_held_seconds{biz_type=\"PAY\"} 5\n"));
    assert_true(has(q, "\nbackstop_breaker_open{biz_type=\"PAY\"} 1\n"));
    assert_true(has(q, "\nbackstop_breaker_openings_total{biz_type=\"PAY\"} 2\n"));
    assert_true(has(q, "\nbackstop_call_seconds_bucket{biz_type=\"PAY\",le=\"0.0025\"} 0\n"));
    assert_true(has(q, "\nbackstop_call_seconds_bucket{biz_type=\"PAY\",le=\"0.01\"} 100\n"));
    assert_true(has(q, "\nbackstop_call_seconds_bucket{biz_type=\"PAY\",le=\"3600\"} 100\n"));
    assert_true(has(q, "\nbackstop_call_seconds_bucket{biz_type=\"PAY\",le=\"+Inf\"} 100\n"));
    assert_true(has(q, "\nbackstop_call_seconds_sum{biz_type=\"PAY\"} 0.700000\n"));
    assert_true(has(q, "\nbackstop_call_seconds_count{biz_type=\"PAY\"} 100\n"));
    assert_true(has(q, "\nbackstop_wait_seconds_bucket{biz_type=\"PAY\",le=\"3600\"} 0\n"));
    assert_true(has(q, "\nbackstop_wait_seconds_bucket{biz_type=\"PAY\",le=\"+Inf\"} 1\n"));
    assert_true(has(q, "\nbackstop_settle_seconds_count{biz_type=\"PAY\"} 0\n"));
    assert_true(has(q, "\nbackstop_alerts{kind=\"EFFECT_CONFLICT\"} 6\n"));
    assert_true(has(q, "\nbackstop_store_readable 1\n"));
    assert_true(has(q, "\nbackstop_commits_total 12\n"));
    assert_true(has(q, "\nbackstop_commit_seconds_total 1.500000\n"));
    assert_true(has(q, "\nmore 1\n"));
    fake_free(q);
}

static void labels_of_metrics_are_escaped(void **state)
{
    BS_CLEANUP(bs_buf_free) struct bs_buf out = { .max = 256 };

    (void)state;
    bs_metric_label(&out, "biz_type", BS_STR("a\"b\\c\nd"));
    assert_string_equal(bs_buf_str(&out).p, "biz_type=\"a\\\"b\\\\c\\nd\"");
}

static void metrics_answer_also_without_the_store(void **state)
{
    struct fake_request *q;

    (void)state;
    atomic_store(&fake.read_rc, BS_E_UNAVAILABLE);
    assert_int_equal(fake_ask(BS_GET, "/metrics", NULL, "", &q), 200);
    assert_true(has(q, "\nbackstop_store_readable 0\n"));
    assert_true(has(q, "\nmore 1\n"));
    assert_true(has(q, "\nbackstop_breaker_open{biz_type=\"PAY\"} 1\n"));
    assert_false(has(q, "backstop_tasks"));
    fake_free(q);
}

static void a_read_that_fails_is_503_and_the_next_one_is_served(void **state)
{
    struct fake_request *q;

    (void)state;
    atomic_store(&fake.read_rc, BS_E_UNAVAILABLE);
    assert_int_equal(fake_ask(BS_GET, "/v1/tasks/42", "tok-viewer", "", &q), 503);
    assert_string_equal(fake_answered(q, "Retry-After"), "1");
    fake_free(q);
    atomic_store(&fake.read_rc, BS_E_CORRUPT);
    assert_int_equal(fake_ask(BS_GET, "/v1/tasks/42", "tok-viewer", "", &q), 500);
    assert_str(fake_member(q, "code"), "INTERNAL");
    fake_free(q);
    atomic_store(&fake.read_rc, BS_OK);
    atomic_store(&fake.open_rc, BS_E_UNAVAILABLE);
    assert_int_equal(fake_ask(BS_GET, "/v1/tasks/42", "tok-viewer", "", NULL), 503);
    atomic_store(&fake.open_rc, BS_OK);
    assert_int_equal(fake_ask(BS_GET, "/v1/tasks/42", "tok-viewer", "", NULL), 200);
}

/* Two readers sleep in the store; what is over the queue is refused, the rest is served. */
static void too_many_reads_are_503_and_none_is_lost(void **state)
{
    static struct fake_request *all[300];
    uint32_t served = 0, refused = 0;

    (void)state;
    atomic_store(&fake.reads_wait, true);
    for (size_t i = 0; i < BS_COUNT(all); i++) {
        all[i] = fake_request(BS_GET, "/v1/tasks/42", "tok-viewer", BS_STR(""));
        fake_begin(all[i]);
    }
    atomic_store(&fake.reads_wait, false);
    for (size_t i = 0; i < BS_COUNT(all); i++) {
        fake_finish(all[i]);
        served += all[i]->status == 200;
        refused += all[i]->status == 503;
        fake_free(all[i]);
    }
    assert_int_equal(served + refused, BS_COUNT(all));
    assert_in_range(served, 256, 258);
}

/* Metrics are read for everybody: who has no token must not fill the queue of those who have. */
static void metrics_leave_room_for_other_reads(void **state)
{
    static struct fake_request *all[300];
    uint32_t waiting = 0;

    (void)state;
    atomic_store(&fake.reads_wait, true);
    for (size_t i = 0; i < BS_COUNT(all); i++) {
        bool open = i < BS_COUNT(all) - 1;

        all[i] = fake_request(BS_GET, open ? "/metrics" : "/v1/tasks/42",
                              open ? NULL : "tok-viewer", BS_STR(""));
        fake_begin(all[i]);
        waiting += all[i]->waits;
    }
    assert_in_range(waiting, 17, 19); /* 16 and what the readers have taken, and the task's */
    atomic_store(&fake.reads_wait, false);
    for (size_t i = 0; i < BS_COUNT(all); i++) {
        if (all[i]->waits)
            fake_finish(all[i]);
        assert_int_equal(all[i]->status, all[i]->waits ? 200 : 503);
        fake_free(all[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define T(f) cmocka_unit_test_setup_teardown(f, start, stop)
        T(unknown_paths_are_404_with_and_without_a_token),
        T(a_wrong_method_is_405_with_what_is_allowed),
        T(a_body_of_another_type_is_415),
        T(unknown_doubled_and_broken_parameters_are_400),
        T(each_route_has_its_own_limit_for_bodies),
        T(only_the_body_of_who_may_ask_is_wanted),
        T(a_body_that_was_not_kept_is_never_taken_for_an_empty_one),
        T(the_servers_own_refusals_are_problems_too),
        T(health_readiness_and_version_are_told),
        T(metrics_come_from_the_store_the_committer_and_the_program),
        T(labels_of_metrics_are_escaped),
        T(metrics_answer_also_without_the_store),
        T(a_read_that_fails_is_503_and_the_next_one_is_served),
        T(too_many_reads_are_503_and_none_is_lost),
        T(metrics_leave_room_for_other_reads),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
