/* Ids grow, whatever the clock does, and carry their instant. */
#include "sys/ids.h"

#include "check.h"
#include "sys/entropy.h"

#include <pthread.h>

#define EPOCH_US INT64_C(1577836800000000)

static struct bs_time ms(int64_t n)
{
    return (struct bs_time){ EPOCH_US + n * 1000 };
}

static void an_id_is_time_node_and_sequence(void **state)
{
    struct bs_ids ids;

    (void)state;
    bs_ids_init(&ids, 1023);
    assert_int_equal(bs_ids_next(&ids, ms(5)), INT64_C(5) << 22 | 1023 << 12 | 0);
    assert_int_equal(bs_ids_next(&ids, ms(5)), INT64_C(5) << 22 | 1023 << 12 | 1);
    assert_int_equal(bs_ids_next(&ids, ms(6)), INT64_C(6) << 22 | 1023 << 12 | 0);
    bs_ids_init(&ids, 0);
    assert_int_equal(bs_ids_next(&ids, ms(INT64_C(1) << 40)), INT64_C(1) << 62);
}

static void ids_grow_when_the_clock_stands_or_steps_back(void **state)
{
    struct bs_ids ids;
    int64_t before;

    (void)state;
    bs_ids_init(&ids, 7);
    before = bs_ids_next(&ids, ms(1000));
    for (int i = 0; i < 10000; i++) {
        int64_t id = bs_ids_next(&ids, ms(i % 2 ? 1000 : 10));

        assert_true(id > before);
        assert_int_equal(id >> 12 & 1023, 7);
        before = id;
    }
    assert_int_equal(before >> 22, 1000 + 10000 / 4096);
    assert_true(bs_ids_next(&ids, (struct bs_time){ -5 }) > before);
    assert_true(bs_ids_next(&ids, BS_TIME_NONE) > before);
}

/* A server that comes up with a clock behind its store goes on after another process's last id. */
static void ids_grow_after_the_id_of_any_other_node(void **state)
{
    static const int32_t nodes[] = { 0, 6, 7, 8, 1023 };
    static const int64_t sequences[] = { 0, 1, 4094, 4095 };

    (void)state;
    for (size_t n = 0; n < BS_COUNT(nodes); n++) {
        for (size_t q = 0; q < BS_COUNT(sequences); q++) {
            int64_t before = INT64_C(1000) << 22 | (int64_t)nodes[n] << 12 | sequences[q];
            struct bs_ids ids;

            bs_ids_init(&ids, 7);
            atomic_store(&ids.last, before);
            for (int i = 0; i < 5; i++) {
                int64_t id = bs_ids_next(&ids, ms(10));

                assert_true(id > before);
                assert_int_equal(id >> 12 & 1023, 7);
                before = id;
            }
            assert_true(before >> 22 <= 1001);
        }
    }
}

static void a_full_millisecond_borrows_from_the_next(void **state)
{
    struct bs_ids ids;
    int64_t id = 0;

    (void)state;
    bs_ids_init(&ids, 0);
    for (int i = 0; i < 4096; i++)
        id = bs_ids_next(&ids, ms(3));
    assert_int_equal(id, INT64_C(3) << 22 | 4095);
    assert_int_equal(bs_ids_next(&ids, ms(3)), INT64_C(4) << 22);
    assert_int_equal(bs_ids_next(&ids, ms(4)), INT64_C(4) << 22 | 1);
    assert_int_equal(bs_ids_next(&ids, ms(5)), INT64_C(5) << 22);
}

static void no_id_is_zero(void **state)
{
    struct bs_ids ids;

    (void)state;
    bs_ids_init(&ids, 0);
    assert_int_equal(bs_ids_next(&ids, BS_TIME_NONE), 1);
}

static void an_instant_has_a_smallest_id(void **state)
{
    struct bs_ids ids;
    struct bs_time at = { EPOCH_US + 123456789 };

    (void)state;
    bs_ids_init(&ids, 3);
    int64_t before = bs_ids_next(&ids, ms(123455));
    int64_t id = bs_ids_next(&ids, at);
    assert_true(bs_ids_floor(at) > before && bs_ids_floor(at) <= id);
    assert_int_equal(bs_ids_floor(at), INT64_C(123456) << 22);
    assert_int_equal(bs_ids_time(id).us, EPOCH_US + 123456000);
    assert_int_equal(bs_ids_time(bs_ids_floor(at)).us, EPOCH_US + 123456000);
    assert_int_equal(bs_ids_floor(BS_TIME_NONE), 0);
    assert_int_equal(bs_ids_floor((struct bs_time){ INT64_MIN }), 0);
    assert_int_equal(bs_ids_floor(BS_NEVER), INT64_MAX >> 22 << 22);
}

enum { THREADS = 4, EACH = 20000 };

struct taker {
    struct bs_ids *ids;
    int64_t got[EACH];
};

static void *take_many(void *arg)
{
    struct taker *t = arg;

    for (size_t i = 0; i < EACH; i++)
        t->got[i] = bs_ids_next(t->ids, ms((int64_t)i / 100));
    return NULL;
}

static int by_value(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a;
    int64_t y = *(const int64_t *)b;

    return x < y ? -1 : x > y;
}

static void four_threads_never_get_the_same_id(void **state)
{
    static struct taker takers[THREADS];
    static int64_t all[THREADS * EACH];
    pthread_t threads[THREADS];
    struct bs_ids ids;

    (void)state;
    bs_ids_init(&ids, 1);
    for (size_t i = 0; i < THREADS; i++) {
        takers[i].ids = &ids;
        assert_int_equal(pthread_create(&threads[i], NULL, take_many, &takers[i]), 0);
    }
    for (size_t i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        for (size_t k = 1; k < EACH; k++)
            assert_true(takers[i].got[k] > takers[i].got[k - 1]);
        memcpy(all + i * EACH, takers[i].got, sizeof(takers[i].got));
    }
    qsort(all, BS_COUNT(all), sizeof(all[0]), by_value);
    for (size_t i = 1; i < BS_COUNT(all); i++)
        assert_true(all[i] > all[i - 1]);
}

static void entropy_fills_what_it_is_given(void **state)
{
    unsigned char big[1000] = { 0 };
    size_t zeros = 0;

    (void)state;
    bs_entropy(big, 999);
    for (size_t i = 0; i < 999; i++)
        zeros += big[i] == 0;
    assert_true(zeros < 100);
    assert_int_equal(big[999], 0);
    assert_true(bs_entropy_u64() != bs_entropy_u64());
    bs_entropy(big, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_id_is_time_node_and_sequence),
        cmocka_unit_test(ids_grow_when_the_clock_stands_or_steps_back),
        cmocka_unit_test(ids_grow_after_the_id_of_any_other_node),
        cmocka_unit_test(a_full_millisecond_borrows_from_the_next),
        cmocka_unit_test(no_id_is_zero),
        cmocka_unit_test(an_instant_has_a_smallest_id),
        cmocka_unit_test(four_threads_never_get_the_same_id),
        cmocka_unit_test(entropy_fills_what_it_is_given),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
