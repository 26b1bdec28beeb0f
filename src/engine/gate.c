/* Whether a job may start: the breakers of its two endpoints, the pause that a host asked for, the
 * limit of the host, the queue's rate. What shuts a queue is told to the scheduler, which then
 * claims nothing for it. */
#include "engine/parts.h"

#include "base/plant.h"
#include "base/text.h"
#include "sys/log.h"

#include <stdio.h>
#include <stdlib.h>

/* The steps of clocks and threads, made up for. */
static const struct bs_span pace_slack = { 20000 };

static const char *const endpoint_names[] = {
    [BS_ENDPOINT_LOOK] = "order_check", [BS_ENDPOINT_HANDLER] = "handler"
};

/* ---- hosts ---- */

static uint32_t limit_of(const struct bs_executor *x, struct bs_str name)
{
    const struct bs_host_conf *conf = bs_host_find(x->seen, name);

    return conf ? conf->concurrency : UINT32_MAX;
}

static struct bs_host *host_of(struct bs_executor *x, struct bs_str name)
{
    for (struct bs_host *h = x->hosts; h; h = h->next)
        if (bs_str_eq(h->name, name))
            return h;
    struct bs_host *h = name.n ? calloc(1, sizeof(*h) + name.n) : NULL;
    if (!h)
        return NULL;
    memcpy(h + 1, name.p, name.n);
    h->name = (struct bs_str){ (const char *)(h + 1), name.n };
    h->limit = limit_of(x, name);
    h->next = x->hosts;
    x->hosts = h;
    return h;
}

void bs_gates_done(struct bs_executor *x)
{
    while (x->hosts) {
        struct bs_host *next = x->hosts->next;

        free(x->hosts);
        x->hosts = next;
    }
}

static bool paused(const struct bs_host *h, struct bs_time now)
{
    return h && bs_time_before(now, h->paused_until) && !BS_PLANT(HOST_PAUSE_IGNORED);
}

/* ---- the gate: what everybody else sees of it ---- */

static struct bs_gate gate_of(const struct bs_line *line, struct bs_time now)
{
    struct bs_gate g = line->gate;

    g.until = g.since = BS_TIME_NONE;
    g.probing = false;
    for (uint32_t i = 0; i < BS_ENDPOINT_COUNT; i++) {
        const struct bs_breaker *b = &line->breakers[i];

        if (bs_breaker_open(b)) {
            g.until = bs_time_max(g.until, b->open_until);
            g.since = g.probing ? bs_time_min(g.since, b->opened_at) : b->opened_at;
            g.probing = true;
        }
        if (paused(line->hosts[i], now))
            g.until = bs_time_max(g.until, line->hosts[i]->paused_until);
    }
    return g;
}

static void refresh(struct bs_executor *x, struct bs_line *line, struct bs_time now)
{
    struct bs_gate g = gate_of(line, now);

    if (g.until.us == line->gate.until.us && g.probing == line->gate.probing &&
        g.openings == line->told.openings)
        return;
    line->gate = g;
    bs_engine_tell_gate(x->engine, line);
}

/* ---- following the configuration ---- */

/* Running jobs hold places at the hosts that the line has. */
static void move_places(struct bs_line *line, bool give)
{
    for (uint32_t i = 0; i < BS_ENDPOINT_COUNT; i++) {
        if (line->hosts[i] && give)
            line->hosts[i]->running += line->running;
        else if (line->hosts[i])
            line->hosts[i]->running -= line->running;
    }
}

/* An endpoint at another address is another endpoint. */
static void forget_breakers(struct bs_line *line, const struct bs_queue_conf *conf)
{
    if (!line->conf)
        return;
    if (!bs_str_eq(line->conf->handler_url, conf->handler_url))
        line->breakers[BS_ENDPOINT_HANDLER] = (struct bs_breaker){ 0 };
    if (line->conf->look != conf->look || !bs_str_eq(line->conf->look_url, conf->look_url))
        line->breakers[BS_ENDPOINT_LOOK] = (struct bs_breaker){ 0 };
}

void bs_line_follow(struct bs_executor *x, struct bs_line *line, const struct bs_queue_conf *conf,
                    struct bs_time now)
{
    if (line->conf == conf)
        return;
    struct bs_host *handler = host_of(x, conf->handler_host);
    struct bs_host *look = host_of(x, conf->look_host);

    move_places(line, false);
    line->hosts[BS_ENDPOINT_HANDLER] = handler;
    line->hosts[BS_ENDPOINT_LOOK] = look == handler ? NULL : look;
    move_places(line, true);
    forget_breakers(line, conf);
    line->conf = conf;
    refresh(x, line, now);
}

void bs_gates_follow(struct bs_executor *x, struct bs_time now)
{
    const struct bs_queues *q = bs_queues_now(x->engine->options.queues);

    if (q == x->seen)
        return;
    x->seen = q;
    for (struct bs_host *h = x->hosts; h; h = h->next)
        h->limit = limit_of(x, h->name);
    for (struct bs_line *line = x->lines; line; line = line->next) {
        const struct bs_queue_conf *conf = bs_queue_find(q, line->biz_type);

        if (conf)
            bs_line_follow(x, line, conf, now);
    }
}

/* ---- may it start ---- */

const char *bs_line_shut(const struct bs_line *line, const struct bs_job *job, struct bs_time now)
{
    for (uint32_t i = 0; i < BS_ENDPOINT_COUNT; i++) {
        const struct bs_breaker *b = &line->breakers[i];

        if (bs_breaker_open(b) && !BS_PLANT(BREAKER_IGNORED) &&
            (!job->probe || bs_time_before(now, b->open_until)))
            return "the breaker is open";
        if (paused(line->hosts[i], now))
            return "the host asked for a pause";
    }
    return NULL;
}

bool bs_line_free(const struct bs_line *line, struct bs_time now, struct bs_time *ret_when)
{
    *ret_when = bs_pace_when(&line->pace, &line->conf->rate, pace_slack);
    for (uint32_t i = 0; i < BS_ENDPOINT_COUNT; i++) {
        const struct bs_host *h = line->hosts[i];

        if (h && h->running >= h->limit && !BS_PLANT(HOST_LIMIT_IGNORED))
            return false;
    }
    return !bs_time_before(now, *ret_when);
}

void bs_line_began(struct bs_line *line, struct bs_time now)
{
    atomic_store(&line->shown_running, ++line->running);
    for (uint32_t i = 0; i < BS_ENDPOINT_COUNT; i++)
        if (line->hosts[i])
            line->hosts[i]->running++;
    bs_pace_take(&line->pace, &line->conf->rate, 1, now);
}

void bs_line_ended(struct bs_line *line)
{
    BS_ASSERT(line->running > 0);
    atomic_store(&line->shown_running, --line->running);
    for (uint32_t i = 0; i < BS_ENDPOINT_COUNT; i++) {
        if (!line->hosts[i])
            continue;
        BS_ASSERT(line->hosts[i]->running > 0);
        line->hosts[i]->running--;
    }
}

/* ---- after an exchange ---- */

static void pause_host(struct bs_job *job, enum bs_endpoint which, struct bs_time now)
{
    const struct bs_facts *f = &job->call.facts;
    struct bs_executor *x = job->executor;
    struct bs_line *line = job->line;
    struct bs_host *h = line->hosts[which] ? line->hosts[which] : line->hosts[BS_ENDPOINT_HANDLER];
    struct bs_time until = bs_time_add(now, f->retry_after.delay);

    if (!h || f->wire != BS_WIRE_REPLIED || !f->retry_after.given)
        return;
    if ((f->status != 429 && f->status != 503) || !bs_time_before(h->paused_until, until))
        return;
    if (!paused(h, now))
        bs_log(BS_LOG_WARN, "host.paused", BS_F("host", h->name), BS_F("biz_type", line->biz_type),
               BS_FN("status", f->status), BS_FN("seconds", f->retry_after.delay.us / 1000000));
    h->paused_until = until;
    for (struct bs_line *other = x->lines; other; other = other->next)
        if (other->hosts[0] == h || other->hosts[1] == h)
            refresh(x, other, now);
}

static void say_why(struct bs_line *line, enum bs_endpoint which, const struct bs_outcome *o)
{
    const struct bs_breaker *b = &line->breakers[which];
    bool fault = o->reach == BS_REACH_FAULT;
    struct bs_str message = bs_utf8_cut(o->message, 240);

    (void)snprintf(
        line->gate.why, sizeof(line->gate.why), "%s: %u %s in a row, the last %.*s: %.*s",
        endpoint_names[which], fault ? b->faults : b->refusals,
        fault ? "endpoint faults" : "failed connections", BS_STR_FMT(o->code), BS_STR_FMT(message));
}

static void log_change(const struct bs_line *line, enum bs_endpoint which,
                       enum bs_breaker_change change)
{
    static const char *const events[] = { [BS_BREAKER_OPENED] = "breaker.opened",
                                          [BS_BREAKER_REOPENED] = "breaker.probe_failed",
                                          [BS_BREAKER_CLOSED] = "breaker.closed" };

    bs_log(change == BS_BREAKER_OPENED ? BS_LOG_WARN : BS_LOG_INFO, events[change],
           BS_F("biz_type", line->biz_type), BS_FZ("endpoint", endpoint_names[which]),
           BS_FN("cooldown_ms", line->breakers[which].cooldown.us / 1000),
           BS_FZ("message", change == BS_BREAKER_CLOSED ? "" : line->gate.why));
}

/* Whatever comes back while the breaker is open, but for what tripped it, spends no budget. */
static void spare(const struct bs_breaker *b, bool was_open, struct bs_outcome *o)
{
    bool bad = o->reach == BS_REACH_FAULT || o->reach == BS_REACH_REFUSED;

    if (!bad || !bs_breaker_open(b))
        return;
    if (was_open && o->kind == BS_OUT_FAILED && !BS_PLANT(BREAKER_SPENDS))
        o->kind = BS_OUT_NOT_PROCESSED;
    o->behind_breaker = o->kind == BS_OUT_NOT_PROCESSED;
    o->not_before = b->open_until;
}

void bs_job_reached(struct bs_job *job, enum bs_endpoint which, enum bs_reach what,
                    struct bs_outcome *o, struct bs_time now)
{
    struct bs_line *line = job->line;
    struct bs_breaker *b = &line->breakers[which];
    bool was_open = bs_breaker_open(b);
    enum bs_breaker_change change = bs_breaker_count(b, what, job->probe, now);

    if (o && (change == BS_BREAKER_OPENED || change == BS_BREAKER_REOPENED))
        say_why(line, which, o);
    line->gate.openings += change == BS_BREAKER_OPENED;
    if (change != BS_BREAKER_SAME)
        log_change(line, which, change);
    if (o)
        spare(b, was_open, o);
    pause_host(job, which, now);
    refresh(job->executor, line, now);
}
