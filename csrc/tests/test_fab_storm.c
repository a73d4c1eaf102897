/* SPDX-License-Identifier: BSD-2-Clause */
/* The emulated fabric in bad weather: shapes, work and faults from a seed. When all has healed,
 * every message arrives, every byte is right, every packet is accounted for. */
#include "fab_rig.h"

enum { STORM_SEEDS = 40, STORM_STEPS = 60, STORM_STEP_US = 100 };

static struct rig *storm_make(struct mrc_rand *r, uint64_t seed)
{
    const uint32_t planes = 1 + mrc_rand_below(r, 3);
    const uint32_t t0 = 1 + mrc_rand_below(r, 3);
    const uint32_t t1 = 1 + mrc_rand_below(r, 3);
    const uint32_t hosts = 2 + mrc_rand_below(r, 5);
    struct rig *const g = rig_new(planes, t0, t1, hosts);
    g->cfg.seed = seed;
    g->cfg.icrc = mrc_rand_below(r, 2) != 0;
    g->cfg.jitter_ns = mrc_rand_below(r, 2) * 500;
    g->cfg.carrier_ns = mrc_rand_below(r, 2) * 50 * MRC_USEC;
    g->cfg.queue_bytes[SIM_DATA] = 20000 + mrc_rand_below(r, 200000);
    g->cfg.trim_bytes = mrc_rand_below(r, 2) * 256;
    g->cfg.trim_keeps_lengths = (uint8_t)mrc_rand_below(r, 2);
    g->cc[0].trimming = g->cfg.trim_bytes != 0;
    for (uint32_t i = 0; i < hosts; i++) {
        const uint32_t flow = rig_qp(g, i, (i + 1 + mrc_rand_below(r, hosts - 1)) % hosts);
        g->qp[flow / 2].exp_cnt = 25; /* for ever: there is an end to every fault */
        g->qp[flow / 2].min_active = (uint16_t)mrc_rand_below(r, 2);
    }
    for (uint32_t i = 0; i < 40; i++) {
        const uint32_t after = i > 0 && mrc_rand_below(r, 2) != 0 ? mrc_rand_below(r, i) : FAB_NONE;
        rig_msg(g, mrc_rand_below(r, 2 * g->t.qps), mrc_rand_below(r, 300000), after);
        g->msg[i].delay_ns = mrc_rand_below(r, 2) * mrc_rand_below(r, 3000000);
    }
    if (mrc_rand_below(r, 2) != 0)
        rig_bulk(g, mrc_rand_below(r, 2 * g->t.qps), 50000, 6 * MRC_MSEC);
    rig_start(g);
    return g;
}

static void storm_fault(struct rig *g, struct mrc_rand *r)
{
    static const uint64_t most[FAB_KNOBS] = {
        [FAB_LOSS_PPM] = 300000,
        [FAB_LOSS_MASK] = UINT32_MAX,
        [FAB_CORRUPT_PPM] = 100000,
        [FAB_DUP_PPM] = 300000,
        [FAB_DELAY_NS] = 200000,
        [FAB_JITTER_NS] = 50000,
        [FAB_JITTER_PPM] = 1000000,
        [FAB_TRIM_PPM] = 300000,
        [FAB_MTU] = 5000,
        [FAB_CUT] = 1,
        [FAB_DOWN] = 1,
        [FAB_MARK_PPM] = 1000000,
    };
    if (mrc_rand_below(r, 5) == 0) {
        const uint32_t sw = mrc_rand_below(r, g->f->switches);
        const enum fab_switch_knob knob = (enum fab_switch_knob)mrc_rand_below(r, 3);
        CHECK_EQ(fab_switch_set(g->f, sw, knob, mrc_rand_below(r, 2) != 0), MRC_OK);
        return;
    }
    const uint32_t link = mrc_rand_below(r, g->f->links);
    const enum fab_knob knob = (enum fab_knob)mrc_rand_below(r, FAB_KNOBS);
    uint64_t value = most[knob] != 0 ? mrc_rand_next(r) % (most[knob] + 1) : 0;
    if (knob == FAB_RATE_BPS)
        value = 100000000 + mrc_rand_next(r) % 10000000000;
    if (knob == FAB_TRIM_PPM && g->cfg.trim_bytes == 0)
        value = 0;
    CHECK_EQ(fab_link_set(g->f, link, knob, value), MRC_OK);
}

static void storm_heal(struct rig *g)
{
    for (uint32_t l = 0; l < g->f->links; l++)
        for (int k = 0; k < FAB_KNOBS; k++)
            CHECK_EQ(fab_link_set(g->f, l, (enum fab_knob)k, 0), MRC_OK);
    for (uint32_t s = 0; s < g->f->switches; s++)
        for (int k = 0; k < 3; k++)
            CHECK_EQ(fab_switch_set(g->f, s, (enum fab_switch_knob)k, false), MRC_OK);
}

/* Returns the trace hash; counts what struck. */
static uint64_t storm(uint64_t seed, uint64_t struck[FAB_DROPS])
{
    struct mrc_rand r;
    struct fab_totals t;
    mrc_rand_seed(&r, seed);
    struct rig *const g = storm_make(&r, seed);
    for (uint32_t step = 1; step <= STORM_STEPS; step++) {
        rig_run(g, step * STORM_STEP_US * MRC_USEC);
        storm_fault(g, &r);
    }
    storm_heal(g);
    const unsigned before = t_failures;
    rig_finish(g, 60 * MRC_SEC);
    rig_run(g, fab_now(g->f) + MRC_SEC);
    fab_totals(g->f, &t);
    for (int d = 0; d < FAB_DROPS; d++)
        struck[d] += t.dropped[d];
    for (uint32_t i = 0; i < 2 * g->t.qps; i++)
        CHECK_EQ(rig_flow(g, i, FAB_F_STATE), MRC_QPS_RTS);
    CHECK_EQ(t.in_flight, 0);
    if (t_failures != before)
        printf("storm of seed %u\n", (unsigned)seed);
    const uint64_t hash = fab_hash(g->f);
    rig_end(g);
    return hash;
}

TEST(fab_storm__everything_arrives_when_it_is_over)
{
    uint64_t struck[FAB_DROPS] = {0};
    for (uint64_t seed = 1; seed <= STORM_SEEDS; seed++)
        (void)storm(seed, struck);
    for (int d = 0; d < FAB_DROPS; d++) /* each way for a packet to end was taken, but */
        if (d != FAB_DROP_STRAY && d != FAB_DROP_HOP_LIMIT && d != FAB_DROP_POOL)
            CHECK(struck[d] > 0);
        else
            CHECK_EQ(struck[d], 0); /* these are not weather */
}

TEST(fab_storm__a_storm_is_one_run)
{
    uint64_t struck[FAB_DROPS] = {0};
    CHECK_EQ(storm(3, struck), storm(3, struck));
}
