/* The one door in: from outside bytes to checked submissions and store operations. Every source
 * ends here. Any thread; all memory from the arena given. */
#pragma once

#include "core/queue.h"
#include "core/submit.h"
#include "store/store.h"
#include "sys/ids.h"
#include "json/read.h"

struct bs_door {
    struct bs_queues_slot *queues;
    struct bs_ids *ids;
};

/* What comes in, and from whom. */
struct bs_door_input {
    struct bs_str json;       /* one JSON object                                                  */
    struct bs_str request_id; /* not empty: the Idempotency-Key header; it stands for an absent
                                 request_id member and must equal a present one */
    struct bs_str who;        /* becomes created_by */
    struct bs_time now;
};

/* *ret becomes a SUBMIT op with its row, fingerprints and id. BS_E_INVALID with errors->n == 0: not
 * JSON (err says where); with errors: bad fields. */
BS_NODISCARD bs_rc bs_door_read(const struct bs_door *d, const struct bs_door_input *in,
                                struct bs_arena *a, struct bs_op *ret,
                                struct bs_field_errors *errors, struct bs_err *err);
/* The exact slices of a batch: a JSON array, or application/x-ndjson (blank lines skipped).
 * BS_E_INVALID: not JSON as a whole (array form); BS_E_LIMIT: more than 1,000. A bad line of NDJSON
 * is a bad item, found by bs_door_read. */
BS_NODISCARD bs_rc bs_door_split(struct bs_str body, bool ndjson, struct bs_arena *a,
                                 struct bs_str **ret, uint32_t *ret_n, struct bs_err *err);

/* ---- the members of any body that comes in, read by a table into a struct: the same words
 * everywhere for what is unknown, given twice or of the wrong type. Judges shapes, never values. */

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
