/* With the planted bugs compiled in: each changes exactly the decision it is named after, and
 * nothing while it is not chosen. */
#include "base/plant.h"
#include "core_test.h"

static int nothing_planted(void **state)
{
    (void)state;
    bs_planted = BS_PLANT_NOTHING;
    return 0;
}

static enum bs_outcome_kind after_timeout(bool sent)
{
    struct bs_arena a = { 0 };
    struct bs_facts f = { .wire = BS_WIRE_TIMEOUT, .sent = sent };
    enum bs_outcome_kind k = bs_classify_call(&bs_policy_default, &f, NULL, &a).kind;

    bs_arena_free(&a);
    return k;
}

static void unknown_is_failed_calls_silence_a_failure(void **state)
{
    (void)state;
    assert_int_equal(after_timeout(true), BS_OUT_UNKNOWN);
    bs_planted = BS_PLANT_UNKNOWN_IS_FAILED;
    assert_int_equal(after_timeout(true), BS_OUT_FAILED);
    assert_int_equal(after_timeout(false), BS_OUT_FAILED);
}

static struct bs_settlement after_release(void)
{
    struct bs_task t = running_task();
    struct bs_outcome o = { .kind = BS_OUT_SENT, .not_before = LATER(30) };

    return bs_decide_finish(&t, &o, &bs_policy_default, NOW, 1);
}

static void release_as_unsent_forgets_the_call(void **state)
{
    (void)state;
    assert_int_equal(after_release().event, BS_EV_RELEASED_SENT);
    bs_planted = BS_PLANT_RELEASE_AS_UNSENT;
    struct bs_settlement s = after_release();
    assert_int_equal(s.event, BS_EV_RELEASED_UNSENT);
    assert_false(s.outcome_unknown);
    assert_int_equal(s.next_execute_at.us, NOW.us);
}

static void expiry_forgets_unknown_sets_no_mark(void **state)
{
    struct bs_task t = running_task();

    (void)state;
    assert_true(bs_decide_expired(&t, NOW).outcome_unknown);
    bs_planted = BS_PLANT_EXPIRY_FORGETS_UNKNOWN;
    assert_false(bs_decide_expired(&t, NOW).outcome_unknown);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(unknown_is_failed_calls_silence_a_failure, nothing_planted,
                                        nothing_planted),
        cmocka_unit_test_setup_teardown(release_as_unsent_forgets_the_call, nothing_planted,
                                        nothing_planted),
        cmocka_unit_test_setup_teardown(expiry_forgets_unknown_sets_no_mark, nothing_planted,
                                        nothing_planted),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
