/* Hosts: one form for each, so that queues that call the same one share its limits. */
#include "app/config_host.h"

#include <curl/curl.h>

static void lower(char *p)
{
    for (; *p; p++)
        if (*p >= 'A' && *p <= 'Z')
            *p = (char)(*p - 'A' + 'a');
}

/* `flags` 0: a port that is not written is no port. */
static struct bs_str host_and_port(struct bs_arena *a, CURLU *u, unsigned flags)
{
    struct bs_str ret = BS_STR_NONE;
    char *host = NULL, *port = NULL;

    if (curl_url_get(u, CURLUPART_HOST, &host, 0) == CURLUE_OK &&
        curl_url_get(u, CURLUPART_PORT, &port, flags) == CURLUE_OK) {
        lower(host);
        ret = bs_arena_fmt(a, "%.512s:%.8s", host, port);
    }
    curl_free(host);
    curl_free(port);
    return ret;
}

static struct bs_str parse(struct bs_arena *a, struct bs_str address, unsigned flags)
{
    struct bs_str url = bs_arena_str(a, address), ret = BS_STR_NONE;
    CURLU *u = url.p ? curl_url() : NULL;

    if (u && curl_url_set(u, CURLUPART_URL, url.p, 0) == CURLUE_OK)
        ret = host_and_port(a, u, flags);
    curl_url_cleanup(u);
    return ret;
}

struct bs_str bs_conf_host_of(struct bs_arena *a, struct bs_str url)
{
    const char *begin = url.n ? memmem(url.p, url.n, "://", 3) : NULL;
    size_t i = begin ? (size_t)(begin - url.p) + 3 : 0;

    if (!begin)
        return BS_STR_NONE;
    while (i < url.n && url.p[i] != '/' && url.p[i] != '?' && url.p[i] != '#')
        i++;
    return parse(a, (struct bs_str){ url.p, i }, CURLU_DEFAULT_PORT);
}

/* The name of an entry in the same form; p NULL: no host and port. */
static struct bs_str entry_name(struct bs_arena *a, struct bs_str name)
{
    for (size_t i = 0; i < name.n; i++)
        if (strchr("/?#@", name.p[i]))
            return BS_STR_NONE;
    return parse(a, bs_arena_fmt(a, "http://%.*s", BS_STR_FMT(name)), 0);
}

/* ---- the hosts that queues call ---- */

struct called {
    struct bs_str *names;
    uint32_t n;
};

static void add_called(struct called *c, struct bs_str name)
{
    if (name.n)
        c->names[c->n++] = name;
}

static struct called called_by(const struct bs_queues *q, struct bs_arena *a)
{
    struct called c = { .names = BS_NEW_ARRAY(a, struct bs_str, 2 * q->n + 1) };

    for (uint32_t i = 0; c.names && i < q->n; i++) {
        add_called(&c, q->items[i].handler_host);
        add_called(&c, q->items[i].look_host);
    }
    return c;
}

static const char *called_name(const void *ctx, uint32_t i)
{
    return ((const struct called *)ctx)->names[i].p;
}

static bool is_called(const struct called *c, struct bs_str name)
{
    for (uint32_t i = 0; i < c->n; i++)
        if (bs_str_eq(c->names[i], name))
            return true;
    return false;
}

static void fault_not_called(const struct bs_conf_group *g, const struct called *c,
                             struct bs_conf_faults *f)
{
    const char *near = bs_conf_nearest(g->name, called_name, c, c->n);

    bs_conf_fault_add(f, g->line, "hosts: no queue calls `%.128s`%s%s%s", g->name.p,
                      near ? "; did you mean `" : "", near ? near : "", near ? "`?" : "");
}

/* False: a fault was added. */
static bool check_entry(const struct bs_conf_group *g, const struct called *c,
                        const struct bs_host_conf *before, uint32_t n, struct bs_str *ret_name,
                        struct bs_conf_faults *f)
{
    struct bs_str name = entry_name(f->arena, g->name);

    if (!name.p || !is_called(c, name)) {
        fault_not_called(g, c, f);
        return false;
    }
    for (uint32_t i = 0; i < n; i++) {
        if (bs_str_eq(before[i].name, name)) {
            bs_conf_fault_add(f, g->line, "hosts: `%.128s` is given twice", g->name.p);
            return false;
        }
    }
    *ret_name = name;
    return true;
}

static int by_name(const void *a, const void *b)
{
    return bs_str_cmp(((const struct bs_host_conf *)a)->name,
                      ((const struct bs_host_conf *)b)->name);
}

void bs_conf_build_hosts(const struct bs_conf_val *v, struct bs_queues *q, struct bs_conf_faults *f)
{
    uint32_t count = (uint32_t)v->n, n = 0;
    struct bs_host_conf *items = BS_NEW_ARRAY(f->arena, struct bs_host_conf, count + 1);
    struct called called = called_by(q, f->arena);

    for (uint32_t i = 0; items && called.names && i < count; i++) {
        const struct bs_conf_group *g = &v->named[i];
        if (!check_entry(g, &called, items, n, &items[n].name, f))
            continue;
        items[n++].concurrency = (uint32_t)g->v[BS_HOST_CONCURRENCY].n;
    }
    if (n > 1)
        qsort(items, n, sizeof(*items), by_name);
    q->hosts = items;
    q->hosts_n = n;
}
