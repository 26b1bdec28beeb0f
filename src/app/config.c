/* Finds, reads and checks the configuration file. */
#include "app/config.h"

#include "app/config_alert.h"
#include "app/config_host.h"
#include "app/config_queue.h"
#include "base/text.h"
#include "sys/files.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <sys/un.h>
#include <unistd.h>

enum { FILE_MAX = 1 << 20 };

/* ---- where it listens ---- */

/* "127.0.0.1:8787" and "[::1]:8787" into address and port. */
static bool split_listen(struct bs_str s, char host[64], int64_t *ret_port)
{
    const char *colon = memrchr(s.p, ':', s.n);
    struct bs_str name = { s.p, colon ? (size_t)(colon - s.p) : 0 };
    struct bs_str port = { colon ? colon + 1 : NULL, colon ? s.n - name.n - 1 : 0 };

    if (!colon || !bs_i64_parse(port, ret_port) || *ret_port < 0 || *ret_port > 65535)
        return false;
    if (name.n >= 2 && name.p[0] == '[' && name.p[name.n - 1] == ']')
        name = (struct bs_str){ name.p + 1, name.n - 2 };
    if (name.n == 0 || name.n >= 64)
        return false;
    memcpy(host, name.p, name.n);
    host[name.n] = '\0';
    return true;
}

static bool address_kind(const char *host, bool *ret_loopback)
{
    struct in_addr v4;
    struct in6_addr v6;

    if (inet_pton(AF_INET, host, &v4) == 1) {
        *ret_loopback = (ntohl(v4.s_addr) >> 24) == 127;
        return true;
    }
    if (inet_pton(AF_INET6, host, &v6) == 1) {
        *ret_loopback = IN6_IS_ADDR_LOOPBACK(&v6);
        return true;
    }
    return false;
}

static void build_listen(const struct bs_conf_group *top, struct bs_config *c,
                         struct bs_conf_faults *f)
{
    const struct bs_conf_val *v = &top->v[BS_TOP_LISTEN];
    char host[64];
    int64_t port = 0;
    bool loopback = false;

    if (!v->text.p)
        return;
    c->listen = v->text.p;
    if (!split_listen(v->text, host, &port) || !address_kind(host, &loopback))
        bs_conf_fault_add(f, v->line,
                          "listen must be a numeric address and a port such as 127.0.0.1:8787 or "
                          "[::1]:8787, not `%.80s`",
                          v->text.p);
    else if (!loopback && !top->v[BS_TOP_BEHIND_PROXY].n)
        bs_conf_fault_add(f, v->line,
                          "listen: other machines can reach %s and Backstop speaks plain HTTP; "
                          "put a proxy that speaks TLS in front and set `behind_proxy: true`, or "
                          "listen on 127.0.0.1",
                          host);
}

/* ---- where things are kept ---- */

static void build_store(const struct bs_conf_group *top, struct bs_config *c,
                        struct bs_conf_faults *f)
{
    const struct bs_conf_val *v = &top->v[BS_TOP_STORE];

    if (!v->text.p)
        return;
    c->store_url = v->text.p;
    c->store_path = v->text.n > 7 ? v->text.p + 7 : "";
    if (!bs_str_starts(v->text, BS_STR("sqlite:")) || !*c->store_path || *c->store_path == ':')
        bs_conf_fault_add(f, v->line,
                          "store must be sqlite: and the path of a file, such as "
                          "sqlite:data/backstop.db, not `%.80s`",
                          v->text.p);
}

static void build_socket(const struct bs_conf_group *top, struct bs_config *c,
                         struct bs_conf_faults *f)
{
    const struct bs_conf_val *v = &top->v[BS_TOP_SOCKET];
    size_t room = sizeof(((struct sockaddr_un *)0)->sun_path) - 1;
    struct bs_str path = v->text;

    if (!v->given && c->store_path)
        path = bs_arena_fmt(f->arena, "%s.sock", c->store_path);
    if (!path.p)
        return;
    if (path.n == 0 || path.n > room)
        bs_conf_fault_add(f, v->line, "socket must be a path of 1 to %zu bytes, not `%.200s`", room,
                          path.p);
    c->socket = path.p;
}

static void build_node(const struct bs_conf_group *top, struct bs_config *c,
                       struct bs_conf_faults *f)
{
    const struct bs_conf_val *v = &top->v[BS_TOP_NODE];
    char host[65] = "";
    struct bs_str name = v->text;

    if (!v->given) {
        if (gethostname(host, sizeof(host) - 1) != 0 || !host[0])
            memcpy(host, "node", 5);
        name = bs_arena_str(f->arena, bs_str_of(host));
    }
    if (!name.p)
        return;
    if (name.n == 0 || name.n > 64)
        bs_conf_fault_add(f, v->line, "node must be a name of 1 to 64 bytes");
    c->node = name.p;
}

/* ---- queues ---- */

static int by_name(const void *a, const void *b)
{
    return bs_str_cmp(((const struct bs_queue_conf *)a)->biz_type,
                      ((const struct bs_queue_conf *)b)->biz_type);
}

static void build_items(const struct bs_conf_val *v, const struct bs_alert_limits *limits,
                        struct bs_queues *q, struct bs_conf_faults *f)
{
    uint32_t n = (uint32_t)v->n;
    struct bs_queue_conf *items = BS_NEW_ARRAY(f->arena, struct bs_queue_conf, n + 1);

    if (!items)
        return;
    for (uint32_t i = 0; i < n; i++)
        bs_conf_build_queue(&v->named[i], limits, &items[i], f);
    qsort(items, n, sizeof(*items), by_name);
    q->items = items;
    q->n = n;
}

static void build_queues(const struct bs_conf_group *top, struct bs_queues *q,
                         struct bs_conf_faults *f)
{
    const struct bs_conf_group *alerts = top->v[BS_TOP_ALERTS].section;
    struct bs_alert_limits limits = bs_alert_limits_default;

    if (alerts)
        bs_conf_build_limits(alerts->v[BS_AL_LIMITS].section, &bs_alert_limits_default, &limits, f);
    q->alerts = bs_conf_build_alerts(alerts, f);
    bs_conf_build_history(top->v[BS_TOP_HISTORY].section, &q->history, f);
    build_items(&top->v[BS_TOP_QUEUES], &limits, q, f);
    bs_conf_build_hosts(&top->v[BS_TOP_HOSTS], q, f);
}

/* ---- the whole ---- */

static const int log_forms[] = { 0, 1, 2 }; /* auto, json, text */

static void build(const struct bs_conf_group *top, struct bs_config *c, struct bs_conf_faults *f)
{
    const struct bs_conf_group *log = top->v[BS_TOP_LOG].section;

    build_listen(top, c, f);
    build_store(top, c, f);
    build_socket(top, c, f);
    build_node(top, c, f);
    c->grace = BS_US(top->v[BS_TOP_GRACE].n);
    c->log_level = BS_LOG_INFO;
    if (log) {
        c->log_level = (enum bs_log_level)log->v[BS_LOGKEY_LEVEL].n;
        c->log_form = log_forms[log->v[BS_LOGKEY_FORMAT].n];
    }
    build_queues(top, &c->queues, f);
}

/* What only the server needs, and what belongs to its queues. */
static bool for_serving(struct bs_str key)
{
    return bs_str_is(key, "queues") || bs_str_is(key, "hosts") || bs_str_is(key, "alerts");
}

static const struct bs_yaml_node *places_of(const struct bs_yaml_node *root, struct bs_arena *a)
{
    struct bs_yaml_node *n = BS_NEW(a, struct bs_yaml_node);
    struct bs_yaml_item *items = n ? BS_NEW_ARRAY(a, struct bs_yaml_item, root->n + 1) : NULL;

    if (!items)
        return root;
    *n = *root;
    n->items = items;
    n->n = 0;
    for (uint32_t i = 0; i < root->n; i++)
        if (!for_serving(root->items[i].key))
            n->items[n->n++] = root->items[i];
    return n;
}

static void read_into(struct bs_config *c, struct bs_str text, enum bs_config_scope scope,
                      struct bs_conf_faults *f)
{
    const struct bs_yaml_node *root = NULL;
    struct bs_conf_group top = { .line = 1 };
    struct bs_err err;
    uint32_t line = 0;

    if (bs_yaml_read(&c->arena, text, &root, &line, &err) != BS_OK) {
        bs_conf_fault_add(f, line, "%s", err.msg);
        return;
    }
    if (root && root->kind != BS_YAML_MAP) {
        bs_conf_fault_add(f, root->line,
                          "the file must hold keys such as `listen: "
                          "127.0.0.1:8787`");
        return;
    }
    if (root && scope == BS_CONFIG_PLACES)
        root = places_of(root, &c->arena);
    bs_conf_read(&bs_conf_top_section, root, &top, f);
    build(&top, c, f);
}

/* Insertion: few, and faults of one line stay in the order they were found. */
static void sort_by_line(struct bs_conf_faults *f)
{
    for (uint32_t i = 1; i < f->n; i++) {
        struct bs_conf_fault one = f->items[i];
        uint32_t j = i;
        for (; j > 0 && f->items[j - 1].line > one.line; j--)
            f->items[j] = f->items[j - 1];
        f->items[j] = one;
    }
}

static void write_report(const char *name, struct bs_conf_faults *f, struct bs_buf *report)
{
    sort_by_line(f);
    for (uint32_t i = 0; i < f->n; i++) {
        bs_buf_fmt(report, "%.300s:%u: ", name, f->items[i].line);
        bs_buf_add(report, f->items[i].text);
        bs_buf_addc(report, '\n');
    }
    if (f->more)
        bs_buf_fmt(report, "%.300s: %u more faults\n", name, f->more);
}

bs_rc bs_config_read(const char *name, struct bs_str text, enum bs_config_scope scope,
                     struct bs_config **ret, struct bs_buf *report)
{
    struct bs_config *c = calloc(1, sizeof(*c));
    struct bs_conf_faults *f = calloc(1, sizeof(*f));
    bs_rc rc = BS_E_NOMEM;

    if (c && f) {
        f->arena = &c->arena;
        read_into(c, text, scope, f);
        if (c->arena.failed)
            bs_conf_fault_add(f, 0, "no memory for the configuration");
        write_report(name, f, report);
        rc = f->n ? BS_E_INVALID : BS_OK;
    } else {
        bs_buf_addz(report, "no memory for the configuration\n");
    }
    free(f);
    if (rc == BS_OK)
        *ret = c;
    else
        bs_config_free(c);
    return rc;
}

static const char *find_file(const char *file)
{
    if (file)
        return file;
    if (access("backstop.yaml", F_OK) == 0)
        return "backstop.yaml";
    return access("/etc/backstop/backstop.yaml", F_OK) == 0 ? "/etc/backstop/backstop.yaml" : NULL;
}

bs_rc bs_config_load(const char *file, enum bs_config_scope scope, struct bs_config **ret,
                     struct bs_buf *report)
{
    BS_CLEANUP(bs_arena_free) struct bs_arena a = { 0 };
    const char *found = find_file(file);
    struct bs_str text = BS_STR("");
    struct bs_err err;

    if (found && bs_file_read(&a, found, FILE_MAX, &text, &err) != BS_OK) {
        bs_buf_fmt(report, "%s\n", err.msg);
        return BS_E_INVALID;
    }
    BS_TRY(bs_config_read(found ? found : "(defaults)", text, scope, ret, report));
    if (found)
        (*ret)->file = bs_arena_str(&(*ret)->arena, bs_str_of(found)).p;
    return BS_OK;
}

void bs_config_free(struct bs_config *c)
{
    if (!c)
        return;
    bs_arena_free(&c->arena);
    free(c);
}

/* ---- the list of keys ---- */

/* "a whole number from 1 to 1024", "debug, info, warn or error". */
static void add_kind(struct bs_buf *out, const struct bs_conf_key *k)
{
    if (k->kind == BS_CONF_CHOICE) {
        for (uint32_t i = 0; k->choices[i]; i++)
            bs_buf_fmt(out, "%s%s", i ? (k->choices[i + 1] ? ", " : " or ") : "", k->choices[i]);
        return;
    }
    bs_buf_addz(out, bs_conf_kind_words(k->kind));
    if (k->kind == BS_CONF_COUNT)
        bs_buf_fmt(out, " from %lld to %lld", (long long)k->min, (long long)k->max);
    if (k->instead)
        bs_buf_fmt(out, ", or %s", k->instead);
}

static void list_section(const struct bs_conf_section *s, struct bs_str path, struct bs_buf *out)
{
    for (uint32_t i = 0; i < s->n; i++) {
        const struct bs_conf_key *k = &s->keys[i];
        BS_CLEANUP(bs_buf_free) struct bs_buf name = { .max = 256 };
        bs_buf_fmt(&name, "%.*s%s%s", BS_STR_FMT(path), path.n ? "." : "", k->name);
        bs_buf_fmt(out, "%s\t", bs_buf_str(&name).p);
        add_kind(out, k);
        bs_buf_fmt(out, "\t%s\t%s\n",
                   k->required   ? "(required)"
                   : k->standard ? k->standard
                                 : "-",
                   k->doc);
        if (k->kind == BS_CONF_NAMED)
            bs_buf_addz(&name, ".NAME");
        if (k->section)
            list_section(k->section, bs_buf_str(&name), out);
    }
}

void bs_config_keys(struct bs_buf *out)
{
    list_section(&bs_conf_top_section, BS_STR_NONE, out);
}
