/* Amounts: an integer of minor units and an ISO 4217 currency. Never floating point. Pure. */
#pragma once

#include "base/base.h"
#include "base/buf.h"

struct bs_money {
    int64_t minor;
    char currency[4]; /* three capitals and NUL; "" when there is no amount */
};

/* Minor digits of a currency: 0 JPY, 2 CNY, 3 KWD …; -1 for what ISO 4217 does not list. */
int bs_currency_exponent(struct bs_str code);
/* "64.10" in CNY → 6410. More digits than the currency has, signs, blanks, exponents: BS_E_INVALID.
 */
BS_NODISCARD bs_rc bs_money_parse(struct bs_str decimal, struct bs_str currency,
                                  struct bs_money *ret, struct bs_err *err);
/* 6410 CNY → "64.10 CNY", for messages to people. */
void bs_money_write(struct bs_buf *b, struct bs_money m);
