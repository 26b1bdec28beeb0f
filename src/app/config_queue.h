/* From the checked values of one queue to its rules; what keys say together is judged here. */
#pragma once

#include "app/config_read.h"
#include "core/queue.h"

/* Adds a fault for everything that cannot be. `limits` hold where the queue has none of its own.
 * The result borrows from the faults' arena. */
void bs_conf_build_queue(const struct bs_conf_group *g, const struct bs_alert_limits *limits,
                         struct bs_queue_conf *q, struct bs_conf_faults *f);
