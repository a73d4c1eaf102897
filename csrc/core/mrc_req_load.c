/* SPDX-License-Identifier: BSD-2-Clause */
/* Requester: how much waits (MRC E.2). Counted when asked, not kept for each packet. */
#include "mrc_req.h"

struct mrc_req_load mrc_req_load(const struct mrc_req *r, uint32_t mtu)
{
    struct mrc_req_load load = {0, 0};
    for (uint32_t i = r->next; i != r->tail; i++)
        load.backlog_bytes += r->sq[i & r->sq_mask].length;
    if (r->next != r->tail) /* the first one has partly left */
        load.backlog_bytes -=
            mrc_min64((uint64_t)r->next_pkt * mtu, r->sq[r->next & r->sq_mask].length);
    uint32_t left = r->tx.lost_count;
    for (struct mrc_psn p = mrc_psn_add(r->tx.unack, 1); left > 0; p = mrc_psn_add(p, 1)) {
        const struct mrc_slot *s = &r->tx.slot[p.v & r->tx.mask];
        if (s->state != MRC_SLOT_LOST)
            continue;
        load.rtx_bytes += s->nominal;
        left--;
    }
    return load;
}
