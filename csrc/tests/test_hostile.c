/* SPDX-License-Identifier: BSD-2-Clause */
/* Bad packets: each reason to drop one moves its own counter and nothing else, whatever is cut,
 * lengthened or out of range, and legitimate traffic completes afterwards. What a connected peer
 * can do with good ones is in test_hostile_peer.c. */
#include "hostile_snap.h"

/* ---- traffic that must go on ---- */

static void still_works(struct rig *r)
{
    const uint64_t ids[2] = {71, 72};
    struct mrc_wc wc[RIG_CQ];
    for (int i = 0; i < 2; i++)
        (void)mrc_cq_poll(r->s[i].e, 0, wc, RIG_CQ);
    for (int from = 0; from < 2; from++) {
        uint8_t *out = rig_buf(&r->s[from], RIG_RW);
        for (uint32_t i = 0; i < 8000; i++)
            out[8000 * (uint32_t)from + i] = (uint8_t)(i * 7 + (uint32_t)from + 1);
        CHECK_EQ(mrc_qp_post_recv(r->s[1 - from].e, r->s[1 - from].qpn, ids, 2), 2);
        CHECK_EQ(rig_post(r, from, 8000 * (uint64_t)from, 8000, MRC_WR_RDMA_WRITE), 1);
        CHECK_EQ(rig_post(r, from, 100, 0, MRC_WR_RDMA_WRITE_WITH_IMM), 1);
    }
    CHECK(rig_settle(r));
    for (int i = 0; i < 2; i++) {
        const int n = mrc_cq_poll(r->s[i].e, 0, wc, RIG_CQ);
        CHECK_EQ(n, 3); /* two sends, one immediate */
        for (int k = 0; k < n; k++)
            CHECK(wc[k].status == MRC_WC_SUCCESS);
    }
    CHECK_MEM(rig_buf(&r->s[1], RIG_RW), rig_buf(&r->s[0], RIG_RW), 16000);
    CHECK(rig_guards_ok(r));
}

static void open_pair(struct rig *r) { rig_open(r, 0xFFFFF0, MRC_CC_NSCC, false); }

static void close_pair(struct rig *r)
{
    still_works(r);
    rig_close(r);
}

/* ---- bytes: short, tver, opcode, length, icrc, udp_len ---- */

TEST(hostile__every_packet_cut_at_every_length)
{
    struct rig r;
    open_pair(&r);
    for (size_t k = 0; k < sizeof all_ops; k++) {
        const struct rig_pkt whole = forged_op(&r, 1, all_ops[k]);
        struct rig_pkt p = whole;
        for (p.rx.len = 0; p.rx.len < whole.rx.len; p.rx.len++) {
            p.rx.udp_len = whole.rx.udp_len; /* by a switch that corrects nothing */
            dropped(&r, 1, &p, MRC_DROP_UDP_LEN);
            p.rx.udp_len = (uint16_t)(p.rx.len + 8); /* by one that does, but for the iCRC */
            dropped(&r, 1, &p, p.rx.len < 16 ? MRC_DROP_SHORT : MRC_DROP_ICRC);
        }
    }
    close_pair(&r);
}

TEST(hostile__cut_by_a_forger_who_mends_the_icrc)
{
    struct rig r;
    open_pair(&r);
    for (size_t k = 0; k < sizeof all_ops; k++) {
        const uint8_t op = all_ops[k];
        if ((mrc_opcode_flags(op) & MRC_OPF_LAST) != 0)
            continue; /* a shorter last packet is a right one */
        const struct rig_pkt whole = forged_op(&r, 1, op);
        for (uint32_t len = 0; len < whole.rx.len; len++) {
            struct rig_pkt p = whole;
            p.rx.len = len;
            rig_seal(&r, 1, &p);
            const enum mrc_drop why = dropped_somehow(&r, 1, &p);
            CHECK(why == MRC_DROP_SHORT || (is_data(op) && why == MRC_DROP_PAYLOAD));
        }
    }
    close_pair(&r);
}

TEST(hostile__bytes_behind_a_packet_of_headers)
{
    struct rig r;
    open_pair(&r);
    for (size_t k = 0; k < sizeof all_ops; k++) {
        if (is_data(all_ops[k]))
            continue;
        for (uint32_t more = 1; more <= 64; more++) {
            struct rig_pkt p = forged_op(&r, 0, all_ops[k]);
            p.rx.len += more;
            rig_seal(&r, 0, &p);
            dropped(&r, 0, &p, MRC_DROP_LENGTH);
        }
    }
    close_pair(&r);
}

TEST(hostile__pad_that_contradicts_the_length)
{
    struct rig r;
    open_pair(&r);
    for (size_t k = 0; k < sizeof all_ops; k++) {
        for (uint8_t pad = 1; pad < 4; pad++) {
            struct mrc_pkt f = right(&r, 1, all_ops[k]);
            f.payload_len = 0;
            struct rig_pkt p = forged(&r, 1, &f);
            p.bytes[1] = (uint8_t)(p.bytes[1] | pad << 4);
            rig_seal(&r, 1, &p);
            dropped(&r, 1, &p, MRC_DROP_LENGTH);
        }
    }
    close_pair(&r);
}

TEST(hostile__versions_and_opcodes_that_do_not_exist)
{
    struct rig r;
    open_pair(&r);
    for (size_t k = 0; k < sizeof all_ops; k++) {
        for (uint8_t tver = 1; tver < 16; tver++) {
            struct mrc_pkt f = right(&r, 1, all_ops[k]);
            f.tver = tver;
            const struct rig_pkt p = forged(&r, 1, &f);
            dropped(&r, 1, &p, MRC_DROP_TVER);
        }
    }
    for (uint32_t op = 0; op < 256; op++) {
        struct rig_pkt p = forged_op(&r, 1, MRC_OP_SACK);
        p.bytes[0] = (uint8_t)op;
        rig_seal(&r, 1, &p);
        if (mrc_opcode_flags((uint8_t)op) == 0)
            dropped(&r, 1, &p, MRC_DROP_OPCODE);
    }
    close_pair(&r);
}

TEST(hostile__any_flipped_bit_is_an_icrc_error)
{
    struct rig r;
    open_pair(&r);
    for (size_t k = 0; k < sizeof all_ops; k++) {
        const struct rig_pkt whole = forged_op(&r, 1, all_ops[k]);
        for (uint32_t bit = 0; bit < whole.rx.len * 8; bit++) {
            struct rig_pkt p = whole;
            if (bit / 8 == 4)
                continue; /* var-res may change on the way (A.13.3) */
            p.bytes[bit / 8] = (uint8_t)(p.bytes[bit / 8] ^ 1u << (bit & 7));
            rig_deliver(&r, 1, &p);
        }
        CHECK_EQ(mrc_engine_drops(r.s[1].e, MRC_DROP_ICRC), (whole.rx.len - 1) * 8);
        r.s[1].e->env.drops[MRC_DROP_ICRC] = 0;
        struct rig_pkt p = whole;
        p.rx.sport ^= 1; /* the half of the EV that is covered */
        dropped(&r, 1, &p, MRC_DROP_ICRC);
        r.s[1].e->env.drops[MRC_DROP_ICRC] = 0;
    }
    close_pair(&r);
}

TEST(hostile__udp_length_beside_the_truth)
{
    static const uint16_t lengths[] = {0, 7, 8, 9, 23, 24, 0x8000, 0xFFFF};
    struct rig r;
    open_pair(&r);
    struct rig_pkt p = forged_op(&r, 1, MRC_OP_WRITE_ONLY);
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        p.rx.udp_len = lengths[i];
        dropped(&r, 1, &p, MRC_DROP_UDP_LEN);
    }
    close_pair(&r);
}

/* ---- who: qpn, qp_state, peer, ep_unknown ---- */

TEST(hostile__queue_pairs_that_are_nobody)
{
    struct rig r;
    open_pair(&r);
    for (size_t k = 0; k < sizeof all_ops; k++) {
        for (uint32_t i = 0; i < 24 + 3; i++) {
            struct mrc_pkt f = right(&r, 1, all_ops[k]);
            f.dqp = i < 24 ? f.dqp ^ 1u << i : i - 24;
            if (is_ep(all_ops[k]) && f.dqp == MRC_QPN_EP)
                continue; /* right: test_ep.c */
            const struct rig_pkt p = forged(&r, 1, &f);
            dropped(&r, 1, &p, is_ep(all_ops[k]) ? MRC_DROP_EP_UNKNOWN : MRC_DROP_QPN);
        }
    }
    close_pair(&r);
}

TEST(hostile__number_of_a_former_life)
{
    struct rig r;
    open_pair(&r);
    const uint32_t old = r.s[1].qpn;
    RIG_NEED(mrc_qp_destroy(r.s[1].e, old) == r.s[1].qp_mem);
    do { /* the same index again */
        r.s[1].qpn = (uint32_t)mrc_qp_create(r.s[1].e, r.s[1].qp_mem, &rig_qp_init);
        if (((r.s[1].qpn ^ old) & 3) != 0)
            RIG_NEED(mrc_qp_destroy(r.s[1].e, r.s[1].qpn) == r.s[1].qp_mem);
    } while (((r.s[1].qpn ^ old) & 3) != 0);
    rig_reset(&r, 0);
    rig_bring_up(&r, 0, MRC_QPS_RTS);
    rig_bring_up(&r, 1, MRC_QPS_RTS);
    for (size_t k = 0; k < sizeof all_ops; k++) {
        struct mrc_pkt f = right(&r, 1, all_ops[k]);
        f.dqp = old;
        const struct rig_pkt p = forged(&r, 1, &f);
        dropped(&r, 1, &p, is_ep(all_ops[k]) ? MRC_DROP_EP_UNKNOWN : MRC_DROP_QPN);
    }
    close_pair(&r);
}

TEST(hostile__states_that_take_no_such_packet)
{
    struct rig r;
    open_pair(&r);
    for (int state = MRC_QPS_RESET; state <= MRC_QPS_RTR; state++) {
        rig_reset(&r, 1);
        rig_bring_up(&r, 1, (enum mrc_qp_state)state);
        for (size_t k = 0; k < sizeof all_ops; k++) {
            const uint8_t op = all_ops[k];
            const bool taken = is_data(op) || op == MRC_OP_PROBE; /* from RTR on */
            const struct rig_pkt p = forged_op(&r, 1, op);
            if (!taken || state < MRC_QPS_RTR)
                dropped(&r, 1, &p, is_ep(op) ? MRC_DROP_EP_UNKNOWN : MRC_DROP_QP_STATE);
        }
    }
    rig_reset(&r, 0); /* it knew another number of its peer */
    rig_reset(&r, 1);
    rig_bring_up(&r, 0, MRC_QPS_RTS);
    rig_bring_up(&r, 1, MRC_QPS_RTS);
    close_pair(&r);
}

TEST(hostile__error_state_takes_nothing_and_says_so_once_a_packet)
{
    struct rig r;
    struct mrc_tx_pkt tx[RIG_BURST];
    struct mrc_qp_attr err = {.state = MRC_QPS_ERR};
    open_pair(&r);
    CHECK(mrc_qp_modify(r.s[1].e, r.s[1].qpn, &err, MRC_QP_STATE, r.now) == MRC_OK);
    for (size_t k = 0; k < sizeof all_ops; k++) {
        const uint8_t op = all_ops[k];
        const bool told = is_data(op) || op == MRC_OP_PROBE;
        const struct rig_pkt p = forged_op(&r, 1, op);
        if (!told)
            dropped(&r, 1, &p, is_ep(op) ? MRC_DROP_EP_UNKNOWN : MRC_DROP_QP_STATE);
        for (int n = 0; n < 100; n++)
            rig_deliver(&r, 1, &p);
        CHECK_EQ(mrc_engine_tx(r.s[1].e, tx, RIG_BURST, r.now), told ? 1 : 0);
    }
    CHECK(rig_guards_ok(&r) && rig_buf(&r.s[1], RIG_RW)[0] == 0x5A);
    rig_close(&r);
}

TEST(hostile__strangers)
{
    struct rig r;
    open_pair(&r);
    for (size_t k = 0; k < sizeof all_ops; k++) {
        struct rig_pkt p = forged_op(&r, 1, all_ops[k]);
        const uint8_t self = r.s[0].addr[15];
        r.s[0].addr[15] = 99; /* sealed as from there */
        rig_seal(&r, 1, &p);
        r.s[0].addr[15] = self;
        dropped(&r, 1, &p, is_ep(all_ops[k]) ? MRC_DROP_EP_UNKNOWN : MRC_DROP_PEER);
    }
    close_pair(&r);
}

/* ---- data: psn_stale, payload ---- */

TEST(hostile__data_far_outside_the_window)
{
    const int32_t window = RIG_MPR * MRC_MPR_UNIT;
    const int32_t far[] = {window + (1 << 22), 0x7FFFFF, -0x7FFFFF, -(1 << 22) - 1};
    struct rig r;
    open_pair(&r);
    for (size_t i = 0; i < sizeof far / sizeof *far; i++) {
        struct mrc_pkt f = right(&r, 1, MRC_OP_WRITE_ONLY);
        f.psn = mrc_psn_add(rig_qp(&r.s[1])->resp.rx.cack, far[i]).v;
        const struct rig_pkt p = forged(&r, 1, &f);
        dropped(&r, 1, &p, MRC_DROP_PSN_STALE);
    }
    close_pair(&r);
}

TEST(hostile__data_just_outside_the_window_is_refused_and_forgotten)
{
    struct rig r;
    struct mrc_tx_pkt tx[RIG_BURST];
    open_pair(&r);
    struct mrc_pkt f = right(&r, 1, MRC_OP_WRITE_ONLY);
    f.psn = mrc_psn_add(rig_qp(&r.s[1])->resp.rx.cack, RIG_MPR * MRC_MPR_UNIT + 1).v;
    const struct rig_pkt p = forged(&r, 1, &f);
    const struct mrc_rxtrack before = rig_qp(&r.s[1])->resp.rx;
    rig_deliver(&r, 1, &p);
    CHECK(memcmp(&before, &rig_qp(&r.s[1])->resp.rx, sizeof before) == 0);
    CHECK_EQ(mrc_engine_drops(r.s[1].e, MRC_DROP_PSN_WINDOW), 1);
    CHECK_EQ(mrc_engine_tx(r.s[1].e, tx, RIG_BURST, r.now), 1);
    CHECK(tx[0].hdr[0] == MRC_OP_NACK);
    CHECK_EQ(rig_qp(&r.s[1])->stats.packets_received, 0);
    close_pair(&r);
}

TEST(hostile__payload_that_opcode_or_mtu_forbid)
{
    static const struct {
        uint8_t op;
        uint16_t len;
    } bad[] = {
        {0xC6, 0},    {0xC6, 1},   {0xC6, 255}, {0xC6, 257},  {0xC7, 0},
        {0xC7, 255},  {0xC7, 512}, {0xC8, 0},   {0xC8, 257},  {0xC9, 0},
        {0xC9, 8192}, {0xCA, 257}, {0xCB, 257}, {0xCA, 8192}, {0xC7, 4096},
    };
    struct rig r;
    open_pair(&r);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct mrc_pkt f = right(&r, 1, bad[i].op);
        f.payload_len = bad[i].len;
        const struct rig_pkt p = forged(&r, 1, &f);
        dropped(&r, 1, &p, MRC_DROP_PAYLOAD);
    }
    close_pair(&r);
}

/* ---- feedback: sack_range, ack_range, nack_range ---- */

TEST(hostile__sacks_for_what_was_never_sent)
{
    static const struct {
        int32_t cack; /* after max_sent */
        int16_t ack;
        int16_t base;
        uint64_t bitmap;
    } bad[] = {
        {1, 0, 1, 0},     {1000, 0, 1, 0},         {0x7FFFFF, 0, 1, 0},   {-65537 - 8, 0, 1, 0},
        {0, 1, 1, 0},     {0, 32767, 1, 0},        {0, 0, 1, 1},          {0, 0, 1, 1ull << 63},
        {0, 0, 32767, 1}, {0, 0, -62, 3ull << 62}, {-8, 0, 1, 1ull << 8}, {-8, 0, 1, ~0ull},
        {-8, 9, 1, 0},    {-8, 0, 9, 1},
    };
    struct rig r;
    open_pair(&r);
    CHECK_EQ(rig_post(&r, 0, 0, 8 * RIG_MTU, MRC_WR_RDMA_WRITE), 1);
    struct mrc_tx_pkt tx[RIG_BURST];
    CHECK_EQ(mrc_engine_tx(r.s[0].e, tx, RIG_BURST, r.now), 8); /* lost */
    for (int pr = 0; pr < 2; pr++) {
        for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
            struct mrc_pkt f = right(&r, 0, MRC_OP_SACK);
            f.cack_psn = mrc_psn_add(rig_qp(&r.s[0])->req.tx.max_sent, bad[i].cack).v;
            f.ack_psn_offset = bad[i].ack;
            f.sack_offset = bad[i].base;
            f.sack_bitmap = bad[i].bitmap;
            f.mark = 2;
            f.rcvd_bytes = 1000;
            f.pr = pr != 0;
            if (f.pr && bad[i].ack != 0)
                continue; /* the field is a probe id then */
            const struct rig_pkt p = forged(&r, 0, &f);
            dropped(&r, 0, &p, MRC_DROP_SACK_RANGE);
        }
    }
    CHECK(rig_settle(&r));
    close_pair(&r);
}

TEST(hostile__acks_and_nacks_for_what_was_never_sent)
{
    static const int32_t ahead[] = {1, 2, 1024, 0x7FFFFF, -0x7FFFFF, -(1 << 22) - 1};
    static const uint8_t syndromes[] = {0x1F, 0x00, 0x60, 0x61, 0x62, 0x63, 0x7F, 0xFF};
    struct rig r;
    open_pair(&r);
    CHECK_EQ(rig_post(&r, 0, 0, 8 * RIG_MTU, MRC_WR_RDMA_WRITE), 1);
    struct mrc_tx_pkt tx[RIG_BURST];
    CHECK_EQ(mrc_engine_tx(r.s[0].e, tx, RIG_BURST, r.now), 8);
    for (size_t i = 0; i < sizeof ahead / sizeof *ahead; i++) {
        const uint32_t psn = mrc_psn_add(rig_qp(&r.s[0])->req.tx.max_sent, ahead[i]).v;
        for (size_t k = 0; k < sizeof syndromes; k++) {
            struct mrc_pkt f = right(&r, 0, MRC_OP_ACK);
            f.psn = psn;
            f.syndrome = syndromes[k];
            const struct rig_pkt p = forged(&r, 0, &f);
            dropped(&r, 0, &p, MRC_DROP_ACK_RANGE);
        }
        for (uint32_t reason = 0; reason < 256; reason++) {
            struct mrc_pkt f = right(&r, 0, MRC_OP_NACK);
            f.cack_psn = psn;
            f.nack_reason = (uint8_t)reason;
            const struct rig_pkt p = forged(&r, 0, &f);
            dropped(&r, 0, &p, MRC_DROP_NACK_RANGE);
        }
    }
    CHECK(rig_settle(&r));
    close_pair(&r);
}

TEST(hostile__syndromes_that_do_not_exist)
{
    struct rig r;
    open_pair(&r);
    for (uint32_t syndrome = 0; syndrome < 256; syndrome++) {
        if ((syndrome & 0x60) != 0x20 && (syndrome & 0x60) != 0x40)
            continue; /* RNR and the reserved kind (A.6) */
        struct mrc_pkt f = right(&r, 0, MRC_OP_ACK);
        f.syndrome = (uint8_t)syndrome;
        const struct rig_pkt p = forged(&r, 0, &f);
        dropped(&r, 0, &p, MRC_DROP_ACK_RANGE);
    }
    close_pair(&r);
}

/* ---- probes and trims ---- */

TEST(hostile__probes_above_the_rate)
{
    struct rig r;
    struct mrc_tx_pkt tx[RIG_BURST];
    open_pair(&r);
    const struct rig_pkt p = forged_op(&r, 1, MRC_OP_PROBE);
    for (int n = 0; n < 16; n++)
        rig_deliver(&r, 1, &p);
    CHECK_EQ(mrc_engine_drops(r.s[1].e, MRC_DROP_PROBE_RATE), 0);
    for (int n = 0; n < 1000; n++)
        dropped(&r, 1, &p, MRC_DROP_PROBE_RATE);
    CHECK_EQ(mrc_engine_tx(r.s[1].e, tx, RIG_BURST, r.now), 16);
    close_pair(&r);
}

TEST(hostile__trimmed_packets_cut_anywhere)
{
    struct rig r;
    open_pair(&r);
    for (size_t k = 0; k < sizeof all_ops; k++) {
        const bool data = is_data(all_ops[k]);
        const struct rig_pkt whole = forged_op(&r, 1, all_ops[k]);
        struct rig_pkt p = whole;
        p.rx.tclass = RIG_TRIMMED << 2;
        for (p.rx.len = 0; p.rx.len < (data ? 16 : whole.rx.len); p.rx.len++) {
            const enum mrc_drop why = dropped_somehow(&r, 1, &p);
            CHECK(why == MRC_DROP_SHORT || (!data && why == MRC_DROP_OPCODE));
        }
    }
    close_pair(&r);
}

TEST(hostile__trimmed_packets_for_nobody_or_from_strangers)
{
    struct rig r;
    open_pair(&r);
    struct mrc_pkt f = right(&r, 1, MRC_OP_WRITE_MIDDLE);
    f.dqp ^= 0x100;
    struct rig_pkt p = forged(&r, 1, &f);
    p.rx.tclass = RIG_TRIMMED_LASTHOP << 2;
    dropped(&r, 1, &p, MRC_DROP_TRIM_OFF);
    p = forged_op(&r, 1, MRC_OP_WRITE_MIDDLE);
    p.rx.tclass = RIG_TRIMMED << 2;
    p.rx.src[15] = 99;
    dropped(&r, 1, &p, MRC_DROP_PEER);
    close_pair(&r);
}
