/* The matrix of roles and rights, and the search for a token. */
#include "api/auth.h"

#include "base/text.h"
#include "sys/crypto.h"
#include "sys/entropy.h"

#include <stdlib.h>

static const char *const role_names[BS_ROLE_COUNT] = {
    [BS_ROLE_NONE] = "none",         [BS_ROLE_SERVICE] = "service",   [BS_ROLE_VIEWER] = "viewer",
    [BS_ROLE_OPERATOR] = "operator", [BS_ROLE_APPROVER] = "approver", [BS_ROLE_FINANCE] = "finance",
    [BS_ROLE_ADMIN] = "admin",
};

/* The one matrix. OPEN and ANY need no entry. */
static const bool matrix[BS_ROLE_COUNT][BS_RIGHT_COUNT] = {
    [BS_ROLE_SERVICE] = { [BS_RIGHT_SUBMIT] = true, [BS_RIGHT_READ] = true },
    [BS_ROLE_VIEWER] = { [BS_RIGHT_READ] = true, [BS_RIGHT_READ_ALL] = true },
    [BS_ROLE_OPERATOR] = { [BS_RIGHT_READ] = true,
                           [BS_RIGHT_READ_ALL] = true,
                           [BS_RIGHT_ACT] = true,
                           [BS_RIGHT_QUEUE] = true },
    [BS_ROLE_APPROVER] = { [BS_RIGHT_READ] = true, [BS_RIGHT_READ_ALL] = true },
    [BS_ROLE_FINANCE] = { [BS_RIGHT_READ] = true, [BS_RIGHT_READ_ALL] = true },
    [BS_ROLE_ADMIN] = { [BS_RIGHT_SUBMIT] = true,
                        [BS_RIGHT_READ] = true,
                        [BS_RIGHT_READ_ALL] = true,
                        [BS_RIGHT_ACT] = true,
                        [BS_RIGHT_QUEUE] = true,
                        [BS_RIGHT_TOKENS] = true },
};

const char *bs_role_name(enum bs_role role)
{
    BS_ASSERT(role < BS_ROLE_COUNT);
    return role_names[role];
}

enum bs_role bs_role_parse(struct bs_str s)
{
    for (enum bs_role r = BS_ROLE_NONE + 1; r < BS_ROLE_COUNT; r++) {
        if (bs_str_is(s, role_names[r]))
            return r;
    }
    return BS_ROLE_NONE;
}

bool bs_role_may(enum bs_role role, enum bs_right right)
{
    BS_ASSERT(role < BS_ROLE_COUNT && right < BS_RIGHT_COUNT);
    if (right == BS_RIGHT_OPEN)
        return true;
    if (right == BS_RIGHT_ANY)
        return role != BS_ROLE_NONE;
    return matrix[role][right];
}

bool bs_who_sees(const struct bs_who *who, struct bs_str biz_type)
{
    struct bs_str rest = who->queues;

    if (!rest.n)
        return true;
    while (rest.p) {
        if (bs_str_eq(bs_str_trim(bs_str_cut(&rest, ',')), biz_type))
            return true;
    }
    return false;
}

bs_rc bs_who_queues(const struct bs_who *who, struct bs_arena *a, const struct bs_str **ret,
                    uint32_t *ret_n, struct bs_err *err)
{
    struct bs_str rest = who->queues;
    uint32_t most = 1;

    *ret = NULL;
    *ret_n = 0;
    if (!rest.n)
        return BS_OK;
    for (size_t i = 0; i < rest.n; i++)
        most += rest.p[i] == ',';
    struct bs_str *items = BS_NEW_ARRAY(a, struct bs_str, most);
    if (!items)
        return bs_fail(err, BS_E_NOMEM, "no memory for a filter");
    for (uint32_t n = 0; n < most; n++)
        items[n] = bs_str_trim(bs_str_cut(&rest, ','));
    *ret = items;
    *ret_n = most;
    return BS_OK;
}

struct token {
    struct bs_sha256 hash;
    struct bs_who who;
};

/* Sorted by hash. The place of a hash in the order says nothing about the token it came from. */
struct bs_tokens {
    struct bs_arena arena;
    struct token *items;
    uint32_t n;
    int64_t version;
};

static int by_hash(const void *a, const void *b)
{
    const struct token *x = a, *y = b;

    return memcmp(x->hash.b, y->hash.b, sizeof(x->hash.b));
}

static bs_rc fill(struct bs_store *s, struct bs_tokens *t, struct bs_err *err)
{
    struct bs_token_row *rows = NULL;
    uint32_t n = 0;

    BS_TRY(bs_store_tokens(s, &t->arena, &rows, &n, &t->version, err));
    t->items = BS_NEW_ARRAY(&t->arena, struct token, n ? n : 1);
    if (!t->items)
        return bs_fail(err, BS_E_NOMEM, "no memory for the tokens");
    for (uint32_t i = 0; i < n; i++) {
        enum bs_role role = bs_role_parse(rows[i].role);

        if (rows[i].revoked_at.us || role == BS_ROLE_NONE)
            continue;
        t->items[t->n++] = (struct token){ rows[i].hash, { rows[i].name, role, rows[i].queues } };
    }
    qsort(t->items, t->n, sizeof(t->items[0]), by_hash);
    return BS_OK;
}

bs_rc bs_tokens_load(struct bs_store *s, struct bs_tokens **ret, struct bs_err *err)
{
    struct bs_tokens *t = calloc(1, sizeof(*t));

    if (!t)
        return bs_fail(err, BS_E_NOMEM, "no memory for the tokens");
    bs_rc rc = fill(s, t, err);
    if (rc != BS_OK) {
        bs_tokens_free(t);
        return rc;
    }
    *ret = t;
    return BS_OK;
}

void bs_tokens_free(struct bs_tokens *t)
{
    if (!t)
        return;
    bs_arena_free(&t->arena);
    free(t);
}

int64_t bs_tokens_version(const struct bs_tokens *t)
{
    return t->version;
}

bool bs_tokens_find(const struct bs_tokens *t, struct bs_str token, struct bs_who *ret)
{
    struct bs_sha256 hash = bs_sha256_of(token);
    uint32_t low = 0, high = t->n;

    /* By the first bytes only; the whole is compared in constant time. */
    while (low < high) {
        uint32_t mid = low + (high - low) / 2;

        if (memcmp(t->items[mid].hash.b, hash.b, 8) < 0)
            low = mid + 1;
        else
            high = mid;
    }
    for (; low < t->n && memcmp(t->items[low].hash.b, hash.b, 8) == 0; low++) {
        if (bs_equal_constant_time(t->items[low].hash.b, hash.b, sizeof(hash.b))) {
            *ret = t->items[low].who;
            return true;
        }
    }
    return false;
}

void bs_token_make(char ret_text[BS_TOKEN_TEXT + 1], struct bs_sha256 *ret_hash)
{
    static const char digits[] = "0123456789abcdef";
    uint8_t raw[32];
    struct bs_str text = { ret_text, BS_TOKEN_TEXT };

    bs_entropy(raw, sizeof(raw));
    memcpy(ret_text, BS_TOKEN_MARK, BS_TOKEN_MARK_BYTES);
    for (size_t i = 0; i < sizeof(raw); i++) {
        ret_text[4 + 2 * i] = digits[raw[i] >> 4];
        ret_text[5 + 2 * i] = digits[raw[i] & 15];
    }
    ret_text[BS_TOKEN_TEXT] = '\0';
    *ret_hash = bs_sha256_of(text);
}
