/* SPDX-License-Identifier: BSD-2-Clause */
/* Requester: whose the window is while a peer is silent (MRC B.9, E.5). */
#include "req_rig.h"

/* Lent is what has been out for T0, the newest of it too. */
TEST(req_timer__nothing_is_lent_that_may_still_be_on_its_way)
{
    struct rig r;
    req_open(&r, MRC_CC_FIXED);
    req_of(&r)->timeout = 14;
    req_of(&r)->linear_cnt = 1;
    req_of(&r)->exp_cnt = 25;
    req_post(&r, 1, RIG_MTU, WRITE);
    const struct mrc_cc *cc = req_qp(&r)->cc;
    CHECK_EQ(req_send(&r), 1);
    for (int i = 0; i < 3; i++)
        CHECK(next_data(&r, MRC_NEVER - 1) != MRC_NEVER);
    req_wait(&r, t0_of(14) / 2);
    req_post(&r, 1, RIG_MTU, WRITE);
    CHECK_EQ(req_send(&r), 1);
    req_wait(&r, t0_of(14) - 1); /* the old one has been out for longer */
    CHECK_EQ(cc->inflight, 2 * REQ_NOMINAL);
    req_wait(&r, 1);
    CHECK_EQ(cc->inflight, 0);
    const struct mrc_pkt nothing = req_sack(&r, REQ_START - 1, REQ_START - 1, 0);
    req_hear(&r, &nothing);
    CHECK_EQ(cc->inflight, 2 * REQ_NOMINAL);
    req_close(&r);
}

/* The longer intervals wait for the peer: meanwhile the window serves the other QPs of the
 * controller, and nothing new leaves. What is heard finds the account as it was. */
TEST(req_timer__the_window_is_lent_while_the_peer_is_awaited)
{
    struct rig r;
    req_open(&r, MRC_CC_FIXED);
    req_of(&r)->timeout = 14;
    req_of(&r)->linear_cnt = 1;
    req_of(&r)->exp_cnt = 25;
    req_post(&r, 1, RIG_MTU, WRITE);
    const struct mrc_cc *cc = req_qp(&r)->cc;
    CHECK_EQ(req_send(&r), 1);
    for (int i = 0; i < 3; i++) /* T0, T0, 2 x T0 from here */
        CHECK(next_data(&r, MRC_NEVER - 1) != MRC_NEVER);
    const mrc_ns left = r.now;
    CHECK_EQ(cc->inflight, REQ_NOMINAL);
    req_wait(&r, t0_of(14) - 1);
    CHECK_EQ(cc->inflight, REQ_NOMINAL);
    req_wait(&r, 1);
    CHECK_EQ(cc->inflight, 0);
    const int64_t others = (int64_t)mrc_cc_cwnd(cc) - REQ_NOMINAL; /* what they may use of it now */
    mrc_cc_release(req_qp(&r)->cc, -others - 1);
    req_post(&r, 1, RIG_MTU, WRITE);
    for (size_t n = req_send(&r), i = 0; i < n; i++)
        CHECK(!is_data(&req_out[i])); /* its own is used as before */
    CHECK_EQ(cc->inflight, others + 1);
    mrc_cc_release(req_qp(&r)->cc, others + 1);
    const struct mrc_pkt nothing = req_sack(&r, REQ_START - 1, REQ_START - 1, 0);
    req_hear(&r, &nothing);
    CHECK_EQ(cc->inflight, REQ_NOMINAL);
    CHECK(next_data(&r, MRC_NEVER - 1) > left);
    const struct mrc_pkt got = req_sack(&r, REQ_START, REQ_START, REQ_NOMINAL);
    req_hear(&r, &got);
    const struct mrc_pkt all = req_sack(&r, REQ_START + 1, REQ_START + 1, 2 * REQ_NOMINAL);
    (void)req_send(&r);
    req_hear(&r, &all);
    CHECK_EQ(req_of(&r)->inflight, 0);
    CHECK_EQ(cc->inflight, 0);
    req_close(&r);
}
