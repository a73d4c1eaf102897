/* SPDX-License-Identifier: BSD-2-Clause */
/* The emulated fabric: work, its order, its integrity, and that a run is repeatable. */
#include "fab_rig.h"

TEST(fab_work__a_message_arrives_whole)
{
    struct rig *r = rig_new(4, 2, 4, 2);
    const uint32_t flow = rig_qp(r, 0, 1);
    rig_msg(r, flow, 1000000, FAB_NONE);
    rig_start(r);
    rig_finish(r, MRC_SEC);
    rig_run(r, MRC_SEC);
    uint64_t row[FAB_M_COLS];
    CHECK_EQ(fab_read_messages(r->f, row, 0, 1), 1);
    CHECK_EQ(row[FAB_M_STATUS], MRC_WC_SUCCESS);
    CHECK(row[FAB_M_STARTED_NS] == 0 && row[FAB_M_ARRIVED_NS] < row[FAB_M_DONE_NS]);
    /* 1 MB over 40 Gbit/s takes 200 us; framing and the round trip come on top. */
    CHECK(row[FAB_M_ARRIVED_NS] > 200000 && row[FAB_M_ARRIVED_NS] < 300000);
    CHECK_EQ(rig_flow(r, flow, FAB_F_DELIVERED), 1000000);
    CHECK_EQ(rig_flow(r, flow + 1, FAB_F_DELIVERED), 0);
    rig_end(r);
}
