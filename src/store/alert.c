/* Alert events: raised by what happens to tasks and by the rules, ended by the rules; and what is
 * to be told of them to whom. Events are grouped by queue: ten thousand tasks that go to a person
 * are one alert with a count. */
#include "store/inner.h"

#include <stdio.h>

static struct bs_val i64_or_null(int64_t v)
{
    return v ? bs_i64(v) : bs_null();
}

static bs_rc alert_insert(struct bs_store *s, const struct bs_op *op, const char *kind,
                          const struct bs_op_alert *what, bool again, struct bs_err *err)
{
    return RUN(s, BS_SQL_ALERT_INSERT, NULL, err, textz(kind), bs_text(what->subject),
               bs_text_or_null(what->biz_type), i64_or_null(what->task_id),
               bs_text_or_null(what->message), bs_i64(op->now.us), bs_i64(op->id), bs_i64(again));
}

bs_rc alert_raise(struct bs_store *s, const struct bs_op *op, const char *kind,
                  const struct bs_op_alert *what, bool again, struct bs_err *err)
{
    int64_t changes = 0;

    BS_TRY(RUN(s, BS_SQL_ALERT_AGAIN, &changes, err, textz(kind), bs_text(what->subject),
               bs_i64(op->now.us), bs_text_or_null(what->message), bs_i64(op->id), bs_i64(again),
               i64_or_null(what->task_id)));
    return changes > 0 ? BS_OK : alert_insert(s, op, kind, what, again, err);
}

/* ---- what a settlement tells ---- */

static bool has_code(const char *kind)
{
    return strcmp(kind, "endpoint_fault") == 0 || strcmp(kind, "check_fault") == 0 ||
           strcmp(kind, "manual") == 0;
}

static bs_rc raise_of_queue(struct bs_store *s, const struct bs_op *op, const char *kind,
                            const struct bs_task *t, struct bs_str code, struct bs_str message,
                            struct bs_err *err)
{
    char subject[160];
    struct bs_op_alert what = {
        .biz_type = t->biz_type, .task_id = t->id, .subject = t->biz_type, .message = message
    };

    if (code.n && has_code(kind)) {
        snprintf(subject, sizeof(subject), "%.*s %.*s", BS_STR_FMT(t->biz_type), BS_STR_FMT(code));
        what.subject = bs_str_of(subject);
    }
    return alert_raise(s, op, kind, &what, false, err);
}

/* The guarded update of the task has happened just now, so these are new. */
bs_rc alert_settled(struct bs_store *s, const struct bs_op *op, const struct bs_task *t,
                    const struct bs_settlement *d, const struct bs_outcome *o, struct bs_err *err)
{
    struct bs_str message = o ? o->message : BS_STR("the lease ran out");

    if (!o)
        BS_TRY(raise_of_queue(s, op, "takeover", t, BS_STR_NONE,
                              BS_STR("a lease ran out and the task was taken over"), err));
    if (!d->alert_kind)
        return BS_OK;
    if (strcmp(d->alert_kind, "overtaken") == 0)
        message = BS_STR("close, hold or resolve was asked for during the call, which succeeded");
    return raise_of_queue(s, op, d->alert_kind, t, o ? o->code : BS_STR_NONE, message, err);
}

/* ---- operations ---- */

bs_rc alert_apply(struct bs_store *s, struct bs_op *op, struct bs_err *err)
{
    char kind[65];

    snprintf(kind, sizeof(kind), "%.*s", BS_STR_FMT(op->alert.kind));
    if (op->alert.condition)
        return alert_insert(s, op, kind, &op->alert, op->rerun, err);
    return alert_raise(s, op, kind, &op->alert, op->rerun, err);
}

bs_rc alert_clear_apply(struct bs_store *s, struct bs_op *op, struct bs_err *err)
{
    const struct bs_op_alert_clear *c = &op->alert_clear;

    return RUN(s, BS_SQL_ALERT_CLEAR, NULL, err, bs_text(c->kind), bs_text(c->subject),
               bs_i64(op->now.us), bs_text_or_null(c->message),
               bs_i64(c->tell ? BS_ALERT_RECOVERED : 0),
               bs_i64(c->unless_after.us ? c->unless_after.us : INT64_MAX), bs_i64(op->id),
               bs_i64(op->rerun));
}

static bs_rc insert_delivery(struct bs_store *s, const struct bs_delivery *d, struct bs_err *err)
{
    return RUN(s, BS_SQL_DELIVERY_INSERT, NULL, err, bs_i64(d->alert_id), bs_i64(d->phase),
               bs_text(d->deliverer), textz(bs_delivery_state_name(d->state)), bs_i64(d->attempts),
               bs_i64(d->next_at.us), bs_text_or_null(d->code), bs_text_or_null(d->message),
               bs_i64(d->created_at.us), time_or_null(d->sent_at));
}

static bs_rc plan_raised(struct bs_store *s, const struct bs_op *op, struct bs_err *err)
{
    const struct bs_op_alert_plan *p = &op->alert_plan;

    if (!(p->phases & BS_ALERT_RAISED))
        return BS_OK;
    for (uint32_t i = 0; i < p->deliverers_n; i++) {
        const struct bs_delivery d = { .alert_id = p->alert_id,
                                       .phase = BS_ALERT_RAISED,
                                       .deliverer = p->deliverers[i],
                                       .next_at = p->due,
                                       .created_at = op->now };
        BS_TRY(insert_delivery(s, &d, err));
    }
    return BS_OK;
}

static bs_rc plan_recovered(struct bs_store *s, const struct bs_op *op, struct bs_err *err)
{
    const struct bs_op_alert_plan *p = &op->alert_plan;

    if (!(p->phases & BS_ALERT_RECOVERED))
        return BS_OK;
    for (uint32_t i = 0; i < p->deliverers_n; i++)
        BS_TRY(RUN(s, BS_SQL_DELIVERY_INSERT_RECOVERED, NULL, err, bs_i64(p->alert_id),
                   bs_text(p->deliverers[i]), bs_i64(p->due.us), bs_i64(op->now.us)));
    return BS_OK;
}

bs_rc alert_plan_apply(struct bs_store *s, struct bs_op *op, struct bs_err *err)
{
    const struct bs_op_alert_plan *p = &op->alert_plan;

    BS_TRY(plan_raised(s, op, err));
    BS_TRY(plan_recovered(s, op, err));
    return RUN(s, BS_SQL_ALERT_PLANNED, NULL, err, bs_i64(p->alert_id),
               bs_i64(BS_ALERT_PHASES & ~p->phases));
}

bs_rc alert_told_apply(struct bs_store *s, struct bs_op *op, struct bs_err *err)
{
    for (uint32_t i = 0; i < op->alert_told.n; i++) {
        const struct bs_delivery *d = &op->alert_told.items[i];

        BS_TRY(RUN(s, BS_SQL_DELIVERY_TOLD, NULL, err, bs_i64(d->alert_id), bs_i64(d->phase),
                   bs_text(d->deliverer), textz(bs_delivery_state_name(d->state)),
                   bs_i64(d->attempts), bs_i64(d->next_at.us), bs_text_or_null(d->code),
                   bs_text_or_null(d->message), time_or_null(d->sent_at)));
        if (d->phase == BS_ALERT_RAISED && d->state == BS_DELIVERY_GIVEN_UP)
            BS_TRY(RUN(s, BS_SQL_DELIVERY_DROP_RECOVERED, NULL, err, bs_i64(d->alert_id),
                       bs_text(d->deliverer), bs_text_or_null(d->code),
                       bs_text_or_null(d->message)));
    }
    return BS_OK;
}

bs_rc alert_record_apply(struct bs_store *s, struct bs_op *op, struct bs_err *err)
{
    const struct bs_op_alert_record *r = &op->alert_record;
    int64_t changes = 0;

    BS_TRY(RUN(s, BS_SQL_ALERT_RECORD, &changes, err, bs_i64(op->id), bs_text(r->kind),
               bs_text(r->subject), bs_text_or_null(r->message), bs_i64(r->first_at.us),
               bs_i64(r->recovered_at.us), bs_text_or_null(r->recovered_message)));
    if (changes == 0)
        return BS_OK;
    for (uint32_t i = 0; i < r->raised_n; i++) {
        struct bs_delivery d = r->raised[i];

        d.alert_id = op->id;
        d.phase = BS_ALERT_RAISED;
        BS_TRY(insert_delivery(s, &d, err));
    }
    return BS_OK;
}
