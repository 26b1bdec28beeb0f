/* The contract under faults: the same story with every driver call failing once or for ever, before
 * or after it was done, ends in the same store. */
#include "world.h"

#include <stdio.h>
#include <stdlib.h>

/* Runs the same operations until they are done, as the committer does. */
static void drive(struct world *w, struct bs_op **ops, uint32_t n)
{
    for (int i = 0; i < 5; i++) {
        bs_rc rc = bs_store_apply(w->store, ops, n, &w->err);

        if (rc == BS_OK)
            return;
        for (uint32_t k = 0; k < n && rc == BS_E_UNKNOWN; k++)
            ops[k]->rerun = true;
        bs_faulty_plan(w->db, &(struct bs_fault_plan){ 0 });
    }
    fail_msg("not done after five runs: %s", w->err.msg);
}

static void drive_one(struct world *w, struct bs_op *op)
{
    drive(w, &op, 1);
}

/* ---- the story ---- */

static void submissions(struct world *w)
{
    struct bs_task *t[7];
    struct bs_op ops[7], *list[7];

    for (int i = 0; i < 7; i++)
        t[i] = sample(w, (const char *[]){ "a", "b", "c", "d", "a", "e", "f" }[i]);
    t[0]->serial_key = t[1]->serial_key = BS_STR("o:1");
    t[2]->effect_key = t[3]->effect_key = t[5]->effect_key = BS_STR("e:1");
    for (int i = 0; i < 7; i++) {
        ops[i] = submit_op(w, t[i], i == 4 || i == 5 ? "other" : "content");
        list[i] = &ops[i];
    }
    ops[4].submit.caller_waits = false;
    drive(w, list, 7);
    static const enum bs_submitted wanted[] = {
        BS_SUBMITTED_CREATED,          BS_SUBMITTED_CREATED,          BS_SUBMITTED_CREATED,
        BS_SUBMITTED_DUPLICATE_EFFECT, BS_SUBMITTED_CONFLICT_REQUEST, BS_SUBMITTED_CONFLICT_EFFECT,
        BS_SUBMITTED_CREATED,
    };
    for (int i = 0; i < 7; i++) {
        assert_int_equal(ops[i].rc, BS_OK);
        assert_int_equal(ops[i].submit.ret_what, wanted[i]);
    }
    assert_int_equal(ops[3].submit.ret_task_id, ops[2].id);
}

static struct bs_task *claimed_at(struct bs_op *op, int i)
{
    struct bs_leased *l = op->claim.ret_tasks;

    while (i-- > 0)
        l = l->next;
    return &l->task;
}

static void first_round(struct world *w, int64_t *ret_blocked)
{
    struct bs_op c = claim_op(w, QUEUE, 10);

    drive_one(w, &c);
    assert_int_equal(c.claim.ret_n, 3);
    struct bs_task lost = *claimed_at(&c, 0);
    lost.lease_token--;
    struct bs_op ops[4] = { finish_op(w, claimed_at(&c, 0), BS_OUT_FAILED, "HTTP_503"),
                            finish_op(w, claimed_at(&c, 1), BS_OUT_SUCCESS, ""),
                            finish_op(w, claimed_at(&c, 2), BS_OUT_MANUAL, "HTTP_422"),
                            finish_op(w, &lost, BS_OUT_SUCCESS, "late") };
    struct bs_op *list[4] = { &ops[0], &ops[1], &ops[2], &ops[3] };
    drive(w, list, 4);
    assert_int_equal(ops[0].rc, BS_OK);
    assert_int_equal(ops[0].finish.ret_settled.to, BS_RETRY);
    assert_int_equal(ops[1].finish.ret_settled.to, BS_SUCCESS);
    assert_int_equal(ops[2].finish.ret_settled.to, BS_MANUAL);
    assert_int_equal(ops[3].rc, BS_E_STALE);
    bs_leased_free(c.claim.ret_tasks);
    c = claim_op(w, QUEUE, 10);
    drive_one(w, &c);
    assert_int_equal(c.claim.ret_n, 1);
    *ret_blocked = c.claim.ret_tasks->task.id;
    bs_leased_free(c.claim.ret_tasks);
}

static void people(struct world *w, int64_t running)
{
    struct bs_op pend = act_op(w, running, BS_ACT_HOLD, "");

    drive_one(w, &pend);
    assert_true(pend.act.ret_pending);
    advance(w, 61000000);
    struct bs_op reaper = op_of(w, BS_OP_REAP);
    reaper.reap = (struct bs_op_reap){ .limit = 10, .node = BS_STR("n") };
    drive_one(w, &reaper);
    struct bs_op close = act_op(w, running, BS_ACT_CLOSE, "not_done");
    drive_one(w, &close);
    assert_int_equal(close.rc, BS_OK);
    assert_int_equal(close.act.ret_task.state, BS_CLOSED);
}

/* An alert that begins, ends and is told of. */
static void deliveries(struct world *w, int64_t alert_id)
{
    static const struct bs_str ops[] = { { "ops", 3 } };
    struct bs_op clear = op_of(w, BS_OP_ALERT_CLEAR), plan = op_of(w, BS_OP_ALERT_PLAN);
    struct bs_op told = op_of(w, BS_OP_ALERT_TOLD), record = op_of(w, BS_OP_ALERT_RECORD);
    const struct bs_delivery sent = { .alert_id = alert_id,
                                      .phase = BS_ALERT_RAISED,
                                      .deliverer = ops[0],
                                      .state = BS_DELIVERY_SENT,
                                      .attempts = 1 };

    clear.alert_clear =
        (struct bs_op_alert_clear){ .kind = BS_STR("k"), .subject = BS_STR("s"), .tell = true };
    plan.alert_plan = (struct bs_op_alert_plan){ alert_id, BS_ALERT_PHASES, ops, 1, w->now };
    told.alert_told = (struct bs_op_alert_told){ &sent, 1 };
    record.alert_record = (struct bs_op_alert_record){
        .kind = BS_STR("store_failing"), .subject = BS_STR("store"), .raised = &sent, .raised_n = 1
    };
    drive_one(w, &clear);
    drive_one(w, &plan);
    drive_one(w, &told);
    drive_one(w, &record);
}

static void administration(struct world *w)
{
    const struct bs_queues none = { 0 };
    struct bs_op pause = op_of(w, BS_OP_QUEUE_PAUSE), add = op_of(w, BS_OP_TOKEN_ADD);
    struct bs_op revoke = op_of(w, BS_OP_TOKEN_REVOKE), alert = op_of(w, BS_OP_ALERT);

    pause.queue_pause = (struct bs_op_queue_pause){ QUEUE, BS_STR("r"), BS_STR("li"), true };
    add.token_add = (struct bs_op_token_add){ .name = BS_STR("ci"),
                                              .role = BS_STR("viewer"),
                                              .operator= BS_STR("li") };
    revoke.token_revoke = (struct bs_op_token_revoke){ BS_STR("ci"), BS_STR("li") };
    alert.alert = (struct bs_op_alert){ .kind = BS_STR("k"), .subject = BS_STR("s") };
    drive_one(w, &pause);
    drive_one(w, &add);
    drive_one(w, &revoke);
    drive_one(w, &alert);
    deliveries(w, alert.id);
    assert_int_equal(revoke.rc, BS_OK);
    for (int i = 0; i < 2; i++) {
        struct bs_op orphans = op_of(w, BS_OP_ORPHANS);
        orphans.orphans =
            (struct bs_op_orphans){ .queues = &none, .after = BS_SEC(1), .limit = 10 };
        drive_one(w, &orphans);
        advance(w, 2000000);
    }
}

/* A pass over finished tasks, in slices of two. */
static void keep(struct world *w, enum bs_op_kind kind, int64_t days)
{
    struct bs_op op = op_of(w, kind);

    op.slice.before = bs_time_add(w->now, BS_US(-days * INT64_C(86400000000)));
    op.slice.limit = 2;
    do {
        op.rerun = false;
        drive_one(w, &op);
        assert_int_equal(op.rc, BS_OK);
        op.slice.after_id = op.slice.ret_after_id;
    } while (op.slice.ret_more);
}

static void history(struct world *w)
{
    advance(w, INT64_C(31) * 86400000000);
    struct bs_op late = submit_op(w, sample(w, "late"), "content");
    drive_one(w, &late);
    keep(w, BS_OP_ARCHIVE, 30);
    struct bs_op close = act_op(w, late.id, BS_ACT_CLOSE, "other");
    drive_one(w, &close);
    advance(w, INT64_C(31) * 86400000000);
    keep(w, BS_OP_ARCHIVE, 30);
    keep(w, BS_OP_PURGE, 60);
}

static void story(struct world *w)
{
    int64_t running = 0;

    submissions(w);
    advance(w, 1000);
    first_round(w, &running);
    people(w, running);
    administration(w);
    history(w);
}

/* ---- every call fails ---- */

static const char *undisturbed(char **keep)
{
    struct world *w = world_new(contract_factory);

    story(w);
    *keep = strdup(whole_text(w));
    world_end(w);
    return *keep;
}

static int disturb_each(enum bs_fault_when when, bool for_ever, bs_rc rc)
{
    char *keep = NULL;
    const char *wanted = undisturbed(&keep);
    int64_t at = 1;

    for (;; at++) {
        struct world *w = world_new(contract_factory);

        bs_faulty_plan(w->db, &(struct bs_fault_plan){
                                  .when = when, .fail_in = at, .for_ever = for_ever, .rc = rc });
        story(w);
        bool tripped = bs_faulty_trips(w->db) > 0;
        bs_faulty_plan(w->db, &(struct bs_fault_plan){ 0 });
        const char *got = whole_text(w);
        if (strcmp(got, wanted) != 0)
            fail_msg("call %lld: got\n%s\nwanted\n%s", (long long)at, got, wanted);
        world_end(w);
        if (!tripped)
            break;
    }
    free(keep);
    return (int)at - 1;
}

static void every_call_may_fail_once_before_it_is_done(void **state)
{
    (void)state;
    int n = disturb_each(BS_FAULT_BEFORE, false, BS_OK);
    print_message("%d calls failed\n", n);
    assert_true(n > 100);
}

static void every_call_may_fail_once_after_it_was_done(void **state)
{
    (void)state;
    assert_true(disturb_each(BS_FAULT_AFTER, false, BS_OK) > 100);
}

static void every_call_may_fail_from_then_on_until_the_store_is_well_again(void **state)
{
    (void)state;
    assert_true(disturb_each(BS_FAULT_BEFORE, true, BS_OK) > 100);
    assert_true(disturb_each(BS_FAULT_AFTER, true, BS_OK) > 100);
}

static void every_call_may_find_the_store_busy(void **state)
{
    (void)state;
    assert_true(disturb_each(BS_FAULT_BEFORE, false, BS_E_BUSY) > 100);
}

/* ---- opening ---- */

static bs_rc open_with(struct world *w, const struct bs_fault_plan *plan, bool *ret_tripped)
{
    struct bs_db *db = bs_faulty_new(w->factory->open_db(w->dir));
    struct bs_store *s = NULL;

    assert_non_null(db);
    bs_faulty_plan(db, plan);
    const struct bs_store_options o = { .mode = BS_STORE_WRITER, .db = db };
    bs_rc rc = bs_store_open(&o, &s, &w->err);
    *ret_tripped = rc != BS_OK;
    bs_store_close(s);
    return rc;
}

static void opening_a_new_store_may_fail_at_every_call_and_succeeds_afterwards(void **state)
{
    (void)state;
    for (int when = BS_FAULT_BEFORE; when <= BS_FAULT_AFTER; when++) {
        bool tripped = true;

        for (int64_t at = 1; tripped; at++) {
            struct world *w = world_new(contract_factory);
            const struct bs_fault_plan plan = { .when = (enum bs_fault_when)when, .fail_in = at };
            char first[64];

            /* A second folder: the world's own store is ready already. */
            snprintf(first, sizeof(first), "%s", w->dir);
            world_folder(w);
            bs_rc rc = open_with(w, &plan, &tripped);
            assert_true(rc == BS_OK || rc == BS_E_UNAVAILABLE || rc == BS_E_UNKNOWN);
            world_reopen(w);
            put_one(w, "r-1");
            assert_true(at < 100);
            world_end(w);
            world_drop_folder(first);
        }
    }
}

int run_fault_cases(void)
{
    const struct CMUnitTest cases[] = {
        cmocka_unit_test(every_call_may_fail_once_before_it_is_done),
        cmocka_unit_test(every_call_may_fail_once_after_it_was_done),
        cmocka_unit_test(every_call_may_fail_from_then_on_until_the_store_is_well_again),
        cmocka_unit_test(every_call_may_find_the_store_busy),
        cmocka_unit_test(opening_a_new_store_may_fail_at_every_call_and_succeeds_afterwards),
    };

    return cmocka_run_group_tests_name("fault", cases, NULL, NULL);
}
