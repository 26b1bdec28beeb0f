/* One queue as configured, and the set of all of them: an immutable snapshot that is swapped whole
 * on a reload. Pure data; borrowed from the configuration, which is never freed while the process
 * runs. */
#pragma once

#include "base/secret.h"
#include "core/alert.h"
#include "core/policy.h"
#include "core/rate.h"

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
    struct bs_rate rate;
    /* "host:port" of the two addresses, lower case, the port always there; look_host empty: no
       look-up over HTTP. */
    struct bs_str handler_host, look_host;
    struct bs_alert_limits alerts;
    struct bs_policy policy;
};

/* A limit that all queues share that call this host. */
struct bs_host_conf {
    struct bs_str name; /* "host:port", as handler_host has it */
    uint32_t concurrency;
};

struct bs_history_conf {
    struct bs_span archive_after; /* finished tasks move to history; 0: never    */
    struct bs_span purge_after;   /* and are deleted from there; 0: never (default) */
};

/* Everything that a reload swaps at once. */
struct bs_queues {
    const struct bs_queue_conf *items; /* sorted by biz_type, byte order */
    uint32_t n;
    const struct bs_host_conf *hosts; /* sorted by name, byte order */
    uint32_t hosts_n;
    struct bs_history_conf history;
    const struct bs_alert_conf *alerts; /* NULL: nothing is watched (tests) */
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
/* NULL: this host has no limit of its own. */
const struct bs_host_conf *bs_host_find(const struct bs_queues *q, struct bs_str name);
