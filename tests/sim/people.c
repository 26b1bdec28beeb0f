/* Operators: actions on tasks in any state, pausing and resuming queues, tokens, an alert now and
 * then. Each deed has an operator name of its own, so that its audit row can be counted. */
#include "sim.h"

#include <string.h>

struct deed {
    struct bs_work work;
    struct bs_op op;
    struct bs_op *list[1];
    struct sim *sim;
    uint32_t act;
    char operator[24], name[24];
};

static const enum sim_deed act_deeds[BS_ACTION_COUNT] = {
    [BS_ACT_RETRY] = DEED_ACT_RETRY,   [BS_ACT_HOLD] = DEED_ACT_HOLD,
    [BS_ACT_UNHOLD] = DEED_ACT_UNHOLD, [BS_ACT_RESOLVE] = DEED_ACT_RESOLVE,
    [BS_ACT_CLOSE] = DEED_ACT_CLOSE,
};

static void hit(struct sim *w, enum sim_deed d)
{
    atomic_fetch_add(&w->hits->deeds[d], 1);
}

/* A pause that is committed reaches the engine, as the API does it. */
static void pause_done(struct sim *w, const struct act *a)
{
    hit(w, a->paused ? DEED_QUEUE_PAUSE : DEED_QUEUE_RESUME);
    bs_engine_pause(w->p.engine, w->confs[a->queue].biz_type, a->paused);
    w->paused[a->queue] = a->paused;
    w->unsure[a->queue] = false;
    w->paused_at[a->queue] = sim_now(w);
}

static void act_done(struct sim *w, const struct deed *d, struct act *a)
{
    const struct bs_op *op = &d->op;

    if (op->rc == BS_OK) {
        hit(w, act_deeds[a->action]);
        if (op->act.ret_pending)
            hit(w, DEED_ACT_PENDING);
    } else if (op->rc == BS_E_CONFLICT) {
        hit(w, DEED_ACT_CONFLICT);
        /* The state does not allow it, or money asks for proof; the database itself has no say. */
        if (!strstr(op->err.msg, "possible") && !strstr(op->err.msg, "proves"))
            broken(w, "an action is refused for a reason of its own: %s", op->err.msg);
    } else if (op->rc == BS_E_NOT_FOUND) {
        const struct tale *t = tale_of(w, a->task_id);

        if (!t || !t->purged)
            broken(w, "an action finds no task %lld", (long long)a->task_id);
    } else if (op->rc != BS_E_STALE) {
        broken(w, "an action is answered %s: %s", bs_rc_name(op->rc), op->err.msg);
    }
}

static void on_done(struct bs_work *work, bs_rc rc, const struct bs_err *err)
{
    struct deed *d = BS_CONTAINER(work, struct deed, work);
    struct sim *w = d->sim;
    struct act *a = &w->acts[d->act];

    (void)err;
    w->works_out--;
    if (rc != BS_OK)
        hit(w, DEED_ACT_UNAVAILABLE);
    if (rc != BS_OK || w->crashing) {
        if (a->kind == BS_OP_QUEUE_PAUSE)
            w->unsure[a->queue] = true;
        free(d);
        return;
    }
    a->answered = true;
    a->rc = d->op.rc;
    say(w, "deed %s by %s: %s", a->kind == BS_OP_ACT ? bs_action_name(a->action) : "other",
        d->operator, bs_rc_name(a->rc));
    if (a->kind == BS_OP_ACT)
        act_done(w, d, a);
    else if (a->rc != BS_OK && !(a->kind == BS_OP_TOKEN_REVOKE && a->rc == BS_E_NOT_FOUND))
        broken(w, "operation %d is answered %s: %s", (int)a->kind, bs_rc_name(a->rc),
               d->op.err.msg);
    else if (a->kind == BS_OP_QUEUE_PAUSE)
        pause_done(w, a);
    else if (a->kind == BS_OP_ALERT)
        hit(w, DEED_ALERT);
    else if (a->rc == BS_OK)
        hit(w, a->kind == BS_OP_TOKEN_ADD ? DEED_TOKEN_ADD : DEED_TOKEN_REVOKE);
    free(d);
}

static struct deed *deed_new(struct sim *w, enum bs_op_kind kind)
{
    struct deed *d = (struct deed *)calloc(1, sizeof(*d));

    BS_ASSERT(d != NULL && w->acts_n < SIM_ACTS);
    d->sim = w;
    d->act = w->acts_n++;
    (void)snprintf(d->operator, sizeof(d->operator), "op-%u", d->act);
    w->acts[d->act] = (struct act){ .kind = kind };
    d->op.kind = kind;
    d->op.id = bs_ids_next(&w->p.ids, sim_now(w));
    d->op.now = sim_now(w);
    d->list[0] = &d->op;
    d->work = (struct bs_work){ .rank = BS_RANK_PEOPLE, .ops = d->list, .n = 1, .done = on_done };
    return d;
}

static void deed_send(struct sim *w, struct deed *d)
{
    if (bs_committer_send(w->p.committer, &d->work))
        w->works_out++;
    else
        free(d);
}

static const struct bs_policy *policy_of(const struct sim *w, const struct row *r)
{
    for (uint32_t i = 0; i < SIM_QUEUES; i++)
        if (bs_str_is(w->confs[i].biz_type, r->biz_type))
            return &w->confs[i].policy;
    return NULL;
}

/* Mostly something sensible for the state, sometimes anything. */
static enum bs_action choose_action(struct sim *w, const struct row *r)
{
    if (chance(w, 20))
        return (enum bs_action)below(w, BS_ACTION_COUNT);
    if (r->state == BS_MANUAL) {
        if (strcmp(r->manual_code, "HELD") == 0)
            return chance(w, 70) ? BS_ACT_UNHOLD : BS_ACT_RETRY;
        return chance(w, 60) ? BS_ACT_RETRY : chance(w, 50) ? BS_ACT_RESOLVE : BS_ACT_CLOSE;
    }
    if (r->state == BS_PROCESSING)
        return chance(w, 40) ? BS_ACT_CLOSE : chance(w, 50) ? BS_ACT_HOLD : BS_ACT_RESOLVE;
    return chance(w, 40) ? BS_ACT_RETRY : chance(w, 70) ? BS_ACT_HOLD : BS_ACT_CLOSE;
}

/* The last one that could be claimed before those that are blocked behind its key. */
static struct tale *choose_keeper(struct sim *w)
{
    for (uint32_t i = 0; i < w->tales_n; i++) {
        const struct row *b = &w->tales[i].row;

        for (uint32_t k = 0; b->blocked && k < w->tales_n; k++)
            if (w->tales[k].row.due_at && strcmp(w->tales[k].row.serial_key, b->serial_key) == 0)
                return &w->tales[k];
    }
    return NULL;
}

static struct tale *choose_tale(struct sim *w)
{
    struct tale *keeper = w->opt.hot && chance(w, 50) ? choose_keeper(w) : NULL;

    if (keeper)
        return keeper;
    for (int tries = 0; tries < 12; tries++) {
        struct tale *t = &w->tales[below(w, w->tales_n)];

        if (t->present && ((t->row.state != BS_SUCCESS && t->row.state != BS_CLOSED) || tries > 9))
            return t;
    }
    return NULL;
}

static void act_on_task(struct sim *w)
{
    static const char *const conclusions[] = { "not_done", "done_elsewhere", "other" };
    struct tale *t = w->tales_n ? choose_tale(w) : NULL;

    if (!t)
        return;
    enum bs_action action = choose_action(w, &t->row);
    struct deed *d = deed_new(w, BS_OP_ACT);
    struct bs_op_act *a = &d->op.act;

    w->acts[d->act].task_id = a->task_id = t->row.id;
    w->acts[d->act].action = a->action = action;
    a->reason = BS_STR("because");
    if (action == BS_ACT_CLOSE || action == BS_ACT_RESOLVE)
        a->conclusion = bs_str_of(conclusions[below(w, 3)]);
    a->operator= bs_str_of(d->operator);
    if (chance(w, 40))
        w->acts[d->act].expected = a->expected_version = t->row.version;
    a->policy = policy_of(w, &t->row);
    deed_send(w, d);
}

static void pause_queue(struct sim *w, uint32_t queue, bool paused)
{
    struct deed *d = deed_new(w, BS_OP_QUEUE_PAUSE);

    w->acts[d->act].queue = queue;
    w->acts[d->act].paused = paused;
    d->op.queue_pause = (struct bs_op_queue_pause){ .biz_type = w->confs[queue].biz_type,
                                                    .reason = BS_STR("because"),
                                                    .operator= bs_str_of(d->operator),
                                                    .paused = paused };
    deed_send(w, d);
}

static void change_token(struct sim *w)
{
    bool add = chance(w, 60);
    struct deed *d = deed_new(w, add ? BS_OP_TOKEN_ADD : BS_OP_TOKEN_REVOKE);

    if (add) {
        (void)snprintf(d->name, sizeof(d->name), "t-%u", d->act);
        d->op.token_add = (struct bs_op_token_add){ .name = bs_str_of(d->name),
                                                    .role = BS_STR("viewer"),
                                                    .hash = bs_sha256_of(bs_str_of(d->name)),
                                                    .operator= bs_str_of(d->operator) };
    } else {
        uint32_t of = below(w, d->act + 1);

        while (of > 0 && w->acts[of].kind != BS_OP_TOKEN_ADD)
            of--;
        (void)snprintf(d->name, sizeof(d->name), "t-%u", of);
        d->op.token_revoke = (struct bs_op_token_revoke){ .name = bs_str_of(d->name),
                                                          .operator= bs_str_of(d->operator) };
    }
    deed_send(w, d);
}

static void raise_alert(struct sim *w)
{
    struct deed *d = deed_new(w, BS_OP_ALERT);

    d->op.alert = (struct bs_op_alert){ .kind = BS_STR("drill"),
                                        .subject = bs_str_of(d->operator),
                                        .message = BS_STR("a drill") };
    deed_send(w, d);
}

void people_step(struct sim *w)
{
    uint32_t r = below(w, 100);

    w->next_act = bs_time_add(sim_now(w), BS_US(below(w, (uint32_t)w->opt.act_every.us * 2)));
    if (!w->p.up || w->p.draining || w->acts_n >= SIM_ACTS_MOST)
        return;
    if (r < 78)
        act_on_task(w);
    else if (r < 88)
        pause_queue(w, (w->opt.first_queue + below(w, w->opt.queues_used)) % SIM_QUEUES,
                    chance(w, w->opt.hot ? 70 : 50));
    else if (r < 96)
        change_token(w);
    else
        raise_alert(w);
}

/* For the quiet phase: repeated until every pause is lifted. */
void people_resume_all(struct sim *w)
{
    for (uint32_t i = 0; i < SIM_QUEUES; i++)
        if (w->paused[i] || w->unsure[i])
            pause_queue(w, i, false);
}
