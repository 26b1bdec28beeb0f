/* What one seed chooses: the queues with their policies, the mix of failures, the pace. */
#include "sim.h"

#include <string.h>

static const struct bs_span ladders[][4] = {
    { { 1000000 }, { 3000000 }, { 10000000 }, { 20000000 } },
    { { 500000 }, { 500000 }, { 500000 }, { 500000 } },
    { { 2000000 }, { 4000000 }, { 30000000 }, { 60000000 } },
};
static const struct bs_status_override overrides[] = { { 404, BS_STATUS_FAILED } };
static const struct bs_str rule_values[] = { { "0", 1 }, { "\"SUCCESS\"", 9 } };

/* The names sort by byte order; the last one is the queue that may be taken away. */
enum { Q_CHECKED, Q_MONEY, Q_NOTE, Q_RENEWED, Q_SHIP, Q_VANISHING };
static const char *const names[SIM_QUEUES] = { "CHECKED", "MONEY", "NOTE",
                                               "RENEWED", "SHIP",  "VANISHING" };
/* In byte order. */
static const char *const host_names[SIM_HOSTS] = { "cash.test:80", "look.test:80", "shop.test:80",
                                                   "stock.test:80" };

const char *host_name(uint32_t host)
{
    return host_names[host];
}

static struct bs_policy choose_policy(struct sim *w)
{
    struct bs_policy p = bs_policy_default;
    uint32_t ladder = below(w, BS_COUNT(ladders));

    if (chance(w, 75)) {
        p.backoff.delays = ladders[ladder];
        p.backoff.delays_n = 1 + below(w, 4);
    } else {
        p.backoff.delays = NULL;
        p.backoff.delays_n = 0;
        p.backoff.initial = BS_MS(200 + below(w, 2000));
        p.backoff.factor_pct = 100 + below(w, 200);
        p.backoff.max = BS_SEC(10 + below(w, 50));
    }
    p.backoff.jitter_pct = chance(w, 70) ? 20 : below(w, 50);
    p.max_retry_count = 1 + (int32_t)below(w, 6);
    p.order_not_found_grace = BS_SEC(5 + below(w, 60));
    p.effect = BS_EFFECT_REPEATABLE;
    return p;
}

static void choose_times(struct sim *w, struct bs_queue_conf *q)
{
    q->call_timeout = BS_MS(1000 + below(w, 9000));
    q->connect_timeout = BS_MS(300 + below(w, 700));
    q->look_timeout = BS_MS(500 + below(w, 2500));
    q->lease.us = q->call_timeout.us + q->look_timeout.us + 1000000 + below(w, 20000) * 1000;
    q->concurrency = 1 + below(w, 8);
}

/* Some share a host, a queue's two endpoints too. */
static void choose_hosts(struct sim *w, uint32_t i)
{
    uint32_t most = w->opt.few_hosts ? 2 : SIM_HOSTS;

    for (int e = 0; e < ENDS; e++) {
        const char *name = host_names[w->hosts[i][e] = below(w, most)];

        (void)snprintf(w->urls[i][e], sizeof(w->urls[i][e]), "http://%.*s/%s/%s%s",
                       (int)strcspn(name, ":"), name, e == END_LOOK ? "look" : "do", names[i],
                       e == END_LOOK ? "/{biz_id}/{request_id}" : "");
    }
    w->confs[i].handler_url = bs_str_of(w->urls[i][END_HANDLER]);
    w->confs[i].handler_host = bs_str_of(host_names[w->hosts[i][END_HANDLER]]);
}

static void look_first(struct sim *w, uint32_t i)
{
    struct bs_queue_conf *q = &w->confs[i];

    q->look = BS_LOOK_HTTP;
    q->look_url = bs_str_of(w->urls[i][END_LOOK]);
    q->look_host = bs_str_of(host_names[w->hosts[i][END_LOOK]]);
    q->policy.has_look_up = true;
}

static struct bs_rate choose_rate(struct sim *w)
{
    if (chance(w, 40))
        return (struct bs_rate){ 20 + below(w, 40), BS_SEC(60) };
    return (struct bs_rate){ chance(w, 50) ? 1 + below(w, 5) : 5 + below(w, 45), BS_SEC(1) };
}

/* What another file may say otherwise. */
static void choose_limits(struct sim *w, struct bs_queue_conf *q, bool ages)
{
    q->rate = (struct bs_rate){ 0 };
    if (chance(w, 30))
        q->rate = choose_rate(w);
    if (!ages)
        return;
    q->policy.max_age = BS_MS(5000 + below(w, chance(w, 30) ? 300000 : 40000));
}

static void choose_queue(struct sim *w, uint32_t i)
{
    struct bs_queue_conf *q = &w->confs[i];

    choose_hosts(w, i);
    q->biz_type = bs_str_of(names[i]);
    q->secret.bytes = BS_STR("0123456789abcdef0123456789abcdef");
    q->policy = choose_policy(w);
    choose_times(w, q);
    choose_limits(w, q, chance(w, 35));
    if (q->policy.max_age.us)
        q->policy.max_retry_count += 4 + (int32_t)below(w, 20);
    if (i == Q_RENEWED && chance(w, 40))
        look_first(w, i);
    if (i == Q_MONEY || i == Q_CHECKED) {
        look_first(w, i);
        q->policy.effect = i == Q_MONEY ? BS_EFFECT_MONEY : BS_EFFECT_REPEATABLE;
    }
    if (i == Q_NOTE) {
        q->policy.effect = BS_EFFECT_NONE;
        q->policy.statuses = overrides;
        q->policy.statuses_n = BS_COUNT(overrides);
    }
    if (i == Q_RENEWED) {
        q->renew = true;
        q->lease = BS_SEC(3 + below(w, 6));
    }
    if (i == Q_SHIP)
        q->policy.success = (struct bs_success_rule){ .status = 200, .body = BS_STR("success") };
    if (i == Q_VANISHING)
        q->policy.success = (struct bs_success_rule){ .status = 200,
                                                      .json_pointer = BS_STR("/code"),
                                                      .values = rule_values,
                                                      .values_n = BS_COUNT(rule_values) };
}

static void choose_options(struct sim *w, uint32_t tasks)
{
    struct options *o = &w->opt;

    o->tasks = tasks ? tasks : 50 + below(w, 25);
    o->fail_pct = 15 + below(w, 60);
    o->look_fail_pct = 10 + below(w, 50);
    o->calls_max = chance(w, 30) ? 2 + below(w, 6) : 64;
    o->fault_every = BS_MS(1500 + below(w, 5000));
    o->act_every = BS_MS(1000 + below(w, 8000));
    o->submit_every = BS_MS(200 + below(w, 1500));
    o->fault_phase = BS_SEC(90 + below(w, 90));
    o->honest = !chance(w, 20);
    o->crashes = !chance(w, 15);
    o->drains = !chance(w, 15);
    o->jumps = !chance(w, 25);
    o->stalls = !chance(w, 25);
    o->acts = !chance(w, 10);
    o->vanish = chance(w, 35);
    o->reloads = chance(w, 50);
    o->history = chance(w, 50);
    o->few_hosts = chance(w, 40);
    o->host_limits = chance(w, 50);
    o->purges = chance(w, 60);
    o->crashy = chance(w, 15);
    o->orders = chance(w, 35) ? 2 + below(w, 4) : o->tasks / 3 + 1;
    o->first_queue = below(w, SIM_QUEUES);
    o->queues_used = chance(w, 30) ? 1 + below(w, 3) : SIM_QUEUES;
    o->hot = chance(w, 15);
    if (o->hot) {
        o->orders = 1 + below(w, 3);
        o->queues_used = 1 + below(w, 2);
    }
    if (o->hot || chance(w, 20))
        o->act_every = BS_MS(100 + below(w, 400));
    if (chance(w, 30))
        for (int i = 0; i < BS_RANK_COUNT; i++)
            o->caps[i] = 1 + below(w, 3);
}

static void choose_host_limits(struct sim *w, struct bs_host_conf *limits, struct bs_queues *q)
{
    q->hosts = limits;
    q->hosts_n = 0;
    for (uint32_t i = 0; i < SIM_HOSTS && w->opt.host_limits; i++)
        if (chance(w, 60))
            limits[q->hosts_n++] =
                (struct bs_host_conf){ bs_str_of(host_names[i]), 1 + below(w, 4) };
}

static void choose_history(struct sim *w, struct bs_queues *q)
{
    if (!w->opt.history)
        return;
    q->history.archive_after = BS_MS(3000 + below(w, 60000));
    if (w->opt.purges)
        q->history.purge_after = BS_MS(10000 + below(w, 150000));
}

static void choose_limits_of_alerts(struct sim *w, struct bs_alert_limits *l)
{
    static const struct bs_exposure_limit exposure = { "CNY", 12000 };

    *l = (struct bs_alert_limits){ 0 };
    if (chance(w, 50))
        *l = (struct bs_alert_limits){ .manual_growth = 2 + below(w, 4),
                                       .manual_age = BS_SEC(5 + below(w, 60)),
                                       .oldest_due = BS_SEC(3 + below(w, 20)),
                                       .backlog = 2 + below(w, 8),
                                       .unknown = 1 + below(w, 4),
                                       .exposure = &exposure,
                                       .exposure_n = below(w, 2) };
}

static void choose_alerts(struct sim *w)
{
    static const char *const hooks[SIM_HOOKS][2] = { { "hook-a", "http://hook-a.test/alerts" },
                                                     { "hook-b", "https://hook-b.test/alerts" } };
    struct bs_alert_conf *c = &w->alert_conf;

    *c = (struct bs_alert_conf){ .check_every = BS_SEC(2 + below(w, 8)),
                                 .growth_window = BS_SEC(20 + below(w, 60)),
                                 .group_wait = BS_MS(200 + below(w, 5000)),
                                 .quiet = BS_SEC(10 + below(w, 120)),
                                 .webhooks = w->webhooks,
                                 .webhooks_n = 1 + below(w, SIM_HOOKS),
                                 .ping_url = BS_STR("http://alive.test/ping"),
                                 .ping_every = BS_SEC(5 + below(w, 20)) };
    for (uint32_t i = 0; i < SIM_HOOKS; i++)
        w->webhooks[i] = (struct bs_alert_webhook){
            .name = bs_str_of(hooks[i][0]),
            .url = bs_str_of(hooks[i][1]),
            .secret.bytes = BS_STR("0123456789abcdef0123456789abcdef"),
            .timeout = BS_SEC(1 + below(w, 9)),
        };
    for (uint32_t i = 0; i < SIM_QUEUES; i++)
        choose_limits_of_alerts(w, &w->confs[i].alerts);
    w->opt.hook_fail_pct = below(w, 70);
}

static void choose_other_files(struct sim *w)
{
    memcpy(w->confs_less, w->confs, sizeof(w->confs));
    memcpy(w->confs_other, w->confs, sizeof(w->confs));
    for (uint32_t i = 0; i < SIM_QUEUES; i++)
        choose_limits(w, &w->confs_other[i], w->confs[i].policy.max_age.us > 0);
    w->all = (struct bs_queues){ .items = w->confs, .n = SIM_QUEUES };
    w->all.alerts = &w->alert_conf;
    choose_host_limits(w, w->host_limits, &w->all);
    choose_history(w, &w->all);
    w->less = w->all;
    w->less.items = w->confs_less;
    w->less.n = SIM_QUEUES - 1;
    w->other = (struct bs_queues){ .items = w->confs_other, .n = SIM_QUEUES };
    w->other.alerts = &w->alert_conf;
    choose_host_limits(w, w->host_limits_other, &w->other);
    choose_history(w, &w->other);
}

void sim_choose(struct sim *w, uint32_t tasks)
{
    choose_options(w, tasks);
    for (uint32_t i = 0; i < SIM_QUEUES; i++)
        choose_queue(w, i);
    choose_alerts(w);
    choose_other_files(w);
    atomic_store(&w->slot.now, &w->all);
}

void sim_reload(struct sim *w, const struct bs_queues *q)
{
    w->reloaded_at = sim_now(w);
    w->gone = q == &w->less;
    atomic_store(&w->slot.now, q);
    bs_engine_reload(w->p.engine);
    say(w, "%s file is loaded", q == &w->other ? "another" : "the usual");
}
