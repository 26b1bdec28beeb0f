/* The living process: the production actors on one store, stepped one at a time, killed between two
 * steps, or asked to end. */
#include "sim.h"

#include <string.h>

static void on_hints(void *ctx, const struct bs_hints *hints)
{
    struct sim *w = (struct sim *)ctx;

    if (w->p.engine)
        bs_engine_hints(w->p.engine, hints);
}

static void on_health(void *ctx, bool healthy, const struct bs_err *err)
{
    struct sim *w = (struct sim *)ctx;

    say(w, "the store is %s%s%s", healthy ? "well" : "failing: ", healthy ? "" : "",
        healthy || !err ? "" : err->msg);
    w->failing = !healthy;
    w->failing_since = sim_now(w);
    if (w->p.alerts)
        bs_alerts_store_health(w->p.alerts, healthy, err);
}

/* A paused queue is remembered by the store, not by the process. */
static bs_rc recall_pauses(struct sim *w, struct bs_store *s, bool *ret_paused, struct bs_err *err)
{
    BS_CLEANUP(bs_arena_free) struct bs_arena a = { 0 };
    struct bs_queue_row *rows = NULL;
    uint32_t n = 0;

    BS_TRY(bs_store_queues(s, &a, &rows, &n, err));
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t q = 0; q < SIM_QUEUES; q++)
            if (rows[i].paused && bs_str_eq(rows[i].biz_type, w->confs[q].biz_type))
                ret_paused[q] = true;
    return BS_OK;
}

static struct bs_store *open_store(struct sim *w, bool *ret_paused)
{
    struct bs_err err = { 0 };
    struct bs_store *store = NULL;
    struct bs_store_options so = { .url = w->url, .mode = BS_STORE_WRITER, .cache_kib = 512 };
    uint32_t trips = w->trips;

    so.db = faults_wrap(w);
    if (!so.db)
        return NULL;
    bs_rc rc = bs_store_open(&so, &store, &err);
    if (rc == BS_OK) {
        rc = recall_pauses(w, store, ret_paused, &err);
        if (rc == BS_OK)
            return store;
        bs_store_close(store);
    }
    say(w, "the store does not open: %s", err.msg);
    if (w->trips == trips)
        broken(w, "the store does not open although it is well: %s", err.msg);
    fault_hit(w, FAULT_OPEN_FAILED);
    return NULL;
}

/* As the server does it: max_age leaves out the time in which the process was down. */
static void note_downtime(struct sim *w, struct bs_store *store)
{
    struct bs_op op = { .kind = BS_OP_STOPPED, .now = sim_now(w) }, *ops = &op;
    struct bs_err err = { 0 };
    bs_rc rc = bs_store_time_high(store, &op.stopped.from, &err);

    op.stopped.to = sim_now(w);
    if (rc == BS_OK && op.stopped.from.us > 0 && bs_time_before(op.stopped.from, op.stopped.to))
        rc = bs_store_apply(store, &ops, 1, &err);
    if (rc != BS_OK) {
        say(w, "the downtime is not noted: %s", err.msg);
        ages_unsure(w);
    }
}

static bool start_committer(struct sim *w, bool *ret_paused)
{
    struct bs_err err = { 0 };
    struct bs_store *store = open_store(w, ret_paused);

    if (!store)
        return false;
    note_downtime(w, store);
    struct bs_committer_options co = { .store = store,
                                       .clock = &w->clock.base,
                                       .on_hints = on_hints,
                                       .hints_ctx = w,
                                       .on_health = on_health,
                                       .health_ctx = w };
    for (int i = 0; i < BS_RANK_COUNT; i++)
        co.caps[i] = w->opt.caps[i];
    bs_rc rc = bs_committer_new(&co, &w->p.committer, &err);
    BS_ASSERT(rc == BS_OK);
    return true;
}

static void start_engine(struct sim *w)
{
    struct bs_err err = { 0 };
    struct process *p = &w->p;
    struct net *net = net_new(w);

    struct bs_engine_options eo = { .queues = &w->slot,
                                    .committer = p->committer,
                                    .caller = &net->base,
                                    .clock = &w->clock.base,
                                    .ids = &p->ids,
                                    .node = bs_str_of(p->node),
                                    .seed = w->seed * 1000 + p->incarnation,
                                    .calls_max = w->opt.calls_max,
                                    .orphans_after = BS_SEC(20) };
    bs_rc rc = bs_engine_new(&eo, &p->engine, &err);
    BS_ASSERT(rc == BS_OK);
    p->net = net;
    p->seats[ACTOR_COMMITTER].actor = bs_committer_actor(p->committer);
    p->seats[ACTOR_SCHEDULER].actor = bs_engine_scheduler(p->engine);
    p->seats[ACTOR_EXECUTOR].actor = bs_engine_executor(p->engine);
    p->seats[ACTOR_REAPER].actor = bs_engine_reaper(p->engine);
}

static void start_keep(struct sim *w)
{
    struct process *p = &w->p;
    struct bs_err err = { 0 };
    struct bs_keep_options ko = {
        .queues = &w->slot, .committer = p->committer, .clock = &w->clock.base, .ids = &p->ids
    };
    bs_rc rc = bs_keep_new(&ko, &p->keep, &err);

    BS_ASSERT(rc == BS_OK);
    p->seats[ACTOR_KEEP].actor = bs_keep_actor(p->keep);
}

static uint32_t gates(void *ctx, struct bs_alert_gate *ret, uint32_t max)
{
    struct sim *w = (struct sim *)ctx;
    struct bs_engine_queue queues[SIM_QUEUES];
    uint32_t all = bs_engine_queues(w->p.engine, queues, SIM_QUEUES), n = 0;

    for (uint32_t i = 0; i < all && n < max; i++) {
        if (!queues[i].breaker_open)
            continue;
        memcpy(ret[n].biz_type, queues[i].biz_type, sizeof(ret[n].biz_type));
        (void)snprintf(ret[n].why, sizeof(ret[n].why), "%.299s", queues[i].why);
        ret[n++].since = queues[i].since;
    }
    return n;
}

static bool ready(void *ctx)
{
    return !((struct sim *)ctx)->p.draining;
}

static void start_alerts(struct sim *w)
{
    struct process *p = &w->p;
    struct bs_store_options so = { .url = w->url, .mode = BS_STORE_READER, .cache_kib = 256 };
    struct bs_err err = { 0 };

    p->hooks = hooks_new(w);
    struct bs_alerts_options ao = { .queues = &w->slot,
                                    .committer = p->committer,
                                    .caller = hooks_caller(p->hooks),
                                    .clock = &w->clock.base,
                                    .ids = &p->ids,
                                    .node = bs_str_of(p->node),
                                    .seed = w->seed * 1000 + p->incarnation,
                                    .gates = gates,
                                    .ready = ready,
                                    .ctx = w };
    bs_rc rc = bs_store_open(&so, &ao.reader, &err);
    if (rc == BS_OK)
        rc = bs_alerts_new(&ao, &p->alerts, &err);
    BS_ASSERT(rc == BS_OK);
    p->seats[ACTOR_ALERT].actor = bs_alerts_actor(p->alerts);
}

bool process_start(struct sim *w)
{
    struct process *p = &w->p;
    uint32_t incarnation = p->incarnation + 1;
    bool paused[SIM_QUEUES] = { false };

    *p = (struct process){ .incarnation = incarnation };
    (void)snprintf(p->node, sizeof(p->node), "node-%u", incarnation);
    p->started_at = p->could_tell = sim_now(w);
    bs_ids_init(&p->ids, 1);
    w->gone = w->opt.vanish && !w->quiet && chance(w, 35);
    if (w->opt.reloads && !w->gone && chance(w, 30))
        atomic_store(&w->slot.now, &w->other);
    else
        atomic_store(&w->slot.now, w->gone ? &w->less : &w->all);
    w->reloaded_at = BS_TIME_NONE;
    w->failing = false;
    if (!start_committer(w, paused)) {
        p->down_until = bs_time_add(sim_now(w), BS_SEC(1));
        return false;
    }
    start_engine(w);
    start_keep(w);
    start_alerts(w);
    for (uint32_t i = 0; i < SIM_QUEUES; i++) {
        w->paused[i] = paused[i];
        w->unsure[i] = false;
        w->paused_at[i] = sim_now(w);
        if (paused[i])
            bs_engine_pause(p->engine, w->confs[i].biz_type, true);
    }
    if (w->gone)
        fault_hit(w, FAULT_QUEUE_GONE);
    p->up = true;
    w->well_since = sim_now(w);
    say(w, "process %u is up%s", incarnation, w->gone ? " without its last queue" : "");
    return true;
}

void process_end(struct sim *w, const char *how)
{
    struct process *p = &w->p;

    say(w, "process %u: %s", p->incarnation, how);
    ages_end(w);
    w->crashing = true;
    struct bs_engine_figures f;
    bs_engine_figures(p->engine, &f);
    atomic_fetch_add(&w->hits->deeds[DEED_FINISH_STALE], f.stale);
    /* With a purged task the record of its late result is gone. */
    if (w->purged_n == 0 && f.stale > view_count_stale(w, p->node))
        broken(w, "%llu results were called late, fewer are recorded so",
               (unsigned long long)f.stale);
    bs_keep_quiet(p->keep);
    bs_alerts_quiet(p->alerts);
    bs_committer_free(p->committer);
    bs_engine_free(p->engine);
    bs_keep_free(p->keep);
    bs_alerts_free(p->alerts);
    w->crashing = false;
    w->db = NULL;
    if (w->works_out != 0)
        broken(w, "%u works were never answered", w->works_out);
    p->committer = NULL;
    p->engine = NULL;
    p->keep = NULL;
    p->alerts = NULL;
    p->hooks = NULL;
    p->net = NULL;
    p->up = false;
    p->draining = false;
    p->down_until = bs_time_add(sim_now(w), some_ms(w, 60, chance(w, 20) ? 20000 : 1500));
}

void process_drain(struct sim *w)
{
    struct process *p = &w->p;

    p->draining = true;
    p->drain_until = bs_time_add(sim_now(w), some_ms(w, 0, 4000));
    bs_engine_drain(p->engine, p->drain_until);
    say(w, "process %u: asked to end", p->incarnation);
}

/* Over when everything is settled; a failing store can hold it up, then it is killed. */
void process_watch_drain(struct sim *w)
{
    struct process *p = &w->p;

    if (!p->up || !p->draining)
        return;
    if (bs_engine_idle(p->engine)) {
        check_drained(w);
        process_end(w, "ended, everything settled");
        return;
    }
    struct bs_time patience = bs_time_max(p->drain_until, w->well_since);

    if (sim_now(w).us > bs_time_add(patience, BS_SEC(2)).us && !faults_active(w))
        broken(w, "a drain does not end");
    else if (sim_now(w).us > bs_time_add(p->drain_until, BS_SEC(60)).us)
        process_end(w, "killed while it drained");
}

/* ---- steps ---- */

/* When this seat is to be stepped: at once with mail, else when it asked for it. */
static struct bs_time seat_due(const struct sim *w, uint32_t i)
{
    const struct seat *s = &w->p.seats[i];
    struct bs_time due = s->next;

    if (!s->asleep || !s->actor->in->sleeping)
        due = BS_TIME_NONE;
    if (i == ACTOR_EXECUTOR)
        due = bs_time_min(due, net_next(w->p.net));
    if (i == ACTOR_ALERT)
        due = bs_time_min(due, hooks_next(w->p.hooks));
    return bs_time_max(due, s->stalled);
}

struct bs_time process_next(struct sim *w)
{
    struct bs_time next = BS_NEVER;

    if (!w->p.up)
        return w->p.down_until;
    for (uint32_t i = 0; i < ACTORS; i++)
        next = bs_time_min(next, seat_due(w, i));
    return next;
}

static void step_seat(struct sim *w, uint32_t i)
{
    struct seat *s = &w->p.seats[i];

    if (i == ACTOR_SCHEDULER && !w->p.draining)
        w->p.could_tell = sim_now(w);
    bs_mailbox_disarm(s->actor->in);
    s->next = s->actor->step(s->actor, sim_now(w));
    s->asleep = bs_mailbox_arm(s->actor->in);
    say(w, "step %s -> %lld", s->actor->name,
        s->next.us == BS_NEVER.us ? -1LL : (long long)(s->next.us - sim_now(w).us));
}

/* One of those that are ready, by the seed; without honesty also one that is not. */
bool process_step(struct sim *w)
{
    uint32_t ready[ACTORS], n = 0;

    if (!w->p.up) {
        if (w->p.down_until.us > sim_now(w).us)
            return false;
        (void)process_start(w);
        return true;
    }
    for (uint32_t i = 0; i < ACTORS; i++)
        if (seat_due(w, i).us <= sim_now(w).us)
            ready[n++] = i;
    if (n == 0 && (w->opt.honest || w->quiet))
        return false;
    if (n == 0) {
        if (!chance(w, 30))
            return false;
        for (uint32_t i = 0; i < ACTORS; i++)
            if (w->p.seats[i].stalled.us <= sim_now(w).us)
                ready[n++] = i;
        if (n == 0)
            return false;
    }
    step_seat(w, ready[below(w, n)]);
    return true;
}
