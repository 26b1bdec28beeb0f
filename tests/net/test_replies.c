/* Huge, endless and odd replies: read to the cap, never followed by memory. */
#include "calls.h"

#include <stdio.h>
#include <unistd.h>

enum { BODY_MAX = 64 << 10, MEGABYTE = 1 << 20 };

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
static const bool memory_is_ours = false; /* sanitizers keep what was freed */
#else
static const bool memory_is_ours = true;
#endif

static size_t resident(void)
{
    FILE *f = fopen("/proc/self/statm", "r");
    unsigned long size = 0, pages = 0;

    assert_non_null(f);
    assert_int_equal(fscanf(f, "%lu %lu", &size, &pages), 2);
    fclose(f);
    return pages * (size_t)sysconf(_SC_PAGESIZE);
}

static const char piece[16 << 10] = { 'x', 'y' };

static void gigabyte(struct peer *p, int fd, int nth)
{
    (void)nth;
    if (!peer_read_request(p, fd))
        return;
    peer_write(fd, p->arg);
    peer_flood(p, fd, piece, sizeof(piece), (size_t)1 << 30);
}

static void endless_chunks(struct peer *p, int fd, int nth)
{
    static const char chunk[] = "400\r\n" /* 1,024 zero bytes follow */;
    char framed[sizeof(chunk) - 1 + 1024 + 2] = { 0 };

    (void)nth;
    memcpy(framed, chunk, sizeof(chunk) - 1);
    memcpy(framed + sizeof(framed) - 2, "\r\n", 2);
    if (!peer_read_request(p, fd))
        return;
    peer_write(fd, p->arg);
    peer_flood(p, fd, framed, sizeof(framed), SIZE_MAX);
}

static void expect_cut(peer_script script, const char *head, int status)
{
    static struct peer p;
    struct one_call o = { 0 };
    struct bs_caller *c = caller_open(NULL, NULL);

    peer_start(&p, script, head);
    const struct bs_facts *f = post(c, &o, p.port);
    assert_int_equal(f->wire, BS_WIRE_REPLIED);
    assert_int_equal(f->status, status);
    assert_int_equal(f->body.n, BODY_MAX);
    assert_true(f->body_cut);
    peer_stop(&p); /* returns only when the flood ended: the caller has closed */
    assert_in_range(p.written, BODY_MAX, 32 * MEGABYTE);
    c->ops->free(c);
    call_done(&o);
}

/* CASE 28, as are the others of this file: what is read has a cap, memory does not grow */
static void a_gigabyte_is_read_to_the_cap_and_keeps_its_status(void **state)
{
    size_t before = resident();

    (void)state;
    expect_cut(gigabyte, "HTTP/1.1 200 OK\r\nContent-Length: 1073741824\r\n\r\n", 200);
    expect_cut(gigabyte, "HTTP/1.1 422 X\r\nContent-Length: 1073741824\r\n\r\n", 422);
    expect_cut(gigabyte, "HTTP/1.1 200 OK\r\n\r\n", 200);
    if (memory_is_ours)
        assert_true(resident() < before + 5 * MEGABYTE);
}

static void an_endless_reply_ends_at_the_cap(void **state)
{
    (void)state;
    expect_cut(endless_chunks, "HTTP/1.1 503 X\r\nTransfer-Encoding: chunked\r\n\r\n", 503);
}

static void sized(struct peer *p, int fd, int nth)
{
    size_t n = *(const size_t *)p->arg;
    char head[64];

    (void)nth;
    snprintf(head, sizeof(head), "HTTP/1.1 200 OK\r\nContent-Length: %zu\r\n\r\n", n);
    if (!peer_read_request(p, fd))
        return;
    peer_write(fd, head);
    for (size_t left = n; left > 0;) {
        size_t now = BS_MIN(left, sizeof(piece));

        if (write(fd, piece, now) != (ssize_t)now)
            return;
        left -= now;
    }
    peer_wait_close(fd);
}

static void a_reply_of_exactly_the_cap_is_whole(void **state)
{
    static const size_t sizes[] = { 0, 1, BODY_MAX - 1, BODY_MAX, BODY_MAX + 1 };

    (void)state;
    for (size_t i = 0; i < BS_COUNT(sizes); i++) {
        static struct peer p;
        struct one_call o = { 0 };
        struct bs_caller *c = caller_open(NULL, NULL);

        peer_start(&p, sized, &sizes[i]);
        const struct bs_facts *f = post(c, &o, p.port);
        assert_int_equal(f->wire, BS_WIRE_REPLIED);
        assert_int_equal(f->body.n, BS_MIN(sizes[i], (size_t)BODY_MAX));
        assert_int_equal(f->body_cut, sizes[i] > BODY_MAX);
        c->ops->free(c);
        peer_stop(&p);
        call_done(&o);
    }
}

static void many_headers(struct peer *p, int fd, int nth)
{
    int n = *(const int *)p->arg;

    (void)nth;
    if (!peer_read_request(p, fd))
        return;
    peer_write(fd, "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n");
    for (int i = 0; i < n; i++)
        peer_write(fd, "A: b\r\n");
    peer_write(fd, "\r\nbody");
}

static void five_thousand_headers_do_not_hide_the_reply(void **state)
{
    static struct peer p;
    static const int n = 5000;
    struct one_call o = { 0 };
    struct bs_caller *c = caller_open(NULL, NULL);
    size_t before = resident();

    (void)state;
    peer_start(&p, many_headers, &n);
    const struct bs_facts *f = post(c, &o, p.port);
    assert_int_equal(f->wire, BS_WIRE_REPLIED);
    assert_int_equal(f->status, 200);
    assert_str(f->body, "body");
    assert_false(f->body_cut);
    if (memory_is_ours)
        assert_true(resident() < before + 5 * MEGABYTE);
    c->ops->free(c);
    peer_stop(&p);
    call_done(&o);
}

static void header_flood(struct peer *p, int fd, int nth)
{
    static const char line[] = "X-Filler: 0123456789012345678901234567890123456789012345\r\n";

    (void)nth;
    if (!peer_read_request(p, fd))
        return;
    peer_write(fd, p->arg);
    peer_flood(p, fd, line, sizeof(line) - 1, SIZE_MAX);
}

static void a_flood_of_headers_keeps_its_status_and_no_more(void **state)
{
    static struct peer p;
    struct one_call o = { 0 };
    struct bs_caller *c = caller_open(NULL, NULL);
    size_t before = resident();

    (void)state;
    peer_start(&p, header_flood, "HTTP/1.1 422 X\r\n");
    const struct bs_facts *f = post(c, &o, p.port);
    assert_int_equal(f->wire, BS_WIRE_REPLIED);
    assert_int_equal(f->status, 422);
    assert_int_equal(f->body.n, 0);
    assert_true(f->body_cut);
    peer_stop(&p);
    assert_in_range(p.written, BODY_MAX, 32 * MEGABYTE);
    if (memory_is_ours)
        assert_true(resident() < before + 5 * MEGABYTE);
    c->ops->free(c);
    call_done(&o);
}

static void interim_flood(struct peer *p, int fd, int nth)
{
    static const char hint[] = "HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n";

    (void)nth;
    if (peer_read_request(p, fd))
        peer_flood(p, fd, hint, sizeof(hint) - 1, SIZE_MAX);
}

static void a_flood_of_interim_replies_is_no_reply(void **state)
{
    static struct peer p;
    struct one_call o = { 0 };
    struct bs_caller *c = caller_open(NULL, NULL);

    (void)state;
    peer_start(&p, interim_flood, NULL);
    const struct bs_facts *f = post(c, &o, p.port);
    assert_int_equal(f->wire, BS_WIRE_BAD_HTTP);
    assert_true(f->sent);
    peer_stop(&p);
    c->ops->free(c);
    call_done(&o);
}

static void a_compressed_body_stays_as_it_came(void **state)
{
    static struct peer p;
    struct one_call o = { 0 };
    struct bs_caller *c = caller_open(NULL, NULL);

    (void)state;
    peer_start(&p, peer_reply,
               "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 10\r\n\r\n"
               "\x1f\x8b\x08 bomb!!");
    const struct bs_facts *f = post(c, &o, p.port);
    assert_int_equal(f->wire, BS_WIRE_REPLIED);
    assert_str(f->body, "\x1f\x8b\x08 bomb!!");
    c->ops->free(c);
    peer_stop(&p);
    assert_null(strcasestr(p.last, "Accept-Encoding"));
    call_done(&o);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_gigabyte_is_read_to_the_cap_and_keeps_its_status),
        cmocka_unit_test(an_endless_reply_ends_at_the_cap),
        cmocka_unit_test(a_reply_of_exactly_the_cap_is_whole),
        cmocka_unit_test(five_thousand_headers_do_not_hide_the_reply),
        cmocka_unit_test(a_flood_of_headers_keeps_its_status_and_no_more),
        cmocka_unit_test(a_flood_of_interim_replies_is_no_reply),
        cmocka_unit_test(a_compressed_body_stays_as_it_came),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
