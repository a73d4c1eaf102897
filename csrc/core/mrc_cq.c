/* SPDX-License-Identifier: BSD-2-Clause */
#include "mrc_cq.h"

enum { MRC_CQ_DEPTH_MAX = 1 << 22 };

size_t mrc_cq_table_bytes(uint32_t max) { return (size_t)max * sizeof(struct mrc_cq); }

void mrc_cq_table_init(struct mrc_cq_table *t, void *mem, uint32_t max)
{
    memset(mem, 0, mrc_cq_table_bytes(max));
    t->cq = mem;
    t->max = max;
    t->waiting = 0;
}

size_t mrc_cq_ring_bytes(uint32_t depth)
{
    if (depth == 0 || depth > MRC_CQ_DEPTH_MAX)
        return 0;
    return (size_t)mrc_pow2(depth) * sizeof(struct mrc_wc);
}

int mrc_cq_add(struct mrc_cq_table *t, void *mem, uint32_t depth)
{
    if (mem == NULL || mrc_cq_ring_bytes(depth) == 0)
        return MRC_ERR_INVAL;
    for (uint32_t i = 0; i < t->max; i++) {
        struct mrc_cq *cq = &t->cq[i];
        if (cq->ring != NULL)
            continue;
        memset(cq, 0, sizeof *cq);
        cq->ring = mem;
        cq->mask = mrc_pow2(depth) - 1;
        return (int)i;
    }
    return MRC_ERR_FULL;
}

struct mrc_cq *mrc_cq_get(struct mrc_cq_table *t, uint32_t id)
{
    return id < t->max && t->cq[id].ring != NULL ? &t->cq[id] : NULL;
}

void *mrc_cq_drop(struct mrc_cq_table *t, uint32_t id)
{
    struct mrc_cq *cq = mrc_cq_get(t, id);
    if (cq == NULL || cq->refs != 0)
        return NULL;
    void *mem = cq->ring;
    t->waiting -= cq->tail - cq->head;
    memset(cq, 0, sizeof *cq);
    return mem;
}

bool mrc_cq_push(struct mrc_cq_table *t, uint32_t id, const struct mrc_wc *wc)
{
    struct mrc_cq *cq = mrc_cq_get(t, id);
    MRC_ASSERT(cq != NULL);
    if (cq->overrun || cq->tail - cq->head > cq->mask) {
        cq->overrun = true;
        return false;
    }
    cq->ring[cq->tail++ & cq->mask] = *wc;
    t->waiting++;
    if (cq->armed && (!cq->armed_solicited || wc->status != MRC_WC_SUCCESS ||
                      (wc->flags & MRC_WC_SOLICITED) != 0)) {
        cq->armed = false;
        cq->fired = true;
    }
    return true;
}

int mrc_cq_take(struct mrc_cq_table *t, uint32_t id, struct mrc_wc *out, int max)
{
    struct mrc_cq *cq = mrc_cq_get(t, id);
    if (cq == NULL || max < 0)
        return cq == NULL ? MRC_ERR_NOENT : MRC_ERR_INVAL;
    int n = 0;
    while (n < max && cq->head != cq->tail)
        out[n++] = cq->ring[cq->head++ & cq->mask];
    t->waiting -= (uint32_t)n;
    return n;
}
