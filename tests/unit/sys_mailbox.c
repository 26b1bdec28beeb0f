/* Mail: bounded, in order, by rank, and no wake-up is lost. */
#include "sys/mailbox.h"

#include "check.h"
#include "sys/actor.h"
#include "sys/clock.h"

#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>

enum { SECOND = 1000000 };

struct letter {
    struct bs_node node;
    uint32_t sender, number;
};

static struct letter *letter_of(struct bs_node *node)
{
    return node ? BS_CONTAINER(node, struct letter, node) : NULL;
}

static struct bs_mailbox *box_of(struct bs_mailbox *m, uint32_t lanes, bool with_fd)
{
    static const size_t caps[BS_LANES_MAX] = { 3, 2, 1, 1, 1, 1, 1, 1 };

    assert_int_equal(bs_mailbox_init(m, caps, lanes, with_fd, NULL), BS_OK);
    return m;
}

static void mail_comes_in_order_and_by_rank(void **state)
{
    struct bs_mailbox m;
    struct letter l[5] = { { .number = 0 } };

    (void)state;
    box_of(&m, 2, false);
    assert_null(bs_mailbox_take(&m));
    assert_true(bs_mailbox_send(&m, 1, &l[0].node));
    assert_true(bs_mailbox_send(&m, 0, &l[1].node));
    assert_true(bs_mailbox_send(&m, 1, &l[2].node));
    assert_true(bs_mailbox_send(&m, 0, &l[3].node));
    assert_int_equal(bs_mailbox_count(&m, 0), 2);
    assert_int_equal(bs_mailbox_count(&m, 1), 2);
    assert_ptr_equal(bs_mailbox_take(&m), &l[1].node);
    assert_ptr_equal(bs_mailbox_take(&m), &l[3].node);
    assert_ptr_equal(bs_mailbox_take(&m), &l[0].node);
    assert_true(bs_mailbox_send(&m, 0, &l[4].node));
    assert_ptr_equal(bs_mailbox_take(&m), &l[4].node);
    assert_ptr_equal(bs_mailbox_take(&m), &l[2].node);
    assert_null(bs_mailbox_take(&m));
    bs_mailbox_done(&m);
}

static void a_full_lane_refuses_and_the_other_does_not(void **state)
{
    struct bs_mailbox m;
    struct letter l[6] = { { .number = 0 } };

    (void)state;
    box_of(&m, 2, false);
    for (int i = 0; i < 3; i++)
        assert_true(bs_mailbox_send(&m, 0, &l[i].node));
    assert_false(bs_mailbox_send(&m, 0, &l[3].node));
    assert_int_equal(bs_mailbox_count(&m, 0), 3);
    assert_true(bs_mailbox_send(&m, 1, &l[3].node));
    assert_ptr_equal(bs_mailbox_take(&m), &l[0].node);
    assert_true(bs_mailbox_send(&m, 0, &l[4].node));
    assert_false(bs_mailbox_send(&m, 0, &l[5].node));
    while (bs_mailbox_take(&m))
        continue;
    bs_mailbox_done(&m);
}

static void a_lane_is_taken_whole_or_in_part(void **state)
{
    struct bs_mailbox m;
    struct letter l[3] = { { .number = 0 } };

    (void)state;
    box_of(&m, 1, false);
    assert_null(bs_mailbox_take_lane(&m, 0, 9));
    for (int i = 0; i < 3; i++)
        assert_true(bs_mailbox_send(&m, 0, &l[i].node));
    assert_null(bs_mailbox_take_lane(&m, 0, 0));
    struct bs_node *list = bs_mailbox_take_lane(&m, 0, 2);
    assert_ptr_equal(list, &l[0].node);
    assert_ptr_equal(list->next, &l[1].node);
    assert_null(list->next->next);
    assert_int_equal(bs_mailbox_count(&m, 0), 1);
    assert_true(bs_mailbox_send(&m, 0, &l[0].node));
    assert_true(bs_mailbox_send(&m, 0, &l[1].node));
    list = bs_mailbox_take_lane(&m, 0, 3);
    assert_ptr_equal(list, &l[2].node);
    assert_ptr_equal(list->next, &l[0].node);
    assert_ptr_equal(list->next->next, &l[1].node);
    assert_null(l[1].node.next);
    assert_int_equal(bs_mailbox_count(&m, 0), 0);
    assert_true(bs_mailbox_send(&m, 0, &l[0].node));
    assert_ptr_equal(bs_mailbox_take(&m), &l[0].node);
    bs_mailbox_done(&m);
}

static void a_closed_mailbox_refuses_and_can_be_emptied(void **state)
{
    struct bs_mailbox m;
    struct letter l[2] = { { .number = 0 } };

    (void)state;
    box_of(&m, 1, true);
    assert_true(bs_mailbox_send(&m, 0, &l[0].node));
    bs_mailbox_close(&m);
    assert_false(bs_mailbox_send(&m, 0, &l[1].node));
    assert_ptr_equal(bs_mailbox_take(&m), &l[0].node);
    assert_null(bs_mailbox_take(&m));
    bs_mailbox_done(&m);
    bs_mailbox_done(&m);
}

static bool is_readable(const struct bs_mailbox *m)
{
    struct pollfd p = { .fd = m->fd, .events = POLLIN };

    return poll(&p, 1, 0) == 1;
}

static void only_a_sleeping_receiver_is_woken(void **state)
{
    struct bs_mailbox m;
    struct letter l[3] = { { .number = 0 } };

    (void)state;
    box_of(&m, 1, true);
    assert_true(bs_mailbox_send(&m, 0, &l[0].node));
    assert_false(is_readable(&m));
    assert_false(bs_mailbox_arm(&m));
    assert_ptr_equal(bs_mailbox_take(&m), &l[0].node);
    assert_true(bs_mailbox_arm(&m));
    assert_true(bs_mailbox_send(&m, 0, &l[1].node));
    assert_true(is_readable(&m));
    bs_mailbox_disarm(&m);
    assert_false(is_readable(&m));
    assert_true(bs_mailbox_send(&m, 0, &l[2].node));
    assert_false(is_readable(&m));
    bs_mailbox_wake(&m);
    assert_true(is_readable(&m));
    while (bs_mailbox_take(&m))
        continue;
    bs_mailbox_done(&m);
}

static void waiting_ends_with_mail_a_wake_or_the_deadline(void **state)
{
    struct bs_mailbox m;
    struct letter l = { .number = 0 };
    int64_t begin = bs_boot_us();

    (void)state;
    box_of(&m, 1, true);
    bs_mailbox_wait(&m, begin + 30000);
    assert_true(bs_boot_us() >= begin + 30000);
    begin = bs_boot_us();
    bs_mailbox_wait(&m, begin - 5);
    bs_mailbox_wait(&m, INT64_MIN);
    bs_mailbox_wake(&m);
    bs_mailbox_wait(&m, INT64_MAX);
    assert_true(bs_mailbox_send(&m, 0, &l.node));
    bs_mailbox_wait(&m, INT64_MAX);
    assert_true(bs_boot_us() < begin + 5 * SECOND);
    assert_ptr_equal(bs_mailbox_take(&m), &l.node);
    bs_mailbox_done(&m);
}

enum { SENDERS = 4, EACH = 20000, STOCK = 64 };

struct sender {
    struct bs_mailbox *to, *stock;
    pthread_t id;
    uint32_t number;
};

/* Takes free letters from the stock and sends them; a full lane is tried again. */
static void *send_many(void *arg)
{
    struct sender *s = arg;

    for (uint32_t i = 0; i < EACH; i++) {
        struct letter *l;

        while (!(l = letter_of(bs_mailbox_take(s->stock))))
            bs_mailbox_wait(s->stock, bs_boot_us() + 1000);
        l->sender = s->number;
        l->number = i;
        while (!bs_mailbox_send(s->to, s->number % 2, &l->node))
            sched_yield();
    }
    return NULL;
}

static void from_four_threads_nothing_is_lost_and_lanes_stay_bounded(void **state)
{
    static struct letter letters[STOCK];
    const size_t caps[] = { 8, 8 };
    const size_t stock_cap = STOCK;
    struct bs_mailbox m, stock;
    struct sender senders[SENDERS];
    uint32_t next[SENDERS] = { 0 };

    (void)state;
    assert_int_equal(bs_mailbox_init(&m, caps, 2, true, NULL), BS_OK);
    assert_int_equal(bs_mailbox_init(&stock, &stock_cap, 1, true, NULL), BS_OK);
    for (size_t i = 0; i < STOCK; i++)
        assert_true(bs_mailbox_send(&stock, 0, &letters[i].node));
    for (uint32_t i = 0; i < SENDERS; i++) {
        senders[i] = (struct sender){ .to = &m, .stock = &stock, .number = i };
        assert_int_equal(pthread_create(&senders[i].id, NULL, send_many, &senders[i]), 0);
    }
    for (uint32_t got = 0; got < SENDERS * EACH;) {
        struct letter *l = letter_of(bs_mailbox_take(&m));

        if (!l) {
            int64_t begin = bs_boot_us();

            bs_mailbox_wait(&m, begin + 20 * SECOND);
            assert_true(bs_boot_us() < begin + 10 * SECOND); /* a lost wake-up ends here */
            continue;
        }
        assert_true(bs_mailbox_count(&m, 0) <= 8 && bs_mailbox_count(&m, 1) <= 8);
        assert_int_equal(l->number, next[l->sender]++);
        assert_true(bs_mailbox_send(&stock, 0, &l->node));
        got++;
    }
    for (size_t i = 0; i < SENDERS; i++)
        assert_int_equal(pthread_join(senders[i].id, NULL), 0);
    assert_null(bs_mailbox_take(&m));
    while (bs_mailbox_take(&stock))
        continue;
    bs_mailbox_done(&m);
    bs_mailbox_done(&stock);
}

struct counter {
    struct bs_actor actor;
    struct bs_clock *clock;
    _Atomic int steps, got;
    _Atomic bool masked, named, waited;
    struct bs_time until;
};

static struct bs_time count_step(struct bs_actor *a, struct bs_time now)
{
    struct counter *c = BS_CONTAINER(a, struct counter, actor);
    sigset_t blocked;
    char name[16] = "";

    (void)now;
    atomic_fetch_add(&c->steps, 1);
    while (bs_mailbox_take(a->in))
        atomic_fetch_add(&c->got, 1);
    atomic_store(&c->masked, pthread_sigmask(SIG_SETMASK, NULL, &blocked) == 0 &&
                                 sigismember(&blocked, SIGTERM) == 1 &&
                                 sigismember(&blocked, SIGHUP) == 1);
    if (prctl(PR_GET_NAME, name) == 0 && strcmp(name, "counter") == 0)
        atomic_store(&c->named, true);
    return c->until;
}

static void own_wait(struct bs_actor *a, struct bs_time now, struct bs_time until)
{
    struct counter *c = BS_CONTAINER(a, struct counter, actor);

    (void)now;
    (void)until;
    atomic_store(&c->waited, true);
    bs_mailbox_wait(a->in, bs_boot_us() + 10000);
}

static void until_at_least(const _Atomic int *value, int wanted)
{
    int64_t deadline = bs_boot_us() + 10 * (int64_t)SECOND;

    while (atomic_load(value) < wanted && bs_boot_us() < deadline)
        sched_yield();
    assert_true(atomic_load(value) >= wanted);
}

static void an_actor_steps_for_mail_and_stops_when_asked(void **state)
{
    struct bs_mailbox m;
    struct letter l[2] = { { .number = 0 } };
    struct counter c = { .actor = { "counter", count_step, NULL, box_of(&m, 1, true) },
                         .until = BS_NEVER };
    struct bs_thread t = { 0 };
    sigset_t mine;

    (void)state;
    bs_thread_stop(&t);
    assert_int_equal(bs_thread_start(&t, &c.actor, bs_clock_system(), NULL), BS_OK);
    until_at_least(&c.steps, 1);
    assert_true(bs_mailbox_send(&m, 0, &l[0].node));
    until_at_least(&c.got, 1);
    assert_true(bs_mailbox_send(&m, 0, &l[1].node));
    until_at_least(&c.got, 2);
    assert_true(atomic_load(&c.masked));
    assert_int_equal(pthread_sigmask(SIG_SETMASK, NULL, &mine), 0);
    assert_int_equal(sigismember(&mine, SIGTERM), 0);
    bs_thread_stop(&t);
    assert_true(atomic_load(&c.named));
    assert_false(t.running);
    bs_thread_stop(&t);
    bs_mailbox_done(&m);
}

static void an_actor_steps_again_at_its_deadline(void **state)
{
    struct bs_mailbox m;
    struct bs_clock_manual clock;
    struct counter c = { .actor = { "counter", count_step, NULL, box_of(&m, 1, true) } };
    struct bs_thread t = { 0 };
    int64_t begin = bs_boot_us();

    (void)state;
    bs_clock_manual_init(&clock, (struct bs_time){ 1000000 });
    c.until = (struct bs_time){ 1005000 };
    assert_int_equal(bs_thread_start(&t, &c.actor, &clock.base, NULL), BS_OK);
    until_at_least(&c.steps, 4);
    assert_true(bs_boot_us() >= begin + 3 * 5000);
    bs_thread_stop(&t);
    bs_mailbox_done(&m);
}

static void an_actor_may_sleep_in_its_own_way(void **state)
{
    struct bs_mailbox m;
    struct counter c = { .actor = { "counter", count_step, own_wait, box_of(&m, 1, true) },
                         .until = BS_NEVER };
    struct bs_thread t = { 0 };

    (void)state;
    assert_int_equal(bs_thread_start(&t, &c.actor, bs_clock_system(), NULL), BS_OK);
    until_at_least(&c.steps, 3);
    assert_true(atomic_load(&c.waited));
    bs_thread_stop(&t);
    bs_mailbox_done(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mail_comes_in_order_and_by_rank),
        cmocka_unit_test(a_full_lane_refuses_and_the_other_does_not),
        cmocka_unit_test(a_lane_is_taken_whole_or_in_part),
        cmocka_unit_test(a_closed_mailbox_refuses_and_can_be_emptied),
        cmocka_unit_test(only_a_sleeping_receiver_is_woken),
        cmocka_unit_test(waiting_ends_with_mail_a_wake_or_the_deadline),
        cmocka_unit_test(from_four_threads_nothing_is_lost_and_lanes_stay_bounded),
        cmocka_unit_test(an_actor_steps_for_mail_and_stops_when_asked),
        cmocka_unit_test(an_actor_steps_again_at_its_deadline),
        cmocka_unit_test(an_actor_may_sleep_in_its_own_way),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
