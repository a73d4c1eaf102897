/* SPDX-License-Identifier: BSD-2-Clause */
#include "mrc_qp.h"

/* ---- creation ---- */

size_t mrc_qp_bytes(const struct mrc_qp_init *i)
{
    if (i->sq_depth < 1 || i->sq_depth > MRC_SQ_DEPTH_MAX || i->rq_depth < 1 ||
        i->rq_depth > MRC_RQ_DEPTH_MAX || i->mpr_max < 1 || i->mpr_max > MRC_MPR_MAX ||
        i->max_wimm_dest > MRC_WIMM_DEST_MAX || i->ev_max < 1 || i->ev_max > MRC_EV_MAX)
        return 0;
    const uint32_t window = (uint32_t)i->mpr_max * MRC_MPR_UNIT;
    return mrc_align(sizeof(struct mrc_qp)) +
           mrc_align(mrc_req_bytes(window, i->sq_depth, i->ev_max)) +
           mrc_align(mrc_resp_bytes(window, i->rq_depth));
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
    q->attr.hint = MRC_HINT_NONE;
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
                                  .no_trim = (q->attr.cap & MRC_QP_CAP_NO_TRIM_NACK) != 0 ||
                                             q->attr.mode == MRC_MODE_RC,
                                  .service_time = (q->attr.cap & MRC_QP_CAP_NO_SERVICE_TIME) == 0,
                                  .in_order = q->attr.mode == MRC_MODE_RC};
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

/* ---- the end ---- */

static void qp_event(struct mrc_qp *q, enum mrc_async_type type, uint8_t status, mrc_ns now)
{
    const struct mrc_async_event ev = {
        .time = now, .id = q->peer.qpn, .type = (uint8_t)type, .status = status};
    mrc_async_push(&q->env->async, ev);
}

void mrc_qp_flush(struct mrc_qp *q, enum mrc_wc_status cause, mrc_ns now)
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

void mrc_qp_fail(struct mrc_qp *q, enum mrc_wc_status cause, mrc_ns now)
{
    if (q->attr.state == MRC_QPS_ERR)
        return;
    mrc_qp_flush(q, cause, now);
    if (cause != MRC_WC_WR_FLUSH_ERR) /* that is the application's own doing */
        qp_event(q, MRC_ASYNC_QP_FATAL, (uint8_t)cause, now);
    qp_event(q, MRC_ASYNC_QP_LAST_WQE, (uint8_t)cause, now);
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
    } else {
        const bool first = q->attr.state == MRC_QPS_RTR && q->stats.packets_received == 0;
        if (mrc_resp_data(&q->resp, &c, p, ev, ce) == MRC_RESP_FATAL)
            mrc_qp_fail(q, MRC_WC_LOC_QP_OP_ERR, now); /* H32: both sides */
        else if (first && q->stats.packets_received > 0)
            qp_event(q, MRC_ASYNC_COMM_EST, MRC_WC_SUCCESS, now);
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

MRC_FLAT bool mrc_qp_rx_middle(struct mrc_qp *q, const struct mrc_pkt *p, uint32_t ev, mrc_ns now)
{
    if (q->attr.state != MRC_QPS_RTS &&
        (q->attr.state != MRC_QPS_RTR || q->stats.packets_received == 0))
        return false;
    const struct mrc_resp_ctx c = qp_resp_ctx(q, now);
    return mrc_resp_middle(&q->resp, &c, p, ev);
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

size_t mrc_qp_tx_control(struct mrc_qp *q, struct mrc_tx_pkt *out, size_t max, mrc_ns now)
{
    const struct mrc_resp_ctx c = qp_resp_ctx(q, now);
    size_t n = 0;
    while (n < max && mrc_qp_control_due(q) && mrc_resp_tx(&q->resp, &c, &out[n]))
        n++;
    return n;
}

/* The incast degree of the hint: so many QPs will hit one receiver at once, and none knows of the
 * others before the first answer. Until then each takes its part of the window only. */
static bool qp_first_flight_full(const struct mrc_qp *q)
{
    const struct mrc_qp_stats *s = &q->stats;
    if (q->hint == NULL || (q->hint->mask & MRC_HINT_INCAST) == 0 || q->hint->incast < 2 ||
        s->sacks_received + s->nacks_received + s->acks_received > 0 || q->req.probe_due)
        return false;
    const uint64_t part = mrc_cc_cwnd(q->cc) / q->hint->incast;
    return q->req.inflight >= (int64_t)mrc_max64(part, q->attr.path_mtu);
}

enum mrc_req_block mrc_qp_tx_data(struct mrc_qp *q, struct mrc_tx_pkt *out, size_t max, mrc_ns now,
                                  size_t *sent)
{
    enum mrc_req_block why = MRC_REQ_SENT;
    const struct mrc_req_ctx c = qp_req_ctx(q, now);
    *sent = 0;
    if (q->attr.state != MRC_QPS_RTS)
        return MRC_REQ_IDLE;
    mrc_req_widen(&q->req, &c, max);
    while (*sent < max && why == MRC_REQ_SENT) {
        if (qp_first_flight_full(q))
            return MRC_REQ_IDLE;
        const struct mrc_psn before = q->req.tx.max_sent;
        why = mrc_req_tx(&q->req, &c, &out[*sent]);
        /* S3 looks again at every probe interval; a millisecond costs nothing. */
        q->retry_path_at = why == MRC_REQ_NO_PATH ? now + MRC_MSEC : MRC_NEVER;
        *sent += why == MRC_REQ_SENT;
        if (!mrc_psn_eq(q->req.tx.max_sent, before) && q->req.next_pkt > 0 && q->hint == NULL)
            *sent += mrc_req_tx_more(&q->req, &c, &out[*sent], max - *sent);
    }
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
