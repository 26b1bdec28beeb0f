/* A driver that has bad days: wraps any other and fails on demand, per statement, before or after
 * it was done. For tests and the simulator. */
#pragma once

#include "db/db.h"

/* Where a call stands; bits, so that a plan can name several. */
enum bs_fault_call {
    BS_FAULT_BEGIN = 1 << 0,
    BS_FAULT_COMMIT = 1 << 1,
    BS_FAULT_RUN = 1 << 2, /* run and run_many */
    BS_FAULT_NEXT = 1 << 3,
    BS_FAULT_SCRIPT = 1 << 4,
    BS_FAULT_ANY = (1 << 5) - 1,
};

enum bs_fault_when {
    BS_FAULT_BEFORE, /* never reached the database            */
    BS_FAULT_AFTER,  /* done, and then the answer was lost    */
};

struct bs_fault_plan {
    uint32_t calls;     /* enum bs_fault_call bits; 0: any                          */
    bool one_statement; /* only where run or next is of `sql`                       */
    enum bs_sql sql;
    enum bs_fault_when when;
    int64_t fail_in; /* the n-th matching call from now fails; 0: none           */
    bool for_ever;   /* and every matching call after it, until the next plan    */
    bs_rc rc;        /* what it says; 0: UNAVAILABLE, and UNKNOWN after a commit */
};

/* Takes real over; closing the wrapper closes it. NULL only without memory. */
struct bs_db *bs_faulty_new(struct bs_db *real);
/* A new plan from now on; { 0 } heals. */
void bs_faulty_plan(struct bs_db *faulty, const struct bs_fault_plan *plan);
/* How often a plan has failed a call, since birth. */
uint64_t bs_faulty_trips(struct bs_db *faulty);
/* How often a statement was run through to its end, since birth. */
uint64_t bs_faulty_runs(struct bs_db *faulty, enum bs_sql sql);
/* Asked at every call before it happens, when set; another rc than BS_OK fails it. For seeded
 * faults: called with both whens, so that each can be refused. */
void bs_faulty_hook(struct bs_db *faulty,
                    bs_rc (*ask)(void *ctx, enum bs_fault_call call, enum bs_fault_when when),
                    void *ctx);
