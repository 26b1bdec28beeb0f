/* The closed table of states and events, and the only function that reads it. Pure. */
#pragma once

#include "core/task.h"

/* What a step does besides the new state; the store writes exactly this. */
enum bs_fx {
    BS_FX_TOKEN = 1 << 0,        /* a greater fencing token, attempt_no + 1           */
    BS_FX_COUNT = 1 << 1,        /* retry_count + 1                                   */
    BS_FX_BACKOFF = 1 << 2,      /* next_execute_at by the retry policy               */
    BS_FX_DEFER = 1 << 3,        /* next_execute_at by the no-budget ladder           */
    BS_FX_LOOK_FIRST = 1 << 4,   /* sets outcome_unknown                              */
    BS_FX_CRASH = 1 << 5,        /* crash_count + 1                                   */
    BS_FX_ALERT = 1 << 6,        /* one alert_event in the same transaction           */
    BS_FX_ACTOR = 1 << 7,        /* refused without actor and reason; audit row       */
    BS_FX_FRESH_BUDGET = 1 << 8, /* retry_count, crash_count, defer_count = 0         */
    BS_FX_DUE_NOW = 1 << 9,      /* next_execute_at = now                             */
    BS_FX_TAKEOVER = 1 << 10,    /* logged as takeover                                */
    BS_FX_END = 1 << 11,         /* a goal state: nothing follows                     */
};

struct bs_step {
    enum bs_state to; /* BS_STATE_NONE: refused */
    uint32_t fx;      /* enum bs_fx bits        */
};

/* BS_STATE_NONE as `from` is "not there yet". Any pair may be asked. */
struct bs_step bs_fsm_step(enum bs_state from, enum bs_event event);

/* Writes the table and diagram of docs/STATES.md, Markdown, English. */
void bs_fsm_document(struct bs_buf *out);
