/* The receivers of alerts and of the sign of life, behind a pretended network of their own. What
 * they received and what they took with 2xx is known here, whatever the process believes. */
#include "sim.h"

#include <string.h>

enum { LATENCY_MS = 20 };

/* One POST or GET on its way. */
struct errand {
    struct errand *next;
    struct bs_call *call;
    enum sim_plan plan;
    uint32_t hook; /* SIM_HOOKS: the ping */
    struct bs_time start, end;
};

struct hooknet {
    struct bs_caller base;
    struct sim *sim;
    struct errand *running;
};

static struct hooknet *of(struct bs_caller *c)
{
    return BS_CONTAINER(c, struct hooknet, base);
}

/* ---- what a receiver makes of it ---- */

static enum sim_plan choose_plan(struct sim *w, bool ping)
{
    static const enum sim_plan bad[] = { PLAN_HOOK_500,     PLAN_HOOK_422,   PLAN_HOOK_HANG,
                                         PLAN_HOOK_REFUSED, PLAN_HOOK_RESET, PLAN_HOOK_REFUSED };
    bool fails = !w->quiet && chance(w, w->opt.hook_fail_pct);

    if (ping)
        return fails ? PLAN_PING_FAILED : PLAN_PING_OK;
    return fails ? bad[below(w, BS_COUNT(bad))] : PLAN_HOOK_OK;
}

static struct note *note_of(struct sim *w, uint32_t hook, int64_t alert, int phase)
{
    for (uint32_t i = 0; i < w->notes_n; i++) {
        struct note *n = &w->notes[i];

        if (n->hook == hook && n->alert == alert && n->phase == phase)
            return n;
    }
    return NULL;
}

bool hooks_took(struct sim *w, uint32_t hook, int64_t alert, int phase)
{
    const struct note *n = note_of(w, hook, alert, phase);

    return n && n->taken;
}

/* That something recovered is never heard before that it began. */
static void receive(struct sim *w, uint32_t hook, int64_t alert, int phase)
{
    if (phase == BS_ALERT_RECOVERED && !note_of(w, hook, alert, BS_ALERT_RAISED))
        broken(w, "receiver %u hears that alert %lld recovered, and not that it began", hook,
               (long long)alert);
    if (note_of(w, hook, alert, phase))
        return;
    BS_ASSERT(w->notes_n < SIM_NOTES);
    w->notes[w->notes_n++] = (struct note){ .hook = hook, .alert = alert, .phase = phase };
}

/* Walks over the alerts of a body. */
static void each_alert(struct sim *w, const struct errand *e, bool taken)
{
    struct bs_str s = e->call->body;
    const char *at = s.p, *end = s.p + s.n;

    while ((at = (const char *)memmem(at, (size_t)(end - at), "\"id\":\"", 6)) != NULL) {
        struct bs_str rest = { at + 6, (size_t)(end - at) - 6 };
        struct bs_str digits = bs_str_cut(&rest, '"');
        const char *p = (const char *)memmem(rest.p, rest.n, "\"phase\":\"r", 10);
        int64_t id = 0;

        if (!p || p + 11 >= end || !bs_i64_parse(digits, &id)) {
            broken(w, "a receiver does not understand: %.*s", BS_STR_FMT(s));
            return;
        }
        int phase = p[10] == 'a' ? BS_ALERT_RAISED : BS_ALERT_RECOVERED;
        if (!taken)
            receive(w, e->hook, id, phase);
        else
            note_of(w, e->hook, id, phase)->taken = true;
        at = p;
    }
}

static bool arrives(enum sim_plan p)
{
    return p == PLAN_HOOK_OK || p == PLAN_HOOK_500 || p == PLAN_HOOK_422 || p == PLAN_HOOK_HANG ||
           p == PLAN_HOOK_RESET;
}

static void start(struct bs_caller *c, struct bs_call *call, struct bs_time now)
{
    struct sim *w = of(c)->sim;
    struct errand *e = (struct errand *)calloc(1, sizeof(*e));
    bool ping = strcmp(call->method, "GET") == 0;

    BS_ASSERT(e != NULL);
    *e = (struct errand){ .next = of(c)->running, .call = call, .start = now };
    e->plan = choose_plan(w, ping);
    e->hook = ping ? SIM_HOOKS : strstr(call->url, "hook-b") ? 1 : 0;
    e->end = bs_time_add(now, some_ms(w, 1, LATENCY_MS));
    if (e->plan == PLAN_HOOK_HANG || (ping && e->plan == PLAN_PING_FAILED && chance(w, 30)))
        e->end = bs_time_add(now, call->timeout);
    of(c)->running = e;
    atomic_fetch_add(&w->hits->plans[e->plan], 1);
    say(w, "%s of alerts to %u: %s", call->method, e->hook, plan_name(e->plan));
    if (ping)
        w->last_ping = now;
    else if (arrives(e->plan))
        each_alert(w, e, false);
}

static void fill_facts(struct sim *w, const struct errand *e, struct bs_time now)
{
    static const struct {
        enum sim_plan plan;
        int status;
        enum bs_wire wire;
    } rows[] = {
        { PLAN_HOOK_OK, 204, BS_WIRE_REPLIED },
        { PLAN_HOOK_500, 500, BS_WIRE_REPLIED },
        { PLAN_HOOK_422, 422, BS_WIRE_REPLIED },
        { PLAN_HOOK_HANG, 0, BS_WIRE_TIMEOUT },
        { PLAN_HOOK_REFUSED, 0, BS_WIRE_CONNECT_REFUSED },
        { PLAN_HOOK_RESET, 0, BS_WIRE_RESET },
        { PLAN_PING_OK, 200, BS_WIRE_REPLIED },
        { PLAN_PING_FAILED, 503, BS_WIRE_REPLIED },
    };
    struct bs_facts *f = &e->call->facts;

    *f = (struct bs_facts){ .started_at = e->start, .ended_at = now };
    for (size_t i = 0; i < BS_COUNT(rows); i++)
        if (rows[i].plan == e->plan) {
            f->status = rows[i].status;
            f->wire = rows[i].wire;
        }
    f->sent = f->wire != BS_WIRE_CONNECT_REFUSED;
    (void)w;
}

static struct bs_call *finished(struct bs_caller *c)
{
    struct sim *w = of(c)->sim;
    struct errand **best = NULL;

    for (struct errand **p = &of(c)->running; *p; p = &(*p)->next)
        if ((*p)->end.us <= sim_now(w).us && (!best || (*p)->end.us < (*best)->end.us))
            best = p;
    if (!best)
        return NULL;
    struct errand *e = *best;
    struct bs_call *call = e->call;

    *best = e->next;
    fill_facts(w, e, sim_now(w));
    if (e->plan == PLAN_HOOK_OK) {
        each_alert(w, e, true);
        atomic_fetch_add(&w->hits->deeds[DEED_ALERT_TOLD], 1);
    }
    free(e);
    return call;
}

static void run(struct bs_caller *c, struct bs_time now)
{
    (void)c;
    (void)now;
}

static void cancel(struct bs_caller *c, struct bs_call *call)
{
    for (struct errand *e = of(c)->running; e; e = e->next)
        if (e->call == call)
            e->end = BS_TIME_NONE;
}

static void wait(struct bs_caller *c, struct bs_mailbox *mail, int64_t until_us)
{
    (void)c;
    (void)mail;
    (void)until_us;
}

static void free_all(struct bs_caller *c)
{
    while (of(c)->running) {
        struct errand *next = of(c)->running->next;

        free(of(c)->running);
        of(c)->running = next;
    }
    free(of(c));
}

struct bs_time hooks_next(const struct hooknet *n)
{
    struct bs_time next = BS_NEVER;

    for (const struct errand *e = n->running; e; e = e->next)
        next = bs_time_min(next, e->end);
    return next;
}

struct bs_caller *hooks_caller(struct hooknet *n)
{
    return &n->base;
}

struct hooknet *hooks_new(struct sim *w)
{
    static const struct bs_caller_ops ops = { start, run, finished, cancel, wait, free_all };
    struct hooknet *n = (struct hooknet *)calloc(1, sizeof(*n));

    BS_ASSERT(n != NULL);
    n->base.ops = &ops;
    n->sim = w;
    return n;
}
