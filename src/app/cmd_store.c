/* backstop migrate, backstop check-store: the store itself, under its lock; backstop backup: beside
 * whoever holds it. */
#include "app/client.h"
#include "store/store.h"
#include "sys/clock.h"
#include "sys/files.h"
#include "json/write.h"

#include <stdio.h>
#include <unistd.h>

/* `create`: a store that is not there yet is made, with this program's version. */
static enum bs_exit open_store(const struct bs_cli *cli, bool create, struct bs_store **ret)
{
    struct bs_config *c = NULL;
    struct bs_store_options o = { .mode = BS_STORE_WRITER, .migrate = create };
    struct bs_err err = { 0 };
    enum bs_exit code = bs_client_config(cli, &c);

    if (code != BS_EXIT_DONE)
        return code;
    o.url = c->store_url;
    if (!create && access(c->store_path, F_OK) != 0) {
        bs_complain("there is no store at %s", c->store_path);
        code = BS_EXIT_FAILED;
    } else if (bs_folder_of(c->store_path, &err) != BS_OK ||
               bs_store_open(&o, ret, &err) != BS_OK) {
        bs_complain("%s", err.msg);
        code = bs_exit_of(err.rc);
    }
    bs_config_free(c);
    return code;
}

static enum bs_exit print_json(struct bs_json *j, const struct bs_buf *out, enum bs_exit code)
{
    if (bs_json_end(j, NULL) != BS_OK) {
        bs_complain("no memory for the answer");
        return BS_EXIT_FAILED;
    }
    puts(bs_buf_str(out).p);
    return code;
}

static enum bs_exit migrate(const struct bs_cli *cli)
{
    BS_CLEANUP(bs_buf_free) struct bs_buf out = { .max = 4096 };
    struct bs_store *s = NULL;
    struct bs_json *j;
    enum bs_exit code = open_store(cli, true, &s);
    int32_t now;

    if (code != BS_EXIT_DONE)
        return code;
    now = bs_store_version(s);
    bs_store_close(s);
    if (!bs_cli_json(cli)) {
        printf("the store has version %d\n", now);
        return BS_EXIT_DONE;
    }
    j = bs_json_new(&out);
    if (!j)
        return BS_EXIT_FAILED;
    bs_json_open(j);
    bs_json_kint(j, "store_version", now);
    bs_json_close(j);
    return print_json(j, &out, BS_EXIT_DONE);
}

static enum bs_exit report_json(struct bs_str report)
{
    BS_CLEANUP(bs_buf_free) struct bs_buf out = { .max = 64 << 20 };
    struct bs_json *j = bs_json_new(&out);
    bool sound = report.n == 0;

    if (!j)
        return BS_EXIT_FAILED;
    bs_json_open(j);
    bs_json_kbool(j, "ok", sound);
    bs_json_key(j, "findings");
    bs_json_open_array(j);
    while (report.n) {
        struct bs_str line = bs_str_cut(&report, '\n');
        if (line.n)
            bs_json_str(j, line);
    }
    bs_json_close_array(j);
    bs_json_close(j);
    return print_json(j, &out, sound ? BS_EXIT_DONE : BS_EXIT_FAILED);
}

static enum bs_exit check_store(const struct bs_cli *cli)
{
    BS_CLEANUP(bs_buf_free) struct bs_buf report = { .max = 16 << 20 };
    struct bs_store *s = NULL;
    struct bs_err err = { 0 };
    enum bs_exit code = open_store(cli, false, &s);
    bs_rc rc;

    if (code != BS_EXIT_DONE)
        return code;
    rc = bs_store_check(s, &report, &err);
    bs_store_close(s);
    if (rc != BS_OK) {
        bs_complain("%s", err.msg);
        return bs_exit_of(rc);
    }
    if (bs_cli_json(cli))
        return report_json(bs_buf_str(&report));
    if (report.len == 0) {
        puts("the store is sound");
        return BS_EXIT_DONE;
    }
    fputs(bs_buf_str(&report).p, stdout);
    bs_complain("the store has faults; see above");
    return BS_EXIT_FAILED;
}

/* ---- backup ---- */

static bs_rc open_reader(const struct bs_config *c, struct bs_store **ret, struct bs_err *err)
{
    const struct bs_store_options o = { .url = c->store_url, .mode = BS_STORE_READER };

    if (access(c->store_path, F_OK) != 0)
        return bs_fail(err, BS_E_NOT_FOUND, "there is no store at %.300s", c->store_path);
    return bs_store_open(&o, ret, err);
}

static bs_rc make_backup(const struct bs_config *c, const char *file, struct bs_backup *ret,
                         struct bs_err *err)
{
    struct bs_store *s = NULL;

    BS_TRY(open_reader(c, &s, err));
    bs_rc rc = bs_store_backup(s, file, ret, err);
    bs_store_close(s);
    return rc;
}

static enum bs_exit print_backup(const struct bs_cli *cli, const struct bs_backup *b, int64_t ms)
{
    BS_CLEANUP(bs_buf_free) struct bs_buf out = { .max = 8192 };
    struct bs_json *j;

    if (!bs_cli_json(cli)) {
        printf("%s: %lld tasks, %lld bytes, %lld ms\n", cli->args[0], (long long)b->tasks,
               (long long)b->bytes, (long long)ms);
        return BS_EXIT_DONE;
    }
    j = bs_json_new(&out);
    if (!j)
        return BS_EXIT_FAILED;
    bs_json_open(j);
    bs_json_kstr(j, "file", bs_str_of(cli->args[0]));
    bs_json_kint(j, "tasks", b->tasks);
    bs_json_kint(j, "bytes", b->bytes);
    bs_json_kint(j, "duration_ms", ms);
    bs_json_close(j);
    return print_json(j, &out, BS_EXIT_DONE);
}

static enum bs_exit backup(const struct bs_cli *cli)
{
    struct bs_config *c = NULL;
    struct bs_backup b = { 0 };
    struct bs_err err = { 0 };
    int64_t begun_us = bs_boot_us();
    enum bs_exit code = bs_client_config(cli, &c);

    if (code != BS_EXIT_DONE)
        return code;
    bs_rc rc = make_backup(c, cli->args[0], &b, &err);
    bs_config_free(c);
    if (rc != BS_OK) {
        bs_complain("%s", err.msg);
        return bs_exit_of(rc);
    }
    return print_backup(cli, &b, (bs_boot_us() - begun_us) / 1000);
}

static const struct bs_command commands[] = {
    { .name = "migrate",
      .doc = "Bring the store to this program's version, or make an empty one.\n\nThe server must "
             "not run; make a backup first.",
      .run = migrate },
    { .name = "check-store",
      .doc = "Check the file, the states, the keys and the figures. The server must not run.",
      .run = check_store },
    { .name = "backup",
      .args = "FILE",
      .args_min = 1,
      .args_max = 1,
      .doc = "Copy the store into a new file, also while the server runs.\n\nThe copy is of one "
             "instant, looked through, and can be served. FILE must not be there yet.",
      .run = backup },
};
const struct bs_group bs_commands_store = { commands, BS_COUNT(commands) };
