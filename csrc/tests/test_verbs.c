/* SPDX-License-Identifier: BSD-2-Clause */
/* What an engine tells its application beside completions: device attributes, QP hints, completion
 * and asynchronous events (MRC C.1, C.2, C.8). */
#include "hostile_rig.h"
#include "t.h"

enum { CHANNEL = 1, WINDOW = 8, NOMINAL = RIG_MTU + 40 + 8 + 32 + 4 };

static int event(struct rig *r, int i, struct mrc_async_event *out)
{
    memset(out, 0, sizeof *out);
    return mrc_engine_async_take(r->s[i].e, out);
}

/* The next event is this one. */
static void expect(struct rig *r, int i, enum mrc_async_type type, uint32_t id, uint8_t status)
{
    struct mrc_async_event ev;
    CHECK_EQ(event(r, i, &ev), 1);
    CHECK_EQ(ev.type, type);
    CHECK_EQ(ev.id, id);
    CHECK_EQ(ev.status, status);
    CHECK_EQ(ev.drop_count, 0);
}

static void expect_none(struct rig *r, int i)
{
    struct mrc_async_event ev;
    CHECK_EQ(event(r, i, &ev), 0);
    CHECK(!mrc_engine_async_any(r->s[i].e));
}

/* ---- device ---- */

TEST(verbs__device_attributes)
{
    struct mrc_device_attr most;
    struct mrc_device_attr here;
    struct rig r;
    rig_open(&r, 5, MRC_CC_FIXED, false);
    mrc_device_query(&most);
    mrc_engine_query(r.s[0].e, &here);
    CHECK_EQ(most.mrc_protocol_version, 1);
    CHECK_EQ(most.api_version, 1u << 24 | 1);
    CHECK(most.max_mpr >= 8 && most.mpr_resolution >= 1); /* B.12 */
    CHECK(most.max_wimm_dest >= 32 && most.max_wimm >= 32);
    CHECK_EQ(most.cap, MRC_DEV_TRIM_NACK | MRC_DEV_DYNAMIC_MPR | MRC_DEV_SERVICE_TIME);
    CHECK_EQ(here.max_qp_hint, 2);
    CHECK_EQ(here.max_qp, 4);
    CHECK_EQ(here.max_cq, 2);
    CHECK_EQ(here.cap, MRC_DEV_TRIM_NACK | MRC_DEV_DYNAMIC_MPR); /* service time is off here */
    rig_close(&r);
}

/* What the attributes promise is what creation takes. */
TEST(verbs__attributes_are_the_limits)
{
    struct mrc_device_attr most;
    mrc_device_query(&most);
    struct mrc_qp_init init = rig_qp_init;
    init.mpr_max = most.max_mpr;
    init.max_wimm_dest = most.max_wimm_dest;
    init.sq_depth = most.max_qp_wr;
    CHECK(mrc_qp_size(&init) > 0);
    init.mpr_max++;
    CHECK_EQ(mrc_qp_size(&init), 0);
    init.mpr_max--;
    init.max_wimm_dest++;
    CHECK_EQ(mrc_qp_size(&init), 0);
    init.max_wimm_dest--;
    init.sq_depth++;
    CHECK_EQ(mrc_qp_size(&init), 0);
    CHECK(mrc_cq_size(most.max_cqe) > 0);
    CHECK_EQ(mrc_cq_size(most.max_cqe + 1), 0);
}

TEST(verbs__newer_api_is_refused)
{
    struct mrc_engine_cfg cfg = {
        .qp_max = 1, .mr_max = 1, .cq_max = 1, .path_max = 1, .cc_max = 1, .api_version = 0};
    CHECK(mrc_engine_size(&cfg) > 0); /* 0.0.0: the last one supported */
    cfg.api_version = MRC_API_VERSION;
    CHECK(mrc_engine_size(&cfg) > 0);
    cfg.api_version = MRC_API_VERSION + 1;
    CHECK_EQ(mrc_engine_size(&cfg), 0);
    CHECK(mrc_engine_init(&cfg, &cfg, 0) == NULL);
}

/* ---- hints ---- */

TEST(verbs__hint_life)
{
    struct rig r;
    struct mrc_qp_hint got;
    rig_open(&r, 5, MRC_CC_FIXED, false);
    struct mrc_engine *e = r.s[0].e;
    struct mrc_qp_hint h = {.mask = MRC_HINT_QPS_PER_PEER | MRC_HINT_VENDOR,
                            .qps_per_peer = 7,
                            .peers = 99,
                            .vendor = {1, 2, 3}};
    CHECK_EQ(mrc_hint_create(e, &h), 0);
    CHECK_EQ(mrc_hint_query(e, 0, &got), MRC_OK);
    h.peers = 0; /* was not in the mask */
    CHECK_MEM(&got, &h, sizeof h);
    const struct mrc_qp_hint more = {
        .mask = MRC_HINT_PEERS | MRC_HINT_INCAST, .qps_per_peer = 50, .peers = 8, .incast = 9};
    CHECK_EQ(mrc_hint_modify(e, 0, &more), MRC_OK);
    CHECK_EQ(mrc_hint_query(e, 0, &got), MRC_OK);
    CHECK(got.qps_per_peer == 7 && got.peers == 8 && got.incast == 9 && got.vendor[2] == 3);
    CHECK_EQ(got.mask, 0x80000007);
    h.mask = 1 << 3;
    CHECK_EQ(mrc_hint_create(e, &h), MRC_ERR_INVAL);
    CHECK_EQ(mrc_hint_modify(e, 0, &h), MRC_ERR_INVAL);
    h.mask = 0;
    CHECK_EQ(mrc_hint_create(e, &h), 1);
    CHECK_EQ(mrc_hint_create(e, &h), MRC_ERR_FULL); /* max_qp_hint of this engine */
    CHECK_EQ(mrc_hint_destroy(e, 1), MRC_OK);
    CHECK_EQ(mrc_hint_query(e, 1, &got), MRC_ERR_NOENT);
    CHECK_EQ(mrc_hint_modify(e, 1, &h), MRC_ERR_NOENT);
    CHECK_EQ(mrc_hint_destroy(e, 1), MRC_ERR_NOENT);
    CHECK_EQ(mrc_hint_create(e, &h), 1);
    rig_close(&r);
}

static void with_hint(struct rig *r, uint32_t hint, int want)
{
    const struct mrc_qp_attr a = {.state = MRC_QPS_INIT, .access = 3, .hint = hint};
    CHECK_EQ(mrc_qp_modify(r->s[0].e, r->s[0].qpn, &a, MRC_QP_STATE | MRC_QP_ACCESS | MRC_QP_HINT,
                           r->now),
             want);
}

TEST(verbs__hint_is_bound_while_a_qp_has_it)
{
    struct rig r;
    const struct mrc_qp_hint h = {.mask = 0};
    rig_open(&r, 5, MRC_CC_FIXED, false);
    struct mrc_engine *e = r.s[0].e;
    CHECK_EQ(mrc_hint_create(e, &h), 0);
    rig_reset(&r, 0);
    with_hint(&r, 1, MRC_ERR_NOENT);
    with_hint(&r, 0, MRC_OK);
    CHECK_EQ(mrc_hint_destroy(e, 0), MRC_ERR_BUSY);
    rig_reset(&r, 0);
    CHECK_EQ(mrc_hint_destroy(e, 0), MRC_OK);
    CHECK_EQ(mrc_hint_create(e, &h), 0);
    with_hint(&r, 0, MRC_OK);
    CHECK(mrc_qp_destroy(e, r.s[0].qpn) == r.s[0].qp_mem);
    CHECK_EQ(mrc_hint_destroy(e, 0), MRC_OK);
    r.s[0].qpn = (uint32_t)mrc_qp_create(e, r.s[0].qp_mem, &rig_qp_init);
    with_hint(&r, MRC_HINT_NONE, MRC_OK); /* it may be none */
    rig_close(&r);
}

/* Packets of the first flight with this incast degree. */
static size_t first_flight(uint32_t incast)
{
    struct rig r;
    struct mrc_tx_pkt tx[RIG_BURST];
    const struct mrc_qp_hint h = {.mask = MRC_HINT_INCAST, .incast = incast};
    rig_open(&r, 5, MRC_CC_FIXED, false);
    r.s[0].cc.cfg.max_cwnd_bytes = WINDOW * NOMINAL;
    CHECK_EQ(mrc_hint_create(r.s[0].e, &h), 0);
    rig_reset(&r, 0);
    rig_reset(&r, 1);
    rig_bring_up(&r, 1, MRC_QPS_RTS);
    with_hint(&r, 0, MRC_OK);
    rig_bring_up(&r, 0, MRC_QPS_RTS);
    CHECK_EQ(rig_post(&r, 0, 0, 8192, MRC_WR_RDMA_WRITE), 1);
    const size_t n = mrc_engine_tx(r.s[0].e, tx, RIG_BURST, r.now);
    for (size_t i = 0; i < n; i++) {
        struct rig_pkt p;
        rig_from_tx(&r, 0, &tx[i], &p);
        rig_deliver(&r, 1, &p);
    }
    CHECK(rig_settle(&r)); /* and it goes on from there */
    rig_close(&r);
    return n;
}

TEST(verbs__incast_degree_cuts_the_first_flight)
{
    CHECK_EQ(first_flight(0), WINDOW);
    CHECK_EQ(first_flight(1), WINDOW);
    CHECK_EQ(first_flight(4), WINDOW / 4);
    CHECK_EQ(first_flight(1000), 1); /* one packet at least */
}

/* Its only packet is lost: the next one is sent by the timers, so that the hint never stalls. */
TEST(verbs__lost_first_flight_recovers)
{
    struct rig r;
    struct mrc_tx_pkt tx[RIG_BURST];
    const struct mrc_qp_hint h = {.mask = MRC_HINT_INCAST, .incast = UINT32_MAX};
    rig_open(&r, 5, MRC_CC_FIXED, false);
    CHECK_EQ(mrc_hint_create(r.s[0].e, &h), 0);
    for (int i = 0; i < 2; i++)
        rig_reset(&r, i);
    rig_bring_up(&r, 1, MRC_QPS_RTS);
    with_hint(&r, 0, MRC_OK);
    rig_bring_up(&r, 0, MRC_QPS_RTS);
    CHECK_EQ(rig_post(&r, 0, 0, 8192, MRC_WR_RDMA_WRITE), 1);
    CHECK_EQ(mrc_engine_tx(r.s[0].e, tx, RIG_BURST, r.now), 1); /* lost */
    CHECK(rig_settle(&r));
    rig_close(&r);
}

/* ---- completion events ---- */

static void arm(struct rig *r, int i, bool solicited_only)
{
    CHECK_EQ(mrc_cq_arm(r->s[i].e, 0, solicited_only), MRC_OK);
}

/* H2: the solicited bit goes end to end, in either place. */
TEST(verbs__solicited_event_end_to_end)
{
    for (int bit7 = 0; bit7 < 2; bit7++) {
        struct rig r;
        const uint64_t recv[2] = {1, 2};
        rig_open(&r, 5, MRC_CC_FIXED, false);
        r.s[0].e->env.se_bit7 = bit7 != 0;
        CHECK_EQ(mrc_cq_set_channel(r.s[1].e, 0, CHANNEL), MRC_OK);
        CHECK_EQ(mrc_qp_post_recv(r.s[1].e, r.s[1].qpn, recv, 2), 2);
        arm(&r, 1, true);
        struct mrc_send_wr wr = {.laddr = rig_va(&r.s[0], RIG_RW),
                                 .raddr = rig_va(&r.s[1], RIG_RW),
                                 .length = 1000,
                                 .lkey = r.s[0].key[RIG_RW],
                                 .rkey = r.s[1].key[RIG_RW],
                                 .opcode = MRC_WR_RDMA_WRITE_WITH_IMM};
        CHECK_EQ(mrc_qp_post_send(r.s[0].e, r.s[0].qpn, &wr, 1), 1);
        CHECK(rig_settle(&r));
        CHECK(!mrc_cq_has_event(r.s[1].e, CHANNEL)); /* nobody asked for it */
        wr.flags = MRC_SEND_SOLICITED;
        CHECK_EQ(mrc_qp_post_send(r.s[0].e, r.s[0].qpn, &wr, 1), 1);
        CHECK(rig_settle(&r));
        CHECK_EQ(mrc_cq_next_event(r.s[1].e, CHANNEL), 0);
        CHECK(mrc_cq_destroy(r.s[1].e, 0) == NULL);
        CHECK_EQ(mrc_cq_ack_events(r.s[1].e, 0, 1), MRC_OK);
        CHECK_EQ(mrc_cq_ack_events(r.s[1].e, 0, 1), MRC_ERR_INVAL);
        CHECK_EQ(mrc_cq_arm(r.s[1].e, 1, false), MRC_ERR_NOENT);
        rig_close(&r);
    }
}

/* ---- asynchronous events ---- */

TEST(verbs__overrun_ends_the_users_of_the_queue)
{
    struct rig r;
    uint64_t ids[16] = {0};
    rig_open(&r, 5, MRC_CC_FIXED, false);
    struct mrc_engine *e = r.s[0].e;
    struct mrc_qp_init init = rig_qp_init; /* two more QPs: one shares the queue, one does not */
    void *cq_mem = malloc(mrc_cq_size(4));
    void *mem[2] = {malloc(mrc_qp_size(&init)), malloc(mrc_qp_size(&init))};
    init.send_cq = init.recv_cq = (uint32_t)mrc_cq_create(e, cq_mem, 4);
    const uint32_t other = (uint32_t)mrc_qp_create(e, mem[0], &init);
    init.send_cq = 0;
    const uint32_t shared = (uint32_t)mrc_qp_create(e, mem[1], &init);
    const struct mrc_qp_attr a = {.state = MRC_QPS_INIT, .access = 3};
    CHECK_EQ(mrc_qp_modify(e, other, &a, MRC_QP_STATE | MRC_QP_ACCESS, r.now), MRC_OK);
    CHECK_EQ(mrc_qp_modify(e, shared, &a, MRC_QP_STATE | MRC_QP_ACCESS, r.now), MRC_OK);
    CHECK_EQ(mrc_qp_post_recv(e, other, ids, 5), 5); /* one more than the queue holds */
    const struct mrc_qp_attr err = {.state = MRC_QPS_ERR};
    CHECK_EQ(mrc_qp_modify(e, other, &err, MRC_QP_STATE, r.now), MRC_OK);
    CHECK(mrc_cq_overrun(e, 1) && !mrc_cq_overrun(e, 0));
    expect(&r, 0, MRC_ASYNC_QP_LAST_WQE, other, MRC_WC_WR_FLUSH_ERR);
    expect(&r, 0, MRC_ASYNC_CQ_ERR, 1, 0);
    expect(&r, 0, MRC_ASYNC_QP_FATAL, shared, MRC_WC_LOC_QP_OP_ERR);
    expect(&r, 0, MRC_ASYNC_QP_LAST_WQE, shared, MRC_WC_LOC_QP_OP_ERR);
    expect_none(&r, 0);
    CHECK_EQ(rig_qp(&r.s[0])->attr.state, MRC_QPS_RTS); /* completes elsewhere */
    struct mrc_wc wc[8];
    CHECK_EQ(mrc_cq_poll(e, 1, wc, 8), 4); /* what had room is there */
    CHECK(mrc_qp_destroy(e, other) == mem[0] && mrc_qp_destroy(e, shared) == mem[1]);
    CHECK(mrc_cq_destroy(e, 1) == cq_mem);
    free(mem[0]);
    free(mem[1]);
    free(cq_mem);
    rig_close(&r);
}

/* The queue overruns by what the network brings, not by a call of ours. */
TEST(verbs__overrun_by_traffic)
{
    struct rig r;
    uint64_t ids[16] = {0};
    rig_open(&r, 5, MRC_CC_FIXED, false);
    CHECK_EQ(mrc_qp_post_recv(r.s[1].e, r.s[1].qpn, ids, 16), 16);
    r.s[1].e->env.cqs.cq[0].mask = 3; /* of 64 entries four are left */
    for (uint64_t i = 0; i < 8; i++)
        CHECK_EQ(rig_post(&r, 0, i, 1, MRC_WR_RDMA_WRITE_WITH_IMM), 1);
    for (int round = 0; round < 100; round++) {
        r.now += 10 * MRC_USEC;
        (void)rig_move(&r, 0);
        (void)rig_move(&r, 1);
    }
    CHECK_EQ(rig_qp(&r.s[1])->attr.state, MRC_QPS_ERR);
    CHECK_EQ(rig_qp(&r.s[0])->attr.state, MRC_QPS_ERR); /* told by a NAK */
    struct mrc_async_event ev;
    int cq_err = 0;
    while (event(&r, 1, &ev) == 1)
        cq_err += ev.type == MRC_ASYNC_CQ_ERR;
    CHECK_EQ(cq_err, 1);
    r.s[1].e->env.cqs.cq[0].mask = RIG_CQ - 1;
    rig_close(&r);
}

TEST(verbs__fatal_error_is_told_with_its_cause)
{
    struct rig r;
    const struct mrc_qp_attr err = {.state = MRC_QPS_ERR};
    rig_open(&r, 5, MRC_CC_FIXED, false);
    CHECK_EQ(mrc_qp_modify(r.s[1].e, r.s[1].qpn, &err, MRC_QP_STATE, r.now), MRC_OK);
    expect(&r, 1, MRC_ASYNC_QP_LAST_WQE, r.s[1].qpn, MRC_WC_WR_FLUSH_ERR); /* its own doing */
    expect_none(&r, 1);
    CHECK_EQ(rig_post(&r, 0, 0, 10, MRC_WR_RDMA_WRITE), 1);
    (void)rig_move(&r, 0);
    (void)rig_move(&r, 1);
    expect(&r, 0, MRC_ASYNC_QP_FATAL, r.s[0].qpn, MRC_WC_REM_OP_ERR);
    expect(&r, 0, MRC_ASYNC_QP_LAST_WQE, r.s[0].qpn, MRC_WC_REM_OP_ERR);
    expect_none(&r, 0);
    rig_reset(&r, 0); /* asked for: no event */
    expect_none(&r, 0);
    rig_close(&r);
}

TEST(verbs__communication_established)
{
    struct rig r;
    rig_open(&r, 5, MRC_CC_FIXED, false);
    for (int i = 0; i < 2; i++)
        rig_reset(&r, i);
    rig_bring_up(&r, 0, MRC_QPS_RTS);
    rig_bring_up(&r, 1, MRC_QPS_RTR);
    CHECK_EQ(rig_post(&r, 0, 0, 1000, MRC_WR_RDMA_WRITE), 1);
    CHECK(rig_settle(&r));
    expect(&r, 1, MRC_ASYNC_COMM_EST, r.s[1].qpn, MRC_WC_SUCCESS);
    expect_none(&r, 1);
    rig_close(&r);
}

TEST(verbs__ports_and_peers_ports)
{
    struct rig r;
    struct mrc_async_event ev;
    rig_open(&r, 5, MRC_CC_FIXED, false);
    mrc_engine_ports(r.s[0].e, MRC_PLANES_ALL & ~(1u << 2));
    mrc_engine_ports(r.s[0].e, MRC_PLANES_ALL & ~(1u << 2)); /* no news */
    CHECK(event(&r, 0, &ev) == 1 && ev.type == MRC_ASYNC_PORT_ERR && ev.plane == 2);
    expect_none(&r, 0);
    CHECK_EQ(
        mrc_path_planes_set(r.s[0].e, r.s[0].path_id, MRC_PLANES_ALL & ~(1u << 2), MRC_PLANES_ALL),
        MRC_OK);
    (void)rig_move(&r, 0); /* the peer hears of it */
    CHECK(event(&r, 1, &ev) == 1 && ev.type == MRC_ASYNC_PEER_PORT_ERR && ev.plane == 2);
    CHECK_EQ(ev.id, r.s[1].path_id);
    expect_none(&r, 1);
    mrc_engine_ports(r.s[0].e, MRC_PLANES_ALL);
    CHECK(event(&r, 0, &ev) == 1 && ev.type == MRC_ASYNC_PORT_ACTIVE && ev.plane == 2);
    rig_close(&r);
}

/* Field report 39. */
TEST(verbs__all_paths_bad_is_told_once_and_taken_back)
{
    struct rig r;
    rig_open(&r, 5, MRC_CC_FIXED, false);
    for (uint16_t i = 0; i < RIG_EVS - 1; i++)
        mrc_path_on_loss(r.s[0].path, i, MRC_EV_R_TIMEOUT, r.now, r.now);
    mrc_engine_touch(r.s[0].e, rig_qp(&r.s[0]));
    expect_none(&r, 0); /* one is left */
    mrc_path_on_loss(r.s[0].path, RIG_EVS - 1, MRC_EV_R_TIMEOUT, r.now, r.now);
    mrc_engine_touch(r.s[0].e, rig_qp(&r.s[0]));
    mrc_engine_touch(r.s[0].e, rig_qp(&r.s[0]));
    expect(&r, 0, MRC_ASYNC_PATHS_BAD, r.s[0].path_id, 0);
    expect_none(&r, 0);
    /* The floor still carries data. A probe's answer may speak for the first packet, and tells
     * nothing of its path. */
    for (int n = 0; n < 2; n++) {
        CHECK_EQ(rig_post(&r, 0, 0, 10, MRC_WR_RDMA_WRITE), 1);
        (void)rig_move(&r, 0);
        r.now += 50 * MRC_USEC;
        (void)rig_move(&r, 1);
    }
    expect(&r, 0, MRC_ASYNC_PATHS_OK, r.s[0].path_id, 0);
    CHECK_EQ(mrc_path_planes_set(r.s[0].e, r.s[0].path_id, 0, MRC_PLANES_ALL), MRC_OK);
    expect(&r, 0, MRC_ASYNC_PATHS_BAD, r.s[0].path_id, 0); /* no plane is up */
    rig_close(&r);
}

TEST(verbs__event_ring_counts_what_it_loses)
{
    struct rig r;
    struct mrc_async_event ev;
    rig_open(&r, 5, MRC_CC_FIXED, false);
    struct mrc_engine *e = r.s[0].e;
    const uint32_t all = MRC_ASYNC_RING + 10;
    for (uint32_t i = 0; i < all; i++)
        mrc_engine_ports(e, i % 2 == 0 ? MRC_PLANES_ALL & ~2u : MRC_PLANES_ALL);
    CHECK_EQ(event(&r, 0, &ev), 1);
    mrc_engine_ports(e, MRC_PLANES_ALL & ~2u); /* taken, but its place is not free yet */
    CHECK_EQ(mrc_engine_async_ack(e, 2), MRC_ERR_INVAL);
    CHECK_EQ(mrc_engine_async_ack(e, 1), MRC_OK);
    CHECK_EQ(mrc_engine_async_ack(e, 1), MRC_ERR_INVAL);
    mrc_engine_ports(e, MRC_PLANES_ALL);
    for (uint32_t i = 1; i < MRC_ASYNC_RING; i++) {
        CHECK_EQ(event(&r, 0, &ev), 1);
        CHECK_EQ(ev.drop_count, 0);
    }
    CHECK_EQ(event(&r, 0, &ev), 1);
    CHECK_EQ(ev.drop_count, 11);
    expect_none(&r, 0);
    CHECK_EQ(mrc_engine_async_ack(e, MRC_ASYNC_RING), MRC_OK);
    mrc_engine_ports(e, MRC_PLANES_ALL & ~2u);
    expect(&r, 0, MRC_ASYNC_PORT_ERR, 0, 0);
    rig_close(&r);
}

/* A peer whose ports flap cannot hide the end of somebody else's queue pair. */
TEST(verbs__news_of_ports_leave_room_for_an_end)
{
    struct rig r;
    rig_open(&r, 5, MRC_CC_FIXED, false);
    struct mrc_engine *e = r.s[0].e;
    for (int i = 0; i < 1001; i++)
        mrc_engine_event(e, i % 2 == 0 ? MRC_ASYNC_PEER_PORT_ERR : MRC_ASYNC_PEER_PORT_ACTIVE, 0,
                         3);
    for (uint32_t id = 1; id < 1000; id++)
        mrc_engine_event(e, MRC_ASYNC_PATHS_BAD, id, 0);
    mrc_engine_event(e, MRC_ASYNC_QP_FATAL, 77, 0);
    struct mrc_async_event ev;
    CHECK(event(&r, 0, &ev) == 1 && ev.type == MRC_ASYNC_PEER_PORT_ERR && ev.plane == 3);
    uint32_t n = 1;
    while (event(&r, 0, &ev) == 1 && ev.type == MRC_ASYNC_PATHS_BAD)
        CHECK_EQ(ev.id, n++);
    CHECK_EQ(n, MRC_ASYNC_NEWS);
    CHECK(ev.type == MRC_ASYNC_QP_FATAL && ev.id == 77);
    CHECK_EQ(ev.drop_count, 999 - (MRC_ASYNC_NEWS - 1));
    rig_close(&r);
}
