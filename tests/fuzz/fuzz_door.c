/* A submission of any bytes; the first line is the Idempotency-Key. What is accepted keeps every
 * rule of a row and says the same when it is written and read again; what is refused says why. */
#include "api/problem.h"
#include "door/door.h"
#include "engine/request.h"
#include "fuzz.h"
#include "json/write.h"

static const struct bs_queue_conf confs[] = {
    { .biz_type = { "MONEY", 5 }, .policy = { .max_retry_count = 7, .effect = BS_EFFECT_MONEY } },
    { .biz_type = { "NOTE", 4 }, .policy = { .max_retry_count = 3, .effect = BS_EFFECT_NONE } },
    { .biz_type = { "PAY", 3 },
      .policy = { .max_retry_count = 10, .effect = BS_EFFECT_REPEATABLE } },
};
static const struct bs_queues queues = { confs, 3 };
static const struct bs_time now = { 1790000000000000 };

/* ---- refused */

static bool code_known(const char *code)
{
    static const char *const known[] = {
        "REQUIRED",      "TOO_LONG",          "BAD_FORMAT",     "OUT_OF_RANGE",
        "UNKNOWN_VALUE", "CONTROL_CHARACTER", "BAD_UTF8",       "CONFLICTS_WITH",
        "WRONG_TYPE",    "DUPLICATE_MEMBER",  "UNKNOWN_MEMBER", "UNKNOWN_QUEUE",
    };

    for (size_t i = 0; i < BS_COUNT(known); i++)
        if (strcmp(code, known[i]) == 0)
            return true;
    return false;
}

static void check_refusal(const struct bs_field_errors *e, const struct bs_err *err)
{
    BS_CLEANUP(bs_buf_free) struct bs_buf b = { .max = 1 << 20 };
    struct bs_problem_more more = { .detail = bs_str_of(err->msg), .errors = e };

    BS_ASSERT(err->msg[0] && bs_utf8_valid(bs_str_of(err->msg)));
    BS_ASSERT(e->n <= BS_FIELD_ERRORS_MAX);
    for (uint32_t i = 0; i < e->n; i++) {
        BS_ASSERT(e->items[i].field && code_known(e->items[i].code));
        BS_ASSERT(e->items[i].message.n > 0 && bs_utf8_valid(e->items[i].message));
    }
    bs_problem_write(&b, BS_PROBLEM_INVALID_FIELDS, &more);
    BS_ASSERT(!b.failed && bs_json_valid(bs_buf_str(&b), NULL) == BS_OK);
}

/* ---- accepted */

static void check_plain(struct bs_str s, size_t max)
{
    BS_ASSERT(s.n <= max && bs_utf8_valid(s) && bs_text_plain(s));
}

static void check_texts(const struct bs_task *t)
{
    BS_ASSERT(t->biz_type.n && t->biz_id.n && t->request_id.n && t->merchant_no.n);
    check_plain(t->biz_type, 32);
    check_plain(t->request_id, 128);
    check_plain(t->biz_id, 64);
    check_plain(t->merchant_no, 64);
    check_plain(t->order_no, 64);
    check_plain(t->payment_no, 64);
    check_plain(t->channel, 64);
    check_plain(t->channel_trade_no, 64);
    check_plain(t->refund_no, 64);
    check_plain(t->effect_key, 3 * 64 + 1 + 64);
    check_plain(t->serial_key, 3 * (64 + 32) + 4 + 128);
}

static void check_row(const struct bs_task *t, struct bs_str key)
{
    bool known = bs_queue_find(&queues, t->biz_type) != NULL;

    check_texts(t);
    BS_ASSERT(key.n == 0 || bs_str_eq(key, t->request_id));
    BS_ASSERT(t->state == (known ? BS_WAITING : BS_MANUAL));
    BS_ASSERT(known || bs_str_is(t->manual_code, "UNKNOWN_QUEUE"));
    BS_ASSERT(t->due_at.us == (known ? t->next_execute_at.us : 0));
    BS_ASSERT(t->next_execute_at.us >= now.us);
    BS_ASSERT(bs_time_diff(t->next_execute_at, now).us <= BS_SEC(366LL * 86400).us);
    BS_ASSERT(t->priority >= 0 && t->priority <= 3);
    BS_ASSERT(t->max_retry_count >= 1 && t->max_retry_count <= 100);
    BS_ASSERT(t->payload.n <= BS_PAYLOAD_MAX && t->extra_data.n <= BS_EXTRA_MAX);
    BS_ASSERT(t->money.minor >= 0 && t->parent_id >= 0);
    BS_ASSERT(t->money.currency[0] || t->money.minor == 0);
    BS_ASSERT(!t->extra_data.p || bs_json_valid(t->extra_data, NULL) == BS_OK);
    if (t->payload.p && t->payload_is_json)
        BS_ASSERT(bs_json_valid(t->payload, NULL) == BS_OK);
}

static void check_request(const struct bs_task *t)
{
    BS_CLEANUP(bs_buf_free) struct bs_buf b = { .max = BS_REQUEST_BODY_MAX };
    bs_rc rc = bs_request_body(&b, t, BS_STR_NONE, NULL);

    BS_ASSERT(rc == BS_OK && bs_json_valid(bs_buf_str(&b), NULL) == BS_OK);
}

static void add_some(struct bs_json *j, const char *name, struct bs_str s)
{
    if (s.n)
        bs_json_kstr(j, name, s);
}

/* "s:", the merchant without a colon, a colon, and the text as it was given. */
static struct bs_str given_serial(const struct bs_task *t)
{
    struct bs_str rest = t->serial_key;

    BS_ASSERT(bs_str_starts(rest, BS_STR("s:")));
    (void)bs_str_cut(&rest, ':');
    (void)bs_str_cut(&rest, ':');
    return rest;
}

static void add_keys(struct bs_json *j, const struct bs_task *t)
{
    if (!(t->defaulted & BS_DEFAULTED_EFFECT_KEY))
        bs_json_kstr(j, "effect_key", t->effect_key);
    if (!(t->defaulted & BS_DEFAULTED_SERIAL_KEY))
        bs_json_kstr(j, "serial_key", given_serial(t));
    if (!(t->defaulted & BS_DEFAULTED_MAX_RETRY_COUNT))
        bs_json_kint(j, "max_retry_count", t->max_retry_count);
}

static void add_contents(struct bs_json *j, const struct bs_task *t, struct bs_buf *base64)
{
    if (t->payload.p && t->payload_is_json) {
        bs_json_key(j, "payload");
        bs_json_raw(j, t->payload);
    } else if (t->payload.p) {
        bs_base64_write(base64, t->payload);
        bs_json_kstr(j, "payload_base64", bs_buf_str(base64));
    }
    if (t->extra_data.p) {
        bs_json_key(j, "extra_data");
        bs_json_raw(j, t->extra_data);
    }
    if (t->money.currency[0]) {
        bs_json_kid(j, "amount", t->money.minor);
        bs_json_kstr(j, "currency", bs_str_of(t->money.currency));
    }
    if (t->parent_id)
        bs_json_kid(j, "parent_task_no", t->parent_id);
}

/* The row as a submission, in an order of its own. */
static void write_again(struct bs_buf *out, const struct bs_task *t)
{
    BS_CLEANUP(bs_buf_free) struct bs_buf base64 = { .max = 1 << 20 };
    struct bs_json *j = bs_json_new(out);

    bs_json_open(j);
    add_contents(j, t, &base64);
    add_keys(j, t);
    bs_json_kbool(j, "park", t->state == BS_MANUAL);
    bs_json_kstr(j, "source", bs_str_of(bs_source_name(t->source)));
    bs_json_kint(j, "priority", t->priority);
    bs_json_ktime(j, "execute_at", t->next_execute_at);
    add_some(j, "refund_no", t->refund_no);
    add_some(j, "channel_trade_no", t->channel_trade_no);
    add_some(j, "channel", t->channel);
    add_some(j, "payment_no", t->payment_no);
    add_some(j, "order_no", t->order_no);
    add_some(j, "merchant_no", t->merchant_no);
    add_some(j, "request_id", t->request_id);
    add_some(j, "biz_id", t->biz_id);
    add_some(j, "biz_type", t->biz_type);
    bs_json_close(j);
    bs_rc rc = bs_json_end(j, NULL);
    BS_ASSERT(rc == BS_OK);
}

static void check_same(const struct bs_op *one, const struct bs_op *two)
{
    const struct bs_task *t = one->submit.task, *u = two->submit.task;

    BS_ASSERT(memcmp(&one->submit.request_fp, &two->submit.request_fp, 32) == 0);
    BS_ASSERT(memcmp(&one->submit.effect_fp, &two->submit.effect_fp, 32) == 0);
    BS_ASSERT(t->next_execute_at.us == u->next_execute_at.us && t->priority == u->priority);
    BS_ASSERT(t->source == u->source && t->state == u->state);
    BS_ASSERT(bs_str_eq(t->serial_key, u->serial_key) && bs_str_eq(t->effect_key, u->effect_key));
    BS_ASSERT(bs_str_eq(t->payload, u->payload) && !t->payload.p == !u->payload.p);
    BS_ASSERT(u->id > t->id);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    BS_CLEANUP(bs_arena_free) struct bs_arena a = { 0 };
    BS_CLEANUP(bs_buf_free) struct bs_buf again = { .max = 4 << 20 };
    struct bs_str json = fuzz_input(data, n), key = bs_str_cut(&json, '\n');
    struct bs_queues_slot slot = { &queues };
    struct bs_ids ids;
    struct bs_door door = { &slot, &ids };
    struct bs_door_input in = { json, key, BS_STR("shop"), now };
    struct bs_op op, other;
    struct bs_field_errors errors;
    struct bs_err err = { 0 };

    bs_ids_init(&ids, 3);
    bs_rc rc = bs_door_read(&door, &in, &a, &op, &errors, &err);
    BS_ASSERT(rc == BS_OK || rc == BS_E_INVALID);
    if (rc != BS_OK) {
        check_refusal(&errors, &err);
        return 0;
    }
    BS_ASSERT(errors.n == 0);
    check_row(op.submit.task, key);
    check_request(op.submit.task);
    write_again(&again, op.submit.task);
    in = (struct bs_door_input){ bs_buf_str(&again), BS_STR_NONE, BS_STR("other"), now };
    rc = bs_door_read(&door, &in, &a, &other, &errors, &err);
    BS_ASSERT(rc == BS_OK);
    check_same(&op, &other);
    return 0;
}
