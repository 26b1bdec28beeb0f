/* From the checked values to what is watched, who is told, and how long finished tasks are kept. */
#pragma once

#include "app/config_read.h"
#include "core/queue.h"

/* alerts.limits: `base` is what holds where a key is not given; the same for a queue's own. */
void bs_conf_build_limits(const struct bs_conf_group *g, const struct bs_alert_limits *base,
                          struct bs_alert_limits *ret, struct bs_conf_faults *f);
/* alerts without its limits. NULL without memory. */
const struct bs_alert_conf *bs_conf_build_alerts(const struct bs_conf_group *g,
                                                 struct bs_conf_faults *f);
void bs_conf_build_history(const struct bs_conf_group *g, struct bs_history_conf *ret,
                           struct bs_conf_faults *f);
