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
/* The one name that a file has however it was called, symbolic links followed; it need not be there
 * yet, its folder must. BS_E_LIMIT: longer than size - 1; BS_E_UNAVAILABLE. */
BS_NODISCARD bs_rc bs_path_real(const char *path, char *ret, size_t size, struct bs_err *err);
/* True while path still names the file that fd has open. */
bool bs_file_is(const char *path, int fd);
/* Uid of the process at the other end of a UNIX socket; false when there is none. */
bool bs_peer_uid(int fd, uint32_t *ret_uid);
