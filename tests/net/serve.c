/* The tests' server and raw clients. */
#include "serve.h"

#include <arpa/inet.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { PATIENCE_US = 20 * 1000000, PATIENCE_MS = 10000 };

static void reply_text(struct bs_http_request *r, int status, const char *text)
{
    struct bs_buf body = { .max = 1 << 20 };

    bs_buf_addz(&body, text);
    bs_http_reply(r, status, "text/plain", &body);
}

static void on_ready(struct bs_http_request *r)
{
    struct served *s = r->user;

    atomic_fetch_add(&s->ready, 1);
    reply_text(r, 201, "ready");
}

static void on_timeout(struct bs_http_request *r)
{
    struct served *s = r->user;

    atomic_fetch_add(&s->timed_out, 1);
    reply_text(r, 503, "too late");
}

static void echo(struct bs_http_request *r)
{
    struct bs_buf body = { .max = 16 << 20 };

    bs_buf_add(&body, r->body);
    bs_http_reply(r, 200, "application/octet-stream", &body);
}

static void handle(void *ctx, struct bs_http_request *r)
{
    struct served *s = ctx;

    atomic_fetch_add(&s->handled, 1);
    r->user = s;
    r->on_ready = on_ready;
    if (!bs_str_is(r->path, "/wait")) {
        if (s->echo)
            s->echo(r);
        else
            echo(r);
        return;
    }
    bs_http_wait(r, s->wait_limit, on_timeout);
    pthread_mutex_lock(&s->waiting.mutex);
    s->waiting.list[s->waiting.n++ % BS_COUNT(s->waiting.list)] = r;
    pthread_mutex_unlock(&s->waiting.mutex);
}

static void refuse(void *ctx, struct bs_http_request *r, int status)
{
    struct served *s = ctx;

    atomic_fetch_add(&s->refused, 1);
    bs_http_reply_header(r, "X-Refused", BS_STR("yes"));
    reply_text(r, status, "refused");
}

static size_t body_max(void *ctx, enum bs_method method, struct bs_str path)
{
    (void)ctx;
    (void)method;
    return bs_str_is(path, "/big") ? (size_t)8 << 20 : (size_t)32 << 10;
}

void serve_start(struct served *s, const struct bs_http_options *o)
{
    struct bs_err err;

    memset(s, 0, sizeof(*s));
    pthread_mutex_init(&s->waiting.mutex, NULL);
    s->wait_limit = BS_SEC(20);
    s->options = *o;
    s->options.handle = handle;
    s->options.refuse = refuse;
    s->options.body_max = body_max;
    s->options.ctx = s;
    s->options.clock = bs_clock_system();
    if (!o->listen && !o->socket_path)
        s->options.listen = "127.0.0.1:0";
    bs_rc rc = bs_http_start(&s->options, &s->server, &err);
    if (rc != BS_OK)
        fail_msg("%s", err.msg);
}

void serve_stop(struct served *s)
{
    struct bs_http_request *r = NULL;

    while ((r = waiting_take(s)))
        bs_http_ready(r);
    bs_http_stop(s->server, BS_SEC(5));
    while ((r = waiting_take(s)))
        bs_http_ready(r);
    pthread_mutex_destroy(&s->waiting.mutex);
}

struct bs_http_request *waiting_take(struct served *s)
{
    struct bs_http_request *r = NULL;

    pthread_mutex_lock(&s->waiting.mutex);
    if (s->waiting.n > 0) {
        r = s->waiting.list[0];
        s->waiting.n--;
        memmove(s->waiting.list, s->waiting.list + 1, s->waiting.n * sizeof(s->waiting.list[0]));
    }
    pthread_mutex_unlock(&s->waiting.mutex);
    return r;
}

void waiting_reach(struct served *s, uint32_t n)
{
    int64_t until_us = bs_boot_us() + PATIENCE_US;
    uint32_t now = 0;

    while (now < n) {
        assert_true(bs_boot_us() < until_us);
        usleep(500);
        pthread_mutex_lock(&s->waiting.mutex);
        now = s->waiting.n;
        pthread_mutex_unlock(&s->waiting.mutex);
    }
}

void figures_reach(struct served *s, uint32_t connections, uint32_t waiting)
{
    int64_t until_us = bs_boot_us() + PATIENCE_US;
    struct bs_http_figures f;

    do {
        assert_true(bs_boot_us() < until_us);
        usleep(500);
        bs_http_figures(s->server, &f);
    } while (f.connections != connections || f.waiting != waiting);
}

int client_open(const struct served *s)
{
    struct sockaddr_in at = { .sin_family = AF_INET,
                              .sin_port = htons(bs_http_port(s->server)),
                              .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_true(fd >= 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&at, sizeof(at)), 0);
    return fd;
}

int client_open_unix(const char *path)
{
    struct sockaddr_un at = { .sun_family = AF_UNIX };
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_true(fd >= 0);
    snprintf(at.sun_path, sizeof(at.sun_path), "%s", path);
    assert_int_equal(connect(fd, (struct sockaddr *)&at, sizeof(at)), 0);
    return fd;
}

/* A server that has already answered may have closed: the reply tells. */
void client_send(int fd, const char *text)
{
    size_t n = strlen(text);

    while (n > 0) {
        ssize_t sent = send(fd, text, n, MSG_NOSIGNAL);

        if (sent <= 0)
            return;
        text += sent;
        n -= (size_t)sent;
    }
}

static bool readable(int fd)
{
    struct pollfd p = { .fd = fd, .events = POLLIN };

    return poll(&p, 1, PATIENCE_MS) == 1;
}

static const char *read_reply(int fd, bool with_body)
{
    static char text[(16 << 20) + 4096];
    size_t got = 0, head_end = 0, whole = 0;

    memset(text, 0, 4096);
    while (head_end == 0 || got < whole) {
        /* Byte by byte to the end of the head: what follows is the next reply. */
        size_t want = head_end == 0 ? 1 : whole - got;
        ssize_t n = readable(fd) ? recv(fd, text + got, want, 0) : -1;

        if (n <= 0)
            return "";
        got += (size_t)n;
        text[got] = '\0';
        if (head_end == 0 && got >= 4 && memcmp(text + got - 4, "\r\n\r\n", 4) == 0) {
            const char *length = strcasestr(text, "\r\nContent-Length:");

            head_end = got;
            whole = got + (with_body && length ? strtoul(length + 17, NULL, 10) : 0);
        }
    }
    return text;
}

const char *client_reply(int fd)
{
    return read_reply(fd, true);
}

const char *client_reply_to_head(int fd)
{
    return read_reply(fd, false);
}

bool client_sees_close(int fd)
{
    char bytes[4096];

    for (;;) {
        if (!readable(fd))
            return false;
        if (recv(fd, bytes, sizeof(bytes), 0) <= 0)
            return true;
    }
}

void assert_begins(const char *text, const char *beginning)
{
    if (strncmp(text, beginning, strlen(beginning)) != 0)
        fail_msg("\"%.200s\" does not begin with \"%s\"", text, beginning);
}
