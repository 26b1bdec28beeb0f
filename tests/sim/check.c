/* The promises of DESIGN 2, held against every change of the store and every call. What really
 * happened at the shop is known here, whatever the process believes. */
#include "sim.h"

#include <string.h>

enum { DUE_MAX_US = 8000000 };

static void hit(struct sim *w, enum sim_deed d)
{
    atomic_fetch_add(&w->hits->deeds[d], 1);
}

static uint32_t queue_of(const struct sim *w, const struct row *r)
{
    for (uint32_t i = 0; i < SIM_QUEUES; i++)
        if (bs_str_is(w->confs[i].biz_type, r->biz_type))
            return i;
    return SIM_QUEUES;
}

/* ---- one attempt's end against the truth ---- */

struct ending {
    const struct exchange *post, *look; /* of this attempt; NULL: none */
    bool sent;                          /* a byte of the request may have left */
    enum truth truth;                   /* of the reply that reached the executor */
};

static struct ending ending_of(const struct sim *w, const struct tale *t, int64_t token)
{
    struct ending e = { .truth = TRUTH_OPEN };

    if (t->last_post && w->xs[t->last_post - 1].fence == token)
        e.post = &w->xs[t->last_post - 1];
    if (t->last_look && w->xs[t->last_look - 1].fence == token)
        e.look = &w->xs[t->last_look - 1];
    e.sent = e.post && e.post->sent_at.us <= sim_now(w).us;
    if (e.post && e.post->delivered)
        e.truth = e.post->truth;
    return e;
}

static bool look_says(const struct ending *e, enum bs_verdict v)
{
    return e->look && e->look->verdict == v;
}

static bool look_needs_person(const struct ending *e)
{
    return e->look && !e->post &&
           (e->look->verdict == BS_VERDICT_NOT_FOUND ||
            e->look->verdict == BS_VERDICT_STATE_CONFLICT || e->look->plan == PLAN_LOOK_AMOUNT);
}

/* Whether the world gives a reason for this event. */
static bool is_backed(const struct ending *e, enum bs_event event, bool was_unknown)
{
    bool failed = e->truth == TRUTH_FAILED, unknown = e->truth == TRUTH_UNKNOWN;
    bool idle = e->truth == TRUTH_NOT_PROCESSED;
    bool behind = e->post && e->post->behind; /* an open breaker: costs nothing */
    const struct {
        enum bs_event event;
        bool backed;
    } reasons[] = {
        { BS_EV_SUCCEEDED, e->truth == TRUTH_SUCCESS },
        { BS_EV_ALREADY_FINISHED, e->truth == TRUTH_FINISHED || look_says(e, BS_VERDICT_FINISHED) },
        { BS_EV_FAILED, failed && !behind },
        { BS_EV_FAILED_LAST, failed && !behind },
        { BS_EV_UNKNOWN, unknown },
        { BS_EV_UNKNOWN_LAST, unknown || (failed && !behind && was_unknown) },
        { BS_EV_NEEDS_PERSON, e->truth == TRUTH_MANUAL || look_needs_person(e) },
        { BS_EV_NOT_PROCESSED, idle || !e->post || (failed && behind) },
        { BS_EV_RELEASED_UNSENT, !e->sent && (!e->post || e->truth == TRUTH_CANCELLED) },
        { BS_EV_PENDING_CLOSED, !e->sent || failed || idle },
    };

    for (size_t i = 0; i < BS_COUNT(reasons); i++)
        if (reasons[i].event == event)
            return reasons[i].backed;
    return true;
}

static bool is_expiry(enum bs_event e)
{
    return e == BS_EV_LEASE_EXPIRED || e == BS_EV_WORKER_LOST;
}

static bool cleared(const struct ending *e)
{
    return e->look && e->look->clears;
}

/* A process that lives and has had two quiet seconds lets no lease of its own run out: what it
 * claimed it calls, settles, gives back or renews, and a result is never thrown away. */
static void check_not_dropped(struct sim *w, const struct row *was, const struct row *is,
                              const struct ending *e)
{
    int64_t since = BS_MAX(was->locked_at, w->well_since.us);

    if (!w->p.up || was->locked_at < w->p.started_at.us || since + 2000000 >= was->locked_until)
        return;
    broken(w, "%s was left to expire by a living process%s", is->request_id,
           e->post && e->post->delivered ? ", its result thrown away" : "");
}

/* What a server asked for with Retry-After is waited for, unless a person says otherwise. */
static void check_wish(struct sim *w, const struct tale *t, const struct row *is,
                       const struct exchange *x)
{
    if (is->state == BS_RETRY && x->delivered && x->wish.given && !x->cancelled &&
        t->touched_at.us < x->delivered_at.us &&
        is->next_at < x->delivered_at.us + x->wish.delay.us)
        broken(w, "%s comes back %lld ms before the server wished", is->request_id,
               (long long)(x->delivered_at.us + x->wish.delay.us - is->next_at) / 1000);
}

/* "Not found" is final after three explicit answers in a row over the queue's grace, not before and
 * not later. */
static void check_not_found(struct sim *w, struct tale *t, const struct ending *e,
                            const struct moved *m)
{
    bool said = look_says(e, BS_VERDICT_NOT_FOUND) && !e->post;

    if (is_expiry(m->event) || (m->event == BS_EV_RELEASED_UNSENT && !e->look))
        return;
    if (!said) {
        t->not_found = 0;
        return;
    }
    if (t->not_found++ == 0)
        t->not_found_at = (struct bs_time){ m->at };
    bool final = t->not_found >= 3 && m->at - t->not_found_at.us >=
                                          w->confs[e->look->queue].policy.order_not_found_grace.us;

    if ((m->event == BS_EV_NEEDS_PERSON && !final) || (m->event == BS_EV_NOT_PROCESSED && final))
        broken(w, "%s was not found %u times in %lld ms and goes on as %s", t->row.request_id,
               t->not_found, (long long)(m->at - t->not_found_at.us) / 1000,
               bs_event_name(m->event));
}

static void check_ending(struct sim *w, struct tale *t, const struct row *was, const struct row *is,
                         const struct moved *m)
{
    struct ending e = ending_of(w, t, m->token);
    bool marked = is_expiry(m->event) || m->event == BS_EV_RELEASED_SENT ||
                  (e.sent && (e.truth == TRUTH_UNKNOWN || e.truth == TRUTH_CANCELLED ||
                              e.truth == TRUTH_OPEN));

    hit(w, is_expiry(m->event) ? DEED_REAP : DEED_FINISH);
    if (is_expiry(m->event)) {
        check_not_dropped(w, was, is, &e);
        if (e.post)
            w->xs[t->last_post - 1].expired_at = sim_now(w);
    }
    check_not_found(w, t, &e, m);
    if (!is_backed(&e, m->event, was->unknown))
        broken(w, "%s fence=%lld ends as %s, but the truth is %d%s", is->request_id,
               (long long)m->token, bs_event_name(m->event), (int)e.truth,
               e.sent ? " after sending" : ", nothing sent");
    if (marked && m->to != BS_SUCCESS && !is->unknown && is->state != BS_SUCCESS)
        broken(w, "%s fence=%lld left PROCESSING by %s without a verdict and is not marked unknown",
               is->request_id, (long long)m->token, bs_event_name(m->event));
    if (e.post)
        check_wish(w, t, is, e.post);
    if (m->event == BS_EV_PENDING_CLOSED && was->unknown && !cleared(&e))
        broken(w, "%s is closed by a waiting close although its outcome is unknown",
               is->request_id);
    if (m->event == BS_EV_FAILED_LAST && was->unknown && !cleared(&e))
        broken(w, "%s goes from unknown to failed without a look-up", is->request_id);
}

/* ---- one task's change ---- */

static bool ends_attempt(const struct moved *m)
{
    return m->from == BS_PROCESSING && m->event != BS_EV_ASK_CLOSE;
}

static void refresh(struct tale *t)
{
    t->not_found = 0;
    t->ran_us = 0;
    t->lost_us = 0;
}

/* Moves that alert, for counting the alerts; a waiting request's end hides whether it was a hold.
 */
static void count_alerting(struct sim *w, const struct row *r, enum bs_event e)
{
    uint32_t q = queue_of(w, r);

    w->to_person[q] += e == BS_EV_FAILED_LAST || e == BS_EV_UNKNOWN_LAST ||
                       e == BS_EV_NEEDS_PERSON || e == BS_EV_WORKER_LOST;
    w->perhaps_to_person[q] += e == BS_EV_PENDING_MANUAL;
}

static void check_moves(struct sim *w, struct tale *t, const struct row *was, const struct row *is,
                        const struct moved *moves, uint32_t n)
{
    for (uint32_t i = 0; i < n && !w->broken; i++) {
        const struct moved *m = &moves[i];
        struct bs_step step = bs_fsm_step(m->from, m->event);

        say(w, "moved %s %s -> %s by %s", is->request_id, m->from ? bs_state_name(m->from) : "-",
            bs_state_name(m->to), bs_event_name(m->event));
        atomic_fetch_add(&w->hits->moves[m->from][m->event], 1);
        if (step.to != m->to)
            broken(w, "%s went from %s by %s to %s", is->request_id,
                   m->from ? bs_state_name(m->from) : "-", bs_event_name(m->event),
                   bs_state_name(m->to));
        if ((step.fx & BS_FX_ACTOR) && !m->by_person)
            broken(w, "%s was changed by %s and nobody did it", is->request_id,
                   bs_event_name(m->event));
        if (m->by_person)
            t->touched_at = sim_now(w);
        if (m->event == BS_EV_RETRY_FRESH)
            refresh(t);
        if (m->event == BS_EV_CLAIM)
            hit(w, DEED_CLAIM);
        if (m->event == BS_EV_NO_HANDLER)
            hit(w, DEED_ORPHANS);
        if (m->event == BS_EV_PARK)
            hit(w, DEED_PARKED);
        count_alerting(w, is, m->event);
        if (ends_attempt(m))
            check_ending(w, t, was, is, m);
        if (i + 1 == n && !w->broken)
            ages_check(w, t, is, m);
    }
}

/* What the moves add to the two counters of a budget. */
struct spent {
    int32_t claims, retries, crashes, maybe; /* maybe: a waiting request's end hides which it was */
    bool fresh;
};

static struct spent spent_by(const struct moved *moves, uint32_t n)
{
    struct spent s = { 0 };

    for (uint32_t i = 0; i < n; i++) {
        enum bs_event e = moves[i].event;

        s.claims += e == BS_EV_CLAIM;
        s.retries += e == BS_EV_FAILED || e == BS_EV_FAILED_LAST || e == BS_EV_UNKNOWN ||
                     e == BS_EV_UNKNOWN_LAST;
        s.crashes += is_expiry(e);
        s.maybe += e == BS_EV_PENDING_MANUAL || e == BS_EV_PENDING_CLOSED;
        s.fresh = s.fresh || e == BS_EV_RETRY_FRESH;
    }
    return s;
}

static bool adds_up(int32_t was, int32_t is, int32_t added, int32_t maybe)
{
    return is >= was + added && is <= was + added + maybe;
}

static void check_counters(struct sim *w, const struct row *was, const struct row *is,
                           const struct moved *moves, uint32_t n)
{
    struct spent s = spent_by(moves, n);

    if (is->attempt_no != was->attempt_no + s.claims)
        broken(w, "%s: attempt %d became %d with %d claims", is->request_id, was->attempt_no,
               is->attempt_no, s.claims);
    if (s.claims ? is->token <= was->token : is->token != was->token)
        broken(w, "%s: token %lld became %lld with %d claims", is->request_id,
               (long long)was->token, (long long)is->token, s.claims);
    if (is->version < was->version)
        broken(w, "%s: version went back", is->request_id);
    if (is->retry_count > is->max_retry_count)
        broken(w, "%s: %d executions were counted, %d are allowed", is->request_id, is->retry_count,
               is->max_retry_count);
    if (!s.fresh && (!adds_up(was->retry_count, is->retry_count, s.retries, s.maybe) ||
                     !adds_up(was->crash_count, is->crash_count, s.crashes, s.maybe)))
        broken(w, "%s: %d retries and %d crashes became %d and %d with %d and %d more",
               is->request_id, was->retry_count, was->crash_count, is->retry_count, is->crash_count,
               s.retries, s.crashes);
}

/* The mark is sticky. */
static void check_mark(struct sim *w, const struct tale *t, const struct row *was,
                       const struct row *is, const struct moved *moves, uint32_t n)
{
    if (!was->unknown || is->unknown || is->state == BS_SUCCESS)
        return;
    for (uint32_t i = 0; i < n; i++) {
        struct ending e = ending_of(w, t, moves[i].token);

        if (ends_attempt(&moves[i]) && cleared(&e))
            return;
    }
    broken(w, "%s is no longer unknown, and no look-up has said so", is->request_id);
}

static void check_shape(struct sim *w, const struct row *is)
{
    bool waits = is->state == BS_WAITING || is->state == BS_RETRY;

    if (waits != (is->due_at != 0 || is->blocked) || (is->due_at != 0 && is->blocked))
        broken(w, "%s is %s with due=%lld blocked=%d", is->request_id, bs_state_name(is->state),
               (long long)is->due_at, is->blocked);
    if (is->state == BS_FAILED)
        broken(w, "%s rests in FAILED", is->request_id);
    if ((is->state == BS_PROCESSING) != (is->locked_until != 0))
        broken(w, "%s is %s with a lease until %lld", is->request_id, bs_state_name(is->state),
               (long long)is->locked_until);
    if (is->state == BS_MANUAL && !is->manual_code[0])
        broken(w, "%s is in MANUAL and nobody knows why", is->request_id);
    if (is->state == BS_CLOSED && !is->conclusion[0])
        broken(w, "%s is CLOSED without a conclusion", is->request_id);
}

static void check_lease(struct sim *w, struct tale *t, const struct row *was, const struct row *is)
{
    uint32_t q = queue_of(w, is);

    if (is->state != BS_PROCESSING)
        return;
    if (is->token == was->token && is->locked_until < was->locked_until)
        broken(w, "the lease of %s got shorter", is->request_id);
    if (is->token == was->token && is->locked_until > was->locked_until)
        hit(w, DEED_RENEW);
    if (t->last_post && w->xs[t->last_post - 1].fence == is->token)
        w->xs[t->last_post - 1].lease_until = (struct bs_time){ is->locked_until };
    if (is->token != was->token && q < SIM_QUEUES && w->paused[q] && w->p.up &&
        is->locked_at > w->paused_at[q].us)
        broken(w, "%s was claimed while its queue is paused", is->request_id);
}

void check_new(struct sim *w, const struct tale *t)
{
    for (uint32_t i = 0; i < w->tales_n; i++) {
        const struct tale *o = &w->tales[i];

        if (o != t && strcmp(o->row.request_id, t->row.request_id) == 0 &&
            strcmp(t->row.manual_code, "REQUEST_CONFLICT") != 0 &&
            strcmp(o->row.manual_code, "REQUEST_CONFLICT") != 0)
            broken(w, "%s has a second task%s", t->row.request_id,
                   o->purged     ? ", its first is purged"
                   : o->archived ? ", its first is in history"
                                 : "");
    }
}

void check_row(struct sim *w, struct tale *t, const struct row *was, const struct row *is,
               const struct moved *moves, uint32_t n)
{
    check_moves(w, t, was, is, moves, n);
    if (!w->broken)
        check_counters(w, was, is, moves, n);
    if (!w->broken)
        check_mark(w, t, was, is, moves, n);
    if (!w->broken)
        check_shape(w, is);
    if (!w->broken)
        check_lease(w, t, was, is);
}

/* ---- all tasks together ---- */

static bool same_key(const struct row *a, const struct row *b)
{
    return a->serial_key[0] && strcmp(a->serial_key, b->serial_key) == 0;
}

static void check_holder(struct sim *w, const struct row *r)
{
    for (uint32_t i = 0; i < w->tales_n; i++) {
        const struct row *o = &w->tales[i].row;

        if (o != r && o->state == BS_PROCESSING && same_key(r, o))
            broken(w, "%s and %s of one business object are PROCESSING at once", r->request_id,
                   o->request_id);
    }
}

static void check_blocked(struct sim *w, const struct row *r)
{
    for (uint32_t i = 0; i < w->tales_n; i++) {
        const struct row *o = &w->tales[i].row;

        if (same_key(r, o) && (o->running || o->state == BS_PROCESSING ||
                               (o->due_at != 0 && strcmp(o->biz_type, r->biz_type) == 0)))
            return;
    }
    broken(w, "%s is blocked and nothing will ever free it", r->request_id);
}

void check_together(struct sim *w)
{
    for (uint32_t i = 0; i < w->tales_n && !w->broken; i++) {
        const struct row *r = &w->tales[i].row;

        if (r->state == BS_PROCESSING && r->serial_key[0])
            check_holder(w, r);
        if (r->blocked)
            check_blocked(w, r);
    }
}

/* No task stays in PROCESSING beyond its lease plus one sweep; a lane full of claims may hold that
 * up a little. After a fault the committer looks again within a second. */
void check_leases(struct sim *w)
{
    static const int64_t sweep_us = 1000000, look_again_us = 1000000, lane_us = 200000;
    if (!w->p.up || faults_active(w))
        return;
    for (uint32_t i = 0; i < w->tales_n && !w->broken; i++) {
        const struct row *r = &w->tales[i].row;
        int64_t since = BS_MAX(r->locked_until, w->well_since.us + look_again_us);

        if (r->state == BS_PROCESSING && sim_now(w).us > since + sweep_us + lane_us)
            broken(w, "%s is still PROCESSING %lld ms after its lease", r->request_id,
                   (long long)(sim_now(w).us - r->locked_until) / 1000);
    }
}

/* When all is quiet and nothing runs, what is due does not lie about. */
void check_due(struct sim *w)
{
    if (!w->quiet || !w->p.up || w->p.draining || w->works_out ||
        net_next(w->p.net).us != BS_NEVER.us)
        return;
    for (uint32_t i = 0; i < SIM_QUEUES; i++)
        if (w->paused[i] || w->paused_at[i].us + DUE_MAX_US > sim_now(w).us)
            return;
    for (uint32_t i = 0; i < w->tales_n && !w->broken; i++) {
        const struct row *r = &w->tales[i].row;

        if (r->due_at && queue_of(w, r) < SIM_QUEUES && !gate_excuses(w, queue_of(w, r)) &&
            BS_MAX(r->due_at, w->well_since.us) + DUE_MAX_US < sim_now(w).us)
            broken(w, "%s has been due for %lld ms and nobody takes it", r->request_id,
                   (long long)(sim_now(w).us - r->due_at) / 1000);
    }
}

/* After a graceful end nothing of this process is held. */
void check_drained(struct sim *w)
{
    for (uint32_t i = 0; i < w->tales_n && !w->broken; i++) {
        const struct row *r = &w->tales[i].row;

        if (r->state == BS_PROCESSING && r->locked_at >= w->p.started_at.us)
            broken(w, "%s is left in PROCESSING by a process that ended by itself", r->request_id);
    }
}

/* ---- a call that begins ---- */

static void check_fence(struct sim *w, const struct exchange *x, const struct tale *t)
{
    const struct row *r = &t->row;
    const struct bs_queue_conf *q = &w->confs[x->queue];

    if (t->last_post && x->fence <= t->last_fence)
        broken(w, "%s is called with fence %lld after %lld", r->request_id, (long long)x->fence,
               (long long)t->last_fence);
    if (r->state != BS_PROCESSING || r->token != x->fence)
        broken(w, "%s is called with fence %lld, which is not its lease (%s, %lld)", r->request_id,
               (long long)x->fence, bs_state_name(r->state), (long long)r->token);
    if (sim_now(w).us >= r->locked_until || (!q->renew && x->deadline.us > r->locked_until))
        broken(w, "%s is called with %lld ms left of its lease", r->request_id,
               (long long)(r->locked_until - sim_now(w).us) / 1000);
}

static void check_looked(struct sim *w, const struct exchange *x, const struct tale *t)
{
    if (w->confs[x->queue].look == BS_LOOK_NONE)
        return;
    const struct exchange *l = t->last_look ? &w->xs[t->last_look - 1] : NULL;

    if (!l || l->fence != x->fence || l->verdict != BS_VERDICT_GO_ON || l->look_final)
        broken(w, "%s is called without a look-up that says go on", t->row.request_id);
}

static void check_overlap(struct sim *w, const struct exchange *x, const struct tale *t)
{
    for (uint32_t i = w->xs_live; i < w->xs_n && !w->broken; i++) {
        const struct exchange *y = &w->xs[i];

        if (y == x || y->is_look || y->end.us <= x->start.us || y->sent_at.us == BS_NEVER.us)
            continue;
        /* A call that was cut by a drain keeps its business object until its deadline, unless a
         * person takes its task out of the way. */
        const struct tale *cut = &w->tales[y->tale];
        if (y->cancelled && y->tale != x->tale &&
            (cut->touched_at.us >= y->delivered_at.us || cut->row.state == BS_MANUAL ||
             cut->row.state == BS_CLOSED))
            continue;
        if (y->lease_until.us > x->start.us && same_key(&t->row, &w->tales[y->tale].row))
            broken(w, "calls of %s and %s overlap at the shop and the first one's lease holds",
                   t->row.request_id, w->tales[y->tale].row.request_id);
    }
}

static void check_room(struct sim *w, const struct exchange *x)
{
    uint32_t running = 0, suspects = 0;

    for (uint32_t i = w->xs_live; i < w->xs_n; i++) {
        const struct exchange *y = &w->xs[i];

        if (!y->call)
            continue;
        running += y->queue == x->queue;
        suspects += y->suspect;
    }
    if (running > w->confs[x->queue].concurrency)
        broken(w, "%u calls run in a queue with concurrency %u", running,
               w->confs[x->queue].concurrency);
    if (x->suspect && suspects > 1)
        broken(w, "two suspects run at once in one process");
}

void check_post(struct sim *w, struct exchange *x)
{
    struct tale *t = &w->tales[x->tale];

    x->lease_until = (struct bs_time){ t->row.locked_until };
    x->suspect = t->row.crash_count >= 2;
    check_fence(w, x, t);
    if (!w->broken)
        check_looked(w, x, t);
    if (!w->broken)
        check_overlap(w, x, t);
    if (!w->broken)
        check_room(w, x);
    t->posts++;
    t->last_post = (uint32_t)(x - w->xs) + 1;
    t->last_fence = x->fence;
}

/* ---- the end ---- */

static void check_tale_end(struct sim *w, uint32_t i)
{
    const struct tale *t = &w->tales[i];
    const struct row *r = &t->row;
    uint32_t q = queue_of(w, r);

    atomic_fetch_add(&w->hits->ends[r->state], 1);
    if (r->state != BS_SUCCESS && r->state != BS_CLOSED && r->state != BS_MANUAL)
        broken(w, "%s ends in %s", r->request_id, bs_state_name(r->state));
    if (r->state == BS_SUCCESS && q < SIM_QUEUES && w->confs[q].policy.effect == BS_EFFECT_MONEY &&
        shop_effects(w, i) != 1)
        broken(w, "%s is a SUCCESS with %u effects", r->request_id, shop_effects(w, i));
    if (t->acked && r->amount != t->acked_amount)
        broken(w, "%s is not what was acknowledged", r->request_id);
}

/* A result that came after its lease was refused, and that was recorded. */
static void check_stale(struct sim *w)
{
    for (uint32_t i = 0; i < w->xs_n && !w->broken; i++) {
        const struct exchange *x = &w->xs[i];

        if (!x->is_look && !w->tales[x->tale].purged && x->expired_at.us && x->delivered &&
            x->incarnation == w->p.incarnation && x->delivered_at.us > x->expired_at.us &&
            !view_has_stale(w, x))
            broken(w, "the late result of %s fence=%lld is recorded nowhere",
                   w->tales[x->tale].row.request_id, (long long)x->fence);
    }
}

static void check_by_store(struct sim *w)
{
    BS_CLEANUP(bs_buf_free) struct bs_buf report = { .max = 65536 };
    struct bs_store_options o = { .url = w->url, .mode = BS_STORE_READER };
    struct bs_store *s = NULL;
    struct bs_err err = { 0 };

    bs_rc rc = bs_store_open(&o, &s, &err);
    if (rc == BS_OK) {
        past_read_all(w, s);
        rc = bs_store_check(s, &report, &err);
    }
    if (rc != BS_OK)
        broken(w, "the store cannot check itself: %s", err.msg);
    else if (report.len)
        broken(w, "check-store: %.*s", (int)BS_MIN(report.len, 300), report.p);
    bs_store_close(s);
}

void check_end(struct sim *w)
{
    for (uint32_t i = 0; i < w->tales_n && !w->broken; i++)
        check_tale_end(w, i);
    if (!w->broken && w->tales_n < w->opt.tasks)
        broken(w, "only %u tasks", w->tales_n);
    if (!w->broken && w->faults < 20)
        broken(w, "only %u faults", w->faults);
    if (!w->broken)
        check_stale(w);
    if (!w->broken)
        check_by_store(w);
}
