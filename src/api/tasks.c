/* Reading tasks: one, many by filter, one's log. */
#include "api/call.h"
#include "api/render.h"

#include "base/text.h"

/* A task that the token may not see is, for it, not there. */
static bs_rc load(struct bs_call *c, struct bs_store *s, struct bs_task *ret, struct bs_err *err)
{
    BS_TRY(bs_store_task(s, bs_call_task_id(c), &c->arena, ret, err));
    if (!bs_who_sees(&c->who, ret->biz_type))
        return bs_fail(err, BS_E_NOT_FOUND, "there is no task %.*s", BS_STR_FMT(c->arg));
    return BS_OK;
}

static bs_rc read_task(struct bs_call *c, struct bs_store *s, struct bs_err *err)
{
    struct bs_task t = { 0 };

    BS_TRY(load(c, s, &t, err));
    struct bs_json *j = bs_call_json(c, 200);
    if (!j)
        return BS_E_NOMEM;
    bs_json_open(j);
    bs_render_task(j, &t, true);
    bs_json_close(j);
    bs_call_json_end(c, j);
    return BS_OK;
}

static bool has_number(struct bs_call *c)
{
    if (bs_call_task_id(c))
        return true;
    bs_call_problem(c, BS_PROBLEM_NOT_FOUND, "there is no such task");
    return false;
}

enum bs_next bs_route_task(struct bs_call *c)
{
    if (!has_number(c))
        return BS_REPLY_NOW;
    bs_call_wait(c);
    bs_call_read(c, read_task);
    return BS_REPLY_LATER;
}

/* ---- the log ---- */

static bs_rc read_log(struct bs_call *c, struct bs_store *s, struct bs_err *err)
{
    const struct bs_page_wish *wish = c->state;
    struct bs_task t = { 0 };
    struct bs_log_page page = { 0 };

    BS_TRY(load(c, s, &t, err));
    BS_TRY(bs_store_log(s, t.id, wish->cursor, wish->limit, &c->arena, &page, err));
    struct bs_json *j = bs_call_json(c, 200);
    if (!j)
        return BS_E_NOMEM;
    bs_json_open(j);
    bs_json_key(j, "items");
    bs_json_open_array(j);
    for (uint32_t i = 0; i < page.n; i++)
        bs_render_log_item(j, &page.items[i]);
    bs_json_close_array(j);
    bs_render_cursor(j, page.next_after);
    bs_json_close(j);
    bs_call_json_end(c, j);
    return BS_OK;
}

enum bs_next bs_route_task_log(struct bs_call *c)
{
    struct bs_page_wish *wish = BS_NEW(&c->r->arena, struct bs_page_wish);

    if (!wish)
        return BS_REPLY_NOW;
    if (!has_number(c) || !bs_call_page(c, wish))
        return BS_REPLY_NOW;
    c->state = wish;
    bs_call_wait(c);
    bs_call_read(c, read_log);
    return BS_REPLY_LATER;
}

/* ---- the list ---- */

static bool take_text(struct bs_call *c, const char *name, struct bs_str *ret)
{
    struct bs_str value = bs_call_param(c, name);

    /* The request's own text may go before a reader is done with it. */
    *ret = value.p ? bs_arena_str(&c->r->arena, value) : BS_STR_NONE;
    return value.p != NULL;
}

static bool bad_param(struct bs_call *c, const char *name, const char *why)
{
    bs_call_problem(c, BS_PROBLEM_BAD_PARAMETER, "%s: %s", name, why);
    return false;
}

static bool take_time(struct bs_call *c, const char *name, struct bs_time *ret)
{
    struct bs_str value = bs_call_param(c, name);
    struct bs_err err;

    if (value.p && bs_time_parse(value, ret, &err) != BS_OK)
        return bad_param(c, name, "must be a time such as 2026-11-30T08:00:00Z");
    return true;
}

static bool take_names(struct bs_call *c, struct bs_task_filter *f)
{
    struct bs_str text;

    if (take_text(c, "status", &text)) {
        f->state = bs_state_parse(text);
        if (f->state == BS_STATE_NONE)
            return bad_param(
                c, "status",
                "must be WAITING, PROCESSING, RETRY, SUCCESS, FAILED, MANUAL or CLOSED");
    }
    if (take_text(c, "source", &text)) {
        f->source = bs_source_parse(text);
        if (f->source == BS_SRC_NONE)
            return bad_param(c, "source", "must be API, CALLBACK, RECON, PATROL or MANUAL");
    }
    return true;
}

static bool take_filter(struct bs_call *c, struct bs_task_filter *f)
{
    struct bs_page_wish wish;

    if (!bs_call_page(c, &wish) || !take_names(c, f))
        return false;
    f->before_id = wish.cursor;
    f->limit = wish.limit;
    take_text(c, "biz_type", &f->biz_type);
    take_text(c, "order_no", &f->order_no);
    take_text(c, "payment_no", &f->payment_no);
    take_text(c, "channel_trade_no", &f->channel_trade_no);
    take_text(c, "refund_no", &f->refund_no);
    take_text(c, "request_id", &f->request_id);
    take_text(c, "biz_id", &f->biz_id);
    take_text(c, "error_code", &f->error_code);
    if (f->biz_type.n && !bs_who_sees(&c->who, f->biz_type)) {
        bs_call_problem(c, BS_PROBLEM_FORBIDDEN, "the token may not see %.*s",
                        BS_STR_FMT(f->biz_type));
        return false;
    }
    return take_time(c, "created_from", &f->created_from) &&
           take_time(c, "created_to", &f->created_to);
}

static bs_rc read_list(struct bs_call *c, struct bs_store *s, struct bs_err *err)
{
    struct bs_task_filter f = *(const struct bs_task_filter *)c->state;
    struct bs_task_page page = { 0 };

    BS_TRY(bs_who_queues(&c->who, &c->arena, &f.queues, &f.queues_n, err));
    BS_TRY(bs_store_tasks(s, &f, &c->arena, &page, err));
    struct bs_json *j = bs_call_json(c, 200);
    if (!j)
        return BS_E_NOMEM;
    bs_json_open(j);
    bs_json_key(j, "items");
    bs_json_open_array(j);
    for (uint32_t i = 0; i < page.n; i++) {
        bs_json_open(j);
        bs_render_task(j, &page.items[i], false);
        bs_json_close(j);
    }
    bs_json_close_array(j);
    bs_render_cursor(j, page.next_before_id);
    bs_json_ktime(j, "searched_to", page.searched_to);
    bs_json_close(j);
    bs_call_json_end(c, j);
    return BS_OK;
}

enum bs_next bs_route_tasks(struct bs_call *c)
{
    struct bs_task_filter *f = BS_NEW(&c->r->arena, struct bs_task_filter);

    if (!f || !take_filter(c, f))
        return BS_REPLY_NOW;
    c->state = f;
    bs_call_wait(c);
    bs_call_read(c, read_list);
    return BS_REPLY_LATER;
}
