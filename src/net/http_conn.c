/* A connection's life: it comes, each phase has its time limit, it goes. */
#include "base/text.h"
#include "net/http_internal.h"
#include "sys/clock.h"
#include "sys/files.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

enum { PARAMETERS_MAX = 64 };

/* Only the server's thread writes the figures; others read them. */
void bs_http_count(_Atomic uint32_t *n, int delta)
{
    uint32_t old = atomic_load_explicit(n, memory_order_relaxed);

    atomic_store_explicit(n, old + (uint32_t)delta, memory_order_relaxed);
}

struct conn *bs_http_conn_of(struct MHD_Connection *c)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(c, MHD_CONNECTION_INFO_SOCKET_CONTEXT);

    return info ? info->socket_context : NULL;
}

void bs_http_conn_enter(struct conn *c, enum phase phase, struct bs_span limit)
{
    struct bs_http_server *s = c->server;
    int64_t due_us = phase == PHASE_CLOSING ? INT64_MAX : s->now_us + limit.us;

    bs_http_count(&s->phases[c->phase], -1);
    c->phase = phase;
    bs_http_count(&s->phases[phase], 1);
    bs_http_timer_set(&s->timers, &c->timer, due_us);
}

static struct conn *come(struct bs_http_server *s, struct MHD_Connection *mhd)
{
    const union MHD_ConnectionInfo *fd =
        MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_CONNECTION_FD);
    const union MHD_ConnectionInfo *daemon =
        MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_DAEMON);
    struct conn *c = calloc(1, sizeof(*c));

    if (!c)
        return NULL;
    *c = (struct conn){ .server = s, .mhd = mhd, .fd = fd->connect_fd, .phase = PHASE_HEADER };
    c->local = s->local && daemon->daemon == s->local;
    if (!bs_http_timer_add(&s->timers, &c->timer, s->now_us + s->o.header_limit.us)) {
        free(c);
        return NULL;
    }
    if (c->local && !bs_peer_uid(c->fd, &c->peer_uid))
        c->local = false;
    bs_http_count(&s->phases[PHASE_HEADER], 1);
    bs_http_count(&s->connections, 1);
    return c;
}

static void go(struct conn *c)
{
    struct bs_http_server *s = c->server;

    BS_ASSERT(!c->req);
    bs_http_timer_remove(&s->timers, &c->timer);
    bs_http_count(&s->phases[c->phase], -1);
    bs_http_count(&s->connections, -1);
    free(c);
}

/* Without memory for its context a connection is shut at once: nothing may live without a limit. */
void bs_http_conn_notify(void *cls, struct MHD_Connection *mhd, void **socket_context,
                         enum MHD_ConnectionNotificationCode code)
{
    if (code == MHD_CONNECTION_NOTIFY_STARTED) {
        *socket_context = come(cls, mhd);
        if (!*socket_context)
            shutdown(MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd,
                     SHUT_RDWR);
        return;
    }
    if (*socket_context)
        go(*socket_context);
    *socket_context = NULL;
}

/* The library stands still where its memory for parameters ends, until the time limit: so many are
 * made one, in its own buffer, before it takes them apart. False: they were too many. */
static bool join_parameters(char *uri)
{
    uint32_t n = 0;

    for (const char *p = strchr(uri, '&'); p; p = strchr(p + 1, '&'))
        n++;
    if (n < PARAMETERS_MAX)
        return true;
    for (char *p = strchr(uri, '&'); p; p = strchr(p, '&'))
        *p = '.';
    return false;
}

/* The request line is complete. On a kept-alive connection the headers' limit begins here. */
void *bs_http_conn_uri(void *cls, const char *uri, struct MHD_Connection *mhd)
{
    struct bs_http_server *s = cls;
    struct conn *c = bs_http_conn_of(mhd);

    if (c) {
        c->bad_uri = !join_parameters((char *)(uintptr_t)uri);
        if (c->phase == PHASE_IDLE)
            bs_http_conn_enter(c, PHASE_HEADER, s->o.header_limit);
    }
    return NULL;
}

static int hex_digit(char ch)
{
    if (ch >= '0' && ch <= '9')
        return ch - '0';
    if (ch >= 'a' && ch <= 'f')
        return ch - 'a' + 10;
    if (ch >= 'A' && ch <= 'F')
        return ch - 'A' + 10;
    return -1;
}

/* Decodes in place. Returns false when a text with a NUL or a broken escape was meant. */
static bool decode_percent(char *text, size_t *ret_n)
{
    char *out = text;
    bool good = true;

    for (const char *in = text; *in; in++) {
        if (*in != '%') {
            *out++ = *in;
            continue;
        }
        int high = hex_digit(in[1]);
        int low = high < 0 ? -1 : hex_digit(in[2]);
        if (low < 0 || high * 16 + low == 0) {
            good = false;
            *out++ = '%';
            continue;
        }
        *out++ = (char)(high * 16 + low);
        in += 2;
    }
    *out = '\0';
    *ret_n = (size_t)(out - text);
    return good;
}

/* Called for the path and for every name and value of the query. The library's own decoder would
 * cut a text at an encoded NUL without a word. */
size_t bs_http_conn_unescape(void *cls, struct MHD_Connection *mhd, char *text)
{
    struct conn *c = bs_http_conn_of(mhd);
    size_t n = 0;
    bool good = decode_percent(text, &n);

    (void)cls;
    if (c && (!good || !bs_utf8_valid((struct bs_str){ text, n })))
        c->bad_uri = true;
    return n;
}

static void close_slow(struct conn *c)
{
    static const char reply[] = "HTTP/1.1 408 Request Timeout\r\nConnection: close\r\n"
                                "Content-Length: 0\r\n\r\n";

    /* Best effort; nothing of a reply can be under way in this phase. */
    if (c->phase == PHASE_HEADER)
        (void)!send(c->fd, reply, sizeof(reply) - 1, MSG_DONTWAIT | MSG_NOSIGNAL);
    bs_http_conn_enter(c, PHASE_CLOSING, BS_SEC(0));
    shutdown(c->fd, SHUT_RDWR);
}

static void expire_one(struct conn *c)
{
    switch (c->phase) {
    case PHASE_IDLE:
    case PHASE_HEADER:
    case PHASE_REPLY:
        close_slow(c);
        break;
    case PHASE_BODY:
        bs_http_refuse(c->req, 408);
        break;
    case PHASE_WAIT:
        bs_http_wait_expired(c->req);
        break;
    case PHASE_CLOSING:
    case PHASE_COUNT:
        break;
    }
}

void bs_http_conn_expire(struct bs_http_server *s)
{
    struct bs_http_timer *t = NULL;

    while ((t = bs_http_timer_fire(&s->timers, s->now_us)))
        expire_one(BS_CONTAINER(t, struct conn, timer));
}
