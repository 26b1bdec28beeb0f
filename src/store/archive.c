/* Finished tasks move to history, and from there away, in slices. Only the row of a task moves: its
 * payload and its log stand by its number wherever it is, its keys stay for ever. */
#include "store/inner.h"
#include "sys/ids.h"

enum { PURGE_COLS = 7, STOPS_KEPT_DAYS = 400 };

/* Ids carry the time at which they were made, give or take the difference of two clock readings:
 * what is younger than `before` cannot be older than it either, and is not looked at. */
static int64_t end_of(const struct bs_op_slice *c)
{
    static const struct bs_span slack = { 60000000 };

    return bs_ids_floor(bs_time_add(c->before, slack));
}

static void begin_slice(struct bs_op_slice *c)
{
    c->ret_moved = 0;
    c->ret_more = false;
    c->ret_after_id = c->after_id;
}

/* ---- to history ---- */

/* Once a pass: stops so old that no age reaches back to them. */
static bs_rc forget_stops(struct bs_store *s, const struct bs_op *op, struct bs_err *err)
{
    if (op->slice.after_id != 0)
        return BS_OK;
    return RUN(s, BS_SQL_STOPS_FORGET, NULL, err,
               bs_i64(op->now.us - STOPS_KEPT_DAYS * INT64_C(86400000000)));
}

static bs_rc move(struct bs_store *s, const struct bs_op_slice *c, int64_t last, int64_t *ret_moved,
                  struct bs_err *err)
{
    const char *success = bs_state_name(BS_SUCCESS);
    const char *closed = bs_state_name(BS_PLANT(ARCHIVE_TAKES_OPEN) ? BS_MANUAL : BS_CLOSED);
    int64_t removed = 0;

    BS_TRY(RUN(s, BS_SQL_ARCHIVE_COPY, ret_moved, err, bs_i64(c->after_id), bs_i64(last),
               bs_i64(c->before.us), textz(success), textz(closed)));
    if (*ret_moved == 0)
        return BS_OK;
    BS_TRY(RUN(s, BS_SQL_ARCHIVE_REMOVE, &removed, err, bs_i64(c->after_id), bs_i64(last),
               bs_i64(c->before.us), textz(success), textz(closed)));
    if (removed != *ret_moved)
        return bs_fail(err, BS_E_CORRUPT, "%lld tasks came into history, %lld left the live ones",
                       (long long)*ret_moved, (long long)removed);
    return BS_OK;
}

bs_rc archive_apply(struct bs_store *s, struct bs_op *op, struct bs_err *err)
{
    struct bs_op_slice *c = &op->slice;
    struct bs_val reach[2];
    int64_t moved = 0;
    bool found = false;

    begin_slice(c);
    BS_TRY(forget_stops(s, op, err));
    BS_TRY(ONE(s, BS_SQL_ARCHIVE_REACH, reach, &found, err, bs_i64(c->after_id), bs_i64(end_of(c)),
               bs_i64(c->limit)));
    if (!found || reach[0].type != BS_VAL_I64)
        return BS_OK;
    BS_TRY(move(s, c, reach[0].i, &moved, err));
    c->ret_moved = (uint32_t)moved;
    c->ret_after_id = reach[0].i;
    c->ret_more = reach[1].i == (int64_t)c->limit;
    return BS_OK;
}

/* ---- away ---- */

/* The order of the columns of purge_scan. */
static bs_rc subtract(struct bs_store *s, const struct bs_val *v, struct bs_err *err)
{
    struct bs_task t = { .biz_type = v[1].s, .state = bs_state_parse(v[2].s) };

    if (t.state == BS_STATE_NONE)
        return bs_fail(err, BS_E_CORRUPT, "task %lld in history has a state that does not exist",
                       (long long)v[0].i);
    t.money.minor = v[3].type == BS_VAL_I64 ? v[3].i : 0;
    if (v[4].type == BS_VAL_TEXT)
        memcpy(t.money.currency, v[4].s.p, BS_MIN(v[4].s.n, (size_t)3));
    return stat_add(s, &t, t.state, v[5].i != 0, -1, err);
}

/* The figures lose what is about to be deleted. *ret_last_gone: the largest id of it. */
static bs_rc look_through(struct bs_store *s, struct bs_op_slice *c, int64_t *ret_last_gone,
                          struct bs_err *err)
{
    struct bs_val v[PURGE_COLS];
    bool more = false;

    BS_TRY(RUN(s, BS_SQL_PURGE_SCAN, NULL, err, bs_i64(c->after_id), bs_i64(end_of(c)),
               bs_i64(c->limit)));
    for (uint32_t seen = 0;; seen++) {
        BS_TRY(next(s, BS_SQL_PURGE_SCAN, v, PURGE_COLS, &more, err));
        c->ret_more = seen == c->limit;
        if (!more)
            return BS_OK;
        c->ret_after_id = v[0].i;
        if (v[6].i >= c->before.us)
            continue;
        if (!BS_PLANT(STAT_FORGETS_PURGE))
            BS_TRY(subtract(s, v, err));
        *ret_last_gone = v[0].i;
        c->ret_moved++;
    }
}

bs_rc purge_apply(struct bs_store *s, struct bs_op *op, struct bs_err *err)
{
    static const enum bs_sql away[] = { BS_SQL_PURGE_PAYLOADS, BS_SQL_PURGE_LOGS,
                                        BS_SQL_PURGE_TASKS };
    struct bs_op_slice *c = &op->slice;
    int64_t last = 0, gone = 0;

    begin_slice(c);
    BS_TRY(look_through(s, c, &last, err));
    if (c->ret_moved == 0)
        return BS_OK;
    for (size_t i = 0; i < BS_COUNT(away); i++)
        BS_TRY(
            RUN(s, away[i], &gone, err, bs_i64(c->after_id), bs_i64(last), bs_i64(c->before.us)));
    if (gone != (int64_t)c->ret_moved)
        return bs_fail(err, BS_E_CORRUPT, "%u tasks were to be purged, %lld were", c->ret_moved,
                       (long long)gone);
    return RUN(s, BS_SQL_META_RAISE, NULL, err, bs_text(BS_STR("purged_id")), bs_i64(last));
}
