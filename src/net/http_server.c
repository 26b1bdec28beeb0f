/* Start, loop and stop of the HTTP server's thread. */
#include "net/http_internal.h"
#include "sys/clock.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum {
    CONNECTIONS_MAX = 4096,
    BODIES_MAX = 512 << 20,
    CONNECTION_MEMORY = 16 << 10,
    STOP_POLL_US = 5000,
    PATIENCE_US = 1000000
};

static int epoll_fd_of(struct MHD_Daemon *d)
{
    const union MHD_DaemonInfo *info = d ? MHD_get_daemon_info(d, MHD_DAEMON_INFO_EPOLL_FD) : NULL;

    return info ? info->epoll_fd : -1; /* poll ignores negative descriptors */
}

/* Whether the library has something to do that no descriptor announces. */
static bool has_pending(struct MHD_Daemon *d)
{
    MHD_UNSIGNED_LONG_LONG ms = 0;

    return d && MHD_get_timeout(d, &ms) && ms == 0;
}

static int timeout_ms(const struct bs_http_server *s, int64_t most_us)
{
    int64_t left_us = BS_MIN(bs_http_timer_next(&s->timers), most_us) - s->now_us;

    if (left_us <= 0)
        return 0;
    return left_us > INT64_C(1000) * INT32_MAX ? -1 : (int)((left_us + 999) / 1000);
}

/* Sleeps until the network moves, somebody is ready, or a limit passes. */
static void sleep_until(struct bs_http_server *s, int64_t most_us)
{
    struct pollfd fds[3] = {
        { .fd = epoll_fd_of(s->tcp), .events = POLLIN },
        { .fd = epoll_fd_of(s->local), .events = POLLIN },
        { .fd = s->wake_fd, .events = POLLIN },
    };
    bool pending = has_pending(s->tcp) || has_pending(s->local);
    eventfd_t rung = 0;

    atomic_store(&s->sleeping, true);
    if (pending || atomic_load(&s->ready) || atomic_load(&s->stopping) != s->draining)
        most_us = 0;
    int n = poll(fds, BS_COUNT(fds), timeout_ms(s, most_us));
    atomic_store(&s->sleeping, false);
    if (n > 0 && fds[2].revents)
        (void)!eventfd_read(s->wake_fd, &rung);
}

static void turn(struct bs_http_server *s, int64_t most_us)
{
    sleep_until(s, most_us);
    s->now_us = bs_boot_us();
    bs_http_drain(s);
    bs_http_conn_expire(s);
    if (s->tcp)
        MHD_run(s->tcp);
    if (s->local)
        MHD_run(s->local);
}

static void stop_accepting(struct bs_http_server *s)
{
    s->draining = true;
    if (s->tcp)
        s->listen_fds[0] = MHD_quiesce_daemon(s->tcp);
    if (s->local)
        s->listen_fds[1] = MHD_quiesce_daemon(s->local);
    for (size_t i = 0; i < BS_COUNT(s->listen_fds); i++)
        if (s->listen_fds[i] >= 0)
            close(s->listen_fds[i]);
    if (s->socket_path)
        unlink(s->socket_path);
}

/* The heap holds every connection. Answering can move one within it, hence until nothing waits. */
static void answer_waiting(struct bs_http_server *s)
{
    while (atomic_load(&s->phases[PHASE_WAIT]) > 0) {
        bs_http_drain(s);
        for (uint32_t i = 0; i < s->timers.n; i++) {
            struct conn *c = BS_CONTAINER(s->timers.heap[i], struct conn, timer);

            if (c->phase == PHASE_WAIT)
                bs_http_wait_shutdown(c->req);
        }
    }
}

static bool owes_nothing(struct bs_http_server *s)
{
    return atomic_load(&s->phases[PHASE_REPLY]) == 0 && atomic_load(&s->refs) == 1;
}

/* What is nearly done gets its own answer: a 503 would leave its end unknown to the client. */
static void let_finish(struct bs_http_server *s)
{
    int64_t until_us = s->now_us + BS_MIN((s->stop_until_us - s->now_us) / 2, (int64_t)PATIENCE_US);

    while (atomic_load(&s->phases[PHASE_WAIT]) > 0 && s->now_us < until_us)
        turn(s, BS_MIN(s->now_us + STOP_POLL_US, until_us));
}

/* A daemon that stops with a suspended connection aborts the process, so everybody is answered and
 * resumed first; then the replies get time to leave, and the workers to let go of their requests.
 */
static void drain(struct bs_http_server *s)
{
    stop_accepting(s);
    let_finish(s);
    answer_waiting(s);
    while (!owes_nothing(s) && s->now_us < s->stop_until_us)
        turn(s, BS_MIN(s->now_us + STOP_POLL_US, s->stop_until_us));
    answer_waiting(s);
    turn(s, 0);
}

static void *serve(void *arg)
{
    struct bs_http_server *s = arg;

    pthread_setname_np(pthread_self(), "http");
    while (!atomic_load(&s->stopping))
        turn(s, INT64_MAX);
    drain(s);
    return NULL;
}

static struct MHD_Daemon *start_daemon(struct bs_http_server *s, int fd)
{
    return MHD_start_daemon(MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME, 0, NULL, NULL, bs_http_access,
                            s, MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_CONNECTION_LIMIT,
                            s->o.connections_max, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
                            (size_t)CONNECTION_MEMORY, MHD_OPTION_NOTIFY_CONNECTION,
                            bs_http_conn_notify, s, MHD_OPTION_NOTIFY_COMPLETED, bs_http_completed,
                            s, MHD_OPTION_URI_LOG_CALLBACK, bs_http_conn_uri, s,
                            MHD_OPTION_UNESCAPE_CALLBACK, bs_http_conn_unescape, s, MHD_OPTION_END);
}

static bs_rc open_listener(struct bs_http_server *s, int fd, struct MHD_Daemon **ret,
                           struct bs_err *err)
{
    /* Most of the library's failures have closed the socket already: it is never closed here. */
    *ret = start_daemon(s, fd);
    if (*ret)
        return BS_OK;
    return bs_fail(err, BS_E_UNAVAILABLE, "the HTTP library did not start");
}

static bs_rc open_tcp(struct bs_http_server *s, struct bs_err *err)
{
    int fd = -1;

    if (!s->o.listen)
        return BS_OK;
    BS_TRY(bs_http_listen_tcp(s->o.listen, &fd, &s->port, err));
    return open_listener(s, fd, &s->tcp, err);
}

static bs_rc open_local(struct bs_http_server *s, struct bs_err *err)
{
    int fd = -1;

    if (!s->o.socket_path)
        return BS_OK;
    BS_TRY(bs_http_listen_unix(s->o.socket_path, &fd, err));
    s->socket_path = strdup(s->o.socket_path);
    return open_listener(s, fd, &s->local, err);
}

static void set_defaults(struct bs_http_options *o)
{
    if (o->connections_max == 0)
        o->connections_max = CONNECTIONS_MAX;
    if (o->bodies_max == 0)
        o->bodies_max = BODIES_MAX;
    if (o->header_limit.us == 0)
        o->header_limit = BS_SEC(10);
    if (o->body_limit.us == 0)
        o->body_limit = BS_SEC(30);
    if (o->idle_limit.us == 0)
        o->idle_limit = BS_SEC(75);
}

static void stop_daemons(struct bs_http_server *s)
{
    if (s->tcp)
        MHD_stop_daemon(s->tcp);
    if (s->local)
        MHD_stop_daemon(s->local);
    bs_http_timers_free(&s->timers);
}

static void give_up_p(struct bs_http_server **s)
{
    if (!*s)
        return;
    stop_daemons(*s);
    if ((*s)->socket_path)
        unlink((*s)->socket_path);
    bs_http_server_release(*s);
}

bs_rc bs_http_start(const struct bs_http_options *o, struct bs_http_server **ret,
                    struct bs_err *err)
{
    BS_CLEANUP(give_up_p) struct bs_http_server *s = calloc(1, sizeof(*s));

    BS_ASSERT(o->handle);
    if (!s)
        return bs_fail(err, BS_E_NOMEM, "no memory for the HTTP server");
    s->o = *o;
    s->listen_fds[0] = s->listen_fds[1] = -1;
    s->now_us = bs_boot_us();
    atomic_init(&s->refs, 1);
    set_defaults(&s->o);
    s->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (s->wake_fd < 0)
        return bs_fail(err, BS_E_UNAVAILABLE, "no eventfd: %s", strerror(errno));
    BS_TRY(open_tcp(s, err));
    BS_TRY(open_local(s, err));
    if (pthread_create(&s->thread, NULL, serve, s) != 0)
        return bs_fail(err, BS_E_UNAVAILABLE, "no thread for the HTTP server");
    *ret = s;
    s = NULL;
    return BS_OK;
}

uint16_t bs_http_port(const struct bs_http_server *s)
{
    return s->port;
}

void bs_http_stop(struct bs_http_server *s, struct bs_span grace)
{
    if (!s)
        return;
    s->stop_until_us = bs_boot_us() + grace.us;
    atomic_store(&s->stopping, true);
    (void)!eventfd_write(s->wake_fd, 1);
    pthread_join(s->thread, NULL);
    stop_daemons(s);
    bs_http_server_release(s);
}

void bs_http_figures(struct bs_http_server *s, struct bs_http_figures *ret)
{
    *ret = (struct bs_http_figures){
        .requests = atomic_load(&s->requests),
        .refused = atomic_load(&s->refused),
        .timeouts = atomic_load(&s->timeouts),
        .connections = atomic_load(&s->connections),
        .waiting = atomic_load(&s->phases[PHASE_WAIT]),
    };
}
