/* The HTTP server: what a request and a reply carry. */
#include "serve.h"

#include <sys/stat.h>
#include <unistd.h>

static const char *body_of(const char *reply)
{
    const char *end = strstr(reply, "\r\n\r\n");

    return end ? end + 4 : "";
}

static void a_body_arrives_byte_for_byte(void **state)
{
    static struct served s;

    (void)state;
    serve_start(&s, &(struct bs_http_options){ 0 });
    int fd = client_open(&s);
    client_send(fd, "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 11\r\n\r\n{ \"a\" : 1.0");
    const char *reply = client_reply(fd);
    assert_begins(reply, "HTTP/1.1 200 OK\r\n");
    assert_non_null(strstr(reply, "Content-Type: application/octet-stream\r\n"));
    assert_string_equal(body_of(reply), "{ \"a\" : 1.0");
    client_send(fd, "POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
                    "3\r\nabc\r\n2;x=y\r\nde\r\n0\r\n\r\n");
    assert_string_equal(body_of(client_reply(fd)), "abcde");
    client_send(fd, "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n");
    reply = client_reply(fd);
    assert_begins(reply, "HTTP/1.1 200 OK\r\n");
    assert_string_equal(body_of(reply), "");
    close(fd);
    serve_stop(&s);
}

static void a_large_body_arrives_whole_in_both_forms(void **state)
{
    enum { N = 3 << 20 };
    static struct served s;
    static char body[N + 1];
    char head[128];

    (void)state;
    for (size_t i = 0; i < N; i++)
        body[i] = (char)('a' + i % 23);
    serve_start(&s, &(struct bs_http_options){ 0 });
    int fd = client_open(&s);
    snprintf(head, sizeof(head), "POST /big HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n", N);
    client_send(fd, head);
    client_send(fd, body);
    assert_string_equal(body_of(client_reply(fd)), body);
    snprintf(head, sizeof(head),
             "POST /big HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n", N);
    client_send(fd, head);
    client_send(fd, body);
    client_send(fd, "\r\n0\r\n\r\n");
    assert_string_equal(body_of(client_reply(fd)), body);
    close(fd);
    serve_stop(&s);
}

static void each_name(void *ctx, struct bs_str name, struct bs_str value)
{
    bs_buf_fmt(ctx, "[%.*s=%.*s]", BS_STR_FMT(name), BS_STR_FMT(value));
}

static void describe(struct bs_http_request *r)
{
    struct bs_buf b = { .max = 4096 };
    bool twice = true;
    struct bs_str q = bs_http_query(r, "q", &twice);
    struct bs_str none = bs_http_query(r, "none", NULL);
    struct bs_str token = bs_http_header(r, "authorization");

    bs_buf_fmt(&b, "%d %.*s q=%.*s twice=%d none=%s token=%.*s ", (int)r->method,
               BS_STR_FMT(r->path), BS_STR_FMT(q), twice, none.p ? "set" : "unset",
               BS_STR_FMT(token));
    bs_http_query_each(r, each_name, &b);
    bs_http_reply_header(r, "X-Own", BS_STR("value"));
    bs_http_reply(r, 200, "text/plain", &b);
}

static void expect_description(struct served *s, const char *head, const char *want)
{
    int fd = client_open(s);

    client_send(fd, head);
    client_send(fd, " HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer t\r\n\r\n");
    const char *reply = client_reply(fd);
    assert_string_equal(body_of(reply), want);
    assert_non_null(strstr(reply, "X-Own: value\r\n"));
    close(fd);
}

static void path_query_and_headers_are_told_apart(void **state)
{
    static struct served s;

    (void)state;
    serve_start(&s, &(struct bs_http_options){ 0 });
    s.echo = describe;
    expect_description(&s, "GET /v1/a%2Fb%20c%e4%bb%bb?q=1%262&q=3&r&s=a+b",
                       "0 /v1/a/b c任 q=1&2 twice=1 none=unset token=Bearer t "
                       "[q=1&2][q=3][r=][s=a b]");
    expect_description(&s, "DELETE /v1", "3 /v1 q= twice=0 none=unset token=Bearer t ");
    expect_description(&s, "PATCH /?q=", "4 / q= twice=0 none=unset token=Bearer t [q=]");
    expect_description(&s, "PUT /?none", "2 / q= twice=0 none=set token=Bearer t [none=]");
    serve_stop(&s);
}

static void a_target_with_nul_or_bad_text_is_refused(void **state)
{
    static const char *const targets[] = { "/echo%00x", "/echo%ff",    "/a%zz",      "/a%2",
                                           "/x?q=%00",  "/x?%c0%80=1", "/a%ed%a0%80" };
    static struct served s;

    (void)state;
    serve_start(&s, &(struct bs_http_options){ 0 });
    for (size_t i = 0; i < BS_COUNT(targets); i++) {
        int fd = client_open(&s);

        client_send(fd, "GET ");
        client_send(fd, targets[i]);
        client_send(fd, " HTTP/1.1\r\nHost: x\r\n\r\n");
        const char *reply = client_reply(fd);
        assert_begins(reply, "HTTP/1.1 400 ");
        assert_non_null(strstr(reply, "X-Refused: yes\r\n"));
        close(fd);
    }
    assert_int_equal(s.handled, 0);
    serve_stop(&s);
}

static void two_opinions_about_the_end_of_a_request_are_refused(void **state)
{
    static const char *const heads[] = {
        "Content-Length: 3\r\nContent-Length: 4\r\n",
        "Content-Length: 3\r\nContent-Length: 3\r\n",
        "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n",
        "Content-Length : 3\r\n",
        "Content-Length\t: 3\r\n",
        "Transfer-Encoding : chunked\r\nContent-Length: 0\r\n",
        "X: y\r\n Content-Length: 3\r\n",
        "Content-Length:\r\n 3\r\n",
        "X: y\rContent-Length: 3\r\n",
        "X: y\rContent-Length: 3\r\nContent-Length: 0\r\n",
        "X(y): z\r\n",
    };
    static struct served s;

    (void)state;
    serve_start(&s, &(struct bs_http_options){ 0 });
    for (size_t i = 0; i < BS_COUNT(heads); i++) {
        int fd = client_open(&s);

        client_send(fd, "POST /echo HTTP/1.1\r\nHost: x\r\n");
        client_send(fd, heads[i]);
        client_send(fd, "\r\n");
        assert_begins(client_reply(fd), "HTTP/1.1 400 ");
        assert_true(client_sees_close(fd));
        close(fd);
    }
    assert_int_equal(s.handled, 0);
    serve_stop(&s);
}

static void head_is_get_without_its_body(void **state)
{
    static struct served s;

    (void)state;
    serve_start(&s, &(struct bs_http_options){ 0 });
    s.echo = describe;
    int fd = client_open(&s);
    client_send(fd, "HEAD /v1 HTTP/1.1\r\nHost: x\r\n\r\n");
    assert_non_null(strstr(client_reply_to_head(fd), "Content-Length: 35\r\n"));
    client_send(fd, "GET /v1 HTTP/1.1\r\nHost: x\r\n\r\n");
    const char *reply = client_reply(fd);
    assert_begins(reply, "HTTP/1.1 200 OK\r\n"); /* and no byte of a body before it */
    assert_non_null(strstr(reply, "Content-Length: 35\r\n"));
    close(fd);
    serve_stop(&s);
}

static void pipelined_requests_are_answered_in_order(void **state)
{
    static struct served s;
    char want[16];

    (void)state;
    serve_start(&s, &(struct bs_http_options){ 0 });
    int fd = client_open(&s);
    for (int i = 0; i < 50; i++) {
        char request[128];

        snprintf(request, sizeof(request),
                 "POST /%s HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\n%03d",
                 i % 5 == 0 ? "wait" : "echo", i);
        client_send(fd, request);
    }
    for (int i = 0; i < 50; i++) {
        if (i % 5 == 0) {
            waiting_reach(&s, 1);
            bs_http_ready(waiting_take(&s));
        }
        snprintf(want, sizeof(want), "%03d", i);
        assert_string_equal(body_of(client_reply(fd)), i % 5 == 0 ? "ready" : want);
    }
    close(fd);
    assert_int_equal(s.handled, 50);
    serve_stop(&s);
}

static void a_waiting_request_is_answered_when_it_is_ready(void **state)
{
    static struct served s;
    int fds[20];

    (void)state;
    serve_start(&s, &(struct bs_http_options){ 0 });
    for (size_t i = 0; i < BS_COUNT(fds); i++) {
        fds[i] = client_open(&s);
        client_send(fds[i], "POST /wait HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\nhi");
    }
    waiting_reach(&s, BS_COUNT(fds));
    figures_reach(&s, BS_COUNT(fds), BS_COUNT(fds));
    for (size_t i = 0; i < BS_COUNT(fds); i++) {
        struct bs_http_request *r = waiting_take(&s);

        assert_int_equal(r->body.n, 2);
        assert_int_equal(r->method, BS_POST);
        bs_http_ready(r);
    }
    for (size_t i = 0; i < BS_COUNT(fds); i++) {
        assert_begins(client_reply(fds[i]), "HTTP/1.1 201 ");
        close(fds[i]);
    }
    figures_reach(&s, 0, 0);
    serve_stop(&s);
}

static void too_long_a_body_is_refused_before_it_is_sent(void **state)
{
    static struct served s;

    (void)state;
    serve_start(&s, &(struct bs_http_options){ 0 });
    int fd = client_open(&s);
    client_send(fd, "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 32769\r\n\r\n");
    const char *reply = client_reply(fd);
    assert_begins(reply, "HTTP/1.1 413 ");
    assert_non_null(strstr(reply, "X-Refused: yes\r\n"));
    assert_true(client_sees_close(fd));
    close(fd);
    fd = client_open(&s);
    client_send(fd, "POST /echo HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\n"
                    "Content-Length: 99999999999\r\n\r\n");
    assert_begins(client_reply(fd), "HTTP/1.1 413 ");
    close(fd);
    fd = client_open(&s);
    client_send(fd, "POST /echo HTTP/1.1\r\nHost: x\r\n"
                    "Content-Length: 99999999999999999999999999\r\n\r\n");
    reply = client_reply(fd);
    assert_true(strncmp(reply, "HTTP/1.1 4", 10) == 0);
    close(fd);
    assert_int_equal(s.handled, 0);
    serve_stop(&s);
}

static void send_chunks(int fd, int chunks, bool end)
{
    static char chunk[1024 + 8];
    int head = snprintf(chunk, sizeof(chunk), "400\r\n");

    memset(chunk + head, 'x', 1024);
    memcpy(chunk + head + 1024, "\r\n", 3);
    client_send(fd, "POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n");
    for (int i = 0; i < chunks; i++)
        client_send(fd, chunk);
    if (end)
        client_send(fd, "0\r\n\r\n");
}

static void too_long_a_body_in_chunks_is_refused_at_its_end(void **state)
{
    static struct served s;

    (void)state;
    serve_start(&s, &(struct bs_http_options){ 0 });
    int fd = client_open(&s);
    send_chunks(fd, 32, true);
    assert_begins(client_reply(fd), "HTTP/1.1 200 ");
    send_chunks(fd, 33, true);
    assert_begins(client_reply(fd), "HTTP/1.1 413 ");
    send_chunks(fd, 128, true);
    assert_begins(client_reply(fd), "HTTP/1.1 413 ");
    send_chunks(fd, 1, true);
    assert_begins(client_reply(fd), "HTTP/1.1 200 ");
    send_chunks(fd, 200, false); /* far too long: no reply, the connection ends */
    assert_true(client_sees_close(fd));
    close(fd);
    assert_int_equal(s.handled, 2);
    assert_int_equal(s.refused, 2);
    serve_stop(&s);
}

static _Atomic uint32_t asked;

static bool wants_body(void *ctx, struct bs_http_request *r)
{
    (void)ctx;
    atomic_fetch_add(&asked, 1);
    return bs_http_header(r, "Authorization").p;
}

static void tell_what_was_kept(struct bs_http_request *r)
{
    struct bs_buf b = { .max = 64 };

    bs_buf_fmt(&b, "%s %zu", r->unread ? "unread" : "kept", r->body.n);
    bs_http_reply(r, 200, "text/plain", &b);
}

/* A body of n bytes in one piece, or in chunks of 1 KiB. */
static const char *kept_of(int fd, const char *headers, size_t n, bool chunked)
{
    static char piece[(4 << 20) + 1];
    char head[256];

    memset(piece, 'x', n);
    piece[n] = '\0';
    client_send(fd, "POST /big HTTP/1.1\r\nHost: x\r\n");
    client_send(fd, headers);
    snprintf(head, sizeof(head), "Content-Length: %zu\r\n\r\n", n);
    client_send(fd, chunked ? "Transfer-Encoding: chunked\r\n\r\n" : head);
    for (size_t i = 0; chunked && i < n; i += 1024) {
        client_send(fd, "400\r\n");
        client_send(fd, piece + n - 1024);
        client_send(fd, "\r\n");
    }
    client_send(fd, chunked ? "0\r\n\r\n" : piece);
    return body_of(client_reply(fd));
}

static void a_large_body_that_nobody_wants_is_not_kept(void **state)
{
    static struct served s;

    (void)state;
    atomic_store(&asked, 0);
    serve_start(&s, &(struct bs_http_options){ .wants_body = wants_body });
    s.echo = tell_what_was_kept;
    int fd = client_open(&s);
    assert_string_equal(kept_of(fd, "", 16384, false), "kept 16384");
    assert_int_equal(asked, 0);
    assert_string_equal(kept_of(fd, "", 16385, false), "unread 0");
    assert_string_equal(kept_of(fd, "", 3 << 20, false), "unread 0");
    assert_string_equal(kept_of(fd, "", 64 << 10, true), "unread 0");
    assert_int_equal(asked, 3);
    assert_string_equal(kept_of(fd, "Authorization: a\r\n", 3 << 20, false), "kept 3145728");
    assert_string_equal(kept_of(fd, "Authorization: a\r\n", 64 << 10, true), "kept 65536");
    assert_int_equal(asked, 5);
    close(fd);
    serve_stop(&s);
}

static void all_large_bodies_share_one_limit(void **state)
{
    static struct served s;

    (void)state;
    serve_start(&s, &(struct bs_http_options){ .bodies_max = 4 << 20 });
    s.echo = tell_what_was_kept;
    int fd = client_open(&s), slow = client_open(&s);
    client_send(slow, "POST /big HTTP/1.1\r\nHost: x\r\nContent-Length: 3145728\r\n\r\n");
    client_send(slow, "x");
    figures_reach(&s, 2, 0);
    for (int i = 0; i < 3; i++) { /* whatever is done gives its room back */
        assert_string_equal(kept_of(fd, "", 1 << 20, false), "kept 1048576");
        assert_string_equal(kept_of(fd, "", 1 << 20, true), "kept 1048576");
        assert_string_equal(kept_of(fd, "", 2 << 20, false), "unread 0");
        assert_string_equal(kept_of(fd, "", 2 << 20, true), "unread 0");
    }
    close(slow);
    figures_reach(&s, 1, 0);
    assert_string_equal(kept_of(fd, "", 4 << 20, false), "kept 4194304");
    close(fd);
    serve_stop(&s);
}

static void the_unix_socket_knows_its_peer(void **state)
{
    static struct served s;
    struct bs_http_server *second = NULL;
    char folder[] = "/tmp/backstop-http-XXXXXX", path[64];
    struct stat st;
    struct bs_err err;

    (void)state;
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof(path), "%s/socket", folder);
    for (int i = 0; i < 2; i++) {
        serve_start(&s, &(struct bs_http_options){ .socket_path = path, .listen = "127.0.0.1:0" });
        assert_int_equal(lstat(path, &st), 0);
        assert_int_equal(st.st_mode & 0777, 0600);
        int fd = client_open_unix(path);
        client_send(fd, "GET /wait HTTP/1.1\r\nHost: x\r\n\r\n");
        waiting_reach(&s, 1);
        struct bs_http_request *r = waiting_take(&s);
        assert_true(r->local);
        assert_int_equal(r->peer_uid, getuid());
        bs_http_ready(r);
        assert_begins(client_reply(fd), "HTTP/1.1 201 ");
        close(fd);
        fd = client_open(&s);
        client_send(fd, "GET /wait HTTP/1.1\r\nHost: x\r\n\r\n");
        waiting_reach(&s, 1);
        r = waiting_take(&s);
        assert_false(r->local);
        bs_http_ready(r);
        assert_begins(client_reply(fd), "HTTP/1.1 201 ");
        close(fd);
        assert_int_equal(bs_http_start(&s.options, &second, &err), BS_E_REFUSED);
        serve_stop(&s);
        assert_int_equal(lstat(path, &st), -1);
        if (i == 0) { /* a crash leaves the file behind */
            struct served stale;

            serve_start(&stale, &(struct bs_http_options){ .socket_path = path });
            char kept[72];
            snprintf(kept, sizeof(kept), "%s.kept", path);
            assert_int_equal(rename(path, kept), 0);
            serve_stop(&stale);
            assert_int_equal(rename(kept, path), 0);
        }
    }
    assert_int_equal(rmdir(folder), 0);
}

static void an_address_that_cannot_be_bound_is_told(void **state)
{
    static struct served s;
    struct bs_http_options o;
    struct bs_http_server *none = NULL;
    struct bs_err err;
    char taken[32];

    (void)state;
    serve_start(&s, &(struct bs_http_options){ 0 });
    o = s.options;
    snprintf(taken, sizeof(taken), "127.0.0.1:%u", bs_http_port(s.server));
    o.listen = taken;
    assert_int_equal(bs_http_start(&o, &none, &err), BS_E_UNAVAILABLE);
    assert_non_null(strstr(err.msg, "in use"));
    o.listen = "8787";
    assert_int_equal(bs_http_start(&o, &none, &err), BS_E_INVALID);
    o.listen = ":80";
    assert_int_equal(bs_http_start(&o, &none, &err), BS_E_INVALID);
    o.listen = "[::1]:0";
    if (bs_http_start(&o, &none, &err) == BS_OK)
        bs_http_stop(none, BS_SEC(1));
    serve_stop(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_body_arrives_byte_for_byte),
        cmocka_unit_test(a_large_body_arrives_whole_in_both_forms),
        cmocka_unit_test(path_query_and_headers_are_told_apart),
        cmocka_unit_test(a_target_with_nul_or_bad_text_is_refused),
        cmocka_unit_test(two_opinions_about_the_end_of_a_request_are_refused),
        cmocka_unit_test(head_is_get_without_its_body),
        cmocka_unit_test(pipelined_requests_are_answered_in_order),
        cmocka_unit_test(a_waiting_request_is_answered_when_it_is_ready),
        cmocka_unit_test(too_long_a_body_is_refused_before_it_is_sent),
        cmocka_unit_test(too_long_a_body_in_chunks_is_refused_at_its_end),
        cmocka_unit_test(a_large_body_that_nobody_wants_is_not_kept),
        cmocka_unit_test(all_large_bodies_share_one_limit),
        cmocka_unit_test(the_unix_socket_knows_its_peer),
        cmocka_unit_test(an_address_that_cannot_be_bound_is_told),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
