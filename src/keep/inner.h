/* What the files of keep/ share with each other and with nobody else. */
#pragma once

#include "keep/keep.h"

#include <stdatomic.h>

struct checkpoints {
    struct bs_store *store; /* own reader handle; NULL: none are made           */
    char *log_path;
    struct bs_time at;  /* when to look next                                    */
    int64_t changed_ns; /* of the file, before the last checkpoint              */
    int64_t left;       /* bytes that the last checkpoint could not move        */
    bool failing;       /* the last one did not succeed; logged once            */
    _Atomic int64_t log_bytes;
    _Atomic uint64_t done;
};

struct pass {
    bool running;
    enum bs_op_kind kind; /* ARCHIVE, then PURGE */
    int64_t after_id;
    struct bs_time began, slice_at; /* slice_at: not before */
    uint32_t archived, purged;      /* in this pass         */
};

struct bs_keep {
    struct bs_keep_options options;
    struct bs_actor actor;
    struct bs_mailbox in;
    struct checkpoints checkpoints;

    struct bs_history_conf conf; /* as last seen */
    struct bs_time next_pass;
    struct pass pass;
    uint32_t limit; /* rows of the next slice */

    bool out; /* the slice is at the committer: work and op are its own until it comes back */
    struct bs_work work;
    struct bs_op op, *ops[1];
    bs_rc rc; /* of the answer; written on the committer's thread before the mail */
    struct bs_err err;
    struct bs_time answered;

    _Atomic uint64_t archived, purged, passes;
    _Atomic int64_t last_pass_us;
};

BS_NODISCARD bs_rc checkpoints_init(struct checkpoints *c, const struct bs_keep_options *o,
                                    struct bs_err *err);
void checkpoints_done(struct checkpoints *c);
/* Makes one where it is worth it; when to look again. */
struct bs_time checkpoints_step(struct checkpoints *c, struct bs_time now);
