/* The shop at the other end: what it makes of each call, when, and whether the effect happens
 * although the reply is lost. In the queue MONEY it never de-duplicates and its look-up is exact.
 */
#include "sim.h"

#include <string.h>

static const char *const odd_bodies[] = {
    "",
    "<html><body>login</body></html>",
    "{\"outcome\":\"succes\"}",
    "{\"outcome\":1}",
    "[]",
    "\"success\"",
    "successful",
    "{\"code\":\"FAIL\"}",
    "\xff\xfe\xf0\x9f",
    "{\"outcome\":\"success\"",
    "null",
    "{\"outcome\":null,\"message\":\"\xf0\x9f\x8d\x9c\"}",
};

static bool is_money(const struct sim *w, uint32_t queue)
{
    return w->confs[queue].policy.effect == BS_EFFECT_MONEY;
}

uint32_t shop_effects(const struct sim *w, uint32_t tale)
{
    const struct row *r = &w->tales[tale].row;
    uint32_t n = 0;

    for (uint32_t i = 0; i < w->xs_n; i++) {
        const struct exchange *x = &w->xs[i];

        if (!x->is_look && x->effect_done &&
            strcmp(w->tales[x->tale].row.effect_key, r->effect_key) == 0 &&
            strcmp(w->tales[x->tale].row.biz_type, r->biz_type) == 0)
            n++;
    }
    return n;
}

/* ---- plans ---- */

static const enum sim_plan good_plans[] = { PLAN_POST_204, PLAN_POST_SUCCESS, PLAN_POST_RULE,
                                            PLAN_POST_FINISHED, PLAN_POST_SLOW };
static const enum sim_plan bad_plans[] = {
    PLAN_POST_RETRY,        PLAN_POST_RETRY_AFTER, PLAN_POST_MANUAL,
    PLAN_POST_UNKNOWN,      PLAN_POST_ODD,         PLAN_POST_500,
    PLAN_POST_503,          PLAN_POST_503_AFTER,   PLAN_POST_429_AFTER,
    PLAN_POST_409,          PLAN_POST_404,         PLAN_POST_422,
    PLAN_POST_302,          PLAN_POST_HANG,        PLAN_POST_SLOW,
    PLAN_POST_RESET_BEFORE, PLAN_POST_RESET_AFTER, PLAN_POST_REFUSED,
    PLAN_POST_DNS,          PLAN_POST_TLS,         PLAN_POST_CONNECT_TIMEOUT,
    PLAN_POST_BAD_HTTP,     PLAN_POST_HANG,        PLAN_POST_RESET_AFTER,
    PLAN_POST_503,          PLAN_POST_RETRY,
};

static enum ill ill_of(const struct sim *w, uint32_t queue, enum end end)
{
    const struct illness *i = &w->ills[queue][end];

    return sim_now(w).us < i->until.us ? i->what : ILL_NOTHING;
}

static enum sim_plan choose_post(struct sim *w, const struct exchange *x)
{
    static const enum sim_plan faulty[] = { PLAN_POST_302, PLAN_POST_TLS, PLAN_POST_404 };
    static const enum sim_plan away[] = { PLAN_POST_REFUSED, PLAN_POST_DNS,
                                          PLAN_POST_CONNECT_TIMEOUT };
    enum sim_plan p = good_plans[below(w, BS_COUNT(good_plans))];
    enum ill ill = ill_of(w, x->queue, END_HANDLER);

    /* Where a queue says what 404 means, it is no fault of the endpoint. */
    if (ill == ILL_FAULTS)
        return faulty[below(w, w->confs[x->queue].policy.statuses_n ? 2 : 3)];
    if (ill == ILL_AWAY)
        return away[below(w, BS_COUNT(away))];
    if (w->shop == SHOP_DOWN)
        return chance(w, 80) ? PLAN_POST_REFUSED : PLAN_POST_503;
    if (w->shop == SHOP_BAD || (w->shop == SHOP_NORMAL && chance(w, w->opt.fail_pct)))
        p = bad_plans[below(w, BS_COUNT(bad_plans))];
    if (p == PLAN_POST_RULE && !w->confs[x->queue].policy.success.status)
        p = PLAN_POST_SUCCESS;
    if (p == PLAN_POST_FINISHED && is_money(w, x->queue) && !shop_effects(w, x->tale))
        p = PLAN_POST_SUCCESS;
    return p;
}

static void say_body(struct exchange *x, const char *text)
{
    x->body_n = strlen(text);
    memcpy(x->body, text, x->body_n);
}

static void wish(struct sim *w, struct exchange *x)
{
    uint32_t most = chance(w, 10) ? 90 : 20;

    x->wish = (struct bs_retry_after){ .given = true, .delay = BS_SEC(1 + below(w, most)) };
}

static void reply_json(struct sim *w, struct exchange *x, const char *outcome, bool after)
{
    char text[256];

    if (after)
        (void)snprintf(text, sizeof(text),
                       "{\"outcome\":\"%s\",\"code\":\"SAID\",\"retry_after\":%u}", outcome,
                       1 + below(w, 15));
    else
        (void)snprintf(text, sizeof(text),
                       "{\"outcome\":\"%s\",\"code\":\"SAID\",\"message\":\"\xe7\x95\x8c\","
                       "\"effect\":\"one thing\"}",
                       outcome);
    x->status = 200;
    say_body(x, text);
}

static void reply_odd(struct sim *w, struct exchange *x)
{
    x->status = 200;
    x->long_body = chance(w, 10);
    if (!x->long_body)
        say_body(x, odd_bodies[below(w, BS_COUNT(odd_bodies))]);
}

static void reply_rule(struct sim *w, struct exchange *x)
{
    x->status = 200;
    if (w->confs[x->queue].policy.success.json_pointer.p)
        say_body(x, chance(w, 50) ? "{\"code\":0}" : "{\"code\" : \"SUCCESS\"}");
    else
        say_body(x, chance(w, 50) ? "success" : "\xef\xbb\xbfsuccess\r\n");
}

/* Status and body of the plans that end in a reply. */
static void fill_reply(struct sim *w, struct exchange *x)
{
    static const struct {
        enum sim_plan plan;
        int status;
    } plain[] = { { PLAN_POST_204, 204 },       { PLAN_POST_500, 500 },
                  { PLAN_POST_503, 503 },       { PLAN_POST_503_AFTER, 503 },
                  { PLAN_POST_429_AFTER, 429 }, { PLAN_POST_409, 409 },
                  { PLAN_POST_404, 404 },       { PLAN_POST_422, 422 },
                  { PLAN_POST_302, 302 } };

    for (size_t i = 0; i < BS_COUNT(plain); i++)
        if (plain[i].plan == x->plan)
            x->status = plain[i].status;
    if (x->status >= 400)
        say_body(x, "no");
    if (x->plan == PLAN_POST_500 && chance(w, 50))
        x->status = chance(w, 50) ? 502 : 504;
    if (x->plan == PLAN_POST_503_AFTER || x->plan == PLAN_POST_429_AFTER)
        wish(w, x);
    if (x->plan == PLAN_POST_SUCCESS || x->plan == PLAN_POST_SLOW)
        reply_json(w, x, "success", false);
    if (x->plan == PLAN_POST_FINISHED)
        reply_json(w, x, "finished", false);
    if (x->plan == PLAN_POST_RETRY || x->plan == PLAN_POST_RETRY_AFTER)
        reply_json(w, x, "retry", x->plan == PLAN_POST_RETRY_AFTER);
    if (x->plan == PLAN_POST_MANUAL)
        reply_json(w, x, "manual", false);
    if (x->plan == PLAN_POST_UNKNOWN)
        reply_json(w, x, "unknown", false);
    if (x->plan == PLAN_POST_ODD)
        reply_odd(w, x);
    if (x->plan == PLAN_POST_RULE)
        reply_rule(w, x);
}

static void fill_wire(struct exchange *x)
{
    static const struct {
        enum sim_plan plan;
        enum bs_wire wire;
    } wires[] = { { PLAN_POST_RESET_BEFORE, BS_WIRE_RESET },
                  { PLAN_POST_RESET_AFTER, BS_WIRE_RESET },
                  { PLAN_POST_REFUSED, BS_WIRE_CONNECT_REFUSED },
                  { PLAN_POST_DNS, BS_WIRE_DNS_TEMPORARY },
                  { PLAN_POST_CONNECT_TIMEOUT, BS_WIRE_CONNECT_TIMEOUT },
                  { PLAN_POST_TLS, BS_WIRE_TLS_EXPIRED },
                  { PLAN_LOOK_TLS, BS_WIRE_TLS_EXPIRED },
                  { PLAN_POST_BAD_HTTP, BS_WIRE_BAD_HTTP },
                  { PLAN_LOOK_REFUSED, BS_WIRE_CONNECT_REFUSED } };

    x->wire = BS_WIRE_REPLIED;
    for (size_t i = 0; i < BS_COUNT(wires); i++)
        if (wires[i].plan == x->plan)
            x->wire = wires[i].wire;
}

static bool nothing_leaves(enum sim_plan p)
{
    return p == PLAN_POST_REFUSED || p == PLAN_POST_DNS || p == PLAN_POST_CONNECT_TIMEOUT ||
           p == PLAN_POST_TLS || p == PLAN_LOOK_REFUSED || p == PLAN_LOOK_TLS;
}

/* How often the effect happens, in hundreds. */
static const uint8_t effect_pct[PLAN_COUNT] = {
    [PLAN_POST_204] = 100,     [PLAN_POST_SUCCESS] = 100,     [PLAN_POST_RULE] = 100,
    [PLAN_POST_SLOW] = 100,    [PLAN_POST_RESET_AFTER] = 100, [PLAN_POST_UNKNOWN] = 50,
    [PLAN_POST_ODD] = 50,      [PLAN_POST_500] = 50,          [PLAN_POST_HANG] = 50,
    [PLAN_POST_BAD_HTTP] = 50,
};

/* When each thing happens. The shop gives up at the call's deadline whoever still listens. */
static void fill_times(struct sim *w, struct exchange *x)
{
    const struct bs_queue_conf *q = &w->confs[x->queue];
    int64_t room_ms = bs_time_diff(x->deadline, x->start).us / 1000;
    int64_t connect_ms = below(w, 20);
    int64_t work_ms = 1 + below(w, 150);

    if (x->plan == PLAN_POST_SLOW)
        work_ms = room_ms * (50 + below(w, 45)) / 100;
    if (work_ms > room_ms - connect_ms - 3)
        work_ms = room_ms - connect_ms - 3;
    x->sent_at = bs_time_add(x->start, BS_MS(connect_ms));
    x->effect_at = bs_time_add(x->sent_at, BS_MS(work_ms));
    x->client_end = bs_time_add(x->effect_at, BS_MS(1));
    if (x->plan == PLAN_POST_HANG || x->plan == PLAN_LOOK_HANG)
        x->client_end = BS_NEVER;
    if (x->plan == PLAN_POST_CONNECT_TIMEOUT)
        x->client_end = bs_time_add(x->start, q->connect_timeout);
    if (nothing_leaves(x->plan))
        x->sent_at = x->effect_at = BS_NEVER;
    x->end = bs_time_min(x->client_end, x->deadline);
}

void shop_plan_post(struct sim *w, struct exchange *x)
{
    x->plan = choose_post(w, x);
    fill_wire(x);
    fill_reply(w, x);
    fill_times(w, x);
    if (!chance(w, effect_pct[x->plan]))
        x->effect_at = BS_NEVER;
    if (x->plan > PLAN_POST_FINISHED && x->plan != PLAN_POST_SLOW)
        fault_hit(w, FAULT_CALL);
}

/* ---- what it means ---- */

static enum truth truth_of_status(const struct sim *w, const struct exchange *x)
{
    const struct bs_policy *p = &w->confs[x->queue].policy;

    for (uint32_t i = 0; i < p->statuses_n; i++)
        if (p->statuses[i].status == x->status && p->statuses[i].cls == BS_STATUS_FAILED)
            return TRUTH_FAILED;
    if (x->status == 503 || x->status == 429)
        return x->wish.given ? TRUTH_NOT_PROCESSED : TRUTH_FAILED;
    if (x->status == 404 || x->status == 302)
        return TRUTH_NOT_PROCESSED;
    if (x->status == 409)
        return TRUTH_FAILED;
    return x->status == 422 ? TRUTH_MANUAL : TRUTH_UNKNOWN;
}

static enum truth truth_of(const struct sim *w, const struct exchange *x)
{
    static const enum truth truths[PLAN_COUNT] = {
        [PLAN_POST_204] = TRUTH_SUCCESS,         [PLAN_POST_SUCCESS] = TRUTH_SUCCESS,
        [PLAN_POST_RULE] = TRUTH_SUCCESS,        [PLAN_POST_SLOW] = TRUTH_SUCCESS,
        [PLAN_POST_FINISHED] = TRUTH_FINISHED,   [PLAN_POST_RETRY] = TRUTH_FAILED,
        [PLAN_POST_RETRY_AFTER] = TRUTH_FAILED,  [PLAN_POST_REFUSED] = TRUTH_FAILED,
        [PLAN_POST_DNS] = TRUTH_FAILED,          [PLAN_POST_CONNECT_TIMEOUT] = TRUTH_FAILED,
        [PLAN_POST_TLS] = TRUTH_NOT_PROCESSED,   [PLAN_POST_MANUAL] = TRUTH_MANUAL,
        [PLAN_POST_UNKNOWN] = TRUTH_UNKNOWN,     [PLAN_POST_ODD] = TRUTH_UNKNOWN,
        [PLAN_POST_HANG] = TRUTH_UNKNOWN,        [PLAN_POST_RESET_BEFORE] = TRUTH_UNKNOWN,
        [PLAN_POST_RESET_AFTER] = TRUTH_UNKNOWN, [PLAN_POST_BAD_HTTP] = TRUTH_UNKNOWN,
    };

    return truths[x->plan] != TRUTH_OPEN ? truths[x->plan] : truth_of_status(w, x);
}

/* The payload that arrives is the one that was submitted, byte for byte. */
static void judge_body(struct sim *w, const struct exchange *x, const struct bs_call *call)
{
    char want[160];
    const struct row *r = &w->tales[x->tale].row;

    (void)snprintf(
        want, sizeof(want),
        "\"payload\":{\"n\":%lld, \"f\":1.10,\"i\":12345678901234567890123,\"a\":1,\"a\":2}",
        (long long)r->amount);
    if (!memmem(call->body.p, call->body.n, want, strlen(want)))
        broken(w, "the payload of %s arrived changed: %.*s", r->request_id,
               (int)BS_MIN(call->body.n, 200), call->body.p ? call->body.p : "");
}

void shop_judge_post(struct sim *w, struct exchange *x, const struct bs_call *call)
{
    x->truth = truth_of(w, x);
    judge_body(w, x, call);
}

/* ---- look-ups ---- */

static enum sim_plan choose_look(struct sim *w, const struct exchange *x)
{
    static const enum sim_plan mute[] = { PLAN_LOOK_404,      PLAN_LOOK_500, PLAN_LOOK_HANG,
                                          PLAN_LOOK_REFUSED,  PLAN_LOOK_ODD, PLAN_LOOK_TLS,
                                          PLAN_LOOK_503_AFTER };
    static const enum sim_plan telling[] = { PLAN_LOOK_FINISHED, PLAN_LOOK_NOT_FOUND,
                                             PLAN_LOOK_NOT_FOUND, PLAN_LOOK_CONFLICT,
                                             PLAN_LOOK_AMOUNT };
    bool fails = w->shop != SHOP_HEALTHY && chance(w, w->opt.look_fail_pct);
    enum ill ill = ill_of(w, x->queue, END_LOOK);

    if (ill == ILL_FAULTS)
        return chance(w, 50) ? PLAN_LOOK_404 : PLAN_LOOK_TLS;
    if (ill == ILL_AWAY)
        return PLAN_LOOK_REFUSED;
    if (w->shop == SHOP_DOWN)
        return PLAN_LOOK_REFUSED;
    if (fails && chance(w, 60))
        return mute[below(w, BS_COUNT(mute))];
    if (is_money(w, x->queue))
        return PLAN_LOOK_EXACT;
    return fails ? telling[below(w, BS_COUNT(telling))] : PLAN_LOOK_GO_ON;
}

static void answer_look(struct sim *w, struct exchange *x)
{
    static const struct {
        enum sim_plan plan;
        const char *verdict;
        enum bs_verdict means;
    } says[] = { { PLAN_LOOK_GO_ON, "go_on", BS_VERDICT_GO_ON },
                 { PLAN_LOOK_FINISHED, "finished", BS_VERDICT_FINISHED },
                 { PLAN_LOOK_NOT_FOUND, "not_found", BS_VERDICT_NOT_FOUND },
                 { PLAN_LOOK_CONFLICT, "state_conflict", BS_VERDICT_STATE_CONFLICT },
                 { PLAN_LOOK_AMOUNT, "go_on", BS_VERDICT_GO_ON } };
    const char *verdict = shop_effects(w, x->tale) ? "finished" : "go_on";
    int64_t amount = w->tales[x->tale].row.amount + (x->plan == PLAN_LOOK_AMOUNT);

    x->verdict = verdict[0] == 'f' ? BS_VERDICT_FINISHED : BS_VERDICT_GO_ON;
    for (size_t i = 0; i < BS_COUNT(says); i++)
        if (says[i].plan == x->plan) {
            verdict = says[i].verdict;
            x->verdict = says[i].means;
        }
    x->clears = x->verdict != BS_VERDICT_NOT_FOUND;
    x->look_final = x->verdict != BS_VERDICT_GO_ON || x->plan == PLAN_LOOK_AMOUNT;
    (void)snprintf(x->body, sizeof(x->body),
                   "{\"verdict\":\"%s\",\"status\":\"S\",\"amount\":\"%lld\",\"currency\":\"CNY\"}",
                   verdict, (long long)amount);
    x->body_n = strlen(x->body);
}

static int status_of_look(enum sim_plan p)
{
    if (p == PLAN_LOOK_404)
        return 404;
    if (p == PLAN_LOOK_500)
        return 500;
    return p == PLAN_LOOK_503_AFTER ? 503 : 200;
}

void shop_plan_look(struct sim *w, struct exchange *x)
{
    x->plan = choose_look(w, x);
    x->status = status_of_look(x->plan);
    if (x->plan == PLAN_LOOK_503_AFTER)
        wish(w, x);
    x->look_final = true; /* until a verdict says otherwise */
    if (x->plan == PLAN_LOOK_ODD)
        say_body(x, chance(w, 50) ? "{\"verdict\":\"maybe\"}" : "{\"state\":\"PAID\"}");
    fill_wire(x);
    fill_times(w, x);
    if (x->plan != PLAN_LOOK_EXACT && x->plan != PLAN_LOOK_GO_ON)
        fault_hit(w, FAULT_LOOK);
}

/* ---- time at the shop ---- */

static bool over(const struct exchange *x, struct bs_time now)
{
    return !x->call && x->end.us <= now.us && (x->effect_done || x->effect_at.us == BS_NEVER.us);
}

static void happen(struct sim *w, struct exchange *x)
{
    x->effect_done = true;
    if (x->is_look) {
        if (x->status == 200 && x->plan != PLAN_LOOK_ODD)
            answer_look(w, x);
        return;
    }
    say(w, "effect of %s fence=%lld", w->tales[x->tale].row.request_id, (long long)x->fence);
    if (is_money(w, x->queue) && shop_effects(w, x->tale) > 1)
        broken(w, "%s has its effect a second time, though the look-up is exact",
               w->tales[x->tale].row.request_id);
}

static struct exchange *next_effect(const struct sim *w)
{
    struct exchange *best = NULL;

    for (uint32_t i = w->xs_live; i < w->xs_n; i++) {
        struct exchange *x = &w->xs[i];

        if (!x->effect_done && x->effect_at.us != BS_NEVER.us &&
            (!best || x->effect_at.us < best->effect_at.us))
            best = x;
    }
    return best;
}

struct bs_time shop_next(const struct sim *w)
{
    struct exchange *x = next_effect(w);

    return x ? x->effect_at : BS_NEVER;
}

void shop_run(struct sim *w, struct bs_time until)
{
    for (struct exchange *x = next_effect(w); x && x->effect_at.us <= until.us; x = next_effect(w))
        happen(w, x);
    while (w->xs_live < w->xs_n && over(&w->xs[w->xs_live], until))
        w->xs_live++;
    if (!w->quiet && w->shop != SHOP_NORMAL && w->shop_until.us <= until.us) {
        w->shop = SHOP_NORMAL;
        say(w, "the shop is as usual");
    }
}
