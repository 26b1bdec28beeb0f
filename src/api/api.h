/* Every /v1 route: who may, what it reads and writes, how it answers. Runs on the HTTP server's
 * thread; writes go to the committer, reads to the reader pool; nothing blocks here. */
#pragma once

#include "base/hist.h"
#include "core/queue.h"
#include "net/http.h"
#include "store/committer.h"
#include "sys/ids.h"

/* What this process sees of one configured queue, beside what the store keeps. */
struct bs_queue_live {
    char biz_type[33];
    uint32_t running;          /* executions in flight                                    */
    struct bs_time held_until; /* nothing is called before; 0 or past: not held           */
    bool breaker_open;         /* the breaker tripped; after held_until one task may try  */
    struct bs_time since;      /* when it tripped; 0: closed                              */
    uint32_t openings;         /* since the start                                         */
    char why[384];             /* of the last opening; may end within a character          */
    /* Live as long as the process; never NULL. */
    const struct bs_hist *calls;   /* to the handler                       */
    const struct bs_hist *waits;   /* from due to the start of the attempt */
    const struct bs_hist *settles; /* from acceptance to SUCCESS           */
};

struct bs_api_options {
    struct bs_queues_slot *queues;
    struct bs_committer *committer;
    const char *store_url; /* the reader pool opens its own handles */
    struct bs_clock *clock;
    struct bs_ids *ids;
    struct bs_str node;
    struct bs_span reply_limit; /* 0: 2 s */
    /* Effects outside the store after a commit; any thread. */
    void (*on_pause)(void *ctx, struct bs_str biz_type, bool paused);
    /* Appends more Prometheus text (engine, process). HTTP thread. May be NULL. */
    void (*metrics)(void *ctx, struct bs_buf *out);
    /* The configured queues, at most `max`; returns how many. Any thread. May be NULL. */
    uint32_t (*live)(void *ctx, struct bs_queue_live *ret, uint32_t max);
    /* Whether the whole server is ready (store well, not draining). Any thread. */
    bool (*ready)(void *ctx, const char **ret_why);
    void *ctx;
};

struct bs_api;
BS_NODISCARD bs_rc bs_api_new(const struct bs_api_options *o, struct bs_api **ret,
                              struct bs_err *err);
/* For struct bs_http_options. */
size_t bs_api_body_max(void *api, enum bs_method method, struct bs_str path);
bool bs_api_wants_body(void *api, struct bs_http_request *r);
void bs_api_handle(void *api, struct bs_http_request *r);
void bs_api_refuse(void *api, struct bs_http_request *r, int status);
/* After the HTTP server has stopped. */
void bs_api_free(struct bs_api *a);
