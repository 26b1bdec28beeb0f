/* How many tasks waited for a person lately: the growth window of each queue in a bounded ring. */
#include "alert/parts.h"

#include <stdlib.h>

struct bs_alert_feed *bs_alert_feed_of(struct bs_alerts *a, struct bs_str biz_type,
                                       struct bs_time now)
{
    struct bs_alert_feed **at = &a->feeds;

    while (*at && !bs_str_is(biz_type, (*at)->biz_type))
        at = &(*at)->next;
    if (*at || biz_type.n >= sizeof((*at)->biz_type))
        return *at;
    *at = calloc(1, sizeof(**at));
    if (*at) {
        memcpy((*at)->biz_type, biz_type.p, biz_type.n);
        (*at)->since = now;
    }
    return *at;
}

static struct bs_alert_sample *sample(struct bs_alert_feed *f, uint32_t i)
{
    return &f->samples[(f->first + i) % BS_ALERT_SAMPLES];
}

static void forget_old(struct bs_alert_feed *f, struct bs_span window, struct bs_time now)
{
    while (f->n > 0 && bs_time_diff(now, sample(f, 0)->at).us > window.us) {
        f->first = (f->first + 1) % BS_ALERT_SAMPLES;
        f->n--;
    }
}

void bs_alert_feed_sample(struct bs_alert_feed *f, int64_t manual, struct bs_span window,
                          struct bs_time now)
{
    int64_t part_us = window.us / (BS_ALERT_SAMPLES - 4) + 1;

    forget_old(f, window, now);
    struct bs_alert_sample *last = f->n ? sample(f, f->n - 1) : NULL;
    if (last && (bs_time_diff(now, last->at).us < part_us || f->n == BS_ALERT_SAMPLES)) {
        last->low = BS_MIN(last->low, manual);
        return;
    }
    f->n++;
    *sample(f, f->n - 1) = (struct bs_alert_sample){ now, manual };
}

int64_t bs_alert_feed_low(const struct bs_alert_feed *f)
{
    int64_t low = INT64_MAX;

    for (uint32_t i = 0; i < f->n; i++)
        low = BS_MIN(low, f->samples[(f->first + i) % BS_ALERT_SAMPLES].low);
    return f->n ? low : 0;
}
