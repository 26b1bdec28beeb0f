/* Instants and spans as values that the compiler keeps apart. Microseconds, UTC. Pure. */
#pragma once

#include "base/base.h"
#include "base/buf.h"

struct bs_time {
    int64_t us; /* since the Unix epoch; 0 means "not set" */
};

struct bs_span {
    int64_t us;
};

#define BS_US(n) ((struct bs_span){ (int64_t)(n) })
#define BS_MS(n) ((struct bs_span){ (int64_t)(n)*1000 })
#define BS_SEC(n) ((struct bs_span){ (int64_t)(n)*1000000 })
#define BS_NEVER ((struct bs_time){ INT64_MAX })
#define BS_TIME_NONE ((struct bs_time){ 0 })

/* Saturating: never wraps. */
struct bs_time bs_time_add(struct bs_time t, struct bs_span d);
struct bs_span bs_time_diff(struct bs_time later, struct bs_time earlier);

static inline bool bs_time_before(struct bs_time a, struct bs_time b)
{
    return a.us < b.us;
}

static inline struct bs_time bs_time_min(struct bs_time a, struct bs_time b)
{
    return a.us < b.us ? a : b;
}

static inline struct bs_time bs_time_max(struct bs_time a, struct bs_time b)
{
    return a.us > b.us ? a : b;
}

/* RFC 3339 with microseconds and Z: 2026-11-30T16:03:47.000000Z. */
void bs_time_write(struct bs_buf *b, struct bs_time t);
/* RFC 3339, any offset, up to 9 fraction digits (cut to microseconds). BS_E_INVALID otherwise. */
BS_NODISCARD bs_rc bs_time_parse(struct bs_str s, struct bs_time *ret, struct bs_err *err);
/* The three HTTP date forms of RFC 9110 5.6.7. */
BS_NODISCARD bs_rc bs_time_parse_http(struct bs_str s, struct bs_time *ret);
/* 500ms 10s 5m 1h 30d; one number, one unit; ≥ 0. */
BS_NODISCARD bs_rc bs_span_parse(struct bs_str s, struct bs_span *ret, struct bs_err *err);
/* The shortest exact form of the above: 90s, 1500ms. */
void bs_span_write(struct bs_buf *b, struct bs_span d);
