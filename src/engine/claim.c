/* One claim of one queue: the slots for what it may bring, the way to the committer and back, the
 * jobs made of it. */
#include "engine/parts.h"

#include "sys/log.h"

#include <stdio.h>
#include <stdlib.h>

static const struct bs_span backoff_first = { 200000 };
static const struct bs_span backoff_most = { 2000000 };
static const struct bs_span safety_look = { 5000000 };

enum { SUSPECT_CRASHES = 2, BELOW_EVERY = 16 };

static void back_off(struct bs_feed *f, struct bs_time now)
{
    f->backoff = f->backoff.us ? BS_US(BS_MIN(2 * f->backoff.us, backoff_most.us)) : backoff_first;
    f->next_look = bs_time_add(now, f->backoff);
}

static struct bs_job *new_job(struct bs_scheduler *s)
{
    struct bs_job *job = calloc(1, sizeof(*job));

    if (!job)
        return NULL;
    job->executor = &s->engine->executor;
    job->ended = (struct bs_note){ .kind = BS_NOTE_ENDED, .job = job };
    job->freed = (struct bs_note){ .kind = BS_NOTE_FREE, .job = job };
    job->body.max = 1;
    job->all_next = s->all;
    s->all = job;
    return job;
}

static struct bs_job *take_slot(struct bs_scheduler *s)
{
    struct bs_job *job = s->pool;

    if (!job)
        return new_job(s);
    s->pool = job->next;
    return job;
}

static void give_slots_back(struct bs_claim *c)
{
    while (c->slots) {
        struct bs_job *job = c->slots;

        c->slots = job->next;
        job->next = c->scheduler->pool;
        c->scheduler->pool = job;
    }
}

/* As many as there is memory for, at most n. */
static uint32_t reserve_slots(struct bs_claim *c, uint32_t n)
{
    uint32_t got = 0;

    BS_ASSERT(!c->slots);
    while (got < n) {
        struct bs_job *job = take_slot(c->scheduler);

        if (!job)
            break;
        job->next = c->slots;
        c->slots = job;
        got++;
    }
    return got;
}

/* Committer's thread. */
static void claim_done(struct bs_work *w, bs_rc rc, const struct bs_err *err)
{
    struct bs_claim *c = BS_CONTAINER(w, struct bs_claim, work);

    (void)err;
    c->rc = rc;
    bs_engine_answered(c->scheduler->engine, &c->scheduler->in, BS_SCHEDULER_CLAIMED,
                       &c->work.node);
}

static void fill_op(struct bs_claim *c, uint32_t limit, struct bs_time now)
{
    const struct bs_engine_options *o = &c->scheduler->engine->options;
    const struct bs_queue_conf *conf = c->conf;
    int n = snprintf(c->id, sizeof(c->id), "%s/%llu", c->scheduler->incarnation,
                     (unsigned long long)++c->scheduler->seq);

    BS_ASSERT(n > 0 && (size_t)n < sizeof(c->id));
    c->op = (struct bs_op){ .kind = BS_OP_CLAIM, .id = bs_ids_next(o->ids, now), .now = now };
    c->op.claim = (struct bs_op_claim){
        .biz_type = conf->biz_type,
        .claim_id = { c->id, (size_t)n },
        .limit = limit,
        .suspects_limit = c->suspect ? 1 : 0,
        .lease_until = bs_time_add(now, conf->lease),
        .token_floor = now.us,
        .from_below = ++c->feed->claims_n % BELOW_EVERY == 0,
    };
    c->ops[0] = &c->op;
    c->work = (struct bs_work){ .rank = BS_RANK_CLAIM, .ops = c->ops, .n = 1, .done = claim_done };
}

/* Its gate, its rate and its calls let it claim; or a claim is out and comes back soon. */
static bool could_claim(const struct bs_feed *f, struct bs_time now)
{
    if (!f->conf || f->paused)
        return false;
    if (f->claim.out)
        return true;
    struct bs_time pace = bs_pace_when(&f->pace, &f->conf->rate, bs_claim_slack);
    return !bs_time_before(now, bs_time_max(f->gate.until, pace)) && bs_feed_room(f) > 0;
}

/* The one place for suspects goes to who was refused it first, so that a busy queue does not keep
 * it from the others; nor does one that waits for a breaker, a host or its rate. */
static struct bs_feed *refused_first(struct bs_scheduler *s, struct bs_time now)
{
    struct bs_feed *first = NULL;

    for (struct bs_feed *f = s->feeds; f; f = f->next)
        if (f->refused && (!first || f->refused < first->refused) && could_claim(f, now))
            first = f;
    return first;
}

static bool take_suspect_place(struct bs_feed *f, struct bs_time now)
{
    struct bs_scheduler *s = f->scheduler;
    struct bs_feed *first = refused_first(s, now);

    if (!s->suspect && (!first || first == f)) {
        s->suspect = true;
        f->refused = 0;
        return true;
    }
    if (!f->refused)
        f->refused = ++s->refusals;
    return false;
}

static void give_suspect_place_back(struct bs_claim *c, struct bs_time now)
{
    struct bs_feed *first = refused_first(c->scheduler, now);

    if (!c->suspect)
        return;
    c->suspect = false;
    c->scheduler->suspect = false;
    if (!first)
        return;
    first->next_look = bs_time_min(first->next_look, now);
    /* Its own claim may be out and come back with a look that is far away. */
    if (first->claim.out)
        first->hinted = bs_time_min(first->hinted, now);
}

static void take_back(struct bs_claim *c, struct bs_time now)
{
    struct bs_scheduler *s = c->scheduler;

    c->out = false;
    s->asked -= c->op.claim.limit;
    bs_feed_take(c->feed, -(int32_t)c->op.claim.limit);
    give_suspect_place_back(c, now);
    give_slots_back(c);
    atomic_fetch_sub(&s->engine->busy, 1);
}

void bs_claim_send(struct bs_feed *f, uint32_t room, struct bs_time now)
{
    struct bs_claim *c = &f->claim;
    struct bs_scheduler *s = f->scheduler;

    BS_ASSERT(!c->out);
    c->scheduler = s;
    c->feed = f;
    c->conf = f->conf;
    c->probe = f->gate.probing;
    uint32_t limit =
        reserve_slots(c, bs_pace_room(&f->pace, &f->conf->rate, bs_claim_slack, room, now));
    if (limit == 0) {
        bs_log(BS_LOG_ERROR, "engine.no_memory", BS_F("biz_type", f->biz_type));
        back_off(f, now);
        return;
    }
    c->suspect = take_suspect_place(f, now);
    fill_op(c, limit, now);
    c->sent_at = now;
    c->out = true;
    f->hinted = BS_NEVER;
    s->asked += limit;
    bs_feed_take(f, (int32_t)limit);
    atomic_fetch_add(&s->engine->busy, 1);
    if (!bs_engine_send(s->engine, &c->work)) {
        take_back(c, now);
        back_off(f, now);
        return;
    }
}

static void prepare(struct bs_job *job, struct bs_feed *f, struct bs_leased *l)
{
    job->next = job->live_prev = job->live_next = NULL;
    job->feed = f;
    job->line = &f->line;
    job->conf = f->claim.conf;
    job->leased = l;
    job->stage = BS_STAGE_WAIT;
    job->probe = f->claim.probe;
    job->lease_until = f->claim.op.claim.lease_until;
}

/* Each leased task gets its slot and goes to the executor. */
static void hand_over(struct bs_claim *c, struct bs_leased *l)
{
    struct bs_scheduler *s = c->scheduler;
    struct bs_job *job = c->slots;

    BS_ASSERT(job);
    c->slots = job->next;
    l->next = NULL;
    prepare(job, c->feed, l);
    if (l->task.crash_count >= SUSPECT_CRASHES && c->suspect) {
        job->suspect = true;
        c->suspect = false; /* the place goes with the job */
    }
    c->feed->claimed++;
    c->feed->held++;
    bs_feed_take(c->feed, 1);
    s->claimed++;
    s->held++;
    atomic_fetch_add(&s->engine->busy, 1);
    atomic_fetch_add(&s->engine->figures.leased, 1);
    atomic_fetch_add(&s->engine->figures.claims, 1);
    bool taken = bs_mailbox_send(&s->engine->executor.in, BS_EXECUTOR_JOBS, &job->node);
    BS_ASSERT(taken);
}

static struct bs_time look_after(const struct bs_claim *c, struct bs_time now)
{
    const struct bs_op_claim *o = &c->op.claim;
    struct bs_time next = o->ret_more ? now : o->ret_next_due;

    /* Due, but nothing that this claim could take or set aside: the one place for suspects is
     * taken. Not a reason to ask without a pause. */
    if (o->ret_more && o->ret_n == 0 && o->ret_set_aside == 0)
        next = bs_time_add(now, backoff_first);
    next = bs_time_min(next, c->feed->hinted);
    return bs_time_min(next, bs_time_add(now, safety_look));
}

static void learn_way(struct bs_feed *f, struct bs_time now)
{
    int64_t us = bs_time_diff(now, f->claim.sent_at).us;

    f->claim_us = f->claim_us ? f->claim_us + (us - f->claim_us) / 8 : us;
}

void bs_claim_answered(struct bs_claim *c, struct bs_time now)
{
    struct bs_feed *f = c->feed;
    struct bs_leased *l = NULL;
    bool well = c->rc == BS_OK && c->op.rc == BS_OK;

    if (well) {
        l = c->op.claim.ret_tasks;
        c->op.claim.ret_tasks = NULL;
    } else if (c->rc == BS_OK) {
        bs_log(BS_LOG_ERROR, "engine.claim_failed", BS_F("biz_type", f->biz_type),
               BS_FZ("rc", bs_rc_name(c->op.rc)), BS_FZ("message", c->op.err.msg));
    }
    while (l) {
        struct bs_leased *next = l->next;

        hand_over(c, l);
        l = next;
    }
    take_back(c, now);
    if (!well) {
        back_off(f, now);
        return;
    }
    f->backoff = BS_US(0);
    bs_pace_take(&f->pace, &c->conf->rate, c->op.claim.ret_n, now);
    f->next_look = look_after(c, now);
    learn_way(f, now);
}
