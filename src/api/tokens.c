/* Tokens: shown, made (the text is seen once), revoked. */
#include "api/call.h"
#include "api/render.h"

#include "base/text.h"
#include "door/door.h"
#include "sys/log.h"

enum {
    NAME_MAX_BYTES = 64,
    QUEUES_MAX = 64,
    BIZ_TYPE_MAX = 32,
    QUEUES_TEXT_MAX = QUEUES_MAX * (BIZ_TYPE_MAX + 1)
};

/* ---- shown ---- */

static bs_rc read_tokens(struct bs_call *c, struct bs_store *s, struct bs_err *err)
{
    struct bs_token_row *rows = NULL;
    uint32_t n = 0;
    int64_t version = 0;

    BS_TRY(bs_store_tokens(s, &c->arena, &rows, &n, &version, err));
    struct bs_json *j = bs_call_json(c, 200);
    if (!j)
        return BS_E_NOMEM;
    bs_json_open(j);
    bs_json_key(j, "items");
    bs_json_open_array(j);
    for (uint32_t i = 0; i < n; i++) {
        bs_json_open(j);
        bs_render_token(j, &rows[i]);
        bs_json_close(j);
    }
    bs_json_close_array(j);
    bs_render_cursor(j, 0);
    bs_json_close(j);
    bs_call_json_end(c, j);
    return BS_OK;
}

enum bs_next bs_route_tokens(struct bs_call *c)
{
    bs_call_wait(c);
    bs_call_read(c, read_tokens);
    return BS_REPLY_LATER;
}

/* ---- made ---- */

struct wish {
    struct bs_str name, role, queues_json, reason;
    struct bs_str queues; /* comma-separated */
    char text[BS_TOKEN_TEXT + 1];
    struct bs_op op;
    struct bs_op *ops[1];
};

static const struct bs_member members[] = {
    { { "name", 4 }, BS_MEMBER_TEXT, offsetof(struct wish, name), 0 },
    { { "role", 4 }, BS_MEMBER_TEXT, offsetof(struct wish, role), 0 },
    { { "queues", 6 }, BS_MEMBER_ARRAY, offsetof(struct wish, queues_json), 0 },
    { { "reason", 6 }, BS_MEMBER_TEXT, offsetof(struct wish, reason), 0 },
};

static bool is_word(struct bs_str s, const char *others, size_t max)
{
    for (size_t i = 0; i < s.n; i++) {
        char ch = s.p[i];
        bool plain = (ch >= 'a' && ch <= 'z') || (ch >= 'A' && ch <= 'Z') ||
                     (ch >= '0' && ch <= '9') || (ch && strchr(others, ch));

        if (!plain)
            return false;
    }
    return s.n > 0 && s.n <= max;
}

static void check_name(struct bs_call *c, const struct wish *w, struct bs_field_errors *e)
{
    struct bs_arena *a = &c->r->arena;

    if (!w->name.p)
        bs_field_error_add(e, a, "name", "REQUIRED", "who uses it");
    else if (!is_word(w->name, "_.@-", NAME_MAX_BYTES))
        bs_field_error_add(e, a, "name", "BAD_FORMAT",
                           "1 to %d letters, digits, '_', '.', '@' or '-'", NAME_MAX_BYTES);
    if (!w->role.p)
        bs_field_error_add(e, a, "role", "REQUIRED",
                           "service, viewer, operator, approver, finance or admin");
    else if (bs_role_parse(w->role) == BS_ROLE_NONE)
        bs_field_error_add(e, a, "role", "UNKNOWN_VALUE",
                           "must be service, viewer, operator, approver, finance or admin");
}

/* Names of queues need no escapes, so an element is its text between two quotes. */
static bool join_queues(struct bs_call *c, struct wish *w)
{
    BS_CLEANUP(bs_buf_free) struct bs_buf out = { .max = QUEUES_TEXT_MAX };
    struct bs_str *items = NULL;
    struct bs_err err;
    uint32_t n = 0;

    if (bs_json_read_array(&c->r->arena, w->queues_json, QUEUES_MAX, &items, &n, &err) != BS_OK)
        return false;
    for (uint32_t i = 0; i < n; i++) {
        if (items[i].n < 2 || items[i].p[0] != '"')
            return false;
        struct bs_str name = { items[i].p + 1, items[i].n - 2 };
        if (!is_word(name, "_.-", BIZ_TYPE_MAX))
            return false;
        if (i)
            bs_buf_addc(&out, ',');
        bs_buf_add(&out, name);
    }
    w->queues = bs_arena_str(&c->r->arena, bs_buf_str(&out));
    return !out.failed && w->queues.p;
}

/* False: the answer is a problem. */
static bool take(struct bs_call *c, struct wish *w)
{
    struct bs_field_errors errors;
    struct bs_problem_more more = { .errors = &errors };

    if (!bs_call_body(c, members, BS_COUNT(members), w, &errors))
        return false;
    if (!errors.n)
        check_name(c, w, &errors);
    if (w->queues_json.p && !join_queues(c, w))
        bs_field_error_add(&errors, &c->r->arena, "queues", "BAD_FORMAT",
                           "must be at most %d names of queues", QUEUES_MAX);
    if (w->reason.p)
        bs_call_check_reason(c, w->reason, &errors);
    if (errors.n)
        bs_call_problem_more(c, BS_PROBLEM_INVALID_FIELDS, &more);
    return errors.n == 0;
}

static void render_refused(struct bs_call *c)
{
    if (c->rc != BS_OK)
        bs_call_problem(c, BS_PROBLEM_UNAVAILABLE,
                        "%s; whether it was done is not known: read the tokens before asking again",
                        c->err.msg);
    else if (c->op->rc == BS_E_CONFLICT)
        bs_call_problem(c, BS_PROBLEM_NAME_TAKEN, "%s", c->op->err.msg);
    else
        bs_call_store_problem(c, c->op->rc, &c->op->err);
}

static void render_made(struct bs_call *c)
{
    const struct wish *w = c->state;
    struct bs_token_row row = {
        .name = w->name, .role = w->role, .queues = w->queues, .created_at = c->op->now
    };
    struct bs_json *j = bs_call_json(c, 201);

    if (!j)
        return;
    bs_json_open(j);
    bs_render_token(j, &row);
    bs_json_kstr(j, "token", (struct bs_str){ w->text, BS_TOKEN_TEXT });
    bs_json_close(j);
    bs_call_json_end(c, j);
    bs_http_reply_header(c->r, "Cache-Control", BS_STR("no-store"));
}

/* Every request after the answer knows the new set. Should it fail, the next poll brings it. */
static bs_rc refresh(struct bs_call *c, struct bs_store *s, struct bs_err *err)
{
    bs_rc rc = bs_api_refresh_tokens(c->api, s, err);

    if (rc != BS_OK)
        bs_log(BS_LOG_WARN, "api.tokens_unreadable", BS_FZ("rc", bs_rc_name(rc)),
               BS_FZ("message", err->msg));
    return rc;
}

static void made(struct bs_call *c)
{
    if (c->rc != BS_OK || c->op->rc != BS_OK) {
        c->render = render_refused;
        bs_call_finish(c);
        return;
    }
    bs_log(BS_LOG_INFO, "token.added", BS_F("name", c->op->token_add.name),
           BS_F("role", c->op->token_add.role), BS_F("operator", c->op->token_add.operator),
           BS_F("reason", c->op->token_add.reason));
    c->render = render_made;
    bs_call_read(c, refresh);
}

enum bs_next bs_route_token_add(struct bs_call *c)
{
    struct wish *w = BS_NEW(&c->r->arena, struct wish);
    struct bs_time now = bs_now(c->api->o.clock);

    if (!w || !take(c, w))
        return BS_REPLY_NOW;
    w->op = (struct bs_op){ .kind = BS_OP_TOKEN_ADD,
                            .id = bs_ids_next(c->api->o.ids, now),
                            .now = now };
    w->op.token_add = (struct bs_op_token_add){ .name = w->name,
                                                .role = w->role,
                                                .queues = w->queues,
                                                .operator= c->who.name,
                                                .reason = w->reason };
    bs_token_make(w->text, &w->op.token_add.hash);
    w->ops[0] = &w->op;
    c->state = w;
    c->op = &w->op;
    c->committed = made;
    bs_call_wait(c);
    bs_call_commit(c, BS_RANK_PEOPLE, w->ops, 1, 0);
    return BS_REPLY_LATER;
}

/* ---- revoked ---- */

struct revoke {
    struct bs_str reason;
    struct bs_op op;
    struct bs_op *ops[1];
};

static const struct bs_member revoke_members[] = {
    { { "reason", 6 }, BS_MEMBER_TEXT, offsetof(struct revoke, reason), 0 },
};

/* A body may be left out: then there is no reason. False: the answer is a problem. */
static bool take_reason(struct bs_call *c, struct revoke *q)
{
    struct bs_field_errors errors;
    struct bs_problem_more more = { .errors = &errors };

    if (!bs_str_trim(c->r->body).n)
        return true;
    if (!bs_call_body(c, revoke_members, BS_COUNT(revoke_members), q, &errors))
        return false;
    if (!errors.n && q->reason.p)
        bs_call_check_reason(c, q->reason, &errors);
    if (errors.n)
        bs_call_problem_more(c, BS_PROBLEM_INVALID_FIELDS, &more);
    return errors.n == 0;
}

static void render_revoked(struct bs_call *c)
{
    struct bs_json *j = bs_call_json(c, 200);

    if (!j)
        return;
    bs_json_open(j);
    bs_json_kstr(j, "name", c->op->token_revoke.name);
    bs_json_kbool(j, "revoked", true);
    bs_json_close(j);
    bs_call_json_end(c, j);
}

static void revoked(struct bs_call *c)
{
    if (c->rc != BS_OK || c->op->rc != BS_OK) {
        c->render = render_refused;
        bs_call_finish(c);
        return;
    }
    bs_log(BS_LOG_INFO, "token.revoked", BS_F("name", c->op->token_revoke.name),
           BS_F("operator", c->op->token_revoke.operator),
           BS_F("reason", c->op->token_revoke.reason));
    c->render = render_revoked;
    bs_call_read(c, refresh);
}

enum bs_next bs_route_token_revoke(struct bs_call *c)
{
    struct revoke *q = BS_NEW(&c->r->arena, struct revoke);
    struct bs_time now = bs_now(c->api->o.clock);

    if (!q)
        return BS_REPLY_NOW;
    if (!is_word(c->arg, "_.@-", NAME_MAX_BYTES)) {
        bs_call_problem(c, BS_PROBLEM_NOT_FOUND, "there is no such token");
        return BS_REPLY_NOW;
    }
    if (!take_reason(c, q))
        return BS_REPLY_NOW;
    q->op = (struct bs_op){ .kind = BS_OP_TOKEN_REVOKE,
                            .id = bs_ids_next(c->api->o.ids, now),
                            .now = now };
    q->op.token_revoke =
        (struct bs_op_token_revoke){ .name = c->arg, .operator= c->who.name, .reason = q->reason };
    q->ops[0] = &q->op;
    c->op = &q->op;
    c->committed = revoked;
    bs_call_wait(c);
    bs_call_commit(c, BS_RANK_PEOPLE, q->ops, 1, 0);
    return BS_REPLY_LATER;
}
