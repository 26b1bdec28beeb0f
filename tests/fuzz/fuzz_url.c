/* The address of a look-up: the first line is the pattern, seven lines are the task's members.
 * Where the configuration accepts the pattern, whatever the members hold, the address stays on the
 * declared host and keeps its declared parts. */
#include "app/config_rule.h"
#include "engine/request.h"
#include "fuzz.h"

#include <curl/curl.h>

struct parts {
    char *scheme, *host, *port, *path, *query, *fragment, *user;
};

static void parts_free(struct parts *p)
{
    char *all[] = { p->scheme, p->host, p->port, p->path, p->query, p->fragment, p->user };

    for (size_t i = 0; i < BS_COUNT(all); i++)
        curl_free(all[i]);
}

static void parts_read(struct parts *p, const char *url)
{
    CURLU *u = curl_url();
    CURLUcode rc = curl_url_set(u, CURLUPART_URL, url, 0);

    BS_ASSERT(rc == CURLUE_OK);
    (void)curl_url_get(u, CURLUPART_SCHEME, &p->scheme, 0);
    (void)curl_url_get(u, CURLUPART_HOST, &p->host, 0);
    (void)curl_url_get(u, CURLUPART_PORT, &p->port, CURLU_DEFAULT_PORT);
    (void)curl_url_get(u, CURLUPART_PATH, &p->path, 0);
    (void)curl_url_get(u, CURLUPART_QUERY, &p->query, 0);
    (void)curl_url_get(u, CURLUPART_FRAGMENT, &p->fragment, 0);
    (void)curl_url_get(u, CURLUPART_USER, &p->user, 0);
    curl_url_cleanup(u);
}

static void check_equal(const char *a, const char *b)
{
    BS_ASSERT(bs_str_eq(bs_str_of(a), bs_str_of(b)));
    BS_ASSERT(!a == !b);
}

static size_t count(const char *text, char c)
{
    size_t n = 0;

    for (; text && *text; text++)
        n += *text == c;
    return n;
}

static void check_parts(const char *got, const char *plain)
{
    BS_CLEANUP(parts_free) struct parts g = { 0 };
    BS_CLEANUP(parts_free) struct parts p = { 0 };

    parts_read(&g, got);
    parts_read(&p, plain);
    check_equal(g.scheme, p.scheme);
    check_equal(g.host, p.host);
    check_equal(g.port, p.port);
    BS_ASSERT(!g.user && !p.user);
    BS_ASSERT(count(g.path, '/') == count(p.path, '/'));
    BS_ASSERT(!g.query == !p.query && count(g.query, '&') == count(p.query, '&'));
    BS_ASSERT(count(g.query, '=') == count(p.query, '='));
    BS_ASSERT(!g.fragment == !p.fragment);
}

static struct bs_task letters(void)
{
    struct bs_str x = BS_STR("x");

    return (struct bs_task){ .order_no = x,
                             .payment_no = x,
                             .channel_trade_no = x,
                             .refund_no = x,
                             .biz_id = x,
                             .merchant_no = x,
                             .request_id = x };
}

/* As the door lets them in. */
static struct bs_str member(struct bs_str *rest)
{
    struct bs_str s = bs_str_cut(rest, '\n');

    return bs_utf8_valid(s) && bs_text_plain(s) && s.n <= 128 ? s : BS_STR("..");
}

static struct bs_task read_task(struct bs_str rest)
{
    struct bs_task t = { 0 };

    t.order_no = member(&rest);
    t.payment_no = member(&rest);
    t.channel_trade_no = member(&rest);
    t.refund_no = member(&rest);
    t.biz_id = member(&rest);
    t.merchant_no = member(&rest);
    t.request_id = member(&rest);
    return t;
}

/* As the configuration lets it in: UTF-8 without NUL. */
static bool pattern_accepted(struct bs_arena *a, struct bs_str pattern)
{
    struct bs_conf_faults *f = BS_NEW(a, struct bs_conf_faults);
    struct bs_conf_val v = { .given = true, .line = 1, .text = pattern };

    if (!pattern.n || memchr(pattern.p, 0, pattern.n) || !bs_utf8_valid(pattern))
        return false;
    f->arena = a;
    bs_conf_check_url(&v, BS_STR("url"), true, f);
    for (uint32_t i = 0; i < f->n; i++)
        BS_ASSERT(f->items[i].text.n > 0);
    return f->n == 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    BS_CLEANUP(bs_arena_free) struct bs_arena a = { 0 };
    struct bs_str rest = fuzz_input(data, n);
    struct bs_str pattern = bs_arena_str(&a, bs_str_cut(&rest, '\n')), missing = BS_STR_NONE;
    struct bs_task t = read_task(rest), x = letters();
    const char *got = NULL, *plain = NULL;

    if (!pattern_accepted(&a, pattern))
        return 0;
    bs_rc rc = bs_request_url(&a, pattern, &x, &plain, &missing);
    BS_ASSERT(rc == BS_OK);
    rc = bs_request_url(&a, pattern, &t, &got, &missing);
    if (rc != BS_OK) {
        BS_ASSERT((rc == BS_E_NOT_FOUND && fuzz_within(missing, pattern)) || rc == BS_E_LIMIT);
        return 0;
    }
    check_parts(got, plain);
    return 0;
}
