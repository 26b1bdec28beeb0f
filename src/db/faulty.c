/* The fault injector: each of the driver's calls may fail before or after it was done. */
#include "db/faulty.h"

#include <stdlib.h>

enum { MAGIC = 0x6661756c };

struct faulty_db {
    struct bs_db base;
    uint32_t magic;
    struct bs_db_ops ops; /* like the table below, under the real driver's name */
    struct bs_db *real;
    struct bs_fault_plan plan;
    int64_t left; /* matching calls until the plan fails one; meaningful with plan.fail_in > 0 */
    bool done;    /* a plan for once has failed its call */
    uint64_t trips;
    uint64_t runs[BS_SQL_COUNT];
    bs_rc (*ask)(void *ctx, enum bs_fault_call call, enum bs_fault_when when);
    void *ask_ctx;
};

static struct faulty_db *self(struct bs_db *db)
{
    struct faulty_db *f = BS_CONTAINER(db, struct faulty_db, base);

    BS_ASSERT(f->magic == MAGIC);
    return f;
}

static bool matches(const struct bs_fault_plan *p, enum bs_fault_call call, enum bs_fault_when when,
                    const enum bs_sql *sql)
{
    if (p->fail_in <= 0 || p->when != when)
        return false;
    if (p->calls && !(p->calls & (uint32_t)call))
        return false;
    return !p->one_statement || (sql && *sql == p->sql);
}

static bool trips(struct faulty_db *f, enum bs_fault_call call, enum bs_fault_when when,
                  const enum bs_sql *sql)
{
    if (!matches(&f->plan, call, when, sql))
        return false;
    if (f->left > 0)
        f->left--;
    if (f->left > 0 || f->done)
        return false;
    f->done = !f->plan.for_ever;
    f->trips++;
    return true;
}

static bs_rc fault(struct faulty_db *f, enum bs_fault_call call, enum bs_fault_when when,
                   const enum bs_sql *sql, struct bs_err *err)
{
    const char *text = when == BS_FAULT_BEFORE ? "before" : "after";
    bs_rc rc = f->ask ? f->ask(f->ask_ctx, call, when) : BS_OK;

    if (rc == BS_OK && trips(f, call, when, sql)) {
        bool lost = call == BS_FAULT_COMMIT && when == BS_FAULT_AFTER;
        rc = f->plan.rc ? f->plan.rc : (lost ? BS_E_UNKNOWN : BS_E_UNAVAILABLE);
    }
    if (rc == BS_OK)
        return BS_OK;
    return bs_fail(err, rc, "fault: %s call %d%s%s", text, (int)call, sql ? " of " : "",
                   sql ? bs_sql_names[*sql] : "");
}

static bs_rc faulty_begin(struct bs_db *db, struct bs_err *err)
{
    struct faulty_db *f = self(db);

    BS_TRY(fault(f, BS_FAULT_BEGIN, BS_FAULT_BEFORE, NULL, err));
    BS_TRY(f->real->ops->begin(f->real, err));
    return fault(f, BS_FAULT_BEGIN, BS_FAULT_AFTER, NULL, err);
}

static bs_rc faulty_commit(struct bs_db *db, struct bs_err *err)
{
    struct faulty_db *f = self(db);
    bs_rc rc = fault(f, BS_FAULT_COMMIT, BS_FAULT_BEFORE, NULL, err);

    if (rc != BS_OK) {
        f->real->ops->rollback(f->real);
        return rc;
    }
    BS_TRY(f->real->ops->commit(f->real, err));
    return fault(f, BS_FAULT_COMMIT, BS_FAULT_AFTER, NULL, err);
}

static void faulty_rollback(struct bs_db *db)
{
    struct faulty_db *f = self(db);

    f->real->ops->rollback(f->real);
}

static bs_rc faulty_run(struct bs_db *db, enum bs_sql sql, const struct bs_val *args, uint32_t n,
                        int64_t *ret_changes, struct bs_err *err)
{
    struct faulty_db *f = self(db);

    BS_TRY(fault(f, BS_FAULT_RUN, BS_FAULT_BEFORE, &sql, err));
    BS_TRY(f->real->ops->run(f->real, sql, args, n, ret_changes, err));
    f->runs[sql]++;
    return fault(f, BS_FAULT_RUN, BS_FAULT_AFTER, &sql, err);
}

static bs_rc faulty_run_many(struct bs_db *db, enum bs_sql sql, const struct bs_val *args,
                             uint32_t cols, uint32_t n, struct bs_err *err)
{
    struct faulty_db *f = self(db);

    BS_TRY(fault(f, BS_FAULT_RUN, BS_FAULT_BEFORE, &sql, err));
    BS_TRY(f->real->ops->run_many(f->real, sql, args, cols, n, err));
    f->runs[sql]++;
    return fault(f, BS_FAULT_RUN, BS_FAULT_AFTER, &sql, err);
}

static bs_rc faulty_next(struct bs_db *db, enum bs_sql sql, struct bs_val *cols, uint32_t max,
                         bool *ret_more, struct bs_err *err)
{
    struct faulty_db *f = self(db);

    BS_TRY(fault(f, BS_FAULT_NEXT, BS_FAULT_BEFORE, &sql, err));
    BS_TRY(f->real->ops->next(f->real, sql, cols, max, ret_more, err));
    return fault(f, BS_FAULT_NEXT, BS_FAULT_AFTER, &sql, err);
}

static bs_rc faulty_script(struct bs_db *db, const char *text, struct bs_err *err)
{
    struct faulty_db *f = self(db);

    BS_TRY(fault(f, BS_FAULT_SCRIPT, BS_FAULT_BEFORE, NULL, err));
    BS_TRY(f->real->ops->script(f->real, text, err));
    return fault(f, BS_FAULT_SCRIPT, BS_FAULT_AFTER, NULL, err);
}

static bs_rc faulty_copy(struct bs_db *db, const char *path, struct bs_err *err)
{
    struct faulty_db *f = self(db);

    BS_TRY(fault(f, BS_FAULT_SCRIPT, BS_FAULT_BEFORE, NULL, err));
    BS_TRY(f->real->ops->copy(f->real, path, err));
    return fault(f, BS_FAULT_SCRIPT, BS_FAULT_AFTER, NULL, err);
}

static void faulty_close(struct bs_db *db)
{
    if (!db)
        return;
    struct faulty_db *f = self(db);
    f->real->ops->close(f->real);
    f->magic = 0;
    free(f);
}

static const struct bs_db_ops faulty_ops = {
    .name = "",
    .begin = faulty_begin,
    .commit = faulty_commit,
    .rollback = faulty_rollback,
    .run = faulty_run,
    .run_many = faulty_run_many,
    .next = faulty_next,
    .script = faulty_script,
    .copy = faulty_copy,
    .close = faulty_close,
};

struct bs_db *bs_faulty_new(struct bs_db *real)
{
    struct faulty_db *f = calloc(1, sizeof(*f));

    if (!f)
        return NULL;
    f->magic = MAGIC;
    f->real = real;
    f->ops = faulty_ops;
    f->ops.name = real->ops->name;
    f->base.ops = &f->ops;
    return &f->base;
}

void bs_faulty_plan(struct bs_db *faulty, const struct bs_fault_plan *plan)
{
    struct faulty_db *f = self(faulty);

    f->plan = *plan;
    f->left = plan->fail_in;
    f->done = false;
}

uint64_t bs_faulty_trips(struct bs_db *faulty)
{
    return self(faulty)->trips;
}

uint64_t bs_faulty_runs(struct bs_db *faulty, enum bs_sql sql)
{
    return self(faulty)->runs[sql];
}

void bs_faulty_hook(struct bs_db *faulty,
                    bs_rc (*ask)(void *ctx, enum bs_fault_call call, enum bs_fault_when when),
                    void *ctx)
{
    struct faulty_db *f = self(faulty);

    f->ask = ask;
    f->ask_ctx = ctx;
}
