/* Raw bytes to the real HTTP server: every input is one connection. What is answered is HTTP, what
 * reaches the handler keeps the server's promises, and the server still answers others. */
#include "fuzz.h"
#include "net/http.h"
#include "sys/clock.h"

#include <poll.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { BODY_MAX = 512, PATIENCE_US = 10000000, ASK_EVERY = 64 };

int LLVMFuzzerInitialize(int *argc, char ***argv);

static struct bs_http_server *server;
static char folder[64];
static struct sockaddr_un at = { .sun_family = AF_UNIX };

/* ---- the server's side */

static void check_param(void *ctx, struct bs_str name, struct bs_str value)
{
    struct bs_http_request *r = ctx;
    bool twice;

    BS_ASSERT(bs_utf8_valid(name) && bs_utf8_valid(value));
    BS_ASSERT(!memchr(name.p, 0, name.n) && !memchr(value.p, 0, value.n));
    BS_ASSERT(bs_http_query(r, name.p, &twice).p);
}

static void reply(struct bs_http_request *r, int status, struct bs_str text)
{
    struct bs_buf body = { .max = 4096 };

    bs_buf_add(&body, text);
    bs_http_reply(r, status, "text/plain", &body);
}

static void on_ready(struct bs_http_request *r)
{
    reply(r, 201, BS_STR("ready"));
}

static void on_timeout(struct bs_http_request *r)
{
    (void)r;
    bs_panic(__FILE__, __LINE__, "a request that was ready at once waits");
}

static void handle(void *ctx, struct bs_http_request *r)
{
    (void)ctx;
    BS_ASSERT(r->path.p && bs_utf8_valid(r->path) && !memchr(r->path.p, 0, r->path.n));
    BS_ASSERT(r->body.n <= BODY_MAX && r->local);
    bs_http_query_each(r, check_param, r);
    (void)bs_http_header(r, "Authorization");
    if (!bs_str_starts(r->path, BS_STR("/wait"))) {
        reply(r, 200, bs_str_is(r->path, "/alive") ? BS_STR("alive") : r->body);
        return;
    }
    r->on_ready = on_ready;
    bs_http_wait(r, BS_SEC(60), on_timeout);
    bs_http_ready(r);
}

static size_t body_max(void *ctx, enum bs_method method, struct bs_str path)
{
    (void)ctx;
    (void)method;
    BS_ASSERT(path.p);
    return BODY_MAX;
}

static void stop(void)
{
    bs_http_stop(server, BS_SEC(5));
    rmdir(folder);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    const char *temp = getenv("TMPDIR");
    struct bs_err err;
    struct bs_http_options o = { .socket_path = at.sun_path,
                                 .body_max = body_max,
                                 .header_limit = BS_MS(300),
                                 .body_limit = BS_MS(300),
                                 .idle_limit = BS_MS(300),
                                 .handle = handle,
                                 .clock = bs_clock_system() };

    (void)argc;
    (void)argv;
    snprintf(folder, sizeof(folder), "%.40s/fuzz-XXXXXX", temp ? temp : "/tmp");
    BS_ASSERT(mkdtemp(folder));
    snprintf(at.sun_path, sizeof(at.sun_path), "%s/http.sock", folder);
    bs_rc rc = bs_http_start(&o, &server, &err);
    BS_ASSERT(rc == BS_OK);
    atexit(stop);
    return 0;
}

/* ---- the client's side */

static int dial(void)
{
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    BS_ASSERT(fd >= 0);
    BS_ASSERT(connect(fd, (const struct sockaddr *)&at, sizeof(at)) == 0);
    return fd;
}

static void say(int fd, struct bs_str s)
{
    while (s.n) {
        ssize_t sent = send(fd, s.p, s.n, MSG_NOSIGNAL);

        if (sent <= 0)
            return;
        s = (struct bs_str){ s.p + sent, s.n - (size_t)sent };
    }
}

/* Until the server has closed; one that stays silent fails the run. */
static void hear(int fd, struct bs_buf *into)
{
    int64_t until_us = bs_boot_us() + PATIENCE_US;
    char bytes[4096];
    ssize_t n = 1;

    while (n > 0) {
        struct pollfd p = { .fd = fd, .events = POLLIN };

        BS_ASSERT(bs_boot_us() < until_us);
        if (poll(&p, 1, 100) != 1)
            continue;
        n = recv(fd, bytes, sizeof(bytes), 0);
        if (n > 0)
            bs_buf_add(into, (struct bs_str){ bytes, (size_t)n });
    }
}

/* An end that comes together with the last bytes is noticed by the library only at the time limit;
 * so the end waits a moment for the first byte of an answer. */
static void exchange(struct bs_str said, struct bs_buf *heard)
{
    int fd = dial();
    struct pollfd p = { .fd = fd, .events = POLLIN };

    say(fd, said);
    (void)poll(&p, 1, 1);
    shutdown(fd, SHUT_WR);
    hear(fd, heard);
    close(fd);
}

static bool is_alive(void)
{
    BS_CLEANUP(bs_buf_free) struct bs_buf heard = { .max = 1 << 20 };

    exchange(BS_STR("GET /alive HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"), &heard);
    struct bs_str s = bs_buf_str(&heard);
    return bs_str_starts(s, BS_STR("HTTP/1.1 200")) && s.n > 9 &&
           memcmp(s.p + s.n - 9, "\r\n\r\nalive", 9) == 0;
}

/* On a machine with much to do this client may itself be over the short limits; not for long. */
static void ask_alive(void)
{
    int64_t until_us = bs_boot_us() + PATIENCE_US;

    while (!is_alive())
        BS_ASSERT(bs_boot_us() < until_us);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    static uint32_t turn;
    BS_CLEANUP(bs_buf_free) struct bs_buf heard = { .max = 16 << 20 };

    exchange(fuzz_input(data, n), &heard);
    BS_ASSERT(heard.len == 0 || bs_str_starts(bs_buf_str(&heard), BS_STR("HTTP/1.")));
    if (turn++ % ASK_EVERY == 0)
        ask_alive();
    return 0;
}
