/* backstop serve: the process and its signals. */
#include "app/cli.h"
#include "app/server.h"

#include <signal.h>
#include <stdio.h>
#include <time.h>

/* How often the end of a drain is looked at. */
enum { LOOK_NS = 10000000 };

static void block_signals(sigset_t *set)
{
    sigemptyset(set);
    sigaddset(set, SIGTERM);
    sigaddset(set, SIGINT);
    sigaddset(set, SIGHUP);
    /* Before any thread is made, so that all signals come to this one. */
    sigprocmask(SIG_BLOCK, set, NULL);
}

static void serve_until_told(struct bs_server *s, const sigset_t *set)
{
    for (;;) {
        int sig = sigwaitinfo(set, NULL);
        if (sig == SIGHUP)
            bs_server_reload(s);
        else if (sig == SIGTERM || sig == SIGINT)
            return;
    }
}

static void drain(struct bs_server *s, const sigset_t *set)
{
    struct timespec nap = { .tv_nsec = LOOK_NS };
    bool hastened = false;

    bs_server_drain(s, false);
    while (!bs_server_drained(s)) {
        int sig = sigtimedwait(set, NULL, &nap);
        if ((sig == SIGTERM || sig == SIGINT) && !hastened) {
            hastened = true;
            bs_server_drain(s, true);
        }
    }
}

static enum bs_exit serve(const struct bs_cli *cli)
{
    BS_CLEANUP(bs_buf_free) struct bs_buf report = { .max = 256 << 10 };
    struct bs_server_options o = {
        .file = bs_cli_get(cli, "config"),
        .port_file = bs_cli_get(cli, "port-file"),
        .log_json = bs_cli_get(cli, "log-json") != NULL,
    };
    struct bs_server *s = NULL;
    struct bs_err err = { 0 };
    sigset_t set;
    bs_rc rc;

    if (bs_config_load(o.file, BS_CONFIG_WHOLE, &o.config, &report) != BS_OK) {
        fputs(bs_buf_str(&report).p, stderr);
        return BS_EXIT_USAGE;
    }
    block_signals(&set);
    rc = bs_server_start(&o, &s, &err);
    if (rc != BS_OK)
        return bs_exit_of(rc);
    serve_until_told(s, &set);
    drain(s, &set);
    return bs_server_stop(s) ? BS_EXIT_DONE : BS_EXIT_FAILED;
}

static const struct bs_option options[] = {
    { "port-file", "PATH", "write the port that was bound to PATH once everything answers", NULL },
    { "log-json", NULL, "log JSON lines, whatever log.format says", NULL },
};

static const struct bs_command commands[] = {
    { .name = "serve",
      .doc = "Run the server.\n\nSIGTERM and SIGINT stop it: calls in flight may end within the "
             "grace, a second signal hastens.\nSIGHUP takes the queues and the log of the "
             "configuration over, or refuses it whole.",
      .options = options,
      .options_n = BS_COUNT(options),
      .run = serve },
};
const struct bs_group bs_commands_serve = { commands, BS_COUNT(commands) };
