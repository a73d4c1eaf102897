/* SPDX-License-Identifier: BSD-2-Clause */
/* Small fabrics for tests: tables that grow as they are needed, and the checks that hold after
 * every run. */
#ifndef FAB_RIG_H
#define FAB_RIG_H

#include "../sim/fab_int.h"
#include "t.h"

enum { RIG_MAX = 4096, RIG_MTU = 4096 };

struct rig {
    struct fab_cfg cfg;
    struct fab_tables t;
    struct fab_ev ev[RIG_MAX];
    struct fab_qp qp[RIG_MAX];
    struct mrc_cc_cfg cc[2];
    struct fab_msg msg[RIG_MAX];
    struct fab_bulk bulk[RIG_MAX];
    struct fab *f;
};

/* Two T0s with one T1 per plane wide as asked; 10 Gbit/s, 2 us per cable, everything verified. */
static inline struct rig *rig_new(uint32_t planes, uint32_t t0, uint32_t t1, uint32_t hosts)
{
    struct rig *const r = calloc(1, sizeof *r);
    if (r == NULL)
        abort();
    r->cfg = (struct fab_cfg){
        .seed = 1,
        .planes = planes,
        .t0 = t0,
        .t1 = t1,
        .hosts = hosts,
        .rate_bps = 10000000000,
        .delay_ns = 2000,
        .mtu_bytes = 9216,
        .queue_bytes = {[SIM_DATA] = 200000, [SIM_CONTROL] = 100000, [SIM_TRIMMED] = 100000},
        .mark_lo_bytes = 20000,
        .mark_hi_bytes = 80000,
        .icrc = 1,
        .verify = 1,
        .turn_ns = 200,
    };
    r->cc[0] = (struct mrc_cc_cfg){.kind = MRC_CC_NSCC,
                                   .mtu_bytes = RIG_MTU,
                                   .link_bps = r->cfg.rate_bps * planes,
                                   .base_rtt_ns = 32000};
    r->t = (struct fab_tables){
        .ev = r->ev, .qp = r->qp, .cc = r->cc, .msg = r->msg, .bulk = r->bulk, .ccs = 1};
    /* Every path once, planes fastest. */
    for (uint32_t n = 0; n < (t1 > 0 ? t1 : 1); n++)
        for (uint32_t p = 0; p < planes; p++) {
            const uint32_t i = r->t.evs++;
            r->ev[i].ev = (p + 1) << 24 | (n + 1) << 16 | (49152 + i);
        }
    return r;
}

/* The flow from a to b; the other direction is the next one. */
static inline uint32_t rig_qp(struct rig *r, uint32_t a, uint32_t b)
{
    const uint32_t i = r->t.qps++;
    r->qp[i] = (struct fab_qp){.a = a,
                               .b = b,
                               .ev_count = r->t.evs,
                               .depth = 16,
                               .mtu = RIG_MTU,
                               .mpr = 8,
                               .min_active = 1,
                               .timeout = 9,
                               .linear_cnt = 7,
                               .exp_cnt = 10,
                               .train_max = 1};
    return 2 * i;
}

static inline uint32_t rig_msg(struct rig *r, uint32_t flow, uint32_t bytes, uint32_t after)
{
    const uint32_t i = r->t.msgs++;
    r->msg[i] = (struct fab_msg){.flow = flow, .bytes = bytes, .after = {after, FAB_NONE}};
    return i;
}

static inline void rig_bulk(struct rig *r, uint32_t flow, uint32_t bytes, mrc_ns stop)
{
    r->bulk[r->t.bulks++] = (struct fab_bulk){.flow = flow, .bytes = bytes, .stop_ns = stop};
}

static inline void rig_start(struct rig *r)
{
    char why[FAB_WHY_MAX] = "";
    r->f = fab_create(&r->cfg, &r->t, why);
    if (r->f == NULL) {
        printf("fab_create: %s\n", why);
        abort();
    }
}

/* Every packet sent is delivered, dropped with a counted reason, or in flight. */
static inline void rig_conserved(const struct rig *r)
{
    struct fab_totals t;
    uint64_t dropped = 0;
    uint64_t in_flight = 0;
    fab_totals(r->f, &t);
    for (int d = 0; d < FAB_DROPS; d++)
        dropped += t.dropped[d];
    CHECK_EQ(t.sent + t.copied, t.delivered + dropped + t.in_flight);
    for (uint32_t l = 0; l < r->f->links; l++) {
        const struct fab_link *const link = &r->f->link[l];
        in_flight += link->port.sending != NULL;
        for (int c = 0; c < SIM_CLASSES; c++)
            for (const struct sim_item *i = link->port.head[c]; i != NULL; i = i->next)
                in_flight++;
        for (const struct fab_packet *p = link->head; p != NULL; p = p->next)
            in_flight++;
    }
    for (uint32_t h = 0; h < r->f->cfg.hosts; h++)
        for (const struct fab_packet *p = r->f->host[h].held; p != NULL; p = p->next)
            in_flight++;
    CHECK_EQ(t.in_flight, in_flight); /* each is somewhere */
}

static inline void rig_run(struct rig *r, mrc_ns until)
{
    if (fab_run(r->f, until, false) != MRC_OK)
        t_fail(__FILE__, __LINE__, fab_failure(r->f));
    rig_conserved(r);
}

/* Until all messages have arrived. */
static inline mrc_ns rig_finish(struct rig *r, mrc_ns limit)
{
    if (fab_run(r->f, limit, true) != MRC_OK)
        t_fail(__FILE__, __LINE__, fab_failure(r->f));
    CHECK_EQ(fab_messages_left(r->f), 0);
    rig_conserved(r);
    return fab_now(r->f);
}

static inline uint64_t rig_flow(const struct rig *r, uint32_t flow, enum fab_flow_col col)
{
    uint64_t row[FAB_F_COLS] = {0};
    CHECK_EQ(fab_read_flows(r->f, row, flow, 1), 1);
    return row[col];
}

static inline uint64_t rig_link(const struct rig *r, uint32_t link, enum fab_link_col col)
{
    uint64_t row[FAB_L_COLS] = {0};
    CHECK_EQ(fab_read_links(r->f, row, link, 1, false), 1);
    return row[col];
}

static inline uint64_t rig_dropped(const struct rig *r, enum fab_drop why)
{
    struct fab_totals t;
    fab_totals(r->f, &t);
    return t.dropped[why];
}

static inline void rig_set(struct rig *r, enum fab_tier tier, uint32_t plane, uint32_t a,
                           uint32_t b, enum fab_knob knob, uint64_t value)
{
    CHECK_EQ(fab_link_set(r->f, fab_link_id(r->f, tier, plane, a, b), knob, value), MRC_OK);
}

/* A packet as an engine would emit it, to host `to`. */
static inline struct fab_packet *rig_packet(struct rig *r, uint32_t to, uint32_t ev, uint32_t dscp,
                                            uint32_t payload)
{
    static const uint8_t bytes[RIG_MTU];
    struct mrc_tx_pkt tx = {.ev = ev,
                            .lane = to,
                            .port = (uint8_t)((ev >> 24) - 1),
                            .tclass = (uint8_t)(dscp << 2 | 2),
                            .hdr_len = 32,
                            .tail_len = 4,
                            .payload = bytes,
                            .payload_len = payload};
    struct fab_packet *p = fab_packet_new(r->f);
    fab_packet_fill(r->f, p, 0, to, &tx);
    r->f->totals.sent++;
    return p;
}

static inline void rig_end(struct rig *r)
{
    fab_destroy(r->f);
    free(r);
}

#endif
