/* The outcome table of the design, row by row, for calls to a handler. */
#include "base/text.h"
#include "core/outcome.h"
#include "core_test.h"

static const struct bs_policy plain = { .max_retry_count = 10 };

static struct bs_outcome classify(const struct bs_policy *p, const struct bs_facts *f,
                                  const struct bs_reply *r, struct bs_arena *a)
{
    struct bs_outcome o = bs_classify_call(p, f, r, a);

    assert_int_equal(o.looked, BS_VERDICT_NONE);
    assert_true(o.code.n <= BS_CODE_MAX);
    assert_true(o.message.n <= BS_MESSAGE_MAX && bs_utf8_valid(o.message));
    assert_true(o.effect.n <= BS_EFFECT_TEXT_MAX && bs_utf8_valid(o.effect));
    assert_true(o.excerpt.n <= BS_EXCERPT_MAX && bs_utf8_valid(o.excerpt));
    return o;
}

static void case_30_what_the_wire_says_counts_only_with_what_was_sent(void **state)
{
    static const struct {
        enum bs_wire wire;
        bool sent;
        bool endpoint_fault;
        const char *code;
        enum bs_outcome_kind want;
    } rows[] = {
        { BS_WIRE_DNS_NXDOMAIN, false, false, "DNS_NXDOMAIN", BS_OUT_FAILED },
        { BS_WIRE_DNS_TEMPORARY, false, false, "DNS_TEMPORARY", BS_OUT_FAILED },
        { BS_WIRE_CONNECT_REFUSED, false, false, "CONNECT_REFUSED", BS_OUT_FAILED },
        { BS_WIRE_CONNECT_TIMEOUT, false, false, "CONNECT_TIMEOUT", BS_OUT_FAILED },
        { BS_WIRE_CONNECT_FAILED, false, false, "CONNECT_FAILED", BS_OUT_FAILED },
        { BS_WIRE_TLS_HANDSHAKE, false, false, "TLS_HANDSHAKE", BS_OUT_FAILED },
        { BS_WIRE_TIMEOUT, false, false, "TIMEOUT", BS_OUT_FAILED },
        { BS_WIRE_RESET, false, false, "RESET", BS_OUT_FAILED },
        { BS_WIRE_INTERNAL, false, false, "INTERNAL", BS_OUT_FAILED },
        { BS_WIRE_TLS_EXPIRED, false, true, "TLS_EXPIRED", BS_OUT_NOT_PROCESSED },
        { BS_WIRE_TLS_NAME, false, true, "TLS_NAME", BS_OUT_NOT_PROCESSED },
        { BS_WIRE_TLS_UNKNOWN_ISSUER, false, true, "TLS_UNKNOWN_ISSUER", BS_OUT_NOT_PROCESSED },
        { BS_WIRE_TIMEOUT, true, false, "TIMEOUT", BS_OUT_UNKNOWN },
        { BS_WIRE_RESET, true, false, "RESET", BS_OUT_UNKNOWN },
        { BS_WIRE_BAD_HTTP, true, false, "BAD_HTTP", BS_OUT_UNKNOWN },
        { BS_WIRE_INTERNAL, true, false, "INTERNAL", BS_OUT_UNKNOWN },
        { BS_WIRE_CONNECT_REFUSED, true, false, "CONNECT_REFUSED", BS_OUT_UNKNOWN },
        { BS_WIRE_TLS_EXPIRED, true, false, "TLS_EXPIRED", BS_OUT_UNKNOWN },
        { BS_WIRE_CANCELLED, false, false, "CANCELLED", BS_OUT_UNSENT },
        { BS_WIRE_CANCELLED, true, false, "CANCELLED", BS_OUT_SENT },
    };

    (void)state;
    for (size_t i = 0; i < BS_COUNT(rows); i++) {
        BS_CLEANUP(bs_arena_free) struct bs_arena a = { 0 };
        struct bs_facts f = { .wire = rows[i].wire,
                              .sent = rows[i].sent,
                              .started_at = NOW,
                              .ended_at = LATER(2),
                              .detail = "peer said \xff" };
        struct bs_outcome o = classify(&plain, &f, NULL, &a);

        assert_text(o.code, rows[i].code);
        assert_int_equal(o.kind, rows[i].want);
        assert_int_equal(o.endpoint_fault, rows[i].endpoint_fault);
        assert_int_equal(o.http_status, 0);
        assert_int_equal(o.started_at.us, NOW.us);
        assert_int_equal(o.ended_at.us, LATER(2).us);
        assert_contains(o.message, "peer said \\xFF");
    }
}

/* What a status means without any rule of the queue. */
static enum bs_outcome_kind row_of_status(int s, bool retry_after)
{
    static const int endpoint[] = { 401, 403, 404, 405, 407 };
    static const int elsewhere[] = { 408, 409, 423, 425 };

    for (size_t i = 0; i < BS_COUNT(endpoint); i++) {
        if (s == endpoint[i])
            return BS_OUT_NOT_PROCESSED;
    }
    for (size_t i = 0; i < BS_COUNT(elsewhere); i++) {
        if (s == elsewhere[i])
            return BS_OUT_FAILED;
    }
    if (s == 429 || s == 503)
        return retry_after ? BS_OUT_NOT_PROCESSED : BS_OUT_FAILED;
    if (s == 204)
        return BS_OUT_SUCCESS;
    if (s >= 300 && s <= 399)
        return BS_OUT_NOT_PROCESSED;
    return s >= 400 && s <= 499 ? BS_OUT_MANUAL : BS_OUT_UNKNOWN;
}

static void case_21_every_status_has_its_row(void **state)
{
    (void)state;
    for (int s = 0; s < 1000; s++) {
        for (int wait = 0; wait < 2; wait++) {
            BS_CLEANUP(bs_arena_free) struct bs_arena a = { 0 };
            struct bs_facts f = { .wire = BS_WIRE_REPLIED, .sent = true, .status = s };

            f.retry_after =
                (struct bs_retry_after){ .given = wait, .delay = BS_SEC(wait ? 30 : 0) };
            struct bs_outcome o = classify(&plain, &f, NULL, &a);
            enum bs_outcome_kind want = row_of_status(s, wait);
            bool fault = want == BS_OUT_NOT_PROCESSED && s != 429 && s != 503;

            assert_int_equal(o.kind, want);
            assert_int_equal(o.http_status, s);
            assert_int_equal(o.endpoint_fault, fault);
            assert_int_equal(o.has_wish, wait && s != 204);
            assert_false(o.wish_may_shorten);
            assert_int_equal(o.wish.us, o.has_wish ? 30000000 : 0);
        }
    }
}

static void codes_name_the_status(void **state)
{
    static const struct {
        int status;
        const char *want;
    } rows[] = {
        { 100, "BAD_REPLY" }, { 200, "BAD_REPLY" }, { 202, "BAD_REPLY" }, { 204, "" },
        { 302, "HTTP_302" },  { 404, "HTTP_404" },  { 409, "HTTP_409" },  { 422, "HTTP_422" },
        { 429, "HTTP_429" },  { 500, "HTTP_500" },  { 503, "HTTP_503" },  { 599, "HTTP_599" },
        { 600, "BAD_REPLY" },
    };

    (void)state;
    for (size_t i = 0; i < BS_COUNT(rows); i++) {
        BS_CLEANUP(bs_arena_free) struct bs_arena a = { 0 };
        struct bs_facts f = { .wire = BS_WIRE_REPLIED, .sent = true, .status = rows[i].status };

        assert_text(classify(&plain, &f, NULL, &a).code, rows[i].want);
    }
}

static void case_26_a_redirect_names_where_it_leads(void **state)
{
    static const int statuses[] = { 301, 302, 303, 307, 308 };

    (void)state;
    for (size_t i = 0; i < BS_COUNT(statuses); i++) {
        BS_CLEANUP(bs_arena_free) struct bs_arena a = { 0 };
        struct bs_facts f = { .wire = BS_WIRE_REPLIED,
                              .sent = true,
                              .status = statuses[i],
                              .location = S("https://shop.example/pay/process/") };
        struct bs_outcome o = classify(&plain, &f, NULL, &a);

        assert_int_equal(o.kind, BS_OUT_NOT_PROCESSED);
        assert_true(o.endpoint_fault);
        assert_contains(o.message, "https://shop.example/pay/process/");
    }
}

static void a_redirect_to_anything_has_a_storable_message(void **state)
{
    static char endless[5000];
    struct bs_str places[] = { { endless, sizeof(endless) }, S("a\r\nb\xc3"), BS_STR_NONE };

    (void)state;
    memset(endless, 'x', sizeof(endless));
    for (size_t i = 0; i < BS_COUNT(places); i++) {
        BS_CLEANUP(bs_arena_free) struct bs_arena a = { 0 };
        struct bs_facts f = { .wire = BS_WIRE_REPLIED, .status = 302, .location = places[i] };

        assert_contains(classify(&plain, &f, NULL, &a).message, "never followed");
    }
}

static void a_clamped_retry_after_is_said(void **state)
{
    BS_CLEANUP(bs_arena_free) struct bs_arena a = { 0 };
    struct bs_facts f = { .wire = BS_WIRE_REPLIED, .status = 503 };

    (void)state;
    f.retry_after = (struct bs_retry_after){ true, true, BS_SEC(21600) };
    struct bs_outcome o = classify(&plain, &f, NULL, &a);
    assert_contains(o.message, "21600 s");
    assert_contains(o.message, "clamped to 6 h");
}

static void case_31_only_an_agreed_reply_is_success(void **state)
{
    static const struct bs_policy by_word = {
        .success = { .status = 200, .body = { "success", 7 } },
    };
    static const struct bs_policy by_json = {
        .success = { .status = 200, .json_pointer = { "/code", 5 } },
    };
    static const struct bs_policy by_status = { .success = { .status = 202 } };
    static const struct bs_policy by_odd_status = {
        .success = { .status = 409, .body = { "already done", 12 } },
    };
    static const struct {
        const struct bs_policy *policy;
        int status;
        const char *body;
        bool cut, json_holds;
        enum bs_outcome_kind want;
    } rows[] = {
        { &plain, 200, "{\"code\":\"FAIL\"}", false, false, BS_OUT_UNKNOWN },
        { &plain, 200, "<html>login</html>", false, false, BS_OUT_UNKNOWN },
        { &plain, 200, "", false, false, BS_OUT_UNKNOWN },
        { &plain, 200, "success", false, false, BS_OUT_UNKNOWN },
        { &plain, 201, "", false, false, BS_OUT_UNKNOWN },
        { &plain, 204, "", false, false, BS_OUT_SUCCESS },
        { &by_word, 204, "", false, false, BS_OUT_SUCCESS },
        { &by_word, 200, "success", false, false, BS_OUT_SUCCESS },
        { &by_word, 200, " \r\nsuccess\n", false, false, BS_OUT_SUCCESS },
        { &by_word, 200, "\xEF\xBB\xBFsuccess", false, false, BS_OUT_SUCCESS },
        { &by_word, 200, "\xEF\xBB\xBF success \r\n", false, false, BS_OUT_SUCCESS },
        { &by_word, 200, "SUCCESS", false, false, BS_OUT_UNKNOWN },
        { &by_word, 200, "success!", false, false, BS_OUT_UNKNOWN },
        { &by_word, 200, "unsuccess", false, false, BS_OUT_UNKNOWN },
        { &by_word, 200, "no success", false, false, BS_OUT_UNKNOWN },
        { &by_word, 200, "success\xC2\xA0", false, false, BS_OUT_UNKNOWN },
        { &by_word, 200, "", false, false, BS_OUT_UNKNOWN },
        { &by_word, 200, "success", true, false, BS_OUT_UNKNOWN },
        { &by_word, 201, "success", false, false, BS_OUT_UNKNOWN },
        { &by_word, 500, "success", false, false, BS_OUT_UNKNOWN },
        { &by_json, 200, "{\"code\":0}", false, true, BS_OUT_SUCCESS },
        { &by_json, 200, "{\"code\":1}", false, false, BS_OUT_UNKNOWN },
        { &by_json, 202, "{\"code\":0}", false, true, BS_OUT_UNKNOWN },
        { &plain, 200, "{\"code\":0}", false, true, BS_OUT_UNKNOWN },
        { &by_status, 202, "anything", false, false, BS_OUT_SUCCESS },
        { &by_odd_status, 409, "already done", false, false, BS_OUT_SUCCESS },
        { &by_odd_status, 409, "busy", false, false, BS_OUT_FAILED },
    };

    (void)state;
    for (size_t i = 0; i < BS_COUNT(rows); i++) {
        BS_CLEANUP(bs_arena_free) struct bs_arena a = { 0 };
        struct bs_reply r = { .json_rule_holds = rows[i].json_holds };
        struct bs_facts f = { .wire = BS_WIRE_REPLIED, .sent = true, .status = rows[i].status };

        f.body = bs_str_of(rows[i].body);
        f.body_cut = rows[i].cut;
        struct bs_outcome o = classify(rows[i].policy, &f, &r, &a);
        print_message("%d %s\n", rows[i].status, rows[i].body);
        assert_int_equal(o.kind, rows[i].want);
        if (o.kind == BS_OUT_UNKNOWN)
            assert_text(o.code, rows[i].status == 500 ? "HTTP_500" : "BAD_REPLY");
        assert_int_equal(o.excerpt.n > 0, f.body.n > 0);
    }
}

static void the_handler_speaks_for_itself_in_any_2xx(void **state)
{
    static const struct {
        int status, says;
        const char *code;
        enum bs_outcome_kind kind;
        const char *want;
    } rows[] = {
        { 200, BS_SAYS_SUCCESS, "", BS_OUT_SUCCESS, "" },
        { 200, BS_SAYS_SUCCESS, "DONE", BS_OUT_SUCCESS, "DONE" },
        { 201, BS_SAYS_FINISHED, "", BS_OUT_FINISHED, "ORDER_ALREADY_FINISHED" },
        { 200, BS_SAYS_RETRY, "", BS_OUT_FAILED, "HANDLER_RETRY" },
        { 202, BS_SAYS_RETRY, "STOCK_LOCKED", BS_OUT_FAILED, "STOCK_LOCKED" },
        { 200, BS_SAYS_MANUAL, "", BS_OUT_MANUAL, "HANDLER_MANUAL" },
        { 200, BS_SAYS_MANUAL, "FRAUD", BS_OUT_MANUAL, "FRAUD" },
        { 299, BS_SAYS_UNKNOWN, "", BS_OUT_UNKNOWN, "HANDLER_UNKNOWN" },
        { 500, BS_SAYS_SUCCESS, "", BS_OUT_UNKNOWN, "HTTP_500" },
        { 422, BS_SAYS_RETRY, "X", BS_OUT_MANUAL, "HTTP_422" },
    };

    (void)state;
    for (size_t i = 0; i < BS_COUNT(rows); i++) {
        BS_CLEANUP(bs_arena_free) struct bs_arena a = { 0 };
        struct bs_facts f = { .wire = BS_WIRE_REPLIED, .sent = true, .status = rows[i].status };
        struct bs_reply r = { .valid = true, .message = S("why"), .effect = S("order paid") };

        r.says = rows[i].says;
        r.code = bs_str_of(rows[i].code);
        struct bs_outcome o = classify(&plain, &f, &r, &a);
        assert_int_equal(o.kind, rows[i].kind);
        assert_text(o.code, rows[i].want);
        if (rows[i].status < 300) {
            assert_text(o.message, "why");
            assert_text(o.effect, "order paid");
        }
    }
}

static void a_valid_word_of_the_handler_wins_over_the_declared_rule(void **state)
{
    BS_CLEANUP(bs_arena_free) struct bs_arena a = { 0 };
    struct bs_policy p = { .success = { .status = 200, .json_pointer = S("/code") } };
    struct bs_facts f = { .wire = BS_WIRE_REPLIED, .sent = true, .status = 200 };
    struct bs_reply r = { .valid = true, .says = BS_SAYS_RETRY, .json_rule_holds = true };

    (void)state;
    assert_int_equal(classify(&p, &f, &r, &a).kind, BS_OUT_FAILED);
}

static void the_handlers_delay_may_shorten_and_is_never_negative(void **state)
{
    static const struct {
        bool given;
        int64_t seconds;
        bool want;
    } rows[] = { { true, 1, true }, { true, 0, true }, { true, -1, false }, { false, 9, false } };

    (void)state;
    for (size_t i = 0; i < BS_COUNT(rows); i++) {
        BS_CLEANUP(bs_arena_free) struct bs_arena a = { 0 };
        struct bs_facts f = { .wire = BS_WIRE_REPLIED, .sent = true, .status = 200 };
        struct bs_reply r = { .valid = true, .says = BS_SAYS_RETRY };

        r.has_retry_after = rows[i].given;
        r.retry_after = BS_SEC(rows[i].seconds);
        struct bs_outcome o = classify(&plain, &f, &r, &a);
        assert_int_equal(o.has_wish, rows[i].want);
        assert_int_equal(o.wish_may_shorten, rows[i].want);
        assert_int_equal(o.wish.us, rows[i].want ? rows[i].seconds * 1000000 : 0);
    }
}

static void a_queue_moves_single_statuses(void **state)
{
    static const struct bs_status_override moves[] = {
        { 404, BS_STATUS_FAILED },         { 500, BS_STATUS_MANUAL },
        { 422, BS_STATUS_UNKNOWN },        { 409, BS_STATUS_NOT_PROCESSED },
        { 502, BS_STATUS_ENDPOINT_FAULT }, { 204, BS_STATUS_UNKNOWN },
        { 202, BS_STATUS_FAILED },         { 403, BS_STATUS_DEFAULT },
    };
    static const struct {
        int status;
        const char *code;
        bool endpoint_fault;
        enum bs_outcome_kind want;
    } rows[] = {
        { 404, "HTTP_404", false, BS_OUT_FAILED },
        { 500, "HTTP_500", false, BS_OUT_MANUAL },
        { 422, "HTTP_422", false, BS_OUT_UNKNOWN },
        { 409, "HTTP_409", false, BS_OUT_NOT_PROCESSED },
        { 502, "HTTP_502", true, BS_OUT_NOT_PROCESSED },
        { 204, "BAD_REPLY", false, BS_OUT_UNKNOWN },
        { 202, "BAD_REPLY", false, BS_OUT_FAILED },
        { 403, "HTTP_403", true, BS_OUT_NOT_PROCESSED },
        { 405, "HTTP_405", true, BS_OUT_NOT_PROCESSED },
        { 400, "HTTP_400", false, BS_OUT_MANUAL },
    };
    struct bs_policy p = { .statuses = moves, .statuses_n = BS_COUNT(moves) };

    (void)state;
    for (size_t i = 0; i < BS_COUNT(rows); i++) {
        BS_CLEANUP(bs_arena_free) struct bs_arena a = { 0 };
        struct bs_facts f = { .wire = BS_WIRE_REPLIED, .sent = true, .status = rows[i].status };
        struct bs_outcome o = classify(&p, &f, NULL, &a);

        assert_text(o.code, rows[i].code);
        assert_int_equal(o.endpoint_fault, rows[i].endpoint_fault);
        assert_int_equal(o.kind, rows[i].want);
    }
}

/* 511 ASCII bytes and a character that would cross the limit; 10 MB; half an emoji at the end. */
static void case_49_error_texts_are_cut_at_a_character(void **state)
{
    enum { HUGE_N = 10 << 20 };
    BS_CLEANUP(bs_buf_free) struct bs_buf text = { .max = HUGE_N };

    (void)state;
    for (int which = 0; which < 3; which++) {
        BS_CLEANUP(bs_arena_free) struct bs_arena a = { 0 };
        struct bs_facts f = { .wire = BS_WIRE_REPLIED, .sent = true, .status = 200 };
        size_t ascii = which == 0 ? 511 : which == 1 ? HUGE_N : 510;

        bs_buf_reset(&text);
        for (size_t i = 0; i < ascii; i++)
            bs_buf_addc(&text, 'x');
        bs_buf_addz(&text, which == 0 ? "\xE7\x95\x8C" : which == 1 ? "" : "\xF0\x9F");
        struct bs_reply r = { .valid = true, .says = BS_SAYS_RETRY };
        r.message = r.code = r.effect = f.body = bs_buf_str(&text);
        struct bs_outcome o = classify(&plain, &f, &r, &a);
        assert_int_equal(o.kind, BS_OUT_FAILED);
        assert_in_range(o.message.n, BS_MESSAGE_MAX - 8, BS_MESSAGE_MAX);
        assert_contains(o.message, "\xE2\x80\xA6");
        assert_contains(o.code, "\xE2\x80\xA6");
    }
}

static void without_memory_the_class_is_still_recorded(void **state)
{
    (void)state;
    for (size_t max = 1; max < 2048; max += 16) {
        BS_CLEANUP(bs_arena_free) struct bs_arena a = { .max = max };
        struct bs_facts f = { .wire = BS_WIRE_REPLIED, .sent = true, .status = 422 };

        f.body = S("{\"error\":\"no such product\"}");
        assert_int_equal(classify(&plain, &f, NULL, &a).kind, BS_OUT_MANUAL);
        f = (struct bs_facts){ .wire = BS_WIRE_RESET, .sent = true, .detail = "peer" };
        assert_int_equal(classify(&plain, &f, NULL, &a).kind, BS_OUT_UNKNOWN);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(case_30_what_the_wire_says_counts_only_with_what_was_sent),
        cmocka_unit_test(case_21_every_status_has_its_row),
        cmocka_unit_test(codes_name_the_status),
        cmocka_unit_test(case_26_a_redirect_names_where_it_leads),
        cmocka_unit_test(a_redirect_to_anything_has_a_storable_message),
        cmocka_unit_test(a_clamped_retry_after_is_said),
        cmocka_unit_test(case_31_only_an_agreed_reply_is_success),
        cmocka_unit_test(the_handler_speaks_for_itself_in_any_2xx),
        cmocka_unit_test(a_valid_word_of_the_handler_wins_over_the_declared_rule),
        cmocka_unit_test(the_handlers_delay_may_shorten_and_is_never_negative),
        cmocka_unit_test(a_queue_moves_single_statuses),
        cmocka_unit_test(case_49_error_texts_are_cut_at_a_character),
        cmocka_unit_test(without_memory_the_class_is_still_recorded),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
