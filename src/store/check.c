/* Upkeep: moving the write-ahead log into the file, and the whole check of a store. */
#include "store/inner.h"

enum {
    PAGE_BYTES = 4096,
    WAL_LIMIT_BYTES = 128 << 20,
    WAL_WAIT_BYTES = 48 << 20, /* so much is moved in a moment */
    FINDINGS_MAX = 20
};

/* ---- write-ahead log ---- */

static bs_rc checkpoint(struct bs_store *s, enum bs_sql sql, bool *ret_busy, int64_t *ret_log,
                        int64_t *ret_moved, struct bs_err *err)
{
    struct bs_val row[3];
    bool found = false;

    bs_rc rc = store_one(s, sql, NULL, 0, row, 3, &found, err);
    s->db->ops->rollback(s->db); /* nothing stays open */
    BS_TRY(rc);
    *ret_busy = found && row[0].i != 0;
    *ret_log = found && row[1].i > 0 ? row[1].i : 0;
    *ret_moved = found && row[2].i > 0 ? row[2].i : 0;
    return BS_OK;
}

bs_rc bs_store_checkpoint(struct bs_store *s, int64_t *ret_wal_bytes_left, struct bs_err *err)
{
    int64_t log = 0, moved = 0;
    bool busy = false;

    STORE_CHECK(s);
    BS_TRY(checkpoint(s, BS_SQL_CHECKPOINT_PASSIVE, &busy, &log, &moved, err));
    if (log * PAGE_BYTES > WAL_LIMIT_BYTES)
        BS_TRY(checkpoint(s, BS_SQL_CHECKPOINT_PASSIVE, &busy, &log, &moved, err));
    /* Under steady writing the log never becomes empty by itself. What the passes left is normally
     * little, and making the writer wait for it is short; a reader that keeps its snapshot keeps
     * them from moving much, and the writer does not wait for it. */
    if (log * PAGE_BYTES > WAL_LIMIT_BYTES && (log - moved) * PAGE_BYTES <= WAL_WAIT_BYTES) {
        bs_rc rc = checkpoint(s, BS_SQL_CHECKPOINT_RESTART, &busy, &log, &moved, err);
        if (rc != BS_OK && rc != BS_E_BUSY)
            return rc;
    }
    *ret_wal_bytes_left = (log - moved) * PAGE_BYTES;
    return BS_OK;
}

/* ---- whole check ---- */

static void finding(struct bs_buf *report, struct bs_str text)
{
    bs_buf_add(report, text);
    bs_buf_addc(report, '\n');
}

static bs_rc check_file(struct bs_store *s, struct bs_buf *report, struct bs_err *err)
{
    struct bs_val row[1];
    bool more = true;

    BS_TRY(run(s, BS_SQL_INTEGRITY, NULL, 0, NULL, err));
    for (;;) {
        BS_TRY(next(s, BS_SQL_INTEGRITY, row, 1, &more, err));
        if (!more)
            return BS_OK;
        if (!bs_str_is(row[0].s, "ok"))
            finding(report, row[0].s);
    }
}

static bs_rc check_rows(struct bs_store *s, enum bs_sql sql, struct bs_buf *report,
                        struct bs_err *err)
{
    struct bs_val row[1], limit = bs_i64(FINDINGS_MAX);
    bool more = true;

    BS_TRY(run(s, sql, &limit, 1, NULL, err));
    for (;;) {
        BS_TRY(next(s, sql, row, 1, &more, err));
        if (!more)
            return BS_OK;
        finding(report, row[0].s);
    }
}

static bs_rc check_figures(struct bs_store *s, struct bs_buf *report, struct bs_err *err)
{
    struct bs_val c[7];
    bool more = true;

    BS_TRY(run(s, BS_SQL_CHECK_FIGURES, NULL, 0, NULL, err));
    for (;;) {
        BS_TRY(next(s, BS_SQL_CHECK_FIGURES, c, 7, &more, err));
        if (!more)
            return BS_OK;
        /* Sums of amounts are kept in 64 bits that wrap around, and compared so. */
        int64_t amount = (int64_t)(((uint64_t)c[5].i << 32) + (uint64_t)c[6].i);
        if (c[3].i == 0 && c[4].i == 0 && amount == 0)
            continue;
        bs_buf_fmt(
            report,
            "the figures of %.*s %.*s %.*s differ by %lld tasks, %lld unknown, amount %lld\n",
            BS_STR_FMT(c[0].s), BS_STR_FMT(c[1].s), BS_STR_FMT(c[2].s), (long long)c[3].i,
            (long long)c[4].i, (long long)amount);
    }
}

bs_rc bs_store_check(struct bs_store *s, struct bs_buf *report, struct bs_err *err)
{
    static const enum bs_sql rows[] = {
        BS_SQL_CHECK_STATES,      BS_SQL_CHECK_REQUEST_KEYS, BS_SQL_CHECK_TASKS_WITHOUT_KEY,
        BS_SQL_CHECK_EFFECT_KEYS, BS_SQL_CHECK_BLOCKED,      BS_SQL_CHECK_HISTORY,
        BS_SQL_CHECK_TWICE,
    };

    STORE_CHECK(s);
    bs_rc rc = s->db->ops->begin(s->db, err);
    if (rc == BS_OK)
        rc = check_file(s, report, err);
    for (size_t i = 0; i < BS_COUNT(rows) && rc == BS_OK; i++)
        rc = check_rows(s, rows[i], report, err);
    if (rc == BS_OK)
        rc = check_figures(s, report, err);
    s->db->ops->rollback(s->db);
    return rc == BS_OK ? bs_buf_done(report, err) : rc;
}
