/* Names of states, events and sources. */
#include "core_test.h"

static void every_name_parses_back(void **state)
{
    (void)state;
    for (enum bs_state s = BS_STATE_NONE + 1; s < BS_STATE_COUNT; s++)
        assert_int_equal(bs_state_parse(bs_str_of(bs_state_name(s))), s);
    for (enum bs_event e = 0; e < BS_EVENT_COUNT; e++)
        assert_int_equal(bs_event_parse(bs_str_of(bs_event_name(e))), e);
    for (enum bs_source s = BS_SRC_NONE + 1; s < BS_SOURCE_COUNT; s++)
        assert_int_equal(bs_source_parse(bs_str_of(bs_source_name(s))), s);
}

static void the_words_are_those_of_the_design(void **state)
{
    (void)state;
    assert_string_equal(bs_state_name(BS_PROCESSING), "PROCESSING");
    assert_string_equal(bs_event_name(BS_EV_LEASE_EXPIRED), "lease_expired");
    assert_string_equal(bs_source_name(BS_SRC_FOLLOW_UP), "FOLLOW_UP");
    assert_string_equal(bs_outcome_name(BS_OUT_SUCCESS), "success");
    assert_string_equal(bs_outcome_name(BS_OUT_SENT), "released_sent");
    assert_string_equal(bs_action_name(BS_ACT_UNHOLD), "unhold");
}

static void other_text_is_no_name(void **state)
{
    static const char *const texts[] = { "", "waiting", "WAITING ", "NONE", "Claim", "0" };

    (void)state;
    for (size_t i = 0; i < BS_COUNT(texts); i++) {
        assert_int_equal(bs_state_parse(bs_str_of(texts[i])), BS_STATE_NONE);
        assert_int_equal(bs_event_parse(bs_str_of(texts[i])), BS_EVENT_COUNT);
        assert_int_equal(bs_source_parse(bs_str_of(texts[i])), BS_SRC_NONE);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_name_parses_back),
        cmocka_unit_test(the_words_are_those_of_the_design),
        cmocka_unit_test(other_text_is_no_name),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
