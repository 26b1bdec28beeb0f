/* The command line: what is understood, what is refused, with which words. */
#include "app/cli.h"

#include "check.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* Runs one command line with stdout and stderr in files; returns the exit code. */
struct ran {
    int code;
    char out[4096], err[1024];
};

static void slurp(int fd, char *into, size_t max)
{
    ssize_t n = pread(fd, into, max - 1, 0);

    assert_true(n >= 0);
    into[n] = '\0';
    close(fd);
}

static int to_file(int fd, int *ret_before)
{
    char path[] = "/tmp/bs-cli-XXXXXX";
    int file = mkstemp(path);

    assert_true(file >= 0);
    unlink(path);
    *ret_before = dup(fd);
    dup2(file, fd);
    return file;
}

static struct ran run(const char *line)
{
    static char words[512];
    char *argv[16] = { (char[]){ "backstop" } }, *at = words;
    struct ran r = { 0 };
    int argc = 1, out, err, was_out, was_err;

    snprintf(words, sizeof(words), "%s", line);
    while (argc < 15 && (argv[argc] = strsep(&at, " ")) != NULL)
        argc++;
    fflush(NULL);
    out = to_file(1, &was_out);
    err = to_file(2, &was_err);
    r.code = (int)bs_cli_run(argc, argv);
    fflush(NULL);
    dup2(was_out, 1);
    dup2(was_err, 2);
    close(was_out);
    close(was_err);
    slurp(out, r.out, sizeof(r.out));
    slurp(err, r.err, sizeof(r.err));
    return r;
}

static void what_is_not_understood_is_refused_in_one_clear_line(void **state)
{
    static const struct {
        const char *line;
        int code;
        const char *err;
    } cases[] = {
        { "tsk list", 2, "backstop: unknown command `tsk list`; did you mean `task list`?\n" },
        { "task shw 1", 2, "backstop: unknown command `task shw`; did you mean `task show`?\n" },
        { "srve", 2, "backstop: unknown command `srve`; did you mean `serve`?\n" },
        { "xyzzyxyzzy", 2, "backstop: unknown command `xyzzyxyzzy`; backstop --help lists them\n" },
        { "queue", 2, "backstop: `queue` needs one of: list, show, pause, resume\n" },
        { "-c f serve", 2, "backstop: `-c` stands before the command; options come after it\n" },
        { "task show", 2, "backstop: task show: needs TASK_NO; see backstop task show --help\n" },
        { "task show 1 2", 2, "backstop: task show: `2` is one word too many\n" },
        { "task list --statsu X", 2,
          "backstop: task list: unknown option `--statsu`; did you mean `--status`?\n" },
        { "task list --status", 2, "backstop: task list: --status needs STATE\n" },
        { "task list --status A --status=B", 2, "backstop: task list: --status is given twice\n" },
        { "version --json=1", 2, "backstop: version: --json takes no value\n" },
        { "task close 1 --reason x", 2,
          "backstop: task close needs --conclusion: not_done, done_elsewhere or other\n" },
        { "task hold 1", 2,
          "backstop: task hold needs --reason: why it is done is kept with what was done\n" },
        { "token add x --role king", 2,
          "backstop: the role `king` is unknown; there are service, viewer, operator, approver, "
          "finance and admin\n" },
        { "token add x", 2,
          "backstop: token add needs --role: service, viewer, operator, "
          "approver, finance or admin\n" },
        { "token add a/b --role admin", 2,
          "backstop: a token's name has 1 to 64 letters, digits, `_`, `.`, `@` or `-`\n" },
        { "token add a --role admin --queues A,,B", 2,
          "backstop: --queues must be names of queues with commas between, not `A,,B`\n" },
        { "check-config -c /nowhere/x.yaml", 2,
          "cannot open /nowhere/x.yaml: No such file or directory\n" },
    };

    (void)state;
    for (size_t i = 0; i < BS_COUNT(cases); i++) {
        struct ran r = run(cases[i].line);
        if (r.code != cases[i].code || strcmp(r.err, cases[i].err) != 0 || r.out[0])
            fail_msg("%s: %d\n%s%s", cases[i].line, r.code, r.err, r.out);
    }
}

static void help_is_on_standard_output_and_done(void **state)
{
    (void)state;
    struct ran all = run("--help"), one = run("token add --help"), none = run("help");

    assert_int_equal(all.code, 0);
    assert_non_null(strstr(all.out, "\n  task resolve TASK_NO "));
    assert_string_equal(all.out, none.out);
    assert_int_equal(one.code, 0);
    assert_non_null(strstr(one.out, "Usage: backstop token add NAME [options]\n"));
    assert_non_null(strstr(one.out, "--role ROLE"));
    assert_non_null(strstr(one.out, "-c, --config FILE"));
    assert_string_equal(one.err, "");
}

static void a_group_helps_with_its_commands(void **state)
{
    static const struct {
        const char *line, *usage, *has, *not ;
    } cases[] = {
        { "task --help", "Usage: backstop task COMMAND", "\n  task resolve TASK_NO ",
          "  queue list" },
        { "queue -h", "Usage: backstop queue COMMAND", "\n  queue pause ", "  task list" },
        { "token help", "Usage: backstop token COMMAND", "\n  token add NAME ", "  alert list" },
        { "alert --help", "Usage: backstop alert COMMAND", "\n  alert list ", "  token" },
    };

    (void)state;
    for (size_t i = 0; i < BS_COUNT(cases); i++) {
        struct ran r = run(cases[i].line);
        assert_int_equal(r.code, 0);
        assert_string_equal(r.err, "");
        assert_int_equal(strncmp(r.out, cases[i].usage, strlen(cases[i].usage)), 0);
        assert_non_null(strstr(r.out, cases[i].has));
        assert_null(strstr(r.out, cases[i].not ));
        assert_non_null(strstr(r.out, "\nbackstop COMMAND --help shows"));
    }
    assert_int_equal(run("tsk --help").code, 2);
}

static void the_version_is_told_both_ways(void **state)
{
    (void)state;
    struct ran text = run("version"), dashed = run("--version"), json = run("version --json");

    assert_int_equal(text.code, 0);
    assert_int_equal(strncmp(text.out, "backstop 0.", 11), 0);
    assert_string_equal(text.out, dashed.out);
    assert_int_equal(strncmp(json.out, "{\"version\":\"0.", 14), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_not_understood_is_refused_in_one_clear_line),
        cmocka_unit_test(help_is_on_standard_output_and_done),
        cmocka_unit_test(a_group_helps_with_its_commands),
        cmocka_unit_test(the_version_is_told_both_ways),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
