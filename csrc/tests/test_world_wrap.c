/* SPDX-License-Identifier: BSD-2-Clause */
/* Counters that begin just before their wrap, clocks that do, and lives of a QP. */
#include "world_case.h"

static const struct world_load many = {.messages = 400, .bytes_max = 6000, .imm_percent = 40};

/* FR 9, 11: PSN, MSN, RQMSN, AETH.msn, rcvd_bytes, and the index of every ring. */
TEST(wrap__every_number_and_every_ring_under_loss_and_reordering)
{
    for (uint64_t seed = 1; seed < 9; seed++) {
        struct world_cfg cfg = world_defaults(seed);
        struct world_qp_cfg q = world_qp_defaults();
        q.psn_ab = 0xFFFFFF - 100;
        q.psn_ba = 0xFFFFFF - 3;
        q.late_numbers = true;
        q.exp_cnt = 25;
        cfg.late_rings = true;
        cfg.link.loss_ppm = 20000;
        cfg.link.jitter_ppm = 300000;
        cfg.link.jitter_ns = 100 * MRC_USEC;
        struct world *const w = case_world(&cfg, &q, 6000);
        world_load(w, 0, &many);
        world_load(w, 1, &many);
        CHECK(case_finish(w, 20 * MRC_SEC));
        CHECK_EQ(w->flow[0].completed, 400);
        CHECK_EQ(w->flow[1].completed, 400);
        CHECK(w->cover[WORLD_C_PSN_WRAP] == 2 && w->cover[WORLD_C_MSN_WRAP] == 2);
        CHECK(w->cover[WORLD_C_RQMSN_WRAP] == 2 && w->cover[WORLD_C_AETH_WRAP] > 0);
        CHECK(w->cover[WORLD_C_RCVD_WRAP] > 0);
        case_end(w);
    }
}

/* How a run went, without the time it began at. */
struct outcome {
    mrc_ns took;
    uint64_t data;
    uint64_t again;
    uint64_t cwnd;
    uint64_t marks;
};

static struct outcome run_from(mrc_ns start)
{
    struct world_cfg cfg = world_defaults(5);
    struct world_qp_cfg q = world_qp_defaults();
    cfg.start_ns = start;
    cfg.cc.kind = MRC_CC_NSCC;
    cfg.paths = 2;
    cfg.link.rate_bps = 500000000;
    cfg.cc.link_bps = 1000000000;
    cfg.link.mark_ppm = 20000;
    cfg.link.loss_ppm = 2000;
    q.timestamps = true;
    struct world *const w = case_world(&cfg, &q, 20000);
    world_load(w, 0, &(struct world_load){.messages = 300, .bytes_min = 20000, .bytes_max = 20000});
    CHECK(case_finish(w, 5 * MRC_SEC));
    const struct mrc_qp_stats s = world_stats(w, &w->flow[0]);
    const struct outcome o = {w->flow[0].last_done_ns - start, s.packets_sent,
                              s.packets_retransmitted, s.cwnd_bytes, s.ecn_marks};
    case_end(w);
    return o;
}

/* FR 80: delay is a difference of 16-bit timestamps in units of 128 ns. Wherever their wrap, that
 * of 32 bits of nanoseconds or of microseconds falls into the run, it goes the same way; a bias or
 * a wrong unit would look like queueing. */
TEST(wrap__a_run_goes_the_same_wherever_its_clock_begins)
{
    const mrc_ns unit = 128;
    const mrc_ns turn = unit << 16;
    const mrc_ns begins[] = {turn - unit,
                             turn - 100 * unit,
                             1000 * turn - 5000 * unit,
                             ((mrc_ns)1 << 32) - turn / 2,
                             ((mrc_ns)1 << 42) - turn,
                             ((mrc_ns)1 << 48) - 30 * unit};
    const struct outcome want = run_from(10 * turn);
    CHECK(want.marks > 20 && want.took > 4 * turn);
    for (size_t i = 0; i < sizeof(begins) / sizeof(begins[0]); i++) {
        const struct outcome got = run_from(begins[i]);
        CHECK_EQ(got.took, want.took);
        CHECK_EQ(got.data, want.data);
        CHECK_EQ(got.again, want.again);
        CHECK_EQ(got.cwnd, want.cwnd);
        CHECK_EQ(got.marks, want.marks);
    }
}

/* ---- lives ---- */

TEST(life__reset_under_load_begins_anew_and_takes_nothing_of_the_former_life) /* C.3, FR 49 */
{
    struct world_cfg cfg = world_defaults(21);
    const struct world_qp_cfg q = world_qp_defaults();
    cfg.link.jitter_ppm = 300000;
    cfg.link.jitter_ns = MRC_MSEC; /* packets that outlive the life they were sent in */
    struct world *const w = case_world(&cfg, &q, 6000);
    uint32_t flow = 0;
    world_load(w, 0, &many);
    world_load(w, 1, &many);
    for (int i = 0; i < 5; i++) {
        CHECK(world_run(w, w->now + 200 * MRC_USEC));
        CHECK(world_stats(w, &w->flow[flow]).outstanding > 0);
        flow = world_reset(w, flow);
    }
    CHECK(case_finish(w, 5 * MRC_SEC));
    CHECK_EQ(w->flow[flow].completed, 400);
    CHECK(w->cover[WORLD_C_RESET_STALE] > 20);
    world_end(w);
    case_end(w);
}

/* All paths bad and the peer gone: the probes that should heal a path are answered by the peer's
 * QP, so only the retry budget can end it (D.6: the timers go on). FR 26, 50: found by seed 255. */
TEST(life__a_peer_that_is_gone_is_noticed_without_a_usable_path)
{
    struct world_cfg cfg = world_defaults(22);
    struct world_qp_cfg q = world_qp_defaults();
    cfg.paths = 4;
    q.timeout = 8;
    q.linear_cnt = 2;
    q.exp_cnt = 3;
    struct world *const w = case_world(&cfg, &q, 6000);
    world_load(w, 0, &many);
    CHECK(world_run(w, w->now + 100 * MRC_USEC));
    world_destroy(w, 1);
    for (uint16_t i = 0; i < cfg.paths; i++) {
        const struct mrc_path_entry_cfg *const e = mrc_path_entry(w->host[0].table[1], i);
        mrc_path_planes_set(w->host[0].e, w->host[0].path_id[1], 0, UINT32_MAX);
        mrc_engine_lane_failed(w->host[0].e, e->port, e->lane, MRC_EV_R_SEND_ERROR, w->now);
    }
    mrc_path_planes_set(w->host[0].e, w->host[0].path_id[1], UINT32_MAX, UINT32_MAX);
    world_kick(w, 0);
    for (uint16_t i = 0; i < cfg.paths; i++)
        CHECK_EQ(mrc_path_state(w->host[0].table[1], i), MRC_EV_ASSUMED_BAD);
    CHECK(case_finish(w, MRC_SEC));
    CHECK_EQ(w->flow[0].status, MRC_WC_RETRY_EXC_ERR);
    CHECK_EQ(w->flow[0].completed, w->flow[0].posted);
    case_end(w);
}

/* ---- the host ---- */

TEST(host__a_receiver_that_gets_no_turn_for_a_while) /* FR 29: bounded work when it comes back */
{
    struct world_cfg cfg = world_defaults(23);
    const struct world_qp_cfg q = world_qp_defaults();
    struct world *const w = case_world(&cfg, &q, 6000);
    world_load(w, 0, &many);
    world_load(w, 1, &many);
    for (int i = 0; i < 4; i++) {
        CHECK(world_run(w, w->now + 300 * MRC_USEC));
        world_stall(w, (uint32_t)i % 2, 4 * MRC_MSEC);
    }
    CHECK(case_finish(w, 5 * MRC_SEC));
    CHECK_EQ(w->flow[0].completed, 400);
    CHECK_EQ(w->cover[WORLD_C_STALLED], 4);
    case_end(w);
}

/* Strangers, copies and forgeries: never a byte of memory, never more answers than packets. */
TEST(host__hostile_packets_move_nothing)
{
    for (uint32_t kinds = 1; kinds < 8; kinds++) {
        struct world_cfg cfg = world_defaults(30 + kinds);
        struct world_qp_cfg q = world_qp_defaults();
        q.exp_cnt = 25;
        struct world *const w = case_world(&cfg, &q, 6000);
        world_hostile(w, kinds, 500000, w->now + 3 * MRC_MSEC);
        world_load(w, 0, &many);
        world_load(w, 1, &many);
        CHECK(case_finish(w, 20 * MRC_SEC));
        CHECK(w->flow[0].completed == 400 || w->flow[0].may_fail);
        CHECK(w->cover[WORLD_C_STRANGER] + w->cover[WORLD_C_REPLAYED] + w->cover[WORLD_C_FORGED] >
              50);
        world_end(w);
        case_end(w);
    }
}
