/* Even starts: each moves the next one on by its share of the span. */
#include "core/rate.h"

#include "base/plant.h"
#include "base/text.h"

static int64_t step_of(const struct bs_rate *r)
{
    BS_ASSERT(r->calls > 0 && r->per.us > 0);
    /* Upwards: never one more than the rate in its span. */
    return (r->per.us + (int64_t)r->calls - 1) / (int64_t)r->calls;
}

/* A slack smaller than the step between two starts would only move them all forward, one more into
 * some second. */
static int64_t early_of(const struct bs_rate *r, struct bs_span slack)
{
    return BS_MAX(slack.us - step_of(r), (int64_t)0);
}

struct bs_time bs_pace_when(const struct bs_pace *p, const struct bs_rate *r, struct bs_span slack)
{
    if (r->calls == 0 || p->next.us == 0)
        return BS_TIME_NONE;
    return bs_time_add(p->next, BS_US(-early_of(r, slack)));
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
    int64_t early = early_of(r, slack);
    if (bs_time_before(now, p->next))
        early -= bs_time_diff(p->next, now).us;
    return (uint32_t)BS_MIN(1 + early / step_of(r), (int64_t)most);
}

void bs_pace_take(struct bs_pace *p, const struct bs_rate *r, uint32_t n, struct bs_time now)
{
    if (r->calls == 0 || n == 0 || BS_PLANT(RATE_IGNORED))
        return;
    p->next = bs_time_add(bs_time_max(p->next, now), BS_US(step_of(r) * (int64_t)n));
}

/* ---- as people write it ---- */

static const struct {
    char unit;
    int64_t us;
} spans[] = { { 's', 1000000 }, { 'm', 60000000 }, { 'h', 3600000000 } };

bool bs_rate_parse(struct bs_str s, struct bs_rate *ret)
{
    struct bs_str unit = s;
    struct bs_str calls = bs_str_cut(&unit, '/');
    int64_t n = 0;

    if (unit.n != 1 || !bs_i64_parse(calls, &n) || n < 0 || n > UINT32_MAX)
        return false;
    for (size_t i = 0; i < BS_COUNT(spans); i++) {
        if (spans[i].unit == unit.p[0]) {
            *ret = (struct bs_rate){ (uint32_t)n, BS_US(spans[i].us) };
            return true;
        }
    }
    return false;
}

void bs_rate_write(struct bs_buf *b, const struct bs_rate *r)
{
    if (r->calls == 0) {
        bs_buf_addz(b, "none");
        return;
    }
    bs_buf_fmt(b, "%u/", r->calls);
    for (size_t i = 0; i < BS_COUNT(spans); i++) {
        if (spans[i].us == r->per.us) {
            bs_buf_addc(b, spans[i].unit);
            return;
        }
    }
    bs_span_write(b, r->per);
}
