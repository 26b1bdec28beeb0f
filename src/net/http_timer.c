/* The heap of connection timers. */
#include "net/http_timer.h"

#include <stdlib.h>

static void put(struct bs_http_timers *all, uint32_t at, struct bs_http_timer *t)
{
    all->heap[at] = t;
    t->at = at;
}

static void sift_up(struct bs_http_timers *all, struct bs_http_timer *t)
{
    uint32_t at = t->at;

    while (at > 0 && all->heap[(at - 1) / 2]->key_us > t->key_us) {
        put(all, at, all->heap[(at - 1) / 2]);
        at = (at - 1) / 2;
    }
    put(all, at, t);
}

static void sift_down(struct bs_http_timers *all, struct bs_http_timer *t)
{
    uint32_t at = t->at;

    for (;;) {
        uint32_t child = at * 2 + 1;

        if (child >= all->n)
            break;
        if (child + 1 < all->n && all->heap[child + 1]->key_us < all->heap[child]->key_us)
            child++;
        if (all->heap[child]->key_us >= t->key_us)
            break;
        put(all, at, all->heap[child]);
        at = child;
    }
    put(all, at, t);
}

bool bs_http_timer_add(struct bs_http_timers *all, struct bs_http_timer *t, int64_t due_us)
{
    if (all->n == all->cap) {
        uint32_t cap = all->cap ? all->cap * 2 : 64;
        struct bs_http_timer **heap = realloc(all->heap, cap * sizeof(struct bs_http_timer *));

        if (!heap)
            return false;
        all->heap = heap;
        all->cap = cap;
    }
    *t = (struct bs_http_timer){ .due_us = due_us, .key_us = due_us, .at = all->n++ };
    sift_up(all, t);
    return true;
}

void bs_http_timer_set(struct bs_http_timers *all, struct bs_http_timer *t, int64_t due_us)
{
    t->due_us = due_us;
    if (due_us >= t->key_us)
        return;
    t->key_us = due_us;
    sift_up(all, t);
}

void bs_http_timer_remove(struct bs_http_timers *all, struct bs_http_timer *t)
{
    struct bs_http_timer *last = all->heap[--all->n];

    BS_ASSERT(t->at <= all->n);
    if (last == t)
        return;
    put(all, t->at, last);
    sift_up(all, last);
    sift_down(all, last);
}

struct bs_http_timer *bs_http_timer_fire(struct bs_http_timers *all, int64_t now_us)
{
    while (all->n > 0 && all->heap[0]->key_us <= now_us) {
        struct bs_http_timer *t = all->heap[0];
        bool due = t->due_us <= now_us;

        if (due)
            t->due_us = INT64_MAX;
        t->key_us = t->due_us;
        sift_down(all, t);
        if (due)
            return t;
    }
    return NULL;
}

int64_t bs_http_timer_next(const struct bs_http_timers *all)
{
    return all->n > 0 ? all->heap[0]->key_us : INT64_MAX;
}

void bs_http_timers_free(struct bs_http_timers *all)
{
    free(all->heap);
    *all = (struct bs_http_timers){ 0 };
}
