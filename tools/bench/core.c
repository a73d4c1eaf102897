/* SPDX-License-Identifier: BSD-2-Clause */
/* Two engines joined by a wire without delay, for counting instructions: `core [NAME=VALUE...]`.
 *
 *   messages  how many, all QPs together         bytes   of each
 *   qps       they share a path table and a      evs     of the path table
 *             controller                         train   train_max, 0: auto
 *   mpr       window of a QP, x 128 packets      skew    1: in each turn what went by odd paths
 *                                                        comes after what went by even ones
 *
 * A turn is up to 256 packets, as the pump's: then the other side answers. The doors that the count
 * is about are functions of their own (core_*), so that a profiler can tell sender from receiver.
 * The CRC is replaced by a constant on both sides: it has a figure of its own, and would hide
 * everything else. Prints what moved, and the size of a QP, as one JSON object. */
#include <stdio.h>
#include <stdlib.h>

#include "mrc_engine_int.h"

enum { BURST = 256, RX_BURST = 128, DEPTH = 16, SLOT = 4352, CQ_DEPTH = 1 << 18, REGION = 1 << 24 };

static struct {
    uint64_t messages, bytes, qps, evs, train, mpr, skew;
} load = {.messages = 40, .bytes = 1 << 20, .qps = 1, .evs = 16, .mpr = 16};

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
    uint32_t *qpn;
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

static struct mrc_path_table *path_open(uint8_t id)
{
    const struct mrc_path_cfg path = {.count = (uint16_t)load.evs,
                                      .min_active = 4,
                                      .probe_successes = 3,
                                      .event_ring = 64,
                                      .probe_interval_ns = MRC_MSEC,
                                      .probe_interval_max_ns = 50 * MRC_MSEC,
                                      .probe_timeout_ns = MRC_MSEC,
                                      .seed = id};
    struct mrc_path_entry_cfg *entry = must(calloc(load.evs, sizeof *entry));
    for (uint32_t i = 0; i < load.evs; i++) {
        const struct mrc_path_entry_cfg one = {
            .ev = 0xC000 + i, .plane = (uint8_t)(1 + i % 4), .lane = i};
        entry[i] = one;
    }
    return mrc_path_init(must(malloc(mrc_path_size(&path))), &path, entry, 0);
}

static struct mrc_qp_init qp_init(void)
{
    const struct mrc_qp_init qp = {.sq_depth = DEPTH,
                                   .rq_depth = 1,
                                   .mpr_max = (uint16_t)load.mpr,
                                   .max_wimm_dest = 32,
                                   .ev_max = (uint16_t)load.evs};
    return qp;
}

static void side_open(struct side *s, uint8_t id)
{
    const struct mrc_engine_cfg cfg = {.seed = id,
                                       .qp_max = (uint32_t)load.qps,
                                       .mr_max = 1,
                                       .cq_max = 1,
                                       .path_max = 1,
                                       .cc_max = 1};
    const struct mrc_cc_cfg cc = {.kind = MRC_CC_NSCC, .mtu_bytes = MRC_MTU_MAX};
    const struct mrc_qp_init qp = qp_init();
    s->addr[15] = id;
    s->e = must(mrc_engine_init(malloc(mrc_engine_size(&cfg)), &cfg, 0));
    s->e->env.crc = core_no_crc;
    must_ok(mrc_path_attach(s->e, path_open(id)));
    must_ok(mrc_cc_init(&s->cc, &cc, 0));
    must_ok(mrc_cc_attach(s->e, &s->cc));
    must_ok(mrc_cq_create(s->e, must(malloc(mrc_cq_size(CQ_DEPTH))), CQ_DEPTH));
    s->buf = must(calloc(1, REGION));
    must_ok(mrc_mr_register(s->e, 0, s->buf, REGION, 3, id, &s->rkey));
    s->qpn = must(calloc(load.qps, sizeof *s->qpn));
    for (uint64_t i = 0; i < load.qps; i++) {
        const int qpn = mrc_qp_create(s->e, must(malloc(mrc_qp_size(&qp))), &qp);
        must_ok(qpn);
        s->qpn[i] = (uint32_t)qpn;
    }
}

static void side_connect(struct side *s, const struct side *peer, uint64_t i, mrc_ns now)
{
    struct mrc_qp_attr a = {.access = 3,
                            .path_mtu = MRC_MTU_MAX,
                            .dest_qpn = peer->qpn[i],
                            .mpr = (uint16_t)load.mpr,
                            .mpr_dest = (uint16_t)load.mpr,
                            .max_wimm = 32,
                            .max_wimm_dest = 32,
                            .train_max = (uint8_t)load.train,
                            .timeout = 16,
                            .linear_cnt = 3,
                            .exp_cnt = 3};
    memcpy(a.src, s->addr, 16);
    memcpy(a.dst, peer->addr, 16);
    for (a.state = MRC_QPS_INIT; a.state <= MRC_QPS_RTS; a.state++)
        must_ok(mrc_qp_modify(s->e, s->qpn[i], &a,
                              a.state == MRC_QPS_INIT ? MRC_QP_STATE | MRC_QP_ACCESS
                              : a.state == MRC_QPS_RTR
                                  ? MRC_QP_STATE | MRC_QP_AV | MRC_QP_RQ_PSN | MRC_QP_PATH |
                                        MRC_QP_MPR_DEST | MRC_QP_WIMM_DEST
                                  : MRC_QP_STATE | MRC_QP_SQ_PSN | MRC_QP_CC | MRC_QP_MPR |
                                        MRC_QP_WIMM | MRC_QP_TIMEOUT | MRC_QP_RETRY | MRC_QP_TRAIN,
                              now));
}

static void wire_one(int from, const struct mrc_tx_pkt *t, size_t i)
{
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

/* What arrives at the peer of `from`; not part of any figure. */
static void wire(int from, size_t n)
{
    size_t k = 0;
    for (uint32_t odd = 0; odd < 2; odd++)
        for (size_t i = 0; i < n; i++)
            if (load.skew != 0 ? (tx[i].lane & 1) == odd : odd == 0)
                wire_one(from, &tx[i], k++);
}

#define DOOR __attribute__((noinline, noclone))
DOOR static size_t core_sender_tx(mrc_ns now) { return mrc_engine_tx(side[0].e, tx, BURST, now); }
DOOR static size_t core_receiver_tx(mrc_ns now) { return mrc_engine_tx(side[1].e, tx, BURST, now); }
DOOR static void core_sender_rx(const struct mrc_rx_pkt *p, size_t n, mrc_ns now)
{
    mrc_engine_rx(side[0].e, p, n, now);
}
DOOR static void core_receiver_rx(const struct mrc_rx_pkt *p, size_t n, mrc_ns now)
{
    mrc_engine_rx(side[1].e, p, n, now);
}
DOOR static void core_sender_tick(mrc_ns now) { mrc_engine_tick(side[0].e, now); }
DOOR static void core_receiver_tick(mrc_ns now) { mrc_engine_tick(side[1].e, now); }

static void turn(mrc_ns now)
{
    size_t n = core_sender_tx(now);
    wire(0, n);
    for (size_t i = 0; i < n; i += RX_BURST)
        core_receiver_rx(&rx[i], n - i < RX_BURST ? n - i : RX_BURST, now);
    n = core_receiver_tx(now);
    wire(1, n);
    for (size_t i = 0; i < n; i += RX_BURST)
        core_sender_rx(&rx[i], n - i < RX_BURST ? n - i : RX_BURST, now);
    core_sender_tick(now);
    core_receiver_tick(now);
}

static int post(uint64_t k)
{
    const uint64_t at = k % (REGION / load.bytes) * load.bytes;
    const struct mrc_send_wr wr = {.wr_id = k,
                                   .laddr = (uint64_t)(uintptr_t)side[0].buf + at,
                                   .raddr = (uint64_t)(uintptr_t)side[1].buf + at,
                                   .length = (uint32_t)load.bytes,
                                   .lkey = side[0].rkey,
                                   .rkey = side[1].rkey,
                                   .flags = MRC_SEND_SIGNALED};
    return mrc_qp_post_send(side[0].e, side[0].qpn[k % load.qps], &wr, 1);
}

static void arguments(int argc, char **argv)
{
    static const char *const name[] = {"messages", "bytes", "qps", "evs", "train", "mpr", "skew"};
    uint64_t *const value[] = {&load.messages, &load.bytes, &load.qps, &load.evs,
                               &load.train,    &load.mpr,   &load.skew};
    for (int i = 1; i < argc; i++) {
        size_t k = 0;
        const size_t len = strcspn(argv[i], "=");
        while (k < 7 && (strlen(name[k]) != len || memcmp(argv[i], name[k], len) != 0))
            k++;
        if (k == 7 || argv[i][len] != '=')
            mrc_panic(argv[i], 0, "no such argument");
        *value[k] = strtoull(argv[i] + len + 1, NULL, 10);
    }
}

static void print_moved(void)
{
    struct mrc_qp_stats sum = {0};
    const struct mrc_qp_init qp = qp_init();
    const uint32_t window = (uint32_t)load.mpr * MRC_MPR_UNIT;
    for (uint64_t i = 0; i < load.qps; i++) {
        struct mrc_qp_stats s;
        struct mrc_qp_stats r;
        must_ok(mrc_qp_stats(side[0].e, side[0].qpn[i], &s));
        must_ok(mrc_qp_stats(side[1].e, side[1].qpn[i], &r));
        sum.packets_sent += s.packets_sent;
        sum.packets_retransmitted += s.packets_retransmitted;
        sum.sacks_sent += r.sacks_sent;
        sum.acks_sent += r.acks_sent;
    }
    printf("{\"packets\": %llu, \"retransmitted\": %llu, \"sacks\": %llu, \"acks\": %llu, "
           "\"qp_bytes\": %zu, \"qp_window_bytes\": %zu, \"qp_ev_bytes\": %zu}\n",
           (unsigned long long)sum.packets_sent, (unsigned long long)sum.packets_retransmitted,
           (unsigned long long)sum.sacks_sent, (unsigned long long)sum.acks_sent, mrc_qp_size(&qp),
           mrc_txtrack_bytes(window, 0, 0) + mrc_rxtrack_bytes(window),
           mrc_txtrack_bytes(window, 0, qp.ev_max) - mrc_txtrack_bytes(window, 0, 0));
}

int main(int argc, char **argv)
{
    uint64_t posted = 0;
    uint64_t done = 0;
    mrc_ns now = MRC_MSEC;
    struct mrc_wc wc[256];
    arguments(argc, argv);
    const uint64_t most = DEPTH * load.qps;
    for (uint8_t i = 0; i < 2; i++)
        side_open(&side[i], (uint8_t)(i + 1));
    for (uint64_t k = 0; k < load.qps; k++)
        for (uint8_t i = 0; i < 2; i++)
            side_connect(&side[i], &side[1 - i], k, now);
    while (done < load.messages) {
        while (posted < load.messages && posted - done < most && post(posted) == 1)
            posted++;
        now += 20 * MRC_USEC;
        turn(now);
        for (int n; (n = mrc_cq_poll(side[0].e, 0, wc, 256)) > 0;)
            done += (uint64_t)n;
    }
    print_moved();
    return 0;
}
