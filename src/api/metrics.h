/* Figures of queues in Prometheus' text format. Any thread. */
#pragma once

#include "api/figures.h"

/* name="value", with quote, backslash and newline of the value escaped. */
void bs_metric_label(struct bs_buf *out, const char *name, struct bs_str value);
/* What the store keeps. */
void bs_metrics_figures(struct bs_buf *out, const struct bs_figures *f, struct bs_time now);
/* What this process sees; also while the store cannot be read. */
void bs_metrics_live(struct bs_buf *out, const struct bs_queue_live *items, uint32_t n,
                     struct bs_time now);
