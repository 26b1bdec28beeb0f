/* Ids of 63 bits: milliseconds, node, sequence. */
#include "sys/ids.h"

#define EPOCH_MS INT64_C(1577836800000) /* 2020-01-01T00:00:00Z */

enum { SEQUENCE_BITS = 12, NODE_BITS = 10, TIME_BITS = 41 };
enum { TIME_SHIFT = NODE_BITS + SEQUENCE_BITS, SEQUENCE_MAX = (1 << SEQUENCE_BITS) - 1 };

#define MS_UNIT (INT64_C(1) << TIME_SHIFT) /* what one millisecond adds to an id */
#define TIME_MAX_MS ((INT64_C(1) << TIME_BITS) - 1)

void bs_ids_init(struct bs_ids *ids, int32_t node)
{
    BS_ASSERT(node >= 0 && node < 1 << NODE_BITS);
    atomic_init(&ids->last, 0);
    ids->node = node;
}

static int64_t own_ms(struct bs_time at)
{
    int64_t ms = at.us / 1000 - EPOCH_MS;

    return BS_MIN(BS_MAX(ms, 0), TIME_MAX_MS);
}

/* Where the clock is not ahead of the last id, the next one stands in the same millisecond, or in
 * the following one when that is full or when the last id came from a node with a greater number:
 * the process before this one. */
static int64_t after(int64_t last, int64_t now_ms, int32_t node)
{
    int64_t ms = last >> TIME_SHIFT;
    int64_t own = (int64_t)node << SEQUENCE_BITS;
    int64_t sequence = (last & SEQUENCE_MAX) + 1;

    if (now_ms > ms) {
        ms = now_ms;
        sequence = 0;
    }
    if (sequence > SEQUENCE_MAX || (ms * MS_UNIT | own | sequence) <= last) {
        ms++;
        sequence = 0;
    }
    BS_ASSERT(ms <= TIME_MAX_MS);
    return ms * MS_UNIT | own | sequence;
}

int64_t bs_ids_next(struct bs_ids *ids, struct bs_time now)
{
    int64_t now_ms = own_ms(now);
    int64_t last = atomic_load(&ids->last);
    int64_t id;

    do {
        id = after(last, now_ms, ids->node);
    } while (!atomic_compare_exchange_weak(&ids->last, &last, id));
    BS_ASSERT(id > last);
    return id;
}

int64_t bs_ids_floor(struct bs_time at)
{
    return own_ms(at) * MS_UNIT;
}

struct bs_time bs_ids_time(int64_t id)
{
    return (struct bs_time){ ((id >> TIME_SHIFT) + EPOCH_MS) * 1000 };
}
