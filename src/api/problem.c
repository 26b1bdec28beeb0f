/* The closed list of problems and their JSON form. */
#include "api/problem.h"

#include "json/write.h"

struct row {
    const char *code;
    const char *title;
    int status;
};

#define ROW(name, number, words) [BS_PROBLEM_##name] = { #name, words, number },
static const struct row rows[BS_PROBLEM_COUNT] = { BS_PROBLEM_LIST(ROW) };

int bs_problem_status(enum bs_problem p)
{
    BS_ASSERT(p > BS_PROBLEM_NONE && p < BS_PROBLEM_COUNT);
    return rows[p].status;
}

const char *bs_problem_code(enum bs_problem p)
{
    BS_ASSERT(p > BS_PROBLEM_NONE && p < BS_PROBLEM_COUNT);
    return rows[p].code;
}

/* urn:backstop:problem:not-found */
static void write_type(struct bs_json *j, const char *code)
{
    char text[64] = "urn:backstop:problem:";
    size_t n = strlen(text);

    for (const char *p = code; *p && n < sizeof(text); p++, n++)
        text[n] = (char)(*p == '_' ? '-' : *p + ('a' - 'A'));
    bs_json_kstr(j, "type", (struct bs_str){ text, n });
}

static void write_errors(struct bs_json *j, const struct bs_field_errors *errors)
{
    bs_json_key(j, "errors");
    bs_json_open_array(j);
    for (uint32_t i = 0; i < errors->n; i++) {
        bs_json_open(j);
        bs_json_kstr(j, "field", bs_str_of(errors->items[i].field));
        bs_json_kstr(j, "code", bs_str_of(errors->items[i].code));
        bs_json_kstr(j, "message", errors->items[i].message);
        bs_json_close(j);
    }
    bs_json_close_array(j);
}

void bs_problem_write(struct bs_buf *out, enum bs_problem p, const struct bs_problem_more *more)
{
    struct bs_json *j = bs_json_new(out);

    BS_ASSERT(p > BS_PROBLEM_NONE && p < BS_PROBLEM_COUNT);
    if (!j)
        return;
    bs_json_open(j);
    write_type(j, rows[p].code);
    bs_json_kstr(j, "title", bs_str_of(rows[p].title));
    bs_json_kint(j, "status", rows[p].status);
    bs_json_kstr(j, "code", bs_str_of(rows[p].code));
    if (more->detail.n)
        bs_json_kstr(j, "detail", more->detail);
    if (more->errors && more->errors->n)
        write_errors(j, more->errors);
    if (more->task_id)
        bs_json_kid(j, "task_no", more->task_id);
    bs_json_close(j);
    BS_IGNORE(bs_json_end(j, NULL), "the buffer keeps its failure");
}
