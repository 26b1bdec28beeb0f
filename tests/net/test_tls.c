/* TLS: each fault of a certificate is its own fact. The certificates are made by the openssl
 * program when the test starts. */
#include "calls.h"

#include <openssl/ssl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define OK_REPLY "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok"

static char folder[] = "/tmp/backstop-tls-XXXXXX";

static const char recipe[] =
    "set -e\n"
    "ca() {\n"
    "  openssl req -x509 -newkey rsa:2048 -nodes -keyout $1.key -out $1.pem -days 30 -subj /CN=$1\n"
    "  mkdir $1.d; : > $1.d/index; echo 01 > $1.d/serial\n"
    "  printf '[ca]\\ndefault_ca=d\\n[d]\\ndatabase=%s.d/index\\nserial=%s.d/serial\\n"
    "new_certs_dir=%s.d\\ndefault_md=sha256\\npolicy=p\\nunique_subject=no\\n[p]\\n"
    "commonName=supplied\\n' $1 $1 $1 > $1.cnf\n"
    "}\n"
    /* leaf NAME ISSUER HOST BEGIN END */
    "leaf() {\n"
    "  openssl req -newkey rsa:2048 -nodes -keyout $1.key -out $1.csr -subj /CN=$3\n"
    "  echo subjectAltName=DNS:$3 > $1.ext\n"
    "  openssl ca -batch -notext -config $2.cnf -cert $2.pem -keyfile $2.key -extfile $1.ext "
    "-startdate $4 -enddate $5 -in $1.csr -out $1.pem\n"
    "}\n"
    "ca root; ca stranger\n"
    "leaf good root shop.test 20200101000000Z 20490101000000Z\n"
    "leaf expired root shop.test 20200101000000Z 20200201000000Z\n"
    "leaf future root shop.test 20480101000000Z 20490101000000Z\n"
    "leaf name root other.test 20200101000000Z 20490101000000Z\n"
    "leaf issuer stranger shop.test 20200101000000Z 20490101000000Z\n"
    "openssl req -x509 -newkey rsa:2048 -nodes -keyout self.key -out self.pem -days 30 "
    "-subj /CN=shop.test -addext subjectAltName=DNS:shop.test\n";

static int make_certificates(void **state)
{
    char path[128], command[256];

    (void)state;
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof(path), "%s/make.sh", folder);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    assert_true(fputs(recipe, f) >= 0);
    assert_int_equal(fclose(f), 0);
    snprintf(command, sizeof(command), "cd %s && sh make.sh > log 2>&1 || { cat log; false; }",
             folder);
    return system(command);
}

static int remove_certificates(void **state)
{
    char command[128];

    (void)state;
    snprintf(command, sizeof(command), "rm -r %s", folder);
    return system(command);
}

static SSL_CTX *context_of(const char *name)
{
    SSL_CTX *ctx = SSL_CTX_new(TLS_server_method());
    char path[128];

    snprintf(path, sizeof(path), "%s/%s.pem", folder, name);
    if (!ctx || SSL_CTX_use_certificate_file(ctx, path, SSL_FILETYPE_PEM) != 1)
        abort();
    snprintf(path, sizeof(path), "%s/%s.key", folder, name);
    if (SSL_CTX_use_PrivateKey_file(ctx, path, SSL_FILETYPE_PEM) != 1)
        abort();
    return ctx;
}

/* p->arg: the certificate's name. */
static void speak_tls(struct peer *p, int fd, int nth)
{
    SSL_CTX *ctx = context_of(p->arg);
    SSL *ssl = SSL_new(ctx);
    char request[4096];

    (void)nth;
    SSL_set_fd(ssl, fd);
    if (SSL_accept(ssl) == 1 && SSL_read(ssl, request, sizeof(request)) > 0) {
        atomic_fetch_add(&p->requests, 1);
        SSL_write(ssl, OK_REPLY, sizeof(OK_REPLY) - 1);
        SSL_shutdown(ssl);
    }
    SSL_free(ssl);
    SSL_CTX_free(ctx);
}

static struct bs_caller *open_trusting(void)
{
    char path[128];

    snprintf(path, sizeof(path), "%s/root.pem", folder);
    return caller_open(path, "shop.test=127.0.0.1");
}

static void call_tls(struct bs_caller *c, struct one_call *o, peer_script script, const char *arg,
                     int requests)
{
    static struct peer p;
    char url[64];

    peer_start(&p, script, arg);
    snprintf(url, sizeof(url), "https://shop.test:%u/p", p.port);
    call_begin(c, o, "POST", url);
    (void)call_next(c);
    peer_stop(&p);
    assert_int_equal(p.requests, requests);
}

static void a_good_certificate_is_trusted(void **state)
{
    struct bs_caller *c = open_trusting();
    struct one_call o = { 0 };

    (void)state;
    call_tls(c, &o, speak_tls, "good", 1);
    if (o.call.facts.wire != BS_WIRE_REPLIED)
        fail_msg("%s", o.call.facts.detail);
    assert_int_equal(o.call.facts.status, 200);
    assert_str(o.call.facts.body, "ok");
    c->ops->free(c);
    call_done(&o);
}

/* CASE 30, its TLS half */
static void each_fault_of_a_certificate_is_its_own_fact(void **state)
{
    static const struct {
        const char *certificate;
        enum bs_wire wire;
    } table[] = {
        { "expired", BS_WIRE_TLS_EXPIRED },
        { "name", BS_WIRE_TLS_NAME },
        { "issuer", BS_WIRE_TLS_UNKNOWN_ISSUER },
        { "self", BS_WIRE_TLS_UNKNOWN_ISSUER },
        { "name", BS_WIRE_TLS_NAME },
        { "future", BS_WIRE_TLS_EXPIRED },
        { "good", BS_WIRE_REPLIED },
        { "expired", BS_WIRE_TLS_EXPIRED },
    };
    struct bs_caller *c = open_trusting(); /* one handle meets them all */
    struct one_call o = { 0 };

    (void)state;
    for (size_t i = 0; i < BS_COUNT(table); i++) {
        bool good = table[i].wire == BS_WIRE_REPLIED;

        call_tls(c, &o, speak_tls, table[i].certificate, good);
        if (o.call.facts.wire != table[i].wire)
            fail_msg("%s: %s (%s)", table[i].certificate, bs_wire_code(o.call.facts.wire),
                     o.call.facts.detail);
        assert_int_equal(o.call.facts.sent, good);
    }
    c->ops->free(c);
    call_done(&o);
}

static void say_something_else(struct peer *p, int fd, int nth)
{
    char bytes[16];

    (void)nth;
    if (read(fd, bytes, sizeof(bytes)) > 0)
        peer_write(fd, p->arg);
}

static void what_is_not_tls_fails_the_handshake(void **state)
{
    struct bs_caller *c = open_trusting();
    struct one_call o = { 0 };

    (void)state;
    call_tls(c, &o, say_something_else, "HTTP/1.1 400 Bad Request\r\n\r\n", 0);
    assert_int_equal(o.call.facts.wire, BS_WIRE_TLS_HANDSHAKE);
    assert_false(o.call.facts.sent);
    call_tls(c, &o, say_something_else, "", 0);
    assert_int_equal(o.call.facts.wire, BS_WIRE_TLS_HANDSHAKE);
    assert_false(o.call.facts.sent);
    c->ops->free(c);
    call_done(&o);
}

static void a_system_without_our_root_does_not_trust_it(void **state)
{
    struct bs_caller *c = caller_open(NULL, "shop.test=127.0.0.1");
    struct one_call o = { 0 };

    (void)state;
    call_tls(c, &o, speak_tls, "good", 0);
    assert_int_equal(o.call.facts.wire, BS_WIRE_TLS_UNKNOWN_ISSUER);
    c->ops->free(c);
    call_done(&o);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_good_certificate_is_trusted),
        cmocka_unit_test(each_fault_of_a_certificate_is_its_own_fact),
        cmocka_unit_test(what_is_not_tls_fails_the_handshake),
        cmocka_unit_test(a_system_without_our_root_does_not_trust_it),
    };

    signal(SIGPIPE, SIG_IGN); /* the peer writes to who has left */
    return cmocka_run_group_tests(tests, make_certificates, remove_certificates);
}
