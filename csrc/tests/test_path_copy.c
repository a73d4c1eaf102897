/* SPDX-License-Identifier: BSD-2-Clause */
/* PathTable: which path a retransmission takes (MRC B.2.3; ADR 132). */
#include "t.h"

#include "path_rig.h"

TEST(path_select__retransmission_takes_another_entry) /* field report 31, H34 */
{
    for (uint8_t planes = 1; planes <= 4; planes++) {
        struct rig r = rig_new(4, planes, 0, planes);
        for (int i = 0; i < 400; i++)
            CHECK(rig_select(&r, (uint16_t)(i % 4)) != i % 4);
        for (uint16_t i = 0; i < 4; i++)
            mrc_path_on_mark(r.t, i, 1, 0);
        for (int i = 0; i < 400; i++) {
            const uint16_t avoid = (uint16_t)(i % 4);
            CHECK(rig_select(&r, avoid) != avoid);
            mrc_path_on_mark(r.t, (uint16_t)(i * 7 % 4), 1, 0);
        }
        for (uint16_t i = 0; i < 3; i++)
            mrc_path_set_state(r.t, i, MRC_EV_DENIED, 0);
        CHECK_EQ(rig_select(&r, 3), 3); /* the only one left */
        rig_free(&r);
    }
}

/* However many probes have their turns between two copies (ADR 132). */
TEST(path_select__retransmission_takes_another_plane)
{
    for (int between = 0; between < 5; between++) {
        struct rig r = rig_new(16, 4, 0, 0);
        uint16_t lost = rig_select(&r, MRC_EV_NONE);
        for (int i = 0; i < 100; i++) {
            for (int k = 0; k < between; k++)
                rig_select(&r, MRC_EV_NONE);
            const uint16_t copy = rig_select(&r, lost);
            CHECK(mrc_path_entry(r.t, copy)->plane != mrc_path_entry(r.t, lost)->plane);
            lost = copy;
        }
        mrc_path_set_planes(r.t, 1u << mrc_path_entry(r.t, lost)->plane, ~0u);
        const uint16_t copy = rig_select(&r, lost); /* no other is up */
        CHECK(copy != lost && copy != MRC_EV_NONE);
        rig_free(&r);
    }
}
