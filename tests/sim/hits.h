/* How often everything was hit: shared by the worker processes of one run. */
#pragma once

#include "core/decide.h"
#include "core/fsm.h"

#include <stdatomic.h>
#include <stdio.h>

/* What the shop or the network does with one call. */
#define SIM_PLAN_LIST(X)                                                                           \
    X(POST_204)                                                                                    \
    X(POST_SUCCESS)                                                                                \
    X(POST_RULE)                                                                                   \
    X(POST_FINISHED)                                                                               \
    X(POST_RETRY)                                                                                  \
    X(POST_RETRY_AFTER)                                                                            \
    X(POST_MANUAL)                                                                                 \
    X(POST_UNKNOWN)                                                                                \
    X(POST_ODD)                                                                                    \
    X(POST_500)                                                                                    \
    X(POST_503)                                                                                    \
    X(POST_503_AFTER)                                                                              \
    X(POST_429_AFTER)                                                                              \
    X(POST_409)                                                                                    \
    X(POST_404)                                                                                    \
    X(POST_422)                                                                                    \
    X(POST_302)                                                                                    \
    X(POST_HANG)                                                                                   \
    X(POST_SLOW)                                                                                   \
    X(POST_RESET_BEFORE)                                                                           \
    X(POST_RESET_AFTER)                                                                            \
    X(POST_REFUSED)                                                                                \
    X(POST_DNS)                                                                                    \
    X(POST_CONNECT_TIMEOUT)                                                                        \
    X(POST_TLS)                                                                                    \
    X(POST_BAD_HTTP)                                                                               \
    X(LOOK_EXACT)                                                                                  \
    X(LOOK_GO_ON)                                                                                  \
    X(LOOK_FINISHED)                                                                               \
    X(LOOK_NOT_FOUND)                                                                              \
    X(LOOK_503_AFTER)                                                                              \
    X(LOOK_TLS)                                                                                    \
    X(LOOK_CONFLICT)                                                                               \
    X(LOOK_AMOUNT)                                                                                 \
    X(LOOK_404)                                                                                    \
    X(LOOK_500)                                                                                    \
    X(LOOK_HANG)                                                                                   \
    X(LOOK_REFUSED)                                                                                \
    X(LOOK_ODD)                                                                                    \
    X(HOOK_OK)                                                                                     \
    X(HOOK_500) X(HOOK_422) X(HOOK_HANG) X(HOOK_REFUSED) X(HOOK_RESET) X(PING_OK) X(PING_FAILED)
#define SIM_PLAN_ENUM(name) PLAN_##name,
enum sim_plan { SIM_PLAN_LIST(SIM_PLAN_ENUM) PLAN_COUNT };

#define SIM_FAULT_LIST(X)                                                                          \
    X(DB_BEFORE)                                                                                   \
    X(DB_AFTER)                                                                                    \
    X(DB_COMMIT_BEFORE)                                                                            \
    X(DB_COMMIT_LOST)                                                                              \
    X(DB_COMMIT_UNDONE)                                                                            \
    X(DB_FULL)                                                                                     \
    X(DB_SHAKY)                                                                                    \
    X(OPEN_FAILED)                                                                                 \
    X(CRASH)                                                                                       \
    X(CRASH_IN_COMMIT)                                                                             \
    X(ENDPOINT_FAULTY)                                                                             \
    X(ENDPOINT_AWAY)                                                                               \
    X(RELOAD)                                                                                      \
    X(DRAIN) X(STALL) X(JUMP) X(SHOP_BAD) X(SHOP_DOWN) X(QUEUE_GONE) X(ANSWER_LOST) X(CALL) X(LOOK)
#define SIM_FAULT_ENUM(name) FAULT_##name,
enum sim_fault { SIM_FAULT_LIST(SIM_FAULT_ENUM) FAULT_COUNT };

/* Operations as seen from outside. */
#define SIM_DEED_LIST(X)                                                                           \
    X(SUBMIT_CREATED)                                                                              \
    X(SUBMIT_DUPLICATE_REQUEST)                                                                    \
    X(SUBMIT_DUPLICATE_EFFECT)                                                                     \
    X(SUBMIT_CONFLICT_REQUEST)                                                                     \
    X(SUBMIT_CONFLICT_EFFECT)                                                                      \
    X(SUBMIT_UNAVAILABLE)                                                                          \
    X(SUBMIT_UNKNOWN)                                                                              \
    X(SUBMIT_MAILBOX_FULL)                                                                         \
    X(CLAIM)                                                                                       \
    X(FINISH)                                                                                      \
    X(FINISH_STALE)                                                                                \
    X(RENEW)                                                                                       \
    X(REAP)                                                                                        \
    X(ORPHANS)                                                                                     \
    X(ACT_RETRY)                                                                                   \
    X(ACT_HOLD)                                                                                    \
    X(ACT_UNHOLD)                                                                                  \
    X(ACT_RESOLVE)                                                                                 \
    X(ACT_CLOSE)                                                                                   \
    X(ACT_PENDING)                                                                                 \
    X(ACT_CONFLICT)                                                                                \
    X(ACT_UNAVAILABLE)                                                                             \
    X(BREAKER_OPENED)                                                                              \
    X(BREAKER_PROBED)                                                                              \
    X(BREAKER_REOPENED)                                                                            \
    X(BREAKER_CLOSED)                                                                              \
    X(BEHIND_BREAKER)                                                                              \
    X(HOST_PAUSE)                                                                                  \
    X(HOST_FULL)                                                                                   \
    X(RATE_WAIT)                                                                                   \
    X(AGE_SPENT)                                                                                   \
    X(ARCHIVED)                                                                                    \
    X(PURGED)                                                                                      \
    X(AGAIN_ARCHIVED)                                                                              \
    X(AGAIN_PURGED)                                                                                \
    X(ALERT_TOLD)                                                                                  \
    X(BREAKER_ALERT)                                                                               \
    X(QUEUE_PAUSE) X(QUEUE_RESUME) X(TOKEN_ADD) X(TOKEN_REVOKE) X(ALERT) X(PARKED)
#define SIM_DEED_ENUM(name) DEED_##name,
enum sim_deed { SIM_DEED_LIST(SIM_DEED_ENUM) DEED_COUNT };

struct hits {
    _Atomic uint64_t moves[BS_STATE_COUNT][BS_EVENT_COUNT];
    _Atomic uint64_t plans[PLAN_COUNT], faults[FAULT_COUNT], deeds[DEED_COUNT];
    _Atomic uint64_t seeds, tasks, steps, commits, calls;
    _Atomic uint64_t ends[BS_STATE_COUNT];
    _Atomic uint64_t failed_seed[64]; /* the first ones, seed + 1 */
    _Atomic uint32_t failed;
    _Atomic uint64_t at[16]; /* the seed each worker is at */
};

/* Shared with every child that is forked later; never freed. NULL without memory. */
struct hits *hits_new(void);
void hits_print(const struct hits *h, FILE *out);
/* How many reachable pairs, plans, faults and deeds were never hit; each is named on out. */
uint32_t hits_holes(const struct hits *h, FILE *out);
const char *plan_name(enum sim_plan p);
const char *fault_name(enum sim_fault f);
