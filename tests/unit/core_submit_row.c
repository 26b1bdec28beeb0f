/* The row that comes of an accepted submission: defaults, times, keys. */
#include "core/submit.h"
#include "core_test.h"

static const struct bs_policy policy = { .max_retry_count = 10, .effect = BS_EFFECT_REPEATABLE };
static const struct bs_policy no_effect = { .max_retry_count = 3, .effect = BS_EFFECT_NONE };
static const struct bs_door_queue known = { &policy };
static const struct bs_door_queue known_none = { &no_effect };

static struct bs_submission good(void)
{
    return (struct bs_submission){
        .biz_type = S("PAY_CALLBACK"),
        .biz_id = S("b-1"),
        .request_id = S("r-1"),
    };
}

static struct bs_task accepted(const struct bs_submission *s, const struct bs_door_queue *q,
                               struct bs_arena *a)
{
    struct bs_field_errors errors = { .n = 0 };
    struct bs_task t = { 0 };

    assert_int_equal(bs_submission_check(s, q, NOW, a, &t, &errors), BS_OK);
    assert_int_equal(errors.n, 0);
    return t;
}

static void the_least_submission_gets_the_defaults(void **state)
{
    BS_CLEANUP(bs_arena_free) struct bs_arena a = { 0 };
    struct bs_submission s = good();
    struct bs_task t = accepted(&s, &known, &a);

    (void)state;
    assert_int_equal(t.state, BS_WAITING);
    assert_text(t.merchant_no, "default");
    assert_text(t.effect_key, "b-1");
    assert_text(t.serial_key, "b:default:PAY_CALLBACK:b-1");
    assert_int_equal(t.source, BS_SRC_API);
    assert_int_equal(t.priority, 1);
    assert_int_equal(t.max_retry_count, 10);
    assert_int_equal(t.next_execute_at.us, NOW.us);
    assert_int_equal(t.due_at.us, NOW.us);
    assert_int_equal(t.parent_id, 0);
    assert_string_equal(t.money.currency, "");
    assert_null(t.payload.p);
    assert_int_equal(t.manual_code.n, 0);
    assert_false(t.outcome_unknown);
}

static void what_was_given_is_kept_exactly(void **state)
{
    BS_CLEANUP(bs_arena_free) struct bs_arena a = { 0 };
    struct bs_submission s = good();

    (void)state;
    s.merchant_no = S("M1");
    s.order_no = S("812345678901234567");
    s.payment_no = S("P1");
    s.channel = S("wechat-main");
    s.channel_trade_no = S("T1");
    s.refund_no = S("R1");
    s.amount = S("6410");
    s.currency = S("CNY");
    s.payload = S("{\"a\":1,\"a\":2}");
    s.payload_is_json = true;
    s.extra_data = S("{ }");
    s.source = S("RECON");
    s.has_priority = s.has_max_retry_count = true;
    s.priority = 0;
    s.max_retry_count = 7;
    s.execute_at = S("2026-01-02T00:00:00Z");
    s.parent_task_no = S("9007199254740995");
    struct bs_task t = accepted(&s, &known, &a);
    assert_text(t.request_id, "r-1");
    assert_text(t.biz_type, "PAY_CALLBACK");
    assert_text(t.biz_id, "b-1");
    assert_text(t.merchant_no, "M1");
    assert_text(t.order_no, "812345678901234567");
    assert_text(t.payment_no, "P1");
    assert_text(t.channel, "wechat-main");
    assert_text(t.channel_trade_no, "T1");
    assert_text(t.refund_no, "R1");
    assert_int_equal(t.money.minor, 6410);
    assert_string_equal(t.money.currency, "CNY");
    assert_text(t.payload, "{\"a\":1,\"a\":2}");
    assert_true(t.payload_is_json);
    assert_text(t.extra_data, "{ }");
    assert_int_equal(t.source, BS_SRC_RECON);
    assert_int_equal(t.priority, 0);
    assert_int_equal(t.max_retry_count, 7);
    assert_int_equal(t.next_execute_at.us, LATER(86400).us);
    assert_int_equal(t.due_at.us, LATER(86400).us);
    assert_int_equal(t.parent_id, 9007199254740995);
}

static void the_past_counts_as_now_and_a_delay_from_now(void **state)
{
    static const struct {
        const char *execute_at, *delay;
        int64_t want_s;
    } rows[] = {
        { "2025-12-31T23:56:00Z", NULL, 0 },
        { "2026-01-01T00:00:10Z", NULL, 10 },
        { NULL, "90s", 90 },
        { NULL, "0s", 0 },
        { NULL, "366d", 366 * 86400LL },
    };

    (void)state;
    for (size_t i = 0; i < BS_COUNT(rows); i++) {
        BS_CLEANUP(bs_arena_free) struct bs_arena a = { 0 };
        struct bs_submission s = good();

        s.execute_at = bs_str_of(rows[i].execute_at);
        s.delay = bs_str_of(rows[i].delay);
        assert_int_equal(accepted(&s, &known, &a).due_at.us, LATER(rows[i].want_s).us);
    }
}

static void a_parked_task_of_an_unknown_queue_waits_for_a_person(void **state)
{
    BS_CLEANUP(bs_arena_free) struct bs_arena a = { 0 };
    struct bs_submission s = good();

    (void)state;
    s.park = true;
    s.delay = S("1h");
    struct bs_task t = accepted(&s, NULL, &a);
    assert_int_equal(t.state, BS_MANUAL);
    assert_text(t.manual_code, "UNKNOWN_QUEUE");
    assert_int_equal(t.due_at.us, 0);
    assert_int_equal(t.max_retry_count, 10);
    assert_text(t.effect_key, "b-1");
    t = accepted(&s, &known, &a);
    assert_int_equal(t.state, BS_WAITING);
}

/* ---- keys */

static void keys_have_these_defaults(void **state)
{
    static const struct {
        const struct bs_door_queue *queue;
        const char *source, *channel, *trade, *refund, *merchant, *order, *effect, *serial;
        const char *want_effect, *want_serial;
    } rows[] = {
        { &known, "API", 0, 0, 0, 0, 0, 0, 0, "b-1", "b:default:PAY_CALLBACK:b-1" },
        { &known, "API", 0, 0, 0, "M", "O1", 0, 0, "b-1", "o:M:O1" },
        { &known, "API", 0, 0, 0, "M", "O1", "e", "k", "e", "s:M:k" },
        { &known, "API", "wx", "T", 0, 0, 0, 0, 0, "b-1", "b:default:PAY_CALLBACK:b-1" },
        { &known, "CALLBACK", "wx", "T", 0, 0, "O", 0, 0, "wx:T", "o:default:O" },
        { &known, "CALLBACK", "wx", "T", "R", 0, "O", 0, 0, "wx:R", "o:default:O" },
        { &known, "CALLBACK", "wx", 0, "R", 0, "O", 0, 0, "wx:R", "o:default:O" },
        { &known, "CALLBACK", "wx", 0, 0, 0, "O", 0, 0, "b-1", "o:default:O" },
        { &known, "CALLBACK", 0, "T", 0, 0, "O", 0, 0, "b-1", "o:default:O" },
        { &known, "CALLBACK", "wx", "T", 0, 0, "O", "own", 0, "own", "o:default:O" },
        { &known, "CALLBACK", "w:x", "T%:", 0, "M:%", "O:%", 0, 0, "w%3Ax:T%:", "o:M%3A%25:O:%" },
        { &known, "API", 0, 0, 0, "M:1", 0, 0, "k:1", "b-1", "s:M%3A1:k:1" },
        { &known_none, "API", 0, 0, 0, 0, "O", 0, 0, "", "" },
        { &known_none, "CALLBACK", "wx", "T", 0, 0, "O", 0, 0, "", "" },
        { &known_none, "API", 0, 0, 0, 0, "O", "e", "k", "e", "s:default:k" },
    };

    (void)state;
    for (size_t i = 0; i < BS_COUNT(rows); i++) {
        BS_CLEANUP(bs_arena_free) struct bs_arena a = { 0 };
        struct bs_submission s = good();

        s.source = bs_str_of(rows[i].source);
        s.channel = bs_str_of(rows[i].channel);
        s.channel_trade_no = bs_str_of(rows[i].trade);
        s.refund_no = bs_str_of(rows[i].refund);
        s.merchant_no = bs_str_of(rows[i].merchant);
        s.order_no = bs_str_of(rows[i].order);
        s.effect_key = bs_str_of(rows[i].effect);
        s.serial_key = bs_str_of(rows[i].serial);
        struct bs_task t = accepted(&s, rows[i].queue, &a);
        assert_text(t.effect_key, rows[i].want_effect);
        assert_text(t.serial_key, rows[i].want_serial);
    }
}

static void different_objects_never_share_a_serial_key(void **state)
{
    static const struct {
        const char *merchant, *order, *biz_id, *serial;
    } rows[] = {
        { "M", "1", "x", NULL },
        { "M:1", "1", "x", NULL },
        { "M", "1:1", "x", NULL },
        { "M%3A1", "1", "x", NULL },
        { "M", "PAY_CALLBACK:x", "x", NULL },
        { "M", NULL, "x", NULL },
        { "M:PAY_CALLBACK", NULL, "x", NULL },
        { "M", NULL, "PAY_CALLBACK:x", NULL },
        { "M", NULL, "x", "1" },
        { "M", NULL, "x", "PAY_CALLBACK:x" },
        { "M:1", NULL, "x", "1" },
    };
    BS_CLEANUP(bs_arena_free) struct bs_arena a = { 0 };
    struct bs_str keys[BS_COUNT(rows)];

    (void)state;
    for (size_t i = 0; i < BS_COUNT(rows); i++) {
        struct bs_submission s = good();

        s.merchant_no = bs_str_of(rows[i].merchant);
        s.order_no = bs_str_of(rows[i].order);
        s.biz_id = bs_str_of(rows[i].biz_id);
        s.serial_key = bs_str_of(rows[i].serial);
        keys[i] = accepted(&s, &known, &a).serial_key;
        for (size_t k = 0; k < i; k++)
            assert_false(bs_str_eq(keys[i], keys[k]));
    }
}

static void the_longest_parts_fit_into_a_key(void **state)
{
    BS_CLEANUP(bs_arena_free) struct bs_arena a = { 0 };
    struct bs_submission s = good();
    static char colons[128];

    (void)state;
    memset(colons, ':', sizeof(colons));
    s.merchant_no = (struct bs_str){ colons, 64 };
    s.serial_key = (struct bs_str){ colons, 128 };
    assert_int_equal(accepted(&s, &known, &a).serial_key.n, 2 + 64 * 3 + 1 + 128);
}

static void without_memory_nothing_is_accepted(void **state)
{
    (void)state;
    for (size_t max = 1; max < 40; max++) {
        BS_CLEANUP(bs_arena_free) struct bs_arena a = { .max = max };
        struct bs_field_errors errors = { .n = 0 };
        struct bs_submission s = good();
        struct bs_task t = { .id = 99 };
        bs_rc rc = bs_submission_check(&s, &known, NOW, &a, &t, &errors);

        assert_int_equal(rc, max < 32 ? BS_E_NOMEM : BS_OK);
        if (rc != BS_OK)
            assert_int_equal(t.id, 99);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_least_submission_gets_the_defaults),
        cmocka_unit_test(what_was_given_is_kept_exactly),
        cmocka_unit_test(the_past_counts_as_now_and_a_delay_from_now),
        cmocka_unit_test(a_parked_task_of_an_unknown_queue_waits_for_a_person),
        cmocka_unit_test(keys_have_these_defaults),
        cmocka_unit_test(different_objects_never_share_a_serial_key),
        cmocka_unit_test(the_longest_parts_fit_into_a_key),
        cmocka_unit_test(without_memory_nothing_is_accepted),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
