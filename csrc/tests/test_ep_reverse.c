/* SPDX-License-Identifier: BSD-2-Clause */
/* Endpoint operations that keep the reverse set (D.8), and a port status sent by hand (C.7). */
#include "t.h"

#include "ep_rig.h"

/* Side 1 answers data of which it does not know the EV, and a round passes. */
static size_t receive_only(struct rig *r, struct mrc_pkt *p, struct mrc_tx_pkt *tx)
{
    mrc_path_reverse_data(r->s[1].path, &rig_qp(&r->s[1])->resp.cursor, 0xBEEF, r->now);
    mrc_engine_touch(r->s[1].e, rig_qp(&r->s[1]));
    tick(r, MRC_MSEC);
    return sent(r, 1, p, tx);
}

/* The set of side 1, by plane. */
static void set_of(struct rig *r, uint16_t of[3])
{
    of[0] = 0;
    for (int k = 0; k < 2; k++) { /* planes take turns */
        const uint16_t i = mrc_path_reverse(r->s[1].path, &rig_qp(&r->s[1])->resp.cursor, 0xBEEF);
        of[mrc_path_entry(r->s[1].path, i)->plane] = i;
    }
}

TEST(ep__who_only_receives_probes_its_way_back)
{
    struct rig r;
    uint16_t now_used[3];
    struct mrc_pkt p[RIG_BURST];
    struct mrc_tx_pkt tx[RIG_BURST];
    open_pair(&r);
    for (int k = 0; k < 20; k++) {
        CHECK_EQ(receive_only(&r, p, tx), 1);
        CHECK_EQ(p[0].opcode, MRC_OP_EP_REQUEST);
        CHECK_EQ(p[0].ep_op, MRC_EP_OP_EV_PROBE);
        CHECK(p[0].psn >= MRC_EP_ID_OWN);
        CHECK_EQ(tx[0].tclass, 46 << 2);
        const uint16_t probed = mrc_path_find(r.s[1].path, tx[0].ev);
        const uint8_t plane = mrc_path_entry(r.s[1].path, probed)->plane;
        const struct mrc_pkt f = {.opcode = MRC_OP_EP_RESPONSE,
                                  .dqp = MRC_QPN_EP,
                                  .psn = p[0].psn,
                                  .ep_op = MRC_EP_OP_EV_PROBE};
        deliver(&r, 1, &f, RIG_EV0);
        CHECK_EQ(drops(&r, 1, MRC_DROP_EP_STALE), (uint64_t)k);
        set_of(&r, now_used);
        CHECK_EQ(now_used[plane], probed);
        deliver(&r, 1, &f, RIG_EV0); /* once */
        CHECK_EQ(drops(&r, 1, MRC_DROP_EP_STALE), 1 + (uint64_t)k);
    }
    rig_close(&r);
}

TEST(ep__a_way_back_that_is_not_answered_is_not_taken)
{
    struct rig r;
    struct mrc_pkt p[RIG_BURST];
    struct mrc_tx_pkt tx[RIG_BURST];
    uint16_t before[3];
    uint16_t after[3];
    open_pair(&r);
    set_of(&r, before);
    for (int k = 0; k < 20; k++) {
        CHECK_EQ(receive_only(&r, p, tx), 1);
        struct mrc_pkt f = request(MRC_EP_OP_EV_PROBE, (uint16_t)(p[0].psn + 1)); /* not its id */
        f.opcode = MRC_OP_EP_RESPONSE;
        deliver(&r, 1, &f, RIG_EV0);
    }
    CHECK_EQ(drops(&r, 1, MRC_DROP_EP_STALE), 20);
    set_of(&r, after);
    CHECK_MEM(after, before, sizeof before);
    rig_close(&r);
}

/* C.7 knows a second operation: the caller's mask, whatever ours is. */
TEST(ep__a_port_status_may_be_sent_by_hand)
{
    struct rig r;
    struct mrc_pkt p[RIG_BURST];
    struct mrc_tx_pkt tx[RIG_BURST];
    struct mrc_ep_rsp out[2];
    open_pair(&r);
    struct mrc_ep_req req = probe(&r, 0, 1, 5);
    req.port_status = 1;
    req.port_status_mask = 1u << 2;
    CHECK_EQ(mrc_engine_ep_post(r.s[0].e, &req, 1, r.now), 1);
    CHECK_EQ(sent(&r, 0, p, tx), 1);
    CHECK_EQ(p[0].ep_op, MRC_EP_OP_PORT_STATUS);
    CHECK_EQ(p[0].port_status_mask, 1u << 2);
    deliver(&r, 1, &p[0], RIG_EV0 + 1);
    CHECK_EQ(planes(&r, 1).remote_up, 1u << 2);
    CHECK_EQ(sent(&r, 1, p, tx), 1);
    deliver(&r, 0, &p[0], tx[0].ev);
    CHECK_EQ(mrc_engine_ep_poll(r.s[0].e, out, 2), 1);
    CHECK_EQ(out[0].id, 5);
    CHECK(out[0].rtt_ns != MRC_NEVER);
    rig_close(&r);
}
