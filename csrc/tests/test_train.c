/* SPDX-License-Identifier: BSD-2-Clause */
/* How many packets follow each other on one path: ADR 34, 114, 112. */
#define RIG_EVS 64
#include "req_rig.h"

enum { WINDOW = RIG_MPR * MRC_MPR_UNIT, LONGEST = MRC_TRAIN_MAX - 1, PIECE = 64 };

/* Packets on the EV of the first, of so many that are posted at once with this round trip. */
static uint32_t first_train(uint32_t packets, mrc_ns srtt_ns, bool marks)
{
    struct rig r;
    req_open(&r, MRC_CC_NSCC);
    req_of(&r)->srtt_ns = srtt_ns;
    r.s[0].cc.nscc.marks = marks;
    for (uint32_t left = packets; left > 0; left -= left < PIECE ? left : PIECE) {
        const uint32_t piece = left < PIECE ? left : PIECE;
        CHECK_EQ(rig_post(&r, 0, 0, piece * RIG_MTU, MRC_WR_RDMA_WRITE), 1);
    }
    const size_t sent = req_send(&r);
    uint32_t n = 1;
    while (n < sent && req_raw[n].lane == req_raw[0].lane)
        n++;
    req_close(&r);
    return n;
}

/* The round trip in which a train of so many packets takes MRC_TRAIN_NS at the rate of the window.
 */
static mrc_ns rtt_for(uint32_t train) { return WINDOW * 32 * MRC_USEC / train; }

TEST(req_train__many_paths_have_trains_as_well)
{
    const uint32_t bulk = LONGEST * 16; /* a share of less than four */
    CHECK_EQ(first_train(bulk, 0, false), LONGEST);
    CHECK_EQ(first_train(bulk, rtt_for(1), false), LONGEST); /* whoever is slow may be the host */
}

TEST(req_train__where_the_fabric_marks_time_cuts)
{
    const uint32_t bulk = LONGEST * 16;
    CHECK_EQ(first_train(bulk, rtt_for(40), true), LONGEST);
    CHECK_EQ(first_train(bulk, rtt_for(5), true), 6); /* one to spare, so that it can grow */
    CHECK_EQ(first_train(bulk, rtt_for(1), true), 2);
    CHECK_EQ(first_train(WINDOW, 1000 * MRC_MSEC, true), WINDOW / RIG_EVS / 4);
}

TEST(req_train__short_messages_are_sprayed_however_fast)
{
    CHECK_EQ(first_train(16, rtt_for(40), false), 1);
    CHECK_EQ(first_train(31, rtt_for(40), false), 1);
    CHECK_EQ(first_train(64, rtt_for(40), false), 4); /* sixteen trains at least */
    CHECK_EQ(first_train(64, rtt_for(40), true), 4);
}
