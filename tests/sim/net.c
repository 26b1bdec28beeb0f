/* The pretended network: the same table of functions as libcurl's, with the shop behind it. Bytes
 * out, facts in; when what arrives is the shop's matter (shop.c). */
#include "sim.h"

#include <string.h>

static struct sim *sim_of(struct bs_caller *c)
{
    return BS_CONTAINER(c, struct net, base)->sim;
}

static struct exchange *exchange_of(struct bs_call *call)
{
    return (struct exchange *)call->impl;
}

static struct bs_str header_of(const struct bs_call *call, const char *name)
{
    size_t n = strlen(name);

    for (uint32_t i = 0; i < call->headers_n; i++) {
        struct bs_str line = bs_str_of(call->headers[i]);

        if (line.n > n && line.p[n] == ':' &&
            bs_str_eq_nocase((struct bs_str){ line.p, n }, bs_str_of(name)))
            return bs_str_trim((struct bs_str){ line.p + n + 1, line.n - n - 1 });
    }
    return BS_STR_NONE;
}

/* Which queue an address belongs to: the path's second part. */
static uint32_t queue_of_url(struct sim *w, const char *url, struct bs_str *ret_rest)
{
    struct bs_str rest = bs_str_of(url);

    for (int i = 0; i < 4; i++)
        (void)bs_str_cut(&rest, '/');
    struct bs_str name = bs_str_cut(&rest, '/');

    *ret_rest = rest;
    for (uint32_t i = 0; i < SIM_QUEUES; i++)
        if (bs_str_eq(w->confs[i].biz_type, name))
            return i;
    return SIM_QUEUES;
}

static bool recognise_look(struct sim *w, const struct bs_call *call, struct exchange *x)
{
    struct bs_str rest;

    x->is_look = true;
    x->queue = queue_of_url(w, call->url, &rest);
    (void)bs_str_cut(&rest, '/');
    struct tale *t = tale_of_request(w, rest.p ? rest.p : "", rest.n);

    if (x->queue >= SIM_QUEUES || !t) {
        broken(w, "a look-up of something that is no task: %s", call->url);
        return false;
    }
    x->tale = (uint32_t)(t - w->tales);
    x->fence = t->row.token;
    return true;
}

static bool recognise_post(struct sim *w, const struct bs_call *call, struct exchange *x)
{
    struct bs_str key = header_of(call, "Idempotency-Key");
    struct bs_str fence = header_of(call, "Backstop-Fence");
    struct bs_str rest;
    struct tale *t = tale_of_request(w, key.p ? key.p : "", key.n);

    x->queue = queue_of_url(w, call->url, &rest);
    if (x->queue >= SIM_QUEUES || !t || !bs_i64_parse(fence, &x->fence)) {
        broken(w, "a call that belongs to no task: %s key=%.*s fence=%.*s", call->url,
               BS_STR_FMT(key), BS_STR_FMT(fence));
        return false;
    }
    x->tale = (uint32_t)(t - w->tales);
    return true;
}

static void net_start(struct bs_caller *c, struct bs_call *call, struct bs_time now)
{
    struct sim *w = sim_of(c);
    struct net *n = BS_CONTAINER(c, struct net, base);

    BS_ASSERT(w->xs_n < SIM_EXCHANGES);
    struct exchange *x = &w->xs[w->xs_n++];
    *x = (struct exchange){ .incarnation = w->p.incarnation,
                            .start = now,
                            .deadline = bs_time_add(now, call->timeout),
                            .call = call,
                            .delivered_at = BS_NEVER };
    call->impl = x;
    call->next = n->running;
    n->running = call;
    bool known =
        strcmp(call->method, "GET") == 0 ? recognise_look(w, call, x) : recognise_post(w, call, x);

    if (!known) {
        x->client_end = now;
        x->wire = BS_WIRE_INTERNAL;
        return;
    }
    if (x->is_look) {
        shop_plan_look(w, x);
    } else {
        shop_plan_post(w, x);
        shop_judge_post(w, x, call);
        check_post(w, x);
    }
    gates_begin(w, x);
    atomic_fetch_add(&w->hits->plans[x->plan], 1);
    atomic_fetch_add(&w->hits->calls, 1);
    say(w, "%s %s fence=%lld plan=%s", call->method, w->tales[x->tale].row.request_id,
        (long long)x->fence, plan_name(x->plan));
}

/* The reply as the library would hand it over. */
static void fill_facts(struct sim *w, struct exchange *x, struct bs_time now)
{
    struct bs_call *call = x->call;
    struct bs_facts *f = &call->facts;
    bool late = x->client_end.us > x->deadline.us;

    *f = (struct bs_facts){ .wire = x->cancelled ? BS_WIRE_CANCELLED
                                    : late       ? BS_WIRE_TIMEOUT
                                                 : x->wire,
                            .sent = !bs_time_before(bs_time_min(now, x->deadline), x->sent_at),
                            .started_at = x->start,
                            .ended_at = now };
    (void)snprintf(f->detail, sizeof(f->detail), "pretended %s", plan_name(x->plan));
    if (f->wire != BS_WIRE_REPLIED)
        return;
    f->status = x->status;
    f->retry_after = x->wish;
    f->location = x->status == 302 ? BS_STR("http://elsewhere.test/") : BS_STR_NONE;
    if (x->long_body) {
        char *p = (char *)bs_arena_alloc(call->arena, 65536);

        for (size_t i = 0; p && i + 4 <= 65536; i += 4)
            memcpy(p + i, "\xf0\x9f\x8d\x9c", 4);
        f->body = (struct bs_str){ p, p ? 65535 : 0 };
        f->body_cut = true;
    } else {
        f->body = bs_arena_str(call->arena, (struct bs_str){ x->body, x->body_n });
    }
    (void)w;
}

static void end_call(struct net *n, struct bs_call *call, struct bs_time now)
{
    fill_facts(n->sim, exchange_of(call), now);
    call->next = NULL;
    if (n->ended_tail)
        n->ended_tail->next = call;
    else
        n->ended = call;
    n->ended_tail = call;
}

static struct bs_time client_end_of(const struct exchange *x)
{
    return bs_time_min(x->client_end, x->deadline);
}

/* The earliest first, whatever the order of the list. */
static struct bs_call **first_due(struct net *n, struct bs_time now)
{
    struct bs_call **best = NULL;

    for (struct bs_call **p = &n->running; *p; p = &(*p)->next) {
        struct bs_time end = client_end_of(exchange_of(*p));

        if (end.us <= now.us && (!best || end.us < client_end_of(exchange_of(*best)).us ||
                                 (end.us == client_end_of(exchange_of(*best)).us &&
                                  exchange_of(*p) < exchange_of(*best))))
            best = p;
    }
    return best;
}

static void net_run(struct bs_caller *c, struct bs_time now)
{
    struct net *n = BS_CONTAINER(c, struct net, base);

    for (struct bs_call **p = first_due(n, now); p; p = first_due(n, now)) {
        struct bs_call *call = *p;

        *p = call->next;
        end_call(n, call, now);
    }
}

static void note_delivery(struct sim *w, struct exchange *x)
{
    x->delivered = true;
    x->delivered_at = sim_now(w);
    x->call = NULL;
    gates_end(w, x);
    if (x->cancelled)
        x->truth = TRUTH_CANCELLED;
    else if (x->client_end.us > x->deadline.us)
        x->truth = bs_time_before(x->deadline, x->sent_at) ? TRUTH_FAILED : TRUTH_UNKNOWN;
    if (x->is_look && !x->cancelled && x->client_end.us <= x->deadline.us)
        w->tales[x->tale].last_look = (uint32_t)(x - w->xs) + 1;
    say(w, "ended %s %s fence=%lld truth=%d", x->is_look ? "look" : "call",
        w->tales[x->tale].row.request_id, (long long)x->fence, (int)x->truth);
}

static struct bs_call *net_finished(struct bs_caller *c)
{
    struct net *n = BS_CONTAINER(c, struct net, base);
    struct bs_call *call = n->ended;

    if (!call)
        return NULL;
    n->ended = call->next;
    if (!n->ended)
        n->ended_tail = NULL;
    note_delivery(n->sim, exchange_of(call));
    call->next = NULL;
    call->impl = NULL;
    return call;
}

static void net_cancel(struct bs_caller *c, struct bs_call *call)
{
    struct net *n = BS_CONTAINER(c, struct net, base);

    for (struct bs_call **p = &n->running; *p; p = &(*p)->next)
        if (*p == call) {
            struct exchange *x = exchange_of(call);

            *p = call->next;
            x->cancelled = true;
            if (bs_time_before(sim_now(n->sim), x->sent_at)) {
                x->sent_at = x->effect_at = BS_NEVER;
                x->end = sim_now(n->sim);
            }
            end_call(n, call, sim_now(n->sim));
            return;
        }
}

static void net_wait(struct bs_caller *c, struct bs_mailbox *mail, int64_t until_us)
{
    (void)c;
    (void)mail;
    (void)until_us;
}

/* A dying process takes its sockets along: what had left goes on at the shop, the rest never was.
 */
static void net_free(struct bs_caller *c)
{
    struct net *n = BS_CONTAINER(c, struct net, base);
    struct sim *w = n->sim;

    for (uint32_t i = w->xs_live; i < w->xs_n; i++) {
        struct exchange *x = &w->xs[i];

        if (!x->call)
            continue;
        x->call = NULL;
        x->dead = true;
        if (bs_time_before(sim_now(w), x->sent_at)) {
            x->sent_at = x->effect_at = BS_NEVER;
            x->end = sim_now(w);
        }
    }
    free(n);
}

struct bs_time net_next(const struct net *n)
{
    struct bs_time next = n->ended ? (struct bs_time){ 1 } : BS_NEVER;

    for (struct bs_call *call = n->running; call; call = call->next)
        next = bs_time_min(next, client_end_of(exchange_of(call)));
    return next;
}

struct net *net_new(struct sim *w)
{
    static const struct bs_caller_ops ops = { net_start,  net_run,  net_finished,
                                              net_cancel, net_wait, net_free };
    struct net *n = (struct net *)calloc(1, sizeof(*n));

    BS_ASSERT(n != NULL);
    n->base.ops = &ops;
    n->sim = w;
    return n;
}
