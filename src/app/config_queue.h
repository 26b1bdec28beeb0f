/* From the checked values of one queue to its rules; what keys say together is judged here. */
#pragma once

#include "app/config_read.h"
#include "core/queue.h"

/* Adds a fault for everything that cannot be. The result borrows from the faults' arena. */
void bs_conf_build_queue(const struct bs_conf_group *g, struct bs_queue_conf *q,
                         struct bs_conf_faults *f);
