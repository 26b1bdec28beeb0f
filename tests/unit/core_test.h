/* What the tests of core share: cmocka in the right order, short forms, one task to start from. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/arena.h"
#include "core/decide.h"

#define S(literal) BS_STR(literal)
#define AT(seconds) ((struct bs_time){ (int64_t)(seconds)*1000000 })

/* An instant well inside the range: 2026-01-01T00:00:00Z. */
#define NOW AT(1767225600)
#define LATER(seconds) AT(1767225600 + (seconds))

/* Compares a slice with literal text and shows both when they differ. */
#define assert_text(got, want)                                                                     \
    do {                                                                                           \
        struct bs_str got_ = (got);                                                                \
        if (!bs_str_is(got_, (want)))                                                              \
            fail_msg("\"%.*s\" is not \"%s\"", BS_STR_FMT(got_), (want));                          \
    } while (0)

/* Static text that may be NULL. */
#define assert_word(got, want) assert_text(bs_str_of(got), (want) ? (want) : "")

static inline bool contains(struct bs_str s, const char *part)
{
    size_t n = strlen(part);

    if (n == 0)
        return true;
    for (size_t i = 0; i + n <= s.n; i++) {
        if (memcmp(s.p + i, part, n) == 0)
            return true;
    }
    return false;
}

#define assert_contains(got, part)                                                                 \
    do {                                                                                           \
        struct bs_str whole_ = (got);                                                              \
        if (!contains(whole_, (part)))                                                             \
            fail_msg("\"%.*s\" lacks \"%s\"", BS_STR_FMT(whole_), (part));                         \
    } while (0)

static inline struct bs_task running_task(void)
{
    return (struct bs_task){
        .id = 7,
        .request_id = S("r-1"),
        .biz_type = S("PAY_CALLBACK"),
        .merchant_no = S("default"),
        .biz_id = S("b-1"),
        .state = BS_PROCESSING,
        .priority = 1,
        .max_retry_count = 10,
        .attempt_no = 1,
        .next_execute_at = NOW,
    };
}
