/* SPDX-License-Identifier: BSD-2-Clause */
/* Requester: whatever the peer answers, and whatever it does not, a request ends (MRC B.9, B.11;
 * ADR 72), and what counts up does not turn over (field reports 9, 22). */
#include "req_rig.h"

enum { T = 10, LINEAR = 3, EXP = 3 };

static mrc_ns whole_budget(void) { return (LINEAR + 1 + 2 + 4 + 8) * t0_of(T); }

/* A peer, 100 us away, that answers probes and never sees data. Until the QP ends or `limit`; ->
 * copies of data sent. */
static uint32_t only_probes_arrive(struct rig *r, mrc_ns limit)
{
    uint32_t copies = 0;
    while (req_qp(r)->attr.state == MRC_QPS_RTS && r->now < limit) {
        const size_t n = req_send(r);
        r->now += 100 * MRC_USEC;
        for (size_t i = 0; i < n; i++) {
            if (is_data(&req_out[i])) {
                copies++;
                continue;
            }
            const struct mrc_pkt f = req_probe_answer(r, &req_out[i], RIG_EV0, REQ_START - 1, 0);
            req_hear(r, &f);
        }
        r->now = mrc_max64(r->now, mrc_min64(mrc_engine_deadline(r->s[0].e), limit));
        mrc_engine_tick(r->s[0].e, r->now);
    }
    return copies;
}

TEST(req_ends__answered_probes_do_not_keep_lost_data_alive) /* field report 22 */
{
    for (uint32_t packets = 1; packets <= 64; packets *= 64) {
        struct rig r;
        req_open(&r, MRC_CC_FIXED);
        r.s[0].cc.cfg.max_cwnd_bytes = 4 * REQ_WINDOW * REQ_NOMINAL;
        req_of(&r)->timeout = 14;
        req_post(&r, 1, packets * RIG_MTU, WRITE);
        const mrc_ns start = r.now;
        const uint32_t copies = only_probes_arrive(&r, start + 60 * MRC_SEC);
        CHECK_EQ(req_qp(&r)->stats.error, MRC_WC_RETRY_EXC_ERR);
        CHECK(r.now - start >= 18 * t0_of(14)); /* not sooner than for silence */
        CHECK(r.now - start < 36 * t0_of(14));
        CHECK(copies <= packets * (1 + 4 + 2 * (LINEAR + EXP)));
        CHECK(req_qp(&r)->stats.timeouts >= LINEAR + EXP);
        req_close(&r);
    }
}

/* Whatever else sends a packet again starts its timer anew; not that of the queue pair. */
TEST(req_ends__what_cannot_be_sent_is_a_timeout_in_the_end)
{
    struct rig r;
    req_open(&r, MRC_CC_FIXED);
    req_post(&r, 1, RIG_MTU, WRITE);
    CHECK_EQ(req_send(&r), 1);
    const mrc_ns start = r.now;
    const mrc_ns step = t0_of(T) / 8;
    struct mrc_req_ctx c = {.env = &r.s[0].e->env,
                            .peer = &req_qp(&r)->peer,
                            .stats = &req_qp(&r)->stats,
                            .path = r.s[0].path,
                            .cc = req_qp(&r)->cc};
    while (req_qp(&r)->attr.state == MRC_QPS_RTS && r.now - start < 10 * whole_budget()) {
        r.now += step;
        c.now = r.now;
        const struct mrc_slot *s = mrc_txtrack_find(&req_of(&r)->tx, mrc_psn(REQ_START));
        if (s->state == MRC_SLOT_INFLIGHT)
            mrc_req_lose(req_of(&r), &c, &req_of(&r)->tx.slot[REQ_START & req_of(&r)->tx.mask],
                         MRC_EV_R_SEND_ERROR);
        mrc_engine_tick(r.s[0].e, r.now);
        (void)req_send(&r);
    }
    CHECK_EQ(req_qp(&r)->stats.error, MRC_WC_RETRY_EXC_ERR);
    CHECK(r.now - start >= whole_budget());
    req_close(&r);
}

/* A SACK that contradicts itself: all above cack has arrived, cack + 1 with it. */
TEST(req_ends__a_report_of_the_next_packet_leaves_a_timer)
{
    for (uint32_t reported = 1; reported <= 8; reported++) {
        struct rig r;
        req_open(&r, MRC_CC_FIXED);
        req_post(&r, 1, 8 * RIG_MTU, WRITE);
        CHECK_EQ(req_send(&r), 8);
        struct mrc_pkt f = req_sack(&r, REQ_START - 1, REQ_START, 8 * REQ_NOMINAL);
        f.sack_bitmap = (1u << reported) - 1;
        f.ooo_count = (uint16_t)reported;
        req_hear(&r, &f);
        CHECK_EQ(mrc_psn_diff(req_of(&r)->tx.unack, mrc_psn(REQ_START)), reported - 1);
        CHECK_EQ(req_of(&r)->tx.acked_count, 0);
        CHECK(mrc_req_deadline(req_of(&r)) != MRC_NEVER);
        req_wait(&r, 4 * whole_budget());
        CHECK_EQ(req_qp(&r)->stats.error, MRC_WC_RETRY_EXC_ERR);
        req_close(&r);
    }
}

/* What arrived in a window that ended out of reach is passed over as soon as the gap below it is
 * closed, by whatever closes it. */
TEST(req_ends__a_gap_that_closes_takes_all_above_with_it)
{
    struct rig r;
    req_open(&r, MRC_CC_FIXED);
    req_post(&r, 1, 4 * RIG_MTU, WRITE);
    CHECK_EQ(req_send(&r), 4);
    struct mrc_pkt f = req_sack(&r, REQ_START - 1, REQ_START + 3, 3 * REQ_NOMINAL);
    f.sack_bitmap = 0xE;
    f.ooo_count = 3;
    req_hear(&r, &f);
    CHECK_EQ(req_of(&r)->tx.acked_count, 3);
    req_hear_sack(&r, REQ_START, REQ_START, 4 * REQ_NOMINAL);
    CHECK_EQ(req_of(&r)->tx.acked_count, 0);
    CHECK(mrc_req_deadline(req_of(&r)) != MRC_NEVER); /* for the transport ACK */
    req_close(&r);
}

/* News of later requests is no news of the oldest: it waits for its transport ACK on a budget that
 * only a completion refills. */
TEST(req_ends__a_flow_of_news_does_not_excuse_a_missing_ack)
{
    for (uint32_t acked = 0; acked < 2; acked++) {
        struct rig r;
        req_open(&r, MRC_CC_FIXED);
        const mrc_ns start = r.now;
        uint32_t psn = REQ_START;
        for (; psn < REQ_START + 200 && req_qp(&r)->attr.state == MRC_QPS_RTS; psn++) {
            if (psn < REQ_START + 10 || acked == 1)
                req_post(&r, 1, RIG_MTU, WRITE);
            (void)req_send(&r);
            const uint32_t top = req_of(&r)->tx.max_sent.v;
            req_hear_sack(&r, top, top, (top - REQ_START + 1) * REQ_NOMINAL);
            req_of(&r)->retry = 0; /* as news of still more would have it */
            struct mrc_wc wc;
            if (acked == 1)
                req_hear_ack(&r, top);
            while (mrc_cq_poll(r.s[0].e, 0, &wc, 1) > 0)
                continue;
            req_wait(&r, t0_of(T) / 4);
        }
        CHECK_EQ(req_qp(&r)->stats.error, acked == 1 ? MRC_WC_SUCCESS : MRC_WC_RETRY_EXC_ERR);
        if (acked == 0)
            CHECK(r.now - start >= whole_budget() && r.now - start < 2 * whole_budget());
        req_close(&r);
    }
}

/* 24 bits tell ahead from behind within 2^23: the oldest request may not fall so far behind. */
TEST(req_ends__the_oldest_request_is_never_out_of_sight)
{
    struct rig r;
    req_open(&r, MRC_CC_FIXED);
    req_of(&r)->exp_cnt = 25;
    req_post(&r, 1, RIG_MTU, WRITE);
    CHECK_EQ(req_send(&r), 1);
    req_hear_sack(&r, REQ_START, REQ_START, REQ_NOMINAL);
    struct mrc_wqe *oldest = &req_of(&r)->sq[req_of(&r)->head & req_of(&r)->sq_mask];
    oldest->first = mrc_psn_add(mrc_psn(REQ_START), -(1 << 22) + 2); /* long ago */
    req_post(&r, 2, 2 * RIG_MTU, WRITE);
    CHECK_EQ(req_send(&r), 2);
    CHECK(req_out[1].a); /* nothing can follow */
    req_hear_sack(&r, REQ_START + 2, REQ_START + 2, 3 * REQ_NOMINAL);
    CHECK_EQ(req_send(&r), 0);
    CHECK(mrc_req_deadline(req_of(&r)) != MRC_NEVER);
    req_hear_ack(&r, oldest->first.v);
    CHECK_EQ(req_send(&r), 2);
    req_close(&r);
}

/* ---- 2^31 transmissions later ---- */

TEST(req_order__a_path_that_was_idle_for_long_condemns_nothing)
{
    struct rig r;
    req_open(&r, MRC_CC_FIXED);
    req_of(&r)->train_max = 1;
    req_post(&r, 1, 8 * RIG_MTU, WRITE);
    CHECK_EQ(req_send(&r), 8);
    req_hear_sack(&r, REQ_START + 7, REQ_START + 7, 8 * REQ_NOMINAL);
    req_of(&r)->tx.order += 0x80000100; /* all of them on paths outside this table */
    req_post(&r, 1, 8 * RIG_MTU, WRITE);
    CHECK_EQ(req_send(&r), 8);
    req_hear_sack(&r, REQ_START + 8, REQ_START + 8, 9 * REQ_NOMINAL);
    CHECK_EQ(req_of(&r)->tx.lost_count, 0);
    CHECK_EQ(req_qp(&r)->stats.losses_inferred, 0);
    req_close(&r);
}

TEST(req_train__is_one_message)
{
    const uint16_t mtus[] = {4096, 1024};
    for (uint32_t i = 0; i < 2; i++) {
        struct rig r;
        req_open(&r, MRC_CC_FIXED);
        req_qp(&r)->peer.path_mtu = mtus[i];
        req_of(&r)->train_max = MRC_TRAIN_MAX;
        req_post(&r, 3, 8u * mtus[i], WRITE);
        CHECK_EQ(req_send(&r), 24);
        uint32_t n = 0;
        while (n < 24 && req_raw[n].ev == req_raw[0].ev)
            n++;
        CHECK_EQ(n, mtus[i] == 4096 ? 15 : 16); /* 64 KB hold no more */
        req_close(&r);
    }
}

/* ---- what a peer may say of time, and what may be changed under queued work ---- */

/* A reflected timestamp that says the whole round trip was the peer's own. */
TEST(req_rtt__no_base_far_below_what_was_configured)
{
    for (uint32_t agreed = 0; agreed < 2; agreed++) {
        struct rig r;
        req_open(&r, MRC_CC_NSCC);
        req_qp(&r)->attr.cap = agreed == 1 ? 0 : MRC_QP_CAP_NO_SERVICE_TIME;
        req_post(&r, 1, RIG_MTU, WRITE);
        CHECK_EQ(req_send(&r), 1);
        r.now += 400 * MRC_USEC;
        req_hear_sack(&r, REQ_START, REQ_START, REQ_NOMINAL);
        CHECK_EQ(req_send(&r), 1); /* the probe of the base */
        r.now += 128 * 1000;
        struct mrc_pkt f = req_sack(&r, REQ_START, REQ_START, REQ_NOMINAL);
        f.pr = true;
        f.probe_id = req_out[0].probe_id;
        f.tx_timestamp = (uint16_t)(req_out[0].tx_timestamp + 1000);
        req_hear(&r, &f);
        const mrc_ns base = mrc_cc_shortest_rtt(&r.s[0].cc);
        CHECK_EQ(base, agreed == 1 ? r.s[0].cc.cfg.base_rtt_ns / 16 : 128 * 1000);
        req_close(&r);
    }
}

TEST(req_retry__refusals_of_a_short_round_trip_count_once)
{
    struct rig r;
    req_open(&r, MRC_CC_FIXED);
    r.s[0].cc.cfg.base_rtt_ns = 32;
    req_post(&r, 1, 12 * RIG_MTU, WRITE);
    CHECK_EQ(req_send(&r), 12);
    for (uint32_t k = 0; k < 12; k++) {
        r.now += 400;
        req_hear_nack(&r, REQ_START + k, MRC_NACK_TRIMMED);
    }
    CHECK_EQ(req_of(&r)->retry, 1);
    req_close(&r);
}

TEST(req_tx__no_limit_of_zero_under_a_queued_immediate) /* B.8 */
{
    struct rig r;
    req_open(&r, MRC_CC_FIXED);
    const struct mrc_qp_attr none = {.max_wimm = 0};
    req_post(&r, 1, RIG_MTU, MRC_WR_RDMA_WRITE_WITH_IMM);
    CHECK_EQ(mrc_qp_modify(r.s[0].e, r.s[0].qpn, &none, MRC_QP_WIMM, r.now), MRC_ERR_STATE);
    CHECK_EQ(req_send(&r), 1);
    CHECK_EQ(mrc_qp_modify(r.s[0].e, r.s[0].qpn, &none, MRC_QP_WIMM, r.now), MRC_OK);
    req_close(&r);
}

/* One message may be 2^31 bytes, and a queue may hold many of them. */
TEST(req_tx__the_backlog_counts_beyond_32_bits)
{
    struct rig r;
    req_open(&r, MRC_CC_FIXED);
    req_of(&r)->backlog = UINT32_MAX; /* of 512 such messages; no test has the memory */
    req_post(&r, 1, RIG_MTU, WRITE);
    CHECK(req_of(&r)->backlog == (uint64_t)UINT32_MAX + 1);
    req_of(&r)->backlog = 1;
    CHECK_EQ(req_send(&r), 1);
    req_close(&r);
}

/* A peer that proves nothing: what the walk of one SACK did not reach comes first in the next. */
TEST(req_infer__the_paths_share_one_budget)
{
    struct rig r;
    req_open(&r, MRC_CC_FIXED);
    r.s[0].cc.cfg.max_cwnd_bytes = 4 * REQ_WINDOW * REQ_NOMINAL;
    req_of(&r)->train_max = 1;
    req_of(&r)->timeout = 22;
    req_post(&r, 8, 128 * RIG_MTU, WRITE);
    CHECK_EQ(req_send(&r), 1024);
    for (uint32_t k = 0; k < RIG_EVS; k++) { /* the newest of each path has arrived, it says */
        struct mrc_pkt f = req_sack(&r, REQ_START - 1, REQ_START + 1023 - k, 0);
        f.ooo_count = 999;
        req_hear(&r, &f);
    }
    CHECK_EQ(req_of(&r)->tx.touched_count, RIG_EVS);
    const uint16_t first = req_of(&r)->tx.touched_head;
    struct mrc_pkt f = req_sack(&r, REQ_START - 1, REQ_START + 1023, 0);
    f.ooo_count = 999;
    req_hear(&r, &f);
    CHECK_EQ(req_of(&r)->tx.touched_count, RIG_EVS);
    CHECK(req_of(&r)->tx.touched_head != first);
    req_close(&r);
}

/* B.11: what waits to leave again will bring an answer of its own, so there is no hurry to ask. */
TEST(req_probe__no_tail_while_something_leaves_again)
{
    struct rig r;
    req_open(&r, MRC_CC_FIXED);
    req_post(&r, 1, 3 * RIG_MTU, MRC_WR_RDMA_WRITE);
    CHECK_EQ(req_send(&r), 3);
    const mrc_ns rtt = mrc_cc_base_rtt(&r.s[0].cc);
    CHECK(rtt + mrc_cc_target_delay(&r.s[0].cc) < 3 * rtt);
    r.now += rtt;
    req_hear_nack(&r, REQ_START, MRC_NACK_TRIMMED); /* and no turn yet in which it could leave */
    req_hear_sack(&r, REQ_START - 1, REQ_START + 1, REQ_NOMINAL);
    CHECK_EQ(req_of(&r)->probe_at, r.now + 3 * rtt);
    req_close(&r);
}

/* H16: the question for a lost transport ACK leaves through a closed window. */
TEST(req_ack__is_asked_for_through_a_closed_window)
{
    struct rig r;
    req_open(&r, MRC_CC_FIXED);
    r.s[0].cc.cfg.max_cwnd_bytes = REQ_NOMINAL;
    req_post(&r, 2, RIG_MTU, MRC_WR_RDMA_WRITE);
    CHECK_EQ(req_send(&r), 1);
    r.now += 100 * MRC_USEC;
    req_hear_sack(&r, REQ_START, REQ_START, (REQ_NOMINAL + 255) / 256 * 256);
    CHECK_EQ(req_send(&r), 1); /* the second fills the window, and its answer is on its way */
    CHECK(!mrc_cc_can_send(&r.s[0].cc, 1));
    const mrc_ns heard = r.now;
    while (r.now < heard + t0_of(10) - MRC_USEC && !req_of(&r)->ack_query_due) {
        r.now = mrc_engine_deadline(r.s[0].e);
        mrc_engine_tick(r.s[0].e, r.now);
    }
    CHECK(req_of(&r)->ack_query_due && !mrc_cc_can_send(&r.s[0].cc, 1));
    const size_t n = req_send(&r);
    bool asked = false;
    for (size_t i = 0; i < n; i++)
        asked = asked || (is_data(&req_out[i]) && req_out[i].psn == REQ_START);
    CHECK(asked);
    req_close(&r);
}
