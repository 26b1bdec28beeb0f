/* The inside of a server, shared by the files that start, reload and measure it. */
#pragma once

#include "alert/alert.h"
#include "api/api.h"
#include "app/server.h"
#include "engine/engine.h"
#include "keep/keep.h"
#include "net/caller.h"
#include "net/http.h"
#include "store/committer.h"

#include <stdatomic.h>

enum {
    BS_CONFIGS_MAX = 1000
}; /* reloads of one process; old ones stay because they are borrowed */

struct bs_server {
    struct bs_arena arena;
    struct bs_config *configs[BS_CONFIGS_MAX]; /* the last one holds */
    uint32_t configs_n;
    const char *file; /* as given; NULL: searched */
    bool log_json;

    struct bs_clock *clock;
    struct bs_ids ids;
    struct bs_queues_slot queues;
    struct bs_committer *committer;
    struct bs_engine *engine;
    struct bs_api *api;
    struct bs_http_server *http;
    struct bs_store *reader; /* the main thread's */
    struct bs_keep *keep;
    struct bs_thread committer_thread, scheduler_thread, executor_thread, reaper_thread,
        keep_thread, alert_thread;

    /* Hints of commits go to the engine once it is there. */
    _Atomic(struct bs_engine *) hinted;
    /* The health of the store goes to it once it is there. */
    _Atomic(struct bs_alerts *) watch;
    _Atomic bool serving;  /* everything runs             */
    _Atomic bool draining; /* it is about to end          */
    int64_t started_us;    /* boot-time clock             */
    int64_t give_up_us;    /* boot-time clock, of a drain */
    struct bs_work alerts; /* of the start                */
};

static inline struct bs_config *bs_server_config(const struct bs_server *s)
{
    return s->configs[s->configs_n - 1];
}

/* Queues that have open tasks but no place in `now`: the name of the first, or none. Only queues of
 * `before` count unless it is NULL. */
struct bs_orphan {
    struct bs_str biz_type;
    int64_t count;
};
BS_NODISCARD bs_rc bs_server_orphans(struct bs_server *s, const struct bs_queues *before,
                                     const struct bs_queues *now, struct bs_arena *a,
                                     struct bs_orphan **ret, uint32_t *ret_n, struct bs_err *err);
/* Raises an alert for every queue that the file does not name although tasks wait in it. */
void bs_server_alert_orphans(struct bs_server *s);
/* The alert actor and its thread. */
BS_NODISCARD bs_rc bs_server_start_alerts(struct bs_server *s, uint64_t seed, struct bs_err *err);
/* For struct bs_api_options. */
void bs_server_metrics(void *ctx, struct bs_buf *out);
uint32_t bs_server_live(void *ctx, struct bs_queue_live *ret, uint32_t max);
