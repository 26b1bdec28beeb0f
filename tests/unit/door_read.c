/* The door: which bytes become which operation, which are refused and in which words, and what
 * makes two submissions the same. */
#include "door/door.h"

#include "check.h"

#include <stdio.h>

static const struct bs_queue_conf confs[] = {
    { .biz_type = { "MONEY", 5 }, .policy = { .max_retry_count = 7, .effect = BS_EFFECT_MONEY } },
    { .biz_type = { "NOTE", 4 }, .policy = { .max_retry_count = 3, .effect = BS_EFFECT_NONE } },
    { .biz_type = { "PAY", 3 },
      .policy = { .max_retry_count = 10, .effect = BS_EFFECT_REPEATABLE } },
};
static const struct bs_queues queues = { confs, 3 };
static const struct bs_time now = { 1790000000000000 };

struct door_case {
    struct bs_arena a;
    struct bs_queues_slot slot;
    struct bs_ids ids;
    struct bs_door door;
    struct bs_op op;
    struct bs_field_errors errors;
    struct bs_err err;
};

static void open_case(struct door_case *k)
{
    *k = (struct door_case){ .door = { &k->slot, &k->ids } };
    atomic_store(&k->slot.now, &queues);
    bs_ids_init(&k->ids, 3);
}

static void close_case(struct door_case *k)
{
    bs_arena_free(&k->a);
}

static bs_rc read_with_key(struct door_case *k, struct bs_str json, struct bs_str key)
{
    struct bs_door_input in = { json, key, BS_STR("shop"), now };

    return bs_door_read(&k->door, &in, &k->a, &k->op, &k->errors, &k->err);
}

static bs_rc read_json(struct door_case *k, struct bs_str json)
{
    return read_with_key(k, json, BS_STR_NONE);
}

/* The least that is accepted, with more members behind it. */
static struct bs_str base_and(struct door_case *k, const char *more)
{
    return bs_arena_fmt(&k->a, "{\"biz_type\":\"PAY\",\"biz_id\":\"B1\",\"request_id\":\"r-1\"%s}",
                        more);
}

static const struct bs_task *accept(struct door_case *k, struct bs_str json)
{
    if (read_json(k, json) != BS_OK)
        fail_msg("refused: %s", k->err.msg);
    assert_int_equal(k->errors.n, 0);
    return k->op.submit.task;
}

static void the_least_submission_becomes_a_waiting_row_with_its_defaults(void **state)
{
    struct door_case k;

    (void)state;
    open_case(&k);
    const struct bs_task *t = accept(&k, base_and(&k, ""));
    assert_int_equal(k.op.kind, BS_OP_SUBMIT);
    assert_int_equal(k.op.now.us, now.us);
    assert_true(k.op.submit.caller_waits);
    assert_true(t->id > 0);
    assert_int_equal(k.op.id, t->id);
    assert_str(t->biz_type, "PAY");
    assert_str(t->biz_id, "B1");
    assert_str(t->request_id, "r-1");
    assert_str(t->merchant_no, "default");
    assert_str(t->effect_key, "B1");
    assert_str(t->created_by, "shop");
    assert_int_equal(t->state, BS_WAITING);
    assert_int_equal(t->source, BS_SRC_API);
    assert_int_equal(t->priority, 1);
    assert_int_equal(t->max_retry_count, 10);
    assert_int_equal(t->version, 1);
    assert_int_equal(t->created_at.us, now.us);
    assert_int_equal(t->updated_at.us, now.us);
    assert_int_equal(t->due_at.us, now.us);
    assert_null(t->payload.p);
    close_case(&k);
}

static void every_member_reaches_its_column(void **state)
{
    struct door_case k;

    (void)state;
    open_case(&k);
    const struct bs_task *t = accept(
        &k, base_and(&k, ",\"merchant_no\":\"M\",\"order_no\":\"812345678901234567\","
                         "\"payment_no\":\"P\",\"channel\":\"wx\",\"channel_trade_no\":\"T\","
                         "\"refund_no\":\"R\",\"effect_key\":\"E\",\"serial_key\":\"S\","
                         "\"amount\":9007199254740995,\"currency\":\"CNY\",\"source\":\"RECON\","
                         "\"priority\":3,\"max_retry_count\":100,\"delay\":\"90s\","
                         "\"extra_data\":{ \"a\":1 },\"parent_task_no\":\"77\",\"park\":false"));
    assert_str(t->merchant_no, "M");
    assert_str(t->order_no, "812345678901234567");
    assert_str(t->payment_no, "P");
    assert_str(t->channel, "wx");
    assert_str(t->channel_trade_no, "T");
    assert_str(t->refund_no, "R");
    assert_str(t->effect_key, "E");
    assert_int_equal(t->money.minor, 9007199254740995);
    assert_string_equal(t->money.currency, "CNY");
    assert_int_equal(t->source, BS_SRC_RECON);
    assert_int_equal(t->priority, 3);
    assert_int_equal(t->max_retry_count, 100);
    assert_int_equal(t->due_at.us, now.us + 90000000);
    assert_str(t->extra_data, "{ \"a\":1 }");
    assert_int_equal(t->parent_id, 77);
    close_case(&k);
}

static void a_payload_is_kept_byte_for_byte(void **state)
{
    static const char *const payloads[] = {
        "{\"amount\":1.10,\"id\":12345678901234567890123,\"a\":1,\"a\":2}",
        "[1e400,-0.0]",
        "{\"n\":\"\\ud83d\"}",
        "{\"memo\":\"a\\u0000b\"}",
        "\"\xf0\xa0\xae\xb7\xe9\x87\x8e\xe5\xae\xb6\xf0\x9f\x8d\x9c 88\xe5\x85\x83\"",
        "{ \"spacing\" :\t[ 1 ,2 ] }",
        "null",
        "\"\"",
    };
    struct door_case k;

    (void)state;
    for (size_t i = 0; i < BS_COUNT(payloads); i++) {
        open_case(&k);
        struct bs_str more = bs_arena_fmt(&k.a, ",\"payload\": %s ", payloads[i]);
        const struct bs_task *t = accept(&k, base_and(&k, more.p));
        assert_slice(t->payload, bs_str_of(payloads[i]));
        assert_true(t->payload_is_json);
        close_case(&k);
    }
}

static void base64_becomes_the_bytes_it_stands_for(void **state)
{
    struct door_case k;

    (void)state;
    open_case(&k);
    const struct bs_task *t = accept(&k, base_and(&k, ",\"payload_base64\":\"AP8KYQ==\""));
    assert_str(t->payload, "\x00\xff\na");
    assert_false(t->payload_is_json);
    t = accept(&k, base_and(&k, ",\"payload_base64\":\"\""));
    assert_non_null(t->payload.p);
    assert_int_equal(t->payload.n, 0);
    close_case(&k);
}

static void a_bad_member_is_named_with_its_code(void **state)
{
    static const struct {
        const char *more, *field, *code;
    } bad[] = {
        { ",\"priorty\":1", "priorty", "UNKNOWN_MEMBER" },
        { ",\"biz_id\":\"B2\"", "biz_id", "DUPLICATE_MEMBER" },
        { ",\"\\u0062iz_id\":\"B2\"", "biz_id", "DUPLICATE_MEMBER" },
        { ",\"order_no\":1", "order_no", "WRONG_TYPE" },
        { ",\"order_no\":null", "order_no", "WRONG_TYPE" },
        { ",\"amount\":null,\"currency\":\"CNY\"", "amount", "WRONG_TYPE" },
        { ",\"amount\":true,\"currency\":\"CNY\"", "amount", "WRONG_TYPE" },
        { ",\"amount\":1.5,\"currency\":\"CNY\"", "amount", "BAD_FORMAT" },
        { ",\"amount\":1e2,\"currency\":\"CNY\"", "amount", "BAD_FORMAT" },
        { ",\"amount\":\"1.50\",\"currency\":\"CNY\"", "amount", "BAD_FORMAT" },
        { ",\"amount\":\"\",\"currency\":\"CNY\"", "amount", "BAD_FORMAT" },
        { ",\"amount\":-1,\"currency\":\"CNY\"", "amount", "OUT_OF_RANGE" },
        { ",\"amount\":12345678901234567890123,\"currency\":\"CNY\"", "amount", "OUT_OF_RANGE" },
        { ",\"amount\":1", "currency", "REQUIRED" },
        { ",\"currency\":\"CNY\"", "amount", "REQUIRED" },
        { ",\"amount\":1,\"currency\":\"XXZ\"", "currency", "UNKNOWN_VALUE" },
        { ",\"priority\":\"1\"", "priority", "WRONG_TYPE" },
        { ",\"priority\":1.0", "priority", "WRONG_TYPE" },
        { ",\"priority\":4", "priority", "OUT_OF_RANGE" },
        { ",\"priority\":99999999999999999999", "priority", "OUT_OF_RANGE" },
        { ",\"max_retry_count\":0", "max_retry_count", "OUT_OF_RANGE" },
        { ",\"max_retry_count\":101", "max_retry_count", "OUT_OF_RANGE" },
        { ",\"park\":1", "park", "WRONG_TYPE" },
        { ",\"extra_data\":[]", "extra_data", "WRONG_TYPE" },
        { ",\"payload_base64\":\"a\"", "payload_base64", "BAD_FORMAT" },
        { ",\"payload_base64\":{}", "payload_base64", "WRONG_TYPE" },
        { ",\"payload\":1,\"payload_base64\":\"\"", "payload_base64", "CONFLICTS_WITH" },
        { ",\"payload\":1,\"payload\":1", "payload", "DUPLICATE_MEMBER" },
        { ",\"source\":\"REDIS\"", "source", "UNKNOWN_VALUE" },
        { ",\"delay\":\"5\"", "delay", "BAD_FORMAT" },
        { ",\"delay\":\"367d\"", "delay", "OUT_OF_RANGE" },
        { ",\"execute_at\":\"tomorrow\"", "execute_at", "BAD_FORMAT" },
        { ",\"order_no\":\"\"", "order_no", "BAD_FORMAT" },
        { ",\"order_no\":\"a\\u0000b\"", "order_no", "CONTROL_CHARACTER" },
        { ",\"order_no\":\"a\\u0085b\"", "order_no", "CONTROL_CHARACTER" },
        { ",\"parent_task_no\":77", "parent_task_no", "WRONG_TYPE" },
    };
    struct door_case k;

    (void)state;
    for (size_t i = 0; i < BS_COUNT(bad); i++) {
        open_case(&k);
        if (read_json(&k, base_and(&k, bad[i].more)) != BS_E_INVALID || k.errors.n != 1)
            fail_msg("%s: %u errors, %s", bad[i].more, k.errors.n, k.err.msg);
        assert_string_equal(k.errors.items[0].field, bad[i].field);
        if (strcmp(k.errors.items[0].code, bad[i].code) != 0)
            fail_msg("%s: %s, wanted %s", bad[i].more, k.errors.items[0].code, bad[i].code);
        assert_true(k.errors.items[0].message.n > 0);
        close_case(&k);
    }
}

static void all_broken_rules_are_told_at_once(void **state)
{
    struct door_case k;

    (void)state;
    open_case(&k);
    assert_int_equal(read_json(&k, BS_STR("{\"biz_type\":7,\"priority\":9,\"what\":1}")),
                     BS_E_INVALID);
    assert_int_equal(k.errors.n, 5);
    assert_string_equal(k.errors.items[0].field, "biz_type");
    assert_string_equal(k.errors.items[0].code, "WRONG_TYPE");
    assert_string_equal(k.errors.items[1].field, "what");
    for (uint32_t i = 2; i < 5; i++)
        assert_string_not_equal(k.errors.items[i].field, "biz_type");
    close_case(&k);
}

static void a_slip_of_the_hand_gets_the_nearest_name(void **state)
{
    struct door_case k;

    (void)state;
    open_case(&k);
    assert_int_equal(read_json(&k, base_and(&k, ",\"order_nr\":\"1\"")), BS_E_INVALID);
    assert_str(k.errors.items[0].message, "there is no such member; did you mean order_no?");
    assert_int_equal(read_json(&k, base_and(&k, ",\"completely_else\":\"1\"")), BS_E_INVALID);
    assert_str(k.errors.items[0].message, "there is no such member");
    close_case(&k);
}

static void what_is_no_json_object_is_refused_without_field_errors(void **state)
{
    static const char *const bad[] = { "",          " ",          "{",     "[]",
                                       "\"x\"",     "{\"a\":01}", "{} {}", "{\"a\":\"\xff\"}",
                                       "{\"a\":1,}" };
    struct door_case k;

    (void)state;
    for (size_t i = 0; i < BS_COUNT(bad); i++) {
        open_case(&k);
        assert_int_equal(read_json(&k, bs_str_of(bad[i])), BS_E_INVALID);
        assert_int_equal(k.errors.n, 0);
        assert_true(k.err.msg[0] != '\0');
        close_case(&k);
    }
}

static void more_members_than_there_are_is_one_error(void **state)
{
    struct door_case k;
    BS_CLEANUP(bs_buf_free) struct bs_buf b = { .max = 4096 };

    (void)state;
    open_case(&k);
    for (int i = 0; i < 65; i++)
        bs_buf_fmt(&b, "%c\"m%d\":0", i ? ',' : '{', i);
    bs_buf_addc(&b, '}');
    assert_int_equal(read_json(&k, bs_buf_str(&b)), BS_E_INVALID);
    assert_int_equal(k.errors.n, 1);
    assert_string_equal(k.errors.items[0].code, "UNKNOWN_MEMBER");
    close_case(&k);
}

static void the_idempotency_key_stands_for_an_absent_request_id_only(void **state)
{
    struct door_case k;

    (void)state;
    open_case(&k);
    struct bs_str without = BS_STR("{\"biz_type\":\"PAY\",\"biz_id\":\"B1\"}");
    assert_int_equal(read_json(&k, without), BS_E_INVALID);
    assert_string_equal(k.errors.items[0].code, "REQUIRED");
    assert_int_equal(read_with_key(&k, without, BS_STR("key-1")), BS_OK);
    assert_str(k.op.submit.task->request_id, "key-1");
    assert_int_equal(read_with_key(&k, base_and(&k, ""), BS_STR("r-1")), BS_OK);
    assert_int_equal(read_with_key(&k, base_and(&k, ""), BS_STR("r-2")), BS_E_INVALID);
    assert_int_equal(k.errors.n, 1);
    assert_string_equal(k.errors.items[0].field, "request_id");
    assert_string_equal(k.errors.items[0].code, "CONFLICTS_WITH");
    close_case(&k);
}

static void an_unknown_queue_is_refused_unless_parking_was_asked(void **state)
{
    struct door_case k;

    (void)state;
    open_case(&k);
    assert_int_equal(
        read_json(&k, BS_STR("{\"biz_type\":\"NEW\",\"biz_id\":\"B\",\"request_id\":\"r\"}")),
        BS_E_INVALID);
    assert_int_equal(k.errors.n, 1);
    assert_string_equal(k.errors.items[0].field, "biz_type");
    assert_string_equal(k.errors.items[0].code, "UNKNOWN_QUEUE");
    const struct bs_task *t = accept(
        &k, BS_STR("{\"biz_type\":\"NEW\",\"biz_id\":\"B\",\"request_id\":\"r\",\"park\":true}"));
    assert_int_equal(t->state, BS_MANUAL);
    assert_str(t->manual_code, "UNKNOWN_QUEUE");
    assert_int_equal(t->due_at.us, 0);
    close_case(&k);
}

static struct bs_op_submit prints(struct door_case *k, const char *more)
{
    accept(k, base_and(k, more));
    return k->op.submit;
}

static bool same(struct bs_sha256 a, struct bs_sha256 b)
{
    return memcmp(a.b, b.b, sizeof(a.b)) == 0;
}

static void the_content_decides_the_fingerprint_and_its_order_does_not(void **state)
{
    static const struct {
        const char *a, *b;
        bool request, effect; /* the same? */
    } pairs[] = {
        { ",\"order_no\":\"O\",\"channel\":\"c\"", ",\"channel\":\"c\",\"order_no\":\"O\"", true,
          true },
        { ",\"order_no\":\"O\"", ",\"order_no\":\"o\"", false, false },
        { ",\"channel\":\"c\"", ",\"channel\":\"d\"", false, true },
        { ",\"amount\":500,\"currency\":\"CNY\"", ",\"amount\":\"500\",\"currency\":\"CNY\"", true,
          true },
        { ",\"amount\":500,\"currency\":\"CNY\"", ",\"amount\":5000,\"currency\":\"CNY\"", false,
          false },
        { ",\"payload\":{\"a\":1}", ",\"payload\":{\"a\": 1}", false, true },
        { ",\"payload\":null", "", false, true },
        { ",\"payload\":\"eA==\"", ",\"payload_base64\":\"eA==\"", false, true },
        { ",\"merchant_no\":\"default\"", "", true, true },
        { ",\"delay\":\"5m\"", "", true, true },
        { ",\"priority\":0", "", true, true },
        { ",\"source\":\"RECON\"", "", true, true },
        { ",\"park\":true", "", true, true },
        { ",\"max_retry_count\":4", "", false, true },
        { ",\"extra_data\":{}", "", false, true },
        { ",\"parent_task_no\":\"1\"", "", false, true },
    };
    struct door_case k;

    (void)state;
    open_case(&k);
    for (size_t i = 0; i < BS_COUNT(pairs); i++) {
        struct bs_op_submit a = prints(&k, pairs[i].a), b = prints(&k, pairs[i].b);

        if (same(a.request_fp, b.request_fp) != pairs[i].request)
            fail_msg("request: %s against %s", pairs[i].a, pairs[i].b);
        if (same(a.effect_fp, b.effect_fp) != pairs[i].effect)
            fail_msg("effect: %s against %s", pairs[i].a, pairs[i].b);
    }
    close_case(&k);
}

static void a_large_payload_is_hashed_whole(void **state)
{
    struct door_case k;
    struct bs_sha256 prints_of[2];

    (void)state;
    open_case(&k);
    for (int i = 0; i < 2; i++) {
        BS_CLEANUP(bs_buf_free) struct bs_buf b = { .max = 300000 };

        bs_buf_addz(&b,
                    "{\"biz_type\":\"PAY\",\"biz_id\":\"B1\",\"request_id\":\"r\",\"payload\":\"");
        for (int n = 0; n < 200000; n++)
            bs_buf_addc(&b, 'x');
        bs_buf_addc(&b, i ? 'y' : 'x');
        bs_buf_addz(&b, "\"}");
        accept(&k, bs_buf_str(&b));
        prints_of[i] = k.op.submit.request_fp;
    }
    assert_false(same(prints_of[0], prints_of[1]));
    close_case(&k);
}

static void a_payload_over_the_limit_is_a_field_error(void **state)
{
    struct door_case k;
    BS_CLEANUP(bs_buf_free) struct bs_buf b = { .max = 300000 };

    (void)state;
    open_case(&k);
    bs_buf_addz(&b, "{\"biz_type\":\"PAY\",\"biz_id\":\"B1\",\"request_id\":\"r\",\"payload\":\"");
    for (int n = 0; n < BS_PAYLOAD_MAX - 2; n++)
        bs_buf_addc(&b, 'x');
    bs_buf_addz(&b, "\"}");
    accept(&k, bs_buf_str(&b));
    b.p[b.len - 2] = 'x';
    b.p[b.len - 1] = '"';
    bs_buf_addc(&b, '}');
    assert_int_equal(read_json(&k, bs_buf_str(&b)), BS_E_INVALID);
    assert_int_equal(k.errors.n, 1);
    assert_string_equal(k.errors.items[0].field, "payload");
    assert_string_equal(k.errors.items[0].code, "TOO_LONG");
    close_case(&k);
}

static void a_batch_splits_into_exact_slices(void **state)
{
    BS_CLEANUP(bs_arena_free) struct bs_arena a = { 0 };
    struct bs_str *items = NULL;
    struct bs_err err = { 0 };
    uint32_t n = 9;

    (void)state;
    assert_int_equal(bs_door_split(BS_STR(" [ {\"a\": 1} ,2,[3] ] "), false, &a, &items, &n, &err),
                     BS_OK);
    assert_int_equal(n, 3);
    assert_str(items[0], "{\"a\": 1}");
    assert_str(items[1], "2");
    assert_str(items[2], "[3]");
    assert_int_equal(bs_door_split(BS_STR("[]"), false, &a, &items, &n, &err), BS_OK);
    assert_int_equal(n, 0);
    assert_int_equal(bs_door_split(BS_STR("{}"), false, &a, &items, &n, &err), BS_E_INVALID);
    assert_int_equal(bs_door_split(BS_STR("[1"), false, &a, &items, &n, &err), BS_E_INVALID);
}

static void lines_are_items_and_blank_ones_are_not(void **state)
{
    BS_CLEANUP(bs_arena_free) struct bs_arena a = { 0 };
    struct bs_str *items = NULL;
    struct bs_err err = { 0 };
    uint32_t n = 9;

    (void)state;
    assert_int_equal(
        bs_door_split(BS_STR("{\"a\":1}\r\n\r\n  \nnot json\n{}"), true, &a, &items, &n, &err),
        BS_OK);
    assert_int_equal(n, 3);
    assert_str(items[0], "{\"a\":1}");
    assert_str(items[1], "not json");
    assert_str(items[2], "{}");
    assert_int_equal(bs_door_split(BS_STR(""), true, &a, &items, &n, &err), BS_OK);
    assert_int_equal(n, 0);
}

static void a_batch_has_at_most_a_thousand_items(void **state)
{
    BS_CLEANUP(bs_arena_free) struct bs_arena a = { 0 };
    BS_CLEANUP(bs_buf_free) struct bs_buf lines = { .max = 8192 };
    struct bs_str *items = NULL;
    struct bs_err err = { 0 };
    uint32_t n = 0;

    (void)state;
    for (int i = 0; i < 1000; i++)
        bs_buf_addz(&lines, "{}\n");
    assert_int_equal(bs_door_split(bs_buf_str(&lines), true, &a, &items, &n, &err), BS_OK);
    assert_int_equal(n, 1000);
    bs_buf_addz(&lines, "{}\n");
    assert_int_equal(bs_door_split(bs_buf_str(&lines), true, &a, &items, &n, &err), BS_E_LIMIT);
    for (size_t i = 0; i < lines.len; i++) {
        if (lines.p[i] == '\n')
            lines.p[i] = i + 1 == lines.len ? ']' : ',';
    }
    BS_CLEANUP(bs_buf_free) struct bs_buf array = { .max = 8192 };
    bs_buf_addc(&array, '[');
    bs_buf_add(&array, bs_buf_str(&lines));
    assert_int_equal(bs_door_split(bs_buf_str(&array), false, &a, &items, &n, &err), BS_E_LIMIT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_least_submission_becomes_a_waiting_row_with_its_defaults),
        cmocka_unit_test(every_member_reaches_its_column),
        cmocka_unit_test(a_payload_is_kept_byte_for_byte),
        cmocka_unit_test(base64_becomes_the_bytes_it_stands_for),
        cmocka_unit_test(a_bad_member_is_named_with_its_code),
        cmocka_unit_test(all_broken_rules_are_told_at_once),
        cmocka_unit_test(a_slip_of_the_hand_gets_the_nearest_name),
        cmocka_unit_test(what_is_no_json_object_is_refused_without_field_errors),
        cmocka_unit_test(more_members_than_there_are_is_one_error),
        cmocka_unit_test(the_idempotency_key_stands_for_an_absent_request_id_only),
        cmocka_unit_test(an_unknown_queue_is_refused_unless_parking_was_asked),
        cmocka_unit_test(the_content_decides_the_fingerprint_and_its_order_does_not),
        cmocka_unit_test(a_large_payload_is_hashed_whole),
        cmocka_unit_test(a_payload_over_the_limit_is_a_field_error),
        cmocka_unit_test(a_batch_splits_into_exact_slices),
        cmocka_unit_test(lines_are_items_and_blank_ones_are_not),
        cmocka_unit_test(a_batch_has_at_most_a_thousand_items),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
