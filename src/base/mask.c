/* Hides card numbers and telephone numbers in text that people may read. */
#include "base/text.h"

enum { CARD_MIN = 12, CARD_MAX = 19, PHONE = 11 };

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

static bool is_separator(struct bs_str s, size_t i)
{
    return (s.p[i] == ' ' || s.p[i] == '-') && is_digit(s.p[i - 1]);
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

    for (size_t i = 0; i < s.n && (is_digit(s.p[i]) || is_separator(s, i)); i++) {
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

void bs_text_mask(struct bs_buf *out, struct bs_str s)
{
    size_t shown = 0; /* everything before it is in out */

    for (size_t i = 0; i < s.n;) {
        if (!is_digit(s.p[i])) {
            i++;
            continue;
        }
        struct run run = find_run((struct bs_str){ s.p + i, s.n - i });
        if (run.bytes > 0) {
            bs_buf_add(out, (struct bs_str){ s.p + shown, i - shown });
            add_masked(out, (struct bs_str){ s.p + i, run.bytes }, run.card ? 7 : 4,
                       run.card ? run.digits - 4 : 8);
            i += run.bytes;
            shown = i;
            continue;
        }
        while (i < s.n && is_digit(s.p[i]))
            i++;
    }
    bs_buf_add(out, (struct bs_str){ s.p + shown, s.n - shown });
}
