/* A small generator whose state is a value: the same seed gives the same numbers everywhere. Not
 * for secrets. */
#pragma once

#include "base/base.h"

struct bs_rng {
    uint64_t s;
};

/* splitmix64 (Steele, Lea, Flood 2014): 64 uniform bits. */
static inline uint64_t bs_rng_next(struct bs_rng *r)
{
    uint64_t z = (r->s += 0x9e3779b97f4a7c15u);

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* Uniform in 0 … n-1; n > 0. */
static inline uint64_t bs_rng_below(struct bs_rng *r, uint64_t n)
{
    return (uint64_t)(((unsigned __int128)bs_rng_next(r) * n) >> 64);
}
