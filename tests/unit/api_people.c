/* What people ask for: tasks, lists, logs, actions, pauses. */
#include "api_fake.h"
#include "check.h"

static int start(void **state)
{
    (void)state;
    fake_start();
    fake.task = (struct bs_task){ .id = 9007199254740995,
                                  .biz_type = BS_STR("PAY"),
                                  .request_id = BS_STR("r-1"),
                                  .biz_id = BS_STR("B"),
                                  .merchant_no = BS_STR("default"),
                                  .state = BS_MANUAL,
                                  .manual_code = BS_STR("HELD"),
                                  .version = 9007199254740997,
                                  .lease_token = 9007199254740999,
                                  .payload = BS_STR("{\"a\": 1.10}"),
                                  .payload_is_json = true,
                                  .extra_data = BS_STR("{\"x\":[ ]}"),
                                  .result_snapshot = BS_STR("said \"no\"") };
    return 0;
}

static int stop(void **state)
{
    (void)state;
    fake_stop();
    return 0;
}

#define TASK "/v1/tasks/9007199254740995"

static void a_task_is_shown_whole_with_its_numbers_as_text(void **state)
{
    struct fake_request *q;

    (void)state;
    assert_int_equal(fake_ask(BS_GET, TASK, "tok-viewer", "", &q), 200);
    assert_non_null(strstr(q->body.p, "\"task_no\":\"9007199254740995\""));
    assert_non_null(strstr(q->body.p, "\"version\":\"9007199254740997\""));
    assert_non_null(strstr(q->body.p, "\"lease_token\":\"9007199254740999\""));
    assert_str(fake_member(q, "payload"), "{\"a\": 1.10}");
    assert_str(fake_member(q, "extra_data"), "{\"x\":[ ]}");
    assert_str(fake_member(q, "result_snapshot"), "said \"no\"");
    assert_str(fake_member(q, "manual_code"), "HELD");
    assert_str(fake_member(q, "amount"), "null");
    fake_free(q);
}

static void what_is_no_task_number_is_404(void **state)
{
    static const char *const numbers[] = { "1",
                                           "0",
                                           "-1",
                                           "042",
                                           "abc",
                                           "9007199254740995x",
                                           "+1",
                                           "1e3",
                                           "99999999999999999999",
                                           "9223372036854775808" };

    (void)state;
    for (size_t i = 0; i < BS_COUNT(numbers); i++) {
        BS_CLEANUP(bs_arena_free) struct bs_arena a = { 0 };

        assert_int_equal(fake_ask(BS_GET, bs_arena_fmt(&a, "/v1/tasks/%s", numbers[i]).p,
                                  "tok-viewer", "", NULL),
                         404);
        assert_int_equal(fake_ask(BS_POST, bs_arena_fmt(&a, "/v1/tasks/%s/hold", numbers[i]).p,
                                  "tok-operator", "{\"reason\":\"x\"}", NULL),
                         404);
    }
    assert_int_equal(fake.sent, 0);
}

static void filters_reach_the_store_as_they_were_given(void **state)
{
    struct fake_request *q;

    (void)state;
    assert_int_equal(
        fake_ask(BS_GET,
                 "/v1/tasks?status=MANUAL&source=CALLBACK&created_from=2026-11-30T00:00:00Z&"
                 "created_to=2026-12-01T00:00:00%2B08:00&limit=200&cursor=77",
                 "tok-viewer", "", NULL),
        400);
    assert_int_equal(
        fake_ask(BS_GET,
                 "/v1/tasks?status=MANUAL&source=CALLBACK&created_from=2026-11-30T00:00:00Z&"
                 "created_to=2026-12-01T00:00:00+08:00&limit=200&cursor=77",
                 "tok-viewer", "", &q),
        200);
    assert_int_equal(fake.last_filter.state, BS_MANUAL);
    assert_int_equal(fake.last_filter.source, BS_SRC_CALLBACK);
    assert_int_equal(fake.last_filter.created_from.us, 1795996800000000);
    assert_int_equal(fake.last_filter.created_to.us - fake.last_filter.created_from.us,
                     16 * 3600 * 1000000LL);
    assert_int_equal(fake.last_filter.limit, 200);
    assert_int_equal(fake.last_filter.before_id, 77);
    assert_str(fake_member(q, "next_cursor"), "9007199254740995");
    assert_str(fake_member(q, "searched_to"), "1970-01-01T00:00:01.000000Z");
    assert_null(strstr(q->body.p, "payload"));
    assert_null(strstr(q->body.p, "extra_data"));
    assert_null(strstr(q->body.p, "result_snapshot"));
    fake_free(q);
}

static void every_text_filter_has_its_own_place(void **state)
{
    static const struct {
        const char *name;
        size_t at;
    } table[] = {
        { "biz_type", offsetof(struct bs_task_filter, biz_type) },
        { "order_no", offsetof(struct bs_task_filter, order_no) },
        { "payment_no", offsetof(struct bs_task_filter, payment_no) },
        { "channel_trade_no", offsetof(struct bs_task_filter, channel_trade_no) },
        { "refund_no", offsetof(struct bs_task_filter, refund_no) },
        { "request_id", offsetof(struct bs_task_filter, request_id) },
        { "biz_id", offsetof(struct bs_task_filter, biz_id) },
        { "error_code", offsetof(struct bs_task_filter, error_code) },
    };

    (void)state;
    for (size_t i = 0; i < BS_COUNT(table); i++) {
        BS_CLEANUP(bs_arena_free) struct bs_arena a = { 0 };
        struct fake_request *q;

        assert_int_equal(fake_ask(BS_GET, bs_arena_fmt(&a, "/v1/tasks?%s=x", table[i].name).p,
                                  "tok-viewer", "", &q),
                         200);
        for (size_t k = 0; k < BS_COUNT(table); k++) {
            struct bs_str got;

            memcpy(&got, (const char *)&fake.last_filter + table[k].at, sizeof(got));
            assert_slice(got, bs_str_of(k == i ? "x" : ""));
        }
        assert_int_equal(fake.last_filter.limit, 50);
        fake_free(q);
    }
}

static void the_log_shows_transitions_with_what_is_known_of_them(void **state)
{
    struct fake_request *q;

    (void)state;
    assert_int_equal(fake_ask(BS_GET, TASK "/log?cursor=12&limit=2", "tok-viewer", "", &q), 200);
    assert_int_equal(fake.last_cursor, 12);
    assert_int_equal(fake.last_limit, 2);
    assert_str(fake_member(q, "next_cursor"), "55");
    assert_str(
        fake_member(q, "items"),
        "[{\"at\":\"1970-01-01T00:00:01.000000Z\",\"event\":\"submit\",\"from\":null,\"to\":"
        "\"WAITING\",\"attempt_no\":null,\"outcome\":null,\"code\":null,\"message\":null,"
        "\"effect\":null,\"http_status\":null,\"duration_ms\":null,\"operator\":null,\"reason\":"
        "null,\"node\":null,\"lease_token\":null,\"excerpt\":null},"
        "{\"at\":\"1970-01-01T00:00:02.000000Z\",\"event\":\"failed\",\"from\":\"PROCESSING\","
        "\"to\":\"RETRY\",\"attempt_no\":1,\"outcome\":\"failed\",\"code\":\"HTTP_409\","
        "\"message\":null,\"effect\":null,\"http_status\":409,\"duration_ms\":0,\"operator\":null,"
        "\"reason\":null,\"node\":null,\"lease_token\":\"9007199254740995\",\"excerpt\":null}]");
    fake_free(q);
}

static void alerts_show_who_was_told_and_can_be_asked_for_by_whether_they_are_open(void **state)
{
    static const struct {
        const char *path;
        int status;
        enum bs_alert_which which;
    } asked[] = { { "/v1/alerts?open=true", 200, BS_ALERTS_OPEN },
                  { "/v1/alerts?open=false", 200, BS_ALERTS_ENDED },
                  { "/v1/alerts?open=yes", 400, BS_ALERTS_ENDED } };
    struct fake_request *q;

    (void)state;
    fake.alerts_n = 2;
    assert_int_equal(fake_ask(BS_GET, "/v1/alerts", "tok-viewer", "", &q), 200);
    assert_int_equal(fake.last_which, BS_ALERTS_ALL);
    const char *items = fake_member(q, "items").p;
    assert_non_null(strstr(items, "\"open\":true,\"recovered_at\":null,"));
    assert_non_null(strstr(items, "\"open\":false,\"recovered_at\":\""));
    assert_non_null(strstr(items,
                           "\"deliveries\":[{\"deliverer\":\"boss\",\"phase\":\"raised\",\"state\":"
                           "\"pending\",\"attempts\":3,\"next_at\":\"2026-11-30T"));
    assert_non_null(
        strstr(items, "\"code\":\"HTTP_503\",\"message\":null},{\"deliverer\":\"ops\",\"phase\":"
                      "\"recovered\",\"state\":\"sent\",\"attempts\":1,\"next_at\":null,"));
    fake_free(q);
    for (size_t i = 0; i < BS_COUNT(asked); i++) {
        assert_int_equal(fake_ask(BS_GET, asked[i].path, "tok-viewer", "", &q), asked[i].status);
        assert_int_equal(fake.last_which, asked[i].which);
        fake_free(q);
    }
}

static void pages_of_alerts_and_audit_end_where_the_store_ends(void **state)
{
    struct fake_request *q;

    (void)state;
    fake.alerts_n = 3;
    assert_int_equal(fake_ask(BS_GET, "/v1/alerts?limit=3&cursor=2000", "tok-viewer", "", &q), 200);
    assert_int_equal(fake.last_cursor, 2000);
    assert_str(fake_member(q, "next_cursor"), "998");
    fake_free(q);
    assert_int_equal(fake_ask(BS_GET, "/v1/alerts?limit=4", "tok-viewer", "", &q), 200);
    assert_str(fake_member(q, "next_cursor"), "null");
    fake_free(q);
    fake.audit_n = 1;
    assert_int_equal(fake_ask(BS_GET, "/v1/audit?limit=1", "tok-viewer", "", &q), 200);
    assert_str(fake_member(q, "next_cursor"), "500");
    assert_str(fake_member(q, "items"),
               "[{\"id\":\"500\",\"at\":\"1970-01-01T00:00:01.000000Z\",\"operator\":\"ann\","
               "\"action\":\"close\",\"object\":null,\"reason\":null,\"conclusion\":null,"
               "\"order_no\":null,\"before\":{\"version\":\"1\"},\"after\":null}]");
    fake_free(q);
}

/* ---- actions ---- */

static void done_and_seen(struct bs_op *op)
{
    op->act.ret_task.state = BS_WAITING;
    op->act.ret_task.version = 5;
}

static void an_action_carries_who_why_and_what(void **state)
{
    struct fake_request *q;

    (void)state;
    fake.apply = done_and_seen;
    assert_int_equal(fake_ask(BS_POST, TASK "/close", "tok-operator",
                              "{\"reason\":\"paid twice\",\"conclusion\":\"done_elsewhere\","
                              "\"expected_version\":\"9007199254740997\"}",
                              &q),
                     200);
    assert_int_equal(fake.last.kind, BS_OP_ACT);
    assert_int_equal(fake.last_rank, BS_RANK_PEOPLE);
    assert_int_equal(fake.last.act.task_id, 9007199254740995);
    assert_int_equal(fake.last.act.action, BS_ACT_CLOSE);
    assert_str(fake.last.act.reason, "paid twice");
    assert_str(fake.last.act.conclusion, "done_elsewhere");
    assert_str(fake.last.act.operator, "operator");
    assert_int_equal(fake.last.act.expected_version, 9007199254740997);
    assert_int_equal(fake.last.act.policy->max_retry_count, 10);
    assert_true(fake.last.id > 0);
    assert_str(fake_member(q, "task_no"), "9007199254740995");
    assert_str(fake_member(q, "payload"), "{\"a\": 1.10}");
    fake_free(q);
}

static void each_path_is_its_own_action(void **state)
{
    static const struct {
        const char *target, *body;
        enum bs_action action;
    } table[] = {
        { TASK "/retry", "{\"reason\":\"x\"}", BS_ACT_RETRY },
        { TASK "/hold", "{\"reason\":\"x\"}", BS_ACT_HOLD },
        { TASK "/unhold", "{\"reason\":\"x\"}", BS_ACT_UNHOLD },
        { TASK "/resolve", "{\"reason\":\"x\",\"conclusion\":\"other\"}", BS_ACT_RESOLVE },
        { TASK "/close", "{\"reason\":\"x\",\"conclusion\":\"not_done\"}", BS_ACT_CLOSE },
    };

    (void)state;
    for (size_t i = 0; i < BS_COUNT(table); i++) {
        assert_int_equal(fake_ask(BS_POST, table[i].target, "tok-operator", table[i].body, NULL),
                         200);
        assert_int_equal(fake.last.act.action, table[i].action);
    }
}

static void an_action_without_its_words_is_422(void **state)
{
    static const struct {
        const char *target, *body, *field, *code;
    } table[] = {
        { TASK "/hold", "{}", "reason", "REQUIRED" },
        { TASK "/hold", "{\"reason\":\"  \"}", "reason", "REQUIRED" },
        { TASK "/hold", "{\"reason\":null}", "reason", "WRONG_TYPE" },
        { TASK "/hold", "{\"reason\":\"a\\u0007\"}", "reason", "CONTROL_CHARACTER" },
        { TASK "/hold", "{\"reason\":\"x\",\"conclusion\":\"other\"}", "conclusion",
          "CONFLICTS_WITH" },
        { TASK "/close", "{\"reason\":\"x\"}", "conclusion", "REQUIRED" },
        { TASK "/close", "{\"reason\":\"x\",\"conclusion\":\"done\"}", "conclusion",
          "UNKNOWN_VALUE" },
        { TASK "/resolve", "{\"reason\":\"x\"}", "conclusion", "REQUIRED" },
        { TASK "/retry", "{\"reason\":\"x\",\"expected_version\":\"abc\"}", "expected_version",
          "BAD_FORMAT" },
        { TASK "/retry", "{\"reason\":\"x\",\"expected_version\":0}", "expected_version",
          "BAD_FORMAT" },
        { TASK "/retry", "{\"reason\":\"x\",\"version\":1}", "version", "UNKNOWN_MEMBER" },
        { TASK "/retry", "{\"reason\":\"x\",\"reason\":\"y\"}", "reason", "DUPLICATE_MEMBER" },
        { "/v1/queues/PAY/pause", "{}", "reason", "REQUIRED" },
        { "/v1/queues/PAY/resume", "{\"reason\":\"\"}", "reason", "REQUIRED" },
        { "/v1/queues/PAY/pause", "{\"why\":\"x\"}", "why", "UNKNOWN_MEMBER" },
    };

    (void)state;
    for (size_t i = 0; i < BS_COUNT(table); i++) {
        struct fake_request *q;

        if (fake_ask(BS_POST, table[i].target, "tok-operator", table[i].body, &q) != 422)
            fail_msg("%s %s: %d", table[i].target, table[i].body, q->status);
        if (!strstr(q->body.p, bs_arena_fmt(&q->r.arena, "[{\"field\":\"%s\",\"code\":\"%s\"",
                                            table[i].field, table[i].code)
                                   .p))
            fail_msg("%s: %s", table[i].body, q->body.p);
        fake_free(q);
    }
    assert_int_equal(fake_ask(BS_POST, TASK "/hold", "tok-operator", "reason=x", NULL), 400);
    assert_int_equal(fake.sent, 0);
}

static void a_queue_that_moves_money_wants_the_version_that_was_seen(void **state)
{
    static const struct {
        const char *target, *body;
        int status;
    } table[] = {
        { TASK "/retry", "{\"reason\":\"x\"}", 428 },
        { TASK "/resolve", "{\"reason\":\"x\",\"conclusion\":\"other\"}", 428 },
        { TASK "/close", "{\"reason\":\"x\",\"conclusion\":\"other\"}", 428 },
        { TASK "/hold", "{\"reason\":\"x\"}", 200 },
        { TASK "/unhold", "{\"reason\":\"x\"}", 200 },
        { TASK "/retry", "{\"reason\":\"x\",\"expected_version\":3}", 200 },
    };

    (void)state;
    fake.task.biz_type = BS_STR("MONEY");
    for (size_t i = 0; i < BS_COUNT(table); i++) {
        struct fake_request *q;

        assert_int_equal(fake_ask(BS_POST, table[i].target, "tok-operator", table[i].body, &q),
                         table[i].status);
        if (table[i].status == 428)
            assert_str(fake_member(q, "code"), "VERSION_REQUIRED");
        fake_free(q);
    }
    assert_int_equal(fake.sent, 3);
    assert_int_equal(fake.last.act.expected_version, 3);
    assert_int_equal(fake.last.act.policy->effect, BS_EFFECT_MONEY);
}

static bs_rc act_rc;

static void refuse(struct bs_op *op)
{
    op->rc = bs_fail(&op->err, act_rc, "the store says why");
}

static void what_the_store_refuses_keeps_its_meaning(void **state)
{
    static const struct {
        bs_rc rc;
        int status;
        const char *code;
    } table[] = {
        { BS_E_STALE, 409, "STALE_VERSION" }, { BS_E_CONFLICT, 409, "STATE_CONFLICT" },
        { BS_E_NOT_FOUND, 404, "NOT_FOUND" }, { BS_E_INVALID, 422, "INVALID_FIELDS" },
        { BS_E_NOMEM, 503, "UNAVAILABLE" },
    };

    (void)state;
    fake.apply = refuse;
    for (size_t i = 0; i < BS_COUNT(table); i++) {
        struct fake_request *q;

        act_rc = table[i].rc;
        assert_int_equal(fake_ask(BS_POST, TASK "/hold", "tok-operator", "{\"reason\":\"x\"}", &q),
                         table[i].status);
        assert_slice(fake_member(q, "code"), bs_str_of(table[i].code));
        assert_str(fake_member(q, "detail"), "the store says why");
        fake_free(q);
    }
}

static void pending(struct bs_op *op)
{
    op->act.ret_pending = true;
    op->act.ret_task.state = BS_PROCESSING;
    op->act.ret_task.version = 6;
    atomic_store(&fake.read_rc, BS_E_UNAVAILABLE); /* reading back fails */
}

static void what_waits_for_the_end_of_a_call_is_202(void **state)
{
    struct fake_request *q;

    (void)state;
    fake.apply = pending;
    assert_int_equal(fake_ask(BS_POST, TASK "/hold", "tok-operator", "{\"reason\":\"x\"}", &q),
                     202);
    assert_str(bs_buf_str(&q->body), "{\"task_no\":\"9007199254740995\",\"task_status\":"
                                     "\"PROCESSING\",\"version\":\"6\",\"partial\":true}");
    fake_free(q);
}

static void an_action_that_finds_no_room_is_503(void **state)
{
    struct fake_request *q;

    (void)state;
    fake.committer = FAKE_IS_FULL;
    assert_int_equal(fake_ask(BS_POST, TASK "/hold", "tok-operator", "{\"reason\":\"x\"}", &q),
                     503);
    assert_str(fake_member(q, "code"), "BUSY");
    fake_free(q);
    fake.committer = FAKE_FAILS;
    fake.work_rc = BS_E_UNKNOWN;
    assert_int_equal(fake_ask(BS_POST, TASK "/hold", "tok-operator", "{\"reason\":\"x\"}", &q),
                     503);
    assert_non_null(strstr(q->body.p, "read the task before asking again"));
    fake_free(q);
}

/* ---- queues ---- */

static void a_queue_is_paused_after_the_commit_and_shown(void **state)
{
    struct fake_request *q;

    (void)state;
    assert_int_equal(
        fake_ask(BS_POST, "/v1/queues/PAY/pause", "tok-operator", "{\"reason\":\"noise\"}", &q),
        200);
    assert_int_equal(fake.last.kind, BS_OP_QUEUE_PAUSE);
    assert_true(fake.last.queue_pause.paused);
    assert_str(fake.last.queue_pause.reason, "noise");
    assert_str(fake.last.queue_pause.operator, "operator");
    assert_int_equal(fake.pauses, 1);
    assert_true(fake.last_paused);
    assert_str(fake_member(q, "biz_type"), "PAY");
    assert_str(fake_member(q, "paused"), "true");
    assert_str(fake_member(q, "configured"), "true");
    fake_free(q);
    assert_int_equal(
        fake_ask(BS_POST, "/v1/queues/PAY/resume", "tok-operator", "{\"reason\":\"quiet\"}", &q),
        200);
    assert_int_equal(fake.pauses, 2);
    assert_str(fake_member(q, "paused"), "false");
    fake_free(q);
    fake.committer = FAKE_FAILS;
    fake.work_rc = BS_E_UNAVAILABLE;
    assert_int_equal(
        fake_ask(BS_POST, "/v1/queues/PAY/pause", "tok-operator", "{\"reason\":\"noise\"}", NULL),
        503);
    assert_int_equal(fake.pauses, 2);
    assert_int_equal(
        fake_ask(BS_POST, "/v1/queues/NONE/pause", "tok-operator", "{\"reason\":\"noise\"}", NULL),
        404);
}

static void queues_show_what_is_configured_and_what_is_left(void **state)
{
    struct fake_request *q;

    (void)state;
    assert_int_equal(fake_ask(BS_GET, "/v1/queues", "tok-viewer", "", &q), 200);
    struct bs_str *items = NULL;
    uint32_t n = 0;
    assert_int_equal(bs_json_read_array(&q->r.arena, fake_member(q, "items"), 10, &items, &n, NULL),
                     BS_OK);
    assert_int_equal(n, 4);
    assert_str(
        items[0],
        "{\"biz_type\":\"MONEY\",\"configured\":true,\"host\":null,\"look_host\":null,\"effect\":"
        "\"money\",\"look_up\":true,\"concurrency\":0,\"rate\":null,\"max_retry_count\":7,\"max_"
        "age_ms\":null,\"call_timeout_ms\":0,\"lease_ms\":0,\"paused\":false,\"reason\":null,"
        "\"operator\":null,\"at\":null,\"oldest_due\":null,\"oldest_manual\":null,\"counts\":{"
        "\"WAITING\":0,\"PROCESSING\":0,\"RETRY\":0,\"SUCCESS\":0,\"FAILED\":0,\"MANUAL\":2,"
        "\"CLOSED\":0},\"unknown\":1,\"exposure\":[{\"currency\":\"CNY\",\"amount\":\"7\"}]}");
    assert_str(items[3],
               "{\"biz_type\":\"OLD\",\"configured\":false,\"paused\":false,\"reason\":null,"
               "\"operator\":null,\"at\":null,\"oldest_due\":null,\"oldest_manual\":null,"
               "\"counts\":{\"WAITING\":4,\"PROCESSING\":0,\"RETRY\":0,\"SUCCESS\":0,\"FAILED\":0,"
               "\"MANUAL\":0,\"CLOSED\":0},\"unknown\":0,\"exposure\":[]}");
    fake_free(q);
}

static void one_queue_is_shown_with_what_it_holds_and_how_it_runs(void **state)
{
    struct fake_request *q;

    (void)state;
    assert_int_equal(fake_ask(BS_GET, "/v1/queues/PAY", "tok-viewer", "", &q), 200);
    assert_str(
        bs_buf_str(&q->body),
        "{\"biz_type\":\"PAY\",\"configured\":true,\"host\":\"shop.example:443\",\"look_host\":"
        "null,\"effect\":\"repeatable\",\"look_up\":false,\"concurrency\":32,\"rate\":\"200/"
        "s\",\"max_retry_count\":10,\"max_age_ms\":259200000,\"call_timeout_ms\":0,\"lease_ms\":0,"
        "\"paused\":false,\"reason\":null,\"operator\":null,\"at\":null,\"oldest_due\":\"2026-09-"
        "21T14:11:50.000000Z\",\"oldest_manual\":\"2026-09-21T12:13:20.000000Z\",\"counts\":{"
        "\"WAITING\":0,\"PROCESSING\":0,\"RETRY\":0,\"SUCCESS\":3,\"FAILED\":0,\"MANUAL\":0,"
        "\"CLOSED\":0},\"unknown\":0,\"exposure\":[],\"amounts\":[{\"task_status\":\"SUCCESS\","
        "\"currency\":\"CNY\",\"count\":3,\"amount\":\"9007199254740995\"}],\"running\":3,\"held_"
        "until\":\"2026-09-21T14:13:25.000000Z\",\"breaker\":{\"state\":\"open\",\"since\":\"2026-"
        "09-21T14:13:19.000000Z\",\"openings\":2,\"why\":\"HTTP_404 "
        "\\\"x\\\"\"},\"calls\":{\"count\":100,\"p50_ms\":8,\"p99_ms\":10},\"waits\":{\"count\":1,"
        "\"p50_ms\":3600000,\"p99_ms\":3600000},\"settles\":{\"count\":0,\"p50_ms\":null,\"p99_"
        "ms\":null}}");
    fake_free(q);
    fake.held_us = -1;
    assert_int_equal(fake_ask(BS_GET, "/v1/queues/PAY", "tok-viewer", "", &q), 200);
    assert_non_null(strstr(q->body.p, "\"held_until\":null,\"breaker\":{\"state\":\"half_open\""));
    fake_free(q);
    assert_int_equal(fake_ask(BS_GET, "/v1/queues/OLD", "tok-viewer", "", NULL), 200);
    assert_int_equal(fake_ask(BS_GET, "/v1/queues/NO_SUCH", "tok-viewer", "", NULL), 404);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define T(f) cmocka_unit_test_setup_teardown(f, start, stop)
        T(a_task_is_shown_whole_with_its_numbers_as_text),
        T(what_is_no_task_number_is_404),
        T(filters_reach_the_store_as_they_were_given),
        T(every_text_filter_has_its_own_place),
        T(the_log_shows_transitions_with_what_is_known_of_them),
        T(alerts_show_who_was_told_and_can_be_asked_for_by_whether_they_are_open),
        T(pages_of_alerts_and_audit_end_where_the_store_ends),
        T(an_action_carries_who_why_and_what),
        T(each_path_is_its_own_action),
        T(an_action_without_its_words_is_422),
        T(a_queue_that_moves_money_wants_the_version_that_was_seen),
        T(what_the_store_refuses_keeps_its_meaning),
        T(what_waits_for_the_end_of_a_call_is_202),
        T(an_action_that_finds_no_room_is_503),
        T(a_queue_is_paused_after_the_commit_and_shown),
        T(queues_show_what_is_configured_and_what_is_left),
        T(one_queue_is_shown_with_what_it_holds_and_how_it_runs),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
