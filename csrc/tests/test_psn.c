/* SPDX-License-Identifier: BSD-2-Clause */
#include "t.h"

#include "../core/mrc_psn.h"
#include "../core/mrc_rand.h"

TEST(psn__keeps_24_bits)
{
    CHECK_EQ(mrc_psn(0xFF000001).v, 1);
    CHECK_EQ(mrc_psn(0x1000000).v, 0);
}

TEST(psn_add__wraps_both_ways) /* field report 9 */
{
    CHECK_EQ(mrc_psn_add(mrc_psn(0xFFFFFF), 1).v, 0);
    CHECK_EQ(mrc_psn_add(mrc_psn(0), -1).v, 0xFFFFFF);
    CHECK_EQ(mrc_psn_add(mrc_psn(0xFFFFF0), 0x20).v, 0x10);
    CHECK_EQ(mrc_psn_add(mrc_psn(0x10), -0x20).v, 0xFFFFF0);
}

TEST(psn_diff__is_signed_and_modular) /* B.1 */
{
    CHECK(mrc_psn_diff(mrc_psn(5), mrc_psn(3)) == 2);
    CHECK(mrc_psn_diff(mrc_psn(3), mrc_psn(5)) == -2);
    CHECK(mrc_psn_diff(mrc_psn(0), mrc_psn(0xFFFFFF)) == 1);
    CHECK(mrc_psn_diff(mrc_psn(0xFFFFFF), mrc_psn(0)) == -1);
    CHECK(mrc_psn_diff(mrc_psn(0x7FFFFF), mrc_psn(0)) == 0x7FFFFF);
    CHECK(mrc_psn_diff(mrc_psn(0x800000), mrc_psn(0)) == -0x800000);
    CHECK(mrc_psn_diff(mrc_psn(0), mrc_psn(0x800000)) == -0x800000);
}

TEST(psn_diff__undoes_add)
{
    struct mrc_rand r;
    mrc_rand_seed(&r, 7);
    for (int i = 0; i < 100000; i++) {
        const struct mrc_psn p = mrc_psn((uint32_t)mrc_rand_next(&r));
        const int32_t n = (int32_t)mrc_rand_below(&r, 1u << 24) - (1 << 23);
        CHECK(mrc_psn_diff(mrc_psn_add(p, n), p) == n);
        CHECK(mrc_psn_after(mrc_psn_add(p, n), p) == (n > 0));
        CHECK(mrc_psn_eq(mrc_psn_add(p, n), p) == (n == 0));
    }
}
