/* Checkpoints on their own thread. */
#include "app/maintain.h"

#include "sys/files.h"
#include "sys/log.h"

#include <sys/stat.h>

enum { WAL_WORTH_IT = 4 << 20 };

/* What of the file shows that something was written. */
struct wal {
    int64_t size, changed_ns;
};

static struct wal look(const char *path)
{
    struct stat st;

    if (stat(path, &st) != 0)
        return (struct wal){ 0 };
    return (struct wal){ (int64_t)st.st_size,
                         (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec };
}

static void note_failure(struct bs_maintain *m, const struct bs_err *err)
{
    if (!m->failing)
        bs_log(BS_LOG_WARN, "store.checkpoint_failed", BS_FZ("rc", bs_rc_name(err->rc)),
               BS_FZ("message", err->msg));
    m->failing = true;
}

/* The file keeps its size when all of it has been moved, so an idle store is known by its time. */
static bool worth_it(const struct bs_maintain *m, const struct wal *w)
{
    return w->size > WAL_WORTH_IT && (m->left > 0 || w->changed_ns != m->changed_ns);
}

static struct bs_time step(struct bs_actor *a, struct bs_time now)
{
    struct bs_maintain *m = BS_CONTAINER(a, struct bs_maintain, actor);
    struct wal w = look(m->wal_path);
    struct bs_err err = { 0 };

    atomic_store(&m->wal_bytes, w.size);
    if (worth_it(m, &w)) {
        bs_rc rc = bs_store_checkpoint(m->store, &m->left, &err);
        if (rc == BS_OK) {
            m->changed_ns = w.changed_ns;
            m->failing = false;
            atomic_fetch_add(&m->checkpoints, 1);
        } else if (rc != BS_E_BUSY) {
            note_failure(m, &err);
        }
    }
    return bs_time_add(now, BS_SEC(1));
}

bs_rc bs_maintain_init(struct bs_maintain *m, const char *store_url, const char *store_path,
                       struct bs_arena *a, struct bs_err *err)
{
    struct bs_store_options o = { .url = store_url, .mode = BS_STORE_READER };
    size_t cap = 1;
    char real[4096];

    *m = (struct bs_maintain){ .actor = { .name = "maintain", .step = step } };
    BS_TRY(bs_path_real(store_path, real, sizeof(real), err)); /* the log stands beside the file */
    m->wal_path = bs_arena_fmt(a, "%s-wal", real).p;
    if (!m->wal_path)
        return bs_fail(err, BS_E_NOMEM, "no memory for the maintenance thread");
    BS_TRY(bs_mailbox_init(&m->mailbox, &cap, 1, true, err));
    m->actor.in = &m->mailbox;
    return bs_store_open(&o, &m->store, err);
}

void bs_maintain_done(struct bs_maintain *m)
{
    if (m->store)
        bs_store_close(m->store);
    if (m->actor.in)
        bs_mailbox_done(&m->mailbox);
    *m = (struct bs_maintain){ 0 };
}
