/* Finds the command, parses what follows it, shows help. */
#include "app/cli.h"

#include "base/buf.h"
#include "base/text.h"

#include <stdarg.h>
#include <stdio.h>

/* In the order of the help. */
static const struct bs_group *const groups[] = {
    &bs_commands_serve, &bs_commands_submit, &bs_commands_task,  &bs_commands_queue,
    &bs_commands_watch, &bs_commands_token,  &bs_commands_store, &bs_commands_config,
};

static const struct bs_option common[] = {
    { "config", "FILE", "the configuration; else ./backstop.yaml, /etc/backstop/backstop.yaml",
      "c" },
    { "json", NULL, "JSON on standard output", NULL },
    { "help", NULL, "this help", "h" },
};
enum { COMMON_HELP = 2, COMMON_N = BS_COUNT(common) };

void bs_complain(const char *fmt, ...)
{
    va_list args;

    fputs("backstop: ", stderr);
    va_start(args, fmt);
    vfprintf(stderr, fmt, args);
    va_end(args);
    fputc('\n', stderr);
}

enum bs_exit bs_exit_of(bs_rc rc)
{
    if (rc == BS_OK)
        return BS_EXIT_DONE;
    return rc == BS_E_REFUSED || rc == BS_E_CORRUPT ? BS_EXIT_STORE : BS_EXIT_FAILED;
}

/* ---- the table ---- */

static const struct bs_command *command_at(uint32_t i)
{
    for (size_t g = 0; g < BS_COUNT(groups); g++) {
        if (i < groups[g]->n)
            return &groups[g]->commands[i];
        i -= groups[g]->n;
    }
    return NULL;
}

static const struct bs_option *option_at(const struct bs_command *c, uint32_t i)
{
    if (i < COMMON_N)
        return &common[i];
    i -= COMMON_N;
    return i < c->options_n ? &c->options[i] : NULL;
}

const char *bs_cli_get(const struct bs_cli *cli, const char *option)
{
    const struct bs_option *o;

    for (uint32_t i = 0; (o = option_at(cli->command, i)) != NULL; i++)
        if (strcmp(o->name, option) == 0)
            return cli->values[i];
    bs_panic(__FILE__, __LINE__, "an option that is not in the table");
}

bool bs_cli_json(const struct bs_cli *cli)
{
    return bs_cli_get(cli, "json") != NULL;
}

/* ---- help ---- */

static void show_options(const struct bs_option *o, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        char left[64];
        snprintf(left, sizeof(left), "%s%s%s--%s%s%s", o[i].letter ? "-" : "    ",
                 o[i].letter ? o[i].letter : "", o[i].letter ? ", " : "", o[i].name,
                 o[i].value ? " " : "", o[i].value ? o[i].value : "");
        printf("  %-30s %s\n", left, o[i].doc);
    }
}

static enum bs_exit show_command(const struct bs_command *c)
{
    printf("Usage: backstop %s%s%s [options]\n\n%s\n\nOptions:\n", c->name, c->args ? " " : "",
           c->args ? c->args : "", c->doc);
    show_options(c->options, c->options_n);
    show_options(common, COMMON_N);
    return BS_EXIT_DONE;
}

/* Whether the command is `word` and another word; NULL: every command is. */
static bool in_group(const struct bs_command *c, const char *word)
{
    size_t n = word ? strlen(word) : 0;

    return !word || (strncmp(c->name, word, n) == 0 && c->name[n] == ' ');
}

static void show_commands(const char *group)
{
    const struct bs_command *c;

    puts("Commands:");
    for (uint32_t i = 0; (c = command_at(i)) != NULL; i++) {
        char left[64];
        if (!in_group(c, group))
            continue;
        snprintf(left, sizeof(left), "%s%s%s", c->name, c->args ? " " : "", c->args ? c->args : "");
        printf("  %-28s %.*s\n", left, (int)strcspn(c->doc, "\n"), c->doc);
    }
    puts("\nbackstop COMMAND --help shows the options of a command.");
}

static enum bs_exit show_group(const char *group)
{
    printf("Usage: backstop %s COMMAND [arguments] [options]\n\n", group);
    show_commands(group);
    return BS_EXIT_DONE;
}

static enum bs_exit show_overview(void)
{
    puts("Backstop repairs what went wrong between a payment and its order.\n\n"
         "Usage: backstop COMMAND [arguments] [options]\n");
    show_commands(NULL);
    puts("Exit codes: 0 done, 1 failed, 2 usage or configuration, 3 store refused.");
    return BS_EXIT_DONE;
}

/* ---- finding the command ---- */

/* Whether the words at the beginning of argv are the command's name; *ret_words: how many. */
static bool name_matches(const struct bs_command *c, int argc, char **argv, int *ret_words)
{
    struct bs_str rest = bs_str_of(c->name);
    int words = 0;

    while (rest.p) {
        struct bs_str word = bs_str_cut(&rest, ' ');
        if (words >= argc || !bs_str_is(word, argv[words]))
            return false;
        words++;
    }
    *ret_words = words;
    return true;
}

static const struct bs_command *find_command(int argc, char **argv, int *ret_words)
{
    const struct bs_command *c;

    for (uint32_t i = 0; (c = command_at(i)) != NULL; i++)
        if (name_matches(c, argc, argv, ret_words))
            return c;
    return NULL;
}

/* What was meant, judged by one word or by two. */
static const struct bs_command *nearest_command(struct bs_str words)
{
    const struct bs_command *c, *best = NULL;
    uint32_t least = (uint32_t)words.n / 2 + 1;

    for (uint32_t i = 0; (c = command_at(i)) != NULL; i++) {
        uint32_t d = bs_text_distance(words, bs_str_of(c->name));
        if (d < least) {
            least = d;
            best = c;
        }
    }
    return best;
}

static bool begins_group(const char *word)
{
    const struct bs_command *c;

    for (uint32_t i = 0; (c = command_at(i)) != NULL; i++)
        if (in_group(c, word))
            return true;
    return false;
}

static bool is_help(const char *word)
{
    return strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0 || strcmp(word, "help") == 0;
}

static void list_group(const char *word)
{
    const struct bs_command *c;
    size_t n = strlen(word);
    char names[256] = "";
    size_t used = 0;

    for (uint32_t i = 0; (c = command_at(i)) != NULL; i++) {
        if (!in_group(c, word))
            continue;
        int wrote =
            snprintf(names + used, sizeof(names) - used, "%s%s", used ? ", " : "", c->name + n + 1);
        used = BS_MIN(used + (size_t)BS_MAX(wrote, 0), sizeof(names) - 1);
    }
    bs_complain("`%s` needs one of: %s", word, names);
}

static enum bs_exit unknown_command(int argc, char **argv)
{
    char words[64];
    const struct bs_command *near;
    bool second = argc > 1 && argv[1][0] != '-';

    if (argv[0][0] == '-') {
        bs_complain("`%s` stands before the command; options come after it", argv[0]);
        return BS_EXIT_USAGE;
    }
    if (begins_group(argv[0]) && argc > 1 && is_help(argv[1]))
        return show_group(argv[0]);
    if (begins_group(argv[0]) && !second) {
        list_group(argv[0]);
        return BS_EXIT_USAGE;
    }
    snprintf(words, sizeof(words), "%s%s%s", argv[0], second ? " " : "", second ? argv[1] : "");
    near = nearest_command(bs_str_of(words));
    if (!near)
        near = nearest_command(bs_str_of(argv[0]));
    if (near)
        bs_complain("unknown command `%s`; did you mean `%s`?", words, near->name);
    else
        bs_complain("unknown command `%s`; backstop --help lists them", words);
    return BS_EXIT_USAGE;
}

/* ---- parsing what follows it ---- */

struct parse {
    struct bs_cli *cli;
    int argc, at;
    char **argv;
    bool only_args; /* after -- */
};

static int find_option(const struct bs_command *c, struct bs_str name, bool letter)
{
    const struct bs_option *o;

    for (uint32_t i = 0; (o = option_at(c, i)) != NULL; i++)
        if (letter ? (o->letter && bs_str_is(name, o->letter)) : bs_str_is(name, o->name))
            return (int)i;
    return -1;
}

static bool unknown_option(const struct bs_command *c, const char *given, struct bs_str name)
{
    const struct bs_option *o, *best = NULL;
    uint32_t least = (uint32_t)name.n / 2 + 1;

    for (uint32_t i = 0; (o = option_at(c, i)) != NULL; i++) {
        uint32_t d = bs_text_distance(name, bs_str_of(o->name));
        if (d < least) {
            least = d;
            best = o;
        }
    }
    if (best)
        bs_complain("%s: unknown option `%s`; did you mean `--%s`?", c->name, given, best->name);
    else
        bs_complain("%s: unknown option `%s`", c->name, given);
    return false;
}

static bool set_option(struct parse *p, int i, const char *value)
{
    const struct bs_option *o = option_at(p->cli->command, (uint32_t)i);

    if (!o->value && value) {
        bs_complain("%s: --%s takes no value", p->cli->command->name, o->name);
        return false;
    }
    if (o->value && !value) {
        if (p->at + 1 >= p->argc) {
            bs_complain("%s: --%s needs %s", p->cli->command->name, o->name, o->value);
            return false;
        }
        value = p->argv[++p->at];
    }
    if (p->cli->values[i]) {
        bs_complain("%s: --%s is given twice", p->cli->command->name, o->name);
        return false;
    }
    p->cli->values[i] = value ? value : "";
    return true;
}

static bool parse_option(struct parse *p, const char *given)
{
    bool is_long = given[1] == '-';
    struct bs_str name, rest = bs_str_of(given + (is_long ? 2 : 1));
    const char *value = NULL;
    int i;

    if (is_long) {
        name = bs_str_cut(&rest, '=');
        value = rest.p;
    } else {
        name = (struct bs_str){ rest.p, BS_MIN(rest.n, (size_t)1) };
        value = rest.n > 1 ? rest.p + 1 : NULL;
    }
    i = find_option(p->cli->command, name, !is_long);
    return i < 0 ? unknown_option(p->cli->command, given, name) : set_option(p, i, value);
}

static bool parse_word(struct parse *p, const char *word)
{
    if (!p->only_args && strcmp(word, "--") == 0) {
        p->only_args = true;
        return true;
    }
    if (!p->only_args && word[0] == '-' && word[1])
        return parse_option(p, word);
    if (p->cli->args_n == p->cli->command->args_max) {
        bs_complain("%s: `%s` is one word too many", p->cli->command->name, word);
        return false;
    }
    p->cli->args[p->cli->args_n++] = word;
    return true;
}

static enum bs_exit run_command(const struct bs_command *c, int argc, char **argv)
{
    struct bs_cli cli = { .command = c };
    struct parse p = { .cli = &cli, .argc = argc, .argv = argv };

    BS_ASSERT(COMMON_N + c->options_n <= BS_OPTIONS_MAX && c->args_max <= BS_ARGS_MAX);
    for (; p.at < argc; p.at++)
        if (!parse_word(&p, argv[p.at]))
            return BS_EXIT_USAGE;
    if (cli.values[COMMON_HELP])
        return show_command(c);
    if (cli.args_n < c->args_min) {
        bs_complain("%s: needs %s; see backstop %s --help", c->name, c->args, c->name);
        return BS_EXIT_USAGE;
    }
    return c->run(&cli);
}

enum bs_exit bs_cli_run(int argc, char **argv)
{
    static char version[] = "version";
    const struct bs_command *c;
    int words = 0;

    if (argc < 2) {
        show_overview();
        return BS_EXIT_USAGE;
    }
    if (is_help(argv[1]))
        return show_overview();
    if (strcmp(argv[1], "--version") == 0)
        argv[1] = version;
    c = find_command(argc - 1, argv + 1, &words);
    return c ? run_command(c, argc - 1 - words, argv + 1 + words)
             : unknown_command(argc - 1, argv + 1);
}
