/* The age that max_age limits: the time in which a task could have run. Stops of a queue are read
 * once a transaction, however many of its tasks end in it. A task that was blocked or held while
 * its queue stood still as well has both subtracted: such a doubt gives it more time, never less.
 */
#include "base/plant.h"
#include "store/reading.h"

#include <stdio.h>

void stops_forget(struct bs_store *s)
{
    for (uint32_t i = 0; i < STOPS_QUEUES; i++)
        s->stops[i].loaded = false;
    bs_arena_free(&s->stops_memory);
}

static bs_rc add_span(struct growing *g, struct stop_span span, struct bs_err *err)
{
    struct stop_span *last = (struct stop_span *)(void *)g->items;

    if (g->n > 0 && span.from.us <= last[g->n - 1].to.us) {
        last[g->n - 1].to = bs_time_max(last[g->n - 1].to, span.to);
        return BS_OK;
    }
    struct stop_span *item = grow_one(g);
    if (!item)
        return bs_fail(err, BS_E_NOMEM, "no memory for the stops of a queue");
    *item = span;
    return BS_OK;
}

static bs_rc load(struct bs_store *s, struct stops *q, struct bs_str biz_type, struct bs_time since,
                  struct bs_err *err)
{
    struct growing g = { .a = &s->stops_memory, .size = sizeof(struct stop_span) };
    struct bs_val row[2];
    bool more = true;

    q->loaded = false;
    BS_TRY(RUN(s, BS_SQL_STOPS_SINCE, NULL, err, bs_text(biz_type), bs_i64(since.us)));
    for (;;) {
        BS_TRY(next(s, BS_SQL_STOPS_SINCE, row, 2, &more, err));
        if (!more)
            break;
        BS_TRY(add_span(&g, (struct stop_span){ { row[0].i }, { row[1].i } }, err));
    }
    snprintf(q->biz_type, sizeof(q->biz_type), "%.*s", BS_STR_FMT(biz_type));
    q->since = since;
    q->items = (struct stop_span *)(void *)g.items;
    q->n = g.n;
    q->loaded = true;
    return BS_OK;
}

static struct stops *place_of(struct bs_store *s, struct bs_str biz_type)
{
    for (uint32_t i = 0; i < STOPS_QUEUES; i++) {
        if (s->stops[i].loaded && bs_str_is(biz_type, s->stops[i].biz_type))
            return &s->stops[i];
    }
    struct stops *other = &s->stops[s->stops_next++ % STOPS_QUEUES];
    other->loaded = false;
    return other;
}

static bs_rc stops_of(struct bs_store *s, struct bs_str biz_type, struct bs_time since,
                      const struct stops **ret, struct bs_err *err)
{
    struct stops *q = place_of(s, biz_type);

    *ret = q;
    if (q->loaded && q->since.us <= since.us)
        return BS_OK;
    return load(s, q, biz_type, since, err);
}

/* How much of from … to the spans cover. */
static int64_t covered(const struct stops *q, struct bs_time from, struct bs_time to)
{
    int64_t sum = 0;

    if (BS_PLANT(MAX_AGE_COUNTS_STOPS))
        return 0;
    for (uint32_t i = q->n; i > 0 && q->items[i - 1].to.us > from.us; i--) {
        int64_t begin = BS_MAX(q->items[i - 1].from.us, from.us);
        int64_t end = BS_MIN(q->items[i - 1].to.us, to.us);

        sum += BS_MAX(end - begin, 0);
    }
    return sum;
}

bs_rc age_of(struct bs_store *s, const struct bs_task *t, struct bs_time now, struct bs_span *ret,
             struct bs_err *err)
{
    const struct stops *stops = NULL;
    struct bs_val row[2];
    bool found = false;

    *ret = BS_US(0);
    BS_TRY(ONE(s, BS_SQL_TASK_AGE, row, &found, err, bs_i64(t->id)));
    if (!found)
        return BS_OK;
    struct bs_time since = { row[0].i };
    int64_t idle_us = row[1].i;
    BS_TRY(stops_of(s, t->biz_type, since, &stops, err));
    int64_t age = bs_time_diff(now, since).us - idle_us - covered(stops, since, now);
    *ret = BS_US(BS_MAX(age, 0));
    return BS_OK;
}
