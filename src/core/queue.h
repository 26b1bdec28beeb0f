/* One queue as configured, and the set of all of them: an immutable snapshot that is swapped whole
 * on a reload. Pure data; borrowed from the configuration, which is never freed while the process
 * runs. */
#pragma once

#include "base/secret.h"
#include "core/policy.h"

#include <stdatomic.h>

enum bs_look_kind { BS_LOOK_NONE, BS_LOOK_HTTP };

struct bs_queue_conf {
    struct bs_str biz_type;
    struct bs_str handler_url; /* http or https */
    struct bs_secret secret;
    enum bs_look_kind look;
    struct bs_str look_url; /* with {order_no} {payment_no} {channel_trade_no} {refund_no} {biz_id}
                               {merchant_no} {request_id} */
    struct bs_span look_timeout;
    struct bs_span call_timeout, connect_timeout;
    struct bs_span lease;
    bool renew; /* renews every third of the lease */
    uint32_t concurrency;
    struct bs_policy policy;
};

struct bs_queues {
    const struct bs_queue_conf *items; /* sorted by biz_type, byte order */
    uint32_t n;
};

/* What every part reads at the beginning of a step; never keep items across steps by index, only by
 * pointer. */
struct bs_queues_slot {
    _Atomic(const struct bs_queues *) now;
};

static inline const struct bs_queues *bs_queues_now(struct bs_queues_slot *s)
{
    return atomic_load_explicit(&s->now, memory_order_acquire);
}

const struct bs_queue_conf *bs_queue_find(const struct bs_queues *q, struct bs_str biz_type);
