/* Durations in buckets that grow by 2 or 2.5. */
#include "base/hist.h"

#define MS(n)                                                                                      \
    {                                                                                              \
        (int64_t)(n) * 1000                                                                        \
    }
#define TENTHS(n)                                                                                  \
    {                                                                                              \
        (int64_t)(n) * 100                                                                         \
    }

const struct bs_span bs_hist_bounds[BS_HIST_BOUNDS] = {
    MS(1),     TENTHS(25), MS(5),      MS(10),     MS(25),      MS(50),      MS(100),
    MS(250),   MS(500),    MS(1000),   MS(2500),   MS(5000),    MS(10000),   MS(25000),
    MS(50000), MS(100000), MS(250000), MS(500000), MS(1000000), MS(2500000), MS(3600000),
};

void bs_hist_add(struct bs_hist *h, struct bs_span d)
{
    int64_t us = BS_MAX(d.us, (int64_t)0);
    size_t i = 0;

    while (i < BS_HIST_BOUNDS && us > bs_hist_bounds[i].us)
        i++;
    atomic_fetch_add_explicit(&h->counts[i], 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&h->sum_us, (uint64_t)us, memory_order_relaxed);
}

void bs_hist_read(const struct bs_hist *h, struct bs_hist_view *ret)
{
    *ret = (struct bs_hist_view){ 0 };
    for (size_t i = 0; i <= BS_HIST_BOUNDS; i++) {
        ret->counts[i] = atomic_load_explicit(&h->counts[i], memory_order_relaxed);
        ret->count += ret->counts[i];
    }
    ret->sum_us = atomic_load_explicit(&h->sum_us, memory_order_relaxed);
}

/* Where between its bounds the rank lies; `before`: how many are in the buckets below. */
static struct bs_span within(const struct bs_hist_view *v, size_t i, double rank, double before)
{
    double low = i > 0 ? (double)bs_hist_bounds[i - 1].us : 0;
    double high = (double)bs_hist_bounds[i].us;

    return BS_US(low + (high - low) * (rank - before) / (double)v->counts[i] + 0.5);
}

struct bs_span bs_hist_quantile(const struct bs_hist_view *v, uint32_t per_mille)
{
    double rank = (double)v->count * BS_MIN(per_mille, 1000U) / 1000, before = 0;

    if (v->count == 0)
        return BS_US(-1);
    for (size_t i = 0; i < BS_HIST_BOUNDS; i++) {
        if (v->counts[i] > 0 && before + (double)v->counts[i] >= rank)
            return within(v, i, rank, before);
        before += (double)v->counts[i];
    }
    return bs_hist_bounds[BS_HIST_BOUNDS - 1];
}
