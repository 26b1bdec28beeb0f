/* What is read from a handler's and a look-up's bytes. */
#include "core_test.h"

#include "engine/reply.h"

static struct bs_facts replied(int status, const char *body)
{
    return (struct bs_facts){
        .wire = BS_WIRE_REPLIED, .sent = true, .status = status, .body = bs_str_of(body)
    };
}

static const struct bs_success_rule no_rule = { 0 };

static void a_reply_counts_only_in_the_declared_shape(void **state)
{
    static const struct {
        int status;
        const char *body;
        bool valid;
        int says;
    } rows[] = {
        { 200, "{\"outcome\":\"success\"}", true, BS_SAYS_SUCCESS },
        { 202, " {\"outcome\": \"finished\", \"extra\": [1e400]}\n", true, BS_SAYS_FINISHED },
        { 200, "{\"outcome\":\"retry\"}", true, BS_SAYS_RETRY },
        { 200, "{\"outcome\":\"manual\"}", true, BS_SAYS_MANUAL },
        { 200, "{\"outcome\":\"unknown\"}", true, BS_SAYS_UNKNOWN },
        { 200, "{\"outcome\":\"succe\\u0073s\"}", true, BS_SAYS_SUCCESS },
        { 200, "{\"outcome\":\"Success\"}", false, 0 },
        { 200, "{\"outcome\":\"ok\"}", false, 0 },
        { 200, "{\"outcome\":true}", false, 0 },
        { 200, "{\"outcome\":null}", false, 0 },
        { 200, "{\"outcome\":\"success\",\"outcome\":\"retry\"}", false, 0 },
        { 200, "{\"outcome\":\"success\"} x", false, 0 },
        { 200, "{\"outcome\":\"success\"", false, 0 },
        { 200, "[\"success\"]", false, 0 },
        { 200, "\"success\"", false, 0 },
        { 200, "success", false, 0 },
        { 200, "", false, 0 },
        { 200, "{\"code\":\"FAIL\"}", false, 0 },
        { 200, "{\"data\":{\"outcome\":\"success\"}}", false, 0 },
        { 500, "{\"outcome\":\"success\"}", false, 0 },
        { 404, "{\"outcome\":\"success\"}", false, 0 },
    };
    (void)state;

    for (size_t i = 0; i < BS_COUNT(rows); i++) {
        BS_CLEANUP(bs_arena_free) struct bs_arena a = { 0 };
        struct bs_facts f = replied(rows[i].status, rows[i].body);
        struct bs_reply r = bs_reply_read(&a, &f, &no_rule);

        if (r.valid != rows[i].valid || (r.valid && (int)r.says != rows[i].says))
            fail_msg("row %zu: %s", i, rows[i].body);
    }
}

static void a_reply_cut_short_is_no_reply(void **state)
{
    BS_CLEANUP(bs_arena_free) struct bs_arena a = { 0 };
    struct bs_facts f = replied(200, "{\"outcome\":\"success\"}");
    (void)state;

    f.body_cut = true;
    assert_false(bs_reply_read(&a, &f, &no_rule).valid);
    f = replied(200, "{\"outcome\":\"success\"}");
    f.wire = BS_WIRE_RESET;
    assert_false(bs_reply_read(&a, &f, &no_rule).valid);
}

static void a_reply_brings_its_words(void **state)
{
    BS_CLEANUP(bs_arena_free) struct bs_arena a = { 0 };
    struct bs_facts f = replied(200, "{\"outcome\":\"retry\",\"code\":17,\"message\":\"a\\u0000b "
                                     "\\ud83d\",\"effect\":\"stock -1\"}");
    struct bs_reply r = bs_reply_read(&a, &f, &no_rule);
    (void)state;

    assert_true(r.valid);
    assert_text(r.code, "17");
    assert_int_equal(r.message.n, 7);
    assert_memory_equal(r.message.p, "a\0b \xef\xbf\xbd", 7);
    assert_text(r.effect, "stock -1");
    assert_false(r.has_retry_after);
}

static void a_wish_to_be_asked_later_is_seconds_or_a_duration(void **state)
{
    static const struct {
        const char *value;
        int64_t us; /* -1: ignored */
    } rows[] = {
        { "30", 30000000 },
        { "0", 0 },
        { "1.5", 1500000 },
        { "\"30s\"", 30000000 },
        { "\"500ms\"", 500000 },
        { "\"2d\"", INT64_C(172800000000) },
        { "-5", -1 },
        { "1e3", -1 },
        { "\"soon\"", -1 },
        { "\"30\"", -1 },
        { "null", -1 },
        { "true", -1 },
        { "999999999999", INT64_C(366) * 86400 * 1000000 },
        { "99999999999999999999999", -1 },
    };
    (void)state;

    for (size_t i = 0; i < BS_COUNT(rows); i++) {
        BS_CLEANUP(bs_arena_free) struct bs_arena a = { 0 };
        struct bs_str body =
            bs_arena_fmt(&a, "{\"outcome\":\"retry\",\"retry_after\":%s}", rows[i].value);
        struct bs_facts f = replied(200, body.p);
        struct bs_reply r = bs_reply_read(&a, &f, &no_rule);

        assert_true(r.valid);
        if (r.has_retry_after != (rows[i].us >= 0))
            fail_msg("row %zu: %s", i, rows[i].value);
        if (r.has_retry_after)
            assert_int_equal(r.retry_after.us, rows[i].us);
    }
}

static void a_json_rule_is_one_value_by_pointer(void **state)
{
    static const struct bs_str values[] = { BS_STR("0"), BS_STR("\"SUCCESS\""), BS_STR("true") };
    static const struct {
        const char *pointer, *body;
        int status;
        bool holds;
    } rows[] = {
        { "/code", "{\"code\":0}", 200, true },
        { "/code", "{\"code\": \"SUCCESS\" , \"n\":12345678901234567890123}", 200, true },
        { "/code", "{\"code\":\"SUCCES\\u0053\"}", 200, true },
        { "/code", "{\"code\":true}", 200, true },
        { "/code", "{\"code\":\"0\"}", 200, false },
        { "/code", "{\"code\":1}", 200, false },
        { "/code", "{\"code\":0,\"code\":0}", 200, false },
        { "/code", "{\"data\":{\"code\":0}}", 200, false },
        { "/code", "{\"code\":0", 200, false },
        { "/code", "{\"code\":0} {", 200, false },
        { "/code", "{\"code\":0}", 201, false },
        { "/code", "", 200, false },
        { "/data/code", "{\"data\":{\"code\":0}}", 200, true },
        { "/data/code", "{\"data\":7}", 200, false },
        { "/list/1", "{\"list\":[9,0]}", 200, true },
        { "/list/01", "{\"list\":[9,0]}", 200, false },
        { "/list/2", "{\"list\":[9,0]}", 200, false },
        { "/list/-", "{\"list\":[9,0]}", 200, false },
        { "/a~1b/c~0d", "{\"a/b\":{\"c~d\":0}}", 200, true },
        { "/", "{\"\":0}", 200, true },
        { "/a/", "{\"a\":{\"\":0}}", 200, true },
        { "", "0", 200, true },
        { "", " \"SUCCESS\"\n", 200, true },
    };
    (void)state;

    for (size_t i = 0; i < BS_COUNT(rows); i++) {
        BS_CLEANUP(bs_arena_free) struct bs_arena a = { 0 };
        struct bs_success_rule rule = { .status = 200,
                                        .json_pointer = bs_str_of(rows[i].pointer),
                                        .values = values,
                                        .values_n = BS_COUNT(values) };
        struct bs_facts f = replied(rows[i].status, rows[i].body);

        if (bs_reply_read(&a, &f, &rule).json_rule_holds != rows[i].holds)
            fail_msg("row %zu: %s in %s", i, rows[i].pointer, rows[i].body);
    }
}

static void a_look_counts_only_in_the_declared_shape(void **state)
{
    static const struct {
        int status;
        const char *body;
        enum bs_verdict verdict; /* NONE: no verdict */
    } rows[] = {
        { 200, "{\"verdict\":\"go_on\"}", BS_VERDICT_GO_ON },
        { 200, "{\"verdict\":\"finished\",\"status\":\"PAID\"}", BS_VERDICT_FINISHED },
        { 200, "{\"verdict\":\"not_found\"}", BS_VERDICT_NOT_FOUND },
        { 200, "{\"verdict\":\"state_conflict\",\"amount\":null}", BS_VERDICT_STATE_CONFLICT },
        { 200, "{\"verdict\":\"go_on\",\"verdict\":\"finished\"}", BS_VERDICT_NONE },
        { 200, "{\"verdict\":\"go_on\",\"amount\":[1]}", BS_VERDICT_NONE },
        { 200, "{\"verdict\":\"go_on\",\"amount\":\"1\",\"amount\":\"2\"}", BS_VERDICT_NONE },
        { 200, "{\"verdict\":\"GO_ON\"}", BS_VERDICT_NONE },
        { 200, "{\"verdict\":1}", BS_VERDICT_NONE },
        { 200, "{}", BS_VERDICT_NONE },
        { 200, "", BS_VERDICT_NONE },
        { 404, "{\"verdict\":\"not_found\"}", BS_VERDICT_NONE },
        { 404, "", BS_VERDICT_NONE },
        { 201, "{\"verdict\":\"go_on\"}", BS_VERDICT_NONE },
    };
    (void)state;

    for (size_t i = 0; i < BS_COUNT(rows); i++) {
        BS_CLEANUP(bs_arena_free) struct bs_arena a = { 0 };
        struct bs_facts f = replied(rows[i].status, rows[i].body);
        struct bs_look l = bs_look_read(&a, &f);

        if (l.valid != (rows[i].verdict != BS_VERDICT_NONE) ||
            (l.valid && l.verdict != rows[i].verdict))
            fail_msg("row %zu: %s", i, rows[i].body);
    }
}

static void a_look_brings_what_is_compared(void **state)
{
    BS_CLEANUP(bs_arena_free) struct bs_arena a = { 0 };
    struct bs_facts f = replied(200, "{\"verdict\":\"go_on\",\"status\":\"UNPAID\",\"amount\":6410,"
                                     "\"currency\":\"CNY\",\"channel_trade_no\":\"T-1\"}");
    struct bs_look l = bs_look_read(&a, &f);
    (void)state;

    assert_true(l.valid);
    assert_text(l.status, "UNPAID");
    assert_text(l.amount, "6410");
    assert_text(l.currency, "CNY");
    assert_text(l.channel_trade_no, "T-1");
    f.body_cut = true;
    assert_false(bs_look_read(&a, &f).valid);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_reply_counts_only_in_the_declared_shape),
        cmocka_unit_test(a_reply_cut_short_is_no_reply),
        cmocka_unit_test(a_reply_brings_its_words),
        cmocka_unit_test(a_wish_to_be_asked_later_is_seconds_or_a_duration),
        cmocka_unit_test(a_json_rule_is_one_value_by_pointer),
        cmocka_unit_test(a_look_counts_only_in_the_declared_shape),
        cmocka_unit_test(a_look_brings_what_is_compared),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
