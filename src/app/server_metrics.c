/* What the process says of itself in Prometheus text. */
#include "app/server_parts.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

static void add(struct bs_buf *out, const char *name, const char *kind, const char *help,
                uint64_t value)
{
    bs_buf_fmt(out, "# HELP %s %s\n# TYPE %s %s\n%s %llu\n", name, help, name, kind, name,
               (unsigned long long)value);
}

/* Microseconds as seconds. */
static void add_seconds(struct bs_buf *out, const char *name, const char *kind, const char *help,
                        uint64_t us)
{
    bs_buf_fmt(out, "# HELP %s %s\n# TYPE %s %s\n%s %llu.%06llu\n", name, help, name, kind, name,
               (unsigned long long)(us / 1000000), (unsigned long long)(us % 1000000));
}

static void add_engine(struct bs_server *s, struct bs_buf *out)
{
    struct bs_engine_figures f = { 0 };

    bs_engine_figures(s->engine, &f);
    add(out, "backstop_claims_total", "counter", "Tasks taken under lease.", f.claims);
    add(out, "backstop_calls_total", "counter", "Handler calls begun.", f.calls);
    add(out, "backstop_looks_total", "counter", "Look-ups begun.", f.looks);
    bs_buf_addz(out, "# HELP backstop_settled_total Executions by their outcome.\n"
                     "# TYPE backstop_settled_total counter\n");
    for (int i = 0; i < BS_OUTCOME_COUNT; i++)
        bs_buf_fmt(out, "backstop_settled_total{outcome=\"%s\"} %llu\n",
                   bs_outcome_name((enum bs_outcome_kind)i), (unsigned long long)f.settled[i]);
    add(out, "backstop_stale_results_total", "counter", "Results that came after the lease.",
        f.stale);
    add(out, "backstop_released_total", "counter", "Executions given back while stopping.",
        f.released);
    add(out, "backstop_calls_running", "gauge", "Executions in flight.", f.running);
    add(out, "backstop_leases_held", "gauge", "Tasks under lease of this process.", f.leased);
}

static void add_store(struct bs_server *s, struct bs_buf *out)
{
    struct bs_keep_figures f = { 0 };

    bs_keep_figures(s->keep, &f);
    add(out, "backstop_wal_bytes", "gauge", "Size of the write-ahead log of the store.",
        (uint64_t)f.wal_bytes);
    add(out, "backstop_checkpoints_total", "counter", "Checkpoints of the store.", f.checkpoints);
    add(out, "backstop_archived_total", "counter", "Tasks moved to history.", f.archived);
    add(out, "backstop_purged_total", "counter", "Tasks deleted from history.", f.purged);
    add_seconds(out, "backstop_history_pass_timestamp_seconds", "gauge",
                "When the last pass over finished tasks ended, store time; 0: none yet.",
                (uint64_t)f.last_pass.us);
}

static void add_http(struct bs_server *s, struct bs_buf *out)
{
    struct bs_http_figures f = { 0 };

    bs_http_figures(s->http, &f);
    add(out, "backstop_http_requests_total", "counter", "HTTP requests.", f.requests);
    add(out, "backstop_http_refused_total", "counter", "Requests the server itself refused.",
        f.refused);
    add(out, "backstop_http_timeouts_total", "counter", "Requests whose answer came too late.",
        f.timeouts);
    add(out, "backstop_http_connections", "gauge", "Open connections.", f.connections);
    add(out, "backstop_http_waiting", "gauge", "Requests that wait for an answer.", f.waiting);
}

static void add_process(struct bs_server *s, struct bs_buf *out)
{
    struct rusage u = { 0 };
    unsigned long long size = 0, resident = 0;
    FILE *f = fopen("/proc/self/statm", "re");

    if (f) {
        if (fscanf(f, "%llu %llu", &size, &resident) != 2)
            resident = 0;
        fclose(f);
        add(out, "process_resident_memory_bytes", "gauge", "Resident memory.",
            resident * (uint64_t)sysconf(_SC_PAGESIZE));
    }
    if (getrusage(RUSAGE_SELF, &u) == 0)
        add_seconds(out, "process_cpu_seconds_total", "counter", "Processor time.",
                    (uint64_t)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1000000 +
                        (uint64_t)(u.ru_utime.tv_usec + u.ru_stime.tv_usec));
    add_seconds(out, "backstop_uptime_seconds", "gauge", "Time since the start.",
                (uint64_t)(bs_boot_us() - s->started_us));
}

void bs_server_metrics(void *ctx, struct bs_buf *out)
{
    struct bs_server *s = ctx;

    /* The HTTP thread runs a moment before s->http is set. */
    if (!atomic_load(&s->serving))
        return;
    add_engine(s, out);
    add_store(s, out);
    add_http(s, out);
    bs_alerts_metrics(atomic_load(&s->watch), out);
    add_process(s, out);
}

static void describe(const struct bs_engine_queue *q, struct bs_queue_live *ret)
{
    *ret = (struct bs_queue_live){ .running = q->running,
                                   .held_until = q->until,
                                   .breaker_open = q->breaker_open,
                                   .since = q->since,
                                   .openings = q->openings,
                                   .calls = q->calls,
                                   .waits = q->waits,
                                   .settles = q->ends };
    memcpy(ret->biz_type, q->biz_type, sizeof(ret->biz_type));
    _Static_assert(sizeof(ret->why) == sizeof(q->why), "the whole text");
    memcpy(ret->why, q->why, sizeof(ret->why));
}

uint32_t bs_server_live(void *ctx, struct bs_queue_live *ret, uint32_t max)
{
    struct bs_server *s = ctx;
    struct bs_engine_queue *items = calloc((size_t)max + 1, sizeof(*items));
    uint32_t n = items ? bs_engine_queues(s->engine, items, max) : 0;

    for (uint32_t i = 0; i < n; i++)
        describe(&items[i], &ret[i]);
    free(items);
    return n;
}
