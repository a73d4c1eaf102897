/* SPDX-License-Identifier: BSD-2-Clause */
/* The receiver's short cut, attacked (ADR 113). Two equal receivers get the same forged packets,
 * one of them one at a time, so that it never takes the short cut. Whatever a packet says, whatever
 * the queue pair, the pools and the regions are like, all that comes of it must be the same. */
#include "hostile_rig.h"
#include "t.h"

enum {
    RX_BATCH = 48,
    RX_ROUNDS = 150,
    RX_WORLDS = 240,
    RX_HDR = 32, /* BTH to RETH, without TSETH (A.1) */
};

struct rx_world {
    struct rig r[2]; /* the receivers are s[1]; 0: one packet at a time */
    uint32_t qpn[2]; /* two queue pairs of each, of equal numbers */
    uint32_t psn[2];
    struct mrc_rand rand;
    struct rig_pkt wire[2][RX_BATCH];
    uint32_t len; /* of a packet that is not the last */
    bool ts;
    bool rtr; /* a queue pair's first packet is an event */
    uint8_t rqmsn;
};

static uint32_t rx_below(struct rx_world *w, uint32_t n) { return mrc_rand_below(&w->rand, n); }

/* ---- what the receivers are like ---- */

static void rx_second_qp(struct rig *r, void **mem, uint32_t *qpn)
{
    struct rig_side *s = &r->s[1];
    const uint32_t first = s->qpn;
    *mem = malloc(mrc_qp_size(&rig_qp_init));
    s->qpn = (uint32_t)mrc_qp_create(s->e, *mem, &rig_qp_init);
    rig_bring_up(r, 1, MRC_QPS_RTS);
    *qpn = s->qpn;
    s->qpn = first;
}

static void rx_modify(struct rx_world *w, uint32_t mask, const struct mrc_qp_attr *a)
{
    int got[2];
    for (int i = 0; i < 2; i++)
        got[i] = mrc_qp_modify(w->r[i].s[1].e, w->qpn[0], a, mask, w->r[i].now);
    CHECK_EQ(got[1], got[0]);
}

/* The first PSN that comes: expected, or a little earlier, so that the first ones are refused. */
static uint32_t rx_start(struct rx_world *w) { return w->r[0].start_psn - 3 * rx_below(w, 2); }

/* Kinds of receivers, by the bits of the seed. */
static void rx_open(struct rx_world *w, uint64_t seed, void *mem[2])
{
    memset(w, 0, sizeof *w);
    mrc_rand_seed(&w->rand, seed);
    w->ts = (seed & 1) != 0;
    w->rtr = seed % 3 == 0;
    for (int i = 0; i < 2; i++) {
        struct rig *r = &w->r[i];
        rig_open(r, 0xFFFFC0, MRC_CC_NSCC, (seed & 2) != 0);
        struct mrc_engine *const e = r->s[1].e;
        rx_second_qp(r, &mem[i], &w->qpn[1]);
        w->qpn[0] = r->s[1].qpn;
        e->env.icrc_skip_percent = (seed & 4) != 0 ? 5 : 0;
        e->env.rx.ooo_max = seed % 5 == 0 ? 8 : 0;
        e->env.rx.imm_max = seed % 7 == 0 ? 2 : 0;
        for (int k = 0; k < 2; k++) {
            struct mrc_qp *q = mrc_engine_qp(e, w->qpn[k]);
            q->attr.mode = seed % 11 == 0 ? MRC_MODE_RC : MRC_MODE_MRC;
            if (w->rtr)
                q->attr.state = MRC_QPS_RTR;
        }
    }
    w->psn[0] = w->psn[1] = rx_start(w);
}

static void rx_close(struct rx_world *w, void *mem[2])
{
    CHECK(rig_guards_ok(&w->r[1]));
    for (int i = 0; i < 2; i++) {
        RIG_NEED(mrc_qp_destroy(w->r[i].s[1].e, w->qpn[1]) == mem[i]);
        free(mem[i]);
        w->r[i].s[1].qpn = w->qpn[0];
        rig_close(&w->r[i]);
    }
}

/* What may happen to a receiver between two turns, now and then. */
static void rx_life(struct rx_world *w)
{
    const struct mrc_qp_attr a = {.access = (uint8_t)(rx_below(w, 8) == 0 ? 1 : 3),
                                  .mpr_dest = (uint16_t)(1 + rx_below(w, RIG_MPR)),
                                  .rx_paused = rx_below(w, 4) == 0,
                                  .sack_threshold = 300 * rx_below(w, 20)};
    const bool paused = rx_below(w, 12) == 0;
    const uint64_t recv = 1;
    rx_modify(w, MRC_QP_RX_PAUSED, &a);
    if (rx_below(w, 8) == 0)
        rx_modify(w, MRC_QP_MPR_DEST, &a);
    if (rx_below(w, 8) == 0)
        rx_modify(w, MRC_QP_SACK, &a);
    if (rx_below(w, 60) == 0)
        rx_modify(w, MRC_QP_ACCESS, &a);
    for (int i = 0; i < 2; i++) {
        mrc_engine_rx_pause(w->r[i].s[1].e, paused);
        for (int k = 0; k < 2; k++)
            (void)mrc_qp_post_recv(w->r[i].s[1].e, w->qpn[k], &recv, 1);
        w->r[i].now += 10 * MRC_USEC;
    }
}

/* RESET and up again under a new number: what follows by the old one finds nobody. */
static void rx_rebirth(struct rx_world *w)
{
    for (int i = 0; i < 2; i++) {
        const uint8_t mode = rig_qp(&w->r[i].s[1])->attr.mode;
        rig_qp(&w->r[i].s[1])->attr.mode = MRC_MODE_MRC; /* the other wants tables of one path */
        rig_reset(&w->r[i], 1);
        rig_bring_up(&w->r[i], 1, w->rtr ? MRC_QPS_RTR : MRC_QPS_RTS);
        rig_qp(&w->r[i].s[1])->attr.mode = mode;
    }
    CHECK_EQ(w->r[1].s[1].qpn, w->r[0].s[1].qpn);
    w->qpn[0] = w->r[0].s[1].qpn;
    w->psn[0] = rx_start(w);
}

/* ---- packets ---- */

/* An iCRC that fits the packet with all that the headers above it say, true or not. */
static void rx_seal(const struct rig *r, struct rig_pkt *p)
{
    const mrc_crc32_fn crc = r->s[1].e->env.crc;
    uint32_t reg =
        mrc_icrc6_begin(crc, p->rx.src, p->rx.dst, p->rx.sport, p->rx.dport, p->rx.udp_len);
    reg = mrc_icrc_bth(crc, reg, p->bytes, p->rx.len - MRC_ICRC_LEN);
    mrc_icrc_end(reg, p->bytes + p->rx.len - MRC_ICRC_LEN);
}

static void rx_forge(struct rx_world *w, size_t n, int k, uint8_t op, uint32_t ahead, uint32_t key)
{
    const bool imm = (mrc_opcode_flags(op) & MRC_OPF_IMM) != 0;
    const bool part = op != MRC_OP_WRITE_FIRST && op != MRC_OP_WRITE_MIDDLE && rx_below(w, 2) == 0;
    const uint32_t full = imm ? w->len - 4 : w->len; /* as long on the wire as one without */
    const uint32_t len = part ? 1 + rx_below(w, RIG_MTU) : full;
    const uint32_t psn = (w->psn[k] + ahead) & 0xFFFFFF;
    const uint32_t at = psn % (RIG_BUF / RIG_MTU) * RIG_MTU;
    const uint16_t stamp = (uint16_t)mrc_rand_next(&w->rand);
    const bool asks = rx_below(w, 20) == 0;
    const uint8_t fill = (uint8_t)rx_below(w, 3);     /* often what was the immediate before */
    const uint32_t ev = RIG_EV0 + rx_below(w, 8) / 7; /* most by one path */
    for (int i = 0; i < 2; i++) {
        const struct rig_side *s = &w->r[i].s[1];
        const struct mrc_pkt p = {.opcode = op,
                                  .p_key = 0xFFFF,
                                  .dqp = w->qpn[k],
                                  .psn = psn,
                                  .a = asks,
                                  .ts = w->ts,
                                  .ftype = w->ts,
                                  .tx_timestamp = stamp,
                                  .msn = 1,
                                  .rqmsn = w->rqmsn,
                                  .va = rig_va(s, RIG_RW) + at,
                                  .r_key = s->key[key],
                                  .dmalen = 1 << 14,
                                  .imm = fill * 0x01010101u,
                                  .payload_len = len};
        rig_forge(&w->r[i], 1, &p, fill, &w->wire[i][n]);
        w->wire[i][n].rx.sport = (uint16_t)ev;
        rx_seal(&w->r[i], &w->wire[i][n]);
    }
}

/* Something about a packet is not as in the others; whole: its iCRC fits that. */
static void rx_spoil(struct rx_world *w, size_t n)
{
    const uint32_t kind = rx_below(w, 13);
    const bool whole = rx_below(w, 3) != 0;
    const uint8_t bit = (uint8_t)(1 << rx_below(w, 8));
    const uint32_t byte = rx_below(w, 16);
    const uint32_t at = rx_below(w, RX_HDR + 8);
    const uint32_t reth = w->ts ? 20 : 16;
    for (int i = 0; i < 2; i++) {
        struct rig_pkt *p = &w->wire[i][n];
        switch (kind) {
        case 0: p->rx.tclass |= 3; break;
        case 1: p->rx.outer_ce = true; break;
        case 2: p->rx.tclass = (uint8_t)(RIG_TRIMMED << 2 | 2); break;
        case 3: p->rx.tclass ^= (uint8_t)(bit & 0xFC); break;
        case 4: p->rx.flow_label ^= (uint32_t)bit << (byte % 12); break;
        case 5: p->rx.sport ^= (uint16_t)(bit & 3); break;
        case 6: p->rx.dport ^= bit; break;
        case 7: p->rx.src[byte] ^= bit; break;
        case 8: p->rx.dst[byte] ^= bit; break;
        case 9: p->rx.udp_len ^= bit; break;
        case 10: p->rx.len -= byte % 8; break;
        default: /* a place in memory stays alike */
            if (at < reth || at >= reth + 8)
                p->bytes[at] ^= bit;
            break;
        }
        if (whole)
            rx_seal(&w->r[i], p);
    }
}

/* A run of one queue pair, or of two that meet; gaps, copies and late ones in it. */
static size_t rx_batch(struct rx_world *w, uint32_t faults)
{
    static const uint8_t other[] = {MRC_OP_WRITE_FIRST, MRC_OP_WRITE_LAST, MRC_OP_WRITE_LAST_IMM,
                                    MRC_OP_WRITE_ONLY, MRC_OP_WRITE_ONLY_IMM};
    const bool mixed = rx_below(w, 4) == 0;
    size_t n = 0;
    w->len = rx_below(w, 6) != 0 ? RIG_MTU : RIG_MTU - 8 + rx_below(w, 16);
    while (n < RX_BATCH) {
        const int k = mixed ? (int)rx_below(w, 2) : 0;
        uint8_t op = MRC_OP_WRITE_MIDDLE;
        uint32_t ahead = 0;
        if (rx_below(w, 12) == 0)
            op = other[rx_below(w, sizeof other)];
        if (rx_below(w, 100) < faults)
            ahead = rx_below(w, 40) == 0 ? rx_below(w, 1 << 24) : rx_below(w, 12) - 4;
        const uint32_t key = rx_below(w, 2500) == 0 ? 1 + rx_below(w, 2) : RIG_RW;
        w->rqmsn =
            (uint8_t)(w->rqmsn + (op == MRC_OP_WRITE_LAST_IMM || op == MRC_OP_WRITE_ONLY_IMM));
        rx_forge(w, n, k, op, ahead, key);
        if (rx_below(w, 100) < faults)
            rx_spoil(w, n);
        if (ahead == 0 && rx_below(w, 100) >= faults / 4)
            w->psn[k] = (w->psn[k] + 1) & 0xFFFFFF;
        n++;
    }
    return n;
}

static void rx_deliver(struct rx_world *w, size_t n)
{
    static struct mrc_rx_pkt rx[RX_BATCH];
    uint8_t *block[RX_BATCH];
    for (size_t i = 0; i < n; i++) {
        rig_deliver(&w->r[0], 1, &w->wire[0][i]);
        rx[i] = w->wire[1][i].rx;
        block[i] = malloc(rx[i].len);
        memcpy(block[i], w->wire[1][i].bytes, rx[i].len);
        rx[i].bytes = block[i];
    }
    mrc_engine_rx(w->r[1].s[1].e, rx, n, w->r[1].now);
    for (size_t i = 0; i < n; i++)
        free(block[i]);
}

/* ---- what came of it ---- */

static void rx_same_due(const struct mrc_resp *q, const struct mrc_resp *p)
{
    CHECK_EQ(q->due_head, p->due_head);
    CHECK_EQ(q->due_tail, p->due_tail);
    CHECK_EQ(q->nack_head, p->nack_head);
    CHECK_EQ(q->nack_tail, p->nack_tail);
    CHECK_EQ(q->due_mask, p->due_mask);
    CHECK_EQ(q->lent, p->lent);
    for (uint32_t i = p->due_head; i != p->due_tail; i++)
        CHECK_MEM(&q->due[i & q->due_mask], &p->due[i & p->due_mask],
                  offsetof(struct mrc_sack_due, timed) + 1);
    for (uint32_t i = p->nack_head; i != p->nack_tail; i++)
        CHECK_MEM(&q->nack[i & q->due_mask], &p->nack[i & p->due_mask],
                  offsetof(struct mrc_nack_due, timed) + 1);
    CHECK_EQ(q->ack_due, p->ack_due);
    CHECK_EQ(q->nak_due, p->nak_due);
    CHECK_EQ(q->nak_syndrome, p->nak_syndrome);
    CHECK_EQ(q->nak_psn.v, p->nak_psn.v);
    CHECK_EQ(q->ack_ev, p->ack_ev);
    CHECK_EQ(q->sack_trigger_bytes, p->sack_trigger_bytes);
    CHECK_EQ(q->prev_ar, p->prev_ar);
    CHECK_EQ(q->any_received, p->any_received);
    CHECK_EQ(q->stale_duplicates, p->stale_duplicates);
    CHECK_EQ(q->msn_done, p->msn_done);
}

static void rx_same_qp(const struct mrc_qp *q, const struct mrc_qp *p)
{
    CHECK_MEM(&q->stats, &p->stats, sizeof p->stats);
    CHECK_EQ(q->attr.state, p->attr.state);
    rx_same_due(&q->resp, &p->resp);
    CHECK_EQ(q->resp.rq_head, p->resp.rq_head);
    CHECK_EQ(q->resp.stash_count, p->resp.stash_count);
    CHECK_EQ(q->resp.rqmsn_done, p->resp.rqmsn_done);
    CHECK_MEM(&q->resp.rxev, &p->resp.rxev, sizeof p->resp.rxev);
    CHECK_MEM(&q->resp.rx.cack, &p->resp.rx.cack,
              sizeof p->resp.rx - offsetof(struct mrc_rxtrack, cack));
    CHECK_EQ(q->resp.gap_told, p->resp.gap_told);
}

static void rx_same(struct rx_world *w)
{
    struct mrc_engine *const a = w->r[0].s[1].e;
    struct mrc_engine *const b = w->r[1].s[1].e;
    CHECK_MEM(b->env.drops, a->env.drops, sizeof a->env.drops);
    CHECK_MEM(&b->env.rx, &a->env.rx, sizeof a->env.rx);
    CHECK_MEM(rig_buf(&w->r[1].s[1], RIG_RW), rig_buf(&w->r[0].s[1], RIG_RW), RIG_BUF);
    for (int k = 0; k < 2; k++)
        rx_same_qp(mrc_engine_qp(b, w->qpn[k]), mrc_engine_qp(a, w->qpn[k]));
    CHECK_EQ(mrc_engine_deadline(b), mrc_engine_deadline(a));
    CHECK_EQ(mrc_engine_tx_pending(b), mrc_engine_tx_pending(a));
    struct mrc_async_event ev[2];
    memset(ev, 0, sizeof ev);
    while (mrc_engine_async_take(a, &ev[0]) == 1) {
        CHECK_EQ(mrc_engine_async_take(b, &ev[1]), 1);
        CHECK_MEM(&ev[1], &ev[0], sizeof ev[0]);
        CHECK(mrc_engine_async_ack(a, 1) == MRC_OK && mrc_engine_async_ack(b, 1) == MRC_OK);
    }
    CHECK_EQ(mrc_engine_async_any(b), false);
    struct mrc_wc wc[2];
    memset(wc, 0, sizeof wc);
    while (mrc_cq_poll(a, 0, &wc[0], 1) == 1) {
        CHECK_EQ(mrc_cq_poll(b, 0, &wc[1], 1), 1);
        CHECK_MEM(&wc[1], &wc[0], sizeof wc[0]);
    }
    CHECK_EQ(mrc_cq_poll(b, 0, &wc[1], 1), 0);
}

/* The answers, most rounds a part of them. */
static void rx_answers(struct rx_world *w)
{
    struct mrc_tx_pkt tx[2][RIG_BURST];
    const size_t most = rx_below(w, 3) == 0 ? RIG_BURST : rx_below(w, 4);
    memset(tx, 0, sizeof tx);
    const size_t n = mrc_engine_tx(w->r[0].s[1].e, tx[0], most, w->r[0].now);
    CHECK_EQ(mrc_engine_tx(w->r[1].s[1].e, tx[1], most, w->r[1].now), n);
    for (size_t i = 0; i < n; i++) {
        CHECK_EQ(tx[1][i].ev, tx[0][i].ev);
        CHECK_EQ(tx[1][i].hdr_len, tx[0][i].hdr_len);
        CHECK_MEM(tx[1][i].hdr, tx[0][i].hdr, sizeof tx[0][i].hdr);
        CHECK_MEM(tx[1][i].tail, tx[0][i].tail, tx[0][i].tail_len);
    }
}

/* -> packets received by both queue pairs of one receiver */
static uint64_t rx_run(uint64_t seed, uint32_t faults)
{
    static struct rx_world w;
    void *mem[2];
    rx_open(&w, seed, mem);
    uint64_t received = 0;
    for (int round = 0; round < RX_ROUNDS && t_failures == 0; round++) {
        rx_life(&w);
        const struct mrc_qp *q = rig_qp(&w.r[0].s[1]);
        if (q->attr.state == MRC_QPS_ERR || rx_below(&w, 50) == 0) {
            received += q->stats.packets_received;
            rx_rebirth(&w);
        }
        rx_deliver(&w, rx_batch(&w, faults));
        rx_same(&w);
        rx_answers(&w);
    }
    received += rig_qp(&w.r[0].s[1])->stats.packets_received;
    rx_close(&w, mem);
    return received;
}

TEST(short_rx__whatever_comes)
{
    uint64_t received = 0;
    for (uint64_t seed = 1; seed <= RX_WORLDS && t_failures == 0; seed++)
        received += rx_run(seed, (uint32_t)(seed % 9));
    CHECK(received > (uint64_t)RX_WORLDS * RX_ROUNDS * RX_BATCH / 8);
}

/* ---- what it costs ---- */

static uint64_t rx_summed; /* bytes under a CRC */

static uint32_t rx_counting_crc(uint32_t reg, const uint8_t *p, size_t n)
{
    rx_summed += n;
    return mrc_crc32_portable(reg, p, n);
}

/* Bytes that one CRC over each packet takes. */
static uint64_t rx_due(const struct rx_world *w, size_t n)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += 40 + 8 + w->wire[1][i].rx.len - MRC_ICRC_LEN;
    return sum;
}

/* B.15: whoever sends what is not as expected gets one look at each packet, as without short cut.
 */
static void rx_one_look(bool broken)
{
    static struct rx_world w;
    void *mem[2];
    rx_open(&w, 0, mem);
    w.psn[0] = w.psn[1] = w.r[0].start_psn;
    for (int k = 0; k < 2; k++)
        for (int i = 0; i < 2; i++)
            mrc_engine_qp(w.r[i].s[1].e, w.qpn[k])->attr.mode = MRC_MODE_MRC;
    w.len = RIG_MTU;
    for (size_t n = 0; n < RX_BATCH; n++) {
        const int k = broken ? 0 : (int)(n % 2);
        rx_forge(&w, n, k, MRC_OP_WRITE_MIDDLE, (uint32_t)n, RIG_RW);
        if (broken && n % 3 != 0)
            w.wire[1][n].bytes[100] ^= 1;
    }
    w.r[1].s[1].e->env.crc = rx_counting_crc;
    rx_summed = 0;
    rx_deliver(&w, RX_BATCH);
    CHECK(rx_summed <= rx_due(&w, RX_BATCH));
    CHECK_EQ(w.r[1].s[1].e->env.drops[MRC_DROP_ICRC], broken ? RX_BATCH * 2 / 3 : 0);
    rx_close(&w, mem);
}

TEST(short_rx__queue_pairs_that_take_turns_cost_one_crc_each) { rx_one_look(false); }

TEST(short_rx__broken_packets_cost_one_crc_each) { rx_one_look(true); }
