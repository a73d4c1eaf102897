/* SPDX-License-Identifier: BSD-2-Clause */
/* Immediates at the responder (MRC B.8): order, what they consume, how long their message is, how
 * many may be under way, and numbers that lie. */
#include "resp_rig.h"
#include "t.h"

#define ACK (resp_first(MRC_OP_ACK))

static struct mrc_wc wc[RIG_CQ];

static int polled(void) { return mrc_cq_poll(resp_engine(), 0, wc, RIG_CQ); }

static struct mrc_pkt imm_pkt(uint32_t i, uint8_t op, uint16_t rqmsn)
{
    struct mrc_pkt p = resp_pkt(i, op);
    p.rqmsn = rqmsn;
    p.imm = 0xA0000000u + i;
    p.dmalen = 0xDEAD; /* H21: nobody believes it */
    return p;
}

static void imm_only(uint32_t i, uint16_t rqmsn)
{
    const struct mrc_pkt p = imm_pkt(i, MRC_OP_WRITE_ONLY_IMM, rqmsn);
    resp_give(&p);
}

/* ---- order and content ---- */

TEST(resp_imm__delivered_in_send_order_behind_all_earlier_data)
{
    resp_open(false);
    resp_receives(4);
    imm_only(5, 3);
    imm_only(1, 1);
    imm_only(3, 2);
    CHECK_EQ(polled(), 0);
    resp_only(0); /* a plain write: a barrier as well */
    CHECK_EQ(polled(), 1);
    CHECK(wc[0].imm == 0xA0000001u && wc[0].wr_id == 0);
    resp_only(4);
    CHECK_EQ(polled(), 0);
    resp_only(2);
    CHECK_EQ(polled(), 2);
    CHECK(wc[0].imm == 0xA0000003u && wc[0].wr_id == 1);
    CHECK(wc[1].imm == 0xA0000005u && wc[1].wr_id == 2);
    CHECK_EQ(resp_load()->imm_used, 0);
    resp_close();
}

TEST(resp_imm__completion_says_what_came)
{
    resp_open(false);
    resp_receives(2);
    struct mrc_pkt p = imm_pkt(0, MRC_OP_WRITE_ONLY_IMM, 1);
    p.payload_len = 77;
    p.se = true;
    resp_give(&p);
    p = imm_pkt(1, MRC_OP_WRITE_ONLY_IMM, 2);
    p.payload_len = 0;
    p.m_bit = true; /* H2: either bit */
    resp_give(&p);
    CHECK_EQ(polled(), 2);
    CHECK(wc[0].opcode == MRC_WC_RECV_RDMA_WITH_IMM && wc[0].status == MRC_WC_SUCCESS);
    CHECK(wc[0].flags == (MRC_WC_WITH_IMM | MRC_WC_SOLICITED));
    CHECK(wc[1].flags == (MRC_WC_WITH_IMM | MRC_WC_SOLICITED));
    CHECK(wc[0].byte_len == 77 && wc[1].byte_len == 0);
    CHECK(wc[0].imm == 0xA0000000u && wc[1].imm == 0xA0000001u);
    CHECK_EQ(wc[0].qpn, resp.r.s[1].qpn);
    resp_close();
}

/* The length is what arrived, in whatever order: messages say where they end, dmalen says nothing
 * (H21). Field report 7. */
TEST(resp_imm__byte_len_is_the_message_in_every_order)
{
    /* plain 0..1 | plain 2 | immediate 3..6, 40 bytes in the last | immediate 7 | immediate 8..9 */
    static const uint8_t op[10] = {
        MRC_OP_WRITE_FIRST,  MRC_OP_WRITE_LAST,    MRC_OP_WRITE_ONLY,     MRC_OP_WRITE_FIRST,
        MRC_OP_WRITE_MIDDLE, MRC_OP_WRITE_MIDDLE,  MRC_OP_WRITE_LAST_IMM, MRC_OP_WRITE_ONLY_IMM,
        MRC_OP_WRITE_FIRST,  MRC_OP_WRITE_LAST_IMM};
    uint32_t seed = 1;
    for (uint32_t round = 0; round < 200; round++) {
        uint32_t order[10];
        for (uint32_t i = 0; i < 10; i++)
            order[i] = i;
        for (uint32_t i = 9; i > 0 && round > 0; i--) { /* round 0: as they were sent */
            seed = seed * 1664525 + 1013904223;
            const uint32_t k = (seed >> 8) % (i + 1);
            const uint32_t x = order[i];
            order[i] = order[k];
            order[k] = x;
        }
        resp_open(false);
        resp_receives(3);
        for (uint32_t n = 0; n < 10; n++) {
            const uint32_t i = order[n];
            struct mrc_pkt p = imm_pkt(i, op[i], (uint16_t)(i < 7 ? 1 : i < 8 ? 2 : 3));
            if (i == 6)
                p.payload_len = 40;
            resp_give(&p);
        }
        CHECK_EQ(polled(), 3);
        CHECK_EQ(wc[0].byte_len, 3 * RIG_MTU + 40);
        CHECK_EQ(wc[1].byte_len, RIG_MTU);
        CHECK_EQ(wc[2].byte_len, 2 * RIG_MTU);
        resp_close();
    }
}

/* A message that never ends lends no length to the one packet after it. */
TEST(resp_imm__byte_len_of_a_single_packet_is_its_own)
{
    resp_open(false);
    resp_receives(1);
    const struct mrc_pkt p = resp_pkt(0, MRC_OP_WRITE_FIRST);
    resp_give(&p);
    imm_only(1, 1);
    CHECK_EQ(polled(), 1);
    CHECK_EQ(wc[0].byte_len, RIG_MTU);
    resp_close();
}

/* Longer than the window, and across the wrap of the PSN: still counted right. */
TEST(resp_imm__byte_len_of_a_message_longer_than_the_window)
{
    rig_open(&resp.r, 0xFFFC00, MRC_CC_FIXED, false);
    resp_receives(1);
    const uint32_t n = 3 * RESP_WINDOW;
    for (uint32_t i = 0; i < n; i++) {
        struct mrc_pkt p = imm_pkt(0, i == 0 ? MRC_OP_WRITE_FIRST : MRC_OP_WRITE_MIDDLE, 9);
        if (i == n - 1)
            p = imm_pkt(0, MRC_OP_WRITE_LAST_IMM, 9);
        p.psn = (0xFFFC00 + (i ^ 1)) & 0xFFFFFF; /* in swapped pairs */
        if (i == n - 2)
            p.opcode = MRC_OP_WRITE_LAST_IMM; /* goes to the last place */
        if (i == n - 1)
            p.opcode = MRC_OP_WRITE_MIDDLE;
        resp_give(&p);
    }
    CHECK_EQ(polled(), 1);
    CHECK_EQ(wc[0].byte_len, n * RIG_MTU);
    resp_close();
}

/* ---- limits ---- */

/* H14: as many as were agreed wait; one more ends the connection. */
TEST(resp_imm__one_more_than_agreed)
{
    resp_open(false);
    resp_receives(1);
    for (uint32_t i = 1; i <= RIG_WIMM; i++)
        imm_only(i, (uint16_t)i);
    CHECK(resp_qp()->attr.state == MRC_QPS_RTS);
    (void)resp_take();
    imm_only(RIG_WIMM + 1, RIG_WIMM + 1);
    CHECK_EQ(resp_drops(MRC_DROP_WIMM_LIMIT), 1);
    CHECK(resp_qp()->attr.state == MRC_QPS_ERR);
    CHECK_EQ(resp_qp()->stats.error, MRC_WC_LOC_QP_OP_ERR);
    (void)resp_take();
    CHECK(ACK->opcode != 0 && ACK->syndrome == MRC_AETH_NAK_INVALID_REQUEST);
    CHECK_EQ(ACK->psn, RESP_FIRST + RIG_WIMM + 1);
    CHECK_EQ(polled(), 1); /* receives are flushed (B.13) */
    CHECK(wc[0].status == MRC_WC_WR_FLUSH_ERR);
    resp_close();
}

/* Those that have not arrived count as well: their number gives them away. */
TEST(resp_imm__the_number_tells_of_those_under_way)
{
    resp_open(false);
    resp_receives(4);
    imm_only(0, 100);
    CHECK_EQ(polled(), 1);
    imm_only(20, 100 + RIG_WIMM); /* the last of as many as may be */
    CHECK(resp_qp()->attr.state == MRC_QPS_RTS);
    imm_only(21, 100 + RIG_WIMM + 1);
    CHECK_EQ(resp_drops(MRC_DROP_WIMM_LIMIT), 1);
    CHECK(resp_qp()->attr.state == MRC_QPS_ERR);
    resp_close();
}

TEST(resp_imm__no_receive_is_an_error_at_both_ends)
{
    resp_open(false);
    resp_receives(1);
    imm_only(0, 1);
    struct mrc_pkt p = imm_pkt(1, MRC_OP_WRITE_ONLY_IMM, 2);
    p.a = true;
    resp_give(&p);
    CHECK_EQ(polled(), 1);
    CHECK_EQ(resp_drops(MRC_DROP_NO_RECV), 1);
    CHECK(resp_qp()->attr.state == MRC_QPS_ERR);
    CHECK_EQ(resp_qp()->stats.error, MRC_WC_LOC_QP_OP_ERR);
    (void)resp_take();
    /* It was asked for, and cack has passed it; but it is not done (field report 44). */
    CHECK_EQ(resp_count(MRC_OP_ACK), 1);
    CHECK_EQ(ACK->syndrome, MRC_AETH_NAK_REMOTE_OPERATION);
    CHECK_EQ(ACK->psn, RESP_FIRST + 1);
    resp_close();
}

TEST(resp_imm__a_plain_write_takes_no_receive)
{
    resp_open(false);
    for (uint32_t i = 0; i < 20; i++)
        resp_only(i);
    CHECK(resp_qp()->attr.state == MRC_QPS_RTS);
    CHECK_EQ(polled(), 0);
    resp_close();
}

/* ---- numbers that lie ---- */

/* One immediate at `psn` numbered `number`: is it believed? */
static bool believed(uint32_t psn, uint16_t number)
{
    const uint64_t lies = resp_drops(MRC_DROP_RQMSN);
    const uint64_t taken = resp_qp()->stats.packets_received;
    imm_only(psn, number);
    CHECK(resp_qp()->attr.state == MRC_QPS_RTS);
    CHECK_EQ(resp_qp()->stats.packets_received - taken + resp_drops(MRC_DROP_RQMSN) - lies, 1);
    return resp_drops(MRC_DROP_RQMSN) == lies;
}

TEST(resp_imm__numbers_must_fit_their_places)
{
    resp_open(false);
    resp_receives(8);
    CHECK(believed(4, 0xFFFE));              /* where the peer begins is its business (H18) */
    CHECK(!believed(6, 0xFFFE));             /* the same number again */
    CHECK(!believed(6, 0xFFFD));             /* out of order */
    CHECK(!believed(6, 0x0001));             /* three immediates in two packets */
    CHECK_EQ(resp_buf()[6 * RIG_MTU], 0x5A); /* nothing placed of what is refused */
    CHECK(!believed(2, 0xFFFF));             /* before it, with a later number */
    CHECK(!believed(2, 0xFFFB));             /* three in the two packets up to it */
    CHECK(believed(2, 0xFFFD));
    CHECK(believed(6, 0x0000)); /* across the wrap, one still missing */
    CHECK(!believed(5, 0xFFFE));
    CHECK(!believed(5, 0x0000));
    CHECK(believed(5, 0xFFFF)); /* here it is */
    for (uint32_t i = 0; i < 4; i++)
        if (i != 2)
            resp_only(i);
    CHECK_EQ(polled(), 4);
    /* All delivered: the next is judged by the last of them. */
    CHECK(!believed(8, 0x0000));
    CHECK(!believed(8, 0x8000));
    CHECK(!believed(8, 0x0003)); /* 7 and 8 cannot hold three */
    CHECK(believed(8, 0x0002));
    CHECK(believed(7, 0x0001));
    CHECK_EQ(polled(), 2);
    resp_close();
}

/* As many receives are taken as there is room for, and the caller is told. */
TEST(resp_imm__receives_beyond_the_queue_are_not_taken)
{
    uint64_t ids[20];
    resp_open(false);
    for (uint64_t i = 0; i < 20; i++)
        ids[i] = i;
    CHECK_EQ(mrc_qp_post_recv(resp_engine(), resp.r.s[1].qpn, ids, 10), 10);
    CHECK_EQ(mrc_qp_post_recv(resp_engine(), resp.r.s[1].qpn, ids + 10, 10), 6); /* of sixteen */
    CHECK_EQ(mrc_qp_post_recv(resp_engine(), resp.r.s[1].qpn, ids + 16, 4), MRC_ERR_FULL);
    uint64_t got;
    for (uint64_t i = 0; i < 16; i++)
        CHECK(mrc_resp_take_recv(&resp_qp()->resp, &got) && got == i);
    CHECK(!mrc_resp_take_recv(&resp_qp()->resp, &got));
    resp_close();
}
