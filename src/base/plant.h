/* Planted bugs, for proving that the simulator and the tests can see them. Only builds with
 * BS_PLANTED have any; in every other build BS_PLANT(x) is the constant false. */
#pragma once

#include <stdbool.h>

#define BS_PLANT_LIST(X)                                                                           \
    X(ACK_BEFORE_COMMIT)      /* the submitter hears success before the transaction commits     */ \
    X(NO_TOKEN_CHECK)         /* a finish does not compare the fencing token                    */ \
    X(RELEASE_AS_UNSENT)      /* a call that was sent is released as if it was not              */ \
    X(UNKNOWN_IS_FAILED)      /* a time-out after sending counts as a known failure             */ \
    X(EXPIRY_FORGETS_UNKNOWN) /* the reaper does not set outcome_unknown                        */ \
    X(NO_SERIAL_KEY)          /* two tasks of one business object run at once                   */ \
    X(DROP_ON_FULL)           /* a result that meets a failing store is thrown away             */ \
    X(RERUN_NEW_ID)           /* a batch whose answer was lost is run again under new ids       */ \
    X(UNBLOCK_FORGOTTEN)      /* the end of a holder wakes nobody                               */ \
    X(BREAKER_IGNORED)        /* calls go on behind an open breaker                             */ \
    X(BREAKER_SPENDS)         /* what fails behind an open breaker costs budget                 */ \
    X(HOST_PAUSE_IGNORED)     /* a host that asked for a pause is called                        */ \
    X(HOST_LIMIT_IGNORED)     /* more calls run at a host than it takes                         */ \
    X(RATE_IGNORED)           /* tasks start as fast as they come                               */ \
    X(ARCHIVE_TAKES_OPEN)     /* a task that waits for a person moves to history                */ \
    X(STAT_FORGETS_PURGE)     /* figures keep what was purged                                   */ \
    X(MAX_AGE_COUNTS_STOPS)   /* a task gets older while its queue cannot run                   */ \
    X(ALERT_LOST)             /* a receiver that refused an alert is taken for told              */

#define BS_PLANT_ENUM(name) BS_PLANT_##name,
enum bs_plant { BS_PLANT_NOTHING = 0, BS_PLANT_LIST(BS_PLANT_ENUM) BS_PLANT_COUNT };

#ifdef BS_PLANTED
extern enum bs_plant bs_planted; /* set by the test only */
#define BS_PLANT(name) (bs_planted == BS_PLANT_##name)
#else
#define BS_PLANT(name) (false)
#endif
