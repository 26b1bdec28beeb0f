/* One bounded arena per request or attempt: bump allocation, freed all at once. One thread at a
 * time. */
#pragma once

#include "base/base.h"

#include <stdarg.h>

struct bs_arena_block;

struct bs_arena {
    struct bs_arena_block *blocks;
    size_t used; /* bytes handed out, over all blocks         */
    size_t max;  /* most that may be handed out; 0: 64 MiB    */
    bool failed; /* sticky: some allocation did not succeed   */
};

/* Zeroed memory, aligned for any type, or NULL (and failed is set) past the maximum or without
 * memory. */
void *bs_arena_alloc(struct bs_arena *a, size_t size);
/* A terminated copy; the slice excludes the terminator. On failure p is NULL and failed is set. */
struct bs_str bs_arena_str(struct bs_arena *a, struct bs_str s);
/* Decimal text. */
struct bs_str bs_arena_i64(struct bs_arena *a, int64_t v);
/* Formatted text of at most 1,024 bytes. */
BS_PRINTF(2, 3) struct bs_str bs_arena_fmt(struct bs_arena *a, const char *fmt, ...);
BS_PRINTF(2, 0) struct bs_str bs_arena_vfmt(struct bs_arena *a, const char *fmt, va_list args);
/* Frees everything; safe on { 0 }; the arena may be used again. */
void bs_arena_free(struct bs_arena *a);

#define BS_NEW(arena, type) ((type *)bs_arena_alloc((arena), sizeof(type)))
#define BS_NEW_ARRAY(arena, type, n) ((type *)bs_arena_alloc((arena), sizeof(type) * (n)))
