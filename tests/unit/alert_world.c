/* The alert actor's small world. */
#include "alert_world.h"

#include "base/text.h"
#include "db/sqlite.h"
#include "door/door.h"
#include "sys/log.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static struct world *world_of; /* one world at a time */

static struct {
    struct bs_work work;
    struct bs_op op, *ops[1];
    bool out;
} reaper;

/* ---- the receiver ---- */

struct fake {
    struct bs_caller base;
    struct bs_call *running, *ended;
};

static void header_of(const struct bs_call *call, const char *name, char *ret, size_t size)
{
    size_t n = strlen(name);

    for (uint32_t i = 0; i < call->headers_n; i++)
        if (strncmp(call->headers[i], name, n) == 0 && call->headers[i][n] == ':')
            (void)snprintf(ret, size, "%s", call->headers[i] + n + 2);
}

static void see(struct world *w, const struct bs_call *call, struct bs_time now)
{
    assert_true(w->posts_n < POSTS_MAX);
    struct post *p = &w->posts[w->posts_n++];

    *p = (struct post){ .at = now, .status = w->status };
    (void)snprintf(p->url, sizeof(p->url), "%s %s", call->method, call->url);
    header_of(call, "webhook-id", p->id, sizeof(p->id));
    header_of(call, "webhook-timestamp", p->timestamp, sizeof(p->timestamp));
    header_of(call, "webhook-signature", p->signature, sizeof(p->signature));
    p->body = strndup(call->body.p ? call->body.p : "", call->body.n);
}

static void fake_start(struct bs_caller *c, struct bs_call *call, struct bs_time now)
{
    struct fake *f = BS_CONTAINER(c, struct fake, base);

    see(world_of, call, now);
    call->facts = (struct bs_facts){ .started_at = now };
    call->facts.ended_at = bs_time_add(now, BS_US(world_of->takes_us));
    call->facts.status = world_of->status;
    call->facts.wire = world_of->status ? BS_WIRE_REPLIED : BS_WIRE_CONNECT_REFUSED;
    call->facts.body = BS_STR("so it is");
    call->next = f->running;
    f->running = call;
}

static void fake_run(struct bs_caller *c, struct bs_time now)
{
    struct fake *f = BS_CONTAINER(c, struct fake, base);
    struct bs_call **at = &f->running;

    while (*at) {
        struct bs_call *call = *at;

        if (bs_time_before(now, call->facts.ended_at)) {
            at = &call->next;
            continue;
        }
        *at = call->next;
        call->next = f->ended;
        f->ended = call;
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
    (void)c;
    (void)call;
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
    free(BS_CONTAINER(c, struct fake, base));
}

static const struct bs_caller_ops fake_ops = {
    .start = fake_start,
    .run = fake_run,
    .finished = fake_finished,
    .cancel = fake_cancel,
    .wait = fake_wait,
    .free = fake_free,
};

/* ---- birth and end ---- */

struct world *world_new(void)
{
    struct world *w = calloc(1, sizeof(*w));
    const char *base = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";

    assert_non_null(w);
    (void)snprintf(w->dir, sizeof(w->dir), "%s/backstop-alert-XXXXXX", base);
    assert_non_null(mkdtemp(w->dir));
    (void)snprintf(w->path, sizeof(w->path), "%s/store.db", w->dir);
    (void)snprintf(w->url, sizeof(w->url), "sqlite:%s", w->path);
    bs_log_setup(2, 1, (enum bs_log_level)(BS_LOG_ERROR + 1));
    bs_clock_manual_init(&w->clock, NOW);
    bs_ids_init(&w->ids, 1);
    w->conf = (struct bs_queue_conf){ .biz_type = S("PAY"),
                                      .handler_url = S("http://shop.test/pay"),
                                      .alerts = { .oldest_due = BS_SEC(300), .backlog = 100 },
                                      .policy = bs_policy_default };
    w->hooks[0] = (struct bs_alert_webhook){ .name = S("ops"),
                                             .url = S("http://ops.test/"),
                                             .secret = { S("key") },
                                             .timeout = BS_SEC(10) };
    w->alerts = bs_alert_conf_default;
    w->alerts.webhooks = w->hooks;
    w->alerts.webhooks_n = 1;
    w->queues = (struct bs_queues){ .items = &w->conf, .n = 1, .alerts = &w->alerts };
    atomic_store(&w->slot.now, &w->queues);
    w->status = 204;
    w->takes_us = 1000;
    w->ready = true;
    world_of = w;
    reaper.out = false;
    return w;
}

static struct bs_store *open_store(struct world *w, enum bs_store_mode mode)
{
    struct bs_sqlite_options so = { .path = w->path };
    struct bs_store_options o = { .url = w->url, .mode = mode, .migrate = true };
    struct bs_store *store = NULL;
    struct bs_err err = { 0 };

    if (mode == BS_STORE_WRITER) {
        if (bs_sqlite_open(&so, &o.db, &err) != BS_OK)
            fail_msg("%s", err.msg);
        o.db = w->db = bs_faulty_new(o.db);
        assert_non_null(o.db);
    }
    if (bs_store_open(&o, &store, &err) != BS_OK)
        fail_msg("%s", err.msg);
    return store;
}

static uint32_t gates(void *ctx, struct bs_alert_gate *ret, uint32_t max)
{
    struct world *w = ctx;

    assert_true(max > 0);
    if (!w->breaker_open)
        return 0;
    *ret = (struct bs_alert_gate){ .biz_type = "PAY", .why = "HTTP_503 from shop.test" };
    return 1;
}

static bool ready(void *ctx)
{
    return ((struct world *)ctx)->ready;
}

static void on_health(void *ctx, bool healthy, const struct bs_err *err)
{
    struct world *w = ctx;

    if (w->actor)
        bs_alerts_store_health(w->actor, healthy, err);
}

void world_start(struct world *w)
{
    struct bs_committer_options co = { .clock = &w->clock.base,
                                       .on_health = on_health,
                                       .health_ctx = w };
    struct fake *f = calloc(1, sizeof(*f));
    struct bs_err err = { 0 };

    assert_non_null(f);
    f->base.ops = &fake_ops;
    co.store = open_store(w, BS_STORE_WRITER);
    if (bs_committer_new(&co, &w->committer, &err) != BS_OK)
        fail_msg("%s", err.msg);
    const struct bs_alerts_options o = { .queues = &w->slot,
                                         .committer = w->committer,
                                         .reader = open_store(w, BS_STORE_READER),
                                         .caller = &f->base,
                                         .clock = &w->clock.base,
                                         .ids = &w->ids,
                                         .node = S("node-1"),
                                         .seed = 7,
                                         .gates = gates,
                                         .ready = ready,
                                         .ctx = w };
    if (bs_alerts_new(&o, &w->actor, &err) != BS_OK)
        fail_msg("%s", err.msg);
}

void world_crash(struct world *w)
{
    bs_committer_free(w->committer);
    bs_alerts_free(w->actor);
    w->committer = NULL;
    w->actor = NULL;
    w->db = NULL;
}

void world_free(struct world *w)
{
    char command[128];

    if (w->actor)
        world_crash(w);
    for (uint32_t i = 0; i < w->posts_n; i++)
        free(w->posts[i].body);
    (void)snprintf(command, sizeof(command), "rm -rf %s", w->dir);
    assert_int_equal(system(command), 0);
    free(w);
}

/* ---- time ---- */

/* As the reaper does: somebody writes all the time, so that a store that is well is seen to be. */
static void reaper_done(struct bs_work *work, bs_rc rc, const struct bs_err *err)
{
    (void)work;
    (void)rc;
    (void)err;
    reaper.out = false;
}

static void reap(struct world *w)
{
    if (reaper.out)
        return;
    reaper.op = world_op(w, BS_OP_REAP);
    reaper.op.reap = (struct bs_op_reap){ .limit = 10, .node = S("node-1") };
    reaper.ops[0] = &reaper.op;
    reaper.work =
        (struct bs_work){ .rank = BS_RANK_CLAIM, .ops = reaper.ops, .n = 1, .done = reaper_done };
    reaper.out = bs_committer_send(w->committer, &reaper.work);
}

/* Ten steps a second. */
void world_run(struct world *w, int64_t seconds)
{
    struct bs_actor *committer = bs_committer_actor(w->committer);
    struct bs_actor *alerts = bs_alerts_actor(w->actor);
    struct bs_time alerts_at = w->clock.at;

    for (int64_t i = 0; i < seconds * 10; i++) {
        w->clock.at = bs_time_add(w->clock.at, BS_MS(100));
        if (i % 10 == 0)
            reap(w);
        (void)committer->step(committer, w->clock.at);
        if (!bs_time_before(w->clock.at, alerts_at) || bs_mailbox_count(alerts->in, 0) > 0 ||
            i % 2 == 0)
            alerts_at = alerts->step(alerts, w->clock.at);
    }
}

/* ---- work ---- */

struct errand {
    struct bs_work work;
    struct bs_op *ops[1];
    bs_rc rc;
    bool done;
};

static void errand_done(struct bs_work *work, bs_rc rc, const struct bs_err *err)
{
    struct errand *e = BS_CONTAINER(work, struct errand, work);

    (void)err;
    e->rc = rc;
    e->done = true;
}

bs_rc world_apply(struct world *w, struct bs_op *op)
{
    struct errand e = { .ops = { op } };
    struct bs_actor *committer = bs_committer_actor(w->committer);

    e.work = (struct bs_work){ .rank = BS_RANK_CLAIM, .ops = e.ops, .n = 1, .done = errand_done };
    assert_true(bs_committer_send(w->committer, &e.work));
    for (int i = 0; i < 1000 && !e.done; i++) {
        (void)committer->step(committer, w->clock.at);
        if (!e.done)
            w->clock.at = bs_time_add(w->clock.at, BS_MS(100));
    }
    assert_true(e.done);
    return e.rc != BS_OK ? e.rc : op->rc;
}

struct bs_op world_op(struct world *w, enum bs_op_kind kind)
{
    return (
        struct bs_op){ .kind = kind, .id = bs_ids_next(&w->ids, w->clock.at), .now = w->clock.at };
}

void world_submit(struct world *w, uint32_t n)
{
    struct bs_door door = { &w->slot, &w->ids };

    for (uint32_t i = 0; i < n; i++) {
        BS_CLEANUP(bs_arena_free) struct bs_arena a = { 0 };
        struct bs_field_errors errors = { 0 };
        struct bs_err err = { 0 };
        struct bs_op op = { 0 };
        struct bs_str json =
            bs_arena_fmt(&a, "{\"biz_type\":\"PAY\",\"biz_id\":\"b-%u\",\"request_id\":\"r-%u\"}",
                         w->submitted, w->submitted);
        struct bs_door_input in = { .json = json, .who = S("test"), .now = w->clock.at };

        w->submitted++;
        if (bs_door_read(&door, &in, &a, &op, &errors, &err) != BS_OK)
            fail_msg("%s", err.msg);
        assert_int_equal(world_apply(w, &op), BS_OK);
    }
}

static void finish(struct world *w, struct bs_leased *l)
{
    struct bs_op op = world_op(w, BS_OP_FINISH);

    op.finish = (struct bs_op_finish){ .task = &l->task,
                                       .outcome = { .kind = BS_OUT_SUCCESS },
                                       .policy = &w->conf.policy,
                                       .node = S("node-1") };
    assert_int_equal(world_apply(w, &op), BS_OK);
}

void world_work_off(struct world *w, uint32_t n)
{
    char id[32];
    struct bs_op op = world_op(w, BS_OP_CLAIM);

    (void)snprintf(id, sizeof(id), "claim-%lld", (long long)op.id);
    op.claim = (struct bs_op_claim){ .biz_type = S("PAY"),
                                     .claim_id = bs_str_of(id),
                                     .limit = n,
                                     .lease_until = bs_time_add(w->clock.at, BS_SEC(600)),
                                     .token_floor = w->clock.at.us };
    assert_int_equal(world_apply(w, &op), BS_OK);
    for (struct bs_leased *l = op.claim.ret_tasks; l; l = l->next)
        finish(w, l);
    bs_leased_free(op.claim.ret_tasks);
}

void world_event(struct world *w, const char *kind)
{
    struct bs_op op = world_op(w, BS_OP_ALERT);

    op.alert = (struct bs_op_alert){ .kind = bs_str_of(kind),
                                     .subject = S("PAY"),
                                     .biz_type = S("PAY"),
                                     .message = S("it happened"),
                                     .task_id = 4711 };
    assert_int_equal(world_apply(w, &op), BS_OK);
}

/* ---- what was heard ---- */

static const char *text_of(const char *from, const char *key, char *ret, size_t size)
{
    const char *p = strstr(from, key);

    assert_non_null(p);
    p += strlen(key);
    (void)snprintf(ret, size, "%.*s", (int)strcspn(p, "\""), p);
    return p;
}

const char *world_heard(struct world *w)
{
    static char text[16384];
    size_t at = 0;

    text[0] = '\0';
    for (uint32_t i = 0; i < w->posts_n; i++) {
        const char *p = w->posts[i].body;
        char kind[64], subject[64], phase[16];

        while (w->posts[i].status / 100 == 2 && (p = strstr(p, "\"kind\":\""))) {
            text_of(p, "\"kind\":\"", kind, sizeof(kind));
            text_of(p, "\"subject\":\"", subject, sizeof(subject));
            p = text_of(p, "\"phase\":\"", phase, sizeof(phase));
            at +=
                (size_t)snprintf(text + at, sizeof(text) - at, "%s %s %s\n", phase, kind, subject);
        }
    }
    return text;
}

static void add_deliveries(struct bs_store *s, int64_t id, struct bs_buf *out)
{
    BS_CLEANUP(bs_arena_free) struct bs_arena a = { 0 };
    struct bs_delivery *d = NULL;
    uint32_t n = 0;

    assert_int_equal(bs_store_deliveries(s, id, &a, &d, &n, NULL), BS_OK);
    for (uint32_t i = 0; i < n; i++)
        bs_buf_fmt(out, " %.*s %s %s %lld%s%.*s", BS_STR_FMT(d[i].deliverer),
                   bs_alert_phase_name(d[i].phase), bs_delivery_state_name(d[i].state),
                   (long long)d[i].attempts, d[i].code.n ? " " : "", BS_STR_FMT(d[i].code));
}

const char *world_rows(struct world *w)
{
    static char text[16384];
    BS_CLEANUP(bs_arena_free) struct bs_arena a = { 0 };
    BS_CLEANUP(bs_buf_free) struct bs_buf out = { .max = sizeof(text) - 1 };
    const struct bs_alert_filter f = { .limit = 200 };
    struct bs_store *s = open_store(w, BS_STORE_READER);
    struct bs_alert_row *rows = NULL;
    uint32_t n = 0;

    assert_int_equal(bs_store_alerts(s, &f, &a, &rows, &n, NULL), BS_OK);
    while (n-- > 0) {
        bs_buf_fmt(&out, "%.*s x%lld %s:", BS_STR_FMT(rows[n].kind), (long long)rows[n].count,
                   rows[n].open ? "open" : "ended");
        add_deliveries(s, rows[n].id, &out);
        bs_buf_addc(&out, '\n');
    }
    bs_store_close(s);
    (void)snprintf(text, sizeof(text), "%s", bs_buf_str(&out).p);
    return text;
}
