/* Growing bytes with a maximum. */
#include "base/buf.h"

#include "base/text.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

static bool reserve(struct bs_buf *b, size_t more)
{
    BS_ASSERT(b->max > 0);
    if (b->failed || more > b->max - b->len) {
        b->failed = true;
        return false;
    }
    if (b->len + more + 1 <= b->cap)
        return true;
    size_t cap = BS_MAX(b->cap * 2, b->len + more + 1);
    cap = BS_MIN(BS_MAX(cap, (size_t)128), b->max + 1);
    char *p = realloc(b->p, cap);
    if (!p) {
        b->failed = true;
        b->no_memory = true;
        return false;
    }
    b->p = p;
    b->cap = cap;
    return true;
}

void bs_buf_add(struct bs_buf *b, struct bs_str s)
{
    if (s.n == 0 || !reserve(b, s.n))
        return;
    memcpy(b->p + b->len, s.p, s.n);
    b->len += s.n;
    b->p[b->len] = '\0';
}

void bs_buf_addz(struct bs_buf *b, const char *z)
{
    bs_buf_add(b, bs_str_of(z));
}

void bs_buf_addc(struct bs_buf *b, char c)
{
    bs_buf_add(b, (struct bs_str){ &c, 1 });
}

void bs_buf_add_i64(struct bs_buf *b, int64_t v)
{
    char room[24];

    bs_buf_add(b, bs_i64_text(room, v));
}

void bs_buf_fmt(struct bs_buf *b, const char *fmt, ...)
{
    char text[1024];
    va_list args;

    va_start(args, fmt);
    int n = vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    BS_ASSERT(n >= 0);
    bs_buf_add(b, (struct bs_str){ text, BS_MIN((size_t)n, sizeof(text) - 1) });
}

struct bs_str bs_buf_str(const struct bs_buf *b)
{
    return (struct bs_str){ b->p ? b->p : "", b->len };
}

bs_rc bs_buf_done(const struct bs_buf *b, struct bs_err *err)
{
    if (!b->failed)
        return BS_OK;
    if (b->no_memory)
        return bs_fail(err, BS_E_NOMEM, "no memory for a text of %zu bytes and more", b->len);
    return bs_fail(err, BS_E_LIMIT, "the text would be longer than %zu bytes", b->max);
}

void bs_buf_reset(struct bs_buf *b)
{
    b->len = 0;
    b->failed = false;
    b->no_memory = false;
    if (b->p)
        b->p[0] = '\0';
}

void bs_buf_free(struct bs_buf *b)
{
    free(b->p);
    *b = (struct bs_buf){ .max = b->max };
}
