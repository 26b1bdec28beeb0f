/* Clients: each request is repeated until its answer is heard; some are sent twice, some come again
 * with other content, some as another request for the same effect. */
#include "sim.h"

#include <string.h>

enum { SUB_OPS_MAX = 6 };

/* One submission on its way: one op or a small batch. */
struct sub {
    struct bs_work work;
    struct bs_op ops[SUB_OPS_MAX];
    struct bs_op *list[SUB_OPS_MAX];
    uint32_t intents[SUB_OPS_MAX];
    bool first[SUB_OPS_MAX]; /* nobody has ever sent this request_id before */
    struct sim *sim;
    struct sub *next;
    struct bs_arena arena;
    bs_rc rc;
    bool lost; /* the client will not hear the answer */
};

/* ---- what they want ---- */

static void fresh_intent(struct sim *w, struct intent *it, uint32_t i)
{
    static const char *const extras[] = { "",
                                          ",\"priority\":0",
                                          ",\"priority\":3",
                                          ",\"delay\":\"3s\"",
                                          ",\"max_retry_count\":2",
                                          ",\"extra_data\":{\"k\":[1,2]}" };

    *it =
        (struct intent){ .queue = (w->opt.first_queue + below(w, w->opt.queues_used)) % SIM_QUEUES,
                         .group = i };
    (void)snprintf(it->request_id, sizeof(it->request_id), "r-%u", i);
    (void)snprintf(it->biz_id, sizeof(it->biz_id), "b-%u", i);
    if (chance(w, w->opt.hot ? 95 : 65))
        (void)snprintf(it->order_no, sizeof(it->order_no), "o-%u", below(w, w->opt.orders));
    (void)snprintf(it->extra, sizeof(it->extra), "%s", extras[below(w, BS_COUNT(extras))]);
    it->amount = 1000 + (int64_t)i * 10;
    if (chance(w, 3)) {
        it->queue = SIM_QUEUES;
        it->park = true;
    }
    (void)snprintf(it->biz_type, sizeof(it->biz_type), "%.*s",
                   it->park ? 7 : (int)w->confs[it->queue].biz_type.n,
                   it->park ? "NOWHERE" : w->confs[it->queue].biz_type.p);
}

/* The same request with other content, or another request for what an earlier one is about. */
static void twist_intent(struct sim *w, struct intent *it, uint32_t i)
{
    uint32_t of = below(w, i);
    char request_id[SIM_TEXT];

    (void)snprintf(request_id, sizeof(request_id), "r-%u", i);
    *it = w->intents[of];
    it->sends = it->in_flight = 0;
    it->heard = false;
    if (chance(w, 40)) {
        it->variant++;
        it->amount += 1 + below(w, 5);
        return;
    }
    it->group = i;
    memcpy(it->request_id, request_id, sizeof(request_id));
    if (chance(w, 40))
        it->amount += 1 + below(w, 5);
}

static void add_intent(struct sim *w)
{
    uint32_t i = w->intents_n;

    BS_ASSERT(i < SIM_INTENTS);
    if (i > 4 && chance(w, 12))
        twist_intent(w, &w->intents[i], i);
    else
        fresh_intent(w, &w->intents[i], i);
    w->intents[i].next_at = sim_now(w);
    w->intents_n++;
}

/* ---- sending ---- */

static bool fill_op(struct sim *w, struct sub *s, uint32_t at, uint32_t i)
{
    struct intent *it = &w->intents[i];
    struct bs_door door = { &w->slot, &w->p.ids };
    struct bs_field_errors errors = { .n = 0 };
    struct bs_err err = { 0 };
    char order[96] = "";

    if (it->order_no[0])
        (void)snprintf(order, sizeof(order), ",\"order_no\":\"%s\"", it->order_no);
    struct bs_str json = bs_arena_fmt(
        &s->arena,
        "{\"biz_type\":\"%s\",\"biz_id\":\"%s\",\"request_id\":\"%s\"%s,\"amount\":\"%lld\","
        "\"currency\":\"CNY\"%s%s,\"payload\":{\"n\":%lld, \"f\":1.10,"
        "\"i\":12345678901234567890123,\"a\":1,\"a\":2}}",
        it->biz_type, it->biz_id, it->request_id, order, (long long)it->amount, it->extra,
        it->park ? ",\"park\":true" : "", (long long)it->amount);
    struct bs_door_input in = { .json = json, .who = BS_STR("client"), .now = sim_now(w) };
    bs_rc rc = bs_door_read(&door, &in, &s->arena, &s->ops[at], &errors, &err);

    if (rc == BS_OK)
        return true;
    if (!w->gone)
        broken(w, "the door refuses %s: %s %s", it->request_id, err.msg,
               errors.n ? errors.items[0].code : "");
    return false;
}

static void on_done(struct bs_work *work, bs_rc rc, const struct bs_err *err)
{
    struct sub *s = BS_CONTAINER(work, struct sub, work);
    struct sim *w = s->sim;

    (void)err;
    s->rc = rc;
    s->lost = s->lost || w->crashing;
    s->next = w->answers;
    w->answers = s;
    w->works_out--;
}

static struct sub *sub_new(struct sim *w)
{
    struct sub *s = (struct sub *)calloc(1, sizeof(*s));

    BS_ASSERT(s != NULL);
    s->sim = w;
    s->work.rank = BS_RANK_INTAKE;
    s->work.ops = s->list;
    s->work.done = on_done;
    return s;
}

static void sub_free(struct sub *s)
{
    bs_arena_free(&s->arena);
    free(s);
}

static void sub_add(struct sim *w, struct sub *s, uint32_t i)
{
    struct intent *it = &w->intents[i];
    uint32_t at = s->work.n;

    it->next_at = bs_time_add(sim_now(w), some_ms(w, 1000, 5000));
    if (!fill_op(w, s, at, i))
        return;
    s->ops[at].submit.caller_waits = true;
    s->list[at] = &s->ops[at];
    s->intents[at] = i;
    s->first[at] = w->intents[it->group].sends == 0;
    w->intents[it->group].sends++;
    it->in_flight++;
    s->work.n++;
    s->work.bytes += 128;
}

static void send(struct sim *w, struct sub *s)
{
    if (s->work.n && bs_committer_send(w->p.committer, &s->work)) {
        w->works_out++;
        s->lost = !w->quiet && chance(w, 6);
        if (s->lost)
            fault_hit(w, FAULT_ANSWER_LOST);
        return;
    }
    for (uint32_t k = 0; k < s->work.n; k++) {
        w->intents[s->intents[k]].in_flight--;
        w->intents[w->intents[s->intents[k]].group].sends--;
        atomic_fetch_add(&w->hits->deeds[DEED_SUBMIT_MAILBOX_FULL], 1);
    }
    sub_free(s);
}

static bool wants(const struct sim *w, const struct intent *it)
{
    return !it->heard && it->next_at.us <= sim_now(w).us;
}

static void send_due(struct sim *w)
{
    struct sub *s = sub_new(w);
    uint32_t most = chance(w, 20) ? SUB_OPS_MAX : 1;

    for (uint32_t i = 0; i < w->intents_n && s->work.n < most; i++)
        if (wants(w, &w->intents[i]))
            sub_add(w, s, i);
    send(w, s);
}

/* A message delivered twice: the answer of the first is known already. */
static void send_again(struct sim *w)
{
    struct sub *s = sub_new(w);

    sub_add(w, s, below(w, w->intents_n));
    send(w, s);
}

static bool all_heard(const struct sim *w)
{
    for (uint32_t i = 0; i < w->intents_n; i++)
        if (!w->intents[i].heard)
            return false;
    return true;
}

/* Repetitions and conflicts make no task: more is submitted until there are as many as wanted. */
bool clients_want_more(const struct sim *w)
{
    return w->intents_n < w->opt.tasks ||
           (w->tales_n < w->opt.tasks && w->intents_n < SIM_INTENTS && all_heard(w));
}

/* Requests that come once more after the end. */
static bool old_left(const struct sim *w)
{
    return w->after && w->resent < w->intents_n;
}

struct bs_time clients_next(const struct sim *w)
{
    struct bs_time next = BS_NEVER;

    if (!w->p.up || w->p.draining)
        return BS_NEVER;
    if (clients_want_more(w) || old_left(w))
        next = w->next_submit;
    for (uint32_t i = 0; i < w->intents_n; i++)
        if (!w->intents[i].heard)
            next = bs_time_min(next, w->intents[i].next_at);
    return next;
}

/* After the end, one after the other. */
static void send_old(struct sim *w)
{
    struct sub *s = sub_new(w);

    while (w->resent < w->intents_n && s->work.n < SUB_OPS_MAX)
        sub_add(w, s, w->resent++);
    w->next_submit = bs_time_add(sim_now(w), BS_MS(100));
    send(w, s);
}

void clients_step(struct sim *w)
{
    if (clients_want_more(w) && w->next_submit.us <= sim_now(w).us) {
        w->next_submit =
            bs_time_add(sim_now(w), BS_US(below(w, (uint32_t)w->opt.submit_every.us * 2)));
        for (uint32_t n = chance(w, 10) ? 6 : 1; n > 0 && clients_want_more(w); n--)
            add_intent(w);
        if (chance(w, 8))
            send_again(w);
        return;
    }
    if (old_left(w) && w->next_submit.us <= sim_now(w).us)
        send_old(w);
    else
        send_due(w);
}

bool clients_done(const struct sim *w)
{
    return !clients_want_more(w) && !w->works_out && all_heard(w) && !old_left(w);
}

void clients_again(struct sim *w)
{
    w->after = true;
    w->resent = 0;
    w->next_submit = bs_time_add(sim_now(w), BS_SEC(2));
}

/* ---- what they hear ---- */

static void believe(struct sim *w, const struct intent *it, int64_t id, bool by_effect)
{
    struct tale *t = tale_of(w, id);

    if (!t || !t->present) {
        broken(w, "%s was acknowledged as task %lld, which is not there", it->request_id,
               (long long)id);
        return;
    }
    if (t->row.amount != it->amount)
        broken(w, "%s was acknowledged as task %lld, which has other content", it->request_id,
               (long long)id);
    if (!by_effect && strcmp(t->row.request_id, it->request_id) != 0 &&
        strcmp(t->row.effect_key, it->biz_id) != 0)
        broken(w, "%s was acknowledged as task %lld of %s", it->request_id, (long long)id,
               t->row.request_id);
    if (by_effect && strcmp(t->row.effect_key, it->biz_id) != 0)
        broken(w, "%s is linked to a task with another effect key", it->request_id);
    if (t->archived)
        atomic_fetch_add(&w->hits->deeds[t->purged ? DEED_AGAIN_PURGED : DEED_AGAIN_ARCHIVED], 1);
    t->acked = true;
    t->acked_amount = it->amount;
}

/* Refused as contradicting: then something else must really be there. */
static void doubt_conflict(struct sim *w, const struct intent *it, bool by_effect)
{
    for (uint32_t i = 0; i < w->tales_n; i++) {
        const struct row *r = &w->tales[i].row;
        bool same = by_effect ? strcmp(r->effect_key, it->biz_id) == 0
                              : strcmp(r->request_id, it->request_id) == 0 ||
                                    strcmp(r->effect_key, it->biz_id) == 0;

        if (w->tales[i].present && same && r->amount != it->amount)
            return;
    }
    broken(w, "%s was refused as a conflict with nothing", it->request_id);
}

static void hear(struct sim *w, struct intent *it, const struct bs_op *op, bool first)
{
    static const enum sim_deed deeds[] = {
        [BS_SUBMITTED_CREATED] = DEED_SUBMIT_CREATED,
        [BS_SUBMITTED_DUPLICATE_REQUEST] = DEED_SUBMIT_DUPLICATE_REQUEST,
        [BS_SUBMITTED_DUPLICATE_EFFECT] = DEED_SUBMIT_DUPLICATE_EFFECT,
        [BS_SUBMITTED_CONFLICT_REQUEST] = DEED_SUBMIT_CONFLICT_REQUEST,
        [BS_SUBMITTED_CONFLICT_EFFECT] = DEED_SUBMIT_CONFLICT_EFFECT,
    };
    enum bs_submitted what = op->submit.ret_what;

    if (op->rc != BS_OK && op->rc != BS_E_CONFLICT) {
        broken(w, "the store refuses %s: %s", it->request_id, op->err.msg);
        return;
    }
    it->heard = true;
    atomic_fetch_add(&w->hits->deeds[deeds[what]], 1);
    say(w, "heard %s what=%d task=%lld", it->request_id, (int)what,
        (long long)op->submit.ret_task_id);
    if (what == BS_SUBMITTED_CREATED || what == BS_SUBMITTED_DUPLICATE_REQUEST ||
        what == BS_SUBMITTED_DUPLICATE_EFFECT)
        believe(w, it, op->submit.ret_task_id, what == BS_SUBMITTED_DUPLICATE_EFFECT);
    else
        doubt_conflict(w, it, what == BS_SUBMITTED_CONFLICT_EFFECT);
    if (first && (what == BS_SUBMITTED_DUPLICATE_REQUEST || what == BS_SUBMITTED_CONFLICT_REQUEST))
        broken(w, "%s was sent once and is called a repetition", it->request_id);
}

static void hear_all(struct sim *w, struct sub *s)
{
    for (uint32_t k = 0; k < s->work.n; k++) {
        struct intent *it = &w->intents[s->intents[k]];

        it->in_flight--;
        if (s->lost)
            continue;
        if (s->rc == BS_OK)
            hear(w, it, &s->ops[k], s->first[k]);
        else
            atomic_fetch_add(&w->hits->deeds[s->rc == BS_E_UNKNOWN ? DEED_SUBMIT_UNKNOWN
                                                                   : DEED_SUBMIT_UNAVAILABLE],
                             1);
        if (s->rc == BS_OK)
            continue;
        if (s->rc != BS_E_UNAVAILABLE && s->rc != BS_E_UNKNOWN && s->rc != BS_E_BUSY)
            broken(w, "a submission as a whole is refused: %s", bs_rc_name(s->rc));
    }
}

void clients_check_answers(struct sim *w)
{
    while (w->answers) {
        struct sub *s = w->answers;

        w->answers = s->next;
        hear_all(w, s);
        sub_free(s);
    }
}
