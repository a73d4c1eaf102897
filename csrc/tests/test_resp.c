/* SPDX-License-Identifier: BSD-2-Clause */
/* The responder packet by packet: what is accepted (MRC B.3), when a SACK is due and what it says
 * (B.4), transport ACKs and NAKs (B.6). */
#include "resp_rig.h"
#include "t.h"

#define SACK (resp_first(MRC_OP_SACK))
#define ACK (resp_first(MRC_OP_ACK))

/* Nominal size of a full Write packet of this rig (E.1): UDP length + 40. */
enum { FULL = 8 + 32 + RIG_MTU + 4 + 40 };

/* ---- B.3: what is accepted ---- */

TEST(resp__data_is_placed_in_any_order)
{
    resp_open(false);
    static const uint32_t order[] = {5, 0, 3, 1, 4, 2};
    for (size_t k = 0; k < 6; k++)
        resp_only(order[k]);
    for (uint32_t i = 0; i < 6; i++)
        for (uint32_t b = 0; b < RIG_MTU; b++)
            CHECK_EQ(resp_buf()[i * RIG_MTU + b], (RESP_FIRST + i) ^ 0x80);
    CHECK_EQ(resp_qp()->resp.rx.cack.v, RESP_FIRST + 5);
    resp_close();
}

TEST(resp__the_window_has_edges)
{
    resp_open(false);
    resp_only(RESP_WINDOW - 1); /* e = MPR x 128 */
    CHECK_EQ(resp_qp()->stats.packets_received, 1);
    resp_take();
    resp_only(RESP_WINDOW); /* one more: H8 */
    CHECK_EQ(resp_qp()->stats.packets_received, 1);
    CHECK_EQ(resp_take(), 1);
    CHECK(resp.out[0].opcode == MRC_OP_NACK);
    CHECK_EQ(resp.out[0].nack_reason, MRC_NACK_PSN_OOR_WINDOW);
    CHECK_EQ(resp.out[0].cack_psn, RESP_FIRST + RESP_WINDOW);
    resp_only(RESP_WINDOW - 1 + (1 << 22) - 1); /* still near enough to be honest */
    CHECK_EQ(resp_take(), 1);
    resp_only(RESP_WINDOW - 1 + (1 << 22));
    CHECK_EQ(resp_take(), 0);
    CHECK_EQ(resp_drops(MRC_DROP_PSN_WINDOW), 2);
    CHECK_EQ(resp_drops(MRC_DROP_PSN_STALE), 1);
    resp_close();
}

TEST(resp__a_duplicate_is_answered_and_leaves_no_trace)
{
    resp_open(false);
    resp_begin();
    resp_only(2); /* above a gap; makes nothing due */
    const uint64_t bytes = resp_qp()->resp.rx.rcvd_bytes;
    for (uint32_t i = 0; i <= 2; i += 2) {
        struct mrc_pkt p = resp_pkt(i, MRC_OP_WRITE_ONLY);
        struct rig_pkt q;
        rig_forge(&resp.r, 1, &p, 0x77, &q);
        rig_deliver(&resp.r, 1, &q);
        CHECK_EQ(resp_take(), 1);
        CHECK(SACK->opcode != 0 && SACK->cack_psn == RESP_FIRST);
        CHECK(resp_buf()[i * RIG_MTU] != 0x77);
    }
    CHECK_EQ(resp_qp()->resp.rx.rcvd_bytes, bytes);
    CHECK_EQ(resp_qp()->stats.packets_received, 2);
    CHECK_EQ(resp_qp()->stats.duplicates_received, 2);
    CHECK_EQ(resp_qp()->resp.rx.ooo_count, 1);
    resp_close();
}

TEST(resp__a_duplicate_that_asks_gets_its_transport_ack)
{
    resp_open(false);
    resp_begin();
    struct mrc_pkt p = resp_pkt(0, MRC_OP_WRITE_ONLY);
    p.a = p.rtx = true;
    resp_give(&p);
    CHECK_EQ(resp_take(), 2);
    CHECK(SACK->opcode != 0 && ACK->opcode != 0 && ACK->psn == RESP_FIRST);
    /* Above a gap nothing can be acknowledged yet; it is not forgotten. */
    resp_only(2);
    p = resp_pkt(2, MRC_OP_WRITE_ONLY);
    p.a = p.rtx = true;
    resp_give(&p);
    resp_take();
    CHECK(ACK->opcode == 0);
    resp_only(1);
    resp_take();
    CHECK(ACK->opcode != 0 && ACK->psn == RESP_FIRST + 2);
    resp_close();
}

/* H35: what lies further back than a window was dealt with long ago. */
TEST(resp__old_duplicates_are_answered_now_and_then)
{
    resp_open(false);
    for (uint32_t i = 0; i <= 2 * RESP_WINDOW; i++)
        resp_only(i);
    resp_take();
    size_t answers = 0;
    for (uint32_t n = 0; n < 640; n++) {
        resp_only(RESP_WINDOW - 1);
        answers += resp_take();
        CHECK(resp.n == 0 || SACK->cack_psn == RESP_FIRST + 2 * RESP_WINDOW);
    }
    CHECK_EQ(answers, 10);
    resp_only(RESP_WINDOW); /* within a window: each of them */
    CHECK_EQ(resp_take(), 1);
    resp_only(RESP_WINDOW);
    CHECK_EQ(resp_take(), 1);
    resp_close();
}

TEST(resp__received_bytes_are_nominal_and_of_new_packets)
{
    resp_open(false);
    struct mrc_pkt p = resp_pkt(0, MRC_OP_WRITE_ONLY);
    p.a = true;
    resp_give(&p); /* E.1: payload, pad, headers, iCRC, UDP, and 40 */
    resp_take();
    CHECK_EQ(SACK->rcvd_bytes, (FULL + 255) / 256);
    p = resp_pkt(1, MRC_OP_WRITE_ONLY);
    p.payload_len = 1; /* padded to 4 */
    p.ts = true;
    p.a = true;
    resp_give(&p);
    CHECK_EQ(resp_qp()->resp.rx.rcvd_bytes, FULL + 8 + 36 + 4 + 4 + 40);
    resp_give(&p);
    resp_only(RESP_WINDOW + 50); /* refused */
    p = resp_pkt(3, MRC_OP_WRITE_ONLY);
    resp_give_as(&p, RIG_EV0, RIG_TRIMMED << 2);
    resp_take();
    CHECK_EQ(SACK->rcvd_bytes, (FULL + 92 + 255) / 256);
    CHECK_EQ(resp_qp()->resp.rx.rcvd_bytes, FULL + 92);
    resp_close();
}

TEST(resp__packets_of_the_wrong_length_are_dropped)
{
    static const struct {
        uint8_t op;
        uint32_t len;
        bool good;
    } c[] = {{MRC_OP_WRITE_FIRST, RIG_MTU - 1, false},
             {MRC_OP_WRITE_MIDDLE, 0, false},
             {MRC_OP_WRITE_FIRST, RIG_MTU + 1, false},
             {MRC_OP_WRITE_LAST, 0, false},
             {MRC_OP_WRITE_LAST, RIG_MTU + 1, false},
             {MRC_OP_WRITE_ONLY, RIG_MTU + 1, false},
             {MRC_OP_WRITE_ONLY, 0, true},
             {MRC_OP_WRITE_LAST, 1, true},
             {MRC_OP_WRITE_MIDDLE, RIG_MTU, true}};
    for (size_t k = 0; k < sizeof c / sizeof *c; k++) {
        resp_open(false);
        struct mrc_pkt p = resp_pkt(0, c[k].op);
        p.payload_len = c[k].len;
        resp_give(&p);
        CHECK_EQ(resp_drops(MRC_DROP_PAYLOAD), c[k].good ? 0 : 1);
        CHECK_EQ(resp_qp()->stats.packets_received, c[k].good ? 1 : 0);
        resp_close();
    }
}

/* Field report 45: the region allows it, the queue pair does not. */
TEST(resp__a_queue_pair_without_remote_write_takes_none)
{
    resp_open(false);
    const struct mrc_qp_attr a = {.access = MRC_ACCESS_LOCAL_WRITE};
    CHECK_EQ(resp_modify(&a, MRC_QP_ACCESS), MRC_OK);
    resp_only(0);
    (void)resp_take();
    CHECK(ACK->opcode != 0 && ACK->syndrome == MRC_AETH_NAK_REMOTE_ACCESS);
    CHECK_EQ(resp_buf()[0], 0x5A);
    resp_close();
}

/* Field report 44: nothing that is refused is ever reported as here, or done. */
TEST(resp__a_refused_packet_is_not_recorded)
{
    resp_open(false);
    resp_begin();
    struct mrc_pkt p = resp_pkt(1, MRC_OP_WRITE_ONLY);
    p.r_key ^= 0x100;
    p.a = true;
    resp_give(&p);
    CHECK_EQ(resp_take(), 1);
    CHECK_EQ(ACK->syndrome, MRC_AETH_NAK_REMOTE_ACCESS);
    CHECK_EQ(ACK->psn, RESP_FIRST + 1); /* H32 */
    CHECK_EQ(resp_qp()->resp.rx.cack.v, RESP_FIRST);
    CHECK(resp_qp()->attr.state == MRC_QPS_ERR);
    CHECK_EQ(resp_qp()->stats.error, MRC_WC_LOC_QP_OP_ERR);
    /* H32: later packets are not processed; the NAK is repeated, in case it was lost. */
    resp_only(1);
    CHECK_EQ(resp_take(), 1);
    CHECK_EQ(ACK->syndrome, MRC_AETH_NAK_REMOTE_ACCESS);
    CHECK_EQ(resp_qp()->stats.packets_received, 1);
    resp_close();
}

/* ---- B.4: when ---- */

/* Trigger 1, H7: each packet counts as at least 1024 bytes; >= the threshold. */
TEST(resp__the_threshold_makes_a_sack_due)
{
    static const uint32_t thresholds[] = {0, 16384, 4096, 4097, 1024};
    static const uint32_t packets[] = {16, 16, 4, 5, 1};
    for (size_t k = 0; k < 5; k++) {
        resp_open(false);
        const struct mrc_qp_attr a = {.sack_threshold = thresholds[k]};
        CHECK_EQ(resp_modify(&a, MRC_QP_SACK), MRC_OK); /* at once, in RTS */
        resp_begin();
        for (uint32_t round = 0; round < 3; round++)
            for (uint32_t i = 1; i <= packets[k]; i++) {
                resp_only(round * packets[k] + i);
                CHECK_EQ(resp_take(), i == packets[k] ? 1 : 0);
            }
        resp_close();
    }
}

TEST(resp__any_sack_begins_the_count_anew)
{
    resp_open(false);
    resp_begin();
    for (uint32_t i = 1; i < 16; i++)
        resp_only(i);
    CHECK_EQ(resp_take(), 0);
    struct mrc_pkt probe = {.opcode = MRC_OP_PROBE, .dqp = resp.r.s[1].qpn, .ftype = 1};
    resp_give(&probe);
    resp_only(16); /* would have been the sixteenth; still told by the same SACK */
    CHECK_EQ(resp_take(), 1);
    CHECK(SACK->pr && SACK->cack_psn == RESP_FIRST + 16);
    for (uint32_t i = 17; i < 32; i++) {
        resp_only(i);
        CHECK_EQ(resp_take(), 0);
    }
    resp_only(32);
    CHECK_EQ(resp_take(), 1);
    resp_close();
}

TEST(resp__ar_is_answered_at_once)
{
    resp_open(false);
    resp_begin();
    struct mrc_pkt p = resp_pkt(1, MRC_OP_WRITE_FIRST);
    resp_give(&p);
    CHECK_EQ(resp_take(), 0);
    p = resp_pkt(2, MRC_OP_WRITE_LAST);
    p.a = true;
    resp_give(&p);
    CHECK_EQ(resp_take(), 2);
    CHECK(resp.out[0].opcode == MRC_OP_SACK); /* H15 */
    CHECK(resp.out[1].opcode == MRC_OP_ACK);
    CHECK(SACK->mark == MRC_MARK_NONE && !SACK->rtx && !SACK->pr);
    resp_close();
}

TEST(resp__a_mark_is_answered_at_once_with_skip)
{
    for (int outer = 0; outer < 2; outer++) {
        resp_open(false);
        resp_begin();
        const struct mrc_pkt p = resp_pkt(1, MRC_OP_WRITE_ONLY);
        struct rig_pkt q;
        rig_forge(&resp.r, 1, &p, 1, &q);
        q.rx.sport = (uint16_t)(RIG_EV0 + 2);
        rig_seal(&resp.r, 1, &q);
        q.rx.tclass = outer ? 2 : 3;
        q.rx.outer_ce = outer;
        rig_deliver(&resp.r, 1, &q);
        CHECK_EQ(resp_take(), 1);
        CHECK(SACK->mark == MRC_MARK_SKIP && SACK->entropy == RIG_EV0 + 2);
        CHECK_EQ(resp_qp()->stats.ce_received, 1);
        resp_close();
    }
}

TEST(resp__a_retransmission_is_echoed)
{
    resp_open(false);
    resp_begin();
    struct mrc_pkt p = resp_pkt(1, MRC_OP_WRITE_ONLY);
    p.rtx = true;
    resp_give_as(&p, RIG_EV0 + 1, 2);
    resp_only(2); /* the one after it has no news, and does not hide the echo */
    CHECK_EQ(resp_take(), 1);
    CHECK(SACK->rtx && SACK->entropy == RIG_EV0 + 1);
    CHECK_EQ(resp_acked(SACK), RESP_FIRST + 1);
    resp_close();
}

/* Over a wide window one SACK is not enough: the rest has the same trigger and so the same echo,
 * and gives the mark no second time. */
TEST(resp__the_rest_of_a_report_echoes_and_does_not_mark_again)
{
    resp_open(false);
    resp_begin();
    for (uint32_t i = 2; i < 15; i++)
        resp_only(60 * i);
    struct mrc_pkt p = resp_pkt(70, MRC_OP_WRITE_ONLY);
    p.rtx = true;
    resp_give_as(&p, RIG_EV0 + 1, 3);
    CHECK(resp_take() > 5);
    for (size_t i = 0; i < resp.n; i++) {
        CHECK(resp.out[i].rtx && resp.out[i].entropy == RIG_EV0 + 1);
        CHECK_EQ(resp_acked(&resp.out[i]), RESP_FIRST + 70);
        CHECK_EQ(resp.out[i].mark, i == 0 ? MRC_MARK_SKIP : MRC_MARK_NONE);
    }
    resp_close();
}

TEST(resp__a_probe_is_answered_at_once)
{
    resp_open(false);
    resp_begin();
    for (uint32_t i = 2; i < 15; i++)
        resp_only(60 * i);
    struct mrc_pkt probe = {.opcode = MRC_OP_PROBE,
                            .dqp = resp.r.s[1].qpn,
                            .probe_id = 0xBEEF,
                            .tx_timestamp = 0x1234,
                            .ftype = 1};
    resp_give_as(&probe, RIG_EV0 + 3, 3);
    CHECK(resp_take() > 1);
    const struct mrc_pkt *s = SACK;
    CHECK(s->pr && s->probe_id == 0xBEEF && s->tx_timestamp == 0x1234);
    CHECK(s->entropy == RIG_EV0 + 3 && s->mark == MRC_MARK_SKIP && !s->rtx);
    CHECK(s->cack_psn == RESP_FIRST && s->ooo_count == 13 &&
          s->rcvd_bytes == (14 * FULL + 255) / 256);
    /* What follows answers no probe, and names a packet that the first part told of. */
    s = resp_answer(MRC_OP_SACK, 1);
    CHECK(!s->pr);
    CHECK_EQ(resp_acked(s), RESP_FIRST + 120);
    resp_close();
}

/* B.11: the answer shows what the tracker holds at that moment, as any SACK does. */
TEST(resp__a_probe_is_told_the_present_bitmap)
{
    resp_open(false);
    const struct mrc_pkt probe = {
        .opcode = MRC_OP_PROBE, .dqp = resp.r.s[1].qpn, .probe_id = 7, .ftype = 1};
    resp_begin();
    resp_only(2);
    resp_only(4);
    (void)resp_take();
    resp_give(&probe);
    CHECK_EQ(resp_take(), 1);
    CHECK(SACK->pr && SACK->cack_psn == RESP_FIRST && SACK->sack_offset == 1);
    CHECK_EQ(SACK->sack_bitmap, 0xA); /* though it was told before */
    CHECK_EQ(SACK->ooo_count, 2);
    resp_only(3);
    (void)resp_take();
    resp_give(&probe);
    CHECK_EQ(resp_take(), 1);
    CHECK_EQ(SACK->sack_bitmap, 0xE);
    resp_only(1); /* and what it closes */
    (void)resp_take();
    resp_give(&probe);
    CHECK_EQ(resp_take(), 1);
    CHECK(SACK->cack_psn == RESP_FIRST + 4 && SACK->sack_bitmap == 0 && SACK->ooo_count == 0);
    CHECK_EQ(SACK->rcvd_bytes, (5 * FULL + 255) / 256);
    resp_close();
}

/* Trigger 6. */
TEST(resp__a_second_sack_once_the_gap_behind_an_ar_closes)
{
    resp_open(false);
    resp_begin();
    struct mrc_pkt p = resp_pkt(4, MRC_OP_WRITE_ONLY);
    p.a = true;
    resp_give(&p);
    CHECK_EQ(resp_take(), 1);
    resp_only(2);
    resp_only(3);
    CHECK_EQ(resp_take(), 0);
    resp_only(1);
    CHECK_EQ(resp_take(), 2); /* and the transport ACK */
    CHECK(SACK->cack_psn == RESP_FIRST + 4 && SACK->ooo_count == 0);
    resp_only(6);
    resp_only(5);
    CHECK_EQ(resp_take(), 0); /* a gap without an AR behind it: nothing */
    resp_close();
}

TEST(resp__the_first_packet_is_answered_at_once)
{
    resp_open(false);
    resp_only(3);
    CHECK_EQ(resp_take(), 1);
    CHECK_EQ(SACK->cack_psn, RESP_FIRST - 1);
    resp_only(0);
    CHECK_EQ(resp_take(), 0);
    resp_close();
}

/* ---- B.4: what ---- */

TEST(resp__a_sack_says_what_arrived)
{
    resp_open(false);
    resp_begin();
    resp_only(2); /* 1 is missing */
    resp_only(4);
    struct mrc_pkt p = resp_pkt(5, MRC_OP_WRITE_ONLY);
    p.a = p.ts = true;
    p.tx_timestamp = 0xABCD;
    p.tsr = true; /* H22: reflected whatever it means */
    resp_give_as(&p, RIG_EV0 + 1, 2);
    CHECK_EQ(resp_take(), 1);
    const struct mrc_pkt *s = SACK;
    CHECK_EQ(s->psn, s->cack_psn);
    CHECK_EQ(s->cack_psn, RESP_FIRST);
    CHECK_EQ((uint32_t)s->ack_psn_offset, 5);
    CHECK_EQ((uint32_t)s->sack_offset, 1); /* H36, H40 */
    CHECK_EQ(s->sack_bitmap, 0x1A);        /* 2, 4, 5 */
    CHECK_EQ(s->ooo_count, 3);
    CHECK_EQ(s->tx_timestamp, 0xABCD);
    CHECK_EQ(s->entropy, RIG_EV0 + 1);
    CHECK(s->mpr == 0 && s->cc_type == 0 && s->rcv_cwnd_pen == 0 && !s->restore_cwnd);
    CHECK_EQ(s->dqp, resp.r.s[0].qpn);
    CHECK_EQ(s->spdcid, resp.r.s[1].qpn & 0xFFFF); /* H5 */
    CHECK_EQ(s->dpdcid, resp.r.s[0].qpn & 0xFFFF);
    CHECK_EQ(resp.out_tclass[0], 46 << 2); /* CONTROL, Not-ECT */
    CHECK(!s->a && !s->ts);
    resp_close();
}

/* H36: while all fits the base is cack + 1; else the lowest that no SACK has told, or such that bit
 * 63 is the newest. */
TEST(resp__the_base_of_the_bitmap)
{
    resp_open(false);
    resp_begin();
    struct mrc_pkt p = resp_pkt(64, MRC_OP_WRITE_ONLY);
    p.a = true;
    resp_give(&p);
    resp_take();
    CHECK(SACK->sack_offset == 1 && SACK->sack_bitmap == (uint64_t)1 << 63);
    p = resp_pkt(65, MRC_OP_WRITE_ONLY);
    p.a = true;
    resp_give(&p);
    resp_take();
    CHECK(SACK->sack_offset == 2 && SACK->sack_bitmap == (uint64_t)3 << 62);
    resp_only(10);
    p = resp_pkt(200, MRC_OP_WRITE_ONLY);
    p.a = true;
    resp_give(&p);
    CHECK_EQ(resp_take(), 2); /* from the one not told, then up to the newest */
    CHECK_EQ((uint32_t)SACK->sack_offset, 10);
    CHECK_EQ((uint32_t)resp_answer(MRC_OP_SACK, 1)->sack_offset, 200 - 63);
    CHECK((resp_answer(MRC_OP_SACK, 1)->sack_bitmap >> 63) == 1);
    CHECK_EQ((uint32_t)SACK->ack_psn_offset, 200); /* the trigger is in it in any case */
    resp_close();
}

TEST(resp__sack_offset_is_at_least_one) /* H40 */
{
    resp_open(false);
    struct mrc_pkt p = resp_pkt(0, MRC_OP_WRITE_ONLY);
    p.a = true;
    resp_give(&p); /* nothing is out of order */
    (void)resp_take();
    CHECK_EQ((uint32_t)SACK->sack_offset, 1);
    CHECK_EQ(SACK->sack_bitmap, 0);
    resp_close();
}

/* ADR 0032: a SACK is made when it leaves. */
TEST(resp__triggers_of_a_burst_share_a_sack)
{
    resp_open(false);
    for (uint32_t i = 0; i < 64; i++)
        resp_only(i);
    CHECK_EQ(resp_take(), 1);
    CHECK_EQ(SACK->cack_psn, RESP_FIRST + 63);
    resp_close();
}

/* ---- B.6 ---- */

TEST(resp__transport_acks_are_cumulative)
{
    resp_open(false);
    for (uint32_t i = 1; i < 6; i++) { /* 0 is missing; all ask */
        struct mrc_pkt p = resp_pkt(i, MRC_OP_WRITE_ONLY);
        p.a = true;
        resp_give(&p);
        resp_take();
        CHECK(ACK->opcode == 0 && SACK->opcode != 0);
    }
    struct mrc_pkt p = resp_pkt(6, MRC_OP_WRITE_FIRST);
    resp_give(&p);
    resp_only(0);
    resp_take();
    CHECK_EQ(resp_count(MRC_OP_ACK), 1);
    CHECK_EQ(ACK->syndrome, MRC_AETH_ACK);
    CHECK_EQ(ACK->psn, RESP_FIRST + 6); /* and all before */
    CHECK_EQ(ACK->aeth_msn, 6);         /* the seventh message has only begun */
    CHECK_EQ(resp_take(), 0);
    resp_close();
}

/* B.13: whatever the order of arrival, what a transport ACK covers lies in memory. */
TEST(resp__an_acknowledged_byte_is_placed)
{
    uint32_t seed = 3;
    for (uint32_t round = 0; round < 50; round++) {
        uint32_t order[32];
        resp_open(false);
        for (uint32_t i = 0; i < 32; i++)
            order[i] = i;
        for (uint32_t i = 31; i > 0; i--) {
            seed = seed * 1664525 + 1013904223;
            const uint32_t k = (seed >> 8) % (i + 1);
            const uint32_t x = order[i];
            order[i] = order[k];
            order[k] = x;
        }
        for (uint32_t n = 0; n < 32; n++) {
            struct mrc_pkt p = resp_pkt(order[n], MRC_OP_WRITE_ONLY);
            p.a = order[n] % 3 == 0;
            resp_give(&p);
            (void)resp_take();
            if (ACK->opcode == 0)
                continue;
            for (uint32_t i = 0; i <= ACK->psn - RESP_FIRST; i++) {
                uint8_t want[RIG_MTU];
                memset(want, (int)((RESP_FIRST + i) ^ 0x80), sizeof want);
                CHECK_MEM(resp_buf() + (size_t)i * RIG_MTU, want, sizeof want); /* to the last */
            }
        }
        resp_close();
    }
}

TEST(resp__without_ar_no_transport_ack)
{
    resp_open(false);
    for (uint32_t i = 0; i < 200; i++)
        resp_only(i);
    resp_take();
    CHECK_EQ(resp_count(MRC_OP_ACK), 0);
    CHECK_EQ(resp_count(MRC_OP_SACK), 1);
    resp_close();
}
