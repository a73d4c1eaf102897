/* SPDX-License-Identifier: BSD-2-Clause */
/* A connected peer, or one who can forge its packets, that lies: wrong keys and addresses, too many
 * immediates, false reports of every kind, storms. It may end its own connection; it must not write
 * outside a region, read anything, make work without bound, or get more answers than packets. */
#include "hostile_rig.h"
#include "t.h"

enum { WINDOW = RIG_MPR * MRC_MPR_UNIT };

static struct mrc_tx_pkt tx[512];

static struct mrc_pkt fields(const struct rig *r, int to, uint8_t op)
{
    const struct rig_side *s = &r->s[to];
    struct mrc_pkt p;
    memset(&p, 0, sizeof p);
    p.opcode = op;
    p.dqp = s->qpn;
    p.psn = mrc_psn_add(rig_qp(s)->resp.rx.cack, 1).v;
    p.va = rig_va(s, RIG_RW);
    p.r_key = s->key[RIG_RW];
    p.cack_psn = rig_qp(s)->req.tx.unack.v;
    p.sack_offset = 1;
    p.syndrome = MRC_AETH_ACK;
    p.entropy = RIG_EV0;
    return p;
}

static void send(struct rig *r, int to, const struct mrc_pkt *f)
{
    struct rig_pkt p;
    rig_forge(r, to, f, 0xEE, &p);
    rig_deliver(r, to, &p);
}

static size_t answers(struct rig *r, int from)
{
    return mrc_engine_tx(r->s[from].e, tx, sizeof tx / sizeof *tx, r->now);
}

static bool untouched(const struct rig_side *s)
{
    const uint8_t *b = rig_buf(s, RIG_RW);
    for (uint32_t i = 0; i < RIG_BUF; i++)
        if (b[i] != 0x5A)
            return false;
    return true;
}

static void transfer_works(struct rig *r)
{
    struct mrc_wc wc[RIG_CQ];
    while (mrc_cq_poll(r->s[0].e, 0, wc, RIG_CQ) > 0)
        ;
    memset(rig_buf(&r->s[0], RIG_RW), 0x77, 5000);
    CHECK_EQ(rig_post(r, 0, 0, 5000, MRC_WR_RDMA_WRITE), 1);
    CHECK(rig_settle(r));
    CHECK_EQ(mrc_cq_poll(r->s[0].e, 0, wc, RIG_CQ), 1);
    CHECK(wc[0].status == MRC_WC_SUCCESS);
    CHECK_MEM(rig_buf(&r->s[1], RIG_RW), rig_buf(&r->s[0], RIG_RW), 5000);
    CHECK(rig_guards_ok(r));
}

/* ---- memory ---- */

/* Field reports 43, 44, 45: refused with a NAK, not a byte stored, nothing counted as received. */
TEST(hostile_peer__keys_and_addresses_that_give_no_access)
{
    enum { HOW = 14 };
    for (int how = 0; how < HOW; how++) {
        struct rig r;
        rig_open(&r, 5, MRC_CC_FIXED, false);
        struct mrc_pkt f = fields(&r, 1, MRC_OP_WRITE_ONLY);
        const uint64_t end = rig_va(&r.s[1], RIG_RW) + RIG_BUF;
        f.payload_len = 200;
        switch (how) {
        case 0: f.r_key ^= 0x100; break;
        case 1: f.r_key = 0; break;
        case 2: f.r_key ^= 1; break; /* another slot of the table */
        case 3: f.r_key = r.s[1].key[RIG_LOCAL], f.va = rig_va(&r.s[1], RIG_LOCAL); break;
        case 4: f.r_key = r.s[1].key[RIG_OTHER_PD], f.va = rig_va(&r.s[1], RIG_OTHER_PD); break;
        case 5: f.va -= 1; break;
        case 6: f.va = end - 199; break;
        case 7: f.va = end; break;
        case 8: f.va = UINT64_MAX - 199; break; /* va + len is 2^64 */
        case 9: f.va = UINT64_MAX; break;
        case 10: f.va = 0; break;
        case 11: f.va = end, f.payload_len = 0; break;
        case 12: f.va = UINT64_MAX, f.payload_len = 0; break;
        default: f.va -= 1, f.payload_len = 0; break;
        }
        send(&r, 1, &f);
        CHECK_EQ(mrc_engine_drops(r.s[1].e, MRC_DROP_ACCESS), 1);
        CHECK(untouched(&r.s[1]) && rig_guards_ok(&r));
        const struct mrc_qp *q = rig_qp(&r.s[1]);
        CHECK(q->stats.packets_received == 0 && q->stats.bytes_received == 0);
        CHECK(q->resp.rx.ooo_count == 0 && q->resp.rx.cack.v == 4);
        CHECK(q->attr.state == MRC_QPS_ERR);
        CHECK_EQ(answers(&r, 1), 1);
        CHECK(tx[0].hdr[0] == MRC_OP_ACK && tx[0].hdr[12] == MRC_AETH_NAK_REMOTE_ACCESS);
        rig_close(&r);
    }
}

TEST(hostile_peer__access_at_the_very_edges_is_right)
{
    struct rig r;
    rig_open(&r, 5, MRC_CC_FIXED, false);
    struct mrc_pkt f = fields(&r, 1, MRC_OP_WRITE_ONLY);
    f.va += RIG_BUF - 200;
    f.payload_len = 200;
    send(&r, 1, &f);
    f.psn++;
    f.va += 199;
    f.payload_len = 0;
    send(&r, 1, &f);
    CHECK_EQ(rig_qp(&r.s[1])->stats.packets_received, 2);
    CHECK(rig_buf(&r.s[1], RIG_RW)[RIG_BUF - 1] == 0xEE && rig_guards_ok(&r));
    rig_close(&r);
}

TEST(hostile_peer__a_copy_with_other_content_overwrites_nothing)
{
    struct rig r;
    struct rig_pkt p;
    rig_open(&r, 5, MRC_CC_FIXED, false);
    struct mrc_pkt f = fields(&r, 1, MRC_OP_WRITE_ONLY);
    f.payload_len = 100;
    send(&r, 1, &f);
    rig_forge(&r, 1, &f, 0x11, &p); /* in order, so the bit is below cack */
    rig_deliver(&r, 1, &p);
    f.psn += 2; /* above a gap */
    send(&r, 1, &f);
    rig_forge(&r, 1, &f, 0x11, &p);
    rig_deliver(&r, 1, &p);
    for (int i = 0; i < 100; i++)
        CHECK(rig_buf(&r.s[1], RIG_RW)[i] == 0xEE);
    CHECK_EQ(rig_qp(&r.s[1])->stats.duplicates_received, 2);
    rig_close(&r);
}

/* ---- immediates ---- */

/* Field report 54. */
TEST(hostile_peer__an_immediate_is_delivered_once)
{
    struct rig r;
    struct mrc_wc wc[8];
    const uint64_t ids[4] = {1, 2, 3, 4};
    rig_open(&r, 0xFFFFFE, MRC_CC_FIXED, false);
    CHECK_EQ(mrc_qp_post_recv(r.s[1].e, r.s[1].qpn, ids, 4), 4);
    struct mrc_pkt f = fields(&r, 1, MRC_OP_WRITE_ONLY_IMM);
    f.psn = (f.psn + 2) & 0xFFFFFF;
    for (int n = 0; n < 10; n++)
        send(&r, 1, &f); /* too early, and again */
    CHECK_EQ(rig_qp(&r.s[1])->resp.stash_count, 1);
    struct mrc_pkt g = fields(&r, 1, MRC_OP_WRITE_ONLY);
    send(&r, 1, &g);
    g.psn = (g.psn + 1) & 0xFFFFFF;
    send(&r, 1, &g);
    for (int n = 0; n < 10; n++)
        send(&r, 1, &f);
    CHECK_EQ(mrc_cq_poll(r.s[1].e, 0, wc, 8), 1);
    CHECK_EQ(rig_qp(&r.s[1])->resp.rq_head, 1);
    rig_close(&r);
}

TEST(hostile_peer__more_immediates_than_agreed)
{
    struct rig r;
    struct mrc_wc wc[RIG_CQ];
    uint64_t ids[16] = {0};
    rig_open(&r, 5, MRC_CC_FIXED, false);
    CHECK_EQ(mrc_qp_post_recv(r.s[1].e, r.s[1].qpn, ids, 16), 16);
    struct mrc_pkt f = fields(&r, 1, MRC_OP_WRITE_ONLY_IMM);
    for (int n = 0; n < RIG_WIMM + 1; n++) {
        f.psn++;
        f.rqmsn++;
        send(&r, 1, &f);
    }
    CHECK_EQ(mrc_engine_drops(r.s[1].e, MRC_DROP_WIMM_LIMIT), 1);
    CHECK(rig_qp(&r.s[1])->attr.state == MRC_QPS_ERR);
    CHECK_EQ(mrc_cq_poll(r.s[1].e, 0, wc, RIG_CQ), 16); /* every receive once, flushed */
    for (int i = 0; i < 16; i++)
        CHECK(wc[i].status == MRC_WC_WR_FLUSH_ERR);
    CHECK(answers(&r, 1) >= 1);
    rig_close(&r);
}

TEST(hostile_peer__an_immediate_nobody_waits_for)
{
    struct rig r;
    rig_open(&r, 5, MRC_CC_FIXED, false);
    const struct mrc_pkt f = fields(&r, 1, MRC_OP_WRITE_ONLY_IMM);
    send(&r, 1, &f);
    CHECK_EQ(mrc_engine_drops(r.s[1].e, MRC_DROP_NO_RECV), 1);
    CHECK(rig_qp(&r.s[1])->attr.state == MRC_QPS_ERR);
    rig_close(&r);
}

/* ---- reports that lie ---- */

/* B.5, B.6: whatever a SACK says, only the transport ACK completes. */
TEST(hostile_peer__a_sack_completes_nothing)
{
    struct rig r;
    struct mrc_wc wc[8];
    rig_open(&r, 5, MRC_CC_NSCC, false);
    CHECK_EQ(rig_post(&r, 0, 0, 8 * RIG_MTU, MRC_WR_RDMA_WRITE), 1);
    CHECK_EQ(answers(&r, 0), 8);
    struct mrc_pkt f = fields(&r, 0, MRC_OP_SACK);
    f.cack_psn = rig_qp(&r.s[0])->req.tx.max_sent.v;
    f.rcvd_bytes = 0x7FFFFF;
    f.ooo_count = 0x7FFF;
    send(&r, 0, &f);
    CHECK_EQ(mrc_cq_poll(r.s[0].e, 0, wc, 8), 0);
    CHECK_EQ(rig_qp(&r.s[0])->req.tail - rig_qp(&r.s[0])->req.head, 1);
    rig_close(&r);
}

/* rcvd_bytes may not be raised again and again to open the window. */
TEST(hostile_peer__received_bytes_that_jump_and_wrap)
{
    static const uint32_t steps[] = {1, 0x100, 0x7FFFFF, 0x800000, 0x800001, 0xFFFFFF};
    struct rig r;
    rig_open(&r, 5, MRC_CC_FIXED, false);
    CHECK_EQ(rig_post(&r, 0, 0, 8 * RIG_MTU, MRC_WR_RDMA_WRITE), 1);
    CHECK_EQ(answers(&r, 0), 8);
    const struct mrc_qp *q = rig_qp(&r.s[0]);
    struct mrc_pkt f = fields(&r, 0, MRC_OP_SACK);
    for (int n = 0; n < 1000; n++) {
        f.rcvd_bytes = (f.rcvd_bytes + steps[n % 6]) & 0xFFFFFF;
        send(&r, 0, &f);
        CHECK(q->req.inflight >= -(1 << 16) && q->cc->inflight == q->req.inflight);
    }
    CHECK(rig_settle(&r));
    transfer_works(&r);
    CHECK_EQ(q->cc->inflight, 0);
    rig_close(&r);
}

/* Honest otherwise, the peer lies about its window, its gaps and the paths. */
TEST(hostile_peer__window_gaps_and_marks_that_lie)
{
    for (int dynamic = 0; dynamic < 2; dynamic++) {
        struct rig r;
        rig_open(&r, 0xFFFF80, MRC_CC_NONE, dynamic != 0);
        CHECK_EQ(rig_post(&r, 0, 0, 25000, MRC_WR_RDMA_WRITE), 1);
        for (uint32_t n = 0; n < 5000; n++) {
            const struct mrc_txtrack *t = &rig_qp(&r.s[0])->req.tx;
            struct mrc_pkt f = fields(&r, 0, MRC_OP_SACK);
            (void)answers(&r, 0);
            f.mpr = (uint8_t)(n * 37);
            f.ooo_count = (uint16_t)(n * 101 & 0x7FFF);
            f.mark = n & 3;
            f.entropy = RIG_EV0 + n % (RIG_EVS + 1);
            f.pr = n % 5 == 0;
            f.probe_id = (uint16_t)(n * 1237);
            f.rcv_cwnd_pen = n & 0x7F;
            f.restore_cwnd = n % 3 == 0;
            f.sack_bitmap = n % 7 == 0 ? 0 : 1ull << (n % 20);
            send(&r, 0, &f);
            CHECK(mrc_psn_diff(t->max_sent, t->unack) <= WINDOW);
            CHECK(mrc_path_active(r.s[0].path) >= 1);
            r.now += 10 * MRC_USEC;
            mrc_engine_tick(r.s[0].e, r.now);
        }
        CHECK(rig_guards_ok(&r));
        rig_close(&r);
    }
}

/* A repeated packet from so far back that 16 bits cannot name it. */
TEST(hostile_peer__an_old_copy_is_not_reported_as_a_new_arrival)
{
    struct rig r;
    rig_open(&r, 0x20000, MRC_CC_FIXED, false);
    struct mrc_pkt f = fields(&r, 1, MRC_OP_WRITE_ONLY);
    f.a = true;
    for (int32_t back = 0x8000; back < 0x40000; back += 0x7FFB) {
        f.psn = mrc_psn_add(rig_qp(&r.s[1])->resp.rx.cack, -back).v;
        for (int k = 0; k < 64; k++) /* H35: one in so many is answered */
            send(&r, 1, &f);
        CHECK_EQ(answers(&r, 1), 2);
        CHECK(tx[0].hdr[0] == MRC_OP_SACK);
        CHECK((int16_t)mrc_get16(tx[0].hdr + MRC_BTH_LEN + 2) <= 0);
        CHECK_EQ(mrc_get64(tx[0].hdr + MRC_BTH_LEN + 20), 0);
    }
    rig_close(&r);
}

TEST(hostile_peer__naks_of_every_code)
{
    for (uint32_t syndrome = 0x60; syndrome < 0x80; syndrome++) {
        struct rig r;
        struct mrc_wc wc[8];
        rig_open(&r, 5, MRC_CC_FIXED, false);
        for (uint64_t i = 0; i < 3; i++)
            CHECK_EQ(rig_post(&r, 0, i * RIG_MTU, RIG_MTU, MRC_WR_RDMA_WRITE), 1);
        CHECK_EQ(answers(&r, 0), 3);
        struct mrc_pkt f = fields(&r, 0, MRC_OP_ACK);
        f.psn = 6;
        f.syndrome = (uint8_t)syndrome;
        send(&r, 0, &f);
        send(&r, 0, &f);
        CHECK_EQ(mrc_cq_poll(r.s[0].e, 0, wc, 8), 3); /* each request once */
        CHECK(wc[0].status != MRC_WC_SUCCESS && wc[1].status == MRC_WC_WR_FLUSH_ERR);
        CHECK(wc[2].status == MRC_WC_WR_FLUSH_ERR);
        CHECK_EQ(answers(&r, 0), 0);
        rig_close(&r);
    }
}

/* ---- storms ---- */

/* One NACK, at most one copy; none for what has arrived or left on another EV. */
TEST(hostile_peer__nack_storm)
{
    struct rig r;
    rig_open(&r, 5, MRC_CC_FIXED, false);
    CHECK_EQ(rig_post(&r, 0, 0, 32 * RIG_MTU, MRC_WR_RDMA_WRITE), 1);
    CHECK_EQ(answers(&r, 0), 32);
    struct mrc_qp *q = rig_qp(&r.s[0]);
    struct mrc_pkt sack = fields(&r, 0, MRC_OP_SACK);
    sack.cack_psn = 12;
    send(&r, 0, &sack);
    for (uint32_t n = 0; n < 20000 && q->attr.state == MRC_QPS_RTS; n++) {
        struct mrc_pkt f = fields(&r, 0, MRC_OP_NACK);
        f.cack_psn = 5 + n % 32;
        f.entropy = RIG_EV0 + n / 32 % RIG_EVS;
        f.nack_reason = (uint8_t)(n % 12 + 1);
        const uint64_t before = q->stats.packets_sent;
        const struct mrc_slot *s = mrc_txtrack_find(&q->req.tx, mrc_psn(f.cack_psn));
        const bool about = s != NULL && s->state == MRC_SLOT_INFLIGHT &&
                           mrc_path_entry(r.s[0].path, s->ev)->ev == f.entropy;
        send(&r, 0, &f);
        (void)answers(&r, 0);
        CHECK(q->stats.packets_sent - before <= (about ? 1 : 0));
        CHECK(q->req.inflight <= 1 << 20);
        CHECK(f.cack_psn > 12 || q->stats.packets_sent == before);
    }
    rig_close(&r);
}

static uint32_t storm(struct rig *r, int to, const struct mrc_pkt *f, uint32_t n)
{
    struct rig_pkt p;
    rig_forge(r, to, f, 0xEE, &p);
    for (; n > 0; n--)
        rig_deliver(r, to, &p);
    return (uint32_t)answers(r, to);
}

/* However many come in a burst, the answers are a few dozen; and one packet has two at most: a SACK
 * and a transport ACK. */
TEST(hostile_peer__answers_are_bounded)
{
    static const uint8_t ops[] = {MRC_OP_WRITE_ONLY, MRC_OP_PROBE, MRC_OP_SACK, MRC_OP_NACK,
                                  MRC_OP_ACK};
    for (size_t k = 0; k < sizeof ops; k++) {
        for (uint32_t flags = 0; flags < 8; flags++) {
            struct rig r;
            rig_open(&r, 5, MRC_CC_FIXED, false);
            struct mrc_pkt f = fields(&r, 1, ops[k]);
            f.a = (flags & 1) != 0;
            f.rtx = (flags & 2) != 0;
            f.psn += (flags & 4) != 0 ? 3 : 0; /* above a gap */
            f.nack_reason = MRC_NACK_TRIMMED;
            for (int n = 0; n < 50; n++)
                CHECK(storm(&r, 1, &f, 1) <= 2);
            CHECK(storm(&r, 1, &f, 10000) <= MRC_DUE_RING + 1);
            f.psn += WINDOW + 10;
            CHECK(storm(&r, 1, &f, 10000) <= MRC_DUE_RING + MRC_NACK_RING + 1);
            CHECK_EQ(answers(&r, 1), 0);
            rig_close(&r);
        }
    }
}

/* A late arrival is news; what lies above it was reported before. Were the walk of SACKs over a
 * wide window to begin anew, one small packet would be answered by many large ones. */
TEST(hostile_peer__a_late_packet_starts_no_walk_of_sacks)
{
    struct rig r;
    rig_open(&r, 5, MRC_CC_FIXED, false);
    struct mrc_pkt f = fields(&r, 1, MRC_OP_WRITE_ONLY);
    const uint32_t first = f.psn;
    f.rtx = true; /* answered at once */
    uint32_t sent = 0;
    uint32_t got = 0;
    for (uint32_t at = 64; at < WINDOW; at += 64) {
        f.psn = first + at;
        got += storm(&r, 1, &f, 1);
        sent++;
    }
    CHECK(got <= sent + WINDOW / 64);
    for (uint32_t at = 1; at < 60; at++) {
        f.psn = first + at;
        CHECK(storm(&r, 1, &f, 1) <= 2);
    }
    CHECK(rig_guards_ok(&r));
    rig_close(&r);
}

/* Trimmed packets carry no iCRC: one NACK each, at most, and nothing taken in. */
TEST(hostile_peer__trimmed_storm)
{
    struct rig r;
    rig_open(&r, 5, MRC_CC_FIXED, false);
    struct mrc_pkt f = fields(&r, 1, MRC_OP_WRITE_MIDDLE);
    struct rig_pkt p;
    f.payload_len = RIG_MTU;
    rig_forge(&r, 1, &f, 0xEE, &p);
    p.rx.tclass = RIG_TRIMMED << 2;
    for (int n = 0; n < 10000; n++)
        rig_deliver(&r, 1, &p);
    CHECK(answers(&r, 1) <= MRC_NACK_RING);
    CHECK_EQ(rig_qp(&r.s[1])->stats.packets_received, 0);
    CHECK(rig_qp(&r.s[1])->resp.rx.cack.v == 4 && untouched(&r.s[1]));
    transfer_works(&r);
    rig_close(&r);
}

/* Three paths denounced at once, and room for one probe: the others' timers must not be forgotten.
 * (Found by fuzz_engine.) */
TEST(hostile_peer__probes_that_do_not_fit_keep_their_timers)
{
    struct rig r;
    rig_open(&r, 5, MRC_CC_FIXED, false);
    struct mrc_pkt f = fields(&r, 0, MRC_OP_SACK);
    f.mark = MRC_MARK_ALWAYS_SKIP;
    for (uint32_t i = 0; i < 3; i++) {
        f.entropy = RIG_EV0 + i;
        send(&r, 0, &f);
        CHECK(mrc_path_state(r.s[0].path, (uint16_t)i) == MRC_EV_ASSUMED_BAD);
    }
    CHECK_EQ(mrc_engine_tx(r.s[0].e, tx, 1, r.now), 1);
    CHECK(tx[0].hdr[0] == MRC_OP_PROBE);
    CHECK(mrc_path_deadline(r.s[0].path) != MRC_NEVER);
    CHECK(mrc_engine_deadline(r.s[0].e) <= mrc_path_deadline(r.s[0].path));
    rig_close(&r);
}

/* What a QP owed before RESET is not paid by its next life. */
TEST(hostile_peer__no_answers_from_a_former_life)
{
    struct rig r;
    const struct mrc_qp_attr init = {.state = MRC_QPS_INIT, .access = 3};
    rig_open(&r, 5, MRC_CC_FIXED, false);
    struct mrc_pkt f = fields(&r, 1, MRC_OP_WRITE_ONLY);
    f.a = true;
    send(&r, 1, &f);
    f.psn += WINDOW + 1;
    send(&r, 1, &f);
    rig_reset(&r, 1);
    CHECK_EQ(mrc_qp_modify(r.s[1].e, r.s[1].qpn, &init, MRC_QP_STATE | MRC_QP_ACCESS | MRC_QP_PATH,
                           r.now),
             MRC_OK);
    CHECK_EQ(answers(&r, 1), 0);
    rig_close(&r);
}

TEST(hostile_peer__length_of_an_immediate_of_one_packet)
{
    struct rig r;
    struct mrc_wc wc;
    const uint64_t id = 1;
    rig_open(&r, 5, MRC_CC_FIXED, false);
    CHECK_EQ(mrc_qp_post_recv(r.s[1].e, r.s[1].qpn, &id, 1), 1);
    struct mrc_pkt f = fields(&r, 1, MRC_OP_WRITE_ONLY_IMM);
    f.payload_len = 100;
    f.dmalen = UINT32_MAX;
    send(&r, 1, &f);
    CHECK_EQ(mrc_cq_poll(r.s[1].e, 0, &wc, 1), 1);
    CHECK_EQ(wc.byte_len, 100);
    rig_close(&r);
}
