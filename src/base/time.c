/* Instants and spans: arithmetic, RFC 3339, HTTP dates, short spans. */
#include "base/time.h"

#define US_PER_SECOND INT64_C(1000000)
#define SECONDS_PER_DAY INT64_C(86400)

enum { YEAR_FIRST = 1970, YEAR_LAST = 9999 };

/* The last microsecond that four year digits can show. */
#define LAST_SHOWN_US (INT64_C(253402300800) * US_PER_SECOND - 1)

struct civil {
    int32_t year, month, day, hour, minute, second;
};

struct bs_time bs_time_add(struct bs_time t, struct bs_span d)
{
    int64_t sum;

    if (__builtin_add_overflow(t.us, d.us, &sum))
        sum = d.us > 0 ? INT64_MAX : INT64_MIN;
    return (struct bs_time){ sum };
}

struct bs_span bs_time_diff(struct bs_time later, struct bs_time earlier)
{
    int64_t us;

    if (__builtin_sub_overflow(later.us, earlier.us, &us))
        us = earlier.us < 0 ? INT64_MAX : INT64_MIN;
    return (struct bs_span){ us };
}

static bool is_leap(int32_t year)
{
    return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
}

static int32_t days_of_month(int32_t year, int32_t month)
{
    static const int8_t days[13] = { 0, 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };

    return month == 2 && is_leap(year) ? 29 : days[month];
}

/* Days from the epoch to the first of January. */
static int64_t days_before_year(int32_t year)
{
    int64_t before = year - 1;
    int64_t epoch = YEAR_FIRST - 1;
    int64_t leaps = before / 4 - before / 100 + before / 400;
    int64_t leaps_epoch = epoch / 4 - epoch / 100 + epoch / 400;

    return (before - epoch) * 365 + leaps - leaps_epoch;
}

static bool civil_valid(const struct civil *c)
{
    if (c->year < YEAR_FIRST || c->year > YEAR_LAST || c->month < 1 || c->month > 12)
        return false;
    if (c->day < 1 || c->day > days_of_month(c->year, c->month))
        return false;
    return c->hour <= 23 && c->minute <= 59 && c->second <= 59;
}

static int64_t civil_seconds(const struct civil *c)
{
    int64_t days = days_before_year(c->year) + c->day - 1;

    for (int32_t m = 1; m < c->month; m++)
        days += days_of_month(c->year, m);
    int32_t minutes = c->hour * 60 + c->minute;
    return days * SECONDS_PER_DAY + (int64_t)minutes * 60 + c->second;
}

/* seconds: 0 … the end of 9999. */
static struct civil civil_of(int64_t seconds)
{
    int64_t days = seconds / SECONDS_PER_DAY;
    int32_t rest = (int32_t)(seconds % SECONDS_PER_DAY);
    struct civil c = { .year = YEAR_FIRST + (int32_t)(days / 366), .month = 1 };

    while (days_before_year(c.year + 1) <= days)
        c.year++;
    int32_t day = (int32_t)(days - days_before_year(c.year));
    while (day >= days_of_month(c.year, c.month))
        day -= days_of_month(c.year, c.month++);
    c.day = day + 1;
    c.hour = rest / 3600;
    c.minute = rest / 60 % 60;
    c.second = rest % 60;
    return c;
}

static char *put_digits(char *p, int64_t value, int digits)
{
    for (int i = digits; i-- > 0; value /= 10)
        p[i] = (char)('0' + value % 10);
    return p + digits;
}

void bs_time_write(struct bs_buf *b, struct bs_time t)
{
    int64_t us = BS_MIN(BS_MAX(t.us, 0), LAST_SHOWN_US);
    struct civil c = civil_of(us / US_PER_SECOND);
    char text[32];
    char *p = put_digits(text, c.year, 4);

    *p++ = '-';
    p = put_digits(p, c.month, 2);
    *p++ = '-';
    p = put_digits(p, c.day, 2);
    *p++ = 'T';
    p = put_digits(p, c.hour, 2);
    *p++ = ':';
    p = put_digits(p, c.minute, 2);
    *p++ = ':';
    p = put_digits(p, c.second, 2);
    *p++ = '.';
    p = put_digits(p, us % US_PER_SECOND, 6);
    *p++ = 'Z';
    bs_buf_add(b, (struct bs_str){ text, (size_t)(p - text) });
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Takes exactly n digits. */
static bool take_digits(struct bs_str *s, size_t n, int32_t *ret)
{
    int32_t value = 0;

    if (s->n < n)
        return false;
    for (size_t i = 0; i < n; i++) {
        if (!is_digit(s->p[i]))
            return false;
        value = value * 10 + (s->p[i] - '0');
    }
    s->p += n;
    s->n -= n;
    *ret = value;
    return true;
}

static bool take_char(struct bs_str *s, char c)
{
    if (s->n == 0 || s->p[0] != c)
        return false;
    s->p++;
    s->n--;
    return true;
}

static bool take_clock(struct bs_str *s, struct civil *c)
{
    return take_digits(s, 2, &c->hour) && take_char(s, ':') && take_digits(s, 2, &c->minute) &&
           take_char(s, ':') && take_digits(s, 2, &c->second);
}

/* ".123456789" or nothing; what is finer than a microsecond is cut. */
static bool take_fraction(struct bs_str *s, int32_t *ret_us)
{
    int32_t us = 0;
    int digits = 0;

    *ret_us = 0;
    if (!take_char(s, '.'))
        return true;
    for (; s->n > 0 && is_digit(s->p[0]); digits++) {
        if (digits < 6)
            us = us * 10 + (s->p[0] - '0');
        s->p++;
        s->n--;
    }
    for (int i = digits; i < 6; i++)
        us *= 10;
    *ret_us = us;
    return digits >= 1 && digits <= 9;
}

static bool take_offset(struct bs_str *s, int32_t *ret_s)
{
    int32_t hours, minutes;
    bool west;

    *ret_s = 0;
    if (take_char(s, 'Z') || take_char(s, 'z'))
        return true;
    west = take_char(s, '-');
    if (!west && !take_char(s, '+'))
        return false;
    if (!take_digits(s, 2, &hours) || !take_char(s, ':') || !take_digits(s, 2, &minutes))
        return false;
    *ret_s = (hours * 3600 + minutes * 60) * (west ? -1 : 1);
    return hours <= 23 && minutes <= 59;
}

/* Zero means "not set" and is therefore no instant that can be read. */
static bool to_time(int64_t seconds, int32_t us, struct bs_time *ret)
{
    int64_t whole = seconds * US_PER_SECOND + us;

    if (whole <= 0 || whole > LAST_SHOWN_US)
        return false;
    *ret = (struct bs_time){ whole };
    return true;
}

static bool parse_rfc3339(struct bs_str s, struct bs_time *ret)
{
    struct civil c = { 0 };
    int32_t us, offset_s;

    if (!take_digits(&s, 4, &c.year) || !take_char(&s, '-') || !take_digits(&s, 2, &c.month) ||
        !take_char(&s, '-') || !take_digits(&s, 2, &c.day))
        return false;
    if (!take_char(&s, 'T') && !take_char(&s, 't'))
        return false;
    if (!take_clock(&s, &c) || !take_fraction(&s, &us) || !take_offset(&s, &offset_s))
        return false;
    return s.n == 0 && civil_valid(&c) && to_time(civil_seconds(&c) - offset_s, us, ret);
}

bs_rc bs_time_parse(struct bs_str s, struct bs_time *ret, struct bs_err *err)
{
    if (!parse_rfc3339(s, ret))
        return bs_fail(err, BS_E_INVALID,
                       "not a time of RFC 3339 like 2026-11-30T16:03:47Z after 1970");
    return BS_OK;
}

static bool take_name(struct bs_str *s, const char *const *names, int32_t n, int32_t *ret)
{
    for (int32_t i = 0; i < n; i++) {
        struct bs_str name = bs_str_of(names[i]);

        if (!bs_str_starts(*s, name))
            continue;
        s->p += name.n;
        s->n -= name.n;
        *ret = i;
        return true;
    }
    return false;
}

static bool take_month(struct bs_str *s, struct civil *c)
{
    static const char *const names[] = { "Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                         "Jul", "Aug", "Sep", "Oct", "Nov", "Dec" };
    int32_t at;

    if (!take_name(s, names, (int32_t)BS_COUNT(names), &at))
        return false;
    c->month = at + 1;
    return true;
}

/* "06 Nov 1994 08:49:37 GMT" */
static bool take_imf(struct bs_str *s, struct civil *c)
{
    return take_digits(s, 2, &c->day) && take_char(s, ' ') && take_month(s, c) &&
           take_char(s, ' ') && take_digits(s, 4, &c->year) && take_char(s, ' ') &&
           take_clock(s, c) && bs_str_is(*s, " GMT");
}

/* "06-Nov-94 08:49:37 GMT". Without a clock the century of two digits is a rule: 70–99 is 19xx. */
static bool take_rfc850(struct bs_str *s, struct civil *c)
{
    if (!take_digits(s, 2, &c->day) || !take_char(s, '-') || !take_month(s, c) ||
        !take_char(s, '-') || !take_digits(s, 2, &c->year) || !take_char(s, ' '))
        return false;
    c->year += c->year >= 70 ? 1900 : 2000;
    return take_clock(s, c) && bs_str_is(*s, " GMT");
}

/* "Nov  6 08:49:37 1994" */
static bool take_asctime(struct bs_str *s, struct civil *c)
{
    if (!take_month(s, c) || !take_char(s, ' '))
        return false;
    if (!take_digits(s, take_char(s, ' ') ? 1 : 2, &c->day) || !take_char(s, ' '))
        return false;
    return take_clock(s, c) && take_char(s, ' ') && take_digits(s, 4, &c->year) && s->n == 0;
}

bs_rc bs_time_parse_http(struct bs_str s, struct bs_time *ret)
{
    static const char *const longs[] = { "Monday", "Tuesday",  "Wednesday", "Thursday",
                                         "Friday", "Saturday", "Sunday" };
    static const char *const shorts[] = { "Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun" };
    struct civil c = { 0 };
    int32_t day;
    bool ok;

    if (take_name(&s, longs, 7, &day))
        ok = take_char(&s, ',') && take_char(&s, ' ') && take_rfc850(&s, &c);
    else if (!take_name(&s, shorts, 7, &day))
        ok = false;
    else if (take_char(&s, ','))
        ok = take_char(&s, ' ') && take_imf(&s, &c);
    else
        ok = take_char(&s, ' ') && take_asctime(&s, &c);
    if (!ok || !civil_valid(&c) || !to_time(civil_seconds(&c), 0, ret))
        return BS_E_INVALID;
    return BS_OK;
}

struct unit {
    const char *name;
    int64_t us;
};

/* Greatest first: the greatest that divides a span gives its shortest form. */
static const struct unit units[] = {
    { "d", SECONDS_PER_DAY *US_PER_SECOND },
    { "h", 3600 * US_PER_SECOND },
    { "m", 60 * US_PER_SECOND },
    { "s", US_PER_SECOND },
    { "ms", 1000 },
    { "us", 1 },
};

static bool parse_span(struct bs_str s, struct bs_span *ret)
{
    int64_t value = 0;
    size_t digits = 0;

    for (; digits < s.n && is_digit(s.p[digits]); digits++) {
        if (__builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, s.p[digits] - '0', &value))
            return false;
    }
    if (digits == 0)
        return false;
    struct bs_str name = { s.p + digits, s.n - digits };
    for (size_t i = 0; i < BS_COUNT(units); i++) {
        if (bs_str_is(name, units[i].name) && !__builtin_mul_overflow(value, units[i].us, &value)) {
            *ret = (struct bs_span){ value };
            return true;
        }
    }
    return false;
}

bs_rc bs_span_parse(struct bs_str s, struct bs_span *ret, struct bs_err *err)
{
    if (!parse_span(s, ret))
        return bs_fail(err, BS_E_INVALID,
                       "not a span: one whole number and one unit, like 500ms 10s 5m 1h 30d");
    return BS_OK;
}

void bs_span_write(struct bs_buf *b, struct bs_span d)
{
    size_t i = 0;

    if (d.us == 0) {
        bs_buf_addz(b, "0s");
        return;
    }
    while (d.us % units[i].us != 0)
        i++;
    bs_buf_add_i64(b, d.us / units[i].us);
    bs_buf_addz(b, units[i].name);
}
