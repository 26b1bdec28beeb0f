/* One seed from its first submission to the quiet end. */
#include "sim.h"

#include <dirent.h>
#include <stdarg.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { STEPS_MAX = 400000, SPIN_MAX = 20000 };

void say(struct sim *w, const char *fmt, ...)
{
    char text[512];
    va_list args;

    va_start(args, fmt);
    int n = vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    for (int i = 0; i < n && i < (int)sizeof(text) - 1; i++)
        w->hash = (w->hash ^ (uint8_t)text[i]) * 0x100000001b3u;
    w->hash = (w->hash ^ (uint64_t)sim_now(w).us) * 0x100000001b3u;
    if (w->trace)
        printf("%12.6f %s\n", (double)(sim_now(w).us - w->begun.us) / 1e6, text);
}

void broken(struct sim *w, const char *fmt, ...)
{
    va_list args;

    if (w->broken)
        return;
    w->broken = true;
    va_start(args, fmt);
    (void)vsnprintf(w->why, sizeof(w->why), fmt, args);
    va_end(args);
    say(w, "BROKEN: %s", w->why);
}

/* ---- a private folder, in memory where there is one ---- */

bool sim_base_new(char *ret, size_t max)
{
    const char *under = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : getenv("TMPDIR");

    (void)snprintf(ret, max, "%s/backstop-sim-XXXXXX", under ? under : "/tmp");
    return mkdtemp(ret) != NULL;
}

static bool make_dir(struct sim *w)
{
    (void)snprintf(w->dir, sizeof(w->dir), "%s/%llu-XXXXXX", w->base, (unsigned long long)w->seed);
    if (!mkdtemp(w->dir))
        return false;
    (void)snprintf(w->path, sizeof(w->path), "%s/s.db", w->dir);
    (void)snprintf(w->url, sizeof(w->url), "sqlite:%s", w->path);
    return true;
}

static void remove_dir(const char *dir)
{
    DIR *d = opendir(dir);

    for (struct dirent *e = d ? readdir(d) : NULL; e; e = readdir(d))
        if (e->d_name[0] != '.')
            (void)unlinkat(dirfd(d), e->d_name, 0);
    if (d)
        (void)closedir(d);
    (void)rmdir(dir);
}

/* With what a world that ended abnormally has left. */
void sim_base_free(const char *base)
{
    DIR *d = opendir(base);
    char path[512];

    for (struct dirent *e = d ? readdir(d) : NULL; e; e = readdir(d)) {
        (void)snprintf(path, sizeof(path), "%s/%s", base, e->d_name);
        if (e->d_name[0] != '.')
            remove_dir(path);
    }
    if (d)
        (void)closedir(d);
    (void)rmdir(base);
}

/* ---- turns ---- */

enum { SOURCE_PROCESS, SOURCE_CLIENTS, SOURCE_PEOPLE, SOURCE_FAULTS, SOURCES };

static struct bs_time source_next(struct sim *w, int source)
{
    switch (source) {
    case SOURCE_PROCESS:
        return process_next(w);
    case SOURCE_CLIENTS:
        return clients_next(w);
    case SOURCE_PEOPLE:
        return w->quiet || !w->opt.acts ? BS_NEVER : w->next_act;
    default:
        return w->quiet ? BS_NEVER : w->next_fault;
    }
}

static void act_source(struct sim *w, int source)
{
    switch (source) {
    case SOURCE_PROCESS:
        (void)process_step(w);
        return;
    case SOURCE_CLIENTS:
        clients_step(w);
        return;
    case SOURCE_PEOPLE:
        people_step(w);
        return;
    default:
        faults_step(w);
    }
}

/* Whoever is ready, by the seed; when nobody is, time goes on to the first who will be. */
static void turn(struct sim *w)
{
    int ready[SOURCES], n = 0;
    struct bs_time next = shop_next(w);

    for (int i = 0; i < SOURCES; i++) {
        struct bs_time at = source_next(w, i);

        if (at.us <= sim_now(w).us)
            ready[n++] = i;
        next = bs_time_min(next, at);
    }
    if (n == 0 && !w->opt.honest && !w->quiet && chance(w, 10) && process_step(w))
        return;
    if (n > 0) {
        act_source(w, ready[below(w, (uint32_t)n)]);
        w->spins++;
        if (w->spins > SPIN_MAX)
            broken(w, "something is always due and time does not go on");
        return;
    }
    if (next.us == BS_NEVER.us) {
        broken(w, "nobody will ever do anything again");
        return;
    }
    w->spins = 0;
    ages_pass(w, next);
    w->clock.at = bs_time_max(sim_now(w), next);
    shop_run(w, sim_now(w));
    check_leases(w);
    check_due(w);
    if (!w->broken)
        told_look(w);
}

static void settle_turn(struct sim *w)
{
    view_look(w);
    clients_check_answers(w);
    if (w->crash_now) {
        w->crash_now = false;
        if (w->p.up)
            process_end(w, "killed between a commit and its answer");
    }
    process_watch_drain(w);
    clients_check_answers(w);
    if (!w->eye && w->p.up && !view_open(w))
        broken(w, "the store cannot be read: %s", sqlite3_errmsg(w->eye));
}

static bool fault_phase_over(const struct sim *w)
{
    return !clients_want_more(w) && w->faults >= 20 &&
           sim_now(w).us > bs_time_add(w->begun, w->opt.fault_phase).us;
}

/* The maintenance actor makes a pass when its figures change. */
static void keep_pass(struct sim *w)
{
    if (!w->broken && w->p.up && !w->p.draining)
        sim_reload(w, conf_now(w) == &w->all ? &w->other : &w->all);
}

static bool converged(const struct sim *w)
{
    if (!clients_done(w) || !w->p.up)
        return false;
    for (uint32_t i = 0; i < SIM_QUEUES; i++)
        if (w->unsure[i])
            return false;
    for (uint32_t i = 0; i < w->tales_n; i++) {
        enum bs_state s = w->tales[i].row.state;

        if (s != BS_SUCCESS && s != BS_CLOSED && s != BS_MANUAL)
            return false;
    }
    return true;
}

static void begin_quiet(struct sim *w)
{
    say(w, "quiet from here, %u faults", w->faults);
    w->quiet = true;
    faults_lift(w);
    if (w->gone && w->p.up) {
        sim_reload(w, &w->all);
    }
}

/* Pauses are lifted again and again until it is heard. */
static void tidy_quiet(struct sim *w)
{
    if (w->next_tidy.us > sim_now(w).us || !w->p.up || w->p.draining)
        return;
    w->next_tidy = bs_time_add(sim_now(w), BS_SEC(2));
    people_resume_all(w);
}

/* Until everything has ended, and at least until `least`. */
static void run_to_rest(struct sim *w, struct bs_time least)
{
    struct bs_time limit = bs_time_add(sim_now(w), BS_SEC(4 * 3600));

    while (!w->broken && (!converged(w) || sim_now(w).us < least.us)) {
        tidy_quiet(w);
        turn(w);
        settle_turn(w);
        if (w->steps++ > STEPS_MAX || sim_now(w).us > limit.us)
            broken(w, "it does not come to rest");
    }
}

/* Long after: what has ended moves to history and away, and every request comes once more. */
static void run_afterwards(struct sim *w)
{
    struct bs_history_conf a = w->all.history, b = w->other.history;

    if (w->broken || !w->opt.history)
        return;
    say(w, "long after");
    run_to_rest(w, bs_time_add(sim_now(w), BS_US(BS_MAX(a.archive_after.us, b.archive_after.us))));
    keep_pass(w);
    clients_again(w);
    run_to_rest(w, bs_time_add(sim_now(w), BS_US(BS_MAX(a.purge_after.us, b.purge_after.us))));
    keep_pass(w);
    clients_again(w);
    run_to_rest(w, bs_time_add(sim_now(w), BS_SEC(5)));
}

/* Receivers are well again: they hear of everything in the end. */
static void run_until_told(struct sim *w)
{
    struct bs_time limit = bs_time_add(sim_now(w), BS_SEC(3600));

    while (!w->broken && !told_all(w)) {
        run_to_rest(w, bs_time_add(sim_now(w), BS_SEC(5)));
        if (sim_now(w).us > limit.us)
            broken(w, "some alerts are never told");
    }
}

static void run_phases(struct sim *w)
{
    while (!w->broken && !fault_phase_over(w) && w->steps++ < STEPS_MAX) {
        turn(w);
        settle_turn(w);
    }
    if (w->broken)
        return;
    begin_quiet(w);
    run_to_rest(w, BS_TIME_NONE);
    run_afterwards(w);
    run_until_told(w);
}

static void explain_unrest(struct sim *w)
{
    for (uint32_t i = 0; i < w->tales_n && w->trace; i++) {
        const struct row *r = &w->tales[i].row;

        printf("  %lld %s %s %s attempt=%d token=%lld due=%lld blocked=%d lease=%lld key=%s\n",
               (long long)r->id, r->request_id, r->biz_type, bs_state_name(r->state), r->attempt_no,
               (long long)r->token, r->due_at ? (long long)(r->due_at - w->begun.us) / 1000 : -1,
               r->blocked, r->locked_until ? (long long)(r->locked_until - w->begun.us) / 1000 : -1,
               r->serial_key);
    }
}

static bool start_world(struct sim *w)
{
    w->rng = (struct bs_rng){ w->seed * 0x9e3779b97f4a7c15u + 1 };
    w->hash = 0xcbf29ce484222325u;
    w->begun = (struct bs_time){ 1767225600000000 + (int64_t)below(w, 1000000) * 1000 };
    bs_clock_manual_init(&w->clock, w->begun);
    w->xs = (struct exchange *)calloc(SIM_EXCHANGES, sizeof(*w->xs));
    w->tales = (struct tale *)calloc(SIM_TALES, sizeof(*w->tales));
    w->notes = (struct note *)calloc(SIM_NOTES, sizeof(*w->notes));
    w->intents = (struct intent *)calloc(SIM_INTENTS, sizeof(*w->intents));
    w->acts = (struct act *)calloc(SIM_ACTS, sizeof(*w->acts));
    sim_choose(w, w->opt.tasks);
    w->next_act = bs_time_add(w->begun, w->opt.act_every);
    w->next_fault = bs_time_add(w->begun, w->opt.fault_every);
    w->next_submit = w->begun;
    w->p.down_until = w->begun;
    return w->xs && w->tales && w->notes && w->intents && w->acts && make_dir(w);
}

bool sim_run(struct sim *w)
{
    if (!start_world(w)) {
        broken(w, "no memory or no folder for the world");
        return false;
    }
    run_phases(w);
    if (!w->broken) {
        view_check_all(w, true);
        check_end(w);
    } else {
        explain_unrest(w);
    }
    if (w->p.up)
        process_end(w, "the end");
    clients_check_answers(w);
    view_close(w);
    remove_dir(w->dir);
    atomic_fetch_add(&w->hits->seeds, 1);
    atomic_fetch_add(&w->hits->tasks, w->tales_n);
    atomic_fetch_add(&w->hits->steps, w->steps);
    say(w, "end");
    free(w->xs);
    free(w->tales);
    free(w->notes);
    free(w->intents);
    free(w->acts);
    return !w->broken;
}
