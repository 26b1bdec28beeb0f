/* Result codes, error messages and slices. */
#include "base/base.h"

#include "base/text.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

bs_rc bs_fail(struct bs_err *err, bs_rc rc, const char *fmt, ...)
{
    va_list args;

    BS_ASSERT(rc != BS_OK && rc < BS_RC_COUNT);
    if (!err)
        return rc;
    err->rc = rc;
    err->sys = 0;
    va_start(args, fmt);
    int n = vsnprintf(err->msg, sizeof(err->msg), fmt, args);
    va_end(args);
    if (n >= (int)sizeof(err->msg)) {
        struct bs_str cut =
            bs_utf8_cut((struct bs_str){ err->msg, sizeof(err->msg) - 1 }, sizeof(err->msg) - 1);
        err->msg[cut.n] = '\0';
    }
    return rc;
}

const char *bs_rc_name(bs_rc rc)
{
    static const char *const names[BS_RC_COUNT] = {
        [BS_OK] = "OK",
        [BS_E_INVALID] = "INVALID",
        [BS_E_NOT_FOUND] = "NOT_FOUND",
        [BS_E_CONFLICT] = "CONFLICT",
        [BS_E_STALE] = "STALE",
        [BS_E_BUSY] = "BUSY",
        [BS_E_UNAVAILABLE] = "UNAVAILABLE",
        [BS_E_UNKNOWN] = "UNKNOWN",
        [BS_E_LIMIT] = "LIMIT",
        [BS_E_NOMEM] = "NOMEM",
        [BS_E_CORRUPT] = "CORRUPT",
        [BS_E_REFUSED] = "REFUSED",
    };

    BS_ASSERT(rc < BS_RC_COUNT);
    return names[rc];
}

_Noreturn void bs_panic(const char *file, int line, const char *what)
{
    fprintf(stderr, "backstop: %s:%d: this must hold and does not: %s\n", file, line, what);
    fflush(stderr);
    abort();
}

int bs_str_cmp(struct bs_str a, struct bs_str b)
{
    size_t n = BS_MIN(a.n, b.n);
    int order = n ? memcmp(a.p, b.p, n) : 0;

    if (order != 0)
        return order;
    return a.n < b.n ? -1 : a.n > b.n;
}

bool bs_str_starts(struct bs_str s, struct bs_str prefix)
{
    return s.n >= prefix.n && bs_str_eq((struct bs_str){ s.p, prefix.n }, prefix);
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

struct bs_str bs_str_trim(struct bs_str s)
{
    while (s.n > 0 && is_blank(s.p[0])) {
        s.p++;
        s.n--;
    }
    while (s.n > 0 && is_blank(s.p[s.n - 1]))
        s.n--;
    return s;
}

static char lower(char c)
{
    if (c >= 'A' && c <= 'Z')
        return (char)(c + ('a' - 'A'));
    return c;
}

bool bs_str_eq_nocase(struct bs_str a, struct bs_str b)
{
    if (a.n != b.n)
        return false;
    for (size_t i = 0; i < a.n; i++) {
        if (lower(a.p[i]) != lower(b.p[i]))
            return false;
    }
    return true;
}

struct bs_str bs_str_cut(struct bs_str *rest, char sep)
{
    const char *at = rest->n ? memchr(rest->p, sep, rest->n) : NULL;
    struct bs_str head = *rest;

    if (!at) {
        *rest = BS_STR_NONE;
        return head;
    }
    head.n = (size_t)(at - head.p);
    rest->p = at + 1;
    rest->n -= head.n + 1;
    return head;
}
