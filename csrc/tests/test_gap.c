/* SPDX-License-Identifier: BSD-2-Clause */
/* What losses say of paths: the rule by itself, and with whole engines. */
#include <stdlib.h>

#include "world_case.h"

enum { GAP_EVS = 4 };

struct gap_bench {
    struct mrc_path_table *t;
    mrc_ns now;
    struct mrc_rand rand;
};

static struct gap_bench gap_open_asking(uint8_t loss, uint8_t successes)
{
    const struct mrc_path_cfg cfg = {.count = GAP_EVS,
                                     .min_active = 1,
                                     .probe_successes = successes,
                                     .event_ring = 64,
                                     .probe_interval_ns = MRC_MSEC,
                                     .probe_interval_max_ns = MRC_SEC,
                                     .probe_timeout_ns = MRC_MSEC,
                                     .seed = 7,
                                     .loss = loss};
    struct mrc_path_entry_cfg entry[GAP_EVS] = {0};
    for (uint32_t i = 0; i < GAP_EVS; i++)
        entry[i] = (struct mrc_path_entry_cfg){.ev = 100 + i, .plane = (uint8_t)(1 + i)};
    struct gap_bench b = {.now = MRC_SEC};
    b.t = mrc_path_init(malloc(mrc_path_size(&cfg)), &cfg, entry, b.now);
    mrc_rand_seed(&b.rand, 11);
    return b;
}

static struct gap_bench gap_open_with(uint8_t loss) { return gap_open_asking(loss, 3); }
static struct gap_bench gap_open(void) { return gap_open_with(MRC_LOSS_COMPARED); }

/* n packets on an entry, of which so many in a million are lost. */
static void gap_send(struct gap_bench *b, uint16_t i, uint32_t n, uint32_t ppm)
{
    for (uint32_t k = 0; k < n; k++) {
        mrc_path_on_sent(b->t, i, 1000, false);
        if (mrc_rand_below(&b->rand, 1000000) < ppm)
            mrc_path_on_gap(b->t, i, b->now, b->now);
        b->now += 1000;
    }
}

static void gap_lose(struct gap_bench *b, uint16_t i, int n)
{
    for (int k = 0; k < n; k++) {
        mrc_path_on_sent(b->t, i, 1000, false);
        mrc_path_on_gap(b->t, i, b->now, b->now);
    }
}

TEST(gap__among_clean_paths_the_fourth_loss_is_a_verdict)
{
    struct gap_bench b = gap_open();
    for (uint16_t i = 0; i < GAP_EVS; i++)
        gap_send(&b, i, 500, 0);
    gap_lose(&b, 2, 3);
    CHECK_EQ(mrc_path_state(b.t, 2), MRC_EV_GOOD);
    gap_lose(&b, 2, 1);
    CHECK_EQ(mrc_path_state(b.t, 2), MRC_EV_ASSUMED_BAD);
    struct mrc_ev_event e;
    CHECK(mrc_path_event_poll(b.t, &e) == 1 && e.ev == 102 && e.reason == MRC_EV_R_LOSS);
    free(b.t);
}

/* The other reading of D.5, as a setting. */
TEST(gap__where_the_first_loss_counts_it_is_a_verdict)
{
    struct gap_bench b = gap_open_with(MRC_LOSS_FIRST);
    for (uint16_t i = 0; i < GAP_EVS; i++)
        gap_send(&b, i, 500, 0);
    gap_lose(&b, 2, 1);
    CHECK_EQ(mrc_path_state(b.t, 2), MRC_EV_ASSUMED_BAD);
    free(b.t);
}

/* Every path loses one in a hundred: that says nothing of any of them. */
TEST(gap__the_same_loss_everywhere_is_no_verdict)
{
    struct gap_bench b = gap_open();
    for (uint32_t round = 0; round < 4000; round++)
        for (uint16_t i = 0; i < GAP_EVS; i++)
            gap_send(&b, i, 10, 10000);
    for (uint16_t i = 0; i < GAP_EVS; i++)
        CHECK_EQ(mrc_path_state(b.t, i), MRC_EV_GOOD);
    free(b.t);
}

TEST(gap__a_path_that_loses_more_than_the_others_leaves)
{
    struct gap_bench b = gap_open();
    uint32_t round = 0;
    for (; round < 1000; round++) /* a long time alike */
        for (uint16_t i = 0; i < GAP_EVS; i++)
            gap_send(&b, i, 10, 10000);
    for (round = 0; round < 1000 && mrc_path_state(b.t, 1) == MRC_EV_GOOD; round++)
        for (uint16_t i = 0; i < GAP_EVS; i++)
            gap_send(&b, i, 10, i == 1 ? 50000 : 10000);
    CHECK(round < 250); /* 2500 packets of its own: what it was before is forgotten by then */
    CHECK_EQ(mrc_path_active(b.t), GAP_EVS - 1);
    free(b.t);
}

/* A burst of losses on all paths, as when a queue they share overflows. */
TEST(gap__loss_that_begins_everywhere_at_once_is_no_verdict)
{
    struct gap_bench b = gap_open();
    for (uint16_t i = 0; i < GAP_EVS; i++)
        gap_send(&b, i, 100000, 0);
    for (int k = 0; k < 200; k++)
        for (uint16_t i = 0; i < GAP_EVS; i++)
            gap_lose(&b, i, 1);
    CHECK_EQ(mrc_path_active(b.t), GAP_EVS);
    free(b.t);
}

/* Silence is another matter: no later packet has come through. */
TEST(gap__a_loss_without_a_sign_of_life_is_a_verdict_at_once)
{
    struct gap_bench b = gap_open();
    mrc_path_on_sent(b.t, 0, 1000, false);
    mrc_path_on_loss(b.t, 0, MRC_EV_R_LOSS, b.now, b.now);
    CHECK_EQ(mrc_path_state(b.t, 0), MRC_EV_ASSUMED_BAD);
    free(b.t);
}

/* ---- how long it stays out ---- */

/* Answers to all probes until the entry is back: how many. */
static uint32_t gap_heal(struct gap_bench *b, uint16_t i)
{
    uint32_t n = 0;
    for (uint32_t ms = 0; ms < 1000 && mrc_path_state(b->t, i) == MRC_EV_ASSUMED_BAD; ms++) {
        uint16_t id;
        b->now += MRC_MSEC;
        if (mrc_path_probe_due(b->t, &id, b->now) != i)
            continue;
        b->now += 100 * MRC_USEC;
        mrc_path_on_probe(b->t, id, 0, b->now);
        n++;
    }
    return n;
}

TEST(gap__a_path_that_relapses_is_asked_twice_as_often_each_time)
{
    static const uint32_t want[] = {3, 6, 12, 24, 48, 96, 192, 192};
    struct gap_bench b = gap_open();
    for (uint16_t i = 0; i < GAP_EVS; i++)
        gap_send(&b, i, 500, 0);
    for (size_t k = 0; k < sizeof want / sizeof want[0]; k++) {
        gap_lose(&b, 2, 4);
        CHECK_EQ(mrc_path_state(b.t, 2), MRC_EV_ASSUMED_BAD);
        CHECK_EQ(gap_heal(&b, 2), want[k]);
    }
    free(b.t);
}

/* However many are asked for: no more than can be counted, or the path would never return. */
TEST(gap__no_more_answers_than_can_be_counted)
{
    static const uint32_t want[] = {100, 200, 255, 255};
    struct gap_bench b = gap_open_asking(MRC_LOSS_COMPARED, 100);
    for (uint16_t i = 0; i < GAP_EVS; i++)
        gap_send(&b, i, 500, 0);
    for (size_t k = 0; k < sizeof want / sizeof want[0]; k++) {
        gap_lose(&b, 2, 4);
        CHECK_EQ(gap_heal(&b, 2), want[k]);
    }
    free(b.t);
}

TEST(gap__what_was_lost_before_it_healed_does_not_count)
{
    struct gap_bench b = gap_open();
    for (uint16_t i = 0; i < GAP_EVS; i++)
        gap_send(&b, i, 500, 0);
    const mrc_ns before = b.now;
    gap_lose(&b, 2, 4);
    gap_heal(&b, 2);
    for (int k = 0; k < 8; k++)
        mrc_path_on_gap(b.t, 2, before, b.now);
    gap_lose(&b, 2, 3);
    CHECK_EQ(mrc_path_state(b.t, 2), MRC_EV_GOOD);
    gap_lose(&b, 2, 1);
    CHECK_EQ(mrc_path_state(b.t, 2), MRC_EV_ASSUMED_BAD);
    free(b.t);
}

TEST(gap__a_path_that_did_well_since_is_asked_three_times_again)
{
    struct gap_bench b = gap_open();
    for (uint16_t i = 0; i < GAP_EVS; i++)
        gap_send(&b, i, 500, 0);
    for (int k = 0; k < 3; k++) {
        gap_lose(&b, 2, 4);
        gap_heal(&b, 2);
    }
    gap_send(&b, 2, 10000, 0);
    gap_lose(&b, 2, 12);
    CHECK_EQ(mrc_path_state(b.t, 2), MRC_EV_ASSUMED_BAD);
    CHECK_EQ(gap_heal(&b, 2), 3);
    free(b.t);
}

/* A path that was cut now and then is not a lossy one: it is back as soon as it answers. */
TEST(gap__after_silence_three_answers_are_enough_each_time)
{
    struct gap_bench b = gap_open();
    for (int k = 0; k < 6; k++) {
        mrc_path_on_sent(b.t, 0, 1000, false);
        mrc_path_on_loss(b.t, 0, MRC_EV_R_LOSS, b.now, b.now);
        CHECK_EQ(mrc_path_state(b.t, 0), MRC_EV_ASSUMED_BAD);
        CHECK_EQ(gap_heal(&b, 0), 3);
    }
    free(b.t);
}

/* The letter of S8: each loss is a verdict, and says nothing of how much the path loses. */
TEST(gap__where_nothing_is_compared_three_answers_are_enough_each_time)
{
    struct gap_bench b = gap_open_with(MRC_LOSS_FIRST);
    for (int k = 0; k < 6; k++) {
        gap_lose(&b, 0, 1);
        CHECK_EQ(mrc_path_state(b.t, 0), MRC_EV_ASSUMED_BAD);
        CHECK_EQ(gap_heal(&b, 0), 3);
    }
    free(b.t);
}

/* ---- four paths of 500 Mbit/s, NSCC, default settings of the paths ---- */

struct gap_run {
    double bits;   /* delivered in the last three quarters */
    double active; /* paths, mean */
    double cwnd;
};

static struct gap_run gap_world(uint32_t all_ppm, uint32_t one_ppm, bool known)
{
    const mrc_ns length = 400 * MRC_MSEC;
    struct world_cfg cfg = world_defaults(3);
    cfg.paths = GAP_EVS;
    cfg.turn_ns = 20 * MRC_USEC;
    cfg.link = (struct sim_link_cfg){.rate_bps = 500000000,
                                     .delay_ns = 100 * MRC_USEC,
                                     .queue_bytes = 96000,
                                     .loss_ppm = all_ppm,
                                     .fault_kinds = WORLD_KIND_DATA};
    cfg.cc = (struct mrc_cc_cfg){.kind = MRC_CC_NSCC, .mtu_bytes = 4096};
    if (known) {
        cfg.cc.link_bps = 2000000000;
        cfg.cc.base_rtt_ns = 307 * MRC_USEC;
    }
    struct world *const w = world_new(&cfg);
    if (one_ppm != 0)
        world_link(w, 0, 1, 1)->cfg.loss_ppm = one_ppm;
    struct world_qp_cfg q = world_qp_defaults();
    q.mtu = 4096;
    q.mpr = 16;
    q.timeout = 12;
    q.exp_cnt = 25;
    const uint32_t f = world_connect(w, &q, 65536);
    const struct world_load bulk = {.messages = UINT64_MAX, .bytes_min = 65536, .bytes_max = 65536};
    world_load(w, f, &bulk);
    world_run(w, cfg.start_ns + length / 4);
    const uint64_t before = world_stats_peer(w, &w->flow[f]).bytes_received;
    struct gap_run r = {0, 0, 0};
    for (uint32_t i = 1; i <= 300; i++) {
        world_run(w, cfg.start_ns + length / 4 + length / 400 * i);
        r.active += mrc_path_active(w->host[0].table[1]) / 300.0;
        r.cwnd += (double)mrc_cc_cwnd(w->host[0].cc[1]) / 300.0;
    }
    r.bits = 8.0 * (double)(world_stats_peer(w, &w->flow[f]).bytes_received - before);
    if (getenv("CURVES") != NULL)
        printf("loss %u ppm, on one path %u, %s: %.3f Gbit/s, %.2f paths, cwnd %.0f\n", all_ppm,
               one_ppm, known ? "fabric known" : "fabric not known", r.bits / 0.3e9, r.active,
               r.cwnd);
    case_end(w);
    return r;
}

static void gap_check_even_loss(bool known)
{
    const struct gap_run clean = gap_world(0, 0, known);
    const struct gap_run lossy = gap_world(10000, 0, known);
    CHECK(clean.bits > 0.9 * 0.3 * 2e9);
    CHECK(lossy.bits >= 0.95 * clean.bits);
    CHECK(lossy.active > 3.95);
    CHECK(lossy.cwnd > 0.9 * clean.cwnd); /* where nobody knows the fabric, queues overflow too */
}

TEST(gap_world__one_percent_on_all_paths_costs_five_at_most) { gap_check_even_loss(true); }
TEST(gap_world__nor_where_nobody_knows_the_fabric) { gap_check_even_loss(false); }

TEST(gap_world__five_percent_on_one_path_and_it_is_left)
{
    const struct gap_run r = gap_world(0, 50000, true);
    CHECK(r.active < 3.5);
    CHECK(r.bits > 0.3 * 1.4e9);
}
