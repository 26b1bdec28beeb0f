/* The protection of the shop as it should be: breakers, hosts' pauses and limits, rates. Fed with
 * the truth of each exchange in the order in which the executor took its end; held against each
 * call that begins. */
#include "sim.h"

enum {
    FAULTS_TRIP = 3,
    REFUSALS_TRIP = 10,
    COOLDOWN_FIRST_US = 5000000,
    COOLDOWN_MOST_US = 60000000,
    SLACK_US = 20000,       /* the steps of clocks and threads */
    OLD_FILE_US = 60000000, /* so long a job may carry what an earlier file said */
    EXCUSE_US = 8000000,
    FEW_PLACES = 10,
    STEP_MOST_US = 3000000, /* between two starts of the slowest rate */
};

static void hit(struct sim *w, enum sim_deed d)
{
    atomic_fetch_add(&w->hits->deeds[d], 1);
}

static enum end end_of(const struct exchange *x)
{
    return x->is_look ? END_LOOK : END_HANDLER;
}

/* ---- what an end says of the endpoint ---- */

enum reach { UNTOLD, WELL, FAULT, REFUSED };

static bool late(const struct exchange *x)
{
    return x->client_end.us > x->deadline.us;
}

static bool is_fault(const struct sim *w, const struct exchange *x)
{
    const struct bs_policy *p = &w->confs[x->queue].policy;

    if (x->wire == BS_WIRE_TLS_EXPIRED)
        return true;
    if (x->wire != BS_WIRE_REPLIED || (x->status != 404 && x->status != 302))
        return false;
    for (uint32_t i = 0; !x->is_look && i < p->statuses_n; i++)
        if (p->statuses[i].status == x->status && p->statuses[i].cls != BS_STATUS_DEFAULT)
            return p->statuses[i].cls == BS_STATUS_ENDPOINT_FAULT;
    return true;
}

static enum reach reach_of(const struct sim *w, const struct exchange *x)
{
    bool sent = x->sent_at.us <= x->deadline.us;

    if (x->cancelled)
        return UNTOLD;
    if (late(x))
        return sent ? WELL : REFUSED;
    if (is_fault(w, x))
        return FAULT;
    return x->wire == BS_WIRE_REPLIED || sent ? WELL : REFUSED;
}

/* ---- breakers ---- */

bool gate_open(const struct sim *w, uint32_t queue)
{
    const struct gate *g = &w->p.gates[queue];

    return g->breakers[END_LOOK].open || g->breakers[END_HANDLER].open;
}

static bool trips(struct breaker *b, enum reach what)
{
    if (what == REFUSED)
        return ++b->refusals >= REFUSALS_TRIP;
    b->refusals = 0;
    if (what == FAULT)
        return ++b->faults >= FAULTS_TRIP;
    b->faults = 0;
    return false;
}

static void open_for(struct sim *w, struct breaker *b, int64_t us)
{
    b->open = true;
    b->cooldown = BS_US(BS_MIN(us, (int64_t)COOLDOWN_MOST_US));
    b->until = bs_time_add(sim_now(w), b->cooldown);
}

static void tripped(struct sim *w, struct exchange *x)
{
    struct gate *g = &w->p.gates[x->queue];
    bool was_open = gate_open(w, x->queue);

    open_for(w, &g->breakers[end_of(x)], COOLDOWN_FIRST_US);
    g->openings++;
    w->openings[x->queue]++;
    g->opened = sim_now(w);
    if (!was_open)
        g->changed = sim_now(w);
    hit(w, DEED_BREAKER_OPENED);
    say(w, "the breaker of %.*s trips (%s)", BS_STR_FMT(w->confs[x->queue].biz_type),
        x->is_look ? "look" : "handler");
}

static void probed(struct sim *w, struct exchange *x, struct breaker *b, enum reach what)
{
    struct gate *g = &w->p.gates[x->queue];

    hit(w, DEED_BREAKER_PROBED);
    if (what != WELL) {
        open_for(w, b, 2 * b->cooldown.us);
        hit(w, DEED_BREAKER_REOPENED);
        return;
    }
    *b = (struct breaker){ 0 };
    hit(w, DEED_BREAKER_CLOSED);
    if (!gate_open(w, x->queue))
        g->changed = sim_now(w);
    say(w, "the breaker of %.*s closes", BS_STR_FMT(w->confs[x->queue].biz_type));
}

/* While it is open nothing but the probe counts, and what fails costs nothing. */
static void count_reach(struct sim *w, struct exchange *x)
{
    struct breaker *b = &w->p.gates[x->queue].breakers[end_of(x)];
    enum reach what = reach_of(w, x);

    if (what == UNTOLD)
        return;
    if (!b->open) {
        if (trips(b, what))
            tripped(w, x);
        return;
    }
    x->behind = what != WELL;
    if (x->behind)
        hit(w, DEED_BEHIND_BREAKER);
    if (x->probe)
        probed(w, x, b, what);
}

static void count_pause(struct sim *w, const struct exchange *x)
{
    struct bs_time until = bs_time_add(sim_now(w), x->wish.delay);

    if (x->cancelled || late(x) || x->wire != BS_WIRE_REPLIED || !x->wish.given ||
        (x->status != 429 && x->status != 503))
        return;
    hit(w, DEED_HOST_PAUSE);
    w->p.host_until[x->host] = bs_time_max(w->p.host_until[x->host], until);
}

void gates_end(struct sim *w, struct exchange *x)
{
    if (x->queue >= SIM_QUEUES)
        return;
    count_reach(w, x);
    count_pause(w, x);
}

/* ---- held against what begins ---- */

static bool runs(const struct exchange *y, const struct exchange *x)
{
    return y != x && y->call && y->queue == x->queue;
}

/* Behind an open breaker one task at a time may try, and not before the cool-down is over. */
static void check_breaker(struct sim *w, struct exchange *x)
{
    const struct gate *g = &w->p.gates[x->queue];
    const char *name = w->tales[x->tale].row.request_id;

    for (int i = 0; i < ENDS; i++) {
        const struct breaker *b = &g->breakers[i];

        x->probe |= b->open;
        if (b->open && sim_now(w).us < b->until.us)
            broken(w, "%s is called %lld ms before its breaker may be tried", name,
                   (long long)(b->until.us - sim_now(w).us) / 1000);
    }
    for (uint32_t i = w->xs_live; x->probe && i < w->xs_n && !w->broken; i++)
        if (runs(&w->xs[i], x) && w->xs[i].tale != x->tale)
            broken(w, "%s tries an endpoint behind its breaker while another one runs", name);
}

/* Its attempt began under another limit and has held its place since. */
static bool has_its_place(const struct sim *w, const struct exchange *x)
{
    const struct tale *t = &w->tales[x->tale];
    const struct exchange *look = t->last_look ? &w->xs[t->last_look - 1] : NULL;

    return !x->is_look && look && look->fence == x->fence && look->start.us <= w->reloaded_at.us;
}

static void check_host(struct sim *w, const struct exchange *x)
{
    struct bs_time until = w->p.host_until[x->host];
    const char *name = host_name(x->host);
    const struct bs_host_conf *limit = bs_host_find(conf_now(w), bs_str_of(name));
    uint32_t running = 0;

    if (sim_now(w).us < until.us)
        broken(w, "%s is called by %.*s %lld ms before the end of the pause it asked for", name,
               BS_STR_FMT(w->confs[x->queue].biz_type),
               (long long)(until.us - sim_now(w).us) / 1000);
    for (uint32_t i = w->xs_live; i < w->xs_n; i++)
        running += w->xs[i].call && w->xs[i].host == x->host;
    if (limit && running == limit->concurrency)
        hit(w, DEED_HOST_FULL);
    if (limit && running > limit->concurrency && !has_its_place(w, x))
        broken(w, "%u calls run at %s, which takes %u", running, name, limit->concurrency);
}

static const struct bs_rate *looser(const struct bs_rate *a, const struct bs_rate *b)
{
    if (a->calls == 0 || b->calls == 0)
        return a->calls == 0 ? a : b;
    return a->per.us / a->calls <= b->per.us / b->calls ? a : b;
}

static const struct bs_rate *rate_of(struct sim *w, uint32_t queue)
{
    const struct bs_queue_conf *conf = bs_queue_find(conf_now(w), w->confs[queue].biz_type);
    const struct bs_rate *now = conf ? &conf->rate : &w->confs[queue].rate;

    if (w->reloaded_at.us == 0 || w->reloaded_at.us + OLD_FILE_US < sim_now(w).us)
        return now;
    return looser(&w->confs[queue].rate, &w->confs_other[queue].rate);
}

/* Starts within one span of the rate: as many as it says, and what fits into the slack. */
static void check_rate(struct sim *w, struct exchange *x)
{
    struct gate *g = &w->p.gates[x->queue];
    const struct bs_rate *r = rate_of(w, x->queue);
    struct bs_time now = sim_now(w);

    g->starts[g->starts_n++ % SIM_STARTS] = now;
    if (r->calls == 0)
        return;
    int64_t step = (r->per.us + r->calls - 1) / r->calls;
    uint32_t most = r->calls + (uint32_t)(SLACK_US / step), n = 0;

    BS_ASSERT(most < SIM_STARTS);
    for (uint32_t i = 0; i < BS_MIN(g->starts_n, (uint32_t)SIM_STARTS); i++)
        n += g->starts[i].us > now.us - r->per.us;
    if (n > most)
        broken(w, "%u tasks of %.*s began within %lld ms, %u may", n,
               BS_STR_FMT(w->confs[x->queue].biz_type), (long long)r->per.us / 1000, most);
    if (g->starts_n > 1 && now.us - g->starts[(g->starts_n - 2) % SIM_STARTS].us <= step)
        hit(w, DEED_RATE_WAIT);
}

void gates_begin(struct sim *w, struct exchange *x)
{
    bool first = x->is_look || w->confs[x->queue].look == BS_LOOK_NONE;

    x->host = w->hosts[x->queue][end_of(x)];
    check_breaker(w, x);
    if (!w->broken)
        check_host(w, x);
    if (!w->broken && first)
        check_rate(w, x);
}

/* ---- what is due waits for one of these ---- */

bool gate_excuses(struct sim *w, uint32_t queue)
{
    const struct gate *g = &w->p.gates[queue];
    int64_t since = sim_now(w).us - EXCUSE_US;
    /* Slowly, one after the other: by its rate, or because there are few places for all. */
    bool paced = w->confs[queue].rate.calls || w->confs_other[queue].rate.calls ||
                 w->opt.calls_max < FEW_PLACES;
    struct bs_time last = g->starts_n ? g->starts[(g->starts_n - 1) % SIM_STARTS] : BS_TIME_NONE;

    if (gate_open(w, queue) || g->changed.us > since)
        return true;
    for (int i = 0; i < ENDS; i++)
        if (w->p.host_until[w->hosts[queue][i]].us > since)
            return true;
    return paced && last.us + STEP_MOST_US > since;
}
