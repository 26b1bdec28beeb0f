/* What a handler or a look-up answered, read from its bytes. Nothing is assumed of them. No I/O, no
 * clock. */
#pragma once

#include "core/outcome.h"

/* The handler's reply object and the queue's declared JSON rule. */
struct bs_reply bs_reply_read(struct bs_arena *a, const struct bs_facts *f,
                              const struct bs_success_rule *rule);
/* The look-up's reply object. */
struct bs_look bs_look_read(struct bs_arena *a, const struct bs_facts *f);
