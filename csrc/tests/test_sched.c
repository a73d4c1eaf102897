/* SPDX-License-Identifier: BSD-2-Clause */
/* The schedule (MRC E.5): one engine, several controllers, several queue pairs each; the peer is
 * the test. What leaves is read from the packets. */
#include <stdlib.h>

#include "mrc_engine_int.h"
#include "mrc_path_priv.h"
#include "t.h"

enum { QPS = 6, CCS = 3, EVS = 4, BUF = 1 << 20, MTU = 1024, BURST = 512, DEPTH = 64 };
enum { NOMINAL = 1024 + 12 + 4 + 16 + 4 + 8 + 40 }; /* BTH, METH, RETH, iCRC, UDP; E.1 */

struct bench {
    struct mrc_engine *e;
    struct mrc_path_table *path;
    struct mrc_cc cc[CCS];
    uint32_t cc_id[CCS];
    void *mem[16];
    uint32_t mems;
    uint8_t *buf;
    uint32_t key;
    uint32_t qpn[QPS];
    uint32_t cc_of[QPS];
    uint32_t qps;
    uint32_t path_id;
    mrc_ns now;
    struct mrc_tx_pkt out[BURST];
    uint32_t sent[QPS]; /* data packets of the last bursts */
};

static void *bench_alloc(struct bench *b, size_t bytes)
{
    void *p = calloc(1, bytes);
    if (p == NULL)
        abort();
    return b->mem[b->mems++] = p;
}

static struct bench *bench_open(const struct mrc_cc_cfg *cc)
{
    struct bench *b = calloc(1, sizeof *b);
    if (b == NULL)
        abort();
    const struct mrc_engine_cfg cfg = {
        .seed = 5, .qp_max = QPS, .mr_max = 2, .cq_max = 2, .path_max = 1, .cc_max = CCS};
    const struct mrc_path_cfg pc = {.count = EVS,
                                    .min_active = EVS,
                                    .probe_successes = 1,
                                    .event_ring = 8,
                                    .probe_interval_ns = MRC_SEC,
                                    .probe_interval_max_ns = MRC_SEC,
                                    .probe_timeout_ns = MRC_SEC,
                                    .seed = 3};
    struct mrc_path_entry_cfg entry[EVS] = {0};
    for (uint32_t i = 0; i < EVS; i++)
        entry[i] = (struct mrc_path_entry_cfg){.ev = 0xC000 + i, .plane = 1, .lane = i};
    b->now = MRC_SEC;
    b->e = mrc_engine_init(bench_alloc(b, mrc_engine_size(&cfg)), &cfg, b->now);
    b->path = mrc_path_init(bench_alloc(b, mrc_path_size(&pc)), &pc, entry, b->now);
    b->path_id = (uint32_t)mrc_path_attach(b->e, b->path);
    for (int i = 0; i < CCS; i++) {
        CHECK_EQ(mrc_cc_init(&b->cc[i], cc, b->now), MRC_OK);
        b->cc_id[i] = (uint32_t)mrc_cc_attach(b->e, &b->cc[i]);
    }
    CHECK_EQ(mrc_cq_create(b->e, bench_alloc(b, mrc_cq_size(1024)), 1024), 0);
    b->buf = bench_alloc(b, BUF);
    CHECK_EQ(mrc_mr_register(b->e, 1, b->buf, BUF, MRC_ACCESS_LOCAL_WRITE, 77, &b->key), MRC_OK);
    return b;
}

/* A queue pair in RTS; returns its index. */
static uint32_t bench_qp(struct bench *b, uint32_t cc, uint16_t mpr)
{
    const struct mrc_qp_init init = {
        .pd = 1, .sq_depth = DEPTH, .rq_depth = 1, .mpr_max = 8, .max_wimm_dest = 4, .ev_max = EVS};
    const uint32_t i = b->qps++;
    struct mrc_qp_attr a = {.state = MRC_QPS_INIT,
                            .access = 3,
                            .path_mtu = MTU,
                            .mpr = mpr,
                            .mpr_dest = mpr,
                            .max_wimm = 1,
                            .max_wimm_dest = 4,
                            .timeout = 14,
                            .exp_cnt = 25,
                            .dport = MRC_UDP_PORT,
                            .dest_qpn = 100 + i,
                            .path = b->path_id,
                            .cc = b->cc_id[cc]};
    a.src[15] = 1;
    a.dst[15] = 2;
    b->cc_of[i] = cc;
    b->qpn[i] = (uint32_t)mrc_qp_create(b->e, bench_alloc(b, mrc_qp_size(&init)), &init);
    CHECK_EQ(mrc_qp_modify(b->e, b->qpn[i], &a, MRC_QP_STATE | MRC_QP_ACCESS, b->now), MRC_OK);
    a.state = MRC_QPS_RTR;
    CHECK_EQ(mrc_qp_modify(b->e, b->qpn[i], &a,
                           MRC_QP_STATE | MRC_QP_AV | MRC_QP_RQ_PSN | MRC_QP_PATH |
                               MRC_QP_MPR_DEST | MRC_QP_WIMM_DEST,
                           b->now),
             MRC_OK);
    a.state = MRC_QPS_RTS;
    CHECK_EQ(mrc_qp_modify(b->e, b->qpn[i], &a,
                           MRC_QP_STATE | MRC_QP_SQ_PSN | MRC_QP_CC | MRC_QP_MPR | MRC_QP_WIMM |
                               MRC_QP_TIMEOUT | MRC_QP_RETRY,
                           b->now),
             MRC_OK);
    return i;
}

static void bench_close(struct bench *b)
{
    for (uint32_t i = 0; i < b->qps; i++)
        if (b->qpn[i] != 0)
            mrc_qp_destroy(b->e, b->qpn[i]);
    for (int i = 0; i < CCS; i++)
        CHECK(mrc_cc_detach(b->e, b->cc_id[i]) == &b->cc[i]);
    for (uint32_t i = 0; i < b->mems; i++)
        free(b->mem[i]);
    free(b);
}

static void bench_post(struct bench *b, uint32_t qp, uint32_t packets, bool imm)
{
    const struct mrc_send_wr wr = {.wr_id = qp,
                                   .laddr = (uint64_t)(uintptr_t)b->buf,
                                   .length = packets * MTU,
                                   .lkey = b->key,
                                   .opcode = imm ? MRC_WR_RDMA_WRITE_WITH_IMM : MRC_WR_RDMA_WRITE,
                                   .flags = MRC_SEND_SIGNALED};
    CHECK_EQ(mrc_qp_post_send(b->e, b->qpn[qp], &wr, 1), 1);
}

/* One burst; counts data packets by queue pair. */
static size_t bench_tx(struct bench *b, size_t max)
{
    const size_t n = mrc_engine_tx(b->e, b->out, max, b->now);
    for (size_t i = 0; i < n; i++) {
        const uint32_t dqp = mrc_get24(b->out[i].hdr + 5);
        if (b->out[i].payload_len != 0 && dqp >= 100 && dqp < 100 + QPS)
            b->sent[dqp - 100]++;
    }
    return n;
}

static uint32_t bench_dqp(const struct bench *b, size_t i)
{
    return mrc_get24(b->out[i].hdr + 5) - 100;
}

/* A SACK for everything up to `cack`, `packets` of them news, as the receiving door would give it.
 */
static void bench_sack(struct bench *b, uint32_t qp, uint32_t cack, uint32_t rcvd_bytes)
{
    uint8_t bytes[128];
    const struct mrc_pkt p = {.opcode = MRC_OP_SACK,
                              .dqp = b->qpn[qp],
                              .psn = cack & 0xFFFFFF,
                              .cack_psn = cack & 0xFFFFFF,
                              .cc_type = 2,
                              .entropy = 0xC000,
                              .rcvd_bytes = (rcvd_bytes + 255) / 256};
    const struct mrc_env *env = &b->e->env;
    const uint32_t len = (uint32_t)mrc_wire_encode(bytes, &p);
    struct mrc_rx_pkt rx = {.bytes = bytes,
                            .len = len + MRC_ICRC_LEN,
                            .udp_len = (uint16_t)(len + MRC_ICRC_LEN + 8),
                            .sport = 0xC000,
                            .dport = MRC_UDP_PORT};
    rx.src[15] = 2;
    rx.dst[15] = 1;
    uint32_t reg = mrc_icrc6_begin(env->crc, rx.src, rx.dst, rx.sport, rx.dport, rx.udp_len);
    reg = mrc_icrc_bth(env->crc, reg, bytes, len);
    mrc_icrc_end(reg, bytes + len);
    mrc_engine_rx(b->e, &rx, 1, b->now);
}

static struct mrc_cc_info bench_info(const struct bench *b, uint32_t cc)
{
    struct mrc_cc_info info;
    CHECK_EQ(mrc_cc_query(b->e, b->cc_id[cc], &info), MRC_OK);
    return info;
}

static const struct mrc_cc_cfg open_window = {
    .kind = MRC_CC_FIXED, .mtu_bytes = MTU, .max_cwnd_bytes = 1 << 30};
static const struct mrc_cc_cfg ten_packets = {
    .kind = MRC_CC_FIXED, .mtu_bytes = MTU, .max_cwnd_bytes = 10 * NOMINAL};

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
