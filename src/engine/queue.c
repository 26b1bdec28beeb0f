/* A queue as the scheduler sees it: whether it is configured and running, how much room it has, how
 * far ahead it claims. */
#include "engine/parts.h"

#include "sys/log.h"

#include <stdlib.h>

enum { UNSETTLED_LEAST = 64, CLAIM_MOST = 256 };

/* Calls that take longer need no stock: the claim is quick beside them. */
static const int64_t prefetch_busy_max_us = 100000;

static struct bs_feed *find_feed(struct bs_scheduler *s, struct bs_str biz_type)
{
    for (struct bs_feed *f = s->feeds; f; f = f->next)
        if (bs_str_eq(f->biz_type, biz_type))
            return f;
    return NULL;
}

static struct bs_feed *add_feed(struct bs_scheduler *s, struct bs_str biz_type, struct bs_time now)
{
    struct bs_feed *f = calloc(1, sizeof(*f));
    struct bs_feed **end = &s->feeds;

    if (!f)
        return NULL;
    f->scheduler = s;
    f->biz_type = biz_type;
    f->line.biz_type = biz_type;
    f->next_look = now;
    f->hinted = BS_NEVER;
    f->paused = bs_engine_paused(s->engine, biz_type);
    while (*end)
        end = &(*end)->next;
    *end = f;
    if (!s->first)
        s->first = f;
    return f;
}

static bool sync_one(struct bs_scheduler *s, const struct bs_queue_conf *conf, struct bs_time now)
{
    struct bs_feed *f = find_feed(s, conf->biz_type);

    if (!f)
        f = add_feed(s, conf->biz_type, now);
    if (!f)
        return false;
    f->conf = conf;
    f->next_look = bs_time_min(f->next_look, now);
    return true;
}

void bs_feeds_sync(struct bs_scheduler *s, struct bs_time now)
{
    const struct bs_queues *q = bs_queues_now(s->engine->options.queues);
    bool all = true;

    if (q == s->seen || !q)
        return;
    for (struct bs_feed *f = s->feeds; f; f = f->next)
        f->conf = NULL;
    for (uint32_t i = 0; i < q->n; i++)
        all &= sync_one(s, &q->items[i], now);
    /* Without memory for a new queue the next step tries again; the others go on. */
    s->seen = all ? q : NULL;
}

void bs_feeds_pause(struct bs_scheduler *s, struct bs_time now)
{
    for (struct bs_feed *f = s->feeds; f; f = f->next) {
        bool paused = bs_engine_paused(s->engine, f->biz_type);

        if (f->paused && !paused)
            f->next_look = bs_time_min(f->next_look, now);
        f->paused = paused;
    }
}

static void hint(struct bs_feed *f, struct bs_time due)
{
    f->next_look = bs_time_min(f->next_look, due);
    /* The claim that is out may have looked before this was there. */
    if (f->claim.out)
        f->hinted = bs_time_min(f->hinted, due);
}

void bs_feeds_hint(struct bs_scheduler *s, const struct bs_hints *hints)
{
    for (uint32_t i = 0; i < hints->n; i++) {
        struct bs_feed *f = find_feed(s, bs_str_of(hints->items[i].biz_type));

        if (f)
            hint(f, hints->items[i].due);
    }
    for (struct bs_feed *f = s->feeds; hints->overflowed && f; f = f->next)
        hint(f, BS_TIME_NONE);
}

/* How many calls end while a claim is on its way; 0 when calls are slow beside it. */
static uint32_t used_meanwhile(const struct bs_feed *f)
{
    if (f->busy_us <= 0 || f->busy_us > prefetch_busy_max_us)
        return 0;
    int64_t n = f->claim_us * (int64_t)f->conf->concurrency / f->busy_us;
    return (uint32_t)BS_MIN(n, (int64_t)UINT32_MAX / 2);
}

static uint32_t less(uint32_t from, uint32_t taken)
{
    return from > taken ? from - taken : 0;
}

uint32_t bs_feed_room(const struct bs_feed *f)
{
    const struct bs_scheduler *s = f->scheduler;
    uint32_t calls_max = s->engine->options.calls_max;
    uint32_t concurrency = f->conf->concurrency;
    uint32_t used = used_meanwhile(f);
    /* The next claim leaves only when this one is back: a stock of twice what is used meanwhile. */
    uint32_t most = concurrency + BS_MIN(3 * used, 4 * concurrency);
    uint32_t held_max = BS_MAX(8 * concurrency, (uint32_t)UNSETTLED_LEAST);
    uint32_t room = less(most, f->claimed);

    /* Not while enough is here, and not for every single task of a stock: fewer, larger claims. */
    if (used > 0 && f->claimed > concurrency &&
        (f->claimed - concurrency > used || room < concurrency / 8))
        return 0;
    room = BS_MIN(room, less(held_max, f->held));
    room = BS_MIN(room, less(calls_max, s->claimed + s->asked));
    room = BS_MIN(room, less(2 * calls_max, s->held + s->asked));
    return BS_MIN(room, (uint32_t)CLAIM_MOST);
}

void bs_feed_ended(struct bs_feed *f, const struct bs_job *job)
{
    BS_ASSERT(f->claimed > 0);
    BS_ASSERT(f->scheduler->claimed > 0);
    f->claimed--;
    f->scheduler->claimed--;
    if (job->busy_us == 0)
        return;
    f->busy_us = f->busy_us ? f->busy_us + (job->busy_us - f->busy_us) / 8 : job->busy_us;
}

void bs_feed_freed(struct bs_feed *f, struct bs_job *job, struct bs_time now)
{
    struct bs_scheduler *s = f->scheduler;

    BS_ASSERT(f->held > 0);
    BS_ASSERT(s->held > 0);
    f->held--;
    s->held--;
    if (job->suspect) {
        s->suspect = false;
        for (struct bs_feed *other = s->feeds; other; other = other->next)
            hint(other, now);
    }
    job->suspect = false;
    job->stage = BS_STAGE_FREE;
    job->next = s->pool;
    s->pool = job;
}
