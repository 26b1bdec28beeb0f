/* The contract: the end of an execution, fenced. */
#include "world.h"

#include <stdio.h>

static void a_lost_lease_cannot_settle(void **state)
{
    struct world *w = *state;
    int64_t id = put_one(w, "order-7/ship");

    struct bs_task *slow = claim_one(w);
    advance(w, 61000000);
    assert_int_equal(reap(w), 1);
    struct bs_task *fast = claim_one(w);
    assert_int_equal(slow->id, fast->id);
    assert_int_equal(fast->attempt_no, 2);

    assert_int_equal(finish(w, slow, BS_OUT_SUCCESS, ""), BS_E_STALE);
    assert_int_equal(state_of(w, id), BS_PROCESSING);
    assert_int_equal(finish(w, fast, BS_OUT_SUCCESS, ""), BS_OK);
    assert_int_equal(finish(w, fast, BS_OUT_SUCCESS, ""), BS_OK);
    assert_int_equal(finish(w, fast, BS_OUT_FAILED, "X"), BS_E_STALE);
    assert_int_equal(state_of(w, id), BS_SUCCESS);
    assert_string_equal(log_text(w, id),
                        "submit>WAITING claim>PROCESSING lease_expired>WAITING stale_result>- "
                        "claim>PROCESSING succeeded>SUCCESS stale_result>-");
}

static void a_stale_result_is_recorded_with_an_alert(void **state)
{
    struct world *w = *state;
    put_one(w, "r-1");
    struct bs_task *slow = claim_one(w);

    advance(w, 61000000);
    reap(w);
    struct bs_op op = finish_op(w, slow, BS_OUT_SUCCESS, "late");
    for (int i = 0; i < 2; i++) {
        assert_int_equal(apply(w, &op), BS_E_STALE);
        op.rerun = true;
    }
    assert_string_equal(alerts_text(w), "takeover PAY_CALLBACK x1\nstale_result PAY_CALLBACK x1\n");
}

static void a_finish_run_again_gives_its_first_result(void **state)
{
    struct world *w = *state;
    int64_t id = put_one(w, "r-1");

    w->policy.backoff.jitter_pct = 20;
    struct bs_op op = finish_op(w, claim_one(w), BS_OUT_FAILED, "HTTP_503");
    assert_int_equal(apply(w, &op), BS_OK);
    struct bs_settlement first = op.finish.ret_settled;
    assert_int_equal(first.to, BS_RETRY);
    op.rerun = true;
    op.finish.ret_settled = (struct bs_settlement){ 0 };
    assert_int_equal(apply(w, &op), BS_OK);
    assert_int_equal(op.finish.ret_settled.to, first.to);
    assert_int_equal(op.finish.ret_settled.event, first.event);
    assert_int_equal(op.finish.ret_settled.retry_count, 1);
    assert_int_equal(op.finish.ret_settled.next_execute_at.us, first.next_execute_at.us);
    assert_int_equal(get(w, id).due_at.us, first.next_execute_at.us);
    assert_int_equal(get(w, id).retry_count, 1);
    assert_string_equal(log_text(w, id), "submit>WAITING claim>PROCESSING failed>RETRY");
}

static void the_seeds_delays_are_kept(void **state)
{
    struct world *w = *state;
    static const int64_t minutes[] = { 1, 3, 10, 30, 60, 60 };
    int64_t id = put_one(w, "r-1");

    for (size_t i = 0; i < BS_COUNT(minutes); i++) {
        assert_int_equal(finish(w, claim_one(w), BS_OUT_FAILED, "HTTP_503"), BS_OK);
        struct bs_task t = get(w, id);
        assert_int_equal(t.state, BS_RETRY);
        assert_int_equal(t.retry_count, i + 1);
        assert_int_equal(t.due_at.us - w->now.us, minutes[i] * 60000000);
        assert_null(claim(w, 1));
        advance(w, minutes[i] * 60000000);
    }
}

static void the_last_failure_passes_through_failed_into_manual_with_one_alert(void **state)
{
    struct world *w = *state;
    struct bs_task *t = sample(w, "r-1");

    t->max_retry_count = 2;
    int64_t id = put(w, t);
    assert_int_equal(finish(w, claim_one(w), BS_OUT_FAILED, "HTTP_503"), BS_OK);
    advance(w, 60000000);
    assert_int_equal(finish(w, claim_one(w), BS_OUT_FAILED, "HTTP_409"), BS_OK);
    struct bs_task got = get(w, id);
    assert_int_equal(got.state, BS_MANUAL);
    assert_str(got.manual_code, "MAX_RETRIES");
    assert_str(got.last_error_code, "HTTP_409");
    assert_str(got.last_outcome, "failed");
    assert_string_equal(log_text(w, id),
                        "submit>WAITING claim>PROCESSING failed>RETRY claim>PROCESSING "
                        "failed_last>FAILED escalate>MANUAL");
    assert_string_equal(alerts_text(w), "max_retries PAY_CALLBACK x1\n");
}

static void unknown_marks_the_task_and_only_success_clears_it(void **state)
{
    struct world *w = *state;
    int64_t id = put_one(w, "r-1");

    assert_int_equal(finish(w, claim_one(w), BS_OUT_UNKNOWN, "TIMEOUT"), BS_OK);
    assert_true(get(w, id).outcome_unknown);
    advance(w, 60000000);
    assert_int_equal(finish(w, claim_one(w), BS_OUT_FAILED, "HTTP_503"), BS_OK);
    assert_true(get(w, id).outcome_unknown);
    advance(w, 180000000);
    assert_int_equal(finish(w, claim_one(w), BS_OUT_SUCCESS, ""), BS_OK);
    assert_false(get(w, id).outcome_unknown);
}

static void a_success_keeps_the_last_error_readable(void **state)
{
    struct world *w = *state;
    int64_t id = put_one(w, "r-1");

    assert_int_equal(finish(w, claim_one(w), BS_OUT_FAILED, "HTTP_503"), BS_OK);
    advance(w, 60000000);
    assert_int_equal(finish(w, claim_one(w), BS_OUT_SUCCESS, "OK"), BS_OK);
    struct bs_task t = get(w, id);
    assert_str(t.last_error_code, "HTTP_503");
    assert_str(t.last_outcome, "success");
}

static void an_attempt_keeps_what_was_said(void **state)
{
    struct world *w = *state;
    int64_t id = put_one(w, "r-1");
    struct bs_op op = finish_op(w, claim_one(w), BS_OUT_SUCCESS, "OK");

    advance(w, 42000);
    op.now = op.finish.outcome.ended_at = w->now;
    op.finish.outcome.http_status = 200;
    op.finish.outcome.effect = BS_STR("order A1001 marked paid");
    op.finish.outcome.excerpt = BS_STR("{\"outcome\":\"success\"}");
    assert_int_equal(apply(w, &op), BS_OK);
    assert_str(get(w, id).result_snapshot, "{\"outcome\":\"success\"}");

    struct bs_log_page page;
    assert_int_equal(bs_store_log(w->store, id, 0, 10, &w->arena, &page, NULL), BS_OK);
    assert_int_equal(page.n, 3);
    const struct bs_log_item *claimed = &page.items[1], *end = &page.items[2];
    assert_int_equal(page.items[0].from, BS_STATE_NONE);
    assert_str(page.items[0].operator, "shop");
    assert_int_equal(claimed->from, BS_WAITING);
    assert_int_equal(claimed->at.us, START_US);
    assert_int_equal(claimed->token, START_US);
    assert_int_equal(end->from, BS_PROCESSING);
    assert_int_equal(end->to, BS_SUCCESS);
    assert_int_equal(end->attempt_no, 1);
    assert_str(end->outcome, "success");
    assert_str(end->effect, "order A1001 marked paid");
    assert_str(end->node, "node-1");
    assert_int_equal(end->http_status, 200);
    assert_int_equal(end->duration_ms, 42);
}

static void faults_of_an_endpoint_raise_one_alert_for_its_queue(void **state)
{
    struct world *w = *state;

    put_one(w, "r-1");
    put_one(w, "r-2");
    for (struct bs_leased *l = claim(w, 2); l; l = l->next) {
        struct bs_op op = finish_op(w, &l->task, BS_OUT_NOT_PROCESSED, "HTTP_404");
        op.finish.outcome.endpoint_fault = true;
        assert_int_equal(apply(w, &op), BS_OK);
        assert_int_equal(get(w, l->task.id).retry_count, 0);
    }
    assert_string_equal(alerts_text(w), "endpoint_fault PAY_CALLBACK HTTP_404 x2\n");
}

static void a_close_during_the_call_decides_at_its_end(void **state)
{
    struct world *w = *state;
    static const struct {
        enum bs_outcome_kind kind;
        enum bs_state to;
        const char *conclusion;
    } rows[] = {
        { BS_OUT_FAILED, BS_CLOSED, "not_done" },
        { BS_OUT_UNSENT, BS_CLOSED, "not_done" },
        { BS_OUT_SUCCESS, BS_SUCCESS, "" },
        { BS_OUT_UNKNOWN, BS_MANUAL, "" },
    };

    for (size_t i = 0; i < BS_COUNT(rows); i++) {
        struct bs_task *t = sample(w, (const char *[]){ "a", "b", "c", "d" }[i]);
        t->effect_key = t->request_id;
        int64_t id = put(w, t);
        struct bs_task *c = claim_one(w);
        struct bs_op op = act_op(w, id, BS_ACT_CLOSE, "not_done");
        assert_int_equal(apply(w, &op), BS_OK);
        assert_true(op.act.ret_pending);
        assert_int_equal(get(w, id).pending, BS_PENDING_CLOSE);
        struct bs_op end = finish_op(w, c, rows[i].kind, "X");
        for (int again = 0; again < 2; again++) {
            assert_int_equal(apply(w, &end), BS_OK);
            assert_int_equal(end.finish.ret_settled.to, rows[i].to);
            end.rerun = true;
        }
        struct bs_task got = get(w, id);
        assert_int_equal(got.state, rows[i].to);
        assert_int_equal(got.pending, BS_PENDING_NONE);
        assert_str(got.conclusion, rows[i].conclusion);
        struct bs_task *next = sample(w, (const char *[]){ "a2", "b2", "c2", "d2" }[i]);
        next->effect_key = t->request_id;
        struct bs_op second = submit_op(w, next, "content");
        assert_int_equal(apply(w, &second), BS_OK);
        assert_int_equal(second.submit.ret_what, rows[i].to == BS_CLOSED
                                                     ? BS_SUBMITTED_CREATED
                                                     : BS_SUBMITTED_DUPLICATE_EFFECT);
        if (rows[i].to == BS_CLOSED)
            assert_int_equal(act(w, second.id, BS_ACT_HOLD, ""), BS_OK);
    }
}

static void a_pending_close_outlives_a_lost_lease_as_a_persons_task(void **state)
{
    struct world *w = *state;
    int64_t id = put_one(w, "r-1");

    claim_one(w);
    assert_int_equal(act(w, id, BS_ACT_CLOSE, "other"), BS_OK);
    advance(w, 60000000);
    assert_int_equal(reap(w), 1);
    struct bs_task t = get(w, id);
    assert_int_equal(t.state, BS_MANUAL);
    assert_str(t.manual_code, "OUTCOME_UNKNOWN");
    assert_str(t.conclusion, "");
    assert_int_equal(t.pending, BS_PENDING_NONE);
}

static void finishing_a_task_that_is_not_there_says_so(void **state)
{
    struct world *w = *state;
    struct bs_task ghost = {
        .id = 5, .state = BS_PROCESSING, .attempt_no = 1, .lease_token = 1, .biz_type = QUEUE
    };

    assert_int_equal(finish(w, &ghost, BS_OUT_SUCCESS, ""), BS_E_NOT_FOUND);
}

static void a_settlement_after_busy_succeeds_with_the_same_token(void **state)
{
    struct world *w = *state;
    int64_t id = put_one(w, "r-1");
    struct bs_op op = finish_op(w, claim_one(w), BS_OUT_SUCCESS, ""), *list = &op;

    bs_faulty_plan(w->db, &(struct bs_fault_plan){ .one_statement = true,
                                                   .sql = BS_SQL_TASK_END,
                                                   .when = BS_FAULT_AFTER,
                                                   .fail_in = 1,
                                                   .rc = BS_E_BUSY });
    assert_int_equal(bs_store_apply(w->store, &list, 1, &w->err), BS_E_BUSY);
    assert_int_equal(state_of(w, id), BS_PROCESSING);
    assert_int_equal(bs_store_apply(w->store, &list, 1, &w->err), BS_OK);
    assert_int_equal(op.rc, BS_OK);
    assert_int_equal(state_of(w, id), BS_SUCCESS);
}

static void task_attempt_and_figures_commit_together_or_not_at_all(void **state)
{
    struct world *w = *state;
    int64_t id = put_one(w, "r-1");
    struct bs_op op = finish_op(w, claim_one(w), BS_OUT_FAILED, "X"), *list = &op;
    static const enum bs_sql late[] = { BS_SQL_LOG_INSERT, BS_SQL_STAT_UPDATE, BS_SQL_STAT_INSERT };

    for (size_t i = 0; i < BS_COUNT(late); i++) {
        bs_faulty_plan(
            w->db, &(struct bs_fault_plan){ .one_statement = true, .sql = late[i], .fail_in = 1 });
        assert_int_equal(bs_store_apply(w->store, &list, 1, &w->err), BS_E_UNAVAILABLE);
        assert_int_equal(state_of(w, id), BS_PROCESSING);
        assert_string_equal(log_text(w, id), "submit>WAITING claim>PROCESSING");
        assert_sound(w);
    }
}

int run_finish_cases(void)
{
    const struct CMUnitTest cases[] = {
        CASE(a_lost_lease_cannot_settle),
        CASE(a_stale_result_is_recorded_with_an_alert),
        CASE(a_finish_run_again_gives_its_first_result),
        CASE(the_seeds_delays_are_kept),
        CASE(the_last_failure_passes_through_failed_into_manual_with_one_alert),
        CASE(unknown_marks_the_task_and_only_success_clears_it),
        CASE(a_success_keeps_the_last_error_readable),
        CASE(an_attempt_keeps_what_was_said),
        CASE(faults_of_an_endpoint_raise_one_alert_for_its_queue),
        CASE(a_close_during_the_call_decides_at_its_end),
        CASE(a_pending_close_outlives_a_lost_lease_as_a_persons_task),
        CASE(finishing_a_task_that_is_not_there_says_so),
        CASE(a_settlement_after_busy_succeeds_with_the_same_token),
        CASE(task_attempt_and_figures_commit_together_or_not_at_all),
    };

    return cmocka_run_group_tests_name("finish", cases, NULL, NULL);
}
