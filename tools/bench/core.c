/* SPDX-License-Identifier: BSD-2-Clause */
/* Two engines joined by a wire without delay, for counting instructions: `core [MESSAGES]`.
 *
 * The four doors that the count is about are functions of their own (core_*), so that a profiler
 * can tell sender from receiver. The CRC is replaced by a constant on both sides: it has a figure
 * of its own, and would hide everything else. Prints what moved as one JSON object. */
#include <stdio.h>
#include <stdlib.h>

#include "mrc_engine_int.h"

enum { EVS = 16, BURST = 256, DEPTH = 16, MESSAGE = 1 << 20, SLOT = 4352 };

_Noreturn void mrc_panic(const char *file, int line, const char *what)
{
    fprintf(stderr, "%s:%d: %s\n", file, line, what);
    abort();
}

struct side {
    struct mrc_engine *e;
    struct mrc_cc cc;
    uint8_t *buf;
    uint32_t rkey;
    uint32_t qpn;
    uint8_t addr[16];
};

static struct side side[2];
static struct mrc_tx_pkt tx[BURST];
static struct mrc_rx_pkt rx[BURST];
static uint8_t bytes[BURST][SLOT];

static uint32_t core_no_crc(uint32_t reg, const uint8_t *p, size_t n)
{
    (void)p;
    (void)n;
    return reg;
}

static void *must(void *p)
{
    if (p == NULL)
        mrc_panic(__FILE__, __LINE__, "set-up failed");
    return p;
}

static void must_ok(int r)
{
    if (r < 0)
        mrc_panic(__FILE__, __LINE__, "set-up refused");
}

static void side_open(struct side *s, uint8_t id)
{
    const struct mrc_engine_cfg cfg = {
        .seed = id, .qp_max = 1, .mr_max = 1, .cq_max = 1, .path_max = 1, .cc_max = 1};
    const struct mrc_path_cfg path = {.count = EVS,
                                      .min_active = 4,
                                      .probe_successes = 3,
                                      .event_ring = 64,
                                      .probe_interval_ns = MRC_MSEC,
                                      .probe_interval_max_ns = 50 * MRC_MSEC,
                                      .probe_timeout_ns = MRC_MSEC,
                                      .seed = id};
    const struct mrc_cc_cfg cc = {.kind = MRC_CC_NSCC, .mtu_bytes = MRC_MTU_MAX};
    const struct mrc_qp_init qp = {
        .sq_depth = DEPTH, .rq_depth = 1, .mpr_max = 16, .max_wimm_dest = 32, .ev_max = EVS};
    struct mrc_path_entry_cfg entry[EVS];
    for (uint32_t i = 0; i < EVS; i++) {
        const struct mrc_path_entry_cfg one = {
            .ev = 0xC000 + i, .plane = (uint8_t)(1 + i % 4), .lane = i};
        entry[i] = one;
    }
    s->addr[15] = id;
    s->e = must(mrc_engine_init(malloc(mrc_engine_size(&cfg)), &cfg, 0));
    s->e->env.crc = core_no_crc;
    must_ok(
        mrc_path_attach(s->e, mrc_path_init(must(malloc(mrc_path_size(&path))), &path, entry, 0)));
    must_ok(mrc_cc_init(&s->cc, &cc, 0));
    must_ok(mrc_cc_attach(s->e, &s->cc));
    must_ok(mrc_cq_create(s->e, must(malloc(mrc_cq_size(64))), 64));
    s->buf = must(calloc(DEPTH, MESSAGE));
    must_ok(mrc_mr_register(s->e, 0, s->buf, (uint64_t)DEPTH * MESSAGE, 3, id, &s->rkey));
    const int qpn = mrc_qp_create(s->e, must(malloc(mrc_qp_size(&qp))), &qp);
    must_ok(qpn);
    s->qpn = (uint32_t)qpn;
}

static void side_connect(struct side *s, const struct side *peer, mrc_ns now)
{
    struct mrc_qp_attr a = {.access = 3,
                            .path_mtu = MRC_MTU_MAX,
                            .dest_qpn = peer->qpn,
                            .mpr = 16,
                            .mpr_dest = 16,
                            .max_wimm = 32,
                            .max_wimm_dest = 32,
                            .timeout = 16,
                            .linear_cnt = 3,
                            .exp_cnt = 3};
    memcpy(a.src, s->addr, 16);
    memcpy(a.dst, peer->addr, 16);
    for (a.state = MRC_QPS_INIT; a.state <= MRC_QPS_RTS; a.state++)
        must_ok(mrc_qp_modify(s->e, s->qpn, &a,
                              a.state == MRC_QPS_INIT ? MRC_QP_STATE | MRC_QP_ACCESS
                              : a.state == MRC_QPS_RTR
                                  ? MRC_QP_STATE | MRC_QP_AV | MRC_QP_RQ_PSN | MRC_QP_PATH |
                                        MRC_QP_MPR_DEST | MRC_QP_WIMM_DEST
                                  : MRC_QP_STATE | MRC_QP_SQ_PSN | MRC_QP_CC | MRC_QP_MPR |
                                        MRC_QP_WIMM | MRC_QP_TIMEOUT | MRC_QP_RETRY,
                              now));
}

/* What arrives at the peer of `from`; not part of any figure. */
static void wire(int from, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const struct mrc_tx_pkt *t = &tx[i];
        uint8_t *b = bytes[i];
        memcpy(b, t->hdr, t->hdr_len);
        if (t->payload_len > 0)
            memcpy(b + t->hdr_len, t->payload, t->payload_len);
        memcpy(b + t->hdr_len + t->payload_len, t->tail, t->tail_len);
        memset(&rx[i], 0, sizeof rx[i]);
        rx[i].bytes = b;
        rx[i].udp_len = mrc_tx_udp_len(t);
        rx[i].len = rx[i].udp_len - 8u;
        rx[i].sport = (uint16_t)t->ev;
        rx[i].tclass = t->tclass;
        memcpy(rx[i].src, side[from].addr, 16);
        memcpy(rx[i].dst, side[1 - from].addr, 16);
    }
}

#define DOOR __attribute__((noinline, noclone))
DOOR static size_t core_sender_tx(mrc_ns now) { return mrc_engine_tx(side[0].e, tx, BURST, now); }
DOOR static size_t core_receiver_tx(mrc_ns now) { return mrc_engine_tx(side[1].e, tx, BURST, now); }
DOOR static void core_sender_rx(size_t n, mrc_ns now) { mrc_engine_rx(side[0].e, rx, n, now); }
DOOR static void core_receiver_rx(size_t n, mrc_ns now) { mrc_engine_rx(side[1].e, rx, n, now); }

static void turn(mrc_ns now)
{
    size_t n = core_sender_tx(now);
    wire(0, n);
    core_receiver_rx(n, now);
    n = core_receiver_tx(now);
    wire(1, n);
    core_sender_rx(n, now);
    mrc_engine_tick(side[0].e, now);
    mrc_engine_tick(side[1].e, now);
}

static int post(uint64_t k)
{
    const uint64_t at = k % DEPTH * MESSAGE;
    const struct mrc_send_wr wr = {.wr_id = k,
                                   .laddr = (uint64_t)(uintptr_t)side[0].buf + at,
                                   .raddr = (uint64_t)(uintptr_t)side[1].buf + at,
                                   .length = MESSAGE,
                                   .lkey = side[0].rkey,
                                   .rkey = side[1].rkey,
                                   .flags = MRC_SEND_SIGNALED};
    return mrc_qp_post_send(side[0].e, side[0].qpn, &wr, 1);
}

int main(int argc, char **argv)
{
    const uint64_t messages = argc > 1 ? strtoull(argv[1], NULL, 10) : 40;
    uint64_t posted = 0;
    uint64_t done = 0;
    mrc_ns now = MRC_MSEC;
    struct mrc_wc wc[DEPTH];
    struct mrc_qp_stats s;
    struct mrc_qp_stats r;
    for (uint8_t i = 0; i < 2; i++)
        side_open(&side[i], (uint8_t)(i + 1));
    for (uint8_t i = 0; i < 2; i++)
        side_connect(&side[i], &side[1 - i], now);
    while (done < messages) {
        while (posted < messages && posted - done < DEPTH && post(posted) == 1)
            posted++;
        now += 20 * MRC_USEC;
        turn(now);
        done += (uint64_t)mrc_cq_poll(side[0].e, 0, wc, DEPTH);
    }
    must_ok(mrc_qp_stats(side[0].e, side[0].qpn, &s));
    must_ok(mrc_qp_stats(side[1].e, side[1].qpn, &r));
    printf("{\"packets\": %llu, \"retransmitted\": %llu, \"sacks\": %llu, \"acks\": %llu}\n",
           (unsigned long long)s.packets_sent, (unsigned long long)s.packets_retransmitted,
           (unsigned long long)r.sacks_sent, (unsigned long long)r.acks_sent);
    return 0;
}
