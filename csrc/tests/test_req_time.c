/* SPDX-License-Identifier: BSD-2-Clause */
/* Requester: local ACK timer and retry budget (MRC B.9), probes (B.11), a lost transport ACK (B.6,
 * H16). Round trips are in test_req_rtt.c. */
#include "req_rig.h"

static const struct mrc_pkt *next_probe(struct rig *r, mrc_ns limit)
{
    return next_of(r, limit, false) != MRC_NEVER ? &req_out[0] : NULL;
}

/* ---- B.9 ---- */

/* T(i) = T0 x 2^max(0, i - linear); budget linear + exp; the whole is 66 x T0 for 3 and 5. */
TEST(req_timer__linear_then_doubling_then_error)
{
    struct rig r;
    req_open(&r, MRC_CC_FIXED);
    req_of(&r)->timeout = 14;
    req_of(&r)->linear_cnt = 3;
    req_of(&r)->exp_cnt = 5;
    req_post(&r, 1, RIG_MTU, WRITE);
    CHECK_EQ(req_send(&r), 1);
    const mrc_ns start = r.now;
    mrc_ns last = start;
    static const uint32_t want[] = {1, 1, 1, 1, 2, 4, 8, 16};
    for (uint32_t i = 0; i < 8; i++) {
        const mrc_ns at = next_data(&r, MRC_NEVER - 1);
        CHECK_EQ(at - last, want[i] * t0_of(14));
        CHECK_EQ(req_of(&r)->retry, i + 1);
        last = at;
    }
    CHECK_EQ(next_data(&r, MRC_NEVER - 1), MRC_NEVER);
    CHECK_EQ(r.now - start, 66 * t0_of(14));
    struct mrc_wc wc;
    CHECK_EQ(mrc_cq_poll(r.s[0].e, 0, &wc, 1), 1);
    CHECK_EQ(wc.status, MRC_WC_RETRY_EXC_ERR); /* field report 26 */
    CHECK_EQ(req_qp(&r)->stats.timeouts, 9);
    req_close(&r);
}

TEST(req_timer__twenty_five_is_for_ever_and_the_interval_has_a_cap)
{
    struct rig r;
    req_open(&r, MRC_CC_FIXED);
    req_of(&r)->timeout = 20;
    req_of(&r)->linear_cnt = 0;
    req_of(&r)->exp_cnt = 25;
    req_post(&r, 1, RIG_MTU, WRITE);
    CHECK_EQ(req_send(&r), 1);
    mrc_ns last = r.now;
    for (uint32_t i = 0; i < 40; i++) {
        const mrc_ns at = next_data(&r, MRC_NEVER - 1);
        CHECK_EQ(at - last, t0_of((uint8_t)(20 + i > 24 ? 24 : 20 + i)));
        last = at;
    }
    CHECK(req_qp(&r)->attr.state == MRC_QPS_RTS);
    req_close(&r);
}

/* Packets that left one after the other run out one after the other: one event, one retry. */
TEST(req_timer__packets_of_one_burst_are_one_event)
{
    struct rig r;
    req_open(&r, MRC_CC_FIXED);
    r.s[0].cc.cfg.max_cwnd_bytes = 0;
    req_of(&r)->linear_cnt = 7;
    req_of(&r)->exp_cnt = 0;
    req_post(&r, 1, 8 * RIG_MTU, WRITE);
    for (int i = 0; i < 4; i++) {
        r.s[0].cc.cfg.max_cwnd_bytes += 2 * REQ_NOMINAL;
        req_hear_sack(&r, REQ_START - 1, REQ_START - 1, 0);
        CHECK(req_send(&r) >= 2);
        r.now += 30 * MRC_USEC;
    }
    req_wait(&r, t0_of(10));
    CHECK_EQ(req_of(&r)->retry, 1);
    CHECK_EQ(req_of(&r)->backoff, 1);
    CHECK_EQ(req_qp(&r)->stats.packets_retransmitted, 8);
    req_close(&r);
}

/* What is expired goes out at once on another EV, its own is ASSUMED_BAD, the window falls (B.9).
 */
TEST(req_timer__a_timeout_condemns_the_ev_and_shrinks_the_window) /* field report 31 */
{
    struct rig r;
    req_open(&r, MRC_CC_NSCC);
    req_post(&r, 1, RIG_MTU, WRITE);
    CHECK_EQ(req_send(&r), 1);
    const uint32_t ev = req_raw[0].ev;
    const uint64_t cwnd = mrc_cc_cwnd(&r.s[0].cc);
    CHECK(next_data(&r, r.now + t0_of(10)) != MRC_NEVER);
    CHECK_EQ(mrc_path_state(r.s[0].path, (uint16_t)(ev - RIG_EV0)), MRC_EV_ASSUMED_BAD);
    CHECK(req_ev(&r, REQ_START) != ev);
    CHECK_EQ(mrc_cc_cwnd(&r.s[0].cc), cwnd - REQ_NOMINAL);
    CHECK_EQ(r.s[0].cc.inflight, REQ_NOMINAL);
    req_close(&r);
}

TEST(req_timer__news_restore_budget_and_interval)
{
    struct rig r;
    req_open(&r, MRC_CC_FIXED);
    req_of(&r)->linear_cnt = 1;
    req_post(&r, 1, 20 * RIG_MTU, WRITE);
    CHECK_EQ(req_send(&r), 20);
    for (int i = 0; i < 3; i++)
        CHECK(next_data(&r, MRC_NEVER - 1) != MRC_NEVER);
    CHECK_EQ(req_of(&r)->retry, 3);
    req_hear_sack(&r, REQ_START - 1, REQ_START - 1, 0); /* nothing new */
    CHECK_EQ(req_of(&r)->retry, 3);
    struct mrc_pkt f = req_sack(&r, REQ_START - 1, REQ_START + 3, 0);
    req_hear(&r, &f); /* a PSN above the gap */
    CHECK_EQ(req_of(&r)->retry, 0);
    req_of(&r)->retry = 3;
    req_hear_sack(&r, REQ_START + 1, REQ_START + 1, 0); /* cack moves */
    CHECK_EQ(req_of(&r)->retry, 0);
    CHECK(req_of(&r)->backoff > 0); /* those had left several times: which copy was it? */
    req_post(&r, 1, RIG_MTU, WRITE);
    (void)req_send(&r);
    req_hear_sack(&r, REQ_START + 20, REQ_START + 20, 0);
    CHECK_EQ(req_of(&r)->backoff, 0);
    CHECK_EQ(mrc_req_timeout_ns(req_of(&r)), t0_of(10));
    req_close(&r);
}

/* ADR 132: of a packet that left twice, and whose second copy the report names, it is known how
 * long that took. */
TEST(req_timer__a_copy_that_came_through_restores_the_interval)
{
    struct rig r;
    req_open(&r, MRC_CC_FIXED);
    req_of(&r)->linear_cnt = 0;
    req_post(&r, 1, 20 * RIG_MTU, WRITE);
    CHECK_EQ(req_send(&r), 20);
    CHECK(next_data(&r, MRC_NEVER - 1) != MRC_NEVER);
    CHECK(mrc_req_timeout_ns(req_of(&r)) > t0_of(10));
    struct mrc_pkt f = req_sack(&r, REQ_START - 1, REQ_START + 3, 0);
    req_hear(&r, &f);
    CHECK_EQ(req_of(&r)->backoff, 1); /* the original, or by chance a copy */
    f = req_sack(&r, REQ_START - 1, REQ_START + 4, 0);
    f.rtx = true;
    req_hear(&r, &f);
    CHECK_EQ(req_of(&r)->backoff, 0);
    CHECK_EQ(mrc_req_timeout_ns(req_of(&r)), t0_of(10));
    req_close(&r);
}

/* B.9: a NACK does not lengthen the timer of what it sends again. */
TEST(req_timer__a_refused_packet_starts_its_timer_anew)
{
    struct rig r;
    req_open(&r, MRC_CC_FIXED);
    req_of(&r)->linear_cnt = 0;
    req_post(&r, 1, RIG_MTU, WRITE);
    CHECK_EQ(req_send(&r), 1);
    r.now += 900 * MRC_USEC;
    req_hear_nack(&r, REQ_START, MRC_NACK_TRIMMED);
    CHECK_EQ(req_send(&r), 1);
    const mrc_ns again = r.now;
    CHECK_EQ(next_data(&r, MRC_NEVER - 1) - again, t0_of(10));
    req_close(&r);
}

/* A configured timer below the round trip would send everything twice, for ever (ADR 33). */
TEST(req_timer__never_shorter_than_the_reports_take) /* field report 17 */
{
    struct rig r;
    req_open(&r, MRC_CC_FIXED);
    req_of(&r)->timeout = 4; /* 16 us */
    req_post(&r, 1, RIG_MTU, WRITE);
    CHECK_EQ(req_send(&r), 1);
    r.now += 10 * MRC_USEC;
    req_hear_sack(&r, REQ_START, REQ_START, 0);
    req_hear_ack(&r, REQ_START);
    CHECK_EQ(mrc_req_timeout_ns(req_of(&r)), t0_of(4));
    mrc_req_report_time(req_of(&r), 2 * MRC_MSEC, 1);
    CHECK_EQ(mrc_req_timeout_ns(req_of(&r)), 3 * MRC_MSEC);
    req_close(&r);
}

/* Packets that left a moment apart run out a moment apart: the retries follow the intervals all the
 * same, or T would double without spending any, and a peer that is gone be awaited for hours. */
TEST(req_timer__packets_a_moment_apart_do_not_stretch_the_budget)
{
    struct rig r;
    req_open(&r, MRC_CC_FIXED);
    const mrc_ns start = r.now;
    for (uint32_t i = 0; i < 5; i++) {
        req_post(&r, 1, RIG_MTU, WRITE);
        CHECK_EQ(req_send(&r), 1);
        r.now += 1;
    }
    while (next_data(&r, start + 1000 * t0_of(10)) != MRC_NEVER)
        ;
    CHECK_EQ(req_qp(&r)->attr.state, MRC_QPS_ERR);
    CHECK(r.now - start >= (4 + 2 + 4 + 8) * t0_of(10));
    CHECK(r.now - start <= 2 * (4 + 2 + 4 + 8) * t0_of(10));
    req_close(&r);
}

/* B.9: an incast that cuts must not kill the queue pair, however many packets and short round
 * trips; a peer that refuses everything is given up after as long as one that is silent. */
TEST(req_retry__refusals_last_as_long_as_silence)
{
    enum { ROUND = 600 * MRC_USEC };
    struct rig r;
    req_open(&r, MRC_CC_FIXED); /* linear 3 + exp 3 */
    req_post(&r, 1, 100 * RIG_MTU, WRITE);
    const mrc_ns start = r.now;
    while (req_qp(&r)->attr.state == MRC_QPS_RTS && r.now < start + 100 * t0_of(10)) {
        CHECK_EQ(req_send(&r), 100);
        const uint32_t before = req_of(&r)->retry;
        r.now += ROUND;
        for (uint32_t i = 0; i < 100; i++)
            req_hear_nack(&r, REQ_START + i, MRC_NACK_TRIMMED);
        CHECK(req_of(&r)->retry <= before + 1);
    }
    CHECK_EQ(req_qp(&r)->stats.error, MRC_WC_RETRY_EXC_ERR);
    const mrc_ns took = r.now - start;
    CHECK(took >= (1 + 1 + 1 + 2 + 4 + 8) * t0_of(10)); /* T(1) to T(6): the first counts at once */
    CHECK(took <= (1 + 1 + 1 + 2 + 4 + 8) * t0_of(10) + 7 * ROUND);
    req_close(&r);
}

/* A refusal spends a retry, and the timeout that follows it at once another. */
TEST(req_retry__one_counter_for_refusals_and_timeouts)
{
    struct rig r;
    req_open(&r, MRC_CC_FIXED);
    req_post(&r, 1, 2 * RIG_MTU, WRITE);
    CHECK_EQ(req_send(&r), 2);
    r.now += 1000 * MRC_USEC;
    req_hear_nack(&r, REQ_START, MRC_NACK_TRIMMED_LASTHOP);
    CHECK_EQ(req_of(&r)->retry, 1);
    CHECK_EQ(req_send(&r), 1);
    req_wait(&r, 100 * MRC_USEC); /* the other one runs out */
    CHECK_EQ(req_of(&r)->retry, 2);
    req_close(&r);
}

/* ---- B.6, H16: the transport ACK is lost ---- */

TEST(req_ack__asked_for_again_with_the_last_packet)
{
    struct rig r;
    req_open(&r, MRC_CC_FIXED);
    req_post(&r, 1, 3 * RIG_MTU, WIMM);
    CHECK_EQ(req_send(&r), 3);
    req_hear_sack(&r, REQ_START + 2, REQ_START + 2, 3 * REQ_NOMINAL);
    const mrc_ns heard = r.now;
    const mrc_ns at = next_data(&r, heard + 2 * t0_of(10));
    CHECK(at - heard <= t0_of(10)); /* at the latest when the local ACK timer runs out */
    CHECK_EQ(req_out[0].psn, REQ_START + 2);
    CHECK(req_out[0].rtx && req_out[0].a && req_out[0].opcode == MRC_OP_WRITE_LAST_IMM);
    CHECK_EQ(r.s[0].cc.inflight, 0); /* it has been counted already, and will not be again */
    CHECK_EQ(req_of(&r)->tx.inflight_count, 0);
    req_hear_ack(&r, REQ_START + 2);
    CHECK_EQ(next_data(&r, r.now + MRC_SEC), MRC_NEVER);
    req_close(&r);
}

TEST(req_ack__one_that_nobody_asked_for_is_not_missed)
{
    struct rig r;
    req_open(&r, MRC_CC_FIXED);
    r.s[0].cc.cfg.max_cwnd_bytes = 1 << 20;
    struct mrc_send_wr wr = {.opcode = WRITE};
    CHECK_EQ(mrc_qp_post_send(r.s[0].e, r.s[0].qpn, &wr, 1), 1); /* unsignalled */
    req_post(&r, 1, 20 * RIG_MTU, WRITE);
    r.s[0].cc.cfg.max_cwnd_bytes = 17000;
    CHECK_EQ(mrc_engine_tx(r.s[0].e, req_raw, 5, r.now), 5);
    CHECK_EQ(req_of(&r)->tx.max_sent.v, REQ_START + 4);
    req_hear_sack(&r, REQ_START + 4, REQ_START + 4, 5 * REQ_NOMINAL);
    CHECK_EQ(req_of(&r)->ack_at, MRC_NEVER);
    req_close(&r);
}

TEST(req_ack__a_peer_that_never_acknowledges_ends_it) /* B.9's budget */
{
    struct rig r;
    req_open(&r, MRC_CC_FIXED);
    req_post(&r, 1, RIG_MTU, WRITE);
    CHECK_EQ(req_send(&r), 1);
    const mrc_ns start = r.now;
    req_hear_sack(&r, REQ_START, REQ_START, REQ_NOMINAL);
    for (int i = 0; i < 1000 && req_qp(&r)->attr.state == MRC_QPS_RTS; i++) {
        CHECK(next_data(&r, MRC_NEVER - 1) != MRC_NEVER || r.now > start);
        req_hear_sack(&r, REQ_START, REQ_START, REQ_NOMINAL);
    }
    CHECK_EQ(req_qp(&r)->stats.error, MRC_WC_RETRY_EXC_ERR);
    CHECK_EQ(r.now - start, (4 + 2 + 4 + 8) * t0_of(10)); /* linear 3, exp 3 */
    req_close(&r);
}

/* ---- B.11: probes ---- */

TEST(req_probe__the_tail_is_probed_soon_and_then_less_often)
{
    struct rig r;
    const mrc_ns rtt = 500 * MRC_USEC; /* of the rig; the target delay is the same */
    req_open(&r, MRC_CC_FIXED);
    req_of(&r)->timeout = 20;
    req_post(&r, 1, 4 * RIG_MTU, WRITE);
    CHECK_EQ(req_send(&r), 4);
    r.now += 10 * MRC_USEC; /* of a fast network */
    req_hear_sack(&r, REQ_START, REQ_START, REQ_NOMINAL);
    const mrc_ns heard = r.now;
    CHECK(next_probe(&r, heard + MRC_SEC) != NULL);
    CHECK_EQ(r.now - heard, 2 * rtt);
    CHECK_EQ(req_out[0].ftype, 1);
    CHECK_EQ(req_out[0].psn, 0); /* takes no PSN */
    CHECK_EQ(req_of(&r)->tx.max_sent.v, REQ_START + 3);
    CHECK((req_raw[0].tclass & 3) == 2 && req_raw[0].tclass == r.s[0].e->env.tclass_data);
    CHECK(mrc_path_state(r.s[0].path, mrc_path_find(r.s[0].path, req_raw[0].ev)) == MRC_EV_GOOD);
    mrc_ns last = r.now;
    for (uint32_t i = 0; i < 3; i++) {
        CHECK(next_probe(&r, last + MRC_SEC) != NULL);
        CHECK_EQ(r.now - last, (5 * rtt) << i);
        last = r.now;
    }
    const mrc_ns next = req_of(&r)->probe_at;
    r.now += rtt;
    req_hear_ack(&r, REQ_START); /* says nothing that the SACK did not */
    CHECK_EQ(req_of(&r)->probe_at, next);
    req_hear_sack(&r, REQ_START + 1, REQ_START + 1, 2 * REQ_NOMINAL); /* armed anew */
    CHECK_EQ(req_of(&r)->probe_at - r.now, 2 * rtt);
    req_hear_sack(&r, REQ_START + 3, REQ_START + 3, 4 * REQ_NOMINAL);
    CHECK_EQ(req_of(&r)->probe_at, MRC_NEVER);
    req_close(&r);
}

TEST(req_probe__not_before_a_tenth_of_a_millisecond) /* B.11: in software */
{
    struct rig r;
    req_open(&r, MRC_CC_FIXED);
    r.s[0].cc.cfg.base_rtt_ns = r.s[0].cc.cfg.target_delay_ns = 5 * MRC_USEC;
    req_post(&r, 1, 2 * RIG_MTU, WRITE);
    CHECK_EQ(req_send(&r), 2);
    req_hear_sack(&r, REQ_START, REQ_START, REQ_NOMINAL);
    CHECK_EQ(req_of(&r)->probe_at - r.now, 100 * MRC_USEC);
    req_close(&r);
}

/* 10,000 queue pairs of a busy host were probed five times in each round trip of it (ADR 135). */
TEST(req_probe__not_before_answers_of_late_could_be_here)
{
    struct rig r;
    const mrc_ns rtt = 500 * MRC_USEC; /* of the rig; the target delay is the same */
    const mrc_ns took = 20 * MRC_MSEC;
    const mrc_ns patience = took + took / 2;
    req_open(&r, MRC_CC_FIXED);
    req_of(&r)->timeout = 20;
    req_post(&r, 1, 4 * RIG_MTU, WRITE);
    CHECK_EQ(req_send(&r), 4);
    r.now += took;
    req_hear_sack(&r, REQ_START, REQ_START, REQ_NOMINAL);
    CHECK_EQ(req_of(&r)->srtt_ns, took);
    mrc_ns last = r.now;
    for (uint32_t i = 0; i < 6; i++) { /* 2.5 to 80 ms otherwise, after the first */
        CHECK(next_probe(&r, last + MRC_SEC) != NULL);
        const mrc_ns rare = i == 0 ? 2 * rtt : (5 * rtt) << (i - 1);
        CHECK_EQ(r.now - last, rare > patience ? rare : patience);
        last = r.now;
    }
    req_hear_sack(&r, REQ_START + 3, REQ_START + 3, 4 * REQ_NOMINAL); /* only its ACK is missing */
    CHECK_EQ(req_of(&r)->probe_at, MRC_NEVER);
    CHECK(req_of(&r)->srtt_ns >= took);
    CHECK(req_of(&r)->ack_at - r.now >= patience);
    CHECK(req_of(&r)->ack_at - r.now <= 32 * MRC_MSEC);
    req_close(&r);
}

/* The probe is answered before the timer runs out, and a transport ACK is asked for again before a
 * retry is spent; a host that paused for seconds slows nothing by seconds. */
TEST(req_probe__early_enough_for_its_answer)
{
    static const struct {
        mrc_ns took;
        uint8_t timeout;
    } of[] = {{20 * MRC_MSEC, 14}, {200 * MRC_MSEC, 14}, {3 * MRC_SEC, 14}, {3 * MRC_SEC, 22}};
    for (uint32_t i = 0; i < sizeof of / sizeof of[0]; i++) {
        struct rig r;
        req_open(&r, MRC_CC_FIXED);
        req_of(&r)->timeout = of[i].timeout;
        req_post(&r, 1, 2 * RIG_MTU, WRITE);
        CHECK_EQ(req_send(&r), 2);
        req_of(&r)->srtt_ns = of[i].took;
        mrc_req_report_time(req_of(&r), of[i].took, 1);
        req_hear_sack(&r, REQ_START, REQ_START, REQ_NOMINAL);
        const mrc_ns srtt = req_of(&r)->srtt_ns;
        const mrc_ns probe = req_of(&r)->probe_at - r.now;
        CHECK(probe <= 32 * MRC_MSEC);
        CHECK(probe + srtt <= mrc_req_timeout_ns(req_of(&r)));
        CHECK(probe >= srtt / 3 || probe == 32 * MRC_MSEC);
        req_hear_sack(&r, REQ_START + 1, REQ_START + 1, 2 * REQ_NOMINAL);
        CHECK(req_of(&r)->ack_at - r.now <= 32 * MRC_MSEC);
        CHECK(req_of(&r)->ack_at < r.now + mrc_req_timeout_ns(req_of(&r)));
        req_close(&r);
    }
}

TEST(req_probe__rarely_while_more_is_to_come)
{
    struct rig r;
    req_open(&r, MRC_CC_FIXED);
    r.s[0].cc.cfg.max_cwnd_bytes = 4 * REQ_NOMINAL;
    req_post(&r, 1, 40 * RIG_MTU, WRITE);
    CHECK_EQ(req_send(&r), 4);
    req_hear_sack(&r, REQ_START - 1, REQ_START - 1, 0);
    CHECK_EQ(req_of(&r)->probe_at - r.now, 3 * 500 * MRC_USEC);
    req_close(&r);
}

/* The last packet is lost on a path that never reported; only a probe's answer tells. */
TEST(req_probe__a_lost_tail_is_repaired_without_the_timer)
{
    for (int queued = 0; queued < 2; queued++) {
        struct rig r;
        req_open(&r, MRC_CC_FIXED);
        req_of(&r)->timeout = 20; /* 1 s */
        req_post(&r, 1, 3 * RIG_MTU, WRITE);
        CHECK_EQ(req_send(&r), 3);
        const mrc_ns start = r.now;
        r.now += 300 * MRC_USEC;
        req_hear_sack(&r, REQ_START + 1, REQ_START + 1, 2 * REQ_NOMINAL);
        CHECK(next_probe(&r, r.now + 2 * MRC_MSEC) != NULL);
        const uint32_t ev = req_raw[0].ev;
        const struct mrc_pkt probe = req_out[0];
        r.now += queued != 0 ? 1200 * MRC_USEC : 300 * MRC_USEC;
        const struct mrc_pkt f = req_probe_answer(&r, &probe, ev, REQ_START + 1, 2 * REQ_NOMINAL);
        req_hear(&r, &f);
        const size_t n = req_send(&r);
        uint32_t again = 0;
        for (size_t i = 0; i < n; i++)
            again += is_data(&req_out[i]) && req_out[i].rtx && req_out[i].psn == REQ_START + 2;
        /* So late an answer says that queues are long, and the packet may wait in one. */
        CHECK_EQ(again, queued != 0 ? 0 : 1);
        CHECK(r.now - start < 3 * MRC_MSEC);
        CHECK_EQ(req_qp(&r)->stats.timeouts, 0);
        req_close(&r);
    }
}

/* B.5.4: left while its EV was good, answered after that was taken for bad: a success like others.
 */
TEST(req_probe__an_answer_counts_for_an_ev_that_is_assumed_bad)
{
    struct rig r;
    struct mrc_pkt on[8];
    uint32_t n = 0;
    req_open(&r, MRC_CC_FIXED);
    req_of(&r)->timeout = 24;
    CHECK_EQ(mrc_path_set_state(r.s[0].path, 2, MRC_EV_DENIED, r.now), MRC_OK);
    CHECK_EQ(mrc_path_set_state(r.s[0].path, 3, MRC_EV_DENIED, r.now), MRC_OK);
    req_post(&r, 1, 3 * RIG_MTU, WRITE);
    CHECK_EQ(req_send(&r), 3);
    for (int i = 0; i < 7; i++) {
        CHECK(next_probe(&r, r.now + MRC_SEC) != NULL);
        if (req_raw[0].ev == RIG_EV0)
            on[n++] = req_out[0];
    }
    CHECK(n >= 3);
    struct mrc_pkt f = req_sack(&r, REQ_START - 1, REQ_START, 0);
    f.mark = MRC_MARK_ALWAYS_SKIP;
    req_hear(&r, &f);
    for (uint32_t i = 0; i < 3 && i < n; i++) {
        CHECK_EQ(mrc_path_state(r.s[0].path, 0), MRC_EV_ASSUMED_BAD);
        f = req_probe_answer(&r, &on[i], RIG_EV0, REQ_START, 0);
        req_hear(&r, &f);
    }
    CHECK_EQ(mrc_path_state(r.s[0].path, 0), MRC_EV_GOOD);
    req_close(&r);
}

TEST(req_probe__a_lost_last_sack_is_told_again)
{
    struct rig r;
    req_open(&r, MRC_CC_FIXED);
    req_of(&r)->timeout = 20;
    req_post(&r, 1, 3 * RIG_MTU, WRITE);
    CHECK_EQ(req_send(&r), 3);
    CHECK(next_probe(&r, r.now + 2 * MRC_MSEC) != NULL);
    const struct mrc_pkt *probe = &req_out[0];
    r.now += 300 * MRC_USEC;
    struct mrc_pkt f = req_probe_answer(&r, probe, req_raw[0].ev, REQ_START + 2, 3 * REQ_NOMINAL);
    req_hear(&r, &f);
    CHECK_EQ(req_of(&r)->tx.unack.v, REQ_START + 2);
    CHECK_EQ(r.s[0].cc.inflight, 0);
    CHECK_EQ(req_qp(&r)->stats.packets_retransmitted, 0);
    /* And it was a round trip of the EV that the probe took. */
    CHECK_EQ(mrc_path_srtt(r.s[0].path, mrc_path_find(r.s[0].path, f.entropy)), 300 * MRC_USEC);
    req_close(&r);
}
