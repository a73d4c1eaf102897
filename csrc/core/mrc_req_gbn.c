/* SPDX-License-Identifier: BSD-2-Clause */
/* Requester in mode rc, the baseline that MRC is compared with (ADR 95): go-back-N. The responder
 * takes nothing but the next PSN, and names that one, once, when another comes. So what is in
 * flight from there on was in vain, and leaves again in order; a lost NACK, or a copy that is lost
 * too, waits for the local ACK timer. Nothing is inferred and no tail is probed. */
#include "mrc_req.h"

/* One loss, whatever it cost: the rest was not lost on the way but refused behind it. */
void mrc_req_go_back(struct mrc_req *r, const struct mrc_req_ctx *c, struct mrc_psn from)
{
    mrc_req_unpark(r, c);
    while (r->tx.tail != MRC_SLOT_NIL) { /* in flight they stand in the order of PSNs */
        struct mrc_slot *s = &r->tx.slot[r->tx.tail];
        const int32_t behind = mrc_psn_diff(mrc_psn(s->psn), from);
        if (behind < 0)
            return;
        mrc_txtrack_lose(&r->tx, s);
        r->inflight -= s->nominal;
        if (behind == 0)
            mrc_cc_on_go_back(c->cc, s->nominal, r->srtt_ns, c->now);
        else
            mrc_cc_release(c->cc, s->nominal);
    }
}

enum mrc_wc_status mrc_req_gbn_nack(struct mrc_req *r, const struct mrc_req_ctx *c,
                                    const struct mrc_pkt *p, const struct mrc_slot *s)
{
    const struct mrc_psn psn = mrc_psn(s->psn);
    const bool gap = p->nack_reason == MRC_NACK_PSN_OOR_WINDOW ||
                     p->nack_reason == MRC_NACK_TRIMMED ||
                     p->nack_reason == MRC_NACK_TRIMMED_LASTHOP;
    if (!gap) /* it is short of something: not again at once */
        mrc_req_room_short(r, c, psn);
    else if (s->state == MRC_SLOT_LOST)
        return MRC_WC_SUCCESS;
    mrc_req_go_back(r, c, psn);
    return mrc_req_nack_retry(r, c->now, mrc_cc_base_rtt(c->cc));
}
