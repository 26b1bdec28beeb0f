/* Addresses, secrets, success rules, statuses and delays of a queue. */
#include "app/config_rule.h"

#include "base/text.h"
#include "sys/crypto.h"
#include "sys/files.h"
#include "json/read.h"
#include "json/write.h"

#include <curl/curl.h>

/* ---- addresses ---- */

static const char *const placeholders[] = { "order_no",  "payment_no", "channel_trade_no",
                                            "refund_no", "biz_id",     "merchant_no",
                                            "request_id" };

static const char *placeholder_name(const void *ctx, uint32_t i)
{
    return ((const char *const *)ctx)[i];
}

static bool placeholder_known(struct bs_str name)
{
    for (size_t i = 0; i < BS_COUNT(placeholders); i++)
        if (bs_str_is(name, placeholders[i]))
            return true;
    return false;
}

static void fault_placeholder(struct bs_str name, struct bs_str what, uint32_t line,
                              struct bs_conf_faults *f)
{
    const char *near =
        bs_conf_nearest(name, placeholder_name, placeholders, BS_COUNT(placeholders));

    bs_conf_fault_add(f, line, "%.*s: unknown placeholder {%.*s}%s%s%s", BS_STR_FMT(what),
                      BS_STR_FMT(name), near ? "; did you mean {" : "", near ? near : "",
                      near ? "}?" : "");
}

/* Copies the address with every {name} as one letter, so that the rest can be judged. */
static bool fill_placeholders(struct bs_str url, struct bs_str what, uint32_t line,
                              struct bs_buf *out, struct bs_conf_faults *f)
{
    for (size_t i = 0; i < url.n; i++) {
        const char *end = url.p[i] == '{' ? memchr(url.p + i, '}', url.n - i) : NULL;
        if (!end) {
            bs_buf_addc(out, url.p[i]);
            continue;
        }
        struct bs_str name = { url.p + i + 1, (size_t)(end - (url.p + i + 1)) };
        if (!placeholder_known(name)) {
            fault_placeholder(name, what, line, f);
            return false;
        }
        bs_buf_addc(out, 'x');
        i += name.n + 1;
    }
    return bs_buf_done(out, NULL) == BS_OK;
}

static size_t host_begin(struct bs_str url)
{
    const char *p = memmem(url.p, url.n, "://", 3);

    return p ? (size_t)(p - url.p) + 3 : 0;
}

/* Where the part after the host begins. */
static size_t host_end(struct bs_str url)
{
    size_t i = host_begin(url);

    while (i < url.n && url.p[i] != '/' && url.p[i] != '?' && url.p[i] != '#')
        i++;
    return i;
}

/* curl forgives a slash too many before the host and would take the path's beginning for it. */
static const char *url_fault(struct bs_str url)
{
    static const char no_address[] = "must be an address such as http://127.0.0.1:9000/pay/process";
    const char *why = NULL;
    char *part = NULL;
    CURLU *u = curl_url();

    if (!u)
        return "cannot be read: no memory";
    if (host_end(url) == host_begin(url) || curl_url_set(u, CURLUPART_URL, url.p, 0) != CURLUE_OK)
        why = no_address;
    else if (curl_url_get(u, CURLUPART_USER, &part, 0) == CURLUE_OK)
        why = "must not hold a user name or password";
    curl_free(part);
    curl_url_cleanup(u);
    return why;
}

void bs_conf_check_url(const struct bs_conf_val *v, struct bs_str what, enum bs_conf_url kind,
                       struct bs_conf_faults *f)
{
    BS_CLEANUP(bs_buf_free) struct bs_buf plain = { .max = 8192 };
    bool look = kind == BS_URL_LOOK;
    const char *brace, *why;

    if (!v->text.p)
        return;
    if (!bs_str_starts(v->text, BS_STR("http://")) && !bs_str_starts(v->text, BS_STR("https://"))) {
        bs_conf_fault_add(f, v->line, "%.*s must begin with http:// or https://", BS_STR_FMT(what));
        return;
    }
    brace = memchr(v->text.p, '{', v->text.n);
    if (brace && (!look || (size_t)(brace - v->text.p) < host_end(v->text))) {
        bs_conf_fault_add(f, v->line, "%.*s: a placeholder is possible only after the host%s",
                          BS_STR_FMT(what), look ? "" : " of order_check.url");
        return;
    }
    if (!fill_placeholders(v->text, what, v->line, &plain, f))
        return;
    why = url_fault(bs_buf_str(&plain));
    if (why)
        bs_conf_fault_add(f, v->line, "%.*s %s", BS_STR_FMT(what), why);
}

/* ---- secrets ---- */

static bool secret_file(struct bs_str text, struct bs_str what, uint32_t line, struct bs_str *ret,
                        struct bs_conf_faults *f)
{
    struct bs_err err;

    if (bs_file_read(f->arena, text.p + 5, 4096, ret, &err) != BS_OK) {
        bs_conf_fault_add(f, line, "%.*s: %s", BS_STR_FMT(what), err.msg);
        return false;
    }
    *ret = bs_str_trim(*ret);
    return true;
}

void bs_conf_read_secret(const struct bs_conf_val *v, struct bs_str what, struct bs_secret *ret,
                         struct bs_conf_faults *f)
{
    struct bs_str text = v->text;
    struct bs_err err;

    if (!text.p || bs_str_is(v->raw, "none"))
        return;
    if (bs_str_starts(v->raw, BS_STR("file:")) && !secret_file(v->text, what, v->line, &text, f))
        return;
    if (text.n == 0)
        bs_conf_fault_add(f, v->line, "%.*s is empty; write none where calls need no signature",
                          BS_STR_FMT(what));
    else if (bs_secret_read(f->arena, text, ret, &err) != BS_OK)
        bs_conf_fault_add(f, v->line, "%.*s: %s", BS_STR_FMT(what), err.msg);
}

/* ---- success ---- */

/* A YAML value as the JSON text that a reply would hold: 0, true, "SUCCESS". */
static bool json_of(const struct bs_yaml_node *n, struct bs_str *ret, struct bs_conf_faults *f)
{
    BS_CLEANUP(bs_buf_free) struct bs_buf out = { .max = 4096 };
    struct bs_json *j;

    if (n->plain && bs_json_valid(n->text, NULL) == BS_OK) {
        *ret = n->text;
        return true;
    }
    j = bs_json_new(&out);
    if (!j)
        return false;
    bs_json_str(j, n->text);
    if (bs_json_end(j, NULL) != BS_OK)
        return false;
    *ret = bs_arena_str(f->arena, bs_buf_str(&out));
    return ret->p != NULL;
}

static void read_values(const struct bs_yaml_node *n, struct bs_str what,
                        struct bs_success_rule *ret, struct bs_conf_faults *f)
{
    struct bs_yaml_item alone = { .value = n };
    const struct bs_yaml_item *items = n->kind == BS_YAML_LIST ? n->items : &alone;
    uint32_t count = n->kind == BS_YAML_LIST ? n->n : 1;
    struct bs_str *values = BS_NEW_ARRAY(f->arena, struct bs_str, count + 1);

    for (uint32_t i = 0; values && i < count; i++) {
        const struct bs_yaml_node *one = items[i].value;
        if (one->kind != BS_YAML_SCALAR || !json_of(one, &values[i], f)) {
            struct bs_str found = bs_yaml_describe(f->arena, one);
            bs_conf_fault_add(f, one->line,
                              "%.*s: a value must be a text, a number, true, false "
                              "or null, not %.*s",
                              BS_STR_FMT(what), BS_STR_FMT(found));
            return;
        }
    }
    if (!values || count == 0)
        bs_conf_fault_add(f, n->line, "%.*s names no value", BS_STR_FMT(what));
    ret->values = values;
    ret->values_n = values ? count : 0;
}

static void read_rule(const struct bs_conf_val *v, struct bs_str what, struct bs_success_rule *ret,
                      struct bs_conf_faults *f)
{
    const struct bs_yaml_item *item = &v->node->items[0];

    if (v->node->n != 1) {
        bs_conf_fault_add(f, v->line, "%.*s.json must name one JSON pointer", BS_STR_FMT(what));
        return;
    }
    if (item->key.n && item->key.p[0] != '/') {
        bs_conf_fault_add(f, item->key_line,
                          "%.*s.json: a JSON pointer begins with /; did you mean `/%.64s`?",
                          BS_STR_FMT(what), item->key.p);
        return;
    }
    ret->json_pointer = item->key;
    read_values(item->value, what, ret, f);
}

void bs_conf_read_success(const struct bs_conf_group *g, struct bs_success_rule *ret,
                          struct bs_conf_faults *f)
{
    const struct bs_conf_val *body = &g->v[BS_SUC_BODY], *json = &g->v[BS_SUC_JSON];

    ret->status = (int)g->v[BS_SUC_STATUS].n;
    if (body->given == json->given) {
        bs_conf_fault_add(f, g->line, "%.*s must have either `body` or `json`",
                          BS_STR_FMT(g->path));
        return;
    }
    if (body->given && body->text.p)
        ret->body = bs_str_trim(body->text);
    if (json->node)
        read_rule(json, g->path, ret, f);
}

/* ---- statuses ---- */

static const char *const class_words[] = {
    [BS_STATUS_FAILED] = "failed",
    [BS_STATUS_UNKNOWN] = "unknown",
    [BS_STATUS_MANUAL] = "manual",
    [BS_STATUS_NOT_PROCESSED] = "not_processed",
    [BS_STATUS_ENDPOINT_FAULT] = "endpoint_fault",
};

static enum bs_status_class class_of(const struct bs_yaml_node *n)
{
    for (size_t i = 1; n->kind == BS_YAML_SCALAR && i < BS_COUNT(class_words); i++)
        if (bs_str_is(n->text, class_words[i]))
            return (enum bs_status_class)i;
    return BS_STATUS_DEFAULT;
}

static void read_status(const struct bs_yaml_item *item, struct bs_str what,
                        struct bs_status_override *ret, struct bs_conf_faults *f)
{
    int64_t status = 0;

    if (!bs_i64_parse(item->key, &status) || status < 300 || status > 599)
        bs_conf_fault_add(f, item->key_line, "%.*s: `%.64s` is not an HTTP status from 300 to 599",
                          BS_STR_FMT(what), item->key.p);
    ret->status = (int)status;
    ret->cls = class_of(item->value);
    if (ret->cls == BS_STATUS_DEFAULT) {
        struct bs_str found = bs_yaml_describe(f->arena, item->value);
        bs_conf_fault_add(f, item->value->line,
                          "%.*s: %.64s must be failed, unknown, manual, not_processed or "
                          "endpoint_fault, not %.*s",
                          BS_STR_FMT(what), item->key.p, BS_STR_FMT(found));
    }
}

void bs_conf_read_statuses(const struct bs_conf_val *v, struct bs_str what,
                           struct bs_policy *policy, struct bs_conf_faults *f)
{
    struct bs_status_override *items;

    if (!v->node)
        return;
    items = BS_NEW_ARRAY(f->arena, struct bs_status_override, v->node->n);
    for (uint32_t i = 0; items && i < v->node->n; i++) {
        read_status(&v->node->items[i], what, &items[i], f);
        for (uint32_t j = 0; j < i; j++)
            if (items[j].status == items[i].status)
                bs_conf_fault_add(f, v->node->items[i].key_line, "%.*s: %.64s is given twice",
                                  BS_STR_FMT(what), v->node->items[i].key.p);
    }
    policy->statuses = items;
    policy->statuses_n = items ? v->node->n : 0;
}

/* ---- delays ---- */

static void read_delays(const struct bs_conf_val *v, struct bs_str what, struct bs_backoff *ret,
                        struct bs_conf_faults *f)
{
    const struct bs_conf_section *s = bs_conf_top_section.keys[BS_TOP_QUEUES].section;
    const struct bs_conf_key *k = &s->keys[BS_Q_RETRY].section->keys[BS_RETRY_DELAYS];
    struct bs_span *delays = BS_NEW_ARRAY(f->arena, struct bs_span, v->node->n);

    for (uint32_t i = 0; delays && i < v->node->n; i++)
        bs_conf_span(k, what, v->node->items[i].value, &delays[i].us, f);
    ret->delays = delays;
    ret->delays_n = delays ? v->node->n : 0;
}

void bs_conf_read_backoff(const struct bs_conf_group *g, struct bs_backoff *ret,
                          struct bs_conf_faults *f)
{
    const struct bs_conf_val *initial = &g->v[BS_RETRY_INITIAL], *max = &g->v[BS_RETRY_MAX];
    const struct bs_conf_val *delays = &g->v[BS_RETRY_DELAYS], *factor = &g->v[BS_RETRY_FACTOR];

    ret->jitter_pct = (uint32_t)g->v[BS_RETRY_JITTER].n;
    if (delays->given && (initial->given || factor->given || max->given)) {
        bs_conf_fault_add(f, g->line,
                          "%.*s must have either `delays` or `initial` with `factor` and `max`",
                          BS_STR_FMT(g->path));
        return;
    }
    if (!initial->given && (factor->given || max->given)) {
        bs_conf_fault_add(f, g->line, "%.*s: `factor` and `max` need `initial`",
                          BS_STR_FMT(g->path));
        return;
    }
    if (initial->given) {
        if (initial->n > max->n)
            bs_conf_fault_add(f, initial->line, "%.*s: `initial` is longer than `max`",
                              BS_STR_FMT(g->path));
        ret->delays = NULL;
        ret->delays_n = 0;
        ret->initial = BS_US(initial->n);
        ret->factor_pct = (uint32_t)factor->n;
        ret->max = BS_US(max->n);
    } else if (delays->node) {
        struct bs_str what = bs_arena_fmt(f->arena, "%.*s.delays", BS_STR_FMT(g->path));
        read_delays(delays, what, ret, f);
    }
}
