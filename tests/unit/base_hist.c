/* Durations in buckets: where each falls, and what is told of all. */
#include "base/hist.h"

#include "check.h"

#include <pthread.h>

static void a_duration_falls_into_the_first_bucket_that_is_not_shorter(void **state)
{
    static const struct {
        int64_t us;
        size_t bucket;
    } cases[] = {
        { -5, 0 },          { 0, 0 },           { 1000, 0 },       { 1001, 1 },
        { 2500, 1 },        { 2501, 2 },        { 1000000, 9 },    { 1000001, 10 },
        { 3600000000, 20 }, { 3600000001, 21 }, { INT64_MAX, 21 },
    };

    (void)state;
    for (size_t i = 0; i < BS_COUNT(cases); i++) {
        struct bs_hist h = { 0 };
        struct bs_hist_view v;
        bs_hist_add(&h, BS_US(cases[i].us));
        bs_hist_read(&h, &v);
        for (size_t b = 0; b <= BS_HIST_BOUNDS; b++)
            assert_int_equal(v.counts[b], b == cases[i].bucket);
        assert_int_equal(v.count, 1);
        assert_int_equal(v.sum_us, BS_MAX(cases[i].us, 0));
    }
}

static void the_bounds_rise_from_a_millisecond_to_an_hour(void **state)
{
    (void)state;
    assert_int_equal(bs_hist_bounds[0].us, 1000);
    assert_int_equal(bs_hist_bounds[BS_HIST_BOUNDS - 1].us, BS_SEC(3600).us);
    for (size_t i = 1; i < BS_HIST_BOUNDS; i++) {
        assert_true(bs_hist_bounds[i].us > bs_hist_bounds[i - 1].us);
        assert_true(2 * bs_hist_bounds[i].us <= 5 * bs_hist_bounds[i - 1].us);
    }
}

static void nothing_added_has_no_quantile(void **state)
{
    struct bs_hist h = { 0 };
    struct bs_hist_view v;

    (void)state;
    bs_hist_read(&h, &v);
    assert_int_equal(v.count, 0);
    assert_int_equal(v.sum_us, 0);
    assert_true(bs_hist_quantile(&v, 500).us < 0);
}

/* 100 in (5 ms, 10 ms], 100 in (10 ms, 25 ms]. */
static void a_quantile_lies_evenly_within_its_bucket(void **state)
{
    struct bs_hist h = { 0 };
    struct bs_hist_view v;

    (void)state;
    for (int i = 0; i < 100; i++) {
        bs_hist_add(&h, BS_MS(7));
        bs_hist_add(&h, BS_MS(20));
    }
    bs_hist_read(&h, &v);
    assert_int_equal(v.sum_us, 100 * 27000);
    assert_int_equal(bs_hist_quantile(&v, 0).us, 5000);
    assert_int_equal(bs_hist_quantile(&v, 250).us, 7500);
    assert_int_equal(bs_hist_quantile(&v, 500).us, 10000);
    assert_int_equal(bs_hist_quantile(&v, 750).us, 17500);
    assert_int_equal(bs_hist_quantile(&v, 990).us, 24700);
    assert_int_equal(bs_hist_quantile(&v, 1000).us, 25000);
    assert_int_equal(bs_hist_quantile(&v, 2000).us, 25000);
}

static void what_is_longer_than_an_hour_is_told_as_an_hour(void **state)
{
    struct bs_hist h = { 0 };
    struct bs_hist_view v;

    (void)state;
    bs_hist_add(&h, BS_US(500));
    bs_hist_add(&h, BS_SEC(7200));
    bs_hist_read(&h, &v);
    assert_int_equal(bs_hist_quantile(&v, 500).us, 1000);
    assert_int_equal(bs_hist_quantile(&v, 990).us, BS_SEC(3600).us);
}

static void *add_many(void *hist)
{
    for (int i = 0; i < 100000; i++)
        bs_hist_add(hist, BS_US(1500));
    return NULL;
}

static void nothing_is_lost_when_several_threads_add(void **state)
{
    struct bs_hist h = { 0 };
    struct bs_hist_view v;
    pthread_t threads[2];

    (void)state;
    for (size_t i = 0; i < BS_COUNT(threads); i++)
        assert_int_equal(pthread_create(&threads[i], NULL, add_many, &h), 0);
    for (size_t i = 0; i < BS_COUNT(threads); i++)
        pthread_join(threads[i], NULL);
    bs_hist_read(&h, &v);
    assert_int_equal(v.counts[1], 200000);
    assert_int_equal(v.sum_us, 200000 * 1500);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_duration_falls_into_the_first_bucket_that_is_not_shorter),
        cmocka_unit_test(the_bounds_rise_from_a_millisecond_to_an_hour),
        cmocka_unit_test(nothing_added_has_no_quantile),
        cmocka_unit_test(a_quantile_lies_evenly_within_its_bucket),
        cmocka_unit_test(what_is_longer_than_an_hour_is_told_as_an_hour),
        cmocka_unit_test(nothing_is_lost_when_several_threads_add),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
