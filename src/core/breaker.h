/* Whether an endpoint is worth calling. Trips on 3 endpoint faults or 10 connect failures in a row
 * and on nothing else; after a cool-down, 5 s doubling to 60 s, one probe decides. Pure. */
#pragma once

#include "base/base.h"
#include "base/time.h"

/* What one exchange says of the endpoint. */
enum bs_reach {
    BS_REACH_UNTOLD,  /* nothing: cancelled before an answer, or never tried              */
    BS_REACH_WELL,    /* somebody answered, or took the request: not a breaker's business */
    BS_REACH_FAULT,   /* an endpoint fault (401, 403, 404, 405, 407, 3xx, certificate)    */
    BS_REACH_REFUSED, /* no connection, nothing sent                                      */
};

struct bs_breaker {
    uint32_t faults, refusals; /* in a row */
    struct bs_time open_until; /* 0: closed; in the past: half open, one probe may go */
    struct bs_time opened_at;
    struct bs_span cooldown; /* of the running opening */
};

enum bs_breaker_change {
    BS_BREAKER_SAME,
    BS_BREAKER_OPENED,
    BS_BREAKER_REOPENED,
    BS_BREAKER_CLOSED
};

/* `probe`: the exchange was the probe of an open breaker. While it is open nothing but the probe
 * counts: what was in flight when it tripped tells nothing new. */
enum bs_breaker_change bs_breaker_count(struct bs_breaker *b, enum bs_reach what, bool probe,
                                        struct bs_time now);
static inline bool bs_breaker_open(const struct bs_breaker *b)
{
    return b->open_until.us != 0;
}
