/* One request on its way through the API: who asks, what answers, and how it moves between the HTTP
 * thread, a reader and the committer.
 *
 * A call belongs to one thread at a time: the HTTP thread until bs_call_read or bs_call_commit,
 * then the receiver, and the HTTP thread again after bs_call_finish. Who gave it away touches it no
 * more. When the time limit comes first, the HTTP thread answers without looking at what the
 * receiver owns. */
#pragma once

#include "api/api.h"
#include "api/auth.h"
#include "api/problem.h"
#include "api/readers.h"
#include "json/write.h"

#include <pthread.h>
#include <stdatomic.h>

struct bs_call;

enum bs_takes { BS_TAKES_NOTHING, BS_TAKES_JSON, BS_TAKES_JSON_OR_LINES };

enum bs_next { BS_REPLY_NOW, BS_REPLY_LATER };

struct bs_route {
    enum bs_method method;
    const char *path; /* "{}" stands for one segment, which becomes bs_call.arg */
    enum bs_right right;
    enum bs_takes takes;
    size_t body_max;
    const char *const *params; /* query parameters, ended by NULL; NULL: none */
    enum bs_next (*handle)(struct bs_call *c);
};
extern const struct bs_route bs_routes[];
extern const uint32_t bs_routes_n;

/* Problems of one kind in the log: so many lines a second, then only how many were left out. */
struct bs_storm {
    _Atomic int64_t until_us; /* end of the present second, boot clock */
    _Atomic int64_t lines, left_out;
};

struct bs_api {
    struct bs_api_options o;
    struct bs_readers *readers;
    uint32_t own_uid;
    struct bs_tokens *tokens;          /* the HTTP thread's; NULL: never read */
    _Atomic(struct bs_tokens *) fresh; /* read since; NULL: nothing new       */
    _Atomic int64_t tokens_version;    /* of the newest snapshot; -1: none    */
    _Atomic bool tokens_failing;       /* logged when it changes               */
    pthread_mutex_t refreshing;        /* one reader at a time reads tokens   */
    struct bs_storm away;              /* 503s                                 */
    struct bs_storm strangers;         /* refusals of who is not known         */
};

struct bs_answer {
    int status; /* 0: none yet */
    const char *type;
    struct bs_buf body;
    enum bs_problem problem;
};

/* Who answers, when the limit and the result race. */
enum bs_phase { BS_PHASE_OPEN, BS_PHASE_FINISHED, BS_PHASE_ABANDONED };

struct bs_call {
    struct bs_api *api;
    struct bs_http_request *r;
    const struct bs_route *route;
    struct bs_str arg;
    struct bs_who who;
    void *state; /* the route's own, in the request's arena */

    struct bs_answer answer;
    void (*render)(struct bs_call *c); /* HTTP thread, before the answer leaves; may be NULL */
    _Atomic int phase;

    struct bs_read read;
    struct bs_arena arena; /* a reader's memory; freed when the call leaves the reader */
    bs_rc (*read_run)(struct bs_call *c, struct bs_store *s, struct bs_err *err);
    struct bs_work work;
    struct bs_op *op; /* where there is one */
    bs_rc rc;         /* what the committer said of the whole work */
    struct bs_err err;
    void (*committed)(struct bs_call *c); /* committer's thread, must not block: finish or read */
    void (*then)(struct bs_call *c);      /* a reader's run sets it to go on instead of answering */
};

/* ---- moving ---- */

/* Inside handle, before the first of the two below. */
void bs_call_wait(struct bs_call *c);
/* run happens on a reader and never finishes the call itself: it fills the answer, or sets `then`.
 * Where it fails without an answer, or the queue is full, render (set before) stands in; without
 * render the failure becomes a problem. Any thread. */
void bs_call_read(struct bs_call *c,
                  bs_rc (*run)(struct bs_call *c, struct bs_store *s, struct bs_err *err));
/* Sends c->work; c->committed decides what follows. Any thread. */
void bs_call_commit(struct bs_call *c, enum bs_rank rank, struct bs_op **ops, uint32_t n,
                    size_t bytes);
/* The answer is there, or render will make it. Any thread. */
void bs_call_finish(struct bs_call *c);

/* ---- answering ---- */

/* Replaces the answer and logs it. */
BS_PRINTF(3, 4)
void bs_call_problem(struct bs_call *c, enum bs_problem p, const char *fmt, ...);
void bs_call_problem_more(struct bs_call *c, enum bs_problem p, const struct bs_problem_more *more);
/* A store's failure as a problem: NOT_FOUND, UNAVAILABLE, INTERNAL. */
void bs_call_store_problem(struct bs_call *c, bs_rc rc, const struct bs_err *err);
/* Starts a JSON answer; NULL without memory (then the answer is a problem). */
struct bs_json *bs_call_json(struct bs_call *c, int status);
void bs_call_json_end(struct bs_call *c, struct bs_json *j);
/* Sends the answer. HTTP thread. */
void bs_call_send(struct bs_call *c);

/* ---- asking ---- */

/* A task number of the path; 0: none such. */
int64_t bs_call_task_id(const struct bs_call *c);
/* A query parameter's text; p NULL: absent. */
struct bs_str bs_call_param(struct bs_call *c, const char *name);
struct bs_page_wish {
    int64_t cursor; /* 0: from the beginning */
    uint32_t limit;
};
/* cursor and limit; false: the answer is a problem. */
bool bs_call_page(struct bs_call *c, struct bs_page_wish *ret);
/* Reads the body into a struct by a table (door/door.h); false: the answer is a problem. */
struct bs_member;
bool bs_call_body(struct bs_call *c, const struct bs_member *table, uint32_t n, void *into,
                  struct bs_field_errors *errors);
/* Why a person does it: not blank, at most 512 bytes of plain text. */
void bs_call_check_reason(struct bs_call *c, struct bs_str reason, struct bs_field_errors *errors);
/* The queue's rules, or the default's where it is not configured. */
const struct bs_policy *bs_call_policy(const struct bs_call *c, struct bs_str biz_type);
/* Reads the tokens again and hands them to the HTTP thread. On a reader's thread. */
BS_NODISCARD bs_rc bs_api_refresh_tokens(struct bs_api *api, struct bs_store *s,
                                         struct bs_err *err);

/* ---- the routes ---- */

enum bs_next bs_route_submit(struct bs_call *c);
enum bs_next bs_route_batch(struct bs_call *c);
enum bs_next bs_route_tasks(struct bs_call *c);
enum bs_next bs_route_task(struct bs_call *c);
enum bs_next bs_route_task_log(struct bs_call *c);
enum bs_next bs_route_retry(struct bs_call *c);
enum bs_next bs_route_hold(struct bs_call *c);
enum bs_next bs_route_unhold(struct bs_call *c);
enum bs_next bs_route_resolve(struct bs_call *c);
enum bs_next bs_route_close(struct bs_call *c);
enum bs_next bs_route_queues(struct bs_call *c);
enum bs_next bs_route_queue(struct bs_call *c);
enum bs_next bs_route_pause(struct bs_call *c);
enum bs_next bs_route_resume(struct bs_call *c);
enum bs_next bs_route_alerts(struct bs_call *c);
enum bs_next bs_route_audit(struct bs_call *c);
enum bs_next bs_route_stats(struct bs_call *c);
enum bs_next bs_route_tokens(struct bs_call *c);
enum bs_next bs_route_token_add(struct bs_call *c);
enum bs_next bs_route_token_revoke(struct bs_call *c);
enum bs_next bs_route_version(struct bs_call *c);
enum bs_next bs_route_health(struct bs_call *c);
enum bs_next bs_route_ready(struct bs_call *c);
enum bs_next bs_route_metrics(struct bs_call *c);
