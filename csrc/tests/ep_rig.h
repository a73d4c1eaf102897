/* SPDX-License-Identifier: BSD-2-Clause */
/* Endpoint packets between two connected engines: made, delivered, taken. */
#ifndef EP_RIG_H
#define EP_RIG_H

#include "hostile_rig.h"

static inline void open_pair(struct rig *r) { rig_open(r, 100, MRC_CC_FIXED, false); }

static inline uint64_t drops(const struct rig *r, int side, enum mrc_drop d)
{
    return mrc_engine_drops(r->s[side].e, d);
}

static inline struct mrc_pkt request(uint8_t op, uint16_t id)
{
    return (struct mrc_pkt){.opcode = MRC_OP_EP_REQUEST,
                            .dqp = MRC_QPN_EP,
                            .psn = id,
                            .ep_op = op,
                            .tx_timestamp = 0x1234,
                            .ftype = 1,
                            .port_status_mask = MRC_PLANES_ALL};
}

static inline void deliver(struct rig *r, int to, const struct mrc_pkt *f, uint32_t ev)
{
    struct rig_pkt p;
    rig_forge(r, to, f, 0, &p);
    p.rx.sport = (uint16_t)ev;
    p.rx.flow_label = ev >> 16;
    rig_seal(r, to, &p);
    rig_deliver(r, to, &p);
}

/* What side `from` sends now; endpoint packets only, decoded. */
static inline size_t sent(struct rig *r, int from, struct mrc_pkt *out, struct mrc_tx_pkt *tx)
{
    const size_t n = mrc_engine_tx(r->s[from].e, tx, RIG_BURST, r->now);
    for (size_t i = 0; i < n; i++) {
        struct rig_pkt p;
        rig_from_tx(r, from, &tx[i], &p);
        CHECK(mrc_wire_decode(&out[i], p.bytes, p.rx.len, false) == MRC_WIRE_OK);
        CHECK_EQ(out[i].dqp, MRC_QPN_EP);
    }
    return n;
}

static inline void tick(struct rig *r, mrc_ns later)
{
    r->now += later;
    for (int i = 0; i < 2; i++)
        mrc_engine_tick(r->s[i].e, r->now);
}

static inline struct mrc_ep_planes planes(const struct rig *r, int side)
{
    struct mrc_ep_planes p = {0};
    CHECK_EQ(mrc_path_planes(r->s[side].e, r->s[side].path_id, &p), MRC_OK);
    return p;
}

static inline struct mrc_ep_req probe(const struct rig *r, int side, uint32_t i, uint16_t id)
{
    return (struct mrc_ep_req){.timeout_ns = 5 * MRC_MSEC,
                               .path = r->s[side].path_id,
                               .ev = RIG_EV0 + i,
                               .id = id,
                               .dscp = MRC_EP_DSCP_CONTROL};
}

#endif
