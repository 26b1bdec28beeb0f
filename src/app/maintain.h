/* The maintenance actor: keeps the write-ahead log of the store small, beside the writer and never
 * inside it, with a handle of its own. */
#pragma once

#include "store/store.h"
#include "sys/actor.h"

struct bs_maintain {
    struct bs_actor actor;
    struct bs_mailbox mailbox;
    struct bs_store *store; /* its own reader handle */
    const char *wal_path;
    int64_t changed_ns;        /* of the file, before the last checkpoint          */
    int64_t left;              /* bytes that the last checkpoint could not move    */
    bool failing;              /* the last look or checkpoint did not succeed; logged once */
    _Atomic int64_t wal_bytes; /* size of the file when last looked at; any thread        */
    _Atomic int64_t checkpoints;
};

BS_NODISCARD bs_rc bs_maintain_init(struct bs_maintain *m, const char *store_url,
                                    const char *store_path, struct bs_arena *a, struct bs_err *err);
void bs_maintain_done(struct bs_maintain *m); /* safe on { 0 } */
