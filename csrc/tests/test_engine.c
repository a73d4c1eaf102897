/* SPDX-License-Identifier: BSD-2-Clause */
/* Two engines joined by a wire without delay: objects, states, and the shortest transfers. What
 * needs loss, delay and many seeds is in test_world.c. */
#include <stdlib.h>

#include "mrc_engine.h"
#include "t.h"

enum { EVS = 4, BUF = 1 << 18, BURST = 64 };

struct side {
    struct mrc_engine *e;
    void *mem;
    struct mrc_path_table *path;
    struct mrc_cc cc;
    void *cq_mem;
    void *qp_mem;
    uint8_t *buf;
    uint32_t rkey;
    uint32_t path_id;
    uint32_t cc_id;
    uint32_t qpn;
    uint8_t addr[16];
};

struct pair {
    struct side s[2];
    mrc_ns now;
    uint64_t packets;
};

static const struct mrc_qp_init qp_init = {
    .pd = 7, .sq_depth = 16, .rq_depth = 16, .mpr_max = 2, .max_wimm_dest = 16, .ev_max = EVS};

static void side_open(struct side *s, uint8_t id)
{
    const struct mrc_engine_cfg cfg = {
        .seed = id, .qp_max = 4, .mr_max = 4, .cq_max = 2, .path_max = 2, .cc_max = 2};
    const struct mrc_path_cfg pc = {.count = EVS,
                                    .min_active = 1,
                                    .probe_successes = 3,
                                    .event_ring = 64,
                                    .probe_interval_ns = MRC_MSEC,
                                    .probe_interval_max_ns = 50 * MRC_MSEC,
                                    .probe_timeout_ns = MRC_MSEC,
                                    .seed = id};
    struct mrc_path_entry_cfg entry[EVS];
    const struct mrc_cc_cfg cc = {
        .kind = MRC_CC_FIXED, .max_cwnd_bytes = 1 << 20, .mtu_bytes = 1024};
    s->mem = malloc(mrc_engine_size(&cfg));
    s->e = mrc_engine_init(s->mem, &cfg, 0);
    for (uint32_t i = 0; i < EVS; i++) {
        const struct mrc_path_entry_cfg one = {
            .ev = 0xC000 + i, .plane = (uint8_t)(1 + i % 2), .lane = i};
        entry[i] = one;
    }
    s->path = mrc_path_init(malloc(mrc_path_size(&pc)), &pc, entry, 0);
    s->path_id = (uint32_t)mrc_path_attach(s->e, s->path);
    CHECK(mrc_cc_init(&s->cc, &cc, 0) == MRC_OK);
    s->cc_id = (uint32_t)mrc_cc_attach(s->e, &s->cc);
    s->cq_mem = malloc(mrc_cq_size(64));
    CHECK(mrc_cq_create(s->e, s->cq_mem, 64) == 0);
    s->buf = calloc(1, BUF);
    CHECK(mrc_mr_register(s->e, 7, s->buf, BUF, MRC_ACCESS_LOCAL_WRITE | MRC_ACCESS_REMOTE_WRITE,
                          0xABCD1234u * id, &s->rkey) == MRC_OK);
    s->qp_mem = malloc(mrc_qp_size(&qp_init));
    s->qpn = (uint32_t)mrc_qp_create(s->e, s->qp_mem, &qp_init);
    CHECK(s->qpn > MRC_QPN_EP);
    s->addr[15] = id;
}

static void side_connect(struct side *s, const struct side *peer, mrc_ns now)
{
    struct mrc_qp_attr a = {.state = MRC_QPS_INIT, .access = 3};
    CHECK(mrc_qp_modify(s->e, s->qpn, &a, MRC_QP_STATE | MRC_QP_ACCESS, now) == MRC_OK);
    a.state = MRC_QPS_RTR;
    a.dest_qpn = peer->qpn;
    a.path_mtu = 1024;
    a.rq_psn = 0xFFFFF0;
    a.sq_psn = 0xFFFFF0;
    a.path = s->path_id;
    a.cc = s->cc_id;
    a.mpr = a.mpr_dest = 2;
    a.max_wimm = a.max_wimm_dest = 16;
    a.timeout = 14;
    a.linear_cnt = 3;
    a.exp_cnt = 3;
    memcpy(a.src, s->addr, 16);
    memcpy(a.dst, peer->addr, 16);
    CHECK(mrc_qp_modify(s->e, s->qpn, &a,
                        MRC_QP_STATE | MRC_QP_AV | MRC_QP_RQ_PSN | MRC_QP_PATH | MRC_QP_MPR_DEST |
                            MRC_QP_WIMM_DEST,
                        now) == MRC_OK);
    a.state = MRC_QPS_RTS;
    CHECK(mrc_qp_modify(s->e, s->qpn, &a,
                        MRC_QP_STATE | MRC_QP_SQ_PSN | MRC_QP_CC | MRC_QP_MPR | MRC_QP_WIMM |
                            MRC_QP_TIMEOUT | MRC_QP_RETRY,
                        now) == MRC_OK);
}

static void pair_open(struct pair *p)
{
    memset(p, 0, sizeof *p);
    p->now = 1000;
    side_open(&p->s[0], 1);
    side_open(&p->s[1], 2);
    side_connect(&p->s[0], &p->s[1], p->now);
    side_connect(&p->s[1], &p->s[0], p->now);
}

static void pair_close(struct pair *p)
{
    for (int i = 0; i < 2; i++) {
        struct side *s = &p->s[i];
        if (mrc_qp_destroy(s->e, s->qpn) != NULL)
            free(s->qp_mem);
        free(mrc_path_detach(s->e, s->path_id));
        CHECK(mrc_cc_detach(s->e, s->cc_id) == &s->cc);
        free(s->cq_mem);
        free(s->buf);
        free(s->mem);
    }
}

/* One burst from a to b. */
static size_t pair_move(struct pair *p, int from)
{
    static struct mrc_tx_pkt tx[BURST];
    static uint8_t bytes[BURST][5000];
    struct mrc_rx_pkt rx[BURST];
    struct side *a = &p->s[from];
    const size_t n = mrc_engine_tx(a->e, tx, BURST, p->now);
    for (size_t i = 0; i < n; i++) {
        uint8_t *b = bytes[i];
        memcpy(b, tx[i].hdr, tx[i].hdr_len);
        if (tx[i].payload_len > 0)
            memcpy(b + tx[i].hdr_len, tx[i].payload, tx[i].payload_len);
        memcpy(b + tx[i].hdr_len + tx[i].payload_len, tx[i].tail, tx[i].tail_len);
        const struct mrc_rx_pkt one = {.bytes = b,
                                       .len = mrc_tx_udp_len(&tx[i]) - 8u,
                                       .udp_len = mrc_tx_udp_len(&tx[i]),
                                       .sport = (uint16_t)tx[i].ev,
                                       .dport = 0,
                                       .tclass = tx[i].tclass,
                                       .flow_label = tx[i].ev >> 16};
        rx[i] = one;
        memcpy(rx[i].src, a->addr, 16);
        memcpy(rx[i].dst, p->s[1 - from].addr, 16);
    }
    mrc_engine_rx(p->s[1 - from].e, rx, n, p->now);
    p->packets += n;
    return n;
}

static void pair_run(struct pair *p)
{
    for (int round = 0; round < 10000; round++) {
        p->now += 10 * MRC_USEC;
        const size_t moved = pair_move(p, 0) + pair_move(p, 1);
        mrc_engine_tick(p->s[0].e, p->now);
        mrc_engine_tick(p->s[1].e, p->now);
        if (moved == 0 && !mrc_engine_tx_pending(p->s[0].e) && !mrc_engine_tx_pending(p->s[1].e))
            return;
    }
    CHECK(!"quiet within the bound");
}

static int post(struct pair *p, uint64_t off, uint32_t len, bool imm)
{
    const struct mrc_send_wr wr = {.wr_id = off,
                                   .laddr = (uint64_t)(uintptr_t)p->s[0].buf + off,
                                   .raddr = (uint64_t)(uintptr_t)p->s[1].buf + off,
                                   .length = len,
                                   .lkey = p->s[0].rkey,
                                   .rkey = p->s[1].rkey,
                                   .imm = 0x01020304,
                                   .opcode = imm ? MRC_WR_RDMA_WRITE_WITH_IMM : MRC_WR_RDMA_WRITE,
                                   .flags = MRC_SEND_SIGNALED};
    return mrc_qp_post_send(p->s[0].e, p->s[0].qpn, &wr, 1);
}

TEST(engine__writes_arrive_and_complete_across_the_psn_wrap)
{
    struct pair p;
    struct mrc_wc wc[16];
    pair_open(&p);
    for (uint32_t i = 0; i < BUF; i++)
        p.s[0].buf[i] = (uint8_t)(i * 31 + (i >> 8));
    CHECK(post(&p, 0, 100000, false) == 1);
    CHECK(post(&p, 100000, 1, false) == 1);
    CHECK(post(&p, 100001, 0, false) == 1);
    CHECK(post(&p, 100001, 2048, false) == 1);
    pair_run(&p);
    CHECK(mrc_cq_poll(p.s[0].e, 0, wc, 16) == 4);
    for (int i = 0; i < 4; i++)
        CHECK(wc[i].status == MRC_WC_SUCCESS);
    CHECK(memcmp(p.s[0].buf, p.s[1].buf, 102049) == 0);
    CHECK(p.s[1].buf[102049] == 0);
    pair_close(&p);
}

TEST(engine__immediate_consumes_one_receive)
{
    struct pair p;
    struct mrc_wc wc[16];
    const uint64_t id = 99;
    pair_open(&p);
    CHECK(mrc_qp_post_recv(p.s[1].e, p.s[1].qpn, &id, 1) == 1);
    CHECK(post(&p, 0, 5000, true) == 1);
    pair_run(&p);
    CHECK(mrc_cq_poll(p.s[0].e, 0, wc, 16) == 1 && wc[0].status == MRC_WC_SUCCESS);
    CHECK(mrc_cq_poll(p.s[1].e, 0, wc, 16) == 1);
    CHECK(wc[0].wr_id == 99 && wc[0].imm == 0x01020304 && wc[0].byte_len == 5000);
    CHECK(wc[0].opcode == MRC_WC_RECV_RDMA_WITH_IMM);
    pair_close(&p);
}

TEST(engine__immediate_without_receive_ends_both_sides)
{
    struct pair p;
    struct mrc_wc wc[16];
    pair_open(&p);
    CHECK(post(&p, 0, 10, true) == 1);
    CHECK(post(&p, 0, 10, false) == 1);
    pair_run(&p);
    CHECK(mrc_cq_poll(p.s[0].e, 0, wc, 16) == 2);
    CHECK(wc[0].status == MRC_WC_REM_OP_ERR && wc[1].status == MRC_WC_WR_FLUSH_ERR);
    CHECK(mrc_engine_drops(p.s[1].e, MRC_DROP_NO_RECV) == 1);
    pair_close(&p);
}

TEST(engine__wrong_key_is_refused_without_touching_memory)
{
    struct pair p;
    struct mrc_wc wc[16];
    pair_open(&p);
    p.s[0].buf[0] = 1;
    p.s[1].rkey ^= 0x100;
    CHECK(post(&p, 0, 10, false) == 1);
    pair_run(&p);
    CHECK(mrc_cq_poll(p.s[0].e, 0, wc, 16) == 1 && wc[0].status == MRC_WC_REM_ACCESS_ERR);
    CHECK(p.s[1].buf[0] == 0);
    CHECK(mrc_engine_drops(p.s[1].e, MRC_DROP_ACCESS) == 1);
    pair_close(&p);
}

TEST(engine__dead_peer_exhausts_retries_and_flushes)
{
    struct pair p;
    struct mrc_wc wc[16];
    pair_open(&p);
    CHECK(post(&p, 0, 3000, false) == 1);
    CHECK(post(&p, 0, 10, false) == 1);
    static struct mrc_tx_pkt tx[BURST];
    uint64_t sent = 0;
    for (int i = 0; i < 10000 && !mrc_cq_any(p.s[0].e); i++) {
        sent += mrc_engine_tx(p.s[0].e, tx, BURST, p.now);
        const mrc_ns next = mrc_engine_deadline(p.s[0].e);
        CHECK(next != MRC_NEVER && next > p.now);
        p.now = next;
        mrc_engine_tick(p.s[0].e, p.now);
        CHECK(mrc_engine_deadline(p.s[0].e) > p.now);
    }
    CHECK(mrc_cq_poll(p.s[0].e, 0, wc, 16) == 2);
    CHECK(wc[0].status == MRC_WC_RETRY_EXC_ERR && wc[1].status == MRC_WC_WR_FLUSH_ERR);
    CHECK(sent < 200); /* field report 22: a dead peer is not flooded */
    /* B.9: (linear + 1) T0 + (2 + 4 + 8) T0, T0 = 16.777216 ms */
    CHECK(p.now > 18 * 16777216ull && p.now < 20 * 16777216ull);
    pair_close(&p);
}

TEST(engine__qpn_of_a_former_life_is_nobody)
{
    struct pair p;
    struct mrc_qp_attr a;
    pair_open(&p);
    const uint32_t old = p.s[0].qpn;
    for (int i = 0; i < 8; i++) {
        void *mem = mrc_qp_destroy(p.s[0].e, p.s[0].qpn);
        CHECK(mem == p.s[0].qp_mem);
        CHECK(mrc_qp_query(p.s[0].e, old, &a, UINT32_MAX) == MRC_ERR_NOENT);
        p.s[0].qpn = (uint32_t)mrc_qp_create(p.s[0].e, mem, &qp_init);
        CHECK(p.s[0].qpn > MRC_QPN_EP && p.s[0].qpn < 1u << 24);
    }
    pair_close(&p);
}
