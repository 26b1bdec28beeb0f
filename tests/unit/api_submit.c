/* Submissions over HTTP: what is answered, when, and that an answer which comes too late harms
 * nobody. */
#include "api_fake.h"
#include "check.h"

static const char one[] = "{\"biz_type\":\"PAY\",\"biz_id\":\"B\",\"request_id\":\"r-1\"}";

static int start(void **state)
{
    (void)state;
    fake_start();
    fake.task = (struct bs_task){ .id = 42,
                                  .biz_type = BS_STR("PAY"),
                                  .request_id = BS_STR("r-1"),
                                  .biz_id = BS_STR("first"),
                                  .state = BS_SUCCESS };
    return 0;
}

static int stop(void **state)
{
    (void)state;
    fake_stop();
    return 0;
}

static struct fake_request *submission(const char *body)
{
    return fake_request(BS_POST, "/v1/tasks", "tok-service", bs_str_of(body));
}

static void a_new_task_is_201_with_the_whole_thing(void **state)
{
    struct fake_request *q = submission(
        "{\"biz_type\":\"PAY\",\"biz_id\":\"B\",\"request_id\":\"r-1\",\"order_no\":\"1\","
        "\"amount\":9007199254740995,\"currency\":\"CNY\",\"payload\": [1e400, -0.0 ]}");

    (void)state;
    fake_send(q);
    assert_int_equal(q->status, 201);
    assert_string_equal(q->type, "application/json");
    assert_int_equal(fake.last_rank, BS_RANK_INTAKE);
    struct bs_str wanted = bs_arena_fmt(
        &q->r.arena,
        "{\"task_no\":\"%lld\",\"request_id\":\"r-1\",\"biz_type\":\"PAY\",\"merchant_no\":"
        "\"default\",\"biz_id\":\"B\",\"effect_key\":\"B\",\"serial_key\":\"o:default:1\","
        "\"order_no\":\"1\",\"payment_no\":null,\"channel\":null,\"channel_trade_no\":null,"
        "\"refund_no\":null,\"source\":\"API\",\"parent_task_no\":null,\"amount\":"
        "\"9007199254740995\",\"currency\":\"CNY\",\"task_status\":\"WAITING\",\"priority\":1,",
        (long long)fake.last.id);
    assert_memory_equal(q->body.p, wanted.p, wanted.n);
    assert_str(fake_member(q, "payload"), "[1e400, -0.0 ]");
    assert_str(fake_member(q, "version"), "1");
    assert_str(fake_member(q, "retry_count"), "0");
    assert_str(fake_member(q, "created_by"), "service");
    assert_str(fake_member(q, "outcome_unknown"), "false");
    assert_str(fake_member(q, "extra_data"), "null");
    assert_string_equal(fake_answered(q, "Location"),
                        bs_arena_fmt(&q->r.arena, "/v1/tasks/%lld", (long long)fake.last.id).p);
    fake_free(q);
}

static void a_payload_that_is_no_json_comes_back_as_base64(void **state)
{
    struct fake_request *q = submission("{\"biz_type\":\"PAY\",\"biz_id\":\"B\",\"request_id\":"
                                        "\"r\",\"payload_base64\":\"AP8KYQ==\"}");

    (void)state;
    fake_send(q);
    assert_int_equal(q->status, 201);
    assert_str(fake_member(q, "payload_base64"), "AP8KYQ==");
    assert_str(fake_member(q, "payload"), "");
    fake_free(q);
}

static enum bs_submitted what;
static bs_rc op_rc;

static void say(struct bs_op *op)
{
    op->rc = op_rc;
    op->submit.ret_what = what;
    op->submit.ret_task_id = 42;
    if (op_rc != BS_OK)
        BS_IGNORE(bs_fail(&op->err, op_rc, "said the store"), "filled for the answer");
}

static void a_repeat_is_200_with_the_first_task(void **state)
{
    static const struct {
        enum bs_submitted what;
        const char *duplicate;
    } table[] = { { BS_SUBMITTED_DUPLICATE_REQUEST, "request" },
                  { BS_SUBMITTED_DUPLICATE_EFFECT, "effect" } };

    (void)state;
    fake.apply = say;
    op_rc = BS_OK;
    for (size_t i = 0; i < BS_COUNT(table); i++) {
        struct fake_request *q = submission(one);

        what = table[i].what;
        fake_send(q);
        assert_int_equal(q->status, 200);
        assert_str(fake_member(q, "task_no"), "42");
        assert_str(fake_member(q, "biz_id"), "first");
        assert_str(fake_member(q, "task_status"), "SUCCESS");
        assert_slice(fake_member(q, "duplicate"), bs_str_of(table[i].duplicate));
        fake_free(q);
    }
}

static void a_repeat_that_cannot_be_read_back_is_200_all_the_same(void **state)
{
    struct fake_request *q = submission(one);

    (void)state;
    fake.apply = say;
    op_rc = BS_OK;
    what = BS_SUBMITTED_DUPLICATE_REQUEST;
    atomic_store(&fake.read_rc, BS_E_UNAVAILABLE);
    fake_send(q);
    assert_int_equal(q->status, 200);
    assert_str(bs_buf_str(&q->body),
               "{\"task_no\":\"42\",\"duplicate\":\"request\",\"partial\":true}");
    fake_free(q);
}

static void a_repeat_does_not_show_the_task_of_another_queue(void **state)
{
    struct fake_request *q = fake_request(BS_POST, "/v1/tasks", "tok-pay", bs_str_of(one));

    (void)state;
    fake.apply = say;
    op_rc = BS_OK;
    what = BS_SUBMITTED_DUPLICATE_REQUEST;
    fake.task.biz_type = BS_STR("MONEY");
    fake_send(q);
    assert_int_equal(q->status, 200);
    assert_str(bs_buf_str(&q->body),
               "{\"task_no\":\"42\",\"duplicate\":\"request\",\"partial\":true}");
    fake_free(q);
}

static void other_content_under_a_key_is_409_and_names_the_first(void **state)
{
    static const struct {
        enum bs_submitted what;
        bs_rc rc;
        const char *code, *type;
    } table[] = {
        { BS_SUBMITTED_CONFLICT_REQUEST, BS_OK, "REQUEST_CONFLICT",
          "urn:backstop:problem:request-conflict" },
        { BS_SUBMITTED_CONFLICT_EFFECT, BS_OK, "EFFECT_CONFLICT",
          "urn:backstop:problem:effect-conflict" },
        { BS_SUBMITTED_CONFLICT_REQUEST, BS_E_CONFLICT, "REQUEST_CONFLICT",
          "urn:backstop:problem:request-conflict" },
        { BS_SUBMITTED_CONFLICT_EFFECT, BS_E_CONFLICT, "EFFECT_CONFLICT",
          "urn:backstop:problem:effect-conflict" },
    };

    (void)state;
    fake.apply = say;
    for (size_t i = 0; i < BS_COUNT(table); i++) {
        struct fake_request *q = submission(one);

        what = table[i].what;
        op_rc = table[i].rc;
        fake_send(q);
        assert_int_equal(q->status, 409);
        assert_string_equal(q->type, "application/problem+json");
        assert_slice(fake_member(q, "code"), bs_str_of(table[i].code));
        assert_slice(fake_member(q, "type"), bs_str_of(table[i].type));
        assert_str(fake_member(q, "task_no"), "42");
        assert_str(fake_member(q, "status"), "409");
        fake_free(q);
    }
}

static void what_is_no_json_is_400_and_a_wrong_field_is_422(void **state)
{
    struct fake_request *q;

    (void)state;
    assert_int_equal(fake_ask(BS_POST, "/v1/tasks", "tok-service", "{\"a\":", &q), 400);
    assert_str(fake_member(q, "code"), "NOT_JSON");
    fake_free(q);
    assert_int_equal(fake_ask(BS_POST, "/v1/tasks", "tok-service", "", NULL), 400);
    assert_int_equal(fake_ask(BS_POST, "/v1/tasks", "tok-service", "[]", NULL), 400);
    assert_int_equal(fake_ask(BS_POST, "/v1/tasks", "tok-service",
                              "{\"biz_type\":\"PAY\",\"biz_id\":7,\"request_id\":\"r\"}", &q),
                     422);
    assert_str(fake_member(q, "code"), "INVALID_FIELDS");
    assert_str(fake_member(q, "errors"),
               "[{\"field\":\"biz_id\",\"code\":\"WRONG_TYPE\",\"message\":\"must be a string\"}]");
    fake_free(q);
    assert_int_equal(fake.sent, 0);
}

static int with_key(const char *key, const char *body)
{
    struct fake_request *q = submission(body);

    fake_header(q, "Idempotency-Key", key);
    fake_send(q);
    int status = q->status;
    fake_free(q);
    return status;
}

static void the_idempotency_key_is_the_request_id(void **state)
{
    static const char without[] = "{\"biz_type\":\"PAY\",\"biz_id\":\"B\"}";

    (void)state;
    assert_int_equal(with_key("abc-1", without), 201);
    assert_str(fake.last.submit.task->request_id, "abc-1");
    assert_int_equal(with_key("\"abc-2\"", without), 201);
    assert_str(fake.last.submit.task->request_id, "abc-2");
    assert_int_equal(with_key("r-1", one), 201);
    assert_int_equal(with_key("r-2", one), 422);
    assert_int_equal(with_key("", without), 400);
    assert_int_equal(with_key("\"\"", without), 400);
    assert_int_equal(with_key("\"a", without), 400);
    assert_int_equal(with_key("a b", without), 422);
}

static void a_full_mailbox_is_503_at_once(void **state)
{
    struct fake_request *q = submission(one);

    (void)state;
    fake.committer = FAKE_IS_FULL;
    fake_send(q);
    assert_int_equal(q->status, 503);
    assert_str(fake_member(q, "code"), "BUSY");
    assert_string_equal(fake_answered(q, "Retry-After"), "1");
    fake_free(q);
}

static void a_failing_store_is_503_and_says_that_a_repeat_is_safe(void **state)
{
    static const bs_rc rcs[] = { BS_E_UNAVAILABLE, BS_E_UNKNOWN, BS_E_LIMIT, BS_E_NOMEM };

    (void)state;
    fake.committer = FAKE_FAILS;
    for (size_t i = 0; i < BS_COUNT(rcs); i++) {
        struct fake_request *q = submission(one);

        fake.work_rc = rcs[i];
        fake_send(q);
        assert_int_equal(q->status, 503);
        assert_str(fake_member(q, "code"), "UNAVAILABLE");
        assert_string_equal(fake_answered(q, "Retry-After"), "1");
        assert_non_null(strstr(q->body.p, "safe to send the same request_id again"));
        fake_free(q);
    }
}

static void a_row_that_the_store_refuses_fails_alone(void **state)
{
    struct fake_request *q = submission(one);

    (void)state;
    fake.apply = say;
    what = BS_SUBMITTED_CREATED;
    op_rc = BS_E_INVALID;
    fake_send(q);
    assert_int_equal(q->status, 422);
    assert_str(fake_member(q, "detail"), "said the store");
    fake_free(q);
}

static void after_two_seconds_the_end_is_called_unknown(void **state)
{
    struct fake_request *q = submission(one);

    (void)state;
    fake.committer = FAKE_HOLDS;
    fake_begin(q);
    assert_true(q->waits);
    assert_false(atomic_load(&q->ready));
    q->on_timeout(&q->r);
    assert_int_equal(q->status, 503);
    assert_str(fake_member(q, "code"), "TIMEOUT");
    assert_string_equal(fake_answered(q, "Retry-After"), "1");
    /* The commit comes after all: the request is given back, nothing is answered twice. */
    fake_let_go(BS_OK);
    fake_wait_ready(q);
    assert_int_equal(q->status, 503);
    fake_free(q);
}

/* A header lies in the connection's memory, which the next request on it takes over. */
static void a_request_id_of_the_header_is_the_request_s_own(void **state)
{
    char header[] = "\"first-1\"";
    struct fake_request *q = submission("{\"biz_type\":\"PAY\",\"biz_id\":\"B\"}");

    (void)state;
    fake.committer = FAKE_HOLDS;
    fake_header(q, "Idempotency-Key", header);
    fake_begin(q);
    q->on_timeout(&q->r);
    memcpy(header, "\"other-2\"", sizeof(header));
    assert_str(fake.held->ops[0]->submit.task->request_id, "first-1");
    fake_let_go(BS_OK);
    fake_wait_ready(q);
    fake_free(q);
}

static void an_answer_that_nobody_waits_for_is_freed(void **state)
{
    struct fake_request *q = submission(one);

    (void)state;
    fake.apply = say;
    op_rc = BS_OK;
    what = BS_SUBMITTED_DUPLICATE_REQUEST;
    atomic_store(&fake.reads_wait, true);
    fake_begin(q);
    q->on_timeout(&q->r);
    assert_int_equal(q->status, 503);
    atomic_store(&fake.reads_wait, false);
    fake_wait_ready(q);
    fake_free(q);
}

static void an_answer_that_wins_by_a_hair_is_the_one_that_is_sent(void **state)
{
    struct fake_request *q = submission(one);

    (void)state;
    fake_begin(q);
    fake_wait_ready(q);
    q->on_timeout(&q->r); /* the server's timer won, but the result is there */
    assert_int_equal(q->status, 201);
    fake_free(q);
}

static void a_stopping_server_answers_who_waits(void **state)
{
    struct fake_request *q = submission(one);

    (void)state;
    fake.committer = FAKE_HOLDS;
    fake_begin(q);
    bs_api_refuse(fake.api, &q->r, 503);
    assert_int_equal(q->status, 503);
    assert_str(fake_member(q, "code"), "STOPPING");
    fake_let_go(BS_E_UNAVAILABLE);
    fake_wait_ready(q);
    fake_free(q);
}

/* ---- batches ---- */

static struct fake_request *batch(const char *type, const char *body)
{
    struct fake_request *q = fake_request(BS_POST, "/v1/tasks/batch", "tok-pay", bs_str_of(body));

    fake_header(q, "Content-Type", type);
    return q;
}

static uint32_t turn;

static void one_of_each(struct bs_op *op)
{
    static const enum bs_submitted whats[] = { BS_SUBMITTED_CREATED, BS_SUBMITTED_DUPLICATE_REQUEST,
                                               BS_SUBMITTED_DUPLICATE_EFFECT,
                                               BS_SUBMITTED_CONFLICT_REQUEST,
                                               BS_SUBMITTED_CONFLICT_EFFECT };

    op->submit.ret_what = whats[turn++ % BS_COUNT(whats)];
    if (op->submit.ret_what != BS_SUBMITTED_CREATED)
        op->submit.ret_task_id = 42;
}

static void every_item_of_a_batch_has_its_own_end(void **state)
{
    struct fake_request *q =
        batch("application/x-ndjson; charset=utf-8",
              "{\"biz_type\":\"PAY\",\"biz_id\":\"B\",\"request_id\":\"r0\"}\n"
              "not json\n"
              "{\"biz_type\":\"PAY\",\"biz_id\":\"B\",\"request_id\":\"r1\"}\n"
              "{\"biz_type\":\"PAY\",\"biz_id\":\"B\",\"request_id\":\"r2\"}\n"
              "{\"biz_type\":\"MONEY\",\"biz_id\":\"B\",\"request_id\":\"r3\"}\n"
              "{\"biz_type\":\"PAY\",\"biz_id\":\"\",\"request_id\":\"r4\"}\n"
              "{\"biz_type\":\"PAY\",\"biz_id\":\"B\",\"request_id\":\"r5\"}\n"
              "{\"biz_type\":\"PAY\",\"biz_id\":\"B\",\"request_id\":\"r6\"}\n");

    (void)state;
    turn = 0;
    fake.apply = one_of_each;
    fake_send(q);
    assert_int_equal(q->status, 200);
    assert_int_equal(fake.sent, 1);
    struct bs_str items = fake_member(q, "items");
    struct bs_str *texts = NULL;
    uint32_t n = 0;
    assert_int_equal(bs_json_read_array(&q->r.arena, items, 10, &texts, &n, NULL), BS_OK);
    assert_int_equal(n, 8);
    struct bs_str first = BS_STR("{\"index\":0,\"status\":201,\"task_no\":\"");
    assert_memory_equal(texts[0].p, first.p, first.n);
    struct bs_str second = BS_STR("{\"index\":1,\"status\":422,\"code\":\"NOT_JSON\",\"message\":");
    assert_memory_equal(texts[1].p, second.p, second.n);
    assert_str(texts[2],
               "{\"index\":2,\"status\":200,\"task_no\":\"42\",\"duplicate\":\"request\"}");
    assert_str(texts[3],
               "{\"index\":3,\"status\":200,\"task_no\":\"42\",\"duplicate\":\"effect\"}");
    assert_str(texts[4], "{\"index\":4,\"status\":403,\"code\":\"FORBIDDEN\",\"message\":\"the "
                         "token may not submit to this queue\"}");
    assert_str(texts[5], "{\"index\":5,\"status\":422,\"code\":\"BAD_FORMAT\",\"field\":\"biz_id\","
                         "\"message\":\"must not be empty\"}");
    assert_str(texts[6],
               "{\"index\":6,\"status\":409,\"task_no\":\"42\",\"code\":\"REQUEST_CONFLICT\"}");
    assert_str(texts[7],
               "{\"index\":7,\"status\":409,\"task_no\":\"42\",\"code\":\"EFFECT_CONFLICT\"}");
    fake_free(q);
}

static void a_batch_is_refused_whole_only_as_a_whole(void **state)
{
    static const struct {
        const char *type, *body;
        int status;
        const char *code;
    } table[] = {
        { "application/json", "[]", 200, "" },
        { "application/x-ndjson", "\n\n", 200, "" },
        { "application/json", "{}", 400, "NOT_JSON" },
        { "application/json", "[{}", 400, "NOT_JSON" },
        { "application/json", "", 400, "NOT_JSON" },
        { "text/plain", "[]", 415, "UNSUPPORTED_MEDIA_TYPE" },
    };

    (void)state;
    for (size_t i = 0; i < BS_COUNT(table); i++) {
        struct fake_request *q = batch(table[i].type, table[i].body);

        fake_send(q);
        assert_int_equal(q->status, table[i].status);
        assert_slice(fake_member(q, "code"), bs_str_of(table[i].code));
        fake_free(q);
    }
    assert_int_equal(fake.sent, 0);
}

static void more_than_a_thousand_items_are_too_many(void **state)
{
    BS_CLEANUP(bs_buf_free) struct bs_buf b = { .max = 1 << 20 };

    (void)state;
    for (int i = 0; i < 1001; i++)
        bs_buf_fmt(&b, "{\"biz_type\":\"PAY\",\"biz_id\":\"B\",\"request_id\":\"r%d\"}\n", i);
    struct fake_request *q = batch("application/x-ndjson", b.p);
    fake_send(q);
    assert_int_equal(q->status, 413);
    fake_free(q);
    assert_int_equal(fake.sent, 0);
}

static void a_thousand_items_are_one_work(void **state)
{
    BS_CLEANUP(bs_buf_free) struct bs_buf b = { .max = 1 << 20 };

    (void)state;
    for (int i = 0; i < 1000; i++)
        bs_buf_fmt(&b, "%c{\"biz_type\":\"PAY\",\"biz_id\":\"B\",\"request_id\":\"r%d\"}",
                   i ? ',' : '[', i);
    bs_buf_addc(&b, ']');
    struct fake_request *q = batch("application/json", b.p);
    fake_send(q);
    assert_int_equal(q->status, 200);
    assert_int_equal(fake.sent, 1);
    assert_non_null(strstr(q->body.p, "{\"index\":999,\"status\":201,"));
    fake_free(q);
}

static void a_batch_whose_end_is_unknown_is_503(void **state)
{
    struct fake_request *q = batch("application/json", "[]");

    (void)state;
    q->r.body = BS_STR("[{\"biz_type\":\"PAY\",\"biz_id\":\"B\",\"request_id\":\"r\"}]");
    fake.committer = FAKE_FAILS;
    fake.work_rc = BS_E_UNKNOWN;
    fake_send(q);
    assert_int_equal(q->status, 503);
    assert_string_equal(fake_answered(q, "Retry-After"), "1");
    fake_free(q);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define T(f) cmocka_unit_test_setup_teardown(f, start, stop)
        T(a_new_task_is_201_with_the_whole_thing),
        T(a_payload_that_is_no_json_comes_back_as_base64),
        T(a_repeat_is_200_with_the_first_task),
        T(a_repeat_that_cannot_be_read_back_is_200_all_the_same),
        T(a_repeat_does_not_show_the_task_of_another_queue),
        T(other_content_under_a_key_is_409_and_names_the_first),
        T(what_is_no_json_is_400_and_a_wrong_field_is_422),
        T(the_idempotency_key_is_the_request_id),
        T(a_full_mailbox_is_503_at_once),
        T(a_failing_store_is_503_and_says_that_a_repeat_is_safe),
        T(a_row_that_the_store_refuses_fails_alone),
        T(after_two_seconds_the_end_is_called_unknown),
        T(a_request_id_of_the_header_is_the_request_s_own),
        T(an_answer_that_nobody_waits_for_is_freed),
        T(an_answer_that_wins_by_a_hair_is_the_one_that_is_sent),
        T(a_stopping_server_answers_who_waits),
        T(every_item_of_a_batch_has_its_own_end),
        T(a_batch_is_refused_whole_only_as_a_whole),
        T(more_than_a_thousand_items_are_too_many),
        T(a_thousand_items_are_one_work),
        T(a_batch_whose_end_is_unknown_is_503),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
