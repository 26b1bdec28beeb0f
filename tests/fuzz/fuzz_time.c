/* Times, spans and amounts on any bytes: what is accepted is written and read as the same value. */
#include "base/money.h"
#include "base/time.h"
#include "fuzz.h"

static void check_time(struct bs_time t)
{
    BS_CLEANUP(bs_buf_free) struct bs_buf b = { .max = 64 };
    struct bs_time again;

    BS_ASSERT(t.us > 0);
    bs_time_write(&b, t);
    bs_rc rc = bs_time_parse(bs_buf_str(&b), &again, NULL);
    BS_ASSERT(rc == BS_OK && again.us == t.us);
}

static void check_span(struct bs_span d)
{
    BS_CLEANUP(bs_buf_free) struct bs_buf b = { .max = 64 };
    struct bs_span again;

    BS_ASSERT(d.us >= 0);
    bs_span_write(&b, d);
    bs_rc rc = bs_span_parse(bs_buf_str(&b), &again, NULL);
    BS_ASSERT(rc == BS_OK && again.us == d.us);
}

static void check_money(struct bs_money m)
{
    BS_CLEANUP(bs_buf_free) struct bs_buf b = { .max = 64 };
    struct bs_money again;

    BS_ASSERT(m.minor >= 0);
    bs_money_write(&b, m);
    struct bs_str code = bs_buf_str(&b);
    struct bs_str decimal = bs_str_cut(&code, ' ');
    bs_rc rc = bs_money_parse(decimal, code, &again, NULL);
    BS_ASSERT(rc == BS_OK && again.minor == m.minor);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    static const char *const currencies[] = { "CNY", "JPY", "KWD", "CLF" };
    struct bs_str s = { (const char *)data, n };
    struct bs_err err;
    struct bs_time t;
    struct bs_span d;
    struct bs_money m;

    if (bs_time_parse(s, &t, &err) == BS_OK)
        check_time(t);
    if (bs_time_parse_http(s, &t) == BS_OK)
        check_time(t);
    if (bs_span_parse(s, &d, &err) == BS_OK)
        check_span(d);
    for (size_t i = 0; i < BS_COUNT(currencies); i++) {
        if (bs_money_parse(s, bs_str_of(currencies[i]), &m, &err) == BS_OK)
            check_money(m);
    }
    return 0;
}
