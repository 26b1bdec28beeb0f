/* Opening: the lock, the driver, what kind of file it is, migrations. */
#include "db/sqlite.h"
#include "store/inner.h"
#include "sys/files.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { APPLICATION_ID = 1112757328, PATH_MAX_BYTES = 1024, CHECKED_BYTES_MAX = 64 << 20 };

const int32_t bs_store_program_version = 1;

bs_rc store_one(struct bs_store *s, enum bs_sql sql, const struct bs_val *args, uint32_t n,
                struct bs_val *cols, uint32_t cols_n, bool *ret_found, struct bs_err *err)
{
    *ret_found = false;
    BS_TRY(run(s, sql, args, n, NULL, err));
    return next(s, sql, cols, cols_n, ret_found, err);
}

/* ---- migrations ---- */

static bs_rc version_of(struct bs_store *s, int32_t *ret, struct bs_err *err)
{
    struct bs_val value[1];
    bool found = false;

    BS_TRY(ONE(s, BS_SQL_META_GET, value, &found, err, bs_text(BS_STR("schema_version"))));
    if (!found || value[0].i < 0 || value[0].i > INT32_MAX)
        return bs_fail(err, BS_E_CORRUPT, "the store does not say its version");
    *ret = (int32_t)value[0].i;
    return BS_OK;
}

static bs_rc migrate_one(struct bs_store *s, const struct bs_migration *m, struct bs_err *err)
{
    BS_TRY(s->db->ops->begin(s->db, err));
    bs_rc rc = s->db->ops->script(s->db, m->text, err);
    if (rc == BS_OK)
        rc = RUN(s, BS_SQL_META_SET, NULL, err, bs_text(BS_STR("schema_version")),
                 bs_i64(m->number));
    if (rc == BS_OK)
        rc = s->db->ops->commit(s->db, err);
    if (rc != BS_OK)
        s->db->ops->rollback(s->db);
    return rc;
}

static bs_rc migrate(struct bs_store *s, struct bs_err *err)
{
    const struct bs_dialect *d = bs_dialect_find(s->db->ops->name);

    BS_ASSERT(d && d->migrations_n == (uint32_t)bs_store_program_version);
    for (uint32_t i = (uint32_t)s->version; i < d->migrations_n; i++) {
        BS_TRY(migrate_one(s, &d->migrations[i], err));
        s->version = d->migrations[i].number;
    }
    return BS_OK;
}

/* Whose file it is: *ret_empty: nobody's yet. */
static bs_rc look_at_file(struct bs_store *s, bool *ret_empty, struct bs_err *err)
{
    struct bs_val kind[2];
    bool found = false;

    BS_ASSERT(s->db);
    BS_TRY(s->db->ops->begin(s->db, err));
    bs_rc rc = store_one(s, BS_SQL_STORE_KIND, NULL, 0, kind, 2, &found, err);
    *ret_empty = rc == BS_OK && found && kind[0].i == 0;
    if (rc == BS_OK && !*ret_empty && (!found || kind[1].i != APPLICATION_ID))
        rc = bs_fail(err, BS_E_CORRUPT, "the file is a database of another program");
    if (rc == BS_OK && !*ret_empty)
        rc = version_of(s, &s->version, err);
    s->db->ops->rollback(s->db);
    return rc;
}

/* A look through a small file costs milliseconds; a large one is left to check-store. */
static bs_rc check_small(struct bs_store *s, struct bs_err *err)
{
    struct bs_val size[1], finding[1];
    bool found = false;

    BS_TRY(s->db->ops->begin(s->db, err));
    bs_rc rc = store_one(s, BS_SQL_STORE_BYTES, NULL, 0, size, 1, &found, err);
    if (rc == BS_OK && found && size[0].i <= CHECKED_BYTES_MAX) {
        rc = store_one(s, BS_SQL_QUICK_CHECK, NULL, 0, finding, 1, &found, err);
        if (rc == BS_OK && found && !bs_str_is(finding[0].s, "ok"))
            rc = bs_fail(err, BS_E_CORRUPT, "the store is damaged: %.*s", BS_STR_FMT(finding[0].s));
    }
    s->db->ops->rollback(s->db);
    return rc;
}

static bs_rc bring_up(struct bs_store *s, const struct bs_store_options *o, struct bs_err *err)
{
    bool empty = false;

    BS_TRY(look_at_file(s, &empty, err));
    if (s->version > bs_store_program_version)
        return bs_fail(err, BS_E_REFUSED,
                       "the store has version %d, this program knows %d: a newer program made it",
                       s->version, bs_store_program_version);
    if (!empty && o->mode == BS_STORE_WRITER)
        BS_TRY(check_small(s, err));
    if (s->version == bs_store_program_version)
        return BS_OK;
    if (o->mode == BS_STORE_READER)
        return bs_fail(err, BS_E_REFUSED, "the store is not ready to be read (version %d)",
                       s->version);
    if (!empty && !o->migrate)
        return bs_fail(err, BS_E_REFUSED,
                       "the store has version %d, this program needs %d: run `backstop migrate`",
                       s->version, bs_store_program_version);
    return migrate(s, err);
}

/* ---- opening ---- */

/* Payments' data: nobody else reads it. SQLite gives the log beside it the same rights. Only a file
 * that is not there is opened, because closing one would drop the locks of this process on it. */
static void make_private(const char *file)
{
    if (access(file, F_OK) == 0)
        return;
    int fd = open(file, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd >= 0)
        close(fd);
}

/* SQLite names its log after the file: under two names there would be two logs for one file. */
static bs_rc refuse_many_names(const char *file, struct bs_err *err)
{
    struct stat st;

    if (stat(file, &st) == 0 && st.st_nlink > 1)
        return bs_fail(err, BS_E_REFUSED, "%.150s has %u names (hard links); keep one of them",
                       file, (unsigned)st.st_nlink);
    return BS_OK;
}

/* Whoever took the lock file away may have let another in: then this process writes no more. */
bs_rc store_keep_lock(struct bs_store *s, struct bs_err *err)
{
    int fd = -1;

    if (s->lock_fd < 0 || bs_file_is(s->lock_path, s->lock_fd))
        return BS_OK;
    bs_rc rc = bs_file_lock(s->lock_path, &fd, err);
    if (rc != BS_OK)
        return bs_fail(err, BS_E_UNAVAILABLE, "%.150s was removed and cannot be taken again",
                       s->lock_path);
    close(s->lock_fd);
    s->lock_fd = fd;
    return BS_OK;
}

static bs_rc take_lock(struct bs_store *s, const char *file, struct bs_err *err)
{
    char lock[PATH_MAX_BYTES + 8];

    snprintf(lock, sizeof(lock), "%s.lock", file);
    s->lock_path = strdup(lock);
    if (!s->lock_path)
        return bs_fail(err, BS_E_NOMEM, "no memory for a path");
    BS_TRY(refuse_many_names(file, err));
    bs_rc rc = bs_file_lock(lock, &s->lock_fd, err);
    if (rc == BS_E_REFUSED)
        return bs_fail(err, rc, "%s is in use by another Backstop process", file);
    return rc;
}

static bs_rc open_sqlite(struct bs_store *s, const struct bs_store_options *o, struct bs_str path,
                         struct bs_err *err)
{
    char given[PATH_MAX_BYTES], file[PATH_MAX_BYTES];
    struct bs_sqlite_options so = { .path = file,
                                    .reader = o->mode == BS_STORE_READER,
                                    .cache_kib = o->cache_kib,
                                    .read_limit_us = o->read_limit.us };

    if (path.n == 0 || path.n >= sizeof(given))
        return bs_fail(err, BS_E_INVALID, "the store's path must have 1 to %d bytes",
                       PATH_MAX_BYTES - 1);
    snprintf(given, sizeof(given), "%.*s", BS_STR_FMT(path));
    if (o->mode == BS_STORE_WRITER)
        BS_TRY(bs_folder_of(given, err));
    BS_TRY(bs_path_real(given, file, sizeof(file), err));
    if (o->mode == BS_STORE_WRITER) {
        BS_TRY(take_lock(s, file, err));
        make_private(file);
    }
    bs_rc rc = bs_sqlite_open(&so, &s->db, err);
    if (rc == BS_E_CORRUPT)
        return bs_fail(err, rc, "%s is not a Backstop store, or it is damaged", file);
    return rc;
}

static bs_rc open_db(struct bs_store *s, const struct bs_store_options *o, struct bs_err *err)
{
    struct bs_str url = bs_str_of(o->url), sqlite = BS_STR("sqlite:");

    if (o->db) {
        s->db = o->db;
        return bs_db_check(s->db, err);
    }
    if (!bs_str_starts(url, sqlite))
        return bs_fail(err, BS_E_INVALID, "the store must be sqlite:PATH, not %.100s",
                       o->url ? o->url : "nothing");
    return open_sqlite(s, o, (struct bs_str){ url.p + sqlite.n, url.n - sqlite.n }, err);
}

bs_rc bs_store_open(const struct bs_store_options *o, struct bs_store **ret, struct bs_err *err)
{
    struct bs_store *s = calloc(1, sizeof(*s));

    if (!s)
        return bs_fail(err, BS_E_NOMEM, "no memory for a store");
    s->magic = STORE_MAGIC;
    s->mode = o->mode;
    s->lock_fd = -1;
    bs_rc rc = open_db(s, o, err);
    if (rc == BS_OK)
        rc = bring_up(s, o, err);
    if (rc != BS_OK) {
        bs_store_close(s);
        return rc;
    }
    *ret = s;
    return BS_OK;
}

void bs_store_close(struct bs_store *s)
{
    if (!s)
        return;
    STORE_CHECK(s);
    if (s->db)
        s->db->ops->close(s->db);
    if (s->lock_fd >= 0)
        close(s->lock_fd);
    free(s->lock_path);
    stops_forget(s);
    bs_arena_free(&s->scratch);
    free(s->order);
    s->magic = 0;
    free(s);
}

int32_t bs_store_version(struct bs_store *s)
{
    STORE_CHECK(s);
    return s->version;
}
