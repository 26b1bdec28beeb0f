/* A part with one step function. Production gives each a thread; the simulator steps the same ones
 * in seeded order. */
#pragma once

#include "sys/clock.h"
#include "sys/mailbox.h"

#include <stdatomic.h>

struct bs_actor {
    const char *name; /* static; also the thread's name, ≤ 15 bytes */
    /* Does what is due and returns when it is needed next (store time; BS_NEVER: only when mail
     * comes). */
    struct bs_time (*step)(struct bs_actor *a, struct bs_time now);
    /* NULL: sleeps on the mailbox. Otherwise sleeps by itself until mail or the instant. */
    void (*wait)(struct bs_actor *a, struct bs_time now, struct bs_time until);
    struct bs_mailbox *in; /* its own; never NULL in production */
};

struct bs_thread {
    pthread_t id;
    struct bs_actor *actor;
    struct bs_clock *clock;
    _Atomic bool stop;
    bool running;
};

BS_NODISCARD bs_rc bs_thread_start(struct bs_thread *t, struct bs_actor *a, struct bs_clock *clock,
                                   struct bs_err *err);
/* Asks the loop to end, wakes it, joins. Safe on a thread that never started. */
void bs_thread_stop(struct bs_thread *t);
