/* The contract: lists, cursors, logs in pages, readers beside the writer. */
#include "world.h"

#include <stdio.h>

static struct bs_task_page list(struct world *w, struct bs_task_filter f)
{
    struct bs_task_page page;

    if (f.limit == 0)
        f.limit = 50;
    assert_int_equal(bs_store_tasks(w->store, &f, &w->arena, &page, &w->err), BS_OK);
    return page;
}

static void every_exact_filter_finds_its_tasks_newest_first(void **state)
{
    struct world *w = *state;
    int64_t ids[2];

    for (int i = 0; i < 2; i++) {
        put_one(w, i ? "noise-1" : "noise-0");
        struct bs_task *t = sample(w, i ? "r-1" : "r-0");
        t->order_no = BS_STR("O");
        t->payment_no = BS_STR("P");
        t->channel_trade_no = BS_STR("C");
        t->refund_no = BS_STR("R");
        t->biz_id = BS_STR("B");
        t->source = BS_SRC_CALLBACK;
        ids[i] = put(w, t);
    }
    const struct bs_task_filter filters[] = {
        { .order_no = BS_STR("O") },         { .payment_no = BS_STR("P") },
        { .channel_trade_no = BS_STR("C") }, { .refund_no = BS_STR("R") },
        { .biz_id = BS_STR("B") },           { .source = BS_SRC_CALLBACK },
    };
    for (size_t i = 0; i < BS_COUNT(filters); i++) {
        struct bs_task_page p = list(w, filters[i]);
        assert_int_equal(p.n, 2);
        assert_int_equal(p.items[0].id, ids[1]);
        assert_int_equal(p.items[1].id, ids[0]);
        assert_int_equal(p.next_before_id, 0);
        assert_null(p.items[0].payload.p);
    }
    struct bs_task_page p = list(w, (struct bs_task_filter){ .request_id = BS_STR("r-0") });
    assert_int_equal(p.n, 1);
    assert_int_equal(p.items[0].id, ids[0]);
    assert_int_equal(
        list(w, (struct bs_task_filter){ .request_id = BS_STR("r-0"), .biz_id = BS_STR("x") }).n,
        0);
}

static void a_linked_request_is_found_under_its_own_request_id(void **state)
{
    struct world *w = *state;
    struct bs_task *a = sample(w, "r-1"), *b = sample(w, "r-2");

    a->effect_key = b->effect_key = BS_STR("e");
    int64_t first = put(w, a);
    struct bs_op op = submit_op(w, b, "content");
    assert_int_equal(apply(w, &op), BS_OK);
    struct bs_task_page p = list(w, (struct bs_task_filter){ .request_id = BS_STR("r-2") });
    assert_int_equal(p.n, 1);
    assert_int_equal(p.items[0].id, first);
}

static void states_and_codes_filter(void **state)
{
    struct world *w = *state;
    int64_t a = put_one(w, "a"), b = put_one(w, "b"), c = put_one(w, "c");

    struct bs_leased *l = claim(w, 2);
    assert_int_equal(finish(w, &l->task, BS_OUT_MANUAL, "HTTP_422"), BS_OK);
    assert_int_equal(finish(w, &l->next->task, BS_OUT_FAILED, "HTTP_409"), BS_OK);
    assert_int_equal(list(w, (struct bs_task_filter){ .state = BS_MANUAL }).items[0].id, a);
    assert_int_equal(list(w, (struct bs_task_filter){ .state = BS_RETRY }).items[0].id, b);
    assert_int_equal(list(w, (struct bs_task_filter){ .state = BS_WAITING }).items[0].id, c);
    assert_int_equal(list(w, (struct bs_task_filter){ .state = BS_CLOSED }).n, 0);
    assert_int_equal(list(w, (struct bs_task_filter){ .error_code = BS_STR("HTTP_409") }).n, 1);
    assert_int_equal(act(w, c, BS_ACT_HOLD, ""), BS_OK);
    assert_int_equal(list(w, (struct bs_task_filter){ .error_code = BS_STR("HELD") }).items[0].id,
                     c);
}

static void a_cursor_walks_over_everything_once(void **state)
{
    struct world *w = *state;
    struct bs_task_filter f = { .limit = 3 };
    uint32_t seen = 0;
    int64_t last = INT64_MAX;

    for (int i = 0; i < 10; i++)
        put_one(w, bs_arena_fmt(&w->arena, "r-%d", i).p);
    do {
        struct bs_task_page p = list(w, f);
        for (uint32_t i = 0; i < p.n; i++, seen++) {
            assert_true(p.items[i].id < last);
            last = p.items[i].id;
        }
        assert_int_equal(p.searched_to.us, 0);
        f.before_id = p.next_before_id;
    } while (f.before_id);
    assert_int_equal(seen, 10);
}

static void times_of_creation_bound_a_list(void **state)
{
    struct world *w = *state;
    int64_t ids[5];

    for (int i = 0; i < 5; i++) {
        ids[i] = put_one(w, bs_arena_fmt(&w->arena, "r-%d", i).p);
        advance(w, 1000000000);
    }
    const struct bs_task_filter f = { .created_from = { START_US + 1000000000 },
                                      .created_to = { START_US + 3000000000 } };
    struct bs_task_page p = list(w, f);
    assert_int_equal(p.n, 3);
    assert_int_equal(p.items[0].id, ids[3]);
    assert_int_equal(p.items[2].id, ids[1]);
}

static void a_restricted_token_sees_its_queues_only(void **state)
{
    struct world *w = *state;
    struct bs_task *t = sample(w, "r-2");
    const struct bs_str mine[] = { BS_STR("REFUND") };

    put_one(w, "r-1");
    t->biz_type = BS_STR("REFUND");
    int64_t id = put(w, t);
    struct bs_task_page p = list(w, (struct bs_task_filter){ .queues = mine, .queues_n = 1 });
    assert_int_equal(p.n, 1);
    assert_int_equal(p.items[0].id, id);
    assert_int_equal(list(w, (struct bs_task_filter){ .queues = mine, .queues_n = 0 }).n, 0);
}

/* 20,000 rows are looked at for a page; then it says how far it came. */
static void a_scan_that_is_too_long_says_how_far_it_looked(void **state)
{
    struct world *w = *state;
    enum { N = 1000, ROUNDS = 21 };
    static struct bs_op ops[N], *ops_list[N];
    struct bs_task *needle = sample(w, "needle");

    needle->source = BS_SRC_RECON;
    int64_t id = put(w, needle);
    for (int round = 0; round < ROUNDS; round++) {
        struct bs_arena a = { 0 };
        advance(w, 1000000);
        for (int i = 0; i < N; i++) {
            struct bs_task *t = sample(w, "x");
            t->request_id = bs_arena_fmt(&a, "r-%d-%d", round, i);
            ops[i] = submit_op(w, t, "c");
            ops_list[i] = &ops[i];
        }
        apply_all(w, ops_list, N);
        bs_arena_free(&a);
        bs_arena_free(&w->arena);
    }
    struct bs_task_filter f = { .source = BS_SRC_RECON, .limit = 50 };
    struct bs_task_page p = list(w, f);
    assert_int_equal(p.n, 0);
    assert_int_equal(p.searched_to.us, START_US + 2000000);
    assert_true(p.next_before_id > 0);
    f.before_id = p.next_before_id;
    p = list(w, f);
    assert_int_equal(p.n, 1);
    assert_int_equal(p.items[0].id, id);
    assert_int_equal(p.searched_to.us, 0);
    assert_int_equal(p.next_before_id, 0);
}

/* A row of two items is never cut, and the last page has the claim that still runs too. */
static void add_pages(struct world *w, int64_t id, uint32_t limit, struct bs_buf *all)
{
    enum bs_state before = BS_STATE_NONE;
    struct bs_log_page page;
    int64_t after = 0;

    do {
        assert_int_equal(bs_store_log(w->store, id, after, limit, &w->arena, &page, NULL), BS_OK);
        assert_in_range(page.n, 1, BS_MAX(limit, 2) + 1);
        for (uint32_t i = 0; i < page.n; i++) {
            assert_int_equal(page.items[i].from, before);
            before = page.items[i].to;
            bs_buf_fmt(all, "%s>%s ", page.items[i].event, bs_state_name(before));
        }
        after = page.next_after;
    } while (after);
}

static void a_log_can_be_read_in_pages(void **state)
{
    struct world *w = *state;
    int64_t id = put_one(w, "r-1");

    for (int i = 0; i < 3; i++) {
        assert_int_equal(finish(w, claim_one(w), BS_OUT_FAILED, "X"), BS_OK);
        advance(w, 3600000000);
    }
    claim_one(w);
    for (uint32_t limit = 1; limit <= 9; limit++) {
        BS_CLEANUP(bs_buf_free) struct bs_buf all = { .max = 4096 };

        add_pages(w, id, limit, &all);
        assert_string_equal(bs_buf_str(&all).p,
                            "submit>WAITING claim>PROCESSING failed>RETRY claim>PROCESSING "
                            "failed>RETRY claim>PROCESSING failed>RETRY claim>PROCESSING ");
    }
}

static void what_is_not_there_is_not_found(void **state)
{
    struct world *w = *state;
    struct bs_log_page page;
    struct bs_task t;

    assert_int_equal(bs_store_task(w->store, 5, &w->arena, &t, NULL), BS_E_NOT_FOUND);
    assert_int_equal(bs_store_log(w->store, 5, 0, 10, &w->arena, &page, NULL), BS_E_NOT_FOUND);
}

static struct bs_store *open_reader(struct world *w, struct bs_span limit)
{
    char url[128];
    struct bs_store *s = NULL;

    w->factory->url(w->dir, url, sizeof(url));
    const struct bs_store_options o = { .url = url, .mode = BS_STORE_READER, .read_limit = limit };
    if (bs_store_open(&o, &s, &w->err) != BS_OK)
        fail_msg("reader: %s", w->err.msg);
    return s;
}

static void a_reader_sees_what_is_committed_and_nothing_else(void **state)
{
    struct world *w = *state;
    struct bs_store *r = open_reader(w, BS_SEC(5));
    struct bs_task t;
    int64_t id = put_one(w, "r-1");

    assert_int_equal(bs_store_task(r, id, &w->arena, &t, NULL), BS_OK);
    struct bs_op op = finish_op(w, claim_one(w), BS_OUT_SUCCESS, ""), *ops = &op;
    bs_faulty_plan(w->db, &(struct bs_fault_plan){ .calls = BS_FAULT_COMMIT, .fail_in = 1 });
    assert_int_equal(bs_store_apply(w->store, &ops, 1, NULL), BS_E_UNAVAILABLE);
    assert_int_equal(bs_store_task(r, id, &w->arena, &t, NULL), BS_OK);
    assert_int_equal(t.state, BS_PROCESSING);
    assert_int_equal(apply(w, &op), BS_OK);
    assert_int_equal(bs_store_task(r, id, &w->arena, &t, NULL), BS_OK);
    assert_int_equal(t.state, BS_SUCCESS);
    bs_store_close(r);
}

static void a_reader_leaves_nothing_open_behind_it(void **state)
{
    struct world *w = *state;
    struct bs_store *r = open_reader(w, BS_SEC(5));
    struct bs_task t;
    int64_t id = put_one(w, "r-1"), left = -1;

    assert_int_equal(bs_store_task(r, id, &w->arena, &t, NULL), BS_OK);
    put_one(w, "r-2");
    struct bs_store *upkeep = open_reader(w, BS_SEC(5));
    assert_int_equal(bs_store_checkpoint(upkeep, &left, &w->err), BS_OK);
    assert_int_equal(left, 0);
    bs_store_close(upkeep);
    bs_store_close(r);
}

static void a_statement_of_a_reader_has_a_deadline(void **state)
{
    struct world *w = *state;
    enum { N = 1000 };
    static struct bs_op ops[N], *ops_list[N];

    for (int i = 0; i < N; i++) {
        ops[i] = submit_op(w, sample(w, bs_arena_fmt(&w->arena, "r-%d", i).p), "c");
        ops_list[i] = &ops[i];
    }
    apply_all(w, ops_list, N);
    struct bs_store *r = open_reader(w, BS_US(1));
    struct bs_task_page page;
    const struct bs_task_filter f = { .limit = 1, .error_code = BS_STR("none") };
    assert_int_equal(bs_store_tasks(r, &f, &w->arena, &page, &w->err), BS_E_LIMIT);
    bs_store_close(r);
}

int run_read_cases(void)
{
    const struct CMUnitTest cases[] = {
        CASE(every_exact_filter_finds_its_tasks_newest_first),
        CASE(a_linked_request_is_found_under_its_own_request_id),
        CASE(states_and_codes_filter),
        CASE(a_cursor_walks_over_everything_once),
        CASE(times_of_creation_bound_a_list),
        CASE(a_restricted_token_sees_its_queues_only),
        CASE(a_scan_that_is_too_long_says_how_far_it_looked),
        CASE(a_log_can_be_read_in_pages),
        CASE(what_is_not_there_is_not_found),
        CASE(a_reader_sees_what_is_committed_and_nothing_else),
        CASE(a_reader_leaves_nothing_open_behind_it),
        CASE(a_statement_of_a_reader_has_a_deadline),
    };

    return cmocka_run_group_tests_name("read", cases, NULL, NULL);
}
