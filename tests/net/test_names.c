/* Host names: the fakes, the pool behind getaddrinfo (which is this file's own here), its cache. */
#include "calls.h"
#include "net/resolver.h"

#include <dlfcn.h>
#include <netdb.h>
#include <semaphore.h>
#include <stdio.h>
#include <unistd.h>

#define OK_REPLY "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

static _Atomic int asked;
static _Atomic bool name_server_away;
static sem_t slow_may_go_on;

int getaddrinfo(const char *host, const char *service, const struct addrinfo *hints,
                struct addrinfo **ret)
{
    int (*real)(const char *, const char *, const struct addrinfo *, struct addrinfo **) = NULL;
    void *symbol = dlsym(RTLD_NEXT, "getaddrinfo");

    memcpy(&real, &symbol, sizeof(real));
    if (!host || !strstr(host, ".test"))
        return real(host, service, hints, ret);
    atomic_fetch_add(&asked, 1);
    if (strncmp(host, "slow", 4) == 0)
        sem_wait(&slow_may_go_on);
    if (strcmp(host, "gone.test") == 0)
        return EAI_NONAME;
    if (strcmp(host, "servfail.test") == 0 || atomic_load(&name_server_away))
        return EAI_AGAIN;
    return real("127.0.0.1", service, hints, ret);
}

static enum bs_wire wire_for(struct bs_caller *c, struct one_call *o, const char *host,
                             uint16_t port)
{
    char url[128];

    snprintf(url, sizeof(url), "http://%s:%u/p", host, port);
    call_begin(c, o, "POST", url);
    return call_next(c)->facts.wire;
}

static void fakes_answer_as_told(void **state)
{
    static struct peer p;
    struct one_call o = { 0 };
    struct bs_caller *c = caller_open(
        NULL,
        "shop.example=127.0.0.1,gone.example=!NXDOMAIN,ill.example=!SERVFAIL,six.example=[::1]");

    (void)state;
    peer_start(&p, peer_reply, OK_REPLY);
    assert_int_equal(wire_for(c, &o, "shop.example", p.port), BS_WIRE_REPLIED);
    assert_int_equal(wire_for(c, &o, "SHOP.example", p.port), BS_WIRE_REPLIED);
    assert_int_equal(wire_for(c, &o, "gone.example", p.port), BS_WIRE_DNS_NXDOMAIN);
    assert_false(o.call.facts.sent);
    assert_int_equal(wire_for(c, &o, "six.example", 1), BS_WIRE_CONNECT_REFUSED);
    assert_int_equal(wire_for(c, &o, "ill.example", p.port), BS_WIRE_DNS_TEMPORARY);
    assert_false(o.call.facts.sent);
    c->ops->free(c);
    peer_stop(&p);
    assert_int_equal(p.connections, 1);
    call_done(&o);
}

static void answer_and_close(struct peer *p, int fd, int nth)
{
    (void)nth;
    if (peer_read_request(p, fd))
        peer_write(fd, p->arg);
}

static void addresses_and_localhost_need_no_look_up(void **state)
{
    static struct peer p;
    struct one_call o = { 0 };
    struct bs_caller *c = caller_open(NULL, "localhost=!NXDOMAIN,127.0.0.1=!NXDOMAIN");

    (void)state;
    peer_start(&p, answer_and_close, OK_REPLY);
    assert_int_equal(wire_for(c, &o, "127.0.0.1", p.port), BS_WIRE_REPLIED);
    assert_int_equal(wire_for(c, &o, "localhost", p.port), BS_WIRE_REPLIED);
    assert_int_equal(wire_for(c, &o, "[::1]", 1), BS_WIRE_CONNECT_REFUSED);
    c->ops->free(c);
    peer_stop(&p);
    call_done(&o);
}

static void a_good_answer_is_asked_for_once_and_a_bad_one_again(void **state)
{
    static struct peer p;
    struct one_call o = { 0 };
    struct bs_caller *c = caller_open(NULL, NULL);
    int before = atomic_load(&asked);

    (void)state;
    peer_start(&p, peer_reply, OK_REPLY);
    for (int i = 0; i < 3; i++)
        assert_int_equal(wire_for(c, &o, i == 1 ? "Shop.Test.test" : "shop.test.test", p.port),
                         BS_WIRE_REPLIED);
    assert_int_equal(atomic_load(&asked), before + 1);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(wire_for(c, &o, "gone.test", p.port), BS_WIRE_DNS_NXDOMAIN);
        assert_int_equal(wire_for(c, &o, "servfail.test", p.port), BS_WIRE_DNS_TEMPORARY);
    }
    assert_int_equal(atomic_load(&asked), before + 5);
    c->ops->free(c);
    peer_stop(&p);
    call_done(&o);
}

static void calls_for_one_name_share_a_look_up(void **state)
{
    static struct peer p;
    struct one_call o[5] = { 0 };
    struct bs_caller *c = caller_open(NULL, NULL);
    int before = atomic_load(&asked);
    char url[64];

    (void)state;
    peer_start(&p, answer_and_close, OK_REPLY);
    snprintf(url, sizeof(url), "http://slow1.test:%u/p", p.port);
    for (size_t i = 0; i < BS_COUNT(o); i++)
        call_begin(c, &o[i], "POST", url);
    c->ops->cancel(c, &o[2].call);
    assert_ptr_equal(c->ops->finished(c), &o[2].call);
    sem_post(&slow_may_go_on);
    for (size_t i = 0; i < BS_COUNT(o) - 1; i++)
        assert_int_equal(call_next(c)->facts.wire, BS_WIRE_REPLIED);
    assert_int_equal(atomic_load(&asked), before + 1);
    c->ops->free(c);
    peer_stop(&p);
    for (size_t i = 0; i < BS_COUNT(o); i++)
        call_done(&o[i]);
}

/* The answer comes when nobody waits for it any more: it is kept, and the loop sleeps on. */
static void an_answer_for_nobody_does_not_keep_the_loop_awake(void **state)
{
    static struct peer p;
    struct one_call o = { 0 };
    struct bs_caller *c = caller_open(NULL, NULL);
    int before = atomic_load(&asked), turns = 0;
    char url[64];

    (void)state;
    peer_start(&p, peer_reply, OK_REPLY);
    snprintf(url, sizeof(url), "http://slow2.test:%u/p", p.port);
    call_begin(c, &o, "POST", url);
    run_until(c, &asked, before + 1);
    c->ops->cancel(c, &o.call);
    assert_ptr_equal(c->ops->finished(c), &o.call);
    sem_post(&slow_may_go_on);
    for (int64_t until_us = bs_boot_us() + 200000; bs_boot_us() < until_us; turns++) {
        c->ops->run(c, bs_now(bs_clock_system()));
        c->ops->wait(c, NULL, until_us);
    }
    assert_in_range(turns, 1, 20);
    assert_int_equal(wire_for(c, &o, "slow2.test", p.port), BS_WIRE_REPLIED);
    assert_int_equal(atomic_load(&asked), before + 1);
    c->ops->free(c);
    peer_stop(&p);
    call_done(&o);
}

/* Both threads of the pool hang; other calls go on, and the hanging ones end by their limits. */
static void a_slow_name_holds_up_nobody_and_counts_as_time(void **state)
{
    static struct peer p;
    struct one_call slow[3] = { 0 }, o = { 0 };
    struct bs_caller *c = caller_open(NULL, NULL);
    char url[64];

    (void)state;
    peer_start(&p, peer_reply, OK_REPLY);
    int64_t began_us = bs_boot_us();
    for (size_t i = 0; i < BS_COUNT(slow); i++) {
        snprintf(url, sizeof(url), "http://slow-%zu.test/p", i);
        call_begin(c, &slow[i], "POST", url);
        c->ops->cancel(c, &slow[i].call);
        assert_ptr_equal(c->ops->finished(c), &slow[i].call);
        slow[i].call.timeout = BS_MS(400);
        c->ops->start(c, &slow[i].call, bs_now(bs_clock_system()));
    }
    for (int i = 0; i < 20; i++)
        assert_int_equal(wire_for(c, &o, "127.0.0.1", p.port), BS_WIRE_REPLIED);
    for (size_t i = 0; i < BS_COUNT(slow); i++) {
        const struct bs_facts *f = &call_next(c)->facts;

        assert_int_equal(f->wire, BS_WIRE_DNS_TEMPORARY);
        assert_false(f->sent);
    }
    assert_in_range(bs_boot_us() - began_us, 390000, 5000000);
    c->ops->free(c); /* with two look-ups still hanging */
    for (size_t i = 0; i < BS_COUNT(slow); i++) {
        sem_post(&slow_may_go_on);
        call_done(&slow[i]);
    }
    peer_stop(&p);
    call_done(&o);
}

/* The reply came late by the look-up: what is left of the limit is short. */
static void the_time_of_the_look_up_is_taken_off_the_limit(void **state)
{
    struct one_call o = { 0 };
    struct bs_caller *c = caller_open(NULL, NULL);
    uint16_t port = 0;
    int fd = listen_somewhere(&port, 8);
    char url[64];

    (void)state;
    snprintf(url, sizeof(url), "http://slow9.test:%u/p", port);
    call_begin(c, &o, "POST", url);
    c->ops->cancel(c, &o.call);
    assert_ptr_equal(c->ops->finished(c), &o.call);
    o.call.timeout = BS_MS(600);
    int64_t began_us = bs_boot_us();
    c->ops->start(c, &o.call, bs_now(bs_clock_system()));
    while (bs_boot_us() - began_us < 400000) {
        c->ops->run(c, bs_now(bs_clock_system()));
        c->ops->wait(c, NULL, began_us + 400000);
    }
    sem_post(&slow_may_go_on);
    assert_int_equal(call_next(c)->facts.wire, BS_WIRE_TIMEOUT);
    assert_in_range(bs_boot_us() - began_us, 550000, 900000);
    c->ops->free(c);
    close(fd);
    call_done(&o);
}

/* ---- the resolver alone, with a clock of its own ---- */

static void ignore(void *ctx, struct bs_resolve *q)
{
    (void)ctx;
    (void)q;
}

static void take_answers(struct bs_resolver *r, int64_t now_us, const struct bs_resolve *q)
{
    for (int i = 0; i < 5000 && q->state == BS_RESOLVE_PENDING; i++) {
        usleep(1000);
        bs_resolver_run(r, now_us, ignore, NULL);
    }
    assert_int_not_equal(q->state, BS_RESOLVE_PENDING);
}

static enum bs_resolve_state ask_at(struct bs_resolver *r, const char *host, int64_t now_us)
{
    struct bs_resolve q;

    bs_resolver_ask(r, bs_str_of(host), now_us, &q);
    take_answers(r, now_us, &q);
    return q.state;
}

static void asked_reach(struct bs_resolver *r, int n, int64_t now_us)
{
    for (int i = 0; i < 5000 && atomic_load(&asked) < n; i++)
        usleep(1000);
    assert_int_equal(atomic_load(&asked), n);
    usleep(20000);
    bs_resolver_run(r, now_us, ignore, NULL);
}

/* Names that hang must not take the good names with them: an address that was good a minute ago
 * serves until the new answer is there. */
static void an_old_address_serves_while_the_look_up_hangs(void **state)
{
    struct bs_resolve hang[2], q;
    struct bs_resolver *r = NULL;
    struct bs_err err;

    (void)state;
    assert_int_equal(bs_resolver_new(NULL, &r, &err), BS_OK);
    assert_int_equal(ask_at(r, "old.test", 0), BS_RESOLVE_FOUND);
    bs_resolver_ask(r, BS_STR("slow-7.test"), 0, &hang[0]);
    bs_resolver_ask(r, BS_STR("slow-8.test"), 0, &hang[1]);
    for (int64_t s = 31; s < 90; s++) {
        bs_resolver_ask(r, BS_STR("old.test"), s * 1000000, &q);
        assert_int_equal(q.state, BS_RESOLVE_FOUND);
        assert_string_equal(q.addresses, "127.0.0.1");
    }
    bs_resolver_ask(r, BS_STR("old.test"), 91 * INT64_C(1000000), &q);
    assert_int_equal(q.state, BS_RESOLVE_PENDING); /* too old to be taken unseen */
    sem_post(&slow_may_go_on);
    sem_post(&slow_may_go_on);
    take_answers(r, 91 * INT64_C(1000000), &q);
    assert_int_equal(q.state, BS_RESOLVE_FOUND);
    take_answers(r, 91 * INT64_C(1000000), &hang[0]);
    take_answers(r, 91 * INT64_C(1000000), &hang[1]);
    bs_resolver_free(r);
}

static void an_old_address_outlasts_a_name_server_that_is_away(void **state)
{
    struct bs_resolver *r = NULL;
    struct bs_err err;

    (void)state;
    assert_int_equal(bs_resolver_new(NULL, &r, &err), BS_OK);
    assert_int_equal(ask_at(r, "away.test", 0), BS_RESOLVE_FOUND);
    int before = atomic_load(&asked);
    atomic_store(&name_server_away, true);
    assert_int_equal(ask_at(r, "away.test", 100 * INT64_C(1000000)), BS_RESOLVE_FOUND);
    assert_int_equal(ask_at(r, "away.test", 299 * INT64_C(1000000)), BS_RESOLVE_FOUND);
    asked_reach(r, before + 2, 299 * INT64_C(1000000));
    assert_int_equal(ask_at(r, "away.test", 301 * INT64_C(1000000)), BS_RESOLVE_TEMPORARY);
    atomic_store(&name_server_away, false);
    assert_int_equal(ask_at(r, "away.test", 302 * INT64_C(1000000)), BS_RESOLVE_FOUND);
    bs_resolver_free(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fakes_answer_as_told),
        cmocka_unit_test(addresses_and_localhost_need_no_look_up),
        cmocka_unit_test(a_good_answer_is_asked_for_once_and_a_bad_one_again),
        cmocka_unit_test(calls_for_one_name_share_a_look_up),
        cmocka_unit_test(an_answer_for_nobody_does_not_keep_the_loop_awake),
        cmocka_unit_test(a_slow_name_holds_up_nobody_and_counts_as_time),
        cmocka_unit_test(the_time_of_the_look_up_is_taken_off_the_limit),
        cmocka_unit_test(an_old_address_serves_while_the_look_up_hangs),
        cmocka_unit_test(an_old_address_outlasts_a_name_server_that_is_away),
    };

    sem_init(&slow_may_go_on, 0, 0);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
