/* One leased task on its way: waits for its turn, is looked up, called, settled. The scheduler
 * makes it before the claim (so that the slot for a result exists before the task is held), the
 * executor works on it, the scheduler gets it back. Belongs to one of them at a time; the notes say
 * whose it is. */
#pragma once

#include "base/buf.h"
#include "base/hist.h"
#include "core/breaker.h"
#include "core/rate.h"
#include "net/caller.h"
#include "store/committer.h"

struct bs_feed;
struct bs_executor;
struct bs_job;

/* What the executor tells the scheduler of a job, in this order. */
enum bs_note_kind {
    BS_NOTE_ENDED, /* its call is over: the place among the running is free            */
    BS_NOTE_FREE,  /* its result is stored (or lost to a newer lease): the job is back */
};

struct bs_note {
    struct bs_node node;
    enum bs_note_kind kind;
    struct bs_job *job;
};

enum bs_stage {
    BS_STAGE_FREE, /* in the scheduler's pool                    */
    BS_STAGE_WAIT, /* leased, waits until one of its queue's calls ends */
    BS_STAGE_LOOK,
    BS_STAGE_CALL,
    BS_STAGE_SETTLE,
};

/* A target host, over all queues that call it: how many calls run there, until when it asked to be
 * left alone. The executor's. */
struct bs_host {
    struct bs_host *next;
    struct bs_str name;
    uint32_t running, limit;
    struct bs_time paused_until;
};

enum bs_endpoint { BS_ENDPOINT_LOOK, BS_ENDPOINT_HANDLER, BS_ENDPOINT_COUNT };

/* Why a queue's calls wait, as the executor tells it to everybody else. */
struct bs_gate {
    struct bs_time until; /* nothing is claimed before; 0: open                             */
    bool probing;         /* a breaker is open: after `until` one task may go and try       */
    struct bs_time since; /* the breaker tripped                                            */
    uint32_t openings;    /* how often one did, since the start                             */
    char why[384];
};

/* The executor's side of a queue. Made by the scheduler, touched by the executor only, but for
 * `told`, which the engine's mutex guards. */
struct bs_line {
    struct bs_line *next;
    struct bs_str biz_type;
    struct bs_job *head, *tail; /* jobs that wait, oldest first */
    uint32_t running;
    bool known; /* is in the executor's list */
    bool paused;
    const struct bs_queue_conf *conf;         /* of which hosts and pace were made */
    struct bs_host *hosts[BS_ENDPOINT_COUNT]; /* the look-up's is NULL where it has none */
    struct bs_breaker breakers[BS_ENDPOINT_COUNT];
    struct bs_pace pace;
    struct bs_gate gate;
    struct bs_gate told;
    _Atomic uint32_t shown_running;
    struct bs_hist calls, waits, ends;
};

enum { BS_JOB_HEADERS_MAX = 10 };

struct bs_job {
    struct bs_node node; /* the way to the executor */
    struct bs_note ended, freed;
    struct bs_job *all_next;              /* every job ever made, for the end             */
    struct bs_job *next;                  /* pool, claim's slots, waiting, to send again  */
    struct bs_job *live_prev, *live_next; /* the executor's: everything not settled       */

    struct bs_executor *executor;
    struct bs_feed *feed;
    struct bs_line *line;
    const struct bs_queue_conf *conf;
    struct bs_leased *leased; /* the task and the memory of this attempt */
    enum bs_stage stage;
    bool suspect;   /* counted as the one suspect of this node */
    bool probe;     /* claimed to try an endpoint whose breaker is open */
    bool cancelled; /* we asked for the end of its call        */
    struct bs_time lease_until;
    struct bs_time begun_at;   /* first request of this attempt; 0: none yet */
    struct bs_time call_until; /* when the running call ends at the latest   */
    int64_t busy_us;           /* how long it took a place, for the scheduler */

    struct bs_call call;
    const char *headers[BS_JOB_HEADERS_MAX];
    struct bs_buf body;
    enum bs_verdict looked;
    struct bs_str order; /* the look-up's reply; p NULL: none */

    struct bs_work finish;
    struct bs_op finish_op;
    struct bs_op *finish_ops[1];
    bs_rc finish_rc;
    bool plain; /* the outcome's texts were dropped after the store refused them */

    struct bs_work renew;
    struct bs_op renew_op;
    struct bs_op *renew_ops[1];
    bs_rc renew_rc;
    bool renewing;           /* the renew work is with the committer                            */
    bool lost;               /* a renew was stale: somebody else has the task                   */
    bool done;               /* the finish is answered: free as soon as no renew is outstanding */
    struct bs_time renew_at; /* BS_NEVER: this queue does not renew */
};

static inline const struct bs_task *bs_job_task(const struct bs_job *job)
{
    return &job->leased->task;
}
