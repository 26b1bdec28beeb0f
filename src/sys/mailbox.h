/* A bounded queue into one actor: many senders, one receiver, lanes by rank. Nodes are intrusive:
 * sending never allocates, a full lane says so. */
#pragma once

#include "base/base.h"

#include <pthread.h>

enum { BS_LANES_MAX = 8 };

struct bs_node {
    struct bs_node *next;
};

struct bs_lane {
    struct bs_node *head, *tail;
    size_t n, cap;
};

struct bs_mailbox {
    pthread_mutex_t mutex;
    struct bs_lane lanes[BS_LANES_MAX];
    uint32_t lanes_n;
    bool sleeping; /* the receiver waits: the next send must write the eventfd */
    bool closed;   /* every later send is refused                              */
    int fd;        /* eventfd; -1 in the simulator                             */
};

/* caps[i] nodes at most in lane i. BS_OK or BS_E_UNAVAILABLE (no descriptor). */
BS_NODISCARD bs_rc bs_mailbox_init(struct bs_mailbox *m, const size_t *caps, uint32_t lanes_n,
                                   bool with_fd, struct bs_err *err);
void bs_mailbox_done(struct bs_mailbox *m); /* must be empty */
/* False: full or closed, and the node is still the caller's. */
BS_NODISCARD bool bs_mailbox_send(struct bs_mailbox *m, uint32_t lane, struct bs_node *node);
/* The oldest node of the lowest lane that has one; NULL when all are empty. The node is the
 * receiver's now. */
struct bs_node *bs_mailbox_take(struct bs_mailbox *m);
/* Everything of one lane at once, oldest first, as a list by next (at most max nodes). */
struct bs_node *bs_mailbox_take_lane(struct bs_mailbox *m, uint32_t lane, size_t max);
size_t bs_mailbox_count(struct bs_mailbox *m, uint32_t lane);
void bs_mailbox_close(struct bs_mailbox *m);
/* Receiver: sleeps until something is there, bs_mailbox_wake is called, or until_us on the
 * boot-time clock. */
void bs_mailbox_wait(struct bs_mailbox *m, int64_t until_us);
/* Receivers that sleep elsewhere (epoll, curl) do: arm → (false: something is there already) →
 * sleep on fd → disarm, which also empties the eventfd. */
BS_NODISCARD bool bs_mailbox_arm(struct bs_mailbox *m);
void bs_mailbox_disarm(struct bs_mailbox *m);
void bs_mailbox_wake(struct bs_mailbox *m);
/* Between the two, this thread's sends wake nobody; the receivers that slept are woken once at the
 * end. For who sends many messages at once. Not nested; the mailboxes must live until the end. */
void bs_mailbox_cork(void);
void bs_mailbox_uncork(void);
