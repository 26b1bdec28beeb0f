/* What the three actors of the engine are made of, and what they share: options, figures, and the
 * news from other threads. Each actor's struct belongs to its own thread. */
#pragma once

#include "engine/engine.h"
#include "engine/job.h"

#include <stdatomic.h>

enum {
    BS_SCHEDULER_CLAIMED = 0, /* lanes of the scheduler's mailbox */
    BS_SCHEDULER_NOTES,
    BS_SCHEDULER_TOLD,
    BS_SCHEDULER_NEWS,
    BS_SCHEDULER_LANES,
    BS_EXECUTOR_SETTLED = 0, /* lanes of the executor's mailbox */
    BS_EXECUTOR_RENEWED,
    BS_EXECUTOR_NEWS,
    BS_EXECUTOR_JOBS,
    BS_EXECUTOR_LANES,
};

/* A claim of one queue; at most one is outstanding. */
struct bs_claim {
    struct bs_work work;
    struct bs_op op;
    struct bs_op *ops[1];
    bs_rc rc;
    struct bs_scheduler *scheduler;
    struct bs_feed *feed;
    const struct bs_queue_conf *conf; /* as it was when the claim was sent */
    struct bs_job *slots;             /* as many jobs as it may bring */
    struct bs_time sent_at;
    bool out;
    bool suspect; /* it may bring the one suspect */
    bool probe;   /* it brings the one task that tries the endpoint */
    char id[128];
};

/* What the scheduler tells the store of a queue; one thing at a time. */
struct bs_teller {
    struct bs_work work;
    struct bs_op op;
    struct bs_op *ops[1];
    bs_rc rc;
    bool out;
    struct bs_time again_at; /* the committer did not take it */
    uint32_t openings;       /* breaker alerts raised so far, of gate.openings */
    bool alert_open;
    struct bs_time stopped_since; /* 0: it can run */
    struct bs_time stopped_told;  /* up to when the store knows of it */
};

/* A host as the scheduler counts it, over all queues that call it. */
struct bs_quota {
    struct bs_quota *next;
    struct bs_str name;
    uint32_t limit; /* 0: none */
    uint32_t taken; /* claimed, or asked for by a claim on its way */
};

/* The scheduler's side of a queue. Lives as long as the engine; conf is NULL while the queue is not
 * configured. */
struct bs_feed {
    struct bs_feed *next;
    struct bs_scheduler *scheduler;
    struct bs_str biz_type;
    const struct bs_queue_conf *conf;
    _Atomic bool configured; /* the same, for other threads */
    struct bs_line line;     /* the executor's */
    bool paused;
    uint64_t refused; /* when it was refused the place for suspects, in order; 0: it was not */
    uint32_t claimed; /* with the executor, their call is not over        */
    uint32_t held;    /* the same and those whose result is not stored yet */
    struct bs_time next_look;
    struct bs_time hinted; /* the earliest hint since the claim was sent; BS_NEVER: none */
    struct bs_span backoff;
    int64_t claim_us, busy_us; /* recent means: a claim's way, a call */
    struct bs_quota *quotas[BS_ENDPOINT_COUNT];
    struct bs_pace pace;
    struct bs_gate gate; /* as the executor told it last */
    uint64_t claims_n;
    struct bs_claim claim;
    struct bs_teller teller;
};

struct bs_scheduler {
    struct bs_actor actor;
    struct bs_mailbox in;
    struct bs_engine *engine;
    const struct bs_queues *seen; /* the configuration the feeds were made of */
    struct bs_feed *feeds;        /* in the order they were first seen */
    struct bs_feed *first;        /* which asks first; goes round */
    struct bs_quota *quotas;
    uint32_t gates_seen;
    uint64_t refusals;
    uint32_t claimed, held, asked; /* over all feeds; asked: limits of outstanding claims  */
    bool suspect;                  /* the one place for suspects is taken                  */
    struct bs_job *pool, *all;
    uint64_t seq;
    char incarnation[96];
};

struct bs_executor {
    struct bs_actor actor;
    struct bs_mailbox in;
    struct bs_engine *engine;
    struct bs_caller *caller;
    struct bs_line *lines;
    struct bs_line *turn; /* whose jobs are looked at first; goes round */
    struct bs_host *hosts;
    const struct bs_queues *seen; /* the configuration that hosts and lines follow */
    struct bs_job *live;          /* not settled, in no order that matters */
    struct bs_job *again;         /* finishes that the committer did not take, oldest first */
    struct bs_time again_at;
    struct bs_time renew_at;            /* the earliest renewal of all */
    struct bs_node *notes, **notes_end; /* for the scheduler, oldest first */
    uint32_t notes_n;
    bool notes_due;
    bool started; /* a call was started since the last run */
    bool cut;     /* the drain's deadline has passed       */
};

struct bs_reaper {
    struct bs_actor actor;
    struct bs_mailbox in;
    struct bs_engine *engine;
    struct bs_work work;
    struct bs_op op;
    struct bs_op *ops[1];
    bs_rc rc;
    bool out;
    struct bs_time reap_at, orphans_at;
};

/* News from other threads for one actor, merged until it looks. */
struct bs_news {
    struct bs_node node;
    bool posted;
};

struct bs_paused {
    struct bs_paused *next;
    bool paused;
    char biz_type[33];
};

struct bs_engine {
    struct bs_engine_options options;
    struct bs_scheduler scheduler;
    struct bs_executor executor;
    struct bs_reaper reaper;

    pthread_mutex_t mutex; /* of the six below; taken before a mailbox's */
    uint32_t gates_told;   /* how often one changed */
    struct bs_news scheduler_news, executor_news;
    struct bs_hints hints;
    struct bs_paused *paused;
    uint32_t paused_n;

    _Atomic int64_t drain_at; /* INT64_MIN: not draining */
    _Atomic uint32_t busy;    /* claims on their way and jobs not settled           */
    _Atomic uint32_t works;   /* works that are with the committer                  */
    struct {
        _Atomic uint64_t claims, calls, looks, settled[BS_OUTCOME_COUNT], stale, released;
        _Atomic uint64_t call_us_sum;
        _Atomic uint32_t running, leased;
    } figures;
};

/* ---- engine.c */
bool bs_engine_draining(const struct bs_engine *e, struct bs_time *ret_deadline);
bool bs_engine_paused(struct bs_engine *e, struct bs_str biz_type);
/* Takes what other threads have hinted since the last time. Scheduler. */
void bs_engine_take_hints(struct bs_engine *e, struct bs_hints *ret);
/* The executor's counterpart: marks its news as read. */
void bs_engine_take_news(struct bs_engine *e, struct bs_news *news);
/* Sends to the committer and keeps count; false: it is full or closing. */
BS_NODISCARD bool bs_engine_send(struct bs_engine *e, struct bs_work *w);
/* For every work's done: hands it to the actor that owns it. Committer's thread. */
void bs_engine_answered(struct bs_engine *e, struct bs_mailbox *to, uint32_t lane,
                        struct bs_node *node);

/* Tells the scheduler, and whoever asks, that a queue's gate has changed. Executor. */
void bs_engine_tell_gate(struct bs_engine *e, struct bs_line *line);

/* ---- schedule.c, queue.c, claim.c, tell.c */
BS_NODISCARD bs_rc bs_scheduler_init(struct bs_scheduler *s, struct bs_engine *e,
                                     struct bs_err *err);
void bs_scheduler_done(struct bs_scheduler *s);
/* Makes the feeds fit the configuration. */
void bs_feeds_sync(struct bs_scheduler *s, struct bs_time now);
void bs_feeds_pause(struct bs_scheduler *s, struct bs_time now);
void bs_feeds_hint(struct bs_scheduler *s, const struct bs_hints *hints);
/* Takes over what the executor has told of gates. */
void bs_feeds_gates(struct bs_scheduler *s, struct bs_time now);
/* How many tasks a claim may ask for, leaving times aside. */
uint32_t bs_feed_room(const struct bs_feed *f);
/* The earliest time of a claim: something is due, the gate is open, the rate allows it. */
struct bs_time bs_feed_ready(const struct bs_feed *f);
/* How far claims may run ahead of the rate; the executor keeps to it closely. */
extern const struct bs_span bs_claim_slack;
/* n more (or fewer) of its tasks hold places at its hosts. */
void bs_feed_take(struct bs_feed *f, int32_t n);
void bs_feed_ended(struct bs_feed *f, const struct bs_job *job);
void bs_feed_freed(struct bs_feed *f, struct bs_job *job, struct bs_time now);
void bs_claim_send(struct bs_feed *f, uint32_t room, struct bs_time now);
void bs_claim_answered(struct bs_claim *c, struct bs_time now);
/* Breaker alerts, and the spans in which the queue could not run. Returns when to look again. */
struct bs_time bs_feed_tell(struct bs_feed *f, struct bs_time now);
void bs_teller_answered(struct bs_teller *t, struct bs_time now);
/* Something must be told before the next claim. */
bool bs_feed_must_tell(const struct bs_feed *f);

/* ---- execute.c */
BS_NODISCARD bs_rc bs_executor_init(struct bs_executor *x, struct bs_engine *e, struct bs_err *err);
void bs_executor_done(struct bs_executor *x);
/* Tells the scheduler, at the end of a step; several at once while jobs wait here anyway. */
void bs_executor_note(struct bs_executor *x, struct bs_note *note);
/* Gives the job's call to the network. */
void bs_job_start(struct bs_job *job, enum bs_stage stage, struct bs_time now);

/* ---- gate.c: whether a job may start: breakers, hosts, rate */
/* Hosts and limits as the configuration has them now. */
void bs_gates_follow(struct bs_executor *x, struct bs_time now);
void bs_gates_done(struct bs_executor *x);
/* A queue's first job: its hosts are found. */
void bs_line_follow(struct bs_executor *x, struct bs_line *line, const struct bs_queue_conf *conf,
                    struct bs_time now);
/* NULL: its jobs may start; else why this one has to go back. Static. */
const char *bs_line_shut(const struct bs_line *line, const struct bs_job *job, struct bs_time now);
/* Whether its hosts and its rate have a place; *ret_when: the earliest instant of the rate. */
bool bs_line_free(const struct bs_line *line, struct bs_time now, struct bs_time *ret_when);
void bs_line_began(struct bs_line *line, struct bs_time now);
void bs_line_ended(struct bs_line *line);
/* The job's exchange with an endpoint is over: breaker and host take notice, and what came back
 * from behind an open breaker costs nothing. */
void bs_job_reached(struct bs_job *job, enum bs_endpoint which, enum bs_reach what,
                    struct bs_outcome *o, struct bs_time now);

/* ---- check.c: the look before the act */
void bs_job_look(struct bs_job *job, struct bs_time now);
void bs_job_looked(struct bs_job *job, struct bs_time now);
/* ---- call.c: the handler */
void bs_job_call(struct bs_job *job, struct bs_time now);
void bs_job_called(struct bs_job *job, struct bs_time now);
/* ---- settle.c: results to the store */
void bs_job_settle(struct bs_job *job, const struct bs_outcome *o, struct bs_time now);
/* Gives the task back, known not sent. `why` is static. */
void bs_job_release(struct bs_job *job, const char *why, struct bs_time now);
/* The request could not be made for lack of memory: put off, nothing spent. */
void bs_job_cannot(struct bs_job *job, struct bs_time now);
void bs_job_settled(struct bs_job *job, struct bs_time now);
void bs_executor_send_again(struct bs_executor *x, struct bs_time now);
/* ---- renew.c */
void bs_job_renewed(struct bs_job *job, struct bs_time now);
void bs_executor_renew(struct bs_executor *x, struct bs_time now);
void bs_job_free_when_done(struct bs_job *job);
/* What is left of the lease for waiting on the network, with the margin for settling taken off. */
struct bs_span bs_job_left(const struct bs_job *job, struct bs_time now);

/* ---- reap.c */
BS_NODISCARD bs_rc bs_reaper_init(struct bs_reaper *r, struct bs_engine *e, struct bs_err *err);
void bs_reaper_done(struct bs_reaper *r);
