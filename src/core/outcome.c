/* The outcome table for a call to the handler: facts in, one row out. Recording it
 * can never fail because of its content, so all text is cleaned and cut here. */
#include "core/outcome.h"

#include "base/plant.h"
#include "base/text.h"
#include "core/outcome_text.h"

#define NAME_OF_WIRE(name, code) [BS_WIRE_##name] = (code),
static const char *const wire_codes[BS_WIRE_COUNT] = { BS_WIRE_LIST(NAME_OF_WIRE) };

static const char *const wire_words[BS_WIRE_COUNT] = {
    [BS_WIRE_REPLIED] = "replied",
    [BS_WIRE_DNS_NXDOMAIN] = "the host name does not exist",
    [BS_WIRE_DNS_TEMPORARY] = "the host name could not be resolved now",
    [BS_WIRE_CONNECT_REFUSED] = "connection refused",
    [BS_WIRE_CONNECT_TIMEOUT] = "no connection within the limit",
    [BS_WIRE_CONNECT_FAILED] = "no connection",
    [BS_WIRE_TLS_HANDSHAKE] = "the TLS handshake failed",
    [BS_WIRE_TLS_EXPIRED] = "the server's certificate is expired or not yet valid",
    [BS_WIRE_TLS_NAME] = "the server's certificate is for another name",
    [BS_WIRE_TLS_UNKNOWN_ISSUER] = "the server's certificate is from an unknown issuer",
    [BS_WIRE_TIMEOUT] = "no reply within the limit",
    [BS_WIRE_RESET] = "the connection ended before the reply",
    [BS_WIRE_BAD_HTTP] = "the reply is not HTTP",
    [BS_WIRE_CANCELLED] = "the call was cancelled",
    [BS_WIRE_INTERNAL] = "the call could not be made here",
};

static const char *const outcome_names[BS_OUTCOME_COUNT] = {
    [BS_OUT_SUCCESS] = "success",     [BS_OUT_FINISHED] = "finished",
    [BS_OUT_FAILED] = "failed",       [BS_OUT_UNKNOWN] = "unknown",
    [BS_OUT_MANUAL] = "manual",       [BS_OUT_NOT_PROCESSED] = "not_processed",
    [BS_OUT_NOT_FOUND] = "not_found", [BS_OUT_UNSENT] = "released_unsent",
    [BS_OUT_SENT] = "released_sent",
};

const char *bs_wire_code(enum bs_wire w)
{
    BS_ASSERT((uint32_t)w < BS_WIRE_COUNT);
    return wire_codes[w];
}

const char *bs_outcome_name(enum bs_outcome_kind k)
{
    BS_ASSERT((uint32_t)k < BS_OUTCOME_COUNT);
    return outcome_names[k];
}

/* The slice, or nothing at all where the arena had no room: text may be lost, the class never. */
static struct bs_str kept(struct bs_str s)
{
    return s.p ? s : BS_STR_NONE;
}

struct bs_str bs_outcome_text(struct bs_arena *a, struct bs_str raw, size_t max)
{
    return raw.n ? kept(bs_text_clean(a, raw, max)) : BS_STR_NONE;
}

struct bs_str bs_outcome_code(struct bs_arena *a, const char *prefix, const char *code)
{
    return kept(bs_arena_fmt(a, "%s%s", prefix, code));
}

struct bs_str bs_outcome_http_code(struct bs_arena *a, const char *prefix, int status)
{
    return kept(bs_arena_fmt(a, "%sHTTP_%d", prefix, status));
}

struct bs_str bs_wire_message(struct bs_arena *a, const struct bs_facts *f)
{
    size_t n = strnlen(f->detail, sizeof(f->detail));

    BS_ASSERT((uint32_t)f->wire < BS_WIRE_COUNT);
    struct bs_str whole =
        bs_arena_fmt(a, "%s%s%.*s", wire_words[f->wire], n ? ": " : "", (int)n, f->detail);
    return bs_outcome_text(a, whole, BS_MESSAGE_MAX);
}

struct bs_str bs_status_message(struct bs_arena *a, const struct bs_facts *f)
{
    const struct bs_retry_after *wait = &f->retry_after;
    struct bs_str whole;

    if (f->status >= 300 && f->status < 400) {
        struct bs_str to = bs_outcome_text(a, f->location, BS_MESSAGE_MAX - 64);

        whole = bs_arena_fmt(a, "HTTP %d to Location %.*s; redirects are never followed", f->status,
                             BS_STR_FMT(to.n ? to : BS_STR("(none)")));
    } else if (wait->given) {
        whole = bs_arena_fmt(a, "HTTP %d, Retry-After %lld s%s", f->status,
                             (long long)(wait->delay.us / 1000000),
                             wait->clamped ? " (more was asked, clamped to 6 h)" : "");
    } else {
        whole = bs_arena_fmt(a, "HTTP %d", f->status);
    }
    return bs_outcome_text(a, whole, BS_MESSAGE_MAX);
}

/* ---- no reply: what counts is whether a byte of the request may have left */

static enum bs_outcome_kind kind_of_wire(const struct bs_facts *f, bool *ret_endpoint_fault)
{
    bool wrong_certificate = f->wire == BS_WIRE_TLS_EXPIRED || f->wire == BS_WIRE_TLS_NAME ||
                             f->wire == BS_WIRE_TLS_UNKNOWN_ISSUER;

    if (f->wire == BS_WIRE_CANCELLED)
        return f->sent ? BS_OUT_SENT : BS_OUT_UNSENT;
    if (f->sent)
        return BS_PLANT(UNKNOWN_IS_FAILED) ? BS_OUT_FAILED : BS_OUT_UNKNOWN;
    *ret_endpoint_fault = wrong_certificate;
    return wrong_certificate ? BS_OUT_NOT_PROCESSED : BS_OUT_FAILED;
}

static void judge_wire(const struct bs_facts *f, struct bs_arena *a, struct bs_outcome *o)
{
    o->kind = kind_of_wire(f, &o->endpoint_fault);
    o->code = bs_outcome_code(a, "", bs_wire_code(f->wire));
    o->message = bs_wire_message(a, f);
}

/* ---- the handler's own words */

static struct bs_str code_or(struct bs_arena *a, struct bs_str given, const char *otherwise)
{
    struct bs_str code = bs_outcome_text(a, given, BS_CODE_MAX);

    return code.n ? code : bs_str_of(otherwise);
}

static void judge_says(const struct bs_reply *r, struct bs_arena *a, struct bs_outcome *o)
{
    static const struct {
        enum bs_outcome_kind kind;
        const char *code;
    } rows[] = {
        [BS_SAYS_SUCCESS] = { BS_OUT_SUCCESS, NULL },
        [BS_SAYS_FINISHED] = { BS_OUT_FINISHED, "ORDER_ALREADY_FINISHED" },
        [BS_SAYS_RETRY] = { BS_OUT_FAILED, "HANDLER_RETRY" },
        [BS_SAYS_MANUAL] = { BS_OUT_MANUAL, "HANDLER_MANUAL" },
        [BS_SAYS_UNKNOWN] = { BS_OUT_UNKNOWN, "HANDLER_UNKNOWN" },
    };

    BS_ASSERT((uint32_t)r->says < BS_COUNT(rows));
    o->kind = rows[r->says].kind;
    o->code = code_or(a, r->code, rows[r->says].code);
    o->message = bs_outcome_text(a, r->message, BS_MESSAGE_MAX);
    o->effect = bs_outcome_text(a, r->effect, BS_EFFECT_TEXT_MAX);
    if (r->has_retry_after && r->retry_after.us >= 0) {
        o->has_wish = true;
        o->wish_may_shorten = true;
        o->wish = r->retry_after;
    }
}

/* ---- the declared rule and the status */

static struct bs_str trim_reply(struct bs_str body)
{
    struct bs_str mark = BS_STR("\xEF\xBB\xBF");

    body = bs_str_trim(body);
    if (!bs_str_starts(body, mark))
        return body;
    return bs_str_trim((struct bs_str){ body.p + mark.n, body.n - mark.n });
}

static bool declared_rule_holds(const struct bs_success_rule *rule, const struct bs_facts *f,
                                const struct bs_reply *r)
{
    if (rule->status == 0 || f->status != rule->status)
        return false;
    if (rule->body.p && (f->body_cut || !bs_str_eq(trim_reply(f->body), trim_reply(rule->body))))
        return false;
    return !rule->json_pointer.p || r->json_rule_holds;
}

static enum bs_status_class default_class(const struct bs_facts *f)
{
    int s = f->status;

    if (s < 300 || s > 599)
        return BS_STATUS_UNKNOWN;
    if (s < 400)
        return BS_STATUS_ENDPOINT_FAULT;
    if (s == 401 || s == 403 || s == 404 || s == 405 || s == 407)
        return BS_STATUS_ENDPOINT_FAULT;
    if (s == 408 || s == 409 || s == 423 || s == 425)
        return BS_STATUS_FAILED;
    if (s == 429 || s == 503)
        return f->retry_after.given ? BS_STATUS_NOT_PROCESSED : BS_STATUS_FAILED;
    return s < 500 ? BS_STATUS_MANUAL : BS_STATUS_UNKNOWN;
}

/* The row that the queue moved this status to; DEFAULT: it did not. */
static enum bs_status_class moved_class(const struct bs_policy *p, int status)
{
    for (uint32_t i = 0; i < p->statuses_n; i++) {
        if (p->statuses[i].status == status)
            return p->statuses[i].cls;
    }
    return BS_STATUS_DEFAULT;
}

static void judge_status(enum bs_status_class cls, const struct bs_facts *f, struct bs_arena *a,
                         struct bs_outcome *o)
{
    static const enum bs_outcome_kind kinds[] = {
        [BS_STATUS_DEFAULT] = BS_OUT_UNKNOWN,
        [BS_STATUS_FAILED] = BS_OUT_FAILED,
        [BS_STATUS_UNKNOWN] = BS_OUT_UNKNOWN,
        [BS_STATUS_MANUAL] = BS_OUT_MANUAL,
        [BS_STATUS_NOT_PROCESSED] = BS_OUT_NOT_PROCESSED,
        [BS_STATUS_ENDPOINT_FAULT] = BS_OUT_NOT_PROCESSED,
    };
    bool odd = f->status < 300 || f->status > 599;

    BS_ASSERT((uint32_t)cls < BS_COUNT(kinds));
    o->kind = kinds[cls];
    o->endpoint_fault = cls == BS_STATUS_ENDPOINT_FAULT;
    o->code = odd ? BS_STR("BAD_REPLY") : bs_outcome_http_code(a, "", f->status);
    o->message =
        odd ? bs_outcome_text(a,
                              bs_arena_fmt(a, "HTTP %d, but no success rule accepts the reply%s",
                                           f->status, f->body.n ? "" : " (empty)"),
                              BS_MESSAGE_MAX)
            : bs_status_message(a, f);
    o->has_wish = f->retry_after.given;
    o->wish = f->retry_after.delay;
}

/* Success by the queue's own rule, or by the one rule that every queue has; a queue may take the
 * latter away. */
static bool is_success(const struct bs_policy *p, enum bs_status_class moved,
                       const struct bs_facts *f, const struct bs_reply *r)
{
    return declared_rule_holds(&p->success, f, r) ||
           (f->status == 204 && moved == BS_STATUS_DEFAULT);
}

static void judge_reply(const struct bs_policy *p, const struct bs_facts *f,
                        const struct bs_reply *r, struct bs_arena *a, struct bs_outcome *o)
{
    enum bs_status_class moved = moved_class(p, f->status);

    o->http_status = f->status;
    o->excerpt = bs_outcome_text(a, f->body, BS_EXCERPT_MAX);
    if (f->status >= 200 && f->status < 300 && r->valid)
        judge_says(r, a, o);
    else if (is_success(p, moved, f, r))
        o->kind = BS_OUT_SUCCESS;
    else
        judge_status(moved != BS_STATUS_DEFAULT ? moved : default_class(f), f, a, o);
}

static enum bs_reach reach_of(const struct bs_facts *f, bool endpoint_fault)
{
    if (f->wire == BS_WIRE_CANCELLED || f->wire == BS_WIRE_INTERNAL)
        return BS_REACH_UNTOLD;
    if (endpoint_fault)
        return BS_REACH_FAULT;
    return f->wire != BS_WIRE_REPLIED && !f->sent ? BS_REACH_REFUSED : BS_REACH_WELL;
}

enum bs_reach bs_reach_of_look(const struct bs_facts *f)
{
    bool fault = false;

    if (f->wire == BS_WIRE_REPLIED)
        fault = default_class(f) == BS_STATUS_ENDPOINT_FAULT;
    else
        (void)kind_of_wire(f, &fault);
    return reach_of(f, fault);
}

struct bs_outcome bs_classify_call(const struct bs_policy *p, const struct bs_facts *f,
                                   const struct bs_reply *r, struct bs_arena *a)
{
    static const struct bs_reply nothing_read = { 0 };
    struct bs_outcome o = { .started_at = f->started_at, .ended_at = f->ended_at };

    BS_ASSERT((uint32_t)f->wire < BS_WIRE_COUNT);
    if (f->wire == BS_WIRE_REPLIED)
        judge_reply(p, f, r ? r : &nothing_read, a, &o);
    else
        judge_wire(f, a, &o);
    o.reach = reach_of(f, o.endpoint_fault);
    return o;
}
