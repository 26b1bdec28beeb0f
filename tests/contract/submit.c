/* The contract: submissions and their permanent keys. */
#include "world.h"

#include <stdio.h>

static void a_submitted_task_comes_back_byte_for_byte(void **state)
{
    struct world *w = *state;
    struct bs_task *t = sample(w, "r-1");

    t->biz_id = BS_STR("𠮷野家🍜 88元");
    t->order_no = BS_STR("A1001");
    t->payment_no = BS_STR("P1");
    t->channel = BS_STR("wechat-main");
    t->channel_trade_no = BS_STR("4200001");
    t->refund_no = BS_STR("R1");
    t->effect_key = BS_STR("pay:A1001");
    t->serial_key = BS_STR("o:default:A1001");
    t->parent_id = 99;
    t->money = (struct bs_money){ INT64_MAX, "KWD" };
    t->payload = BS_STR("{\"amount\":1.10,\"a\":1,\"a\":2,  \"m\":\"a\\u0000b\"}");
    t->extra_data = BS_STR("{\"from\":\"\xf0\x9f\x8d\x9c\"}");
    t->next_execute_at = t->due_at = (struct bs_time){ START_US + 123457 };
    int64_t id = put(w, t);

    struct bs_task got = get(w, id);
    assert_int_equal(got.id, id);
    assert_str(got.request_id, "r-1");
    assert_str(got.biz_type, "PAY_CALLBACK");
    assert_str(got.merchant_no, "default");
    assert_str(got.biz_id, "𠮷野家🍜 88元");
    assert_str(got.order_no, "A1001");
    assert_str(got.payment_no, "P1");
    assert_str(got.channel, "wechat-main");
    assert_str(got.channel_trade_no, "4200001");
    assert_str(got.refund_no, "R1");
    assert_str(got.effect_key, "pay:A1001");
    assert_str(got.serial_key, "o:default:A1001");
    assert_int_equal(got.parent_id, 99);
    assert_true(got.money.minor == INT64_MAX);
    assert_string_equal(got.money.currency, "KWD");
    assert_true(bs_str_eq(got.payload, t->payload));
    assert_true(got.payload_is_json);
    assert_true(bs_str_eq(got.extra_data, t->extra_data));
    assert_int_equal(got.next_execute_at.us, START_US + 123457);
    assert_int_equal(got.due_at.us, START_US + 123457);
    assert_int_equal(got.created_at.us, START_US);
    assert_str(got.created_by, "shop");
    assert_int_equal(got.source, BS_SRC_API);
    assert_int_equal(got.state, BS_WAITING);
    assert_int_equal(got.priority, 1);
    assert_int_equal(got.max_retry_count, 10);
    assert_int_equal(got.version, 1);
    assert_int_equal(got.attempt_no, 0);
}

static void a_task_without_payload_or_amount_has_none(void **state)
{
    struct world *w = *state;
    struct bs_task *t = sample(w, "r-1");

    t->payload = BS_STR_NONE;
    t->money = (struct bs_money){ 0 };
    struct bs_task got = get(w, put(w, t));
    assert_null(got.payload.p);
    assert_string_equal(got.money.currency, "");
}

static void an_empty_payload_is_not_an_absent_one(void **state)
{
    struct world *w = *state;
    struct bs_task *t = sample(w, "r-1");

    t->payload = BS_STR("");
    t->payload_is_json = false;
    struct bs_task got = get(w, put(w, t));
    assert_non_null(got.payload.p);
    assert_int_equal(got.payload.n, 0);
    assert_false(got.payload_is_json);
}

static void payload_bytes_that_are_no_text_survive(void **state)
{
    struct world *w = *state;
    struct bs_task *t = sample(w, "r-1");
    char all[256];

    for (int i = 0; i < 256; i++)
        all[i] = (char)i;
    t->payload = (struct bs_str){ all, sizeof(all) };
    struct bs_task got = get(w, put(w, t));
    assert_int_equal(got.payload.n, 256);
    assert_memory_equal(got.payload.p, all, 256);
}

static void the_longest_fields_survive_and_longer_ones_are_refused_not_cut(void **state)
{
    struct world *w = *state;
    char key[130], big[256 << 10];

    memset(key, 'k', sizeof(key));
    memset(big, 'x', sizeof(big));
    struct bs_task *t = sample(w, "r");
    t->request_id = (struct bs_str){ key, 128 };
    t->payload = (struct bs_str){ big, sizeof(big) };
    struct bs_task got = get(w, put(w, t));
    assert_int_equal(got.request_id.n, 128);
    assert_int_equal(got.payload.n, sizeof(big));

    struct bs_task *longer = sample(w, "r");
    longer->request_id = (struct bs_str){ key, 129 };
    struct bs_op op = submit_op(w, longer, "x");
    assert_int_equal(apply(w, &op), BS_E_CONFLICT);
    assert_int_equal(bs_store_task(w->store, op.id, &w->arena, &got, NULL), BS_E_NOT_FOUND);
}

static void ids_are_compared_byte_for_byte(void **state)
{
    struct world *w = *state;
    const char *keys[] = { "a", "A", "a ", "\xc3\xa9", "e\xcc\x81" };

    for (size_t i = 0; i < BS_COUNT(keys); i++)
        put_one(w, keys[i]);
    struct bs_op again = submit_op(w, sample(w, "A"), "content");
    assert_int_equal(apply(w, &again), BS_OK);
    assert_int_equal(again.submit.ret_what, BS_SUBMITTED_DUPLICATE_REQUEST);
}

static void the_same_request_is_one_task(void **state)
{
    struct world *w = *state;
    int64_t first = put_one(w, "r-1");
    struct bs_op again = submit_op(w, sample(w, "r-1"), "content");

    assert_int_equal(apply(w, &again), BS_OK);
    assert_int_equal(again.submit.ret_what, BS_SUBMITTED_DUPLICATE_REQUEST);
    assert_int_equal(again.submit.ret_task_id, first);
    assert_string_equal(alerts_text(w), "");
}

static void the_same_request_twice_in_one_batch_is_one_task(void **state)
{
    struct world *w = *state;
    struct bs_op a = submit_op(w, sample(w, "r-1"), "c"), b = submit_op(w, sample(w, "r-1"), "c");
    struct bs_op *ops[] = { &a, &b };

    apply_all(w, ops, 2);
    assert_int_equal(a.submit.ret_what, BS_SUBMITTED_CREATED);
    assert_int_equal(b.submit.ret_what, BS_SUBMITTED_DUPLICATE_REQUEST);
    assert_int_equal(b.submit.ret_task_id, a.id);
}

static void a_request_with_other_content_changes_nothing_but_an_alert(void **state)
{
    struct world *w = *state;
    int64_t first = put_one(w, "ev-7");
    struct bs_op other = submit_op(w, sample(w, "ev-7"), "other");
    struct bs_task got;

    assert_int_equal(apply(w, &other), BS_OK);
    assert_int_equal(other.submit.ret_what, BS_SUBMITTED_CONFLICT_REQUEST);
    assert_int_equal(other.submit.ret_task_id, first);
    assert_string_equal(alerts_text(w), "request_conflict PAY_CALLBACK x1\n");
    assert_int_equal(bs_store_task(w->store, other.id, &w->arena, &got, NULL), BS_E_NOT_FOUND);
    assert_int_equal(state_of(w, first), BS_WAITING);
}

static void a_request_conflict_that_nobody_waits_for_becomes_a_manual_task(void **state)
{
    struct world *w = *state;

    put_one(w, "ev-7");
    struct bs_op other = submit_op(w, sample(w, "ev-7"), "other");
    other.submit.caller_waits = false;
    assert_int_equal(apply(w, &other), BS_OK);
    assert_int_equal(other.submit.ret_what, BS_SUBMITTED_CONFLICT_REQUEST);
    assert_int_equal(other.submit.ret_task_id, other.id);
    struct bs_task got = get(w, other.id);
    assert_int_equal(got.state, BS_MANUAL);
    assert_str(got.manual_code, "REQUEST_CONFLICT");
    assert_str(got.payload, "{\"a\":1}");
    assert_string_equal(log_text(w, other.id), "park>MANUAL");

    other.rerun = true;
    assert_int_equal(apply(w, &other), BS_OK);
    assert_int_equal(other.submit.ret_what, BS_SUBMITTED_CONFLICT_REQUEST);
    assert_int_equal(other.submit.ret_task_id, other.id);
    assert_string_equal(alerts_text(w), "request_conflict PAY_CALLBACK x1\n");
}

static struct bs_task *with_effect(struct world *w, const char *key, const char *effect)
{
    struct bs_task *t = sample(w, key);

    t->effect_key = bs_str_of(effect);
    return t;
}

static void the_same_effect_is_linked_to_the_first_task(void **state)
{
    struct world *w = *state;
    int64_t first = put(w, with_effect(w, "r-1", "pay:1"));
    struct bs_task *t = with_effect(w, "r-2", "pay:1");

    t->payload = BS_STR("[]");
    struct bs_op second = submit_op(w, t, "content");
    assert_int_equal(apply(w, &second), BS_OK);
    assert_int_equal(second.submit.ret_what, BS_SUBMITTED_DUPLICATE_EFFECT);
    assert_int_equal(second.submit.ret_task_id, first);
    assert_string_equal(log_text(w, first), "submit>WAITING linked>-");

    struct bs_log_page page;
    assert_int_equal(bs_store_log(w->store, first, 0, 10, &w->arena, &page, NULL), BS_OK);
    assert_str(page.items[1].message,
               "request r-2 has the same effect; payload sha256 "
               "4f53cda18c2baa0c0354bb5f9a3ecbe5ed12ab4d8e11ba873c2f11161202b945, here "
               "015abd7f5cc57a2dd94b7590f04ad8084273905ee33ec5cebeae62276a97f862");

    struct bs_op third = submit_op(w, with_effect(w, "r-2", "pay:1"), "content");
    assert_int_equal(apply(w, &third), BS_OK);
    assert_int_equal(third.submit.ret_what, BS_SUBMITTED_DUPLICATE_REQUEST);
    assert_int_equal(third.submit.ret_task_id, first);

    second.rerun = true;
    assert_int_equal(apply(w, &second), BS_OK);
    assert_int_equal(second.submit.ret_what, BS_SUBMITTED_DUPLICATE_EFFECT);
    assert_string_equal(log_text(w, first), "submit>WAITING linked>-");
}

static void the_same_effect_within_one_batch_is_linked_too(void **state)
{
    struct world *w = *state;
    struct bs_op a = submit_op(w, with_effect(w, "r-1", "pay:1"), "c");
    struct bs_op b = submit_op(w, with_effect(w, "r-2", "pay:1"), "c");
    struct bs_op *ops[] = { &a, &b };

    apply_all(w, ops, 2);
    assert_int_equal(b.submit.ret_what, BS_SUBMITTED_DUPLICATE_EFFECT);
    assert_int_equal(b.submit.ret_task_id, a.id);
    assert_string_equal(log_text(w, a.id), "submit>WAITING linked>-");
}

static void an_effect_with_other_content_is_a_conflict_and_frees_the_request_id(void **state)
{
    struct world *w = *state;
    int64_t first = put(w, with_effect(w, "r-1", "pay:1"));
    struct bs_op other = submit_op(w, with_effect(w, "r-2", "pay:1"), "other");

    assert_int_equal(apply(w, &other), BS_OK);
    assert_int_equal(other.submit.ret_what, BS_SUBMITTED_CONFLICT_EFFECT);
    assert_int_equal(other.submit.ret_task_id, first);
    assert_string_equal(alerts_text(w), "effect_conflict PAY_CALLBACK x1\n");
    put(w, with_effect(w, "r-2", "pay:2"));
}

static void an_effect_conflict_that_nobody_waits_for_becomes_a_manual_task(void **state)
{
    struct world *w = *state;
    int64_t first = put(w, with_effect(w, "r-1", "pay:1"));
    struct bs_op other = submit_op(w, with_effect(w, "r-2", "pay:1"), "other");

    other.submit.caller_waits = false;
    for (int i = 0; i < 2; i++) {
        assert_int_equal(apply(w, &other), BS_OK);
        assert_int_equal(other.submit.ret_what, BS_SUBMITTED_CONFLICT_EFFECT);
        assert_int_equal(other.submit.ret_task_id, other.id);
        other.rerun = true;
    }
    assert_str(get(w, other.id).manual_code, "EFFECT_CONFLICT");
    assert_string_equal(alerts_text(w), "effect_conflict PAY_CALLBACK x1\n");

    /* Closing the conflicting task must not free the first task's key. */
    assert_int_equal(act(w, other.id, BS_ACT_CLOSE, "not_done"), BS_OK);
    struct bs_op third = submit_op(w, with_effect(w, "r-3", "pay:1"), "content");
    assert_int_equal(apply(w, &third), BS_OK);
    assert_int_equal(third.submit.ret_what, BS_SUBMITTED_DUPLICATE_EFFECT);
    assert_int_equal(third.submit.ret_task_id, first);
}

static void effects_are_kept_apart_by_merchant_and_queue(void **state)
{
    struct world *w = *state;
    struct bs_task *a = with_effect(w, "r-1", "k"), *b = with_effect(w, "r-2", "k");
    struct bs_task *c = with_effect(w, "r-3", "k");

    b->merchant_no = BS_STR("m2");
    c->biz_type = BS_STR("REFUND");
    put(w, a);
    put(w, b);
    put(w, c);
}

static void without_an_effect_key_there_is_no_effect_to_double(void **state)
{
    struct world *w = *state;

    put_one(w, "r-1");
    put_one(w, "r-2");
}

static void a_close_as_not_done_frees_the_effect_and_any_other_close_does_not(void **state)
{
    struct world *w = *state;
    int64_t a = put(w, with_effect(w, "r-1", "a")), b = put(w, with_effect(w, "r-2", "b"));

    assert_int_equal(act(w, a, BS_ACT_CLOSE, "not_done"), BS_OK);
    assert_int_equal(act(w, b, BS_ACT_CLOSE, "done_elsewhere"), BS_OK);
    put(w, with_effect(w, "r-3", "a"));
    struct bs_op op = submit_op(w, with_effect(w, "r-4", "b"), "content");
    assert_int_equal(apply(w, &op), BS_OK);
    assert_int_equal(op.submit.ret_what, BS_SUBMITTED_DUPLICATE_EFFECT);
}

static void a_submit_run_again_gives_its_first_result(void **state)
{
    struct world *w = *state;
    struct bs_op op = submit_op(w, with_effect(w, "r-1", "e"), "content");

    for (int i = 0; i < 3; i++) {
        assert_int_equal(apply(w, &op), BS_OK);
        assert_int_equal(op.submit.ret_what, BS_SUBMITTED_CREATED);
        assert_int_equal(op.submit.ret_task_id, op.id);
        op.rerun = true;
    }
    assert_string_equal(log_text(w, op.id), "submit>WAITING");
}

static void a_refused_row_fails_alone(void **state)
{
    struct world *w = *state;
    struct bs_op ops[9], *list[9];
    char bad[200], key[16];

    memset(bad, 'b', sizeof(bad));
    for (int i = 0; i < 9; i++) {
        snprintf(key, sizeof(key), "r-%d", i);
        struct bs_task *t = sample(w, key);
        if (i == 2 || i == 7)
            t->request_id = (struct bs_str){ bad, sizeof(bad) };
        ops[i] = submit_op(w, t, "c");
        list[i] = &ops[i];
    }
    apply_all(w, list, 9);
    for (int i = 0; i < 9; i++)
        assert_int_equal(ops[i].rc, i == 2 || i == 7 ? BS_E_CONFLICT : BS_OK);
    assert_string_not_equal(ops[2].err.msg, "");
    assert_int_equal(state_of(w, ops[8].id), BS_WAITING);
}

static void hints_name_the_queues_that_became_due(void **state)
{
    struct world *w = *state;
    struct bs_task *a = sample(w, "r-1"), *b = sample(w, "r-2");

    a->due_at = a->next_execute_at = bs_time_add(w->now, BS_SEC(9));
    struct bs_op x = submit_op(w, a, "c"), y = submit_op(w, b, "c");
    struct bs_op *ops[] = { &x, &y };
    apply_all(w, ops, 2);
    const struct bs_hints *h = bs_store_hints(w->store);
    assert_int_equal(h->n, 1);
    assert_string_equal(h->items[0].biz_type, "PAY_CALLBACK");
    assert_int_equal(h->items[0].due.us, w->now.us);
}

int run_submit_cases(void)
{
    const struct CMUnitTest cases[] = {
        CASE(a_submitted_task_comes_back_byte_for_byte),
        CASE(a_task_without_payload_or_amount_has_none),
        CASE(an_empty_payload_is_not_an_absent_one),
        CASE(payload_bytes_that_are_no_text_survive),
        CASE(the_longest_fields_survive_and_longer_ones_are_refused_not_cut),
        CASE(ids_are_compared_byte_for_byte),
        CASE(the_same_request_is_one_task),
        CASE(the_same_request_twice_in_one_batch_is_one_task),
        CASE(a_request_with_other_content_changes_nothing_but_an_alert),
        CASE(a_request_conflict_that_nobody_waits_for_becomes_a_manual_task),
        CASE(the_same_effect_is_linked_to_the_first_task),
        CASE(the_same_effect_within_one_batch_is_linked_too),
        CASE(an_effect_with_other_content_is_a_conflict_and_frees_the_request_id),
        CASE(an_effect_conflict_that_nobody_waits_for_becomes_a_manual_task),
        CASE(effects_are_kept_apart_by_merchant_and_queue),
        CASE(without_an_effect_key_there_is_no_effect_to_double),
        CASE(a_close_as_not_done_frees_the_effect_and_any_other_close_does_not),
        CASE(a_submit_run_again_gives_its_first_result),
        CASE(a_refused_row_fails_alone),
        CASE(hints_name_the_queues_that_became_due),
    };

    return cmocka_run_group_tests_name("submit", cases, NULL, NULL);
}
