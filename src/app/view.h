/* JSON answers as tables and lists for people. Nothing of a text from outside can move the cursor.
 * Main thread. */
#pragma once

#include "base/arena.h"
#include "base/base.h"
#include "base/buf.h"

enum bs_column_kind {
    BS_COLUMN_PLAIN,
    BS_COLUMN_AMOUNT,  /* minor units of the item's currency: 6410 is shown as 64.10 CNY */
    BS_COLUMN_WAITING, /* only while the item's task waits for an execution             */
};

struct bs_column {
    const char *title;
    const char *member; /* of each item */
    enum bs_column_kind kind;
};

/* The items of {"items": […]}, one row each; `none` is printed when there are none. */
BS_NODISCARD bs_rc bs_view_table(struct bs_buf *out, struct bs_str answer,
                                 const struct bs_column *columns, uint32_t n, const char *none,
                                 struct bs_err *err);
/* The same for the items of the array `inner` of each item: a column that they lack is the item's.
 * Nothing is printed when there are none. */
BS_NODISCARD bs_rc bs_view_inner(struct bs_buf *out, struct bs_str answer, const char *inner,
                                 const struct bs_column *columns, uint32_t n, struct bs_err *err);
/* Every member of an object that has a value: "name   value"; an amount with its currency. */
BS_NODISCARD bs_rc bs_view_object(struct bs_buf *out, struct bs_str answer, struct bs_err *err);
/* The same, with the members of inner objects as "outer.name" and a row for each listed amount. */
BS_NODISCARD bs_rc bs_view_tree(struct bs_buf *out, struct bs_str answer, struct bs_err *err);
/* A member of an object as text ("" for null and absent), cleaned, in the arena. */
BS_NODISCARD bs_rc bs_view_member(struct bs_arena *a, struct bs_str answer, const char *name,
                                  struct bs_str *ret, struct bs_err *err);
