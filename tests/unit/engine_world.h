/* A small world for the engine's actors: a real store on a temporary file behind the fault
 * injector, the real committer, a scripted shop instead of the network, one clock that stands until
 * it is moved. Everything on one thread, so that each run is the same. */
#pragma once

#include "core_test.h"

#include "db/faulty.h"
#include "engine/engine.h"

enum { SIGHTS_MAX = 8192, LINES_MAX = 64, QUEUES_MAX = 4 };

/* One rule of the shop; the first that matches and has times left is used. */
struct line {
    const char *match; /* part of "METHOD url\nIdempotency-Key" */
    int64_t after_us;
    enum bs_wire wire;
    bool unsent;
    int status;
    const char *body;
    int64_t retry_after_s;
    uint32_t times; /* 0: for ever */
    uint32_t used;
};

/* One request as the shop saw it. */
struct sight {
    char method[8];
    char url[256];
    char key[129];
    char attempt[16];
    int64_t fence;
    struct bs_time from, to; /* to is 0 while it runs */
    struct bs_span timeout;
    char *body;
    bool cancelled;
};

struct fake {
    struct bs_caller base;
    struct bs_call *running, *ended;
    uint32_t running_n, running_max;
};

struct world {
    char dir[64], path[96], url[128];
    struct bs_clock_manual clock;
    struct bs_ids ids;
    struct bs_queue_conf confs[QUEUES_MAX];
    struct bs_queues queues;
    struct bs_queues_slot slot;
    struct bs_db *db; /* the fault injector */
    struct bs_committer *committer;
    struct bs_engine *engine;
    struct fake *fake;
    struct line lines[LINES_MAX];
    uint32_t lines_n;
    struct sight *sights;
    uint32_t sights_n;
    int64_t commit_us; /* how long a commit takes */
    struct bs_time commit_at;
    uint32_t calls_max;
    size_t lane_cap; /* of the committer; 0: the default */
    struct bs_span orphans_after;
    uint64_t seed;
    const char *biz_type; /* of what is submitted next */
    uint32_t unanswered;
};

/* One queue PAY_CALLBACK without a look-up: 10 s calls, 60 s lease, concurrency 4. */
struct world *world_new(void);
void world_free(struct world *w);
void world_start(struct world *w);
/* As kill -9: nothing is told to anybody. */
void world_crash(struct world *w);
struct bs_time world_now(struct world *w);
/* Steps everybody until nothing happens before now + us. */
void world_run(struct world *w, int64_t us);
/* Steps until the engine is idle, at most so long; the test fails otherwise. */
void world_settle(struct world *w, int64_t us);
/* So many turns of everybody. */
void world_turns(struct world *w, uint32_t n);
/* A rule of the shop, behind those there are. */
void world_says(struct world *w, struct line line);
/* Gives PAY_CALLBACK a look-up at /orders/{order_no}. */
void world_looks(struct world *w);
/* One more queue like the first, at http://host/biz_type; names in byte order. Before the start. */
void world_adds(struct world *w, const char *biz_type, const char *host);
/* Submits and commits; the members after request_id as JSON, beginning with a comma. */
int64_t world_submit(struct world *w, const char *request_id, const char *more);
/* A task's row now. The arena keeps it. */
struct bs_task world_task(struct world *w, int64_t id, struct bs_arena *a);
/* How many requests the shop saw of this method (NULL: any) for this key (NULL: any). */
uint32_t world_seen(struct world *w, const char *method, const char *key);
/* One operation through the committer, right now. */
bs_rc world_apply(struct world *w, struct bs_op *op);
