/* Passes over finished tasks, slice by slice. A slice that made the committer busy for long, or had
 * to wait for it, makes the next one smaller: under load history gives way. */
#include "keep/inner.h"

#include "sys/log.h"

#include <stdlib.h>

enum { SLICE_FIRST = 50, SLICE_LEAST = 10, SLICE_MOST = 200, LOG_LEFT_MAX = 256 << 20 };

static const struct bs_span pass_every = { INT64_C(3600) * 1000000 };
static const struct bs_span between_slices = { 20000 };
static const struct bs_span look_again = { 10000000 }; /* whether another file was loaded */
static const struct bs_span try_again = { 1000000 };
static const struct bs_span short_enough = { 5000 }, too_long = { 15000 };

/* ---- to the committer and back ---- */

/* Committer's thread. */
static void slice_done(struct bs_work *w, bs_rc rc, const struct bs_err *err)
{
    struct bs_keep *k = BS_CONTAINER(w, struct bs_keep, work);

    k->rc = rc;
    if (rc != BS_OK && err)
        k->err = *err;
    k->answered = bs_now(k->options.clock);
    bool sent = bs_mailbox_send(&k->in, 0, &w->node);
    BS_ASSERT(sent); /* one slice, one place, never closed */
}

static struct bs_span age_for(const struct bs_keep *k)
{
    return k->pass.kind == BS_OP_ARCHIVE ? k->conf.archive_after : k->conf.purge_after;
}

static void send_slice(struct bs_keep *k, struct bs_time now)
{
    k->op = (struct bs_op){
        .kind = k->pass.kind,
        .id = bs_ids_next(k->options.ids, now),
        .now = now,
        .slice = { .before = bs_time_add(now, BS_US(-age_for(k).us)),
                   .after_id = k->pass.after_id,
                   .limit = k->limit },
    };
    k->ops[0] = &k->op;
    k->work =
        (struct bs_work){ .rank = BS_RANK_MAINTENANCE, .ops = k->ops, .n = 1, .done = slice_done };
    k->out = true;
    if (bs_committer_send(k->options.committer, &k->work))
        return;
    k->out = false;
    k->pass.slice_at = bs_time_add(now, try_again);
}

/* ---- a pass ---- */

static void end_pass(struct bs_keep *k, struct bs_time now, bool whole)
{
    struct pass *p = &k->pass;

    p->running = false;
    k->next_pass = bs_time_add(now, pass_every);
    if (!whole)
        return;
    atomic_fetch_add(&k->passes, 1);
    atomic_store(&k->last_pass_us, now.us);
    if (p->archived + p->purged > 0)
        bs_log(BS_LOG_INFO, "history.kept", BS_FN("archived", p->archived),
               BS_FN("purged", p->purged), BS_FN("ms", bs_time_diff(now, p->began).us / 1000));
}

/* Archiving is followed by purging, purging by the end; what is set to never is left out. */
static void next_part(struct bs_keep *k, struct bs_time now)
{
    struct pass *p = &k->pass;

    p->after_id = 0;
    p->slice_at = now;
    if (p->kind == BS_OP_ARCHIVE)
        p->kind = BS_OP_PURGE;
    else
        end_pass(k, now, true);
}

static void begin_pass(struct bs_keep *k, struct bs_time now)
{
    k->pass =
        (struct pass){ .running = true, .kind = BS_OP_ARCHIVE, .began = now, .slice_at = now };
}

/* ---- answers ---- */

static void count(struct bs_keep *k, uint32_t moved)
{
    bool archived = k->op.kind == BS_OP_ARCHIVE;

    if (archived)
        k->pass.archived += moved;
    else
        k->pass.purged += moved;
    atomic_fetch_add(archived ? &k->archived : &k->purged, moved);
}

static void adapt(struct bs_keep *k)
{
    struct bs_span took = bs_time_diff(k->answered, k->op.now);

    if (took.us > too_long.us)
        k->limit = BS_MAX(k->limit / 2, (uint32_t)SLICE_LEAST);
    else if (took.us < short_enough.us)
        k->limit = BS_MIN(k->limit * 2, (uint32_t)SLICE_MOST);
}

/* The store may be well again in a while; what it refuses for good ends the pass. */
static void failed(struct bs_keep *k, bs_rc rc, const struct bs_err *err, struct bs_time now)
{
    if (rc == BS_E_BUSY || rc == BS_E_UNAVAILABLE || rc == BS_E_UNKNOWN) {
        k->pass.slice_at = bs_time_add(now, try_again);
        return;
    }
    bs_log(BS_LOG_ERROR, "history.failed",
           BS_FZ("part", k->op.kind == BS_OP_ARCHIVE ? "archive" : "purge"),
           BS_FN("after_id", k->op.slice.after_id), BS_FZ("rc", bs_rc_name(rc)),
           BS_FZ("message", err->msg));
    end_pass(k, now, false);
}

static void answered(struct bs_keep *k, struct bs_time now)
{
    const struct bs_op_slice *s = &k->op.slice;

    k->out = false;
    if (k->rc != BS_OK || k->op.rc != BS_OK) {
        failed(k, k->rc != BS_OK ? k->rc : k->op.rc, k->rc != BS_OK ? &k->err : &k->op.err, now);
        return;
    }
    count(k, s->ret_moved);
    adapt(k);
    k->pass.after_id = s->ret_after_id;
    k->pass.slice_at = bs_time_add(now, between_slices);
    if (!s->ret_more)
        next_part(k, now);
}

/* ---- the actor ---- */

/* Another file was loaded: a pass looks at once whether it has something to do. */
static void follow(struct bs_keep *k, struct bs_time now)
{
    struct bs_history_conf conf = bs_queues_now(k->options.queues)->history;

    if (conf.archive_after.us != k->conf.archive_after.us ||
        conf.purge_after.us != k->conf.purge_after.us)
        k->next_pass = now;
    k->conf = conf;
}

static struct bs_time keep_history(struct bs_keep *k, struct bs_time now)
{
    if (bs_mailbox_take(&k->in))
        answered(k, now);
    if (k->out)
        return BS_NEVER;
    follow(k, now);
    if (!k->pass.running && !bs_time_before(now, k->next_pass))
        begin_pass(k, now);
    while (k->pass.running && age_for(k).us <= 0)
        next_part(k, now);
    if (!k->pass.running)
        return bs_time_min(k->next_pass, bs_time_add(now, look_again));
    /* A reader keeps the log from being moved: what can wait does not make it longer. */
    if (k->checkpoints.left > LOG_LEFT_MAX)
        k->pass.slice_at = bs_time_max(k->pass.slice_at, k->checkpoints.at);
    if (!bs_time_before(now, k->pass.slice_at))
        send_slice(k, now);
    return k->out ? BS_NEVER : k->pass.slice_at;
}

static struct bs_time step(struct bs_actor *a, struct bs_time now)
{
    struct bs_keep *k = BS_CONTAINER(a, struct bs_keep, actor);
    struct bs_time history = keep_history(k, now);

    return bs_time_min(history, checkpoints_step(&k->checkpoints, now));
}

bs_rc bs_keep_new(const struct bs_keep_options *o, struct bs_keep **ret, struct bs_err *err)
{
    struct bs_keep *k = calloc(1, sizeof(*k));
    const size_t cap = 1;

    if (!k)
        return bs_fail(err, BS_E_NOMEM, "no memory for the maintenance thread");
    k->options = *o;
    k->limit = SLICE_FIRST;
    k->actor = (struct bs_actor){ .name = "maintain", .step = step, .in = &k->in };
    bs_rc rc = bs_mailbox_init(&k->in, &cap, 1, o->with_fd, err);
    if (rc != BS_OK) {
        free(k);
        return rc;
    }
    rc = checkpoints_init(&k->checkpoints, o, err);
    if (rc != BS_OK) {
        bs_keep_free(k);
        return rc;
    }
    *ret = k;
    return BS_OK;
}

struct bs_actor *bs_keep_actor(struct bs_keep *k)
{
    return &k->actor;
}

void bs_keep_figures(struct bs_keep *k, struct bs_keep_figures *ret)
{
    *ret = (struct bs_keep_figures){
        .archived = atomic_load(&k->archived),
        .purged = atomic_load(&k->purged),
        .passes = atomic_load(&k->passes),
        .last_pass = { atomic_load(&k->last_pass_us) },
        .checkpoints = atomic_load(&k->checkpoints.done),
        .wal_bytes = atomic_load(&k->checkpoints.log_bytes),
    };
}

void bs_keep_quiet(struct bs_keep *k)
{
    if (k)
        checkpoints_done(&k->checkpoints);
}

void bs_keep_free(struct bs_keep *k)
{
    if (!k)
        return;
    checkpoints_done(&k->checkpoints);
    while (bs_mailbox_take(&k->in))
        ;
    bs_mailbox_done(&k->in);
    free(k);
}
