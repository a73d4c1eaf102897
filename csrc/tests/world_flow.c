/* SPDX-License-Identifier: BSD-2-Clause */
/* Connections, their memory, the applications at both ends, and what they must see. */
#include "../core/mrc_engine_int.h"
#include "world_int.h"

enum { FLOW_SLACK = 64 }; /* targets begin anywhere in the first bytes of their slot */

struct world_qp_cfg world_qp_defaults(void)
{
    return (struct world_qp_cfg){
        .a = 0,
        .b = 1,
        .depth = 64,
        .mtu = 1024,
        .mpr = 8,
        .max_wimm = 32,
        .psn_ab = 0x001000,
        .psn_ba = 0x800000,
        .timeout = 10,
        .linear_cnt = 7,
        .exp_cnt = 7,
    };
}

/* ---- connecting ---- */

static uint32_t flow_qp(struct world *w, uint32_t host, const struct world_qp_cfg *q)
{
    const struct mrc_qp_init init = {
        .pd = 1,
        .send_cq = w->host[host].cq_send,
        .recv_cq = w->host[host].cq_recv,
        .sq_depth = q->depth,
        .rq_depth = q->depth,
        .mpr_max = q->mpr,
        .max_wimm_dest = q->max_wimm,
        .ev_max = w->cfg.paths,
    };
    const int qpn = mrc_qp_create(w->host[host].e, world_lend(w, mrc_qp_size(&init)), &init);
    MRC_ASSERT(qpn > MRC_QPN_EP); /* field report 6 */
    return (uint32_t)qpn;
}

/* Field reports 9, 11: what counts up begins where it soon wraps. Only a test can start there, so
 * it reaches inside; nothing has been sent yet. */
static void flow_late_numbers(struct world *w, struct world_flow *f)
{
    struct mrc_qp *const from = mrc_engine_qp(w->host[f->from].e, f->qpn_from);
    struct mrc_qp *const to = mrc_engine_qp(w->host[f->to].e, f->qpn_to);
    f->msn_base = (uint16_t)(0xFFFF - mrc_rand_below(&f->rand, 20));
    f->rqmsn = (uint16_t)(0xFFFF - mrc_rand_below(&f->rand, 5));
    from->req.msn = f->msn_base;
    from->req.rqmsn = f->rqmsn;
    from->req.head = from->req.next = from->req.tail = 0xFFFFFFFF - mrc_rand_below(&f->rand, 20);
    from->req.tx.order = 0xFFFFFF00;
    to->resp.msn_done = 0xFFFFFF - mrc_rand_below(&f->rand, 20);
    to->resp.rx.rcvd_bytes = (UINT64_C(1) << 32) - 256 * (1 + mrc_rand_below(&f->rand, 100));
    f->msn_done = to->resp.msn_done;
    f->rcvd_start = to->resp.rx.rcvd_bytes;
    f->rcvd_seen = mrc_rxtrack_rcvd_units(&to->resp.rx);
    from->req.prev_rcvd = mrc_rxtrack_rcvd_units(&to->resp.rx);
    to->resp.rq_head = to->resp.rq_tail = 0xFFFFFFFF - mrc_rand_below(&f->rand, 5);
    to->resp.due_head = to->resp.due_tail = 0xFFFFFFFF - mrc_rand_below(&f->rand, 5);
    to->resp.nack_head = to->resp.nack_tail = 0xFFFFFFFF - mrc_rand_below(&f->rand, 5);
}

static void flow_modify(struct world *w, uint32_t host, uint32_t peer, uint32_t qpn,
                        uint32_t peer_qpn, const struct world_qp_cfg *q, uint32_t sq_psn,
                        uint32_t rq_psn)
{
    struct mrc_qp_attr a = {
        .state = MRC_QPS_INIT,
        .access = MRC_ACCESS_LOCAL_WRITE | MRC_ACCESS_REMOTE_WRITE,
        .timeout = q->timeout,
        .linear_cnt = q->linear_cnt,
        .exp_cnt = q->exp_cnt,
        .train_max = q->train_max,
        .path_mtu = q->mtu,
        .mpr = q->mpr,
        .mpr_dest = q->mpr_dest != 0 ? q->mpr_dest : q->mpr,
        .max_wimm = q->max_wimm,
        .max_wimm_dest = q->max_wimm,
        .dport = MRC_UDP_PORT,
        .dest_qpn = peer_qpn,
        .sq_psn = sq_psn,
        .rq_psn = rq_psn,
        .path = w->host[host].path_id[peer],
        .cc = w->host[host].cc_id[peer],
        .sack_threshold = q->sack_threshold,
        .timestamps = q->timestamps,
        .recovery = q->recovery,
        .mode = q->mode,
        .cap = (w->cfg.service_time ? 0u : MRC_QP_CAP_NO_SERVICE_TIME) |
               (q->dynamic_mpr ? MRC_QP_CAP_DYNAMIC_MPR : 0u) |
               (w->cfg.link.trim_bytes == 0 && w->cfg.port.trim_bytes == 0 ? MRC_QP_CAP_NO_TRIM_NACK
                                                                           : 0u),
    };
    a.src[0] = 0xFD;
    a.src[15] = (uint8_t)(host + 1);
    a.dst[0] = 0xFD;
    a.dst[15] = (uint8_t)(peer + 1);
    struct mrc_engine *const e = w->host[host].e;
    int r = mrc_qp_modify(e, qpn, &a, MRC_QP_STATE | MRC_QP_ACCESS | MRC_QP_MODE, w->now);
    a.state = MRC_QPS_RTR;
    if (r == MRC_OK)
        r = mrc_qp_modify(e, qpn, &a,
                          MRC_QP_STATE | MRC_QP_AV | MRC_QP_RQ_PSN | MRC_QP_PATH | MRC_QP_MPR_DEST |
                              MRC_QP_WIMM_DEST | MRC_QP_SACK | MRC_QP_CAP,
                          w->now);
    a.state = MRC_QPS_RTS;
    if (r == MRC_OK)
        r = mrc_qp_modify(e, qpn, &a,
                          MRC_QP_STATE | MRC_QP_SQ_PSN | MRC_QP_CC | MRC_QP_MPR | MRC_QP_WIMM |
                              MRC_QP_TIMEOUT | MRC_QP_RETRY | MRC_QP_TRAIN | MRC_QP_TIMESTAMPS |
                              MRC_QP_RECOVERY,
                          w->now);
    if (r != MRC_OK)
        world_fail(w, "mrc_qp_modify to state %u: %d", a.state, r);
}

static void flow_memory(struct world *w, struct world_flow *f, uint32_t bytes_max)
{
    const uint8_t access = MRC_ACCESS_LOCAL_WRITE | MRC_ACCESS_REMOTE_WRITE;
    f->slots = f->qp.depth;
    f->slot_bytes = (size_t)bytes_max + FLOW_SLACK + WORLD_GUARD;
    f->bytes = f->slots * f->slot_bytes + 2 * (size_t)WORLD_GUARD;
    f->src = world_alloc(w, f->bytes);
    f->dst = world_alloc(w, f->bytes);
    f->image = world_alloc(w, f->bytes);
    f->va = mrc_mix64(w->cfg.seed ^ (uint64_t)(f - w->flow) << 48) >> 16;
    memset(f->dst, 0xD5, f->bytes);
    memset(f->image, 0xD5, f->bytes);
    const uint64_t inner = f->bytes - 2 * (size_t)WORLD_GUARD;
    int r = mrc_mr_register(w->host[f->from].e, 1, f->src + WORLD_GUARD, inner,
                            MRC_ACCESS_LOCAL_WRITE, (uint32_t)mrc_rand_next(&f->rand), &f->lkey);
    if (r == MRC_OK)
        r = mrc_mr_register_at(w->host[f->to].e, 1, f->dst + WORLD_GUARD, f->va + WORLD_GUARD,
                               inner, access, (uint32_t)mrc_rand_next(&f->rand), &f->rkey);
    if (r != MRC_OK)
        world_fail(w, "mrc_mr_register: %d", r);
}

static void flow_init(struct world *w, struct world_flow *f, uint32_t psn, uint32_t bytes_max)
{
    mrc_rand_seed(&f->rand, mrc_mix64(w->cfg.seed + 77 * (uint64_t)(f - w->flow)));
    f->psn_next = mrc_psn(psn);
    f->max_arrived = mrc_psn_add(f->psn_next, -1);
    f->window = f->qp.mpr * MRC_MPR_UNIT;
    f->acked = mrc_psn_add(f->psn_next, -1);
    f->acked_tp = f->acked;
    f->cack_sent = f->acked;
    flow_memory(w, f, bytes_max);
    f->wr = world_alloc(w, f->slots * sizeof(*f->wr));
    f->imm_wr = world_alloc(w, f->slots * sizeof(*f->imm_wr));
    f->wimm_last = world_alloc(w, f->slots * sizeof(*f->wimm_last));
    f->sent = world_alloc(w, WORLD_PSN_RING * sizeof(*f->sent));
    f->arrived = world_alloc(w, (1u << 24) / 8);
}

static void flow_recv(struct world *w, struct world_flow *f)
{
    const uint64_t id = f->recv_posted;
    if (mrc_qp_post_recv(w->host[f->to].e, f->qpn_to, &id, 1) == 1)
        f->recv_posted++;
    else if (world_stats_peer(w, f).state != MRC_QPS_ERR)
        world_fail(w, "receive %llu refused", (unsigned long long)id);
}

/* Two QPs in RESET begin to talk. */
static uint32_t flow_join(struct world *w, const struct world_qp_cfg *q, uint32_t qa, uint32_t qb,
                          uint32_t bytes_max)
{
    const uint32_t i = w->flows;
    struct world_flow *const ab = &w->flow[i];
    struct world_flow *const ba = &w->flow[i + 1];
    MRC_ASSERT(w->flows + 2 <= WORLD_FLOWS_MAX);
    w->flows += 2;
    *ab = (struct world_flow){
        .from = q->a, .to = q->b, .qpn_from = qa, .qpn_to = qb, .reverse = i + 1, .qp = *q};
    *ba = (struct world_flow){
        .from = q->b, .to = q->a, .qpn_from = qb, .qpn_to = qa, .reverse = i, .qp = *q};
    flow_init(w, ab, q->psn_ab, bytes_max);
    flow_init(w, ba, q->psn_ba, bytes_max);
    flow_modify(w, q->a, q->b, qa, qb, q, q->psn_ab, q->psn_ba);
    flow_modify(w, q->b, q->a, qb, qa, q, q->psn_ba, q->psn_ab);
    if (q->late_numbers) {
        flow_late_numbers(w, ab);
        flow_late_numbers(w, ba);
    }
    world_log_flow(w, ab);
    world_log_flow(w, ba);
    for (uint32_t k = 0; k < q->depth; k++) {
        flow_recv(w, ab);
        flow_recv(w, ba);
    }
    return i;
}

uint32_t world_connect(struct world *w, const struct world_qp_cfg *q, uint32_t bytes_max)
{
    return flow_join(w, q, flow_qp(w, q->a, q), flow_qp(w, q->b, q), bytes_max);
}

uint32_t world_reconnect(struct world *w, const struct world_flow *old,
                         const struct world_qp_cfg *q, uint32_t qa, uint32_t qb)
{
    const uint32_t bytes_max =
        (uint32_t)(old->slot_bytes - FLOW_SLACK - WORLD_GUARD); /* as before */
    return flow_join(w, q, qa, qb, bytes_max);
}

/* ---- posting ---- */

static void flow_fill(struct mrc_rand *r, uint8_t *p, uint32_t n)
{
    for (; n >= 8; n -= 8, p += 8) {
        const uint64_t x = mrc_rand_next(r);
        memcpy(p, &x, 8);
    }
    for (; n > 0; n--, p++)
        *p = (uint8_t)(mrc_rand_next(r) >> 56);
}

/* Sizes around what the transport cuts at, or anything. */
static uint32_t flow_size(struct world_flow *f)
{
    const uint32_t min = f->load.bytes_min;
    const uint32_t max = f->load.bytes_max;
    const uint32_t edge = f->qp.mtu * (1 + mrc_rand_below(&f->rand, 4));
    uint32_t n = min + mrc_rand_below(&f->rand, max - min + 1);
    switch (mrc_rand_below(&f->rand, 8)) {
    case 0: n = edge; break;
    case 1: n = edge - 1; break;
    case 2: n = edge + 1; break;
    case 3: n = mrc_rand_below(&f->rand, 4); break;
    default: break;
    }
    return n < min ? min : n > max ? max : n;
}

/* Takes the next slot, fills it; the caller may still bend the target. */
static struct world_wr *flow_wr(struct world_flow *f, uint32_t length, bool imm, bool signaled)
{
    const uint64_t n = f->posted;
    const size_t base = WORLD_GUARD + (n % f->slots) * f->slot_bytes;
    struct world_wr *const wr = &f->wr[n % f->slots];
    const size_t src_at = base + mrc_rand_below(&f->rand, FLOW_SLACK);
    const size_t dst_at = base + mrc_rand_below(&f->rand, FLOW_SLACK);
    MRC_ASSERT(length + FLOW_SLACK + WORLD_GUARD <= f->slot_bytes);
    flow_fill(&f->rand, f->src + src_at, length);
    *wr = (struct world_wr){
        .id = mrc_mix64(n),
        .src = f->src + src_at,
        .dst = f->dst + dst_at,
        .raddr = f->va + dst_at,
        .rkey = f->rkey,
        .length = length,
        .imm = imm ? (uint32_t)mrc_rand_next(&f->rand) : 0,
        .is_imm = imm,
        .signaled = signaled,
        .solicited = imm && mrc_rand_below(&f->rand, 2) != 0,
    };
    return wr;
}

static bool flow_post(struct world *w, struct world_flow *f, const struct world_wr *wr)
{
    const struct mrc_send_wr s = {
        .wr_id = wr->id,
        .laddr = (uint64_t)(uintptr_t)wr->src,
        .raddr = wr->raddr,
        .length = wr->length,
        .lkey = f->lkey,
        .rkey = wr->rkey,
        .imm = wr->imm,
        .opcode = wr->is_imm ? MRC_WR_RDMA_WRITE_WITH_IMM : MRC_WR_RDMA_WRITE,
        .flags = (uint8_t)((wr->signaled ? MRC_SEND_SIGNALED : 0) |
                           (wr->solicited ? MRC_SEND_SOLICITED : 0)),
    };
    if (wr->is_imm)
        f->imm_wr[f->imm_posted++ % f->slots] = f->posted;
    world_log_post(w, f, wr);
    f->posted++;
    const int r = mrc_qp_post_send(w->host[f->from].e, f->qpn_from, &s, 1);
    if (r != 1)
        world_fail(w, "post_send returns %d with %llu of %u in the queue", r,
                   (unsigned long long)(f->posted - 1 - f->completed), f->slots);
    return r == 1;
}

bool world_post(struct world *w, struct world_flow *f, uint32_t length, bool imm, bool signaled)
{
    if (f->dead || f->posted - f->completed >= f->slots)
        return false;
    return flow_post(w, f, flow_wr(f, length, imm, signaled));
}

bool world_post_to(struct world *w, struct world_flow *f, uint32_t length, uint64_t raddr,
                   uint32_t rkey)
{
    struct world_wr *const wr = flow_wr(f, length, false, true);
    wr->raddr = raddr;
    wr->rkey = rkey;
    return flow_post(w, f, wr);
}

/* Keep the agreed number of work requests posted. */
static bool flow_refill(struct world *w, struct world_flow *f)
{
    const uint64_t limit = f->load.outstanding != 0 ? f->load.outstanding : f->slots;
    bool any = false;
    while (!f->dead && !f->retired && f->posted < f->load.messages &&
           f->posted - f->completed < limit) {
        const bool imm = mrc_rand_below(&f->rand, 100) < f->load.imm_percent;
        const bool quiet = mrc_rand_below(&f->rand, 100) < f->load.unsignaled_percent;
        /* The last one of a full queue must speak, or nobody learns that there is room. */
        const bool last = f->posted + 1 == f->load.messages || f->posted % (limit / 2 + 1) == 0;
        any = world_post(w, f, flow_size(f), imm, !quiet || last);
        if (!any)
            break;
    }
    return any;
}

void world_load(struct world *w, uint32_t flow, const struct world_load *load)
{
    w->flow[flow].load = *load;
    if (flow_refill(w, &w->flow[flow]))
        world_kick(w, w->flow[flow].from);
}

bool world_flow_done(const struct world *w, const struct world_flow *f)
{
    const struct world_flow *const back = &w->flow[f->reverse];
    if (f->retired)
        return true;
    if (f->dead)
        return f->completed == f->posted;
    /* The peer's QP is gone: ours notices by its retry budget, never when that is unlimited. */
    if (back->dead && f->qp.exp_cnt == 25)
        return true;
    return f->completed >= f->load.messages && f->completed == f->posted;
}

/* ---- completing ---- */

/* All work requests before `end` must be in the responder's memory, whole. */
static void flow_placed(struct world *w, struct world_flow *f, uint64_t end)
{
    for (; f->placed < end; f->placed++) {
        const struct world_wr *const wr = &f->wr[f->placed % f->slots];
        if (memcmp(wr->dst, wr->src, wr->length) != 0)
            world_fail(w, "message %llu (%u bytes) is not in memory when it should be",
                       (unsigned long long)f->placed, wr->length);
        memcpy(f->image + (wr->dst - f->dst), wr->src, wr->length);
    }
}

static struct world_flow *flow_of(struct world *w, uint32_t host, uint32_t qpn)
{
    for (uint32_t i = 0; i < w->flows; i++)
        if (w->flow[i].from == host && w->flow[i].qpn_from == qpn && !w->flow[i].retired)
            return &w->flow[i];
    return NULL;
}

static void flow_trace(struct world *w, uint32_t host, const struct mrc_wc *wc, const char *what)
{
    world_mix(w, (uint64_t)wc->status << 32 ^ wc->qpn ^ (uint64_t)wc->opcode << 40);
    world_mix(w, wc->wr_id);
    if (w->trace != NULL)
        fprintf(w->trace, "%12.3f us host %u %s wr %016llx status %u bytes %u\n",
                (double)(w->now - w->cfg.start_ns) / 1e3, host, what, (unsigned long long)wc->wr_id,
                wc->status, wc->byte_len);
}

/* Each work request once, in order; quiet ones show only through later ones. */
static void flow_send_done(struct world *w, struct world_flow *f, const struct mrc_wc *wc)
{
    while (f->completed < f->posted && f->wr[f->completed % f->slots].id != wc->wr_id &&
           !f->wr[f->completed % f->slots].signaled)
        f->completed++;
    if (f->completed >= f->posted || f->wr[f->completed % f->slots].id != wc->wr_id) {
        world_fail(w, "completion of wr %016llx out of turn or for the second time",
                   (unsigned long long)wc->wr_id);
        return;
    }
    f->completed++;
    f->last_done_ns = w->now;
    world_log_done(w, f, "send", f->completed - 1, wc->status);
    if (wc->status == MRC_WC_WR_FLUSH_ERR)
        world_seen(w, WORLD_C_FLUSHED);
    if (wc->status == MRC_WC_SUCCESS) {
        if (f->status != 0)
            world_fail(w, "success after an error");
        flow_placed(w, f, f->completed);
        return;
    }
    if (!f->dead)
        f->status = wc->status;
    else if (f->status != 0 && wc->status != MRC_WC_WR_FLUSH_ERR)
        world_fail(w, "status %u after the first error, should be flushed", wc->status);
    if (f->status == 0)
        f->status = wc->status;
    f->dead = true;
}

/* An immediate: in order, one receive each, after all data before it. B.8 */
static void flow_recv_done(struct world *w, struct world_flow *f, const struct mrc_wc *wc)
{
    if (wc->wr_id != f->recv_taken)
        world_fail(w, "receive %llu completes, %llu is next", (unsigned long long)wc->wr_id,
                   (unsigned long long)f->recv_taken);
    f->recv_taken++;
    world_log_done(w, f, "recv", f->imm_taken, wc->status);
    if (wc->status != MRC_WC_SUCCESS) {
        f->recv_status = wc->status;
        w->flow[f->reverse].dead = true; /* it is the same QP that sends there */
        return;
    }
    if (f->imm_taken == f->imm_posted) { /* field report 54 */
        world_fail(w, "an immediate more than was sent");
        return;
    }
    const uint64_t n = f->imm_wr[f->imm_taken++ % f->slots];
    const struct world_wr *const wr = &f->wr[n % f->slots];
    if (wc->imm != wr->imm || wc->byte_len != wr->length || wc->opcode != MRC_WC_RECV_RDMA_WITH_IMM)
        world_fail(w, "immediate %08x of %u bytes delivered, %08x of %u is next", wc->imm,
                   wc->byte_len, wr->imm, wr->length);
    world_seen(w, WORLD_C_IMM);
    flow_placed(w, f, n + 1);
    if (!w->no_repost)
        flow_recv(w, f);
}

/* Unsignaled and acknowledged before the end: no completion, and no later one will speak for it. */
void world_settle(const struct world *w, struct world_flow *f)
{
    struct mrc_qp_stats s;
    if (mrc_qp_stats(w->host[f->from].e, f->qpn_from, &s) != MRC_OK)
        return;
    while (f->completed + s.sq_used < f->posted && !f->wr[f->completed % f->slots].signaled)
        f->completed++;
}

bool world_completions(struct world *w, uint32_t host)
{
    struct mrc_wc wc[WORLD_BURST];
    bool posted = false;
    int n = 0;
    /* Receives first: an immediate is delivered before its sender can know. */
    while ((n = mrc_cq_poll(w->host[host].e, w->host[host].cq_recv, wc, WORLD_BURST)) > 0)
        for (int i = 0; i < n; i++) {
            struct world_flow *const f = flow_of(w, host, wc[i].qpn);
            flow_trace(w, host, &wc[i], "recv");
            if (f == NULL)
                world_fail(w, "receive completion of unknown QP %u", wc[i].qpn);
            else
                flow_recv_done(w, &w->flow[f->reverse], &wc[i]);
        }
    while ((n = mrc_cq_poll(w->host[host].e, w->host[host].cq_send, wc, WORLD_BURST)) > 0)
        for (int i = 0; i < n; i++) {
            struct world_flow *const f = flow_of(w, host, wc[i].qpn);
            flow_trace(w, host, &wc[i], "send");
            if (f == NULL)
                world_fail(w, "send completion of unknown QP %u", wc[i].qpn);
            else
                flow_send_done(w, f, &wc[i]);
        }
    for (uint32_t i = 0; i < w->flows; i++) {
        if (w->flow[i].from != host)
            continue;
        if (w->flow[i].dead && w->flow[i].completed != w->flow[i].posted)
            world_settle(w, &w->flow[i]);
        if (flow_refill(w, &w->flow[i]))
            posted = true;
    }
    return posted;
}

/* ---- memory ---- */

/* The whole target region: what no outstanding work request covers is as the image says; inside
 * those, each byte is the old one or the new one. */
void world_memory_check(struct world *w, struct world_flow *f)
{
    for (uint32_t k = 0; k < f->slots; k++) {
        const size_t from = k == 0 ? 0 : WORLD_GUARD + k * f->slot_bytes;
        const size_t to = k + 1 == f->slots ? f->bytes : WORLD_GUARD + (k + 1) * f->slot_bytes;
        size_t open = to; /* the part that may be either */
        size_t open_end = to;
        const struct world_wr *const wr = &f->wr[k];
        const uint64_t behind = (k + f->slots - f->placed % f->slots) % f->slots;
        if (f->placed + behind < f->posted) {
            open = (size_t)(wr->dst - f->dst);
            open_end = open + wr->length;
        }
        if (memcmp(f->dst + from, f->image + from, open - from) != 0 ||
            memcmp(f->dst + open_end, f->image + open_end, to - open_end) != 0)
            world_fail(w, "memory outside every outstanding write changed (slot %u)", k);
        for (size_t i = open; i < open_end; i++)
            if (f->dst[i] != f->image[i] && f->dst[i] != wr->src[i - open]) {
                world_fail(w, "byte %zu of slot %u is neither old nor new", i - from, k);
                return;
            }
    }
}

struct mrc_qp_stats world_stats(struct world *w, const struct world_flow *f)
{
    struct mrc_qp_stats s = {0};
    mrc_qp_stats(w->host[f->from].e, f->qpn_from, &s);
    return s;
}

struct mrc_qp_stats world_stats_peer(struct world *w, const struct world_flow *f)
{
    return world_stats(w, &w->flow[f->reverse]);
}
