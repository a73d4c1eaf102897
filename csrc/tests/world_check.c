/* SPDX-License-Identifier: BSD-2-Clause */
/* What every packet must look like, from the work requests alone, and what may be sent when. */
#include "world_int.h"

struct world_flow *world_flow_by_sender(struct world *w, uint32_t from, uint32_t to, uint32_t dqp)
{
    for (uint32_t i = 0; i < w->flows; i++) {
        struct world_flow *const f = &w->flow[i];
        if (!f->retired && f->from == from && f->to == to && f->qpn_to == dqp)
            return f;
    }
    return NULL;
}

/* The flow that an answer (SACK, NACK, ACK) from `from` to `to` is about. */
struct world_flow *world_flow_by_answer(struct world *w, uint32_t from, uint32_t to, uint32_t dqp)
{
    for (uint32_t i = 0; i < w->flows; i++) {
        struct world_flow *const f = &w->flow[i];
        if (!f->retired && f->to == from && f->from == to && f->qpn_from == dqp)
            return f;
    }
    return NULL;
}

static uint32_t check_kind(const struct mrc_pkt *p)
{
    switch (p->opcode) {
    case MRC_OP_ACK: return WORLD_KIND_ACK;
    case MRC_OP_SACK: return p->pr ? WORLD_KIND_PROBE_ANSWER : WORLD_KIND_SACK;
    case MRC_OP_NACK: return WORLD_KIND_NACK;
    case MRC_OP_PROBE: return WORLD_KIND_PROBE;
    case MRC_OP_EP_REQUEST:
    case MRC_OP_EP_RESPONSE: return WORLD_KIND_ENDPOINT;
    default: return WORLD_KIND_DATA;
    }
}

bool world_intact(const struct world *w, const struct mrc_rx_pkt *rx)
{
    uint8_t want[MRC_ICRC_LEN];
    if (rx->len < MRC_BTH_LEN + MRC_ICRC_LEN)
        return false;
    const uint32_t reg =
        mrc_icrc6_begin(w->crc, rx->src, rx->dst, rx->sport, rx->dport, rx->udp_len);
    mrc_icrc_end(mrc_icrc_bth(w->crc, reg, rx->bytes, rx->len - MRC_ICRC_LEN), want);
    return memcmp(want, rx->bytes + rx->len - MRC_ICRC_LEN, MRC_ICRC_LEN) == 0;
}

static bool check_has_arrived(const struct world_flow *f, struct mrc_psn psn)
{
    return ((f->arrived[psn.v / 8] >> (psn.v % 8)) & 1) != 0;
}

/* ---- data ---- */

static uint32_t check_packets(const struct world_flow *f, const struct world_wr *wr)
{
    return wr->length == 0 ? 1 : (wr->length + f->qp.mtu - 1) / f->qp.mtu;
}

static uint8_t check_opcode(const struct world_wr *wr, uint32_t packet, uint32_t packets)
{
    if (packets == 1)
        return wr->is_imm ? MRC_OP_WRITE_ONLY_IMM : MRC_OP_WRITE_ONLY;
    if (packet == 0)
        return MRC_OP_WRITE_FIRST;
    if (packet + 1 < packets)
        return MRC_OP_WRITE_MIDDLE;
    return wr->is_imm ? MRC_OP_WRITE_LAST_IMM : MRC_OP_WRITE_LAST;
}

/* The packet against the work request it is a piece of, A.5, B.2. */
static void check_fields(struct world *w, struct world_flow *f, const struct mrc_pkt *p, uint64_t n,
                         uint32_t packet)
{
    const struct world_wr *const wr = &f->wr[n % f->slots];
    const uint32_t packets = check_packets(f, wr);
    const uint32_t offset = packet * f->qp.mtu;
    const uint32_t left = wr->length - offset;
    const uint32_t want = left < f->qp.mtu ? left : f->qp.mtu;

    if (p->opcode != check_opcode(wr, packet, packets))
        world_fail(w, "psn %06x is opcode %02x, should be %02x (packet %u of %u)", p->psn,
                   p->opcode, check_opcode(wr, packet, packets), packet, packets);
    else if (p->va != wr->raddr + offset || p->r_key != wr->rkey || p->dmalen != wr->length)
        world_fail(w, "psn %06x: RETH is wrong", p->psn);
    else if (p->payload_len != want || memcmp(p->payload, wr->src + offset, want) != 0)
        world_fail(w, "psn %06x: payload (%u bytes) is not that of the work request (%u)", p->psn,
                   p->payload_len, want);
    else if ((want + p->pad) % 4 != 0)
        world_fail(w, "psn %06x: pad %u", p->psn, p->pad);
    else if (p->msn != (uint16_t)(f->msn_base + n + 1))
        world_fail(w, "psn %06x: msn %u of message %llu", p->psn, p->msn, (unsigned long long)n);
    else if (p->ts != f->qp.timestamps || (p->ts && (p->tsr || p->ftype != 1)))
        world_fail(w, "psn %06x: TSETH is wrong", p->psn);
    else if (p->ts && p->tx_timestamp != (uint16_t)(w->now / 128)) /* each copy has its own */
        world_fail(w, "psn %06x: timestamp %04x at %llu ns", p->psn, p->tx_timestamp,
                   (unsigned long long)w->now);
    else if (p->rqmsn != wr->rqmsn)
        world_fail(w, "psn %06x: rqmsn %u, should be %u", p->psn, p->rqmsn, wr->rqmsn);
    else if (wr->is_imm && packet + 1 == packets &&
             (p->imm != wr->imm || (p->se || p->m_bit) != wr->solicited))
        world_fail(w, "psn %06x: immediate or solicited bit is wrong", p->psn);
}

/* At most so many immediates between first packet and transport ACK, B.8. */
static void check_wimm(struct world *w, struct world_flow *f, struct mrc_psn last)
{
    while (f->wimm_tail != f->wimm_head &&
           !mrc_psn_after(mrc_psn(f->wimm_last[f->wimm_tail % f->slots]), f->acked_tp))
        f->wimm_tail++;
    f->wimm_last[f->wimm_head++ % f->slots] = last.v;
    if (f->wimm_head - f->wimm_tail == f->qp.max_wimm)
        world_seen(w, WORLD_C_WIMM_FULL);
    if (f->wimm_head - f->wimm_tail > f->qp.max_wimm)
        world_fail(w, "psn %06x: more than %u immediates in flight", last.v, f->qp.max_wimm);
}

static struct world_sent *check_new(struct world *w, struct world_flow *f, const struct mrc_pkt *p)
{
    struct world_sent *const s = &f->sent[p->psn % WORLD_PSN_RING];
    if (p->rtx)
        world_fail(w, "psn %06x: rtx on a first transmission", p->psn);
    if (f->wr_sending >= f->posted) {
        world_fail(w, "psn %06x: data without a work request", p->psn);
        return NULL;
    }
    struct world_wr *const wr = &f->wr[f->wr_sending % f->slots];
    const uint32_t packets = check_packets(f, wr);
    if (f->packet_next == 0 && wr->is_imm) {
        wr->rqmsn = ++f->rqmsn;
        if (f->rqmsn == 0)
            world_seen(w, WORLD_C_RQMSN_WRAP);
    }
    if (f->packet_next == 0 && (uint16_t)(f->msn_base + f->wr_sending + 1) == 0)
        world_seen(w, WORLD_C_MSN_WRAP);
    *s = (struct world_sent){.psn = p->psn, .packet = f->packet_next, .wr = f->wr_sending};
    if (f->packet_next == 0 && wr->is_imm)
        check_wimm(w, f, mrc_psn_add(f->psn_next, (int32_t)packets - 1));
    f->psn_next = mrc_psn_add(f->psn_next, 1);
    if (f->psn_next.v == 0)
        world_seen(w, WORLD_C_PSN_WRAP);
    if (++f->packet_next == packets) {
        f->packet_next = 0;
        f->wr_sending++;
    }
    return s;
}

static struct world_sent *check_again(struct world *w, struct world_flow *f,
                                      const struct mrc_pkt *p)
{
    struct world_sent *const s = &f->sent[p->psn % WORLD_PSN_RING];
    if (!p->rtx)
        world_fail(w, "psn %06x: sent again without rtx", p->psn);
    if (s->psn != p->psn || s->wr < f->completed || s->wr >= f->posted ||
        !mrc_psn_after(mrc_psn(p->psn), f->acked_tp)) {
        world_fail(w, "psn %06x: sent again although acknowledged", p->psn);
        return NULL;
    }
    f->rtx_packets++;
    world_seen_if(w, !mrc_psn_after(mrc_psn(p->psn), f->acked), WORLD_C_ACK_QUERY);
    return s;
}

static void check_data(struct world *w, struct world_flow *f, uint16_t path,
                       const struct mrc_rx_pkt *rx, const struct mrc_pkt *p)
{
    const struct mrc_psn psn = mrc_psn(p->psn);
    const int32_t ahead = mrc_psn_diff(psn, f->psn_next);
    const enum mrc_ev_state state = mrc_path_state(w->host[f->from].table[f->to], path);

    f->data_packets++;
    f->last_data_ns = w->now;
    if (f->dead)
        world_fail(w, "psn %06x: data from a QP in ERROR", p->psn);
    if (state != MRC_EV_GOOD && state != MRC_EV_SKIP)
        world_fail(w, "psn %06x on path %u in state %d", p->psn, path, (int)state);
    if ((rx->tclass & 3) != 2)
        world_fail(w, "psn %06x: data is not ECT(0)", p->psn);
    const int32_t beyond = mrc_psn_diff(psn, f->acked);
    if (beyond > (int32_t)f->window) /* field report 1 */
        world_fail(w, "psn %06x is %d beyond %06x, MPR is %u", p->psn, beyond, f->acked.v,
                   f->window);
    if (beyond == (int32_t)f->window)
        world_seen(w, WORLD_C_WINDOW_FULL);
    if (ahead > 0) {
        world_fail(w, "psn %06x: gap of %d in the numbering", p->psn, ahead);
        return;
    }
    struct world_sent *const s = ahead == 0 ? check_new(w, f, p) : check_again(w, f, p);
    if (s == NULL)
        return;
    s->sends++;
    world_seen_if(w, p->ts, WORLD_C_TSETH);

    world_seen_if(w, s->sends == 2, WORLD_C_RTX);
    world_seen_if(w, s->sends == 4, WORLD_C_RTX_MANY);
    check_fields(w, f, p, s->wr, s->packet);
}

/* ---- answers ---- */

static void check_cumulative(struct world *w, struct world_flow *f, struct mrc_psn cack,
                             const char *what)
{
    const int32_t step = mrc_psn_diff(cack, f->cack_sent);
    if (step > WORLD_PSN_RING || mrc_psn_diff(cack, f->psn_next) >= 0) {
        world_fail(w, "%s acknowledges %06x, last sent is before %06x", what, cack.v,
                   f->psn_next.v);
        return;
    }
    for (int32_t i = 1; i <= step; i++)
        if (!check_has_arrived(f, mrc_psn_add(f->cack_sent, i)))
            world_fail(w, "%s %06x covers %06x, which never arrived", what, cack.v,
                       mrc_psn_add(f->cack_sent, i).v);
    if (step > 0)
        f->cack_sent = cack;
}

/* Answers may be about packets of nobody's: forged ones, or such as were damaged before a port cut
 * them, so that nothing proves them any more. */
static bool check_noisy(const struct world *w, const struct world_flow *f)
{
    return f->noise || (w->cfg.port.trim_bytes != 0 && w->cfg.link.corrupt_ppm != 0);
}

static void check_sack(struct world *w, struct world_flow *f, const struct mrc_pkt *p)
{
    const struct mrc_psn cack = mrc_psn(p->cack_psn);
    if (mrc_psn_diff(cack, f->cack_sent) < 0)
        world_fail(w, "SACK: cack retreats from %06x to %06x", f->cack_sent.v, cack.v);
    if (p->psn != p->cack_psn)
        world_fail(w, "SACK: BTH.psn %06x, cack %06x", p->psn, p->cack_psn);
    if ((p->mpr != 0) != f->qp.dynamic_mpr)
        world_fail(w, "SACK: mpr %u", p->mpr);
    if (f->mpr_min == 0 || p->mpr < f->mpr_min)
        f->mpr_min = p->mpr;
    check_cumulative(w, f, cack, "SACK");
    for (int i = 0; i < 64; i++) {
        const struct mrc_psn psn = mrc_psn_add(cack, p->sack_offset + i);
        if (((p->sack_bitmap >> i) & 1) != 0 && !check_has_arrived(f, psn))
            world_fail(w, "SACK reports %06x, which never arrived", psn.v);
    }
    if (!p->pr && !check_noisy(w, f) && !check_has_arrived(f, mrc_psn_add(cack, p->ack_psn_offset)))
        world_fail(w, "SACK: ack_psn %06x never arrived", mrc_psn_add(cack, p->ack_psn_offset).v);
    if (!check_noisy(w, f) &&
        mrc_path_find(w->host[f->from].table[f->to], p->entropy) == MRC_EV_NONE)
        world_fail(w, "SACK reflects entropy %08x, which was never sent", p->entropy);
}

/* A NACK is about a packet that came in some shape; a trimmed one does not count as arrived. */
static void check_nack(struct world *w, struct world_flow *f, const struct mrc_pkt *p)
{
    const struct mrc_psn psn = mrc_psn(p->cack_psn);
    const bool trimmed =
        p->nack_reason == MRC_NACK_TRIMMED || p->nack_reason == MRC_NACK_TRIMMED_LASTHOP;
    if (check_noisy(w, f))
        return;
    if (mrc_psn_diff(psn, f->psn_next) >= 0)
        world_fail(w, "NACK of %06x, which was never sent", psn.v);
    if (trimmed && w->cfg.link.trim_bytes == 0 && w->cfg.port.trim_bytes == 0)
        world_fail(w, "NACK: %06x trimmed, where nothing trims", psn.v);
    if (f->qp.mode == MRC_MODE_RC && p->nack_reason == MRC_NACK_PSN_OOR_WINDOW) {
        if (mrc_psn_diff(psn, f->cack_sent) < 1) /* the one that is due */
            world_fail(w, "NACK of %06x, which is acknowledged", psn.v);
        return;
    }
    if (!trimmed && p->nack_reason != MRC_NACK_UNEXP_EVENT && !check_has_arrived(f, psn))
        world_fail(w, "NACK of %06x, which never arrived", psn.v);
}

static void check_answer(struct world *w, struct world_flow *f, const struct mrc_rx_pkt *rx,
                         const struct mrc_pkt *p)
{
    if ((rx->tclass & 3) != 0)
        world_fail(w, "control packet is ECT");
    if (p->opcode == MRC_OP_SACK)
        check_sack(w, f, p);
    else if (p->opcode == MRC_OP_ACK && p->syndrome == MRC_AETH_ACK)
        check_cumulative(w, f, mrc_psn(p->psn), "ACK");
    else if (p->opcode == MRC_OP_NACK)
        check_nack(w, f, p);
}

/* What kinds of answers there were, for the coverage. */
static void check_seen_answer(struct world *w, const struct world_flow *f, const struct mrc_pkt *p)
{
    const bool sack = p->opcode == MRC_OP_SACK;
    const bool ack = p->opcode == MRC_OP_ACK && p->syndrome == MRC_AETH_ACK;
    const bool late = f->qp.late_numbers;
    world_seen_if(w, sack && p->tx_timestamp > (uint16_t)(w->now / 128), WORLD_C_TIME_WRAP);
    world_seen_if(w, sack && late && p->rcvd_bytes < 1u << 23, WORLD_C_RCVD_WRAP);
    world_seen_if(w, ack && late && p->aeth_msn < 1u << 23, WORLD_C_AETH_WRAP);
    world_seen_if(w, sack && p->pr, WORLD_C_PROBE_ANSWER);
    world_seen_if(w, sack && p->mark == MRC_MARK_SKIP, WORLD_C_SACK_MARK);
    world_seen_if(w, sack && p->mark == MRC_MARK_ALWAYS_SKIP, WORLD_C_SACK_ALWAYS_SKIP);
    world_seen_if(w, sack && p->rcv_cwnd_pen != 0, WORLD_C_SACK_PENALTY);
    world_seen_if(w, sack && p->rtx, WORLD_C_SACK_ECHO);
    world_seen_if(w, sack && p->sack_bitmap != 0, WORLD_C_SACK_GAP);
    world_seen_if(w, sack && p->sack_bitmap != 0 && p->sack_offset > 1, WORLD_C_SACK_FAR);
    world_seen_if(w, p->opcode == MRC_OP_ACK && p->syndrome == MRC_AETH_NAK_REMOTE_ACCESS,
                  WORLD_C_NAK_ACCESS);
    if (p->opcode != MRC_OP_NACK)
        return;
    world_seen_if(w, p->nack_reason == MRC_NACK_TRIMMED, WORLD_C_NACK_TRIMMED);
    world_seen_if(w, p->nack_reason == MRC_NACK_TRIMMED_LASTHOP, WORLD_C_NACK_LASTHOP);
    world_seen_if(w, p->nack_reason == MRC_NACK_PSN_OOR_WINDOW, WORLD_C_NACK_WINDOW);
    world_seen_if(w, p->nack_reason == MRC_NACK_NO_BITMAP, WORLD_C_NACK_NO_BITMAP);
    world_seen_if(w, p->nack_reason == MRC_NACK_NO_PKT_BUFFER, WORLD_C_NACK_NO_BUFFER);
    world_seen_if(w, p->nack_reason == MRC_NACK_NO_RESOURCE, WORLD_C_NACK_NO_RESOURCE);
    world_seen_if(w, p->nack_reason == MRC_NACK_UNEXP_EVENT, WORLD_C_NACK_UNEXPECTED);
}

static const uint32_t check_answers =
    WORLD_KIND_ACK | WORLD_KIND_SACK | WORLD_KIND_NACK | WORLD_KIND_PROBE_ANSWER;

uint32_t world_check_sent(struct world *w, uint32_t from, uint32_t to, uint16_t path,
                          const struct mrc_rx_pkt *rx, struct mrc_pkt *pkt, uint32_t *flow)
{
    *flow = WORLD_NO_FLOW;
    const enum mrc_wire_err err = mrc_wire_decode(pkt, rx->bytes, rx->len, false);
    if (err != MRC_WIRE_OK || !world_intact(w, rx)) {
        world_fail(w, "host %u emits what does not decode (%d) or has a bad iCRC", from, (int)err);
        return WORLD_KIND_DATA;
    }
    const struct mrc_path_table *const t = w->host[from].table[to];
    if (mrc_path_entry(t, path)->ev != mrc_wire_ev(rx->flow_label, rx->sport))
        world_fail(w, "host %u: lane and EV disagree on path %u", from, path);
    world_mix(w, (uint64_t)pkt->opcode << 56 ^ (uint64_t)pkt->psn << 32 ^ pkt->payload_len ^
                     (uint64_t)pkt->a << 30 ^ (uint64_t)pkt->rtx << 29);
    world_mix(w, pkt->sack_bitmap ^ (uint64_t)pkt->cack_psn << 32 ^ (uint16_t)pkt->sack_offset);

    const uint32_t kind = check_kind(pkt);
    const bool answer = (kind & check_answers) != 0;
    if (answer || pkt->opcode == MRC_OP_EP_RESPONSE)
        w->host[from].answered++;
    if (kind == WORLD_KIND_ENDPOINT) {
        world_seen(w,
                   pkt->opcode == MRC_OP_EP_REQUEST ? WORLD_C_PORT_REQUEST : WORLD_C_PORT_RESPONSE);
        return kind;
    }
    struct world_flow *const f = answer ? world_flow_by_answer(w, from, to, pkt->dqp)
                                        : world_flow_by_sender(w, from, to, pkt->dqp);
    if (f == NULL) {
        world_fail(w, "host %u: opcode %02x to unknown QP %u", from, pkt->opcode, pkt->dqp);
        return kind;
    }
    *flow = (uint32_t)(f - w->flow);
    if (answer) {
        check_answer(w, f, rx, pkt);
        check_seen_answer(w, f, pkt);
    } else if (kind == WORLD_KIND_DATA) {
        check_data(w, f, path, rx, pkt);
    } else {
        world_seen(w, WORLD_C_PROBE);
    }
    return kind;
}

static void check_data_arrived(struct world *w, struct world_flow *f, struct mrc_psn psn)
{
    const int32_t behind = mrc_psn_diff(f->max_arrived, psn);
    world_seen_if(w, behind > 0 && !check_has_arrived(f, psn), WORLD_C_REORDERED);
    world_seen_if(w, behind > 129 && !check_has_arrived(f, psn), WORLD_C_REORDERED_FAR);
    if (behind < 0)
        f->max_arrived = psn;
    f->arrived[psn.v / 8] |= (uint8_t)(1u << (psn.v % 8));
}

/* What a SACK or transport ACK that reaches the requestor allows and ends, B.5, B.12. */
static void check_answer_arrived(struct world *w, struct world_flow *f, const struct mrc_pkt *p)
{
    const struct mrc_psn cum = mrc_psn(p->psn);
    const bool sack = p->opcode == MRC_OP_SACK;
    if (!sack && p->syndrome != MRC_AETH_ACK)
        return;
    /* Reports overtake each other; what an older one offers is past. */
    const bool old = sack && mrc_psn_diff(mrc_psn(p->rcvd_bytes), mrc_psn(f->rcvd_seen)) < 0;
    if (sack && !old)
        f->rcvd_seen = p->rcvd_bytes;
    if (sack && !old && f->qp.dynamic_mpr && p->mpr != 0 && mrc_psn_diff(cum, f->acked) >= 0) {
        const uint32_t window = mrc_min32(p->mpr, f->qp.mpr) * MRC_MPR_UNIT;
        world_seen_if(w, window < f->window, WORLD_C_MPR_SHRUNK);
        world_seen_if(w, window > f->window, WORLD_C_MPR_GROWN);
        f->window = window;
    }
    if (mrc_psn_after(cum, f->acked))
        f->acked = cum;
    if (!sack && mrc_psn_after(cum, f->acked_tp))
        f->acked_tp = cum;
}

void world_check_arrived(struct world *w, uint32_t to, const struct world_packet *packet)
{
    struct mrc_pkt p;
    const struct mrc_rx_pkt *const rx = &packet->rx;
    if (mrc_wire_decode(&p, rx->bytes, rx->len, false) != MRC_WIRE_OK || !world_intact(w, rx)) {
        /* The engine must drop it, or NACK it when it was trimmed: nothing may rest on it. */
        w->host[to].asked++;
        return;
    }
    const uint32_t kind = check_kind(&p);
    if ((kind & (WORLD_KIND_DATA | WORLD_KIND_PROBE)) != 0 || p.opcode == MRC_OP_EP_REQUEST)
        w->host[to].asked++;
    if (packet->flow == WORLD_NO_FLOW)
        return;
    struct world_flow *const f = &w->flow[packet->flow];
    if (f->retired) {
        world_seen(w, WORLD_C_RESET_STALE);
        return;
    }
    if (kind == WORLD_KIND_DATA)
        check_data_arrived(w, f, mrc_psn(p.psn));
    else if ((kind & (WORLD_KIND_ACK | WORLD_KIND_SACK | WORLD_KIND_PROBE_ANSWER)) != 0)
        check_answer_arrived(w, f, &p);
}
