/* Where time comes from. Store time for SQLite: the wall clock is read once, then the boot-time
 * clock advances it, and it is slewed (at most 500 ppm) towards the wall clock; it never goes
 * backwards. A step of the wall clock therefore moves no lease. Thread-safe. */
#pragma once

#include "base/time.h"

struct bs_clock {
    struct bs_time (*now)(struct bs_clock *c);  /* store time                                */
    struct bs_time (*wall)(struct bs_clock *c); /* the wall clock; NULL: there is none apart */
};

/* The real one; borrowed, lives as long as the process. */
struct bs_clock *bs_clock_system(void);
/* Its store time goes on from at, where a process before this one was later than the wall clock now
 * is. */
void bs_clock_system_not_before(struct bs_time at);
/* A clock that stands until it is moved; for tests and the simulator. */
struct bs_clock_manual {
    struct bs_clock base;
    struct bs_time at;
};
void bs_clock_manual_init(struct bs_clock_manual *c, struct bs_time at);
/* Boot-time microseconds, for deadlines inside the process and durations. */
int64_t bs_boot_us(void);

/* What others compare with their own clocks. */
static inline struct bs_time bs_wall(struct bs_clock *c)
{
    return c->wall ? c->wall(c) : c->now(c);
}

static inline struct bs_time bs_now(struct bs_clock *c)
{
    return c->now(c);
}
