/* The contract: one running task for each business object, and nobody waits for ever. */
#include "base/rng.h"
#include "world.h"

#include <stdio.h>
#include <stdlib.h>

static void one_business_object_is_worked_on_by_one_task_at_a_time(void **state)
{
    struct world *w = *state;
    int64_t a = put_serial(w, "r-1", "o:7"), b = put_serial(w, "r-2", "o:7");
    int64_t c = put_serial(w, "r-3", "o:8");

    struct bs_leased *l = claim(w, 10);
    assert_int_equal(count_leased(l), 2);
    assert_int_equal(l->task.id, a);
    assert_int_equal(l->next->task.id, c);
    struct bs_task blocked = get(w, b);
    assert_int_equal(blocked.state, BS_WAITING);
    assert_int_equal(blocked.blocked, BS_BLOCKED_SERIAL);
    assert_int_equal(blocked.due_at.us, 0);
    assert_int_equal(blocked.next_execute_at.us, START_US);
    assert_null(claim(w, 10));
}

static void the_end_of_the_holder_wakes_the_next_in_order(void **state)
{
    struct world *w = *state;
    int64_t a = put_serial(w, "r-1", "o:7"), b = put_serial(w, "r-2", "o:7");
    int64_t c = put_serial(w, "r-3", "o:7");

    struct bs_task *t = claim_one(w);
    assert_int_equal(t->id, a);
    assert_null(claim(w, 10));
    assert_int_equal(finish(w, t, BS_OUT_SUCCESS, ""), BS_OK);
    const struct bs_hints *h = bs_store_hints(w->store);
    assert_int_equal(h->n, 1);
    assert_int_equal(h->items[0].due.us, START_US);
    assert_int_equal(get(w, b).blocked, BS_BLOCKED_NONE);
    assert_int_equal(get(w, c).blocked, BS_BLOCKED_SERIAL);
    t = claim_one(w);
    assert_int_equal(t->id, b);
    assert_int_equal(finish(w, t, BS_OUT_FAILED, "HTTP_503"), BS_OK);
    t = claim_one(w);
    assert_int_equal(t->id, c);
}

static void a_lost_lease_frees_the_object_too(void **state)
{
    struct world *w = *state;

    put_serial(w, "r-1", "o:7");
    int64_t b = put_serial(w, "r-2", "o:7");
    claim(w, 10);
    advance(w, 60000000);
    assert_int_equal(reap(w), 1);
    assert_int_equal(get(w, b).blocked, BS_BLOCKED_NONE);
    assert_int_equal(count_leased(claim(w, 10)), 1);
}

/* The end of a process cut a call that was sent: the shop may work on it until its deadline. */
static void a_call_that_was_cut_keeps_its_object_until_its_deadline(void **state)
{
    struct world *w = *state;
    int64_t a = put_serial(w, "r-1", "o:7"), b = put_serial(w, "r-2", "o:7");
    struct bs_op cut = finish_op(w, claim_one(w), BS_OUT_SENT, "CANCELLED");

    cut.finish.outcome.not_before = (struct bs_time){ START_US + 9000000 };
    assert_int_equal(apply(w, &cut), BS_OK);
    assert_int_equal(get(w, a).state, BS_WAITING);
    assert_int_equal(get(w, a).call_until.us, START_US + 9000000);
    assert_null(claim(w, 10));
    assert_int_equal(get(w, b).blocked, BS_BLOCKED_SERIAL);
    /* "Run now" cannot run it before either. */
    assert_int_equal(act(w, a, BS_ACT_RETRY, NULL), BS_OK);
    assert_int_equal(get(w, a).due_at.us, START_US + 9000000);
    assert_null(claim(w, 10));
    advance(w, 9000000);
    struct bs_task *again = claim_one(w);
    assert_int_equal(again->id, a);
    assert_int_equal(get(w, a).call_until.us, 0);
    assert_int_equal(finish(w, again, BS_OUT_SUCCESS, ""), BS_OK);
    assert_int_equal(claim_one(w)->id, b);
}

static void a_person_who_takes_a_cut_task_away_frees_its_object_in_every_queue(void **state)
{
    struct world *w = *state;
    struct bs_task *t = sample(w, "r-2");
    int64_t a = put_serial(w, "r-1", "o:7");
    struct bs_op cut = finish_op(w, claim_one(w), BS_OUT_SENT, "CANCELLED");

    cut.finish.outcome.not_before = (struct bs_time){ START_US + 9000000 };
    assert_int_equal(apply(w, &cut), BS_OK);
    t->biz_type = BS_STR("REFUND");
    t->serial_key = BS_STR("o:7");
    int64_t refund = put(w, t);
    struct bs_op op = claim_op(w, BS_STR("REFUND"), 5);
    assert_int_equal(apply(w, &op), BS_OK);
    assert_int_equal(op.claim.ret_n, 0);
    assert_int_equal(act(w, a, BS_ACT_HOLD, NULL), BS_OK);
    assert_int_equal(get(w, refund).blocked, BS_BLOCKED_NONE);
    /* Taken back by a person, it still waits for the end of its call. */
    assert_int_equal(act(w, a, BS_ACT_RETRY, NULL), BS_OK);
    assert_int_equal(get(w, a).due_at.us, START_US + 9000000);
}

static void many_blocked_tasks_do_not_hide_the_others(void **state)
{
    struct world *w = *state;
    char key[16];

    for (int i = 0; i < 60; i++) {
        snprintf(key, sizeof(key), "b-%d", i);
        put_serial(w, key, "o:busy");
    }
    int64_t other = put_serial(w, "r-2", "o:free");
    struct bs_leased *l = claim(w, 2);
    assert_int_equal(count_leased(l), 2);
    assert_int_equal(l->next->task.id, other);
}

static void each_queue_of_an_object_is_woken(void **state)
{
    struct world *w = *state;
    struct bs_task *t = sample(w, "r-2");

    put_serial(w, "r-1", "o:7");
    struct bs_task *holder = claim_one(w);
    t->biz_type = BS_STR("REFUND");
    t->serial_key = BS_STR("o:7");
    int64_t refund = put(w, t);
    int64_t same = put_serial(w, "r-3", "o:7");
    struct bs_op op = claim_op(w, BS_STR("REFUND"), 5);
    assert_int_equal(apply(w, &op), BS_OK);
    assert_int_equal(op.claim.ret_n, 0);
    assert_null(claim(w, 5));
    assert_int_equal(finish(w, holder, BS_OUT_SUCCESS, ""), BS_OK);
    assert_int_equal(get(w, refund).blocked, BS_BLOCKED_NONE);
    assert_int_equal(get(w, same).blocked, BS_BLOCKED_NONE);
    assert_int_equal(bs_store_hints(w->store)->n, 2);
}

static void whoever_could_run_and_is_held_or_closed_lets_the_next_go(void **state)
{
    struct world *w = *state;
    int64_t ids[4];

    for (int i = 0; i < 4; i++)
        ids[i] = put_serial(w, (const char *[]){ "a", "b", "c", "d" }[i], "o:7");
    struct bs_leased *l = claim(w, 10);
    assert_int_equal(finish(w, &l->task, BS_OUT_SUCCESS, ""), BS_OK);
    assert_int_equal(act(w, ids[1], BS_ACT_HOLD, ""), BS_OK);
    assert_int_equal(get(w, ids[2]).blocked, BS_BLOCKED_NONE);
    assert_int_equal(act(w, ids[2], BS_ACT_CLOSE, "other"), BS_OK);
    assert_int_equal(claim_one(w)->id, ids[3]);
}

static void a_blocked_task_that_is_held_wakes_nobody_and_may_come_back(void **state)
{
    struct world *w = *state;
    int64_t a = put_serial(w, "r-1", "o:7"), b = put_serial(w, "r-2", "o:7");

    claim(w, 10);
    assert_int_equal(act(w, b, BS_ACT_HOLD, ""), BS_OK);
    assert_int_equal(act(w, b, BS_ACT_UNHOLD, ""), BS_OK);
    assert_null(claim(w, 10));
    assert_int_equal(get(w, b).blocked, BS_BLOCKED_SERIAL);
    assert_int_equal(state_of(w, a), BS_PROCESSING);
}

static void run_now_on_a_blocked_task_does_not_break_the_exclusion(void **state)
{
    struct world *w = *state;
    int64_t b;

    put_serial(w, "r-1", "o:7");
    b = put_serial(w, "r-2", "o:7");
    struct bs_task *t = &claim(w, 10)->task;
    assert_int_equal(act(w, b, BS_ACT_RETRY, ""), BS_OK);
    assert_null(claim(w, 10));
    assert_int_equal(get(w, b).blocked, BS_BLOCKED_SERIAL);
    assert_int_equal(finish(w, t, BS_OUT_SUCCESS, ""), BS_OK);
    assert_int_equal(claim_one(w)->id, b);
}

static void a_holder_that_goes_to_retry_lets_the_next_run_meanwhile(void **state)
{
    struct world *w = *state;
    int64_t a = put_serial(w, "r-1", "o:7"), b = put_serial(w, "r-2", "o:7");

    struct bs_task *t = &claim(w, 10)->task;
    assert_int_equal(finish(w, t, BS_OUT_FAILED, "HTTP_503"), BS_OK);
    struct bs_task *second = claim_one(w);
    assert_int_equal(second->id, b);
    advance(w, 3600000000);
    assert_null(claim(w, 10));
    assert_int_equal(get(w, a).blocked, BS_BLOCKED_SERIAL);
}

/* A seeded walk over everything that can happen to tasks of few objects; after every step the store
 * must be sound (check_blocked is the invariant), and at the end all must come through. */
static void step(struct world *w, struct bs_rng *rng, int64_t *ids, uint32_t *n)
{
    static const char *const objects[] = { "o:1", "o:2", "o:3" };
    char key[16];
    int64_t one = *n ? ids[bs_rng_below(rng, *n)] : 0;
    struct bs_op op;

    advance(w, (int64_t)bs_rng_below(rng, 30000000));
    switch (bs_rng_below(rng, 8)) {
    case 0:
    case 1:
        snprintf(key, sizeof(key), "r-%u", *n);
        struct bs_task *t = sample(w, key);
        t->serial_key = bs_str_of(objects[bs_rng_below(rng, 3)]);
        t->biz_type = bs_rng_below(rng, 2) ? QUEUE : BS_STR("REFUND");
        t->priority = (int32_t)bs_rng_below(rng, 4);
        ids[(*n)++] = put(w, t);
        return;
    case 2:
    case 3:
        op = claim_op(w, bs_rng_below(rng, 2) ? QUEUE : BS_STR("REFUND"), 2);
        assert_int_equal(apply(w, &op), BS_OK);
        bs_leased_free(op.claim.ret_tasks);
        return;
    case 4:
        reap(w);
        return;
    default:
        if (!one)
            return;
        struct bs_task now = get(w, one);
        if (now.state == BS_PROCESSING && bs_rng_below(rng, 3))
            op = finish_op(w, &now, bs_rng_below(rng, 2) ? BS_OUT_FAILED : BS_OUT_SUCCESS, "X");
        else
            op = act_op(w, one, (enum bs_action)bs_rng_below(rng, BS_ACTION_COUNT), "other");
        BS_IGNORE(apply(w, &op), "most actions are not allowed in most states");
    }
}

static void whatever_happens_nobody_stays_blocked_for_ever(void **state)
{
    struct world *w = *state;
    uint64_t seed =
        (uint64_t)(getenv("BS_SEED") ? strtoull(getenv("BS_SEED"), NULL, 10) : 20261130);
    struct bs_rng rng = { seed };
    int64_t ids[400];
    uint32_t n = 0;

    print_message("seed %llu\n", (unsigned long long)seed);
    for (int i = 0; i < 400; i++) {
        step(w, &rng, ids, &n);
        assert_sound(w);
    }
}

int run_serial_cases(void)
{
    const struct CMUnitTest cases[] = {
        CASE(one_business_object_is_worked_on_by_one_task_at_a_time),
        CASE(the_end_of_the_holder_wakes_the_next_in_order),
        CASE(a_lost_lease_frees_the_object_too),
        CASE(a_call_that_was_cut_keeps_its_object_until_its_deadline),
        CASE(a_person_who_takes_a_cut_task_away_frees_its_object_in_every_queue),
        CASE(many_blocked_tasks_do_not_hide_the_others),
        CASE(each_queue_of_an_object_is_woken),
        CASE(whoever_could_run_and_is_held_or_closed_lets_the_next_go),
        CASE(a_blocked_task_that_is_held_wakes_nobody_and_may_come_back),
        CASE(run_now_on_a_blocked_task_does_not_break_the_exclusion),
        CASE(a_holder_that_goes_to_retry_lets_the_next_run_meanwhile),
        CASE(whatever_happens_nobody_stays_blocked_for_ever),
    };

    return cmocka_run_group_tests_name("serial", cases, NULL, NULL);
}
