/* A scripted peer on a raw socket: one thread accepts connections one after the other and plays a
 * script on each. */
#pragma once

#include "base/base.h"

#include <pthread.h>
#include <stdatomic.h>

struct peer;
typedef void (*peer_script)(struct peer *p, int fd, int nth); /* nth connection, from 1 */

struct peer {
    uint16_t port;
    peer_script script;
    const void *arg; /* the script's */
    int listen_fd;
    pthread_t thread;
    _Atomic int connections, requests;
    _Atomic size_t written; /* by peer_flood */
    char last[64 << 10];    /* the last request, after peer_stop */
    size_t last_n;
};

void peer_start(struct peer *p, peer_script script, const void *arg);
void peer_stop(struct peer *p);

/* A listening socket on a free loopback port. */
int listen_somewhere(uint16_t *ret_port, int backlog);
/* One whole request (by Content-Length) into p->last. False: the other side closed. */
bool peer_read_request(struct peer *p, int fd);
void peer_write(int fd, const char *text);
/* Blocks until the other side closes. */
void peer_wait_close(int fd);
/* The same bytes again and again, at most `total`, until the other side closes. */
void peer_flood(struct peer *p, int fd, const char *piece, size_t n, size_t total);
/* Closes with a reset. */
void peer_reset(int fd);

/* Plays p->arg, a text, as the reply to every request of every connection. */
void peer_reply(struct peer *p, int fd, int nth);
