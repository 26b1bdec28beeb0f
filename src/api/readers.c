/* Two threads that read, one bounded queue between them and everybody else. */
#include "api/readers.h"

#include "sys/clock.h"
#include "sys/log.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

enum { READERS = 2, QUEUE_MAX = 256, POLL_US = 700 * 1000 };

struct reader {
    struct bs_readers *pool;
    pthread_t thread;
    bool running;
    struct bs_store *store; /* its own thread's only */
    bool failing;           /* opening failed last time: logged once, not each time */
};

struct bs_readers {
    struct bs_readers_options o;
    pthread_mutex_t mutex;
    pthread_cond_t arrived;
    struct bs_read *head, *tail;
    uint32_t n;
    bool closed;
    int64_t next_poll_us; /* boot clock */
    struct reader readers[READERS];
};

static bs_rc open_store(struct reader *r, struct bs_err *err)
{
    struct bs_store_options o = { .url = r->pool->o.store_url, .mode = BS_STORE_READER };

    if (r->store)
        return BS_OK;
    bs_rc rc = bs_store_open(&o, &r->store, err);
    if (rc != BS_OK && !r->failing)
        bs_log(BS_LOG_WARN, "api.store_unreadable", BS_FZ("rc", bs_rc_name(rc)),
               BS_FZ("message", err->msg));
    r->failing = rc != BS_OK;
    if (rc != BS_OK)
        r->store = NULL;
    return rc;
}

/* A handle that has failed is not asked again: the next read opens a new one. */
static void judge(struct reader *r, bs_rc rc)
{
    if (r->store && (rc == BS_E_UNAVAILABLE || rc == BS_E_UNKNOWN || rc == BS_E_CORRUPT)) {
        bs_store_close(r->store);
        r->store = NULL;
    }
}

static void run_one(struct reader *r, struct bs_read *read)
{
    struct bs_err err = { 0 };

    BS_IGNORE(open_store(r, &err), "the read answers for it");
    judge(r, read->run(read, r->store, &err));
}

static void poll(struct reader *r)
{
    struct bs_err err = { 0 };

    BS_IGNORE(open_store(r, &err), "logged there");
    judge(r, r->pool->o.poll(r->pool->o.ctx, r->store));
}

static struct timespec after_ms(int64_t ms)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    t.tv_sec += ms / 1000;
    t.tv_nsec += (ms % 1000) * 1000000;
    if (t.tv_nsec >= 1000000000) {
        t.tv_sec++;
        t.tv_nsec -= 1000000000;
    }
    return t;
}

static struct bs_read *pop(struct bs_readers *p)
{
    struct bs_read *read = p->head;

    if (read) {
        p->head = read->next;
        p->n--;
        if (!p->head)
            p->tail = NULL;
    }
    return read;
}

enum doing { READ, POLL, END };

/* What to do next; sleeps until there is something. The poll is anybody's who is free when it is
 * due, but the first reader goes before the others, so that an idle server has one handle. */
static enum doing next_thing(struct reader *r, struct bs_read **ret_read)
{
    struct bs_readers *p = r->pool;
    int64_t patience_us = (r - p->readers) * 150000;
    enum doing what = END;

    pthread_mutex_lock(&p->mutex);
    for (;;) {
        int64_t left_us = p->next_poll_us + patience_us - bs_boot_us();

        if (left_us <= 0 && !p->closed) {
            p->next_poll_us = bs_boot_us() + POLL_US;
            what = POLL;
            break;
        }
        *ret_read = pop(p);
        if (*ret_read || p->closed) {
            what = *ret_read ? READ : END;
            break;
        }
        struct timespec until = after_ms(left_us / 1000 + 1);
        pthread_cond_timedwait(&p->arrived, &p->mutex, &until);
    }
    pthread_mutex_unlock(&p->mutex);
    return what;
}

static void *reader_thread(void *arg)
{
    struct reader *r = arg;
    struct bs_read *read = NULL;
    enum doing what;

    while ((what = next_thing(r, &read)) != END) {
        if (what == POLL)
            poll(r);
        else
            run_one(r, read);
    }
    if (r->store)
        bs_store_close(r->store);
    r->store = NULL;
    return NULL;
}

static void init_locks(struct bs_readers *p)
{
    pthread_condattr_t attr;

    pthread_mutex_init(&p->mutex, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&p->arrived, &attr);
    pthread_condattr_destroy(&attr);
}

bs_rc bs_readers_new(const struct bs_readers_options *o, struct bs_readers **ret,
                     struct bs_err *err)
{
    struct bs_readers *p = calloc(1, sizeof(*p));

    if (!p)
        return bs_fail(err, BS_E_NOMEM, "no memory for the readers");
    p->o = *o;
    init_locks(p);
    for (uint32_t i = 0; i < READERS; i++) {
        struct reader *r = &p->readers[i];

        r->pool = p;
        if (pthread_create(&r->thread, NULL, reader_thread, r) != 0) {
            bs_readers_free(p);
            return bs_fail(err, BS_E_NOMEM, "no thread for a reader");
        }
        r->running = true;
        pthread_setname_np(r->thread, "reader");
    }
    *ret = p;
    return BS_OK;
}

bool bs_readers_send(struct bs_readers *p, struct bs_read *read)
{
    pthread_mutex_lock(&p->mutex);
    bool taken = !p->closed && p->n < QUEUE_MAX;

    if (taken) {
        read->next = NULL;
        if (p->tail)
            p->tail->next = read;
        else
            p->head = read;
        p->tail = read;
        p->n++;
        pthread_cond_signal(&p->arrived);
    }
    pthread_mutex_unlock(&p->mutex);
    return taken;
}

void bs_readers_free(struct bs_readers *p)
{
    if (!p)
        return;
    pthread_mutex_lock(&p->mutex);
    p->closed = true;
    pthread_cond_broadcast(&p->arrived);
    pthread_mutex_unlock(&p->mutex);
    for (uint32_t i = 0; i < READERS; i++) {
        if (p->readers[i].running)
            pthread_join(p->readers[i].thread, NULL);
    }
    pthread_cond_destroy(&p->arrived);
    pthread_mutex_destroy(&p->mutex);
    free(p);
}
