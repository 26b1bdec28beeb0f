/* The log: one event is one line is one write. */
#include "sys/log.h"

#include "base/text.h"
#include "base/time.h"

#include <errno.h>
#include <stdatomic.h>
#include <time.h>
#include <unistd.h>

enum { LINE_MAX_BYTES = 8192, TAIL_BYTES = 16, VALUE_MAX_BYTES = 2048 };
/* More than the longest text that is hidden: what a cut would leave half is seen whole. */
enum { HIDDEN_MAX_BYTES = 128 };
enum form { BY_TERMINAL, JSON, READABLE };

static _Atomic int out_fd = 2;
static _Atomic int out_form = BY_TERMINAL;
static _Atomic int least_level = BS_LOG_INFO;

void bs_log_setup(int fd, int form, enum bs_log_level least)
{
    atomic_store(&out_fd, fd);
    atomic_store(&out_form, form);
    atomic_store(&least_level, (int)least);
}

bool bs_log_wants(enum bs_log_level level)
{
    return (int)level >= atomic_load(&least_level);
}

static bool is_json(void)
{
    int form = atomic_load(&out_form);

    if (form == BY_TERMINAL)
        form = isatty(atomic_load(&out_fd)) ? READABLE : JSON;
    return form == JSON;
}

static void add_escaped(struct bs_buf *b, const char *p, bool json)
{
    char c = *p;

    if (c == '"' || c == '\\')
        bs_buf_fmt(b, "\\%c", c);
    else if (c == '\n')
        bs_buf_addz(b, "\\n");
    else
        bs_buf_fmt(b, json ? "\\u%04x" : "\\x%02x", (unsigned)(unsigned char)c);
}

/* Quoted; whatever is no well-formed character is shown as \xNN, C1 controls by their number. */
static void add_quoted(struct bs_buf *b, struct bs_str s, bool json)
{
    bs_buf_addc(b, '"');
    for (size_t i = 0; i < s.n;) {
        struct bs_str rest = { s.p + i, s.n - i };
        size_t size = bs_utf8_char(rest);
        unsigned char c = (unsigned char)rest.p[0];

        if (size == 0)
            bs_buf_fmt(b, json ? "\\\\x%02X" : "\\x%02X", (unsigned)c);
        else if (size == 1 && (c < 0x20 || c == 0x7f || c == '"' || c == '\\'))
            add_escaped(b, rest.p, json);
        else if (!bs_text_plain((struct bs_str){ rest.p, size }))
            bs_buf_fmt(b, "\\u%04x", (unsigned)(unsigned char)rest.p[1]);
        else
            bs_buf_add(b, (struct bs_str){ rest.p, size });
        i += BS_MAX(size, (size_t)1);
    }
    bs_buf_addc(b, '"');
}

/* What a reader can take as one word without quotes. */
static bool is_word(struct bs_str s)
{
    for (size_t i = 0; i < s.n; i++) {
        if (s.p[i] <= ' ' || s.p[i] > '~' || strchr("\"\\=", s.p[i]))
            return false;
    }
    return s.n > 0;
}

static void add_text(struct bs_buf *line, struct bs_str s, bool json)
{
    if (!json && is_word(s))
        bs_buf_add(line, s);
    else
        add_quoted(line, s, json);
}

static void add_key(struct bs_buf *line, const char *name, bool json)
{
    if (json)
        bs_buf_fmt(line, "%s\"%s\":", line->len == 1 ? "" : ",", name);
    else
        bs_buf_fmt(line, "%s%s=", line->len == 0 ? "" : " ", name);
}

/* Our own ids are numbers of up to 19 digits, one in ten of which looks like a card. */
static bool is_own_id(const char *name)
{
    struct bs_str s = bs_str_of(name);

    return bs_str_is(s, "task_no") || bs_str_is(s, "parent_task_no");
}

/* Bytes that are no text stay where nothing is cut: the writer shows them. */
static struct bs_str cut(struct bs_str s, size_t max)
{
    return s.n > max ? bs_utf8_cut(s, max) : s;
}

static void add_cut(struct bs_buf *line, struct bs_str whole, bool more, bool json)
{
    BS_CLEANUP(bs_buf_free) struct bs_buf marked = { .max = VALUE_MAX_BYTES + 8 };
    struct bs_str text = cut(whole, VALUE_MAX_BYTES);

    bs_buf_add(&marked, text);
    if (more || text.n < whole.n)
        bs_buf_addz(&marked, "\xe2\x80\xa6");
    add_text(line, bs_buf_str(&marked), json);
}

static void add_value(struct bs_buf *line, const struct bs_log_field *f, bool json)
{
    BS_CLEANUP(bs_buf_free) struct bs_buf masked = { .max = VALUE_MAX_BYTES + HIDDEN_MAX_BYTES };

    if (!f->text.p) {
        bs_buf_add_i64(line, f->number);
        return;
    }
    struct bs_str text = cut(f->text, VALUE_MAX_BYTES + HIDDEN_MAX_BYTES);
    if (is_own_id(f->key))
        bs_buf_add(&masked, text);
    else
        bs_text_mask(&masked, text);
    add_cut(line, bs_buf_str(&masked), text.n < f->text.n, json);
}

/* A field that does not fit is left out whole, so that the line stays readable for a program. */
static bool add_field(struct bs_buf *line, const struct bs_log_field *f, bool json)
{
    size_t before = line->len;

    if (f->text.p && f->text.n == 0)
        return true;
    add_key(line, f->key, json);
    add_value(line, f, json);
    if (line->len <= LINE_MAX_BYTES - TAIL_BYTES)
        return true;
    line->len = before;
    return false;
}

static void add_head(struct bs_buf *line, enum bs_log_level level, const char *event, bool json)
{
    static const char *const names[] = { "debug", "info", "warn", "error" };
    struct timespec t = { 0 };

    BS_ASSERT((size_t)level < BS_COUNT(names));
    clock_gettime(CLOCK_REALTIME, &t);
    if (json)
        bs_buf_addc(line, '{');
    add_key(line, "ts", json);
    bs_buf_addz(line, json ? "\"" : "");
    bs_time_write(line, (struct bs_time){ (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000 });
    bs_buf_addz(line, json ? "\"" : "");
    add_key(line, "level", json);
    add_text(line, bs_str_of(names[level]), json);
    add_key(line, "event", json);
    add_text(line, bs_str_of(event), json);
}

/* Normally one call. A pipe may take a part: the rest follows, or half a line would stay. A log
 * that cannot be written must not stop the work, so errors end here. */
static void write_line(struct bs_str line)
{
    int fd = atomic_load(&out_fd);

    while (line.n > 0) {
        ssize_t n = write(fd, line.p, line.n);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return;
        line.p += n;
        line.n -= (size_t)n;
    }
}

void bs_log_event(enum bs_log_level level, const char *event, const struct bs_log_field *fields,
                  size_t n)
{
    BS_CLEANUP(bs_buf_free) struct bs_buf line = { .max = (size_t)4 * LINE_MAX_BYTES };
    bool cut = false;

    if (!bs_log_wants(level))
        return;
    bool json = is_json(); /* may ask the kernel: not for what is left out */
    add_head(&line, level, event, json);
    for (size_t i = 0; i < n; i++)
        cut = !add_field(&line, &fields[i], json) || cut;
    if (cut) {
        add_key(&line, "cut", json);
        bs_buf_addz(&line, "true");
    }
    bs_buf_addz(&line, json ? "}\n" : "\n");
    if (!line.failed)
        write_line(bs_buf_str(&line));
}
