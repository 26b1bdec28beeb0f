/* A lease while its call runs: what is left of it, its renewal, and the job's way back when nothing
 * is outstanding any more. */
#include "engine/parts.h"

#include "sys/log.h"

static const struct bs_span try_again = { 200000 };

/* A second for settling; of a very short lease an eighth. */
static int64_t settle_margin_us(const struct bs_queue_conf *conf)
{
    return BS_MIN((int64_t)1000000, conf->lease.us / 8);
}

struct bs_span bs_job_left(const struct bs_job *job, struct bs_time now)
{
    return BS_US(bs_time_diff(job->lease_until, now).us - settle_margin_us(job->conf));
}

/* Committer's thread. */
static void renew_done(struct bs_work *w, bs_rc rc, const struct bs_err *err)
{
    struct bs_job *job = BS_CONTAINER(w, struct bs_job, renew);
    struct bs_executor *x = job->executor;

    (void)err;
    job->renew_rc = rc;
    bs_engine_answered(x->engine, &x->in, BS_EXECUTOR_RENEWED, &job->renew.node);
}

static void send_renewal(struct bs_job *job, struct bs_time now)
{
    struct bs_engine *e = job->executor->engine;

    job->renew_op = (struct bs_op){ .kind = BS_OP_RENEW, .now = now };
    job->renew_op.id = bs_ids_next(e->options.ids, now);
    job->renew_op.renew = (struct bs_op_renew){
        .task_id = bs_job_task(job)->id,
        .token = bs_job_task(job)->lease_token,
        .until = bs_time_add(now, job->conf->lease),
    };
    job->renew_ops[0] = &job->renew_op;
    job->renew = (struct bs_work){
        .rank = BS_RANK_FINISH, .ops = job->renew_ops, .n = 1, .done = renew_done
    };
    job->renewing = true;
    if (!bs_engine_send(e, &job->renew)) {
        job->renewing = false;
        job->renew_at = bs_time_add(now, try_again);
    }
}

void bs_executor_renew(struct bs_executor *x, struct bs_time now)
{
    struct bs_time next = BS_NEVER;

    if (bs_time_before(now, x->renew_at))
        return;
    for (struct bs_job *job = x->live; job; job = job->live_next) {
        bool runs = job->stage == BS_STAGE_LOOK || job->stage == BS_STAGE_CALL;

        if (!runs || job->renewing || job->lost)
            continue;
        if (!bs_time_before(now, job->renew_at))
            send_renewal(job, now);
        if (!job->renewing)
            next = bs_time_min(next, job->renew_at);
    }
    x->renew_at = next;
}

/* Somebody else has the task. A look can be ended: nothing was done. A call that may have been sent
 * ends by itself, and its finish is refused as stale and logged. */
static void lose(struct bs_job *job)
{
    struct bs_caller *caller = job->executor->caller;

    job->lost = true;
    if (job->stage != BS_STAGE_LOOK)
        return;
    job->cancelled = true;
    caller->ops->cancel(caller, &job->call);
}

void bs_job_renewed(struct bs_job *job, struct bs_time now)
{
    struct bs_executor *x = job->executor;
    bs_rc rc = job->renew_rc != BS_OK ? job->renew_rc : job->renew_op.rc;

    job->renewing = false;
    if (job->done) {
        bs_job_free_when_done(job);
        return;
    }
    if (rc == BS_OK)
        job->lease_until = job->renew_op.renew.until;
    if (job->stage == BS_STAGE_SETTLE)
        return;
    if (rc == BS_E_STALE) {
        lose(job);
        return;
    }
    struct bs_span pause = rc == BS_OK ? BS_US(job->conf->lease.us / 3) : try_again;
    job->renew_at = bs_time_add(rc == BS_OK ? job->renew_op.now : now, pause);
    x->renew_at = bs_time_min(x->renew_at, job->renew_at);
}

static void live_remove(struct bs_executor *x, struct bs_job *job)
{
    if (job->live_prev)
        job->live_prev->live_next = job->live_next;
    else
        x->live = job->live_next;
    if (job->live_next)
        job->live_next->live_prev = job->live_prev;
}

void bs_job_free_when_done(struct bs_job *job)
{
    struct bs_executor *x = job->executor;

    if (job->renewing)
        return;
    live_remove(x, job);
    bs_leased_free(job->leased);
    job->leased = NULL;
    if (job->body.cap > 16384)
        bs_buf_free(&job->body);
    atomic_fetch_sub(&x->engine->busy, 1);
    atomic_fetch_sub(&x->engine->figures.leased, 1);
    bs_executor_note(x, &job->freed);
}
