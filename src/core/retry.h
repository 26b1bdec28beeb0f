/* When to try again. Pure: the same input and seed give the same instant on every machine. */
#pragma once

#include "base/rng.h"
#include "core/facts.h"
#include "core/policy.h"

/* The instant of the next try after the n-th counted execution (n ≥ 1): backoff with jitter, both
 * ways. */
struct bs_time bs_retry_at(const struct bs_backoff *b, uint32_t n, struct bs_time now,
                           struct bs_rng *rng);
/* The same with a server's wish: the later of both, jitter upwards only for the wish. */
struct bs_time bs_retry_at_least(const struct bs_backoff *b, uint32_t n, struct bs_span wish,
                                 struct bs_time now, struct bs_rng *rng);
/* The n-th (n ≥ 1) wait that spends no budget: 5 s, 15 s, 30 s, 1 min, 3 min, 10 min, then 10 min;
 * jitter as given. */
struct bs_time bs_defer_at(uint32_t n, uint32_t jitter_pct, struct bs_time now, struct bs_rng *rng);
/* The next look after an explicit "order not found": 5 s, 15 s, 30 s, 1 min, 3 min, 10 min after
 * the first one, then every 10 min; the first of them that is later than now. */
struct bs_time bs_not_found_at(struct bs_time first, struct bs_time now);
