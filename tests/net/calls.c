/* Calls of the tests. */
#include "calls.h"

#include <stdio.h>

enum { PATIENCE_US = 20 * 1000000 };

static const char *const headers[] = { "Content-Type: application/json", "Idempotency-Key: k-1" };

struct bs_caller *caller_open(const char *ca_file, const char *fake)
{
    struct bs_caller *c = NULL;
    struct bs_err err;

    assert_int_equal(bs_curl_new(&(struct bs_curl_options){ .ca_file = ca_file,
                                                            .clock = bs_clock_system(),
                                                            .resolve_fake = fake },
                                 &c, &err),
                     BS_OK);
    return c;
}

void call_begin(struct bs_caller *c, struct one_call *o, const char *method, const char *url)
{
    snprintf(o->url, sizeof(o->url), "%s", url);
    o->call = (struct bs_call){
        .method = method,
        .url = o->url,
        .headers = headers,
        .headers_n = BS_COUNT(headers),
        .body = strcmp(method, "POST") == 0 ? BS_STR("hello") : BS_STR_NONE,
        .connect_timeout = BS_SEC(5),
        .timeout = BS_SEC(10),
        .arena = &o->arena,
    };
    c->ops->start(c, &o->call, bs_now(bs_clock_system()));
}

struct bs_call *call_next(struct bs_caller *c)
{
    int64_t until_us = bs_boot_us() + PATIENCE_US;

    while (bs_boot_us() < until_us) {
        c->ops->run(c, bs_now(bs_clock_system()));
        struct bs_call *call = c->ops->finished(c);
        if (call)
            return call;
        c->ops->wait(c, NULL, until_us);
    }
    fail_msg("no call came back");
    return NULL;
}

void run_until(struct bs_caller *c, const _Atomic int *n, int at_least)
{
    int64_t until_us = bs_boot_us() + PATIENCE_US;

    while (atomic_load(n) < at_least) {
        assert_true(bs_boot_us() < until_us);
        c->ops->run(c, bs_now(bs_clock_system()));
        c->ops->wait(c, NULL, bs_boot_us() + 5000);
    }
}

const struct bs_facts *post(struct bs_caller *c, struct one_call *o, uint16_t port)
{
    char url[64];

    snprintf(url, sizeof(url), "http://127.0.0.1:%u/p", port);
    call_begin(c, o, "POST", url);
    assert_ptr_equal(call_next(c), &o->call);
    return &o->call.facts;
}

void call_done(struct one_call *o)
{
    bs_arena_free(&o->arena);
}

void assert_str(struct bs_str got, const char *want)
{
    assert_int_equal(got.n, strlen(want));
    assert_memory_equal(got.p, want, got.n);
}
