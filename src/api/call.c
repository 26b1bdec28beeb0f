/* How a call moves between the threads, and how it is answered. */
#include "api/call.h"

#include "base/text.h"
#include "door/door.h"
#include "sys/clock.h"
#include "sys/log.h"

#include <stdarg.h>
#include <stdio.h>

enum { JSON_ANSWER_MAX = 8 << 20, PROBLEM_MAX = 64 << 10, STORM_US = 1000000, STRANGERS_MAX = 20 };

static const char problem_type[] = "application/problem+json";

/* ---- answering ---- */

static bool is_storm(enum bs_problem p)
{
    return p == BS_PROBLEM_BUSY || p == BS_PROBLEM_TIMEOUT || p == BS_PROBLEM_UNAVAILABLE;
}

static enum bs_log_level level_of(enum bs_problem p)
{
    int status = bs_problem_status(p);

    if (p == BS_PROBLEM_INTERNAL)
        return BS_LOG_ERROR;
    if (p == BS_PROBLEM_STOPPING)
        return BS_LOG_INFO;
    if (status >= 500 || status == 401 || status == 403)
        return BS_LOG_WARN;
    if (p == BS_PROBLEM_REQUEST_CONFLICT || p == BS_PROBLEM_EFFECT_CONFLICT)
        return BS_LOG_WARN;
    return BS_LOG_INFO;
}

static bool may_log(struct bs_storm *s, int64_t most, int64_t *ret_left_out)
{
    int64_t now_us = bs_boot_us();
    int64_t until_us = atomic_load(&s->until_us);

    if (now_us >= until_us &&
        atomic_compare_exchange_strong(&s->until_us, &until_us, now_us + STORM_US)) {
        *ret_left_out = atomic_exchange(&s->left_out, 0);
        atomic_store(&s->lines, 1);
        return true;
    }
    if (atomic_fetch_add(&s->lines, 1) < most)
        return true;
    atomic_fetch_add(&s->left_out, 1);
    return false;
}

/* A store that is away meets thousands of requests a second, and whoever has no token can send as
 * many as he likes: a few lines tell it, with how many they stand for. */
static bool is_told(struct bs_api *api, struct bs_str who, enum bs_problem p, int64_t *ret_left_out)
{
    *ret_left_out = 0;
    if (is_storm(p))
        return may_log(&api->away, 1, ret_left_out);
    if (!who.n && bs_problem_status(p) < 500)
        return may_log(&api->strangers, STRANGERS_MAX, ret_left_out);
    return true;
}

/* A field without text would be taken for a number. */
static struct bs_str text(struct bs_str s)
{
    return s.p ? s : BS_STR("");
}

static void log_problem(struct bs_api *api, const struct bs_http_request *r, struct bs_str who,
                        enum bs_problem p, struct bs_str detail)
{
    int64_t left_out;

    if (!is_told(api, who, p, &left_out))
        return;
    const struct bs_log_field fields[] = {
        BS_FZ("method", r->method == BS_GET    ? "GET"
                        : r->method == BS_POST ? "POST"
                                               : "other"),
        BS_F("path", text(r->path)),
        BS_FN("status", bs_problem_status(p)),
        BS_FZ("code", bs_problem_code(p)),
        BS_F("message", text(detail)),
        BS_F("who", text(who)),
        BS_FN("left_out", left_out),
    };
    bs_log_event(level_of(p), bs_problem_status(p) >= 500 ? "api.failed" : "api.refused", fields,
                 BS_COUNT(fields) - (left_out ? 0 : 1));
}

static void make_problem(struct bs_answer *ret, enum bs_problem p,
                         const struct bs_problem_more *more)
{
    bs_buf_free(&ret->body);
    *ret = (struct bs_answer){ .status = bs_problem_status(p),
                               .type = problem_type,
                               .body = { .max = PROBLEM_MAX },
                               .problem = p };
    bs_problem_write(&ret->body, p, more);
}

void bs_call_problem_more(struct bs_call *c, enum bs_problem p, const struct bs_problem_more *more)
{
    struct bs_str detail = more->detail;

    if (!detail.n && more->errors && more->errors->n)
        detail = more->errors->items[0].message;
    make_problem(&c->answer, p, more);
    c->render = NULL;
    log_problem(c->api, c->r, c->who.name, p, detail);
}

void bs_call_problem(struct bs_call *c, enum bs_problem p, const char *fmt, ...)
{
    char text[512];
    va_list args;

    va_start(args, fmt);
    int n = vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    BS_ASSERT(n >= 0);
    struct bs_str whole = { text, BS_MIN((size_t)n, sizeof(text) - 1) };
    struct bs_problem_more more = { .detail = bs_utf8_cut(whole, sizeof(text) - 4) };
    bs_call_problem_more(c, p, &more);
}

void bs_call_store_problem(struct bs_call *c, bs_rc rc, const struct bs_err *err)
{
    if (rc == BS_E_NOT_FOUND)
        bs_call_problem(c, BS_PROBLEM_NOT_FOUND, "%s", err->msg);
    else if (rc == BS_E_INVALID || rc == BS_E_CORRUPT || rc == BS_E_REFUSED)
        bs_call_problem(c, BS_PROBLEM_INTERNAL, "%s", err->msg);
    else
        bs_call_problem(c, BS_PROBLEM_UNAVAILABLE, "%s", err->msg);
}

struct bs_json *bs_call_json(struct bs_call *c, int status)
{
    bs_buf_free(&c->answer.body);
    c->answer = (struct bs_answer){ .status = status,
                                    .type = "application/json",
                                    .body = { .max = JSON_ANSWER_MAX } };
    struct bs_json *j = bs_json_new(&c->answer.body);
    if (!j)
        bs_call_problem(c, BS_PROBLEM_INTERNAL, "no memory for the answer");
    return j;
}

void bs_call_json_end(struct bs_call *c, struct bs_json *j)
{
    struct bs_err err = { 0 };

    if (bs_json_end(j, &err) != BS_OK)
        bs_call_problem(c, BS_PROBLEM_INTERNAL, "the answer could not be written: %s", err.msg);
}

static void send_answer(struct bs_http_request *r, struct bs_answer *answer)
{
    if (answer->problem && bs_problem_status(answer->problem) == 503)
        bs_http_reply_header(r, "Retry-After", BS_STR("1"));
    if (answer->problem == BS_PROBLEM_UNAUTHORIZED)
        bs_http_reply_header(r, "WWW-Authenticate", BS_STR("Bearer realm=\"backstop\""));
    bs_http_reply(r, answer->status, answer->type, &answer->body);
    answer->body = (struct bs_buf){ 0 };
}

void bs_call_send(struct bs_call *c)
{
    void (*render)(struct bs_call *) = c->render;

    c->render = NULL;
    if (render)
        render(c);
    if (!c->answer.status)
        bs_call_problem(c, BS_PROBLEM_INTERNAL, "the route gave no answer");
    send_answer(c->r, &c->answer);
}

/* ---- moving ---- */

static void on_ready(struct bs_http_request *r)
{
    bs_call_send(r->user);
}

/* The receiver may still hold the call: what it owns is left alone, the problem is made beside it.
 */
static void answer_for(struct bs_call *c, enum bs_problem p, const char *words)
{
    struct bs_answer answer = { 0 };
    struct bs_problem_more more = { .detail = bs_str_of(words) };

    if (atomic_exchange(&c->phase, BS_PHASE_ABANDONED) == BS_PHASE_FINISHED) {
        bs_call_send(c);
        return;
    }
    make_problem(&answer, p, &more);
    log_problem(c->api, c->r, c->who.name, p, more.detail);
    send_answer(c->r, &answer);
}

static void on_timeout(struct bs_http_request *r)
{
    if (r->method == BS_GET)
        answer_for(r->user, BS_PROBLEM_TIMEOUT, "reading took too long; ask again");
    else
        answer_for(r->user, BS_PROBLEM_TIMEOUT,
                   "whether it was done is not known; the same request can be sent again: a "
                   "submission is recognised by its request_id, an action by its expected_version");
}

static enum bs_problem refusal(int status, struct bs_str *ret_detail)
{
    switch (status) {
    case 400:
        *ret_detail = BS_STR("its target (a NUL, a broken escape, no UTF-8, over 64 parameters) or "
                             "its framing is wrong, or a "
                             "header is there twice");
        return BS_PROBLEM_BAD_REQUEST;
    case 408:
        return BS_PROBLEM_TOO_SLOW;
    case 413:
        *ret_detail = BS_STR("the body is over the route's limit");
        return BS_PROBLEM_TOO_BIG;
    default:
        *ret_detail = BS_STR("nothing was done");
        return BS_PROBLEM_STOPPING;
    }
}

void bs_api_refuse(void *api, struct bs_http_request *r, int status)
{
    struct bs_answer answer = { 0 };
    struct bs_problem_more more = { 0 };

    if (r->user) {
        answer_for(r->user, BS_PROBLEM_STOPPING,
                   "whether it was done is not known; the same request can be sent again");
        return;
    }
    enum bs_problem p = refusal(status, &more.detail);
    make_problem(&answer, p, &more);
    log_problem(api, r, BS_STR_NONE, p, more.detail);
    send_answer(r, &answer);
}

void bs_call_wait(struct bs_call *c)
{
    struct bs_span limit = c->api->o.reply_limit;

    c->r->on_ready = on_ready;
    bs_http_wait(c->r, limit.us ? limit : BS_SEC(2), on_timeout);
}

void bs_call_finish(struct bs_call *c)
{
    bs_arena_free(&c->arena);
    if (atomic_exchange(&c->phase, BS_PHASE_FINISHED) == BS_PHASE_ABANDONED)
        bs_buf_free(&c->answer.body);
    bs_http_ready(c->r);
}

static bs_rc on_reader(struct bs_read *read, struct bs_store *s, const struct bs_err *open_err)
{
    struct bs_call *c = BS_CONTAINER(read, struct bs_call, read);
    struct bs_err err = { 0 };
    bs_rc rc;

    if (s) {
        rc = c->read_run(c, s, &err);
    } else {
        err = *open_err;
        rc = err.rc == BS_OK ? BS_E_UNAVAILABLE : err.rc;
    }
    if (rc != BS_OK && !c->answer.status && !c->render)
        bs_call_store_problem(c, rc, &err);
    void (*then)(struct bs_call *) = rc == BS_OK ? c->then : NULL;
    c->then = NULL;
    bs_arena_free(&c->arena);
    if (then)
        then(c);
    else
        bs_call_finish(c);
    return rc;
}

static void render_busy(struct bs_call *c)
{
    bs_call_problem(c, BS_PROBLEM_BUSY, "too much is waiting; try again");
}

void bs_call_read(struct bs_call *c,
                  bs_rc (*run)(struct bs_call *c, struct bs_store *s, struct bs_err *err))
{
    c->read.run = on_reader;
    c->read_run = run;
    if (bs_readers_send(c->api->readers, &c->read))
        return;
    if (!c->render)
        c->render = render_busy;
    bs_call_finish(c);
}

static void on_done(struct bs_work *w, bs_rc rc, const struct bs_err *err)
{
    struct bs_call *c = BS_CONTAINER(w, struct bs_call, work);

    c->rc = rc;
    if (rc != BS_OK && err)
        c->err = *err;
    c->committed(c);
}

void bs_call_commit(struct bs_call *c, enum bs_rank rank, struct bs_op **ops, uint32_t n,
                    size_t bytes)
{
    c->work = (struct bs_work){ .rank = rank, .ops = ops, .n = n, .bytes = bytes, .done = on_done };
    if (bs_committer_send(c->api->o.committer, &c->work))
        return;
    c->render = render_busy;
    bs_call_finish(c);
}

/* ---- asking ---- */

int64_t bs_call_task_id(const struct bs_call *c)
{
    int64_t id;

    if (!c->arg.n || c->arg.n > BS_TASK_NO_MAX || c->arg.p[0] < '1' || c->arg.p[0] > '9')
        return 0;
    return bs_i64_parse(c->arg, &id) ? id : 0;
}

struct bs_str bs_call_param(struct bs_call *c, const char *name)
{
    return bs_http_query(c->r, name, NULL);
}

bool bs_call_page(struct bs_call *c, struct bs_page_wish *ret)
{
    struct bs_str cursor = bs_call_param(c, "cursor");
    struct bs_str limit = bs_call_param(c, "limit");
    int64_t n = 50;

    *ret = (struct bs_page_wish){ 0 };
    if (cursor.p && (!bs_i64_parse(cursor, &ret->cursor) || ret->cursor <= 0)) {
        bs_call_problem(c, BS_PROBLEM_BAD_PARAMETER, "cursor: not one that this list gave");
        return false;
    }
    if (limit.p && (!bs_i64_parse(limit, &n) || n < 1 || n > 200)) {
        bs_call_problem(c, BS_PROBLEM_BAD_PARAMETER, "limit: must be 1 to 200");
        return false;
    }
    ret->limit = (uint32_t)n;
    return true;
}

bool bs_call_body(struct bs_call *c, const struct bs_member *table, uint32_t n, void *into,
                  struct bs_field_errors *errors)
{
    struct bs_json_object o;
    struct bs_err err = { 0 };

    errors->n = 0;
    bs_rc rc = bs_json_read_object(&c->r->arena, c->r->body, 16, &o, &err);
    if (rc != BS_OK) {
        bs_call_problem(c, rc == BS_E_NOMEM ? BS_PROBLEM_INTERNAL : BS_PROBLEM_NOT_JSON, "%s",
                        err.msg);
        return false;
    }
    bs_members_read(&o, table, n, into, &c->r->arena, errors);
    return true;
}

void bs_call_check_reason(struct bs_call *c, struct bs_str reason, struct bs_field_errors *errors)
{
    enum { REASON_MAX = 512 };
    struct bs_arena *a = &c->r->arena;

    if (!bs_str_trim(reason).n)
        bs_field_error_add(errors, a, "reason", "REQUIRED", "say why");
    else if (reason.n > REASON_MAX)
        bs_field_error_add(errors, a, "reason", "TOO_LONG", "at most %d bytes", REASON_MAX);
    else if (!bs_utf8_valid(reason))
        bs_field_error_add(errors, a, "reason", "BAD_UTF8", "not UTF-8");
    else if (!bs_text_plain(reason))
        bs_field_error_add(errors, a, "reason", "CONTROL_CHARACTER", "no control characters");
}

const struct bs_policy *bs_call_policy(const struct bs_call *c, struct bs_str biz_type)
{
    const struct bs_queue_conf *q = bs_queue_find(bs_queues_now(c->api->o.queues), biz_type);

    return q ? &q->policy : &bs_policy_default;
}
