/* SPDX-License-Identifier: BSD-2-Clause */
/* Side 1 of the hostile rig as the responder under test: forged packets in, its answers decoded.
 * Shared by test_resp*.c. */
#ifndef MRC_RESP_RIG_H
#define MRC_RESP_RIG_H

#include "hostile_rig.h"

enum { RESP_ANSWERS = 512, RESP_FIRST = 100, RESP_WINDOW = RIG_MPR * MRC_MPR_UNIT };

struct resp_rig {
    struct rig r;
    struct mrc_pkt out[RESP_ANSWERS]; /* answers of the last resp_take */
    uint32_t out_ev[RESP_ANSWERS];
    uint8_t out_tclass[RESP_ANSWERS];
    size_t n;
};

static struct resp_rig resp;

static inline struct mrc_engine *resp_engine(void) { return resp.r.s[1].e; }
static inline struct mrc_qp *resp_qp(void) { return rig_qp(&resp.r.s[1]); }
static inline struct mrc_rxload *resp_load(void) { return &resp_engine()->env.rx; }
static inline uint64_t resp_drops(enum mrc_drop d) { return mrc_engine_drops(resp_engine(), d); }
static inline uint8_t *resp_buf(void) { return rig_buf(&resp.r.s[1], RIG_RW); }

/* A QP whose first PSN is RESP_FIRST. */
static inline void resp_open(bool dynamic_mpr)
{
    rig_open(&resp.r, RESP_FIRST, MRC_CC_FIXED, dynamic_mpr);
    resp.n = 0;
}
static inline void resp_close(void)
{
    RIG_NEED(rig_guards_ok(&resp.r));
    rig_close(&resp.r);
}

/* A packet with PSN RESP_FIRST + i: one path MTU, unless it ends a message; its place is its own.
 */
static inline struct mrc_pkt resp_pkt(uint32_t i, uint8_t op)
{
    const struct rig_side *s = &resp.r.s[1];
    struct mrc_pkt p;
    memset(&p, 0, sizeof p);
    p.opcode = op;
    p.dqp = s->qpn;
    p.psn = (RESP_FIRST + i) & 0xFFFFFF;
    p.va = rig_va(s, RIG_RW) + (uint64_t)(i % (RIG_BUF / RIG_MTU)) * RIG_MTU;
    p.r_key = s->key[RIG_RW];
    p.payload_len = RIG_MTU;
    return p;
}

/* Give it, on an EV of the table, as it is or marked or in another class. */
static inline void resp_give_as(const struct mrc_pkt *f, uint32_t ev, uint8_t tclass)
{
    struct rig_pkt p;
    rig_forge(&resp.r, 1, f, (uint8_t)(f->psn ^ 0x80), &p);
    p.rx.sport = (uint16_t)ev;
    p.rx.flow_label = ev >> 16;
    rig_seal(&resp.r, 1, &p);
    p.rx.tclass = tclass;
    rig_deliver(&resp.r, 1, &p);
}
static inline void resp_give(const struct mrc_pkt *f) { resp_give_as(f, RIG_EV0, 2); }

/* A message of one packet, in the middle of nothing special. */
static inline void resp_only(uint32_t i)
{
    const struct mrc_pkt p = resp_pkt(i, MRC_OP_WRITE_ONLY);
    resp_give(&p);
}

/* All that is due leaves; returns how many. */
static inline size_t resp_take(void)
{
    static struct mrc_tx_pkt tx[RESP_ANSWERS];
    struct rig_pkt p;
    resp.n = mrc_engine_tx(resp_engine(), tx, RESP_ANSWERS, resp.r.now);
    for (size_t i = 0; i < resp.n; i++) {
        rig_from_tx(&resp.r, 1, &tx[i], &p);
        RIG_NEED(mrc_wire_decode(&resp.out[i], p.bytes, p.rx.len, false) == MRC_WIRE_OK);
        resp.out_ev[i] = tx[i].ev;
        resp.out_tclass[i] = tx[i].tclass;
    }
    return resp.n;
}

/* The n-th answer of this kind of the last resp_take; NULL: there is none. */
static inline const struct mrc_pkt *resp_answer(uint8_t opcode, size_t n)
{
    for (size_t i = 0; i < resp.n; i++)
        if (resp.out[i].opcode == opcode && n-- == 0)
            return &resp.out[i];
    return NULL;
}
/* The first of this kind; a blank one (opcode 0) when there is none. */
static inline const struct mrc_pkt *resp_first(uint8_t opcode)
{
    static const struct mrc_pkt blank;
    const struct mrc_pkt *p = resp_answer(opcode, 0);
    return p != NULL ? p : &blank;
}
static inline size_t resp_count(uint8_t opcode)
{
    size_t n = 0;
    while (resp_answer(opcode, n) != NULL)
        n++;
    return n;
}

/* The packet that a SACK says it was triggered by (A.7). */
static inline uint32_t resp_acked(const struct mrc_pkt *sack)
{
    return mrc_psn_add(mrc_psn(sack->cack_psn), sack->ack_psn_offset).v;
}

/* The first packet of a connection is answered in any case: out of the way with it. */
static inline void resp_begin(void)
{
    resp_only(0);
    (void)resp_take();
}

/* Post receives with ids 0, 1, ... */
static inline void resp_receives(uint64_t n)
{
    for (uint64_t i = 0; i < n; i++)
        RIG_NEED(mrc_qp_post_recv(resp_engine(), resp.r.s[1].qpn, &i, 1) == 1);
}

/* Attributes of the responder's QP changed under way. */
static inline int resp_modify(const struct mrc_qp_attr *a, uint32_t mask)
{
    return mrc_qp_modify(resp_engine(), resp.r.s[1].qpn, a, mask, resp.r.now);
}

#endif
