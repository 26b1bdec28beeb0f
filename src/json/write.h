/* JSON out, into one bounded buffer, by yajl_gen; stored bytes are spliced in unchanged. One
 * thread. */
#pragma once

#include "base/buf.h"
#include "base/time.h"

struct bs_json; /* one document being written */

/* Starts in out (which keeps what it has). NULL only without memory. */
struct bs_json *bs_json_new(struct bs_buf *out);
/* Ends; reports what stuck: BS_E_LIMIT, BS_E_NOMEM. j is freed either way. */
BS_NODISCARD bs_rc bs_json_end(struct bs_json *j, struct bs_err *err);

void bs_json_open(struct bs_json *j); /* { */
void bs_json_close(struct bs_json *j);
void bs_json_open_array(struct bs_json *j);
void bs_json_close_array(struct bs_json *j);
void bs_json_key(struct bs_json *j, const char *name);
void bs_json_str(struct bs_json *j,
                 struct bs_str s); /* bytes that are not UTF-8 become \xNN text first */
void bs_json_int(struct bs_json *j, int64_t v); /* a plain number: counts              */
void bs_json_id(struct bs_json *j, int64_t v);  /* a 64-bit number as a string         */
void bs_json_bool(struct bs_json *j, bool v);
void bs_json_null(struct bs_json *j);
void bs_json_time(struct bs_json *j, struct bs_time t);  /* RFC 3339, null when not set       */
void bs_json_raw(struct bs_json *j, struct bs_str json); /* valid JSON, byte for byte         */

/* key and value in one; empty text is null with _or_null. */
void bs_json_kstr(struct bs_json *j, const char *name, struct bs_str s);
void bs_json_kstr_or_null(struct bs_json *j, const char *name, struct bs_str s);
void bs_json_kint(struct bs_json *j, const char *name, int64_t v);
void bs_json_kid(struct bs_json *j, const char *name, int64_t v);
void bs_json_kbool(struct bs_json *j, const char *name, bool v);
void bs_json_ktime(struct bs_json *j, const char *name, struct bs_time t);
