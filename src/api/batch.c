/* POST /v1/tasks/batch: up to 1,000 submissions, one work, one answer with a line for each. */
#include "api/submit.h"

struct item {
    struct bs_op *op; /* NULL: refused before the store */
    enum bs_problem problem;
    const char *code;  /* of the first broken rule, or the problem's */
    const char *field; /* NULL: none */
    struct bs_str message;
};

struct batch {
    struct item *items;
    uint32_t n;
    struct bs_op **ops; /* those that go to the store */
    uint32_t ops_n;
    size_t bytes;
};

static void refuse(struct item *it, enum bs_problem p, struct bs_str message)
{
    it->problem = p;
    it->code = bs_problem_code(p);
    it->message = message;
}

static void read_item(struct bs_call *c, struct bs_str text, struct bs_time now, struct item *it)
{
    struct bs_arena *a = &c->r->arena;
    struct bs_door door = bs_submit_door(c);
    struct bs_op *op = BS_NEW(a, struct bs_op);
    struct bs_field_errors errors;
    struct bs_err err = { 0 };

    if (!op) {
        refuse(it, BS_PROBLEM_INTERNAL, BS_STR("no memory"));
        return;
    }
    struct bs_door_input in = { .json = text, .who = c->who.name, .now = now };
    bs_rc rc = bs_door_read(&door, &in, a, op, &errors, &err);
    if (rc == BS_OK && bs_who_sees(&c->who, op->submit.task->biz_type)) {
        it->op = op;
        return;
    }
    if (rc == BS_OK) {
        refuse(it, BS_PROBLEM_FORBIDDEN, BS_STR("the token may not submit to this queue"));
    } else if (rc == BS_E_INVALID && errors.n) {
        *it = (struct item){ .problem = BS_PROBLEM_INVALID_FIELDS,
                             .code = errors.items[0].code,
                             .field = errors.items[0].field,
                             .message = errors.items[0].message };
    } else {
        refuse(it, rc == BS_E_INVALID ? BS_PROBLEM_NOT_JSON : BS_PROBLEM_INTERNAL,
               bs_arena_str(a, bs_str_of(err.msg)));
    }
}

/* Not JSON is the item's fault here, not the request's: it counts as a wrong field. */
static int item_status(const struct item *it)
{
    if (it->problem == BS_PROBLEM_NOT_JSON)
        return 422;
    if (it->problem)
        return bs_problem_status(it->problem);
    return it->op->submit.ret_what == BS_SUBMITTED_CREATED ? 201 : 200;
}

/* What the store said of an item becomes the item's own. */
static void settle(struct item *it)
{
    enum bs_problem p = it->op ? bs_submit_problem(it->op) : BS_PROBLEM_NONE;

    if (p)
        refuse(it, p, bs_str_of(it->op->err.msg));
}

static void render_item(struct bs_json *j, uint32_t index, const struct item *it)
{
    const char *duplicate = it->op && !it->problem ? bs_submit_duplicate(it->op) : NULL;
    int64_t id = it->op ? it->op->submit.ret_task_id : 0;

    if (it->op && !it->problem && it->op->submit.ret_what == BS_SUBMITTED_CREATED)
        id = it->op->id;
    bs_json_open(j);
    bs_json_kint(j, "index", index);
    bs_json_kint(j, "status", item_status(it));
    if (id)
        bs_json_kid(j, "task_no", id);
    if (duplicate)
        bs_json_kstr(j, "duplicate", bs_str_of(duplicate));
    if (it->problem)
        bs_json_kstr(j, "code", bs_str_of(it->code));
    if (it->field)
        bs_json_kstr(j, "field", bs_str_of(it->field));
    if (it->problem && it->message.n)
        bs_json_kstr(j, "message", it->message);
    bs_json_close(j);
}

static void render(struct bs_call *c)
{
    struct batch *b = c->state;

    if (c->rc != BS_OK) {
        bs_submit_store_away(c);
        return;
    }
    struct bs_json *j = bs_call_json(c, 200);
    if (!j)
        return;
    bs_json_open(j);
    bs_json_key(j, "items");
    bs_json_open_array(j);
    for (uint32_t i = 0; i < b->n; i++) {
        settle(&b->items[i]);
        render_item(j, i, &b->items[i]);
    }
    bs_json_close_array(j);
    bs_json_close(j);
    bs_call_json_end(c, j);
}

static void committed(struct bs_call *c)
{
    c->render = render;
    bs_call_finish(c);
}

static bool is_lines(struct bs_call *c)
{
    struct bs_str rest = bs_http_header(c->r, "Content-Type");

    return bs_str_eq_nocase(bs_str_trim(bs_str_cut(&rest, ';')), BS_STR("application/x-ndjson"));
}

/* False: the answer is a problem. */
static bool split(struct bs_call *c, struct bs_str **ret, uint32_t *ret_n)
{
    struct bs_err err = { 0 };

    if (bs_http_header(c->r, "Idempotency-Key").p) {
        bs_call_problem(c, BS_PROBLEM_BAD_HEADER,
                        "Idempotency-Key: in a batch each item has its own request_id");
        return false;
    }
    bs_rc rc = bs_door_split(c->r->body, is_lines(c), &c->r->arena, ret, ret_n, &err);
    if (rc == BS_OK)
        return true;
    bs_call_problem(c,
                    rc == BS_E_LIMIT     ? BS_PROBLEM_TOO_BIG
                    : rc == BS_E_INVALID ? BS_PROBLEM_NOT_JSON
                                         : BS_PROBLEM_INTERNAL,
                    "%s", err.msg);
    return false;
}

static bool read_items(struct bs_call *c, struct batch *b, const struct bs_str *texts)
{
    struct bs_time now = bs_now(c->api->o.clock);

    b->items = BS_NEW_ARRAY(&c->r->arena, struct item, b->n ? b->n : 1);
    b->ops = BS_NEW_ARRAY(&c->r->arena, struct bs_op *, b->n ? b->n : 1);
    if (!b->items || !b->ops) {
        bs_call_problem(c, BS_PROBLEM_INTERNAL, "no memory for the batch");
        return false;
    }
    for (uint32_t i = 0; i < b->n; i++) {
        read_item(c, texts[i], now, &b->items[i]);
        if (b->items[i].op) {
            b->ops[b->ops_n++] = b->items[i].op;
            b->bytes += bs_submit_bytes(b->items[i].op);
        }
    }
    return true;
}

enum bs_next bs_route_batch(struct bs_call *c)
{
    struct batch *b = BS_NEW(&c->r->arena, struct batch);
    struct bs_str *texts = NULL;

    c->state = b;
    if (!b) {
        bs_call_problem(c, BS_PROBLEM_INTERNAL, "no memory for the batch");
        return BS_REPLY_NOW;
    }
    if (!split(c, &texts, &b->n) || !read_items(c, b, texts))
        return BS_REPLY_NOW;
    if (!b->ops_n) {
        c->render = render;
        return BS_REPLY_NOW;
    }
    c->committed = committed;
    bs_call_wait(c);
    bs_call_commit(c, BS_RANK_INTAKE, b->ops, b->ops_n, b->bytes);
    return BS_REPLY_LATER;
}
