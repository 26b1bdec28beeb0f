/* What an easy handle is told: once what is always so, per call only what changed. */
#include "net/curl_internal.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>

enum { READ_SIZE = 8192, MAX_IDLE_S = 30, MAX_LIFE_S = 300 };

/* None of these can fail but for memory, and curl keeps what was set before. */
void bs_curl_set_constant(struct slot *s)
{
    struct curl_caller *c = s->owner;
    CURL *e = s->easy;

    curl_easy_setopt(e, CURLOPT_PRIVATE, s);
    curl_easy_setopt(e, CURLOPT_ERRORBUFFER, s->error);
    curl_easy_setopt(e, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(e, CURLOPT_PROXY, "");
    curl_easy_setopt(e, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(e, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    curl_easy_setopt(e, CURLOPT_NETRC, (long)CURL_NETRC_IGNORED);
    curl_easy_setopt(e, CURLOPT_FOLLOWLOCATION, 0L);
    curl_easy_setopt(e, CURLOPT_PATH_AS_IS, 1L);
    curl_easy_setopt(e, CURLOPT_TCP_NODELAY, 1L);
    curl_easy_setopt(e, CURLOPT_BUFFERSIZE, (long)READ_SIZE);
    curl_easy_setopt(e, CURLOPT_MAXAGE_CONN, (long)MAX_IDLE_S);
    curl_easy_setopt(e, CURLOPT_MAXLIFETIME_CONN, (long)MAX_LIFE_S);
    curl_easy_setopt(e, CURLOPT_USERAGENT, c->user_agent);
    curl_easy_setopt(e, CURLOPT_HEADERFUNCTION, bs_curl_on_header);
    curl_easy_setopt(e, CURLOPT_HEADERDATA, s);
    curl_easy_setopt(e, CURLOPT_WRITEFUNCTION, bs_curl_on_body);
    curl_easy_setopt(e, CURLOPT_WRITEDATA, s);
    curl_easy_setopt(e, CURLOPT_PREREQFUNCTION, bs_curl_on_send);
    curl_easy_setopt(e, CURLOPT_PREREQDATA, s);
    curl_easy_setopt(e, CURLOPT_CLOSESOCKETFUNCTION, bs_curl_on_close);
    curl_easy_setopt(e, CURLOPT_CLOSESOCKETDATA, c);
    if (c->ca_file)
        curl_easy_setopt(e, CURLOPT_CAINFO, c->ca_file);
}

/* Addresses and "localhost" need no look-up, and curl itself makes names outside ASCII fit for the
 * network. */
static bool needs_look_up(const char *host)
{
    struct in_addr address;

    if (host[0] == '[' || strcasecmp(host, "localhost") == 0 ||
        inet_pton(AF_INET, host, &address) == 1)
        return false;
    for (const char *p = host; *p; p++)
        if ((unsigned char)*p >= 0x80)
            return false;
    return true;
}

static void free_url_p(CURLU **u)
{
    curl_url_cleanup(*u);
}

static void free_text_p(char **text)
{
    curl_free(*text);
}

static bool read_host(struct slot *s, const char *url)
{
    BS_CLEANUP(free_url_p) CURLU *u = curl_url();
    BS_CLEANUP(free_text_p) char *host = NULL;
    BS_CLEANUP(free_text_p) char *port = NULL;
    BS_CLEANUP(free_text_p) char *scheme = NULL;

    if (!u || curl_url_set(u, CURLUPART_URL, url, 0) != CURLUE_OK ||
        curl_url_get(u, CURLUPART_SCHEME, &scheme, 0) != CURLUE_OK ||
        curl_url_get(u, CURLUPART_HOST, &host, 0) != CURLUE_OK ||
        curl_url_get(u, CURLUPART_PORT, &port, CURLU_DEFAULT_PORT) != CURLUE_OK)
        return false;
    if (strcmp(scheme, "http") != 0 && strcmp(scheme, "https") != 0)
        return false;
    if (strlen(host) >= sizeof(s->host))
        return false;
    snprintf(s->host, sizeof(s->host), "%s", host);
    s->port = (uint16_t)strtoul(port, NULL, 10);
    s->ask_name = needs_look_up(host);
    return true;
}

bool bs_curl_set_url(struct slot *s, const char *url)
{
    if (s->url.len > 0 && strcmp(s->url.p, url) == 0)
        return true;
    bs_buf_reset(&s->url);
    if (!read_host(s, url) || curl_easy_setopt(s->easy, CURLOPT_URL, url) != CURLE_OK)
        return false;
    bs_buf_addz(&s->url, url);
    if (s->url.failed)
        bs_buf_reset(&s->url);
    return true;
}

static bool set_method(struct slot *s)
{
    const struct bs_call *call = s->call;

    if (!s->method || strcmp(s->method, call->method) != 0) {
        bool post = strcmp(call->method, "POST") == 0;

        BS_ASSERT(post || strcmp(call->method, "GET") == 0);
        if (curl_easy_setopt(s->easy, post ? CURLOPT_POST : CURLOPT_HTTPGET, 1L) != CURLE_OK)
            return false;
        s->method = post ? "POST" : "GET";
    }
    if (s->method[0] != 'P')
        return true;
    return curl_easy_setopt(s->easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)call->body.n) ==
               CURLE_OK &&
           curl_easy_setopt(s->easy, CURLOPT_POSTFIELDS, call->body.p ? call->body.p : "") ==
               CURLE_OK;
}

/* The list lies in the call's arena and borrows its texts. "Expect:" alone keeps curl from asking
 * before it sends. */
static bool set_headers(struct slot *s)
{
    static char no_expect[] = "Expect:";
    const struct bs_call *call = s->call;
    struct curl_slist *list = BS_NEW_ARRAY(call->arena, struct curl_slist, call->headers_n + 1);

    if (!list)
        return false;
    list[0].data = no_expect;
    for (uint32_t i = 0; i < call->headers_n; i++) {
        memcpy(&list[i + 1].data, &call->headers[i], sizeof(char *));
        list[i].next = &list[i + 1];
    }
    return curl_easy_setopt(s->easy, CURLOPT_HTTPHEADER, list) == CURLE_OK;
}

static bool set_resolve(struct slot *s)
{
    if (!s->ask_name)
        return true;
    snprintf(s->resolve_text, sizeof(s->resolve_text), "%s:%u:%s", s->host, (unsigned)s->port,
             s->question.addresses);
    s->resolve_node = (struct curl_slist){ .data = s->resolve_text };
    return curl_easy_setopt(s->easy, CURLOPT_RESOLVE, &s->resolve_node) == CURLE_OK;
}

static long left_ms(struct bs_span limit, int64_t passed_us)
{
    int64_t ms = (limit.us - passed_us + 999) / 1000;

    return (long)BS_MIN(BS_MAX(ms, (int64_t)1), (int64_t)INT32_MAX);
}

/* The time that the name took is part of both limits. */
static bool set_limits(struct slot *s, int64_t now_us)
{
    int64_t passed_us = now_us - s->started_us;
    long connect_ms = left_ms(s->call->connect_timeout, passed_us);
    long timeout_ms = left_ms(s->call->timeout, passed_us);

    if (connect_ms != s->connect_ms &&
        curl_easy_setopt(s->easy, CURLOPT_CONNECTTIMEOUT_MS, connect_ms) != CURLE_OK)
        return false;
    s->connect_ms = connect_ms;
    if (timeout_ms != s->timeout_ms &&
        curl_easy_setopt(s->easy, CURLOPT_TIMEOUT_MS, timeout_ms) != CURLE_OK)
        return false;
    s->timeout_ms = timeout_ms;
    return true;
}

bool bs_curl_set_call(struct slot *s, int64_t now_us)
{
    bs_buf_reset(&s->body);
    s->header_bytes = 0;
    s->sends = 0;
    s->resend_refused = s->headers_cut = s->body_cut = false;
    s->error[0] = '\0';
    return set_method(s) && set_headers(s) && set_resolve(s) && set_limits(s, now_us);
}
