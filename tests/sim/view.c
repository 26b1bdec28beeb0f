/* The checker's eye: reads the store by its own connection and its own SQL, after every step that
 * changed it. With past.c and told.c the only file that knows the schema. */
#include "sim.h"

#include <string.h>

#define COLUMNS                                                                                    \
    "SELECT id, version, task_status, retry_count, max_retry_count, attempt_no, crash_count, "     \
    "priority, outcome_unknown, blocked_key IS NOT NULL, close_pending, next_execute_at, due_at, " \
    "locked_at, locked_until, lease_token, amount, created_at, request_id, biz_type, serial_key, " \
    "effect_key, manual_code, conclusion, last_error_code, run_key, updated_at FROM "
#define ROWS_SQL COLUMNS "task ORDER BY id"
#define LOG_SQL                                                                                    \
    "SELECT at, event, from_status, to_status, attempt_no, token, claimed_at IS NOT NULL, "        \
    "via_failed, operator IS NOT NULL FROM task_log "                                              \
    "WHERE task_id = ?1 AND version > ?2 AND to_status IS NOT NULL ORDER BY version, id"

enum { MOVES_MAX = 32 };

const char view_columns[] = COLUMNS;

static struct bs_str text_at(sqlite3_stmt *s, int col)
{
    const char *p = (const char *)sqlite3_column_text(s, col);

    return (struct bs_str){ p ? p : "", p ? (size_t)sqlite3_column_bytes(s, col) : 0 };
}

static void copy_text(char *to, size_t max, struct bs_str s)
{
    BS_ASSERT(s.n < max);
    memcpy(to, s.p, s.n);
    to[s.n] = '\0';
}

bool view_open(struct sim *w)
{
    return sqlite3_open_v2(w->path, &w->eye, SQLITE_OPEN_READONLY, NULL) == SQLITE_OK &&
           sqlite3_prepare_v2(w->eye, ROWS_SQL, -1, &w->eye_rows, NULL) == SQLITE_OK &&
           sqlite3_prepare_v2(w->eye, LOG_SQL, -1, &w->eye_log, NULL) == SQLITE_OK &&
           sqlite3_prepare_v2(w->eye, "PRAGMA data_version", -1, &w->eye_version, NULL) ==
               SQLITE_OK &&
           past_open(w);
}

void view_close(struct sim *w)
{
    sqlite3_finalize(w->eye_rows);
    sqlite3_finalize(w->eye_log);
    sqlite3_finalize(w->eye_version);
    past_close(w);
    sqlite3_close(w->eye);
    w->eye = NULL;
}

/* ---- which task ---- */

static uint32_t *slot_of(struct sim *w, int64_t id)
{
    uint32_t at = (uint32_t)(((uint64_t)id * 0x9e3779b97f4a7c15u) >> 40) % BS_COUNT(w->slots);

    while (w->slots[at] && w->tales[w->slots[at] - 1].row.id != id)
        at = (at + 1) % (uint32_t)BS_COUNT(w->slots);
    return &w->slots[at];
}

struct tale *tale_of(struct sim *w, int64_t id)
{
    uint32_t *slot = slot_of(w, id);

    return *slot ? &w->tales[*slot - 1] : NULL;
}

struct tale *tale_of_request(struct sim *w, const char *request_id, size_t n)
{
    for (uint32_t i = 0; i < w->tales_n; i++)
        if (w->tales[i].present && strlen(w->tales[i].row.request_id) == n &&
            memcmp(w->tales[i].row.request_id, request_id, n) == 0)
            return &w->tales[i];
    return NULL;
}

static struct tale *new_tale(struct sim *w, int64_t id)
{
    BS_ASSERT(w->tales_n < SIM_TALES);
    uint32_t *slot = slot_of(w, id);
    struct tale *t = &w->tales[w->tales_n++];

    *t = (struct tale){ .row = { .id = id } };
    *slot = w->tales_n;
    return t;
}

/* ---- reading ---- */

static void read_numbers(sqlite3_stmt *s, struct row *r)
{
    r->version = sqlite3_column_int64(s, 1);
    r->state = bs_state_parse(text_at(s, 2));
    r->retry_count = sqlite3_column_int(s, 3);
    r->max_retry_count = sqlite3_column_int(s, 4);
    r->attempt_no = sqlite3_column_int(s, 5);
    r->crash_count = sqlite3_column_int(s, 6);
    r->priority = sqlite3_column_int(s, 7);
    r->unknown = sqlite3_column_int(s, 8) != 0;
    r->blocked = sqlite3_column_int(s, 9) != 0;
    r->pending = sqlite3_column_int(s, 10);
    r->next_at = sqlite3_column_int64(s, 11);
    r->due_at = sqlite3_column_int64(s, 12);
    r->locked_at = sqlite3_column_int64(s, 13);
    r->locked_until = sqlite3_column_int64(s, 14);
    r->token = sqlite3_column_int64(s, 15);
    r->amount = sqlite3_column_int64(s, 16);
    r->created_at = sqlite3_column_int64(s, 17);
    r->running = sqlite3_column_type(s, 25) != SQLITE_NULL;
    r->updated_at = sqlite3_column_int64(s, 26);
}

/* What a task keeps for its life is read once; whether it really stays is checked by amount and at
 * the end. */
static void read_texts(sqlite3_stmt *s, struct row *r, bool first)
{
    if (first) {
        copy_text(r->request_id, sizeof(r->request_id), text_at(s, 18));
        copy_text(r->biz_type, sizeof(r->biz_type), text_at(s, 19));
        copy_text(r->serial_key, sizeof(r->serial_key), text_at(s, 20));
        copy_text(r->effect_key, sizeof(r->effect_key), text_at(s, 21));
    }
    copy_text(r->manual_code, sizeof(r->manual_code), text_at(s, 22));
    copy_text(r->conclusion, sizeof(r->conclusion), text_at(s, 23));
    copy_text(r->last_code, sizeof(r->last_code), text_at(s, 24));
}

void view_read(sqlite3_stmt *s, struct row *r, bool first)
{
    int64_t version = r->version;

    read_numbers(s, r);
    if (r->version != version || first)
        read_texts(s, r, first);
}

/* ---- which way it went: the log's rows, in the order of versions, as single moves ---- */

struct path {
    struct sim *w;
    const struct row *is;
    struct moved moves[MOVES_MAX];
    uint32_t n;
    uint32_t writes; /* versions that these moves explain */
    enum bs_state at;
};

static void path_add(struct path *p, enum bs_event event, enum bs_state to, struct moved m)
{
    BS_ASSERT(p->n < MOVES_MAX);
    m.event = event;
    m.from = p->at;
    m.to = to;
    p->moves[p->n++] = m;
    p->at = to;
}

static void path_claim(struct path *p, struct moved m)
{
    m.by_person = false;
    path_add(p, BS_EV_CLAIM, BS_PROCESSING, m);
    p->writes++;
}

static void path_log(struct path *p, sqlite3_stmt *s)
{
    struct moved m = { .at = sqlite3_column_int64(s, 0),
                       .attempt_no = sqlite3_column_int(s, 4),
                       .token = sqlite3_column_int64(s, 5),
                       .by_person = sqlite3_column_int(s, 8) != 0 };
    enum bs_event event = bs_event_parse(text_at(s, 1));
    enum bs_state from = bs_state_parse(text_at(s, 2));
    enum bs_state to = bs_state_parse(text_at(s, 3));

    if (event == BS_EVENT_COUNT || to == BS_STATE_NONE) {
        broken(p->w, "the log of %lld has an unknown event or state", (long long)p->is->id);
        return;
    }
    if (p->at != BS_PROCESSING && (sqlite3_column_int(s, 6) || event == BS_EV_ASK_CLOSE))
        path_claim(p, m);
    if (p->at != BS_PROCESSING && p->at != from)
        broken(p->w, "the log of %lld says %s from %s, but it was %s", (long long)p->is->id,
               bs_event_name(event), bs_state_name(from), bs_state_name(p->at));
    p->writes++;
    if (sqlite3_column_int(s, 7)) {
        path_add(p, event, BS_FAILED, m);
        event = BS_EV_ESCALATE;
    }
    path_add(p, event, to, m);
}

static void path_read(struct sim *w, struct path *p, const struct row *was)
{
    sqlite3_stmt *s = w->eye_log;

    sqlite3_bind_int64(s, 1, p->is->id);
    sqlite3_bind_int64(s, 2, was->version);
    while (sqlite3_step(s) == SQLITE_ROW && !w->broken)
        path_log(p, s);
    sqlite3_reset(s);
    if (p->at != BS_PROCESSING && p->is->state == BS_PROCESSING)
        path_claim(p, (struct moved){ .at = p->is->locked_at,
                                      .token = p->is->token,
                                      .attempt_no = p->is->attempt_no });
}

/* The submission is the row itself, not a log row. */
static void path_begin(struct path *p)
{
    bool parked = p->is->version == 1 && p->is->state == BS_MANUAL;
    struct moved m = { .at = p->is->created_at };

    path_add(p, parked ? BS_EV_PARK : BS_EV_SUBMIT, parked ? BS_MANUAL : BS_WAITING, m);
    p->writes++;
}

void view_follow(struct sim *w, struct tale *t, const struct row *was, const struct row *is)
{
    struct path p = { .w = w, .is = is, .at = was->state };

    if (was->version == 0)
        path_begin(&p);
    if (is->version != was->version)
        path_read(w, &p, was);
    if (w->broken)
        return;
    if (p.at != is->state)
        broken(w, "task %lld is %s, but its log ends with %s", (long long)is->id,
               bs_state_name(is->state), bs_state_name(p.at));
    if (is->version != was->version + (int64_t)p.writes)
        broken(w, "task %lld went from version %lld to %lld with %u logged changes",
               (long long)is->id, (long long)was->version, (long long)is->version, p.writes);
    check_row(w, t, was, is, p.moves, p.n);
}

static uint32_t read_rows(struct sim *w)
{
    sqlite3_stmt *s = w->eye_rows;
    uint32_t seen = 0;

    while (sqlite3_step(s) == SQLITE_ROW && !w->broken) {
        int64_t id = sqlite3_column_int64(s, 0);
        struct tale *t = tale_of(w, id);
        bool first = !t;

        if (!t)
            t = new_tale(w, id);
        struct row was = t->row;
        struct row is = was;

        seen++;
        t->seen = w->looks_taken;
        if (t->archived)
            broken(w, "task %lld has come back from history", (long long)id);
        view_read(s, &is, first);
        if (!first && is.amount != was.amount)
            broken(w, "the content of task %lld changed", (long long)id);
        if (!first && memcmp(&is, &was, sizeof(is)) == 0)
            continue;
        t->present = true;
        t->row = is;
        if (first) {
            check_new(w, t);
            t->ran_us = sim_now(w).us - is.created_at; /* it waited to be committed */
        }
        view_follow(w, t, &was, &is);
    }
    sqlite3_reset(s);
    return seen;
}

void view_look(struct sim *w)
{
    if (!w->eye)
        return;
    int step = sqlite3_step(w->eye_version);
    int64_t version = step == SQLITE_ROW ? sqlite3_column_int64(w->eye_version, 0) : -1;

    sqlite3_reset(w->eye_version);
    if (version == w->eye_at)
        return;
    w->eye_at = version;
    w->looks_taken++;
    atomic_fetch_add(&w->hits->commits, 1);
    uint32_t seen = read_rows(w);

    if (!w->broken)
        past_look(w);
    if (seen + w->archived_n != w->tales_n && !w->broken)
        broken(w, "%u tasks have disappeared", w->tales_n - seen - w->archived_n);
    if (!w->broken)
        check_together(w);
    if (!w->broken && w->looks_taken % 40 == 0)
        view_check_all(w, false);
}

/* ---- the store against itself ---- */

#define BOTH                                                                                       \
    "(SELECT id, request_id, merchant_no, biz_type, effect_key, task_status, conclusion, "         \
    "manual_code FROM task UNION ALL SELECT id, request_id, merchant_no, biz_type, effect_key, "   \
    "task_status, conclusion, manual_code FROM task_history) both"

/* Each statement gives what is wrong, a line a row. */
static const char *const whole[] = {
    "SELECT 'queue_stat of ' || biz_type || ' ' || task_status || ' is off by ' || sum(n) || '/' "
    "|| "
    "sum(unknown) || '/' || sum(amount) FROM (SELECT biz_type, task_status, currency, sum(n) AS n, "
    "sum(amount) AS amount, sum(unknown) AS unknown FROM queue_stat GROUP BY 1, 2, 3 UNION ALL "
    "SELECT biz_type, task_status, coalesce(currency, ''), -count(*), -sum(coalesce(amount, 0)), "
    "-sum(outcome_unknown) FROM (SELECT biz_type, task_status, currency, amount, outcome_unknown "
    "FROM task UNION ALL SELECT biz_type, task_status, currency, amount, outcome_unknown FROM "
    "task_history) GROUP BY 1, 2, 3) GROUP BY biz_type, task_status, currency "
    "HAVING sum(n) <> 0 OR sum(amount) <> 0 OR sum(unknown) <> 0",
    "SELECT 'two tasks for request ' || request_id FROM " BOTH " WHERE manual_code IS NOT "
    "'REQUEST_CONFLICT' GROUP BY request_id HAVING count(*) > 1",
    "SELECT 'task ' || id || ' has no request_key' FROM " BOTH " WHERE NOT EXISTS (SELECT 1 FROM "
    "request_key k WHERE k.request_id = both.request_id)",
    "SELECT 'effect ' || effect_key || ' has two open tasks' FROM " BOTH " WHERE effect_key IS NOT "
    "NULL "
    "AND NOT (task_status = 'CLOSED' AND conclusion = 'not_done') AND manual_code IS NOT "
    "'EFFECT_CONFLICT' GROUP BY merchant_no, biz_type, effect_key HAVING count(*) > 1",
    "SELECT 'alert ' || kind || ' of ' || subject || ' is open twice' FROM alert_event WHERE open "
    "= 1 "
    "GROUP BY kind, subject HAVING count(*) > 1",
    "SELECT 'task ' || task_id || ' attempt ' || attempt_no || ' ends twice' FROM task_log WHERE "
    "claimed_at IS NOT NULL AND to_status IS NOT NULL AND to_status <> 'PROCESSING' "
    "GROUP BY task_id, attempt_no, token HAVING count(*) > 1",
    "SELECT 'human change of task ' || task_id || ' by ' || operator || ' has ' || (SELECT "
    "count(*) "
    "FROM audit a WHERE a.operator = l.operator) || ' audit rows' FROM task_log l WHERE operator "
    "LIKE "
    "'op-%' AND (SELECT count(*) FROM audit a WHERE a.operator = l.operator) <> 1",
    "SELECT 'the result of task ' || s.task_id || ' attempt ' || s.attempt_no || ' was taken, and "
    "refused as late' FROM task_log s JOIN task_log e ON e.task_id = s.task_id AND e.token = "
    "s.token "
    "WHERE s.event = 'stale_result' AND e.claimed_at IS NOT NULL AND e.outcome <> 'lease_expired'",
    "SELECT 'operator ' || operator || ' acted twice' FROM audit GROUP BY operator HAVING count(*) "
    "> 1",
    "SELECT 'audit row of ' || operator || ' is incomplete' FROM audit WHERE object = '' OR action "
    "= "
    "'' OR (action IN ('close', 'resolve') AND conclusion IS NULL) OR (action IN ('retry', 'hold', "
    "'unhold', 'close', 'resolve') AND (reason IS NULL OR before IS NULL OR after IS NULL))",
};

void view_check_rows(struct sim *w, const char *sql)
{
    sqlite3_stmt *s = NULL;

    if (sqlite3_prepare_v2(w->eye, sql, -1, &s, NULL) != SQLITE_OK) {
        broken(w, "the check itself is wrong: %s in %s", sqlite3_errmsg(w->eye), sql);
        return;
    }
    if (sqlite3_step(s) == SQLITE_ROW)
        broken(w, "%.*s", BS_STR_FMT(text_at(s, 0)));
    sqlite3_finalize(s);
}

int64_t view_count(struct sim *w, const char *sql, const char *arg)
{
    sqlite3_stmt *s = NULL;
    int64_t n = -1;

    if (sqlite3_prepare_v2(w->eye, sql, -1, &s, NULL) == SQLITE_OK) {
        sqlite3_bind_text(s, 1, arg, -1, SQLITE_STATIC);
        if (sqlite3_step(s) == SQLITE_ROW)
            n = sqlite3_column_int64(s, 0);
    }
    sqlite3_finalize(s);
    return n;
}

/* An alert that somebody raised once is there once, however often its commit was repeated. */
static void check_drill(struct sim *w, const struct act *a, const char *name)
{
    int64_t n =
        view_count(w, "SELECT coalesce(sum(count), 0) FROM alert_event WHERE subject = ?1", name);

    if (n > 1 || (a->answered && n != 1))
        broken(w, "the drill of %s was counted %lld times", name, (long long)n);
}

/* Each deed that was answered with success has its audit row, each that was refused has none. */
static void check_deeds(struct sim *w)
{
    char name[24];

    for (uint32_t i = 0; i < w->acts_n && !w->broken; i++) {
        const struct act *a = &w->acts[i];

        (void)snprintf(name, sizeof(name), "op-%u", i);
        if (a->kind == BS_OP_ALERT) {
            check_drill(w, a, name);
            continue;
        }
        if (!a->answered)
            continue;
        int64_t n = view_count(w, "SELECT count(*) FROM audit WHERE operator = ?1", name);

        if (a->rc == BS_OK && n != 1)
            broken(w, "the deed of %s has %lld audit rows", name, (long long)n);
        if (a->rc != BS_OK && n != 0)
            broken(w, "the refused deed of %s has an audit row", name);
        const struct tale *t = a->task_id ? tale_of(w, a->task_id) : NULL;
        if (a->rc == BS_OK && a->expected && !(t && t->purged) &&
            view_count(w, "SELECT version FROM task_log WHERE operator = ?1", name) !=
                a->expected + 1)
            broken(w, "the deed of %s expected another version", name);
    }
}

/* A move that alerts is counted in its queue's alert of its kind, as often as it happened. A
 * waiting request that ends in MANUAL alerts too, unless it was a hold. */
static void check_alerted(struct sim *w)
{
    for (uint32_t i = 0; i < SIM_QUEUES && !w->broken; i++) {
        char name[40];

        (void)snprintf(name, sizeof(name), "%.*s", BS_STR_FMT(w->confs[i].biz_type));
        int64_t n = view_count(w,
                               "SELECT coalesce(sum(count), 0) FROM alert_event WHERE biz_type = "
                               "?1 AND kind IN ('max_retries', 'max_age', 'outcome_unknown', "
                               "'worker_lost', 'manual')",
                               name);

        if (n < w->to_person[i] || n > w->to_person[i] + w->perhaps_to_person[i])
            broken(w,
                   "tasks of %s went %u times to a person, and perhaps %u times more; alerts: %lld",
                   name, w->to_person[i], w->perhaps_to_person[i], (long long)n);
    }
}

static const char *const alerts[] = {
    "SELECT 'no alert tells that task ' || task_id || ' has no handler' FROM task_log l JOIN task "
    "t "
    "ON t.id = l.task_id WHERE event = 'no_handler' AND NOT EXISTS (SELECT 1 FROM alert_event a "
    "WHERE a.kind = 'no_handler' AND a.biz_type = t.biz_type)",
    "SELECT 'no alert tells that task ' || id || ' was parked' FROM task t WHERE manual_code = "
    "'UNKNOWN_QUEUE' AND NOT EXISTS (SELECT 1 FROM alert_event a WHERE a.task_id = t.id OR "
    "a.biz_type = t.biz_type)",
};

uint64_t view_count_stale(struct sim *w, const char *node)
{
    if (!w->eye)
        return UINT64_MAX;
    int64_t n = view_count(
        w, "SELECT count(*) FROM task_log WHERE event = 'stale_result' AND node = ?1", node);

    return n < 0 ? UINT64_MAX : (uint64_t)n;
}

bool view_has_stale(struct sim *w, const struct exchange *x)
{
    sqlite3_stmt *s = NULL;
    bool found = false;

    if (sqlite3_prepare_v2(w->eye,
                           "SELECT 1 FROM task_log WHERE task_id = ?1 AND token = ?2 AND event = "
                           "'stale_result'",
                           -1, &s, NULL) == SQLITE_OK) {
        sqlite3_bind_int64(s, 1, w->tales[x->tale].row.id);
        sqlite3_bind_int64(s, 2, x->fence);
        found = sqlite3_step(s) == SQLITE_ROW;
    }
    sqlite3_finalize(s);
    return found;
}

/* What was heard of pauses is what the store remembers. */
static void check_pauses(struct sim *w)
{
    for (uint32_t i = 0; i < SIM_QUEUES && !w->broken; i++) {
        char name[40];

        (void)snprintf(name, sizeof(name), "%.*s", BS_STR_FMT(w->confs[i].biz_type));
        int64_t paused =
            view_count(w, "SELECT max(paused) FROM queue_state WHERE biz_type = ?1", name);

        if ((paused == 1) != w->paused[i])
            broken(w, "the pause of %s is %lld in the store", name, (long long)paused);
    }
}

void view_check_all(struct sim *w, bool last)
{
    for (size_t i = 0; i < BS_COUNT(whole) && !w->broken; i++)
        view_check_rows(w, whole[i]);
    for (size_t i = 0; i < BS_COUNT(alerts) && last && !w->broken; i++)
        view_check_rows(w, alerts[i]);
    if (!w->broken)
        past_check(w, last);
    if (!w->broken)
        told_check(w, last);
    if (last && !w->broken)
        check_alerted(w);
    if (last)
        check_deeds(w);
    if (last)
        check_pauses(w);
}
