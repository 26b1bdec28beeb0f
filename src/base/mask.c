/* Hides card numbers, telephone numbers and our own tokens in text that people may read. */
#include "base/text.h"

enum { CARD_MIN = 12, CARD_MAX = 19, PHONE = 11, TOKEN_MIN = 20 };

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* digits: values 0–9, the last one is the check digit. */
static bool luhn(const char *digits, size_t n)
{
    int sum = 0;

    for (size_t i = 0; i < n; i++) {
        int value = digits[n - 1 - i] - '0';

        if (i % 2 == 1)
            value = value > 4 ? value * 2 - 9 : value * 2;
        sum += value;
    }
    return sum % 10 == 0;
}

static bool is_phone(const char *digits, size_t n)
{
    return n == PHONE && digits[0] == '1' && digits[1] >= '3';
}

struct run {
    size_t bytes;  /* with its separators; 0: there is nothing to hide */
    size_t digits; /* how many of them are digits                      */
    bool card;
};

/* group: digits just before it. Dots also stand in addresses, versions and fractions, whose groups
 * are rarely those of a card: four digits, or the six in the middle of 4-6-5. */
static bool is_separator(struct bs_str s, size_t i, size_t group)
{
    if (s.p[i] == '.')
        return group == 4 || group == 6;
    return (s.p[i] == ' ' || s.p[i] == '-') && group > 0;
}

/* What begins at s, which follows no digit. Both kinds may be written in groups, so a run may end
 * at every group border; the longest that is a card wins. Only a telephone number that is one group
 * is never taken as a part of a card. */
static struct run find_run(struct bs_str s)
{
    char digits[CARD_MAX];
    struct run best = { 0 };
    size_t n = 0;
    size_t group = 0; /* digits before the group that is being read */

    for (size_t i = 0; i < s.n && (is_digit(s.p[i]) || is_separator(s, i, n - group)); i++) {
        if (!is_digit(s.p[i])) {
            group = n;
            continue;
        }
        if (n == CARD_MAX)
            break;
        digits[n++] = s.p[i];
        if (i + 1 < s.n && is_digit(s.p[i + 1]))
            continue;
        if (is_phone(digits + group, n - group))
            return group == 0 ? (struct run){ i + 1, n, false } : best;
        if (n >= CARD_MIN && luhn(digits, n))
            best = (struct run){ i + 1, n, true };
        else if (!best.card && is_phone(digits, n))
            best = (struct run){ i + 1, n, false };
    }
    return best;
}

/* Digits first … last of the run (counted from 1) become stars; separators stay. */
static void add_masked(struct bs_buf *out, struct bs_str s, size_t first, size_t last)
{
    size_t digit = 0;

    for (size_t i = 0; i < s.n; i++) {
        digit += is_digit(s.p[i]) ? 1 : 0;
        bool hidden = is_digit(s.p[i]) && digit >= first && digit <= last;
        bs_buf_add(out, hidden ? BS_STR("*") : (struct bs_str){ s.p + i, 1 });
    }
}

static bool is_token_byte(char c)
{
    return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* The bytes of an own token that s begins with, whole or cut; 0: it begins with none. */
static size_t token_at(struct bs_str s)
{
    size_t n = BS_TOKEN_MARK_BYTES;

    if (s.n < TOKEN_MIN || memcmp(s.p, BS_TOKEN_MARK, n) != 0)
        return 0;
    while (n < s.n && is_token_byte(s.p[n]))
        n++;
    return n >= TOKEN_MIN ? n : 0;
}

/* Writes what begins at s, hidden where it must be; gives the bytes of s that are done. */
static size_t add_next(struct bs_buf *out, struct bs_str s)
{
    size_t token = token_at(s);
    size_t n = 1;

    if (token > 0) {
        bs_buf_addz(out, BS_TOKEN_MARK "***");
        return token;
    }
    if (is_digit(s.p[0])) {
        struct run run = find_run(s);

        if (run.bytes > 0) {
            add_masked(out, (struct bs_str){ s.p, run.bytes }, run.card ? 7 : 4,
                       run.card ? run.digits - 4 : 8);
            return run.bytes;
        }
        while (n < s.n && is_digit(s.p[n]))
            n++;
    }
    bs_buf_add(out, (struct bs_str){ s.p, n });
    return n;
}

void bs_text_mask(struct bs_buf *out, struct bs_str s)
{
    for (size_t i = 0; i < s.n;)
        i += add_next(out, (struct bs_str){ s.p + i, s.n - i });
}
