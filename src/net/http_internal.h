/* What the files of the HTTP server share. Everything here belongs to the server's thread, except
 * the fields marked otherwise. */
#pragma once

#include "net/http.h"
#include "net/http_timer.h"

#include <microhttpd.h>
#include <pthread.h>
#include <stdatomic.h>

/* Where a connection is; each phase has one time limit, enforced by the connection's one timer. */
enum phase {
    PHASE_IDLE,   /* between two requests                                        */
    PHASE_HEADER, /* connected, or the request line was seen: headers are due    */
    PHASE_BODY,   /* the rest of the request is due                              */
    PHASE_WAIT,   /* suspended until bs_http_ready                               */
    PHASE_REPLY,  /* the client has to take the reply                            */
    PHASE_CLOSING,
    PHASE_COUNT
};

/* Who answers: raced for with one compare-and-set. */
enum slot { SLOT_FRESH, SLOT_WAITING, SLOT_READY, SLOT_TIMEOUT, SLOT_SHUTDOWN };

struct request;

struct conn {
    struct bs_http_timer timer;
    struct bs_http_server *server;
    struct MHD_Connection *mhd;
    struct request *req; /* NULL between requests */
    int fd;
    enum phase phase;
    bool local;
    bool bad_uri; /* a NUL, a broken escape or no UTF-8 in the request's target */
    uint32_t peer_uid;
};

struct reply_header {
    struct reply_header *next;
    const char *name, *value;
};

struct request {
    struct bs_http_request pub;
    struct bs_http_server *server;
    struct conn *conn; /* NULL: the connection is done with it */
    void (*on_timeout)(struct bs_http_request *r);
    struct reply_header *headers;
    struct request *ready_next;
    char *body;
    size_t body_len, body_cap, body_max;
    bool body_on_heap;
    bool over;             /* longer than body_max: read and thrown away */
    bool raw;              /* the library cannot answer here: written to the socket directly */
    bool replied;          /* bs_http_reply was called                   */
    _Atomic uint32_t refs; /* any thread: the connection, and who owes bs_http_ready */
    _Atomic int slot;      /* any thread: enum slot */
};

struct bs_http_server {
    struct bs_http_options o;
    struct MHD_Daemon *tcp, *local; /* NULL: no such listener */
    struct bs_http_timers timers;
    int64_t now_us; /* boot clock, read once a turn     */
    int64_t stop_until_us;
    int listen_fds[2]; /* kept after the daemons were told to stop accepting */
    uint16_t port;
    char *socket_path;
    pthread_t thread;
    bool draining; /* refuses every new request */
    /* any thread */
    int wake_fd;
    _Atomic(struct request *) ready; /* a stack, newest first */
    _Atomic bool sleeping;
    _Atomic bool stopping;
    _Atomic uint32_t refs; /* the owner's, and one for each bs_http_ready that is owed */
    _Atomic uint64_t requests, refused, timeouts; /* written by the server's thread only */
    _Atomic uint32_t connections, phases[PHASE_COUNT];
    _Atomic size_t bodies; /* bytes on the heap; only the server's thread adds */
};

/* http_listen.c */
BS_NODISCARD bs_rc bs_http_listen_tcp(const char *address, int *ret_fd, uint16_t *ret_port,
                                      struct bs_err *err);
BS_NODISCARD bs_rc bs_http_listen_unix(const char *path, int *ret_fd, struct bs_err *err);

/* http_conn.c */
void bs_http_conn_notify(void *cls, struct MHD_Connection *c, void **socket_context,
                         enum MHD_ConnectionNotificationCode code);
void *bs_http_conn_uri(void *cls, const char *uri, struct MHD_Connection *c);
size_t bs_http_conn_unescape(void *cls, struct MHD_Connection *c, char *text);
struct conn *bs_http_conn_of(struct MHD_Connection *c);
void bs_http_conn_enter(struct conn *c, enum phase phase, struct bs_span limit);
/* Acts on every connection whose limit has passed. */
void bs_http_conn_expire(struct bs_http_server *s);
void bs_http_count(_Atomic uint32_t *n, int delta);

/* http_request.c */
void bs_http_drop_body(struct request *r); /* any thread, who has the last reference */
enum MHD_Result bs_http_access(void *cls, struct MHD_Connection *c, const char *url,
                               const char *method, const char *version, const char *data,
                               size_t *size, void **context);
void bs_http_completed(void *cls, struct MHD_Connection *c, void **context,
                       enum MHD_RequestTerminationCode code);

/* http_reply.c */
void bs_http_refuse(struct request *r, int status);
/* Answers a waiting request with its time-out or with 503, when nobody else has. */
void bs_http_wait_expired(struct request *r);
void bs_http_wait_shutdown(struct request *r);
/* Everything that bs_http_ready put on the stack, oldest first. */
void bs_http_drain(struct bs_http_server *s);
void bs_http_request_release(struct request *r);
void bs_http_server_release(struct bs_http_server *s);
