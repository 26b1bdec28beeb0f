/* What a handler or a look-up answered. Only what is exactly the declared shape counts; the reader
 * of outside JSON is used, so that an odd number elsewhere in a reply does not spoil a verdict. */
#include "engine/reply.h"

#include "base/text.h"
#include "json/read.h"

enum { MEMBERS_MAX = 16384 };

static const int64_t day_us = INT64_C(86400000000);

/* The one member of that name; NULL when it is absent. Twice is no answer at all. */
static const struct bs_json_member *find(const struct bs_json_object *o, const char *name,
                                         bool *ret_twice)
{
    const struct bs_json_member *found = NULL;

    for (uint32_t i = 0; i < o->n; i++) {
        if (!bs_str_is(o->members[i].name, name))
            continue;
        *ret_twice |= found != NULL;
        found = &o->members[i];
    }
    return found;
}

static bool read_object(struct bs_arena *a, struct bs_str text, struct bs_json_object *ret)
{
    return text.n > 0 && bs_json_read_object(a, text, MEMBERS_MAX, ret, NULL) == BS_OK;
}

/* Text, or a number's digits. */
static struct bs_str words(const struct bs_json_member *m)
{
    if (m && m->type == BS_JSON_STRING)
        return m->text;
    if (m && m->type == BS_JSON_NUMBER)
        return m->raw;
    return BS_STR_NONE;
}

/* ---- retry_after: a number of seconds, or a duration as in the configuration */

static bool seconds(struct bs_str text, struct bs_span *ret)
{
    struct bs_str whole = bs_str_cut(&text, '.');
    int64_t s;

    if (!bs_i64_parse(whole, &s) || s < 0)
        return false;
    ret->us = BS_MIN(s, 366 * day_us / 1000000) * 1000000;
    /* A fraction counts to the tenth; more is not worth a rule. */
    if (text.n && text.p[0] >= '0' && text.p[0] <= '9')
        ret->us += (int64_t)(text.p[0] - '0') * 100000;
    return true;
}

static bool read_delay(const struct bs_json_member *m, struct bs_span *ret)
{
    if (m->type == BS_JSON_NUMBER)
        return seconds(m->raw, ret);
    if (m->type != BS_JSON_STRING)
        return false;
    if (bs_span_parse(m->text, ret, NULL) != BS_OK)
        return false;
    ret->us = BS_MIN(ret->us, 366 * day_us);
    return true;
}

/* ---- the declared rule: one value by JSON pointer (RFC 6901) */

/* One reference token, with ~1 and ~0 undone. */
static struct bs_str unescape(struct bs_arena *a, struct bs_str token)
{
    char *to = bs_arena_alloc(a, token.n + 1);
    size_t n = 0;

    for (size_t i = 0; to && i < token.n; i++) {
        bool tilde = token.p[i] == '~' && i + 1 < token.n;

        if (tilde && (token.p[i + 1] == '0' || token.p[i + 1] == '1'))
            to[n++] = token.p[++i] == '0' ? '~' : '/';
        else
            to[n++] = token.p[i];
    }
    return (struct bs_str){ to, n };
}

static bool into_object(struct bs_arena *a, struct bs_str *at, struct bs_str name)
{
    struct bs_json_object o;
    bool found = false;

    if (!read_object(a, *at, &o))
        return false;
    for (uint32_t i = 0; i < o.n; i++) {
        if (!bs_str_eq(o.members[i].name, name))
            continue;
        if (found)
            return false;
        found = true;
        *at = o.members[i].raw;
    }
    return found;
}

static bool into_array(struct bs_arena *a, struct bs_str *at, struct bs_str token)
{
    struct bs_str *items;
    uint32_t n;
    int64_t i;
    bool padded = token.n > 1 && token.p[0] == '0';
    bool is_signed = token.n > 0 && token.p[0] == '-';

    if (padded || is_signed || !bs_i64_parse(token, &i))
        return false;
    if (bs_json_read_array(a, *at, MEMBERS_MAX, &items, &n, NULL) != BS_OK || i >= (int64_t)n)
        return false;
    *at = items[i];
    return true;
}

static bool follow(struct bs_arena *a, struct bs_str pointer, struct bs_str *at)
{
    struct bs_str rest = pointer;

    if (rest.n == 0)
        return true;
    (void)bs_str_cut(&rest, '/');
    while (rest.p) {
        struct bs_str token = unescape(a, bs_str_cut(&rest, '/'));

        *at = bs_str_trim(*at);
        if (at->n == 0 || !token.p)
            return false;
        bool went = at->p[0] == '[' ? into_array(a, at, token) : into_object(a, at, token);
        if (!went)
            return false;
    }
    return true;
}

/* The text of a raw JSON string; p NULL when it is another type. */
static struct bs_str text_of(struct bs_arena *a, struct bs_str raw)
{
    BS_CLEANUP(bs_buf_free) struct bs_buf b = { .max = raw.n + 16 };
    struct bs_json_object o;

    if (raw.n < 2 || raw.p[0] != '"')
        return BS_STR_NONE;
    bs_buf_addz(&b, "{\"v\":");
    bs_buf_add(&b, raw);
    bs_buf_addz(&b, "}");
    if (b.failed || !read_object(a, bs_buf_str(&b), &o))
        return BS_STR_NONE;
    return o.members[0].text;
}

static bool same_value(struct bs_arena *a, struct bs_str got, struct bs_str wanted)
{
    struct bs_str text = text_of(a, got);
    struct bs_str other = text_of(a, wanted);

    if (text.p && other.p)
        return bs_str_eq(text, other);
    return !text.p && !other.p && bs_str_eq(got, wanted);
}

static bool rule_holds(struct bs_arena *a, const struct bs_facts *f,
                       const struct bs_success_rule *rule)
{
    struct bs_str at = bs_str_trim(f->body);

    if (!rule->json_pointer.p || f->status != rule->status || f->body_cut)
        return false;
    if (bs_json_valid(at, NULL) != BS_OK || !follow(a, rule->json_pointer, &at))
        return false;
    for (uint32_t i = 0; i < rule->values_n; i++)
        if (same_value(a, at, rule->values[i]))
            return true;
    return false;
}

/* ---- the handler's reply */

static bool read_outcome(const struct bs_json_member *m, struct bs_reply *r)
{
    static const char *const names[] = {
        [BS_SAYS_SUCCESS] = "success", [BS_SAYS_FINISHED] = "finished", [BS_SAYS_RETRY] = "retry",
        [BS_SAYS_MANUAL] = "manual",   [BS_SAYS_UNKNOWN] = "unknown",
    };

    if (!m || m->type != BS_JSON_STRING)
        return false;
    for (size_t i = 0; i < BS_COUNT(names); i++) {
        if (!bs_str_is(m->text, names[i]))
            continue;
        r->says = (unsigned)i;
        return true;
    }
    return false;
}

static void read_reply(struct bs_arena *a, struct bs_str body, struct bs_reply *r)
{
    struct bs_json_object o;
    bool twice = false;

    if (!read_object(a, body, &o) || !read_outcome(find(&o, "outcome", &twice), r))
        return;
    const struct bs_json_member *delay = find(&o, "retry_after", &twice);
    r->code = words(find(&o, "code", &twice));
    r->message = words(find(&o, "message", &twice));
    r->effect = words(find(&o, "effect", &twice));
    r->has_retry_after = delay && read_delay(delay, &r->retry_after);
    r->valid = !twice;
}

struct bs_reply bs_reply_read(struct bs_arena *a, const struct bs_facts *f,
                              const struct bs_success_rule *rule)
{
    struct bs_reply r = { 0 };

    if (f->wire != BS_WIRE_REPLIED)
        return r;
    r.json_rule_holds = rule_holds(a, f, rule);
    if (!f->body_cut && f->status >= 200 && f->status < 300)
        read_reply(a, f->body, &r);
    return r;
}

/* ---- the look-up's reply */

static bool read_verdict(const struct bs_json_member *m, enum bs_verdict *ret)
{
    static const char *const names[] = {
        [BS_VERDICT_GO_ON] = "go_on",
        [BS_VERDICT_FINISHED] = "finished",
        [BS_VERDICT_NOT_FOUND] = "not_found",
        [BS_VERDICT_STATE_CONFLICT] = "state_conflict",
    };

    if (!m || m->type != BS_JSON_STRING)
        return false;
    for (size_t i = BS_VERDICT_GO_ON; i < BS_COUNT(names); i++) {
        if (!bs_str_is(m->text, names[i]))
            continue;
        *ret = (enum bs_verdict)i;
        return true;
    }
    return false;
}

/* What is there must be readable: text or a number, or null for "not said". */
static bool read_said(const struct bs_json_member *m, struct bs_str *ret)
{
    *ret = words(m);
    return !m || m->type == BS_JSON_STRING || m->type == BS_JSON_NUMBER || m->type == BS_JSON_NULL;
}

struct bs_look bs_look_read(struct bs_arena *a, const struct bs_facts *f)
{
    struct bs_look l = { 0 };
    struct bs_json_object o;
    bool twice = false;

    if (f->wire != BS_WIRE_REPLIED || f->status != 200 || f->body_cut)
        return l;
    if (!read_object(a, f->body, &o) || !read_verdict(find(&o, "verdict", &twice), &l.verdict))
        return l;
    bool readable = read_said(find(&o, "status", &twice), &l.status);
    readable &= read_said(find(&o, "amount", &twice), &l.amount);
    readable &= read_said(find(&o, "currency", &twice), &l.currency);
    readable &= read_said(find(&o, "channel_trade_no", &twice), &l.channel_trade_no);
    l.valid = readable && !twice;
    return l;
}
