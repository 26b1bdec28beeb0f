/* The canonical bytes of a submission's content and of an effect's content. Once written to a store
 * they are for ever: a member may be added, none may change its tag or form. */
#include "core/submit.h"

enum tag {
    TAG_BIZ_TYPE = 1,
    TAG_BIZ_ID,
    TAG_MERCHANT_NO,
    TAG_ORDER_NO,
    TAG_PAYMENT_NO,
    TAG_CHANNEL,
    TAG_CHANNEL_TRADE_NO,
    TAG_REFUND_NO,
    TAG_EFFECT_KEY,
    TAG_SERIAL_KEY,
    TAG_AMOUNT,
    TAG_CURRENCY,
    TAG_PAYLOAD_JSON,
    TAG_PAYLOAD_BYTES,
    TAG_MAX_RETRY_COUNT,
    TAG_EXTRA_DATA,
    TAG_PARENT,
    TAG_REQUEST_ID,
};

/* Tag, length, bytes; an absent member leaves no trace. */
static void put(struct bs_sink *sink, enum tag tag, struct bs_str s)
{
    uint8_t head[9] = { (uint8_t)tag };

    if (!s.p)
        return;
    for (uint32_t i = 0; i < 8; i++)
        head[1 + i] = (uint8_t)((uint64_t)s.n >> (8 * (7 - i)));
    sink->put(sink->ctx, head, sizeof(head));
    if (s.n)
        sink->put(sink->ctx, s.p, s.n);
}

static void put_i64(struct bs_sink *sink, enum tag tag, int64_t v)
{
    char bytes[8];

    for (uint32_t i = 0; i < 8; i++)
        bytes[i] = (char)(uint8_t)((uint64_t)v >> (8 * (7 - i)));
    put(sink, tag, (struct bs_str){ bytes, sizeof(bytes) });
}

static void put_money(struct bs_sink *sink, const struct bs_money *m)
{
    if (m->currency[0] == '\0')
        return;
    put_i64(sink, TAG_AMOUNT, m->minor);
    put(sink, TAG_CURRENCY, bs_str_of(m->currency));
}

/* A column that is empty was not given: the door refuses empty texts. */
static void put_text(struct bs_sink *sink, enum tag tag, struct bs_str s)
{
    if (s.n)
        put(sink, tag, s);
}

/* Defaults that the configuration or the source decides are left out (effect_key: the plain default
 * stands in), so that the same request is the same also after a reload. */
static void put_keys(struct bs_sink *sink, const struct bs_task *t)
{
    bool plain = (t->defaulted & BS_DEFAULTED_EFFECT_KEY) != 0;

    put_text(sink, TAG_EFFECT_KEY, plain ? t->biz_id : t->effect_key);
    if (!(t->defaulted & BS_DEFAULTED_SERIAL_KEY))
        put_text(sink, TAG_SERIAL_KEY, t->serial_key);
    if (!(t->defaulted & BS_DEFAULTED_MAX_RETRY_COUNT))
        put_i64(sink, TAG_MAX_RETRY_COUNT, t->max_retry_count);
}

void bs_request_canonical(const struct bs_task *t, struct bs_str extra_data, struct bs_sink *sink)
{
    BS_ASSERT(t->biz_type.n > 0);
    BS_ASSERT(sink->put != NULL);
    put_text(sink, TAG_REQUEST_ID, t->request_id);
    put_text(sink, TAG_BIZ_TYPE, t->biz_type);
    put_text(sink, TAG_BIZ_ID, t->biz_id);
    put_text(sink, TAG_MERCHANT_NO, t->merchant_no);
    put_text(sink, TAG_ORDER_NO, t->order_no);
    put_text(sink, TAG_PAYMENT_NO, t->payment_no);
    put_text(sink, TAG_CHANNEL, t->channel);
    put_text(sink, TAG_CHANNEL_TRADE_NO, t->channel_trade_no);
    put_text(sink, TAG_REFUND_NO, t->refund_no);
    put_keys(sink, t);
    put_money(sink, &t->money);
    put(sink, t->payload_is_json ? TAG_PAYLOAD_JSON : TAG_PAYLOAD_BYTES, t->payload);
    put(sink, TAG_EXTRA_DATA, extra_data);
    if (t->parent_id)
        put_i64(sink, TAG_PARENT, t->parent_id);
}

void bs_effect_canonical(const struct bs_task *t, struct bs_sink *sink)
{
    BS_ASSERT(t->effect_key.n > 0);
    BS_ASSERT(sink->put != NULL);
    put_money(sink, &t->money);
    put_text(sink, TAG_ORDER_NO, t->order_no);
    put_text(sink, TAG_PAYMENT_NO, t->payment_no);
    put_text(sink, TAG_CHANNEL_TRADE_NO, t->channel_trade_no);
    put_text(sink, TAG_REFUND_NO, t->refund_no);
}
