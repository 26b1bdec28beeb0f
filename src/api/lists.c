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

struct alerts_wish {
    struct bs_page_wish page;
    enum bs_alert_which which;
};

static bool read_which(struct bs_call *c, enum bs_alert_which *ret)
{
    struct bs_str open = bs_call_param(c, "open");

    *ret = BS_ALERTS_ALL;
    if (!open.p)
        return true;
    *ret = bs_str_is(open, "true") ? BS_ALERTS_OPEN : BS_ALERTS_ENDED;
    if (*ret == BS_ALERTS_OPEN || bs_str_is(open, "false"))
        return true;
    bs_call_problem(c, BS_PROBLEM_BAD_PARAMETER, "open: must be true or false");
    return false;
}

static bs_rc add_alert(struct bs_call *c, struct bs_store *s, struct bs_json *j,
                       const struct bs_alert_row *row, struct bs_err *err)
{
    struct bs_delivery *told = NULL;
    uint32_t n = 0;

    BS_TRY(bs_store_deliveries(s, row->id, &c->arena, &told, &n, err));
    bs_render_alert(j, row, told, n);
    return BS_OK;
}

static bs_rc read_alerts(struct bs_call *c, struct bs_store *s, struct bs_err *err)
{
    const struct alerts_wish *wish = c->state;
    const struct bs_alert_filter f = { wish->which, wish->page.cursor, wish->page.limit };
    struct bs_alert_row *rows = NULL;
    uint32_t n = 0;
    bs_rc rc = BS_OK;

    BS_TRY(bs_store_alerts(s, &f, &c->arena, &rows, &n, err));
    struct bs_json *j = open_items(c);
    if (!j)
        return BS_E_NOMEM;
    for (uint32_t i = 0; i < n && rc == BS_OK; i++) {
        if (shows(c, &rows[i]))
            rc = add_alert(c, s, j, &rows[i], err);
    }
    close_items(c, j, n == f.limit ? rows[n - 1].id : 0);
    return rc;
}

enum bs_next bs_route_alerts(struct bs_call *c)
{
    struct alerts_wish *wish = BS_NEW(&c->r->arena, struct alerts_wish);

    if (!wish || !bs_call_page(c, &wish->page) || !read_which(c, &wish->which))
        return BS_REPLY_NOW;
    c->state = wish;
    bs_call_wait(c);
    bs_call_read(c, read_alerts);
    return BS_REPLY_LATER;
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
