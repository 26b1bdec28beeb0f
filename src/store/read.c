/* Reading single things and small tables. */
#include "store/reading.h"

void *grow_one(struct growing *g)
{
    if (g->n == g->cap) {
        uint32_t cap = g->cap ? g->cap * 2 : 16;
        char *more = bs_arena_alloc(g->a, cap * g->size);

        if (!more)
            return NULL;
        if (g->n)
            memcpy(more, g->items, g->n * g->size);
        g->items = more;
        g->cap = cap;
    }
    return g->items + g->n++ * g->size;
}

bs_rc read_all(struct bs_store *s, enum bs_sql sql, const struct bs_val *args, uint32_t n,
               void (*each)(const struct bs_val *cols, struct bs_arena *a, void *item),
               struct growing *g, struct bs_err *err)
{
    struct bs_val cols[20];
    bool more = true;

    BS_TRY(run(s, sql, args, n, NULL, err));
    for (;;) {
        BS_TRY(next(s, sql, cols, BS_COUNT(cols), &more, err));
        if (!more)
            return BS_OK;
        void *item = grow_one(g);
        if (!item)
            return bs_fail(err, BS_E_LIMIT, "the answer is too large");
        each(cols, g->a, item);
        if (g->a->failed)
            return bs_fail(err, BS_E_LIMIT, "the answer is too large");
    }
}

/* ---- one task ---- */

static bs_rc read_excerpt(struct bs_store *s, int64_t id, struct bs_arena *a, struct bs_str *ret,
                          struct bs_err *err)
{
    struct bs_val cols[1];
    bool found = false;

    BS_TRY(ONE(s, BS_SQL_LOG_EXCERPT, cols, &found, err, bs_i64(id)));
    if (found && cols[0].s.n)
        *ret = bs_arena_str(a, cols[0].s);
    return BS_OK;
}

/* Which of the two it was, nobody can tell any more: only finished tasks are purged, in the order
 * of their numbers. */
static bs_rc not_there(struct bs_store *s, int64_t id, struct bs_err *err)
{
    struct bs_val value[1];
    bool found = false;

    BS_TRY(ONE(s, BS_SQL_META_GET, value, &found, err, bs_text(BS_STR("purged_id"))));
    if (!found || id > value[0].i)
        return bs_fail(err, BS_E_NOT_FOUND, "there is no task %lld", (long long)id);
    return bs_fail(err, BS_E_NOT_FOUND,
                   "there is no task %lld (any more): finished tasks of its time have been purged",
                   (long long)id);
}

bs_rc bs_store_task(struct bs_store *s, int64_t id, struct bs_arena *a, struct bs_task *ret,
                    struct bs_err *err)
{
    BS_CLEANUP(end_reading) struct reading r = { .s = s };
    struct bs_task t;

    BS_TRY(begin_reading(&r, err));
    bs_rc rc = row_get(s, id, true, a, &t, err);
    if (rc == BS_E_NOT_FOUND)
        return not_there(s, id, err);
    BS_TRY(rc);
    BS_TRY(read_excerpt(s, id, a, &t.result_snapshot, err));
    *ret = t;
    return BS_OK;
}

/* ---- figures ---- */

static void each_stat(const struct bs_val *c, struct bs_arena *a, void *item)
{
    struct bs_stat_row *r = item;

    r->biz_type = bs_arena_str(a, c[0].s);
    r->state = bs_state_parse(c[1].s);
    r->currency = bs_arena_str(a, c[2].s);
    r->count = i64_at(&c[3]);
    r->amount = i64_at(&c[4]);
    r->unknown = i64_at(&c[5]);
}

static bool same_group(const struct bs_stat_row *x, const struct bs_stat_row *y)
{
    return x->state == y->state && bs_str_eq(x->biz_type, y->biz_type) &&
           bs_str_eq(x->currency, y->currency);
}

/* Rows of several nodes become one; groups that are empty now are left out. */
static uint32_t merge_stats(struct bs_stat_row *rows, uint32_t n)
{
    uint32_t out = 0;

    for (uint32_t i = 0; i < n; i++) {
        if (rows[i].count == 0 && rows[i].amount == 0 && rows[i].unknown == 0)
            continue;
        if (out > 0 && same_group(&rows[out - 1], &rows[i])) {
            rows[out - 1].count += rows[i].count;
            rows[out - 1].amount =
                (int64_t)((uint64_t)rows[out - 1].amount + (uint64_t)rows[i].amount);
            rows[out - 1].unknown += rows[i].unknown;
            continue;
        }
        rows[out++] = rows[i];
    }
    return out;
}

bs_rc bs_store_stats(struct bs_store *s, struct bs_arena *a, struct bs_stat_row **ret,
                     uint32_t *ret_n, struct bs_err *err)
{
    BS_CLEANUP(end_reading) struct reading r = { .s = s };
    struct growing g = { .a = a, .size = sizeof(struct bs_stat_row) };

    BS_TRY(begin_reading(&r, err));
    BS_TRY(read_all(s, BS_SQL_STAT_ALL, NULL, 0, each_stat, &g, err));
    *ret = (struct bs_stat_row *)(void *)g.items;
    *ret_n = merge_stats(*ret, g.n);
    return BS_OK;
}

/* ---- queues ---- */

static void each_name(const struct bs_val *c, struct bs_arena *a, void *item)
{
    struct bs_queue_row *r = item;

    r->biz_type = bs_arena_str(a, c[0].s);
}

static bs_rc oldest_of(struct bs_store *s, enum bs_sql sql, struct bs_queue_row *q,
                       struct bs_err *err)
{
    for (int priority = 0; priority < 4; priority++) {
        struct bs_val due[1];
        bool found = false;

        BS_TRY(ONE(s, sql, due, &found, err, bs_text(q->biz_type), bs_i64(priority)));
        if (found && (q->oldest_due.us == 0 || due[0].i < q->oldest_due.us))
            q->oldest_due.us = due[0].i;
    }
    return BS_OK;
}

static bs_rc oldest_manual_of(struct bs_store *s, struct bs_queue_row *q, struct bs_err *err)
{
    struct bs_val since[1];
    bool found = false;

    BS_TRY(ONE(s, BS_SQL_MANUAL_OLDEST, since, &found, err, bs_text(q->biz_type)));
    if (found)
        q->oldest_manual.us = since[0].i;
    return BS_OK;
}

static bs_rc complete_queue(struct bs_store *s, struct bs_arena *a, struct bs_queue_row *q,
                            struct bs_err *err)
{
    struct bs_val c[5];
    bool found = false;

    BS_TRY(ONE(s, BS_SQL_QUEUE_STATE_GET, c, &found, err, bs_text(q->biz_type)));
    if (found) {
        q->paused = i64_at(&c[0]) != 0;
        q->reason = bs_arena_str(a, c[1].s);
        q->operator= bs_arena_str(a, c[2].s);
        q->at.us = i64_at(&c[3]);
    }
    BS_TRY(oldest_of(s, BS_SQL_DUE_NEXT, q, err));
    BS_TRY(oldest_of(s, BS_SQL_DUE_NEXT_SUSPECT, q, err));
    return oldest_manual_of(s, q, err);
}

bs_rc bs_store_time_high(struct bs_store *s, struct bs_time *ret, struct bs_err *err)
{
    BS_CLEANUP(end_reading) struct reading r = { .s = s };
    struct bs_val value[1] = { bs_i64(0) };
    bool found = false;

    BS_TRY(begin_reading(&r, err));
    BS_TRY(ONE(s, BS_SQL_META_GET, value, &found, err, bs_text(BS_STR("time_high"))));
    *ret = (struct bs_time){ found ? value[0].i : 0 };
    return BS_OK;
}

bs_rc bs_store_queues(struct bs_store *s, struct bs_arena *a, struct bs_queue_row **ret,
                      uint32_t *ret_n, struct bs_err *err)
{
    BS_CLEANUP(end_reading) struct reading r = { .s = s };
    struct growing g = { .a = a, .size = sizeof(struct bs_queue_row) };

    BS_TRY(begin_reading(&r, err));
    BS_TRY(read_all(s, BS_SQL_QUEUE_NAMES, NULL, 0, each_name, &g, err));
    struct bs_queue_row *rows = (struct bs_queue_row *)(void *)g.items;
    for (uint32_t i = 0; i < g.n; i++)
        BS_TRY(complete_queue(s, a, &rows[i], err));
    *ret = rows;
    *ret_n = g.n;
    return BS_OK;
}

/* ---- audit, tokens ---- */

static void each_audit(const struct bs_val *c, struct bs_arena *a, void *item)
{
    struct bs_audit_row *r = item;

    r->id = i64_at(&c[0]);
    r->at.us = i64_at(&c[1]);
    r->operator= bs_arena_str(a, c[2].s);
    r->action = bs_arena_str(a, c[3].s);
    r->object = bs_arena_str(a, c[4].s);
    r->reason = bs_arena_str(a, c[5].s);
    r->conclusion = bs_arena_str(a, c[6].s);
    r->order_no = bs_arena_str(a, c[7].s);
    r->before = bs_arena_str(a, c[8].s);
    r->after = bs_arena_str(a, c[9].s);
}

static void each_token(const struct bs_val *c, struct bs_arena *a, void *item)
{
    struct bs_token_row *r = item;

    r->id = i64_at(&c[0]);
    r->name = bs_arena_str(a, c[1].s);
    r->role = bs_arena_str(a, c[2].s);
    r->queues = bs_arena_str(a, c[3].s);
    if (c[4].s.n == sizeof(r->hash.b))
        memcpy(r->hash.b, c[4].s.p, sizeof(r->hash.b));
    r->created_at.us = i64_at(&c[5]);
    r->revoked_at.us = i64_at(&c[6]);
}

static bs_rc read_page(struct bs_store *s, enum bs_sql sql, int64_t before_id, uint32_t limit,
                       void (*each)(const struct bs_val *, struct bs_arena *, void *),
                       struct growing *g, struct bs_err *err)
{
    BS_CLEANUP(end_reading) struct reading r = { .s = s };
    const struct bs_val args[] = { bs_i64(before_id ? before_id : INT64_MAX), bs_i64(limit) };

    BS_TRY(begin_reading(&r, err));
    return read_all(s, sql, args, 2, each, g, err);
}

bs_rc bs_store_audit(struct bs_store *s, int64_t before_id, uint32_t limit, struct bs_arena *a,
                     struct bs_audit_row **ret, uint32_t *ret_n, struct bs_err *err)
{
    struct growing g = { .a = a, .size = sizeof(struct bs_audit_row) };

    BS_TRY(read_page(s, BS_SQL_AUDIT_PAGE, before_id, limit, each_audit, &g, err));
    *ret = (struct bs_audit_row *)(void *)g.items;
    *ret_n = g.n;
    return BS_OK;
}

static bs_rc tokens_version(struct bs_store *s, int64_t *ret, struct bs_err *err)
{
    struct bs_val value[1];
    bool found = false;

    BS_TRY(ONE(s, BS_SQL_META_GET, value, &found, err, bs_text(BS_STR("tokens_version"))));
    if (!found)
        return bs_fail(err, BS_E_CORRUPT, "the store has no tokens_version");
    *ret = value[0].i;
    return BS_OK;
}

bs_rc bs_store_tokens(struct bs_store *s, struct bs_arena *a, struct bs_token_row **ret,
                      uint32_t *ret_n, int64_t *ret_version, struct bs_err *err)
{
    BS_CLEANUP(end_reading) struct reading r = { .s = s };
    struct growing g = { .a = a, .size = sizeof(struct bs_token_row) };

    BS_TRY(begin_reading(&r, err));
    BS_TRY(tokens_version(s, ret_version, err));
    BS_TRY(read_all(s, BS_SQL_TOKEN_ALL, NULL, 0, each_token, &g, err));
    *ret = (struct bs_token_row *)(void *)g.items;
    *ret_n = g.n;
    return BS_OK;
}

bs_rc bs_store_tokens_version(struct bs_store *s, int64_t *ret, struct bs_err *err)
{
    BS_CLEANUP(end_reading) struct reading r = { .s = s };

    BS_TRY(begin_reading(&r, err));
    return tokens_version(s, ret, err);
}
