/* What people do to one task: look at it, check what its queue asks for, act, show it again. */
#include "api/call.h"
#include "api/render.h"

#include "base/text.h"
#include "door/door.h"
#include "sys/log.h"

struct act {
    enum bs_action action;
    struct bs_str reason, conclusion;
    struct bs_str version_text;
    int64_t version;    /* 0: not given           */
    enum bs_state from; /* when it was looked at  */
    struct bs_op op;
    struct bs_op *ops[1];
};

static const struct bs_member members[] = {
    { { "reason", 6 }, BS_MEMBER_TEXT, offsetof(struct act, reason), 0 },
    { { "conclusion", 10 }, BS_MEMBER_TEXT, offsetof(struct act, conclusion), 0 },
    { { "expected_version", 16 }, BS_MEMBER_DIGITS, offsetof(struct act, version_text), 0 },
};

static bool ends(enum bs_action a)
{
    return a == BS_ACT_RESOLVE || a == BS_ACT_CLOSE;
}

/* ---- what was asked ---- */

static void check_conclusion(struct bs_call *c, const struct act *q, struct bs_field_errors *e)
{
    struct bs_arena *a = &c->r->arena;

    if (!ends(q->action) && q->conclusion.p)
        bs_field_error_add(e, a, "conclusion", "CONFLICTS_WITH", "only resolve and close have one");
    else if (ends(q->action) && !q->conclusion.p)
        bs_field_error_add(e, a, "conclusion", "REQUIRED", "not_done, done_elsewhere or other");
    else if (ends(q->action) && !bs_conclusion_known(q->conclusion))
        bs_field_error_add(e, a, "conclusion", "UNKNOWN_VALUE",
                           "must be not_done, done_elsewhere or other");
}

static void check_version(struct bs_call *c, struct act *q, struct bs_field_errors *e)
{
    if (q->version_text.p && (!bs_i64_parse(q->version_text, &q->version) || q->version <= 0))
        bs_field_error_add(e, &c->r->arena, "expected_version", "BAD_FORMAT",
                           "must be the task's version as it was shown");
}

/* False: the answer is a problem. */
static bool take(struct bs_call *c, struct act *q)
{
    struct bs_field_errors errors;
    struct bs_problem_more more = { .errors = &errors };

    if (!bs_call_body(c, members, BS_COUNT(members), q, &errors))
        return false;
    if (!errors.n) {
        bs_call_check_reason(c, q->reason, &errors);
        check_conclusion(c, q, &errors);
        check_version(c, q, &errors);
    }
    if (errors.n)
        bs_call_problem_more(c, BS_PROBLEM_INVALID_FIELDS, &more);
    return errors.n == 0;
}

/* ---- after it ---- */

/* Done, but the task could not be read back: what the operation gave is told. */
static void render_short(struct bs_call *c)
{
    const struct bs_op_act *op = &c->op->act;
    struct bs_json *j = bs_call_json(c, op->ret_pending ? 202 : 200);

    if (!j)
        return;
    bs_json_open(j);
    bs_json_kid(j, "task_no", op->task_id);
    bs_json_kstr(j, "task_status", bs_str_of(bs_state_name(op->ret_task.state)));
    bs_json_kid(j, "version", op->ret_task.version);
    bs_json_kbool(j, "partial", true);
    bs_json_close(j);
    bs_call_json_end(c, j);
    bs_log(BS_LOG_WARN, "api.read_back_failed", BS_FN("task_no", op->task_id));
}

static bs_rc read_after(struct bs_call *c, struct bs_store *s, struct bs_err *err)
{
    const struct bs_op_act *op = &c->op->act;
    struct bs_task t = { 0 };

    BS_TRY(bs_store_task(s, op->task_id, &c->arena, &t, err));
    struct bs_json *j = bs_call_json(c, op->ret_pending ? 202 : 200);
    if (!j)
        return BS_E_NOMEM;
    c->render = NULL;
    bs_json_open(j);
    bs_render_task(j, &t, true);
    bs_json_close(j);
    bs_call_json_end(c, j);
    return BS_OK;
}

static enum bs_problem problem_of(bs_rc rc)
{
    if (rc == BS_E_STALE)
        return BS_PROBLEM_STALE_VERSION;
    if (rc == BS_E_CONFLICT)
        return BS_PROBLEM_STATE_CONFLICT;
    if (rc == BS_E_INVALID)
        return BS_PROBLEM_INVALID_FIELDS;
    return rc == BS_E_NOT_FOUND ? BS_PROBLEM_NOT_FOUND : BS_PROBLEM_UNAVAILABLE;
}

static void render_refused(struct bs_call *c)
{
    if (c->rc != BS_OK)
        bs_call_problem(c, BS_PROBLEM_UNAVAILABLE,
                        "%s; whether it was done is not known: read the task before asking again",
                        c->err.msg);
    else
        bs_call_problem(c, problem_of(c->op->rc), "%s", c->op->err.msg);
}

static void log_act(const struct act *q)
{
    const struct bs_op_act *op = &q->op.act;

    bs_log(BS_LOG_INFO, "task.acted", BS_FN("task_no", op->task_id),
           BS_FZ("action", bs_action_name(op->action)), BS_FZ("from", bs_state_name(q->from)),
           BS_FZ("to", bs_state_name(op->ret_task.state)), BS_F("operator", op->operator),
           BS_F("reason", op->reason), BS_FN("pending", op->ret_pending));
}

static void committed(struct bs_call *c)
{
    if (c->rc != BS_OK || c->op->rc != BS_OK) {
        c->render = render_refused;
        bs_call_finish(c);
        return;
    }
    log_act(c->state);
    c->render = render_short;
    bs_call_read(c, read_after);
}

/* ---- before it ---- */

static void send_op(struct bs_call *c)
{
    struct act *q = c->state;

    bs_call_commit(c, BS_RANK_PEOPLE, q->ops, 1, 0);
}

static void make_op(struct bs_call *c, struct act *q, int64_t task_id,
                    const struct bs_policy *policy)
{
    struct bs_time now = bs_now(c->api->o.clock);

    q->op = (struct bs_op){ .kind = BS_OP_ACT, .id = bs_ids_next(c->api->o.ids, now), .now = now };
    q->op.act = (struct bs_op_act){ .task_id = task_id,
                                    .action = q->action,
                                    .reason = q->reason,
                                    .conclusion = q->conclusion,
                                    .operator= c->who.name,
                                    .expected_version = q->version,
                                    .policy = policy };
    q->ops[0] = &q->op;
    c->op = &q->op;
}

/* Retry, resolve and close on a queue that moves money want the version that the person saw. */
static bool needs_version(const struct act *q, const struct bs_policy *policy)
{
    return policy->effect == BS_EFFECT_MONEY && !q->version &&
           (ends(q->action) || q->action == BS_ACT_RETRY);
}

static bs_rc look(struct bs_call *c, struct bs_store *s, struct bs_err *err)
{
    struct act *q = c->state;
    struct bs_task t = { 0 };

    BS_TRY(bs_store_task(s, bs_call_task_id(c), &c->arena, &t, err));
    if (!bs_who_sees(&c->who, t.biz_type))
        return bs_fail(err, BS_E_NOT_FOUND, "there is no task %.*s", BS_STR_FMT(c->arg));
    const struct bs_policy *policy = bs_call_policy(c, t.biz_type);
    if (needs_version(q, policy)) {
        bs_call_problem(c, BS_PROBLEM_VERSION_REQUIRED,
                        "%.*s moves money: send the version of the task that you saw as "
                        "expected_version",
                        BS_STR_FMT(t.biz_type));
        return BS_OK;
    }
    q->from = t.state;
    make_op(c, q, t.id, policy);
    c->committed = committed;
    c->then = send_op;
    return BS_OK;
}

static enum bs_next act(struct bs_call *c, enum bs_action action)
{
    struct act *q = BS_NEW(&c->r->arena, struct act);

    if (!q)
        return BS_REPLY_NOW;
    q->action = action;
    c->state = q;
    if (!bs_call_task_id(c)) {
        bs_call_problem(c, BS_PROBLEM_NOT_FOUND, "there is no such task");
        return BS_REPLY_NOW;
    }
    if (!take(c, q))
        return BS_REPLY_NOW;
    bs_call_wait(c);
    bs_call_read(c, look);
    return BS_REPLY_LATER;
}

enum bs_next bs_route_retry(struct bs_call *c)
{
    return act(c, BS_ACT_RETRY);
}

enum bs_next bs_route_hold(struct bs_call *c)
{
    return act(c, BS_ACT_HOLD);
}

enum bs_next bs_route_unhold(struct bs_call *c)
{
    return act(c, BS_ACT_UNHOLD);
}

enum bs_next bs_route_resolve(struct bs_call *c)
{
    return act(c, BS_ACT_RESOLVE);
}

enum bs_next bs_route_close(struct bs_call *c)
{
    return act(c, BS_ACT_CLOSE);
}
