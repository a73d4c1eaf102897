/* SPDX-License-Identifier: BSD-2-Clause */
/* The state table and the attributes of a queue pair (MRC C.3). */
#include "mrc_qp.h"

/* ---- the table ---- */

enum {
    /* Local choices, and where packets go: until data flows. */
    QP_LOCAL = MRC_QP_ACCESS | MRC_QP_PATH | MRC_QP_CC | MRC_QP_CAP | MRC_QP_HINT | MRC_QP_VENDOR |
               MRC_QP_VERSION | MRC_QP_MODE,
    QP_RECV = MRC_QP_AV | MRC_QP_RQ_PSN | MRC_QP_PATH | MRC_QP_MPR_DEST | MRC_QP_WIMM_DEST,
    QP_SEND = MRC_QP_SQ_PSN | MRC_QP_CC | MRC_QP_MPR | MRC_QP_WIMM | MRC_QP_TIMEOUT | MRC_QP_RETRY,
    /* May change under traffic. */
    QP_RECV_LIVE = MRC_QP_ACCESS | MRC_QP_MPR_DEST | MRC_QP_SACK | MRC_QP_VENDOR |
                   MRC_QP_RX_PAUSED | MRC_QP_RX_PENALTY,
    QP_SEND_LIVE =
        MRC_QP_MPR | MRC_QP_WIMM | MRC_QP_TIMEOUT | MRC_QP_RETRY | MRC_QP_TRAIN | MRC_QP_RECOVERY,
};

/* What a transition needs may also have been set before, where that was allowed. */
static const struct mrc_qp_rule qp_rules[] = {
    {MRC_QPS_RESET, MRC_QPS_INIT, MRC_QP_ACCESS, QP_LOCAL},
    {MRC_QPS_INIT, MRC_QPS_INIT, 0, QP_LOCAL},
    {MRC_QPS_INIT, MRC_QPS_RTR, QP_RECV, QP_LOCAL | QP_RECV_LIVE},
    {MRC_QPS_RTR, MRC_QPS_RTR, 0, QP_RECV_LIVE | MRC_QP_CC},
    {MRC_QPS_RTR, MRC_QPS_RTS, QP_SEND,
     QP_RECV_LIVE | MRC_QP_TRAIN | MRC_QP_RECOVERY | MRC_QP_TIMESTAMPS | MRC_QP_CAP},
    {MRC_QPS_RTS, MRC_QPS_RTS, 0, QP_RECV_LIVE | QP_SEND_LIVE},
};

const struct mrc_qp_rule *mrc_qp_rule(uint32_t i)
{
    return i < sizeof qp_rules / sizeof *qp_rules ? &qp_rules[i] : NULL;
}

static int qp_refuse(struct mrc_qp *q, enum mrc_qp_why why, uint32_t mask, int err)
{
    q->refused_why = (uint8_t)why;
    q->refused = mask;
    return err;
}

/* STATE: C.3 has no such transition. INVAL: an attribute is missing, or has no place in it. */
static int qp_check_rule(struct mrc_qp *q, uint8_t to, uint32_t mask)
{
    const bool transition = (mask & MRC_QP_STATE) != 0;
    const struct mrc_qp_rule *r;
    mask &= ~(uint32_t)MRC_QP_STATE;
    if (transition && (to == MRC_QPS_ERR || to == MRC_QPS_RESET)) /* from any state */
        return mask == 0 ? MRC_OK : qp_refuse(q, MRC_QP_WHY_PLACE, mask, MRC_ERR_INVAL);
    for (uint32_t i = 0; (r = mrc_qp_rule(i)) != NULL; i++) {
        if (transition == (r->from == r->to)) /* the state it is in is no place to go to */
            continue;
        if (r->from != q->attr.state || r->to != (transition ? to : q->attr.state))
            continue;
        const uint32_t alien = mask & ~(r->required | r->optional);
        const uint32_t missing = r->required & ~(mask | q->set);
        if (alien != 0)
            return qp_refuse(q, MRC_QP_WHY_PLACE, alien,
                             transition ? MRC_ERR_INVAL : MRC_ERR_STATE);
        return missing == 0 ? MRC_OK : qp_refuse(q, MRC_QP_WHY_MISSING, missing, MRC_ERR_INVAL);
    }
    if (!transition && mask == 0)
        return MRC_OK;
    return qp_refuse(q, MRC_QP_WHY_PLACE, transition ? MRC_QP_STATE : mask, MRC_ERR_STATE);
}

/* ---- values ---- */

static bool qp_mtu_ok(uint16_t mtu)
{
    return mtu >= MRC_MTU_MIN && mtu <= MRC_MTU_MAX && (mtu & (mtu - 1)) == 0;
}

static bool qp_version_ok(uint32_t v)
{
    return (v & ~(uint32_t)MRC_WIRE_VERSIONS) == 0 && (v & (v - 1)) == 0;
}

/* Is the attribute of this bit in its range? */
static bool qp_in_range(const struct mrc_qp *q, const struct mrc_qp_attr *a, uint32_t bit,
                        const struct mrc_qp_refs *refs)
{
    const uint8_t access = MRC_ACCESS_LOCAL_WRITE | MRC_ACCESS_REMOTE_WRITE;
    switch (bit) {
    case MRC_QP_STATE: return a->state <= MRC_QPS_ERR;
    case MRC_QP_ACCESS: return (a->access & ~access) == 0;
    case MRC_QP_AV:
        return qp_mtu_ok(a->path_mtu) && a->dest_qpn <= 0xFFFFFF && a->dest_qpn > MRC_QPN_EP;
    case MRC_QP_RQ_PSN: return a->rq_psn <= 0xFFFFFF;
    case MRC_QP_SQ_PSN: return a->sq_psn <= 0xFFFFFF;
    case MRC_QP_PATH: return refs->path != NULL && mrc_path_count(refs->path) <= q->init.ev_max;
    case MRC_QP_CC: return refs->cc != NULL;
    case MRC_QP_MPR: return a->mpr >= 1 && a->mpr <= q->init.mpr_max;
    case MRC_QP_MPR_DEST: return a->mpr_dest >= 1 && a->mpr_dest <= q->init.mpr_max;
    case MRC_QP_WIMM_DEST: return a->max_wimm_dest <= q->init.max_wimm_dest;
    case MRC_QP_TIMEOUT: return a->timeout <= 24;
    case MRC_QP_RETRY: return a->linear_cnt <= 7 && a->exp_cnt <= 25;
    case MRC_QP_TRAIN: return a->train_max <= MRC_TRAIN_MAX;
    case MRC_QP_CAP: return a->cap <= 7;
    case MRC_QP_RX_PAUSED: return a->rx_paused <= 1;
    case MRC_QP_RX_PENALTY: return a->rx_penalty <= 127 || a->rx_penalty == MRC_RX_PENALTY_OFF;
    case MRC_QP_TIMESTAMPS: return a->timestamps <= 1;
    case MRC_QP_RECOVERY: return a->recovery <= MRC_RECOVERY_PLAIN;
    case MRC_QP_VERSION: return qp_version_ok(a->version);
    case MRC_QP_MODE: return a->mode <= MRC_MODE_RC;
    default: return true;
    }
}

/* Ranges of what the mask names; no side effect but to say which is out of it. */
static int qp_check_ranges(struct mrc_qp *q, const struct mrc_qp_attr *a, uint32_t mask,
                           const struct mrc_qp_refs *refs)
{
    uint32_t bad = 0;
    for (uint32_t rest = mask; rest != 0; rest &= rest - 1) {
        const uint32_t bit = rest & (~rest + 1);
        bad |= qp_in_range(q, a, bit, refs) ? 0 : bit;
    }
    return bad == 0 ? MRC_OK : qp_refuse(q, MRC_QP_WHY_RANGE, bad, MRC_ERR_INVAL);
}

/* ADR 95: order is kept on one path only. */
static int qp_check_mode(struct mrc_qp *q, const struct mrc_qp_attr *a, uint32_t mask,
                         const struct mrc_qp_refs *refs)
{
    const uint8_t mode = (mask & MRC_QP_MODE) != 0 ? a->mode : q->attr.mode;
    const struct mrc_path_table *path = (mask & MRC_QP_PATH) != 0 ? refs->path : q->path;
    if (mode != MRC_MODE_RC || path == NULL || mrc_path_count(path) == 1)
        return MRC_OK;
    return qp_refuse(q, MRC_QP_WHY_ONE_PATH, MRC_QP_PATH, MRC_ERR_INVAL);
}

/* B.12: a peer that is not told of another window goes on using the one agreed on. */
static int qp_check_window(struct mrc_qp *q, uint32_t mask)
{
    const bool live = q->attr.state == MRC_QPS_RTR || q->attr.state == MRC_QPS_RTS;
    const bool fixed = (q->attr.cap & MRC_QP_CAP_DYNAMIC_MPR) == 0;
    if (!live || !fixed || (mask & MRC_QP_MPR_DEST) == 0)
        return MRC_OK;
    return qp_refuse(q, MRC_QP_WHY_FIXED, MRC_QP_MPR_DEST, MRC_ERR_STATE);
}

/* An immediate that was posted could never leave (B.8). */
static int qp_check_wimm(struct mrc_qp *q, const struct mrc_qp_attr *a, uint32_t mask)
{
    const struct mrc_req *r = &q->req;
    if ((mask & MRC_QP_WIMM) == 0 || a->max_wimm > 0)
        return MRC_OK;
    for (uint32_t i = r->next; i != r->tail; i++)
        if (r->sq[i & r->sq_mask].opcode == MRC_WR_RDMA_WRITE_WITH_IMM)
            return qp_refuse(q, MRC_QP_WHY_QUEUED, MRC_QP_WIMM, MRC_ERR_STATE);
    return MRC_OK;
}

/* A queue that lost completions takes no more: work would end nowhere (C.1). */
static int qp_check_cqs(struct mrc_qp *q, const struct mrc_qp_attr *a, uint32_t mask)
{
    const struct mrc_cq *cq = q->env->cqs.cq;
    const bool begins = (mask & MRC_QP_STATE) != 0 && a->state == MRC_QPS_INIT;
    if (!begins || (!cq[q->init.send_cq].overrun && !cq[q->init.recv_cq].overrun))
        return MRC_OK;
    return qp_refuse(q, MRC_QP_WHY_OVERRUN, MRC_QP_STATE, MRC_ERR_STATE);
}

void mrc_qp_copy_attr(struct mrc_qp_attr *to, const struct mrc_qp_attr *a, uint32_t mask)
{
    if ((mask & MRC_QP_ACCESS) != 0)
        to->access = a->access;
    if ((mask & MRC_QP_AV) != 0) {
        memcpy(to->src, a->src, 16);
        memcpy(to->dst, a->dst, 16);
        to->dport = a->dport;
        to->dest_qpn = a->dest_qpn;
        to->path_mtu = a->path_mtu;
    }
    if ((mask & MRC_QP_RQ_PSN) != 0)
        to->rq_psn = a->rq_psn;
    if ((mask & MRC_QP_SQ_PSN) != 0)
        to->sq_psn = a->sq_psn;
    if ((mask & MRC_QP_PATH) != 0)
        to->path = a->path;
    if ((mask & MRC_QP_CC) != 0)
        to->cc = a->cc;
    if ((mask & MRC_QP_MPR) != 0)
        to->mpr = a->mpr;
    if ((mask & MRC_QP_MPR_DEST) != 0)
        to->mpr_dest = a->mpr_dest;
    if ((mask & MRC_QP_WIMM) != 0)
        to->max_wimm = a->max_wimm;
    if ((mask & MRC_QP_WIMM_DEST) != 0)
        to->max_wimm_dest = a->max_wimm_dest;
    if ((mask & MRC_QP_TIMEOUT) != 0)
        to->timeout = a->timeout;
    if ((mask & MRC_QP_RETRY) != 0) {
        to->linear_cnt = a->linear_cnt;
        to->exp_cnt = a->exp_cnt;
    }
    if ((mask & MRC_QP_SACK) != 0)
        to->sack_threshold = a->sack_threshold;
    if ((mask & MRC_QP_TRAIN) != 0)
        to->train_max = a->train_max;
    if ((mask & MRC_QP_CAP) != 0)
        to->cap = a->cap;
    if ((mask & MRC_QP_RX_PAUSED) != 0)
        to->rx_paused = a->rx_paused;
    if ((mask & MRC_QP_RX_PENALTY) != 0)
        to->rx_penalty = a->rx_penalty;
    if ((mask & MRC_QP_TIMESTAMPS) != 0)
        to->timestamps = a->timestamps;
    if ((mask & MRC_QP_RECOVERY) != 0)
        to->recovery = a->recovery;
    if ((mask & MRC_QP_HINT) != 0)
        to->hint = a->hint;
    if ((mask & MRC_QP_VENDOR) != 0)
        memcpy(to->vendor, a->vendor, sizeof to->vendor);
    if ((mask & MRC_QP_VERSION) != 0)
        to->version = a->version;
    if ((mask & MRC_QP_MODE) != 0)
        to->mode = a->mode;
}

/* B.12. While running with dynamic MPR this is our own limit only: how far inside it we may go is
 * what the peer said last. */
static void qp_limit_window(struct mrc_qp *q)
{
    const uint32_t peers = q->req.window;
    const bool running = q->attr.state == MRC_QPS_RTS;
    mrc_req_set_window(&q->req, q->attr.mpr);
    if (running && (q->attr.cap & MRC_QP_CAP_DYNAMIC_MPR) != 0)
        q->req.window = mrc_min32(q->req.window, peers);
}

/* Hand the attributes on to the roles that live by them. */
static void qp_refresh(struct mrc_qp *q, uint32_t mask)
{
    const struct mrc_qp_attr *a = &q->attr;
    struct mrc_req *r = &q->req;
    memcpy(q->peer.src, a->src, 16);
    memcpy(q->peer.dst, a->dst, 16);
    q->peer.dport = a->dport;
    q->peer.dest_qpn = a->dest_qpn;
    q->peer.path_mtu = a->path_mtu;
    r->max_wimm = a->max_wimm;
    r->timeout = a->timeout;
    r->linear_cnt = a->linear_cnt;
    r->exp_cnt = a->exp_cnt;
    r->train_max = a->train_max;
    r->timestamps = a->timestamps != 0;
    r->recovery = a->recovery;
    if ((mask & MRC_QP_MPR) != 0)
        qp_limit_window(q);
    if ((mask & MRC_QP_MPR_DEST) != 0)
        mrc_rxtrack_resize(&q->resp.rx, (uint32_t)a->mpr_dest * MRC_MPR_UNIT);
    if ((mask & MRC_QP_SACK) != 0)
        mrc_resp_set_threshold(&q->resp, a->sack_threshold);
}

/* ---- transitions ---- */

static void qp_reset(struct mrc_qp *q, mrc_ns now)
{
    const struct mrc_qp_attr blank = {.state = MRC_QPS_RESET, .hint = MRC_HINT_NONE};
    if (q->attr.state != MRC_QPS_RESET)
        mrc_qp_flush(q, MRC_WC_WR_FLUSH_ERR, now);
    q->attr = blank;
    q->set = 0;
    q->path = NULL;
    q->cc = NULL;
    q->hint = NULL;
    mrc_resp_start(&q->resp, mrc_psn(0), MRC_MPR_UNIT, 0, 0); /* owes no answer any more */
    memset(&q->stats, 0, sizeof q->stats);
}

static void qp_enter(struct mrc_qp *q, uint8_t to, mrc_ns now)
{
    if (to == MRC_QPS_ERR) {
        mrc_qp_fail(q, MRC_WC_WR_FLUSH_ERR, now);
        return;
    }
    if (to == MRC_QPS_RESET) {
        qp_reset(q, now);
        return;
    }
    q->attr.state = to;
    if (to == MRC_QPS_RTR)
        mrc_resp_start(&q->resp, mrc_psn(q->attr.rq_psn), (uint32_t)q->attr.mpr_dest * MRC_MPR_UNIT,
                       q->attr.sack_threshold, q->attr.max_wimm_dest);
    if (to == MRC_QPS_RTS)
        mrc_req_start(&q->req, mrc_psn(q->attr.sq_psn), now);
}

int mrc_qp_apply(struct mrc_qp *q, const struct mrc_qp_attr *a, uint32_t mask,
                 const struct mrc_qp_refs *refs, mrc_ns now)
{
    q->refused_why = MRC_QP_WHY_NONE;
    q->refused = 0;
    int err = qp_check_ranges(q, a, mask, refs);
    if (err == MRC_OK)
        err = qp_check_rule(q, a->state, mask);
    if (err == MRC_OK)
        err = qp_check_mode(q, a, mask, refs);
    if (err == MRC_OK)
        err = qp_check_window(q, mask);
    if (err == MRC_OK)
        err = qp_check_wimm(q, a, mask);
    if (err == MRC_OK)
        err = qp_check_cqs(q, a, mask);
    if (err != MRC_OK)
        return err;
    mrc_qp_copy_attr(&q->attr, a, mask);
    q->set |= mask;
    if ((mask & MRC_QP_PATH) != 0)
        q->path = refs->path;
    if ((mask & MRC_QP_CC) != 0)
        q->cc = refs->cc;
    if ((mask & MRC_QP_HINT) != 0)
        q->hint = refs->hint;
    qp_refresh(q, mask);
    if ((mask & MRC_QP_STATE) != 0)
        qp_enter(q, a->state, now);
    return MRC_OK;
}
