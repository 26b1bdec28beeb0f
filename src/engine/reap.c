/* The reaper: takes back leases that ran out, and tasks of queues that nobody has. */
#include "engine/parts.h"

#include "sys/log.h"

enum { REAP_MOST = 200 };

static const struct bs_span reap_every = { 1000000 };
static const struct bs_span orphans_every = { 30000000 };
static const struct bs_span try_again = { 1000000 };
/* Claims may have filled the lane for a moment. */
static const struct bs_span send_again = { 50000 };

/* Committer's thread. */
static void reaper_done(struct bs_work *w, bs_rc rc, const struct bs_err *err)
{
    struct bs_reaper *r = BS_CONTAINER(w, struct bs_reaper, work);

    (void)err;
    r->rc = rc;
    bs_engine_answered(r->engine, &r->in, 0, &r->work.node);
}

static void fill_reap(struct bs_reaper *r)
{
    r->op.kind = BS_OP_REAP;
    r->op.reap = (struct bs_op_reap){ .limit = REAP_MOST, .node = r->engine->options.node };
}

static void fill_orphans(struct bs_reaper *r)
{
    const struct bs_engine_options *o = &r->engine->options;

    r->op.kind = BS_OP_ORPHANS;
    r->op.orphans = (struct bs_op_orphans){ .queues = bs_queues_now(o->queues),
                                            .after = o->orphans_after,
                                            .limit = REAP_MOST };
}

/* In the lane of claims: behind the finishes, so that an own late result wins over its lease. */
static void ask(struct bs_reaper *r, bool orphans, struct bs_time now)
{
    r->op = (struct bs_op){ .id = bs_ids_next(r->engine->options.ids, now), .now = now };
    if (orphans)
        fill_orphans(r);
    else
        fill_reap(r);
    r->ops[0] = &r->op;
    r->work = (struct bs_work){ .rank = BS_RANK_CLAIM, .ops = r->ops, .n = 1, .done = reaper_done };
    r->out = bs_engine_send(r->engine, &r->work);
    if (!r->out)
        *(orphans ? &r->orphans_at : &r->reap_at) = bs_time_add(now, send_again);
}

static void reaped(struct bs_reaper *r, struct bs_time now)
{
    const struct bs_op_reap *o = &r->op.reap;

    if (o->ret_waiting + o->ret_manual > 0)
        bs_log(BS_LOG_WARN, "lease.taken_over", BS_FN("waiting", o->ret_waiting),
               BS_FN("manual", o->ret_manual));
    /* From when it was asked: an answer that was long in coming knows nothing of what ran out
     * meanwhile. */
    r->reap_at = o->ret_more ? now : bs_time_max(now, bs_time_add(r->op.now, reap_every));
}

static void orphaned(struct bs_reaper *r, struct bs_time now)
{
    const struct bs_op_orphans *o = &r->op.orphans;
    struct bs_span pause = orphans_every;

    if (o->ret_manual > 0)
        bs_log(BS_LOG_WARN, "task.no_handler", BS_FN("manual", o->ret_manual));
    pause.us = BS_MIN(pause.us, r->engine->options.orphans_after.us / 2 + 1);
    r->orphans_at = o->ret_more ? now : bs_time_add(now, pause);
}

static void answered(struct bs_reaper *r, struct bs_time now)
{
    bool orphans = r->op.kind == BS_OP_ORPHANS;

    r->out = false;
    if (r->rc != BS_OK || r->op.rc != BS_OK) {
        if (r->rc == BS_OK)
            bs_log(BS_LOG_ERROR, orphans ? "engine.orphans_failed" : "engine.reap_failed",
                   BS_FZ("rc", bs_rc_name(r->op.rc)), BS_FZ("message", r->op.err.msg));
        *(orphans ? &r->orphans_at : &r->reap_at) = bs_time_add(now, try_again);
        return;
    }
    if (orphans)
        orphaned(r, now);
    else
        reaped(r, now);
}

static struct bs_time reaper_step(struct bs_actor *a, struct bs_time now)
{
    struct bs_reaper *r = BS_CONTAINER(a, struct bs_reaper, actor);

    if (bs_mailbox_take_lane(&r->in, 0, SIZE_MAX))
        answered(r, now);
    if (r->out)
        return BS_NEVER;
    if (!bs_time_before(now, r->reap_at))
        ask(r, false, now);
    else if (!bs_time_before(now, r->orphans_at))
        ask(r, true, now);
    return r->out ? BS_NEVER : bs_time_min(r->reap_at, r->orphans_at);
}

bs_rc bs_reaper_init(struct bs_reaper *r, struct bs_engine *e, struct bs_err *err)
{
    static const size_t caps[1] = { 1 };

    BS_TRY(bs_mailbox_init(&r->in, caps, 1, e->options.with_fd, err));
    r->engine = e;
    r->actor = (struct bs_actor){ .name = "reaper", .step = reaper_step, .in = &r->in };
    return BS_OK;
}

void bs_reaper_done(struct bs_reaper *r)
{
    if (!r->actor.in)
        return;
    (void)bs_mailbox_take_lane(&r->in, 0, SIZE_MAX);
    bs_mailbox_done(&r->in);
}
