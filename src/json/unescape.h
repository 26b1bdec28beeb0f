/* The text of a JSON string that a parser has already accepted. */
#pragma once

#include "base/arena.h"
#include "base/base.h"

/* raw: the string with its quotes. The text is in the arena, terminated, and may hold NUL; lone
 * surrogates become U+FFFD. p is NULL without memory. */
struct bs_str bs_json_unescape(struct bs_arena *a, struct bs_str raw);
/* Whether that made some character of another: a lone surrogate is no text. */
bool bs_json_is_lossy(struct bs_str raw);
