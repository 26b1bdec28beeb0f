/* UTF-8: what is well-formed, where it may be cut, how other bytes become text. */
#include "base/text.h"

static bool is_tail(unsigned char c)
{
    return (c & 0xc0) == 0x80;
}

/* The table of RFC 3629, section 4: the second byte's range depends on the first. */
static size_t long_char(const unsigned char *p, size_t n)
{
    unsigned char low = 0x80;
    unsigned char high = 0xbf;
    size_t size = p[0] < 0xe0 ? 2 : p[0] < 0xf0 ? 3 : 4;

    if (p[0] < 0xc2 || p[0] > 0xf4 || n < size)
        return 0;
    if (p[0] == 0xe0)
        low = 0xa0;
    else if (p[0] == 0xed)
        high = 0x9f;
    else if (p[0] == 0xf0)
        low = 0x90;
    else if (p[0] == 0xf4)
        high = 0x8f;
    if (p[1] < low || p[1] > high)
        return 0;
    for (size_t i = 2; i < size; i++) {
        if (!is_tail(p[i]))
            return 0;
    }
    return size;
}

size_t bs_utf8_char(struct bs_str s)
{
    const unsigned char *p = (const unsigned char *)s.p;

    if (s.n == 0)
        return 0;
    return p[0] < 0x80 ? 1 : long_char(p, s.n);
}

/* Where the ASCII ends that begins at i, looked for in steps of eight. */
static size_t skip_ascii(struct bs_str s, size_t i)
{
    uint64_t eight;

    for (; s.n - i >= sizeof(eight); i += sizeof(eight)) {
        memcpy(&eight, s.p + i, sizeof(eight));
        if (eight & UINT64_C(0x8080808080808080))
            break;
    }
    return i;
}

bool bs_utf8_valid(struct bs_str s)
{
    size_t i = skip_ascii(s, 0);

    while (i < s.n) {
        size_t size = bs_utf8_char((struct bs_str){ s.p + i, s.n - i });

        if (size == 0)
            return false;
        i = skip_ascii(s, i + size);
    }
    return true;
}

static bool is_control(const unsigned char *p, size_t size)
{
    if (size == 1)
        return p[0] < 0x20 || p[0] == 0x7f;
    return size == 2 && p[0] == 0xc2 && p[1] < 0xa0;
}

bool bs_text_plain(struct bs_str s)
{
    const unsigned char *p = (const unsigned char *)s.p;

    for (size_t i = 0; i < s.n; i++) {
        if (is_control(p + i, 1) || (i + 1 < s.n && is_control(p + i, 2)))
            return false;
    }
    return true;
}

struct bs_str bs_utf8_cut(struct bs_str s, size_t max)
{
    size_t n = BS_MIN(s.n, max);
    size_t back = 0;

    /* A character that began up to three bytes before the end may reach over it. */
    while (back < 3 && back < n && is_tail((unsigned char)s.p[n - 1 - back]))
        back++;
    if (back == n)
        return (struct bs_str){ s.p, n };
    unsigned char head = (unsigned char)s.p[n - 1 - back];
    size_t needs = head < 0xc0 ? 1 : head < 0xe0 ? 2 : head < 0xf0 ? 3 : 4;
    if (head >= 0xc0 && back + 1 < needs)
        n -= back + 1;
    return (struct bs_str){ s.p, n };
}

struct unit {
    char text[4];
    size_t taken; /* bytes of the input  */
    size_t n;     /* bytes of the output */
};

static struct unit next_unit(struct bs_str rest)
{
    static const char digits[] = "0123456789ABCDEF";
    const unsigned char *p = (const unsigned char *)rest.p;
    size_t size = bs_utf8_char(rest);
    bool kept = size > 0 && (!is_control(p, size) || p[0] == '\t' || p[0] == '\n');
    struct unit u = { .taken = size, .n = size };

    if (kept) {
        memcpy(u.text, p, size);
        return u;
    }
    u = (struct unit){ { '\\', 'x', digits[p[0] >> 4], digits[p[0] & 15] }, 1, 4 };
    return u;
}

static bool storable(struct bs_str s)
{
    const unsigned char *p = (const unsigned char *)s.p;

    if (!bs_utf8_valid(s))
        return false;
    for (size_t i = 0; i < s.n; i++) {
        if (p[i] == '\t' || p[i] == '\n')
            continue;
        if (is_control(p + i, 1) || (i + 1 < s.n && is_control(p + i, 2)))
            return false;
    }
    return true;
}

static const struct bs_str mark = { "\xe2\x80\xa6", 3 };

/* Fills out, of at least max bytes, and returns how many were used. */
static size_t clean_into(char *out, struct bs_str raw, size_t max)
{
    size_t keep = max >= mark.n ? max - mark.n : max;
    size_t n = 0;
    size_t cut = 0; /* the last border that leaves room for the mark */

    while (raw.n > 0) {
        struct unit u = next_unit(raw);

        if (u.n > max - n)
            break;
        memcpy(out + n, u.text, u.n);
        n += u.n;
        cut = n <= keep ? n : cut;
        raw.p += u.taken;
        raw.n -= u.taken;
    }
    if (raw.n == 0 || max < mark.n)
        return raw.n == 0 ? n : cut;
    memcpy(out + cut, mark.p, mark.n);
    return cut + mark.n;
}

struct bs_str bs_text_clean(struct bs_arena *a, struct bs_str raw, size_t max)
{
    size_t room = raw.n > max / 4 ? max : raw.n * 4;

    if (raw.n <= max && storable(raw))
        return bs_arena_str(a, raw);
    char *out = bs_arena_alloc(a, room + 1);
    if (!out)
        return BS_STR_NONE;
    return (struct bs_str){ out, clean_into(out, raw, max) };
}
