/* The SQLite driver. A handle belongs to one thread at a time. Knows nothing of tasks. */
#pragma once

#include "db/db.h"

struct bs_sqlite_options {
    const char *path;
    bool reader;           /* no changes; begin opens a read transaction          */
    int64_t cache_kib;     /* 0: 32 MiB for a writer, 2 MiB for a reader          */
    int64_t read_limit_us; /* reader: longest statement; 0: 5 s                   */
    int32_t busy_ms;       /* wait for a lock of another; 0: 2,000 ms, a reader 50  */
};

/* The file is made when it is missing (a writer) or must be there (a reader). BS_E_UNAVAILABLE: it
 * cannot be opened; BS_E_CORRUPT: it is no SQLite database. */
BS_NODISCARD bs_rc bs_sqlite_open(const struct bs_sqlite_options *o, struct bs_db **ret,
                                  struct bs_err *err);
