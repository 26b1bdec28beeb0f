/* What people may do, state by state. */
#include "core_test.h"

static const struct bs_policy repeatable = { .effect = BS_EFFECT_REPEATABLE };
static const struct bs_policy money = { .effect = BS_EFFECT_MONEY };

static struct bs_str conclusion_for(enum bs_action a)
{
    return a == BS_ACT_CLOSE || a == BS_ACT_RESOLVE ? S("other") : BS_STR_NONE;
}

static void each_state_allows_what_the_table_says(void **state)
{
    static const struct {
        enum bs_state state;
        const char *manual_code;
        int32_t retry_count;
        enum bs_state want[BS_ACTION_COUNT]; /* retry, hold, unhold, resolve, close; 0: refused */
    } rows[] = {
        { BS_WAITING, "", 0, { BS_WAITING, BS_MANUAL, 0, 0, BS_CLOSED } },
        { BS_RETRY, "", 2, { BS_RETRY, BS_MANUAL, 0, 0, BS_CLOSED } },
        { BS_PROCESSING, "", 2, { 0, BS_PROCESSING, 0, BS_PROCESSING, BS_PROCESSING } },
        { BS_MANUAL, "MAX_RETRIES", 10, { BS_WAITING, 0, 0, BS_CLOSED, BS_CLOSED } },
        { BS_MANUAL, "OUTCOME_UNKNOWN", 2, { BS_WAITING, 0, 0, BS_CLOSED, BS_CLOSED } },
        { BS_MANUAL, "HELD", 0, { BS_WAITING, 0, BS_WAITING, BS_CLOSED, BS_CLOSED } },
        { BS_MANUAL, "HELD", 3, { BS_WAITING, 0, BS_RETRY, BS_CLOSED, BS_CLOSED } },
        { BS_MANUAL, "", 0, { BS_WAITING, 0, 0, BS_CLOSED, BS_CLOSED } },
        { BS_SUCCESS, "", 1, { 0, 0, 0, 0, 0 } },
        { BS_CLOSED, "HELD", 1, { 0, 0, 0, 0, 0 } },
        { BS_WAITING, "HELD", 0, { BS_WAITING, BS_MANUAL, 0, 0, BS_CLOSED } },
    };

    (void)state;
    for (size_t i = 0; i < BS_COUNT(rows); i++) {
        for (enum bs_action a = 0; a < BS_ACTION_COUNT; a++) {
            struct bs_task t = running_task();
            struct bs_settlement s = { .to = BS_STATE_NONE };
            struct bs_err err = { 0 };

            t.state = rows[i].state;
            t.manual_code = bs_str_of(rows[i].manual_code);
            t.retry_count = rows[i].retry_count;
            bs_rc rc = bs_decide_act(&t, a, S("asked by the shop"), conclusion_for(a), &repeatable,
                                     NOW, &s, &err);
            print_message("row %zu, %s\n", i, bs_action_name(a));
            assert_int_equal(rc, rows[i].want[a] ? BS_OK : BS_E_CONFLICT);
            assert_int_equal(s.to, rows[i].want[a]);
            if (rc == BS_OK) {
                assert_int_equal(bs_fsm_step(t.state, s.event).to, s.to);
                assert_true(s.fx & BS_FX_ACTOR);
                assert_null(s.alert_kind);
                continue;
            }
            assert_contains(bs_str_of(err.msg), bs_state_name(t.state));
            assert_contains(bs_str_of(err.msg), bs_actions_allowed(t.state, t.manual_code));
        }
    }
}

static void what_is_allowed_is_what_is_possible(void **state)
{
    static const struct {
        enum bs_state state;
        const char *manual_code;
        const char *want;
    } rows[] = {
        { BS_WAITING, "", "retry, hold, close" },
        { BS_RETRY, "", "retry, hold, close" },
        { BS_PROCESSING, "", "hold, resolve, close (after the call)" },
        { BS_MANUAL, "HELD", "retry, unhold, resolve, close" },
        { BS_MANUAL, "MAX_RETRIES", "retry, resolve, close" },
        { BS_SUCCESS, "", "nothing" },
        { BS_CLOSED, "", "nothing" },
    };

    (void)state;
    for (size_t i = 0; i < BS_COUNT(rows); i++)
        assert_string_equal(bs_actions_allowed(rows[i].state, bs_str_of(rows[i].manual_code)),
                            rows[i].want);
}

static void case_69_nothing_is_done_without_a_reason(void **state)
{
    static const char *const reasons[] = { "", " ", "\t\r\n  " };

    (void)state;
    for (size_t i = 0; i < BS_COUNT(reasons); i++) {
        for (enum bs_action a = 0; a < BS_ACTION_COUNT; a++) {
            struct bs_task t = running_task();
            struct bs_settlement s = { .to = BS_STATE_NONE };
            struct bs_err err = { 0 };

            t.state = BS_MANUAL;
            t.manual_code = S("HELD");
            assert_int_equal(bs_decide_act(&t, a, bs_str_of(reasons[i]), conclusion_for(a),
                                           &repeatable, NOW, &s, &err),
                             BS_E_INVALID);
            assert_contains(bs_str_of(err.msg), "reason");
            assert_int_equal(s.to, BS_STATE_NONE);
        }
    }
}

static void close_and_resolve_need_a_known_conclusion(void **state)
{
    static const struct {
        const char *conclusion;
        bs_rc want;
    } rows[] = {
        { "not_done", BS_OK },      { "done_elsewhere", BS_OK },  { "other", BS_OK },
        { "", BS_E_INVALID },       { "NOT_DONE", BS_E_INVALID }, { "done", BS_E_INVALID },
        { "other ", BS_E_INVALID },
    };
    static const enum bs_action actions[] = { BS_ACT_CLOSE, BS_ACT_RESOLVE };

    (void)state;
    for (size_t i = 0; i < BS_COUNT(rows); i++) {
        for (size_t k = 0; k < BS_COUNT(actions); k++) {
            struct bs_task t = running_task();
            struct bs_settlement s = { .to = BS_STATE_NONE };
            struct bs_str c = bs_str_of(rows[i].conclusion);

            t.state = BS_MANUAL;
            assert_int_equal(bs_conclusion_known(c), rows[i].want == BS_OK);
            assert_int_equal(bs_decide_act(&t, actions[k], S("why"), c, &repeatable, NOW, &s, NULL),
                             rows[i].want);
        }
    }
}

static void money_is_not_said_to_be_undone_without_proof(void **state)
{
    static const struct {
        enum bs_state state;
        enum bs_action action;
        const char *conclusion;
        const struct bs_policy *policy;
        bs_rc want;
    } rows[] = {
        { BS_MANUAL, BS_ACT_CLOSE, "not_done", &money, BS_E_CONFLICT },
        { BS_MANUAL, BS_ACT_RESOLVE, "not_done", &money, BS_E_CONFLICT },
        { BS_WAITING, BS_ACT_CLOSE, "not_done", &money, BS_E_CONFLICT },
        { BS_PROCESSING, BS_ACT_CLOSE, "not_done", &money, BS_E_CONFLICT },
        { BS_PROCESSING, BS_ACT_RESOLVE, "not_done", &money, BS_E_CONFLICT },
        { BS_MANUAL, BS_ACT_CLOSE, "done_elsewhere", &money, BS_OK },
        { BS_MANUAL, BS_ACT_RESOLVE, "other", &money, BS_OK },
        { BS_MANUAL, BS_ACT_CLOSE, "not_done", &repeatable, BS_OK },
        { BS_MANUAL, BS_ACT_CLOSE, "not_done", NULL, BS_OK },
    };

    (void)state;
    for (size_t i = 0; i < BS_COUNT(rows); i++) {
        struct bs_task t = running_task();
        struct bs_settlement s = { .to = BS_STATE_NONE };

        t.state = rows[i].state;
        assert_int_equal(bs_decide_act(&t, rows[i].action, S("why"), bs_str_of(rows[i].conclusion),
                                       rows[i].policy, NOW, &s, NULL),
                         rows[i].want);
    }
}

static void during_a_call_a_wish_waits(void **state)
{
    static const struct {
        enum bs_action action;
        enum bs_pending already, want;
    } rows[] = {
        { BS_ACT_CLOSE, BS_PENDING_NONE, BS_PENDING_CLOSE },
        { BS_ACT_HOLD, BS_PENDING_NONE, BS_PENDING_HOLD },
        { BS_ACT_RESOLVE, BS_PENDING_NONE, BS_PENDING_RESOLVE },
        { BS_ACT_CLOSE, BS_PENDING_CLOSE, BS_PENDING_CLOSE },
        { BS_ACT_CLOSE, BS_PENDING_HOLD, BS_PENDING_CLOSE }, /* the later wish stands */
    };

    (void)state;
    for (size_t i = 0; i < BS_COUNT(rows); i++) {
        struct bs_task t = running_task();
        struct bs_settlement s = { .to = BS_STATE_NONE };

        t.pending = rows[i].already;
        assert_int_equal(bs_decide_act(&t, rows[i].action, S("why"), conclusion_for(rows[i].action),
                                       &repeatable, NOW, &s, NULL),
                         BS_OK);
        assert_int_equal(s.event, BS_EV_ASK_CLOSE);
        assert_int_equal(s.to, BS_PROCESSING);
        assert_int_equal(s.pending, rows[i].want);
        assert_null(s.manual_code);
    }
}

static struct bs_task used_task(enum bs_state s)
{
    struct bs_task t = running_task();

    t.state = s;
    t.retry_count = 4;
    t.crash_count = 2;
    t.defer_count = 3;
    t.not_found_count = 2;
    t.first_not_found_at = LATER(-90);
    t.outcome_unknown = true;
    t.next_execute_at = LATER(1800);
    return t;
}

static struct bs_settlement act(struct bs_task *t, enum bs_action a)
{
    struct bs_settlement s = { .to = BS_STATE_NONE };

    assert_int_equal(bs_decide_act(t, a, S("why"), conclusion_for(a), &repeatable, NOW, &s, NULL),
                     BS_OK);
    return s;
}

static void run_now_keeps_the_budget(void **state)
{
    struct bs_task t = used_task(BS_RETRY);
    struct bs_settlement s = act(&t, BS_ACT_RETRY);

    (void)state;
    assert_int_equal(s.event, BS_EV_RUN_NOW);
    assert_int_equal(s.next_execute_at.us, NOW.us);
    assert_int_equal(s.retry_count, 4);
    assert_int_equal(s.crash_count, 2);
    assert_true(s.outcome_unknown);
}

static void retry_from_manual_is_a_fresh_budget_and_looks_first(void **state)
{
    struct bs_task t = used_task(BS_MANUAL);
    struct bs_settlement s = act(&t, BS_ACT_RETRY);

    (void)state;
    assert_int_equal(s.event, BS_EV_RETRY_FRESH);
    assert_int_equal(s.next_execute_at.us, NOW.us);
    assert_int_equal(s.retry_count, 0);
    assert_int_equal(s.crash_count, 0);
    assert_int_equal(s.defer_count, 0);
    assert_int_equal(s.not_found_count, 0);
    assert_int_equal(s.first_not_found_at.us, 0);
    assert_true(s.outcome_unknown);
}

static void hold_and_unhold_keep_everything_also_the_schedule(void **state)
{
    static const struct {
        int64_t next_s, want_s;
    } rows[] = { { 1800, 1800 }, { 0, 0 }, { -60, 0 } };

    (void)state;
    for (size_t i = 0; i < BS_COUNT(rows); i++) {
        struct bs_task t = used_task(BS_RETRY);

        t.next_execute_at = LATER(rows[i].next_s);
        struct bs_settlement held = act(&t, BS_ACT_HOLD);
        assert_word(held.manual_code, "HELD");
        assert_int_equal(held.next_execute_at.us, t.next_execute_at.us);
        t.state = held.to;
        t.manual_code = bs_str_of(held.manual_code);
        struct bs_settlement back = act(&t, BS_ACT_UNHOLD);
        assert_int_equal(back.event, BS_EV_UNHOLD_RETRY);
        assert_int_equal(back.to, BS_RETRY);
        assert_int_equal(back.retry_count, 4);
        assert_int_equal(back.crash_count, 2);
        assert_true(back.outcome_unknown);
        assert_null(back.manual_code);
        assert_int_equal(back.next_execute_at.us, LATER(rows[i].want_s).us);
    }
}

static void a_close_keeps_the_mark_beside_the_conclusion(void **state)
{
    struct bs_task t = used_task(BS_MANUAL);

    (void)state;
    assert_true(act(&t, BS_ACT_CLOSE).outcome_unknown);
    assert_true(act(&t, BS_ACT_RESOLVE).outcome_unknown);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_state_allows_what_the_table_says),
        cmocka_unit_test(what_is_allowed_is_what_is_possible),
        cmocka_unit_test(case_69_nothing_is_done_without_a_reason),
        cmocka_unit_test(close_and_resolve_need_a_known_conclusion),
        cmocka_unit_test(money_is_not_said_to_be_undone_without_proof),
        cmocka_unit_test(during_a_call_a_wish_waits),
        cmocka_unit_test(run_now_keeps_the_budget),
        cmocka_unit_test(retry_from_manual_is_a_fresh_budget_and_looks_first),
        cmocka_unit_test(hold_and_unhold_keep_everything_also_the_schedule),
        cmocka_unit_test(a_close_keeps_the_mark_beside_the_conclusion),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
