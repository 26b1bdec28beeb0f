/* JSON in by yajl: the parser says what is valid and where each value ends, the slices are ours. */
#include "json/read.h"

#include "base/text.h"
#include "json/unescape.h"

#include <yajl/yajl_parse.h>

struct slice {
    struct bs_str raw;
    struct bs_str name; /* with its quotes; objects only */
    enum bs_json_type type;
};

/* One top-level object or array while yajl reads it. Slices of level one are collected. */
struct reader {
    yajl_handle yajl;
    struct bs_arena *a;
    struct bs_str input;
    enum bs_json_type wanted; /* OBJECT or ARRAY                            */
    uint32_t max;
    struct slice *slices; /* in the arena */
    uint32_t n, cap;
    uint32_t depth;
    size_t at;          /* where the last token of level one ended    */
    size_t from;        /* where the open value of level one began    */
    struct bs_str name; /* of the member whose value comes next       */
    bool ended;         /* the input is over: no position is known    */
    bs_rc failed;       /* why a callback stopped the parser          */
};

static int stop(struct reader *r, bs_rc why)
{
    r->failed = why;
    return 0;
}

static bool is_between(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n' || c == ',' || c == ':';
}

/* First byte of the token after r->at; the parser has seen it, so it is there. */
static size_t next_token(const struct reader *r)
{
    size_t i = r->at;

    while (i < r->input.n && is_between(r->input.p[i]))
        i++;
    BS_ASSERT(i < r->input.n);
    return i;
}

static bool grow(struct reader *r)
{
    uint32_t cap = BS_MIN(r->max, r->cap ? r->cap * 2 : 32);
    struct slice *more = BS_NEW_ARRAY(r->a, struct slice, cap);

    if (!more)
        return false;
    if (r->n)
        memcpy(more, r->slices, sizeof(*more) * r->n);
    r->slices = more;
    r->cap = cap;
    return true;
}

static int add_slice(struct reader *r, enum bs_json_type type, size_t from)
{
    size_t end = yajl_get_bytes_consumed(r->yajl);

    BS_ASSERT(from < end && end <= r->input.n);
    if (r->n == r->max)
        return stop(r, BS_E_LIMIT);
    if (r->n == r->cap && !grow(r))
        return stop(r, BS_E_NOMEM);
    r->slices[r->n++] = (struct slice){ { r->input.p + from, end - from }, r->name, type };
    r->at = end;
    return 1;
}

static int on_scalar(struct reader *r, enum bs_json_type type)
{
    if (r->depth == 0)
        return stop(r, BS_E_INVALID);
    /* A number that the end of the input completes: the parser will miss its brackets by itself. */
    if (r->ended)
        return 1;
    return r->depth > 1 ? 1 : add_slice(r, type, next_token(r));
}

static int on_open(struct reader *r, enum bs_json_type type)
{
    if (r->depth == 0) {
        if (type != r->wanted)
            return stop(r, BS_E_INVALID);
        r->at = yajl_get_bytes_consumed(r->yajl);
    } else if (r->depth == 1) {
        r->from = next_token(r);
    }
    r->depth++;
    return 1;
}

static int on_close(struct reader *r, enum bs_json_type type)
{
    BS_ASSERT(r->depth > 0);
    r->depth--;
    return r->depth == 1 ? add_slice(r, type, r->from) : 1;
}

static int on_null(void *ctx)
{
    return on_scalar(ctx, BS_JSON_NULL);
}

static int on_boolean(void *ctx, int value)
{
    (void)value;
    return on_scalar(ctx, BS_JSON_BOOL);
}

static int on_number(void *ctx, const char *text, size_t n)
{
    (void)text;
    (void)n;
    return on_scalar(ctx, BS_JSON_NUMBER);
}

static int on_string(void *ctx, const unsigned char *text, size_t n)
{
    (void)text;
    (void)n;
    return on_scalar(ctx, BS_JSON_STRING);
}

static int on_key(void *ctx, const unsigned char *text, size_t n)
{
    struct reader *r = ctx;

    (void)text;
    (void)n;
    if (r->depth != 1)
        return 1;
    size_t from = next_token(r);
    r->at = yajl_get_bytes_consumed(r->yajl);
    r->name = (struct bs_str){ r->input.p + from, r->at - from };
    return 1;
}

static int on_open_map(void *ctx)
{
    return on_open(ctx, BS_JSON_OBJECT);
}

static int on_close_map(void *ctx)
{
    return on_close(ctx, BS_JSON_OBJECT);
}

static int on_open_array(void *ctx)
{
    return on_open(ctx, BS_JSON_ARRAY);
}

static int on_close_array(void *ctx)
{
    return on_close(ctx, BS_JSON_ARRAY);
}

static const yajl_callbacks callbacks = {
    .yajl_null = on_null,
    .yajl_boolean = on_boolean,
    .yajl_number = on_number,
    .yajl_string = on_string,
    .yajl_start_map = on_open_map,
    .yajl_map_key = on_key,
    .yajl_end_map = on_close_map,
    .yajl_start_array = on_open_array,
    .yajl_end_array = on_close_array,
};

/* Messages count bytes from 1: then they name the byte itself, or the last one that was read. */
static size_t first_bad_byte(struct bs_str s)
{
    size_t i = 0;
    size_t size;

    while (i < s.n && (size = bs_utf8_char((struct bs_str){ s.p + i, s.n - i })) > 0)
        i += size;
    return i;
}

/* What yajl would let through: overlong forms, and two controls that it takes for white space. */
static bs_rc check_bytes(struct bs_str input, struct bs_err *err)
{
    const char *control;

    if (input.n == 0)
        return bs_fail(err, BS_E_INVALID, "empty where JSON was expected");
    if (bs_str_starts(input, BS_STR("\xef\xbb\xbf")))
        return bs_fail(err, BS_E_INVALID,
                       "begins with a byte order mark, which JSON does not allow");
    if (!bs_utf8_valid(input))
        return bs_fail(err, BS_E_INVALID, "not UTF-8 at byte %zu", first_bad_byte(input) + 1);
    control = memchr(input.p, '\v', input.n);
    if (!control)
        control = memchr(input.p, '\f', input.n);
    if (control)
        return bs_fail(err, BS_E_INVALID, "not JSON at byte %zu: a control character",
                       (size_t)(control - input.p) + 1);
    return BS_OK;
}

static void free_yajl(yajl_handle *y)
{
    if (*y)
        yajl_free(*y);
}

static bs_rc fail_parse(yajl_handle y, size_t at, struct bs_err *err)
{
    unsigned char *text = yajl_get_error(y, 0, NULL, 0);
    struct bs_str what = bs_str_trim(bs_str_of(text ? (const char *)text : "not JSON"));
    bs_rc rc = bs_fail(err, BS_E_INVALID, "not JSON at byte %zu: %.*s", BS_MAX(at, (size_t)1),
                       BS_STR_FMT(what));

    if (text)
        yajl_free_error(y, text);
    return rc;
}

/* Runs the parser over the whole input; r may be NULL when only validity matters. */
static bs_rc parse(struct bs_str input, struct reader *r, struct bs_err *err)
{
    BS_CLEANUP(free_yajl) yajl_handle y = yajl_alloc(r ? &callbacks : NULL, NULL, r);

    if (!y)
        return bs_fail(err, BS_E_NOMEM, "no memory to read JSON");
    if (r)
        r->yajl = y;
    int ok = yajl_config(y, yajl_dont_validate_strings, 1);
    BS_ASSERT(ok);
    yajl_status status = yajl_parse(y, (const unsigned char *)input.p, input.n);
    size_t at = yajl_get_bytes_consumed(y);
    if (status == yajl_status_ok) {
        at = input.n;
        if (r)
            r->ended = true;
        status = yajl_complete_parse(y);
    }
    if (status == yajl_status_client_canceled)
        return r ? r->failed : BS_E_INVALID;
    return status == yajl_status_ok ? BS_OK : fail_parse(y, at, err);
}

static bs_rc read_slices(struct reader *r, struct bs_err *err)
{
    const char *what = r->wanted == BS_JSON_OBJECT ? "object" : "array";

    BS_TRY(check_bytes(r->input, err));
    bs_rc rc = parse(r->input, r, err);
    if (r->failed == BS_E_LIMIT)
        return bs_fail(err, rc, "the JSON %s has more than %u members", what, r->max);
    if (r->failed == BS_E_NOMEM)
        return bs_fail(err, rc, "no memory for the members of a JSON %s", what);
    if (r->failed != BS_OK)
        return bs_fail(err, rc, "a JSON %s was expected", what);
    return rc;
}

static bool fill_member(struct bs_arena *a, const struct slice *s, struct bs_json_member *ret)
{
    *ret = (struct bs_json_member){ .name = bs_json_unescape(a, s->name),
                                    .type = s->type,
                                    .raw = s->raw,
                                    .flag = s->type == BS_JSON_BOOL && s->raw.p[0] == 't' };
    if (s->type == BS_JSON_STRING)
        ret->text = bs_json_unescape(a, s->raw);
    return !a->failed;
}

bs_rc bs_json_read_object(struct bs_arena *a, struct bs_str input, uint32_t members_max,
                          struct bs_json_object *ret, struct bs_err *err)
{
    struct reader r = { .a = a, .input = input, .wanted = BS_JSON_OBJECT, .max = members_max };

    BS_TRY(read_slices(&r, err));
    struct bs_json_member *members = BS_NEW_ARRAY(a, struct bs_json_member, r.n);
    if (!members)
        return bs_fail(err, BS_E_NOMEM, "no memory for the members of a JSON object");
    for (uint32_t i = 0; i < r.n; i++) {
        if (!fill_member(a, &r.slices[i], &members[i]))
            return bs_fail(err, BS_E_NOMEM, "no memory for the members of a JSON object");
    }
    *ret = (struct bs_json_object){ members, r.n };
    return BS_OK;
}

bs_rc bs_json_read_array(struct bs_arena *a, struct bs_str input, uint32_t max,
                         struct bs_str **ret_items, uint32_t *ret_n, struct bs_err *err)
{
    struct reader r = { .a = a, .input = input, .wanted = BS_JSON_ARRAY, .max = max };

    BS_TRY(read_slices(&r, err));
    struct bs_str *items = BS_NEW_ARRAY(a, struct bs_str, r.n);
    if (!items)
        return bs_fail(err, BS_E_NOMEM, "no memory for the elements of a JSON array");
    for (uint32_t i = 0; i < r.n; i++)
        items[i] = r.slices[i].raw;
    *ret_items = items;
    *ret_n = r.n;
    return BS_OK;
}

bs_rc bs_json_valid(struct bs_str input, struct bs_err *err)
{
    BS_TRY(check_bytes(input, err));
    return parse(input, NULL, err);
}
