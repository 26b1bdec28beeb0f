/* A YAML text as a tree whose every node knows its line. Says nothing of what the keys mean. One
 * thread. */
#pragma once

#include "base/arena.h"
#include "base/base.h"

enum bs_yaml_kind { BS_YAML_SCALAR, BS_YAML_MAP, BS_YAML_LIST };

struct bs_yaml_node;

struct bs_yaml_item {
    struct bs_str key; /* MAP only, terminated */
    uint32_t key_line;
    const struct bs_yaml_node *value;
};

struct bs_yaml_node {
    enum bs_yaml_kind kind;
    uint32_t line;      /* where it begins, counted from 1     */
    struct bs_str text; /* SCALAR: terminated                  */
    bool plain;         /* SCALAR: written without quotes      */
    struct bs_yaml_item *items;
    uint32_t n;
};

/* An anchored node is shared by its aliases. *ret is NULL for a file without content. On
 * BS_E_INVALID, BS_E_LIMIT and BS_E_NOMEM *ret_line names the place. */
BS_NODISCARD bs_rc bs_yaml_read(struct bs_arena *a, struct bs_str text,
                                const struct bs_yaml_node **ret, uint32_t *ret_line,
                                struct bs_err *err);
/* "a list", "the number 32", "the text `x`": what was found, for messages. */
struct bs_str bs_yaml_describe(struct bs_arena *a, const struct bs_yaml_node *n);
