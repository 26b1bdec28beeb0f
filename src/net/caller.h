/* Outgoing HTTP calls as a table, so that the simulator can stand in for the network. One thread
 * owns a caller. Knows nothing of tasks: bytes out, facts in. */
#pragma once

#include "base/arena.h"
#include "core/facts.h"
#include "sys/mailbox.h"

struct bs_call {
    /* filled by the user before start; everything borrowed until the call is given back */
    const char *method; /* "POST" or "GET" */
    const char *url;
    const char *const *headers; /* "Name: value" */
    uint32_t headers_n;
    struct bs_str body;
    struct bs_span connect_timeout, timeout; /* whole call, DNS included */
    struct bs_arena
        *arena; /* where the reply goes (at most 64 KiB of body and 64 KiB of headers) */
    void *user;
    /* filled by the caller */
    struct bs_facts facts;
    struct bs_call *next; /* the caller's own while it runs */
    void *impl;
};

struct bs_caller;
struct bs_caller_ops {
    /* Takes the call; it will come back exactly once through finished, also when it fails at once.
     */
    void (*start)(struct bs_caller *c, struct bs_call *call, struct bs_time now);
    /* Moves everything forward without blocking. */
    void (*run)(struct bs_caller *c, struct bs_time now);
    /* The next ended call, NULL when there is none. It is the user's again. */
    struct bs_call *(*finished)(struct bs_caller *c);
    /* Ends a running call: it comes back through finished with wire CANCELLED and a true `sent`. */
    void (*cancel)(struct bs_caller *c, struct bs_call *call);
    /* Sleeps until the network moves, the mailbox's eventfd rings, or until_us (boot clock). */
    void (*wait)(struct bs_caller *c, struct bs_mailbox *mail, int64_t until_us);
    void (*free)(struct bs_caller *c); /* cancels everything; unfinished calls are dropped */
};
struct bs_caller {
    const struct bs_caller_ops *ops;
};

/* libcurl multi with every fact of docs/ARCHITECTURE.md "HTTP out": no silent second POST, no
 * proxy, no redirects, no compression, own resolver pool, capped headers and body, `sent` as a
 * fact. https verifies with the system's certificates or ca_file (tests). */
struct bs_curl_options {
    const char *ca_file;      /* NULL: the system's */
    uint32_t connections_max; /* kept alive; 0: 512 */
    struct bs_clock *clock;   /* for started_at, ended_at */
    const char *resolve_fake; /* tests: "name=address", "name=!NXDOMAIN", "name=!SERVFAIL",
                                 "name=!HANG", comma-separated; NULL */
};
BS_NODISCARD bs_rc bs_curl_new(const struct bs_curl_options *o, struct bs_caller **ret,
                               struct bs_err *err);
