/* Comparisons of slices for the unit tests. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>

#include "base/base.h"
#include "base/buf.h"

#include <cmocka.h>

static inline void check_str(struct bs_str got, struct bs_str wanted, const char *file, int line)
{
    if (bs_str_eq(got, wanted))
        return;
    print_error("got    (%zu) \"%.*s\"\nwanted (%zu) \"%.*s\"\n", got.n, BS_STR_FMT(got), wanted.n,
                BS_STR_FMT(wanted));
    _fail(file, line);
}

/* wanted: a literal, which may hold NUL. */
#define assert_str(got, wanted) check_str((got), BS_STR(wanted), __FILE__, __LINE__)
#define assert_slice(got, ...) check_str((got), (__VA_ARGS__), __FILE__, __LINE__)
/* What is in the buffer; empties it for the next. */
#define assert_buf(buf, wanted)                                                                    \
    do {                                                                                           \
        assert_false((buf)->failed);                                                               \
        assert_str(bs_buf_str(buf), wanted);                                                       \
        bs_buf_reset(buf);                                                                         \
    } while (0)
