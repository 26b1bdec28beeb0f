/* A queue as the scheduler sees it: whether it is configured and running, how much room it has, how
 * far ahead it claims. */
#include "engine/parts.h"

#include "sys/log.h"

#include <stdlib.h>

enum { UNSETTLED_LEAST = 64, CLAIM_MOST = 256, SURE_PLACES = 4 };

const struct bs_span bs_claim_slack = { 200000 };

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
    pthread_mutex_lock(&s->engine->mutex); /* others walk along the list */
    *end = f;
    pthread_mutex_unlock(&s->engine->mutex);
    if (!s->first)
        s->first = f;
    return f;
}

/* ---- the hosts that it calls ---- */

static struct bs_quota *quota_of(struct bs_scheduler *s, struct bs_str name)
{
    for (struct bs_quota *q = s->quotas; q; q = q->next)
        if (bs_str_eq(q->name, name))
            return q;
    struct bs_quota *q = name.n ? calloc(1, sizeof(*q) + name.n) : NULL;
    if (!q)
        return NULL;
    memcpy(q + 1, name.p, name.n);
    q->name = (struct bs_str){ (const char *)(q + 1), name.n };
    q->next = s->quotas;
    s->quotas = q;
    return q;
}

void bs_feed_take(struct bs_feed *f, int32_t n)
{
    for (uint32_t i = 0; i < BS_ENDPOINT_COUNT; i++)
        if (f->quotas[i])
            f->quotas[i]->taken += (uint32_t)n;
}

static void sync_quotas(struct bs_feed *f)
{
    struct bs_scheduler *s = f->scheduler;
    int32_t held = (int32_t)(f->claimed + (f->claim.out ? f->claim.op.claim.limit : 0));
    struct bs_quota *handler = quota_of(s, f->conf->handler_host);
    struct bs_quota *look = quota_of(s, f->conf->look_host);

    bs_feed_take(f, -held);
    f->quotas[BS_ENDPOINT_HANDLER] = handler;
    f->quotas[BS_ENDPOINT_LOOK] = look == handler ? NULL : look;
    bs_feed_take(f, held);
}

static void sync_limits(struct bs_scheduler *s, const struct bs_queues *conf)
{
    for (struct bs_quota *q = s->quotas; q; q = q->next) {
        const struct bs_host_conf *host = bs_host_find(conf, q->name);

        q->limit = host ? host->concurrency : 0;
    }
}

static bool sync_one(struct bs_scheduler *s, const struct bs_queue_conf *conf, struct bs_time now)
{
    struct bs_feed *f = find_feed(s, conf->biz_type);

    if (!f)
        f = add_feed(s, conf->biz_type, now);
    if (!f)
        return false;
    f->conf = conf;
    atomic_store(&f->configured, true);
    sync_quotas(f);
    f->next_look = bs_time_min(f->next_look, now);
    return true;
}

void bs_feeds_sync(struct bs_scheduler *s, struct bs_time now)
{
    const struct bs_queues *q = bs_queues_now(s->engine->options.queues);
    bool all = true;

    if (q == s->seen || !q)
        return;
    for (struct bs_feed *f = s->feeds; f; f = f->next) {
        f->conf = NULL;
        atomic_store(&f->configured, bs_queue_find(q, f->biz_type) != NULL);
    }
    for (uint32_t i = 0; i < q->n; i++)
        all &= sync_one(s, &q->items[i], now);
    sync_limits(s, q);
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

void bs_feeds_gates(struct bs_scheduler *s, struct bs_time now)
{
    pthread_mutex_lock(&s->engine->mutex);
    for (struct bs_feed *f = s->feeds; f && s->gates_seen != s->engine->gates_told; f = f->next) {
        bool opens = f->gate.until.us > now.us && f->line.told.until.us <= now.us;

        if (opens)
            f->next_look = bs_time_min(f->next_look, now);
        f->gate = f->line.told;
    }
    s->gates_seen = s->engine->gates_told;
    pthread_mutex_unlock(&s->engine->mutex);
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

/* Calls that are quick need a stock, as in a queue; its limit is for what runs. */
static uint32_t room_at_hosts(const struct bs_feed *f, uint32_t used)
{
    uint32_t room = UINT32_MAX;

    for (uint32_t i = 0; i < BS_ENDPOINT_COUNT; i++) {
        const struct bs_quota *q = f->quotas[i];

        if (q && q->limit > 0)
            room = BS_MIN(room, less(used > 0 ? 2 * q->limit : q->limit, q->taken));
    }
    return room;
}

/* Queues whose calls hang may hold all of the places there are; the others get a few even then. */
static uint32_t room_of_all(const struct bs_feed *f)
{
    const struct bs_scheduler *s = f->scheduler;
    uint32_t calls_max = s->engine->options.calls_max;
    uint32_t room =
        BS_MIN(less(calls_max, s->claimed + s->asked), less(2 * calls_max, s->held + s->asked));

    return BS_MAX(room, less(BS_MIN((uint32_t)SURE_PLACES, calls_max / 4), f->held));
}

uint32_t bs_feed_room(const struct bs_feed *f)
{
    uint32_t concurrency = f->conf->concurrency;
    uint32_t used = used_meanwhile(f);
    /* The next claim leaves only when this one is back: a stock of twice what is used meanwhile. */
    uint32_t most = concurrency + BS_MIN(3 * used, 4 * concurrency);
    uint32_t held_max = BS_MAX(8 * concurrency, (uint32_t)UNSETTLED_LEAST);
    uint32_t room = less(most, f->claimed);

    if (f->gate.probing)
        return f->held == 0 ? 1 : 0;
    /* Not while enough is here, and not for every single task of a stock: fewer, larger claims. */
    if (used > 0 && f->claimed > concurrency &&
        (f->claimed - concurrency > used || room < concurrency / 8))
        return 0;
    room = BS_MIN(room, less(held_max, f->held));
    room = BS_MIN(room, room_at_hosts(f, used));
    room = BS_MIN(room, room_of_all(f));
    return BS_MIN(room, (uint32_t)CLAIM_MOST);
}

struct bs_time bs_feed_ready(const struct bs_feed *f)
{
    struct bs_time when = bs_time_max(f->next_look, f->gate.until);

    return bs_time_max(when, bs_pace_when(&f->pace, &f->conf->rate, bs_claim_slack));
}

void bs_feed_ended(struct bs_feed *f, const struct bs_job *job)
{
    BS_ASSERT(f->claimed > 0);
    BS_ASSERT(f->scheduler->claimed > 0);
    f->claimed--;
    f->scheduler->claimed--;
    bs_feed_take(f, -1);
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
