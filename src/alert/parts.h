/* The inside of the alert actor, shared by its files. Everything belongs to its thread but what the
 * mutex and the atomics guard. */
#pragma once

#include "alert/alert.h"

#include <stdatomic.h>

enum {
    BS_ALERT_OPS_MAX = 128,   /* operations of one work               */
    BS_ALERT_BATCH_MAX = 50,  /* alerts of one POST                   */
    BS_ALERT_GATES_MAX = 256, /* open breakers that are looked at     */
    BS_ALERT_OPEN_MAX = 5000, /* open alerts that are looked at       */
    BS_ALERT_SAMPLES = 64,    /* of a queue's growth window           */
    BS_ALERT_KINDS_MAX = 64,  /* of the metric                        */
    BS_ALERT_BODY_MAX = 512 << 10,
    BS_ALERT_HEADERS_MAX = 5,
};

/* ---- a POST or GET on its way, with memory of its own ---- */

struct bs_alert_post {
    struct bs_call call;
    struct bs_arena arena;
    struct bs_buf body;
    const char *headers[BS_ALERT_HEADERS_MAX];
    bool out;   /* the network has it                 */
    bool ended; /* its facts wait to be looked at     */
};

/* What became of one, in the words of the store. */
struct bs_alert_result {
    enum bs_delivery_state state;
    bool smaller; /* the receiver did not like what it got: fewer at once next time */
    struct bs_str code, message; /* the post's memory */
};

/* ---- receivers ---- */

struct bs_alert_item {
    int64_t alert_id;
    enum bs_alert_phase phase;
    int64_t attempts; /* before this one */
    struct bs_time created_at;
};

enum bs_hook_state {
    BS_HOOK_IDLE,
    BS_HOOK_CALLING,
    BS_HOOK_TELLING, /* the result is to be recorded, or on its way to the committer */
};

/* One receiver, by its name; it lives as long as the actor. */
struct bs_hook {
    struct bs_hook *next;
    char *name;
    const struct bs_alert_webhook *conf; /* NULL: not configured now */
    enum bs_hook_state state;
    struct bs_alert_post post;
    struct bs_alert_item items[BS_ALERT_BATCH_MAX];
    uint32_t items_n, batch_max;
    struct bs_delivery told[BS_ALERT_BATCH_MAX];
    bool failing; /* as it was logged last */
    /* The alert that cannot be written while it lasts (storm.c). */
    struct bs_alert_post direct;
    enum bs_delivery_state direct_state;
    int64_t direct_attempts;
    struct bs_time direct_at;
    char direct_code[32];
};

/* ---- growth of the manual queue ---- */

/* The fewest in MANUAL in one part of the window. */
struct bs_alert_sample {
    struct bs_time at;
    int64_t low;
};

struct bs_alert_feed {
    struct bs_alert_feed *next;
    char biz_type[33];
    struct bs_alert_sample samples[BS_ALERT_SAMPLES]; /* a ring; the last is written on */
    uint32_t first, n;
    struct bs_time since;      /* watched from then on */
    struct bs_time gated_last; /* 0: never             */
};

/* ---- the store fails ---- */

struct bs_alert_storm {
    struct bs_time since; /* seen failing from then on; 0: well      */
    int64_t id;           /* of the alert; 0: none                   */
    struct bs_time first_at, ended_at;
    char message[300];
    bool telling; /* the record is on its way to the committer */
    struct bs_delivery raised[64];
};

struct bs_alerts {
    struct bs_alerts_options o;
    struct bs_actor actor;
    struct bs_mailbox in;
    uint64_t seed;
    struct bs_time started_at;
    const struct bs_alert_conf *conf; /* of the step before; NULL: of none */

    struct bs_work work;
    struct bs_op ops[BS_ALERT_OPS_MAX], *list[BS_ALERT_OPS_MAX];
    const struct bs_alert_row *planned[BS_ALERT_OPS_MAX]; /* the row of a plan, for the log */
    uint32_t ops_n;
    struct bs_arena ops_arena; /* texts of the operations, until they are answered */
    bs_rc rc;
    bool out;

    struct bs_time poll_at, judge_at, ping_at, send_again_at;
    bool unreadable; /* as it was logged last */
    struct bs_hook *hooks;
    struct bs_alert_feed *feeds;
    struct bs_alert_storm storm;
    struct bs_alert_post ping;
    bool ping_stale; /* the one that is out is for a url of before the last reload */
    int ping_ok;     /* -1: not yet known; as it was logged last                   */

    pthread_mutex_t mutex; /* of the ones below */
    bool failing;
    char failure[256];
    struct {
        char name[40];
        int64_t n;
    } kinds[BS_ALERT_KINDS_MAX];
    uint32_t kinds_n;

    struct {
        _Atomic uint64_t sent, given_up, failed;
        _Atomic int64_t pending;
        _Atomic int ping_ok;
    } figures;
};

/* ---- alert.c */
/* The next operation of the work that is being filled; NULL: it is full. */
struct bs_op *bs_alerts_op(struct bs_alerts *a, enum bs_op_kind kind, struct bs_time now);
/* The configuration of this step; never NULL. */
const struct bs_alert_conf *bs_alerts_conf(struct bs_alerts *a);
/* A read failed or went well: logged when that changes. */
void bs_alerts_readable(struct bs_alerts *a, bs_rc rc, const struct bs_err *err);

/* ---- judge.c: figures → begins and ends. True: there was no room for all. */
BS_NODISCARD bool bs_alerts_judge(struct bs_alerts *a, struct bs_time now);

/* ---- growth.c */
struct bs_alert_feed *bs_alert_feed_of(struct bs_alerts *a, struct bs_str biz_type,
                                       struct bs_time now);
void bs_alert_feed_sample(struct bs_alert_feed *f, int64_t manual, struct bs_span window,
                          struct bs_time now);
int64_t bs_alert_feed_low(const struct bs_alert_feed *f);

/* ---- plan.c: what is new → deliveries; what nobody receives any more is given up */
void bs_alerts_plan(struct bs_alerts *a, struct bs_time now);
void bs_alerts_planned(struct bs_alerts *a);

/* ---- deliver.c: deliveries → POSTs → results */
void bs_hooks_sync(struct bs_alerts *a);
void bs_hooks_send(struct bs_alerts *a, struct bs_time now);
void bs_hooks_ended(struct bs_alerts *a, struct bs_time now);
void bs_hooks_tell(struct bs_alerts *a, struct bs_time now);
void bs_hooks_told(struct bs_alerts *a);
void bs_hooks_free(struct bs_alerts *a);
/* When to try again after so many attempts. */
struct bs_time bs_hook_next(struct bs_alerts *a, int64_t attempts, struct bs_time now);

/* ---- post.c: one request */
BS_NODISCARD bool bs_alert_post_start(struct bs_alerts *a, struct bs_alert_post *p,
                                      const struct bs_alert_webhook *to, struct bs_str id,
                                      struct bs_time now);
/* Of a post that ended. */
struct bs_alert_result bs_alert_post_result(struct bs_alert_post *p);
void bs_alert_post_free(struct bs_alert_post *p);
/* The body: one alert after the other. */
struct bs_alert_said {
    const struct bs_alert_row *row;
    enum bs_alert_phase phase;
};
BS_NODISCARD bs_rc bs_alert_body(struct bs_buf *out, struct bs_str node,
                                 const struct bs_alert_said *items, uint32_t n);

/* ---- storm.c: the store takes no writes */
void bs_storm_step(struct bs_alerts *a, struct bs_time now);
void bs_storm_ended(struct bs_alerts *a, struct bs_time now);
void bs_storm_record(struct bs_alerts *a, struct bs_time now);
void bs_storm_recorded(struct bs_alerts *a);

/* ---- ping.c: the sign of life */
void bs_ping_step(struct bs_alerts *a, struct bs_time now);
void bs_ping_ended(struct bs_alerts *a);
/* The configuration is another than `before`: a ping that changed is due at once, and nothing is
 * known about it. */
void bs_ping_reloaded(struct bs_alerts *a, const struct bs_alert_conf *before, struct bs_time now);
