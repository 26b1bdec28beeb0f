/* A request as the HTTP server hands it over: "POST /v1/tasks?x=y", header lines, an empty line,
 * the body. A '!' in front: it came by the UNIX socket. Every request gets one well-formed answer,
 * and none is called a fault of the server. The store and the committer are puppets. */
#include "../unit/api_fake.h"

#include "api/call.h"
#include "fuzz.h"
#include "sys/log.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);

static void on_pause(void *ctx, struct bs_str biz_type, bool paused)
{
    (void)ctx;
    (void)paused;
    BS_ASSERT(biz_type.n >= 1 && biz_type.n <= 32);
}

static void stop(void)
{
    fake_stop();
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    fake_start();
    fake.api->o.on_pause = on_pause;
    fake.task = (struct bs_task){ .id = 42, .biz_type = BS_STR("PAY"), .state = BS_MANUAL };
    fake.alerts_n = 2;
    fake.audit_n = 2;
    atexit(stop);
    return 0;
}

static const struct {
    const char *name;
    enum bs_method method;
} methods[] = {
    { "GET", BS_GET },       { "POST", BS_POST },        { "PUT", BS_PUT },
    { "DELETE", BS_DELETE }, { "ANY", BS_METHOD_OTHER },
};

/* The first line; NULL: not a request that the server would let through. */
static struct fake_request *read_line(struct bs_arena *a, struct bs_str line, struct bs_str body)
{
    bool local = bs_str_starts(line, BS_STR("!"));
    struct bs_str target = { line.p + local, line.n - local };
    struct bs_str method = bs_str_cut(&target, ' ');
    size_t i = 0, parameters = 1;

    while (i < BS_COUNT(methods) && !bs_str_is(method, methods[i].name))
        i++;
    for (size_t k = 0; k < target.n; k++)
        parameters += target.p[k] == '&';
    if (i == BS_COUNT(methods) || !target.n || parameters > FAKE_QUERY_MAX ||
        memchr(target.p, 0, target.n) || !bs_utf8_valid(target))
        return NULL;
    struct fake_request *q = fake_request(methods[i].method, bs_arena_str(a, target).p, NULL, body);
    q->r.local = local;
    return q;
}

static void read_headers(struct fake_request *q, struct bs_arena *a, struct bs_str lines)
{
    while (lines.p && q->headers_n < FAKE_HEADERS_MAX) {
        struct bs_str value = bs_str_cut(&lines, '\n');
        struct bs_str name = bs_str_cut(&value, ':');

        value = bs_str_trim(value);
        if (name.n && !memchr(name.p, 0, name.n))
            fake_header(q, bs_arena_str(a, name).p, value.n ? bs_arena_str(a, value).p : "");
    }
}

/* What comes before the first empty line; the rest stays in *rest. */
static struct bs_str cut_head(struct bs_str *rest)
{
    const char *end = rest->n ? memmem(rest->p, rest->n, "\n\n", 2) : NULL;
    struct bs_str head = { rest->p, end ? (size_t)(end - rest->p) : rest->n };

    *rest = end ? (struct bs_str){ end + 2, rest->n - head.n - 2 } : BS_STR("");
    return head;
}

static void check_problem(struct fake_request *q)
{
    BS_ASSERT(strcmp(q->type, "application/problem+json") == 0);
    BS_ASSERT(fake_member(q, "code").n > 0 && fake_member(q, "title").n > 0);
    BS_ASSERT(bs_str_starts(fake_member(q, "type"), BS_STR("urn:backstop:problem:")));
    int64_t status = 0;
    bool whole = bs_i64_parse(fake_member(q, "status"), &status);
    BS_ASSERT(whole && status == q->status);
}

static void check_answer(struct fake_request *q)
{
    BS_ASSERT((q->status >= 200 && q->status < 300) || (q->status >= 400 && q->status < 500));
    if (q->status >= 400)
        check_problem(q);
    if (strstr(q->type, "json"))
        BS_ASSERT(bs_json_valid(bs_buf_str(&q->body), NULL) == BS_OK);
    if (q->status < 300 && strcmp(q->type, "application/json") == 0 && q->r.method == BS_POST)
        BS_ASSERT(q->r.local || q->headers_n > 0);
}

/* What the routes made of the texts of the request, as it reaches the store. */
static void check_asked(void)
{
    const struct bs_task_filter *f = &fake.last_filter;

    BS_ASSERT(f->limit <= 200 && f->before_id >= 0);
    BS_ASSERT(f->state < BS_STATE_COUNT && f->source < BS_SOURCE_COUNT);
    BS_ASSERT(fake.last_limit <= 200 && fake.last_cursor >= 0);
    if (fake.sent == 0)
        return;
    if (fake.last.kind == BS_OP_ACT)
        fuzz_check_text(fake.last.act.operator, 64);
    if (fake.last.kind == BS_OP_SUBMIT) {
        const struct bs_task *t = fake.last.submit.task;

        BS_ASSERT(t->created_by.n > 0 && t->request_id.n > 0);
        BS_ASSERT(!bs_str_is(t->created_by, "viewer") && !bs_str_is(t->created_by, "operator"));
    }
    fake.sent = 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    BS_CLEANUP(bs_arena_free) struct bs_arena a = { 0 };
    struct bs_str body = fuzz_input(data, n), head = cut_head(&body);
    struct bs_str line = bs_str_cut(&head, '\n');
    struct fake_request *q = read_line(&a, line, body);

    if (!q)
        return 0;
    read_headers(q, &a, head);
    fake_send(q);
    check_answer(q);
    check_asked();
    fake_free(q);
    bs_arena_free(&fake.memory);
    return 0;
}
