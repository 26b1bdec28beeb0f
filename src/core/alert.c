/* What is watched where the configuration says nothing. */
#include "core/alert.h"

#define MINUTES(n)                                                                                 \
    {                                                                                              \
        INT64_C(60000000) * (n)                                                                    \
    }

const struct bs_alert_limits bs_alert_limits_default = {
    .manual_growth = 20,
    .manual_age = MINUTES(240),
    .oldest_due = MINUTES(5),
    .backlog = 100000,
    .unknown = 50,
};

const struct bs_alert_conf bs_alert_conf_default = {
    .check_every = { 10000000 },
    .growth_window = MINUTES(10),
    .group_wait = { 5000000 },
    .quiet = MINUTES(10),
    .ping_every = MINUTES(1),
};

const char *bs_alert_phase_name(enum bs_alert_phase p)
{
    return p == BS_ALERT_RAISED ? "raised" : "recovered";
}

const char *bs_delivery_state_name(enum bs_delivery_state s)
{
    static const char *const names[] = {
        [BS_DELIVERY_PENDING] = "pending",
        [BS_DELIVERY_SENT] = "sent",
        [BS_DELIVERY_GIVEN_UP] = "given_up",
    };

    return names[s];
}
