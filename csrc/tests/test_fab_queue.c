/* SPDX-License-Identifier: BSD-2-Clause */
/* The emulated fabric: marks, cuts and classes at its ports (MRC A.13.1, A.13.5, A.13.6, E.8). */
#include "fab_rig.h"

/* ---- marks ---- */

static uint64_t sum_tier(const struct rig *r, enum fab_tier tier, enum fab_link_col col)
{
    uint64_t sum = 0;
    for (uint32_t l = 0; l < r->f->links; l++)
        if (r->f->link[l].tier == tier)
            sum += rig_link(r, l, col);
    return sum;
}

TEST(fab_queue__a_full_uplink_marks)
{
    /* Two hosts of one T0 share its one uplink. */
    struct rig *r = rig_new(1, 2, 1, 4);
    for (uint32_t i = 0; i < 2; i++)
        rig_bulk(r, rig_qp(r, i, 2 + i), 100000, 0);
    rig_start(r);
    rig_run(r, 5 * MRC_MSEC);
    const uint64_t marked = sum_tier(r, FAB_T0_T1, FAB_L_MARKED);
    CHECK(marked > 100);
    CHECK_EQ(sum_tier(r, FAB_T1_T0, FAB_L_MARKED), 0); /* nothing waits there */
    CHECK_EQ(sum_tier(r, FAB_HOST_UP, FAB_L_MARKED), 0);
    CHECK_EQ(sum_tier(r, FAB_HOST_DOWN, FAB_L_MARKED), 0);
    /* Only the outer header was marked, and the engines know (A.13.1). */
    const uint64_t seen = rig_flow(r, 0, FAB_F_MARKED) + rig_flow(r, 2, FAB_F_MARKED);
    CHECK(seen <= marked && seen + 100 >= marked);
    rig_end(r);
}

TEST(fab_queue__the_last_hop_never_marks)
{
    struct rig *r = rig_new(1, 4, 4, 4);
    for (uint32_t i = 1; i < 4; i++)
        rig_bulk(r, rig_qp(r, i, 0), 100000, 0);
    rig_start(r);
    rig_run(r, 5 * MRC_MSEC);
    const uint32_t last = fab_link_id(r->f, FAB_HOST_DOWN, 0, 0, 0);
    CHECK(rig_link(r, last, FAB_L_PEAK) > r->cfg.mark_hi_bytes); /* where another port would */
    CHECK_EQ(sum_tier(r, FAB_HOST_DOWN, FAB_L_MARKED), 0);
    CHECK_EQ(rig_flow(r, 0, FAB_F_MARKED), 0);
    rig_end(r);
}

TEST(fab_queue__marks_are_in_the_outer_header_alone)
{
    struct rig *r = rig_new(1, 2, 1, 2);
    rig_start(r);
    struct fab_packet *p = rig_packet(r, 1, 0x01010000, FAB_DSCP_DATA, 1000);
    const uint32_t up = fab_link_id(r->f, FAB_T0_T1, 0, 0, 0);
    CHECK_EQ(fab_link_set(r->f, up, FAB_MARK_PPM, 1000000), MRC_OK);
    fab_link_enter(r->f, fab_link_id(r->f, FAB_HOST_UP, 0, 0, 0), p);
    while (r->f->host[1].held == NULL && fab_now(r->f) < MRC_MSEC)
        rig_run(r, fab_now(r->f) + 50);
    p = r->f->host[1].held;
    CHECK(p != NULL);
    CHECK_EQ(mrc_get16(p->heads) >> 4 & 0xFF, FAB_DSCP_DATA << 2 | 3);
    CHECK_EQ(mrc_get16(p->heads + FAB_IPV6) >> 4 & 0xFF, FAB_DSCP_DATA << 2 | 2);
    struct mrc_rx_pkt rx;
    CHECK(fab_packet_open(r->f, p, 1, 0, &rx));
    CHECK(rx.outer_ce && (rx.tclass & 3) == 2);
    rig_end(r);
}

/* ---- cuts ---- */

static struct rig *rig_trimming(uint32_t hosts)
{
    struct rig *r = rig_new(1, hosts, 4, hosts);
    r->cfg.trim_bytes = 256;
    r->cfg.queue_bytes[SIM_DATA] = 40000;
    r->cc[0].trimming = true;
    return r;
}

static void cut_one(bool keeps, bool lasthop)
{
    struct rig *r = rig_trimming(2);
    r->cfg.trim_keeps_lengths = keeps;
    r->cfg.frame_bytes = 14;
    rig_start(r);
    struct fab_packet *p = rig_packet(r, 1, 0x01010000, FAB_DSCP_RETX, 4096);
    CHECK_EQ(p->item.len_bytes, 14 + 80 + 8 + 32 + 4096 + 4);
    CHECK(p->item.trimmable && p->item.cls == SIM_DATA && p->item.ect);
    fab_packet_cut(r->f, p, lasthop);
    const uint8_t dscp = lasthop ? 16 : 12; /* A.13.5 */
    CHECK_EQ(mrc_get16(p->heads) >> 4 & 0xFF, dscp << 2 | 2);
    CHECK_EQ(mrc_get16(p->heads + 40) >> 4 & 0xFF, FAB_DSCP_RETX << 2 | 2);
    CHECK_EQ(p->item.len_bytes, 256 + 14);
    CHECK(p->item.cls == SIM_TRIMMED && !p->item.trimmable);
    const uint32_t udp = keeps ? 8 + 32 + 4096 + 4 : 256 - 80;
    CHECK_EQ(mrc_get16(p->heads + 4), 40 + udp);
    CHECK_EQ(mrc_get16(p->heads + 44), udp);
    CHECK_EQ(mrc_get16(p->heads + 84), udp);
    mrc_put16(p->heads + 28, 0x3101);
    struct mrc_rx_pkt rx;
    CHECK(fab_packet_open(r->f, p, 1, 0, &rx));
    CHECK_EQ(rx.tclass >> 2, dscp); /* the class a switch wrote counts */
    CHECK_EQ(rx.len, 256 - 88);     /* BTH, METH, RETH and some of the payload */
    CHECK_EQ(rx.udp_len, udp);
    fab_packet_free(r->f, p);
    rig_end(r);
}

TEST(fab_queue__a_cut_packet_says_how_long_it_is) { cut_one(false, false); }
TEST(fab_queue__a_cut_packet_on_the_last_hop_says_so) { cut_one(false, true); }
TEST(fab_queue__hardware_leaves_the_lengths) { cut_one(true, false); }

TEST(fab_queue__what_may_not_be_cut_is_not)
{
    struct rig *r = rig_trimming(2);
    rig_start(r);
    static const uint32_t dscp[] = {0, FAB_DSCP_CONTROL, FAB_DSCP_DATA};
    static const uint32_t payload[] = {4096, 4096, 100}; /* the last is short as it is */
    for (int i = 0; i < 3; i++) {
        struct fab_packet *p = rig_packet(r, 1, 0x01010000, dscp[i], payload[i]);
        CHECK(!p->item.trimmable);
        CHECK_EQ(p->item.cls, dscp[i] == FAB_DSCP_CONTROL ? SIM_CONTROL : SIM_DATA);
        fab_packet_free(r->f, p);
    }
    rig_end(r);
}

/* Incast: all is cut at the last hop, and every message arrives. */
static void incast(bool keeps)
{
    struct rig *r = rig_trimming(4);
    uint32_t flow[3];
    r->cfg.trim_keeps_lengths = keeps;
    for (uint32_t i = 1; i < 4; i++) {
        flow[i - 1] = rig_qp(r, i, 0);
        rig_msg(r, flow[i - 1], 2000000, FAB_NONE);
    }
    rig_start(r);
    const uint32_t last = fab_link_id(r->f, FAB_HOST_DOWN, 0, 0, 0);
    bool seen = false;
    for (mrc_ns t = 0; t < 500 * MRC_USEC; t += MRC_USEC) {
        rig_run(r, t);
        const struct sim_item *i = r->f->link[last].port.head[SIM_TRIMMED];
        const struct fab_packet *p = (const struct fab_packet *)(const void *)i;
        if (i == NULL)
            continue;
        seen = true;
        CHECK_EQ(mrc_get16(p->heads) >> 6 & 0x3F, FAB_DSCP_LASTHOP);
    }
    CHECK(seen);
    rig_finish(r, MRC_SEC);
    const uint64_t cut = rig_link(r, last, FAB_L_TRIMMED);
    CHECK(cut > 0);
    CHECK_EQ(sum_tier(r, FAB_T0_T1, FAB_L_TRIMMED) + sum_tier(r, FAB_T1_T0, FAB_L_TRIMMED), 0);
    uint64_t nacked = 0;
    uint64_t told = 0;
    for (int i = 0; i < 3; i++) {
        told += rig_flow(r, flow[i], FAB_F_TRIMMED);
        nacked += rig_flow(r, flow[i], FAB_F_NACKS);
    }
    CHECK_EQ(told + rig_dropped(r, FAB_DROP_QUEUE), cut);
    CHECK(nacked > 0);
    rig_end(r);
}

TEST(fab_queue__incast_is_cut_at_the_last_hop) { incast(false); }
TEST(fab_queue__incast_is_cut_by_hardware) { incast(true); }

TEST(fab_queue__cuts_inside_the_fabric_are_of_the_other_class)
{
    struct rig *r = rig_new(1, 2, 1, 4);
    r->cfg.trim_bytes = 256;
    r->cfg.queue_bytes[SIM_DATA] = 40000;
    r->cfg.mark_hi_bytes = 0;
    r->cc[0].trimming = true;
    for (uint32_t i = 0; i < 2; i++)
        rig_bulk(r, rig_qp(r, i, 2 + i), 100000, 0);
    rig_start(r);
    const uint32_t up = fab_link_id(r->f, FAB_T0_T1, 0, 0, 0);
    bool seen = false;
    for (mrc_ns t = 0; t < 500 * MRC_USEC; t += MRC_USEC) {
        rig_run(r, t);
        const struct sim_item *i = r->f->link[up].port.head[SIM_TRIMMED];
        const struct fab_packet *p = (const struct fab_packet *)(const void *)i;
        seen = seen || i != NULL;
        if (i != NULL)
            CHECK_EQ(mrc_get16(p->heads) >> 6 & 0x3F, FAB_DSCP_TRIMMED);
    }
    CHECK(seen);
    rig_end(r);
}

TEST(fab_queue__without_trimming_the_tail_is_lost)
{
    struct rig *r = rig_new(1, 4, 4, 4);
    r->cfg.lasthop_bytes = 30000;
    for (uint32_t i = 1; i < 4; i++)
        rig_msg(r, rig_qp(r, i, 0), 2000000, FAB_NONE);
    rig_start(r);
    rig_finish(r, MRC_SEC);
    const uint32_t last = fab_link_id(r->f, FAB_HOST_DOWN, 0, 0, 0);
    CHECK(rig_link(r, last, FAB_L_DROPPED) > 0);
    CHECK_EQ(rig_link(r, last, FAB_L_DROPPED), rig_dropped(r, FAB_DROP_QUEUE));
    CHECK(rig_link(r, last, FAB_L_PEAK) <= 30000 + 2 * 256); /* control waits apart */
    rig_end(r);
}

/* ---- classes ---- */

TEST(fab_queue__control_and_cut_packets_overtake_data)
{
    struct rig *r = rig_trimming(2);
    r->cfg.queue_bytes[SIM_DATA] = 400000;
    rig_start(r);
    const uint32_t last = fab_link_id(r->f, FAB_HOST_DOWN, 0, 1, 0);
    for (int i = 0; i < 50; i++)
        fab_link_enter(r->f, last, rig_packet(r, 1, 0x01010000, FAB_DSCP_DATA, 4096));
    fab_link_enter(r->f, last, rig_packet(r, 1, 0x01010000, FAB_DSCP_CONTROL, 0));
    struct fab_packet *p = rig_packet(r, 1, 0x01010000, FAB_DSCP_DATA, 4096);
    fab_packet_cut(r->f, p, true);
    fab_link_enter(r->f, last, p);
    const struct sim_queue *q = &r->f->link[last].port;
    rig_run(r, 4000); /* one data packet takes 3.4 us */
    CHECK_EQ(q->stats.packets[SIM_DATA], 1);
    CHECK_EQ(q->stats.packets[SIM_CONTROL] + q->stats.packets[SIM_TRIMMED], 2);
    rig_end(r);
}
