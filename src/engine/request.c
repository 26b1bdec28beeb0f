/* From a task to the bytes of a request. */
#include "engine/request.h"

#include "base/rng.h"
#include "base/text.h"
#include "sys/crypto.h"
#include "json/write.h"

struct bs_str bs_task_no(struct bs_arena *a, int64_t id)
{
    return bs_arena_i64(a, id);
}

/* ---- URL */

static bool unreserved(char c)
{
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '.' || c == '_' || c == '~';
}

static void add_encoded(struct bs_buf *b, char c)
{
    bs_buf_fmt(b, "%%%02X", (unsigned)(unsigned char)c);
}

/* A value of dots alone would be a step up the path: its dots are encoded too. */
static bool only_dots(struct bs_str v)
{
    for (size_t i = 0; i < v.n; i++)
        if (v.p[i] != '.')
            return false;
    return true;
}

static void add_value(struct bs_buf *b, struct bs_str v)
{
    bool dots = only_dots(v);

    for (size_t i = 0; i < v.n; i++) {
        if (unreserved(v.p[i]) && !dots)
            bs_buf_addc(b, v.p[i]);
        else
            add_encoded(b, v.p[i]);
    }
}

static struct bs_str member(const struct bs_task *t, struct bs_str name)
{
    const struct {
        const char *name;
        struct bs_str value;
    } known[] = {
        { "order_no", t->order_no },
        { "payment_no", t->payment_no },
        { "channel_trade_no", t->channel_trade_no },
        { "refund_no", t->refund_no },
        { "biz_id", t->biz_id },
        { "merchant_no", t->merchant_no },
        { "request_id", t->request_id },
    };

    for (size_t i = 0; i < BS_COUNT(known); i++)
        if (bs_str_is(name, known[i].name))
            return known[i].value;
    return BS_STR_NONE;
}

/* The name of a placeholder that begins at p ('{'); n is 0 when none does. */
static struct bs_str placeholder(struct bs_str rest)
{
    const char *end = rest.n ? memchr(rest.p, '}', rest.n) : NULL;

    if (!end || rest.p[0] != '{')
        return BS_STR_NONE;
    return (struct bs_str){ rest.p + 1, (size_t)(end - rest.p) - 1 };
}

/* Dots are unreserved and mean a step in the path to servers that decode before they normalise. */
static bool is_step(struct bs_str value)
{
    return bs_str_is(value, ".") || bs_str_is(value, "..");
}

bs_rc bs_request_url(struct bs_arena *a, struct bs_str pattern, const struct bs_task *t,
                     const char **ret_url, struct bs_str *ret_missing)
{
    BS_CLEANUP(bs_buf_free) struct bs_buf b = { .max = 16384 };

    for (size_t i = 0; i < pattern.n; i++) {
        struct bs_str name = placeholder((struct bs_str){ pattern.p + i, pattern.n - i });

        if (name.n == 0) {
            bs_buf_addc(&b, pattern.p[i]);
            continue;
        }
        struct bs_str value = member(t, name);
        if (value.n == 0 || is_step(value)) {
            *ret_missing = name;
            return BS_E_NOT_FOUND;
        }
        add_value(&b, value);
        i += name.n + 1;
    }
    BS_TRY(bs_buf_done(&b, NULL));
    *ret_url = bs_arena_str(a, bs_buf_str(&b)).p;
    return *ret_url ? BS_OK : BS_E_NOMEM;
}

/* ---- headers */

static void add_line(struct bs_headers *h, const char *line)
{
    BS_ASSERT(h->n < h->max);
    if (line)
        h->items[h->n++] = line;
}

static bool is_printable(struct bs_str s)
{
    for (size_t i = 0; i < s.n; i++)
        if (s.p[i] < 0x20 || s.p[i] > 0x7e)
            return false;
    return true;
}

/* What no header line may hold, percent-encoded. */
static struct bs_str encoded(struct bs_arena *a, struct bs_str value)
{
    BS_CLEANUP(bs_buf_free) struct bs_buf b = { .max = 1024 };

    for (size_t i = 0; i < value.n; i++) {
        if (value.p[i] >= 0x20 && value.p[i] <= 0x7e)
            bs_buf_addc(&b, value.p[i]);
        else
            add_encoded(&b, value.p[i]);
    }
    a->failed |= b.failed;
    return bs_arena_str(a, bs_buf_str(&b));
}

void bs_header_add(struct bs_headers *h, const char *name, struct bs_str value)
{
    size_t n = strlen(name);
    struct bs_str v = is_printable(value) ? value : encoded(h->arena, value);
    char *line = bs_arena_alloc(h->arena, n + 2 + v.n + 1);

    if (!line)
        return;
    memcpy(line, name, n + 1);
    memcpy(line + n, ": ", 3);
    if (v.n)
        memcpy(line + n + 2, v.p, v.n);
    add_line(h, line);
}

/* Every number of a trace must have a bit set. */
static unsigned long long some_bits(struct bs_rng *r)
{
    uint64_t v = bs_rng_next(r);

    return v ? v : 1;
}

void bs_header_trace(struct bs_headers *h, const struct bs_task *t, uint64_t seed)
{
    struct bs_rng trace = { (uint64_t)t->id };
    struct bs_rng span = { (uint64_t)t->id ^ seed ^ ((uint64_t)t->attempt_no << 32) };
    unsigned long long high = some_bits(&trace);
    unsigned long long low = some_bits(&trace);

    add_line(h, bs_arena_fmt(h->arena, "traceparent: 00-%016llx%016llx-%016llx-01", high, low,
                             some_bits(&span))
                    .p);
}

void bs_header_sign(struct bs_headers *h, const struct bs_secret *secret, const struct bs_task *t,
                    struct bs_time now, struct bs_str body)
{
    BS_CLEANUP(bs_buf_free) struct bs_buf signature = { .max = 128 };
    struct bs_str id = bs_task_no(h->arena, t->id);
    int64_t at = now.us / 1000000;

    bs_header_add(h, "webhook-id", id);
    bs_header_add(h, "webhook-timestamp", bs_arena_i64(h->arena, at));
    if (!secret->bytes.p)
        return;
    bs_webhook_sign(&signature, secret, id, at, body);
    h->arena->failed |= signature.failed;
    bs_header_add(h, "webhook-signature", bs_buf_str(&signature));
}

/* ---- body */

static void add_payload(struct bs_json *j, const struct bs_task *t, struct bs_buf *base64)
{
    if (!t->payload.p) {
        bs_json_key(j, "payload");
        bs_json_null(j);
    } else if (t->payload_is_json) {
        bs_json_key(j, "payload");
        bs_json_raw(j, t->payload);
    } else {
        bs_base64_write(base64, t->payload);
        bs_json_kstr(j, "payload_base64", bs_buf_str(base64));
    }
}

static void add_amount(struct bs_json *j, const struct bs_task *t)
{
    struct bs_str currency = bs_str_of(t->money.currency);

    if (currency.n) {
        bs_json_kid(j, "amount", t->money.minor);
    } else {
        bs_json_key(j, "amount");
        bs_json_null(j);
    }
    bs_json_kstr_or_null(j, "currency", currency);
}

static void add_names(struct bs_json *j, const struct bs_task *t, bool unknown)
{
    bs_json_kid(j, "task_no", t->id);
    bs_json_kstr(j, "request_id", t->request_id);
    bs_json_kstr(j, "biz_type", t->biz_type);
    bs_json_kstr(j, "merchant_no", t->merchant_no);
    bs_json_kstr(j, "biz_id", t->biz_id);
    bs_json_kstr_or_null(j, "effect_key", t->effect_key);
    bs_json_kstr_or_null(j, "order_no", t->order_no);
    bs_json_kstr_or_null(j, "payment_no", t->payment_no);
    bs_json_kstr_or_null(j, "channel", t->channel);
    bs_json_kstr_or_null(j, "channel_trade_no", t->channel_trade_no);
    bs_json_kstr_or_null(j, "refund_no", t->refund_no);
    bs_json_kstr(j, "source", bs_str_of(bs_source_name(t->source)));
    bs_json_kint(j, "attempt", t->attempt_no);
    bs_json_kbool(j, "outcome_unknown", unknown);
}

bs_rc bs_request_body(struct bs_buf *out, const struct bs_task *t, struct bs_str order,
                      struct bs_err *err)
{
    BS_CLEANUP(bs_buf_free) struct bs_buf base64 = { .max = BS_REQUEST_BODY_MAX };
    struct bs_json *j = bs_json_new(out);

    bs_json_open(j);
    /* A look-up that said "go on" has cleared the mark. */
    add_names(j, t, t->outcome_unknown && !order.p);
    add_amount(j, t);
    add_payload(j, t, &base64);
    bs_json_key(j, "order");
    if (order.p)
        bs_json_raw(j, order);
    else
        bs_json_null(j);
    bs_json_close(j);
    bool whole = !base64.failed;
    BS_TRY(bs_json_end(j, err));
    return whole ? BS_OK : bs_fail(err, BS_E_NOMEM, "no memory for the payload");
}
