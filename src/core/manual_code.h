/* Why a person is asked, as a name with static storage. Private to core. */
#pragma once

#include "core/outcome.h"

/* The outcome's own code where it is one of ours (ORDER_STATE_CONFLICT, HTTP_422 …), else
 * HANDLER_MANUAL: a handler's own words stay in last_error_code. */
const char *bs_manual_code(const struct bs_outcome *o);
