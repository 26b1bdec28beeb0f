/* The breaker's three states: closed, open, half open. */
#include "core/breaker.h"

enum { FAULTS_TRIP = 3, REFUSALS_TRIP = 10 };

static const struct bs_span cooldown_first = { 5000000 };
static const struct bs_span cooldown_most = { 60000000 };

static bool trips(struct bs_breaker *b, enum bs_reach what)
{
    if (what == BS_REACH_WELL) {
        b->faults = b->refusals = 0;
        return false;
    }
    /* No connection says nothing of the faults before it; an endpoint that answers with a fault
     * does accept connections. */
    if (what == BS_REACH_REFUSED)
        return ++b->refusals >= REFUSALS_TRIP;
    b->refusals = 0;
    return ++b->faults >= FAULTS_TRIP;
}

static enum bs_breaker_change probed(struct bs_breaker *b, enum bs_reach what, struct bs_time now)
{
    if (what == BS_REACH_WELL) {
        *b = (struct bs_breaker){ 0 };
        return BS_BREAKER_CLOSED;
    }
    b->cooldown = BS_US(BS_MIN(2 * b->cooldown.us, cooldown_most.us));
    b->open_until = bs_time_add(now, b->cooldown);
    return BS_BREAKER_REOPENED;
}

enum bs_breaker_change bs_breaker_count(struct bs_breaker *b, enum bs_reach what, bool probe,
                                        struct bs_time now)
{
    if (what == BS_REACH_UNTOLD)
        return BS_BREAKER_SAME;
    if (bs_breaker_open(b))
        return probe ? probed(b, what, now) : BS_BREAKER_SAME;
    if (!trips(b, what))
        return BS_BREAKER_SAME;
    b->opened_at = now;
    b->cooldown = cooldown_first;
    b->open_until = bs_time_add(now, b->cooldown);
    return BS_BREAKER_OPENED;
}
