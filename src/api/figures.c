/* Queues with their figures: gathered from the configuration, the store and the process. */
#include "api/figures.h"

/* ---- gathering ---- */

static struct bs_queue_figures *find(struct bs_figures *f, struct bs_str biz_type)
{
    for (uint32_t i = 0; i < f->n; i++)
        if (bs_str_eq(f->queues[i].biz_type, biz_type))
            return &f->queues[i];
    return NULL;
}

static struct bs_queue_figures *find_or_add(struct bs_figures *f, struct bs_str biz_type)
{
    struct bs_queue_figures *q = find(f, biz_type);

    if (!q) {
        q = &f->queues[f->n++];
        *q = (struct bs_queue_figures){ .biz_type = biz_type, .row.biz_type = biz_type };
    }
    return q;
}

const struct bs_queue_figures *bs_figures_find(const struct bs_figures *f, struct bs_str biz_type)
{
    for (uint32_t i = 0; i < f->n; i++)
        if (bs_str_eq(f->queues[i].biz_type, biz_type))
            return &f->queues[i];
    return NULL;
}

/* Sums wrap as those of the store do. */
static int64_t plus(int64_t a, int64_t b)
{
    return (int64_t)((uint64_t)a + (uint64_t)b);
}

static struct bs_money_figures *money_of(struct bs_queue_figures *q, struct bs_str currency)
{
    for (uint32_t i = 0; i < q->money_n; i++)
        if (bs_str_eq(q->money[i].currency, currency))
            return &q->money[i];
    q->money[q->money_n].currency = currency;
    return &q->money[q->money_n++];
}

static void add_row(struct bs_queue_figures *q, const struct bs_stat_row *row)
{
    if (row->state >= BS_STATE_COUNT)
        return;
    q->counts[row->state] += row->count;
    q->unknown += row->unknown;
    if (row->currency.n == 0)
        return;
    struct bs_money_figures *m = money_of(q, row->currency);
    m->counts[row->state] += row->count;
    m->amounts[row->state] = plus(m->amounts[row->state], row->amount);
}

static int by_currency(const void *a, const void *b)
{
    return bs_str_cmp(((const struct bs_money_figures *)a)->currency,
                      ((const struct bs_money_figures *)b)->currency);
}

/* The rows of one queue stand together. */
static bool add_rows(struct bs_figures *f, const struct bs_stat_row *rows, uint32_t n,
                     struct bs_arena *a)
{
    struct bs_queue_figures *q = find_or_add(f, rows[0].biz_type);

    if (!q->money)
        q->money = BS_NEW_ARRAY(a, struct bs_money_figures, n);
    if (!q->money)
        return false;
    for (uint32_t i = 0; i < n; i++)
        add_row(q, &rows[i]);
    if (q->money_n > 1)
        qsort(q->money, q->money_n, sizeof(*q->money), by_currency);
    return true;
}

static bool add_stats(struct bs_figures *f, const struct bs_stat_row *rows, uint32_t n,
                      struct bs_arena *a)
{
    uint32_t end = 0;

    for (uint32_t i = 0; i < n; i = end) {
        for (end = i + 1; end < n && bs_str_eq(rows[end].biz_type, rows[i].biz_type);)
            end++;
        if (!add_rows(f, &rows[i], end - i, a))
            return false;
    }
    return true;
}

uint32_t bs_figures_live(const struct bs_api_options *o, struct bs_arena *a,
                         struct bs_queue_live **ret)
{
    uint32_t max = bs_queues_now(o->queues)->n;
    struct bs_queue_live *items = o->live ? BS_NEW_ARRAY(a, struct bs_queue_live, max + 1) : NULL;

    *ret = items;
    return items ? o->live(o->ctx, items, max) : 0;
}

static void add_live(struct bs_figures *f, const struct bs_api_options *o, struct bs_arena *a)
{
    struct bs_queue_live *items = NULL;
    uint32_t n = bs_figures_live(o, a, &items);

    for (uint32_t i = 0; i < n; i++) {
        struct bs_queue_figures *q = find(f, bs_str_of(items[i].biz_type));
        if (q)
            q->live = &items[i];
    }
}

bs_rc bs_figures_read(const struct bs_api_options *o, struct bs_store *s, struct bs_arena *a,
                      struct bs_figures *ret, struct bs_err *err)
{
    const struct bs_queues *conf = bs_queues_now(o->queues);
    struct bs_queue_row *rows = NULL;
    struct bs_stat_row *stats = NULL;
    uint32_t rows_n = 0, stats_n = 0;

    BS_TRY(bs_store_queues(s, a, &rows, &rows_n, err));
    BS_TRY(bs_store_stats(s, a, &stats, &stats_n, err));
    struct bs_figures f = {
        BS_NEW_ARRAY(a, struct bs_queue_figures, (size_t)conf->n + rows_n + stats_n + 1), 0
    };
    if (!f.queues)
        return bs_fail(err, BS_E_NOMEM, "no memory for the figures");
    for (uint32_t i = 0; i < conf->n; i++)
        find_or_add(&f, conf->items[i].biz_type)->conf = &conf->items[i];
    for (uint32_t i = 0; i < rows_n; i++)
        find_or_add(&f, rows[i].biz_type)->row = rows[i];
    if (!add_stats(&f, stats, stats_n, a))
        return bs_fail(err, BS_E_NOMEM, "no memory for the figures");
    add_live(&f, o, a);
    *ret = f;
    return BS_OK;
}

/* ---- as JSON ---- */

int64_t bs_exposure_of(const struct bs_money_figures *m)
{
    int64_t sum = 0;

    for (enum bs_state state = BS_STATE_NONE + 1; state < BS_STATE_COUNT; state++)
        if (bs_state_exposed(state))
            sum = plus(sum, m->amounts[state]);
    return sum;
}

static bool has_open(const struct bs_money_figures *m)
{
    for (enum bs_state state = BS_STATE_NONE + 1; state < BS_STATE_COUNT; state++)
        if (bs_state_exposed(state) && m->counts[state] != 0)
            return true;
    return false;
}

static void render_exposure(struct bs_json *j, const struct bs_queue_figures *q)
{
    bs_json_key(j, "exposure");
    bs_json_open_array(j);
    for (uint32_t i = 0; i < q->money_n; i++) {
        if (!has_open(&q->money[i]))
            continue;
        bs_json_open(j);
        bs_json_kstr(j, "currency", q->money[i].currency);
        bs_json_kid(j, "amount", bs_exposure_of(&q->money[i]));
        bs_json_close(j);
    }
    bs_json_close_array(j);
}

void bs_render_counts(struct bs_json *j, const struct bs_queue_figures *q)
{
    bs_json_key(j, "counts");
    bs_json_open(j);
    for (enum bs_state state = BS_STATE_NONE + 1; state < BS_STATE_COUNT; state++)
        bs_json_kint(j, bs_state_name(state), q->counts[state]);
    bs_json_close(j);
    bs_json_kint(j, "unknown", q->unknown);
    render_exposure(j, q);
}

static void render_amount(struct bs_json *j, const struct bs_money_figures *m, enum bs_state state)
{
    bs_json_open(j);
    bs_json_kstr(j, "task_status", bs_str_of(bs_state_name(state)));
    bs_json_kstr(j, "currency", m->currency);
    bs_json_kint(j, "count", m->counts[state]);
    bs_json_kid(j, "amount", m->amounts[state]);
    bs_json_close(j);
}

void bs_render_amounts(struct bs_json *j, const struct bs_queue_figures *q)
{
    bs_json_key(j, "amounts");
    bs_json_open_array(j);
    for (uint32_t i = 0; i < q->money_n; i++) {
        for (enum bs_state state = BS_STATE_NONE + 1; state < BS_STATE_COUNT; state++)
            if (q->money[i].counts[state] != 0)
                render_amount(j, &q->money[i], state);
    }
    bs_json_close_array(j);
}
