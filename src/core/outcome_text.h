/* Words of an outcome that calls and look-ups share. Private to core. A slice that the arena had no
 * room for is empty. */
#pragma once

#include "core/outcome.h"

/* Any bytes as storable text of at most max bytes. */
struct bs_str bs_outcome_text(struct bs_arena *a, struct bs_str raw, size_t max);
struct bs_str bs_outcome_code(struct bs_arena *a, const char *prefix, const char *code);
struct bs_str bs_outcome_http_code(struct bs_arena *a, const char *prefix, int status);
/* How it ended without a reply, with the library's own words. */
struct bs_str bs_wire_message(struct bs_arena *a, const struct bs_facts *f);
/* The status; of a redirect also where to, of a pause how long. */
struct bs_str bs_status_message(struct bs_arena *a, const struct bs_facts *f);
