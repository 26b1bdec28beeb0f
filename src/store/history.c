/* A task's log as people read it: every transition, also those that storage folds together. */
#include "store/reading.h"

enum { ROW_ITEMS_MAX = 3 };

struct history {
    struct bs_arena *a;
    struct bs_log_item *items;
    uint32_t n, limit;
    enum bs_state state; /* after the last item */
};

static struct bs_log_item *add(struct history *h, struct bs_time at, const char *event,
                               enum bs_state to)
{
    struct bs_log_item *i = &h->items[h->n++];

    *i = (struct bs_log_item){
        .at = at, .event = event, .from = h->state, .to = to, .duration_ms = -1
    };
    if (to != BS_STATE_NONE)
        h->state = to;
    else
        i->from = BS_STATE_NONE;
    return i;
}

static struct bs_str keep(struct history *h, struct bs_str s)
{
    return s.n ? bs_arena_str(h->a, s) : BS_STR_NONE;
}

static void add_claim(struct history *h, struct bs_time at, int32_t attempt_no, int64_t token,
                      struct bs_str node)
{
    struct bs_log_item *i = add(h, at, bs_event_name(BS_EV_CLAIM), BS_PROCESSING);

    i->attempt_no = attempt_no;
    i->token = token;
    i->node = keep(h, node);
}

/* An end through FAILED is two transitions at one instant. */
static enum bs_state first_stop(const struct log_row *r)
{
    return r->via_failed ? BS_FAILED : r->to;
}

/* The first row of an attempt tells of its claim: normally its end, or what a person asked before.
 */
static bool has_claim(const struct history *h, const struct log_row *r)
{
    return r->claimed_at.us != 0 && h->state != BS_PROCESSING;
}

static void add_row(struct history *h, const struct log_row *r)
{
    if (has_claim(h, r))
        add_claim(h, r->claimed_at, r->attempt_no, r->token, r->node);
    struct bs_log_item *i = add(h, r->at, r->event, first_stop(r));
    i->attempt_no = r->attempt_no;
    i->token = r->token;
    i->outcome = keep(h, r->outcome);
    i->code = keep(h, r->code);
    i->message = keep(h, r->message);
    i->effect = keep(h, r->effect);
    i->operator= keep(h, r->operator);
    i->reason = keep(h, r->reason);
    i->node = keep(h, r->node);
    i->excerpt = keep(h, r->excerpt);
    i->http_status = r->http_status;
    i->duration_ms = r->duration_ms;
    if (r->via_failed) {
        i = add(h, r->at, bs_event_name(BS_EV_ESCALATE), r->to);
        i->attempt_no = r->attempt_no;
        i->node = keep(h, r->node);
    }
}

/* ---- the beginning and the present, which are no rows ---- */

/* What it was made as: the first transition starts there; without one, it still is. */
static bs_rc made_as(struct bs_store *s, const struct bs_task *t, enum bs_state *ret,
                     struct bs_err *err)
{
    struct bs_val cols[2];
    bool found = false;

    BS_TRY(ONE(s, BS_SQL_LOG_FIRST, cols, &found, err, bs_i64(t->id)));
    if (found)
        *ret = cols[1].type == BS_VAL_I64 ? BS_WAITING : bs_state_parse(cols[0].s);
    else
        *ret = t->state == BS_MANUAL ? BS_MANUAL : BS_WAITING;
    return BS_OK;
}

static bs_rc add_submit(struct bs_store *s, struct history *h, const struct bs_task *t,
                        struct bs_err *err)
{
    enum bs_state first = BS_WAITING;

    BS_TRY(made_as(s, t, &first, err));
    bool parked = first == BS_MANUAL;
    struct bs_log_item *i =
        add(h, t->created_at, bs_event_name(parked ? BS_EV_PARK : BS_EV_SUBMIT), first);
    i->operator= keep(h, t->created_by);
    i->message = bs_str_of(bs_source_name(t->source));
    if (parked)
        i->code = keep(h, t->manual_code);
    return BS_OK;
}

static bs_rc state_before(struct bs_store *s, const struct bs_task *t, int64_t after,
                          enum bs_state *ret, struct bs_err *err)
{
    struct bs_val cols[1];
    bool found = false;

    BS_TRY(ONE(s, BS_SQL_LOG_STATE_BEFORE, cols, &found, err, bs_i64(t->id), bs_i64(after)));
    if (!found)
        return made_as(s, t, ret, err);
    *ret = bs_state_parse(cols[0].s);
    return BS_OK;
}

/* ---- pages ---- */

/* Less than any id, but not 0, which means the end. */
enum { BEFORE_ALL = 1 };

static uint32_t items_of(const struct history *h, const struct log_row *r)
{
    return 1u + has_claim(h, r) + r->via_failed;
}

static bs_rc add_rows(struct bs_store *s, struct history *h, int64_t task_id, int64_t after,
                      int64_t *ret_next, struct bs_err *err)
{
    struct bs_val cols[LOG_COLS];
    int64_t last = after;
    bool more = true;

    BS_TRY(RUN(s, BS_SQL_LOG_PAGE, NULL, err, bs_i64(task_id), bs_i64(after),
               bs_i64((int64_t)h->limit + 1)));
    for (;;) {
        struct log_row row;

        BS_TRY(next(s, BS_SQL_LOG_PAGE, cols, LOG_COLS, &more, err));
        if (!more)
            return BS_OK;
        log_row_read(cols, &row);
        if (h->n > 0 && h->n + items_of(h, &row) > h->limit) {
            *ret_next = last ? last : BEFORE_ALL;
            return BS_OK;
        }
        add_row(h, &row);
        last = row.id;
    }
}

bs_rc bs_store_log(struct bs_store *s, int64_t task_id, int64_t after, uint32_t limit,
                   struct bs_arena *a, struct bs_log_page *ret, struct bs_err *err)
{
    BS_CLEANUP(end_reading) struct reading r = { .s = s };
    struct history h = { .a = a, .limit = BS_MIN(BS_MAX(limit, 1u), 1000u) };
    struct bs_task t;
    int64_t next_after = 0;

    BS_TRY(begin_reading(&r, err));
    BS_TRY(row_get(s, task_id, false, a, &t, err));
    h.items = BS_NEW_ARRAY(a, struct bs_log_item, h.limit + ROW_ITEMS_MAX);
    if (!h.items)
        return bs_fail(err, BS_E_LIMIT, "the page is too large");
    if (after == 0)
        BS_TRY(add_submit(s, &h, &t, err));
    else
        BS_TRY(state_before(s, &t, after, &h.state, err));
    BS_TRY(add_rows(s, &h, task_id, after, &next_after, err));
    if (next_after == 0 && t.state == BS_PROCESSING && h.state != BS_PROCESSING)
        add_claim(&h, t.locked_at, t.attempt_no, t.lease_token, BS_STR_NONE);
    if (a->failed)
        return bs_fail(err, BS_E_LIMIT, "the page is too large");
    *ret = (struct bs_log_page){ .items = h.items, .n = h.n, .next_after = next_after };
    return BS_OK;
}
