/* The retry policy: ladders, jitter, wishes of servers, the limits of 64 bits. */
#include "core/retry.h"
#include "core_test.h"

#include <stdio.h>

#define SECONDS(n)                                                                                 \
    {                                                                                              \
        (int64_t)(n) * 1000000                                                                     \
    }

static const struct bs_span ladder[] = { SECONDS(60), SECONDS(180), SECONDS(600) };

static int64_t waited(struct bs_time at)
{
    return at.us - NOW.us;
}

static void the_default_ladder_is_1m_3m_10m_30m_1h_and_stays(void **state)
{
    static const struct {
        uint32_t n;
        int64_t seconds;
    } rows[] = {
        { 1, 60 },
        { 2, 180 },
        { 3, 600 },
        { 4, 1800 },
        { 5, 3600 },
        { 6, 3600 },
        { 4000000000u, 3600 },
    };
    struct bs_backoff b = bs_policy_default.backoff;
    struct bs_rng rng = { 1 };

    (void)state;
    assert_int_equal(b.jitter_pct, 20);
    assert_int_equal(bs_policy_default.max_retry_count, 10);
    assert_int_equal(bs_policy_default.order_not_found_grace.us, 600 * 1000000LL);
    assert_int_equal(bs_policy_default.effect, BS_EFFECT_REPEATABLE);
    assert_false(bs_policy_default.has_look_up);
    b.jitter_pct = 0;
    for (size_t i = 0; i < BS_COUNT(rows); i++)
        assert_int_equal(waited(bs_retry_at(&b, rows[i].n, NOW, &rng)), rows[i].seconds * 1000000);
}

static void initial_factor_max_grows_and_saturates(void **state)
{
    static const struct {
        int64_t initial, max;
        uint32_t factor_pct, n;
        int64_t want;
    } rows[] = {
        { 1000000, 60000000, 200, 1, 1000000 },
        { 1000000, 60000000, 200, 2, 2000000 },
        { 1000000, 60000000, 200, 6, 32000000 },
        { 1000000, 60000000, 200, 7, 60000000 },
        { 1000000, 60000000, 200, 4294967295u, 60000000 },
        { 1000000, 60000000, 150, 3, 2250000 },
        { 1000000, 60000000, 100, 9, 1000000 },
        { 90000000, 60000000, 200, 1, 60000000 },
        { 0, 60000000, 200, 5, 0 },
        { -5, 60000000, 200, 5, 0 },
        { INT64_MAX / 2, INT64_MAX, 4000000000u, 3, INT64_MAX },
        { INT64_MAX / 2, 0, 300, 100, INT64_MAX },
    };

    (void)state;
    for (size_t i = 0; i < BS_COUNT(rows); i++) {
        struct bs_backoff b = { .initial = { rows[i].initial },
                                .max = { rows[i].max },
                                .factor_pct = rows[i].factor_pct };
        struct bs_rng rng = { i };

        assert_int_equal(bs_retry_at(&b, rows[i].n, (struct bs_time){ 0 }, &rng).us, rows[i].want);
    }
}

static void case_22_a_thousand_failures_spread_within_the_jitter(void **state)
{
    (void)state;
    for (uint32_t n = 1; n <= BS_COUNT(ladder); n++) {
        struct bs_backoff b = { .delays = ladder, .delays_n = BS_COUNT(ladder), .jitter_pct = 20 };
        int64_t base = ladder[n - 1].us;
        int64_t least = INT64_MAX;
        int64_t most = 0;
        int64_t sum = 0;

        for (uint64_t seed = 0; seed < 1000; seed++) {
            struct bs_rng rng = { seed };
            int64_t d = waited(bs_retry_at(&b, n, NOW, &rng));

            least = BS_MIN(least, d);
            most = BS_MAX(most, d);
            sum += d;
        }
        assert_true(least >= base * 80 / 100 && least <= base * 90 / 100);
        assert_true(most <= base * 120 / 100 && most >= base * 110 / 100);
        assert_true(sum / 1000 > base * 98 / 100 && sum / 1000 < base * 102 / 100);
    }
}

static void the_same_seed_gives_the_same_instant(void **state)
{
    struct bs_backoff b = { .delays = ladder, .delays_n = BS_COUNT(ladder), .jitter_pct = 20 };
    struct bs_rng one = { 42 };
    struct bs_rng two = { 42 };

    (void)state;
    for (uint32_t n = 1; n < 50; n++)
        assert_int_equal(bs_retry_at(&b, n, NOW, &one).us, bs_retry_at(&b, n, NOW, &two).us);
}

static void the_largest_spans_do_not_wrap(void **state)
{
    struct bs_span huge = { INT64_MAX };
    struct bs_backoff b = { .delays = &huge, .delays_n = 1, .jitter_pct = 100 };

    (void)state;
    for (uint64_t seed = 0; seed < 200; seed++) {
        struct bs_rng rng = { seed };

        assert_true(bs_retry_at(&b, 1, NOW, &rng).us >= NOW.us);
        assert_true(bs_retry_at_least(&b, 1, huge, NOW, &rng).us >= NOW.us);
    }
    b.jitter_pct = 4000000000u;
    struct bs_rng rng = { 1 };
    assert_true(bs_retry_at(&b, 1, BS_NEVER, &rng).us == INT64_MAX);
}

static void a_wish_is_never_shortened_and_the_later_wins(void **state)
{
    struct bs_backoff b = { .delays = ladder, .delays_n = BS_COUNT(ladder), .jitter_pct = 20 };
    static const struct {
        int64_t wish_s, least_s, most_s;
    } rows[] = {
        { 120, 120, 144 }, /* later than 60 s ± 20 %          */
        { 10, 48, 72 },    /* earlier: the backoff stands     */
        { 0, 48, 72 },     /* at once is no shortening either */
        { -9, 48, 72 },    /* nothing negative                */
        { 21600, 21600, 25920 },
    };

    (void)state;
    for (size_t i = 0; i < BS_COUNT(rows); i++) {
        for (uint64_t seed = 0; seed < 300; seed++) {
            struct bs_rng rng = { seed };
            int64_t d = waited(bs_retry_at_least(&b, 1, BS_SEC(rows[i].wish_s), NOW, &rng));

            assert_true(d >= rows[i].least_s * 1000000 && d <= rows[i].most_s * 1000000);
        }
    }
}

static void waits_without_budget_follow_their_own_ladder(void **state)
{
    static const struct {
        uint32_t n;
        int64_t seconds;
    } rows[] = {
        { 1, 5 },   { 2, 15 },  { 3, 30 },  { 4, 60 },
        { 5, 180 }, { 6, 600 }, { 7, 600 }, { 4000000000u, 600 },
    };

    (void)state;
    for (size_t i = 0; i < BS_COUNT(rows); i++) {
        struct bs_rng rng = { 9 };

        assert_int_equal(waited(bs_defer_at(rows[i].n, 0, NOW, &rng)), rows[i].seconds * 1000000);
        int64_t d = waited(bs_defer_at(rows[i].n, 20, NOW, &rng));
        assert_true(d >= rows[i].seconds * 800000 && d <= rows[i].seconds * 1200000);
    }
}

static void not_found_is_asked_again_at_fixed_distances_from_the_first_look(void **state)
{
    static const struct {
        int64_t asked_ms, next_s;
    } rows[] = {
        { 0, 5 },         { 4999, 5 },      { 5000, 15 },      { 5040, 15 },    { 14999, 15 },
        { 15000, 30 },    { 30001, 60 },    { 60000, 180 },    { 200000, 600 }, { 599999, 600 },
        { 600000, 1200 }, { 600001, 1200 }, { 1200000, 1800 }, { -3000, 5 },
    };

    (void)state;
    for (size_t i = 0; i < BS_COUNT(rows); i++) {
        struct bs_time asked = bs_time_add(NOW, BS_MS(rows[i].asked_ms));

        assert_int_equal(waited(bs_not_found_at(NOW, asked)), rows[i].next_s * 1000000);
    }
}

/* now is 2026-01-01T00:00:00Z */
static void case_24_retry_after_in_every_form(void **state)
{
    static const struct {
        const char *lines[3];
        bool given, clamped;
        int64_t seconds;
    } rows[] = {
        { { "120" }, true, false, 120 },
        { { " 120\t" }, true, false, 120 },
        { { "0" }, true, false, 0 },
        { { "21600" }, true, false, 21600 },
        { { "21601" }, true, true, 21600 },
        { { "9999999999" }, true, true, 21600 },
        { { "99999999999999999999999999999999" }, true, true, 21600 },
        { { "Thu, 01 Jan 2026 00:10:00 GMT" }, true, false, 600 },
        { { "Thursday, 01-Jan-26 00:10:00 GMT" }, true, false, 600 },
        { { "Thu Jan  1 00:10:00 2026" }, true, false, 600 },
        { { "Thu, 01 Jan 2037 00:00:00 GMT" }, true, true, 21600 },
        { { "60", "90" }, true, false, 90 },
        { { "90", "60" }, true, false, 90 },
        { { "soon", "30", "-5" }, true, false, 30 },
        { { "30", "Thu, 01 Jan 2026 00:10:00 GMT", "1e3" }, true, false, 600 },
        { { "Wed, 31 Dec 2025 23:59:59 GMT" }, false, false, 0 },
        { { "Thu, 01 Jan 1970 00:00:00 GMT" }, false, false, 0 },
        { { "-5" }, false, false, 0 },
        { { "+5" }, false, false, 0 },
        { { "soon" }, false, false, 0 },
        { { "1e3" }, false, false, 0 },
        { { "1.5" }, false, false, 0 },
        { { "" }, false, false, 0 },
        { { "60, 90" }, false, false, 0 },
    };

    (void)state;
    for (size_t i = 0; i < BS_COUNT(rows); i++) {
        struct bs_retry_after r = { .given = false };

        for (size_t k = 0; k < 3 && rows[i].lines[k]; k++)
            bs_retry_after_add(&r, bs_str_of(rows[i].lines[k]), NOW);
        print_message("Retry-After %s\n", rows[i].lines[0]);
        assert_int_equal(r.given, rows[i].given);
        assert_int_equal(r.clamped, rows[i].clamped);
        assert_int_equal(r.delay.us, rows[i].seconds * 1000000);
    }
}

static void case_24_sixty_and_ninety_delay_the_next_try_by_ninety(void **state)
{
    struct bs_span short_delay = SECONDS(1);
    struct bs_backoff b = { .delays = &short_delay, .delays_n = 1, .jitter_pct = 0 };
    struct bs_retry_after r = { .given = false };
    struct bs_rng rng = { 1 };

    (void)state;
    bs_retry_after_add(&r, S("60"), NOW);
    bs_retry_after_add(&r, S("90"), NOW);
    assert_int_equal(waited(bs_retry_at_least(&b, 1, r.delay, NOW, &rng)), 90 * 1000000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_default_ladder_is_1m_3m_10m_30m_1h_and_stays),
        cmocka_unit_test(initial_factor_max_grows_and_saturates),
        cmocka_unit_test(case_22_a_thousand_failures_spread_within_the_jitter),
        cmocka_unit_test(the_same_seed_gives_the_same_instant),
        cmocka_unit_test(the_largest_spans_do_not_wrap),
        cmocka_unit_test(a_wish_is_never_shortened_and_the_later_wins),
        cmocka_unit_test(waits_without_budget_follow_their_own_ladder),
        cmocka_unit_test(not_found_is_asked_again_at_fixed_distances_from_the_first_look),
        cmocka_unit_test(case_24_retry_after_in_every_form),
        cmocka_unit_test(case_24_sixty_and_ninety_delay_the_next_try_by_ninety),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
