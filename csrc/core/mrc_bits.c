/* SPDX-License-Identifier: BSD-2-Clause */
#include "mrc_bits.h"

uint32_t mrc_bits_capacity(uint32_t count)
{
    uint32_t cap = 64;
    while (cap < count)
        cap <<= 1;
    return cap;
}

void mrc_bits_init(struct mrc_bits *b, void *mem, uint32_t capacity)
{
    MRC_ASSERT(capacity >= 64 && (capacity & (capacity - 1)) == 0 && capacity <= 1u << 23);
    b->word = mem;
    b->mask = capacity - 1;
    memset(mem, 0, mrc_bits_bytes(capacity));
}

uint64_t mrc_bits_export64(const struct mrc_bits *b, uint32_t psn)
{
    const uint32_t i = psn & b->mask;
    const uint32_t shift = i & 63;
    const uint64_t low = b->word[i >> 6] >> shift;
    if (shift == 0)
        return low;
    return low | (b->word[((i + 63) & b->mask) >> 6] << (64 - shift));
}

uint32_t mrc_bits_run(const struct mrc_bits *b, uint32_t psn, uint32_t max)
{
    uint32_t n = 0;
    while (n < max) {
        const uint64_t clear = ~mrc_bits_export64(b, psn + n);
        if (clear != 0)
            return mrc_min32(n + (uint32_t)__builtin_ctzll(clear), max);
        n += 64;
    }
    return max;
}

uint32_t mrc_bits_next(const struct mrc_bits *b, uint32_t psn, uint32_t max)
{
    uint32_t n = 0;
    while (n < max) {
        const uint64_t set = mrc_bits_export64(b, psn + n);
        if (set != 0)
            return mrc_min32(n + (uint32_t)__builtin_ctzll(set), max);
        n += 64;
    }
    return max;
}

uint32_t mrc_bits_prev(const struct mrc_bits *b, uint32_t psn, uint32_t max)
{
    uint32_t n = 0;
    while (n < max) {
        const uint64_t set = mrc_bits_export64(b, psn - n - 63); /* bit 63 is psn - n */
        if (set != 0)
            return mrc_min32(n + (uint32_t)__builtin_clzll(set), max);
        n += 64;
    }
    return max;
}

/* By hand: without a CPU flag the compiler's own would be a call out of the core. */
static uint32_t bits_count(uint64_t w)
{
    w -= (w >> 1) & 0x5555555555555555u;
    w = (w & 0x3333333333333333u) + ((w >> 2) & 0x3333333333333333u);
    w = (w + (w >> 4)) & 0x0F0F0F0F0F0F0F0Fu;
    return (uint32_t)((w * 0x0101010101010101u) >> 56);
}

uint32_t mrc_bits_take(struct mrc_bits *b, uint32_t psn, uint32_t n)
{
    uint32_t set = 0;
    while (n > 0) {
        const uint32_t i = psn & b->mask;
        const uint32_t room = 64 - (i & 63);
        const uint32_t step = mrc_min32(n, room);
        const uint64_t ones = step == 64 ? ~(uint64_t)0 : (((uint64_t)1 << step) - 1);
        const uint64_t m = ones << (i & 63);
        set += bits_count(b->word[i >> 6] & m);
        b->word[i >> 6] &= ~m;
        psn += step;
        n -= step;
    }
    return set;
}
