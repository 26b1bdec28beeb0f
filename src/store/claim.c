/* A claim: due tasks of one queue, in the order of priority and due time, under a lease with a
 * greater token. Rows whose business object is busy are taken out of the way (block.c). */
#include "store/inner.h"

#include <stdlib.h>

enum { PRIORITIES = 4, SUSPECT_CRASHES = 2, BLOCKED_MAX = 256 };

void bs_leased_free(struct bs_leased *l)
{
    while (l) {
        struct bs_leased *after = l->next;

        bs_arena_free(&l->arena);
        free(l);
        l = after;
    }
}

void claim_forget(struct bs_op *op)
{
    bs_leased_free(op->claim.ret_tasks);
    op->claim.ret_tasks = NULL;
    op->claim.ret_n = 0;
}

static bs_rc load(const struct bs_val *cols, struct bs_leased **ret, struct bs_err *err)
{
    struct bs_leased *l = calloc(1, sizeof(*l));

    if (!l)
        return bs_fail(err, BS_E_NOMEM, "no memory for a claim");
    bs_rc rc = row_read(cols, WHOLE_COLS, &l->arena, &l->task, err);
    if (rc != BS_OK) {
        bs_leased_free(l);
        return rc;
    }
    *ret = l;
    return BS_OK;
}

/* One claim while it runs. */
struct claim {
    struct bs_store *s;
    struct bs_op *op;
    struct bs_leased **tail;
    uint32_t left, suspects_left;
    uint32_t blocked;
};

static bs_rc block(struct claim *c, const struct bs_task *t, struct bs_err *err)
{
    c->blocked++;
    return RUN(c->s, BS_SQL_CLAIM_BLOCK, NULL, err, bs_i64(t->id), bs_i64(c->op->now.us));
}

static void as_claimed(const struct bs_op *op, struct bs_task *t, int64_t token)
{
    t->state = BS_PROCESSING;
    t->attempt_no++;
    t->due_at = t->call_until = BS_TIME_NONE;
    t->lease_token = token;
    t->locked_by = op->claim.claim_id;
    t->locked_at = t->last_execute_at = t->updated_at = op->now;
    t->locked_until = op->claim.lease_until;
    t->version++;
}

/* *ret_taken false: its business object is busy. */
static bs_rc take(struct claim *c, struct bs_leased *l, bool *ret_taken, struct bs_err *err)
{
    struct bs_task *t = &l->task;
    int64_t token = BS_MAX(t->lease_token + 1, c->op->claim.token_floor), changes = 0;
    struct bs_str key = BS_PLANT(NO_SERIAL_KEY) ? BS_STR_NONE : t->serial_key;

    BS_TRY(RUN(c->s, BS_SQL_CLAIM_TAKE, &changes, err, bs_i64(t->id), bs_text_or_null(key),
               bs_text(c->op->claim.claim_id), bs_i64(c->op->now.us),
               bs_i64(c->op->claim.lease_until.us), bs_i64(token)));
    *ret_taken = changes > 0;
    if (changes == 0)
        return block(c, t, err);
    BS_TRY(stat_move(c->s, t, BS_PROCESSING, t->outcome_unknown, err));
    as_claimed(c->op, t, token);
    t->locked_by = bs_arena_str(&l->arena, c->op->claim.claim_id);
    return t->locked_by.p ? BS_OK : bs_fail(err, BS_E_NOMEM, "no memory for a claim");
}

/* Candidates are loaded before any of them is changed: a cursor does not like its index to move.
 * *ret_over: more than limit are due. */
static bs_rc scan(struct claim *c, enum bs_sql sql, int32_t priority, uint32_t limit,
                  struct bs_leased **ret, bool *ret_over, struct bs_err *err)
{
    struct bs_op_claim *q = &c->op->claim;
    struct bs_leased **tail = ret;
    struct bs_val cols[WHOLE_COLS];
    bool more = false;

    BS_TRY(RUN(c->s, sql, NULL, err, bs_text(q->biz_type), bs_i64(priority),
               bs_i64((int64_t)limit + 1)));
    for (uint32_t n = 0;; n++) {
        BS_TRY(next(c->s, sql, cols, WHOLE_COLS, &more, err));
        if (!more)
            return BS_OK;
        struct bs_time due = { cols[COL_DUE_AT].i };
        if (bs_time_before(c->op->now, due)) {
            q->ret_next_due = bs_time_min(q->ret_next_due, due);
            return BS_OK;
        }
        if (n == limit) {
            *ret_over = true;
            return BS_OK;
        }
        BS_TRY(load(cols, tail, err));
        BS_ASSERT(*tail);
        tail = &(*tail)->next;
    }
}

/* Takes the candidates over; all are freed or in the result, whatever happens. */
static bs_rc take_each(struct claim *c, struct bs_leased *list, uint32_t *left, struct bs_err *err)
{
    bs_rc rc = BS_OK;

    while (list) {
        struct bs_leased *l = list;
        bool taken = false;

        list = l->next;
        l->next = NULL;
        if (rc == BS_OK)
            rc = take(c, l, &taken, err);
        if (rc != BS_OK || !taken) {
            bs_leased_free(l);
            continue;
        }
        *c->tail = l;
        c->tail = &l->next;
        c->op->claim.ret_n++;
        (*left)--;
    }
    return rc;
}

/* One range of the index, again while blocked rows stood where others may still be taken. */
static bs_rc claim_range(struct claim *c, enum bs_sql sql, int32_t priority, uint32_t *left,
                         struct bs_err *err)
{
    bool again = true;

    while (again) {
        struct bs_leased *list = NULL;
        uint32_t blocked = c->blocked;
        bool over = false;

        bs_rc rc = scan(c, sql, priority, *left, &list, &over, err);
        if (rc != BS_OK) {
            bs_leased_free(list);
            return rc;
        }
        BS_TRY(take_each(c, list, left, err));
        again = over && *left > 0 && c->blocked > blocked && c->blocked < BLOCKED_MAX;
        if (over && !again)
            c->op->claim.ret_more = true;
    }
    return BS_OK;
}

/* What was passed over only because suspects run one at a time is not "more": whoever ends one asks
 * again. */
static bs_rc claim_suspects(struct claim *c, int32_t priority, struct bs_err *err)
{
    uint32_t may = BS_MIN(c->left, c->suspects_left), left = may;
    bool more = c->op->claim.ret_more;
    struct bs_time due = c->op->claim.ret_next_due;

    if (c->op->claim.suspects_limit == 0)
        return BS_OK;
    BS_TRY(claim_range(c, BS_SQL_CLAIM_SCAN_SUSPECTS, priority, &left, err));
    c->left -= may - left;
    c->suspects_left -= may - left;
    if (c->suspects_left == 0) {
        c->op->claim.ret_more = more;
        c->op->claim.ret_next_due = due;
    }
    return BS_OK;
}

static bs_rc claim_again(struct claim *c, struct bs_err *err)
{
    struct bs_op_claim *q = &c->op->claim;
    struct bs_val cols[WHOLE_COLS];
    bool more = false;

    BS_TRY(RUN(c->s, BS_SQL_CLAIM_AGAIN, NULL, err, bs_i64(q->lease_until.us), bs_text(q->claim_id),
               bs_text(q->biz_type)));
    for (;;) {
        BS_TRY(next(c->s, BS_SQL_CLAIM_AGAIN, cols, WHOLE_COLS, &more, err));
        if (!more)
            return BS_OK;
        BS_TRY(load(cols, c->tail, err));
        BS_ASSERT(*c->tail);
        c->tail = &(*c->tail)->next;
        q->ret_n++;
    }
}

bs_rc claim_apply(struct bs_store *s, struct bs_op *op, struct bs_err *err)
{
    struct bs_op_claim *q = &op->claim;
    struct claim c = { .s = s,
                       .op = op,
                       .tail = &q->ret_tasks,
                       .left = q->limit,
                       .suspects_left = BS_MIN(q->suspects_limit, q->limit) };

    claim_forget(op);
    q->ret_more = false;
    q->ret_set_aside = 0;
    q->ret_next_due = BS_NEVER;
    if (op->rerun)
        BS_TRY(claim_again(&c, err));
    if (q->ret_n > 0) {
        q->ret_more = true; /* not looked at: the next claim tells */
        return BS_OK;
    }
    for (int32_t i = 0; i < PRIORITIES; i++) {
        int32_t priority = q->from_below ? PRIORITIES - 1 - i : i;

        BS_TRY(claim_suspects(&c, priority, err));
        BS_TRY(claim_range(&c, BS_SQL_CLAIM_SCAN, priority, &c.left, err));
    }
    q->ret_set_aside = c.blocked;
    return BS_OK;
}
