/* One thread per actor: step, sleep until mail or the deadline, step again. */
#include "sys/actor.h"

#include <errno.h>
#include <signal.h>

/* Store time and boot time run at the same pace, so a deadline is carried over by its distance. */
static int64_t boot_deadline(int64_t boot_us, struct bs_time now, struct bs_time until)
{
    struct bs_time boot = { boot_us };

    return bs_time_add(boot, bs_time_diff(until, now)).us;
}

static void *thread_main(void *arg)
{
    struct bs_thread *t = arg;
    struct bs_actor *a = t->actor;

    while (!atomic_load(&t->stop)) {
        int64_t boot_us = bs_boot_us();
        struct bs_time now = bs_now(t->clock);
        struct bs_time until = a->step(a, now);

        if (atomic_load(&t->stop))
            break;
        if (a->wait)
            a->wait(a, now, until);
        else
            bs_mailbox_wait(a->in, boot_deadline(boot_us, now, until));
    }
    return NULL;
}

/* Signals belong to the main thread: the new one inherits a full mask. */
static int create_masked(struct bs_thread *t)
{
    sigset_t all, before;

    sigfillset(&all);
    int code = pthread_sigmask(SIG_SETMASK, &all, &before);
    BS_ASSERT(code == 0);
    int failed = pthread_create(&t->id, NULL, thread_main, t);
    code = pthread_sigmask(SIG_SETMASK, &before, NULL);
    BS_ASSERT(code == 0);
    return failed;
}

bs_rc bs_thread_start(struct bs_thread *t, struct bs_actor *a, struct bs_clock *clock,
                      struct bs_err *err)
{
    BS_ASSERT(!t->running);
    BS_ASSERT(a->in && a->step);
    t->actor = a;
    t->clock = clock;
    atomic_store(&t->stop, false);
    int failed = create_masked(t);
    if (failed)
        return bs_fail(err, BS_E_UNAVAILABLE, "no thread for %s (errno %d)", a->name, failed);
    t->running = true;
    /* A name is for people; the thread works without one. */
    int unnamed = pthread_setname_np(t->id, a->name);
    BS_ASSERT(unnamed != ERANGE);
    return BS_OK;
}

void bs_thread_stop(struct bs_thread *t)
{
    if (!t->running)
        return;
    atomic_store(&t->stop, true);
    bs_mailbox_wake(t->actor->in);
    int failed = pthread_join(t->id, NULL);
    BS_ASSERT(failed == 0);
    t->running = false;
}
