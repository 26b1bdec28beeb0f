/* The call to the handler: the request as docs/HANDLERS.md says, the reply to the outcome table. */
#include "engine/parts.h"
#include "engine/reply.h"
#include "engine/request.h"

#include "sys/log.h"

static void add_headers(struct bs_job *job, struct bs_headers *h)
{
    struct bs_clock *clock = job->executor->engine->options.clock;
    const struct bs_task *t = bs_job_task(job);
    struct bs_arena *a = &job->leased->arena;

    bs_header_add(h, "Content-Type", BS_STR("application/json"));
    bs_header_add(h, "Idempotency-Key", t->request_id);
    bs_header_add(h, "Backstop-Fence", bs_arena_i64(a, t->lease_token));
    bs_header_add(h, "Backstop-Attempt", bs_arena_i64(a, t->attempt_no));
    bs_header_trace(h, t, job->executor->engine->options.seed);
    bs_header_sign(h, &job->conf->secret, t, bs_wall(clock), bs_buf_str(&job->body));
}

static bs_rc fill_call(struct bs_job *job, struct bs_time now)
{
    const struct bs_queue_conf *conf = job->conf;
    struct bs_arena *a = &job->leased->arena;
    struct bs_headers h = { job->headers, 0, BS_JOB_HEADERS_MAX, a };
    struct bs_span timeout = conf->call_timeout;

    if (!conf->renew)
        timeout = BS_US(BS_MIN(timeout.us, bs_job_left(job, now).us));
    job->body.max = BS_REQUEST_BODY_MAX;
    bs_buf_reset(&job->body);
    BS_TRY(bs_request_body(&job->body, bs_job_task(job), job->order, NULL));
    add_headers(job, &h);
    job->call = (struct bs_call){
        .method = "POST",
        .url = bs_arena_str(a, conf->handler_url).p,
        .headers = job->headers,
        .headers_n = h.n,
        .body = bs_buf_str(&job->body),
        .connect_timeout = BS_US(BS_MIN(conf->connect_timeout.us, timeout.us)),
        .timeout = timeout,
    };
    return a->failed ? BS_E_NOMEM : BS_OK;
}

void bs_job_call(struct bs_job *job, struct bs_time now)
{
    struct bs_engine *e = job->executor->engine;

    if (fill_call(job, now) != BS_OK) {
        bs_job_cannot(job, now);
        return;
    }
    atomic_fetch_add(&e->figures.calls, 1);
    bs_job_start(job, BS_STAGE_CALL, now);
}

static void log_clamped(const struct bs_job *job)
{
    if (job->call.facts.retry_after.clamped)
        bs_log(BS_LOG_WARN, "call.retry_after_clamped", BS_F("biz_type", job->conf->biz_type),
               BS_F("request_id", bs_job_task(job)->request_id));
}

void bs_job_called(struct bs_job *job, struct bs_time now)
{
    const struct bs_policy *policy = &job->conf->policy;
    struct bs_arena *a = &job->leased->arena;
    struct bs_reply reply = bs_reply_read(a, &job->call.facts, &policy->success);
    struct bs_outcome o = bs_classify_call(policy, &job->call.facts, &reply, a);

    log_clamped(job);
    bs_hist_add(&job->line->calls,
                bs_time_diff(job->call.facts.ended_at, job->call.facts.started_at));
    bs_job_reached(job, BS_ENDPOINT_HANDLER, o.reach, &o, now);
    if (o.kind == BS_OUT_SENT)
        o.not_before = job->call_until;
    bs_job_settle(job, &o, now);
}
