/* When an alert begins and ends: one line a case, expected verdict last. */
#include "core/alert_rule.h"
#include "core_test.h"

#include <stdio.h>

#define NOW_US INT64_C(1796054400000000)
#define AGO(s) ((struct bs_time){ NOW_US - (int64_t)(s)*1000000 })
#define LONG_AGO ((struct bs_time){ 1 })

static const struct bs_exposure_limit money_limits[] = { { "CNY", 100000 }, { "JPY", 5000 } };
static const struct bs_alert_limits limits = {
    .manual_growth = 20,
    .manual_age = BS_SEC(3600),
    .oldest_due = BS_SEC(300),
    .backlog = 100,
    .unknown = 50,
    .exposure = money_limits,
    .exposure_n = 2,
};

/* "+kind subject: message" or "-kind …", a line each. */
static const char *verdicts(const struct bs_alert_figures *f, const struct bs_alert_limits *l,
                            const struct bs_alert_open *open, uint32_t open_n)
{
    static char text[4096];
    struct bs_alert_verdict v[BS_ALERT_VERDICTS_MAX(4)];
    const struct bs_alert_judgement j = { f, l, open, open_n, BS_SEC(600), { NOW_US } };
    uint32_t n = bs_alert_judge(&j, v);
    size_t at = 0;

    text[0] = '\0';
    for (uint32_t i = 0; i < n; i++)
        at += (size_t)snprintf(text + at, sizeof(text) - at, "%c%s %s: %s\n",
                               v[i].begins ? '+' : '-', v[i].kind, v[i].subject, v[i].message);
    return text;
}

static struct bs_alert_figures well(void)
{
    return (struct bs_alert_figures){ .biz_type = S("PAY"), .watched_since = LONG_AGO };
}

struct one {
    struct bs_alert_figures f;
    const char *open; /* kind of what is open; NULL: nothing */
    const char *wanted;
};

static void each_says(const struct one *cases, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct bs_alert_figures f = cases[i].f;
        struct bs_alert_open open = { bs_str_of(cases[i].open ? cases[i].open : ""), S("PAY") };

        f.biz_type = S("PAY");
        if (f.watched_since.us == 0)
            f.watched_since = LONG_AGO;
        assert_string_equal(verdicts(&f, &limits, &open, cases[i].open ? 1 : 0), cases[i].wanted);
    }
}

static void levels_begin_at_the_limit_and_end_below_four_fifths(void **state)
{
    static const struct one cases[] = {
        { { .backlog = 99 }, NULL, "" },
        { { .backlog = 100 },
          NULL,
          "+backlog PAY: PAY has 100 tasks in WAITING and RETRY (limit 100)\n" },
        { { .backlog = 100 }, "backlog", "" },
        { { .backlog = 80 }, "backlog", "" },
        { { .backlog = 79 },
          "backlog",
          "-backlog PAY: PAY has 79 tasks in WAITING and RETRY, below 80% of the limit of 100\n" },
        { { .unknown = 49 }, NULL, "" },
        { { .unknown = 50 },
          NULL,
          "+unknown PAY: the outcome of 50 tasks of PAY is unknown (limit 50)\n" },
        { { .unknown = 40 }, "unknown", "" },
        { { .unknown = 1 },
          "unknown",
          "-unknown PAY: the outcome of 1 task of PAY is unknown, below 80% of the limit of 50\n" },
        { { .manual = 119, .manual_low = 100 }, NULL, "" },
        { { .manual = 120, .manual_low = 100 },
          NULL,
          "+manual_growth PAY: MANUAL of PAY grew by 20 tasks within 10m (limit 20)\n" },
        { { .manual = 116, .manual_low = 100, .window_full = true }, "manual_growth", "" },
        { { .manual = 115, .manual_low = 100, .window_full = true },
          "manual_growth",
          "-manual_growth PAY: MANUAL of PAY grew by 15 tasks within 10m, below 80% of the limit "
          "of 20\n" },
        { { .manual = 115, .manual_low = 115 }, "manual_growth", "" }, /* after a start */
    };

    (void)state;
    each_says(cases, BS_COUNT(cases));
}

static void ages_begin_at_the_limit_and_end_below_it(void **state)
{
    static const struct one cases[] = {
        { { .oldest_due = AGO(299) }, NULL, "" },
        { { .oldest_due = AGO(372) },
          NULL,
          "+oldest_due PAY: the oldest due task of PAY has waited 6m12s (limit 5m)\n" },
        { { .oldest_due = AGO(300) }, "oldest_due", "" },
        { { .oldest_due = AGO(299) },
          "oldest_due",
          "-oldest_due PAY: the oldest due task of PAY has waited 4m59s, below the limit of 5m\n" },
        { { .manual = 0 }, "oldest_due", "-oldest_due PAY: no task of PAY is due\n" },
        { { .oldest_manual = AGO(3599) }, NULL, "" },
        { { .oldest_manual = AGO(93784) },
          NULL,
          "+manual_age PAY: the oldest task of PAY in MANUAL has waited 1d2h for a person (limit "
          "1h)\n" },
        { { .oldest_manual = AGO(12) },
          "manual_age",
          "-manual_age PAY: the oldest task of PAY in MANUAL has waited 12s for a person, below "
          "the limit of 1h\n" },
        { { .manual = 0 }, "manual_age", "-manual_age PAY: no task of PAY is in MANUAL\n" },
    };

    (void)state;
    each_says(cases, BS_COUNT(cases));
}

/* What follows from a gate is not a second alert, neither while it lasts nor right after it. */
static void behind_a_gate_only_the_gate_is_an_alert(void **state)
{
    static const struct one cases[] = {
        { { .paused = true, .pause_why = { "li: upgrade", 11 }, .oldest_due = AGO(900) },
          NULL,
          "+pause PAY: PAY is paused: li: upgrade\n" },
        { { .paused = true, .oldest_due = AGO(900), .backlog = 1000 }, "pause", "" },
        { { .breaker_open = true, .breaker_why = { "HTTP_503", 8 }, .backlog = 1000 },
          NULL,
          "+breaker PAY: the breaker of PAY is open: HTTP_503\n" },
        { { .gated_last = AGO(10), .oldest_due = AGO(900), .backlog = 1000 },
          "breaker",
          "-breaker PAY: the breaker of PAY is closed again\n" },
        { { .gated_last = AGO(299), .oldest_due = AGO(900), .backlog = 1000 }, NULL, "" },
        { { .gated_last = AGO(300), .oldest_due = AGO(900), .backlog = 1000 },
          NULL,
          "+oldest_due PAY: the oldest due task of PAY has waited 15m0s (limit 5m)\n"
          "+backlog PAY: PAY has 1000 tasks in WAITING and RETRY (limit 100)\n" },
        { { .gated_last = AGO(10) }, "pause", "-pause PAY: PAY is not paused any more\n" },
        /* What was open before the gate stays open. */
        { { .paused = true, .oldest_due = AGO(900), .gated_last = AGO(0) },
          "oldest_due",
          "+pause PAY: PAY is paused\n" },
        /* While the process was down nothing could run. */
        { { .watched_since = AGO(299), .oldest_due = AGO(90000) }, NULL, "" },
        { { .watched_since = AGO(300), .oldest_due = AGO(90000) },
          NULL,
          "+oldest_due PAY: the oldest due task of PAY has waited 1d1h (limit 5m)\n" },
    };

    (void)state;
    each_says(cases, BS_COUNT(cases));
}

static void money_is_watched_by_currency(void **state)
{
    static const struct bs_exposure_limit much[] = { { "CNY", 123456 }, { "USD", 999999999 } };
    static const struct bs_exposure_limit less[] = { { "CNY", 79999 }, { "JPY", 5000 } };
    const struct bs_alert_open open[] = { { S("exposure"), S("PAY CNY") },
                                          { S("exposure"), S("PAY EUR") } };
    struct bs_alert_figures f = well();

    (void)state;
    f.exposure = much;
    f.exposure_n = 2;
    assert_string_equal(
        verdicts(&f, &limits, NULL, 0),
        "+exposure PAY CNY: 1234.56 CNY are not settled in PAY (limit 1000.00 CNY)\n");
    assert_string_equal(verdicts(&f, &limits, open, 1), "");
    f.exposure = less;
    assert_string_equal(
        verdicts(&f, &limits, open, 2),
        "-exposure PAY CNY: 799.99 CNY are not settled in PAY, below 80% of the limit of 1000.00 "
        "CNY\n"
        "+exposure PAY JPY: 5000 JPY are not settled in PAY (limit 5000 JPY)\n"
        "-exposure PAY EUR: exposure of PAY EUR is no longer watched\n");
}

static void without_limits_nothing_begins_and_everything_ends(void **state)
{
    static const struct bs_alert_limits none = { 0 };
    static const char *const kinds[] = { "manual_growth", "manual_age", "oldest_due",
                                         "backlog",       "unknown",    "exposure" };
    struct bs_alert_figures f = well();
    char wanted[256];

    (void)state;
    f.manual = f.backlog = f.unknown = 1000000;
    f.oldest_due = f.oldest_manual = LONG_AGO;
    assert_string_equal(verdicts(&f, &none, NULL, 0), "");
    for (size_t i = 0; i < BS_COUNT(kinds); i++) {
        const struct bs_alert_open open = { bs_str_of(kinds[i]), S("PAY") };

        snprintf(wanted, sizeof(wanted), "-%.*s PAY: %.*s of PAY is no longer watched\n",
                 BS_STR_FMT(open.kind), BS_STR_FMT(open.kind));
        assert_string_equal(verdicts(&f, &none, &open, 1), wanted);
    }
}

static void conditions_and_events_are_told_apart(void **state)
{
    (void)state;
    assert_true(bs_alert_is_condition(S("backlog")));
    assert_true(bs_alert_is_condition(S("store_failing")));
    assert_false(bs_alert_is_condition(S("max_retries")));
    assert_false(bs_alert_is_condition(S("")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(levels_begin_at_the_limit_and_end_below_four_fifths),
        cmocka_unit_test(ages_begin_at_the_limit_and_end_below_it),
        cmocka_unit_test(behind_a_gate_only_the_gate_is_an_alert),
        cmocka_unit_test(money_is_watched_by_currency),
        cmocka_unit_test(without_limits_nothing_begins_and_everything_ends),
        cmocka_unit_test(conditions_and_events_are_told_apart),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
