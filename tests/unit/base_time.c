/* Instants and spans at their borders. */
#include "base/time.h"
#include "check.h"

struct pair {
    const char *text;
    int64_t us;
};

static void arithmetic_saturates_and_never_wraps(void **state)
{
    (void)state;
    assert_int_equal(bs_time_add((struct bs_time){ 5 }, BS_US(-7)).us, -2);
    assert_int_equal(bs_time_add(BS_NEVER, BS_US(1)).us, INT64_MAX);
    assert_int_equal(bs_time_add((struct bs_time){ INT64_MIN }, BS_US(-1)).us, INT64_MIN);
    assert_int_equal(bs_time_add((struct bs_time){ 1 }, BS_US(INT64_MAX)).us, INT64_MAX);
    assert_int_equal(bs_time_diff((struct bs_time){ 9 }, (struct bs_time){ 4 }).us, 5);
    assert_int_equal(bs_time_diff(BS_NEVER, (struct bs_time){ -1 }).us, INT64_MAX);
    assert_int_equal(bs_time_diff((struct bs_time){ INT64_MIN }, (struct bs_time){ 1 }).us,
                     INT64_MIN);
    assert_int_equal(bs_time_diff((struct bs_time){ 0 }, (struct bs_time){ INT64_MIN }).us,
                     INT64_MAX);
}

static void a_time_is_read_with_any_offset_and_up_to_nine_digits(void **state)
{
    static const struct pair good[] = {
        { "1970-01-01T00:00:00.000001Z", 1 },
        { "1970-01-01T00:00:01Z", 1000000 },
        { "2000-02-29T23:59:59Z", 951868799000000 },
        { "2026-11-30T16:03:47Z", 1796054627000000 },
        { "2026-11-30T16:03:47.000000Z", 1796054627000000 },
        { "2026-11-30T16:03:47.1Z", 1796054627100000 },
        { "2026-11-30T16:03:47.123456789z", 1796054627123456 },
        { "2026-11-30T16:03:47.999999999Z", 1796054627999999 },
        { "2026-11-30t16:03:47-00:00", 1796054627000000 },
        { "2026-12-01T00:03:47+08:00", 1796054627000000 },
        { "2026-11-30T16:03:46+23:59", 1795968286000000 },
        { "2026-11-29T16:04:47-23:59", 1796054627000000 },
        { "1970-01-01T00:00:00-00:01", 60000000 },
        { "2100-03-01T00:00:00Z", 4107542400000000 },
        { "9999-12-31T23:59:59.999999Z", 253402300799999999 },
    };

    (void)state;
    for (size_t i = 0; i < BS_COUNT(good); i++) {
        struct bs_time t = BS_TIME_NONE;

        assert_int_equal(bs_time_parse(bs_str_of(good[i].text), &t, NULL), BS_OK);
        assert_int_equal(t.us, good[i].us);
    }
}

static void a_time_that_does_not_exist_is_refused(void **state)
{
    static const char *const bad[] = {
        "",
        "2026",
        "2026-11-30",
        "2026-11-30T16:03Z",
        "2026-11-30T16:03:47",
        "2026-11-30 16:03:47Z",
        "2026-11-30T16:03:47Z ",
        " 2026-11-30T16:03:47Z",
        "2026-11-31T00:00:00Z",
        "2026-02-29T00:00:00Z",
        "2100-02-29T00:00:00Z",
        "2026-00-10T00:00:00Z",
        "2026-13-10T00:00:00Z",
        "2026-01-00T00:00:00Z",
        "2026-01-32T00:00:00Z",
        "2026-01-01T24:00:00Z",
        "2026-01-01T23:60:00Z",
        "2016-12-31T23:59:60Z",
        "2026-01-01T00:00:00.Z",
        "2026-01-01T00:00:00.1234567890Z",
        "2026-01-01T00:00:00,5Z",
        "2026-01-01T00:00:00+0800",
        "2026-01-01T00:00:00+24:00",
        "2026-01-01T00:00:00+08:60",
        "2026-01-01T00:00:00+8:00",
        "2026-1-01T00:00:00Z",
        "+026-01-01T00:00:00Z",
        "20260101T000000Z",
        "12026-01-01T00:00:00Z",
        "1969-12-31T23:59:59Z",
        "1970-01-01T00:00:00Z",
        "1970-01-01T00:00:00+00:01",
        "9999-12-31T23:59:59-00:01",
        "0000-01-01T00:00:00Z",
    };
    struct bs_err err;

    (void)state;
    for (size_t i = 0; i < BS_COUNT(bad); i++) {
        struct bs_time t = { 77 };

        assert_int_equal(bs_time_parse(bs_str_of(bad[i]), &t, &err), BS_E_INVALID);
        assert_int_equal(t.us, 77);
        assert_true(err.msg[0] != '\0');
    }
    assert_int_equal(bs_time_parse(BS_STR("2026-11-30T16:03:47Z\0"), &(struct bs_time){ 0 }, NULL),
                     BS_E_INVALID);
}

static void a_time_is_written_with_six_digits(void **state)
{
    BS_CLEANUP(bs_buf_free) struct bs_buf b = { .max = 100 };

    (void)state;
    bs_time_write(&b, (struct bs_time){ 1796054627000001 });
    assert_buf(&b, "2026-11-30T16:03:47.000001Z");
    bs_time_write(&b, (struct bs_time){ 951868799999999 });
    assert_buf(&b, "2000-02-29T23:59:59.999999Z");
    bs_time_write(&b, BS_TIME_NONE);
    assert_buf(&b, "1970-01-01T00:00:00.000000Z");
    bs_time_write(&b, (struct bs_time){ -5 });
    assert_buf(&b, "1970-01-01T00:00:00.000000Z");
    bs_time_write(&b, BS_NEVER);
    assert_buf(&b, "9999-12-31T23:59:59.999999Z");
}

static void every_day_survives_the_round_trip(void **state)
{
    BS_CLEANUP(bs_buf_free) struct bs_buf b = { .max = 100 };
    const int64_t day_us = INT64_C(86400000000);

    (void)state;
    for (int64_t us = 1; us < INT64_C(253402300800000000); us += day_us) {
        struct bs_time back = BS_TIME_NONE;

        bs_time_write(&b, (struct bs_time){ us });
        assert_int_equal(bs_time_parse(bs_buf_str(&b), &back, NULL), BS_OK);
        assert_int_equal(back.us, us);
        bs_buf_reset(&b);
    }
}

static void the_three_http_dates_are_one_instant(void **state)
{
    static const char *const same[] = { "Sun, 06 Nov 1994 08:49:37 GMT",
                                        "Sunday, 06-Nov-94 08:49:37 GMT",
                                        "Sun Nov  6 08:49:37 1994" };
    struct bs_time t = BS_TIME_NONE;

    (void)state;
    for (size_t i = 0; i < BS_COUNT(same); i++) {
        assert_int_equal(bs_time_parse_http(bs_str_of(same[i]), &t), BS_OK);
        assert_int_equal(t.us, 784111777000000);
    }
    assert_int_equal(bs_time_parse_http(BS_STR("Thu Nov 16 08:49:37 2034"), &t), BS_OK);
    assert_int_equal(t.us, 2047279777000000);
    assert_int_equal(bs_time_parse_http(BS_STR("Thursday, 01-Jan-69 00:00:00 GMT"), &t), BS_OK);
    assert_int_equal(t.us, 3124224000000000);
}

static void other_http_dates_are_refused(void **state)
{
    static const char *const bad[] = {
        "",
        "120",
        "Sun",
        "Sun,",
        "Sun, 06 Nov 1994 08:49:37",
        "Sun, 06 Nov 1994 08:49:37 UTC",
        "Sun, 06 Nov 1994 08:49:37 GMT ",
        "Sun, 6 Nov 1994 08:49:37 GMT",
        "Sun, 31 Nov 1994 08:49:37 GMT",
        "Sun, 06 nov 1994 08:49:37 GMT",
        "Sun, 06 Nov 1994 24:49:37 GMT",
        "Xyz, 06 Nov 1994 08:49:37 GMT",
        "Sunday, 06 Nov 1994 08:49:37 GMT",
        "Sunday, 06-Nov-1994 08:49:37 GMT",
        "Sun Nov 6 08:49:37 1994",
        "Sun Nov  6 08:49:37 1994 GMT",
        "Thu, 01 Jan 1970 00:00:00 GMT",
        "Sat, 31 Dec 2016 23:59:60 GMT",
    };

    (void)state;
    for (size_t i = 0; i < BS_COUNT(bad); i++) {
        struct bs_time t = { 77 };

        assert_int_equal(bs_time_parse_http(bs_str_of(bad[i]), &t), BS_E_INVALID);
        assert_int_equal(t.us, 77);
    }
}

static void a_span_is_one_number_and_one_unit(void **state)
{
    static const struct pair good[] = {
        { "0s", 0 },
        { "0d", 0 },
        { "1us", 1 },
        { "500ms", 500000 },
        { "1500ms", 1500000 },
        { "90s", 90000000 },
        { "10s", 10000000 },
        { "5m", 300000000 },
        { "1h", 3600000000 },
        { "30d", 2592000000000 },
        { "0010s", 10000000 },
        { "9223372036854775807us", INT64_MAX },
        { "106751991d", 9223372022400000000 },
    };
    static const char *const bad[] = {
        "",
        "s",
        "5",
        "5 s",
        "5S",
        " 5s",
        "5s ",
        "-5s",
        "+5s",
        "1h30m",
        "1.5s",
        "5sec",
        "1w",
        "m",
        "ms",
        "106751992d",
        "5s\n",
        "9223372036854775808us",
        "99999999999999999999s",
        "5mm",
        "0x5s",
        "1e3s",
    };
    struct bs_span d = BS_US(0);
    struct bs_err err;

    (void)state;
    for (size_t i = 0; i < BS_COUNT(good); i++) {
        assert_int_equal(bs_span_parse(bs_str_of(good[i].text), &d, NULL), BS_OK);
        assert_int_equal(d.us, good[i].us);
    }
    d = BS_US(77);
    for (size_t i = 0; i < BS_COUNT(bad); i++) {
        assert_int_equal(bs_span_parse(bs_str_of(bad[i]), &d, &err), BS_E_INVALID);
        assert_int_equal(d.us, 77);
    }
}

static void a_span_is_written_in_its_shortest_exact_form(void **state)
{
    BS_CLEANUP(bs_buf_free) struct bs_buf b = { .max = 100 };

    (void)state;
    bs_span_write(&b, BS_US(0));
    assert_buf(&b, "0s");
    bs_span_write(&b, BS_SEC(90));
    assert_buf(&b, "90s");
    bs_span_write(&b, BS_MS(1500));
    assert_buf(&b, "1500ms");
    bs_span_write(&b, BS_SEC(60));
    assert_buf(&b, "1m");
    bs_span_write(&b, BS_SEC(7200));
    assert_buf(&b, "2h");
    bs_span_write(&b, BS_SEC(86400 * 30));
    assert_buf(&b, "30d");
    bs_span_write(&b, BS_US(1001));
    assert_buf(&b, "1001us");
    bs_span_write(&b, BS_SEC(-5));
    assert_buf(&b, "-5s");
    bs_span_write(&b, BS_US(INT64_MIN));
    assert_buf(&b, "-9223372036854775808us");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(arithmetic_saturates_and_never_wraps),
        cmocka_unit_test(a_time_is_read_with_any_offset_and_up_to_nine_digits),
        cmocka_unit_test(a_time_that_does_not_exist_is_refused),
        cmocka_unit_test(a_time_is_written_with_six_digits),
        cmocka_unit_test(every_day_survives_the_round_trip),
        cmocka_unit_test(the_three_http_dates_are_one_instant),
        cmocka_unit_test(other_http_dates_are_refused),
        cmocka_unit_test(a_span_is_one_number_and_one_unit),
        cmocka_unit_test(a_span_is_written_in_its_shortest_exact_form),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
