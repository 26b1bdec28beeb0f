/* Start and stop of the served process.
 *
 * Start, each step standing on the ones before:
 *   1. the store, for writing: takes the lock, migrates an empty one, refuses what it cannot serve
 *   2. the committer, its thread: the only writer from now on
 *   3. the engine (without threads): queues, pauses
 *   4. the API and the HTTP server: an address in use is found before any task is claimed
 *   5. the engine's threads: executor, reaper, then the scheduler, which claims
 *   6. maintenance, the port file, alerts about queues without handler, READY
 *
 * Stop, the other way round: no new claims; calls in flight end or are released within the grace;
 * the engine's threads; the HTTP server, which answers everybody who waits; maintenance; the
 * committer, and with it the store and its lock. */
#include "app/server.h"

#include "app/notify.h"
#include "app/server_parts.h"
#include "sys/entropy.h"
#include "sys/files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#ifndef BS_VERSION
#define BS_VERSION "0"
#endif

/* After the grace: for the results of released calls to be written. */
enum { SETTLE_S = 5, ANSWER_S = 5 };

/* ---- what parts tell the server ---- */

static void on_hints(void *ctx, const struct bs_hints *hints)
{
    struct bs_server *s = ctx;
    struct bs_engine *e = atomic_load(&s->hinted);

    if (e)
        bs_engine_hints(e, hints);
}

static void on_health(void *ctx, bool healthy, const struct bs_err *err)
{
    struct bs_server *s = ctx;
    struct bs_alerts *alerts = atomic_load(&s->watch);

    if (alerts)
        bs_alerts_store_health(alerts, healthy, err);
    if (healthy)
        bs_log(BS_LOG_INFO, "store.well", BS_FZ("message", "the store takes writes again"));
    else
        bs_log(BS_LOG_ERROR, "store.failing", BS_FZ("rc", bs_rc_name(err->rc)),
               BS_FZ("message", err->msg));
}

static void on_pause(void *ctx, struct bs_str biz_type, bool paused)
{
    struct bs_server *s = ctx;

    bs_engine_pause(s->engine, biz_type, paused);
}

static bool is_ready(void *ctx, const char **ret_why)
{
    struct bs_server *s = ctx;

    if (atomic_load(&s->draining))
        *ret_why = "the server is stopping";
    else if (!atomic_load(&s->serving))
        *ret_why = "the server is starting";
    else if (!bs_committer_healthy(s->committer))
        *ret_why = "the store does not take writes";
    else
        return true;
    return false;
}

/* ---- starting ---- */

/* A file and a socket each connection, each call in flight, each handle of the store. */
static void raise_descriptors(void)
{
    struct rlimit r;

    if (getrlimit(RLIMIT_NOFILE, &r) != 0 || r.rlim_cur == r.rlim_max)
        return;
    r.rlim_cur = r.rlim_max;
    if (setrlimit(RLIMIT_NOFILE, &r) != 0)
        bs_log(BS_LOG_WARN, "server.descriptors", BS_FN("errno", errno));
}

/* Of the descriptors at most half go to connections from outside: with none left, the calls of
 * accepted tasks would fail and spend their budgets, and the store could not be read. 0: there are
 * enough for the HTTP server's own limit. */
static uint32_t connections_max(void)
{
    enum { ENOUGH = 8192 };
    struct rlimit r;

    if (getrlimit(RLIMIT_NOFILE, &r) != 0 || r.rlim_cur >= ENOUGH)
        return 0;
    uint32_t half = (uint32_t)BS_MAX(r.rlim_cur / 2, (rlim_t)1);
    bs_log(BS_LOG_WARN, "server.descriptors", BS_FN("limit", (int64_t)r.rlim_cur),
           BS_FN("connections_max", half));
    return half;
}

/* While the process was down no task could run: max_age leaves that out. Not knowing it makes tasks
 * older, not wrong, so a store that does not take it yet is left to the committer. */
static void note_downtime(struct bs_store *store, struct bs_time now)
{
    struct bs_op op = { .kind = BS_OP_STOPPED, .now = now }, *ops = &op;
    struct bs_err err = { 0 };
    bs_rc rc = bs_store_time_high(store, &op.stopped.from, &err);

    op.stopped.to = now;
    if (rc == BS_OK && op.stopped.from.us > 0 && bs_time_before(op.stopped.from, now))
        rc = bs_store_apply(store, &ops, 1, &err);
    if (rc != BS_OK)
        bs_log(BS_LOG_WARN, "store.downtime_not_noted", BS_FZ("rc", bs_rc_name(rc)),
               BS_FZ("message", err.msg));
}

static bs_rc start_store(struct bs_server *s, struct bs_err *err)
{
    const struct bs_config *c = bs_server_config(s);
    struct bs_store_options o = { .url = c->store_url, .mode = BS_STORE_WRITER };
    struct bs_store_options reader = { .url = c->store_url, .mode = BS_STORE_READER };
    struct bs_committer_options committer = {
        .clock = s->clock,
        .with_fd = true,
        .on_hints = on_hints,
        .hints_ctx = s,
        .on_health = on_health,
        .health_ctx = s,
    };

    BS_TRY(bs_folder_of(c->store_path, err));
    BS_TRY(bs_store_open(&o, &committer.store, err));
    note_downtime(committer.store, bs_now(s->clock));
    if (bs_committer_new(&committer, &s->committer, err) != BS_OK) {
        bs_store_close(committer.store);
        return err->rc;
    }
    BS_TRY(bs_store_open(&reader, &s->reader, err));
    return bs_thread_start(&s->committer_thread, bs_committer_actor(s->committer), s->clock, err);
}

/* Store time does not go back through a restart: leases, due times and logs were written in it.
 * What is further ahead than a day was written under a wrong clock and is not followed. */
static void go_on_from(struct bs_time high, struct bs_clock *clock)
{
    struct bs_span behind = bs_time_diff(high, bs_now(clock));
    bool followed = behind.us <= bs_time_high_trusted.us;

    if (followed)
        bs_clock_system_not_before(high);
    if (behind.us > BS_SEC(60).us)
        bs_log(BS_LOG_WARN, "clock.behind_store", BS_FN("seconds", behind.us / 1000000),
               BS_FZ("message",
                     followed ? "the clock was ahead, or is behind: the store's time goes on"
                              : "the store has entries from the far future: the clock was wrong, "
                                "or is; what is due then may have to be run by hand"));
}

/* Ids grow through a restart too: they begin after the newest task, whatever the clock says. */
static bs_rc start_time(struct bs_server *s, struct bs_err *err)
{
    BS_CLEANUP(bs_arena_free) struct bs_arena a = { 0 };
    struct bs_task_filter newest = { .limit = 1 };
    struct bs_task_page page = { 0 };
    struct bs_time high = BS_TIME_NONE;

    /* One id of the year 2100 would leave none for the years before it. */
    if (!bs_ids_fit(bs_now(s->clock)))
        return bs_fail(err, BS_E_UNAVAILABLE,
                       "this machine's clock is not between 2020 and 2084: set it");
    bs_ids_init(&s->ids, (int32_t)(bs_entropy_u64() % 1024));
    BS_TRY(bs_store_time_high(s->reader, &high, err));
    BS_TRY(bs_store_tasks(s->reader, &newest, &a, &page, err));
    if (page.n > 0) {
        atomic_store(&s->ids.last, page.items[0].id);
        high = bs_time_max(high, bs_ids_time(page.items[0].id));
    }
    go_on_from(high, s->clock);
    return BS_OK;
}

static bs_rc start_engine(struct bs_server *s, struct bs_err *err)
{
    struct bs_curl_options curl = { .clock = s->clock };
    struct bs_engine_options o = {
        .queues = &s->queues,
        .committer = s->committer,
        .clock = s->clock,
        .ids = &s->ids,
        .node = bs_str_of(bs_server_config(s)->node),
        .seed = bs_entropy_u64(),
        .with_fd = true,
    };

    BS_TRY(bs_curl_new(&curl, &o.caller, err));
    if (bs_engine_new(&o, &s->engine, err) != BS_OK) {
        o.caller->ops->free(o.caller);
        return err->rc;
    }
    atomic_store(&s->hinted, s->engine);
    return BS_OK;
}

/* Pauses survive restarts: the store has them. */
static bs_rc start_pauses(struct bs_server *s, struct bs_err *err)
{
    BS_CLEANUP(bs_arena_free) struct bs_arena a = { 0 };
    struct bs_queue_row *rows = NULL;
    uint32_t n = 0;

    BS_TRY(bs_store_queues(s->reader, &a, &rows, &n, err));
    for (uint32_t i = 0; i < n; i++)
        if (rows[i].paused)
            bs_engine_pause(s->engine, rows[i].biz_type, true);
    return BS_OK;
}

static bs_rc start_api(struct bs_server *s, struct bs_err *err)
{
    const struct bs_config *c = bs_server_config(s);
    struct bs_api_options api = {
        .queues = &s->queues,
        .committer = s->committer,
        .store_url = c->store_url,
        .clock = s->clock,
        .ids = &s->ids,
        .node = bs_str_of(c->node),
        .on_pause = on_pause,
        .metrics = bs_server_metrics,
        .live = bs_server_live,
        .ready = is_ready,
        .ctx = s,
    };
    struct bs_http_options http = {
        .listen = c->listen,
        .socket_path = c->socket,
        .connections_max = connections_max(),
        .body_max = bs_api_body_max,
        .wants_body = bs_api_wants_body,
        .handle = bs_api_handle,
        .refuse = bs_api_refuse,
        .clock = s->clock,
    };

    BS_TRY(bs_api_new(&api, &s->api, err));
    http.ctx = s->api;
    return bs_http_start(&http, &s->http, err);
}

static bs_rc start_threads(struct bs_server *s, struct bs_err *err)
{
    const struct bs_config *c = bs_server_config(s);
    const struct bs_keep_options keep = {
        .queues = &s->queues,
        .committer = s->committer,
        .clock = s->clock,
        .ids = &s->ids,
        .store_url = c->store_url,
        .store_path = c->store_path,
        .with_fd = true,
    };

    BS_TRY(bs_thread_start(&s->executor_thread, bs_engine_executor(s->engine), s->clock, err));
    BS_TRY(bs_thread_start(&s->reaper_thread, bs_engine_reaper(s->engine), s->clock, err));
    BS_TRY(bs_thread_start(&s->scheduler_thread, bs_engine_scheduler(s->engine), s->clock, err));
    BS_TRY(bs_keep_new(&keep, &s->keep, err));
    BS_TRY(bs_thread_start(&s->keep_thread, bs_keep_actor(s->keep), s->clock, err));
    return bs_server_start_alerts(s, bs_entropy_u64(), err);
}

/* Written beside it and renamed, so that whoever waits for the file reads a whole number. */
static bs_rc write_port(const char *path, uint16_t port, struct bs_err *err)
{
    char beside[4096], text[8];
    int n = snprintf(beside, sizeof(beside), "%s.tmp", path);
    int len = snprintf(text, sizeof(text), "%u\n", (unsigned)port);
    int fd =
        n < (int)sizeof(beside) ? open(beside, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600) : -1;
    bool whole = fd >= 0 && write(fd, text, (size_t)len) == len;

    if (fd >= 0)
        close(fd);
    if (!whole || rename(beside, path) != 0)
        return bs_fail(err, BS_E_UNAVAILABLE, "cannot write the port file %.150s (errno %d)", path,
                       errno);
    return BS_OK;
}

static void log_started(struct bs_server *s)
{
    const struct bs_config *c = bs_server_config(s);

    bs_log(BS_LOG_INFO, "server.started", BS_FZ("version", BS_VERSION), BS_FZ("listen", c->listen),
           BS_FN("port", bs_http_port(s->http)), BS_FZ("socket", c->socket),
           BS_FZ("store", c->store_url), BS_FZ("node", c->node), BS_FN("queues", c->queues.n),
           BS_FZ("config", c->file ? c->file : "(defaults)"));
}

/* Everything that answers and nothing that claims. */
static bs_rc start_quiet(struct bs_server *s, struct bs_err *err)
{
    raise_descriptors();
    BS_TRY(start_store(s, err));
    BS_TRY(start_time(s, err));
    BS_TRY(start_engine(s, err));
    BS_TRY(start_pauses(s, err));
    return start_api(s, err);
}

static bs_rc start_all(struct bs_server *s, const char *port_file, struct bs_err *err)
{
    BS_TRY(start_quiet(s, err));
    BS_TRY(start_threads(s, err));
    /* Whoever has read the port may ask at once whether the server is ready. */
    atomic_store(&s->serving, true);
    return port_file ? write_port(port_file, bs_http_port(s->http), err) : BS_OK;
}

bs_rc bs_server_start(const struct bs_server_options *o, struct bs_server **ret, struct bs_err *err)
{
    struct bs_server *s = calloc(1, sizeof(*s));

    if (!s) {
        bs_config_free(o->config);
        return bs_fail(err, BS_E_NOMEM, "no memory for the server");
    }
    s->configs[s->configs_n++] = o->config;
    s->file = o->file;
    s->log_json = o->log_json;
    s->clock = bs_clock_system();
    s->started_us = bs_boot_us();
    bs_log_setup(2, o->log_json ? 1 : o->config->log_form, o->config->log_level);
    atomic_store(&s->queues.now, &o->config->queues);
    bs_rc rc = start_all(s, o->port_file, err);
    if (rc != BS_OK) {
        bs_log(BS_LOG_ERROR, "server.refused", BS_FZ("rc", bs_rc_name(rc)),
               BS_FZ("message", err->msg), BS_FZ("store", o->config->store_url),
               BS_FZ("listen", o->config->listen));
        bs_server_stop(s);
        return rc;
    }
    bs_server_alert_orphans(s);
    log_started(s);
    bs_notify_ready();
    *ret = s;
    return BS_OK;
}

/* ---- stopping ---- */

void bs_server_drain(struct bs_server *s, bool hasten)
{
    struct bs_span grace = hasten ? BS_SEC(0) : bs_server_config(s)->grace;

    bs_log(BS_LOG_INFO, hasten ? "server.hastened" : "server.stopping",
           BS_FN("grace_ms", grace.us / 1000));
    if (!hasten)
        bs_notify_stopping();
    atomic_store(&s->draining, true);
    s->give_up_us = bs_boot_us() + grace.us + BS_SEC(SETTLE_S).us;
    bs_engine_drain(s->engine, bs_time_add(bs_now(s->clock), grace));
}

bool bs_server_drained(struct bs_server *s)
{
    return bs_engine_idle(s->engine) || bs_boot_us() >= s->give_up_us;
}

static void free_all(struct bs_server *s)
{
    struct bs_alerts *alerts = atomic_load(&s->watch);

    bs_keep_quiet(s->keep);
    bs_alerts_quiet(alerts);
    if (s->reader)
        bs_store_close(s->reader);
    /* The committer's last answers go to works of the engine, of maintenance and of the
     * API. */
    if (s->committer)
        bs_committer_free(s->committer);
    if (s->api)
        bs_api_free(s->api);
    if (s->engine)
        bs_engine_free(s->engine);
    bs_keep_free(s->keep);
    bs_alerts_free(alerts);
    for (uint32_t i = 0; i < s->configs_n; i++)
        bs_config_free(s->configs[i]);
    bs_arena_free(&s->arena);
    free(s);
}

bool bs_server_stop(struct bs_server *s)
{
    bool settled = !s->engine || bs_engine_idle(s->engine);
    bool served = atomic_load(&s->serving);

    bs_thread_stop(&s->scheduler_thread);
    bs_thread_stop(&s->reaper_thread);
    bs_thread_stop(&s->executor_thread);
    if (s->http)
        bs_http_stop(s->http, BS_SEC(ANSWER_S));
    bs_thread_stop(&s->keep_thread);
    bs_thread_stop(&s->alert_thread);
    atomic_store(&s->hinted, NULL);
    bs_thread_stop(&s->committer_thread);
    free_all(s);
    if (served)
        bs_log(settled ? BS_LOG_INFO : BS_LOG_WARN, "server.stopped",
               BS_FZ("settled", settled ? "all" : "not all: leases run out by themselves"));
    return settled;
}
