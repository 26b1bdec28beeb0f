/* The committer: takes what waits, best rank first, applies it as one transaction, answers. Batches
 * form by themselves while a commit runs. */
#include "store/committer.h"

#include "store/inner.h"

#include <stdlib.h>

enum {
    CAP = 4096,
    BATCH_OPS = 2048,
    BATCH_BYTES = 8 << 20,
    INTAKE_BYTES = 64 << 20,
    PATIENCE_US = 1500000,
    BACKOFF_FIRST_US = 20000,
    BACKOFF_MAX_US = 1000000,
    COMMITTER_MAGIC = 0x434f4d4d,
};

/* Works as a queue by their mailbox nodes. */
struct works {
    struct bs_node *head, *tail;
    uint32_t n;
};

struct bs_committer {
    struct bs_actor actor;
    uint32_t magic;
    struct bs_committer_options o;
    struct bs_mailbox mail;
    struct works waiting[BS_RANK_COUNT]; /* out of the mailbox, in no batch yet                  */
    struct works batch;                  /* being applied; kept whole while its answer is lost   */
    struct bs_op **ops;                  /* of the batch */
    uint32_t ops_n, ops_cap;
    struct bs_time since;    /* when the present batch first failed; 0: it has not          */
    struct bs_time again_at; /* not before this; 0: at once                                 */
    struct bs_span backoff;
    bool lost; /* some answer of the present batch was lost: it may stand already */
    _Atomic bool healthy;
    _Atomic size_t intake_bytes; /* of intake's works that are not answered yet */
    _Atomic uint64_t commits, ops_done, failures, reruns, us_sum, us_max;
#ifdef BS_PLANTED
    struct bs_op gone; /* stands for an operation whose owner has it back already */
#endif
};

static struct bs_committer *self(struct bs_actor *a)
{
    struct bs_committer *c = BS_CONTAINER(a, struct bs_committer, actor);

    BS_ASSERT(c->magic == COMMITTER_MAGIC);
    return c;
}

static struct bs_work *work_of(struct bs_node *n)
{
    return BS_CONTAINER(n, struct bs_work, node);
}

static void push(struct works *q, struct bs_node *n)
{
    n->next = NULL;
    if (q->tail)
        q->tail->next = n;
    else
        q->head = n;
    q->tail = n;
    q->n++;
}

static struct bs_node *pop(struct works *q)
{
    struct bs_node *n = q->head;

    if (!n)
        return NULL;
    q->head = n->next;
    if (!q->head)
        q->tail = NULL;
    q->n--;
    return n;
}

static void answer(struct bs_committer *c, struct bs_work *w, bs_rc rc, const struct bs_err *err)
{
    if (w->rank == BS_RANK_INTAKE)
        atomic_fetch_sub(&c->intake_bytes, w->bytes);
    w->done(w, rc, err);
}

/* ---- forming a batch ---- */

static void empty_mailbox(struct bs_committer *c)
{
    for (uint32_t lane = 0; lane < BS_RANK_COUNT; lane++) {
        size_t room = c->o.batch_ops_max - BS_MIN(c->waiting[lane].n, c->o.batch_ops_max);
        struct bs_node *n = room ? bs_mailbox_take_lane(&c->mail, lane, room) : NULL;

        while (n) {
            struct bs_node *after = n->next;

            push(&c->waiting[lane], n);
            n = after;
        }
    }
}

static bool reserve_ops(struct bs_committer *c, uint32_t n)
{
    if (n <= c->ops_cap)
        return true;
    struct bs_op **more = realloc(c->ops, n * sizeof(struct bs_op *));
    if (!more)
        return false;
    c->ops = more;
    c->ops_cap = n;
    return true;
}

/* The first work always fits, whatever its size. */
static bool add_work(struct bs_committer *c, struct bs_work *w, size_t *bytes)
{
    bool fits = c->ops_n + w->n <= c->o.batch_ops_max && *bytes + w->bytes <= c->o.batch_bytes_max;

    if ((c->batch.n > 0 && !fits) || !reserve_ops(c, c->ops_n + w->n))
        return false;
    for (uint32_t i = 0; i < w->n; i++)
        c->ops[c->ops_n++] = w->ops[i];
    *bytes += w->bytes;
    return true;
}

static void form_batch(struct bs_committer *c)
{
    size_t bytes = 0;

    c->ops_n = 0;
    c->lost = false;
    c->since = BS_TIME_NONE;
    for (uint32_t rank = 0; rank < BS_RANK_COUNT; rank++) {
        struct works *q = &c->waiting[rank];

        while (q->head) {
            if (!add_work(c, work_of(q->head), &bytes))
                return;
            push(&c->batch, pop(q));
        }
    }
}

static void list_ops_again(struct bs_committer *c)
{
    c->ops_n = 0;
    for (struct bs_node *n = c->batch.head; n; n = n->next) {
        struct bs_work *w = work_of(n);

        for (uint32_t i = 0; i < w->n; i++)
            c->ops[c->ops_n++] = w->ops[i];
    }
}

/* ---- answers ---- */

static void set_health(struct bs_committer *c, bool healthy, const struct bs_err *err)
{
    bool was = atomic_exchange(&c->healthy, healthy);

    if (was != healthy && c->o.on_health)
        c->o.on_health(c->o.health_ctx, healthy, err);
}

static void answer_batch(struct bs_committer *c)
{
    bs_mailbox_cork();
    for (struct bs_node *n = pop(&c->batch); n; n = pop(&c->batch))
        answer(c, work_of(n), BS_OK, NULL);
    bs_mailbox_uncork();
}

/* Results of calls in flight must not be lost: the engine's work stays until it is done. */
static bool is_kept(const struct bs_work *w)
{
    if (BS_PLANT(DROP_ON_FULL))
        return false;
    return w->rank == BS_RANK_FINISH || w->rank == BS_RANK_CLAIM;
}

static void answer_impatient(struct bs_committer *c, bs_rc rc, const struct bs_err *err)
{
    struct works all = c->batch;

    c->batch = (struct works){ 0 };
    for (struct bs_node *n = pop(&all); n; n = pop(&all)) {
        if (is_kept(work_of(n)))
            push(&c->batch, n);
        else
            answer(c, work_of(n), rc, err);
    }
    list_ops_again(c);
}

/* People and intake do not wait for a store that is away. */
static void refuse_waiting(struct bs_committer *c, const struct bs_err *err)
{
    for (uint32_t rank = 0; rank < BS_RANK_COUNT; rank++) {
        if (rank == BS_RANK_FINISH || rank == BS_RANK_CLAIM)
            continue;
        for (struct bs_node *n = pop(&c->waiting[rank]); n; n = pop(&c->waiting[rank]))
            answer(c, work_of(n), BS_E_UNAVAILABLE, err);
    }
}

/* ---- running a batch ---- */

#ifdef BS_PLANTED
/* Planted bug: intake hears success before the transaction is committed. */
static void ack_early(void *ctx)
{
    struct bs_committer *c = ctx;
    struct works all = c->batch;
    uint32_t at = 0;

    c->gone = (struct bs_op){ .kind = BS_OP_ALERT };
    c->batch = (struct works){ 0 };
    for (struct bs_node *n = pop(&all); n; n = pop(&all)) {
        struct bs_work *w = work_of(n);
        bool early = w->rank == BS_RANK_INTAKE;

        for (uint32_t i = 0; i < w->n; i++, at++) {
            if (early)
                c->ops[at] = &c->gone;
        }
        if (early)
            answer(c, w, BS_OK, NULL);
        else
            push(&c->batch, n);
    }
}
#endif

static void mark_rerun(struct bs_committer *c)
{
    for (uint32_t i = 0; i < c->ops_n; i++) {
        if (BS_PLANT(RERUN_NEW_ID)) {
            c->ops[i]->id += 1 << 11;
            if (c->ops[i]->kind == BS_OP_SUBMIT)
                c->ops[i]->submit.task->id = c->ops[i]->id;
        } else {
            c->ops[i]->rerun = true;
        }
    }
    c->lost = true;
}

static void succeeded(struct bs_committer *c, uint32_t ops, int64_t us)
{
    atomic_fetch_add(&c->commits, 1);
    atomic_fetch_add(&c->ops_done, ops);
    atomic_fetch_add(&c->us_sum, (uint64_t)us);
    if ((uint64_t)us > atomic_load(&c->us_max))
        atomic_store(&c->us_max, (uint64_t)us);
    c->since = c->again_at = BS_TIME_NONE;
    c->backoff = BS_US(0);
    set_health(c, true, NULL);
    if (c->o.on_hints)
        c->o.on_hints(c->o.hints_ctx, bs_store_hints(c->o.store));
    answer_batch(c);
}

static void wait_longer(struct bs_committer *c, struct bs_time now)
{
    int64_t us =
        BS_MIN(BS_MAX(c->backoff.us * 2, (int64_t)BACKOFF_FIRST_US), (int64_t)BACKOFF_MAX_US);

    c->backoff = BS_US(us);
    c->again_at = bs_time_add(now, c->backoff);
}

static void failed(struct bs_committer *c, bs_rc rc, const struct bs_err *err, struct bs_time now)
{
    atomic_fetch_add(&c->failures, 1);
    if (c->since.us == 0)
        c->since = now;
    bool patient = bs_time_diff(now, c->since).us < c->o.patience.us;

    if (rc == BS_E_UNKNOWN)
        mark_rerun(c);
    if ((rc == BS_E_BUSY || c->lost) && patient) {
        atomic_fetch_add(&c->reruns, 1);
        if (rc == BS_E_UNKNOWN && c->backoff.us == 0) {
            c->backoff = BS_US(1); /* the first re-run is at once, later ones are not */
            c->again_at = now;
        } else {
            wait_longer(c, now);
        }
        return;
    }
    set_health(c, false, err);
    answer_impatient(c, c->lost ? BS_E_UNKNOWN : BS_E_UNAVAILABLE, err);
    refuse_waiting(c, err);
    wait_longer(c, now);
}

static void run_batch(struct bs_committer *c, struct bs_time now)
{
    struct bs_err err = { 0 };
    uint32_t ops = c->ops_n;
    int64_t began = bs_boot_us();

#ifdef BS_PLANTED
    c->o.store->before_commit = BS_PLANT(ACK_BEFORE_COMMIT) ? ack_early : NULL;
    c->o.store->before_commit_ctx = c;
#endif
    bs_rc rc = bs_store_apply(c->o.store, c->ops, c->ops_n, &err);
    if (rc == BS_OK) {
        succeeded(c, ops, bs_boot_us() - began);
        return;
    }
#ifdef BS_PLANTED
    list_ops_again(c); /* without those that were answered early */
#endif
    failed(c, rc, &err, now);
}

static bool anything_waits(const struct bs_committer *c)
{
    for (uint32_t rank = 0; rank < BS_RANK_COUNT; rank++) {
        if (c->waiting[rank].head)
            return true;
    }
    return false;
}

static struct bs_time step(struct bs_actor *a, struct bs_time now)
{
    struct bs_committer *c = self(a);
    static const struct bs_err away = { .rc = BS_E_UNAVAILABLE,
                                        .msg = "the store does not answer" };

    empty_mailbox(c);
    if (!atomic_load(&c->healthy) && bs_time_before(now, c->again_at))
        refuse_waiting(c, &away);
    if (bs_time_before(now, c->again_at))
        return c->batch.head || anything_waits(c) ? c->again_at : BS_NEVER;
    if (!c->batch.head)
        form_batch(c);
    if (!c->batch.head) /* without memory for the list of operations: a little later */
        return anything_waits(c) ? bs_time_add(now, BS_US(BACKOFF_FIRST_US)) : BS_NEVER;
    run_batch(c, now);
    if (c->batch.head)
        return c->again_at;
    return anything_waits(c) ? now : BS_NEVER;
}

/* ---- life ---- */

bs_rc bs_committer_new(const struct bs_committer_options *o, struct bs_committer **ret,
                       struct bs_err *err)
{
    struct bs_committer *c = calloc(1, sizeof(*c));
    size_t caps[BS_RANK_COUNT];

    if (!c)
        return bs_fail(err, BS_E_NOMEM, "no memory for the committer");
    c->magic = COMMITTER_MAGIC;
    c->o = *o;
    c->o.batch_ops_max = o->batch_ops_max ? o->batch_ops_max : BATCH_OPS;
    c->o.batch_bytes_max = o->batch_bytes_max ? o->batch_bytes_max : BATCH_BYTES;
    c->o.intake_bytes_max = o->intake_bytes_max ? o->intake_bytes_max : INTAKE_BYTES;
    c->o.patience = o->patience.us ? o->patience : BS_US(PATIENCE_US);
    for (uint32_t i = 0; i < BS_RANK_COUNT; i++)
        caps[i] = o->caps[i] ? o->caps[i] : CAP;
    bs_rc rc = bs_mailbox_init(&c->mail, caps, BS_RANK_COUNT, o->with_fd, err);
    if (rc != BS_OK) {
        free(c);
        return rc;
    }
    c->actor = (struct bs_actor){ .name = "committer", .step = step, .in = &c->mail };
    atomic_store(&c->healthy, true);
    *ret = c;
    return BS_OK;
}

struct bs_actor *bs_committer_actor(struct bs_committer *c)
{
    return &c->actor;
}

bool bs_committer_send(struct bs_committer *c, struct bs_work *w)
{
    BS_ASSERT(w->rank < BS_RANK_COUNT && w->n > 0 && w->done);
    if (w->rank != BS_RANK_INTAKE)
        return bs_mailbox_send(&c->mail, w->rank, &w->node);
    /* Many large ones are as full a lane as very many small ones. The node is the committer's as
     * soon as it is sent. */
    size_t bytes = w->bytes;
    size_t before = atomic_fetch_add(&c->intake_bytes, bytes);
    if ((before == 0 || before + bytes <= c->o.intake_bytes_max) &&
        bs_mailbox_send(&c->mail, w->rank, &w->node))
        return true;
    atomic_fetch_sub(&c->intake_bytes, bytes);
    return false;
}

bool bs_committer_healthy(struct bs_committer *c)
{
    return atomic_load(&c->healthy);
}

void bs_committer_figures(struct bs_committer *c, struct bs_committer_figures *ret)
{
    *ret = (struct bs_committer_figures){ .commits = atomic_load(&c->commits),
                                          .ops = atomic_load(&c->ops_done),
                                          .failures = atomic_load(&c->failures),
                                          .reruns = atomic_load(&c->reruns),
                                          .commit_us_sum = atomic_load(&c->us_sum),
                                          .commit_us_max = atomic_load(&c->us_max) };
}

void bs_committer_free(struct bs_committer *c)
{
    static const struct bs_err gone = { .rc = BS_E_UNAVAILABLE,
                                        .msg = "the store is being closed" };

    if (!c)
        return;
    BS_ASSERT(c->magic == COMMITTER_MAGIC);
    bs_mailbox_close(&c->mail);
    for (struct bs_node *n = pop(&c->batch); n; n = pop(&c->batch))
        answer(c, work_of(n), c->lost ? BS_E_UNKNOWN : BS_E_UNAVAILABLE, &gone);
    for (uint32_t rank = 0; rank < BS_RANK_COUNT; rank++) {
        for (struct bs_node *n = pop(&c->waiting[rank]); n; n = pop(&c->waiting[rank]))
            answer(c, work_of(n), BS_E_UNAVAILABLE, &gone);
    }
    for (struct bs_node *n = bs_mailbox_take(&c->mail); n; n = bs_mailbox_take(&c->mail))
        answer(c, work_of(n), BS_E_UNAVAILABLE, &gone);
    bs_mailbox_done(&c->mail);
    bs_store_close(c->o.store);
    free(c->ops);
    c->magic = 0;
    free(c);
}
