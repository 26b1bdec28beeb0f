/* One queue's rules, as the configuration gave them. Immutable once built. Pure. */
#pragma once

#include "base/base.h"
#include "base/time.h"

enum bs_effect { BS_EFFECT_NONE, BS_EFFECT_REPEATABLE, BS_EFFECT_MONEY };

/* Which row of the outcome table an HTTP status belongs to. */
enum bs_status_class {
    BS_STATUS_DEFAULT = 0, /* the built-in row                           */
    BS_STATUS_FAILED,
    BS_STATUS_UNKNOWN,
    BS_STATUS_MANUAL,
    BS_STATUS_NOT_PROCESSED,
    BS_STATUS_ENDPOINT_FAULT,
};

struct bs_backoff {
    const struct bs_span
        *delays;       /* at least one; the last repeats; borrowed for the policy's life */
    uint32_t delays_n; /* 0: initial, factor, max are used instead                       */
    struct bs_span initial, max;
    uint32_t factor_pct; /* 200 doubles */
    uint32_t jitter_pct; /* both ways; upwards only for a delay the server asked for */
};

struct bs_status_override {
    int status;
    enum bs_status_class cls;
};

/* A declared success rule beside the built-in ones; status 0: none declared. */
struct bs_success_rule {
    int status;
    struct bs_str body;          /* whole body after trimming; p NULL: not by body        */
    struct bs_str json_pointer;  /* RFC 6901; p NULL: not by JSON                         */
    const struct bs_str *values; /* raw JSON texts: 0, "SUCCESS" with its quotes, true    */
    uint32_t values_n;
};

struct bs_policy {
    struct bs_backoff backoff;
    int32_t max_retry_count;
    struct bs_span max_age; /* of the time that it could have run; 0: none */
    struct bs_span order_not_found_grace;
    enum bs_effect effect;
    bool has_look_up;
    struct bs_success_rule success;
    const struct bs_status_override *statuses;
    uint32_t statuses_n;
};

/* The defaults: 1m 3m 10m 30m 1h, 20 %, 10 tries, 10 min grace, repeatable, no look-up.
 */
extern const struct bs_policy bs_policy_default;
