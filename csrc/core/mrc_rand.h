/* SPDX-License-Identifier: BSD-2-Clause */
/* Seeded generator (splitmix64 seeding, xorshift64* stepping). State in a struct; never
 * security. */
#ifndef MRC_RAND_H
#define MRC_RAND_H

#include "mrc_base.h"

struct mrc_rand {
    uint64_t s;
};

static inline uint64_t mrc_mix64(uint64_t z)
{
    z += 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

static inline void mrc_rand_seed(struct mrc_rand *r, uint64_t seed)
{
    r->s = mrc_mix64(seed);
    if (r->s == 0)
        r->s = 0x9E3779B97F4A7C15u;
}

static inline uint64_t mrc_rand_next(struct mrc_rand *r)
{
    r->s ^= r->s >> 12;
    r->s ^= r->s << 25;
    r->s ^= r->s >> 27;
    return r->s * 0x2545F4914F6CDD1Du;
}

/* Uniform in 0..n-1, n > 0 (multiply-shift; bias below 2^-32). */
static inline uint32_t mrc_rand_below(struct mrc_rand *r, uint32_t n)
{
    return (uint32_t)(((mrc_rand_next(r) >> 32) * n) >> 32);
}

#endif
