/* Two threads that read, one bounded queue between them and everybody else. */
#include "api/readers.h"

#include "sys/clock.h"
#include "sys/log.h"

#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

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
    pthread_mutex_t mutex; /* of what follows, up to next_poll_us */
    struct bs_read *head, *tail;
    uint32_t n, for_anybody_n;
    bool closed;
    int64_t next_poll_us; /* boot clock */
    int arrived;          /* eventfd, counts what is queued: each read wakes one reader; written and
                             read under the mutex, so that a read taken without sleeping leaves
                             nothing that would wake somebody later */
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

static void poll_store(struct reader *r)
{
    struct bs_err err = { 0 };

    BS_IGNORE(open_store(r, &err), "logged there");
    judge(r, r->pool->o.poll(r->pool->o.ctx, r->store));
}

static struct bs_read *pop(struct bs_readers *p)
{
    struct bs_read *read = p->head;
    eventfd_t one;

    if (!read)
        return NULL;
    p->head = read->next;
    p->n--;
    p->for_anybody_n -= read->for_anybody;
    if (!p->head)
        p->tail = NULL;
    (void)!eventfd_read(p->arrived, &one);
    return read;
}

enum doing { READ, POLL, END };

/* What is to be done now, else how long there is nothing. */
static bool take(struct reader *r, enum doing *ret, struct bs_read **ret_read, int64_t *ret_left_us)
{
    struct bs_readers *p = r->pool;
    int64_t patience_us = (r - p->readers) * 150000;
    bool found = true;

    pthread_mutex_lock(&p->mutex);
    int64_t now_us = bs_boot_us();
    *ret_left_us = p->next_poll_us + patience_us - now_us;
    if (*ret_left_us <= 0 && !p->closed) {
        p->next_poll_us = now_us + POLL_US;
        *ret = POLL;
    } else if ((*ret_read = pop(p)) != NULL) {
        *ret = READ;
    } else {
        *ret = END;
        found = p->closed;
    }
    pthread_mutex_unlock(&p->mutex);
    return found;
}

/* Sleeps until there is something. The poll is anybody's who is free when it is due, but the first
 * reader goes before the other, so that an idle server has one handle. */
static enum doing next_thing(struct reader *r, struct bs_read **ret_read)
{
    struct pollfd fd = { .fd = r->pool->arrived, .events = POLLIN };
    enum doing what;
    int64_t left_us;

    while (!take(r, &what, ret_read, &left_us))
        (void)!poll(&fd, 1, (int)(left_us / 1000 + 1));
    return what;
}

static void *reader_thread(void *arg)
{
    struct reader *r = arg;
    struct bs_read *read = NULL;
    enum doing what;

    while ((what = next_thing(r, &read)) != END) {
        if (what == POLL)
            poll_store(r);
        else
            run_one(r, read);
    }
    if (r->store)
        bs_store_close(r->store);
    r->store = NULL;
    return NULL;
}

bs_rc bs_readers_new(const struct bs_readers_options *o, struct bs_readers **ret,
                     struct bs_err *err)
{
    struct bs_readers *p = calloc(1, sizeof(*p));

    if (!p)
        return bs_fail(err, BS_E_NOMEM, "no memory for the readers");
    p->o = *o;
    pthread_mutex_init(&p->mutex, NULL);
    p->arrived = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK | EFD_SEMAPHORE);
    if (p->arrived < 0) {
        bs_readers_free(p);
        return bs_fail(err, BS_E_UNAVAILABLE, "no descriptor for the readers");
    }
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
        p->for_anybody_n += read->for_anybody;
        (void)!eventfd_write(p->arrived, 1);
    }
    pthread_mutex_unlock(&p->mutex);
    return taken;
}

uint32_t bs_readers_waiting_for_anybody(struct bs_readers *p)
{
    pthread_mutex_lock(&p->mutex);
    uint32_t n = p->for_anybody_n;
    pthread_mutex_unlock(&p->mutex);
    return n;
}

void bs_readers_free(struct bs_readers *p)
{
    if (!p)
        return;
    pthread_mutex_lock(&p->mutex);
    p->closed = true;
    pthread_mutex_unlock(&p->mutex);
    if (p->arrived >= 0)
        (void)!eventfd_write(p->arrived, READERS);
    for (uint32_t i = 0; i < READERS; i++) {
        if (p->readers[i].running)
            pthread_join(p->readers[i].thread, NULL);
    }
    if (p->arrived >= 0)
        close(p->arrived);
    pthread_mutex_destroy(&p->mutex);
    free(p);
}
