/* The reader pool: two threads, each with a store handle of its own, one bounded queue. Blocks in
 * the database only. Handles are opened when they are first needed and again after a failure. */
#pragma once

#include "store/store.h"

struct bs_read {
    struct bs_read *next;
    bool for_anybody; /* asked for without a token */
    /* On a reader's thread, once. s is NULL when the store could not be opened (err says why). The
     * memory may be gone when it returns. What it returns decides whether the handle is kept. */
    bs_rc (*run)(struct bs_read *read, struct bs_store *s, const struct bs_err *err);
};

struct bs_readers_options {
    const char *store_url;
    /* About once a second, on one of the threads; s as above. */
    bs_rc (*poll)(void *ctx, struct bs_store *s);
    void *ctx;
};

struct bs_readers;
BS_NODISCARD bs_rc bs_readers_new(const struct bs_readers_options *o, struct bs_readers **ret,
                                  struct bs_err *err);
/* False: the queue is full or closed, and the read is still the caller's. Any thread. */
BS_NODISCARD bool bs_readers_send(struct bs_readers *p, struct bs_read *read);
/* How many reads `for_anybody` are queued. Any thread. */
uint32_t bs_readers_waiting_for_anybody(struct bs_readers *p);
/* Runs what is queued, ends the threads, frees. Accepts NULL. */
void bs_readers_free(struct bs_readers *p);
