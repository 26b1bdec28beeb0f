/* When to try again: the ladder, its jitter, the server's wish, the waits that cost no budget.
 * Integers only, saturating, so that a seed gives the same schedule on every machine. */
#include "core/retry.h"

#define MAX_RETRY_AFTER_SEC (6 * 3600)

static const int64_t defer_ladder_sec[] = { 5, 15, 30, 60, 180, 600 };

/* d × pct / 100 without leaving 64 bits; d ≥ 0, pct ≤ 100. */
static int64_t percent_of(int64_t d, uint32_t pct)
{
    BS_ASSERT(d >= 0);
    BS_ASSERT(pct <= 100);
    return d / 100 * pct + d % 100 * pct / 100;
}

/* d spread evenly over d ± pct %. */
static struct bs_span jitter_both(int64_t d, uint32_t pct, struct bs_rng *rng)
{
    int64_t reach = percent_of(d, BS_MIN(pct, 100));
    uint64_t drawn = bs_rng_below(rng, 2 * (uint64_t)reach + 1);
    uint64_t sum = (uint64_t)(d - reach) + drawn;

    return BS_US(sum > INT64_MAX ? INT64_MAX : sum);
}

/* d spread evenly over d … d + pct %: a server that asked for a pause gets at least that. */
static struct bs_span jitter_up(int64_t d, uint32_t pct, struct bs_rng *rng)
{
    int64_t reach = percent_of(d, BS_MIN(pct, 100));
    uint64_t sum = (uint64_t)d + bs_rng_below(rng, (uint64_t)reach + 1);

    return BS_US(sum > INT64_MAX ? INT64_MAX : sum);
}

/* initial × factor^(n-1), never past max. */
static int64_t grown_delay(const struct bs_backoff *b, uint32_t n)
{
    int64_t max = b->max.us > 0 ? b->max.us : INT64_MAX;
    int64_t d = b->initial.us;

    if (b->factor_pct <= 100)
        return BS_MIN(d, max);
    for (uint32_t i = 1; i < n && d > 0 && d < max; i++) {
        int64_t product = 0;

        if (__builtin_mul_overflow(d, (int64_t)b->factor_pct, &product))
            return max;
        d = product / 100 > d ? product / 100 : d + 1;
    }
    return BS_MIN(d, max);
}

static int64_t base_delay(const struct bs_backoff *b, uint32_t n)
{
    int64_t d = 0;

    BS_ASSERT(n >= 1);
    if (b->delays_n > 0)
        d = b->delays[BS_MIN(n, b->delays_n) - 1].us;
    else
        d = grown_delay(b, n);
    return BS_MAX(d, 0);
}

struct bs_time bs_retry_at(const struct bs_backoff *b, uint32_t n, struct bs_time now,
                           struct bs_rng *rng)
{
    return bs_time_add(now, jitter_both(base_delay(b, n), b->jitter_pct, rng));
}

struct bs_time bs_retry_at_least(const struct bs_backoff *b, uint32_t n, struct bs_span wish,
                                 struct bs_time now, struct bs_rng *rng)
{
    struct bs_time own = bs_retry_at(b, n, now, rng);
    struct bs_span asked = jitter_up(BS_MAX(wish.us, 0), b->jitter_pct, rng);

    return bs_time_max(own, bs_time_add(now, asked));
}

struct bs_time bs_defer_at(uint32_t n, uint32_t jitter_pct, struct bs_time now, struct bs_rng *rng)
{
    uint32_t last = BS_COUNT(defer_ladder_sec);

    BS_ASSERT(n >= 1);
    return bs_time_add(
        now, jitter_both(defer_ladder_sec[BS_MIN(n, last) - 1] * 1000000, jitter_pct, rng));
}

struct bs_time bs_not_found_at(struct bs_time first, struct bs_time now)
{
    int64_t waited = bs_time_diff(now, first).us;
    int64_t last = defer_ladder_sec[BS_COUNT(defer_ladder_sec) - 1] * 1000000;

    for (uint32_t i = 0; i < BS_COUNT(defer_ladder_sec); i++) {
        if (defer_ladder_sec[i] * 1000000 > waited)
            return bs_time_add(first, BS_SEC(defer_ladder_sec[i]));
    }
    return bs_time_add(now, BS_US(last - waited % last));
}

/* Seconds as the header may give them: digits only, however many; false for anything else. */
static bool parse_seconds(struct bs_str s, int64_t *ret)
{
    int64_t v = 0;

    if (s.n == 0)
        return false;
    for (size_t i = 0; i < s.n; i++) {
        if (s.p[i] < '0' || s.p[i] > '9')
            return false;
        v = BS_MIN(v * 10 + (s.p[i] - '0'), MAX_RETRY_AFTER_SEC + 1);
    }
    *ret = v;
    return true;
}

void bs_retry_after_add(struct bs_retry_after *r, struct bs_str value, struct bs_time now)
{
    struct bs_str text = bs_str_trim(value);
    struct bs_span asked = { 0 };
    struct bs_time at = { 0 };
    int64_t seconds = 0;

    if (parse_seconds(text, &seconds)) {
        asked = BS_SEC(seconds);
    } else if (bs_time_parse_http(text, &at) == BS_OK && !bs_time_before(at, now)) {
        asked = bs_time_diff(at, now);
    } else {
        return;
    }
    if (asked.us > BS_SEC(MAX_RETRY_AFTER_SEC).us) {
        asked = BS_SEC(MAX_RETRY_AFTER_SEC);
        r->clamped = true;
    }
    if (!r->given || asked.us > r->delay.us)
        r->delay = asked;
    r->given = true;
}
