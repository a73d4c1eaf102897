/* SPDX-License-Identifier: BSD-2-Clause */
/* A software stack that knows nothing of its fabric (ADR 13). */
#include "t.h"

#include "../core/mrc_cc.h"
#include "../core/mrc_rand.h"

TEST(nscc__without_knowledge_keeps_the_software_ceiling)
{
    struct mrc_cc cc;
    const struct mrc_cc_cfg cfg = {.kind = MRC_CC_NSCC};
    CHECK_EQ(mrc_cc_init(&cc, &cfg, 0), MRC_OK);
    CHECK_EQ(mrc_cc_cwnd(&cc), 937500); /* 1.5 x 10 Gbit/s x 500 us */
    const struct mrc_cc_sack lucky = {.now = 1, .rtt_valid = true, .rtt_ns = 40000};
    mrc_cc_on_sack(&cc, &lucky);
    CHECK_EQ(cc.nscc.base_rtt_ns, 40000); /* delay is measured from there */
    CHECK_EQ(cc.nscc.max_wnd, 937500);
    CHECK_EQ(mrc_cc_base_rtt(&cc), 500 * MRC_USEC);
}

/* RTTs of 50 us to 2 ms at random and one packet in a hundred lost: no sign of congestion, so the
 * window must stay where 10 Gbit/s need it. Now and then the process is not scheduled for 20 ms. */
TEST(nscc__stays_usable_with_noisy_software_rtts)
{
    for (uint64_t seed = 1; seed <= 10; seed++) {
        struct mrc_cc cc;
        struct mrc_rand r;
        const struct mrc_cc_cfg cfg = {.kind = MRC_CC_NSCC};
        CHECK_EQ(mrc_cc_init(&cc, &cfg, 0), MRC_OK);
        mrc_rand_seed(&r, seed);
        mrc_ns now = MRC_SEC;
        double sum = 0;
        const int steps = 50000;
        for (int i = 0; i < steps; i++) {
            while (mrc_cc_can_send(&cc, 4224))
                mrc_cc_on_send(&cc, 4224);
            mrc_ns rtt = 50 * MRC_USEC + mrc_rand_below(&r, 1950) * MRC_USEC;
            if (mrc_rand_below(&r, 5000) == 0) {
                now += 20 * MRC_MSEC;
                rtt += 20 * MRC_MSEC;
            }
            if (mrc_rand_below(&r, 25) == 0) /* of every 100 packets, four to a SACK */
                mrc_cc_on_loss(&cc, 4224, now);
            const struct mrc_cc_sack s = {
                .now = now, .new_bytes = 4 * 4224, .rtt_valid = true, .rtt_ns = rtt};
            mrc_cc_on_sack(&cc, &s);
            sum += (double)mrc_cc_cwnd(&cc);
            now += 4 * 3400; /* 10 Gbit/s */
        }
        CHECK(sum / steps > 625000); /* one BDP */
    }
}
