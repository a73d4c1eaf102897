/* SPDX-License-Identifier: BSD-2-Clause */
/* Named scenarios: paths that die, heal, differ; timers; silence. */
#include "world_case.h"

/* Four planes of 1 Gbit/s, about 100 us round trip, a window of twice what that holds. */
static struct world_cfg four_planes(uint64_t seed)
{
    struct world_cfg cfg = world_defaults(seed);
    cfg.paths = 4;
    cfg.link.rate_bps = 1000000000;
    cfg.link.delay_ns = 40 * MRC_USEC;
    cfg.cc.link_bps = 4000000000;
    cfg.cc.base_rtt_ns = 120 * MRC_USEC;
    cfg.cc.max_cwnd_bytes = 120000;
    return cfg;
}

static struct world_qp_cfg bulk_qp(void)
{
    struct world_qp_cfg q = world_qp_defaults();
    q.timeout = 13; /* 8.4 ms */
    q.exp_cnt = 25;
    q.mpr = 16;
    return q;
}

static const struct world_load bulk = {.messages = 1000000, .bytes_min = 16384, .bytes_max = 16384};

static uint64_t done_bytes(const struct world *w) { return w->flow[0].completed * 16384; }

/* Goodput in bit/s from now until then; *gap_ns: the longest time without a completion. */
static double goodput(struct world *w, mrc_ns for_ns, mrc_ns *gap_ns)
{
    const mrc_ns end = w->now + for_ns;
    const uint64_t before = done_bytes(w);
    mrc_ns last = w->now;
    uint64_t seen = before;
    *gap_ns = 0;
    while (w->now < end && world_run(w, w->now + 100 * MRC_USEC)) {
        if (done_bytes(w) != seen) {
            seen = done_bytes(w);
            last = w->now;
        } else if (w->now - last > *gap_ns) {
            *gap_ns = w->now - last;
        }
    }
    return (double)(done_bytes(w) - before) * 8e9 / (double)for_ns;
}

/* Time of the first event on this path at host 0 that led to `state` after `since`, or MRC_NEVER.
 */
static mrc_ns event_time(const struct world *w, uint16_t path, uint8_t state, mrc_ns since)
{
    const uint32_t ev = mrc_path_entry(w->host[0].table[1], path)->ev;
    for (uint32_t i = 0; i < w->events_n && i < WORLD_EVENTS_KEPT; i++) {
        const struct mrc_ev_event *const e = &w->events[i];
        if (e->table == 0 && e->ev == ev && e->to == state && e->time >= since)
            return e->time;
    }
    return MRC_NEVER;
}

static void stop_load(struct world *w)
{
    for (uint32_t i = 0; i < w->flows; i++)
        w->flow[i].load.messages = w->flow[i].posted;
}

TEST(path__silent_cut_is_bypassed_and_healed_path_returns) /* FR 30, 33, 34 */
{
    const struct world_cfg cfg = four_planes(1);
    const struct world_qp_cfg q = bulk_qp();
    mrc_ns gap = 0;
    struct world *const w = case_world(&cfg, &q, 16384);
    world_load(w, 0, &bulk);
    const double whole = goodput(w, 50 * MRC_MSEC, &gap);
    CHECK(whole > 3.2e9);

    const mrc_ns cut = w->now;
    world_cut(w, 0, 1, 2, true);
    goodput(w, 50 * MRC_MSEC, &gap);
    CHECK(gap <= 20 * MRC_MSEC);
    CHECK(event_time(w, 2, MRC_EV_ASSUMED_BAD, cut) - cut < 20 * MRC_MSEC);
    const uint64_t before = world_link(w, 0, 1, 2)->stats.packets;
    CHECK(goodput(w, 100 * MRC_MSEC, &gap) >= 0.7 * whole);
    CHECK(world_link(w, 0, 1, 2)->stats.packets - before < 50); /* probes only */

    const mrc_ns heal = w->now;
    world_cut(w, 0, 1, 2, false);
    goodput(w, 200 * MRC_MSEC, &gap);
    CHECK(event_time(w, 2, MRC_EV_GOOD, heal) - heal < 200 * MRC_MSEC);
    CHECK(goodput(w, 50 * MRC_MSEC, &gap) > 0.95 * whole);
    stop_load(w);
    CHECK(case_finish(w, MRC_SEC));
    case_end(w);
}

/* A port of host 1 fails: its link is dead both ways, and host 1 knows. */
static void port_of_host_1(struct world *w, uint8_t plane, bool up)
{
    world_cut(w, 0, 1, (uint16_t)(plane - 1), !up);
    CHECK(mrc_path_planes_set(w->host[1].e, w->host[1].path_id[0],
                              up ? MRC_PLANES_ALL : MRC_PLANES_ALL & ~(1u << plane),
                              MRC_PLANES_ALL) == MRC_OK);
    world_kick(w, 1);
}

TEST(path__a_plane_that_goes_down_is_out_of_use_at_the_peer_at_once_and_back_with_it) /* D.7, F.1 */
{
    const struct world_cfg cfg = four_planes(31);
    const struct world_qp_cfg q = bulk_qp();
    struct mrc_ep_planes planes;
    mrc_ns gap = 0;
    struct world *const w = case_world(&cfg, &q, 16384);
    world_load(w, 0, &bulk);
    const double whole = goodput(w, 50 * MRC_MSEC, &gap);

    port_of_host_1(w, 3, false);
    goodput(w, MRC_MSEC, &gap); /* several round trips, and less than a timeout */
    CHECK(mrc_path_planes(w->host[0].e, w->host[0].path_id[1], &planes) == MRC_OK);
    CHECK_EQ(planes.remote_up, MRC_PLANES_ALL & ~(1u << 3));
    CHECK(mrc_path_planes(w->host[1].e, w->host[1].path_id[0], &planes) == MRC_OK);
    CHECK(planes.pending == 0 && planes.told == planes.local_up);
    const uint64_t before = world_link(w, 0, 1, 2)->stats.packets;
    goodput(w, 50 * MRC_MSEC, &gap);
    CHECK(gap <= 20 * MRC_MSEC);
    CHECK(goodput(w, 50 * MRC_MSEC, &gap) >= 0.7 * whole);
    CHECK_EQ(world_link(w, 0, 1, 2)->stats.packets, before); /* nothing, not even probes */

    port_of_host_1(w, 3, true);
    goodput(w, 20 * MRC_MSEC, &gap);
    CHECK(goodput(w, 50 * MRC_MSEC, &gap) > 0.95 * whole);
    CHECK(world_link(w, 0, 1, 2)->stats.packets > before + 500);
    stop_load(w);
    CHECK(case_finish(w, MRC_SEC));
    case_end(w);
}

static bool lose_endpoint(struct world *w, const struct world_hop *hop, mrc_ns *extra)
{
    (void)extra;
    const mrc_ns *until = w->filter_arg;
    return hop->kind != WORLD_KIND_ENDPOINT || w->now >= *until;
}

TEST(path__the_return_of_a_plane_is_told_however_many_updates_are_lost)
{
    const struct world_cfg cfg = four_planes(32);
    const struct world_qp_cfg q = bulk_qp();
    struct mrc_ep_planes planes;
    struct world *const w = case_world(&cfg, &q, 16384);
    mrc_ns until = 0;
    port_of_host_1(w, 2, false);
    CHECK(world_run(w, w->now + MRC_MSEC));
    w->filter = lose_endpoint;
    w->filter_arg = &until;
    until = w->now + MRC_SEC; /* far more than the three of the first round */
    port_of_host_1(w, 2, true);
    CHECK(world_run(w, until));
    CHECK(mrc_path_planes(w->host[0].e, w->host[0].path_id[1], &planes) == MRC_OK);
    CHECK_EQ(planes.remote_up, MRC_PLANES_ALL & ~(1u << 2));
    CHECK(world_run(w, until + 2 * MRC_SEC));
    CHECK(mrc_path_planes(w->host[0].e, w->host[0].path_id[1], &planes) == MRC_OK);
    CHECK_EQ(planes.remote_up, MRC_PLANES_ALL);
    case_end(w);
}

static uint16_t path_of[1 << 16];
static uint32_t same_path;

static bool note_path(struct world *w, const struct world_hop *hop, mrc_ns *extra)
{
    (void)w;
    (void)extra;
    if (hop->kind == WORLD_KIND_DATA && hop->from == 0) {
        uint16_t *const at = &path_of[hop->pkt->psn & 0xFFFF];
        if (hop->pkt->rtx && *at == hop->path)
            same_path++;
        *at = hop->path;
    }
    return true;
}

TEST(path__retransmission_takes_another_path) /* FR 31 */
{
    struct world_cfg cfg = four_planes(2);
    const struct world_qp_cfg q = bulk_qp();
    mrc_ns gap = 0;
    cfg.link.loss_ppm = 20000;
    cfg.min_active = 3;
    struct world *const w = case_world(&cfg, &q, 16384);
    same_path = 0;
    w->filter = note_path;
    world_load(w, 0, &bulk);
    goodput(w, 20 * MRC_MSEC, &gap);
    CHECK(w->flow[0].rtx_packets > 50);
    CHECK_EQ(same_path, 0);
    stop_load(w);
    CHECK(case_finish(w, MRC_SEC));
    case_end(w);
}

TEST(path__one_way_loss_of_answers_costs_no_data_twice_for_long)
{
    struct world_cfg cfg = four_planes(3);
    const struct world_qp_cfg q = bulk_qp();
    mrc_ns gap = 0;
    struct world *const w = case_world(&cfg, &q, 16384);
    world_load(w, 0, &bulk);
    goodput(w, 20 * MRC_MSEC, &gap);
    world_link(w, 1, 0, 1)->cut = true;
    goodput(w, 30 * MRC_MSEC, &gap);
    CHECK(gap < 20 * MRC_MSEC);
    stop_load(w);
    CHECK(case_finish(w, MRC_SEC));
    case_end(w);
}

TEST(path__denied_at_run_time_carries_nothing) /* FR 37 */
{
    const struct world_cfg cfg = four_planes(4);
    const struct world_qp_cfg q = bulk_qp();
    mrc_ns gap = 0;
    struct world *const w = case_world(&cfg, &q, 16384);
    world_load(w, 0, &bulk);
    world_load(w, 1, &bulk);
    goodput(w, 5 * MRC_MSEC, &gap);
    CHECK_EQ(mrc_path_set_state(w->host[0].table[1], 1, MRC_EV_DENIED, w->now), MRC_OK);
    const uint64_t before = world_link(w, 0, 1, 1)->stats.packets;
    goodput(w, 20 * MRC_MSEC, &gap);
    CHECK_EQ(world_link(w, 0, 1, 1)->stats.packets, before); /* answers of host 0 included */
    stop_load(w);
    CHECK(case_finish(w, MRC_SEC));
    case_end(w);
}

TEST(path__socket_refuses_one_path) /* FR 35, 61 */
{
    const struct world_cfg cfg = four_planes(5);
    struct world_qp_cfg q = bulk_qp();
    q.timeout = 18; /* 268 ms: must not be needed */
    struct world *const w = case_world(&cfg, &q, 16384);
    for (int i = 0; i < 8; i++)
        CHECK(world_post(w, &w->flow[0], 16384, false, true));
    world_link(w, 0, 1, 3)->cut = true;
    world_kick(w, 0);
    mrc_engine_lane_failed(w->host[0].e, mrc_path_entry(w->host[0].table[1], 3)->port,
                           mrc_path_entry(w->host[0].table[1], 3)->lane, MRC_EV_R_SEND_ERROR,
                           w->now);
    world_kick(w, 0);
    CHECK(case_finish(w, 50 * MRC_MSEC));
    CHECK_EQ(w->flow[0].completed, 8);
    CHECK(w->flow[0].last_done_ns - cfg.start_ns < 10 * MRC_MSEC);
    case_end(w);
}

TEST(path__aggregate_of_four_is_near_four_times_one) /* FR 42 */
{
    double rate[2];
    for (int k = 0; k < 2; k++) {
        struct world_cfg cfg = four_planes(6);
        const struct world_qp_cfg q = bulk_qp();
        mrc_ns gap = 0;
        cfg.paths = k == 0 ? 1 : 4;
        cfg.planes = (uint8_t)cfg.paths;
        struct world *const w = case_world(&cfg, &q, 16384);
        world_load(w, 0, &bulk);
        rate[k] = goodput(w, 50 * MRC_MSEC, &gap);
        stop_load(w);
        CHECK(case_finish(w, MRC_SEC));
        case_end(w);
    }
    CHECK(rate[1] >= 3.6 * rate[0]);
}

TEST(path__failing_peer_leaves_the_paths_to_the_other_alone) /* FR 40 */
{
    struct world_cfg cfg = four_planes(7);
    struct world_qp_cfg q = bulk_qp();
    mrc_ns gap = 0;
    cfg.hosts = 3;
    struct world *const w = case_world(&cfg, &q, 16384);
    q.b = 2;
    q.exp_cnt = 2;
    q.linear_cnt = 2;
    world_connect(w, &q, 16384);
    for (uint16_t i = 0; i < 4; i++)
        world_cut(w, 0, 2, i, true);
    world_load(w, 0, &bulk);
    world_load(w, 2, &(struct world_load){.messages = 10, .bytes_max = 5000});
    goodput(w, 200 * MRC_MSEC, &gap);
    CHECK(w->flow[2].dead);
    CHECK_EQ(w->flow[2].status, MRC_WC_RETRY_EXC_ERR);
    for (uint16_t i = 0; i < 4; i++)
        CHECK_EQ(mrc_path_state(w->host[0].table[1], i), MRC_EV_GOOD);
    CHECK_EQ(w->flow[0].rtx_packets, 0);
    stop_load(w);
    CHECK(case_finish(w, MRC_SEC));
    case_end(w);
}

/* ---- unequal paths ---- */

static double with_delays(const mrc_ns delay_ns[4], struct mrc_qp_stats *stats)
{
    struct world_cfg cfg = four_planes(8);
    struct world_qp_cfg q = bulk_qp();
    mrc_ns gap = 0;
    q.mpr = 64;
    q.depth = 256;
    q.timeout = 15; /* 34 ms: above every round trip here */
    cfg.cc.max_cwnd_bytes = 2000000;
    struct world *const w = case_world(&cfg, &q, 16384);
    for (uint16_t i = 0; i < 4; i++) {
        world_link(w, 0, 1, i)->cfg.delay_ns = delay_ns[i];
        world_link(w, 1, 0, i)->cfg.delay_ns = delay_ns[i];
    }
    world_load(w, 0, &bulk);
    goodput(w, 20 * MRC_MSEC, &gap);
    const double rate = goodput(w, 100 * MRC_MSEC, &gap);
    stop_load(w);
    CHECK(case_finish(w, MRC_SEC));
    *stats = world_stats(w, &w->flow[0]);
    case_end(w);
    return rate;
}

TEST(path__delays_of_one_two_four_eight) /* FR 16 */
{
    static const mrc_ns same[4] = {100000, 100000, 100000, 100000};
    static const mrc_ns unequal[4] = {100000, 200000, 400000, 800000};
    struct mrc_qp_stats s;
    const double want = with_delays(same, &s);
    CHECK_EQ(s.packets_retransmitted, 0);
    const double got = with_delays(unequal, &s);
    CHECK(got >= 0.9 * want);
    CHECK(s.packets_retransmitted * 200 < s.packets_sent);
    CHECK(s.spurious_retransmits * 200 < s.packets_sent);
}

TEST(path__one_and_twenty_milliseconds) /* FR 17 */
{
    static const mrc_ns unequal[4] = {500000, 500000, 500000, 10000000};
    struct mrc_qp_stats s;
    with_delays(unequal, &s);
    CHECK(s.packets_retransmitted * 100 < s.packets_sent);
}

TEST(path__round_trip_grows_beyond_the_probe_timeout) /* FR 39 */
{
    const struct world_cfg cfg = four_planes(9);
    struct world_qp_cfg q = bulk_qp();
    mrc_ns gap = 0;
    q.timeout = 16; /* 67 ms */
    struct world *const w = case_world(&cfg, &q, 16384);
    world_load(w, 0, &bulk);
    goodput(w, 20 * MRC_MSEC, &gap);
    for (uint16_t i = 0; i < 4; i++) {
        world_link(w, 0, 1, i)->cfg.delay_ns = 5 * MRC_MSEC;
        world_link(w, 1, 0, i)->cfg.delay_ns = 5 * MRC_MSEC;
    }
    goodput(w, 500 * MRC_MSEC, &gap);
    CHECK(gap < 50 * MRC_MSEC);
    for (uint16_t i = 0; i < 4; i++)
        CHECK(mrc_path_state(w->host[0].table[1], i) != MRC_EV_ASSUMED_BAD);
    stop_load(w);
    CHECK(case_finish(w, MRC_SEC));
    case_end(w);
}

/* ---- sixteen paths, NSCC: the demo without sockets ---- */

static struct world *sixteen(uint64_t seed, uint32_t loss_ppm)
{
    struct world_cfg cfg = world_defaults(seed);
    struct world_qp_cfg q = bulk_qp();
    cfg.paths = 16;
    cfg.min_active = 4;
    cfg.link.rate_bps = 125000000;
    cfg.link.delay_ns = 50 * MRC_USEC;
    cfg.link.loss_ppm = loss_ppm;
    cfg.link.queue_bytes = 200000;
    cfg.cc = (struct mrc_cc_cfg){.kind = MRC_CC_NSCC,
                                 .mtu_bytes = 4096,
                                 .link_bps = 10000000000,
                                 .base_rtt_ns = 200 * MRC_USEC};
    q.mtu = 4096;
    q.timeout = 16;
    struct world *const w = case_world(&cfg, &q, 16384);
    world_load(w, 0, &bulk);
    return w;
}

TEST(nscc__sixteen_paths_share_alike_and_a_dead_plane_is_bypassed)
{
    mrc_ns gap = 0;
    struct world *const w = sixteen(20, 0);
    const double whole = goodput(w, 300 * MRC_MSEC, &gap);
    CHECK(whole > 0.95 * 2e9);
    uint64_t sum = 0;
    for (uint16_t i = 0; i < 16; i++)
        sum += world_link(w, 0, 1, i)->stats.packets;
    for (uint16_t i = 0; i < 16; i++) {
        const uint64_t n = world_link(w, 0, 1, i)->stats.packets;
        CHECK(n * 16 > sum * 9 / 10 && n * 16 < sum * 11 / 10);
    }
    CHECK_EQ(w->flow[0].rtx_packets, 0);
    for (uint16_t i = 1; i < 16; i += 4)
        world_cut(w, 0, 1, i, true);
    goodput(w, 50 * MRC_MSEC, &gap);
    CHECK(gap <= 20 * MRC_MSEC);
    CHECK(goodput(w, 200 * MRC_MSEC, &gap) > 0.95 * 0.75 * whole);
    for (uint16_t i = 1; i < 16; i += 4)
        world_cut(w, 0, 1, i, false);
    goodput(w, 200 * MRC_MSEC, &gap);
    CHECK(goodput(w, 100 * MRC_MSEC, &gap) > 0.95 * whole);
    stop_load(w);
    CHECK(case_finish(w, MRC_SEC));
    case_end(w);
}

TEST(nscc__one_percent_loss_on_every_path)
{
    mrc_ns gap = 0;
    struct world *w = sixteen(21, 0);
    const double clean = goodput(w, 300 * MRC_MSEC, &gap);
    stop_load(w);
    CHECK(case_finish(w, MRC_SEC));
    case_end(w);
    w = sixteen(21, 10000);
    goodput(w, 100 * MRC_MSEC, &gap);
    CHECK(goodput(w, 500 * MRC_MSEC, &gap) > 0.7 * clean);
    CHECK(world_stats(w, &w->flow[0]).spurious_retransmits * 200 < w->flow[0].data_packets);
    stop_load(w);
    CHECK(case_finish(w, MRC_SEC));
    case_end(w);
}

/* ---- silence ---- */

static void cut_all(struct world *w, bool cut)
{
    for (uint16_t i = 0; i < w->cfg.paths; i++)
        world_cut(w, 0, 1, i, cut);
}

TEST(time__dead_peer_ends_in_retry_exceeded_and_flush) /* FR 22, 26, 49 */
{
    const struct world_cfg cfg = four_planes(10);
    struct world_qp_cfg q = bulk_qp();
    q.timeout = 8;
    q.linear_cnt = 3;
    q.exp_cnt = 5;
    struct world *const w = case_world(&cfg, &q, 16384);
    cut_all(w, true);
    for (int i = 0; i < 50; i++)
        CHECK(world_post(w, &w->flow[0], 1000, i % 2 == 0, i % 3 != 0));
    world_kick(w, 0);
    CHECK(case_finish(w, MRC_SEC));
    CHECK(w->flow[0].dead);
    CHECK_EQ(w->flow[0].status, MRC_WC_RETRY_EXC_ERR);
    CHECK_EQ(w->flow[0].completed, 50);
    /* B.9: 4 x T0 + (2 + 4 + 8 + 16 + 32) x T0, T0 = 262.144 us. */
    const mrc_ns budget = 66 * 262144;
    const mrc_ns took = w->flow[0].last_done_ns - cfg.start_ns;
    CHECK(took > budget / 2 && took < budget * 3 / 2);
    CHECK(w->flow[0].data_packets <= 50 * 9); /* each once per attempt */
    case_end(w);
}

TEST(time__half_a_minute_of_silence_then_resumes_at_once) /* FR 23 */
{
    const struct world_cfg cfg = four_planes(11);
    const struct world_qp_cfg q = bulk_qp();
    mrc_ns gap = 0;
    struct world *const w = case_world(&cfg, &q, 16384);
    world_load(w, 0, &bulk);
    const double whole = goodput(w, 20 * MRC_MSEC, &gap);
    cut_all(w, true);
    CHECK(world_run(w, w->now + MRC_SEC));
    const uint64_t sent = w->flow[0].data_packets;
    CHECK(world_run(w, w->now + 29 * MRC_SEC));
    CHECK(w->flow[0].data_packets - sent < 5000); /* FR 22: no flood */
    const uint64_t before = w->flow[0].completed;
    cut_all(w, false);
    CHECK(world_run(w, w->now + MRC_SEC));
    CHECK(w->flow[0].completed > before);
    CHECK(goodput(w, 50 * MRC_MSEC, &gap) > 0.9 * whole);
    stop_load(w);
    CHECK(case_finish(w, MRC_SEC));
    case_end(w);
}

TEST(time__timer_below_the_round_trip_does_not_send_everything_twice)
{
    struct world_cfg cfg = four_planes(14);
    struct world_qp_cfg q = bulk_qp();
    mrc_ns gap = 0;
    cfg.paths = 2;
    cfg.planes = 2;
    cfg.link.rate_bps = 100000000;
    cfg.cc.max_cwnd_bytes = 262144; /* 10 ms of queue */
    q.timeout = 10;                 /* 1 ms */
    struct world *const w = case_world(&cfg, &q, 16384);
    world_load(w, 0, &bulk);
    goodput(w, 100 * MRC_MSEC, &gap);
    const uint64_t again = w->flow[0].rtx_packets;
    const uint64_t all = w->flow[0].data_packets;
    CHECK(goodput(w, 500 * MRC_MSEC, &gap) > 0.9 * 0.92 * 2e8);
    CHECK((w->flow[0].rtx_packets - again) * 50 < w->flow[0].data_packets - all);
    stop_load(w);
    CHECK(case_finish(w, MRC_SEC));
    case_end(w);
}

TEST(time__window_of_one_packet_never_shuts)
{
    struct world_cfg cfg = four_planes(15);
    struct world_qp_cfg q = bulk_qp();
    q.mtu = 4096;
    cfg.cc.mtu_bytes = 4096;
    cfg.cc.max_cwnd_bytes = 4096; /* less than a packet with its headers */
    cfg.link.loss_ppm = 50000;
    struct world *const w = case_world(&cfg, &q, 16384);
    world_load(w, 0, &(struct world_load){.messages = 300, .bytes_max = 16384});
    CHECK(case_finish(w, 10 * MRC_SEC));
    CHECK_EQ(w->flow[0].completed, 300);
    case_end(w);
}

TEST(time__idle_for_a_minute_then_writes) /* FR 25, 51 */
{
    static const mrc_ns gaps[] = {5 * MRC_SEC, 60 * MRC_SEC};
    const struct world_cfg cfg = four_planes(12);
    const struct world_qp_cfg q = bulk_qp();
    struct world *const w = case_world(&cfg, &q, 16384);
    for (size_t i = 0; i < sizeof(gaps) / sizeof(gaps[0]); i++) {
        CHECK(world_post(w, &w->flow[0], 16384, true, true));
        world_kick(w, 0);
        CHECK(case_finish(w, 10 * MRC_MSEC));
        const uint64_t steps = w->steps;
        CHECK(world_run(w, w->now + gaps[i]));
        CHECK(w->steps - steps < 20); /* nothing to do: nothing done */
    }
    CHECK(world_post(w, &w->flow[0], 16384, true, true));
    world_kick(w, 0);
    CHECK(case_finish(w, 10 * MRC_MSEC));
    CHECK_EQ(w->flow[0].imm_taken, 3);
    CHECK_EQ(w->flow[0].rtx_packets, 0);
    case_end(w);
}

TEST(time__all_sacks_lost_transport_acks_carry_on)
{
    struct world_cfg cfg = four_planes(13);
    const struct world_qp_cfg q = bulk_qp();
    cfg.link.loss_ppm = 1000000;
    cfg.link.fault_kinds = WORLD_KIND_SACK;
    struct world *const w = case_world(&cfg, &q, 16384);
    world_load(w, 0, &(struct world_load){.messages = 200, .bytes_max = 16384});
    CHECK(case_finish(w, 5 * MRC_SEC));
    CHECK_EQ(w->flow[0].completed, 200);
    case_end(w);
}
