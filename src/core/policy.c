/* The policy of a queue that says nothing about itself. */
#include "core/policy.h"

static const struct bs_span default_delays[] = {
    { 60 * 1000000LL },   { 180 * 1000000LL },  { 600 * 1000000LL },
    { 1800 * 1000000LL }, { 3600 * 1000000LL },
};

const struct bs_policy bs_policy_default = {
    .backoff = { .delays = default_delays,
                 .delays_n = BS_COUNT(default_delays),
                 .factor_pct = 200,
                 .jitter_pct = 20 },
    .max_retry_count = 10,
    .order_not_found_grace = { 600 * 1000000LL },
    .effect = BS_EFFECT_REPEATABLE,
};
