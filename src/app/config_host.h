/* Which hosts the queues call, and the limits that all queues of a host share. */
#pragma once

#include "app/config_read.h"
#include "core/queue.h"

/* "host:port" of an http or https address: lower case, numeric addresses in one form, IPv6 in
 * brackets, the scheme's port where none is written. p NULL: it is no address. */
struct bs_str bs_conf_host_of(struct bs_arena *a, struct bs_str url);
/* The hosts of the file, sorted; one that no queue of `q` calls is a fault. */
void bs_conf_build_hosts(const struct bs_conf_val *v, struct bs_queues *q,
                         struct bs_conf_faults *f);
