/* What goes wrong: single statements, commits whose answer is lost, a full disk, a shaky one; the
 * process dies, is asked to end, stands still; the shop is down. */
#include "sim.h"

#include "db/faulty.h"
#include "db/sqlite.h"

#include <string.h>

void fault_hit(struct sim *w, enum sim_fault f)
{
    atomic_fetch_add(&w->hits->faults[f], 1);
    w->faults++;
}

bool faults_active(const struct sim *w)
{
    return w->full_until.us > sim_now(w).us || w->shaky_until.us > sim_now(w).us || w->armed != 0;
}

static bs_rc say_fault(struct sim *w, enum sim_fault f, bs_rc rc)
{
    bool of_window = f == FAULT_DB_FULL || f == FAULT_DB_SHAKY; /* counted as one when it began */

    if (of_window)
        atomic_fetch_add(&w->hits->faults[f], 1);
    else
        fault_hit(w, f);
    w->trips++;
    w->well_since = bs_time_max(w->well_since, sim_now(w));
    say(w, "fault %s", fault_name(f));
    return rc;
}

/* Sometimes the store stays away: then nobody can find out in time what became of the commit. */
static void stay_away(struct sim *w)
{
    if (!chance(w, 20))
        return;
    w->full_until = bs_time_add(sim_now(w), some_ms(w, 500, 5000));
    w->well_since = bs_time_max(w->well_since, w->full_until);
}

static bs_rc commit_fault(struct sim *w, enum bs_fault_when when)
{
    if (when == BS_FAULT_BEFORE && chance(w, 50))
        return say_fault(w, FAULT_DB_COMMIT_BEFORE, BS_E_UNAVAILABLE);
    if (when == BS_FAULT_AFTER && w->armed_crash) {
        w->armed_crash = false;
        w->crash_now = true;
        return say_fault(w, FAULT_CRASH_IN_COMMIT, BS_E_UNKNOWN);
    }
    stay_away(w);
    return say_fault(w, when == BS_FAULT_AFTER ? FAULT_DB_COMMIT_LOST : FAULT_DB_COMMIT_UNDONE,
                     BS_E_UNKNOWN);
}

static bs_rc ask(void *ctx, enum bs_fault_call call, enum bs_fault_when when)
{
    struct sim *w = (struct sim *)ctx;
    bool commit = call == BS_FAULT_COMMIT;

    if (w->full_until.us > sim_now(w).us && commit && when == BS_FAULT_BEFORE)
        return say_fault(w, FAULT_DB_FULL, BS_E_UNAVAILABLE);
    if (w->shaky_until.us > sim_now(w).us && chance(w, 4)) {
        if (commit && when == BS_FAULT_AFTER)
            return say_fault(w, FAULT_DB_SHAKY, BS_E_UNKNOWN);
        return say_fault(w, FAULT_DB_SHAKY, BS_E_UNAVAILABLE);
    }
    if (w->armed == 0)
        return BS_OK;
    if (w->armed_commit ? !commit || when != w->armed_when : when != w->armed_when || commit)
        return BS_OK;
    if (--w->armed > 0)
        return BS_OK;
    if (!commit)
        return say_fault(w, when == BS_FAULT_BEFORE ? FAULT_DB_BEFORE : FAULT_DB_AFTER,
                         call == BS_FAULT_BEGIN && chance(w, 50) ? BS_E_BUSY : BS_E_UNAVAILABLE);
    return commit_fault(w, when);
}

struct bs_db *faults_wrap(struct sim *w)
{
    struct bs_sqlite_options o = { .path = w->path, .cache_kib = 512 };
    struct bs_db *real = NULL;
    struct bs_err err = { 0 };

    if (bs_sqlite_open(&o, &real, &err) != BS_OK) {
        broken(w, "SQLite does not open %s: %s", w->path, err.msg);
        return NULL;
    }
    w->db = bs_faulty_new(real);
    BS_ASSERT(w->db != NULL);
    bs_faulty_hook(w->db, ask, w);
    return w->db;
}

/* ---- the next mishap ---- */

static void arm(struct sim *w)
{
    w->armed = 1 + below(w, chance(w, 50) ? 3 : 25);
    w->armed_commit = chance(w, 55);
    w->armed_when = chance(w, 60) ? BS_FAULT_AFTER : BS_FAULT_BEFORE;
    w->armed_crash =
        w->armed_commit && w->armed_when == BS_FAULT_AFTER && w->opt.crashes && chance(w, 15);
    if (w->armed_commit)
        w->armed = 1 + below(w, 3);
}

static void stall(struct sim *w)
{
    uint32_t i = chance(w, 60) ? ACTOR_EXECUTOR : below(w, ACTORS);
    struct bs_time until = bs_time_add(sim_now(w), some_ms(w, 200, chance(w, 30) ? 60000 : 8000));

    w->p.seats[i].stalled = until;
    w->well_since = bs_time_max(w->well_since, until);
    fault_hit(w, FAULT_STALL);
    say(w, "%s stands still", w->p.seats[i].actor->name);
}

/* The whole machine stands still, or its clock is put forward: all the same to the process. */
static void jump(struct sim *w)
{
    struct bs_time to = bs_time_add(sim_now(w), some_ms(w, 500, chance(w, 30) ? 90000 : 10000));

    shop_run(w, to);
    ages_pass(w, to);
    w->clock.at = to;
    w->well_since = bs_time_max(w->well_since, to);
    w->jumps++;
    fault_hit(w, FAULT_JUMP);
    say(w, "the clock jumps");
}

static void shop_trouble(struct sim *w)
{
    bool down = chance(w, 50);

    w->shop = down ? SHOP_DOWN : SHOP_BAD;
    w->shop_until = bs_time_add(sim_now(w), some_ms(w, 500, 15000));
    fault_hit(w, down ? FAULT_SHOP_DOWN : FAULT_SHOP_BAD);
    say(w, "the shop is %s", down ? "down" : "bad");
}

/* Long enough to trip its breaker, and to probe it in vain. */
static void endpoint_trouble(struct sim *w)
{
    uint32_t q = (w->opt.first_queue + below(w, w->opt.queues_used)) % SIM_QUEUES;
    enum end e = w->confs[q].look != BS_LOOK_NONE && chance(w, 40) ? END_LOOK : END_HANDLER;
    enum ill what = chance(w, 60) ? ILL_FAULTS : ILL_AWAY;

    w->ills[q][e] =
        (struct illness){ what, bs_time_add(sim_now(w),
                                            some_ms(w, 3000, chance(w, 25) ? 120000 : 25000)) };
    fault_hit(w, what == ILL_AWAY ? FAULT_ENDPOINT_AWAY : FAULT_ENDPOINT_FAULTY);
    say(w, "the %s of %.*s %s", e == END_LOOK ? "look-up" : "handler",
        BS_STR_FMT(w->confs[q].biz_type), what == ILL_AWAY ? "is away" : "is faulty");
}

static void reload(struct sim *w)
{
    if (w->gone || !w->p.up || w->p.draining)
        return;
    fault_hit(w, FAULT_RELOAD);
    sim_reload(w, conf_now(w) == &w->all ? &w->other : &w->all);
}

static void disk_trouble(struct sim *w)
{
    struct bs_time until = bs_time_add(sim_now(w), some_ms(w, 100, chance(w, 15) ? 40000 : 5000));

    if (chance(w, 50))
        w->full_until = until;
    else
        w->shaky_until = until;
    w->well_since = bs_time_max(w->well_since, until);
    w->faults++;
    say(w, "the disk is in trouble");
}

void faults_step(struct sim *w)
{
    uint32_t r = w->opt.crashy && w->p.up && chance(w, 60) ? 80 + below(w, 20) : below(w, 100);

    w->next_fault = bs_time_add(sim_now(w), BS_US(below(w, (uint32_t)w->opt.fault_every.us * 2)));
    if (r < 36)
        arm(w);
    else if (r < 46)
        endpoint_trouble(w);
    else if (r < 50 && w->opt.reloads)
        reload(w);
    else if (r < 60)
        disk_trouble(w);
    else if (r < 70)
        shop_trouble(w);
    else if (r < 78 && w->opt.jumps)
        jump(w);
    else if (!w->p.up)
        arm(w);
    else if (r < 86 && w->opt.stalls)
        stall(w);
    else if (r < 92 && w->opt.drains && !w->p.draining) {
        fault_hit(w, FAULT_DRAIN);
        process_drain(w);
    } else if (r < 98 && w->opt.crashes) {
        fault_hit(w, FAULT_CRASH);
        process_end(w, "killed");
    } else {
        arm(w);
    }
}

void faults_lift(struct sim *w)
{
    w->armed = 0;
    w->full_until = w->shaky_until = BS_TIME_NONE;
    w->shop = SHOP_HEALTHY;
    memset(w->ills, 0, sizeof(w->ills));
    for (uint32_t i = 0; i < ACTORS; i++)
        w->p.seats[i].stalled = BS_TIME_NONE;
    w->well_since = sim_now(w);
}
