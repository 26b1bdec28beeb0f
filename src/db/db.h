/* The small blocking border to a database: named statements in, typed values out, errors as bs_rc.
 * Knows nothing of tasks, decides nothing, logs nothing. A handle belongs to one thread at a time.
 * Faults are injected here. */
#pragma once

#include "base/base.h"
#include "db/sql.h" /* generated from sql/: enum bs_sql */

enum bs_val_type { BS_VAL_NULL = 0, BS_VAL_I64, BS_VAL_TEXT, BS_VAL_BYTES };

/* Three column types and null. Slices given in live until their statement is over (its last row, or
 * the end of the transaction): they are bound without copies. Slices got live until the next call.
 */
struct bs_val {
    enum bs_val_type type;
    int64_t i;
    struct bs_str s;
};

static inline struct bs_val bs_i64(int64_t v)
{
    return (struct bs_val){ .type = BS_VAL_I64, .i = v };
}

static inline struct bs_val bs_text(struct bs_str s)
{
    return (struct bs_val){ .type = BS_VAL_TEXT, .s = s };
}

static inline struct bs_val bs_text_or_null(struct bs_str s)
{
    return s.n ? bs_text(s) : (struct bs_val){ .type = BS_VAL_NULL };
}

static inline struct bs_val bs_bytes(struct bs_str s)
{
    return (struct bs_val){ .type = BS_VAL_BYTES, .s = s };
}

static inline struct bs_val bs_null(void)
{
    return (struct bs_val){ .type = BS_VAL_NULL };
}

struct bs_db {
    const struct bs_db_ops *ops;
};

/* Every member is required (bs_db_check); all block. */
struct bs_db_ops {
    const char *name; /* "sqlite" */
    bs_rc (*begin)(struct bs_db *db,
                   struct bs_err *err); /* for writing: takes the write lock at once */
    /* BS_E_UNKNOWN: the answer was lost, it may have happened; run the same transaction again. */
    bs_rc (*commit)(struct bs_db *db, struct bs_err *err);
    void (*rollback)(
        struct bs_db *db); /* never fails; a broken connection is reopened by the next begin */
    /* Runs a statement to its first row or its end. ret_changes (may be NULL): rows it changed.
     * Another run of any statement ends this one's rows, except through a nested cursor: a
     * statement id can be open once. */
    bs_rc (*run)(struct bs_db *db, enum bs_sql sql, const struct bs_val *args, uint32_t n,
                 int64_t *ret_changes, struct bs_err *err);
    /* The same statement for n rows of cols values each (row by row in args). */
    bs_rc (*run_many)(struct bs_db *db, enum bs_sql sql, const struct bs_val *args, uint32_t cols,
                      uint32_t n, struct bs_err *err);
    /* The next row of a run statement into cols (at most max); *ret_more false: no row, the
     * statement is over. */
    bs_rc (*next)(struct bs_db *db, enum bs_sql sql, struct bs_val *cols, uint32_t max,
                  bool *ret_more, struct bs_err *err);
    /* Runs a migration script (several statements, no rows). */
    bs_rc (*script)(struct bs_db *db, const char *text, struct bs_err *err);
    /* A copy of the whole database, of one instant, into the file that is there and empty; others
     * may write meanwhile. Outside a transaction. Not synced. BS_E_REFUSED: this database has tools
     * of its own for that. */
    bs_rc (*copy)(struct bs_db *db, const char *path, struct bs_err *err);
    void (*close)(struct bs_db *db);
};

/* Refuses a table with a hole. */
BS_NODISCARD bs_rc bs_db_check(const struct bs_db *db, struct bs_err *err);

/* The statements and migrations of a dialect; NULL when there is no such. */
const struct bs_dialect *bs_dialect_find(const char *name);
