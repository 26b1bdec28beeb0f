/* What a task is: the names of its states and events, its sources, its row in memory. Pure. */
#pragma once

#include "base/base.h"
#include "base/money.h"
#include "base/time.h"

/* The order is the order of the columns in docs/STATES.md. */
#define BS_STATE_LIST(X) X(WAITING) X(PROCESSING) X(RETRY) X(SUCCESS) X(FAILED) X(MANUAL) X(CLOSED)

#define BS_STATE_ENUM(name) BS_##name,
enum bs_state { BS_STATE_NONE = 0, BS_STATE_LIST(BS_STATE_ENUM) BS_STATE_COUNT };

/* Every event of the state table. What each means is in core/fsm.c beside the table. */
#define BS_EVENT_LIST(X)                                                                           \
    X(SUBMIT, "submit")                                                                            \
    X(PARK, "park")                                                                                \
    X(CLAIM, "claim")                                                                              \
    X(SUCCEEDED, "succeeded")                                                                      \
    X(ALREADY_FINISHED, "already_finished")                                                        \
    X(FAILED, "failed")                                                                            \
    X(FAILED_LAST, "failed_last")                                                                  \
    X(ESCALATE, "escalate")                                                                        \
    X(UNKNOWN, "unknown")                                                                          \
    X(UNKNOWN_LAST, "unknown_last")                                                                \
    X(NEEDS_PERSON, "needs_person")                                                                \
    X(NOT_PROCESSED, "not_processed")                                                              \
    X(RELEASED_UNSENT, "released_unsent")                                                          \
    X(RELEASED_SENT, "released_sent")                                                              \
    X(LEASE_EXPIRED, "lease_expired")                                                              \
    X(WORKER_LOST, "worker_lost")                                                                  \
    X(ASK_CLOSE, "ask_close")                                                                      \
    X(PENDING_CLOSED, "pending_closed")                                                            \
    X(PENDING_MANUAL, "pending_manual")                                                            \
    X(HOLD, "hold")                                                                                \
    X(UNHOLD, "unhold")                                                                            \
    X(UNHOLD_RETRY, "unhold_retry")                                                                \
    X(RUN_NOW, "run_now")                                                                          \
    X(NO_HANDLER, "no_handler")                                                                    \
    X(CLOSE, "close")                                                                              \
    X(RETRY_FRESH, "retry_fresh")                                                                  \
    X(RESOLVE, "resolve")

#define BS_EVENT_ENUM(name, text) BS_EV_##name,
enum bs_event { BS_EVENT_LIST(BS_EVENT_ENUM) BS_EVENT_COUNT };

#define BS_SOURCE_LIST(X)                                                                          \
    X(CALLBACK)                                                                                    \
    X(API) X(REDIS) X(INBOX) X(OUTBOX) X(RECON) X(QUERY) X(PATROL) X(FOLLOW_UP) X(MANUAL)

#define BS_SOURCE_ENUM(name) BS_SRC_##name,
enum bs_source { BS_SRC_NONE = 0, BS_SOURCE_LIST(BS_SOURCE_ENUM) BS_SOURCE_COUNT };

/* Text forms: "WAITING", "lease_expired", "CALLBACK"; NULL-free, static. Parsing gives NONE / COUNT
 * for unknown text. */
const char *bs_state_name(enum bs_state s);
enum bs_state bs_state_parse(struct bs_str s);
const char *bs_event_name(enum bs_event e);
enum bs_event bs_event_parse(struct bs_str s); /* BS_EVENT_COUNT when unknown */
const char *bs_source_name(enum bs_source s);
enum bs_source bs_source_parse(struct bs_str s);

/* What a close that waits for the end of a call will become. */
enum bs_pending { BS_PENDING_NONE = 0, BS_PENDING_CLOSE, BS_PENDING_HOLD, BS_PENDING_RESOLVE };

/* Why a row has no due time although it waits. */
enum bs_blocked { BS_BLOCKED_NONE = 0, BS_BLOCKED_SERIAL };

enum { BS_TASK_NO_MAX = 19 };

/* What the door filled in because the submission did not say it, and what the configuration or the
 * source decides; never stored. */
enum bs_defaulted {
    BS_DEFAULTED_EFFECT_KEY = 1 << 0,
    BS_DEFAULTED_SERIAL_KEY = 1 << 1,
    BS_DEFAULTED_MAX_RETRY_COUNT = 1 << 2,
};

/* A task's row. All slices are borrowed from whoever filled it (normally one arena). Empty text:
 * not set. */
struct bs_task {
    int64_t id; /* 63 bits: time · node · sequence; its decimal text is task_no */
    struct bs_str request_id, biz_type, merchant_no, biz_id, effect_key, serial_key;
    struct bs_str order_no, payment_no, channel, channel_trade_no, refund_no;
    enum bs_source source;
    int64_t parent_id;     /* 0: none */
    struct bs_money money; /* currency "" when no amount */

    enum bs_state state;
    int32_t priority; /* 0–3, lower first */
    int32_t retry_count, max_retry_count;
    int32_t attempt_no;      /* claims so far; never goes back */
    int32_t crash_count;     /* leases lost since the last fresh budget */
    int32_t defer_count;     /* executions in a row that spent no budget */
    int32_t not_found_count; /* explicit "order not found" answers in a row */
    struct bs_time first_not_found_at;
    bool outcome_unknown; /* sticky: only success or a look-up's verdict clears it */
    struct bs_str last_outcome, last_error_code, last_error_msg;
    struct bs_str manual_code; /* meaningful in MANUAL and after it: why a person was asked */
    struct bs_str conclusion;  /* meaningful in CLOSED */
    enum bs_pending pending;

    struct bs_time next_execute_at; /* when it may run next; kept while blocked */
    struct bs_time due_at;          /* next_execute_at while it can be claimed, else not set */
    enum bs_blocked blocked;
    struct bs_time last_execute_at;
    /* A call that was cut after sending may be at work until then: nothing of its business object
     * runs before. Set by released_sent, gone with the next claim. */
    struct bs_time call_until;

    struct bs_str locked_by; /* claim id */
    struct bs_time locked_at, locked_until;
    int64_t lease_token; /* fencing token: only grows, kept after the lease */

    /* How long it could have run by now; counted by the store for a decision under max_age, else 0.
     */
    struct bs_span age;

    int64_t version;          /* +1 per transition */
    struct bs_str created_by; /* token or operator name */
    struct bs_time created_at, updated_at;

    struct bs_str
        payload; /* request_snapshot: exact bytes; p = NULL when none was given or not loaded */
    bool payload_is_json;          /* given as `payload` (else payload_base64) */
    struct bs_str extra_data;      /* JSON object text, or empty */
    uint32_t defaulted;            /* enum bs_defaulted bits; meaningful at the door only */
    struct bs_str result_snapshot; /* excerpt of the last reply; loaded by reads of one task only */
};
