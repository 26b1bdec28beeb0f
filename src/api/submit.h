/* What one submission and a batch of them share. */
#pragma once

#include "api/call.h"
#include "door/door.h"

/* NONE: stored, or a duplicate. */
enum bs_problem bs_submit_problem(const struct bs_op *op);
/* "request", "effect" or NULL. */
const char *bs_submit_duplicate(const struct bs_op *op);
size_t bs_submit_bytes(const struct bs_op *op);
struct bs_door bs_submit_door(const struct bs_call *c);
/* 503 for a whole work whose end is not known. */
void bs_submit_store_away(struct bs_call *c);
