/* What is kept, and the one way to change it: apply(ops), one re-runnable transaction. Ops carry
 * every input (ids, times, tokens, seeds), so the same ops may be run again after a lost answer and
 * give their first results. Reads have handles of their own. A handle belongs to one thread.
 * Returns errors, never logs. */
#pragma once

#include "base/arena.h"
#include "core/decide.h"
#include "core/queue.h"
#include "core/task.h"
#include "sys/crypto.h"

struct bs_store;
struct bs_db; /* db/db.h */

/* ---- opening
 * ------------------------------------------------------------------------------------------------
 */

enum bs_store_mode {
    BS_STORE_WRITER, /* takes the store's lock, migrates an empty store, refuses a newer or damaged
                        one */
    BS_STORE_READER, /* own connection for reads beside a writer of this process */
};

struct bs_store_options {
    const char *url; /* "sqlite:PATH" */
    enum bs_store_mode mode;
    bool migrate; /* WRITER: also bring an older store up to date (else BS_E_REFUSED names `backstop
                     migrate`) */
    int64_t cache_kib;         /* 0: the default (32 MiB writer, 2 MiB reader) */
    struct bs_span read_limit; /* READER: longest statement; 0: 5 s            */
    struct bs_db
        *db; /* tests: a driver to use instead of opening url (taken over); NULL otherwise */
};

/* BS_E_REFUSED: locked by another process, newer, or needing migration; BS_E_CORRUPT: not a store
 * or damaged; BS_E_UNAVAILABLE: cannot be opened. */
BS_NODISCARD bs_rc bs_store_open(const struct bs_store_options *o, struct bs_store **ret,
                                 struct bs_err *err);
void bs_store_close(struct bs_store *s);
/* Schema version of the store and of this program. */
int32_t bs_store_version(struct bs_store *s);
extern const int32_t bs_store_program_version;
/* Whole check (check-store): integrity of the file, states against the closed table, keys against
 * tasks, figures against rows. Each finding is one line into report; BS_OK with an empty report is
 * a sound store. */
BS_NODISCARD bs_rc bs_store_check(struct bs_store *s, struct bs_buf *report, struct bs_err *err);
/* A copy of the store as it is at one instant, in a new file (0600) that can be served; others may
 * write meanwhile, and their log grows until it is done. Looked through and on stable storage
 * before it gets its name; nothing is left behind on failure. BS_E_CONFLICT: the file, or a log of
 * one by that name, is there. */
struct bs_backup {
    int64_t bytes, tasks;
};
BS_NODISCARD bs_rc bs_store_backup(struct bs_store *s, const char *file, struct bs_backup *ret,
                                   struct bs_err *err);
/* WAL checkpoint without blocking the writer (the maintenance thread's own handle). */
BS_NODISCARD bs_rc bs_store_checkpoint(struct bs_store *s, int64_t *ret_wal_bytes_left,
                                       struct bs_err *err);

/* ---- operations
 * --------------------------------------------------------------------------------------------- */

#define BS_OP_LIST(X)                                                                              \
    X(SUBMIT)                                                                                      \
    X(CLAIM)                                                                                       \
    X(FINISH)                                                                                      \
    X(RENEW)                                                                                       \
    X(REAP)                                                                                        \
    X(ORPHANS)                                                                                     \
    X(ACT)                                                                                         \
    X(QUEUE_PAUSE)                                                                                 \
    X(TOKEN_ADD)                                                                                   \
    X(TOKEN_REVOKE)                                                                                \
    X(ALERT)                                                                                       \
    X(ALERT_CLEAR) X(ALERT_PLAN) X(ALERT_TOLD) X(ALERT_RECORD) X(STOPPED) X(ARCHIVE) X(PURGE)
#define BS_OP_ENUM(name) BS_OP_##name,
enum bs_op_kind { BS_OP_LIST(BS_OP_ENUM) BS_OP_KIND_COUNT };

enum bs_submitted {
    BS_SUBMITTED_CREATED,
    BS_SUBMITTED_DUPLICATE_REQUEST, /* same request_id, same content: task_id is the first   */
    BS_SUBMITTED_DUPLICATE_EFFECT,  /* same effect_key, same content: linked, task_id first  */
    BS_SUBMITTED_CONFLICT_REQUEST,  /* same request_id, other content: nothing changed but an alert
                                     */
    BS_SUBMITTED_CONFLICT_EFFECT,   /* same effect_key, other content: likewise; where no caller
                                       waits, a MANUAL task */
};

struct bs_op_submit {
    struct bs_task *task; /* checked by core; id set; becomes the row */
    struct bs_sha256 request_fp, effect_fp;
    bool caller_waits;
    enum bs_submitted ret_what;
    int64_t ret_task_id;
};

/* One task under lease with memory of its own; the receiver frees it. */
struct bs_leased {
    struct bs_leased *next;
    struct bs_arena arena;
    struct bs_task task;
};
void bs_leased_free(struct bs_leased *l);

/* Tasks whose business object is busy are put aside and woken by the end of its holder. Suspects
 * that are due but over their limit count neither as "more" nor as due: whoever ends one asks
 * again. */
struct bs_op_claim {
    struct bs_str biz_type;
    struct bs_str claim_id; /* unique; becomes locked_by */
    uint32_t limit;
    uint32_t suspects_limit; /* at most so many tasks with crash_count ≥ 2 */
    bool from_below;         /* the lowest priority first, so that a flood above starves nobody */
    struct bs_time lease_until;
    int64_t token_floor;         /* store time in µs */
    struct bs_leased *ret_tasks; /* in claim order; the caller's */
    uint32_t ret_n;
    uint32_t ret_set_aside; /* whose business object is busy */
    bool ret_more; /* more is due now                                                          */
    struct bs_time
        ret_next_due; /* when !ret_more: the earliest due time of the queue, BS_NEVER without any */
};

struct bs_op_finish {
    const struct bs_task *task; /* as leased: id, attempt_no, lease_token and the counters */
    struct bs_outcome outcome;
    const struct bs_policy *policy;
    uint64_t seed;
    struct bs_str node;
    struct bs_settlement ret_settled; /* meaningful when rc is BS_OK */
};

struct bs_op_renew {
    int64_t task_id, token;
    struct bs_time until;
};

struct bs_op_reap {
    uint32_t limit;
    struct bs_str node;
    uint32_t ret_waiting, ret_manual; /* taken over; sent to a person */
    bool ret_more;
};

/* Open tasks of queues that nobody has configured for `after` become MANUAL(NO_HANDLER). */
struct bs_op_orphans {
    const struct bs_queues *queues;
    struct bs_span after;
    uint32_t limit;
    uint32_t ret_manual;
    bool ret_more;
};

struct bs_op_act {
    int64_t task_id;
    enum bs_action action;
    struct bs_str reason, conclusion, operator;
    int64_t expected_version; /* 0: not given */
    const struct bs_policy *policy;
    bool ret_pending;        /* 202: waits for the end of the running call */
    struct bs_task ret_task; /* hot fields after it (no text but static ones) */
};

struct bs_op_queue_pause {
    struct bs_str biz_type, reason, operator;
    bool paused;
    bool known; /* only a queue that the store has a row of: NOT_FOUND otherwise */
};

struct bs_op_token_add {
    struct bs_str name, role, queues; /* queues: comma-separated, empty: all */
    struct bs_sha256 hash;
    struct bs_str operator, reason; /* reason: may be empty */
};

struct bs_op_token_revoke {
    struct bs_str name, operator, reason; /* reason: may be empty */
};

/* One alert_event; the same kind and subject while open is counted, not repeated. */
struct bs_op_alert {
    struct bs_str kind, subject, biz_type, message;
    int64_t task_id; /* 0: none                                                     */
    bool condition;  /* it lasts until the rules end it: while it is open nothing changes */
};

/* Ends the open alert of this kind and subject; nothing without one. */
struct bs_op_alert_clear {
    struct bs_str kind, subject, message;
    bool tell;                   /* that it recovered is news for the deliverers             */
    struct bs_time unless_after; /* not when something came after this instant; 0: in any case */
};

/* ---- who is told of alerts ---- */

/* One alert, one phase, one deliverer. */
struct bs_delivery {
    int64_t alert_id;
    enum bs_alert_phase phase;
    struct bs_str deliverer;
    enum bs_delivery_state state;
    int64_t attempts;
    struct bs_time next_at;
    struct bs_str code, message; /* of the last try; empty: none */
    struct bs_time created_at, sent_at;
};

/* The alert's phases in the set `phases` are told to each of the deliverers, from `due` on. */
struct bs_op_alert_plan {
    int64_t alert_id;
    uint32_t phases;
    const struct bs_str *deliverers;
    uint32_t deliverers_n;
    struct bs_time due;
};

/* What became of deliveries that were pending: state, attempts, next_at, code, message, sent_at as
 * given. */
struct bs_op_alert_told {
    const struct bs_delivery *items;
    uint32_t n;
};

/* An alert that was told while the store took no writes; it has ended. `id` of the operation is its
 * id. */
struct bs_op_alert_record {
    struct bs_str kind, subject, message, recovered_message;
    struct bs_time first_at, recovered_at;
    const struct bs_delivery *raised; /* who was told of its begin, or is to be */
    uint32_t raised_n;
};

/* The queue could not run from … to …: paused, behind a breaker, or (biz_type empty: all queues)
 * the process was down. The same `from` again makes it longer, never shorter. max_age does not
 * count such time. */
struct bs_op_stopped {
    struct bs_str biz_type;
    struct bs_time from, to;
};

/* One slice, in the order of ids: finished tasks that have been left alone since `before` move to
 * history (ARCHIVE), or are deleted from there with payload and log (PURGE); never what is open or
 * in MANUAL, never keys, never the audit. */
struct bs_op_slice {
    struct bs_time before;
    int64_t after_id;     /* where the last slice ended; 0: from the oldest */
    uint32_t limit;       /* rows looked at, at most                        */
    uint32_t ret_moved;   /* a re-run counts nothing                        */
    int64_t ret_after_id; /* for the next slice                             */
    bool ret_more;
};

struct bs_op {
    enum bs_op_kind kind;
    int64_t id;         /* own id: of the task for SUBMIT, of the log or audit row for the others */
    struct bs_time now; /* store time when it was made */
    bool rerun;         /* set by the committer when an earlier answer was lost */
    bs_rc rc;           /* its own result: a bad row fails alone */
    struct bs_err err;  /* meaningful when rc is not BS_OK */
    union {
        struct bs_op_submit submit;
        struct bs_op_claim claim;
        struct bs_op_finish finish;
        struct bs_op_renew renew;
        struct bs_op_reap reap;
        struct bs_op_orphans orphans;
        struct bs_op_act act;
        struct bs_op_queue_pause queue_pause;
        struct bs_op_token_add token_add;
        struct bs_op_token_revoke token_revoke;
        struct bs_op_alert alert;
        struct bs_op_alert_clear alert_clear;
        struct bs_op_alert_plan alert_plan;
        struct bs_op_alert_told alert_told;
        struct bs_op_alert_record alert_record;
        struct bs_op_stopped stopped;
        struct bs_op_slice slice; /* ARCHIVE, PURGE */
    };
};

/* One transaction for all of them. BS_OK: committed, each op has its rc (OK, STALE, CONFLICT,
 * NOT_FOUND, INVALID …). BS_E_BUSY, BS_E_UNAVAILABLE, BS_E_CORRUPT: nothing happened. BS_E_UNKNOWN:
 * the commit's answer was lost; run the same again with rerun set. A row that the database refuses
 * fails alone (found by bisection). */
BS_NODISCARD bs_rc bs_store_apply(struct bs_store *s, struct bs_op *const *ops, uint32_t n,
                                  struct bs_err *err);

/* What the last committed apply made due; for waking the scheduler. */
struct bs_hint {
    char biz_type[33];
    struct bs_time due;
};
struct bs_hints {
    struct bs_hint items[32];
    uint32_t n;
    bool overflowed; /* more queues than that: look at all */
};
const struct bs_hints *bs_store_hints(struct bs_store *s);

/* ---- reading
 * -------------------------------------------------------------------------------------------------
 */

/* One whole task with payload and last result. BS_E_NOT_FOUND. */
BS_NODISCARD bs_rc bs_store_task(struct bs_store *s, int64_t id, struct bs_arena *a,
                                 struct bs_task *ret, struct bs_err *err);

struct bs_task_filter {
    enum bs_state state; /* BS_STATE_NONE: any */
    enum bs_source source;
    struct bs_str biz_type, order_no, payment_no, channel_trade_no, refund_no, request_id, biz_id,
        error_code;
    struct bs_time created_from, created_to; /* 0: open */
    int64_t before_id; /* cursor: newest first, ids smaller than this; 0: from the newest */
    uint32_t limit;    /* 1–200 */
    const struct bs_str *queues; /* only these (a token's restriction); NULL: all */
    uint32_t queues_n;
};

struct bs_task_page {
    struct bs_task *items; /* without payload, extra_data, result_snapshot */
    uint32_t n;
    int64_t next_before_id; /* 0: the end was reached */
    struct bs_time
        searched_to; /* set when the page is partial because the scan limit was reached */
};
BS_NODISCARD bs_rc bs_store_tasks(struct bs_store *s, const struct bs_task_filter *f,
                                  struct bs_arena *a, struct bs_task_page *ret, struct bs_err *err);

/* One transition as the log API shows it (a stored attempt row gives its claim and its end). */
struct bs_log_item {
    struct bs_time at;
    const char *event;
    enum bs_state from, to;
    int32_t attempt_no; /* 0: none */
    struct bs_str outcome, code, message, effect, operator, reason, node, excerpt;
    int http_status;
    int64_t duration_ms; /* -1: none */
    int64_t token;       /* 0: none */
};
struct bs_log_page {
    struct bs_log_item *items; /* oldest first */
    uint32_t n;
    int64_t next_after; /* 0: the end */
};
BS_NODISCARD bs_rc bs_store_log(struct bs_store *s, int64_t task_id, int64_t after, uint32_t limit,
                                struct bs_arena *a, struct bs_log_page *ret, struct bs_err *err);

/* From queue_stat only, never by scanning tasks. */
struct bs_stat_row {
    struct bs_str biz_type;
    enum bs_state state;
    struct bs_str currency; /* empty: tasks without amount */
    int64_t count, amount;
    int64_t unknown; /* of them with outcome_unknown */
};
BS_NODISCARD bs_rc bs_store_stats(struct bs_store *s, struct bs_arena *a, struct bs_stat_row **ret,
                                  uint32_t *ret_n, struct bs_err *err);

/* The latest instant that the store knows of, to a few seconds; 0: of none. Store time goes on from
 * it after a restart, unless it is more than bs_time_high_trusted ahead: then some clock was wrong.
 */
BS_NODISCARD bs_rc bs_store_time_high(struct bs_store *s, struct bs_time *ret, struct bs_err *err);
static const struct bs_span bs_time_high_trusted = { INT64_C(86400) * 1000000 };

struct bs_queue_row {
    struct bs_str biz_type;
    bool paused;
    struct bs_str reason, operator;
    struct bs_time at;
    struct bs_time oldest_due;    /* 0: nothing due                            */
    struct bs_time oldest_manual; /* since when the first waits for a person; 0: none does */
};
BS_NODISCARD bs_rc bs_store_queues(struct bs_store *s, struct bs_arena *a,
                                   struct bs_queue_row **ret, uint32_t *ret_n, struct bs_err *err);

struct bs_alert_row {
    int64_t id;
    struct bs_str kind, subject, biz_type, message;
    int64_t task_id, count; /* task_id: of the last event; 0: none */
    struct bs_time first_at, last_at;
    bool open;
    struct bs_time recovered_at; /* 0: it is open */
    struct bs_str recovered_message;
    uint32_t unplanned; /* phases that nobody has been planned for */
};
enum bs_alert_which {
    BS_ALERTS_ALL,
    BS_ALERTS_OPEN,
    BS_ALERTS_ENDED,
    BS_ALERTS_UNPLANNED, /* oldest first, without a cursor */
};
struct bs_alert_filter {
    enum bs_alert_which which;
    int64_t before_id; /* newest first, ids smaller than this; 0: from the newest */
    uint32_t limit;
};
BS_NODISCARD bs_rc bs_store_alerts(struct bs_store *s, const struct bs_alert_filter *f,
                                   struct bs_arena *a, struct bs_alert_row **ret, uint32_t *ret_n,
                                   struct bs_err *err);
/* All of one alert, by deliverer and phase. */
BS_NODISCARD bs_rc bs_store_deliveries(struct bs_store *s, int64_t alert_id, struct bs_arena *a,
                                       struct bs_delivery **ret, uint32_t *ret_n,
                                       struct bs_err *err);

/* A pending delivery with its alert. */
struct bs_delivery_due {
    struct bs_alert_row alert;
    enum bs_alert_phase phase;
    int64_t attempts;
    struct bs_time next_at, created_at;
};
/* What may be tried at `now`, and what has not been tried yet: oldest first, a recovery never
 * before its begin. */
BS_NODISCARD bs_rc bs_store_deliveries_due(struct bs_store *s, struct bs_str deliverer,
                                           struct bs_time now, uint32_t limit, struct bs_arena *a,
                                           struct bs_delivery_due **ret, uint32_t *ret_n,
                                           struct bs_err *err);
struct bs_deliverer_row {
    struct bs_str name;
    int64_t pending;
};
/* Deliverers that something is pending for, configured or not. */
BS_NODISCARD bs_rc bs_store_deliverers(struct bs_store *s, struct bs_arena *a,
                                       struct bs_deliverer_row **ret, uint32_t *ret_n,
                                       struct bs_err *err);

struct bs_token_row {
    int64_t id;
    struct bs_str name, role, queues;
    struct bs_sha256 hash;
    struct bs_time created_at, revoked_at;
};
/* version grows with every change of a token, so that a cache needs one small read. */
BS_NODISCARD bs_rc bs_store_tokens(struct bs_store *s, struct bs_arena *a,
                                   struct bs_token_row **ret, uint32_t *ret_n, int64_t *ret_version,
                                   struct bs_err *err);
BS_NODISCARD bs_rc bs_store_tokens_version(struct bs_store *s, int64_t *ret, struct bs_err *err);

struct bs_audit_row {
    int64_t id;
    struct bs_time at;
    struct bs_str operator, action, object, reason, conclusion, order_no, before,
        after; /* before, after: JSON texts */
};
BS_NODISCARD bs_rc bs_store_audit(struct bs_store *s, int64_t before_id, uint32_t limit,
                                  struct bs_arena *a, struct bs_audit_row **ret, uint32_t *ret_n,
                                  struct bs_err *err);
