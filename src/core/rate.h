/* How fast something may start: so many in a span, evenly, without saving up. Pure.
 *
 * The generic cell rate algorithm: each start moves `next` on by per / calls; a start may come
 * early by the slack less its own step, which makes up for the coarse steps of clocks and threads.
 * In any second no more start than the rate and what fits into the slack. */
#pragma once

#include "base/base.h"
#include "base/buf.h"
#include "base/time.h"

struct bs_rate {
    uint32_t calls; /* 0: no limit */
    struct bs_span per;
};

struct bs_pace {
    struct bs_time next; /* when the next is due at an even pace; 0: none started yet */
};

/* The earliest instant at which one more may start; 0 without a limit. */
struct bs_time bs_pace_when(const struct bs_pace *p, const struct bs_rate *r, struct bs_span slack);
/* How many may start now, at most `most`. */
uint32_t bs_pace_room(const struct bs_pace *p, const struct bs_rate *r, struct bs_span slack,
                      uint32_t most, struct bs_time now);
/* n have started. */
void bs_pace_take(struct bs_pace *p, const struct bs_rate *r, uint32_t n, struct bs_time now);
/* "200/s", "5/m", "1/h"; at most 4,294,967,295 of them. */
bool bs_rate_parse(struct bs_str s, struct bs_rate *ret);
/* The same form back; "none" without a limit. */
void bs_rate_write(struct bs_buf *b, const struct bs_rate *r);
