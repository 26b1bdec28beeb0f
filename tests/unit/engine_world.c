/* The engine's small world for tests. */
#include "engine_world.h"

#include "base/text.h"
#include "db/sqlite.h"
#include "door/door.h"
#include "sys/log.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* ---- the shop */

static struct world *world_of; /* tests are one thread and one world at a time */

static struct line *line_for(struct world *w, const char *what)
{
    for (uint32_t i = 0; i < w->lines_n; i++) {
        struct line *l = &w->lines[i];

        if (strstr(what, l->match) && (l->times == 0 || l->used < l->times)) {
            l->used++;
            return l;
        }
    }
    return NULL;
}

static void header_of(const struct bs_call *call, const char *name, char *ret, size_t size)
{
    size_t n = strlen(name);

    ret[0] = '\0';
    for (uint32_t i = 0; i < call->headers_n; i++)
        if (strncmp(call->headers[i], name, n) == 0 && call->headers[i][n] == ':')
            (void)snprintf(ret, size, "%s", call->headers[i] + n + 2);
}

static struct sight *see(struct world *w, const struct bs_call *call, struct bs_time now)
{
    char fence[32];

    assert_true(w->sights_n < SIGHTS_MAX);
    struct sight *s = &w->sights[w->sights_n++];
    (void)snprintf(s->method, sizeof(s->method), "%s", call->method);
    (void)snprintf(s->url, sizeof(s->url), "%s", call->url);
    header_of(call, "Idempotency-Key", s->key, sizeof(s->key));
    header_of(call, "Backstop-Attempt", s->attempt, sizeof(s->attempt));
    header_of(call, "Backstop-Fence", fence, sizeof(fence));
    s->fence = fence[0] ? strtoll(fence, NULL, 10) : 0;
    s->from = now;
    s->timeout = call->timeout;
    s->body = strndup(call->body.p ? call->body.p : "", call->body.n);
    return s;
}

/* When and how a call will end; kept outside the facts until it does. */
struct fate {
    struct sight *sight;
    struct line line;
    struct bs_time at;
    bool cancelled;
};

static void fake_start(struct bs_caller *c, struct bs_call *call, struct bs_time now)
{
    static const struct line success = { .after_us = 10000,
                                         .status = 200,
                                         .body = "{\"outcome\":\"success\"}" };
    struct fake *f = BS_CONTAINER(c, struct fake, base);
    struct world *w = world_of;
    struct fate *fate = aligned_alloc(64, (sizeof(*fate) + 63) / 64 * 64);
    char what[512];

    assert_non_null(fate);
    *fate = (struct fate){ 0 };
    fate->sight = see(w, call, now);
    (void)snprintf(what, sizeof(what), "%s %s\n%s", call->method, call->url, fate->sight->key);
    const struct line *l = line_for(w, what);
    fate->line = l ? *l : success;
    fate->at = bs_time_add(now, BS_US(fate->line.after_us));
    if (fate->line.after_us > call->timeout.us) {
        fate->line.wire = BS_WIRE_TIMEOUT;
        fate->at = bs_time_add(now, call->timeout);
    }
    call->facts.started_at = now;
    call->impl = fate;
    call->next = f->running;
    f->running = call;
    f->running_n++;
    f->running_max = BS_MAX(f->running_max, f->running_n);
}

static void end_call(struct fake *f, struct bs_call *call, struct bs_time now)
{
    struct fate *fate = call->impl;
    struct bs_call **end = &f->ended;
    struct bs_facts *facts = &call->facts;

    facts->wire = fate->cancelled ? BS_WIRE_CANCELLED : fate->line.wire;
    facts->sent = !fate->line.unsent;
    facts->ended_at = now;
    if (facts->wire == BS_WIRE_REPLIED) {
        facts->status = fate->line.status;
        facts->body = bs_arena_str(call->arena, bs_str_of(fate->line.body));
        facts->retry_after.given = fate->line.retry_after_s > 0;
        facts->retry_after.delay = BS_SEC(fate->line.retry_after_s);
    }
    fate->sight->to = now;
    fate->sight->cancelled = fate->cancelled;
    free(fate);
    call->impl = NULL;
    call->next = NULL;
    while (*end)
        end = &(*end)->next;
    *end = call;
    f->running_n--;
}

static void fake_run(struct bs_caller *c, struct bs_time now)
{
    struct fake *f = BS_CONTAINER(c, struct fake, base);
    struct bs_call **at = &f->running;

    while (*at) {
        struct bs_call *call = *at;
        const struct fate *fate = call->impl;

        if (!fate->cancelled && bs_time_before(now, fate->at)) {
            at = &call->next;
            continue;
        }
        *at = call->next;
        end_call(f, call, now);
    }
}

static struct bs_call *fake_finished(struct bs_caller *c)
{
    struct fake *f = BS_CONTAINER(c, struct fake, base);
    struct bs_call *call = f->ended;

    if (call)
        f->ended = call->next;
    return call;
}

static void fake_cancel(struct bs_caller *c, struct bs_call *call)
{
    struct fate *fate = call->impl;

    (void)c;
    assert_non_null(fate);
    fate->cancelled = true;
}

static void fake_wait(struct bs_caller *c, struct bs_mailbox *mail, int64_t until_us)
{
    (void)c;
    (void)mail;
    (void)until_us;
    fail_msg("nobody sleeps here");
}

static void fake_free(struct bs_caller *c)
{
    struct fake *f = BS_CONTAINER(c, struct fake, base);

    for (struct bs_call *call = f->running; call; call = call->next)
        free(call->impl);
    free(f);
}

static const struct bs_caller_ops fake_ops = {
    .start = fake_start,
    .run = fake_run,
    .finished = fake_finished,
    .cancel = fake_cancel,
    .wait = fake_wait,
    .free = fake_free,
};

static struct bs_time fake_next(const struct fake *f)
{
    struct bs_time next = BS_NEVER;

    for (const struct bs_call *call = f->running; call; call = call->next)
        next = bs_time_min(next, ((const struct fate *)call->impl)->at);
    return next;
}

void world_says(struct world *w, struct line line)
{
    assert_true(w->lines_n < LINES_MAX);
    w->lines[w->lines_n++] = line;
}

/* ---- birth and end */

static void set_queue(struct world *w)
{
    w->confs[0] = (struct bs_queue_conf){
        .biz_type = S("PAY_CALLBACK"),
        .handler_url = S("http://shop.test/pay"),
        .handler_host = S("shop.test:80"),
        .secret = { S("secret") },
        .look_timeout = BS_SEC(3),
        .call_timeout = BS_SEC(10),
        .connect_timeout = BS_SEC(3),
        .lease = BS_SEC(60),
        .concurrency = 4,
        .policy = bs_policy_default,
    };
    w->confs[0].policy.backoff.jitter_pct = 0;
    w->queues = (struct bs_queues){ w->confs, 1 };
    atomic_store(&w->slot.now, &w->queues);
}

void world_looks(struct world *w)
{
    w->confs[0].look = BS_LOOK_HTTP;
    w->confs[0].look_url = S("http://shop.test/orders/{order_no}");
    w->confs[0].look_host = S("shop.test:80");
    w->confs[0].policy.has_look_up = true;
}

void world_adds(struct world *w, const char *biz_type, const char *host)
{
    struct bs_queue_conf *q = &w->confs[w->queues.n];
    static char urls[QUEUES_MAX][2][96];
    char(*url)[96] = urls[w->queues.n];

    assert_true(w->queues.n < QUEUES_MAX);
    *q = w->confs[0];
    (void)snprintf(url[0], sizeof(url[0]), "http://%s/%s", host, biz_type);
    (void)snprintf(url[1], sizeof(url[1]), "%s:80", host);
    q->biz_type = bs_str_of(biz_type);
    q->handler_url = bs_str_of(url[0]);
    q->handler_host = bs_str_of(url[1]);
    w->queues.n++;
}

struct world *world_new(void)
{
    struct world *w = calloc(1, sizeof(*w));

    assert_non_null(w);
    w->sights = calloc(SIGHTS_MAX, sizeof(*w->sights));
    assert_non_null(w->sights);
    /* In memory where there is such a folder: these tests are about order, not about disks. */
    const char *base = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
    (void)snprintf(w->dir, sizeof(w->dir), "%s/backstop-engine-XXXXXX", base);
    assert_non_null(mkdtemp(w->dir));
    (void)snprintf(w->path, sizeof(w->path), "%s/store.db", w->dir);
    (void)snprintf(w->url, sizeof(w->url), "sqlite:%s", w->path);
    bs_log_setup(2, 1, BS_LOG_ERROR);
    bs_clock_manual_init(&w->clock, NOW);
    bs_ids_init(&w->ids, 1);
    w->seed = 7;
    w->biz_type = "PAY_CALLBACK";
    set_queue(w);
    world_of = w;
    return w;
}

static struct bs_store *open_store(struct world *w)
{
    struct bs_sqlite_options so = { .path = w->path };
    struct bs_store_options o = { .url = w->url, .mode = BS_STORE_WRITER, .migrate = true };
    struct bs_store *store = NULL;
    struct bs_err err = { 0 };

    if (bs_sqlite_open(&so, &o.db, &err) != BS_OK)
        fail_msg("%s", err.msg);
    o.db = w->db = bs_faulty_new(o.db);
    assert_non_null(o.db);
    if (bs_store_open(&o, &store, &err) != BS_OK)
        fail_msg("%s", err.msg);
    return store;
}

static void on_hints(void *ctx, const struct bs_hints *hints)
{
    struct world *w = ctx;

    if (w->engine)
        bs_engine_hints(w->engine, hints);
}

void world_start(struct world *w)
{
    struct bs_committer_options co = {
        .store = open_store(w), .clock = &w->clock.base, .on_hints = on_hints, .hints_ctx = w
    };
    struct bs_err err = { 0 };

    for (size_t i = 0; i < BS_RANK_COUNT; i++)
        co.caps[i] = w->lane_cap;
    if (bs_committer_new(&co, &w->committer, &err) != BS_OK)
        fail_msg("%s", err.msg);
    w->fake = calloc(1, sizeof(*w->fake));
    assert_non_null(w->fake);
    w->fake->base.ops = &fake_ops;
    struct bs_engine_options eo = { .queues = &w->slot,
                                    .committer = w->committer,
                                    .caller = &w->fake->base,
                                    .clock = &w->clock.base,
                                    .ids = &w->ids,
                                    .node = S("node-1"),
                                    .seed = w->seed++,
                                    .calls_max = w->calls_max,
                                    .orphans_after = w->orphans_after };
    if (bs_engine_new(&eo, &w->engine, &err) != BS_OK)
        fail_msg("%s", err.msg);
}

void world_crash(struct world *w)
{
    bs_committer_free(w->committer);
    bs_engine_free(w->engine);
    w->committer = NULL;
    w->engine = NULL;
    w->fake = NULL;
    w->db = NULL;
}

void world_free(struct world *w)
{
    char command[128];

    if (w->engine)
        world_crash(w);
    for (uint32_t i = 0; i < w->sights_n; i++)
        free(w->sights[i].body);
    free(w->sights);
    (void)snprintf(command, sizeof(command), "rm -rf %s", w->dir);
    assert_int_equal(system(command), 0);
    free(w);
}

/* ---- time */

struct bs_time world_now(struct world *w)
{
    return w->clock.at;
}

static bool mail(const struct bs_actor *a)
{
    for (uint32_t lane = 0; lane < a->in->lanes_n; lane++)
        if (bs_mailbox_count(a->in, lane) > 0)
            return true;
    return false;
}

static struct bs_time step_one(struct world *w, struct bs_actor *a)
{
    bool committer = a == bs_committer_actor(w->committer);
    struct bs_time now = w->clock.at;

    if (committer && bs_time_before(now, w->commit_at))
        return w->commit_at;
    bool busy = committer && mail(a);
    struct bs_time next = a->step(a, now);
    if (busy)
        w->commit_at = bs_time_add(now, BS_US(w->commit_us));
    return mail(a) ? bs_time_max(now, committer ? w->commit_at : now) : next;
}

/* One turn of everybody; when somebody is needed next. */
static struct bs_time turn(struct world *w)
{
    struct bs_actor *const actors[] = { bs_engine_scheduler(w->engine),
                                        bs_engine_executor(w->engine), bs_engine_reaper(w->engine),
                                        bs_committer_actor(w->committer) };
    struct bs_time next = BS_NEVER;

    for (size_t i = 0; i < BS_COUNT(actors); i++)
        next = bs_time_min(next, step_one(w, actors[i]));
    for (size_t i = 0; i < BS_COUNT(actors); i++)
        if (mail(actors[i]))
            next = bs_time_min(next, i < 3 ? w->clock.at : w->commit_at);
    return bs_time_min(next, fake_next(w->fake));
}

static bool run_until(struct world *w, struct bs_time end, bool until_idle)
{
    uint32_t still = 0;

    for (;;) {
        struct bs_time next = turn(w);

        if (until_idle && bs_engine_idle(w->engine))
            return true;
        if (end.us < next.us) {
            w->clock.at = end;
            return false;
        }
        still = next.us > w->clock.at.us ? 0 : still + 1;
        if (still > 1000)
            fail_msg("somebody is busy without end");
        w->clock.at = bs_time_max(w->clock.at, next);
    }
}

void world_turns(struct world *w, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        w->clock.at = bs_time_max(w->clock.at, turn(w));
}

void world_run(struct world *w, int64_t us)
{
    (void)run_until(w, bs_time_add(w->clock.at, BS_US(us)), false);
}

void world_settle(struct world *w, int64_t us)
{
    if (!run_until(w, bs_time_add(w->clock.at, BS_US(us)), true))
        fail_msg("the engine is not idle after %lld us", (long long)us);
}

/* ---- work */

struct errand {
    struct bs_work work;
    struct bs_op *ops[1];
    bs_rc rc;
    bool done;
};

static void errand_done(struct bs_work *w, bs_rc rc, const struct bs_err *err)
{
    struct errand *e = BS_CONTAINER(w, struct errand, work);

    (void)err;
    e->rc = rc;
    e->done = true;
}

bs_rc world_apply(struct world *w, struct bs_op *op)
{
    struct errand e = { .ops = { op } };
    struct bs_actor *committer = bs_committer_actor(w->committer);

    e.work = (struct bs_work){ .rank = BS_RANK_PEOPLE, .ops = e.ops, .n = 1, .done = errand_done };
    assert_true(bs_committer_send(w->committer, &e.work));
    for (int i = 0; i < 100 && !e.done; i++)
        (void)committer->step(committer, w->clock.at);
    assert_true(e.done);
    return e.rc != BS_OK ? e.rc : op->rc;
}

int64_t world_submit(struct world *w, const char *request_id, const char *more)
{
    BS_CLEANUP(bs_arena_free) struct bs_arena a = { 0 };
    struct bs_door door = { &w->slot, &w->ids };
    struct bs_field_errors errors = { 0 };
    struct bs_err err = { 0 };
    struct bs_op op = { 0 };
    struct bs_str json =
        bs_arena_fmt(&a, "{\"biz_type\":\"%s\",\"biz_id\":\"%s\",\"request_id\":\"%s\"%s}",
                     w->biz_type, request_id, request_id, more);

    struct bs_door_input in = { .json = json, .who = S("test"), .now = w->clock.at };
    if (bs_door_read(&door, &in, &a, &op, &errors, &err) != BS_OK)
        fail_msg("%s %s", err.msg, errors.n ? errors.items[0].message.p : "");
    assert_int_equal(world_apply(w, &op), BS_OK);
    assert_int_equal(op.submit.ret_what, BS_SUBMITTED_CREATED);
    return op.submit.ret_task_id;
}

struct bs_task world_task(struct world *w, int64_t id, struct bs_arena *a)
{
    struct bs_store_options o = { .url = w->url, .mode = BS_STORE_READER };
    struct bs_store *reader = NULL;
    struct bs_err err = { 0 };
    struct bs_task t = { 0 };

    if (bs_store_open(&o, &reader, &err) != BS_OK || bs_store_task(reader, id, a, &t, &err))
        fail_msg("%s", err.msg);
    bs_store_close(reader);
    return t;
}

uint32_t world_seen(struct world *w, const char *method, const char *key)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < w->sights_n; i++) {
        const struct sight *s = &w->sights[i];

        n += (!method || strcmp(s->method, method) == 0) && (!key || strcmp(s->key, key) == 0);
    }
    return n;
}
