/* What the store was told of breakers: one open alert while one is open, none while it is not; each
 * time that it opened was raised. Knows the schema, like view.c. */
#include "sim.h"

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

static void look_at(struct sim *w, uint32_t queue)
{
    struct gate *g = &w->p.gates[queue];
    bool open = gate_open(w, queue);
    char name[40];

    if (g->changed.us > sim_now(w).us - CALM_US ||
        bs_queue_find(conf_now(w), w->confs[queue].biz_type) == NULL)
        return;
    name_of(w, queue, name, sizeof(name));
    int64_t alerts = view_count(w, OPEN, name);
    if (open && alerts != 1)
        broken(w, "the breaker of %s has been open for %lld ms, and no alert tells it", name,
               (long long)(sim_now(w).us - g->changed.us) / 1000);
    /* What an earlier life left open is the alert actor's matter. */
    if (!open && g->changed.us && alerts != 0)
        broken(w, "the breaker of %s closed %lld ms ago, and its alert is still open", name,
               (long long)(sim_now(w).us - g->changed.us) / 1000);
    if (open && g->changed.us > g->told.us) {
        g->told = g->changed;
        w->openings_sure[queue]++;
        atomic_fetch_add(&w->hits->deeds[DEED_BREAKER_ALERT], 1);
    }
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
}

void told_check(struct sim *w, bool last)
{
    for (uint32_t q = 0; last && q < SIM_QUEUES && !w->broken; q++) {
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
