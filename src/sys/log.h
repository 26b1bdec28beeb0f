/* One event, one line: JSON when the output is no terminal, event=… otherwise. Secrets never get
 * here; card-like and phone-like digits and own tokens are masked in every text value. Thread-safe;
 * a line is one write. */
#pragma once

#include "base/base.h"

enum bs_log_level { BS_LOG_DEBUG, BS_LOG_INFO, BS_LOG_WARN, BS_LOG_ERROR };

struct bs_log_field {
    const char *key;
    struct bs_str text; /* p NULL: number is meant */
    int64_t number;
};

/* A text that is not there is an empty one, never the number 0. */
static inline struct bs_str bs_log_text(struct bs_str s)
{
    return s.p ? s : BS_STR("");
}

#define BS_F(key, s) ((struct bs_log_field){ (key), bs_log_text(s), 0 })
#define BS_FZ(key, z) ((struct bs_log_field){ (key), bs_log_text(bs_str_of(z)), 0 })
#define BS_FN(key, n) ((struct bs_log_field){ (key), BS_STR_NONE, (int64_t)(n) })

/* fd: normally 2. Form: 0 by isatty, 1 JSON, 2 readable. Before the first call: stderr, by isatty,
 * INFO. */
void bs_log_setup(int fd, int form, enum bs_log_level least);
/* Whether such an event would be written, for who would have to make its texts first. */
bool bs_log_wants(enum bs_log_level level);
void bs_log_event(enum bs_log_level level, const char *event, const struct bs_log_field *fields,
                  size_t n);
/* bs_log(BS_LOG_INFO, "task.settled", BS_F("task_no", no), BS_FN("attempt", 3)); times and ids as
 * text are the caller's; empty text values are left out. */
#define bs_log(level, event, ...)                                                                  \
    bs_log_event((level), (event), (struct bs_log_field[]){ __VA_ARGS__ },                         \
                 sizeof((struct bs_log_field[]){ __VA_ARGS__ }) / sizeof(struct bs_log_field))
