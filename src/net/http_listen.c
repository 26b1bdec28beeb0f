/* The server's listening sockets. */
#include "net/http_internal.h"

#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

enum { BACKLOG = 1024 };

static bs_rc split_address(const char *address, char *host, size_t host_size, const char **ret_port,
                           struct bs_err *err)
{
    const char *colon = strrchr(address, ':');
    struct bs_str name = { address, colon ? (size_t)(colon - address) : 0 };

    if (name.n > 2 && name.p[0] == '[' && name.p[name.n - 1] == ']')
        name = (struct bs_str){ name.p + 1, name.n - 2 };
    if (!colon || name.n == 0 || name.n >= host_size)
        return bs_fail(err, BS_E_INVALID, "\"%.64s\" is not an address: write 127.0.0.1:8787",
                       address);
    snprintf(host, host_size, "%.*s", BS_STR_FMT(name));
    *ret_port = colon + 1;
    return BS_OK;
}

static uint16_t bound_port(int fd)
{
    union {
        struct sockaddr any;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
    } at = { .v6 = { 0 } };
    socklen_t n = sizeof(at);

    if (getsockname(fd, &at.any, &n) != 0)
        return 0;
    return ntohs(at.any.sa_family == AF_INET6 ? at.v6.sin6_port : at.v4.sin_port);
}

/* -1: errno tells. */
static int open_socket(const struct addrinfo *ai)
{
    int one = 1;
    int fd = socket(ai->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (fd < 0)
        return -1;
    if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) == 0 &&
        bind(fd, ai->ai_addr, ai->ai_addrlen) == 0 && listen(fd, BACKLOG) == 0)
        return fd;
    int saved = errno;
    close(fd);
    errno = saved;
    return -1;
}

bs_rc bs_http_listen_tcp(const char *address, int *ret_fd, uint16_t *ret_port, struct bs_err *err)
{
    struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE };
    struct addrinfo *found = NULL;
    char host[256];
    const char *port = NULL;

    BS_TRY(split_address(address, host, sizeof(host), &port, err));
    int rc = getaddrinfo(host, port, &hints, &found);
    if (rc != 0)
        return bs_fail(err, BS_E_INVALID, "cannot listen on %.64s: %s", address, gai_strerror(rc));
    int fd = open_socket(found);
    int reason = errno;
    freeaddrinfo(found);
    if (fd < 0)
        return bs_fail(err, BS_E_UNAVAILABLE, "cannot listen on %.64s: %s", address,
                       strerror(reason));
    *ret_fd = fd;
    *ret_port = bound_port(fd);
    return BS_OK;
}

/* A socket file that nobody serves is left behind by a crash; one that answers is another server.
 */
static bs_rc remove_stale(const struct sockaddr_un *at, struct bs_err *err)
{
    struct stat st;

    if (lstat(at->sun_path, &st) != 0)
        return BS_OK;
    if (!S_ISSOCK(st.st_mode))
        return bs_fail(err, BS_E_REFUSED, "%.100s exists and is not a socket", at->sun_path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return bs_fail(err, BS_E_UNAVAILABLE, "no socket: %s", strerror(errno));
    bool served = connect(fd, (const struct sockaddr *)at, sizeof(*at)) == 0 || errno == EAGAIN;
    close(fd);
    if (served)
        return bs_fail(err, BS_E_REFUSED, "another server answers on %.100s", at->sun_path);
    if (unlink(at->sun_path) != 0 && errno != ENOENT)
        return bs_fail(err, BS_E_UNAVAILABLE, "cannot remove the old socket %.100s: %s",
                       at->sun_path, strerror(errno));
    return BS_OK;
}

/* Between bind and listen nobody can connect, so the mode is right before the first client. */
static bool open_unix(int fd, const struct sockaddr_un *at)
{
    return bind(fd, (const struct sockaddr *)at, sizeof(*at)) == 0 &&
           chmod(at->sun_path, S_IRUSR | S_IWUSR) == 0 && listen(fd, BACKLOG) == 0;
}

bs_rc bs_http_listen_unix(const char *path, int *ret_fd, struct bs_err *err)
{
    struct sockaddr_un at = { .sun_family = AF_UNIX };

    if (strlen(path) >= sizeof(at.sun_path))
        return bs_fail(err, BS_E_INVALID, "the socket path is longer than %zu bytes: %.100s",
                       sizeof(at.sun_path) - 1, path);
    snprintf(at.sun_path, sizeof(at.sun_path), "%s", path);
    BS_TRY(remove_stale(&at, err));
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return bs_fail(err, BS_E_UNAVAILABLE, "no socket: %s", strerror(errno));
    if (!open_unix(fd, &at)) {
        int reason = errno;

        close(fd);
        return bs_fail(err, BS_E_UNAVAILABLE, "cannot listen on %.100s: %s", path,
                       strerror(reason));
    }
    *ret_fd = fd;
    return BS_OK;
}
