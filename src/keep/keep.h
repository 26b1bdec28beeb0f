/* The maintenance actor: keeps the write-ahead log of the store small, with a reader handle of its
 * own beside the writer; moves finished tasks to history and from there away, in small slices
 * through the committer, one at a time, so that nobody waits for them. Never changes what is open
 * or in MANUAL. Its own thread, or the simulator's. */
#pragma once

#include "core/queue.h"
#include "store/committer.h"
#include "sys/ids.h"

struct bs_keep_options {
    struct bs_queues_slot *queues; /* history: how long; looked at anew for every slice */
    struct bs_committer *committer;
    struct bs_clock *clock;
    struct bs_ids *ids;
    const char *store_url;  /* for checkpoints; NULL: none are made (the simulator) */
    const char *store_path; /* the file beside which the log stands; with store_url */
    bool with_fd;           /* false in the simulator */
};

struct bs_keep;
BS_NODISCARD bs_rc bs_keep_new(const struct bs_keep_options *o, struct bs_keep **ret,
                               struct bs_err *err);
struct bs_actor *bs_keep_actor(struct bs_keep *k);

/* For metrics. Any thread. */
struct bs_keep_figures {
    uint64_t archived, purged; /* tasks, since the start                       */
    uint64_t passes;           /* whole ones                                   */
    struct bs_time last_pass;  /* when the last whole one ended; 0: none yet   */
    uint64_t checkpoints;
    int64_t wal_bytes; /* of the log, when last looked at */
};
void bs_keep_figures(struct bs_keep *k, struct bs_keep_figures *ret);

/* After its thread has ended and before the committer is freed: lets go of the store. A slice may
 * still be on its way. Safe on NULL. */
void bs_keep_quiet(struct bs_keep *k);
/* After the committer is freed. Safe on NULL. */
void bs_keep_free(struct bs_keep *k);
