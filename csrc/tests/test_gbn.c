/* SPDX-License-Identifier: BSD-2-Clause */
/* Mode rc (ADR 95), each role alone: what the responder takes and says, how the requester goes
 * back, and when a queue pair may be in that mode. */
#include "req_rig.h"
#include "resp_rig.h"

#define NACK (resp_first(MRC_OP_NACK))

/* ---- the attribute ---- */

static int modify(struct rig *r, struct mrc_qp_attr a, uint32_t mask)
{
    return mrc_qp_modify(r->s[0].e, r->s[0].qpn, &a, mask, r->now);
}

TEST(gbn_attr__one_path_and_before_rtr)
{
    struct rig r;
    char said[128];
    rig_open(&r, 5, MRC_CC_FIXED, false);
    const struct mrc_qp_attr rc = {.mode = MRC_MODE_RC, .path = r.s[0].path_id, .access = 1};
    CHECK_EQ(modify(&r, rc, MRC_QP_MODE), MRC_ERR_STATE); /* both ends have agreed */
    rig_reset(&r, 0);
    CHECK_EQ(rig_qp(&r.s[0])->attr.mode, MRC_MODE_MRC);
    rig_bring_up(&r, 0, MRC_QPS_INIT);
    CHECK_EQ(modify(&r, (struct mrc_qp_attr){.mode = 2}, MRC_QP_MODE), MRC_ERR_INVAL);
    CHECK_EQ(modify(&r, rc, MRC_QP_MODE), MRC_OK);
    CHECK_EQ(modify(&r, rc, MRC_QP_PATH), MRC_ERR_INVAL); /* it has four EVs */
    CHECK(mrc_qp_refusal(r.s[0].e, r.s[0].qpn, MRC_ERR_INVAL, said, sizeof said) > 0);
    CHECK(strcmp(said, "path: mode rc has one EV, the table has several") == 0);
    struct mrc_qp_attr got;
    CHECK_EQ(mrc_qp_query(r.s[0].e, r.s[0].qpn, &got, UINT32_MAX), MRC_OK);
    CHECK_EQ(got.mode, MRC_MODE_RC);
    CHECK_EQ(modify(&r, (struct mrc_qp_attr){.mode = MRC_MODE_MRC}, MRC_QP_MODE), MRC_OK);
    CHECK_EQ(modify(&r, rc, MRC_QP_PATH), MRC_OK);
    CHECK_EQ(modify(&r, rc, MRC_QP_MODE), MRC_ERR_INVAL); /* nor the other way round */
    rig_reset(&r, 0);
    rig_bring_up(&r, 0, MRC_QPS_RTS);
    rig_close(&r);
}

/* ---- the responder ---- */

static void resp_open_rc(void)
{
    resp_open(false);
    resp_qp()->attr.mode = MRC_MODE_RC;
    resp_begin();
}

TEST(gbn_resp__nothing_but_the_next_one_is_taken)
{
    resp_open_rc();
    resp_only(2);
    resp_only(3);
    CHECK_EQ(resp_take(), 1);
    CHECK_EQ(NACK->nack_reason, MRC_NACK_PSN_OOR_WINDOW);
    CHECK_EQ(NACK->cack_psn, RESP_FIRST + 1); /* the one that is due */
    CHECK_EQ(NACK->psn, RESP_FIRST + 1);
    CHECK_EQ(resp_qp()->stats.packets_received, 1);
    CHECK_EQ(resp_drops(MRC_DROP_PSN_WINDOW), 2);
    CHECK_EQ(resp_qp()->resp.rx.ooo_count, 0);
    resp_only(4); /* one gap, one answer */
    CHECK_EQ(resp_take(), 0);
    for (uint32_t i = 1; i <= 4; i++)
        resp_only(i);
    CHECK_EQ(resp_qp()->stats.packets_received, 5);
    (void)resp_take();
    CHECK(NACK->opcode == 0);
    resp_only(6); /* another one */
    CHECK_EQ(resp_take(), 1);
    CHECK_EQ(NACK->cack_psn, RESP_FIRST + 5);
    resp_close();
}

/* A copy of what it has is answered as ever, with the cack that tells the sender where it is. */
TEST(gbn_resp__a_duplicate_is_acknowledged)
{
    resp_open_rc();
    struct mrc_pkt p = resp_pkt(0, MRC_OP_WRITE_ONLY);
    p.a = p.rtx = true;
    resp_give(&p);
    CHECK_EQ(resp_take(), 2);
    CHECK_EQ(resp_first(MRC_OP_SACK)->cack_psn, RESP_FIRST);
    CHECK_EQ(resp_first(MRC_OP_ACK)->psn, RESP_FIRST);
    CHECK_EQ(resp_qp()->stats.duplicates_received, 1);
    resp_close();
}

/* What was cut is a gap like any other, the next one too. */
TEST(gbn_resp__a_cut_packet_is_a_gap)
{
    resp_open_rc();
    const struct mrc_pkt p = resp_pkt(1, MRC_OP_WRITE_ONLY);
    resp_give_as(&p, RIG_EV0, RIG_TRIMMED << 2);
    resp_only(2);
    CHECK_EQ(resp_take(), 1);
    CHECK_EQ(NACK->nack_reason, MRC_NACK_PSN_OOR_WINDOW);
    CHECK_EQ(NACK->cack_psn, RESP_FIRST + 1);
    resp_close();
}

/* ---- the requester ---- */

static void req_open_rc(struct rig *r, uint32_t packets)
{
    req_open(r, MRC_CC_FIXED);
    req_qp(r)->attr.mode = MRC_MODE_RC;
    r->s[0].e->env.tclass_no_trim = 0x56; /* unlike the other classes */
    req_post(r, 1, packets * RIG_MTU, WRITE);
    CHECK_EQ(req_send(r), packets);
}

TEST(gbn_req__goes_back_to_the_first_missing)
{
    struct rig r;
    req_open_rc(&r, 10);
    r.now += 600 * MRC_USEC;
    req_hear_sack(&r, REQ_START + 3, REQ_START + 3, 4 * REQ_NOMINAL);
    req_hear_nack(&r, REQ_START + 4, MRC_NACK_PSN_OOR_WINDOW);
    CHECK_EQ(req_send(&r), 6);
    for (uint32_t i = 0; i < 6; i++) { /* in order, as what they are, in one class */
        CHECK_EQ(req_out[i].psn, REQ_START + 4 + i);
        CHECK(req_out[i].rtx);
        CHECK_EQ(req_raw[i].tclass, 0x56);
    }
    CHECK_EQ(req_of(&r)->retry, 1);
    CHECK_EQ(req_of(&r)->room, (uint32_t)MRC_ROOM_ALL);        /* nobody is short of room */
    req_hear_nack(&r, REQ_START + 4, MRC_NACK_PSN_OOR_WINDOW); /* of the copy? too early for that */
    req_hear_nack(&r, REQ_START + 3, MRC_NACK_PSN_OOR_WINDOW); /* acknowledged */
    CHECK_EQ(req_send(&r), 0);
    req_hear_sack(&r, REQ_START + 9, REQ_START + 9, 10 * REQ_NOMINAL);
    req_hear_ack(&r, REQ_START + 9);
    CHECK_EQ(req_of(&r)->head, req_of(&r)->tail);
    CHECK_EQ(r.s[0].cc.inflight, 0);
    req_close(&r);
}

/* Until they have left again a second NACK says nothing new. */
TEST(gbn_req__what_waits_to_leave_again_does_so_once)
{
    struct rig r;
    req_open_rc(&r, 6);
    r.now += 600 * MRC_USEC;
    req_hear_nack(&r, REQ_START, MRC_NACK_TRIMMED);
    r.now += 600 * MRC_USEC;
    req_hear_nack(&r, REQ_START, MRC_NACK_PSN_OOR_WINDOW);
    CHECK_EQ(req_of(&r)->retry, 1);
    CHECK_EQ(req_send(&r), 6);
    req_close(&r);
}

/* The window shrinks by one loss, however much of it was in vain. */
TEST(gbn_req__one_loss_is_one_loss)
{
    int64_t window[2];
    for (uint32_t k = 0; k < 2; k++) {
        struct rig r;
        req_open(&r, MRC_CC_NSCC);
        req_qp(&r)->attr.mode = MRC_MODE_RC;
        req_post(&r, 1, (k == 0 ? 1 : 40) * RIG_MTU, WRITE);
        (void)req_send(&r);
        r.now += 600 * MRC_USEC;
        req_hear_nack(&r, REQ_START, MRC_NACK_PSN_OOR_WINDOW);
        window[k] = (int64_t)mrc_cc_cwnd(&r.s[0].cc);
        CHECK_EQ(r.s[0].cc.inflight, 0);
        req_close(&r);
    }
    CHECK_EQ(window[0], window[1]);
}

/* Nothing is inferred, no tail is probed: the timer finds it, and takes all of it. */
TEST(gbn_req__the_timer_goes_back_too)
{
    struct rig r;
    req_open_rc(&r, 6);
    req_hear_sack(&r, REQ_START, REQ_START, REQ_NOMINAL); /* after which MRC probes the tail */
    const mrc_ns at = next_of(&r, r.now + 10 * MRC_MSEC, true);
    CHECK_EQ(at, MRC_SEC + t0_of(10));
    CHECK_EQ(req_qp(&r)->stats.probes_sent, 0);
    CHECK_EQ(req_qp(&r)->stats.packets_retransmitted, 5);
    CHECK_EQ(req_of(&r)->retry, 1);
    req_close(&r);
}

/* A peer that is short of something is given time. */
TEST(gbn_req__a_shortage_is_a_pause)
{
    struct rig r;
    req_open_rc(&r, 5);
    r.now += 600 * MRC_USEC;
    req_hear_nack(&r, REQ_START, MRC_NACK_NO_RESOURCE);
    CHECK_EQ(req_send(&r), 0);
    CHECK(next_data(&r, r.now + 2 * MRC_MSEC) > r.now - 1);
    CHECK_EQ(req_out[0].psn, REQ_START);
    req_close(&r);
}

/* ---- the window ---- */

/* Where there is a queue, a go-back is half of the window, once in a round trip, and a packet more
 * for each window that arrives; without one it is a lost packet (ADR 97). */
TEST(go_back__halves_the_window_where_there_is_a_queue)
{
    const struct mrc_cc_cfg cfg = {.kind = MRC_CC_NSCC,
                                   .mtu_bytes = 4096,
                                   .link_bps = 1000000000,
                                   .base_rtt_ns = MRC_MSEC,
                                   .max_cwnd_bytes = 160000};
    const mrc_ns queued = 3 * MRC_MSEC;
    struct mrc_cc cc;
    CHECK_EQ(mrc_cc_init(&cc, &cfg, 0), MRC_OK);
    CHECK_EQ(mrc_cc_cwnd(&cc), 160000);
    cc.inflight = 1000000;
    mrc_cc_on_go_back(&cc, 4000, 2 * MRC_MSEC, MRC_SEC); /* D = T: not more than it shall be */
    CHECK_EQ(mrc_cc_cwnd(&cc), 156000);
    mrc_cc_on_go_back(&cc, 4000, queued, MRC_SEC);
    CHECK_EQ(mrc_cc_cwnd(&cc), 78000);
    mrc_cc_on_go_back(&cc, 4000, queued, MRC_SEC + queued);
    CHECK_EQ(mrc_cc_cwnd(&cc), 78000);
    CHECK_EQ(cc.inflight, 1000000 - 3 * 4000);
    for (uint32_t k = 1; k <= 10; k++) { /* 78 kB in ten SACKs, without any delay */
        const struct mrc_cc_sack s = {.now = MRC_SEC + queued + k * MRC_MSEC,
                                      .new_bytes = 7800,
                                      .rtt_valid = true,
                                      .rtt_ns = MRC_MSEC};
        mrc_cc_on_sack(&cc, &s);
    }
    CHECK(mrc_cc_cwnd(&cc) > 78000 && mrc_cc_cwnd(&cc) <= 78000 + 4096);
    mrc_cc_on_go_back(&cc, 4000, queued, MRC_SEC + 5 * queued);
    CHECK(mrc_cc_cwnd(&cc) <= (78000 + 4096) / 2);
}
