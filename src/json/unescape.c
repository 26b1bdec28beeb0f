/* Escapes of JSON strings (RFC 8259, section 7). */
#include "json/unescape.h"

enum { REPLACEMENT = 0xfffd };

static uint32_t hex4(const char *p)
{
    uint32_t value = 0;

    for (int i = 0; i < 4; i++) {
        char c = p[i];
        uint32_t digit = c <= '9' ? (uint32_t)(c - '0') : (uint32_t)((c | 0x20) - 'a') + 10;

        BS_ASSERT(digit < 16);
        value = value << 4 | digit;
    }
    return value;
}

static size_t put_utf8(char *out, uint32_t c)
{
    static const unsigned char heads[5] = { 0, 0x00, 0xc0, 0xe0, 0xf0 };
    size_t size = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;

    for (size_t i = size; i-- > 1; c >>= 6)
        out[i] = (char)(unsigned char)(0x80 | (c & 0x3f));
    out[0] = (char)(unsigned char)(heads[size] | c);
    return size;
}

/* s begins after "\u". Returns how many bytes of it were the character. */
static size_t code_point(struct bs_str s, uint32_t *ret)
{
    uint32_t first = hex4(s.p);

    *ret = first;
    if (first < 0xd800 || first > 0xdfff)
        return 4;
    *ret = REPLACEMENT;
    if (first > 0xdbff || s.n < 10 || s.p[4] != '\\' || s.p[5] != 'u')
        return 4;
    uint32_t second = hex4(s.p + 6);
    if (second < 0xdc00 || second > 0xdfff)
        return 4;
    *ret = 0x10000 + ((first & 0x3ff) << 10 | (second & 0x3ff));
    return 10;
}

static char plain_escape(char c)
{
    switch (c) {
    case 'b':
        return '\b';
    case 'f':
        return '\f';
    case 'n':
        return '\n';
    case 'r':
        return '\r';
    case 't':
        return '\t';
    default:
        return c;
    }
}

/* s begins after the backslash. Writes the character and returns how many bytes of s it was. */
static size_t put_escape(char *out, struct bs_str s, size_t *n)
{
    uint32_t c;

    if (s.p[0] != 'u') {
        out[(*n)++] = plain_escape(s.p[0]);
        return 1;
    }
    BS_ASSERT(s.n >= 5);
    size_t used = 1 + code_point((struct bs_str){ s.p + 1, s.n - 1 }, &c);
    *n += put_utf8(out + *n, c);
    return used;
}

bool bs_json_is_lossy(struct bs_str raw)
{
    const char *end = raw.p + raw.n;
    const char *at = memchr(raw.p, '\\', raw.n);

    while (at) {
        uint32_t c = 0;
        size_t used = 2;

        if (at[1] == 'u') {
            used += code_point((struct bs_str){ at + 2, (size_t)(end - at) - 2 }, &c);
            if (c == REPLACEMENT && hex4(at + 2) != REPLACEMENT)
                return true;
        }
        at += used;
        at = memchr(at, '\\', (size_t)(end - at));
    }
    return false;
}

struct bs_str bs_json_unescape(struct bs_arena *a, struct bs_str raw)
{
    BS_ASSERT(raw.n >= 2 && raw.p[0] == '"' && raw.p[raw.n - 1] == '"');
    struct bs_str rest = { raw.p + 1, raw.n - 2 };
    size_t n = 0;

    if (rest.n == 0 || !memchr(rest.p, '\\', rest.n))
        return bs_arena_str(a, rest);
    /* No escape is shorter than what it stands for. */
    char *out = bs_arena_alloc(a, rest.n + 1);
    if (!out)
        return BS_STR_NONE;
    while (rest.n > 0) {
        struct bs_str head = bs_str_cut(&rest, '\\');

        memcpy(out + n, head.p, head.n);
        n += head.n;
        if (rest.n == 0)
            break;
        size_t used = put_escape(out, rest, &n);
        rest.p += used;
        rest.n -= used;
    }
    return (struct bs_str){ out, n };
}
