/* What is new becomes deliveries, one a receiver; what waits for a receiver that is not configured
 * any more is given up. */
#include "alert/parts.h"

#include "sys/log.h"

enum { PLAN_MOST = 64 };

static uint32_t name_hooks(struct bs_alerts *a, struct bs_str *ret)
{
    const struct bs_alert_conf *c = bs_alerts_conf(a);

    for (uint32_t i = 0; i < c->webhooks_n; i++)
        ret[i] = c->webhooks[i].name;
    return c->webhooks_n;
}

static bs_rc plan_new(struct bs_alerts *a, struct bs_time now, struct bs_err *err)
{
    const struct bs_alert_conf *c = bs_alerts_conf(a);
    const struct bs_alert_filter f = { .which = BS_ALERTS_UNPLANNED, .limit = PLAN_MOST };
    struct bs_str *names = BS_NEW_ARRAY(&a->ops_arena, struct bs_str, c->webhooks_n + 1);
    struct bs_alert_row *rows = NULL;
    uint32_t n = 0;

    if (!names)
        return bs_fail(err, BS_E_NOMEM, "no memory for the receivers");
    uint32_t names_n = name_hooks(a, names);
    BS_TRY(bs_store_alerts(a->o.reader, &f, &a->ops_arena, &rows, &n, err));
    for (uint32_t i = 0; i < n; i++) {
        struct bs_op *op = bs_alerts_op(a, BS_OP_ALERT_PLAN, now);

        if (!op)
            break;
        op->alert_plan = (struct bs_op_alert_plan){ rows[i].id, rows[i].unplanned, names, names_n,
                                                    bs_time_add(now, c->group_wait) };
        a->planned[a->ops_n - 1] = &rows[i];
    }
    return BS_OK;
}

static bool is_configured(struct bs_alerts *a, struct bs_str name)
{
    const struct bs_alert_conf *c = bs_alerts_conf(a);

    for (uint32_t i = 0; i < c->webhooks_n; i++)
        if (bs_str_eq(c->webhooks[i].name, name))
            return true;
    return false;
}

static bs_rc give_up(struct bs_alerts *a, struct bs_str name, struct bs_time now,
                     struct bs_err *err)
{
    struct bs_delivery_due *due = NULL;
    uint32_t n = 0;

    BS_TRY(bs_store_deliveries_due(a->o.reader, name, BS_NEVER, PLAN_MOST, &a->ops_arena, &due, &n,
                                   err));
    struct bs_delivery *items = BS_NEW_ARRAY(&a->ops_arena, struct bs_delivery, n + 1);
    struct bs_op *op = items && n > 0 ? bs_alerts_op(a, BS_OP_ALERT_TOLD, now) : NULL;
    if (!op)
        return BS_OK;
    for (uint32_t i = 0; i < n; i++)
        items[i] = (struct bs_delivery){ .alert_id = due[i].alert.id,
                                         .phase = due[i].phase,
                                         .deliverer = name,
                                         .state = BS_DELIVERY_GIVEN_UP,
                                         .attempts = due[i].attempts,
                                         .next_at = now,
                                         .code = BS_STR("REMOVED"),
                                         .message = BS_STR("the receiver is not configured any "
                                                           "more") };
    op->alert_told = (struct bs_op_alert_told){ items, n };
    atomic_fetch_add(&a->figures.given_up, n);
    return BS_OK;
}

static bs_rc drop_removed(struct bs_alerts *a, struct bs_time now, struct bs_err *err)
{
    struct bs_deliverer_row *rows = NULL;
    int64_t pending = 0;
    uint32_t n = 0;

    BS_TRY(bs_store_deliverers(a->o.reader, &a->ops_arena, &rows, &n, err));
    for (uint32_t i = 0; i < n; i++) {
        pending += rows[i].pending;
        if (!is_configured(a, rows[i].name))
            BS_TRY(give_up(a, rows[i].name, now, err));
    }
    atomic_store(&a->figures.pending, pending);
    return BS_OK;
}

void bs_alerts_plan(struct bs_alerts *a, struct bs_time now)
{
    struct bs_err err = { 0 };
    bs_rc rc = plan_new(a, now, &err);

    if (rc == BS_OK)
        rc = drop_removed(a, now, &err);
    bs_alerts_readable(a, rc, &err);
}

/* ---- the log ---- */

static void log_one(const struct bs_alert_row *r, enum bs_alert_phase phase)
{
    bool raised = phase == BS_ALERT_RAISED;

    bs_log(raised ? BS_LOG_WARN : BS_LOG_INFO, raised ? "alert.raised" : "alert.recovered",
           BS_FN("id", r->id), BS_F("kind", r->kind), BS_F("subject", r->subject),
           BS_F("message", raised ? r->message : r->recovered_message));
}

void bs_alerts_planned(struct bs_alerts *a)
{
    for (uint32_t i = 0; i < a->ops_n; i++) {
        const struct bs_alert_row *r = a->planned[i];

        if (!r || a->ops[i].rc != BS_OK)
            continue;
        if (r->unplanned & BS_ALERT_RAISED)
            log_one(r, BS_ALERT_RAISED);
        if (r->unplanned & BS_ALERT_RECOVERED)
            log_one(r, BS_ALERT_RECOVERED);
    }
}
