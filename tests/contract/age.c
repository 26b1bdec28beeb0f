/* The contract: max_age counts the time in which a task could have run; at its end the budget is
 * spent, and a long stop costs nobody the last call. */
#include "world.h"

#include <stdio.h>

#define MINUTE_US INT64_C(60000000)
#define DAY_US (INT64_C(86400) * 1000000)

static void set_max_age(struct world *w, int64_t us)
{
    w->policy.max_age = BS_US(us);
}

static void stopped(struct world *w, const char *queue, int64_t from_us, int64_t to_us)
{
    struct bs_op op = op_of(w, BS_OP_STOPPED);

    op.stopped =
        (struct bs_op_stopped){ bs_str_of(queue), { START_US + from_us }, { START_US + to_us } };
    assert_int_equal(apply(w, &op), BS_OK);
}

/* Fails it now; its state afterwards. */
static enum bs_state fail_once(struct world *w, enum bs_outcome_kind kind)
{
    struct bs_task *t = claim_one(w);

    assert_int_equal(finish(w, t, kind, "HTTP_503"), BS_OK);
    return state_of(w, t->id);
}

static void a_failure_after_max_age_asks_a_person(void **state)
{
    struct world *w = *state;
    int64_t id = put_one(w, "r-1");

    set_max_age(w, 10 * MINUTE_US);
    advance(w, 10 * MINUTE_US);
    assert_int_equal(fail_once(w, BS_OUT_FAILED), BS_MANUAL);
    assert_str(get(w, id).manual_code, "MAX_AGE");
    assert_int_equal(get(w, id).retry_count, 1);
    assert_string_equal(log_text(w, id), "submit>WAITING claim>PROCESSING failed_last>FAILED "
                                         "escalate>MANUAL");
    assert_non_null(strstr(alerts_text(w), "max_age"));
}

static void an_unknown_outcome_after_max_age_stays_unknown(void **state)
{
    struct world *w = *state;
    int64_t id = put_one(w, "r-1");

    set_max_age(w, 10 * MINUTE_US);
    advance(w, 11 * MINUTE_US);
    assert_int_equal(fail_once(w, BS_OUT_UNKNOWN), BS_MANUAL);
    assert_str(get(w, id).manual_code, "OUTCOME_UNKNOWN");
}

static void the_time_before_it_was_asked_for_is_no_age(void **state)
{
    struct world *w = *state;
    struct bs_task *t = sample(w, "r-1");

    t->next_execute_at = t->due_at = (struct bs_time){ START_US + 60 * MINUTE_US };
    int64_t id = put(w, t);
    set_max_age(w, 10 * MINUTE_US);
    advance(w, 65 * MINUTE_US);
    assert_int_equal(fail_once(w, BS_OUT_FAILED), BS_RETRY);
    advance(w, 5 * MINUTE_US);
    assert_int_equal(fail_once(w, BS_OUT_FAILED), BS_MANUAL);
    assert_str(get(w, id).manual_code, "MAX_AGE");
}

static void a_success_is_never_too_old(void **state)
{
    struct world *w = *state;

    put_one(w, "r-1");
    set_max_age(w, 10 * MINUTE_US);
    advance(w, DAY_US);
    assert_int_equal(fail_once(w, BS_OUT_SUCCESS), BS_SUCCESS);
}

static void the_last_try_is_made_when_the_age_ends(void **state)
{
    struct world *w = *state;
    int64_t id = put_one(w, "r-1");

    set_max_age(w, INT64_C(90) * 1000000);
    advance(w, INT64_C(50) * 1000000);
    assert_int_equal(fail_once(w, BS_OUT_FAILED), BS_RETRY);
    assert_int_equal(get(w, id).next_execute_at.us, START_US + INT64_C(90) * 1000000);
    advance(w, INT64_C(40) * 1000000);
    assert_int_equal(fail_once(w, BS_OUT_FAILED), BS_MANUAL);
}

static void stops_of_the_queue_and_of_the_process_are_left_out_once(void **state)
{
    struct world *w = *state;
    int64_t id = put_one(w, "r-1");

    set_max_age(w, 56 * MINUTE_US);
    stopped(w, "PAY_CALLBACK", -10 * MINUTE_US, 10 * MINUTE_US); /* 10 of it count        */
    stopped(w, "", 5 * MINUTE_US, 20 * MINUTE_US);               /* to 20                 */
    stopped(w, "PAY_CALLBACK", 15 * MINUTE_US, 18 * MINUTE_US);  /* inside                */
    stopped(w, "", 30 * MINUTE_US, 35 * MINUTE_US);              /* 5 more: 25            */
    stopped(w, "PAY_CALLBACK", 80 * MINUTE_US, 500 * MINUTE_US); /* still, at 84: 4 more  */
    stopped(w, "ANOTHER", 0, 500 * MINUTE_US);
    advance(w, 84 * MINUTE_US);
    assert_int_equal(fail_once(w, BS_OUT_FAILED), BS_RETRY);
    assert_int_equal(get(w, id).next_execute_at.us,
                     START_US + 85 * MINUTE_US); /* one minute more */

    int64_t later = put_one(w, "r-2");
    advance(w, 416 * MINUTE_US); /* at 500 nothing has aged */
    struct bs_leased *both = claim(w, 2);
    assert_int_equal(count_leased(both), 2);
    for (; both; both = both->next)
        assert_int_equal(finish(w, &both->task, BS_OUT_FAILED, "HTTP_503"), BS_OK);
    assert_int_equal(state_of(w, id), BS_RETRY);
    assert_int_equal(state_of(w, later), BS_RETRY);
    advance(w, MINUTE_US);
    for (both = claim(w, 2); both; both = both->next)
        assert_int_equal(finish(w, &both->task, BS_OUT_FAILED, "HTTP_503"), BS_OK);
    assert_int_equal(state_of(w, id), BS_MANUAL);
    assert_int_equal(state_of(w, later), BS_RETRY);
}

static void a_stop_that_grows_is_counted_at_its_length(void **state)
{
    struct world *w = *state;

    put_one(w, "r-1");
    set_max_age(w, 10 * MINUTE_US);
    stopped(w, "PAY_CALLBACK", 0, MINUTE_US);
    stopped(w, "PAY_CALLBACK", 0, 3 * MINUTE_US);
    stopped(w, "PAY_CALLBACK", 0, 2 * MINUTE_US); /* never shorter */
    advance(w, 13 * MINUTE_US - 1);
    assert_int_equal(fail_once(w, BS_OUT_FAILED), BS_RETRY);
    advance(w, 1);
    assert_int_equal(fail_once(w, BS_OUT_FAILED), BS_MANUAL);
}

static void the_time_in_which_a_task_was_blocked_does_not_count(void **state)
{
    struct world *w = *state;

    put_serial(w, "r-1", "o:1");
    struct bs_task *holder = claim_one(w);
    int64_t behind = put_serial(w, "r-2", "o:1");
    assert_int_equal(count_leased(claim(w, 5)), 0); /* blocked from now on */
    set_max_age(w, 10 * MINUTE_US);
    advance(w, INT64_C(50) * 1000000);
    assert_int_equal(finish(w, holder, BS_OUT_SUCCESS, ""), BS_OK);
    advance(w, 10 * MINUTE_US - 1);
    assert_int_equal(fail_once(w, BS_OUT_FAILED), BS_RETRY);
    advance(w, 1);
    assert_int_equal(fail_once(w, BS_OUT_FAILED), BS_MANUAL);
    assert_str(get(w, behind).manual_code, "MAX_AGE");
}

static void the_time_in_which_a_task_was_held_does_not_count(void **state)
{
    struct world *w = *state;
    int64_t id = put_one(w, "r-1");

    set_max_age(w, 10 * MINUTE_US);
    advance(w, 2 * MINUTE_US);
    assert_int_equal(act(w, id, BS_ACT_HOLD, ""), BS_OK);
    advance(w, DAY_US);
    assert_int_equal(act(w, id, BS_ACT_UNHOLD, ""), BS_OK);
    advance(w, 8 * MINUTE_US - 1);
    assert_int_equal(fail_once(w, BS_OUT_FAILED), BS_RETRY);
    advance(w, 1);
    assert_int_equal(fail_once(w, BS_OUT_FAILED), BS_MANUAL);
}

static void a_fresh_budget_has_a_fresh_age(void **state)
{
    struct world *w = *state;
    int64_t id = put_one(w, "r-1");

    set_max_age(w, 10 * MINUTE_US);
    advance(w, DAY_US);
    assert_int_equal(fail_once(w, BS_OUT_FAILED), BS_MANUAL);
    advance(w, DAY_US);
    assert_int_equal(act(w, id, BS_ACT_RETRY, ""), BS_OK);
    advance(w, 10 * MINUTE_US - 1);
    assert_int_equal(fail_once(w, BS_OUT_FAILED), BS_RETRY);
    advance(w, 1);
    assert_int_equal(fail_once(w, BS_OUT_FAILED), BS_MANUAL);
}

static void a_finish_that_is_run_again_gives_its_first_result_whatever_the_age_is_then(void **state)
{
    struct world *w = *state;
    int64_t id = put_one(w, "r-1");

    set_max_age(w, 10 * MINUTE_US);
    advance(w, 10 * MINUTE_US);
    struct bs_op op = finish_op(w, claim_one(w), BS_OUT_FAILED, "HTTP_503");
    assert_int_equal(apply(w, &op), BS_OK);
    assert_int_equal(op.finish.ret_settled.to, BS_MANUAL);
    stopped(w, "PAY_CALLBACK", 0, 9 * MINUTE_US);
    assert_int_equal(act(w, id, BS_ACT_RETRY, ""), BS_OK);
    op.rerun = true;
    assert_int_equal(apply(w, &op), BS_OK);
    assert_int_equal(op.rc, BS_OK);
    assert_int_equal(op.finish.ret_settled.to, BS_MANUAL);
    assert_string_equal(op.finish.ret_settled.manual_code, "MAX_AGE");
}

static void stops_are_forgotten_when_no_age_reaches_back_to_them(void **state)
{
    struct world *w = *state;
    struct bs_val args[2] = { bs_text(QUEUE), bs_i64(0) }, row[2];
    bool more = false;

    stopped(w, "PAY_CALLBACK", 0, MINUTE_US);
    stopped(w, "PAY_CALLBACK", DAY_US, DAY_US + MINUTE_US);
    advance(w, 400 * DAY_US + MINUTE_US + 1);
    struct bs_op op = op_of(w, BS_OP_ARCHIVE);
    op.slice = (struct bs_op_slice){ .before = { START_US }, .limit = 10 };
    assert_int_equal(apply(w, &op), BS_OK);
    assert_int_equal(w->db->ops->run(w->db, BS_SQL_STOPS_SINCE, args, 2, NULL, NULL), BS_OK);
    assert_int_equal(w->db->ops->next(w->db, BS_SQL_STOPS_SINCE, row, 2, &more, NULL), BS_OK);
    assert_true(more);
    assert_int_equal(row[0].i, START_US + DAY_US);
    assert_int_equal(w->db->ops->next(w->db, BS_SQL_STOPS_SINCE, row, 2, &more, NULL), BS_OK);
    assert_false(more);
}

/* ---- CASE 22: no cap, no jitter, work piles after an outage ---- */

enum { MANY = 1000 };

/* Claims all and fails all at this instant; ids in claim order; how many there were. */
static uint32_t fail_all(struct world *w)
{
    static struct bs_op ops[MANY], *list[MANY];
    uint32_t n = 0;

    for (struct bs_leased *l = claim(w, MANY + 1); l; l = l->next) {
        assert_true(n < MANY);
        ops[n] = finish_op(w, &l->task, BS_OUT_FAILED, "CONNECT_REFUSED");
        ops[n].finish.seed = (uint64_t)ops[n].id;
        list[n] = &ops[n];
        n++;
    }
    apply_all(w, list, n);
    return n;
}

static void put_many(struct world *w)
{
    static struct bs_op ops[MANY], *list[MANY];

    for (int i = 0; i < MANY; i++) {
        ops[i] = submit_op(w, sample(w, bs_arena_fmt(&w->arena, "r-%d", i).p), "c");
        list[i] = &ops[i];
    }
    apply_all(w, list, MANY);
}

static void spread_of(struct world *w, int64_t *ret_min, int64_t *ret_max)
{
    struct bs_task_filter f = { .state = BS_RETRY, .limit = 200 };
    struct bs_task_page page;
    uint32_t n = 0;

    *ret_min = INT64_MAX;
    *ret_max = 0;
    do {
        assert_int_equal(bs_store_tasks(w->store, &f, &w->arena, &page, &w->err), BS_OK);
        for (uint32_t i = 0; i < page.n; i++, n++) {
            *ret_min = BS_MIN(*ret_min, page.items[i].next_execute_at.us - w->now.us);
            *ret_max = BS_MAX(*ret_max, page.items[i].next_execute_at.us - w->now.us);
        }
        f.before_id = page.next_before_id;
    } while (f.before_id);
    assert_int_equal(n, MANY);
}

static void after_an_outage_tasks_come_back_spread_and_each_gets_its_call(void **state)
{
    static const struct bs_span ladder[] = { { 60000000 }, { 180000000 }, { 600000000 } };
    struct world *w = *state;
    int64_t min = 0, max = 0;

    w->policy.backoff = (struct bs_backoff){ .delays = ladder, .delays_n = 3, .jitter_pct = 20 };
    set_max_age(w, DAY_US);
    put_many(w);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(fail_all(w), MANY);
        spread_of(w, &min, &max);
        assert_true(min >= ladder[i].us * 8 / 10 && max <= ladder[i].us * 12 / 10);
        assert_true(min <= ladder[i].us * 9 / 10 && max >= ladder[i].us * 11 / 10);
        advance(w, ladder[i].us * 12 / 10);
    }
    /* Off for three days, and nobody wrote down since when: the age is over, the call is not lost.
     */
    advance(w, 3 * DAY_US);
    assert_int_equal(fail_all(w), MANY);
    assert_int_equal(fail_all(w), 0);
    const struct bs_task_filter manual = { .state = BS_MANUAL, .limit = 1 };
    struct bs_task_page page;
    assert_int_equal(bs_store_tasks(w->store, &manual, &w->arena, &page, &w->err), BS_OK);
    assert_str(page.items[0].manual_code, "MAX_AGE");
    assert_int_equal(page.items[0].attempt_no, 4);
}

static void three_days_that_were_written_down_do_not_count_at_all(void **state)
{
    struct world *w = *state;

    set_max_age(w, DAY_US);
    put_many(w);
    stopped(w, "", MINUTE_US, MINUTE_US + 3 * DAY_US);
    advance(w, MINUTE_US + 3 * DAY_US);
    assert_int_equal(fail_all(w), MANY);
    int64_t min = 0, max = 0;
    spread_of(w, &min, &max);
}

int run_age_cases(void)
{
    const struct CMUnitTest cases[] = {
        CASE(a_failure_after_max_age_asks_a_person),
        CASE(the_time_before_it_was_asked_for_is_no_age),
        CASE(an_unknown_outcome_after_max_age_stays_unknown),
        CASE(a_success_is_never_too_old),
        CASE(the_last_try_is_made_when_the_age_ends),
        CASE(stops_of_the_queue_and_of_the_process_are_left_out_once),
        CASE(a_stop_that_grows_is_counted_at_its_length),
        CASE(the_time_in_which_a_task_was_blocked_does_not_count),
        CASE(the_time_in_which_a_task_was_held_does_not_count),
        CASE(a_fresh_budget_has_a_fresh_age),
        CASE(a_finish_that_is_run_again_gives_its_first_result_whatever_the_age_is_then),
        CASE(stops_are_forgotten_when_no_age_reaches_back_to_them),
        CASE(after_an_outage_tasks_come_back_spread_and_each_gets_its_call),
        CASE(three_days_that_were_written_down_do_not_count_at_all),
    };

    return cmocka_run_group_tests_name("age", cases, NULL, NULL);
}
