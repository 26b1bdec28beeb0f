/* Who gets in, who may what, and what a token of single queues sees. */
#include "api_fake.h"
#include "check.h"

#include "sys/log.h"

#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

static const char submission[] = "{\"biz_type\":\"PAY\",\"biz_id\":\"B\",\"request_id\":\"r\"}";
static const char reason[] = "{\"reason\":\"why\"}";

static int start(void **state)
{
    (void)state;
    fake_start();
    fake.task = (struct bs_task){
        .id = 42, .biz_type = BS_STR("PAY"), .request_id = BS_STR("r"), .state = BS_MANUAL
    };
    return 0;
}

static int stop(void **state)
{
    (void)state;
    fake_stop();
    return 0;
}

static void nothing_but_the_open_three_answers_without_a_token(void **state)
{
    struct fake_request *q;

    (void)state;
    assert_int_equal(fake_ask(BS_GET, "/healthz", NULL, "", NULL), 200);
    assert_int_equal(fake_ask(BS_GET, "/readyz", NULL, "", NULL), 200);
    assert_int_equal(fake_ask(BS_GET, "/metrics", NULL, "", NULL), 200);
    assert_int_equal(fake_ask(BS_GET, "/v1/version", NULL, "", NULL), 401);
    assert_int_equal(fake_ask(BS_POST, "/v1/tasks", NULL, submission, &q), 401);
    assert_string_equal(fake_answered(q, "WWW-Authenticate"), "Bearer realm=\"backstop\"");
    assert_string_equal(q->type, "application/problem+json");
    assert_str(fake_member(q, "code"), "UNAUTHORIZED");
    assert_str(fake_member(q, "type"), "urn:backstop:problem:unauthorized");
    assert_int_equal(fake.sent, 0);
    fake_free(q);
}

static void only_a_valid_token_gets_in(void **state)
{
    static const struct {
        const char *header;
        int status;
    } table[] = {
        { "Bearer tok-viewer", 200 },
        { "bearer tok-viewer", 200 },
        { "Bearer  tok-viewer ", 200 },
        { "Bearer tok-viewerx", 401 },
        { "Bearer tok-viewe", 401 },
        { "Bearer", 401 },
        { "Bearer ", 401 },
        { "Basic tok-viewer", 401 },
        { "tok-viewer", 401 },
        { "Bearer tok-gone", 401 },
        { "Bearer tok-odd", 401 },
        { "", 401 },
    };

    (void)state;
    for (size_t i = 0; i < BS_COUNT(table); i++) {
        struct fake_request *q = fake_request(BS_GET, "/v1/version", NULL, BS_STR(""));

        fake_header(q, "Authorization", table[i].header);
        fake_send(q);
        if (q->status != table[i].status)
            fail_msg("\"%s\": %d", table[i].header, q->status);
        fake_free(q);
    }
}

/* Columns: service, viewer, operator, approver, finance, admin. */
static void every_role_may_what_the_matrix_says(void **state)
{
    static const char *const tokens[] = { "tok-service",  "tok-viewer",  "tok-operator",
                                          "tok-approver", "tok-finance", "tok-admin" };
    static const struct {
        enum bs_method method;
        const char *target, *body;
        int status[6];
    } table[] = {
        { BS_POST, "/v1/tasks", submission, { 201, 403, 403, 403, 403, 201 } },
        { BS_POST, "/v1/tasks/batch", "[]", { 200, 403, 403, 403, 403, 200 } },
        { BS_GET, "/v1/tasks", "", { 200, 200, 200, 200, 200, 200 } },
        { BS_GET, "/v1/tasks/42", "", { 200, 200, 200, 200, 200, 200 } },
        { BS_GET, "/v1/tasks/42/log", "", { 200, 200, 200, 200, 200, 200 } },
        { BS_POST, "/v1/tasks/42/retry", reason, { 403, 403, 200, 403, 403, 200 } },
        { BS_POST, "/v1/tasks/42/hold", reason, { 403, 403, 200, 403, 403, 200 } },
        { BS_POST, "/v1/tasks/42/unhold", reason, { 403, 403, 200, 403, 403, 200 } },
        { BS_GET, "/v1/queues", "", { 200, 200, 200, 200, 200, 200 } },
        { BS_GET, "/v1/queues/PAY", "", { 200, 200, 200, 200, 200, 200 } },
        { BS_POST, "/v1/queues/PAY/pause", reason, { 403, 403, 200, 403, 403, 200 } },
        { BS_POST, "/v1/queues/PAY/resume", reason, { 403, 403, 200, 403, 403, 200 } },
        { BS_GET, "/v1/alerts", "", { 403, 200, 200, 200, 200, 200 } },
        { BS_GET, "/v1/audit", "", { 403, 200, 200, 200, 200, 200 } },
        { BS_GET, "/v1/stats", "", { 200, 200, 200, 200, 200, 200 } },
        { BS_GET, "/v1/tokens", "", { 403, 403, 403, 403, 403, 200 } },
        { BS_POST,
          "/v1/tokens",
          "{\"name\":\"n\",\"role\":\"viewer\"}",
          { 403, 403, 403, 403, 403, 201 } },
        { BS_POST, "/v1/tokens/n/revoke", "", { 403, 403, 403, 403, 403, 200 } },
        { BS_GET, "/v1/version", "", { 200, 200, 200, 200, 200, 200 } },
    };

    (void)state;
    for (size_t i = 0; i < BS_COUNT(table); i++) {
        for (size_t role = 0; role < BS_COUNT(tokens); role++) {
            int status =
                fake_ask(table[i].method, table[i].target, tokens[role], table[i].body, NULL);

            if (status != table[i].status[role])
                fail_msg("%s %s: %d", tokens[role], table[i].target, status);
        }
    }
}

static void a_token_of_single_queues_submits_and_sees_only_those(void **state)
{
    struct fake_request *q;

    (void)state;
    assert_int_equal(fake_ask(BS_POST, "/v1/tasks", "tok-pay", submission, NULL), 201);
    assert_str(fake.last.submit.task->created_by, "pay");
    assert_int_equal(fake.sent, 1);
    assert_int_equal(fake_ask(BS_POST, "/v1/tasks", "tok-pay",
                              "{\"biz_type\":\"MONEY\",\"biz_id\":\"B\",\"request_id\":\"r\"}", &q),
                     403);
    assert_str(fake_member(q, "code"), "FORBIDDEN");
    assert_int_equal(fake.sent, 1);
    fake_free(q);

    assert_int_equal(fake_ask(BS_GET, "/v1/tasks/42", "tok-pay", "", NULL), 200);
    assert_int_equal(fake_ask(BS_GET, "/v1/tasks", "tok-pay", "", NULL), 200);
    assert_int_equal(fake.last_filter.queues_n, 2);
    assert_int_equal(fake_ask(BS_GET, "/v1/tasks?biz_type=NOTE", "tok-pay", "", NULL), 200);
    assert_int_equal(fake_ask(BS_GET, "/v1/tasks?biz_type=MONEY", "tok-pay", "", NULL), 403);
    assert_int_equal(fake_ask(BS_GET, "/v1/tasks", "tok-viewer", "", NULL), 200);
    assert_int_equal(fake.last_filter.queues_n, 0);

    fake.task.biz_type = BS_STR("MONEY");
    assert_int_equal(fake_ask(BS_GET, "/v1/tasks/42", "tok-pay", "", NULL), 404);
    assert_int_equal(fake_ask(BS_GET, "/v1/tasks/42/log", "tok-pay", "", NULL), 404);
    assert_int_equal(fake_ask(BS_POST, "/v1/tasks/42/hold", "tok-op-pay", reason, NULL), 404);
    assert_int_equal(fake_ask(BS_POST, "/v1/queues/NOTE/pause", "tok-op-pay", reason, NULL), 404);
    assert_int_equal(fake_ask(BS_GET, "/v1/audit", "tok-op-pay", "", NULL), 403);
}

static void lists_of_a_token_of_single_queues_leave_the_others_out(void **state)
{
    struct fake_request *q;

    (void)state;
    fake.alerts_n = 3;
    assert_int_equal(fake_ask(BS_GET, "/v1/alerts", "tok-op-pay", "", &q), 200);
    assert_str(
        fake_member(q, "items"),
        "[{\"id\":\"1000\",\"kind\":\"EFFECT_CONFLICT\",\"subject\":null,\"biz_type\":"
        "\"PAY\",\"message\":null,\"task_no\":null,\"count\":2,\"first_at\":null,\"last_"
        "at\":null,\"open\":true,\"recovered_at\":null,\"recovered_message\":null,"
        "\"deliveries\":[{\"deliverer\":\"boss\",\"phase\":\"raised\",\"state\":\"pending\","
        "\"attempts\":3,\"next_at\":\"2026-11-30T16:00:00.000000Z\",\"sent_at\":null,"
        "\"code\":\"HTTP_503\",\"message\":null},{\"deliverer\":\"ops\",\"phase\":\"recovered\","
        "\"state\":\"sent\",\"attempts\":1,\"next_at\":null,\"sent_at\":null,\"code\":null,"
        "\"message\":null}]}]");
    fake_free(q);
    assert_int_equal(fake_ask(BS_GET, "/v1/stats", "tok-op-pay", "", &q), 200);
    assert_str(
        fake_member(q, "items"),
        "[{\"biz_type\":\"PAY\",\"counts\":{\"WAITING\":0,\"PROCESSING\":0,\"RETRY\":0,"
        "\"SUCCESS\":3,\"FAILED\":0,\"MANUAL\":0,\"CLOSED\":0},\"unknown\":0,\"exposure\":[],"
        "\"amounts\":[{\"task_status\":\"SUCCESS\",\"currency\":\"CNY\",\"count\":3,"
        "\"amount\":\"9007199254740995\"}],\"oldest_due\":\"2026-09-21T14:11:50.000000Z\","
        "\"oldest_manual\":\"2026-09-21T12:13:20.000000Z\"}]");
    fake_free(q);
    assert_int_equal(fake_ask(BS_GET, "/v1/queues", "tok-op-pay", "", &q), 200);
    assert_null(strstr(q->body.p, "MONEY"));
    assert_null(strstr(q->body.p, "OLD"));
    assert_non_null(strstr(q->body.p, "\"biz_type\":\"PAY\""));
    fake_free(q);
    assert_int_equal(fake_ask(BS_GET, "/v1/queues/PAY", "tok-op-pay", "", NULL), 200);
    assert_int_equal(fake_ask(BS_GET, "/v1/queues/MONEY", "tok-op-pay", "", NULL), 404);
}

static int ask_locally(uint32_t uid, const char *token, const char *operator)
{
    struct fake_request *q = fake_request(BS_POST, "/v1/tasks/42/hold", token, bs_str_of(reason));

    q->r.local = true;
    q->r.peer_uid = uid;
    if (operator)
        fake_header(q, "Backstop-Operator", operator);
    fake_send(q);
    int status = q->status;
    fake_free(q);
    return status;
}

static void root_and_the_own_user_are_admins_over_the_socket(void **state)
{
    (void)state;
    assert_int_equal(ask_locally(0, NULL, NULL), 200);
    assert_str(fake.last.act.operator, "cli:0");
    assert_int_equal(ask_locally((uint32_t)geteuid(), NULL, "Wang Fang"), 200);
    assert_str(fake.last.act.operator, "Wang Fang");
    assert_int_equal(ask_locally((uint32_t)geteuid() + 1, NULL, NULL), 401);
    assert_int_equal(ask_locally((uint32_t)geteuid() + 1, "tok-operator", NULL), 200);
    assert_str(fake.last.act.operator, "operator");
    assert_int_equal(ask_locally(0, "tok-viewer", NULL), 403);
    assert_int_equal(ask_locally(0, "tok-operator", "Wang Fang"), 400);
    assert_int_equal(ask_locally(0, NULL, ""), 400);
    assert_int_equal(ask_locally(0, NULL, "a\nb"), 400);
    assert_int_equal(ask_locally(0, NULL, "\xff"), 400);
}

static void nobody_names_himself_over_tcp(void **state)
{
    struct fake_request *q =
        fake_request(BS_POST, "/v1/tasks/42/hold", "tok-operator", bs_str_of(reason));

    (void)state;
    fake_header(q, "Backstop-Operator", "somebody");
    fake_send(q);
    assert_int_equal(q->status, 400);
    assert_str(fake_member(q, "code"), "BAD_HEADER");
    assert_int_equal(fake.sent, 0);
    fake_free(q);
}

/* The store's side of TOKEN_ADD and TOKEN_REVOKE. */
static void keep_token(struct bs_op *op)
{
    if (op->kind == BS_OP_TOKEN_ADD) {
        fake.tokens[fake.tokens_n++] = (struct bs_token_row){ .name = BS_STR("new"),
                                                              .role = BS_STR("viewer"),
                                                              .hash = op->token_add.hash };
    } else {
        fake.tokens[fake.tokens_n - 1].revoked_at.us = 7;
    }
    atomic_fetch_add(&fake.tokens_version, 1);
}

static void a_new_token_works_at_once_and_a_revoked_one_no_more(void **state)
{
    struct fake_request *q;
    char token[BS_TOKEN_TEXT + 1];

    (void)state;
    fake.apply = keep_token;
    assert_int_equal(fake_ask(BS_POST, "/v1/tokens", "tok-admin",
                              "{\"name\":\"new\",\"role\":\"viewer\",\"queues\":[\"PAY\",\"A.b\"]}",
                              &q),
                     201);
    struct bs_str text = fake_member(q, "token");
    assert_int_equal(text.n, BS_TOKEN_TEXT);
    assert_memory_equal(text.p, "bst_", 4);
    assert_str(fake_member(q, "queues"), "[\"PAY\",\"A.b\"]");
    assert_str(fake.last.token_add.queues, "PAY,A.b");
    assert_string_equal(fake_answered(q, "Cache-Control"), "no-store");
    memcpy(token, text.p, BS_TOKEN_TEXT);
    token[BS_TOKEN_TEXT] = '\0';
    fake_free(q);

    assert_int_equal(fake_ask(BS_GET, "/v1/version", token, "", NULL), 200);
    assert_int_equal(fake_ask(BS_POST, "/v1/tokens/new/revoke", "tok-admin", "", NULL), 200);
    assert_int_equal(fake_ask(BS_GET, "/v1/version", token, "", NULL), 401);
    assert_int_equal(fake_ask(BS_GET, "/v1/version", "tok-viewer", "", NULL), 200);
}

static void a_token_may_be_added_and_revoked_with_a_reason(void **state)
{
    static const char long_reason[] = "{\"name\":\"n\",\"role\":\"viewer\",\"reason\":\"%0513d\"}";
    static const char *const bad[] = { "{\"reason\":\" \"}", "{\"reason\":\"a\\u0000b\"}",
                                       "{\"reason\":5}", "{\"raeson\":\"x\"}" };
    char body[1024];

    (void)state;
    fake.apply = keep_token;
    assert_int_equal(fake_ask(BS_POST, "/v1/tokens", "tok-admin",
                              "{\"name\":\"new\",\"role\":\"viewer\",\"reason\":\"a shop\"}", NULL),
                     201);
    assert_str(fake.last.token_add.reason, "a shop");
    snprintf(body, sizeof(body), long_reason, 0);
    assert_int_equal(fake_ask(BS_POST, "/v1/tokens", "tok-admin", body, NULL), 422);
    for (size_t i = 0; i < BS_COUNT(bad); i++)
        assert_int_equal(fake_ask(BS_POST, "/v1/tokens/new/revoke", "tok-admin", bad[i], NULL),
                         422);
    assert_int_equal(fake_ask(BS_POST, "/v1/tokens/new/revoke", "tok-admin", "{", NULL), 400);
    assert_int_equal(fake.sent, 1);
    assert_int_equal(fake_ask(BS_POST, "/v1/tokens/new/revoke", "tok-admin",
                              "{\"reason\":\"shown around\"}", NULL),
                     200);
    assert_str(fake.last.token_revoke.reason, "shown around");
}

static void a_token_revoked_elsewhere_is_refused_within_two_seconds(void **state)
{
    struct timespec until;

    (void)state;
    assert_int_equal(fake_ask(BS_GET, "/v1/version", "tok-viewer", "", NULL), 200);
    fake.tokens[1].revoked_at.us = 9;
    atomic_fetch_add(&fake.tokens_version, 1);
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += 2;
    for (;;) {
        struct timespec now;

        if (fake_ask(BS_GET, "/v1/version", "tok-viewer", "", NULL) == 401)
            break;
        clock_gettime(CLOCK_MONOTONIC, &now);
        if (now.tv_sec > until.tv_sec ||
            (now.tv_sec == until.tv_sec && now.tv_nsec > until.tv_nsec))
            fail_msg("still accepted");
        nanosleep(&(struct timespec){ 0, 5000000 }, NULL);
    }
}

static void a_bad_wish_for_a_token_is_explained(void **state)
{
    static const struct {
        const char *body, *field, *code;
    } table[] = {
        { "{\"role\":\"viewer\"}", "name", "REQUIRED" },
        { "{\"name\":\"a b\",\"role\":\"viewer\"}", "name", "BAD_FORMAT" },
        { "{\"name\":\"a\\u0000b\",\"role\":\"viewer\"}", "name", "BAD_FORMAT" },
        { "{\"name\":\"a\"}", "role", "REQUIRED" },
        { "{\"name\":\"a\",\"role\":\"king\"}", "role", "UNKNOWN_VALUE" },
        { "{\"name\":\"a\",\"role\":\"none\"}", "role", "UNKNOWN_VALUE" },
        { "{\"name\":\"a\",\"role\":\"viewer\",\"queues\":\"PAY\"}", "queues", "WRONG_TYPE" },
        { "{\"name\":\"a\",\"role\":\"viewer\",\"queues\":[1]}", "queues", "BAD_FORMAT" },
        { "{\"name\":\"a\",\"role\":\"viewer\",\"queues\":[\"A,B\"]}", "queues", "BAD_FORMAT" },
        { "{\"name\":\"a\",\"role\":\"viewer\",\"queues\":[\"\"]}", "queues", "BAD_FORMAT" },
    };

    (void)state;
    for (size_t i = 0; i < BS_COUNT(table); i++) {
        struct fake_request *q;

        assert_int_equal(fake_ask(BS_POST, "/v1/tokens", "tok-admin", table[i].body, &q), 422);
        if (!strstr(q->body.p, bs_arena_fmt(&q->r.arena, "{\"field\":\"%s\",\"code\":\"%s\"",
                                            table[i].field, table[i].code)
                                   .p))
            fail_msg("%s: %s", table[i].body, q->body.p);
        fake_free(q);
    }
    assert_int_equal(fake.sent, 0);
}

static void a_name_that_is_taken_is_a_conflict(struct bs_op *op)
{
    op->rc = BS_E_CONFLICT;
}

static void nobody_there(struct bs_op *op)
{
    op->rc = BS_E_NOT_FOUND;
}

static void the_store_has_the_last_word_on_names_of_tokens(void **state)
{
    struct fake_request *q;

    (void)state;
    fake.apply = a_name_that_is_taken_is_a_conflict;
    assert_int_equal(
        fake_ask(BS_POST, "/v1/tokens", "tok-admin", "{\"name\":\"n\",\"role\":\"viewer\"}", &q),
        409);
    assert_str(fake_member(q, "code"), "NAME_TAKEN");
    assert_str(fake_member(q, "token"), "");
    fake_free(q);
    fake.apply = nobody_there;
    assert_int_equal(fake_ask(BS_POST, "/v1/tokens/n/revoke", "tok-admin", "", NULL), 404);
}

static uint32_t lines_in(int fd, const char *word)
{
    static char text[1 << 20];
    ssize_t n = pread(fd, text, sizeof(text) - 1, 0);
    uint32_t lines = 0;

    assert_true(n >= 0);
    text[n] = '\0';
    for (const char *p = strstr(text, word); p; p = strstr(p + 1, word))
        lines++;
    return lines;
}

/* Without a token one can ask as often as one likes; the log must not grow as fast. */
static void strangers_do_not_fill_the_log(void **state)
{
    int fd = memfd_create("log", MFD_CLOEXEC);

    (void)state;
    assert_true(fd >= 0);
    bs_log_setup(fd, 1, BS_LOG_INFO);
    for (int i = 0; i < 300; i++)
        assert_int_equal(fake_ask(BS_GET, "/v1/tasks", NULL, "", NULL), 401);
    assert_in_range(lines_in(fd, "UNAUTHORIZED"), 20, 60);
    for (int i = 0; i < 100; i++)
        assert_int_equal(fake_ask(BS_GET, "/v1/audit", "tok-service", "", NULL), 403);
    assert_int_equal(lines_in(fd, "FORBIDDEN"), 100);
    usleep(1100000);
    assert_int_equal(fake_ask(BS_GET, "/v1/tasks", NULL, "", NULL), 401);
    assert_in_range(lines_in(fd, "left_out"), 1, 3);
    bs_log_setup(2, 1, BS_LOG_ERROR + 1);
    close(fd);
}

/* It could make one that is kept to nothing. */
static void an_admin_of_single_queues_has_no_right_to_tokens(void **state)
{
    static const char body[] = "{\"name\":\"n\",\"role\":\"admin\"}";
    struct fake_request *q;

    (void)state;
    assert_int_equal(fake_ask(BS_POST, "/v1/tokens", "tok-admin-pay", body, &q), 403);
    assert_str(fake_member(q, "code"), "FORBIDDEN");
    fake_free(q);
    assert_int_equal(fake_ask(BS_POST, "/v1/tokens/n/revoke", "tok-admin-pay", "", NULL), 403);
    assert_int_equal(fake_ask(BS_GET, "/v1/tokens", "tok-admin-pay", "", NULL), 403);
    assert_int_equal(fake.sent, 0);
    assert_int_equal(fake_ask(BS_GET, "/v1/queues", "tok-admin-pay", "", NULL), 200);
}

static void listed_tokens_show_no_hash(void **state)
{
    struct fake_request *q;

    (void)state;
    assert_int_equal(fake_ask(BS_GET, "/v1/tokens", "tok-admin", "", &q), 200);
    assert_non_null(strstr(q->body.p, "{\"name\":\"pay\",\"role\":\"service\",\"queues\":[\"NOTE\","
                                      "\"PAY\"],\"created_at\":\"1970-01-01T00:00:01.000000Z\","
                                      "\"revoked_at\":null}"));
    assert_null(strstr(q->body.p, "hash"));
    fake_free(q);
}

static void without_the_tokens_nobody_is_judged(void **state)
{
    struct fake_request *q;

    (void)state;
    fake_stop();
    fake_start_with(BS_E_UNAVAILABLE);
    assert_int_equal(fake_ask(BS_GET, "/v1/version", "tok-viewer", "", &q), 503);
    assert_string_equal(fake_answered(q, "Retry-After"), "1");
    fake_free(q);
    assert_int_equal(fake_ask(BS_GET, "/v1/version", NULL, "", NULL), 401);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(nothing_but_the_open_three_answers_without_a_token, start,
                                        stop),
        cmocka_unit_test_setup_teardown(only_a_valid_token_gets_in, start, stop),
        cmocka_unit_test_setup_teardown(every_role_may_what_the_matrix_says, start, stop),
        cmocka_unit_test_setup_teardown(a_token_of_single_queues_submits_and_sees_only_those, start,
                                        stop),
        cmocka_unit_test_setup_teardown(lists_of_a_token_of_single_queues_leave_the_others_out,
                                        start, stop),
        cmocka_unit_test_setup_teardown(root_and_the_own_user_are_admins_over_the_socket, start,
                                        stop),
        cmocka_unit_test_setup_teardown(nobody_names_himself_over_tcp, start, stop),
        cmocka_unit_test_setup_teardown(a_new_token_works_at_once_and_a_revoked_one_no_more, start,
                                        stop),
        cmocka_unit_test_setup_teardown(a_token_may_be_added_and_revoked_with_a_reason, start,
                                        stop),
        cmocka_unit_test_setup_teardown(a_token_revoked_elsewhere_is_refused_within_two_seconds,
                                        start, stop),
        cmocka_unit_test_setup_teardown(a_bad_wish_for_a_token_is_explained, start, stop),
        cmocka_unit_test_setup_teardown(the_store_has_the_last_word_on_names_of_tokens, start,
                                        stop),
        cmocka_unit_test_setup_teardown(strangers_do_not_fill_the_log, start, stop),
        cmocka_unit_test_setup_teardown(an_admin_of_single_queues_has_no_right_to_tokens, start,
                                        stop),
        cmocka_unit_test_setup_teardown(listed_tokens_show_no_hash, start, stop),
        cmocka_unit_test_setup_teardown(without_the_tokens_nobody_is_judged, start, stop),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
