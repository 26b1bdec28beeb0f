/* Store time: advances with boot time, follows the wall clock slowly, never goes back. */
#include "sys/clock.h"

#include "check.h"
#include "sys/slew.h"

#include <pthread.h>

enum { SECOND = 1000000 };

#define WALL INT64_C(1796054627000000)

/* Lets seconds of boot time pass in steps of 100 ms, with the wall clock ahead by ahead_us. */
static int64_t run(struct bs_slew *s, int64_t boot_us, int seconds, int64_t ahead_us)
{
    int64_t before = bs_slew_now(s, boot_us).us;

    for (int i = 0; i < seconds * 10; i++) {
        boot_us += SECOND / 10;
        assert_true(bs_slew_due(s, boot_us));
        bs_slew_correct(s, boot_us, WALL + boot_us + ahead_us);
        int64_t now = bs_slew_now(s, boot_us).us;
        assert_true(now >= before);
        assert_in_range(now - before, SECOND / 10 - 50, SECOND / 10 + 50);
        before = now;
    }
    return before - (WALL + boot_us);
}

static void store_time_begins_at_the_wall_clock(void **state)
{
    struct bs_slew s;

    (void)state;
    bs_slew_init(&s, 7 * SECOND, WALL);
    assert_int_equal(bs_slew_now(&s, 7 * SECOND).us, WALL);
    assert_int_equal(bs_slew_now(&s, 9 * SECOND).us, WALL + 2 * SECOND);
    assert_false(bs_slew_due(&s, 7 * SECOND + 99999));
    assert_true(bs_slew_due(&s, 7 * SECOND + 100000));
}

static void a_step_of_the_wall_clock_is_followed_at_500_ppm(void **state)
{
    struct bs_slew s;

    (void)state;
    bs_slew_init(&s, 0, WALL);
    assert_int_equal(run(&s, 0, 10, 3600 * (int64_t)SECOND), 5000);
    bs_slew_init(&s, 0, WALL);
    assert_int_equal(run(&s, 0, 10, -3600 * (int64_t)SECOND), -5000);
}

static void store_time_goes_on_from_where_it_was(void **state)
{
    struct bs_slew s;

    (void)state;
    bs_slew_init(&s, 0, WALL);
    bs_slew_not_before(&s, SECOND, (struct bs_time){ WALL - 5 * SECOND });
    assert_int_equal(bs_slew_now(&s, SECOND).us, WALL + SECOND);
    bs_slew_not_before(&s, 2 * SECOND, (struct bs_time){ WALL + 3600 * (int64_t)SECOND });
    assert_int_equal(bs_slew_now(&s, 2 * SECOND).us, WALL + 3600 * (int64_t)SECOND);
    assert_int_equal(bs_slew_now(&s, 3 * SECOND).us, WALL + 3601 * (int64_t)SECOND);
}

static void a_small_difference_is_taken_back_exactly(void **state)
{
    struct bs_slew s;

    (void)state;
    bs_slew_init(&s, 0, WALL);
    assert_int_equal(run(&s, 0, 60, 777), 777);
    bs_slew_init(&s, 0, WALL);
    assert_int_equal(run(&s, 0, 60, -777), -777);
}

static void store_time_stands_rather_than_goes_back(void **state)
{
    struct bs_slew s;

    (void)state;
    bs_slew_init(&s, 0, WALL);
    assert_int_equal(bs_slew_now(&s, 500).us, WALL + 500);
    assert_int_equal(bs_slew_now(&s, 400).us, WALL + 500);
    assert_int_equal(bs_slew_now(&s, 501).us, WALL + 501);
    assert_int_equal(bs_slew_now(&s, SECOND).us, WALL + SECOND);
    bs_slew_correct(&s, SECOND, WALL - SECOND);
    assert_int_equal(bs_slew_now(&s, SECOND).us, WALL + SECOND);
    assert_int_equal(bs_slew_now(&s, SECOND + 499).us, WALL + SECOND);
    assert_int_equal(bs_slew_now(&s, SECOND + 501).us, WALL + SECOND + 1);
}

static void a_correction_counts_once_per_period(void **state)
{
    struct bs_slew s;

    (void)state;
    bs_slew_init(&s, 0, WALL);
    for (int i = 0; i < 5; i++)
        bs_slew_correct(&s, SECOND, WALL + 100 * (int64_t)SECOND);
    assert_int_equal(bs_slew_now(&s, SECOND).us, WALL + SECOND + 500);
}

static void *read_often(void *arg)
{
    struct bs_time before = BS_TIME_NONE;

    for (int i = 0; i < 200000; i++) {
        struct bs_time now = bs_now(arg);

        if (bs_time_before(now, before))
            return arg;
        before = now;
    }
    return NULL;
}

static void four_threads_never_see_time_go_back(void **state)
{
    pthread_t threads[4];
    void *bad;

    (void)state;
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, read_often, bs_clock_system()), 0);
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(pthread_join(threads[i], &bad), 0);
        assert_null(bad);
    }
}

static void the_system_clock_is_near_the_wall_clock(void **state)
{
    struct timespec t;

    (void)state;
    struct bs_time now = bs_now(bs_clock_system());
    assert_int_equal(clock_gettime(CLOCK_REALTIME, &t), 0);
    int64_t off = (int64_t)t.tv_sec * SECOND + t.tv_nsec / 1000 - now.us;
    assert_true(off > -2 * SECOND && off < 2 * SECOND);
    assert_ptr_equal(bs_clock_system(), bs_clock_system());
}

static void a_manual_clock_stands_until_it_is_moved(void **state)
{
    struct bs_clock_manual c;

    (void)state;
    bs_clock_manual_init(&c, (struct bs_time){ 5 });
    assert_int_equal(bs_now(&c.base).us, 5);
    assert_int_equal(bs_now(&c.base).us, 5);
    c.at = bs_time_add(c.at, BS_US(3));
    assert_int_equal(bs_now(&c.base).us, 8);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(store_time_begins_at_the_wall_clock),
        cmocka_unit_test(a_step_of_the_wall_clock_is_followed_at_500_ppm),
        cmocka_unit_test(store_time_goes_on_from_where_it_was),
        cmocka_unit_test(a_small_difference_is_taken_back_exactly),
        cmocka_unit_test(store_time_stands_rather_than_goes_back),
        cmocka_unit_test(a_correction_counts_once_per_period),
        cmocka_unit_test(four_threads_never_see_time_go_back),
        cmocka_unit_test(the_system_clock_is_near_the_wall_clock),
        cmocka_unit_test(a_manual_clock_stands_until_it_is_moved),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
