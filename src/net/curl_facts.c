/* What an exchange came to: curl's callbacks and codes become facts. */
#include "base/time.h"
#include "net/curl_internal.h"
#include "sys/clock.h"

#include <errno.h>
#include <stdio.h>

/* OpenSSL's X509_V_…, of which curl hands the numbers on. */
enum {
    CHAIN_GOOD = 0,
    CHAIN_UNSPECIFIED = 1,
    CHAIN_NO_ISSUER = 2,
    CHAIN_NOT_YET_VALID = 9,
    CHAIN_EXPIRED = 10,
    CHAIN_SELF_SIGNED = 18,
    CHAIN_SELF_SIGNED_ROOT = 19,
    CHAIN_NO_LOCAL_ISSUER = 20,
    CHAIN_NO_LEAF_SIGNATURE = 21,
    CHAIN_OTHER_HOST = 62,
    CHAIN_OTHER_ADDRESS = 64,
};

/* Of curl's codes; what is not listed is our own fault. */
static const struct {
    CURLcode code;
    enum bs_wire unsent, sent;
} verdicts[] = {
    { CURLE_OK, BS_WIRE_REPLIED, BS_WIRE_REPLIED },
    { CURLE_COULDNT_RESOLVE_HOST, BS_WIRE_DNS_TEMPORARY, BS_WIRE_DNS_TEMPORARY },
    { CURLE_COULDNT_CONNECT, BS_WIRE_CONNECT_FAILED, BS_WIRE_CONNECT_FAILED },
    { CURLE_OPERATION_TIMEDOUT, BS_WIRE_CONNECT_TIMEOUT, BS_WIRE_TIMEOUT },
    { CURLE_SSL_CONNECT_ERROR, BS_WIRE_TLS_HANDSHAKE, BS_WIRE_RESET },
    { CURLE_PEER_FAILED_VERIFICATION, BS_WIRE_TLS_HANDSHAKE, BS_WIRE_TLS_HANDSHAKE },
    { CURLE_SSL_CIPHER, BS_WIRE_TLS_HANDSHAKE, BS_WIRE_TLS_HANDSHAKE },
    { CURLE_SSL_CERTPROBLEM, BS_WIRE_TLS_HANDSHAKE, BS_WIRE_TLS_HANDSHAKE },
    { CURLE_GOT_NOTHING, BS_WIRE_CONNECT_FAILED, BS_WIRE_RESET },
    { CURLE_SEND_ERROR, BS_WIRE_CONNECT_FAILED, BS_WIRE_RESET },
    { CURLE_RECV_ERROR, BS_WIRE_CONNECT_FAILED, BS_WIRE_RESET },
    { CURLE_PARTIAL_FILE, BS_WIRE_CONNECT_FAILED, BS_WIRE_RESET },
    { CURLE_UNSUPPORTED_PROTOCOL, BS_WIRE_INTERNAL, BS_WIRE_BAD_HTTP },
    { CURLE_WEIRD_SERVER_REPLY, BS_WIRE_BAD_HTTP, BS_WIRE_BAD_HTTP },
    { CURLE_BAD_CONTENT_ENCODING, BS_WIRE_BAD_HTTP, BS_WIRE_BAD_HTTP },
};

static bool header_is(struct bs_str line, const char *name, struct bs_str *ret_value)
{
    struct bs_str rest = line;
    struct bs_str key = bs_str_cut(&rest, ':');

    if (!bs_str_eq_nocase(key, bs_str_of(name)))
        return false;
    *ret_value = bs_str_trim(rest);
    return true;
}

/* A status line begins a reply anew: what an interim one said does not count. */
static void read_header(struct slot *s, struct bs_str line)
{
    struct bs_facts *f = &s->call->facts;
    struct bs_str value = BS_STR_NONE;

    if (bs_str_starts(line, BS_STR("HTTP/"))) {
        f->retry_after = (struct bs_retry_after){ 0 };
        f->location = BS_STR_NONE;
    } else if (header_is(line, "Retry-After", &value)) {
        bs_retry_after_add(&f->retry_after, value, bs_now(s->owner->clock));
    } else if (header_is(line, "Location", &value) && !f->location.p) {
        value.n = BS_MIN(value.n, (size_t)BS_LOCATION_MAX);
        f->location = bs_arena_str(s->call->arena, value);
    }
}

/* curl keeps every header in memory, so their sum is bounded here. */
size_t bs_curl_on_header(char *p, size_t size, size_t n, void *slot)
{
    struct slot *s = slot;

    s->header_bytes += size * n;
    if (s->header_bytes > BS_REPLY_HEADERS_MAX) {
        s->headers_cut = true;
        return 0;
    }
    read_header(s, (struct bs_str){ p, size * n });
    return size * n;
}

size_t bs_curl_on_body(char *p, size_t size, size_t n, void *slot)
{
    struct slot *s = slot;
    size_t room = BS_REPLY_BODY_MAX - s->body.len;

    if (size * n <= room) {
        bs_buf_add(&s->body, (struct bs_str){ p, size * n });
        return s->body.failed ? 0 : size * n;
    }
    bs_buf_add(&s->body, (struct bs_str){ p, room });
    s->body_cut = true;
    return 0;
}

/* curl sends a request again, without a word, when a kept-alive connection ends before the reply.
 * Once a byte has left, nobody but the engine may decide that. */
int bs_curl_on_send(void *slot, char *peer_ip, char *local_ip, int peer_port, int local_port)
{
    struct slot *s = slot;
    long written = 0;

    (void)peer_ip;
    (void)local_ip;
    (void)peer_port;
    (void)local_port;
    if (s->sends++ == 0)
        return CURL_PREREQFUNC_OK;
    curl_easy_getinfo(s->easy, CURLINFO_REQUEST_SIZE, &written);
    if (written == 0)
        return CURL_PREREQFUNC_OK;
    s->resend_refused = true;
    return CURL_PREREQFUNC_ABORT;
}

static enum bs_wire connect_failure(struct slot *s)
{
    long os_error = 0;

    curl_easy_getinfo(s->easy, CURLINFO_OS_ERRNO, &os_error);
    if (os_error == ECONNREFUSED)
        return BS_WIRE_CONNECT_REFUSED;
    return os_error == ETIMEDOUT ? BS_WIRE_CONNECT_TIMEOUT : BS_WIRE_CONNECT_FAILED;
}

/* OpenSSL's verdict on the chain. Where only the name does not fit, curl ends before it stores that
 * the chain is good, and what it had put there at the start stays. */
static enum bs_wire certificate_failure(struct slot *s)
{
    long verdict = 0;

    curl_easy_getinfo(s->easy, CURLINFO_SSL_VERIFYRESULT, &verdict);
    switch (verdict) {
    case CHAIN_GOOD:
    case CHAIN_UNSPECIFIED:
    case CHAIN_OTHER_HOST:
    case CHAIN_OTHER_ADDRESS:
        return BS_WIRE_TLS_NAME;
    case CHAIN_EXPIRED:
    case CHAIN_NOT_YET_VALID:
        return BS_WIRE_TLS_EXPIRED;
    case CHAIN_NO_ISSUER:
    case CHAIN_SELF_SIGNED:
    case CHAIN_SELF_SIGNED_ROOT:
    case CHAIN_NO_LOCAL_ISSUER:
    case CHAIN_NO_LEAF_SIGNATURE:
        return BS_WIRE_TLS_UNKNOWN_ISSUER;
    default:
        return BS_WIRE_TLS_HANDSHAKE;
    }
}

static enum bs_wire wire_of(struct slot *s, CURLcode code, bool sent)
{
    if (s->resend_refused)
        return BS_WIRE_RESET;
    if (s->body_cut)
        return BS_WIRE_REPLIED;
    if (s->headers_cut)
        return s->call->facts.status >= 200 ? BS_WIRE_REPLIED : BS_WIRE_BAD_HTTP;
    if (code == CURLE_COULDNT_CONNECT)
        return connect_failure(s);
    if (code == CURLE_PEER_FAILED_VERIFICATION)
        return certificate_failure(s);
    for (size_t i = 0; i < BS_COUNT(verdicts); i++)
        if (verdicts[i].code == code)
            return sent ? verdicts[i].sent : verdicts[i].unsent;
    return BS_WIRE_INTERNAL;
}

/* The library's words can hold bytes of the peer: only printable ASCII goes on. */
static void set_detail(struct bs_facts *f, const char *detail)
{
    snprintf(f->detail, sizeof(f->detail), "%s", detail);
    for (char *p = f->detail; *p; p++)
        if (*p < 0x20 || *p > 0x7e)
            *p = '?';
}

void bs_curl_set_facts(struct slot *s, enum bs_wire wire, const char *detail)
{
    struct bs_facts *f = &s->call->facts;

    f->wire = wire;
    f->ended_at = bs_now(s->owner->clock);
    set_detail(f, detail);
}

/* The reply's own facts. A body that does not fit into the arena counts as cut. */
static void keep_reply(struct slot *s)
{
    struct bs_facts *f = &s->call->facts;

    f->body = s->body.len > 0 ? bs_arena_str(s->call->arena, bs_buf_str(&s->body)) : BS_STR_NONE;
    f->body_cut = s->body_cut || s->headers_cut || (s->body.len > 0 && !f->body.p);
    if (f->status < 300 || f->status > 399)
        f->location = BS_STR_NONE;
}

void bs_curl_judge(struct slot *s, CURLcode code)
{
    struct bs_facts *f = &s->call->facts;
    long written = 0, status = 0;

    curl_easy_getinfo(s->easy, CURLINFO_REQUEST_SIZE, &written);
    curl_easy_getinfo(s->easy, CURLINFO_RESPONSE_CODE, &status);
    f->sent = written > 0;
    f->status = (int)status;
    enum bs_wire wire = wire_of(s, code, f->sent);
    if (wire == BS_WIRE_REPLIED && status < 200)
        wire = BS_WIRE_BAD_HTTP;
    if (wire == BS_WIRE_REPLIED) {
        keep_reply(s);
        bs_curl_set_facts(s, wire, "");
        return;
    }
    f->status = 0;
    f->location = BS_STR_NONE;
    f->retry_after = (struct bs_retry_after){ 0 };
    if (s->resend_refused)
        bs_curl_set_facts(s, wire, "it is not sent a second time by itself");
    else
        bs_curl_set_facts(s, wire, s->error[0] ? s->error : curl_easy_strerror(code));
}
