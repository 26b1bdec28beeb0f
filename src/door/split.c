/* A batch's items as exact slices: a JSON array, or one JSON text a line. */
#include "door/door.h"

#include "json/read.h"

static bs_rc split_lines(struct bs_str body, struct bs_arena *a, struct bs_str **ret,
                         uint32_t *ret_n, struct bs_err *err)
{
    struct bs_str *items = BS_NEW_ARRAY(a, struct bs_str, BS_BATCH_MAX);
    uint32_t n = 0;

    if (!items)
        return bs_fail(err, BS_E_NOMEM, "no memory for a batch");
    while (body.n) {
        struct bs_str line = bs_str_trim(bs_str_cut(&body, '\n'));

        if (!line.n)
            continue;
        if (n == BS_BATCH_MAX)
            return bs_fail(err, BS_E_LIMIT, "a batch has at most %d items", BS_BATCH_MAX);
        items[n++] = line;
    }
    *ret = items;
    *ret_n = n;
    return BS_OK;
}

bs_rc bs_door_split(struct bs_str body, bool ndjson, struct bs_arena *a, struct bs_str **ret,
                    uint32_t *ret_n, struct bs_err *err)
{
    if (ndjson)
        return split_lines(body, a, ret, ret_n, err);
    bs_rc rc = bs_json_read_array(a, body, BS_BATCH_MAX, ret, ret_n, err);
    if (rc == BS_E_LIMIT)
        return bs_fail(err, BS_E_LIMIT, "a batch has at most %d items", BS_BATCH_MAX);
    return rc;
}
