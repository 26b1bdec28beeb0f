/* Tables and lists for a terminal. */
#include "app/view.h"

#include "base/money.h"
#include "base/text.h"
#include "json/read.h"

#include <wchar.h>

enum { MEMBERS_MAX = 200, ITEMS_MAX = 10000, COLUMNS_MAX = 16, CELL_MAX = 400 };

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

/* ["A", "B"] → A,B */
static struct bs_str join(struct bs_arena *a, struct bs_str array)
{
    BS_CLEANUP(bs_buf_free) struct bs_buf out = { .max = CELL_MAX };
    struct bs_str *items = NULL;
    uint32_t n = 0;

    if (bs_json_read_array(a, array, ITEMS_MAX, &items, &n, NULL) != BS_OK)
        return array;
    for (uint32_t i = 0; i < n; i++) {
        bool quoted = items[i].n >= 2 && items[i].p[0] == '"';
        bs_buf_addz(&out, i ? "," : "");
        bs_buf_add(&out, quoted ? (struct bs_str){ items[i].p + 1, items[i].n - 2 } : items[i]);
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

static bs_rc find_items(struct bs_arena *a, struct bs_str answer, struct bs_str **ret,
                        uint32_t *ret_n, struct bs_err *err)
{
    struct bs_json_object o = { 0 };

    BS_TRY(bs_json_read_object(a, answer, MEMBERS_MAX, &o, err));
    for (uint32_t i = 0; i < o.n; i++)
        if (bs_str_is(o.members[i].name, "items"))
            return bs_json_read_array(a, o.members[i].raw, ITEMS_MAX, ret, ret_n, err);
    return bs_fail(err, BS_E_INVALID, "the answer has no items");
}

bs_rc bs_view_table(struct bs_buf *out, struct bs_str answer, const struct bs_column *columns,
                    uint32_t n, const char *none, struct bs_err *err)
{
    BS_CLEANUP(bs_arena_free) struct bs_arena a = { .max = 512 << 20 };
    struct bs_str *items = NULL;
    uint32_t items_n = 0;

    BS_ASSERT(n <= COLUMNS_MAX);
    BS_TRY(find_items(&a, answer, &items, &items_n, err));
    if (items_n == 0) {
        bs_buf_fmt(out, "%s\n", none);
        return BS_OK;
    }
    struct grid g = { BS_NEW_ARRAY(&a, struct bs_str, ((size_t)items_n + 1) * n), items_n + 1, n };
    if (!g.cells)
        return bs_fail(err, BS_E_NOMEM, "no memory for the table");
    for (uint32_t c = 0; c < n; c++)
        g.cells[c] = bs_str_of(columns[c].title);
    for (uint32_t r = 0; r < items_n; r++) {
        struct bs_json_object o = { 0 };
        BS_TRY(bs_json_read_object(&a, items[r], MEMBERS_MAX, &o, err));
        for (uint32_t c = 0; c < n; c++)
            g.cells[(r + 1) * n + c] = cell(&a, &o, &columns[c]);
    }
    write_grid(out, &g);
    return bs_buf_done(out, err);
}

bs_rc bs_view_object(struct bs_buf *out, struct bs_str answer, struct bs_err *err)
{
    BS_CLEANUP(bs_arena_free) struct bs_arena a = { 0 };
    struct bs_json_object o = { 0 };

    BS_TRY(bs_json_read_object(&a, answer, MEMBERS_MAX, &o, err));
    struct grid g = { BS_NEW_ARRAY(&a, struct bs_str, ((size_t)o.n + 1) * 2), 0, 2 };
    if (!g.cells)
        return bs_fail(err, BS_E_NOMEM, "no memory for the list");
    for (uint32_t i = 0; i < o.n; i++) {
        struct bs_str value = show(&a, &o.members[i]);
        if (value.n == 0)
            continue;
        if (bs_str_is(o.members[i].name, "amount"))
            value = amount_of(&a, &o, value);
        g.cells[(size_t)g.rows * 2] = o.members[i].name;
        g.cells[(size_t)g.rows * 2 + 1] = value;
        g.rows++;
    }
    write_grid(out, &g);
    return bs_buf_done(out, err);
}

bs_rc bs_view_member(struct bs_arena *a, struct bs_str answer, const char *name, struct bs_str *ret,
                     struct bs_err *err)
{
    struct bs_json_object o = { 0 };

    BS_TRY(bs_json_read_object(a, answer, MEMBERS_MAX, &o, err));
    *ret = cell_of(a, &o, name);
    return BS_OK;
}
