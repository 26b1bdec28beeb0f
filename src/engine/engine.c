/* The engine as a whole: its birth and end, and what other threads may ask of it. */
#include "engine/parts.h"

#include "sys/log.h"

#include <stdlib.h>

enum { CALLS_MAX_DEFAULT = 1024, PAUSED_MAX = 4096 };

static const int64_t not_draining = INT64_MIN;

static void set_defaults(struct bs_engine *e)
{
    if (e->options.calls_max == 0)
        e->options.calls_max = CALLS_MAX_DEFAULT;
    if (e->options.orphans_after.us <= 0)
        e->options.orphans_after = BS_SEC(300);
    e->hints.n = 0;
    atomic_store(&e->drain_at, not_draining);
}

bs_rc bs_engine_new(const struct bs_engine_options *o, struct bs_engine **ret, struct bs_err *err)
{
    BS_ASSERT(o->queues && o->committer && o->caller);
    BS_ASSERT(o->clock && o->ids);
    struct bs_engine *e = calloc(1, sizeof(*e));

    if (!e)
        return bs_fail(err, BS_E_NOMEM, "no memory for the engine");
    e->options = *o;
    set_defaults(e);
    if (pthread_mutex_init(&e->mutex, NULL) != 0) {
        free(e);
        return bs_fail(err, BS_E_UNAVAILABLE, "no mutex for the engine");
    }
    bs_rc rc = bs_scheduler_init(&e->scheduler, e, err);
    if (rc == BS_OK)
        rc = bs_executor_init(&e->executor, e, err);
    if (rc == BS_OK)
        rc = bs_reaper_init(&e->reaper, e, err);
    if (rc != BS_OK) {
        e->executor.caller = NULL;
        bs_engine_free(e);
        return rc;
    }
    *ret = e;
    return BS_OK;
}

void bs_engine_free(struct bs_engine *e)
{
    if (!e)
        return;
    /* The committer is freed first: a work that is still with it would come back to nothing. */
    BS_ASSERT(atomic_load(&e->works) == 0);
    bs_executor_done(&e->executor);
    bs_reaper_done(&e->reaper);
    bs_scheduler_done(&e->scheduler);
    while (e->paused) {
        struct bs_paused *next = e->paused->next;

        free(e->paused);
        e->paused = next;
    }
    pthread_mutex_destroy(&e->mutex);
    free(e);
}

struct bs_actor *bs_engine_scheduler(struct bs_engine *e)
{
    return &e->scheduler.actor;
}

struct bs_actor *bs_engine_executor(struct bs_engine *e)
{
    return &e->executor.actor;
}

struct bs_actor *bs_engine_reaper(struct bs_engine *e)
{
    return &e->reaper.actor;
}

/* With the mutex held. One node an actor: news that come before it looks are merged. */
static void post(struct bs_news *news, struct bs_mailbox *to, uint32_t lane)
{
    if (!news->posted)
        news->posted = bs_mailbox_send(to, lane, &news->node);
}

static void post_scheduler(struct bs_engine *e)
{
    post(&e->scheduler_news, &e->scheduler.in, BS_SCHEDULER_NEWS);
}

static void post_executor(struct bs_engine *e)
{
    post(&e->executor_news, &e->executor.in, BS_EXECUTOR_NEWS);
}

static void merge_hint(struct bs_hints *into, const struct bs_hint *h)
{
    for (uint32_t i = 0; i < into->n; i++) {
        if (strcmp(into->items[i].biz_type, h->biz_type) == 0) {
            into->items[i].due = bs_time_min(into->items[i].due, h->due);
            return;
        }
    }
    if (into->n < BS_COUNT(into->items))
        into->items[into->n++] = *h;
    else
        into->overflowed = true;
}

void bs_engine_hints(void *engine, const struct bs_hints *hints)
{
    struct bs_engine *e = engine;

    if (hints->n == 0 && !hints->overflowed)
        return;
    pthread_mutex_lock(&e->mutex);
    for (uint32_t i = 0; i < hints->n; i++)
        merge_hint(&e->hints, &hints->items[i]);
    e->hints.overflowed |= hints->overflowed;
    post_scheduler(e);
    pthread_mutex_unlock(&e->mutex);
}

void bs_engine_take_hints(struct bs_engine *e, struct bs_hints *ret)
{
    pthread_mutex_lock(&e->mutex);
    e->scheduler_news.posted = false;
    *ret = e->hints;
    e->hints.n = 0;
    e->hints.overflowed = false;
    pthread_mutex_unlock(&e->mutex);
}

void bs_engine_take_news(struct bs_engine *e, struct bs_news *news)
{
    pthread_mutex_lock(&e->mutex);
    news->posted = false;
    pthread_mutex_unlock(&e->mutex);
}

static struct bs_paused *find_paused(struct bs_engine *e, struct bs_str biz_type)
{
    for (struct bs_paused *p = e->paused; p; p = p->next)
        if (bs_str_is(biz_type, p->biz_type))
            return p;
    return NULL;
}

static struct bs_paused *add_paused(struct bs_engine *e, struct bs_str biz_type)
{
    struct bs_paused *p = NULL;

    if (e->paused_n < PAUSED_MAX && biz_type.n < sizeof(p->biz_type))
        p = calloc(1, sizeof(*p));
    if (!p)
        return NULL;
    memcpy(p->biz_type, biz_type.p, biz_type.n);
    p->next = e->paused;
    e->paused = p;
    e->paused_n++;
    return p;
}

void bs_engine_pause(struct bs_engine *e, struct bs_str biz_type, bool paused)
{
    pthread_mutex_lock(&e->mutex);
    struct bs_paused *p = find_paused(e, biz_type);

    if (!p && paused)
        p = add_paused(e, biz_type);
    if (p)
        p->paused = paused;
    post_scheduler(e);
    post_executor(e);
    pthread_mutex_unlock(&e->mutex);
    if (!p && paused)
        bs_log(BS_LOG_ERROR, "queue.pause_lost", BS_F("biz_type", biz_type));
}

bool bs_engine_paused(struct bs_engine *e, struct bs_str biz_type)
{
    pthread_mutex_lock(&e->mutex);
    const struct bs_paused *p = find_paused(e, biz_type);
    bool paused = p && p->paused;

    pthread_mutex_unlock(&e->mutex);
    return paused;
}

void bs_engine_reload(struct bs_engine *e)
{
    pthread_mutex_lock(&e->mutex);
    post_scheduler(e);
    post_executor(e);
    pthread_mutex_unlock(&e->mutex);
}

void bs_engine_tell_gate(struct bs_engine *e, struct bs_line *line)
{
    pthread_mutex_lock(&e->mutex);
    line->told = line->gate;
    e->gates_told++;
    post_scheduler(e);
    pthread_mutex_unlock(&e->mutex);
}

static void describe(const struct bs_feed *f, struct bs_engine_queue *ret)
{
    const struct bs_line *line = &f->line;

    *ret = (struct bs_engine_queue){ .running = atomic_load(&line->shown_running),
                                     .until = line->told.until,
                                     .breaker_open = line->told.probing,
                                     .since = line->told.since,
                                     .openings = line->told.openings,
                                     .calls = &line->calls,
                                     .waits = &line->waits,
                                     .ends = &line->ends };
    memcpy(ret->biz_type, f->biz_type.p, BS_MIN(f->biz_type.n, sizeof(ret->biz_type) - 1));
    memcpy(ret->why, line->told.why, sizeof(ret->why));
}

uint32_t bs_engine_queues(struct bs_engine *e, struct bs_engine_queue *ret, uint32_t max)
{
    uint32_t n = 0;

    pthread_mutex_lock(&e->mutex);
    for (const struct bs_feed *f = e->scheduler.feeds; f && n < max; f = f->next)
        if (atomic_load(&f->configured))
            describe(f, &ret[n++]);
    pthread_mutex_unlock(&e->mutex);
    return n;
}

void bs_engine_drain(struct bs_engine *e, struct bs_time deadline)
{
    pthread_mutex_lock(&e->mutex);
    atomic_store(&e->drain_at, BS_MAX(deadline.us, (int64_t)0));
    post_scheduler(e);
    post_executor(e);
    pthread_mutex_unlock(&e->mutex);
}

bool bs_engine_draining(const struct bs_engine *e, struct bs_time *ret_deadline)
{
    int64_t at = atomic_load(&e->drain_at);

    if (at == not_draining)
        return false;
    ret_deadline->us = at;
    return true;
}

bool bs_engine_idle(struct bs_engine *e)
{
    return atomic_load(&e->busy) == 0;
}

bool bs_engine_send(struct bs_engine *e, struct bs_work *w)
{
    atomic_fetch_add(&e->works, 1);
    if (bs_committer_send(e->options.committer, w))
        return true;
    atomic_fetch_sub(&e->works, 1);
    return false;
}

void bs_engine_answered(struct bs_engine *e, struct bs_mailbox *to, uint32_t lane,
                        struct bs_node *node)
{
    /* The lanes for answers have no limit of their own: what can come is bounded by what was sent.
     */
    bool taken = bs_mailbox_send(to, lane, node);

    BS_ASSERT(taken);
    atomic_fetch_sub(&e->works, 1);
}

void bs_engine_figures(struct bs_engine *e, struct bs_engine_figures *ret)
{
    *ret = (struct bs_engine_figures){
        .claims = atomic_load(&e->figures.claims),
        .calls = atomic_load(&e->figures.calls),
        .looks = atomic_load(&e->figures.looks),
        .stale = atomic_load(&e->figures.stale),
        .released = atomic_load(&e->figures.released),
        .running = atomic_load(&e->figures.running),
        .leased = atomic_load(&e->figures.leased),
        .call_us_sum = atomic_load(&e->figures.call_us_sum),
    };
    for (uint32_t i = 0; i < BS_OUTCOME_COUNT; i++)
        ret->settled[i] = atomic_load(&e->figures.settled[i]);
}
