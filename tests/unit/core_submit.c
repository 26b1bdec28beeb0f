/* The one door: every row of the design's table, good and bad. */
#include "core/submit.h"
#include "core_test.h"

static const struct bs_policy policy = { .max_retry_count = 10, .effect = BS_EFFECT_REPEATABLE };
static const struct bs_door_queue known = { &policy };

static struct bs_submission good(void)
{
    return (struct bs_submission){
        .biz_type = S("PAY_CALLBACK"),
        .biz_id = S("b-1"),
        .request_id = S("r-1"),
    };
}

/* The text members by their names. */
static struct bs_str *member(struct bs_submission *s, const char *name)
{
    const struct {
        const char *name;
        struct bs_str *at;
    } all[] = {
        { "biz_type", &s->biz_type },
        { "biz_id", &s->biz_id },
        { "request_id", &s->request_id },
        { "merchant_no", &s->merchant_no },
        { "order_no", &s->order_no },
        { "payment_no", &s->payment_no },
        { "channel", &s->channel },
        { "channel_trade_no", &s->channel_trade_no },
        { "refund_no", &s->refund_no },
        { "effect_key", &s->effect_key },
        { "serial_key", &s->serial_key },
        { "amount", &s->amount },
        { "currency", &s->currency },
        { "source", &s->source },
        { "execute_at", &s->execute_at },
        { "delay", &s->delay },
        { "parent_task_no", &s->parent_task_no },
        { "payload", &s->payload },
        { "extra_data", &s->extra_data },
    };

    for (size_t i = 0; i < BS_COUNT(all); i++) {
        if (strcmp(all[i].name, name) == 0)
            return all[i].at;
    }
    fail_msg("no member %s", name);
    return NULL;
}

/* The only broken rule must be this one; "" as code: none. */
static void expect(const struct bs_submission *s, const struct bs_door_queue *q, const char *field,
                   const char *code)
{
    BS_CLEANUP(bs_arena_free) struct bs_arena a = { 0 };
    struct bs_field_errors errors = { .n = 0 };
    struct bs_task t = { .id = 99 };
    bs_rc rc = bs_submission_check(s, q, NOW, &a, &t, &errors);

    if (code[0] == '\0') {
        if (errors.n > 0)
            fail_msg("%s: refused with %s %s", field, errors.items[0].field, errors.items[0].code);
        assert_int_equal(rc, BS_OK);
        return;
    }
    assert_int_equal(rc, BS_E_INVALID);
    assert_int_equal(t.id, 99); /* nothing half-written */
    if (errors.n != 1)
        fail_msg("%s: %u broken rules, expected 1 (%s)", field, errors.n, code);
    assert_string_equal(errors.items[0].field, field);
    assert_string_equal(errors.items[0].code, code);
    assert_true(errors.items[0].message.n > 0);
}

static void each_text_member_has_its_rule(void **state)
{
    static const struct {
        const char *field, *value;
        const char *want; /* the code; "" accepted */
    } rows[] = {
        { "biz_type", "P", "" },
        { "biz_type", "Pay_1.x-y", "" },
        { "biz_type", "ABCDEFGHIJKLMNOPQRSTUVWXYZ012345", "" },
        { "biz_type", "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456", "TOO_LONG" },
        { "biz_type", "", "BAD_FORMAT" },
        { "biz_type", "1PAY", "BAD_FORMAT" },
        { "biz_type", "_PAY", "BAD_FORMAT" },
        { "biz_type", "PAY CALLBACK", "BAD_FORMAT" },
        { "biz_type", "PAY/X", "BAD_FORMAT" },
        { "biz_type", "PAY:X", "BAD_FORMAT" },
        { "biz_type", "PA\xC3\x9F", "BAD_FORMAT" },
        { "request_id", "!", "" },
        { "request_id", "~", "" },
        { "request_id", "wx:2026-01-01/0001", "" },
        { "request_id", "", "BAD_FORMAT" },
        { "request_id", "a b", "BAD_FORMAT" },
        { "request_id", "a\x7f", "BAD_FORMAT" },
        { "request_id", "a\t", "BAD_FORMAT" },
        { "request_id", "\xC3\xA9", "BAD_FORMAT" },
        { "biz_id", "x", "" },
        { "biz_id", "订单 1", "" },
        { "biz_id", "\xF0\xA0\xAE\xB7\xE9\x87\x8E\xE5\xAE\xB6\xF0\x9F\x8D\x9C", "" },
        { "biz_id", "", "BAD_FORMAT" },
        { "biz_id", "a\nb", "CONTROL_CHARACTER" },
        { "biz_id", "a\x7f", "CONTROL_CHARACTER" },
        { "biz_id", "a\xC2\x85", "CONTROL_CHARACTER" },
        { "biz_id", "\xC3", "BAD_UTF8" },
        { "biz_id", "\xC0\xAF", "BAD_UTF8" },
        { "biz_id", "\xED\xA0\x80", "BAD_UTF8" },
        { "biz_id", "\xF4\x90\x80\x80", "BAD_UTF8" },
        { "source", "API", "" },
        { "source", "CALLBACK", "" },
        { "source", "RECON", "" },
        { "source", "PATROL", "" },
        { "source", "MANUAL", "" },
        { "source", "REDIS", "UNKNOWN_VALUE" },
        { "source", "INBOX", "UNKNOWN_VALUE" },
        { "source", "OUTBOX", "UNKNOWN_VALUE" },
        { "source", "QUERY", "UNKNOWN_VALUE" },
        { "source", "FOLLOW_UP", "UNKNOWN_VALUE" },
        { "source", "NONE", "UNKNOWN_VALUE" },
        { "source", "api", "UNKNOWN_VALUE" },
        { "source", "", "UNKNOWN_VALUE" },
        { "execute_at", "2026-01-01T00:00:00Z", "" },
        { "execute_at", "2026-01-01T08:00:00+08:00", "" },
        { "execute_at", "2027-01-02T00:00:00Z", "" },
        { "execute_at", "2027-01-02T00:00:00.000001Z", "OUT_OF_RANGE" },
        { "execute_at", "2125-12-31T23:55:00Z", "OUT_OF_RANGE" },
        { "execute_at", "2025-12-31T23:55:00Z", "" },
        { "execute_at", "2025-12-31T23:54:59.999999Z", "OUT_OF_RANGE" },
        { "execute_at", "1970-01-01T00:00:01Z", "OUT_OF_RANGE" },
        { "execute_at", "tomorrow", "BAD_FORMAT" },
        { "execute_at", "2026-02-30T00:00:00Z", "BAD_FORMAT" },
        { "execute_at", "2026-01-01", "BAD_FORMAT" },
        { "execute_at", "", "BAD_FORMAT" },
        { "delay", "0s", "" },
        { "delay", "90s", "" },
        { "delay", "366d", "" },
        { "delay", "367d", "OUT_OF_RANGE" },
        { "delay", "-5s", "BAD_FORMAT" },
        { "delay", "5", "BAD_FORMAT" },
        { "delay", "1e3s", "BAD_FORMAT" },
        { "delay", "", "BAD_FORMAT" },
        { "parent_task_no", "1", "" },
        { "parent_task_no", "9007199254740995", "" },
        { "parent_task_no", "9223372036854775807", "" },
        { "parent_task_no", "9223372036854775808", "BAD_FORMAT" },
        { "parent_task_no", "0", "BAD_FORMAT" },
        { "parent_task_no", "007", "BAD_FORMAT" },
        { "parent_task_no", "-7", "BAD_FORMAT" },
        { "parent_task_no", "7 ", "BAD_FORMAT" },
        { "parent_task_no", "", "BAD_FORMAT" },
        { "parent_task_no", "12345678901234567890", "BAD_FORMAT" },
    };

    (void)state;
    for (size_t i = 0; i < BS_COUNT(rows); i++) {
        struct bs_submission s = good();

        print_message("%s = %s\n", rows[i].field, rows[i].value);
        *member(&s, rows[i].field) = bs_str_of(rows[i].value);
        expect(&s, &known, rows[i].field, rows[i].want);
    }
}

static void the_other_numbers_follow_the_rule_of_biz_id(void **state)
{
    static const char *const fields[] = { "merchant_no",      "order_no",  "payment_no",
                                          "channel",          "refund_no", "effect_key",
                                          "channel_trade_no", "serial_key" };
    static const struct {
        const char *value;
        const char *want;
    } rows[] = {
        { "x", "" },
        { "a b", "" },
        { "\xE7\x95\x8C", "" },
        { "", "BAD_FORMAT" },
        { "a\x01", "CONTROL_CHARACTER" },
        { "\xFF", "BAD_UTF8" },
    };

    (void)state;
    for (size_t k = 0; k < BS_COUNT(fields); k++) {
        for (size_t i = 0; i < BS_COUNT(rows); i++) {
            struct bs_submission s = good();

            *member(&s, fields[k]) = bs_str_of(rows[i].value);
            expect(&s, &known, fields[k], rows[i].want);
        }
    }
}

static void a_nul_inside_a_text_is_a_control_character(void **state)
{
    struct bs_submission s = good();

    (void)state;
    s.order_no = (struct bs_str){ "a\0b", 3 };
    expect(&s, &known, "order_no", "CONTROL_CHARACTER");
}

static void lengths_are_exact_to_the_byte(void **state)
{
    static const struct {
        const char *field;
        size_t max;
    } rows[] = {
        { "request_id", 128 },  { "biz_id", 64 },      { "merchant_no", 64 },
        { "order_no", 64 },     { "payment_no", 64 },  { "channel", 64 },
        { "refund_no", 64 },    { "effect_key", 128 }, { "serial_key", 128 },
        { "extra_data", 4096 }, { "payload", 262144 }, { "channel_trade_no", 64 },
    };
    static char text[262145];

    (void)state;
    memset(text, 'x', sizeof(text));
    for (size_t i = 0; i < BS_COUNT(rows); i++) {
        struct bs_submission s = good();

        *member(&s, rows[i].field) = (struct bs_str){ text, rows[i].max };
        expect(&s, &known, rows[i].field, "");
        *member(&s, rows[i].field) = (struct bs_str){ text, rows[i].max + 1 };
        expect(&s, &known, rows[i].field, "TOO_LONG");
    }
}

static void a_limit_counts_bytes_not_characters(void **state)
{
    struct bs_submission s = good();

    (void)state;
    s.order_no = S("界界界界界界界界界界界界界界界界界界界界界"); /* 21 × 3 = 63 bytes */
    expect(&s, &known, "order_no", "");
    s.order_no = S("界界界界界界界界界界界界界界界界界界界界界界"); /* 66 bytes */
    expect(&s, &known, "order_no", "TOO_LONG");
}

static void three_members_are_required(void **state)
{
    static const char *const fields[] = { "biz_type", "biz_id", "request_id" };

    (void)state;
    for (size_t i = 0; i < BS_COUNT(fields); i++) {
        struct bs_submission s = good();

        *member(&s, fields[i]) = BS_STR_NONE;
        expect(&s, &known, fields[i], "REQUIRED");
    }
}

static void an_amount_is_an_integer_with_its_currency(void **state)
{
    static const struct {
        const char *amount, *currency; /* NULL: absent */
        const char *field, *want;
    } rows[] = {
        { "0", "CNY", "", "" },
        { "6410", "CNY", "", "" },
        { "0010", "CNY", "", "" },
        { "9223372036854775807", "KWD", "", "" },
        { "9223372036854775808", "CNY", "amount", "OUT_OF_RANGE" },
        { "99999999999999999999999", "CNY", "amount", "OUT_OF_RANGE" },
        { "-1", "CNY", "amount", "OUT_OF_RANGE" },
        { "64.10", "CNY", "amount", "BAD_FORMAT" },
        { "1e3", "CNY", "amount", "BAD_FORMAT" },
        { "+5", "CNY", "amount", "BAD_FORMAT" },
        { "--5", "CNY", "amount", "BAD_FORMAT" },
        { " 5", "CNY", "amount", "BAD_FORMAT" },
        { "-", "CNY", "amount", "BAD_FORMAT" },
        { "", "CNY", "amount", "BAD_FORMAT" },
        { "5", NULL, "currency", "REQUIRED" },
        { NULL, "CNY", "amount", "REQUIRED" },
        { "5", "cny", "currency", "UNKNOWN_VALUE" },
        { "5", "CN", "currency", "UNKNOWN_VALUE" },
        { "5", "CNYX", "currency", "UNKNOWN_VALUE" },
        { "5", "RMB", "currency", "UNKNOWN_VALUE" },
        { "5", "", "currency", "UNKNOWN_VALUE" },
        { NULL, NULL, "", "" },
    };

    (void)state;
    for (size_t i = 0; i < BS_COUNT(rows); i++) {
        struct bs_submission s = good();

        print_message("%s %s\n", rows[i].amount ? rows[i].amount : "-",
                      rows[i].currency ? rows[i].currency : "-");
        s.amount = bs_str_of(rows[i].amount);
        s.currency = bs_str_of(rows[i].currency);
        expect(&s, &known, rows[i].field, rows[i].want);
    }
}

static void counts_have_their_ranges(void **state)
{
    static const struct {
        const char *field;
        int64_t value;
        const char *want;
    } rows[] = {
        { "priority", 0, "" },
        { "priority", 3, "" },
        { "priority", -1, "OUT_OF_RANGE" },
        { "priority", 4, "OUT_OF_RANGE" },
        { "priority", 4294967296, "OUT_OF_RANGE" },
        { "max_retry_count", 1, "" },
        { "max_retry_count", 100, "" },
        { "max_retry_count", 0, "OUT_OF_RANGE" },
        { "max_retry_count", 101, "OUT_OF_RANGE" },
        { "max_retry_count", INT64_MIN, "OUT_OF_RANGE" },
        { "max_retry_count", 4294967297, "OUT_OF_RANGE" },
    };

    (void)state;
    for (size_t i = 0; i < BS_COUNT(rows); i++) {
        struct bs_submission s = good();
        bool priority = rows[i].field[0] == 'p';

        s.has_priority = priority;
        s.priority = priority ? rows[i].value : 77;
        s.has_max_retry_count = !priority;
        s.max_retry_count = priority ? 777 : rows[i].value;
        expect(&s, &known, rows[i].field, rows[i].want);
    }
}

static void execute_at_and_delay_exclude_each_other(void **state)
{
    struct bs_submission s = good();

    (void)state;
    s.execute_at = S("2026-01-01T01:00:00Z");
    s.delay = S("5m");
    expect(&s, &known, "delay", "CONFLICTS_WITH");
}

static void every_broken_rule_is_reported(void **state)
{
    BS_CLEANUP(bs_arena_free) struct bs_arena a = { 0 };
    struct bs_field_errors errors = { .n = 0 };
    struct bs_task t = { 0 };
    struct bs_submission s = {
        .biz_type = S("1"),
        .merchant_no = S(""),
        .order_no = S("\x01"),
        .payment_no = S("\xff"),
        .amount = S("x"),
        .source = S("x"),
        .has_priority = true,
        .priority = 9,
        .has_max_retry_count = true,
        .execute_at = S("x"),
        .delay = S("x"),
        .parent_task_no = S("x"),
    };
    static const char *const want[] = {
        "biz_type BAD_FORMAT",
        "request_id REQUIRED",
        "biz_id REQUIRED",
        "merchant_no BAD_FORMAT",
        "order_no CONTROL_CHARACTER",
        "payment_no BAD_UTF8",
        "amount BAD_FORMAT",
        "currency REQUIRED",
        "priority OUT_OF_RANGE",
        "max_retry_count OUT_OF_RANGE",
        "source UNKNOWN_VALUE",
        "parent_task_no BAD_FORMAT",
        "execute_at BAD_FORMAT",
        "delay BAD_FORMAT",
        "delay CONFLICTS_WITH",
    };

    (void)state;
    assert_int_equal(bs_submission_check(&s, &known, NOW, &a, &t, &errors), BS_E_INVALID);
    assert_int_equal(errors.n, BS_COUNT(want));
    for (uint32_t i = 0; i < errors.n; i++)
        assert_text(bs_arena_fmt(&a, "%s %s", errors.items[i].field, errors.items[i].code),
                    want[i]);
}

static void more_errors_than_room_are_counted_out(void **state)
{
    BS_CLEANUP(bs_arena_free) struct bs_arena a = { 0 };
    struct bs_field_errors errors = { .n = 0 };

    (void)state;
    for (int i = 0; i < 100; i++)
        bs_field_error_add(&errors, &a, "x", "UNKNOWN_MEMBER", "number %d", i);
    assert_int_equal(errors.n, BS_FIELD_ERRORS_MAX);
    assert_text(errors.items[0].message, "number 0");
    assert_text(errors.items[BS_FIELD_ERRORS_MAX - 1].message, "number 31");
}

static void a_badly_named_queue_is_reported_once(void **state)
{
    struct bs_submission s = good();

    (void)state;
    s.biz_type = S("9");
    expect(&s, NULL, "biz_type", "BAD_FORMAT");
    s.biz_type = BS_STR_NONE;
    expect(&s, NULL, "biz_type", "REQUIRED");
}

static void an_unknown_queue_is_refused(void **state)
{
    struct bs_submission s = good();

    (void)state;
    expect(&s, NULL, "biz_type", "UNKNOWN_QUEUE");
    s.park = true;
    expect(&s, NULL, "biz_type", "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_text_member_has_its_rule),
        cmocka_unit_test(the_other_numbers_follow_the_rule_of_biz_id),
        cmocka_unit_test(a_nul_inside_a_text_is_a_control_character),
        cmocka_unit_test(lengths_are_exact_to_the_byte),
        cmocka_unit_test(a_limit_counts_bytes_not_characters),
        cmocka_unit_test(three_members_are_required),
        cmocka_unit_test(an_amount_is_an_integer_with_its_currency),
        cmocka_unit_test(counts_have_their_ranges),
        cmocka_unit_test(execute_at_and_delay_exclude_each_other),
        cmocka_unit_test(every_broken_rule_is_reported),
        cmocka_unit_test(a_badly_named_queue_is_reported_once),
        cmocka_unit_test(an_unknown_queue_is_refused),
        cmocka_unit_test(more_errors_than_room_are_counted_out),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
