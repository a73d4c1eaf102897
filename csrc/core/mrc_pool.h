/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory that the queue pairs of one engine borrow while they are busy, and give back when they are
 * idle. Blocks of MRC_POOL_UNIT bytes times a power of two; when none is left of a size, halves
 * that are both free become one again. Bounded, and never in anybody's way: whoever gets none goes
 * on with the little that is his own. Memory that was never lent was never touched. */
#ifndef MRC_POOL_H
#define MRC_POOL_H

#include "mrc_list.h"

enum {
    MRC_POOL_UNIT = 1536, /* 32 slots of the send-time table */
    MRC_POOL_ORDERS = 13, /* sizes: 1, 2, 4, ... units */
};

struct mrc_pool {
    uint8_t *mem;
    uint8_t *free_order; /* of each unit: 1 + order of the free block that begins there, or 0 */
    uint32_t units;
    uint32_t used;
    struct mrc_link free[MRC_POOL_ORDERS]; /* links lie in the blocks */
    void *back[MRC_POOL_ORDERS]; /* given back and kept whole: the first, which begins with
                                    the next */
};

size_t mrc_pool_bytes(uint32_t units);
/* mem: aligned to 64 bytes; only the part that is not lent is written to. */
void mrc_pool_init(struct mrc_pool *p, void *mem, uint32_t units);
/* The smallest order whose blocks have so many bytes. */
uint8_t mrc_pool_order(size_t bytes);
/* A block, its content arbitrary; NULL: none is left. */
void *mrc_pool_take(struct mrc_pool *p, uint8_t order);
void mrc_pool_give(struct mrc_pool *p, void *block, uint8_t order);
/* May one who keeps so many units, and gives so many back for it, have a block as well? None may
 * hold more than he leaves free, where peers decide how much is asked for. */
bool mrc_pool_fair(const struct mrc_pool *p, uint32_t keeps, uint32_t returns, uint8_t order);

#endif
