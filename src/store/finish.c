/* The end of an execution or of a lease: one guarded update that names the task, its state, its
 * attempt and its token, and everything that goes with it. */
#include "store/inner.h"

#include <stdio.h>

/* ---- writing a settlement ---- */

static struct bs_val str_or_null(const char *z)
{
    return z ? bs_text(bs_str_of(z)) : bs_null();
}

static bool waits(enum bs_state s)
{
    return s == BS_WAITING || s == BS_RETRY;
}

/* A plain success says nothing about errors: what was wrong before stays readable. */
static bool keeps_error(const struct bs_outcome *o)
{
    return !o || o->kind == BS_OUT_SUCCESS || o->kind == BS_OUT_UNSENT || o->code.n == 0;
}

static bs_rc update_task(struct bs_store *s, const struct bs_op *op, const struct settle *w,
                         bool *ret_done, struct bs_err *err)
{
    const struct bs_settlement *d = w->decided;
    const struct bs_outcome *o = w->outcome;
    bool keep = keeps_error(o);
    int64_t changes = 0;
    const struct bs_val args[] = {
        bs_i64(w->task->id),
        bs_i64(w->task->lease_token),
        bs_i64(w->task->attempt_no),
        textz(bs_state_name(d->to)),
        bs_i64(d->retry_count),
        bs_i64(d->crash_count),
        bs_i64(d->defer_count),
        bs_i64(d->not_found_count),
        time_or_null(d->first_not_found_at),
        bs_i64(d->outcome_unknown),
        o ? textz(bs_outcome_name(o->kind)) : bs_text(BS_STR("lease_expired")),
        keep ? bs_null() : bs_text(o->code),
        keep ? bs_null() : bs_text_or_null(o->message),
        str_or_null(d->manual_code),
        d->to == BS_CLOSED ? bs_text_or_null(w->conclusion) : bs_null(),
        waits(d->to) ? bs_i64(d->next_execute_at.us) : bs_null(),
        bs_i64(op->now.us),
        bs_i64(w->task->pending),
        o && o->kind == BS_OUT_SENT ? time_or_null(o->not_before) : bs_null(),
    };

    bool last = !waits(d->to) && d->crash_count == w->task->crash_count;
    BS_TRY(
        run(s, last ? BS_SQL_TASK_END : BS_SQL_TASK_FINISH, args, BS_COUNT(args), &changes, err));
    *ret_done = changes > 0;
    return BS_OK;
}

static int64_t duration_ms(const struct bs_outcome *o)
{
    if (!o || o->started_at.us == 0 || o->ended_at.us < o->started_at.us)
        return -1;
    return (o->ended_at.us - o->started_at.us) / 1000;
}

static bs_rc log_end(struct bs_store *s, const struct bs_op *op, const struct settle *w,
                     struct bs_err *err)
{
    static const struct bs_outcome none = { 0 };
    const struct bs_outcome *o = w->outcome ? w->outcome : &none;
    const struct bs_task *t = w->task;
    bool is_new = false;
    const struct log_row row = {
        .task_id = t->id,
        .id = op->id,
        .at = op->now,
        .event = bs_event_name(w->decided->event),
        .from = BS_PROCESSING,
        .to = w->decided->to,
        .attempt_no = t->attempt_no,
        .token = t->lease_token,
        .claimed_at = t->locked_at,
        .node = w->node,
        .outcome = w->outcome ? bs_str_of(bs_outcome_name(o->kind)) : BS_STR("lease_expired"),
        .code = o->code,
        .message = w->outcome ? o->message : BS_STR("the lease ran out: taken over"),
        .effect = o->effect,
        .excerpt = o->excerpt,
        .http_status = o->http_status,
        .duration_ms = duration_ms(w->outcome),
        .via_failed = w->decided->via_failed,
        .pending = t->pending,
        .next_at = waits(w->decided->to) ? w->decided->next_execute_at : BS_TIME_NONE,
        .conclusion = w->decided->to == BS_CLOSED ? w->conclusion : BS_STR_NONE,
        .version = t->version + 1,
    };

    return log_write(s, &row, &is_new, err);
}

static bs_rc free_effect_key(struct bs_store *s, const struct settle *w, struct bs_err *err)
{
    const struct bs_task *t = w->task;

    if (w->decided->to != BS_CLOSED || !bs_str_is(w->conclusion, "not_done") || !t->effect_key.n)
        return BS_OK;
    return RUN(s, BS_SQL_EFFECT_KEY_FREE, NULL, err, bs_text(t->merchant_no), bs_text(t->biz_type),
               bs_text(t->effect_key), bs_i64(t->id));
}

bs_rc settle_write(struct bs_store *s, const struct bs_op *op, const struct settle *w,
                   bool *ret_done, struct bs_err *err)
{
    const struct bs_task *t = w->task;
    const struct bs_settlement *d = w->decided;

    BS_TRY(update_task(s, op, w, ret_done, err));
    if (!*ret_done)
        return BS_OK;
    BS_TRY(stat_add(s, t, BS_PROCESSING, t->outcome_unknown, -1, err));
    BS_TRY(stat_add(s, t, d->to, d->outcome_unknown, 1, err));
    BS_TRY(log_end(s, op, w, err));
    BS_TRY(alert_settled(s, op, t, d, w->outcome, err));
    BS_TRY(free_effect_key(s, w, err));
    /* A call that was cut after sending keeps its business object to itself until its deadline. */
    if (d->event != BS_EV_RELEASED_SENT)
        BS_TRY(block_free_all(s, t->serial_key, op->now, err));
    if (waits(d->to))
        hint_add(s, t->biz_type, d->next_execute_at);
    return BS_OK;
}

/* ---- finish ---- */

/* The result of a worker that lost its lease: refused and recorded. */
static bs_rc stale(struct bs_store *s, struct bs_op *op, const struct bs_task *now_row,
                   struct bs_err *err)
{
    const struct bs_op_finish *f = &op->finish;
    bool is_new = false;
    const struct log_row row = {
        .task_id = f->task->id,
        .id = op->id,
        .at = op->now,
        .event = "stale_result",
        .attempt_no = f->task->attempt_no,
        .token = f->task->lease_token,
        .node = f->node,
        .outcome = bs_str_of(bs_outcome_name(f->outcome.kind)),
        .code = f->outcome.code,
        .message = f->outcome.message,
        .effect = f->outcome.effect,
        .excerpt = f->outcome.excerpt,
        .http_status = f->outcome.http_status,
        .duration_ms = duration_ms(&f->outcome),
    };

    BS_TRY(log_write(s, &row, &is_new, err));
    if (is_new)
        BS_TRY(alert_raise(s, op, "stale_result",
                           &(struct bs_op_alert){ .subject = now_row->biz_type,
                                                  .biz_type = now_row->biz_type,
                                                  .task_id = f->task->id,
                                                  .message = f->outcome.message },
                           false, err));
    OP_FAIL(op, BS_E_STALE, "task %lld: the lease of attempt %d is lost", (long long)f->task->id,
            f->task->attempt_no);
    return BS_OK;
}

/* The same verdict on the same attempt was written already: its first result. */
static bs_rc finished_before(struct bs_store *s, struct bs_op *op, bool *ret_same,
                             struct bs_err *err)
{
    struct bs_op_finish *f = &op->finish;
    struct bs_task as_then = *f->task;
    struct bs_val cols[LOG_COLS];
    struct log_row row;
    bool found = false;

    BS_TRY(ONE(s, BS_SQL_LOG_ATTEMPT, cols, &found, err, bs_i64(f->task->id),
               bs_i64(f->task->attempt_no), bs_i64(f->task->lease_token)));
    *ret_same = false;
    if (!found)
        return BS_OK;
    log_row_read(cols, &row);
    if (!bs_str_is(row.outcome, bs_outcome_name(f->outcome.kind)) ||
        !bs_str_eq(row.code, f->outcome.code))
        return BS_OK;
    as_then.pending = row.pending;
    as_then.age = BS_US(0);
    f->ret_settled = bs_decide_finish(&as_then, &f->outcome, f->policy, row.at, f->seed);
    if (f->ret_settled.to != row.to) { /* then its age was spent */
        as_then.age = f->policy->max_age;
        f->ret_settled = bs_decide_finish(&as_then, &f->outcome, f->policy, row.at, f->seed);
    }
    f->ret_settled.next_execute_at = row.next_at.us ? row.next_at : f->ret_settled.next_execute_at;
    *ret_same = true;
    return BS_OK;
}

/* Only a failure or an unknown outcome asks how old the task is. */
static bs_rc count_age(struct bs_store *s, const struct bs_op *op, struct bs_task *t,
                       struct bs_err *err)
{
    const struct bs_op_finish *f = &op->finish;

    t->age = BS_US(0);
    if (f->policy->max_age.us <= 0 ||
        (f->outcome.kind != BS_OUT_FAILED && f->outcome.kind != BS_OUT_UNKNOWN))
        return BS_OK;
    return age_of(s, t, op->now, &t->age, err);
}

/* The snapshot's guard did not hold: the row tells why. */
static bs_rc finish_by_row(struct bs_store *s, struct bs_op *op, struct bs_err *err)
{
    struct bs_op_finish *f = &op->finish;
    struct bs_task t;
    bool same = false;
    bs_rc rc = row_get(s, f->task->id, false, &s->scratch, &t, err);

    if (rc == BS_E_NOT_FOUND) {
        OP_FAIL(op, rc, "there is no task %lld", (long long)f->task->id);
        return BS_OK;
    }
    BS_TRY(rc);
    bool ours = t.state == BS_PROCESSING && t.lease_token == f->task->lease_token &&
                t.attempt_no == f->task->attempt_no;
    if (!ours) {
        BS_TRY(finished_before(s, op, &same, err));
        return same ? BS_OK : stale(s, op, &t, err);
    }
    BS_TRY(count_age(s, op, &t, err));
    f->ret_settled = bs_decide_finish(&t, &f->outcome, f->policy, op->now, f->seed);
    const struct settle w = { .task = &t,
                              .decided = &f->ret_settled,
                              .outcome = &f->outcome,
                              .node = f->node,
                              .conclusion = t.conclusion };
    BS_TRY(settle_write(s, op, &w, &same, err));
    return same ? BS_OK
                : bs_fail(err, BS_E_CORRUPT, "task %lld cannot be settled", (long long)t.id);
}

/* Planted bug: as if the update did not compare token and attempt. */
static bs_rc without_fence(struct bs_store *s, struct bs_op *op, struct bs_task *ret,
                           struct bs_err *err)
{
    struct bs_task now_row;

    BS_TRY(row_get(s, op->finish.task->id, false, &s->scratch, &now_row, err));
    ret->lease_token = now_row.lease_token;
    ret->attempt_no = now_row.attempt_no;
    ret->pending = now_row.pending;
    return BS_OK;
}

bs_rc finish_apply(struct bs_store *s, struct bs_op *op, struct bs_err *err)
{
    struct bs_op_finish *f = &op->finish;
    struct bs_task t = *f->task;
    bool done = false;

    BS_ASSERT(t.state == BS_PROCESSING);
    t.pending = BS_PENDING_NONE;
    if (BS_PLANT(NO_TOKEN_CHECK))
        BS_TRY(without_fence(s, op, &t, err));
    BS_TRY(count_age(s, op, &t, err));
    f->ret_settled = bs_decide_finish(&t, &f->outcome, f->policy, op->now, f->seed);
    const struct settle w = {
        .task = &t, .decided = &f->ret_settled, .outcome = &f->outcome, .node = f->node
    };
    BS_TRY(settle_write(s, op, &w, &done, err));
    return done ? BS_OK : finish_by_row(s, op, err);
}

/* ---- renew and reap ---- */

bs_rc renew_apply(struct bs_store *s, struct bs_op *op, struct bs_err *err)
{
    const struct bs_op_renew *r = &op->renew;
    struct bs_val cols[1];
    int64_t changes = 0;
    bool found = false;

    BS_TRY(RUN(s, BS_SQL_TASK_RENEW, &changes, err, bs_i64(r->task_id), bs_i64(r->token),
               bs_i64(r->until.us)));
    if (changes > 0)
        return BS_OK;
    /* A lease that already lasts longer is kept as it is. */
    BS_TRY(ONE(s, BS_SQL_TASK_LEASE, cols, &found, err, bs_i64(r->task_id), bs_i64(r->token)));
    if (!found)
        OP_FAIL(op, BS_E_STALE, "task %lld: the lease is lost", (long long)r->task_id);
    return BS_OK;
}

static bs_rc reap_one(struct bs_store *s, struct bs_op *op, const struct bs_task *t,
                      struct bs_err *err)
{
    struct bs_settlement d = bs_decide_expired(t, op->now);
    bool done = false;
    const struct settle w = {
        .task = t, .decided = &d, .node = op->reap.node, .conclusion = t->conclusion
    };

    BS_TRY(settle_write(s, op, &w, &done, err));
    if (!done)
        return bs_fail(err, BS_E_CORRUPT, "task %lld cannot be taken over", (long long)t->id);
    if (d.to == BS_MANUAL)
        op->reap.ret_manual++;
    else
        op->reap.ret_waiting++;
    return BS_OK;
}

/* Rows are read before any is changed. */
static bs_rc read_expired(struct bs_store *s, struct bs_op *op, struct bs_task *ret, uint32_t max,
                          uint32_t *ret_n, struct bs_err *err)
{
    struct bs_val cols[TASK_COLS];
    bool more = false;

    *ret_n = 0;
    BS_TRY(RUN(s, BS_SQL_LEASE_EXPIRED, NULL, err, bs_i64(op->now.us), bs_i64((int64_t)max + 1)));
    for (;;) {
        BS_TRY(next(s, BS_SQL_LEASE_EXPIRED, cols, TASK_COLS, &more, err));
        if (!more)
            return BS_OK;
        if (*ret_n == max) {
            op->reap.ret_more = true;
            return BS_OK;
        }
        BS_TRY(row_read(cols, TASK_COLS, &s->scratch, &ret[(*ret_n)++], err));
    }
}

/* Now and then, so that an idle store is hardly written. */
static bs_rc note_time(struct bs_store *s, struct bs_time now, struct bs_err *err)
{
    static const int64_t every_us = 5000000;

    return RUN(s, BS_SQL_TIME_HIGH_SET, NULL, err, bs_i64(now.us), bs_i64(now.us - every_us),
               bs_i64(bs_time_add(now, bs_time_high_trusted).us));
}

bs_rc reap_apply(struct bs_store *s, struct bs_op *op, struct bs_err *err)
{
    struct bs_op_reap *r = &op->reap;
    struct bs_task *tasks = BS_NEW_ARRAY(&s->scratch, struct bs_task, BS_MAX(r->limit, 1u));
    uint32_t n = 0;

    r->ret_waiting = r->ret_manual = 0;
    r->ret_more = false;
    if (!tasks)
        return bs_fail(err, BS_E_NOMEM, "no memory for %u leases", r->limit);
    BS_TRY(note_time(s, op->now, err));
    BS_TRY(read_expired(s, op, tasks, r->limit, &n, err));
    for (uint32_t i = 0; i < n; i++)
        BS_TRY(reap_one(s, op, &tasks[i], err));
    return BS_OK;
}
