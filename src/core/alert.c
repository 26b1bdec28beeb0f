/* What is watched where the configuration says nothing. */
#include "core/alert.h"

#define MINUTES(n)                                                                                 \
    {                                                                                              \
        (int64_t)(n) * 60 * 1000000                                                                \
    }

const struct bs_alert_limits bs_alert_limits_default = {
    .manual_growth = 20,
    .manual_age = MINUTES(4 * 60),
    .oldest_due = MINUTES(5),
    .backlog = 100000,
    .unknown = 50,
};

const struct bs_alert_conf bs_alert_conf_default = {
    .check_every = { 10 * 1000000 },
    .growth_window = MINUTES(10),
    .group_wait = { 5 * 1000000 },
    .quiet = MINUTES(10),
    .ping_every = MINUTES(1),
};
