/* SPDX-License-Identifier: BSD-2-Clause */
/* Whole connections whose responder is short of something: they slow down, and live (MRC B.3, B.7,
 * B.12, E.6). */
#include "mrc_engine_int.h"
#include "world_case.h"

struct pinch {
    uint32_t ooo_max;
    uint32_t imm_max;
    uint32_t lent; /* units of what receivers borrow; 0: as ever */
    bool dynamic_mpr;
};

/* Some megabytes both ways over four uneven, lossy paths; returns with everything completed. */
static void pinched(uint64_t seed, struct pinch p, enum mrc_drop why)
{
    struct world_cfg cfg = world_defaults(seed);
    struct world_qp_cfg q = world_qp_defaults();
    const struct world_load load = {
        .messages = 300, .bytes_min = 1, .bytes_max = 9000, .imm_percent = 50};
    cfg.paths = 4;
    cfg.skew_ns = 7 * MRC_USEC;
    cfg.link.loss_ppm = 10000;
    cfg.ooo_max = p.ooo_max;
    cfg.imm_max = p.imm_max;
    q.dynamic_mpr = p.dynamic_mpr;
    struct world *const w = case_world(&cfg, &q, 9000);
    struct mrc_pool *const pool = &w->host[1].e->env.rx_pool;
    if (p.lent != 0)
        mrc_pool_init(pool, pool->mem - mrc_align(pool->units), p.lent);
    world_load(w, 0, &load);
    world_load(w, 1, &load);
    CHECK(case_finish(w, 20 * MRC_SEC));
    CHECK_EQ(pool->used, 0);
    CHECK(w->flow[0].completed == 300 && w->flow[1].completed == 300);
    CHECK(!w->flow[0].dead && !w->flow[1].dead);
    CHECK(mrc_engine_drops(w->host[1].e, why) > 0);
    /* What is refused costs at most about as much as what gets through. */
    CHECK(w->flow[0].rtx_packets < 3 * (w->flow[0].data_packets - w->flow[0].rtx_packets));
    case_end(w);
}

TEST(world_resp__tiny_pool_of_psns_out_of_order)
{
    static const uint32_t sizes[] = {1, 4, 30};
    for (uint32_t i = 0; i < 3; i++)
        for (int dynamic = 0; dynamic < 2; dynamic++)
            pinched(20 + i, (struct pinch){.ooo_max = sizes[i], .dynamic_mpr = dynamic != 0},
                    MRC_DROP_NO_BITMAP);
}

TEST(world_resp__tiny_pool_of_early_immediates)
{
    for (uint32_t i = 1; i < 4; i++)
        pinched(30 + i, (struct pinch){.imm_max = i}, MRC_DROP_NO_BUFFER);
}

/* Of one unit nobody may have more than half (ADR 129). */
TEST(world_resp__nothing_is_lent)
{
    for (uint32_t i = 0; i < 3; i++)
        pinched(40 + i, (struct pinch){.lent = 1}, MRC_DROP_NO_BUFFER);
}

static void pause_responder(struct world *w, void *arg, uint32_t on)
{
    (void)arg;
    mrc_engine_rx_pause(w->host[1].e, on != 0);
}

/* A pause as long as silence may last is survived, with a few packets a second; and it ends at
 * once. */
TEST(world_resp__a_pause_is_survived)
{
    struct world_cfg cfg = world_defaults(40);
    struct world_qp_cfg q = world_qp_defaults();
    const struct world_load load = {.messages = 2000, .bytes_min = 9000, .bytes_max = 9000};
    struct world *const w = case_world(&cfg, &q, 9000);
    world_load(w, 0, &load);
    world_at(w, w->now + MRC_MSEC, pause_responder, NULL, 1);
    world_at(w, w->now + 31 * MRC_MSEC, pause_responder, NULL, 0);
    CHECK(world_run(w, w->now + 3 * MRC_MSEC));
    const uint64_t early = w->flow[0].data_packets;
    const uint64_t done = w->flow[0].completed;
    CHECK(done < 2000);
    CHECK(world_run(w, w->now + 27 * MRC_MSEC));
    CHECK(w->flow[0].data_packets - early < 40);
    CHECK_EQ(w->flow[0].completed, done);
    CHECK(case_finish(w, MRC_SEC));
    CHECK(w->flow[0].completed == 2000 && !w->flow[0].dead);
    CHECK(w->flow[0].last_done_ns < w->cfg.start_ns + 60 * MRC_MSEC);
    CHECK(mrc_engine_drops(w->host[1].e, MRC_DROP_PAUSED) > 0);
    case_end(w);
}

/* One that does not end is the end, when the retries are used up and not before. */
TEST(world_resp__a_pause_for_ever_spends_the_retries)
{
    struct world_cfg cfg = world_defaults(41);
    struct world_qp_cfg q = world_qp_defaults();
    const struct world_load load = {.messages = 2000, .bytes_min = 9000, .bytes_max = 9000};
    q.linear_cnt = 4;
    q.exp_cnt = 2;
    q.timeout = 10; /* 1.05 ms: 4 + 1 intervals, then 2 and 4 */
    struct world *const w = case_world(&cfg, &q, 9000);
    world_load(w, 0, &load);
    world_at(w, w->now + MRC_MSEC, pause_responder, NULL, 1);
    CHECK(world_run(w, w->now + 6 * MRC_MSEC));
    CHECK(!w->flow[0].dead);
    CHECK(world_run(w, w->now + 30 * MRC_MSEC));
    CHECK(w->flow[0].dead);
    CHECK_EQ(w->flow[0].status, MRC_WC_RETRY_EXC_ERR);
    case_end(w);
}

/* Two senders share a small tracking pool: each is offered less, down to a unit, and takes it. */
TEST(world_resp__the_window_follows_the_pool)
{
    struct world_cfg cfg = world_defaults(42);
    struct world_qp_cfg q = world_qp_defaults();
    const struct world_load load = {.messages = 400, .bytes_min = 9000, .bytes_max = 9000};
    cfg.paths = 8;
    cfg.skew_ns = 20 * MRC_USEC;
    cfg.link.loss_ppm = 5000;
    cfg.ooo_max = 200;
    q.dynamic_mpr = true;
    struct world *const w = case_world(&cfg, &q, 9000);
    q.psn_ab = 0xFFFF00;
    const uint32_t second = world_connect(w, &q, 9000);
    world_load(w, 0, &load);
    world_load(w, second, &load);
    CHECK(case_finish(w, 20 * MRC_SEC));
    CHECK(w->flow[0].completed == 400 && w->flow[second].completed == 400);
    CHECK(w->flow[0].mpr_min < q.mpr && w->flow[second].mpr_min < q.mpr);
    case_end(w);
}

/* E.6: four senders, a receiver that leaves packets waiting: the penalty takes their windows down
 * without a loss or a mark, and gives them back. */
TEST(world_resp__the_penalty_slows_senders_and_lets_go)
{
    struct world_cfg cfg = world_defaults(43);
    struct world_qp_cfg q = world_qp_defaults();
    const struct world_load load = {.messages = 3000, .bytes_min = 9000, .bytes_max = 9000};
    cfg.hosts = 5;
    cfg.cc.kind = MRC_CC_NSCC;
    cfg.cc.link_bps = 100000000000;
    cfg.cc.base_rtt_ns = 60 * MRC_USEC;
    cfg.penalty_percent = 50;
    struct world *const w = world_new(&cfg);
    uint32_t flow[4];
    for (uint32_t i = 0; i < 4; i++) {
        q.a = i + 1;
        q.b = 0;
        flow[i] = world_connect(w, &q, 9000);
        world_load(w, flow[i], &load);
    }
    CHECK(world_run(w, w->now + 2 * MRC_MSEC));
    uint64_t before = 0;
    for (uint32_t i = 0; i < 4; i++)
        before += world_stats(w, &w->flow[flow[i]]).cwnd_bytes;
    for (int n = 0; n < 100; n++)
        mrc_engine_rx_backlog(w->host[0].e, true);
    CHECK(world_run(w, w->now + 2 * MRC_MSEC));
    uint64_t under = 0;
    for (uint32_t i = 0; i < 4; i++)
        under += world_stats(w, &w->flow[flow[i]]).cwnd_bytes;
    CHECK(under < before / 4);
    for (int n = 0; n < 100; n++)
        mrc_engine_rx_backlog(w->host[0].e, false);
    CHECK(world_run(w, w->now + 2 * MRC_MSEC));
    uint64_t after = 0;
    for (uint32_t i = 0; i < 4; i++) {
        after += world_stats(w, &w->flow[flow[i]]).cwnd_bytes;
        w->flow[flow[i]].load.messages = w->flow[flow[i]].posted;
    }
    CHECK(after > before / 2);
    CHECK(case_finish(w, 10 * MRC_SEC));
    case_end(w);
}
