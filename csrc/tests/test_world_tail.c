/* SPDX-License-Identifier: BSD-2-Clause */
/* Named scenarios: the last packet or the last answer is lost, a path is dead from the start, and
 * what timestamps change. The local ACK timer is a second everywhere: it must not be needed. */
#include "world_case.h"

enum { PATHS = 16 };
#define ROUND_NS (100 * MRC_USEC)

static struct world *tail_world(uint64_t seed, const struct world_qp_cfg *q, uint32_t bytes_max)
{
    struct world_cfg cfg = world_defaults(seed);
    cfg.paths = PATHS;
    cfg.planes = 4;
    cfg.link.delay_ns = 45 * MRC_USEC;
    cfg.cc.base_rtt_ns = ROUND_NS;
    return case_world(&cfg, q, bytes_max);
}

static struct world_qp_cfg patient(void)
{
    struct world_qp_cfg q = world_qp_defaults();
    q.timeout = 20;
    return q;
}

struct drop {
    uint32_t kinds;
    uint32_t left;
    uint32_t psn; /* data: this one */
};

static bool drop_some(struct world *w, const struct world_hop *hop, mrc_ns *extra)
{
    struct drop *const d = w->filter_arg;
    (void)extra;
    if ((hop->kind & d->kinds) == 0 || d->left == 0)
        return true;
    if (hop->kind == WORLD_KIND_DATA && hop->pkt->psn != d->psn)
        return true;
    d->left--;
    return false;
}

/* One message; how long until it completes, in round trips of an empty network. */
static double rounds(struct world *w, uint32_t length)
{
    const mrc_ns start = w->now;
    CHECK(world_post(w, &w->flow[0], length, true, true));
    world_kick(w, 0);
    CHECK(case_finish(w, 2 * MRC_SEC));
    CHECK_EQ(world_stats(w, &w->flow[0]).timeouts, 0);
    return (double)(w->flow[0].last_done_ns - start) / (double)ROUND_NS;
}

/* B.11. A probe leaves 2 round trips after the last answer; one later what is lost is known, and
 * one after that it has arrived. */
TEST(tail__a_lost_last_packet_costs_round_trips_not_a_timeout)
{
    for (uint32_t packets = 1; packets <= 40; packets += 3) {
        for (int warm = 0; warm < 2; warm++) {
            const struct world_qp_cfg q = patient();
            struct drop d = {.kinds = WORLD_KIND_DATA, .left = 1};
            struct world *const w = tail_world(packets, &q, 40 * 1024);
            if (warm != 0)
                CHECK(rounds(w, 40 * 1024) < 3);
            d.psn = mrc_psn_add(w->flow[0].psn_next, (int32_t)packets - 1).v;
            w->filter = drop_some;
            w->filter_arg = &d;
            CHECK(rounds(w, packets * 1024) < 5.5);
            CHECK_EQ(d.left, 0);
            CHECK_EQ(w->flow[0].rtx_packets, 1);
            case_end(w);
        }
    }
}

TEST(tail__lost_last_answers_cost_round_trips_not_a_timeout) /* B.11, H16 */
{
    static const uint32_t kinds[] = {WORLD_KIND_SACK, WORLD_KIND_ACK,
                                     WORLD_KIND_SACK | WORLD_KIND_ACK};
    for (size_t k = 0; k < 3; k++) {
        const struct world_qp_cfg q = patient();
        struct drop d = {.kinds = kinds[k]};
        struct world *const w = tail_world(50 + k, &q, 40 * 1024);
        CHECK(rounds(w, 40 * 1024) < 3);
        w->filter = drop_some;
        w->filter_arg = &d;
        d.left = k == 2 ? 2 : 1; /* all there is for one packet */
        CHECK(rounds(w, 1024) < 6);
        CHECK(world_stats_peer(w, &w->flow[0]).packets_received == 41);
        case_end(w);
    }
}

/* A path that never carried anything back has no time of its own to be late by, and while others
 * report no probe leaves: before the recovery only the end of the PSN window brought it to light.
 */
TEST(recovery__a_path_dead_from_the_start_is_found_in_the_flow) /* B.10, ADR 70 */
{
    mrc_ns took[2];
    for (int k = 0; k < 2; k++) {
        struct world_cfg cfg = world_defaults(60);
        struct world_qp_cfg q = patient();
        q.mpr = 64;
        q.depth = 1024;
        q.recovery = k == 0 ? MRC_RECOVERY_OFF : MRC_RECOVERY_GUARDED;
        cfg.paths = PATHS;
        cfg.link.rate_bps = 1000000000;
        cfg.link.delay_ns = 45 * MRC_USEC;
        cfg.cc.base_rtt_ns = ROUND_NS;
        cfg.cc.max_cwnd_bytes = 256 << 10;
        struct world *const w = case_world(&cfg, &q, 16384);
        const mrc_ns start = w->now;
        world_cut(w, 0, 1, 3, true);
        world_load(w, 0,
                   &(struct world_load){.messages = 2000, .bytes_min = 16384, .bytes_max = 16384});
        while (w->flow[0].completed < 20 && world_run(w, w->now + 10 * MRC_USEC))
            ;
        took[k] = w->now - start;
        CHECK(case_finish(w, 5 * MRC_SEC));
        CHECK_EQ(world_stats(w, &w->flow[0]).timeouts, 0);
        CHECK_EQ(world_stats(w, &w->flow[0]).spurious_retransmits, 0);
        case_end(w);
    }
    CHECK(took[1] < 3 * MRC_MSEC / 2);
    CHECK(took[1] < took[0] / 3);
}

/* Timestamps change the bytes on the wire, and nothing of what is measured: no bias, no truncation,
 * over many turns of the 16-bit counter (field report 80). */
TEST(timestamps__measure_what_the_send_time_table_measures)
{
    struct mrc_path_stats s[2][PATHS];
    for (int k = 0; k < 2; k++) {
        struct world_qp_cfg q = patient();
        q.timestamps = k != 0;
        struct world *const w = tail_world(70, &q, 16384);
        world_load(w, 0,
                   &(struct world_load){.messages = 3000, .bytes_min = 16384, .bytes_max = 16384});
        CHECK(case_finish(w, 5 * MRC_SEC));
        for (uint16_t i = 0; i < PATHS; i++)
            mrc_path_stats(w->host[0].table[1], i, &s[k][i]);
        case_end(w);
    }
    for (uint16_t i = 0; i < PATHS; i++) {
        CHECK(s[0][i].rtt_count > 0 && s[1][i].rtt_count > 0);
        const double table = (double)s[0][i].rtt_sum_ns / (double)s[0][i].rtt_count;
        const double stamp = (double)s[1][i].rtt_sum_ns / (double)s[1][i].rtt_count;
        CHECK(stamp < 1.01 * table && stamp > 0.99 * table); /* the packets are longer */
    }
}
