/* SPDX-License-Identifier: BSD-2-Clause */
/* Every field of every header at and beyond its limits, with an iCRC that fits; and which of two
 * faults counts when a packet has both (B.15). */
#include "hostile_snap.h"

static size_t bytes_of_answers(struct rig *r, int from, size_t *count)
{
    static struct mrc_tx_pkt tx[512];
    size_t bytes = 0;
    *count = mrc_engine_tx(r->s[from].e, tx, sizeof tx / sizeof *tx, r->now);
    for (size_t i = 0; i < *count; i++)
        bytes += mrc_tx_udp_len(&tx[i]);
    return bytes;
}

static uint64_t drops_in_all(const struct rig_side *s)
{
    uint64_t n = 0;
    for (uint32_t d = 0; d < MRC_DROP_COUNT; d++)
        n += s->e->env.drops[d];
    return n;
}

/* An outstanding message each way, so that feedback meets something. */
static void open_busy(struct rig *r)
{
    static struct mrc_tx_pkt tx[RIG_BURST];
    static const uint64_t receives[16];
    rig_open(r, 0xFFFFF0, MRC_CC_NSCC, true);
    for (int i = 0; i < 2; i++) {
        CHECK_EQ(mrc_qp_post_recv(r->s[i].e, r->s[i].qpn, receives, 16), 16);
        CHECK_EQ(rig_post(r, i, 0, 8 * RIG_MTU, MRC_WR_RDMA_WRITE), 1);
        CHECK(mrc_engine_tx(r->s[i].e, tx, RIG_BURST, r->now) > 0);
    }
}

/* A packet is taken, or dropped for one reason. Dropped: nothing of ours is different but what a
 * NAK ends, and the answer, if any, is one packet no larger. */
static void survive(struct rig *r, const struct rig_pkt *p)
{
    static uint8_t clean[RIG_BUF];
    struct rig_side *s = &r->s[1];
    const uint64_t before = drops_in_all(s);
    const struct mrc_rxtrack rx = rig_qp(s)->resp.rx;
    memset(clean, 0x5A, sizeof clean);
    rig_deliver(r, 1, p);
    CHECK(rig_guards_ok(r));
    const uint64_t dropped = drops_in_all(s) - before;
    CHECK(dropped <= 1);
    size_t count = 0;
    const size_t bytes = bytes_of_answers(r, 1, &count);
    if (dropped == 0)
        return;
    CHECK_MEM(rig_buf(s, RIG_RW), clean, RIG_BUF);
    CHECK(memcmp(&rx, &rig_qp(s)->resp.rx, sizeof rx) == 0);
    CHECK(count <= 1);
    CHECK(bytes <= p->rx.udp_len);
}

/* Bytes of BTH and extension headers. */
static size_t header_bytes(uint8_t op)
{
    uint8_t b[MRC_HDR_MAX];
    const struct mrc_pkt p = {.opcode = op};
    return mrc_wire_encode(b, &p);
}

TEST(hostile_fields__every_byte_of_every_header)
{
    static const uint8_t values[] = {0x00, 0x01, 0x7F, 0x80, 0xFF};
    for (size_t k = 0; k < sizeof all_ops; k++)
        for (size_t at = 0; at < header_bytes(all_ops[k]); at++) {
            struct rig r;
            open_busy(&r);
            for (size_t v = 0; v < sizeof values; v++) {
                struct rig_pkt p = forged_op(&r, 1, all_ops[k]);
                p.bytes[at] = values[v];
                rig_seal(&r, 1, &p);
                survive(&r, &p);
                memset(rig_buf(&r.s[1], RIG_RW), 0x5A, RIG_BUF);
            }
            rig_close(&r);
        }
}

/* Whole words: what one byte does not reach, above all addresses near 2^64 and PSNs half round. */
TEST(hostile_fields__every_word_of_every_header)
{
    static const uint64_t values[] = {
        0, 1, 0x7FFFFFFFFFFFFFFF, 0x8000000000000000, UINT64_MAX, UINT64_MAX - RIG_MTU + 1};
    for (size_t k = 0; k < sizeof all_ops; k++)
        for (size_t width = 2; width <= 8; width *= 2)
            for (size_t at = 1; at + width <= header_bytes(all_ops[k]); at++) {
                struct rig r;
                open_busy(&r);
                for (size_t v = 0; v < sizeof values / sizeof *values; v++) {
                    uint8_t word[8];
                    struct rig_pkt p = forged_op(&r, 1, all_ops[k]);
                    mrc_put64(word, values[v]);
                    memcpy(p.bytes + at, v < 3 ? word + 8 - width : word, width);
                    rig_seal(&r, 1, &p);
                    survive(&r, &p);
                    memset(rig_buf(&r.s[1], RIG_RW), 0x5A, RIG_BUF);
                }
                rig_close(&r);
            }
}

/* Field report 43: va + length passes 2^64 within the packet, and not one byte of it is stored. */
TEST(hostile_fields__addresses_that_wrap)
{
    struct rig r;
    for (uint32_t back = 0; back <= RIG_MTU; back++) {
        rig_open(&r, 7, MRC_CC_FIXED, false);
        struct mrc_pkt f = right(&r, 1, MRC_OP_WRITE_ONLY);
        f.va = UINT64_MAX - back;
        const struct rig_pkt p = forged(&r, 1, &f);
        survive(&r, &p);
        CHECK_EQ(mrc_engine_drops(r.s[1].e, MRC_DROP_ACCESS), 1);
        rig_close(&r);
    }
}

/* What a receiver has no business with: H2, H5, H6, H18, H21, H22, A.4. */
TEST(hostile_fields__what_is_not_looked_at)
{
    for (int how = 0; how < 9; how++) {
        struct rig r;
        struct mrc_wc wc;
        const uint64_t id = 5;
        rig_open(&r, 7, MRC_CC_FIXED, false);
        CHECK_EQ(mrc_qp_post_recv(r.s[1].e, r.s[1].qpn, &id, 1), 1);
        struct mrc_pkt f = right(&r, 1, MRC_OP_WRITE_ONLY_IMM);
        f.ts = true;
        f.ftype = 1;
        f.rqmsn = 1;
        f.msn = 1;
        f.imm = 0x01020304;
        switch (how) {
        case 0: f.p_key = 0x1234; break;
        case 1: f.var_res = 0xFF; break;
        case 2: f.inv_res = 0x0F; break;
        case 3: f.msn = 0xABCD; break;
        case 4: f.dmalen = 0xFFFFFFFF; break;
        case 5: f.tsr = true; break;
        case 6: f.ftype = 9; break;
        case 7: f.m_bit = true; break;
        default: f.dmalen = 0; break;
        }
        const struct rig_pkt p = forged(&r, 1, &f);
        rig_deliver(&r, 1, &p);
        CHECK_EQ(drops_in_all(&r.s[1]), 0);
        CHECK_EQ(rig_buf(&r.s[1], RIG_RW)[RIG_MTU - 1], 0xEE);
        CHECK_EQ(mrc_cq_poll(r.s[1].e, 0, &wc, 1), 1);
        CHECK_EQ(wc.imm, 0x01020304);
        CHECK_EQ(wc.byte_len, RIG_MTU);
        CHECK_EQ((wc.flags & MRC_WC_SOLICITED) != 0, how == 7); /* m or se: H2 */
        rig_close(&r);
    }
}

TEST(hostile_fields__ids_of_feedback_are_not_looked_at) /* H5, A.7 */
{
    struct rig r;
    struct mrc_tx_pkt tx[RIG_BURST];
    rig_open(&r, 7, MRC_CC_FIXED, false);
    CHECK_EQ(rig_post(&r, 0, 0, 2 * RIG_MTU, MRC_WR_RDMA_WRITE), 1);
    CHECK_EQ(mrc_engine_tx(r.s[0].e, tx, RIG_BURST, r.now), 2);
    struct mrc_pkt f = right(&r, 0, MRC_OP_SACK);
    f.psn = 0x555555;
    f.cack_psn = 8;
    f.spdcid = 0xDEAD;
    f.dpdcid = 0xBEEF;
    f.cc_type = 15;
    f.cc_fl = 15;
    f.mpr = 1;          /* smaller than ours; dynamic MPR is off */
    f.sack_offset = -3; /* H40 */
    f.sack_bitmap = 7;
    const uint32_t window = rig_qp(&r.s[0])->req.window;
    const struct rig_pkt p = forged(&r, 0, &f);
    rig_deliver(&r, 0, &p);
    CHECK_EQ(drops_in_all(&r.s[0]), 0);
    CHECK_EQ(rig_qp(&r.s[0])->req.tx.unack.v, 8);
    CHECK_EQ(rig_qp(&r.s[0])->req.window, window);
    rig_close(&r);
}

/* ---- B.15: of several faults the first in its order counts ---- */

/* 5 to 8 of the list: faults from the last to the first, each added to those before. */
TEST(hostile_order__the_first_fault_is_the_one_counted)
{
    struct rig r;
    open_busy(&r);
    struct mrc_pkt f = right(&r, 1, MRC_OP_WRITE_MIDDLE);
    f.payload_len = RIG_MTU - 1; /* 8: per opcode */
    struct rig_pkt p = forged(&r, 1, &f);
    dropped(&r, 1, &p, MRC_DROP_PAYLOAD);

    const uint8_t self = r.s[0].addr[15];
    r.s[0].addr[15] = 99; /* 7: whoever that is */
    rig_seal(&r, 1, &p);
    dropped(&r, 1, &p, MRC_DROP_PEER);

    p.bytes[6] ^= 0x55; /* 6: for no QP */
    rig_seal(&r, 1, &p);
    dropped(&r, 1, &p, MRC_DROP_QPN);

    p.rx.len = 12 + 16 + 4; /* 5: headers cut */
    rig_seal(&r, 1, &p);
    dropped(&r, 1, &p, MRC_DROP_SHORT);

    p.bytes[0] = 0xC0; /* 5: opcode before the length of its headers */
    rig_seal(&r, 1, &p);
    dropped(&r, 1, &p, MRC_DROP_OPCODE);

    p.bytes[1] |= 3; /* 5: version before all that it might change */
    rig_seal(&r, 1, &p);
    dropped(&r, 1, &p, MRC_DROP_TVER);
    r.s[0].addr[15] = self;

    p.bytes[9] ^= 1; /* 4: nothing is believed without the iCRC */
    dropped(&r, 1, &p, MRC_DROP_ICRC);

    p.rx.udp_len++; /* 2: the datagram itself */
    dropped(&r, 1, &p, MRC_DROP_UDP_LEN);
    rig_close(&r);
}

/* 3: before the iCRC, which a trimmed packet has not, and whatever the lengths say (A.13.6). */
TEST(hostile_order__trimmed_comes_first)
{
    struct rig r;
    size_t count = 0;
    open_busy(&r);
    struct rig_pkt p = forged_op(&r, 1, MRC_OP_WRITE_MIDDLE);
    p.rx.tclass = RIG_TRIMMED << 2;
    p.rx.len = 16;
    const struct mrc_rxtrack rx = rig_qp(&r.s[1])->resp.rx;
    rig_deliver(&r, 1, &p);
    CHECK_EQ(drops_in_all(&r.s[1]), 0);
    CHECK_EQ(rig_qp(&r.s[1])->stats.trims_received, 1);
    CHECK(memcmp(&rx, &rig_qp(&r.s[1])->resp.rx, sizeof rx) == 0); /* B.7: no bit, no bytes */
    CHECK_EQ(rig_buf(&r.s[1], RIG_RW)[0], 0x5A);
    (void)bytes_of_answers(&r, 1, &count);
    CHECK_EQ(count, 1);
    rig_close(&r);
}

/* 6: endpoint operations need no QP, and a QP's packets none of them. */
TEST(hostile_order__qp_2_is_the_endpoint)
{
    struct rig r;
    size_t count = 0;
    open_busy(&r);
    struct mrc_pkt f = right(&r, 1, MRC_OP_EP_REQUEST);
    f.dqp = MRC_QPN_EP;
    f.ep_op = MRC_EP_OP_EV_PROBE;
    struct rig_pkt p = forged(&r, 1, &f);
    rig_deliver(&r, 1, &p);
    (void)bytes_of_answers(&r, 1, &count);
    CHECK_EQ(count, 1);
    for (size_t k = 0; k < sizeof all_ops; k++) {
        f = right(&r, 1, all_ops[k]);
        f.dqp = MRC_QPN_EP;
        p = forged(&r, 1, &f);
        if (!is_ep(all_ops[k]))
            dropped(&r, 1, &p, MRC_DROP_QPN);
    }
    rig_close(&r);
}
