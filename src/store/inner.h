/* What the files of store/ share with each other and with nobody else: the handle, one change of
 * state at a time, the small writers that every operation uses. One thread a handle. */
#pragma once

#include "base/plant.h"
#include "db/db.h"
#include "store/store.h"

/* ---- figures: changes of one transaction, by group ---- */

enum { STAT_GROUPS = 256, STAT_SLOTS = 512 };

struct stat_group {
    char biz_type[33], currency[4];
    uint8_t biz_type_n, currency_n;
    enum bs_state state;
    int64_t n, amount, unknown; /* wrapping: what is added and taken away again is exact */
};

struct stats {
    struct stat_group groups[STAT_GROUPS];
    uint16_t slots[STAT_SLOTS]; /* index + 1 into groups; 0: free */
    uint32_t n;
};

enum { INSERT_ROWS = 16, INSERT_COLS = 28, PAYLOAD_COLS = 4 };

/* ---- spans in which a queue could not run, as one transaction sees them ---- */

enum { STOPS_QUEUES = 8 };

struct stop_span {
    struct bs_time from, to;
};

struct stops {
    char biz_type[33];
    bool loaded;
    struct bs_time since;    /* what ended before is left out */
    struct stop_span *items; /* in the order of time, without overlaps; in stops_memory */
    uint32_t n;
};

/* An operation and where it stood, so that sorting by a key keeps the order of equals. */
struct order {
    struct bs_op *op;
    uint32_t at;
    bool create; /* SUBMIT: its keys are taken, the row is to be inserted */
};

struct bs_store {
    uint32_t magic;
    enum bs_store_mode mode;
    struct bs_db *db;
    int lock_fd;     /* -1: none */
    char *lock_path; /* NULL: none */
    int32_t version;
    struct stats stats;
    struct bs_hints hints; /* of the last committed apply; while one runs, of that one */
    struct order *order;   /* scratch, as many as the largest batch so far */
    uint32_t order_cap;
    struct bs_val task_args[INSERT_ROWS * INSERT_COLS];
    struct bs_val payload_args[INSERT_ROWS * PAYLOAD_COLS];
    uint32_t task_rows, payload_rows;
    struct stops stops[STOPS_QUEUES];
    uint32_t stops_next; /* which of them gives way to another queue */
    struct bs_arena stops_memory;
    struct bs_arena scratch; /* rows read by one operation; emptied after it */
#ifdef BS_PLANTED
    void (*before_commit)(void *ctx); /* planted bug ACK_BEFORE_COMMIT */
    void *before_commit_ctx;
#endif
};

enum { STORE_MAGIC = 0x53544f52, NODE = 0 };

/* ---- statements ---- */

static inline bs_rc run(struct bs_store *s, enum bs_sql sql, const struct bs_val *args, uint32_t n,
                        int64_t *ret_changes, struct bs_err *err)
{
    return s->db->ops->run(s->db, sql, args, n, ret_changes, err);
}

static inline bs_rc next(struct bs_store *s, enum bs_sql sql, struct bs_val *cols, uint32_t max,
                         bool *ret_more, struct bs_err *err)
{
    return s->db->ops->next(s->db, sql, cols, max, ret_more, err);
}

#define RUN(s, sql, changes, err, ...)                                                             \
    run((s), (sql), (const struct bs_val[]){ __VA_ARGS__ },                                        \
        (uint32_t)BS_COUNT(((const struct bs_val[]){ __VA_ARGS__ })), (changes), (err))

/* The one row of a statement that has at most one; *ret_found false: none. cols live until the next
 * run of the same statement. */
/* Before a transaction: the lock file is still the one that this process holds. */
BS_NODISCARD bs_rc store_keep_lock(struct bs_store *s, struct bs_err *err);
BS_NODISCARD bs_rc store_one(struct bs_store *s, enum bs_sql sql, const struct bs_val *args,
                             uint32_t n, struct bs_val *cols, uint32_t cols_n, bool *ret_found,
                             struct bs_err *err);
#define ONE(s, sql, cols, found, err, ...)                                                         \
    store_one((s), (sql), (const struct bs_val[]){ __VA_ARGS__ },                                  \
              (uint32_t)BS_COUNT(((const struct bs_val[]){ __VA_ARGS__ })), (cols),                \
              (uint32_t)BS_COUNT(cols), (found), (err))

static inline struct bs_val time_or_null(struct bs_time t)
{
    return t.us ? bs_i64(t.us) : bs_null();
}

static inline struct bs_val textz(const char *z)
{
    return z ? bs_text(bs_str_of(z)) : bs_null();
}

/* ---- rows (row.c) ---- */

enum { COL_DUE_AT = 35, TASK_COLS = 45, WHOLE_COLS = 48 };

/* Fills *ret from the columns of task_columns (and payload_columns when n is WHOLE_COLS); texts are
 * copied into a. BS_E_CORRUPT: a state or source that nobody knows; BS_E_NOMEM. */
BS_NODISCARD bs_rc row_read(const struct bs_val *cols, uint32_t n, struct bs_arena *a,
                            struct bs_task *ret, struct bs_err *err);
/* Bytes of all texts of a row, with their terminators and alignment. */
size_t row_bytes(const struct bs_val *cols, uint32_t n);
/* Live or in history. BS_E_NOT_FOUND when there is no such task. */
BS_NODISCARD bs_rc row_get(struct bs_store *s, int64_t id, bool whole, struct bs_arena *a,
                           struct bs_task *ret, struct bs_err *err);

/* ---- what goes with every change (event.c, stat.c, block.c) ---- */

struct log_row {
    int64_t task_id, id;
    struct bs_time at;
    const char *event;
    enum bs_state from, to; /* NONE: no transition */
    int32_t attempt_no;     /* 0: none */
    int64_t token;          /* 0: none */
    struct bs_time claimed_at;
    struct bs_str node, outcome, code, message, effect, excerpt, operator, reason, conclusion;
    int http_status;     /* 0: none */
    int64_t duration_ms; /* -1: none */
    bool via_failed;
    enum bs_pending pending;
    struct bs_time next_at;
    int64_t version; /* 0: none */
};

/* *ret_new false: the row was there already, so this is a re-run. */
BS_NODISCARD bs_rc log_write(struct bs_store *s, const struct log_row *row, bool *ret_new,
                             struct bs_err *err);
/* Slices live until the next run of the same statement. */
void log_row_read(const struct bs_val *cols, struct log_row *ret);
enum { LOG_COLS = 23 };
BS_NODISCARD bs_rc log_find(struct bs_store *s, int64_t task_id, int64_t id, struct log_row *ret,
                            bool *ret_found, struct bs_err *err);

/* `again`: it may have been counted before, so an operation that stands in the row is not counted
 * anew. Whoever knows that its event is new says false. */
BS_NODISCARD bs_rc alert_raise(struct bs_store *s, const struct bs_op *op, const char *kind,
                               const struct bs_op_alert *what, bool again, struct bs_err *err);
/* The alert that a settlement asks for; nothing without alert_kind. */
BS_NODISCARD bs_rc alert_settled(struct bs_store *s, const struct bs_op *op,
                                 const struct bs_task *t, const struct bs_settlement *d,
                                 const struct bs_outcome *o, struct bs_err *err);

struct audit_entry {
    struct bs_str operator, object, reason, conclusion, order_no, before, after;
    const char *action;
};
BS_NODISCARD bs_rc audit_write(struct bs_store *s, const struct bs_op *op,
                               const struct audit_entry *e, struct bs_err *err);
/* Whether this operation wrote its audit row before: it is a re-run. */
BS_NODISCARD bs_rc audit_was_written(struct bs_store *s, const struct bs_op *op, bool *ret_was,
                                     struct bs_err *err);

/* The task leaves or enters a state: by is -1 or 1. */
BS_NODISCARD bs_rc stat_add(struct bs_store *s, const struct bs_task *t, enum bs_state state,
                            bool unknown, int by, struct bs_err *err);
/* From its state in t to `to`. */
BS_NODISCARD bs_rc stat_move(struct bs_store *s, const struct bs_task *t, enum bs_state to,
                             bool unknown, struct bs_err *err);
BS_NODISCARD bs_rc stat_flush(struct bs_store *s, struct bs_err *err);
void stat_forget(struct bs_store *s);

void hint_add(struct bs_store *s, struct bs_str biz_type, struct bs_time due);

/* A holder of key left PROCESSING: the first blocked task of each queue may be claimed again. */
BS_NODISCARD bs_rc block_free_all(struct bs_store *s, struct bs_str key, struct bs_time now,
                                  struct bs_err *err);
/* A task of (key, queue) that could be claimed is gone: the next blocked one takes its place. */
BS_NODISCARD bs_rc block_free_next(struct bs_store *s, struct bs_str key, struct bs_str biz_type,
                                   struct bs_time now, struct bs_err *err);

/* ---- operations, inside the transaction ---- */

/* `batch` is a run of SUBMIT operations in their given order. */
BS_NODISCARD bs_rc submit_apply(struct bs_store *s, struct order *batch, uint32_t n,
                                struct bs_err *err);
BS_NODISCARD bs_rc claim_apply(struct bs_store *s, struct bs_op *op, struct bs_err *err);
BS_NODISCARD bs_rc finish_apply(struct bs_store *s, struct bs_op *op, struct bs_err *err);
BS_NODISCARD bs_rc renew_apply(struct bs_store *s, struct bs_op *op, struct bs_err *err);
BS_NODISCARD bs_rc reap_apply(struct bs_store *s, struct bs_op *op, struct bs_err *err);
BS_NODISCARD bs_rc orphans_apply(struct bs_store *s, struct bs_op *op, struct bs_err *err);
BS_NODISCARD bs_rc act_apply(struct bs_store *s, struct bs_op *op, struct bs_err *err);
BS_NODISCARD bs_rc queue_pause_apply(struct bs_store *s, struct bs_op *op, struct bs_err *err);
BS_NODISCARD bs_rc token_add_apply(struct bs_store *s, struct bs_op *op, struct bs_err *err);
BS_NODISCARD bs_rc token_revoke_apply(struct bs_store *s, struct bs_op *op, struct bs_err *err);
BS_NODISCARD bs_rc alert_apply(struct bs_store *s, struct bs_op *op, struct bs_err *err);
BS_NODISCARD bs_rc alert_clear_apply(struct bs_store *s, struct bs_op *op, struct bs_err *err);
BS_NODISCARD bs_rc alert_plan_apply(struct bs_store *s, struct bs_op *op, struct bs_err *err);
BS_NODISCARD bs_rc alert_told_apply(struct bs_store *s, struct bs_op *op, struct bs_err *err);
BS_NODISCARD bs_rc alert_record_apply(struct bs_store *s, struct bs_op *op, struct bs_err *err);
BS_NODISCARD bs_rc stopped_apply(struct bs_store *s, struct bs_op *op, struct bs_err *err);
BS_NODISCARD bs_rc archive_apply(struct bs_store *s, struct bs_op *op, struct bs_err *err);
BS_NODISCARD bs_rc purge_apply(struct bs_store *s, struct bs_op *op, struct bs_err *err);
void claim_forget(struct bs_op *op);

/* How long the task could have run since it was made, or since its last fresh budget: not while it
 * was blocked or held, its queue stopped, the process down. */
BS_NODISCARD bs_rc age_of(struct bs_store *s, const struct bs_task *t, struct bs_time now,
                          struct bs_span *ret, struct bs_err *err);
/* At the end of a transaction, and when a span comes. */
void stops_forget(struct bs_store *s);

/* A guarded change of a task that is leased: state, counters, keys of the lease, figures, log row,
 * alert, those it blocked. `t` is the task as it was; *ret_done false: the guard did not hold, and
 * nothing was written. */
struct settle {
    const struct bs_task *task;
    const struct bs_settlement *decided;
    const struct bs_outcome *outcome; /* NULL: the lease expired */
    struct bs_str node;
    struct bs_str conclusion; /* kept only when it ends CLOSED */
};
BS_NODISCARD bs_rc settle_write(struct bs_store *s, const struct bs_op *op, const struct settle *w,
                                bool *ret_done, struct bs_err *err);

/* Marks the operation's own result; the transaction goes on. */
#define OP_FAIL(op, code, ...) ((op)->rc = bs_fail(&(op)->err, (code), __VA_ARGS__))

#define STORE_CHECK(s) BS_ASSERT((s) && (s)->magic == STORE_MAGIC)
