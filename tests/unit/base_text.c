/* Text from outside: UTF-8, cleaning, masking, numbers, base64. */
#include "base/text.h"
#include "check.h"

#define MARK "\xe2\x80\xa6"

static void only_rfc_3629_is_utf8(void **state)
{
    static const char *const good[] = { "",
                                        "a",
                                        "\x7f",
                                        "\xc2\x80",
                                        "\xdf\xbf",
                                        "\xe0\xa0\x80",
                                        "\xed\x9f\xbf",
                                        "\xee\x80\x80",
                                        "\xef\xbf\xbf",
                                        "\xf0\x90\x80\x80",
                                        "\xf4\x8f\xbf\xbf",
                                        "12345678\xe7\x95\x8czyxwvuts" };
    static const char *const bad[] = { "\x80",
                                       "\xbf",
                                       "\xc0\x80",
                                       "\xc1\xbf",
                                       "\xc2",
                                       "\xc2z",
                                       "\xe0\x9f\xbf",
                                       "\xe0\xa0",
                                       "\xed\xa0\x80",
                                       "\xed\xbf\xbf",
                                       "\xe7\x95z",
                                       "\xf0\x8f\xbf\xbf",
                                       "\xf0\x9f\x98",
                                       "\xf4\x90\x80\x80",
                                       "\xf5\x80\x80\x80",
                                       "\xf8\x88\x80\x80\x80",
                                       "\xfe",
                                       "\xff",
                                       "12345678\x80zyxwvut",
                                       "1234567\xe7\x95" };

    (void)state;
    for (size_t i = 0; i < BS_COUNT(good); i++)
        assert_true(bs_utf8_valid(bs_str_of(good[i])));
    for (size_t i = 0; i < BS_COUNT(bad); i++)
        assert_false(bs_utf8_valid(bs_str_of(bad[i])));
    assert_true(bs_utf8_valid(BS_STR_NONE));
    assert_true(bs_utf8_valid(BS_STR("a\0b")));
    assert_int_equal(bs_utf8_char(BS_STR("\xf0\x9f\x98\x80x")), 4);
    assert_int_equal(bs_utf8_char(BS_STR("\xf0\x9f\x98")), 0);
    assert_int_equal(bs_utf8_char(BS_STR_NONE), 0);
}

static void every_code_point_is_valid_but_surrogates(void **state)
{
    (void)state;
    for (uint32_t c = 0x800; c < 0x110000; c++) {
        unsigned char p[4];
        size_t n = c < 0x10000 ? 3 : 4;

        p[0] = (unsigned char)(n == 3 ? 0xe0 | c >> 12 : 0xf0 | c >> 18);
        p[n - 3] = (unsigned char)(n == 3 ? p[0] : 0x80 | (c >> 12 & 63));
        p[n - 2] = (unsigned char)(0x80 | (c >> 6 & 63));
        p[n - 1] = (unsigned char)(0x80 | (c & 63));
        assert_int_equal(bs_utf8_valid((struct bs_str){ (char *)p, n }), c < 0xd800 || c > 0xdfff);
    }
}

static void plain_text_has_no_controls(void **state)
{
    (void)state;
    assert_true(bs_text_plain(BS_STR("")));
    assert_true(bs_text_plain(BS_STR("a ~\xc2\xa0\xe7\x95\x8c\xf0\x9f\x98\x80")));
    assert_false(bs_text_plain(BS_STR("a\tb")));
    assert_false(bs_text_plain(BS_STR("a\n")));
    assert_false(bs_text_plain(BS_STR("\0")));
    assert_false(bs_text_plain(BS_STR("\x1f")));
    assert_false(bs_text_plain(BS_STR("\x7f")));
    assert_false(bs_text_plain(BS_STR("\xc2\x80")));
    assert_false(bs_text_plain(BS_STR("x\xc2\x9fx")));
    assert_true(bs_text_plain(BS_STR("\xe2\x82\xac"))); /* bytes 82 and ac are no controls here */
}

static void a_cut_never_splits_a_character(void **state)
{
    static const char text[] = "a\xc3\xa9\xe7\x95\x8c\xf0\x9f\x98\x80z";
    static const size_t wanted[] = { 0, 1, 1, 3, 3, 3, 6, 6, 6, 6, 10, 11, 11 };
    char long_text[514];

    (void)state;
    for (size_t max = 0; max < BS_COUNT(wanted); max++)
        assert_int_equal(bs_utf8_cut(bs_str_of(text), max).n, wanted[max]);
    memset(long_text, 'x', 511);
    memcpy(long_text + 511, "\xe7\x95\x8c", 3);
    assert_int_equal(bs_utf8_cut((struct bs_str){ long_text, 514 }, 512).n, 511);
    assert_int_equal(bs_utf8_cut((struct bs_str){ long_text, 514 }, 513).n, 511);
    assert_int_equal(bs_utf8_cut((struct bs_str){ long_text, 514 }, 514).n, 514);
    assert_int_equal(bs_utf8_cut(BS_STR_NONE, 5).n, 0);
    assert_int_equal(bs_utf8_cut(BS_STR("\x80\x80\x80\x80\x80"), 4).n, 4);
}

static void any_bytes_become_text(void **state)
{
    BS_CLEANUP(bs_arena_free) struct bs_arena a = { 0 };

    (void)state;
    assert_str(bs_text_clean(&a, BS_STR(""), 10), "");
    assert_str(bs_text_clean(&a, BS_STR_NONE, 10), "");
    assert_str(bs_text_clean(&a, BS_STR("plain \xe7\x95\x8c"), 20), "plain \xe7\x95\x8c");
    assert_str(bs_text_clean(&a, BS_STR("tab\tline\n"), 20), "tab\tline\n");
    assert_str(bs_text_clean(&a, BS_STR("a\0b\r\x7f"), 20), "a\\x00b\\x0D\\x7F");
    assert_str(bs_text_clean(&a, BS_STR("\xc2\x85"), 20), "\\xC2\\x85");
    assert_str(bs_text_clean(&a, BS_STR("\xff\xe7\x95"), 20), "\\xFF\\xE7\\x95");
    assert_str(bs_text_clean(&a, BS_STR("\xd6\xd0\xb9\xfa"), 20), "\\xD6й\\xFA");
    assert_str(bs_text_clean(&a, BS_STR("\xed\xa0\xbd"), 20), "\\xED\\xA0\\xBD");
}

static void a_cut_is_marked_within_the_maximum(void **state)
{
    BS_CLEANUP(bs_arena_free) struct bs_arena a = { 0 };

    (void)state;
    assert_str(bs_text_clean(&a, BS_STR("abcdef"), 6), "abcdef");
    assert_str(bs_text_clean(&a, BS_STR("abcdefg"), 6), "abc" MARK);
    assert_str(bs_text_clean(&a, BS_STR("ab\xe7\x95\x8c\xe7\x95\x8c"), 7), "ab" MARK);
    assert_str(bs_text_clean(&a, BS_STR("abcd\xff"), 8), "abcd\\xFF");
    assert_str(bs_text_clean(&a, BS_STR("abcd\xffz"), 8), "abcd" MARK);
    assert_str(bs_text_clean(&a, BS_STR("abcd"), 3), MARK);
    assert_str(bs_text_clean(&a, BS_STR("abcd"), 2), "ab");
    assert_str(bs_text_clean(&a, BS_STR("\xe7\x95\x8c"), 2), "");
    assert_str(bs_text_clean(&a, BS_STR("abcd"), 0), "");
}

static void a_long_answer_is_cut_at_a_character(void **state)
{
    BS_CLEANUP(bs_arena_free) struct bs_arena a = { .max = 4096 };
    char text[600];
    struct bs_str got;

    (void)state;
    memset(text, 'x', sizeof(text));
    memcpy(text + 511, "\xe7\x95\x8c", 3);
    got = bs_text_clean(&a, (struct bs_str){ text, 514 }, 512);
    assert_int_equal(got.n, 512);
    assert_memory_equal(got.p, text, 509);
    assert_memory_equal(got.p + 509, MARK, 3);
    memset(text, 'x', sizeof(text));
    memcpy(text + 510, "\xf0\x9f", 2);
    got = bs_text_clean(&a, (struct bs_str){ text, 512 }, 512);
    assert_int_equal(got.n, 512);
    assert_memory_equal(got.p + 509, MARK, 3);
    got = bs_text_clean(&a, (struct bs_str){ text, 512 }, 518);
    assert_int_equal(got.n, 518);
    assert_memory_equal(got.p + 510, "\\xF0\\x9F", 8);
}

static void ten_megabytes_are_cleaned_in_a_small_arena(void **state)
{
    BS_CLEANUP(bs_arena_free) struct bs_arena a = { .max = 2048 };
    size_t n = 10 << 20;
    char *big = malloc(n);

    (void)state;
    assert_non_null(big);
    memset(big, 0xff, n);
    struct bs_str got = bs_text_clean(&a, (struct bs_str){ big, n }, 1000);
    assert_int_equal(got.n, 249 * 4 + 3);
    assert_true(bs_utf8_valid(got));
    free(big);
}

static void random_bytes_become_valid_text_within_the_maximum(void **state)
{
    uint64_t seed = 20261130;
    char raw[64];

    (void)state;
    for (int round = 0; round < 20000; round++) {
        BS_CLEANUP(bs_arena_free) struct bs_arena a = { 0 };
        static const char pieces[] = "a\xe7\x95\x8c\xf0\x9f\x98\x80\xc2\x85\n\0\x7f\xff";

        for (size_t i = 0; i < sizeof(raw); i++) {
            seed = seed * 6364136223846793005u + 1442695040888963407u;
            raw[i] = pieces[(seed >> 33) % (sizeof(pieces) - 1)];
        }
        size_t n = (seed >> 40) % sizeof(raw);
        size_t max = (seed >> 50) % 80;
        struct bs_str got = bs_text_clean(&a, (struct bs_str){ raw, n }, max);
        assert_non_null(got.p);
        assert_true(got.n <= max);
        assert_true(bs_utf8_valid(got));
        assert_null(memchr(got.p, '\0', got.n));
    }
}

static void a_number_is_digits_and_nothing_else(void **state)
{
    static const char *const bad[] = {
        "",
        "-",
        "+1",
        " 1",
        "1 ",
        "1.0",
        "1e3",
        "0x1",
        "--1",
        "1-",
        "\xd9\xa1",
        "9223372036854775808",
        "-9223372036854775809",
        "99999999999999999999999",
    };
    int64_t v = 77;

    (void)state;
    for (size_t i = 0; i < BS_COUNT(bad); i++)
        assert_false(bs_i64_parse(bs_str_of(bad[i]), &v));
    assert_false(bs_i64_parse(BS_STR("1\0"), &v));
    assert_false(bs_i64_parse(BS_STR_NONE, &v));
    assert_int_equal(v, 77);
    assert_true(bs_i64_parse(BS_STR("0"), &v));
    assert_int_equal(v, 0);
    assert_true(bs_i64_parse(BS_STR("-0"), &v));
    assert_int_equal(v, 0);
    assert_true(bs_i64_parse(BS_STR("007"), &v));
    assert_int_equal(v, 7);
    assert_true(bs_i64_parse(BS_STR("9223372036854775807"), &v));
    assert_int_equal(v, INT64_MAX);
    assert_true(bs_i64_parse(BS_STR("-9223372036854775808"), &v));
    assert_int_equal(v, INT64_MIN);
}

static void assert_masked(const char *text, const char *wanted)
{
    BS_CLEANUP(bs_buf_free) struct bs_buf b = { .max = 1000 };

    bs_text_mask(&b, bs_str_of(text));
    assert_string_equal(bs_buf_str(&b).p, wanted);
}

static void card_numbers_are_hidden(void **state)
{
    (void)state;
    assert_masked("4111111111111111", "411111******1111");
    assert_masked("card 4111111111111111.", "card 411111******1111.");
    assert_masked("4111 1111 1111 1111", "4111 11** **** 1111");
    assert_masked("4111-1111-1111-1111", "4111-11**-****-1111");
    assert_masked("4111.1111.1111.1111", "4111.11**.****.1111");
    assert_masked("paid with 3782.822463.10005.", "paid with 3782.82****.*0005.");
    assert_masked("x4111111111111111y", "x411111******1111y");
    assert_masked("6222020000000000000", "622202*********0000");
    assert_masked("378282246310005", "378282*****0005");
    assert_masked("000000000000", "000000**0000");
    assert_masked("4111111111111111,5500000000000004", "411111******1111,550000******0004");
    assert_masked("7 4111 1111 1111 1111 9", "7 4111 11** **** 1111 9");
}

static void other_numbers_are_left_alone(void **state)
{
    static const char *const same[] = {
        "",
        "4111111111111112",
        "41111111111",
        "79927398713",
        "41111111111111111111111111111111",
        "4111  1111 1111 1111",
        "4111.1111.1111.1112",
        "4111..1111.1111.1111",
        "41111.11111.111111",
        "1796054627.000003",
        "192.168.100.205",
        "bst_",
        "bst_f05848f0681dcc5",
        "bst-f05848f0681dcc50f4414542683d5e57",
        "bst_f05848f0-681dcc50f4414542683d5e57",
        "2026-11-30T16:03:47.000000Z",
        "10000000000",
        "12345678901",
        "23812345678",
        "1381234567",
        "138123456789",
        "\xe7\x95\x8c 42",
    };

    (void)state;
    for (size_t i = 0; i < BS_COUNT(same); i++)
        assert_masked(same[i], same[i]);
}

static void telephone_numbers_are_hidden(void **state)
{
    (void)state;
    assert_masked("13812345678", "138*****678");
    assert_masked("tel:19912345678;", "tel:199*****678;");
    assert_masked("138 1234 5678", "138 **** *678");
    assert_masked("+86 13812345678", "+86 138*****678");
    assert_masked("+86-137-1234-5678", "+86-137-****-*678");
    assert_masked("13812345678 13912345678", "138*****678 139*****678");
}

#define TOKEN "bst_f05848f0681dcc50f4414542683d5e570367ef0d21c64478e8fa996b697b146b"

static void own_tokens_are_hidden_whole_or_cut(void **state)
{
    (void)state;
    assert_masked(TOKEN, "bst_***");
    assert_masked("/v1/tokens/" TOKEN "/revoke", "/v1/tokens/bst_***/revoke");
    assert_masked("gave " TOKEN ", not \"" TOKEN "\"", "gave bst_***, not \"bst_***\"");
    assert_masked("bst_f05848f0681dcc50", "bst_***");
    assert_masked("bst_F05848F0681DCC50f4414542", "bst_***");
    assert_masked("xbst_bst_f05848f0681dcc50f4", "xbst_bst_***");
    assert_masked("4111111111111111" TOKEN "13812345678", "411111******1111bst_***");
    assert_masked(TOKEN " 13812345678", "bst_*** 138*****678");
}

static void the_distance_counts_edits(void **state)
{
    char longer[65];

    (void)state;
    assert_int_equal(bs_text_distance(BS_STR(""), BS_STR("")), 0);
    assert_int_equal(bs_text_distance(BS_STR("abc"), BS_STR("")), 3);
    assert_int_equal(bs_text_distance(BS_STR(""), BS_STR("abc")), 3);
    assert_int_equal(bs_text_distance(BS_STR("kitten"), BS_STR("sitting")), 3);
    assert_int_equal(bs_text_distance(BS_STR("max_retry"), BS_STR("max_rtery")), 2);
    memset(longer, 'a', sizeof(longer));
    assert_int_equal(bs_text_distance((struct bs_str){ longer, 64 }, BS_STR("a")), 63);
    assert_int_equal(bs_text_distance((struct bs_str){ longer, 65 }, BS_STR("a")), 64);
    assert_int_equal(bs_text_distance(BS_STR("a"), (struct bs_str){ longer, 65 }), 64);
}

static void base64_knows_the_vectors_of_rfc_4648(void **state)
{
    static const char *const pairs[][2] = {
        { "", "" },
        { "f", "Zg==" },
        { "fo", "Zm8=" },
        { "foo", "Zm9v" },
        { "foob", "Zm9vYg==" },
        { "fooba", "Zm9vYmE=" },
        { "foobar", "Zm9vYmFy" },
    };
    BS_CLEANUP(bs_arena_free) struct bs_arena a = { 0 };
    BS_CLEANUP(bs_buf_free) struct bs_buf b = { .max = 1000 };
    struct bs_str got;

    (void)state;
    for (size_t i = 0; i < BS_COUNT(pairs); i++) {
        bs_buf_reset(&b);
        bs_base64_write(&b, bs_str_of(pairs[i][0]));
        assert_slice(bs_buf_str(&b), bs_str_of(pairs[i][1]));
        assert_int_equal(bs_base64_read(&a, bs_str_of(pairs[i][1]), &got, NULL), BS_OK);
        assert_slice(got, bs_str_of(pairs[i][0]));
        assert_non_null(got.p);
    }
    bs_buf_reset(&b);
    bs_base64_write(&b, BS_STR("\xfb\xff\xfe\0"));
    assert_buf(&b, "+//+AA==");
    assert_int_equal(bs_base64_read(&a, BS_STR("+//+AA=="), &got, NULL), BS_OK);
    assert_str(got, "\xfb\xff\xfe\0");
}

static void base64_is_strict(void **state)
{
    static const char *const bad[] = {
        "Z",    "Zg",   "Zg=",      "Zg==Zg==", "Zm8",    "Zh==",         "Zm9=",
        "=",    "====", "Z===",     "Zg= =",    "Zm9v\n", "Zm9v\r\n\r\n", " Zm9v",
        "Zm-v", "Zm_v", "Zm9v====", "Z=g=",     "=m9v",   "Zm9\x80"
    };
    BS_CLEANUP(bs_arena_free) struct bs_arena a = { 0 };
    struct bs_str got = BS_STR("same");

    (void)state;
    for (size_t i = 0; i < BS_COUNT(bad); i++)
        assert_int_equal(bs_base64_read(&a, bs_str_of(bad[i]), &got, NULL), BS_E_INVALID);
    assert_int_equal(bs_base64_read(&a, BS_STR("Zm9\0"), &got, NULL), BS_E_INVALID);
    assert_str(got, "same");
}

static void base64_reports_that_memory_ran_out(void **state)
{
    BS_CLEANUP(bs_arena_free) struct bs_arena a = { .max = 16 };
    struct bs_str got;

    (void)state;
    assert_int_equal(bs_base64_read(&a, BS_STR("Zm9vYmFyZm9vYmFyZm9vYmFy"), &got, NULL),
                     BS_E_NOMEM);
}

static void hex_is_lower_case(void **state)
{
    BS_CLEANUP(bs_buf_free) struct bs_buf b = { .max = 1000 };

    (void)state;
    bs_hex_write(&b, BS_STR("\0\x0f\xa5\xff"));
    assert_buf(&b, "000fa5ff");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_rfc_3629_is_utf8),
        cmocka_unit_test(every_code_point_is_valid_but_surrogates),
        cmocka_unit_test(plain_text_has_no_controls),
        cmocka_unit_test(a_cut_never_splits_a_character),
        cmocka_unit_test(any_bytes_become_text),
        cmocka_unit_test(a_cut_is_marked_within_the_maximum),
        cmocka_unit_test(a_long_answer_is_cut_at_a_character),
        cmocka_unit_test(ten_megabytes_are_cleaned_in_a_small_arena),
        cmocka_unit_test(random_bytes_become_valid_text_within_the_maximum),
        cmocka_unit_test(a_number_is_digits_and_nothing_else),
        cmocka_unit_test(card_numbers_are_hidden),
        cmocka_unit_test(other_numbers_are_left_alone),
        cmocka_unit_test(telephone_numbers_are_hidden),
        cmocka_unit_test(own_tokens_are_hidden_whole_or_cut),
        cmocka_unit_test(the_distance_counts_edits),
        cmocka_unit_test(base64_knows_the_vectors_of_rfc_4648),
        cmocka_unit_test(base64_is_strict),
        cmocka_unit_test(base64_reports_that_memory_ran_out),
        cmocka_unit_test(hex_is_lower_case),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
