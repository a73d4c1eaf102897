/* SPDX-License-Identifier: BSD-2-Clause */
/* What a responder does when it cannot take all: NACKs with real causes (MRC B.3, B.7), a window
 * that moves (B.12), the penalty (E.6). */
#include "resp_rig.h"
#include "t.h"

#define SACK (resp_first(MRC_OP_SACK))
#define NACK (resp_first(MRC_OP_NACK))

/* One packet that asks, so that a SACK comes at once. */
static const struct mrc_pkt *asked(uint32_t i)
{
    struct mrc_pkt p = resp_pkt(i, MRC_OP_WRITE_ONLY);
    p.a = true;
    resp_give(&p);
    (void)resp_take();
    return SACK;
}

/* ---- settings ---- */

TEST(resp_flow__settings_have_ranges)
{
    struct mrc_engine_cfg cfg = {.qp_max = 1,
                                 .mr_max = 1,
                                 .cq_max = 1,
                                 .path_max = 1,
                                 .cc_max = 1,
                                 .penalty_percent = 99,
                                 .icrc_skip_percent = 99,
                                 .service_time = 1,
                                 .ooo_max = UINT32_MAX,
                                 .imm_max = UINT32_MAX};
    CHECK(mrc_engine_size(&cfg) != 0);
    cfg.penalty_percent = 100;
    CHECK_EQ(mrc_engine_size(&cfg), 0);
    cfg.penalty_percent = 0;
    cfg.icrc_skip_percent = 100;
    CHECK_EQ(mrc_engine_size(&cfg), 0);
    cfg.icrc_skip_percent = 0;
    cfg.service_time = 2;
    CHECK_EQ(mrc_engine_size(&cfg), 0);
}

TEST(resp_flow__settings_reach_their_places)
{
    const struct mrc_engine_cfg cfg = {.qp_max = 1,
                                       .mr_max = 1,
                                       .cq_max = 1,
                                       .path_max = 1,
                                       .cc_max = 1,
                                       .penalty_percent = 60,
                                       .icrc_skip_percent = 5,
                                       .service_time = 1,
                                       .ooo_max = 7,
                                       .imm_max = 9};
    void *mem = malloc(mrc_engine_size(&cfg));
    const struct mrc_engine *e = mrc_engine_init(mem, &cfg, 0);
    CHECK(e->env.rx.ooo_max == 7 && e->env.rx.imm_max == 9 && e->env.rx.penalty_percent == 60);
    CHECK(e->env.icrc_skip_percent == 5 && e->env.service_time);
    free(mem);
}

/* ---- B.7: every reason has a cause ---- */

static void nacked(const struct mrc_pkt *f, uint8_t reason, enum mrc_drop why)
{
    const uint64_t before = resp_drops(why);
    const uint64_t taken = resp_qp()->stats.packets_received;
    struct mrc_pkt p = *f;
    p.ts = true;
    p.tx_timestamp = 0x4321;
    resp_give_as(&p, RIG_EV0 + 2, 2);
    CHECK_EQ(resp_take(), 1);
    CHECK(NACK->opcode != 0 && NACK->nack_reason == reason);
    CHECK(NACK->cack_psn == f->psn && NACK->psn == f->psn && NACK->entropy == RIG_EV0 + 2);
    CHECK(NACK->tx_timestamp == 0x4321 && NACK->cc_type == 2); /* H31 */
    CHECK_EQ(NACK->spdcid, resp.r.s[1].qpn & 0xFFFF);
    CHECK_EQ(resp_drops(why), before + 1);
    CHECK_EQ(resp_qp()->stats.packets_received, taken); /* forgotten: no bit, no bytes */
    CHECK(resp_qp()->attr.state == MRC_QPS_RTS);
}

TEST(resp_flow__no_bitmap)
{
    resp_open(false);
    resp_load()->ooo_max = 4; /* of which two are left to others */
    resp_begin();
    resp_only(2);
    resp_only(4);
    (void)resp_take();
    const struct mrc_pkt late = resp_pkt(6, MRC_OP_WRITE_ONLY);
    nacked(&late, MRC_NACK_NO_BITMAP, MRC_DROP_NO_BITMAP);
    CHECK_EQ(resp_buf()[6 * RIG_MTU], 0x5A);
    CHECK_EQ(resp_load()->ooo_used, 2);
    resp_only(1); /* what is next needs no bit, and frees those behind it */
    CHECK_EQ(resp_qp()->resp.rx.cack.v, RESP_FIRST + 2);
    CHECK_EQ(resp_load()->ooo_used, 1);
    resp_give(&late);
    CHECK_EQ(resp_qp()->stats.packets_received, 5);
    CHECK_EQ(resp_load()->ooo_used, 2);
    resp_close();
}

TEST(resp_flow__the_pools_belong_to_all_queue_pairs_and_are_given_back)
{
    resp_open(false);
    resp_receives(2);
    struct mrc_pkt p = resp_pkt(3, MRC_OP_WRITE_ONLY_IMM);
    p.rqmsn = 1;
    resp_give(&p);
    resp_only(5);
    CHECK(resp_load()->ooo_used == 2 && resp_load()->imm_used == 1);
    const struct mrc_qp_attr a = {.state = MRC_QPS_ERR};
    CHECK_EQ(resp_modify(&a, MRC_QP_STATE), MRC_OK);
    CHECK(resp_load()->ooo_used == 0 && resp_load()->imm_used == 0);
    rig_reset(&resp.r, 1);
    rig_bring_up(&resp.r, 1, MRC_QPS_RTS);
    resp_only(5);
    CHECK_EQ(resp_load()->ooo_used, 1);
    rig_reset(&resp.r, 1); /* straight from RTS */
    CHECK(resp_load()->ooo_used == 0 && resp_load()->imm_used == 0);
    resp_close();
}

TEST(resp_flow__no_pkt_buffer)
{
    resp_open(false);
    resp_receives(8);
    resp_load()->imm_max = 1;
    resp_begin();
    struct mrc_pkt p = resp_pkt(2, MRC_OP_WRITE_ONLY_IMM);
    p.rqmsn = 2;
    resp_give(&p);
    (void)resp_take();
    struct mrc_pkt q = resp_pkt(3, MRC_OP_WRITE_ONLY_IMM);
    q.rqmsn = 3;
    nacked(&q, MRC_NACK_NO_PKT_BUFFER, MRC_DROP_NO_BUFFER);
    CHECK_EQ(resp_buf()[3 * RIG_MTU], 0x5A);
    resp_only(4); /* data needs no place in the stash */
    CHECK_EQ(resp_drops(MRC_DROP_NO_BUFFER), 1);
    p = resp_pkt(1, MRC_OP_WRITE_ONLY_IMM); /* nor does an immediate whose turn it is */
    p.rqmsn = 1;
    resp_give(&p);
    CHECK_EQ(resp_load()->imm_used, 0);
    resp_give(&q);
    struct mrc_wc wc[8];
    CHECK_EQ(mrc_cq_poll(resp_engine(), 0, wc, 8), 3);
    resp_close();
}

TEST(resp_flow__no_resource_while_the_application_pauses)
{
    for (int all = 0; all < 2; all++) {
        resp_open(false);
        resp_begin();
        struct mrc_qp_attr a = {.rx_paused = 1};
        if (all)
            mrc_engine_rx_pause(resp_engine(), true);
        else
            CHECK_EQ(resp_modify(&a, MRC_QP_RX_PAUSED), MRC_OK);
        struct mrc_pkt p = resp_pkt(1, MRC_OP_WRITE_ONLY);
        nacked(&p, MRC_NACK_NO_RESOURCE, MRC_DROP_PAUSED);
        p = resp_pkt(4, MRC_OP_WRITE_ONLY);
        nacked(&p, MRC_NACK_NO_RESOURCE, MRC_DROP_PAUSED);
        CHECK_EQ(resp_qp()->resp.rx.cack.v, RESP_FIRST);
        resp_only(0); /* what is here already is said as ever */
        CHECK(resp_take() == 1 && SACK->opcode != 0);
        a.rx_paused = 0;
        if (all)
            mrc_engine_rx_pause(resp_engine(), false);
        else
            CHECK_EQ(resp_modify(&a, MRC_QP_RX_PAUSED), MRC_OK);
        resp_only(1);
        CHECK_EQ(resp_qp()->resp.rx.cack.v, RESP_FIRST + 1);
        a.rx_paused = 2;
        CHECK_EQ(resp_modify(&a, MRC_QP_RX_PAUSED), MRC_ERR_INVAL);
        resp_close();
    }
}

static void give_trimmed(uint32_t i, uint8_t dscp, uint8_t ecn)
{
    const struct mrc_pkt p = resp_pkt(i, MRC_OP_WRITE_MIDDLE);
    resp_give_as(&p, RIG_EV0 + 1, (uint8_t)(dscp << 2 | ecn));
}

TEST(resp_flow__trimmed_packets_are_nacked_and_not_received)
{
    static const uint8_t dscp[2] = {RIG_TRIMMED, RIG_TRIMMED_LASTHOP};
    static const uint8_t reason[2] = {MRC_NACK_TRIMMED, MRC_NACK_TRIMMED_LASTHOP};
    resp_open(false);
    resp_begin();
    for (int k = 0; k < 2; k++) {
        give_trimmed(1, dscp[k], 3);
        CHECK_EQ(resp_take(), 1);
        CHECK(NACK->opcode != 0 && NACK->nack_reason == reason[k]);
        CHECK(NACK->cack_psn == RESP_FIRST + 1 && NACK->entropy == RIG_EV0 + 1);
        CHECK_EQ(resp_buf()[RIG_MTU], 0x5A);
    }
    CHECK(resp_qp()->stats.packets_received == 1 && resp_qp()->stats.trims_received == 2);
    CHECK_EQ(resp_qp()->resp.rx.cack.v, RESP_FIRST);
    give_trimmed(0, RIG_TRIMMED, 3); /* already here: said so instead, and the mark says nothing */
    CHECK(resp_take() == 1 && SACK->opcode != 0 && SACK->mark == MRC_MARK_NONE); /* H33 */
    give_trimmed(RESP_WINDOW + 5, RIG_TRIMMED, 2);
    CHECK(resp_take() == 1 && NACK->nack_reason == MRC_NACK_PSN_OOR_WINDOW);
    give_trimmed((1 << 23) - 1, RIG_TRIMMED, 2);
    CHECK_EQ(resp_take(), 0);
    resp_engine()->env.dscp_trimmed_lasthop = RIG_TRIMMED_LASTHOP;
    resp_close();
}

/* UNEXP_EVENT: data for a queue pair that ended for a reason of its own. */
TEST(resp_flow__unexp_event_from_a_queue_pair_that_ended)
{
    resp_open(false);
    resp_begin();
    const struct mrc_qp_attr a = {.state = MRC_QPS_ERR};
    CHECK_EQ(resp_modify(&a, MRC_QP_STATE), MRC_OK);
    for (int n = 0; n < 100; n++)
        resp_only(1);
    CHECK_EQ(resp_take(), 1); /* one for a whole burst */
    CHECK(NACK->opcode != 0 && NACK->nack_reason == MRC_NACK_UNEXP_EVENT);
    CHECK_EQ(NACK->cack_psn, RESP_FIRST + 1);
    CHECK_EQ(resp_qp()->stats.packets_received, 1);
    const struct mrc_pkt probe = {.opcode = MRC_OP_PROBE, .dqp = resp.r.s[1].qpn, .ftype = 1};
    resp_give(&probe);
    CHECK(resp_take() == 1 && NACK->cack_psn == RESP_FIRST); /* a PSN that its peer knows */
    resp_close();
}

/* What was due before it ended says less than the refusal, and would be taken for life. */
TEST(resp_flow__a_queue_pair_that_ended_acknowledges_nothing_more)
{
    resp_open(false);
    resp_begin();
    struct mrc_pkt p = resp_pkt(1, MRC_OP_WRITE_ONLY);
    p.a = true;
    resp_give(&p); /* a SACK is due */
    const struct mrc_qp_attr a = {.state = MRC_QPS_ERR};
    CHECK_EQ(resp_modify(&a, MRC_QP_STATE), MRC_OK);
    resp_only(2);
    (void)resp_take();
    CHECK_EQ(resp_count(MRC_OP_NACK), 1);
    CHECK_EQ(resp_count(MRC_OP_SACK), 0);
    resp_close();
}

TEST(resp_flow__a_nack_leaves_before_a_sack)
{
    resp_open(false);
    const struct mrc_pkt probe = {.opcode = MRC_OP_PROBE, .dqp = resp.r.s[1].qpn, .ftype = 1};
    resp_give(&probe);
    resp_only(RESP_WINDOW);
    CHECK_EQ(resp_take(), 2);
    CHECK(resp.out[0].opcode == MRC_OP_NACK && resp.out[1].opcode == MRC_OP_SACK);
    resp_close();
}

/* However many are refused between two turns, the answers are a few dozen. */
TEST(resp_flow__refusals_are_bounded)
{
    resp_open(false);
    mrc_engine_rx_pause(resp_engine(), true);
    for (uint32_t i = 0; i < 1000; i++)
        resp_only(i);
    CHECK_EQ(resp_take(), MRC_NACK_RING);
    CHECK_EQ(resp_drops(MRC_DROP_PAUSED), 1000);
    resp_close();
}

/* ---- B.12: the window moves ---- */

static void set_mpr(uint16_t units)
{
    const struct mrc_qp_attr a = {.mpr_dest = units};
    CHECK_EQ(resp_modify(&a, MRC_QP_MPR_DEST), MRC_OK);
}

/* Field report 1: exact units on the wire. */
TEST(resp_mpr__every_sack_says_the_window)
{
    resp_open(true);
    CHECK_EQ(asked(0)->mpr, RIG_MPR);
    const struct mrc_pkt probe = {.opcode = MRC_OP_PROBE, .dqp = resp.r.s[1].qpn, .ftype = 1};
    resp_give(&probe);
    (void)resp_take();
    CHECK_EQ(SACK->mpr, RIG_MPR);
    set_mpr(3);
    CHECK_EQ(asked(1)->mpr, 3);
    resp_close();
    resp_open(false); /* not agreed: 0 */
    CHECK_EQ(asked(0)->mpr, 0);
    const struct mrc_qp_attr a = {.mpr_dest = 3}; /* and nobody would learn of a change */
    CHECK_EQ(resp_modify(&a, MRC_QP_MPR_DEST), MRC_ERR_STATE);
    resp_close();
}

/* Field report 2: the old edge holds until cack has passed by; beyond it the sender is told. */
TEST(resp_mpr__shrinks_without_taking_back_what_was_offered)
{
    resp_open(true);
    resp_begin();
    set_mpr(2);
    resp_only(RESP_WINDOW); /* the old edge: cack is the first packet */
    CHECK_EQ(resp_qp()->stats.packets_received, 2);
    resp_only(RESP_WINDOW + 1);
    CHECK(resp_take() == 1 && NACK->nack_reason == MRC_NACK_PSN_OOR_WINDOW);
    for (uint32_t i = 1; i <= 500; i++)
        resp_only(i);
    (void)resp_take();
    resp_only(RESP_WINDOW + 1); /* the edge has not moved */
    CHECK(resp_take() == 1 && NACK->opcode != 0);
    for (uint32_t i = 501; i <= RESP_WINDOW - 256; i++)
        resp_only(i);
    resp_only(RESP_WINDOW + 1);
    (void)resp_take();
    CHECK(NACK->opcode != 0);
    for (uint32_t i = RESP_WINDOW - 255; i <= RESP_WINDOW - 240; i++)
        resp_only(i); /* now the small window reaches beyond it */
    resp_only(RESP_WINDOW - 240 + 256);
    (void)resp_take();
    CHECK(NACK->opcode == 0);
    resp_only(RESP_WINDOW - 240 + 257);
    (void)resp_take();
    CHECK(NACK->opcode != 0);
    resp_close();
}

TEST(resp_mpr__grows_at_once)
{
    resp_open(true);
    resp_begin();
    set_mpr(1);
    for (uint32_t i = 1; i <= RESP_WINDOW; i++)
        resp_only(i);
    (void)resp_take();
    resp_only(RESP_WINDOW + 129);
    CHECK(resp_take() == 1 && NACK->opcode != 0);
    set_mpr(2);
    resp_only(RESP_WINDOW + 256);
    (void)resp_take();
    CHECK(NACK->opcode == 0);
    CHECK_EQ(resp_qp()->resp.rx.ooo_count, 1);
    resp_close();
}

/* The tracking pool fills: less is offered, down to one unit; it empties: all of it again. */
TEST(resp_mpr__follows_the_pool)
{
    static const struct {
        uint32_t used;
        uint16_t units;
    } c[] = {{0, 8}, {50, 8}, {75, 4}, {90, 1}, {100, 1}, {50, 8}, {0, 8}};
    resp_open(true);
    resp_load()->ooo_max = 200;
    uint32_t i = 0;
    for (; i < sizeof c / sizeof *c; i++) {
        resp_load()->ooo_used = resp_qp()->resp.rx.ooo_count = c[i].used;
        CHECK_EQ(asked(i)->mpr, c[i].units);
        CHECK_EQ(resp_qp()->resp.rx.target, c[i].units * 128u);
    }
    resp_load()->ooo_used = 200; /* by other queue pairs: they are told */
    resp_qp()->resp.rx.ooo_count = 0;
    CHECK_EQ(asked(i)->mpr, 8);
    resp_load()->ooo_used = 0;
    resp_close();
}

/* B.12: 0 would be no news to the sender, who would go on with a window that is no more. */
TEST(resp_mpr__never_says_nothing)
{
    resp_open(true);
    resp_load()->ooo_max = 200;
    for (uint32_t i = 0; i < 60; i++) { /* the share that leaves less than a unit, and more */
        resp_load()->ooo_used = resp_qp()->resp.rx.ooo_count = 70 + i;
        CHECK(asked(i)->mpr >= 1);
        CHECK_EQ(resp_qp()->resp.rx.target, SACK->mpr * 128u);
    }
    resp_load()->ooo_used = resp_qp()->resp.rx.ooo_count = 100;
    CHECK_EQ(asked(60)->mpr, 1);
    resp_load()->ooo_used = resp_qp()->resp.rx.ooo_count = 0;
    resp_close();
}

/* A gap that never closes holds half of a pool at most, of what is left the next one half, and so
 * on: whoever comes late finds room. */
TEST(resp_flow__no_queue_pair_takes_a_whole_pool)
{
    static const uint32_t want[] = {500, 250, 125, 63};
    uint32_t used = 0;
    for (uint32_t q = 0; q < 4; q++) {
        uint32_t own = 0;
        while (!mrc_rxload_full(own, used, 1000)) {
            own++;
            used++;
        }
        CHECK_EQ(own, want[q]);
    }
    CHECK(!mrc_rxload_full(1u << 20, 1u << 20, 0)); /* no limit */
    resp_open(false);
    resp_load()->ooo_max = 100;
    resp_begin();
    for (uint32_t k = 0; k < 100; k++)
        resp_only(2 + k);
    CHECK_EQ(resp_load()->ooo_used, 50);
    CHECK_EQ(resp_drops(MRC_DROP_NO_BITMAP), 50);
    resp_close();
}

/* ---- E.6: the penalty ---- */

TEST(resp_penalty__is_off_by_default)
{
    resp_open(false);
    resp_load()->ooo_max = 1;
    for (int n = 0; n < 100; n++)
        mrc_engine_rx_backlog(resp_engine(), true);
    CHECK(asked(0)->rcv_cwnd_pen == 0 && !SACK->restore_cwnd);
    resp_close();
}

TEST(resp_penalty__rises_with_what_is_used)
{
    static const uint8_t want[] = {0, 0, 0, 63, 127, 127}; /* at 0, 25, 50, 75, 100, 125 % */
    resp_open(false);
    resp_load()->penalty_percent = 50;
    resp_load()->ooo_max = resp_load()->imm_max = 8; /* of which the share is half */
    for (uint32_t k = 0; k < 6; k++) {
        resp_load()->ooo_used = resp_qp()->resp.rx.ooo_count = k;
        CHECK_EQ(asked(k)->rcv_cwnd_pen, want[k]);
        const struct mrc_rxload l = {.imm_max = 8, .imm_used = k, .penalty_percent = 50};
        CHECK_EQ(mrc_rxload_penalty(&l, mrc_rxload_pressure(&l, 0, k)), want[k]);
    }
    resp_qp()->resp.rx.ooo_count = 0; /* all of it held by others: no news for this one's peer */
    CHECK_EQ(asked(6)->rcv_cwnd_pen, 0);
    resp_load()->ooo_used = 0;
    resp_close();
}

TEST(resp_penalty__counts_turns_that_left_packets_waiting)
{
    resp_open(false);
    resp_load()->penalty_percent = 1;
    for (int n = 0; n < 200; n++)
        mrc_engine_rx_backlog(resp_engine(), true);
    CHECK(asked(0)->rcv_cwnd_pen > 120);
    for (int n = 0; n < 100; n++)
        mrc_engine_rx_backlog(resp_engine(), n % 2 == 0); /* every second */
    const uint8_t half = asked(1)->rcv_cwnd_pen;
    CHECK(half > 40 && half < 80);
    for (int n = 0; n < 200; n++)
        mrc_engine_rx_backlog(resp_engine(), false);
    CHECK_EQ(asked(2)->rcv_cwnd_pen, 0);
    resp_close();
}

/* The application does not poll, or posts no more receives. */
TEST(resp_penalty__counts_an_application_that_lags)
{
    struct mrc_wc wc[RIG_CQ];
    resp_open(false);
    resp_load()->penalty_percent = 25;
    resp_receives(16);
    for (uint32_t i = 0; i < 8; i++) { /* 8 receives remain, as many as may be under way */
        struct mrc_pkt p = resp_pkt(i, MRC_OP_WRITE_ONLY_IMM);
        p.rqmsn = (uint16_t)(i + 1);
        resp_give(&p);
    }
    CHECK_EQ(asked(8)->rcv_cwnd_pen, 0); /* 8 of 64 completions wait */
    for (uint32_t i = 9; i < 13; i++) {
        struct mrc_pkt p = resp_pkt(i, MRC_OP_WRITE_ONLY_IMM);
        p.rqmsn = (uint16_t)i;
        resp_give(&p);
    }
    CHECK_EQ(asked(13)->rcv_cwnd_pen, 42); /* half of the receives that should be there */
    const uint64_t ids[12] = {0};
    CHECK_EQ(mrc_qp_post_recv(resp_engine(), resp.r.s[1].qpn, ids, 12), 12);
    CHECK_EQ(asked(14)->rcv_cwnd_pen, 0);
    const struct mrc_wc fill = {.status = MRC_WC_SUCCESS};
    while (mrc_cq_get(&resp_engine()->env.cqs, 0)->tail < RIG_CQ)
        CHECK(mrc_cq_push(&resp_engine()->env.cqs, 0, &fill));
    CHECK_EQ(asked(15)->rcv_cwnd_pen, 127);
    CHECK_EQ(mrc_cq_poll(resp_engine(), 0, wc, RIG_CQ), RIG_CQ);
    CHECK_EQ(asked(16)->rcv_cwnd_pen, 0);
    resp_close();
}

TEST(resp_penalty__restore_flag_in_an_episode_and_after_it)
{
    resp_open(false);
    resp_load()->penalty_percent = 50;
    resp_load()->ooo_max = 4;
    CHECK(!asked(0)->restore_cwnd);
    resp_load()->ooo_used = resp_qp()->resp.rx.ooo_count = 4;
    for (uint32_t i = 1; i < 40; i++)
        CHECK(asked(i)->restore_cwnd && SACK->rcv_cwnd_pen == 127);
    resp_load()->ooo_used = resp_qp()->resp.rx.ooo_count = 0;
    for (uint32_t i = 40; i < 40 + MRC_RESTORE_SACKS; i++)
        CHECK(asked(i)->restore_cwnd && SACK->rcv_cwnd_pen == 0);
    CHECK(!asked(40 + MRC_RESTORE_SACKS)->restore_cwnd);
    resp_close();
}

/* Per QP: at least what the application says, or never any. */
TEST(resp_penalty__per_queue_pair)
{
    resp_open(false);
    struct mrc_qp_attr a = {.rx_penalty = 64};
    CHECK_EQ(resp_modify(&a, MRC_QP_RX_PENALTY), MRC_OK);
    CHECK(asked(0)->rcv_cwnd_pen == 64 && SACK->restore_cwnd);
    resp_load()->penalty_percent = 50;
    resp_load()->ooo_max = 4;
    resp_load()->ooo_used = resp_qp()->resp.rx.ooo_count = 4;
    CHECK_EQ(asked(1)->rcv_cwnd_pen, 127);
    a.rx_penalty = MRC_RX_PENALTY_OFF;
    CHECK_EQ(resp_modify(&a, MRC_QP_RX_PENALTY), MRC_OK);
    CHECK_EQ(asked(2)->rcv_cwnd_pen, 0);
    a.rx_penalty = 128;
    CHECK_EQ(resp_modify(&a, MRC_QP_RX_PENALTY), MRC_ERR_INVAL);
    resp_load()->ooo_used = resp_qp()->resp.rx.ooo_count = 0;
    resp_close();
}
