/* Reading alerts and who was told of them. */
#include "store/reading.h"

static void read_alert(const struct bs_val *c, struct bs_arena *a, struct bs_alert_row *r)
{
    r->id = i64_at(&c[0]);
    r->kind = bs_arena_str(a, c[1].s);
    r->subject = bs_arena_str(a, c[2].s);
    r->biz_type = bs_arena_str(a, c[3].s);
    r->task_id = i64_at(&c[4]);
    r->message = bs_arena_str(a, c[5].s);
    r->count = i64_at(&c[6]);
    r->first_at.us = i64_at(&c[7]);
    r->last_at.us = i64_at(&c[8]);
    r->open = i64_at(&c[9]) != 0;
    r->recovered_at.us = i64_at(&c[10]);
    r->recovered_message = bs_arena_str(a, c[11].s);
    r->unplanned = (uint32_t)i64_at(&c[12]);
}

static void each_alert(const struct bs_val *c, struct bs_arena *a, void *item)
{
    read_alert(c, a, item);
}

static bs_rc read_which(struct bs_store *s, const struct bs_alert_filter *f, struct growing *g,
                        struct bs_err *err)
{
    static const enum bs_sql pages[] = {
        [BS_ALERTS_ALL] = BS_SQL_ALERT_PAGE,
        [BS_ALERTS_OPEN] = BS_SQL_ALERT_PAGE_OPEN,
        [BS_ALERTS_ENDED] = BS_SQL_ALERT_PAGE_ENDED,
    };
    const struct bs_val page[] = { bs_i64(f->before_id ? f->before_id : INT64_MAX),
                                   bs_i64(f->limit) };

    if (f->which == BS_ALERTS_UNPLANNED)
        return read_all(s, BS_SQL_ALERT_UNPLANNED, page + 1, 1, each_alert, g, err);
    return read_all(s, pages[f->which], page, 2, each_alert, g, err);
}

bs_rc bs_store_alerts(struct bs_store *s, const struct bs_alert_filter *f, struct bs_arena *a,
                      struct bs_alert_row **ret, uint32_t *ret_n, struct bs_err *err)
{
    BS_CLEANUP(end_reading) struct reading r = { .s = s };
    struct growing g = { .a = a, .size = sizeof(struct bs_alert_row) };

    BS_TRY(begin_reading(&r, err));
    BS_TRY(read_which(s, f, &g, err));
    *ret = (struct bs_alert_row *)(void *)g.items;
    *ret_n = g.n;
    return BS_OK;
}

/* ---- deliveries ---- */

static enum bs_alert_phase phase_at(const struct bs_val *v)
{
    return i64_at(v) == BS_ALERT_RECOVERED ? BS_ALERT_RECOVERED : BS_ALERT_RAISED;
}

static enum bs_delivery_state state_at(const struct bs_val *v)
{
    if (bs_str_is(v->s, bs_delivery_state_name(BS_DELIVERY_SENT)))
        return BS_DELIVERY_SENT;
    return bs_str_is(v->s, bs_delivery_state_name(BS_DELIVERY_GIVEN_UP)) ? BS_DELIVERY_GIVEN_UP
                                                                         : BS_DELIVERY_PENDING;
}

static void each_delivery(const struct bs_val *c, struct bs_arena *a, void *item)
{
    struct bs_delivery *d = item;

    d->deliverer = bs_arena_str(a, c[0].s);
    d->phase = phase_at(&c[1]);
    d->state = state_at(&c[2]);
    d->attempts = i64_at(&c[3]);
    d->next_at.us = i64_at(&c[4]);
    d->code = bs_arena_str(a, c[5].s);
    d->message = bs_arena_str(a, c[6].s);
    d->created_at.us = i64_at(&c[7]);
    d->sent_at.us = i64_at(&c[8]);
}

bs_rc bs_store_deliveries(struct bs_store *s, int64_t alert_id, struct bs_arena *a,
                          struct bs_delivery **ret, uint32_t *ret_n, struct bs_err *err)
{
    BS_CLEANUP(end_reading) struct reading r = { .s = s };
    struct growing g = { .a = a, .size = sizeof(struct bs_delivery) };
    const struct bs_val args[] = { bs_i64(alert_id) };

    BS_TRY(begin_reading(&r, err));
    BS_TRY(read_all(s, BS_SQL_DELIVERY_OF_ALERT, args, 1, each_delivery, &g, err));
    *ret = (struct bs_delivery *)(void *)g.items;
    *ret_n = g.n;
    for (uint32_t i = 0; i < g.n; i++)
        (*ret)[i].alert_id = alert_id;
    return BS_OK;
}

static void each_due(const struct bs_val *c, struct bs_arena *a, void *item)
{
    struct bs_delivery_due *d = item;

    read_alert(c, a, &d->alert);
    d->phase = phase_at(&c[13]);
    d->attempts = i64_at(&c[14]);
    d->next_at.us = i64_at(&c[15]);
    d->created_at.us = i64_at(&c[16]);
}

bs_rc bs_store_deliveries_due(struct bs_store *s, struct bs_str deliverer, struct bs_time now,
                              uint32_t limit, struct bs_arena *a, struct bs_delivery_due **ret,
                              uint32_t *ret_n, struct bs_err *err)
{
    BS_CLEANUP(end_reading) struct reading r = { .s = s };
    struct growing g = { .a = a, .size = sizeof(struct bs_delivery_due) };
    const struct bs_val args[] = { bs_text(deliverer), bs_i64(now.us), bs_i64(limit),
                                   bs_i64(bs_time_add(now, bs_time_high_trusted).us) };

    BS_TRY(begin_reading(&r, err));
    BS_TRY(read_all(s, BS_SQL_DELIVERY_DUE, args, 4, each_due, &g, err));
    *ret = (struct bs_delivery_due *)(void *)g.items;
    *ret_n = g.n;
    return BS_OK;
}

static void each_deliverer(const struct bs_val *c, struct bs_arena *a, void *item)
{
    struct bs_deliverer_row *d = item;

    d->name = bs_arena_str(a, c[0].s);
    d->pending = i64_at(&c[1]);
}

bs_rc bs_store_deliverers(struct bs_store *s, struct bs_arena *a, struct bs_deliverer_row **ret,
                          uint32_t *ret_n, struct bs_err *err)
{
    BS_CLEANUP(end_reading) struct reading r = { .s = s };
    struct growing g = { .a = a, .size = sizeof(struct bs_deliverer_row) };

    BS_TRY(begin_reading(&r, err));
    BS_TRY(read_all(s, BS_SQL_DELIVERY_WAITING, NULL, 0, each_deliverer, &g, err));
    *ret = (struct bs_deliverer_row *)(void *)g.items;
    *ret_n = g.n;
    return BS_OK;
}
