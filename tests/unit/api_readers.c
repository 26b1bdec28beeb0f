/* The reader pool: what is queued is run, and who has nothing to do sleeps. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "api/readers.h"

#include <poll.h>
#include <stdatomic.h>
#include <time.h>

enum { READERS = 2, QUEUED = 200, NAP_NS = 1000000 };

static _Atomic uint32_t slept; /* how often a reader went to sleep */
static _Atomic uint32_t done;
static _Atomic bool gate_open;

int __real_poll(struct pollfd *fds, nfds_t n, int ms);
int __wrap_poll(struct pollfd *fds, nfds_t n, int ms);
int __wrap_poll(struct pollfd *fds, nfds_t n, int ms)
{
    atomic_fetch_add(&slept, 1);
    return __real_poll(fds, n, ms);
}

bs_rc bs_store_open(const struct bs_store_options *o, struct bs_store **ret, struct bs_err *err)
{
    (void)o;
    (void)err;
    *ret = malloc(1);
    return BS_OK;
}

void bs_store_close(struct bs_store *s)
{
    free(s);
}

static void nap(void)
{
    nanosleep(&(struct timespec){ 0, NAP_NS }, NULL);
}

static bs_rc poll_nothing(void *ctx, struct bs_store *s)
{
    (void)ctx;
    (void)s;
    return BS_OK;
}

static bs_rc run(struct bs_read *read, struct bs_store *s, const struct bs_err *err)
{
    (void)read;
    (void)s;
    (void)err;
    while (!atomic_load(&gate_open))
        nap();
    atomic_fetch_add(&done, 1);
    return BS_OK;
}

static void done_reach(uint32_t n)
{
    for (int i = 0; i < 20000 && atomic_load(&done) < n; i++)
        nap();
    assert_int_equal(atomic_load(&done), n);
}

/* Whoever pops a read without having slept leaves no wake-up behind: those of an hour under load
 * would keep a processor busy for as long as it takes to use them up. */
static void a_reader_sleeps_after_a_rush(void **state)
{
    static struct bs_read reads[QUEUED];
    struct bs_readers_options o = { .store_url = "sqlite:none", .poll = poll_nothing };
    struct bs_readers *p = NULL;
    struct bs_err err;

    (void)state;
    assert_int_equal(bs_readers_new(&o, &p, &err), BS_OK);
    for (uint32_t i = 0; i < QUEUED; i++) {
        reads[i].run = run;
        assert_true(bs_readers_send(p, &reads[i]));
    }
    atomic_store(&slept, 0);
    atomic_store(&gate_open, true);
    done_reach(QUEUED);
    for (int i = 0; i < 100; i++)
        nap();
    /* Each reader once; and the poll of the store may fall into it. */
    assert_in_range(atomic_load(&slept), 0, 4 * READERS);
    bs_readers_free(p);
}

static void what_is_queued_at_the_end_is_run(void **state)
{
    static struct bs_read reads[QUEUED];
    struct bs_readers_options o = { .store_url = "sqlite:none", .poll = poll_nothing };
    struct bs_readers *p = NULL;
    struct bs_err err;

    (void)state;
    atomic_store(&gate_open, true);
    atomic_store(&done, 0);
    assert_int_equal(bs_readers_new(&o, &p, &err), BS_OK);
    for (uint32_t i = 0; i < QUEUED; i++) {
        reads[i].run = run;
        assert_true(bs_readers_send(p, &reads[i]));
    }
    bs_readers_free(p);
    assert_int_equal(atomic_load(&done), QUEUED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_reader_sleeps_after_a_rush),
        cmocka_unit_test(what_is_queued_at_the_end_is_run),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
