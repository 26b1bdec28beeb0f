/* Names to addresses without blocking the caller's loop: two threads run getaddrinfo, results are
 * kept for 30 s (and longer where nothing newer is to be had), questions for the same name share
 * one look-up. One thread owns a resolver; the pool behind it has its own lock. */
#pragma once

#include "base/base.h"

enum { BS_HOST_MAX = 256, BS_ADDRESSES_MAX = 320 };

enum bs_resolve_state {
    BS_RESOLVE_PENDING,
    BS_RESOLVE_FOUND,
    BS_RESOLVE_NXDOMAIN,
    BS_RESOLVE_TEMPORARY /* SERVFAIL, no server answers, too many names at once */
};

/* One question; lies inside whatever waits for it. */
struct bs_resolve {
    struct bs_resolve *next, **at; /* the resolver's own while pending */
    enum bs_resolve_state state;
    char addresses[BS_ADDRESSES_MAX]; /* FOUND: comma-separated, IPv6 in brackets */
};

struct bs_resolver;

/* fake: "name=address", "name=!NXDOMAIN", "name=!SERVFAIL", "name=!HANG" (never answers), separated
 * by commas; copied; NULL: none. */
BS_NODISCARD bs_rc bs_resolver_new(const char *fake, struct bs_resolver **ret, struct bs_err *err);
/* Fills q->state at once from the cache, or leaves it PENDING. */
void bs_resolver_ask(struct bs_resolver *r, struct bs_str host, int64_t now_us,
                     struct bs_resolve *q);
void bs_resolver_cancel(struct bs_resolve *q); /* of a pending question */
/* Readable when results have come. */
int bs_resolver_fd(const struct bs_resolver *r);
/* Takes the results in and calls `answered` for each question that is no longer pending. */
void bs_resolver_run(struct bs_resolver *r, int64_t now_us,
                     void (*answered)(void *ctx, struct bs_resolve *q), void *ctx);
/* Does not wait for look-ups that hang: the last thread of the pool frees what they need. No
 * question may be pending. */
void bs_resolver_free(struct bs_resolver *r);
