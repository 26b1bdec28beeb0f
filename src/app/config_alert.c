/* Limits, receivers of alerts, the sign of life, the history. */
#include "app/config_alert.h"

#include "app/config_rule.h"
#include "base/money.h"

static struct bs_str path_of(const struct bs_conf_group *g, const char *key,
                             struct bs_conf_faults *f)
{
    return bs_arena_fmt(f->arena, "%.*s.%s", BS_STR_FMT(g->path), key);
}

/* ---- money ---- */

static void fault_amount(const struct bs_yaml_item *item, struct bs_str what,
                         struct bs_conf_faults *f)
{
    BS_CLEANUP(bs_buf_free) struct bs_buf most = { .max = 64 };
    struct bs_str found = bs_yaml_describe(f->arena, item->value);
    struct bs_money m = { .minor = INT64_MAX };
    int digits = bs_currency_exponent(item->key);

    memcpy(m.currency, item->key.p, 3);
    bs_money_write(&most, m);
    bs_conf_fault_add(f, item->value->line,
                      "%.*s: %.*s must be an amount from 0 to %.*s with %s%d digits after the "
                      "point, not %.*s",
                      BS_STR_FMT(what), BS_STR_FMT(item->key), BS_STR_FMT(bs_buf_str(&most)),
                      digits ? "at most " : "", digits, BS_STR_FMT(found));
}

static bool read_amount(const struct bs_yaml_item *item, struct bs_str what,
                        struct bs_exposure_limit *ret, struct bs_conf_faults *f)
{
    struct bs_money m = { 0 };
    struct bs_err err;

    if (bs_currency_exponent(item->key) < 0) {
        bs_conf_fault_add(f, item->key_line,
                          "%.*s: `%.64s` is not a currency of ISO 4217; they are three capitals "
                          "such as CNY",
                          BS_STR_FMT(what), item->key.p);
        return false;
    }
    if (item->value->kind != BS_YAML_SCALAR ||
        bs_money_parse(item->value->text, item->key, &m, &err) != BS_OK) {
        fault_amount(item, what, f);
        return false;
    }
    *ret = (struct bs_exposure_limit){ .amount = m.minor };
    memcpy(ret->currency, m.currency, sizeof(ret->currency));
    return true;
}

static int by_currency(const void *a, const void *b)
{
    return strcmp(((const struct bs_exposure_limit *)a)->currency,
                  ((const struct bs_exposure_limit *)b)->currency);
}

static bool given_before(const struct bs_yaml_node *map, uint32_t at)
{
    for (uint32_t i = 0; i < at; i++)
        if (bs_str_eq(map->items[i].key, map->items[at].key))
            return true;
    return false;
}

static void read_exposure(const struct bs_conf_val *v, struct bs_str what,
                          struct bs_alert_limits *ret, struct bs_conf_faults *f)
{
    uint32_t count = v->node ? v->node->n : 0, n = 0;
    struct bs_exposure_limit *items = BS_NEW_ARRAY(f->arena, struct bs_exposure_limit, count + 1);

    for (uint32_t i = 0; items && i < count; i++) {
        if (given_before(v->node, i))
            bs_conf_fault_add(f, v->node->items[i].key_line, "%.*s: %.64s is given twice",
                              BS_STR_FMT(what), v->node->items[i].key.p);
        else if (read_amount(&v->node->items[i], what, &items[n], f) && items[n].amount > 0)
            n++; /* 0 switches the limit of this currency off */
    }
    if (n > 1)
        qsort(items, n, sizeof(*items), by_currency);
    ret->exposure = items;
    ret->exposure_n = n;
}

/* ---- limits ---- */

static void set_count(const struct bs_conf_val *v, int64_t *ret)
{
    if (v->given)
        *ret = v->n;
}

void bs_conf_build_limits(const struct bs_conf_group *g, const struct bs_alert_limits *base,
                          struct bs_alert_limits *ret, struct bs_conf_faults *f)
{
    *ret = *base;
    if (!g)
        return;
    set_count(&g->v[BS_LIM_MANUAL_GROWTH], &ret->manual_growth);
    set_count(&g->v[BS_LIM_MANUAL_AGE], &ret->manual_age.us);
    set_count(&g->v[BS_LIM_OLDEST_DUE], &ret->oldest_due.us);
    set_count(&g->v[BS_LIM_BACKLOG], &ret->backlog);
    set_count(&g->v[BS_LIM_UNKNOWN], &ret->unknown);
    if (g->v[BS_LIM_EXPOSURE].given)
        read_exposure(&g->v[BS_LIM_EXPOSURE], path_of(g, "exposure", f), ret, f);
}

/* ---- who is told ---- */

static bool name_char(char c)
{
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-';
}

static void check_name(const struct bs_conf_group *g, struct bs_conf_faults *f)
{
    bool good = g->name.n >= 1 && g->name.n <= 32;

    for (size_t i = 0; good && i < g->name.n; i++)
        good = name_char(g->name.p[i]);
    if (!good)
        bs_conf_fault_add(f, g->line,
                          "`%.64s` cannot name a webhook: at most 32 letters, digits, `_` or `-`",
                          g->name.p);
}

static void build_webhook(const struct bs_conf_group *g, struct bs_alert_webhook *w,
                          struct bs_conf_faults *f)
{
    check_name(g, f);
    w->name = g->name;
    w->url = g->v[BS_HOOK_URL].text;
    w->timeout = BS_US(g->v[BS_HOOK_TIMEOUT].n);
    bs_conf_check_url(&g->v[BS_HOOK_URL], path_of(g, "url", f), BS_URL_PLAIN, f);
    bs_conf_read_secret(&g->v[BS_HOOK_SECRET], path_of(g, "secret", f), &w->secret, f);
}

static int by_name(const void *a, const void *b)
{
    return bs_str_cmp(((const struct bs_alert_webhook *)a)->name,
                      ((const struct bs_alert_webhook *)b)->name);
}

static void build_webhooks(const struct bs_conf_val *v, struct bs_alert_conf *c,
                           struct bs_conf_faults *f)
{
    uint32_t n = (uint32_t)v->n;
    struct bs_alert_webhook *items = BS_NEW_ARRAY(f->arena, struct bs_alert_webhook, n + 1);

    if (!items)
        return;
    for (uint32_t i = 0; i < n; i++)
        build_webhook(&v->named[i], &items[i], f);
    qsort(items, n, sizeof(*items), by_name);
    c->webhooks = items;
    c->webhooks_n = n;
}

static void build_ping(const struct bs_conf_group *g, struct bs_alert_conf *c,
                       struct bs_conf_faults *f)
{
    bs_conf_check_url(&g->v[BS_PING_URL], path_of(g, "url", f), BS_URL_PLAIN, f);
    c->ping_url = g->v[BS_PING_URL].text;
    c->ping_every = BS_US(g->v[BS_PING_EVERY].n);
}

const struct bs_alert_conf *bs_conf_build_alerts(const struct bs_conf_group *g,
                                                 struct bs_conf_faults *f)
{
    struct bs_alert_conf *c = BS_NEW(f->arena, struct bs_alert_conf);

    if (!c || !g)
        return c;
    *c = bs_alert_conf_default;
    c->check_every = BS_US(g->v[BS_AL_CHECK_EVERY].n);
    c->growth_window = BS_US(g->v[BS_AL_GROWTH_WINDOW].n);
    c->group_wait = BS_US(g->v[BS_AL_GROUP_WAIT].n);
    c->quiet = BS_US(g->v[BS_AL_QUIET].n);
    build_webhooks(&g->v[BS_AL_WEBHOOKS], c, f);
    if (g->v[BS_AL_PING].section)
        build_ping(g->v[BS_AL_PING].section, c, f);
    return c;
}

/* ---- how long finished tasks are kept ---- */

void bs_conf_build_history(const struct bs_conf_group *g, struct bs_history_conf *ret,
                           struct bs_conf_faults *f)
{
    const struct bs_conf_val *archive, *purge;

    if (!g)
        return;
    archive = &g->v[BS_HIST_ARCHIVE];
    purge = &g->v[BS_HIST_PURGE];
    *ret = (struct bs_history_conf){ BS_US(archive->n), BS_US(purge->n) };
    if (purge->n != 0 && archive->n == 0)
        bs_conf_fault_add(f, purge->line,
                          "history.purge_after needs archive_after: only archived tasks are "
                          "deleted");
    else if (purge->n != 0 && purge->n < archive->n)
        bs_conf_fault_add(f, purge->line, "history.purge_after is shorter than archive_after");
}
