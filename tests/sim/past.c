/* History as the checker sees it: who moves there, who is deleted from there, and that both is read
 * as before. Knows the schema, like view.c. */
#include "sim.h"

#include <string.h>

static void hit(struct sim *w, enum sim_deed d)
{
    atomic_fetch_add(&w->hits->deeds[d], 1);
}

bool past_open(struct sim *w)
{
    char sql[1024];

    (void)snprintf(sql, sizeof(sql), "%s task_history WHERE id = ?1", view_columns);
    return sqlite3_prepare_v2(w->eye, sql, -1, &w->eye_past, NULL) == SQLITE_OK &&
           sqlite3_prepare_v2(w->eye, "SELECT count(*) FROM task_history", -1, &w->eye_past_n,
                              NULL) == SQLITE_OK;
}

void past_close(struct sim *w)
{
    sqlite3_finalize(w->eye_past);
    sqlite3_finalize(w->eye_past_n);
}

static struct bs_span least(struct bs_span a, struct bs_span b)
{
    return a.us <= b.us ? a : b;
}

/* Long enough left alone, by whichever file was loaded. */
static bool old_enough(const struct sim *w, const struct row *r, struct bs_span a, struct bs_span b)
{
    struct bs_span age = least(a, b);

    return age.us > 0 && r->updated_at + age.us <= sim_now(w).us;
}

static void archived(struct sim *w, struct tale *t)
{
    const struct row *r = &t->row;

    t->archived = true;
    w->archived_n++;
    hit(w, DEED_ARCHIVED);
    say(w, "archived %s", r->request_id);
    if (r->state != BS_SUCCESS && r->state != BS_CLOSED)
        broken(w, "%s is %s and was archived", r->request_id, bs_state_name(r->state));
    if (!old_enough(w, r, w->all.history.archive_after, w->other.history.archive_after))
        broken(w, "%s was archived %lld ms after its end", r->request_id,
               (long long)(sim_now(w).us - r->updated_at) / 1000);
}

/* It may have ended and moved in one step. */
static void look_for(struct sim *w, struct tale *t)
{
    struct row was = t->row, is = was;

    sqlite3_bind_int64(w->eye_past, 1, was.id);
    if (sqlite3_step(w->eye_past) == SQLITE_ROW) {
        view_read(w->eye_past, &is, false);
        t->row = is;
        if (memcmp(&is, &was, sizeof(is)) != 0)
            view_follow(w, t, &was, &is);
        if (!w->broken)
            archived(w, t);
    }
    sqlite3_reset(w->eye_past);
}

static bool is_there(struct sim *w, const struct tale *t)
{
    sqlite3_bind_int64(w->eye_past, 1, t->row.id);
    bool found = sqlite3_step(w->eye_past) == SQLITE_ROW;

    sqlite3_reset(w->eye_past);
    return found;
}

static void purged(struct sim *w, struct tale *t)
{
    const struct row *r = &t->row;

    t->purged = true;
    w->purged_n++;
    hit(w, DEED_PURGED);
    say(w, "purged %s", r->request_id);
    if (!old_enough(w, r, w->all.history.purge_after, w->other.history.purge_after))
        broken(w, "%s was purged %lld ms after its end", r->request_id,
               (long long)(sim_now(w).us - r->updated_at) / 1000);
}

static uint32_t rows_of_history(struct sim *w)
{
    int64_t n = -1;

    if (sqlite3_step(w->eye_past_n) == SQLITE_ROW)
        n = sqlite3_column_int64(w->eye_past_n, 0);
    sqlite3_reset(w->eye_past_n);
    return (uint32_t)n;
}

void past_look(struct sim *w)
{
    for (uint32_t i = 0; i < w->tales_n && !w->broken; i++)
        if (w->tales[i].seen != w->looks_taken && !w->tales[i].archived)
            look_for(w, &w->tales[i]);
    if (w->broken || rows_of_history(w) == w->archived_n - w->purged_n)
        return;
    for (uint32_t i = 0; i < w->tales_n && !w->broken; i++) {
        struct tale *t = &w->tales[i];

        if (t->archived && !t->purged && !is_there(w, t))
            purged(w, t);
    }
    if (!w->broken && rows_of_history(w) != w->archived_n - w->purged_n)
        broken(w, "history has %u rows, %u were archived and %u purged", rows_of_history(w),
               w->archived_n, w->purged_n);
}

/* ---- keys outlive their tasks ---- */

static void check_key(struct sim *w, int64_t task_id, const char *what)
{
    const struct tale *t = tale_of(w, task_id);

    if (!t || !t->present)
        broken(w, "a %s names task %lld, which never was", what, (long long)task_id);
    else if (!t->purged)
        broken(w, "the %s of %s names a task that is not there", what, t->row.request_id);
}

static void check_keys(struct sim *w, const char *sql, const char *what)
{
    sqlite3_stmt *s = NULL;

    if (sqlite3_prepare_v2(w->eye, sql, -1, &s, NULL) != SQLITE_OK)
        broken(w, "the check itself is wrong: %s in %s", sqlite3_errmsg(w->eye), sql);
    while (s && !w->broken && sqlite3_step(s) == SQLITE_ROW)
        check_key(w, sqlite3_column_int64(s, 0), what);
    sqlite3_finalize(s);
}

/* A purged task is gone whole but for its keys and its audit. */
static void check_purged(struct sim *w, const struct tale *t)
{
    static const char *const parts[] = {
        "SELECT count(*) FROM task_log WHERE task_id = ?1 AND to_status IS NOT NULL",
        "SELECT count(*) FROM task_payload WHERE task_id = ?1",
        "SELECT 1 - count(*) FROM request_key WHERE task_id = ?1 AND submit_id = ?1",
    };
    char id[24];

    (void)snprintf(id, sizeof(id), "%lld", (long long)t->row.id);
    for (size_t i = 0; i < BS_COUNT(parts) && !w->broken; i++)
        if (view_count(w, parts[i], id) != 0)
            broken(w, "%s was purged, and this is wrong: %s", t->row.request_id, parts[i]);
}

void past_check(struct sim *w, bool last)
{
    check_keys(w,
               "SELECT task_id FROM request_key WHERE task_id NOT IN (SELECT id FROM task UNION "
               "ALL SELECT id FROM task_history)",
               "request_key");
    if (!w->broken)
        check_keys(w,
                   "SELECT task_id FROM effect_key WHERE task_id NOT IN (SELECT id FROM task UNION "
                   "ALL SELECT id FROM task_history)",
                   "effect_key");
    for (uint32_t i = 0; last && i < w->tales_n && !w->broken; i++)
        if (w->tales[i].purged)
            check_purged(w, &w->tales[i]);
}

/* ---- as the API reads it ---- */

static void read_log(struct sim *w, struct bs_store *s, const struct tale *t, struct bs_arena *a)
{
    struct bs_log_page page = { 0 };
    struct bs_err err = { 0 };
    bs_rc rc = bs_store_log(s, t->row.id, 0, 200, a, &page, &err);
    bool ended = page.next_after != 0;

    /* Not always the last one: items stand in the order in which the steps were asked for. */
    for (uint32_t i = 0; i < page.n; i++)
        ended |= page.items[i].to == t->row.state;
    if (rc != BS_OK || !ended)
        broken(w, "the log of the archived %s is read as %s, without its end", t->row.request_id,
               bs_rc_name(rc));
}

static void read_one(struct sim *w, struct bs_store *s, const struct tale *t)
{
    BS_CLEANUP(bs_arena_free) struct bs_arena a = { 0 };
    struct bs_task task = { 0 };
    struct bs_err err = { 0 };
    bs_rc rc = bs_store_task(s, t->row.id, &a, &task, &err);

    if (t->purged) {
        if (rc != BS_E_NOT_FOUND)
            broken(w, "the purged %s is read as %s", t->row.request_id, bs_rc_name(rc));
        return;
    }
    if (rc != BS_OK || task.state != t->row.state || task.version != t->row.version ||
        task.money.minor != t->row.amount || !bs_str_is(task.request_id, t->row.request_id) ||
        task.payload.n == 0)
        broken(w, "the archived %s is not read as it was (%s)", t->row.request_id, bs_rc_name(rc));
    else
        read_log(w, s, t, &a);
}

void past_read_all(struct sim *w, struct bs_store *s)
{
    for (uint32_t i = 0; i < w->tales_n && !w->broken; i++)
        if (w->tales[i].archived)
            read_one(w, s, &w->tales[i]);
}
