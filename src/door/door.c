/* From one JSON object to a checked SUBMIT operation: members, rules, fingerprints, id. */
#include "door/door.h"

#include "base/text.h"

enum { MEMBERS_MAX = 64, HASH_CHUNK = 512 };

struct asked {
    struct bs_submission s;
    struct bs_str payload, payload_base64;
};

#define MEMBER(member, kind, field)                                                                \
    {                                                                                              \
        { member, sizeof(member) - 1 }, BS_MEMBER_##kind, offsetof(struct asked, field), 0         \
    }
#define MEMBER_INT(member, field, has_field)                                                       \
    {                                                                                              \
        { member, sizeof(member) - 1 }, BS_MEMBER_INT, offsetof(struct asked, field),              \
            offsetof(struct asked, has_field)                                                      \
    }

/* Those that most submissions have come first: the search is linear. */
static const struct bs_member members[] = {
    MEMBER("biz_type", TEXT, s.biz_type),
    MEMBER("biz_id", TEXT, s.biz_id),
    MEMBER("request_id", TEXT, s.request_id),
    MEMBER("order_no", TEXT, s.order_no),
    MEMBER("amount", DIGITS, s.amount),
    MEMBER("currency", TEXT, s.currency),
    MEMBER("payload", VALUE, payload),
    MEMBER("merchant_no", TEXT, s.merchant_no),
    MEMBER("payment_no", TEXT, s.payment_no),
    MEMBER("channel", TEXT, s.channel),
    MEMBER("channel_trade_no", TEXT, s.channel_trade_no),
    MEMBER("refund_no", TEXT, s.refund_no),
    MEMBER("source", TEXT, s.source),
    MEMBER("effect_key", TEXT, s.effect_key),
    MEMBER("serial_key", TEXT, s.serial_key),
    MEMBER("payload_base64", TEXT, payload_base64),
    MEMBER_INT("priority", s.priority, s.has_priority),
    MEMBER_INT("max_retry_count", s.max_retry_count, s.has_max_retry_count),
    MEMBER("execute_at", TEXT, s.execute_at),
    MEMBER("delay", TEXT, s.delay),
    MEMBER("extra_data", OBJECT, s.extra_data),
    MEMBER("park", FLAG, s.park),
    MEMBER("parent_task_no", TEXT, s.parent_task_no),
};

static void take_payload(struct asked *q, struct bs_arena *a, struct bs_field_errors *errors)
{
    struct bs_err bad;

    if (q->payload.p && q->payload_base64.p) {
        bs_field_error_add(errors, a, "payload_base64", "CONFLICTS_WITH",
                           "give payload or payload_base64, not both");
        return;
    }
    if (q->payload.p) {
        q->s.payload = q->payload;
        q->s.payload_is_json = true;
    }
    if (!q->payload_base64.p)
        return;
    if (bs_base64_read(a, q->payload_base64, &q->s.payload, &bad) != BS_OK)
        bs_field_error_add(errors, a, "payload_base64", "BAD_FORMAT", "%s", bad.msg);
    else if (!q->s.payload.p)
        q->s.payload = (struct bs_str){ "", 0 };
}

static void take_request_id(struct asked *q, struct bs_str header, struct bs_arena *a,
                            struct bs_field_errors *errors)
{
    if (!header.n)
        return;
    if (!q->s.request_id.p)
        q->s.request_id = header;
    else if (!bs_str_eq(q->s.request_id, header))
        bs_field_error_add(errors, a, "request_id", "CONFLICTS_WITH",
                           "differs from the Idempotency-Key header");
}

static bool reported(const struct bs_field_errors *errors, uint32_t n, const char *field)
{
    for (uint32_t i = 0; i < n; i++) {
        if (strcmp(errors->items[i].field, field) == 0)
            return true;
    }
    return false;
}

/* What the rules say of a member whose shape was wrong already would only mislead ("required"). */
static void merge(struct bs_field_errors *errors, const struct bs_field_errors *of_rules)
{
    uint32_t shapes = errors->n;

    for (uint32_t i = 0; i < of_rules->n && errors->n < BS_FIELD_ERRORS_MAX; i++) {
        if (!reported(errors, shapes, of_rules->items[i].field))
            errors->items[errors->n++] = of_rules->items[i];
    }
}

/* Canonical bytes come in small pieces; the hash is asked once per chunk. */
struct hashing {
    size_t n;
    char chunk[HASH_CHUNK];
};

static void hash_put(void *ctx, const void *p, size_t n)
{
    struct hashing *h = ctx;

    if (n > HASH_CHUNK - h->n) {
        bs_sha256_add(h->chunk, h->n);
        h->n = 0;
    }
    if (n > HASH_CHUNK) {
        bs_sha256_add(p, n);
        return;
    }
    if (n)
        memcpy(h->chunk + h->n, p, n);
    h->n += n;
}

static struct bs_sha256 hash_end(struct hashing *h)
{
    bs_sha256_add(h->chunk, h->n);
    h->n = 0;
    return bs_sha256_end();
}

static void fingerprints(const struct bs_task *t, struct bs_op_submit *op)
{
    struct hashing h;
    struct bs_sink sink = { hash_put, &h };

    h.n = 0;
    bs_sha256_begin();
    bs_request_canonical(t, t->extra_data, &sink);
    op->request_fp = hash_end(&h);
    if (!t->effect_key.n)
        return;
    bs_sha256_begin();
    bs_effect_canonical(t, &sink);
    op->effect_fp = hash_end(&h);
}

static bs_rc check(const struct bs_door *d, const struct bs_submission *s, struct bs_time now,
                   struct bs_arena *a, struct bs_task *t, struct bs_field_errors *errors)
{
    const struct bs_queue_conf *q =
        s->biz_type.n ? bs_queue_find(bs_queues_now(d->queues), s->biz_type) : NULL;
    struct bs_door_queue known = { q ? &q->policy : NULL };
    struct bs_field_errors of_rules;

    of_rules.n = 0;
    bs_rc rc = bs_submission_check(s, q ? &known : NULL, now, a, t, &of_rules);
    merge(errors, &of_rules);
    return rc;
}

static void fill(const struct bs_door *d, const struct bs_door_input *in, struct bs_task *t,
                 struct bs_op *ret)
{
    t->id = bs_ids_next(d->ids, in->now);
    t->created_by = in->who;
    t->created_at = in->now;
    t->updated_at = in->now;
    *ret = (struct bs_op){ .kind = BS_OP_SUBMIT, .id = t->id, .now = in->now };
    ret->submit.task = t;
    ret->submit.caller_waits = true;
    fingerprints(t, &ret->submit);
}

/* BS_E_INVALID: no JSON object, or (with an error) far too many members. */
static bs_rc read_shapes(const struct bs_door_input *in, struct bs_arena *a, struct asked *q,
                         struct bs_field_errors *errors, struct bs_err *err)
{
    struct bs_json_object o;
    bs_rc rc = bs_json_read_object(a, in->json, MEMBERS_MAX, &o, err);

    if (rc == BS_E_LIMIT) {
        bs_field_error_add(errors, a, "", "UNKNOWN_MEMBER", "more than %d members", MEMBERS_MAX);
        return bs_fail(err, BS_E_INVALID, "more than %d members", MEMBERS_MAX);
    }
    BS_TRY(rc);
    bs_members_read(&o, members, BS_COUNT(members), q, a, errors);
    take_payload(q, a, errors);
    take_request_id(q, in->request_id, a, errors);
    return BS_OK;
}

bs_rc bs_door_read(const struct bs_door *d, const struct bs_door_input *in, struct bs_arena *a,
                   struct bs_op *ret, struct bs_field_errors *errors, struct bs_err *err)
{
    struct asked q = { 0 };
    struct bs_task *t = BS_NEW(a, struct bs_task);

    errors->n = 0;
    if (!t)
        return bs_fail(err, BS_E_NOMEM, "no memory for a task");
    BS_TRY(read_shapes(in, a, &q, errors, err));
    bs_rc rc = check(d, &q.s, in->now, a, t, errors);
    if (rc != BS_OK && rc != BS_E_INVALID)
        return bs_fail(err, rc, "the submission could not be checked");
    BS_ASSERT(rc == BS_OK || errors->n > 0);
    if (errors->n)
        return bs_fail(err, BS_E_INVALID, "%s: %.*s", errors->items[0].field,
                       BS_STR_FMT(errors->items[0].message));
    if (a->failed)
        return bs_fail(err, BS_E_NOMEM, "no memory for a submission");
    fill(d, in, t, ret);
    return BS_OK;
}
