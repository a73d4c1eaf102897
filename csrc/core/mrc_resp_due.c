/* SPDX-License-Identifier: BSD-2-Clause */
/* Responder, what is due (B.4, B.7): SACKs and NACKs that the next turn of sending takes away. Two
 * short rings are the QP's own. A burst that wants more borrows two longer ones, until all of it
 * has left; where nothing is lent, it does with the short ones (ADR 129). */
#include "mrc_resp.h"

struct due_block {
    struct mrc_sack_due sack[MRC_DUE_RING];
    struct mrc_nack_due nack[MRC_NACK_RING];
};
_Static_assert(sizeof(struct due_block) <= MRC_POOL_UNIT, "one unit");
_Static_assert((int)MRC_DUE_RING == (int)MRC_NACK_RING, "one mask");

/* ---- what the receive side borrows ---- */

void *mrc_resp_borrow(struct mrc_resp *r, struct mrc_env *env, uint32_t returns, uint8_t order)
{
    if (!mrc_pool_fair(&env->rx_pool, r->lent - returns, returns, order))
        return NULL;
    void *const block = mrc_pool_take(&env->rx_pool, order);
    r->lent += block != NULL ? (uint32_t)1 << order : 0;
    return block;
}

void mrc_resp_return(struct mrc_resp *r, struct mrc_env *env, void *block, uint8_t order)
{
    r->lent -= (uint32_t)1 << order;
    mrc_pool_give(&env->rx_pool, block, order);
}

/* ---- rings ---- */

static void due_move(struct mrc_resp *r, struct mrc_sack_due *sack, struct mrc_nack_due *nack,
                     uint32_t mask)
{
    for (uint32_t i = r->due_head; i != r->due_tail; i++)
        sack[i & mask] = r->due[i & r->due_mask];
    for (uint32_t i = r->nack_head; i != r->nack_tail; i++)
        nack[i & mask] = r->nack[i & r->due_mask];
    r->due = sack;
    r->nack = nack;
    r->due_mask = mask;
}

/* False: there is no more room than before. */
static bool due_widen(struct mrc_resp *r, struct mrc_env *env)
{
    if (r->due != r->due_own)
        return false;
    struct due_block *const b = mrc_resp_borrow(r, env, 0, 0);
    if (b == NULL)
        return false;
    due_move(r, b->sack, b->nack, MRC_DUE_RING - 1);
    return true;
}

void mrc_resp_due_narrow(struct mrc_resp *r, struct mrc_env *env)
{
    void *const block = r->due; /* begins with the SACKs */
    if (r->due == r->due_own)
        return;
    r->due_tail = r->due_head + mrc_min32(r->due_tail - r->due_head, MRC_DUE_OWN);
    r->nack_tail = r->nack_head + mrc_min32(r->nack_tail - r->nack_head, MRC_DUE_OWN);
    due_move(r, r->due_own, r->nack_own, MRC_DUE_OWN - 1);
    mrc_resp_return(r, env, block, 0);
}

void mrc_resp_due_sack(struct mrc_resp *r, struct mrc_env *env, const struct mrc_sack_due *d)
{
    if (r->due_tail - r->due_head > r->due_mask && !due_widen(r, env))
        r->due_tail--; /* full: the snapshot is what matters most */
    r->due[r->due_tail++ & r->due_mask] = *d;
}

bool mrc_resp_due_probe(struct mrc_resp *r, struct mrc_env *env)
{
    const uint32_t count = r->due_tail - r->due_head;
    return count < (r->due_mask + 1) / 2 || (due_widen(r, env) && count < (r->due_mask + 1) / 2);
}

void mrc_resp_due_nack(struct mrc_resp *r, struct mrc_env *env, const struct mrc_nack_due *d)
{
    if (r->nack_tail - r->nack_head > r->due_mask && !due_widen(r, env))
        return; /* the requestor's timer finds it */
    r->nack[r->nack_tail++ & r->due_mask] = *d;
}
