/* SPDX-License-Identifier: BSD-2-Clause */
/* Bad packets one at a time: what a side holds before and after, and packets that would be right.
 */
#ifndef MRC_HOSTILE_SNAP_H
#define MRC_HOSTILE_SNAP_H

#include "hostile_rig.h"
#include "t.h"

/* ---- what must not change ---- */

struct snapshot {
    uint8_t *qp;
    uint8_t *path;
    uint8_t *buf;
    struct mrc_cc cc;
    uint64_t drops[MRC_DROP_COUNT];
    size_t qp_bytes;
    size_t path_bytes;
};

static inline size_t path_bytes(void)
{
    const struct mrc_path_cfg pc = {.count = RIG_EVS, .min_active = 1, .event_ring = 16};
    return mrc_path_size(&pc);
}

static inline uint8_t *copy_of(const void *from, size_t n)
{
    uint8_t *to = malloc(n);
    RIG_NEED(to != NULL);
    return memcpy(to, from, n);
}

static inline struct snapshot snap(const struct rig_side *s)
{
    struct snapshot k = {.qp_bytes = mrc_qp_size(&rig_qp_init), .path_bytes = path_bytes()};
    if (rig_qp(s) != NULL) /* what any packet does to the engine's lists, done before */
        mrc_engine_touch(s->e, rig_qp(s));
    k.qp = copy_of(s->qp_mem, k.qp_bytes);
    k.path = copy_of(s->path_mem, k.path_bytes);
    k.buf = copy_of(rig_buf(s, RIG_RW), RIG_BUF);
    k.cc = s->cc;
    memcpy(k.drops, s->e->env.drops, sizeof k.drops);
    return k;
}

/* All as before, but for one more drop, if any: for this reason. */
static inline void same(struct snapshot *k, const struct rig_side *s, enum mrc_drop why)
{
    for (uint32_t d = 0; d < MRC_DROP_COUNT; d++)
        if (s->e->env.drops[d] != k->drops[d] + (d == (uint32_t)why))
            t_fail_eq(__FILE__, __LINE__, mrc_drop_name((enum mrc_drop)d), s->e->env.drops[d],
                      k->drops[d] + (d == (uint32_t)why));
    CHECK_MEM(s->qp_mem, k->qp, k->qp_bytes);
    CHECK_MEM(s->path_mem, k->path, k->path_bytes);
    CHECK_MEM(rig_buf(s, RIG_RW), k->buf, RIG_BUF);
    CHECK(memcmp(&s->cc, &k->cc, sizeof k->cc) == 0);
    free(k->qp);
    free(k->path);
    free(k->buf);
}

static inline void dropped(struct rig *r, int to, const struct rig_pkt *p, enum mrc_drop why)
{
    struct snapshot k = snap(&r->s[to]);
    rig_deliver(r, to, p);
    same(&k, &r->s[to], why);
}

/* Exactly one packet dropped, whatever the reason, and nothing changed. Returns the reason. */
static inline enum mrc_drop dropped_somehow(struct rig *r, int to, const struct rig_pkt *p)
{
    struct snapshot k = snap(&r->s[to]);
    enum mrc_drop why = MRC_DROP_COUNT;
    rig_deliver(r, to, p);
    for (uint32_t d = 0; d < MRC_DROP_COUNT; d++)
        if (r->s[to].e->env.drops[d] != k.drops[d])
            why = (enum mrc_drop)d;
    CHECK(why != MRC_DROP_COUNT);
    same(&k, &r->s[to], why);
    return why;
}

/* ---- packets that would be right ---- */

static const uint8_t all_ops[] = {0xC6, 0xC7, 0xC8, 0xC9, 0xCA, 0xCB,
                                  0xD1, 0xD8, 0xD9, 0xDC, 0xDD, 0xDE};
static inline bool is_data(uint8_t op) { return (mrc_opcode_flags(op) & MRC_OPF_DATA) != 0; }
static inline bool is_ep(uint8_t op) { return op == MRC_OP_EP_REQUEST || op == MRC_OP_EP_RESPONSE; }

/* The next packet of this kind that side `to` would take. */
static inline struct mrc_pkt right(const struct rig *r, int to, uint8_t op)
{
    const struct rig_side *s = &r->s[to];
    const struct mrc_qp *q = rig_qp(s);
    struct mrc_pkt p;
    memset(&p, 0, sizeof p);
    p.opcode = op;
    p.dqp = s->qpn;
    p.entropy = RIG_EV0;
    p.psn = is_data(op) ? mrc_psn_add(q->resp.rx.cack, 1).v : q->req.tx.unack.v;
    p.cack_psn = q->req.tx.unack.v;
    p.sack_offset = 1;
    p.syndrome = MRC_AETH_ACK;
    p.nack_reason = MRC_NACK_NO_RESOURCE;
    p.va = rig_va(s, RIG_RW);
    p.r_key = s->key[RIG_RW];
    p.payload_len = is_data(op) ? RIG_MTU : 0;
    p.dmalen = p.payload_len;
    return p;
}

static inline struct rig_pkt forged(const struct rig *r, int to, const struct mrc_pkt *f)
{
    struct rig_pkt p;
    rig_forge(r, to, f, 0xEE, &p);
    return p;
}

static inline struct rig_pkt forged_op(const struct rig *r, int to, uint8_t op)
{
    const struct mrc_pkt f = right(r, to, op);
    return forged(r, to, &f);
}

#endif
