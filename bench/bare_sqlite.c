/* Yardstick: a bare SQLite loop that inserts the rows of a submission into the real schema, behind
 * those that are there. bare_sqlite DB SCHEMA.sql ROWS PER_TRANSACTION ordered|random */
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static const char *const statements[] = {
    "INSERT INTO request_key VALUES (?1,zeroblob(32),?2,?2,?2)",
    "INSERT INTO effect_key VALUES ('default','PAY_CALLBACK',?3,zeroblob(32),?2)",
    "INSERT INTO task (id,request_id,biz_type,merchant_no,biz_id,effect_key,serial_key,order_no,"
    "source,created_by,created_at,task_status,priority,max_retry_count,next_execute_at,due_at,"
    "updated_at) VALUES (?2,?1,'PAY_CALLBACK','default',?3,?3,'o:default:'||?4,?4,'API','bench',?2,"
    "'WAITING',1,10,?2,?2,?2)",
    "INSERT INTO task_payload VALUES (?2,zeroblob(500),1,NULL)",
    "SELECT ifnull(max(id),0) FROM task",
};

int main(int argc, char **argv)
{
    static char schema[1 << 20], key[48], biz[48], order[48];
    const char *text[] = { key, NULL, biz, order };
    sqlite3_stmt *s[5];
    sqlite3 *db;
    struct timespec a, b;
    long rows = argc > 3 ? atol(argv[3]) : 0, per = argc > 4 ? atol(argv[4]) : 40, bad = 0;
    FILE *f = argc > 5 ? fopen(argv[2], "r") : NULL;

    if (!f || fread(schema, 1, sizeof(schema) - 1, f) == 0 || sqlite3_open(argv[1], &db))
        return 2;
    sqlite3_exec(db, "PRAGMA journal_mode=WAL;PRAGMA synchronous=FULL", 0, 0, 0);
    sqlite3_exec(db, "PRAGMA wal_autocheckpoint=32000;PRAGMA cache_size=-32768", 0, 0, 0);
    sqlite3_exec(db, schema, 0, 0, 0); /* fails harmlessly on a store that has it already */
    for (int i = 0; i < 5; i++)
        bad += sqlite3_prepare_v2(db, statements[i], -1, &s[i], NULL) != SQLITE_OK;
    long long last = sqlite3_step(s[4]) == SQLITE_ROW ? sqlite3_column_int64(s[4], 0) : 0;
    sqlite3_reset(s[4]);
    clock_gettime(CLOCK_MONOTONIC, &a);
    for (long n = 0; n < rows && !bad; n++) {
        if (n % per == 0)
            bad += sqlite3_exec(db, n ? "COMMIT;BEGIN IMMEDIATE" : "BEGIN IMMEDIATE", 0, 0, 0);
        snprintf(key, sizeof(key), "PAY202611300000000005%011ld", n); /* after those of load */
        if (argv[5][0] == 'r')
            snprintf(key, sizeof(key), "%08lx%08lx%016lx", random(), random(), random());
        snprintf(biz, sizeof(biz), "B202611305%011ld", n);
        snprintf(order, sizeof(order), "O202611305%011ld", n);
        for (int i = 0; i < 4; i++) {
            for (int p = 1; p <= sqlite3_bind_parameter_count(s[i]); p++)
                bad += p == 2 ? sqlite3_bind_int64(s[i], 2, last + (n + 1) * 977)
                              : sqlite3_bind_text(s[i], p, text[p - 1], -1, SQLITE_STATIC);
            bad += sqlite3_step(s[i]) != SQLITE_DONE;
            sqlite3_reset(s[i]);
        }
    }
    bad += sqlite3_exec(db, "COMMIT", 0, 0, 0);
    clock_gettime(CLOCK_MONOTONIC, &b);
    double t = (double)(b.tv_sec - a.tv_sec) + (double)(b.tv_nsec - a.tv_nsec) / 1e9;
    printf("{\"rows\": %ld, \"failed\": %ld, \"per_second\": %.0f}\n", rows, bad, (double)rows / t);
    return bad != 0;
}
