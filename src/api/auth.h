/* Who asks and what they may: roles, rights, the snapshot of the tokens. A snapshot is built on a
 * reader's thread and belongs to the HTTP thread afterwards. */
#pragma once

#include "base/arena.h"
#include "store/store.h"

enum bs_role {
    BS_ROLE_NONE = 0,
    BS_ROLE_SERVICE,
    BS_ROLE_VIEWER,
    BS_ROLE_OPERATOR,
    BS_ROLE_APPROVER,
    BS_ROLE_FINANCE,
    BS_ROLE_ADMIN,
    BS_ROLE_COUNT
};
const char *bs_role_name(enum bs_role role);
enum bs_role bs_role_parse(struct bs_str s); /* NONE when unknown */

enum bs_right {
    BS_RIGHT_OPEN,     /* without a token                                      */
    BS_RIGHT_ANY,      /* any valid token                                      */
    BS_RIGHT_SUBMIT,   /* bring tasks                                          */
    BS_RIGHT_READ,     /* tasks, queues, figures (of the token's queues)       */
    BS_RIGHT_READ_ALL, /* alerts and audit too                                 */
    BS_RIGHT_ACT,      /* act on a task                                        */
    BS_RIGHT_QUEUE,    /* pause and resume                                     */
    BS_RIGHT_TOKENS,   /* make and revoke tokens                               */
    BS_RIGHT_COUNT
};
bool bs_role_may(enum bs_role role, enum bs_right right);

/* Slices live as long as the request. */
struct bs_who {
    struct bs_str name;
    enum bs_role role;
    struct bs_str queues; /* comma-separated; empty: all */
};
bool bs_who_sees(const struct bs_who *who, struct bs_str biz_type);
/* The queues as an array, for filters; *ret_n 0: all. BS_E_NOMEM. */
BS_NODISCARD bs_rc bs_who_queues(const struct bs_who *who, struct bs_arena *a,
                                 const struct bs_str **ret, uint32_t *ret_n, struct bs_err *err);

struct bs_tokens;
/* Reads all tokens that are not revoked. */
BS_NODISCARD bs_rc bs_tokens_load(struct bs_store *s, struct bs_tokens **ret, struct bs_err *err);
void bs_tokens_free(struct bs_tokens *t); /* accepts NULL */
int64_t bs_tokens_version(const struct bs_tokens *t);
/* One hash, one search, one comparison in constant time. *ret's slices are the snapshot's. */
bool bs_tokens_find(const struct bs_tokens *t, struct bs_str token, struct bs_who *ret);

enum { BS_TOKEN_TEXT = 68 };
/* A fresh token's text, "bst_" and 64 hex digits, and what is stored of it. */
void bs_token_make(char ret_text[BS_TOKEN_TEXT + 1], struct bs_sha256 *ret_hash);
