/* SPDX-License-Identifier: BSD-2-Clause */
/* Incasts that no window fits (MRC B.7, B.9; ADR 117): a sender hears of cuts in every round trip,
 * of its packets that got through now and then. Nobody is given up, and every byte arrives. */
#include "fab_rig.h"

enum { INCAST_SEEDS = 4, INCAST_BYTES = 65536, INCAST_MESSAGES = 4 };

struct incast {
    uint32_t senders;
    uint32_t queue_bytes;
    uint8_t cc;
    bool trims;
};

/* Two planes; the budget of the specification's example and a timer of a few packets' time. */
static struct rig *incast_new(const struct incast *k, uint64_t seed)
{
    struct rig *const r = rig_new(2, k->senders + 1, 2, k->senders + 1);
    r->cfg.seed = seed;
    r->cfg.rate_bps = 1000000000;
    r->cfg.queue_bytes[SIM_DATA] = k->queue_bytes;
    r->cfg.trim_bytes = k->trims ? 256 : 0;
    r->cc[0] = (struct mrc_cc_cfg){.kind = k->cc,
                                   .max_cwnd_bytes = 100000,
                                   .mtu_bytes = RIG_MTU,
                                   .trimming = k->trims,
                                   .base_rtt_ns = 50 * MRC_USEC};
    for (uint32_t i = 1; i <= k->senders; i++) {
        const uint32_t flow = rig_qp(r, i, 0);
        r->qp[flow / 2].linear_cnt = 3;
        r->qp[flow / 2].exp_cnt = 5;
        r->qp[flow / 2].timeout = 12;
        for (uint32_t m = 0; m < INCAST_MESSAGES; m++)
            rig_msg(r, flow, INCAST_BYTES, FAB_NONE);
    }
    return r;
}

static void incast_arrives(const struct incast *k)
{
    for (uint64_t seed = 1; seed <= INCAST_SEEDS; seed++) {
        struct rig *const r = incast_new(k, seed);
        const unsigned before = t_failures;
        uint64_t cut = 0;
        rig_start(r);
        const mrc_ns end = rig_finish(r, 60 * MRC_SEC);
        for (uint32_t i = 0; i < r->t.qps; i++)
            CHECK_EQ(rig_flow(r, 2 * i, FAB_F_STATE), MRC_QPS_RTS);
        for (uint32_t l = 0; l < r->f->links; l++)
            cut += rig_link(r, l, FAB_L_TRIMMED);
        CHECK((cut > 0) == k->trims);
        CHECK(k->trims || rig_dropped(r, FAB_DROP_QUEUE) > 0);
        if (t_failures != before || getenv("SHOW") != NULL)
            printf("incast of %u to %u bytes, seed %u: ends at %.3f cut %u\n", k->senders,
                   k->queue_bytes, (unsigned)seed, (double)(end) / 1e9, (unsigned)cut);
        rig_end(r);
    }
}

TEST(fab_incast__cut_with_a_fixed_window)
{
    incast_arrives(&(struct incast){15, 9500, MRC_CC_FIXED, true});
    incast_arrives(&(struct incast){31, 9500, MRC_CC_FIXED, true});
}

TEST(fab_incast__cut_without_control)
{
    incast_arrives(&(struct incast){15, 9500, MRC_CC_NONE, true});
    incast_arrives(&(struct incast){31, 16000, MRC_CC_NONE, true});
}

TEST(fab_incast__dropped)
{
    incast_arrives(&(struct incast){15, 9500, MRC_CC_FIXED, false});
    incast_arrives(&(struct incast){15, 9500, MRC_CC_NONE, false});
    incast_arrives(&(struct incast){31, 9500, MRC_CC_FIXED, false});
    incast_arrives(&(struct incast){31, 9500, MRC_CC_NONE, false});
}
