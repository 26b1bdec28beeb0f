/* Outside JSON, validated whole by yajl, with exact slices of the input. Nothing is rewritten:
 * numbers and nested values are given as their bytes. One thread. */
#pragma once

#include "base/arena.h"
#include "base/base.h"

enum bs_json_type {
    BS_JSON_NULL,
    BS_JSON_BOOL,
    BS_JSON_NUMBER,
    BS_JSON_STRING,
    BS_JSON_OBJECT,
    BS_JSON_ARRAY
};

struct bs_json_member {
    struct bs_str name; /* unescaped, in the arena                                               */
    enum bs_json_type type;
    struct bs_str raw;  /* the value's exact bytes in the input, without white space around it   */
    struct bs_str text; /* STRING: unescaped, in the arena (may hold NUL)                        */
    bool flag;          /* BOOL                                                                  */
};

struct bs_json_object {
    struct bs_json_member *members; /* in input order; a name twice is listed twice */
    uint32_t n;
};

/* One JSON object, validated to its last byte: UTF-8 of RFC 3629 (yajl alone lets overlong forms
 * through), nothing after it but white space; 23-digit integers, 1e400 and lone surrogates are
 * accepted inside values. A lone surrogate in a member's own text becomes U+FFFD. BS_E_INVALID says
 * what and at which byte, counted from 1; more than members_max: BS_E_LIMIT. */
BS_NODISCARD bs_rc bs_json_read_object(struct bs_arena *a, struct bs_str input,
                                       uint32_t members_max, struct bs_json_object *ret,
                                       struct bs_err *err);
/* The exact slices of a JSON array's elements; each must itself be read. At most max elements
 * (BS_E_LIMIT). */
BS_NODISCARD bs_rc bs_json_read_array(struct bs_arena *a, struct bs_str input, uint32_t max,
                                      struct bs_str **ret_items, uint32_t *ret_n,
                                      struct bs_err *err);
/* Whether the whole input is one JSON text. */
BS_NODISCARD bs_rc bs_json_valid(struct bs_str input, struct bs_err *err);
