/* SPDX-License-Identifier: BSD-2-Clause */
/* The emulated fabric: every fault there is, set and healed while traffic runs. */
#include "fab_rig.h"

/* Two hosts, two planes of two paths, one flow that never ends; 1 ms old. */
static struct rig *rig_busy(void)
{
    struct rig *r = rig_new(2, 2, 2, 2);
    rig_bulk(r, rig_qp(r, 0, 1), 24 * RIG_MTU, 0);
    rig_start(r);
    rig_run(r, MRC_MSEC);
    CHECK(rig_flow(r, 0, FAB_F_DELIVERED) > 1000000);
    return r;
}

/* Payload in bit/s over the next time. */
static double rate(struct rig *r, mrc_ns for_ns)
{
    const uint64_t before = rig_flow(r, 0, FAB_F_DELIVERED);
    rig_run(r, fab_now(r->f) + for_ns);
    return (double)(rig_flow(r, 0, FAB_F_DELIVERED) - before) * 8e9 / (double)for_ns;
}

static uint64_t path(const struct rig *r, uint32_t entry, enum fab_path_col col)
{
    uint64_t rows[4 * FAB_P_COLS];
    CHECK_EQ(fab_read_paths(r->f, 0, rows, 4), 4);
    return rows[entry * FAB_P_COLS + col];
}

static uint64_t dropped_all(const struct rig *r)
{
    uint64_t sum = 0;
    for (int d = 0; d < FAB_DROPS; d++)
        sum += rig_dropped(r, (enum fab_drop)d);
    return sum;
}

/* Work stops; whatever the fault was, everything is delivered or counted in the end. */
static void finish(struct rig *r)
{
    r->f->bulk[0].stop_ns = fab_now(r->f);
    rig_run(r, fab_now(r->f) + 100 * MRC_MSEC);
    CHECK_EQ(rig_flow(r, 0, FAB_F_OUTSTANDING), 0);
    CHECK_EQ(rig_flow(r, 0, FAB_F_STATE), MRC_QPS_RTS);
    rig_end(r);
}

TEST(fab_fault__nothing_is_lost_without_one)
{
    struct rig *r = rig_busy();
    CHECK(rate(r, 5 * MRC_MSEC) > 0.94 * 20e9);
    CHECK_EQ(dropped_all(r), 0);
    finish(r);
}

TEST(fab_fault__loss)
{
    struct rig *r = rig_busy();
    const uint32_t up = fab_link_id(r->f, FAB_T0_T1, 0, 0, 0);
    rig_set(r, FAB_T0_T1, 0, 0, 0, FAB_LOSS_PPM, 50000);
    const uint64_t before = rig_link(r, up, FAB_L_PACKETS);
    rig_run(r, 30 * MRC_MSEC);
    const uint64_t lost = rig_dropped(r, FAB_DROP_LOSS);
    const uint64_t packets = rig_link(r, up, FAB_L_PACKETS) - before;
    CHECK_EQ(lost, dropped_all(r));
    CHECK_EQ(lost, rig_link(r, up, FAB_L_LOST));
    CHECK(lost > 0 && lost * 100 < packets * 15);
    rig_set(r, FAB_T0_T1, 0, 0, 0, FAB_LOSS_PPM, 0);
    rig_run(r, 40 * MRC_MSEC);
    CHECK_EQ(rig_dropped(r, FAB_DROP_LOSS), lost);
    finish(r);
}

TEST(fab_fault__loss_mask)
{
    struct rig *r = rig_busy();
    rig_set(r, FAB_T0_T1, 1, 0, 1, FAB_LOSS_MASK,
            1 << 5); /* every 64th, beginning with the sixth */
    const uint32_t up = fab_link_id(r->f, FAB_T0_T1, 1, 0, 1);
    const uint64_t before = rig_link(r, up, FAB_L_PACKETS);
    rig_run(r, 1500 * MRC_USEC);
    rig_set(r, FAB_T0_T1, 1, 0, 1, FAB_LOSS_MASK, 0);
    const uint64_t packets = rig_link(r, up, FAB_L_PACKETS) - before;
    CHECK(packets > 6);
    CHECK_EQ(rig_dropped(r, FAB_DROP_LOSS), (packets + 58) / 64);
    finish(r);
}

TEST(fab_fault__what_is_corrupted_is_dropped_by_the_engine)
{
    for (int icrc = 0; icrc < 2; icrc++) {
        struct rig *r = rig_new(2, 2, 2, 2);
        uint64_t drops[MRC_DROP_COUNT];
        r->cfg.icrc = (uint8_t)icrc;
        rig_msg(r, rig_qp(r, 0, 1), 4000000, FAB_NONE);
        rig_start(r);
        rig_set(r, FAB_HOST_DOWN, 0, 1, 0, FAB_CORRUPT_PPM, 20000);
        rig_finish(r, MRC_SEC);
        rig_set(r, FAB_HOST_DOWN, 0, 1, 0, FAB_CORRUPT_PPM, 0);
        rig_run(r, fab_now(r->f) + 10 * MRC_MSEC);
        CHECK_EQ(fab_read_drops(r->f, 1, drops), MRC_DROP_COUNT);
        const uint32_t last = fab_link_id(r->f, FAB_HOST_DOWN, 0, 1, 0);
        CHECK(drops[MRC_DROP_ICRC] > 0);
        CHECK_EQ(drops[MRC_DROP_ICRC], rig_link(r, last, FAB_L_CORRUPTED));
        rig_end(r);
    }
}

TEST(fab_fault__duplicates)
{
    struct rig *r = rig_busy();
    struct fab_totals t;
    rig_set(r, FAB_T1_T0, 0, 1, 0, FAB_DUP_PPM, 100000);
    rig_run(r, 3 * MRC_MSEC);
    rig_set(r, FAB_T1_T0, 0, 1, 0, FAB_DUP_PPM, 0);
    rig_run(r, 4 * MRC_MSEC);
    fab_totals(r->f, &t);
    CHECK(t.copied > 10);
    CHECK(rig_flow(r, 0, FAB_F_DUPLICATES) > 0);
    CHECK(rig_flow(r, 0, FAB_F_DUPLICATES) <= t.copied);
    finish(r);
}

/* One packet, alone in the fabric. */
static mrc_ns flight(enum fab_knob knob, uint64_t value)
{
    struct rig *r = rig_new(1, 2, 1, 2);
    rig_msg(r, rig_qp(r, 0, 1), 1000, FAB_NONE);
    rig_start(r);
    rig_set(r, FAB_T0_T1, 0, 0, 0, knob, value);
    const mrc_ns took = rig_finish(r, MRC_SEC);
    rig_end(r);
    return took;
}

TEST(fab_fault__delay_and_rate_are_exact)
{
    const mrc_ns bytes = 1000 + 88 + 36 + 4;
    const mrc_ns plain = flight(FAB_DELAY_NS, 0);
    CHECK_EQ(plain, 4 * 2000 + 4 * (bytes * 8 / 10) + 200); /* cables, ports, the host's turn */
    CHECK_EQ(flight(FAB_DELAY_NS, 12345), plain + 12345);
    CHECK_EQ(flight(FAB_RATE_BPS, 1000000000), plain + bytes * 8 - bytes * 8 / 10);
}

TEST(fab_fault__jitter_reorders)
{
    struct rig *r = rig_busy();
    const uint64_t before = rig_flow(r, 0, FAB_F_OOO);
    rig_set(r, FAB_T0_T1, 0, 0, 0, FAB_JITTER_NS, 20000);
    rig_run(r, 4 * MRC_MSEC);
    CHECK(rig_flow(r, 0, FAB_F_OOO) > before + 100);
    CHECK_EQ(dropped_all(r), 0);
    finish(r);
}

TEST(fab_fault__rate)
{
    struct rig *r = rig_busy();
    for (uint32_t p = 0; p < 2; p++)
        rig_set(r, FAB_HOST_DOWN, p, 1, 0, FAB_RATE_BPS, 5000000000);
    rig_run(r, 5 * MRC_MSEC);
    const double half = rate(r, 5 * MRC_MSEC);
    CHECK(half > 0.90 * 10e9 && half <= 10e9);
    for (uint32_t p = 0; p < 2; p++)
        rig_set(r, FAB_HOST_DOWN, p, 1, 0, FAB_RATE_BPS, 0);
    rig_run(r, 15 * MRC_MSEC);
    CHECK(rate(r, 5 * MRC_MSEC) > 0.93 * 20e9);
    finish(r);
}

TEST(fab_fault__trims_although_there_is_room)
{
    struct rig *r = rig_new(2, 2, 2, 2);
    r->cfg.trim_bytes = 128;
    r->cc[0].trimming = true;
    rig_bulk(r, rig_qp(r, 0, 1), 24 * RIG_MTU, 0);
    rig_start(r);
    rig_set(r, FAB_T0_T1, 0, 0, 0, FAB_TRIM_PPM, 100000);
    rig_run(r, 3 * MRC_MSEC);
    const uint64_t cut = rig_link(r, fab_link_id(r->f, FAB_T0_T1, 0, 0, 0), FAB_L_TRIMMED);
    CHECK(cut > 10);
    rig_set(r, FAB_T0_T1, 0, 0, 0, FAB_TRIM_PPM, 0);
    rig_run(r, 4 * MRC_MSEC);
    CHECK_EQ(rig_flow(r, 0, FAB_F_TRIMMED), cut);
    CHECK_EQ(dropped_all(r), 0);
    finish(r);
}

TEST(fab_fault__what_is_too_large_for_a_cable_vanishes)
{
    struct rig *r = rig_busy();
    rig_set(r, FAB_T0_T1, 0, 0, 1, FAB_MTU, 1500);
    rig_run(r, 1500 * MRC_USEC);
    CHECK(rig_dropped(r, FAB_DROP_MTU) > 0);
    CHECK_EQ(rig_dropped(r, FAB_DROP_MTU), dropped_all(r));
    CHECK_EQ(path(r, 2, FAB_P_STATE), MRC_EV_ASSUMED_BAD);
    rig_set(r, FAB_T0_T1, 0, 0, 1, FAB_MTU, 0); /* as it was made: 9216 */
    rig_run(r, 20 * MRC_MSEC);
    const uint64_t dropped = rig_dropped(r, FAB_DROP_MTU);
    CHECK(rate(r, 5 * MRC_MSEC) > 0.93 * 20e9);
    CHECK_EQ(rig_dropped(r, FAB_DROP_MTU), dropped);
    finish(r);
}

TEST(fab_fault__a_cut_is_silent_and_one_way)
{
    struct rig *r = rig_busy();
    const uint32_t up = fab_link_id(r->f, FAB_HOST_UP, 0, 0, 0);
    const uint32_t down = fab_link_id(r->f, FAB_HOST_DOWN, 0, 0, 0);
    rig_set(r, FAB_HOST_UP, 0, 0, 0, FAB_CUT, 1);
    rig_run(r, 3 * MRC_MSEC);
    const uint64_t sent = rig_link(r, up, FAB_L_PACKETS);
    const uint64_t back = rig_link(r, down, FAB_L_PACKETS);
    CHECK(rig_dropped(r, FAB_DROP_CUT) > 0);
    CHECK_EQ(r->f->host[0].local_up, MRC_PLANES_ALL); /* nobody was told */
    CHECK_EQ(path(r, 0, FAB_P_STATE), MRC_EV_ASSUMED_BAD);
    CHECK_EQ(path(r, 2, FAB_P_STATE), MRC_EV_ASSUMED_BAD);
    rig_run(r, 6 * MRC_MSEC);
    CHECK(rig_link(r, up, FAB_L_PACKETS) > sent); /* probes go out, the port works */
    CHECK(rig_link(r, down, FAB_L_PACKETS) >= back);
    CHECK(rate(r, 2 * MRC_MSEC) > 0.9 * 10e9);
    rig_set(r, FAB_HOST_UP, 0, 0, 0, FAB_CUT, 0);
    rig_run(r, 60 * MRC_MSEC);
    CHECK_EQ(path(r, 0, FAB_P_STATE), MRC_EV_GOOD);
    CHECK(rate(r, 5 * MRC_MSEC) > 0.93 * 20e9);
    finish(r);
}

TEST(fab_fault__down_is_visible_to_the_hosts_at_its_ends)
{
    struct rig *r = rig_busy();
    struct fab_event e[64];
    while (fab_take_events(r->f, e, 64) == 64)
        ;
    rig_set(r, FAB_HOST_UP, 1, 0, 0, FAB_DOWN, 1); /* a carrier is lost in both directions, */
    CHECK_EQ(r->f->host[0].local_up, MRC_PLANES_ALL & ~4u); /* whichever the fault names */
    CHECK_EQ(r->f->host[1].local_up, MRC_PLANES_ALL);
    const mrc_ns at = fab_now(r->f);
    rig_run(r, at + 200 * MRC_USEC);
    CHECK(fab_take_events(r->f, e, 64) > 0);
    CHECK(e[0].kind == FAB_E_ASYNC && e[0].host == 0 && e[0].reason == MRC_ASYNC_PORT_ERR);
    CHECK_EQ(e[0].plane, 2);
    bool peer_knows = false;
    for (uint32_t i = 0; i < 64; i++)
        peer_knows = peer_knows || (e[i].kind == FAB_E_ASYNC && e[i].host == 1 &&
                                    e[i].reason == MRC_ASYNC_PEER_PORT_ERR && e[i].plane == 2);
    CHECK(peer_knows);
    CHECK(rate(r, 2 * MRC_MSEC) > 0.9 * 10e9);
    const uint64_t dropped = rig_dropped(r, FAB_DROP_DOWN);
    rig_run(r, fab_now(r->f) + MRC_MSEC);
    CHECK_EQ(rig_dropped(r, FAB_DROP_DOWN), dropped); /* the engine sends nothing there */
    rig_set(r, FAB_HOST_UP, 1, 0, 0, FAB_DOWN, 0);
    CHECK_EQ(r->f->host[0].local_up, MRC_PLANES_ALL);
    rig_run(r, fab_now(r->f) + 3 * MRC_MSEC);
    CHECK(rate(r, 3 * MRC_MSEC) > 0.93 * 20e9);
    finish(r);
}

TEST(fab_fault__a_carrier_may_be_noticed_late)
{
    struct rig *r = rig_new(2, 2, 2, 2);
    r->cfg.carrier_ns = 300 * MRC_USEC;
    rig_bulk(r, rig_qp(r, 0, 1), 24 * RIG_MTU, 0);
    rig_start(r);
    rig_run(r, MRC_MSEC);
    rig_set(r, FAB_HOST_DOWN, 0, 1, 0, FAB_DOWN, 1);
    rig_run(r, 1299999);
    CHECK_EQ(r->f->host[1].local_up, MRC_PLANES_ALL);
    rig_run(r, 1300000);
    CHECK_EQ(r->f->host[1].local_up, MRC_PLANES_ALL & ~2u);
    /* A flap shorter than that is never noticed. */
    rig_set(r, FAB_HOST_UP, 1, 0, 0, FAB_DOWN, 1);
    rig_run(r, 1400000);
    rig_set(r, FAB_HOST_UP, 1, 0, 0, FAB_DOWN, 0);
    rig_run(r, 3 * MRC_MSEC);
    CHECK_EQ(r->f->host[0].local_up, MRC_PLANES_ALL);
    rig_set(r, FAB_HOST_DOWN, 0, 1, 0, FAB_DOWN, 0);
    finish(r);
}

TEST(fab_fault__between_switches_down_is_known_to_them_alone)
{
    struct rig *r = rig_busy();
    rig_set(r, FAB_T0_T1, 0, 0, 0, FAB_DOWN, 1);
    rig_set(r, FAB_T1_T0, 0, 0, 0, FAB_DOWN, 1);
    rig_run(r, 3 * MRC_MSEC);
    CHECK_EQ(r->f->host[0].local_up & r->f->host[1].local_up, MRC_PLANES_ALL);
    CHECK(rig_dropped(r, FAB_DROP_DOWN) > 0);
    CHECK_EQ(rig_dropped(r, FAB_DROP_DOWN), dropped_all(r));
    CHECK_EQ(path(r, 0, FAB_P_STATE), MRC_EV_ASSUMED_BAD);
    CHECK(rate(r, 2 * MRC_MSEC) > 0.9 * 20e9); /* the plane has another path */
    rig_set(r, FAB_T0_T1, 0, 0, 0, FAB_DOWN, 0);
    rig_set(r, FAB_T1_T0, 0, 0, 0, FAB_DOWN, 0);
    rig_run(r, 60 * MRC_MSEC);
    CHECK_EQ(path(r, 0, FAB_P_STATE), MRC_EV_GOOD);
    finish(r);
}

TEST(fab_fault__what_a_port_holds_goes_with_its_carrier)
{
    struct rig *r = rig_new(1, 4, 4, 4);
    for (uint32_t i = 1; i < 4; i++)
        rig_bulk(r, rig_qp(r, i, 0), 100000, 0);
    rig_start(r);
    const uint32_t last = fab_link_id(r->f, FAB_HOST_DOWN, 0, 0, 0);
    mrc_ns t = 0;
    while (rig_link(r, last, FAB_L_QUEUE) < 50000 && t < MRC_MSEC)
        rig_run(r, t += MRC_USEC);
    CHECK(rig_link(r, last, FAB_L_QUEUE) >= 50000);
    rig_set(r, FAB_HOST_DOWN, 0, 0, 0, FAB_DOWN, 1);
    rig_conserved(r);
    CHECK_EQ(rig_link(r, last, FAB_L_QUEUE), 0);
    CHECK(rig_dropped(r, FAB_DROP_DOWN) >= 50000 / 4300);
    rig_run(r, t + MRC_MSEC);
    CHECK_EQ(rig_link(r, last, FAB_L_QUEUE), 0);
    rig_set(r, FAB_HOST_DOWN, 0, 0, 0, FAB_DOWN, 0);
    rig_run(r, t + 20 * MRC_MSEC);
    CHECK(rate(r, 3 * MRC_MSEC) > 0);
    rig_end(r);
}

/* ---- switches ---- */

TEST(fab_fault__a_switch_stops_forwarding)
{
    struct rig *r = rig_busy();
    const uint32_t sw = fab_switch_id(r->f, true, 1, 0);
    CHECK_EQ(fab_switch_set(r->f, sw, FAB_STOPPED, true), MRC_OK);
    rig_run(r, 3 * MRC_MSEC);
    CHECK(rig_dropped(r, FAB_DROP_STOPPED) > 0);
    CHECK_EQ(rig_dropped(r, FAB_DROP_STOPPED), dropped_all(r));
    CHECK_EQ(path(r, 1, FAB_P_STATE), MRC_EV_ASSUMED_BAD);
    CHECK_EQ(path(r, 3, FAB_P_STATE), MRC_EV_GOOD);
    CHECK_EQ(fab_switch_set(r->f, sw, FAB_STOPPED, false), MRC_OK);
    rig_run(r, 60 * MRC_MSEC);
    CHECK_EQ(path(r, 1, FAB_P_STATE), MRC_EV_GOOD);
    finish(r);
}

TEST(fab_fault__a_t0_reboots)
{
    struct rig *r = rig_busy();
    const uint32_t sw = fab_switch_id(r->f, false, 0, 0);
    CHECK_EQ(fab_switch_set(r->f, sw, FAB_OFF, true), MRC_OK);
    CHECK_EQ(r->f->host[0].local_up, MRC_PLANES_ALL & ~2u); /* its port is dark */
    CHECK_EQ(r->f->host[1].local_up, MRC_PLANES_ALL);
    rig_run(r, 3 * MRC_MSEC);
    CHECK(rate(r, MRC_MSEC) > 0.9 * 10e9);
    /* It comes up without routes: carriers are back, packets are not. */
    CHECK_EQ(fab_switch_set(r->f, sw, FAB_NO_ROUTES, true), MRC_OK);
    CHECK_EQ(fab_switch_set(r->f, sw, FAB_OFF, false), MRC_OK);
    CHECK_EQ(r->f->host[0].local_up, MRC_PLANES_ALL);
    rig_run(r, 6 * MRC_MSEC);
    CHECK(rig_dropped(r, FAB_DROP_NO_ROUTE) > 0);
    CHECK_EQ(path(r, 0, FAB_P_STATE), MRC_EV_ASSUMED_BAD);
    CHECK_EQ(fab_switch_set(r->f, sw, FAB_NO_ROUTES, false), MRC_OK);
    rig_run(r, 80 * MRC_MSEC);
    CHECK(rate(r, 3 * MRC_MSEC) > 0.93 * 20e9);
    finish(r);
}

TEST(fab_fault__a_switch_and_a_cable_of_it_heal_apart)
{
    struct rig *r = rig_busy();
    const uint32_t t0 = fab_switch_id(r->f, false, 0, 0);
    const uint32_t t1 = fab_switch_id(r->f, true, 0, 0);
    const struct fab_link *cable = &r->f->link[fab_link_id(r->f, FAB_T0_T1, 0, 0, 0)];
    rig_set(r, FAB_T0_T1, 0, 0, 0, FAB_DOWN, 1);
    CHECK_EQ(fab_switch_set(r->f, t0, FAB_OFF, true), MRC_OK);
    CHECK_EQ(fab_switch_set(r->f, t1, FAB_OFF, true), MRC_OK);
    CHECK_EQ(fab_switch_set(r->f, t1, FAB_OFF, true), MRC_OK); /* once is enough */
    CHECK(fab_link_is_down(cable));
    rig_set(r, FAB_T0_T1, 0, 0, 0, FAB_DOWN, 0);
    CHECK(fab_link_is_down(cable));
    CHECK_EQ(fab_switch_set(r->f, t0, FAB_OFF, false), MRC_OK);
    CHECK(fab_link_is_down(cable));
    CHECK_EQ(fab_switch_set(r->f, t1, FAB_OFF, false), MRC_OK);
    CHECK(!fab_link_is_down(cable));
    for (uint32_t i = 0; i < r->f->links; i++)
        CHECK(!fab_link_is_down(&r->f->link[i]));
    finish(r);
}

TEST(fab_fault__marks_whatever_the_queue)
{
    struct rig *r = rig_busy();
    const uint64_t before = path(r, 0, FAB_P_MARKED);
    rig_set(r, FAB_T0_T1, 0, 0, 0, FAB_MARK_PPM, 1000000);
    rig_run(r, 3 * MRC_MSEC);
    CHECK(path(r, 0, FAB_P_MARKED) > before + 10);
    CHECK_EQ(path(r, 1, FAB_P_MARKED), 0);
    finish(r);
}
