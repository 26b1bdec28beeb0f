/* Every fact of a call, against scripted peers. */
#include "calls.h"

#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#define OK_REPLY "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

static void the_request_leaves_as_given_and_the_reply_becomes_facts(void **state)
{
    static struct peer p;
    struct one_call o = { 0 };
    struct bs_caller *c = caller_open(NULL, NULL);

    (void)state;
    peer_start(&p, peer_reply, "HTTP/1.1 201 Created\r\nContent-Length: 4\r\n\r\nbody");
    const struct bs_facts *f = post(c, &o, p.port);
    assert_int_equal(f->wire, BS_WIRE_REPLIED);
    assert_int_equal(f->status, 201);
    assert_true(f->sent);
    assert_str(f->body, "body");
    assert_false(f->body_cut);
    assert_true(f->started_at.us > 0 && f->ended_at.us >= f->started_at.us);
    c->ops->free(c);
    peer_stop(&p);
    char want[512];
    snprintf(want, sizeof(want),
             "POST /p HTTP/1.1\r\nHost: 127.0.0.1:%u\r\nUser-Agent: Backstop/" BS_VERSION "\r\n"
             "Accept: */*\r\nContent-Type: application/json\r\nIdempotency-Key: k-1\r\n"
             "Content-Length: 5\r\n\r\nhello",
             p.port);
    assert_string_equal(p.last, want);
    call_done(&o);
}

static void a_get_has_no_body_and_a_handle_serves_both_methods(void **state)
{
    static struct peer p;
    struct one_call o = { 0 };
    struct bs_caller *c = caller_open(NULL, NULL);
    char url[64];

    (void)state;
    peer_start(&p, peer_reply, OK_REPLY);
    assert_int_equal(post(c, &o, p.port)->status, 200);
    snprintf(url, sizeof(url), "http://127.0.0.1:%u/orders/a%%2Fb/../x", p.port);
    call_begin(c, &o, "GET", url);
    assert_int_equal(call_next(c)->facts.status, 200);
    assert_int_equal(post(c, &o, p.port)->status, 200);
    call_begin(c, &o, "GET", url);
    assert_int_equal(call_next(c)->facts.status, 200);
    c->ops->free(c);
    peer_stop(&p);
    assert_int_equal(p.connections, 1);
    assert_int_equal(p.requests, 4);
    assert_ptr_equal(strstr(p.last, "GET /orders/a%2Fb/../x HTTP/1.1\r\n"), p.last);
    assert_null(strstr(p.last, "hello"));
    assert_null(strstr(p.last, "Content-Length"));
    call_done(&o);
}

/* Answers the first request; the second dies unanswered on the kept-alive connection. */
static void answer_then_die(struct peer *p, int fd, int nth)
{
    if (!peer_read_request(p, fd))
        return;
    peer_write(fd, OK_REPLY);
    if (nth == 1)
        (void)peer_read_request(p, fd);
}

static void a_post_whose_kept_alive_connection_dies_is_sent_once(void **state)
{
    static struct peer p;
    struct one_call o = { 0 };
    struct bs_caller *c = caller_open(NULL, NULL);

    (void)state;
    peer_start(&p, answer_then_die, NULL);
    assert_int_equal(post(c, &o, p.port)->wire, BS_WIRE_REPLIED);
    const struct bs_facts *f = post(c, &o, p.port);
    assert_int_equal(f->wire, BS_WIRE_RESET);
    assert_true(f->sent);
    assert_int_equal(f->status, 0);
    assert_int_equal(post(c, &o, p.port)->wire, BS_WIRE_REPLIED);
    c->ops->free(c);
    peer_stop(&p);
    assert_int_equal(p.requests, 3); /* one, the one that died, and the third */
    call_done(&o);
}

static void answer_and_close(struct peer *p, int fd, int nth)
{
    (void)nth;
    if (peer_read_request(p, fd))
        peer_write(fd, p->arg);
}

static void a_connection_closed_while_idle_costs_nothing(void **state)
{
    static struct peer p;
    struct one_call o = { 0 };
    struct bs_caller *c = caller_open(NULL, NULL);

    (void)state;
    peer_start(&p, answer_and_close, OK_REPLY);
    for (int i = 0; i < 5; i++) {
        assert_int_equal(post(c, &o, p.port)->wire, BS_WIRE_REPLIED);
        run_until(c, &p.connections, i + 1);
        /* The close may not have arrived yet: let the loop see it. */
        c->ops->wait(c, NULL, bs_boot_us() + 20000);
    }
    c->ops->free(c);
    peer_stop(&p);
    assert_int_equal(p.requests, 5);
    call_done(&o);
}

static void a_refused_connection_sent_nothing(void **state)
{
    struct one_call o = { 0 };
    struct bs_caller *c = caller_open(NULL, NULL);
    uint16_t port = 0;

    (void)state;
    close(listen_somewhere(&port, 1));
    const struct bs_facts *f = post(c, &o, port);
    assert_int_equal(f->wire, BS_WIRE_CONNECT_REFUSED);
    assert_false(f->sent);
    assert_true(strlen(f->detail) > 0);
    c->ops->free(c);
    call_done(&o);
}

/* A full accept queue drops further connection requests without a word. */
static void a_connect_time_out_sent_nothing(void **state)
{
    struct one_call o[4] = { 0 };
    struct bs_caller *c = caller_open(NULL, NULL);
    uint16_t port = 0;
    int fd = listen_somewhere(&port, 0);
    char url[64];
    uint32_t timed_out = 0;

    (void)state;
    snprintf(url, sizeof(url), "http://127.0.0.1:%u/p", port);
    for (size_t i = 0; i < BS_COUNT(o); i++) {
        call_begin(c, &o[i], "POST", url);
        c->ops->cancel(c, &o[i].call);
        assert_ptr_equal(c->ops->finished(c), &o[i].call);
        o[i].call.connect_timeout = BS_MS(300);
        o[i].call.timeout = BS_MS(1500);
        c->ops->start(c, &o[i].call, bs_now(bs_clock_system()));
    }
    for (size_t i = 0; i < BS_COUNT(o); i++) {
        const struct bs_facts *f = &call_next(c)->facts;

        if (f->wire == BS_WIRE_CONNECT_TIMEOUT) {
            assert_false(f->sent);
            timed_out++;
        } else {
            assert_int_equal(f->wire, BS_WIRE_TIMEOUT); /* in the queue: connected and sent */
            assert_true(f->sent);
        }
    }
    assert_in_range(timed_out, 1, 3);
    c->ops->free(c);
    close(fd);
    for (size_t i = 0; i < BS_COUNT(o); i++)
        call_done(&o[i]);
}

static void read_then_hang(struct peer *p, int fd, int nth)
{
    (void)nth;
    if (peer_read_request(p, fd)) {
        peer_write(fd, p->arg);
        peer_wait_close(fd);
    }
}

static void expect_time_out(const char *beginning)
{
    static struct peer p;
    struct one_call o = { 0 };
    struct bs_caller *c = caller_open(NULL, NULL);
    char url[64];

    peer_start(&p, read_then_hang, beginning);
    snprintf(url, sizeof(url), "http://127.0.0.1:%u/p", p.port);
    call_begin(c, &o, "POST", url);
    c->ops->cancel(c, &o.call);
    assert_ptr_equal(c->ops->finished(c), &o.call);
    o.call.timeout = BS_MS(300);
    int64_t began_us = bs_boot_us();
    c->ops->start(c, &o.call, bs_now(bs_clock_system()));
    const struct bs_facts *f = &call_next(c)->facts;
    assert_int_equal(f->wire, BS_WIRE_TIMEOUT);
    assert_true(f->sent);
    assert_in_range(bs_boot_us() - began_us, 250000, 3000000);
    c->ops->free(c);
    peer_stop(&p);
    call_done(&o);
}

static void a_time_out_after_sending_is_known_as_sent(void **state)
{
    (void)state;
    expect_time_out("");
    expect_time_out("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nbeginning");
}

static void read_then_reset(struct peer *p, int fd, int nth)
{
    (void)nth;
    if (peer_read_request(p, fd)) {
        peer_write(fd, p->arg);
        peer_reset(fd);
    }
}

static void expect_wire(peer_script script, const char *reply, enum bs_wire wire)
{
    static struct peer p;
    struct one_call o = { 0 };
    struct bs_caller *c = caller_open(NULL, NULL);

    peer_start(&p, script, reply);
    const struct bs_facts *f = post(c, &o, p.port);
    if (f->wire != wire)
        fail_msg("%s (%s) instead of %s for: %s", bs_wire_code(f->wire), f->detail,
                 bs_wire_code(wire), reply);
    assert_true(f->sent);
    c->ops->free(c);
    peer_stop(&p);
    assert_int_equal(p.requests, 1);
    call_done(&o);
}

static void an_end_before_the_whole_reply_is_a_reset(void **state)
{
    (void)state;
    expect_wire(read_then_reset, "", BS_WIRE_RESET);
    expect_wire(answer_and_close, "", BS_WIRE_RESET);
    expect_wire(answer_and_close, "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf",
                BS_WIRE_RESET);
    expect_wire(answer_and_close, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhal",
                BS_WIRE_RESET);
}

static void what_is_not_http_is_bad_http(void **state)
{
    (void)state;
    expect_wire(answer_and_close, "SSH-2.0-OpenSSH_9.2\r\n", BS_WIRE_BAD_HTTP);
    expect_wire(answer_and_close, "{\"outcome\":\"success\"}", BS_WIRE_BAD_HTTP);
}

static const struct bs_facts *facts_of(struct bs_caller *c, struct one_call *o, struct peer *p,
                                       const char *reply)
{
    peer_start(p, answer_and_close, reply);
    const struct bs_facts *f = post(c, o, p->port);
    peer_stop(p);
    assert_int_equal(f->wire, BS_WIRE_REPLIED);
    return f;
}

static void a_redirect_is_not_followed_and_its_target_is_kept(void **state)
{
    static struct peer p, target;
    struct one_call o = { 0 };
    struct bs_caller *c = caller_open(NULL, NULL);
    char reply[256], where[64];

    (void)state;
    peer_start(&target, peer_reply, OK_REPLY);
    snprintf(where, sizeof(where), "http://127.0.0.1:%u/there", target.port);
    for (int i = 0; i < 2; i++) {
        int status = i ? 308 : 302;

        snprintf(reply, sizeof(reply), "HTTP/1.1 %d X\r\nLocation: %s\r\nContent-Length: 0\r\n\r\n",
                 status, where);
        const struct bs_facts *f = facts_of(c, &o, &p, reply);
        assert_int_equal(f->status, status);
        assert_str(f->location, where);
    }
    c->ops->free(c);
    peer_stop(&target);
    assert_int_equal(target.connections, 0);
    call_done(&o);
}

static void the_largest_retry_after_counts_and_only_the_last_reply_speaks(void **state)
{
    static struct peer p;
    struct one_call o = { 0 };
    struct bs_caller *c = caller_open(NULL, NULL);

    (void)state;
    const struct bs_facts *f = facts_of(c, &o, &p,
                                        "HTTP/1.1 103 Early Hints\r\nRetry-After: 999\r\n\r\n"
                                        "HTTP/1.1 503 X\r\nretry-after: 60\r\nRetry-After: 90\r\n"
                                        "Retry-After: soon\r\nContent-Length: 0\r\n\r\n");
    assert_int_equal(f->status, 503);
    assert_true(f->retry_after.given);
    assert_int_equal(f->retry_after.delay.us, 90 * 1000000);
    assert_int_equal(f->location.n, 0);
    f = facts_of(c, &o, &p, "HTTP/1.1 204 No Content\r\n\r\n");
    assert_int_equal(f->status, 204);
    assert_false(f->retry_after.given);
    assert_int_equal(f->body.n, 0);
    c->ops->free(c);
    call_done(&o);
}

static void hold(struct peer *p, int fd, int nth)
{
    (void)nth;
    if (p->arg || peer_read_request(p, fd))
        peer_wait_close(fd);
}

static void a_cancelled_call_tells_whether_it_was_sent(void **state)
{
    static struct peer p;
    struct one_call o = { 0 };
    struct bs_caller *c = caller_open(NULL, "slow.test=!HANG");
    char url[64];

    (void)state;
    peer_start(&p, hold, NULL);
    snprintf(url, sizeof(url), "http://127.0.0.1:%u/p", p.port);
    call_begin(c, &o, "POST", url);
    c->ops->cancel(c, &o.call);
    assert_ptr_equal(c->ops->finished(c), &o.call);
    assert_int_equal(o.call.facts.wire, BS_WIRE_CANCELLED);
    assert_false(o.call.facts.sent);
    call_begin(c, &o, "POST", "http://slow.test/p");
    c->ops->cancel(c, &o.call);
    assert_ptr_equal(c->ops->finished(c), &o.call);
    assert_int_equal(o.call.facts.wire, BS_WIRE_CANCELLED);
    assert_false(o.call.facts.sent);
    call_begin(c, &o, "POST", url);
    run_until(c, &p.requests, 1);
    c->ops->cancel(c, &o.call);
    assert_ptr_equal(c->ops->finished(c), &o.call);
    assert_null(c->ops->finished(c));
    assert_int_equal(o.call.facts.wire, BS_WIRE_CANCELLED);
    assert_true(o.call.facts.sent);
    c->ops->free(c);
    peer_stop(&p);
    call_done(&o);
}

static void a_cancel_after_the_end_changes_nothing(void **state)
{
    struct one_call o = { 0 };
    struct bs_caller *c = caller_open(NULL, NULL);

    (void)state;
    call_begin(c, &o, "POST", "ftp://127.0.0.1/p");
    c->ops->cancel(c, &o.call);
    assert_ptr_equal(c->ops->finished(c), &o.call);
    assert_null(c->ops->finished(c));
    assert_int_equal(o.call.facts.wire, BS_WIRE_INTERNAL);
    c->ops->free(c);
    call_done(&o);
}

static void what_cannot_be_called_comes_back_as_our_own_fault(void **state)
{
    static const char *const urls[] = { "ftp://127.0.0.1/p", "no url", "http://", "file:///etc/x" };
    struct one_call o = { 0 };
    struct bs_caller *c = caller_open(NULL, NULL);

    (void)state;
    for (size_t i = 0; i < BS_COUNT(urls); i++) {
        call_begin(c, &o, "POST", urls[i]);
        const struct bs_facts *f = &call_next(c)->facts;
        assert_int_equal(f->wire, BS_WIRE_INTERNAL);
        assert_false(f->sent);
    }
    c->ops->free(c);
    call_done(&o);
}

static void the_environment_names_no_proxy(void **state)
{
    static struct peer p;
    struct one_call o = { 0 };

    (void)state;
    setenv("http_proxy", "http://127.0.0.1:1", 1);
    setenv("all_proxy", "http://127.0.0.1:1", 1);
    struct bs_caller *c = caller_open(NULL, NULL);
    peer_start(&p, peer_reply, OK_REPLY);
    assert_int_equal(post(c, &o, p.port)->status, 200);
    c->ops->free(c);
    peer_stop(&p);
    unsetenv("http_proxy");
    unsetenv("all_proxy");
    call_done(&o);
}

static void a_caller_may_be_freed_with_calls_under_way(void **state)
{
    static struct peer p;
    struct one_call o[3] = { 0 };
    struct bs_caller *c = caller_open(NULL, "slow.test=!HANG");
    char url[64];

    (void)state;
    peer_start(&p, hold, NULL);
    snprintf(url, sizeof(url), "http://127.0.0.1:%u/p", p.port);
    call_begin(c, &o[0], "POST", url);
    call_begin(c, &o[1], "POST", "http://slow.test/");
    run_until(c, &p.requests, 1);
    call_begin(c, &o[2], "POST", url);
    c->ops->free(c);
    peer_stop(&p);
    for (size_t i = 0; i < BS_COUNT(o); i++)
        call_done(&o[i]);
}

static void *send_mail(void *arg)
{
    struct bs_mailbox *m = arg;
    static struct bs_node node;

    return bs_mailbox_send(m, 0, &node) ? m : NULL;
}

static void mail_ends_the_wait(void **state)
{
    struct bs_caller *c = caller_open(NULL, NULL);
    struct bs_mailbox m;
    size_t cap = 4;
    pthread_t t;

    (void)state;
    assert_int_equal(bs_mailbox_init(&m, &cap, 1, true, NULL), BS_OK);
    for (int i = 0; i < 50; i++) {
        int64_t began_us = bs_boot_us();

        assert_int_equal(pthread_create(&t, NULL, send_mail, &m), 0);
        while (!bs_mailbox_take(&m)) {
            c->ops->run(c, bs_now(bs_clock_system()));
            c->ops->wait(c, &m, began_us + 20000000);
            assert_true(bs_boot_us() - began_us < 10000000);
        }
        void *sent = NULL;
        pthread_join(t, &sent);
        assert_ptr_equal(sent, &m);
    }
    c->ops->run(c, bs_now(bs_clock_system()));
    int64_t began_us = bs_boot_us();
    c->ops->wait(c, &m, began_us + 30000);
    assert_in_range(bs_boot_us() - began_us, 29000, 5000000);
    c->ops->free(c);
    bs_mailbox_done(&m);
}

/* More calls at once than one multi handle takes, all to one peer that answers each. */
static void many_calls_at_once_all_come_back(void **state)
{
    enum { CALLS = 700 };
    static struct one_call o[CALLS];
    struct bs_caller *c = caller_open(NULL, NULL);
    uint16_t port = 0;
    int fd = listen_somewhere(&port, 0);
    char url[64];

    (void)state;
    close(fd);
    snprintf(url, sizeof(url), "http://127.0.0.1:%u/p", port);
    for (int round = 0; round < 2; round++) {
        for (size_t i = 0; i < CALLS; i++)
            call_begin(c, &o[i], "POST", url);
        for (size_t i = 0; i < CALLS; i++)
            assert_int_equal(call_next(c)->facts.wire, BS_WIRE_CONNECT_REFUSED);
        assert_null(c->ops->finished(c));
    }
    c->ops->free(c);
    for (size_t i = 0; i < CALLS; i++)
        call_done(&o[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_request_leaves_as_given_and_the_reply_becomes_facts),
        cmocka_unit_test(a_get_has_no_body_and_a_handle_serves_both_methods),
        cmocka_unit_test(a_post_whose_kept_alive_connection_dies_is_sent_once),
        cmocka_unit_test(a_connection_closed_while_idle_costs_nothing),
        cmocka_unit_test(a_refused_connection_sent_nothing),
        cmocka_unit_test(a_connect_time_out_sent_nothing),
        cmocka_unit_test(a_time_out_after_sending_is_known_as_sent),
        cmocka_unit_test(an_end_before_the_whole_reply_is_a_reset),
        cmocka_unit_test(what_is_not_http_is_bad_http),
        cmocka_unit_test(a_redirect_is_not_followed_and_its_target_is_kept),
        cmocka_unit_test(the_largest_retry_after_counts_and_only_the_last_reply_speaks),
        cmocka_unit_test(a_cancelled_call_tells_whether_it_was_sent),
        cmocka_unit_test(a_cancel_after_the_end_changes_nothing),
        cmocka_unit_test(what_cannot_be_called_comes_back_as_our_own_fault),
        cmocka_unit_test(the_environment_names_no_proxy),
        cmocka_unit_test(a_caller_may_be_freed_with_calls_under_way),
        cmocka_unit_test(mail_ends_the_wait),
        cmocka_unit_test(many_calls_at_once_all_come_back),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
