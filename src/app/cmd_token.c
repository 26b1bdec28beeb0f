/* backstop token: through the server while one runs, else on the store itself under its lock. */
#include "api/auth.h"
#include "app/client.h"
#include "app/view.h"
#include "base/text.h"
#include "sys/clock.h"
#include "sys/entropy.h"
#include "sys/files.h"
#include "sys/ids.h"
#include "json/write.h"

#include <pwd.h>
#include <stdio.h>
#include <unistd.h>

/* ---- which way ---- */

/* What to do where no server runs. */
typedef enum bs_exit offline(const struct bs_cli *cli, struct bs_store *s);

static enum bs_exit on_store(const struct bs_cli *cli, const struct bs_config *c, offline *fn)
{
    struct bs_store_options o = { .url = c->store_url, .mode = BS_STORE_WRITER };
    struct bs_store *s = NULL;
    struct bs_err err = { 0 };
    enum bs_exit code;

    if (bs_folder_of(c->store_path, &err) != BS_OK || bs_store_open(&o, &s, &err) != BS_OK) {
        bs_complain("%s", err.msg);
        return bs_exit_of(err.rc);
    }
    code = fn(cli, s);
    bs_store_close(s);
    return code;
}

/* BS_EXIT_DONE with status 0 in ret: it was done on the store. */
static enum bs_exit either_way(const struct bs_cli *cli, const struct bs_client_request *q,
                               struct bs_client_reply *ret, offline *fn)
{
    struct bs_config *c = NULL;
    struct bs_err err = { 0 };
    enum bs_exit code = bs_client_config(cli, &c);
    bs_rc rc;

    if (code != BS_EXIT_DONE)
        return code;
    rc = bs_client_call(c->socket, q, ret, &err);
    if (rc == BS_E_NOT_FOUND) {
        code = on_store(cli, c, fn);
    } else if (rc != BS_OK) {
        bs_complain("%s", err.msg);
        code = BS_EXIT_FAILED;
    } else if (ret->status < 200 || ret->status > 299) {
        code = bs_client_explain(ret);
    }
    bs_config_free(c);
    return code;
}

static bs_rc apply(struct bs_store *s, struct bs_op *op, struct bs_err *err)
{
    struct bs_ids ids;
    struct bs_op *list[] = { op };

    bs_ids_init(&ids, (int32_t)(bs_entropy_u64() % 1024));
    op->now = bs_now(bs_clock_system());
    op->id = bs_ids_next(&ids, op->now);
    BS_TRY(bs_store_apply(s, list, 1, err));
    if (op->rc != BS_OK && err)
        *err = op->err;
    return op->rc;
}

static struct bs_str operator_name(struct bs_arena *a)
{
    const struct passwd *p = getpwuid(geteuid());

    return p ? bs_arena_str(a, bs_str_of(p->pw_name))
             : bs_arena_fmt(a, "uid-%u", (unsigned)geteuid());
}

/* ---- add ---- */

static enum bs_exit check_role(const char *role)
{
    if (!role)
        bs_complain("token add needs --role: service, viewer, operator, approver, finance or "
                    "admin");
    else if (bs_role_parse(bs_str_of(role)) == BS_ROLE_NONE)
        bs_complain("the role `%s` is unknown; there are service, viewer, operator, approver, "
                    "finance and admin",
                    role);
    else
        return BS_EXIT_DONE;
    return BS_EXIT_USAGE;
}

#define WORD_LETTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-"

/* A fault of the command line is said before anything is asked. */
static bool good_name(const char *name, const char *letters, size_t max)
{
    size_t n = strlen(name);

    return n >= 1 && n <= max && strspn(name, letters) == n;
}

/* The same where no server runs that would check it. */
static enum bs_exit check_reason(const char *reason)
{
    struct bs_str s = bs_str_of(reason);

    if (!reason || (bs_str_trim(s).n && s.n <= 512 && bs_utf8_valid(s) && bs_text_plain(s)))
        return BS_EXIT_DONE;
    bs_complain("--reason is 1 to 512 bytes of plain text");
    return BS_EXIT_USAGE;
}

static enum bs_exit check_add(const struct bs_cli *cli)
{
    struct bs_str queues = bs_str_of(bs_cli_get(cli, "queues"));

    if (!good_name(cli->args[0], WORD_LETTERS "@", 64)) {
        bs_complain("a token's name has 1 to 64 letters, digits, `_`, `.`, `@` or `-`");
        return BS_EXIT_USAGE;
    }
    while (queues.p) {
        struct bs_str one = bs_str_cut(&queues, ',');
        char name[40];
        snprintf(name, sizeof(name), "%.*s", BS_STR_FMT(one));
        if (!good_name(name, WORD_LETTERS, 32)) {
            bs_complain("--queues must be names of queues with commas between, not `%s`",
                        bs_cli_get(cli, "queues"));
            return BS_EXIT_USAGE;
        }
    }
    enum bs_exit code = check_reason(bs_cli_get(cli, "reason"));
    return code == BS_EXIT_DONE ? check_role(bs_cli_get(cli, "role")) : code;
}

static bs_rc token_json(struct bs_buf *out, const struct bs_cli *cli, const char *token,
                        struct bs_err *err)
{
    struct bs_str queues = bs_str_of(bs_cli_get(cli, "queues"));
    struct bs_json *j = bs_json_new(out);

    if (!j)
        return bs_fail(err, BS_E_NOMEM, "no memory for the request");
    bs_json_open(j);
    bs_json_kstr(j, "name", bs_str_of(cli->args[0]));
    bs_json_kstr(j, "role", bs_str_of(bs_cli_get(cli, "role")));
    bs_json_key(j, "queues");
    bs_json_open_array(j);
    while (queues.p)
        bs_json_str(j, bs_str_cut(&queues, ','));
    bs_json_close_array(j);
    if (token)
        bs_json_kstr(j, "token", bs_str_of(token));
    else if (bs_cli_get(cli, "reason"))
        bs_json_kstr(j, "reason", bs_str_of(bs_cli_get(cli, "reason")));
    bs_json_close(j);
    return bs_json_end(j, err);
}

static enum bs_exit add_offline(const struct bs_cli *cli, struct bs_store *s)
{
    BS_CLEANUP(bs_arena_free) struct bs_arena a = { 0 };
    BS_CLEANUP(bs_buf_free) struct bs_buf out = { .max = 16 << 10 };
    char token[BS_TOKEN_TEXT + 1];
    struct bs_err err = { 0 };
    struct bs_op op = { .kind = BS_OP_TOKEN_ADD };

    bs_token_make(token, &op.token_add.hash);
    op.token_add.name = bs_str_of(cli->args[0]);
    op.token_add.role = bs_str_of(bs_cli_get(cli, "role"));
    op.token_add.queues = bs_str_of(bs_cli_get(cli, "queues"));
    op.token_add.operator= operator_name(&a);
    op.token_add.reason = bs_str_of(bs_cli_get(cli, "reason"));
    if (apply(s, &op, &err) != BS_OK) {
        bs_complain("%s", err.msg);
        return bs_exit_of(err.rc);
    }
    if (bs_cli_json(cli) && token_json(&out, cli, token, &err) == BS_OK)
        puts(bs_buf_str(&out).p);
    else
        puts(token);
    return BS_EXIT_DONE;
}

static enum bs_exit add(const struct bs_cli *cli)
{
    BS_CLEANUP(bs_arena_free) struct bs_arena a = { 0 };
    BS_CLEANUP(bs_buf_free) struct bs_buf body = { .max = 16 << 10 };
    BS_CLEANUP(bs_client_reply_done) struct bs_client_reply r = { 0 };
    struct bs_client_request q = { .method = "POST", .path = "/v1/tokens" };
    struct bs_str token = BS_STR_NONE;
    struct bs_err err = { 0 };
    enum bs_exit code = check_add(cli);

    if (code != BS_EXIT_DONE)
        return code;
    if (token_json(&body, cli, NULL, &err) != BS_OK) {
        bs_complain("%s", err.msg);
        return BS_EXIT_FAILED;
    }
    q.body = bs_buf_str(&body);
    code = either_way(cli, &q, &r, add_offline);
    if (code != BS_EXIT_DONE || r.status == 0)
        return code;
    if (bs_cli_json(cli)) {
        bs_client_print(&r);
        return BS_EXIT_DONE;
    }
    if (bs_view_member(&a, bs_buf_str(&r.body), "token", &token, &err) != BS_OK || !token.n) {
        bs_complain("the answer of the server holds no token");
        return BS_EXIT_FAILED;
    }
    printf("%.*s\n", BS_STR_FMT(token));
    return BS_EXIT_DONE;
}

/* ---- list ---- */

static const struct bs_column columns[] = {
    { "NAME", "name" },          { "ROLE", "role" },          { "QUEUES", "queues" },
    { "CREATED", "created_at" }, { "REVOKED", "revoked_at" },
};

static enum bs_exit print_list(const struct bs_cli *cli, struct bs_str answer)
{
    BS_CLEANUP(bs_buf_free) struct bs_buf out = { .max = 16 << 20 };
    struct bs_err err = { 0 };

    if (bs_cli_json(cli)) {
        printf("%.*s\n", BS_STR_FMT(bs_str_trim(answer)));
        return BS_EXIT_DONE;
    }
    if (bs_view_table(&out, answer, columns, BS_COUNT(columns), "no token", &err) != BS_OK) {
        bs_complain("the answer is not understood: %s", err.msg);
        return BS_EXIT_FAILED;
    }
    fputs(bs_buf_str(&out).p, stdout);
    return BS_EXIT_DONE;
}

static void row_json(struct bs_json *j, const struct bs_token_row *row)
{
    struct bs_str queues = row->queues;

    bs_json_open(j);
    bs_json_kstr(j, "name", row->name);
    bs_json_kstr(j, "role", row->role);
    bs_json_key(j, "queues");
    bs_json_open_array(j);
    while (queues.n)
        bs_json_str(j, bs_str_cut(&queues, ','));
    bs_json_close_array(j);
    bs_json_ktime(j, "created_at", row->created_at);
    bs_json_ktime(j, "revoked_at", row->revoked_at);
    bs_json_close(j);
}

static enum bs_exit list_offline(const struct bs_cli *cli, struct bs_store *s)
{
    BS_CLEANUP(bs_arena_free) struct bs_arena a = { 0 };
    BS_CLEANUP(bs_buf_free) struct bs_buf out = { .max = 16 << 20 };
    struct bs_token_row *rows = NULL;
    struct bs_err err = { 0 };
    struct bs_json *j;
    uint32_t n = 0;
    int64_t version = 0;

    if (bs_store_tokens(s, &a, &rows, &n, &version, &err) != BS_OK) {
        bs_complain("%s", err.msg);
        return bs_exit_of(err.rc);
    }
    j = bs_json_new(&out);
    if (!j)
        return BS_EXIT_FAILED;
    bs_json_open(j);
    bs_json_key(j, "items");
    bs_json_open_array(j);
    for (uint32_t i = 0; i < n; i++)
        row_json(j, &rows[i]);
    bs_json_close_array(j);
    bs_json_close(j);
    if (bs_json_end(j, NULL) != BS_OK)
        return BS_EXIT_FAILED;
    return print_list(cli, bs_buf_str(&out));
}

static enum bs_exit list(const struct bs_cli *cli)
{
    BS_CLEANUP(bs_client_reply_done) struct bs_client_reply r = { 0 };
    struct bs_client_request q = { .method = "GET", .path = "/v1/tokens" };
    enum bs_exit code = either_way(cli, &q, &r, list_offline);

    return code == BS_EXIT_DONE && r.status ? print_list(cli, bs_buf_str(&r.body)) : code;
}

/* ---- revoke ---- */

static enum bs_exit say_revoked(const struct bs_cli *cli)
{
    if (bs_cli_json(cli))
        puts("{\"revoked\":true}");
    else
        printf("%s: revoked\n", cli->args[0]);
    return BS_EXIT_DONE;
}

static enum bs_exit revoke_offline(const struct bs_cli *cli, struct bs_store *s)
{
    BS_CLEANUP(bs_arena_free) struct bs_arena a = { 0 };
    struct bs_op op = { .kind = BS_OP_TOKEN_REVOKE };
    struct bs_err err = { 0 };

    op.token_revoke.name = bs_str_of(cli->args[0]);
    op.token_revoke.operator= operator_name(&a);
    op.token_revoke.reason = bs_str_of(bs_cli_get(cli, "reason"));
    if (apply(s, &op, &err) != BS_OK) {
        bs_complain("%s", err.msg);
        return bs_exit_of(err.rc);
    }
    return say_revoked(cli);
}

static bs_rc reason_json(struct bs_buf *out, const char *reason, struct bs_err *err)
{
    struct bs_json *j = bs_json_new(out);

    if (!j)
        return bs_fail(err, BS_E_NOMEM, "no memory for the request");
    bs_json_open(j);
    bs_json_kstr(j, "reason", bs_str_of(reason));
    bs_json_close(j);
    return bs_json_end(j, err);
}

static enum bs_exit revoke_token(const struct bs_cli *cli)
{
    BS_CLEANUP(bs_buf_free) struct bs_buf path = { .max = 4096 };
    BS_CLEANUP(bs_buf_free) struct bs_buf body = { .max = 16 << 10 };
    BS_CLEANUP(bs_client_reply_done) struct bs_client_reply r = { 0 };
    struct bs_client_request q = { .method = "POST" };
    const char *reason = bs_cli_get(cli, "reason");
    enum bs_exit code = check_reason(reason);
    struct bs_err err = { 0 };

    if (code != BS_EXIT_DONE)
        return code;
    if (reason && reason_json(&body, reason, &err) != BS_OK) {
        bs_complain("%s", err.msg);
        return BS_EXIT_FAILED;
    }
    q.body = bs_buf_str(&body);
    bs_buf_addz(&path, "/v1/tokens/");
    bs_client_escape(&path, bs_str_of(cli->args[0]));
    bs_buf_addz(&path, "/revoke");
    q.path = bs_buf_str(&path).p;
    code = either_way(cli, &q, &r, revoke_offline);
    return code == BS_EXIT_DONE && r.status ? say_revoked(cli) : code;
}

static const struct bs_option options[] = {
    { "role", "ROLE", "service, viewer, operator, approver, finance or admin; required", NULL },
    { "queues", "A,B", "only these queues; else all", NULL },
    { "reason", "TEXT", "kept in the audit", NULL },
};

static const struct bs_option revoke_options[] = {
    { "reason", "TEXT", "kept in the audit", NULL },
};

static const struct bs_command commands[] = {
    { .name = "token add",
      .args = "NAME",
      .args_min = 1,
      .args_max = 1,
      .doc = "Make a token and print it; it is shown this once and stored as a hash.",
      .options = options,
      .options_n = BS_COUNT(options),
      .run = add },
    { .name = "token list", .doc = "The tokens, without their secrets.", .run = list },
    { .name = "token revoke",
      .args = "NAME",
      .args_min = 1,
      .args_max = 1,
      .doc = "End a token; a running server refuses it within two seconds.",
      .options = revoke_options,
      .options_n = BS_COUNT(revoke_options),
      .run = revoke_token },
};
const struct bs_group bs_commands_token = { commands, BS_COUNT(commands) };
