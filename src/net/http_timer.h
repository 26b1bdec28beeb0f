/* One timer per connection in a binary heap. A deadline that moves later costs nothing: the place
 * in the heap is corrected when the old instant comes. The server's thread only. */
#pragma once

#include "base/base.h"

struct bs_http_timer {
    int64_t due_us; /* when it is to fire                              */
    int64_t key_us; /* its place in the heap; never later than due_us  */
    uint32_t at;    /* index in the heap                               */
};

struct bs_http_timers {
    struct bs_http_timer **heap;
    uint32_t n, cap;
};

/* False: no memory. */
BS_NODISCARD bool bs_http_timer_add(struct bs_http_timers *all, struct bs_http_timer *t,
                                    int64_t due_us);
void bs_http_timer_set(struct bs_http_timers *all, struct bs_http_timer *t, int64_t due_us);
void bs_http_timer_remove(struct bs_http_timers *all, struct bs_http_timer *t);
/* The next timer that is due, NULL when there is none. It stays in the heap, due at no time. */
struct bs_http_timer *bs_http_timer_fire(struct bs_http_timers *all, int64_t now_us);
/* Nothing is due before; INT64_MAX when there are no timers. */
int64_t bs_http_timer_next(const struct bs_http_timers *all);
void bs_http_timers_free(struct bs_http_timers *all);
