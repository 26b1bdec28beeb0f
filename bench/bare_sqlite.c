/* Yardstick: a bare SQLite loop that inserts the rows of a submission into the real schema.
 * bare_sqlite DB SCHEMA.sql ROWS PER_TRANSACTION ordered|random [FIRST] */
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const char *const statements[] = {
    "INSERT INTO request_key VALUES (?1,?2,?3,?3,?3)",
    "INSERT INTO effect_key VALUES ('default','PAY_CALLBACK',?4,?2,?3)",
    "INSERT INTO task "
    "(id,request_id,biz_type,merchant_no,biz_id,effect_key,serial_key,order_no,source,created_by,"
    "created_at,"
    "task_status,priority,max_retry_count,next_execute_at,due_at,updated_at) VALUES "
    "(?3,?1,'PAY_CALLBACK','default',?4,?4,"
    "'o:default:'||?5,?5,'API','bench',?3,'WAITING',1,10,?3,?3,?3)",
    "INSERT INTO task_payload VALUES (?3,?6,1,NULL)",
};

int main(int argc, char **argv)
{
    static char schema[1 << 20], payload[500], key[40], biz[40], order[40];
    sqlite3_stmt *s[4];
    sqlite3 *db;
    struct timespec a, b;
    long rows = argc > 3 ? atol(argv[3]) : 0, per = argc > 4 ? atol(argv[4]) : 40;
    long first = argc > 6 ? atol(argv[6]) : 0, bad = 0;
    FILE *f = argc > 5 ? fopen(argv[2], "r") : NULL;

    if (!f || fread(schema, 1, sizeof(schema) - 1, f) == 0 || sqlite3_open(argv[1], &db))
        return 2;
    sqlite3_exec(db,
                 "PRAGMA journal_mode=WAL;PRAGMA synchronous=FULL;PRAGMA "
                 "wal_autocheckpoint=32000;PRAGMA cache_size=-32768",
                 0, 0, 0);
    sqlite3_exec(db, schema, 0, 0, 0); /* fails harmlessly on a store that has it already */
    memset(payload, 'x', sizeof(payload));
    for (int i = 0; i < 4; i++)
        bad += sqlite3_prepare_v2(db, statements[i], -1, &s[i], NULL) != SQLITE_OK;
    clock_gettime(CLOCK_MONOTONIC, &a);
    for (long n = first; n < first + rows && !bad; n++) {
        if ((n - first) % per == 0)
            sqlite3_exec(db, n > first ? "COMMIT;BEGIN IMMEDIATE" : "BEGIN IMMEDIATE", 0, 0, 0);
        if (argv[5][0] == 'r')
            snprintf(key, sizeof(key), "%08lx%08lx%08lx%08lx", random(), random(), random(),
                     random());
        else
            snprintf(key, sizeof(key), "PAY20261130%021ld", n);
        snprintf(biz, sizeof(biz), "B20261130%012ld", n);
        snprintf(order, sizeof(order), "O20261130%012ld", n);
        for (int i = 0; i < 4; i++) {
            const char *text[] = { key, payload, NULL, biz, order, payload };
            for (int p = 1; p <= sqlite3_bind_parameter_count(s[i]); p++) {
                if (p == 3)
                    sqlite3_bind_int64(s[i], 3, 500000000000000000 + n * 977);
                else if (p == 2 || p == 6)
                    sqlite3_bind_blob(s[i], p, text[p - 1], p == 2 ? 32 : 500, SQLITE_STATIC);
                else
                    sqlite3_bind_text(s[i], p, text[p - 1], -1, SQLITE_STATIC);
            }
            bad += sqlite3_step(s[i]) != SQLITE_DONE;
            sqlite3_reset(s[i]);
        }
    }
    sqlite3_exec(db, "COMMIT", 0, 0, 0);
    clock_gettime(CLOCK_MONOTONIC, &b);
    double t = (double)(b.tv_sec - a.tv_sec) + (double)(b.tv_nsec - a.tv_nsec) / 1e9;
    printf("{\"rows\": %ld, \"failed\": %ld, \"per_second\": %.0f}\n", rows, bad, (double)rows / t);
    if (bad)
        fprintf(stderr, "bare_sqlite: %s\n", sqlite3_errmsg(db));
    return bad != 0;
}
