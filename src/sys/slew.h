/* The arithmetic of store time, apart from the clocks that feed it. Thread-safe; never reads a
 * clock. */
#pragma once

#include "base/time.h"

#include <stdatomic.h>

struct bs_slew {
    _Atomic int64_t offset_us;   /* store time minus boot time                       */
    _Atomic int64_t slewed_us;   /* boot time of the last correction of the offset   */
    _Atomic int64_t greatest_us; /* the greatest store time that was given out       */
};

void bs_slew_init(struct bs_slew *s, int64_t boot_us, int64_t wall_us);
/* True when the offset may be corrected again: then the caller reads the wall clock too. */
bool bs_slew_due(const struct bs_slew *s, int64_t boot_us);
/* Moves the offset towards wall - boot, by at most 500 ppm of the boot time since the last move. */
void bs_slew_correct(struct bs_slew *s, int64_t boot_us, int64_t wall_us);
/* From boot_us on, store time is not less than at; what it is ahead by is slewed away. */
void bs_slew_not_before(struct bs_slew *s, int64_t boot_us, struct bs_time at);
/* Store time at boot_us; never less than any that was given out before. */
struct bs_time bs_slew_now(struct bs_slew *s, int64_t boot_us);
