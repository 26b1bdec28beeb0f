/* What is only read: alerts, audit. */
#include "api/call.h"
#include "api/render.h"

static struct bs_json *open_items(struct bs_call *c)
{
    struct bs_json *j = bs_call_json(c, 200);

    if (!j)
        return NULL;
    bs_json_open(j);
    bs_json_key(j, "items");
    bs_json_open_array(j);
    return j;
}

static void close_items(struct bs_call *c, struct bs_json *j, int64_t cursor)
{
    bs_json_close_array(j);
    bs_render_cursor(j, cursor);
    bs_json_close(j);
    bs_call_json_end(c, j);
}

static enum bs_next read_page(struct bs_call *c, bs_rc (*run)(struct bs_call *c, struct bs_store *s,
                                                              struct bs_err *err))
{
    struct bs_page_wish *wish = BS_NEW(&c->r->arena, struct bs_page_wish);

    if (!wish || !bs_call_page(c, wish))
        return BS_REPLY_NOW;
    c->state = wish;
    bs_call_wait(c);
    bs_call_read(c, run);
    return BS_REPLY_LATER;
}

/* A restricted token is shown the alerts of its queues: its pages may be short. */
static bool shows(const struct bs_call *c, const struct bs_alert_row *row)
{
    return !c->who.queues.n || (row->biz_type.n && bs_who_sees(&c->who, row->biz_type));
}

static bs_rc read_alerts(struct bs_call *c, struct bs_store *s, struct bs_err *err)
{
    const struct bs_page_wish *wish = c->state;
    struct bs_alert_row *rows = NULL;
    uint32_t n = 0;

    BS_TRY(bs_store_alerts(
        s, &(struct bs_alert_filter){ .before_id = wish->cursor, .limit = wish->limit }, &c->arena,
        &rows, &n, err));
    struct bs_json *j = open_items(c);
    if (!j)
        return BS_E_NOMEM;
    for (uint32_t i = 0; i < n; i++) {
        if (shows(c, &rows[i]))
            bs_render_alert(j, &rows[i]);
    }
    close_items(c, j, n == wish->limit ? rows[n - 1].id : 0);
    return BS_OK;
}

enum bs_next bs_route_alerts(struct bs_call *c)
{
    return read_page(c, read_alerts);
}

static bs_rc read_audit(struct bs_call *c, struct bs_store *s, struct bs_err *err)
{
    const struct bs_page_wish *wish = c->state;
    struct bs_audit_row *rows = NULL;
    uint32_t n = 0;

    BS_TRY(bs_store_audit(s, wish->cursor, wish->limit, &c->arena, &rows, &n, err));
    struct bs_json *j = open_items(c);
    if (!j)
        return BS_E_NOMEM;
    for (uint32_t i = 0; i < n; i++)
        bs_render_audit(j, &rows[i]);
    close_items(c, j, n == wish->limit ? rows[n - 1].id : 0);
    return BS_OK;
}

/* Audit rows name objects of every kind, so they are for tokens that see every queue. */
enum bs_next bs_route_audit(struct bs_call *c)
{
    if (c->who.queues.n) {
        bs_call_problem(c, BS_PROBLEM_FORBIDDEN, "a token of single queues may not read the audit");
        return BS_REPLY_NOW;
    }
    return read_page(c, read_audit);
}
