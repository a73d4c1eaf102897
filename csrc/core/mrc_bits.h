/* SPDX-License-Identifier: BSD-2-Clause */
/* A ring of bits indexed by PSN. Its capacity is a power of two that divides 2^24, so the PSN wrap
 * needs no care here. Owner: one tracker. The window that is in use must not exceed the
 * capacity. */
#ifndef MRC_BITS_H
#define MRC_BITS_H

#include "mrc_base.h"

struct mrc_bits {
    uint64_t *word;
    uint32_t mask; /* capacity - 1; capacity is at least 64 */
};

/* Smallest capacity that holds `count` PSNs. */
uint32_t mrc_bits_capacity(uint32_t count);
static inline size_t mrc_bits_bytes(uint32_t capacity) { return capacity / 8; }
/* mem: mrc_bits_bytes(capacity) bytes, 8-aligned; cleared here. */
void mrc_bits_init(struct mrc_bits *b, void *mem, uint32_t capacity);

static inline bool mrc_bits_test(const struct mrc_bits *b, uint32_t psn)
{
    const uint32_t i = psn & b->mask;
    return (b->word[i >> 6] >> (i & 63)) & 1u;
}
static inline void mrc_bits_set(struct mrc_bits *b, uint32_t psn)
{
    const uint32_t i = psn & b->mask;
    b->word[i >> 6] |= (uint64_t)1 << (i & 63);
}
static inline void mrc_bits_clear(struct mrc_bits *b, uint32_t psn)
{
    const uint32_t i = psn & b->mask;
    b->word[i >> 6] &= ~((uint64_t)1 << (i & 63));
}

/* The 64 bits that start at psn; bit 0 of the result is psn. */
uint64_t mrc_bits_export64(const struct mrc_bits *b, uint32_t psn);
/* How many bits in a row are set from psn on, at most max. */
uint32_t mrc_bits_run(const struct mrc_bits *b, uint32_t psn, uint32_t max);
/* Distance from psn to the first set bit, or max when the next max bits are clear. */
uint32_t mrc_bits_next(const struct mrc_bits *b, uint32_t psn, uint32_t max);
/* The same downwards: from psn to the first set bit at or below it. */
uint32_t mrc_bits_prev(const struct mrc_bits *b, uint32_t psn, uint32_t max);
/* Clear n bits from psn on and say how many of them were set. */
uint32_t mrc_bits_take(struct mrc_bits *b, uint32_t psn, uint32_t n);

#endif
