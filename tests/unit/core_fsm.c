/* The whole square of states and events against a list written by hand from the design. */
#include "core_test.h"

#include <stdio.h>

/* from, event, what else happens (T token, C count, B backoff, D defer, U unknown, K crash, A
 * alert, P person, F fresh budget, N due now, O takeover, E end), to */
static const char *const allowed[][4] = {
    { "", "submit", "", "WAITING" },
    { "", "park", "A", "MANUAL" },
    { "WAITING", "claim", "T", "PROCESSING" },
    { "RETRY", "claim", "T", "PROCESSING" },
    { "PROCESSING", "succeeded", "E", "SUCCESS" },
    { "PROCESSING", "already_finished", "E", "SUCCESS" },
    { "PROCESSING", "failed", "CB", "RETRY" },
    { "PROCESSING", "failed_last", "C", "FAILED" },
    { "FAILED", "escalate", "A", "MANUAL" },
    { "PROCESSING", "unknown", "CBU", "RETRY" },
    { "PROCESSING", "unknown_last", "CUA", "MANUAL" },
    { "PROCESSING", "needs_person", "A", "MANUAL" },
    { "PROCESSING", "not_processed", "D", "RETRY" },
    { "PROCESSING", "released_unsent", "N", "WAITING" },
    { "PROCESSING", "released_sent", "UO", "WAITING" },
    { "PROCESSING", "lease_expired", "UKNO", "WAITING" },
    { "PROCESSING", "worker_lost", "UKAO", "MANUAL" },
    { "PROCESSING", "ask_close", "P", "PROCESSING" },
    { "PROCESSING", "pending_closed", "E", "CLOSED" },
    { "PROCESSING", "pending_manual", "A", "MANUAL" },
    { "WAITING", "hold", "P", "MANUAL" },
    { "RETRY", "hold", "P", "MANUAL" },
    { "MANUAL", "unhold", "P", "WAITING" },
    { "MANUAL", "unhold_retry", "P", "RETRY" },
    { "WAITING", "run_now", "PN", "WAITING" },
    { "RETRY", "run_now", "PN", "RETRY" },
    { "WAITING", "no_handler", "A", "MANUAL" },
    { "RETRY", "no_handler", "A", "MANUAL" },
    { "WAITING", "close", "PE", "CLOSED" },
    { "RETRY", "close", "PE", "CLOSED" },
    { "MANUAL", "close", "PE", "CLOSED" },
    { "MANUAL", "retry_fresh", "PFN", "WAITING" },
    { "MANUAL", "resolve", "PE", "CLOSED" },
};

static uint32_t bits_of(const char *letters)
{
    static const char all[] = "TCBDUKAPFNOE";
    uint32_t bits = 0;

    for (; *letters; letters++) {
        const char *at = strchr(all, *letters);

        assert_non_null(at);
        bits |= 1u << (uint32_t)(at - all);
    }
    return bits;
}

static const char *const *find(enum bs_state s, enum bs_event e)
{
    const char *from = s == BS_STATE_NONE ? "" : bs_state_name(s);

    for (size_t i = 0; i < BS_COUNT(allowed); i++) {
        if (strcmp(allowed[i][0], from) == 0 && strcmp(allowed[i][1], bs_event_name(e)) == 0)
            return allowed[i];
    }
    return NULL;
}

static void every_pair_answers_as_the_list_says(void **state)
{
    size_t moves = 0;

    (void)state;
    for (enum bs_state s = BS_STATE_NONE; s < BS_STATE_COUNT; s++) {
        for (enum bs_event e = 0; e < BS_EVENT_COUNT; e++) {
            const char *const *row = find(s, e);
            struct bs_step step = bs_fsm_step(s, e);

            if (row) {
                assert_string_equal(bs_state_name(step.to), row[3]);
                assert_int_equal(step.fx, bits_of(row[2]));
                moves++;
            } else {
                assert_int_equal(step.to, BS_STATE_NONE);
                assert_int_equal(step.fx, 0);
            }
        }
    }
    assert_int_equal(moves, BS_COUNT(allowed));
}

static void goal_states_have_no_exit_and_all_others_do(void **state)
{
    (void)state;
    for (enum bs_state s = BS_STATE_NONE + 1; s < BS_STATE_COUNT; s++) {
        int exits = 0;

        for (enum bs_event e = 0; e < BS_EVENT_COUNT; e++)
            exits += bs_fsm_step(s, e).to != BS_STATE_NONE;
        assert_int_equal(exits == 0, s == BS_SUCCESS || s == BS_CLOSED);
    }
}

static void failed_is_only_passed_through(void **state)
{
    (void)state;
    for (enum bs_event e = 0; e < BS_EVENT_COUNT; e++)
        assert_int_equal(bs_fsm_step(BS_FAILED, e).to != BS_STATE_NONE, e == BS_EV_ESCALATE);
}

static void the_document_names_every_move(void **state)
{
    BS_CLEANUP(bs_buf_free) struct bs_buf doc = { .max = 1 << 20 };

    (void)state;
    bs_fsm_document(&doc);
    assert_int_equal(bs_buf_done(&doc, NULL), BS_OK);
    for (size_t i = 0; i < BS_COUNT(allowed); i++) {
        char row[128];
        int n = snprintf(row, sizeof(row), "| %s | `%s` | %s |",
                         allowed[i][0][0] ? allowed[i][0] : "–", allowed[i][1], allowed[i][3]);

        assert_in_range(n, 1, sizeof(row) - 1);
        assert_contains(bs_buf_str(&doc), row);
    }
}

static void the_page_states_md_is_current(void **state)
{
    BS_CLEANUP(bs_buf_free) struct bs_buf doc = { .max = 1 << 20 };
    static char page[1 << 17];
    FILE *f = fopen(STATES_MD, "rb");

    (void)state;
    assert_non_null(f);
    size_t n = fread(page, 1, sizeof(page), f);
    assert_int_equal(fclose(f), 0);
    bs_fsm_document(&doc);
    if (!bs_str_eq(bs_buf_str(&doc), (struct bs_str){ page, n }))
        fail_msg("docs/STATES.md is stale: run gen_states > docs/STATES.md");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_pair_answers_as_the_list_says),
        cmocka_unit_test(goal_states_have_no_exit_and_all_others_do),
        cmocka_unit_test(failed_is_only_passed_through),
        cmocka_unit_test(the_document_names_every_move),
        cmocka_unit_test(the_page_states_md_is_current),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
