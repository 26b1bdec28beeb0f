/* Reading single things and small tables. Each read is one transaction, so that what belongs
 * together is of one instant and nothing stays open behind it. */
#include "store/inner.h"

struct reading {
    struct bs_store *s;
    bool open;
};

static void end_reading(struct reading *r)
{
    if (r->open)
        r->s->db->ops->rollback(r->s->db);
}

static bs_rc begin_reading(struct reading *r, struct bs_err *err)
{
    STORE_CHECK(r->s);
    BS_TRY(r->s->db->ops->begin(r->s->db, err));
    r->open = true;
    return BS_OK;
}

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

bs_rc bs_store_task(struct bs_store *s, int64_t id, struct bs_arena *a, struct bs_task *ret,
                    struct bs_err *err)
{
    BS_CLEANUP(end_reading) struct reading r = { .s = s };
    struct bs_task t;

    BS_TRY(begin_reading(&r, err));
    BS_TRY(row_get(s, id, true, a, &t, err));
    BS_TRY(read_excerpt(s, id, a, &t.result_snapshot, err));
    *ret = t;
    return BS_OK;
}
