/* From a task and an outcome (or a person's action) to what the store writes. Pure; the store calls
 * it inside the transaction, so the same operation run twice decides the same. */
#pragma once

#include "core/fsm.h"
#include "core/outcome.h"

/* Everything that changes besides the lease fields (which end whenever the state leaves
 * PROCESSING). */
struct bs_settlement {
    enum bs_event event;
    enum bs_state to;
    bool via_failed; /* PROCESSING → FAILED → MANUAL: two log transitions, one write */
    uint32_t fx;
    int32_t retry_count, crash_count, defer_count, not_found_count;
    struct bs_time first_not_found_at;
    bool outcome_unknown;
    enum bs_pending pending;
    struct bs_time next_execute_at; /* meaningful where `to` is WAITING or RETRY */
    const char *manual_code; /* static; set where `to` is MANUAL, else NULL (keeps the old one) */
    const char *alert_kind;  /* static; NULL: no alert                                          */
};

/* The end of an execution of a task that is PROCESSING. `seed` feeds the jitter; t->age counts
 * where the policy has a max_age. */
struct bs_settlement bs_decide_finish(const struct bs_task *t, const struct bs_outcome *o,
                                      const struct bs_policy *p, struct bs_time now, uint64_t seed);

/* The lease ran out: WAITING with crash_count + 1, or MANUAL(WORKER_LOST) at the third; a pending
 * close becomes MANUAL. */
struct bs_settlement bs_decide_expired(const struct bs_task *t, struct bs_time now);

enum bs_action {
    BS_ACT_RETRY,
    BS_ACT_HOLD,
    BS_ACT_UNHOLD,
    BS_ACT_RESOLVE,
    BS_ACT_CLOSE,
    BS_ACTION_COUNT
};
const char *bs_action_name(enum bs_action a); /* "retry" … */

/* Conclusions of a close: not_done, done_elsewhere, other. */
bool bs_conclusion_known(struct bs_str s);

/* A person's action. BS_E_INVALID: reason (and for close and resolve the conclusion) missing or not
 * allowed; BS_E_CONFLICT: this state does not allow it (the message names the state and what it
 * allows). A money queue's close with not_done needs a look-up that proves it: refused here while
 * none is recorded. */
BS_NODISCARD bs_rc bs_decide_act(const struct bs_task *t, enum bs_action a, struct bs_str reason,
                                 struct bs_str conclusion, const struct bs_policy *p,
                                 struct bs_time now, struct bs_settlement *ret, struct bs_err *err);
/* "retry, hold, close" – what a state allows a person to do; PROCESSING: "hold, resolve, close
 * (after the call)". */
const char *bs_actions_allowed(enum bs_state s, struct bs_str manual_code);
