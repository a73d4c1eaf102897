/* SPDX-License-Identifier: BSD-2-Clause */
#include "t.h"

#include "../sim/sim_link.h"

static const struct sim_packet pkt = {.len_bytes = 1000, .kind = 1, .ect = true};

TEST(submit__rate_and_delay_add_up)
{
    const struct sim_link_cfg cfg = {.rate_bps = 8000000000, .delay_ns = 500};
    struct sim_link l;
    struct sim_delivery d[SIM_COPIES_MAX];
    sim_link_init(&l, &cfg, 1);
    CHECK_EQ(sim_link_submit(&l, &pkt, 100, d), 1);
    CHECK_EQ(d[0].at, 100 + 1000 + 500);
    CHECK_EQ(sim_link_submit(&l, &pkt, 100, d), 1); /* behind the first */
    CHECK_EQ(d[0].at, 100 + 2000 + 500);
    CHECK_EQ(sim_link_backlog(&l, 100), 2000);
    CHECK_EQ(sim_link_submit(&l, &pkt, 10000, d), 1); /* queue empty again */
    CHECK_EQ(d[0].at, 10000 + 1000 + 500);
}

TEST(submit__mask_rotates_over_the_struck_kinds)
{
    const struct sim_link_cfg cfg = {.loss_mask = 0x5, .fault_kinds = 1};
    const struct sim_packet other = {.len_bytes = 10, .kind = 2};
    struct sim_link l;
    struct sim_delivery d[SIM_COPIES_MAX];
    sim_link_init(&l, &cfg, 1);
    for (int round = 0; round < 2; round++)
        for (int i = 0; i < 64; i++) {
            CHECK_EQ(sim_link_submit(&l, &other, 0, d), 1);
            CHECK_EQ(sim_link_submit(&l, &pkt, 0, d), i == 0 || i == 2 ? 0 : 1);
        }
    CHECK_EQ(l.stats.lost, 4);
}

TEST(submit__seeded_rates_strike_about_as_often_as_said)
{
    const struct sim_link_cfg cfg = {.loss_ppm = 200000, .dup_ppm = 100000, .corrupt_ppm = 50000};
    struct sim_link l;
    struct sim_delivery d[SIM_COPIES_MAX];
    sim_link_init(&l, &cfg, 9);
    for (int i = 0; i < 10000; i++)
        sim_link_submit(&l, &pkt, 0, d);
    CHECK(l.stats.lost > 1800 && l.stats.lost < 2200);
    CHECK(l.stats.duplicated > 640 && l.stats.duplicated < 960);
    CHECK(l.stats.corrupted > 300 && l.stats.corrupted < 550);
}

TEST(submit__same_seed_same_fate)
{
    const struct sim_link_cfg cfg = {.rate_bps = 1000000000,
                                     .jitter_ns = 5000,
                                     .jitter_ppm = 300000,
                                     .loss_ppm = 100000,
                                     .dup_ppm = 50000};
    struct sim_link a;
    struct sim_link b;
    sim_link_init(&a, &cfg, 77);
    sim_link_init(&b, &cfg, 77);
    for (mrc_ns t = 0; t < 1000000; t += 700) {
        struct sim_delivery da[SIM_COPIES_MAX];
        struct sim_delivery db[SIM_COPIES_MAX];
        const int n = sim_link_submit(&a, &pkt, t, da);
        CHECK_EQ(sim_link_submit(&b, &pkt, t, db), n);
        for (int i = 0; i < n; i++)
            CHECK_EQ(da[i].at, db[i].at);
    }
}

TEST(submit__marks_between_thresholds)
{
    const struct sim_link_cfg cfg = {
        .rate_bps = 8000000000, .mark_lo_bytes = 3000, .mark_hi_bytes = 6000};
    struct sim_link l;
    struct sim_delivery d[SIM_COPIES_MAX];
    sim_link_init(&l, &cfg, 1);
    for (int i = 0; i < 20; i++) {
        CHECK_EQ(sim_link_submit(&l, &pkt, 0, d), 1);
        CHECK(i > 3 || !d[0].ce);
        CHECK(i < 6 || d[0].ce);
    }
    const struct sim_packet not_ect = {.len_bytes = 1000, .kind = 1};
    CHECK_EQ(sim_link_submit(&l, &not_ect, 0, d), 1);
    CHECK(!d[0].ce);
}

TEST(submit__full_queue_and_cut_lose)
{
    const struct sim_link_cfg cfg = {.rate_bps = 8000000000, .queue_bytes = 2000};
    struct sim_link l;
    struct sim_delivery d[SIM_COPIES_MAX];
    sim_link_init(&l, &cfg, 1);
    for (int i = 0; i < 3; i++)
        CHECK_EQ(sim_link_submit(&l, &pkt, 0, d), 1);
    CHECK_EQ(sim_link_submit(&l, &pkt, 0, d), 0);
    CHECK_EQ(l.stats.overflowed, 1);
    CHECK_EQ(sim_link_submit(&l, &pkt, 5000, d), 1);
    l.cut = true;
    CHECK_EQ(sim_link_submit(&l, &pkt, 10000, d), 0);
    l.cut = false;
    CHECK_EQ(sim_link_submit(&l, &pkt, 20000, d), 1);
}

TEST(submit__what_is_longer_than_the_mtu_vanishes)
{
    const struct sim_link_cfg cfg = {.mtu_bytes = 999};
    struct sim_packet fits = pkt;
    struct sim_link l;
    struct sim_delivery d[SIM_COPIES_MAX];
    fits.len_bytes = 999;
    sim_link_init(&l, &cfg, 1);
    CHECK_EQ(sim_link_submit(&l, &pkt, 0, d), 0);
    CHECK_EQ(sim_link_submit(&l, &fits, 0, d), 1);
    CHECK_EQ(l.stats.too_long, 1);
}

TEST(submit__full_queue_trims_what_may_be_trimmed)
{
    const struct sim_link_cfg cfg = {
        .rate_bps = 8000000000, .delay_ns = 50, .queue_bytes = 2000, .trim_bytes = 128};
    struct sim_packet p = {.len_bytes = 1000, .kind = 1, .trimmable = true};
    struct sim_link l;
    struct sim_delivery d[SIM_COPIES_MAX];
    sim_link_init(&l, &cfg, 1);
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(sim_link_submit(&l, &p, 0, d), 1);
        CHECK(!d[0].trimmed);
    }
    CHECK_EQ(sim_link_submit(&l, &p, 0, d), 1);
    CHECK(d[0].trimmed);
    CHECK_EQ(d[0].at, 128 + 50); /* before the three that wait */
    p.len_bytes = 128;
    CHECK_EQ(sim_link_submit(&l, &p, 0, d), 0);
    p.len_bytes = 1000;
    p.trimmable = false;
    CHECK_EQ(sim_link_submit(&l, &p, 0, d), 0);
    CHECK_EQ(l.stats.trimmed, 1);
    CHECK_EQ(l.stats.overflowed, 2);
}

TEST(corrupt__changes_bits_and_nothing_outside)
{
    for (uint64_t seed = 1; seed < 1000; seed++) {
        uint8_t b[66] = {0};
        sim_corrupt(b + 1, 64, seed);
        CHECK(b[0] == 0 && b[65] == 0);
    }
    uint8_t b[64] = {0};
    uint8_t zero[64] = {0};
    sim_corrupt(b, 64, 5);
    CHECK(memcmp(b, zero, 64) != 0);
}
