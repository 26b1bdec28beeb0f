/* The table of configuration keys. */
#include "app/config_schema.h"

#define SECONDS(n) ((int64_t)(n)*1000000)
#define MILLIS(n) ((int64_t)(n)*1000)
#define MINUTES(n) SECONDS((int64_t)(n)*60)
#define HOURS(n) SECONDS((int64_t)(n)*3600)
#define DAYS(n) HOURS((int64_t)(n)*24)

enum { COUNT_MAX = 1000000000 };

static const char *const levels[] = { "debug", "info", "warn", "error", NULL };
static const char *const formats[] = { "auto", "json", "text", NULL };
static const char *const effects[] = { "none", "repeatable", "money", NULL };

static const struct bs_conf_key log_keys[] = {
    [BS_LOGKEY_LEVEL] = { "level", BS_CONF_CHOICE, .standard = "info", .choices = levels,
                          .doc = "The least important events that are logged." },
    [BS_LOGKEY_FORMAT] = { "format", BS_CONF_CHOICE, .standard = "auto", .choices = formats,
                           .doc = "One JSON object a line, readable text, or (auto) text on a "
                                  "terminal and JSON elsewhere." },
};
static const struct bs_conf_section log_section = { log_keys, BS_COUNT(log_keys) };
_Static_assert(BS_COUNT(log_keys) == BS_LOGKEY_COUNT, "every key of log");

static const struct bs_conf_key look_keys[] = {
    [BS_LOOK_URL] = { "url", BS_CONF_TEXT, .required = true,
                      .doc = "Where the order's state is asked with GET before the handler is "
                             "called; may hold {order_no} {payment_no} {channel_trade_no} "
                             "{refund_no} {biz_id} {merchant_no} {request_id}." },
    [BS_LOOK_TIMEOUT] = { "timeout", BS_CONF_SPAN, .standard = "3s", .min = MILLIS(100),
                          .max = HOURS(1), .doc = "The longest the look-up may take." },
};
static const struct bs_conf_section look_section = { look_keys, BS_COUNT(look_keys) };
_Static_assert(BS_COUNT(look_keys) == BS_LOOK_COUNT, "every key of order_check");

static const struct bs_conf_key retry_keys[] = {
    [BS_RETRY_DELAYS] = { "delays", BS_CONF_SPANS, .standard = "[1m, 3m, 10m, 30m, 1h]",
                          .min = MILLIS(1), .max = DAYS(366),
                          .doc = "The wait after the first, second, … failed execution; the last "
                                 "repeats." },
    [BS_RETRY_INITIAL] = { "initial", BS_CONF_SPAN, .min = MILLIS(1), .max = DAYS(366),
                           .doc = "Instead of delays: the first wait." },
    [BS_RETRY_FACTOR] = { "factor", BS_CONF_FACTOR, .standard = "2", .min = 100, .max = 10000,
                          .doc = "With initial: each wait is the one before it times this." },
    [BS_RETRY_MAX] = { "max", BS_CONF_SPAN, .standard = "1h", .min = MILLIS(1), .max = DAYS(366),
                       .doc = "With initial: no wait is longer." },
    [BS_RETRY_JITTER] = { "jitter", BS_CONF_PERCENT, .standard = "20%", .min = 0, .max = 50,
                          .doc = "How far each wait is moved by chance, both ways." },
};
static const struct bs_conf_section retry_section = { retry_keys, BS_COUNT(retry_keys) };
_Static_assert(BS_COUNT(retry_keys) == BS_RETRY_COUNT, "every key of retry");

static const struct bs_conf_key success_keys[] = {
    [BS_SUC_STATUS] = { "status", BS_CONF_COUNT, .required = true, .min = 200, .max = 299,
                        .doc = "The HTTP status that the reply must have." },
    [BS_SUC_BODY] = { "body", BS_CONF_TEXT,
                      .doc = "The whole body that means success, white space at its ends left "
                             "out; never a part of it." },
    [BS_SUC_JSON] = { "json", BS_CONF_RULE,
                      .doc = "One JSON pointer and the values there that mean success: "
                             "{ /code: [0, \"SUCCESS\"] }." },
};
static const struct bs_conf_section success_section = { success_keys, BS_COUNT(success_keys) };
_Static_assert(BS_COUNT(success_keys) == BS_SUC_COUNT, "every key of success");

/* Twice: with their defaults for all queues, and without any for the queue that differs. */
#define LIMIT_KEYS(growth, age, due, log, unknowns)                                                \
    {                                                                                              \
        [BS_LIM_MANUAL_GROWTH] = { "manual_growth",                                                \
                                   BS_CONF_COUNT,                                                  \
                                   .standard = (growth),                                           \
                                   .min = 1,                                                       \
                                   .max = COUNT_MAX,                                               \
                                   .instead = "none",                                              \
                                   .doc = "So many more tasks wait for a person than at "          \
                                          "the lowest in growth_window." },                        \
        [BS_LIM_MANUAL_AGE] = { "manual_age",                                                      \
                                BS_CONF_SPAN,                                                      \
                                .standard = (age),                                                 \
                                .min = SECONDS(1),                                                 \
                                .max = DAYS(366),                                                  \
                                .instead = "none",                                                 \
                                .doc = "A task waits for a person for so long." },                 \
        [BS_LIM_OLDEST_DUE] = { "oldest_due",                                                      \
                                BS_CONF_SPAN,                                                      \
                                .standard = (due),                                                 \
                                .min = SECONDS(1),                                                 \
                                .max = DAYS(366),                                                  \
                                .instead = "none",                                                 \
                                .doc = "A task has been due for so long and does not run." },      \
        [BS_LIM_BACKLOG] = { "backlog",                                                            \
                             BS_CONF_COUNT,                                                        \
                             .standard = (log),                                                    \
                             .min = 1,                                                             \
                             .max = COUNT_MAX,                                                     \
                             .instead = "none",                                                    \
                             .doc = "So many tasks are in WAITING and RETRY together." },          \
        [BS_LIM_UNKNOWN] = { "unknown",                                                            \
                             BS_CONF_COUNT,                                                        \
                             .standard = (unknowns),                                               \
                             .min = 1,                                                             \
                             .max = COUNT_MAX,                                                     \
                             .instead = "none",                                                    \
                             .doc = "The outcome of so many tasks is unknown." },                  \
        [BS_LIM_EXPOSURE] = { "exposure", BS_CONF_AMOUNTS, .instead = "none",                      \
                              .doc = "So much money is in tasks that are not settled: "            \
                                     "{ CNY: 100000.00 }." },                                      \
    }

static const struct bs_conf_key limit_keys[] = LIMIT_KEYS("20", "4h", "5m", "100000", "50");
static const struct bs_conf_section limit_section = { limit_keys, BS_COUNT(limit_keys) };
static const struct bs_conf_key own_limit_keys[] = LIMIT_KEYS(NULL, NULL, NULL, NULL, NULL);
static const struct bs_conf_section own_limit_section = { own_limit_keys,
                                                          BS_COUNT(own_limit_keys) };
_Static_assert(BS_COUNT(limit_keys) == BS_LIM_COUNT, "every limit");

static const struct bs_conf_key queue_keys[] = {
    [BS_Q_HANDLER] = { "handler", BS_CONF_TEXT, .required = true,
                       .doc = "The http or https address that repairs one task per POST." },
    [BS_Q_SECRET] = { "secret", BS_CONF_TEXT, .required = true,
                      .doc = "Signs the calls (Standard Webhooks): the text itself, ${NAME}, "
                             "file:PATH, or none." },
    [BS_Q_ORDER_CHECK] = { "order_check", BS_CONF_SECTION, .required = true,
                           .section = &look_section, .instead = "none",
                           .doc = "How to look before acting; none where nothing can be asked." },
    [BS_Q_EFFECT] = { "effect", BS_CONF_CHOICE, .standard = "repeatable", .choices = effects,
                      .doc = "What the handler changes: nothing, something it keeps from "
                             "happening twice by the idempotency key, or money (needs "
                             "order_check)." },
    [BS_Q_CALL_TIMEOUT] = { "call_timeout", BS_CONF_SPAN, .standard = "10s", .min = MILLIS(100),
                            .max = HOURS(1), .doc = "The longest a call may take as a whole." },
    [BS_Q_CONNECT_TIMEOUT] = { "connect_timeout", BS_CONF_SPAN, .standard = "3s", .min = MILLIS(10),
                               .max = HOURS(1),
                               .doc = "The longest the connection may take; without the key, not "
                                      "longer than call_timeout." },
    [BS_Q_LEASE] = { "lease", BS_CONF_SPAN, .standard = "60s", .min = SECONDS(1), .max = DAYS(1),
                     .doc = "How long a task is held before others may take it over; longer than "
                            "look-up + call + 1s unless renew." },
    [BS_Q_RENEW] = { "renew", BS_CONF_FLAG, .standard = "false",
                     .doc = "Renews the lease every third of it while a call runs." },
    [BS_Q_CONCURRENCY] = { "concurrency", BS_CONF_COUNT, .standard = "32", .min = 1, .max = 1024,
                           .doc = "The most calls of the queue at once; short ones are claimed "
                                  "ahead." },
    [BS_Q_RATE] = { "rate", BS_CONF_RATE, .standard = "none", .min = 1, .max = 1000000,
                    .instead = "none",
                    .doc = "The most executions of the queue that begin in a second, minute or "
                           "hour, evenly spread." },
    [BS_Q_RETRY] = { "retry", BS_CONF_SECTION, .section = &retry_section,
                     .doc = "When a failed or unknown execution is tried again." },
    [BS_Q_MAX_RETRY_COUNT] = { "max_retry_count", BS_CONF_COUNT, .standard = "10", .min = 1,
                               .max = 100,
                               .doc = "After so many failed or unknown executions a person is "
                                      "asked." },
    [BS_Q_MAX_AGE] = { "max_age", BS_CONF_SPAN, .standard = "none", .min = SECONDS(1),
                       .max = DAYS(366), .instead = "none",
                       .doc = "After so long a person is asked; only the time counts in which the "
                              "task could have run." },
    [BS_Q_ORDER_NOT_FOUND_GRACE] = { "order_not_found_grace", BS_CONF_SPAN, .standard = "10m",
                                     .min = 0, .max = DAYS(30),
                                     .doc = "How long a look-up may say not_found before a person "
                                            "is asked." },
    [BS_Q_SUCCESS] = { "success", BS_CONF_SECTION, .section = &success_section,
                       .doc = "A reply that means success, beside 204 and the JSON outcome." },
    [BS_Q_STATUSES] = { "statuses", BS_CONF_STATUSES,
                        .doc = "What single HTTP statuses mean instead of the built-in rule: "
                               "failed, unknown, manual, not_processed or endpoint_fault." },
    [BS_Q_ALERTS] = { "alerts", BS_CONF_SECTION, .section = &own_limit_section,
                      .doc = "Limits of this queue; what is not given here is as in "
                             "alerts.limits." },
};
static const struct bs_conf_section queue_section = { queue_keys, BS_COUNT(queue_keys) };
_Static_assert(BS_COUNT(queue_keys) == BS_Q_COUNT, "every key of a queue");
_Static_assert(BS_COUNT(queue_keys) <= BS_CONF_KEYS_MAX, "the values have room");

static const struct bs_conf_key history_keys[] = {
    [BS_HIST_ARCHIVE] = { "archive_after", BS_CONF_SPAN, .standard = "30d", .min = SECONDS(1),
                          .max = DAYS(36500), .instead = "never",
                          .doc = "Finished tasks move to the history after so long; they are found "
                                 "and shown as before." },
    [BS_HIST_PURGE] = { "purge_after", BS_CONF_SPAN, .standard = "never", .min = DAYS(30),
                        .max = DAYS(36500), .instead = "never",
                        .doc = "Tasks of the history are deleted so long after they finished; keys "
                               "and what people did stay." },
};
static const struct bs_conf_section history_section = { history_keys, BS_COUNT(history_keys) };
_Static_assert(BS_COUNT(history_keys) == BS_HIST_COUNT, "every key of history");

static const struct bs_conf_key webhook_keys[] = {
    [BS_HOOK_URL] = { "url", BS_CONF_TEXT, .required = true,
                      .doc = "The http or https address that alerts are sent to by POST." },
    [BS_HOOK_SECRET] = { "secret", BS_CONF_TEXT, .required = true,
                         .doc = "Signs the alerts (Standard Webhooks): the text itself, ${NAME}, "
                                "file:PATH, or none." },
    [BS_HOOK_TIMEOUT] = { "timeout", BS_CONF_SPAN, .standard = "10s", .min = MILLIS(100),
                          .max = MINUTES(5), .doc = "The longest a delivery may take." },
};
static const struct bs_conf_section webhook_section = { webhook_keys, BS_COUNT(webhook_keys) };
_Static_assert(BS_COUNT(webhook_keys) == BS_HOOK_COUNT, "every key of a webhook");

static const struct bs_conf_key ping_keys[] = {
    [BS_PING_URL] = { "url", BS_CONF_TEXT, .required = true,
                      .doc = "The http or https address that is called with GET while all is "
                             "well, so that its owner notices when nothing comes any more." },
    [BS_PING_EVERY] = { "every", BS_CONF_SPAN, .standard = "1m", .min = SECONDS(1), .max = DAYS(1),
                        .doc = "How often." },
};
static const struct bs_conf_section ping_section = { ping_keys, BS_COUNT(ping_keys) };
_Static_assert(BS_COUNT(ping_keys) == BS_PING_COUNT, "every key of ping");

static const struct bs_conf_key alert_keys[] = {
    [BS_AL_CHECK_EVERY] = { "check_every", BS_CONF_SPAN, .standard = "10s", .min = MILLIS(100),
                            .max = HOURS(1),
                            .doc = "How often the figures are compared with the limits." },
    [BS_AL_GROWTH_WINDOW] = { "growth_window", BS_CONF_SPAN, .standard = "10m", .min = SECONDS(1),
                              .max = DAYS(1), .doc = "How far manual_growth looks back." },
    [BS_AL_GROUP_WAIT] = { "group_wait", BS_CONF_SPAN, .standard = "5s", .min = 0, .max = HOURS(1),
                           .doc = "Alerts that begin or end within it are sent together." },
    [BS_AL_QUIET] = { "quiet", BS_CONF_SPAN, .standard = "10m", .min = SECONDS(1), .max = DAYS(1),
                      .doc = "An alert about single events ends when none came for so long." },
    [BS_AL_LIMITS] = { "limits", BS_CONF_SECTION, .section = &limit_section,
                       .doc = "From where on a queue's figures are an alert; none switches a limit "
                              "off." },
    [BS_AL_WEBHOOKS] = { "webhooks", BS_CONF_NAMED, .section = &webhook_section,
                         .doc = "Who is told: one group of keys for each receiver." },
    [BS_AL_PING] = { "ping", BS_CONF_SECTION, .section = &ping_section,
                     .doc = "A sign of life for a dead man's switch." },
};
static const struct bs_conf_section alert_section = { alert_keys, BS_COUNT(alert_keys) };
_Static_assert(BS_COUNT(alert_keys) == BS_AL_COUNT, "every key of alerts");

static const struct bs_conf_key host_keys[] = {
    [BS_HOST_CONCURRENCY] = { "concurrency", BS_CONF_COUNT, .required = true, .min = 1, .max = 1024,
                              .doc = "The most calls to this host at once, of all queues "
                                     "together." },
};
static const struct bs_conf_section host_section = { host_keys, BS_COUNT(host_keys) };
_Static_assert(BS_COUNT(host_keys) == BS_HOST_COUNT, "every key of a host");

static const struct bs_conf_key top_keys[] = {
    [BS_TOP_LISTEN] = { "listen", BS_CONF_TEXT, .standard = "127.0.0.1:8787",
                        .doc = "Address and port of the HTTP API; port 0 takes a free one." },
    [BS_TOP_BEHIND_PROXY] = { "behind_proxy", BS_CONF_FLAG, .standard = "false",
                              .doc = "A proxy that speaks TLS stands in front; needed to listen "
                                     "on an address that other machines can reach." },
    [BS_TOP_STORE] = { "store", BS_CONF_TEXT, .standard = "sqlite:data/backstop.db",
                       .doc = "Where the tasks are kept: sqlite:PATH." },
    [BS_TOP_NODE] = { "node", BS_CONF_TEXT,
                      .doc = "The name of this server in logs and task logs; the host's name "
                             "where not given." },
    [BS_TOP_SOCKET] = { "socket", BS_CONF_TEXT,
                        .doc = "The UNIX socket of the command line; the store's path and .sock "
                               "where not given." },
    [BS_TOP_GRACE] = { "grace", BS_CONF_SPAN, .standard = "30s", .min = 0, .max = HOURS(1),
                       .doc = "How long calls in flight may go on after SIGTERM." },
    [BS_TOP_LOG] = { "log", BS_CONF_SECTION, .section = &log_section, .doc = "The log." },
    [BS_TOP_HISTORY] = { "history", BS_CONF_SECTION, .section = &history_section,
                         .doc = "What happens to finished tasks." },
    [BS_TOP_ALERTS] = { "alerts", BS_CONF_SECTION, .section = &alert_section,
                        .doc = "What is watched and who is told." },
    [BS_TOP_HOSTS] = { "hosts", BS_CONF_NAMED, .section = &host_section,
                       .doc = "Limits for hosts that queues call: HOST:PORT, the port always "
                              "written." },
    [BS_TOP_QUEUES] = { "queues", BS_CONF_NAMED, .section = &queue_section,
                        .doc = "One group of keys for each biz_type." },
};
const struct bs_conf_section bs_conf_top_section = { top_keys, BS_COUNT(top_keys) };
_Static_assert(BS_COUNT(top_keys) == BS_TOP_COUNT, "every key of the top level");

const char *bs_conf_kind_words(enum bs_conf_kind k)
{
    static const char *const words[] = {
        [BS_CONF_TEXT] = "a text",
        [BS_CONF_FLAG] = "true or false",
        [BS_CONF_COUNT] = "a whole number",
        [BS_CONF_SPAN] = "a duration such as 500ms, 10s, 5m, 1h or 30d",
        [BS_CONF_PERCENT] = "a share such as 20%",
        [BS_CONF_FACTOR] = "a number such as 2 or 1.5",
        [BS_CONF_CHOICE] = "one of the listed words",
        [BS_CONF_RATE] = "a rate such as 200/s, 5/m or 1/h",
        [BS_CONF_SPANS] = "a list of durations such as [1m, 3m, 10m]",
        [BS_CONF_STATUSES] = "a group such as { 404: failed }",
        [BS_CONF_RULE] = "a group such as { /code: [0, \"SUCCESS\"] }",
        [BS_CONF_AMOUNTS] = "a group such as { CNY: 100000.00 }",
        [BS_CONF_SECTION] = "a group of keys",
        [BS_CONF_NAMED] = "a group of names, each with its keys",
    };
    return words[k];
}
