/* SPDX-License-Identifier: BSD-2-Clause */
/* Hosts with an address for each plane (C.4): what a packet is sent with, and from whom one is
 * taken (B.15 step 7), on queue pairs and as an endpoint operation. */
#include "t.h"

#include "ep_rig.h"

/* The address of side 0 or 1 (ids 1 and 2) in a plane; plane 0: the one for all. */
static void plane_addr(uint8_t id, uint8_t plane, uint8_t out[16])
{
    memset(out, 0, 16);
    out[0] = 0xFD;
    out[14] = plane;
    out[15] = id;
}

static void pairs(uint8_t own, uint8_t peer, struct mrc_plane_addr *out, uint8_t n)
{
    memset(out, 0, n * sizeof *out);
    for (uint8_t k = 0; k < n; k++) {
        out[k].plane = (uint8_t)(k + 1);
        plane_addr(own, out[k].plane, out[k].src);
        plane_addr(peer, out[k].plane, out[k].dst);
    }
}

/* As rig_side_open makes it, but with addresses of planes 1 and 2. */
static void other_table(struct rig_side *s, uint8_t id)
{
    struct mrc_plane_addr addr[2];
    struct mrc_path_entry_cfg entry[RIG_EVS];
    const struct mrc_path_cfg pc = {.count = RIG_EVS,
                                    .min_active = 1,
                                    .event_ring = 16,
                                    .seed = id,
                                    .addr_count = 2,
                                    .addrs = addr};
    pairs(id, (uint8_t)(3 - id), addr, 2);
    for (uint16_t i = 0; i < RIG_EVS; i++)
        entry[i] = *mrc_path_entry(s->path, i);
    RIG_NEED(mrc_path_detach(s->e, s->path_id) == s->path);
    free(s->path_mem);
    s->path_mem = malloc(mrc_path_size(&pc));
    s->path = mrc_path_init(s->path_mem, &pc, entry, 0);
    s->path_id = (uint32_t)mrc_path_attach(s->e, s->path);
}

static void open_planes(struct rig *r)
{
    *r = (struct rig){.now = MRC_SEC, .start_psn = 100, .exp_cnt = 3, .cc_kind = MRC_CC_FIXED};
    for (uint8_t i = 0; i < 2; i++) {
        struct mrc_ep_addr to = {0};
        rig_side_open(&r->s[i], (uint8_t)(i + 1), MRC_CC_FIXED);
        other_table(&r->s[i], (uint8_t)(i + 1));
        plane_addr((uint8_t)(i + 1), 0, to.src);
        plane_addr((uint8_t)(2 - i), 0, to.dst);
        RIG_NEED(mrc_path_lead(r->s[i].e, r->s[i].path_id, &to) == MRC_OK);
    }
    rig_bring_up(r, 0, MRC_QPS_RTS);
    rig_bring_up(r, 1, MRC_QPS_RTS);
}

static uint8_t plane_of(uint32_t ev) { return (uint8_t)(1 + (ev - RIG_EV0) % 2); }

/* As rig_from_tx, between the addresses of that plane; 0: between those for all. */
static void cross(struct rig *r, int from, const struct mrc_tx_pkt *tx, uint8_t plane)
{
    struct rig_pkt p;
    rig_from_tx(r, from, tx, &p);
    plane_addr((uint8_t)(1 + from), plane, p.rx.src);
    plane_addr((uint8_t)(2 - from), plane, p.rx.dst);
    rig_deliver(r, 1 - from, &p);
}

/* A forged packet to side 1 from the given address, its iCRC right. */
static void deliver_from(struct rig *r, const struct mrc_pkt *f, uint8_t id, uint8_t plane)
{
    const struct rig_side own = r->s[0];
    struct rig_pkt p;
    plane_addr(id, plane, r->s[0].addr);
    rig_forge(r, 1, f, 0, &p);
    r->s[0] = own;
    rig_deliver(r, 1, &p);
}

/* Data, then what answers it, across the planes their EVs are of. */
TEST(planes__packets_have_the_addresses_of_their_plane)
{
    struct rig r;
    struct mrc_tx_pkt tx[RIG_BURST];
    uint32_t used[2] = {0};
    open_planes(&r);
    CHECK_EQ(rig_post(&r, 0, 0, 16 * RIG_MTU, MRC_WR_RDMA_WRITE), 1);
    for (int from = 0; from < 2; from++) {
        const size_t n = mrc_engine_tx(r.s[from].e, tx, RIG_BURST, r.now);
        CHECK(n > 0);
        for (size_t i = 0; i < n; i++) {
            used[from] |= 1u << plane_of(tx[i].ev);
            cross(&r, from, &tx[i], plane_of(tx[i].ev));
        }
        CHECK_EQ(drops(&r, 1 - from, MRC_DROP_ICRC), 0);
        CHECK_EQ(drops(&r, 1 - from, MRC_DROP_PEER), 0);
    }
    CHECK_EQ(used[0], 6);
    struct mrc_qp_stats st;
    CHECK_EQ(mrc_qp_stats(r.s[0].e, r.s[0].qpn, &st), MRC_OK);
    CHECK_EQ(st.bytes_acked, 16 * RIG_MTU);
    /* The iCRC covers the addresses: between others the same packet is broken. */
    CHECK_EQ(rig_post(&r, 0, 0, RIG_MTU, MRC_WR_RDMA_WRITE), 1);
    CHECK_EQ(mrc_engine_tx(r.s[0].e, tx, RIG_BURST, r.now), 1);
    cross(&r, 0, &tx[0], 0);
    cross(&r, 0, &tx[0], (uint8_t)(3 - plane_of(tx[0].ev)));
    CHECK_EQ(drops(&r, 1, MRC_DROP_ICRC), 2);
    rig_close(&r);
}

TEST(planes__any_address_of_the_peer_is_taken_and_no_other)
{
    struct rig r;
    open_planes(&r);
    struct mrc_pkt f = {.opcode = MRC_OP_PROBE, .dqp = r.s[1].qpn};
    for (uint8_t plane = 0; plane <= 2; plane++) {
        struct mrc_tx_pkt tx[RIG_BURST];
        deliver_from(&r, &f, 1, plane);
        CHECK_EQ(mrc_engine_tx(r.s[1].e, tx, RIG_BURST, r.now), 1); /* its answer */
    }
    CHECK_EQ(drops(&r, 1, MRC_DROP_PEER), 0);
    deliver_from(&r, &f, 1, 3); /* no plane of theirs */
    deliver_from(&r, &f, 2, 1); /* ours */
    deliver_from(&r, &f, 9, 1);
    CHECK_EQ(drops(&r, 1, MRC_DROP_PEER), 3);
    rig_close(&r);
}

TEST(planes__a_peer_of_one_address_has_no_other)
{
    struct rig r;
    open_pair(&r);
    const struct mrc_pkt f = {.opcode = MRC_OP_PROBE, .dqp = r.s[1].qpn};
    deliver_from(&r, &f, 1, 1);
    CHECK_EQ(drops(&r, 1, MRC_DROP_PEER), 1);
    rig_close(&r);
}

TEST(planes__a_node_is_known_by_all_its_addresses)
{
    struct rig r;
    struct mrc_pkt p[RIG_BURST];
    struct mrc_tx_pkt tx[RIG_BURST];
    open_planes(&r);
    const struct mrc_pkt f = request(MRC_EP_OP_EV_PROBE, 7);
    for (uint8_t plane = 0; plane <= 2; plane++) {
        deliver_from(&r, &f, 1, plane);
        CHECK_EQ(sent(&r, 1, p, tx), 1);
        cross(&r, 1, &tx[0], plane_of(tx[0].ev)); /* stale there, but whole */
    }
    CHECK_EQ(drops(&r, 0, MRC_DROP_ICRC), 0);
    CHECK_EQ(drops(&r, 0, MRC_DROP_EP_STALE), 3);
    deliver_from(&r, &f, 1, 3);
    deliver_from(&r, &f, 2, 1);
    CHECK_EQ(drops(&r, 1, MRC_DROP_EP_UNKNOWN), 2);
    CHECK_EQ(sent(&r, 1, p, tx), 0);
    /* What it says of its planes holds, from whichever address. */
    struct mrc_pkt down = request(MRC_EP_OP_PORT_STATUS, 8);
    down.port_status_mask = MRC_PLANES_ALL & ~(1u << 1);
    deliver_from(&r, &down, 1, 2);
    CHECK_EQ(planes(&r, 1).remote_up, MRC_PLANES_ALL & ~(1u << 1));
    CHECK_EQ(mrc_path_active(r.s[1].path), RIG_EVS / 2);
    rig_close(&r);
}

TEST(planes__a_probe_is_answered_from_any_of_them)
{
    struct rig r;
    struct mrc_pkt p[RIG_BURST];
    struct mrc_tx_pkt tx[RIG_BURST];
    open_planes(&r);
    for (uint8_t plane = 0; plane <= 2; plane++) {
        const struct mrc_ep_req req = probe(&r, 1, plane, 40);
        struct mrc_ep_rsp rsp;
        CHECK_EQ(mrc_engine_ep_post(r.s[1].e, &req, 1, r.now), 1);
        CHECK_EQ(sent(&r, 1, p, tx), 1);
        struct mrc_pkt answer = request(MRC_EP_OP_EV_PROBE, 40);
        answer.opcode = MRC_OP_EP_RESPONSE;
        answer.ftype = 0;
        deliver_from(&r, &answer, 1, plane);
        CHECK_EQ(mrc_engine_ep_poll(r.s[1].e, &rsp, 1), 1);
        CHECK(rsp.rtt_ns != MRC_NEVER);
    }
    rig_close(&r);
}

/* A table of side 1 that leads to another node, which has these addresses too, it says. */
static uint32_t other_node(struct rig *r, uint8_t id, const struct mrc_plane_addr *addr, uint8_t n,
                           void **mem)
{
    const struct mrc_path_cfg pc = {.count = 1, .addr_count = n, .addrs = addr};
    const struct mrc_path_entry_cfg entry = {.ev = RIG_EV0, .plane = 1};
    struct mrc_ep_addr to = {0};
    plane_addr(id, 0, to.dst);
    *mem = malloc(mrc_path_size(&pc));
    struct mrc_path_table *t = mrc_path_init(*mem, &pc, &entry, 0);
    RIG_NEED(t != NULL);
    const uint32_t path = (uint32_t)mrc_path_attach(r->s[1].e, t);
    RIG_NEED(mrc_path_lead(r->s[1].e, path, &to) == MRC_OK);
    return path;
}

/* Which tables have the address, as bits. */
static uint32_t known_by(const struct rig *r, uint8_t id, uint8_t plane)
{
    const struct mrc_ep *ep = &r->s[1].e->ep;
    uint8_t addr[16];
    uint32_t found = 0;
    plane_addr(id, plane, addr);
    for (uint32_t i = mrc_ep_first(ep, addr); i != MRC_EP_NOWHERE; i = mrc_ep_next(ep, i)) {
        CHECK((found & 1u << mrc_ep_path(i)) == 0);
        found |= 1u << mrc_ep_path(i);
    }
    return found;
}

/* A second table to the node, and the first goes. */
TEST(planes__addresses_go_with_their_table)
{
    struct rig r;
    open_planes(&r);
    const uint32_t first = r.s[1].path_id;
    struct mrc_plane_addr addr[4];
    pairs(2, 1, addr, 4);
    addr[3] = addr[0]; /* one address in two planes */
    addr[3].plane = 4;
    void *mem;
    const uint32_t second = other_node(&r, 1, addr, 4, &mem);
    for (uint8_t plane = 0; plane <= 2; plane++)
        CHECK_EQ(known_by(&r, 1, plane), 1u << first | 1u << second);
    CHECK_EQ(known_by(&r, 1, 3), 1u << second);
    mrc_ep_forget(&r.s[1].e->ep, first);
    for (uint8_t plane = 0; plane <= 3; plane++)
        CHECK_EQ(known_by(&r, 1, plane), 1u << second);
    CHECK(mrc_path_detach(r.s[1].e, second) != NULL);
    for (uint8_t plane = 0; plane <= 3; plane++)
        CHECK_EQ(known_by(&r, 1, plane), 0);
    free(mem);
    rig_close(&r);
}

/* Node 9 says that all addresses of node 1 are of its planes, and was there first. */
TEST(planes__who_names_anothers_addresses_takes_nothing_from_it)
{
    struct rig r;
    struct mrc_plane_addr addr[3];
    struct mrc_pkt p[RIG_BURST];
    struct mrc_tx_pkt tx[RIG_BURST];
    struct mrc_ep_addr to = {0};
    void *mem;
    open_planes(&r);
    struct mrc_ep *ep = &r.s[1].e->ep;
    mrc_ep_forget(ep, r.s[1].path_id);
    pairs(2, 1, addr, 3);
    plane_addr(1, 0, addr[2].dst);
    const uint32_t liar = other_node(&r, 9, addr, 3, &mem);
    struct mrc_pkt down = request(MRC_EP_OP_PORT_STATUS, 8);
    down.port_status_mask = MRC_PLANES_ALL & ~(1u << 2);
    deliver_from(&r, &down, 9, 0);
    CHECK_EQ(sent(&r, 1, p, tx), 1);
    plane_addr(2, 0, to.src);
    plane_addr(1, 0, to.dst);
    CHECK_EQ(mrc_path_lead(r.s[1].e, r.s[1].path_id, &to), MRC_OK);
    /* What the liar said of its planes is not said of the node's. */
    CHECK_EQ(planes(&r, 1).remote_up, MRC_PLANES_ALL);
    /* Its own storm does not keep the node from being heard, and answered. */
    const struct mrc_pkt f = request(MRC_EP_OP_EV_PROBE, 7);
    for (uint32_t i = 0; i < 2 * MRC_EP_BURST; i++)
        deliver_from(&r, &f, 9, 0);
    CHECK(drops(&r, 1, MRC_DROP_PROBE_RATE) > 0);
    while (sent(&r, 1, p, tx) > 0)
        continue;
    const uint64_t refused = drops(&r, 1, MRC_DROP_PROBE_RATE);
    for (uint8_t plane = 0; plane <= 2; plane++) {
        down.port_status_mask = MRC_PLANES_ALL & ~(2u << plane);
        down.psn = 20u + plane;
        deliver_from(&r, &down, 1, plane);
        CHECK_EQ(planes(&r, 1).remote_up, down.port_status_mask);
        CHECK_EQ(sent(&r, 1, p, tx), 1);
    }
    CHECK_EQ(drops(&r, 1, MRC_DROP_PROBE_RATE), refused);
    const struct mrc_ep_req req = probe(&r, 1, 1, 40);
    struct mrc_ep_rsp rsp;
    CHECK_EQ(mrc_engine_ep_post(r.s[1].e, &req, 1, r.now), 1);
    CHECK_EQ(sent(&r, 1, p, tx), 1);
    struct mrc_pkt answer = request(MRC_EP_OP_EV_PROBE, 40);
    answer.opcode = MRC_OP_EP_RESPONSE;
    answer.ftype = 0;
    deliver_from(&r, &answer, 1, 2);
    CHECK_EQ(mrc_engine_ep_poll(r.s[1].e, &rsp, 1), 1);
    CHECK(rsp.rtt_ns != MRC_NEVER);
    CHECK(mrc_path_detach(r.s[1].e, liar) != NULL);
    free(mem);
    rig_close(&r);
}

/* Many addresses are no way to be answered more often. */
TEST(planes__addresses_share_a_budget)
{
    struct rig r;
    struct mrc_pkt p[RIG_BURST];
    struct mrc_tx_pkt tx[RIG_BURST];
    open_planes(&r);
    const struct mrc_pkt f = request(MRC_EP_OP_EV_PROBE, 7);
    uint64_t answered = 0;
    for (uint8_t plane = 0; plane <= 2; plane++) {
        for (uint32_t i = 0; i < 2 * MRC_EP_BURST; i++)
            deliver_from(&r, &f, 1, plane);
        for (uint32_t n; (n = (uint32_t)sent(&r, 1, p, tx)) > 0;)
            answered += n;
    }
    CHECK_EQ(answered, 2 * MRC_EP_BURST); /* of the first address, and of both others together */
    rig_close(&r);
}

TEST(planes__addresses_are_checked_and_survive_a_replacement)
{
    struct mrc_plane_addr addr[2] = {{.src = {1}, .dst = {2}, .plane = 1},
                                     {.src = {3}, .dst = {4}, .plane = MRC_PLANE_MAX}};
    const struct mrc_path_entry_cfg entry[2] = {{.ev = 5, .plane = 1}, {.ev = 6, .plane = 2}};
    struct mrc_path_cfg pc = {.count = 2, .addr_count = 2, .addrs = addr};
    _Alignas(max_align_t) static uint8_t mem[1 << 16];
    CHECK(mrc_path_size(&pc) > 0 && mrc_path_size(&pc) <= sizeof mem);
    struct mrc_path_table *t = mrc_path_init(mem, &pc, entry, 0);
    CHECK(t != NULL);
    const struct mrc_plane_addr *mine = mrc_path_entry(t, 0)->addr;
    CHECK(mine != NULL && mine->dst[0] == 2);
    CHECK(mrc_path_entry(t, 1)->addr == NULL);
    CHECK(mrc_path_from(t, addr[1].dst) && !mrc_path_from(t, addr[1].src));
    const struct mrc_path_entry_cfg to = {.ev = 7, .plane = 1};
    CHECK_EQ(mrc_path_replace(t, 0, &to, MRC_EV_GOOD, 0), MRC_OK);
    CHECK(mrc_path_entry(t, 0)->addr == mine);

    for (int k = 0; k < 5; k++) {
        struct mrc_plane_addr bad = addr[1];
        const uint8_t plane[5] = {0, MRC_PLANE_MAX + 1, 1, 2, 2};
        bad.plane = plane[k]; /* none, none, the other's, ... */
        if (k == 3)
            memset(bad.src, 0, 16); /* ... a wrong end */
        if (k == 4)
            memset(bad.dst, 0, 16);
        struct mrc_plane_addr both[2] = {addr[0], bad};
        pc.addrs = both;
        CHECK(mrc_path_init(mem, &pc, entry, 0) == NULL);
    }
    pc.addr_count = MRC_PLANE_MAX + 1;
    CHECK_EQ(mrc_path_size(&pc), 0);
}
