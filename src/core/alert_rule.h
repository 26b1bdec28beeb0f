/* When the state of a queue is worth an alert, and when it is well again: figures of one moment,
 * limits and what is open in; begins and ends with their words out. Pure.
 *
 * Levels end below 80 % of their limit, ages below it. While a queue is paused or its breaker is
 * open, what follows from that (oldest_due, backlog) does not begin: the cause is the alert. */
#pragma once

#include "core/alert.h"

/* One queue at one moment. */
struct bs_alert_figures {
    struct bs_str biz_type;
    int64_t manual, backlog, unknown;
    int64_t manual_low; /* the fewest in MANUAL within the growth window             */
    bool window_full;   /* the growth window has been watched from its beginning     */
    struct bs_time oldest_due, oldest_manual; /* 0: none */
    const struct bs_exposure_limit *exposure; /* what is not settled, by currency    */
    uint32_t exposure_n;
    bool paused, breaker_open;
    struct bs_str pause_why, breaker_why;
    struct bs_time watched_since; /* the process runs since                          */
    struct bs_time gated_last;    /* when it was last seen paused or behind its breaker; 0: never */
};

/* An alert that is open. */
struct bs_alert_open {
    struct bs_str kind, subject;
};

struct bs_alert_verdict {
    bool begins; /* else it ends */
    const char *kind;
    char subject[40]; /* biz_type; of exposure: with the currency */
    char message[512];
};

enum { BS_ALERT_QUEUE_KINDS = 8, BS_EXPOSURE_MAX = 32 };
/* Most verdicts about one queue with so many open alerts. */
#define BS_ALERT_VERDICTS_MAX(open_n)                                                              \
    ((uint32_t)(BS_ALERT_QUEUE_KINDS + BS_EXPOSURE_MAX) + (open_n))

struct bs_alert_judgement {
    const struct bs_alert_figures *figures;
    const struct bs_alert_limits *limits;
    const struct bs_alert_open *open; /* conditions of this queue */
    uint32_t open_n;
    struct bs_span window; /* for manual_growth */
    struct bs_time now;
};
/* Returns how many of ret were written; ret has room for BS_ALERT_VERDICTS_MAX. What does not
 * change is not written. At most BS_EXPOSURE_MAX currencies are judged. */
uint32_t bs_alert_judge(const struct bs_alert_judgement *j, struct bs_alert_verdict *ret);

/* Whether an alert of this kind lasts until its condition ends; else it is about single events and
 * ends when none came for a while. */
bool bs_alert_is_condition(struct bs_str kind);
