/* The contract's world and its verbs. */
#include "world.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

const struct contract_factory *contract_factory;

/* ---- life ---- */

static void open_store(struct world *w)
{
    struct bs_db *real = w->factory->open_db(w->dir);

    assert_non_null(real);
    w->db = bs_faulty_new(real);
    assert_non_null(w->db);
    const struct bs_store_options o = { .mode = BS_STORE_WRITER, .db = w->db };
    if (bs_store_open(&o, &w->store, &w->err) != BS_OK)
        fail_msg("the store does not open: %s", w->err.msg);
}

/* In memory where that is possible: thousands of stores are made. */
void world_folder(struct world *w)
{
    const char *at = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";

    snprintf(w->dir, sizeof(w->dir), "%s/bs-contract-XXXXXX", at);
    assert_non_null(mkdtemp(w->dir));
}

struct world *world_new(const struct contract_factory *f)
{
    struct world *w = calloc(1, sizeof(*w));

    assert_non_null(w);
    w->factory = f;
    w->now = (struct bs_time){ START_US };
    w->policy = bs_policy_default;
    w->policy.backoff.jitter_pct = 0;
    bs_ids_init(&w->ids, 1);
    world_folder(w);
    open_store(w);
    return w;
}

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *ftw)
{
    (void)st;
    (void)kind;
    (void)ftw;
    return remove(path);
}

void world_drop_folder(const char *dir)
{
    nftw(dir, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

void world_close(struct world *w)
{
    bs_store_close(w->store);
    w->store = NULL;
}

void world_reopen(struct world *w)
{
    world_close(w);
    open_store(w);
}

void world_drop(struct world *w)
{
    bs_store_close(w->store);
    bs_leased_free(w->leased);
    bs_arena_free(&w->arena);
    world_drop_folder(w->dir);
    free(w);
}

void assert_sound(struct world *w)
{
    BS_CLEANUP(bs_buf_free) struct bs_buf report = { .max = 1 << 16 };

    if (bs_store_check(w->store, &report, &w->err) != BS_OK)
        fail_msg("the check fails: %s", w->err.msg);
    assert_string_equal(bs_buf_str(&report).p, "");
}

void world_end(struct world *w)
{
    if (w->store) {
        bs_faulty_plan(w->db, &(struct bs_fault_plan){ 0 });
        assert_sound(w);
    }
    world_drop(w);
}

int case_setup(void **state)
{
    *state = world_new(contract_factory);
    return 0;
}

int case_teardown(void **state)
{
    world_end(*state);
    return 0;
}

void advance(struct world *w, int64_t us)
{
    w->now.us += us;
}

/* ---- operations ---- */

struct bs_op op_of(struct world *w, enum bs_op_kind kind)
{
    return (struct bs_op){ .kind = kind, .id = bs_ids_next(&w->ids, w->now), .now = w->now };
}

void apply_all(struct world *w, struct bs_op **ops, uint32_t n)
{
    if (bs_store_apply(w->store, ops, n, &w->err) != BS_OK)
        fail_msg("apply: %s", w->err.msg);
}

bs_rc apply(struct world *w, struct bs_op *op)
{
    apply_all(w, &op, 1);
    return op->rc;
}

static struct bs_str kept(struct world *w, const char *z)
{
    return bs_arena_str(&w->arena, bs_str_of(z));
}

struct bs_task *sample(struct world *w, const char *key)
{
    struct bs_task *t = BS_NEW(&w->arena, struct bs_task);

    assert_non_null(t);
    *t = (struct bs_task){ .request_id = kept(w, key),
                           .biz_id = kept(w, key),
                           .biz_type = QUEUE,
                           .merchant_no = BS_STR("default"),
                           .source = BS_SRC_API,
                           .state = BS_WAITING,
                           .priority = 1,
                           .max_retry_count = 10,
                           .version = 1,
                           .created_by = BS_STR("shop"),
                           .created_at = w->now,
                           .updated_at = w->now,
                           .next_execute_at = w->now,
                           .due_at = w->now,
                           .money = { 6410, "CNY" },
                           .payload = BS_STR("{\"a\":1}"),
                           .payload_is_json = true };
    return t;
}

struct bs_op submit_op(struct world *w, struct bs_task *t, const char *content)
{
    struct bs_op op = op_of(w, BS_OP_SUBMIT);

    t->id = op.id;
    op.submit.task = t;
    op.submit.request_fp = op.submit.effect_fp = bs_sha256_of(bs_str_of(content));
    op.submit.caller_waits = true;
    return op;
}

int64_t put(struct world *w, struct bs_task *t)
{
    struct bs_op op = submit_op(w, t, "content");

    assert_int_equal(apply(w, &op), BS_OK);
    assert_int_equal(op.submit.ret_what, BS_SUBMITTED_CREATED);
    assert_int_equal(op.submit.ret_task_id, op.id);
    return op.id;
}

int64_t put_one(struct world *w, const char *key)
{
    return put(w, sample(w, key));
}

int64_t put_serial(struct world *w, const char *key, const char *serial)
{
    struct bs_task *t = sample(w, key);

    t->serial_key = kept(w, serial);
    return put(w, t);
}

struct bs_op claim_op(struct world *w, struct bs_str queue, uint32_t limit)
{
    struct bs_op op = op_of(w, BS_OP_CLAIM);

    op.claim = (struct bs_op_claim){ .biz_type = queue,
                                     .claim_id = bs_arena_fmt(&w->arena, "claim-%u", ++w->claims),
                                     .limit = limit,
                                     .suspects_limit = 1,
                                     .lease_until = bs_time_add(w->now, BS_SEC(60)),
                                     .token_floor = w->now.us };
    return op;
}

static void remember(struct world *w, struct bs_leased *list)
{
    struct bs_leased *last = list;

    while (last && last->next)
        last = last->next;
    if (last) {
        last->next = w->leased;
        w->leased = list;
    }
}

/* The list that a claim gave is copied out, because the world keeps all in one list. */
static struct bs_leased *copy_list(struct world *w, const struct bs_leased *from)
{
    struct bs_leased *head = NULL, **tail = &head;

    for (; from; from = from->next) {
        *tail = BS_NEW(&w->arena, struct bs_leased);
        assert_non_null(*tail);
        (*tail)->task = from->task;
        tail = &(*tail)->next;
    }
    return head;
}

struct bs_leased *claim(struct world *w, uint32_t limit)
{
    struct bs_op op = claim_op(w, QUEUE, limit);

    assert_int_equal(apply(w, &op), BS_OK);
    struct bs_leased *copy = copy_list(w, op.claim.ret_tasks);
    assert_int_equal(count_leased(copy), op.claim.ret_n);
    remember(w, op.claim.ret_tasks);
    return copy;
}

struct bs_task *claim_one(struct world *w)
{
    struct bs_leased *l = claim(w, 1);

    assert_non_null(l);
    assert_null(l->next);
    return &l->task;
}

uint32_t count_leased(const struct bs_leased *l)
{
    uint32_t n = 0;

    for (; l; l = l->next)
        n++;
    return n;
}

struct bs_op finish_op(struct world *w, const struct bs_task *t, enum bs_outcome_kind kind,
                       const char *code)
{
    struct bs_op op = op_of(w, BS_OP_FINISH);

    op.finish = (struct bs_op_finish){ .task = t,
                                       .outcome = { .kind = kind,
                                                    .code = bs_str_of(code),
                                                    .message = bs_str_of(code),
                                                    .started_at = t->locked_at,
                                                    .ended_at = w->now },
                                       .policy = &w->policy,
                                       .seed = 7,
                                       .node = BS_STR("node-1") };
    return op;
}

bs_rc finish(struct world *w, const struct bs_task *t, enum bs_outcome_kind kind, const char *code)
{
    struct bs_op op = finish_op(w, t, kind, code);

    return apply(w, &op);
}

struct bs_op act_op(struct world *w, int64_t id, enum bs_action a, const char *conclusion)
{
    struct bs_op op = op_of(w, BS_OP_ACT);

    op.act = (struct bs_op_act){ .task_id = id,
                                 .action = a,
                                 .reason = BS_STR("looked at it"),
                                 .conclusion = bs_str_of(conclusion),
                                 .operator= BS_STR("li.na"),
                                 .policy = &w->policy };
    return op;
}

bs_rc act(struct world *w, int64_t id, enum bs_action a, const char *conclusion)
{
    struct bs_op op = act_op(w, id, a, conclusion);

    return apply(w, &op);
}

uint32_t reap(struct world *w)
{
    struct bs_op op = op_of(w, BS_OP_REAP);

    op.reap = (struct bs_op_reap){ .limit = 100, .node = BS_STR("node-1") };
    assert_int_equal(apply(w, &op), BS_OK);
    return op.reap.ret_waiting + op.reap.ret_manual;
}

/* ---- reading ---- */

const char *to_text(struct world *w, struct bs_str s)
{
    return bs_arena_str(&w->arena, s).p;
}

struct bs_task get(struct world *w, int64_t id)
{
    struct bs_task t;

    if (bs_store_task(w->store, id, &w->arena, &t, &w->err) != BS_OK)
        fail_msg("task %lld: %s", (long long)id, w->err.msg);
    return t;
}

enum bs_state state_of(struct world *w, int64_t id)
{
    return get(w, id).state;
}

static void add_log(struct world *w, struct bs_buf *out, int64_t id, bool details)
{
    struct bs_log_page page;

    assert_int_equal(bs_store_log(w->store, id, 0, 1000, &w->arena, &page, &w->err), BS_OK);
    for (uint32_t i = 0; i < page.n; i++) {
        const struct bs_log_item *l = &page.items[i];

        bs_buf_fmt(out, "%s%s>%s", i ? " " : "", l->event, l->to ? bs_state_name(l->to) : "-");
        if (details)
            bs_buf_fmt(out, "(%lld,%s,%d,%lld,%.*s,%.*s,%.*s)", (long long)l->at.us,
                       l->from ? bs_state_name(l->from) : "-", l->attempt_no, (long long)l->token,
                       BS_STR_FMT(l->code), BS_STR_FMT(l->message), BS_STR_FMT(l->operator));
    }
}

const char *log_text(struct world *w, int64_t id)
{
    BS_CLEANUP(bs_buf_free) struct bs_buf out = { .max = 1 << 16 };

    add_log(w, &out, id, false);
    return to_text(w, bs_buf_str(&out));
}

static void add_alerts(struct world *w, struct bs_buf *out)
{
    const struct bs_alert_filter f = { .limit = 200 };
    struct bs_alert_row *rows = NULL;
    uint32_t n = 0;

    assert_int_equal(bs_store_alerts(w->store, &f, &w->arena, &rows, &n, &w->err), BS_OK);
    while (n-- > 0)
        bs_buf_fmt(out, "%.*s %.*s x%lld\n", BS_STR_FMT(rows[n].kind), BS_STR_FMT(rows[n].subject),
                   (long long)rows[n].count);
}

/* Who was told of them, and what is still to be planned. */
static void add_deliveries(struct world *w, struct bs_buf *out)
{
    const struct bs_alert_filter f = { .limit = 200 };
    struct bs_alert_row *rows = NULL;
    uint32_t n = 0;

    assert_int_equal(bs_store_alerts(w->store, &f, &w->arena, &rows, &n, &w->err), BS_OK);
    for (uint32_t i = 0; i < n; i++) {
        struct bs_delivery *d = NULL;
        uint32_t d_n = 0;

        bs_buf_fmt(out, "%.*s open %d unplanned %u ended %lld\n", BS_STR_FMT(rows[i].kind),
                   rows[i].open, rows[i].unplanned, (long long)rows[i].recovered_at.us);
        assert_int_equal(bs_store_deliveries(w->store, rows[i].id, &w->arena, &d, &d_n, &w->err),
                         BS_OK);
        for (uint32_t k = 0; k < d_n; k++)
            bs_buf_fmt(out, "  %.*s %d %d %lld\n", BS_STR_FMT(d[k].deliverer), (int)d[k].phase,
                       (int)d[k].state, (long long)d[k].attempts);
    }
}

const char *alerts_text(struct world *w)
{
    BS_CLEANUP(bs_buf_free) struct bs_buf out = { .max = 1 << 16 };

    add_alerts(w, &out);
    return to_text(w, bs_buf_str(&out));
}

uint32_t audit_count(struct world *w)
{
    struct bs_audit_row *rows = NULL;
    uint32_t n = 0;

    assert_int_equal(bs_store_audit(w->store, 0, 200, &w->arena, &rows, &n, &w->err), BS_OK);
    return n;
}

static void add_task(struct world *w, struct bs_buf *out, int64_t id)
{
    struct bs_task t = get(w, id);

    bs_buf_fmt(out,
               "%lld %.*s %s retry %d attempt %d crash %d token %lld unknown %d due %lld "
               "blocked %d pending %d version %lld manual %.*s payload %.*s\n  ",
               (long long)t.id, BS_STR_FMT(t.request_id), bs_state_name(t.state), t.retry_count,
               t.attempt_no, t.crash_count, (long long)t.lease_token, t.outcome_unknown,
               (long long)t.due_at.us, (int)t.blocked, (int)t.pending, (long long)t.version,
               BS_STR_FMT(t.manual_code), BS_STR_FMT(t.payload));
    add_log(w, out, id, true);
    bs_buf_addc(out, '\n');
}

static void add_tables(struct world *w, struct bs_buf *out)
{
    struct bs_audit_row *audit = NULL;
    struct bs_stat_row *stats = NULL;
    uint32_t n = 0;

    assert_int_equal(bs_store_audit(w->store, 0, 200, &w->arena, &audit, &n, &w->err), BS_OK);
    for (uint32_t i = 0; i < n; i++)
        bs_buf_fmt(out, "audit %lld %.*s %.*s %.*s\n", (long long)audit[i].id,
                   BS_STR_FMT(audit[i].action), BS_STR_FMT(audit[i].object),
                   BS_STR_FMT(audit[i].after));
    assert_int_equal(bs_store_stats(w->store, &w->arena, &stats, &n, &w->err), BS_OK);
    for (uint32_t i = 0; i < n; i++)
        bs_buf_fmt(out, "stat %.*s %s %.*s %lld %lld %lld\n", BS_STR_FMT(stats[i].biz_type),
                   bs_state_name(stats[i].state), BS_STR_FMT(stats[i].currency),
                   (long long)stats[i].count, (long long)stats[i].amount,
                   (long long)stats[i].unknown);
}

const char *whole_text(struct world *w)
{
    BS_CLEANUP(bs_buf_free) struct bs_buf out = { .max = 1 << 20 };
    const struct bs_task_filter all = { .limit = 200 };
    struct bs_task_page page;

    assert_int_equal(bs_store_tasks(w->store, &all, &w->arena, &page, &w->err), BS_OK);
    for (uint32_t i = 0; i < page.n; i++)
        add_task(w, &out, page.items[i].id);
    add_alerts(w, &out);
    add_deliveries(w, &out);
    add_tables(w, &out);
    assert_false(out.failed);
    return to_text(w, bs_buf_str(&out));
}
