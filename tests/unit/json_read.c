/* JSON in: what is accepted, what is refused, and that slices are the input's own bytes. */
#include "json/read.h"
#include "json/unescape.h"

#include "base/text.h"
#include "check.h"

static struct bs_json_object read_ok(struct bs_arena *a, struct bs_str input)
{
    struct bs_json_object o = { 0 };
    struct bs_err err = { 0 };

    if (bs_json_read_object(a, input, 100, &o, &err) != BS_OK)
        fail_msg("refused: %s", err.msg);
    return o;
}

static void members_are_exact_slices_of_every_type(void **state)
{
    BS_CLEANUP(bs_arena_free) struct bs_arena a = { 0 };
    struct bs_str input =
        BS_STR(" \n{ \"s\" : \"x\\ty\" , \"n\":-1.50e+3,\"t\":true\t,\"f\":  false,"
               "\"z\":null ,\"o\":{ \"a\" : [1, 2] } , \"l\":[ {} ,\"]\"]\n} \r\n");
    static const struct {
        const char *name, *raw;
        enum bs_json_type type;
    } wanted[] = {
        { "s", "\"x\\ty\"", BS_JSON_STRING },   { "n", "-1.50e+3", BS_JSON_NUMBER },
        { "t", "true", BS_JSON_BOOL },          { "f", "false", BS_JSON_BOOL },
        { "z", "null", BS_JSON_NULL },          { "o", "{ \"a\" : [1, 2] }", BS_JSON_OBJECT },
        { "l", "[ {} ,\"]\"]", BS_JSON_ARRAY },
    };

    (void)state;
    struct bs_json_object o = read_ok(&a, input);
    assert_int_equal(o.n, BS_COUNT(wanted));
    for (size_t i = 0; i < BS_COUNT(wanted); i++) {
        struct bs_json_member *m = &o.members[i];

        assert_slice(m->name, bs_str_of(wanted[i].name));
        assert_slice(m->raw, bs_str_of(wanted[i].raw));
        assert_int_equal(m->type, wanted[i].type);
        assert_true(m->raw.p > input.p && m->raw.p + m->raw.n < input.p + input.n);
    }
    assert_str(o.members[0].text, "x\ty");
    assert_true(o.members[2].flag);
    assert_false(o.members[3].flag);
    assert_null(o.members[1].text.p);
}

static void a_tight_object_has_exact_slices_too(void **state)
{
    BS_CLEANUP(bs_arena_free) struct bs_arena a = { 0 };
    struct bs_json_object o =
        read_ok(&a, BS_STR("{\"a\":1,\"b\":[],\"c\":{},\"d\":\"\",\"e\":null,\"f\":0,\"g\":-7}"));
    static const char *const raw[] = { "1", "[]", "{}", "\"\"", "null", "0", "-7" };

    (void)state;
    assert_int_equal(o.n, 7);
    for (size_t i = 0; i < 7; i++)
        assert_slice(o.members[i].raw, bs_str_of(raw[i]));
    assert_non_null(o.members[3].text.p);
    assert_int_equal(o.members[3].text.n, 0);
}

static void an_empty_object_has_no_members(void **state)
{
    BS_CLEANUP(bs_arena_free) struct bs_arena a = { 0 };

    (void)state;
    assert_int_equal(read_ok(&a, BS_STR("{}")).n, 0);
    assert_int_equal(read_ok(&a, BS_STR("\t{ \n } ")).n, 0);
}

static void a_name_twice_is_listed_twice(void **state)
{
    BS_CLEANUP(bs_arena_free) struct bs_arena a = { 0 };
    struct bs_json_object o = read_ok(&a, BS_STR("{\"a\":1,\"\\u0061\":2,\"A\":3,\"\":4}"));

    (void)state;
    assert_int_equal(o.n, 4);
    assert_str(o.members[0].name, "a");
    assert_str(o.members[1].name, "a");
    assert_str(o.members[1].raw, "2");
    assert_str(o.members[2].name, "A");
    assert_str(o.members[3].name, "");
}

static void odd_but_valid_values_keep_their_bytes(void **state)
{
    static const char *const odd[] = {
        "12345678901234567890123",
        "1e400",
        "-0",
        "-0.0",
        "0.10",
        "1E+2",
        "1e-999",
        "\"\\ud83d\"",
        "\"\\udc00\\ud83d\"",
        "\"\\/\"",
        "\"/\"",
        "\"\\u0000\"",
        "\"\xf0\x9f\x98\x80\"",
        "[1e400,\"\\ud800\"]",
        "{\"\\ud800\":12345678901234567890123}",
        "\"\xc2\x80\x7f\"",
    };

    (void)state;
    for (size_t i = 0; i < BS_COUNT(odd); i++) {
        BS_CLEANUP(bs_arena_free) struct bs_arena a = { 0 };
        struct bs_json_object o =
            read_ok(&a, bs_arena_fmt(&a, "{\"before\":1, \"v\" : %s , \"after\":2}", odd[i]));

        assert_int_equal(o.n, 3);
        assert_slice(o.members[1].raw, bs_str_of(odd[i]));
        assert_str(o.members[2].raw, "2");
        assert_int_equal(bs_json_valid(bs_str_of(odd[i]), NULL), BS_OK);
    }
}

static void assert_text(const char *string, struct bs_str wanted)
{
    BS_CLEANUP(bs_arena_free) struct bs_arena a = { 0 };
    struct bs_json_object o = read_ok(&a, bs_arena_fmt(&a, "{%s:%s}", string, string));

    assert_slice(o.members[0].name, wanted);
    assert_slice(o.members[0].text, wanted);
    assert_true(bs_utf8_valid(o.members[0].text));
}

static void escapes_become_the_characters_they_stand_for(void **state)
{
    (void)state;
    assert_text("\"plain\"", BS_STR("plain"));
    assert_text("\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"", BS_STR("\"\\/\b\f\n\r\t"));
    assert_text("\"a\\u0000b\"", BS_STR("a\0b"));
    assert_text("\"\\u00e9\\u754c\\u007F\\u07ff\\u0800\\uffff\"",
                BS_STR("\xc3\xa9\xe7\x95\x8c\x7f\xdf\xbf\xe0\xa0\x80\xef\xbf\xbf"));
    assert_text("\"\\ud83d\\ude00\\uDBFF\\uDFFF\\uD800\\uDC00\"",
                BS_STR("\xf0\x9f\x98\x80\xf4\x8f\xbf\xbf\xf0\x90\x80\x80"));
    assert_text("\"x\\n\"", BS_STR("x\n"));
    assert_text("\"\\nx\"", BS_STR("\nx"));
}

static void lone_surrogates_become_replacement_characters(void **state)
{
    (void)state;
    assert_text("\"\\ud83d\"", BS_STR("\xef\xbf\xbd"));
    assert_text("\"\\ude00\"", BS_STR("\xef\xbf\xbd"));
    assert_text("\"\\ud83dx\"", BS_STR("\xef\xbf\xbdx"));
    assert_text("\"\\ud83d\\n\"", BS_STR("\xef\xbf\xbd\n"));
    assert_text("\"\\ud83d\\u0041\"", BS_STR("\xef\xbf\xbd"
                                             "A"));
    assert_text("\"\\ud83d\\ud83d\\ude00\"", BS_STR("\xef\xbf\xbd\xf0\x9f\x98\x80"));
    assert_text("\"\\ude00\\ud83d\"", BS_STR("\xef\xbf\xbd\xef\xbf\xbd"));
    assert_text("\"\\ud83d\\\\u\"", BS_STR("\xef\xbf\xbd\\u"));
}

static void a_text_that_lost_a_character_is_known(void **state)
{
    static const char *const lossy[] = { "\"\\ud83d\"",        "\"\\ude00\"",
                                         "\"\\n\\uD83Dx\"",    "\"\\ud83d\\u0041\"",
                                         "\"\\ude00\\ud83d\"", "\"\\ud83d\\ud83d\\ude00\"" };
    static const char *const whole[] = { "\"\"",
                                         "\"x\"",
                                         "\"\\ufffd\"",
                                         "\"\xef\xbf\xbd\"",
                                         "\"\\\\ud83d\"",
                                         "\"\\ud83d\\ude00\"",
                                         "\"\\\"\\n\\u0041\"" };

    (void)state;
    for (size_t i = 0; i < BS_COUNT(lossy); i++)
        assert_true(bs_json_is_lossy(bs_str_of(lossy[i])));
    for (size_t i = 0; i < BS_COUNT(whole); i++)
        assert_false(bs_json_is_lossy(bs_str_of(whole[i])));
}

static void what_is_not_json_is_refused(void **state)
{
    static const char *const bad[] = {
        "",
        " ",
        "{",
        "}",
        "{\"a\"",
        "{\"a\":",
        "{\"a\":}",
        "{\"a\":1",
        "{\"a\":1,",
        "{\"a\":1,}",
        "{,}",
        "{\"a\" 1}",
        "{\"a\":1 \"b\":2}",
        "{a:1}",
        "{'a':1}",
        "{\"a\":1}x",
        "{\"a\":1}{",
        "{\"a\":1} {}",
        "{\"a\":1},",
        "{\"a\":1}]",
        "/* c */{}",
        "{}//c",
        "{/**/}",
        "{\"a\":01}",
        "{\"a\":+1}",
        "{\"a\":.5}",
        "{\"a\":1.}",
        "{\"a\":1e}",
        "{\"a\":-}",
        "{\"a\":0x1}",
        "{\"a\":NaN}",
        "{\"a\":Infinity}",
        "{\"a\":tru}",
        "{\"a\":truex}",
        "{\"a\":True}",
        "{\"a\":nul}",
        "{\"a\":\"x}",
        "{\"a\":\"\\x\"}",
        "{\"a\":\"\\u12\"}",
        "{\"a\":\"\\u12g4\"}",
        "{\"a\":\"\n\"}",
        "{\"a\":\"\x1f\"}",
        "{\"a\":[1,]}",
        "{\"a\":[}]}",
        "{\"a\":(1)}",
        "\v{}",
        "{\f}",
        "{}\v",
        "{}\xc2\xa0",
        "{\"a\":\"\xc0\xaf\"}",
        "{\"a\":\"\xed\xa0\xbd\"}",
        "{\"a\":\"\xff\"}",
        "\xff{}",
    };

    (void)state;
    for (size_t i = 0; i < BS_COUNT(bad); i++) {
        BS_CLEANUP(bs_arena_free) struct bs_arena a = { 0 };
        struct bs_json_object o = { .n = 77 };
        struct bs_err err = { 0 };

        if (bs_json_read_object(&a, bs_str_of(bad[i]), 10, &o, &err) != BS_E_INVALID)
            fail_msg("accepted: %s", bad[i]);
        assert_int_equal(o.n, 77);
        assert_true(err.msg[0] != '\0');
        assert_null(strchr(err.msg, '\n'));
        if (bs_json_valid(bs_str_of(bad[i]), &err) != BS_E_INVALID)
            fail_msg("valid: %s", bad[i]);
    }
}

static void a_nul_byte_is_refused_everywhere(void **state)
{
    BS_CLEANUP(bs_arena_free) struct bs_arena a = { 0 };
    struct bs_json_object o;

    (void)state;
    assert_int_equal(bs_json_read_object(&a, BS_STR("{}\0"), 10, &o, NULL), BS_E_INVALID);
    assert_int_equal(bs_json_read_object(&a, BS_STR("\0{}"), 10, &o, NULL), BS_E_INVALID);
    assert_int_equal(bs_json_read_object(&a, BS_STR("{\0}"), 10, &o, NULL), BS_E_INVALID);
    assert_int_equal(bs_json_read_object(&a, BS_STR("{\"a\":\"\0\"}"), 10, &o, NULL), BS_E_INVALID);
    assert_int_equal(bs_json_read_object(&a, BS_STR("{\"a\":1\0}"), 10, &o, NULL), BS_E_INVALID);
    assert_int_equal(bs_json_read_object(&a, BS_STR_NONE, 10, &o, NULL), BS_E_INVALID);
}

static void another_type_at_the_top_is_refused(void **state)
{
    static const char *const other[] = { "1", "\"x\"", "true", "null", "[]", "[{}]", "-1.5 " };
    BS_CLEANUP(bs_arena_free) struct bs_arena a = { 0 };
    struct bs_json_object o;
    struct bs_err err;
    struct bs_str *items;
    uint32_t n;

    (void)state;
    for (size_t i = 0; i < BS_COUNT(other); i++) {
        assert_int_equal(bs_json_read_object(&a, bs_str_of(other[i]), 10, &o, &err), BS_E_INVALID);
        assert_string_equal(err.msg, "a JSON object was expected");
        assert_int_equal(bs_json_valid(bs_str_of(other[i]), NULL), BS_OK);
    }
    assert_int_equal(bs_json_read_array(&a, BS_STR("{}"), 10, &items, &n, &err), BS_E_INVALID);
    assert_string_equal(err.msg, "a JSON array was expected");
}

static void the_message_says_what_and_where(void **state)
{
    struct bs_err err;

    (void)state;
    assert_int_equal(bs_json_valid(BS_STR("\xef\xbb\xbf{}"), &err), BS_E_INVALID);
    assert_string_equal(err.msg, "begins with a byte order mark, which JSON does not allow");
    assert_int_equal(bs_json_valid(BS_STR("{\"a\":\"\xe7\x95\x8c\xe7\x95\"}"), &err), BS_E_INVALID);
    assert_string_equal(err.msg, "not UTF-8 at byte 10");
    assert_int_equal(bs_json_valid(BS_STR("{\"a\":\v1}"), &err), BS_E_INVALID);
    assert_string_equal(err.msg, "not JSON at byte 6: a control character");
    assert_int_equal(bs_json_valid(BS_STR("{} x"), &err), BS_E_INVALID);
    assert_string_equal(err.msg, "not JSON at byte 4: parse error: trailing garbage");
    assert_int_equal(bs_json_valid(BS_STR("{\"a\":"), &err), BS_E_INVALID);
    assert_string_equal(err.msg, "not JSON at byte 5: parse error: premature EOF");
    assert_int_equal(bs_json_valid(BS_STR(""), &err), BS_E_INVALID);
    assert_string_equal(err.msg, "empty where JSON was expected");
}

static void members_have_a_limit(void **state)
{
    BS_CLEANUP(bs_arena_free) struct bs_arena a = { 0 };
    struct bs_str two = BS_STR("{\"a\":[1,2,3,4],\"b\":{\"c\":1,\"d\":2}}");
    struct bs_json_object o;
    struct bs_err err;

    (void)state;
    assert_int_equal(bs_json_read_object(&a, two, 2, &o, NULL), BS_OK);
    assert_int_equal(o.n, 2);
    assert_int_equal(bs_json_read_object(&a, two, 1, &o, &err), BS_E_LIMIT);
    assert_string_equal(err.msg, "the JSON object has more than 1 members");
    assert_int_equal(bs_json_read_object(&a, two, 0, &o, NULL), BS_E_LIMIT);
    assert_int_equal(bs_json_read_object(&a, BS_STR("{}"), 0, &o, NULL), BS_OK);
}

static void many_members_are_all_there(void **state)
{
    BS_CLEANUP(bs_arena_free) struct bs_arena a = { 0 };
    BS_CLEANUP(bs_buf_free) struct bs_buf b = { .max = 1 << 20 };

    (void)state;
    for (int i = 0; i < 1000; i++)
        bs_buf_fmt(&b, "%s\"k%d\": %d ", i ? "," : "{", i, i * 7);
    bs_buf_addc(&b, '}');
    struct bs_json_object o;
    assert_int_equal(bs_json_read_object(&a, bs_buf_str(&b), 1000, &o, NULL), BS_OK);
    assert_int_equal(o.n, 1000);
    for (int i = 0; i < 1000; i++) {
        int64_t v;

        assert_slice(o.members[i].name, bs_arena_fmt(&a, "k%d", i));
        assert_true(bs_i64_parse(o.members[i].raw, &v));
        assert_int_equal(v, i * 7);
    }
}

static void array_elements_are_exact_slices(void **state)
{
    BS_CLEANUP(bs_arena_free) struct bs_arena a = { 0 };
    static const char *const wanted[] = { "{\"a\": [1]}", "2", "\"x,]\"", "[ ]", "null", "true" };
    struct bs_str input = BS_STR(" [ {\"a\": [1]} ,2, \"x,]\",[ ],null , true ]\n");
    struct bs_str *items;
    uint32_t n;

    (void)state;
    assert_int_equal(bs_json_read_array(&a, input, 6, &items, &n, NULL), BS_OK);
    assert_int_equal(n, 6);
    for (size_t i = 0; i < 6; i++)
        assert_slice(items[i], bs_str_of(wanted[i]));
    assert_int_equal(bs_json_read_array(&a, input, 5, &items, &n, NULL), BS_E_LIMIT);
    assert_int_equal(bs_json_read_array(&a, BS_STR("[]"), 0, &items, &n, NULL), BS_OK);
    assert_int_equal(n, 0);
    assert_int_equal(bs_json_read_array(&a, BS_STR("[1,]"), 9, &items, &n, NULL), BS_E_INVALID);
    assert_int_equal(bs_json_read_array(&a, BS_STR("[1"), 9, &items, &n, NULL), BS_E_INVALID);
    assert_int_equal(bs_json_read_array(&a, BS_STR("[1] 2"), 9, &items, &n, NULL), BS_E_INVALID);
}

static void deep_nesting_overflows_nothing(void **state)
{
    size_t n = 256 << 10;
    char *text = malloc(2 * n + 6);
    BS_CLEANUP(bs_arena_free) struct bs_arena a = { 0 };
    struct bs_json_object o;

    (void)state;
    assert_non_null(text);
    memset(text, '[', n);
    assert_int_equal(bs_json_valid((struct bs_str){ text, n }, NULL), BS_E_INVALID);
    memset(text + n, ']', n);
    assert_int_equal(bs_json_valid((struct bs_str){ text, 2 * n }, NULL), BS_OK);
    memcpy(text, "{\"a\":", 5);
    memset(text + 5, '[', n);
    memset(text + 5 + n, ']', n);
    text[2 * n + 5] = '}';
    assert_int_equal(bs_json_read_object(&a, (struct bs_str){ text, 2 * n + 6 }, 1, &o, NULL),
                     BS_OK);
    assert_int_equal(o.members[0].raw.n, 2 * n);
    free(text);
}

static void an_arena_that_is_full_is_reported(void **state)
{
    struct bs_str input = BS_STR("{\"name\":\"some text that needs room in the arena\"}");
    size_t max = 16;
    bs_rc rc = BS_E_NOMEM;

    (void)state;
    for (; rc == BS_E_NOMEM && max < 100000; max += 16) {
        BS_CLEANUP(bs_arena_free) struct bs_arena a = { .max = max };
        struct bs_json_object o = { 0 };

        rc = bs_json_read_object(&a, input, 10, &o, NULL);
        assert_int_equal(rc == BS_OK, !a.failed);
    }
    assert_int_equal(rc, BS_OK);
    assert_true(max > 64);
}

/* Every beginning of a document is refused: it must never crash, whatever byte it stops at. */
static void every_beginning_is_refused(void **state)
{
    struct bs_str whole =
        BS_STR("{\"a\":\"\\ud83d\\ude00\",\"b\":[1.5e3,{\"c\":null}],\"d\":false}");

    (void)state;
    for (size_t n = 0; n <= whole.n; n++) {
        BS_CLEANUP(bs_arena_free) struct bs_arena a = { 0 };
        struct bs_json_object o;
        char *exact = malloc(n + 1);

        assert_non_null(exact);
        memcpy(exact, whole.p, n);
        bs_rc rc = bs_json_read_object(&a, (struct bs_str){ exact, n }, 9, &o, NULL);
        assert_int_equal(rc, n == whole.n ? BS_OK : BS_E_INVALID);
        free(exact);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(members_are_exact_slices_of_every_type),
        cmocka_unit_test(a_tight_object_has_exact_slices_too),
        cmocka_unit_test(an_empty_object_has_no_members),
        cmocka_unit_test(a_name_twice_is_listed_twice),
        cmocka_unit_test(odd_but_valid_values_keep_their_bytes),
        cmocka_unit_test(escapes_become_the_characters_they_stand_for),
        cmocka_unit_test(lone_surrogates_become_replacement_characters),
        cmocka_unit_test(a_text_that_lost_a_character_is_known),
        cmocka_unit_test(what_is_not_json_is_refused),
        cmocka_unit_test(a_nul_byte_is_refused_everywhere),
        cmocka_unit_test(another_type_at_the_top_is_refused),
        cmocka_unit_test(the_message_says_what_and_where),
        cmocka_unit_test(members_have_a_limit),
        cmocka_unit_test(many_members_are_all_there),
        cmocka_unit_test(array_elements_are_exact_slices),
        cmocka_unit_test(deep_nesting_overflows_nothing),
        cmocka_unit_test(an_arena_that_is_full_is_reported),
        cmocka_unit_test(every_beginning_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
