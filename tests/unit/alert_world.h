/* A small world for the alert actor: a real store behind the fault injector, the real committer, a
 * scripted receiver instead of the network, one clock that stands until it is moved, one thread. */
#pragma once

#include "core_test.h"

#include "alert/alert.h"
#include "db/faulty.h"

enum { POSTS_MAX = 2048 };

/* One request as the receiver saw it. */
struct post {
    struct bs_time at;
    char url[64], id[80], timestamp[32], signature[128];
    char *body;
    int status;
};

struct world {
    char dir[64], path[96], url[128];
    struct bs_clock_manual clock;
    struct bs_ids ids;
    struct bs_queue_conf conf;
    struct bs_alert_webhook hooks[2];
    struct bs_alert_conf alerts;
    struct bs_queues queues;
    struct bs_queues_slot slot;
    struct bs_db *db;
    struct bs_committer *committer;
    struct bs_alerts *actor;
    struct post posts[POSTS_MAX];
    uint32_t posts_n;
    int status;        /* what the receiver answers; 0: nobody is there */
    int64_t takes_us;  /* how long a request takes                      */
    bool breaker_open; /* what the engine says                          */
    bool ready;
    uint32_t submitted;
};

/* One queue PAY: oldest_due 5 min, backlog 100; one receiver "ops"; check_every 10 s, group_wait
 * 5 s, quiet 10 min. */
struct world *world_new(void);
void world_start(struct world *w);
/* As kill -9. */
void world_crash(struct world *w);
void world_free(struct world *w);
/* Steps everybody for so many seconds. */
void world_run(struct world *w, int64_t seconds);
bs_rc world_apply(struct world *w, struct bs_op *op);
struct bs_op world_op(struct world *w, enum bs_op_kind kind);
void world_submit(struct world *w, uint32_t n);
/* Claims and finishes up to n due tasks. */
void world_work_off(struct world *w, uint32_t n);
/* An event of this kind. */
void world_event(struct world *w, const char *kind);
/* "raised kind subject\n" of every alert that the receiver took (2xx), in order. */
const char *world_heard(struct world *w);
/* "kind open|ended: deliverer phase state attempts, …" of all alerts, oldest first. */
const char *world_rows(struct world *w);
