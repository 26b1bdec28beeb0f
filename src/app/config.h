/* The configuration of one start or reload: found, read, checked as a whole, immutable. Borrowed by
 * every part until the process ends. */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "core/queue.h"
#include "sys/log.h"

struct bs_config {
    struct bs_arena arena; /* everything below */
    const char *file;      /* NULL: none was found, the defaults hold */
    const char *listen;    /* "127.0.0.1:8787", "[::1]:0" */
    const char *store_url; /* "sqlite:PATH" */
    const char *store_path;
    const char *socket;
    const char *node;
    struct bs_span grace;
    enum bs_log_level log_level;
    int log_form; /* as bs_log_setup */
    struct bs_queues queues;
};

enum bs_config_scope {
    BS_CONFIG_WHOLE, /* for serving: queues with their secrets too                             */
    BS_CONFIG_PLACES /* for commands: where store and socket are; queues and alerts are not looked
                        at, so that no secret of the server is needed */
};

/* `file` NULL: ./backstop.yaml, else /etc/backstop/backstop.yaml, else the defaults. Every fault is
 * one line "FILE:LINE: what" in report; BS_E_INVALID when there is one. */
BS_NODISCARD bs_rc bs_config_load(const char *file, enum bs_config_scope scope,
                                  struct bs_config **ret, struct bs_buf *report);
/* The same for a text that came from `name`; tests and fuzzing. */
BS_NODISCARD bs_rc bs_config_read(const char *name, struct bs_str text, enum bs_config_scope scope,
                                  struct bs_config **ret, struct bs_buf *report);
void bs_config_free(struct bs_config *c); /* only when nothing borrows from it any more */
/* Every key with kind, default and meaning, one line each: path, kind, default, doc; by tabs. */
void bs_config_keys(struct bs_buf *out);
