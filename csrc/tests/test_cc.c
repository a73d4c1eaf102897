/* SPDX-License-Identifier: BSD-2-Clause */
#include "t.h"

#include "../core/mrc_cc.h"

static bool near(double got, double want, double tolerance)
{
    const double off = got > want ? got - want : want - got;
    if (off > tolerance)
        printf("  got %.9g, want %.9g\n", got, want);
    return off <= tolerance;
}

enum { BASE = 12000, TARGET = 9000, MTU = 4096 };

/* ---- parameters ---- */

struct row { /* E.4, numbers for orientation; widths of the table's rounding beside them */
    uint64_t link_bps;
    mrc_ns base_rtt_ns;
    bool trimming;
    mrc_ns target_ns;
    double alpha_per_us, fi, fi_scale, eta;
    uint64_t max_wnd;
    mrc_ns qa_threshold_ns;
};

static const struct row rows[] = {
    {100000000000, 12000, true, 9000, 1365, 20480, 0.25, 614, 225000, 36000},
    {400000000000, 10000, true, 7500, 4551, 68267, 0.83, 2048, 750000, 30000},
    {800000000000, 10000, true, 7500, 9102, 136533, 1.67, 4096, 1500000, 30000},
    {10000000000, 200000, true, 150000, 2276, 34133, 0.42, 1024, 375000, 600000},
    {1000000000, 500000, false, 500000, 569, 8533, 0.10, 256, 93750, 2000000},
};

TEST(cc_init__derives_the_table_of_E4)
{
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct row *w = &rows[i];
        struct mrc_cc cc;
        const struct mrc_cc_cfg cfg = {.kind = MRC_CC_NSCC,
                                       .trimming = w->trimming,
                                       .link_bps = w->link_bps,
                                       .base_rtt_ns = w->base_rtt_ns};
        CHECK_EQ(mrc_cc_init(&cc, &cfg, 0), MRC_OK);
        const struct mrc_cc_cfg *c = &cc.cfg;
        CHECK_EQ(mrc_cc_target_delay(&cc), w->target_ns);
        CHECK_EQ(mrc_cc_base_rtt(&cc), w->base_rtt_ns);
        CHECK(near(c->alpha / 1e6, w->alpha_per_us, 1.0));
        CHECK(near(c->fi, w->fi, 1.0));
        CHECK(near(c->fi_scale, w->fi_scale, 0.006));
        CHECK(near(c->eta, w->eta, 1.0));
        CHECK(near(c->gamma, 0.8, 0) && near(c->max_md_jump, 0.5, 0) && near(c->qa_gate, 3, 0));
        CHECK_EQ(c->adjust_bytes, 8 * 4096);
        CHECK_EQ(c->adjust_period_ns, w->base_rtt_ns);
        CHECK_EQ(mrc_cc_cwnd(&cc), w->max_wnd);
        CHECK(near(cc.nscc.max_wnd, (double)w->max_wnd, 0));
        /* The threshold of the table is the one without trims for the same target. */
        CHECK_EQ(c->qa_threshold_ns, w->trimming ? MRC_NEVER : w->qa_threshold_ns);
        struct mrc_cc_cfg tail_drop = cfg;
        tail_drop.trimming = false;
        tail_drop.target_delay_ns = w->target_ns;
        CHECK_EQ(mrc_cc_init(&cc, &tail_drop, 0), MRC_OK);
        CHECK_EQ(cc.cfg.qa_threshold_ns, w->qa_threshold_ns);
    }
}

TEST(cc_init__keeps_what_the_caller_gives)
{
    struct mrc_cc cc;
    const struct mrc_cc_cfg cfg = {.kind = MRC_CC_NSCC,
                                   .mtu_bytes = 1024,
                                   .target_delay_ns = 77,
                                   .alpha = 1.5,
                                   .fi = 2.5,
                                   .fi_scale = 3.5,
                                   .eta = 4.5,
                                   .gamma = 0.25,
                                   .max_md_jump = 0.75,
                                   .qa_gate = 2.0,
                                   .qa_threshold_ns = 99,
                                   .max_cwnd_bytes = 123456,
                                   .adjust_bytes = 11,
                                   .adjust_period_ns = 22};
    CHECK_EQ(mrc_cc_init(&cc, &cfg, 0), MRC_OK);
    CHECK(near(cc.cfg.alpha, 1.5, 0) && near(cc.cfg.fi, 2.5, 0) && near(cc.cfg.fi_scale, 3.5, 0));
    CHECK(near(cc.cfg.eta, 4.5, 0) && near(cc.cfg.gamma, 0.25, 0));
    CHECK(near(cc.cfg.max_md_jump, 0.75, 0) && near(cc.cfg.qa_gate, 2, 0));
    CHECK_EQ(cc.cfg.qa_threshold_ns, 99);
    CHECK_EQ(cc.cfg.adjust_bytes, 11);
    CHECK_EQ(cc.cfg.adjust_period_ns, 22);
    CHECK_EQ(mrc_cc_target_delay(&cc), 77);
    CHECK_EQ(mrc_cc_cwnd(&cc), 123456);
}

/* ADR 76. b = T / 12 us is 12.5 here, and 41.7 where nobody knows the fabric. */
TEST(cc_init__steady_bounds_the_factor_b)
{
    struct mrc_cc cc;
    struct mrc_cc_cfg cfg = {
        .kind = MRC_CC_NSCC, .trimming = true, .link_bps = 10000000000, .base_rtt_ns = 200000};
    CHECK_EQ(mrc_cc_init(&cc, &cfg, 0), MRC_OK);
    const double letter = cc.cfg.alpha;
    cfg.steady = true;
    CHECK_EQ(mrc_cc_init(&cc, &cfg, 0), MRC_OK);
    CHECK(near(cc.cfg.alpha * 12.5, letter, 1));
    cfg.base_rtt_ns = 12000; /* b = 0.75: nothing to bound */
    CHECK_EQ(mrc_cc_init(&cc, &cfg, 0), MRC_OK);
    const double bounded = cc.cfg.alpha;
    cfg.steady = false;
    CHECK_EQ(mrc_cc_init(&cc, &cfg, 0), MRC_OK);
    CHECK(near(cc.cfg.alpha, bounded, 0));
    const struct mrc_cc_cfg unknown = {.kind = MRC_CC_NSCC};
    CHECK_EQ(mrc_cc_init(&cc, &unknown, 0), MRC_OK);
    CHECK(cc.cfg.steady);
    const double a = 625000.0 / 150000.0; /* 10 Gbit/s x 500 us */
    CHECK(near(cc.cfg.alpha, 4 * a * MTU / 500e-6, 1));
}

TEST(cc_init__window_begins_at_the_lesser_of_the_two) /* H41 */
{
    struct mrc_cc cc;
    struct mrc_cc_cfg cfg = {.kind = MRC_CC_NSCC, .link_bps = 100000000000, .base_rtt_ns = BASE};
    cfg.max_cwnd_bytes = 300000; /* more than 1.5 BDP: a ceiling that stays, and is grown into */
    CHECK_EQ(mrc_cc_init(&cc, &cfg, 0), MRC_OK);
    CHECK_EQ(mrc_cc_cwnd(&cc), 225000);
    CHECK_EQ(mrc_cc_max_wnd(&cc), 300000);
    const struct mrc_cc_sack s = {.now = 1, .rtt_valid = true, .rtt_ns = BASE / 2};
    mrc_cc_on_sack(&cc, &s);
    CHECK_EQ(mrc_cc_max_wnd(&cc), 300000);
    cfg.max_cwnd_bytes = 100000;
    CHECK_EQ(mrc_cc_init(&cc, &cfg, 0), MRC_OK);
    CHECK_EQ(mrc_cc_cwnd(&cc), 100000);
}

TEST(cc_init__refuses_what_is_out_of_range)
{
    struct mrc_cc cc;
    const double zero = 0.0;
    const struct mrc_cc_cfg bad[] = {
        {.kind = 3},
        {.kind = MRC_CC_NSCC, .mtu_bytes = 128},
        {.kind = MRC_CC_NSCC, .mtu_bytes = 9000},
        {.kind = MRC_CC_NSCC, .link_bps = UINT64_MAX},
        {.kind = MRC_CC_NSCC, .base_rtt_ns = MRC_NEVER},
        {.kind = MRC_CC_NSCC, .target_delay_ns = MRC_NEVER},
        {.kind = MRC_CC_NSCC, .adjust_period_ns = MRC_NEVER},
        {.kind = MRC_CC_NSCC, .gamma = 1.5},
        {.kind = MRC_CC_NSCC, .gamma = -0.5},
        {.kind = MRC_CC_NSCC, .alpha = -1.0},
        {.kind = MRC_CC_NSCC, .fi = zero / zero},
        {.kind = MRC_CC_NSCC, .max_md_jump = 2.0},
        {.kind = MRC_CC_NSCC, .qa_gate = 33.0},
        {.kind = MRC_CC_NSCC, .max_cwnd_bytes = 4095},
        {.kind = MRC_CC_NSCC, .max_cwnd_bytes = UINT64_MAX},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        CHECK(mrc_cc_init(&cc, &bad[i], 0) == MRC_ERR_INVAL);
}

/* ---- a controller to take apart: 100 Gb/s, 12 us, trimming: a = 1, T = 9 us ---- */

static struct mrc_cc nscc_new(void)
{
    struct mrc_cc cc;
    const struct mrc_cc_cfg cfg = {
        .kind = MRC_CC_NSCC, .trimming = true, .link_bps = 100000000000, .base_rtt_ns = BASE};
    CHECK_EQ(mrc_cc_init(&cc, &cfg, 0), MRC_OK);
    cc.nscc.cwnd = 100000.0;
    return cc;
}

static void nscc_sack(struct mrc_cc *cc, mrc_ns now, uint32_t bytes, bool marked, mrc_ns delay)
{
    const struct mrc_cc_sack s = {.now = now,
                                  .new_bytes = bytes,
                                  .marked = marked,
                                  .rtt_valid = true,
                                  .rtt_ns = BASE + delay};
    mrc_cc_on_sack(cc, &s);
}

TEST(nscc__initial_state) /* E.2 */
{
    struct mrc_cc cc;
    const struct mrc_cc_cfg cfg = {
        .kind = MRC_CC_NSCC, .trimming = true, .link_bps = 100000000000, .base_rtt_ns = BASE};
    CHECK_EQ(mrc_cc_init(&cc, &cfg, 777), MRC_OK);
    const struct mrc_nscc *n = &cc.nscc;
    CHECK(near(n->cwnd, 225000, 0) && near(n->max_wnd, 225000, 0) && near(n->base_rtt_ns, BASE, 0));
    CHECK(cc.inflight == 0 && near(n->saved_cwnd, 0, 0) && near(n->avg_delay_ns, 0, 0));
    CHECK(near(n->achieved_bytes, 0, 0) && near(n->received_bytes, 0, 0));
    CHECK(near(n->fi_count, 0, 0) && near(n->inc_bytes, 0, 0));
    CHECK(near(n->bytes_to_ignore, 0, 0) && near(n->bytes_ignored, 0, 0));
    CHECK(!n->trigger_qa && !n->increase);
    CHECK_EQ(n->qa_endtime, 0);
    CHECK_EQ(n->last_adjust, 777);
    CHECK_EQ(n->last_dec, 777);
}

TEST(nscc__proportional_increase_without_mark_below_target)
{
    struct mrc_cc cc = nscc_new();
    cc.inflight = 50000;
    nscc_sack(&cc, 100, 1000, false, 3000);
    CHECK_EQ(cc.inflight, 49000);
    /* alpha x N x (T - D), alpha = 16384 / 12 B/us, 6 us below the target */
    CHECK(near(cc.nscc.inc_bytes, 16384.0 / 12.0 * 1000 * 6, 1e-3));
    CHECK(near(cc.nscc.cwnd, 100000, 0)); /* nothing before fulfil */
    CHECK(near(cc.nscc.received_bytes, 1000, 0));
    CHECK(near(cc.nscc.achieved_bytes, 0, 0)); /* the first SACK opened a quick-adapt period */
}

TEST(nscc__fair_increase_without_mark_above_target)
{
    struct mrc_cc cc = nscc_new();
    nscc_sack(&cc, 100, 1000, false, TARGET);
    CHECK(near(cc.nscc.inc_bytes, 20480.0 * 1000, 1e-6));
}

TEST(nscc__nothing_with_mark_below_target)
{
    struct mrc_cc cc = nscc_new();
    cc.nscc.avg_delay_ns = 90000;
    cc.cfg.adjust_period_ns = MRC_SEC;
    nscc_sack(&cc, 2 * BASE, 1000, true, TARGET - 1); /* a decrease would be due */
    CHECK(near(cc.nscc.inc_bytes, 0, 0));
    CHECK(near(cc.nscc.cwnd, 100000, 0));
}

TEST(nscc__multiplicative_decrease_with_mark_above_target)
{
    struct mrc_cc cc = nscc_new();
    cc.cfg.adjust_period_ns = MRC_SEC;
    cc.nscc.avg_delay_ns = 18000;
    cc.nscc.increase = true;
    cc.nscc.fi_count = 5;
    nscc_sack(&cc, BASE, 0, true, 18000); /* not more than base_rtt since the last */
    CHECK(near(cc.nscc.cwnd, 100000, 0));
    CHECK(!cc.nscc.increase);
    CHECK(near(cc.nscc.fi_count, 0, 0));
    nscc_sack(&cc, BASE + 1, 0, true, 18000);
    CHECK(near(cc.nscc.cwnd, 100000 * (1 - 0.8 * 0.5), 1e-6));
    CHECK_EQ(cc.nscc.last_dec, BASE + 1);
    nscc_sack(&cc, BASE + 2, 0, true, 18000); /* once per base_rtt */
    CHECK(near(cc.nscc.cwnd, 60000, 1e-6));
}

TEST(nscc__multiplicative_decrease_is_bounded)
{
    struct mrc_cc cc = nscc_new();
    cc.cfg.adjust_period_ns = MRC_SEC;
    cc.nscc.avg_delay_ns = 9e9;
    nscc_sack(&cc, BASE + 1, 0, true, 90000);
    CHECK(near(cc.nscc.cwnd, 50000, 1e-3)); /* max_md_jump */
    cc.nscc.cwnd = 5000;
    nscc_sack(&cc, 3 * BASE, 0, true, 90000);
    CHECK(near(cc.nscc.cwnd, MTU, 0)); /* never below one MTU */
}

TEST(nscc__average_decides_over_the_single_sample)
{
    struct mrc_cc cc = nscc_new();
    cc.cfg.adjust_period_ns = MRC_SEC;
    nscc_sack(&cc, BASE + 1, 0, true, 100000);
    CHECK(near(cc.nscc.avg_delay_ns, 0.0125 * 100000, 1e-9));
    CHECK(near(cc.nscc.cwnd, 100000, 0));
}

TEST(nscc__unmarked_late_sample_enters_the_average_as_a_quarter_rtt)
{
    struct mrc_cc cc = nscc_new();
    nscc_sack(&cc, 1, 0, false, TARGET + 1);
    CHECK(near(cc.nscc.avg_delay_ns, 0.0125 * 0.25 * BASE, 1e-9));
    cc.nscc.avg_delay_ns = 0;
    nscc_sack(&cc, 1, 0, false, TARGET); /* not above the target: as it is */
    CHECK(near(cc.nscc.avg_delay_ns, 0.0125 * TARGET, 1e-9));
}

TEST(nscc__fulfil_by_bytes_and_by_period)
{
    struct mrc_cc cc = nscc_new();
    cc.nscc.qa_endtime = MRC_SEC;
    nscc_sack(&cc, 1, 8 * MTU, false, TARGET); /* not more than adjust_bytes */
    CHECK(near(cc.nscc.cwnd, 100000, 0));
    nscc_sack(&cc, 2, 1, false, TARGET);
    const double inc = 20480.0 * (8 * MTU + 1);
    CHECK(near(cc.nscc.cwnd, 100000 + inc / 100000, 1e-6));
    CHECK(near(cc.nscc.inc_bytes, 0, 0) && near(cc.nscc.received_bytes, 0, 0));
    CHECK_EQ(cc.nscc.last_adjust, 0);
    const double cwnd = cc.nscc.cwnd;
    nscc_sack(&cc, BASE, 1, false, TARGET); /* the period: eta comes on top */
    CHECK(near(cc.nscc.cwnd, cwnd + 20480.0 / cwnd + 0.15 * MTU, 1e-6));
    CHECK_EQ(cc.nscc.last_adjust, BASE);
    cc.nscc.cwnd = 224999;
    nscc_sack(&cc, 3 * BASE, 1, false, TARGET);
    CHECK(near(cc.nscc.cwnd, 225000, 0)); /* ceiling */
}

TEST(nscc__fast_increase_after_one_window_without_delay)
{
    struct mrc_cc cc = nscc_new();
    cc.cfg.adjust_period_ns = MRC_SEC;
    cc.cfg.adjust_bytes = UINT32_MAX;
    cc.nscc.qa_endtime = MRC_SEC;
    nscc_sack(&cc, 1, 100000, false, 0); /* fi_count = cwnd: not yet more */
    CHECK(!cc.nscc.increase);
    CHECK(cc.nscc.inc_bytes > 0);
    nscc_sack(&cc, 2, 1000, false, BASE / 10 - 1);
    CHECK(cc.nscc.increase);
    CHECK(near(cc.nscc.cwnd, 100000 + 0.25 * 1000, 1e-9));
    nscc_sack(&cc, 3, 1000, false, 0); /* stays on */
    CHECK(near(cc.nscc.cwnd, 100500, 1e-9));
    const double inc = cc.nscc.inc_bytes;
    nscc_sack(&cc, 4, 1000, false, BASE / 10); /* delay: off, and proportional again */
    CHECK(!cc.nscc.increase);
    CHECK(near(cc.nscc.fi_count, 0, 0));
    CHECK(cc.nscc.inc_bytes > inc);
    cc.nscc.increase = true;
    nscc_sack(&cc, 5, 4000000, false, 0);
    CHECK(near(cc.nscc.cwnd, 225000, 0)); /* ceiling */
}

TEST(nscc__sack_without_sample_only_counts)
{
    struct mrc_cc cc = nscc_new();
    cc.inflight = 5000;
    const struct mrc_cc_sack s = {.now = 5 * BASE, .new_bytes = 6000, .marked = true};
    mrc_cc_on_sack(&cc, &s);
    CHECK(cc.inflight == -1000);
    CHECK(near(cc.nscc.achieved_bytes, 6000, 0) && near(cc.nscc.received_bytes, 6000, 0));
    CHECK(near(cc.nscc.cwnd, 100000, 0));
    CHECK_EQ(cc.nscc.qa_endtime, 0);
}

TEST(nscc__base_rtt_and_ceiling_follow_the_shortest_sample)
{
    struct mrc_cc cc = nscc_new();
    const struct mrc_cc_sack s = {.now = 1, .rtt_valid = true, .rtt_ns = 6000};
    mrc_cc_on_sack(&cc, &s);
    CHECK_EQ(mrc_cc_base_rtt(&cc), 6000);
    CHECK(near(cc.nscc.max_wnd, 1.5 * 75000, 1e-6));
    mrc_cc_on_nack(&cc, 0, false, true, 3000, 2); /* any NACK's sample too */
    CHECK_EQ(mrc_cc_base_rtt(&cc), 3000);
    mrc_cc_on_nack(&cc, 0, false, false, 1, 3); /* but not an invalid one */
    CHECK_EQ(mrc_cc_base_rtt(&cc), 3000);
    mrc_cc_on_nack(&cc, 0, false, true, 0, 3);
    CHECK(mrc_cc_base_rtt(&cc) > 0);
    CHECK(cc.nscc.max_wnd >= MTU);
}

/* ---- quick adapt ---- */

static struct mrc_cc nscc_period(double achieved)
{
    struct mrc_cc cc = nscc_new();
    cc.cfg.qa_threshold_ns = 4 * TARGET;
    cc.cfg.adjust_period_ns = MRC_SEC;
    nscc_sack(&cc, 1000, 0, true, TARGET - 1); /* opens the period */
    CHECK_EQ(cc.nscc.qa_endtime, 1000 + BASE + TARGET);
    cc.nscc.achieved_bytes = achieved;
    cc.nscc.inc_bytes = 1;
    cc.inflight = 70000;
    return cc;
}

TEST(nscc_quick_adapt__falls_to_what_was_achieved)
{
    struct mrc_cc cc = nscc_period(20000);
    nscc_sack(&cc, 1000 + BASE + TARGET - 1, 0, false, 4 * TARGET + 1); /* period not over */
    CHECK(near(cc.nscc.cwnd, 100000, 0));
    nscc_sack(&cc, 1000 + BASE + TARGET, 1000, false, 4 * TARGET + 1);
    CHECK(near(cc.nscc.cwnd, 21000, 0));
    CHECK(near(cc.nscc.bytes_to_ignore, 69000, 0) && near(cc.nscc.bytes_ignored, 0, 0));
    CHECK(near(cc.nscc.inc_bytes, 0, 0) && near(cc.nscc.received_bytes, 0, 0));
    CHECK(near(cc.nscc.achieved_bytes, 0, 0));
    CHECK_EQ(cc.nscc.qa_endtime, 1000 + 2 * (BASE + TARGET));
}

TEST(nscc_quick_adapt__ignores_marks_of_the_window_that_drains)
{
    struct mrc_cc cc = nscc_period(20000);
    cc.nscc.avg_delay_ns = 1e6;
    nscc_sack(&cc, 1000 + BASE + TARGET, 0, false, 4 * TARGET + 1);
    CHECK(near(cc.nscc.bytes_to_ignore, 70000, 0));
    nscc_sack(&cc, 40000, 69999, true, 40000);
    CHECK(near(cc.nscc.cwnd, 20000, 0)); /* no decrease yet */
    nscc_sack(&cc, 40001, 1, true, 40000);
    CHECK(cc.nscc.cwnd < 20000.0); /* drained: marks count again */
}

TEST(nscc_quick_adapt__needs_a_reason_and_a_low_rate)
{
    const mrc_ns end = 1000 + BASE + TARGET;
    struct mrc_cc cc = nscc_period(20000);
    nscc_sack(&cc, end, 0, false, 4 * TARGET); /* delay not above the threshold */
    CHECK(near(cc.nscc.cwnd, 100000, 0));
    cc = nscc_period(225000.0 / 8);
    nscc_sack(&cc, end, 0, false, 4 * TARGET + 1); /* achieved an eighth of max_wnd: not below */
    CHECK(near(cc.nscc.cwnd, 100000, 0));
    CHECK(near(cc.nscc.achieved_bytes, 0, 0)); /* the period ends all the same */
    cc = nscc_period(225000.0 / 8 - 1);
    nscc_sack(&cc, end, 0, false, 4 * TARGET + 1);
    CHECK(near(cc.nscc.cwnd, 225000.0 / 8 - 1, 0));
    cc = nscc_period(10);
    nscc_sack(&cc, end, 0, false, 4 * TARGET + 1);
    CHECK(near(cc.nscc.cwnd, MTU, 0));
    cc = nscc_period(20000);
    cc.cfg.disable_qa = true;
    nscc_sack(&cc, end, 0, false, 4 * TARGET + 1);
    CHECK(near(cc.nscc.cwnd, 100000, 0));
}

TEST(nscc_quick_adapt__gate_may_be_a_fraction)
{
    struct mrc_cc cc = nscc_period(225000.0 / 5.6568); /* 2^2.5 = 5.65685... */
    cc.cfg.qa_gate = 2.5;
    nscc_sack(&cc, 1000 + BASE + TARGET, 0, false, 4 * TARGET + 1);
    CHECK(near(cc.nscc.cwnd, 100000, 0));
    cc = nscc_period(225000.0 / 5.6569);
    cc.cfg.qa_gate = 2.5;
    nscc_sack(&cc, 1000 + BASE + TARGET, 0, false, 4 * TARGET + 1);
    CHECK(near(cc.nscc.cwnd, 225000.0 / 5.6569, 0));
}

/* ---- NACK, loss, penalty ---- */

TEST(nscc_nack__trimmed_shrinks_and_arms_quick_adapt)
{
    struct mrc_cc cc = nscc_new();
    cc.inflight = 10000;
    mrc_cc_on_nack(&cc, 4224, true, false, 0, 5);
    CHECK_EQ(cc.inflight, 10000 - 4224);
    CHECK(near(cc.nscc.cwnd, 100000 - 4224, 0));
    CHECK(near(cc.nscc.bytes_ignored, 4224, 0));
    CHECK(near(cc.nscc.avg_delay_ns, 0.0125 * BASE, 1e-9));
    CHECK(cc.nscc.trigger_qa);
    cc.nscc.achieved_bytes = 9000;
    mrc_cc_on_nack(&cc, 4224, true, false, 0, 5 + BASE + TARGET); /* period over: adapts instead */
    CHECK(near(cc.nscc.cwnd, 9000, 0));
    CHECK(!cc.nscc.trigger_qa);
    for (int i = 0; i < 5; i++)
        mrc_cc_on_nack(&cc, 4224, true, false, 0, 100000000 + (mrc_ns)i);
    CHECK(near(cc.nscc.cwnd, MTU, 0));
}

TEST(nscc_nack__other_reasons_only_bookkeep)
{
    struct mrc_cc cc = nscc_new();
    cc.inflight = 10000;
    mrc_cc_on_nack(&cc, 4224, false, true, BASE + 5000, 5);
    CHECK_EQ(cc.inflight, 10000 - 4224);
    CHECK(near(cc.nscc.cwnd, 100000, 0) && near(cc.nscc.avg_delay_ns, 0, 0));
    CHECK(!cc.nscc.trigger_qa);
}

TEST(nscc_loss__takes_the_packet_off_the_window)
{
    struct mrc_cc cc = nscc_new();
    cc.inflight = 9000;
    mrc_cc_on_loss(&cc, 4224, 5);
    CHECK_EQ(cc.inflight, 9000 - 4224);
    CHECK(near(cc.nscc.cwnd, 100000 - 4224, 0));
    CHECK(near(cc.nscc.bytes_ignored, 4224, 0));
    for (int i = 0; i < 100; i++)
        mrc_cc_on_loss(&cc, 4224, 5);
    CHECK_EQ(mrc_cc_cwnd(&cc), MTU);
    CHECK(mrc_cc_can_send(&cc, 4224)); /* inflight is negative by now: never stuck */
}

static void nscc_penalty(struct mrc_cc *cc, uint8_t penalty, bool restore, uint32_t bytes)
{
    const struct mrc_cc_sack s = {.now = 1,
                                  .new_bytes = bytes,
                                  .penalty = penalty,
                                  .restore = restore,
                                  .rtt_valid = true,
                                  .rtt_ns = BASE + TARGET};
    mrc_cc_on_sack(cc, &s);
}

TEST(nscc_penalty__of_64_halves_in_one_window) /* E.6 */
{
    struct mrc_cc cc = nscc_new();
    cc.inflight = 100000;
    for (int i = 0; i < 100; i++) {
        nscc_penalty(&cc, 64, true, 1000);
        cc.inflight += 1000; /* the sender keeps its window full */
    }
    CHECK(near(cc.nscc.cwnd, 50000, 1000)); /* to one SACK: that left inflight before the first */
    CHECK(near(cc.nscc.saved_cwnd, 100000, 0));
    CHECK(near(cc.nscc.inc_bytes, 0, 0)); /* increases were suppressed */
}

TEST(nscc_penalty__restore_brings_the_window_back)
{
    struct mrc_cc cc = nscc_new();
    cc.inflight = 30000;
    nscc_penalty(&cc, 127, true, 1000);
    CHECK(near(cc.nscc.cwnd, 29000 - 127.0 * 1000 / 128, 1e-9)); /* first down to inflight */
    nscc_penalty(&cc, 0, true, 0);
    CHECK(near(cc.nscc.cwnd, 100000, 0) && near(cc.nscc.saved_cwnd, 0, 0));
    nscc_penalty(&cc, 127, true, 30000);
    CHECK(near(cc.nscc.cwnd, MTU, 0));
    nscc_penalty(&cc, 0, false, 0); /* the flag never came: forget */
    CHECK(near(cc.nscc.cwnd, MTU, 0) && near(cc.nscc.saved_cwnd, 0, 0));
    nscc_penalty(&cc, 0, true, 0);
    CHECK(near(cc.nscc.cwnd, MTU, 0));
}

/* ---- sending ---- */

TEST(cc_can_send__window_counts_the_packet) /* E.3 */
{
    struct mrc_cc cc = nscc_new();
    mrc_cc_on_send(&cc, 96000);
    CHECK(mrc_cc_can_send(&cc, 4000));
    CHECK(!mrc_cc_can_send(&cc, 4001));
    cc.inflight = 0;
    CHECK(mrc_cc_can_send(&cc, 1000000)); /* never blocks a window of one packet */
    cc.inflight = -5;
    CHECK(mrc_cc_can_send(&cc, 1000000));
    cc.inflight = 300;
    mrc_cc_release(&cc, 301);
    CHECK(cc.inflight == -1);
    mrc_cc_release(&cc, -1);
    CHECK(cc.inflight == 0);
}

TEST(cc_want_ack__when_window_is_nearly_used_or_small) /* E.3 */
{
    struct mrc_cc cc = nscc_new();
    cc.inflight = 100000 - MTU;
    CHECK(!mrc_cc_want_ack(&cc));
    cc.inflight++;
    CHECK(mrc_cc_want_ack(&cc));
    cc.inflight = -100;
    CHECK(!mrc_cc_want_ack(&cc));
    cc.nscc.cwnd = 16383; /* below the peer's SACK threshold, 16384 */
    CHECK(mrc_cc_want_ack(&cc));
}

TEST(cc_fixed__keeps_its_window)
{
    struct mrc_cc cc;
    const struct mrc_cc_cfg cfg = {.kind = MRC_CC_FIXED, .max_cwnd_bytes = 10000};
    CHECK_EQ(mrc_cc_init(&cc, &cfg, 0), MRC_OK);
    mrc_cc_on_send(&cc, 6000);
    CHECK(mrc_cc_can_send(&cc, 4000));
    CHECK(!mrc_cc_can_send(&cc, 4001));
    CHECK(mrc_cc_want_ack(&cc)); /* 10000 < 16384 */
    nscc_sack(&cc, 1, 1000, true, MRC_SEC);
    mrc_cc_on_nack(&cc, 1000, true, true, 1, 2);
    mrc_cc_on_loss(&cc, 1000, 3);
    CHECK_EQ(cc.inflight, 3000);
    CHECK_EQ(mrc_cc_cwnd(&cc), 10000);
    CHECK_EQ(mrc_cc_base_rtt(&cc), 500 * MRC_USEC);
    CHECK(mrc_cc_target_delay(&cc) > 0);
}

TEST(cc_none__always_sends)
{
    struct mrc_cc cc;
    const struct mrc_cc_cfg cfg = {.kind = MRC_CC_NONE};
    CHECK_EQ(mrc_cc_init(&cc, &cfg, 0), MRC_OK);
    for (int i = 0; i < 1000; i++)
        mrc_cc_on_send(&cc, UINT32_MAX);
    CHECK(mrc_cc_can_send(&cc, UINT32_MAX));
    CHECK(!mrc_cc_want_ack(&cc));
    CHECK_EQ(mrc_cc_cwnd(&cc), UINT64_MAX);
    nscc_sack(&cc, 1, 1000, true, MRC_SEC);
    CHECK_EQ(cc.inflight, 1000 * (uint64_t)UINT32_MAX - 1000);
}
