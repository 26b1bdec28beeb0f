/* What a look-up or a call came to: facts in, one row of the outcome table out. Pure.
 */
#pragma once

#include "base/arena.h"
#include "core/breaker.h"
#include "core/facts.h"
#include "core/policy.h"
#include "core/task.h"

/* The handler's own JSON reply, read by whoever has a JSON reader; valid false: not such
 * an object. */
struct bs_reply {
    bool valid;
    enum { BS_SAYS_SUCCESS, BS_SAYS_FINISHED, BS_SAYS_RETRY, BS_SAYS_MANUAL, BS_SAYS_UNKNOWN } says;
    struct bs_str code, message, effect;
    bool has_retry_after;
    struct bs_span retry_after;
    /* Whether the queue's declared success rule (JSON pointer form) holds; the body form is judged
     * in core. */
    bool json_rule_holds;
};

enum bs_outcome_kind {
    BS_OUT_SUCCESS,
    BS_OUT_FINISHED, /* already in a goal state                                  */
    BS_OUT_FAILED,
    BS_OUT_UNKNOWN,
    BS_OUT_MANUAL,
    BS_OUT_NOT_PROCESSED, /* no budget spent                                          */
    BS_OUT_NOT_FOUND,     /* the look-up said so explicitly                           */
    BS_OUT_UNSENT,        /* released, known not sent                                 */
    BS_OUT_SENT,          /* released after sending; not_before is the call's deadline */
    BS_OUTCOME_COUNT
};
const char *bs_outcome_name(enum bs_outcome_kind k); /* "success" … "released_sent" */

/* What the look-up before the call said. go_on, finished and state_conflict clear the unknown mark.
 */
enum bs_verdict {
    BS_VERDICT_NONE,
    BS_VERDICT_GO_ON,
    BS_VERDICT_FINISHED,
    BS_VERDICT_NOT_FOUND,
    BS_VERDICT_STATE_CONFLICT
};

enum { BS_CODE_MAX = 64, BS_MESSAGE_MAX = 512, BS_EFFECT_TEXT_MAX = 512, BS_EXCERPT_MAX = 1024 };

/* Clean, storable text only: recording an outcome cannot fail because of its content. */
struct bs_outcome {
    enum bs_outcome_kind kind;
    enum bs_verdict looked;
    struct bs_str code, message, effect, excerpt;
    int http_status; /* 0: none */
    bool endpoint_fault;
    enum bs_reach reach;   /* what it says of the endpoint, for the breaker */
    bool behind_breaker;   /* the endpoint's breaker is open: no alert of its own, and the next try
                              is at not_before at the earliest */
    bool has_wish;         /* somebody asked for a delay …                                   */
    bool wish_may_shorten; /* … and it was the handler's own retry_after                   */
    struct bs_span wish;
    struct bs_time not_before; /* BS_OUT_SENT: the call's deadline; behind a breaker: the probe */
    struct bs_time started_at, ended_at;
};

/* A call to the handler. Text is cleaned into the arena; r NULL: no object was read. `looked` is
 * the caller's: GO_ON where a look-up came before; so is `not_before` of BS_OUT_SENT. */
struct bs_outcome bs_classify_call(const struct bs_policy *p, const struct bs_facts *f,
                                   const struct bs_reply *r, struct bs_arena *a);

/* What the look-up's exchange says of its endpoint; a queue's own `statuses` are about the handler.
 */
enum bs_reach bs_reach_of_look(const struct bs_facts *f);

/* The look-up's reply, read by whoever has a JSON reader. valid false: anything that is not the
 * declared shape. */
struct bs_look {
    bool valid;
    enum bs_verdict verdict;
    struct bs_str status, amount, currency,
        channel_trade_no; /* text as the reply had it; empty: not said */
};

/* The look-up. Returns true when the handler is to be called (verdict go_on and nothing differs);
 * otherwise *ret is the outcome of the execution: finished, not found, state conflict,
 * AMOUNT_MISMATCH, CURRENCY_MISMATCH, TRADE_NO_MISMATCH (both values in the message), or CHECK_…
 * without verdict (not processed; a cancelled look-up: BS_OUT_UNSENT). l NULL: no object was read.
 * An amount of digits alone is minor units, with a decimal point units of the currency. */
bool bs_classify_look(const struct bs_task *t, const struct bs_facts *f, const struct bs_look *l,
                      struct bs_arena *a, struct bs_outcome *ret);
