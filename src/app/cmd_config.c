/* backstop check-config, backstop version. */
#include "app/cli.h"
#include "app/config.h"
#include "store/store.h"
#include "json/write.h"

#include <stdio.h>

#ifndef BS_VERSION
#define BS_VERSION "0"
#endif

static enum bs_exit finish(struct bs_json *j, const struct bs_buf *out, enum bs_exit code)
{
    if (bs_json_end(j, NULL) != BS_OK) {
        bs_complain("no memory for the answer");
        return BS_EXIT_FAILED;
    }
    puts(bs_buf_str(out).p);
    return code;
}

static enum bs_exit check_json(const struct bs_config *c, struct bs_str report)
{
    BS_CLEANUP(bs_buf_free) struct bs_buf out = { .max = 1 << 20 };
    struct bs_json *j = bs_json_new(&out);

    if (!j)
        return BS_EXIT_FAILED;
    bs_json_open(j);
    bs_json_kbool(j, "ok", c != NULL);
    if (c) {
        bs_json_kstr_or_null(j, "file", bs_str_of(c->file));
        bs_json_kint(j, "queues", c->queues.n);
    }
    bs_json_key(j, "errors");
    bs_json_open_array(j);
    while (report.n) {
        struct bs_str line = bs_str_cut(&report, '\n');
        if (line.n)
            bs_json_str(j, line);
    }
    bs_json_close_array(j);
    bs_json_close(j);
    return finish(j, &out, c ? BS_EXIT_DONE : BS_EXIT_USAGE);
}

static enum bs_exit list_keys(bool names_only)
{
    BS_CLEANUP(bs_buf_free) struct bs_buf out = { .max = 256 << 10 };
    struct bs_str rest;

    bs_config_keys(&out);
    rest = bs_buf_str(&out);
    while (rest.n) {
        struct bs_str line = bs_str_cut(&rest, '\n');
        if (names_only)
            line = bs_str_cut(&line, '\t');
        printf("%.*s\n", BS_STR_FMT(line));
    }
    return BS_EXIT_DONE;
}

static enum bs_exit check_config(const struct bs_cli *cli)
{
    BS_CLEANUP(bs_buf_free) struct bs_buf report = { .max = 256 << 10 };
    struct bs_config *c = NULL;
    enum bs_exit code = BS_EXIT_DONE;

    if (bs_cli_get(cli, "keys") || bs_cli_get(cli, "list-keys"))
        return list_keys(!bs_cli_get(cli, "keys"));
    if (bs_config_load(bs_cli_get(cli, "config"), BS_CONFIG_WHOLE, &c, &report) != BS_OK)
        code = BS_EXIT_USAGE;
    if (bs_cli_json(cli))
        code = check_json(c, bs_buf_str(&report));
    else if (c)
        printf("%s is good: %u queue%s\n", c->file ? c->file : "the built-in configuration",
               c->queues.n, c->queues.n == 1 ? "" : "s");
    else
        fputs(bs_buf_str(&report).p, stderr);
    bs_config_free(c);
    return code;
}

static enum bs_exit version(const struct bs_cli *cli)
{
    BS_CLEANUP(bs_buf_free) struct bs_buf out = { .max = 4096 };
    struct bs_json *j;

    if (!bs_cli_json(cli)) {
        printf("backstop %s (store version %d)\n", BS_VERSION, bs_store_program_version);
        return BS_EXIT_DONE;
    }
    j = bs_json_new(&out);
    if (!j)
        return BS_EXIT_FAILED;
    bs_json_open(j);
    bs_json_kstr(j, "version", BS_STR(BS_VERSION));
    bs_json_kint(j, "store_version", bs_store_program_version);
    bs_json_close(j);
    return finish(j, &out, BS_EXIT_DONE);
}

static const struct bs_option options[] = {
    { "keys", NULL, "list every key with its kind, default and meaning", NULL },
    { "list-keys", NULL, "list the names of the keys alone", NULL },
};

static const struct bs_command commands[] = {
    { .name = "check-config",
      .doc = "Check a configuration as the server would, secrets included, and name every fault.",
      .options = options,
      .options_n = BS_COUNT(options),
      .run = check_config },
    { .name = "version", .doc = "The version of this program and of its store.", .run = version },
};
const struct bs_group bs_commands_config = { commands, BS_COUNT(commands) };
