/* One JSON form for each thing of the store. */
#include "api/render.h"

#include "base/text.h"
#include "core/submit.h"

static void kid_or_null(struct bs_json *j, const char *name, int64_t v)
{
    bs_json_key(j, name);
    if (v)
        bs_json_id(j, v);
    else
        bs_json_null(j);
}

static void kname(struct bs_json *j, const char *name, const char *text)
{
    bs_json_kstr_or_null(j, name, bs_str_of(text));
}

static const char *pending_name(enum bs_pending p)
{
    switch (p) {
    case BS_PENDING_CLOSE:
        return "close";
    case BS_PENDING_HOLD:
        return "hold";
    case BS_PENDING_RESOLVE:
        return "resolve";
    case BS_PENDING_NONE:
        break;
    }
    return NULL;
}

static void render_keys(struct bs_json *j, const struct bs_task *t)
{
    bs_json_kid(j, "task_no", t->id);
    bs_json_kstr(j, "request_id", t->request_id);
    bs_json_kstr(j, "biz_type", t->biz_type);
    bs_json_kstr(j, "merchant_no", t->merchant_no);
    bs_json_kstr(j, "biz_id", t->biz_id);
    bs_json_kstr_or_null(j, "effect_key", t->effect_key);
    bs_json_kstr_or_null(j, "serial_key", t->serial_key);
    bs_json_kstr_or_null(j, "order_no", t->order_no);
    bs_json_kstr_or_null(j, "payment_no", t->payment_no);
    bs_json_kstr_or_null(j, "channel", t->channel);
    bs_json_kstr_or_null(j, "channel_trade_no", t->channel_trade_no);
    bs_json_kstr_or_null(j, "refund_no", t->refund_no);
    kname(j, "source", t->source == BS_SRC_NONE ? NULL : bs_source_name(t->source));
    kid_or_null(j, "parent_task_no", t->parent_id);
}

static void render_money(struct bs_json *j, const struct bs_money *m)
{
    bool has = m->currency[0] != '\0';

    bs_json_key(j, "amount");
    if (has)
        bs_json_id(j, m->minor);
    else
        bs_json_null(j);
    bs_json_kstr_or_null(j, "currency", bs_str_of(m->currency));
}

static void render_progress(struct bs_json *j, const struct bs_task *t)
{
    bs_json_kstr(j, "task_status", bs_str_of(bs_state_name(t->state)));
    bs_json_kint(j, "priority", t->priority);
    bs_json_kint(j, "retry_count", t->retry_count);
    bs_json_kint(j, "max_retry_count", t->max_retry_count);
    bs_json_kint(j, "attempt_no", t->attempt_no);
    bs_json_kint(j, "crash_count", t->crash_count);
    bs_json_ktime(j, "next_execute_at", t->next_execute_at);
    bs_json_ktime(j, "last_execute_at", t->last_execute_at);
    kname(j, "blocked", t->blocked == BS_BLOCKED_SERIAL ? "SERIAL" : NULL);
    bs_json_kstr_or_null(j, "last_outcome", t->last_outcome);
    bs_json_kbool(j, "outcome_unknown", t->outcome_unknown);
    bs_json_kstr_or_null(j, "last_error_code", t->last_error_code);
    bs_json_kstr_or_null(j, "last_error_msg", t->last_error_msg);
    bs_json_kstr_or_null(j, "manual_code", t->manual_code);
    bs_json_kstr_or_null(j, "conclusion", t->conclusion);
    kname(j, "close_pending", pending_name(t->pending));
}

static void render_lease(struct bs_json *j, const struct bs_task *t)
{
    bs_json_kstr_or_null(j, "locked_by", t->locked_by);
    bs_json_ktime(j, "locked_at", t->locked_at);
    bs_json_ktime(j, "locked_until", t->locked_until);
    kid_or_null(j, "lease_token", t->lease_token);
    bs_json_kid(j, "version", t->version);
    bs_json_kstr_or_null(j, "created_by", t->created_by);
    bs_json_ktime(j, "created_at", t->created_at);
    bs_json_ktime(j, "updated_at", t->updated_at);
}

/* JSON goes out byte for byte as it came in; other bytes as base64. */
static void render_payload(struct bs_json *j, const struct bs_task *t)
{
    if (t->payload.p && !t->payload_is_json) {
        BS_CLEANUP(bs_buf_free) struct bs_buf text = { .max = 2 * (size_t)BS_PAYLOAD_MAX };

        bs_base64_write(&text, t->payload);
        bs_json_kstr(j, "payload_base64", bs_buf_str(&text));
        return;
    }
    bs_json_key(j, "payload");
    if (t->payload.n)
        bs_json_raw(j, t->payload);
    else
        bs_json_null(j);
}

void bs_render_task(struct bs_json *j, const struct bs_task *t, bool whole)
{
    render_keys(j, t);
    render_money(j, &t->money);
    render_progress(j, t);
    render_lease(j, t);
    if (!whole)
        return;
    bs_json_key(j, "extra_data");
    if (t->extra_data.n)
        bs_json_raw(j, t->extra_data);
    else
        bs_json_null(j);
    bs_json_kstr_or_null(j, "result_snapshot", t->result_snapshot);
    render_payload(j, t);
}

static void kint_or_null(struct bs_json *j, const char *name, int64_t v, bool has)
{
    bs_json_key(j, name);
    if (has)
        bs_json_int(j, v);
    else
        bs_json_null(j);
}

void bs_render_log_item(struct bs_json *j, const struct bs_log_item *item)
{
    bs_json_open(j);
    bs_json_ktime(j, "at", item->at);
    kname(j, "event", item->event);
    kname(j, "from", item->from == BS_STATE_NONE ? NULL : bs_state_name(item->from));
    kname(j, "to", item->to == BS_STATE_NONE ? NULL : bs_state_name(item->to));
    kint_or_null(j, "attempt_no", item->attempt_no, item->attempt_no != 0);
    bs_json_kstr_or_null(j, "outcome", item->outcome);
    bs_json_kstr_or_null(j, "code", item->code);
    bs_json_kstr_or_null(j, "message", item->message);
    bs_json_kstr_or_null(j, "effect", item->effect);
    kint_or_null(j, "http_status", item->http_status, item->http_status != 0);
    kint_or_null(j, "duration_ms", item->duration_ms, item->duration_ms >= 0);
    bs_json_kstr_or_null(j, "operator", item->operator);
    bs_json_kstr_or_null(j, "reason", item->reason);
    bs_json_kstr_or_null(j, "node", item->node);
    kid_or_null(j, "lease_token", item->token);
    bs_json_kstr_or_null(j, "excerpt", item->excerpt);
    bs_json_close(j);
}

static void add_delivery(struct bs_json *j, const struct bs_delivery *d)
{
    bs_json_open(j);
    bs_json_kstr(j, "deliverer", d->deliverer);
    bs_json_kstr(j, "phase", bs_str_of(bs_alert_phase_name(d->phase)));
    bs_json_kstr(j, "state", bs_str_of(bs_delivery_state_name(d->state)));
    bs_json_kint(j, "attempts", d->attempts);
    bs_json_ktime(j, "next_at", d->state == BS_DELIVERY_PENDING ? d->next_at : BS_TIME_NONE);
    bs_json_ktime(j, "sent_at", d->sent_at);
    bs_json_kstr_or_null(j, "code", d->code);
    bs_json_kstr_or_null(j, "message", d->message);
    bs_json_close(j);
}

static void add_deliveries(struct bs_json *j, const struct bs_delivery *told, uint32_t n)
{
    bs_json_key(j, "deliveries");
    bs_json_open_array(j);
    for (uint32_t i = 0; i < n; i++)
        add_delivery(j, &told[i]);
    bs_json_close_array(j);
}

void bs_render_alert(struct bs_json *j, const struct bs_alert_row *row,
                     const struct bs_delivery *told, uint32_t n)
{
    bs_json_open(j);
    bs_json_kid(j, "id", row->id);
    bs_json_kstr(j, "kind", row->kind);
    bs_json_kstr_or_null(j, "subject", row->subject);
    bs_json_kstr_or_null(j, "biz_type", row->biz_type);
    bs_json_kstr_or_null(j, "message", row->message);
    kid_or_null(j, "task_no", row->task_id);
    bs_json_kint(j, "count", row->count);
    bs_json_ktime(j, "first_at", row->first_at);
    bs_json_ktime(j, "last_at", row->last_at);
    bs_json_kbool(j, "open", row->open);
    bs_json_ktime(j, "recovered_at", row->recovered_at);
    bs_json_kstr_or_null(j, "recovered_message", row->recovered_message);
    add_deliveries(j, told, n);
    bs_json_close(j);
}

static void kraw_or_null(struct bs_json *j, const char *name, struct bs_str json)
{
    bs_json_key(j, name);
    if (json.n)
        bs_json_raw(j, json);
    else
        bs_json_null(j);
}

void bs_render_audit(struct bs_json *j, const struct bs_audit_row *row)
{
    bs_json_open(j);
    bs_json_kid(j, "id", row->id);
    bs_json_ktime(j, "at", row->at);
    bs_json_kstr_or_null(j, "operator", row->operator);
    bs_json_kstr_or_null(j, "action", row->action);
    bs_json_kstr_or_null(j, "object", row->object);
    bs_json_kstr_or_null(j, "reason", row->reason);
    bs_json_kstr_or_null(j, "conclusion", row->conclusion);
    bs_json_kstr_or_null(j, "order_no", row->order_no);
    kraw_or_null(j, "before", row->before);
    kraw_or_null(j, "after", row->after);
    bs_json_close(j);
}

void bs_render_token(struct bs_json *j, const struct bs_token_row *row)
{
    struct bs_str rest = row->queues;

    bs_json_kstr(j, "name", row->name);
    bs_json_kstr(j, "role", row->role);
    bs_json_key(j, "queues");
    bs_json_open_array(j);
    while (rest.n)
        bs_json_str(j, bs_str_trim(bs_str_cut(&rest, ',')));
    bs_json_close_array(j);
    bs_json_ktime(j, "created_at", row->created_at);
    bs_json_ktime(j, "revoked_at", row->revoked_at);
}

void bs_render_cursor(struct bs_json *j, int64_t cursor)
{
    kid_or_null(j, "next_cursor", cursor);
}
