/* A wish of a person that waits for the end of a call, and leases that run out. */
#include "core_test.h"

static const struct bs_policy *const usual = &bs_policy_default;

static struct bs_outcome out(enum bs_outcome_kind k, const char *code)
{
    return (struct bs_outcome){ .kind = k, .code = bs_str_of(code) };
}

/* ---- a wish of a person that waits for the end of the call */

static void a_waiting_wish_is_granted_only_when_nothing_can_have_happened(void **state)
{
    static const struct {
        enum bs_pending pending;
        enum bs_outcome_kind kind;
        enum bs_verdict looked;
        bool marked;
        bool unknown;
        const char *manual_code, *alert;
        enum bs_event event;
        enum bs_state to;
    } rows[] = {
        { BS_PENDING_CLOSE, BS_OUT_SUCCESS, 0, true, false, "", "overtaken", BS_EV_SUCCEEDED,
          BS_SUCCESS },
        { BS_PENDING_HOLD, BS_OUT_SUCCESS, 0, false, false, "", "overtaken", BS_EV_SUCCEEDED,
          BS_SUCCESS },
        { BS_PENDING_RESOLVE, BS_OUT_FINISHED, BS_VERDICT_FINISHED, false, false, "", "overtaken",
          BS_EV_ALREADY_FINISHED, BS_SUCCESS },
        { BS_PENDING_CLOSE, BS_OUT_FAILED, 0, false, false, "", "", BS_EV_PENDING_CLOSED,
          BS_CLOSED },
        { BS_PENDING_RESOLVE, BS_OUT_FAILED, 0, false, false, "", "", BS_EV_PENDING_CLOSED,
          BS_CLOSED },
        { BS_PENDING_CLOSE, BS_OUT_UNSENT, 0, false, false, "", "", BS_EV_PENDING_CLOSED,
          BS_CLOSED },
        { BS_PENDING_CLOSE, BS_OUT_NOT_PROCESSED, 0, false, false, "", "", BS_EV_PENDING_CLOSED,
          BS_CLOSED },
        { BS_PENDING_CLOSE, BS_OUT_NOT_FOUND, BS_VERDICT_NOT_FOUND, false, false, "", "",
          BS_EV_PENDING_CLOSED, BS_CLOSED },
        { BS_PENDING_CLOSE, BS_OUT_FAILED, BS_VERDICT_GO_ON, true, false, "", "",
          BS_EV_PENDING_CLOSED, BS_CLOSED },
        { BS_PENDING_CLOSE, BS_OUT_FAILED, 0, true, true, "OUTCOME_UNKNOWN", "outcome_unknown",
          BS_EV_PENDING_MANUAL, BS_MANUAL },
        { BS_PENDING_CLOSE, BS_OUT_UNSENT, 0, true, true, "OUTCOME_UNKNOWN", "outcome_unknown",
          BS_EV_PENDING_MANUAL, BS_MANUAL },
        { BS_PENDING_CLOSE, BS_OUT_NOT_PROCESSED, 0, true, true, "OUTCOME_UNKNOWN",
          "outcome_unknown", BS_EV_PENDING_MANUAL, BS_MANUAL },
        { BS_PENDING_CLOSE, BS_OUT_UNKNOWN, 0, false, true, "OUTCOME_UNKNOWN", "outcome_unknown",
          BS_EV_PENDING_MANUAL, BS_MANUAL },
        { BS_PENDING_RESOLVE, BS_OUT_SENT, 0, false, true, "OUTCOME_UNKNOWN", "outcome_unknown",
          BS_EV_PENDING_MANUAL, BS_MANUAL },
        { BS_PENDING_CLOSE, BS_OUT_MANUAL, 0, false, false, "HTTP_422", "manual",
          BS_EV_PENDING_MANUAL, BS_MANUAL },
        { BS_PENDING_HOLD, BS_OUT_FAILED, 0, false, false, "HELD", "", BS_EV_PENDING_MANUAL,
          BS_MANUAL },
        { BS_PENDING_HOLD, BS_OUT_UNSENT, 0, true, true, "HELD", "", BS_EV_PENDING_MANUAL,
          BS_MANUAL },
        { BS_PENDING_HOLD, BS_OUT_UNKNOWN, 0, false, true, "HELD", "", BS_EV_PENDING_MANUAL,
          BS_MANUAL },
        { BS_PENDING_HOLD, BS_OUT_SENT, 0, false, true, "HELD", "", BS_EV_PENDING_MANUAL,
          BS_MANUAL },
        { BS_PENDING_HOLD, BS_OUT_MANUAL, 0, false, false, "HELD", "", BS_EV_PENDING_MANUAL,
          BS_MANUAL },
    };

    (void)state;
    for (size_t i = 0; i < BS_COUNT(rows); i++) {
        struct bs_task t = running_task();
        struct bs_outcome o = out(rows[i].kind, "HTTP_422");

        t.pending = rows[i].pending;
        t.outcome_unknown = rows[i].marked;
        o.looked = rows[i].looked;
        o.http_status = 422;
        struct bs_settlement s = bs_decide_finish(&t, &o, usual, NOW, 1);
        print_message("row %zu\n", i);
        assert_int_equal(s.pending, BS_PENDING_NONE);
        assert_int_equal(s.outcome_unknown, rows[i].unknown);
        assert_word(s.manual_code, rows[i].manual_code);
        assert_word(s.alert_kind, rows[i].alert);
        assert_int_equal((s.fx & BS_FX_ALERT) != 0, s.alert_kind != NULL);
        assert_int_equal(s.event, rows[i].event);
        assert_int_equal(s.to, rows[i].to);
    }
}

static void a_waiting_hold_with_a_spent_budget_says_so(void **state)
{
    static const struct {
        enum bs_outcome_kind kind;
        const char *want;
    } rows[] = {
        { BS_OUT_FAILED, "MAX_RETRIES" },
        { BS_OUT_UNKNOWN, "OUTCOME_UNKNOWN" },
        { BS_OUT_NOT_PROCESSED, "HELD" },
    };

    (void)state;
    for (size_t i = 0; i < BS_COUNT(rows); i++) {
        struct bs_task t = running_task();
        struct bs_outcome o = out(rows[i].kind, "X");

        t.pending = BS_PENDING_HOLD;
        t.retry_count = 9;
        assert_word(bs_decide_finish(&t, &o, usual, NOW, 1).manual_code, rows[i].want);
    }
}

/* ---- the lease ran out */

static void an_expired_lease_is_taken_over_and_the_third_asks_a_person(void **state)
{
    static const struct {
        int32_t crash_count;
        enum bs_pending pending;
        const char *manual_code, *alert;
        enum bs_event event;
        enum bs_state to;
    } rows[] = {
        { 0, BS_PENDING_NONE, "", "", BS_EV_LEASE_EXPIRED, BS_WAITING },
        { 1, BS_PENDING_NONE, "", "", BS_EV_LEASE_EXPIRED, BS_WAITING },
        { 2, BS_PENDING_NONE, "WORKER_LOST", "worker_lost", BS_EV_WORKER_LOST, BS_MANUAL },
        { 0, BS_PENDING_CLOSE, "OUTCOME_UNKNOWN", "outcome_unknown", BS_EV_PENDING_MANUAL,
          BS_MANUAL },
        { 0, BS_PENDING_RESOLVE, "OUTCOME_UNKNOWN", "outcome_unknown", BS_EV_PENDING_MANUAL,
          BS_MANUAL },
        { 0, BS_PENDING_HOLD, "HELD", "", BS_EV_PENDING_MANUAL, BS_MANUAL },
        { 2, BS_PENDING_HOLD, "WORKER_LOST", "worker_lost", BS_EV_WORKER_LOST, BS_MANUAL },
    };

    (void)state;
    for (size_t i = 0; i < BS_COUNT(rows); i++) {
        struct bs_task t = running_task();

        t.crash_count = rows[i].crash_count;
        t.retry_count = 4;
        t.pending = rows[i].pending;
        struct bs_settlement s = bs_decide_expired(&t, LATER(60));
        assert_int_equal(s.crash_count, rows[i].crash_count + 1);
        assert_int_equal(s.retry_count, 4);
        assert_true(s.outcome_unknown);
        assert_int_equal(s.next_execute_at.us, LATER(60).us);
        assert_int_equal(s.pending, BS_PENDING_NONE);
        assert_true(s.fx & BS_FX_TAKEOVER);
        assert_int_equal((s.fx & BS_FX_ALERT) != 0, s.alert_kind != NULL);
        assert_word(s.manual_code, rows[i].manual_code);
        assert_word(s.alert_kind, rows[i].alert);
        assert_int_equal(s.event, rows[i].event);
        assert_int_equal(s.to, rows[i].to);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_waiting_wish_is_granted_only_when_nothing_can_have_happened),
        cmocka_unit_test(a_waiting_hold_with_a_spent_budget_says_so),
        cmocka_unit_test(an_expired_lease_is_taken_over_and_the_third_asks_a_person),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
