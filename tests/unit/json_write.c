/* JSON out: separators, escapes, spliced bytes, limits. */
#include "json/write.h"

#include "check.h"
#include "json/read.h"

static void a_document_has_every_kind_of_value(void **state)
{
    BS_CLEANUP(bs_buf_free) struct bs_buf b = { .max = 1000 };
    struct bs_json *j = bs_json_new(&b);

    (void)state;
    bs_json_open(j);
    bs_json_kstr(j, "s", BS_STR("x"));
    bs_json_kstr_or_null(j, "none", BS_STR(""));
    bs_json_kstr_or_null(j, "some", BS_STR("y"));
    bs_json_kstr(j, "empty", BS_STR_NONE);
    bs_json_kint(j, "n", -5);
    bs_json_kid(j, "id", INT64_MAX);
    bs_json_kbool(j, "t", true);
    bs_json_kbool(j, "f", false);
    bs_json_ktime(j, "at", (struct bs_time){ 1796054627000000 });
    bs_json_ktime(j, "never", BS_TIME_NONE);
    bs_json_key(j, "list");
    bs_json_open_array(j);
    bs_json_int(j, 1);
    bs_json_time(j, (struct bs_time){ 1 });
    bs_json_null(j);
    bs_json_open(j);
    bs_json_close(j);
    bs_json_close_array(j);
    bs_json_kint(j, "last", INT64_MIN);
    bs_json_close(j);
    assert_int_equal(bs_json_end(j, NULL), BS_OK);
    assert_buf(&b, "{\"s\":\"x\",\"none\":null,\"some\":\"y\",\"empty\":\"\",\"n\":-5,"
                   "\"id\":\"9223372036854775807\",\"t\":true,\"f\":false,"
                   "\"at\":\"2026-11-30T16:03:47.000000Z\",\"never\":null,"
                   "\"list\":[1,\"1970-01-01T00:00:00.000001Z\",null,{}],"
                   "\"last\":-9223372036854775808}");
}

static void the_buffer_keeps_what_it_has(void **state)
{
    BS_CLEANUP(bs_buf_free) struct bs_buf b = { .max = 1000 };

    (void)state;
    for (int i = 0; i < 3; i++) {
        struct bs_json *j = bs_json_new(&b);

        bs_json_int(j, i);
        assert_int_equal(bs_json_end(j, NULL), BS_OK);
        bs_buf_addc(&b, '\n');
    }
    assert_buf(&b, "0\n1\n2\n");
}

static void stored_bytes_are_spliced_in_unchanged(void **state)
{
    BS_CLEANUP(bs_buf_free) struct bs_buf b = { .max = 1000 };
    struct bs_json *j = bs_json_new(&b);

    (void)state;
    bs_json_open(j);
    bs_json_key(j, "payload");
    bs_json_raw(j, BS_STR("{ \"a\" : 1e400, \"b\":\"\\ud83d\\/\" }"));
    bs_json_key(j, "n");
    bs_json_raw(j, BS_STR("12345678901234567890123"));
    bs_json_close(j);
    assert_int_equal(bs_json_end(j, NULL), BS_OK);
    assert_buf(&b, "{\"payload\":{ \"a\" : 1e400, \"b\":\"\\ud83d\\/\" },"
                   "\"n\":12345678901234567890123}");
}

static void assert_written(struct bs_str s, const char *wanted)
{
    BS_CLEANUP(bs_buf_free) struct bs_buf b = { .max = 1000 };
    struct bs_json *j = bs_json_new(&b);

    bs_json_str(j, s);
    assert_int_equal(bs_json_end(j, NULL), BS_OK);
    assert_slice(bs_buf_str(&b), bs_str_of(wanted));
    assert_int_equal(bs_json_valid(bs_buf_str(&b), NULL), BS_OK);
}

static void text_is_escaped_where_json_needs_it(void **state)
{
    (void)state;
    assert_written(BS_STR("a/b"), "\"a/b\"");
    assert_written(BS_STR("\"\\"), "\"\\\"\\\\\"");
    assert_written(BS_STR("\b\f\n\r\t"), "\"\\b\\f\\n\\r\\t\"");
    assert_written(BS_STR("a\0b\x01\x1f\x7f"), "\"a\\u0000b\\u0001\\u001F\x7f\"");
    assert_written(BS_STR("\xe7\x95\x8c\xf0\x9f\x98\x80"), "\"\xe7\x95\x8c\xf0\x9f\x98\x80\"");
    assert_written(BS_STR("</script>"), "\"</script>\"");
}

static void bytes_that_are_not_utf8_become_text(void **state)
{
    (void)state;
    assert_written(BS_STR("\xff"), "\"\\\\xFF\"");
    assert_written(BS_STR("a\xc0\xaf\xe7\x95\x8c\n\xe7\x95"),
                   "\"a\\\\xC0\\\\xAF\xe7\x95\x8c\\n\\\\xE7\\\\x95\"");
    assert_written(BS_STR("\xed\xa0\xbd"), "\"\\\\xED\\\\xA0\\\\xBD\"");
}

static void every_byte_survives_writing_and_reading(void **state)
{
    BS_CLEANUP(bs_arena_free) struct bs_arena a = { 0 };
    BS_CLEANUP(bs_buf_free) struct bs_buf b = { .max = 10000 };
    char all[128];
    struct bs_json_object o;

    (void)state;
    for (size_t i = 0; i < sizeof(all); i++)
        all[i] = (char)i;
    struct bs_json *j = bs_json_new(&b);
    bs_json_open(j);
    bs_json_kstr(j, "all", (struct bs_str){ all, sizeof(all) });
    bs_json_close(j);
    assert_int_equal(bs_json_end(j, NULL), BS_OK);
    assert_int_equal(bs_json_read_object(&a, bs_buf_str(&b), 1, &o, NULL), BS_OK);
    assert_slice(o.members[0].text, (struct bs_str){ all, sizeof(all) });
}

static void past_the_maximum_the_end_says_so(void **state)
{
    BS_CLEANUP(bs_buf_free) struct bs_buf b = { .max = 10 };
    struct bs_json *j = bs_json_new(&b);
    struct bs_err err;

    (void)state;
    bs_json_open(j);
    bs_json_kstr(j, "a", BS_STR("0123456789"));
    bs_json_kstr(j, "b", BS_STR("\xff\xff\xff\xff\xff\xff"));
    bs_json_ktime(j, "c", (struct bs_time){ 1 });
    bs_json_close(j);
    assert_int_equal(bs_json_end(j, &err), BS_E_LIMIT);
    assert_true(b.len <= 10);
}

static void an_unfinished_document_is_no_document(void **state)
{
    BS_CLEANUP(bs_buf_free) struct bs_buf b = { .max = 100 };
    struct bs_json *j = bs_json_new(&b);

    (void)state;
    bs_json_open(j);
    assert_int_equal(bs_json_end(j, NULL), BS_E_INVALID);
    assert_int_equal(bs_json_end(NULL, NULL), BS_E_NOMEM);
}

static void without_memory_every_call_is_harmless(void **state)
{
    (void)state;
    bs_json_open(NULL);
    bs_json_kstr(NULL, "a", BS_STR("\xff"));
    bs_json_kint(NULL, "a", 1);
    bs_json_kid(NULL, "a", 1);
    bs_json_kbool(NULL, "a", true);
    bs_json_ktime(NULL, "a", (struct bs_time){ 1 });
    bs_json_null(NULL);
    bs_json_raw(NULL, BS_STR("1"));
    bs_json_close(NULL);
    bs_json_open_array(NULL);
    bs_json_close_array(NULL);
    assert_int_equal(bs_json_end(NULL, NULL), BS_E_NOMEM);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_document_has_every_kind_of_value),
        cmocka_unit_test(the_buffer_keeps_what_it_has),
        cmocka_unit_test(stored_bytes_are_spliced_in_unchanged),
        cmocka_unit_test(text_is_escaped_where_json_needs_it),
        cmocka_unit_test(bytes_that_are_not_utf8_become_text),
        cmocka_unit_test(every_byte_survives_writing_and_reading),
        cmocka_unit_test(past_the_maximum_the_end_says_so),
        cmocka_unit_test(an_unfinished_document_is_no_document),
        cmocka_unit_test(without_memory_every_call_is_harmless),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
