/* The static names of the reasons for which an outcome asks a person. */
#include "core/manual_code.h"

enum { STATUS_MIN = 100, STATUS_MAX = 599 };

#define ONE(status) "HTTP_" #status
#define TEN(tens)                                                                                  \
    ONE(tens##0), ONE(tens##1), ONE(tens##2), ONE(tens##3), ONE(tens##4), ONE(tens##5),            \
        ONE(tens##6), ONE(tens##7), ONE(tens##8), ONE(tens##9)
#define HUNDRED(hundreds)                                                                          \
    TEN(hundreds##0), TEN(hundreds##1), TEN(hundreds##2), TEN(hundreds##3), TEN(hundreds##4),      \
        TEN(hundreds##5), TEN(hundreds##6), TEN(hundreds##7), TEN(hundreds##8), TEN(hundreds##9)

/* Every status, because a queue may move any of them to "a person". */
static const char of_status[][sizeof("HTTP_100")] = { HUNDRED(1), HUNDRED(2), HUNDRED(3),
                                                      HUNDRED(4), HUNDRED(5) };
_Static_assert(BS_COUNT(of_status) == STATUS_MAX - STATUS_MIN + 1, "one name a status");

static const char *const of_rules[] = {
    "ORDER_STATE_CONFLICT", "AMOUNT_MISMATCH", "CURRENCY_MISMATCH",
    "TRADE_NO_MISMATCH",    "BAD_REPLY",       "HANDLER_MANUAL",
    "CHECK_FIELD_MISSING",
};

const char *bs_manual_code(const struct bs_outcome *o)
{
    if (o->http_status >= STATUS_MIN && o->http_status <= STATUS_MAX &&
        bs_str_is(o->code, of_status[o->http_status - STATUS_MIN]))
        return of_status[o->http_status - STATUS_MIN];
    for (uint32_t i = 0; i < BS_COUNT(of_rules); i++) {
        if (bs_str_is(o->code, of_rules[i]))
            return of_rules[i];
    }
    return "HANDLER_MANUAL";
}
