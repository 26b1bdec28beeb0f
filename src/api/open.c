/* What is open to everybody: health, readiness, metrics; and the version, for any token. */
#include "api/call.h"
#include "api/metrics.h"
#include "api/render.h"

enum {
    TEXT_MAX_BYTES = 32 << 20,
    ALERT_PAGES_MAX = 5,
    ALERT_PAGE = 200,
    KINDS_MAX = 64,
    READS_MAX = 16
};

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
        bs_metric_label(out, "kind", k.names[i]);
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

static void add_live(struct bs_call *c, struct bs_buf *out)
{
    BS_CLEANUP(bs_arena_free) struct bs_arena a = { 0 };
    struct bs_queue_live *items = NULL;
    uint32_t n = bs_figures_live(&c->api->o, &a, &items);

    if (n > 0)
        bs_metrics_live(out, items, n, bs_now(c->api->o.clock));
}

/* Without the store, too: then only the figures of the process are there. */
static void finish_metrics(struct bs_call *c)
{
    bool read = c->answer.status != 0;
    struct bs_buf *out = read ? &c->answer.body : text_answer(c, 200, metrics_type);

    add_one(out, "backstop_store_readable", "gauge", "Whether these figures could be read.", read);
    add_committer(out, c->api->o.committer);
    add_live(c, out);
    if (c->api->o.metrics)
        c->api->o.metrics(c->api->o.ctx, out);
}

static bs_rc read_metrics(struct bs_call *c, struct bs_store *s, struct bs_err *err)
{
    BS_CLEANUP(bs_buf_free) struct bs_buf text = { .max = TEXT_MAX_BYTES };
    struct bs_figures figures;

    BS_TRY(bs_figures_read(&c->api->o, s, &c->arena, &figures, err));
    bs_metrics_figures(&text, &figures, bs_now(c->api->o.clock));
    BS_TRY(add_alerts(c, s, &text, err));
    BS_TRY(bs_buf_done(&text, err));
    bs_buf_add(text_answer(c, 200, metrics_type), bs_buf_str(&text));
    return BS_OK;
}

/* Nobody needs a token here, so only a few such reads may wait: the rest of the queue is for those
 * who have one. */
enum bs_next bs_route_metrics(struct bs_call *c)
{
    if (bs_readers_waiting_for_anybody(c->api->readers) >= READS_MAX) {
        bs_call_problem(c, BS_PROBLEM_BUSY, "too much is being read; try again");
        return BS_REPLY_NOW;
    }
    c->read.for_anybody = true;
    c->render = finish_metrics;
    bs_call_wait(c);
    bs_call_read(c, read_metrics);
    return BS_REPLY_LATER;
}
