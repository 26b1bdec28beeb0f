/* backstop alert, backstop stats: what a person watches. */
#include "app/client.h"
#include "app/view.h"

#include <stdio.h>

static enum bs_exit table(const struct bs_cli *cli, const char *path,
                          const struct bs_column *columns, uint32_t n, const char *none)
{
    BS_CLEANUP(bs_client_reply_done) struct bs_client_reply r = { 0 };
    BS_CLEANUP(bs_buf_free) struct bs_buf out = { .max = 64 << 20 };
    struct bs_err err = { 0 };
    enum bs_exit code = bs_client_ask(cli, &(struct bs_client_request){ "GET", path }, &r);

    if (code != BS_EXIT_DONE)
        return code;
    if (bs_cli_json(cli)) {
        bs_client_print(&r);
        return BS_EXIT_DONE;
    }
    if (bs_view_table(&out, bs_buf_str(&r.body), columns, n, none, &err) != BS_OK) {
        bs_complain("the answer of the server is not understood: %s", err.msg);
        return BS_EXIT_FAILED;
    }
    fputs(bs_buf_str(&out).p, stdout);
    bs_client_more(&r);
    return BS_EXIT_DONE;
}

static const struct bs_column alert_columns[] = {
    { "FIRST", "first_at" }, { "LAST", "last_at" },    { "COUNT", "count" },     { "KIND", "kind" },
    { "QUEUE", "biz_type" }, { "TASK_NO", "task_no" }, { "MESSAGE", "message" },
};

static enum bs_exit alerts(const struct bs_cli *cli)
{
    BS_CLEANUP(bs_buf_free) struct bs_buf path = { .max = 4096 };

    bs_buf_addz(&path, "/v1/alerts");
    bs_client_param(&path, "limit", bs_cli_get(cli, "limit"));
    bs_client_param(&path, "cursor", bs_cli_get(cli, "cursor"));
    return table(cli, bs_buf_str(&path).p, alert_columns, BS_COUNT(alert_columns), "no alert");
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
    BS_CLEANUP(bs_client_reply_done) struct bs_client_reply r = { 0 };
    BS_CLEANUP(bs_buf_free) struct bs_buf counts = { .max = 64 << 20 }, sums = { .max = 64 << 20 };
    struct bs_err err = { 0 };
    enum bs_exit code = bs_client_ask(cli, &(struct bs_client_request){ "GET", "/v1/stats" }, &r);

    if (code != BS_EXIT_DONE)
        return code;
    if (bs_cli_json(cli)) {
        bs_client_print(&r);
        return BS_EXIT_DONE;
    }
    if (bs_view_table(&counts, bs_buf_str(&r.body), stats_columns, BS_COUNT(stats_columns),
                      "no queue and no task", &err) != BS_OK ||
        bs_view_inner(&sums, bs_buf_str(&r.body), "amounts", amounts_columns,
                      BS_COUNT(amounts_columns), &err) != BS_OK) {
        bs_complain("the answer of the server is not understood: %s", err.msg);
        return BS_EXIT_FAILED;
    }
    printf("%s%s%s", bs_buf_str(&counts).p, sums.len ? "\n" : "", sums.len ? sums.p : "");
    return BS_EXIT_DONE;
}

static const struct bs_option options[] = {
    { "limit", "N", "at most so many, up to 200", NULL },
    { "cursor", "CURSOR", "goes on where the last page ended", NULL },
};

static const struct bs_command commands[] = {
    { .name = "alert list",
      .doc = "What needs attention, newest first.",
      .options = options,
      .options_n = BS_COUNT(options),
      .run = alerts },
    { .name = "stats",
      .doc = "How many tasks and how much money stand in which state.",
      .run = stats },
};
const struct bs_group bs_commands_watch = { commands, BS_COUNT(commands) };
