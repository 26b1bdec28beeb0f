/* POST /v1/tasks: the hot path. One operation in the request's arena, one answer rendered on the
 * HTTP thread after the commit. */
#include "api/submit.h"
#include "api/call.h"
#include "api/render.h"

#include "door/door.h"
#include "sys/log.h"

enum { ROW_BYTES = 512 }; /* what a row weighs in a batch beside its payload */

enum bs_problem bs_submit_problem(const struct bs_op *op)
{
    if (op->submit.ret_what == BS_SUBMITTED_CONFLICT_EFFECT)
        return BS_PROBLEM_EFFECT_CONFLICT;
    if (op->submit.ret_what == BS_SUBMITTED_CONFLICT_REQUEST || op->rc == BS_E_CONFLICT)
        return BS_PROBLEM_REQUEST_CONFLICT;
    if (op->rc == BS_E_INVALID)
        return BS_PROBLEM_INVALID_FIELDS;
    return op->rc == BS_OK ? BS_PROBLEM_NONE : BS_PROBLEM_UNAVAILABLE;
}

const char *bs_submit_duplicate(const struct bs_op *op)
{
    if (op->submit.ret_what == BS_SUBMITTED_DUPLICATE_REQUEST)
        return "request";
    return op->submit.ret_what == BS_SUBMITTED_DUPLICATE_EFFECT ? "effect" : NULL;
}

size_t bs_submit_bytes(const struct bs_op *op)
{
    return op->submit.task->payload.n + op->submit.task->extra_data.n + ROW_BYTES;
}

struct bs_door bs_submit_door(const struct bs_call *c)
{
    return (struct bs_door){ c->api->o.queues, c->api->o.ids };
}

void bs_submit_store_away(struct bs_call *c)
{
    bs_call_problem(c, BS_PROBLEM_UNAVAILABLE,
                    "%s; whether it was stored is not known, and it is safe to send the same "
                    "request_id again",
                    c->err.msg);
}

/* ---- after the commit ---- */

static void render_created(struct bs_call *c)
{
    const struct bs_task *t = c->op->submit.task;
    struct bs_json *j = bs_call_json(c, 201);

    if (!j)
        return;
    bs_json_open(j);
    bs_render_task(j, t, true);
    bs_json_close(j);
    bs_call_json_end(c, j);
    bs_http_reply_header(c->r, "Location",
                         bs_arena_fmt(&c->r->arena, "/v1/tasks/%lld", (long long)t->id));
    bs_log(BS_LOG_DEBUG, "task.submitted", BS_FN("task_no", t->id), BS_F("biz_type", t->biz_type),
           BS_F("request_id", t->request_id));
}

static void render_refused(struct bs_call *c)
{
    const struct bs_op_submit *op = &c->op->submit;
    struct bs_problem_more more = { .task_id = op->ret_task_id };
    enum bs_problem p = bs_submit_problem(c->op);

    if (c->rc != BS_OK) {
        bs_submit_store_away(c);
        return;
    }
    if (p == BS_PROBLEM_REQUEST_CONFLICT)
        more.detail = BS_STR("the first content under this request_id stays; use another "
                             "request_id for other content");
    else if (p == BS_PROBLEM_EFFECT_CONFLICT)
        more.detail = BS_STR("another amount, currency, order, payment, trade or refund number is "
                             "recorded for this effect_key");
    else
        more.detail = bs_str_of(c->op->err.msg);
    bs_call_problem_more(c, p, &more);
}

/* What is known without the first task, and why nothing else is. */
static void answer_short(struct bs_call *c, const char *why)
{
    struct bs_json *j = bs_call_json(c, 200);

    if (!j)
        return;
    bs_json_open(j);
    bs_json_kid(j, "task_no", c->op->submit.ret_task_id);
    bs_json_kstr(j, "duplicate", bs_str_of(bs_submit_duplicate(c->op)));
    bs_json_kbool(j, why, true);
    bs_json_close(j);
    bs_call_json_end(c, j);
}

/* The first task could not be read back; what is known is told. */
static void render_duplicate_short(struct bs_call *c)
{
    answer_short(c, "partial");
    bs_log(BS_LOG_WARN, "api.read_back_failed", BS_FN("task_no", c->op->submit.ret_task_id));
}

static bs_rc read_first(struct bs_call *c, struct bs_store *s, struct bs_err *err)
{
    struct bs_task t = { 0 };

    bs_rc rc = bs_store_task(s, c->op->submit.ret_task_id, &c->arena, &t, err);
    if (rc == BS_E_NOT_FOUND) { /* the key is for ever, the task was not */
        c->render = NULL;
        answer_short(c, "purged");
        return BS_OK;
    }
    BS_TRY(rc);
    /* A token of other queues learns that it is a duplicate, not what the first task is. */
    if (!bs_who_sees(&c->who, t.biz_type))
        return BS_OK;
    struct bs_json *j = bs_call_json(c, 200);
    if (!j)
        return BS_E_NOMEM;
    c->render = NULL;
    bs_json_open(j);
    bs_render_task(j, &t, true);
    bs_json_kstr(j, "duplicate", bs_str_of(bs_submit_duplicate(c->op)));
    bs_json_close(j);
    bs_call_json_end(c, j);
    return BS_OK;
}

static void committed(struct bs_call *c)
{
    bool sound = c->rc == BS_OK && c->op->rc == BS_OK;

    if (sound && c->op->submit.ret_what == BS_SUBMITTED_CREATED) {
        c->render = render_created;
        bs_call_finish(c);
    } else if (sound && bs_submit_duplicate(c->op)) {
        c->render = render_duplicate_short;
        bs_call_read(c, read_first);
    } else {
        c->render = render_refused;
        bs_call_finish(c);
    }
}

/* ---- before it ---- */

/* Bare, or quoted as the header's draft says. Copied: the header is the connection's, and after a
 * time-out the next request overwrites it while the committer still has the operation. */
static bool read_key(struct bs_call *c, struct bs_str *ret)
{
    struct bs_str key = bs_http_header(c->r, "Idempotency-Key");

    *ret = BS_STR_NONE;
    if (!key.p)
        return true;
    key = bs_str_trim(key);
    if (key.n >= 2 && key.p[0] == '"' && key.p[key.n - 1] == '"')
        key = (struct bs_str){ key.p + 1, key.n - 2 };
    if (!key.n || memchr(key.p, '"', key.n) || memchr(key.p, '\\', key.n)) {
        bs_call_problem(c, BS_PROBLEM_BAD_HEADER,
                        "Idempotency-Key: must be a request_id, bare or in double quotes");
        return false;
    }
    *ret = bs_arena_str(&c->r->arena, key);
    if (!ret->p)
        bs_call_problem(c, BS_PROBLEM_INTERNAL, "no memory for the request");
    return ret->p != NULL;
}

static void refuse_input(struct bs_call *c, bs_rc rc, const struct bs_field_errors *errors,
                         const struct bs_err *err)
{
    struct bs_problem_more more = { .errors = errors };

    if (rc == BS_E_INVALID && errors->n) {
        more.detail = bs_str_of(err->msg);
        bs_call_problem_more(c, BS_PROBLEM_INVALID_FIELDS, &more);
    } else if (rc == BS_E_INVALID) {
        bs_call_problem(c, BS_PROBLEM_NOT_JSON, "%s", err->msg);
    } else {
        bs_call_problem(c, BS_PROBLEM_INTERNAL, "%s", err->msg);
    }
}

enum bs_next bs_route_submit(struct bs_call *c)
{
    struct bs_arena *a = &c->r->arena;
    struct bs_door door = bs_submit_door(c);
    struct bs_field_errors errors;
    struct bs_err err = { 0 };
    struct bs_str key;

    if (!read_key(c, &key))
        return BS_REPLY_NOW;
    c->op = BS_NEW(a, struct bs_op);
    if (!c->op) {
        bs_call_problem(c, BS_PROBLEM_INTERNAL, "no memory for the request");
        return BS_REPLY_NOW;
    }
    struct bs_door_input in = { c->r->body, key, c->who.name, bs_now(c->api->o.clock) };
    bs_rc rc = bs_door_read(&door, &in, a, c->op, &errors, &err);
    if (rc != BS_OK) {
        refuse_input(c, rc, &errors, &err);
        return BS_REPLY_NOW;
    }
    if (!bs_who_sees(&c->who, c->op->submit.task->biz_type)) {
        bs_call_problem(c, BS_PROBLEM_FORBIDDEN, "the token may not submit to %.*s",
                        BS_STR_FMT(c->op->submit.task->biz_type));
        return BS_REPLY_NOW;
    }
    c->committed = committed;
    bs_call_wait(c);
    bs_call_commit(c, BS_RANK_INTAKE, &c->op, 1, bs_submit_bytes(c->op));
    return BS_REPLY_LATER;
}
