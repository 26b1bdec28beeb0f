/* A person's action on one task: decision, guarded update, log, audit, in one transaction. */
#include "store/inner.h"
#include "json/write.h"

#include <stdio.h>

static bool waits(enum bs_state s)
{
    return s == BS_WAITING || s == BS_RETRY;
}

/* ---- before and after, for the audit ---- */

static bs_rc snapshot(struct bs_arena *a, const struct bs_task *t, struct bs_str *ret,
                      struct bs_err *err)
{
    static const char *const pending[] = { "none", "close", "hold", "resolve" };
    BS_CLEANUP(bs_buf_free) struct bs_buf out = { .max = 4096 };
    struct bs_json *j = bs_json_new(&out);

    if (!j)
        return bs_fail(err, BS_E_NOMEM, "no memory for an audit row");
    bs_json_open(j);
    bs_json_kstr(j, "task_status", bs_str_of(bs_state_name(t->state)));
    bs_json_kint(j, "retry_count", t->retry_count);
    bs_json_kint(j, "crash_count", t->crash_count);
    bs_json_kbool(j, "outcome_unknown", t->outcome_unknown);
    bs_json_kstr_or_null(j, "manual_code", t->manual_code);
    bs_json_kstr_or_null(j, "conclusion", t->conclusion);
    bs_json_kstr(j, "close_pending", bs_str_of(pending[t->pending & 3]));
    bs_json_ktime(j, "next_execute_at", t->next_execute_at);
    bs_json_kid(j, "version", t->version);
    bs_json_close(j);
    BS_TRY(bs_json_end(j, err));
    *ret = bs_arena_str(a, bs_buf_str(&out));
    return ret->p ? BS_OK : bs_fail(err, BS_E_NOMEM, "no memory for an audit row");
}

static bs_rc audit(struct bs_store *s, const struct bs_op *op, const struct bs_task *before,
                   const struct bs_task *after, struct bs_err *err)
{
    const struct bs_op_act *a = &op->act;
    char object[32];
    struct audit_entry e = { .operator= a->operator,
                             .action = bs_action_name(a->action),
                             .reason = a->reason,
                             .conclusion = a->conclusion,
                             .order_no = before->order_no };

    snprintf(object, sizeof(object), "task:%lld", (long long)before->id);
    e.object = bs_str_of(object);
    BS_TRY(snapshot(&s->scratch, before, &e.before, err));
    BS_TRY(snapshot(&s->scratch, after, &e.after, err));
    return audit_write(s, op, &e, err);
}

/* ---- the task as it will be ---- */

static struct bs_task after_of(const struct bs_op *op, const struct bs_task *t,
                               const struct bs_settlement *d)
{
    struct bs_task n = *t;

    n.state = d->to;
    n.retry_count = d->retry_count;
    n.crash_count = d->crash_count;
    n.defer_count = d->defer_count;
    n.not_found_count = d->not_found_count;
    n.first_not_found_at = d->first_not_found_at;
    n.outcome_unknown = d->outcome_unknown;
    n.pending = d->pending;
    if (d->manual_code)
        n.manual_code = bs_str_of(d->manual_code);
    n.conclusion = d->to == BS_CLOSED || d->to == BS_PROCESSING ? op->act.conclusion : BS_STR_NONE;
    if (waits(d->to))
        n.next_execute_at = d->next_execute_at;
    n.due_at = waits(d->to) ? d->next_execute_at : BS_TIME_NONE;
    n.blocked = BS_BLOCKED_NONE;
    n.version = t->version + 1;
    n.updated_at = op->now;
    return n;
}

/* Texts belong to the store's scratch memory: only what is not text goes out. */
static void give_back(struct bs_op *op, const struct bs_task *t)
{
    struct bs_task *r = &op->act.ret_task;

    *r = *t;
    r->request_id = r->biz_type = r->merchant_no = r->biz_id = BS_STR_NONE;
    r->effect_key = r->serial_key = r->order_no = r->payment_no = BS_STR_NONE;
    r->channel = r->channel_trade_no = r->refund_no = BS_STR_NONE;
    r->last_outcome = r->last_error_code = r->last_error_msg = BS_STR_NONE;
    r->manual_code = r->conclusion = r->locked_by = r->created_by = BS_STR_NONE;
    r->payload = r->extra_data = r->result_snapshot = BS_STR_NONE;
}

/* ---- writing ---- */

static bs_rc pend(struct bs_store *s, const struct bs_op *op, const struct bs_task *t,
                  const struct bs_task *n, int64_t *ret_changes, struct bs_err *err)
{
    return RUN(s, BS_SQL_TASK_PEND, ret_changes, err, bs_i64(t->id), bs_i64(t->version),
               bs_i64(t->lease_token), bs_i64(n->pending), bs_text_or_null(n->conclusion),
               bs_i64(op->now.us));
}

/* Time in the hands of a person is not the task's age. */
static int64_t held_us(const struct bs_op *op, const struct bs_task *t)
{
    return op->act.action == BS_ACT_UNHOLD ? BS_MAX(op->now.us - t->updated_at.us, 0) : 0;
}

static bs_rc change(struct bs_store *s, const struct bs_op *op, const struct bs_task *t,
                    const struct bs_task *n, const struct bs_settlement *d, int64_t *ret_changes,
                    struct bs_err *err)
{
    bool fresh = (d->fx & BS_FX_FRESH_BUDGET) != 0;

    return RUN(s, BS_SQL_TASK_ACT, ret_changes, err, bs_i64(t->id), bs_i64(t->version),
               textz(bs_state_name(t->state)), textz(bs_state_name(n->state)),
               bs_i64(n->retry_count), bs_i64(n->crash_count), bs_i64(n->defer_count),
               bs_i64(n->not_found_count), time_or_null(n->first_not_found_at),
               bs_i64(n->outcome_unknown), textz(d->manual_code), bs_text_or_null(n->conclusion),
               waits(n->state) ? bs_i64(n->due_at.us) : bs_null(), bs_i64(op->now.us),
               bs_i64(fresh), bs_i64(held_us(op, t)));
}

static bs_rc log_act(struct bs_store *s, const struct bs_op *op, const struct bs_task *t,
                     const struct bs_settlement *d, struct bs_err *err)
{
    bool is_new = false, in_call = d->to == BS_PROCESSING;
    const struct log_row row = { .task_id = t->id,
                                 .id = op->id,
                                 .at = op->now,
                                 .event = bs_event_name(d->event),
                                 .from = t->state,
                                 .to = d->to,
                                 .attempt_no = in_call ? t->attempt_no : 0,
                                 .token = in_call ? t->lease_token : 0,
                                 .claimed_at = in_call ? t->locked_at : BS_TIME_NONE,
                                 .message = in_call ? bs_str_of(bs_action_name(op->act.action))
                                                    : BS_STR_NONE,
                                 .operator= op->act.operator,
                                 .reason = op->act.reason,
                                 .conclusion = op->act.conclusion,
                                 .pending = d->pending,
                                 .next_at = waits(d->to) ? d->next_execute_at : BS_TIME_NONE,
                                 .duration_ms = -1,
                                 .version = t->version + 1 };

    return log_write(s, &row, &is_new, err);
}

/* What else the change means: figures, keys, those that wait behind it. */
static bs_rc consequences(struct bs_store *s, const struct bs_op *op, const struct bs_task *t,
                          const struct bs_task *n, struct bs_err *err)
{
    if (n->state == BS_PROCESSING)
        return BS_OK;
    BS_TRY(stat_move(s, t, n->state, n->outcome_unknown, err));
    if (n->state == BS_CLOSED && bs_str_is(op->act.conclusion, "not_done") && t->effect_key.n)
        BS_TRY(RUN(s, BS_SQL_EFFECT_KEY_FREE, NULL, err, bs_text(t->merchant_no),
                   bs_text(t->biz_type), bs_text(t->effect_key), bs_i64(t->id)));
    if (waits(n->state))
        hint_add(s, t->biz_type, n->due_at);
    else if (waits(t->state) && t->call_until.us)
        return block_free_all(s, t->serial_key, op->now, err);
    else if (waits(t->state) && t->blocked == BS_BLOCKED_NONE)
        return block_free_next(s, t->serial_key, t->biz_type, op->now, err);
    return BS_OK;
}

static bs_rc act_write(struct bs_store *s, struct bs_op *op, const struct bs_task *t,
                       const struct bs_settlement *d, struct bs_err *err)
{
    struct bs_task n = after_of(op, t, d);
    int64_t changes = 0;

    if (d->to == BS_PROCESSING) {
        n.due_at = BS_TIME_NONE;
        BS_TRY(pend(s, op, t, &n, &changes, err));
    } else {
        BS_TRY(change(s, op, t, &n, d, &changes, err));
    }
    if (changes == 0)
        return bs_fail(err, BS_E_CORRUPT, "task %lld cannot be changed", (long long)t->id);
    BS_TRY(consequences(s, op, t, &n, err));
    BS_TRY(log_act(s, op, t, d, err));
    BS_TRY(audit(s, op, t, &n, err));
    op->act.ret_pending = d->to == BS_PROCESSING;
    give_back(op, &n);
    return BS_OK;
}

bs_rc act_apply(struct bs_store *s, struct bs_op *op, struct bs_err *err)
{
    struct bs_op_act *a = &op->act;
    struct bs_settlement d;
    struct log_row before;
    struct bs_task t;
    bool rerun = false;
    bs_rc rc = row_get(s, a->task_id, false, &s->scratch, &t, &op->err);

    if (rc == BS_E_NOT_FOUND) {
        op->rc = rc;
        return BS_OK;
    }
    if (rc != BS_OK)
        return bs_fail(err, rc, "%s", op->err.msg);
    BS_TRY(log_find(s, a->task_id, op->id, &before, &rerun, err));
    if (rerun) {
        a->ret_pending = before.to == BS_PROCESSING;
        give_back(op, &t);
        return BS_OK;
    }
    if (a->expected_version && a->expected_version != t.version) {
        OP_FAIL(op, BS_E_STALE, "task %lld has version %lld, not %lld", (long long)t.id,
                (long long)t.version, (long long)a->expected_version);
        return BS_OK;
    }
    op->rc =
        bs_decide_act(&t, a->action, a->reason, a->conclusion, a->policy, op->now, &d, &op->err);
    return op->rc == BS_OK ? act_write(s, op, &t, &d, err) : BS_OK;
}
