/* Calls over libcurl's multi interface: started, moved forward, given back with their facts. */
#include "net/curl_internal.h"
#include "sys/clock.h"

#include <stdio.h>
#include <stdlib.h>

#ifndef BS_VERSION
#define BS_VERSION "0"
#endif

enum { CONNECTIONS_MAX = 512 };

static struct curl_caller *self(struct bs_caller *c)
{
    return BS_CONTAINER(c, struct curl_caller, base);
}

/* The call is over and its facts are complete. */
static void hand_over(struct slot *s)
{
    struct curl_caller *c = s->owner;
    struct bs_call *call = s->call;

    call->impl = NULL;
    call->next = NULL;
    *c->done_end = call;
    c->done_end = &call->next;
    bs_curl_slot_give_back(s);
}

static void fail(struct slot *s, enum bs_wire wire, const char *detail)
{
    bs_curl_set_facts(s, wire, detail);
    hand_over(s);
}

static void launch(struct slot *s, int64_t now_us)
{
    if (!bs_curl_set_call(s, now_us)) {
        fail(s, BS_WIRE_INTERNAL, "no memory for the call");
        return;
    }
    s->stage = STAGE_RUNNING;
    if (curl_multi_add_handle(s->shard->multi, s->easy) != CURLM_OK)
        fail(s, BS_WIRE_INTERNAL, "curl refused the call");
}

static int64_t name_limit_us(const struct slot *s)
{
    return s->started_us + BS_MIN(s->call->connect_timeout.us, s->call->timeout.us);
}

static void enlist_resolving(struct slot *s)
{
    struct curl_caller *c = s->owner;

    s->stage = STAGE_RESOLVING;
    s->next_resolving = c->resolving;
    s->at_resolving = &c->resolving;
    if (s->next_resolving)
        s->next_resolving->at_resolving = &s->next_resolving;
    c->resolving = s;
    c->name_due_us = BS_MIN(c->name_due_us, name_limit_us(s));
}

static void unlist_resolving(struct slot *s)
{
    *s->at_resolving = s->next_resolving;
    if (s->next_resolving)
        s->next_resolving->at_resolving = s->at_resolving;
    s->next_resolving = NULL;
    s->at_resolving = NULL;
}

/* The name is known, or will not be. */
static void resolved(struct slot *s, int64_t now_us)
{
    switch (s->question.state) {
    case BS_RESOLVE_FOUND:
        launch(s, now_us);
        break;
    case BS_RESOLVE_NXDOMAIN:
        fail(s, BS_WIRE_DNS_NXDOMAIN, "there is no such host name");
        break;
    case BS_RESOLVE_TEMPORARY:
        fail(s, BS_WIRE_DNS_TEMPORARY, "the host name could not be looked up now");
        break;
    case BS_RESOLVE_PENDING:
        enlist_resolving(s);
        break;
    }
}

static void caller_start(struct bs_caller *base, struct bs_call *call, struct bs_time now)
{
    struct curl_caller *c = self(base);
    struct slot *s = bs_curl_slot_take(c);

    BS_ASSERT(call->timeout.us > 0 && call->connect_timeout.us > 0);
    call->facts = (struct bs_facts){ .wire = BS_WIRE_INTERNAL, .started_at = now, .ended_at = now };
    if (!s) {
        call->impl = NULL;
        call->next = NULL;
        *c->done_end = call;
        c->done_end = &call->next;
        return;
    }
    s->call = call;
    s->started_us = bs_boot_us();
    call->impl = s;
    if (!bs_curl_set_url(s, call->url)) {
        fail(s, BS_WIRE_INTERNAL, "this is not a URL that can be called");
        return;
    }
    if (!s->ask_name) {
        launch(s, s->started_us);
        return;
    }
    struct bs_str host = bs_str_of(s->host);
    bs_resolver_ask(c->resolver, host, s->started_us, &s->question);
    resolved(s, s->started_us);
}

static void name_answered(void *ctx, struct bs_resolve *q)
{
    struct slot *s = BS_CONTAINER(q, struct slot, question);
    int64_t now_us = *(int64_t *)ctx;

    unlist_resolving(s);
    resolved(s, now_us);
}

static void expire_names(struct curl_caller *c, int64_t now_us)
{
    struct slot *next = NULL;

    if (now_us < c->name_due_us)
        return;
    c->name_due_us = INT64_MAX;
    for (struct slot *s = c->resolving; s; s = next) {
        next = s->next_resolving;
        if (now_us < name_limit_us(s)) {
            c->name_due_us = BS_MIN(c->name_due_us, name_limit_us(s));
            continue;
        }
        bs_resolver_cancel(&s->question);
        unlist_resolving(s);
        fail(s, BS_WIRE_DNS_TEMPORARY, "the look-up of the host name took too long");
    }
}

static void take_ended(struct shard *h)
{
    CURLMsg *m = NULL;
    int left = 0;

    while ((m = curl_multi_info_read(h->multi, &left))) {
        CURL *easy = m->easy_handle;
        CURLcode code = m->data.result;
        char *private = NULL;

        if (m->msg != CURLMSG_DONE)
            continue;
        curl_easy_getinfo(easy, CURLINFO_PRIVATE, &private);
        struct slot *s = (struct slot *)(void *)private;
        bs_curl_judge(s, code);
        curl_multi_remove_handle(h->multi, easy);
        hand_over(s);
    }
}

static void take_names(struct curl_caller *c)
{
    if (!c->resolving && !c->names_came)
        return;
    int64_t now_us = bs_boot_us();
    if (c->names_came)
        bs_resolver_run(c->resolver, now_us, name_answered, &now_us);
    c->names_came = false;
    expire_names(c, now_us);
}

static void caller_run(struct bs_caller *base, struct bs_time now)
{
    struct curl_caller *c = self(base);

    (void)now;
    bs_curl_loop_run(c);
    take_names(c);
    for (uint32_t i = 0; i < c->shards_n; i++)
        take_ended(c->shards[i]);
}

static struct bs_call *caller_finished(struct bs_caller *base)
{
    struct curl_caller *c = self(base);
    struct bs_call *call = c->done;

    if (!call)
        return NULL;
    c->done = call->next;
    if (!c->done)
        c->done_end = &c->done;
    call->next = NULL;
    return call;
}

/* A call that has already ended keeps its true result. */
static void caller_cancel(struct bs_caller *base, struct bs_call *call)
{
    struct slot *s = call->impl;
    long written = 0;

    (void)base;
    if (!s)
        return;
    if (s->stage == STAGE_RESOLVING) {
        bs_resolver_cancel(&s->question);
        unlist_resolving(s);
    } else {
        curl_easy_getinfo(s->easy, CURLINFO_REQUEST_SIZE, &written);
        curl_multi_remove_handle(s->shard->multi, s->easy);
    }
    call->facts = (struct bs_facts){ .sent = written > 0, .started_at = call->facts.started_at };
    fail(s, BS_WIRE_CANCELLED, "cancelled");
}

static void caller_wait(struct bs_caller *base, struct bs_mailbox *mail, int64_t until_us)
{
    bs_curl_loop_wait(self(base), mail, until_us);
}

static void drop_call(struct slot *s)
{
    if (s->stage == STAGE_RESOLVING) {
        bs_resolver_cancel(&s->question);
        unlist_resolving(s);
    } else if (s->stage == STAGE_RUNNING) {
        curl_multi_remove_handle(s->shard->multi, s->easy);
    }
}

static void caller_free(struct bs_caller *base)
{
    struct curl_caller *c = self(base);

    for (uint32_t i = 0; i < c->slots_n; i++)
        drop_call(c->slots[i]);
    bs_curl_slots_free(c);
    bs_resolver_free(c->resolver);
    bs_curl_loop_done(c);
    free(c->ca_file);
    free(c);
    curl_global_cleanup();
}

static const struct bs_caller_ops ops = {
    .start = caller_start,
    .run = caller_run,
    .finished = caller_finished,
    .cancel = caller_cancel,
    .wait = caller_wait,
    .free = caller_free,
};

static bs_rc open_caller(struct curl_caller *c, const struct bs_curl_options *o, struct bs_err *err)
{
    c->base.ops = &ops;
    c->clock = o->clock ? o->clock : bs_clock_system();
    c->connections_max = o->connections_max ? o->connections_max : CONNECTIONS_MAX;
    c->done_end = &c->done;
    c->epoll_fd = -1;
    c->mail_fd = -1;
    snprintf(c->user_agent, sizeof(c->user_agent), "Backstop/%s", BS_VERSION);
    if (o->ca_file && !(c->ca_file = strdup(o->ca_file)))
        return bs_fail(err, BS_E_NOMEM, "no memory for the HTTP caller");
    BS_TRY(bs_resolver_new(o->resolve_fake, &c->resolver, err));
    return bs_curl_loop_init(c, err);
}

bs_rc bs_curl_new(const struct bs_curl_options *o, struct bs_caller **ret, struct bs_err *err)
{
    struct curl_caller *c = calloc(1, sizeof(*c));

    if (!c)
        return bs_fail(err, BS_E_NOMEM, "no memory for the HTTP caller");
    if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) {
        free(c);
        return bs_fail(err, BS_E_UNAVAILABLE, "libcurl did not start");
    }
    bs_rc rc = open_caller(c, o, err);
    if (rc != BS_OK) {
        caller_free(&c->base);
        return rc;
    }
    *ret = &c->base;
    return BS_OK;
}
