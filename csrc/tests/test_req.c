/* SPDX-License-Identifier: BSD-2-Clause */
/* Requester: what leaves, when and in what shape (MRC B.1, B.2, B.8, B.12; A.5). What it makes of
 * answers: test_req_feedback.c; time: test_req_time.c; losses: test_req_loss.c. */
#include "req_rig.h"

/* ---- B.2.1: messages to packets ---- */

TEST(req_tx__a_message_is_cut_into_packets)
{
    static const uint32_t lengths[] = {1, RIG_MTU, RIG_MTU + 1, 5 * RIG_MTU, 7 * RIG_MTU - 3};
    uint32_t psn = REQ_START;
    struct rig r;
    req_open(&r, MRC_CC_NONE);
    for (uint32_t m = 0; m < 5; m++) {
        const uint32_t n = (lengths[m] + RIG_MTU - 1) / RIG_MTU;
        req_post(&r, 1, lengths[m], WRITE);
        CHECK_EQ(req_send(&r), n);
        for (uint32_t i = 0; i < n; i++) {
            const struct mrc_pkt *p = &req_out[i];
            const uint32_t left = lengths[m] - i * RIG_MTU;
            const uint8_t op = n == 1       ? MRC_OP_WRITE_ONLY
                               : i == 0     ? MRC_OP_WRITE_FIRST
                               : i == n - 1 ? MRC_OP_WRITE_LAST
                                            : MRC_OP_WRITE_MIDDLE;
            CHECK_EQ(p->opcode, op);
            CHECK_EQ(p->psn, psn++);
            CHECK_EQ(p->msn, m + 1);
            CHECK_EQ(p->rqmsn, 0);
            CHECK_EQ(p->va, rig_va(&r.s[1], RIG_RW) + i * RIG_MTU);
            CHECK_EQ(p->dmalen, lengths[m]); /* H21: of the message, in each packet */
            CHECK_EQ(p->r_key, r.s[1].key[RIG_RW]);
            CHECK_EQ(p->payload_len, left < RIG_MTU ? left : RIG_MTU);
            CHECK(p->payload == rig_buf(&r.s[0], RIG_RW) + i * RIG_MTU);
            CHECK(!p->rtx && !p->ts);
        }
    }
    req_close(&r);
}

TEST(req_tx__a_message_of_no_bytes_is_one_packet) /* H20 */
{
    struct rig r;
    req_open(&r, MRC_CC_NONE);
    req_post(&r, 1, 0, WRITE);
    req_post(&r, 1, 0, WIMM);
    CHECK_EQ(req_send(&r), 2);
    CHECK(req_out[0].opcode == MRC_OP_WRITE_ONLY && req_out[1].opcode == MRC_OP_WRITE_ONLY_IMM);
    CHECK(req_out[0].payload_len == 0 && req_out[1].payload_len == 0);
    CHECK_EQ(req_out[1].psn, REQ_START + 1);
    req_close(&r);
}

TEST(req_post__messages_end_at_two_gigabytes) /* H20 */
{
    struct rig r;
    req_open(&r, MRC_CC_NONE);
    CHECK_EQ(rig_post(&r, 0, 0, 0x80000001u, WRITE), (uint64_t)MRC_ERR_INVAL);
    CHECK_EQ(rig_post(&r, 0, 0, UINT32_MAX, WRITE), (uint64_t)MRC_ERR_INVAL);
    CHECK_EQ(rig_post(&r, 0, 0, 0x80000000u, WRITE), (uint64_t)MRC_ERR_ACCESS); /* no such region */
    req_close(&r);
}

TEST(req_tx__rqmsn_counts_immediates_only) /* A.5, B.2.1, H18 */
{
    static const uint8_t ops[] = {WRITE, WIMM, WIMM, WRITE, WIMM};
    static const uint16_t rqmsn[] = {0, 1, 2, 0, 3};
    struct rig r;
    req_open(&r, MRC_CC_NONE);
    for (uint32_t m = 0; m < 5; m++)
        req_post(&r, 1, 3 * RIG_MTU, ops[m]);
    CHECK_EQ(req_send(&r), 15);
    for (uint32_t i = 0; i < 15; i++) {
        CHECK_EQ(req_out[i].msn, 1 + i / 3);
        CHECK_EQ(req_out[i].rqmsn, rqmsn[i / 3]); /* the same in all its packets */
    }
    req_close(&r);
}

TEST(req_tx__numbers_wrap) /* B.1, field report 9 */
{
    struct rig r;
    rig_open(&r, 0xFFFFFD, MRC_CC_NONE, false);
    req_of(&r)->msn = 0xFFFE;
    req_of(&r)->rqmsn = 0xFFFE;
    req_post(&r, 3, 2 * RIG_MTU, WIMM);
    CHECK_EQ(req_send(&r), 6);
    for (uint32_t i = 0; i < 6; i++) {
        CHECK_EQ(req_out[i].psn, (0xFFFFFD + i) & 0xFFFFFF);
        CHECK_EQ(req_out[i].msn, (0xFFFF + i / 2) & 0xFFFF);
        CHECK_EQ(req_out[i].rqmsn, (0xFFFF + i / 2) & 0xFFFF);
    }
    req_close(&r);
}

/* ---- B.2.2: who may leave ---- */

TEST(req_tx__nothing_leaves_outside_rts)
{
    const struct mrc_qp_attr err = {.state = MRC_QPS_ERR};
    struct rig r;
    req_open(&r, MRC_CC_NONE);
    req_post(&r, 1, 4 * RIG_MTU, WRITE);
    for (uint8_t state = MRC_QPS_RESET; state <= MRC_QPS_ERR; state++)
        if (state != MRC_QPS_RTS) {
            req_qp(&r)->attr.state = state;
            CHECK_EQ(req_send(&r), 0);
        }
    req_qp(&r)->attr.state = MRC_QPS_RTS;
    CHECK_EQ(mrc_qp_modify(r.s[0].e, r.s[0].qpn, &err, MRC_QP_STATE, r.now), MRC_OK);
    CHECK_EQ(req_send(&r), 0);
    CHECK_EQ(rig_post(&r, 0, 0, 100, WRITE) == 1 && req_send(&r) != 0, false);
    req_close(&r);
}

TEST(req_tx__psn_window) /* field report 1 */
{
    struct rig r;
    req_open(&r, MRC_CC_NONE);
    req_post(&r, 16, RIG_BUF, WRITE); /* twice the window */
    CHECK_EQ(req_send(&r), REQ_WINDOW);
    CHECK_EQ(req_out[REQ_WINDOW - 1].psn, REQ_START - 1 + REQ_WINDOW);
    CHECK(req_out[REQ_WINDOW - 1].a); /* B.2.4: the window closes */
    CHECK(!req_out[REQ_WINDOW - 2].a);
    req_hear_sack(&r, REQ_START + 9, REQ_START + 9, 10 * REQ_NOMINAL);
    CHECK_EQ(req_send(&r), 10);
    struct mrc_pkt gap = req_sack(&r, REQ_START + 9, REQ_START + 50, 11 * REQ_NOMINAL);
    req_hear(&r, &gap); /* above a gap: the window stays where it is */
    CHECK_EQ(req_send(&r), 0);
    req_close(&r);
}

TEST(req_tx__controller_holds_first_and_later_transmissions)
{
    struct rig r;
    req_open(&r, MRC_CC_FIXED);
    r.s[0].cc.cfg.max_cwnd_bytes = 10 * REQ_NOMINAL;
    req_post(&r, 1, 30 * RIG_MTU, WRITE);
    CHECK_EQ(req_send(&r), 10);
    CHECK(req_out[9].a); /* nothing can follow: the controller asks for an answer */
    r.s[0].cc.cfg.max_cwnd_bytes = 5 * REQ_NOMINAL;
    req_hear_nack(&r, REQ_START + 3, MRC_NACK_TRIMMED_LASTHOP);
    CHECK_EQ(req_send(&r), 0); /* nine are still out */
    r.s[0].cc.cfg.max_cwnd_bytes = 10 * REQ_NOMINAL;
    req_hear_sack(&r, REQ_START - 1, REQ_START + 5, 0); /* something happened; nothing is freed */
    CHECK_EQ(req_send(&r), 1);
    CHECK(req_out[0].psn == REQ_START + 3 && req_out[0].rtx);
    req_close(&r);
}

TEST(req_tx__immediates_in_flight_are_limited) /* B.8: first packet to transport ACK */
{
    struct rig r;
    req_open(&r, MRC_CC_NONE);
    req_of(&r)->max_wimm = 2;
    req_post(&r, 1, RIG_MTU, WRITE);
    req_post(&r, 3, 2 * RIG_MTU, WIMM);
    req_post(&r, 1, RIG_MTU, WRITE);
    CHECK_EQ(req_send(&r), 5);
    CHECK(req_out[4].opcode == MRC_OP_WRITE_LAST_IMM);
    req_hear_sack(&r, REQ_START + 4, REQ_START + 4, 5 * REQ_NOMINAL);
    CHECK_EQ(req_send(&r), 0); /* arrived is not done */
    req_hear_ack(&r, REQ_START + 1);
    CHECK_EQ(req_send(&r), 0); /* the write and half of the first one */
    req_hear_ack(&r, REQ_START + 2);
    CHECK_EQ(req_send(&r), 3); /* the third, and what waited behind it */
    CHECK_EQ(req_out[0].rqmsn, 3);
    req_close(&r);
}

TEST(req_tx__a_blocked_immediate_asks_for_an_answer) /* B.2.4, unsignalled ones too */
{
    struct rig r;
    req_open(&r, MRC_CC_NONE);
    req_of(&r)->max_wimm = 1;
    struct mrc_send_wr wr = {.opcode = WIMM};
    CHECK_EQ(mrc_qp_post_send(r.s[0].e, r.s[0].qpn, &wr, 1), 1);
    CHECK_EQ(mrc_qp_post_send(r.s[0].e, r.s[0].qpn, &wr, 1), 1);
    CHECK_EQ(req_send(&r), 1);
    CHECK(req_out[0].a);
    req_close(&r);
}

TEST(req_tx__no_path_no_packet) /* the EV is chosen when the packet leaves */
{
    struct rig r;
    req_open(&r, MRC_CC_NONE);
    for (uint16_t i = 0; i < RIG_EVS; i++)
        CHECK_EQ(mrc_path_set_state(r.s[0].path, i, MRC_EV_DENIED, r.now), MRC_OK);
    req_post(&r, 1, 3 * RIG_MTU, WRITE);
    CHECK_EQ(req_send(&r), 0);
    CHECK_EQ(mrc_path_set_state(r.s[0].path, 2, MRC_EV_GOOD, r.now), MRC_OK);
    r.now += 2 * MRC_MSEC;
    mrc_engine_tick(r.s[0].e, r.now);
    CHECK_EQ(req_send(&r), 3);
    for (int i = 0; i < 3; i++)
        CHECK_EQ(req_raw[i].ev, RIG_EV0 + 2);
    req_close(&r);
}

/* ---- B.2.3: again ---- */

TEST(req_tx__retransmissions_go_first_and_lowest_first)
{
    struct rig r;
    req_open(&r, MRC_CC_FIXED);
    r.s[0].cc.cfg.max_cwnd_bytes = 8 * REQ_NOMINAL;
    req_post(&r, 1, 40 * RIG_MTU, WRITE);
    CHECK_EQ(req_send(&r), 8);
    req_hear_nack(&r, REQ_START + 5, MRC_NACK_TRIMMED_LASTHOP);
    req_hear_nack(&r, REQ_START + 2, MRC_NACK_TRIMMED_LASTHOP);
    req_hear_nack(&r, REQ_START + 7, MRC_NACK_TRIMMED_LASTHOP);
    r.s[0].cc.cfg.max_cwnd_bytes = 10 * REQ_NOMINAL;
    CHECK_EQ(req_send(&r), 5);
    CHECK_EQ(req_out[0].psn, REQ_START + 2);
    CHECK_EQ(req_out[1].psn, REQ_START + 5);
    CHECK_EQ(req_out[2].psn, REQ_START + 7);
    CHECK_EQ(req_out[3].psn, REQ_START + 8);
    for (int i = 0; i < 5; i++)
        CHECK(req_out[i].rtx == (i < 3));
    req_close(&r);
}

TEST(req_tx__a_retransmission_is_the_same_packet_on_another_ev) /* field report 31 */
{
    struct rig r;
    static struct mrc_pkt first[6];
    uint32_t ev[6];
    req_open(&r, MRC_CC_NONE);
    r.s[0].e->env.tclass_retx = 8 << 2 | 2; /* TRIMMABLE_RETX configured */
    req_post(&r, 1, 6 * RIG_MTU - 5, WIMM);
    CHECK_EQ(req_send(&r), 6);
    memcpy(first, req_out, sizeof first);
    for (uint32_t i = 0; i < 6; i++)
        ev[i] = req_raw[i].ev;
    CHECK(req_raw[0].tclass != req_qp(&r)->env->tclass_retx);
    for (uint32_t i = 0; i < 6; i++)
        req_hear_nack(&r, REQ_START + i, MRC_NACK_TRIMMED);
    CHECK_EQ(req_send(&r), 6);
    for (uint32_t i = 0; i < 6; i++) {
        struct mrc_pkt want = first[i];
        want.rtx = true;
        CHECK_MEM(&req_out[i], &want, sizeof want);
        CHECK(req_raw[i].ev != ev[i]);
        CHECK_EQ(req_raw[i].tclass, 8 << 2 | 2);
    }
    req_close(&r);
}

TEST(req_tx__the_same_ev_when_no_other_is_left) /* H34 */
{
    struct rig r;
    req_open(&r, MRC_CC_NONE);
    for (uint16_t i = 1; i < RIG_EVS; i++)
        CHECK_EQ(mrc_path_set_state(r.s[0].path, i, MRC_EV_DENIED, r.now), MRC_OK);
    req_post(&r, 1, RIG_MTU, WRITE);
    CHECK_EQ(req_send(&r), 1);
    req_hear_nack(&r, REQ_START, MRC_NACK_TRIMMED_LASTHOP);
    CHECK_EQ(req_send(&r), 1);
    CHECK(req_out[0].rtx && req_raw[0].ev == RIG_EV0);
    req_close(&r);
}

/* ---- B.2.4: who asks for an answer ---- */

TEST(req_tx__acknowledge_request)
{
    struct rig r;
    req_open(&r, MRC_CC_NONE);
    struct mrc_send_wr wr = {.laddr = rig_va(&r.s[0], RIG_RW),
                             .lkey = r.s[0].key[RIG_RW],
                             .raddr = rig_va(&r.s[1], RIG_RW),
                             .rkey = r.s[1].key[RIG_RW],
                             .length = 2 * RIG_MTU};
    CHECK_EQ(mrc_qp_post_send(r.s[0].e, r.s[0].qpn, &wr, 1), 1); /* unsignalled */
    wr.flags = MRC_SEND_SIGNALED;
    CHECK_EQ(mrc_qp_post_send(r.s[0].e, r.s[0].qpn, &wr, 1), 1);
    wr.flags = 0;
    CHECK_EQ(mrc_qp_post_send(r.s[0].e, r.s[0].qpn, &wr, 1), 1);
    CHECK_EQ(req_send(&r), 6);
    static const bool want[6] = {false, false, false, true, false, true};
    for (int i = 0; i < 6; i++)
        CHECK_EQ(req_out[i].a, want[i]); /* of the signalled one, and of the last of the queue */
    req_close(&r);
}

/* ---- B.2.5 ---- */

TEST(req_tx__data_is_kept_until_the_transport_ack)
{
    struct rig r;
    req_open(&r, MRC_CC_NONE);
    req_post(&r, 1, 2 * RIG_MTU, WRITE);
    CHECK_EQ(req_send(&r), 2);
    req_hear_sack(&r, REQ_START + 1, REQ_START + 1, 2 * REQ_NOMINAL);
    CHECK_EQ(mrc_mr_deregister(r.s[0].e, r.s[0].key[RIG_RW]), (uint64_t)MRC_ERR_BUSY);
    req_hear_ack(&r, REQ_START + 1);
    CHECK_EQ(mrc_mr_deregister(r.s[0].e, r.s[0].key[RIG_RW]), MRC_OK);
    CHECK_EQ(mrc_mr_register(r.s[0].e, RIG_PD, rig_buf(&r.s[0], RIG_RW), RIG_BUF, 3, 0x1234,
                             &r.s[0].key[RIG_RW]),
             MRC_OK);
    req_close(&r);
}

/* ---- B.12: the window that the peer changes ---- */

static void hear_mpr(struct rig *r, uint32_t cack, uint8_t mpr, uint32_t rcvd)
{
    struct mrc_pkt p = req_sack(r, cack, cack, rcvd);
    p.mpr = mpr;
    req_hear(r, &p);
}

TEST(req_mpr__grows_at_once_shrinks_by_waiting) /* field reports 1 and 2 */
{
    struct rig r;
    rig_open(&r, REQ_START, MRC_CC_NONE, true);
    req_of(&r)->window = 2 * MRC_MPR_UNIT; /* agreed on 8, told 2 */
    req_post(&r, 16, RIG_BUF, WRITE);
    CHECK_EQ(req_send(&r), 256);
    hear_mpr(&r, REQ_START - 1, 4, 0);
    CHECK_EQ(req_send(&r), 256);
    hear_mpr(&r, REQ_START - 1, 1, 0);
    CHECK_EQ(req_send(&r), 0);
    hear_mpr(&r, REQ_START + 382, 0, 383 * REQ_NOMINAL); /* 0: what was said last holds */
    CHECK_EQ(req_send(&r), 0);                           /* 129 are out */
    hear_mpr(&r, REQ_START + 384, 0, 385 * REQ_NOMINAL);
    CHECK_EQ(req_send(&r), 1);
    hear_mpr(&r, REQ_START + 385, 1, 386 * REQ_NOMINAL);
    CHECK_EQ(req_send(&r), 1);
    req_close(&r);
}

TEST(req_mpr__retransmissions_beyond_the_new_edge_wait)
{
    struct rig r;
    rig_open(&r, REQ_START, MRC_CC_NONE, true);
    req_post(&r, 16, RIG_BUF, WRITE);
    CHECK_EQ(req_send(&r), REQ_WINDOW);
    hear_mpr(&r, REQ_START - 1, 1, 0);
    req_hear_nack(&r, REQ_START + 127, MRC_NACK_TRIMMED_LASTHOP); /* the last inside */
    req_hear_nack(&r, REQ_START + 128, MRC_NACK_TRIMMED_LASTHOP);
    CHECK_EQ(req_send(&r), 1);
    CHECK_EQ(req_out[0].psn, REQ_START + 127);
    hear_mpr(&r, REQ_START, 1, REQ_NOMINAL);
    CHECK_EQ(req_send(&r), 1);
    CHECK_EQ(req_out[0].psn, REQ_START + 128);
    req_close(&r);
}

TEST(req_mpr__never_above_what_was_agreed)
{
    struct rig r;
    rig_open(&r, REQ_START, MRC_CC_NONE, true);
    req_post(&r, 16, RIG_BUF, WRITE);
    mrc_req_set_window(req_of(&r), 3); /* min(own, peer's) at setup */
    CHECK_EQ(req_send(&r), 3 * MRC_MPR_UNIT);
    hear_mpr(&r, REQ_START - 1, 255, 0);
    CHECK_EQ(req_send(&r), 0);
    req_close(&r);
}

TEST(req_mpr__an_old_sack_changes_nothing)
{
    struct rig r;
    rig_open(&r, REQ_START, MRC_CC_NONE, true);
    req_post(&r, 16, RIG_BUF, WRITE);
    CHECK_EQ(req_send(&r), REQ_WINDOW);
    hear_mpr(&r, REQ_START + 19, 8, 20 * REQ_NOMINAL);
    hear_mpr(&r, REQ_START + 9, 1, 10 * REQ_NOMINAL); /* older by cack */
    CHECK_EQ(req_of(&r)->window, REQ_WINDOW);
    hear_mpr(&r, REQ_START + 19, 1, 15 * REQ_NOMINAL); /* older by rcvd_bytes */
    CHECK_EQ(req_of(&r)->window, REQ_WINDOW);
    hear_mpr(&r, REQ_START + 19, 1, 20 * REQ_NOMINAL);
    CHECK_EQ(req_of(&r)->window, MRC_MPR_UNIT);
    req_close(&r);
}

TEST(req_mpr__without_the_capability_the_field_is_ignored)
{
    struct rig r;
    req_open(&r, MRC_CC_NONE);
    req_post(&r, 16, RIG_BUF, WRITE);
    CHECK_EQ(req_send(&r), REQ_WINDOW);
    hear_mpr(&r, REQ_START + 9, 1, 10 * REQ_NOMINAL);
    CHECK_EQ(req_send(&r), 10);
    req_close(&r);
}

/* ---- A.5: TSETH ---- */

TEST(req_tx__timestamps)
{
    struct rig r;
    req_open(&r, MRC_CC_FIXED);
    req_of(&r)->timestamps = true;
    r.now = (((mrc_ns)7 << 16) + 0xFFFE) * 128 + 127; /* just before the counter turns */
    req_post(&r, 1, RIG_MTU, WRITE);
    req_post(&r, 1, RIG_MTU, WIMM);
    CHECK_EQ(req_send(&r), 2);
    CHECK(req_raw[0].hdr_len == 36 && req_raw[1].hdr_len == 40);
    for (int i = 0; i < 2; i++) {
        CHECK(req_out[i].ts && !req_out[i].tsr && req_out[i].ftype == 1);
        CHECK_EQ(req_out[i].tx_timestamp, 0xFFFE);
    }
    CHECK_EQ(mrc_txtrack_slot(&req_of(&r)->tx, mrc_psn(REQ_START))->nominal, REQ_NOMINAL + 4);
    CHECK_EQ(r.s[0].cc.inflight, 2 * REQ_NOMINAL + 4 + 8); /* what the responder will count (E.1) */
    req_hear_nack(&r, REQ_START, MRC_NACK_TRIMMED_LASTHOP);
    r.now += 3 * 128;
    CHECK_EQ(req_send(&r), 1);
    CHECK(req_out[0].rtx && req_out[0].ts);
    CHECK_EQ(req_out[0].tx_timestamp, 1); /* each copy its own */
    req_close(&r);
}
