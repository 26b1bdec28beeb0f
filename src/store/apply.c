/* One re-runnable transaction for all operations of a batch. */
#include "store/inner.h"

#include <stdlib.h>

/* ---- order: runs of one kind are sorted by their key, so that neighbours in a table meet ---- */

static int by_request(const void *x, const void *y)
{
    const struct order *a = x, *b = y;
    int c = bs_str_cmp(a->op->submit.task->request_id, b->op->submit.task->request_id);

    return c ? c : (a->at > b->at) - (a->at < b->at);
}

static int64_t task_of(const struct bs_op *op)
{
    if (op->kind == BS_OP_FINISH)
        return op->finish.task->id;
    return op->kind == BS_OP_RENEW ? op->renew.task_id : 0;
}

static int by_task(const void *x, const void *y)
{
    const struct order *a = x, *b = y;
    int64_t p = task_of(a->op), q = task_of(b->op);

    if (p != q)
        return p < q ? -1 : 1;
    return (a->at > b->at) - (a->at < b->at);
}

static void sort(struct order *o, uint32_t n, int (*cmp)(const void *, const void *))
{
    for (uint32_t i = 1; i < n; i++) {
        if (cmp(&o[i - 1], &o[i]) > 0) {
            qsort(o, n, sizeof(*o), cmp);
            return;
        }
    }
}

static bs_rc make_order(struct bs_store *s, struct bs_op *const *ops, uint32_t n,
                        struct bs_err *err)
{
    if (n > s->order_cap) {
        struct order *more = realloc(s->order, n * sizeof(*more));
        if (!more)
            return bs_fail(err, BS_E_UNAVAILABLE, "no memory for a batch of %u", n);
        s->order = more;
        s->order_cap = n;
    }
    for (uint32_t i = 0; i < n; i++)
        s->order[i] = (struct order){ .op = ops[i], .at = i };
    return BS_OK;
}

/* ---- inside the transaction ---- */

static bs_rc apply_one(struct bs_store *s, struct bs_op *op, struct bs_err *err)
{
    switch (op->kind) {
    case BS_OP_CLAIM:
        return claim_apply(s, op, err);
    case BS_OP_FINISH:
        return finish_apply(s, op, err);
    case BS_OP_RENEW:
        return renew_apply(s, op, err);
    case BS_OP_REAP:
        return reap_apply(s, op, err);
    case BS_OP_ORPHANS:
        return orphans_apply(s, op, err);
    case BS_OP_ACT:
        return act_apply(s, op, err);
    case BS_OP_QUEUE_PAUSE:
        return queue_pause_apply(s, op, err);
    case BS_OP_TOKEN_ADD:
        return token_add_apply(s, op, err);
    case BS_OP_TOKEN_REVOKE:
        return token_revoke_apply(s, op, err);
    case BS_OP_ALERT:
        return alert_apply(s, op, err);
    case BS_OP_ALERT_CLEAR:
        return alert_clear_apply(s, op, err);
    case BS_OP_ALERT_PLAN:
        return alert_plan_apply(s, op, err);
    case BS_OP_ALERT_TOLD:
        return alert_told_apply(s, op, err);
    case BS_OP_ALERT_RECORD:
        return alert_record_apply(s, op, err);
    case BS_OP_STOPPED:
        return stopped_apply(s, op, err);
    case BS_OP_ARCHIVE:
        return archive_apply(s, op, err);
    case BS_OP_PURGE:
        return purge_apply(s, op, err);
    case BS_OP_SUBMIT:
    case BS_OP_KIND_COUNT:
        break;
    }
    bs_panic(__FILE__, __LINE__, "an operation outside the list");
}

/* n operations of one kind. */
static bs_rc apply_run(struct bs_store *s, struct order *o, uint32_t n, struct bs_err *err)
{
    if (o->op->kind == BS_OP_SUBMIT) {
        sort(o, n, by_request);
        return submit_apply(s, o, n, err);
    }
    if (o->op->kind == BS_OP_FINISH || o->op->kind == BS_OP_RENEW)
        sort(o, n, by_task);
    for (uint32_t i = 0; i < n; i++) {
        o[i].op->rc = BS_OK;
        BS_TRY(apply_one(s, o[i].op, err));
        bs_arena_free(&s->scratch);
    }
    return BS_OK;
}

static bs_rc apply_all(struct bs_store *s, uint32_t n, struct bs_err *err)
{
    for (uint32_t i = 0, end = 0; i < n; i = end) {
        while (end < n && s->order[end].op->kind == s->order[i].op->kind)
            end++;
        BS_TRY(apply_run(s, s->order + i, end - i, err));
    }
    return stat_flush(s, err);
}

/* Nothing of a failed transaction may be seen: neither tasks that were claimed nor hints. */
static void forget(struct bs_store *s, struct bs_op *const *ops, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        if (ops[i]->kind == BS_OP_CLAIM)
            claim_forget(ops[i]);
    }
    stat_forget(s);
    bs_arena_free(&s->scratch);
    s->task_rows = s->payload_rows = 0;
}

static bs_rc in_transaction(struct bs_store *s, uint32_t n, struct bs_err *err)
{
    BS_TRY(store_keep_lock(s, err));
    BS_TRY(s->db->ops->begin(s->db, err));
    BS_TRY(apply_all(s, n, err));
#ifdef BS_PLANTED
    if (s->before_commit)
        s->before_commit(s->before_commit_ctx);
#endif
    return s->db->ops->commit(s->db, err);
}

static bs_rc try_once(struct bs_store *s, struct bs_op *const *ops, uint32_t n, struct bs_err *err)
{
    BS_TRY(make_order(s, ops, n, err));
    struct bs_hints before = s->hints;
    bs_rc rc = in_transaction(s, n, err);
    stops_forget(s);

    if (rc == BS_OK)
        return BS_OK;
    s->db->ops->rollback(s->db);
    forget(s, ops, n);
    s->hints = before;
    return rc == BS_E_NOMEM ? BS_E_UNAVAILABLE : rc;
}

/* The database has looked at it and says no; running it again would not help. */
static bool is_refusal(bs_rc rc)
{
    return rc == BS_E_CONFLICT || rc == BS_E_INVALID || rc == BS_E_LIMIT;
}

/* *done grows by what was committed or refused for good. */
static bs_rc apply_span(struct bs_store *s, struct bs_op *const *ops, uint32_t n, uint32_t *done,
                        struct bs_err *err)
{
    bs_rc rc = try_once(s, ops, n, err);

    if (is_refusal(rc) && n > 1) {
        BS_TRY(apply_span(s, ops, n / 2, done, err));
        return apply_span(s, ops + n / 2, n - n / 2, done, err);
    }
    if (is_refusal(rc)) {
        ops[0]->rc = rc;
        if (err)
            ops[0]->err = *err;
        rc = BS_OK;
    }
    if (rc == BS_OK)
        *done += n;
    return rc;
}

bs_rc bs_store_apply(struct bs_store *s, struct bs_op *const *ops, uint32_t n, struct bs_err *err)
{
    struct bs_err own = { 0 };
    struct bs_err *e = err ? err : &own;
    uint32_t done = 0;

    STORE_CHECK(s);
    BS_ASSERT(s->mode == BS_STORE_WRITER);
    s->hints = (struct bs_hints){ 0 };
    if (n == 0)
        return BS_OK;
    bs_rc rc = apply_span(s, ops, n, &done, e);
    /* A part stands already: only running all of it again gives every result. */
    if (rc != BS_OK && done > 0)
        return bs_fail(err, BS_E_UNKNOWN, "%u of %u operations were done before: %.180s", done, n,
                       own.msg);
    return rc;
}

const struct bs_hints *bs_store_hints(struct bs_store *s)
{
    STORE_CHECK(s);
    return &s->hints;
}
