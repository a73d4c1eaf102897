/* SPDX-License-Identifier: BSD-2-Clause */
/* Requester: what it makes of SACK (B.5), transport ACK (B.6) and NACK (B.7), and how work ends
 * (B.13, B.14). */
#include "req_rig.h"

static bool arrived(const struct rig *r, uint32_t psn)
{
    return req_state_of(r, psn) == MRC_SLOT_ACKED;
}

static struct mrc_wc wc[RIG_CQ];

static int polled(struct rig *r) { return mrc_cq_poll(r->s[0].e, 0, wc, RIG_CQ); }

/* ---- B.5 ---- */

TEST(req_sack__says_what_arrived_three_ways)
{
    struct rig r;
    req_open(&r, MRC_CC_NONE);
    req_post(&r, 1, 40 * RIG_MTU, WRITE);
    CHECK_EQ(req_send(&r), 40);
    struct mrc_pkt f = req_sack(&r, REQ_START + 2, REQ_START + 30, 0);
    f.sack_offset = 5;
    f.sack_bitmap = 5; /* bits 0 and 2 */
    req_hear(&r, &f);
    for (uint32_t i = 0; i < 40; i++)
        CHECK_EQ(arrived(&r, REQ_START + i), i <= 2 || i == 7 || i == 9 || i == 30);
    CHECK_EQ(req_of(&r)->tx.unack.v, REQ_START + 2);
    CHECK_EQ(req_qp(&r)->stats.sacks_received, 1);
    req_close(&r);
}

TEST(req_sack__offsets_are_signed_and_wrap) /* B.1, H40 */
{
    struct rig r;
    rig_open(&r, 0xFFFFF0, MRC_CC_NONE, false);
    req_post(&r, 1, 40 * RIG_MTU, WRITE);
    CHECK_EQ(req_send(&r), 40);
    struct mrc_pkt f = req_sack(&r, 0xFFFFF9, 0xFFFFF5, 0); /* the trigger lies below cack */
    f.sack_offset = -3;                                     /* bits 0 to 3 repeat what cack says */
    f.sack_bitmap = 1ull << 3 | 1ull << 5 | 1ull << 13;
    req_hear(&r, &f);
    CHECK(!arrived(&r, 0xFFFFFA));
    CHECK(arrived(&r, 0xFFFFFB) && arrived(&r, 3));
    CHECK_EQ(req_of(&r)->tx.acked_count, 2);
    req_close(&r);
}

TEST(req_sack__a_cleared_bit_takes_nothing_back)
{
    struct rig r;
    req_open(&r, MRC_CC_NONE);
    req_post(&r, 1, 40 * RIG_MTU, WRITE);
    CHECK_EQ(req_send(&r), 40);
    struct mrc_pkt f = req_sack(&r, REQ_START - 1, REQ_START + 10, 0);
    f.sack_bitmap = 0xFF0;
    req_hear(&r, &f);
    f.sack_bitmap = 0x0F0;
    req_hear(&r, &f);
    for (uint32_t i = 4; i < 12; i++)
        CHECK_EQ(req_state_of(&r, REQ_START + i), MRC_SLOT_ACKED);
    req_close(&r);
}

TEST(req_sack__a_probes_answer_has_an_id_where_others_have_an_offset)
{
    struct rig r;
    req_open(&r, MRC_CC_NONE);
    req_post(&r, 1, 40 * RIG_MTU, WRITE);
    CHECK_EQ(req_send(&r), 40);
    struct mrc_pkt f = req_sack(&r, REQ_START, 0, 0);
    f.pr = true;
    f.probe_id = 7; /* as an offset it would name REQ_START + 7 */
    req_hear(&r, &f);
    CHECK_EQ(req_state_of(&r, REQ_START), MRC_SLOT_ACKED);
    CHECK_EQ(req_state_of(&r, REQ_START + 7), MRC_SLOT_INFLIGHT);
    req_close(&r);
}

TEST(req_sack__an_old_one_still_tells_of_packets_and_paths)
{
    struct rig r;
    req_open(&r, MRC_CC_FIXED);
    req_post(&r, 1, 40 * RIG_MTU, WRITE);
    CHECK_EQ(req_send(&r), 40);
    req_hear_sack(&r, REQ_START + 9, REQ_START + 9, 10 * REQ_NOMINAL);
    const int64_t inflight = r.s[0].cc.inflight;
    struct mrc_pkt f = req_sack(&r, REQ_START + 4, REQ_START + 20, 200 * REQ_NOMINAL);
    f.mark = MRC_MARK_SKIP;
    f.entropy = RIG_EV0 + 3;
    req_hear(&r, &f);
    CHECK_EQ(req_state_of(&r, REQ_START + 20), MRC_SLOT_ACKED);
    CHECK_EQ(mrc_path_state(r.s[0].path, 3), MRC_EV_SKIP);
    CHECK_EQ(r.s[0].cc.inflight, inflight); /* not its rcvd_bytes */
    CHECK_EQ(req_of(&r)->tx.unack.v, REQ_START + 9);
    req_close(&r);
}

TEST(req_sack__what_was_never_sent_is_refused_whole)
{
    struct rig r;
    req_open(&r, MRC_CC_NONE);
    req_post(&r, 1, 10 * RIG_MTU, WRITE);
    CHECK_EQ(req_send(&r), 10);
    struct mrc_pkt f = req_sack(&r, REQ_START + 10, REQ_START + 5, 0);
    req_hear(&r, &f);
    f = req_sack(&r, REQ_START + 1, REQ_START + 10, 0);
    req_hear(&r, &f);
    f = req_sack(&r, REQ_START + 1, REQ_START + 1, 0);
    f.sack_bitmap = 1ull << 9; /* cack + 1 + 9 */
    req_hear(&r, &f);
    CHECK_EQ(mrc_engine_drops(r.s[0].e, MRC_DROP_SACK_RANGE), 3);
    CHECK_EQ(req_of(&r)->tx.inflight_count, 10);
    req_close(&r);
}

TEST(req_sack__ignored_before_rts)
{
    struct rig r;
    req_open(&r, MRC_CC_NONE);
    req_post(&r, 1, 4 * RIG_MTU, WRITE);
    CHECK_EQ(req_send(&r), 4);
    mrc_qp_fail(req_qp(&r), MRC_WC_WR_FLUSH_ERR, r.now);
    const uint64_t before = mrc_engine_drops(r.s[0].e, MRC_DROP_QP_STATE);
    req_hear_sack(&r, REQ_START + 3, REQ_START + 3, 0);
    CHECK_EQ(mrc_engine_drops(r.s[0].e, MRC_DROP_QP_STATE), before + 1);
    CHECK_EQ(req_qp(&r)->stats.sacks_received, 0);
    req_close(&r);
}

/* E.1, H9: the window is freed by what the peer counted, not by what the SACK shows. */
TEST(req_sack__rcvd_bytes_free_the_window)
{
    struct rig r;
    req_open(&r, MRC_CC_FIXED);
    req_of(&r)->prev_rcvd = 0xFFFFFE; /* the counter is about to turn */
    req_post(&r, 1, 40 * RIG_MTU, WRITE);
    CHECK_EQ(req_send(&r), 40);
    CHECK_EQ(r.s[0].cc.inflight, 40 * REQ_NOMINAL);
    struct mrc_pkt f = req_sack(&r, REQ_START + 9, REQ_START + 9, 0);
    f.rcvd_bytes = 4; /* six units of 256 */
    req_hear(&r, &f);
    CHECK_EQ(r.s[0].cc.inflight, 40 * REQ_NOMINAL - 6 * 256);
    f.rcvd_bytes = 2; /* reordered: older */
    req_hear(&r, &f);
    CHECK_EQ(r.s[0].cc.inflight, 40 * REQ_NOMINAL - 6 * 256);
    CHECK_EQ(req_of(&r)->prev_rcvd, 4);
    req_close(&r);
}

TEST(req_sack__marks) /* B.5.4 */
{
    static const uint8_t want[4] = {MRC_EV_GOOD, MRC_EV_SKIP, MRC_EV_ASSUMED_BAD, MRC_EV_GOOD};
    struct rig r;
    req_open(&r, MRC_CC_NONE);
    req_post(&r, 1, 40 * RIG_MTU, WRITE);
    CHECK_EQ(req_send(&r), 40);
    for (uint8_t m = 0; m < 4; m++) {
        struct mrc_pkt f = req_sack(&r, REQ_START + m, REQ_START + m, 0);
        f.mark = m;
        f.entropy = RIG_EV0 + m;
        req_hear(&r, &f);
        CHECK_EQ(mrc_path_state(r.s[0].path, m), want[m]);
    }
    CHECK_EQ(req_qp(&r)->stats.ecn_marks, 1);
    req_close(&r);
}

/* ---- B.6, B.13: completion ---- */

TEST(req_ack__only_a_transport_ack_completes_and_in_order)
{
    struct rig r;
    req_open(&r, MRC_CC_NONE);
    for (uint64_t i = 0; i < 5; i++) {
        struct mrc_send_wr wr = {.wr_id = 100 + i, .opcode = i % 2 != 0 ? WIMM : WRITE};
        wr.flags = i != 2 ? MRC_SEND_SIGNALED : 0;
        CHECK_EQ(mrc_qp_post_send(r.s[0].e, r.s[0].qpn, &wr, 1), 1);
    }
    CHECK_EQ(req_send(&r), 5);
    req_hear_sack(&r, REQ_START + 4, REQ_START + 4, 5 * 84);
    CHECK_EQ(polled(&r), 0);
    req_hear_ack(&r, REQ_START); /* one */
    CHECK_EQ(polled(&r), 1);
    CHECK(wc[0].wr_id == 100 && wc[0].status == MRC_WC_SUCCESS);
    req_hear_ack(&r, REQ_START + 3); /* and one for three, of which one is unsignalled */
    CHECK_EQ(polled(&r), 2);
    CHECK(wc[0].wr_id == 101 && wc[1].wr_id == 103);
    req_hear_ack(&r, REQ_START + 1); /* late: says nothing new */
    CHECK_EQ(polled(&r), 0);
    req_hear_ack(&r, REQ_START + 4);
    CHECK_EQ(polled(&r), 1);
    CHECK(wc[0].wr_id == 104 && wc[0].status == MRC_WC_SUCCESS);
    req_close(&r);
}

TEST(req_ack__covers_what_no_sack_reported)
{
    struct rig r;
    req_open(&r, MRC_CC_FIXED);
    req_post(&r, 2, 3 * RIG_MTU, WRITE);
    CHECK_EQ(req_send(&r), 6);
    req_hear_ack(&r, REQ_START + 3); /* the first, and a packet of the second */
    CHECK_EQ(polled(&r), 1);
    CHECK_EQ(req_of(&r)->tx.unack.v, REQ_START + 3);
    req_hear_ack(&r, REQ_START + 6); /* never sent */
    CHECK_EQ(mrc_engine_drops(r.s[0].e, MRC_DROP_ACK_RANGE), 1);
    req_hear_ack(&r, REQ_START + 5);
    CHECK_EQ(polled(&r), 1);
    CHECK_EQ(r.s[0].cc.inflight, 0);
    req_close(&r);
}

TEST(req_ack__naks_end_the_queue_pair) /* B.6, B.14 */
{
    static const struct {
        uint8_t syndrome;
        uint8_t status;
    } nak[] = {{MRC_AETH_NAK_INVALID_REQUEST, MRC_WC_REM_INV_REQ_ERR},
               {MRC_AETH_NAK_REMOTE_ACCESS, MRC_WC_REM_ACCESS_ERR},
               {MRC_AETH_NAK_REMOTE_OPERATION, MRC_WC_REM_OP_ERR},
               {MRC_AETH_NAK_PSN_SEQ, MRC_WC_REM_OP_ERR}};
    for (size_t k = 0; k < sizeof nak / sizeof *nak; k++) {
        struct rig r;
        req_open(&r, MRC_CC_FIXED);
        for (uint64_t i = 0; i < 6; i++) {
            struct mrc_send_wr wr = {.wr_id = i, .flags = i % 2 == 0 ? MRC_SEND_SIGNALED : 0};
            CHECK_EQ(mrc_qp_post_send(r.s[0].e, r.s[0].qpn, &wr, 1), 1);
        }
        CHECK_EQ(req_send(&r), 6);
        struct mrc_pkt f = req_answer(&r, MRC_OP_ACK);
        f.psn = REQ_START + 3;
        f.syndrome = nak[k].syndrome;
        req_hear_sack(&r, REQ_START + 4, REQ_START + 4, 5 * 84);
        req_hear(&r, &f);
        CHECK_EQ(req_qp(&r)->attr.state, MRC_QPS_ERR);
        CHECK_EQ(req_qp(&r)->stats.error, nak[k].status);
        /* 0 and 2 were signalled and fine; 3 is refused, and the rest was never done, signalled or
         * not, in posting order. */
        CHECK_EQ(polled(&r), 5);
        for (int i = 0; i < 5; i++) {
            CHECK_EQ(wc[i].wr_id, (i == 0 ? 0 : i + 1));
            CHECK_EQ(wc[i].status, i < 2    ? MRC_WC_SUCCESS
                                   : i == 2 ? nak[k].status
                                            : MRC_WC_WR_FLUSH_ERR);
        }
        CHECK_EQ(r.s[0].cc.inflight,
                 0); /* nothing stays counted against others (field report 27) */
        req_close(&r);
    }
}

TEST(req_ack__no_such_thing_as_receiver_not_ready) /* A.6 */
{
    struct rig r;
    req_open(&r, MRC_CC_NONE);
    req_post(&r, 1, RIG_MTU, WRITE);
    CHECK_EQ(req_send(&r), 1);
    struct mrc_pkt f = req_answer(&r, MRC_OP_ACK);
    f.psn = REQ_START;
    f.syndrome = 0x20;
    req_hear(&r, &f);
    f.syndrome = 0x40;
    req_hear(&r, &f);
    CHECK_EQ(mrc_engine_drops(r.s[0].e, MRC_DROP_ACK_RANGE), 2);
    CHECK_EQ(polled(&r), 0);
    req_close(&r);
}

/* ---- B.7: refusals ---- */

TEST(req_nack__each_reason)
{
    static const struct {
        uint8_t reason;
        uint8_t ev_state;
        bool shrinks;
    } row[] = {
        {MRC_NACK_TRIMMED, MRC_EV_SKIP, true},
        {MRC_NACK_TRIMMED_LASTHOP, MRC_EV_GOOD, true},
        {MRC_NACK_NO_BITMAP, MRC_EV_GOOD, false},
        {MRC_NACK_NO_PKT_BUFFER, MRC_EV_GOOD, false},
        {MRC_NACK_NO_RESOURCE, MRC_EV_GOOD, false},
        {MRC_NACK_PSN_OOR_WINDOW, MRC_EV_GOOD, false},
        {0x00, MRC_EV_GOOD, false}, /* H10: unknown ones */
        {0x55, MRC_EV_GOOD, false},
        {0xFF, MRC_EV_GOOD, false},
    };
    for (size_t k = 0; k < sizeof row / sizeof *row; k++) {
        struct rig r;
        req_open(&r, MRC_CC_NSCC);
        req_post(&r, 1, 8 * RIG_MTU, WRITE);
        CHECK_EQ(req_send(&r), 8);
        const uint64_t cwnd = mrc_cc_cwnd(&r.s[0].cc);
        const uint32_t ev = req_ev(&r, REQ_START + 2);
        req_hear_nack(&r, REQ_START + 2, row[k].reason);
        CHECK_EQ(mrc_path_state(r.s[0].path, (uint16_t)(ev - RIG_EV0)), row[k].ev_state);
        CHECK_EQ(mrc_cc_cwnd(&r.s[0].cc), cwnd - (row[k].shrinks ? REQ_NOMINAL : 0));
        CHECK_EQ(r.s[0].cc.inflight, 7 * REQ_NOMINAL);
        CHECK_EQ(req_of(&r)->retry, 1); /* all draw on one budget */
        CHECK_EQ(req_send(&r), 1);
        CHECK(req_out[0].psn == REQ_START + 2 && req_raw[0].ev != ev);
        CHECK_EQ(req_qp(&r)->stats.nacks_received, 1);
        CHECK(req_qp(&r)->attr.state == MRC_QPS_RTS);
        req_close(&r);
    }
}

TEST(req_nack__an_unexpected_event_is_fatal) /* B.7, B.14 */
{
    struct rig r;
    req_open(&r, MRC_CC_NSCC);
    req_post(&r, 3, RIG_MTU, WRITE);
    CHECK_EQ(req_send(&r), 3);
    req_hear_nack(&r, REQ_START + 1, MRC_NACK_UNEXP_EVENT);
    CHECK_EQ(req_qp(&r)->attr.state, MRC_QPS_ERR);
    CHECK_EQ(polled(&r), 3);
    CHECK(wc[0].status == MRC_WC_REM_OP_ERR && wc[1].status == MRC_WC_WR_FLUSH_ERR);
    CHECK_EQ(req_send(&r), 0);
    req_close(&r);
}

TEST(req_nack__of_what_arrived_or_was_never_out_is_ignored)
{
    struct rig r;
    req_open(&r, MRC_CC_FIXED);
    req_post(&r, 1, 8 * RIG_MTU, WRITE);
    CHECK_EQ(req_send(&r), 8);
    struct mrc_pkt f = req_sack(&r, REQ_START + 1, REQ_START + 4, 0);
    req_hear(&r, &f);
    req_hear_nack(&r, REQ_START + 1, MRC_NACK_TRIMMED);
    req_hear_nack(&r, REQ_START + 4, MRC_NACK_TRIMMED);
    CHECK_EQ(req_of(&r)->retry, 0);
    CHECK_EQ(req_send(&r), 0);
    CHECK_EQ(r.s[0].cc.inflight, 8 * REQ_NOMINAL);
    f = req_answer(&r, MRC_OP_NACK);
    f.cack_psn = REQ_START + 8;
    f.nack_reason = MRC_NACK_TRIMMED;
    req_hear(&r, &f);
    CHECK_EQ(mrc_engine_drops(r.s[0].e, MRC_DROP_NACK_RANGE), 1);
    req_close(&r);
}

TEST(req_nack__late_for_an_earlier_copy_on_another_ev)
{
    struct rig r;
    req_open(&r, MRC_CC_NONE);
    req_post(&r, 1, 4 * RIG_MTU, WRITE);
    CHECK_EQ(req_send(&r), 4);
    struct mrc_pkt f = req_answer(&r, MRC_OP_NACK);
    f.cack_psn = REQ_START;
    f.nack_reason = MRC_NACK_TRIMMED;
    f.entropy = req_ev(&r, REQ_START);
    req_hear(&r, &f);
    CHECK_EQ(req_send(&r), 1);
    r.now += 10 * MRC_MSEC;
    req_hear(&r, &f); /* a copy of it */
    CHECK_EQ(req_send(&r), 0);
    req_close(&r);
}

/* With one EV only the timestamp tells which copy was refused. */
TEST(req_nack__late_for_an_earlier_copy_by_its_timestamp)
{
    struct rig r;
    req_open(&r, MRC_CC_NONE);
    req_of(&r)->timestamps = true;
    for (uint16_t i = 1; i < RIG_EVS; i++)
        CHECK_EQ(mrc_path_set_state(r.s[0].path, i, MRC_EV_DENIED, r.now), MRC_OK);
    req_post(&r, 1, RIG_MTU, WRITE);
    CHECK_EQ(req_send(&r), 1);
    struct mrc_pkt f = req_answer(&r, MRC_OP_NACK);
    f.cack_psn = REQ_START;
    f.nack_reason = MRC_NACK_TRIMMED_LASTHOP;
    f.tx_timestamp = req_out[0].tx_timestamp;
    r.now += 700 * MRC_USEC;
    req_hear(&r, &f);
    CHECK_EQ(req_send(&r), 1);
    const uint16_t second = req_out[0].tx_timestamp;
    r.now += 700 * MRC_USEC;
    req_hear(&r, &f);
    CHECK_EQ(req_send(&r), 0);
    f.tx_timestamp = second;
    req_hear(&r, &f);
    CHECK_EQ(req_send(&r), 1);
    req_close(&r);
}

/* Field report 21: a peer that refuses everything the moment it is sent. More than a window in a
 * round trip it does not get, however fast it is, and every refusal costs a bounded effort. */
TEST(req_nack__a_storm_gets_a_window_per_round_trip)
{
    struct rig r;
    enum { CWND = 16, ROUND_US = 500 }; /* base_rtt of the rig */
    req_open(&r, MRC_CC_FIXED);
    r.s[0].cc.cfg.max_cwnd_bytes = CWND * REQ_NOMINAL;
    req_of(&r)->exp_cnt = 25;
    req_post(&r, 8, RIG_BUF, WRITE);
    uint64_t sent = 0;
    const mrc_ns end = r.now + 20 * ROUND_US * MRC_USEC;
    for (; r.now < end; r.now += 5 * MRC_USEC) {
        mrc_engine_tick(r.s[0].e, r.now);
        const size_t n = req_send(&r);
        for (size_t i = 0; i < n; i++)
            sent += (mrc_opcode_flags(req_out[i].opcode) & MRC_OPF_DATA) != 0 ? 1 : 0;
        for (uint32_t psn = REQ_START; psn < REQ_START + CWND; psn++)
            req_hear_nack(&r, psn, MRC_NACK_TRIMMED_LASTHOP);
    }
    CHECK(sent <= (2 * 20 + 2) * CWND); /* the first copies, then twice a round trip at most */
    CHECK(sent >= 20 * CWND);
    CHECK(r.s[0].cc.inflight <= CWND * REQ_NOMINAL);
    req_close(&r);
}
