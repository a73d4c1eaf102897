/* SPDX-License-Identifier: BSD-2-Clause */
/* What a responder may say besides, both off by default: how long it had a packet (MRC H11), and
 * which EVs break packets (H29). */
#include "resp_rig.h"
#include "t.h"

#define SACK (resp_first(MRC_OP_SACK))

/* ---- H11: service time ---- */

/* What comes back of 0x1000 when the answer leaves 10 us (78 units of 128 ns) later. */
static uint16_t reflected(bool on, struct mrc_pkt p)
{
    resp_open(false);
    resp_begin();
    resp_engine()->env.service_time = on;
    p.dqp = resp.r.s[1].qpn;
    p.tx_timestamp = 0x1000;
    resp_give(&p);
    resp.r.now += 78 * 128;
    CHECK_EQ(resp_take(), 1);
    const uint16_t t = resp.out[0].tx_timestamp;
    resp_close();
    return t;
}

TEST(resp_service__time_is_added_to_the_reflected_timestamp)
{
    resp_open(false);
    struct mrc_pkt data = resp_pkt(1, MRC_OP_WRITE_ONLY);
    struct mrc_pkt beyond = resp_pkt(RESP_WINDOW + 1, MRC_OP_WRITE_ONLY);
    struct mrc_pkt probe = {.opcode = MRC_OP_PROBE, .ftype = 1};
    resp_close();
    data.a = false;
    data.rtx = data.ts = beyond.ts = true;
    data.r_key = beyond.r_key = 0;
    CHECK_EQ(reflected(false, probe), 0x1000); /* off by default */
    CHECK_EQ(reflected(true, probe), 0x1000 + 78);
    CHECK_EQ(reflected(true, beyond), 0x1000 + 78);
    CHECK_EQ(reflected(false, beyond), 0x1000);
    probe.tsr = true; /* H22: an unknown unit is left alone */
    CHECK_EQ(reflected(true, probe), 0x1000);
    beyond.tsr = true;
    CHECK_EQ(reflected(true, beyond), 0x1000);
}

TEST(resp_service__sack_of_data)
{
    for (int ts = 0; ts < 2; ts++) {
        resp_open(false);
        resp_begin();
        resp_engine()->env.service_time = true;
        struct mrc_pkt p = resp_pkt(1, MRC_OP_WRITE_ONLY);
        p.rtx = true;
        p.ts = ts;
        p.tx_timestamp = 0xFFF0;
        resp_give(&p);
        resp.r.now += 32 * 128;
        (void)resp_take();
        CHECK_EQ(SACK->tx_timestamp, ts ? 0x0010 : 0); /* none is made up */
        resp_close();
    }
}

/* One probe there and back; the far end answers 10 us after it came. */
static struct mrc_ep_rsp probed(bool corrects, bool agreed)
{
    struct rig *r = &resp.r;
    struct mrc_ep_rsp out;
    resp_open(false);
    resp_engine()->env.service_time = corrects;
    const struct mrc_ep_req req = {.timeout_ns = 50 * MRC_MSEC,
                                   .path = r->s[0].path_id,
                                   .ev = RIG_EV0,
                                   .dscp = MRC_EP_DSCP_CONTROL,
                                   .service_time = agreed};
    CHECK_EQ(mrc_engine_ep_post(r->s[0].e, &req, 1, r->now), 1);
    CHECK_EQ(rig_move(r, 0), 1);
    r->now += 78 * 128;
    CHECK_EQ(rig_move(r, 1), 1);
    CHECK_EQ(mrc_engine_ep_poll(r->s[0].e, &out, 1), 1);
    resp_close();
    return out;
}

TEST(resp_service__endpoint_probes)
{
    struct mrc_ep_rsp a = probed(false, false);
    CHECK(a.rtt_ns == 78 * 128 && a.adjusted == 0);
    a = probed(true, false); /* not agreed: nothing is taken off */
    CHECK(a.rtt_ns == 78 * 128 && a.adjusted == 0);
    a = probed(true, true);
    CHECK(a.rtt_ns == 0 && a.adjusted == 1);
    a = probed(false, true); /* it had it for no time, it says */
    CHECK(a.rtt_ns == 78 * 128 && a.adjusted == 1);
}

/* A node that claims more than the round trip took is not believed. */
TEST(resp_service__a_lie_is_not_taken_off)
{
    struct rig *r = &resp.r;
    struct mrc_ep_rsp out;
    resp_open(false);
    const struct mrc_ep_req req = {.timeout_ns = 50 * MRC_MSEC,
                                   .path = r->s[0].path_id,
                                   .ev = RIG_EV0,
                                   .id = 9,
                                   .dscp = MRC_EP_DSCP_CONTROL,
                                   .service_time = 1};
    CHECK_EQ(mrc_engine_ep_post(r->s[0].e, &req, 1, r->now), 1);
    CHECK_EQ(rig_move(r, 0), 1);
    const uint16_t stamp = mrc_timestamp(r->now);
    r->now += 100 * MRC_USEC;
    const struct mrc_pkt lie = {.opcode = MRC_OP_EP_RESPONSE,
                                .dqp = MRC_QPN_EP,
                                .psn = 9,
                                .ep_op = MRC_EP_OP_EV_PROBE,
                                .tx_timestamp = (uint16_t)(stamp + 1000)};
    struct rig_pkt p;
    rig_forge(r, 0, &lie, 0, &p);
    rig_deliver(r, 0, &p);
    CHECK_EQ(mrc_engine_ep_poll(r->s[0].e, &out, 1), 1);
    CHECK(out.rtt_ns == 100 * MRC_USEC && out.adjusted == 0);
    resp_close();
}

/* ---- H29: EVs that break packets ---- */

static void broken(uint32_t i, uint32_t ev, uint32_t r_key_flip)
{
    struct mrc_pkt p = resp_pkt(i, MRC_OP_WRITE_ONLY);
    p.r_key ^= r_key_flip;
    struct rig_pkt q;
    rig_forge(&resp.r, 1, &p, 1, &q);
    q.rx.sport = (uint16_t)ev;
    rig_seal(&resp.r, 1, &q);
    q.bytes[60] ^= 0x10; /* in the payload */
    rig_deliver(&resp.r, 1, &q);
}

/* Packets on two EVs; every `every`-th of the second is broken. Which marks came back for each? */
static void run_evs(uint32_t every, uint32_t flip, uint32_t marks[2])
{
    uint32_t psn = 0;
    marks[0] = marks[1] = 0;
    for (uint32_t n = 1; n <= 1000; n++)
        for (uint32_t k = 0; k < 2; k++) {
            if (k == 1 && n % every == 0)
                broken(psn, RIG_EV0 + 1, flip);
            struct mrc_pkt p = resp_pkt(psn++, MRC_OP_WRITE_ONLY);
            resp_give_as(&p, RIG_EV0 + k, 2);
            (void)resp_take();
            for (size_t i = 0; i < resp.n; i++)
                if (resp.out[i].mark == MRC_MARK_ALWAYS_SKIP)
                    marks[resp.out[i].entropy - RIG_EV0]++;
        }
}

TEST(resp_skip__an_ev_that_breaks_packets_is_reported)
{
    uint32_t marks[2];
    resp_open(false);
    resp_engine()->env.icrc_skip_percent = 5;
    run_evs(10, 0, marks); /* 9 % */
    CHECK_EQ(marks[0], 0);
    CHECK(marks[1] >= 1 && marks[1] <= 1000 / 80); /* eight broken ones for each verdict */
    resp_close();
    resp_open(false);
    resp_engine()->env.icrc_skip_percent = 5;
    run_evs(40, 0, marks); /* 2.4 % */
    CHECK(marks[0] == 0 && marks[1] == 0);
    resp_close();
}

TEST(resp_skip__never_by_default)
{
    uint32_t marks[2];
    resp_open(false);
    run_evs(2, 0, marks);
    CHECK(marks[0] == 0 && marks[1] == 0);
    CHECK_EQ(resp_qp()->resp.rxev.used, 0);
    resp_close();
}

/* Who cannot name the key of a region, and the window, and the peer, cannot speak ill of an EV. */
TEST(resp_skip__a_stranger_cannot_speak_ill_of_an_ev)
{
    uint32_t marks[2];
    resp_open(false);
    resp_engine()->env.icrc_skip_percent = 5;
    run_evs(2, 0x100, marks);
    CHECK(marks[0] == 0 && marks[1] == 0);
    broken(1000000, RIG_EV0, 0);
    struct mrc_pkt p = resp_pkt(2000, MRC_OP_WRITE_ONLY);
    struct rig_pkt q;
    rig_forge(&resp.r, 1, &p, 1, &q);
    q.bytes[60] ^= 1;
    q.rx.src[3] ^= 1; /* not the peer */
    rig_deliver(&resp.r, 1, &q);
    rig_forge(&resp.r, 1, &p, 1, &q);
    q.bytes[60] ^= 1;
    q.bytes[7] ^= 8; /* no such queue pair */
    rig_deliver(&resp.r, 1, &q);
    CHECK_EQ(resp_qp()->resp.rxev.used, 0);
    rig_forge(&resp.r, 1, &p, 1, &q);
    q.bytes[60] ^= 1;
    rig_deliver(&resp.r, 1, &q);
    CHECK_EQ(resp_qp()->resp.rxev.used, 1); /* the same one, all right: this counts */
    resp_close();
}

TEST(resp_skip__more_evs_than_are_watched)
{
    struct mrc_rxev x;
    mrc_rxev_start(&x);
    for (uint32_t n = 0; n < 20; n++)
        for (uint32_t ev = 0; ev < 3 * MRC_RXEV_SLOTS; ev++)
            mrc_rxev_bad(&x, ev, 5);
    CHECK_EQ(x.used, MRC_RXEV_SLOTS);
    for (uint32_t n = 0; n < 100; n++) /* one accident each: forgotten after a while */
        for (uint32_t ev = 0; ev < 3 * MRC_RXEV_SLOTS; ev++)
            (void)mrc_rxev_good(&x, ev);
    mrc_rxev_start(&x);
    mrc_rxev_bad(&x, 7, 5);
    for (uint32_t n = 0; n < 600; n++)
        CHECK(!mrc_rxev_good(&x, 7));
    CHECK_EQ(x.used, 0);
}

/* ---- B.4: what counts towards the threshold ---- */

/* Of a packet larger than the floor its bytes, BTH included; and all SACKs, whatever their reason,
 * begin the count anew. */
TEST(resp_sack__large_packets_count_with_their_bytes)
{
    enum { MTU = 2048 };
    resp_open(false);
    resp_qp()->peer.path_mtu = MTU;
    mrc_resp_set_threshold(&resp_qp()->resp, 2 * (MTU + 12));
    for (uint32_t i = 0; i < 7; i++) { /* the first is answered in any case; then every second */
        struct mrc_pkt p = resp_pkt(0, MRC_OP_WRITE_ONLY);
        p.psn = RESP_FIRST + i;
        p.payload_len = MTU;
        resp_give(&p);
        CHECK_EQ(resp_take(), i % 2 == 0 ? 1 : 0);
    }
    resp_close();
}

/* ---- H17: the state of our ports is told by endpoint operations only ---- */

static struct mrc_pkt sack_with_planes(uint32_t local_up, uint32_t remote_up)
{
    resp_open(true);
    CHECK_EQ(mrc_path_planes_set(resp_engine(), resp.r.s[1].path_id, local_up, remote_up), MRC_OK);
    struct mrc_pkt p = resp_pkt(3, MRC_OP_WRITE_ONLY);
    p.a = p.ts = true;
    p.tx_timestamp = 0x4242;
    resp_give_as(&p, RIG_EV0 + 1, 3);
    (void)resp_take();
    const struct mrc_pkt sack = *SACK;
    resp_close();
    return sack;
}

TEST(resp_sack__says_nothing_of_ports)
{
    const struct mrc_pkt all = sack_with_planes(MRC_PLANES_ALL, MRC_PLANES_ALL);
    const struct mrc_pkt one = sack_with_planes(1u << 1, MRC_PLANES_ALL);
    const struct mrc_pkt other = sack_with_planes(MRC_PLANES_ALL, 1u << 2);
    uint8_t want[64];
    uint8_t got[64];
    const size_t n = mrc_wire_encode(want, &all);
    CHECK_EQ(all.opcode, MRC_OP_SACK);
    CHECK_EQ(mrc_wire_encode(got, &one), n);
    CHECK_MEM(got, want, n);
    CHECK_EQ(mrc_wire_encode(got, &other), n);
    CHECK_MEM(got, want, n);
}
