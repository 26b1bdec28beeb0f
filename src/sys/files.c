/* Whole files, lock files, the folder of a file, the peer of a socket. */
#include "sys/files.h"

#include "base/buf.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

static void close_p(const int *fd)
{
    if (*fd >= 0)
        close(*fd);
}

static bs_rc fail_errno(struct bs_err *err, bs_rc rc, const char *what, const char *path)
{
    int code = errno;
    char reason[64];

    bs_rc filled = bs_fail(err, rc, "cannot %s %.150s: %s", what, path,
                           strerror_r(code, reason, sizeof(reason)));
    if (err)
        err->sys = code;
    return filled;
}

static bs_rc read_all(int fd, const char *path, struct bs_buf *b, struct bs_err *err)
{
    char chunk[16384];

    for (;;) {
        ssize_t n = read(fd, chunk, sizeof(chunk));

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return fail_errno(err, BS_E_UNAVAILABLE, "read", path);
        if (n == 0)
            return BS_OK;
        bs_buf_add(b, (struct bs_str){ chunk, (size_t)n });
        if (b->failed)
            return bs_fail(err, BS_E_LIMIT, "%.150s is longer than %zu bytes", path, b->max);
    }
}

bs_rc bs_file_read(struct bs_arena *a, const char *path, size_t max, struct bs_str *ret,
                   struct bs_err *err)
{
    BS_CLEANUP(close_p) int fd = open(path, O_RDONLY | O_CLOEXEC);
    BS_CLEANUP(bs_buf_free) struct bs_buf b = { .max = max };

    if (fd < 0)
        return fail_errno(err, errno == ENOENT ? BS_E_NOT_FOUND : BS_E_UNAVAILABLE, "open", path);
    BS_TRY(read_all(fd, path, &b, err));
    struct bs_str whole = bs_arena_str(a, bs_buf_str(&b));
    if (!whole.p)
        return bs_fail(err, BS_E_NOMEM, "no memory for %.150s", path);
    *ret = whole;
    return BS_OK;
}

bs_rc bs_file_lock(const char *path, int *ret_fd, struct bs_err *err)
{
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);

    if (fd < 0)
        return fail_errno(err, BS_E_UNAVAILABLE, "open", path);
    if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
        bs_rc rc = errno == EWOULDBLOCK
                       ? bs_fail(err, BS_E_REFUSED, "%.150s is held by another process", path)
                       : fail_errno(err, BS_E_UNAVAILABLE, "lock", path);
        close(fd);
        return rc;
    }
    *ret_fd = fd;
    return BS_OK;
}

bs_rc bs_folder_of(const char *path, struct bs_err *err)
{
    const char *slash = strrchr(path, '/');
    char folder[4096];
    struct stat st;

    if (!slash || slash == path)
        return BS_OK;
    size_t n = (size_t)(slash - path);
    if (n >= sizeof(folder))
        return bs_fail(err, BS_E_LIMIT, "the path is longer than %zu bytes", sizeof(folder) - 1);
    memcpy(folder, path, n);
    folder[n] = '\0';
    if (mkdir(folder, 0700) == 0)
        return BS_OK;
    if (errno != EEXIST)
        return fail_errno(err, BS_E_UNAVAILABLE, "make the folder", folder);
    if (stat(folder, &st) != 0)
        return fail_errno(err, BS_E_UNAVAILABLE, "look at", folder);
    if (!S_ISDIR(st.st_mode))
        return bs_fail(err, BS_E_UNAVAILABLE, "%.150s is not a folder", folder);
    return BS_OK;
}

static bs_rc put_path(const char *folder, const char *name, char *ret, size_t size,
                      struct bs_err *err)
{
    const char *between = *name && strcmp(folder, "/") != 0 ? "/" : "";
    size_t n = strlen(folder) + strlen(between) + strlen(name);

    if (n >= size)
        return bs_fail(err, BS_E_LIMIT, "the path is longer than %zu bytes: %.150s", size - 1,
                       folder);
    snprintf(ret, size, "%s%s%s", folder, between, name);
    return BS_OK;
}

bs_rc bs_path_real(const char *path, char *ret, size_t size, struct bs_err *err)
{
    char real[PATH_MAX], folder[PATH_MAX];
    const char *slash = strrchr(path, '/');
    size_t n = slash ? (size_t)(slash - path) : 0;
    struct stat st;

    if (realpath(path, real))
        return put_path(real, "", ret, size, err);
    if (errno != ENOENT || lstat(path, &st) == 0)
        return fail_errno(err, BS_E_UNAVAILABLE, "follow", path);
    if (n >= sizeof(folder))
        return bs_fail(err, BS_E_LIMIT, "the path is longer than %zu bytes", sizeof(folder) - 1);
    memcpy(folder, path, n);
    folder[n] = '\0';
    if (!realpath(n ? folder : slash ? "/" : ".", real))
        return fail_errno(err, BS_E_UNAVAILABLE, "find the folder of", path);
    return put_path(real, slash ? slash + 1 : path, ret, size, err);
}

bool bs_file_is(const char *path, int fd)
{
    struct stat named, opened;

    return stat(path, &named) == 0 && fstat(fd, &opened) == 0 && named.st_dev == opened.st_dev &&
           named.st_ino == opened.st_ino;
}

bool bs_peer_uid(int fd, uint32_t *ret_uid)
{
    struct ucred peer;
    socklen_t size = sizeof(peer);
    int domain = 0;
    socklen_t domain_size = sizeof(domain);

    /* Sockets of other families answer SO_PEERCRED too, with nobody in it. */
    if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &domain_size) != 0 || domain != AF_UNIX)
        return false;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0 || peer.pid == 0)
        return false;
    *ret_uid = peer.uid;
    return true;
}
