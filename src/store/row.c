/* A task's row: columns to struct and back. */
#include "store/inner.h"

/* The order of the fragments task_columns and payload_columns in sql/common.sql. */
enum col {
    C_ID,
    C_REQUEST_ID,
    C_BIZ_TYPE,
    C_MERCHANT_NO,
    C_BIZ_ID,
    C_EFFECT_KEY,
    C_SERIAL_KEY,
    C_ORDER_NO,
    C_PAYMENT_NO,
    C_CHANNEL,
    C_CHANNEL_TRADE_NO,
    C_REFUND_NO,
    C_SOURCE,
    C_PARENT_ID,
    C_AMOUNT,
    C_CURRENCY,
    C_CREATED_BY,
    C_CREATED_AT,
    C_STATE,
    C_PRIORITY,
    C_RETRY_COUNT,
    C_MAX_RETRY_COUNT,
    C_ATTEMPT_NO,
    C_CRASH_COUNT,
    C_DEFER_COUNT,
    C_NOT_FOUND_COUNT,
    C_FIRST_NOT_FOUND_AT,
    C_OUTCOME_UNKNOWN,
    C_LAST_OUTCOME,
    C_LAST_ERROR_CODE,
    C_LAST_ERROR_MSG,
    C_MANUAL_CODE,
    C_CONCLUSION,
    C_PENDING,
    C_NEXT_EXECUTE_AT,
    C_DUE_AT,
    C_BLOCKED_KEY,
    C_LAST_EXECUTE_AT,
    C_LOCKED_BY,
    C_LOCKED_AT,
    C_LOCKED_UNTIL,
    C_LEASE_TOKEN,
    C_VERSION,
    C_UPDATED_AT,
    C_CALL_UNTIL,
    C_PAYLOAD,
    C_PAYLOAD_IS_JSON,
    C_EXTRA_DATA,
    C_COUNT
};
_Static_assert((int)C_PAYLOAD == TASK_COLS && (int)C_COUNT == WHOLE_COLS &&
                   (int)C_DUE_AT == COL_DUE_AT,
               "columns and their numbers");

static bool is_bytes(const struct bs_val *v)
{
    return v->type == BS_VAL_TEXT || v->type == BS_VAL_BYTES;
}

size_t row_bytes(const struct bs_val *cols, uint32_t n)
{
    size_t sum = 0;

    for (uint32_t i = 0; i < n; i++) {
        if (is_bytes(&cols[i]))
            sum += cols[i].s.n + 1;
    }
    return sum;
}

/* Copies texts one behind the other into one piece of memory. */
struct packer {
    char *at;
};

static struct bs_str pack(struct packer *p, const struct bs_val *v)
{
    if (!is_bytes(v))
        return BS_STR_NONE;
    struct bs_str copy = { p->at, v->s.n };
    if (v->s.n)
        memcpy(p->at, v->s.p, v->s.n);
    p->at[v->s.n] = '\0';
    p->at += v->s.n + 1;
    return copy;
}

static int64_t number(const struct bs_val *v)
{
    return v->type == BS_VAL_I64 ? v->i : 0;
}

static struct bs_time time_of(const struct bs_val *v)
{
    return (struct bs_time){ number(v) };
}

static void read_identity(const struct bs_val *c, struct packer *p, struct bs_task *t)
{
    t->id = number(&c[C_ID]);
    t->request_id = pack(p, &c[C_REQUEST_ID]);
    t->biz_type = pack(p, &c[C_BIZ_TYPE]);
    t->merchant_no = pack(p, &c[C_MERCHANT_NO]);
    t->biz_id = pack(p, &c[C_BIZ_ID]);
    t->effect_key = pack(p, &c[C_EFFECT_KEY]);
    t->serial_key = pack(p, &c[C_SERIAL_KEY]);
    t->order_no = pack(p, &c[C_ORDER_NO]);
    t->payment_no = pack(p, &c[C_PAYMENT_NO]);
    t->channel = pack(p, &c[C_CHANNEL]);
    t->channel_trade_no = pack(p, &c[C_CHANNEL_TRADE_NO]);
    t->refund_no = pack(p, &c[C_REFUND_NO]);
    t->source = bs_source_parse(c[C_SOURCE].s);
    t->parent_id = number(&c[C_PARENT_ID]);
    t->money.minor = number(&c[C_AMOUNT]);
    if (c[C_CURRENCY].type == BS_VAL_TEXT)
        memcpy(t->money.currency, c[C_CURRENCY].s.p, BS_MIN(c[C_CURRENCY].s.n, (size_t)3));
    t->created_by = pack(p, &c[C_CREATED_BY]);
    t->created_at = time_of(&c[C_CREATED_AT]);
}

static void read_state(const struct bs_val *c, struct packer *p, struct bs_task *t)
{
    t->state = bs_state_parse(c[C_STATE].s);
    t->priority = (int32_t)number(&c[C_PRIORITY]);
    t->retry_count = (int32_t)number(&c[C_RETRY_COUNT]);
    t->max_retry_count = (int32_t)number(&c[C_MAX_RETRY_COUNT]);
    t->attempt_no = (int32_t)number(&c[C_ATTEMPT_NO]);
    t->crash_count = (int32_t)number(&c[C_CRASH_COUNT]);
    t->defer_count = (int32_t)number(&c[C_DEFER_COUNT]);
    t->not_found_count = (int32_t)number(&c[C_NOT_FOUND_COUNT]);
    t->first_not_found_at = time_of(&c[C_FIRST_NOT_FOUND_AT]);
    t->outcome_unknown = number(&c[C_OUTCOME_UNKNOWN]) != 0;
    t->last_outcome = pack(p, &c[C_LAST_OUTCOME]);
    t->last_error_code = pack(p, &c[C_LAST_ERROR_CODE]);
    t->last_error_msg = pack(p, &c[C_LAST_ERROR_MSG]);
    t->manual_code = pack(p, &c[C_MANUAL_CODE]);
    t->conclusion = pack(p, &c[C_CONCLUSION]);
    t->pending = (enum bs_pending)number(&c[C_PENDING]);
}

static void read_times(const struct bs_val *c, struct packer *p, struct bs_task *t)
{
    t->next_execute_at = time_of(&c[C_NEXT_EXECUTE_AT]);
    t->due_at = time_of(&c[C_DUE_AT]);
    t->blocked = c[C_BLOCKED_KEY].type == BS_VAL_NULL ? BS_BLOCKED_NONE : BS_BLOCKED_SERIAL;
    t->last_execute_at = time_of(&c[C_LAST_EXECUTE_AT]);
    t->locked_by = pack(p, &c[C_LOCKED_BY]);
    t->locked_at = time_of(&c[C_LOCKED_AT]);
    t->locked_until = time_of(&c[C_LOCKED_UNTIL]);
    t->lease_token = number(&c[C_LEASE_TOKEN]);
    t->version = number(&c[C_VERSION]);
    t->updated_at = time_of(&c[C_UPDATED_AT]);
    t->call_until = time_of(&c[C_CALL_UNTIL]);
}

bs_rc row_read(const struct bs_val *cols, uint32_t n, struct bs_arena *a, struct bs_task *ret,
               struct bs_err *err)
{
    struct packer p = { bs_arena_alloc(a, row_bytes(cols, n) + 1) };

    BS_ASSERT(n == TASK_COLS || n == WHOLE_COLS);
    if (!p.at)
        return bs_fail(err, BS_E_NOMEM, "no memory for a task");
    *ret = (struct bs_task){ 0 };
    read_identity(cols, &p, ret);
    read_state(cols, &p, ret);
    read_times(cols, &p, ret);
    if (n == WHOLE_COLS) {
        ret->payload = pack(&p, &cols[C_PAYLOAD]);
        ret->payload_is_json = number(&cols[C_PAYLOAD_IS_JSON]) != 0;
        ret->extra_data = pack(&p, &cols[C_EXTRA_DATA]);
    }
    if (ret->state == BS_STATE_NONE || ret->source == BS_SRC_NONE)
        return bs_fail(err, BS_E_CORRUPT, "task %lld has a state or a source that does not exist",
                       (long long)ret->id);
    return BS_OK;
}

/* Where a row may stand: live first. */
static bs_rc find(struct bs_store *s, int64_t id, bool whole, struct bs_val *cols, bool *ret_found,
                  struct bs_err *err)
{
    uint32_t n = whole ? WHOLE_COLS : TASK_COLS;
    struct bs_val key = bs_i64(id);

    BS_TRY(store_one(s, whole ? BS_SQL_TASK_WHOLE : BS_SQL_TASK_GET, &key, 1, cols, n, ret_found,
                     err));
    if (*ret_found)
        return BS_OK;
    return store_one(s, whole ? BS_SQL_HISTORY_WHOLE : BS_SQL_HISTORY_GET, &key, 1, cols, n,
                     ret_found, err);
}

bs_rc row_get(struct bs_store *s, int64_t id, bool whole, struct bs_arena *a, struct bs_task *ret,
              struct bs_err *err)
{
    struct bs_val cols[WHOLE_COLS];
    bool found = false;

    BS_TRY(find(s, id, whole, cols, &found, err));
    if (!found)
        return bs_fail(err, BS_E_NOT_FOUND, "there is no task %lld", (long long)id);
    return row_read(cols, whole ? WHOLE_COLS : TASK_COLS, a, ret, err);
}
