/* Things of the store as JSON, one form each, wherever they are shown. Any thread. */
#pragma once

#include "api/auth.h"
#include "store/store.h"
#include "json/write.h"

/* The members of a task, into an object that is open. whole: with payload, extra_data and
 * result_snapshot; lists leave them out. */
void bs_render_task(struct bs_json *j, const struct bs_task *t, bool whole);
void bs_render_log_item(struct bs_json *j, const struct bs_log_item *item);
/* With who was told of it. */
void bs_render_alert(struct bs_json *j, const struct bs_alert_row *row,
                     const struct bs_delivery *told, uint32_t n);
void bs_render_audit(struct bs_json *j, const struct bs_audit_row *row);
/* Members of a token that is stored, into an open object; never its hash. */
void bs_render_token(struct bs_json *j, const struct bs_token_row *row);
/* "next_cursor": "…" or null. */
void bs_render_cursor(struct bs_json *j, int64_t cursor);
