/* From a request to its route: path, method, who asks, content type, query. */
#include "api/call.h"

#include "base/text.h"
#include "sys/log.h"

#include <stdlib.h>
#include <unistd.h>

enum { OTHER_BODY_MAX = 16 << 10, OPERATOR_MAX = 64 };

static bool path_fits(const char *pattern, struct bs_str path, struct bs_str *ret_arg)
{
    size_t at = 0;

    while (*pattern) {
        if (*pattern == '{') {
            size_t from = at;

            while (at < path.n && path.p[at] != '/')
                at++;
            if (at == from)
                return false;
            *ret_arg = (struct bs_str){ path.p + from, at - from };
            pattern += 2;
        } else if (at < path.n && path.p[at] == *pattern) {
            at++;
            pattern++;
        } else {
            return false;
        }
    }
    return at == path.n;
}

static const struct bs_route *find_route(enum bs_method method, struct bs_str path,
                                         struct bs_str *ret_arg)
{
    for (uint32_t i = 0; i < bs_routes_n; i++) {
        if (bs_routes[i].method == method && path_fits(bs_routes[i].path, path, ret_arg))
            return &bs_routes[i];
    }
    return NULL;
}

/* No route: 404, or 405 with the methods that the path has. */
static void no_route(struct bs_call *c)
{
    struct bs_str arg, allow = BS_STR_NONE;

    if (find_route(BS_GET, c->r->path, &arg))
        allow = BS_STR("GET");
    if (find_route(BS_POST, c->r->path, &arg))
        allow = allow.n ? BS_STR("GET, POST") : BS_STR("POST");
    if (!allow.n) {
        bs_call_problem(c, BS_PROBLEM_NOT_FOUND, "there is no such path");
        return;
    }
    bs_http_reply_header(c->r, "Allow", allow);
    bs_call_problem(c, BS_PROBLEM_METHOD_NOT_ALLOWED, "this path takes %.*s", BS_STR_FMT(allow));
}

size_t bs_api_body_max(void *api, enum bs_method method, struct bs_str path)
{
    struct bs_str arg;
    const struct bs_route *route = find_route(method, path, &arg);

    (void)api;
    return route && route->body_max ? route->body_max : (size_t)OTHER_BODY_MAX;
}

/* ---- who asks ---- */

/* By the socket, without a token: root and the server's own user are people with all rights. */
static bool is_own_user(const struct bs_api *api, const struct bs_http_request *r)
{
    return r->local && (r->peer_uid == 0 || r->peer_uid == api->own_uid);
}

static bool admit_local(struct bs_call *c, struct bs_str named)
{
    struct bs_http_request *r = c->r;

    if (!is_own_user(c->api, r)) {
        bs_call_problem(c, BS_PROBLEM_UNAUTHORIZED,
                        "over the socket only root and the server's own user need no token");
        return false;
    }
    c->who.role = BS_ROLE_ADMIN;
    c->who.name = named.p ? bs_arena_str(&r->arena, named)
                          : bs_arena_fmt(&r->arena, "cli:%u", (unsigned)r->peer_uid);
    return true;
}

static bool find_token(const struct bs_api *api, struct bs_str authorization, struct bs_who *ret)
{
    struct bs_str token = authorization;
    struct bs_str scheme = bs_str_cut(&token, ' ');

    return bs_str_eq_nocase(scheme, BS_STR("bearer")) &&
           bs_tokens_find(api->tokens, bs_str_trim(token), ret);
}

static bool admit_token(struct bs_call *c, struct bs_str authorization)
{
    if (!c->api->tokens) {
        bs_call_problem(c, BS_PROBLEM_UNAVAILABLE, "the tokens could not be read yet");
        return false;
    }
    if (!find_token(c->api, authorization, &c->who)) {
        bs_call_problem(c, BS_PROBLEM_UNAUTHORIZED, "the token is not valid");
        return false;
    }
    /* The snapshot may be replaced while the request waits. */
    c->who.name = bs_arena_str(&c->r->arena, c->who.name);
    if (c->who.queues.n)
        c->who.queues = bs_arena_str(&c->r->arena, c->who.queues);
    return true;
}

static bool operator_sound(struct bs_str named)
{
    return named.n && named.n <= OPERATOR_MAX && bs_utf8_valid(named) && bs_text_plain(named);
}

static bool identify(struct bs_call *c)
{
    struct bs_str authorization = bs_http_header(c->r, "Authorization");
    struct bs_str named = bs_http_header(c->r, "Backstop-Operator");

    if (named.p && (!c->r->local || authorization.p || !operator_sound(named))) {
        bs_call_problem(c, BS_PROBLEM_BAD_HEADER,
                        "Backstop-Operator is plain text of 1 to %d bytes, for requests over the "
                        "socket without a token",
                        OPERATOR_MAX);
        return false;
    }
    if (authorization.p)
        return admit_token(c, authorization);
    if (c->r->local)
        return admit_local(c, named);
    bs_call_problem(c, BS_PROBLEM_UNAUTHORIZED, "give a token: Authorization: Bearer bst_…");
    return false;
}

/* Who is kept to single queues could make a token that is not. */
static bool is_kept_off(const struct bs_who *who, enum bs_right right)
{
    return right == BS_RIGHT_TOKENS && who->queues.n;
}

static bool admit(struct bs_call *c)
{
    if (c->route->right == BS_RIGHT_OPEN)
        return true;
    if (!identify(c))
        return false;
    if (bs_role_may(c->who.role, c->route->right) && !is_kept_off(&c->who, c->route->right))
        return true;
    if (is_kept_off(&c->who, c->route->right))
        bs_call_problem(c, BS_PROBLEM_FORBIDDEN,
                        "a token of single queues may not see, make or revoke tokens");
    else
        bs_call_problem(c, BS_PROBLEM_FORBIDDEN, "the role %s may not do this",
                        bs_role_name(c->who.role));
    return false;
}

/* ---- what it brings ---- */

static bool type_fits(struct bs_call *c)
{
    struct bs_str rest = bs_http_header(c->r, "Content-Type");
    enum bs_takes takes = c->route->takes;

    if (takes == BS_TAKES_NOTHING || !rest.n)
        return true;
    struct bs_str type = bs_str_trim(bs_str_cut(&rest, ';'));
    if (bs_str_eq_nocase(type, BS_STR("application/json")))
        return true;
    if (takes == BS_TAKES_JSON_OR_LINES && bs_str_eq_nocase(type, BS_STR("application/x-ndjson")))
        return true;
    bs_call_problem(c, BS_PROBLEM_UNSUPPORTED_MEDIA_TYPE, "this path takes application/json%s",
                    takes == BS_TAKES_JSON_OR_LINES ? " or application/x-ndjson" : "");
    return false;
}

struct params {
    struct bs_call *c;
    uint32_t seen;
};

static void check_param(void *ctx, struct bs_str name, struct bs_str value)
{
    struct params *q = ctx;
    const char *const *known = q->c->route->params;
    uint32_t bit = 1;

    if (q->c->answer.status)
        return;
    while (known && *known && !bs_str_is(name, *known)) {
        known++;
        bit <<= 1;
    }
    struct bs_str shown = bs_text_clean(&q->c->r->arena, name, OPERATOR_MAX);
    if (!known || !*known)
        bs_call_problem(q->c, BS_PROBLEM_UNKNOWN_PARAMETER, "%.*s: there is no such parameter here",
                        BS_STR_FMT(shown));
    else if (q->seen & bit)
        bs_call_problem(q->c, BS_PROBLEM_BAD_PARAMETER, "%s: given twice", *known);
    else if (!value.n || value.n > 128 || !bs_utf8_valid(value) || !bs_text_plain(value))
        bs_call_problem(q->c, BS_PROBLEM_BAD_PARAMETER, "%s: must be plain text of 1 to 128 bytes",
                        *known);
    q->seen |= bit;
}

static bool params_fit(struct bs_call *c)
{
    struct params q = { .c = c };

    if (c->route->right == BS_RIGHT_OPEN)
        return true;
    bs_http_query_each(c->r, check_param, &q);
    return c->answer.status == 0;
}

/* ---- the way of a request ---- */

static void take_fresh_tokens(struct bs_api *api)
{
    if (!atomic_load_explicit(&api->fresh, memory_order_relaxed))
        return;
    struct bs_tokens *fresh = atomic_exchange(&api->fresh, NULL);
    if (fresh) {
        bs_tokens_free(api->tokens);
        api->tokens = fresh;
    }
}

/* Whether admit will say yes, so that the body of whoever may not ask is never kept. */
bool bs_api_wants_body(void *ctx, struct bs_http_request *r)
{
    struct bs_api *api = ctx;
    struct bs_str authorization = bs_http_header(r, "Authorization");
    struct bs_str arg;
    const struct bs_route *route = find_route(r->method, r->path, &arg);
    struct bs_who who = { 0 };

    take_fresh_tokens(api);
    if (!route)
        return false;
    if (route->right == BS_RIGHT_OPEN)
        return true;
    if (!authorization.p)
        return is_own_user(api, r);
    return api->tokens && find_token(api, authorization, &who) &&
           bs_role_may(who.role, route->right) && !is_kept_off(&who, route->right);
}

static enum bs_next dispatch(struct bs_call *c)
{
    c->route = find_route(c->r->method, c->r->path, &c->arg);
    if (!c->route) {
        no_route(c);
        return BS_REPLY_NOW;
    }
    if (!admit(c) || !type_fits(c) || !params_fit(c))
        return BS_REPLY_NOW;
    if (c->r->arena.failed) {
        bs_call_problem(c, BS_PROBLEM_INTERNAL, "no memory for the request");
        return BS_REPLY_NOW;
    }
    if (c->r->unread) {
        bs_call_problem(c, BS_PROBLEM_BUSY, "there was no room for the body; try again");
        return BS_REPLY_NOW;
    }
    return c->route->handle(c);
}

void bs_api_handle(void *ctx, struct bs_http_request *r)
{
    struct bs_api *api = ctx;
    struct bs_buf nothing = { 0 };
    struct bs_call *c = BS_NEW(&r->arena, struct bs_call);

    take_fresh_tokens(api);
    if (!c) {
        bs_log(BS_LOG_ERROR, "api.failed", BS_F("path", r->path),
               BS_FZ("message", "no memory for the request"));
        bs_http_reply(r, 503, "text/plain", &nothing);
        return;
    }
    c->api = api;
    c->r = r;
    r->user = c;
    if (dispatch(c) == BS_REPLY_NOW)
        bs_call_send(c);
}

/* ---- tokens, start and end ---- */

bs_rc bs_api_refresh_tokens(struct bs_api *api, struct bs_store *s, struct bs_err *err)
{
    struct bs_tokens *t = NULL;

    /* Read and published under one lock: an older snapshot never follows a newer one. */
    pthread_mutex_lock(&api->refreshing);
    bs_rc rc = bs_tokens_load(s, &t, err);
    if (rc == BS_OK) {
        atomic_store(&api->tokens_version, bs_tokens_version(t));
        bs_tokens_free(atomic_exchange(&api->fresh, t));
    }
    pthread_mutex_unlock(&api->refreshing);
    return rc;
}

static bs_rc poll_tokens(void *ctx, struct bs_store *s)
{
    struct bs_api *api = ctx;
    struct bs_err err = { 0 };
    int64_t version = 0;

    if (!s)
        return BS_OK;
    bs_rc rc = bs_store_tokens_version(s, &version, &err);
    if (rc == BS_OK && version != atomic_load(&api->tokens_version))
        rc = bs_api_refresh_tokens(api, s, &err);
    bool failed = rc != BS_OK;
    if (atomic_exchange(&api->tokens_failing, failed) != failed)
        bs_log(failed ? BS_LOG_WARN : BS_LOG_INFO,
               failed ? "api.tokens_unreadable" : "api.tokens_readable",
               BS_FZ("rc", bs_rc_name(rc)), BS_FZ("message", err.msg));
    return rc;
}

/* Before the first request, so that it does not meet an empty set. */
static void first_tokens(struct bs_api *api)
{
    struct bs_store_options o = { .url = api->o.store_url, .mode = BS_STORE_READER };
    struct bs_store *s = NULL;
    struct bs_err err = { 0 };

    if (bs_store_open(&o, &s, &err) != BS_OK) {
        bs_log(BS_LOG_WARN, "api.tokens_unreadable", BS_FZ("message", err.msg));
        return;
    }
    BS_IGNORE(poll_tokens(api, s), "logged there; the readers try again");
    bs_store_close(s);
}

bs_rc bs_api_new(const struct bs_api_options *o, struct bs_api **ret, struct bs_err *err)
{
    struct bs_api *api = calloc(1, sizeof(*api));

    if (!api)
        return bs_fail(err, BS_E_NOMEM, "no memory for the API");
    api->o = *o;
    api->own_uid = (uint32_t)geteuid();
    atomic_store(&api->tokens_version, -1);
    pthread_mutex_init(&api->refreshing, NULL);
    first_tokens(api);
    struct bs_readers_options readers = { .store_url = o->store_url,
                                          .poll = poll_tokens,
                                          .ctx = api };
    bs_rc rc = bs_readers_new(&readers, &api->readers, err);
    if (rc != BS_OK) {
        bs_api_free(api);
        return rc;
    }
    *ret = api;
    return BS_OK;
}

void bs_api_free(struct bs_api *api)
{
    if (!api)
        return;
    bs_readers_free(api->readers);
    bs_tokens_free(api->tokens);
    bs_tokens_free(atomic_exchange(&api->fresh, NULL));
    pthread_mutex_destroy(&api->refreshing);
    free(api);
}
