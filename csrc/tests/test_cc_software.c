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

/* ---- the ceiling that is found (ADR 121) ---- */

enum { OPEN = 937500, STEP_NS = 500 * MRC_USEC };

/* SACKs every half millisecond: each for all that the window lets out, after this round trip. */
static void busy(struct mrc_cc *cc, mrc_ns *now, mrc_ns for_ns, mrc_ns rtt_ns)
{
    for (const mrc_ns end = *now + for_ns; *now < end; *now += STEP_NS) {
        const uint32_t bytes = (uint32_t)(mrc_cc_cwnd(cc) - (uint64_t)cc->inflight);
        mrc_cc_on_send(cc, bytes);
        const struct mrc_cc_sack s = {
            .now = *now, .new_bytes = (uint32_t)cc->inflight, .rtt_valid = true, .rtt_ns = rtt_ns};
        mrc_cc_on_sack(cc, &s);
    }
}

static struct mrc_cc software(void)
{
    struct mrc_cc cc;
    const struct mrc_cc_cfg cfg = {.kind = MRC_CC_NSCC};
    CHECK_EQ(mrc_cc_init(&cc, &cfg, MRC_SEC), MRC_OK);
    const struct mrc_cc_sack first = {.now = MRC_SEC, .rtt_valid = true, .rtt_ns = 100 * MRC_USEC};
    mrc_cc_on_sack(&cc, &first);
    return cc;
}

TEST(nscc__in_software_the_ceiling_grows_while_nothing_queues)
{
    struct mrc_cc cc = software();
    mrc_ns now = MRC_SEC;
    busy(&cc, &now, 20 * MRC_MSEC, MRC_MSEC);
    CHECK(mrc_cc_cwnd(&cc) > OPEN && mrc_cc_cwnd(&cc) < 2 * OPEN); /* not at once */
    busy(&cc, &now, 100 * MRC_MSEC, MRC_MSEC);
    CHECK_EQ(mrc_cc_max_wnd(&cc), 4 * OPEN); /* and not without end */
    CHECK(mrc_cc_cwnd(&cc) > 3 * OPEN);
}

/* Of a period the least delay counts: what one turn made of the others is no queue. */
TEST(nscc__in_software_a_queue_takes_the_ceiling_back)
{
    struct mrc_cc cc = software();
    mrc_ns now = MRC_SEC;
    busy(&cc, &now, 20 * MRC_MSEC, 2200 * MRC_USEC); /* 4 T, and the round trip itself */
    CHECK_EQ(mrc_cc_max_wnd(&cc), OPEN);
    for (int i = 0; i < 50; i++) {
        busy(&cc, &now, 4 * STEP_NS, 9 * MRC_MSEC);
        busy(&cc, &now, STEP_NS, MRC_MSEC);
    }
    CHECK(mrc_cc_max_wnd(&cc) > 3 * OPEN);
    busy(&cc, &now, 100 * MRC_MSEC, 2200 * MRC_USEC);
    CHECK_EQ(mrc_cc_max_wnd(&cc), OPEN);
    CHECK(mrc_cc_cwnd(&cc) <= OPEN);
}

TEST(nscc__in_software_a_ceiling_that_is_not_used_stays)
{
    struct mrc_cc cc = software();
    struct mrc_cc_sack s = {
        .now = MRC_SEC, .new_bytes = OPEN / 2, .rtt_valid = true, .rtt_ns = MRC_MSEC};
    for (int i = 0; i < 100; i++) {
        s.now += MRC_MSEC;
        mrc_cc_on_send(&cc, s.new_bytes);
        mrc_cc_on_sack(&cc, &s);
    }
    CHECK_EQ(mrc_cc_max_wnd(&cc), OPEN);
}

/* How long after `now` it begins to grow again, in steps of 100 ms. */
static mrc_ns pause_of(struct mrc_cc *cc, mrc_ns *now)
{
    const mrc_ns from = *now;
    CHECK_EQ(mrc_cc_max_wnd(cc), OPEN);
    while (mrc_cc_max_wnd(cc) == OPEN && *now < from + 200 * MRC_SEC)
        busy(cc, now, 100 * MRC_MSEC, MRC_MSEC);
    return (*now - from) / (100 * MRC_MSEC);
}

TEST(nscc__in_software_a_loss_ends_it_at_once_and_for_longer_each_time)
{
    struct mrc_cc cc = software();
    mrc_ns now = MRC_SEC;
    busy(&cc, &now, 200 * MRC_MSEC, MRC_MSEC);
    for (mrc_ns most = 10; most <= 40; most *= 2) {
        for (int i = 0; i < 50; i++) /* one burst is one loss */
            mrc_cc_on_loss(&cc, 0, now);
        CHECK(mrc_cc_cwnd(&cc) <= OPEN);
        const mrc_ns pause = pause_of(&cc, &now);
        CHECK(pause >= most && pause <= most + 1);
    }
    busy(&cc, &now, 5 * MRC_SEC, MRC_MSEC); /* longer than the last pause: forgotten */
    mrc_cc_on_loss(&cc, 0, now);
    CHECK(pause_of(&cc, &now) <= 11);
}

TEST(nscc__in_software_marks_refusals_and_penalties_end_it)
{
    for (int what = 0; what < 4; what++) {
        struct mrc_cc cc = software();
        mrc_ns now = MRC_SEC;
        busy(&cc, &now, 200 * MRC_MSEC, MRC_MSEC);
        CHECK_EQ(mrc_cc_max_wnd(&cc), 4 * OPEN);
        const struct mrc_cc_sack s = {
            .now = now, .marked = what == 0, .penalty = what == 1 ? 1 : 0};
        if (what < 2)
            mrc_cc_on_sack(&cc, &s);
        else if (what == 2)
            mrc_cc_on_nack(&cc, 0, false, false, 0, now);
        else
            mrc_cc_on_go_back(&cc, 0, 9 * MRC_MSEC, now);
        CHECK_EQ(mrc_cc_max_wnd(&cc), OPEN);
        busy(&cc, &now, 900 * MRC_MSEC, MRC_MSEC);
        CHECK_EQ(mrc_cc_max_wnd(&cc), OPEN);
    }
}

TEST(nscc__a_ceiling_that_follows_from_what_was_given_is_not_sought)
{
    const struct mrc_cc_cfg given[] = {
        {.kind = MRC_CC_NSCC, .max_cwnd_bytes = OPEN},
        {.kind = MRC_CC_NSCC, .link_bps = 10000000000},
        {.kind = MRC_CC_NSCC, .base_rtt_ns = 500 * MRC_USEC},
    };
    for (size_t i = 0; i < sizeof given / sizeof given[0]; i++) {
        struct mrc_cc cc;
        mrc_ns now = MRC_SEC;
        CHECK_EQ(mrc_cc_init(&cc, &given[i], now), MRC_OK);
        busy(&cc, &now, 200 * MRC_MSEC, 600 * MRC_USEC);
        CHECK_EQ(mrc_cc_max_wnd(&cc), OPEN);
    }
}
