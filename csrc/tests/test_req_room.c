/* SPDX-License-Identifier: BSD-2-Clause */
/* A responder that is short of room: how long its peer waits, and what it sends meanwhile
 * (MRC B.7; ADR 74). */
#include "req_rig.h"

enum { TIMEOUT = 11 }; /* T0 = 2.1 ms */

static void room_open(struct rig *r, uint32_t packets)
{
    req_open(r, MRC_CC_FIXED);
    req_of(r)->timeout = TIMEOUT;
    req_of(r)->exp_cnt = 25;
    req_post(r, 1, packets * RIG_MTU, WRITE);
    CHECK_EQ(req_send(r), packets);
}

/* How long nothing leaves after one more refusal of the next packet in order. */
static mrc_ns pause_after(struct rig *r)
{
    r->now += mrc_cc_base_rtt(&r->s[0].cc);
    req_hear_nack(r, REQ_START, MRC_NACK_NO_RESOURCE);
    CHECK_EQ(req_send(r), 0);
    const mrc_ns from = r->now;
    return next_data(r, from + MRC_SEC) - from;
}

/* Twice as long each time, but never longer than the local ACK timer runs. */
TEST(req_room__the_pause_doubles_up_to_the_timer)
{
    struct rig r;
    room_open(&r, 1); /* none beside it that could run out */
    const mrc_ns first = mrc_max64(mrc_cc_base_rtt(&r.s[0].cc), 100 * MRC_USEC);
    CHECK(4 * first < 8 * t0_of(TIMEOUT));
    for (uint32_t k = 0; k < 12; k++) {
        const mrc_ns want = mrc_min64(first << k, t0_of(TIMEOUT));
        CHECK_EQ(pause_after(&r), want);
    }
    CHECK_EQ(req_qp(&r)->attr.state, MRC_QPS_RTS);
    req_close(&r);
}

/* News end it: the next pause is a short one again. */
TEST(req_room__news_end_the_series)
{
    struct rig r;
    room_open(&r, 3);
    const mrc_ns first = pause_after(&r);
    CHECK(pause_after(&r) > first);
    req_hear_sack(&r, REQ_START - 1, REQ_START + 2, REQ_NOMINAL);
    CHECK_EQ(pause_after(&r), first);
    req_close(&r);
}

/* A refusal above the next one makes room smaller, and no pause. */
TEST(req_room__a_refusal_further_up_is_no_pause)
{
    struct rig r;
    room_open(&r, 3);
    r.now += mrc_cc_base_rtt(&r.s[0].cc);
    req_hear_nack(&r, REQ_START + 2, MRC_NACK_NO_BITMAP);
    CHECK(req_of(&r)->hold_at == MRC_NEVER);
    CHECK_EQ(req_of(&r)->room, 1);
    req_close(&r);
}
