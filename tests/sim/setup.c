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
static const char *const handlers[SIM_QUEUES] = {
    "http://shop.test/do/CHECKED", "http://shop.test/do/MONEY", "http://shop.test/do/NOTE",
    "http://shop.test/do/RENEWED", "http://shop.test/do/SHIP",  "http://shop.test/do/VANISHING"
};

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

static void choose_queue(struct sim *w, uint32_t i)
{
    struct bs_queue_conf *q = &w->confs[i];

    q->biz_type = bs_str_of(names[i]);
    q->handler_url = bs_str_of(handlers[i]);
    q->secret.bytes = BS_STR("0123456789abcdef0123456789abcdef");
    q->policy = choose_policy(w);
    choose_times(w, q);
    if (i == Q_RENEWED && chance(w, 40)) {
        q->look = BS_LOOK_HTTP;
        q->look_url = BS_STR("http://shop.test/look/RENEWED/{biz_id}/{request_id}");
        q->policy.has_look_up = true;
    }
    if (i == Q_MONEY || i == Q_CHECKED) {
        q->look = BS_LOOK_HTTP;
        q->look_url = i == Q_MONEY ? BS_STR("http://shop.test/look/MONEY/{biz_id}/{request_id}")
                                   : BS_STR("http://shop.test/look/CHECKED/{biz_id}/{request_id}");
        q->policy.has_look_up = true;
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

void sim_choose(struct sim *w, uint32_t tasks)
{
    for (uint32_t i = 0; i < SIM_QUEUES; i++)
        choose_queue(w, i);
    memcpy(w->confs_less, w->confs, sizeof(w->confs));
    w->all = (struct bs_queues){ w->confs, SIM_QUEUES };
    w->less = (struct bs_queues){ w->confs_less, SIM_QUEUES - 1 };
    atomic_store(&w->slot.now, &w->all);
    choose_options(w, tasks);
}
