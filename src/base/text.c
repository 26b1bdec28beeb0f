/* Numbers, distances, base64 and hex. */
#include "base/text.h"

struct bs_str bs_i64_text(char room[24], int64_t v)
{
    char *p = room + 24;
    uint64_t rest = v < 0 ? 0 - (uint64_t)v : (uint64_t)v;

    do {
        *--p = (char)('0' + rest % 10);
        rest /= 10;
    } while (rest > 0);
    if (v < 0)
        *--p = '-';
    return (struct bs_str){ p, (size_t)(room + 24 - p) };
}

bool bs_i64_parse(struct bs_str s, int64_t *ret)
{
    bool negative = s.n > 0 && s.p[0] == '-';
    size_t i = negative ? 1 : 0;
    int64_t value = 0; /* kept at or below zero: INT64_MIN has no positive twin */

    if (i == s.n)
        return false;
    for (; i < s.n; i++) {
        if (s.p[i] < '0' || s.p[i] > '9')
            return false;
        if (__builtin_mul_overflow(value, 10, &value) ||
            __builtin_sub_overflow(value, s.p[i] - '0', &value))
            return false;
    }
    if (!negative && value == INT64_MIN)
        return false;
    *ret = negative ? value : -value;
    return true;
}

enum { DISTANCE_MAX = 64 };

uint32_t bs_text_distance(struct bs_str a, struct bs_str b)
{
    uint32_t row[DISTANCE_MAX + 1];

    if (a.n > DISTANCE_MAX || b.n > DISTANCE_MAX)
        return DISTANCE_MAX;
    for (uint32_t j = 0; j <= b.n; j++)
        row[j] = j;
    for (uint32_t i = 1; i <= a.n; i++) {
        uint32_t diagonal = row[0];

        row[0] = i;
        for (size_t j = 1; j <= b.n; j++) {
            uint32_t replaced = diagonal + (a.p[i - 1] == b.p[j - 1] ? 0 : 1);

            diagonal = row[j];
            row[j] = BS_MIN(replaced, BS_MIN(row[j], row[j - 1]) + 1);
        }
    }
    return row[b.n];
}

static const char base64_digits[] =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=";

enum { PADDING = 64 }; /* its place behind the digits */

void bs_base64_write(struct bs_buf *out, struct bs_str raw)
{
    const unsigned char *p = (const unsigned char *)raw.p;

    for (size_t i = 0; i < raw.n; i += 3) {
        size_t left = raw.n - i;
        uint32_t bits = (uint32_t)p[i] << 16;
        char four[4];

        bits |= left > 1 ? (uint32_t)p[i + 1] << 8 : 0;
        bits |= left > 2 ? (uint32_t)p[i + 2] : 0;
        four[0] = base64_digits[bits >> 18];
        four[1] = base64_digits[bits >> 12 & 63];
        four[2] = base64_digits[left > 1 ? bits >> 6 & 63 : PADDING];
        four[3] = base64_digits[left > 2 ? bits & 63 : PADDING];
        bs_buf_add(out, (struct bs_str){ four, 4 });
    }
}

/* 0–63, or 64 for a character that is no digit. */
static uint32_t base64_value(char c)
{
    if (c >= 'A' && c <= 'Z')
        return (uint32_t)(c - 'A');
    if (c >= 'a' && c <= 'z')
        return (uint32_t)(c - 'a') + 26;
    if (c >= '0' && c <= '9')
        return (uint32_t)(c - '0') + 52;
    return c == '+' ? 62 : c == '/' ? 63 : 64;
}

/* Four characters to size bytes; the bits that no byte uses must be zero. */
static bool base64_four(const char *p, size_t size, char *out)
{
    uint32_t bits = 0;

    for (size_t i = 0; i < 4; i++) {
        uint32_t value = i <= size ? base64_value(p[i]) : p[i] == '=' ? 0 : 64;

        if (value > 63)
            return false;
        bits = bits << 6 | value;
    }
    for (size_t i = 0; i < 3; i++) {
        uint32_t byte = bits >> (16 - 8 * i) & 255;

        if (i < size)
            out[i] = (char)(unsigned char)byte;
        else if (byte != 0)
            return false;
    }
    return true;
}

static size_t base64_padding(struct bs_str text)
{
    if (text.n == 0 || text.p[text.n - 1] != '=')
        return 0;
    return text.p[text.n - 2] == '=' ? 2 : 1;
}

bs_rc bs_base64_read(struct bs_arena *a, struct bs_str text, struct bs_str *ret, struct bs_err *err)
{
    if (text.n % 4 != 0)
        return bs_fail(err, BS_E_INVALID, "not base64: the length is no multiple of four");
    size_t size = text.n / 4 * 3 - base64_padding(text);
    char *out = bs_arena_alloc(a, size + 1);
    if (!out)
        return bs_fail(err, BS_E_NOMEM, "no memory for %zu bytes of base64", size);
    for (size_t i = 0, at = 0; i < text.n; i += 4, at += 3) {
        if (!base64_four(text.p + i, BS_MIN(size - at, (size_t)3), out + at))
            return bs_fail(err, BS_E_INVALID, "not base64 near byte %zu", i);
    }
    *ret = (struct bs_str){ out, size };
    return BS_OK;
}

void bs_hex_write(struct bs_buf *out, struct bs_str raw)
{
    static const char digits[] = "0123456789abcdef";

    for (size_t i = 0; i < raw.n; i++) {
        unsigned char byte = (unsigned char)raw.p[i];

        bs_buf_add(out, (struct bs_str){ (char[]){ digits[byte >> 4], digits[byte & 15] }, 2 });
    }
}
