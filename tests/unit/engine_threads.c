/* The engine on its real threads, with the system's clock: submitted from another thread, paused
 * and resumed meanwhile, drained at the end. Its worth is under the thread sanitizer. */
#include "core_test.h"

#include "door/door.h"
#include "engine/engine.h"
#include "sys/log.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { TASKS = 600 };

/* Answers every call at once. */
struct instant {
    struct bs_caller base;
    struct bs_call *ended;
    uint64_t calls;
};

static void instant_start(struct bs_caller *c, struct bs_call *call, struct bs_time now)
{
    struct instant *i = BS_CONTAINER(c, struct instant, base);

    call->facts = (struct bs_facts){
        .wire = BS_WIRE_REPLIED, .sent = true, .status = 204, .started_at = now, .ended_at = now
    };
    call->next = i->ended;
    i->ended = call;
    i->calls++;
}

static void instant_run(struct bs_caller *c, struct bs_time now)
{
    (void)c;
    (void)now;
}

static struct bs_call *instant_finished(struct bs_caller *c)
{
    struct instant *i = BS_CONTAINER(c, struct instant, base);
    struct bs_call *call = i->ended;

    if (call)
        i->ended = call->next;
    return call;
}

static void instant_cancel(struct bs_caller *c, struct bs_call *call)
{
    (void)c;
    (void)call;
}

static void instant_wait(struct bs_caller *c, struct bs_mailbox *mail, int64_t until_us)
{
    struct instant *i = BS_CONTAINER(c, struct instant, base);

    if (!i->ended)
        bs_mailbox_wait(mail, until_us);
}

static void instant_free(struct bs_caller *c)
{
    free(BS_CONTAINER(c, struct instant, base));
}

static const struct bs_caller_ops instant_ops = {
    .start = instant_start,
    .run = instant_run,
    .finished = instant_finished,
    .cancel = instant_cancel,
    .wait = instant_wait,
    .free = instant_free,
};

struct plant {
    char dir[64], url[128];
    struct bs_ids ids;
    struct bs_queue_conf conf;
    struct bs_queues queues;
    struct bs_queues_slot slot;
    struct bs_committer *committer;
    _Atomic(struct bs_engine *) engine;
    struct bs_thread threads[4];
};

static void on_hints(void *ctx, const struct bs_hints *hints)
{
    struct plant *p = ctx;
    struct bs_engine *e = atomic_load(&p->engine);

    if (e)
        bs_engine_hints(e, hints);
}

static void configure(struct plant *p)
{
    const char *base = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";

    (void)snprintf(p->dir, sizeof(p->dir), "%s/backstop-engine-XXXXXX", base);
    assert_non_null(mkdtemp(p->dir));
    (void)snprintf(p->url, sizeof(p->url), "sqlite:%s/store.db", p->dir);
    bs_log_setup(2, 1, BS_LOG_ERROR);
    bs_ids_init(&p->ids, 1);
    p->conf = (struct bs_queue_conf){
        .biz_type = S("PAY_CALLBACK"),
        .handler_url = S("http://shop.test/pay"),
        .call_timeout = BS_SEC(10),
        .connect_timeout = BS_SEC(3),
        .lease = BS_SEC(60),
        .concurrency = 8,
        .policy = bs_policy_default,
    };
    p->queues = (struct bs_queues){ &p->conf, 1 };
    atomic_store(&p->slot.now, &p->queues);
}

static void start(struct plant *p)
{
    struct bs_clock *clock = bs_clock_system();
    struct bs_store_options so = { .url = p->url, .mode = BS_STORE_WRITER, .migrate = true };
    struct bs_committer_options co = {
        .clock = clock, .with_fd = true, .on_hints = on_hints, .hints_ctx = p
    };
    struct instant *caller = calloc(1, sizeof(*caller));
    struct bs_engine *e = NULL;
    struct bs_err err = { 0 };

    assert_non_null(caller);
    caller->base.ops = &instant_ops;
    assert_int_equal(bs_store_open(&so, &co.store, &err), BS_OK);
    assert_int_equal(bs_committer_new(&co, &p->committer, &err), BS_OK);
    struct bs_engine_options eo = { .queues = &p->slot,
                                    .committer = p->committer,
                                    .caller = &caller->base,
                                    .clock = clock,
                                    .ids = &p->ids,
                                    .node = S("node-1"),
                                    .seed = 1,
                                    .with_fd = true };
    assert_int_equal(bs_engine_new(&eo, &e, &err), BS_OK);
    atomic_store(&p->engine, e);
    struct bs_actor *const actors[] = { bs_committer_actor(p->committer), bs_engine_executor(e),
                                        bs_engine_reaper(e), bs_engine_scheduler(e) };
    for (size_t i = 0; i < BS_COUNT(actors); i++)
        assert_int_equal(bs_thread_start(&p->threads[i], actors[i], clock, &err), BS_OK);
}

struct errand {
    struct bs_work work;
    struct bs_op op, *ops[1];
    struct bs_arena arena;
    _Atomic int done; /* 1 + rc */
};

static void errand_done(struct bs_work *w, bs_rc rc, const struct bs_err *err)
{
    (void)err;
    atomic_store(&BS_CONTAINER(w, struct errand, work)->done, 1 + (int)rc);
}

static void submit(struct plant *p, struct errand *e, uint32_t n)
{
    struct bs_door door = { &p->slot, &p->ids };
    struct bs_field_errors errors = { 0 };
    struct bs_err err = { 0 };
    struct bs_str json = bs_arena_fmt(
        &e->arena, "{\"biz_type\":\"PAY_CALLBACK\",\"biz_id\":\"%u\",\"request_id\":\"r-%u\"}", n,
        n);
    struct bs_door_input in = { .json = json, .who = S("test"), .now = bs_now(bs_clock_system()) };

    assert_int_equal(bs_door_read(&door, &in, &e->arena, &e->op, &errors, &err), BS_OK);
    e->ops[0] = &e->op;
    e->work =
        (struct bs_work){ .rank = BS_RANK_INTAKE, .ops = e->ops, .n = 1, .done = errand_done };
    assert_true(bs_committer_send(p->committer, &e->work));
}

static uint64_t settled(struct plant *p)
{
    struct bs_engine_figures f;

    bs_engine_figures(atomic_load(&p->engine), &f);
    return f.settled[BS_OUT_SUCCESS];
}

static bool within(int64_t limit_us, bool (*is)(struct plant *p), struct plant *p)
{
    int64_t end = bs_boot_us() + limit_us;

    while (!is(p)) {
        if (bs_boot_us() > end)
            return false;
        (void)poll(NULL, 0, 2);
    }
    return true;
}

static bool all_settled(struct plant *p)
{
    return settled(p) == TASKS;
}

static bool idle(struct plant *p)
{
    return bs_engine_idle(atomic_load(&p->engine));
}

static void stop(struct plant *p)
{
    char command[128];

    for (size_t i = BS_COUNT(p->threads); i-- > 0;)
        bs_thread_stop(&p->threads[i]);
    bs_committer_free(p->committer);
    bs_engine_free(atomic_load(&p->engine));
    (void)snprintf(command, sizeof(command), "rm -rf %s", p->dir);
    assert_int_equal(system(command), 0);
}

static void every_task_is_settled_once_by_the_real_threads(void **state)
{
    static struct plant p;
    static struct errand errands[TASKS];
    struct bs_engine_figures f;
    (void)state;

    configure(&p);
    start(&p);
    struct bs_engine *e = atomic_load(&p.engine);
    for (uint32_t i = 0; i < TASKS; i++) {
        submit(&p, &errands[i], i);
        if (i % 50 == 20)
            bs_engine_pause(e, S("PAY_CALLBACK"), true);
        if (i % 50 == 40)
            bs_engine_pause(e, S("PAY_CALLBACK"), false);
        if (i % 100 == 0)
            bs_engine_reload(e);
    }
    bs_engine_pause(e, S("PAY_CALLBACK"), false);
    assert_true(within(60000000, all_settled, &p));
    bs_engine_drain(e, bs_now(bs_clock_system()));
    assert_true(within(10000000, idle, &p));
    bs_engine_figures(e, &f);
    assert_int_equal(f.calls, TASKS);
    assert_int_equal(f.stale, 0);
    assert_int_equal(f.leased, 0);
    stop(&p);
    for (uint32_t i = 0; i < TASKS; i++) {
        assert_int_equal(atomic_load(&errands[i].done), 1 + BS_OK);
        assert_int_equal(errands[i].op.submit.ret_what, BS_SUBMITTED_CREATED);
        bs_arena_free(&errands[i].arena);
    }
}

/* The process ends while work is everywhere. */
static void threads_can_be_stopped_at_any_moment(void **state)
{
    (void)state;

    for (int round = 0; round < 10; round++) {
        static struct errand errands[60];
        struct plant p = { 0 };

        memset(errands, 0, sizeof(errands));
        configure(&p);
        start(&p);
        for (uint32_t i = 0; i < BS_COUNT(errands); i++)
            submit(&p, &errands[i], i);
        (void)poll(NULL, 0, round);
        stop(&p);
        for (uint32_t i = 0; i < BS_COUNT(errands); i++) {
            assert_true(atomic_load(&errands[i].done) > 0);
            bs_arena_free(&errands[i].arena);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_task_is_settled_once_by_the_real_threads),
        cmocka_unit_test(threads_can_be_stopped_at_any_moment),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
