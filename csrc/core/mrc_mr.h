/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory regions: key lookup, access flags, bounds. The only judge of where a byte may be
 * stored. */
#ifndef MRC_MR_H
#define MRC_MR_H

#include "mrc_types.h"

struct mrc_mr {
    uint8_t *addr;
    uint64_t len;
    uint32_t key; /* 0: free slot */
    uint32_t pd;
    uint32_t refs; /* work requests that read from it */
    uint8_t access;
    uint64_t va; /* where it begins in the addresses of work requests and packets */
};

struct mrc_mr_table {
    struct mrc_mr *mr;
    uint32_t mask; /* entries - 1; the low bits of a key are its index */
    uint32_t next; /* the search for a free entry begins here: keys are not reused at once */
};

/* Memory for max regions (rounded up to a power of two). */
size_t mrc_mr_bytes(uint32_t max);
void mrc_mr_init(struct mrc_mr_table *t, void *mem, uint32_t max); /* mem: zeroed */

int mrc_mr_add(struct mrc_mr_table *t, uint32_t pd, void *addr, uint64_t va, uint64_t len,
               uint8_t access, uint32_t key, uint32_t *key_out);
int mrc_mr_drop(struct mrc_mr_table *t, uint32_t key); /* NOENT, BUSY */

/* The region of this key in this PD, or NULL. */
struct mrc_mr *mrc_mr_find(struct mrc_mr_table *t, uint32_t key, uint32_t pd);
/* May [va, va + len) of the region be used with these rights? Safe against wrap at 2^64. Length
 * zero must still point inside the region. */
bool mrc_mr_allows(const struct mrc_mr *mr, uint64_t va, uint64_t len, uint8_t access);
/* Where that lies, if it is allowed. */
static inline uint8_t *mrc_mr_at(const struct mrc_mr *mr, uint64_t va)
{
    return mr->addr + (va - mr->va);
}

#endif
