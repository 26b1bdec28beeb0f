/* What the end of an execution, or of a lease, makes of a task. */
#include "base/rng.h"
#include "core_test.h"

static const struct bs_policy *const usual = &bs_policy_default;

static struct bs_outcome out(enum bs_outcome_kind k, const char *code)
{
    return (struct bs_outcome){ .kind = k, .code = bs_str_of(code) };
}

/* ---- one execution of a fresh task, and of one whose mark is set */

static void each_outcome_moves_a_task_as_the_table_says(void **state)
{
    static const struct {
        enum bs_outcome_kind kind;
        enum bs_verdict looked;
        bool marked;
        const char *manual_code, *alert;
        int32_t retry_count, defer_count;
        bool unknown;
        enum bs_event event;
        enum bs_state to;
    } rows[] = {
        { BS_OUT_SUCCESS, 0, false, "", "", 3, 0, false, BS_EV_SUCCEEDED, BS_SUCCESS },
        { BS_OUT_SUCCESS, 0, true, "", "", 3, 0, false, BS_EV_SUCCEEDED, BS_SUCCESS },
        { BS_OUT_FINISHED, BS_VERDICT_FINISHED, true, "", "", 3, 0, false, BS_EV_ALREADY_FINISHED,
          BS_SUCCESS },
        { BS_OUT_FAILED, 0, false, "", "", 4, 0, false, BS_EV_FAILED, BS_RETRY },
        { BS_OUT_FAILED, 0, true, "", "", 4, 0, true, BS_EV_FAILED, BS_RETRY },
        { BS_OUT_FAILED, BS_VERDICT_GO_ON, true, "", "", 4, 0, false, BS_EV_FAILED, BS_RETRY },
        { BS_OUT_UNKNOWN, 0, false, "", "", 4, 0, true, BS_EV_UNKNOWN, BS_RETRY },
        { BS_OUT_UNKNOWN, BS_VERDICT_GO_ON, true, "", "", 4, 0, true, BS_EV_UNKNOWN, BS_RETRY },
        { BS_OUT_MANUAL, 0, false, "HTTP_422", "manual", 3, 0, false, BS_EV_NEEDS_PERSON,
          BS_MANUAL },
        { BS_OUT_MANUAL, 0, true, "HTTP_422", "manual", 3, 0, true, BS_EV_NEEDS_PERSON, BS_MANUAL },
        { BS_OUT_MANUAL, BS_VERDICT_STATE_CONFLICT, true, "HTTP_422", "manual", 3, 0, false,
          BS_EV_NEEDS_PERSON, BS_MANUAL },
        { BS_OUT_NOT_PROCESSED, 0, false, "", "", 3, 3, false, BS_EV_NOT_PROCESSED, BS_RETRY },
        { BS_OUT_NOT_PROCESSED, 0, true, "", "", 3, 3, true, BS_EV_NOT_PROCESSED, BS_RETRY },
        { BS_OUT_NOT_PROCESSED, BS_VERDICT_GO_ON, true, "", "", 3, 3, false, BS_EV_NOT_PROCESSED,
          BS_RETRY },
        { BS_OUT_NOT_FOUND, BS_VERDICT_NOT_FOUND, false, "", "", 3, 2, false, BS_EV_NOT_PROCESSED,
          BS_RETRY },
        { BS_OUT_NOT_FOUND, BS_VERDICT_NOT_FOUND, true, "", "", 3, 2, true, BS_EV_NOT_PROCESSED,
          BS_RETRY },
        { BS_OUT_UNSENT, 0, false, "", "", 3, 2, false, BS_EV_RELEASED_UNSENT, BS_WAITING },
        { BS_OUT_UNSENT, 0, true, "", "", 3, 2, true, BS_EV_RELEASED_UNSENT, BS_WAITING },
        { BS_OUT_SENT, 0, false, "", "", 3, 2, true, BS_EV_RELEASED_SENT, BS_WAITING },
        { BS_OUT_SENT, BS_VERDICT_GO_ON, true, "", "", 3, 2, true, BS_EV_RELEASED_SENT,
          BS_WAITING },
    };

    (void)state;
    for (size_t i = 0; i < BS_COUNT(rows); i++) {
        struct bs_task t = running_task();
        struct bs_outcome o = out(rows[i].kind, rows[i].kind == BS_OUT_MANUAL ? "HTTP_422" : "X");

        t.retry_count = 3;
        t.defer_count = 2;
        t.crash_count = 1;
        t.outcome_unknown = rows[i].marked;
        o.looked = rows[i].looked;
        o.http_status = 422;
        struct bs_settlement s = bs_decide_finish(&t, &o, usual, NOW, i);
        print_message("row %zu: %s\n", i, bs_outcome_name(rows[i].kind));
        assert_word(s.manual_code, rows[i].manual_code);
        assert_word(s.alert_kind, rows[i].alert);
        assert_int_equal(s.retry_count, rows[i].retry_count);
        assert_int_equal(s.defer_count, rows[i].defer_count);
        assert_int_equal(s.crash_count, 1);
        assert_int_equal(s.outcome_unknown, rows[i].unknown);
        assert_int_equal(s.event, rows[i].event);
        assert_int_equal(s.to, rows[i].to);
        assert_false(s.via_failed);
        assert_int_equal(s.pending, BS_PENDING_NONE);
        assert_int_equal((s.fx & BS_FX_ALERT) != 0, s.alert_kind != NULL);
    }
}

/* ---- the budget */

static void the_last_failure_passes_through_failed_to_a_person(void **state)
{
    static const struct {
        int32_t max, retry_count;
        enum bs_outcome_kind kind;
        bool marked, via_failed;
        const char *manual_code, *alert;
        enum bs_event event;
        enum bs_state to;
    } rows[] = {
        { 10, 8, BS_OUT_FAILED, false, false, "", "", BS_EV_FAILED, BS_RETRY },
        { 10, 9, BS_OUT_FAILED, false, true, "MAX_RETRIES", "max_retries", BS_EV_FAILED_LAST,
          BS_MANUAL },
        { 10, 11, BS_OUT_FAILED, false, true, "MAX_RETRIES", "max_retries", BS_EV_FAILED_LAST,
          BS_MANUAL },
        { 1, 0, BS_OUT_FAILED, false, true, "MAX_RETRIES", "max_retries", BS_EV_FAILED_LAST,
          BS_MANUAL },
        { 10, 9, BS_OUT_FAILED, true, false, "OUTCOME_UNKNOWN", "outcome_unknown",
          BS_EV_UNKNOWN_LAST, BS_MANUAL },
        { 10, 8, BS_OUT_UNKNOWN, false, false, "", "", BS_EV_UNKNOWN, BS_RETRY },
        { 10, 9, BS_OUT_UNKNOWN, false, false, "OUTCOME_UNKNOWN", "outcome_unknown",
          BS_EV_UNKNOWN_LAST, BS_MANUAL },
        { 10, 9, BS_OUT_NOT_PROCESSED, false, false, "", "", BS_EV_NOT_PROCESSED, BS_RETRY },
    };

    (void)state;
    for (size_t i = 0; i < BS_COUNT(rows); i++) {
        struct bs_task t = running_task();
        struct bs_outcome o = out(rows[i].kind, "HTTP_503");

        t.max_retry_count = rows[i].max;
        t.retry_count = rows[i].retry_count;
        t.outcome_unknown = rows[i].marked;
        struct bs_settlement s = bs_decide_finish(&t, &o, usual, NOW, i);
        assert_int_equal(s.via_failed, rows[i].via_failed);
        assert_word(s.manual_code, rows[i].manual_code);
        assert_word(s.alert_kind, rows[i].alert);
        assert_int_equal(s.event, rows[i].event);
        assert_int_equal(s.to, rows[i].to);
    }
}

/* Writes a settlement into the row as the store does, and claims again. */
static void apply(struct bs_task *t, const struct bs_settlement *s)
{
    t->state = s->to;
    t->retry_count = s->retry_count;
    t->crash_count = s->crash_count;
    t->defer_count = s->defer_count;
    t->not_found_count = s->not_found_count;
    t->first_not_found_at = s->first_not_found_at;
    t->outcome_unknown = s->outcome_unknown;
    t->pending = s->pending;
    t->next_execute_at = s->next_execute_at;
    if (s->manual_code)
        t->manual_code = bs_str_of(s->manual_code);
    if (t->state == BS_WAITING || t->state == BS_RETRY)
        t->state = BS_PROCESSING;
}

static void unknown_then_nine_times_503_ends_as_unknown(void **state)
{
    struct bs_task t = running_task();
    struct bs_outcome first = out(BS_OUT_UNKNOWN, "TIMEOUT");
    struct bs_outcome later = out(BS_OUT_FAILED, "HTTP_503");
    int executions = 1;

    (void)state;
    struct bs_settlement s = bs_decide_finish(&t, &first, usual, NOW, 1);
    apply(&t, &s);
    for (; t.state == BS_PROCESSING; executions++) {
        s = bs_decide_finish(&t, &later, usual, NOW, 1);
        apply(&t, &s);
    }
    assert_int_equal(executions, 10);
    assert_int_equal(t.state, BS_MANUAL);
    assert_text(t.manual_code, "OUTCOME_UNKNOWN");
    assert_false(s.via_failed);
    assert_true(t.outcome_unknown);
    assert_int_equal(t.retry_count, 10);
}

static void unknown_then_a_look_then_failures_end_as_failed(void **state)
{
    struct bs_task t = running_task();
    struct bs_outcome first = out(BS_OUT_UNKNOWN, "TIMEOUT");
    struct bs_outcome later = out(BS_OUT_FAILED, "HTTP_503");

    (void)state;
    later.looked = BS_VERDICT_GO_ON;
    struct bs_settlement s = bs_decide_finish(&t, &first, usual, NOW, 1);
    for (apply(&t, &s); t.state == BS_PROCESSING; apply(&t, &s))
        s = bs_decide_finish(&t, &later, usual, NOW, 1);
    assert_true(s.via_failed);
    assert_text(t.manual_code, "MAX_RETRIES");
    assert_false(t.outcome_unknown);
}

static void endpoint_faults_alone_never_spend_the_budget(void **state)
{
    struct bs_task t = running_task();
    struct bs_outcome o = out(BS_OUT_NOT_PROCESSED, "HTTP_404");

    (void)state;
    o.endpoint_fault = true;
    for (int i = 0; i < 500; i++) {
        struct bs_settlement s = bs_decide_finish(&t, &o, usual, NOW, (uint64_t)i);

        assert_int_equal(s.to, BS_RETRY);
        assert_word(s.alert_kind, "endpoint_fault");
        apply(&t, &s);
    }
    assert_int_equal(t.retry_count, 0);
    assert_int_equal(t.defer_count, 500);
}

/* ---- when next */

static void the_next_try_is_within_its_window(void **state)
{
    static const struct {
        enum bs_outcome_kind kind;
        int32_t retry_count, defer_count;
        int64_t wish_s; /* -1: none */
        bool may_shorten;
        int64_t least_s, most_s;
    } rows[] = {
        { BS_OUT_FAILED, 0, 0, -1, false, 48, 72 },
        { BS_OUT_FAILED, 1, 0, -1, false, 144, 216 },
        { BS_OUT_FAILED, 8, 0, -1, false, 2880, 4320 },
        { BS_OUT_UNKNOWN, 2, 0, -1, false, 480, 720 },
        { BS_OUT_FAILED, 0, 0, 300, false, 300, 360 },
        { BS_OUT_FAILED, 2, 0, 10, false, 480, 720 },
        { BS_OUT_FAILED, 2, 0, 10, true, 10, 12 },
        { BS_OUT_FAILED, 0, 0, 0, true, 0, 0 },
        { BS_OUT_FAILED, 0, 0, 259200, true, 259200, 311040 },
        { BS_OUT_UNKNOWN, 2, 0, 10, true, 10, 12 },
        { BS_OUT_NOT_PROCESSED, 5, 0, -1, false, 4, 6 },
        { BS_OUT_NOT_PROCESSED, 5, 1, -1, false, 12, 18 },
        { BS_OUT_NOT_PROCESSED, 5, 40, -1, false, 480, 720 },
        { BS_OUT_NOT_PROCESSED, 0, 0, 120, false, 120, 144 },
        { BS_OUT_NOT_PROCESSED, 0, 5, 120, false, 480, 720 },
        { BS_OUT_UNSENT, 3, 3, -1, false, 0, 0 },
        { BS_OUT_SENT, 3, 3, -1, false, 25, 25 },
    };

    (void)state;
    for (size_t i = 0; i < BS_COUNT(rows); i++) {
        for (uint64_t seed = 0; seed < 200; seed++) {
            struct bs_task t = running_task();
            struct bs_outcome o = out(rows[i].kind, "X");

            t.retry_count = rows[i].retry_count;
            t.defer_count = rows[i].defer_count;
            o.has_wish = rows[i].wish_s >= 0;
            o.wish = BS_SEC(BS_MAX(rows[i].wish_s, 0));
            o.wish_may_shorten = rows[i].may_shorten;
            o.not_before = LATER(25);
            struct bs_settlement s = bs_decide_finish(&t, &o, usual, NOW, seed);
            int64_t d = s.next_execute_at.us - NOW.us;
            if (d < rows[i].least_s * 1000000 || d > rows[i].most_s * 1000000)
                fail_msg("row %zu seed %d: %lld us", i, (int)seed, (long long)d);
        }
    }
}

static void a_release_after_the_deadline_is_due_now(void **state)
{
    struct bs_task t = running_task();
    struct bs_outcome o = out(BS_OUT_SENT, "CANCELLED");

    (void)state;
    o.not_before = LATER(-5);
    assert_int_equal(bs_decide_finish(&t, &o, usual, NOW, 1).next_execute_at.us, NOW.us);
}

static void the_same_finish_decides_the_same_twice(void **state)
{
    struct bs_task t = running_task();
    struct bs_outcome o = out(BS_OUT_FAILED, "HTTP_503");

    (void)state;
    for (uint64_t seed = 0; seed < 50; seed++) {
        struct bs_settlement one = bs_decide_finish(&t, &o, usual, NOW, seed);
        struct bs_settlement two = bs_decide_finish(&t, &o, usual, NOW, seed);

        assert_int_equal(one.next_execute_at.us, two.next_execute_at.us);
    }
}

/* ---- order not found */

static void case_4_not_found_is_asked_again_until_the_grace_is_over(void **state)
{
    static const int64_t asked_s[] = { 5, 15, 30, 60, 180, 600 };
    struct bs_task t = running_task();
    struct bs_outcome o = out(BS_OUT_NOT_FOUND, "ORDER_NOT_FOUND");
    struct bs_time now = NOW;

    (void)state;
    o.looked = BS_VERDICT_NOT_FOUND;
    for (size_t i = 0; i < BS_COUNT(asked_s); i++) {
        struct bs_settlement s = bs_decide_finish(&t, &o, usual, now, i);

        assert_int_equal(s.to, BS_RETRY);
        assert_int_equal(s.not_found_count, i + 1);
        assert_int_equal(s.first_not_found_at.us, NOW.us);
        assert_int_equal(s.next_execute_at.us, LATER(asked_s[i]).us);
        assert_int_equal(s.retry_count, 0);
        apply(&t, &s);
        now = s.next_execute_at;
    }
    struct bs_settlement s = bs_decide_finish(&t, &o, usual, now, 9);
    assert_int_equal(s.to, BS_MANUAL);
    assert_int_equal(s.event, BS_EV_NEEDS_PERSON);
    assert_word(s.manual_code, "ORDER_NOT_FOUND");
    assert_word(s.alert_kind, "manual");
}

static void not_found_needs_both_three_answers_and_the_grace(void **state)
{
    static const struct {
        int32_t count;
        int64_t first_ago_s;
        enum bs_state want;
    } rows[] = {
        { 0, 0, BS_RETRY },      { 1, 86400, BS_RETRY }, { 2, 599, BS_RETRY },
        { 2, 600, BS_MANUAL },   { 1, 600, BS_RETRY },   { 50, 599, BS_RETRY },
        { 50, 6000, BS_MANUAL },
    };

    (void)state;
    for (size_t i = 0; i < BS_COUNT(rows); i++) {
        struct bs_task t = running_task();
        struct bs_outcome o = out(BS_OUT_NOT_FOUND, "ORDER_NOT_FOUND");

        t.not_found_count = rows[i].count;
        t.first_not_found_at = LATER(-rows[i].first_ago_s);
        assert_int_equal(bs_decide_finish(&t, &o, usual, NOW, 1).to, rows[i].want);
    }
}

static void another_answer_ends_the_row_of_not_founds(void **state)
{
    static const struct {
        enum bs_outcome_kind kind;
        enum bs_verdict looked;
        int32_t want;
    } rows[] = {
        { BS_OUT_FAILED, BS_VERDICT_GO_ON, 0 },        { BS_OUT_UNKNOWN, BS_VERDICT_GO_ON, 0 },
        { BS_OUT_NOT_PROCESSED, BS_VERDICT_NONE, 0 },  { BS_OUT_SENT, BS_VERDICT_GO_ON, 0 },
        { BS_OUT_UNSENT, BS_VERDICT_GO_ON, 0 },        { BS_OUT_UNSENT, BS_VERDICT_NONE, 2 },
        { BS_OUT_NOT_FOUND, BS_VERDICT_NOT_FOUND, 3 },
    };

    (void)state;
    for (size_t i = 0; i < BS_COUNT(rows); i++) {
        struct bs_task t = running_task();
        struct bs_outcome o = out(rows[i].kind, "X");

        t.not_found_count = 2;
        t.first_not_found_at = LATER(-20);
        o.looked = rows[i].looked;
        struct bs_settlement s = bs_decide_finish(&t, &o, usual, NOW, 1);
        assert_int_equal(s.not_found_count, rows[i].want);
        assert_int_equal(s.first_not_found_at.us, rows[i].want ? LATER(-20).us : 0);
    }
}

/* ---- why a person is asked */

static void the_manual_code_is_ours_and_the_handlers_words_are_not_it(void **state)
{
    static const struct {
        int http_status;
        const char *code;
        const char *want;
    } rows[] = {
        { 422, "HTTP_422", "HTTP_422" },
        { 400, "HTTP_400", "HTTP_400" },
        { 499, "HTTP_499", "HTTP_499" },
        { 500, "HTTP_500", "HTTP_500" },
        { 599, "HTTP_599", "HTTP_599" },
        { 100, "HTTP_100", "HTTP_100" },
        { 200, "HTTP_422", "HANDLER_MANUAL" },
        { 0, "HTTP_422", "HANDLER_MANUAL" },
        { 200, "HANDLER_MANUAL", "HANDLER_MANUAL" },
        { 200, "FRAUD", "HANDLER_MANUAL" },
        { 200, "", "HANDLER_MANUAL" },
        { 200, "AMOUNT_MISMATCH", "AMOUNT_MISMATCH" },
        { 200, "CURRENCY_MISMATCH", "CURRENCY_MISMATCH" },
        { 200, "TRADE_NO_MISMATCH", "TRADE_NO_MISMATCH" },
        { 200, "ORDER_STATE_CONFLICT", "ORDER_STATE_CONFLICT" },
        { 202, "BAD_REPLY", "BAD_REPLY" },
    };

    (void)state;
    for (size_t i = 0; i < BS_COUNT(rows); i++) {
        struct bs_task t = running_task();
        struct bs_outcome o = out(BS_OUT_MANUAL, rows[i].code);

        o.http_status = rows[i].http_status;
        assert_word(bs_decide_finish(&t, &o, usual, NOW, 1).manual_code, rows[i].want);
    }
}

static void what_stands_in_the_way_of_every_task_raises_an_alert(void **state)
{
    static const struct {
        const char *code;
        bool endpoint_fault;
        const char *want;
    } rows[] = {
        { "HTTP_404", true, "endpoint_fault" },
        { "TLS_EXPIRED", true, "endpoint_fault" },
        { "CHECK_TIMEOUT", false, "check_fault" },
        { "CHECK_HTTP_404", false, "check_fault" },
        { "HTTP_503", false, "" },
    };

    (void)state;
    for (size_t i = 0; i < BS_COUNT(rows); i++) {
        struct bs_task t = running_task();
        struct bs_outcome o = out(BS_OUT_NOT_PROCESSED, rows[i].code);

        o.endpoint_fault = rows[i].endpoint_fault;
        assert_word(bs_decide_finish(&t, &o, usual, NOW, 1).alert_kind, rows[i].want);
    }
}

/* ---- whatever happens, the state comes from the table and the mark is never lost */

static void no_decision_leaves_the_table(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 20000; seed++) {
        struct bs_rng r = { seed };
        struct bs_task t = running_task();
        struct bs_outcome o = out((enum bs_outcome_kind)bs_rng_below(&r, BS_OUTCOME_COUNT), "X");

        t.retry_count = (int32_t)bs_rng_below(&r, 11);
        t.outcome_unknown = bs_rng_below(&r, 2);
        t.pending = (enum bs_pending)bs_rng_below(&r, 4);
        o.looked = (enum bs_verdict)bs_rng_below(&r, 5);
        o.has_wish = bs_rng_below(&r, 2);
        o.wish = BS_SEC(bs_rng_below(&r, 100000));
        struct bs_settlement s = bs_decide_finish(&t, &o, usual, NOW, seed);
        struct bs_step step = bs_fsm_step(BS_PROCESSING, s.event);
        bool verdict = o.looked == BS_VERDICT_GO_ON || o.looked == BS_VERDICT_FINISHED ||
                       o.looked == BS_VERDICT_STATE_CONFLICT;

        if (step.to == BS_FAILED)
            step = bs_fsm_step(BS_FAILED, BS_EV_ESCALATE);
        assert_int_equal(s.to, step.to);
        assert_int_equal(s.manual_code != NULL, s.to == BS_MANUAL);
        assert_true(s.to == BS_SUCCESS || s.to == BS_MANUAL || s.to == BS_CLOSED ||
                    s.next_execute_at.us >= NOW.us);
        if (t.outcome_unknown && !verdict && s.to != BS_SUCCESS)
            assert_true(s.outcome_unknown);
        if (s.to == BS_CLOSED || s.via_failed)
            assert_false(s.outcome_unknown);
        assert_true(s.to == BS_MANUAL || s.to == BS_SUCCESS || s.to == BS_CLOSED ||
                    s.retry_count < t.max_retry_count || t.retry_count >= t.max_retry_count);
    }
}

/* ---- max_age */

static void the_age_ends_the_budget_of_failures_and_unknown_outcomes_only(void **state)
{
    static const struct {
        int64_t age_s;
        int32_t retry_count;
        enum bs_outcome_kind kind;
        const char *manual_code, *alert;
        enum bs_state to;
    } rows[] = {
        { 3599, 1, BS_OUT_FAILED, "", "", BS_RETRY },
        { 3600, 1, BS_OUT_FAILED, "MAX_AGE", "max_age", BS_MANUAL },
        { 99999, 1, BS_OUT_FAILED, "MAX_AGE", "max_age", BS_MANUAL },
        { 3600, 9, BS_OUT_FAILED, "MAX_RETRIES", "max_retries", BS_MANUAL },
        { 3599, 1, BS_OUT_UNKNOWN, "", "", BS_RETRY },
        { 3600, 1, BS_OUT_UNKNOWN, "OUTCOME_UNKNOWN", "outcome_unknown", BS_MANUAL },
        { 99999, 1, BS_OUT_SUCCESS, "", "", BS_SUCCESS },
        { 99999, 1, BS_OUT_NOT_PROCESSED, "", "", BS_RETRY },
        { 99999, 1, BS_OUT_SENT, "", "", BS_WAITING },
    };
    struct bs_policy p = *usual;

    (void)state;
    p.max_age = BS_SEC(3600);
    for (size_t i = 0; i < BS_COUNT(rows); i++) {
        struct bs_task t = running_task();
        struct bs_outcome o = out(rows[i].kind, "X");

        t.retry_count = rows[i].retry_count;
        t.age = BS_SEC(rows[i].age_s);
        struct bs_settlement s = bs_decide_finish(&t, &o, &p, NOW, 1);
        assert_int_equal(s.to, rows[i].to);
        assert_word(s.manual_code, rows[i].manual_code);
        assert_word(s.alert_kind, rows[i].alert);
    }
}

static void the_last_try_is_at_the_end_of_the_age_but_not_before_the_server_wants_it(void **state)
{
    static const struct bs_span delay = { 600000000 };
    struct bs_policy p = { .max_age = BS_SEC(3600),
                           .backoff = { .delays = &delay, .delays_n = 1 } };
    struct bs_task t = running_task();
    struct bs_outcome o = out(BS_OUT_FAILED, "HTTP_503");

    (void)state;
    t.age = BS_SEC(3000);
    assert_int_equal(bs_decide_finish(&t, &o, &p, NOW, 1).next_execute_at.us, NOW.us + 600000000);
    t.age = BS_SEC(3500);
    assert_int_equal(bs_decide_finish(&t, &o, &p, NOW, 1).next_execute_at.us, NOW.us + 100000000);
    o.has_wish = true;
    o.wish = BS_SEC(300);
    assert_int_equal(bs_decide_finish(&t, &o, &p, NOW, 1).next_execute_at.us, NOW.us + 300000000);
    o.wish = BS_SEC(50);
    assert_int_equal(bs_decide_finish(&t, &o, &p, NOW, 1).next_execute_at.us, NOW.us + 100000000);
    o.wish_may_shorten = true;
    assert_int_equal(bs_decide_finish(&t, &o, &p, NOW, 1).next_execute_at.us, NOW.us + 50000000);
}

static void a_hold_that_waited_for_the_end_of_the_age_is_no_hold_any_more(void **state)
{
    struct bs_policy p = *usual;
    struct bs_task t = running_task();
    struct bs_outcome o = out(BS_OUT_FAILED, "HTTP_503");

    (void)state;
    p.max_age = BS_SEC(3600);
    t.pending = BS_PENDING_HOLD;
    t.age = BS_SEC(3599);
    assert_word(bs_decide_finish(&t, &o, &p, NOW, 1).manual_code, "HELD");
    t.age = BS_SEC(3600);
    assert_word(bs_decide_finish(&t, &o, &p, NOW, 1).manual_code, "MAX_AGE");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_outcome_moves_a_task_as_the_table_says),
        cmocka_unit_test(the_last_failure_passes_through_failed_to_a_person),
        cmocka_unit_test(unknown_then_nine_times_503_ends_as_unknown),
        cmocka_unit_test(unknown_then_a_look_then_failures_end_as_failed),
        cmocka_unit_test(endpoint_faults_alone_never_spend_the_budget),
        cmocka_unit_test(the_next_try_is_within_its_window),
        cmocka_unit_test(a_release_after_the_deadline_is_due_now),
        cmocka_unit_test(the_same_finish_decides_the_same_twice),
        cmocka_unit_test(case_4_not_found_is_asked_again_until_the_grace_is_over),
        cmocka_unit_test(not_found_needs_both_three_answers_and_the_grace),
        cmocka_unit_test(another_answer_ends_the_row_of_not_founds),
        cmocka_unit_test(the_manual_code_is_ours_and_the_handlers_words_are_not_it),
        cmocka_unit_test(what_stands_in_the_way_of_every_task_raises_an_alert),
        cmocka_unit_test(no_decision_leaves_the_table),
        cmocka_unit_test(the_age_ends_the_budget_of_failures_and_unknown_outcomes_only),
        cmocka_unit_test(the_last_try_is_at_the_end_of_the_age_but_not_before_the_server_wants_it),
        cmocka_unit_test(a_hold_that_waited_for_the_end_of_the_age_is_no_hold_any_more),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
