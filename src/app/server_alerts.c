/* The alert actor in this process: what it is told of the engine and of the store. */
#include "app/server_parts.h"

#include <stdio.h>
#include <stdlib.h>

enum { CONNECTIONS_MAX = 16 };

/* The breakers that are open now. */
static uint32_t gates(void *ctx, struct bs_alert_gate *ret, uint32_t max)
{
    struct bs_server *s = ctx;
    uint32_t all = bs_queues_now(&s->queues)->n, n = 0;
    struct bs_engine_queue *queues = calloc(all + 1, sizeof(*queues));

    if (!queues)
        return 0;
    all = bs_engine_queues(s->engine, queues, all);
    for (uint32_t i = 0; i < all && n < max; i++) {
        struct bs_alert_gate *g = &ret[n];

        if (!queues[i].breaker_open)
            continue;
        memcpy(g->biz_type, queues[i].biz_type, sizeof(g->biz_type));
        (void)snprintf(g->why, sizeof(g->why), "%.299s", queues[i].why);
        g->since = queues[i].since;
        n++;
    }
    free(queues);
    return n;
}

static bool ready(void *ctx)
{
    struct bs_server *s = ctx;

    return atomic_load(&s->serving) && !atomic_load(&s->draining);
}

bs_rc bs_server_start_alerts(struct bs_server *s, uint64_t seed, struct bs_err *err)
{
    const struct bs_config *c = bs_server_config(s);
    struct bs_store_options reader = { .url = c->store_url, .mode = BS_STORE_READER };
    struct bs_curl_options curl = { .clock = s->clock, .connections_max = CONNECTIONS_MAX };
    struct bs_alerts *alerts = NULL;
    struct bs_alerts_options o = {
        .queues = &s->queues,
        .committer = s->committer,
        .clock = s->clock,
        .ids = &s->ids,
        .node = bs_str_of(c->node),
        .seed = seed,
        .with_fd = true,
        .gates = gates,
        .ready = ready,
        .ctx = s,
    };

    BS_TRY(bs_store_open(&reader, &o.reader, err));
    if (bs_curl_new(&curl, &o.caller, err) != BS_OK) {
        bs_store_close(o.reader);
        return err->rc;
    }
    if (bs_alerts_new(&o, &alerts, err) != BS_OK) {
        o.caller->ops->free(o.caller);
        bs_store_close(o.reader);
        return err->rc;
    }
    atomic_store(&s->watch, alerts);
    return bs_thread_start(&s->alert_thread, bs_alerts_actor(alerts), s->clock, err);
}
