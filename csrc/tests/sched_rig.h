/* SPDX-License-Identifier: BSD-2-Clause */
/* One engine with several controllers and several queue pairs each; the peers are the test, and
 * what leaves is read from the packets. */
#ifndef MRC_SCHED_RIG_H
#define MRC_SCHED_RIG_H

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

static inline void *bench_alloc(struct bench *b, size_t bytes)
{
    void *p = calloc(1, bytes);
    if (p == NULL)
        abort();
    return b->mem[b->mems++] = p;
}

static inline struct bench *bench_open(const struct mrc_cc_cfg *cc)
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
static inline uint32_t bench_qp(struct bench *b, uint32_t cc, uint16_t mpr)
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

static inline void bench_close(struct bench *b)
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

static inline void bench_post(struct bench *b, uint32_t qp, uint32_t packets, bool imm)
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
static inline size_t bench_tx(struct bench *b, size_t max)
{
    const size_t n = mrc_engine_tx(b->e, b->out, max, b->now);
    for (size_t i = 0; i < n; i++) {
        const uint32_t dqp = mrc_get24(b->out[i].hdr + 5);
        if (b->out[i].payload_len != 0 && dqp >= 100 && dqp < 100 + QPS)
            b->sent[dqp - 100]++;
    }
    return n;
}

static inline uint32_t bench_dqp(const struct bench *b, size_t i)
{
    return mrc_get24(b->out[i].hdr + 5) - 100;
}

/* A SACK for everything up to `cack`, `packets` of them news, as the receiving door would give it.
 */
static inline void bench_sack(struct bench *b, uint32_t qp, uint32_t cack, uint32_t rcvd_bytes)
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

static inline struct mrc_cc_info bench_info(const struct bench *b, uint32_t cc)
{
    struct mrc_cc_info info;
    CHECK_EQ(mrc_cc_query(b->e, b->cc_id[cc], &info), MRC_OK);
    return info;
}

static const struct mrc_cc_cfg open_window = {
    .kind = MRC_CC_FIXED, .mtu_bytes = MTU, .max_cwnd_bytes = 1 << 30};
static const struct mrc_cc_cfg ten_packets = {
    .kind = MRC_CC_FIXED, .mtu_bytes = MTU, .max_cwnd_bytes = 10 * NOMINAL};

#endif
