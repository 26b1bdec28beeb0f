/* The figures of all queues at one moment, judged; and alerts about events that are over. */
#include "alert/parts.h"

#include "core/alert_rule.h"

#include <stdio.h>

/* One look at the store. */
struct sight {
    struct bs_arena a;
    struct bs_stat_row *stats;
    struct bs_queue_row *queues;
    struct bs_alert_row *open;
    uint32_t stats_n, queues_n, open_n;
    struct bs_alert_gate *gates;
    uint32_t gates_n;
    struct bs_str *names; /* every queue that is configured, known or alerted about */
    uint32_t names_n;
};

static void end_sight(struct sight *s)
{
    bs_arena_free(&s->a);
}

/* Alerts before gates: a breaker that opens in between is judged next time. */
static bs_rc read_store(struct bs_alerts *a, struct sight *s, struct bs_err *err)
{
    const struct bs_alert_filter f = { .which = BS_ALERTS_OPEN, .limit = BS_ALERT_OPEN_MAX };

    BS_TRY(bs_store_alerts(a->o.reader, &f, &s->a, &s->open, &s->open_n, err));
    BS_TRY(bs_store_stats(a->o.reader, &s->a, &s->stats, &s->stats_n, err));
    BS_TRY(bs_store_queues(a->o.reader, &s->a, &s->queues, &s->queues_n, err));
    if (!a->o.gates)
        return BS_OK;
    s->gates = BS_NEW_ARRAY(&s->a, struct bs_alert_gate, BS_ALERT_GATES_MAX);
    if (!s->gates)
        return bs_fail(err, BS_E_NOMEM, "no memory for the breakers");
    s->gates_n = a->o.gates(a->o.ctx, s->gates, BS_ALERT_GATES_MAX);
    return BS_OK;
}

static void add_name(struct sight *s, struct bs_str name)
{
    for (uint32_t i = 0; i < s->names_n; i++)
        if (bs_str_eq(s->names[i], name))
            return;
    if (name.n)
        s->names[s->names_n++] = name;
}

static bs_rc name_queues(struct sight *s, const struct bs_queues *conf, struct bs_err *err)
{
    uint32_t max = s->stats_n + s->queues_n + s->open_n + (conf ? conf->n : 0) + 1;

    s->names = BS_NEW_ARRAY(&s->a, struct bs_str, max);
    if (!s->names)
        return bs_fail(err, BS_E_NOMEM, "no memory for the names of queues");
    for (uint32_t i = 0; conf && i < conf->n; i++)
        add_name(s, conf->items[i].biz_type);
    for (uint32_t i = 0; i < s->stats_n; i++)
        add_name(s, s->stats[i].biz_type);
    for (uint32_t i = 0; i < s->queues_n; i++)
        add_name(s, s->queues[i].biz_type);
    for (uint32_t i = 0; i < s->open_n; i++)
        if (bs_alert_is_condition(s->open[i].kind))
            add_name(s, s->open[i].biz_type);
    return BS_OK;
}

/* ---- one queue ---- */

struct case_of {
    struct bs_alert_figures figures;
    struct bs_exposure_limit exposure[BS_EXPOSURE_MAX];
    struct bs_alert_open *open;
    uint32_t open_n;
};

static bool not_settled(enum bs_state s)
{
    return s != BS_SUCCESS && s != BS_CLOSED;
}

static void add_exposure(struct case_of *c, const struct bs_stat_row *r)
{
    uint32_t i = 0;

    if (r->currency.n != 3)
        return;
    while (i < c->figures.exposure_n && !bs_str_is(r->currency, c->exposure[i].currency))
        i++;
    if (i == BS_EXPOSURE_MAX)
        return;
    if (i == c->figures.exposure_n) {
        memcpy(c->exposure[i].currency, r->currency.p, 3);
        c->figures.exposure_n++;
    }
    if (__builtin_add_overflow(c->exposure[i].amount, r->amount, &c->exposure[i].amount))
        c->exposure[i].amount = INT64_MAX;
}

static void add_stats(struct case_of *c, const struct sight *s)
{
    struct bs_alert_figures *f = &c->figures;

    for (uint32_t i = 0; i < s->stats_n; i++) {
        const struct bs_stat_row *r = &s->stats[i];

        if (!bs_str_eq(r->biz_type, f->biz_type) || !not_settled(r->state))
            continue;
        f->unknown += r->unknown;
        if (r->state == BS_MANUAL)
            f->manual += r->count;
        if (r->state == BS_WAITING || r->state == BS_RETRY)
            f->backlog += r->count;
        add_exposure(c, r);
    }
    f->exposure = c->exposure;
}

static void add_queue(struct case_of *c, struct sight *s)
{
    struct bs_alert_figures *f = &c->figures;

    for (uint32_t i = 0; i < s->queues_n; i++) {
        const struct bs_queue_row *q = &s->queues[i];

        if (!bs_str_eq(q->biz_type, f->biz_type))
            continue;
        f->oldest_due = q->oldest_due;
        f->oldest_manual = q->oldest_manual;
        f->paused = q->paused;
        if (q->paused)
            f->pause_why = bs_arena_fmt(&s->a, "%.*s: %.200s", BS_STR_FMT(q->operator),
                                        q->reason.n ? q->reason.p : "");
    }
}

static bool add_open(struct case_of *c, struct sight *s)
{
    c->open = BS_NEW_ARRAY(&s->a, struct bs_alert_open, s->open_n + 1);
    if (!c->open)
        return false;
    for (uint32_t i = 0; i < s->open_n; i++) {
        const struct bs_alert_row *r = &s->open[i];

        if (bs_str_eq(r->biz_type, c->figures.biz_type) && bs_alert_is_condition(r->kind))
            c->open[c->open_n++] = (struct bs_alert_open){ r->kind, r->subject };
    }
    return true;
}

static void add_gate(struct bs_alerts *a, struct case_of *c, const struct sight *s)
{
    struct bs_alert_figures *f = &c->figures;

    for (uint32_t i = 0; i < s->gates_n; i++) {
        if (!bs_str_is(f->biz_type, s->gates[i].biz_type))
            continue;
        f->breaker_open = true;
        f->breaker_why = bs_str_of(s->gates[i].why);
    }
    /* Where nobody knows, it is as it was. */
    for (uint32_t i = 0; !a->o.gates && i < c->open_n; i++)
        f->breaker_open |= bs_str_is(c->open[i].kind, "breaker");
}

static void add_past(struct bs_alerts *a, struct case_of *c, struct bs_time now)
{
    struct bs_alert_figures *f = &c->figures;
    struct bs_span window = bs_alerts_conf(a)->growth_window;
    struct bs_alert_feed *feed = bs_alert_feed_of(a, f->biz_type, now);

    f->watched_since = a->started_at;
    f->manual_low = f->manual;
    if (!feed)
        return;
    if (f->paused || f->breaker_open)
        feed->gated_last = now;
    bs_alert_feed_sample(feed, f->manual, window, now);
    f->manual_low = bs_alert_feed_low(feed);
    f->window_full = bs_time_diff(now, feed->since).us >= window.us;
    f->gated_last = feed->gated_last;
}

static bool fill_case(struct bs_alerts *a, struct case_of *c, struct sight *s, struct bs_time now)
{
    add_stats(c, s);
    add_queue(c, s);
    if (!add_open(c, s))
        return false;
    add_gate(a, c, s);
    add_past(a, c, now);
    return true;
}

/* ---- verdicts → operations ---- */

static bool begin_or_end(struct bs_alerts *a, struct bs_str biz_type,
                         const struct bs_alert_verdict *v, struct bs_time now)
{
    struct bs_op *op = bs_alerts_op(a, v->begins ? BS_OP_ALERT : BS_OP_ALERT_CLEAR, now);
    struct bs_str kind = bs_str_of(v->kind);

    if (!op)
        return false;
    struct bs_str subject = bs_arena_str(&a->ops_arena, bs_str_of(v->subject));
    struct bs_str message = bs_arena_str(&a->ops_arena, bs_str_of(v->message));
    if (v->begins)
        op->alert = (struct bs_op_alert){ .kind = kind,
                                          .subject = subject,
                                          .biz_type = bs_arena_str(&a->ops_arena, biz_type),
                                          .message = message,
                                          .condition = true };
    else
        op->alert_clear = (struct bs_op_alert_clear){
            .kind = kind, .subject = subject, .message = message, .tell = true
        };
    return true;
}

static bool judge_queue(struct bs_alerts *a, struct sight *s, struct bs_str name,
                        struct bs_time now)
{
    static const struct bs_alert_limits none = { 0 };
    const struct bs_queue_conf *conf = bs_queue_find(bs_queues_now(a->o.queues), name);
    struct case_of c = { .figures = { .biz_type = name } };
    bool room = true;

    if (!fill_case(a, &c, s, now))
        return false;
    struct bs_alert_verdict *v =
        BS_NEW_ARRAY(&s->a, struct bs_alert_verdict, BS_ALERT_VERDICTS_MAX(c.open_n));
    if (!v)
        return false;
    const struct bs_alert_judgement j = {
        &c.figures, conf ? &conf->alerts : &none,     c.open,
        c.open_n,   bs_alerts_conf(a)->growth_window, now,
    };
    uint32_t n = bs_alert_judge(&j, v);
    for (uint32_t i = 0; i < n && room; i++)
        room = begin_or_end(a, name, &v[i], now);
    return room;
}

/* ---- events ---- */

/* Quiet, or last counted by a clock that was wrong: what comes now is not of that alert. */
static bool is_over(struct bs_alerts *a, const struct bs_alert_row *r, struct bs_time now)
{
    int64_t ago = bs_time_diff(now, r->last_at).us;

    return ago >= bs_alerts_conf(a)->quiet.us || ago < -bs_time_high_trusted.us;
}

static bool end_quiet(struct bs_alerts *a, const struct bs_alert_row *r, struct bs_time now)
{
    if (bs_alert_is_condition(r->kind) || !is_over(a, r, now))
        return true;
    struct bs_op *op = bs_alerts_op(a, BS_OP_ALERT_CLEAR, now);
    if (!op)
        return false;
    op->alert_clear =
        (struct bs_op_alert_clear){ .kind = bs_arena_str(&a->ops_arena, r->kind),
                                    .subject = bs_arena_str(&a->ops_arena, r->subject),
                                    .message = BS_STR("nothing of it came any more"),
                                    .unless_after = r->last_at };
    return true;
}

static void count_kinds(struct bs_alerts *a, const struct sight *s)
{
    pthread_mutex_lock(&a->mutex);
    for (uint32_t i = 0; i < a->kinds_n; i++)
        a->kinds[i].n = 0;
    for (uint32_t i = 0; i < s->open_n; i++) {
        struct bs_str kind = s->open[i].kind;
        uint32_t k = 0;

        while (k < a->kinds_n && !bs_str_is(kind, a->kinds[k].name))
            k++;
        if (k == BS_ALERT_KINDS_MAX || kind.n >= sizeof(a->kinds[k].name))
            continue;
        if (k == a->kinds_n) {
            snprintf(a->kinds[k].name, sizeof(a->kinds[k].name), "%.*s", BS_STR_FMT(kind));
            a->kinds[a->kinds_n++].n = 0;
        }
        a->kinds[k].n++;
    }
    pthread_mutex_unlock(&a->mutex);
}

bool bs_alerts_judge(struct bs_alerts *a, struct bs_time now)
{
    BS_CLEANUP(end_sight) struct sight s = { 0 };
    const struct bs_queues *conf = bs_queues_now(a->o.queues);
    struct bs_err err = { 0 };
    bool room = true;

    if (!conf || !conf->alerts)
        return false;
    bs_rc rc = read_store(a, &s, &err);
    if (rc == BS_OK)
        rc = name_queues(&s, conf, &err);
    bs_alerts_readable(a, rc, &err);
    if (rc != BS_OK)
        return false;
    count_kinds(a, &s);
    for (uint32_t i = 0; i < s.names_n && room; i++)
        room = judge_queue(a, &s, s.names[i], now);
    for (uint32_t i = 0; i < s.open_n && room; i++)
        room = end_quiet(a, &s.open[i], now);
    return !room;
}
