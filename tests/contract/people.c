/* The contract: what people do, with its audit. */
#include "world.h"

static void a_person_can_hold_let_go_retry_resolve_and_close(void **state)
{
    struct world *w = *state;
    int64_t id = put_one(w, "r-1");

    assert_int_equal(act(w, id, BS_ACT_HOLD, ""), BS_OK);
    assert_str(get(w, id).manual_code, "HELD");
    assert_null(claim(w, 1));
    assert_int_equal(act(w, id, BS_ACT_UNHOLD, ""), BS_OK);
    assert_int_equal(finish(w, claim_one(w), BS_OUT_FAILED, "X"), BS_OK);
    assert_int_equal(act(w, id, BS_ACT_RETRY, ""), BS_OK);
    assert_int_equal(get(w, id).retry_count, 1);
    assert_int_equal(finish(w, claim_one(w), BS_OUT_MANUAL, "HTTP_422"), BS_OK);
    assert_int_equal(act(w, id, BS_ACT_RETRY, ""), BS_OK);
    assert_int_equal(get(w, id).retry_count, 0);
    assert_int_equal(finish(w, claim_one(w), BS_OUT_MANUAL, "HTTP_422"), BS_OK);
    assert_int_equal(act(w, id, BS_ACT_RESOLVE, "done_elsewhere"), BS_OK);
    struct bs_task t = get(w, id);
    assert_int_equal(t.state, BS_CLOSED);
    assert_str(t.conclusion, "done_elsewhere");
    assert_string_equal(log_text(w, id),
                        "submit>WAITING hold>MANUAL unhold>WAITING claim>PROCESSING failed>RETRY "
                        "run_now>RETRY claim>PROCESSING needs_person>MANUAL retry_fresh>WAITING "
                        "claim>PROCESSING needs_person>MANUAL resolve>CLOSED");
    assert_int_equal(audit_count(w), 5);
}

static void an_audit_row_tells_who_when_why_and_what_changed(void **state)
{
    struct world *w = *state;
    struct bs_task *t = sample(w, "r-1");

    t->order_no = BS_STR("A1001");
    int64_t id = put(w, t);
    advance(w, 5);
    struct bs_op op = act_op(w, id, BS_ACT_CLOSE, "other");
    assert_int_equal(apply(w, &op), BS_OK);
    struct bs_audit_row *rows = NULL;
    uint32_t n = 0;
    assert_int_equal(bs_store_audit(w->store, 0, 10, &w->arena, &rows, &n, NULL), BS_OK);
    assert_int_equal(n, 1);
    assert_int_equal(rows[0].id, op.id);
    assert_int_equal(rows[0].at.us, START_US + 5);
    assert_str(rows[0].operator, "li.na");
    assert_str(rows[0].action, "close");
    assert_str(rows[0].reason, "looked at it");
    assert_str(rows[0].conclusion, "other");
    assert_str(rows[0].order_no, "A1001");
    assert_str(rows[0].before,
               "{\"task_status\":\"WAITING\",\"retry_count\":0,\"crash_count\":0,"
               "\"outcome_unknown\":false,\"manual_code\":null,\"conclusion\":null,"
               "\"close_pending\":\"none\",\"next_execute_at\":\"2026-11-30T16:00:00.000000Z\","
               "\"version\":\"1\"}");
    assert_true(bs_str_starts(rows[0].after, BS_STR("{\"task_status\":\"CLOSED\"")));
    const char *object = bs_arena_fmt(&w->arena, "task:%lld", (long long)id).p;
    assert_string_equal(to_text(w, rows[0].object), object);
}

static void a_failing_audit_write_means_no_change(void **state)
{
    struct world *w = *state;
    int64_t id = put_one(w, "r-1");
    struct bs_op op = act_op(w, id, BS_ACT_CLOSE, "other"), *list = &op;

    bs_faulty_plan(w->db, &(struct bs_fault_plan){ .one_statement = true,
                                                   .sql = BS_SQL_AUDIT_INSERT,
                                                   .fail_in = 1,
                                                   .for_ever = true });
    assert_int_equal(bs_store_apply(w->store, &list, 1, &w->err), BS_E_UNAVAILABLE);
    assert_int_equal(state_of(w, id), BS_WAITING);
    assert_string_equal(log_text(w, id), "submit>WAITING");
    assert_int_equal(audit_count(w), 0);
    bs_faulty_plan(w->db, &(struct bs_fault_plan){ 0 });
    assert_int_equal(apply(w, &op), BS_OK);
    assert_int_equal(audit_count(w), 1);
}

static void the_audit_cannot_be_changed_or_deleted(void **state)
{
    struct world *w = *state;

    assert_int_equal(act(w, put_one(w, "r-1"), BS_ACT_CLOSE, "other"), BS_OK);
    assert_int_equal(w->db->ops->script(w->db, "UPDATE audit SET reason = 'x'", NULL),
                     BS_E_CONFLICT);
    assert_int_equal(w->db->ops->script(w->db, "DELETE FROM audit", NULL), BS_E_CONFLICT);
    assert_int_equal(audit_count(w), 1);
}

static void an_action_without_reason_or_conclusion_is_refused_and_leaves_no_trace(void **state)
{
    struct world *w = *state;
    int64_t id = put_one(w, "r-1");
    struct bs_op op = act_op(w, id, BS_ACT_HOLD, "");

    op.act.reason = BS_STR("  ");
    assert_int_equal(apply(w, &op), BS_E_INVALID);
    assert_int_equal(act(w, id, BS_ACT_CLOSE, ""), BS_E_INVALID);
    assert_int_equal(act(w, id, BS_ACT_CLOSE, "whatever"), BS_E_INVALID);
    assert_int_equal(audit_count(w), 0);
    assert_int_equal(get(w, id).version, 1);
}

static void an_action_that_the_state_forbids_is_a_conflict(void **state)
{
    struct world *w = *state;
    int64_t id = put_one(w, "r-1");

    assert_int_equal(act(w, id, BS_ACT_UNHOLD, ""), BS_E_CONFLICT);
    assert_int_equal(act(w, id, BS_ACT_CLOSE, "other"), BS_OK);
    struct bs_op op = act_op(w, id, BS_ACT_RETRY, "");
    assert_int_equal(apply(w, &op), BS_E_CONFLICT);
    assert_non_null(strstr(op.err.msg, "CLOSED"));
    assert_int_equal(audit_count(w), 1);
}

static void an_old_version_is_refused(void **state)
{
    struct world *w = *state;
    int64_t id = put_one(w, "r-1");
    struct bs_op op = act_op(w, id, BS_ACT_HOLD, "");

    op.act.expected_version = 2;
    assert_int_equal(apply(w, &op), BS_E_STALE);
    op.act.expected_version = 1;
    assert_int_equal(apply(w, &op), BS_OK);
    assert_int_equal(op.act.ret_task.version, 2);
    assert_int_equal(op.act.ret_task.state, BS_MANUAL);
}

static void an_action_on_a_task_that_is_not_there_says_so(void **state)
{
    struct world *w = *state;

    assert_int_equal(act(w, 7, BS_ACT_HOLD, ""), BS_E_NOT_FOUND);
}

static void an_action_run_again_is_done_once(void **state)
{
    struct world *w = *state;
    int64_t id = put_one(w, "r-1");
    struct bs_op op = act_op(w, id, BS_ACT_HOLD, "");

    for (int i = 0; i < 2; i++) {
        assert_int_equal(apply(w, &op), BS_OK);
        assert_int_equal(op.act.ret_task.version, 2);
        assert_false(op.act.ret_pending);
        op.rerun = true;
    }
    assert_int_equal(audit_count(w), 1);
    assert_string_equal(log_text(w, id), "submit>WAITING hold>MANUAL");
}

static void a_hold_during_the_call_waits_for_its_end(void **state)
{
    struct world *w = *state;
    int64_t id = put_one(w, "r-1");
    struct bs_task *t = claim_one(w);
    struct bs_op op = act_op(w, id, BS_ACT_HOLD, "");

    for (int i = 0; i < 2; i++) {
        assert_int_equal(apply(w, &op), BS_OK);
        assert_true(op.act.ret_pending);
        assert_int_equal(op.act.ret_task.state, BS_PROCESSING);
        op.rerun = true;
    }
    assert_int_equal(finish(w, t, BS_OUT_FAILED, "X"), BS_OK);
    struct bs_task got = get(w, id);
    assert_int_equal(got.state, BS_MANUAL);
    assert_str(got.manual_code, "HELD");
    assert_string_equal(log_text(w, id), "submit>WAITING claim>PROCESSING ask_close>PROCESSING "
                                         "pending_manual>MANUAL");
}

static void retry_keeps_the_manual_code_for_the_record(void **state)
{
    struct world *w = *state;
    int64_t id = put_one(w, "r-1");

    assert_int_equal(finish(w, claim_one(w), BS_OUT_MANUAL, "AMOUNT_MISMATCH"), BS_OK);
    assert_int_equal(act(w, id, BS_ACT_RETRY, ""), BS_OK);
    struct bs_task t = get(w, id);
    assert_int_equal(t.state, BS_WAITING);
    assert_int_equal(t.due_at.us, w->now.us);
    assert_str(t.last_error_code, "AMOUNT_MISMATCH");
}

static void a_close_keeps_the_unknown_mark_beside_the_conclusion(void **state)
{
    struct world *w = *state;
    int64_t id = put_one(w, "r-1");

    assert_int_equal(finish(w, claim_one(w), BS_OUT_UNKNOWN, "TIMEOUT"), BS_OK);
    assert_int_equal(act(w, id, BS_ACT_CLOSE, "other"), BS_OK);
    assert_true(get(w, id).outcome_unknown);
}

int run_people_cases(void)
{
    const struct CMUnitTest cases[] = {
        CASE(a_person_can_hold_let_go_retry_resolve_and_close),
        CASE(an_audit_row_tells_who_when_why_and_what_changed),
        CASE(a_failing_audit_write_means_no_change),
        CASE(the_audit_cannot_be_changed_or_deleted),
        CASE(an_action_without_reason_or_conclusion_is_refused_and_leaves_no_trace),
        CASE(an_action_that_the_state_forbids_is_a_conflict),
        CASE(an_old_version_is_refused),
        CASE(an_action_on_a_task_that_is_not_there_says_so),
        CASE(an_action_run_again_is_done_once),
        CASE(a_hold_during_the_call_waits_for_its_end),
        CASE(retry_keeps_the_manual_code_for_the_record),
        CASE(a_close_keeps_the_unknown_mark_beside_the_conclusion),
    };

    return cmocka_run_group_tests_name("people", cases, NULL, NULL);
}
