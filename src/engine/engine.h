/* The engine's three actors. Scheduler: queue by queue, claims what is due while there is room.
 * Executor: look first, call, settle. Reaper: takes back leases that ran out. They share mailboxes
 * and nothing else; each runs on its own thread or is stepped by the simulator. */
#pragma once

#include "base/hist.h"
#include "core/queue.h"
#include "net/caller.h"
#include "store/committer.h"
#include "sys/actor.h"
#include "sys/ids.h"

struct bs_engine_options {
    struct bs_queues_slot *queues;
    struct bs_committer *committer;
    struct bs_caller *caller; /* taken over by the executor */
    struct bs_clock *clock;
    struct bs_ids *ids;
    struct bs_str node; /* this node's name, in logs and claim ids; a new incarnation each start */
    uint64_t seed;      /* for jitter */
    uint32_t calls_max; /* all queues together; 0: 1,024 */
    /* Open tasks of a queue that nobody has configured for so long go to a person; 0: 5 min. */
    struct bs_span orphans_after;
    bool with_fd; /* false in the simulator */
};

struct bs_engine;
/* On failure the caller of the options is still the user's. */
BS_NODISCARD bs_rc bs_engine_new(const struct bs_engine_options *o, struct bs_engine **ret,
                                 struct bs_err *err);
struct bs_actor *bs_engine_scheduler(struct bs_engine *e);
struct bs_actor *bs_engine_executor(struct bs_engine *e);
struct bs_actor *bs_engine_reaper(struct bs_engine *e);
/* The committer's on_hints. Any thread. */
void bs_engine_hints(void *engine, const struct bs_hints *hints);
/* A queue was paused or resumed (after its commit), or all were reloaded. Any thread. */
void bs_engine_pause(struct bs_engine *e, struct bs_str biz_type, bool paused);
void bs_engine_reload(struct bs_engine *e);
/* No new claims; calls in flight go on; at `deadline` (store time) the rest is released: unsent
 * uncounted, sent as unknown, due at the call's own deadline. Any thread. */
void bs_engine_drain(struct bs_engine *e, struct bs_time deadline);
/* True when nothing is claimed, running or unsettled. Any thread. */
bool bs_engine_idle(struct bs_engine *e);
struct bs_engine_figures {
    uint64_t claims, calls, looks, settled[BS_OUTCOME_COUNT], stale, released;
    uint32_t running, leased;
    uint64_t call_us_sum;
};
void bs_engine_figures(struct bs_engine *e, struct bs_engine_figures *ret);
/* One configured queue at this moment. */
struct bs_engine_queue {
    char biz_type[33];
    uint32_t running;
    struct bs_time until; /* nothing is called before; past or 0: open */
    bool breaker_open;    /* after `until` one task may try            */
    struct bs_time since; /* the breaker tripped; 0: closed            */
    uint32_t openings;    /* since the start                           */
    char why[384];        /* of the last opening                       */
    /* µs; live as long as the engine: calls to the handler; from due to the start of the attempt;
       from acceptance to SUCCESS. */
    const struct bs_hist *calls, *waits, *ends;
};
/* Any thread. Returns how many were written. */
uint32_t bs_engine_queues(struct bs_engine *e, struct bs_engine_queue *ret, uint32_t max);
/* After the threads have ended (or between steps in the simulator: a crash). Frees everything, the
 * caller too. bs_committer_free comes first: it answers the works that it still has, and the engine
 * owns their memory. */
void bs_engine_free(struct bs_engine *e);
