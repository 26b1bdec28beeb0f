/* The breaker: what trips it, how long it stays open, what closes it. */
#include "core/breaker.h"
#include "core_test.h"

#define WELL BS_REACH_WELL
#define FAULT BS_REACH_FAULT
#define REFUSED BS_REACH_REFUSED

static const int64_t second = 1000000;

static struct bs_time after(int64_t seconds)
{
    return bs_time_add(NOW, BS_US(seconds * second));
}

static void it_trips_on_3_faults_or_10_failed_connections_in_a_row_and_on_nothing_else(void **state)
{
    /* f fault, r refused, w answered, u untold; the column is the place of the one that trips. */
    static const struct {
        const char *what;
        int trips_at; /* 0: never */
    } rows[] = {
        { "fff", 3 },
        { "ffwff", 0 },
        { "ffuf", 4 },
        { "ffrf", 4 },
        { "rrrrrrrrrr", 10 },
        { "rrrrrrrrrwr", 0 },
        { "rrrrrrrrrfrrrrrrrrrr", 20 },
        { "rrrrrrrrrur", 11 },
        { "wwwwwwwwwwwwwwwwwwww", 0 },
        { "uuuuuuuuuuuuuuuuuuuu", 0 },
        { "ffrrrrrrrrrr", 12 },
    };

    (void)state;
    for (size_t i = 0; i < BS_COUNT(rows); i++) {
        struct bs_breaker b = { 0 };
        int tripped = 0;

        for (int n = 0; rows[i].what[n] && !tripped; n++) {
            char c = rows[i].what[n];
            enum bs_reach what = c == 'f'   ? FAULT
                                 : c == 'r' ? REFUSED
                                 : c == 'w' ? WELL
                                            : BS_REACH_UNTOLD;

            if (bs_breaker_count(&b, what, false, NOW) == BS_BREAKER_OPENED)
                tripped = n + 1;
        }
        assert_int_equal(tripped, rows[i].trips_at);
        assert_int_equal(bs_breaker_open(&b), rows[i].trips_at != 0);
    }
}

static struct bs_breaker tripped(void)
{
    struct bs_breaker b = { 0 };

    for (int i = 0; i < 3; i++)
        (void)bs_breaker_count(&b, FAULT, false, NOW);
    assert_true(bs_breaker_open(&b));
    return b;
}

static void its_cool_down_is_5_s_and_doubles_to_60_s_with_each_failed_probe(void **state)
{
    static const int64_t seconds[] = { 5, 10, 20, 40, 60, 60, 60 };
    struct bs_breaker b = tripped();
    struct bs_time now = NOW;

    (void)state;
    for (size_t i = 0; i < BS_COUNT(seconds); i++) {
        assert_int_equal(bs_time_diff(b.open_until, now).us, seconds[i] * second);
        now = b.open_until;
        assert_int_equal(bs_breaker_count(&b, i % 2 ? FAULT : REFUSED, true, now),
                         BS_BREAKER_REOPENED);
    }
    assert_int_equal(b.opened_at.us, NOW.us);
}

static void a_probe_that_is_answered_closes_it_and_the_next_trip_begins_anew(void **state)
{
    struct bs_breaker b = tripped();

    (void)state;
    (void)bs_breaker_count(&b, FAULT, true, after(5));
    assert_int_equal(bs_breaker_count(&b, WELL, true, after(15)), BS_BREAKER_CLOSED);
    assert_false(bs_breaker_open(&b));
    for (int i = 0; i < 2; i++)
        assert_int_equal(bs_breaker_count(&b, FAULT, false, after(20)), BS_BREAKER_SAME);
    assert_int_equal(bs_breaker_count(&b, FAULT, false, after(20)), BS_BREAKER_OPENED);
    assert_int_equal(bs_time_diff(b.open_until, after(20)).us, 5 * second);
}

static void what_was_in_flight_when_it_tripped_tells_nothing_new(void **state)
{
    struct bs_breaker b = tripped();
    struct bs_time until = b.open_until;

    (void)state;
    assert_int_equal(bs_breaker_count(&b, WELL, false, after(1)), BS_BREAKER_SAME);
    assert_int_equal(bs_breaker_count(&b, FAULT, false, after(1)), BS_BREAKER_SAME);
    assert_int_equal(bs_breaker_count(&b, BS_REACH_UNTOLD, true, after(6)), BS_BREAKER_SAME);
    assert_true(bs_breaker_open(&b));
    assert_int_equal(b.open_until.us, until.us);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(
            it_trips_on_3_faults_or_10_failed_connections_in_a_row_and_on_nothing_else),
        cmocka_unit_test(its_cool_down_is_5_s_and_doubles_to_60_s_with_each_failed_probe),
        cmocka_unit_test(a_probe_that_is_answered_closes_it_and_the_next_trip_begins_anew),
        cmocka_unit_test(what_was_in_flight_when_it_tripped_tells_nothing_new),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
