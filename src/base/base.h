/* The ground everything stands on: result codes, error messages, slices, assertions, scope guards.
 * Pure: no I/O, no clock, no globals. Any thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define BS_NODISCARD __attribute__((warn_unused_result))
#define BS_PRINTF(fmt_at, args_at) __attribute__((format(printf, fmt_at, args_at)))
#define BS_CLEANUP(fn) __attribute__((cleanup(fn)))

#define BS_COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define BS_CONTAINER(ptr, type, member) ((type *)(void *)((char *)(ptr)-offsetof(type, member)))
#define BS_MIN(a, b) ((a) < (b) ? (a) : (b))
#define BS_MAX(a, b) ((a) > (b) ? (a) : (b))

/* One code per reaction of the caller; the words for people are in struct bs_err. */
typedef enum bs_rc {
    BS_OK = 0,
    BS_E_INVALID,     /* the input is wrong: reject it, do not repeat                  */
    BS_E_NOT_FOUND,   /* there is no such thing                                        */
    BS_E_CONFLICT,    /* it contradicts what is already recorded                       */
    BS_E_STALE,       /* the lease or the version is lost: drop the result             */
    BS_E_BUSY,        /* contention: the same call again, bounded                      */
    BS_E_UNAVAILABLE, /* the peer or the database is away, nothing was done: back off  */
    BS_E_UNKNOWN,     /* sent, but the answer was lost: run the same thing again       */
    BS_E_LIMIT,       /* a stated limit would be passed                                */
    BS_E_NOMEM,       /* no memory                                                     */
    BS_E_CORRUPT,     /* what was read cannot be right: stop and tell a person         */
    BS_E_REFUSED,     /* not allowed: rights, a lock held elsewhere, a newer store     */
    BS_RC_COUNT
} bs_rc;

/* The message of one failure. Belongs to the caller, is filled by the callee, is one line. */
struct bs_err {
    bs_rc rc;
    int sys; /* errno or the library's code, 0 when there is none */
    char msg[256];
};

/* Fills err (may be NULL) and returns rc, so that a failure is one statement. Cuts at a UTF-8
 * border. */
BS_NODISCARD BS_PRINTF(3, 4) bs_rc bs_fail(struct bs_err *err, bs_rc rc, const char *fmt, ...);

/* Upper-case name of a code, for logs: "UNAVAILABLE". Static storage. */
const char *bs_rc_name(bs_rc rc);

/* The only hidden return: passes a failure on unchanged. */
#define BS_TRY(expr)                                                                               \
    do {                                                                                           \
        bs_rc bs_try_rc_ = (expr);                                                                 \
        if (bs_try_rc_ != BS_OK)                                                                   \
            return bs_try_rc_;                                                                     \
    } while (0)

/* The only way to drop a result; the reason is for the reader. */
#define BS_IGNORE(expr, reason)                                                                    \
    do {                                                                                           \
        if ((expr) != BS_OK) {                                                                     \
            /* deliberately nothing */                                                             \
        }                                                                                          \
    } while (0)

/* Says where and what, then aborts: a lease expires by itself, so a crash is safe. */
_Noreturn void bs_panic(const char *file, int line, const char *what);

/* Always on. States what our own code guarantees; never input, network or database contents. */
#define BS_ASSERT(cond)                                                                            \
    do {                                                                                           \
        if (!(cond))                                                                               \
            bs_panic(__FILE__, __LINE__, #cond);                                                   \
    } while (0)

/* A borrowed run of bytes, not terminated; p may be NULL when n is 0. */
struct bs_str {
    const char *p;
    size_t n;
};

#define BS_STR(literal) ((struct bs_str){ "" literal, sizeof(literal) - 1 })
#define BS_STR_NONE ((struct bs_str){ NULL, 0 })
#define BS_STR_FMT(s) (int)(s).n, (s).p ? (s).p : "" /* for "%.*s" */

static inline struct bs_str bs_str_of(const char *z)
{
    return (struct bs_str){ z, z ? strlen(z) : 0 };
}

static inline bool bs_str_eq(struct bs_str a, struct bs_str b)
{
    return a.n == b.n && (a.n == 0 || memcmp(a.p, b.p, a.n) == 0);
}

static inline bool bs_str_is(struct bs_str a, const char *z)
{
    return bs_str_eq(a, bs_str_of(z));
}

/* Byte order, the shorter first where one is the other's beginning. */
int bs_str_cmp(struct bs_str a, struct bs_str b);
bool bs_str_starts(struct bs_str s, struct bs_str prefix);
/* Without ASCII blanks, tabs, CR and LF at both ends. */
struct bs_str bs_str_trim(struct bs_str s);
bool bs_str_eq_nocase(struct bs_str a, struct bs_str b);
/* Cuts the part before the first sep off *rest; without sep takes all and leaves p = NULL. */
struct bs_str bs_str_cut(struct bs_str *rest, char sep);

/* The headers that declare these are included above: a name must not appear after it is poisoned.
 */
#pragma GCC poison strcpy strcat strncpy strncat sprintf vsprintf strtok atoi atol atoll gmtime    \
    localtime gets
