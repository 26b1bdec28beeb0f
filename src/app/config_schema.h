/* Every configuration key as data: name, kind, default, limits, meaning. The checks, the defaults,
 * `backstop check-config --keys` and the lint that compares the documentation are driven from it.
 */
#pragma once

#include "base/base.h"

enum bs_conf_kind {
    BS_CONF_TEXT,     /* any words; ${NAME} is replaced                            */
    BS_CONF_FLAG,     /* true, false                                               */
    BS_CONF_COUNT,    /* a whole number within min … max                           */
    BS_CONF_SPAN,     /* 500ms 10s 5m 1h 30d, within min … max µs                  */
    BS_CONF_PERCENT,  /* 20%, within min … max                                     */
    BS_CONF_FACTOR,   /* 2 or 1.5, kept as per cent, within min … max              */
    BS_CONF_CHOICE,   /* one of choices, kept as its index                         */
    BS_CONF_RATE,     /* 200/s 5/m 1/h, the calls within min … max                 */
    BS_CONF_SPANS,    /* a list of spans, each within min … max                    */
    BS_CONF_STATUSES, /* HTTP statuses and what each means                         */
    BS_CONF_RULE,     /* JSON pointers and the values that mean success            */
    BS_CONF_AMOUNTS,  /* currencies and a decimal amount of each                   */
    BS_CONF_SECTION,  /* the keys of `section`                                     */
    BS_CONF_NAMED,    /* names, each with the keys of `section`                    */
};

struct bs_conf_section;

struct bs_conf_key {
    const char *name;
    enum bs_conf_kind kind;
    bool required;
    const char *standard; /* the default as one would write it; NULL: none             */
    int64_t min, max;
    const char *const *choices; /* CHOICE: ends with NULL                              */
    const struct bs_conf_section *section;
    const char *instead; /* a word that may stand for the value ("none"); a number is then 0, and
                            0 may be written too */
    const char *doc;
};

struct bs_conf_section {
    const struct bs_conf_key *keys; /* in the order of the enum of the section         */
    uint32_t n;
};

enum bs_conf_top {
    BS_TOP_LISTEN,
    BS_TOP_BEHIND_PROXY,
    BS_TOP_STORE,
    BS_TOP_NODE,
    BS_TOP_SOCKET,
    BS_TOP_GRACE,
    BS_TOP_LOG,
    BS_TOP_HISTORY,
    BS_TOP_ALERTS,
    BS_TOP_HOSTS,
    BS_TOP_QUEUES,
    BS_TOP_COUNT
};

enum bs_conf_log { BS_LOGKEY_LEVEL, BS_LOGKEY_FORMAT, BS_LOGKEY_COUNT };

enum bs_conf_queue {
    BS_Q_HANDLER,
    BS_Q_SECRET,
    BS_Q_ORDER_CHECK,
    BS_Q_EFFECT,
    BS_Q_CALL_TIMEOUT,
    BS_Q_CONNECT_TIMEOUT,
    BS_Q_LEASE,
    BS_Q_RENEW,
    BS_Q_CONCURRENCY,
    BS_Q_RATE,
    BS_Q_RETRY,
    BS_Q_MAX_RETRY_COUNT,
    BS_Q_MAX_AGE,
    BS_Q_ORDER_NOT_FOUND_GRACE,
    BS_Q_SUCCESS,
    BS_Q_STATUSES,
    BS_Q_ALERTS,
    BS_Q_COUNT
};

enum bs_conf_look { BS_LOOK_URL, BS_LOOK_TIMEOUT, BS_LOOK_COUNT };

enum bs_conf_retry {
    BS_RETRY_DELAYS,
    BS_RETRY_INITIAL,
    BS_RETRY_FACTOR,
    BS_RETRY_MAX,
    BS_RETRY_JITTER,
    BS_RETRY_COUNT
};

enum bs_conf_success { BS_SUC_STATUS, BS_SUC_BODY, BS_SUC_JSON, BS_SUC_COUNT };

enum bs_conf_history { BS_HIST_ARCHIVE, BS_HIST_PURGE, BS_HIST_COUNT };

/* Of alerts.limits and of a queue's alerts. */
enum bs_conf_limit {
    BS_LIM_MANUAL_GROWTH,
    BS_LIM_MANUAL_AGE,
    BS_LIM_OLDEST_DUE,
    BS_LIM_BACKLOG,
    BS_LIM_UNKNOWN,
    BS_LIM_EXPOSURE,
    BS_LIM_COUNT
};

enum bs_conf_alerts {
    BS_AL_CHECK_EVERY,
    BS_AL_GROWTH_WINDOW,
    BS_AL_GROUP_WAIT,
    BS_AL_QUIET,
    BS_AL_LIMITS,
    BS_AL_WEBHOOKS,
    BS_AL_PING,
    BS_AL_COUNT
};

enum bs_conf_webhook { BS_HOOK_URL, BS_HOOK_SECRET, BS_HOOK_TIMEOUT, BS_HOOK_COUNT };

enum bs_conf_ping { BS_PING_URL, BS_PING_EVERY, BS_PING_COUNT };

enum bs_conf_host { BS_HOST_CONCURRENCY, BS_HOST_COUNT };

enum { BS_CONF_KEYS_MAX = 20 }; /* no section has more keys */

extern const struct bs_conf_section bs_conf_top_section;

/* "a duration such as 10s", for messages and the list of keys. */
const char *bs_conf_kind_words(enum bs_conf_kind k);
