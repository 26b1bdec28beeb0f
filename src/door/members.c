/* Reading a JSON object's members by a table. */
#include "door/door.h"

#include "base/text.h"
#include "json/unescape.h"

enum { NAME_SHOWN_MAX = 64 };

static const struct bs_member *find(const struct bs_member *table, uint32_t n, struct bs_str name)
{
    for (uint32_t i = 0; i < n; i++) {
        if (bs_str_eq(table[i].name, name))
            return &table[i];
    }
    return NULL;
}

/* The nearest known name when it is near enough to be a slip of the hand. */
static const char *meant(const struct bs_member *table, uint32_t n, struct bs_str name)
{
    const char *best = NULL;
    uint32_t least = 3;

    for (uint32_t i = 0; i < n; i++) {
        uint32_t d = bs_text_distance(table[i].name, name);

        if (d < least && d < name.n) {
            least = d;
            best = table[i].name.p;
        }
    }
    return best;
}

static void add_unknown(const struct bs_member *table, uint32_t n, struct bs_str name,
                        struct bs_arena *a, struct bs_field_errors *errors)
{
    const char *near = meant(table, n, name);
    struct bs_str shown = bs_arena_str(a, bs_text_clean(a, name, NAME_SHOWN_MAX));
    const char *field = shown.p ? shown.p : "";

    if (near)
        bs_field_error_add(errors, a, field, "UNKNOWN_MEMBER",
                           "there is no such member; did you mean %s?", near);
    else
        bs_field_error_add(errors, a, field, "UNKNOWN_MEMBER", "there is no such member");
}

static const char *wanted(enum bs_member_kind kind)
{
    switch (kind) {
    case BS_MEMBER_TEXT:
        return "must be a string";
    case BS_MEMBER_DIGITS:
        return "must be an integer or a string of digits";
    case BS_MEMBER_INT:
        return "must be an integer";
    case BS_MEMBER_FLAG:
        return "must be true or false";
    case BS_MEMBER_OBJECT:
        return "must be an object";
    case BS_MEMBER_ARRAY:
        return "must be an array";
    case BS_MEMBER_VALUE:
        break;
    }
    return "must be a JSON value";
}

static bool fits(enum bs_member_kind kind, enum bs_json_type type)
{
    switch (kind) {
    case BS_MEMBER_TEXT:
        return type == BS_JSON_STRING;
    case BS_MEMBER_DIGITS:
        return type == BS_JSON_NUMBER || type == BS_JSON_STRING;
    case BS_MEMBER_INT:
        return type == BS_JSON_NUMBER;
    case BS_MEMBER_FLAG:
        return type == BS_JSON_BOOL;
    case BS_MEMBER_OBJECT:
        return type == BS_JSON_OBJECT;
    case BS_MEMBER_ARRAY:
        return type == BS_JSON_ARRAY;
    case BS_MEMBER_VALUE:
        return true;
    }
    return false;
}

/* Given and empty differs from absent. */
static struct bs_str given(struct bs_str s)
{
    return s.p ? s : (struct bs_str){ "", 0 };
}

static void put_int(const struct bs_member *m, const struct bs_json_member *got, char *into,
                    struct bs_arena *a, struct bs_field_errors *errors)
{
    int64_t v;

    if (bs_i64_parse(got->raw, &v)) {
        *(int64_t *)(void *)(into + m->at) = v;
        *(bool *)(void *)(into + m->has_at) = true;
        return;
    }
    for (size_t i = 0; i < got->raw.n; i++) {
        char ch = got->raw.p[i];

        if (ch == '.' || ch == 'e' || ch == 'E') {
            bs_field_error_add(errors, a, m->name.p, "WRONG_TYPE", "%s", wanted(m->kind));
            return;
        }
    }
    bs_field_error_add(errors, a, m->name.p, "OUT_OF_RANGE", "the number is too big");
}

static void put(const struct bs_member *m, const struct bs_json_member *got, void *base,
                struct bs_arena *a, struct bs_field_errors *errors)
{
    char *into = base;
    struct bs_str *s = (void *)(into + m->at);

    switch (m->kind) {
    case BS_MEMBER_TEXT:
        *s = given(got->text);
        break;
    case BS_MEMBER_DIGITS:
        *s = got->type == BS_JSON_STRING ? given(got->text) : got->raw;
        break;
    case BS_MEMBER_INT:
        put_int(m, got, into, a, errors);
        break;
    case BS_MEMBER_FLAG:
        *(bool *)(void *)(into + m->at) = got->flag;
        break;
    case BS_MEMBER_OBJECT:
    case BS_MEMBER_ARRAY:
    case BS_MEMBER_VALUE:
        *s = got->raw;
        break;
    }
}

/* Identifiers are compared byte for byte: what has no bytes of its own is not made into another. */
static bool is_no_text(const struct bs_member *m, const struct bs_json_member *got)
{
    return (m->kind == BS_MEMBER_TEXT || m->kind == BS_MEMBER_DIGITS) &&
           got->type == BS_JSON_STRING && bs_json_is_lossy(got->raw);
}

void bs_members_read(const struct bs_json_object *o, const struct bs_member *table, uint32_t n,
                     void *into, struct bs_arena *a, struct bs_field_errors *errors)
{
    uint64_t seen = 0;

    BS_ASSERT(n <= 64);
    for (uint32_t i = 0; i < o->n; i++) {
        const struct bs_json_member *got = &o->members[i];
        const struct bs_member *m = find(table, n, got->name);
        uint64_t bit = m ? (uint64_t)1 << (m - table) : 0;

        if (!m)
            add_unknown(table, n, got->name, a, errors);
        else if (seen & bit)
            bs_field_error_add(errors, a, m->name.p, "DUPLICATE_MEMBER", "given twice");
        else if (!fits(m->kind, got->type))
            bs_field_error_add(errors, a, m->name.p, "WRONG_TYPE", "%s", wanted(m->kind));
        else if (is_no_text(m, got))
            bs_field_error_add(errors, a, m->name.p, "BAD_UTF8",
                               "has half of a surrogate pair, which is no character");
        else
            put(m, got, into, a, errors);
        seen |= bit;
    }
}
