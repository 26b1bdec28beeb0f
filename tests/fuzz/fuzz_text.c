/* Base64, cleaning, cutting and masking on any bytes; the first byte is the maximum. */
#include "fuzz.h"

#include <ctype.h>

static void check_base64(struct bs_str s)
{
    BS_CLEANUP(bs_arena_free) struct bs_arena a = { 0 };
    BS_CLEANUP(bs_buf_free) struct bs_buf b = { .max = 16 << 20 };
    struct bs_str got;

    /* Strict: one text for some bytes, and no other text for them. */
    if (bs_base64_read(&a, s, &got, NULL) == BS_OK) {
        bs_base64_write(&b, got);
        BS_ASSERT(bs_str_eq(bs_buf_str(&b), s));
        bs_buf_reset(&b);
    }
    bs_base64_write(&b, s);
    bs_rc rc = bs_base64_read(&a, bs_buf_str(&b), &got, NULL);
    BS_ASSERT(rc == BS_OK && bs_str_eq(got, s));
}

static void check_clean(struct bs_str s, size_t max)
{
    BS_CLEANUP(bs_arena_free) struct bs_arena a = { 0 };
    struct bs_str text = bs_text_clean(&a, s, max);

    BS_ASSERT(text.p && text.n <= max && bs_utf8_valid(text));
    BS_ASSERT(bs_str_eq(bs_text_clean(&a, text, max), text));
    struct bs_str cut = bs_utf8_cut(text, max / 2);
    BS_ASSERT(cut.n <= max / 2 && bs_utf8_valid(cut));
    BS_ASSERT(cut.n + 3 >= BS_MIN(text.n, max / 2));
}

/* A token is shortened, so nothing can be compared byte by byte; what counts is that none is left.
 */
static void check_no_token(struct bs_str s)
{
    for (size_t i = 0; i + BS_TOKEN_MARK_BYTES <= s.n; i++) {
        size_t n = BS_TOKEN_MARK_BYTES;

        if (memcmp(s.p + i, BS_TOKEN_MARK, n) != 0)
            continue;
        while (i + n < s.n && isalnum((unsigned char)s.p[i + n]))
            n++;
        BS_ASSERT(n < 20);
    }
}

static void check_mask(struct bs_str s)
{
    BS_CLEANUP(bs_buf_free) struct bs_buf b = { .max = 16 << 20 };
    size_t stars = 0;

    bs_text_mask(&b, s);
    BS_ASSERT(!b.failed);
    if (memmem(s.p, s.n, BS_TOKEN_MARK, BS_TOKEN_MARK_BYTES)) {
        check_no_token(bs_buf_str(&b));
        return;
    }
    BS_ASSERT(b.len == s.n);
    for (size_t i = 0; i < s.n; i++) {
        bool hidden = b.p[i] == '*' && s.p[i] >= '0' && s.p[i] <= '9';

        BS_ASSERT(hidden || b.p[i] == s.p[i]);
        stars += hidden ? 1 : 0;
    }
    BS_ASSERT(stars == 0 || stars >= 2);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    if (n == 0)
        return 0;
    struct bs_str s = { (const char *)data + 1, n - 1 };

    check_base64(s);
    check_clean(s, data[0]);
    check_mask(s);
    return 0;
}
