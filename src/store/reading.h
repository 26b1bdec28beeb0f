/* One read as one transaction: what belongs together is of one instant, and nothing stays open. */
#pragma once

#include "store/inner.h"

struct reading {
    struct bs_store *s;
    bool open;
};

static inline void end_reading(struct reading *r)
{
    if (r->open)
        r->s->db->ops->rollback(r->s->db);
}

static inline bs_rc begin_reading(struct reading *r, struct bs_err *err)
{
    STORE_CHECK(r->s);
    /* A begin whose answer was lost may have begun. */
    r->open = true;
    return r->s->db->ops->begin(r->s->db, err);
}

/* Rows of unknown number, growing in an arena. */
struct growing {
    struct bs_arena *a;
    size_t size; /* of one */
    char *items;
    uint32_t n, cap;
};

/* The next zeroed element, or NULL without memory. */
void *grow_one(struct growing *g);

/* Calls each for every row of a statement (at most 20 columns); each fills the element it is given.
 */
BS_NODISCARD bs_rc read_all(struct bs_store *s, enum bs_sql sql, const struct bs_val *args,
                            uint32_t n,
                            void (*each)(const struct bs_val *cols, struct bs_arena *a, void *item),
                            struct growing *g, struct bs_err *err);

static inline int64_t i64_at(const struct bs_val *v)
{
    return v->type == BS_VAL_I64 ? v->i : 0;
}
