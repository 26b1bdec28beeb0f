/* What a handler or a look-up answered: a byte for the status, one for the rules, a line with the
 * JSON pointer, a line with the value, and the body. The judgement is compared with what another
 * JSON library makes of the same bytes. */
#include "engine/reply.h"
#include "fuzz_outcome.h"
#include "json/read.h"

#include <jansson.h>

static const int statuses[] = { 200, 200, 200, 201, 204, 299, 302, 400, 404,
                                408, 409, 422, 429, 500, 503, 599, 100, 999 };

struct reading {
    struct bs_arena a;
    struct bs_facts facts;
    struct bs_str value;
    struct bs_policy policy;
};

/* The other library refuses more than we do; what it takes, both must read alike. It takes a NUL
 * byte behind the document for its end: such bytes are left to us. */
static json_t *read_other(struct bs_str s)
{
    if (s.n == 0 || memchr(s.p, 0, s.n))
        return NULL;
    return json_loadb(s.p, s.n, JSON_DECODE_ANY | JSON_ALLOW_NUL | JSON_REJECT_DUPLICATES, NULL);
}

static bool is_text(const json_t *v, struct bs_str s)
{
    return json_is_string(v) &&
           bs_str_eq((struct bs_str){ json_string_value(v), json_string_length(v) }, s);
}

/* ---- the pointer, by the other library */

static size_t unescape(char *to, struct bs_str token)
{
    size_t n = 0;

    for (size_t i = 0; i < token.n; i++) {
        to[n] = token.p[i];
        if (token.p[i] == '~' && i + 1 < token.n &&
            (token.p[i + 1] == '0' || token.p[i + 1] == '1'))
            to[n] = token.p[++i] == '0' ? '~' : '/';
        n++;
    }
    return n;
}

static json_t *child(json_t *at, struct bs_str token)
{
    char name[8192];
    int64_t i = 0;

    if (token.n >= sizeof(name))
        return NULL;
    size_t n = unescape(name, token);
    if (json_is_object(at))
        return json_object_getn(at, name, n);
    bool whole = bs_i64_parse(token, &i) && i >= 0 && (token.n == 1 || token.p[0] != '0') &&
                 token.p[0] != '-';
    return json_is_array(at) && whole ? json_array_get(at, (size_t)i) : NULL;
}

static json_t *point(json_t *at, struct bs_str pointer)
{
    if (pointer.n)
        (void)bs_str_cut(&pointer, '/');
    else
        pointer.p = NULL;
    while (at && pointer.p)
        at = child(at, bs_str_cut(&pointer, '/'));
    return at;
}

static void check_rule(const struct reading *r, const struct bs_reply *got, json_t *body)
{
    const struct bs_success_rule *rule = &r->policy.success;
    json_t *wanted = read_other(r->value);

    if (body && wanted && rule->json_pointer.p && r->facts.status == rule->status) {
        json_t *at = point(body, rule->json_pointer);

        if (!at || json_is_string(at) || json_is_boolean(at) || json_is_null(at))
            BS_ASSERT(got->json_rule_holds == (at && json_equal(at, wanted)));
        else if (json_typeof(at) != json_typeof(wanted))
            BS_ASSERT(!got->json_rule_holds);
    }
    json_decref(wanted);
}

/* ---- the handler's words */

static void check_says(const struct bs_reply *got, json_t *body)
{
    static const char *const names[] = { "success", "finished", "retry", "manual", "unknown" };
    const json_t *outcome = json_object_get(body, "outcome");
    size_t i = 0;

    if (!body)
        return;
    while (i < BS_COUNT(names) && !is_text(outcome, bs_str_of(names[i])))
        i++;
    BS_ASSERT(got->valid == (i < BS_COUNT(names)));
    BS_ASSERT(!got->valid || (size_t)got->says == i);
    BS_ASSERT(!got->has_retry_after || got->retry_after.us >= 0);
}

/* What is told twice is not told at all. */
static void check_once(struct reading *r, const struct bs_reply *got)
{
    static const char *const names[] = { "outcome", "code", "message", "effect", "retry_after" };
    struct bs_json_object o;
    uint32_t seen[BS_COUNT(names)] = { 0 };

    if (!got->valid)
        return;
    bs_rc rc = bs_json_read_object(&r->a, r->facts.body, 10000, &o, NULL);
    BS_ASSERT(rc == BS_OK);
    for (uint32_t i = 0; i < o.n; i++)
        for (size_t k = 0; k < BS_COUNT(names); k++)
            seen[k] += bs_str_is(o.members[i].name, names[k]);
    BS_ASSERT(seen[0] == 1);
    for (size_t k = 1; k < BS_COUNT(names); k++)
        BS_ASSERT(seen[k] <= 1);
}

static bool success_is_said(const struct reading *r, const struct bs_reply *got)
{
    bool good = r->facts.status >= 200 && r->facts.status < 300;

    if (good && got->valid)
        return got->says == BS_SAYS_SUCCESS;
    return r->facts.status == 204 || r->facts.status == r->policy.success.status;
}

static void check_call(struct reading *r, json_t *body)
{
    struct bs_reply got = bs_reply_read(&r->a, &r->facts, &r->policy.success);
    struct bs_outcome o = bs_classify_call(&r->policy, &r->facts, &got, &r->a);

    if (!r->facts.body_cut) {
        check_rule(r, &got, body);
        if (r->facts.status >= 200 && r->facts.status < 300)
            check_says(&got, body);
    }
    check_once(r, &got);
    BS_ASSERT(!r->facts.body_cut || (!got.valid && !got.json_rule_holds));
    BS_ASSERT(o.kind != BS_OUT_SUCCESS || success_is_said(r, &got));
    fuzz_check_outcome(&o, &r->policy);
}

/* ---- the look-up's */

static void check_look(struct reading *r, json_t *body)
{
    struct bs_task t = fuzz_task();
    struct bs_look got = bs_look_read(&r->a, &r->facts);
    struct bs_outcome o = { 0 };
    bool go_on = bs_classify_look(&t, &r->facts, &got, &r->a, &o);
    const json_t *verdict = json_object_get(body, "verdict");

    BS_ASSERT(!got.valid || (r->facts.status == 200 && !r->facts.body_cut));
    if (go_on) {
        BS_ASSERT(got.valid && got.verdict == BS_VERDICT_GO_ON);
        BS_ASSERT(!body || is_text(verdict, BS_STR("go_on")));
        BS_ASSERT(!got.channel_trade_no.n || bs_str_eq(got.channel_trade_no, t.channel_trade_no));
        return;
    }
    BS_ASSERT(o.kind != BS_OUT_FINISHED || !body || is_text(verdict, BS_STR("finished")));
    BS_ASSERT(o.kind != BS_OUT_SUCCESS);
    fuzz_check_outcome(&o, &r->policy);
}

static void set_rules(struct reading *r, uint8_t rules, struct bs_str pointer)
{
    static const struct bs_status_override moved[] = { { 404, BS_STATUS_FAILED },
                                                       { 302, BS_STATUS_MANUAL },
                                                       { 500, BS_STATUS_NOT_PROCESSED } };

    r->policy = bs_policy_default;
    if (rules & 2)
        r->policy.success = (struct bs_success_rule){ .status = 200, .body = r->value };
    if (rules & 4)
        r->policy.success = (struct bs_success_rule){
            .status = 200, .json_pointer = pointer, .values = &r->value, .values_n = 1
        };
    if (rules & 8) {
        r->policy.statuses = moved;
        r->policy.statuses_n = BS_COUNT(moved);
    }
    r->facts.body_cut = (rules & 48) == 48;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct reading r = { .facts = { .wire = BS_WIRE_REPLIED, .sent = true } };

    if (n < 2)
        return 0;
    struct bs_str rest = fuzz_input(data + 2, n - 2), pointer = bs_str_cut(&rest, '\n');
    r.value = bs_str_trim(bs_str_cut(&rest, '\n'));
    if ((pointer.n && pointer.p[0] != '/') || !bs_utf8_valid(pointer) || !rest.p ||
        bs_json_valid(r.value, NULL) != BS_OK)
        return 0;
    r.facts.status = statuses[data[0] % BS_COUNT(statuses)];
    r.facts.body = rest;
    set_rules(&r, data[1], pointer);
    json_t *body = read_other(rest);
    if (data[1] & 1)
        check_look(&r, body);
    else
        check_call(&r, body);
    json_decref(body);
    bs_arena_free(&r.a);
    return 0;
}
