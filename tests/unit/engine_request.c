/* What a handler and a look-up are sent: addresses, headers, bodies. */
#include "core_test.h"

#include "base/text.h"
#include "engine/request.h"
#include "sys/crypto.h"
#include "json/read.h"

static struct bs_task whole_task(void)
{
    struct bs_task t = running_task();

    t.id = 1234567890123;
    t.order_no = S("A 10/1");
    t.effect_key = S("b-1");
    t.source = BS_SRC_API;
    t.money = (struct bs_money){ 6410, "CNY" };
    t.attempt_no = 3;
    t.lease_token = 77;
    return t;
}

static void an_address_has_its_placeholders_percent_encoded(void **state)
{
    static const struct {
        const char *pattern, *order_no, *want;
    } rows[] = {
        { "http://x/orders/{order_no}", "A1001", "http://x/orders/A1001" },
        { "http://x/o?no={order_no}&m={merchant_no}", "A1", "http://x/o?no=A1&m=default" },
        { "http://x/{order_no}", "a/b?c&d=e#f%g h+i",
          "http://x/a%2Fb%3Fc%26d%3De%23f%25g%20h%2Bi" },
        { "http://x/{order_no}", "-._~", "http://x/-._~" },
        { "http://x/{order_no}/{order_no}", "7", "http://x/7/7" },
        { "http://x/{order_no}", "\xe8\xae\xa2", "http://x/%E8%AE%A2" },
        { "http://x/{{order_no}", "7", NULL },
        { "http://x/{order_no", "7", "http://x/{order_no" },
        { "http://x/{}", "7", "http://x/{}" },
    };
    (void)state;

    for (size_t i = 0; i < BS_COUNT(rows); i++) {
        BS_CLEANUP(bs_arena_free) struct bs_arena a = { 0 };
        struct bs_task t = whole_task();
        struct bs_str missing = { 0 };
        const char *url = NULL;

        t.order_no = bs_str_of(rows[i].order_no);
        bs_rc rc = bs_request_url(&a, bs_str_of(rows[i].pattern), &t, &url, &missing);
        if (rows[i].want) {
            assert_int_equal(rc, BS_OK);
            assert_string_equal(url, rows[i].want);
        } else {
            assert_int_equal(rc, BS_E_NOT_FOUND);
            assert_text(missing, "{order_no");
        }
    }
}

static void an_address_names_the_member_that_the_task_lacks(void **state)
{
    BS_CLEANUP(bs_arena_free) struct bs_arena a = { 0 };
    struct bs_task t = whole_task();
    struct bs_str missing = { 0 };
    const char *url = NULL;
    (void)state;

    assert_int_equal(bs_request_url(&a, S("http://x/{payment_no}"), &t, &url, &missing),
                     BS_E_NOT_FOUND);
    assert_text(missing, "payment_no");
    assert_null(url);
}

static void an_address_refuses_a_member_that_would_step_up_its_path(void **state)
{
    BS_CLEANUP(bs_arena_free) struct bs_arena a = { 0 };
    struct bs_task t = whole_task();
    struct bs_str missing = { 0 };
    const char *url = NULL;
    (void)state;

    t.order_no = S("..");
    assert_int_equal(bs_request_url(&a, S("http://x/o/{order_no}"), &t, &url, &missing),
                     BS_E_NOT_FOUND);
    assert_text(missing, "order_no");
    t.order_no = S("...");
    assert_int_equal(bs_request_url(&a, S("http://x/o/{order_no}"), &t, &url, &missing), BS_OK);
    assert_string_equal(url, "http://x/o/%2E%2E%2E");
}

static void a_header_value_cannot_begin_a_second_header(void **state)
{
    BS_CLEANUP(bs_arena_free) struct bs_arena a = { 0 };
    const char *items[4];
    struct bs_headers h = { items, 0, 4, &a };
    (void)state;

    bs_header_add(&h, "Idempotency-Key", S("a\r\nX: y\x7f"));
    bs_header_add(&h, "Plain", S("req-1!~"));
    assert_false(a.failed);
    assert_int_equal(h.n, 2);
    assert_string_equal(items[0], "Idempotency-Key: a%0D%0AX: y%7F");
    assert_string_equal(items[1], "Plain: req-1!~");
}

static void a_trace_is_one_for_the_task_and_its_span_one_for_the_attempt(void **state)
{
    BS_CLEANUP(bs_arena_free) struct bs_arena a = { 0 };
    const char *items[8];
    struct bs_headers h = { items, 0, 8, &a };
    struct bs_task t = whole_task();
    (void)state;

    bs_header_trace(&h, &t, 5);
    bs_header_trace(&h, &t, 5);
    t.attempt_no++;
    bs_header_trace(&h, &t, 5);
    t.id++;
    bs_header_trace(&h, &t, 5);
    assert_int_equal(strlen(items[0]), strlen("traceparent: ") + 55);
    assert_memory_equal(items[0], "traceparent: 00-", 16);
    assert_string_equal(items[0] + 13 + 52, "-01");
    assert_string_equal(items[0], items[1]);
    assert_memory_equal(items[0], items[2], 13 + 35);
    assert_string_not_equal(items[0], items[2]);
    assert_memory_not_equal(items[2] + 16, items[3] + 16, 32);
}

static void a_signature_is_that_of_standard_webhooks(void **state)
{
    BS_CLEANUP(bs_arena_free) struct bs_arena a = { 0 };
    BS_CLEANUP(bs_buf_free) struct bs_buf b64 = { .max = 64 };
    const char *items[4];
    struct bs_headers h = { items, 0, 4, &a };
    struct bs_secret secret = { S("key") };
    struct bs_task t = whole_task();
    struct bs_sha256 mac = bs_hmac_sha256(S("key"), S("1234567890123.1767225600.{}"));
    struct bs_str raw = { (const char *)mac.b, sizeof(mac.b) };
    (void)state;

    bs_base64_write(&b64, raw);
    bs_header_sign(&h, &secret, &t, NOW, S("{}"));
    assert_int_equal(h.n, 3);
    assert_string_equal(items[0], "webhook-id: 1234567890123");
    assert_string_equal(items[1], "webhook-timestamp: 1767225600");
    assert_memory_equal(items[2], "webhook-signature: v1,", 22);
    assert_string_equal(items[2] + 22, bs_buf_str(&b64).p);
}

static void without_a_secret_nothing_is_signed(void **state)
{
    BS_CLEANUP(bs_arena_free) struct bs_arena a = { 0 };
    const char *items[4];
    struct bs_headers h = { items, 0, 4, &a };
    struct bs_secret none = { BS_STR_NONE };
    struct bs_task t = whole_task();
    (void)state;

    bs_header_sign(&h, &none, &t, NOW, S("{}"));
    assert_int_equal(h.n, 2);
    assert_string_equal(items[0], "webhook-id: 1234567890123");
}

static void a_body_has_every_member_of_the_contract_in_its_order(void **state)
{
    BS_CLEANUP(bs_buf_free) struct bs_buf b = { .max = BS_REQUEST_BODY_MAX };
    struct bs_task t = whole_task();
    (void)state;

    t.payload = S("{\"a\": 1}");
    t.payload_is_json = true;
    t.outcome_unknown = true;
    assert_int_equal(bs_request_body(&b, &t, S("{\"verdict\":\"go_on\"}"), NULL), BS_OK);
    assert_text(
        bs_buf_str(&b),
        "{\"task_no\":\"1234567890123\",\"request_id\":\"r-1\",\"biz_type\":\"PAY_CALLBACK\","
        "\"merchant_no\":\"default\",\"biz_id\":\"b-1\",\"effect_key\":\"b-1\",\"order_no\":"
        "\"A 10/1\",\"payment_no\":null,\"channel\":null,\"channel_trade_no\":null,"
        "\"refund_no\":null,\"source\":\"API\",\"attempt\":3,\"outcome_unknown\":false,"
        "\"amount\":\"6410\",\"currency\":\"CNY\",\"payload\":{\"a\": 1},"
        "\"order\":{\"verdict\":\"go_on\"}}");
}

static void a_body_without_payload_order_and_amount_says_null(void **state)
{
    BS_CLEANUP(bs_buf_free) struct bs_buf b = { .max = BS_REQUEST_BODY_MAX };
    struct bs_task t = whole_task();
    (void)state;

    t.money = (struct bs_money){ 0 };
    assert_int_equal(bs_request_body(&b, &t, BS_STR_NONE, NULL), BS_OK);
    assert_contains(bs_buf_str(&b),
                    "\"amount\":null,\"currency\":null,\"payload\":null,\"order\":null}");
}

static void a_payload_is_handed_on_byte_for_byte(void **state)
{
    static const char *const payloads[] = {
        "{\"amount\":1.10,\"id\":12345678901234567890123,\"a\":1,\"a\":2}",
        "[1e400,-0.0]",
        "{\"n\":\"\\ud83d\"}",
        "{\"memo\":\"a\\u0000b\"}",
        "{\"t\":\"\xf0\xa0\xae\xb7\xf0\x9f\x8d\x9c\"}",
        "{ \"spaced\" :\t[ 1 ,\n2 ] }",
        "\"text\"",
        "12.50",
        "null",
        "false",
    };
    (void)state;

    for (size_t i = 0; i < BS_COUNT(payloads); i++) {
        BS_CLEANUP(bs_arena_free) struct bs_arena a = { 0 };
        BS_CLEANUP(bs_buf_free) struct bs_buf b = { .max = BS_REQUEST_BODY_MAX };
        struct bs_task t = whole_task();
        struct bs_json_object o;
        bool found = false;

        t.payload = bs_str_of(payloads[i]);
        t.payload_is_json = true;
        assert_int_equal(bs_request_body(&b, &t, BS_STR_NONE, NULL), BS_OK);
        assert_int_equal(bs_json_read_object(&a, bs_buf_str(&b), 64, &o, NULL), BS_OK);
        for (uint32_t m = 0; m < o.n; m++) {
            if (!bs_str_is(o.members[m].name, "payload"))
                continue;
            found = true;
            assert_text(o.members[m].raw, payloads[i]);
        }
        assert_true(found);
    }
}

static void a_payload_that_is_no_json_goes_as_base64(void **state)
{
    BS_CLEANUP(bs_buf_free) struct bs_buf b = { .max = BS_REQUEST_BODY_MAX };
    struct bs_task t = whole_task();
    (void)state;

    t.payload = S("\x00\xff<x/>");
    assert_int_equal(bs_request_body(&b, &t, BS_STR_NONE, NULL), BS_OK);
    assert_contains(bs_buf_str(&b), "\"payload_base64\":\"AP88eC8+\",\"order\":null}");
    assert_false(contains(bs_buf_str(&b), "\"payload\":"));
}

static void the_largest_payload_fits_as_base64(void **state)
{
    static char bytes[256 << 10];
    BS_CLEANUP(bs_buf_free) struct bs_buf b = { .max = BS_REQUEST_BODY_MAX };
    struct bs_task t = whole_task();
    (void)state;

    memset(bytes, 0xff, sizeof(bytes));
    t.payload = (struct bs_str){ bytes, sizeof(bytes) };
    assert_int_equal(bs_request_body(&b, &t, BS_STR_NONE, NULL), BS_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_address_has_its_placeholders_percent_encoded),
        cmocka_unit_test(an_address_names_the_member_that_the_task_lacks),
        cmocka_unit_test(an_address_refuses_a_member_that_would_step_up_its_path),
        cmocka_unit_test(a_header_value_cannot_begin_a_second_header),
        cmocka_unit_test(a_trace_is_one_for_the_task_and_its_span_one_for_the_attempt),
        cmocka_unit_test(a_signature_is_that_of_standard_webhooks),
        cmocka_unit_test(without_a_secret_nothing_is_signed),
        cmocka_unit_test(a_body_has_every_member_of_the_contract_in_its_order),
        cmocka_unit_test(a_body_without_payload_order_and_amount_says_null),
        cmocka_unit_test(a_payload_is_handed_on_byte_for_byte),
        cmocka_unit_test(a_payload_that_is_no_json_goes_as_base64),
        cmocka_unit_test(the_largest_payload_fits_as_base64),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
