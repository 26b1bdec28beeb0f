/* From an outcome to the store: the finish of a leased task, kept until the store has taken it. */
#include "engine/parts.h"

#include "engine/request.h"

#include "base/plant.h"
#include "base/rng.h"
#include "sys/log.h"

static const struct bs_span again_after = { 20000 };

static void send_finish(struct bs_job *job, struct bs_time now);

/* Committer's thread. */
static void finish_done(struct bs_work *w, bs_rc rc, const struct bs_err *err)
{
    struct bs_job *job = BS_CONTAINER(w, struct bs_job, finish);
    struct bs_executor *x = job->executor;

    (void)err;
    job->finish_rc = rc;
    bs_engine_answered(x->engine, &x->in, BS_EXECUTOR_SETTLED, &job->finish.node);
}

/* ---- to the committer */

static void keep_for_later(struct bs_job *job, struct bs_time now)
{
    struct bs_executor *x = job->executor;
    struct bs_job **end = &x->again;

    if (BS_PLANT(DROP_ON_FULL)) {
        job->done = true;
        bs_job_free_when_done(job);
        return;
    }
    while (*end)
        end = &(*end)->next;
    *end = job;
    job->next = NULL;
    x->again_at = bs_time_add(now, again_after);
}

static void send_finish(struct bs_job *job, struct bs_time now)
{
    if (!bs_engine_send(job->executor->engine, &job->finish))
        keep_for_later(job, now);
}

void bs_executor_send_again(struct bs_executor *x, struct bs_time now)
{
    struct bs_job *job = x->again;

    if (!job || bs_time_before(now, x->again_at))
        return;
    x->again = NULL;
    while (job) {
        struct bs_job *next = job->next;

        job->next = NULL;
        send_finish(job, now);
        job = next;
    }
}

/* Its place among the running is free as soon as the call is over, not when the result is stored.
 */
static void end_call(struct bs_job *job, struct bs_time now)
{
    struct bs_engine *e = job->executor->engine;

    if (job->begun_at.us) {
        bs_line_ended(job->line);
        job->busy_us = BS_MAX(bs_time_diff(now, job->begun_at).us, (int64_t)1);
        atomic_fetch_sub(&e->figures.running, 1);
        atomic_fetch_add(&e->figures.call_us_sum, (uint64_t)job->busy_us);
    }
    bs_executor_note(job->executor, &job->ended);
}

static void fill_finish(struct bs_job *job, const struct bs_outcome *o, struct bs_time now)
{
    const struct bs_engine_options *opt = &job->executor->engine->options;
    const struct bs_task *t = bs_job_task(job);
    struct bs_rng rng = { opt->seed ^ (uint64_t)t->id ^ ((uint64_t)t->attempt_no << 48) };

    job->finish_op = (struct bs_op){ .kind = BS_OP_FINISH, .now = now };
    job->finish_op.id = bs_ids_next(opt->ids, now);
    job->finish_op.finish = (struct bs_op_finish){
        .task = t,
        .outcome = *o,
        .policy = &job->conf->policy,
        .seed = bs_rng_next(&rng),
        .node = opt->node,
    };
    job->finish_ops[0] = &job->finish_op;
    job->finish = (struct bs_work){
        .rank = BS_RANK_FINISH, .ops = job->finish_ops, .n = 1, .done = finish_done
    };
}

void bs_job_settle(struct bs_job *job, const struct bs_outcome *o, struct bs_time now)
{
    struct bs_outcome told = *o;

    BS_ASSERT(job->stage != BS_STAGE_SETTLE && job->stage != BS_STAGE_FREE);
    job->stage = BS_STAGE_SETTLE;
    if (told.looked == BS_VERDICT_NONE)
        told.looked = job->looked;
    if (told.started_at.us == 0)
        told.started_at = job->begun_at.us ? job->begun_at : now;
    if (told.ended_at.us == 0)
        told.ended_at = now;
    end_call(job, now);
    fill_finish(job, &told, now);
    send_finish(job, now);
}

void bs_job_release(struct bs_job *job, const char *why, struct bs_time now)
{
    struct bs_outcome o = { .kind = BS_OUT_UNSENT, .message = bs_str_of(why) };

    bs_job_settle(job, &o, now);
}

void bs_job_cannot(struct bs_job *job, struct bs_time now)
{
    /* Not a release: that would be due again at once, and memory needs time. */
    struct bs_outcome o = { .kind = BS_OUT_NOT_PROCESSED,
                            .code = BS_STR("NO_MEMORY"),
                            .message = BS_STR("the request could not be made here") };

    bs_job_settle(job, &o, now);
}

/* ---- from the committer */

static void log_settled(const struct bs_job *job)
{
    const struct bs_op_finish *f = &job->finish_op.finish;
    const struct bs_task *t = bs_job_task(job);
    struct bs_arena *a = &job->leased->arena;

    if (!bs_log_wants(BS_LOG_INFO))
        return;
    bs_log(BS_LOG_INFO, "task.settled", BS_F("task_no", bs_task_no(a, t->id)),
           BS_F("biz_type", t->biz_type), BS_F("order_no", t->order_no),
           BS_F("request_id", t->request_id), BS_FN("attempt", t->attempt_no),
           BS_FZ("from", bs_state_name(BS_PROCESSING)),
           BS_FZ("via", f->ret_settled.via_failed ? bs_state_name(BS_FAILED) : ""),
           BS_FZ("to", bs_state_name(f->ret_settled.to)),
           BS_FZ("outcome", bs_outcome_name(f->outcome.kind)), BS_F("code", f->outcome.code));
}

static void log_lost(const struct bs_job *job, enum bs_log_level level, const char *event)
{
    const struct bs_op_finish *f = &job->finish_op.finish;
    const struct bs_task *t = bs_job_task(job);
    struct bs_arena *a = &job->leased->arena;

    bs_log(level, event, BS_F("task_no", bs_task_no(a, t->id)), BS_F("biz_type", t->biz_type),
           BS_F("order_no", t->order_no), BS_F("request_id", t->request_id),
           BS_FN("attempt", t->attempt_no), BS_FZ("outcome", bs_outcome_name(f->outcome.kind)),
           BS_F("code", f->outcome.code), BS_FZ("rc", bs_rc_name(job->finish_op.rc)),
           BS_FZ("message", job->finish_op.err.msg));
}

/* The class of a result is always saved: where the store refuses the row, its texts go first. */
static bool send_plain(struct bs_job *job, struct bs_time now)
{
    struct bs_outcome *o = &job->finish_op.finish.outcome;

    if (job->plain)
        return false;
    job->plain = true;
    log_lost(job, BS_LOG_ERROR, "task.settle_refused");
    o->message = o->effect = o->excerpt = BS_STR_NONE;
    job->finish_op.rc = BS_OK;
    send_finish(job, now);
    return true;
}

static void count_settled(const struct bs_job *job, struct bs_time now)
{
    struct bs_engine *e = job->executor->engine;
    enum bs_outcome_kind kind = job->finish_op.finish.outcome.kind;

    if (job->finish_op.finish.ret_settled.to == BS_SUCCESS)
        bs_hist_add(&job->line->ends, bs_time_diff(now, bs_job_task(job)->created_at));
    atomic_fetch_add(&e->figures.settled[kind], 1);
    if (kind == BS_OUT_UNSENT || kind == BS_OUT_SENT)
        atomic_fetch_add(&e->figures.released, 1);
}

void bs_job_settled(struct bs_job *job, struct bs_time now)
{
    struct bs_engine *e = job->executor->engine;

    if (job->finish_rc != BS_OK) {
        /* Nothing of it is known to have happened: the same finish again. */
        keep_for_later(job, now);
        return;
    }
    if (job->finish_op.rc == BS_OK) {
        count_settled(job, now);
        log_settled(job);
    } else if (job->finish_op.rc == BS_E_STALE) {
        atomic_fetch_add(&e->figures.stale, 1);
        log_lost(job, BS_LOG_WARN, "task.stale_result");
    } else if (send_plain(job, now)) {
        return;
    } else {
        log_lost(job, BS_LOG_ERROR, "task.settle_failed");
    }
    job->done = true;
    bs_job_free_when_done(job);
}
