/* SPDX-License-Identifier: BSD-2-Clause */
/* Two connected engines and a forger who knows everything: addresses, QPNs, PSNs, keys. Shared by
 * test_hostile.c and fuzz_engine.c. Packets are delivered in blocks of exactly their size, so that
 * a sanitizer sees every byte read too many; memory around the regions is watched. */
#ifndef MRC_HOSTILE_RIG_H
#define MRC_HOSTILE_RIG_H

#include <stdio.h>
#include <stdlib.h>

#include "mrc_engine_int.h"

#ifndef RIG_EVS
#define RIG_EVS 4
#endif

enum {
    RIG_MTU = 256,
    RIG_BUF = 1 << 15,
    RIG_GUARD = 4096,
    RIG_BURST = 64,
    RIG_CQ = 64,
    RIG_WIMM = 8,
    RIG_MPR = 8, /* 1024 PSNs: wider than a SACK's bitmap */
    RIG_PKT_MAX = 9000,
    RIG_PD = 7,
    RIG_EV0 = 0x0001C000,
    RIG_TRIMMED = 12,
    RIG_TRIMMED_LASTHOP = 16,
};

enum rig_region { RIG_RW = 0, RIG_LOCAL, RIG_OTHER_PD, RIG_REGIONS };

struct rig_side {
    struct mrc_engine *e;
    struct mrc_path_table *path;
    struct mrc_cc cc;
    void *mem;
    void *path_mem;
    void *cq_mem;
    void *qp_mem;
    uint8_t *block[RIG_REGIONS]; /* guard | region | guard */
    uint32_t key[RIG_REGIONS];
    uint32_t path_id;
    uint32_t cc_id;
    uint32_t qpn;
    uint8_t addr[16];
    uint64_t delivered; /* packets given to it */
};

struct rig {
    struct rig_side s[2];
    mrc_ns now;
    uint32_t start_psn;
    uint8_t exp_cnt;
    uint8_t cc_kind;
    bool dynamic_mpr;
};

#define RIG_NEED(cond)                                                                             \
    do {                                                                                           \
        if (!(cond)) {                                                                             \
            fprintf(stderr, "%s:%d: rig: %s\n", __FILE__, __LINE__, #cond);                        \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

static inline uint8_t *rig_buf(const struct rig_side *s, enum rig_region k)
{
    return s->block[k] + RIG_GUARD;
}
static inline uint64_t rig_va(const struct rig_side *s, enum rig_region k)
{
    return (uint64_t)(uintptr_t)rig_buf(s, k);
}
static inline struct mrc_qp *rig_qp(const struct rig_side *s)
{
    return mrc_engine_qp(s->e, s->qpn);
}

/* ---- life ---- */

static const struct mrc_qp_init rig_qp_init = {.pd = RIG_PD,
                                               .sq_depth = 16,
                                               .rq_depth = 16,
                                               .mpr_max = RIG_MPR,
                                               .max_wimm_dest = RIG_WIMM,
                                               .ev_max = RIG_EVS};

static inline void rig_regions(struct rig_side *s, uint32_t id)
{
    static const uint8_t access[RIG_REGIONS] = {3, MRC_ACCESS_LOCAL_WRITE, 3};
    static const uint32_t pd[RIG_REGIONS] = {RIG_PD, RIG_PD, RIG_PD + 1};
    for (int k = 0; k < RIG_REGIONS; k++) {
        s->block[k] = malloc(RIG_BUF + 2 * RIG_GUARD);
        RIG_NEED(s->block[k] != NULL);
        memset(s->block[k], 0x5A, RIG_BUF + 2 * RIG_GUARD);
        RIG_NEED(mrc_mr_register(s->e, pd[k], rig_buf(s, (enum rig_region)k), RIG_BUF, access[k],
                                 0x9E3779B1u * (id * 8 + (uint32_t)k + 1), &s->key[k]) == MRC_OK);
    }
}

static inline void rig_side_open(struct rig_side *s, uint8_t id, uint8_t cc_kind)
{
    const struct mrc_engine_cfg cfg = {.seed = id,
                                       .qp_max = 4,
                                       .mr_max = 4,
                                       .cq_max = 2,
                                       .path_max = 2,
                                       .cc_max = 2,
                                       .dscp_trimmed = RIG_TRIMMED,
                                       .dscp_trimmed_lasthop = RIG_TRIMMED_LASTHOP,
                                       .hint_max = 2};
    const struct mrc_path_cfg pc = {
        .count = RIG_EVS, .min_active = 1, .event_ring = 16, .seed = id};
    const struct mrc_cc_cfg cc = {.kind = cc_kind, .max_cwnd_bytes = 1 << 20, .mtu_bytes = RIG_MTU};
    struct mrc_path_entry_cfg entry[RIG_EVS] = {0};
    s->mem = malloc(mrc_engine_size(&cfg));
    s->e = mrc_engine_init(s->mem, &cfg, 0);
    for (uint32_t i = 0; i < RIG_EVS; i++) {
        entry[i].ev = RIG_EV0 + i;
        entry[i].plane = (uint8_t)(1 + i % 2);
        entry[i].lane = i;
    }
    s->path_mem = malloc(mrc_path_size(&pc));
    s->path = mrc_path_init(s->path_mem, &pc, entry, 0);
    s->path_id = (uint32_t)mrc_path_attach(s->e, s->path);
    RIG_NEED(mrc_cc_init(&s->cc, &cc, 0) == MRC_OK);
    s->cc_id = (uint32_t)mrc_cc_attach(s->e, &s->cc);
    s->cq_mem = malloc(mrc_cq_size(RIG_CQ));
    RIG_NEED(mrc_cq_create(s->e, s->cq_mem, RIG_CQ) == 0);
    s->qp_mem = malloc(mrc_qp_size(&rig_qp_init));
    s->qpn = (uint32_t)mrc_qp_create(s->e, s->qp_mem, &rig_qp_init);
    s->addr[0] = 0xFD;
    s->addr[15] = id;
    rig_regions(s, id);
}

/* To RESET, which gives it a new number. */
static inline void rig_reset(struct rig *r, int i)
{
    const struct mrc_qp_attr reset = {.state = MRC_QPS_RESET};
    struct rig_side *s = &r->s[i];
    const int qpn = mrc_qp_modify(s->e, s->qpn, &reset, MRC_QP_STATE, r->now);
    RIG_NEED(qpn > MRC_QPN_EP && (uint32_t)qpn != s->qpn);
    s->qpn = (uint32_t)qpn;
}

/* RESET or INIT to `state`, through what lies between. */
static inline void rig_bring_up(struct rig *r, int side, enum mrc_qp_state state)
{
    struct rig_side *s = &r->s[side];
    const struct rig_side *peer = &r->s[1 - side];
    struct mrc_qp_attr a = {.state = MRC_QPS_INIT,
                            .access = 3,
                            .dest_qpn = peer->qpn,
                            .path_mtu = RIG_MTU,
                            .rq_psn = r->start_psn,
                            .sq_psn = r->start_psn,
                            .path = s->path_id,
                            .cc = s->cc_id,
                            .mpr = RIG_MPR,
                            .mpr_dest = RIG_MPR,
                            .max_wimm = RIG_WIMM,
                            .max_wimm_dest = RIG_WIMM,
                            .timeout = 10,
                            .linear_cnt = 3,
                            .exp_cnt = r->exp_cnt,
                            .cap = r->dynamic_mpr ? MRC_QP_CAP_DYNAMIC_MPR : 0};
    memcpy(a.src, s->addr, 16);
    memcpy(a.dst, peer->addr, 16);
    if (state < MRC_QPS_INIT)
        return;
    if (rig_qp(s)->attr.state == MRC_QPS_RESET)
        RIG_NEED(mrc_qp_modify(s->e, s->qpn, &a, MRC_QP_STATE | MRC_QP_ACCESS | MRC_QP_CAP,
                               r->now) == MRC_OK);
    if (state < MRC_QPS_RTR)
        return;
    a.state = MRC_QPS_RTR;
    RIG_NEED(mrc_qp_modify(s->e, s->qpn, &a,
                           MRC_QP_STATE | MRC_QP_AV | MRC_QP_RQ_PSN | MRC_QP_PATH |
                               MRC_QP_MPR_DEST | MRC_QP_WIMM_DEST,
                           r->now) == MRC_OK);
    if (state < MRC_QPS_RTS)
        return;
    a.state = MRC_QPS_RTS;
    RIG_NEED(mrc_qp_modify(s->e, s->qpn, &a,
                           MRC_QP_STATE | MRC_QP_SQ_PSN | MRC_QP_CC | MRC_QP_MPR | MRC_QP_WIMM |
                               MRC_QP_TIMEOUT | MRC_QP_RETRY,
                           r->now) == MRC_OK);
}

static inline void rig_open(struct rig *r, uint32_t start_psn, uint8_t cc_kind, bool dynamic_mpr)
{
    memset(r, 0, sizeof *r);
    r->now = MRC_SEC;
    r->start_psn = start_psn;
    r->exp_cnt = 3;
    r->cc_kind = cc_kind;
    r->dynamic_mpr = dynamic_mpr;
    rig_side_open(&r->s[0], 1, cc_kind);
    rig_side_open(&r->s[1], 2, cc_kind);
    for (int i = 0; i < 2; i++) {
        struct mrc_ep_addr to = {.dport = 0, .own_port = 0};
        memcpy(to.src, r->s[i].addr, 16);
        memcpy(to.dst, r->s[1 - i].addr, 16);
        RIG_NEED(mrc_path_lead(r->s[i].e, r->s[i].path_id, &to) == MRC_OK);
    }
    rig_bring_up(r, 0, MRC_QPS_RTS);
    rig_bring_up(r, 1, MRC_QPS_RTS);
}

static inline void rig_close(struct rig *r)
{
    for (int i = 0; i < 2; i++) {
        struct rig_side *s = &r->s[i];
        RIG_NEED(mrc_qp_destroy(s->e, s->qpn) == s->qp_mem);
        RIG_NEED(mrc_path_detach(s->e, s->path_id) == s->path);
        RIG_NEED(mrc_cc_detach(s->e, s->cc_id) == &s->cc);
        for (int k = 0; k < RIG_REGIONS; k++) {
            RIG_NEED(mrc_mr_deregister(s->e, s->key[k]) == MRC_OK);
            free(s->block[k]);
        }
        free(s->qp_mem);
        free(s->path_mem);
        free(s->cq_mem);
        free(s->mem);
    }
}

/* Has anything been written where nobody may write? */
static inline bool rig_guards_ok(const struct rig *r)
{
    static uint8_t clean[RIG_BUF + 2 * RIG_GUARD];
    if (clean[0] == 0)
        memset(clean, 0x5A, sizeof clean);
    for (int i = 0; i < 2; i++) {
        const struct rig_side *s = &r->s[i];
        if (memcmp(s->block[RIG_RW], clean, RIG_GUARD) != 0 ||
            memcmp(s->block[RIG_RW] + RIG_GUARD + RIG_BUF, clean, RIG_GUARD) != 0 ||
            memcmp(s->block[RIG_LOCAL], clean, sizeof clean) != 0 ||
            memcmp(s->block[RIG_OTHER_PD], clean, sizeof clean) != 0)
            return false;
    }
    return true;
}

/* ---- packets ---- */

struct rig_pkt {
    struct mrc_rx_pkt rx; /* bytes is set when it is delivered */
    uint8_t bytes[RIG_PKT_MAX];
};

/* Where it comes from, the lengths, and an iCRC that fits what is there now. */
static inline void rig_seal(const struct rig *r, int to, struct rig_pkt *p)
{
    memcpy(p->rx.src, r->s[1 - to].addr, 16);
    memcpy(p->rx.dst, r->s[to].addr, 16);
    p->rx.udp_len = (uint16_t)(p->rx.len + 8);
    if (p->rx.len < MRC_BTH_LEN + MRC_ICRC_LEN)
        return;
    const mrc_crc32_fn crc = r->s[to].e->env.crc;
    uint32_t reg =
        mrc_icrc6_begin(crc, p->rx.src, p->rx.dst, p->rx.sport, p->rx.dport, p->rx.udp_len);
    reg = mrc_icrc_bth(crc, reg, p->bytes, p->rx.len - MRC_ICRC_LEN);
    mrc_icrc_end(reg, p->bytes + p->rx.len - MRC_ICRC_LEN);
}

/* Forge a packet towards side `to` from its fields; payload bytes are `fill`. */
static inline void rig_forge(const struct rig *r, int to, const struct mrc_pkt *f, uint8_t fill,
                             struct rig_pkt *p)
{
    struct mrc_pkt h = *f;
    memset(p, 0, sizeof *p);
    h.pad = (uint8_t)(-f->payload_len & 3u);
    size_t n = mrc_wire_encode(p->bytes, &h);
    memset(p->bytes + n, fill, f->payload_len);
    n += f->payload_len;
    memset(p->bytes + n, 0, h.pad);
    n += h.pad;
    p->rx.len = (uint32_t)n + MRC_ICRC_LEN;
    p->rx.sport = (uint16_t)RIG_EV0;
    p->rx.flow_label = RIG_EV0 >> 16;
    p->rx.tclass = 2;
    rig_seal(r, to, p);
}

static inline void rig_deliver(struct rig *r, int to, const struct rig_pkt *p)
{
    uint8_t *exact = malloc(p->rx.len != 0 ? p->rx.len : 1);
    RIG_NEED(exact != NULL);
    memcpy(exact, p->bytes, p->rx.len);
    struct mrc_rx_pkt rx = p->rx;
    rx.bytes = exact;
    r->s[to].delivered++;
    mrc_engine_rx(r->s[to].e, &rx, 1, r->now);
    free(exact);
}

/* One packet of an engine as it looks on the wire. */
static inline void rig_from_tx(const struct rig *r, int from, const struct mrc_tx_pkt *t,
                               struct rig_pkt *p)
{
    memset(&p->rx, 0, sizeof p->rx);
    memcpy(p->bytes, t->hdr, t->hdr_len);
    if (t->payload_len > 0)
        memcpy(p->bytes + t->hdr_len, t->payload, t->payload_len);
    memcpy(p->bytes + t->hdr_len + t->payload_len, t->tail, t->tail_len);
    p->rx.udp_len = mrc_tx_udp_len(t);
    p->rx.len = p->rx.udp_len - 8u;
    p->rx.sport = (uint16_t)t->ev;
    p->rx.flow_label = t->ev >> 16;
    p->rx.tclass = t->tclass;
    memcpy(p->rx.src, r->s[from].addr, 16);
    memcpy(p->rx.dst, r->s[1 - from].addr, 16);
}

/* Everything due at `from` goes across, at most a burst. */
static inline size_t rig_move(struct rig *r, int from)
{
    struct mrc_tx_pkt tx[RIG_BURST];
    struct rig_pkt p;
    const size_t n = mrc_engine_tx(r->s[from].e, tx, RIG_BURST, r->now);
    for (size_t i = 0; i < n; i++) {
        rig_from_tx(r, from, &tx[i], &p);
        rig_deliver(r, 1 - from, &p);
    }
    return n;
}

/* Until nothing is left to say; false: not within the bound. */
static inline bool rig_settle(struct rig *r)
{
    for (int round = 0; round < 20000; round++) {
        r->now += 10 * MRC_USEC;
        const size_t moved = rig_move(r, 0) + rig_move(r, 1);
        for (int i = 0; i < 2; i++)
            mrc_engine_tick(r->s[i].e, r->now);
        if (moved != 0 || mrc_engine_tx_pending(r->s[0].e) || mrc_engine_tx_pending(r->s[1].e))
            continue;
        if (rig_qp(&r->s[0])->req.head == rig_qp(&r->s[0])->req.tail &&
            rig_qp(&r->s[1])->req.head == rig_qp(&r->s[1])->req.tail)
            return true;
    }
    return false;
}

static inline int rig_post(struct rig *r, int from, uint64_t off, uint32_t len, uint8_t opcode)
{
    struct rig_side *s = &r->s[from];
    const struct rig_side *peer = &r->s[1 - from];
    const struct mrc_send_wr wr = {.wr_id = off,
                                   .laddr = rig_va(s, RIG_RW) + off,
                                   .raddr = rig_va(peer, RIG_RW) + off,
                                   .length = len,
                                   .lkey = s->key[RIG_RW],
                                   .rkey = peer->key[RIG_RW],
                                   .imm = 0x01020304,
                                   .opcode = opcode,
                                   .flags = MRC_SEND_SIGNALED};
    return mrc_qp_post_send(s->e, s->qpn, &wr, 1);
}

#endif
