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

/* A process that came late to its socket: many SACKs in one turn, each with a small part of what
 * was delivered, and a delay that is the wait for the turn. Returns the least window. */
static uint64_t late_turn(mrc_ns base_rtt_ns)
{
    struct mrc_cc cc;
    const struct mrc_cc_cfg cfg = {
        .kind = MRC_CC_NSCC, .link_bps = 10000000000, .base_rtt_ns = base_rtt_ns};
    CHECK_EQ(mrc_cc_init(&cc, &cfg, 0), MRC_OK);
    struct mrc_cc_sack s = {
        .now = MRC_MSEC, .new_bytes = 16384, .rtt_valid = true, .rtt_ns = 500 * MRC_USEC};
    mrc_cc_on_sack(&cc, &s); /* a period begins */
    s.rtt_ns += 8 * MRC_MSEC;
    uint64_t least = mrc_cc_cwnd(&cc);
    for (int k = 0; k < 82; k++) {
        s.now += k % 41 == 0 ? 8 * MRC_MSEC : k % 41 == 40 ? 100 * MRC_USEC : 0;
        mrc_cc_on_sack(&cc, &s);
        least = mrc_min64(least, mrc_cc_cwnd(&cc));
    }
    return least;
}

TEST(nscc__in_software_the_turn_in_which_a_period_ends_belongs_to_it)
{
    CHECK_EQ(late_turn(0), 937500);
    CHECK(late_turn(500 * MRC_USEC) < 937500 / 2); /* E.3 to the letter */
}

/* That is a respite of one turn, no more: what is really not delivered counts. */
TEST(nscc__in_software_quick_adapt_still_finds_what_was_delivered)
{
    struct mrc_cc cc;
    const struct mrc_cc_cfg cfg = {.kind = MRC_CC_NSCC};
    CHECK_EQ(mrc_cc_init(&cc, &cfg, 0), MRC_OK);
    struct mrc_cc_sack s = {
        .now = MRC_MSEC, .new_bytes = 4096, .rtt_valid = true, .rtt_ns = 500 * MRC_USEC};
    mrc_cc_on_sack(&cc, &s);
    s.rtt_ns = 9 * MRC_MSEC;
    for (int i = 0; i < 4; i++) { /* 4 KB in a period and a half */
        s.now += 400 * MRC_USEC;
        mrc_cc_on_sack(&cc, &s);
    }
    CHECK(mrc_cc_cwnd(&cc) < 5 * 4096);
}
