/* Receivers: one POST at a time each, with all that is due for it; its result is recorded before
 * the next. What fails is tried again on a ladder for three days. */
#include "alert/parts.h"

#include "base/rng.h"
#include "base/text.h"
#include "sys/crypto.h"
#include "sys/log.h"

#include <stdlib.h>

static const struct bs_span ladder[] = { { 5000000 },  { 15000000 },  { 30000000 },
                                         { 60000000 }, { 180000000 }, { 600000000 } };
static const struct bs_span give_up_after = { INT64_C(3) * 86400 * 1000000 };

struct bs_time bs_hook_next(struct bs_alerts *a, int64_t attempts, struct bs_time now)
{
    struct bs_rng rng = { a->seed };
    size_t i = (size_t)BS_MIN(BS_MAX(attempts, (int64_t)1), (int64_t)BS_COUNT(ladder)) - 1;
    int64_t us = ladder[i].us;

    a->seed = bs_rng_next(&rng);
    /* Up to a tenth more, so that many nodes do not come at once. */
    return bs_time_add(now, BS_US(us + (int64_t)(a->seed % (uint64_t)(us / 10))));
}

/* ---- who there is ---- */

static struct bs_hook *hook_of(struct bs_alerts *a, struct bs_str name)
{
    struct bs_hook **at = &a->hooks;

    while (*at && !bs_str_is(name, (*at)->name))
        at = &(*at)->next;
    if (*at)
        return *at;
    struct bs_hook *h = calloc(1, sizeof(*h));
    if (!h)
        return NULL;
    h->name = strndup(name.p, name.n);
    if (!h->name) {
        free(h);
        return NULL;
    }
    h->batch_max = BS_ALERT_BATCH_MAX;
    *at = h;
    return h;
}

void bs_hooks_sync(struct bs_alerts *a)
{
    const struct bs_alert_conf *c = bs_alerts_conf(a);

    for (struct bs_hook *h = a->hooks; h; h = h->next)
        h->conf = NULL;
    for (uint32_t i = 0; i < c->webhooks_n; i++) {
        struct bs_hook *h = hook_of(a, c->webhooks[i].name);

        if (h)
            h->conf = &c->webhooks[i];
    }
}

/* ---- sending ---- */

/* What waits for longer than anything does was put off by a clock that was wrong. */
static bool is_due(struct bs_time next_at, struct bs_time now)
{
    return !bs_time_before(now, next_at) || bs_time_diff(next_at, now).us > bs_time_high_trusted.us;
}

static bool some_is_due(const struct bs_delivery_due *due, uint32_t n, struct bs_time now)
{
    for (uint32_t i = 0; i < n; i++)
        if (is_due(due[i].next_at, now))
            return true;
    return false;
}

static void keep_items(struct bs_hook *h, const struct bs_delivery_due *due, uint32_t n,
                       struct bs_alert_said *said)
{
    h->items_n = n;
    for (uint32_t i = 0; i < n; i++) {
        said[i] = (struct bs_alert_said){ &due[i].alert, due[i].phase };
        h->items[i] = (struct bs_alert_item){ due[i].alert.id, due[i].phase, due[i].attempts,
                                              due[i].created_at };
    }
}

/* The same set is the same message, however often it is sent. */
static struct bs_str message_id(struct bs_hook *h)
{
    BS_CLEANUP(bs_buf_free) struct bs_buf keys = { .max = 8192 };
    BS_CLEANUP(bs_buf_free) struct bs_buf hex = { .max = 65 };

    bs_buf_addz(&keys, h->name);
    for (uint32_t i = 0; i < h->items_n; i++)
        bs_buf_fmt(&keys, " %lld.%d", (long long)h->items[i].alert_id, (int)h->items[i].phase);
    struct bs_sha256 hash = bs_sha256_of(bs_buf_str(&keys));
    bs_hex_write(&hex, (struct bs_str){ (const char *)hash.b, 16 });
    h->post.arena.failed |= keys.failed || hex.failed;
    return bs_arena_fmt(&h->post.arena, "alert-%s", bs_buf_str(&hex).p);
}

static bs_rc send_due(struct bs_alerts *a, struct bs_hook *h, struct bs_time now,
                      struct bs_err *err)
{
    struct bs_alert_said said[BS_ALERT_BATCH_MAX];
    struct bs_delivery_due *due = NULL;
    uint32_t n = 0;

    bs_alert_post_free(&h->post);
    h->post.body.max = BS_ALERT_BODY_MAX;
    BS_TRY(bs_store_deliveries_due(a->o.reader, bs_str_of(h->name), now, h->batch_max,
                                   &h->post.arena, &due, &n, err));
    if (!some_is_due(due, n, now))
        return BS_OK;
    keep_items(h, due, n, said);
    if (bs_alert_body(&h->post.body, a->o.node, said, n) != BS_OK) {
        h->batch_max = BS_MAX(n / 2, 1u);
        return BS_OK;
    }
    h->state = BS_HOOK_CALLING;
    if (!bs_alert_post_start(a, &h->post, h->conf, message_id(h), now))
        h->state = BS_HOOK_IDLE;
    return BS_OK;
}

void bs_hooks_send(struct bs_alerts *a, struct bs_time now)
{
    struct bs_err err = { 0 };

    for (struct bs_hook *h = a->hooks; h; h = h->next) {
        if (!h->conf || h->state != BS_HOOK_IDLE)
            continue;
        bs_rc rc = send_due(a, h, now, &err);
        bs_alerts_readable(a, rc, &err);
        if (rc != BS_OK)
            return;
    }
}

/* ---- results ---- */

static void log_result(struct bs_hook *h, const struct bs_alert_result *r)
{
    bool failed = r->state != BS_DELIVERY_SENT;

    if (failed && !h->failing)
        bs_log(BS_LOG_WARN, "alert.not_delivered", BS_FZ("receiver", h->name),
               BS_FN("alerts", h->items_n), BS_F("code", r->code), BS_F("message", r->message));
    if (!failed && h->failing)
        bs_log(BS_LOG_INFO, "alert.delivered_again", BS_FZ("receiver", h->name));
    h->failing = failed;
}

static void count_result(struct bs_alerts *a, enum bs_delivery_state s)
{
    if (s == BS_DELIVERY_SENT)
        atomic_fetch_add(&a->figures.sent, 1);
    else if (s == BS_DELIVERY_GIVEN_UP)
        atomic_fetch_add(&a->figures.given_up, 1);
    else
        atomic_fetch_add(&a->figures.failed, 1);
}

static void fill_told(struct bs_alerts *a, struct bs_hook *h, const struct bs_alert_result *r,
                      struct bs_time now)
{
    int64_t most = 0;

    for (uint32_t i = 0; i < h->items_n; i++)
        most = BS_MAX(most, h->items[i].attempts + 1);
    struct bs_time next = bs_hook_next(a, most, now);
    for (uint32_t i = 0; i < h->items_n; i++) {
        const struct bs_alert_item *it = &h->items[i];
        struct bs_delivery *d = &h->told[i];

        *d = (struct bs_delivery){ .alert_id = it->alert_id,
                                   .phase = it->phase,
                                   .deliverer = bs_str_of(h->name),
                                   .state = r->state,
                                   .attempts = it->attempts + 1,
                                   .next_at = next,
                                   .code = r->code,
                                   .message = r->message };
        if (r->state == BS_DELIVERY_SENT)
            d->sent_at = now;
        else if (bs_time_diff(now, it->created_at).us >= give_up_after.us)
            d->state = BS_DELIVERY_GIVEN_UP;
        count_result(a, d->state);
    }
}

void bs_hooks_ended(struct bs_alerts *a, struct bs_time now)
{
    for (struct bs_hook *h = a->hooks; h; h = h->next) {
        if (!h->post.ended)
            continue;
        h->post.ended = false;
        struct bs_alert_result r = bs_alert_post_result(&h->post);
        if (r.state == BS_DELIVERY_SENT)
            h->batch_max = BS_ALERT_BATCH_MAX;
        else if (r.smaller)
            h->batch_max = BS_MAX(h->items_n / 2, 1u);
        log_result(h, &r);
        fill_told(a, h, &r, now);
        h->state = BS_HOOK_TELLING;
    }
}

/* Kept until the store has taken it: nobody is told twice for want of a write. */
void bs_hooks_tell(struct bs_alerts *a, struct bs_time now)
{
    for (struct bs_hook *h = a->hooks; h; h = h->next) {
        struct bs_op *op =
            h->state == BS_HOOK_TELLING ? bs_alerts_op(a, BS_OP_ALERT_TOLD, now) : NULL;
        if (op)
            op->alert_told = (struct bs_op_alert_told){ h->told, h->items_n };
    }
}

void bs_hooks_told(struct bs_alerts *a)
{
    for (struct bs_hook *h = a->hooks; h; h = h->next)
        for (uint32_t i = 0; i < a->ops_n; i++)
            if (a->ops[i].kind == BS_OP_ALERT_TOLD && a->ops[i].alert_told.items == h->told)
                h->state = BS_HOOK_IDLE;
}

void bs_hooks_free(struct bs_alerts *a)
{
    while (a->hooks) {
        struct bs_hook *next = a->hooks->next;

        bs_alert_post_free(&a->hooks->post);
        bs_alert_post_free(&a->hooks->direct);
        free(a->hooks->name);
        free(a->hooks);
        a->hooks = next;
    }
}
