/* Own ids: 63 bits = milliseconds since 2020-01-01 (41) · node (10) · sequence (12). Strictly
 * growing per generator, also when the clock stands or steps back; a millisecond with more than
 * 4,096 ids borrows from the next. Thread-safe. */
#pragma once

#include "base/time.h"

#include <stdatomic.h>

struct bs_ids {
    _Atomic int64_t last; /* the last id given out */
    int32_t node;         /* 0–1023                */
};

void bs_ids_init(struct bs_ids *ids, int32_t node);
int64_t bs_ids_next(struct bs_ids *ids, struct bs_time now);
/* Whether ids can be made of this instant, and for years after it. */
bool bs_ids_fit(struct bs_time at);
/* The smallest id of an instant, for time ranges over id order. */
int64_t bs_ids_floor(struct bs_time at);
struct bs_time bs_ids_time(int64_t id);
