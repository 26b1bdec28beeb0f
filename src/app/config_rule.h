/* The parts of a queue that are small languages of their own: addresses, secrets, success rules,
 * statuses, delays. */
#pragma once

#include "app/config_read.h"
#include "core/queue.h"

enum bs_conf_url {
    BS_URL_PLAIN,
    BS_URL_LOOK, /* may hold placeholders after the host */
};

/* An http or https address with a host and without a password. */
void bs_conf_check_url(const struct bs_conf_val *v, struct bs_str what, enum bs_conf_url kind,
                       struct bs_conf_faults *f);
void bs_conf_read_secret(const struct bs_conf_val *v, struct bs_str what, struct bs_secret *ret,
                         struct bs_conf_faults *f);
void bs_conf_read_success(const struct bs_conf_group *g, struct bs_success_rule *ret,
                          struct bs_conf_faults *f);
void bs_conf_read_statuses(const struct bs_conf_val *v, struct bs_str what,
                           struct bs_policy *policy, struct bs_conf_faults *f);
void bs_conf_read_backoff(const struct bs_conf_group *g, struct bs_backoff *ret,
                          struct bs_conf_faults *f);
