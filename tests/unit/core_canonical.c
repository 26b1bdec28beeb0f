/* The content of a request and of an effect: what makes it the same, what makes it another. */
#include "core/submit.h"
#include "core_test.h"

static const struct bs_policy policy = { .max_retry_count = 10 };
static const struct bs_policy fewer = { .max_retry_count = 5 };
static const struct bs_policy none = { .max_retry_count = 10, .effect = BS_EFFECT_NONE };
static const struct bs_policy repeatable = { .max_retry_count = 10,
                                             .effect = BS_EFFECT_REPEATABLE };

static void collect(void *ctx, const void *p, size_t n)
{
    bs_buf_add(ctx, (struct bs_str){ p, n });
}

/* One whole submission; each row of a table changes a little of it. */
static struct bs_submission full(void)
{
    return (struct bs_submission){
        .biz_type = S("PAY"),
        .biz_id = S("b"),
        .request_id = S("ev-7"),
        .merchant_no = S("M"),
        .order_no = S("O"),
        .payment_no = S("P"),
        .channel = S("wx"),
        .channel_trade_no = S("T"),
        .refund_no = S("R"),
        .amount = S("500"),
        .currency = S("CNY"),
        .payload = S("{\"a\":1}"),
        .payload_is_json = true,
        .extra_data = S("{}"),
    };
}

static void canonical(const struct bs_submission *s, const struct bs_policy *p, bool effect,
                      struct bs_buf *out)
{
    BS_CLEANUP(bs_arena_free) struct bs_arena a = { 0 };
    struct bs_field_errors errors = { .n = 0 };
    struct bs_door_queue q = { p };
    struct bs_sink sink = { collect, out };
    struct bs_task t = { 0 };

    assert_int_equal(bs_submission_check(s, &q, NOW, &a, &t, &errors), BS_OK);
    if (effect)
        bs_effect_canonical(&t, &sink);
    else
        bs_request_canonical(&t, t.extra_data, &sink);
    assert_int_equal(bs_buf_done(out, NULL), BS_OK);
}

static bool same(const struct bs_submission *x, const struct bs_submission *y, bool effect)
{
    BS_CLEANUP(bs_buf_free) struct bs_buf one = { .max = 1 << 20 };
    BS_CLEANUP(bs_buf_free) struct bs_buf two = { .max = 1 << 20 };

    canonical(x, &repeatable, effect, &one);
    canonical(y, &repeatable, effect, &two);
    return bs_str_eq(bs_buf_str(&one), bs_buf_str(&two));
}

static void each_member_but_five_is_part_of_the_content(void **state)
{
    struct bs_submission base = full();
    struct {
        const char *what;
        struct bs_submission changed;
        bool want_same_request, want_same_effect;
    } rows[25];
    uint32_t n = 0;

#define ROW(what_, change, request, effect)                                                        \
    do {                                                                                           \
        struct bs_submission s = full();                                                           \
        change;                                                                                    \
        rows[n].what = (what_);                                                                    \
        rows[n].changed = s;                                                                       \
        rows[n].want_same_request = (request);                                                     \
        rows[n++].want_same_effect = (effect);                                                     \
    } while (0)

    (void)state;
    ROW("nothing", (void)s, true, true);
    ROW("execute_at", s.execute_at = S("2026-01-02T00:00:00Z"), true, true);
    ROW("delay", s.delay = S("5m"), true, true);
    ROW("priority", (s.has_priority = true, s.priority = 3), true, true);
    ROW("source", s.source = S("CALLBACK"), true, true);
    ROW("park", s.park = true, true, true);
    ROW("default effect_key in words", s.effect_key = S("b"), true, true);
    ROW("biz_type", s.biz_type = S("PAY2"), false, true);
    ROW("biz_id", s.biz_id = S("b2"), false, true);
    ROW("merchant_no", s.merchant_no = S("M2"), false, true);
    ROW("channel", s.channel = S("ali"), false, true);
    ROW("effect_key", s.effect_key = S("e"), false, true);
    ROW("serial_key", s.serial_key = S("k"), false, true);
    ROW("payload", s.payload = S("{\"a\": 1}"), false, true);
    ROW("payload as bytes", s.payload_is_json = false, false, true);
    ROW("no payload", s.payload = BS_STR_NONE, false, true);
    ROW("extra_data", s.extra_data = S("{ }"), false, true);
    ROW("max_retry_count", (s.has_max_retry_count = true, s.max_retry_count = 9), false, true);
    ROW("parent_task_no", s.parent_task_no = S("7"), false, true);
    ROW("amount", s.amount = S("5000"), false, false);
    ROW("currency", s.currency = S("USD"), false, false);
    ROW("order_no", s.order_no = S("o"), false, false);
    ROW("payment_no", s.payment_no = BS_STR_NONE, false, false);
    ROW("channel_trade_no", s.channel_trade_no = S("T "), false, false);
    ROW("refund_no", s.refund_no = S("R2"), false, false);
    assert_int_equal(n, BS_COUNT(rows));
    for (uint32_t i = 0; i < n; i++) {
        print_message("%s\n", rows[i].what);
        assert_int_equal(same(&base, &rows[i].changed, false), rows[i].want_same_request);
        assert_int_equal(same(&base, &rows[i].changed, true), rows[i].want_same_effect);
    }
#undef ROW
}

static void case_15_the_same_id_with_another_amount_is_another_content(void **state)
{
    struct bs_submission first = full();
    struct bs_submission second = full();

    (void)state;
    second.amount = S("5000");
    assert_false(same(&first, &second, false));
    second.amount = S("0500"); /* the same number */
    assert_true(same(&first, &second, false));
}

static void the_default_merchant_in_words_is_the_same(void **state)
{
    struct bs_submission absent = full();
    struct bs_submission said = full();

    (void)state;
    absent.merchant_no = BS_STR_NONE;
    said.merchant_no = S("default");
    assert_true(same(&absent, &said, false));
}

static void a_value_cannot_move_into_the_next_member(void **state)
{
    struct bs_submission x = full();
    struct bs_submission y = full();

    (void)state;
    x.order_no = S("AB");
    x.payment_no = S("C");
    y.order_no = S("A");
    y.payment_no = S("BC");
    assert_false(same(&x, &y, false));
    assert_false(same(&x, &y, true));
    y.order_no = S("AB");
    x.payment_no = BS_STR_NONE;
    y.payment_no = BS_STR_NONE;
    x.channel_trade_no = S("Z");
    y.channel_trade_no = BS_STR_NONE;
    x.refund_no = BS_STR_NONE;
    y.refund_no = S("Z");
    assert_false(same(&x, &y, true));
}

static void an_empty_payload_is_not_an_absent_one(void **state)
{
    struct bs_submission absent = full();
    struct bs_submission empty = full();

    (void)state;
    absent.payload = BS_STR_NONE;
    absent.payload_is_json = empty.payload_is_json = false;
    empty.payload = S("");
    assert_false(same(&absent, &empty, false));
}

static void a_reload_of_the_configuration_changes_no_content(void **state)
{
    static const struct bs_policy *const policies[] = { &policy, &fewer, &none, &repeatable };
    static const char *const sources[] = { "API", "CALLBACK" };
    BS_CLEANUP(bs_buf_free) struct bs_buf first = { .max = 1 << 20 };

    (void)state;
    struct bs_submission s = full();
    canonical(&s, &policy, false, &first);
    for (size_t i = 0; i < BS_COUNT(policies); i++) {
        for (size_t k = 0; k < BS_COUNT(sources); k++) {
            BS_CLEANUP(bs_buf_free) struct bs_buf again = { .max = 1 << 20 };

            s.source = bs_str_of(sources[k]);
            canonical(&s, policies[i], false, &again);
            assert_true(bs_str_eq(bs_buf_str(&first), bs_buf_str(&again)));
        }
    }
}

/* Stored fingerprints depend on these bytes for ever. */
static void the_form_is_tag_length_bytes(void **state)
{
    static const char want[] = "\x0b\0\0\0\0\0\0\0\x08\0\0\0\0\0\0\x01\xf4" /* amount 500 */
                               "\x0c\0\0\0\0\0\0\0\x03"
                               "CNY"
                               "\x04\0\0\0\0\0\0\0\x01"
                               "O"
                               "\x05\0\0\0\0\0\0\0\x01"
                               "P"
                               "\x07\0\0\0\0\0\0\0\x01"
                               "T"
                               "\x08\0\0\0\0\0\0\0\x01"
                               "R";
    BS_CLEANUP(bs_buf_free) struct bs_buf got = { .max = 1 << 20 };
    struct bs_submission s = full();

    (void)state;
    canonical(&s, &repeatable, true, &got);
    assert_int_equal(got.len, sizeof(want) - 1);
    assert_memory_equal(got.p, want, sizeof(want) - 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_member_but_five_is_part_of_the_content),
        cmocka_unit_test(case_15_the_same_id_with_another_amount_is_another_content),
        cmocka_unit_test(the_default_merchant_in_words_is_the_same),
        cmocka_unit_test(a_value_cannot_move_into_the_next_member),
        cmocka_unit_test(an_empty_payload_is_not_an_absent_one),
        cmocka_unit_test(a_reload_of_the_configuration_changes_no_content),
        cmocka_unit_test(the_form_is_tag_length_bytes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
