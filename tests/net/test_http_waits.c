/* The HTTP server: time limits, clients that leave, the race for the reply, the stop. */
#include "serve.h"

#include <sys/socket.h>
#include <unistd.h>

#define WAIT_REQUEST "POST /wait HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\nhi"

static void slow_headers_end_the_connection_in_time(void **state)
{
    static struct served s;

    (void)state;
    serve_start(&s, &(struct bs_http_options){ .header_limit = BS_MS(300) });
    int fd = client_open(&s);
    int64_t began_us = bs_boot_us();
    /* A byte now and then keeps an idle time-out away, not this limit. */
    client_send(fd, "POST /echo HTTP/1.1\r\n");
    for (int i = 0; i < 200 && bs_boot_us() - began_us < 5000000; i++) {
        char byte;

        if (recv(fd, &byte, 1, MSG_DONTWAIT | MSG_PEEK) >= 0)
            break;
        client_send(fd, "X");
        usleep(10000);
    }
    assert_in_range(bs_boot_us() - began_us, 290000, 3000000);
    assert_begins(client_reply(fd), "HTTP/1.1 408 ");
    assert_true(client_sees_close(fd));
    close(fd);
    figures_reach(&s, 0, 0);
    serve_stop(&s);
}

static void the_header_limit_also_guards_a_kept_alive_connection(void **state)
{
    static struct served s;

    (void)state;
    serve_start(&s, &(struct bs_http_options){ .header_limit = BS_MS(300) });
    int fd = client_open(&s);
    client_send(fd, "GET /echo HTTP/1.1\r\nHost: x\r\n\r\n");
    assert_begins(client_reply(fd), "HTTP/1.1 200 ");
    usleep(400000); /* idle is not slow */
    client_send(fd, "GET /echo HTTP/1.1\r\nHost: x\r\n\r\n");
    assert_begins(client_reply(fd), "HTTP/1.1 200 ");
    int64_t began_us = bs_boot_us();
    client_send(fd, "GET /echo HTTP/1.1\r\nHost: x\r\n");
    assert_begins(client_reply(fd), "HTTP/1.1 408 ");
    assert_in_range(bs_boot_us() - began_us, 250000, 3000000);
    close(fd);
    serve_stop(&s);
}

static void a_slow_body_is_answered_408(void **state)
{
    static struct served s;

    (void)state;
    serve_start(&s, &(struct bs_http_options){ .body_limit = BS_MS(300) });
    for (int chunked = 0; chunked < 2; chunked++) {
        int fd = client_open(&s);
        int64_t began_us = bs_boot_us();

        client_send(fd, "POST /echo HTTP/1.1\r\nHost: x\r\n");
        client_send(fd, chunked ? "Transfer-Encoding: chunked\r\n\r\n3\r\nab"
                                : "Content-Length: 100\r\n\r\nbeginning");
        const char *reply = client_reply(fd);
        assert_in_range(bs_boot_us() - began_us, 290000, 3000000);
        assert_begins(reply, "HTTP/1.1 408 Request Timeout\r\n");
        assert_non_null(strstr(reply, "Content-Type: text/plain\r\n"));
        assert_non_null(strstr(reply, "X-Refused: yes\r\n"));
        assert_non_null(strstr(reply, "\r\n\r\nrefused"));
        assert_true(client_sees_close(fd));
        close(fd);
    }
    assert_int_equal(s.handled, 0);
    assert_int_equal(s.refused, 2);
    figures_reach(&s, 0, 0);
    serve_stop(&s);
}

static void an_idle_connection_is_closed(void **state)
{
    static struct served s;

    (void)state;
    serve_start(&s, &(struct bs_http_options){ .idle_limit = BS_MS(200) });
    int fd = client_open(&s);
    client_send(fd, "GET /echo HTTP/1.1\r\nHost: x\r\n\r\n");
    assert_begins(client_reply(fd), "HTTP/1.1 200 ");
    int64_t began_us = bs_boot_us();
    assert_true(client_sees_close(fd));
    assert_in_range(bs_boot_us() - began_us, 150000, 3000000);
    close(fd);
    figures_reach(&s, 0, 0);
    serve_stop(&s);
}

static void large(struct bs_http_request *r)
{
    struct bs_buf b = { .max = 16 << 20 };
    static char block[64 << 10];

    memset(block, 'x', sizeof(block));
    for (int i = 0; i < 200; i++)
        bs_buf_add(&b, (struct bs_str){ block, sizeof(block) });
    bs_http_reply(r, 200, "text/plain", &b);
}

static void a_client_that_does_not_read_its_reply_is_closed(void **state)
{
    static struct served s;

    (void)state;
    serve_start(&s, &(struct bs_http_options){ .body_limit = BS_MS(300) });
    s.echo = large;
    int fd = client_open(&s);
    client_send(fd, "GET /echo HTTP/1.1\r\nHost: x\r\n\r\n");
    figures_reach(&s, 1, 0);
    figures_reach(&s, 0, 0);
    close(fd);
    serve_stop(&s);
}

static void a_time_out_answers_and_the_late_worker_does_no_harm(void **state)
{
    static struct served s;
    struct bs_http_figures f;

    (void)state;
    serve_start(&s, &(struct bs_http_options){ 0 });
    s.wait_limit = BS_MS(100);
    int fd = client_open(&s);
    for (int i = 0; i < 3; i++) {
        client_send(fd, WAIT_REQUEST);
        const char *reply = client_reply(fd);
        assert_begins(reply, "HTTP/1.1 503 ");
        assert_non_null(strstr(reply, "too late"));
    }
    for (int i = 0; i < 3; i++) {
        struct bs_http_request *r = waiting_take(&s);

        assert_int_equal(r->body.n, 2); /* still there for the worker */
        assert_memory_equal(r->body.p, "hi", 2);
        bs_http_ready(r);
    }
    client_send(fd, "GET /echo HTTP/1.1\r\nHost: x\r\n\r\n");
    assert_begins(client_reply(fd), "HTTP/1.1 200 ");
    bs_http_figures(s.server, &f);
    assert_int_equal(f.timeouts, 3);
    assert_int_equal(f.requests, 4);
    assert_int_equal(s.ready, 0);
    assert_int_equal(s.timed_out, 3);
    close(fd);
    serve_stop(&s);
}

static void a_client_that_leaves_while_it_waits_leaves_nothing_behind(void **state)
{
    static struct served s;

    (void)state;
    serve_start(&s, &(struct bs_http_options){ 0 });
    for (int i = 0; i < 30; i++) {
        struct linger now = { .l_onoff = i % 2, .l_linger = 0 };
        int fd = client_open(&s);

        client_send(fd, WAIT_REQUEST);
        waiting_reach(&s, 1);
        setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now)); /* every other one by reset */
        close(fd);
        bs_http_ready(waiting_take(&s));
        figures_reach(&s, 0, 0);
    }
    s.wait_limit = BS_MS(50);
    int fd = client_open(&s);
    client_send(fd, WAIT_REQUEST);
    waiting_reach(&s, 1);
    close(fd);
    figures_reach(&s, 0, 0); /* by the time-out */
    bs_http_ready(waiting_take(&s));
    serve_stop(&s);
    assert_int_equal(s.ready, 30);
    assert_int_equal(s.timed_out, 1);
}

static void *ready_a_little_later(void *served)
{
    struct bs_http_request *r = NULL;

    usleep(100000);
    while ((r = waiting_take(served)))
        bs_http_ready(r);
    return NULL;
}

/* A commit that is under way when the server is told to stop is answered as what it is. */
static void a_stop_lets_work_that_is_nearly_done_answer(void **state)
{
    static struct served s;
    int fds[20];
    pthread_t worker;

    (void)state;
    serve_start(&s, &(struct bs_http_options){ 0 });
    for (size_t i = 0; i < BS_COUNT(fds); i++) {
        fds[i] = client_open(&s);
        client_send(fds[i], WAIT_REQUEST);
    }
    waiting_reach(&s, BS_COUNT(fds));
    assert_int_equal(pthread_create(&worker, NULL, ready_a_little_later, &s), 0);
    int64_t began_us = bs_boot_us();
    bs_http_stop(s.server, BS_SEC(20));
    assert_in_range(bs_boot_us() - began_us, 50000, 10000000);
    for (size_t i = 0; i < BS_COUNT(fds); i++) {
        assert_begins(client_reply(fds[i]), "HTTP/1.1 201 ");
        assert_true(client_sees_close(fds[i]));
        close(fds[i]);
    }
    pthread_join(worker, NULL);
}

static void a_stop_answers_everybody_who_waits(void **state)
{
    static struct served s;
    int fds[100];
    struct bs_http_request *r = NULL;

    (void)state;
    serve_start(&s, &(struct bs_http_options){ 0 });
    for (size_t i = 0; i < BS_COUNT(fds); i++) {
        fds[i] = client_open(&s);
        client_send(fds[i], WAIT_REQUEST);
    }
    waiting_reach(&s, BS_COUNT(fds));
    int idle = client_open(&s);
    for (int i = 0; i < 10; i++) /* finished in time: their own answer */
        bs_http_ready(waiting_take(&s));
    bs_http_stop(s.server, BS_MS(300));
    int refused = 0, ready = 0;
    for (size_t i = 0; i < BS_COUNT(fds); i++) {
        const char *reply = client_reply(fds[i]);

        refused += strncmp(reply, "HTTP/1.1 503 ", 13) == 0 && strstr(reply, "X-Refused: yes");
        ready += strncmp(reply, "HTTP/1.1 201 ", 13) == 0;
        assert_true(client_sees_close(fds[i]));
        close(fds[i]);
    }
    assert_int_equal(refused, 90);
    assert_int_equal(ready, 10);
    assert_true(client_sees_close(idle));
    close(idle);
    while ((r = waiting_take(&s))) /* owed longer than the grace: harmless */
        bs_http_ready(r);
}

struct hammer {
    struct served *s;
    uint64_t seed;
    _Atomic bool *end;
};

static void *work(void *arg)
{
    struct hammer *h = arg;

    while (!atomic_load(h->end)) {
        struct bs_http_request *r = waiting_take(h->s);

        if (!r) {
            usleep(100);
            continue;
        }
        h->seed = h->seed * 6364136223846793005u + 1442695040888963407u;
        /* Half are done at once, the others close to the limit of 5 ms, before or after. */
        if (h->seed >> 63)
            usleep((useconds_t)(4000 + (h->seed >> 40) % 2000));
        bs_http_ready(r);
    }
    return NULL;
}

/* Both answers of /wait, whose heads differ in length, by the last word of their bodies. */
static bool read_answer(int fd)
{
    char text[1024] = { 0 };

    for (size_t n = 0; n < sizeof(text) - 1;) {
        if (recv(fd, text + n, 1, 0) != 1)
            return false;
        n++;
        if (n > 12 && memcmp(text, "HTTP/1.1 201", 12) == 0 && strstr(text, "\r\n\r\nready"))
            return true;
        if (n > 12 && memcmp(text, "HTTP/1.1 503", 12) == 0 && strstr(text, "\r\n\r\ntoo late"))
            return true;
    }
    return false;
}

static void *ask(void *arg)
{
    struct hammer *h = arg;
    int fd = client_open(h->s);
    uintptr_t answers = 0;

    for (int i = 0; i < 150; i++) {
        client_send(fd, WAIT_REQUEST);
        answers += read_answer(fd);
    }
    close(fd);
    return (void *)answers;
}

static void each_request_has_one_answer_whoever_wins_the_race(void **state)
{
    enum { ASKERS = 12, WORKERS = 12, EACH = 150 };
    static struct served s;
    _Atomic bool end = false;
    pthread_t askers[ASKERS], workers[WORKERS];
    struct hammer asking = { .s = &s }, working[WORKERS];
    struct bs_http_figures f;
    uintptr_t answers = 0;

    (void)state;
    serve_start(&s, &(struct bs_http_options){ 0 });
    s.wait_limit = BS_MS(5);
    for (size_t i = 0; i < WORKERS; i++) {
        working[i] = (struct hammer){ .s = &s, .seed = i * 7919 + 1, .end = &end };
        assert_int_equal(pthread_create(&workers[i], NULL, work, &working[i]), 0);
    }
    for (size_t i = 0; i < ASKERS; i++)
        assert_int_equal(pthread_create(&askers[i], NULL, ask, &asking), 0);
    for (size_t i = 0; i < ASKERS; i++) {
        void *got = NULL;

        pthread_join(askers[i], &got);
        answers += (uintptr_t)got;
    }
    atomic_store(&end, true);
    for (size_t i = 0; i < WORKERS; i++)
        pthread_join(workers[i], NULL);
    bs_http_figures(s.server, &f);
    assert_int_equal(answers, ASKERS * EACH);
    assert_int_equal(f.requests, ASKERS * EACH);
    assert_int_equal(s.ready + s.timed_out, ASKERS * EACH);
    assert_int_equal(s.timed_out, f.timeouts);
    assert_true(s.ready > 0 && s.timed_out > 0);
    serve_stop(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(slow_headers_end_the_connection_in_time),
        cmocka_unit_test(the_header_limit_also_guards_a_kept_alive_connection),
        cmocka_unit_test(a_slow_body_is_answered_408),
        cmocka_unit_test(an_idle_connection_is_closed),
        cmocka_unit_test(a_client_that_does_not_read_its_reply_is_closed),
        cmocka_unit_test(a_time_out_answers_and_the_late_worker_does_no_harm),
        cmocka_unit_test(a_client_that_leaves_while_it_waits_leaves_nothing_behind),
        cmocka_unit_test(a_stop_lets_work_that_is_nearly_done_answer),
        cmocka_unit_test(a_stop_answers_everybody_who_waits),
        cmocka_unit_test(each_request_has_one_answer_whoever_wins_the_race),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
