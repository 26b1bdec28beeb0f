/* The committer actor: the only writer. Takes what is waiting, in the order of ranks, applies it as
 * one transaction, tells each owner. Owns the writer's store handle; runs on its own thread; blocks
 * in the database only.
 *
 * When the store fails: work of people and of intake is answered BS_E_UNAVAILABLE at once
 * (BS_E_UNKNOWN: after re-running for `patience`), work of the engine (finish, renew, claim) is
 * kept and run again until it succeeds, so the results of calls in flight are not lost. */
#pragma once

#include "store/store.h"
#include "sys/actor.h"

/* Lanes of the mailbox, best first. */
enum bs_rank {
    BS_RANK_FINISH,
    BS_RANK_CLAIM,
    BS_RANK_PEOPLE,
    BS_RANK_INTAKE,
    BS_RANK_MAINTENANCE,
    BS_RANK_COUNT
};

/* Ops that are applied together in one transaction and answered together. The sender owns all
 * memory until done is called; done runs once, on the committer's thread, must not block, and hands
 * ownership back. */
struct bs_work {
    struct bs_node node;
    enum bs_rank rank;
    struct bs_op **ops;
    uint32_t n;
    size_t bytes; /* of payloads, for the batch's bound */
    /* rc BS_OK: committed, see each op; else nothing of it is known to have happened. */
    void (*done)(struct bs_work *w, bs_rc rc, const struct bs_err *err);
};

struct bs_committer_options {
    struct bs_store *store; /* taken over */
    struct bs_clock *clock;
    size_t caps[BS_RANK_COUNT]; /* most waiting works a lane; 0: 4,096 */
    uint32_t batch_ops_max;     /* 0: 2,048                            */
    size_t batch_bytes_max;     /* 0: 8 MiB                            */
    size_t intake_bytes_max;    /* payloads of intake that may wait; 0: 64 MiB */
    struct bs_span patience;    /* 0: 1.5 s                            */
    bool with_fd;               /* false in the simulator              */
    /* After each commit, on the committer's thread. May be NULL. */
    void (*on_hints)(void *ctx, const struct bs_hints *hints);
    void *hints_ctx;
    /* When the store begins to fail and when it is well again; logging is the owner's. May be NULL.
     */
    void (*on_health)(void *ctx, bool healthy, const struct bs_err *err);
    void *health_ctx;
};

struct bs_committer;
BS_NODISCARD bs_rc bs_committer_new(const struct bs_committer_options *o, struct bs_committer **ret,
                                    struct bs_err *err);
struct bs_actor *bs_committer_actor(struct bs_committer *c);
/* False: the lane is full or the committer is closing; the work is still the sender's. Any thread.
 */
BS_NODISCARD bool bs_committer_send(struct bs_committer *c, struct bs_work *w);
/* Whether the last transaction succeeded. Any thread. */
bool bs_committer_healthy(struct bs_committer *c);
/* Figures for metrics. Any thread. */
struct bs_committer_figures {
    uint64_t commits, ops, failures, reruns;
    uint64_t commit_us_sum, commit_us_max;
};
void bs_committer_figures(struct bs_committer *c, struct bs_committer_figures *ret);
/* After its thread has ended: answers what is left with BS_E_UNAVAILABLE and frees everything, the
 * store too. */
void bs_committer_free(struct bs_committer *c);
