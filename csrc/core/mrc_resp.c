/* SPDX-License-Identifier: BSD-2-Clause */
#include "mrc_resp.h"

enum {
    MRC_SACK_FLOOR_BYTES = 1024,      /* per packet, so that many small ones trigger too (B.4) */
    MRC_SACK_THRESHOLD_BYTES = 16384, /* H7 */
    MRC_STALE_DUP_PERIOD = 64,        /* H35 */
};

/* ---- creation ---- */

size_t mrc_resp_bytes(uint32_t window_max, uint32_t rq_depth, uint16_t wimm_max)
{
    return mrc_align(mrc_rxtrack_bytes(window_max)) +
           mrc_align(mrc_pow2(rq_depth) * sizeof(uint64_t)) +
           mrc_align((size_t)wimm_max * sizeof(struct mrc_imm_stash));
}

void mrc_resp_init(struct mrc_resp *r, void *mem, uint32_t window_max, uint32_t rq_depth,
                   uint16_t wimm_max, uint64_t seed)
{
    uint8_t *m = mem;
    memset(r, 0, sizeof *r);
    mrc_rxtrack_init(&r->rx, m, window_max);
    m += mrc_align(mrc_rxtrack_bytes(window_max));
    r->rq = (uint64_t *)(void *)m;
    r->rq_mask = mrc_pow2(rq_depth) - 1;
    m += mrc_align((r->rq_mask + 1) * sizeof(uint64_t));
    r->stash = (struct mrc_imm_stash *)(void *)m;
    r->stash_max = wimm_max;
    mrc_path_cursor_init(&r->cursor, seed);
}

void mrc_resp_start(struct mrc_resp *r, struct mrc_psn rq_psn, uint32_t window,
                    uint32_t sack_threshold_bytes, uint16_t max_wimm_dest)
{
    mrc_rxtrack_start(&r->rx, rq_psn, window);
    r->due_head = r->due_tail = 0;
    r->nack_head = r->nack_tail = 0;
    r->ack_due = false;
    r->nak_due = false;
    r->nak_syndrome = 0;
    r->sack_trigger_bytes = 0;
    r->sack_threshold_bytes =
        sack_threshold_bytes != 0 ? sack_threshold_bytes : MRC_SACK_THRESHOLD_BYTES;
    r->prev_ar = false;
    r->any_received = false;
    r->stale_duplicates = 0;
    r->msn_done = 0;
    r->stash_count = 0;
    r->max_wimm_dest = max_wimm_dest;
}

/* ---- what becomes due ---- */

static bool resp_plain(const struct mrc_sack_due *d)
{
    return d->mark == MRC_MARK_NONE && !d->rtx && !d->pr;
}

/* A SACK is a snapshot taken when it leaves, so triggers of one burst share one, unless they carry
 * news of their own: a mark, a retransmission echo, a probe's answer. */
static void resp_sack_due(struct mrc_resp *r, const struct mrc_sack_due *d)
{
    struct mrc_sack_due *newest = &r->due[(r->due_tail - 1) % MRC_DUE_RING];
    r->sack_trigger_bytes = 0;
    if (r->due_head != r->due_tail && resp_plain(newest) && !d->pr) {
        *newest = *d;
        return;
    }
    if (r->due_tail - r->due_head == MRC_DUE_RING) {
        *newest = *d; /* full: the snapshot is what matters most */
        return;
    }
    r->due[r->due_tail++ % MRC_DUE_RING] = *d;
}

static void resp_nack_due(struct mrc_resp *r, const struct mrc_pkt *p, uint32_t ev, uint8_t reason)
{
    if (r->nack_tail - r->nack_head == MRC_NACK_RING)
        return; /* the requestor's timer finds it */
    const struct mrc_nack_due d = {mrc_psn(p->psn), ev, p->tx_timestamp, reason};
    r->nack[r->nack_tail++ % MRC_NACK_RING] = d;
}

static enum mrc_resp_result resp_nak(struct mrc_resp *r, const struct mrc_resp_ctx *c,
                                     struct mrc_psn psn, uint8_t syndrome, uint32_t ev,
                                     enum mrc_drop why)
{
    c->env->drops[why]++;
    r->nak_syndrome = syndrome;
    r->nak_psn = psn;
    r->nak_due = true;
    r->ack_ev = ev;
    return MRC_RESP_FATAL;
}

/* ---- the chain ---- */

/* B.3, e <= 0 or bit set: place nothing, count nothing, answer. */
static void resp_duplicate(struct mrc_resp *r, const struct mrc_resp_ctx *c,
                           const struct mrc_pkt *p, uint32_t ev, bool ce)
{
    const struct mrc_psn psn = mrc_psn(p->psn);
    c->stats->duplicates_received++;
    const bool far = mrc_psn_diff(r->rx.cack, psn) > (int32_t)r->rx.window;
    if (far && r->stale_duplicates++ % MRC_STALE_DUP_PERIOD != 0)
        return; /* H35 */
    const struct mrc_sack_due d = {
        psn, ev, p->tx_timestamp, 0, ce ? MRC_MARK_SKIP : MRC_MARK_NONE, p->rtx, false};
    resp_sack_due(r, &d);
    if (p->a && mrc_psn_diff(psn, r->rx.cack) <= 0) {
        r->ack_due = true;
        r->ack_ev = ev;
    }
}

static bool resp_payload_fits(const struct mrc_resp_ctx *c, const struct mrc_pkt *p)
{
    const uint8_t f = mrc_opcode_flags(p->opcode);
    const uint32_t mtu = c->peer->path_mtu;
    if ((f & MRC_OPF_LAST) == 0)
        return p->payload_len == mtu; /* A.1: all but the last carry exactly one path MTU */
    if ((f & MRC_OPF_FIRST) != 0)
        return p->payload_len <= mtu;
    return p->payload_len >= 1 && p->payload_len <= mtu;
}

/* B.8: the immediate waits until everything before it has arrived. */
static enum mrc_resp_result resp_stash(struct mrc_resp *r, const struct mrc_resp_ctx *c,
                                       const struct mrc_pkt *p, uint32_t ev)
{
    const struct mrc_psn psn = mrc_psn(p->psn);
    if (r->stash_count >= r->max_wimm_dest || r->stash_count >= r->stash_max)
        return resp_nak(r, c, psn, MRC_AETH_NAK_INVALID_REQUEST, ev, MRC_DROP_WIMM_LIMIT);
    /* A message of one packet is as long as that, whatever its RETH claims. */
    const bool only = (mrc_opcode_flags(p->opcode) & MRC_OPF_FIRST) != 0;
    const uint32_t byte_len = only ? p->payload_len : p->dmalen;
    const struct mrc_imm_stash s = {psn, p->imm, byte_len, p->se || p->m_bit};
    uint16_t i = r->stash_count++;
    /* Kept in PSN order; arrivals are nearly in order, so the walk is short. */
    while (i > 0 && mrc_psn_after(r->stash[i - 1].psn, psn)) {
        r->stash[i] = r->stash[i - 1];
        i--;
    }
    r->stash[i] = s;
    return MRC_RESP_OK;
}

static enum mrc_resp_result resp_deliver(struct mrc_resp *r, const struct mrc_resp_ctx *c,
                                         uint32_t ev)
{
    uint16_t n = 0;
    enum mrc_resp_result result = MRC_RESP_OK;
    while (n < r->stash_count && mrc_psn_diff(r->stash[n].psn, r->rx.cack) <= 0) {
        const struct mrc_imm_stash *s = &r->stash[n];
        struct mrc_wc wc = {.qpn = c->peer->qpn,
                            .byte_len = s->byte_len,
                            .imm = s->imm,
                            .status = MRC_WC_SUCCESS,
                            .opcode = MRC_WC_RECV_RDMA_WITH_IMM};
        wc.flags = (uint8_t)(MRC_WC_WITH_IMM | (s->solicited ? MRC_WC_SOLICITED : 0));
        if (!mrc_resp_take_recv(r, &wc.wr_id)) {
            result = resp_nak(r, c, s->psn, MRC_AETH_NAK_REMOTE_OPERATION, ev, MRC_DROP_NO_RECV);
            break;
        }
        n++;
        if (!mrc_cq_push(&c->env->cqs, c->recv_cq, &wc)) {
            result = resp_nak(r, c, s->psn, MRC_AETH_NAK_REMOTE_OPERATION, ev, MRC_DROP_NO_RECV);
            break;
        }
    }
    if (n > 0) {
        r->stash_count = (uint16_t)(r->stash_count - n);
        memmove(r->stash, r->stash + n, r->stash_count * sizeof *r->stash);
    }
    return result;
}

/* B.4: the triggers, for a packet that was accepted. */
static void resp_ack_policy(struct mrc_resp *r, const struct mrc_pkt *p, uint32_t ev, bool ce)
{
    bool due = p->a || ce || p->rtx || !r->any_received;
    const uint32_t bytes = MRC_BTH_LEN + p->payload_len;
    r->any_received = true;
    r->sack_trigger_bytes += bytes > MRC_SACK_FLOOR_BYTES ? bytes : MRC_SACK_FLOOR_BYTES;
    if (r->sack_trigger_bytes >= r->sack_threshold_bytes)
        due = true;
    if (r->prev_ar && r->rx.ooo_count == 0) { /* trigger 6: the gap behind an AR closed */
        due = true;
        r->prev_ar = false;
    }
    if (p->a && r->rx.ooo_count > 0)
        r->prev_ar = true;
    if (!due)
        return;
    const struct mrc_sack_due d = {
        mrc_psn(p->psn), ev, p->tx_timestamp, 0, ce ? MRC_MARK_SKIP : MRC_MARK_NONE, p->rtx, false,
    };
    resp_sack_due(r, &d);
}

/* Everything that says whether this packet may be stored, and where. False: it may not; *out says
 * whether that ends the QP. */
static bool resp_admit(struct mrc_resp *r, const struct mrc_resp_ctx *c, const struct mrc_pkt *p,
                       uint32_t ev, uint8_t **to, enum mrc_resp_result *out)
{
    *out = MRC_RESP_OK;
    if (!resp_payload_fits(c, p)) {
        c->env->drops[MRC_DROP_PAYLOAD]++;
        return false;
    }
    const struct mrc_mr *mr = mrc_mr_find(&c->env->mrs, p->r_key, c->pd);
    if ((c->access & MRC_ACCESS_REMOTE_WRITE) == 0 || mr == NULL ||
        !mrc_mr_allows(mr, p->va, p->payload_len, MRC_ACCESS_REMOTE_WRITE)) {
        *out = resp_nak(r, c, mrc_psn(p->psn), MRC_AETH_NAK_REMOTE_ACCESS, ev, MRC_DROP_ACCESS);
        return false;
    }
    *to = mr->addr + (p->va - (uint64_t)(uintptr_t)mr->addr);
    return true;
}

enum mrc_resp_result mrc_resp_data(struct mrc_resp *r, const struct mrc_resp_ctx *c,
                                   const struct mrc_pkt *p, uint32_t ev, bool ce)
{
    const struct mrc_psn psn = mrc_psn(p->psn);
    const uint8_t f = mrc_opcode_flags(p->opcode);
    if (ce)
        c->stats->ce_received++;
    switch (mrc_rxtrack_classify(&r->rx, psn)) {
    case MRC_RX_STALE: c->env->drops[MRC_DROP_PSN_STALE]++; return MRC_RESP_OK;
    case MRC_RX_OOR_WINDOW:
        c->env->drops[MRC_DROP_PSN_WINDOW]++;
        resp_nack_due(r, p, ev, MRC_NACK_PSN_OOR_WINDOW);
        return MRC_RESP_OK;
    case MRC_RX_DUPLICATE: resp_duplicate(r, c, p, ev, ce); return MRC_RESP_OK;
    case MRC_RX_NEW: break;
    }
    enum mrc_resp_result result;
    uint8_t *to;
    if (!resp_admit(r, c, p, ev, &to, &result))
        return result;
    if ((f & MRC_OPF_IMM) != 0 && resp_stash(r, c, p, ev) == MRC_RESP_FATAL)
        return MRC_RESP_FATAL;
    if (p->payload_len > 0)
        memcpy(to, p->payload, p->payload_len);

    const uint32_t hdr = mrc_data_hdr_len(p->opcode, p->ts);
    const struct mrc_rx_advance adv = mrc_rxtrack_accept(
        &r->rx, psn, mrc_nominal_bytes(hdr, p->payload_len), p->a, (f & MRC_OPF_LAST) != 0);
    c->stats->packets_received++;
    c->stats->bytes_received += p->payload_len;
    if (adv.psns == 0)
        c->stats->ooo_received++;
    r->msn_done = (r->msn_done + adv.messages) & 0xFFFFFF;
    if (adv.ar_passed) {
        r->ack_due = true;
        r->ack_ev = ev;
    }
    resp_ack_policy(r, p, ev, ce);
    return adv.psns > 0 && r->stash_count > 0 ? resp_deliver(r, c, ev) : MRC_RESP_OK;
}

void mrc_resp_trimmed(struct mrc_resp *r, const struct mrc_resp_ctx *c, const struct mrc_pkt *p,
                      uint32_t ev, bool lasthop)
{
    c->stats->trims_received++;
    if (!c->trim_nack) {
        c->env->drops[MRC_DROP_TRIM_OFF]++;
        return;
    }
    switch (mrc_rxtrack_classify(&r->rx, mrc_psn(p->psn))) {
    case MRC_RX_STALE: c->env->drops[MRC_DROP_PSN_STALE]++; return;
    case MRC_RX_DUPLICATE: /* B.7: already here, so say that instead */
        resp_duplicate(r, c, p, ev, false);
        return;
    case MRC_RX_OOR_WINDOW:
        c->env->drops[MRC_DROP_PSN_WINDOW]++;
        resp_nack_due(r, p, ev, MRC_NACK_PSN_OOR_WINDOW);
        return;
    case MRC_RX_NEW:
        resp_nack_due(r, p, ev, lasthop ? MRC_NACK_TRIMMED_LASTHOP : MRC_NACK_TRIMMED);
        return;
    }
}

void mrc_resp_probe(struct mrc_resp *r, const struct mrc_resp_ctx *c, const struct mrc_pkt *p,
                    uint32_t ev, bool ce)
{
    if (r->due_tail - r->due_head >= MRC_DUE_RING / 2) {
        c->env->drops[MRC_DROP_PROBE_RATE]++;
        return;
    }
    const struct mrc_sack_due d = {
        r->rx.max_rcv, ev,  p->tx_timestamp, p->probe_id, ce ? MRC_MARK_SKIP : MRC_MARK_NONE,
        false,         true};
    resp_sack_due(r, &d);
}

void mrc_resp_refuse(struct mrc_resp *r, const struct mrc_pkt *p, uint32_t ev)
{
    r->due_head = r->due_tail;
    if (r->nak_syndrome != 0) {
        r->nak_due = true;
        r->ack_ev = ev;
    } else if (r->nack_head == r->nack_tail) {
        struct mrc_pkt about = *p;
        if (p->opcode == MRC_OP_PROBE) /* has no PSN of its own; name one the peer knows */
            about.psn = r->rx.cack.v;
        resp_nack_due(r, &about, ev, MRC_NACK_UNEXP_EVENT);
    }
}

/* ---- out ---- */

bool mrc_resp_due(const struct mrc_resp *r)
{
    return r->due_head != r->due_tail || r->ack_due || r->nak_due || r->nack_head != r->nack_tail;
}

/* The EV the request came in on when we have it too and it is usable: in a symmetric fabric it is
 * the way back that was just seen to be alive. Otherwise the next in the rotation (D.8). */
static uint16_t resp_reverse(struct mrc_resp *r, const struct mrc_resp_ctx *c, uint32_t ev)
{
    const uint16_t i = mrc_path_find(c->path, ev);
    if (i != MRC_EV_NONE && mrc_path_state(c->path, i) != MRC_EV_DENIED)
        return i;
    return mrc_path_select_control(c->path, &r->cursor, 0);
}

/* ack_psn as the offset that SETH has room for. A duplicate may lie farther back than 16 bits
 * reach, and a cut-off offset would report a packet that never came: then cack itself stands for
 * it. */
static int16_t resp_ack_offset(const struct mrc_resp *r, const struct mrc_sack_due *d)
{
    const int32_t off = d->pr ? 0 : mrc_psn_diff(d->psn, r->rx.cack);
    return off >= INT16_MIN && off <= INT16_MAX ? (int16_t)off : 0;
}

static void resp_build_sack(struct mrc_resp *r, const struct mrc_resp_ctx *c, struct mrc_pkt *p)
{
    const struct mrc_sack_due d = r->due[r->due_head % MRC_DUE_RING];
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
    p->mpr = (uint8_t)c->mpr_now;
    p->sack_offset = map.offset;
    p->sack_bitmap = map.bitmap;
    p->tx_timestamp = d.timestamp;
    p->ooo_count = (uint16_t)mrc_min32(r->rx.ooo_count, 0x7FFF);
    p->rcvd_bytes = mrc_rxtrack_rcvd_units(&r->rx);
    if (map.more) { /* go on where this one ended, without the news that it already carried */
        r->due[r->due_head % MRC_DUE_RING].mark = MRC_MARK_NONE;
        r->due[r->due_head % MRC_DUE_RING].rtx = false;
        r->due[r->due_head % MRC_DUE_RING].pr = false;
    } else {
        r->due_head++;
    }
    c->stats->sacks_sent++;
}

static void resp_build_nack(struct mrc_resp *r, const struct mrc_resp_ctx *c, struct mrc_pkt *p)
{
    const struct mrc_nack_due d = r->nack[r->nack_head++ % MRC_NACK_RING];
    p->opcode = MRC_OP_NACK;
    p->psn = d.psn.v;
    p->cack_psn = d.psn.v;
    p->nack_reason = d.reason;
    p->entropy = d.ev;
    p->cc_type = 2; /* H31 */
    p->tx_timestamp = d.timestamp;
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
    const bool sack = r->due_head != r->due_tail;
    const bool nack = !sack && r->nack_head != r->nack_tail;
    if (!sack && !nack && !r->ack_due && !r->nak_due)
        return false;
    const uint32_t ev = sack   ? r->due[r->due_head % MRC_DUE_RING].ev
                        : nack ? r->nack[r->nack_head % MRC_NACK_RING].ev
                               : r->ack_ev;
    const uint16_t i = resp_reverse(r, c, ev);
    if (i == MRC_EV_NONE)
        return false;
    struct mrc_pkt p;
    memset(&p, 0, sizeof p);
    if (sack) /* H15: the SACK before the transport ACK */
        resp_build_sack(r, c, &p);
    else if (nack)
        resp_build_nack(r, c, &p);
    else
        resp_build_ack(r, c, &p);
    mrc_emit(c->env, c->peer, mrc_path_entry(c->path, i), c->env->tclass_control, &p, out);
    return true;
}

/* ---- receives ---- */

int mrc_resp_post_recv(struct mrc_resp *r, const uint64_t *wr_id, int n)
{
    int done = 0;
    while (done < n && r->rq_tail - r->rq_head <= r->rq_mask)
        r->rq[r->rq_tail++ & r->rq_mask] = wr_id[done++];
    return done;
}

bool mrc_resp_take_recv(struct mrc_resp *r, uint64_t *wr_id)
{
    if (r->rq_head == r->rq_tail)
        return false;
    *wr_id = r->rq[r->rq_head++ & r->rq_mask];
    return true;
}
