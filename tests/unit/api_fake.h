/* The API's neighbours as puppets: an HTTP request without a server, a committer and a store that
 * say what a test wants. One API at a time. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>

#include "api/api.h"
#include "api/auth.h"
#include "json/read.h"

#include <cmocka.h>
#include <stdatomic.h>

enum { FAKE_HEADERS_MAX = 8, FAKE_QUERY_MAX = 20 };

struct fake_pair {
    const char *name;
    struct bs_str value;
};

struct fake_request {
    struct bs_http_request r;
    struct fake_pair headers[FAKE_HEADERS_MAX], query[FAKE_QUERY_MAX];
    uint32_t headers_n, query_n;
    bool waits;
    void (*on_timeout)(struct bs_http_request *r);
    _Atomic bool ready; /* bs_http_ready was called */
    /* the answer; status 0: none yet */
    int status;
    const char *type;
    struct bs_buf body;
    struct fake_pair answered[FAKE_HEADERS_MAX];
    uint32_t answered_n;
};

enum fake_committer {
    FAKE_COMMITS, /* apply() for each op, then done(BS_OK)     */
    FAKE_IS_FULL, /* refuses the work                          */
    FAKE_FAILS,   /* done(fake.work_rc)                        */
    FAKE_HOLDS,   /* keeps it in fake.held until fake_let_go() */
};

struct fake {
    struct bs_api *api;
    struct bs_queues_slot slot;
    struct bs_ids ids;
    struct bs_clock_manual clock;
    /* the committer */
    enum fake_committer committer;
    bs_rc work_rc;
    void (*apply)(struct bs_op *op); /* sets op->rc and its ret_ members; NULL: all succeed */
    struct bs_work *held;
    struct bs_op last; /* the last operation that was sent, its texts in memory */
    struct bs_arena memory;
    uint32_t sent;
    enum bs_rank last_rank;
    /* the store; read on readers' threads, changed between requests only */
    _Atomic int open_rc;
    _Atomic int read_rc;     /* of everything but tokens */
    _Atomic bool reads_wait; /* reads sleep until it is false */
    struct bs_task task;     /* the one that is there */
    struct bs_task_filter last_filter;
    struct bs_token_row tokens[16];
    uint32_t tokens_n;
    _Atomic int64_t tokens_version;
    uint32_t alerts_n, audit_n, log_n;
    _Atomic int64_t last_cursor; /* metrics are read by both readers at once */
    _Atomic int last_which;
    uint32_t last_limit;
    /* the application */
    uint32_t pauses;
    bool last_paused;
    bool not_ready;
    int64_t held_us; /* for how long PAY is held */
    struct bs_hist calls, waits, settles;
};
extern struct fake fake;

/* A new API with three queues (MONEY, NOTE, PAY), one token for each role (named and spelt as the
 * role, "tok-service" …) and "tok-pay", a service token of PAY only. */
void fake_start(void);
/* The same while the store cannot be opened for reading. */
void fake_start_with(bs_rc open_rc);
void fake_stop(void);

/* A request, ready to be sent; freed by fake_free. target may have a query: "/v1/tasks?limit=1". */
struct fake_request *fake_request(enum bs_method method, const char *target, const char *token,
                                  struct bs_str body);
void fake_header(struct fake_request *q, const char *name, const char *value);
/* Through the API, until it is answered. */
void fake_send(struct fake_request *q);
/* Only the first half: what waits, still waits. */
void fake_begin(struct fake_request *q);
/* Waits (at most 5 s) for bs_http_ready, then does what the server does. */
void fake_finish(struct fake_request *q);
void fake_wait_ready(struct fake_request *q);
void fake_let_go(bs_rc rc);
void fake_free(struct fake_request *q);
/* All in one; the answer's status. The request stays in *ret when it is not NULL. */
int fake_ask(enum bs_method method, const char *target, const char *token, const char *body,
             struct fake_request **ret);
const char *fake_answered(const struct fake_request *q, const char *name);
/* The text of a member of the JSON answer: a string's text, else its bytes; "" when absent. */
struct bs_str fake_member(struct fake_request *q, const char *name);
