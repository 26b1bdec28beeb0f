/* The alert actor as a whole: its step, its work for the committer, its birth and end. */
#include "alert/parts.h"

#include "sys/log.h"

#include <stdlib.h>

static const struct bs_span poll_every = { 1000000 };
static const struct bs_span again_after = { 1000000 };

/* ---- the work for the committer ---- */

struct bs_op *bs_alerts_op(struct bs_alerts *a, enum bs_op_kind kind, struct bs_time now)
{
    if (a->ops_n == BS_ALERT_OPS_MAX)
        return NULL;
    struct bs_op *op = &a->ops[a->ops_n];

    *op = (struct bs_op){ .kind = kind, .id = bs_ids_next(a->o.ids, now), .now = now };
    a->planned[a->ops_n] = NULL;
    a->list[a->ops_n++] = op;
    return op;
}

/* Committer's thread. */
static void work_done(struct bs_work *w, bs_rc rc, const struct bs_err *err)
{
    struct bs_alerts *a = BS_CONTAINER(w, struct bs_alerts, work);

    (void)err;
    a->rc = rc;
    bool sent = bs_mailbox_send(&a->in, 0, &w->node);
    BS_ASSERT(sent);
}

/* Nothing of it has happened; what is still true will be found again. */
static void drop_work(struct bs_alerts *a, struct bs_time now)
{
    a->out = false;
    a->ops_n = 0;
    a->storm.telling = false;
    a->send_again_at = bs_time_add(now, again_after);
}

static void send_work(struct bs_alerts *a, struct bs_time now)
{
    if (a->ops_n == 0)
        return;
    if (a->ops_arena.failed) {
        drop_work(a, now);
        return;
    }
    a->work = (struct bs_work){
        .rank = BS_RANK_PEOPLE, .ops = a->list, .n = a->ops_n, .done = work_done
    };
    a->out = true;
    if (!bs_committer_send(a->o.committer, &a->work))
        drop_work(a, now);
}

/* What failed is not kept: the store is read again, and results of posts are told again. */
static void answered(struct bs_alerts *a, struct bs_time now)
{
    if (a->rc == BS_OK) {
        bs_alerts_planned(a);
        bs_storm_recorded(a);
        bs_hooks_told(a);
        a->out = false;
        a->ops_n = 0;
    } else {
        drop_work(a, now);
    }
    bs_arena_free(&a->ops_arena);
}

static bool is_watching(struct bs_alerts *a)
{
    const struct bs_queues *q = bs_queues_now(a->o.queues);

    return q && q->alerts;
}

/* Results first: until one is recorded its receiver gets nothing more. */
static void fill_work(struct bs_alerts *a, struct bs_time now)
{
    bs_arena_free(&a->ops_arena);
    a->ops_n = 0;
    bs_hooks_tell(a, now);
    bs_storm_record(a, now);
    if (!is_watching(a)) {
        a->judge_at = bs_time_add(now, poll_every);
        send_work(a, now);
        return;
    }
    if (!bs_time_before(now, a->judge_at)) {
        bool more = bs_alerts_judge(a, now);

        a->judge_at = bs_time_add(now, more ? BS_US(1) : bs_alerts_conf(a)->check_every);
    }
    if (!bs_time_before(now, a->poll_at))
        bs_alerts_plan(a, now);
    send_work(a, now);
}

/* ---- a step ---- */

const struct bs_alert_conf *bs_alerts_conf(struct bs_alerts *a)
{
    const struct bs_queues *q = bs_queues_now(a->o.queues);

    return q && q->alerts ? q->alerts : &bs_alert_conf_default;
}

void bs_alerts_readable(struct bs_alerts *a, bs_rc rc, const struct bs_err *err)
{
    if (rc != BS_OK && !a->unreadable)
        bs_log(BS_LOG_ERROR, "alert.not_judged", BS_FZ("rc", bs_rc_name(rc)),
               BS_FZ("message", err->msg));
    a->unreadable = rc != BS_OK;
}

/* What a reload changed holds from now on, not from when the old intervals have run out. Snapshots
 * live as long as the process. */
static void note_reload(struct bs_alerts *a, struct bs_time now)
{
    const struct bs_alert_conf *before = a->conf;

    a->conf = bs_alerts_conf(a);
    if (!before || before == a->conf)
        return;
    a->judge_at = a->poll_at = now;
    bs_ping_reloaded(a, before, now);
}

static void take_calls(struct bs_alerts *a, struct bs_time now)
{
    struct bs_call *call;

    a->o.caller->ops->run(a->o.caller, now);
    while ((call = a->o.caller->ops->finished(a->o.caller)) != NULL) {
        struct bs_alert_post *p = call->user;

        p->out = false;
        p->ended = true;
    }
    bs_hooks_ended(a, now);
    bs_storm_ended(a, now);
    bs_ping_ended(a);
}

static struct bs_time next_step(const struct bs_alerts *a)
{
    struct bs_time next = bs_time_min(a->poll_at, a->ping_at);

    if (a->out)
        return next;
    return bs_time_min(next, bs_time_max(a->judge_at, a->send_again_at));
}

static struct bs_time step(struct bs_actor *actor, struct bs_time now)
{
    struct bs_alerts *a = BS_CONTAINER(actor, struct bs_alerts, actor);
    bool poll;

    if (a->started_at.us == 0)
        a->started_at = now;
    if (bs_mailbox_take_lane(&a->in, 0, SIZE_MAX))
        answered(a, now);
    note_reload(a, now);
    bs_hooks_sync(a);
    take_calls(a, now);
    bs_storm_step(a, now);
    bs_ping_step(a, now);
    poll = !bs_time_before(now, a->poll_at);
    if (!a->out && !bs_time_before(now, a->send_again_at))
        fill_work(a, now);
    if (poll) {
        bs_hooks_send(a, now);
        a->poll_at = bs_time_add(now, poll_every);
    }
    take_calls(a, now);
    return next_step(a);
}

static void wait(struct bs_actor *actor, struct bs_time now, struct bs_time until)
{
    struct bs_alerts *a = BS_CONTAINER(actor, struct bs_alerts, actor);
    int64_t until_us = bs_boot_us() + BS_MAX(bs_time_diff(until, now).us, (int64_t)0);

    a->o.caller->ops->wait(a->o.caller, &a->in, until_us);
}

/* ---- birth and end ---- */

bs_rc bs_alerts_new(const struct bs_alerts_options *o, struct bs_alerts **ret, struct bs_err *err)
{
    static const size_t caps[1] = { 1 };
    struct bs_alerts *a = calloc(1, sizeof(*a));

    BS_ASSERT(o->queues && o->committer && o->reader && o->caller && o->clock && o->ids);
    if (!a)
        return bs_fail(err, BS_E_NOMEM, "no memory for alerts");
    if (bs_mailbox_init(&a->in, caps, 1, o->with_fd, err) != BS_OK) {
        free(a);
        return err ? err->rc : BS_E_UNAVAILABLE;
    }
    if (pthread_mutex_init(&a->mutex, NULL) != 0) {
        bs_mailbox_done(&a->in);
        free(a);
        return bs_fail(err, BS_E_UNAVAILABLE, "no mutex for alerts");
    }
    a->o = *o;
    a->seed = o->seed;
    a->ping_ok = -1;
    atomic_store(&a->figures.ping_ok, -1);
    a->actor = (struct bs_actor){ .name = "alert", .step = step, .in = &a->in };
    if (o->with_fd)
        a->actor.wait = wait;
    *ret = a;
    return BS_OK;
}

struct bs_actor *bs_alerts_actor(struct bs_alerts *a)
{
    return &a->actor;
}

void bs_alerts_reload(struct bs_alerts *a)
{
    bs_mailbox_wake(&a->in);
}

void bs_alerts_store_health(struct bs_alerts *a, bool healthy, const struct bs_err *err)
{
    pthread_mutex_lock(&a->mutex);
    a->failing = !healthy;
    if (!healthy && err)
        memcpy(a->failure, err->msg, BS_MIN(sizeof(a->failure) - 1, strlen(err->msg) + 1));
    pthread_mutex_unlock(&a->mutex);
    bs_mailbox_wake(&a->in);
}

/* ---- metrics ---- */

static void add(struct bs_buf *out, const char *name, const char *type, const char *help)
{
    bs_buf_fmt(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void add_open(struct bs_alerts *a, struct bs_buf *out)
{
    add(out, "backstop_alerts_open", "gauge", "Alerts that are open, by kind.");
    pthread_mutex_lock(&a->mutex);
    for (uint32_t i = 0; i < a->kinds_n; i++)
        bs_buf_fmt(out, "backstop_alerts_open{kind=\"%s\"} %lld\n", a->kinds[i].name,
                   (long long)a->kinds[i].n);
    pthread_mutex_unlock(&a->mutex);
}

void bs_alerts_metrics(struct bs_alerts *a, struct bs_buf *out)
{
    int ping = atomic_load(&a->figures.ping_ok);

    add_open(a, out);
    add(out, "backstop_alert_deliveries_total", "counter",
        "Tries to tell a receiver of an alert, by what became of them.");
    bs_buf_fmt(out, "backstop_alert_deliveries_total{state=\"sent\"} %llu\n",
               (unsigned long long)atomic_load(&a->figures.sent));
    bs_buf_fmt(out, "backstop_alert_deliveries_total{state=\"failed\"} %llu\n",
               (unsigned long long)atomic_load(&a->figures.failed));
    bs_buf_fmt(out, "backstop_alert_deliveries_total{state=\"given_up\"} %llu\n",
               (unsigned long long)atomic_load(&a->figures.given_up));
    add(out, "backstop_alert_deliveries_pending", "gauge", "Alerts that a receiver is to be told.");
    bs_buf_fmt(out, "backstop_alert_deliveries_pending %lld\n",
               (long long)atomic_load(&a->figures.pending));
    if (ping < 0)
        return;
    add(out, "backstop_ping_ok", "gauge", "Whether the last sign of life was taken.");
    bs_buf_fmt(out, "backstop_ping_ok %d\n", ping);
}

/* ---- end ---- */

static void free_feeds(struct bs_alerts *a)
{
    while (a->feeds) {
        struct bs_alert_feed *next = a->feeds->next;

        free(a->feeds);
        a->feeds = next;
    }
}

void bs_alerts_quiet(struct bs_alerts *a)
{
    if (!a || !a->o.reader)
        return;
    bs_store_close(a->o.reader);
    a->o.reader = NULL;
}

void bs_alerts_free(struct bs_alerts *a)
{
    if (!a)
        return;
    (void)bs_mailbox_take_lane(&a->in, 0, SIZE_MAX);
    a->o.caller->ops->free(a->o.caller);
    bs_hooks_free(a);
    bs_alert_post_free(&a->ping);
    free_feeds(a);
    bs_arena_free(&a->ops_arena);
    bs_alerts_quiet(a);
    bs_mailbox_done(&a->in);
    pthread_mutex_destroy(&a->mutex);
    free(a);
}
