/* The one door: the rules that every submission passes, whoever brings it, and its content's
 * canonical form. Pure. */
#pragma once

#include "base/arena.h"
#include "core/policy.h"
#include "core/task.h"

enum { BS_PAYLOAD_MAX = 256 << 10, BS_EXTRA_MAX = 4 << 10, BS_BATCH_MAX = 1000 };

/* What was asked for. Slices are borrowed from the request's bytes or arena. p NULL: the member was
 * absent. */
struct bs_submission {
    struct bs_str biz_type, biz_id, request_id;
    struct bs_str merchant_no, order_no, payment_no, channel, channel_trade_no, refund_no;
    struct bs_str effect_key, serial_key;
    struct bs_str amount; /* digits as given, without quotes */
    struct bs_str currency;
    struct bs_str payload; /* exact bytes, or the decoded payload_base64 */
    bool payload_is_json;
    struct bs_str source;
    bool has_priority, has_max_retry_count, park;
    int64_t priority, max_retry_count;
    struct bs_str execute_at; /* RFC 3339 */
    struct bs_str delay;      /* as in the configuration: 90s, 5m */
    struct bs_str extra_data; /* exact bytes of the object */
    struct bs_str parent_task_no;
};

/* One broken rule: {field, code, message}. code is stable: REQUIRED, TOO_LONG, BAD_FORMAT,
 * OUT_OF_RANGE, UNKNOWN_VALUE, CONTROL_CHARACTER, BAD_UTF8, CONFLICTS_WITH, DUPLICATE_MEMBER,
 * UNKNOWN_MEMBER, WRONG_TYPE. */
struct bs_field_error {
    const char *field; /* static, or in the arena for unknown members */
    const char *code;
    struct bs_str message;
};

enum { BS_FIELD_ERRORS_MAX = 32 };
struct bs_field_errors {
    struct bs_field_error items[BS_FIELD_ERRORS_MAX];
    uint32_t n;
};

void bs_field_error_add(struct bs_field_errors *e, struct bs_arena *a, const char *field,
                        const char *code, const char *fmt, ...) BS_PRINTF(5, 6);

/* What the door needs to know of the queue; found NULL: no such queue is configured. */
struct bs_door_queue {
    const struct bs_policy *policy;
};

/* Checks every rule of the door and fills the new row (state WAITING; queue unknown and park: true:
 * MANUAL with manual_code UNKNOWN_QUEUE; defaults for merchant_no, effect_key, serial_key, source,
 * priority, max_retry_count; next_execute_at and due_at). id, request times and created_by are the
 * caller's. All broken rules are reported, not only the first. An unknown queue without park: true
 * is an error of biz_type with code UNKNOWN_QUEUE. BS_OK or BS_E_INVALID. */
BS_NODISCARD bs_rc bs_submission_check(const struct bs_submission *s,
                                       const struct bs_door_queue *queue, struct bs_time now,
                                       struct bs_arena *a, struct bs_task *ret,
                                       struct bs_field_errors *errors);

/* Where canonical bytes go (a hash). */
struct bs_sink {
    void (*put)(void *ctx, const void *p, size_t n);
    void *ctx;
};

/* The content of a request_id: every member but execute_at, delay, priority, source, park;
 * unambiguous (each member tagged and length-prefixed), absent differs from empty, defaults are
 * filled in first. */
void bs_request_canonical(const struct bs_task *t, struct bs_str extra_data, struct bs_sink *sink);
/* The content of an effect_key: amount, currency, order_no, payment_no, channel_trade_no,
 * refund_no. */
void bs_effect_canonical(const struct bs_task *t, struct bs_sink *sink);
