/* The contract of the store: every case, once for each database. */
#include "world.h"

#include "db/sqlite.h"

#include <stdio.h>

static struct bs_db *sqlite_db(const char *dir)
{
    char path[128];
    struct bs_db *db = NULL;

    snprintf(path, sizeof(path), "%s/store.db", dir);
    const struct bs_sqlite_options o = { .path = path };
    return bs_sqlite_open(&o, &db, NULL) == BS_OK ? db : NULL;
}

static void sqlite_url(const char *dir, char *out, size_t size)
{
    snprintf(out, size, "sqlite:%s/store.db", dir);
}

static const struct contract_factory sqlite = { "sqlite", sqlite_db, sqlite_url };

static int contract_run(const struct contract_factory *f)
{
    contract_factory = f;
    return run_submit_cases() + run_claim_cases() + run_serial_cases() + run_finish_cases() +
           run_people_cases() + run_queue_cases() + run_read_cases() + run_history_cases() +
           run_age_cases() + run_backup_cases() + run_open_cases() + run_fault_cases() +
           run_reach_cases() + run_committer_cases() + run_plan_cases() + run_alert_cases();
}

int main(void)
{
    int failed = 0;

    failed += contract_run(&sqlite);
    return failed;
}
