/* Amounts: exact, bounded, by the currency's own digits. */
#include "base/money.h"
#include "check.h"

static bs_rc parse(const char *decimal, const char *currency, struct bs_money *ret)
{
    return bs_money_parse(bs_str_of(decimal), bs_str_of(currency), ret, NULL);
}

static void currencies_have_their_own_digits(void **state)
{
    (void)state;
    assert_int_equal(bs_currency_exponent(BS_STR("CNY")), 2);
    assert_int_equal(bs_currency_exponent(BS_STR("AED")), 2);
    assert_int_equal(bs_currency_exponent(BS_STR("ZWG")), 2);
    assert_int_equal(bs_currency_exponent(BS_STR("HUF")), 2);
    assert_int_equal(bs_currency_exponent(BS_STR("JPY")), 0);
    assert_int_equal(bs_currency_exponent(BS_STR("BIF")), 0);
    assert_int_equal(bs_currency_exponent(BS_STR("XPF")), 0);
    assert_int_equal(bs_currency_exponent(BS_STR("KWD")), 3);
    assert_int_equal(bs_currency_exponent(BS_STR("TND")), 3);
    assert_int_equal(bs_currency_exponent(BS_STR("CLF")), 4);
    assert_int_equal(bs_currency_exponent(BS_STR("UYW")), 4);
}

static void what_is_no_currency_is_not_listed(void **state)
{
    static const char *const none[] = { "",    "C",   "CN",  "CNYX", "cny", "XXX", "XAU", "XTS",
                                        "XDR", "ED ", "D A", "   ",  "RMB", "NYC", "DEM" };

    (void)state;
    for (size_t i = 0; i < BS_COUNT(none); i++)
        assert_int_equal(bs_currency_exponent(bs_str_of(none[i])), -1);
    assert_int_equal(bs_currency_exponent(BS_STR_NONE), -1);
    assert_int_equal(bs_currency_exponent(BS_STR("CN\0")), -1);
}

static void a_decimal_becomes_minor_units(void **state)
{
    static const struct {
        const char *decimal, *currency;
        int64_t minor;
    } good[] = {
        { "64.10", "CNY", 6410 },
        { "64.1", "CNY", 6410 },
        { "64", "CNY", 6400 },
        { "0", "CNY", 0 },
        { "0.00", "CNY", 0 },
        { "0.01", "CNY", 1 },
        { "007.5", "CNY", 750 },
        { "1500", "JPY", 1500 },
        { "1.234", "KWD", 1234 },
        { "1.2", "KWD", 1200 },
        { "1.2345", "CLF", 12345 },
        { "92233720368547758.07", "CNY", INT64_MAX },
        { "9223372036854775807", "JPY", INT64_MAX },
        { "000000000000000000000000000001.00", "CNY", 100 },
    };
    struct bs_money m;

    (void)state;
    for (size_t i = 0; i < BS_COUNT(good); i++) {
        assert_int_equal(parse(good[i].decimal, good[i].currency, &m), BS_OK);
        assert_int_equal(m.minor, good[i].minor);
        assert_string_equal(m.currency, good[i].currency);
    }
}

static void an_amount_that_is_not_exact_is_refused(void **state)
{
    static const char *const bad[] = { "",
                                       ".",
                                       "1.",
                                       ".5",
                                       "64.100",
                                       "64.101",
                                       "-1",
                                       "+1",
                                       " 1",
                                       "1 ",
                                       "1,000",
                                       "1e3",
                                       "0x10",
                                       "1.2.3",
                                       "1..2",
                                       "NaN",
                                       "1 000",
                                       "\xef\xbc\x91",
                                       "92233720368547758.08",
                                       "9223372036854775808",
                                       "99999999999999999999999999",
                                       "1.-1" };
    struct bs_money m = { 77, "USD" };

    (void)state;
    for (size_t i = 0; i < BS_COUNT(bad); i++)
        assert_int_equal(parse(bad[i], "CNY", &m), BS_E_INVALID);
    assert_int_equal(parse("1.0", "JPY", &m), BS_E_INVALID);
    assert_int_equal(parse("1", "XXX", &m), BS_E_INVALID);
    assert_int_equal(parse("1", "", &m), BS_E_INVALID);
    assert_int_equal(bs_money_parse(BS_STR("1\0"), BS_STR("CNY"), &m, NULL), BS_E_INVALID);
    assert_int_equal(m.minor, 77);
    assert_string_equal(m.currency, "USD");
}

static void an_amount_is_written_for_people(void **state)
{
    BS_CLEANUP(bs_buf_free) struct bs_buf b = { .max = 100 };

    (void)state;
    bs_money_write(&b, (struct bs_money){ 6410, "CNY" });
    assert_buf(&b, "64.10 CNY");
    bs_money_write(&b, (struct bs_money){ 0, "CNY" });
    assert_buf(&b, "0.00 CNY");
    bs_money_write(&b, (struct bs_money){ 5, "CNY" });
    assert_buf(&b, "0.05 CNY");
    bs_money_write(&b, (struct bs_money){ -5, "CNY" });
    assert_buf(&b, "-0.05 CNY");
    bs_money_write(&b, (struct bs_money){ 0, "JPY" });
    assert_buf(&b, "0 JPY");
    bs_money_write(&b, (struct bs_money){ 100, "JPY" });
    assert_buf(&b, "100 JPY");
    bs_money_write(&b, (struct bs_money){ 1, "KWD" });
    assert_buf(&b, "0.001 KWD");
    bs_money_write(&b, (struct bs_money){ INT64_MIN, "CLF" });
    assert_buf(&b, "-922337203685477.5808 CLF");
    bs_money_write(&b, (struct bs_money){ 12, "" });
    assert_buf(&b, "12");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(currencies_have_their_own_digits),
        cmocka_unit_test(what_is_no_currency_is_not_listed),
        cmocka_unit_test(a_decimal_becomes_minor_units),
        cmocka_unit_test(an_amount_that_is_not_exact_is_refused),
        cmocka_unit_test(an_amount_is_written_for_people),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
