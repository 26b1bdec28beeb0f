/* Lists of tasks: one index gives the candidates, newest first; the other conditions are looked at
 * here; only what is shown is loaded whole. */
#include "store/reading.h"
#include "sys/ids.h"

enum { SCAN_MAX = 20000, PAGE_MAX = 200, GLANCE_COLS = 12, CLOCK_SLACK_US = 60000000 };

/* The order of the fragment glance in sql/common.sql. */
struct glance {
    int64_t id;
    struct bs_str status, source, biz_type, order_no, payment_no, channel_trade_no, refund_no;
    struct bs_str biz_id, error_code, manual_code;
    struct bs_time created_at;
};

static struct glance glance_of(const struct bs_val *c)
{
    return (struct glance){ i64_at(&c[0]), c[1].s, c[2].s, c[3].s, c[4].s,  c[5].s,
                            c[6].s,        c[7].s, c[8].s, c[9].s, c[10].s, { i64_at(&c[11]) } };
}

/* ---- which index ---- */

struct source {
    enum bs_sql sql;
    struct bs_str key; /* p NULL: the statement takes none */
    bool bounded;      /* at most SCAN_MAX rows a page are looked at */
};

static struct source source_of(const struct bs_task_filter *f)
{
    if (f->request_id.n)
        return (struct source){ BS_SQL_LIST_REQUEST_ID, f->request_id, true };
    if (f->order_no.n)
        return (struct source){ BS_SQL_LIST_ORDER_NO, f->order_no, true };
    if (f->payment_no.n)
        return (struct source){ BS_SQL_LIST_PAYMENT_NO, f->payment_no, true };
    if (f->channel_trade_no.n)
        return (struct source){ BS_SQL_LIST_CHANNEL_TRADE_NO, f->channel_trade_no, true };
    if (f->refund_no.n)
        return (struct source){ BS_SQL_LIST_REFUND_NO, f->refund_no, true };
    if (f->biz_id.n)
        return (struct source){ BS_SQL_LIST_BIZ_ID, f->biz_id, true };
    if (f->state == BS_MANUAL)
        return (struct source){ BS_SQL_LIST_MANUAL, BS_STR_NONE, true };
    if (f->state == BS_RETRY)
        return (struct source){ BS_SQL_LIST_RETRY, BS_STR_NONE, true };
    if (f->state == BS_WAITING || f->state == BS_PROCESSING)
        return (struct source){ BS_SQL_LIST_LIVE, BS_STR_NONE, true };
    return (struct source){ BS_SQL_LIST_ALL, BS_STR_NONE, true };
}

/* ---- the other conditions ---- */

static bool text_fits(struct bs_str wanted, struct bs_str has)
{
    return wanted.n == 0 || bs_str_eq(wanted, has);
}

static bool queue_fits(const struct bs_task_filter *f, struct bs_str biz_type)
{
    if (!f->queues)
        return true;
    for (uint32_t i = 0; i < f->queues_n; i++) {
        if (bs_str_eq(f->queues[i], biz_type))
            return true;
    }
    return false;
}

static bool time_fits(const struct bs_task_filter *f, struct bs_time at)
{
    return (f->created_from.us == 0 || at.us >= f->created_from.us) &&
           (f->created_to.us == 0 || at.us <= f->created_to.us);
}

static bool fits(const struct bs_task_filter *f, const struct glance *g)
{
    if (f->state != BS_STATE_NONE && !bs_str_is(g->status, bs_state_name(f->state)))
        return false;
    if (f->source != BS_SRC_NONE && !bs_str_is(g->source, bs_source_name(f->source)))
        return false;
    if (f->error_code.n && !bs_str_eq(f->error_code, g->error_code) &&
        !bs_str_eq(f->error_code, g->manual_code))
        return false;
    return text_fits(f->biz_type, g->biz_type) && text_fits(f->order_no, g->order_no) &&
           text_fits(f->payment_no, g->payment_no) &&
           text_fits(f->channel_trade_no, g->channel_trade_no) &&
           text_fits(f->refund_no, g->refund_no) && text_fits(f->biz_id, g->biz_id) &&
           queue_fits(f, g->biz_type) && time_fits(f, g->created_at);
}

/* ---- scanning ---- */

struct found {
    int64_t ids[PAGE_MAX];
    uint32_t n;
    int64_t next_before_id;
    struct bs_time searched_to;
};

/* Ids grow with time, give or take the difference of two clock readings. */
static int64_t first_id(const struct bs_task_filter *f)
{
    int64_t id = f->before_id ? f->before_id : INT64_MAX;

    if (f->created_to.us == 0)
        return id;
    return BS_MIN(id, bs_ids_floor(bs_time_add(f->created_to, BS_US(CLOCK_SLACK_US))));
}

static bool past_the_range(const struct bs_task_filter *f, struct bs_time at)
{
    return f->created_from.us != 0 && at.us < f->created_from.us - CLOCK_SLACK_US;
}

static bs_rc scan(struct bs_store *s, const struct bs_task_filter *f, uint32_t limit,
                  struct found *ret, struct bs_err *err)
{
    struct source src = source_of(f);
    const struct bs_val args[] = { bs_i64(first_id(f)), bs_i64(SCAN_MAX + 1), bs_text(src.key) };
    struct bs_val cols[GLANCE_COLS];
    int64_t last = 0;
    bool more = true;

    BS_TRY(run(s, src.sql, args, src.key.p ? 3 : 2, NULL, err));
    for (uint32_t seen = 0;; seen++) {
        BS_TRY(next(s, src.sql, cols, GLANCE_COLS, &more, err));
        if (!more)
            return BS_OK;
        struct glance g = glance_of(cols);
        if (past_the_range(f, g.created_at))
            return BS_OK;
        if (seen == SCAN_MAX) {
            ret->next_before_id = last;
            return BS_OK;
        }
        bool fit = fits(f, &g);
        if (fit && ret->n == limit) {
            ret->next_before_id = ret->ids[limit - 1];
            ret->searched_to = BS_TIME_NONE;
            return BS_OK;
        }
        if (fit)
            ret->ids[ret->n++] = g.id;
        last = g.id;
        ret->searched_to = g.created_at;
    }
}

static bs_rc load(struct bs_store *s, const struct found *found, struct bs_arena *a,
                  struct bs_task_page *ret, struct bs_err *err)
{
    struct bs_task *items = BS_NEW_ARRAY(a, struct bs_task, found->n + 1);

    if (!items)
        return bs_fail(err, BS_E_LIMIT, "the page is too large");
    for (uint32_t i = 0; i < found->n; i++)
        BS_TRY(row_get(s, found->ids[i], false, a, &items[i], err));
    *ret = (struct bs_task_page){ .items = items,
                                  .n = found->n,
                                  .next_before_id = found->next_before_id };
    return BS_OK;
}

bs_rc bs_store_tasks(struct bs_store *s, const struct bs_task_filter *f, struct bs_arena *a,
                     struct bs_task_page *ret, struct bs_err *err)
{
    BS_CLEANUP(end_reading) struct reading r = { .s = s };
    uint32_t limit = BS_MIN(BS_MAX(f->limit, 1u), (uint32_t)PAGE_MAX);
    struct found found = { 0 };

    BS_TRY(begin_reading(&r, err));
    BS_TRY(scan(s, f, limit, &found, err));
    BS_TRY(load(s, &found, a, ret, err));
    bool partial = found.next_before_id != 0 && found.searched_to.us != 0;
    ret->searched_to = partial ? found.searched_to : BS_TIME_NONE;
    return BS_OK;
}
