/* The rules of the look-up before a call: its verdict, and what Backstop compares
 * itself. */
#include "core/outcome_text.h"

/* ---- comparing: nothing to compare where one side does not have it */

enum compared { SAME, DIFFERS, UNREADABLE };

static enum compared manual(struct bs_outcome *o, const char *code, struct bs_arena *a,
                            struct bs_str message)
{
    o->kind = BS_OUT_MANUAL;
    o->code = bs_str_of(code);
    o->message = bs_outcome_text(a, message, BS_MESSAGE_MAX);
    return DIFFERS;
}

static enum compared compare_trade(const struct bs_task *t, const struct bs_look *l,
                                   struct bs_arena *a, struct bs_outcome *o)
{
    if (t->channel_trade_no.n == 0 || l->channel_trade_no.n == 0 ||
        bs_str_eq(t->channel_trade_no, l->channel_trade_no))
        return SAME;
    return manual(o, "TRADE_NO_MISMATCH", a,
                  bs_arena_fmt(a, "the task's trade is %.*s, the look-up's is %.*s",
                               BS_STR_FMT(t->channel_trade_no), BS_STR_FMT(l->channel_trade_no)));
}

static enum compared compare_currency(const struct bs_task *t, const struct bs_look *l,
                                      struct bs_arena *a, struct bs_outcome *o)
{
    struct bs_str own = bs_str_of(t->money.currency);

    if (own.n == 0 || l->currency.n == 0 || bs_str_eq_nocase(own, l->currency))
        return SAME;
    return manual(o, "CURRENCY_MISMATCH", a,
                  bs_arena_fmt(a, "the task's currency is %.*s, the look-up's is %.*s",
                               BS_STR_FMT(own), BS_STR_FMT(l->currency)));
}

/* Digits alone are minor units; with a decimal point they are units of the currency. */
static bool read_amount(struct bs_str text, struct bs_str currency, struct bs_money *ret)
{
    bool decimal = memchr(text.p, '.', text.n) != NULL;

    if (decimal)
        return bs_money_parse(text, currency, ret, NULL) == BS_OK;
    for (size_t i = 0; i < text.n; i++) {
        if (text.p[i] < '0' || text.p[i] > '9')
            return false;
        if (__builtin_mul_overflow(ret->minor, 10, &ret->minor) ||
            __builtin_add_overflow(ret->minor, text.p[i] - '0', &ret->minor))
            return false;
    }
    memcpy(ret->currency, currency.p, BS_MIN(currency.n, sizeof(ret->currency) - 1));
    return true;
}

static enum compared compare_amount(const struct bs_task *t, const struct bs_look *l,
                                    struct bs_arena *a, struct bs_outcome *o)
{
    BS_CLEANUP(bs_buf_free) struct bs_buf words = { .max = 256 };
    struct bs_money other = { 0 };

    if (t->money.currency[0] == '\0' || l->amount.n == 0)
        return SAME;
    if (!read_amount(l->amount, bs_str_of(t->money.currency), &other))
        return UNREADABLE;
    if (other.minor == t->money.minor)
        return SAME;
    bs_buf_addz(&words, other.minor < t->money.minor ? "underpay of " : "overpay of ");
    bs_money_write(
        &words,
        (struct bs_money){
            .minor = BS_MAX(other.minor, t->money.minor) - BS_MIN(other.minor, t->money.minor),
            .currency = { t->money.currency[0], t->money.currency[1], t->money.currency[2] } });
    bs_buf_addz(&words, ": the task's amount is ");
    bs_money_write(&words, t->money);
    bs_buf_addz(&words, ", the look-up's is ");
    bs_money_write(&words, other);
    return manual(o, "AMOUNT_MISMATCH", a, bs_buf_str(&words));
}

static enum compared compare_all(const struct bs_task *t, const struct bs_look *l,
                                 struct bs_arena *a, struct bs_outcome *o)
{
    enum compared c = compare_trade(t, l, a, o);

    if (c == SAME)
        c = compare_currency(t, l, a, o);
    if (c == SAME)
        c = compare_amount(t, l, a, o);
    return c;
}

/* ---- no verdict */

static void no_verdict(const struct bs_facts *f, struct bs_arena *a, struct bs_outcome *o)
{
    /* The handler was not called, and asking changes nothing: a cancelled look-up is "not sent". */
    o->kind = f->wire == BS_WIRE_CANCELLED ? BS_OUT_UNSENT : BS_OUT_NOT_PROCESSED;
    o->looked = BS_VERDICT_NONE;
    o->reach = bs_reach_of_look(f);
    o->has_wish = f->retry_after.given;
    o->wish = f->retry_after.delay;
    if (f->wire != BS_WIRE_REPLIED) {
        o->code = bs_outcome_code(a, "CHECK_", bs_wire_code(f->wire));
        o->message = bs_wire_message(a, f);
    } else if (f->status != 200) {
        o->code = bs_outcome_http_code(a, "CHECK_", f->status);
        o->message = bs_status_message(a, f);
    } else {
        o->code = BS_STR("CHECK_BAD_REPLY");
        o->message = BS_STR("the look-up's reply is not the declared verdict");
    }
}

/* ---- the verdicts */

static void state_conflict(const struct bs_look *l, struct bs_arena *a, struct bs_outcome *o)
{
    struct bs_str status = bs_outcome_text(a, l->status, BS_MESSAGE_MAX - 64);

    (void)manual(o, "ORDER_STATE_CONFLICT", a,
                 bs_arena_fmt(a, "the order no longer wants it; its status is %.*s",
                              BS_STR_FMT(status.n ? status : BS_STR("(not said)"))));
}

static void finished(const struct bs_look *l, struct bs_arena *a, struct bs_outcome *o)
{
    struct bs_str status = bs_outcome_text(a, l->status, BS_MESSAGE_MAX - 64);

    o->kind = BS_OUT_FINISHED;
    o->code = BS_STR("ORDER_ALREADY_FINISHED");
    if (status.n)
        o->message = bs_arena_fmt(a, "the order's status is %.*s", BS_STR_FMT(status));
}

/* Goes on, or ends the execution as finished, unless the two sides contradict each other. */
static bool judge_order(const struct bs_task *t, const struct bs_facts *f, const struct bs_look *l,
                        struct bs_arena *a, struct bs_outcome *o)
{
    enum compared c = compare_all(t, l, a, o);

    if (c == UNREADABLE)
        no_verdict(f, a, o);
    else if (c == SAME && l->verdict == BS_VERDICT_FINISHED)
        finished(l, a, o);
    return c == SAME && l->verdict == BS_VERDICT_GO_ON;
}

static bool judge_verdict(const struct bs_task *t, const struct bs_facts *f,
                          const struct bs_look *l, struct bs_arena *a, struct bs_outcome *o)
{
    o->looked = l->verdict;
    switch (l->verdict) {
    case BS_VERDICT_GO_ON:
    case BS_VERDICT_FINISHED:
        return judge_order(t, f, l, a, o);
    case BS_VERDICT_NOT_FOUND:
        o->kind = BS_OUT_NOT_FOUND;
        o->code = BS_STR("ORDER_NOT_FOUND");
        o->message = BS_STR("the look-up does not know the order");
        return false;
    case BS_VERDICT_STATE_CONFLICT:
        state_conflict(l, a, o);
        return false;
    case BS_VERDICT_NONE:
        no_verdict(f, a, o);
        return false;
    }
    bs_panic(__FILE__, __LINE__, "a verdict outside the list");
}

bool bs_classify_look(const struct bs_task *t, const struct bs_facts *f, const struct bs_look *l,
                      struct bs_arena *a, struct bs_outcome *ret)
{
    struct bs_outcome o = { .started_at = f->started_at, .ended_at = f->ended_at };
    bool replied = f->wire == BS_WIRE_REPLIED;
    bool go_on = false;

    BS_ASSERT((uint32_t)f->wire < BS_WIRE_COUNT);
    if (replied) {
        o.http_status = f->status;
        o.excerpt = bs_outcome_text(a, f->body, BS_EXCERPT_MAX);
    }
    if (replied && f->status == 200 && l && l->valid)
        go_on = judge_verdict(t, f, l, a, &o);
    else
        no_verdict(f, a, &o);
    if (!go_on)
        *ret = o;
    return go_on;
}
