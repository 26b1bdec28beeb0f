/* The members of one JSON object, read by a table into a struct, so that every body that comes in
 * has the same words for what is unknown, given twice or of the wrong type. Judges shapes, never
 * values. Any thread. */
#pragma once

#include "core/submit.h"
#include "json/read.h"

enum bs_member_kind {
    BS_MEMBER_TEXT,   /* a string; its text                                   → struct bs_str */
    BS_MEMBER_DIGITS, /* a number or a string; the number's bytes or the text → struct bs_str */
    BS_MEMBER_INT,    /* an integer                                           → int64_t       */
    BS_MEMBER_FLAG,   /* true or false                                        → bool          */
    BS_MEMBER_OBJECT, /* an object; its exact bytes                           → struct bs_str */
    BS_MEMBER_ARRAY,  /* an array; its exact bytes                            → struct bs_str */
    BS_MEMBER_VALUE,  /* anything, null too; its exact bytes                  → struct bs_str */
};

struct bs_member {
    struct bs_str name; /* of a literal */
    enum bs_member_kind kind;
    size_t at;     /* where in the struct                        */
    size_t has_at; /* INT only: a bool that says it was given    */
};

/* At most 64 table entries. Slices are of the object's bytes or arena; a text that was given has
 * p != NULL, also when it is empty. Every broken rule is added to errors. */
void bs_members_read(const struct bs_json_object *o, const struct bs_member *table, uint32_t n,
                     void *into, struct bs_arena *a, struct bs_field_errors *errors);
