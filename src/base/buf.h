/* An owned, growing, always terminated run of bytes with a maximum given at birth. One thread at a
 * time. */
#pragma once

#include "base/base.h"

/* { .max = N } is a ready, empty buffer. Failure is sticky: add ten times, ask once. */
struct bs_buf {
    char *p;
    size_t len, cap;
    size_t max;     /* most bytes of content         */
    bool failed;    /* past max or without memory    */
    bool no_memory; /* the second of the two         */
};

void bs_buf_add(struct bs_buf *b, struct bs_str s);
void bs_buf_addz(struct bs_buf *b, const char *z);
void bs_buf_addc(struct bs_buf *b, char c);
void bs_buf_add_i64(struct bs_buf *b, int64_t v);
/* At most 1,024 bytes a call. */
BS_PRINTF(2, 3) void bs_buf_fmt(struct bs_buf *b, const char *fmt, ...);
/* What is in it now; p is "" when it is empty. Borrowed until the next change. */
struct bs_str bs_buf_str(const struct bs_buf *b);
/* BS_OK, BS_E_LIMIT or BS_E_NOMEM for everything added so far. */
BS_NODISCARD bs_rc bs_buf_done(const struct bs_buf *b, struct bs_err *err);
/* Empties it and keeps the memory. */
void bs_buf_reset(struct bs_buf *b);
void bs_buf_free(struct bs_buf *b); /* safe on { 0 } */
