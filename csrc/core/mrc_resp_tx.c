/* SPDX-License-Identifier: BSD-2-Clause */
/* Responder, packets out: what is due becomes a SACK (B.4), a NACK (B.7) or a transport ACK
 * (B.6). */
#include "mrc_resp.h"

bool mrc_resp_due(const struct mrc_resp *r)
{
    return r->due_head != r->due_tail || r->ack_due || r->nak_due || r->nack_head != r->nack_tail;
}

/* ack_psn as the offset that SETH has room for. A duplicate may lie farther back than 16 bits
 * reach, and a cut-off offset would report a packet that never came: then cack itself stands for
 * it. */
static int16_t resp_ack_offset(const struct mrc_resp *r, const struct mrc_sack_due *d)
{
    const int32_t off = d->pr ? 0 : mrc_psn_diff(d->psn, r->rx.cack);
    return off >= INT16_MIN && off <= INT16_MAX ? (int16_t)off : 0;
}

/* How close the receive side is to its limits, in percent: its part of what all QPs share, the
 * completions that nobody takes and the receives that are left. */
static uint32_t resp_pressure(const struct mrc_resp *r, const struct mrc_resp_ctx *c)
{
    const struct mrc_cq *cq = &c->env->cqs.cq[c->recv_cq];
    const uint32_t posted = r->rq_tail - r->rq_head;
    uint32_t most = mrc_rxload_pressure(&c->env->rx, r->rx.ooo_count, r->stash_count);
    const uint32_t waiting = mrc_rxload_share(cq->tail - cq->head, cq->mask + 1);
    most = waiting > most ? waiting : most;
    if (r->rqmsn_known && posted < r->max_wimm_dest) { /* fewer than may be under way */
        const uint32_t missing = mrc_rxload_share(r->max_wimm_dest - posted, r->max_wimm_dest);
        most = missing > most ? missing : most;
    }
    return most;
}

/* E.6: the penalty in every SACK; the flag in all SACKs of an episode and the first ones after. */
static void resp_put_penalty(struct mrc_resp *r, const struct mrc_resp_ctx *c, struct mrc_pkt *p)
{
    uint8_t penalty = 0;
    if (c->attr->rx_penalty != MRC_RX_PENALTY_OFF) {
        penalty = c->attr->rx_penalty;
        if (c->env->rx.penalty_percent != 0) {
            const uint8_t due = mrc_rxload_penalty(&c->env->rx, resp_pressure(r, c));
            penalty = due > penalty ? due : penalty;
        }
    }
    if (penalty > 0)
        r->restore_left = MRC_RESTORE_SACKS;
    p->rcv_cwnd_pen = penalty;
    p->restore_cwnd = r->restore_left > 0;
    if (penalty == 0 && r->restore_left > 0)
        r->restore_left--;
}

/* B.12: what is offered is what the tracker keeps from now on. */
static void resp_put_mpr(struct mrc_resp *r, const struct mrc_resp_ctx *c, struct mrc_pkt *p)
{
    if ((c->attr->cap & MRC_QP_CAP_DYNAMIC_MPR) == 0)
        return;
    const uint16_t units = mrc_rxload_mpr(&c->env->rx, r->rx.ooo_count, c->attr->mpr_dest);
    mrc_rxtrack_resize(&r->rx, (uint32_t)units * MRC_MPR_UNIT);
    p->mpr = (uint8_t)units;
}

static void resp_build_sack(struct mrc_resp *r, const struct mrc_resp_ctx *c, struct mrc_pkt *p)
{
    struct mrc_sack_due *due = &r->due[r->due_head & r->due_mask];
    const struct mrc_sack_due d = *due;
    const struct mrc_sack_map map = mrc_rxtrack_sack(&r->rx);
    p->opcode = MRC_OP_SACK;
    p->psn = r->rx.cack.v;
    p->rtx = d.rtx;
    p->mark = d.mark;
    p->pr = d.pr;
    p->probe_id = d.probe_id;
    p->ack_psn_offset = resp_ack_offset(r, &d);
    p->entropy = d.ev;
    p->cack_psn = r->rx.cack.v;
    p->sack_offset = map.offset;
    p->sack_bitmap = map.bitmap;
    p->tx_timestamp =
        d.timed ? mrc_env_reflect(c->env, d.timestamp, d.arrived, c->now) : d.timestamp;
    p->ooo_count = (uint16_t)mrc_min32(r->rx.ooo_count, 0x7FFF);
    p->rcvd_bytes = mrc_rxtrack_rcvd_units(&r->rx);
    resp_put_mpr(r, c, p);
    resp_put_penalty(r, c, p);
    r->sack_trigger_bytes = 0;
    if (map.more) { /* go on where this one ended, without the news that it already carried */
        due->mark = MRC_MARK_NONE;
        if (d.pr) /* a packet that the requestor knows of, so that it takes no time from it */
            due->psn = mrc_psn_add(r->rx.cack, map.offset + __builtin_ctzll(map.bitmap));
        due->pr = false;
    } else {
        r->due_head++;
    }
    c->stats->sacks_sent++;
}

static void resp_build_nack(struct mrc_resp *r, const struct mrc_resp_ctx *c, struct mrc_pkt *p)
{
    const struct mrc_nack_due d = r->nack[r->nack_head++ & r->due_mask];
    p->opcode = MRC_OP_NACK;
    p->psn = d.psn.v;
    p->cack_psn = d.psn.v;
    p->nack_reason = d.reason;
    p->entropy = d.ev;
    p->cc_type = 2; /* H31 */
    p->tx_timestamp =
        d.timed ? mrc_env_reflect(c->env, d.timestamp, d.arrived, c->now) : d.timestamp;
    c->stats->nacks_sent++;
}

static void resp_build_ack(struct mrc_resp *r, const struct mrc_resp_ctx *c, struct mrc_pkt *p)
{
    p->opcode = MRC_OP_ACK;
    p->psn = r->nak_due ? r->nak_psn.v : r->rx.cack.v;
    p->syndrome = r->nak_due ? r->nak_syndrome : MRC_AETH_ACK;
    p->aeth_msn = r->msn_done;
    if (r->nak_due)
        r->nak_due = false;
    else
        r->ack_due = false;
    c->stats->acks_sent++;
}

bool mrc_resp_tx(struct mrc_resp *r, const struct mrc_resp_ctx *c, struct mrc_tx_pkt *out)
{
    /* A NACK first, for a SACK may make the peer think that lost which was refused; and H15: the
     * transport ACK last. */
    const bool nack = r->nack_head != r->nack_tail;
    const bool sack = !nack && r->due_head != r->due_tail;
    if (!sack && !nack && !r->ack_due && !r->nak_due)
        return false;
    const uint32_t ev = nack   ? r->nack[r->nack_head & r->due_mask].ev
                        : sack ? r->due[r->due_head & r->due_mask].ev
                               : r->ack_ev;
    const uint16_t i = mrc_path_reverse_data(c->path, &r->cursor, ev, c->now); /* D.8 */
    if (i == MRC_EV_NONE)
        return false;
    struct mrc_pkt p;
    memset(&p, 0, sizeof p);
    if (nack)
        resp_build_nack(r, c, &p);
    else if (sack)
        resp_build_sack(r, c, &p);
    else
        resp_build_ack(r, c, &p);
    if (r->due_head == r->due_tail && r->nack_head == r->nack_tail)
        mrc_resp_due_narrow(r, c->env);
    mrc_emit(c->env, c->peer, mrc_path_entry(c->path, i), c->env->tclass_control, &p, out);
    return true;
}
