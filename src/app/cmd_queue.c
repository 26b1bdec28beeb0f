/* backstop queue: look at queues, pause and resume them. */
#include "app/client.h"
#include "app/view.h"
#include "json/write.h"

#include <stdio.h>

static const struct bs_column columns[] = {
    { "QUEUE", "biz_type" },
    { "CONFIGURED", "configured" },
    { "PAUSED", "paused" },
    { "BREAKER", "breaker.state" },
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
    { "CALL P99 MS", "calls.p99_ms" },
    { "REASON", "reason" },
};

static enum bs_exit list(const struct bs_cli *cli)
{
    BS_CLEANUP(bs_client_reply_done) struct bs_client_reply r = { 0 };
    BS_CLEANUP(bs_buf_free) struct bs_buf out = { .max = 16 << 20 };
    struct bs_err err = { 0 };
    enum bs_exit code = bs_client_ask(cli, &(struct bs_client_request){ "GET", "/v1/queues" }, &r);

    if (code != BS_EXIT_DONE)
        return code;
    if (bs_cli_json(cli)) {
        bs_client_print(&r);
        return BS_EXIT_DONE;
    }
    if (bs_view_table(&out, bs_buf_str(&r.body), columns, BS_COUNT(columns), "no queue", &err) !=
        BS_OK) {
        bs_complain("the answer of the server is not understood: %s", err.msg);
        return BS_EXIT_FAILED;
    }
    fputs(bs_buf_str(&out).p, stdout);
    return BS_EXIT_DONE;
}

static enum bs_exit show(const struct bs_cli *cli)
{
    BS_CLEANUP(bs_client_reply_done) struct bs_client_reply r = { 0 };
    BS_CLEANUP(bs_buf_free) struct bs_buf path = { .max = 4096 }, out = { .max = 1 << 20 };
    struct bs_err err = { 0 };

    bs_buf_addz(&path, "/v1/queues/");
    bs_client_escape(&path, bs_str_of(cli->args[0]));
    enum bs_exit code =
        bs_client_ask(cli, &(struct bs_client_request){ "GET", bs_buf_str(&path).p }, &r);
    if (code != BS_EXIT_DONE)
        return code;
    if (bs_cli_json(cli)) {
        bs_client_print(&r);
        return BS_EXIT_DONE;
    }
    if (bs_view_tree(&out, bs_buf_str(&r.body), &err) != BS_OK) {
        bs_complain("the answer of the server is not understood: %s", err.msg);
        return BS_EXIT_FAILED;
    }
    fputs(bs_buf_str(&out).p, stdout);
    return BS_EXIT_DONE;
}

static enum bs_exit change(const struct bs_cli *cli, const char *action)
{
    BS_CLEANUP(bs_buf_free) struct bs_buf path = { .max = 4096 }, body = { .max = 16 << 10 };
    BS_CLEANUP(bs_client_reply_done) struct bs_client_reply r = { 0 };
    struct bs_client_request q = { .method = "POST" };
    const char *reason = bs_cli_get(cli, "reason");
    struct bs_json *j = reason ? bs_json_new(&body) : NULL;
    enum bs_exit code;

    if (!reason) {
        bs_complain("%s needs --reason: why it is done is kept with what was done",
                    cli->command->name);
        return BS_EXIT_USAGE;
    }
    if (j) {
        bs_json_open(j);
        bs_json_kstr(j, "reason", bs_str_of(reason));
        bs_json_close(j);
    }
    if (!j || bs_json_end(j, NULL) != BS_OK) {
        bs_complain("the reason is too long");
        return BS_EXIT_FAILED;
    }
    bs_buf_addz(&path, "/v1/queues/");
    bs_client_escape(&path, bs_str_of(cli->args[0]));
    bs_buf_addz(&path, action);
    q.path = bs_buf_str(&path).p;
    q.body = bs_buf_str(&body);
    code = bs_client_ask(cli, &q, &r);
    if (code == BS_EXIT_DONE && bs_cli_json(cli))
        bs_client_print(&r);
    else if (code == BS_EXIT_DONE)
        printf("%s: %s\n", cli->args[0], strcmp(action, "/pause") == 0 ? "paused" : "resumed");
    return code;
}

static enum bs_exit pause_queue(const struct bs_cli *cli)
{
    return change(cli, "/pause");
}

static enum bs_exit resume_queue(const struct bs_cli *cli)
{
    return change(cli, "/resume");
}

static const struct bs_option options[] = {
    { "reason", "TEXT", "why; required, kept in the audit", NULL },
};

static const struct bs_command commands[] = {
    { .name = "queue list", .doc = "The queues with what waits in them.", .run = list },
    { .name = "queue show",
      .args = "QUEUE",
      .args_min = 1,
      .args_max = 1,
      .doc = "One queue: its rules, what stands where, money, ages, breaker and times.",
      .run = show },
    { .name = "queue pause",
      .args = "QUEUE",
      .args_min = 1,
      .args_max = 1,
      .doc = "Begin no more tasks of a queue; submissions are still accepted. Survives restarts.",
      .options = options,
      .options_n = BS_COUNT(options),
      .run = pause_queue },
    { .name = "queue resume",
      .args = "QUEUE",
      .args_min = 1,
      .args_max = 1,
      .doc = "End a pause.",
      .options = options,
      .options_n = BS_COUNT(options),
      .run = resume_queue },
};
const struct bs_group bs_commands_queue = { commands, BS_COUNT(commands) };
