/* The contract's world: a fresh store from a factory, small verbs over it, one clock, own ids.
 * Every driver call passes the fault injector. */
#pragma once

#include "db/faulty.h"
#include "store/store.h"
#include "sys/ids.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* One database. */
struct contract_factory {
    const char *name;
    /* A driver over the store in dir (made when it is missing); NULL fails the case. */
    struct bs_db *(*open_db)(const char *dir);
    /* Where the same store can be opened by url. */
    void (*url)(const char *dir, char *out, size_t size);
};

struct world {
    const struct contract_factory *factory;
    char dir[64];
    struct bs_db *db; /* the fault injector; borrowed from the store */
    struct bs_store *store;
    struct bs_ids ids;
    struct bs_time now;
    struct bs_arena arena; /* everything a case allocates */
    struct bs_err err;
    struct bs_policy policy;
    uint32_t claims;          /* for claim ids */
    struct bs_leased *leased; /* all that were claimed; freed with the world */
};

#define QUEUE BS_STR("PAY_CALLBACK")
#define START_US INT64_C(1796054400000000)

struct world *world_new(const struct contract_factory *f);
/* Heals, checks the whole store, closes, removes the folder. */
void world_end(struct world *w);
/* Without the check, for cases that damage on purpose. */
void world_drop(struct world *w);
/* A new private folder for the world. */
void world_folder(struct world *w);
void world_drop_folder(const char *dir);
void world_close(struct world *w);
void world_reopen(struct world *w);

/* Runs one operation in a transaction of its own; a failure of apply fails the case. */
bs_rc apply(struct world *w, struct bs_op *op);
void apply_all(struct world *w, struct bs_op **ops, uint32_t n);
/* The next operation's identity. */
struct bs_op op_of(struct world *w, enum bs_op_kind kind);

/* A valid row: request_id and biz_id are key; no serial key, no effect key. */
struct bs_task *sample(struct world *w, const char *key);
/* `content` stands for everything the fingerprints cover. */
struct bs_op submit_op(struct world *w, struct bs_task *t, const char *content);
int64_t put(struct world *w, struct bs_task *t);
int64_t put_one(struct world *w, const char *key);
int64_t put_serial(struct world *w, const char *key, const char *serial);

struct bs_op claim_op(struct world *w, struct bs_str queue, uint32_t limit);
/* Tasks under lease (60 s); NULL when none. They live as long as the world. */
struct bs_leased *claim(struct world *w, uint32_t limit);
struct bs_task *claim_one(struct world *w);
uint32_t count_leased(const struct bs_leased *l);

struct bs_op finish_op(struct world *w, const struct bs_task *t, enum bs_outcome_kind kind,
                       const char *code);
bs_rc finish(struct world *w, const struct bs_task *t, enum bs_outcome_kind kind, const char *code);
struct bs_op act_op(struct world *w, int64_t id, enum bs_action a, const char *conclusion);
bs_rc act(struct world *w, int64_t id, enum bs_action a, const char *conclusion);
uint32_t reap(struct world *w);
void advance(struct world *w, int64_t us);

struct bs_task get(struct world *w, int64_t id);
enum bs_state state_of(struct world *w, int64_t id);
/* "submit>WAITING claim>PROCESSING succeeded>SUCCESS" */
const char *log_text(struct world *w, int64_t id);
/* Open alerts as "kind subject xN" lines, oldest first. */
const char *alerts_text(struct world *w);
/* Everything that can be read of the store, as text: tasks, logs, alerts, audit, figures. */
const char *whole_text(struct world *w);
uint32_t audit_count(struct world *w);
/* The whole check finds nothing. */
void assert_sound(struct world *w);

#define assert_str(s, literal) assert_string_equal(to_text(w, (s)), (literal))
const char *to_text(struct world *w, struct bs_str s);

/* A life of the store with every operation and every action, each driven until it is done: any of
 * the driver's calls may fail. What the stories of this process were made of: */
void story(struct world *w);
bool story_reached_op(enum bs_op_kind kind);
bool story_reached_act(enum bs_action action);

/* A case of the contract: gets a fresh world. */
#define CASE(f) cmocka_unit_test_prestate_setup_teardown(f, case_setup, case_teardown, NULL)
int case_setup(void **state);
int case_teardown(void **state);
/* The factory of the present run; set by contract_run. */
extern const struct contract_factory *contract_factory;

int run_submit_cases(void);
int run_claim_cases(void);
int run_serial_cases(void);
int run_finish_cases(void);
int run_people_cases(void);
int run_queue_cases(void);
int run_read_cases(void);
int run_history_cases(void);
int run_age_cases(void);
int run_backup_cases(void);
int run_open_cases(void);
int run_fault_cases(void);
int run_reach_cases(void);
int run_committer_cases(void);
int run_plan_cases(void);
int run_alert_cases(void);
