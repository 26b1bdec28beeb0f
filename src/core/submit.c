/* The rules of the one door (docs/HTTP.md). Every broken rule is reported, not only the first. */
#include "core/submit.h"

#include "base/text.h"
#include "core/fsm.h"

#include <stdarg.h>

enum {
    BIZ_TYPE_MAX = 32,
    REQUEST_ID_MAX = 128,
    TEXT_MAX = 64,
    KEY_MAX = 128,
    PRIORITY_DEFAULT = 1,
    PRIORITY_MAX = 3,
    RETRIES_MAX = 100
};

#define PAST_TOLERATED BS_SEC(5 * 60)
#define FUTURE_MAX BS_SEC(366LL * 24 * 3600)

struct checking {
    const struct bs_submission *s;
    struct bs_time now;
    struct bs_arena *a;
    struct bs_field_errors *errors;
};

void bs_field_error_add(struct bs_field_errors *e, struct bs_arena *a, const char *field,
                        const char *code, const char *fmt, ...)
{
    struct bs_str message;
    va_list args;

    if (e->n == BS_FIELD_ERRORS_MAX)
        return;
    va_start(args, fmt);
    message = bs_arena_vfmt(a, fmt, args);
    va_end(args);
    e->items[e->n++] =
        (struct bs_field_error){ field, code, message.p ? message : BS_STR("not valid") };
}

#define BROKEN(c, field, code, ...)                                                                \
    bs_field_error_add((c)->errors, (c)->a, (field), (code), __VA_ARGS__)

/* ---- texts */

/* Present and 1 … max bytes long; otherwise reported, unless it may be absent and is. */
static bool length_fits(struct checking *c, const char *field, struct bs_str s, size_t max)
{
    if (!s.p)
        return false;
    if (s.n == 0)
        BROKEN(c, field, "BAD_FORMAT", "must not be empty");
    else if (s.n > max)
        BROKEN(c, field, "TOO_LONG", "%zu bytes; at most %zu", s.n, max);
    return s.n > 0 && s.n <= max;
}

static void check_text(struct checking *c, const char *field, struct bs_str s, size_t max)
{
    if (!length_fits(c, field, s, max))
        return;
    if (!bs_utf8_valid(s))
        BROKEN(c, field, "BAD_UTF8", "is not valid UTF-8");
    else if (!bs_text_plain(s))
        BROKEN(c, field, "CONTROL_CHARACTER", "must not contain control characters");
}

static void check_required(struct checking *c, const char *field, struct bs_str s)
{
    if (!s.p)
        BROKEN(c, field, "REQUIRED", "is required");
}

static bool is_alpha(char ch)
{
    return (ch >= 'A' && ch <= 'Z') || (ch >= 'a' && ch <= 'z');
}

static bool is_digit(char ch)
{
    return ch >= '0' && ch <= '9';
}

/* [A-Za-z][A-Za-z0-9_.-]* */
static bool is_biz_type(struct bs_str s)
{
    if (s.n == 0 || !is_alpha(s.p[0]))
        return false;
    for (size_t i = 1; i < s.n; i++) {
        if (!is_alpha(s.p[i]) && !is_digit(s.p[i]) && s.p[i] != '_' && s.p[i] != '.' &&
            s.p[i] != '-')
            return false;
    }
    return true;
}

static void check_biz_type(struct checking *c, bool queue_known)
{
    struct bs_str s = c->s->biz_type;

    check_required(c, "biz_type", s);
    if (!length_fits(c, "biz_type", s, BIZ_TYPE_MAX))
        return;
    if (!is_biz_type(s))
        BROKEN(c, "biz_type", "BAD_FORMAT",
               "a letter, then letters, digits, '_', '.' or '-' are allowed");
    else if (!queue_known && !c->s->park)
        BROKEN(c, "biz_type", "UNKNOWN_QUEUE",
               "no queue \"%.*s\" is configured; with \"park\": true a person will get the task",
               BS_STR_FMT(s));
}

static void check_request_id(struct checking *c)
{
    struct bs_str s = c->s->request_id;

    check_required(c, "request_id", s);
    if (!length_fits(c, "request_id", s, REQUEST_ID_MAX))
        return;
    for (size_t i = 0; i < s.n; i++) {
        if (s.p[i] < 0x21 || s.p[i] > 0x7e) {
            BROKEN(c, "request_id", "BAD_FORMAT",
                   "byte %zu is not a printable ASCII character (0x21 to 0x7E)", i);
            return;
        }
    }
}

static void check_texts(struct checking *c)
{
    const struct bs_submission *s = c->s;

    check_required(c, "biz_id", s->biz_id);
    check_text(c, "biz_id", s->biz_id, TEXT_MAX);
    check_text(c, "merchant_no", s->merchant_no, TEXT_MAX);
    check_text(c, "order_no", s->order_no, TEXT_MAX);
    check_text(c, "payment_no", s->payment_no, TEXT_MAX);
    check_text(c, "channel", s->channel, TEXT_MAX);
    check_text(c, "channel_trade_no", s->channel_trade_no, TEXT_MAX);
    check_text(c, "refund_no", s->refund_no, TEXT_MAX);
    check_text(c, "effect_key", s->effect_key, KEY_MAX);
    check_text(c, "serial_key", s->serial_key, KEY_MAX);
    if (s->payload.n > BS_PAYLOAD_MAX)
        BROKEN(c, "payload", "TOO_LONG", "%zu bytes; at most %d", s->payload.n, BS_PAYLOAD_MAX);
    if (s->extra_data.n > BS_EXTRA_MAX)
        BROKEN(c, "extra_data", "TOO_LONG", "%zu bytes; at most %d", s->extra_data.n, BS_EXTRA_MAX);
}

/* ---- numbers */

static bool all_digits(struct bs_str s)
{
    for (size_t i = 0; i < s.n; i++) {
        if (!is_digit(s.p[i]))
            return false;
    }
    return s.n > 0;
}

static bool is_negative(struct bs_str s)
{
    return s.n > 1 && s.p[0] == '-' && all_digits((struct bs_str){ s.p + 1, s.n - 1 });
}

static void check_amount(struct checking *c, struct bs_money *ret)
{
    struct bs_str amount = c->s->amount;

    if (is_negative(amount))
        BROKEN(c, "amount", "OUT_OF_RANGE", "must not be negative");
    else if (!all_digits(amount))
        BROKEN(c, "amount", "BAD_FORMAT", "an integer of minor units: digits only");
    else if (!bs_i64_parse(amount, &ret->minor))
        BROKEN(c, "amount", "OUT_OF_RANGE", "at most 9223372036854775807");
    if (!c->s->currency.p)
        BROKEN(c, "currency", "REQUIRED", "an amount needs its currency");
}

static void check_currency(struct checking *c, struct bs_money *ret)
{
    struct bs_str code = c->s->currency;

    if (!c->s->amount.p)
        BROKEN(c, "amount", "REQUIRED", "a currency needs its amount");
    if (code.n != sizeof(ret->currency) - 1 || bs_currency_exponent(code) < 0)
        BROKEN(c, "currency", "UNKNOWN_VALUE",
               "a currency of ISO 4217, three capital letters, such as CNY");
    else
        memcpy(ret->currency, code.p, code.n);
}

static void check_money(struct checking *c, struct bs_money *ret)
{
    if (c->s->amount.p)
        check_amount(c, ret);
    if (c->s->currency.p)
        check_currency(c, ret);
}

static void check_counts(struct checking *c, const struct bs_policy *policy, struct bs_task *t)
{
    const struct bs_submission *s = c->s;

    t->priority = PRIORITY_DEFAULT;
    t->max_retry_count = policy->max_retry_count;
    if (s->has_priority && (s->priority < 0 || s->priority > PRIORITY_MAX))
        BROKEN(c, "priority", "OUT_OF_RANGE", "0 to %d, lower first", PRIORITY_MAX);
    else if (s->has_priority)
        t->priority = (int32_t)s->priority;
    if (!s->has_max_retry_count)
        t->defaulted |= BS_DEFAULTED_MAX_RETRY_COUNT;
    else if (s->max_retry_count < 1 || s->max_retry_count > RETRIES_MAX)
        BROKEN(c, "max_retry_count", "OUT_OF_RANGE", "1 to %d", RETRIES_MAX);
    else
        t->max_retry_count = (int32_t)s->max_retry_count;
}

/* A task number as task_no shows it: no sign, no leading zero. */
static int64_t check_parent(struct checking *c)
{
    struct bs_str s = c->s->parent_task_no;
    int64_t id = 0;

    if (!s.p)
        return 0;
    if (all_digits(s) && s.n <= BS_TASK_NO_MAX && s.p[0] != '0' && bs_i64_parse(s, &id))
        return id;
    BROKEN(c, "parent_task_no", "BAD_FORMAT", "a task number, digits only");
    return 0;
}

/* ---- source and time */

static enum bs_source check_source(struct checking *c)
{
    enum bs_source source = bs_source_parse(c->s->source);

    if (!c->s->source.p)
        return BS_SRC_API;
    if (source != BS_SRC_API && source != BS_SRC_CALLBACK && source != BS_SRC_RECON &&
        source != BS_SRC_PATROL && source != BS_SRC_MANUAL)
        BROKEN(c, "source", "UNKNOWN_VALUE", "API, CALLBACK, RECON, PATROL or MANUAL");
    return source;
}

static struct bs_time check_execute_at(struct checking *c)
{
    struct bs_time at = c->now;
    struct bs_err why = { 0 };

    if (bs_time_parse(c->s->execute_at, &at, &why) != BS_OK)
        BROKEN(c, "execute_at", "BAD_FORMAT", "%s", why.msg);
    else if (bs_time_before(bs_time_add(at, PAST_TOLERATED), c->now))
        BROKEN(c, "execute_at", "OUT_OF_RANGE", "is more than 5 minutes ago");
    else if (bs_time_before(bs_time_add(c->now, FUTURE_MAX), at))
        BROKEN(c, "execute_at", "OUT_OF_RANGE", "at most 366 days ahead");
    return bs_time_max(at, c->now);
}

static struct bs_time check_delay(struct checking *c)
{
    struct bs_span delay = { 0 };
    struct bs_err why = { 0 };

    if (bs_span_parse(c->s->delay, &delay, &why) != BS_OK)
        BROKEN(c, "delay", "BAD_FORMAT", "%s", why.msg);
    else if (delay.us > FUTURE_MAX.us)
        BROKEN(c, "delay", "OUT_OF_RANGE", "at most 366 days");
    return bs_time_add(c->now, delay);
}

static struct bs_time check_when(struct checking *c)
{
    struct bs_time at = c->now;

    if (c->s->execute_at.p)
        at = check_execute_at(c);
    if (c->s->delay.p)
        at = check_delay(c);
    if (c->s->execute_at.p && c->s->delay.p)
        BROKEN(c, "delay", "CONFLICTS_WITH", "give execute_at or delay, not both");
    return at;
}

/* ---- keys: parts are joined with ':', so a ':' inside all but the last part is escaped */

static void add_part(struct bs_buf *key, struct bs_str part)
{
    for (size_t i = 0; i < part.n; i++) {
        if (part.p[i] == ':')
            bs_buf_addz(key, "%3A");
        else if (part.p[i] == '%')
            bs_buf_addz(key, "%25");
        else
            bs_buf_addc(key, part.p[i]);
    }
    bs_buf_addc(key, ':');
}

static struct bs_str whole_key(const struct checking *c, const struct bs_buf *key)
{
    if (key->failed)
        c->a->failed = true; /* a cut key would be another key: refuse */
    return bs_arena_str(c->a, bs_buf_str(key));
}

static struct bs_str effect_key(const struct checking *c, const struct bs_policy *policy,
                                struct bs_task *t)
{
    BS_CLEANUP(bs_buf_free) struct bs_buf key = { .max = 1024 };
    struct bs_str number = t->refund_no.n ? t->refund_no : t->channel_trade_no;

    if (c->s->effect_key.p)
        return c->s->effect_key;
    t->defaulted |= BS_DEFAULTED_EFFECT_KEY;
    if (policy->effect == BS_EFFECT_NONE)
        return BS_STR_NONE;
    if (t->source != BS_SRC_CALLBACK || t->channel.n == 0 || number.n == 0)
        return t->biz_id;
    add_part(&key, t->channel);
    bs_buf_add(&key, number);
    return whole_key(c, &key);
}

static struct bs_str serial_key(const struct checking *c, const struct bs_policy *policy,
                                struct bs_task *t)
{
    BS_CLEANUP(bs_buf_free) struct bs_buf key = { .max = 1024 };
    bool given = c->s->serial_key.p != NULL;

    if (!given)
        t->defaulted |= BS_DEFAULTED_SERIAL_KEY;
    if (policy->effect == BS_EFFECT_NONE && !given)
        return BS_STR_NONE;
    bs_buf_addz(&key, given ? "s:" : t->order_no.n ? "o:" : "b:");
    add_part(&key, t->merchant_no);
    if (given) {
        bs_buf_add(&key, c->s->serial_key);
    } else if (t->order_no.n) {
        bs_buf_add(&key, t->order_no);
    } else {
        add_part(&key, t->biz_type);
        bs_buf_add(&key, t->biz_id);
    }
    return whole_key(c, &key);
}

/* ---- the row */

static void copy_texts(const struct bs_submission *s, struct bs_task *t)
{
    t->request_id = s->request_id;
    t->biz_type = s->biz_type;
    t->biz_id = s->biz_id;
    t->merchant_no = s->merchant_no.p ? s->merchant_no : BS_STR("default");
    t->order_no = s->order_no;
    t->payment_no = s->payment_no;
    t->channel = s->channel;
    t->channel_trade_no = s->channel_trade_no;
    t->refund_no = s->refund_no;
    t->payload = s->payload;
    t->payload_is_json = s->payload_is_json;
    t->extra_data = s->extra_data;
}

static void place(struct bs_task *t, bool queue_known, struct bs_time at)
{
    struct bs_step step = bs_fsm_step(BS_STATE_NONE, queue_known ? BS_EV_SUBMIT : BS_EV_PARK);

    t->state = step.to;
    t->version = 1;
    t->next_execute_at = at;
    if (queue_known)
        t->due_at = at;
    else
        t->manual_code = BS_STR("UNKNOWN_QUEUE");
}

bs_rc bs_submission_check(const struct bs_submission *s, const struct bs_door_queue *queue,
                          struct bs_time now, struct bs_arena *a, struct bs_task *ret,
                          struct bs_field_errors *errors)
{
    struct checking c = { .s = s, .now = now, .a = a, .errors = errors };
    const struct bs_policy *policy = queue && queue->policy ? queue->policy : &bs_policy_default;
    uint32_t before = errors->n;
    struct bs_task t = { 0 };

    copy_texts(s, &t);
    check_biz_type(&c, queue != NULL);
    check_request_id(&c);
    check_texts(&c);
    check_money(&c, &t.money);
    check_counts(&c, policy, &t);
    t.source = check_source(&c);
    t.parent_id = check_parent(&c);
    place(&t, queue != NULL, check_when(&c));
    if (errors->n > before)
        return BS_E_INVALID;
    t.effect_key = effect_key(&c, policy, &t);
    t.serial_key = serial_key(&c, policy, &t);
    if (a->failed)
        return BS_E_NOMEM;
    *ret = t;
    return BS_OK;
}
