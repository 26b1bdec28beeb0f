/* SIGHUP: a whole new set of queues, or nothing. And queues that tasks wait in but nobody names. */
#include "app/notify.h"
#include "app/server_parts.h"

/* ---- queues without a handler ---- */

static bool is_open(enum bs_state state, bool with_people)
{
    return state == BS_WAITING || state == BS_RETRY || state == BS_PROCESSING ||
           (with_people && state == BS_MANUAL);
}

static struct bs_orphan *orphan_of(struct bs_orphan *items, uint32_t *n, struct bs_str biz_type)
{
    for (uint32_t i = 0; i < *n; i++)
        if (bs_str_eq(items[i].biz_type, biz_type))
            return &items[i];
    items[*n].biz_type = biz_type;
    return &items[(*n)++];
}

bs_rc bs_server_orphans(struct bs_server *s, const struct bs_queues *before,
                        const struct bs_queues *now, struct bs_arena *a, struct bs_orphan **ret,
                        uint32_t *ret_n, struct bs_err *err)
{
    struct bs_stat_row *rows = NULL;
    struct bs_orphan *items;
    uint32_t rows_n = 0, n = 0;

    BS_TRY(bs_store_stats(s->reader, a, &rows, &rows_n, err));
    items = BS_NEW_ARRAY(a, struct bs_orphan, rows_n + 1);
    if (!items)
        return bs_fail(err, BS_E_NOMEM, "no memory for the list of queues");
    for (uint32_t i = 0; i < rows_n; i++) {
        if (rows[i].count <= 0 || !is_open(rows[i].state, before != NULL) ||
            bs_queue_find(now, rows[i].biz_type) ||
            (before && !bs_queue_find(before, rows[i].biz_type)))
            continue;
        orphan_of(items, &n, rows[i].biz_type)->count += rows[i].count;
    }
    *ret = items;
    *ret_n = n;
    return BS_OK;
}

static void alerts_done(struct bs_work *w, bs_rc rc, const struct bs_err *err)
{
    (void)w;
    if (rc != BS_OK)
        bs_log(BS_LOG_WARN, "alert.not_recorded", BS_FZ("kind", "queue_without_handler"),
               BS_FZ("message", err ? err->msg : ""));
}

static bs_rc send_alerts(struct bs_server *s, const struct bs_orphan *items, uint32_t n,
                         struct bs_err *err)
{
    struct bs_time now = bs_now(s->clock);
    struct bs_op *ops = BS_NEW_ARRAY(&s->arena, struct bs_op, n);
    struct bs_op **list = BS_NEW_ARRAY(&s->arena, struct bs_op *, n);

    if (!ops || !list)
        return bs_fail(err, BS_E_NOMEM, "no memory for alerts");
    for (uint32_t i = 0; i < n; i++) {
        struct bs_str name = bs_arena_str(&s->arena, items[i].biz_type);
        struct bs_str text = bs_arena_fmt(
            &s->arena, "%lld tasks wait in the queue %.*s, which the configuration does not name",
            (long long)items[i].count, BS_STR_FMT(name));
        ops[i] = (struct bs_op){ .kind = BS_OP_ALERT, .id = bs_ids_next(&s->ids, now), .now = now };
        ops[i].alert = (struct bs_op_alert){ .kind = BS_STR("queue_without_handler"),
                                             .subject = name,
                                             .biz_type = name,
                                             .message = text };
        list[i] = &ops[i];
        bs_log(BS_LOG_WARN, "queue.without_handler", BS_F("biz_type", name),
               BS_FN("tasks", items[i].count));
    }
    s->alerts =
        (struct bs_work){ .rank = BS_RANK_MAINTENANCE, .ops = list, .n = n, .done = alerts_done };
    if (!bs_committer_send(s->committer, &s->alerts))
        return bs_fail(err, BS_E_BUSY, "the committer takes no alerts");
    return BS_OK;
}

void bs_server_alert_orphans(struct bs_server *s)
{
    BS_CLEANUP(bs_arena_free) struct bs_arena a = { 0 };
    struct bs_orphan *items = NULL;
    struct bs_err err = { 0 };
    uint32_t n = 0;
    bs_rc rc = bs_server_orphans(s, NULL, &bs_server_config(s)->queues, &a, &items, &n, &err);

    if (rc == BS_OK && n > 0)
        rc = send_alerts(s, items, n, &err);
    if (rc != BS_OK)
        bs_log(BS_LOG_WARN, "alert.not_recorded", BS_FZ("kind", "queue_without_handler"),
               BS_FZ("message", err.msg));
}

/* ---- reloading ---- */

static void log_refusal(struct bs_str report)
{
    bs_log(BS_LOG_ERROR, "config.refused",
           BS_FZ("message", "the new configuration is not taken over; the old one holds"));
    while (report.n) {
        struct bs_str line = bs_str_cut(&report, '\n');
        if (line.n)
            bs_log(BS_LOG_ERROR, "config.fault", BS_F("message", line));
    }
}

/* A queue may go only when nothing waits in it: its tasks would be left without a handler. */
static bool may_go(struct bs_server *s, const struct bs_config *fresh, struct bs_buf *report)
{
    BS_CLEANUP(bs_arena_free) struct bs_arena a = { 0 };
    struct bs_orphan *items = NULL;
    struct bs_err err = { 0 };
    uint32_t n = 0;

    if (bs_server_orphans(s, &bs_server_config(s)->queues, &fresh->queues, &a, &items, &n, &err) !=
        BS_OK) {
        bs_buf_fmt(report, "the store cannot be asked for open tasks: %s\n", err.msg);
        return false;
    }
    for (uint32_t i = 0; i < n; i++)
        bs_buf_fmt(report,
                   "the queue %.*s is gone from the file but has %lld open task%s; put it back, "
                   "or end them first\n",
                   BS_STR_FMT(items[i].biz_type), (long long)items[i].count,
                   items[i].count == 1 ? "" : "s");
    return n == 0;
}

static void note_changed(const char *key, const char *before, const char *now)
{
    if (strcmp(before, now) != 0)
        bs_log(BS_LOG_WARN, "config.needs_restart", BS_FZ("key", key), BS_FZ("running", before),
               BS_FZ("file", now));
}

static void take_over(struct bs_server *s, struct bs_config *fresh)
{
    const struct bs_config *old = bs_server_config(s);

    note_changed("listen", old->listen, fresh->listen);
    note_changed("store", old->store_url, fresh->store_url);
    note_changed("socket", old->socket, fresh->socket);
    note_changed("node", old->node, fresh->node);
    s->configs[s->configs_n++] = fresh;
    bs_log_setup(2, s->log_json ? 1 : fresh->log_form, fresh->log_level);
    atomic_store(&s->queues.now, &fresh->queues);
    bs_engine_reload(s->engine);
    if (atomic_load(&s->watch))
        bs_alerts_reload(atomic_load(&s->watch));
    bs_log(BS_LOG_INFO, "config.reloaded", BS_FN("queues", fresh->queues.n),
           BS_FZ("config", fresh->file ? fresh->file : "(defaults)"));
}

void bs_server_reload(struct bs_server *s)
{
    BS_CLEANUP(bs_buf_free) struct bs_buf report = { .max = 256 << 10 };
    struct bs_config *fresh = NULL;
    bs_rc rc;

    bs_notify_reloading();
    rc = bs_config_load(s->file, BS_CONFIG_WHOLE, &fresh, &report);
    if (rc == BS_OK && s->configs_n == BS_CONFIGS_MAX)
        bs_buf_fmt(&report, "this process was reloaded %d times; restart it\n", BS_CONFIGS_MAX);
    else if (rc == BS_OK && may_go(s, fresh, &report))
        take_over(s, fresh);
    if (report.len) {
        log_refusal(bs_buf_str(&report));
        if (rc == BS_OK)
            bs_config_free(fresh);
    }
    bs_notify_ready();
}
