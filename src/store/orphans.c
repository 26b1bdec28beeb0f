/* Tasks of queues that nobody has configured: after a while a person gets them. */
#include "store/inner.h"

enum { NAMES_MAX = 256 };

static bool waits(enum bs_state s)
{
    return s == BS_WAITING || s == BS_RETRY;
}

static bs_rc park(struct bs_store *s, struct bs_op *op, const struct bs_task *t, struct bs_err *err)
{
    struct bs_step step = bs_fsm_step(t->state, BS_EV_NO_HANDLER);
    int64_t changes = 0;
    bool is_new = false;
    const struct log_row row = { .task_id = t->id,
                                 .id = op->id,
                                 .at = op->now,
                                 .event = bs_event_name(BS_EV_NO_HANDLER),
                                 .from = t->state,
                                 .to = step.to,
                                 .message = BS_STR("no queue of this name is configured"),
                                 .duration_ms = -1,
                                 .version = t->version + 1 };

    if (!waits(t->state) || step.to != BS_MANUAL)
        return bs_fail(err, BS_E_CORRUPT, "task %lld is due in %s", (long long)t->id,
                       bs_state_name(t->state));
    BS_TRY(RUN(s, BS_SQL_TASK_ACT, &changes, err, bs_i64(t->id), bs_i64(t->version),
               textz(bs_state_name(t->state)), textz(bs_state_name(step.to)),
               bs_i64(t->retry_count), bs_i64(t->crash_count), bs_i64(t->defer_count),
               bs_i64(t->not_found_count), time_or_null(t->first_not_found_at),
               bs_i64(t->outcome_unknown), bs_text(BS_STR("NO_HANDLER")), bs_null(), bs_null(),
               bs_i64(op->now.us), bs_i64(0), bs_i64(0)));
    if (changes == 0)
        return bs_fail(err, BS_E_CORRUPT, "task %lld cannot be parked", (long long)t->id);
    BS_TRY(stat_move(s, t, step.to, t->outcome_unknown, err));
    BS_TRY(log_write(s, &row, &is_new, err));
    op->orphans.ret_manual++;
    return t->call_until.us ? block_free_all(s, t->serial_key, op->now, err)
                            : block_free_next(s, t->serial_key, t->biz_type, op->now, err);
}

static bs_rc read_rows(struct bs_store *s, enum bs_sql sql, struct bs_str biz_type, uint32_t limit,
                       struct bs_task *ret, uint32_t *ret_n, struct bs_err *err)
{
    struct bs_val cols[TASK_COLS];
    bool more = true;

    BS_TRY(RUN(s, sql, NULL, err, bs_text(biz_type), bs_i64(limit)));
    while (*ret_n < limit) {
        BS_TRY(next(s, sql, cols, TASK_COLS, &more, err));
        if (!more)
            break;
        BS_TRY(row_read(cols, TASK_COLS, &s->scratch, &ret[(*ret_n)++], err));
    }
    return BS_OK;
}

/* Parking one may free the next of its key, so this looks again until nothing is left or the slice
 * is full. */
static bs_rc park_queue(struct bs_store *s, struct bs_op *op, struct bs_str biz_type,
                        struct bs_err *err)
{
    struct bs_op_orphans *o = &op->orphans;
    uint32_t before = o->ret_manual;

    for (;;) {
        uint32_t left = o->limit - o->ret_manual, n = 0;
        struct bs_task *rows = BS_NEW_ARRAY(&s->scratch, struct bs_task, left + 1);

        if (left == 0) {
            o->ret_more = true;
            break;
        }
        if (!rows)
            return bs_fail(err, BS_E_NOMEM, "no memory for %u tasks", left);
        BS_TRY(read_rows(s, BS_SQL_ORPHAN_SCAN, biz_type, left, rows, &n, err));
        BS_TRY(read_rows(s, BS_SQL_ORPHAN_SCAN_SUSPECTS, biz_type, left, rows, &n, err));
        if (n == 0)
            break;
        for (uint32_t i = 0; i < n; i++)
            BS_TRY(park(s, op, &rows[i], err));
    }
    if (o->ret_manual == before)
        return BS_OK;
    return alert_raise(
        s, op, "no_handler",
        &(struct bs_op_alert){ .subject = biz_type,
                               .biz_type = biz_type,
                               .message = BS_STR("open tasks of a queue that is not configured") },
        false, err);
}

/* How long the queue has been without a configuration; the first look starts the clock. */
static bs_rc one_queue(struct bs_store *s, struct bs_op *op, struct bs_str biz_type,
                       struct bs_err *err)
{
    struct bs_val state[5];
    bool found = false;
    bool configured = bs_queue_find(op->orphans.queues, biz_type) != NULL;

    BS_TRY(ONE(s, BS_SQL_QUEUE_STATE_GET, state, &found, err, bs_text(biz_type)));
    bool marked = found && state[4].type == BS_VAL_I64;
    struct bs_time since = { marked ? state[4].i : 0 };
    if (configured)
        return marked ? RUN(s, BS_SQL_QUEUE_ORPHAN_MARK, NULL, err, bs_text(biz_type), bs_null())
                      : BS_OK;
    if (!marked)
        return RUN(s, BS_SQL_QUEUE_ORPHAN_MARK, NULL, err, bs_text(biz_type), bs_i64(op->now.us));
    if (bs_time_diff(op->now, since).us < op->orphans.after.us)
        return BS_OK;
    return park_queue(s, op, biz_type, err);
}

static bs_rc read_names(struct bs_store *s, enum bs_sql sql, struct bs_str *names, uint32_t *n,
                        struct bs_err *err)
{
    struct bs_val cols[6];
    bool more = true;

    BS_TRY(run(s, sql, NULL, 0, NULL, err));
    while (*n < NAMES_MAX) {
        BS_TRY(next(s, sql, cols, BS_COUNT(cols), &more, err));
        if (!more)
            break;
        names[(*n)++] = bs_arena_str(&s->scratch, cols[0].s);
    }
    return s->scratch.failed ? bs_fail(err, BS_E_NOMEM, "no memory for the queues") : BS_OK;
}

bs_rc orphans_apply(struct bs_store *s, struct bs_op *op, struct bs_err *err)
{
    struct bs_str *names = BS_NEW_ARRAY(&s->scratch, struct bs_str, NAMES_MAX);
    uint32_t n = 0;

    op->orphans.ret_manual = 0;
    op->orphans.ret_more = false;
    if (!names)
        return bs_fail(err, BS_E_NOMEM, "no memory for the queues");
    /* Names from the figures: tasks are never scanned for this. */
    BS_TRY(read_names(s, BS_SQL_QUEUE_OPEN, names, &n, err));
    BS_TRY(read_names(s, BS_SQL_QUEUE_MARKED, names, &n, err));
    for (uint32_t i = 0; i < n; i++)
        BS_TRY(one_queue(s, op, names[i], err));
    return BS_OK;
}
