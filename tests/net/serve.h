/* A server for the tests with a few routes, and raw clients of it. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "net/http.h"
#include "sys/clock.h"

#include <pthread.h>
#include <stdatomic.h>

/* What /wait requests are handed to: the tests take them out and call bs_http_ready. */
struct waiting {
    pthread_mutex_t mutex;
    struct bs_http_request *list[4096];
    uint32_t n;
};

struct served {
    struct bs_http_server *server;
    struct bs_http_options options;
    struct waiting waiting;
    struct bs_span wait_limit;
    _Atomic uint32_t handled, ready, timed_out, refused;
    void (*echo)(struct bs_http_request *r); /* what /echo does; NULL: its body */
};

/* Unset options get the test's routes: /echo answers at once, /wait waits. */
void serve_start(struct served *s, const struct bs_http_options *o);
void serve_stop(struct served *s);
/* Polls until n requests wait; the oldest is taken out by waiting_take. */
void waiting_reach(struct served *s, uint32_t n);
struct bs_http_request *waiting_take(struct served *s); /* NULL: none */
/* Polls until the figure is as wanted. */
void figures_reach(struct served *s, uint32_t connections, uint32_t waiting);

int client_open(const struct served *s);
int client_open_unix(const char *path);
void client_send(int fd, const char *text);
/* One whole reply (by Content-Length) as text, from a static buffer; "" when the other side closed
 * first. */
const char *client_reply(int fd);
const char *client_reply_to_head(int fd);
/* Whether the server closes within 10 s; what it still says is thrown away. */
bool client_sees_close(int fd);
void assert_begins(const char *text, const char *beginning);
