/* Tables and lists for a terminal. */
#include "app/view.h"

#include "base/money.h"
#include "base/text.h"
#include "json/read.h"

#include <wchar.h>

enum { MEMBERS_MAX = 200, ROWS_MAX = 400, ITEMS_MAX = 10000, COLUMNS_MAX = 16, CELL_MAX = 400 };

/* How many columns of a terminal the text takes: Han letters take two. */
static size_t width_of(struct bs_str s)
{
    size_t width = 0;
    mbstate_t state = { 0 };

    for (size_t i = 0; i < s.n;) {
        wchar_t c = 0;
        size_t used = mbrtowc(&c, s.p + i, s.n - i, &state);
        if (used == 0 || used > s.n - i)
            return s.n;
        int w = wcwidth(c);
        width += w > 0 ? (size_t)w : 0;
        i += used;
    }
    return width;
}

/* 2026-11-30T16:03:47.123456Z → 2026-11-30 16:03:47.123 */
static bool is_time(struct bs_str s)
{
    return s.n == 27 && s.p[4] == '-' && s.p[10] == 'T' && s.p[13] == ':' && s.p[19] == '.' &&
           s.p[26] == 'Z';
}

static struct bs_str one_line(struct bs_arena *a, struct bs_str s)
{
    char *p = bs_arena_alloc(a, s.n + 1);

    for (size_t i = 0; p && i < s.n; i++) {
        p[i] = s.p[i];
        if (p[i] == '\n' || p[i] == '\t')
            p[i] = ' ';
    }
    return p ? (struct bs_str){ p, s.n } : BS_STR("");
}

static struct bs_str amount_of(struct bs_arena *a, const struct bs_json_object *o,
                               struct bs_str minor);
static const struct bs_json_member *find(const struct bs_json_object *o, struct bs_str name);

/* {"task_status":"MANUAL","currency":"CNY","count":2,"amount":"6410"} → MANUAL 64.10 CNY (2) */
static struct bs_str money(struct bs_arena *a, struct bs_str object)
{
    struct bs_json_object o = { 0 };
    const struct bs_json_member *amount = NULL, *status, *count;

    if (bs_json_read_object(a, object, MEMBERS_MAX, &o, NULL) == BS_OK)
        amount = find(&o, BS_STR("amount"));
    if (!amount || amount->type != BS_JSON_STRING)
        return object;
    status = find(&o, BS_STR("task_status"));
    count = find(&o, BS_STR("count"));
    struct bs_str text = amount_of(a, &o, amount->text);
    if (!status || status->type != BS_JSON_STRING || !count)
        return text;
    return bs_arena_fmt(a, "%.*s %.*s (%.*s)", BS_STR_FMT(status->text), BS_STR_FMT(text),
                        BS_STR_FMT(count->raw));
}

/* ["A", "B"] → A,B; amounts → 64.10 CNY, 5 JPY */
static struct bs_str join(struct bs_arena *a, struct bs_str array)
{
    BS_CLEANUP(bs_buf_free) struct bs_buf out = { .max = 64 << 10 };
    struct bs_str *items = NULL;
    uint32_t n = 0;

    if (bs_json_read_array(a, array, ITEMS_MAX, &items, &n, NULL) != BS_OK)
        return array;
    for (uint32_t i = 0; i < n; i++) {
        bool quoted = items[i].n >= 2 && items[i].p[0] == '"';
        bool object = items[i].n >= 2 && items[i].p[0] == '{';
        bs_buf_addz(&out, i ? object ? ", " : "," : "");
        bs_buf_add(&out, quoted   ? (struct bs_str){ items[i].p + 1, items[i].n - 2 }
                         : object ? money(a, items[i])
                                  : items[i]);
    }
    return bs_arena_str(a, bs_buf_str(&out));
}

/* What a person sees of a value: one line, no control characters. */
static struct bs_str show(struct bs_arena *a, const struct bs_json_member *m)
{
    struct bs_str s = m->type == BS_JSON_STRING ? m->text : m->raw;

    if (m->type == BS_JSON_NULL)
        return BS_STR("");
    if (m->type == BS_JSON_BOOL)
        return m->flag ? BS_STR("yes") : BS_STR("no");
    if (m->type == BS_JSON_STRING && is_time(s))
        return bs_arena_fmt(a, "%.10s %.12s", s.p, s.p + 11);
    if (m->type == BS_JSON_ARRAY)
        s = join(a, s);
    return one_line(a, bs_text_clean(a, s, CELL_MAX));
}

static const struct bs_json_member *find(const struct bs_json_object *o, struct bs_str name)
{
    for (uint32_t i = 0; i < o->n; i++)
        if (bs_str_eq(o->members[i].name, name))
            return &o->members[i];
    return NULL;
}

/* "biz_type", or "counts.WAITING" for a member of a member. */
static struct bs_str cell_of(struct bs_arena *a, const struct bs_json_object *o, const char *path)
{
    struct bs_str rest = bs_str_of(path), name = bs_str_cut(&rest, '.');
    const struct bs_json_member *m = find(o, name);
    struct bs_json_object inner = { 0 };

    if (!m)
        return BS_STR("");
    if (!rest.p)
        return show(a, m);
    if (m->type != BS_JSON_OBJECT ||
        bs_json_read_object(a, m->raw, MEMBERS_MAX, &inner, NULL) != BS_OK)
        return BS_STR("");
    m = find(&inner, rest);
    return m ? show(a, m) : BS_STR("");
}

/* "6410" and CNY → 64.10 CNY: a person must not have to guess where the point is. */
static struct bs_str amount_of(struct bs_arena *a, const struct bs_json_object *o,
                               struct bs_str minor)
{
    BS_CLEANUP(bs_buf_free) struct bs_buf out = { .max = 64 };
    const struct bs_json_member *currency = find(o, BS_STR("currency"));
    struct bs_money m = { 0 };

    if (!currency || currency->type != BS_JSON_STRING || bs_currency_exponent(currency->text) < 0 ||
        !bs_i64_parse(minor, &m.minor))
        return minor;
    memcpy(m.currency, currency->text.p, 3);
    bs_money_write(&out, m);
    return bs_arena_str(a, bs_buf_str(&out));
}

static bool waits(struct bs_arena *a, const struct bs_json_object *o)
{
    struct bs_str state = cell_of(a, o, "task_status");

    return bs_str_is(state, "WAITING") || bs_str_is(state, "RETRY");
}

static struct bs_str cell(struct bs_arena *a, const struct bs_json_object *o,
                          const struct bs_column *column)
{
    struct bs_str text = cell_of(a, o, column->member);

    if (column->kind == BS_COLUMN_AMOUNT)
        return amount_of(a, o, text);
    if (column->kind == BS_COLUMN_WAITING && !waits(a, o))
        return BS_STR("");
    return text;
}

static void pad(struct bs_buf *out, struct bs_str cell, size_t width, bool last)
{
    size_t w = width_of(cell);

    bs_buf_add(out, cell);
    for (; !last && w < width + 2; w++)
        bs_buf_addc(out, ' ');
}

struct grid {
    struct bs_str *cells; /* rows × columns, the titles first */
    uint32_t rows, columns;
};

static void write_grid(struct bs_buf *out, const struct grid *g)
{
    size_t widths[COLUMNS_MAX] = { 0 };

    for (uint32_t i = 0; i < g->rows * g->columns; i++) {
        size_t w = width_of(g->cells[i]);
        widths[i % g->columns] = BS_MAX(widths[i % g->columns], w);
    }
    for (uint32_t r = 0; r < g->rows; r++) {
        for (uint32_t c = 0; c < g->columns; c++)
            pad(out, g->cells[r * g->columns + c], widths[c], c + 1 == g->columns);
        while (out->len && out->p[out->len - 1] == ' ')
            out->p[--out->len] = '\0';
        bs_buf_addc(out, '\n');
    }
}

static bs_rc find_items(struct bs_arena *a, struct bs_str object, const char *name,
                        struct bs_str **ret, uint32_t *ret_n, struct bs_err *err)
{
    struct bs_json_object o = { 0 };

    BS_TRY(bs_json_read_object(a, object, MEMBERS_MAX, &o, err));
    const struct bs_json_member *m = find(&o, bs_str_of(name));
    if (!m)
        return bs_fail(err, BS_E_INVALID, "the answer has no %s", name);
    return bs_json_read_array(a, m->raw, ITEMS_MAX, ret, ret_n, err);
}

static bs_rc new_grid(struct bs_arena *a, size_t rows, const struct bs_column *columns, uint32_t n,
                      struct grid *ret, struct bs_err *err)
{
    BS_ASSERT(n <= COLUMNS_MAX);
    *ret = (struct grid){ BS_NEW_ARRAY(a, struct bs_str, (rows + 1) * n), 1, n };
    if (!ret->cells)
        return bs_fail(err, BS_E_NOMEM, "no memory for the table");
    for (uint32_t c = 0; c < n; c++)
        ret->cells[c] = bs_str_of(columns[c].title);
    return BS_OK;
}

/* `outer` (may be NULL) has what the object lacks. */
static bs_rc add_row(struct bs_arena *a, struct grid *g, const struct bs_column *columns,
                     struct bs_str object, const struct bs_json_object *outer, struct bs_err *err)
{
    struct bs_json_object o = { 0 };

    BS_TRY(bs_json_read_object(a, object, MEMBERS_MAX, &o, err));
    for (uint32_t c = 0; c < g->columns; c++) {
        bool own = !outer || find(&o, bs_str_of(columns[c].member));
        g->cells[(size_t)g->rows * g->columns + c] = cell(a, own ? &o : outer, &columns[c]);
    }
    g->rows++;
    return BS_OK;
}

bs_rc bs_view_table(struct bs_buf *out, struct bs_str answer, const struct bs_column *columns,
                    uint32_t n, const char *none, struct bs_err *err)
{
    BS_CLEANUP(bs_arena_free) struct bs_arena a = { .max = 512 << 20 };
    struct bs_str *items = NULL;
    uint32_t items_n = 0;
    struct grid g;

    BS_TRY(find_items(&a, answer, "items", &items, &items_n, err));
    if (items_n == 0) {
        bs_buf_fmt(out, "%s\n", none);
        return BS_OK;
    }
    BS_TRY(new_grid(&a, items_n, columns, n, &g, err));
    for (uint32_t r = 0; r < items_n; r++)
        BS_TRY(add_row(&a, &g, columns, items[r], NULL, err));
    write_grid(out, &g);
    return bs_buf_done(out, err);
}

static bs_rc add_inner(struct bs_arena *a, struct bs_str item, const char *inner, struct grid *g,
                       const struct bs_column *columns, struct bs_err *err)
{
    struct bs_json_object outer = { 0 };
    struct bs_str *items = NULL;
    uint32_t n = 0;

    BS_TRY(bs_json_read_object(a, item, MEMBERS_MAX, &outer, err));
    BS_TRY(find_items(a, item, inner, &items, &n, err));
    for (uint32_t i = 0; i < n && g->rows <= ITEMS_MAX; i++)
        BS_TRY(add_row(a, g, columns, items[i], &outer, err));
    return BS_OK;
}

bs_rc bs_view_inner(struct bs_buf *out, struct bs_str answer, const char *inner,
                    const struct bs_column *columns, uint32_t n, struct bs_err *err)
{
    BS_CLEANUP(bs_arena_free) struct bs_arena a = { .max = 512 << 20 };
    struct bs_str *items = NULL;
    uint32_t items_n = 0;
    struct grid g;

    BS_TRY(find_items(&a, answer, "items", &items, &items_n, err));
    BS_TRY(new_grid(&a, ITEMS_MAX, columns, n, &g, err));
    for (uint32_t i = 0; i < items_n; i++)
        BS_TRY(add_inner(&a, items[i], inner, &g, columns, err));
    if (g.rows > 1)
        write_grid(out, &g);
    return bs_buf_done(out, err);
}

/* ---- one object ---- */

static void add_pair(struct grid *g, struct bs_str name, struct bs_str value)
{
    if (g->rows == ROWS_MAX || value.n == 0)
        return;
    g->cells[(size_t)g->rows * 2] = name;
    g->cells[(size_t)g->rows * 2 + 1] = value;
    g->rows++;
}

static void add_members(struct bs_arena *a, const struct bs_json_object *o, struct bs_str outer,
                        struct grid *g)
{
    for (uint32_t i = 0; i < o->n; i++) {
        const struct bs_json_member *m = &o->members[i];
        struct bs_str name =
            outer.n ? bs_arena_fmt(a, "%.*s.%.*s", BS_STR_FMT(outer), BS_STR_FMT(m->name))
                    : m->name;
        struct bs_str value = show(a, m);
        if (value.n && bs_str_is(m->name, "amount"))
            value = amount_of(a, o, value);
        add_pair(g, name, value);
    }
}

/* A row for each item of an array. */
static bs_rc add_list(struct bs_arena *a, const struct bs_json_member *m, struct grid *g,
                      struct bs_err *err)
{
    struct bs_str *items = NULL;
    uint32_t n = 0;

    BS_TRY(bs_json_read_array(a, m->raw, ITEMS_MAX, &items, &n, err));
    for (uint32_t i = 0; i < n; i++)
        add_pair(g, i == 0 ? m->name : BS_STR(""),
                 one_line(a, bs_text_clean(a, money(a, items[i]), CELL_MAX)));
    return BS_OK;
}

static bs_rc add_tree(struct bs_arena *a, const struct bs_json_object *o, struct grid *g,
                      struct bs_err *err)
{
    for (uint32_t i = 0; i < o->n; i++) {
        struct bs_json_object inner = { 0 }, alone = { &o->members[i], 1 };

        if (alone.members->type == BS_JSON_ARRAY) {
            BS_TRY(add_list(a, alone.members, g, err));
        } else if (alone.members->type == BS_JSON_OBJECT) {
            BS_TRY(bs_json_read_object(a, alone.members->raw, MEMBERS_MAX, &inner, err));
            add_members(a, &inner, alone.members->name, g);
        } else {
            add_members(a, &alone, BS_STR_NONE, g);
        }
    }
    return BS_OK;
}

static bs_rc view(struct bs_buf *out, struct bs_str answer, bool tree, struct bs_err *err)
{
    BS_CLEANUP(bs_arena_free) struct bs_arena a = { 0 };
    struct bs_json_object o = { 0 };

    BS_TRY(bs_json_read_object(&a, answer, MEMBERS_MAX, &o, err));
    struct grid g = { BS_NEW_ARRAY(&a, struct bs_str, (size_t)ROWS_MAX * 2), 0, 2 };
    if (!g.cells)
        return bs_fail(err, BS_E_NOMEM, "no memory for the list");
    if (tree)
        BS_TRY(add_tree(&a, &o, &g, err));
    else
        add_members(&a, &o, BS_STR_NONE, &g);
    write_grid(out, &g);
    return bs_buf_done(out, err);
}

bs_rc bs_view_object(struct bs_buf *out, struct bs_str answer, struct bs_err *err)
{
    return view(out, answer, false, err);
}

bs_rc bs_view_tree(struct bs_buf *out, struct bs_str answer, struct bs_err *err)
{
    return view(out, answer, true, err);
}

bs_rc bs_view_member(struct bs_arena *a, struct bs_str answer, const char *name, struct bs_str *ret,
                     struct bs_err *err)
{
    struct bs_json_object o = { 0 };

    BS_TRY(bs_json_read_object(a, answer, MEMBERS_MAX, &o, err));
    *ret = cell_of(a, &o, name);
    return BS_OK;
}
