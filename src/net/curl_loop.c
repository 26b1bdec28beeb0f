/* The loop under curl: curl_multi_socket_action on epoll (docs/decisions/0020-curl-loop.md). */
#include "net/curl_internal.h"
#include "sys/clock.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

enum { WANT_IN = 1, WANT_OUT = 2 };

static uint32_t epoll_bits(uint8_t want)
{
    return (want & WANT_IN ? (uint32_t)EPOLLIN : 0) | (want & WANT_OUT ? (uint32_t)EPOLLOUT : 0);
}

/* The kernel forgets a closed descriptor by itself, so both answers to a mistake are harmless. */
static void watch_for(struct curl_caller *c, int fd, uint8_t want)
{
    struct watch *w = &c->watches[fd];
    struct epoll_event e = { .events = epoll_bits(want), .data.fd = fd };
    int op = want == 0 ? EPOLL_CTL_DEL : w->have ? EPOLL_CTL_MOD : EPOLL_CTL_ADD;

    w->have = want;
    if (epoll_ctl(c->epoll_fd, op, fd, &e) == 0 || want == 0)
        return;
    op = errno == ENOENT ? EPOLL_CTL_ADD : EPOLL_CTL_MOD;
    if (epoll_ctl(c->epoll_fd, op, fd, &e) != 0)
        w->have = 0;
}

static bool watches_reach(struct curl_caller *c, int fd)
{
    size_t need = (size_t)fd + 1;

    if (need <= c->watches_n)
        return true;
    size_t n = BS_MAX(c->watches_n * 2, BS_MAX(need, (size_t)256));
    struct watch *watches = realloc(c->watches, n * sizeof(*watches));
    if (!watches)
        return false;
    memset(watches + c->watches_n, 0, (n - c->watches_n) * sizeof(*watches));
    c->watches = watches;
    c->watches_n = n;
    return true;
}

/* A descriptor that curl no longer needs stays watched: a kept-alive connection is needed again by
 * the next call. */
int bs_curl_on_socket(CURL *easy, curl_socket_t fd, int what, void *shard, void *unused)
{
    struct shard *h = shard;
    struct curl_caller *c = h->owner;
    uint8_t want = 0;

    (void)easy;
    (void)unused;
    if (!watches_reach(c, fd))
        return -1;
    if (what == CURL_POLL_IN || what == CURL_POLL_INOUT)
        want |= WANT_IN;
    if (what == CURL_POLL_OUT || what == CURL_POLL_INOUT)
        want |= WANT_OUT;
    c->watches[fd].shard = h;
    c->watches[fd].want = want;
    if (want & ~c->watches[fd].have)
        watch_for(c, fd, want);
    return 0;
}

int bs_curl_on_timer(CURLM *multi, long timeout_ms, void *shard)
{
    struct shard *h = shard;

    (void)multi;
    h->due_us = timeout_ms < 0 ? INT64_MAX : bs_boot_us() + (int64_t)timeout_ms * 1000;
    return 0;
}

int bs_curl_on_close(void *caller, curl_socket_t fd)
{
    struct curl_caller *c = caller;

    if ((size_t)fd < c->watches_n)
        c->watches[fd] = (struct watch){ 0 };
    return close(fd);
}

/* An error or a hang-up is told as what curl waits for: reading it then gives the true cause. */
static void feed(struct curl_caller *c, const struct epoll_event *e)
{
    int fd = e->data.fd;
    int running = 0;

    if (fd == bs_resolver_fd(c->resolver))
        c->names_came = true;
    if (fd == c->mail_fd || (size_t)fd >= c->watches_n || !c->watches[fd].shard)
        return;
    struct watch *w = &c->watches[fd];
    bool broken = e->events & (EPOLLERR | EPOLLHUP);
    uint8_t got = (uint8_t)((e->events & EPOLLIN || broken ? WANT_IN : 0) |
                            (e->events & EPOLLOUT || broken ? WANT_OUT : 0));
    if (w->have != w->want && (got & ~w->want))
        watch_for(c, fd, w->want);
    int mask = (got & w->want & WANT_IN ? CURL_CSELECT_IN : 0) |
               (got & w->want & WANT_OUT ? CURL_CSELECT_OUT : 0);
    if (mask)
        curl_multi_socket_action(w->shard->multi, fd, mask, &running);
}

void bs_curl_loop_run(struct curl_caller *c)
{
    int running = 0;
    int64_t now_us = 0;

    if (c->events_n <= 0)
        c->events_n = epoll_wait(c->epoll_fd, c->events, BS_EVENTS_MAX, 0);
    for (int i = 0; i < c->events_n; i++)
        feed(c, &c->events[i]);
    c->events_n = 0;
    now_us = bs_boot_us();
    for (uint32_t i = 0; i < c->shards_n; i++) {
        struct shard *h = c->shards[i];

        if (h->due_us > now_us)
            continue;
        h->due_us = INT64_MAX;
        curl_multi_socket_action(h->multi, CURL_SOCKET_TIMEOUT, 0, &running);
    }
}

static int timeout_ms(const struct curl_caller *c, int64_t until_us)
{
    int64_t due_us = BS_MIN(until_us, c->name_due_us);

    for (uint32_t i = 0; i < c->shards_n; i++)
        due_us = BS_MIN(due_us, c->shards[i]->due_us);

    if (c->done)
        return 0;
    if (due_us == INT64_MAX)
        return -1;
    int64_t left_us = due_us - bs_boot_us();
    if (left_us <= 0)
        return 0;
    return (int)BS_MIN((left_us + 999) / 1000, (int64_t)INT32_MAX);
}

static void watch_mail(struct curl_caller *c, const struct bs_mailbox *mail)
{
    struct epoll_event e = { .events = EPOLLIN, .data.fd = mail->fd };

    if (c->mail_fd == mail->fd)
        return;
    if (c->mail_fd >= 0)
        epoll_ctl(c->epoll_fd, EPOLL_CTL_DEL, c->mail_fd, &e);
    c->mail_fd = mail->fd;
    if (mail->fd >= 0)
        epoll_ctl(c->epoll_fd, EPOLL_CTL_ADD, mail->fd, &e);
}

void bs_curl_loop_wait(struct curl_caller *c, struct bs_mailbox *mail, int64_t until_us)
{
    int ms = timeout_ms(c, until_us);

    if (mail)
        watch_mail(c, mail);
    if (c->events_n > 0)
        return;
    bool armed = mail && bs_mailbox_arm(mail);
    if (mail && !armed)
        ms = 0; /* there is mail already */
    c->events_n = epoll_wait(c->epoll_fd, c->events, BS_EVENTS_MAX, ms);
    if (armed)
        bs_mailbox_disarm(mail);
}

bs_rc bs_curl_loop_init(struct curl_caller *c, struct bs_err *err)
{
    int fd = bs_resolver_fd(c->resolver);
    struct epoll_event e = { .events = EPOLLIN, .data.fd = fd };

    c->name_due_us = INT64_MAX;
    c->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (c->epoll_fd < 0 || epoll_ctl(c->epoll_fd, EPOLL_CTL_ADD, fd, &e) != 0)
        return bs_fail(err, BS_E_UNAVAILABLE, "no epoll: %s", strerror(errno));
    return BS_OK;
}

void bs_curl_loop_done(struct curl_caller *c)
{
    if (c->epoll_fd >= 0)
        close(c->epoll_fd);
    free(c->watches);
}
