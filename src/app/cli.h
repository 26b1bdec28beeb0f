/* The command line as data: every command with its arguments and options; parsing and help are
 * driven from it. Main thread only. */
#pragma once

#include "base/base.h"

/* What the process says to the shell. */
enum bs_exit {
    BS_EXIT_DONE = 0,
    BS_EXIT_FAILED = 1, /* the command could not be carried out, or was refused   */
    BS_EXIT_USAGE = 2,  /* the command line or the configuration is wrong         */
    BS_EXIT_STORE = 3,  /* the store was refused: held elsewhere, damaged, newer  */
};

struct bs_option {
    const char *name;  /* without the dashes                  */
    const char *value; /* "FILE"; NULL: a switch              */
    const char *doc;
    const char *letter; /* "c" for -c; NULL: none             */
};

enum { BS_OPTIONS_MAX = 24, BS_ARGS_MAX = 4 };

struct bs_cli;

struct bs_command {
    const char *name; /* "task list"                           */
    const char *args; /* "TASK_NO", "[FILE]"; NULL: none       */
    uint32_t args_min, args_max;
    const char *doc;
    const struct bs_option *options; /* beside those of every command */
    uint32_t options_n;
    enum bs_exit (*run)(const struct bs_cli *cli);
};

struct bs_group {
    const struct bs_command *commands;
    uint32_t n;
};

/* One parsed command line. */
struct bs_cli {
    const struct bs_command *command;
    const char *values[BS_OPTIONS_MAX]; /* of the common options, then of the command's own */
    const char *args[BS_ARGS_MAX];
    uint32_t args_n;
};

/* Finds the command, parses, runs it or shows help. */
enum bs_exit bs_cli_run(int argc, char **argv);

/* The value of an option, "" for a switch; NULL: not given. The option must exist. */
const char *bs_cli_get(const struct bs_cli *cli, const char *option);
bool bs_cli_json(const struct bs_cli *cli);
/* One line on stderr: "backstop: …". */
BS_PRINTF(1, 2) void bs_complain(const char *fmt, ...);
/* The exit code of a failure that came from the store. */
enum bs_exit bs_exit_of(bs_rc rc);

extern const struct bs_group bs_commands_serve, bs_commands_submit, bs_commands_task,
    bs_commands_queue, bs_commands_watch, bs_commands_token, bs_commands_store, bs_commands_config;
