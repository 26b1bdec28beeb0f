/* With the planted bugs of the store compiled in: each breaks exactly the promise it is named
 * after, and nothing while it is not chosen. */
#include "base/plant.h"
#include "store/committer.h"
#include "world.h"

#include "db/sqlite.h"

#include <stdio.h>

static struct bs_db *sqlite_db(const char *dir)
{
    char path[128];
    struct bs_db *db = NULL;

    snprintf(path, sizeof(path), "%s/store.db", dir);
    const struct bs_sqlite_options o = { .path = path };
    return bs_sqlite_open(&o, &db, NULL) == BS_OK ? db : NULL;
}

static void sqlite_url(const char *dir, char *out, size_t size)
{
    snprintf(out, size, "sqlite:%s/store.db", dir);
}

static const struct contract_factory sqlite = { "sqlite", sqlite_db, sqlite_url };

static int setup(void **state)
{
    bs_planted = BS_PLANT_NOTHING;
    contract_factory = &sqlite;
    return case_setup(state);
}

/* A planted bug may leave an unsound store: only the folder goes. */
static int teardown(void **state)
{
    bs_planted = BS_PLANT_NOTHING;
    world_drop(*state);
    return 0;
}

static void no_token_check_lets_a_lost_lease_settle(void **state)
{
    struct world *w = *state;
    int64_t id = put_one(w, "r-1");
    struct bs_task *slow = claim_one(w);

    advance(w, 61000000);
    reap(w);
    claim_one(w);
    assert_int_equal(finish(w, slow, BS_OUT_SUCCESS, ""), BS_E_STALE);
    bs_planted = BS_PLANT_NO_TOKEN_CHECK;
    assert_int_equal(finish(w, slow, BS_OUT_SUCCESS, ""), BS_OK);
    assert_int_equal(state_of(w, id), BS_SUCCESS);
}

static void no_serial_key_lets_two_tasks_of_one_object_run(void **state)
{
    struct world *w = *state;

    put_serial(w, "r-1", "o:7");
    put_serial(w, "r-2", "o:7");
    bs_planted = BS_PLANT_NO_SERIAL_KEY;
    assert_int_equal(count_leased(claim(w, 5)), 2);
}

static void unblock_forgotten_leaves_the_next_asleep(void **state)
{
    struct world *w = *state;

    put_serial(w, "r-1", "o:7");
    put_serial(w, "r-2", "o:7");
    struct bs_task *t = &claim(w, 5)->task;
    bs_planted = BS_PLANT_UNBLOCK_FORGOTTEN;
    assert_int_equal(finish(w, t, BS_OUT_SUCCESS, ""), BS_OK);
    assert_null(claim(w, 5));
    BS_CLEANUP(bs_buf_free) struct bs_buf report = { .max = 4096 };
    assert_int_equal(bs_store_check(w->store, &report, NULL), BS_OK);
    assert_non_null(strstr(bs_buf_str(&report).p, "nothing will free it"));
}

/* ---- the committer's ---- */

struct job {
    struct bs_work work;
    struct bs_op op, *ops[1];
    int answered;
    bs_rc rc;
};

static void done(struct bs_work *work, bs_rc rc, const struct bs_err *err)
{
    struct job *j = BS_CONTAINER(work, struct job, work);

    (void)err;
    j->answered++;
    j->rc = rc;
    j->ops[0] = NULL; /* the operation is the sender's again */
}

/* One work through a committer whose store has a bad day, until `steps` steps are done. */
static void commit(struct world *w, struct job *j, enum bs_rank rank, struct bs_fault_plan plan,
                   int steps)
{
    const struct bs_committer_options o = { .store = w->store };
    struct bs_committer *c = NULL;

    assert_int_equal(bs_committer_new(&o, &c, NULL), BS_OK);
    struct bs_actor *a = bs_committer_actor(c);
    j->ops[0] = &j->op;
    j->work = (struct bs_work){ .rank = rank, .ops = j->ops, .n = 1, .done = done };
    bs_faulty_plan(w->db, &plan);
    assert_true(bs_committer_send(c, &j->work));
    for (int i = 0; i < steps; i++) {
        struct bs_time next = a->step(a, w->now);
        if (next.us != BS_NEVER.us)
            w->now = next;
    }
    bs_committer_free(c);
    w->store = NULL;
    world_reopen(w);
}

static const struct bs_fault_plan refused = { .calls = BS_FAULT_COMMIT, .fail_in = 1 };
static const struct bs_fault_plan lost = { .calls = BS_FAULT_COMMIT,
                                           .when = BS_FAULT_AFTER,
                                           .fail_in = 1 };

static void ack_before_commit_promises_what_was_never_stored(void **state)
{
    struct world *w = *state;
    struct job j = { .op = submit_op(w, sample(w, "r-1"), "c") };
    struct bs_task t;

    bs_planted = BS_PLANT_ACK_BEFORE_COMMIT;
    commit(w, &j, BS_RANK_INTAKE, refused, 1);
    assert_int_equal(j.answered, 1);
    assert_int_equal(j.rc, BS_OK);
    assert_int_equal(j.op.submit.ret_what, BS_SUBMITTED_CREATED);
    assert_int_equal(bs_store_task(w->store, j.op.id, &w->arena, &t, NULL), BS_E_NOT_FOUND);
}

static void drop_on_full_throws_a_result_away(void **state)
{
    struct world *w = *state;
    int64_t id = put_one(w, "r-1");
    struct job j = { .op = finish_op(w, claim_one(w), BS_OUT_SUCCESS, "") };

    bs_planted = BS_PLANT_DROP_ON_FULL;
    commit(w, &j, BS_RANK_FINISH, refused, 3);
    assert_int_equal(j.rc, BS_E_UNAVAILABLE);
    assert_int_equal(state_of(w, id), BS_PROCESSING);
}

static void rerun_new_id_calls_the_first_a_duplicate(void **state)
{
    struct world *w = *state;
    struct job good = { .op = submit_op(w, sample(w, "r-1"), "c") };
    struct job bad = { .op = submit_op(w, sample(w, "r-2"), "c") };

    commit(w, &good, BS_RANK_INTAKE, lost, 3);
    assert_int_equal(good.op.submit.ret_what, BS_SUBMITTED_CREATED);
    bs_planted = BS_PLANT_RERUN_NEW_ID;
    commit(w, &bad, BS_RANK_INTAKE, lost, 3);
    assert_int_equal(bad.op.submit.ret_what, BS_SUBMITTED_DUPLICATE_REQUEST);
}

#define PLANTED(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest cases[] = {
        PLANTED(no_token_check_lets_a_lost_lease_settle),
        PLANTED(no_serial_key_lets_two_tasks_of_one_object_run),
        PLANTED(unblock_forgotten_leaves_the_next_asleep),
        PLANTED(ack_before_commit_promises_what_was_never_stored),
        PLANTED(drop_on_full_throws_a_result_away),
        PLANTED(rerun_new_id_calls_the_first_a_duplicate),
    };

    return cmocka_run_group_tests_name("planted", cases, NULL, NULL);
}
