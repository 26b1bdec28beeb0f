/* backstop task: find, read, and act on tasks through the server. */
#include "app/client.h"
#include "app/view.h"
#include "json/write.h"

#include <stdio.h>

enum { PATH_MAX_BYTES = 16 << 10 };

/* Prints the answer as it came, or by the view. */
static enum bs_exit show(const struct bs_cli *cli, const struct bs_client_reply *r,
                         const struct bs_column *columns, uint32_t n, const char *none)
{
    BS_CLEANUP(bs_buf_free) struct bs_buf out = { .max = 256 << 20 };
    struct bs_err err = { 0 };
    bs_rc rc;

    if (bs_cli_json(cli)) {
        bs_client_print(r);
        return BS_EXIT_DONE;
    }
    rc = columns ? bs_view_table(&out, bs_buf_str(&r->body), columns, n, none, &err)
                 : bs_view_object(&out, bs_buf_str(&r->body), &err);
    if (rc != BS_OK) {
        bs_complain("the answer of the server is not understood: %s", err.msg);
        return BS_EXIT_FAILED;
    }
    fputs(bs_buf_str(&out).p, stdout);
    return BS_EXIT_DONE;
}

/* ---- list ---- */

static const struct bs_option list_options[] = {
    { "status", "STATE", "WAITING PROCESSING RETRY SUCCESS FAILED MANUAL or CLOSED", NULL },
    { "biz-type", "QUEUE", "tasks of one queue", NULL },
    { "order-no", "NO", "by order number", NULL },
    { "payment-no", "NO", "by payment number", NULL },
    { "channel-trade-no", "NO", "by the channel's trade number", NULL },
    { "refund-no", "NO", "by refund number", NULL },
    { "request-id", "ID", "by request id", NULL },
    { "biz-id", "ID", "by business object", NULL },
    { "source", "SOURCE", "CALLBACK API RECON PATROL MANUAL …", NULL },
    { "error-code", "CODE", "by last error code or by why a person was asked", NULL },
    { "created-from", "TIME", "RFC 3339, such as 2026-11-30T00:00:00Z", NULL },
    { "created-to", "TIME", "RFC 3339", NULL },
    { "limit", "N", "at most so many, up to 200", NULL },
    { "cursor", "CURSOR", "goes on where the last page ended", NULL },
};

static const struct bs_column list_columns[] = {
    { "TASK_NO", "task_no" },
    { "QUEUE", "biz_type" },
    { "STATUS", "task_status" },
    { "RETRIES", "retry_count" },
    { "ORDER", "order_no" },
    { "BIZ_ID", "biz_id" },
    { "LAST ERROR", "last_error_code" },
    { "WHY MANUAL", "manual_code" },
    { "UNKNOWN", "outcome_unknown" },
    { "NEXT", "next_execute_at", BS_COLUMN_WAITING },
    { "CREATED", "created_at" },
};

/* "--biz-type" asks for "biz_type". */
static void add_filters(struct bs_buf *path, const struct bs_cli *cli,
                        const struct bs_option *options, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        char name[40];
        snprintf(name, sizeof(name), "%s", options[i].name);
        for (char *p = strchr(name, '-'); p; p = strchr(p, '-'))
            *p = '_';
        bs_client_param(path, name, bs_cli_get(cli, options[i].name));
    }
}

static enum bs_exit list(const struct bs_cli *cli)
{
    BS_CLEANUP(bs_buf_free) struct bs_buf path = { .max = PATH_MAX_BYTES };
    BS_CLEANUP(bs_client_reply_done) struct bs_client_reply r = { 0 };
    enum bs_exit code;

    bs_buf_addz(&path, "/v1/tasks");
    add_filters(&path, cli, list_options, BS_COUNT(list_options));
    code = bs_client_ask(cli, &(struct bs_client_request){ "GET", bs_buf_str(&path).p }, &r);
    if (code == BS_EXIT_DONE)
        code = show(cli, &r, list_columns, BS_COUNT(list_columns), "no task found");
    if (code == BS_EXIT_DONE && !bs_cli_json(cli))
        bs_client_more(&r);
    return code;
}

/* ---- show, log ---- */

static void task_path(struct bs_buf *path, const struct bs_cli *cli, const char *rest)
{
    bs_buf_addz(path, "/v1/tasks/");
    bs_client_escape(path, bs_str_of(cli->args[0]));
    bs_buf_addz(path, rest);
}

static enum bs_exit show_one(const struct bs_cli *cli)
{
    BS_CLEANUP(bs_buf_free) struct bs_buf path = { .max = PATH_MAX_BYTES };
    BS_CLEANUP(bs_client_reply_done) struct bs_client_reply r = { 0 };
    enum bs_exit code;

    task_path(&path, cli, "");
    code = bs_client_ask(cli, &(struct bs_client_request){ "GET", bs_buf_str(&path).p }, &r);
    return code == BS_EXIT_DONE ? show(cli, &r, NULL, 0, NULL) : code;
}

static const struct bs_option page_options[] = {
    { "limit", "N", "at most so many, up to 200", NULL },
    { "cursor", "CURSOR", "goes on where the last page ended", NULL },
};

static const struct bs_column log_columns[] = {
    { "AT", "at" },           { "EVENT", "event" },      { "FROM", "from" },
    { "TO", "to" },           { "TRY", "attempt_no" },   { "OUTCOME", "outcome" },
    { "CODE", "code" },       { "HTTP", "http_status" }, { "MS", "duration_ms" },
    { "WHO", "operator" },    { "REASON", "reason" },    { "EFFECT", "effect" },
    { "MESSAGE", "message" },
};

static enum bs_exit show_log(const struct bs_cli *cli)
{
    BS_CLEANUP(bs_buf_free) struct bs_buf path = { .max = PATH_MAX_BYTES };
    BS_CLEANUP(bs_client_reply_done) struct bs_client_reply r = { 0 };
    enum bs_exit code;

    task_path(&path, cli, "/log");
    add_filters(&path, cli, page_options, BS_COUNT(page_options));
    code = bs_client_ask(cli, &(struct bs_client_request){ "GET", bs_buf_str(&path).p }, &r);
    if (code == BS_EXIT_DONE)
        code = show(cli, &r, log_columns, BS_COUNT(log_columns), "nothing was recorded");
    if (code == BS_EXIT_DONE && !bs_cli_json(cli))
        bs_client_more(&r);
    return code;
}

/* ---- actions ---- */

static bool number_only(const char *text)
{
    size_t n = strlen(text);

    return n > 0 && n <= 18 && strspn(text, "0123456789") == n;
}

static enum bs_exit action_body(const struct bs_cli *cli, bool concludes, struct bs_buf *out)
{
    const char *version = bs_cli_get(cli, "expected-version");
    struct bs_json *j = bs_json_new(out);

    if (!j) {
        bs_complain("no memory for the request");
        return BS_EXIT_FAILED;
    }
    bs_json_open(j);
    bs_json_kstr(j, "reason", bs_str_of(bs_cli_get(cli, "reason")));
    if (concludes)
        bs_json_kstr(j, "conclusion", bs_str_of(bs_cli_get(cli, "conclusion")));
    if (version) {
        bs_json_key(j, "expected_version");
        bs_json_raw(j, bs_str_of(version));
    }
    bs_json_close(j);
    if (bs_json_end(j, NULL) == BS_OK)
        return BS_EXIT_DONE;
    bs_complain("the reason is too long");
    return BS_EXIT_FAILED;
}

/* What must be written is asked for before the server is. */
static bool complete(const struct bs_cli *cli, bool concludes)
{
    const char *version = bs_cli_get(cli, "expected-version");
    const char *name = cli->command->name;

    if (!bs_cli_get(cli, "reason"))
        bs_complain("%s needs --reason: why it is done is kept with what was done", name);
    else if (concludes && !bs_cli_get(cli, "conclusion"))
        bs_complain("%s needs --conclusion: not_done, done_elsewhere or other", name);
    else if (version && !number_only(version))
        bs_complain("--expected-version must be a number, not `%s`", version);
    else
        return true;
    return false;
}

static void say_done(const struct bs_cli *cli, const struct bs_client_reply *r)
{
    BS_CLEANUP(bs_arena_free) struct bs_arena a = { 0 };
    struct bs_str state = BS_STR_NONE;

    if (bs_cli_json(cli)) {
        bs_client_print(r);
        return;
    }
    if (bs_view_member(&a, bs_buf_str(&r->body), "task_status", &state, NULL) != BS_OK)
        state = BS_STR_NONE;
    if (r->status == 202)
        printf("%s: a call is running; it takes effect when the call ends\n", cli->args[0]);
    else
        printf("%s: %.*s\n", cli->args[0], BS_STR_FMT(state));
}

static enum bs_exit act(const struct bs_cli *cli, const char *action, bool concludes)
{
    BS_CLEANUP(bs_buf_free) struct bs_buf path = { .max = PATH_MAX_BYTES };
    BS_CLEANUP(bs_buf_free) struct bs_buf body = { .max = PATH_MAX_BYTES };
    BS_CLEANUP(bs_client_reply_done) struct bs_client_reply r = { 0 };
    struct bs_client_request q = { .method = "POST" };
    enum bs_exit code;

    if (!complete(cli, concludes))
        return BS_EXIT_USAGE;
    task_path(&path, cli, action);
    code = action_body(cli, concludes, &body);
    if (code != BS_EXIT_DONE)
        return code;
    q.path = bs_buf_str(&path).p;
    q.body = bs_buf_str(&body);
    code = bs_client_ask(cli, &q, &r);
    if (code == BS_EXIT_DONE)
        say_done(cli, &r);
    return code;
}

static enum bs_exit retry(const struct bs_cli *cli)
{
    return act(cli, "/retry", false);
}

static enum bs_exit hold(const struct bs_cli *cli)
{
    return act(cli, "/hold", false);
}

static enum bs_exit unhold(const struct bs_cli *cli)
{
    return act(cli, "/unhold", false);
}

static enum bs_exit resolve(const struct bs_cli *cli)
{
    return act(cli, "/resolve", true);
}

static enum bs_exit close_task(const struct bs_cli *cli)
{
    return act(cli, "/close", true);
}

static const struct bs_option act_options[] = {
    { "reason", "TEXT", "why; required, kept in the audit", NULL },
    { "expected-version", "N", "refuse unless the task still has this version", NULL },
};

static const struct bs_option end_options[] = {
    { "reason", "TEXT", "why; required, kept in the audit", NULL },
    { "conclusion", "WORD", "not_done, done_elsewhere or other; required", NULL },
    { "expected-version", "N", "refuse unless the task still has this version", NULL },
};

#define ACTION(word, words, opts, fn)                                                              \
    {                                                                                              \
        .name = "task " word, .args = "TASK_NO", .args_min = 1, .args_max = 1, .doc = (words),     \
        .options = (opts), .options_n = BS_COUNT(opts), .run = (fn)                                \
    }

static const struct bs_command commands[] = {
    { .name = "task list",
      .doc = "Find tasks, newest first.",
      .options = list_options,
      .options_n = BS_COUNT(list_options),
      .run = list },
    { .name = "task show",
      .args = "TASK_NO",
      .args_min = 1,
      .args_max = 1,
      .doc = "One task as a whole.",
      .run = show_one },
    { .name = "task log",
      .args = "TASK_NO",
      .args_min = 1,
      .args_max = 1,
      .doc = "Every step of one task, oldest first.",
      .options = page_options,
      .options_n = BS_COUNT(page_options),
      .run = show_log },
    ACTION("retry", "Run a waiting task now, or give one in MANUAL a fresh budget.", act_options,
           retry),
    ACTION("hold", "Put a task aside until unhold.", act_options, hold),
    ACTION("unhold", "Let a held task go on.", act_options, unhold),
    ACTION("resolve", "End a task in MANUAL that a person has settled.", end_options, resolve),
    ACTION("close", "End a task that shall not run any more.", end_options, close_task),
};
const struct bs_group bs_commands_task = { commands, BS_COUNT(commands) };
