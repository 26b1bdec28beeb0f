/* Look before you act: verdicts, comparisons, and what is no verdict. */
#include "base/text.h"
#include "core/outcome.h"
#include "core_test.h"

static struct bs_facts replied(int status)
{
    return (struct bs_facts){ .wire = BS_WIRE_REPLIED,
                              .sent = true,
                              .status = status,
                              .body = S("{}"),
                              .started_at = NOW,
                              .ended_at = LATER(1) };
}

static void each_verdict_has_its_outcome(void **state)
{
    static const struct {
        enum bs_verdict verdict;
        bool go_on;
        enum bs_outcome_kind kind;
        const char *code;
    } rows[] = {
        { BS_VERDICT_GO_ON, true, BS_OUT_SUCCESS, "" },
        { BS_VERDICT_FINISHED, false, BS_OUT_FINISHED, "ORDER_ALREADY_FINISHED" },
        { BS_VERDICT_NOT_FOUND, false, BS_OUT_NOT_FOUND, "ORDER_NOT_FOUND" },
        { BS_VERDICT_STATE_CONFLICT, false, BS_OUT_MANUAL, "ORDER_STATE_CONFLICT" },
        { BS_VERDICT_NONE, false, BS_OUT_NOT_PROCESSED, "CHECK_BAD_REPLY" },
    };

    (void)state;
    for (size_t i = 0; i < BS_COUNT(rows); i++) {
        BS_CLEANUP(bs_arena_free) struct bs_arena a = { 0 };
        struct bs_task t = running_task();
        struct bs_facts f = replied(200);
        struct bs_look l = { .valid = true, .verdict = rows[i].verdict, .status = S("REFUNDED") };
        struct bs_outcome o = { .code = S("untouched") };

        assert_int_equal(bs_classify_look(&t, &f, &l, &a, &o), rows[i].go_on);
        if (rows[i].go_on) {
            assert_text(o.code, "untouched");
            continue;
        }
        assert_int_equal(o.kind, rows[i].kind);
        assert_text(o.code, rows[i].code);
        assert_int_equal(o.looked, rows[i].verdict);
        assert_int_equal(o.started_at.us, NOW.us);
        assert_int_equal(o.ended_at.us, LATER(1).us);
        assert_false(o.endpoint_fault);
        if (rows[i].verdict == BS_VERDICT_STATE_CONFLICT || rows[i].verdict == BS_VERDICT_FINISHED)
            assert_contains(o.message, "REFUNDED");
    }
}

static void anything_undeclared_is_no_verdict(void **state)
{
    static const struct {
        enum bs_wire wire;
        int status;
        bool valid;
        enum bs_outcome_kind kind;
        const char *want;
    } rows[] = {
        { BS_WIRE_TIMEOUT, 0, false, BS_OUT_NOT_PROCESSED, "CHECK_TIMEOUT" },
        { BS_WIRE_RESET, 0, false, BS_OUT_NOT_PROCESSED, "CHECK_RESET" },
        { BS_WIRE_CONNECT_REFUSED, 0, false, BS_OUT_NOT_PROCESSED, "CHECK_CONNECT_REFUSED" },
        { BS_WIRE_DNS_NXDOMAIN, 0, false, BS_OUT_NOT_PROCESSED, "CHECK_DNS_NXDOMAIN" },
        { BS_WIRE_TLS_EXPIRED, 0, false, BS_OUT_NOT_PROCESSED, "CHECK_TLS_EXPIRED" },
        { BS_WIRE_TLS_UNKNOWN_ISSUER, 0, false, BS_OUT_NOT_PROCESSED, "CHECK_TLS_UNKNOWN_ISSUER" },
        { BS_WIRE_CANCELLED, 0, false, BS_OUT_UNSENT, "CHECK_CANCELLED" },
        { BS_WIRE_REPLIED, 404, false, BS_OUT_NOT_PROCESSED, "CHECK_HTTP_404" },
        { BS_WIRE_REPLIED, 404, true, BS_OUT_NOT_PROCESSED, "CHECK_HTTP_404" },
        { BS_WIRE_REPLIED, 401, false, BS_OUT_NOT_PROCESSED, "CHECK_HTTP_401" },
        { BS_WIRE_REPLIED, 302, false, BS_OUT_NOT_PROCESSED, "CHECK_HTTP_302" },
        { BS_WIRE_REPLIED, 500, true, BS_OUT_NOT_PROCESSED, "CHECK_HTTP_500" },
        { BS_WIRE_REPLIED, 201, true, BS_OUT_NOT_PROCESSED, "CHECK_HTTP_201" },
        { BS_WIRE_REPLIED, 204, false, BS_OUT_NOT_PROCESSED, "CHECK_HTTP_204" },
        { BS_WIRE_REPLIED, 200, false, BS_OUT_NOT_PROCESSED, "CHECK_BAD_REPLY" },
    };

    (void)state;
    for (size_t i = 0; i < BS_COUNT(rows); i++) {
        BS_CLEANUP(bs_arena_free) struct bs_arena a = { 0 };
        struct bs_task t = running_task();
        struct bs_facts f = replied(rows[i].status);
        struct bs_look l = { .valid = rows[i].valid, .verdict = BS_VERDICT_GO_ON };
        struct bs_outcome o = { .kind = BS_OUT_SUCCESS };

        f.wire = rows[i].wire;
        f.location = S("http://elsewhere/");
        assert_false(bs_classify_look(&t, &f, &l, &a, &o));
        assert_int_equal(o.kind, rows[i].kind);
        assert_text(o.code, rows[i].want);
        assert_int_equal(o.looked, BS_VERDICT_NONE);
        assert_true(o.message.n > 0);
        if (rows[i].status == 302)
            assert_contains(o.message, "http://elsewhere/");
    }
}

static void a_look_up_may_ask_for_time(void **state)
{
    BS_CLEANUP(bs_arena_free) struct bs_arena a = { 0 };
    struct bs_task t = running_task();
    struct bs_facts f = replied(503);
    struct bs_outcome o = { .kind = BS_OUT_SUCCESS };

    (void)state;
    f.retry_after = (struct bs_retry_after){ true, false, BS_SEC(40) };
    assert_false(bs_classify_look(&t, &f, NULL, &a, &o));
    assert_true(o.has_wish && !o.wish_may_shorten);
    assert_int_equal(o.wish.us, 40000000);
}

/* The task has 6410 minor units where it has an amount at all. */
static void case_57_amounts_are_compared_as_integers(void **state)
{
    static const struct {
        const char *own, *amount, *currency;
        const char *message; /* a part of it */
        const char *want;    /* the code; "" goes on */
    } rows[] = {
        { "CNY", "64.10", "CNY", "", "" },
        { "CNY", "6410", "CNY", "", "" },
        { "CNY", "64.10", "", "", "" },
        { "CNY", "64.1", "CNY", "", "" },
        { "CNY", "06410", "CNY", "", "" },
        { "CNY", "64.10", "cny", "", "" },
        { "CNY", "", "CNY", "", "" },
        { "CNY", "", "", "", "" },
        { "", "1", "CNY", "", "" },
        { "", "1", "", "", "" },
        { "CNY", "64.09", "CNY", "underpay of 0.01 CNY", "AMOUNT_MISMATCH" },
        { "CNY", "64.11", "CNY", "overpay of 0.01 CNY", "AMOUNT_MISMATCH" },
        { "CNY", "6409", "CNY", "underpay of 0.01 CNY", "AMOUNT_MISMATCH" },
        { "CNY", "64.09", "CNY", "64.10 CNY", "AMOUNT_MISMATCH" },
        { "CNY", "64.09", "CNY", "64.09 CNY", "AMOUNT_MISMATCH" },
        { "CNY", "0", "CNY", "underpay of 64.10 CNY", "AMOUNT_MISMATCH" },
        { "CNY", "9223372036854775807", "CNY", "overpay of", "AMOUNT_MISMATCH" },
        { "CNY", "64.10", "USD", "is CNY, the look-up's is USD", "CURRENCY_MISMATCH" },
        { "CNY", "", "USD", "USD", "CURRENCY_MISMATCH" },
        { "CNY", "1", "USD", "USD", "CURRENCY_MISMATCH" },
        { "JPY", "6410", "JPY", "", "" },
        { "KWD", "6.410", "KWD", "", "" },
        { "KWD", "64.10", "KWD", "overpay of 57.690 KWD", "AMOUNT_MISMATCH" },
        { "CNY", "64.105", "CNY", "", "CHECK_BAD_REPLY" },
        { "CNY", "-6410", "CNY", "", "CHECK_BAD_REPLY" },
        { "CNY", "6.41e3", "CNY", "", "CHECK_BAD_REPLY" },
        { "CNY", "six", "CNY", "", "CHECK_BAD_REPLY" },
        { "CNY", " 6410", "CNY", "", "CHECK_BAD_REPLY" },
        { "CNY", "9223372036854775808", "CNY", "", "CHECK_BAD_REPLY" },
        { "JPY", "6410.0", "JPY", "", "CHECK_BAD_REPLY" },
    };

    (void)state;
    for (size_t i = 0; i < BS_COUNT(rows); i++) {
        BS_CLEANUP(bs_arena_free) struct bs_arena a = { 0 };
        struct bs_task t = running_task();
        struct bs_facts f = replied(200);
        struct bs_look l = { .valid = true, .verdict = BS_VERDICT_GO_ON };
        struct bs_outcome o = { .kind = BS_OUT_SUCCESS };

        t.money.minor = 6410;
        memcpy(t.money.currency, rows[i].own, strlen(rows[i].own));
        l.amount = bs_str_of(rows[i].amount);
        l.currency = bs_str_of(rows[i].currency);
        print_message("%s against %s %s\n", rows[i].own, rows[i].amount, rows[i].currency);
        assert_int_equal(bs_classify_look(&t, &f, &l, &a, &o), rows[i].want[0] == '\0');
        assert_text(o.code, rows[i].want);
        assert_int_equal(o.looked,
                         strstr(rows[i].want, "MISMATCH") ? BS_VERDICT_GO_ON : BS_VERDICT_NONE);
        assert_contains(o.message, rows[i].message);
        if (rows[i].want[0])
            assert_int_equal(o.kind, rows[i].want[0] == 'C' && rows[i].want[1] == 'H'
                                         ? BS_OUT_NOT_PROCESSED
                                         : BS_OUT_MANUAL);
    }
}

static void another_trade_is_never_the_same_order(void **state)
{
    static const struct {
        enum bs_verdict verdict;
        const char *own, *other;
        bool go_on;
        const char *want;
    } rows[] = {
        { BS_VERDICT_GO_ON, "T1", "T1", true, "" },
        { BS_VERDICT_GO_ON, "T1", "", true, "" },
        { BS_VERDICT_GO_ON, "", "T1", true, "" },
        { BS_VERDICT_GO_ON, "T1", "T2", false, "TRADE_NO_MISMATCH" },
        { BS_VERDICT_GO_ON, "T1", "t1", false, "TRADE_NO_MISMATCH" },
        { BS_VERDICT_GO_ON, "T1", "T1 ", false, "TRADE_NO_MISMATCH" },
        { BS_VERDICT_FINISHED, "T1", "T1", false, "ORDER_ALREADY_FINISHED" },
        { BS_VERDICT_FINISHED, "T1", "", false, "ORDER_ALREADY_FINISHED" },
        { BS_VERDICT_FINISHED, "", "T2", false, "ORDER_ALREADY_FINISHED" },
        { BS_VERDICT_FINISHED, "T1", "T2", false, "TRADE_NO_MISMATCH" },
        { BS_VERDICT_NOT_FOUND, "T1", "T2", false, "ORDER_NOT_FOUND" },
        { BS_VERDICT_STATE_CONFLICT, "T1", "T2", false, "ORDER_STATE_CONFLICT" },
    };

    (void)state;
    for (size_t i = 0; i < BS_COUNT(rows); i++) {
        BS_CLEANUP(bs_arena_free) struct bs_arena a = { 0 };
        struct bs_task t = running_task();
        struct bs_facts f = replied(200);
        struct bs_look l = { .valid = true, .verdict = rows[i].verdict };
        struct bs_outcome o = { .kind = BS_OUT_SUCCESS };

        t.channel_trade_no = bs_str_of(rows[i].own);
        l.channel_trade_no = bs_str_of(rows[i].other);
        assert_int_equal(bs_classify_look(&t, &f, &l, &a, &o), rows[i].go_on);
        assert_text(o.code, rows[i].want);
        if (strcmp(rows[i].want, "TRADE_NO_MISMATCH") == 0) {
            assert_int_equal(o.kind, BS_OUT_MANUAL);
            assert_contains(o.message, rows[i].own);
            assert_contains(o.message, rows[i].other);
        }
    }
}

static void finished_at_another_amount_is_for_a_person(void **state)
{
    BS_CLEANUP(bs_arena_free) struct bs_arena a = { 0 };
    struct bs_task t = running_task();
    struct bs_facts f = replied(200);
    struct bs_look l = { .valid = true, .verdict = BS_VERDICT_FINISHED, .amount = S("64.09") };
    struct bs_outcome o = { .kind = BS_OUT_SUCCESS };

    (void)state;
    t.money = (struct bs_money){ 6410, "CNY" };
    assert_false(bs_classify_look(&t, &f, &l, &a, &o));
    assert_int_equal(o.kind, BS_OUT_MANUAL);
    assert_int_equal(o.looked, BS_VERDICT_FINISHED);
    assert_text(o.code, "AMOUNT_MISMATCH");
}

static void what_the_look_up_says_is_made_storable(void **state)
{
    static char endless[9000];
    BS_CLEANUP(bs_arena_free) struct bs_arena a = { 0 };
    struct bs_task t = running_task();
    struct bs_facts f = replied(200);
    struct bs_look l = { .valid = true, .verdict = BS_VERDICT_STATE_CONFLICT };
    struct bs_outcome o = { .kind = BS_OUT_SUCCESS };

    (void)state;
    memset(endless, 0xe7, sizeof(endless));
    l.status = f.body = (struct bs_str){ endless, sizeof(endless) };
    assert_false(bs_classify_look(&t, &f, &l, &a, &o));
    assert_int_equal(o.kind, BS_OUT_MANUAL);
    assert_true(o.message.n <= BS_MESSAGE_MAX && bs_utf8_valid(o.message));
    assert_true(o.excerpt.n <= BS_EXCERPT_MAX && bs_utf8_valid(o.excerpt));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_verdict_has_its_outcome),
        cmocka_unit_test(anything_undeclared_is_no_verdict),
        cmocka_unit_test(a_look_up_may_ask_for_time),
        cmocka_unit_test(case_57_amounts_are_compared_as_integers),
        cmocka_unit_test(another_trade_is_never_the_same_order),
        cmocka_unit_test(finished_at_another_amount_is_for_a_person),
        cmocka_unit_test(what_the_look_up_says_is_made_storable),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
