/* SPDX-License-Identifier: BSD-2-Clause */
/* Mode rc, the baseline of comparisons (ADR 95): whole engines over one path. Everything completes
 * once and in order whatever the network does, and it costs what go-back-N costs. */
#include "figure_rig.h"

enum { MESSAGES = 400, BYTES = 9000, PACKETS = MESSAGES * 9 };

struct run {
    uint64_t lost; /* packets that the network lost, both ways */
    uint64_t again;
    uint64_t nacks;
    uint64_t timeouts;
    uint64_t probes;
    uint64_t refused; /* not the next one */
    mrc_ns took;
};

static struct world_cfg one_path(uint64_t seed)
{
    struct world_cfg cfg = world_defaults(seed);
    cfg.paths = 1;
    cfg.planes = 1;
    cfg.link.delay_ns = 15 * MRC_USEC;
    cfg.cc.base_rtt_ns = 40 * MRC_USEC;
    return cfg;
}

static struct run run_of(const struct world_cfg *cfg, uint8_t mode, uint8_t timeout)
{
    struct world_qp_cfg q = world_qp_defaults();
    const struct world_load load = {.messages = MESSAGES,
                                    .bytes_min = BYTES,
                                    .bytes_max = BYTES,
                                    .outstanding = 16,
                                    .imm_percent = 30};
    q.mode = mode;
    q.timeout = timeout;
    struct world *const w = case_world(cfg, &q, BYTES);
    world_load(w, 0, &load);
    CHECK(case_finish(w, 5 * MRC_SEC));
    CHECK(w->flow[0].completed == MESSAGES && !w->flow[0].dead);
    const struct mrc_qp_stats s = world_stats(w, &w->flow[0]);
    const struct run out = {.lost = world_link(w, 0, 1, 0)->stats.lost,
                            .again = w->flow[0].rtx_packets,
                            .nacks = s.nacks_received,
                            .timeouts = s.timeouts,
                            .probes = s.probes_sent,
                            .refused = mrc_engine_drops(w->host[1].e, MRC_DROP_PSN_WINDOW),
                            .took = w->flow[0].last_done_ns - cfg->start_ns};
    case_end(w);
    return out;
}

TEST(gbn__a_clean_path_carries_everything_once)
{
    const struct world_cfg cfg = one_path(1);
    const struct run r = run_of(&cfg, MRC_MODE_RC, 10);
    CHECK_EQ(r.again, 0);
    CHECK_EQ(r.nacks, 0);
    CHECK_EQ(r.probes, 0);
}

/* A loss costs what was behind it; selective repeat costs one packet. */
TEST(gbn__a_loss_costs_what_is_behind_it)
{
    for (uint64_t seed = 1; seed <= 10; seed++) {
        struct world_cfg cfg = one_path(seed);
        cfg.link.loss_ppm = 5000;
        cfg.link.fault_kinds = WORLD_KIND_DATA;
        const struct run rc = run_of(&cfg, MRC_MODE_RC, 10);
        const struct run mrc = run_of(&cfg, MRC_MODE_MRC, 10);
        CHECK(rc.lost > 5 && mrc.lost > 5);
        CHECK(rc.again >= rc.lost + rc.refused); /* and a question after a late transport ACK */
        CHECK(rc.again <= rc.lost + rc.refused + 2);
        CHECK(rc.again > 10 * rc.lost);
        CHECK(mrc.again < 2 * mrc.lost);
        CHECK(rc.nacks + rc.timeouts >= 1 && rc.nacks <= rc.lost);
        CHECK(rc.took > mrc.took);
    }
}

/* Reordering without loss: harmless to MRC, and many copies here. */
TEST(gbn__reordering_is_taken_for_loss)
{
    for (uint64_t seed = 1; seed <= 5; seed++) {
        struct world_cfg cfg = one_path(seed);
        cfg.link.jitter_ns = 20 * MRC_USEC;
        cfg.link.jitter_ppm = 20000;
        const struct run rc = run_of(&cfg, MRC_MODE_RC, 10);
        CHECK_EQ(rc.lost, 0);
        CHECK(rc.again > PACKETS / 10);
        CHECK(rc.nacks > 10);
    }
}

/* A gap is told of once: where that NACK is lost, the local ACK timer goes back. */
TEST(gbn__a_lost_nack_waits_for_the_timer)
{
    struct world_cfg cfg = one_path(3);
    struct world_qp_cfg q = world_qp_defaults();
    const struct world_load load = {.messages = 100, .bytes_min = BYTES, .bytes_max = BYTES};
    q.mode = MRC_MODE_RC;
    struct world *const w = case_world(&cfg, &q, BYTES);
    world_link(w, 0, 1, 0)->cfg.loss_ppm = 5000;
    world_link(w, 0, 1, 0)->cfg.fault_kinds = WORLD_KIND_DATA;
    world_link(w, 1, 0, 0)->cfg.loss_ppm = 1000000; /* every NACK, and nothing else of that way */
    world_link(w, 1, 0, 0)->cfg.fault_kinds = WORLD_KIND_NACK;
    world_load(w, 0, &load);
    CHECK(case_finish(w, MRC_SEC));
    const struct mrc_qp_stats s = world_stats(w, &w->flow[0]);
    CHECK_EQ(s.nacks_received, 0);
    CHECK(s.timeouts > 0 && s.timeouts <= world_link(w, 0, 1, 0)->stats.lost);
    CHECK_EQ(w->flow[0].completed, 100);
    case_end(w);
}

/* Everything at once: losses both ways, copies, damage, late packets, numbers before their wrap. */
TEST(gbn__whatever_happens_each_completes_once)
{
    for (uint64_t seed = 1; seed <= 20; seed++) {
        struct world_cfg cfg = one_path(seed);
        struct world_qp_cfg q = world_qp_defaults();
        const struct world_load load = {.messages = 100,
                                        .bytes_min = 0,
                                        .bytes_max = 20000,
                                        .imm_percent = 50,
                                        .unsignaled_percent = 20};
        cfg.link.loss_ppm = 3000;
        cfg.link.dup_ppm = 3000;
        cfg.link.corrupt_ppm = 1000;
        cfg.link.jitter_ns = 50 * MRC_USEC;
        cfg.link.jitter_ppm = 1000;
        cfg.cc.kind = seed % 2 == 0 ? MRC_CC_NSCC : MRC_CC_FIXED;
        q.mode = MRC_MODE_RC;
        q.late_numbers = seed % 3 == 0;
        q.psn_ab = 0xFFFFF0;
        q.timestamps = seed % 4 == 0;
        q.dynamic_mpr = seed % 5 == 0;
        struct world *const w = case_world(&cfg, &q, 20000);
        world_load(w, 0, &load);
        world_load(w, 1, &load);
        CHECK(case_finish(w, 20 * MRC_SEC));
        CHECK(!w->flow[0].dead && !w->flow[1].dead);
        CHECK(w->flow[0].completed == 100 && w->flow[1].completed == 100);
        case_end(w);
    }
}

/* Marks on the only path slow the sender down, and do not stop it. */
TEST(gbn__a_marked_path_is_used_all_the_same)
{
    struct world_cfg cfg = one_path(7);
    cfg.cc.kind = MRC_CC_NSCC;
    cfg.link.mark_ppm = 300000;
    const struct run r = run_of(&cfg, MRC_MODE_RC, 10);
    CHECK(r.again == 0 && r.timeouts == 0);
    CHECK(r.took < 50 * MRC_MSEC);
}

static void pause_responder(struct world *w, void *arg, uint32_t on)
{
    (void)arg;
    mrc_engine_rx_pause(w->host[1].e, on != 0);
}

/* A receiver that is short of something is given time, as in MRC (B.7). */
TEST(gbn__a_pause_is_survived)
{
    struct world_cfg cfg = one_path(8);
    struct world_qp_cfg q = world_qp_defaults();
    const struct world_load load = {.messages = 2000, .bytes_min = BYTES, .bytes_max = BYTES};
    q.mode = MRC_MODE_RC;
    struct world *const w = case_world(&cfg, &q, BYTES);
    world_load(w, 0, &load);
    world_at(w, w->now + MRC_MSEC, pause_responder, NULL, 1);
    world_at(w, w->now + 20 * MRC_MSEC, pause_responder, NULL, 0);
    CHECK(case_finish(w, MRC_SEC));
    CHECK(w->flow[0].completed == 2000 && !w->flow[0].dead);
    CHECK(w->flow[0].last_done_ns < w->cfg.start_ns + 80 * MRC_MSEC);
    case_end(w);
}

/* A path that is gone ends the queue pair with the retries. */
TEST(gbn__a_dead_path_is_the_end)
{
    struct world_cfg cfg = one_path(9);
    struct world_qp_cfg q = world_qp_defaults();
    const struct world_load load = {.messages = 2000, .bytes_min = BYTES, .bytes_max = BYTES};
    q.mode = MRC_MODE_RC;
    q.linear_cnt = 2;
    q.exp_cnt = 2;
    struct world *const w = case_world(&cfg, &q, BYTES);
    world_load(w, 0, &load);
    CHECK(world_run(w, w->now + MRC_MSEC));
    world_cut(w, 0, 1, 0, true);
    w->flow[0].may_fail = true;
    CHECK(world_run(w, w->now + 40 * MRC_MSEC));
    CHECK(w->flow[0].dead);
    CHECK_EQ(w->flow[0].status, MRC_WC_RETRY_EXC_ERR);
    case_end(w);
}

/* ---- its own queue ---- */

struct drown {
    double share; /* of what the path carries */
    double again; /* of what was sent */
};

/* One clean path of 500 Mbit/s and the window that the controller makes by itself. */
static struct drown drown_of(bool known, mrc_ns delay_ns, uint32_t queue_bytes)
{
    struct fig_cfg c = fig_defaults();
    c.mode = MRC_MODE_RC;
    c.paths = 1;
    c.known = known;
    c.delay_ns = delay_ns;
    c.queue_bytes = queue_bytes;
    struct fig *f = fig_open(&c);
    fig_run(f, 2 * MRC_SEC);
    const struct mrc_qp_stats s = world_stats(f->w, &f->w->flow[0]);
    const struct drown d = {
        .share = fig_rate(f, 200 * MRC_MSEC, 2 * MRC_SEC) / fig_capacity(&c),
        .again = (double)f->w->flow[0].rtx_packets / (double)s.packets_sent,
    };
    fig_close(f);
    return d;
}

/* What is behind a loss is still on its way when it leaves again, so that a queue which just does
 * not hold the window never gets rid of it, unless the window gives way (ADR 97). */
TEST(gbn__does_not_drown_in_its_own_queue)
{
    const struct drown deep = drown_of(false, 50 * MRC_USEC, 610000);
    CHECK(deep.share > 0.98 && deep.again < 0.01);
    const struct drown shallow = drown_of(false, 50 * MRC_USEC, 200000);
    CHECK(shallow.share > 0.95 && shallow.again < 0.05);
    const struct drown small = drown_of(false, 500 * MRC_USEC, 100000);
    CHECK(small.share > 0.85 && small.again < 0.08);
    const struct drown known = drown_of(true, 500 * MRC_USEC, 100000);
    CHECK(known.share > 0.98 && known.again < 0.01);
}
