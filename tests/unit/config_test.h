/* What the tests of the configuration share. */
#pragma once

#include "app/config.h"

#include "check.h"

#define QUEUE                                                                                      \
    "queues:\n"                                                                                    \
    "  PAY:\n"                                                                                     \
    "    handler: http://127.0.0.1:9000/pay\n"                                                     \
    "    secret: none\n"                                                                           \
    "    order_check: none\n"

#define LOOK_QUEUE                                                                                 \
    "queues:\n"                                                                                    \
    "  PAY:\n"                                                                                     \
    "    handler: http://127.0.0.1:9000/pay\n"                                                     \
    "    secret: none\n"                                                                           \
    "    order_check: { url: 'http://127.0.0.1:9000/orders/{order_no}' }\n"

#define DAY ((int64_t)86400 * 1000000)

static inline struct bs_config *read_good(const char *text)
{
    BS_CLEANUP(bs_buf_free) struct bs_buf report = { .max = 64 << 10 };
    struct bs_config *c = NULL;

    if (bs_config_read("f", bs_str_of(text), BS_CONFIG_WHOLE, &c, &report) != BS_OK)
        fail_msg("refused: %s", bs_buf_str(&report).p);
    assert_int_equal(report.len, 0);
    return c;
}

static inline void check_fault(const char *text, const char *wanted)
{
    BS_CLEANUP(bs_buf_free) struct bs_buf report = { .max = 64 << 10 };
    struct bs_config *c = NULL;
    bs_rc rc = bs_config_read("f", bs_str_of(text), BS_CONFIG_WHOLE, &c, &report);

    if (rc == BS_OK)
        bs_config_free(c);
    if (rc != BS_E_INVALID || !bs_str_is(bs_buf_str(&report), wanted))
        fail_msg("%s\ngave:\n%s\nwanted:\n%s", text, bs_buf_str(&report).p, wanted);
}
