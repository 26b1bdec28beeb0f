/* Moves the write-ahead log into the file, never inside the writer. */
#include "keep/inner.h"

#include "sys/files.h"
#include "sys/log.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

enum { LOG_WORTH_IT = 4 << 20, PATH_MAX_BYTES = 4096 };

static const struct bs_span look_every = { 1000000 };

/* What of the file shows that something was written. */
struct log_file {
    int64_t size, changed_ns;
};

static struct log_file look(const char *path)
{
    struct stat st;

    if (stat(path, &st) != 0)
        return (struct log_file){ 0 };
    return (struct log_file){ (int64_t)st.st_size,
                              (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec };
}

static void note_failure(struct checkpoints *c, const struct bs_err *err)
{
    if (!c->failing)
        bs_log(BS_LOG_WARN, "store.checkpoint_failed", BS_FZ("rc", bs_rc_name(err->rc)),
               BS_FZ("message", err->msg));
    c->failing = true;
}

/* The file keeps its size when all of it has been moved, so an idle store is known by its time. */
static bool worth_it(const struct checkpoints *c, const struct log_file *f)
{
    return f->size > LOG_WORTH_IT && (c->left > 0 || f->changed_ns != c->changed_ns);
}

static void look_and_move(struct checkpoints *c)
{
    struct log_file f = look(c->log_path);
    struct bs_err err = { 0 };

    atomic_store(&c->log_bytes, f.size);
    if (!worth_it(c, &f))
        return;
    bs_rc rc = bs_store_checkpoint(c->store, &c->left, &err);
    if (rc == BS_OK) {
        c->changed_ns = f.changed_ns;
        c->failing = false;
        atomic_fetch_add(&c->done, 1);
    } else if (rc != BS_E_BUSY) {
        note_failure(c, &err);
    }
}

struct bs_time checkpoints_step(struct checkpoints *c, struct bs_time now)
{
    if (!c->store)
        return BS_NEVER;
    if (bs_time_before(now, c->at))
        return c->at;
    look_and_move(c);
    c->at = bs_time_add(now, look_every);
    return c->at;
}

bs_rc checkpoints_init(struct checkpoints *c, const struct bs_keep_options *o, struct bs_err *err)
{
    const struct bs_store_options s = { .url = o->store_url, .mode = BS_STORE_READER };
    char real[PATH_MAX_BYTES];

    if (!o->store_url)
        return BS_OK;
    BS_TRY(
        bs_path_real(o->store_path, real, sizeof(real), err)); /* the log stands beside the file */
    size_t n = strlen(real) + sizeof("-wal");
    c->log_path = malloc(n);
    if (!c->log_path)
        return bs_fail(err, BS_E_NOMEM, "no memory for the maintenance thread");
    snprintf(c->log_path, n, "%s-wal", real);
    return bs_store_open(&s, &c->store, err);
}

void checkpoints_done(struct checkpoints *c)
{
    if (c->store)
        bs_store_close(c->store);
    c->store = NULL;
    free(c->log_path);
    c->log_path = NULL;
}
