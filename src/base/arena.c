/* Bump allocation in blocks. Sanitizer builds give each allocation a block of its own, so that an
 * overrun between neighbours is seen. */
#include "base/arena.h"

#include "base/text.h"

#include <stdio.h>
#include <stdlib.h>

enum { BLOCK_SIZE = 2048, DEFAULT_MAX = 64 << 20, ALIGN = 16 };

struct bs_arena_block {
    struct bs_arena_block *next;
    size_t used, size;
    _Alignas(ALIGN) char data[];
};

#if defined(__SANITIZE_ADDRESS__) || defined(BS_ARENA_SINGLE)
static const bool one_block_each = true;
#else
static const bool one_block_each = false;
#endif

static struct bs_arena_block *grow(struct bs_arena *a, size_t size)
{
    size_t room = one_block_each ? size : BS_MAX(size, (size_t)BLOCK_SIZE);
    struct bs_arena_block *b = malloc(sizeof(*b) + room);

    if (!b)
        return NULL;
    *b = (struct bs_arena_block){ .next = a->blocks, .size = room };
    a->blocks = b;
    return b;
}

void *bs_arena_alloc(struct bs_arena *a, size_t size)
{
    size_t max = a->max ? a->max : (size_t)DEFAULT_MAX;
    size_t whole = (size + ALIGN - 1) & ~(size_t)(ALIGN - 1);
    struct bs_arena_block *b = a->blocks;

    if (whole < size || whole > max || a->used > max - whole) {
        a->failed = true;
        return NULL;
    }
    if (!b || one_block_each || b->size - b->used < whole)
        b = grow(a, whole);
    if (!b) {
        a->failed = true;
        return NULL;
    }
    void *p = b->data + b->used;
    b->used += whole;
    a->used += whole;
    memset(p, 0, whole);
    return p;
}

struct bs_str bs_arena_str(struct bs_arena *a, struct bs_str s)
{
    char *p = bs_arena_alloc(a, s.n + 1);

    if (!p)
        return BS_STR_NONE;
    if (s.n)
        memcpy(p, s.p, s.n);
    return (struct bs_str){ p, s.n };
}

struct bs_str bs_arena_vfmt(struct bs_arena *a, const char *fmt, va_list args)
{
    char text[1024];
    int n = vsnprintf(text, sizeof(text), fmt, args);

    BS_ASSERT(n >= 0);
    return bs_arena_str(a, (struct bs_str){ text, BS_MIN((size_t)n, sizeof(text) - 1) });
}

struct bs_str bs_arena_i64(struct bs_arena *a, int64_t v)
{
    char room[24];

    return bs_arena_str(a, bs_i64_text(room, v));
}

struct bs_str bs_arena_fmt(struct bs_arena *a, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    struct bs_str s = bs_arena_vfmt(a, fmt, args);
    va_end(args);
    return s;
}

void bs_arena_free(struct bs_arena *a)
{
    struct bs_arena_block *b = a->blocks;

    while (b) {
        struct bs_arena_block *next = b->next;

        free(b);
        b = next;
    }
    *a = (struct bs_arena){ .max = a->max };
}
