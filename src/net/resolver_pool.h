/* The threads behind the resolver. Any thread may put and take; a pool outlives its owner until its
 * last look-up has come back. */
#pragma once

#include "net/resolver.h"

struct bs_lookup {
    struct bs_lookup *next;
    char host[BS_HOST_MAX];
    enum bs_resolve_state state;
    char addresses[BS_ADDRESSES_MAX];
};

struct bs_resolver_pool;

BS_NODISCARD bs_rc bs_resolver_pool_new(struct bs_resolver_pool **ret, struct bs_err *err);
/* False: no memory or no thread. */
BS_NODISCARD bool bs_resolver_pool_put(struct bs_resolver_pool *p, const char *host);
/* Every look-up that has ended, in no order; each is freed with free(). Empties the eventfd. */
struct bs_lookup *bs_resolver_pool_take(struct bs_resolver_pool *p);
int bs_resolver_pool_fd(const struct bs_resolver_pool *p);
void bs_resolver_pool_free(struct bs_resolver_pool *p);
