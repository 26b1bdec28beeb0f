/* The YAML tree of a configuration, checked against the table of keys. */
#include "app/config_read.h"

#include "base/text.h"
#include "base/time.h"

#include <stdarg.h>
#include <stdio.h>

enum { FAULT_MAX = 1024 };

/* Messages quote what the file holds: whatever it is, a fault stays one printable line. */
static struct bs_str one_line(struct bs_arena *a, char *text, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (text[i] == '\n' || text[i] == '\t')
            text[i] = ' ';
    return bs_arena_str(a, bs_text_clean(a, (struct bs_str){ text, n }, FAULT_MAX));
}

void bs_conf_fault_add(struct bs_conf_faults *f, uint32_t line, const char *fmt, ...)
{
    char text[FAULT_MAX];
    va_list args;

    if (f->n == BS_CONF_FAULTS_MAX) {
        f->more++;
        return;
    }
    va_start(args, fmt);
    int n = vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    BS_ASSERT(n >= 0);
    f->items[f->n].line = line;
    f->items[f->n].text = one_line(f->arena, text, BS_MIN((size_t)n, sizeof(text) - 1));
    if (!f->items[f->n].text.p)
        f->items[f->n].text = BS_STR("no memory for the message");
    f->n++;
}

/* ---- the nearest name ---- */

const char *bs_conf_nearest(struct bs_str word, const char *(*name)(const void *ctx, uint32_t i),
                            const void *ctx, uint32_t n)
{
    uint32_t best = UINT32_MAX;
    const char *found = NULL;

    for (uint32_t i = 0; i < n; i++) {
        struct bs_str candidate = bs_str_of(name(ctx, i));
        uint32_t d = bs_text_distance(word, candidate);
        uint32_t far = (uint32_t)BS_MAX(candidate.n, word.n) / 2;
        if (d < best && d <= far) {
            best = d;
            found = candidate.p;
        }
    }
    return found;
}

static const char *key_name(const void *ctx, uint32_t i)
{
    return ((const struct bs_conf_section *)ctx)->keys[i].name;
}

/* "queues.PAY.lease" for messages. */
static struct bs_str key_path(const struct bs_conf_group *g, const char *key,
                              struct bs_conf_faults *f)
{
    struct bs_str s =
        g->path.n ? bs_arena_fmt(f->arena, "%.*s.%s", BS_STR_FMT(g->path), key) : bs_str_of(key);
    return s.p ? s : bs_str_of(key);
}

static struct bs_str inside(const struct bs_conf_group *g, struct bs_conf_faults *f)
{
    return g->path.n ? bs_arena_fmt(f->arena, " in %.*s", BS_STR_FMT(g->path)) : BS_STR_NONE;
}

static void fault_unknown(const struct bs_conf_section *s, const struct bs_yaml_item *item,
                          const struct bs_conf_group *g, struct bs_conf_faults *f)
{
    const char *near = bs_conf_nearest(item->key, key_name, s, s->n);
    struct bs_str where = inside(g, f);

    if (bs_str_is(item->key, "<<"))
        bs_conf_fault_add(f, item->key_line, "merge keys (<<) are not used here");
    else if (near)
        bs_conf_fault_add(f, item->key_line, "unknown key `%.64s`%.*s; did you mean `%s`?",
                          item->key.p, BS_STR_FMT(where), near);
    else
        bs_conf_fault_add(f, item->key_line, "unknown key `%.64s`%.*s", item->key.p,
                          BS_STR_FMT(where));
}

/* ---- single values ---- */

static void fault_type(const struct bs_conf_key *k, struct bs_str what,
                       const struct bs_yaml_node *n, struct bs_conf_faults *f)
{
    struct bs_str found = bs_yaml_describe(f->arena, n);

    bs_conf_fault_add(f, n->line, "%.*s must be %s%s%s, not %.*s", BS_STR_FMT(what),
                      bs_conf_kind_words(k->kind), k->instead ? " or the word " : "",
                      k->instead ? k->instead : "", BS_STR_FMT(found));
}

static struct bs_str span_text(int64_t us, struct bs_conf_faults *f)
{
    BS_CLEANUP(bs_buf_free) struct bs_buf b = { .max = 64 };

    bs_span_write(&b, BS_US(us));
    return bs_arena_str(f->arena, bs_buf_str(&b));
}

bool bs_conf_span(const struct bs_conf_key *k, struct bs_str what, const struct bs_yaml_node *n,
                  int64_t *ret, struct bs_conf_faults *f)
{
    struct bs_span d;

    if (n->kind != BS_YAML_SCALAR || bs_span_parse(n->text, &d, NULL) != BS_OK) {
        struct bs_conf_key one = { .kind = BS_CONF_SPAN, .instead = k->instead };
        fault_type(&one, what, n, f);
        return false;
    }
    if ((d.us < k->min && !(k->instead && d.us == 0)) || d.us > k->max) {
        struct bs_str least = span_text(k->min, f), most = span_text(k->max, f);
        bs_conf_fault_add(f, n->line, "%.*s must be from %.*s to %.*s, not %.*s", BS_STR_FMT(what),
                          BS_STR_FMT(least), BS_STR_FMT(most), BS_STR_FMT(n->text));
        return false;
    }
    *ret = d.us;
    return true;
}

/* "1.5" → 150; at most two digits after the point. */
static bool parse_hundredths(struct bs_str s, int64_t *ret)
{
    struct bs_str whole = bs_str_cut(&s, '.');
    int64_t w = 0, part = 0;

    if (!bs_i64_parse(whole, &w) || w < 0 || w > 1000000)
        return false;
    if (s.p) {
        if (s.n < 1 || s.n > 2 || s.p[0] == '-' || !bs_i64_parse(s, &part))
            return false;
        part *= s.n == 1 ? 10 : 1;
    }
    *ret = w * 100 + part;
    return true;
}

static bool parse_number(const struct bs_conf_key *k, struct bs_str s, int64_t *ret)
{
    if (k->kind == BS_CONF_FACTOR)
        return parse_hundredths(s, ret);
    if (k->kind == BS_CONF_PERCENT) {
        if (s.n < 2 || s.p[s.n - 1] != '%')
            return false;
        s.n--;
    }
    return bs_i64_parse(s, ret);
}

static void fault_range(const struct bs_conf_key *k, struct bs_str what, uint32_t line,
                        struct bs_str found, struct bs_conf_faults *f)
{
    int64_t unit = k->kind == BS_CONF_FACTOR ? 100 : 1;
    const char *sign = k->kind == BS_CONF_PERCENT ? "%" : "";

    bs_conf_fault_add(f, line, "%.*s must be from %lld%s to %lld%s, not %.*s", BS_STR_FMT(what),
                      (long long)(k->min / unit), sign, (long long)(k->max / unit), sign,
                      BS_STR_FMT(found));
}

static void read_number(const struct bs_conf_key *k, struct bs_str what,
                        const struct bs_yaml_node *n, struct bs_conf_val *v,
                        struct bs_conf_faults *f)
{
    int64_t number = 0;

    if (n->kind != BS_YAML_SCALAR || !n->plain || !parse_number(k, n->text, &number))
        fault_type(k, what, n, f);
    else if (number < k->min || number > k->max)
        fault_range(k, what, n->line, n->text, f);
    else
        v->n = number;
}

static void read_rate(const struct bs_conf_key *k, struct bs_str what, const struct bs_yaml_node *n,
                      struct bs_conf_val *v, struct bs_conf_faults *f)
{
    if (n->kind != BS_YAML_SCALAR || !bs_rate_parse(n->text, &v->rate))
        fault_type(k, what, n, f);
    else if (v->rate.calls < k->min || v->rate.calls > k->max)
        bs_conf_fault_add(f, n->line,
                          "%.*s must allow from %lld to %lld calls, not %.*s; the word none is no "
                          "limit, and a queue that is to stop is paused",
                          BS_STR_FMT(what), (long long)k->min, (long long)k->max,
                          BS_STR_FMT(n->text));
}

static void read_flag(const struct bs_conf_key *k, struct bs_str what, const struct bs_yaml_node *n,
                      struct bs_conf_val *v, struct bs_conf_faults *f)
{
    if (n->kind != BS_YAML_SCALAR || !n->plain ||
        (!bs_str_is(n->text, "true") && !bs_str_is(n->text, "false")))
        fault_type(k, what, n, f);
    else
        v->n = bs_str_is(n->text, "true");
}

static const char *choice_name(const void *ctx, uint32_t i)
{
    return ((const struct bs_conf_key *)ctx)->choices[i];
}

static uint32_t choice_count(const struct bs_conf_key *k)
{
    uint32_t n = 0;

    while (k->choices[n])
        n++;
    return n;
}

static void fault_choice(const struct bs_conf_key *k, struct bs_str what,
                         const struct bs_yaml_node *n, struct bs_conf_faults *f)
{
    BS_CLEANUP(bs_buf_free) struct bs_buf list = { .max = 512 };
    struct bs_str found = bs_yaml_describe(f->arena, n);
    const char *near = n->kind == BS_YAML_SCALAR
                           ? bs_conf_nearest(n->text, choice_name, k, choice_count(k))
                           : NULL;

    for (uint32_t i = 0; k->choices[i]; i++)
        bs_buf_fmt(&list, "%s%s", i ? (k->choices[i + 1] ? ", " : " or ") : "", k->choices[i]);
    bs_conf_fault_add(f, n->line, "%.*s must be %s, not %.*s%s%s%s", BS_STR_FMT(what),
                      bs_buf_str(&list).p, BS_STR_FMT(found), near ? "; did you mean `" : "",
                      near ? near : "", near ? "`?" : "");
}

static void read_choice(const struct bs_conf_key *k, struct bs_str what,
                        const struct bs_yaml_node *n, struct bs_conf_val *v,
                        struct bs_conf_faults *f)
{
    for (uint32_t i = 0; n->kind == BS_YAML_SCALAR && k->choices[i]; i++) {
        if (bs_str_is(n->text, k->choices[i])) {
            v->n = i;
            return;
        }
    }
    fault_choice(k, what, n, f);
}

static bool is_null(const struct bs_yaml_node *n)
{
    return n->kind == BS_YAML_SCALAR && n->plain &&
           (n->text.n == 0 || bs_str_is(n->text, "~") || bs_str_is(n->text, "null"));
}

static void read_text(const struct bs_conf_key *k, struct bs_str what, const struct bs_yaml_node *n,
                      struct bs_conf_val *v, struct bs_conf_faults *f)
{
    if (n->kind != BS_YAML_SCALAR) {
        fault_type(k, what, n, f);
        return;
    }
    v->raw = n->text;
    if (!bs_utf8_valid(n->text) || !bs_text_plain(n->text))
        bs_conf_fault_add(f, n->line, "%.*s must not hold control characters", BS_STR_FMT(what));
    else if (!bs_conf_expand(n->text, what, n->line, &v->text, f))
        v->text = BS_STR_NONE;
}

/* ---- groups ---- */

static struct bs_conf_group *new_group(struct bs_str path, struct bs_str name, uint32_t line,
                                       struct bs_conf_faults *f)
{
    struct bs_conf_group *g = BS_NEW(f->arena, struct bs_conf_group);

    if (!g) {
        bs_conf_fault_add(f, line, "no memory for the configuration");
        return NULL;
    }
    *g = (struct bs_conf_group){ .path = path, .name = name, .line = line };
    return g;
}

static bool has_required(const struct bs_conf_section *s)
{
    for (uint32_t i = 0; i < s->n; i++)
        if (s->keys[i].required)
            return true;
    return false;
}

static void read_section(const struct bs_conf_key *k, struct bs_str what,
                         const struct bs_yaml_node *n, struct bs_conf_val *v,
                         struct bs_conf_faults *f)
{
    struct bs_conf_group *g;

    if (n->kind != BS_YAML_MAP) {
        fault_type(k, what, n, f);
        return;
    }
    g = new_group(what, bs_str_of(k->name), v->line, f);
    if (g)
        bs_conf_read(k->section, n, g, f);
    v->section = g;
}

static void check_doubles(const struct bs_yaml_node *map, const struct bs_conf_group *g,
                          struct bs_conf_faults *f)
{
    struct bs_str where = inside(g, f);

    for (uint32_t i = 1; i < map->n; i++) {
        for (uint32_t j = 0; j < i; j++) {
            if (!bs_str_eq(map->items[i].key, map->items[j].key))
                continue;
            bs_conf_fault_add(f, map->items[i].key_line,
                              "the key `%.64s`%.*s is given twice; it is already on line %u",
                              map->items[i].key.p, BS_STR_FMT(where), map->items[j].key_line);
            break;
        }
    }
}

static void read_one_named(const struct bs_conf_key *k, const struct bs_yaml_item *item,
                           const struct bs_conf_group *here, struct bs_conf_val *v,
                           struct bs_conf_faults *f)
{
    struct bs_conf_group *g = &v->named[v->n];

    g->name = item->key;
    g->path = key_path(here, item->key.p, f);
    g->line = item->key_line;
    if (item->value->kind == BS_YAML_MAP) {
        bs_conf_read(k->section, item->value, g, f);
        v->n++;
    } else {
        struct bs_str found = bs_yaml_describe(f->arena, item->value);
        bs_conf_fault_add(f, g->line, "%.*s must be a group of keys, not %.*s", BS_STR_FMT(g->path),
                          BS_STR_FMT(found));
    }
}

static void read_named(const struct bs_conf_key *k, struct bs_str what,
                       const struct bs_yaml_node *n, struct bs_conf_val *v,
                       struct bs_conf_faults *f)
{
    struct bs_conf_group here = { .path = what };

    if (n->kind != BS_YAML_MAP) {
        fault_type(k, what, n, f);
        return;
    }
    check_doubles(n, &here, f);
    v->named = BS_NEW_ARRAY(f->arena, struct bs_conf_group, n->n + 1);
    if (!v->named) {
        bs_conf_fault_add(f, n->line, "no memory for the configuration");
        return;
    }
    for (uint32_t i = 0; i < n->n; i++)
        read_one_named(k, &n->items[i], &here, v, f);
}

static void read_list(const struct bs_conf_key *k, struct bs_str what, const struct bs_yaml_node *n,
                      struct bs_conf_val *v, struct bs_conf_faults *f)
{
    enum bs_yaml_kind right = k->kind == BS_CONF_SPANS ? BS_YAML_LIST : BS_YAML_MAP;

    if (n->kind != right || n->n == 0)
        fault_type(k, what, n, f);
    else
        v->node = n;
}

/* The word that may stand for the value, or 0 for a number. */
static bool is_off(const struct bs_conf_key *k, const struct bs_yaml_node *n)
{
    bool number = k->kind == BS_CONF_COUNT || k->kind == BS_CONF_SPAN || k->kind == BS_CONF_RATE;

    return k->instead && n->kind == BS_YAML_SCALAR &&
           (bs_str_is(n->text, k->instead) || (number && n->plain && bs_str_is(n->text, "0")));
}

static void read_value(const struct bs_conf_key *k, struct bs_str what,
                       const struct bs_yaml_node *n, struct bs_conf_val *v,
                       struct bs_conf_faults *f)
{
    if (is_off(k, n)) {
        v->n = 0;
        return;
    }
    switch (k->kind) {
    case BS_CONF_TEXT:
        read_text(k, what, n, v, f);
        break;
    case BS_CONF_FLAG:
        read_flag(k, what, n, v, f);
        break;
    case BS_CONF_COUNT:
    case BS_CONF_PERCENT:
    case BS_CONF_FACTOR:
        read_number(k, what, n, v, f);
        break;
    case BS_CONF_SPAN:
        bs_conf_span(k, what, n, &v->n, f);
        break;
    case BS_CONF_RATE:
        read_rate(k, what, n, v, f);
        break;
    case BS_CONF_CHOICE:
        read_choice(k, what, n, v, f);
        break;
    case BS_CONF_SPANS:
    case BS_CONF_STATUSES:
    case BS_CONF_RULE:
    case BS_CONF_AMOUNTS:
        read_list(k, what, n, v, f);
        break;
    case BS_CONF_SECTION:
        read_section(k, what, n, v, f);
        break;
    case BS_CONF_NAMED:
        read_named(k, what, n, v, f);
        break;
    }
}

/* The default, parsed by the same rules as what people write. */
static void set_standard(const struct bs_conf_key *k, struct bs_str what, struct bs_conf_val *v,
                         struct bs_conf_faults *f)
{
    bool scalar = k->kind != BS_CONF_SPANS && k->kind != BS_CONF_SECTION;

    if (k->standard && scalar) {
        struct bs_yaml_node n = { .line = v->line, .text = bs_str_of(k->standard), .plain = true };
        read_value(k, what, &n, v, f);
    } else if (k->kind == BS_CONF_SECTION && !k->instead && !has_required(k->section)) {
        struct bs_conf_group *g = new_group(what, bs_str_of(k->name), v->line, f);
        if (g)
            bs_conf_read(k->section, NULL, g, f);
        v->section = g;
    }
}

static const struct bs_yaml_item *find_item(const struct bs_yaml_node *map, const char *name)
{
    for (uint32_t i = 0; map && i < map->n; i++)
        if (bs_str_is(map->items[i].key, name))
            return &map->items[i];
    return NULL;
}

static void read_key(const struct bs_conf_key *k, const struct bs_yaml_item *item,
                     struct bs_conf_group *g, struct bs_conf_val *v, struct bs_conf_faults *f)
{
    struct bs_str what = key_path(g, k->name, f);

    v->line = item ? item->key_line : g->line;
    set_standard(k, what, v, f);
    if (!item) {
        if (k->required)
            bs_conf_fault_add(f, g->line, "%.*s lacks the key `%s`: %s", BS_STR_FMT(g->path),
                              k->name, k->doc);
        return;
    }
    v->given = true;
    if (is_null(item->value) && k->kind == BS_CONF_NAMED)
        return; /* a file whose entries are all commented out */
    if (is_null(item->value))
        bs_conf_fault_add(f, item->key_line, "%.*s has no value; it must be %s", BS_STR_FMT(what),
                          bs_conf_kind_words(k->kind));
    else
        read_value(k, what, item->value, v, f);
}

static bool known(const struct bs_conf_section *s, struct bs_str key)
{
    for (uint32_t i = 0; i < s->n; i++)
        if (bs_str_is(key, s->keys[i].name))
            return true;
    return false;
}

void bs_conf_read(const struct bs_conf_section *s, const struct bs_yaml_node *map,
                  struct bs_conf_group *g, struct bs_conf_faults *f)
{
    BS_ASSERT(s->n <= BS_CONF_KEYS_MAX);
    if (map) {
        check_doubles(map, g, f);
        for (uint32_t i = 0; i < map->n; i++)
            if (!known(s, map->items[i].key))
                fault_unknown(s, &map->items[i], g, f);
    }
    for (uint32_t i = 0; i < s->n; i++)
        read_key(&s->keys[i], find_item(map, s->keys[i].name), g, &g->v[i], f);
}
