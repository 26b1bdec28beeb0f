/* The contract of the committer: commit, then answer; results are kept; answers that were lost are
 * found again by running the same again. */
#include "store/committer.h"

#include "world.h"

#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

/* One work with one operation, and what became of it. */
struct job {
    struct bs_work work;
    struct bs_op op, *ops[1];
    struct desk *desk;
    int answered;
    bs_rc rc;
    uint32_t order; /* the how-manieth answer it was */
};

struct desk {
    struct world *w;
    struct bs_committer *c;
    struct bs_actor *actor;
    uint32_t answers, hints, health_changes;
    bool healthy;
};

static void done(struct bs_work *work, bs_rc rc, const struct bs_err *err)
{
    struct job *j = BS_CONTAINER(work, struct job, work);

    (void)err;
    j->answered++;
    j->rc = rc;
    j->order = ++j->desk->answers;
}

static void on_hints(void *ctx, const struct bs_hints *hints)
{
    struct desk *d = ctx;

    d->hints += hints->n;
}

static void on_health(void *ctx, bool healthy, const struct bs_err *err)
{
    struct desk *d = ctx;

    (void)err;
    d->healthy = healthy;
    d->health_changes++;
}

static void desk_open(struct desk *d, struct world *w, struct bs_committer_options o)
{
    *d = (struct desk){ .w = w, .healthy = true };
    o.store = w->store;
    o.on_hints = on_hints;
    o.hints_ctx = o.health_ctx = d;
    o.on_health = on_health;
    assert_int_equal(bs_committer_new(&o, &d->c, &w->err), BS_OK);
    d->actor = bs_committer_actor(d->c);
}

/* The committer closes the store; the world opens it again for its last check. */
static void desk_close(struct desk *d)
{
    bs_committer_free(d->c);
    d->w->store = NULL;
    world_reopen(d->w);
}

static void send(struct desk *d, struct job *j, enum bs_rank rank, struct bs_op op)
{
    *j = (struct job){ .op = op, .desk = d };
    j->ops[0] = &j->op;
    j->work = (struct bs_work){ .rank = rank, .ops = j->ops, .n = 1, .done = done };
    assert_true(bs_committer_send(d->c, &j->work));
}

static struct bs_time step(struct desk *d)
{
    return d->actor->step(d->actor, d->w->now);
}

static void step_until_quiet(struct desk *d)
{
    for (int i = 0; i < 100; i++) {
        struct bs_time next = step(d);

        if (next.us == BS_NEVER.us)
            return;
        d->w->now = bs_time_max(d->w->now, next);
    }
    fail_msg("the committer does not come to rest");
}

static struct bs_op submission(struct desk *d, const char *key)
{
    return submit_op(d->w, sample(d->w, key), "content");
}

static void plan(struct desk *d, struct bs_fault_plan p)
{
    bs_faulty_plan(d->w->db, &p);
}

static void work_is_answered_once_after_its_commit(void **state)
{
    struct desk d;
    struct job a, b;

    desk_open(&d, *state, (struct bs_committer_options){ 0 });
    send(&d, &a, BS_RANK_INTAKE, submission(&d, "r-1"));
    send(&d, &b, BS_RANK_INTAKE, submission(&d, "r-2"));
    assert_int_equal(a.answered, 0);
    assert_true(step(&d).us == BS_NEVER.us);
    assert_int_equal(a.answered, 1);
    assert_int_equal(a.rc, BS_OK);
    assert_int_equal(b.op.submit.ret_what, BS_SUBMITTED_CREATED);
    struct bs_committer_figures f;
    bs_committer_figures(d.c, &f);
    assert_int_equal(f.commits, 1);
    assert_int_equal(f.ops, 2);
    assert_int_equal(d.hints, 1);
    desk_close(&d);
    assert_int_equal(state_of(*state, b.op.id), BS_WAITING);
}

static void the_best_rank_goes_first(void **state)
{
    struct desk d;
    struct job intake, people, finisher;

    desk_open(&d, *state, (struct bs_committer_options){ .batch_ops_max = 1 });
    int64_t id = put_one(d.w, "r-0");
    struct bs_task *t = claim_one(d.w);
    send(&d, &intake, BS_RANK_INTAKE, submission(&d, "r-1"));
    send(&d, &people, BS_RANK_PEOPLE, act_op(d.w, id, BS_ACT_HOLD, ""));
    send(&d, &finisher, BS_RANK_FINISH, finish_op(d.w, t, BS_OUT_SUCCESS, ""));
    step_until_quiet(&d);
    assert_int_equal(finisher.order, 1);
    assert_int_equal(people.order, 2);
    assert_int_equal(intake.order, 3);
    assert_int_equal(people.op.rc, BS_E_CONFLICT);
    desk_close(&d);
}

static void a_batch_is_bounded_by_bytes_but_one_work_always_fits(void **state)
{
    struct desk d;
    struct job j[3];
    struct bs_committer_figures f;

    desk_open(&d, *state, (struct bs_committer_options){ .batch_bytes_max = 100 });
    for (int i = 0; i < 3; i++) {
        j[i] =
            (struct job){ .op = submission(&d, (const char *[]){ "a", "b", "c" }[i]), .desk = &d };
        j[i].ops[0] = &j[i].op;
        j[i].work = (struct bs_work){ .rank = BS_RANK_INTAKE,
                                      .ops = j[i].ops,
                                      .n = 1,
                                      .bytes = i == 0 ? 500 : 50,
                                      .done = done };
        assert_true(bs_committer_send(d.c, &j[i].work));
    }
    step_until_quiet(&d);
    bs_committer_figures(d.c, &f);
    assert_int_equal(f.commits, 2);
    desk_close(&d);
}

static void a_failing_store_answers_intake_at_once_and_keeps_results(void **state)
{
    struct desk d;
    struct job result, intake, later;

    desk_open(&d, *state, (struct bs_committer_options){ 0 });
    int64_t id = put_one(d.w, "r-0");
    struct bs_task *t = claim_one(d.w);
    plan(&d, (struct bs_fault_plan){ .calls = BS_FAULT_RUN, .fail_in = 1, .for_ever = true });
    send(&d, &result, BS_RANK_FINISH, finish_op(d.w, t, BS_OUT_SUCCESS, ""));
    send(&d, &intake, BS_RANK_INTAKE, submission(&d, "r-1"));
    struct bs_time again = step(&d);
    assert_int_equal(intake.rc, BS_E_UNAVAILABLE);
    assert_int_equal(result.answered, 0);
    assert_false(bs_committer_healthy(d.c));
    assert_false(d.healthy);
    assert_true(again.us > d.w->now.us && again.us < d.w->now.us + 100000);
    send(&d, &later, BS_RANK_INTAKE, submission(&d, "r-2"));
    step(&d);
    assert_int_equal(later.rc, BS_E_UNAVAILABLE);
    for (int i = 0; i < 5; i++) {
        d.w->now = again;
        again = step(&d);
        assert_int_equal(result.answered, 0);
        assert_true(again.us - d.w->now.us <= 1000000);
    }
    plan(&d, (struct bs_fault_plan){ 0 });
    step_until_quiet(&d);
    assert_int_equal(result.answered, 1);
    assert_int_equal(result.rc, BS_OK);
    assert_int_equal(result.op.finish.ret_settled.to, BS_SUCCESS);
    assert_true(bs_committer_healthy(d.c));
    assert_int_equal(d.health_changes, 2);
    send(&d, &later, BS_RANK_INTAKE, submission(&d, "r-2"));
    step_until_quiet(&d);
    assert_int_equal(later.rc, BS_OK);
    desk_close(&d);
    assert_int_equal(state_of(*state, id), BS_SUCCESS);
}

static void a_full_disk_is_a_failing_store(void **state)
{
    struct desk d;
    struct job intake;

    desk_open(&d, *state, (struct bs_committer_options){ 0 });
    plan(&d, (struct bs_fault_plan){ .calls = BS_FAULT_COMMIT, .fail_in = 1 });
    send(&d, &intake, BS_RANK_INTAKE, submission(&d, "r-1"));
    step(&d);
    assert_int_equal(intake.rc, BS_E_UNAVAILABLE);
    d.w->now.us += 1000000;
    send(&d, &intake, BS_RANK_INTAKE, submission(&d, "r-1"));
    step_until_quiet(&d);
    assert_int_equal(intake.rc, BS_OK);
    assert_int_equal(intake.op.submit.ret_what, BS_SUBMITTED_CREATED);
    desk_close(&d);
}

static void lost_answers_are_found_again_by_running_the_same(void **state)
{
    struct desk d;
    struct job submit, claimer, result, person;
    struct bs_fault_plan lost = { .calls = BS_FAULT_COMMIT, .when = BS_FAULT_AFTER, .fail_in = 1 };

    desk_open(&d, *state, (struct bs_committer_options){ 0 });
    plan(&d, lost);
    send(&d, &submit, BS_RANK_INTAKE, submission(&d, "r-1"));
    step_until_quiet(&d);
    assert_int_equal(submit.answered, 1);
    assert_int_equal(submit.op.submit.ret_what, BS_SUBMITTED_CREATED);
    assert_int_equal(submit.op.submit.ret_task_id, submit.op.id);

    plan(&d, lost);
    send(&d, &claimer, BS_RANK_CLAIM, claim_op(d.w, QUEUE, 5));
    step_until_quiet(&d);
    assert_int_equal(claimer.op.claim.ret_n, 1);
    struct bs_leased *l = claimer.op.claim.ret_tasks;
    assert_int_equal(l->task.attempt_no, 1);

    plan(&d, lost);
    send(&d, &result, BS_RANK_FINISH, finish_op(d.w, &l->task, BS_OUT_FAILED, "HTTP_503"));
    step_until_quiet(&d);
    assert_int_equal(result.op.rc, BS_OK);
    assert_int_equal(result.op.finish.ret_settled.retry_count, 1);

    plan(&d, lost);
    send(&d, &person, BS_RANK_PEOPLE, act_op(d.w, l->task.id, BS_ACT_CLOSE, "other"));
    step_until_quiet(&d);
    assert_int_equal(person.op.act.ret_task.state, BS_CLOSED);
    bs_leased_free(l);
    struct bs_committer_figures f;
    bs_committer_figures(d.c, &f);
    assert_int_equal(f.reruns, 4);
    assert_true(d.healthy);
    desk_close(&d);
    assert_string_equal(log_text(*state, submit.op.id),
                        "submit>WAITING claim>PROCESSING failed>RETRY close>CLOSED");
    assert_int_equal(audit_count(*state), 1);
}

static void answers_that_stay_lost_are_unknown_to_intake_and_kept_for_results(void **state)
{
    struct desk d;
    struct job result, intake;

    desk_open(&d, *state, (struct bs_committer_options){ .patience = BS_MS(500) });
    put_one(d.w, "r-0");
    struct bs_task *t = claim_one(d.w);
    plan(&d,
         (struct bs_fault_plan){
             .calls = BS_FAULT_COMMIT, .when = BS_FAULT_AFTER, .fail_in = 1, .for_ever = true });
    send(&d, &result, BS_RANK_FINISH, finish_op(d.w, t, BS_OUT_SUCCESS, ""));
    send(&d, &intake, BS_RANK_INTAKE, submission(&d, "r-1"));
    struct bs_time began = d.w->now;
    while (!intake.answered)
        d.w->now = step(&d);
    assert_int_equal(intake.rc, BS_E_UNKNOWN);
    assert_true(d.w->now.us - began.us >= 500000);
    assert_int_equal(result.answered, 0);
    plan(&d, (struct bs_fault_plan){ 0 });
    step_until_quiet(&d);
    assert_int_equal(result.rc, BS_OK);
    assert_int_equal(result.op.rc, BS_OK);
    desk_close(&d);
}

static void a_busy_store_is_asked_again(void **state)
{
    struct desk d;
    struct job intake;

    desk_open(&d, *state, (struct bs_committer_options){ 0 });
    plan(&d, (struct bs_fault_plan){ .calls = BS_FAULT_BEGIN, .fail_in = 1, .rc = BS_E_BUSY });
    send(&d, &intake, BS_RANK_INTAKE, submission(&d, "r-1"));
    step_until_quiet(&d);
    assert_int_equal(intake.rc, BS_OK);
    assert_int_equal(d.health_changes, 0);
    desk_close(&d);
}

static void a_full_lane_says_so(void **state)
{
    struct desk d;
    struct job a, b;

    desk_open(&d, *state, (struct bs_committer_options){ .caps = { [BS_RANK_INTAKE] = 1 } });
    send(&d, &a, BS_RANK_INTAKE, submission(&d, "r-1"));
    b = (struct job){ .op = submission(&d, "r-2"), .desk = &d };
    b.ops[0] = &b.op;
    b.work = (struct bs_work){ .rank = BS_RANK_INTAKE, .ops = b.ops, .n = 1, .done = done };
    assert_false(bs_committer_send(d.c, &b.work));
    step_until_quiet(&d);
    assert_true(bs_committer_send(d.c, &b.work));
    step_until_quiet(&d);
    assert_int_equal(b.rc, BS_OK);
    desk_close(&d);
}

static void large_works_fill_a_lane_as_many_small_ones_do(void **state)
{
    struct desk d;
    struct job a, b;

    desk_open(&d, *state, (struct bs_committer_options){ .intake_bytes_max = 1000 });
    a = (struct job){ .op = submission(&d, "r-1"), .desk = &d };
    a.ops[0] = &a.op;
    a.work = (struct bs_work){
        .rank = BS_RANK_INTAKE, .ops = a.ops, .n = 1, .bytes = 2000, .done = done
    };
    assert_true(bs_committer_send(d.c, &a.work)); /* alone, whatever its size */
    b = (struct job){ .op = submission(&d, "r-2"), .desk = &d };
    b.ops[0] = &b.op;
    b.work =
        (struct bs_work){ .rank = BS_RANK_INTAKE, .ops = b.ops, .n = 1, .bytes = 1, .done = done };
    assert_false(bs_committer_send(d.c, &b.work));
    step_until_quiet(&d);
    assert_true(bs_committer_send(d.c, &b.work));
    step_until_quiet(&d);
    assert_int_equal(b.rc, BS_OK);
    desk_close(&d);
}

static void what_is_left_at_the_end_is_answered(void **state)
{
    struct desk d;
    struct job waiting, kept;

    desk_open(&d, *state, (struct bs_committer_options){ 0 });
    put_one(d.w, "r-0");
    struct bs_task *t = claim_one(d.w);
    plan(&d, (struct bs_fault_plan){ .fail_in = 1, .for_ever = true });
    send(&d, &kept, BS_RANK_FINISH, finish_op(d.w, t, BS_OUT_SUCCESS, ""));
    step(&d);
    send(&d, &waiting, BS_RANK_INTAKE, submission(&d, "r-1"));
    desk_close(&d);
    assert_int_equal(kept.rc, BS_E_UNAVAILABLE);
    assert_int_equal(waiting.rc, BS_E_UNAVAILABLE);
}

/* ---- four clients at once ---- */

enum { CLIENTS = 4, KEYS = 200 };

struct client {
    struct desk *desk;
    pthread_t thread;
    uint32_t created, duplicates;
    uint32_t number;
};

struct waiting_job {
    struct bs_work work;
    struct bs_op op, *ops[1];
    pthread_mutex_t mutex;
    pthread_cond_t cond;
    bool answered;
    bs_rc rc;
};

static void wake(struct bs_work *work, bs_rc rc, const struct bs_err *err)
{
    struct waiting_job *j = BS_CONTAINER(work, struct waiting_job, work);

    (void)err;
    pthread_mutex_lock(&j->mutex);
    j->answered = true;
    j->rc = rc;
    pthread_cond_signal(&j->cond);
    pthread_mutex_unlock(&j->mutex);
}

static struct bs_op client_op(struct client *c, struct bs_arena *a, uint32_t i)
{
    struct bs_task *t = BS_NEW(a, struct bs_task);
    struct world *w = c->desk->w;
    struct bs_op op = op_of(w, BS_OP_SUBMIT);

    *t = (struct bs_task){ .id = op.id,
                           .request_id = bs_arena_fmt(a, "r-%u", (i * 7) % KEYS),
                           .biz_id = BS_STR("b"),
                           .biz_type = QUEUE,
                           .merchant_no = BS_STR("m"),
                           .source = BS_SRC_API,
                           .state = BS_WAITING,
                           .max_retry_count = 1,
                           .created_by = BS_STR("c"),
                           .created_at = op.now,
                           .due_at = op.now,
                           .next_execute_at = op.now };
    op.submit.task = t;
    op.submit.caller_waits = true;
    return op;
}

static void *run_client(void *arg)
{
    struct client *c = arg;

    for (uint32_t i = 0; i < KEYS; i++) {
        struct bs_arena a = { 0 };
        struct waiting_job j = { .op = client_op(c, &a, i + c->number * 50) };

        pthread_mutex_init(&j.mutex, NULL);
        pthread_cond_init(&j.cond, NULL);
        j.ops[0] = &j.op;
        j.work = (struct bs_work){ .rank = BS_RANK_INTAKE, .ops = j.ops, .n = 1, .done = wake };
        if (bs_committer_send(c->desk->c, &j.work)) {
            pthread_mutex_lock(&j.mutex);
            while (!j.answered)
                pthread_cond_wait(&j.cond, &j.mutex);
            pthread_mutex_unlock(&j.mutex);
            c->created += j.rc == BS_OK && j.op.submit.ret_what == BS_SUBMITTED_CREATED;
            c->duplicates +=
                j.rc == BS_OK && j.op.submit.ret_what == BS_SUBMITTED_DUPLICATE_REQUEST;
        }
        pthread_cond_destroy(&j.cond);
        pthread_mutex_destroy(&j.mutex);
        bs_arena_free(&a);
    }
    return NULL;
}

static void the_same_key_is_one_row_also_from_four_clients(void **state)
{
    struct desk d;
    struct client clients[CLIENTS] = { 0 };
    struct bs_thread thread = { 0 };
    uint32_t created = 0, duplicates = 0;

    desk_open(&d, *state, (struct bs_committer_options){ .with_fd = true });
    assert_int_equal(bs_thread_start(&thread, d.actor, bs_clock_system(), &d.w->err), BS_OK);
    for (uint32_t i = 0; i < CLIENTS; i++) {
        clients[i] = (struct client){ .desk = &d, .number = i };
        assert_int_equal(pthread_create(&clients[i].thread, NULL, run_client, &clients[i]), 0);
    }
    for (uint32_t i = 0; i < CLIENTS; i++) {
        pthread_join(clients[i].thread, NULL);
        created += clients[i].created;
        duplicates += clients[i].duplicates;
    }
    bs_thread_stop(&thread);
    assert_int_equal(created, KEYS);
    assert_int_equal(duplicates, (CLIENTS - 1) * KEYS);
    desk_close(&d);
    struct bs_stat_row *rows = NULL;
    uint32_t n = 0;
    struct world *w = *state;
    assert_int_equal(bs_store_stats(w->store, &w->arena, &rows, &n, NULL), BS_OK);
    assert_int_equal(n, 1);
    assert_int_equal(rows[0].count, KEYS);
}

int run_committer_cases(void)
{
    const struct CMUnitTest cases[] = {
        CASE(work_is_answered_once_after_its_commit),
        CASE(the_best_rank_goes_first),
        CASE(a_batch_is_bounded_by_bytes_but_one_work_always_fits),
        CASE(a_failing_store_answers_intake_at_once_and_keeps_results),
        CASE(a_full_disk_is_a_failing_store),
        CASE(lost_answers_are_found_again_by_running_the_same),
        CASE(answers_that_stay_lost_are_unknown_to_intake_and_kept_for_results),
        CASE(a_busy_store_is_asked_again),
        CASE(a_full_lane_says_so),
        CASE(large_works_fill_a_lane_as_many_small_ones_do),
        CASE(what_is_left_at_the_end_is_answered),
        CASE(the_same_key_is_one_row_also_from_four_clients),
    };

    return cmocka_run_group_tests_name("committer", cases, NULL, NULL);
}
