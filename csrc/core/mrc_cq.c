/* SPDX-License-Identifier: BSD-2-Clause */
#include "mrc_cq.h"

size_t mrc_cq_table_bytes(uint32_t max) { return (size_t)max * sizeof(struct mrc_cq); }

void mrc_cq_table_init(struct mrc_cq_table *t, void *mem, uint32_t max)
{
    t->cq = mem;
    t->max = max;
    t->waiting = 0;
    t->failed = 0;
    t->pushed = 0;
    mrc_list_init(&t->fired);
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
        mrc_list_init(&cq->fired);
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
    if (cq == NULL || cq->refs != 0 || cq->unacked != 0)
        return NULL;
    void *mem = cq->ring;
    t->waiting -= cq->tail - cq->head;
    t->failed -= cq->overrun && !cq->told;
    mrc_list_remove(&cq->fired);
    memset(cq, 0, sizeof *cq);
    return mem;
}

/* ---- events ---- */

int mrc_cq_bind(struct mrc_cq *cq, uint32_t channel)
{
    if (cq->events != 0 || cq->unacked != 0)
        return MRC_ERR_BUSY;
    cq->channel = channel;
    cq->armed = false;
    return MRC_OK;
}

int mrc_cq_notify(struct mrc_cq *cq, bool solicited_only)
{
    if (cq->channel == 0)
        return MRC_ERR_STATE;
    cq->armed_solicited = solicited_only && (!cq->armed || cq->armed_solicited);
    cq->armed = true;
    return MRC_OK;
}

static void cq_fire(struct mrc_cq_table *t, struct mrc_cq *cq, bool solicited)
{
    if (!cq->armed || (cq->armed_solicited && !solicited))
        return;
    cq->armed = false;
    cq->events++;
    mrc_list_push(&t->fired, &cq->fired);
}

int mrc_cq_event(struct mrc_cq_table *t, uint32_t channel)
{
    for (struct mrc_link *l = t->fired.next; l != &t->fired; l = l->next) {
        struct mrc_cq *cq = MRC_LIST_OWNER(l, struct mrc_cq, fired);
        if (cq->channel != channel)
            continue;
        cq->unacked++;
        mrc_list_remove(&cq->fired);
        if (--cq->events > 0)
            mrc_list_push(&t->fired, &cq->fired);
        return (int)(cq - t->cq);
    }
    return MRC_ERR_NOENT;
}

bool mrc_cq_event_any(const struct mrc_cq_table *t, uint32_t channel)
{
    for (const struct mrc_link *l = t->fired.next; l != &t->fired; l = l->next)
        if (MRC_LIST_OWNER(l, struct mrc_cq, fired)->channel == channel)
            return true;
    return false;
}

int mrc_cq_ack(struct mrc_cq *cq, uint32_t n)
{
    if (n > cq->unacked)
        return MRC_ERR_INVAL;
    cq->unacked -= n;
    return MRC_OK;
}

/* ---- completions ---- */

bool mrc_cq_push(struct mrc_cq_table *t, uint32_t id, const struct mrc_wc *wc)
{
    struct mrc_cq *cq = mrc_cq_get(t, id);
    MRC_ASSERT(cq != NULL);
    if (cq->overrun)
        return false;
    if (cq->tail - cq->head > cq->mask) {
        cq->overrun = true;
        t->failed++;
        cq_fire(t, cq, true);
        return false;
    }
    cq->ring[cq->tail++ & cq->mask] = *wc;
    t->waiting++;
    t->pushed++;
    cq_fire(t, cq, wc->status != MRC_WC_SUCCESS || (wc->flags & MRC_WC_SOLICITED) != 0);
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
