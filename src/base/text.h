/* Text from outside: UTF-8, numbers, what may be shown. Pure. */
#pragma once

#include "base/arena.h"
#include "base/base.h"
#include "base/buf.h"

/* Well-formed UTF-8 of RFC 3629: no overlong form, no surrogate, nothing past U+10FFFF. */
bool bs_utf8_valid(struct bs_str s);
/* Bytes of the well-formed character at the beginning: 1–4; 0 for an ill-formed one or the end. */
size_t bs_utf8_char(struct bs_str s);
/* No C0 control, no DEL, no C1 control (U+0080–U+009F). Expects valid UTF-8. */
bool bs_text_plain(struct bs_str s);
/* The longest beginning of at most max bytes that does not end inside a character. */
struct bs_str bs_utf8_cut(struct bs_str s, size_t max);
/* Makes any bytes storable as text: bytes that are not UTF-8 become \xNN, controls but tab and
 * newline too (NUL included); longer than max bytes: cut at a character border and the mark "…" at
 * the end, all within max. */
struct bs_str bs_text_clean(struct bs_arena *a, struct bs_str raw, size_t max);
/* Decimal digits with an optional '-', nothing else, within 64 bits. */
bool bs_i64_parse(struct bs_str s, int64_t *ret);
/* Decimal text of v, at the end of room. */
struct bs_str bs_i64_text(char room[24], int64_t v);
/* What an own token begins with. */
#define BS_TOKEN_MARK "bst_"
#define BS_TOKEN_MARK_BYTES (sizeof(BS_TOKEN_MARK) - 1)
/* For logs: hides card-like runs (12–19 digits that pass Luhn, blanks, dashes and, after groups of
 * 4 or 6, dots between allowed; all but the first 6 and last 4 become *), phone-like runs (11
 * digits that begin with 1[3-9]; the middle 4–8 become *) and own tokens, whole or cut, of 20 bytes
 * and more (all but the mark become ***). */
void bs_text_mask(struct bs_buf *out, struct bs_str s);
/* Levenshtein distance, for "did you mean"; both at most 64 bytes, else 64. */
uint32_t bs_text_distance(struct bs_str a, struct bs_str b);
/* Standard base64 with padding (RFC 4648 4). */
void bs_base64_write(struct bs_buf *out, struct bs_str raw);
/* Strict: padding required, no white space, zero trailing bits. */
BS_NODISCARD bs_rc bs_base64_read(struct bs_arena *a, struct bs_str text, struct bs_str *ret,
                                  struct bs_err *err);
void bs_hex_write(struct bs_buf *out, struct bs_str raw);
