/* The contract: the hot statements use their indexes and walk over nothing else. */
#include "world.h"

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>

static const struct hot {
    enum bs_sql sql;
    const char *uses, *too; /* what the plan must name; too: NULL, or as well */
} hot[] = {
    { BS_SQL_CLAIM_SCAN, "USING INDEX task_due (biz_type=? AND priority=?" },
    { BS_SQL_CLAIM_SCAN_SUSPECTS, "USING INDEX task_due_suspect (biz_type=? AND priority=?" },
    { BS_SQL_CLAIM_AGAIN, "USING INDEX task_lease (locked_until=?" },
    { BS_SQL_CLAIM_TAKE, "USING COVERING INDEX task_run (run_key=?" },
    { BS_SQL_CLAIM_BLOCK, "USING INTEGER PRIMARY KEY" },
    { BS_SQL_TASK_GET, "USING INTEGER PRIMARY KEY" },
    { BS_SQL_HISTORY_GET, "USING INTEGER PRIMARY KEY" },
    { BS_SQL_PAYLOAD_GET, "USING INTEGER PRIMARY KEY" },
    { BS_SQL_TASK_ACT, "USING INTEGER PRIMARY KEY" },
    { BS_SQL_TASK_PEND, "USING INTEGER PRIMARY KEY" },
    { BS_SQL_TASK_LEASE, "USING INTEGER PRIMARY KEY" },
    { BS_SQL_DUE_NEXT_SUSPECT, "INDEX task_due_suspect (biz_type=? AND priority=?" },
    { BS_SQL_DUE_NEXT, "INDEX task_due (biz_type=? AND priority=?" },
    { BS_SQL_MANUAL_OLDEST, "INDEX task_manual (biz_type=?" },
    { BS_SQL_BLOCKED_FIRST, "USING COVERING INDEX task_blocked (blocked_key=? AND biz_type>?" },
    { BS_SQL_BLOCKED_FIRST_OF_QUEUE, "USING COVERING INDEX task_blocked (blocked_key=? AND" },
    { BS_SQL_BLOCKED_FREE, "USING INTEGER PRIMARY KEY" },
    { BS_SQL_TASK_FINISH, "USING INTEGER PRIMARY KEY" },
    { BS_SQL_TASK_END, "USING INTEGER PRIMARY KEY" },
    { BS_SQL_TASK_RENEW, "USING INTEGER PRIMARY KEY" },
    { BS_SQL_LEASE_EXPIRED, "USING INDEX task_lease (locked_until<?" },
    { BS_SQL_REQUEST_KEY_GET, "USING PRIMARY KEY (request_id=?)" },
    { BS_SQL_EFFECT_KEY_GET, "USING PRIMARY KEY (merchant_no=? AND biz_type=? AND effect_key=?)" },
    { BS_SQL_TASK_WHOLE, "USING INTEGER PRIMARY KEY" },
    { BS_SQL_HISTORY_WHOLE, "USING INTEGER PRIMARY KEY" },
    { BS_SQL_LOG_PAGE, "USING PRIMARY KEY (task_id=? AND id>?)" },
    { BS_SQL_LOG_GET, "USING PRIMARY KEY (task_id=? AND id=?)" },
    { BS_SQL_LOG_FIRST, "USING PRIMARY KEY (task_id=?)" },
    { BS_SQL_LOG_EXCERPT, "USING PRIMARY KEY (task_id=?)" },
    { BS_SQL_LOG_STATE_BEFORE, "USING PRIMARY KEY (task_id=? AND id<?)" },
    { BS_SQL_LOG_ATTEMPT, "USING PRIMARY KEY (task_id=?)" },
    { BS_SQL_LIST_ALL, "SEARCH t USING INTEGER PRIMARY KEY (rowid<?)", "MERGE (UNION ALL)" },
    { BS_SQL_LIST_LIVE, "SEARCH t USING INTEGER PRIMARY KEY (rowid<?)" },
    { BS_SQL_LIST_MANUAL, "INDEX task_attention (task_status=? AND id<?)" },
    { BS_SQL_LIST_RETRY, "INDEX task_attention (task_status=? AND id<?)" },
    { BS_SQL_LIST_ORDER_NO, "USING INDEX task_order_no (order_no=? AND id<?)",
      "USING INDEX task_history_order_no (order_no=? AND id<?)" },
    { BS_SQL_LIST_PAYMENT_NO, "USING INDEX task_payment_no (payment_no=? AND id<?)",
      "USING INDEX task_history_payment_no (payment_no=? AND id<?)" },
    { BS_SQL_LIST_CHANNEL_TRADE_NO,
      "USING INDEX task_channel_trade_no (channel_trade_no=? AND id<?)",
      "USING INDEX task_history_channel_trade_no (channel_trade_no=? AND id<?)" },
    { BS_SQL_LIST_REFUND_NO, "USING INDEX task_refund_no (refund_no=? AND id<?)",
      "USING INDEX task_history_refund_no (refund_no=? AND id<?)" },
    { BS_SQL_LIST_BIZ_ID, "USING INDEX task_biz_id (biz_id=? AND id<?)",
      "USING INDEX task_history_biz_id (biz_id=? AND id<?)" },
    { BS_SQL_LIST_REQUEST_ID, "USING PRIMARY KEY (request_id=?)" },
    { BS_SQL_ORPHAN_SCAN, "USING INDEX task_due (biz_type=?)" },
    { BS_SQL_ORPHAN_SCAN_SUSPECTS, "USING INDEX task_due_suspect (biz_type=?)" },
    { BS_SQL_REQUEST_KEY_LINK, "USING PRIMARY KEY (request_id=?)" },
    { BS_SQL_REQUEST_KEY_DELETE, "USING PRIMARY KEY (request_id=?)" },
    { BS_SQL_EFFECT_KEY_FREE, "USING PRIMARY KEY" },
    { BS_SQL_META_GET, "USING PRIMARY KEY (name=?)" },
    { BS_SQL_META_RAISE, "USING PRIMARY KEY (name=?)" },
    { BS_SQL_STAT_UPDATE, "USING PRIMARY KEY" },
    { BS_SQL_STAT_GET, "USING PRIMARY KEY" },
    { BS_SQL_ARCHIVE_REACH, "USING INTEGER PRIMARY KEY (rowid>? AND rowid<?)" },
    { BS_SQL_ARCHIVE_COPY, "USING INTEGER PRIMARY KEY (rowid>? AND rowid<?)" },
    { BS_SQL_ARCHIVE_REMOVE, "USING INTEGER PRIMARY KEY (rowid>? AND rowid<?)" },
    { BS_SQL_PURGE_SCAN, "USING INTEGER PRIMARY KEY (rowid>? AND rowid<?)" },
    { BS_SQL_PURGE_PAYLOADS, "SEARCH task_payload USING INTEGER PRIMARY KEY (rowid=?)" },
    { BS_SQL_PURGE_LOGS, "SEARCH task_log USING PRIMARY KEY (task_id=?)" },
    { BS_SQL_PURGE_TASKS, "USING INTEGER PRIMARY KEY (rowid>? AND rowid<?)" },
    { BS_SQL_TASK_AGE, "USING INTEGER PRIMARY KEY (rowid=?)" },
    { BS_SQL_STOPS_SINCE, "USING PRIMARY KEY (biz_type=?)", "MERGE (UNION ALL)" },
    { BS_SQL_ALERT_AGAIN, "alert_event_open (kind=? AND subject=?" },
    { BS_SQL_ALERT_CLEAR, "alert_event_open (kind=? AND subject=?" },
    { BS_SQL_DELIVERY_DUE, "INDEX alert_delivery_pending (deliverer=?)" },
};

static void read_plan(sqlite3 *db, const char *sql, struct bs_buf *out)
{
    char text[8192];
    sqlite3_stmt *st = NULL;

    snprintf(text, sizeof(text), "EXPLAIN QUERY PLAN %s", sql);
    assert_int_equal(sqlite3_prepare_v2(db, text, -1, &st, NULL), SQLITE_OK);
    while (sqlite3_step(st) == SQLITE_ROW)
        bs_buf_fmt(out, "%s\n", (const char *)sqlite3_column_text(st, 3));
    sqlite3_finalize(st);
}

static bool names_its_indexes(const struct hot *h, const char *plan)
{
    return strstr(plan, h->uses) && (!h->too || strstr(plan, h->too));
}

static bool sorts(enum bs_sql sql, const char *plan)
{
    bool may = sql == BS_SQL_CLAIM_AGAIN; /* only after a lost answer */

    return strstr(plan, "TEMP B-TREE") && !may;
}

/* Over a table; the rows of a limited subquery are named "slice". */
static bool scans(const char *plan)
{
    for (const char *p = plan; (p = strstr(p, "SCAN ")) != NULL; p++) {
        if (strncmp(p, "SCAN slice\n", 11) != 0)
            return true;
    }
    return false;
}

static void check_plans(struct world *w)
{
    const struct bs_dialect *dialect = bs_dialect_find("sqlite");
    char path[128];
    sqlite3 *db = NULL;

    snprintf(path, sizeof(path), "%s/store.db", w->dir);
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    for (size_t i = 0; i < BS_COUNT(hot); i++) {
        BS_CLEANUP(bs_buf_free) struct bs_buf plan = { .max = 4096 };

        read_plan(db, dialect->statements[hot[i].sql], &plan);
        const char *p = bs_buf_str(&plan).p;
        if (!names_its_indexes(&hot[i], p) || sorts(hot[i].sql, p) || scans(p))
            fail_msg("%s:\n%s", bs_sql_names[hot[i].sql], p);
    }
    sqlite3_close(db);
}

static void the_hot_statements_use_their_indexes(void **state)
{
    struct world *w = *state;
    enum { N = 1000 };
    static struct bs_op ops[N], *ops_list[N];

    if (strcmp(w->factory->name, "sqlite") != 0)
        skip();
    check_plans(w);
    for (int i = 0; i < N; i++) {
        struct bs_task *t = sample(w, bs_arena_fmt(&w->arena, "r-%d", i).p);
        t->serial_key = bs_arena_fmt(&w->arena, "o:%d", i % 10);
        t->order_no = t->payment_no = t->channel_trade_no = t->refund_no = t->request_id;
        ops[i] = submit_op(w, t, "c");
        ops_list[i] = &ops[i];
    }
    apply_all(w, ops_list, N);
    claim(w, 100);
    assert_int_equal(w->db->ops->script(w->db, "ANALYZE", &w->err), BS_OK);
    check_plans(w);
}

/* ---- in a store of many rows ---- */

/* Live and history, in all states, with keys, payloads, logs; one task in ten has each number. */
static const char *const fill[] = {
    "INSERT INTO task (id, request_id, biz_type, merchant_no, biz_id, effect_key, serial_key, "
    "order_no, payment_no, channel_trade_no, refund_no, source, created_by, created_at, "
    "task_status, priority, max_retry_count, due_at, next_execute_at, manual_code, updated_at) "
    "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?1) "
    "SELECT i, 'r' || i, 'Q' || (i % 4), 'default', 'b' || (i / 2), 'e' || i, 's' || (i / 3), "
    "'o' || (i / 2), CASE WHEN i % 10 = 0 THEN 'p' || i END, CASE WHEN i % 10 = 1 THEN 't' || i "
    "END, CASE WHEN i % 10 = 2 THEN 'f' || i END, 'API', 'shop', i, "
    "CASE i % 20 WHEN 0 THEN 'WAITING' WHEN 1 THEN 'RETRY' WHEN 2 THEN 'MANUAL' ELSE 'SUCCESS' "
    "END, i % 3, 10, CASE WHEN i % 20 < 2 THEN i END, i, CASE WHEN i % 20 = 2 THEN 'HELD' END, "
    "i FROM n",
    "INSERT INTO task_history SELECT id + 2 * ?1, request_id || 'h', biz_type, merchant_no, "
    "biz_id, "
    "effect_key || 'h', serial_key, order_no, payment_no, channel, channel_trade_no, refund_no, "
    "source, parent_id, amount, currency, created_by, created_at, 'SUCCESS', priority, "
    "retry_count, max_retry_count, attempt_no, crash_count, defer_count, not_found_count, NULL, 0, "
    "NULL, NULL, NULL, NULL, NULL, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0, 1, "
    "updated_at, NULL, 0, NULL FROM task",
    "INSERT INTO request_key SELECT request_id, x'00', id, id, 1 FROM task WHERE id <= ?1",
    "INSERT INTO effect_key SELECT merchant_no, biz_type, effect_key, x'00', id FROM task WHERE "
    "id <= ?1",
    "INSERT INTO task_payload SELECT id, x'00', 0, NULL FROM task WHERE id <= ?1",
    "INSERT INTO task_log (task_id, id, at, event) SELECT t.id, t.id + s.i, 1, 'linked' FROM "
    "task_history t JOIN (SELECT 0 AS i UNION ALL SELECT 1 UNION ALL SELECT 2) s WHERE t.id > ?1",
    "INSERT INTO queue_stop SELECT 'Q' || (id % 4), id, id + 5 FROM task WHERE id <= ?1 / 100",
};

static void run_with(sqlite3 *db, const char *sql, int each)
{
    sqlite3_stmt *st = NULL;

    if (sqlite3_prepare_v2(db, sql, -1, &st, NULL) != SQLITE_OK)
        fail_msg("%s: %s", sql, sqlite3_errmsg(db));
    if (sqlite3_bind_parameter_count(st) > 0)
        sqlite3_bind_int(st, 1, each);
    if (sqlite3_step(st) != SQLITE_DONE)
        fail_msg("%s: %s", sql, sqlite3_errmsg(db));
    sqlite3_finalize(st);
}

static void fill_store(struct world *w, int each)
{
    char path[128];
    sqlite3 *db = NULL;

    snprintf(path, sizeof(path), "%s/store.db", w->dir);
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    run_with(db, "PRAGMA synchronous = OFF", 0);
    run_with(db, "BEGIN", 0);
    for (size_t i = 0; i < BS_COUNT(fill); i++)
        run_with(db, fill[i], each);
    run_with(db, "COMMIT", 0);
    sqlite3_close(db);
}

/* The rows were not made by the store, so its check is left out at the end. */
static void the_plans_stay_in_a_store_of_many_rows(void **state)
{
    const char *full = getenv("BACKSTOP_FULL");
    struct world *w = world_new(contract_factory);

    (void)state;
    if (strcmp(w->factory->name, "sqlite") == 0) {
        fill_store(w, full && strcmp(full, "1") == 0 ? 500000 : 10000);
        check_plans(w);
        assert_int_equal(w->db->ops->script(w->db, "ANALYZE", &w->err), BS_OK);
        world_reopen(w); /* what ANALYZE found counts for new connections */
        check_plans(w);
    }
    world_drop(w);
}

/* How many steps of the database's machine a look for the first 100 due tasks of a queue takes. */
static int steps_of_a_claim(struct world *w)
{
    const char *sql = bs_dialect_find("sqlite")->statements[BS_SQL_CLAIM_SCAN];
    char path[128];
    sqlite3 *db = NULL;
    sqlite3_stmt *st = NULL;
    int rows = 0;

    snprintf(path, sizeof(path), "%s/store.db", w->dir);
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &st, NULL), SQLITE_OK);
    sqlite3_bind_text(st, 1, "Q1", 2, SQLITE_STATIC);
    sqlite3_bind_int(st, 2, 0);
    sqlite3_bind_int(st, 3, 100);
    while (sqlite3_step(st) == SQLITE_ROW)
        rows++;
    int steps = sqlite3_stmt_status(st, SQLITE_STMTSTATUS_VM_STEP, 0);

    assert_int_equal(rows, 100);
    assert_int_equal(sqlite3_stmt_status(st, SQLITE_STMTSTATUS_FULLSCAN_STEP, 0), 0);
    assert_int_equal(sqlite3_stmt_status(st, SQLITE_STMTSTATUS_SORT, 0), 0);
    sqlite3_finalize(st);
    sqlite3_close(db);
    return steps;
}

/* A snapshot that stays open, as a long report would hold it. */
static sqlite3 *long_reader(struct world *w)
{
    char path[128];
    sqlite3 *db = NULL;

    snprintf(path, sizeof(path), "%s/store.db", w->dir);
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    run_with(db, "BEGIN", 0);
    assert_int_equal(sqlite3_exec(db, "SELECT count(*) FROM queue_stat", NULL, NULL, NULL),
                     SQLITE_OK);
    return db;
}

/* CASE 46 */
static void a_claim_is_the_same_work_beside_many_finished_rows_and_a_long_reader(void **state)
{
    const char *full = getenv("BACKSTOP_FULL");
    struct world *small = world_new(contract_factory), *large = world_new(contract_factory);
    bool sqlite = strcmp(small->factory->name, "sqlite") == 0;

    (void)state;
    if (sqlite) {
        fill_store(small, 6500);
        sqlite3 *reader = long_reader(large);
        fill_store(large, full && strcmp(full, "1") == 0 ? 500000 : 30000);
        assert_int_equal(steps_of_a_claim(large), steps_of_a_claim(small));
        sqlite3_close(reader);
    }
    world_drop(small);
    world_drop(large);
}

int run_plan_cases(void)
{
    const struct CMUnitTest cases[] = {
        CASE(the_hot_statements_use_their_indexes),
        cmocka_unit_test(the_plans_stay_in_a_store_of_many_rows),
        cmocka_unit_test(a_claim_is_the_same_work_beside_many_finished_rows_and_a_long_reader),
    };

    return cmocka_run_group_tests_name("plan", cases, NULL, NULL);
}
