/* From a task to the bytes of a request: URL, headers, body. Everything in the attempt's arena. No
 * I/O, no clock. */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "core/queue.h"
#include "core/task.h"

/* The declared address with its {placeholders} filled in, percent-encoded. BS_E_NOT_FOUND: the task
 * does not have a member that is asked for (*ret_missing names it); BS_E_NOMEM. */
BS_NODISCARD bs_rc bs_request_url(struct bs_arena *a, struct bs_str pattern,
                                  const struct bs_task *t, const char **ret_url,
                                  struct bs_str *ret_missing);

struct bs_headers {
    const char **items;
    uint32_t n, max;
    struct bs_arena *arena; /* its failed flag tells */
};
/* One "Name: value"; bytes that have no place in a header are percent-encoded. */
void bs_header_add(struct bs_headers *h, const char *name, struct bs_str value);
/* traceparent (W3C): one trace a task, one span an attempt, the same whenever it is asked. */
void bs_header_trace(struct bs_headers *h, const struct bs_task *t, uint64_t seed);
/* webhook-id, webhook-timestamp and, with a secret, webhook-signature over the body. */
void bs_header_sign(struct bs_headers *h, const struct bs_secret *secret, const struct bs_task *t,
                    struct bs_time now, struct bs_str body);

enum { BS_REQUEST_BODY_MAX = 1 << 20 };
/* What a handler is told of a task. `order` is the look-up's reply object, p NULL without one. */
BS_NODISCARD bs_rc bs_request_body(struct bs_buf *out, const struct bs_task *t, struct bs_str order,
                                   struct bs_err *err);
/* The decimal text of an id. */
struct bs_str bs_task_no(struct bs_arena *a, int64_t id);
