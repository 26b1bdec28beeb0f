/* Amounts in minor units, by the active currencies of ISO 4217. */
#include "base/money.h"

/* Currencies by their number of minor digits, each list in byte order. Units without minor digits
 * of their own (metals, bond units, XDR, XTS, "no currency") are not listed. ANG and BGN left the
 * active list in 2025 and 2026; refunds of older payments still carry them. */
static const char *const exponent_0 = "BIF CLP DJF GNF ISK JPY KMF KRW PYG RWF UGX UYI VND VUV XAF "
                                      "XOF XPF ";
static const char *const exponent_3 = "BHD IQD JOD KWD LYD OMR TND ";
static const char *const exponent_4 = "CLF UYW ";
static const char *const exponent_2 =
    "AED AFN ALL AMD ANG AOA ARS AUD AWG AZN BAM BBD BDT BGN BMD BND BOB BOV BRL BSD BTN BWP BYN "
    "BZD CAD CDF CHE CHF CHW CNY COP COU CRC CUP CVE CZK DKK DOP DZD EGP ERN ETB EUR FJD FKP GBP "
    "GEL GHS GIP GMD GTQ GYD HKD HNL HTG HUF IDR ILS INR IRR JMD KES KGS KHR KPW KYD KZT LAK LBP "
    "LKR LRD LSL MAD MDL MGA MKD MMK MNT MOP MRU MUR MVR MWK MXN MXV MYR MZN NAD NGN NIO NOK NPR "
    "NZD PAB PEN PGK PHP PKR PLN QAR RON RSD RUB SAR SBD SCR SDG SEK SGD SHP SLE SOS SRD SSP STN "
    "SVC SYP SZL THB TJS TMT TOP TRY TTD TWD TZS UAH USD USN UYU UZS VED VES WST XAD XCD XCG YER "
    "ZAR ZMW ZWG ";

static bool listed(const char *list, struct bs_str code)
{
    for (const char *p = list; *p; p += 4) {
        if (memcmp(p, code.p, 3) == 0)
            return true;
    }
    return false;
}

int bs_currency_exponent(struct bs_str code)
{
    if (code.n != 3)
        return -1;
    if (listed(exponent_2, code))
        return 2;
    if (listed(exponent_0, code))
        return 0;
    if (listed(exponent_3, code))
        return 3;
    return listed(exponent_4, code) ? 4 : -1;
}

static bool add_digits(struct bs_str digits, int64_t *value)
{
    for (size_t i = 0; i < digits.n; i++) {
        if (digits.p[i] < '0' || digits.p[i] > '9')
            return false;
        if (__builtin_mul_overflow(*value, 10, value) ||
            __builtin_add_overflow(*value, digits.p[i] - '0', value))
            return false;
    }
    return true;
}

static bool parse_decimal(struct bs_str decimal, size_t exponent, int64_t *ret)
{
    struct bs_str minor = decimal;
    struct bs_str whole = bs_str_cut(&minor, '.');
    int64_t value = 0;
    bool has_point = minor.p != NULL;

    if (whole.n == 0 || minor.n > exponent || (has_point && minor.n == 0))
        return false;
    if (!add_digits(whole, &value) || (has_point && !add_digits(minor, &value)) ||
        !add_digits((struct bs_str){ "0000", exponent - minor.n }, &value))
        return false;
    *ret = value;
    return true;
}

bs_rc bs_money_parse(struct bs_str decimal, struct bs_str currency, struct bs_money *ret,
                     struct bs_err *err)
{
    int exponent = bs_currency_exponent(currency);
    struct bs_money m = { 0 };

    if (exponent < 0)
        return bs_fail(err, BS_E_INVALID, "the currency is not one of ISO 4217");
    if (!parse_decimal(decimal, (size_t)exponent, &m.minor))
        return bs_fail(err, BS_E_INVALID,
                       "not an amount of %.3s: digits with at most %d after the point", currency.p,
                       exponent);
    memcpy(m.currency, currency.p, 3);
    *ret = m;
    return BS_OK;
}

void bs_money_write(struct bs_buf *b, struct bs_money m)
{
    struct bs_str code = bs_str_of(m.currency);
    int exponent = BS_MAX(bs_currency_exponent(code), 0);
    uint64_t rest = m.minor < 0 ? 0 - (uint64_t)m.minor : (uint64_t)m.minor;
    char text[32];
    char *p = text + sizeof(text);

    for (int digits = 0; rest > 0 || digits <= exponent; digits++) {
        if (digits == exponent && exponent > 0)
            *--p = '.';
        *--p = (char)('0' + rest % 10);
        rest /= 10;
    }
    if (m.minor < 0)
        *--p = '-';
    bs_buf_add(b, (struct bs_str){ p, (size_t)(text + sizeof(text) - p) });
    if (code.n > 0) {
        bs_buf_addc(b, ' ');
        bs_buf_add(b, code);
    }
}
