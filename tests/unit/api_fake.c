/* See api_fake.h. Defines what the API calls of net/http.h, store/committer.h and store/store.h. */
#include "api_fake.h"

#include "sys/log.h"
#include "json/read.h"

#include <stdlib.h>
#include <time.h>
#include <unistd.h>

struct fake fake;
const int32_t bs_store_program_version = 4;

static const struct bs_queue_conf confs[] = {
    { .biz_type = { "MONEY", 5 },
      .look = BS_LOOK_HTTP,
      .policy = { .max_retry_count = 7, .effect = BS_EFFECT_MONEY } },
    { .biz_type = { "NOTE", 4 }, .policy = { .max_retry_count = 3, .effect = BS_EFFECT_NONE } },
    { .biz_type = { "PAY", 3 },
      .concurrency = 32,
      .rate = { 200, { 1000000 } },
      .handler_host = { "shop.example:443", 16 },
      .policy = { .max_retry_count = 10,
                  .max_age = { INT64_C(259200000000) },
                  .effect = BS_EFFECT_REPEATABLE } },
};
static const struct bs_queues queues = { confs, 3 };

static void nap(void)
{
    nanosleep(&(struct timespec){ 0, 200000 }, NULL);
}

/* ---- net/http.h ---- */

static struct bs_str find_pair(const struct fake_pair *pairs, uint32_t n, const char *name)
{
    for (uint32_t i = 0; i < n; i++) {
        if (bs_str_eq_nocase(bs_str_of(pairs[i].name), bs_str_of(name)))
            return pairs[i].value;
    }
    return BS_STR_NONE;
}

struct bs_str bs_http_header(struct bs_http_request *r, const char *name)
{
    struct fake_request *q = BS_CONTAINER(r, struct fake_request, r);

    return find_pair(q->headers, q->headers_n, name);
}

struct bs_str bs_http_query(struct bs_http_request *r, const char *name, bool *ret_twice)
{
    struct fake_request *q = BS_CONTAINER(r, struct fake_request, r);

    (void)ret_twice;
    return find_pair(q->query, q->query_n, name);
}

void bs_http_query_each(struct bs_http_request *r,
                        void (*each)(void *ctx, struct bs_str name, struct bs_str value), void *ctx)
{
    struct fake_request *q = BS_CONTAINER(r, struct fake_request, r);

    for (uint32_t i = 0; i < q->query_n; i++)
        each(ctx, bs_str_of(q->query[i].name), q->query[i].value);
}

void bs_http_reply_header(struct bs_http_request *r, const char *name, struct bs_str value)
{
    struct fake_request *q = BS_CONTAINER(r, struct fake_request, r);

    assert_true(q->answered_n < FAKE_HEADERS_MAX);
    q->answered[q->answered_n++] = (struct fake_pair){ name, bs_arena_str(&r->arena, value) };
}

void bs_http_reply(struct bs_http_request *r, int status, const char *content_type,
                   struct bs_buf *body)
{
    struct fake_request *q = BS_CONTAINER(r, struct fake_request, r);

    assert_int_equal(q->status, 0);
    assert_false(body->failed);
    q->status = status;
    q->type = content_type;
    q->body = *body;
    *body = (struct bs_buf){ 0 };
}

void bs_http_wait(struct bs_http_request *r, struct bs_span limit,
                  void (*on_timeout)(struct bs_http_request *r))
{
    struct fake_request *q = BS_CONTAINER(r, struct fake_request, r);

    assert_false(q->waits);
    assert_int_equal(limit.us, 2000000);
    q->waits = true;
    q->on_timeout = on_timeout;
}

void bs_http_ready(struct bs_http_request *r)
{
    struct fake_request *q = BS_CONTAINER(r, struct fake_request, r);

    BS_ASSERT(q->waits && !atomic_load(&q->ready));
    atomic_store(&q->ready, true);
}

/* ---- store/committer.h ---- */

static void run_work(struct bs_work *w, bs_rc rc)
{
    struct bs_err err = { .rc = rc, .msg = "the store is away" };

    for (uint32_t i = 0; rc == BS_OK && i < w->n; i++) {
        if (w->ops[i]->kind == BS_OP_SUBMIT)
            w->ops[i]->submit.ret_task_id = w->ops[i]->id;
        if (fake.apply)
            fake.apply(w->ops[i]);
    }
    w->done(w, rc, rc == BS_OK ? NULL : &err);
}

/* What a test looks at afterwards, when the request is gone. */
static void keep(struct bs_str *s)
{
    *s = bs_arena_str(&fake.memory, *s);
}

static void remember(const struct bs_op *op)
{
    fake.last = *op;
    if (op->kind == BS_OP_SUBMIT) {
        fake.last.submit.task = BS_NEW(&fake.memory, struct bs_task);
        *fake.last.submit.task = *op->submit.task;
        keep(&fake.last.submit.task->created_by);
        keep(&fake.last.submit.task->request_id);
    } else if (op->kind == BS_OP_ACT) {
        keep(&fake.last.act.operator);
        keep(&fake.last.act.reason);
        keep(&fake.last.act.conclusion);
    } else if (op->kind == BS_OP_QUEUE_PAUSE) {
        keep(&fake.last.queue_pause.operator);
        keep(&fake.last.queue_pause.reason);
    } else if (op->kind == BS_OP_TOKEN_ADD) {
        keep(&fake.last.token_add.queues);
        keep(&fake.last.token_add.operator);
        keep(&fake.last.token_add.reason);
    } else if (op->kind == BS_OP_TOKEN_REVOKE) {
        keep(&fake.last.token_revoke.reason);
    }
}

bool bs_committer_send(struct bs_committer *c, struct bs_work *w)
{
    (void)c;
    if (fake.committer == FAKE_IS_FULL)
        return false;
    fake.sent++;
    remember(w->ops[w->n - 1]);
    fake.last_rank = w->rank;
    if (fake.committer == FAKE_HOLDS)
        fake.held = w;
    else
        run_work(w, fake.committer == FAKE_FAILS ? fake.work_rc : BS_OK);
    return true;
}

void fake_let_go(bs_rc rc)
{
    struct bs_work *w = fake.held;

    assert_non_null(w);
    fake.held = NULL;
    run_work(w, rc);
}

bool bs_committer_healthy(struct bs_committer *c)
{
    (void)c;
    return true;
}

void bs_committer_figures(struct bs_committer *c, struct bs_committer_figures *ret)
{
    (void)c;
    *ret = (struct bs_committer_figures){ .commits = 12, .commit_us_sum = 1500000 };
}

/* ---- store/store.h ---- */

bs_rc bs_store_open(const struct bs_store_options *o, struct bs_store **ret, struct bs_err *err)
{
    bs_rc rc = (bs_rc)atomic_load(&fake.open_rc);

    BS_ASSERT(o->mode == BS_STORE_READER);
    if (rc != BS_OK)
        return bs_fail(err, rc, "cannot be opened");
    *ret = malloc(1);
    return BS_OK;
}

void bs_store_close(struct bs_store *s)
{
    free(s);
}

static bs_rc may_read(struct bs_err *err)
{
    bs_rc rc = (bs_rc)atomic_load(&fake.read_rc);

    while (atomic_load(&fake.reads_wait))
        nap();
    return rc == BS_OK ? BS_OK : bs_fail(err, rc, "the read failed");
}

bs_rc bs_store_task(struct bs_store *s, int64_t id, struct bs_arena *a, struct bs_task *ret,
                    struct bs_err *err)
{
    (void)s;
    BS_TRY(may_read(err));
    if (id != fake.task.id)
        return bs_fail(err, BS_E_NOT_FOUND, "there is no task %lld", (long long)id);
    *ret = fake.task;
    ret->request_id = bs_arena_str(a, fake.task.request_id);
    return BS_OK;
}

bs_rc bs_store_tasks(struct bs_store *s, const struct bs_task_filter *f, struct bs_arena *a,
                     struct bs_task_page *ret, struct bs_err *err)
{
    (void)s;
    BS_TRY(may_read(err));
    fake.last_filter = *f;
    fake.last_filter.queues = NULL;
    *ret = (struct bs_task_page){ .items = BS_NEW(a, struct bs_task),
                                  .n = 1,
                                  .next_before_id = fake.task.id,
                                  .searched_to = { 1000000 } };
    ret->items[0] = fake.task;
    return BS_OK;
}

bs_rc bs_store_log(struct bs_store *s, int64_t task_id, int64_t after, uint32_t limit,
                   struct bs_arena *a, struct bs_log_page *ret, struct bs_err *err)
{
    (void)s;
    BS_TRY(may_read(err));
    assert_int_equal(task_id, fake.task.id);
    fake.last_cursor = after;
    fake.last_limit = limit;
    *ret = (struct bs_log_page){ .items = BS_NEW_ARRAY(a, struct bs_log_item, 2), .n = 2 };
    ret->items[0] = (struct bs_log_item){
        .at = { 1000000 }, .event = "submit", .to = BS_WAITING, .duration_ms = -1
    };
    ret->items[1] = (struct bs_log_item){ .at = { 2000000 },
                                          .event = "failed",
                                          .from = BS_PROCESSING,
                                          .to = BS_RETRY,
                                          .attempt_no = 1,
                                          .outcome = BS_STR("failed"),
                                          .code = BS_STR("HTTP_409"),
                                          .http_status = 409,
                                          .duration_ms = 0,
                                          .token = 9007199254740995 };
    ret->next_after = 55;
    return BS_OK;
}

bs_rc bs_store_stats(struct bs_store *s, struct bs_arena *a, struct bs_stat_row **ret,
                     uint32_t *ret_n, struct bs_err *err)
{
    (void)s;
    BS_TRY(may_read(err));
    *ret = BS_NEW_ARRAY(a, struct bs_stat_row, 3);
    (*ret)[0] = (struct bs_stat_row){ BS_STR("MONEY"), BS_MANUAL, BS_STR("CNY"), 2, 7, 1 };
    (*ret)[1] = (struct bs_stat_row){ BS_STR("OLD"), BS_WAITING, BS_STR_NONE, 4, 0, 0 };
    (*ret)[2] =
        (struct bs_stat_row){ BS_STR("PAY"), BS_SUCCESS, BS_STR("CNY"), 3, 9007199254740995, 0 };
    *ret_n = 3;
    return BS_OK;
}

bs_rc bs_store_queues(struct bs_store *s, struct bs_arena *a, struct bs_queue_row **ret,
                      uint32_t *ret_n, struct bs_err *err)
{
    (void)s;
    BS_TRY(may_read(err));
    *ret = BS_NEW_ARRAY(a, struct bs_queue_row, 1);
    (*ret)[0] = (struct bs_queue_row){ .biz_type = BS_STR("PAY"),
                                       .paused = fake.last_paused,
                                       .oldest_due = { fake.clock.at.us - 90000000 },
                                       .oldest_manual = { fake.clock.at.us - 7200000000 } };
    *ret_n = 1;
    return BS_OK;
}

bs_rc bs_store_alerts(struct bs_store *s, const struct bs_alert_filter *f, struct bs_arena *a,
                      struct bs_alert_row **ret, uint32_t *ret_n, struct bs_err *err)
{
    uint32_t n = BS_MIN(f->limit, fake.alerts_n);

    (void)s;
    BS_TRY(may_read(err));
    fake.last_cursor = f->before_id;
    fake.last_which = f->which;
    *ret = BS_NEW_ARRAY(a, struct bs_alert_row, n ? n : 1);
    for (uint32_t i = 0; i < n; i++)
        (*ret)[i] = (struct bs_alert_row){ .id = 1000 - i,
                                           .kind = BS_STR("EFFECT_CONFLICT"),
                                           .biz_type = i ? BS_STR("MONEY") : BS_STR("PAY"),
                                           .count = 2,
                                           .open = i == 0,
                                           .recovered_at = { i ? fake.clock.at.us : 0 } };
    *ret_n = n;
    return BS_OK;
}

/* The first is told to two. */
bs_rc bs_store_deliveries(struct bs_store *s, int64_t alert_id, struct bs_arena *a,
                          struct bs_delivery **ret, uint32_t *ret_n, struct bs_err *err)
{
    static struct bs_delivery told[] = {
        { .deliverer = { "boss", 4 },
          .phase = BS_ALERT_RAISED,
          .attempts = 3,
          .next_at = { INT64_C(1796054400000000) },
          .code = { "HTTP_503", 8 } },
        { .deliverer = { "ops", 3 },
          .phase = BS_ALERT_RECOVERED,
          .state = BS_DELIVERY_SENT,
          .attempts = 1 },
    };

    (void)s;
    (void)a;
    BS_TRY(may_read(err));
    *ret = told;
    *ret_n = alert_id == 1000 ? 2 : 0;
    return BS_OK;
}

bs_rc bs_store_audit(struct bs_store *s, int64_t before_id, uint32_t limit, struct bs_arena *a,
                     struct bs_audit_row **ret, uint32_t *ret_n, struct bs_err *err)
{
    uint32_t n = BS_MIN(limit, fake.audit_n);

    (void)s;
    (void)before_id;
    BS_TRY(may_read(err));
    *ret = BS_NEW_ARRAY(a, struct bs_audit_row, n ? n : 1);
    for (uint32_t i = 0; i < n; i++)
        (*ret)[i] = (struct bs_audit_row){ .id = 500 - i,
                                           .at = { 1000000 },
                                           .operator= BS_STR("ann"),
                                           .action = BS_STR("close"),
                                           .before = BS_STR("{\"version\":\"1\"}") };
    *ret_n = n;
    return BS_OK;
}

bs_rc bs_store_tokens(struct bs_store *s, struct bs_arena *a, struct bs_token_row **ret,
                      uint32_t *ret_n, int64_t *ret_version, struct bs_err *err)
{
    (void)s;
    (void)err;
    *ret = BS_NEW_ARRAY(a, struct bs_token_row, BS_COUNT(fake.tokens));
    memcpy(*ret, fake.tokens, sizeof(fake.tokens));
    *ret_n = fake.tokens_n;
    *ret_version = atomic_load(&fake.tokens_version);
    return BS_OK;
}

bs_rc bs_store_tokens_version(struct bs_store *s, int64_t *ret, struct bs_err *err)
{
    (void)s;
    (void)err;
    *ret = atomic_load(&fake.tokens_version);
    return BS_OK;
}

/* ---- the puppet master ---- */

static void on_pause(void *ctx, struct bs_str biz_type, bool paused)
{
    (void)ctx;
    assert_true(bs_str_is(biz_type, "PAY"));
    fake.pauses++;
    fake.last_paused = paused;
}

static bool is_ready(void *ctx, const char **ret_why)
{
    (void)ctx;
    *ret_why = "draining";
    return !fake.not_ready;
}

/* Of PAY, which is held by its breaker; 100 calls took 7 ms each. */
static uint32_t live(void *ctx, struct bs_queue_live *ret, uint32_t max)
{
    (void)ctx;
    assert_true(max >= 1);
    ret[0] = (struct bs_queue_live){ .biz_type = "PAY",
                                     .running = 3,
                                     .held_until = { fake.clock.at.us + fake.held_us },
                                     .breaker_open = true,
                                     .since = { fake.clock.at.us - 1000000 },
                                     .openings = 2,
                                     .why = "HTTP_404 \"x\"",
                                     .calls = &fake.calls,
                                     .waits = &fake.waits,
                                     .settles = &fake.settles };
    return 1;
}

static void more_metrics(void *ctx, struct bs_buf *out)
{
    (void)ctx;
    bs_buf_addz(out, "more 1\n");
}

static void add_token(const char *text, const char *name, const char *role, const char *of_queues)
{
    fake.tokens[fake.tokens_n++] = (struct bs_token_row){ .id = 1,
                                                          .name = bs_str_of(name),
                                                          .role = bs_str_of(role),
                                                          .queues = bs_str_of(of_queues),
                                                          .hash = bs_sha256_of(bs_str_of(text)),
                                                          .created_at = { 1000000 } };
}

static void add_tokens(void)
{
    add_token("tok-service", "service", "service", "");
    add_token("tok-viewer", "viewer", "viewer", "");
    add_token("tok-operator", "operator", "operator", "");
    add_token("tok-approver", "approver", "approver", "");
    add_token("tok-finance", "finance", "finance", "");
    add_token("tok-admin", "admin", "admin", "");
    add_token("tok-pay", "pay", "service", "NOTE, PAY");
    add_token("tok-op-pay", "op-pay", "operator", "PAY");
    add_token("tok-admin-pay", "admin-pay", "admin", "PAY");
    add_token("tok-odd", "odd", "king", "");
    add_token("tok-gone", "gone", "admin", "");
    fake.tokens[fake.tokens_n - 1].revoked_at.us = 5;
}

void fake_start(void)
{
    fake_start_with(BS_OK);
}

void fake_start_with(bs_rc open_rc)
{
    struct bs_err err = { 0 };

    bs_log_setup(2, 1, BS_LOG_ERROR + 1);
    fake = (struct fake){ .held_us = 5000000 };
    for (int i = 0; i < 100; i++)
        bs_hist_add(&fake.calls, BS_MS(7));
    bs_hist_add(&fake.waits, BS_SEC(7200));
    atomic_store(&fake.slot.now, &queues);
    bs_ids_init(&fake.ids, 1);
    bs_clock_manual_init(&fake.clock, (struct bs_time){ 1790000000000000 });
    atomic_store(&fake.tokens_version, 1);
    atomic_store(&fake.open_rc, (int)open_rc);
    add_tokens();
    struct bs_api_options o = { .queues = &fake.slot,
                                .store_url = "sqlite:fake",
                                .clock = &fake.clock.base,
                                .ids = &fake.ids,
                                .node = BS_STR("n1"),
                                .on_pause = on_pause,
                                .metrics = more_metrics,
                                .live = live,
                                .ready = is_ready };
    if (bs_api_new(&o, &fake.api, &err) != BS_OK)
        fail_msg("no API: %s", err.msg);
}

void fake_stop(void)
{
    atomic_store(&fake.reads_wait, false);
    bs_api_free(fake.api);
    bs_arena_free(&fake.memory);
}

static void split_query(struct fake_request *q, struct bs_str rest)
{
    while (rest.p) {
        struct bs_str value = bs_str_cut(&rest, '&');
        struct bs_str name = bs_str_cut(&value, '=');

        assert_true(q->query_n < FAKE_QUERY_MAX);
        q->query[q->query_n++] =
            (struct fake_pair){ bs_arena_str(&q->r.arena, name).p, value.p ? value : BS_STR("") };
    }
}

struct fake_request *fake_request(enum bs_method method, const char *target, const char *token,
                                  struct bs_str body)
{
    struct fake_request *q = calloc(1, sizeof(*q));
    struct bs_str rest = bs_str_of(target);

    assert_non_null(q);
    q->r.method = method;
    q->r.path = bs_str_cut(&rest, '?');
    q->r.body = body;
    split_query(q, rest);
    if (token)
        fake_header(q, "Authorization", bs_arena_fmt(&q->r.arena, "Bearer %s", token).p);
    if (method == BS_POST)
        fake_header(q, "Content-Type", "application/json");
    return q;
}

void fake_header(struct fake_request *q, const char *name, const char *value)
{
    for (uint32_t i = 0; i < q->headers_n; i++) {
        if (strcmp(q->headers[i].name, name) == 0) {
            q->headers[i].value = bs_str_of(value);
            return;
        }
    }
    assert_true(q->headers_n < FAKE_HEADERS_MAX);
    q->headers[q->headers_n++] = (struct fake_pair){ name, bs_str_of(value) };
}

void fake_begin(struct fake_request *q)
{
    bs_api_handle(fake.api, &q->r);
    assert_true(q->waits != (q->status != 0));
}

void fake_wait_ready(struct fake_request *q)
{
    time_t until = time(NULL) + 5;

    while (!atomic_load(&q->ready) && time(NULL) < until)
        nap();
    assert_true(atomic_load(&q->ready));
}

void fake_finish(struct fake_request *q)
{
    fake_wait_ready(q);
    q->r.on_ready(&q->r);
    assert_int_not_equal(q->status, 0);
}

void fake_send(struct fake_request *q)
{
    fake_begin(q);
    if (q->waits)
        fake_finish(q);
}

void fake_free(struct fake_request *q)
{
    bs_buf_free(&q->body);
    bs_arena_free(&q->r.arena);
    free(q);
}

int fake_ask(enum bs_method method, const char *target, const char *token, const char *body,
             struct fake_request **ret)
{
    struct fake_request *q = fake_request(method, target, token, bs_str_of(body));

    fake_send(q);
    int status = q->status;
    if (ret)
        *ret = q;
    else
        fake_free(q);
    return status;
}

const char *fake_answered(const struct fake_request *q, const char *name)
{
    struct bs_str v = find_pair(q->answered, q->answered_n, name);

    return v.p ? v.p : "";
}

struct bs_str fake_member(struct fake_request *q, const char *name)
{
    struct bs_json_object o;
    struct bs_err err = { 0 };

    if (bs_json_read_object(&q->r.arena, bs_buf_str(&q->body), 100, &o, &err) != BS_OK)
        fail_msg("no JSON object: %s: %.*s", err.msg, BS_STR_FMT(bs_buf_str(&q->body)));
    for (uint32_t i = 0; i < o.n; i++) {
        if (bs_str_is(o.members[i].name, name))
            return o.members[i].type == BS_JSON_STRING ? o.members[i].text : o.members[i].raw;
    }
    return BS_STR("");
}
