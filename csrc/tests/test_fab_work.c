/* SPDX-License-Identifier: BSD-2-Clause */
/* The emulated fabric: work, its order, its integrity, and that a run is repeatable. */
#include "fab_rig.h"

TEST(fab_work__a_message_arrives_whole)
{
    struct rig *r = rig_new(4, 2, 4, 2);
    const uint32_t flow = rig_qp(r, 0, 1);
    rig_msg(r, flow, 1000000, FAB_NONE);
    rig_start(r);
    rig_finish(r, MRC_SEC);
    rig_run(r, MRC_SEC);
    uint64_t row[FAB_M_COLS];
    CHECK_EQ(fab_read_messages(r->f, row, 0, 1), 1);
    CHECK_EQ(row[FAB_M_STATUS], MRC_WC_SUCCESS);
    CHECK(row[FAB_M_STARTED_NS] == 0 && row[FAB_M_ARRIVED_NS] < row[FAB_M_DONE_NS]);
    /* 1 MB over 40 Gbit/s takes 200 us; framing and the round trip come on top. */
    CHECK(row[FAB_M_ARRIVED_NS] > 200000 && row[FAB_M_ARRIVED_NS] < 300000);
    CHECK_EQ(rig_flow(r, flow, FAB_F_DELIVERED), 1000000);
    CHECK_EQ(rig_flow(r, flow + 1, FAB_F_DELIVERED), 0);
    rig_end(r);
}

/* ---- order ---- */

TEST(fab_work__a_message_waits_for_all_it_names)
{
    struct rig *r = rig_new(2, 2, 2, 3);
    const uint32_t ab = rig_qp(r, 0, 1);
    const uint32_t bc = rig_qp(r, 1, 2);
    const uint32_t first = rig_msg(r, ab, 300000, FAB_NONE);
    const uint32_t other = rig_msg(r, bc + 1, 10000, FAB_NONE); /* from 2 to 1 */
    const uint32_t both = rig_msg(r, bc, 5000, first);
    r->msg[both].after[1] = other;
    r->msg[both].delay_ns = 1234;
    const uint32_t far = rig_msg(r, ab, 1, both); /* starts at a host that nothing has reached */
    rig_start(r);
    rig_finish(r, MRC_SEC);
    uint64_t m[4 * FAB_M_COLS];
    CHECK_EQ(fab_read_messages(r->f, m, 0, 9), 4);
    const uint64_t a = m[first * FAB_M_COLS + FAB_M_ARRIVED_NS];
    const uint64_t b = m[other * FAB_M_COLS + FAB_M_ARRIVED_NS];
    CHECK(b < a);
    CHECK_EQ(m[both * FAB_M_COLS + FAB_M_STARTED_NS], a + 1234);
    CHECK_EQ(m[far * FAB_M_COLS + FAB_M_STARTED_NS], m[both * FAB_M_COLS + FAB_M_ARRIVED_NS]);
    rig_end(r);
}

/* A ring all-reduce in small: each host passes on what it got, 2 (n - 1) times. */
static void ring(struct rig *r, uint32_t hosts, uint32_t bytes)
{
    uint32_t last[16];
    for (uint32_t h = 0; h < hosts; h++) {
        rig_qp(r, h, (h + 1) % hosts);
        last[h] = FAB_NONE;
    }
    for (uint32_t step = 0; step < 2 * (hosts - 1); step++) {
        uint32_t now[16];
        for (uint32_t h = 0; h < hosts; h++)
            now[h] = rig_msg(r, 2 * h, bytes, last[(h + hosts - 1) % hosts]);
        memcpy(last, now, sizeof last);
    }
}

TEST(fab_work__a_ring_ends_with_every_byte_in_place)
{
    struct rig *r = rig_new(2, 4, 2, 8);
    ring(r, 8, 50000);
    rig_start(r);
    rig_set(r, FAB_T0_T1, 0, 1, 1, FAB_LOSS_PPM, 20000);
    rig_set(r, FAB_T1_T0, 1, 2, 0, FAB_DUP_PPM, 20000);
    rig_finish(r, MRC_SEC);
    for (uint32_t h = 0; h < 8; h++)
        CHECK_EQ(rig_flow(r, 2 * h, FAB_F_DELIVERED), 14 * 50000);
    struct fab_totals t;
    fab_totals(r->f, &t);
    CHECK_EQ(t.arrived, 14 * 8);
    rig_end(r);
}

/* ---- one seed, one run ---- */

static uint64_t story(uint64_t seed, mrc_ns slice)
{
    struct rig *r = rig_new(2, 4, 2, 8);
    r->cfg.seed = seed;
    r->cfg.jitter_ns = 300;
    ring(r, 8, 50000);
    rig_bulk(r, rig_qp(r, 0, 5), 100000, 3 * MRC_MSEC);
    rig_start(r);
    for (mrc_ns t = 0; t <= 4 * MRC_MSEC; t += slice) {
        rig_run(r, t);
        if (t == MRC_MSEC) {
            rig_set(r, FAB_T0_T1, 0, 0, 1, FAB_LOSS_PPM, 100000);
            rig_set(r, FAB_HOST_UP, 1, 3, 0, FAB_DOWN, 1);
            CHECK_EQ(fab_switch_set(r->f, fab_switch_id(r->f, true, 0, 0), FAB_STOPPED, true), 0);
        }
    }
    const uint64_t hash = fab_hash(r->f);
    CHECK(rig_dropped(r, FAB_DROP_STOPPED) > 0);
    rig_end(r);
    return hash;
}

TEST(fab_work__the_same_seed_is_the_same_run)
{
    const uint64_t one = story(7, MRC_MSEC);
    CHECK_EQ(story(7, MRC_MSEC), one);
    CHECK_EQ(story(7, 20 * MRC_USEC), one); /* looking on changes nothing */
    CHECK(story(8, MRC_MSEC) != one);
}

/* ---- integrity ---- */

TEST(fab_work__a_wrong_byte_in_memory_is_seen)
{
    for (int beside = 0; beside < 2; beside++) {
        struct rig *r = rig_new(1, 2, 1, 2);
        const uint32_t m = rig_msg(r, rig_qp(r, 0, 1), 100000, FAB_NONE);
        rig_start(r);
        rig_run(r, 60 * MRC_USEC); /* half of it has arrived */
        uint8_t *at = r->f->host[1].memory + r->f->state[m].target;
        at[beside ? 100000 : 5] ^= 1;
        CHECK_EQ(fab_run(r->f, MRC_SEC, true), MRC_ERR_STATE);
        CHECK(strstr(fab_failure(r->f), beside ? "beside" : "not what was sent") != NULL);
        CHECK_EQ(fab_run(r->f, MRC_SEC, true), MRC_ERR_STATE); /* and stays so */
        rig_end(r);
    }
}

TEST(fab_work__a_bulk_message_is_compared_too)
{
    struct rig *r = rig_new(1, 2, 1, 2);
    const uint32_t flow = rig_qp(r, 0, 1);
    rig_bulk(r, flow, 50000, 0);
    rig_start(r);
    rig_run(r, MRC_MSEC);
    CHECK(rig_flow(r, flow, FAB_F_MESSAGES) > 10);
    for (uint32_t i = 0; i < r->bulk[0].outstanding; i++)
        CHECK(r->f->host[1].memory_bytes > 8 * 50000);
    r->f->host[1].memory[r->f->flow[flow].bulk_target - 1] ^= 1; /* before the first slot */
    CHECK_EQ(fab_run(r->f, 2 * MRC_MSEC, false), MRC_ERR_STATE);
    rig_end(r);
}

/* Without verify all hosts write to the same place; lengths, order and counts are still held. */
TEST(fab_work__without_verify_no_host_has_memory_of_its_own)
{
    struct rig *r = rig_new(2, 4, 2, 8);
    r->cfg.verify = 0;
    r->cfg.icrc = 0;
    ring(r, 8, 50000);
    rig_start(r);
    CHECK(r->f->host[0].memory == r->f->host[7].memory);
    rig_finish(r, MRC_SEC);
    for (uint32_t h = 0; h < 8; h++)
        CHECK_EQ(rig_flow(r, 2 * h, FAB_F_DELIVERED), 14 * 50000);
    for (int i = 0; i < FAB_GUARD; i++)
        CHECK(r->f->sink[i] == FAB_POISON && r->f->sink[FAB_GUARD + 50001 + i] == FAB_POISON);
    rig_end(r);
}

TEST(fab_work__a_message_that_comes_twice_is_a_failure)
{
    struct rig *r = rig_new(1, 2, 1, 2);
    rig_msg(r, rig_qp(r, 0, 1), 10000, FAB_NONE);
    rig_start(r);
    r->f->state[0].arrived = 5; /* as if it had come */
    CHECK_EQ(fab_run(r->f, MRC_SEC, true), MRC_ERR_STATE);
    CHECK(strstr(fab_failure(r->f), "arrived as message 0") != NULL);
    rig_end(r);
}

/* ---- ends ---- */

TEST(fab_work__a_flow_that_ends_gives_its_messages_up)
{
    struct rig *r = rig_new(1, 2, 1, 2);
    const uint32_t flow = rig_qp(r, 0, 1);
    r->qp[0].exp_cnt = 1;
    for (int i = 0; i < 40; i++) /* more than the send queue holds */
        rig_msg(r, flow, 100000, FAB_NONE);
    rig_msg(r, flow, 1, 39); /* will never start */
    rig_start(r);
    rig_run(r, 100 * MRC_USEC);
    rig_set(r, FAB_HOST_UP, 0, 0, 0, FAB_CUT, 1);
    CHECK_EQ(fab_run(r->f, 10 * MRC_SEC, false), MRC_OK);
    rig_conserved(r);
    CHECK_EQ(rig_flow(r, flow, FAB_F_STATE), MRC_QPS_ERR);
    CHECK_EQ(fab_messages_left(r->f), 1);
    struct fab_event e[64];
    const uint32_t n = fab_take_events(r->f, e, 64);
    uint32_t failed = 0;
    for (uint32_t i = 0; i < n; i++) {
        failed += e[i].kind == FAB_E_FAILED && e[i].ev == flow &&
                  e[i].reason == MRC_WC_RETRY_EXC_ERR && e[i].host == 0 && e[i].peer == 1;
        CHECK(i == 0 || e[i - 1].time <= e[i].time);
    }
    CHECK_EQ(failed, 1);
    struct fab_totals t;
    fab_totals(r->f, &t);
    CHECK(t.failed >= 16 && t.arrived + t.failed <= 40);
    rig_end(r);
}

TEST(fab_work__bulk_begins_and_ends_when_it_should)
{
    struct rig *r = rig_new(1, 2, 1, 2);
    const uint32_t flow = rig_qp(r, 0, 1);
    rig_bulk(r, flow, 50000, 3 * MRC_MSEC);
    r->bulk[0].start_ns = MRC_MSEC;
    rig_start(r);
    rig_run(r, MRC_MSEC);
    CHECK_EQ(rig_flow(r, flow, FAB_F_DELIVERED), 0);
    rig_run(r, 3 * MRC_MSEC);
    CHECK(rig_flow(r, flow, FAB_F_DELIVERED) > 2000000);
    rig_run(r, 5 * MRC_MSEC);
    CHECK_EQ(rig_flow(r, flow, FAB_F_DELIVERED) % 50000, 0); /* what was posted is finished */
    CHECK_EQ(rig_flow(r, flow, FAB_F_OUTSTANDING), 0);
    const uint64_t done = rig_flow(r, flow, FAB_F_DELIVERED);
    rig_run(r, 9 * MRC_MSEC);
    CHECK_EQ(rig_flow(r, flow, FAB_F_DELIVERED), done);
    rig_end(r);
}

TEST(fab_work__an_empty_pool_is_a_counted_drop)
{
    struct rig *r = rig_new(2, 2, 2, 2);
    r->cfg.packets_max = 16;
    rig_msg(r, rig_qp(r, 0, 1), 500000, FAB_NONE);
    rig_start(r);
    rig_finish(r, MRC_SEC);
    CHECK(rig_dropped(r, FAB_DROP_POOL) > 0);
    rig_end(r);
}

TEST(fab_work__an_idle_fabric_does_nothing)
{
    struct rig *r = rig_new(4, 8, 8, 16);
    rig_msg(r, rig_qp(r, 0, 15), 10000, FAB_NONE);
    rig_start(r);
    rig_run(r, MRC_SEC);
    struct fab_totals t;
    fab_totals(r->f, &t);
    const uint64_t events = t.events;
    rig_run(r, 100 * MRC_SEC);
    fab_totals(r->f, &t);
    CHECK(t.events - events < 10);
    CHECK_EQ(fab_now(r->f), 100 * MRC_SEC);
    rig_end(r);
}

TEST(fab_work__queue_pairs_of_two_hosts_share_what_they_know)
{
    struct rig *r = rig_new(2, 2, 2, 2);
    const uint32_t one = rig_qp(r, 0, 1);
    const uint32_t two = rig_qp(r, 1, 0); /* the other way round, which is the same two hosts */
    r->t.ccs = 2;
    r->cc[1] = r->cc[0];
    const uint32_t apart = rig_qp(r, 0, 1);
    r->qp[apart / 2].cc = 1;
    rig_start(r);
    CHECK_EQ(r->f->host[0].paths, 1);
    CHECK_EQ(r->f->host[0].ccs, 2);
    CHECK_EQ(r->f->flow[one].path, r->f->flow[two + 1].path);
    CHECK_EQ(r->f->host[1].paths, 1);
    rig_end(r);
}
