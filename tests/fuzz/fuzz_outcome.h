/* What holds for every outcome, whatever the peer sent: it can be stored, and a decision follows.
 */
#pragma once

#include "core/decide.h"
#include "fuzz.h"

static const struct bs_time fuzz_now = { 1790000000000000 };

/* A task of a money queue in the middle of its execution. */
static inline struct bs_task fuzz_task(void)
{
    return (struct bs_task){ .id = 42,
                             .biz_type = BS_STR("REFUND"),
                             .biz_id = BS_STR("B1"),
                             .request_id = BS_STR("r-1"),
                             .merchant_no = BS_STR("default"),
                             .order_no = BS_STR("O1"),
                             .channel_trade_no = BS_STR("T1"),
                             .source = BS_SRC_API,
                             .money = { 6410, "CNY" },
                             .state = BS_PROCESSING,
                             .max_retry_count = 10,
                             .attempt_no = 1,
                             .version = 2,
                             .next_execute_at = fuzz_now,
                             .created_at = fuzz_now };
}

static inline void fuzz_check_outcome(const struct bs_outcome *o, const struct bs_policy *p)
{
    struct bs_task t = fuzz_task();

    fuzz_check_text(o->code, BS_CODE_MAX);
    fuzz_check_text(o->message, BS_MESSAGE_MAX);
    fuzz_check_text(o->effect, BS_EFFECT_TEXT_MAX);
    fuzz_check_text(o->excerpt, BS_EXCERPT_MAX);
    BS_ASSERT((uint32_t)o->kind < BS_OUTCOME_COUNT);
    BS_ASSERT(o->kind == BS_OUT_SUCCESS || o->code.n > 0);
    BS_ASSERT(!o->has_wish || o->wish.us >= 0);
    struct bs_settlement s = bs_decide_finish(&t, o, p, fuzz_now, 7);
    BS_ASSERT(s.to != BS_STATE_NONE && s.to != BS_PROCESSING);
    BS_ASSERT(s.to != BS_MANUAL || s.manual_code);
    if (s.to == BS_WAITING || s.to == BS_RETRY)
        BS_ASSERT(!bs_time_before(s.next_execute_at, fuzz_now));
}
