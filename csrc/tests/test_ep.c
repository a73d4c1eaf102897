/* SPDX-License-Identifier: BSD-2-Clause */
/* Endpoint operations between two engines: who is answered, how often, what a port status update
 * does, and what becomes of probes of our own. */
#include "t.h"

#include "ep_rig.h"

/* ---- answers ---- */

TEST(ep__a_probe_is_answered_on_its_ev_in_the_control_class)
{
    struct rig r;
    struct mrc_pkt p[RIG_BURST];
    struct mrc_tx_pkt tx[RIG_BURST];
    open_pair(&r);
    for (uint32_t i = 0; i < RIG_EVS; i++) {
        const struct mrc_pkt f = request(MRC_EP_OP_EV_PROBE, (uint16_t)(0xFF00 + i));
        deliver(&r, 1, &f, RIG_EV0 + i);
        CHECK_EQ(sent(&r, 1, p, tx), 1);
        CHECK_EQ(p[0].opcode, MRC_OP_EP_RESPONSE);
        CHECK_EQ(p[0].psn, 0xFF00 + i);
        CHECK_EQ(p[0].ep_op, MRC_EP_OP_EV_PROBE);
        CHECK_EQ(p[0].tx_timestamp, 0x1234);
        CHECK_EQ(tx[0].ev, RIG_EV0 + i);
        CHECK_EQ(tx[0].tclass, 46 << 2);
        CHECK_EQ(mrc_tx_udp_len(&tx[0]), 8 + 48 + 4); /* the response of A.11, nothing more */
    }
    struct mrc_pkt other = request(MRC_EP_OP_EV_PROBE, 0xFFFF);
    other.tsr = true; /* in a unit of its own (H22): returned as it came */
    deliver(&r, 1, &other, RIG_EV0);
    CHECK_EQ(sent(&r, 1, p, tx), 1);
    CHECK_EQ(p[0].tx_timestamp, 0x1234);
    rig_close(&r);
}

TEST(ep__an_ev_we_do_not_have_or_use_is_answered_on_another)
{
    struct rig r;
    struct mrc_pkt p[RIG_BURST];
    struct mrc_tx_pkt tx[RIG_BURST];
    const struct mrc_pkt f = request(MRC_EP_OP_EV_PROBE, 7);
    open_pair(&r);
    deliver(&r, 1, &f, 0xBEEF);
    CHECK_EQ(sent(&r, 1, p, tx), 1);
    CHECK(mrc_path_find(r.s[1].path, tx[0].ev) != MRC_EV_NONE);
    CHECK_EQ(mrc_path_set_state(r.s[1].path, 2, MRC_EV_DENIED, r.now), MRC_OK);
    deliver(&r, 1, &f, RIG_EV0 + 2);
    CHECK_EQ(sent(&r, 1, p, tx), 1);
    CHECK_EQ(tx[0].ev, RIG_EV0); /* the other one of its plane */
    rig_close(&r);
}

TEST(ep__a_probe_touches_no_queue_pair)
{
    struct rig r;
    open_pair(&r);
    const size_t bytes = mrc_qp_size(&rig_qp_init);
    mrc_engine_touch(r.s[1].e, rig_qp(&r.s[1]));
    uint8_t *before = malloc(bytes);
    RIG_NEED(before != NULL);
    memcpy(before, r.s[1].qp_mem, bytes);
    const struct mrc_pkt f = request(MRC_EP_OP_EV_PROBE, 7);
    deliver(&r, 1, &f, RIG_EV0);
    CHECK_MEM(r.s[1].qp_mem, before, bytes);
    free(before);
    rig_close(&r);
}

TEST(ep__strangers_and_unknown_kinds_get_nothing)
{
    struct rig r;
    struct mrc_pkt p[RIG_BURST];
    struct mrc_tx_pkt tx[RIG_BURST];
    open_pair(&r);
    struct mrc_pkt f = request(MRC_EP_OP_PORT_STATUS, 7);
    f.port_status_mask = 0;
    r.s[0].addr[15] = 99;
    deliver(&r, 1, &f, RIG_EV0);
    f.ep_op = MRC_EP_OP_EV_PROBE;
    deliver(&r, 1, &f, RIG_EV0);
    f.opcode = MRC_OP_EP_RESPONSE;
    deliver(&r, 1, &f, RIG_EV0);
    r.s[0].addr[15] = 1;
    CHECK_EQ(drops(&r, 1, MRC_DROP_EP_UNKNOWN), 3);
    f = request(2, 7); /* reserved */
    deliver(&r, 1, &f, RIG_EV0);
    f = request(MRC_EP_OP_PORT_STATUS, 7);
    f.port_status_mask = 0;
    f.dqp = r.s[1].qpn; /* not where endpoint operations live */
    deliver(&r, 1, &f, RIG_EV0);
    CHECK_EQ(drops(&r, 1, MRC_DROP_EP_UNKNOWN), 5);
    CHECK_EQ(sent(&r, 1, p, tx), 0);
    CHECK_EQ(mrc_path_active(r.s[1].path), RIG_EVS);
    rig_close(&r);
}

TEST(ep__a_storm_is_answered_in_bounds)
{
    struct rig r;
    struct mrc_pkt p[RIG_BURST];
    struct mrc_tx_pkt tx[RIG_BURST];
    uint64_t answers = 0;
    size_t n;
    open_pair(&r);
    const struct mrc_pkt f = request(MRC_EP_OP_EV_PROBE, 7);
    for (uint64_t i = 0; i < 3000; i++)
        deliver(&r, 1, &f, RIG_EV0);
    CHECK_EQ(drops(&r, 1, MRC_DROP_PROBE_RATE), 3000 - MRC_EP_BURST);
    while ((n = sent(&r, 1, p, tx)) > 0)
        answers += n;
    CHECK_EQ(answers, MRC_EP_BURST);
    for (uint64_t i = 0; i < 3000; i++) { /* and then at its pace, however fast they come */
        r.now += MRC_EP_PACE_NS / 10;
        deliver(&r, 1, &f, RIG_EV0);
        answers += sent(&r, 1, p, tx);
    }
    CHECK(answers >= MRC_EP_BURST + 299 && answers <= MRC_EP_BURST + 301);
    rig_close(&r);
}

TEST(ep__the_ring_of_answers_is_bounded_while_nothing_can_be_sent)
{
    struct rig r;
    open_pair(&r);
    const struct mrc_pkt f = request(MRC_EP_OP_EV_PROBE, 7);
    for (uint64_t i = 0; i < 2 * MRC_EP_ANSWERS; i++) {
        r.now += MRC_EP_PACE_NS;
        deliver(&r, 1, &f, RIG_EV0);
    }
    CHECK_EQ(drops(&r, 1, MRC_DROP_PROBE_RATE), MRC_EP_ANSWERS);
    rig_close(&r); /* answers for a table that goes are forgotten */
}

TEST(ep__programs_that_share_an_address_are_told_apart_by_their_port)
{
    struct rig r;
    struct mrc_pkt p[RIG_BURST];
    struct mrc_tx_pkt tx[RIG_BURST];
    open_pair(&r);
    const struct mrc_path_cfg pc = {.count = 1, .min_active = 1, .event_ring = 16};
    const struct mrc_path_entry_cfg entry = {.ev = RIG_EV0, .plane = 1, .lane = 9};
    struct mrc_ep_addr to = {.dport = 4795, .own_port = 4791};
    void *mem = malloc(mrc_path_size(&pc));
    const uint32_t second = (uint32_t)mrc_path_attach(r.s[1].e, mrc_path_init(mem, &pc, &entry, 0));
    memcpy(to.src, r.s[1].addr, 16);
    memcpy(to.dst, r.s[0].addr, 16);
    CHECK_EQ(mrc_path_lead(r.s[1].e, second, &to), MRC_OK);
    struct mrc_pkt f = request(MRC_EP_OP_EV_PROBE, 7);
    for (int i = 0; i < 2; i++) {
        f.vendor_info = i == 0 ? (uint8_t)to.dport : 0;
        deliver(&r, 1, &f, RIG_EV0);
        CHECK_EQ(sent(&r, 1, p, tx), 1);
        CHECK_EQ(tx[0].lane, i == 0 ? 9 : 0);
    }
    CHECK(mrc_path_detach(r.s[1].e, second) != NULL);
    free(mem);
    rig_close(&r);
}

/* ---- port status of the peer ---- */

TEST(ep__a_port_status_takes_planes_out_at_once_and_is_acknowledged)
{
    struct rig r;
    struct mrc_pkt p[RIG_BURST];
    struct mrc_tx_pkt tx[RIG_BURST];
    open_pair(&r);
    struct mrc_pkt f = request(MRC_EP_OP_PORT_STATUS, 7);
    f.port_status_mask = MRC_PLANES_ALL & ~(1u << 2);
    deliver(&r, 1, &f, RIG_EV0);
    CHECK_EQ(mrc_path_active(r.s[1].path), RIG_EVS / 2);
    CHECK_EQ(planes(&r, 1).remote_up, f.port_status_mask);
    CHECK_EQ(sent(&r, 1, p, tx), 1);
    CHECK(p[0].opcode == MRC_OP_EP_RESPONSE && p[0].psn == 7);
    CHECK_EQ(p[0].ep_op, MRC_EP_OP_PORT_STATUS);
    for (int i = 0; i < 8; i++) { /* nothing more leaves for that plane */
        CHECK_EQ(rig_post(&r, 1, 0, 100, MRC_WR_RDMA_WRITE), 1);
        CHECK_EQ(mrc_engine_tx(r.s[1].e, tx, RIG_BURST, r.now), 1);
        CHECK_EQ(mrc_path_entry(r.s[1].path, mrc_path_find(r.s[1].path, tx[0].ev))->plane, 1);
    }
    r.now += 10 * MRC_MSEC;
    f.port_status_mask = MRC_PLANES_ALL;
    deliver(&r, 1, &f, RIG_EV0 + 1); /* by the plane that is back */
    CHECK_EQ(mrc_path_active(r.s[1].path), RIG_EVS);
    rig_close(&r);
}

TEST(ep__work_that_waits_for_a_plane_goes_on_when_it_is_back)
{
    struct rig r;
    struct mrc_pkt p[RIG_BURST];
    struct mrc_tx_pkt tx[RIG_BURST];
    open_pair(&r);
    struct mrc_pkt f = request(MRC_EP_OP_PORT_STATUS, 7);
    f.port_status_mask = 0;
    deliver(&r, 1, &f, RIG_EV0);
    CHECK_EQ(rig_post(&r, 1, 0, 100, MRC_WR_RDMA_WRITE), 1);
    CHECK_EQ(sent(&r, 1, p, tx), 1); /* the answer, and no data */
    CHECK_EQ(p[0].opcode, MRC_OP_EP_RESPONSE);
    f.port_status_mask = MRC_PLANES_ALL;
    f.tx_timestamp++;
    deliver(&r, 1, &f, RIG_EV0);
    CHECK_EQ(mrc_engine_tx(r.s[1].e, tx, RIG_BURST, r.now), 2); /* answer and data, at once */
    rig_close(&r);
}

TEST(ep__an_update_that_was_overtaken_changes_nothing)
{
    struct rig r;
    open_pair(&r);
    struct mrc_pkt f = request(MRC_EP_OP_PORT_STATUS, 8);
    f.tx_timestamp = 5; /* across the wrap */
    deliver(&r, 1, &f, RIG_EV0);
    f.tx_timestamp = 0xFFF0;
    f.psn = 7;
    f.port_status_mask = 0;
    r.now += MRC_MSEC;
    deliver(&r, 1, &f, RIG_EV0);
    CHECK_EQ(mrc_path_active(r.s[1].path), RIG_EVS);
    r.now += 5 * MRC_MSEC; /* too far apart to say: the later arrival counts */
    deliver(&r, 1, &f, RIG_EV0);
    CHECK_EQ(mrc_path_active(r.s[1].path), 0);
    rig_close(&r);
}

/* Each change costs work in all entries: a few at once, then a pace. What is not heard is not
 * answered, so that an honest node says it again. */
TEST(ep__a_node_whose_ports_flap_is_heard_at_a_pace)
{
    struct rig r;
    struct mrc_pkt p[RIG_BURST];
    struct mrc_tx_pkt tx[RIG_BURST];
    size_t heard = 0;
    open_pair(&r);
    struct mrc_pkt f = request(MRC_EP_OP_PORT_STATUS, 7);
    for (int i = 0; i < 1000; i++) {
        f.port_status_mask = planes(&r, 1).remote_up ^ 1u << 2; /* a change, each */
        f.tx_timestamp++;
        deliver(&r, 1, &f, RIG_EV0);
        heard += sent(&r, 1, p, tx);
    }
    CHECK_EQ(heard, MRC_EP_FLAPS);
    CHECK_EQ(drops(&r, 1, MRC_DROP_PROBE_RATE), 1000 - MRC_EP_FLAPS);
    f.port_status_mask ^= 1u << 2; /* no news costs nothing */
    deliver(&r, 1, &f, RIG_EV0);
    CHECK_EQ(sent(&r, 1, p, tx), 1);
    r.now += MRC_EP_FLAP_PACE_NS;
    f.port_status_mask ^= 1u << 2;
    deliver(&r, 1, &f, RIG_EV0);
    CHECK_EQ(planes(&r, 1).remote_up, f.port_status_mask);
    CHECK_EQ(sent(&r, 1, p, tx), 1);
    rig_close(&r);
}

TEST(ep__a_table_made_later_knows_what_the_node_reported)
{
    struct rig r;
    open_pair(&r);
    struct mrc_pkt f = request(MRC_EP_OP_PORT_STATUS, 7);
    f.port_status_mask = MRC_PLANES_ALL & ~(1u << 2);
    deliver(&r, 1, &f, RIG_EV0);
    const struct mrc_path_cfg pc = {.count = 2, .min_active = 1, .event_ring = 16};
    const struct mrc_path_entry_cfg entry[2] = {{.ev = 1, .plane = 1}, {.ev = 2, .plane = 2}};
    struct mrc_ep_addr to = {.dport = 0};
    struct mrc_path_table *t = mrc_path_init(malloc(mrc_path_size(&pc)), &pc, entry, 0);
    const uint32_t id = (uint32_t)mrc_path_attach(r.s[1].e, t);
    memcpy(to.dst, r.s[0].addr, 16);
    CHECK_EQ(mrc_path_lead(r.s[1].e, id, &to), MRC_OK);
    CHECK_EQ(mrc_path_lead(r.s[1].e, id, &to), MRC_ERR_INVAL); /* once */
    CHECK_EQ(mrc_path_active(t), 1);
    f.port_status_mask = MRC_PLANES_ALL;
    f.tx_timestamp++;
    deliver(&r, 1, &f, RIG_EV0);
    CHECK_EQ(mrc_path_active(t), 2); /* all tables to that node */
    CHECK_EQ(mrc_path_active(r.s[1].path), RIG_EVS);
    free(mrc_path_detach(r.s[1].e, id));
    rig_close(&r);
}

/* ---- port status of our own ---- */

TEST(ep__the_peer_is_told_of_a_plane_and_of_its_return)
{
    struct rig r;
    open_pair(&r);
    for (int up = 0; up < 2; up++) {
        const uint32_t mask = up != 0 ? MRC_PLANES_ALL : MRC_PLANES_ALL & ~(1u << 1);
        CHECK_EQ(mrc_path_planes_set(r.s[0].e, r.s[0].path_id, mask, MRC_PLANES_ALL), MRC_OK);
        CHECK_EQ(planes(&r, 0).pending, 1);
        CHECK_EQ(rig_move(&r, 0), 1);
        CHECK_EQ(mrc_path_active(r.s[1].path), up != 0 ? RIG_EVS : RIG_EVS / 2);
        tick(&r, 10 * MRC_USEC);
        CHECK_EQ(rig_move(&r, 1), 1);
        CHECK_EQ(planes(&r, 0).pending, 0);
        CHECK_EQ(planes(&r, 0).told, mask);
        CHECK(!mrc_engine_tx_pending(r.s[0].e));
        tick(&r, MRC_SEC);
        CHECK_EQ(rig_move(&r, 0), 0); /* once acknowledged, silence */
    }
    CHECK_EQ(mrc_path_planes_set(r.s[0].e, 77, 0, 0), MRC_ERR_NOENT);
    rig_close(&r);
}

TEST(ep__an_unanswered_update_is_repeated_on_other_planes_and_then_seldom)
{
    struct rig r;
    struct mrc_pkt p[RIG_BURST];
    struct mrc_tx_pkt tx[RIG_BURST];
    const struct mrc_path_cfg pc = {.count = 4, .min_active = 1, .event_ring = 16, .seed = 5};
    struct mrc_path_entry_cfg entry[4] = {{0}};
    uint32_t seen = 0;
    uint16_t id = 0;
    struct mrc_ep_addr to = {.dport = 0};
    open_pair(&r);
    for (uint32_t i = 0; i < 4; i++)
        entry[i] = (struct mrc_path_entry_cfg){.ev = 50 + i, .plane = (uint8_t)(1 + i)};
    struct mrc_path_table *t = mrc_path_init(malloc(mrc_path_size(&pc)), &pc, entry, 0);
    const uint32_t path = (uint32_t)mrc_path_attach(r.s[0].e, t);
    to.dst[0] = 0xEE; /* nobody there */
    CHECK_EQ(mrc_path_lead(r.s[0].e, path, &to), MRC_OK);
    CHECK_EQ(mrc_path_planes_set(r.s[0].e, path, ~(1u << 3), ~0u), MRC_OK);
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(mrc_engine_tx(r.s[0].e, tx, RIG_BURST, r.now), 1);
        CHECK_EQ(mrc_engine_tx(r.s[0].e, tx + 1, RIG_BURST - 1, r.now), 0);
        CHECK(mrc_wire_decode(p, tx[0].hdr, tx[0].hdr_len, true) == MRC_WIRE_OK);
        CHECK_EQ(p[0].port_status_mask, 0xFFFFFFF6); /* H19: bit N is port N, bit 0 unused */
        CHECK_EQ(tx[0].tclass, 46 << 2);
        CHECK(i == 0 || p[0].psn == id);
        id = (uint16_t)p[0].psn;
        seen |= 1u << mrc_path_entry(t, mrc_path_find(t, tx[0].ev))->plane;
        tick(&r, MRC_MSEC - 1);
        CHECK_EQ(mrc_engine_tx(r.s[0].e, tx, RIG_BURST, r.now), 0);
        tick(&r, 1);
    }
    CHECK_EQ(seen, 1u << 1 | 1u << 2 | 1u << 4);
    uint64_t later = 0;
    const mrc_ns end = r.now + 60 * MRC_SEC;
    while (r.now < end) {
        later += mrc_engine_tx(r.s[0].e, tx, RIG_BURST, r.now);
        tick(&r, mrc_engine_deadline(r.s[0].e) - r.now);
    }
    CHECK(later > 50 && later < 80);
    free(mrc_path_detach(r.s[0].e, path));
    rig_close(&r);
}

TEST(ep__an_answer_to_an_older_update_does_not_settle_the_newer)
{
    struct rig r;
    struct mrc_pkt p[RIG_BURST];
    struct mrc_tx_pkt tx[RIG_BURST];
    open_pair(&r);
    CHECK_EQ(mrc_path_planes_set(r.s[0].e, r.s[0].path_id, ~(1u << 1), ~0u), MRC_OK);
    CHECK_EQ(sent(&r, 0, p, tx), 1);
    struct mrc_pkt f = {.opcode = MRC_OP_EP_RESPONSE, .dqp = MRC_QPN_EP, .psn = p[0].psn};
    CHECK_EQ(mrc_path_planes_set(r.s[0].e, r.s[0].path_id, ~0u, ~0u), MRC_OK);
    deliver(&r, 0, &f, RIG_EV0);
    CHECK_EQ(planes(&r, 0).pending, 1);
    CHECK_EQ(drops(&r, 0, MRC_DROP_EP_STALE), 1);
    CHECK_EQ(sent(&r, 0, p, tx), 1);
    deliver(&r, 0, &f, RIG_EV0); /* once more, now that both are on their way */
    CHECK_EQ(planes(&r, 0).pending, 1);
    f.psn = p[0].psn;
    deliver(&r, 0, &f, RIG_EV0);
    CHECK_EQ(planes(&r, 0).pending, 0);
    rig_close(&r);
}

/* ---- probes of our own ---- */

TEST(ep__probes_measure_each_ev_and_give_one_result_each)
{
    struct rig r;
    struct mrc_ep_rsp out[8];
    struct mrc_ep_req req[RIG_EVS];
    open_pair(&r);
    for (uint32_t i = 0; i < RIG_EVS; i++)
        req[i] = probe(&r, 0, i, (uint16_t)(10 + i));
    CHECK_EQ(mrc_engine_ep_post(r.s[0].e, req, RIG_EVS, r.now), RIG_EVS);
    CHECK_EQ(rig_move(&r, 0), RIG_EVS);
    tick(&r, 30 * MRC_USEC + 17);
    CHECK(!mrc_engine_ep_any(r.s[0].e));
    CHECK_EQ(rig_move(&r, 1), RIG_EVS);
    CHECK(mrc_engine_ep_any(r.s[0].e));
    CHECK_EQ(mrc_engine_ep_poll(r.s[0].e, out, 8), RIG_EVS);
    for (uint32_t i = 0; i < RIG_EVS; i++) {
        CHECK(out[i].id == 10 + i && out[i].ev == RIG_EV0 + i && out[i].plane == 1 + i % 2);
        CHECK_EQ(out[i].rtt_ns, 30 * MRC_USEC + 17);
        CHECK_EQ(out[i].path, r.s[0].path_id);
    }
    CHECK_EQ(mrc_engine_ep_poll(r.s[0].e, out, 8), 0);
    tick(&r, MRC_SEC);
    CHECK_EQ(mrc_engine_ep_poll(r.s[0].e, out, 8), 0); /* no second result */
    rig_close(&r);
}

TEST(ep__a_lost_probe_fails_in_time_and_its_late_answer_is_counted)
{
    struct rig r;
    struct mrc_ep_rsp out[8];
    struct mrc_pkt p[RIG_BURST];
    struct mrc_tx_pkt tx[RIG_BURST];
    open_pair(&r);
    struct mrc_ep_req req = probe(&r, 0, 3, 0xABCD);
    const mrc_ns due = r.now + req.timeout_ns;
    CHECK_EQ(mrc_engine_ep_post(r.s[0].e, &req, 1, r.now), 1);
    CHECK_EQ(mrc_engine_ep_post(r.s[0].e, &req, 1, r.now), (uint64_t)MRC_ERR_BUSY);
    CHECK_EQ(sent(&r, 0, p, tx), 1);
    CHECK_EQ(tx[0].ev, RIG_EV0 + 3);
    CHECK_EQ(mrc_engine_deadline(r.s[0].e), due);
    tick(&r, due - r.now);
    CHECK_EQ(mrc_engine_ep_poll(r.s[0].e, out, 8), 1);
    CHECK(out[0].id == 0xABCD && out[0].rtt_ns == MRC_NEVER);
    const struct mrc_pkt f = {.opcode = MRC_OP_EP_RESPONSE,
                              .dqp = MRC_QPN_EP,
                              .psn = 0xABCD,
                              .ep_op = MRC_EP_OP_EV_PROBE};
    deliver(&r, 0, &f, RIG_EV0);
    CHECK_EQ(drops(&r, 0, MRC_DROP_EP_STALE), 1);
    CHECK_EQ(mrc_engine_ep_poll(r.s[0].e, out, 8), 0);
    CHECK_EQ(mrc_path_active(r.s[0].path), RIG_EVS); /* a probe reports, it does not judge */
    rig_close(&r);
}

TEST(ep__a_second_answer_and_one_never_asked_for_are_counted)
{
    struct rig r;
    struct mrc_ep_rsp out[8];
    open_pair(&r);
    const struct mrc_ep_req req = probe(&r, 0, 0, 5);
    struct mrc_pkt f = {.opcode = MRC_OP_EP_RESPONSE, .dqp = MRC_QPN_EP, .psn = 5, .ep_op = 1};
    CHECK_EQ(mrc_engine_ep_post(r.s[0].e, &req, 1, r.now), 1);
    deliver(&r, 0, &f, RIG_EV0); /* before the question left */
    CHECK_EQ(drops(&r, 0, MRC_DROP_EP_STALE), 1);
    (void)rig_move(&r, 0);
    deliver(&r, 0, &f, RIG_EV0);
    deliver(&r, 0, &f, RIG_EV0);
    f.psn = 6;
    deliver(&r, 0, &f, RIG_EV0);
    CHECK_EQ(drops(&r, 0, MRC_DROP_EP_STALE), 3);
    CHECK_EQ(mrc_engine_ep_poll(r.s[0].e, out, 8), 1);
    rig_close(&r);
}

TEST(ep__h3_an_op_read_from_another_place_is_no_reason_to_refuse)
{
    struct rig r;
    struct mrc_ep_rsp out[8];
    open_pair(&r);
    const struct mrc_ep_req req = probe(&r, 0, 0, 5);
    CHECK_EQ(mrc_engine_ep_post(r.s[0].e, &req, 1, r.now), 1);
    (void)rig_move(&r, 0);
    const struct mrc_pkt f = {
        .opcode = MRC_OP_EP_RESPONSE, .dqp = MRC_QPN_EP, .psn = 5, .ep_op = 0};
    deliver(&r, 0, &f, RIG_EV0); /* op in bits 5:4 reads as 0 in bits 3:2 */
    CHECK_EQ(mrc_engine_ep_poll(r.s[0].e, out, 8), 1);
    CHECK(out[0].rtt_ns != MRC_NEVER);
    rig_close(&r);
}

TEST(ep__probes_are_bounded_and_checked)
{
    struct rig r;
    struct mrc_ep_rsp out[MRC_EP_PROBES];
    struct mrc_ep_req req;
    open_pair(&r);
    for (uint32_t i = 0; i < MRC_EP_PROBES; i++) {
        req = probe(&r, 0, i % RIG_EVS, (uint16_t)i);
        CHECK_EQ(mrc_engine_ep_post(r.s[0].e, &req, 1, r.now), 1);
    }
    req.id = 0xFFFF;
    CHECK_EQ(mrc_engine_ep_post(r.s[0].e, &req, 1, r.now), (uint64_t)MRC_ERR_FULL);
    tick(&r, MRC_SEC); /* never sent: they fail all the same */
    CHECK_EQ(mrc_engine_ep_post(r.s[0].e, &req, 1, r.now), (uint64_t)MRC_ERR_FULL);
    CHECK_EQ(mrc_engine_ep_poll(r.s[0].e, out, MRC_EP_PROBES), MRC_EP_PROBES);
    struct mrc_ep_req bad = req;
    bad.ev = 1;
    CHECK_EQ(mrc_engine_ep_post(r.s[0].e, &bad, 1, r.now), (uint64_t)MRC_ERR_NOENT);
    bad = req;
    bad.path = 1;
    CHECK_EQ(mrc_engine_ep_post(r.s[0].e, &bad, 1, r.now), (uint64_t)MRC_ERR_NOENT);
    bad = req;
    bad.dscp = 64;
    CHECK_EQ(mrc_engine_ep_post(r.s[0].e, &bad, 1, r.now), (uint64_t)MRC_ERR_INVAL);
    bad = req;
    bad.timeout_ns = 0;
    CHECK_EQ(mrc_engine_ep_post(r.s[0].e, &bad, 1, r.now), (uint64_t)MRC_ERR_INVAL);
    CHECK_EQ(mrc_engine_ep_post(r.s[0].e, &req, 1, r.now), 1);
    rig_close(&r); /* outstanding ones go with their table */
}

TEST(ep__a_probe_goes_out_in_the_class_asked_for)
{
    struct rig r;
    struct mrc_pkt p[RIG_BURST];
    struct mrc_tx_pkt tx[RIG_BURST];
    open_pair(&r);
    struct mrc_ep_req req = probe(&r, 0, 1, 5);
    req.dscp = 10;
    CHECK_EQ(mrc_engine_ep_post(r.s[0].e, &req, 1, r.now), 1);
    CHECK_EQ(sent(&r, 0, p, tx), 1);
    CHECK_EQ(tx[0].tclass, 10 << 2 | 2);
    CHECK_EQ(p[0].ep_op, MRC_EP_OP_EV_PROBE);
    CHECK_EQ(p[0].tx_timestamp, (uint16_t)(r.now / 128));
    rig_close(&r);
}
