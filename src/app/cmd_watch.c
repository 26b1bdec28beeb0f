/* backstop alert, backstop stats: what a person watches. */
#include "app/client.h"
#include "app/view.h"

#include <stdio.h>

/* Two tables of one answer: its items, and what they have inside. */
struct tables {
    const char *path, *none, *inner;
    const struct bs_column *outer_columns, *inner_columns;
    uint32_t outer_n, inner_n;
};

static enum bs_exit show(const struct bs_cli *cli, const struct tables *t)
{
    BS_CLEANUP(bs_client_reply_done) struct bs_client_reply r = { 0 };
    BS_CLEANUP(bs_buf_free) struct bs_buf outer = { .max = 64 << 20 }, inner = { .max = 64 << 20 };
    struct bs_err err = { 0 };
    enum bs_exit code = bs_client_ask(cli, &(struct bs_client_request){ "GET", t->path }, &r);

    if (code != BS_EXIT_DONE)
        return code;
    if (bs_cli_json(cli)) {
        bs_client_print(&r);
        return BS_EXIT_DONE;
    }
    struct bs_str body = bs_buf_str(&r.body);
    if (bs_view_table(&outer, body, t->outer_columns, t->outer_n, t->none, &err) != BS_OK ||
        bs_view_inner(&inner, body, t->inner, t->inner_columns, t->inner_n, &err) != BS_OK) {
        bs_complain("the answer of the server is not understood: %s", err.msg);
        return BS_EXIT_FAILED;
    }
    printf("%s%s%s", bs_buf_str(&outer).p, inner.len ? "\n" : "", inner.len ? inner.p : "");
    bs_client_more(&r);
    return BS_EXIT_DONE;
}

static const struct bs_column alert_columns[] = {
    { "FIRST", "first_at" },  { "LAST", "last_at" },    { "ENDED", "recovered_at" },
    { "COUNT", "count" },     { "KIND", "kind" },       { "QUEUE", "biz_type" },
    { "TASK_NO", "task_no" }, { "MESSAGE", "message" },
};

static const struct bs_column told_columns[] = {
    { "RECEIVER", "deliverer" }, { "KIND", "kind" },    { "QUEUE", "biz_type" },
    { "PHASE", "phase" },        { "STATE", "state" },  { "TRIES", "attempts" },
    { "CODE", "code" },          { "SENT", "sent_at" }, { "NEXT TRY", "next_at" },
};

static enum bs_exit alerts(const struct bs_cli *cli)
{
    BS_CLEANUP(bs_buf_free) struct bs_buf path = { .max = 4096 };

    bs_buf_addz(&path, "/v1/alerts");
    bs_client_param(&path, "open", bs_cli_get(cli, "open"));
    bs_client_param(&path, "limit", bs_cli_get(cli, "limit"));
    bs_client_param(&path, "cursor", bs_cli_get(cli, "cursor"));
    return show(cli, &(struct tables){
                         .path = bs_buf_str(&path).p,
                         .none = "no alert",
                         .inner = "deliveries",
                         .outer_columns = alert_columns,
                         .inner_columns = told_columns,
                         .outer_n = BS_COUNT(alert_columns),
                         .inner_n = BS_COUNT(told_columns),
                     });
}

static const struct bs_column stats_columns[] = {
    { "QUEUE", "biz_type" },
    { "WAITING", "counts.WAITING" },
    { "PROCESSING", "counts.PROCESSING" },
    { "RETRY", "counts.RETRY" },
    { "MANUAL", "counts.MANUAL" },
    { "SUCCESS", "counts.SUCCESS" },
    { "CLOSED", "counts.CLOSED" },
    { "UNKNOWN", "unknown" },
    { "EXPOSURE", "exposure" },
    { "OLDEST DUE", "oldest_due" },
    { "OLDEST MANUAL", "oldest_manual" },
};

static const struct bs_column amounts_columns[] = {
    { "QUEUE", "biz_type" },
    { "STATUS", "task_status" },
    { "TASKS", "count" },
    { "AMOUNT", "amount", BS_COLUMN_AMOUNT },
};

static enum bs_exit stats(const struct bs_cli *cli)
{
    return show(cli, &(struct tables){
                         .path = "/v1/stats",
                         .none = "no queue and no task",
                         .inner = "amounts",
                         .outer_columns = stats_columns,
                         .inner_columns = amounts_columns,
                         .outer_n = BS_COUNT(stats_columns),
                         .inner_n = BS_COUNT(amounts_columns),
                     });
}

static const struct bs_option options[] = {
    { "open", "true|false", "only those that are open, or are over", NULL },
    { "limit", "N", "at most so many, up to 200", NULL },
    { "cursor", "CURSOR", "goes on where the last page ended", NULL },
};

static const struct bs_command commands[] = {
    { .name = "alert list",
      .doc = "What needs attention, newest first, and who was told.",
      .options = options,
      .options_n = BS_COUNT(options),
      .run = alerts },
    { .name = "stats",
      .doc = "How many tasks and how much money stand in which state.",
      .run = stats },
};
const struct bs_group bs_commands_watch = { commands, BS_COUNT(commands) };
