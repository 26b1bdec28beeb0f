/* The contract under faults: the same story with every driver call failing once or for ever, before
 * or after it was done, ends in the same store. */
#include "world.h"

#include <stdio.h>
#include <stdlib.h>

/* What the stories so far were made of. */
static bool op_reached[BS_OP_KIND_COUNT], act_reached[BS_ACTION_COUNT];

bool story_reached_op(enum bs_op_kind kind)
{
    return op_reached[kind];
}

bool story_reached_act(enum bs_action action)
{
    return act_reached[action];
}

static void note_reached(const struct bs_op *op)
{
    op_reached[op->kind] = true;
    if (op->kind == BS_OP_ACT)
        act_reached[op->act.action] = true;
}

/* Runs the same operations until they are done, as the committer does. */
static void drive(struct world *w, struct bs_op **ops, uint32_t n)
{
    for (uint32_t k = 0; k < n; k++)
        note_reached(ops[k]);
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
    static const struct bs_str both[] = { { "ops", 3 }, { "boss", 4 } };
    struct bs_op clear = op_of(w, BS_OP_ALERT_CLEAR), plan = op_of(w, BS_OP_ALERT_PLAN);
    struct bs_op told = op_of(w, BS_OP_ALERT_TOLD), record = op_of(w, BS_OP_ALERT_RECORD);
    const struct bs_delivery ends[] = { { .alert_id = alert_id,
                                          .phase = BS_ALERT_RAISED,
                                          .deliverer = both[0],
                                          .state = BS_DELIVERY_SENT,
                                          .attempts = 1 },
                                        { .alert_id = alert_id,
                                          .phase = BS_ALERT_RAISED,
                                          .deliverer = both[1],
                                          .state = BS_DELIVERY_GIVEN_UP,
                                          .attempts = 1 } };

    clear.alert_clear =
        (struct bs_op_alert_clear){ .kind = BS_STR("k"), .subject = BS_STR("s"), .tell = true };
    plan.alert_plan = (struct bs_op_alert_plan){ alert_id, BS_ALERT_PHASES, both, 2, w->now };
    told.alert_told = (struct bs_op_alert_told){ ends, 2 };
    record.alert_record = (struct bs_op_alert_record){
        .kind = BS_STR("store_failing"), .subject = BS_STR("store"), .raised = ends, .raised_n = 1
    };
    drive_one(w, &clear);
    drive_one(w, &plan);
    drive_one(w, &told);
    drive_one(w, &record);
}

static void drive_act(struct world *w, int64_t id, enum bs_action a, const char *conclusion,
                      enum bs_state wanted)
{
    struct bs_op op = act_op(w, id, a, conclusion);

    drive_one(w, &op);
    assert_int_equal(op.rc, BS_OK);
    assert_int_equal(op.act.ret_task.state, wanted);
}

/* Put aside and taken up again; a lease that is made longer; a person's repeated try and verdict.
 */
static void second_round(struct world *w)
{
    struct bs_task *t = sample(w, "g");

    t->effect_key = BS_STR("e:2");
    t->priority = 0;
    struct bs_op submit = submit_op(w, t, "content");
    drive_one(w, &submit);
    drive_act(w, t->id, BS_ACT_HOLD, "", BS_MANUAL);
    drive_act(w, t->id, BS_ACT_UNHOLD, "", BS_WAITING);
    struct bs_op c = claim_op(w, QUEUE, 1);
    c.rerun = true; /* as after a lost answer to what was never done */
    drive_one(w, &c);
    assert_int_equal(c.claim.ret_n, 1);
    struct bs_op renew = op_of(w, BS_OP_RENEW);
    renew.renew = (struct bs_op_renew){ t->id, claimed_at(&c, 0)->lease_token,
                                        bs_time_add(w->now, BS_SEC(90)) };
    drive_one(w, &renew);
    renew.renew.until = w->now; /* too late to make it shorter */
    drive_one(w, &renew);
    assert_int_equal(renew.rc, BS_OK);
    struct bs_op end = finish_op(w, claimed_at(&c, 0), BS_OUT_MANUAL, "HTTP_422");
    drive_one(w, &end);
    bs_leased_free(c.claim.ret_tasks);
    drive_act(w, t->id, BS_ACT_RETRY, "", BS_WAITING);
    drive_act(w, t->id, BS_ACT_HOLD, "", BS_MANUAL);
    drive_act(w, t->id, BS_ACT_RESOLVE, "not_done", BS_CLOSED);
}

/* One that nobody can read, and one that is closed while it runs. */
static void parked_and_pending(struct world *w)
{
    struct bs_task *parked = sample(w, "h"), *closed = sample(w, "i");

    parked->state = BS_MANUAL;
    parked->manual_code = BS_STR("UNKNOWN_QUEUE");
    parked->due_at = parked->next_execute_at = BS_TIME_NONE;
    closed->effect_key = BS_STR("e:3");
    closed->priority = 0;
    struct bs_op ops[2] = { submit_op(w, parked, "content"), submit_op(w, closed, "content") };
    drive(w, (struct bs_op *[]){ &ops[0], &ops[1] }, 2);
    struct bs_op c = claim_op(w, QUEUE, 1);
    drive_one(w, &c);
    drive_act(w, closed->id, BS_ACT_CLOSE, "not_done", BS_PROCESSING);
    struct bs_op end = finish_op(w, claimed_at(&c, 0), BS_OUT_FAILED, "NO_STOCK");
    drive_one(w, &end);
    assert_int_equal(end.finish.ret_settled.to, BS_CLOSED);
    bs_leased_free(c.claim.ret_tasks);
}

static void orphans(struct world *w, const struct bs_queues *queues)
{
    struct bs_op op = op_of(w, BS_OP_ORPHANS);

    op.orphans = (struct bs_op_orphans){ .queues = queues, .after = BS_SEC(1), .limit = 10 };
    drive_one(w, &op);
    advance(w, 2000000);
}

/* A queue without a configuration is marked, found again, and lost for good. */
static void unconfigured(struct world *w)
{
    const struct bs_queue_conf conf = { .biz_type = QUEUE };
    const struct bs_queues none = { 0 }, one = { .items = &conf, .n = 1 };
    struct bs_op task = submit_op(w, sample(w, "j"), "content");

    drive_one(w, &task);
    orphans(w, &none);
    orphans(w, &one);
    orphans(w, &none);
    orphans(w, &none);
}

static void administration(struct world *w)
{
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
    pause.queue_pause.paused = false;
    pause.id = bs_ids_next(&w->ids, w->now);
    drive_one(w, &pause);
    struct bs_op stopped = op_of(w, BS_OP_STOPPED);
    stopped.stopped = (struct bs_op_stopped){ QUEUE, w->now, bs_time_add(w->now, BS_SEC(1)) };
    drive_one(w, &stopped);
    unconfigured(w);
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

void story(struct world *w)
{
    int64_t running = 0;

    w->policy.max_age = BS_SEC(10 * 86400);
    submissions(w);
    advance(w, 1000);
    first_round(w, &running);
    people(w, running);
    second_round(w);
    parked_and_pending(w);
    administration(w);
    history(w);
}

/* ---- every call fails ---- */

static const char *undisturbed(char **keep)
{
    struct world *w = world_new(contract_factory);

    story(w);
    *keep = strdup(whole_text(w));
    assert_non_null(strstr(*keep, "manual NO_HANDLER"));
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

/* A fault at the n-th call of opening, in a folder that is new or holds a store; gives whether
 * there was such a call. */
static bool open_disturbed(enum bs_fault_when when, int64_t at, bool is_new)
{
    struct world *w = world_new(contract_factory);
    const struct bs_fault_plan plan = { .when = when, .fail_in = at };
    bool tripped = true;
    char first[64];

    snprintf(first, sizeof(first), "%s", w->dir);
    world_close(w);
    if (is_new)
        world_folder(w);
    bs_rc rc = open_with(w, &plan, &tripped);
    assert_true(rc == BS_OK || rc == BS_E_UNAVAILABLE || rc == BS_E_UNKNOWN);
    world_reopen(w);
    put_one(w, "r-1");
    world_end(w);
    world_drop_folder(first);
    return tripped;
}

static void opening_may_fail_at_every_call_and_succeeds_afterwards(void **state)
{
    (void)state;
    for (int when = BS_FAULT_BEFORE; when <= BS_FAULT_AFTER; when++) {
        for (int is_new = 0; is_new <= 1; is_new++) {
            int64_t at = 1;

            while (open_disturbed((enum bs_fault_when)when, at, is_new))
                at++;
            assert_in_range(at, 5, 100);
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
        cmocka_unit_test(opening_may_fail_at_every_call_and_succeeds_afterwards),
    };

    return cmocka_run_group_tests_name("fault", cases, NULL, NULL);
}
