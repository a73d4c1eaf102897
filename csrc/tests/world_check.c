/* SPDX-License-Identifier: BSD-2-Clause */
/* What every packet must look like, from the work requests alone, and what may be sent when. */
#include "world.h"

struct world_flow *world_flow_by_sender(struct world *w, uint32_t from, uint32_t to, uint32_t dqp)
{
    for (uint32_t i = 0; i < w->flows; i++) {
        struct world_flow *const f = &w->flow[i];
        if (f->from == from && f->to == to && f->qpn_to == dqp)
            return f;
    }
    return NULL;
}

/* The flow that an answer (SACK, NACK, ACK) from `from` to `to` is about. */
struct world_flow *world_flow_by_answer(struct world *w, uint32_t from, uint32_t to, uint32_t dqp)
{
    for (uint32_t i = 0; i < w->flows; i++) {
        struct world_flow *const f = &w->flow[i];
        if (f->to == from && f->from == to && f->qpn_from == dqp)
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

static bool check_icrc(const struct world *w, const struct mrc_rx_pkt *rx)
{
    uint8_t want[MRC_ICRC_LEN];
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
    else if (p->ts != f->qp.timestamps || (p->ts && (p->tsr || p->ftype != 1)))
        world_fail(w, "psn %06x: TSETH is wrong", p->psn);
    else if (p->ts && p->tx_timestamp != (uint16_t)(w->now / 128)) /* each copy has its own */
        world_fail(w, "psn %06x: timestamp %04x at %llu ns", p->psn, p->tx_timestamp,
                   (unsigned long long)w->now);
    else if (p->rqmsn != wr->rqmsn)
        world_fail(w, "psn %06x: rqmsn %u, should be %u", p->psn, p->rqmsn, wr->rqmsn);
    else if (p->msn != (uint16_t)(n + 1))
        world_fail(w, "psn %06x: msn %u of message %llu", p->psn, p->msn, (unsigned long long)n);
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
    const struct world_wr *const wr = &f->wr[f->wr_sending % f->slots];
    const uint32_t packets = check_packets(f, wr);
    *s = (struct world_sent){.psn = p->psn, .packet = f->packet_next, .wr = f->wr_sending};
    if (f->packet_next == 0 && wr->is_imm)
        check_wimm(w, f, mrc_psn_add(f->psn_next, (int32_t)packets - 1));
    f->psn_next = mrc_psn_add(f->psn_next, 1);
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
    if (mrc_psn_diff(psn, f->acked) > f->qp.mpr * MRC_MPR_UNIT) /* field report 1 */
        world_fail(w, "psn %06x is %d beyond %06x, MPR is %u", p->psn, mrc_psn_diff(psn, f->acked),
                   f->acked.v, f->qp.mpr * MRC_MPR_UNIT);
    if (ahead > 0) {
        world_fail(w, "psn %06x: gap of %d in the numbering", p->psn, ahead);
        return;
    }
    struct world_sent *const s = ahead == 0 ? check_new(w, f, p) : check_again(w, f, p);
    if (s == NULL)
        return;
    s->sends++;
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
    if (!p->pr && !check_has_arrived(f, mrc_psn_add(cack, p->ack_psn_offset)))
        world_fail(w, "SACK: ack_psn %06x never arrived", mrc_psn_add(cack, p->ack_psn_offset).v);
    if (mrc_path_find(w->host[f->from].table[f->to], p->entropy) == MRC_EV_NONE)
        world_fail(w, "SACK reflects entropy %08x, which was never sent", p->entropy);
}

/* A NACK is about a packet that came in some shape; a trimmed one does not count as arrived. */
static void check_nack(struct world *w, struct world_flow *f, const struct mrc_pkt *p)
{
    const struct mrc_psn psn = mrc_psn(p->cack_psn);
    const bool trimmed =
        p->nack_reason == MRC_NACK_TRIMMED || p->nack_reason == MRC_NACK_TRIMMED_LASTHOP;
    if (mrc_psn_diff(psn, f->psn_next) >= 0)
        world_fail(w, "NACK of %06x, which was never sent", psn.v);
    if (trimmed && w->cfg.link.trim_bytes == 0)
        world_fail(w, "NACK: %06x trimmed, where nothing trims", psn.v);
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

uint32_t world_check_sent(struct world *w, uint32_t from, uint32_t to, uint16_t path,
                          const struct mrc_rx_pkt *rx, struct mrc_pkt *pkt)
{
    const enum mrc_wire_err err = mrc_wire_decode(pkt, rx->bytes, rx->len, false);
    if (err != MRC_WIRE_OK || !check_icrc(w, rx)) {
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
    const bool answer =
        (kind & (WORLD_KIND_ACK | WORLD_KIND_SACK | WORLD_KIND_NACK | WORLD_KIND_PROBE_ANSWER)) !=
        0;
    if (kind == WORLD_KIND_ENDPOINT)
        return kind;
    struct world_flow *const f = answer ? world_flow_by_answer(w, from, to, pkt->dqp)
                                        : world_flow_by_sender(w, from, to, pkt->dqp);
    if (f == NULL)
        world_fail(w, "host %u: opcode %02x to unknown QP %u", from, pkt->opcode, pkt->dqp);
    else if (answer)
        check_answer(w, f, rx, pkt);
    else if (kind == WORLD_KIND_DATA)
        check_data(w, f, path, rx, pkt);
    return kind;
}

void world_check_arrived(struct world *w, uint32_t to, const struct mrc_rx_pkt *rx)
{
    struct mrc_pkt p;
    if (mrc_wire_decode(&p, rx->bytes, rx->len, false) != MRC_WIRE_OK || !check_icrc(w, rx))
        return; /* the engine must drop it: nothing it reports may rest on this */
    const uint32_t from = (uint32_t)rx->src[15] - 1;
    const uint32_t kind = check_kind(&p);
    struct world_flow *f = NULL;
    if (kind == WORLD_KIND_DATA && (f = world_flow_by_sender(w, from, to, p.dqp)) != NULL)
        f->arrived[p.psn / 8] |= (uint8_t)(1u << (p.psn % 8));
    if ((kind & (WORLD_KIND_ACK | WORLD_KIND_SACK | WORLD_KIND_PROBE_ANSWER)) == 0 ||
        (kind == WORLD_KIND_ACK && p.syndrome != MRC_AETH_ACK))
        return;
    f = world_flow_by_answer(w, from, to, p.dqp);
    if (f == NULL)
        return;
    const struct mrc_psn cum = mrc_psn(p.psn);
    if (mrc_psn_after(cum, f->acked))
        f->acked = cum;
    if (kind == WORLD_KIND_ACK && mrc_psn_after(cum, f->acked_tp))
        f->acked_tp = cum;
}
