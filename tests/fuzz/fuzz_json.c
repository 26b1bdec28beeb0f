/* The JSON reader on any bytes: what it accepts has exact, valid slices and survives a round trip.
 */
#include "fuzz.h"
#include "json/read.h"
#include "json/write.h"

#include <jansson.h>

/* A member's text written by us and read again is the same text. */
static void check_text(struct bs_str text)
{
    BS_CLEANUP(bs_arena_free) struct bs_arena a = { 0 };
    BS_CLEANUP(bs_buf_free) struct bs_buf b = { .max = 16 << 20 };
    struct bs_json *j = bs_json_new(&b);
    struct bs_json_object o;

    BS_ASSERT(bs_utf8_valid(text));
    bs_json_open(j);
    bs_json_kstr(j, "t", text);
    bs_json_close(j);
    bs_rc rc = bs_json_end(j, NULL);
    BS_ASSERT(rc == BS_OK);
    rc = bs_json_read_object(&a, bs_buf_str(&b), 1, &o, NULL);
    BS_ASSERT(rc == BS_OK && o.n == 1 && bs_str_eq(o.members[0].text, text));
}

static void check_object(struct bs_str input, const struct bs_json_object *o)
{
    const char *at = input.p;

    for (uint32_t i = 0; i < o->n; i++) {
        const struct bs_json_member *m = &o->members[i];

        BS_ASSERT(m->raw.p > at && m->raw.p + m->raw.n < input.p + input.n);
        at = m->raw.p + m->raw.n;
        BS_ASSERT(bs_json_valid(m->raw, NULL) == BS_OK);
        BS_ASSERT(bs_str_eq(bs_str_trim(m->raw), m->raw));
        BS_ASSERT(bs_utf8_valid(m->name));
        if (m->type == BS_JSON_STRING)
            check_text(m->text);
    }
}

/* Of a name given twice the other library keeps the last. */
static bool last_of_its_name(const struct bs_json_object *o, uint32_t at)
{
    for (uint32_t i = at + 1; i < o->n; i++)
        if (bs_str_eq(o->members[i].name, o->members[at].name))
            return false;
    return true;
}

static void check_texts(const struct bs_json_object *o, const json_t *other)
{
    for (uint32_t i = 0; i < o->n; i++) {
        const struct bs_json_member *m = &o->members[i];
        const json_t *value = json_object_getn(other, m->name.p, m->name.n);

        BS_ASSERT(value);
        if (!last_of_its_name(o, i))
            continue;
        BS_ASSERT(json_is_string(value) == (m->type == BS_JSON_STRING));
        struct bs_str text = { json_string_value(value), json_string_length(value) };
        BS_ASSERT(!json_is_string(value) || bs_str_eq(text, m->text));
        BS_ASSERT(json_is_boolean(value) == (m->type == BS_JSON_BOOL));
        BS_ASSERT(!json_is_boolean(value) || json_is_true(value) == m->flag);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    BS_CLEANUP(bs_arena_free) struct bs_arena a = { 0 };
    struct bs_str input = { (const char *)data, n };
    struct bs_json_object o;
    struct bs_str *items;
    uint32_t items_n;
    struct bs_err err;
    bool valid = bs_json_valid(input, &err) == BS_OK;
    bool is_object = bs_json_read_object(&a, input, 1000, &o, &err) == BS_OK;
    bool is_array = bs_json_read_array(&a, input, 1000, &items, &items_n, &err) == BS_OK;
    json_t *other = json_loadb(input.p, n, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);

    BS_ASSERT(!(is_object && is_array));
    BS_ASSERT(valid || (!is_object && !is_array));
    /* The other library refuses more than we do, so what it takes is JSON; but it takes a NUL byte
     * behind the document for its end. */
    BS_ASSERT(valid || !other || memchr(data, 0, n));
    if (is_object)
        check_object(input, &o);
    if (is_object && json_is_object(other))
        check_texts(&o, other);
    json_decref(other);
    for (uint32_t i = 0; is_array && i < items_n; i++)
        BS_ASSERT(bs_json_valid(items[i], NULL) == BS_OK);
    return 0;
}
