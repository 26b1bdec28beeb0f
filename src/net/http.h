/* The HTTP server on libmicrohttpd, behind a small header: one thread owns the daemons, the
 * connections and every request. Knows nothing of tasks. A request that waits is suspended; whoever
 * finishes it calls bs_http_ready from any thread; the reply slot is raced for by completion, time
 * limit and shutdown with one compare-and-set. */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "sys/actor.h"

enum bs_method { BS_GET, BS_POST, BS_PUT, BS_DELETE, BS_METHOD_OTHER };

struct bs_http_server;

struct bs_http_request {
    enum bs_method method;
    struct bs_str path;    /* percent-decoded, without the query */
    struct bs_str body;    /* exact bytes */
    bool unread;           /* there was a body that was not kept (wants_body, bodies_max): body is
                              empty, and all that may be said is no */
    bool local;            /* came by the UNIX socket … */
    uint32_t peer_uid;     /* … from this user */
    struct bs_arena arena; /* the request's memory; freed with it */
    void *user;            /* the handler's */
    /* On the server's thread, after bs_http_ready won: must call bs_http_reply. */
    void (*on_ready)(struct bs_http_request *r);
};

/* NULL-terminated text of a request header or a query parameter; p NULL when absent. Server's
 * thread only. A parameter given twice: the first; ret_twice (may be NULL) tells. */
struct bs_str bs_http_header(struct bs_http_request *r, const char *name);
struct bs_str bs_http_query(struct bs_http_request *r, const char *name, bool *ret_twice);
/* Calls each for every query parameter, so that unknown ones can be refused. */
void bs_http_query_each(struct bs_http_request *r,
                        void (*each)(void *ctx, struct bs_str name, struct bs_str value),
                        void *ctx);

/* Adds a response header before bs_http_reply. Both texts are copied. */
void bs_http_reply_header(struct bs_http_request *r, const char *name, struct bs_str value);
/* Answers. Takes the buffer's memory over. On the server's thread: inside handle or on_ready. Once.
 */
void bs_http_reply(struct bs_http_request *r, int status, const char *content_type,
                   struct bs_buf *body);

/* Inside handle: the request waits for bs_http_ready, at most `limit`, then on_timeout (server's
 * thread) replies. The request then stays allocated until bs_http_ready is called all the same. */
void bs_http_wait(struct bs_http_request *r, struct bs_span limit,
                  void (*on_timeout)(struct bs_http_request *r));
/* Any thread, exactly once per bs_http_wait: the work is done. The request may be freed by this
 * call. */
void bs_http_ready(struct bs_http_request *r);

struct bs_http_options {
    const char *listen;       /* "127.0.0.1:8787", "[::1]:0"; NULL: no TCP listener   */
    const char *socket_path;  /* UNIX socket, mode 0600; NULL: none                    */
    uint32_t connections_max; /* 0: 4,096                                             */
    size_t (*body_max)(void *ctx, enum bs_method method,
                       struct bs_str path); /* per route; server's thread */
    /* Asked on the server's thread once the headers are in, before a body gets memory of its own
     * (over 16 KiB, in chunks over 4 KiB). False: it is read and thrown away, and handle finds the
     * request `unread`. May be NULL: all are wanted. */
    bool (*wants_body)(void *ctx, struct bs_http_request *r);
    size_t bodies_max; /* memory of all such bodies together, by their announced length; what finds
                          no room is `unread` too; 0: 512 MiB */
    struct bs_span header_limit, body_limit; /* total times; 0: 10 s, 30 s. body_limit also
                                                bounds how long a client may take its reply */
    struct bs_span idle_limit;               /* keep-alive; 0: 75 s                    */
    /* Every complete request. Must reply or wait before it returns. */
    void (*handle)(void *ctx, struct bs_http_request *r);
    /* Renders the server's own refusals: 413 (body too big), 408 (too slow), 503 (shutting down,
     * too many connections). Must call bs_http_reply. May be NULL (plain text). */
    void (*refuse)(void *ctx, struct bs_http_request *r, int status);
    void *ctx;
    struct bs_clock *clock;
};

BS_NODISCARD bs_rc bs_http_start(const struct bs_http_options *o, struct bs_http_server **ret,
                                 struct bs_err *err);
/* The port that was bound (for port 0); 0 without a TCP listener. */
uint16_t bs_http_port(const struct bs_http_server *s);
/* Stops accepting; requests that wait have half the grace, at most 1 s, to be answered by whoever
 * works for them, then they are answered 503; ends the thread, frees. Those whose bs_http_ready is
 * still to come are waited for at most `grace`. */
void bs_http_stop(struct bs_http_server *s, struct bs_span grace);
struct bs_http_figures {
    uint64_t requests, refused, timeouts;
    uint32_t connections, waiting;
};
void bs_http_figures(struct bs_http_server *s, struct bs_http_figures *ret);
