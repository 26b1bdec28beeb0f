/* YAML events of libyaml into a tree with line numbers. */
#include "app/config_yaml.h"

#include <yaml.h>

enum { DEPTH_MAX = 12, NODES_MAX = 100000, ANCHORS_MAX = 256 };

struct anchor {
    struct bs_str name;
    const struct bs_yaml_node *node;
};

struct reader {
    yaml_parser_t parser;
    yaml_event_t event; /* the current one; owned */
    bool has_event;
    struct bs_arena *arena;
    struct bs_err *err;
    uint32_t line; /* of the current event, or of the fault */
    uint32_t nodes;
    bs_rc rc; /* why a node could not be made */
    struct anchor anchors[ANCHORS_MAX];
    uint32_t anchors_n;
};

static void reader_done(struct reader *r)
{
    if (r->has_event)
        yaml_event_delete(&r->event);
    yaml_parser_delete(&r->parser);
}

static bs_rc step(struct reader *r)
{
    if (r->has_event)
        yaml_event_delete(&r->event);
    r->has_event = false;
    if (!yaml_parser_parse(&r->parser, &r->event)) {
        size_t line =
            r->parser.problem_mark.line ? r->parser.problem_mark.line : r->parser.context_mark.line;
        r->line = (uint32_t)line + 1;
        return bs_fail(r->err, BS_E_INVALID, "not readable as YAML: %s%s%s",
                       r->parser.problem ? r->parser.problem : "no reason given",
                       r->parser.context ? ", " : "", r->parser.context ? r->parser.context : "");
    }
    r->has_event = true;
    r->line = (uint32_t)r->event.start_mark.line + 1;
    return BS_OK;
}

static bs_rc keep(struct reader *r, const yaml_char_t *p, size_t n, struct bs_str *ret)
{
    *ret = bs_arena_str(r->arena, (struct bs_str){ (const char *)p, n });
    return ret->p ? BS_OK : bs_fail(r->err, BS_E_NOMEM, "no memory for the configuration");
}

static bs_rc refuse_tag(struct reader *r, const yaml_char_t *tag)
{
    if (!tag)
        return BS_OK;
    return bs_fail(r->err, BS_E_INVALID, "tags are not used here: %s", (const char *)tag);
}

/* NULL: the failure is in r->rc. */
static struct bs_yaml_node *new_node(struct reader *r, enum bs_yaml_kind kind)
{
    struct bs_yaml_node *n = NULL;

    if (++r->nodes > NODES_MAX)
        r->rc = bs_fail(r->err, BS_E_LIMIT, "more than %d values in one file", (int)NODES_MAX);
    else if ((n = BS_NEW(r->arena, struct bs_yaml_node)) == NULL)
        r->rc = bs_fail(r->err, BS_E_NOMEM, "no memory for the configuration");
    if (!n)
        return NULL;
    n->kind = kind;
    n->line = r->line;
    return n;
}

static bs_rc read_node(struct reader *r, uint32_t depth, const struct bs_yaml_node **ret);

static bs_rc read_scalar(struct reader *r, const struct bs_yaml_node **ret)
{
    struct bs_yaml_node *n;

    BS_TRY(refuse_tag(r, r->event.data.scalar.tag));
    n = new_node(r, BS_YAML_SCALAR);
    if (!n)
        return r->rc;
    BS_TRY(keep(r, r->event.data.scalar.value, r->event.data.scalar.length, &n->text));
    if (memchr(n->text.p, 0, n->text.n))
        return bs_fail(r->err, BS_E_INVALID, "a value holds a NUL character");
    n->plain = r->event.data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
    *ret = n;
    return BS_OK;
}

/* One more place at the end of the items; the array doubles and the old one stays in the arena. */
static bs_rc grow(struct reader *r, struct bs_yaml_node *n, uint32_t *cap)
{
    struct bs_yaml_item *wider;

    if (n->n < *cap)
        return BS_OK;
    *cap = *cap ? *cap * 2 : 8;
    wider = BS_NEW_ARRAY(r->arena, struct bs_yaml_item, *cap);
    if (!wider)
        return bs_fail(r->err, BS_E_NOMEM, "no memory for the configuration");
    if (n->n)
        memcpy(wider, n->items, n->n * sizeof *wider);
    n->items = wider;
    return BS_OK;
}

static bs_rc read_key(struct reader *r, struct bs_yaml_item *item)
{
    if (r->event.type != YAML_SCALAR_EVENT)
        return bs_fail(r->err, BS_E_INVALID, "a key must be a word");
    item->key_line = r->line;
    BS_TRY(keep(r, r->event.data.scalar.value, r->event.data.scalar.length, &item->key));
    if (memchr(item->key.p, 0, item->key.n))
        return bs_fail(r->err, BS_E_INVALID, "a key holds a NUL character");
    return step(r);
}

/* One entry, up to the event that begins the next or ends the group. */
static bs_rc read_item(struct reader *r, uint32_t depth, struct bs_yaml_item *item, bool keyed)
{
    if (keyed)
        BS_TRY(read_key(r, item));
    BS_TRY(read_node(r, depth + 1, &item->value));
    return step(r);
}

static bs_rc read_items(struct reader *r, uint32_t depth, struct bs_yaml_node *n)
{
    bool keyed = n->kind == BS_YAML_MAP;
    yaml_event_type_t end = keyed ? YAML_MAPPING_END_EVENT : YAML_SEQUENCE_END_EVENT;
    uint32_t cap = 0;

    BS_TRY(step(r));
    while (r->event.type != end) {
        BS_TRY(grow(r, n, &cap));
        BS_TRY(read_item(r, depth, &n->items[n->n], keyed));
        n->n++;
    }
    return BS_OK;
}

static bs_rc read_group(struct reader *r, uint32_t depth, enum bs_yaml_kind kind,
                        const struct bs_yaml_node **ret)
{
    struct bs_yaml_node *n;

    BS_TRY(refuse_tag(r, kind == BS_YAML_MAP ? r->event.data.mapping_start.tag
                                             : r->event.data.sequence_start.tag));
    n = new_node(r, kind);
    if (!n)
        return r->rc;
    BS_TRY(read_items(r, depth, n));
    *ret = n;
    return BS_OK;
}

static bs_rc read_alias(struct reader *r, const struct bs_yaml_node **ret)
{
    struct bs_str name = bs_str_of((const char *)r->event.data.alias.anchor);

    for (uint32_t i = r->anchors_n; i > 0; i--) {
        if (bs_str_eq(r->anchors[i - 1].name, name)) {
            *ret = r->anchors[i - 1].node;
            return BS_OK;
        }
    }
    return bs_fail(r->err, BS_E_INVALID, "*%.*s has no anchor above it", BS_STR_FMT(name));
}

static const yaml_char_t *anchor_of(const yaml_event_t *e)
{
    if (e->type == YAML_SCALAR_EVENT)
        return e->data.scalar.anchor;
    if (e->type == YAML_MAPPING_START_EVENT)
        return e->data.mapping_start.anchor;
    return e->type == YAML_SEQUENCE_START_EVENT ? e->data.sequence_start.anchor : NULL;
}

/* Known only after its node has ended, so that a node can never hold itself. */
static bs_rc name_anchor(struct reader *r, struct bs_str name, const struct bs_yaml_node *node)
{
    if (!name.p)
        return BS_OK;
    if (r->anchors_n == ANCHORS_MAX)
        return bs_fail(r->err, BS_E_LIMIT, "more than %d anchors", (int)ANCHORS_MAX);
    r->anchors[r->anchors_n++] = (struct anchor){ name, node };
    return BS_OK;
}

static bs_rc read_by_kind(struct reader *r, uint32_t depth, const struct bs_yaml_node **ret)
{
    if (r->event.type == YAML_SCALAR_EVENT)
        return read_scalar(r, ret);
    if (r->event.type == YAML_MAPPING_START_EVENT)
        return read_group(r, depth, BS_YAML_MAP, ret);
    if (r->event.type == YAML_SEQUENCE_START_EVENT)
        return read_group(r, depth, BS_YAML_LIST, ret);
    if (r->event.type == YAML_ALIAS_EVENT)
        return read_alias(r, ret);
    return bs_fail(r->err, BS_E_INVALID, "a value was expected here");
}

/* The current event begins the node; afterwards the current event is its last. */
static bs_rc read_node(struct reader *r, uint32_t depth, const struct bs_yaml_node **ret)
{
    const yaml_char_t *anchor = anchor_of(&r->event);
    struct bs_str name = BS_STR_NONE;

    if (depth > DEPTH_MAX)
        return bs_fail(r->err, BS_E_LIMIT, "nested deeper than %d levels", (int)DEPTH_MAX);
    if (anchor)
        BS_TRY(keep(r, anchor, strlen((const char *)anchor), &name));
    BS_TRY(read_by_kind(r, depth, ret));
    return name_anchor(r, name, *ret);
}

static bs_rc read_stream(struct reader *r, const struct bs_yaml_node **ret)
{
    BS_TRY(step(r)); /* stream start */
    BS_TRY(step(r));
    if (r->event.type == YAML_STREAM_END_EVENT)
        return BS_OK;
    BS_TRY(step(r)); /* past document start */
    BS_TRY(read_node(r, 0, ret));
    BS_TRY(step(r)); /* document end */
    BS_TRY(step(r));
    if (r->event.type != YAML_STREAM_END_EVENT)
        return bs_fail(r->err, BS_E_INVALID, "a second document begins here; one is allowed");
    return BS_OK;
}

bs_rc bs_yaml_read(struct bs_arena *a, struct bs_str text, const struct bs_yaml_node **ret,
                   uint32_t *ret_line, struct bs_err *err)
{
    BS_CLEANUP(reader_done) struct reader r = { .arena = a, .err = err, .line = 1 };
    const struct bs_yaml_node *root = NULL;
    bs_rc rc;

    if (!yaml_parser_initialize(&r.parser))
        return bs_fail(err, BS_E_NOMEM, "no memory for the configuration");
    yaml_parser_set_input_string(&r.parser, (const unsigned char *)text.p, text.n);
    rc = read_stream(&r, &root);
    *ret_line = r.line;
    if (rc == BS_OK)
        *ret = root;
    return rc;
}

struct bs_str bs_yaml_describe(struct bs_arena *a, const struct bs_yaml_node *n)
{
    if (n->kind == BS_YAML_LIST)
        return n->n ? BS_STR("a list") : BS_STR("an empty list");
    if (n->kind == BS_YAML_MAP)
        return n->n ? BS_STR("a group of keys") : BS_STR("an empty group");
    if (n->text.n == 0)
        return n->plain ? BS_STR("nothing") : BS_STR("an empty text");
    return bs_arena_fmt(a, "%s`%.60s`", n->plain ? "" : "the quoted text ", n->text.p);
}
