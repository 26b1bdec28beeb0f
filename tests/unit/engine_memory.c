/* Every allocation fails once while tasks are on their way: nothing is lost, nothing stands still.
 * Linked with --wrap for malloc, calloc and realloc. */
#include "engine_world.h"

#include <stdio.h>

static const int64_t minute = 60000000;

static int64_t fail_in; /* 0: none */
static int64_t failed;

void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t size);

static bool fails(void)
{
    if (fail_in == 0 || --fail_in > 0)
        return false;
    failed++;
    return true;
}

void *__wrap_malloc(size_t size)
{
    return fails() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t n, size_t size)
{
    return fails() ? NULL : __real_calloc(n, size);
}

void *__wrap_realloc(void *p, size_t size)
{
    return fails() ? NULL : __real_realloc(p, size);
}

/* Whether the n-th allocation was reached. */
static bool one_run(int64_t n)
{
    struct world *w = world_new();
    int64_t ids[3];

    world_looks(w);
    w->confs[0].look_url = S("http://shop.test/orders/{biz_id}");
    w->confs[0].concurrency = 2;
    world_says(w,
               (struct line){ .match = "GET", .status = 200, .body = "{\"verdict\":\"go_on\"}" });
    world_start(w);
    for (int i = 0; i < 3; i++) {
        char key[16];

        (void)snprintf(key, sizeof(key), "r-%d", i);
        ids[i] = world_submit(w, key, ",\"payload_base64\":\"AP88eC8+\"");
    }
    failed = 0;
    fail_in = n;
    world_run(w, minute / 10);
    fail_in = 0;
    world_run(w, 10 * minute);
    assert_true(bs_engine_idle(w->engine));
    for (int i = 0; i < 3; i++) {
        BS_CLEANUP(bs_arena_free) struct bs_arena a = { 0 };
        struct bs_task t = world_task(w, ids[i], &a);

        if (t.state != BS_SUCCESS)
            fail_msg("allocation %lld: %s %.*s %.*s", (long long)n, bs_state_name(t.state),
                     BS_STR_FMT(t.last_error_code), BS_STR_FMT(t.last_error_msg));
    }
    assert_in_range(world_seen(w, "POST", NULL), 3, 4);
    world_free(w);
    return failed > 0;
}

static void any_allocation_may_fail_and_every_task_still_succeeds(void **state)
{
    int64_t n = 1;
    (void)state;

    while (one_run(n))
        n++;
    assert_in_range(n, 30, 2000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_allocation_may_fail_and_every_task_still_succeeds),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
