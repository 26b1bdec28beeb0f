/* The alert actor: judges the figures, ends what is over, tells the receivers, and gives a sign of
 * life. It only reads the store through a handle of its own; every change is an operation for the
 * committer, so a restart goes on where it was. One thread; the functions below say otherwise. */
#pragma once

#include "core/queue.h"
#include "net/caller.h"
#include "store/committer.h"
#include "sys/actor.h"
#include "sys/ids.h"

/* A queue whose breaker is open. */
struct bs_alert_gate {
    char biz_type[33];
    struct bs_time since;
    char why[300];
};

struct bs_alerts_options {
    struct bs_queues_slot *queues;
    struct bs_committer *committer;
    struct bs_store *reader;  /* taken over */
    struct bs_caller *caller; /* taken over */
    struct bs_clock *clock;
    struct bs_ids *ids;
    struct bs_str node;
    uint64_t seed; /* for jitter */
    bool with_fd;
    /* The open breakers; NULL: nobody knows, and alerts about them are left alone. */
    uint32_t (*gates)(void *ctx, struct bs_alert_gate *ret, uint32_t max);
    /* Whether the process may give a sign of life; NULL: always. */
    bool (*ready)(void *ctx);
    void *ctx;
};

struct bs_alerts;
/* On failure reader and caller are still the caller's. */
BS_NODISCARD bs_rc bs_alerts_new(const struct bs_alerts_options *o, struct bs_alerts **ret,
                                 struct bs_err *err);
struct bs_actor *bs_alerts_actor(struct bs_alerts *a);
/* The slot has another snapshot: looks at it at once rather than within a second. Any thread. */
void bs_alerts_reload(struct bs_alerts *a);
/* For the committer's on_health. Any thread. */
void bs_alerts_store_health(struct bs_alerts *a, bool healthy, const struct bs_err *err);
/* Prometheus text. Any thread. */
void bs_alerts_metrics(struct bs_alerts *a, struct bs_buf *out);
/* After its thread has ended: closes its handle of the store, so that the writer's is the last. */
void bs_alerts_quiet(struct bs_alerts *a);
/* After its thread has ended, and after bs_committer_free, which answers what is still there. */
void bs_alerts_free(struct bs_alerts *a);
