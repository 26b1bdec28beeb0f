/* Queues: as configured, as paused, what is in them; pause and resume. */
#include "api/call.h"
#include "api/render.h"

#include "base/text.h"
#include "door/door.h"
#include "sys/log.h"

enum { REASON_MAX = 512 };

/* Everything that is known of all queues at one moment; in a reader's arena. */
struct picture {
    const struct bs_queues *conf;
    struct bs_queue_row *rows;
    uint32_t rows_n;
    struct bs_stat_row *stats;
    uint32_t stats_n;
};

static bs_rc look(struct bs_call *c, struct bs_store *s, struct picture *ret, struct bs_err *err)
{
    *ret = (struct picture){ .conf = bs_queues_now(c->api->o.queues) };
    BS_TRY(bs_store_queues(s, &c->arena, &ret->rows, &ret->rows_n, err));
    return bs_store_stats(s, &c->arena, &ret->stats, &ret->stats_n, err);
}

static const struct bs_queue_row *row_of(const struct picture *p, struct bs_str biz_type)
{
    for (uint32_t i = 0; i < p->rows_n; i++) {
        if (bs_str_eq(p->rows[i].biz_type, biz_type))
            return &p->rows[i];
    }
    return NULL;
}

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

static void render_conf(struct bs_json *j, const struct bs_queue_conf *q)
{
    bs_json_kbool(j, "configured", q != NULL);
    if (!q)
        return;
    bs_json_kstr(j, "effect", bs_str_of(effect_name(q->policy.effect)));
    bs_json_kbool(j, "look_up", q->look != BS_LOOK_NONE);
    bs_json_kint(j, "concurrency", q->concurrency);
    bs_json_kint(j, "max_retry_count", q->policy.max_retry_count);
    bs_json_kint(j, "call_timeout_ms", q->call_timeout.us / 1000);
    bs_json_kint(j, "lease_ms", q->lease.us / 1000);
}

static void render_pause(struct bs_json *j, const struct bs_queue_row *row)
{
    struct bs_queue_row none = { 0 };

    if (!row)
        row = &none;
    bs_json_kbool(j, "paused", row->paused);
    bs_json_kstr_or_null(j, "reason", row->reason);
    bs_json_kstr_or_null(j, "operator", row->operator);
    bs_json_ktime(j, "at", row->at);
    bs_json_ktime(j, "oldest_due", row->oldest_due);
}

static void render_counts(struct bs_json *j, const struct picture *p, struct bs_str biz_type)
{
    int64_t counts[BS_STATE_COUNT] = { 0 };
    int64_t unknown = 0;

    for (uint32_t i = 0; i < p->stats_n; i++) {
        const struct bs_stat_row *row = &p->stats[i];

        if (!bs_str_eq(row->biz_type, biz_type) || row->state >= BS_STATE_COUNT)
            continue;
        counts[row->state] += row->count;
        unknown += row->unknown;
    }
    bs_json_key(j, "counts");
    bs_json_open(j);
    for (enum bs_state state = BS_STATE_NONE + 1; state < BS_STATE_COUNT; state++)
        bs_json_kint(j, bs_state_name(state), counts[state]);
    bs_json_close(j);
    bs_json_kint(j, "unknown", unknown);
}

static void render_queue(struct bs_json *j, const struct picture *p, struct bs_str biz_type)
{
    bs_json_open(j);
    bs_json_kstr(j, "biz_type", biz_type);
    render_conf(j, bs_queue_find(p->conf, biz_type));
    render_pause(j, row_of(p, biz_type));
    render_counts(j, p, biz_type);
    bs_json_close(j);
}

/* Configured ones first, then those of which only rows are left. */
static void render_all(struct bs_call *c, struct bs_json *j, const struct picture *p)
{
    struct bs_str last = BS_STR_NONE;

    for (uint32_t i = 0; i < p->conf->n; i++) {
        if (bs_who_sees(&c->who, p->conf->items[i].biz_type))
            render_queue(j, p, p->conf->items[i].biz_type);
    }
    for (uint32_t i = 0; i < p->rows_n; i++) {
        struct bs_str name = p->rows[i].biz_type;

        if (!bs_queue_find(p->conf, name) && bs_who_sees(&c->who, name))
            render_queue(j, p, name);
    }
    for (uint32_t i = 0; i < p->stats_n; i++) {
        struct bs_str name = p->stats[i].biz_type;

        if (bs_str_eq(name, last) || bs_queue_find(p->conf, name) || row_of(p, name) ||
            !bs_who_sees(&c->who, name))
            continue;
        render_queue(j, p, name);
        last = name;
    }
}

static bs_rc read_queues(struct bs_call *c, struct bs_store *s, struct bs_err *err)
{
    struct picture p;

    BS_TRY(look(c, s, &p, err));
    struct bs_json *j = bs_call_json(c, 200);
    if (!j)
        return BS_E_NOMEM;
    bs_json_open(j);
    bs_json_key(j, "items");
    bs_json_open_array(j);
    render_all(c, j, &p);
    bs_json_close_array(j);
    bs_render_cursor(j, 0);
    bs_json_close(j);
    bs_call_json_end(c, j);
    return BS_OK;
}

enum bs_next bs_route_queues(struct bs_call *c)
{
    bs_call_wait(c);
    bs_call_read(c, read_queues);
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
    struct picture p;

    BS_TRY(look(c, s, &p, err));
    struct bs_json *j = bs_call_json(c, 200);
    if (!j)
        return BS_E_NOMEM;
    c->render = NULL;
    render_queue(j, &p, c->op->queue_pause.biz_type);
    bs_call_json_end(c, j);
    return BS_OK;
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

/* False: the answer is a problem. */
static bool take(struct bs_call *c, struct pause *q)
{
    struct bs_field_errors errors;
    struct bs_problem_more more = { .errors = &errors };
    struct bs_arena *a = &c->r->arena;

    if (!bs_queue_find(bs_queues_now(c->api->o.queues), c->arg) || !bs_who_sees(&c->who, c->arg)) {
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

    if (!q || !take(c, q))
        return BS_REPLY_NOW;
    q->op = (struct bs_op){ .kind = BS_OP_QUEUE_PAUSE,
                            .id = bs_ids_next(c->api->o.ids, now),
                            .now = now };
    q->op.queue_pause = (struct bs_op_queue_pause){
        .biz_type = c->arg, .reason = q->reason, .operator= c->who.name, .paused = paused
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
