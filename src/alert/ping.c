/* The dead man's switch: while all is well somebody outside is called, so that silence tells. */
#include "alert/parts.h"

#include "sys/log.h"

static const struct bs_span timeout = { 10000000 };
static const struct bs_span not_yet = { 1000000 };

static bool may(struct bs_alerts *a)
{
    return a->storm.since.us == 0 && bs_committer_healthy(a->o.committer) &&
           (!a->o.ready || a->o.ready(a->o.ctx));
}

static void start(struct bs_alerts *a, struct bs_str url, struct bs_time now)
{
    struct bs_alert_post *p = &a->ping;

    bs_alert_post_free(p);
    p->call = (struct bs_call){
        .method = "GET",
        .url = bs_arena_str(&p->arena, url).p,
        .headers = p->headers,
        .connect_timeout = BS_US(timeout.us / 2),
        .timeout = timeout,
        .arena = &p->arena,
        .user = p,
    };
    if (!p->call.url)
        return;
    p->out = true;
    a->o.caller->ops->start(a->o.caller, &p->call, now);
}

void bs_ping_step(struct bs_alerts *a, struct bs_time now)
{
    const struct bs_alert_conf *c = bs_alerts_conf(a);

    if (bs_time_before(now, a->ping_at))
        return;
    if (!c->ping_url.n || !may(a)) {
        a->ping_at = bs_time_add(now, not_yet);
        return;
    }
    a->ping_at = bs_time_add(now, c->ping_every);
    if (!a->ping.out)
        start(a, c->ping_url, now);
}

void bs_ping_ended(struct bs_alerts *a)
{
    if (!a->ping.ended)
        return;
    a->ping.ended = false;
    if (a->ping_stale) {
        a->ping_stale = false;
        a->ping_at = BS_TIME_NONE;
        return;
    }
    struct bs_alert_result r = bs_alert_post_result(&a->ping);
    int ok = r.state == BS_DELIVERY_SENT;
    if (!ok && a->ping_ok != 0)
        bs_log(BS_LOG_WARN, "alert.ping_failed", BS_F("code", r.code), BS_F("message", r.message));
    if (ok && a->ping_ok == 0)
        bs_log(BS_LOG_INFO, "alert.ping_well", BS_FZ("message", "the sign of life is taken again"));
    a->ping_ok = ok;
    atomic_store(&a->figures.ping_ok, ok);
}

void bs_ping_reloaded(struct bs_alerts *a, const struct bs_alert_conf *before, struct bs_time now)
{
    const struct bs_alert_conf *c = bs_alerts_conf(a);
    bool moved = !bs_str_eq(c->ping_url, before->ping_url);

    if (moved) {
        a->ping_stale = a->ping.out;
        a->ping_ok = -1;
        atomic_store(&a->figures.ping_ok, -1);
    }
    if (moved || c->ping_every.us != before->ping_every.us)
        a->ping_at = now;
}
