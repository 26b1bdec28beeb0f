/* The contract: claims, leases, tokens, the end of leases. */
#include "world.h"

#include <stdio.h>

static int64_t put_at(struct world *w, const char *key, int32_t priority, int64_t due_us)
{
    struct bs_task *t = sample(w, key);

    t->priority = priority;
    t->due_at = t->next_execute_at = (struct bs_time){ due_us };
    return put(w, t);
}

static void nothing_is_leased_before_it_is_due(void **state)
{
    struct world *w = *state;
    int64_t id = put_at(w, "r-1", 1, START_US + 5);
    struct bs_op op = claim_op(w, QUEUE, 10);

    assert_int_equal(apply(w, &op), BS_OK);
    assert_null(op.claim.ret_tasks);
    assert_false(op.claim.ret_more);
    assert_int_equal(op.claim.ret_next_due.us, START_US + 5);
    advance(w, 5);
    assert_int_equal(claim_one(w)->id, id);
}

static void a_claim_brings_the_whole_task_under_lease(void **state)
{
    struct world *w = *state;
    struct bs_task *t = sample(w, "r-1");

    t->extra_data = BS_STR("{\"x\":2}");
    int64_t id = put(w, t);
    advance(w, 10);
    struct bs_task *c = claim_one(w);
    assert_int_equal(c->id, id);
    assert_int_equal(c->state, BS_PROCESSING);
    assert_int_equal(c->attempt_no, 1);
    assert_int_equal(c->lease_token, w->now.us);
    assert_str(c->locked_by, "claim-1");
    assert_int_equal(c->locked_at.us, w->now.us);
    assert_int_equal(c->locked_until.us, w->now.us + 60000000);
    assert_int_equal(c->last_execute_at.us, w->now.us);
    assert_str(c->payload, "{\"a\":1}");
    assert_str(c->extra_data, "{\"x\":2}");
    assert_int_equal(c->version, 2);

    struct bs_task row = get(w, id);
    assert_int_equal(row.state, BS_PROCESSING);
    assert_int_equal(row.attempt_no, c->attempt_no);
    assert_int_equal(row.lease_token, c->lease_token);
    assert_int_equal(row.locked_until.us, c->locked_until.us);
    assert_int_equal(row.version, c->version);
    assert_int_equal(row.due_at.us, 0);
}

static void lower_priorities_and_earlier_times_go_first(void **state)
{
    struct world *w = *state;
    int64_t late = put_at(w, "r-1", 1, START_US + 3), low = put_at(w, "r-2", 3, START_US);
    int64_t early = put_at(w, "r-3", 1, START_US + 1), high = put_at(w, "r-4", 0, START_US + 4);

    advance(w, 10);
    struct bs_leased *l = claim(w, 10);
    assert_int_equal(l->task.id, high);
    assert_int_equal(l->next->task.id, early);
    assert_int_equal(l->next->next->task.id, late);
    assert_int_equal(l->next->next->next->task.id, low);
    assert_null(l->next->next->next->next);
}

static void a_claim_takes_no_more_than_its_limit_and_says_that_there_is_more(void **state)
{
    struct world *w = *state;

    put_one(w, "r-1");
    put_one(w, "r-2");
    put_one(w, "r-3");
    struct bs_op op = claim_op(w, QUEUE, 2);
    assert_int_equal(apply(w, &op), BS_OK);
    assert_int_equal(op.claim.ret_n, 2);
    assert_true(op.claim.ret_more);
    bs_leased_free(op.claim.ret_tasks);
    op = claim_op(w, QUEUE, 2);
    assert_int_equal(apply(w, &op), BS_OK);
    assert_int_equal(op.claim.ret_n, 1);
    assert_false(op.claim.ret_more);
    assert_true(op.claim.ret_next_due.us == BS_NEVER.us);
    bs_leased_free(op.claim.ret_tasks);
}

static void a_claim_sees_its_own_queue_only(void **state)
{
    struct world *w = *state;
    struct bs_task *t = sample(w, "r-1");

    t->biz_type = BS_STR("REFUND");
    put(w, t);
    assert_null(claim(w, 10));
}

static void a_claim_run_again_gives_the_tasks_it_took(void **state)
{
    struct world *w = *state;

    for (int i = 0; i < 5; i++)
        put_one(w, (const char *[]){ "a", "b", "c", "d", "e" }[i]);
    struct bs_op op = claim_op(w, QUEUE, 3);
    assert_int_equal(apply(w, &op), BS_OK);
    int64_t ids[3], tokens[3], n = 0;
    for (struct bs_leased *l = op.claim.ret_tasks; l; l = l->next, n++) {
        ids[n] = l->task.id;
        tokens[n] = l->task.lease_token;
    }
    op.rerun = true;
    advance(w, 100);
    assert_int_equal(apply(w, &op), BS_OK);
    assert_int_equal(op.claim.ret_n, 3);
    n = 0;
    for (struct bs_leased *l = op.claim.ret_tasks; l; l = l->next, n++) {
        assert_int_equal(l->task.id, ids[n]);
        assert_int_equal(l->task.lease_token, tokens[n]);
        assert_int_equal(l->task.attempt_no, 1);
        assert_str(l->task.payload, "{\"a\":1}");
    }
    bs_leased_free(op.claim.ret_tasks);
    assert_int_equal(count_leased(claim(w, 10)), 2);
}

static void a_claim_run_again_that_had_not_happened_claims(void **state)
{
    struct world *w = *state;

    put_one(w, "r-1");
    struct bs_op op = claim_op(w, QUEUE, 3);
    op.rerun = true;
    assert_int_equal(apply(w, &op), BS_OK);
    assert_int_equal(op.claim.ret_n, 1);
    bs_leased_free(op.claim.ret_tasks);
}

static void tokens_grow_with_every_lease_also_when_the_clock_stands(void **state)
{
    struct world *w = *state;
    int64_t last = 0;

    put_one(w, "r-1");
    for (int i = 1; i <= 4; i++) {
        struct bs_op op = claim_op(w, QUEUE, 1);

        op.claim.token_floor = i == 3 ? 1 : START_US; /* an older clock does not lower it */
        assert_int_equal(apply(w, &op), BS_OK);
        struct bs_task *t = &op.claim.ret_tasks->task;
        assert_true(t->lease_token > last);
        assert_int_equal(t->attempt_no, i);
        last = t->lease_token;
        assert_int_equal(finish(w, t, BS_OUT_UNSENT, ""), BS_OK);
        bs_leased_free(op.claim.ret_tasks);
    }
    assert_int_equal(last, START_US + 3);
}

static void a_lease_that_ran_out_is_taken_over_once_and_logged(void **state)
{
    struct world *w = *state;
    int64_t id = put_one(w, "r-1");

    claim_one(w);
    advance(w, 59999999);
    assert_int_equal(reap(w), 0);
    advance(w, 1);
    assert_int_equal(reap(w), 1);
    assert_int_equal(reap(w), 0);
    struct bs_task t = get(w, id);
    assert_int_equal(t.state, BS_WAITING);
    assert_true(t.outcome_unknown);
    assert_int_equal(t.crash_count, 1);
    assert_int_equal(t.retry_count, 0);
    assert_int_equal(t.due_at.us, w->now.us);
    assert_string_equal(log_text(w, id), "submit>WAITING claim>PROCESSING lease_expired>WAITING");
}

static void the_third_lost_lease_goes_to_a_person(void **state)
{
    struct world *w = *state;
    int64_t id = put_one(w, "r-1");

    for (int i = 0; i < 3; i++) {
        claim_one(w);
        advance(w, 60000000);
        assert_int_equal(reap(w), 1);
    }
    struct bs_task t = get(w, id);
    assert_int_equal(t.state, BS_MANUAL);
    assert_str(t.manual_code, "WORKER_LOST");
    assert_string_equal(alerts_text(w), "takeover PAY_CALLBACK x3\nworker_lost PAY_CALLBACK x1\n");
}

static void reaping_is_sliced_and_says_that_there_is_more(void **state)
{
    struct world *w = *state;

    for (int i = 0; i < 5; i++)
        put_one(w, (const char *[]){ "a", "b", "c", "d", "e" }[i]);
    claim(w, 5);
    advance(w, 60000000);
    struct bs_op op = op_of(w, BS_OP_REAP);
    op.reap = (struct bs_op_reap){ .limit = 3, .node = BS_STR("n") };
    assert_int_equal(apply(w, &op), BS_OK);
    assert_int_equal(op.reap.ret_waiting, 3);
    assert_true(op.reap.ret_more);
    op = op_of(w, BS_OP_REAP);
    op.reap = (struct bs_op_reap){ .limit = 3, .node = BS_STR("n") };
    assert_int_equal(apply(w, &op), BS_OK);
    assert_int_equal(op.reap.ret_waiting, 2);
    assert_false(op.reap.ret_more);
}

static bs_rc renew(struct world *w, const struct bs_task *t, int64_t until_us)
{
    struct bs_op op = op_of(w, BS_OP_RENEW);

    op.renew = (struct bs_op_renew){ t->id, t->lease_token, { until_us } };
    return apply(w, &op);
}

static void a_renewed_lease_lasts_longer_and_never_shorter(void **state)
{
    struct world *w = *state;
    int64_t id = put_one(w, "r-1");
    struct bs_task *t = claim_one(w);

    assert_int_equal(renew(w, t, START_US + 90000000), BS_OK);
    assert_int_equal(renew(w, t, START_US + 70000000), BS_OK);
    assert_int_equal(get(w, id).locked_until.us, START_US + 90000000);
    advance(w, 80000000);
    assert_int_equal(reap(w), 0);
    assert_int_equal(finish(w, t, BS_OUT_SUCCESS, ""), BS_OK);
}

static void a_lost_lease_cannot_be_renewed(void **state)
{
    struct world *w = *state;

    put_one(w, "r-1");
    struct bs_task *slow = claim_one(w);
    advance(w, 60000000);
    reap(w);
    assert_int_equal(renew(w, slow, w->now.us + 60000000), BS_E_STALE);
    struct bs_task *fast = claim_one(w);
    assert_int_equal(renew(w, slow, w->now.us + 99000000), BS_E_STALE);
    assert_int_equal(get(w, fast->id).locked_until.us, fast->locked_until.us);
}

/* ---- suspects: tasks that lost their lease twice ---- */

static void make_suspect(struct world *w, const char *key)
{
    int64_t id = put_one(w, key);

    for (int i = 0; i < 2; i++) {
        assert_int_equal(claim_one(w)->id, id);
        advance(w, 60000000);
        assert_int_equal(reap(w), 1);
    }
}

/* Several at once: each claim of the world may take one suspect only. */
static void make_suspects(struct world *w, int n)
{
    char key[16];

    for (int i = 0; i < n; i++) {
        snprintf(key, sizeof(key), "s-%d", i);
        make_suspect(w, key);
        struct bs_op op = act_op(w, w->leased->task.id, BS_ACT_HOLD, "");
        assert_int_equal(apply(w, &op), BS_OK);
    }
    for (struct bs_leased *l = w->leased; l; l = l->next) {
        if (state_of(w, l->task.id) == BS_MANUAL)
            assert_int_equal(act(w, l->task.id, BS_ACT_UNHOLD, ""), BS_OK);
    }
}

static void suspects_are_claimed_no_more_than_allowed_and_do_not_stall_the_others(void **state)
{
    struct world *w = *state;

    make_suspects(w, 5);
    for (int i = 0; i < 4; i++)
        put_one(w, (const char *[]){ "a", "b", "c", "d" }[i]);
    advance(w, 1);

    struct bs_op none = claim_op(w, QUEUE, 2);
    none.claim.suspects_limit = 0;
    assert_int_equal(apply(w, &none), BS_OK);
    assert_int_equal(none.claim.ret_n, 2);
    for (struct bs_leased *l = none.claim.ret_tasks; l; l = l->next)
        assert_int_equal(l->task.crash_count, 0);
    assert_true(none.claim.ret_more);
    bs_leased_free(none.claim.ret_tasks);

    struct bs_op one = claim_op(w, QUEUE, 10);
    assert_int_equal(apply(w, &one), BS_OK);
    assert_int_equal(one.claim.ret_n, 3);
    int suspects = 0;
    for (struct bs_leased *l = one.claim.ret_tasks; l; l = l->next)
        suspects += l->task.crash_count == 2;
    assert_int_equal(suspects, 1);
    /* Four suspects are due, but nobody may take them now: that is not "more". */
    assert_false(one.claim.ret_more);
    assert_true(one.claim.ret_next_due.us == BS_NEVER.us);
    bs_leased_free(one.claim.ret_tasks);
}

static void a_suspect_that_may_be_taken_counts_as_due(void **state)
{
    struct world *w = *state;

    make_suspect(w, "r-1");
    struct bs_op op = claim_op(w, QUEUE, 0);
    assert_int_equal(apply(w, &op), BS_OK);
    assert_false(op.claim.ret_more);
    op = claim_op(w, QUEUE, 5);
    assert_int_equal(apply(w, &op), BS_OK);
    assert_int_equal(op.claim.ret_n, 1);
    bs_leased_free(op.claim.ret_tasks);
}

/* ---- a rival ---- */

/* Takes the task away as another worker would: before the n-th statement of a claim. */
struct rival {
    struct world *w;
    int64_t id;
    int before;
};

static bs_rc strike(void *ctx, enum bs_fault_call call, enum bs_fault_when when)
{
    struct rival *r = ctx;
    char sql[256];

    if (call != BS_FAULT_RUN || when != BS_FAULT_BEFORE || --r->before != 0)
        return BS_OK;
    snprintf(sql, sizeof(sql),
             "UPDATE task SET task_status = 'CLOSED', due_at = NULL, order_no = 'rival' "
             "WHERE id = %lld AND task_status IN ('WAITING', 'RETRY')",
             (long long)r->id);
    return r->w->db->ops->script(r->w->db, sql, &r->w->err);
}

/* The first seed's rule: only whose update changed the row has the task. */
static void of_two_workers_only_the_one_whose_update_changed_the_row_has_the_task(void **state)
{
    int lost_after_the_scan = 0;

    (void)state;
    for (int before = 1; before <= 12; before++) {
        struct world *w = world_new(contract_factory);
        struct rival r = { w, put_one(w, "r-1"), before };
        struct bs_op op = claim_op(w, QUEUE, 10);

        bs_faulty_hook(w->db, strike, &r);
        assert_int_equal(apply(w, &op), BS_OK);
        bs_faulty_hook(w->db, NULL, NULL);
        bool lost = bs_str_eq(get(w, r.id).order_no, BS_STR("rival"));
        assert_int_equal(op.claim.ret_n, lost ? 0 : 1);
        assert_int_equal(state_of(w, r.id), lost ? BS_CLOSED : BS_PROCESSING);
        lost_after_the_scan += lost && r.before < 0;
        bs_leased_free(op.claim.ret_tasks);
        world_drop(w); /* the rival moved no figures */
    }
    assert_true(lost_after_the_scan > 0);
}

int run_claim_cases(void)
{
    const struct CMUnitTest cases[] = {
        CASE(nothing_is_leased_before_it_is_due),
        CASE(a_claim_brings_the_whole_task_under_lease),
        CASE(lower_priorities_and_earlier_times_go_first),
        CASE(a_claim_takes_no_more_than_its_limit_and_says_that_there_is_more),
        CASE(a_claim_sees_its_own_queue_only),
        CASE(a_claim_run_again_gives_the_tasks_it_took),
        CASE(a_claim_run_again_that_had_not_happened_claims),
        CASE(tokens_grow_with_every_lease_also_when_the_clock_stands),
        CASE(a_lease_that_ran_out_is_taken_over_once_and_logged),
        CASE(the_third_lost_lease_goes_to_a_person),
        CASE(reaping_is_sliced_and_says_that_there_is_more),
        CASE(a_renewed_lease_lasts_longer_and_never_shorter),
        CASE(a_lost_lease_cannot_be_renewed),
        CASE(suspects_are_claimed_no_more_than_allowed_and_do_not_stall_the_others),
        CASE(a_suspect_that_may_be_taken_counts_as_due),
        cmocka_unit_test(of_two_workers_only_the_one_whose_update_changed_the_row_has_the_task),
    };

    return cmocka_run_group_tests_name("claim", cases, NULL, NULL);
}
