/* What the store is told of a queue, in the lane of claims, so that it is there before the next
 * one: that a breaker tripped and closed again (alerts), and when the queue could not run, which
 * max_age leaves out. */
#include "engine/parts.h"

/* While it cannot run, so that little is lost to a crash. */
static const struct bs_span tell_every = { 10000000 };
static const struct bs_span again_after = { 1000000 };

static bool counts_age(const struct bs_feed *f)
{
    return f->conf && f->conf->policy.max_age.us > 0;
}

static bool can_run(const struct bs_feed *f, struct bs_time now)
{
    return !f->paused && !f->gate.probing && !bs_time_before(now, f->gate.until);
}

/* ---- to the committer and back ---- */

/* Committer's thread. */
static void teller_done(struct bs_work *w, bs_rc rc, const struct bs_err *err)
{
    struct bs_teller *t = BS_CONTAINER(w, struct bs_teller, work);
    struct bs_feed *f = BS_CONTAINER(t, struct bs_feed, teller);

    (void)err;
    t->rc = rc;
    bs_engine_answered(f->scheduler->engine, &f->scheduler->in, BS_SCHEDULER_TOLD, &t->work.node);
}

static void send(struct bs_feed *f, struct bs_time now)
{
    struct bs_teller *t = &f->teller;

    t->ops[0] = &t->op;
    t->work = (struct bs_work){ .rank = BS_RANK_CLAIM, .ops = t->ops, .n = 1, .done = teller_done };
    t->out = bs_engine_send(f->scheduler->engine, &t->work);
    t->again_at = t->out ? BS_TIME_NONE : bs_time_add(now, again_after);
}

static void make_op(struct bs_feed *f, enum bs_op_kind kind, struct bs_time now)
{
    struct bs_ids *ids = f->scheduler->engine->options.ids;

    f->teller.op = (struct bs_op){ .kind = kind, .id = bs_ids_next(ids, now), .now = now };
}

/* ---- what there is to tell ---- */

static void raise_alert(struct bs_feed *f, struct bs_time now)
{
    struct bs_teller *t = &f->teller;

    make_op(f, BS_OP_ALERT, now);
    t->op.alert = (struct bs_op_alert){ .kind = BS_STR("breaker"),
                                        .subject = f->biz_type,
                                        .biz_type = f->biz_type,
                                        .message = bs_str_of(f->gate.why),
                                        .condition = true };
    t->openings = f->gate.openings;
    t->alert_open = true;
    send(f, now);
}

static void clear_alert(struct bs_feed *f, struct bs_time now)
{
    make_op(f, BS_OP_ALERT_CLEAR, now);
    f->teller.op.alert_clear =
        (struct bs_op_alert_clear){ .kind = BS_STR("breaker"),
                                    .subject = f->biz_type,
                                    .message = BS_STR("the endpoint answers again"),
                                    .tell = true };
    f->teller.alert_open = false;
    send(f, now);
}

static void tell_stop(struct bs_feed *f, struct bs_time now)
{
    struct bs_teller *t = &f->teller;

    make_op(f, BS_OP_STOPPED, now);
    t->op.stopped =
        (struct bs_op_stopped){ .biz_type = f->biz_type, .from = t->stopped_since, .to = now };
    t->stopped_told = now;
    if (can_run(f, now))
        t->stopped_since = BS_TIME_NONE;
    send(f, now);
}

static void note_stop(struct bs_feed *f, struct bs_time now)
{
    struct bs_teller *t = &f->teller;

    if (t->stopped_since.us || !counts_age(f) || can_run(f, now))
        return;
    t->stopped_since = now;
    t->stopped_told = now;
}

/* The one task that tries the endpoint may be the one whose age is asked for. */
static bool told_for_probe(const struct bs_feed *f)
{
    return !bs_time_before(f->teller.stopped_told, f->gate.until);
}

bool bs_feed_must_tell(const struct bs_feed *f)
{
    return f->teller.stopped_since.us && !f->paused && !(f->gate.probing && told_for_probe(f));
}

static bool is_due(const struct bs_feed *f, struct bs_time now)
{
    bool probe = f->gate.probing && !f->paused && !bs_time_before(now, f->gate.until);

    return can_run(f, now) || (probe && !told_for_probe(f)) ||
           !bs_time_before(now, bs_time_add(f->teller.stopped_told, tell_every));
}

static struct bs_time tell_next(const struct bs_feed *f, struct bs_time now)
{
    const struct bs_teller *t = &f->teller;

    if (t->again_at.us)
        return t->again_at;
    if (!t->stopped_since.us)
        return BS_NEVER;
    struct bs_time next = bs_time_add(t->stopped_told, tell_every);
    /* A host's pause ends by itself. */
    return bs_time_before(now, f->gate.until) ? bs_time_min(next, f->gate.until) : next;
}

struct bs_time bs_feed_tell(struct bs_feed *f, struct bs_time now)
{
    struct bs_teller *t = &f->teller;

    note_stop(f, now);
    if (t->out)
        return BS_NEVER;
    if (bs_time_before(now, t->again_at))
        return t->again_at;
    if (t->again_at.us)
        send(f, now); /* the same as before */
    else if (t->openings != f->gate.openings)
        raise_alert(f, now);
    else if (t->alert_open && !f->gate.probing)
        clear_alert(f, now);
    else if (t->stopped_since.us && is_due(f, now))
        tell_stop(f, now);
    return t->out ? BS_NEVER : tell_next(f, now);
}

void bs_teller_answered(struct bs_teller *t, struct bs_time now)
{
    (void)now;
    t->out = false;
}
