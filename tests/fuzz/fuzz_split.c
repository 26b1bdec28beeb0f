/* A batch of any bytes; the first byte chooses the form. The items are slices of the input in their
 * order, and joined again they are the same batch. */
#include "door/door.h"
#include "fuzz.h"

static void join(struct bs_buf *out, const struct bs_str *items, uint32_t n, bool lines)
{
    bs_buf_addz(out, lines ? "" : "[");
    for (uint32_t i = 0; i < n; i++) {
        bs_buf_addz(out, i == 0 ? "" : lines ? "\r\n\n " : "\n, ");
        bs_buf_add(out, items[i]);
    }
    bs_buf_addz(out, lines ? "" : " ]");
    BS_ASSERT(!out->failed);
}

static void check_items(struct bs_str body, const struct bs_str *items, uint32_t n, bool lines)
{
    const char *at = body.p;

    BS_ASSERT(n <= BS_BATCH_MAX);
    for (uint32_t i = 0; i < n; i++) {
        BS_ASSERT(items[i].n > 0 && fuzz_within(items[i], body) && items[i].p >= at);
        BS_ASSERT(bs_str_eq(bs_str_trim(items[i]), items[i]));
        BS_ASSERT(lines ? !memchr(items[i].p, '\n', items[i].n)
                        : bs_json_valid(items[i], NULL) == BS_OK);
        at = items[i].p + items[i].n;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    BS_CLEANUP(bs_arena_free) struct bs_arena a = { 0 };
    BS_CLEANUP(bs_buf_free) struct bs_buf joined = { .max = 16 << 20 };
    struct bs_str *items, *again;
    uint32_t items_n, again_n;
    struct bs_err err = { 0 };

    if (n == 0)
        return 0;
    bool lines = data[0] & 1;
    struct bs_str body = fuzz_input(data + 1, n - 1);
    bs_rc rc = bs_door_split(body, lines, &a, &items, &items_n, &err);
    if (rc != BS_OK) {
        BS_ASSERT(rc == BS_E_LIMIT || (rc == BS_E_INVALID && !lines));
        BS_ASSERT(err.msg[0] && bs_utf8_valid(bs_str_of(err.msg)));
        return 0;
    }
    check_items(body, items, items_n, lines);
    join(&joined, items, items_n, lines);
    rc = bs_door_split(bs_buf_str(&joined), lines, &a, &again, &again_n, &err);
    BS_ASSERT(rc == BS_OK && again_n == items_n);
    for (uint32_t i = 0; i < items_n; i++)
        BS_ASSERT(bs_str_eq(items[i], again[i]));
    return 0;
}
