/* The scripted peer. */
#include "peer.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

int listen_somewhere(uint16_t *ret_port, int backlog)
{
    struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t n = sizeof(at);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd < 0 || bind(fd, (struct sockaddr *)&at, sizeof(at)) != 0 || listen(fd, backlog) != 0 ||
        getsockname(fd, (struct sockaddr *)&at, &n) != 0)
        abort();
    *ret_port = ntohs(at.sin_port);
    return fd;
}

static void *play(void *arg)
{
    struct peer *p = arg;

    for (;;) {
        int fd = accept4(p->listen_fd, NULL, NULL, SOCK_CLOEXEC);

        if (fd < 0)
            return NULL;
        p->script(p, fd, atomic_fetch_add(&p->connections, 1) + 1);
        close(fd);
    }
}

void peer_start(struct peer *p, peer_script script, const void *arg)
{
    memset(p, 0, sizeof(*p));
    p->script = script;
    p->arg = arg;
    p->listen_fd = listen_somewhere(&p->port, 64);
    if (pthread_create(&p->thread, NULL, play, p) != 0)
        abort();
}

void peer_stop(struct peer *p)
{
    shutdown(p->listen_fd, SHUT_RDWR);
    pthread_join(p->thread, NULL);
    close(p->listen_fd);
}

static size_t body_length(const char *head)
{
    const char *at = strcasestr(head, "\r\nContent-Length:");

    return at ? strtoul(at + 17, NULL, 10) : 0;
}

bool peer_read_request(struct peer *p, int fd)
{
    char text[sizeof(p->last)];
    size_t got = 0, whole = sizeof(text);

    while (got < whole) {
        ssize_t n = recv(fd, text + got, sizeof(text) - 1 - got, 0);

        if (n <= 0)
            return false;
        got += (size_t)n;
        text[got] = '\0';
        const char *end = strstr(text, "\r\n\r\n");
        if (end)
            whole = (size_t)(end + 4 - text) + body_length(text);
    }
    memcpy(p->last, text, got + 1);
    p->last_n = got;
    atomic_fetch_add(&p->requests, 1);
    return true;
}

static bool write_all(int fd, const char *bytes, size_t n)
{
    while (n > 0) {
        ssize_t sent = send(fd, bytes, n, MSG_NOSIGNAL);

        if (sent <= 0)
            return false;
        bytes += sent;
        n -= (size_t)sent;
    }
    return true;
}

void peer_write(int fd, const char *text)
{
    (void)write_all(fd, text, strlen(text));
}

void peer_wait_close(int fd)
{
    char byte;

    while (recv(fd, &byte, 1, 0) > 0) {
        /* until the other side has enough */
    }
}

void peer_flood(struct peer *p, int fd, const char *piece, size_t n, size_t total)
{
    while (atomic_load(&p->written) < total && write_all(fd, piece, n))
        atomic_fetch_add(&p->written, n);
}

void peer_reset(int fd)
{
    struct linger now = { .l_onoff = 1, .l_linger = 0 };

    setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
}

void peer_reply(struct peer *p, int fd, int nth)
{
    (void)nth;
    while (peer_read_request(p, fd))
        peer_write(fd, p->arg);
}
