/* New tasks: their permanent keys first, in the order of request ids, then their rows. */
#include "store/inner.h"

#include <stdio.h>

static struct bs_val amount_of(const struct bs_task *t)
{
    return t->money.currency[0] ? bs_i64(t->money.minor) : bs_null();
}

static struct bs_val currency_of(const struct bs_task *t)
{
    return t->money.currency[0] ? textz(t->money.currency) : bs_null();
}

/* What was asked for later could not run before. Not set: since it was made. */
static struct bs_time age_begins(const struct bs_task *t)
{
    return bs_time_before(t->created_at, t->next_execute_at) ? t->next_execute_at : BS_TIME_NONE;
}

static void task_values(const struct bs_task *t, struct bs_val *v)
{
    const struct bs_val row[INSERT_COLS] = {
        bs_i64(t->id),
        bs_text(t->request_id),
        bs_text(t->biz_type),
        bs_text(t->merchant_no),
        bs_text(t->biz_id),
        bs_text_or_null(t->effect_key),
        bs_text_or_null(t->serial_key),
        bs_text_or_null(t->order_no),
        bs_text_or_null(t->payment_no),
        bs_text_or_null(t->channel),
        bs_text_or_null(t->channel_trade_no),
        bs_text_or_null(t->refund_no),
        textz(bs_source_name(t->source)),
        t->parent_id ? bs_i64(t->parent_id) : bs_null(),
        amount_of(t),
        currency_of(t),
        bs_text(t->created_by),
        bs_i64(t->created_at.us),
        textz(bs_state_name(t->state)),
        bs_i64(t->priority),
        bs_i64(t->retry_count),
        bs_i64(t->max_retry_count),
        bs_text_or_null(t->last_error_code),
        bs_text_or_null(t->last_error_msg),
        bs_text_or_null(t->manual_code),
        time_or_null(t->next_execute_at),
        time_or_null(t->due_at),
        time_or_null(age_begins(t)),
    };

    memcpy(v, row, sizeof(row));
}

static bs_rc flush_rows(struct bs_store *s, struct bs_err *err)
{
    uint32_t tasks = s->task_rows, payloads = s->payload_rows;

    s->task_rows = s->payload_rows = 0;
    if (tasks > 0)
        BS_TRY(
            s->db->ops->run_many(s->db, BS_SQL_TASK_INSERT, s->task_args, INSERT_COLS, tasks, err));
    if (payloads > 0)
        BS_TRY(s->db->ops->run_many(s->db, BS_SQL_PAYLOAD_INSERT, s->payload_args, PAYLOAD_COLS,
                                    payloads, err));
    return BS_OK;
}

/* t must live until flush_rows. */
static bs_rc insert_row(struct bs_store *s, const struct bs_task *t, struct bs_err *err)
{
    task_values(t, s->task_args + (size_t)s->task_rows++ * INSERT_COLS);
    if (t->payload.p || t->extra_data.n) {
        struct bs_val *v = s->payload_args + (size_t)s->payload_rows++ * PAYLOAD_COLS;
        v[0] = bs_i64(t->id);
        v[1] = t->payload.p ? bs_bytes(t->payload) : bs_null();
        v[2] = bs_i64(t->payload_is_json);
        v[3] = bs_text_or_null(t->extra_data);
    }
    BS_TRY(stat_add(s, t, t->state, t->outcome_unknown, 1, err));
    if (t->due_at.us)
        hint_add(s, t->biz_type, t->due_at);
    return s->task_rows == INSERT_ROWS ? flush_rows(s, err) : BS_OK;
}

/* ---- conflicts and duplicates ---- */

static struct bs_val fp_val(const struct bs_sha256 *fp)
{
    return bs_bytes((struct bs_str){ (const char *)fp->b, sizeof(fp->b) });
}

static bool fp_is(const struct bs_val *v, const struct bs_sha256 *fp)
{
    return v->type == BS_VAL_BYTES && v->s.n == sizeof(fp->b) &&
           memcmp(v->s.p, fp->b, sizeof(fp->b)) == 0;
}

static void result(struct bs_op *op, enum bs_submitted what, int64_t task_id)
{
    op->submit.ret_what = what;
    op->submit.ret_task_id = task_id;
}

struct conflict {
    enum bs_submitted what;
    const char *kind, *code;
    int64_t first; /* the task that has the key */
};

static bs_rc raise_conflict(struct bs_store *s, struct bs_op *op, const struct conflict *c,
                            struct bs_err *err)
{
    const struct bs_task *t = op->submit.task;
    char message[512];
    int n = snprintf(message, sizeof(message), "request %.*s has other content than task %lld",
                     BS_STR_FMT(t->request_id), (long long)c->first);

    if (c->what == BS_SUBMITTED_CONFLICT_EFFECT)
        snprintf(message + n, sizeof(message) - (size_t)n, ", which has the same effect_key %.*s",
                 BS_STR_FMT(t->effect_key));
    return alert_raise(s, op, c->kind,
                       &(struct bs_op_alert){ .subject = t->biz_type,
                                              .biz_type = t->biz_type,
                                              .message = bs_str_of(message),
                                              .task_id = c->first },
                       op->rerun, err);
}

/* Nobody waits for an answer, so a person gets the content as a task of its own. */
static bs_rc park_conflict(struct bs_store *s, struct bs_op *op, const struct conflict *c,
                           struct bs_err *err)
{
    char message[128];
    struct bs_task parked = *op->submit.task;

    snprintf(message, sizeof(message), "the same key was accepted with other content: task %lld",
             (long long)c->first);
    parked.state = BS_MANUAL;
    parked.manual_code = bs_str_of(c->code);
    parked.last_error_code = bs_str_of(c->code);
    parked.last_error_msg = bs_str_of(message);
    parked.due_at = BS_TIME_NONE;
    BS_TRY(insert_row(s, &parked, err));
    return flush_rows(s, err);
}

static bs_rc exists(struct bs_store *s, int64_t id, struct bs_str *ret_manual_code, bool *ret,
                    struct bs_err *err)
{
    struct bs_task t;
    bs_rc rc = row_get(s, id, false, &s->scratch, &t, err);

    *ret = rc == BS_OK;
    if (rc == BS_OK)
        *ret_manual_code = t.manual_code;
    return rc == BS_E_NOT_FOUND ? BS_OK : rc;
}

static bs_rc conflict(struct bs_store *s, struct bs_op *op, const struct conflict *c,
                      struct bs_err *err)
{
    struct bs_str code = BS_STR_NONE;
    bool parked_before = false;

    if (!op->submit.caller_waits && op->rerun)
        BS_TRY(exists(s, op->id, &code, &parked_before, err));
    if (!parked_before)
        BS_TRY(raise_conflict(s, op, c, err));
    if (!op->submit.caller_waits && !parked_before)
        BS_TRY(park_conflict(s, op, c, err));
    result(op, c->what, op->submit.caller_waits ? c->first : op->id);
    return BS_OK;
}

/* ---- keys ---- */

/* This very operation took the key before: its first result. */
static bs_rc first_result(struct bs_store *s, struct bs_op *op, int64_t task_id, struct bs_err *err)
{
    struct bs_str code = BS_STR_NONE;
    bool there = false;

    if (task_id != op->id) {
        result(op, BS_SUBMITTED_DUPLICATE_EFFECT, task_id);
        return BS_OK;
    }
    BS_TRY(exists(s, task_id, &code, &there, err));
    bool parked = there && bs_str_is(code, "EFFECT_CONFLICT");
    result(op, parked ? BS_SUBMITTED_CONFLICT_EFFECT : BS_SUBMITTED_CREATED, task_id);
    return BS_OK;
}

static bs_rc request_taken(struct bs_store *s, struct bs_op *op, struct bs_err *err)
{
    struct bs_val key[3];
    bool found = false;

    BS_TRY(flush_rows(s, err)); /* the first may be one of this batch */
    BS_TRY(ONE(s, BS_SQL_REQUEST_KEY_GET, key, &found, err, bs_text(op->submit.task->request_id)));
    if (!found)
        return bs_fail(err, BS_E_CORRUPT, "a request_key is taken and not there");
    if (key[2].i == op->id)
        return first_result(s, op, key[1].i, err);
    if (fp_is(&key[0], &op->submit.request_fp)) {
        result(op, BS_SUBMITTED_DUPLICATE_REQUEST, key[1].i);
        return BS_OK;
    }
    return conflict(s, op,
                    &(struct conflict){ BS_SUBMITTED_CONFLICT_REQUEST, "request_conflict",
                                        "REQUEST_CONFLICT", key[1].i },
                    err);
}

static void hash_text(char *out, size_t size, struct bs_str payload)
{
    struct bs_sha256 h = bs_sha256_of(payload);

    for (size_t i = 0; i < sizeof(h.b) && i * 2 + 2 < size; i++)
        snprintf(out + i * 2, size - i * 2, "%02x", h.b[i]);
}

/* The first task learns of the second request, with both payloads' hashes. */
static bs_rc link_to(struct bs_store *s, struct bs_op *op, int64_t first, struct bs_err *err)
{
    const struct bs_task *t = op->submit.task;
    struct bs_val payload[1] = { bs_null() };
    char own[65], its[65], message[512];
    bool found = false, new_row = false;

    BS_TRY(RUN(s, BS_SQL_REQUEST_KEY_LINK, NULL, err, bs_text(t->request_id), bs_i64(first)));
    BS_TRY(ONE(s, BS_SQL_PAYLOAD_GET, payload, &found, err, bs_i64(first)));
    hash_text(own, sizeof(own), t->payload);
    hash_text(its, sizeof(its), found ? payload[0].s : BS_STR_NONE);
    snprintf(message, sizeof(message),
             "request %.*s has the same effect; payload sha256 %s, here %s",
             BS_STR_FMT(t->request_id), own, its);
    const struct log_row row = { .task_id = first,
                                 .id = op->id,
                                 .at = op->now,
                                 .event = "linked",
                                 .operator= t->created_by,
                                 .message = bs_str_of(message),
                                 .duration_ms = -1 };
    BS_TRY(log_write(s, &row, &new_row, err));
    result(op, BS_SUBMITTED_DUPLICATE_EFFECT, first);
    return BS_OK;
}

static bs_rc effect_taken(struct bs_store *s, struct bs_op *op, struct bs_err *err)
{
    const struct bs_task *t = op->submit.task;
    struct bs_val key[2];
    bool found = false;

    BS_TRY(flush_rows(s, err));
    BS_TRY(ONE(s, BS_SQL_EFFECT_KEY_GET, key, &found, err, bs_text(t->merchant_no),
               bs_text(t->biz_type), bs_text(t->effect_key)));
    if (!found)
        return bs_fail(err, BS_E_CORRUPT, "an effect_key is taken and not there");
    if (fp_is(&key[0], &op->submit.effect_fp))
        return link_to(s, op, key[1].i, err);
    int64_t first = key[1].i;
    if (op->submit.caller_waits)
        BS_TRY(
            RUN(s, BS_SQL_REQUEST_KEY_DELETE, NULL, err, bs_text(t->request_id), bs_i64(op->id)));
    return conflict(s, op,
                    &(struct conflict){ BS_SUBMITTED_CONFLICT_EFFECT, "effect_conflict",
                                        "EFFECT_CONFLICT", first },
                    err);
}

static bs_rc take_keys(struct bs_store *s, struct order *o, struct bs_err *err)
{
    struct bs_op *op = o->op;
    const struct bs_task *t = op->submit.task;
    int64_t taken = 0;

    op->rc = BS_OK;
    o->create = false;
    BS_ASSERT(t->id == op->id);
    BS_TRY(RUN(s, BS_SQL_REQUEST_KEY_INSERT, &taken, err, bs_text(t->request_id),
               fp_val(&op->submit.request_fp), bs_i64(op->id), bs_i64(op->now.us)));
    if (!taken)
        return request_taken(s, op, err);
    if (t->effect_key.n) {
        BS_TRY(RUN(s, BS_SQL_EFFECT_KEY_INSERT, &taken, err, bs_text(t->merchant_no),
                   bs_text(t->biz_type), bs_text(t->effect_key), fp_val(&op->submit.effect_fp),
                   bs_i64(op->id)));
        if (!taken)
            return effect_taken(s, op, err);
    }
    o->create = true;
    result(op, BS_SUBMITTED_CREATED, op->id);
    return BS_OK;
}

/* A parked submission has nobody who would run it: a person must hear of it. */
static bs_rc alert_parked(struct bs_store *s, const struct bs_op *op, struct bs_err *err)
{
    const struct bs_task *t = op->submit.task;
    char message[96];

    if (t->state != BS_MANUAL)
        return BS_OK;
    snprintf(message, sizeof(message), "no queue %.*s is configured", BS_STR_FMT(t->biz_type));
    return alert_raise(s, op, "parked",
                       &(struct bs_op_alert){ .subject = t->biz_type,
                                              .biz_type = t->biz_type,
                                              .task_id = t->id,
                                              .message = bs_str_of(message) },
                       op->rerun, err);
}

bs_rc submit_apply(struct bs_store *s, struct order *batch, uint32_t n, struct bs_err *err)
{
    for (uint32_t i = 0; i < n; i++) {
        BS_TRY(take_keys(s, &batch[i], err));
        if (batch[i].create) {
            BS_TRY(insert_row(s, batch[i].op->submit.task, err));
            BS_TRY(alert_parked(s, batch[i].op, err));
        } else {
            bs_arena_free(&s->scratch);
        }
    }
    return flush_rows(s, err);
}
