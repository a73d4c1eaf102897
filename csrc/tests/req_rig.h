/* SPDX-License-Identifier: BSD-2-Clause */
/* A requester alone: side 0 of the hostile rig is real, its peer is what a test forges. */
#ifndef MRC_REQ_RIG_H
#define MRC_REQ_RIG_H

#include "hostile_rig.h"
#include "t.h"

enum {
    REQ_WINDOW = RIG_MPR * MRC_MPR_UNIT,
    REQ_NOMINAL = 8 + 32 + RIG_MTU + 4 + 40, /* of a full packet, E.1 */
    REQ_START = 100,                         /* first PSN */
    REQ_OUT_MAX = 2048,
};
enum { WRITE = MRC_WR_RDMA_WRITE, WIMM = MRC_WR_RDMA_WRITE_WITH_IMM };

/* What the requester sent last, decoded; payload is that of the region. */
static struct mrc_tx_pkt req_raw[REQ_OUT_MAX];
static struct mrc_pkt req_out[REQ_OUT_MAX];

static inline struct mrc_qp *req_qp(const struct rig *r) { return rig_qp(&r->s[0]); }
static inline struct mrc_req *req_of(const struct rig *r) { return &req_qp(r)->req; }

static inline void req_open(struct rig *r, uint8_t cc_kind)
{
    rig_open(r, REQ_START, cc_kind, false);
}

/* Everything that may leave now: -> req_raw, req_out. */
static inline size_t req_send(struct rig *r)
{
    static struct rig_pkt p;
    const size_t n = mrc_engine_tx(r->s[0].e, req_raw, REQ_OUT_MAX, r->now);
    RIG_NEED(n < REQ_OUT_MAX);
    for (size_t i = 0; i < n; i++) {
        rig_from_tx(r, 0, &req_raw[i], &p);
        RIG_NEED(mrc_wire_decode(&req_out[i], p.bytes, p.rx.len, false) == MRC_WIRE_OK);
        req_out[i].payload = req_raw[i].payload;
    }
    return n;
}

/* Time passes without a packet; every timer on the way is served, what leaves is lost. */
static inline void req_wait(struct rig *r, mrc_ns for_ns)
{
    const mrc_ns end = r->now + for_ns;
    while (mrc_engine_deadline(r->s[0].e) <= end) {
        r->now = mrc_max64(r->now, mrc_engine_deadline(r->s[0].e));
        mrc_engine_tick(r->s[0].e, r->now);
        (void)req_send(r);
    }
    r->now = end;
}

static inline mrc_ns t0_of(uint8_t timeout) { return (mrc_ns)1024 << timeout; }

static inline bool is_data(const struct mrc_pkt *p)
{
    return (mrc_opcode_flags(p->opcode) & MRC_OPF_DATA) != 0;
}

/* Until data (or a probe) leaves, or `limit` has passed: when, else MRC_NEVER. It is then the first
 * of what was sent; everything is lost on the way. */
static inline mrc_ns next_of(struct rig *r, mrc_ns limit, bool data)
{
    while (mrc_engine_deadline(r->s[0].e) <= limit && req_qp(r)->attr.state == MRC_QPS_RTS) {
        r->now = mrc_max64(r->now, mrc_engine_deadline(r->s[0].e));
        mrc_engine_tick(r->s[0].e, r->now);
        const size_t n = req_send(r);
        for (size_t i = 0; i < n; i++)
            if (is_data(&req_out[i]) == data) {
                req_out[0] = req_out[i];
                req_raw[0] = req_raw[i];
                return r->now;
            }
    }
    return MRC_NEVER;
}

static inline mrc_ns next_data(struct rig *r, mrc_ns limit) { return next_of(r, limit, true); }

static inline struct mrc_pkt req_answer(const struct rig *r, uint8_t opcode)
{
    struct mrc_pkt p;
    memset(&p, 0, sizeof p);
    p.opcode = opcode;
    p.dqp = r->s[0].qpn;
    p.entropy = RIG_EV0;
    p.syndrome = MRC_AETH_ACK;
    p.sack_offset = 1;
    return p;
}

static inline void req_hear(struct rig *r, const struct mrc_pkt *f)
{
    struct rig_pkt p;
    rig_forge(r, 0, f, 0, &p);
    rig_deliver(r, 0, &p);
}

/* A SACK for all up to cack, triggered by ack; rcvd is what the peer says it got, in bytes. */
static inline struct mrc_pkt req_sack(const struct rig *r, uint32_t cack, uint32_t ack,
                                      uint32_t rcvd)
{
    struct mrc_pkt p = req_answer(r, MRC_OP_SACK);
    p.psn = p.cack_psn = cack & 0xFFFFFF;
    p.ack_psn_offset = (int16_t)mrc_psn_diff(mrc_psn(ack), mrc_psn(cack));
    p.rcvd_bytes = (rcvd + 255) / 256 & 0xFFFFFF;
    return p;
}

/* The answer to a probe, one of ours or of the path table's. */
static inline struct mrc_pkt req_probe_answer(const struct rig *r, const struct mrc_pkt *probe,
                                              uint32_t ev, uint32_t cack, uint32_t rcvd)
{
    struct mrc_pkt f = req_sack(r, cack, cack, rcvd);
    f.pr = true;
    f.ack_psn_offset = 0;
    f.probe_id = probe->probe_id;
    f.tx_timestamp = probe->tx_timestamp;
    f.entropy = ev;
    return f;
}

static inline void req_hear_sack(struct rig *r, uint32_t cack, uint32_t ack, uint32_t rcvd)
{
    const struct mrc_pkt p = req_sack(r, cack, ack, rcvd);
    req_hear(r, &p);
}

static inline void req_hear_ack(struct rig *r, uint32_t psn)
{
    struct mrc_pkt p = req_answer(r, MRC_OP_ACK);
    p.psn = psn & 0xFFFFFF;
    req_hear(r, &p);
}

/* What the requester thinks of a PSN: ACKED below unack, FREE when it was never sent. */
static inline uint8_t req_state_of(const struct rig *r, uint32_t psn)
{
    const struct mrc_slot *s = mrc_txtrack_find(&req_of(r)->tx, mrc_psn(psn));
    if (!mrc_psn_after(mrc_psn(psn), req_of(r)->tx.unack))
        return MRC_SLOT_ACKED;
    return s != NULL ? s->state : MRC_SLOT_FREE;
}

/* The EV that the last copy of this PSN left on. */
static inline uint32_t req_ev(const struct rig *r, uint32_t psn)
{
    const struct mrc_slot *s = mrc_txtrack_slot(&req_of(r)->tx, mrc_psn(psn));
    return mrc_path_entry(r->s[0].path, s->ev)->ev;
}

static inline void req_hear_nack(struct rig *r, uint32_t psn, uint8_t reason)
{
    struct mrc_pkt p = req_answer(r, MRC_OP_NACK);
    p.psn = p.cack_psn = psn;
    p.nack_reason = reason;
    p.entropy = req_ev(r, psn);
    req_hear(r, &p);
}

/* Writes of so many bytes each, signalled. */
static inline void req_post(struct rig *r, uint32_t count, uint32_t length, uint8_t opcode)
{
    for (; count > 0; count--)
        CHECK_EQ(rig_post(r, 0, 0, length, opcode), 1);
}

static inline void req_close(struct rig *r)
{
    CHECK(rig_guards_ok(r));
    rig_close(r);
}

#endif
