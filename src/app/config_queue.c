/* One queue: its values together. */
#include "app/config_queue.h"

#include "app/config_alert.h"
#include "app/config_host.h"
#include "app/config_rule.h"

static struct bs_str path_of(const struct bs_conf_group *g, const char *key,
                             struct bs_conf_faults *f)
{
    return bs_arena_fmt(f->arena, "%.*s.%s", BS_STR_FMT(g->path), key);
}

static bool letter(char c)
{
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
}

static void check_name(const struct bs_conf_group *g, struct bs_conf_faults *f)
{
    bool good = g->name.n >= 1 && g->name.n <= 32 && letter(g->name.p[0]);

    for (size_t i = 1; good && i < g->name.n; i++) {
        char c = g->name.p[i];
        good = letter(c) || (c >= '0' && c <= '9') || c == '_' || c == '.' || c == '-';
    }
    if (!good)
        bs_conf_fault_add(f, g->line,
                          "`%.64s` cannot name a queue: a letter, then at most 31 letters, digits, "
                          "`_`, `.` or `-`",
                          g->name.p);
}

static void build_look(const struct bs_conf_group *g, struct bs_queue_conf *q,
                       struct bs_conf_faults *f)
{
    const struct bs_conf_group *look = g->v[BS_Q_ORDER_CHECK].section;

    if (!look)
        return;
    q->look = BS_LOOK_HTTP;
    q->policy.has_look_up = true;
    q->look_url = look->v[BS_LOOK_URL].text;
    q->look_timeout = BS_US(look->v[BS_LOOK_TIMEOUT].n);
    bs_conf_check_url(&look->v[BS_LOOK_URL], path_of(look, "url", f), BS_URL_LOOK, f);
    q->look_host = bs_conf_host_of(f->arena, q->look_url);
}

static void build_times(const struct bs_conf_group *g, struct bs_queue_conf *q,
                        struct bs_conf_faults *f)
{
    const struct bs_conf_val *connect = &g->v[BS_Q_CONNECT_TIMEOUT];

    q->call_timeout = BS_US(g->v[BS_Q_CALL_TIMEOUT].n);
    q->connect_timeout = BS_US(connect->n);
    q->lease = BS_US(g->v[BS_Q_LEASE].n);
    q->renew = g->v[BS_Q_RENEW].n != 0;
    if (connect->n <= q->call_timeout.us)
        return;
    if (connect->given)
        bs_conf_fault_add(f, connect->line, "%.*s.connect_timeout is longer than call_timeout",
                          BS_STR_FMT(g->path));
    q->connect_timeout = q->call_timeout;
}

static void add_span(struct bs_buf *b, const char *words, struct bs_span d)
{
    bs_buf_addz(b, words);
    bs_span_write(b, d);
}

/* A lease that may end while its call still runs lets a second call begin beside it. */
static void check_lease(const struct bs_conf_group *g, const struct bs_queue_conf *q,
                        struct bs_conf_faults *f)
{
    BS_CLEANUP(bs_buf_free) struct bs_buf b = { .max = 512 };
    const struct bs_conf_val *lease = &g->v[BS_Q_LEASE], *call = &g->v[BS_Q_CALL_TIMEOUT];
    int64_t least = q->look_timeout.us + q->call_timeout.us + BS_SEC(1).us;
    uint32_t line = lease->given ? lease->line : call->line;

    if (q->renew) {
        if (q->lease.us < BS_SEC(3).us)
            bs_conf_fault_add(f, line, "%.*s.lease must be at least 3s to be renewed in time",
                              BS_STR_FMT(g->path));
        return;
    }
    if (q->lease.us > least)
        return;
    add_span(&b, "", q->lease);
    if (q->look == BS_LOOK_HTTP)
        add_span(&b, ") must be longer than order_check.timeout (", q->look_timeout);
    add_span(&b,
             q->look == BS_LOOK_HTTP ? ") + call_timeout ("
                                     : ") must be longer than "
                                       "call_timeout (",
             q->call_timeout);
    bs_conf_fault_add(f, line, "%.*s.lease (%s) + 1s; set a longer lease or `renew: true`",
                      BS_STR_FMT(g->path), bs_buf_str(&b).p);
}

static void check_money(const struct bs_conf_group *g, const struct bs_queue_conf *q,
                        struct bs_conf_faults *f)
{
    if (q->policy.effect == BS_EFFECT_MONEY && q->look == BS_LOOK_NONE)
        bs_conf_fault_add(f, g->v[BS_Q_EFFECT].line,
                          "%.*s: a queue with `effect: money` needs an order_check, so that an "
                          "unknown result is looked up and never repeated blindly",
                          BS_STR_FMT(g->path));
}

static void build_policy(const struct bs_conf_group *g, struct bs_policy *p,
                         struct bs_conf_faults *f)
{
    p->effect = (enum bs_effect)g->v[BS_Q_EFFECT].n;
    p->max_retry_count = (int32_t)g->v[BS_Q_MAX_RETRY_COUNT].n;
    p->max_age = BS_US(g->v[BS_Q_MAX_AGE].n);
    p->order_not_found_grace = BS_US(g->v[BS_Q_ORDER_NOT_FOUND_GRACE].n);
    if (g->v[BS_Q_RETRY].section)
        bs_conf_read_backoff(g->v[BS_Q_RETRY].section, &p->backoff, f);
    if (g->v[BS_Q_SUCCESS].section)
        bs_conf_read_success(g->v[BS_Q_SUCCESS].section, &p->success, f);
    bs_conf_read_statuses(&g->v[BS_Q_STATUSES], path_of(g, "statuses", f), p, f);
}

void bs_conf_build_queue(const struct bs_conf_group *g, const struct bs_alert_limits *limits,
                         struct bs_queue_conf *q, struct bs_conf_faults *f)
{
    *q = (struct bs_queue_conf){ .biz_type = g->name, .policy = bs_policy_default };
    check_name(g, f);
    q->handler_url = g->v[BS_Q_HANDLER].text;
    q->handler_host = bs_conf_host_of(f->arena, q->handler_url);
    bs_conf_check_url(&g->v[BS_Q_HANDLER], path_of(g, "handler", f), BS_URL_PLAIN, f);
    bs_conf_read_secret(&g->v[BS_Q_SECRET], path_of(g, "secret", f), &q->secret, f);
    build_look(g, q, f);
    build_times(g, q, f);
    q->concurrency = (uint32_t)g->v[BS_Q_CONCURRENCY].n;
    q->rate = g->v[BS_Q_RATE].rate;
    build_policy(g, &q->policy, f);
    bs_conf_build_limits(g->v[BS_Q_ALERTS].section, limits, &q->alerts, f);
    check_lease(g, q, f);
    check_money(g, q, f);
}
