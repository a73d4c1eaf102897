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
