/* What is watched, what it is called, and when it is worth an alert. Pure. */
#pragma once

#include "base/money.h"
#include "base/secret.h"
#include "base/time.h"

struct bs_exposure_limit {
    char currency[4];
    int64_t amount; /* minor units */
};

/* Thresholds of one queue; 0: not watched. An alert begins when the figure is at the threshold or
 * above. */
struct bs_alert_limits {
    int64_t manual_growth; /* so many more tasks in MANUAL than at the lowest in `growth_window` */
    struct bs_span manual_age;                /* the oldest task in MANUAL                     */
    struct bs_span oldest_due;                /* the oldest task that is due and not running   */
    int64_t backlog;                          /* WAITING and RETRY together                    */
    int64_t unknown;                          /* tasks with outcome_unknown                    */
    const struct bs_exposure_limit *exposure; /* money in what is not settled   */
    uint32_t exposure_n;
};

/* One receiver of alerts: a signed POST (Standard Webhooks). */
struct bs_alert_webhook {
    struct bs_str name, url;
    struct bs_secret secret;
    struct bs_span timeout;
};

struct bs_alert_conf {
    struct bs_span check_every;   /* how often the figures are judged                        */
    struct bs_span growth_window; /* for manual_growth                                       */
    struct bs_span group_wait;    /* alerts that begin within it go out together             */
    struct bs_span quiet;         /* an alert about events ends when none came for so long   */
    const struct bs_alert_webhook *webhooks;
    uint32_t webhooks_n;
    struct bs_str ping_url; /* the dead man's switch; empty: none */
    struct bs_span ping_every;
};

/* What is told of an alert; bits, so that a set of them can be kept. */
enum bs_alert_phase { BS_ALERT_RAISED = 1, BS_ALERT_RECOVERED = 2 };
#define BS_ALERT_PHASES (BS_ALERT_RAISED | BS_ALERT_RECOVERED)
const char *bs_alert_phase_name(enum bs_alert_phase p);

enum bs_delivery_state { BS_DELIVERY_PENDING, BS_DELIVERY_SENT, BS_DELIVERY_GIVEN_UP };
const char *bs_delivery_state_name(enum bs_delivery_state s);

extern const struct bs_alert_limits bs_alert_limits_default;
extern const struct bs_alert_conf bs_alert_conf_default;
