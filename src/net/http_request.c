/* A request as the library hands it over: first the headers, then the body in pieces, then its end.
 */
#include "base/text.h"
#include "net/http_internal.h"

#include <stdlib.h>

/* Small bodies lie in the arena; large ones on the heap, whose untouched pages cost nothing while
 * a client is slow. */
enum { ARENA_BODY_MAX = 16 << 10, FIRST_CHUNKED_CAP = 4 << 10 };
enum { DISCARD_FACTOR = 4, DISCARD_LEAST = 64 << 10 };

struct bs_str bs_http_header(struct bs_http_request *pub, const char *name)
{
    struct request *r = BS_CONTAINER(pub, struct request, pub);

    if (!r->conn)
        return BS_STR_NONE;
    return bs_str_of(MHD_lookup_connection_value(r->conn->mhd, MHD_HEADER_KIND, name));
}

struct query_look {
    struct bs_str name, value;
    uint32_t seen;
};

static enum MHD_Result match_query(void *cls, enum MHD_ValueKind kind, const char *name,
                                   size_t name_n, const char *value, size_t value_n)
{
    struct query_look *look = cls;

    (void)kind;
    if (bs_str_eq(look->name, (struct bs_str){ name, name_n }) && look->seen++ == 0)
        look->value = (struct bs_str){ value ? value : "", value_n };
    return MHD_YES;
}

struct bs_str bs_http_query(struct bs_http_request *pub, const char *name, bool *ret_twice)
{
    struct request *r = BS_CONTAINER(pub, struct request, pub);
    struct query_look look = { .name = bs_str_of(name) };

    if (r->conn)
        MHD_get_connection_values_n(r->conn->mhd, MHD_GET_ARGUMENT_KIND, match_query, &look);
    if (ret_twice)
        *ret_twice = look.seen > 1;
    return look.value;
}

struct query_walk {
    void (*each)(void *ctx, struct bs_str name, struct bs_str value);
    void *ctx;
};

static enum MHD_Result walk_query(void *cls, enum MHD_ValueKind kind, const char *name,
                                  size_t name_n, const char *value, size_t value_n)
{
    const struct query_walk *walk = cls;

    (void)kind;
    walk->each(walk->ctx, (struct bs_str){ name, name_n },
               (struct bs_str){ value ? value : "", value_n });
    return MHD_YES;
}

void bs_http_query_each(struct bs_http_request *pub,
                        void (*each)(void *ctx, struct bs_str name, struct bs_str value), void *ctx)
{
    struct request *r = BS_CONTAINER(pub, struct request, pub);
    struct query_walk walk = { each, ctx };

    if (r->conn)
        MHD_get_connection_values_n(r->conn->mhd, MHD_GET_ARGUMENT_KIND, walk_query, &walk);
}

/* HEAD is GET whose body the library does not send. */
static enum bs_method method_of(const char *name)
{
    static const struct {
        const char *name;
        enum bs_method method;
    } table[] = {
        { "GET", BS_GET }, { "HEAD", BS_GET },      { "POST", BS_POST },
        { "PUT", BS_PUT }, { "DELETE", BS_DELETE },
    };

    for (size_t i = 0; i < BS_COUNT(table); i++)
        if (strcmp(table[i].name, name) == 0)
            return table[i].method;
    return BS_METHOD_OTHER;
}

static struct request *new_request(struct conn *c, const char *url, const char *method)
{
    struct bs_arena arena = { 0 };
    struct request *r = BS_NEW(&arena, struct request);

    if (!r)
        return NULL;
    *r = (struct request){ .server = c->server, .conn = c };
    atomic_init(&r->refs, 1);
    atomic_init(&r->slot, SLOT_FRESH);
    r->pub.method = method_of(method);
    r->pub.path = bs_arena_str(&arena, bs_str_of(url));
    r->pub.local = c->local;
    r->pub.peer_uid = c->peer_uid;
    r->pub.arena = arena;
    if (!r->pub.path.p) {
        bs_http_request_release(r);
        return NULL;
    }
    return r;
}

struct framing {
    size_t length; /* SIZE_MAX: more than can be counted */
    uint32_t lengths, encodings;
    uint32_t seen; /* bits of once[] */
    bool twice;
    bool odd; /* a header that another reader of the request may take for another one */
};

/* Which of two is meant nobody can say; a proxy may have looked at the other one. */
static const char *const once[] = { "Authorization", "Content-Type", "Idempotency-Key",
                                    "Backstop-Operator" };

static void note_once(struct framing *f, struct bs_str key)
{
    for (uint32_t i = 0; i < BS_COUNT(once); i++) {
        if (bs_str_eq_nocase(key, bs_str_of(once[i]))) {
            f->twice |= f->seen >> i & 1;
            f->seen |= 1u << i;
        }
    }
}

static bool is_token(struct bs_str s)
{
    for (size_t i = 0; i < s.n; i++) {
        char c = s.p[i];
        bool usual = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-';

        if (!usual && (c <= ' ' || c > '~' || strchr("\"(),/:;<=>?@[\\]{}", c)))
            return false;
    }
    return s.n > 0;
}

static bool is_longer_than(struct bs_str key, struct bs_str name)
{
    return key.n > name.n && bs_str_eq_nocase((struct bs_str){ key.p, name.n }, name);
}

/* The library takes "Content-Length :" for a header of its own, glues a folded line to the name
 * before it ("Content-Length3"), and lets a lone CR stand in a value. */
static bool is_odd(struct bs_str key, struct bs_str value)
{
    return !is_token(key) || memchr(value.p, '\r', value.n) ||
           is_longer_than(key, BS_STR("Content-Length")) ||
           is_longer_than(key, BS_STR("Transfer-Encoding"));
}

static enum MHD_Result read_framing(void *cls, enum MHD_ValueKind kind, const char *name,
                                    size_t name_n, const char *value, size_t value_n)
{
    struct framing *f = cls;
    struct bs_str key = { name, name_n };
    struct bs_str text = { value ? value : "", value_n };
    int64_t n = 0;

    (void)kind;
    if (bs_str_eq_nocase(key, BS_STR("Content-Length"))) {
        bool counted = bs_i64_parse(bs_str_trim(text), &n) && n >= 0;

        f->length = counted ? (size_t)n : SIZE_MAX;
        f->lengths++;
    } else if (bs_str_eq_nocase(key, BS_STR("Transfer-Encoding"))) {
        f->encodings++;
    }
    f->odd |= is_odd(key, text);
    note_once(f, key);
    return MHD_YES;
}

/* Two opinions about where a request ends would let one request hide in another behind a proxy. */
static bool framing_is_clear(const struct framing *f)
{
    return f->lengths + f->encodings <= 1 && !f->twice && !f->odd;
}

void bs_http_drop_body(struct request *r)
{
    if (r->body_on_heap) {
        free(r->body);
        atomic_fetch_sub(&r->server->bodies, r->body_cap);
    }
    r->body = NULL;
    r->body_cap = 0;
    r->body_on_heap = false;
}

/* Whoever may not ask costs no memory, and those who may, together not more than is stated. */
static bool may_grow(struct request *r, size_t cap)
{
    struct bs_http_server *s = r->server;
    size_t more = r->body_on_heap ? cap - r->body_cap : cap;

    if (!r->body_on_heap && s->o.wants_body && !s->o.wants_body(s->o.ctx, &r->pub))
        return false;
    return more <= s->o.bodies_max - atomic_load(&s->bodies);
}

/* Makes room for cap bytes, or the request `unread`. False: no memory. */
static bool grow_body(struct request *r, size_t cap)
{
    char *p = NULL;

    if (!r->body && cap <= ARENA_BODY_MAX) {
        r->body = bs_arena_alloc(&r->pub.arena, cap);
        r->body_cap = r->body ? cap : 0;
        return r->body;
    }
    if (!may_grow(r, cap)) {
        bs_http_drop_body(r);
        r->pub.unread = true;
        return true;
    }
    p = r->body_on_heap ? realloc(r->body, cap) : malloc(cap);
    if (!p)
        return false;
    atomic_fetch_add(&r->server->bodies, r->body_on_heap ? cap - r->body_cap : cap);
    if (!r->body_on_heap && r->body && r->body_len > 0)
        memcpy(p, r->body, r->body_len);
    r->body = p;
    r->body_cap = cap;
    r->body_on_heap = true;
    return true;
}

static enum MHD_Result begin(struct conn *c, const char *url, const char *method, void **context)
{
    struct bs_http_server *s = c->server;
    struct request *r = new_request(c, url, method);
    struct framing f = { 0 };

    if (!r)
        return MHD_NO;
    c->req = r;
    *context = r;
    bs_http_conn_enter(c, PHASE_BODY, s->o.body_limit);
    atomic_fetch_add_explicit(&s->requests, 1, memory_order_relaxed);
    MHD_get_connection_values_n(c->mhd, MHD_HEADER_KIND, read_framing, &f);
    if (c->bad_uri || !framing_is_clear(&f)) {
        bs_http_refuse(r, 400);
        return MHD_YES;
    }
    r->body_max = s->o.body_max ? s->o.body_max(s->o.ctx, r->pub.method, r->pub.path) : SIZE_MAX;
    if (f.length > r->body_max) {
        bs_http_refuse(r, 413);
        return MHD_YES;
    }
    return f.length == 0 || grow_body(r, f.length) ? MHD_YES : MHD_NO;
}

static bool make_room(struct request *r, size_t n)
{
    size_t cap = BS_MAX(r->body_cap * 2, r->body_len + n);

    if (r->pub.unread || n <= r->body_cap - r->body_len)
        return true;
    return grow_body(r, BS_MIN(BS_MAX(cap, (size_t)FIRST_CHUNKED_CAP), r->body_max));
}

/* A body in chunks has no length that could be refused at once. The library can answer only at its
 * end, so a bounded excess is read and dropped; beyond that the connection closes. */
static enum MHD_Result take_piece(struct request *r, const char *data, size_t n)
{
    if (r->replied)
        return MHD_NO;
    if (r->over || n > r->body_max - r->body_len) {
        r->over = true;
        r->body_len += n;
        return r->body_len > DISCARD_LEAST && r->body_len / DISCARD_FACTOR > r->body_max ? MHD_NO
                                                                                         : MHD_YES;
    }
    if (!make_room(r, n))
        return MHD_NO;
    if (!r->pub.unread)
        memcpy(r->body + r->body_len, data, n);
    r->body_len += n;
    return MHD_YES;
}

static enum MHD_Result complete(struct request *r)
{
    struct bs_http_server *s = r->server;

    /* Once more after a resume whose reply could not be queued. */
    if (r->replied || atomic_load(&r->slot) != SLOT_FRESH)
        return MHD_NO;
    if (r->over || s->draining) {
        bs_http_refuse(r, r->over ? 413 : 503);
        return MHD_YES;
    }
    if (!r->pub.unread)
        r->pub.body = (struct bs_str){ r->body, r->body_len };
    s->o.handle(s->o.ctx, &r->pub);
    if (r->replied)
        return MHD_YES;
    BS_ASSERT(r->conn->phase == PHASE_WAIT);
    MHD_suspend_connection(r->conn->mhd);
    return MHD_YES;
}

enum MHD_Result bs_http_access(void *cls, struct MHD_Connection *mhd, const char *url,
                               const char *method, const char *version, const char *data,
                               size_t *size, void **context)
{
    struct request *r = *context;

    (void)cls;
    (void)version;
    if (!r) {
        struct conn *c = bs_http_conn_of(mhd);

        return c ? begin(c, url, method, context) : MHD_NO;
    }
    if (*size == 0)
        return complete(r);
    size_t n = *size;
    *size = 0;
    return take_piece(r, data, n);
}

/* The library is done with the request: answered, or the client is gone. */
void bs_http_completed(void *cls, struct MHD_Connection *mhd, void **context,
                       enum MHD_RequestTerminationCode code)
{
    struct bs_http_server *s = cls;
    struct request *r = *context;

    (void)mhd;
    if (!r)
        return;
    *context = NULL;
    struct conn *c = r->conn;
    c->req = NULL;
    r->conn = NULL;
    if (code == MHD_REQUEST_TERMINATED_COMPLETED_OK && c->phase == PHASE_REPLY)
        bs_http_conn_enter(c, PHASE_IDLE, s->o.idle_limit);
    bs_http_request_release(r);
}
