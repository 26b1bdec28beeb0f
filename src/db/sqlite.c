/* The SQLite driver: prepared statements by name, values bound without copies, errors as bs_rc. */
#include "db/sqlite.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { MAGIC = 0x53514c33, STEPS_BETWEEN_LOOKS = 4000, COPY_PAGES = 1024 };

struct sqlite_db {
    struct bs_db base;
    uint32_t magic;
    struct bs_sqlite_options options; /* path is this handle's own copy */
    sqlite3 *conn;                    /* NULL: lost; the next begin or run opens it again */
    sqlite3_stmt *stmts[BS_SQL_COUNT];
    enum bs_sql open[BS_SQL_COUNT]; /* statements that still have rows */
    uint32_t open_n;
    bool first_row[BS_SQL_COUNT]; /* run stands on its first row, which next has not given yet */
    const struct bs_dialect *dialect;
    ino_t log_ino;       /* of the write-ahead log of this connection; 0: not seen yet */
    bool gone;           /* writer: the file or its log was moved, removed or replaced; for good */
    int64_t deadline_us; /* reader: when the running statement is stopped */
};

static struct sqlite_db *self(struct bs_db *db)
{
    struct sqlite_db *d = BS_CONTAINER(db, struct sqlite_db, base);

    BS_ASSERT(d->magic == MAGIC);
    return d;
}

static int64_t steady_us(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

/* ---- errors ---- */

static bs_rc rc_of(int code)
{
    switch (code & 0xff) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
    case SQLITE_PROTOCOL:
    case SQLITE_SCHEMA:
        return BS_E_BUSY;
    case SQLITE_FULL:
    case SQLITE_IOERR:
    case SQLITE_CANTOPEN:
    case SQLITE_READONLY:
    case SQLITE_PERM:
    case SQLITE_ABORT:
        return BS_E_UNAVAILABLE;
    case SQLITE_CONSTRAINT:
        return BS_E_CONFLICT;
    case SQLITE_TOOBIG:
    case SQLITE_MISMATCH:
    case SQLITE_RANGE:
        return BS_E_INVALID;
    case SQLITE_INTERRUPT:
        return BS_E_LIMIT;
    case SQLITE_NOMEM:
        return BS_E_NOMEM;
    default:
        /* NOTADB and CORRUPT; ERROR too: our statements fit our schema, so this is not our schema
         */
        return BS_E_CORRUPT;
    }
}

static bs_rc fail(struct sqlite_db *d, int code, const char *what, struct bs_err *err)
{
    bs_rc rc = rc_of(code);

    if (rc == BS_E_LIMIT)
        rc = bs_fail(err, rc, "%s: stopped after %lld ms", what,
                     (long long)(d->options.read_limit_us / 1000));
    else
        rc = bs_fail(err, rc, "%s: %s", what,
                     d->conn ? sqlite3_errmsg(d->conn) : sqlite3_errstr(code));
    if (err)
        err->sys = d->conn ? sqlite3_extended_errcode(d->conn) : code;
    return rc;
}

/* ---- connection ---- */

static void disconnect(struct sqlite_db *d)
{
    for (size_t i = 0; i < BS_SQL_COUNT; i++) {
        sqlite3_finalize(d->stmts[i]);
        d->stmts[i] = NULL;
    }
    sqlite3_close(d->conn);
    d->conn = NULL;
    d->log_ino = 0;
    d->open_n = 0;
}

static int past_deadline(void *arg)
{
    struct sqlite_db *d = arg;

    return steady_us() > d->deadline_us;
}

static bs_rc exec(struct sqlite_db *d, const char *sql, struct bs_err *err)
{
    int code = sqlite3_exec(d->conn, sql, NULL, NULL, NULL);

    return code == SQLITE_OK ? BS_OK : fail(d, code, "SQLite", err);
}

/* A file system without shared memory keeps SQLite in another mode without a word: then nobody
 * could read beside the writer. */
static bs_rc write_ahead(struct sqlite_db *d, struct bs_err *err)
{
    sqlite3_stmt *st = NULL;
    int code = sqlite3_prepare_v2(d->conn, "PRAGMA journal_mode = WAL", -1, &st, NULL);
    bool wal = false;

    if (code == SQLITE_OK)
        code = sqlite3_step(st);
    if (code == SQLITE_ROW) {
        const char *mode = (const char *)sqlite3_column_text(st, 0);

        wal = mode && strcmp(mode, "wal") == 0;
        code = SQLITE_OK;
    }
    sqlite3_finalize(st);
    if (code != SQLITE_OK)
        return fail(d, code, "journal_mode", err);
    if (!wal)
        return bs_fail(err, BS_E_UNAVAILABLE,
                       "%.150s: this file system lets SQLite keep no write-ahead log",
                       d->options.path);
    return BS_OK;
}

static bs_rc setup(struct sqlite_db *d, struct bs_err *err)
{
    const struct bs_sqlite_options *o = &d->options;
    char sql[400];

    sqlite3_extended_result_codes(d->conn, 1);
    sqlite3_busy_timeout(d->conn, o->busy_ms);
    if (!o->reader) /* enough for the cursors of a statement over all indexes of a task */
        sqlite3_db_config(d->conn, SQLITE_DBCONFIG_LOOKASIDE, NULL, 1200, 500);
    sqlite3_db_config(d->conn, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    sqlite3_db_config(d->conn, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
    if (o->reader) {
        snprintf(
            sql, sizeof(sql),
            "PRAGMA cache_size = -%lld; PRAGMA query_only = ON;"
            "PRAGMA wal_autocheckpoint = 0; PRAGMA synchronous = FULL; PRAGMA temp_store = MEMORY;",
            (long long)o->cache_kib);
        sqlite3_progress_handler(d->conn, STEPS_BETWEEN_LOOKS, past_deadline, d);
        return exec(d, sql, err);
    }
    /* The maintenance thread moves the log into the file; 128 MiB of it stay allocated. */
    snprintf(sql, sizeof(sql),
             "PRAGMA synchronous = FULL;"
             "PRAGMA wal_autocheckpoint = 0; PRAGMA journal_size_limit = 134217728;"
             "PRAGMA cache_size = -%lld; PRAGMA temp_store = MEMORY;",
             (long long)o->cache_kib);
    BS_TRY(write_ahead(d, err));
    return exec(d, sql, err);
}

static bs_rc connect(struct sqlite_db *d, struct bs_err *err)
{
    int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_PRIVATECACHE;

    if (d->conn)
        return BS_OK;
    d->deadline_us = steady_us() + d->options.read_limit_us;
    int code = sqlite3_open_v2(d->options.path, &d->conn,
                               d->options.reader ? flags : flags | SQLITE_OPEN_CREATE, NULL);
    if (code != SQLITE_OK) {
        BS_IGNORE(fail(d, code, d->options.path, err), "the code follows");
        disconnect(d);
        return rc_of(code);
    }
    bs_rc rc = setup(d, err);
    if (rc != BS_OK)
        disconnect(d);
    return rc;
}

/* ---- the files under it ---- */

/* SQLite knows it of the database file only. */
static bool log_has_moved(struct sqlite_db *d)
{
    char path[PATH_MAX];
    struct stat st;
    int n = snprintf(path, sizeof(path), "%s-wal", d->options.path);

    if (n >= (int)sizeof(path) || stat(path, &st) != 0)
        return d->log_ino != 0;
    if (d->log_ino == 0)
        d->log_ino = st.st_ino;
    return d->log_ino != st.st_ino;
}

static bool files_are_there(struct sqlite_db *d)
{
    int moved = 0;

    sqlite3_file_control(d->conn, "main", SQLITE_FCNTL_HAS_MOVED, &moved);
    return !moved && !log_has_moved(d);
}

static bs_rc fail_gone(struct bs_err *err)
{
    return bs_fail(err, BS_E_UNAVAILABLE,
                   "the store's file or its write-ahead log was moved, removed or replaced while "
                   "in use: stop the server, put back the right files, start it again");
}

/* What was committed into files without a name is lost at the end of the process. The log may be
 * all that is missing: then its frames still get into the file. */
static bs_rc give_up(struct sqlite_db *d, struct bs_err *err)
{
    d->gone = true;
    sqlite3_wal_checkpoint_v2(d->conn, NULL, SQLITE_CHECKPOINT_FULL, NULL, NULL);
    BS_IGNORE(fail_gone(err), "it is told as unknown");
    if (err)
        err->rc = BS_E_UNKNOWN;
    return BS_E_UNKNOWN;
}

/* ---- statements ---- */

static void forget_open(struct sqlite_db *d, enum bs_sql sql)
{
    for (uint32_t i = 0; i < d->open_n; i++) {
        if (d->open[i] == sql) {
            d->open[i] = d->open[--d->open_n];
            return;
        }
    }
}

static void end_statement(struct sqlite_db *d, enum bs_sql sql)
{
    sqlite3_reset(d->stmts[sql]);
    forget_open(d, sql);
}

static void end_all(struct sqlite_db *d)
{
    while (d->open_n > 0)
        end_statement(d, d->open[0]);
}

static bs_rc prepare(struct sqlite_db *d, enum bs_sql sql, struct bs_err *err)
{
    BS_TRY(connect(d, err));
    if (d->stmts[sql])
        return BS_OK;
    int code = sqlite3_prepare_v3(d->conn, d->dialect->statements[sql], -1,
                                  SQLITE_PREPARE_PERSISTENT, &d->stmts[sql], NULL);
    return code == SQLITE_OK ? BS_OK : fail(d, code, bs_sql_names[sql], err);
}

static int bind_one(sqlite3_stmt *st, int at, const struct bs_val *v)
{
    switch (v->type) {
    case BS_VAL_NULL:
        return sqlite3_bind_null(st, at);
    case BS_VAL_I64:
        return sqlite3_bind_int64(st, at, v->i);
    case BS_VAL_TEXT:
        return sqlite3_bind_text64(st, at, v->s.n ? v->s.p : "", v->s.n, SQLITE_STATIC,
                                   SQLITE_UTF8);
    case BS_VAL_BYTES:
        return v->s.n ? sqlite3_bind_blob64(st, at, v->s.p, v->s.n, SQLITE_STATIC)
                      : sqlite3_bind_zeroblob(st, at, 0);
    }
    return SQLITE_MISUSE;
}

static int bind(sqlite3_stmt *st, const struct bs_val *args, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        int code = bind_one(st, (int)i + 1, &args[i]);
        if (code != SQLITE_OK)
            return code;
    }
    return SQLITE_OK;
}

/* Binds and makes the first step. SQLITE_ROW leaves the statement open. */
static bs_rc start(struct sqlite_db *d, enum bs_sql sql, const struct bs_val *args, uint32_t n,
                   int *ret_code, struct bs_err *err)
{
    sqlite3_stmt *st = d->stmts[sql];
    int code = bind(st, args, n);

    if (d->options.reader)
        d->deadline_us = steady_us() + d->options.read_limit_us;
    if (code == SQLITE_OK)
        code = sqlite3_step(st);
    if (code == SQLITE_DONE || code == SQLITE_ROW) {
        *ret_code = code;
        return BS_OK;
    }
    bs_rc rc = fail(d, code, bs_sql_names[sql], err);
    sqlite3_reset(st);
    return rc;
}

static bs_rc sqlite_run(struct bs_db *db, enum bs_sql sql, const struct bs_val *args, uint32_t n,
                        int64_t *ret_changes, struct bs_err *err)
{
    struct sqlite_db *d = self(db);
    int code = 0;

    BS_TRY(prepare(d, sql, err));
    forget_open(d, sql);
    sqlite3_reset(d->stmts[sql]);
    BS_TRY(start(d, sql, args, n, &code, err));
    d->first_row[sql] = code == SQLITE_ROW;
    if (code == SQLITE_ROW) {
        BS_ASSERT(d->open_n < BS_SQL_COUNT);
        d->open[d->open_n++] = sql;
    } else {
        sqlite3_reset(d->stmts[sql]);
    }
    if (ret_changes)
        *ret_changes = sqlite3_stmt_readonly(d->stmts[sql]) ? 0 : sqlite3_changes64(d->conn);
    return BS_OK;
}

static bs_rc sqlite_run_many(struct bs_db *db, enum bs_sql sql, const struct bs_val *args,
                             uint32_t cols, uint32_t n, struct bs_err *err)
{
    struct sqlite_db *d = self(db);

    BS_TRY(prepare(d, sql, err));
    for (uint32_t i = 0; i < n; i++) {
        int code = 0;
        BS_TRY(start(d, sql, args + (size_t)i * cols, cols, &code, err));
        sqlite3_reset(d->stmts[sql]);
    }
    return BS_OK;
}

static struct bs_val column(sqlite3_stmt *st, int i)
{
    switch (sqlite3_column_type(st, i)) {
    case SQLITE_NULL:
        return bs_null();
    case SQLITE_INTEGER:
        return bs_i64(sqlite3_column_int64(st, i));
    case SQLITE_BLOB: {
        const void *p = sqlite3_column_blob(st, i);
        return bs_bytes((struct bs_str){ p, (size_t)sqlite3_column_bytes(st, i) });
    }
    default: {
        const void *p = sqlite3_column_text(st, i);
        return bs_text((struct bs_str){ p, (size_t)sqlite3_column_bytes(st, i) });
    }
    }
}

static bool is_open(const struct sqlite_db *d, enum bs_sql sql)
{
    for (uint32_t i = 0; i < d->open_n; i++) {
        if (d->open[i] == sql)
            return true;
    }
    return false;
}

static bs_rc sqlite_next(struct bs_db *db, enum bs_sql sql, struct bs_val *cols, uint32_t max,
                         bool *ret_more, struct bs_err *err)
{
    struct sqlite_db *d = self(db);
    sqlite3_stmt *st = d->stmts[sql];
    bool stands_on_row = d->first_row[sql];

    *ret_more = false;
    if (!is_open(d, sql))
        return BS_OK;
    int code = stands_on_row ? SQLITE_ROW : sqlite3_step(st);
    d->first_row[sql] = false;
    if (code != SQLITE_ROW) {
        bs_rc rc = code == SQLITE_DONE ? BS_OK : fail(d, code, bs_sql_names[sql], err);
        end_statement(d, sql);
        return rc;
    }
    int n = sqlite3_column_count(st);
    for (int i = 0; i < n && i < (int)max; i++)
        cols[i] = column(st, i);
    *ret_more = true;
    return BS_OK;
}

/* ---- transactions ---- */

static bs_rc sqlite_begin(struct bs_db *db, struct bs_err *err)
{
    struct sqlite_db *d = self(db);

    if (d->gone)
        return fail_gone(err);
    BS_TRY(connect(d, err));
    return exec(d, d->options.reader ? "BEGIN" : "BEGIN IMMEDIATE", err);
}

static void sqlite_rollback(struct bs_db *db)
{
    struct sqlite_db *d = self(db);

    if (!d->conn)
        return;
    end_all(d);
    if (sqlite3_get_autocommit(d->conn))
        return;
    if (sqlite3_exec(d->conn, "ROLLBACK", NULL, NULL, NULL) != SQLITE_OK)
        disconnect(d);
}

/* A failed write at the end may or may not have reached the disk: only a new look can tell. */
static bs_rc sqlite_commit(struct bs_db *db, struct bs_err *err)
{
    struct sqlite_db *d = self(db);

    BS_ASSERT(d->conn);
    end_all(d);
    int code = sqlite3_exec(d->conn, "COMMIT", NULL, NULL, NULL);
    if (code == SQLITE_OK)
        return d->options.reader || files_are_there(d) ? BS_OK : give_up(d, err);
    bs_rc rc = fail(d, code, "commit", err);
    if ((code & 0xff) == SQLITE_IOERR || (code & 0xff) == SQLITE_CORRUPT) {
        disconnect(d);
        rc = BS_E_UNKNOWN;
    }
    if (err)
        err->rc = rc;
    return rc;
}

static bs_rc sqlite_script(struct bs_db *db, const char *text, struct bs_err *err)
{
    struct sqlite_db *d = self(db);

    BS_TRY(connect(d, err));
    return exec(d, text, err);
}

/* ---- a copy ---- */

/* The copy is made anew if anything fails, so it needs no journal; whoever wanted it syncs it. */
static bs_rc open_target(const char *path, sqlite3 **ret, struct bs_err *err)
{
    int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_PRIVATECACHE;
    int code = sqlite3_open_v2(path, ret, flags, NULL);

    if (code == SQLITE_OK)
        code = sqlite3_exec(*ret, "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF", NULL, NULL,
                            NULL);
    if (code == SQLITE_OK)
        return BS_OK;
    bs_rc rc = bs_fail(err, rc_of(code), "%.150s: %s", path, sqlite3_errmsg(*ret));
    sqlite3_close(*ret);
    return rc;
}

/* One step is one read transaction: steps of a few pages would begin again at every commit of
 * another. */
/* Piece by piece, each on the disk before the next: a gigabyte that is written all at once keeps
 * the commits of the server waiting for seconds. The open transaction keeps every piece of one
 * instant; without it the copy would begin anew with each commit. */
static int copy_pieces(sqlite3 *from, sqlite3 *to, int fd)
{
    sqlite3_backup *b = sqlite3_backup_init(to, "main", from, "main");
    int code = SQLITE_OK;

    if (!b)
        return sqlite3_errcode(to);
    while (code == SQLITE_OK) {
        code = sqlite3_backup_step(b, COPY_PAGES);
        if (code == SQLITE_OK && fdatasync(fd) != 0)
            code = SQLITE_IOERR_FSYNC;
    }
    int end = sqlite3_backup_finish(b);
    return code == SQLITE_DONE ? end : code;
}

static int copy_all(sqlite3 *from, sqlite3 *to, int fd)
{
    int code = sqlite3_exec(from, "BEGIN; SELECT 1 FROM sqlite_master LIMIT 1", NULL, NULL, NULL);

    if (code == SQLITE_OK)
        code = copy_pieces(from, to, fd);
    (void)sqlite3_exec(from, "ROLLBACK", NULL, NULL, NULL);
    return code;
}

static bs_rc sqlite_copy(struct bs_db *db, const char *path, struct bs_err *err)
{
    struct sqlite_db *d = self(db);
    sqlite3 *to = NULL;
    bs_rc rc = BS_OK;

    BS_TRY(connect(d, err));
    BS_TRY(open_target(path, &to, err));
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    int code = fd >= 0 ? copy_all(d->conn, to, fd) : SQLITE_CANTOPEN;
    if (fd >= 0)
        close(fd);
    if (code != SQLITE_OK)
        rc = bs_fail(err, rc_of(code), "copying to %.150s: %s", path, sqlite3_errstr(code));
    sqlite3_close(to);
    return rc;
}

static void sqlite_close(struct bs_db *db)
{
    if (!db)
        return;
    struct sqlite_db *d = self(db);
    disconnect(d);
    d->magic = 0;
    free((void *)(uintptr_t)d->options.path);
    free(d);
}

static const struct bs_db_ops sqlite_ops = {
    .name = "sqlite",
    .begin = sqlite_begin,
    .commit = sqlite_commit,
    .rollback = sqlite_rollback,
    .run = sqlite_run,
    .run_many = sqlite_run_many,
    .next = sqlite_next,
    .script = sqlite_script,
    .copy = sqlite_copy,
    .close = sqlite_close,
};

bs_rc bs_sqlite_open(const struct bs_sqlite_options *o, struct bs_db **ret, struct bs_err *err)
{
    struct sqlite_db *d = calloc(1, sizeof(*d));
    char *path = strdup(o->path);

    if (!d || !path) {
        free(d);
        free(path);
        return bs_fail(err, BS_E_NOMEM, "no memory to open %s", o->path);
    }
    /* Before SQLite is first used: counting its memory takes a mutex at every allocation, and
     * nobody reads the counts. Later calls are refused and change nothing. */
    sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
    *d = (struct sqlite_db){ .base.ops = &sqlite_ops, .magic = MAGIC, .options = *o };
    d->options.path = path;
    d->dialect = bs_dialect_find("sqlite");
    BS_ASSERT(d->dialect);
    if (d->options.cache_kib == 0)
        d->options.cache_kib = o->reader ? 2 << 10 : 32 << 10;
    if (d->options.read_limit_us == 0)
        d->options.read_limit_us = 5000000;
    if (d->options.busy_ms == 0)
        d->options.busy_ms = o->reader ? 50 : 2000;
    bs_rc rc = connect(d, err);
    if (rc != BS_OK) {
        sqlite_close(&d->base);
        return rc;
    }
    *ret = &d->base;
    return BS_OK;
}
