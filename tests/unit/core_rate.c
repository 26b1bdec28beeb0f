/* Rates: even starts, a little slack, nothing saved up. */
#include "core/rate.h"
#include "core_test.h"

static const int64_t second = 1000000;

static struct bs_time at(int64_t us)
{
    return bs_time_add(NOW, BS_US(us));
}

/* Starts whenever it may, looking every `step` µs; the most starts in any second. */
static uint32_t most_in_a_second(struct bs_rate rate, int64_t slack_us, int64_t step,
                                 uint32_t *ret_all)
{
    static int64_t starts[200000];
    struct bs_pace p = { 0 };
    uint32_t n = 0, most = 0;

    for (int64_t us = 0; us < 10 * second; us += step) {
        uint32_t room = bs_pace_room(&p, &rate, BS_US(slack_us), 1000, at(us));

        bs_pace_take(&p, &rate, room, at(us));
        for (uint32_t i = 0; i < room; i++)
            starts[n++] = us;
    }
    for (uint32_t i = 0, from = 0; i < n; i++) {
        while (starts[i] - starts[from] >= second)
            from++;
        most = BS_MAX(most, i - from + 1);
    }
    *ret_all = n;
    return most;
}

static void in_no_second_start_more_than_the_rate_and_the_slack_allow(void **state)
{
    static const struct {
        struct bs_rate rate;
        int64_t slack_us, step;
        uint32_t most, all; /* in a second; in ten */
    } rows[] = {
        { { 20, { 1000000 } }, 20000, 1000, 20, 200 },
        { { 3, { 1000000 } }, 20000, 1, 3, 30 }, /* a third of a second is no whole number */
        { { 25, { 1000000 } }, 20000, 7000, 25, 250 },
        { { 200, { 1000000 } }, 20000, 1000, 203, 2003 },
        { { 5, { 60000000 } }, 20000, 1000, 1, 1 },
        { { 5000, { 1000000 } }, 20000, 1000, 5099, 50099 },
    };

    (void)state;
    for (size_t i = 0; i < BS_COUNT(rows); i++) {
        uint32_t all = 0;
        uint32_t most = most_in_a_second(rows[i].rate, rows[i].slack_us, rows[i].step, &all);

        assert_true(most <= rows[i].most);
        assert_true(most * 100 >= rows[i].most * 95);
        assert_true(all <= rows[i].all);
        assert_true((uint64_t)all * 100 >= (uint64_t)rows[i].all * 95);
    }
}

static void what_was_not_used_is_not_saved_up(void **state)
{
    struct bs_rate rate = { 10, { second } };
    struct bs_pace p = { 0 };

    (void)state;
    bs_pace_take(&p, &rate, 1, at(0));
    assert_int_equal(bs_pace_room(&p, &rate, BS_US(0), 100, at(3600 * second)), 1);
    bs_pace_take(&p, &rate, 1, at(3600 * second));
    assert_int_equal(bs_pace_room(&p, &rate, BS_US(0), 100, at(3600 * second + 99999)), 0);
    assert_int_equal(bs_pace_when(&p, &rate, BS_US(0)).us, at(3600 * second + 100000).us);
}

static void without_a_rate_everything_may_start(void **state)
{
    struct bs_rate none = { 0 };
    struct bs_pace p = { 0 };

    (void)state;
    bs_pace_take(&p, &none, 1000, at(0));
    assert_int_equal(bs_pace_room(&p, &none, BS_US(0), 7, at(0)), 7);
    assert_int_equal(bs_pace_when(&p, &none, BS_US(0)).us, 0);
}

static void a_rate_is_written_as_it_is_read(void **state)
{
    static const char *const good[] = { "1/s", "200/s", "5/m", "1/h", "4294967295/h" };
    static const char *const bad[] = { "",     "1",    "1/",    "/s",   "1/d",  "1/ss",
                                       "-1/s", "+1/s", "1.5/s", "1 /s", "1/s ", "4294967296/s" };

    (void)state;
    for (size_t i = 0; i < BS_COUNT(good); i++) {
        BS_CLEANUP(bs_buf_free) struct bs_buf out = { .max = 64 };
        struct bs_rate r = { 0 };
        assert_true(bs_rate_parse(bs_str_of(good[i]), &r));
        bs_rate_write(&out, &r);
        assert_string_equal(bs_buf_str(&out).p, good[i]);
    }
    for (size_t i = 0; i < BS_COUNT(bad); i++) {
        struct bs_rate r = { 7, { 9 } };
        if (bs_rate_parse(bs_str_of(bad[i]), &r))
            fail_msg("taken: %s", bad[i]);
        assert_int_equal(r.calls, 7);
    }
    BS_CLEANUP(bs_buf_free) struct bs_buf out = { .max = 64 };
    bs_rate_write(&out, &(struct bs_rate){ 0 });
    bs_rate_write(&out, &(struct bs_rate){ 3, BS_SEC(90) });
    assert_string_equal(bs_buf_str(&out).p, "none3/90s");
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(in_no_second_start_more_than_the_rate_and_the_slack_allow),
        cmocka_unit_test(what_was_not_used_is_not_saved_up),
        cmocka_unit_test(a_rate_is_written_as_it_is_read),
        cmocka_unit_test(without_a_rate_everything_may_start),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
