/* The sink that drained tasks are delivered to: answers every request with 204, below /d10/ after
 * 10 ms (any number), below /hang/ never. Prints its port; a byte on its standard input prints how
 * many requests came and how many were answered; ends when that closes. sink [PORT] */
#include <arpa/inet.h>
#include <microhttpd.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <time.h>
#include <unistd.h>

struct call {
    struct MHD_Connection *connection;
    struct timespec due;
    int waits; /* in `later`, or left to hang */
    TAILQ_ENTRY(call) link;
};
TAILQ_HEAD(calls, call);

static atomic_ullong came, answered;
static struct MHD_Response *empty;
static struct calls later = TAILQ_HEAD_INITIALIZER(later); /* the first is due first */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed;

static int before(const struct timespec *a, const struct timespec *b)
{
    return a->tv_sec != b->tv_sec ? a->tv_sec < b->tv_sec : a->tv_nsec < b->tv_nsec;
}

static void answer_later(struct call *c, long ms)
{
    struct call *at;

    clock_gettime(CLOCK_MONOTONIC, &c->due);
    c->due.tv_nsec += ms % 1000 * 1000000;
    c->due.tv_sec += ms / 1000 + c->due.tv_nsec / 1000000000;
    c->due.tv_nsec %= 1000000000;
    pthread_mutex_lock(&lock);
    at = TAILQ_LAST(&later, calls);
    while (at && before(&c->due, &at->due))
        at = TAILQ_PREV(at, calls, link);
    if (at) {
        TAILQ_INSERT_AFTER(&later, at, c, link);
    } else {
        TAILQ_INSERT_HEAD(&later, c, link);
        pthread_cond_signal(&changed);
    }
    pthread_mutex_unlock(&lock);
}

static void *resume_due(void *ctx)
{
    struct timespec now;
    struct call *c;

    (void)ctx;
    pthread_mutex_lock(&lock);
    for (;;) {
        clock_gettime(CLOCK_MONOTONIC, &now);
        c = TAILQ_FIRST(&later);
        if (!c) {
            pthread_cond_wait(&changed, &lock);
        } else if (before(&now, &c->due)) {
            pthread_cond_timedwait(&changed, &lock, &c->due);
        } else {
            TAILQ_REMOVE(&later, c, link);
            MHD_resume_connection(c->connection);
        }
    }
    return NULL;
}

static enum MHD_Result handle(void *ctx, struct MHD_Connection *connection, const char *url,
                              const char *method, const char *version, const char *data,
                              size_t *size, void **state)
{
    struct call *c = *state;

    (void)ctx, (void)method, (void)version, (void)data;
    if (!c) {
        *state = c = calloc(1, sizeof(*c));
        return c ? MHD_YES : MHD_NO;
    }
    if (*size) {
        *size = 0;
        return MHD_YES;
    }
    if (!c->waits) {
        int hang = strncmp(url, "/hang/", 6) == 0;

        came++;
        c->waits = hang || strncmp(url, "/d", 2) == 0;
        c->connection = connection;
        if (c->waits) {
            MHD_suspend_connection(connection);
            if (!hang)
                answer_later(c, atol(url + 2));
            return MHD_YES;
        }
    }
    answered++;
    return MHD_queue_response(connection, 204, empty);
}

static void ended(void *ctx, struct MHD_Connection *connection, void **state,
                  enum MHD_RequestTerminationCode code)
{
    (void)ctx, (void)connection, (void)code;
    free(*state);
    *state = NULL;
}

static struct MHD_Daemon *listen_on(int port)
{
    struct sockaddr_in at = { .sin_family = AF_INET, .sin_port = htons((unsigned short)port) };

    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return MHD_start_daemon(MHD_USE_EPOLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME, 0, NULL, NULL,
                            handle, NULL, MHD_OPTION_SOCK_ADDR, &at, MHD_OPTION_CONNECTION_LIMIT,
                            10000u, MHD_OPTION_NOTIFY_COMPLETED, ended, NULL, MHD_OPTION_END);
}

int main(int argc, char **argv)
{
    pthread_condattr_t attributes;
    pthread_t timer;
    char byte;

    empty = MHD_create_response_from_buffer(0, NULL, MHD_RESPMEM_PERSISTENT);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&changed, &attributes);
    struct MHD_Daemon *d = listen_on(argc > 1 ? atoi(argv[1]) : 0);
    if (!d || pthread_create(&timer, NULL, resume_due, NULL) != 0)
        return 1;
    printf("%u\n", (unsigned)MHD_get_daemon_info(d, MHD_DAEMON_INFO_BIND_PORT)->port);
    fflush(stdout);
    while (read(0, &byte, 1) > 0) {
        printf("%llu %llu\n", came, answered);
        fflush(stdout);
    }
    _exit(0); /* the library cannot be stopped while calls hang */
}
