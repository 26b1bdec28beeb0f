/* The simulator: sim [--seeds N] [--first S] [--seed S --trace] [--tasks N] [--plant NAME|all]
 * [--jobs N] [--full]. Each seed is one world; a failing one is named with the command that replays
 * it. */
#include "sim.h"

#include "base/plant.h"
#include "sys/log.h"

#include <fcntl.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    FAILURES_MAX = 10,
    TWICE = 5,
    PLANT_SEEDS = 150,
    JOBS_MAX = 16,
    FULL_SEEDS = 1000,
    TASKS_MOST = 300
};

struct asked {
    uint64_t seeds, first;
    uint32_t tasks, jobs;
    bool one, trace, full, log;
    const char *plant;
    const char *base;
};

static const char *const plant_names[] = {
#define PLANT_NAME(name) #name,
    BS_PLANT_LIST(PLANT_NAME)
};

/* One seed; the trace's hash is its fingerprint. */
static bool run_seed(const struct asked *q, struct hits *hits, uint64_t seed, uint64_t *ret_hash,
                     char *why, size_t why_max)
{
    struct sim *w = (struct sim *)calloc(1, sizeof(*w));

    BS_ASSERT(w != NULL);
    w->seed = seed;
    w->hits = hits;
    w->trace = q->trace;
    w->base = q->base;
    w->opt.tasks = q->tasks;
    bool ok = sim_run(w);

    *ret_hash = w->hash;
    (void)snprintf(why, why_max, "%s", w->why);
    free(w);
    return ok;
}

static void note_failure(struct hits *hits, uint64_t seed, const char *why)
{
    uint32_t at = atomic_fetch_add(&hits->failed, 1);

    if (at < BS_COUNT(hits->failed_seed))
        atomic_store(&hits->failed_seed[at], seed + 1);
    if (at < FAILURES_MAX)
        printf("seed %llu: %s\n  replay: sim --seed %llu --trace\n", (unsigned long long)seed, why,
               (unsigned long long)seed);
    (void)fflush(stdout);
}

static void run_checked(const struct asked *q, struct hits *hits, uint64_t seed)
{
    char why[512], why_again[512];
    uint64_t hash, again;

    if (!run_seed(q, hits, seed, &hash, why, sizeof(why))) {
        note_failure(hits, seed, why);
        return;
    }
    if (seed >= q->first + TWICE)
        return;
    if (!run_seed(q, hits, seed, &again, why_again, sizeof(why_again)) || again != hash)
        note_failure(hits, seed, "the same seed does not give the same trace twice");
}

/* One worker: every jobs-th seed. What it is at is shared, so that a crash names its seed. */
static void work(const struct asked *q, struct hits *hits, uint32_t job)
{
    for (uint64_t i = job; i < q->seeds && hits->failed < FAILURES_MAX; i += q->jobs) {
        atomic_store(&hits->at[job], q->first + i);
        run_checked(q, hits, q->first + i);
    }
}

static void run_jobs(const struct asked *q, struct hits *hits)
{
    pid_t children[JOBS_MAX];

    (void)fflush(stdout);
    for (uint32_t j = 0; j < q->jobs; j++) {
        children[j] = fork();
        if (children[j] == 0) {
            work(q, hits, j);
            exit(0); /* not _exit: the sanitizers look for leaks here */
        }
    }
    for (uint32_t j = 0; j < q->jobs; j++) {
        int status = 0;

        if (children[j] < 0 || waitpid(children[j], &status, 0) < 0 || !WIFEXITED(status) ||
            WEXITSTATUS(status) != 0)
            note_failure(hits, hits->at[j], "the program ended abnormally");
    }
}

/* The same seed in this process, with everything it does. */
static int run_one(const struct asked *q, struct hits *hits)
{
    uint64_t hash;
    char why[512];
    bool ok = run_seed(q, hits, q->first, &hash, why, sizeof(why));

    printf("seed %llu: %s, trace %016llx\n", (unsigned long long)q->first, ok ? "ok" : why,
           (unsigned long long)hash);
    return ok ? 0 : 1;
}

/* Silent, in a child: with a bug inside, an assertion may be what sees it. */
static bool plant_seen(const struct asked *q, struct hits *hits, uint64_t seed, char *why)
{
    int ends[2];
    uint64_t hash;

    if (pipe(ends) != 0)
        return false;
    (void)fflush(stdout);
    pid_t pid = fork();

    if (pid == 0) {
        bool ok = run_seed(q, hits, seed, &hash, why, 512);
        ssize_t n = write(ends[1], why, strlen(why));

        _exit(ok || n < 0 ? 0 : 1);
    }
    close(ends[1]);
    ssize_t n = read(ends[0], why, 511);
    int status = 0;

    why[n > 0 ? n : 0] = '\0';
    close(ends[0]);
    if (pid < 0 || waitpid(pid, &status, 0) < 0)
        return false;
    if (!WIFEXITED(status))
        (void)snprintf(why, 512, "an assertion of the program itself");
    return !WIFEXITED(status) || WEXITSTATUS(status) != 0;
}

static int run_plant(const struct asked *q, struct hits *hits, uint32_t plant)
{
    char why[512] = "";

    bs_planted = (enum bs_plant)(plant + 1);
    for (uint64_t i = 0; i < q->seeds; i++)
        if (plant_seen(q, hits, q->first + i, why)) {
            printf("ok %s: seen at seed %llu (%llu of at most %llu): %s\n", plant_names[plant],
                   (unsigned long long)(q->first + i), (unsigned long long)(i + 1),
                   (unsigned long long)q->seeds, why);
            return 0;
        }
    printf("not ok %s: nothing seen in %llu seeds\n", plant_names[plant],
           (unsigned long long)q->seeds);
    return 1;
}

static int run_plants(const struct asked *q, struct hits *hits)
{
    int missed = 0, asked_for = 0;

    for (uint32_t i = 0; i < BS_COUNT(plant_names); i++)
        if (strcmp(q->plant, "all") == 0 || strcmp(q->plant, plant_names[i]) == 0) {
            asked_for++;
            missed += run_plant(q, hits, i);
        }
    printf("%d planted bugs, %d missed\n", asked_for, missed);
    return missed || !asked_for;
}

static int run_many(const struct asked *q, struct hits *hits)
{
    run_jobs(q, hits);
    hits_print(hits, stdout);
    uint32_t holes = hits_holes(hits, stdout);

    if (hits->failed)
        printf("%u seeds failed\n", hits->failed);
    if (holes && q->full)
        printf("%u things that can happen never happened\n", holes);
    return hits->failed || (holes && q->full) ? 1 : 0;
}

static uint64_t number(const char *text)
{
    int64_t n = 0;

    if (!text || !bs_i64_parse(bs_str_of(text), &n) || n < 0) {
        (void)fprintf(stderr, "sim: not a number: %s\n", text ? text : "nothing");
        exit(2);
    }
    return (uint64_t)n;
}

static struct asked read_arguments(int argc, char **argv)
{
    const char *env = getenv("BACKSTOP_SIM_SEEDS");
    struct asked q = { .first = 1, .jobs = 2 };

    for (int i = 1; i < argc; i++) {
        const char *a = argv[i], *v = i + 1 < argc ? argv[i + 1] : NULL;

        if (strcmp(a, "--trace") == 0)
            q.trace = true;
        else if (strcmp(a, "--full") == 0)
            q.full = true;
        else if (strcmp(a, "--log") == 0)
            q.log = true;
        else if (i++, strcmp(a, "--seeds") == 0)
            q.seeds = number(v);
        else if (strcmp(a, "--first") == 0)
            q.first = number(v);
        else if (strcmp(a, "--tasks") == 0)
            q.tasks = (uint32_t)number(v);
        else if (strcmp(a, "--jobs") == 0)
            q.jobs = (uint32_t)number(v);
        else if (strcmp(a, "--plant") == 0 && v)
            q.plant = v;
        else if (strcmp(a, "--seed") == 0) {
            q.first = number(v);
            q.one = true;
        } else {
            (void)fprintf(stderr, "sim: unknown argument %s\n", a);
            exit(2);
        }
    }
    if (!q.seeds)
        q.seeds = q.plant ? PLANT_SEEDS : env ? number(env) : 300;
    if (q.tasks > TASKS_MOST) {
        (void)fprintf(stderr, "sim: at most %d tasks\n", (int)TASKS_MOST);
        exit(2);
    }
    q.full = q.full || (!q.plant && q.seeds >= FULL_SEEDS);
    q.jobs = BS_MIN(BS_MAX(q.jobs, 1u), (uint32_t)JOBS_MAX);
    return q;
}

static int run(const struct asked *q, struct hits *hits)
{
    if (q->plant && !q->one)
        return run_plants(q, hits);
    for (uint32_t i = 0; q->plant && i < BS_COUNT(plant_names); i++)
        if (strcmp(q->plant, plant_names[i]) == 0)
            bs_planted = (enum bs_plant)(i + 1);
    return q->one ? run_one(q, hits) : run_many(q, hits);
}

int main(int argc, char **argv)
{
    struct asked q = read_arguments(argc, argv);
    struct hits *hits = hits_new();
    int silence = open("/dev/null", O_WRONLY | O_CLOEXEC);
    char base[64];

    BS_ASSERT(hits != NULL && silence >= 0);
    if (!q.log)
        bs_log_setup(silence, 1, BS_LOG_ERROR);
    if (!sim_base_new(base, sizeof(base))) {
        (void)fprintf(stderr, "sim: no folder for the stores\n");
        return 1;
    }
    q.base = base;
    int code = run(&q, hits);

    sim_base_free(base);
    return code;
}
