/* What the targets share: the entry of libFuzzer, and what holds for every text that is kept. */
#pragma once

#include "base/text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static inline struct bs_str fuzz_input(const uint8_t *data, size_t n)
{
    return (struct bs_str){ (const char *)data, n };
}

static inline bool fuzz_within(struct bs_str part, struct bs_str whole)
{
    return part.p >= whole.p && part.p + part.n <= whole.p + whole.n;
}

/* UTF-8 of at most max bytes, without any control character but tab and newline. */
static inline void fuzz_check_text(struct bs_str s, size_t max)
{
    BS_ASSERT(s.n <= max);
    BS_ASSERT(bs_utf8_valid(s));
    while (s.n) {
        struct bs_str one = { s.p, bs_utf8_char(s) };

        BS_ASSERT(bs_text_plain(one) || *one.p == '\t' || *one.p == '\n');
        s = (struct bs_str){ s.p + one.n, s.n - one.n };
    }
}
