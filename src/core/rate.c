/* Even starts: each moves the next one on by its share of the span. */
#include "core/rate.h"

static int64_t step_of(const struct bs_rate *r)
{
    BS_ASSERT(r->calls > 0 && r->per.us > 0);
    return BS_MAX(r->per.us / (int64_t)r->calls, (int64_t)1);
}

struct bs_time bs_pace_when(const struct bs_pace *p, const struct bs_rate *r, struct bs_span slack)
{
    if (r->calls == 0 || p->next.us == 0)
        return BS_TIME_NONE;
    return bs_time_add(p->next, BS_US(-slack.us));
}

uint32_t bs_pace_room(const struct bs_pace *p, const struct bs_rate *r, struct bs_span slack,
                      uint32_t most, struct bs_time now)
{
    if (r->calls == 0)
        return most;
    struct bs_time when = bs_pace_when(p, r, slack);
    if (bs_time_before(now, when))
        return 0;
    /* What was not used is not saved up: the pace goes on from now. */
    int64_t early = slack.us;
    if (bs_time_before(now, p->next))
        early -= bs_time_diff(p->next, now).us;
    return (uint32_t)BS_MIN(1 + early / step_of(r), (int64_t)most);
}

void bs_pace_take(struct bs_pace *p, const struct bs_rate *r, uint32_t n, struct bs_time now)
{
    if (r->calls == 0 || n == 0)
        return;
    p->next = bs_time_add(bs_time_max(p->next, now), BS_US(step_of(r) * (int64_t)n));
}
