/* Slices, buffers, arenas, error messages. */
#include "base/arena.h"
#include "base/text.h"
#include "check.h"

static void slices_compare_by_bytes(void **state)
{
    (void)state;
    assert_true(bs_str_eq(BS_STR_NONE, BS_STR("")));
    assert_true(bs_str_is(BS_STR("ab"), "ab"));
    assert_false(bs_str_is(BS_STR("ab\0"), "ab"));
    assert_true(bs_str_cmp(BS_STR("a"), BS_STR("ab")) < 0);
    assert_true(bs_str_cmp(BS_STR("b"), BS_STR("ab")) > 0);
    assert_true(bs_str_cmp(BS_STR("\x80"), BS_STR("z")) > 0);
    assert_int_equal(bs_str_cmp(BS_STR_NONE, BS_STR("")), 0);
    assert_true(bs_str_starts(BS_STR("abc"), BS_STR("ab")));
    assert_true(bs_str_starts(BS_STR("abc"), BS_STR_NONE));
    assert_false(bs_str_starts(BS_STR("a"), BS_STR("ab")));
    assert_true(bs_str_eq_nocase(BS_STR("Content-TYPE"), BS_STR("content-type")));
    assert_false(bs_str_eq_nocase(BS_STR("[a"), BS_STR("{a")));
    assert_false(bs_str_eq_nocase(BS_STR("a"), BS_STR("ab")));
}

static void slices_are_trimmed_and_cut(void **state)
{
    struct bs_str rest = BS_STR("a,,b");

    (void)state;
    assert_str(bs_str_trim(BS_STR(" \t\r\n a b \n")), "a b");
    assert_str(bs_str_trim(BS_STR(" \n")), "");
    assert_str(bs_str_cut(&rest, ','), "a");
    assert_str(bs_str_cut(&rest, ','), "");
    assert_non_null(rest.p);
    assert_str(bs_str_cut(&rest, ','), "b");
    assert_null(rest.p);
    assert_str(bs_str_cut(&rest, ','), "");
    rest = BS_STR("a,");
    assert_str(bs_str_cut(&rest, ','), "a");
    assert_non_null(rest.p);
    assert_int_equal(rest.n, 0);
}

static void a_buffer_holds_its_maximum_and_not_a_byte_more(void **state)
{
    BS_CLEANUP(bs_buf_free) struct bs_buf b = { .max = 5 };
    struct bs_err err;

    (void)state;
    assert_str(bs_buf_str(&b), "");
    assert_string_equal(bs_buf_str(&b).p, "");
    bs_buf_addz(&b, "12345");
    assert_int_equal(bs_buf_done(&b, &err), BS_OK);
    bs_buf_add(&b, BS_STR_NONE);
    assert_int_equal(bs_buf_done(&b, &err), BS_OK);
    bs_buf_addc(&b, '6');
    assert_int_equal(bs_buf_done(&b, &err), BS_E_LIMIT);
    assert_str(bs_buf_str(&b), "12345");
    bs_buf_reset(&b);
    assert_int_equal(bs_buf_done(&b, &err), BS_OK);
    assert_str(bs_buf_str(&b), "");
}

static void a_failed_buffer_stays_failed_until_reset(void **state)
{
    BS_CLEANUP(bs_buf_free) struct bs_buf b = { .max = 5 };

    (void)state;
    bs_buf_addz(&b, "123456");
    assert_true(b.failed);
    bs_buf_addz(&b, "1");
    assert_true(b.failed);
    assert_str(bs_buf_str(&b), "");
    bs_buf_reset(&b);
    bs_buf_addz(&b, "1");
    assert_buf(&b, "1");
}

/* Sanitizers end a program that asks for too much; here that is the test. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
    return "allocator_may_return_null=1";
}

const char *__tsan_default_options(void);
const char *__tsan_default_options(void)
{
    return "allocator_may_return_null=1";
}

static void a_buffer_says_which_of_the_two_it_lacked(void **state)
{
    BS_CLEANUP(bs_buf_free) struct bs_buf b = { .max = SIZE_MAX / 4 };

    (void)state;
    bs_buf_addz(&b, "ok");
    bs_buf_add(&b, (struct bs_str){ "never read", SIZE_MAX / 8 });
    assert_int_equal(bs_buf_done(&b, NULL), BS_E_NOMEM);
    assert_str(bs_buf_str(&b), "ok");
    bs_buf_reset(&b);
    assert_int_equal(bs_buf_done(&b, NULL), BS_OK);
    bs_buf_add(&b, (struct bs_str){ "never read", SIZE_MAX / 2 });
    assert_int_equal(bs_buf_done(&b, NULL), BS_E_LIMIT);
}

static void a_buffer_writes_every_integer(void **state)
{
    BS_CLEANUP(bs_buf_free) struct bs_buf b = { .max = 100 };

    (void)state;
    bs_buf_add_i64(&b, 0);
    assert_buf(&b, "0");
    bs_buf_add_i64(&b, -10);
    assert_buf(&b, "-10");
    bs_buf_add_i64(&b, INT64_MAX);
    assert_buf(&b, "9223372036854775807");
    bs_buf_add_i64(&b, INT64_MIN);
    assert_buf(&b, "-9223372036854775808");
    bs_buf_fmt(&b, "%s-%d", "x", 3);
    assert_buf(&b, "x-3");
}

static void a_buffer_grows_over_many_steps(void **state)
{
    BS_CLEANUP(bs_buf_free) struct bs_buf b = { .max = 100000 };

    (void)state;
    for (int i = 0; i < 100000; i++)
        bs_buf_addc(&b, (char)('a' + i % 26));
    assert_false(b.failed);
    for (int i = 0; i < 100000; i++)
        assert_int_equal(b.p[i], 'a' + i % 26);
    assert_int_equal(b.p[100000], 0);
    bs_buf_addc(&b, 'x');
    assert_true(b.failed);
}

static void arena_memory_is_zeroed_and_aligned(void **state)
{
    BS_CLEANUP(bs_arena_free) struct bs_arena a = { 0 };

    (void)state;
    for (size_t size = 0; size < 5000; size += 7) {
        unsigned char *p = bs_arena_alloc(&a, size);

        assert_non_null(p);
        assert_int_equal((uintptr_t)p % 16, 0);
        for (size_t i = 0; i < size; i++)
            assert_int_equal(p[i], 0);
        memset(p, 0xff, size);
    }
}

static void an_arena_past_its_maximum_says_so_for_good(void **state)
{
    BS_CLEANUP(bs_arena_free) struct bs_arena a = { .max = 64 };

    (void)state;
    assert_non_null(bs_arena_alloc(&a, 48));
    assert_false(a.failed);
    assert_null(bs_arena_alloc(&a, 17));
    assert_true(a.failed);
    assert_non_null(bs_arena_alloc(&a, 16));
    assert_true(a.failed);
    assert_null(bs_arena_alloc(&a, SIZE_MAX));
    assert_null(bs_arena_str(&a, BS_STR("x")).p);
    bs_arena_free(&a);
    assert_false(a.failed);
    assert_non_null(bs_arena_alloc(&a, 64));
    assert_null(bs_arena_alloc(&a, 1));
}

static void arena_text_is_a_terminated_copy(void **state)
{
    BS_CLEANUP(bs_arena_free) struct bs_arena a = { 0 };
    struct bs_str s = bs_arena_str(&a, BS_STR("a\0b"));

    (void)state;
    assert_str(s, "a\0b");
    assert_int_equal(s.p[3], 0);
    s = bs_arena_str(&a, BS_STR_NONE);
    assert_non_null(s.p);
    assert_int_equal(s.n, 0);
    assert_str(bs_arena_fmt(&a, "%d %s", 7, "x"), "7 x");
}

static void a_failure_is_one_statement(void **state)
{
    struct bs_err err;
    char long_text[400];

    (void)state;
    assert_int_equal(bs_fail(&err, BS_E_BUSY, "again %d", 3), BS_E_BUSY);
    assert_int_equal(err.rc, BS_E_BUSY);
    assert_int_equal(err.sys, 0);
    assert_string_equal(err.msg, "again 3");
    assert_int_equal(bs_fail(NULL, BS_E_STALE, "nobody reads this"), BS_E_STALE);
    for (size_t i = 0; i < 399; i++)
        long_text[i] = "\xe7\x95\x8c"[i % 3];
    long_text[399] = '\0';
    for (size_t shift = 0; shift < 3; shift++) {
        assert_int_equal(bs_fail(&err, BS_E_INVALID, "%.*s%s", (int)shift, "ab", long_text),
                         BS_E_INVALID);
        assert_true(bs_utf8_valid(bs_str_of(err.msg)));
        assert_true(strlen(err.msg) >= 253);
    }
}

static void every_code_has_a_name(void **state)
{
    (void)state;
    for (bs_rc rc = BS_OK; rc < BS_RC_COUNT; rc++)
        assert_non_null(bs_rc_name(rc));
    assert_string_equal(bs_rc_name(BS_E_UNAVAILABLE), "UNAVAILABLE");
    assert_string_equal(bs_rc_name(BS_OK), "OK");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(slices_compare_by_bytes),
        cmocka_unit_test(slices_are_trimmed_and_cut),
        cmocka_unit_test(a_buffer_holds_its_maximum_and_not_a_byte_more),
        cmocka_unit_test(a_failed_buffer_stays_failed_until_reset),
        cmocka_unit_test(a_buffer_says_which_of_the_two_it_lacked),
        cmocka_unit_test(a_buffer_writes_every_integer),
        cmocka_unit_test(a_buffer_grows_over_many_steps),
        cmocka_unit_test(arena_memory_is_zeroed_and_aligned),
        cmocka_unit_test(an_arena_past_its_maximum_says_so_for_good),
        cmocka_unit_test(arena_text_is_a_terminated_copy),
        cmocka_unit_test(a_failure_is_one_statement),
        cmocka_unit_test(every_code_has_a_name),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
