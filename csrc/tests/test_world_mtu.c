/* SPDX-License-Identifier: BSD-2-Clause */
/* Named scenarios: a path whose MTU shrinks while data flows (ADR 92). */
#include "world_case.h"

enum { PATHS = 4, NARROW = 2, BYTES = 65536 };

static struct world *bulk_world(uint64_t seed)
{
    struct world_cfg cfg = world_defaults(seed);
    struct world_qp_cfg q = world_qp_defaults();
    cfg.paths = PATHS;
    cfg.link.rate_bps = 1000000000;
    cfg.link.delay_ns = 40 * MRC_USEC;
    cfg.cc.link_bps = 4000000000;
    cfg.cc.base_rtt_ns = 120 * MRC_USEC;
    cfg.cc.max_cwnd_bytes = 120000;
    q.mtu = 4096;
    q.timeout = 13; /* 8.4 ms */
    q.exp_cnt = 25;
    return case_world(&cfg, &q, BYTES);
}

static void load(struct world *w, uint32_t messages)
{
    const struct world_load l = {.messages = messages, .bytes_min = BYTES, .bytes_max = BYTES};
    world_load(w, 0, &l);
}

static const struct mrc_ev_event *last_event(const struct world *w, uint16_t path)
{
    const uint32_t ev = mrc_path_entry(w->host[0].table[1], path)->ev;
    const struct mrc_ev_event *found = NULL;
    for (uint32_t i = 0; i < w->events_n && i < WORLD_EVENTS_KEPT; i++)
        if (w->events[i].table == 0 && w->events[i].ev == ev)
            found = &w->events[i];
    return found;
}

/* Field report 33, a sibling. Probes and answers pass, full packets vanish: it is retired, with
 * that reason, and carries nothing any more; nothing is lost for good. */
TEST(mtu__a_black_hole_is_retired_and_the_flow_goes_on)
{
    struct world *const w = bulk_world(3);
    load(w, 2000);
    w->narrow = true;
    CHECK(world_run(w, w->now + 5 * MRC_MSEC));
    struct sim_link *const l = world_link(w, 0, 1, NARROW);
    l->cfg.mtu_bytes = 1500;
    CHECK(case_finish(w, 5 * MRC_SEC));
    CHECK_EQ(w->flow[0].completed, 2000);
    CHECK_EQ(mrc_path_state(w->host[0].table[1], NARROW), MRC_EV_DENIED);
    const struct mrc_ev_event *e = last_event(w, NARROW);
    CHECK(e != NULL && e->to == MRC_EV_DENIED && e->reason == MRC_EV_R_MTU);
    const uint64_t vanished = l->stats.too_long;
    load(w, 4000);
    CHECK(case_finish(w, 5 * MRC_SEC));
    CHECK_EQ(l->stats.too_long, vanished);
    for (uint16_t i = 0; i < PATHS; i++)
        if (i != NARROW)
            CHECK(mrc_path_state(w->host[0].table[1], i) <= MRC_EV_SKIP);
    /* Mended, and said so. */
    l->cfg.mtu_bytes = 0;
    CHECK_EQ(mrc_path_set_state(w->host[0].table[1], NARROW, MRC_EV_GOOD, w->now), MRC_OK);
    const uint64_t before = l->stats.packets;
    load(w, 6000);
    CHECK(case_finish(w, 5 * MRC_SEC));
    CHECK(l->stats.packets > before + 1000);
    CHECK(mrc_path_state(w->host[0].table[1], NARROW) <= MRC_EV_SKIP);
    case_end(w);
}

/* A stricter class starves the data of one link for a while, and lets probes through: that looks
 * the same, and must not cost the path for ever. */
TEST(mtu__a_link_that_was_closed_to_data_is_used_again)
{
    struct world *const w = bulk_world(3);
    struct sim_link *const l = world_link(w, 0, 1, NARROW);
    load(w, 2000);
    w->narrow = true; /* such a verdict is no failure of this world */
    CHECK(world_run(w, w->now + 5 * MRC_MSEC));
    l->cfg.fault_kinds = WORLD_KIND_DATA;
    l->cfg.loss_ppm = 1000000;
    CHECK(world_run(w, w->now + 20 * MRC_MSEC));
    CHECK_EQ(mrc_path_state(w->host[0].table[1], NARROW), MRC_EV_DENIED);
    l->cfg.loss_ppm = 0;
    CHECK(case_finish(w, 5 * MRC_SEC));
    CHECK(world_run(w, w->now + 2 * MRC_SEC));
    const uint64_t before = l->stats.packets;
    load(w, 4000);
    CHECK(case_finish(w, 5 * MRC_SEC));
    CHECK(l->stats.packets > before + 1000);
    CHECK(mrc_path_state(w->host[0].table[1], NARROW) <= MRC_EV_SKIP);
    case_end(w);
}

/* Both hosts are busy: each gets its turns late, by up to so much, one or the other at a time. */
enum { BUSY_MS = 100 };

static void busy(struct world *w, void *arg, uint32_t n)
{
    struct mrc_rand *const r = arg;
    world_stall(w, mrc_rand_below(r, 2), (1 + mrc_rand_below(r, BUSY_MS)) * MRC_MSEC);
    world_at(w, w->now + (1 + mrc_rand_below(r, BUSY_MS)) * MRC_MSEC, busy, arg, n);
}

/* The longest time in which nothing arrived. */
static mrc_ns longest_silence(struct world *w, mrc_ns until)
{
    mrc_ns since = w->now;
    mrc_ns most = 0;
    uint64_t seen = 0;
    while (w->now < until && world_run(w, w->now + MRC_MSEC)) {
        const uint64_t bytes = world_stats_peer(w, &w->flow[0]).bytes_received;
        if (bytes != seen)
            since = w->now;
        seen = bytes;
        most = mrc_max64(most, w->now - since);
    }
    return most;
}

/* A plane of four shrinks between two busy hosts. The window falls to one packet, of which copy
 * after copy left on that plane, and then the timer had to run out, which nothing but a packet that
 * left once took back: seconds, in the end half a minute (ADR 132). */
TEST(mtu__no_long_silence_between_busy_hosts)
{
    static const uint64_t seeds[] = {6, 11, 24};
    for (size_t k = 0; k < sizeof seeds / sizeof seeds[0]; k++) {
        struct world_cfg cfg = world_defaults(seeds[k]);
        struct world_qp_cfg q = world_qp_defaults();
        struct mrc_rand r;
        mrc_rand_seed(&r, seeds[k] * 77 + 5);
        cfg.paths = 4 * PATHS;
        cfg.min_active = PATHS;
        cfg.link.rate_bps = 100000000;
        cfg.link.delay_ns = cfg.turn_ns = 20 * MRC_USEC;
        cfg.cc = (struct mrc_cc_cfg){.kind = MRC_CC_NSCC, .mtu_bytes = 4096};
        q.mtu = 4096;
        q.mpr = 16;
        q.dynamic_mpr = true;
        q.timeout = 16; /* as mrc.connect() sets them */
        q.linear_cnt = 3;
        q.exp_cnt = 6;
        q.depth = 8;
        struct world *const w = case_world(&cfg, &q, 1 << 20);
        const struct world_load l = {
            .messages = UINT64_MAX, .bytes_min = 1 << 20, .bytes_max = 1 << 20};
        w->narrow = true;
        world_load(w, 0, &l);
        world_at(w, w->now + 10 * MRC_MSEC, busy, &r, 0);
        CHECK(world_run(w, w->now + 100 * MRC_MSEC));
        for (uint16_t i = 0; i < cfg.paths; i++)
            if (mrc_path_entry(w->host[0].table[1], i)->plane == NARROW)
                world_link(w, 0, 1, i)->cfg.mtu_bytes = 2000;
        CHECK(longest_silence(w, w->now + 6 * MRC_SEC) < MRC_SEC);
        CHECK(!w->flow[0].dead);
        case_end(w);
    }
}

/* All of them: nobody tells that from a dead peer, and it ends. */
TEST(mtu__all_paths_too_narrow_is_an_error_in_the_end)
{
    struct world_cfg cfg = world_defaults(4);
    struct world_qp_cfg q = world_qp_defaults();
    cfg.paths = PATHS;
    q.mtu = 4096;
    q.timeout = 10;
    q.linear_cnt = 2;
    q.exp_cnt = 2;
    struct world *const w = case_world(&cfg, &q, BYTES);
    w->narrow = true;
    for (uint16_t i = 0; i < PATHS; i++)
        world_link(w, 0, 1, i)->cfg.mtu_bytes = 1500;
    CHECK(world_post(w, &w->flow[0], BYTES, false, true));
    world_kick(w, 0);
    (void)world_run(w, w->now + 2 * MRC_SEC);
    CHECK_EQ(w->flow[0].status, MRC_WC_RETRY_EXC_ERR);
    case_end(w);
}

/* Field report 35, a sibling. The socket says so: at once, and what it refused takes another path.
 */
TEST(mtu__a_socket_that_refuses_full_packets)
{
    struct world *const w = bulk_world(5);
    load(w, 100);
    CHECK(world_run(w, w->now + MRC_MSEC));
    const struct mrc_path_entry_cfg *e = mrc_path_entry(w->host[0].table[1], NARROW);
    w->narrow = true;
    world_link(w, 0, 1, NARROW)->cfg.mtu_bytes = 1500;
    mrc_engine_lane_failed(w->host[0].e, e->port, e->lane, MRC_EV_R_MTU, w->now);
    world_kick(w, 0);
    CHECK_EQ(mrc_path_state(w->host[0].table[1], NARROW), MRC_EV_DENIED);
    CHECK(case_finish(w, MRC_SEC));
    CHECK_EQ(w->flow[0].completed, 100);
    const struct mrc_ev_event *v = last_event(w, NARROW);
    CHECK(v != NULL && v->reason == MRC_EV_R_MTU);
    case_end(w);
}
