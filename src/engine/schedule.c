/* The scheduler: queue by queue, claims what is due while there is room. */
#include "engine/parts.h"

#include "base/rng.h"

#include <stdio.h>
#include <stdlib.h>

static void take_claims(struct bs_scheduler *s, struct bs_time now)
{
    struct bs_node *n = bs_mailbox_take_lane(&s->in, BS_SCHEDULER_CLAIMED, SIZE_MAX);

    while (n) {
        struct bs_node *next = n->next;

        bs_claim_answered(BS_CONTAINER(n, struct bs_claim, work.node), now);
        n = next;
    }
}

static void take_notes(struct bs_scheduler *s, struct bs_time now)
{
    struct bs_node *n = bs_mailbox_take_lane(&s->in, BS_SCHEDULER_NOTES, SIZE_MAX);

    while (n) {
        struct bs_node *next = n->next;
        struct bs_note *note = BS_CONTAINER(n, struct bs_note, node);

        if (note->kind == BS_NOTE_ENDED)
            bs_feed_ended(note->job->feed, note->job);
        else
            bs_feed_freed(note->job->feed, note->job, now);
        n = next;
    }
}

static void take_news(struct bs_scheduler *s, struct bs_time now)
{
    struct bs_hints hints;

    if (!bs_mailbox_take_lane(&s->in, BS_SCHEDULER_NEWS, SIZE_MAX))
        return;
    bs_engine_take_hints(s->engine, &hints);
    bs_feeds_hint(s, &hints);
    bs_feeds_pause(s, now);
    bs_feeds_gates(s, now);
}

static void take_told(struct bs_scheduler *s, struct bs_time now)
{
    struct bs_node *n = bs_mailbox_take_lane(&s->in, BS_SCHEDULER_TOLD, SIZE_MAX);

    while (n) {
        struct bs_node *next = n->next;

        bs_teller_answered(BS_CONTAINER(n, struct bs_teller, work.node), now);
        n = next;
    }
}

/* Returns when the next of them has to be told again. */
static struct bs_time tell_all(struct bs_scheduler *s, struct bs_time now)
{
    struct bs_time next = BS_NEVER;

    for (struct bs_feed *f = s->feeds; f; f = f->next)
        next = bs_time_min(next, bs_feed_tell(f, now));
    return next;
}

static bool wants(const struct bs_feed *f)
{
    return f->conf && !f->paused && !f->claim.out && !bs_feed_must_tell(f);
}

static struct bs_feed *after(const struct bs_scheduler *s, const struct bs_feed *f)
{
    return f->next ? f->next : s->feeds;
}

static void send_claims(struct bs_scheduler *s, struct bs_time now)
{
    bool sent = false;
    struct bs_feed *f = s->first;

    if (!f)
        return;
    do {
        bool ready = wants(f) && !bs_time_before(now, bs_feed_ready(f));
        uint32_t room = ready ? bs_feed_room(f) : 0;

        if (room > 0) {
            bs_claim_send(f, room, now);
            sent = true;
        }
        f = after(s, f);
    } while (f != s->first);
    if (sent)
        s->first = after(s, s->first);
}

static struct bs_time next_look(const struct bs_scheduler *s)
{
    struct bs_time next = BS_NEVER;

    for (const struct bs_feed *f = s->feeds; f; f = f->next)
        if (wants(f) && bs_feed_room(f) > 0)
            next = bs_time_min(next, bs_feed_ready(f));
    return next;
}

static struct bs_time scheduler_step(struct bs_actor *a, struct bs_time now)
{
    struct bs_scheduler *s = BS_CONTAINER(a, struct bs_scheduler, actor);
    struct bs_time deadline;

    struct bs_time tell_at;

    take_claims(s, now);
    take_notes(s, now);
    take_told(s, now);
    take_news(s, now);
    if (bs_engine_draining(s->engine, &deadline))
        return BS_NEVER;
    bs_feeds_sync(s, now);
    tell_at = tell_all(s, now);
    send_claims(s, now);
    return bs_time_min(next_look(s), tell_at);
}

/* Claim ids are unique over restarts: the node's name, an id of its own and chance. */
static void name_incarnation(struct bs_scheduler *s)
{
    const struct bs_engine_options *o = &s->engine->options;
    struct bs_rng rng = { o->seed };
    struct bs_str node = { o->node.p, BS_MIN(o->node.n, (size_t)48) };

    (void)snprintf(s->incarnation, sizeof(s->incarnation), "%.*s/%llx-%08x", BS_STR_FMT(node),
                   (unsigned long long)bs_ids_next(o->ids, bs_now(o->clock)),
                   (unsigned)bs_rng_next(&rng));
}

bs_rc bs_scheduler_init(struct bs_scheduler *s, struct bs_engine *e, struct bs_err *err)
{
    static const size_t caps[BS_SCHEDULER_LANES] = { SIZE_MAX, SIZE_MAX, SIZE_MAX, 1 };

    BS_TRY(bs_mailbox_init(&s->in, caps, BS_SCHEDULER_LANES, e->options.with_fd, err));
    s->engine = e;
    s->actor = (struct bs_actor){ .name = "scheduler", .step = scheduler_step, .in = &s->in };
    name_incarnation(s);
    return BS_OK;
}

static void free_jobs(struct bs_scheduler *s)
{
    while (s->all) {
        struct bs_job *next = s->all->all_next;

        bs_leased_free(s->all->leased);
        bs_buf_free(&s->all->body);
        free(s->all);
        s->all = next;
    }
}

static void free_feed(struct bs_feed *f)
{
    /* What a claim brought and nobody took over, if it ever was a claim. */
    if (f->claim.op.kind == BS_OP_CLAIM)
        bs_leased_free(f->claim.op.claim.ret_tasks);
    free(f);
}

void bs_scheduler_done(struct bs_scheduler *s)
{
    if (!s->actor.in)
        return;
    for (uint32_t lane = 0; lane < BS_SCHEDULER_LANES; lane++)
        (void)bs_mailbox_take_lane(&s->in, lane, SIZE_MAX);
    bs_mailbox_done(&s->in);
    free_jobs(s);
    while (s->feeds) {
        struct bs_feed *next = s->feeds->next;

        free_feed(s->feeds);
        s->feeds = next;
    }
    while (s->quotas) {
        struct bs_quota *next = s->quotas->next;

        free(s->quotas);
        s->quotas = next;
    }
}
