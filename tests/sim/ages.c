/* How long each task could have run, which is what max_age counts: the process up, its queue not
 * paused and not behind a breaker, its host not asking for a pause, itself not blocked and not with
 * a person. Kept as a sum, from one instant to the next. */
#include "sim.h"

#include <string.h>

enum {
    SLACK_US = 1000000,
    LOST_US = 11000000, /* of a stop, with a process that dies before it was told */
    UNSURE_US = 1000000000,
};

static uint32_t queue_of(const struct sim *w, const struct row *r)
{
    for (uint32_t i = 0; i < SIM_QUEUES; i++)
        if (bs_str_is(w->confs[i].biz_type, r->biz_type))
            return i;
    return SIM_QUEUES;
}

/* From when on the queue can run, at the earliest; a scheduler that stands still sees no stop. */
static struct bs_time runs_from(const struct sim *w, uint32_t queue)
{
    struct bs_time from = sim_now(w);

    if (!w->p.up)
        return BS_NEVER;
    if (w->p.seats[ACTOR_SCHEDULER].stalled.us > from.us || w->p.draining)
        return from;
    if (w->paused[queue] || gate_open(w, queue))
        return BS_NEVER;
    for (int i = 0; i < ENDS; i++)
        if (i == END_HANDLER || w->confs[queue].look != BS_LOOK_NONE)
            from = bs_time_max(from, w->p.host_until[w->hosts[queue][i]]);
    return from;
}

/* Who is freed while the store takes no writes is free from then on, though nobody sees it yet. */
static bool is_blocked(const struct sim *w, const struct row *r)
{
    bool held_up = w->failing || w->p.seats[ACTOR_COMMITTER].stalled.us > sim_now(w).us;

    return r->blocked && !held_up;
}

void ages_pass(struct sim *w, struct bs_time to)
{
    struct bs_time from[SIM_QUEUES];

    for (uint32_t q = 0; q < SIM_QUEUES; q++)
        from[q] = runs_from(w, q);
    for (uint32_t i = 0; i < w->tales_n; i++) {
        struct tale *t = &w->tales[i];
        uint32_t q = queue_of(w, &t->row);
        bool waits = t->row.state == BS_WAITING || t->row.state == BS_RETRY;

        if (q >= SIM_QUEUES || (waits && is_blocked(w, &t->row)))
            continue;
        if (waits && from[q].us < to.us)
            t->ran_us += to.us - from[q].us;
        if (t->row.state == BS_PROCESSING)
            t->ran_us += to.us - sim_now(w).us;
    }
}

static void lose(struct sim *w, int64_t us)
{
    for (uint32_t i = 0; i < w->tales_n; i++)
        w->tales[i].lost_us += us;
}

/* What was not told yet, or what the store did not take. */
void ages_end(struct sim *w)
{
    struct bs_time known = w->p.could_tell;

    if (w->failing)
        known = bs_time_min(known, w->failing_since);
    lose(w, LOST_US + bs_time_diff(sim_now(w), known).us);
}

void ages_unsure(struct sim *w)
{
    lose(w, UNSURE_US);
}

static struct bs_span shortest(const struct sim *w, uint32_t queue)
{
    struct bs_span a = w->confs[queue].policy.max_age, b = w->confs_other[queue].policy.max_age;

    return a.us < b.us ? a : b;
}

/* A budget that is spent though tries are left: by age. */
void ages_check(struct sim *w, const struct tale *t, const struct row *is, const struct moved *m)
{
    bool last = m->event == BS_EV_FAILED_LAST || m->event == BS_EV_UNKNOWN_LAST;
    uint32_t q = queue_of(w, is);

    if (!last || is->retry_count >= is->max_retry_count || is->state != BS_MANUAL)
        return;
    if (q >= SIM_QUEUES || shortest(w, q).us <= 0) {
        broken(w, "%s went to a person with tries left, and its queue has no max_age",
               is->request_id);
        return;
    }
    atomic_fetch_add(&w->hits->deeds[DEED_AGE_SPENT], 1);
    int64_t sure = shortest(w, q).us - SLACK_US - t->lost_us;
    if (t->ran_us < sure)
        broken(w, "%s went to a person for its age, but could run for %lld of %lld ms only",
               is->request_id, (long long)t->ran_us / 1000, (long long)shortest(w, q).us / 1000);
}
