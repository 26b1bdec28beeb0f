/* Log lines: their form, what they hide, how long they may be. */
#include "sys/log.h"

#include "base/text.h"
#include "check.h"

#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

enum { JSON = 1, READABLE = 2 };

static int ends[2];
static char line[65536];

static int open_pipe(void **state)
{
    (void)state;
    return pipe2(ends, O_CLOEXEC | O_NONBLOCK);
}

static int close_pipe(void **state)
{
    (void)state;
    close(ends[0]);
    close(ends[1]);
    return 0;
}

/* All that was written, terminated; "" when there was nothing. */
static const char *written(void)
{
    ssize_t n = read(ends[0], line, sizeof(line) - 1);

    line[n > 0 ? n : 0] = '\0';
    return line;
}

/* The line without its instant, which is checked for its form. */
static const char *after_time(const char *before)
{
    const char *text = written();
    size_t n = strlen(before);

    if (strncmp(text, before, n) != 0 || strlen(text) < n + 27 || text[n + 26] != 'Z')
        fail_msg("no time: %s", text);
    return text + n + 27;
}

static void a_json_line_has_time_level_event_and_fields(void **state)
{
    (void)state;
    bs_log_setup(ends[1], JSON, BS_LOG_INFO);
    bs_log(BS_LOG_WARN, "task.settled", BS_FZ("task_no", "812345678901234567"), BS_FN("attempt", 3),
           BS_FZ("empty", ""), BS_F("rc", BS_STR("OK")));
    assert_string_equal(after_time("{\"ts\":\""),
                        "\",\"level\":\"warn\",\"event\":\"task.settled\","
                        "\"task_no\":\"812345678901234567\",\"attempt\":3,\"rc\":\"OK\"}\n");
}

static void a_readable_line_quotes_only_where_it_must(void **state)
{
    (void)state;
    bs_log_setup(ends[1], READABLE, BS_LOG_INFO);
    bs_log(BS_LOG_ERROR, "task.settled", BS_FZ("a", "plain"), BS_FN("n", -3),
           BS_FZ("b", "two words"), BS_FZ("c", "x=\"y\""), BS_FZ("d", "back\\slash"),
           BS_FZ("e", "line\nfeed\x1b[31m"), BS_FZ("f", "\xe7\x95\x8c"), BS_FZ("g", "\xff"));
    assert_string_equal(after_time("ts="),
                        " level=error event=task.settled a=plain n=-3 b=\"two words\" "
                        "c=\"x=\\\"y\\\"\" d=\"back\\\\slash\" e=\"line\\nfeed\\x1b[31m\" "
                        "f=\"\xe7\x95\x8c\" g=\"\\xFF\"\n");
}

static void json_values_are_escaped(void **state)
{
    (void)state;
    bs_log_setup(ends[1], JSON, BS_LOG_INFO);
    bs_log(BS_LOG_INFO, "e", BS_F("a", BS_STR("q\"b\\n\n\t\0\x7f")),
           BS_FZ("b", "\xff\xe7\x95\x8c\xe7\x95"), BS_FZ("c", "\xc2\x9b"));
    assert_string_equal(after_time("{\"ts\":\""),
                        "\",\"level\":\"info\",\"event\":\"e\","
                        "\"a\":\"q\\\"b\\\\n\\n\\u0009\\u0000\\u007f\","
                        "\"b\":\"\\\\xFF\xe7\x95\x8c\\\\xE7\\\\x95\",\"c\":\"\\u009b\"}\n");
}

static void cards_and_telephones_are_hidden_but_not_our_own_ids(void **state)
{
    (void)state;
    bs_log_setup(ends[1], READABLE, BS_LOG_INFO);
    bs_log(BS_LOG_INFO, "e", BS_FZ("msg", "card 4111111111111111 tel 13812345678"),
           BS_FZ("order_no", "4111111111111111"), BS_FZ("task_no", "4111111111111111"),
           BS_FZ("parent_task_no", "4111111111111111"), BS_FN("n", 4111111111111111));
    assert_string_equal(after_time("ts="),
                        " level=info event=e msg=\"card 411111******1111 tel 138*****678\" "
                        "order_no=411111******1111 task_no=4111111111111111 "
                        "parent_task_no=4111111111111111 n=4111111111111111\n");
}

#define TOKEN "bst_f05848f0681dcc50f4414542683d5e570367ef0d21c64478e8fa996b697b146b"

static void own_tokens_are_hidden_in_every_value(void **state)
{
    (void)state;
    bs_log_setup(ends[1], JSON, BS_LOG_INFO);
    bs_log(BS_LOG_INFO, "e", BS_FZ("path", "/v1/tasks/" TOKEN), BS_FZ("reason", TOKEN),
           BS_FZ("message", "no token " TOKEN " here"));
    assert_string_equal(after_time("{\"ts\":\""),
                        "\",\"level\":\"info\",\"event\":\"e\",\"path\":\"/v1/tasks/bst_***\","
                        "\"reason\":\"bst_***\",\"message\":\"no token bst_*** here\"}\n");
}

/* Half of a secret is hidden like the whole. */
static void what_is_hidden_is_hidden_before_the_cut(void **state)
{
    static const char *const secrets[] = { TOKEN, "4111111111111111", "13812345678" };
    static char big[4096];

    (void)state;
    bs_log_setup(ends[1], READABLE, BS_LOG_INFO);
    for (size_t i = 0; i < BS_COUNT(secrets); i++) {
        size_t n = strlen(secrets[i]);

        memset(big, 'x', sizeof(big));
        memcpy(big + 2048 - n + 1, secrets[i], n);
        bs_log(BS_LOG_INFO, "e", BS_F("big", ((struct bs_str){ big, sizeof(big) })));
        assert_null(strstr(written(), "f05848f0681dcc50"));
        assert_null(strstr(line, "4111111111"));
        assert_null(strstr(line, "1381234"));
        assert_non_null(strstr(line, "\xe2\x80\xa6\"\n"));
    }
}

static void levels_below_the_least_are_silent(void **state)
{
    (void)state;
    bs_log_setup(ends[1], JSON, BS_LOG_WARN);
    bs_log(BS_LOG_DEBUG, "e", BS_FN("n", 1));
    bs_log(BS_LOG_INFO, "e", BS_FN("n", 1));
    assert_string_equal(written(), "");
    bs_log_setup(ends[1], JSON, BS_LOG_DEBUG);
    bs_log_event(BS_LOG_DEBUG, "bare", NULL, 0);
    assert_string_equal(after_time("{\"ts\":\""), "\",\"level\":\"debug\",\"event\":\"bare\"}\n");
}

static void a_pipe_is_no_terminal_and_gets_json(void **state)
{
    (void)state;
    bs_log_setup(ends[1], 0, BS_LOG_INFO);
    bs_log(BS_LOG_INFO, "e", BS_FN("n", 1));
    assert_int_equal(written()[0], '{');
}

static void a_long_value_is_cut_and_marked(void **state)
{
    static char big[100000];

    (void)state;
    bs_log_setup(ends[1], READABLE, BS_LOG_INFO);
    memset(big, 'x', sizeof(big));
    memcpy(big + 2047, "\xe7\x95\x8c", 3);
    bs_log(BS_LOG_INFO, "e", BS_F("big", ((struct bs_str){ big, sizeof(big) })), BS_FN("n", 1));
    const char *rest = strstr(after_time("ts="), "big=\"") + 5;
    assert_int_equal(strspn(rest, "x"), 2047);
    assert_string_equal(rest + 2047, "\xe2\x80\xa6\" n=1\n");
}

static void a_line_has_at_most_8_kib_and_stays_whole(void **state)
{
    static char big[2048];

    (void)state;
    for (int form = JSON; form <= READABLE; form++) {
        bs_log_setup(ends[1], form, BS_LOG_INFO);
        memset(big, form == JSON ? 1 : 'x', sizeof(big));
        struct bs_str s = { big, sizeof(big) };
        struct bs_str half = { big, 1000 };
        bs_log(BS_LOG_INFO, "e", BS_F("a", half), BS_F("b", s), BS_F("c", s), BS_F("d", s),
               BS_F("e", s), BS_FN("n", 1));
        size_t n = strlen(written());
        assert_true(n > 6000 && n <= 8192);
        assert_string_equal(line + n - (form == JSON ? 19 : 14),
                            form == JSON ? ",\"n\":1,\"cut\":true}\n" : " n=1 cut=true\n");
        assert_ptr_equal(strchr(line, '\n'), line + n - 1);
    }
}

static void *log_many(void *arg)
{
    for (int i = 0; i < 300; i++)
        bs_log(BS_LOG_INFO, "e", BS_FZ("who", arg), BS_FZ("more", arg), BS_FN("end", 7));
    return NULL;
}

static void lines_of_threads_never_mix(void **state)
{
    static char names[4][8] = { "aaaaaaa", "bbbbbbb", "ccccccc", "ddddddd" };
    pthread_t threads[4];
    FILE *file = tmpfile();
    int lines = 0;

    (void)state;
    assert_non_null(file);
    bs_log_setup(fileno(file), READABLE, BS_LOG_INFO);
    assert_int_equal(fcntl(fileno(file), F_SETFL, O_APPEND), 0);
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, log_many, names[i]), 0);
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    rewind(file);
    while (fgets(line, sizeof(line), file)) {
        char who[8], more[8];

        assert_int_equal(
            sscanf(line, "ts=%*s level=info event=e who=%7[a-d] more=%7[a-d] end=7\n", who, more),
            2);
        assert_string_equal(who, more);
        lines++;
    }
    assert_int_equal(lines, 1200);
    bs_log_setup(2, READABLE, BS_LOG_INFO);
    fclose(file);
}

static void a_log_that_cannot_be_written_stops_nothing(void **state)
{
    (void)state;
    bs_log_setup(-1, JSON, BS_LOG_INFO);
    bs_log(BS_LOG_INFO, "e", BS_FN("n", 1));
    bs_log_setup(2, 0, BS_LOG_INFO);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_json_line_has_time_level_event_and_fields),
        cmocka_unit_test(a_readable_line_quotes_only_where_it_must),
        cmocka_unit_test(json_values_are_escaped),
        cmocka_unit_test(cards_and_telephones_are_hidden_but_not_our_own_ids),
        cmocka_unit_test(own_tokens_are_hidden_in_every_value),
        cmocka_unit_test(what_is_hidden_is_hidden_before_the_cut),
        cmocka_unit_test(levels_below_the_least_are_silent),
        cmocka_unit_test(a_pipe_is_no_terminal_and_gets_json),
        cmocka_unit_test(a_long_value_is_cut_and_marked),
        cmocka_unit_test(a_line_has_at_most_8_kib_and_stays_whole),
        cmocka_unit_test(lines_of_threads_never_mix),
        cmocka_unit_test(a_log_that_cannot_be_written_stops_nothing),
    };

    return cmocka_run_group_tests(tests, open_pipe, close_pipe);
}
