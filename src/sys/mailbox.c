/* Bounded lanes of intrusive nodes under one mutex, with an eventfd for a receiver that sleeps. */
#include "sys/mailbox.h"

#include "sys/clock.h"

#include <errno.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* The kernel's sleep does not count suspended time but the deadline does: look again this often. */
enum { NAP_MAX_MS = 10000, CORKED_MAX = 8 };

static void lock(struct bs_mailbox *m)
{
    int failed = pthread_mutex_lock(&m->mutex);

    BS_ASSERT(failed == 0);
}

static void unlock(struct bs_mailbox *m)
{
    int failed = pthread_mutex_unlock(&m->mutex);

    BS_ASSERT(failed == 0);
}

bs_rc bs_mailbox_init(struct bs_mailbox *m, const size_t *caps, uint32_t lanes_n, bool with_fd,
                      struct bs_err *err)
{
    BS_ASSERT(lanes_n >= 1 && lanes_n <= BS_LANES_MAX);
    int fd = with_fd ? eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK) : -1;
    if (with_fd && fd < 0)
        return bs_fail(err, BS_E_UNAVAILABLE, "no descriptor for a mailbox (errno %d)", errno);
    *m = (struct bs_mailbox){ .lanes_n = lanes_n, .fd = fd };
    int failed = pthread_mutex_init(&m->mutex, NULL);
    BS_ASSERT(failed == 0);
    for (uint32_t i = 0; i < lanes_n; i++)
        m->lanes[i].cap = caps[i];
    return BS_OK;
}

void bs_mailbox_done(struct bs_mailbox *m)
{
    for (uint32_t i = 0; i < m->lanes_n; i++)
        BS_ASSERT(m->lanes[i].n == 0);
    if (m->lanes_n == 0)
        return;
    if (m->fd >= 0)
        close(m->fd);
    int failed = pthread_mutex_destroy(&m->mutex);
    BS_ASSERT(failed == 0);
    *m = (struct bs_mailbox){ .fd = -1 };
}

void bs_mailbox_wake(struct bs_mailbox *m)
{
    uint64_t one = 1;
    ssize_t n;

    if (m->fd < 0)
        return;
    do {
        n = write(m->fd, &one, sizeof(one));
    } while (n < 0 && errno == EINTR);
    /* A full counter is a wake-up that is already under way. */
    BS_ASSERT(n == (ssize_t)sizeof(one) || errno == EAGAIN);
}

/* Receivers to be woken when this thread uncorks. */
static _Thread_local struct {
    bool on;
    uint32_t n;
    struct bs_mailbox *sleepers[CORKED_MAX];
} corked;

void bs_mailbox_cork(void)
{
    BS_ASSERT(!corked.on);
    corked.on = true;
}

void bs_mailbox_uncork(void)
{
    BS_ASSERT(corked.on);
    corked.on = false;
    for (uint32_t i = 0; i < corked.n; i++)
        bs_mailbox_wake(corked.sleepers[i]);
    corked.n = 0;
}

static void wake_up(struct bs_mailbox *m)
{
    if (corked.on && corked.n < CORKED_MAX)
        corked.sleepers[corked.n++] = m;
    else
        bs_mailbox_wake(m);
}

bool bs_mailbox_send(struct bs_mailbox *m, uint32_t lane, struct bs_node *node)
{
    BS_ASSERT(lane < m->lanes_n);
    struct bs_lane *l = &m->lanes[lane];
    bool wake;

    lock(m);
    if (m->closed || l->n >= l->cap) {
        unlock(m);
        return false;
    }
    node->next = NULL;
    if (l->tail)
        l->tail->next = node;
    else
        l->head = node;
    l->tail = node;
    l->n++;
    wake = m->sleeping;
    m->sleeping = false;
    unlock(m);
    if (wake)
        wake_up(m);
    return true;
}

/* Expects the mutex; the lane has a node. */
static struct bs_node *pop(struct bs_lane *l)
{
    struct bs_node *node = l->head;

    BS_ASSERT(l->n > 0);
    l->head = node->next;
    if (!l->head)
        l->tail = NULL;
    l->n--;
    node->next = NULL;
    return node;
}

struct bs_node *bs_mailbox_take(struct bs_mailbox *m)
{
    struct bs_node *node = NULL;

    lock(m);
    for (uint32_t i = 0; i < m->lanes_n && !node; i++) {
        if (m->lanes[i].head)
            node = pop(&m->lanes[i]);
    }
    unlock(m);
    return node;
}

struct bs_node *bs_mailbox_take_lane(struct bs_mailbox *m, uint32_t lane, size_t max)
{
    BS_ASSERT(lane < m->lanes_n);
    struct bs_lane *l = &m->lanes[lane];
    struct bs_node *first = NULL;
    struct bs_node **end = &first;

    lock(m);
    if (l->n <= max) {
        first = l->head;
        *l = (struct bs_lane){ .cap = l->cap };
    }
    for (size_t i = 0; i < max && l->head; i++) {
        *end = pop(l);
        end = &(*end)->next;
    }
    unlock(m);
    return first;
}

size_t bs_mailbox_count(struct bs_mailbox *m, uint32_t lane)
{
    BS_ASSERT(lane < m->lanes_n);
    lock(m);
    size_t n = m->lanes[lane].n;
    unlock(m);
    return n;
}

void bs_mailbox_close(struct bs_mailbox *m)
{
    lock(m);
    m->closed = true;
    unlock(m);
    bs_mailbox_wake(m);
}

bool bs_mailbox_arm(struct bs_mailbox *m)
{
    bool empty = true;

    lock(m);
    for (uint32_t i = 0; i < m->lanes_n; i++)
        empty = empty && m->lanes[i].n == 0;
    m->sleeping = empty;
    unlock(m);
    return empty;
}

void bs_mailbox_disarm(struct bs_mailbox *m)
{
    uint64_t count;

    lock(m);
    m->sleeping = false;
    unlock(m);
    if (m->fd < 0)
        return;
    /* A sender that saw us asleep may write after this: that costs one early wake-up, no mail. */
    ssize_t n = read(m->fd, &count, sizeof(count));
    BS_ASSERT(n == (ssize_t)sizeof(count) || errno == EAGAIN || errno == EINTR);
}

static int nap_ms(int64_t until_us)
{
    int64_t now_us = bs_boot_us();

    if (until_us <= now_us)
        return 0;
    if (until_us - now_us > NAP_MAX_MS * INT64_C(1000))
        return NAP_MAX_MS;
    return (int)((until_us - now_us + 999) / 1000);
}

void bs_mailbox_wait(struct bs_mailbox *m, int64_t until_us)
{
    struct pollfd p = { .fd = m->fd, .events = POLLIN };
    int ms = nap_ms(until_us);

    if (m->fd < 0 || ms == 0 || !bs_mailbox_arm(m))
        return;
    do {
        int n = poll(&p, 1, ms);

        BS_ASSERT(n >= 0 || errno == EINTR || errno == ENOMEM);
        if (n > 0)
            break;
        ms = nap_ms(until_us);
    } while (ms > 0);
    bs_mailbox_disarm(m);
}
