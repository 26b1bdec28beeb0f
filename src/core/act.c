/* What a person may do to a task, state by state. */
#include "core/decide.h"

static const char *const action_names[BS_ACTION_COUNT] = {
    [BS_ACT_RETRY] = "retry",     [BS_ACT_HOLD] = "hold",   [BS_ACT_UNHOLD] = "unhold",
    [BS_ACT_RESOLVE] = "resolve", [BS_ACT_CLOSE] = "close",
};

const char *bs_action_name(enum bs_action a)
{
    BS_ASSERT((uint32_t)a < BS_ACTION_COUNT);
    return action_names[a];
}

bool bs_conclusion_known(struct bs_str s)
{
    return bs_str_is(s, "not_done") || bs_str_is(s, "done_elsewhere") || bs_str_is(s, "other");
}

const char *bs_actions_allowed(enum bs_state s, struct bs_str manual_code)
{
    switch (s) {
    case BS_WAITING:
    case BS_RETRY:
        return "retry, hold, close";
    case BS_PROCESSING:
        return "hold, resolve, close (after the call)";
    case BS_MANUAL:
        return bs_str_is(manual_code, "HELD") ? "retry, unhold, resolve, close"
                                              : "retry, resolve, close";
    case BS_STATE_NONE:
    case BS_FAILED:
    case BS_SUCCESS:
    case BS_CLOSED:
    case BS_STATE_COUNT:
        break;
    }
    return "nothing";
}

/* The event that an action is in this state; the table says whether it is allowed. */
static enum bs_event event_of(const struct bs_task *t, enum bs_action a)
{
    bool in_call = t->state == BS_PROCESSING;

    switch (a) {
    case BS_ACT_RETRY:
        return t->state == BS_MANUAL ? BS_EV_RETRY_FRESH : BS_EV_RUN_NOW;
    case BS_ACT_HOLD:
        return in_call ? BS_EV_ASK_CLOSE : BS_EV_HOLD;
    case BS_ACT_UNHOLD:
        return t->retry_count > 0 ? BS_EV_UNHOLD_RETRY : BS_EV_UNHOLD;
    case BS_ACT_RESOLVE:
        return in_call ? BS_EV_ASK_CLOSE : BS_EV_RESOLVE;
    case BS_ACT_CLOSE:
        return in_call ? BS_EV_ASK_CLOSE : BS_EV_CLOSE;
    case BS_ACTION_COUNT:
        break;
    }
    bs_panic(__FILE__, __LINE__, "an action outside the list");
}

static bool ends(enum bs_action a)
{
    return a == BS_ACT_RESOLVE || a == BS_ACT_CLOSE;
}

static bs_rc check_words(enum bs_action a, struct bs_str reason, struct bs_str conclusion,
                         struct bs_err *err)
{
    if (bs_str_trim(reason).n == 0)
        return bs_fail(err, BS_E_INVALID, "%s needs a reason", bs_action_name(a));
    if (ends(a) && !bs_conclusion_known(conclusion))
        return bs_fail(err, BS_E_INVALID,
                       "%s needs a conclusion: not_done, done_elsewhere or other",
                       bs_action_name(a));
    return BS_OK;
}

static bs_rc check_allowed(const struct bs_task *t, enum bs_action a, enum bs_event event,
                           struct bs_err *err)
{
    bool held = bs_str_is(t->manual_code, "HELD");

    if (bs_fsm_step(t->state, event).to != BS_STATE_NONE && (a != BS_ACT_UNHOLD || held))
        return BS_OK;
    if (t->state == BS_SUCCESS || t->state == BS_CLOSED)
        return bs_fail(err, BS_E_CONFLICT,
                       "%s is not possible in %s: the task has ended; possible: %s",
                       bs_action_name(a), bs_state_name(t->state),
                       bs_actions_allowed(t->state, t->manual_code));
    return bs_fail(err, BS_E_CONFLICT, "%s is not possible in %s%s%.*s%s; possible: %s",
                   bs_action_name(a), bs_state_name(t->state), t->state == BS_MANUAL ? "(" : "",
                   BS_STR_FMT(t->state == BS_MANUAL ? t->manual_code : BS_STR_NONE),
                   t->state == BS_MANUAL ? ")" : "", bs_actions_allowed(t->state, t->manual_code));
}

/* "Not done" frees the effect key, so with money it must be proved, not said. */
static bs_rc check_money(enum bs_action a, struct bs_str conclusion, const struct bs_policy *p,
                         struct bs_err *err)
{
    if (ends(a) && p && p->effect == BS_EFFECT_MONEY && bs_str_is(conclusion, "not_done"))
        return bs_fail(err, BS_E_CONFLICT,
                       "%s as not_done needs a look-up that proves it: the queue moves money",
                       bs_action_name(a));
    return BS_OK;
}

static enum bs_pending pending_of(enum bs_action a)
{
    if (a == BS_ACT_HOLD)
        return BS_PENDING_HOLD;
    return a == BS_ACT_RESOLVE ? BS_PENDING_RESOLVE : BS_PENDING_CLOSE;
}

static struct bs_settlement settle_act(const struct bs_task *t, enum bs_action a,
                                       enum bs_event event, struct bs_time now)
{
    struct bs_step step = bs_fsm_step(t->state, event);
    bool fresh = (step.fx & BS_FX_FRESH_BUDGET) != 0;
    struct bs_time next = t->next_execute_at;

    if (step.fx & BS_FX_DUE_NOW)
        next = bs_time_max(now, t->call_until);
    else if (a == BS_ACT_UNHOLD)
        next = bs_time_max(next, bs_time_max(now, t->call_until));
    return (struct bs_settlement){
        .event = event,
        .to = step.to,
        .fx = step.fx,
        .retry_count = fresh ? 0 : t->retry_count,
        .crash_count = fresh ? 0 : t->crash_count,
        .defer_count = fresh ? 0 : t->defer_count,
        .not_found_count = fresh ? 0 : t->not_found_count,
        .first_not_found_at = fresh ? BS_TIME_NONE : t->first_not_found_at,
        .outcome_unknown = t->outcome_unknown,
        .pending = event == BS_EV_ASK_CLOSE ? pending_of(a) : BS_PENDING_NONE,
        .next_execute_at = next,
        .manual_code = event == BS_EV_HOLD ? "HELD" : NULL,
    };
}

bs_rc bs_decide_act(const struct bs_task *t, enum bs_action a, struct bs_str reason,
                    struct bs_str conclusion, const struct bs_policy *p, struct bs_time now,
                    struct bs_settlement *ret, struct bs_err *err)
{
    enum bs_event event = event_of(t, a);

    BS_ASSERT((uint32_t)a < BS_ACTION_COUNT);
    BS_TRY(check_words(a, reason, conclusion, err));
    BS_TRY(check_allowed(t, a, event, err));
    BS_TRY(check_money(a, conclusion, p, err));
    *ret = settle_act(t, a, event, now);
    return BS_OK;
}
