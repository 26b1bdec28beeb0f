/* What the end of an execution, or of a lease, makes of a task. The state comes
 * from the closed table; this file only chooses the event and the numbers. */
#include "core/decide.h"

#include "base/plant.h"
#include "core/manual_code.h"
#include "core/retry.h"

enum { CRASHES_MAX = 3, NOT_FOUND_MIN = 3, FAULTS_TOLD = 3 };

static struct bs_settlement unchanged(const struct bs_task *t)
{
    return (struct bs_settlement){
        .to = t->state,
        .retry_count = t->retry_count,
        .crash_count = t->crash_count,
        .defer_count = t->defer_count,
        .not_found_count = t->not_found_count,
        .first_not_found_at = t->first_not_found_at,
        .outcome_unknown = t->outcome_unknown,
        .pending = t->pending,
        .next_execute_at = t->next_execute_at,
    };
}

static void go(struct bs_settlement *s, enum bs_state from, enum bs_event event)
{
    struct bs_step step = bs_fsm_step(from, event);

    BS_ASSERT(step.to != BS_STATE_NONE);
    s->event = event;
    s->to = step.to;
    s->fx |= step.fx;
}

static void to_person(struct bs_settlement *s, enum bs_event event, const char *manual_code,
                      const char *alert_kind)
{
    go(s, BS_PROCESSING, event);
    BS_ASSERT(s->to == BS_MANUAL);
    s->manual_code = manual_code;
    s->alert_kind = alert_kind;
    if (!alert_kind)
        s->fx &= ~(uint32_t)BS_FX_ALERT;
}

/* ---- when next */

struct clock_and_luck {
    const struct bs_policy *policy;
    struct bs_time now;
    struct bs_rng rng;
};

/* Only what was asked for, spread upwards. */
static struct bs_time at_wish(const struct bs_outcome *o, struct clock_and_luck *c)
{
    static const struct bs_span at_once = { 0 };
    struct bs_backoff none = { .delays = &at_once,
                               .delays_n = 1,
                               .jitter_pct = c->policy->backoff.jitter_pct };

    return bs_retry_at_least(&none, 1, o->wish, c->now, &c->rng);
}

static struct bs_time after_counted(uint32_t n, const struct bs_outcome *o,
                                    struct clock_and_luck *c)
{
    const struct bs_backoff *b = &c->policy->backoff;

    if (!o->has_wish)
        return bs_retry_at(b, n, c->now, &c->rng);
    if (o->wish_may_shorten)
        return at_wish(o, c);
    return bs_retry_at_least(b, n, o->wish, c->now, &c->rng);
}

/* Everything that came back while the breaker is open may be tried again when it is probed. */
static struct bs_time behind_breaker(const struct bs_outcome *o, struct clock_and_luck *c)
{
    struct bs_outcome until = { .wish = bs_time_diff(o->not_before, c->now) };

    return at_wish(&until, c);
}

static struct bs_time after_deferred(uint32_t n, const struct bs_outcome *o,
                                     struct clock_and_luck *c)
{
    if (o->behind_breaker)
        return behind_breaker(o, c);
    struct bs_time own = bs_defer_at(n, c->policy->backoff.jitter_pct, c->now, &c->rng);

    return o->has_wish ? bs_time_max(own, at_wish(o, c)) : own;
}

/* ---- the numbers: what an outcome changes whatever becomes of the task */

static bool is_release(enum bs_outcome_kind k)
{
    return k == BS_OUT_UNSENT || k == BS_OUT_SENT;
}

static bool counts(enum bs_outcome_kind k)
{
    return k == BS_OUT_FAILED || k == BS_OUT_UNKNOWN;
}

static bool is_success(enum bs_outcome_kind k)
{
    return k == BS_OUT_SUCCESS || k == BS_OUT_FINISHED;
}

static bool mark_after(const struct bs_task *t, enum bs_outcome_kind k, enum bs_verdict looked)
{
    bool verdict = looked == BS_VERDICT_GO_ON || looked == BS_VERDICT_FINISHED ||
                   looked == BS_VERDICT_STATE_CONFLICT;

    if (is_success(k))
        return false;
    return k == BS_OUT_UNKNOWN || k == BS_OUT_SENT || (t->outcome_unknown && !verdict);
}

static void count_not_found(struct bs_settlement *s, struct bs_time now)
{
    if (s->not_found_count == 0)
        s->first_not_found_at = now;
    s->not_found_count++;
}

static void count(struct bs_settlement *s, const struct bs_task *t, const struct bs_outcome *o,
                  enum bs_outcome_kind kind, struct bs_time now)
{
    s->outcome_unknown = mark_after(t, kind, o->looked);
    if (kind == BS_OUT_NOT_FOUND) {
        count_not_found(s, now);
    } else if (kind != BS_OUT_UNSENT || o->looked != BS_VERDICT_NONE) {
        s->not_found_count = 0;
        s->first_not_found_at = BS_TIME_NONE;
    }
    if (counts(kind))
        s->retry_count++;
    if (kind == BS_OUT_NOT_PROCESSED)
        s->defer_count++;
    else if (!is_release(kind) && kind != BS_OUT_NOT_FOUND)
        s->defer_count = 0;
}

/* ---- the ways out of PROCESSING */

static bool too_old(const struct bs_task *t, const struct bs_policy *p)
{
    return p->max_age.us > 0 && t->age.us >= p->max_age.us;
}

/* What the budget ran out of. */
struct spent {
    const char *manual_code, *alert_kind;
};

static bool is_spent(const struct bs_settlement *s, const struct bs_task *t,
                     const struct bs_policy *p, struct spent *ret)
{
    bool tries = s->retry_count >= t->max_retry_count;

    *ret = tries ? (struct spent){ "MAX_RETRIES", "max_retries" }
                 : (struct spent){ "MAX_AGE", "max_age" };
    return tries || too_old(t, p);
}

static void budget_spent(struct bs_settlement *s, struct spent of)
{
    if (s->outcome_unknown) {
        to_person(s, BS_EV_UNKNOWN_LAST, "OUTCOME_UNKNOWN", "outcome_unknown");
        return;
    }
    go(s, BS_PROCESSING, BS_EV_FAILED_LAST);
    BS_ASSERT(s->to == BS_FAILED);
    s->via_failed = true;
    s->to = bs_fsm_step(BS_FAILED, BS_EV_ESCALATE).to;
    s->fx |= bs_fsm_step(BS_FAILED, BS_EV_ESCALATE).fx;
    s->manual_code = of.manual_code;
    s->alert_kind = of.alert_kind;
}

/* The last try is made when the age ends, unless the server asked for more time. */
static struct bs_time before_the_age_ends(struct bs_time next, const struct bs_task *t,
                                          const struct bs_outcome *o,
                                          const struct clock_and_luck *c)
{
    const struct bs_span max = c->policy->max_age;

    if (max.us <= 0)
        return next;
    struct bs_time end = bs_time_add(c->now, BS_US(max.us - t->age.us));
    struct bs_time wished = bs_time_add(c->now, o->has_wish ? o->wish : BS_SEC(0));
    return bs_time_max(bs_time_min(next, end), wished);
}

static void counted(struct bs_settlement *s, const struct bs_task *t, const struct bs_outcome *o,
                    struct clock_and_luck *c)
{
    struct spent of;

    if (is_spent(s, t, c->policy, &of)) {
        budget_spent(s, of);
        return;
    }
    go(s, BS_PROCESSING, o->kind == BS_OUT_FAILED ? BS_EV_FAILED : BS_EV_UNKNOWN);
    s->next_execute_at =
        before_the_age_ends(after_counted((uint32_t)s->retry_count, o, c), t, o, c);
}

static void not_found(struct bs_settlement *s, struct clock_and_luck *c)
{
    struct bs_span waited = bs_time_diff(c->now, s->first_not_found_at);

    if (s->not_found_count >= NOT_FOUND_MIN && waited.us >= c->policy->order_not_found_grace.us) {
        to_person(s, BS_EV_NEEDS_PERSON, "ORDER_NOT_FOUND", "manual");
        return;
    }
    go(s, BS_PROCESSING, BS_EV_NOT_PROCESSED);
    s->next_execute_at = bs_not_found_at(s->first_not_found_at, c->now);
}

/* A fault that trips the breaker has the breaker's alert; one that comes again and again between
 * good answers never does, and is told by the third time. */
static bool told_by_breaker(const struct bs_settlement *s, const struct bs_outcome *o)
{
    bool trips = o->reach == BS_REACH_FAULT || o->reach == BS_REACH_REFUSED;

    return o->behind_breaker || (trips && s->defer_count < FAULTS_TOLD);
}

static void not_processed(struct bs_settlement *s, const struct bs_outcome *o,
                          struct clock_and_luck *c)
{
    go(s, BS_PROCESSING, BS_EV_NOT_PROCESSED);
    s->next_execute_at = after_deferred((uint32_t)s->defer_count, o, c);
    if (told_by_breaker(s, o))
        return;
    if (o->endpoint_fault)
        s->alert_kind = "endpoint_fault";
    else if (bs_str_starts(o->code, BS_STR("CHECK_")))
        s->alert_kind = "check_fault";
    if (s->alert_kind)
        s->fx |= BS_FX_ALERT;
}

static void released(struct bs_settlement *s, const struct bs_outcome *o, enum bs_outcome_kind kind,
                     struct bs_time now)
{
    bool sent = kind == BS_OUT_SENT;

    go(s, BS_PROCESSING, sent ? BS_EV_RELEASED_SENT : BS_EV_RELEASED_UNSENT);
    s->next_execute_at = sent ? bs_time_max(o->not_before, now) : now;
}

static void settle(struct bs_settlement *s, const struct bs_task *t, const struct bs_outcome *o,
                   enum bs_outcome_kind kind, struct clock_and_luck *c)
{
    switch (kind) {
    case BS_OUT_SUCCESS:
        go(s, BS_PROCESSING, BS_EV_SUCCEEDED);
        return;
    case BS_OUT_FINISHED:
        go(s, BS_PROCESSING, BS_EV_ALREADY_FINISHED);
        return;
    case BS_OUT_FAILED:
    case BS_OUT_UNKNOWN:
        counted(s, t, o, c);
        return;
    case BS_OUT_MANUAL:
        to_person(s, BS_EV_NEEDS_PERSON, bs_manual_code(o), "manual");
        return;
    case BS_OUT_NOT_PROCESSED:
        not_processed(s, o, c);
        return;
    case BS_OUT_NOT_FOUND:
        not_found(s, c);
        return;
    case BS_OUT_UNSENT:
    case BS_OUT_SENT:
        released(s, o, kind, c->now);
        return;
    case BS_OUTCOME_COUNT:
        break;
    }
    bs_panic(__FILE__, __LINE__, "an outcome outside the list");
}

/* ---- a person asked for something during the call, and it has ended without success */

static void settle_pending_hold(struct bs_settlement *s, const struct bs_task *t,
                                const struct bs_policy *p)
{
    struct spent of;

    /* With the budget spent, letting it go again would run it once more than allowed. */
    if (!is_spent(s, t, p, &of))
        to_person(s, BS_EV_PENDING_MANUAL, "HELD", NULL);
    else if (s->outcome_unknown)
        to_person(s, BS_EV_PENDING_MANUAL, "OUTCOME_UNKNOWN", "outcome_unknown");
    else
        to_person(s, BS_EV_PENDING_MANUAL, of.manual_code, of.alert_kind);
}

static void settle_pending(struct bs_settlement *s, const struct bs_task *t,
                           const struct bs_outcome *o, enum bs_outcome_kind kind,
                           const struct bs_policy *p)
{
    if (t->pending == BS_PENDING_HOLD)
        settle_pending_hold(s, t, p);
    else if (kind == BS_OUT_MANUAL)
        to_person(s, BS_EV_PENDING_MANUAL, bs_manual_code(o), "manual");
    else if (s->outcome_unknown)
        to_person(s, BS_EV_PENDING_MANUAL, "OUTCOME_UNKNOWN", "outcome_unknown");
    else
        go(s, BS_PROCESSING, BS_EV_PENDING_CLOSED);
}

/* The person who asked is told that it succeeded first. */
static void tell_overtaken(struct bs_settlement *s)
{
    s->alert_kind = "overtaken";
    s->fx |= BS_FX_ALERT;
}

struct bs_settlement bs_decide_finish(const struct bs_task *t, const struct bs_outcome *o,
                                      const struct bs_policy *p, struct bs_time now, uint64_t seed)
{
    struct clock_and_luck c = { .policy = p, .now = now, .rng = { seed } };
    struct bs_settlement s = unchanged(t);
    enum bs_outcome_kind kind = o->kind;

    BS_ASSERT(t->state == BS_PROCESSING);
    BS_ASSERT((uint32_t)kind < BS_OUTCOME_COUNT);
    if (BS_PLANT(RELEASE_AS_UNSENT) && kind == BS_OUT_SENT)
        kind = BS_OUT_UNSENT;
    s.pending = BS_PENDING_NONE;
    count(&s, t, o, kind, now);
    if (t->pending != BS_PENDING_NONE && !is_success(kind))
        settle_pending(&s, t, o, kind, p);
    else
        settle(&s, t, o, kind, &c);
    if (t->pending != BS_PENDING_NONE && is_success(kind))
        tell_overtaken(&s);
    return s;
}

struct bs_settlement bs_decide_expired(const struct bs_task *t, struct bs_time now)
{
    struct bs_settlement s = unchanged(t);

    BS_ASSERT(t->state == BS_PROCESSING);
    s.pending = BS_PENDING_NONE;
    s.crash_count++;
    if (!BS_PLANT(EXPIRY_FORGETS_UNKNOWN))
        s.outcome_unknown = true;
    s.next_execute_at = now;
    if (s.crash_count >= CRASHES_MAX) {
        to_person(&s, BS_EV_WORKER_LOST, "WORKER_LOST", "worker_lost");
        return s;
    }
    if (t->pending == BS_PENDING_NONE) {
        go(&s, BS_PROCESSING, BS_EV_LEASE_EXPIRED);
        return s;
    }
    s.fx = BS_FX_CRASH | BS_FX_LOOK_FIRST | BS_FX_TAKEOVER;
    if (t->pending == BS_PENDING_HOLD)
        to_person(&s, BS_EV_PENDING_MANUAL, "HELD", NULL);
    else
        to_person(&s, BS_EV_PENDING_MANUAL, "OUTCOME_UNKNOWN", "outcome_unknown");
    return s;
}
