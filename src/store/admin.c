/* Queues paused and resumed, API tokens: each with its audit row. */
#include "store/inner.h"
#include "json/write.h"

#include <stdio.h>

bs_rc queue_pause_apply(struct bs_store *s, struct bs_op *op, struct bs_err *err)
{
    const struct bs_op_queue_pause *q = &op->queue_pause;
    struct bs_val old[5];
    char object[64];
    bool found = false, rerun = false;

    BS_TRY(audit_was_written(s, op, &rerun, err));
    if (rerun)
        return BS_OK;
    BS_TRY(ONE(s, BS_SQL_QUEUE_STATE_GET, old, &found, err, bs_text(q->biz_type)));
    if (q->known && !found) {
        OP_FAIL(op, BS_E_NOT_FOUND, "there is no queue of this name; GET /v1/queues lists them");
        return BS_OK;
    }
    bool was = found && old[0].i != 0;
    BS_TRY(RUN(s, BS_SQL_QUEUE_PAUSE, NULL, err, bs_text(q->biz_type), bs_i64(q->paused),
               bs_text_or_null(q->reason), bs_text(q->operator), bs_i64(op->now.us)));
    snprintf(object, sizeof(object), "queue:%.*s", BS_STR_FMT(q->biz_type));
    return audit_write(s, op,
                       &(struct audit_entry){ .operator= q->operator,
                                              .action = q->paused ? "pause" : "resume",
                                              .object = bs_str_of(object),
                                              .reason = q->reason,
                                              .before = was ? BS_STR("{\"paused\":true}")
                                                            : BS_STR("{\"paused\":false}"),
                                              .after = q->paused ? BS_STR("{\"paused\":true}")
                                                                 : BS_STR("{\"paused\":false}") },
                       err);
}

/* What a token may do, as the audit shows it; no queues: all. */
static bs_rc token_text(struct bs_arena *a, struct bs_str role, struct bs_str queues, bool revoked,
                        struct bs_str *ret, struct bs_err *err)
{
    BS_CLEANUP(bs_buf_free) struct bs_buf out = { .max = 8192 };
    struct bs_json *j = bs_json_new(&out);

    if (!j)
        return bs_fail(err, BS_E_NOMEM, "no memory for an audit row");
    bs_json_open(j);
    bs_json_kstr(j, "role", role);
    bs_json_key(j, "queues");
    bs_json_open_array(j);
    while (queues.n)
        bs_json_str(j, bs_str_trim(bs_str_cut(&queues, ',')));
    bs_json_close_array(j);
    bs_json_kbool(j, "revoked", revoked);
    bs_json_close(j);
    BS_TRY(bs_json_end(j, err));
    *ret = bs_arena_str(a, bs_buf_str(&out));
    return ret->p ? BS_OK : bs_fail(err, BS_E_NOMEM, "no memory for an audit row");
}

/* The caller has set who, why, before and after. */
static bs_rc audit_token(struct bs_store *s, const struct bs_op *op, struct bs_str name,
                         struct audit_entry *e, struct bs_err *err)
{
    e->object = bs_arena_fmt(&s->scratch, "token:%.*s", BS_STR_FMT(name));
    if (!e->object.p)
        return bs_fail(err, BS_E_NOMEM, "no memory for an audit row");
    BS_TRY(RUN(s, BS_SQL_META_BUMP, NULL, err, bs_text(BS_STR("tokens_version"))));
    return audit_write(s, op, e, err);
}

bs_rc token_add_apply(struct bs_store *s, struct bs_op *op, struct bs_err *err)
{
    const struct bs_op_token_add *t = &op->token_add;
    struct audit_entry e = { .operator= t->operator, .action = "token_add", .reason = t->reason };
    struct bs_val old[3];
    bool found = false, rerun = false;

    /* Not by the token itself: it may have been revoked in the same transaction. */
    BS_TRY(audit_was_written(s, op, &rerun, err));
    if (rerun)
        return BS_OK;
    BS_TRY(ONE(s, BS_SQL_TOKEN_ACTIVE, old, &found, err, bs_text(t->name)));
    if (found) {
        OP_FAIL(op, BS_E_CONFLICT, "there is a token named %.*s already", BS_STR_FMT(t->name));
        return BS_OK;
    }
    BS_TRY(token_text(&s->scratch, t->role, t->queues, false, &e.after, err));
    BS_TRY(RUN(s, BS_SQL_TOKEN_INSERT, NULL, err, bs_i64(op->id), bs_text(t->name),
               bs_text(t->role), bs_text_or_null(t->queues),
               bs_bytes((struct bs_str){ (const char *)t->hash.b, sizeof(t->hash.b) }),
               bs_text(t->operator), bs_i64(op->now.us)));
    return audit_token(s, op, t->name, &e, err);
}

bs_rc token_revoke_apply(struct bs_store *s, struct bs_op *op, struct bs_err *err)
{
    const struct bs_op_token_revoke *t = &op->token_revoke;
    struct audit_entry e = { .operator= t->operator,
                             .action = "token_revoke",
                             .reason = t->reason };
    struct bs_val old[3];
    bool found = false, rerun = false;

    BS_TRY(audit_was_written(s, op, &rerun, err));
    if (rerun)
        return BS_OK;
    BS_TRY(ONE(s, BS_SQL_TOKEN_ACTIVE, old, &found, err, bs_text(t->name)));
    if (!found) {
        OP_FAIL(op, BS_E_NOT_FOUND, "there is no token named %.*s", BS_STR_FMT(t->name));
        return BS_OK;
    }
    int64_t token_id = old[0].i;
    struct bs_str queues = old[2].type == BS_VAL_NULL ? BS_STR_NONE : old[2].s;
    BS_TRY(token_text(&s->scratch, old[1].s, queues, false, &e.before, err));
    BS_TRY(token_text(&s->scratch, old[1].s, queues, true, &e.after, err));
    BS_TRY(RUN(s, BS_SQL_TOKEN_REVOKE, NULL, err, bs_i64(token_id), bs_i64(op->now.us)));
    return audit_token(s, op, t->name, &e, err);
}
