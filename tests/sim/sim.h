/* One simulated world: a living process (committer, scheduler, executor, reaper), its real SQLite
 * store, a shop behind a pretended network, clients, operators, and what a god would know of all of
 * it. One seed decides everything; one thread; a virtual clock. */
#pragma once

#include "alert/alert.h"
#include "base/rng.h"
#include "base/text.h"
#include "db/faulty.h"
#include "door/door.h"
#include "engine/engine.h"
#include "hits.h"
#include "keep/keep.h"

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    SIM_QUEUES = 6,
    SIM_INTENTS = 512,
    SIM_TALES = 1024,
    SIM_EXCHANGES = 32768,
    SIM_TEXT = 72,
    SIM_ACTS = 8192,
    SIM_ACTS_MOST = 1000, /* of them before the quiet phase */
    SIM_HOSTS = 4,
    SIM_HOOKS = 2,
    SIM_NOTES = 4096,
    SIM_STARTS = 64, /* the last starts of a queue that are remembered */
};

/* ---- the shop ---- */

/* What the shop and the network make of one call: decided when it starts. */
enum truth {
    TRUTH_OPEN, /* no reply has reached the caller */
    TRUTH_SUCCESS,
    TRUTH_FINISHED,
    TRUTH_FAILED,
    TRUTH_UNKNOWN,
    TRUTH_MANUAL,
    TRUTH_NOT_PROCESSED,
    TRUTH_CANCELLED,
};

/* The two endpoints of a queue. */
enum end { END_LOOK, END_HANDLER, ENDS };

/* What is wrong with an endpoint for a while. */
enum ill { ILL_NOTHING, ILL_FAULTS, ILL_AWAY };

struct illness {
    enum ill what;
    struct bs_time until;
};

/* One HTTP exchange as the world knows it. */
struct exchange {
    bool is_look;
    bool probe;  /* it began while a breaker of its queue was open        */
    bool behind; /* what came back says nothing new of an open breaker    */
    uint32_t host;
    uint32_t tale;  /* index of the task */
    uint32_t queue; /* index of the queue */
    int64_t fence;
    uint32_t incarnation;
    enum sim_plan plan;
    enum truth truth; /* what the planned reply means once it is delivered */
    enum bs_verdict verdict;
    bool clears;     /* a look-up whose verdict clears the unknown mark */
    bool look_final; /* a look-up after which the handler is not called  */
    struct bs_time start, sent_at, effect_at, end, client_end, deadline;
    struct bs_time lease_until; /* the greatest that was seen for this token */
    struct bs_time delivered_at;
    bool delivered, cancelled, dead; /* dead: its process is gone */
    bool effect_done;
    bool suspect;              /* its task had lost two leases when the call began */
    struct bs_time expired_at; /* its lease was taken back; 0: it was not */
    int status;
    enum bs_wire wire;
    struct bs_retry_after wish;
    struct bs_call *call; /* while the process lives and waits */
    char body[512];
    size_t body_n;
    bool long_body;
};

/* ---- a task's row as last read, and what is known of it ---- */

struct row {
    int64_t id;
    char request_id[SIM_TEXT], serial_key[160], effect_key[160], manual_code[40], biz_type[40];
    char conclusion[24], last_code[72];
    enum bs_state state;
    int64_t updated_at;
    int32_t retry_count, max_retry_count, attempt_no, crash_count, priority;
    bool unknown, blocked, running; /* running: holds its serial key */
    int32_t pending;
    int64_t next_at, due_at, locked_at, locked_until, token, version, amount, created_at;
};

/* One transition as the log tells it. */
struct moved {
    int64_t at, token;
    enum bs_event event;
    enum bs_state from, to;
    int32_t attempt_no;
    bool by_person;
};

struct tale {
    struct row row;
    bool present;
    bool archived, purged;
    uint32_t seen;   /* the look that found it among the live ones, last       */
    int64_t ran_us;  /* how long it could have run since its budget was fresh  */
    int64_t lost_us; /* how much of its stops the store may not know of        */
    bool acked;      /* somebody was told that it exists */
    int64_t acked_amount;
    uint32_t posts;            /* how many POSTs the shop saw          */
    uint32_t last_post;        /* index + 1 of the newest POST         */
    uint32_t last_look;        /* index + 1 of the newest look-up whose reply was delivered */
    int64_t last_fence;        /* of the newest POST that arrived */
    struct bs_time touched_at; /* by a person, last */
    uint32_t not_found;        /* explicit answers in a row */
    struct bs_time not_found_at;
};

/* ---- clients ---- */

/* One business request, repeated until its answer is heard. */
struct intent {
    char request_id[SIM_TEXT], biz_id[SIM_TEXT], order_no[SIM_TEXT], extra[96];
    char biz_type[40];
    uint32_t queue; /* SIM_QUEUES: an unknown one (parked) */
    uint32_t group; /* the first intent with this request_id */
    int64_t amount;
    uint32_t variant;
    uint32_t sends; /* of the group: counted at the group's first */
    uint32_t in_flight;
    bool heard; /* a final answer arrived */
    bool park;
    struct bs_time next_at;
};

/* One human action and what was heard of it. */
struct act {
    int64_t task_id;  /* 0: not about a task  */
    int64_t expected; /* version; 0: not given */
    enum bs_op_kind kind;
    enum bs_action action;
    bool answered;
    bs_rc rc;
    uint32_t queue;
    bool paused;
};

/* ---- what protects the shop, as it should be (gates.c) ---- */

struct breaker {
    uint32_t faults, refusals; /* in a row */
    bool open;
    struct bs_time until; /* nothing may try before */
    struct bs_span cooldown;
};

/* One queue in one life of the process. */
struct gate {
    struct breaker breakers[ENDS];
    struct bs_time changed; /* when it opened or closed, last              */
    struct bs_time opened;  /* a breaker tripped, last                     */
    struct bs_time told;    /* `changed` when it was last seen that the alert tells it */
    uint32_t openings;
    struct bs_time starts[SIM_STARTS]; /* a ring */
    uint32_t starts_n;
};

/* ---- receivers of alerts ---- */

/* One phase of one alert, as one of them knows it. */
struct note {
    uint32_t hook;
    int64_t alert;
    int phase;
    bool taken; /* answered with 2xx, and the answer was heard */
};

/* ---- the process ---- */

struct net {
    struct bs_caller base;
    struct sim *sim;
    struct bs_call *running, *ended, *ended_tail;
};

enum {
    ACTOR_COMMITTER,
    ACTOR_SCHEDULER,
    ACTOR_EXECUTOR,
    ACTOR_REAPER,
    ACTOR_KEEP,
    ACTOR_ALERT,
    ACTORS
};

struct seat {
    struct bs_actor *actor;
    struct bs_time next;    /* when it asked to be stepped */
    struct bs_time stalled; /* not stepped before          */
    bool asleep;            /* armed: only mail or a wake ends it early */
};

struct process {
    bool up;
    uint32_t incarnation;
    char node[24];
    struct bs_time started_at, down_until;
    struct bs_time could_tell; /* the scheduler's last step before a drain */
    bool draining;
    struct bs_time drain_until;
    struct bs_committer *committer;
    struct bs_engine *engine;
    struct bs_keep *keep;
    struct bs_alerts *alerts;
    struct hooknet *hooks;
    struct net *net;
    struct bs_ids ids;
    struct seat seats[ACTORS];
    struct gate gates[SIM_QUEUES];
    struct bs_time host_until[SIM_HOSTS]; /* it asked to be left alone */
};

/* What one seed chose. */
struct options {
    uint32_t tasks;
    uint32_t fail_pct, look_fail_pct, hook_fail_pct;
    uint32_t calls_max;
    struct bs_span fault_every, act_every, submit_every, fault_phase;
    bool honest; /* no step that nobody asked for */
    bool crashes, drains, jumps, stalls, acts;
    bool vanish; /* some incarnations do not know the last queue */
    bool reloads, few_hosts, host_limits, purges;
    bool history; /* finished tasks are archived, perhaps purged */
    bool crashy;  /* processes die and stand still more often than anything else */
    uint32_t orders, first_queue, queues_used; /* few: much is about the same business object */
    bool hot;                     /* one or two queues, a few orders, busy operators, long pauses */
    uint32_t caps[BS_RANK_COUNT]; /* of the committer's lanes; 0: as usual */
};

struct sim {
    uint64_t seed;
    struct bs_rng rng;
    struct options opt;
    struct bs_clock_manual clock;
    struct bs_time begun;
    const char *base; /* the folder of all worlds of this run */
    char dir[96], path[128], url[144];
    struct hits *hits;

    struct bs_queue_conf confs[SIM_QUEUES];
    struct bs_queue_conf confs_less[SIM_QUEUES], confs_other[SIM_QUEUES];
    struct bs_host_conf host_limits[SIM_HOSTS], host_limits_other[SIM_HOSTS];
    char urls[SIM_QUEUES][ENDS][96];
    uint32_t hosts[SIM_QUEUES][ENDS];  /* which one each endpoint is at */
    struct bs_queues all, less, other; /* less: the last one is taken away; other: other limits */
    struct bs_alert_conf alert_conf;
    struct bs_alert_webhook webhooks[SIM_HOOKS];
    struct bs_queues_slot slot;
    struct bs_time reloaded_at;
    bool gone; /* `less` is in force */
    bool paused[SIM_QUEUES];
    bool unsure[SIM_QUEUES]; /* a pause or resume was answered with neither yes nor no */
    struct bs_time paused_at[SIM_QUEUES];

    struct process p;
    struct bs_db *db; /* the injector around the real driver; owned by the store */
    struct bs_time full_until, shaky_until;
    bool failing; /* the committer says so */
    struct bs_time failing_since;
    struct bs_time well_since; /* since when nothing outside has been wrong */
    uint32_t armed;            /* the n-th matching call from now fails; 0: none */
    bool armed_commit, armed_crash;
    enum bs_fault_when armed_when;
    bool crash_now; /* the process dies when this step is over */
    uint32_t jumps;

    struct exchange *xs;
    uint32_t xs_n;
    uint32_t xs_live; /* all before this one are over */
    enum { SHOP_NORMAL, SHOP_BAD, SHOP_DOWN, SHOP_HEALTHY } shop;
    struct bs_time shop_until;
    struct illness ills[SIM_QUEUES][ENDS];

    struct note *notes;
    uint32_t notes_n;
    struct bs_time last_ping;

    struct intent *intents;
    uint32_t intents_n;
    struct bs_time next_submit;
    struct act *acts;
    uint32_t acts_n;
    struct bs_time next_act, next_fault;
    struct sub *answers; /* to be checked when the step is over */
    uint32_t works_out;  /* works that the committer holds */

    struct tale *tales;
    uint32_t tales_n;
    uint32_t slots[SIM_TALES * 2]; /* index + 1, open addressing by id */
    sqlite3 *eye;                  /* the checker's own connection */
    sqlite3_stmt *eye_rows, *eye_log, *eye_version, *eye_past, *eye_past_n;
    int64_t eye_at;
    uint32_t looks_taken;
    uint32_t archived_n, purged_n;
    uint32_t to_person[SIM_QUEUES + 1], perhaps_to_person[SIM_QUEUES + 1]; /* moves that alert */
    uint32_t openings[SIM_QUEUES];      /* breakers that tripped, in all lives */
    uint32_t openings_sure[SIM_QUEUES]; /* of them, those that must have been raised */
    struct bs_time next_told;
    uint32_t resent; /* requests that were sent once more after the end */

    bool crashing;                 /* answers are not heard */
    bool quiet, after;             /* after: everything has ended once, time goes on */
    uint32_t faults, trips, spins; /* trips: failed database calls */
    struct bs_time next_tidy;
    uint64_t steps;
    bool trace;
    uint64_t hash;
    bool broken;
    char why[512];
};

/* world.c */
bool sim_run(struct sim *w);
/* One private folder for a run, in memory where there is such a place. */
bool sim_base_new(char *ret, size_t max);
void sim_base_free(const char *base);
BS_PRINTF(2, 3) void say(struct sim *w, const char *fmt, ...);
/* A promise is broken: the first one is kept and ends the seed. */
BS_PRINTF(2, 3) void broken(struct sim *w, const char *fmt, ...);
static inline struct bs_time sim_now(const struct sim *w)
{
    return w->clock.at;
}
static inline uint32_t below(struct sim *w, uint32_t n)
{
    return (uint32_t)bs_rng_below(&w->rng, n);
}
static inline bool chance(struct sim *w, uint32_t pct)
{
    return below(w, 100) < pct;
}
static inline struct bs_span some_ms(struct sim *w, uint32_t least, uint32_t most)
{
    return BS_MS(least + below(w, most - least + 1));
}
void fault_hit(struct sim *w, enum sim_fault f);

/* setup.c */
void sim_choose(struct sim *w, uint32_t tasks);
const char *host_name(uint32_t host);
static inline const struct bs_queues *conf_now(struct sim *w)
{
    return bs_queues_now(&w->slot);
}
/* Another file is loaded while the process runs. */
void sim_reload(struct sim *w, const struct bs_queues *q);

/* gates.c: breakers, hosts, rates; ages.c: how long each task could have run. */
void gates_begin(struct sim *w, struct exchange *x);
void gates_end(struct sim *w, struct exchange *x);
bool gate_open(const struct sim *w, uint32_t queue);
/* The queue's calls wait for a good reason, or did until a moment ago. */
bool gate_excuses(struct sim *w, uint32_t queue);
void ages_pass(struct sim *w, struct bs_time to);
void ages_end(struct sim *w);    /* of the process */
void ages_unsure(struct sim *w); /* a stop of the process is not known to the store */
void ages_check(struct sim *w, const struct tale *t, const struct row *is, const struct moved *m);

/* process.c */
bool process_start(struct sim *w);
void process_end(struct sim *w, const char *how);
/* Earliest instant at which some seat wants a step; and steps one of those that are ready. */
struct bs_time process_next(struct sim *w);
bool process_step(struct sim *w);
void process_drain(struct sim *w);
void process_watch_drain(struct sim *w);

/* net.c */
struct net *net_new(struct sim *w);
struct bs_time net_next(const struct net *n);
/* hooks.c */
struct hooknet *hooks_new(struct sim *w);
struct bs_caller *hooks_caller(struct hooknet *n);
struct bs_time hooks_next(const struct hooknet *n);
bool hooks_took(struct sim *w, uint32_t hook, int64_t alert, int phase);
/* shop.c: everything that happens at the shop up to an instant; and the next such instant. */
void shop_run(struct sim *w, struct bs_time until);
struct bs_time shop_next(const struct sim *w);
void shop_plan_post(struct sim *w, struct exchange *x);
void shop_plan_look(struct sim *w, struct exchange *x);
void shop_judge_post(struct sim *w, struct exchange *x, const struct bs_call *call);
uint32_t shop_effects(const struct sim *w, uint32_t tale);

/* clients.c */
void clients_step(struct sim *w);
struct bs_time clients_next(const struct sim *w);
bool clients_want_more(const struct sim *w);
bool clients_done(const struct sim *w);
/* Every request comes once more. */
void clients_again(struct sim *w);
void clients_check_answers(struct sim *w);
/* people.c */
void people_step(struct sim *w);
void people_resume_all(struct sim *w);
/* faults.c */
struct bs_db *faults_wrap(struct sim *w);
void faults_step(struct sim *w);
void faults_lift(struct sim *w);
bool faults_active(const struct sim *w);

/* view.c, past.c: the only files that know the schema. */
bool view_open(struct sim *w);
void view_close(struct sim *w);
/* Reads what has changed and hands each change to check.c. */
void view_look(struct sim *w);
/* The whole store against itself, by SQL. */
void view_check_all(struct sim *w, bool last);
uint64_t view_count_stale(struct sim *w, const char *node);
bool view_has_stale(struct sim *w, const struct exchange *x);
int64_t view_count(struct sim *w, const char *sql, const char *arg);
void view_check_rows(struct sim *w, const char *sql);
/* The columns of a task's row, as view.c reads them; `first`: also what it keeps for its life. */
void view_read(sqlite3_stmt *s, struct row *r, bool first);
/* What happened between two readings of one row. */
void view_follow(struct sim *w, struct tale *t, const struct row *was, const struct row *is);
extern const char view_columns[];
/* past.c: history. */
bool past_open(struct sim *w);
void past_close(struct sim *w);
/* After the live rows were read: who is no longer among them went the right way. */
void past_look(struct sim *w);
void past_check(struct sim *w, bool last);
/* Every archived task is read as before. */
void past_read_all(struct sim *w, struct bs_store *s);
/* told.c: alerts of breakers, and who was told of any. */
void told_look(struct sim *w);
void told_check(struct sim *w, bool last);
/* Nothing is to be told any more. */
bool told_all(struct sim *w);
struct tale *tale_of(struct sim *w, int64_t id);
struct tale *tale_of_request(struct sim *w, const char *request_id, size_t n);

/* check.c */
/* A task that was not there before: nobody else has its request_id. */
void check_new(struct sim *w, const struct tale *t);
void check_row(struct sim *w, struct tale *t, const struct row *was, const struct row *is,
               const struct moved *moves, uint32_t n);
void check_together(struct sim *w);
void check_leases(struct sim *w);
void check_due(struct sim *w);
void check_drained(struct sim *w);
void check_post(struct sim *w, struct exchange *x);
void check_end(struct sim *w);
