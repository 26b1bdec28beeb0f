/* JSON out by yajl_gen; what is already JSON is spliced in unchanged. */
#include "json/write.h"

#include "base/text.h"

#include <yajl/yajl_gen.h>

struct bs_json {
    struct bs_buf *out;
    yajl_gen gen;
    uint32_t depth; /* open objects and arrays */
};

static void print(void *ctx, const char *text, size_t n)
{
    bs_buf_add(ctx, (struct bs_str){ text, n });
}

struct bs_json *bs_json_new(struct bs_buf *out)
{
    struct bs_json *j = malloc(sizeof(*j));

    if (!j)
        return NULL;
    *j = (struct bs_json){ .out = out, .gen = yajl_gen_alloc(NULL) };
    if (!j->gen) {
        free(j);
        return NULL;
    }
    int ok = yajl_gen_config(j->gen, yajl_gen_print_callback, print, out);
    BS_ASSERT(ok);
    return j;
}

bs_rc bs_json_end(struct bs_json *j, struct bs_err *err)
{
    if (!j)
        return bs_fail(err, BS_E_NOMEM, "no memory to write JSON");
    struct bs_buf *out = j->out;
    bool whole = j->depth == 0;
    yajl_gen_free(j->gen);
    free(j);
    BS_TRY(bs_buf_done(out, err));
    return whole ? BS_OK : bs_fail(err, BS_E_INVALID, "the JSON document was left unfinished");
}

/* The generator refuses only what its caller may not ask: a value without a key, a second document,
 * more than 128 levels. All are mistakes of ours. */
static void wrote(yajl_gen_status status)
{
    BS_ASSERT(status == yajl_gen_status_ok);
}

void bs_json_open(struct bs_json *j)
{
    if (!j)
        return;
    wrote(yajl_gen_map_open(j->gen));
    j->depth++;
}

void bs_json_close(struct bs_json *j)
{
    if (!j)
        return;
    BS_ASSERT(j->depth > 0);
    wrote(yajl_gen_map_close(j->gen));
    j->depth--;
}

void bs_json_open_array(struct bs_json *j)
{
    if (!j)
        return;
    wrote(yajl_gen_array_open(j->gen));
    j->depth++;
}

void bs_json_close_array(struct bs_json *j)
{
    if (!j)
        return;
    BS_ASSERT(j->depth > 0);
    wrote(yajl_gen_array_close(j->gen));
    j->depth--;
}

static void add_string(struct bs_json *j, struct bs_str s)
{
    wrote(yajl_gen_string(j->gen, (const unsigned char *)(s.n ? s.p : ""), s.n));
}

/* At most four bytes for each; a failure sticks to the document. */
static void add_repaired(struct bs_json *j, struct bs_str s)
{
    BS_CLEANUP(bs_buf_free) struct bs_buf text = { .max = s.n * 4 };

    for (size_t i = 0; i < s.n;) {
        size_t size = bs_utf8_char((struct bs_str){ s.p + i, s.n - i });

        if (size == 0)
            bs_buf_fmt(&text, "\\x%02X", (unsigned)(unsigned char)s.p[i]);
        else
            bs_buf_add(&text, (struct bs_str){ s.p + i, size });
        i += BS_MAX(size, (size_t)1);
    }
    j->out->failed = j->out->failed || text.failed;
    j->out->no_memory = j->out->no_memory || text.no_memory;
    add_string(j, bs_buf_str(&text));
}

void bs_json_key(struct bs_json *j, const char *name)
{
    if (j)
        add_string(j, bs_str_of(name));
}

void bs_json_str(struct bs_json *j, struct bs_str s)
{
    if (!j)
        return;
    if (bs_utf8_valid(s))
        add_string(j, s);
    else
        add_repaired(j, s);
}

/* Written here and spliced in: the generator's own integers go through printf. */
void bs_json_int(struct bs_json *j, int64_t v)
{
    char text[24];
    int n = snprintf(text, sizeof(text), "%lld", (long long)v);

    BS_ASSERT(n > 0 && n < (int)sizeof(text));
    bs_json_raw(j, (struct bs_str){ text, (size_t)n });
}

void bs_json_id(struct bs_json *j, int64_t v)
{
    char text[24];
    int n = snprintf(text, sizeof(text), "%lld", (long long)v);

    BS_ASSERT(n > 0 && n < (int)sizeof(text));
    if (j)
        add_string(j, (struct bs_str){ text, (size_t)n });
}

void bs_json_bool(struct bs_json *j, bool v)
{
    if (j)
        wrote(yajl_gen_bool(j->gen, v));
}

void bs_json_null(struct bs_json *j)
{
    if (j)
        wrote(yajl_gen_null(j->gen));
}

void bs_json_time(struct bs_json *j, struct bs_time t)
{
    if (t.us == 0) {
        bs_json_null(j);
        return;
    }
    if (!j)
        return;
    /* The opening quote goes through the generator for its separators, the rest needs no escapes.
     */
    bs_json_raw(j, BS_STR("\""));
    bs_time_write(j->out, t);
    bs_buf_addc(j->out, '"');
}

void bs_json_raw(struct bs_json *j, struct bs_str json)
{
    if (!j)
        return;
    BS_ASSERT(json.n > 0);
    wrote(yajl_gen_number(j->gen, json.p, json.n));
}

void bs_json_kstr(struct bs_json *j, const char *name, struct bs_str s)
{
    bs_json_key(j, name);
    bs_json_str(j, s);
}

void bs_json_kstr_or_null(struct bs_json *j, const char *name, struct bs_str s)
{
    bs_json_key(j, name);
    if (s.n == 0)
        bs_json_null(j);
    else
        bs_json_str(j, s);
}

void bs_json_kint(struct bs_json *j, const char *name, int64_t v)
{
    bs_json_key(j, name);
    bs_json_int(j, v);
}

void bs_json_kid(struct bs_json *j, const char *name, int64_t v)
{
    bs_json_key(j, name);
    bs_json_id(j, v);
}

void bs_json_kbool(struct bs_json *j, const char *name, bool v)
{
    bs_json_key(j, name);
    bs_json_bool(j, v);
}

void bs_json_ktime(struct bs_json *j, const char *name, struct bs_time t)
{
    bs_json_key(j, name);
    bs_json_time(j, t);
}
