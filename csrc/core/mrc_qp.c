/* SPDX-License-Identifier: BSD-2-Clause */
#include "mrc_qp.h"

/* ---- creation ---- */

enum {
    MRC_SQ_DEPTH_MAX = 1 << 20,
    MRC_RQ_DEPTH_MAX = 1 << 20,
    MRC_WIMM_MAX = 1 << 14,
};

size_t mrc_qp_bytes(const struct mrc_qp_init *i)
{
    if (i->sq_depth < 1 || i->sq_depth > MRC_SQ_DEPTH_MAX || i->rq_depth < 1 ||
        i->rq_depth > MRC_RQ_DEPTH_MAX || i->mpr_max < 1 || i->mpr_max > MRC_MPR_MAX ||
        i->max_wimm_dest > MRC_WIMM_MAX || i->ev_max < 1 || i->ev_max > MRC_EV_MAX)
        return 0;
    const uint32_t window = (uint32_t)i->mpr_max * MRC_MPR_UNIT;
    return mrc_align(sizeof(struct mrc_qp)) +
           mrc_align(mrc_req_bytes(window, i->sq_depth, i->ev_max)) +
           mrc_align(mrc_resp_bytes(window, i->rq_depth, i->max_wimm_dest));
}

struct mrc_qp *mrc_qp_init_at(void *mem, struct mrc_env *env, const struct mrc_qp_init *init,
                              uint32_t qpn, uint64_t seed)
{
    struct mrc_qp *q = mem;
    uint8_t *m = mem;
    const uint32_t window = (uint32_t)init->mpr_max * MRC_MPR_UNIT;
    memset(q, 0, sizeof *q);
    q->env = env;
    q->init = *init;
    q->peer.qpn = qpn;
    q->attr.state = MRC_QPS_RESET;
    m += mrc_align(sizeof *q);
    mrc_req_init(&q->req, m, window, init->sq_depth, init->ev_max, mrc_mix64(seed));
    m += mrc_align(mrc_req_bytes(window, init->sq_depth, init->ev_max));
    mrc_resp_init(&q->resp, m, window, init->rq_depth, init->max_wimm_dest, mrc_mix64(~seed));
    mrc_list_init(&q->control);
    mrc_list_init(&q->data);
    mrc_list_init(&q->path_link);
    mrc_list_init(&q->cc_link);
    mrc_list_init(&q->urgent);
    q->retry_path_at = MRC_NEVER;
    return q;
}

/* ---- contexts of the roles ---- */

static struct mrc_req_ctx qp_req_ctx(struct mrc_qp *q, mrc_ns now)
{
    const struct mrc_req_ctx c = {.env = q->env,
                                  .peer = &q->peer,
                                  .stats = &q->stats,
                                  .path = q->path,
                                  .cc = q->cc,
                                  .now = now,
                                  .pd = q->init.pd,
                                  .send_cq = q->init.send_cq,
                                  .dynamic_mpr = (q->attr.cap & MRC_QP_CAP_DYNAMIC_MPR) != 0,
                                  .no_trim = (q->attr.cap & MRC_QP_CAP_NO_TRIM_NACK) != 0};
    return c;
}

static struct mrc_resp_ctx qp_resp_ctx(struct mrc_qp *q, mrc_ns now)
{
    const struct mrc_resp_ctx c = {.env = q->env,
                                   .peer = &q->peer,
                                   .stats = &q->stats,
                                   .path = q->path,
                                   .now = now,
                                   .pd = q->init.pd,
                                   .recv_cq = q->init.recv_cq,
                                   .attr = &q->attr};
    return c;
}

/* ---- states and attributes ---- */

struct qp_transition {
    uint8_t from;
    uint8_t to;
    uint32_t required;
};

/* C.3. Any state may go to RESET or ERR without attributes. What is required may also have been set
 * before: a profile, say, at INIT already. */
static const struct qp_transition qp_transitions[] = {
    {MRC_QPS_RESET, MRC_QPS_INIT, MRC_QP_ACCESS},
    {MRC_QPS_INIT, MRC_QPS_RTR,
     MRC_QP_AV | MRC_QP_RQ_PSN | MRC_QP_PATH | MRC_QP_MPR_DEST | MRC_QP_WIMM_DEST},
    {MRC_QPS_RTR, MRC_QPS_RTS,
     MRC_QP_SQ_PSN | MRC_QP_CC | MRC_QP_MPR | MRC_QP_WIMM | MRC_QP_TIMEOUT | MRC_QP_RETRY},
};

static int qp_check_transition(const struct mrc_qp *q, uint8_t to, uint32_t mask)
{
    if (to == MRC_QPS_ERR || to == MRC_QPS_RESET)
        return MRC_OK;
    for (size_t i = 0; i < sizeof qp_transitions / sizeof *qp_transitions; i++) {
        const struct qp_transition *t = &qp_transitions[i];
        if (t->from == q->attr.state && t->to == to)
            return ((mask | q->set) & t->required) == t->required ? MRC_OK : MRC_ERR_INVAL;
    }
    return MRC_ERR_STATE;
}

static bool qp_mtu_ok(uint16_t mtu)
{
    return mtu >= MRC_MTU_MIN && mtu <= MRC_MTU_MAX && (mtu & (mtu - 1)) == 0;
}

/* Ranges of what the mask names; no side effect. */
static int qp_check_ranges(const struct mrc_qp *q, const struct mrc_qp_attr *a, uint32_t mask,
                           const struct mrc_path_table *path)
{
    const uint8_t access = MRC_ACCESS_LOCAL_WRITE | MRC_ACCESS_REMOTE_WRITE;
    const bool bad =
        ((mask & MRC_QP_STATE) != 0 && a->state > MRC_QPS_ERR) ||
        ((mask & MRC_QP_ACCESS) != 0 && (a->access & ~access) != 0) ||
        ((mask & MRC_QP_AV) != 0 &&
         (!qp_mtu_ok(a->path_mtu) || a->dest_qpn > 0xFFFFFF || a->dest_qpn <= MRC_QPN_EP)) ||
        ((mask & MRC_QP_RQ_PSN) != 0 && a->rq_psn > 0xFFFFFF) ||
        ((mask & MRC_QP_SQ_PSN) != 0 && a->sq_psn > 0xFFFFFF) ||
        ((mask & MRC_QP_PATH) != 0 && (path == NULL || mrc_path_count(path) > q->init.ev_max)) ||
        ((mask & MRC_QP_MPR) != 0 && (a->mpr < 1 || a->mpr > q->init.mpr_max)) ||
        ((mask & MRC_QP_MPR_DEST) != 0 && (a->mpr_dest < 1 || a->mpr_dest > q->init.mpr_max)) ||
        ((mask & MRC_QP_WIMM_DEST) != 0 && a->max_wimm_dest > q->init.max_wimm_dest) ||
        ((mask & MRC_QP_TIMEOUT) != 0 && a->timeout > 24) ||
        ((mask & MRC_QP_RETRY) != 0 && (a->linear_cnt > 7 || a->exp_cnt > 25)) ||
        ((mask & MRC_QP_TRAIN) != 0 && a->train_max > MRC_TRAIN_MAX) ||
        ((mask & MRC_QP_CAP) != 0 && a->cap > 7) ||
        ((mask & MRC_QP_RX_PAUSED) != 0 && a->rx_paused > 1) ||
        ((mask & MRC_QP_RX_PENALTY) != 0 && a->rx_penalty > 127 &&
         a->rx_penalty != MRC_RX_PENALTY_OFF) ||
        ((mask & MRC_QP_TIMESTAMPS) != 0 && a->timestamps > 1) ||
        ((mask & MRC_QP_RECOVERY) != 0 && a->recovery > MRC_RECOVERY_PLAIN);
    return bad ? MRC_ERR_INVAL : MRC_OK;
}

/* Things that would pull the ground from under packets in flight may change only before RTS. */
static int qp_check_frozen(const struct mrc_qp *q, uint32_t mask)
{
    const uint32_t before_rtr = MRC_QP_AV | MRC_QP_RQ_PSN | MRC_QP_PATH | MRC_QP_WIMM_DEST;
    const uint32_t before_rts = MRC_QP_SQ_PSN | MRC_QP_CC | MRC_QP_TIMESTAMPS;
    /* B.12: a peer that is not told of a smaller window goes on using the one agreed on. */
    const bool fixed = (q->attr.cap & MRC_QP_CAP_DYNAMIC_MPR) == 0;
    if ((mask & MRC_QP_MPR_DEST) != 0 && fixed && q->attr.state >= MRC_QPS_RTR)
        return MRC_ERR_STATE;
    if ((mask & before_rtr) != 0 && q->attr.state >= MRC_QPS_RTR)
        return MRC_ERR_STATE;
    if ((mask & before_rts) != 0 && q->attr.state >= MRC_QPS_RTS)
        return MRC_ERR_STATE;
    return MRC_OK;
}

static void qp_store(struct mrc_qp *q, const struct mrc_qp_attr *a, uint32_t mask,
                     struct mrc_path_table *path, struct mrc_cc *cc)
{
    struct mrc_qp_attr *to = &q->attr;
    q->set |= mask;
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
    if ((mask & MRC_QP_PATH) != 0) {
        to->path = a->path;
        q->path = path;
    }
    if ((mask & MRC_QP_CC) != 0) {
        to->cc = a->cc;
        q->cc = cc;
    }
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
        mrc_req_set_window(r, a->mpr);
    if ((mask & MRC_QP_MPR_DEST) != 0)
        mrc_rxtrack_resize(&q->resp.rx, (uint32_t)a->mpr_dest * MRC_MPR_UNIT);
    if ((mask & MRC_QP_SACK) != 0)
        mrc_resp_set_threshold(&q->resp, a->sack_threshold);
}

static void qp_enter(struct mrc_qp *q, uint8_t to, mrc_ns now)
{
    const uint8_t from = q->attr.state;
    if (to == MRC_QPS_ERR) {
        mrc_qp_fail(q, MRC_WC_WR_FLUSH_ERR, now);
        return;
    }
    if (to == MRC_QPS_RESET) {
        const struct mrc_qp_attr blank = {.state = MRC_QPS_RESET};
        if (from != MRC_QPS_RESET && from != MRC_QPS_ERR)
            mrc_qp_fail(q, MRC_WC_WR_FLUSH_ERR, now);
        q->attr = blank;
        q->set = 0;
        q->path = NULL;
        q->cc = NULL;
        mrc_resp_start(&q->resp, mrc_psn(0), MRC_MPR_UNIT, 0, 0); /* owes no answer any more */
        memset(&q->stats, 0, sizeof q->stats);
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
                 struct mrc_path_table *path, struct mrc_cc *cc, mrc_ns now)
{
    int err = qp_check_ranges(q, a, mask, path);
    if (err == MRC_OK)
        err = qp_check_frozen(q, mask);
    if (err == MRC_OK && (mask & MRC_QP_STATE) != 0)
        err = qp_check_transition(q, a->state, mask);
    if (err == MRC_OK && (mask & MRC_QP_CC) != 0 && cc == NULL)
        err = MRC_ERR_INVAL;
    if (err != MRC_OK)
        return err;
    qp_store(q, a, mask, path, cc);
    qp_refresh(q, mask);
    if ((mask & MRC_QP_STATE) != 0)
        qp_enter(q, a->state, now);
    return MRC_OK;
}

void mrc_qp_fail(struct mrc_qp *q, enum mrc_wc_status cause, mrc_ns now)
{
    const struct mrc_req_ctx c = qp_req_ctx(q, now);
    struct mrc_wc wc = {
        .qpn = q->peer.qpn, .status = MRC_WC_WR_FLUSH_ERR, .opcode = MRC_WC_RECV_RDMA_WITH_IMM};
    if (q->attr.state == MRC_QPS_ERR)
        return;
    q->attr.state = MRC_QPS_ERR;
    q->stats.error = (uint8_t)cause;
    q->retry_path_at = MRC_NEVER;
    mrc_req_flush(&q->req, &c, cause);
    mrc_resp_release(&q->resp, q->env);
    while (mrc_resp_take_recv(&q->resp, &wc.wr_id))
        mrc_cq_push(&q->env->cqs, q->init.recv_cq, &wc);
}

/* ---- packets ---- */

static void qp_verdict(struct mrc_qp *q, enum mrc_wc_status status, mrc_ns now)
{
    if (status != MRC_WC_SUCCESS)
        mrc_qp_fail(q, status, now);
}

static void qp_rx_data(struct mrc_qp *q, const struct mrc_pkt *p, uint32_t ev, bool ce, mrc_ns now)
{
    const struct mrc_resp_ctx c = qp_resp_ctx(q, now);
    if (q->attr.state == MRC_QPS_ERR && q->path != NULL) {
        q->env->drops[MRC_DROP_QP_STATE]++;
        mrc_resp_refuse(&q->resp, &c, p, ev);
    } else if (q->attr.state != MRC_QPS_RTR && q->attr.state != MRC_QPS_RTS) {
        q->env->drops[MRC_DROP_QP_STATE]++;
    } else if (p->opcode == MRC_OP_PROBE) {
        mrc_resp_probe(&q->resp, &c, p, ev, ce);
    } else if (mrc_resp_data(&q->resp, &c, p, ev, ce) == MRC_RESP_FATAL) {
        mrc_qp_fail(q, MRC_WC_LOC_QP_OP_ERR, now); /* H32: both sides */
    }
}

void mrc_qp_rx(struct mrc_qp *q, const struct mrc_pkt *p, uint32_t ev, bool ce, mrc_ns now)
{
    if ((mrc_opcode_flags(p->opcode) & MRC_OPF_DATA) != 0 || p->opcode == MRC_OP_PROBE) {
        qp_rx_data(q, p, ev, ce, now);
        return;
    }
    if (q->attr.state != MRC_QPS_RTS) {
        q->env->drops[MRC_DROP_QP_STATE]++;
        return;
    }
    const struct mrc_req_ctx c = qp_req_ctx(q, now);
    if (p->opcode == MRC_OP_SACK)
        qp_verdict(q, mrc_req_sack(&q->req, &c, p), now);
    else if (p->opcode == MRC_OP_NACK)
        qp_verdict(q, mrc_req_nack(&q->req, &c, p), now);
    else if (p->opcode == MRC_OP_ACK)
        qp_verdict(q, mrc_req_ack(&q->req, &c, p), now);
    else
        q->env->drops[MRC_DROP_OPCODE]++; /* endpoint operation with a QP number */
}

void mrc_qp_rx_trimmed(struct mrc_qp *q, const struct mrc_pkt *p, uint32_t ev, bool lasthop,
                       mrc_ns now)
{
    if (q->attr.state != MRC_QPS_RTR && q->attr.state != MRC_QPS_RTS) {
        q->env->drops[MRC_DROP_QP_STATE]++;
        return;
    }
    const struct mrc_resp_ctx c = qp_resp_ctx(q, now);
    mrc_resp_trimmed(&q->resp, &c, p, ev, lasthop);
}

void mrc_qp_rx_broken(struct mrc_qp *q, const struct mrc_pkt *p, uint32_t ev, mrc_ns now)
{
    if (q->attr.state != MRC_QPS_RTR && q->attr.state != MRC_QPS_RTS)
        return;
    const struct mrc_resp_ctx c = qp_resp_ctx(q, now);
    mrc_resp_broken(&q->resp, &c, p, ev);
}

void mrc_qp_tick(struct mrc_qp *q, mrc_ns now)
{
    if (q->attr.state != MRC_QPS_RTS)
        return;
    if (q->retry_path_at <= now)
        q->retry_path_at = MRC_NEVER;
    const struct mrc_req_ctx c = qp_req_ctx(q, now);
    qp_verdict(q, mrc_req_tick(&q->req, &c), now);
}

mrc_ns mrc_qp_deadline(const struct mrc_qp *q)
{
    if (q->attr.state != MRC_QPS_RTS)
        return MRC_NEVER;
    return mrc_min64(mrc_req_deadline(&q->req), q->retry_path_at);
}

bool mrc_qp_control_due(const struct mrc_qp *q)
{
    return q->path != NULL && mrc_resp_due(&q->resp);
}

bool mrc_qp_tx_control(struct mrc_qp *q, struct mrc_tx_pkt *out, mrc_ns now)
{
    const struct mrc_resp_ctx c = qp_resp_ctx(q, now);
    return q->path != NULL && mrc_resp_tx(&q->resp, &c, out);
}

enum mrc_req_block mrc_qp_tx_data(struct mrc_qp *q, struct mrc_tx_pkt *out, mrc_ns now)
{
    if (q->attr.state != MRC_QPS_RTS)
        return MRC_REQ_IDLE;
    const struct mrc_req_ctx c = qp_req_ctx(q, now);
    const enum mrc_req_block why = mrc_req_tx(&q->req, &c, out);
    /* S3 looks again at every probe interval; a millisecond costs nothing. */
    q->retry_path_at = why == MRC_REQ_NO_PATH ? now + MRC_MSEC : MRC_NEVER;
    return why;
}

void mrc_qp_tx_probe(struct mrc_qp *q, uint16_t entry, uint16_t id, struct mrc_tx_pkt *out,
                     mrc_ns now)
{
    const struct mrc_req_ctx c = qp_req_ctx(q, now);
    mrc_req_path_probe(&q->req, &c, entry, id, out);
}

void mrc_qp_lane_failed(struct mrc_qp *q, uint16_t entry, mrc_ns now)
{
    if (q->attr.state != MRC_QPS_RTS)
        return;
    const struct mrc_req_ctx c = qp_req_ctx(q, now);
    mrc_req_ev_failed(&q->req, &c, entry);
}

/* ---- work ---- */

int mrc_qp_send(struct mrc_qp *q, const struct mrc_send_wr *wr, int n)
{
    if (q->attr.state != MRC_QPS_RTS)
        return MRC_ERR_STATE;
    const struct mrc_req_ctx c = qp_req_ctx(q, 0);
    for (int i = 0; i < n; i++) {
        const int err = mrc_req_post(&q->req, &c, &wr[i]);
        if (err != MRC_OK)
            return i > 0 ? i : err;
    }
    return n;
}

int mrc_qp_recv(struct mrc_qp *q, const uint64_t *wr_id, int n)
{
    if (q->attr.state != MRC_QPS_RTR && q->attr.state != MRC_QPS_RTS &&
        q->attr.state != MRC_QPS_INIT)
        return MRC_ERR_STATE;
    const int done = mrc_resp_post_recv(&q->resp, wr_id, n);
    return done > 0 || n == 0 ? done : MRC_ERR_FULL;
}

void mrc_qp_read_stats(const struct mrc_qp *q, struct mrc_qp_stats *out)
{
    *out = q->stats;
    out->spurious_retransmits = q->req.tx.spurious;
    out->cwnd_bytes = q->cc != NULL ? mrc_cc_cwnd(q->cc) : 0;
    out->inflight_bytes = q->req.inflight;
    out->outstanding = mrc_txtrack_outstanding(&q->req.tx);
    out->sq_used = q->req.tail - q->req.head;
    out->state = q->attr.state;
}
