/* One metric after the other, each with a line for every queue. */
#include "api/metrics.h"

void bs_metric_label(struct bs_buf *out, const char *name, struct bs_str value)
{
    bs_buf_fmt(out, "%s=\"", name);
    for (size_t i = 0; i < value.n; i++) {
        if (value.p[i] == '"' || value.p[i] == '\\')
            bs_buf_addc(out, '\\');
        if (value.p[i] == '\n')
            bs_buf_addz(out, "\\n");
        else
            bs_buf_addc(out, value.p[i]);
    }
    bs_buf_addc(out, '"');
}

static void head(struct bs_buf *out, const char *metric, const char *type, const char *help)
{
    bs_buf_fmt(out, "# HELP %s %s\n# TYPE %s %s\n", metric, help, metric, type);
}

/* metric{biz_type="…" */
static void begin(struct bs_buf *out, const char *metric, struct bs_str biz_type)
{
    bs_buf_fmt(out, "%s{", metric);
    bs_metric_label(out, "biz_type", biz_type);
}

static void add_label(struct bs_buf *out, const char *name, struct bs_str value)
{
    bs_buf_addc(out, ',');
    bs_metric_label(out, name, value);
}

static void end(struct bs_buf *out, int64_t value)
{
    bs_buf_fmt(out, "} %lld\n", (long long)value);
}

/* ---- from the store ---- */

static void add_counts(struct bs_buf *out, const struct bs_figures *f)
{
    head(out, "backstop_tasks", "gauge", "Tasks by queue and status.");
    for (uint32_t i = 0; i < f->n; i++) {
        for (enum bs_state state = BS_STATE_NONE + 1; state < BS_STATE_COUNT; state++) {
            begin(out, "backstop_tasks", f->queues[i].biz_type);
            add_label(out, "status", bs_str_of(bs_state_name(state)));
            end(out, f->queues[i].counts[state]);
        }
    }
    head(out, "backstop_tasks_unknown", "gauge", "Tasks whose outcome is not known.");
    for (uint32_t i = 0; i < f->n; i++) {
        begin(out, "backstop_tasks_unknown", f->queues[i].biz_type);
        end(out, f->queues[i].unknown);
    }
}

static void add_amounts_of(struct bs_buf *out, struct bs_str biz_type,
                           const struct bs_money_figures *m)
{
    for (enum bs_state state = BS_STATE_NONE + 1; state < BS_STATE_COUNT; state++) {
        begin(out, "backstop_tasks_amount", biz_type);
        add_label(out, "status", bs_str_of(bs_state_name(state)));
        add_label(out, "currency", m->currency);
        end(out, m->amounts[state]);
    }
}

static void add_amounts(struct bs_buf *out, const struct bs_figures *f)
{
    head(out, "backstop_tasks_amount", "gauge", "Sum of their amounts in minor units.");
    for (uint32_t i = 0; i < f->n; i++)
        for (uint32_t m = 0; m < f->queues[i].money_n; m++)
            add_amounts_of(out, f->queues[i].biz_type, &f->queues[i].money[m]);
    head(out, "backstop_exposure_amount", "gauge",
         "Money in tasks that are not settled, in minor units.");
    for (uint32_t i = 0; i < f->n; i++) {
        for (uint32_t m = 0; m < f->queues[i].money_n; m++) {
            begin(out, "backstop_exposure_amount", f->queues[i].biz_type);
            add_label(out, "currency", f->queues[i].money[m].currency);
            end(out, bs_exposure_of(&f->queues[i].money[m]));
        }
    }
}

/* Whole seconds since then; 0 where there is none, or it lies ahead. */
static int64_t age(struct bs_time since, struct bs_time now)
{
    int64_t us = since.us ? bs_time_diff(now, since).us : 0;

    return us > 0 ? us / 1000000 : 0;
}

static void add_ages(struct bs_buf *out, const struct bs_figures *f, struct bs_time now)
{
    head(out, "backstop_queue_paused", "gauge", "Whether a queue is paused.");
    for (uint32_t i = 0; i < f->n; i++) {
        begin(out, "backstop_queue_paused", f->queues[i].biz_type);
        end(out, f->queues[i].row.paused);
    }
    head(out, "backstop_oldest_due_seconds", "gauge", "For how long the first due task waits.");
    for (uint32_t i = 0; i < f->n; i++) {
        begin(out, "backstop_oldest_due_seconds", f->queues[i].biz_type);
        end(out, age(f->queues[i].row.oldest_due, now));
    }
    head(out, "backstop_oldest_manual_seconds", "gauge",
         "For how long the first task waits for a person.");
    for (uint32_t i = 0; i < f->n; i++) {
        begin(out, "backstop_oldest_manual_seconds", f->queues[i].biz_type);
        end(out, age(f->queues[i].row.oldest_manual, now));
    }
}

void bs_metrics_figures(struct bs_buf *out, const struct bs_figures *f, struct bs_time now)
{
    add_counts(out, f);
    add_amounts(out, f);
    add_ages(out, f, now);
}

/* ---- from this process ---- */

/* Seconds without needless zeros: 0.0025, 1, 3600. */
static void add_bound(struct bs_buf *out, struct bs_span d)
{
    int64_t part = d.us % 1000000;
    char text[8];

    bs_buf_fmt(out, "%lld", (long long)(d.us / 1000000));
    if (part == 0)
        return;
    snprintf(text, sizeof(text), "%06lld", (long long)part);
    size_t n = 6;
    while (text[n - 1] == '0')
        n--;
    bs_buf_addc(out, '.');
    bs_buf_add(out, (struct bs_str){ text, n });
}

static void add_hist(struct bs_buf *out, const char *metric, struct bs_str biz_type,
                     const struct bs_hist *h)
{
    struct bs_hist_view v;
    uint64_t sofar = 0;

    bs_hist_read(h, &v);
    for (size_t i = 0; i <= BS_HIST_BOUNDS; i++) {
        sofar += v.counts[i];
        bs_buf_fmt(out, "%s_bucket{", metric);
        bs_metric_label(out, "biz_type", biz_type);
        bs_buf_addz(out, ",le=\"");
        if (i < BS_HIST_BOUNDS)
            add_bound(out, bs_hist_bounds[i]);
        else
            bs_buf_addz(out, "+Inf");
        bs_buf_fmt(out, "\"} %llu\n", (unsigned long long)sofar);
    }
    bs_buf_fmt(out, "%s_sum{", metric);
    bs_metric_label(out, "biz_type", biz_type);
    bs_buf_fmt(out, "} %llu.%06llu\n", (unsigned long long)(v.sum_us / 1000000),
               (unsigned long long)(v.sum_us % 1000000));
    bs_buf_fmt(out, "%s_count{", metric);
    bs_metric_label(out, "biz_type", biz_type);
    bs_buf_fmt(out, "} %llu\n", (unsigned long long)v.count);
}

static void add_hists(struct bs_buf *out, const struct bs_queue_live *items, uint32_t n)
{
    head(out, "backstop_call_seconds", "histogram", "How long handler calls take.");
    for (uint32_t i = 0; i < n; i++)
        add_hist(out, "backstop_call_seconds", bs_str_of(items[i].biz_type), items[i].calls);
    head(out, "backstop_wait_seconds", "histogram", "From being due to the start of an execution.");
    for (uint32_t i = 0; i < n; i++)
        add_hist(out, "backstop_wait_seconds", bs_str_of(items[i].biz_type), items[i].waits);
    head(out, "backstop_settle_seconds", "histogram", "From acceptance to SUCCESS.");
    for (uint32_t i = 0; i < n; i++)
        add_hist(out, "backstop_settle_seconds", bs_str_of(items[i].biz_type), items[i].settles);
}

static void add_gauges(struct bs_buf *out, const struct bs_queue_live *items, uint32_t n,
                       struct bs_time now)
{
    head(out, "backstop_queue_running", "gauge", "Executions of a queue in flight.");
    for (uint32_t i = 0; i < n; i++) {
        begin(out, "backstop_queue_running", bs_str_of(items[i].biz_type));
        end(out, items[i].running);
    }
    head(out, "backstop_queue_held_seconds", "gauge",
         "For how long nothing is called: Retry-After, or a breaker that is open.");
    for (uint32_t i = 0; i < n; i++) {
        int64_t us = bs_time_diff(items[i].held_until, now).us;
        begin(out, "backstop_queue_held_seconds", bs_str_of(items[i].biz_type));
        end(out, items[i].held_until.us && us > 0 ? (us + 999999) / 1000000 : 0);
    }
}

static void add_breakers(struct bs_buf *out, const struct bs_queue_live *items, uint32_t n)
{
    head(out, "backstop_breaker_open", "gauge", "Whether the breaker of a queue has tripped.");
    for (uint32_t i = 0; i < n; i++) {
        begin(out, "backstop_breaker_open", bs_str_of(items[i].biz_type));
        end(out, items[i].breaker_open);
    }
    head(out, "backstop_breaker_openings_total", "counter", "How often it tripped.");
    for (uint32_t i = 0; i < n; i++) {
        begin(out, "backstop_breaker_openings_total", bs_str_of(items[i].biz_type));
        end(out, items[i].openings);
    }
}

void bs_metrics_live(struct bs_buf *out, const struct bs_queue_live *items, uint32_t n,
                     struct bs_time now)
{
    add_gauges(out, items, n, now);
    add_breakers(out, items, n);
    add_hists(out, items, n);
}
