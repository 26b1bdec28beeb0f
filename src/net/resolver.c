/* The resolver's cache, its waiting questions and its fake answers. */
#include "net/resolver.h"

#include "net/resolver_pool.h"

#include <stdio.h>
#include <stdlib.h>

enum { NAMES_MAX = 256 };

/* Ages of an answer. FRESH: it is taken. SERVES: it is taken while a new one is looked up, so that
 * names that hang, and hold both threads of the pool, do not hold up the good ones. OUTLASTS: it is
 * taken when the new look-up finds no name server. */
#define FRESH_US (30 * INT64_C(1000000))
#define SERVES_US (90 * INT64_C(1000000))
#define OUTLASTS_US (300 * INT64_C(1000000))

struct name {
    char host[BS_HOST_MAX];
    uint32_t hash;
    bool pending;
    char addresses[BS_ADDRESSES_MAX]; /* empty: none yet */
    int64_t good_us;                  /* when they came  */
    struct bs_resolve *waiting;
};

struct bs_resolver {
    struct bs_resolver_pool *pool;
    struct name *names[NAMES_MAX];
    uint32_t names_n;
    char *fake;
    struct bs_resolve *hanging; /* questions for a fake name that never answers */
};

bs_rc bs_resolver_new(const char *fake, struct bs_resolver **ret, struct bs_err *err)
{
    struct bs_resolver *r = calloc(1, sizeof(*r));

    if (!r)
        return bs_fail(err, BS_E_NOMEM, "no memory for the resolver");
    r->fake = fake ? strdup(fake) : NULL;
    bs_rc rc = bs_resolver_pool_new(&r->pool, err);
    if (rc != BS_OK) {
        bs_resolver_free(r);
        return rc;
    }
    *ret = r;
    return BS_OK;
}

static void enlist(struct bs_resolve **head, struct bs_resolve *q)
{
    q->next = *head;
    q->at = head;
    if (q->next)
        q->next->at = &q->next;
    *head = q;
}

void bs_resolver_cancel(struct bs_resolve *q)
{
    BS_ASSERT(q->at);
    *q->at = q->next;
    if (q->next)
        q->next->at = q->at;
    q->next = NULL;
    q->at = NULL;
}

static void found(struct bs_resolve *q, const char *addresses)
{
    q->state = BS_RESOLVE_FOUND;
    snprintf(q->addresses, sizeof(q->addresses), "%s", addresses);
}

/* Answers q when the name is in the list of fakes. */
static bool ask_fake(struct bs_resolver *r, struct bs_str host, struct bs_resolve *q)
{
    struct bs_str rest = bs_str_of(r->fake);

    while (rest.n > 0) {
        struct bs_str answer = bs_str_cut(&rest, ',');
        struct bs_str name = bs_str_cut(&answer, '=');

        if (!bs_str_eq_nocase(name, host))
            continue;
        if (bs_str_is(answer, "!NXDOMAIN")) {
            q->state = BS_RESOLVE_NXDOMAIN;
        } else if (bs_str_is(answer, "!SERVFAIL")) {
            q->state = BS_RESOLVE_TEMPORARY;
        } else if (bs_str_is(answer, "!HANG")) {
            enlist(&r->hanging, q);
        } else {
            q->state = BS_RESOLVE_FOUND;
            snprintf(q->addresses, sizeof(q->addresses), "%.*s", BS_STR_FMT(answer));
        }
        return true;
    }
    return false;
}

/* FNV-1a over the lower-case name, which is written to out. */
static uint32_t lower(struct bs_str host, char out[BS_HOST_MAX])
{
    static const char small[] = "abcdefghijklmnopqrstuvwxyz";
    uint32_t hash = 2166136261u;

    for (size_t i = 0; i < host.n; i++) {
        char c = host.p[i];

        out[i] = c;
        if (c >= 'A' && c <= 'Z')
            out[i] = small[c - 'A'];
        hash = (hash ^ (uint8_t)out[i]) * 16777619u;
    }
    out[host.n] = '\0';
    return hash;
}

/* names_n: not there. */
static uint32_t index_of(const struct bs_resolver *r, const char *host, uint32_t hash)
{
    uint32_t i = 0;

    while (i < r->names_n && (r->names[i]->hash != hash || strcmp(r->names[i]->host, host) != 0))
        i++;
    return i;
}

static struct name *find(struct bs_resolver *r, const char *host, uint32_t hash)
{
    uint32_t i = index_of(r, host, hash);

    return i < r->names_n ? r->names[i] : NULL;
}

static void forget(struct bs_resolver *r, uint32_t i)
{
    free(r->names[i]);
    r->names[i] = r->names[--r->names_n];
}

/* The room of the oldest answer; with only pending names there is none. */
static bool make_room(struct bs_resolver *r)
{
    uint32_t oldest = NAMES_MAX;

    if (r->names_n < NAMES_MAX)
        return true;
    for (uint32_t i = 0; i < NAMES_MAX; i++) {
        if (r->names[i]->pending)
            continue;
        if (oldest == NAMES_MAX || r->names[i]->good_us < r->names[oldest]->good_us)
            oldest = i;
    }
    if (oldest < NAMES_MAX)
        forget(r, oldest);
    return oldest < NAMES_MAX;
}

static struct name *add(struct bs_resolver *r, const char *host, uint32_t hash)
{
    struct name *n = make_room(r) ? calloc(1, sizeof(*n)) : NULL;

    if (!n)
        return NULL;
    snprintf(n->host, sizeof(n->host), "%s", host);
    n->hash = hash;
    r->names[r->names_n++] = n;
    return n;
}

/* Whether there are addresses of at most this age. */
static bool has_of(const struct name *n, int64_t now_us, int64_t age_us)
{
    return n->addresses[0] && now_us - n->good_us < age_us;
}

static bool look_up(struct bs_resolver *r, struct name *n)
{
    n->pending = n->pending || bs_resolver_pool_put(r->pool, n->host);
    return n->pending;
}

void bs_resolver_ask(struct bs_resolver *r, struct bs_str host, int64_t now_us,
                     struct bs_resolve *q)
{
    char name[BS_HOST_MAX];

    *q = (struct bs_resolve){ .state = BS_RESOLVE_PENDING };
    if (host.n == 0 || host.n >= sizeof(name)) {
        q->state = BS_RESOLVE_NXDOMAIN; /* no name is that long */
        return;
    }
    if (r->fake && ask_fake(r, host, q))
        return;
    uint32_t hash = lower(host, name);
    struct name *n = find(r, name, hash);
    if (!n)
        n = add(r, name, hash);
    bool fresh = n && has_of(n, now_us, FRESH_US);
    bool coming = fresh || (n && look_up(r, n));
    if (fresh || (n && has_of(n, now_us, SERVES_US)))
        found(q, n->addresses);
    else if (coming)
        enlist(&n->waiting, q);
    else
        q->state = BS_RESOLVE_TEMPORARY;
}

int bs_resolver_fd(const struct bs_resolver *r)
{
    return bs_resolver_pool_fd(r->pool);
}

/* Only good answers are kept: a name that was mended works with the next call. A name server that
 * is away says nothing about the name. */
static void take_in(struct bs_resolver *r, const struct bs_lookup *l, int64_t now_us,
                    struct bs_resolve **answered)
{
    char host[BS_HOST_MAX];
    uint32_t at = index_of(r, l->host, lower(bs_str_of(l->host), host));

    BS_ASSERT(at < r->names_n);
    struct name *n = r->names[at];
    BS_ASSERT(n->pending);
    n->pending = false;
    if (l->state == BS_RESOLVE_FOUND) {
        n->good_us = now_us;
        memcpy(n->addresses, l->addresses, sizeof(n->addresses));
    }
    bool good = l->state == BS_RESOLVE_FOUND ||
                (l->state == BS_RESOLVE_TEMPORARY && has_of(n, now_us, OUTLASTS_US));
    while (n->waiting) {
        struct bs_resolve *q = n->waiting;

        bs_resolver_cancel(q);
        if (good)
            found(q, n->addresses);
        else
            q->state = l->state;
        enlist(answered, q);
    }
    if (!good)
        forget(r, at);
}

void bs_resolver_run(struct bs_resolver *r, int64_t now_us,
                     void (*answered)(void *ctx, struct bs_resolve *q), void *ctx)
{
    struct bs_lookup *l = bs_resolver_pool_take(r->pool);
    struct bs_resolve *ready = NULL;

    while (l) {
        struct bs_lookup *next = l->next;

        take_in(r, l, now_us, &ready);
        free(l);
        l = next;
    }
    while (ready) {
        struct bs_resolve *q = ready;

        bs_resolver_cancel(q);
        answered(ctx, q);
    }
}

void bs_resolver_free(struct bs_resolver *r)
{
    if (!r)
        return;
    bs_resolver_pool_free(r->pool);
    for (uint32_t i = 0; i < r->names_n; i++)
        free(r->names[i]);
    free(r->fake);
    free(r);
}
