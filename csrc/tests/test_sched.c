/* SPDX-License-Identifier: BSD-2-Clause */
/* The schedule (MRC E.5): one engine, several controllers, several queue pairs each; the peer is
 * the test. What leaves is read from the packets. */
#include "sched_rig.h"

/* ---- turns ---- */

TEST(sched__queue_pairs_of_one_controller_share)
{
    struct bench *b = bench_open(&open_window);
    const uint32_t deep = bench_qp(b, 0, 8);
    const uint32_t shallow = bench_qp(b, 0, 8);
    const uint32_t late = bench_qp(b, 0, 8);
    for (int i = 0; i < DEPTH; i++)
        bench_post(b, deep, 10, false);
    bench_post(b, shallow, 60, false);
    bench_post(b, late, 60, false);
    bench_tx(b, 9 * MRC_TRAIN_MAX);
    CHECK_EQ(b->sent[deep], 3 * MRC_TRAIN_MAX);
    CHECK_EQ(b->sent[shallow], 3 * MRC_TRAIN_MAX);
    CHECK_EQ(b->sent[late], 3 * MRC_TRAIN_MAX);
    bench_close(b);
}

/* Many queue pairs in one QPCC count as one: turns go round the QPCCs first. */

/* The packets at the head of the burst that went by one path, and how many went by each. */
static size_t first_train(const struct bench *b, size_t n, uint32_t by_path[EVS])
{
    size_t train = 1;
    while (train < n && b->out[train].lane == b->out[0].lane)
        train++;
    for (size_t i = 0; i < n; i++)
        by_path[b->out[i].lane]++;
    return train;
}

TEST(sched__what_all_queue_pairs_have_queued_makes_trains)
{
    struct bench *b = bench_open(&open_window);
    uint32_t by_path[EVS] = {0};
    for (uint32_t i = 0; i < QPS; i++)
        bench_post(b, bench_qp(b, 0, 8), 16, false);
    CHECK_EQ(b->cc[0].queued, 16 * QPS);
    size_t n = bench_tx(b, BURST);
    CHECK_EQ(n, 16 * QPS);
    CHECK_EQ(first_train(b, n, by_path), MRC_TRAIN_MAX - 1); /* alone: 4, a path's share of 16 */
    CHECK_EQ(b->cc[0].queued, 0);

    bench_sack(b, 0, 15, 16 * NOMINAL); /* the first one goes on alone */
    bench_post(b, 0, 16 + MRC_TRAIN_MAX, false);
    n = bench_tx(b, BURST);
    CHECK_EQ(n, 16 + MRC_TRAIN_MAX);
    CHECK(first_train(b, n, by_path) < MRC_TRAIN_MAX - 1);
    bench_close(b);
}

TEST(sched__who_ends_has_nothing_queued)
{
    struct bench *b = bench_open(&ten_packets);
    const uint32_t first = bench_qp(b, 0, 8);
    const uint32_t second = bench_qp(b, 0, 8);
    bench_post(b, first, 20, false);
    bench_post(b, second, 20, false);
    CHECK_EQ(bench_tx(b, BURST), 10);
    CHECK_EQ(b->cc[0].queued, 30);
    CHECK(mrc_qp_destroy(b->e, b->qpn[first]) != NULL);
    b->qpn[first] = 0;
    CHECK_EQ(b->cc[0].queued, 20);
    const struct mrc_qp_attr reset = {.state = MRC_QPS_RESET};
    CHECK(mrc_qp_modify(b->e, b->qpn[second], &reset, MRC_QP_STATE, b->now) > 0);
    CHECK_EQ(b->cc[0].queued, 0);
    b->qpn[second] = 0; /* goes with the bench, by its new number */
    bench_close(b);
}

TEST(sched__controllers_share_whatever_their_queue_pairs)
{
    struct bench *b = bench_open(&open_window);
    for (int i = 0; i < 4; i++)
        bench_post(b, bench_qp(b, 0, 8), 300, false);
    const uint32_t alone = bench_qp(b, 1, 8);
    bench_post(b, alone, 300, false);
    bench_tx(b, 16 * MRC_TRAIN_MAX);
    CHECK_EQ(b->sent[alone], 8 * MRC_TRAIN_MAX);
    for (uint32_t i = 0; i < 4; i++)
        CHECK_EQ(b->sent[i], 2 * MRC_TRAIN_MAX);
    bench_close(b);
}

/* Bursts that are no multiple of a train: nobody gains by where they end. */
TEST(sched__a_full_burst_breaks_a_turn_off)
{
    struct bench *b = bench_open(&open_window);
    const uint32_t x = bench_qp(b, 0, 8);
    const uint32_t y = bench_qp(b, 0, 8);
    const uint32_t z = bench_qp(b, 1, 8);
    bench_post(b, x, 400, false);
    bench_post(b, y, 400, false);
    bench_post(b, z, 400, false);
    for (int i = 0; i < 32; i++) /* one packet more than a turn */
        CHECK_EQ(bench_tx(b, MRC_TRAIN_MAX + 1), MRC_TRAIN_MAX + 1);
    const uint32_t all = 32 * (MRC_TRAIN_MAX + 1);
    CHECK(b->sent[z] + MRC_TRAIN_MAX >= all / 2 && b->sent[z] <= all / 2 + MRC_TRAIN_MAX);
    CHECK(b->sent[x] + MRC_TRAIN_MAX >= all / 4 && b->sent[x] <= all / 4 + MRC_TRAIN_MAX);
    CHECK(b->sent[y] + MRC_TRAIN_MAX >= all / 4 && b->sent[y] <= all / 4 + MRC_TRAIN_MAX);
    bench_close(b);
}

/* A window of ten packets, reopened two by two: turns of 16 go on across the closings. */
TEST(sched__a_closed_window_breaks_a_turn_off)
{
    struct bench *b = bench_open(&ten_packets);
    bench_post(b, bench_qp(b, 0, 8), 400, false);
    bench_post(b, bench_qp(b, 0, 8), 400, false);
    uint32_t acked[2] = {0, 0};
    for (int i = 0; i < 200; i++) {
        bench_tx(b, BURST);
        const uint32_t who = b->sent[0] - acked[0] >= b->sent[1] - acked[1] ? 0 : 1;
        acked[who] += 2;
        bench_sack(b, who, acked[who] - 1, acked[who] * NOMINAL);
    }
    const uint32_t all = b->sent[0] + b->sent[1];
    CHECK(all >= 390);
    CHECK(b->sent[0] + MRC_TRAIN_MAX >= b->sent[1] && b->sent[1] + MRC_TRAIN_MAX >= b->sent[0]);
    bench_close(b);
}

TEST(sched__what_leaves_again_goes_first)
{
    struct bench *b = bench_open(&open_window);
    const uint32_t x = bench_qp(b, 0, 8);
    const uint32_t y = bench_qp(b, 0, 8);
    bench_post(b, x, 300, false);
    bench_post(b, y, 40, false);
    bench_tx(b, 2 * MRC_TRAIN_MAX);
    CHECK_EQ(b->sent[y], MRC_TRAIN_MAX);
    struct mrc_qp *q = mrc_engine_qp(b->e, b->qpn[y]);
    for (uint32_t i = 0; i < 3; i++)
        mrc_txtrack_lose(&q->req.tx, mrc_txtrack_slot(&q->req.tx, mrc_psn(i)));
    mrc_engine_touch(b->e, q);
    CHECK_EQ(bench_tx(b, 4), 4);
    for (size_t i = 0; i < 3; i++) { /* x was next */
        CHECK_EQ(bench_dqp(b, i), y);
        CHECK_EQ(mrc_get24(b->out[i].hdr + 9), i); /* oldest gap first, and no more than the gaps */
    }
    CHECK_EQ(bench_dqp(b, 3), x);
    bench_close(b);
}

/* What was taken for lost and has arrived gives no precedence. */
TEST(sched__a_loss_taken_back_goes_to_the_end)
{
    struct bench *b = bench_open(&open_window);
    const uint32_t x = bench_qp(b, 0, 8);
    const uint32_t y = bench_qp(b, 0, 8);
    bench_post(b, x, 300, false);
    bench_post(b, y, 40, false);
    bench_tx(b, 2 * MRC_TRAIN_MAX);
    struct mrc_qp *q = mrc_engine_qp(b->e, b->qpn[y]);
    mrc_txtrack_lose(&q->req.tx, mrc_txtrack_slot(&q->req.tx, mrc_psn(2)));
    mrc_engine_touch(b->e, q);
    bench_sack(b, y, 5, 6 * NOMINAL);
    CHECK_EQ(bench_tx(b, 1), 1);
    CHECK_EQ(bench_dqp(b, 0), x);
    bench_close(b);
}

/* Held back by MPR (128 packets) or by the WIMM limit (1), one does not hold back the other. */
TEST(sched__mpr_and_wimm_limit_block_the_queue_pair_only)
{
    struct bench *b = bench_open(&open_window);
    const uint32_t narrow = bench_qp(b, 0, 1);
    const uint32_t wimms = bench_qp(b, 0, 8);
    const uint32_t other = bench_qp(b, 0, 8);
    bench_post(b, narrow, 300, false);
    bench_post(b, wimms, 1, true);
    bench_post(b, wimms, 1, true);
    bench_post(b, other, 500, false);
    for (int i = 0; i < 4; i++)
        bench_tx(b, BURST);
    CHECK_EQ(b->sent[narrow], 128);
    CHECK_EQ(b->sent[wimms], 1);
    CHECK_EQ(b->sent[other], 500);
    CHECK_EQ(bench_info(b, 0).state, MRC_CCS_READY); /* data waits, and the window is open */
    CHECK(!mrc_engine_tx_pending(b->e));             /* and nobody spins on it */
    bench_close(b);
}

/* One without a usable path neither: its window is open, and others have paths. */
TEST(sched__no_path_blocks_the_queue_pair_only)
{
    struct bench *b = bench_open(&open_window);
    const uint32_t lost = bench_qp(b, 0, 8);
    const uint32_t other = bench_qp(b, 0, 8);
    mrc_engine_qp(b->e, b->qpn[lost])->req.tx.ev_max = 0; /* no entry is of any use to it */
    bench_post(b, lost, 10, false);
    bench_post(b, other, 100, false);
    for (int i = 0; i < 2; i++)
        bench_tx(b, BURST);
    CHECK_EQ(b->sent[lost], 0);
    CHECK_EQ(b->sent[other], 100);
    CHECK_EQ(bench_info(b, 0).state, MRC_CCS_READY);
    bench_close(b);
}

/* A probe may leave when no data may: nothing else would ever open the window again. */
TEST(sched__probes_leave_through_a_closed_window)
{
    struct bench *b = bench_open(&ten_packets);
    for (uint32_t i = 0; i < 3; i++) {
        bench_post(b, bench_qp(b, 0, 8), i < 2 ? 3 : 100, false);
        bench_tx(b, BURST);
    }
    CHECK_EQ(b->sent[2], 4);
    CHECK_EQ(bench_info(b, 0).state, MRC_CCS_ACTIVE);
    for (uint32_t i = 0; i < 3; i++) {
        struct mrc_qp *q = mrc_engine_qp(b->e, b->qpn[i]);
        q->req.probe_due = true;
        mrc_engine_touch(b->e, q);
    }
    CHECK(mrc_engine_tx_pending(b->e));
    CHECK_EQ(bench_tx(b, 2), 2); /* a burst that ends between them loses none */
    CHECK_EQ(bench_tx(b, BURST), 1);
    CHECK(!mrc_engine_tx_pending(b->e));
    bench_close(b);
}

/* ---- figure 4 ---- */

TEST(sched__states_of_figure_4)
{
    struct bench *b = bench_open(&ten_packets);
    const uint32_t q = bench_qp(b, 0, 8);
    struct mrc_cc_info i = bench_info(b, 0);
    CHECK_EQ(i.state, MRC_CCS_IDLE);
    CHECK_EQ(i.qps, 1);
    bench_post(b, q, 12, false);
    i = bench_info(b, 0);
    CHECK_EQ(i.state, MRC_CCS_READY);
    CHECK_EQ(i.backlog_bytes, 12 * MTU);
    bench_tx(b, BURST);
    i = bench_info(b, 0);
    CHECK_EQ(i.state, MRC_CCS_ACTIVE); /* the window has filled */
    CHECK_EQ(i.inflight_pkts, 10);
    CHECK_EQ(i.inflight_bytes, 10 * NOMINAL);
    CHECK_EQ(i.cwnd_bytes, 10 * NOMINAL);
    CHECK_EQ(i.backlog_bytes, 2 * MTU);
    bench_sack(b, q, 4, 5 * NOMINAL);
    CHECK_EQ(bench_info(b, 0).state, MRC_CCS_READY); /* it opens */
    bench_tx(b, BURST);
    i = bench_info(b, 0);
    CHECK_EQ(i.state, MRC_CCS_PENDING);
    CHECK_EQ(i.inflight_pkts, 7);
    CHECK_EQ(i.backlog_bytes, 0);
    struct mrc_qp *qp = mrc_engine_qp(b->e, b->qpn[q]);
    mrc_txtrack_lose(&qp->req.tx, mrc_txtrack_slot(&qp->req.tx, mrc_psn(6)));
    i = bench_info(b, 0);
    CHECK_EQ(i.state, MRC_CCS_READY); /* something waits to leave again */
    CHECK_EQ(i.waiting_rtx, 1);
    CHECK_EQ(i.rtx_bytes, NOMINAL);
    CHECK_EQ(i.inflight_pkts, 6);
    bench_sack(b, q, 11, 12 * NOMINAL);
    i = bench_info(b, 0);
    CHECK_EQ(i.state, MRC_CCS_IDLE);
    CHECK_EQ(i.inflight_pkts, 0);
    bench_close(b);
}

TEST(sched__states_add_up_over_the_queue_pairs)
{
    struct bench *b = bench_open(&ten_packets);
    bench_post(b, bench_qp(b, 0, 8), 30, false);
    bench_post(b, bench_qp(b, 0, 8), 5, false);
    bench_post(b, bench_qp(b, 0, 8), 0, false); /* a message of no bytes waits, too */
    bench_post(b, bench_qp(b, 1, 8), 0, false);
    bench_tx(b, 4);
    const struct mrc_cc_info i = bench_info(b, 0);
    CHECK_EQ(i.qps, 3);
    CHECK_EQ(i.backlog_bytes + (uint64_t)i.inflight_pkts * MTU, 35 * MTU);
    CHECK_EQ(bench_info(b, 2).qps, 0);
    CHECK_EQ(bench_info(b, 2).state, MRC_CCS_IDLE);
    struct mrc_cc_info none;
    CHECK_EQ(mrc_cc_query(b->e, CCS, &none), MRC_ERR_NOENT);
    bench_close(b);
}

/* ---- ends ---- */

/* What one queue pair held of the window is free for the others when it ends: they have nothing in
 * flight, so nothing else would wake them. */
static void end_frees_the_window(int how)
{
    struct bench *b = bench_open(&ten_packets);
    const uint32_t x = bench_qp(b, 0, 8);
    const uint32_t y = bench_qp(b, 0, 8);
    bench_post(b, x, 10, false);
    bench_tx(b, BURST);
    bench_post(b, y, 3, false);
    CHECK_EQ(bench_tx(b, BURST), 0);
    CHECK_EQ(bench_info(b, 0).state, MRC_CCS_ACTIVE);
    struct mrc_qp_attr a = {.state = how == 0 ? MRC_QPS_ERR : MRC_QPS_RESET};
    int rc = 0;
    if (how < 2)
        rc = mrc_qp_modify(b->e, b->qpn[x], &a, MRC_QP_STATE, b->now);
    else
        mrc_qp_destroy(b->e, b->qpn[x]);
    CHECK(rc >= 0);
    CHECK(mrc_engine_tx_pending(b->e));
    CHECK_EQ(bench_tx(b, BURST), 3);
    CHECK_EQ(b->sent[y], 3);
    CHECK_EQ(bench_info(b, 0).qps, how == 0 ? 2 : 1);
    if (how == 1)
        b->qpn[x] = (uint32_t)rc; /* a new life, a new number */
    if (how == 2)
        b->qpn[x] = 0;
    bench_close(b);
}

TEST(sched__an_error_frees_the_window) { end_frees_the_window(0); }
TEST(sched__a_reset_frees_the_window) { end_frees_the_window(1); }
TEST(sched__a_destroyed_queue_pair_frees_the_window) { end_frees_the_window(2); }

/* A completion queue overruns, by whatever cause: its users end, and what they held is free. */
TEST(sched__an_overrun_frees_the_window)
{
    struct bench *b = bench_open(&ten_packets);
    const struct mrc_wc wc = {.status = MRC_WC_SUCCESS};
    CHECK_EQ(mrc_cq_create(b->e, bench_alloc(b, mrc_cq_size(1)), 1), 1);
    const uint32_t x = bench_qp(b, 0, 8);
    const uint32_t y = bench_qp(b, 0, 8);
    const uint32_t z = bench_qp(b, 1, 8);
    mrc_engine_qp(b->e, b->qpn[x])->init.recv_cq = 1;
    bench_post(b, x, 10, false);
    bench_tx(b, BURST);
    bench_post(b, y, 3, false);
    CHECK_EQ(bench_tx(b, BURST), 0);
    while (mrc_cq_push(&b->e->env.cqs, 1, &wc)) {
    }
    mrc_engine_touch(b->e, mrc_engine_qp(b->e, b->qpn[z])); /* of another controller */
    CHECK_EQ(mrc_engine_qp(b->e, b->qpn[x])->attr.state, MRC_QPS_ERR);
    CHECK(mrc_engine_tx_pending(b->e));
    CHECK_EQ(bench_tx(b, BURST), 3);
    CHECK_EQ(b->sent[y], 3);
    mrc_engine_qp(b->e, b->qpn[x])->init.recv_cq = 0;
    bench_close(b);
}

/* ---- what goes first ---- */

/* Peers whose packets ask for more answers than a burst holds do not stop our data. */
TEST(sched__answers_leave_a_quarter_to_data)
{
    static const struct mrc_cc_cfg wide = {
        .kind = MRC_CC_FIXED, .max_cwnd_bytes = 1 << 20, .mtu_bytes = MTU};
    struct bench *b = bench_open(&wide);
    const uint32_t x = bench_qp(b, 0, 8);
    struct mrc_qp *y = mrc_engine_qp(b->e, b->qpn[bench_qp(b, 1, 8)]);
    y->resp.due_tail = y->resp.due_head + 30; /* asked for */
    mrc_engine_touch(b->e, y);
    bench_post(b, x, 10, false);
    CHECK_EQ(mrc_engine_tx(b->e, b->out, 16, b->now), 16);
    CHECK_EQ(y->stats.sacks_sent, 12);
    CHECK_EQ(mrc_engine_tx(b->e, b->out, 64, b->now), 6 + 18); /* what data leaves is theirs */
    CHECK_EQ(y->stats.sacks_sent, 30);
    bench_close(b);
}

/* A table's probes ride on all of its queue pairs, so that one dead peer cannot keep its paths
 * bad. */
TEST(sched__probes_ride_on_more_than_one_queue_pair)
{
    static const struct mrc_cc_cfg wide = {
        .kind = MRC_CC_FIXED, .max_cwnd_bytes = 1 << 20, .mtu_bytes = MTU};
    struct bench *b = bench_open(&wide);
    uint32_t on[QPS] = {0};
    for (uint32_t i = 0; i < 3; i++)
        bench_qp(b, i, 8);
    for (int k = 0; k < 60; k++) {
        mrc_path_set_state(b->path, 0, MRC_EV_GOOD, b->now);
        b->now += MRC_SEC;
        b->path->min_active = 1;
        mrc_path_on_loss(b->path, 0, MRC_EV_R_LOSS, b->now, b->now);
        mrc_engine_touch(b->e, mrc_engine_qp(b->e, b->qpn[0]));
        CHECK_EQ(mrc_engine_tx(b->e, b->out, 8, b->now), 1);
        struct mrc_pkt p;
        uint8_t raw[256];
        memcpy(raw, b->out[0].hdr, b->out[0].hdr_len);
        memcpy(raw + b->out[0].hdr_len, b->out[0].tail, b->out[0].tail_len);
        CHECK(mrc_wire_decode(&p, raw, b->out[0].hdr_len + b->out[0].tail_len, false) ==
              MRC_WIRE_OK);
        for (uint32_t i = 0; i < 3; i++)
            on[i] += p.dqp == 100 + i;
    }
    CHECK_EQ(on[0] + on[1] + on[2], 60);
    CHECK(on[0] > 5 && on[1] > 5 && on[2] > 5);
    bench_close(b);
}

/* What was borrowed comes back with the last acknowledgement; and whoever gets nothing goes on with
 * what is his own. */
TEST(sched__an_empty_pool_slows_and_stops_nobody)
{
    struct bench *b = bench_open(&open_window);
    const uint32_t first = bench_qp(b, 0, 8);
    const uint32_t second = bench_qp(b, 0, 8);
    struct mrc_pool *const pool = &b->e->env.pool;
    mrc_pool_init(pool, (uint8_t *)pool->mem - mrc_align(pool->units), 1); /* room for one */
    bench_post(b, first, 30, false);
    bench_post(b, second, 30, false);
    CHECK_EQ(bench_tx(b, BURST), 30 + MRC_SLOTS_OWN);
    CHECK_EQ(b->sent[second], MRC_SLOTS_OWN);
    CHECK_EQ(pool->used, 1);
    bench_sack(b, second, MRC_SLOTS_OWN - 1, MRC_SLOTS_OWN * NOMINAL);
    CHECK_EQ(bench_tx(b, BURST), MRC_SLOTS_OWN);
    bench_sack(b, first, 29, 30 * NOMINAL);
    CHECK_EQ(pool->used, 0);
    bench_sack(b, second, 2 * MRC_SLOTS_OWN - 1, 2 * MRC_SLOTS_OWN * NOMINAL);
    CHECK_EQ(bench_tx(b, BURST), 30 - 2 * MRC_SLOTS_OWN);
    CHECK_EQ(pool->used, 1);
    CHECK(mrc_qp_destroy(b->e, b->qpn[second]) != NULL);
    b->qpn[second] = 0;
    CHECK_EQ(pool->used, 0);
    bench_close(b);
}
