/* SPDX-License-Identifier: BSD-2-Clause */
/* The emulated fabric: numbers, carriers, uN forwarding (MRC A.13.1, D.9). */
#include "fab_rig.h"

/* ---- numbers ---- */

TEST(fab_route__the_worked_example_of_the_specification)
{
    /* D.9: T0 07, T0 15, downlink 2c; EV 0x05A3C41F is plane 5, uplink a3. Numbers from 1. */
    const struct fab_cfg c = {.number_bits = 8, .hosts_per_t0 = 0x30};
    const uint32_t from = 0x06 * 0x30;
    const uint32_t to = 0x14 * 0x30 + 0x2B;
    const uint8_t want[16] = {0xFC, 0xBB, 0xBB, 0xBB, 0x15, 0x07, 0x25, 0xA3,
                              0x15, 0x15, 0x35, 0x2C, 0,    0,    0,    0};
    uint8_t got[16];
    fab_carrier(&c, got, from, to, 0x05A3C41F);
    CHECK_MEM(got, want, 16);
    CHECK_EQ(fab_un_shift(got, 0x1507), 0x25A3); /* the first T0 */
    CHECK_EQ(fab_un_shift(got, 0x25A3), 0x1515); /* the T1 */
    CHECK_EQ(fab_un_shift(got, 0x1515), 0x352C); /* the second T0 */
    const uint8_t end[16] = {0xFC, 0xBB, 0xBB, 0xBB, 0x35, 0x2C};
    CHECK_MEM(got, end, 16);
    CHECK_EQ(fab_un_shift(got, 0x352C), 0); /* used up: an empty place is no uSID */
}

TEST(fab_route__only_the_own_usid_behind_the_own_block_is_shifted)
{
    const uint8_t was[16] = {0xFC, 0xBB, 0xBB, 0xBB, 0x15, 0x07, 0x25, 0xA3};
    uint8_t da[16];
    memcpy(da, was, 16);
    CHECK_EQ(fab_un_shift(da, 0x1508), 0x1507); /* in transit: by what is active */
    CHECK_MEM(da, was, 16);
    da[3] ^= 1;
    CHECK_EQ(fab_un_shift(da, 0x1507), 0);
    CHECK_EQ(da[4], 0x15);
}

TEST(fab_route__within_one_t0_the_carrier_is_short)
{
    const struct fab_cfg c = {.number_bits = 8, .hosts_per_t0 = 4};
    const uint8_t want[16] = {0xFC, 0xBB, 0xBB, 0xBB, 0x12, 0x02, 0x32, 0x04};
    uint8_t got[16];
    fab_carrier(&c, got, 4, 7, 0x02090000);
    CHECK_MEM(got, want, 16);
}

TEST(fab_route__numbers_never_meet)
{
    static const uint32_t bits[] = {8, 9};
    static const uint32_t planes[] = {15, 8};
    static const uint32_t numbers[] = {255, 512};
    for (int w = 0; w < 2; w++) {
        const struct fab_cfg c = {.number_bits = bits[w]};
        static uint8_t seen[1 << 16];
        memset(seen, 0, sizeof seen);
        for (int role = FAB_ROLE_T0; role <= FAB_ROLE_HOST; role++)
            for (uint32_t p = 0; p < planes[w]; p++)
                for (uint32_t n = 0; n < numbers[w]; n++)
                    seen[fab_usid(&c, (enum fab_role)role, p, n)]++;
        uint32_t used = 0;
        for (uint32_t i = 0; i < 1 << 16; i++) {
            CHECK(seen[i] <= 1);
            used += seen[i];
            CHECK(seen[i] == 0 || (i >= 0x0001 && i <= 0xDFFF)); /* A.13.1: GIB */
        }
        CHECK_EQ(used, 3 * planes[w] * numbers[w]);
    }
}

/* ---- tables, walked ---- */

/* From switch to switch by the carrier; returns the host it ends at, FAB_NONE: nowhere. */
static uint32_t walk(const struct fab *f, uint32_t from, uint32_t to, uint32_t ev, uint32_t *links)
{
    uint8_t da[16];
    uint32_t link = fab_link_id(f, FAB_HOST_UP, (ev >> 24) - 1, from, 0);
    fab_carrier(&f->cfg, da, from, to, ev);
    for (int hop = 0; hop < 8; hop++) {
        links[hop] = link;
        links[hop + 1] = FAB_NONE;
        const struct fab_link *const l = &f->link[link];
        if (l->tier == FAB_HOST_DOWN)
            return l->to;
        const struct fab_switch *const s = &f->sw[l->to];
        link = fab_route_find(&s->routes, fab_un_shift(da, s->usid));
        if (link == FAB_NONE)
            return FAB_NONE;
    }
    return FAB_NONE;
}

static void walk_all(uint32_t number_bits)
{
    const uint32_t base = number_bits == 8 ? 1 : 0;
    struct rig *r = rig_new(3, 4, 5, 11);
    r->cfg.number_bits = number_bits;
    for (uint32_t i = 0; i < r->t.evs; i++)
        r->ev[i].ev -= (1 - base) << 16;
    rig_start(r);
    const struct fab *f = r->f;
    CHECK_EQ(f->cfg.hosts_per_t0, 3);
    for (uint32_t a = 0; a < 11; a++)
        for (uint32_t b = 0; b < 11; b++)
            for (uint32_t p = 0; p < 3; p++)
                for (uint32_t n = 0; n < 5 && a != b; n++) {
                    uint32_t links[10];
                    CHECK_EQ(walk(f, a, b, (p + 1) << 24 | (n + base) << 16, links), b);
                    const bool near = a / 3 == b / 3;
                    CHECK_EQ(links[1], near ? fab_link_id(f, FAB_HOST_DOWN, p, b, 0)
                                            : fab_link_id(f, FAB_T0_T1, p, a / 3, n));
                    CHECK_EQ(links[near ? 2 : 4], FAB_NONE);
                }
    uint32_t links[10];
    CHECK_EQ(walk(f, 0, 10, 1u << 24 | (5 + base) << 16, links), FAB_NONE); /* no such uplink */
    struct fab_sizes sizes;
    fab_sizes(f, &sizes);
    CHECK_EQ(sizes.routes_t0, 5 + 3);
    CHECK_EQ(sizes.routes_t1, 4);
    rig_end(r);
}

TEST(fab_route__every_ev_goes_where_it_says) { walk_all(8); }
TEST(fab_route__every_ev_goes_where_it_says_with_wide_numbers) { walk_all(9); }

/* ---- packets ---- */

TEST(fab_route__packets_spread_as_their_evs_say)
{
    struct rig *r = rig_new(2, 2, 3, 2);
    rig_msg(r, rig_qp(r, 0, 1), 600 * RIG_MTU, FAB_NONE);
    rig_start(r);
    rig_finish(r, MRC_SEC);
    rig_run(r, 10 * MRC_MSEC);
    uint64_t paths[6 * FAB_P_COLS];
    CHECK_EQ(fab_read_paths(r->f, 0, paths, 6), 6);
    for (uint32_t i = 0; i < 6; i++) {
        const uint64_t *row = paths + i * FAB_P_COLS;
        const uint32_t plane = (uint32_t)row[FAB_P_PLANE] - 1;
        const uint32_t up = fab_link_id(r->f, FAB_T0_T1, plane, 0, i / 2);
        CHECK(row[FAB_P_SENT] > 50);
        const uint64_t beside = rig_link(r, up, FAB_L_PACKETS) - row[FAB_P_SENT];
        CHECK(beside <= 2); /* a probe of the tail takes one of the paths */
    }
    CHECK_EQ(rig_link(r, fab_link_id(r->f, FAB_T0_T1, 0, 1, 0), FAB_L_DROPPED), 0);
    rig_end(r);
}

TEST(fab_route__hosts_of_one_t0_meet_there)
{
    struct rig *r = rig_new(2, 1, 2, 2);
    rig_msg(r, rig_qp(r, 0, 1), 100000, FAB_NONE);
    rig_start(r);
    rig_finish(r, MRC_SEC);
    for (uint32_t n = 0; n < 2; n++)
        CHECK_EQ(rig_link(r, fab_link_id(r->f, FAB_T0_T1, 0, 0, n), FAB_L_PACKETS), 0);
    rig_end(r);
}

TEST(fab_route__what_has_no_route_is_counted)
{
    struct rig *r = rig_new(1, 2, 2, 4);
    rig_start(r);
    struct fab_packet *p =
        rig_packet(r, 3, 1u << 24 | 3u << 16, FAB_DSCP_DATA, 100); /* uplink 3 of 2 */
    fab_link_enter(r->f, fab_link_id(r->f, FAB_HOST_UP, 0, 0, 0), p);
    rig_run(r, MRC_MSEC);
    CHECK_EQ(rig_dropped(r, FAB_DROP_NO_ROUTE), 1);
    p = rig_packet(r, 3, 1u << 24 | 2u << 16, FAB_DSCP_DATA, 100);
    p->heads[24] = 0xFD; /* not our block */
    fab_link_enter(r->f, fab_link_id(r->f, FAB_HOST_UP, 0, 0, 0), p);
    rig_run(r, 2 * MRC_MSEC);
    CHECK_EQ(rig_dropped(r, FAB_DROP_NO_ROUTE), 2);
    rig_end(r);
}

TEST(fab_route__each_switch_takes_one_of_the_hop_limit)
{
    struct rig *r = rig_new(1, 2, 2, 4);
    rig_start(r);
    for (uint8_t limit = 1; limit <= 4; limit++) {
        struct fab_packet *p = rig_packet(r, 3, 1u << 24 | 2u << 16, FAB_DSCP_DATA, 100);
        p->heads[7] = limit;
        fab_link_enter(r->f, fab_link_id(r->f, FAB_HOST_UP, 0, 0, 0), p);
    }
    rig_run(r, MRC_MSEC);
    CHECK_EQ(rig_dropped(r, FAB_DROP_HOP_LIMIT), 3); /* three switches on the way */
    CHECK_EQ(r->f->totals.delivered, 1);
    rig_end(r);
}

TEST(fab_route__a_host_takes_only_what_is_for_it)
{
    struct rig *r = rig_new(1, 2, 2, 4);
    rig_start(r);
    for (int i = 0; i < 3; i++) {
        struct fab_packet *p = rig_packet(r, 3, 1u << 24 | 2u << 16, FAB_DSCP_DATA, 100);
        mrc_put16(p->heads + 28, i == 2 ? 0x3101 : 0x3102);  /* downlink 1 or 2 of the T0 */
        p->heads[FAB_IPV6 + 39] = (uint8_t)(i == 1 ? 3 : 4); /* inside: host 3 or 4 */
        fab_host_arrive(r->f, 3, 0, p);
    }
    rig_run(r, MRC_MSEC);
    CHECK_EQ(rig_dropped(r, FAB_DROP_STRAY), 2);
    CHECK_EQ(r->f->totals.delivered, 1);
    rig_end(r);
}

TEST(fab_route__headers_say_what_a_12_and_a_13_want)
{
    struct rig *r = rig_new(2, 2, 2, 2);
    rig_start(r);
    struct fab_packet *p = rig_packet(r, 1, 0x0201C41F, FAB_DSCP_DATA, 1000);
    const uint8_t *h = p->heads;
    const uint32_t udp = 8 + 32 + 1000 + 4;
    CHECK_EQ(mrc_get32(h), 6u << 28 | (uint32_t)(FAB_DSCP_DATA << 2 | 2) << 20 | 0x0201);
    CHECK_EQ(mrc_get16(h + 4), 40 + udp);
    CHECK(h[6] == 41 && h[7] == 64);
    CHECK_EQ(mrc_get16(h + 8 + 2), 2); /* the sender's address of plane 2 */
    CHECK_EQ(mrc_get32(h + 40), mrc_get32(h));
    CHECK_EQ(mrc_get16(h + 44), udp);
    CHECK_EQ(h[46], 17);
    CHECK_EQ(mrc_get16(h + 80), 0xC41F);
    CHECK_EQ(mrc_get16(h + 82), MRC_UDP_PORT);
    CHECK_EQ(mrc_get16(h + 84), udp);
    CHECK_EQ(mrc_get16(h + 86), 0);
    CHECK_EQ(p->ip_bytes, 80 + udp);
    fab_packet_free(r->f, p);
    rig_end(r);
}
