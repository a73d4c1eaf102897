/* SPDX-License-Identifier: BSD-2-Clause */
/* Named scenarios: sequence numbers, loss, order, windows. Paths and time: test_world_paths.c;
 * memory and ends: test_world_ends.c. */
#include "world_case.h"

enum { CONNECT_BYTES = 20000 };

/* One connection on the default network. */
static struct world *one(uint64_t seed, const struct world_qp_cfg *q, uint32_t bytes_max)
{
    const struct world_cfg cfg = world_defaults(seed);
    return case_world(&cfg, q, bytes_max);
}

/* ---- filters ---- */

struct lose {
    uint8_t seen[(1u << 24) / 8]; /* PSNs lost once */
    uint32_t kinds;
    uint32_t left;      /* how many still to lose */
    uint32_t first_psn; /* data: only from here on; UINT32_MAX: anything */
};

/* Loses the first packet of these kinds for each PSN, `left` times in all. */
static bool lose_once(struct world *w, const struct world_hop *hop, mrc_ns *extra)
{
    struct lose *const l = w->filter_arg;
    const uint32_t psn = hop->pkt->psn;
    (void)extra;
    if ((hop->kind & l->kinds) == 0 || l->left == 0 || hop->from != 0)
        return true;
    if (l->first_psn != UINT32_MAX && psn != l->first_psn)
        return true;
    if (((l->seen[psn / 8] >> (psn % 8)) & 1) != 0)
        return true;
    l->seen[psn / 8] |= (uint8_t)(1u << (psn % 8));
    l->left--;
    return false;
}

static bool lose_acks(struct world *w, const struct world_hop *hop, mrc_ns *extra)
{
    struct lose *const l = w->filter_arg;
    (void)extra;
    if ((hop->kind & l->kinds) == 0 || l->left == 0)
        return true;
    l->left--;
    return false;
}

/* ---- sequence numbers ---- */

TEST(world__clean_transfer)
{
    const struct world_qp_cfg q = world_qp_defaults();
    const struct world_load load = {
        .messages = 2000, .bytes_max = CONNECT_BYTES, .imm_percent = 30, .unsignaled_percent = 30};
    struct world *const w = one(1, &q, CONNECT_BYTES);
    world_load(w, 0, &load);
    world_load(w, 1, &load);
    CHECK(case_finish(w, 10 * MRC_SEC));
    for (int i = 0; i < 2; i++) {
        const struct mrc_qp_stats s = world_stats(w, &w->flow[i]);
        CHECK_EQ(w->flow[i].completed, 2000);
        CHECK(w->flow[i].imm_taken > 400);
        CHECK_EQ(w->flow[i].rtx_packets, 0);
        CHECK_EQ(s.packets_retransmitted, 0);
        CHECK_EQ(s.timeouts, 0);
        CHECK_EQ(s.packets_sent, w->flow[i].data_packets);
    }
    case_end(w);
}

TEST(world__same_seed_same_trace)
{
    uint64_t hash[2];
    for (int k = 0; k < 2; k++) {
        const struct world_qp_cfg q = world_qp_defaults();
        const struct world_load load = {.messages = 200, .bytes_max = 5000, .imm_percent = 50};
        struct world *const w = one(5, &q, 5000);
        for (uint16_t i = 0; i < w->cfg.paths; i++)
            world_link(w, 0, 1, i)->cfg.loss_ppm = 50000;
        world_load(w, 0, &load);
        CHECK(case_finish(w, 10 * MRC_SEC));
        hash[k] = w->hash;
        case_end(w);
    }
    CHECK_EQ(hash[0], hash[1]);
}

TEST(world__every_data_packet_lost_once_then_the_acks) /* FR 8 */
{
    static struct lose l;
    const struct world_qp_cfg q = world_qp_defaults();
    memset(&l, 0, sizeof(l));
    l.kinds = WORLD_KIND_DATA;
    l.left = 1000000;
    l.first_psn = UINT32_MAX;
    struct world *const w = one(2, &q, CONNECT_BYTES);
    w->filter = lose_once;
    w->filter_arg = &l;
    for (int i = 0; i < 20; i++)
        CHECK(world_post(w, &w->flow[0], 10000, i % 3 == 0, true));
    world_kick(w, 0);
    world_run(w, w->now + 50 * MRC_USEC);
    CHECK(case_finish(w, 5 * MRC_SEC));
    CHECK_EQ(w->flow[0].completed, 20);
    l.kinds = WORLD_KIND_ACK | WORLD_KIND_SACK;
    l.left = 40;
    w->filter = lose_acks;
    for (int i = 0; i < 20; i++)
        CHECK(world_post(w, &w->flow[0], 10000, i % 3 == 0, true));
    world_kick(w, 0);
    CHECK(case_finish(w, 5 * MRC_SEC));
    CHECK_EQ(w->flow[0].completed, 40);
    case_end(w);
}

TEST(world__last_packet_lost)
{
    static struct lose l;
    const struct world_qp_cfg q = world_qp_defaults();
    memset(&l, 0, sizeof(l));
    l.kinds = WORLD_KIND_DATA;
    l.left = 1;
    l.first_psn = q.psn_ab + 9;
    struct world *const w = one(3, &q, CONNECT_BYTES);
    w->filter = lose_once;
    w->filter_arg = &l;
    CHECK(world_post(w, &w->flow[0], 10 * 1024, true, true));
    world_kick(w, 0);
    CHECK(case_finish(w, MRC_SEC));
    CHECK_EQ(l.left, 0);
    CHECK_EQ(w->flow[0].rtx_packets, 1);
    CHECK_EQ(w->flow[0].imm_taken, 1);
    case_end(w);
}

TEST(world__transport_ack_lost) /* H16 */
{
    static struct lose l;
    const struct world_qp_cfg q = world_qp_defaults();
    memset(&l, 0, sizeof(l));
    l.kinds = WORLD_KIND_ACK;
    l.left = 3;
    struct world *const w = one(4, &q, CONNECT_BYTES);
    w->filter = lose_acks;
    w->filter_arg = &l;
    CHECK(world_post(w, &w->flow[0], 3000, true, true));
    world_kick(w, 0);
    CHECK(case_finish(w, MRC_SEC));
    CHECK_EQ(l.left, 0);
    CHECK_EQ(w->flow[0].completed, 1);
    CHECK_EQ(w->flow[0].imm_taken, 1);
    CHECK_EQ(world_stats_peer(w, &w->flow[0]).packets_received, 3);
    case_end(w);
}

/* Which place the n-th packet of a message of three takes in the order of arrival. */
static bool delay_by_order(struct world *w, const struct world_hop *hop, mrc_ns *extra)
{
    const uint8_t *const order = w->filter_arg;
    const uint32_t n = (hop->pkt->psn - w->flow[0].qp.psn_ab) % 3;
    if (hop->kind == WORLD_KIND_DATA && hop->from == 0)
        *extra = order[n] * 30 * MRC_USEC;
    return true;
}

TEST(world__first_middle_last_in_every_order) /* FR 7 */
{
    static const uint8_t orders[6][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2},
                                         {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
    for (int k = 0; k < 6; k++)
        for (int imm = 0; imm < 2; imm++) {
            uint8_t order[3];
            struct world_qp_cfg q = world_qp_defaults();
            q.train_max = 1; /* three paths: on one of them order would prove a loss (B.10) */
            struct world_cfg cfg = world_defaults(6);
            cfg.cc.base_rtt_ns = 200 * MRC_USEC; /* the order is in the network, and known */
            struct world *const w = case_world(&cfg, &q, CONNECT_BYTES);
            memcpy(order, orders[k], 3);
            w->filter = delay_by_order;
            w->filter_arg = order;
            CHECK(world_post(w, &w->flow[0], 3 * 1024 - 5, imm != 0, true));
            world_kick(w, 0);
            CHECK(case_finish(w, MRC_SEC));
            CHECK_EQ(w->flow[0].completed, 1);
            CHECK_EQ(w->flow[0].imm_taken, imm);
            CHECK_EQ(w->flow[0].data_packets, 3);
            case_end(w);
        }
}

TEST(world__psn_wraps_under_loss_and_reordering) /* FR 9 */
{
    for (uint64_t seed = 100; seed < 130; seed++) {
        struct world_qp_cfg q = world_qp_defaults();
        const struct world_load load = {.messages = 100, .bytes_max = 8000, .imm_percent = 30};
        struct world_cfg cfg = world_defaults(seed);
        q.psn_ab = 0xFFFFF0;
        q.psn_ba = 0xFFFF80;
        q.exp_cnt = 25;
        cfg.link.loss_ppm = 30000;
        cfg.link.jitter_ppm = 300000;
        cfg.link.jitter_ns = 100 * MRC_USEC;
        struct world *const w = case_world(&cfg, &q, 8000);
        world_load(w, 0, &load);
        world_load(w, 1, &load);
        CHECK(case_finish(w, 20 * MRC_SEC));
        CHECK(w->flow[0].psn_next.v < 0x10000);
        case_end(w);
    }
}

TEST(world__msn_and_rqmsn_wrap) /* FR 9 */
{
    const struct world_qp_cfg q = world_qp_defaults();
    const struct world_load load = {.messages = 66000, .bytes_max = 0, .imm_percent = 100};
    struct world_cfg cfg = world_defaults(7);
    cfg.link.loss_ppm = 1000;
    struct world *const w = case_world(&cfg, &q, 0);
    world_load(w, 0, &load);
    CHECK(case_finish(w, 60 * MRC_SEC));
    CHECK_EQ(w->flow[0].imm_taken, 66000);
    case_end(w);
}

TEST(world__in_order_traffic_across_the_wrap_is_never_out_of_order) /* FR 14 */
{
    struct world_qp_cfg q = world_qp_defaults();
    struct world_cfg cfg = world_defaults(8);
    const struct world_load load = {.messages = 200, .bytes_max = 2000};
    q.psn_ab = 0xFFFFC0;
    cfg.paths = 1;
    cfg.planes = 1;
    struct world *const w = case_world(&cfg, &q, 2000);
    world_load(w, 0, &load);
    CHECK(case_finish(w, 5 * MRC_SEC));
    CHECK_EQ(world_stats_peer(w, &w->flow[0]).ooo_received, 0);
    CHECK_EQ(world_stats_peer(w, &w->flow[0]).duplicates_received, 0);
    case_end(w);
}

/* ---- windows ---- */

TEST(world__message_of_fifty_windows_under_loss) /* FR 1; the world checks each PSN against MPR */
{
    struct world_qp_cfg q = world_qp_defaults();
    struct world_cfg cfg = world_defaults(9);
    const uint32_t length = 50 * 128 * 256;
    q.depth = 2;
    q.max_wimm = 2;
    q.mtu = 256;
    q.mpr = 1;
    cfg.link.loss_ppm = 20000;
    struct world *const w = case_world(&cfg, &q, length);
    CHECK(world_post(w, &w->flow[0], length, true, true));
    world_kick(w, 0);
    CHECK(case_finish(w, 20 * MRC_SEC));
    CHECK_EQ(w->flow[0].completed, 1);
    case_end(w);
}

TEST(world__sender_a_window_ahead_of_the_responder_makes_progress) /* FR 2 */
{
    struct world_qp_cfg q = world_qp_defaults();
    q.mpr = 4;
    q.mpr_dest = 1;
    struct world *const w = one(10, &q, 200 * 1024);
    /* Hold the first packet back, so that the window of the responder cannot move. */
    static struct lose l;
    memset(&l, 0, sizeof(l));
    l.kinds = WORLD_KIND_DATA;
    l.left = 1;
    l.first_psn = q.psn_ab;
    w->filter = lose_once;
    w->filter_arg = &l;
    for (int i = 0; i < 10; i++)
        CHECK(world_post(w, &w->flow[0], 200 * 1024, false, true));
    world_kick(w, 0);
    CHECK(case_finish(w, 5 * MRC_SEC));
    CHECK_EQ(w->flow[0].completed, 10);
    CHECK(mrc_engine_drops(w->host[1].e, MRC_DROP_PSN_WINDOW) > 0);
    CHECK(world_stats(w, &w->flow[0]).nacks_received > 0);
    case_end(w);
}

/* Delays one PSN until all others the window allows have arrived. */
static bool delay_first(struct world *w, const struct world_hop *hop, mrc_ns *extra)
{
    if (hop->kind == WORLD_KIND_DATA && hop->from == 0 && !hop->pkt->rtx &&
        hop->pkt->psn == w->flow[0].qp.psn_ab)
        *extra = 3 * MRC_MSEC;
    return true;
}

TEST(world__displacement_of_a_whole_window_is_placed) /* FR 12 */
{
    struct world_qp_cfg q = world_qp_defaults();
    q.timeout = 16; /* 67 ms: the timer is not what is tested */
    struct world_cfg cfg = world_defaults(11);
    cfg.paths = 64;
    struct world *const w = case_world(&cfg, &q, 2 * 1024 * 1024 / 64);
    w->filter = delay_first;
    for (int i = 0; i < 60; i++)
        CHECK(world_post(w, &w->flow[0], 32 * 1024, i == 59, true));
    world_kick(w, 0);
    CHECK(case_finish(w, 5 * MRC_SEC));
    CHECK_EQ(w->flow[0].completed, 60);
    CHECK_EQ(mrc_engine_drops(w->host[1].e, MRC_DROP_PSN_WINDOW), 0);
    CHECK_EQ(mrc_engine_drops(w->host[1].e, MRC_DROP_PSN_STALE), 0);
    case_end(w);
}

static void set_mpr_dest(struct world *w, uint16_t mpr)
{
    const struct mrc_qp_attr a = {.mpr_dest = mpr};
    CHECK_EQ(mrc_qp_modify(w->host[1].e, w->flow[0].qpn_to, &a, MRC_QP_MPR_DEST, w->now), MRC_OK);
}

TEST(world__dynamic_mpr_changes_under_way) /* FR 1, B.12 */
{
    struct world_cfg cfg = world_defaults(14);
    struct world_qp_cfg q = world_qp_defaults();
    const struct world_load load = {.messages = 100000, .bytes_min = 9000, .bytes_max = 9000};
    q.dynamic_mpr = true;
    q.mpr = 8;
    cfg.link.delay_ns = 100 * MRC_USEC;
    struct world *const w = case_world(&cfg, &q, 9000);
    struct world_flow *const f = &w->flow[0];
    world_load(w, 0, &load);
    CHECK(world_run(w, w->now + 5 * MRC_MSEC));
    CHECK(world_stats(w, f).outstanding > 256); /* uses more than what is to come */
    set_mpr_dest(w, 2);
    CHECK(world_run(w, w->now + MRC_MSEC)); /* what was on its way is done with */
    CHECK_EQ(f->window, 256);               /* told, and the world insists */
    const uint64_t slow = f->data_packets;
    CHECK(world_run(w, w->now + 5 * MRC_MSEC));
    const uint64_t slow_end = f->data_packets;
    set_mpr_dest(w, 8);
    CHECK(world_run(w, w->now + MRC_MSEC));
    const uint64_t fast = f->data_packets;
    CHECK(world_run(w, w->now + 5 * MRC_MSEC));
    CHECK(f->data_packets - fast > 2 * (slow_end - slow));
    f->load.messages = f->posted;
    CHECK(case_finish(w, MRC_SEC));
    CHECK_EQ(mrc_engine_drops(w->host[1].e, MRC_DROP_PSN_STALE), 0);
    case_end(w);
}

/* ---- duplicates, corruption, trims ---- */

TEST(world__trimmed_packets_are_refused_and_sent_again) /* B.7 */
{
    for (int lasthop = 0; lasthop < 2; lasthop++) {
        struct world_cfg cfg = world_defaults(15);
        struct world_qp_cfg q = world_qp_defaults();
        const struct world_load load = {
            .messages = 300, .bytes_max = CONNECT_BYTES, .imm_percent = 20};
        q.timeout = 16; /* 67 ms: not what repairs */
        cfg.link.queue_bytes = 30000;
        cfg.link.trim_bytes = 128;
        cfg.trim_dscp = lasthop != 0 ? WORLD_DSCP_TRIMMED_LASTHOP : WORLD_DSCP_TRIMMED;
        struct world *const w = case_world(&cfg, &q, CONNECT_BYTES);
        world_load(w, 0, &load);
        CHECK(case_finish(w, 5 * MRC_SEC));
        CHECK_EQ(w->flow[0].completed, 300);
        CHECK(world_stats_peer(w, &w->flow[0]).trims_received > 20);
        CHECK(world_stats(w, &w->flow[0]).nacks_received > 20);
        CHECK_EQ(world_stats(w, &w->flow[0]).timeouts, 0);
        for (uint16_t i = 0; i < cfg.paths; i++) /* trimmed is congested, not broken (D.5) */
            CHECK(mrc_path_state(w->host[0].table[1], i) != MRC_EV_ASSUMED_BAD);
        case_end(w);
    }
}

TEST(world__duplicated_immediates_complete_once) /* FR 54 */
{
    struct world_cfg cfg = world_defaults(12);
    const struct world_qp_cfg q = world_qp_defaults();
    const struct world_load load = {.messages = 500, .bytes_max = 3000, .imm_percent = 100};
    cfg.link.dup_ppm = 500000;
    cfg.link.jitter_ppm = 500000;
    cfg.link.jitter_ns = 200 * MRC_USEC;
    struct world *const w = case_world(&cfg, &q, 3000);
    world_load(w, 0, &load);
    CHECK(case_finish(w, 20 * MRC_SEC));
    CHECK_EQ(w->flow[0].imm_taken, 500);
    CHECK(world_stats_peer(w, &w->flow[0]).duplicates_received > 100);
    case_end(w);
}

TEST(world__corrupted_packets_are_dropped_and_counted)
{
    struct world_cfg cfg = world_defaults(13);
    const struct world_qp_cfg q = world_qp_defaults();
    const struct world_load load = {.messages = 300, .bytes_max = 5000, .imm_percent = 20};
    cfg.link.corrupt_ppm = 100000;
    struct world *const w = case_world(&cfg, &q, 5000);
    world_load(w, 0, &load);
    CHECK(case_finish(w, 20 * MRC_SEC));
    CHECK_EQ(w->flow[0].completed, 300);
    CHECK(mrc_engine_drops(w->host[1].e, MRC_DROP_ICRC) > 30);
    case_end(w);
}

TEST(world__in_flight_returns_to_zero_when_sacks_race_retransmissions) /* FR 19, 27 */
{
    for (uint64_t seed = 200; seed < 220; seed++) {
        struct world_cfg cfg = world_defaults(seed);
        const struct world_qp_cfg q = world_qp_defaults();
        const struct world_load load = {.messages = 200, .bytes_max = 10000};
        cfg.cc.max_cwnd_bytes = 12000;
        cfg.link.jitter_ppm = 400000;
        cfg.link.jitter_ns = 300 * MRC_USEC;
        struct world *const w = case_world(&cfg, &q, 10000);
        world_load(w, 0, &load);
        CHECK(case_finish(w, 20 * MRC_SEC)); /* checks outstanding and in-flight at the end */
        case_end(w);
    }
}
