/* How long things take: a histogram of durations with fixed buckets, from 1 ms to 1 h. Any thread
 * adds and any reads; nobody waits. Pure. */
#pragma once

#include "base/base.h"
#include "base/time.h"

#include <stdatomic.h>

enum { BS_HIST_BOUNDS = 21 };

/* Upper bounds, inclusive, rising; what is longer than the last has a bucket of its own. */
extern const struct bs_span bs_hist_bounds[BS_HIST_BOUNDS];

/* All zero: empty. */
struct bs_hist {
    _Atomic uint64_t counts[BS_HIST_BOUNDS + 1];
    _Atomic uint64_t sum_us;
};

/* One reading. While others add, the sum may be of a moment before or after the counts. */
struct bs_hist_view {
    uint64_t counts[BS_HIST_BOUNDS + 1]; /* of each bucket alone */
    uint64_t count;                      /* of all               */
    uint64_t sum_us;
};

/* A negative duration counts as 0. */
void bs_hist_add(struct bs_hist *h, struct bs_span d);
void bs_hist_read(const struct bs_hist *h, struct bs_hist_view *ret);
/* The duration that so many per mille (500: the median) did not exceed, as if each bucket were
 * evenly filled; the last bound where it lies beyond; negative when nothing was added. */
struct bs_span bs_hist_quantile(const struct bs_hist_view *v, uint32_t per_mille);
