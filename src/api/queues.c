/* Queues: as configured, as paused, what is in them, how they run; pause and resume. */
#include "api/call.h"
#include "api/figures.h"
#include "api/render.h"

#include "base/text.h"
#include "door/door.h"
#include "sys/log.h"

enum { REASON_MAX = 512, NAME_MAX_BYTES = 32 };

static const char *effect_name(enum bs_effect e)
{
    switch (e) {
    case BS_EFFECT_NONE:
        return "none";
    case BS_EFFECT_REPEATABLE:
        return "repeatable";
    case BS_EFFECT_MONEY:
        return "money";
    }
    return "";
}

static void render_rate(struct bs_json *j, const struct bs_rate *r)
{
    BS_CLEANUP(bs_buf_free) struct bs_buf text = { .max = 64 };

    if (r->calls)
        bs_rate_write(&text, r);
    bs_json_kstr_or_null(j, "rate", bs_buf_str(&text));
}

/* null: there is none. */
static void render_ms(struct bs_json *j, const char *name, int64_t us)
{
    bs_json_key(j, name);
    if (us > 0)
        bs_json_int(j, (us + 999) / 1000);
    else
        bs_json_null(j);
}

static void render_conf(struct bs_json *j, const struct bs_queue_conf *q)
{
    bs_json_kbool(j, "configured", q != NULL);
    if (!q)
        return;
    bs_json_kstr_or_null(j, "host", q->handler_host);
    bs_json_kstr_or_null(j, "look_host", q->look_host);
    bs_json_kstr(j, "effect", bs_str_of(effect_name(q->policy.effect)));
    bs_json_kbool(j, "look_up", q->look != BS_LOOK_NONE);
    bs_json_kint(j, "concurrency", q->concurrency);
    render_rate(j, &q->rate);
    bs_json_kint(j, "max_retry_count", q->policy.max_retry_count);
    render_ms(j, "max_age_ms", q->policy.max_age.us);
    bs_json_kint(j, "call_timeout_ms", q->call_timeout.us / 1000);
    bs_json_kint(j, "lease_ms", q->lease.us / 1000);
}

static void render_pause(struct bs_json *j, const struct bs_queue_row *row)
{
    bs_json_kbool(j, "paused", row->paused);
    bs_json_kstr_or_null(j, "reason", row->reason);
    bs_json_kstr_or_null(j, "operator", row->operator);
    bs_json_ktime(j, "at", row->at);
}

static void render_ages(struct bs_json *j, const struct bs_queue_row *row)
{
    bs_json_ktime(j, "oldest_due", row->oldest_due);
    bs_json_ktime(j, "oldest_manual", row->oldest_manual);
}

/* ---- what this process sees ---- */

static void render_times(struct bs_json *j, const char *name, const struct bs_hist *h)
{
    struct bs_hist_view v;

    bs_hist_read(h, &v);
    bs_json_key(j, name);
    bs_json_open(j);
    bs_json_kint(j, "count", (int64_t)v.count);
    render_ms(j, "p50_ms", bs_hist_quantile(&v, 500).us);
    render_ms(j, "p99_ms", bs_hist_quantile(&v, 990).us);
    bs_json_close(j);
}

static void render_breaker(struct bs_json *j, const struct bs_queue_live *l, bool held)
{
    const char *state = !l->breaker_open ? "closed" : held ? "open" : "half_open";

    bs_json_key(j, "breaker");
    bs_json_open(j);
    bs_json_kstr(j, "state", bs_str_of(state));
    bs_json_ktime(j, "since", l->since);
    bs_json_kint(j, "openings", l->openings);
    bs_json_kstr_or_null(j, "why", bs_utf8_cut(bs_str_of(l->why), sizeof(l->why)));
    bs_json_close(j);
}

static void render_live(struct bs_json *j, const struct bs_queue_live *l, struct bs_time now)
{
    bool held = l && bs_time_before(now, l->held_until);

    if (!l)
        return;
    bs_json_kint(j, "running", l->running);
    bs_json_ktime(j, "held_until", held ? l->held_until : BS_TIME_NONE);
    render_breaker(j, l, held);
    render_times(j, "calls", l->calls);
    render_times(j, "waits", l->waits);
    render_times(j, "settles", l->settles);
}

/* ---- queues ---- */

static void render_queue(struct bs_call *c, struct bs_json *j, const struct bs_queue_figures *q,
                         bool whole)
{
    bs_json_open(j);
    bs_json_kstr(j, "biz_type", q->biz_type);
    render_conf(j, q->conf);
    render_pause(j, &q->row);
    render_ages(j, &q->row);
    bs_render_counts(j, q);
    if (whole)
        bs_render_amounts(j, q);
    render_live(j, q->live, bs_now(c->api->o.clock));
    bs_json_close(j);
}

static void render_stat(struct bs_json *j, const struct bs_queue_figures *q)
{
    bs_json_open(j);
    bs_json_kstr(j, "biz_type", q->biz_type);
    bs_render_counts(j, q);
    bs_render_amounts(j, q);
    render_ages(j, &q->row);
    bs_json_close(j);
}

static bs_rc read_list(struct bs_call *c, struct bs_store *s, bool stats, struct bs_err *err)
{
    struct bs_figures f;

    BS_TRY(bs_figures_read(&c->api->o, s, &c->arena, &f, err));
    struct bs_json *j = bs_call_json(c, 200);
    if (!j)
        return BS_E_NOMEM;
    bs_json_open(j);
    bs_json_key(j, "items");
    bs_json_open_array(j);
    for (uint32_t i = 0; i < f.n; i++) {
        if (!bs_who_sees(&c->who, f.queues[i].biz_type))
            continue;
        if (stats)
            render_stat(j, &f.queues[i]);
        else
            render_queue(c, j, &f.queues[i], false);
    }
    bs_json_close_array(j);
    bs_render_cursor(j, 0);
    bs_json_close(j);
    bs_call_json_end(c, j);
    return BS_OK;
}

static bs_rc read_queues(struct bs_call *c, struct bs_store *s, struct bs_err *err)
{
    return read_list(c, s, false, err);
}

static bs_rc read_stats(struct bs_call *c, struct bs_store *s, struct bs_err *err)
{
    return read_list(c, s, true, err);
}

enum bs_next bs_route_queues(struct bs_call *c)
{
    bs_call_wait(c);
    bs_call_read(c, read_queues);
    return BS_REPLY_LATER;
}

enum bs_next bs_route_stats(struct bs_call *c)
{
    bs_call_wait(c);
    bs_call_read(c, read_stats);
    return BS_REPLY_LATER;
}

static bs_rc read_one(struct bs_call *c, struct bs_store *s, struct bs_str biz_type,
                      struct bs_err *err)
{
    struct bs_figures f;

    BS_TRY(bs_figures_read(&c->api->o, s, &c->arena, &f, err));
    const struct bs_queue_figures *q = bs_figures_find(&f, biz_type);
    if (!q)
        return bs_fail(err, BS_E_NOT_FOUND,
                       "there is no queue of this name; GET /v1/queues lists them");
    struct bs_json *j = bs_call_json(c, 200);
    if (!j)
        return BS_E_NOMEM;
    c->render = NULL;
    render_queue(c, j, q, true);
    bs_call_json_end(c, j);
    return BS_OK;
}

static bs_rc read_queue(struct bs_call *c, struct bs_store *s, struct bs_err *err)
{
    return read_one(c, s, c->arg, err);
}

enum bs_next bs_route_queue(struct bs_call *c)
{
    if (!bs_who_sees(&c->who, c->arg)) {
        bs_call_problem(c, BS_PROBLEM_NOT_FOUND,
                        "there is no queue of this name; GET /v1/queues lists them");
        return BS_REPLY_NOW;
    }
    bs_call_wait(c);
    bs_call_read(c, read_queue);
    return BS_REPLY_LATER;
}

/* ---- pause and resume ---- */

struct pause {
    struct bs_str reason;
    struct bs_op op;
    struct bs_op *ops[1];
};

static const struct bs_member members[] = {
    { { "reason", 6 }, BS_MEMBER_TEXT, offsetof(struct pause, reason), 0 },
};

static void render_short(struct bs_call *c)
{
    const struct bs_op_queue_pause *op = &c->op->queue_pause;
    struct bs_json *j = bs_call_json(c, 200);

    if (!j)
        return;
    bs_json_open(j);
    bs_json_kstr(j, "biz_type", op->biz_type);
    bs_json_kbool(j, "paused", op->paused);
    bs_json_kstr(j, "reason", op->reason);
    bs_json_kstr(j, "operator", op->operator);
    bs_json_ktime(j, "at", c->op->now);
    bs_json_kbool(j, "partial", true);
    bs_json_close(j);
    bs_call_json_end(c, j);
    bs_log(BS_LOG_WARN, "api.read_back_failed", BS_F("biz_type", op->biz_type));
}

static bs_rc read_after(struct bs_call *c, struct bs_store *s, struct bs_err *err)
{
    return read_one(c, s, c->op->queue_pause.biz_type, err);
}

static void render_refused(struct bs_call *c)
{
    if (c->rc != BS_OK)
        bs_call_problem(c, BS_PROBLEM_UNAVAILABLE,
                        "%s; whether it was done is not known, and it is safe to ask again",
                        c->err.msg);
    else
        bs_call_store_problem(c, c->op->rc, &c->op->err);
}

static void committed(struct bs_call *c)
{
    const struct bs_op_queue_pause *op = &c->op->queue_pause;

    if (c->rc != BS_OK || c->op->rc != BS_OK) {
        c->render = render_refused;
        bs_call_finish(c);
        return;
    }
    if (c->api->o.on_pause)
        c->api->o.on_pause(c->api->o.ctx, op->biz_type, op->paused);
    bs_log(BS_LOG_INFO, op->paused ? "queue.paused" : "queue.resumed",
           BS_F("biz_type", op->biz_type), BS_F("operator", op->operator),
           BS_F("reason", op->reason));
    c->render = render_short;
    bs_call_read(c, read_after);
}

static bool is_configured(struct bs_call *c)
{
    return bs_queue_find(bs_queues_now(c->api->o.queues), c->arg) != NULL;
}

/* A queue that went from the file while it was paused can still be resumed; whether there is one,
 * the store knows. */
static bool may_be(struct bs_call *c, bool paused)
{
    if (!bs_who_sees(&c->who, c->arg))
        return false;
    return is_configured(c) || (!paused && c->arg.n <= NAME_MAX_BYTES && bs_utf8_valid(c->arg) &&
                                bs_text_plain(c->arg));
}

/* False: the answer is a problem. */
static bool take(struct bs_call *c, struct pause *q, bool paused)
{
    struct bs_field_errors errors;
    struct bs_problem_more more = { .errors = &errors };
    struct bs_arena *a = &c->r->arena;

    if (!may_be(c, paused)) {
        bs_call_problem(c, BS_PROBLEM_NOT_FOUND,
                        "there is no queue of this name; GET /v1/queues lists them");
        return false;
    }
    if (!bs_call_body(c, members, BS_COUNT(members), q, &errors))
        return false;
    if (!errors.n && !bs_str_trim(q->reason).n)
        bs_field_error_add(&errors, a, "reason", "REQUIRED", "say why");
    else if (q->reason.n > REASON_MAX)
        bs_field_error_add(&errors, a, "reason", "TOO_LONG", "at most %d bytes", REASON_MAX);
    else if (!bs_utf8_valid(q->reason) || !bs_text_plain(q->reason))
        bs_field_error_add(&errors, a, "reason", "CONTROL_CHARACTER", "must be plain text");
    if (errors.n)
        bs_call_problem_more(c, BS_PROBLEM_INVALID_FIELDS, &more);
    return errors.n == 0;
}

static enum bs_next set_paused(struct bs_call *c, bool paused)
{
    struct pause *q = BS_NEW(&c->r->arena, struct pause);
    struct bs_time now = bs_now(c->api->o.clock);

    if (!q || !take(c, q, paused))
        return BS_REPLY_NOW;
    q->op = (struct bs_op){ .kind = BS_OP_QUEUE_PAUSE,
                            .id = bs_ids_next(c->api->o.ids, now),
                            .now = now };
    q->op.queue_pause = (struct bs_op_queue_pause){
        .biz_type = c->arg,
        .reason = q->reason,
        .operator= c->who.name,
        .paused = paused,
        .known = !is_configured(c),
    };
    q->ops[0] = &q->op;
    c->op = &q->op;
    c->committed = committed;
    bs_call_wait(c);
    bs_call_commit(c, BS_RANK_PEOPLE, q->ops, 1, 0);
    return BS_REPLY_LATER;
}

enum bs_next bs_route_pause(struct bs_call *c)
{
    return set_paused(c, true);
}

enum bs_next bs_route_resume(struct bs_call *c)
{
    return set_paused(c, false);
}
