/* backstop submit: one task, or many as NDJSON, through the server. */
#include "app/client.h"
#include "app/view.h"
#include "json/read.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

/* A batch is sent before it passes what the server takes at once. */
enum { LINES_MAX = 1000, BYTES_MAX = 4 << 20, ONE_MAX = 1 << 20 };

static FILE *open_input(const struct bs_cli *cli)
{
    const char *path = cli->args_n ? cli->args[0] : "-";
    FILE *f = strcmp(path, "-") == 0 ? stdin : fopen(path, "re");

    if (!f)
        bs_complain("cannot open %s: %s", path, strerror(errno));
    return f;
}

static void close_input(FILE **f)
{
    if (*f && *f != stdin)
        fclose(*f);
}

/* ---- one ---- */

static bool read_all(FILE *f, struct bs_buf *out)
{
    char chunk[8192];
    size_t n;

    while ((n = fread(chunk, 1, sizeof(chunk), f)) > 0)
        bs_buf_add(out, (struct bs_str){ chunk, n });
    if (ferror(f)) {
        bs_complain("the input cannot be read");
        return false;
    }
    if (bs_buf_done(out, NULL) != BS_OK) {
        bs_complain("the input is longer than %d bytes", ONE_MAX);
        return false;
    }
    return true;
}

static void say_task(const struct bs_client_reply *r)
{
    BS_CLEANUP(bs_arena_free) struct bs_arena a = { 0 };
    struct bs_str no = BS_STR_NONE, state = BS_STR_NONE, duplicate = BS_STR_NONE;
    struct bs_str body = bs_buf_str(&r->body);

    if (bs_view_member(&a, body, "task_no", &no, NULL) != BS_OK ||
        bs_view_member(&a, body, "task_status", &state, NULL) != BS_OK ||
        bs_view_member(&a, body, "duplicate", &duplicate, NULL) != BS_OK) {
        bs_client_print(r);
        return;
    }
    printf("%.*s %.*s", BS_STR_FMT(no), BS_STR_FMT(state));
    if (duplicate.n)
        printf(" (was there already: same %.*s)", BS_STR_FMT(duplicate));
    putchar('\n');
}

static enum bs_exit submit_one(const struct bs_cli *cli, FILE *f)
{
    BS_CLEANUP(bs_buf_free) struct bs_buf body = { .max = ONE_MAX };
    BS_CLEANUP(bs_client_reply_done) struct bs_client_reply r = { 0 };
    struct bs_client_request q = { .method = "POST", .path = "/v1/tasks" };
    enum bs_exit code;

    if (!read_all(f, &body))
        return BS_EXIT_FAILED;
    q.body = bs_buf_str(&body);
    if (q.body.n == 0) {
        bs_complain("the input is empty; submit needs one JSON object");
        return BS_EXIT_USAGE;
    }
    code = bs_client_ask(cli, &q, &r);
    if (code != BS_EXIT_DONE)
        return code;
    if (bs_cli_json(cli))
        bs_client_print(&r);
    else
        say_task(&r);
    return BS_EXIT_DONE;
}

/* ---- many ---- */

struct batch {
    const struct bs_cli *cli;
    struct bs_buf body;
    uint64_t numbers[LINES_MAX]; /* the line of the input that each item stands on */
    uint32_t lines;              /* in body                                        */
    uint64_t line;               /* of the input, read so far                      */
    uint64_t created, known, refused;
};

static void batch_done(struct batch *b)
{
    bs_buf_free(&b->body);
}

static struct bs_str member(struct bs_arena *a, struct bs_str object, const char *name)
{
    struct bs_str s = BS_STR_NONE;

    return bs_view_member(a, object, name, &s, NULL) == BS_OK ? s : BS_STR("");
}

static void count_item(struct batch *b, struct bs_arena *a, uint32_t i, struct bs_str item)
{
    struct bs_str status = member(a, item, "status");
    struct bs_str field = member(a, item, "field");

    if (bs_str_is(status, "201")) {
        b->created++;
    } else if (bs_str_is(status, "200")) {
        b->known++;
    } else {
        b->refused++;
        bs_complain("line %llu: %.*s %.*s%s%.*s%s", (unsigned long long)b->numbers[i],
                    BS_STR_FMT(status), BS_STR_FMT(member(a, item, "code")), field.n ? " (" : "",
                    BS_STR_FMT(field), field.n ? ")" : "");
    }
}

static enum bs_exit count_items(struct batch *b, struct bs_str answer)
{
    BS_CLEANUP(bs_arena_free) struct bs_arena a = { 0 };
    struct bs_json_object o = { 0 };
    struct bs_str *items = NULL;
    uint32_t n = 0;

    if (bs_json_read_object(&a, answer, 16, &o, NULL) == BS_OK && o.n > 0 &&
        bs_json_read_array(&a, o.members[0].raw, LINES_MAX, &items, &n, NULL) == BS_OK &&
        n == b->lines) {
        for (uint32_t i = 0; i < n; i++)
            count_item(b, &a, i, items[i]);
        return BS_EXIT_DONE;
    }
    bs_complain("the answer of the server is not understood");
    return BS_EXIT_FAILED;
}

static enum bs_exit send_batch(struct batch *b)
{
    BS_CLEANUP(bs_client_reply_done) struct bs_client_reply r = { 0 };
    struct bs_client_request q = { .method = "POST",
                                   .path = "/v1/tasks/batch",
                                   .body = bs_buf_str(&b->body),
                                   .content_type = "application/x-ndjson" };
    enum bs_exit code;

    if (b->lines == 0)
        return BS_EXIT_DONE;
    code = bs_client_ask(b->cli, &q, &r);
    if (code == BS_EXIT_DONE && bs_cli_json(b->cli))
        bs_client_print(&r);
    if (code == BS_EXIT_DONE)
        code = count_items(b, bs_buf_str(&r.body));
    if (code != BS_EXIT_DONE)
        bs_complain("the batch that begins on line %llu was not taken as a whole",
                    (unsigned long long)b->numbers[0]);
    bs_buf_reset(&b->body);
    b->lines = 0;
    return code;
}

static enum bs_exit add_line(struct batch *b, struct bs_str text)
{
    b->line++;
    text = bs_str_trim(text);
    if (text.n == 0)
        return BS_EXIT_DONE;
    if (b->lines == LINES_MAX || (b->lines && b->body.len + text.n > BYTES_MAX)) {
        enum bs_exit code = send_batch(b);
        if (code != BS_EXIT_DONE)
            return code;
    }
    b->numbers[b->lines++] = b->line;
    bs_buf_add(&b->body, text);
    bs_buf_addc(&b->body, '\n');
    return BS_EXIT_DONE;
}

static enum bs_exit send_lines(struct batch *b, FILE *f)
{
    enum bs_exit code = BS_EXIT_DONE;
    char *text = NULL;
    size_t cap = 0;
    ssize_t n;

    while (code == BS_EXIT_DONE && (n = getline(&text, &cap, f)) >= 0)
        code = add_line(b, (struct bs_str){ text, (size_t)n });
    free(text);
    if (code == BS_EXIT_DONE && ferror(f)) {
        bs_complain("the input cannot be read");
        code = BS_EXIT_FAILED;
    }
    return code == BS_EXIT_DONE ? send_batch(b) : code;
}

static enum bs_exit submit_many(const struct bs_cli *cli, FILE *f)
{
    BS_CLEANUP(batch_done) struct batch b = { .cli = cli, .body = { .max = 64 << 20 } };
    enum bs_exit code = send_lines(&b, f);

    if (!bs_cli_json(cli))
        printf("%llu created, %llu were there already, %llu refused\n",
               (unsigned long long)b.created, (unsigned long long)b.known,
               (unsigned long long)b.refused);
    return code == BS_EXIT_DONE && b.refused ? BS_EXIT_FAILED : code;
}

static enum bs_exit submit(const struct bs_cli *cli)
{
    BS_CLEANUP(close_input) FILE *f = open_input(cli);

    if (!f)
        return BS_EXIT_FAILED;
    return bs_cli_get(cli, "batch") ? submit_many(cli, f) : submit_one(cli, f);
}

static const struct bs_option options[] = {
    { "batch", NULL, "one JSON object a line (NDJSON), any number of lines", NULL },
};

static const struct bs_command commands[] = {
    { .name = "submit",
      .args = "[FILE]",
      .args_max = 1,
      .doc = "Submit a task: one JSON object from FILE or standard input.",
      .options = options,
      .options_n = BS_COUNT(options),
      .run = submit },
};
const struct bs_group bs_commands_submit = { commands, BS_COUNT(commands) };
