/* Answers: the reply slot, who wins it, and how the reply leaves. */
#include "net/http_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

static void finish_request_memory(struct request *r)
{
    struct bs_arena arena = r->pub.arena;

    bs_http_drop_body(r);
    bs_arena_free(&arena); /* the request lives in it */
}

void bs_http_request_release(struct request *r)
{
    if (atomic_fetch_sub(&r->refs, 1) == 1)
        finish_request_memory(r);
}

void bs_http_server_release(struct bs_http_server *s)
{
    if (atomic_fetch_sub(&s->refs, 1) != 1)
        return;
    close(s->wake_fd);
    free(s->socket_path);
    free(s);
}

void bs_http_reply_header(struct bs_http_request *pub, const char *name, struct bs_str value)
{
    struct request *r = BS_CONTAINER(pub, struct request, pub);
    struct reply_header *h = BS_NEW(&pub->arena, struct reply_header);
    struct bs_str name_copy = bs_arena_str(&pub->arena, bs_str_of(name));
    struct bs_str value_copy = bs_arena_str(&pub->arena, value);

    if (!h || !name_copy.p || !value_copy.p)
        return;
    *h = (struct reply_header){ .next = r->headers, .name = name_copy.p, .value = value_copy.p };
    r->headers = h;
}

/* The library owns the buffer's memory from here on. */
static struct MHD_Response *make_response(const struct request *r, const char *content_type,
                                          struct bs_buf *body)
{
    struct MHD_Response *response = NULL;

    if (body && body->len > 0) {
        response = MHD_create_response_from_buffer(body->len, body->p, MHD_RESPMEM_MUST_FREE);
        if (response)
            *body = (struct bs_buf){ .max = body->max };
    } else {
        response = MHD_create_response_from_buffer(0, NULL, MHD_RESPMEM_PERSISTENT);
    }
    if (!response)
        return NULL;
    if (content_type)
        MHD_add_response_header(response, "Content-Type", content_type);
    for (const struct reply_header *h = r->headers; h; h = h->next)
        MHD_add_response_header(response, h->name, h->value);
    if (r->server->draining)
        MHD_add_response_header(response, "Connection", "close");
    return response;
}

/* Without memory for the reply the connection ends: no answer is better than a wrong one. */
static void queue_response(struct request *r, int status, const char *content_type,
                           struct bs_buf *body)
{
    struct MHD_Response *response = make_response(r, content_type, body);
    bool queued = response && MHD_queue_response(r->conn->mhd, (unsigned)status, response);

    if (response)
        MHD_destroy_response(response);
    if (queued) {
        bs_http_conn_enter(r->conn, PHASE_REPLY, r->server->o.body_limit);
        return;
    }
    bs_http_conn_enter(r->conn, PHASE_CLOSING, BS_SEC(0));
    shutdown(r->conn->fd, SHUT_RDWR);
}

/* The library cannot answer in the middle of a body, so this one reply is written by hand. Nothing
 * else can be under way; what does not fit into the socket at once is dropped with the connection.
 */
static void write_raw(struct request *r, int status, const char *content_type, struct bs_buf *body)
{
    BS_CLEANUP(bs_buf_free) struct bs_buf out = { .max = 64 << 10 };
    struct bs_str text = body ? bs_buf_str(body) : BS_STR_NONE;

    bs_buf_fmt(&out, "HTTP/1.1 %d %s\r\nConnection: close\r\nContent-Length: %zu\r\n", status,
               MHD_get_reason_phrase_for((unsigned)status), text.n);
    if (content_type)
        bs_buf_fmt(&out, "Content-Type: %s\r\n", content_type);
    for (const struct reply_header *h = r->headers; h; h = h->next)
        bs_buf_fmt(&out, "%s: %s\r\n", h->name, h->value);
    bs_buf_addz(&out, "\r\n");
    bs_buf_add(&out, text);
    if (!out.failed)
        (void)!send(r->conn->fd, out.p, out.len, MSG_DONTWAIT | MSG_NOSIGNAL);
    bs_http_conn_enter(r->conn, PHASE_CLOSING, BS_SEC(0));
    shutdown(r->conn->fd, SHUT_RDWR);
}

void bs_http_reply(struct bs_http_request *pub, int status, const char *content_type,
                   struct bs_buf *body)
{
    struct request *r = BS_CONTAINER(pub, struct request, pub);
    bool broken = body && body->failed;

    BS_ASSERT(!r->replied);
    r->replied = true;
    if (broken) {
        status = 500;
        content_type = NULL;
        bs_buf_reset(body);
    }
    if (r->conn && r->raw)
        write_raw(r, status, content_type, body);
    else if (r->conn)
        queue_response(r, status, content_type, body);
    if (body)
        bs_buf_free(body);
}

static void refuse_plainly(struct request *r, int status)
{
    struct bs_buf body = { .max = 256 };

    bs_buf_fmt(&body, "%d %s\n", status, MHD_get_reason_phrase_for((unsigned)status));
    bs_http_reply(&r->pub, status, "text/plain", &body);
}

void bs_http_refuse(struct request *r, int status)
{
    struct bs_http_server *s = r->server;

    r->raw = r->conn->phase == PHASE_BODY && status == 408;
    atomic_fetch_add_explicit(&s->refused, 1, memory_order_relaxed);
    if (s->o.refuse)
        s->o.refuse(s->o.ctx, &r->pub, status);
    else
        refuse_plainly(r, status);
    BS_ASSERT(r->replied);
}

void bs_http_wait(struct bs_http_request *pub, struct bs_span limit,
                  void (*on_timeout)(struct bs_http_request *r))
{
    struct request *r = BS_CONTAINER(pub, struct request, pub);

    BS_ASSERT(!r->replied && atomic_load(&r->slot) == SLOT_FRESH);
    r->on_timeout = on_timeout;
    atomic_fetch_add(&r->refs, 1);
    atomic_fetch_add(&r->server->refs, 1);
    atomic_store(&r->slot, SLOT_WAITING);
    bs_http_conn_enter(r->conn, PHASE_WAIT, limit);
}

static bool win(struct request *r, enum slot by)
{
    int waiting = SLOT_WAITING;

    return atomic_compare_exchange_strong(&r->slot, &waiting, by);
}

/* The stack is looked at again after `sleeping` is set, so a push is seen or the sleeper is woken.
 */
static void push_ready(struct bs_http_server *s, struct request *r)
{
    struct request *head = atomic_load(&s->ready);

    do
        r->ready_next = head;
    while (!atomic_compare_exchange_weak(&s->ready, &head, r));
    if (atomic_load(&s->sleeping) && atomic_exchange(&s->sleeping, false))
        (void)!eventfd_write(s->wake_fd, 1);
}

void bs_http_ready(struct bs_http_request *pub)
{
    struct request *r = BS_CONTAINER(pub, struct request, pub);
    struct bs_http_server *s = r->server;

    BS_ASSERT(atomic_load(&r->slot) != SLOT_FRESH);
    if (win(r, SLOT_READY))
        push_ready(s, r);
    else
        bs_http_request_release(r);
    bs_http_server_release(s);
}

void bs_http_wait_expired(struct request *r)
{
    if (!win(r, SLOT_TIMEOUT))
        return; /* the answer is on the stack and comes this turn or the next */
    atomic_fetch_add_explicit(&r->server->timeouts, 1, memory_order_relaxed);
    struct MHD_Connection *mhd = r->conn->mhd;
    r->on_timeout(&r->pub);
    BS_ASSERT(r->replied);
    MHD_resume_connection(mhd);
}

void bs_http_wait_shutdown(struct request *r)
{
    if (!win(r, SLOT_SHUTDOWN))
        return;
    struct MHD_Connection *mhd = r->conn->mhd;
    bs_http_refuse(r, 503);
    MHD_resume_connection(mhd);
}

static struct request *take_ready(struct bs_http_server *s)
{
    struct request *newest = atomic_exchange(&s->ready, NULL);
    struct request *oldest = NULL;

    while (newest) {
        struct request *next = newest->ready_next;

        newest->ready_next = oldest;
        oldest = newest;
        newest = next;
    }
    return oldest;
}

void bs_http_drain(struct bs_http_server *s)
{
    struct request *r = take_ready(s);

    while (r) {
        struct request *next = r->ready_next;
        struct MHD_Connection *mhd = r->conn->mhd;

        r->pub.on_ready(&r->pub);
        BS_ASSERT(r->replied);
        MHD_resume_connection(mhd);
        bs_http_request_release(r);
        r = next;
    }
}
