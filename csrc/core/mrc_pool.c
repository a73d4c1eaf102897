/* SPDX-License-Identifier: BSD-2-Clause */
#include "mrc_pool.h"

size_t mrc_pool_bytes(uint32_t units) { return mrc_align(units) + (size_t)units * MRC_POOL_UNIT; }

static void *pool_block(const struct mrc_pool *p, uint32_t unit)
{
    return p->mem + (size_t)unit * MRC_POOL_UNIT;
}

static uint32_t pool_unit(const struct mrc_pool *p, const void *block)
{
    return (uint32_t)((size_t)((const uint8_t *)block - p->mem) / MRC_POOL_UNIT);
}

static void pool_push(struct mrc_pool *p, uint32_t unit, uint32_t order)
{
    struct mrc_link *const l = pool_block(p, unit);
    p->free_order[unit] = (uint8_t)(order + 1);
    mrc_list_init(l);
    mrc_list_push_front(&p->free[order], l); /* what was used last is in the cache */
}

static void pool_drop(struct mrc_pool *p, uint32_t unit)
{
    p->free_order[unit] = 0;
    mrc_list_remove(pool_block(p, unit));
}

void mrc_pool_init(struct mrc_pool *p, void *mem, uint32_t units)
{
    p->free_order = mem;
    p->mem = (uint8_t *)mem + mrc_align(units);
    p->units = units;
    p->used = 0;
    memset(p->free_order, 0, units);
    for (uint32_t k = 0; k < MRC_POOL_ORDERS; k++)
        mrc_list_init(&p->free[k]), p->back[k] = NULL;
    uint32_t k = MRC_POOL_ORDERS - 1;
    for (uint32_t at = 0; at < units; at += (uint32_t)1 << k) { /* each at a multiple of its size */
        while (at + ((uint32_t)1 << k) > units)
            k--;
        pool_push(p, at, k);
    }
}

uint8_t mrc_pool_order(size_t bytes)
{
    uint8_t order = 0;
    while (((size_t)MRC_POOL_UNIT << order) < bytes)
        order++;
    return order;
}

static void *pool_split(struct mrc_pool *p, uint8_t order)
{
    uint32_t k = order;
    while (k < MRC_POOL_ORDERS && mrc_list_empty(&p->free[k]))
        k++;
    if (k >= MRC_POOL_ORDERS)
        return NULL;
    void *const block = p->free[k].next;
    const uint32_t unit = pool_unit(p, block);
    pool_drop(p, unit);
    while (k > order) { /* the lower part is lent, so that high memory stays untouched */
        k--;
        pool_push(p, unit + ((uint32_t)1 << k), k);
    }
    return block;
}

static void pool_join(struct mrc_pool *p, uint32_t unit, uint32_t order)
{
    for (; order + 1 < MRC_POOL_ORDERS; order++) {
        const uint32_t other = unit ^ (uint32_t)1 << order;
        if (other >= p->units || p->free_order[other] != order + 1)
            break;
        pool_drop(p, other);
        unit &= ~((uint32_t)1 << order);
    }
    pool_push(p, unit, order);
}

static void pool_join_all(struct mrc_pool *p)
{
    for (uint32_t k = 0; k < MRC_POOL_ORDERS; k++)
        while (p->back[k] != NULL) {
            void *const block = p->back[k];
            memcpy(&p->back[k], block, sizeof p->back[k]);
            pool_join(p, pool_unit(p, block), k);
        }
}

void *mrc_pool_take(struct mrc_pool *p, uint8_t order)
{
    void *block = p->back[order];
    if (block != NULL) {
        memcpy(&p->back[order], block, sizeof p->back[order]);
    } else {
        block = pool_split(p, order);
        if (block == NULL) {
            pool_join_all(p);
            block = pool_split(p, order);
        }
        if (block == NULL)
            return NULL;
    }
    p->used += (uint32_t)1 << order;
    return block;
}

void mrc_pool_give(struct mrc_pool *p, void *block, uint8_t order)
{
    MRC_ASSERT(p->used >= (uint32_t)1 << order);
    p->used -= (uint32_t)1 << order;
    memcpy(block, &p->back[order], sizeof p->back[order]);
    p->back[order] = block;
}

bool mrc_pool_fair(const struct mrc_pool *p, uint32_t keeps, uint32_t returns, uint8_t order)
{
    const uint32_t block = (uint32_t)1 << order;
    const uint32_t used = p->used - returns + block;
    return used <= p->units && keeps + block <= p->units - used;
}
