/* Two threads that run getaddrinfo. They start with the first name that needs them. */
#include "net/resolver_pool.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum { THREADS = 2, STACK_SIZE = 512 << 10 };

struct bs_resolver_pool {
    pthread_mutex_t mutex; /* guards everything but fd */
    pthread_cond_t work;
    struct bs_lookup *todo, **todo_end;
    struct bs_lookup *done;
    uint32_t threads; /* that run          */
    bool owned;       /* false: nobody wants results any more */
    int fd;
};

static void list_free(struct bs_lookup *l)
{
    while (l) {
        struct bs_lookup *next = l->next;

        free(l);
        l = next;
    }
}

static void destroy(struct bs_resolver_pool *p)
{
    list_free(p->todo);
    list_free(p->done);
    pthread_cond_destroy(&p->work);
    pthread_mutex_destroy(&p->mutex);
    if (p->fd >= 0)
        close(p->fd);
    free(p);
}

/* Releases the mutex. The last one out, owner or thread, takes the pool down. */
static void leave(struct bs_resolver_pool *p)
{
    bool last = !p->owned && p->threads == 0;

    pthread_mutex_unlock(&p->mutex);
    if (last)
        destroy(p);
}

static void add_address(struct bs_lookup *l, const struct sockaddr *at)
{
    char text[INET6_ADDRSTRLEN];
    size_t n = strlen(l->addresses);
    const void *address =
        at->sa_family == AF_INET6
            ? (const void *)&((const struct sockaddr_in6 *)(const void *)at)->sin6_addr
            : (const void *)&((const struct sockaddr_in *)(const void *)at)->sin_addr;

    if (!inet_ntop(at->sa_family, address, text, sizeof(text)))
        return;
    if (n + strlen(text) + 4 > sizeof(l->addresses))
        return;
    snprintf(l->addresses + n, sizeof(l->addresses) - n, "%s%s%s%s", n ? "," : "",
             at->sa_family == AF_INET6 ? "[" : "", text, at->sa_family == AF_INET6 ? "]" : "");
}

static void look_up(struct bs_lookup *l)
{
    struct addrinfo hints = { .ai_socktype = SOCK_STREAM };
    struct addrinfo *found = NULL;
    int rc = getaddrinfo(l->host, NULL, &hints, &found);

    if (rc != 0) {
        bool gone = rc == EAI_NONAME || rc == EAI_NODATA;

        l->state = gone ? BS_RESOLVE_NXDOMAIN : BS_RESOLVE_TEMPORARY;
        return;
    }
    for (const struct addrinfo *ai = found; ai; ai = ai->ai_next)
        if (ai->ai_family == AF_INET || ai->ai_family == AF_INET6)
            add_address(l, ai->ai_addr);
    freeaddrinfo(found);
    l->state = l->addresses[0] ? BS_RESOLVE_FOUND : BS_RESOLVE_NXDOMAIN;
}

static struct bs_lookup *pop(struct bs_resolver_pool *p)
{
    struct bs_lookup *l = p->todo;

    p->todo = l->next;
    if (!p->todo)
        p->todo_end = &p->todo;
    return l;
}

static void *work(void *arg)
{
    struct bs_resolver_pool *p = arg;

    pthread_setname_np(pthread_self(), "resolver");
    pthread_mutex_lock(&p->mutex);
    for (;;) {
        while (p->owned && !p->todo)
            pthread_cond_wait(&p->work, &p->mutex);
        if (!p->owned)
            break;
        struct bs_lookup *l = pop(p);
        pthread_mutex_unlock(&p->mutex);
        look_up(l);
        pthread_mutex_lock(&p->mutex);
        l->next = p->done;
        p->done = l;
        (void)!eventfd_write(p->fd, 1);
    }
    p->threads--;
    leave(p);
    return NULL;
}

/* Detached: a look-up that hangs must not hold up the end of the process. */
static bool start_thread(struct bs_resolver_pool *p)
{
    pthread_attr_t attr;
    pthread_t id;

    if (pthread_attr_init(&attr) != 0)
        return false;
    bool started = pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED) == 0 &&
                   pthread_attr_setstacksize(&attr, STACK_SIZE) == 0 &&
                   pthread_create(&id, &attr, work, p) == 0;
    pthread_attr_destroy(&attr);
    p->threads += started;
    return started;
}

bs_rc bs_resolver_pool_new(struct bs_resolver_pool **ret, struct bs_err *err)
{
    struct bs_resolver_pool *p = calloc(1, sizeof(*p));

    if (!p)
        return bs_fail(err, BS_E_NOMEM, "no memory for the resolver");
    p->fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (p->fd < 0) {
        free(p);
        return bs_fail(err, BS_E_UNAVAILABLE, "no eventfd: %s", strerror(errno));
    }
    pthread_mutex_init(&p->mutex, NULL);
    pthread_cond_init(&p->work, NULL);
    p->todo_end = &p->todo;
    p->owned = true;
    *ret = p;
    return BS_OK;
}

bool bs_resolver_pool_put(struct bs_resolver_pool *p, const char *host)
{
    struct bs_lookup *l = calloc(1, sizeof(*l));

    if (!l)
        return false;
    snprintf(l->host, sizeof(l->host), "%s", host);
    pthread_mutex_lock(&p->mutex);
    while (p->threads < THREADS && start_thread(p)) {
        /* until all run */
    }
    bool taken = p->threads > 0;
    if (taken) {
        *p->todo_end = l;
        p->todo_end = &l->next;
        pthread_cond_signal(&p->work);
    }
    pthread_mutex_unlock(&p->mutex);
    if (!taken)
        free(l);
    return taken;
}

struct bs_lookup *bs_resolver_pool_take(struct bs_resolver_pool *p)
{
    eventfd_t rung = 0;

    pthread_mutex_lock(&p->mutex);
    struct bs_lookup *done = p->done;
    p->done = NULL;
    (void)!eventfd_read(p->fd, &rung);
    pthread_mutex_unlock(&p->mutex);
    return done;
}

int bs_resolver_pool_fd(const struct bs_resolver_pool *p)
{
    return p->fd;
}

void bs_resolver_pool_free(struct bs_resolver_pool *p)
{
    if (!p)
        return;
    pthread_mutex_lock(&p->mutex);
    p->owned = false;
    pthread_cond_broadcast(&p->work);
    leave(p);
}
