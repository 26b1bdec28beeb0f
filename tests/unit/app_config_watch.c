/* Configuration: rates, ages, hosts, alerts and history. */
#include "config_test.h"

#include <stdlib.h>

static void every_key_of_protection_has_its_effect(void **state)
{
    struct bs_config *c =
        read_good("hosts: { '127.0.0.1:9001': { concurrency: 8 }, 'SHOP.example:443': { "
                  "concurrency: 1 } }\n" LOOK_QUEUE "    rate: 200/s\n"
                  "    max_age: 3d\n"
                  "  SLOW:\n"
                  "    handler: https://Shop.Example/x\n"
                  "    secret: none\n"
                  "    order_check: { url: 'http://127.0.0.1:9001/{order_no}' }\n"
                  "    rate: 5/m\n"
                  "    max_age: none\n"
                  "  SLOWER: { handler: 'http://[::1]:80/', secret: none, order_check: none, "
                  "rate: 1/h }\n"
                  "  STEADY: { handler: 'http://h', secret: none, order_check: none, rate: none, "
                  "max_age: 0 }\n");
    const struct bs_queue_conf *q = c->queues.items;

    (void)state;
    assert_int_equal(q[0].rate.calls, 200);
    assert_int_equal(q[0].rate.per.us, BS_SEC(1).us);
    assert_int_equal(q[0].policy.max_age.us, 3 * DAY);
    assert_str(q[0].handler_host, "127.0.0.1:9000");
    assert_str(q[0].look_host, "127.0.0.1:9000");
    assert_str(q[1].biz_type, "SLOW");
    assert_int_equal(q[1].rate.calls, 5);
    assert_int_equal(q[1].rate.per.us, BS_SEC(60).us);
    assert_int_equal(q[1].policy.max_age.us, 0);
    assert_str(q[1].handler_host, "shop.example:443");
    assert_str(q[1].look_host, "127.0.0.1:9001");
    assert_int_equal(q[2].rate.calls, 1);
    assert_int_equal(q[2].rate.per.us, BS_SEC(3600).us);
    assert_str(q[2].handler_host, "[::1]:80");
    assert_int_equal(q[3].rate.calls, 0);
    assert_int_equal(q[3].policy.max_age.us, 0);
    assert_str(q[3].handler_host, "h:80");
    assert_int_equal(c->queues.hosts_n, 2);
    assert_str(c->queues.hosts[0].name, "127.0.0.1:9001"); /* sorted */
    assert_int_equal(c->queues.hosts[0].concurrency, 8);
    assert_int_equal(bs_host_find(&c->queues, BS_STR("shop.example:443"))->concurrency, 1);
    assert_null(bs_host_find(&c->queues, BS_STR("127.0.0.1:9000")));
    bs_config_free(c);
}

static void every_key_of_alerts_and_history_has_its_effect(void **state)
{
    (void)state;
    setenv("BS_TEST_KEY", "k2", 1);
    struct bs_config *c = read_good("history: { archive_after: 7d, purge_after: 400d }\n"
                                    "alerts:\n"
                                    "  check_every: 1s\n"
                                    "  growth_window: 2m\n"
                                    "  group_wait: 0s\n"
                                    "  quiet: 30s\n"
                                    "  webhooks:\n"
                                    "    pager: { url: 'https://p.example/x', secret: none }\n"
                                    "    ops: { url: 'http://127.0.0.1:1/', secret: "
                                    "'${BS_TEST_KEY}', timeout: 2s }\n"
                                    "  ping: { url: 'http://127.0.0.1:2/up', every: 5s }\n");
    const struct bs_alert_conf *a = c->queues.alerts;

    assert_int_equal(c->queues.history.archive_after.us, 7 * DAY);
    assert_int_equal(c->queues.history.purge_after.us, 400 * DAY);
    assert_int_equal(a->check_every.us, BS_SEC(1).us);
    assert_int_equal(a->growth_window.us, BS_SEC(120).us);
    assert_int_equal(a->group_wait.us, 0);
    assert_int_equal(a->quiet.us, BS_SEC(30).us);
    assert_int_equal(a->webhooks_n, 2);
    assert_str(a->webhooks[0].name, "ops"); /* sorted */
    assert_str(a->webhooks[0].url, "http://127.0.0.1:1/");
    assert_str(a->webhooks[0].secret.bytes, "k2");
    assert_int_equal(a->webhooks[0].timeout.us, BS_SEC(2).us);
    assert_null(a->webhooks[1].secret.bytes.p);
    assert_int_equal(a->webhooks[1].timeout.us, BS_SEC(10).us);
    assert_str(a->ping_url, "http://127.0.0.1:2/up");
    assert_int_equal(a->ping_every.us, BS_SEC(5).us);
    bs_config_free(c);
    c = read_good("history: { archive_after: never, purge_after: 0 }\n");
    assert_int_equal(c->queues.history.archive_after.us, 0);
    assert_int_equal(c->queues.history.purge_after.us, 0);
    bs_config_free(c);
}

static void a_queue_takes_the_limits_that_it_does_not_give_from_the_top(void **state)
{
    struct bs_config *c =
        read_good("alerts: { limits: { manual_growth: 7, manual_age: none, oldest_due: 1m, "
                  "exposure: { JPY: 2000, CNY: 100000.00, KWD: 1.234, USD: 0 } } }\n" QUEUE
                  "    alerts: { backlog: none, unknown: 3, manual_growth: 0, manual_age: 1h }\n"
                  "  SHIP: { handler: 'http://h/', secret: none, order_check: none, alerts: { "
                  "exposure: { USD: \"1\" } } }\n"
                  "  TINY: { handler: 'http://h/', secret: none, order_check: none, alerts: { "
                  "exposure: none } }\n");
    const struct bs_alert_limits *pay = &c->queues.items[0].alerts;
    const struct bs_alert_limits *ship = &c->queues.items[1].alerts;

    (void)state;
    assert_int_equal(pay->manual_growth, 0);
    assert_int_equal(pay->manual_age.us, BS_SEC(3600).us);
    assert_int_equal(pay->oldest_due.us, BS_SEC(60).us);
    assert_int_equal(pay->backlog, 0);
    assert_int_equal(pay->unknown, 3);
    assert_int_equal(pay->exposure_n, 3); /* sorted; 0 USD is not watched */
    assert_string_equal(pay->exposure[0].currency, "CNY");
    assert_int_equal(pay->exposure[0].amount, 10000000);
    assert_string_equal(pay->exposure[1].currency, "JPY");
    assert_int_equal(pay->exposure[1].amount, 2000);
    assert_string_equal(pay->exposure[2].currency, "KWD");
    assert_int_equal(pay->exposure[2].amount, 1234);
    assert_int_equal(ship->manual_growth, 7);
    assert_int_equal(ship->manual_age.us, 0);
    assert_int_equal(ship->backlog, 100000);
    assert_int_equal(ship->exposure_n, 1);
    assert_string_equal(ship->exposure[0].currency, "USD");
    assert_int_equal(ship->exposure[0].amount, 100);
    assert_int_equal(c->queues.items[2].alerts.exposure_n, 0);
    bs_config_free(c);
}

static void rates_and_ages_are_checked(void **state)
{
    static const char *const bad[] = { "200", "200/", "200/d", "/s", "2.5/s", "-1/s", "200 /s" };

    (void)state;
    for (size_t i = 0; i < BS_COUNT(bad); i++) {
        char text[256], wanted[200];
        snprintf(text, sizeof(text), QUEUE "    rate: %s\n", bad[i]);
        snprintf(wanted, sizeof(wanted),
                 "f:6: queues.PAY.rate must be a rate such as 200/s, 5/m or 1/h or the word none, "
                 "not %s%s%s\n",
                 i ? "`" : "`", bad[i], "`");
        check_fault(text, wanted);
    }
    check_fault(
        QUEUE "    rate: 0/s\n",
        "f:6: queues.PAY.rate must allow from 1 to 1000000 calls, not 0/s; the word none is no "
        "limit, and a queue that is to stop is paused\n");
    check_fault(QUEUE "    rate: 1000001/s\n", "f:6: queues.PAY.rate must allow from 1 to 1000000 "
                                               "calls, not 1000001/s; the word none is no "
                                               "limit, and a queue that is to stop is paused\n");
    check_fault(QUEUE "    max_age: 3\n",
                "f:6: queues.PAY.max_age must be a duration such as 500ms, 10s, 5m, 1h or 30d or "
                "the word none, not `3`\n");
    check_fault(QUEUE "    max_age: 500ms\n",
                "f:6: queues.PAY.max_age must be from 1s to 366d, not 500ms\n");
    check_fault(QUEUE "    maxage: 3d\n",
                "f:6: unknown key `maxage` in queues.PAY; did you mean `max_age`?\n");
}

static void a_host_that_no_queue_calls_is_refused(void **state)
{
    (void)state;
    check_fault("hosts: { '127.0.0.1:900': { concurrency: 8 } }\n" QUEUE,
                "f:1: hosts: no queue calls `127.0.0.1:900`; did you mean `127.0.0.1:9000`?\n");
    check_fault("hosts:\n  127.0.0.1: { concurrency: 8 }\n" QUEUE,
                "f:2: hosts: no queue calls `127.0.0.1`; did you mean `127.0.0.1:9000`?\n");
    check_fault("hosts: { 'http://127.0.0.1:9000/': { concurrency: 8 } }\n" QUEUE,
                "f:1: hosts: no queue calls `http://127.0.0.1:9000/`; did you mean "
                "`127.0.0.1:9000`?\n");
    check_fault("hosts: { other.example:443: { concurrency: 8 } }\n",
                "f:1: hosts: no queue calls `other.example:443`\n");
    check_fault("hosts:\n  h:80: { concurrency: 8 }\n  H:80: { concurrency: 9 }\nqueues: { P: { "
                "handler: 'http://h/', secret: none, order_check: none } }\n",
                "f:3: hosts: `H:80` is given twice\n");
    check_fault("hosts: { '127.0.0.1:9000': { concurrency: 0, rate: 1/s } }\n" QUEUE,
                "f:1: unknown key `rate` in hosts.127.0.0.1:9000\n"
                "f:1: hosts.127.0.0.1:9000.concurrency must be from 1 to 1024, not 0\n");
    check_fault("hosts: { '127.0.0.1:9000': {} }\n" QUEUE,
                "f:1: hosts.127.0.0.1:9000 lacks the key `concurrency`: The most calls to this "
                "host at once, of all queues together.\n");
}

static void alerts_and_history_are_checked(void **state)
{
    (void)state;
    check_fault(
        "alerts: { limits: { manual_grow: 1, backlog: -1, exposure: { CNY: 1.234 } } }\n",
        "f:1: unknown key `manual_grow` in alerts.limits; did you mean `manual_growth`?\n"
        "f:1: alerts.limits.backlog must be from 1 to 1000000000, not -1\n"
        "f:1: alerts.limits.exposure: CNY must be an amount "
        "from 0 to 92233720368547758.07 CNY with at most 2 digits after the point, not `1.234`\n");
    check_fault(
        QUEUE "    alerts:\n      manual_ages: 1h\n      exposure: { cny: 1, CNY: [1] }\n",
        "f:7: unknown key `manual_ages` in queues.PAY.alerts; did you mean `manual_age`?\n"
        "f:8: queues.PAY.alerts.exposure: `cny` is not a currency of ISO 4217; they are "
        "three capitals such as CNY\n"
        "f:8: queues.PAY.alerts.exposure: CNY must be an amount "
        "from 0 to 92233720368547758.07 CNY with at most 2 digits after the point, not a list\n");
    check_fault(QUEUE "    alerts: { exposure: { CNY: -5, JPY: 99999999999999999999 } }\n",
                "f:6: queues.PAY.alerts.exposure: CNY must be an amount from 0 to "
                "92233720368547758.07 CNY with at most 2 digits after the point, not `-5`\n"
                "f:6: queues.PAY.alerts.exposure: JPY must be an amount from 0 to "
                "9223372036854775807 JPY with 0 digits after the point, not "
                "`99999999999999999999`\n");
    check_fault(QUEUE "    alerts: { exposure: 5 }\n",
                "f:6: queues.PAY.alerts.exposure must be a group such as { CNY: 100000.00 } or the "
                "word none, not `5`\n");
    check_fault(QUEUE "    alerts: { exposure: { CNY: 1, CNY: 2 } }\n",
                "f:6: queues.PAY.alerts.exposure: CNY is given twice\n");
    check_fault("alerts: { webhooks: { ops: { url: 'ftp://h/' }, 'a b': { url: 'http://h', "
                "secret: none, timeout: 1h } } }\n",
                "f:1: alerts.webhooks.ops lacks the key `secret`: Signs the alerts (Standard "
                "Webhooks): the text itself, ${NAME}, file:PATH, or none.\n"
                "f:1: alerts.webhooks.a b.timeout must be from 100ms to 5m, not 1h\n"
                "f:1: alerts.webhooks.ops.url must begin with http:// or https://\n"
                "f:1: `a b` cannot name a webhook: at most 32 letters, digits, `_` or `-`\n");
    check_fault("alerts: { ping: { every: 1m } }\n",
                "f:1: alerts.ping lacks the key `url`: The http or https address that is called "
                "with GET while all is well, so that its owner notices when nothing comes any "
                "more.\n");
    check_fault("history: { purge_after: 29d }\n",
                "f:1: history.purge_after must be from 30d to 36500d, not 29d\n");
    check_fault("history:\n  archive_after: 60d\n  purge_after: 40d\n",
                "f:3: history.purge_after is shorter than archive_after\n");
    check_fault("history: { archive_after: never, purge_after: 40d }\n",
                "f:1: history.purge_after needs archive_after: only archived tasks are deleted\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_key_of_protection_has_its_effect),
        cmocka_unit_test(every_key_of_alerts_and_history_has_its_effect),
        cmocka_unit_test(a_queue_takes_the_limits_that_it_does_not_give_from_the_top),
        cmocka_unit_test(rates_and_ages_are_checked),
        cmocka_unit_test(a_host_that_no_queue_calls_is_refused),
        cmocka_unit_test(alerts_and_history_are_checked),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
