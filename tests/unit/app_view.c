/* Answers of the server as tables for people. */
#include "app/view.h"

#include "check.h"

#include <locale.h>

static void check_table(const char *answer, const struct bs_column *columns, uint32_t n,
                        const char *wanted)
{
    BS_CLEANUP(bs_buf_free) struct bs_buf out = { .max = 64 << 10 };
    struct bs_err err = { 0 };

    if (bs_view_table(&out, bs_str_of(answer), columns, n, "nothing", &err) != BS_OK)
        fail_msg("refused: %s", err.msg);
    assert_string_equal(bs_buf_str(&out).p, wanted);
}

static void columns_are_as_wide_as_their_widest_cell(void **state)
{
    static const struct bs_column columns[] = { { "NAME", "name" }, { "N", "n" }, { "ON", "on" } };

    (void)state;
    check_table("{\"items\":[{\"name\":\"a-long-name\",\"n\":1,\"on\":true},"
                "{\"n\":22,\"name\":\"b\",\"on\":false},{\"name\":null}],\"next_cursor\":null}",
                columns, BS_COUNT(columns),
                "NAME         N   ON\n"
                "a-long-name  1   yes\n"
                "b            22  no\n"
                "\n");
    check_table("{\"items\":[]}", columns, BS_COUNT(columns), "nothing\n");
}

static void han_letters_take_two_columns(void **state)
{
    static const struct bs_column columns[] = { { "A", "a" }, { "B", "b" } };

    (void)state;
    check_table("{\"items\":[{\"a\":\"支付\",\"b\":\"x\"},{\"a\":\"abcd\",\"b\":\"y\"}]}", columns,
                2,
                "A     B\n"
                "支付  x\n"
                "abcd  y\n");
}

static void members_of_members_lists_and_times_are_readable(void **state)
{
    static const struct bs_column columns[] = {
        { "W", "counts.WAITING" }, { "GONE", "counts.x" }, { "QUEUES", "queues" }, { "AT", "at" }
    };

    (void)state;
    check_table("{\"items\":[{\"counts\":{\"WAITING\":7},\"queues\":[\"A\",\"B\"],"
                "\"at\":\"2026-11-30T16:03:47.123456Z\"}]}",
                columns, BS_COUNT(columns),
                "W  GONE  QUEUES  AT\n"
                "7        A,B     2026-11-30 16:03:47.123\n");
}

/* 6410 CNY read as yuan would be a hundred times too much. */
static void amounts_have_their_point_and_their_currency(void **state)
{
    static const struct bs_column columns[] = { { "AMOUNT", "amount", BS_COLUMN_AMOUNT } };
    BS_CLEANUP(bs_buf_free) struct bs_buf out = { .max = 64 << 10 };

    (void)state;
    check_table("{\"items\":[{\"amount\":\"6410\",\"currency\":\"CNY\"},"
                "{\"amount\":\"6410\",\"currency\":\"JPY\"},"
                "{\"amount\":\"5\",\"currency\":\"KWD\"},"
                "{\"amount\":\"6410\",\"currency\":\"X\"},"
                "{\"amount\":\"99999999999999999999\",\"currency\":\"CNY\"},"
                "{\"amount\":null,\"currency\":null}]}",
                columns, 1,
                "AMOUNT\n64.10 CNY\n6410 JPY\n0.005 KWD\n6410\n99999999999999999999\n\n");
    assert_int_equal(
        bs_view_object(&out, BS_STR("{\"amount\":\"6410\",\"currency\":\"CNY\"}"), NULL), BS_OK);
    assert_string_equal(bs_buf_str(&out).p, "amount    64.10 CNY\ncurrency  CNY\n");
}

static void lists_of_amounts_and_inner_objects_are_readable(void **state)
{
    static const struct bs_column columns[] = { { "EXPOSURE", "exposure" },
                                                { "AMOUNTS", "amounts" } };
    BS_CLEANUP(bs_buf_free) struct bs_buf out = { .max = 64 << 10 };

    (void)state;
    check_table("{\"items\":[{\"exposure\":[{\"currency\":\"CNY\",\"amount\":\"6410\"},{"
                "\"currency\":\"JPY\",\"amount\":\"5\"}],\"amounts\":[{\"task_status\":"
                "\"MANUAL\",\"currency\":\"CNY\",\"count\":2,\"amount\":\"6410\"}]},{\"exposure\":"
                "[],\"amounts\":[{\"odd\":1}]}]}",
                columns, 2,
                "EXPOSURE          AMOUNTS\n"
                "64.10 CNY, 5 JPY  MANUAL 64.10 CNY (2)\n"
                "                  {\"odd\":1}\n");
    assert_int_equal(bs_view_tree(&out,
                                  BS_STR("{\"a\":1,\"breaker\":{\"state\":\"open\",\"why\":null,"
                                         "\"deep\":{\"x\":1}},\"empty\":{},\"amounts\":[{"
                                         "\"currency\":\"CNY\",\"amount\":\"5\"},{\"currency\":"
                                         "\"JPY\",\"amount\":\"5\"}],\"none\":[]}"),
                                  NULL),
                     BS_OK);
    assert_string_equal(bs_buf_str(&out).p, "a              1\n"
                                            "breaker.state  open\n"
                                            "breaker.deep   {\"x\":1}\n"
                                            "amounts        0.05 CNY\n"
                                            "               5 JPY\n");
}

static void inner_lists_become_rows_of_their_own(void **state)
{
    static const struct bs_column columns[] = { { "QUEUE", "biz_type" },
                                                { "AMOUNT", "amount", BS_COLUMN_AMOUNT } };
    BS_CLEANUP(bs_buf_free) struct bs_buf out = { .max = 64 << 10 };

    (void)state;
    assert_int_equal(
        bs_view_inner(&out,
                      BS_STR("{\"items\":[{\"biz_type\":\"A\",\"amounts\":[{\"currency\":\"CNY\","
                             "\"amount\":\"5\"},{\"currency\":\"JPY\",\"amount\":\"5\"}]},"
                             "{\"biz_type\":\"B\",\"amounts\":[]}]}"),
                      "amounts", columns, 2, NULL),
        BS_OK);
    assert_string_equal(bs_buf_str(&out).p, "QUEUE  AMOUNT\nA      0.05 CNY\nA      5 JPY\n");
    bs_buf_free(&out);
    assert_int_equal(bs_view_inner(&out, BS_STR("{\"items\":[]}"), "amounts", columns, 2, NULL),
                     BS_OK);
    assert_int_equal(out.len, 0);
}

static void when_next_is_shown_while_something_is_next(void **state)
{
    static const struct bs_column columns[] = { { "S", "task_status" },
                                                { "NEXT", "at", BS_COLUMN_WAITING } };

    (void)state;
    check_table("{\"items\":[{\"task_status\":\"RETRY\",\"at\":\"x\"},"
                "{\"task_status\":\"MANUAL\",\"at\":\"x\"},"
                "{\"task_status\":\"SUCCESS\",\"at\":\"x\"},"
                "{\"task_status\":\"WAITING\",\"at\":\"x\"}]}",
                columns, 2, "S        NEXT\nRETRY    x\nMANUAL\nSUCCESS\nWAITING  x\n");
}

/* A task's text may come from anybody: it must not reach the terminal's control. */
static void control_characters_are_shown_and_not_sent(void **state)
{
    static const struct bs_column columns[] = { { "M", "m" } };

    (void)state;
    check_table("{\"items\":[{\"m\":\"a\\u001b[2Jb\\nc\\td\"}]}", columns, 1,
                "M\na\\x1B[2Jb c d\n");
}

static void numbers_keep_their_digits(void **state)
{
    BS_CLEANUP(bs_buf_free) struct bs_buf out = { .max = 64 << 10 };

    (void)state;
    assert_int_equal(bs_view_object(&out,
                                    BS_STR("{\"payload\":{\"id\":12345678901234567890123,\"x\":1."
                                           "10},\"none\":null,\"n\":1e400}"),
                                    NULL),
                     BS_OK);
    assert_string_equal(bs_buf_str(&out).p, "payload  {\"id\":12345678901234567890123,\"x\":1.10}\n"
                                            "n        1e400\n");
}

static void an_answer_without_items_is_an_error(void **state)
{
    static const struct bs_column columns[] = { { "M", "m" } };
    BS_CLEANUP(bs_buf_free) struct bs_buf out = { .max = 64 << 10 };
    struct bs_err err = { 0 };

    (void)state;
    assert_int_equal(bs_view_table(&out, BS_STR("{}"), columns, 1, "", &err), BS_E_INVALID);
    assert_string_equal(err.msg, "the answer has no items");
    assert_int_equal(bs_view_table(&out, BS_STR("<html>"), columns, 1, "", &err), BS_E_INVALID);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(columns_are_as_wide_as_their_widest_cell),
        cmocka_unit_test(han_letters_take_two_columns),
        cmocka_unit_test(members_of_members_lists_and_times_are_readable),
        cmocka_unit_test(control_characters_are_shown_and_not_sent),
        cmocka_unit_test(amounts_have_their_point_and_their_currency),
        cmocka_unit_test(lists_of_amounts_and_inner_objects_are_readable),
        cmocka_unit_test(inner_lists_become_rows_of_their_own),
        cmocka_unit_test(when_next_is_shown_while_something_is_next),
        cmocka_unit_test(numbers_keep_their_digits),
        cmocka_unit_test(an_answer_without_items_is_an_error),
    };

    setlocale(LC_CTYPE, "C.UTF-8");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
