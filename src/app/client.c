/* HTTP over the UNIX socket, by libcurl. */
#include "app/client.h"
#include "app/view.h"

#include "json/read.h"

#include <curl/curl.h>
#include <pwd.h>
#include <stdio.h>
#include <unistd.h>

enum { REPLY_MAX = 64 << 20, CALL_S = 60, MEMBERS_MAX = 100 };

void bs_client_reply_done(struct bs_client_reply *r)
{
    bs_buf_free(&r->body);
}

static size_t on_body(char *p, size_t size, size_t n, void *ctx)
{
    struct bs_client_reply *r = ctx;

    bs_buf_add(&r->body, (struct bs_str){ p, size * n });
    return r->body.failed ? 0 : size * n;
}

/* Who is asking, for the audit: the name of the operating system's user. */
static void operator_header(char out[300])
{
    const struct passwd *p = getpwuid(geteuid());

    if (p)
        snprintf(out, 300, "Backstop-Operator: %.64s", p->pw_name);
    else
        snprintf(out, 300, "Backstop-Operator: uid-%u", (unsigned)geteuid());
}

static void set_request(CURL *h, const char *socket, const struct bs_client_request *q,
                        struct curl_slist *headers, struct bs_client_reply *reply)
{
    curl_easy_setopt(h, CURLOPT_UNIX_SOCKET_PATH, socket);
    curl_easy_setopt(h, CURLOPT_HTTPHEADER, headers);
    curl_easy_setopt(h, CURLOPT_TIMEOUT, (long)CALL_S);
    curl_easy_setopt(h, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(h, CURLOPT_PROXY, "");
    curl_easy_setopt(h, CURLOPT_WRITEFUNCTION, on_body);
    curl_easy_setopt(h, CURLOPT_WRITEDATA, reply);
    if (strcmp(q->method, "POST") != 0)
        return;
    curl_easy_setopt(h, CURLOPT_POST, 1L);
    curl_easy_setopt(h, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)q->body.n);
    curl_easy_setopt(h, CURLOPT_POSTFIELDS, q->body.n ? q->body.p : "");
}

static bs_rc perform(CURL *h, const char *socket, struct bs_client_reply *reply, struct bs_err *err)
{
    CURLcode code = curl_easy_perform(h);
    long status = 0, sent = 0;

    curl_easy_getinfo(h, CURLINFO_RESPONSE_CODE, &status);
    curl_easy_getinfo(h, CURLINFO_REQUEST_SIZE, &sent);
    reply->status = (int)status;
    if (code == CURLE_OK)
        return BS_OK;
    if (code == CURLE_COULDNT_CONNECT)
        return bs_fail(err, BS_E_NOT_FOUND, "no server answers on %.180s", socket);
    if (sent > 0)
        return bs_fail(err, BS_E_UNKNOWN,
                       "the server took the request but its answer was lost (%s); look before "
                       "asking again",
                       curl_easy_strerror(code));
    return bs_fail(err, BS_E_UNAVAILABLE, "the server cannot be asked: %s",
                   curl_easy_strerror(code));
}

static bs_rc call_with(CURL *h, const char *socket, const struct bs_client_request *q,
                       struct bs_client_reply *ret, struct bs_err *err)
{
    BS_CLEANUP(bs_buf_free) struct bs_buf url = { .max = 64 << 10 };
    struct curl_slist *headers = NULL;
    char operator_name[300], type[100];
    bs_rc rc;

    bs_buf_addz(&url, "http://backstop");
    bs_buf_addz(&url, q->path);
    BS_TRY(bs_buf_done(&url, err));
    operator_header(operator_name);
    snprintf(type, sizeof(type), "Content-Type: %s",
             q->content_type ? q->content_type : "application/json");
    headers = curl_slist_append(headers, operator_name);
    headers = curl_slist_append(headers, q->body.n ? type : "Content-Type:");
    headers = curl_slist_append(headers, "Expect:");
    curl_easy_setopt(h, CURLOPT_URL, bs_buf_str(&url).p);
    set_request(h, socket, q, headers, ret);
    rc = perform(h, socket, ret, err);
    curl_slist_free_all(headers);
    return rc;
}

bs_rc bs_client_call(const char *socket, const struct bs_client_request *q,
                     struct bs_client_reply *ret, struct bs_err *err)
{
    CURL *h = curl_easy_init();
    bs_rc rc;

    *ret = (struct bs_client_reply){ .body = { .max = REPLY_MAX } };
    if (!h)
        return bs_fail(err, BS_E_NOMEM, "no memory for the request");
    rc = call_with(h, socket, q, ret, err);
    curl_easy_cleanup(h);
    return rc;
}

void bs_client_escape(struct bs_buf *out, struct bs_str s)
{
    for (size_t i = 0; i < s.n; i++) {
        unsigned char c = (unsigned char)s.p[i];
        bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                     c == '-' || c == '_' || c == '.' || c == '~';
        if (plain)
            bs_buf_addc(out, (char)c);
        else
            bs_buf_fmt(out, "%%%02X", (unsigned)c);
    }
}

void bs_client_param(struct bs_buf *path, const char *name, const char *value)
{
    if (!value)
        return;
    bs_buf_addc(path, memchr(path->p, '?', path->len) ? '&' : '?');
    bs_buf_addz(path, name);
    bs_buf_addc(path, '=');
    bs_client_escape(path, bs_str_of(value));
}

enum bs_exit bs_client_config(const struct bs_cli *cli, struct bs_config **ret)
{
    BS_CLEANUP(bs_buf_free) struct bs_buf report = { .max = 256 << 10 };

    if (bs_config_load(bs_cli_get(cli, "config"), BS_CONFIG_PLACES, ret, &report) == BS_OK)
        return BS_EXIT_DONE;
    fputs(bs_buf_str(&report).p, stderr);
    return BS_EXIT_USAGE;
}

static struct bs_str member_text(const struct bs_json_object *o, const char *name)
{
    for (uint32_t i = 0; i < o->n; i++)
        if (bs_str_is(o->members[i].name, name))
            return o->members[i].type == BS_JSON_STRING ? o->members[i].text : o->members[i].raw;
    return BS_STR_NONE;
}

/* One line for every field at fault. */
static void explain_fields(struct bs_arena *a, struct bs_str errors)
{
    struct bs_str *items = NULL;
    uint32_t n = 0;

    if (!errors.p || bs_json_read_array(a, errors, MEMBERS_MAX, &items, &n, NULL) != BS_OK)
        return;
    for (uint32_t i = 0; i < n; i++) {
        struct bs_json_object o = { 0 };
        if (bs_json_read_object(a, items[i], MEMBERS_MAX, &o, NULL) != BS_OK)
            continue;
        bs_complain("  %.*s: %.*s", BS_STR_FMT(member_text(&o, "field")),
                    BS_STR_FMT(member_text(&o, "message")));
    }
}

enum bs_exit bs_client_explain(const struct bs_client_reply *r)
{
    BS_CLEANUP(bs_arena_free) struct bs_arena a = { 0 };
    struct bs_json_object o = { 0 };
    struct bs_str detail;

    if (bs_json_read_object(&a, bs_buf_str(&r->body), MEMBERS_MAX, &o, NULL) != BS_OK) {
        bs_complain("the server answered %d", r->status);
        return BS_EXIT_FAILED;
    }
    detail = member_text(&o, "detail");
    if (!detail.n)
        detail = member_text(&o, "title");
    bs_complain("%.*s (%d %.*s)", BS_STR_FMT(detail), r->status,
                BS_STR_FMT(member_text(&o, "code")));
    explain_fields(&a, member_text(&o, "errors"));
    if (bs_str_is(member_text(&o, "code"), "VERSION_REQUIRED"))
        bs_complain("  `backstop task show` tells it; repeat with --expected-version N");
    return BS_EXIT_FAILED;
}

enum bs_exit bs_client_ask(const struct bs_cli *cli, const struct bs_client_request *q,
                           struct bs_client_reply *ret)
{
    struct bs_config *c = NULL;
    struct bs_err err = { 0 };
    enum bs_exit code = bs_client_config(cli, &c);
    bs_rc rc;

    if (code != BS_EXIT_DONE)
        return code;
    rc = bs_client_call(c->socket, q, ret, &err);
    bs_config_free(c);
    if (rc == BS_E_NOT_FOUND)
        bs_complain("%s; is `backstop serve` running with this configuration?", err.msg);
    else if (rc != BS_OK)
        bs_complain("%s", err.msg);
    if (rc != BS_OK)
        return BS_EXIT_FAILED;
    return ret->status >= 200 && ret->status < 300 ? BS_EXIT_DONE : bs_client_explain(ret);
}

void bs_client_more(const struct bs_client_reply *r)
{
    BS_CLEANUP(bs_arena_free) struct bs_arena a = { 0 };
    struct bs_str next = BS_STR_NONE, searched = BS_STR_NONE;

    if (bs_view_member(&a, bs_buf_str(&r->body), "next_cursor", &next, NULL) != BS_OK ||
        bs_view_member(&a, bs_buf_str(&r->body), "searched_to", &searched, NULL) != BS_OK)
        return;
    if (searched.n)
        fprintf(stderr, "searched back to %.*s\n", BS_STR_FMT(searched));
    if (next.n)
        fprintf(stderr, "more: --cursor %.*s\n", BS_STR_FMT(next));
}

void bs_client_print(const struct bs_client_reply *r)
{
    struct bs_str s = bs_buf_str(&r->body);

    fwrite(s.p, 1, s.n, stdout);
    if (s.n == 0 || s.p[s.n - 1] != '\n')
        putchar('\n');
}
