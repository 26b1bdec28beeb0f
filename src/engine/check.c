/* Look before you act: the order is asked before every call of a queue that declares how. */
#include "engine/parts.h"
#include "engine/reply.h"
#include "engine/request.h"

#include "base/text.h"

static void settle_missing(struct bs_job *job, struct bs_str name, struct bs_time now)
{
    struct bs_arena *a = &job->leased->arena;
    struct bs_outcome o = { .kind = BS_OUT_MANUAL, .code = BS_STR("CHECK_FIELD_MISSING") };

    o.message = bs_text_clean(
        a,
        bs_arena_fmt(a, "the look-up needs a usable %.*s, which this task does not have",
                     BS_STR_FMT(name)),
        BS_MESSAGE_MAX);
    bs_job_settle(job, &o, now);
}

static void fill_look(struct bs_job *job, const char *url, struct bs_time now)
{
    struct bs_engine *e = job->executor->engine;
    const struct bs_queue_conf *conf = job->conf;
    struct bs_headers h = { job->headers, 0, BS_JOB_HEADERS_MAX, &job->leased->arena };
    struct bs_span timeout = conf->look_timeout;

    if (!conf->renew)
        timeout = BS_US(BS_MIN(timeout.us, bs_job_left(job, now).us));
    bs_header_trace(&h, bs_job_task(job), e->options.seed);
    bs_header_sign(&h, &conf->secret, bs_job_task(job), bs_wall(e->options.clock), BS_STR(""));
    job->call = (struct bs_call){
        .method = "GET",
        .url = url,
        .headers = job->headers,
        .headers_n = h.n,
        .connect_timeout = BS_US(BS_MIN(conf->connect_timeout.us, timeout.us)),
        .timeout = timeout,
    };
}

void bs_job_look(struct bs_job *job, struct bs_time now)
{
    struct bs_engine *e = job->executor->engine;
    struct bs_arena *a = &job->leased->arena;
    struct bs_str missing = BS_STR_NONE;
    const char *url = NULL;
    bs_rc rc = bs_request_url(a, job->conf->look_url, bs_job_task(job), &url, &missing);

    if (rc == BS_E_NOT_FOUND) {
        settle_missing(job, missing, now);
        return;
    }
    if (rc == BS_OK)
        fill_look(job, url, now);
    if (rc != BS_OK || a->failed) {
        bs_job_cannot(job, now);
        return;
    }
    atomic_fetch_add(&e->figures.looks, 1);
    bs_job_start(job, BS_STAGE_LOOK, now);
}

/* Enough for a call that is worth making: a quarter of the lease or the call's own limit. A lease
 * that is renewed can run out too: the process may have stood still during the look-up. */
static bool enough_left(const struct bs_job *job, struct bs_time now)
{
    const struct bs_queue_conf *conf = job->conf;
    int64_t least = BS_MIN(conf->call_timeout.us, conf->lease.us / 4);

    return bs_job_left(job, now).us >= least;
}

static void go_on(struct bs_job *job, struct bs_time now)
{
    struct bs_time deadline;

    job->looked = BS_VERDICT_GO_ON;
    job->order = bs_str_trim(job->call.facts.body);
    if (bs_engine_draining(job->executor->engine, &deadline))
        bs_job_release(job, "the server stops", now);
    else if (job->lost)
        bs_job_release(job, "the lease is lost", now);
    else if (!enough_left(job, now))
        bs_job_release(job, "too little is left of the lease", now);
    else if (bs_line_shut(job->line, job, now))
        bs_job_release(job, bs_line_shut(job->line, job, now), now);
    else
        bs_job_call(job, now);
}

void bs_job_looked(struct bs_job *job, struct bs_time now)
{
    struct bs_arena *a = &job->leased->arena;
    struct bs_look look = bs_look_read(a, &job->call.facts);
    struct bs_outcome o = { 0 };
    bool goes_on = bs_classify_look(bs_job_task(job), &job->call.facts, &look, a, &o);

    bs_job_reached(job, BS_ENDPOINT_LOOK, bs_reach_of_look(&job->call.facts), &o, now);
    if (goes_on)
        go_on(job, now);
    else
        bs_job_settle(job, &o, now);
}
