/* The configuration: defaults, every key's effect, and every fault with its line. */
#include "config_test.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- good ---- */

static void nothing_written_gives_the_documented_defaults(void **state)
{
    struct bs_config *c = read_good("");

    (void)state;
    assert_string_equal(c->listen, "127.0.0.1:8787");
    assert_string_equal(c->store_url, "sqlite:data/backstop.db");
    assert_string_equal(c->store_path, "data/backstop.db");
    assert_string_equal(c->socket, "data/backstop.db.sock");
    assert_int_equal(c->grace.us, BS_SEC(30).us);
    assert_int_equal(c->log_level, BS_LOG_INFO);
    assert_int_equal(c->log_form, 0);
    assert_int_equal(c->queues.n, 0);
    assert_true(strlen(c->node) > 0);
    assert_int_equal(c->queues.hosts_n, 0);
    assert_int_equal(c->queues.history.archive_after.us, 30 * DAY);
    assert_int_equal(c->queues.history.purge_after.us, 0);
    const struct bs_alert_conf *a = c->queues.alerts, *d = &bs_alert_conf_default;
    assert_int_equal(a->check_every.us, d->check_every.us);
    assert_int_equal(a->growth_window.us, d->growth_window.us);
    assert_int_equal(a->group_wait.us, d->group_wait.us);
    assert_int_equal(a->quiet.us, d->quiet.us);
    assert_int_equal(a->webhooks_n, 0);
    assert_int_equal(a->ping_url.n, 0);
    assert_int_equal(a->ping_every.us, d->ping_every.us);
    bs_config_free(c);
}

static void a_queue_with_the_least_keys_has_the_documented_defaults(void **state)
{
    struct bs_config *c = read_good(QUEUE);
    const struct bs_queue_conf *q = bs_queue_find(&c->queues, BS_STR("PAY"));

    (void)state;
    assert_non_null(q);
    assert_str(q->handler_url, "http://127.0.0.1:9000/pay");
    assert_null(q->secret.bytes.p);
    assert_int_equal(q->look, BS_LOOK_NONE);
    assert_false(q->policy.has_look_up);
    assert_int_equal(q->call_timeout.us, BS_SEC(10).us);
    assert_int_equal(q->connect_timeout.us, BS_SEC(3).us);
    assert_int_equal(q->lease.us, BS_SEC(60).us);
    assert_false(q->renew);
    assert_int_equal(q->concurrency, 32);
    assert_int_equal(q->policy.effect, BS_EFFECT_REPEATABLE);
    assert_int_equal(q->policy.max_retry_count, 10);
    assert_int_equal(q->policy.order_not_found_grace.us, BS_SEC(600).us);
    assert_int_equal(q->policy.backoff.delays_n, 5);
    assert_int_equal(q->policy.backoff.delays[0].us, BS_SEC(60).us);
    assert_int_equal(q->policy.backoff.delays[4].us, BS_SEC(3600).us);
    assert_int_equal(q->policy.backoff.jitter_pct, 20);
    assert_int_equal(q->policy.success.status, 0);
    assert_int_equal(q->policy.statuses_n, 0);
    assert_int_equal(q->rate.calls, 0);
    assert_int_equal(q->policy.max_age.us, 0);
    assert_str(q->handler_host, "127.0.0.1:9000");
    assert_int_equal(q->look_host.n, 0);
    assert_memory_equal(&q->alerts, &bs_alert_limits_default,
                        offsetof(struct bs_alert_limits, exposure));
    assert_int_equal(q->alerts.exposure_n, 0);
    bs_config_free(c);
}

static void every_key_has_its_effect(void **state)
{
    struct bs_config *c =
        read_good("listen: '[::1]:0'\n"
                  "store: sqlite:/tmp/a.db\n"
                  "node: n1\n"
                  "socket: /tmp/a.sock\n"
                  "grace: 1500ms\n"
                  "log: { level: warn, format: text }\n"
                  "queues:\n"
                  "  SHIP:\n"
                  "    handler: https://shop.example/ship?x=1\n"
                  "    secret: whsec_AAECAw==\n"
                  "    order_check:\n"
                  "      url: https://shop.example/{merchant_no}/{order_no}\n"
                  "      timeout: 2s\n"
                  "    effect: money\n"
                  "    call_timeout: 20s\n"
                  "    connect_timeout: 1s\n"
                  "    lease: 24s\n"
                  "    renew: true\n"
                  "    concurrency: 4\n"
                  "    retry: { delays: [1s, 2m], jitter: 0% }\n"
                  "    max_retry_count: 3\n"
                  "    order_not_found_grace: 1m\n"
                  "    success: { status: 200, json: { /code: [0, \"SUCCESS\", "
                  "OK, true, \"0\"] } }\n"
                  "    statuses: { 404: failed, 503: endpoint_fault }\n"
                  "  A.b-1:\n"
                  "    handler: http://h/\n"
                  "    secret: abc\n"
                  "    order_check: none\n"
                  "    effect: none\n"
                  "    retry: { initial: 1s, factor: 1.5, max: 10m, jitter: 50% }\n"
                  "    success: { status: 201, body: ' success ' }\n");
    const struct bs_queue_conf *a = &c->queues.items[0], *s = &c->queues.items[1];

    (void)state;
    assert_string_equal(c->listen, "[::1]:0");
    assert_string_equal(c->store_path, "/tmp/a.db");
    assert_string_equal(c->node, "n1");
    assert_string_equal(c->socket, "/tmp/a.sock");
    assert_int_equal(c->grace.us, 1500000);
    assert_int_equal(c->log_level, BS_LOG_WARN);
    assert_int_equal(c->log_form, 2);
    assert_int_equal(c->queues.n, 2);

    assert_str(a->biz_type, "A.b-1"); /* sorted */
    assert_str(a->secret.bytes, "abc");
    assert_int_equal(a->policy.effect, BS_EFFECT_NONE);
    assert_int_equal(a->policy.backoff.delays_n, 0);
    assert_int_equal(a->policy.backoff.initial.us, BS_SEC(1).us);
    assert_int_equal(a->policy.backoff.factor_pct, 150);
    assert_int_equal(a->policy.backoff.max.us, BS_SEC(600).us);
    assert_int_equal(a->policy.backoff.jitter_pct, 50);
    assert_int_equal(a->policy.success.status, 201);
    assert_str(a->policy.success.body, "success");
    assert_null(a->policy.success.json_pointer.p);

    assert_str(s->biz_type, "SHIP");
    assert_slice(s->secret.bytes, (struct bs_str){ "\0\1\2\3", 4 });
    assert_int_equal(s->look, BS_LOOK_HTTP);
    assert_true(s->policy.has_look_up);
    assert_str(s->look_url, "https://shop.example/{merchant_no}/{order_no}");
    assert_int_equal(s->look_timeout.us, BS_SEC(2).us);
    assert_int_equal(s->policy.effect, BS_EFFECT_MONEY);
    assert_int_equal(s->call_timeout.us, BS_SEC(20).us);
    assert_int_equal(s->connect_timeout.us, BS_SEC(1).us);
    assert_int_equal(s->lease.us, BS_SEC(24).us);
    assert_true(s->renew);
    assert_int_equal(s->concurrency, 4);
    assert_int_equal(s->policy.backoff.delays_n, 2);
    assert_int_equal(s->policy.backoff.delays[1].us, BS_SEC(120).us);
    assert_int_equal(s->policy.backoff.jitter_pct, 0);
    assert_int_equal(s->policy.max_retry_count, 3);
    assert_int_equal(s->policy.order_not_found_grace.us, BS_SEC(60).us);
    assert_str(s->policy.success.json_pointer, "/code");
    assert_int_equal(s->policy.success.values_n, 5);
    assert_str(s->policy.success.values[0], "0");
    assert_str(s->policy.success.values[1], "\"SUCCESS\"");
    assert_str(s->policy.success.values[2], "\"OK\"");
    assert_str(s->policy.success.values[3], "true");
    assert_str(s->policy.success.values[4], "\"0\"");
    assert_int_equal(s->policy.statuses_n, 2);
    assert_int_equal(s->policy.statuses[0].status, 404);
    assert_int_equal(s->policy.statuses[0].cls, BS_STATUS_FAILED);
    assert_int_equal(s->policy.statuses[1].cls, BS_STATUS_ENDPOINT_FAULT);
    bs_config_free(c);
}

static void an_anchor_shares_values_between_queues(void **state)
{
    struct bs_config *c = read_good(QUEUE "    retry: &slow { delays: [7m] }\n"
                                          "  SHIP:\n"
                                          "    handler: http://127.0.0.1:9000/ship\n"
                                          "    secret: none\n"
                                          "    order_check: none\n"
                                          "    retry: *slow\n");

    (void)state;
    assert_int_equal(c->queues.items[1].policy.backoff.delays[0].us, BS_SEC(420).us);
    bs_config_free(c);
}

static void a_short_call_shortens_the_connect_timeout_that_nobody_wrote(void **state)
{
    struct bs_config *c = read_good(QUEUE "    call_timeout: 1s\n");

    (void)state;
    assert_int_equal(c->queues.items[0].connect_timeout.us, BS_SEC(1).us);
    bs_config_free(c);
}

static void queues_without_any_entry_are_no_fault(void **state)
{
    (void)state;
    bs_config_free(read_good("queues:\n# PAY: later\n"));
    bs_config_free(read_good("queues: {}\n"));
}

/* ---- secrets and the environment ---- */

static void variables_are_replaced_inside_texts(void **state)
{
    (void)state;
    setenv("BS_TEST_HOST", "10.1.2.3", 1);
    setenv("BS_TEST_SECRET", "none", 1);
    struct bs_config *c = read_good("queues:\n"
                                    "  PAY:\n"
                                    "    handler: http://${BS_TEST_HOST}:9000/pay\n"
                                    "    secret: ${BS_TEST_SECRET}\n"
                                    "    order_check: none\n"
                                    "    success: { status: 200, body: '$${x}' }\n");

    assert_str(c->queues.items[0].handler_url, "http://10.1.2.3:9000/pay");
    /* What a variable holds is the secret itself, never the word for no secret. */
    assert_str(c->queues.items[0].secret.bytes, "none");
    assert_str(c->queues.items[0].policy.success.body, "${x}");
    bs_config_free(c);
}

static void a_variable_that_is_missing_is_named(void **state)
{
    (void)state;
    unsetenv("BS_TEST_GONE");
    setenv("BS_TEST_EMPTY", "", 1);
    check_fault("node: ${BS_TEST_GONE}\nsocket: ${BS_TEST_EMPTY}\nstore: sqlite:${x\n",
                "f:1: node: the environment variable BS_TEST_GONE is not set\n"
                "f:2: socket: the environment variable BS_TEST_EMPTY is empty\n"
                "f:3: store: `${` must be followed by the name of an environment variable and `}`; "
                "write `$${` for the two characters themselves\n");
}

static void a_secret_is_read_from_its_file(void **state)
{
    char folder[] = "/tmp/bs-config-XXXXXX", path[64], text[512];

    (void)state;
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof(path), "%s/key", folder);
    int fd = open(path, O_WRONLY | O_CREAT, 0600);
    assert_int_equal(write(fd, "  k1\n", 5), 5);
    close(fd);
    snprintf(
        text, sizeof(text),
        "queues:\n  PAY:\n    handler: http://h/\n    secret: file:%s\n    order_check: none\n",
        path);
    struct bs_config *c = read_good(text);
    assert_str(c->queues.items[0].secret.bytes, "k1");
    bs_config_free(c);
    unlink(path);
    rmdir(folder);
    char wanted[256];
    snprintf(wanted, sizeof(wanted),
             "f:4: queues.PAY.secret: cannot open %s: No such file or directory\n", path);
    check_fault(text, wanted);
}

static void commands_do_not_need_the_secrets_of_the_server(void **state)
{
    BS_CLEANUP(bs_buf_free) struct bs_buf report = { .max = 64 << 10 };
    struct bs_config *c = NULL;

    (void)state;
    unsetenv("BS_TEST_GONE");
    assert_int_equal(bs_config_read("f",
                                    BS_STR("store: sqlite:x.db\nqueues: { A: { secret: "
                                           "'${BS_TEST_GONE}' } }\nalerts: { webhooks: { ops: { "
                                           "url: http://h/, secret: '${BS_TEST_GONE}' } } }\n"
                                           "hosts: { 'h:80': { concurrency: 1 } }\n"),
                                    BS_CONFIG_PLACES, &c, &report),
                     BS_OK);
    assert_string_equal(c->socket, "x.db.sock");
    bs_config_free(c);
}

/* ---- faults ---- */

static void an_unknown_key_is_named_with_its_line_and_the_nearest(void **state)
{
    (void)state;
    check_fault(QUEUE "    conncurrency: 5\n    qqqqqqqqqq: 1\n",
                "f:6: unknown key `conncurrency` in queues.PAY; did you mean `concurrency`?\n"
                "f:7: unknown key `qqqqqqqqqq` in queues.PAY\n");
    check_fault("listne: 127.0.0.1:1\nlog: { levle: info }\n",
                "f:1: unknown key `listne`; did you mean `listen`?\n"
                "f:2: unknown key `levle` in log; did you mean `level`?\n");
    check_fault("tls: { cert: a, key: b }\n", "f:1: unknown key `tls`\n");
}

static void a_key_given_twice_is_refused(void **state)
{
    (void)state;
    check_fault("node: a\ngrace: 1s\nnode: b\n",
                "f:3: the key `node` is given twice; it is already on line 1\n");
    check_fault(QUEUE "    lease: 20s\n    lease: 30s\n",
                "f:7: the key `lease` in queues.PAY is given twice; it is already on line 6\n");
    check_fault(QUEUE "  PAY: { handler: http://h/, secret: none, order_check: none }\n",
                "f:6: the key `PAY` in queues is given twice; it is already on line 2\n");
}

static void what_is_missing_is_named(void **state)
{
    (void)state;
    check_fault("queues:\n  PAY:\n    secret: none\n    order_check: none\n",
                "f:2: queues.PAY lacks the key `handler`: The http or https address that repairs "
                "one task per POST.\n");
    check_fault("queues:\n  PAY:\n    handler: http://h/\n    order_check: none\n",
                "f:2: queues.PAY lacks the key `secret`: Signs the calls (Standard Webhooks): the "
                "text itself, ${NAME}, file:PATH, or none.\n");
    check_fault("queues:\n  PAY:\n    handler: http://h/\n    secret: none\n",
                "f:2: queues.PAY lacks the key `order_check`: How to look before acting; none "
                "where nothing can be asked.\n");
    check_fault("node:\n", "f:1: node has no value; it must be a text\n");
}

static void a_wrong_type_says_what_is_expected(void **state)
{
    (void)state;
    check_fault(QUEUE "    concurrency: many\n",
                "f:6: queues.PAY.concurrency must be a whole number, not `many`\n");
    check_fault(QUEUE "    concurrency: \"32\"\n",
                "f:6: queues.PAY.concurrency must be a whole number, not the quoted text `32`\n");
    check_fault(QUEUE "    concurrency: 0\n",
                "f:6: queues.PAY.concurrency must be from 1 to 1024, not 0\n");
    check_fault(QUEUE "    renew: yes\n",
                "f:6: queues.PAY.renew must be true or false, not `yes`\n");
    check_fault(QUEUE "    lease: 60\n", "f:6: queues.PAY.lease must be a duration such as 500ms, "
                                         "10s, 5m, 1h or 30d, not `60`\n");
    check_fault(QUEUE "    lease: 2d\n", "f:6: queues.PAY.lease must be from 1s to 1d, not 2d\n");
    check_fault(QUEUE "    handler2: [a]\n",
                "f:6: unknown key `handler2` in queues.PAY; did you mean `handler`?\n");
    check_fault("listen: [a]\n", "f:1: listen must be a text, not a list\n");
    check_fault("log: loud\n", "f:1: log must be a group of keys, not `loud`\n");
    check_fault("log: { level: warning }\n", "f:1: log.level must be debug, info, warn or error, "
                                             "not `warning`; did you mean `warn`?\n");
    check_fault("queues: [a]\n",
                "f:1: queues must be a group of names, each with its keys, not a list\n");
    check_fault("queues:\n  PAY: http://h/\n",
                "f:2: queues.PAY must be a group of keys, not `http://h/`\n");
    check_fault("just words\n", "f:1: the file must hold keys such as `listen: 127.0.0.1:8787`\n");
}

static void all_faults_are_reported_in_the_order_of_the_lines(void **state)
{
    (void)state;
    check_fault("grace: soon\n" QUEUE "    renew: 1\nnodee: x\n",
                "f:1: grace must be a duration such as 500ms, 10s, 5m, 1h or 30d, not `soon`\n"
                "f:7: queues.PAY.renew must be true or false, not `1`\n"
                "f:8: unknown key `nodee`; did you mean `node`?\n");
}

static void a_fault_is_one_printable_line_whatever_it_quotes(void **state)
{
    (void)state;
    check_fault("\"a\\e[31m\\nb\\tc\": 1\n", "f:1: unknown key `a\\x1B[31m b c`\n");
}

static void text_that_is_no_yaml_names_the_line(void **state)
{
    (void)state;
    check_fault("node: a\n  b: c\n",
                "f:2: not readable as YAML: mapping values are not allowed in this context\n");
    check_fault("node: *a\n", "f:1: *a has no anchor above it\n");
    check_fault("node: !x a\n", "f:1: tags are not used here: !x\n");
    check_fault("node: a\n---\nnode: b\n", "f:2: a second document begins here; one is allowed\n");
    check_fault("a: &x [*x]\n", "f:1: *x has no anchor above it\n");
}

static void a_foreign_address_needs_a_proxy_in_front(void **state)
{
    (void)state;
    check_fault("listen: 0.0.0.0:8787\n",
                "f:1: listen: other machines can reach 0.0.0.0 and Backstop speaks plain HTTP; put "
                "a proxy that speaks TLS in front and set `behind_proxy: true`, or listen on "
                "127.0.0.1\n");
    check_fault("listen: '[::]:8787'\n",
                "f:1: listen: other machines can reach :: and Backstop speaks plain HTTP; put a "
                "proxy that speaks TLS in front and set `behind_proxy: true`, or listen on "
                "127.0.0.1\n");
    bs_config_free(read_good("listen: 0.0.0.0:8787\nbehind_proxy: true\n"));
    bs_config_free(read_good("listen: 127.9.9.9:0\n"));
    static const char *const bad[] = { "8787", "localhost:8787", "127.0.0.1", "127.0.0.1:65536",
                                       "127.0.0.1:-1" };
    for (size_t i = 0; i < BS_COUNT(bad); i++) {
        char text[64], wanted[200];
        snprintf(text, sizeof(text), "listen: '%s'\n", bad[i]);
        snprintf(wanted, sizeof(wanted),
                 "f:1: listen must be a numeric address and a port such as 127.0.0.1:8787 or "
                 "[::1]:8787, not `%s`\n",
                 bad[i]);
        check_fault(text, wanted);
    }
}

/* CASE 40 */
static void a_lease_that_can_end_before_its_call_is_refused(void **state)
{
    (void)state;
    check_fault(QUEUE "    lease: 10s\n    call_timeout: 30s\n",
                "f:6: queues.PAY.lease (10s) must be longer than call_timeout (30s) + 1s; set a "
                "longer lease or `renew: true`\n");
    check_fault(QUEUE "    call_timeout: 59s\n",
                "f:6: queues.PAY.lease (1m) must be longer than call_timeout (59s) + 1s; set a "
                "longer lease or `renew: true`\n");
    check_fault(LOOK_QUEUE "    lease: 14s\n",
                "f:6: queues.PAY.lease (14s) must be longer than order_check.timeout (3s) + "
                "call_timeout (10s) + 1s; set a longer lease or `renew: true`\n");
    bs_config_free(read_good(LOOK_QUEUE "    lease: 14001ms\n"));
    bs_config_free(read_good(QUEUE "    lease: 10s\n    call_timeout: 30s\n    renew: true\n"));
    check_fault(QUEUE "    lease: 2s\n    renew: true\n",
                "f:6: queues.PAY.lease must be at least 3s to be renewed in time\n");
}

static void a_money_queue_needs_a_look_up(void **state)
{
    (void)state;
    check_fault(QUEUE "    effect: money\n",
                "f:6: queues.PAY: a queue with `effect: money` needs an order_check, so that an "
                "unknown result is looked up and never repeated blindly\n");
    bs_config_free(read_good(LOOK_QUEUE "    effect: money\n"));
}

static void addresses_are_http_or_https_and_hold_only_known_placeholders(void **state)
{
#define WITH(handler, url)                                                                         \
    "queues:\n  PAY:\n    handler: '" handler "'\n    secret: none\n    order_check:\n      url: " \
    "'" url "'\n"
    (void)state;
    check_fault(WITH("ftp://h/", "h/{order_no}"),
                "f:3: queues.PAY.handler must begin with http:// or https://\n"
                "f:6: queues.PAY.order_check.url must begin with http:// or https://\n");
    check_fault(WITH("http://h/", "http:///h{order_no}/"),
                "f:6: queues.PAY.order_check.url must be an address such as "
                "http://127.0.0.1:9000/pay/process\n");
    check_fault(WITH("http://", "http://h/{ordr_no}"),
                "f:3: queues.PAY.handler must be an address such as "
                "http://127.0.0.1:9000/pay/process\n"
                "f:6: queues.PAY.order_check.url: unknown placeholder {ordr_no}; did you mean "
                "{order_no}?\n");
    check_fault(WITH("http://u:p@h/", "http://{order_no}/"),
                "f:3: queues.PAY.handler must not hold a user name or password\n"
                "f:6: queues.PAY.order_check.url: a placeholder is possible only after the host\n");
    check_fault(WITH("http://h/{order_no}", "http://h/{order_no}?a={request_id}"),
                "f:3: queues.PAY.handler: a placeholder is possible only after the host of "
                "order_check.url\n");
#undef WITH
}

static void success_statuses_and_delays_are_checked(void **state)
{
    (void)state;
    check_fault(QUEUE "    success: { status: 200 }\n",
                "f:6: queues.PAY.success must have either `body` or `json`\n");
    check_fault(QUEUE "    success: { status: 404, body: x }\n",
                "f:6: queues.PAY.success.status must be from 200 to 299, not 404\n");
    check_fault(QUEUE "    success: { status: 200, json: { code: [0] } }\n",
                "f:6: queues.PAY.success.json: a JSON pointer begins with /; did you mean "
                "`/code`?\n");
    check_fault(QUEUE "    success: { status: 200, json: { /code: [] } }\n",
                "f:6: queues.PAY.success names no value\n");
    check_fault(QUEUE "    statuses: { 404: fail }\n",
                "f:6: queues.PAY.statuses: 404 must be failed, unknown, manual, not_processed or "
                "endpoint_fault, not `fail`\n");
    check_fault(QUEUE "    statuses: { 200: failed }\n",
                "f:6: queues.PAY.statuses: `200` is not an HTTP status from 300 to 599\n");
    check_fault(QUEUE "    retry: { delays: [1m], initial: 1s }\n",
                "f:6: queues.PAY.retry must have either `delays` or `initial` with `factor` and "
                "`max`\n");
    check_fault(QUEUE "    retry: { factor: 2 }\n",
                "f:6: queues.PAY.retry: `factor` and `max` need `initial`\n");
    check_fault(QUEUE "    retry: { delays: [1m, soon] }\n",
                "f:6: queues.PAY.retry.delays must be a duration such as 500ms, 10s, 5m, 1h or "
                "30d, not `soon`\n");
    check_fault(QUEUE "    retry: { delays: [] }\n",
                "f:6: queues.PAY.retry.delays must be a list of durations such as [1m, 3m, 10m], "
                "not an empty list\n");
    check_fault(QUEUE "    retry: { jitter: 20 }\n",
                "f:6: queues.PAY.retry.jitter must be a share such as 20%, not `20`\n");
    check_fault(QUEUE "    call_timeout: 5s\n    connect_timeout: 6s\n",
                "f:7: queues.PAY.connect_timeout is longer than call_timeout\n");
}

static void names_and_places_are_checked(void **state)
{
    (void)state;
    check_fault("queues:\n  9PAY: { handler: http://h/, secret: none, order_check: none }\n",
                "f:2: `9PAY` cannot name a queue: a letter, then at most 31 letters, digits, `_`, "
                "`.` or `-`\n");
    check_fault("store: postgresql://h/db\n",
                "f:1: store must be sqlite: and the path of a file, such as "
                "sqlite:data/backstop.db, not `postgresql://h/db`\n");
    check_fault("socket: ''\n", "f:1: socket must be a path of 1 to 107 bytes, not ``\n");
    check_fault("queues:\n  P: { handler: http://h/, secret: '', order_check: none }\n",
                "f:2: queues.P.secret is empty; write none where calls need no signature\n");
}

static void the_list_of_keys_has_every_level(void **state)
{
    BS_CLEANUP(bs_buf_free) struct bs_buf out = { .max = 64 << 10 };

    (void)state;
    bs_config_keys(&out);
    assert_non_null(strstr(out.p, "listen\ta text\t127.0.0.1:8787\t"));
    assert_non_null(strstr(out.p, "\nlog.level\t"));
    assert_non_null(strstr(out.p, "\nqueues.NAME.handler\ta text\t(required)\t"));
    assert_non_null(strstr(out.p, "\nqueues.NAME.retry.jitter\ta share such as 20%\t20%\t"));
}

/* The sample that is delivered must be good as it stands. */
static void the_sample_file_is_accepted(void **state)
{
    BS_CLEANUP(bs_buf_free) struct bs_buf report = { .max = 64 << 10 };
    struct bs_config *c = NULL;

    (void)state;
    setenv("PAY_CALLBACK_SECRET", "whsec_AAECAw==", 1);
    setenv("REFUND_SECRET", "whsec_AAECAw==", 1);
    setenv("ALERT_SECRET", "whsec_AAECAw==", 1);
    if (bs_config_load(SAMPLE_FILE, BS_CONFIG_WHOLE, &c, &report) != BS_OK)
        fail_msg("refused: %s", bs_buf_str(&report).p);
    assert_true(c->queues.n >= 1);
    bs_config_free(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_written_gives_the_documented_defaults),
        cmocka_unit_test(a_queue_with_the_least_keys_has_the_documented_defaults),
        cmocka_unit_test(every_key_has_its_effect),
        cmocka_unit_test(an_anchor_shares_values_between_queues),
        cmocka_unit_test(a_short_call_shortens_the_connect_timeout_that_nobody_wrote),
        cmocka_unit_test(queues_without_any_entry_are_no_fault),
        cmocka_unit_test(variables_are_replaced_inside_texts),
        cmocka_unit_test(a_variable_that_is_missing_is_named),
        cmocka_unit_test(a_secret_is_read_from_its_file),
        cmocka_unit_test(commands_do_not_need_the_secrets_of_the_server),
        cmocka_unit_test(an_unknown_key_is_named_with_its_line_and_the_nearest),
        cmocka_unit_test(a_key_given_twice_is_refused),
        cmocka_unit_test(what_is_missing_is_named),
        cmocka_unit_test(a_wrong_type_says_what_is_expected),
        cmocka_unit_test(all_faults_are_reported_in_the_order_of_the_lines),
        cmocka_unit_test(a_fault_is_one_printable_line_whatever_it_quotes),
        cmocka_unit_test(text_that_is_no_yaml_names_the_line),
        cmocka_unit_test(a_foreign_address_needs_a_proxy_in_front),
        cmocka_unit_test(a_lease_that_can_end_before_its_call_is_refused),
        cmocka_unit_test(a_money_queue_needs_a_look_up),
        cmocka_unit_test(addresses_are_http_or_https_and_hold_only_known_placeholders),
        cmocka_unit_test(success_statuses_and_delays_are_checked),
        cmocka_unit_test(names_and_places_are_checked),
        cmocka_unit_test(the_list_of_keys_has_every_level),
        cmocka_unit_test(the_sample_file_is_accepted),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
