/* What every step leaves behind in the same transaction: log rows, audit rows, hints. */
#include "store/inner.h"

#include <stdio.h>

static struct bs_val i64_or_null(int64_t v)
{
    return v ? bs_i64(v) : bs_null();
}

static struct bs_val state_or_null(enum bs_state s)
{
    return s == BS_STATE_NONE ? bs_null() : textz(bs_state_name(s));
}

bs_rc log_write(struct bs_store *s, const struct log_row *r, bool *ret_new, struct bs_err *err)
{
    int64_t changes = 0;
    const struct bs_val args[] = {
        bs_i64(r->task_id),
        bs_i64(r->id),
        bs_i64(r->at.us),
        textz(r->event),
        state_or_null(r->from),
        state_or_null(r->to),
        i64_or_null(r->attempt_no),
        i64_or_null(r->token),
        time_or_null(r->claimed_at),
        bs_text_or_null(r->node),
        bs_text_or_null(r->outcome),
        bs_text_or_null(r->code),
        bs_text_or_null(r->message),
        bs_text_or_null(r->effect),
        bs_text_or_null(r->excerpt),
        i64_or_null(r->http_status),
        r->duration_ms >= 0 ? bs_i64(r->duration_ms) : bs_null(),
        bs_i64(r->via_failed),
        bs_i64(r->pending),
        time_or_null(r->next_at),
        bs_text_or_null(r->operator),
        bs_text_or_null(r->reason),
        bs_text_or_null(r->conclusion),
        i64_or_null(r->version),
    };

    BS_TRY(run(s, BS_SQL_LOG_INSERT, args, BS_COUNT(args), &changes, err));
    *ret_new = changes > 0;
    return BS_OK;
}

static int64_t number(const struct bs_val *v)
{
    return v->type == BS_VAL_I64 ? v->i : 0;
}

static enum bs_state state_at(const struct bs_val *v)
{
    return v->type == BS_VAL_TEXT ? bs_state_parse(v->s) : BS_STATE_NONE;
}

/* The name of an event as static text; rows that are no transition have names of their own. */
static const char *event_name(struct bs_str s)
{
    enum bs_event e = bs_event_parse(s);

    if (e != BS_EVENT_COUNT)
        return bs_event_name(e);
    if (bs_str_is(s, "stale_result"))
        return "stale_result";
    return bs_str_is(s, "linked") ? "linked" : "unknown_event";
}

void log_row_read(const struct bs_val *c, struct log_row *ret)
{
    *ret = (struct log_row){
        .id = number(&c[0]),
        .at = { number(&c[1]) },
        .event = event_name(c[2].s),
        .from = state_at(&c[3]),
        .to = state_at(&c[4]),
        .attempt_no = (int32_t)number(&c[5]),
        .token = number(&c[6]),
        .claimed_at = { number(&c[7]) },
        .node = c[8].s,
        .outcome = c[9].s,
        .code = c[10].s,
        .message = c[11].s,
        .effect = c[12].s,
        .excerpt = c[13].s,
        .http_status = (int)number(&c[14]),
        .duration_ms = c[15].type == BS_VAL_I64 ? c[15].i : -1,
        .via_failed = number(&c[16]) != 0,
        .pending = (enum bs_pending)number(&c[17]),
        .next_at = { number(&c[18]) },
        .operator= c[19].s,
        .reason = c[20].s,
        .conclusion = c[21].s,
        .version = number(&c[22]),
    };
}

bs_rc log_find(struct bs_store *s, int64_t task_id, int64_t id, struct log_row *ret,
               bool *ret_found, struct bs_err *err)
{
    struct bs_val cols[LOG_COLS];

    BS_TRY(ONE(s, BS_SQL_LOG_GET, cols, ret_found, err, bs_i64(task_id), bs_i64(id)));
    if (*ret_found)
        log_row_read(cols, ret);
    return BS_OK;
}

bs_rc audit_write(struct bs_store *s, const struct bs_op *op, const struct audit_entry *e,
                  struct bs_err *err)
{
    return RUN(s, BS_SQL_AUDIT_INSERT, NULL, err, bs_i64(op->id), bs_i64(op->now.us),
               bs_text(e->operator), textz(e->action), bs_text(e->object),
               bs_text_or_null(e->reason), bs_text_or_null(e->conclusion),
               bs_text_or_null(e->order_no), bs_text_or_null(e->before), bs_text_or_null(e->after));
}

bs_rc audit_was_written(struct bs_store *s, const struct bs_op *op, bool *ret_was,
                        struct bs_err *err)
{
    struct bs_val cols[1];

    return ONE(s, BS_SQL_AUDIT_GET, cols, ret_was, err, bs_i64(op->id));
}

void hint_add(struct bs_store *s, struct bs_str biz_type, struct bs_time due)
{
    struct bs_hints *h = &s->hints;

    for (uint32_t i = 0; i < h->n; i++) {
        if (bs_str_is(biz_type, h->items[i].biz_type)) {
            h->items[i].due = bs_time_min(h->items[i].due, due);
            return;
        }
    }
    if (h->n == BS_COUNT(h->items)) {
        h->overflowed = true;
        return;
    }
    struct bs_hint *new = &h->items[h->n++];
    snprintf(new->biz_type, sizeof(new->biz_type), "%.*s", BS_STR_FMT(biz_type));
    new->due = due;
}
