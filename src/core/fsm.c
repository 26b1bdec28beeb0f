/* The closed table of states and events. What is not in it is refused. The documentation is printed
 * from it. */
#include "core/fsm.h"

/* One line a move; a pair listed twice does not compile. */
static const struct bs_step table[BS_STATE_COUNT][BS_EVENT_COUNT] = {
    [BS_STATE_NONE][BS_EV_SUBMIT] = { BS_WAITING, 0 },
    [BS_STATE_NONE][BS_EV_PARK] = { BS_MANUAL, BS_FX_ALERT },

    [BS_WAITING][BS_EV_CLAIM] = { BS_PROCESSING, BS_FX_TOKEN },
    [BS_WAITING][BS_EV_HOLD] = { BS_MANUAL, BS_FX_ACTOR },
    [BS_WAITING][BS_EV_RUN_NOW] = { BS_WAITING, BS_FX_ACTOR | BS_FX_DUE_NOW },
    [BS_WAITING][BS_EV_NO_HANDLER] = { BS_MANUAL, BS_FX_ALERT },
    [BS_WAITING][BS_EV_CLOSE] = { BS_CLOSED, BS_FX_ACTOR | BS_FX_END },

    [BS_RETRY][BS_EV_CLAIM] = { BS_PROCESSING, BS_FX_TOKEN },
    [BS_RETRY][BS_EV_HOLD] = { BS_MANUAL, BS_FX_ACTOR },
    [BS_RETRY][BS_EV_RUN_NOW] = { BS_RETRY, BS_FX_ACTOR | BS_FX_DUE_NOW },
    [BS_RETRY][BS_EV_NO_HANDLER] = { BS_MANUAL, BS_FX_ALERT },
    [BS_RETRY][BS_EV_CLOSE] = { BS_CLOSED, BS_FX_ACTOR | BS_FX_END },

    [BS_PROCESSING][BS_EV_SUCCEEDED] = { BS_SUCCESS, BS_FX_END },
    [BS_PROCESSING][BS_EV_ALREADY_FINISHED] = { BS_SUCCESS, BS_FX_END },
    [BS_PROCESSING][BS_EV_FAILED] = { BS_RETRY, BS_FX_COUNT | BS_FX_BACKOFF },
    [BS_PROCESSING][BS_EV_FAILED_LAST] = { BS_FAILED, BS_FX_COUNT },
    [BS_PROCESSING][BS_EV_UNKNOWN] = { BS_RETRY, BS_FX_COUNT | BS_FX_BACKOFF | BS_FX_LOOK_FIRST },
    [BS_PROCESSING][BS_EV_UNKNOWN_LAST] = { BS_MANUAL,
                                            BS_FX_COUNT | BS_FX_LOOK_FIRST | BS_FX_ALERT },
    [BS_PROCESSING][BS_EV_NEEDS_PERSON] = { BS_MANUAL, BS_FX_ALERT },
    [BS_PROCESSING][BS_EV_NOT_PROCESSED] = { BS_RETRY, BS_FX_DEFER },
    [BS_PROCESSING][BS_EV_RELEASED_UNSENT] = { BS_WAITING, BS_FX_DUE_NOW },
    [BS_PROCESSING][BS_EV_RELEASED_SENT] = { BS_WAITING, BS_FX_LOOK_FIRST | BS_FX_TAKEOVER },
    [BS_PROCESSING][BS_EV_LEASE_EXPIRED] = { BS_WAITING, BS_FX_CRASH | BS_FX_LOOK_FIRST |
                                                             BS_FX_DUE_NOW | BS_FX_TAKEOVER },
    [BS_PROCESSING][BS_EV_WORKER_LOST] = { BS_MANUAL, BS_FX_CRASH | BS_FX_LOOK_FIRST | BS_FX_ALERT |
                                                          BS_FX_TAKEOVER },
    [BS_PROCESSING][BS_EV_ASK_CLOSE] = { BS_PROCESSING, BS_FX_ACTOR },
    [BS_PROCESSING][BS_EV_PENDING_CLOSED] = { BS_CLOSED, BS_FX_END },
    [BS_PROCESSING][BS_EV_PENDING_MANUAL] = { BS_MANUAL, BS_FX_ALERT },

    [BS_FAILED][BS_EV_ESCALATE] = { BS_MANUAL, BS_FX_ALERT },

    [BS_MANUAL][BS_EV_UNHOLD] = { BS_WAITING, BS_FX_ACTOR },
    [BS_MANUAL][BS_EV_UNHOLD_RETRY] = { BS_RETRY, BS_FX_ACTOR },
    [BS_MANUAL][BS_EV_RETRY_FRESH] = { BS_WAITING,
                                       BS_FX_ACTOR | BS_FX_FRESH_BUDGET | BS_FX_DUE_NOW },
    [BS_MANUAL][BS_EV_RESOLVE] = { BS_CLOSED, BS_FX_ACTOR | BS_FX_END },
    [BS_MANUAL][BS_EV_CLOSE] = { BS_CLOSED, BS_FX_ACTOR | BS_FX_END },
};

static const char *const meanings[BS_EVENT_COUNT] = {
    [BS_EV_SUBMIT] = "accepted at the door",
    [BS_EV_PARK] = "accepted, but nobody can run it: unknown queue with `park: true`",
    [BS_EV_CLAIM] = "due and taken under a lease",
    [BS_EV_SUCCEEDED] = "the handler said success",
    [BS_EV_ALREADY_FINISHED] = "the look-up or the handler said that it is done already",
    [BS_EV_FAILED] = "known failure, budget left",
    [BS_EV_FAILED_LAST] = "known failure, budget spent, nothing unknown",
    [BS_EV_ESCALATE] = "in the same transaction as `failed_last`",
    [BS_EV_UNKNOWN] = "sent, but no verdict; budget left",
    [BS_EV_UNKNOWN_LAST] = "budget spent, and this or an earlier execution has no verdict",
    [BS_EV_NEEDS_PERSON] = "no repetition can help: refused as wrong, or the order contradicts",
    [BS_EV_NOT_PROCESSED] = "endpoint fault, no look-up verdict, order not found yet, Retry-After",
    [BS_EV_RELEASED_UNSENT] = "given back, no byte of the request left",
    [BS_EV_RELEASED_SENT] = "given back after sending; due again at the call's deadline",
    [BS_EV_LEASE_EXPIRED] = "the lease ran out, first or second time",
    [BS_EV_WORKER_LOST] = "the lease ran out for the third time",
    [BS_EV_ASK_CLOSE] = "a person asked for close, hold or resolve during the call: it waits",
    [BS_EV_PENDING_CLOSED] = "a waiting close or resolve; the call is known to have done nothing",
    [BS_EV_PENDING_MANUAL] = "a waiting hold; or a waiting close or resolve after an unclear end",
    [BS_EV_HOLD] = "a person holds it back",
    [BS_EV_UNHOLD] = "a person lets it go again (only when held); never tried before",
    [BS_EV_UNHOLD_RETRY] = "a person lets it go again (only when held); tried before",
    [BS_EV_RUN_NOW] = "a person says: run now; the budget stays",
    [BS_EV_NO_HANDLER] = "nobody has had a handler for the queue for 5 minutes",
    [BS_EV_CLOSE] = "a person ends it with a conclusion",
    [BS_EV_RETRY_FRESH] = "a person says: again, with a fresh budget",
    [BS_EV_RESOLVE] = "a person has settled it, with a conclusion",
};

static const struct {
    uint32_t bit;
    const char *words;
} effects[] = {
    { BS_FX_TOKEN, "greater token, attempt + 1" },
    { BS_FX_COUNT, "retry count + 1" },
    { BS_FX_BACKOFF, "next try by the retry policy" },
    { BS_FX_DEFER, "next try without budget" },
    { BS_FX_LOOK_FIRST, "outcome unknown: look first" },
    { BS_FX_CRASH, "crash count + 1" },
    { BS_FX_ALERT, "alert" },
    { BS_FX_ACTOR, "needs actor and reason, audited" },
    { BS_FX_FRESH_BUDGET, "counters 0" },
    { BS_FX_DUE_NOW, "due now" },
    { BS_FX_TAKEOVER, "logged as takeover" },
    { BS_FX_END, "end" },
};

struct bs_step bs_fsm_step(enum bs_state from, enum bs_event event)
{
    BS_ASSERT((uint32_t)from < BS_STATE_COUNT);
    BS_ASSERT((uint32_t)event < BS_EVENT_COUNT);
    return table[from][event];
}

static const char *shown(enum bs_state s)
{
    return s == BS_STATE_NONE ? "–" : bs_state_name(s);
}

static void write_effects(struct bs_buf *out, uint32_t fx)
{
    const char *between = "";

    for (uint32_t i = 0; i < BS_COUNT(effects); i++) {
        if (fx & effects[i].bit) {
            bs_buf_fmt(out, "%s%s", between, effects[i].words);
            between = "; ";
        }
    }
}

/* The whole square: what each state answers to each event. */
static void write_square(struct bs_buf *out)
{
    bs_buf_addz(out, "| event |");
    for (uint32_t s = 0; s < BS_STATE_COUNT; s++)
        bs_buf_fmt(out, " %s |", shown((enum bs_state)s));
    bs_buf_addz(out, "\n| --- |");
    for (uint32_t s = 0; s < BS_STATE_COUNT; s++)
        bs_buf_addz(out, " --- |");
    bs_buf_addc(out, '\n');
    for (uint32_t e = 0; e < BS_EVENT_COUNT; e++) {
        bs_buf_fmt(out, "| `%s` |", bs_event_name((enum bs_event)e));
        for (uint32_t s = 0; s < BS_STATE_COUNT; s++) {
            enum bs_state to = table[s][e].to;

            bs_buf_fmt(out, " %s%s|", to ? bs_state_name(to) : "", to ? " " : "");
        }
        bs_buf_addc(out, '\n');
    }
}

static void write_moves(struct bs_buf *out)
{
    bs_buf_addz(out, "| from | event | to | what also happens | when |\n"
                     "| --- | --- | --- | --- | --- |\n");
    for (uint32_t s = 0; s < BS_STATE_COUNT; s++) {
        for (uint32_t e = 0; e < BS_EVENT_COUNT; e++) {
            const struct bs_step *step = &table[s][e];

            if (step->to == BS_STATE_NONE)
                continue;
            bs_buf_fmt(out, "| %s | `%s` | %s | ", shown((enum bs_state)s),
                       bs_event_name((enum bs_event)e), bs_state_name(step->to));
            write_effects(out, step->fx);
            bs_buf_fmt(out, "%s| %s |\n", step->fx ? " " : "", meanings[e]);
        }
    }
}

/* One arrow for all events that lead from one state to another. */
static void write_arrow(struct bs_buf *out, enum bs_state from, enum bs_state to)
{
    uint32_t n = 0;

    for (uint32_t e = 0; e < BS_EVENT_COUNT; e++) {
        if (table[from][e].to != to)
            continue;
        if (n++ == 0)
            bs_buf_fmt(out, "    %s --> %s : ", from ? bs_state_name(from) : "[*]",
                       bs_state_name(to));
        else
            bs_buf_addz(out, ", ");
        bs_buf_addz(out, bs_event_name((enum bs_event)e));
    }
    if (n > 0)
        bs_buf_addc(out, '\n');
}

static void write_diagram(struct bs_buf *out)
{
    bs_buf_addz(out, "```mermaid\nstateDiagram-v2\n");
    for (uint32_t from = 0; from < BS_STATE_COUNT; from++) {
        for (uint32_t to = BS_STATE_NONE + 1; to < BS_STATE_COUNT; to++)
            write_arrow(out, (enum bs_state)from, (enum bs_state)to);
    }
    bs_buf_addz(out, "    SUCCESS --> [*]\n    CLOSED --> [*]\n```\n");
}

void bs_fsm_document(struct bs_buf *out)
{
    bs_buf_addz(out, "# States\n\n"
                     "Printed by `tools/gen_states` from the table in `src/core/fsm.c`; do not "
                     "edit. A test fails when this page is stale.\n\n"
                     "An empty cell is a refusal: nothing changes. `–` is \"not there yet\". "
                     "SUCCESS and CLOSED have no exit. FAILED is passed through within one "
                     "transaction and is never a resting place.\n\n");
    write_square(out);
    bs_buf_addz(out, "\n## Moves\n\n");
    write_moves(out);
    bs_buf_addz(out, "\n## Picture\n\n");
    write_diagram(out);
}
