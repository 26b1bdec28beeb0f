/* What is open to everybody: health, readiness, metrics; and the version, for any token. */
#include "api/call.h"

#include "api/render.h"

enum { TEXT_MAX_BYTES = 2 << 20, ALERT_PAGES_MAX = 5, ALERT_PAGE = 200, KINDS_MAX = 64 };

static const char metrics_type[] = "text/plain; version=0.0.4; charset=utf-8";

static struct bs_buf *text_answer(struct bs_call *c, int status, const char *type)
{
    bs_buf_free(&c->answer.body);
    c->answer =
        (struct bs_answer){ .status = status, .type = type, .body = { .max = TEXT_MAX_BYTES } };
    return &c->answer.body;
}

enum bs_next bs_route_version(struct bs_call *c)
{
    struct bs_json *j = bs_call_json(c, 200);

    if (!j)
        return BS_REPLY_NOW;
    bs_json_open(j);
    bs_json_kstr(j, "version", BS_STR(BS_VERSION));
    bs_json_kint(j, "store_version", bs_store_program_version);
    bs_json_kstr_or_null(j, "node", c->api->o.node);
    bs_json_close(j);
    bs_call_json_end(c, j);
    return BS_REPLY_NOW;
}

enum bs_next bs_route_health(struct bs_call *c)
{
    bs_buf_addz(text_answer(c, 200, "text/plain"), "ok\n");
    return BS_REPLY_NOW;
}

enum bs_next bs_route_ready(struct bs_call *c)
{
    const char *why = NULL;
    bool ready = !c->api->o.ready || c->api->o.ready(c->api->o.ctx, &why);
    struct bs_buf *out = text_answer(c, ready ? 200 : 503, "text/plain");

    bs_buf_fmt(out, "%s\n", ready ? "ready" : why ? why : "not ready");
    return BS_REPLY_NOW;
}

/* ---- metrics ---- */

/* Values of labels come from configuration and input: quote, backslash and newline are escaped. */
static void add_label(struct bs_buf *out, const char *name, struct bs_str value)
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

static void add_stat(struct bs_buf *out, const char *metric, const struct bs_stat_row *row,
                     int64_t value)
{
    bs_buf_fmt(out, "%s{", metric);
    add_label(out, "biz_type", row->biz_type);
    bs_buf_addc(out, ',');
    add_label(out, "status", bs_str_of(bs_state_name(row->state)));
    bs_buf_addc(out, ',');
    add_label(out, "currency", row->currency);
    bs_buf_fmt(out, "} %lld\n", (long long)value);
}

static void add_stats(struct bs_buf *out, const struct bs_stat_row *rows, uint32_t n)
{
    bs_buf_addz(out, "# HELP backstop_tasks Tasks by queue, status and currency.\n"
                     "# TYPE backstop_tasks gauge\n");
    for (uint32_t i = 0; i < n; i++)
        add_stat(out, "backstop_tasks", &rows[i], rows[i].count);
    bs_buf_addz(out, "# HELP backstop_task_amount Sum of their amounts in minor units.\n"
                     "# TYPE backstop_task_amount gauge\n");
    for (uint32_t i = 0; i < n; i++) {
        if (rows[i].currency.n)
            add_stat(out, "backstop_task_amount", &rows[i], rows[i].amount);
    }
    bs_buf_addz(out, "# HELP backstop_tasks_unknown Of them those whose outcome is not known.\n"
                     "# TYPE backstop_tasks_unknown gauge\n");
    for (uint32_t i = 0; i < n; i++) {
        if (rows[i].unknown)
            add_stat(out, "backstop_tasks_unknown", &rows[i], rows[i].unknown);
    }
}

static void add_queue(struct bs_buf *out, const char *metric, struct bs_str biz_type, int64_t value)
{
    bs_buf_fmt(out, "%s{", metric);
    add_label(out, "biz_type", biz_type);
    bs_buf_fmt(out, "} %lld\n", (long long)value);
}

static void add_queues(struct bs_buf *out, const struct bs_queue_row *rows, uint32_t n,
                       struct bs_time now)
{
    bs_buf_addz(out, "# HELP backstop_queue_paused Whether a queue is paused.\n"
                     "# TYPE backstop_queue_paused gauge\n");
    for (uint32_t i = 0; i < n; i++)
        add_queue(out, "backstop_queue_paused", rows[i].biz_type, rows[i].paused);
    bs_buf_addz(out, "# HELP backstop_oldest_due_seconds For how long the first due task waits.\n"
                     "# TYPE backstop_oldest_due_seconds gauge\n");
    for (uint32_t i = 0; i < n; i++) {
        int64_t us = rows[i].oldest_due.us ? bs_time_diff(now, rows[i].oldest_due).us : 0;

        add_queue(out, "backstop_oldest_due_seconds", rows[i].biz_type, us > 0 ? us / 1000000 : 0);
    }
}

/* The newest thousand alerts by kind: enough to see what rises, and bounded. */
struct kinds {
    struct bs_str names[KINDS_MAX];
    int64_t counts[KINDS_MAX];
    uint32_t n;
};

static void count_kind(struct kinds *k, const struct bs_alert_row *row)
{
    uint32_t i = 0;

    while (i < k->n && !bs_str_eq(k->names[i], row->kind))
        i++;
    if (i == KINDS_MAX)
        return;
    if (i == k->n) {
        k->names[i] = row->kind;
        k->counts[i] = 0;
        k->n++;
    }
    k->counts[i] += row->count;
}

static bs_rc add_alerts(struct bs_call *c, struct bs_store *s, struct bs_buf *out,
                        struct bs_err *err)
{
    struct kinds k;
    struct bs_alert_filter f = { .limit = ALERT_PAGE };

    k.n = 0;
    for (uint32_t page = 0; page < ALERT_PAGES_MAX; page++) {
        struct bs_alert_row *rows = NULL;
        uint32_t n = 0;

        BS_TRY(bs_store_alerts(s, &f, &c->arena, &rows, &n, err));
        for (uint32_t i = 0; i < n; i++)
            count_kind(&k, &rows[i]);
        if (n < ALERT_PAGE)
            break;
        f.before_id = rows[n - 1].id;
    }
    bs_buf_addz(out, "# HELP backstop_alerts Alert events by kind, of the newest thousand rows.\n"
                     "# TYPE backstop_alerts gauge\n");
    for (uint32_t i = 0; i < k.n; i++) {
        bs_buf_addz(out, "backstop_alerts{");
        add_label(out, "kind", k.names[i]);
        bs_buf_fmt(out, "} %lld\n", (long long)k.counts[i]);
    }
    return BS_OK;
}

static void add_one(struct bs_buf *out, const char *metric, const char *type, const char *help,
                    uint64_t value)
{
    bs_buf_fmt(out, "# HELP %s %s\n# TYPE %s %s\n%s %llu\n", metric, help, metric, type, metric,
               (unsigned long long)value);
}

static void add_seconds(struct bs_buf *out, const char *metric, const char *type, const char *help,
                        uint64_t us)
{
    bs_buf_fmt(out, "# HELP %s %s\n# TYPE %s %s\n%s %llu.%06llu\n", metric, help, metric, type,
               metric, (unsigned long long)(us / 1000000), (unsigned long long)(us % 1000000));
}

static void add_committer(struct bs_buf *out, struct bs_committer *committer)
{
    struct bs_committer_figures f = { 0 };

    bs_committer_figures(committer, &f);
    add_one(out, "backstop_store_writable", "gauge", "Whether the last transaction succeeded.",
            bs_committer_healthy(committer));
    add_one(out, "backstop_commits_total", "counter", "Transactions.", f.commits);
    add_one(out, "backstop_commit_ops_total", "counter", "Operations in them.", f.ops);
    add_one(out, "backstop_commit_failures_total", "counter", "Transactions that failed.",
            f.failures);
    add_one(out, "backstop_commit_reruns_total", "counter",
            "Transactions that were run again after a lost answer.", f.reruns);
    add_seconds(out, "backstop_commit_seconds_total", "counter", "Time in transactions.",
                f.commit_us_sum);
    add_seconds(out, "backstop_commit_seconds_max", "gauge", "The longest transaction.",
                f.commit_us_max);
}

/* Without the store, too: then only the figures of the process are there. */
static void finish_metrics(struct bs_call *c)
{
    bool read = c->answer.status != 0;
    struct bs_buf *out = read ? &c->answer.body : text_answer(c, 200, metrics_type);

    add_one(out, "backstop_store_readable", "gauge", "Whether these figures could be read.", read);
    add_committer(out, c->api->o.committer);
    if (c->api->o.metrics)
        c->api->o.metrics(c->api->o.ctx, out);
}

static bs_rc read_metrics(struct bs_call *c, struct bs_store *s, struct bs_err *err)
{
    BS_CLEANUP(bs_buf_free) struct bs_buf text = { .max = TEXT_MAX_BYTES };
    struct bs_stat_row *stats = NULL;
    struct bs_queue_row *queues = NULL;
    uint32_t stats_n = 0, queues_n = 0;

    BS_TRY(bs_store_stats(s, &c->arena, &stats, &stats_n, err));
    BS_TRY(bs_store_queues(s, &c->arena, &queues, &queues_n, err));
    add_stats(&text, stats, stats_n);
    add_queues(&text, queues, queues_n, bs_now(c->api->o.clock));
    BS_TRY(add_alerts(c, s, &text, err));
    BS_TRY(bs_buf_done(&text, err));
    bs_buf_add(text_answer(c, 200, metrics_type), bs_buf_str(&text));
    return BS_OK;
}

enum bs_next bs_route_metrics(struct bs_call *c)
{
    c->render = finish_metrics;
    bs_call_wait(c);
    bs_call_read(c, read_metrics);
    return BS_REPLY_LATER;
}
