/* The executor: jobs wait for a place, are looked up, called, settled. One thread, which also owns
 * the caller: nothing here blocks. */
#include "engine/parts.h"

enum { NOTES_MOST = 16 };

static void live_add(struct bs_executor *x, struct bs_job *job)
{
    job->live_prev = NULL;
    job->live_next = x->live;
    if (x->live)
        x->live->live_prev = job;
    x->live = job;
}

static bool stopping(const struct bs_executor *x)
{
    struct bs_time deadline;

    return bs_engine_draining(x->engine, &deadline);
}

/* What a job must have left of its lease to be started: the look, the call and the margin. A part
 * of the lease itself is always enough, or a claim that took long would give back for ever. */
static struct bs_span least_left(const struct bs_queue_conf *conf)
{
    int64_t need = conf->call_timeout.us + (conf->look == BS_LOOK_HTTP ? conf->look_timeout.us : 0);
    int64_t enough = conf->renew ? conf->lease.us / 2 : conf->lease.us / 4 * 3;

    return BS_US(BS_MIN(need, enough));
}

static bool too_late(const struct bs_job *job, struct bs_time now)
{
    return bs_job_left(job, now).us < least_left(job->conf).us;
}

void bs_job_start(struct bs_job *job, enum bs_stage stage, struct bs_time now)
{
    struct bs_executor *x = job->executor;

    job->stage = stage;
    job->call_until = bs_time_add(now, job->call.timeout);
    job->call.user = job;
    job->call.arena = &job->leased->arena;
    job->call.facts = (struct bs_facts){ 0 };
    x->started = true;
    x->caller->ops->start(x->caller, &job->call, now);
}

static void plan_renewal(struct bs_job *job)
{
    const struct bs_queue_conf *conf = job->conf;
    struct bs_executor *x = job->executor;

    if (!conf->renew)
        return;
    job->renew_at = bs_time_add(job->lease_until, BS_US(-(conf->lease.us - conf->lease.us / 3)));
    x->renew_at = bs_time_min(x->renew_at, job->renew_at);
}

/* Takes a place among the running. */
static void begin(struct bs_job *job, struct bs_time now)
{
    bs_line_began(job->line, now);
    atomic_fetch_add(&job->executor->engine->figures.running, 1);
    bs_hist_add(&job->line->waits, bs_time_diff(now, bs_job_task(job)->next_execute_at));
    job->begun_at = now;
    plan_renewal(job);
    if (job->conf->look == BS_LOOK_HTTP)
        bs_job_look(job, now);
    else
        bs_job_call(job, now);
}

static struct bs_job *pop(struct bs_line *line)
{
    struct bs_job *job = line->head;

    line->head = job->next;
    if (!line->head)
        line->tail = NULL;
    job->next = NULL;
    return job;
}

/* It waited long: the scheduler hears of a long call, and claims no stock for this queue. */
static void release_late(struct bs_job *job, struct bs_time now)
{
    job->busy_us = 1000000;
    bs_job_release(job, "too little is left of the lease", now);
}

/* NULL: it may stay. */
static const char *why_back(struct bs_executor *x, const struct bs_job *job, struct bs_time now)
{
    if (stopping(x))
        return "the server stops";
    if (job->line->paused)
        return "the queue is paused";
    return bs_line_shut(job->line, job, now);
}

/* Gives back what can no longer be started, starts what has a place. */
static void advance(struct bs_executor *x, struct bs_line *line, struct bs_time now)
{
    struct bs_time when;

    while (line->head) {
        struct bs_job *job = line->head;
        const char *why = why_back(x, job, now);

        if (why)
            bs_job_release(pop(line), why, now);
        else if (too_late(job, now))
            release_late(pop(line), now);
        else if (line->running < job->conf->concurrency && bs_line_free(line, now, &when))
            begin(pop(line), now);
        else
            break;
    }
}

/* Beginning with another queue each time, so that a host's places go round. */
static void advance_all(struct bs_executor *x, struct bs_time now)
{
    struct bs_line *first = x->turn ? x->turn : x->lines;
    struct bs_line *line = first;

    if (!first)
        return;
    do {
        advance(x, line, now);
        line = line->next ? line->next : x->lines;
    } while (line != first);
    x->turn = first->next;
}

static void know_line(struct bs_executor *x, struct bs_line *line)
{
    struct bs_line **end = &x->lines;

    if (line->known)
        return;
    while (*end)
        end = &(*end)->next;
    *end = line;
    line->known = true;
    line->paused = bs_engine_paused(x->engine, line->biz_type);
}

static void accept_job(struct bs_executor *x, struct bs_job *job, struct bs_time now)
{
    struct bs_line *line = job->line;

    job->cancelled = job->plain = job->renewing = job->lost = job->done = false;
    job->looked = BS_VERDICT_NONE;
    job->order = BS_STR_NONE;
    job->begun_at = BS_TIME_NONE;
    job->busy_us = 0;
    job->renew_at = BS_NEVER;
    job->next = NULL;
    live_add(x, job);
    know_line(x, line);
    bs_line_follow(x, line, job->conf, now);
    if (line->tail)
        line->tail->next = job;
    else
        line->head = job;
    line->tail = job;
}

static void take_jobs(struct bs_executor *x, struct bs_time now)
{
    struct bs_node *n = bs_mailbox_take_lane(&x->in, BS_EXECUTOR_JOBS, SIZE_MAX);

    while (n) {
        struct bs_node *next = n->next;

        accept_job(x, BS_CONTAINER(n, struct bs_job, node), now);
        n = next;
    }
}

static void take_answers(struct bs_executor *x, struct bs_time now)
{
    struct bs_node *n = bs_mailbox_take_lane(&x->in, BS_EXECUTOR_SETTLED, SIZE_MAX);

    while (n) {
        struct bs_node *next = n->next;

        bs_job_settled(BS_CONTAINER(n, struct bs_job, finish.node), now);
        n = next;
    }
    n = bs_mailbox_take_lane(&x->in, BS_EXECUTOR_RENEWED, SIZE_MAX);
    while (n) {
        struct bs_node *next = n->next;

        bs_job_renewed(BS_CONTAINER(n, struct bs_job, renew.node), now);
        n = next;
    }
}

static void take_news(struct bs_executor *x)
{
    if (!bs_mailbox_take_lane(&x->in, BS_EXECUTOR_NEWS, SIZE_MAX))
        return;
    bs_engine_take_news(x->engine, &x->engine->executor_news);
    for (struct bs_line *line = x->lines; line; line = line->next)
        line->paused = bs_engine_paused(x->engine, line->biz_type);
}

/* The drain's deadline: every call in flight is ended; it comes back with the truth about `sent`.
 */
static void cut_calls(struct bs_executor *x, struct bs_time now)
{
    struct bs_time deadline;

    if (x->cut || !bs_engine_draining(x->engine, &deadline) || bs_time_before(now, deadline))
        return;
    x->cut = true;
    for (struct bs_job *job = x->live; job; job = job->live_next) {
        if (job->stage != BS_STAGE_LOOK && job->stage != BS_STAGE_CALL)
            continue;
        job->cancelled = true;
        x->caller->ops->cancel(x->caller, &job->call);
    }
}

static void take_calls(struct bs_executor *x, struct bs_time now)
{
    struct bs_call *call;

    while ((call = x->caller->ops->finished(x->caller)) != NULL) {
        struct bs_job *job = call->user;

        if (job->stage == BS_STAGE_LOOK)
            bs_job_looked(job, now);
        else
            bs_job_called(job, now);
    }
}

/* What ended may start something new, and that may end at once; the rest waits for the next step.
 */
static void move_calls(struct bs_executor *x, struct bs_time now)
{
    for (int round = 0; round < 4; round++) {
        x->started = false;
        x->caller->ops->run(x->caller, now);
        take_calls(x, now);
        advance_all(x, now);
        if (!x->started)
            break;
    }
}

void bs_executor_note(struct bs_executor *x, struct bs_note *note)
{
    const struct bs_job *job = note->job;

    note->node.next = NULL;
    *x->notes_end = &note->node;
    x->notes_end = &note->node.next;
    x->notes_n++;
    /* Waking the scheduler for every call costs more than it brings while the next jobs are here.
     */
    x->notes_due |= !job->line->head || job->suspect || x->notes_n > job->conf->concurrency / 4 ||
                    x->notes_n >= NOTES_MOST;
}

static void send_notes(struct bs_executor *x)
{
    struct bs_node *n = x->notes;

    if (!x->notes_due)
        return;
    x->notes = NULL;
    x->notes_end = &x->notes;
    x->notes_n = 0;
    x->notes_due = false;
    while (n) {
        struct bs_node *next = n->next;
        bool taken = bs_mailbox_send(&x->engine->scheduler.in, BS_SCHEDULER_NOTES, n);

        BS_ASSERT(taken);
        n = next;
    }
}

/* When the rate lets the next one start; the other limits end with a call. */
static struct bs_time next_place(const struct bs_line *line, struct bs_time now)
{
    struct bs_time when;

    if (line->running >= line->head->conf->concurrency)
        return BS_NEVER;
    (void)bs_line_free(line, now, &when);
    return bs_time_before(now, when) ? when : BS_NEVER;
}

static struct bs_time next_deadline(const struct bs_executor *x, struct bs_time now)
{
    struct bs_time next = bs_time_min(x->renew_at, x->again ? x->again_at : BS_NEVER);
    struct bs_time deadline;

    if (!x->cut && bs_engine_draining(x->engine, &deadline))
        next = bs_time_min(next, deadline);
    for (const struct bs_line *line = x->lines; line; line = line->next) {
        const struct bs_job *job = line->head;

        if (job) {
            int64_t left = bs_job_left(job, BS_TIME_NONE).us - least_left(job->conf).us;
            next = bs_time_min(next, (struct bs_time){ left + 1 });
            next = bs_time_min(next, next_place(line, now));
        }
    }
    return next;
}

static struct bs_time executor_step(struct bs_actor *a, struct bs_time now)
{
    struct bs_executor *x = BS_CONTAINER(a, struct bs_executor, actor);

    take_answers(x, now);
    take_news(x);
    bs_gates_follow(x, now);
    take_jobs(x, now);
    advance_all(x, now);
    cut_calls(x, now);
    move_calls(x, now);
    bs_executor_renew(x, now);
    bs_executor_send_again(x, now);
    send_notes(x);
    return next_deadline(x, now);
}

static void executor_wait(struct bs_actor *a, struct bs_time now, struct bs_time until)
{
    struct bs_executor *x = BS_CONTAINER(a, struct bs_executor, actor);
    int64_t until_us = INT64_MAX;

    if (until.us != BS_NEVER.us)
        until_us = bs_boot_us() + BS_MAX(bs_time_diff(until, now).us, (int64_t)0);
    x->caller->ops->wait(x->caller, &x->in, until_us);
}

bs_rc bs_executor_init(struct bs_executor *x, struct bs_engine *e, struct bs_err *err)
{
    static const size_t caps[BS_EXECUTOR_LANES] = { SIZE_MAX, SIZE_MAX, 1, SIZE_MAX };

    BS_TRY(bs_mailbox_init(&x->in, caps, BS_EXECUTOR_LANES, e->options.with_fd, err));
    x->engine = e;
    x->caller = e->options.caller;
    x->renew_at = BS_NEVER;
    x->notes_end = &x->notes;
    x->actor = (struct bs_actor){
        .name = "executor", .step = executor_step, .wait = executor_wait, .in = &x->in
    };
    return BS_OK;
}

void bs_executor_done(struct bs_executor *x)
{
    if (!x->actor.in)
        return;
    if (x->caller)
        x->caller->ops->free(x->caller);
    bs_gates_done(x);
    for (uint32_t lane = 0; lane < BS_EXECUTOR_LANES; lane++)
        (void)bs_mailbox_take_lane(&x->in, lane, SIZE_MAX);
    bs_mailbox_done(&x->in);
}
