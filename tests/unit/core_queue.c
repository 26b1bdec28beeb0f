/* Finding a queue by its exact name. */
#include "core/queue.h"
#include "core_test.h"

static void each_queue_is_found_and_nothing_else(void **state)
{
    static const char *const names[] = { "A", "PAY", "PAY.1", "PAY_CALLBACK", "REFUND", "a" };
    static const char *const others[] = { "", "0", "B", "PA", "PAY_", "PAY_CALLBACK2", "pay", "b" };
    struct bs_queue_conf items[BS_COUNT(names)] = { { .concurrency = 0 } };

    (void)state;
    for (uint32_t i = 0; i < BS_COUNT(names); i++)
        items[i].biz_type = bs_str_of(names[i]);
    for (uint32_t n = 0; n <= BS_COUNT(names); n++) {
        struct bs_queues all = { items, n };

        for (uint32_t i = 0; i < BS_COUNT(names); i++)
            assert_ptr_equal(bs_queue_find(&all, bs_str_of(names[i])), i < n ? &items[i] : NULL);
        for (uint32_t i = 0; i < BS_COUNT(others); i++)
            assert_null(bs_queue_find(&all, bs_str_of(others[i])));
    }
}

static void without_queues_none_is_found(void **state)
{
    (void)state;
    assert_null(bs_queue_find(NULL, S("PAY")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_queue_is_found_and_nothing_else),
        cmocka_unit_test(without_queues_none_is_found),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
