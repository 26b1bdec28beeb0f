/* The file-system edge: whole files, lock files, peers of a socket. */
#pragma once

#include "base/arena.h"
#include "base/base.h"

/* At most max bytes; BS_E_NOT_FOUND, BS_E_LIMIT, BS_E_UNAVAILABLE. */
BS_NODISCARD bs_rc bs_file_read(struct bs_arena *a, const char *path, size_t max,
                                struct bs_str *ret, struct bs_err *err);
/* Takes an exclusive flock on path (made when missing, 0600) without waiting. *ret_fd keeps it
 * until closed. BS_E_REFUSED: somebody else holds it. */
BS_NODISCARD bs_rc bs_file_lock(const char *path, int *ret_fd, struct bs_err *err);
/* Creates the folder of path, one level, when it is missing (0700). */
BS_NODISCARD bs_rc bs_folder_of(const char *path, struct bs_err *err);
/* Uid of the process at the other end of a UNIX socket; false when there is none. */
bool bs_peer_uid(int fd, uint32_t *ret_uid);
