/* SPDX-License-Identifier: BSD-2-Clause */
/* Settings at the ends of their ranges, and beyond: each is refused at the door, or works. The
 * sanitizers of `make asan` say what a sum or a cast does not bear. */
#include "world_case.h"

enum {
    EXTREMES_ROUNDS = 4000,
    EXTREMES_TABLES = 500,
    EXTREMES_WORLDS = 60,
    EXTREMES_MEM_MAX = 4 << 20,
};
static const uint64_t EXTREMES_WND_MAX = (uint64_t)1 << 45; /* 1.5 BDP of the fastest, farthest */

static struct mrc_rand rnd;

/* One of the ends of so many bits, or anything. */
static uint64_t any(uint32_t bits)
{
    const uint64_t max = UINT64_MAX >> (64 - bits);
    switch (mrc_rand_below(&rnd, 8)) {
    case 0: return 1;
    case 1: return max;
    case 2: return max - 1;
    case 3: return max / 2;
    case 4: return max / 2 + 1;
    case 5: return mrc_rand_next(&rnd) >> mrc_rand_below(&rnd, 64) & max;
    default: return 0;
    }
}
static uint8_t any8(void) { return (uint8_t)any(8); }
static uint16_t any16(void) { return (uint16_t)any(16); }
static uint32_t any32(void) { return (uint32_t)any(32); }
static uint64_t any64(void) { return any(64); }

/* The default, an end of the range, or beyond. */
static uint64_t upto(uint64_t max)
{
    switch (mrc_rand_below(&rnd, 6)) {
    case 0: return 1;
    case 1: return max;
    case 2: return max - mrc_rand_below(&rnd, 1000) % max;
    case 3: return mrc_rand_below(&rnd, 20) == 0 ? any64() : max / 2;
    default: return 0;
    }
}

static double real(double max)
{
    const double zero = 0.0;
    switch (mrc_rand_below(&rnd, 8)) {
    case 0: return max;
    case 1: return 1e-300;
    case 2: return max / 2;
    case 3: return mrc_rand_below(&rnd, 20) == 0 ? zero / zero : 0.0;
    case 4: return mrc_rand_below(&rnd, 20) == 0 ? 1.0 / zero : 0.0;
    case 5: return mrc_rand_below(&rnd, 20) == 0 ? -1.0 : 0.0;
    default: return 0.0;
    }
}

static struct mrc_cc_cfg any_cc(void)
{
    return (struct mrc_cc_cfg){
        .kind = (uint8_t)mrc_rand_below(&rnd, 3),
        .trimming = mrc_rand_below(&rnd, 2) != 0,
        .disable_qa = mrc_rand_below(&rnd, 2) != 0,
        .steady = mrc_rand_below(&rnd, 2) != 0,
        .mtu_bytes = (uint32_t)upto(MRC_MTU_MAX),
        .link_bps = upto(10000000000000),
        .base_rtt_ns = upto(10 * MRC_SEC),
        .target_delay_ns = upto(10 * MRC_SEC),
        .alpha = real(1e18),
        .fi = real(1e12),
        .fi_scale = real(1e6),
        .eta = real(1e12),
        .gamma = real(1.0),
        .max_md_jump = real(1.0),
        .qa_gate = real(32.0),
        .qa_threshold_ns = any64(),
        .max_cwnd_bytes = mrc_rand_below(&rnd, 20) == 0 ? any64() : upto((uint64_t)1 << 40),
        .adjust_bytes = any32(),
        .adjust_period_ns = upto(10 * MRC_SEC),
        .sack_threshold_bytes = any32(),
    };
}

/* A few reports and losses, as far apart as they can be. */
static void drive_cc(struct mrc_cc *cc)
{
    mrc_ns now = 1;
    for (int i = 0; i < 20; i++) {
        const mrc_ns rtt = mrc_rand_below(&rnd, 2) != 0 ? upto(65 * MRC_MSEC) : upto(MRC_SEC);
        const uint32_t bytes = (uint32_t)upto(1 << 23);
        now += mrc_rand_next(&rnd) >> (20 + mrc_rand_below(&rnd, 44));
        mrc_cc_on_send(cc, bytes);
        (void)mrc_cc_can_send(cc, 4192);
        (void)mrc_cc_want_ack(cc);
        const struct mrc_cc_sack s = {.now = now,
                                      .new_bytes = bytes,
                                      .marked = mrc_rand_below(&rnd, 3) == 0,
                                      .rtt_valid = mrc_rand_below(&rnd, 4) != 0,
                                      .restore = mrc_rand_below(&rnd, 4) == 0,
                                      .penalty = (uint8_t)(upto(127) & 127),
                                      .rtt_ns = rtt};
        switch (mrc_rand_below(&rnd, 6)) {
        case 0: mrc_cc_on_loss(cc, bytes, now); break;
        case 1: mrc_cc_on_nack(cc, bytes, bytes % 2 != 0, true, rtt, now); break;
        case 2: mrc_cc_on_go_back(cc, bytes, rtt, now); break;
        case 3: mrc_cc_on_base_rtt(cc, rtt); break;
        default: mrc_cc_on_sack(cc, &s); break;
        }
        if (cc->cfg.kind == MRC_CC_NONE)
            continue;
        CHECK(mrc_cc_cwnd(cc) >= 1 && mrc_cc_cwnd(cc) <= EXTREMES_WND_MAX);
        CHECK(mrc_cc_max_wnd(cc) >= 1 && mrc_cc_max_wnd(cc) <= EXTREMES_WND_MAX);
    }
}

TEST(extremes__controllers)
{
    uint32_t accepted = 0;
    mrc_rand_seed(&rnd, 1);
    for (int i = 0; i < EXTREMES_ROUNDS; i++) {
        const struct mrc_cc_cfg cfg = any_cc();
        struct mrc_cc cc;
        if (mrc_cc_init(&cc, &cfg, 1) != MRC_OK)
            continue;
        accepted++;
        CHECK(mrc_cc_base_rtt(&cc) != 0 && mrc_cc_target_delay(&cc) != 0);
        drive_cc(&cc);
    }
    CHECK(accepted > EXTREMES_ROUNDS / 4);
}

TEST(extremes__a_window_is_bounded)
{
    struct mrc_cc cc;
    for (uint8_t kind = MRC_CC_NONE; kind <= MRC_CC_NSCC; kind++) {
        struct mrc_cc_cfg cfg = {.kind = kind, .max_cwnd_bytes = ((uint64_t)1 << 40) + 1};
        CHECK_EQ(mrc_cc_init(&cc, &cfg, 0), MRC_ERR_INVAL);
        cfg.max_cwnd_bytes = INT64_MAX; /* no double below 2^63 is as large: its cast overflows */
        CHECK_EQ(mrc_cc_init(&cc, &cfg, 0), MRC_ERR_INVAL);
        cfg.max_cwnd_bytes = (uint64_t)1 << 40;
        CHECK_EQ(mrc_cc_init(&cc, &cfg, 0), MRC_OK);
        drive_cc(&cc);
    }
}

/* ---- sizes ---- */

static void *lent(size_t bytes)
{
    void *const mem = aligned_alloc(64, (bytes + 63) & ~(size_t)63);
    return mem != NULL ? memset(mem, 0xA5, bytes) : NULL;
}

TEST(extremes__path_tables)
{
    struct mrc_path_entry_cfg entry[MRC_EV_MAX];
    uint32_t accepted = 0;
    mrc_rand_seed(&rnd, 2);
    for (uint32_t i = 0; i < MRC_EV_MAX; i++)
        entry[i] = (struct mrc_path_entry_cfg){.ev = 0xFFFFFFFF - i, .plane = 1};
    for (int i = 0; i < EXTREMES_TABLES; i++) {
        const struct mrc_path_cfg cfg = {
            .count = any16() & 0x1FFF,
            .min_active = (uint16_t)upto(3),
            .probe_successes = any8(),
            .event_ring = (uint16_t)(1u << mrc_rand_below(&rnd, 16)),
            .probe_interval_ns = upto(3600 * MRC_SEC),
            .probe_interval_max_ns = upto(3600 * MRC_SEC),
            .probe_timeout_ns = upto(3600 * MRC_SEC),
            .reverse_interval_ns = upto(3600 * MRC_SEC),
            .seed = any64(),
            .reverse = (uint8_t)mrc_rand_below(&rnd, 4),
            .event_mask = (uint8_t)upto(8),
            .ev_plane_shift = (uint8_t)upto(31),
            .ev_plane_bits = (uint8_t)upto(8),
            .loss = any8() & 1,
        };
        const size_t size = mrc_path_size(&cfg);
        if (size == 0)
            continue;
        struct mrc_path_table *const t = mrc_path_init(lent(size), &cfg, entry, 1);
        CHECK(t != NULL);
        accepted++;
        mrc_ns now = 1;
        for (int k = 0; k < 20 && t != NULL; k++) {
            const uint16_t e = (uint16_t)mrc_rand_below(&rnd, cfg.count);
            uint16_t id = 0;
            now += mrc_rand_next(&rnd) >> (20 + mrc_rand_below(&rnd, 44));
            mrc_path_on_rtt(t, e, upto(10 * MRC_SEC));
            mrc_path_on_loss(t, e, MRC_EV_R_TIMEOUT, now, now);
            mrc_path_tick(t, now);
            if (mrc_path_probe_due(t, &id, now) != MRC_EV_NONE && k % 2 == 0)
                (void)mrc_path_on_probe(t, id, 0, now + 1);
            now = mrc_max64(now, mrc_min64(mrc_path_deadline(t), now + 7200 * MRC_SEC));
        }
        free(t);
    }
    CHECK(accepted > EXTREMES_TABLES / 50);
}

static void make_qps(struct mrc_engine *e, uint32_t cq)
{
    for (int i = 0; i < 4; i++) {
        const struct mrc_qp_init init = {
            .pd = any32(),
            .send_cq = mrc_rand_below(&rnd, 8) == 0 ? any32() : cq,
            .recv_cq = cq,
            .sq_depth = any32() & 0xFFFF,
            .rq_depth = any32() & 0xFFFF,
            .mpr_max = any16(),
            .max_wimm_dest = any16(),
            .ev_max = any16(),
        };
        const size_t size = mrc_qp_size(&init);
        if (size == 0 || size > EXTREMES_MEM_MAX)
            continue;
        void *const mem = lent(size);
        const int qpn = mrc_qp_create(e, mem, &init);
        CHECK(qpn < 0 || mrc_qp_destroy(e, (uint32_t)qpn) == mem);
        free(mem);
    }
}

/* Mostly few, or no engine would fit. */
static uint32_t few(void)
{
    return mrc_rand_below(&rnd, 8) != 0 ? 1 + mrc_rand_below(&rnd, 40) : any32() & 0x1FFFF;
}

TEST(extremes__engines_and_queue_pairs)
{
    uint32_t accepted = 0;
    mrc_rand_seed(&rnd, 3);
    for (int i = 0; i < EXTREMES_TABLES; i++) {
        const struct mrc_engine_cfg cfg = {
            .seed = any64(),
            .qp_max = few(),
            .mr_max = few(),
            .cq_max = few(),
            .path_max = few(),
            .cc_max = few(),
            .ooo_max = any32(),
            .imm_max = any32(),
            .penalty_percent = (uint8_t)upto(99),
            .icrc_skip_percent = (uint8_t)upto(99),
            .hint_max = any32() & 0xFFF,
            .pool_kib = (uint32_t)upto(4096),
        };
        const size_t size = mrc_engine_size(&cfg);
        if (size == 0 || size > EXTREMES_MEM_MAX)
            continue;
        void *const mem = lent(size);
        struct mrc_engine *const e = mrc_engine_init(mem, &cfg, any64() / 2);
        void *const ring = lent(mrc_cq_size(16));
        CHECK(e != NULL);
        const int cq = e != NULL ? mrc_cq_create(e, ring, 16) : -1;
        if (cq >= 0)
            make_qps(e, (uint32_t)cq);
        accepted++;
        free(ring);
        free(mem);
    }
    CHECK(accepted > EXTREMES_TABLES / 50);
}

/* ---- whole runs ---- */

static uint32_t one_of(uint32_t a, uint32_t b, uint32_t c)
{
    const uint32_t all[] = {a, b, c};
    return all[mrc_rand_below(&rnd, 3)];
}

TEST(extremes__attributes_of_connections)
{
    mrc_rand_seed(&rnd, 4);
    for (uint64_t i = 0; i < EXTREMES_WORLDS; i++) {
        struct world_cfg cfg = world_defaults(i + 1);
        struct world_qp_cfg q = world_qp_defaults();
        struct mrc_cc cc;
        do {
            cfg.cc = any_cc();
            cfg.cc.mtu_bytes = MRC_MTU_MAX;
        } while (mrc_cc_init(&cc, &cfg.cc, 1) != MRC_OK);
        q.timeout = (uint8_t)one_of(0, 14, 24);
        q.linear_cnt = (uint8_t)one_of(0, 3, 7);
        q.exp_cnt = 25;
        q.sack_threshold = one_of(0, 1, UINT32_MAX);
        q.train_max = (uint8_t)one_of(0, 1, MRC_TRAIN_MAX);
        q.mpr = (uint16_t)one_of(1, 8, 64);
        q.mtu = (uint16_t)one_of(256, 1024, 4096);
        cfg.link.loss_ppm = one_of(0, 0, 10000);
        struct world *const w = case_world(&cfg, &q, 20000);
        const struct world_load load = {
            .messages = 20, .bytes_min = 1, .bytes_max = 20000, .imm_percent = 20};
        world_load(w, 0, &load);
        CHECK(case_finish(w, 3600 * MRC_SEC));
        case_end(w);
    }
}
