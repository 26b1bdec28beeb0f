/* Waiting for a busy business object. A blocked row has no due time, so claims never walk past it.
 *
 * What holds after every transaction: for each key and queue with blocked rows there is a running
 * task of the key, or a row of this key and queue that can be claimed. Hence whoever runs frees one
 * of each queue when it ends, and whoever could be claimed and goes away frees the next. */
#include "store/inner.h"

static bs_rc free_row(struct bs_store *s, const struct bs_val *row, struct bs_str key,
                      struct bs_time now, struct bs_err *err)
{
    BS_TRY(RUN(s, BS_SQL_BLOCKED_FREE, NULL, err, row[0], bs_text(key), bs_i64(now.us)));
    hint_add(s, row[1].s, (struct bs_time){ row[2].i });
    return BS_OK;
}

bs_rc block_free_all(struct bs_store *s, struct bs_str key, struct bs_time now, struct bs_err *err)
{
    char queue[64] = "";
    struct bs_str after = bs_str_of(queue);

    if (key.n == 0 || BS_PLANT(UNBLOCK_FORGOTTEN))
        return BS_OK;
    for (;;) {
        struct bs_val row[3];
        bool found = false;

        BS_TRY(ONE(s, BS_SQL_BLOCKED_FIRST, row, &found, err, bs_text(key), bs_text(after)));
        if (!found)
            return BS_OK;
        /* The row's own text is gone once the statement runs again. */
        after.n = BS_MIN(row[1].s.n, sizeof(queue));
        memcpy(queue, row[1].s.p, after.n);
        BS_TRY(free_row(s, row, key, now, err));
    }
}

bs_rc block_free_next(struct bs_store *s, struct bs_str key, struct bs_str biz_type,
                      struct bs_time now, struct bs_err *err)
{
    struct bs_val row[3];
    bool found = false;

    if (key.n == 0 || BS_PLANT(UNBLOCK_FORGOTTEN))
        return BS_OK;
    BS_TRY(
        ONE(s, BS_SQL_BLOCKED_FIRST_OF_QUEUE, row, &found, err, bs_text(key), bs_text(biz_type)));
    return found ? free_row(s, row, key, now, err) : BS_OK;
}
