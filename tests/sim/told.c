/* What the store was told of breakers: one open alert while one is open, none while it is not; each
 * time that it opened was raised. And who was told of alerts: everybody in the end, and nobody is
 * taken for told who was not. Knows the schema, like view.c. */
#include "sim.h"

#include "core/alert_rule.h"

enum { CALM_US = 5000000, EVERY_US = 2000000 };

/* Long enough that whatever had to be told was told. */
static bool is_calm(const struct sim *w)
{
    int64_t since = sim_now(w).us - CALM_US;

    if (!w->p.up || w->p.draining || w->p.started_at.us > since || w->well_since.us > since)
        return false;
    for (uint32_t i = 0; i < ACTORS; i++)
        if (w->p.seats[i].stalled.us > since)
            return false;
    return w->full_until.us <= since && w->shaky_until.us <= since;
}

static void name_of(const struct sim *w, uint32_t queue, char *ret, size_t max)
{
    (void)snprintf(ret, max, "%.*s", BS_STR_FMT(w->confs[queue].biz_type));
}

#define OPEN "SELECT count(*) FROM alert_event WHERE kind = 'breaker' AND subject = ?1 AND open = 1"

/* Since when the alert must agree: what an earlier life left open, the rules end. */
static struct bs_time agrees_since(const struct sim *w, const struct gate *g)
{
    struct bs_time well = bs_time_max(w->p.started_at, w->well_since);

    return g->changed.us ? g->changed
                         : bs_time_add(bs_time_add(well, w->alert_conf.check_every), BS_SEC(5));
}

static void look_at(struct sim *w, uint32_t queue)
{
    struct gate *g = &w->p.gates[queue];
    bool open = gate_open(w, queue);
    char name[40];

    if (agrees_since(w, g).us > sim_now(w).us - CALM_US ||
        bs_queue_find(conf_now(w), w->confs[queue].biz_type) == NULL)
        return;
    name_of(w, queue, name, sizeof(name));
    int64_t alerts = view_count(w, OPEN, name);
    if (open && alerts != 1)
        broken(w, "the breaker of %s has been open for %lld ms, and no alert tells it", name,
               (long long)(sim_now(w).us - g->changed.us) / 1000);
    if (!open && alerts != 0)
        broken(w, "the breaker of %s is closed for %lld ms, and its alert is still open", name,
               (long long)(sim_now(w).us - agrees_since(w, g).us) / 1000);
    /* What an earlier life left open may go on as the alert of this one. */
    if (open && g->changed.us > g->told.us &&
        g->changed.us > w->p.started_at.us + w->alert_conf.check_every.us + CALM_US) {
        g->told = g->changed;
        w->openings_sure[queue]++;
        atomic_fetch_add(&w->hits->deeds[DEED_BREAKER_ALERT], 1);
    }
}

static void look_at_ping(struct sim *w)
{
    struct bs_time since = bs_time_max(w->last_ping, bs_time_add(w->well_since, BS_US(CALM_US)));
    struct bs_span most = bs_time_diff(bs_time_add(since, w->alert_conf.ping_every), since);

    /* The last one may still be on its way for 10 s, its turn missed. */
    if (bs_time_diff(sim_now(w), since).us > 2 * most.us + 15000000)
        broken(w, "there was no sign of life for %lld ms",
               (long long)(sim_now(w).us - w->last_ping.us) / 1000);
}

void told_look(struct sim *w)
{
    if (!w->eye || w->next_told.us > sim_now(w).us)
        return;
    w->next_told = bs_time_add(sim_now(w), BS_US(EVERY_US));
    if (!is_calm(w))
        return;
    for (uint32_t q = 0; q < SIM_QUEUES && !w->broken; q++)
        look_at(w, q);
    if (!w->broken)
        look_at_ping(w);
}

/* ---- receivers ---- */

static uint32_t hook_of(const struct sim *w, const char *name)
{
    uint32_t i = 0;

    while (i < SIM_HOOKS && !(name && bs_str_is(w->webhooks[i].name, name)))
        i++;
    return i;
}

static void check_deliveries(struct sim *w)
{
    sqlite3_stmt *s = NULL;

    if (sqlite3_prepare_v2(w->eye,
                           "SELECT alert_id, phase, deliverer FROM alert_delivery WHERE state = "
                           "'sent'",
                           -1, &s, NULL) != SQLITE_OK)
        broken(w, "the check itself is wrong: %s", sqlite3_errmsg(w->eye));
    while (s && !w->broken && sqlite3_step(s) == SQLITE_ROW) {
        const char *name = (const char *)sqlite3_column_text(s, 2);
        int64_t alert = sqlite3_column_int64(s, 0);
        int phase = sqlite3_column_int(s, 1);

        if (!hooks_took(w, hook_of(w, name), alert, phase))
            broken(w, "%s is taken for told of alert %lld (%d), and was not", name,
                   (long long)alert, phase);
    }
    sqlite3_finalize(s);
}

static void check_told_of(struct sim *w, int64_t alert, struct bs_str kind, bool recovered)
{
    for (uint32_t i = 0; i < w->alert_conf.webhooks_n && !w->broken; i++) {
        bool both = recovered && bs_alert_is_condition(kind);

        if (!hooks_took(w, i, alert, BS_ALERT_RAISED) ||
            (both && !hooks_took(w, i, alert, BS_ALERT_RECOVERED)))
            broken(w, "receiver %u never heard of alert %lld (%.*s)%s", i, (long long)alert,
                   BS_STR_FMT(kind), both ? " and its end" : "");
    }
}

static void check_all_told(struct sim *w)
{
    sqlite3_stmt *s = NULL;

    if (sqlite3_prepare_v2(w->eye, "SELECT id, open, kind FROM alert_event", -1, &s, NULL) !=
        SQLITE_OK)
        broken(w, "the check itself is wrong: %s", sqlite3_errmsg(w->eye));
    while (s && !w->broken && sqlite3_step(s) == SQLITE_ROW)
        check_told_of(w, sqlite3_column_int64(s, 0),
                      bs_str_of((const char *)sqlite3_column_text(s, 2)),
                      sqlite3_column_int(s, 1) == 0);
    sqlite3_finalize(s);
}

/* A breaker that nobody has anything to try with stays open, and so does its alert. */
bool told_all(struct sim *w)
{
    int64_t open = 0;

    for (uint32_t q = 0; q < SIM_QUEUES; q++)
        open += gate_open(w, q);
    return w->eye &&
           view_count(w,
                      "SELECT (SELECT count(*) FROM alert_delivery WHERE state = 'pending') + "
                      "(SELECT count(*) FROM alert_event WHERE unplanned <> 0)",
                      "") == 0 &&
           view_count(w, "SELECT count(*) FROM alert_event WHERE open = 1 AND kind = 'breaker'",
                      "") == open;
}

static void check_openings(struct sim *w)
{
    for (uint32_t q = 0; q < SIM_QUEUES && !w->broken; q++) {
        char name[40];

        name_of(w, q, name, sizeof(name));
        int64_t n = view_count(w,
                               "SELECT coalesce(sum(count), 0) FROM alert_event WHERE kind = "
                               "'breaker' AND subject = ?1",
                               name);

        if (n < w->openings_sure[q] || n > w->openings[q])
            broken(w, "the breaker of %s tripped %u to %u times, its alerts count %lld", name,
                   w->openings_sure[q], w->openings[q], (long long)n);
    }
}

void told_check(struct sim *w, bool last)
{
    check_deliveries(w);
    if (last && !w->broken)
        check_openings(w);
    if (last && !w->broken)
        check_all_told(w);
}
