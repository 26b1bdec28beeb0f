/* Alert events: raised by what happens to tasks and by the rules, ended by the rules. */
#include "store/inner.h"

#include <stdio.h>

static struct bs_val i64_or_null(int64_t v)
{
    return v ? bs_i64(v) : bs_null();
}

bs_rc alert_raise(struct bs_store *s, const struct bs_op *op, const char *kind,
                  const struct bs_op_alert *what, struct bs_err *err)
{
    int64_t changes = 0;
    struct bs_val message = bs_text_or_null(what->message);

    BS_TRY(RUN(s, BS_SQL_ALERT_AGAIN, &changes, err, textz(kind), bs_text(what->subject),
               bs_i64(op->now.us), message, bs_i64(op->id), bs_i64(op->rerun)));
    if (changes > 0)
        return BS_OK;
    return RUN(s, BS_SQL_ALERT_INSERT, NULL, err, textz(kind), bs_text(what->subject),
               bs_text_or_null(what->biz_type), i64_or_null(what->task_id), message,
               bs_i64(op->now.us), bs_i64(op->id));
}

bs_rc alert_settled(struct bs_store *s, const struct bs_op *op, const struct bs_task *t,
                    const struct bs_settlement *d, const struct bs_outcome *o, struct bs_err *err)
{
    char subject[160];
    struct bs_op_alert what = { .biz_type = t->biz_type, .task_id = t->id };

    if (!d->alert_kind)
        return BS_OK;
    bool of_queue =
        strcmp(d->alert_kind, "endpoint_fault") == 0 || strcmp(d->alert_kind, "check_fault") == 0;
    if (of_queue && o)
        snprintf(subject, sizeof(subject), "%.*s %.*s", BS_STR_FMT(t->biz_type),
                 BS_STR_FMT(o->code));
    else
        snprintf(subject, sizeof(subject), "%lld", (long long)t->id);
    what.subject = bs_str_of(subject);
    what.message = o ? o->message : BS_STR("the lease ran out");
    if (strcmp(d->alert_kind, "overtaken") == 0)
        what.message =
            BS_STR("close, hold or resolve was asked for during the call, which succeeded");
    return alert_raise(s, op, d->alert_kind, &what, err);
}

bs_rc alert_apply(struct bs_store *s, struct bs_op *op, struct bs_err *err)
{
    char kind[65];

    snprintf(kind, sizeof(kind), "%.*s", BS_STR_FMT(op->alert.kind));
    return alert_raise(s, op, kind, &op->alert, err);
}

bs_rc alert_clear_apply(struct bs_store *s, struct bs_op *op, struct bs_err *err)
{
    return RUN(s, BS_SQL_ALERT_CLEAR, NULL, err, bs_text(op->alert_clear.kind),
               bs_text(op->alert_clear.subject), bs_i64(op->now.us),
               bs_text_or_null(op->alert_clear.message));
}
