/* SPDX-License-Identifier: BSD-2-Clause */
/* Two pumps joined by real sockets or a memory wire, each with one queue pair to the other. */
#ifndef MRC_TEST_PUMP_PAIR_H
#define MRC_TEST_PUMP_PAIR_H

#include "../io/mrc_clock.h"
#include "../io/mrc_pump_int.h"
#include "t.h"

#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <unistd.h>

enum { EVS = 8, BUF = 1 << 22, CQ_DEPTH = 64, LIMIT_MS = 20000 };

struct end {
    struct mrc_pump *p;
    uint32_t path;
    uint32_t cc;
    uint32_t cq;
    uint32_t qpn;
    uint32_t rkey;
    uint8_t *buf;
    uint16_t udp_port;
    uint32_t turns;
    int bits; /* of all turns so far */
};

struct pump_pair {
    struct end e[2];
    struct mrc_mem_wire *wire;
};

static const uint8_t pump_loopback[16] = {[15] = 1};

static inline void end_open(struct end *e, uint8_t kind, struct mrc_mem_wire *wire, uint8_t side)
{
    const struct mrc_engine_cfg cfg = {.seed = side + 1u,
                                       .qp_max = 4,
                                       .mr_max = 4,
                                       .cq_max = 4,
                                       .path_max = 4,
                                       .cc_max = 4,
                                       .dscp_control = 46};
    struct mrc_port_cfg port = {.kind = kind, .udp_port_tries = 2000, .wire = wire};
    port.mem_end = side;
    port.udp_port = (uint16_t)(20000 + getpid() % 20000);
    memcpy(port.addr, pump_loopback, 16);
    memset(e, 0, sizeof *e);
    e->p = mrc_pump_create(&cfg);
    CHECK(e->p != NULL);
    const int err = mrc_pump_port_add(e->p, &port);
    if (err < 0) {
        printf("port: %s\n", mrc_pump_error(e->p));
        abort();
    }
    struct mrc_port_stats stats;
    CHECK_EQ(mrc_pump_port_stats(e->p, 0, &stats), 0);
    e->udp_port = stats.udp_port;
    e->buf = calloc(1, BUF);
    CHECK_EQ(mrc_pump_mr_register(e->p, 1, e->buf, BUF,
                                  MRC_ACCESS_LOCAL_WRITE | MRC_ACCESS_REMOTE_WRITE,
                                  0x51A7u * (side + 1u), &e->rkey),
             0);
    const struct mrc_cc_cfg cc = {
        .kind = MRC_CC_FIXED, .max_cwnd_bytes = 4 << 20, .mtu_bytes = 1024};
    e->cc = (uint32_t)mrc_pump_cc_create(e->p, &cc);
    e->cq = (uint32_t)mrc_pump_cq_create(e->p, CQ_DEPTH);
    const struct mrc_qp_init init = {.pd = 1,
                                     .send_cq = e->cq,
                                     .recv_cq = e->cq,
                                     .sq_depth = 16,
                                     .rq_depth = 16,
                                     .mpr_max = 32,
                                     .max_wimm_dest = 16,
                                     .ev_max = EVS};
    const int qpn = mrc_pump_qp_create(e->p, &init);
    CHECK(qpn > MRC_QPN_EP);
    e->qpn = (uint32_t)qpn;
}

/* An outer header makes raw lanes; elsewhere tmpl_len is 0. */
static inline int end_path(struct end *e, uint32_t port, const struct end *peer, uint32_t ev0,
                           const uint8_t *tmpl, uint16_t tmpl_len)
{
    struct mrc_peer_addr to = {.dport = peer->udp_port};
    struct mrc_lane_cfg lanes[EVS];
    uint8_t src[16];
    const struct mrc_path_cfg pc = {.count = EVS,
                                    .min_active = 1,
                                    .probe_successes = 3,
                                    .event_ring = 64,
                                    .probe_interval_ns = MRC_MSEC,
                                    .probe_interval_max_ns = 10 * MRC_MSEC,
                                    .probe_timeout_ns = 5 * MRC_MSEC,
                                    .seed = 5};
    memset(lanes, 0, sizeof lanes);
    memcpy(to.dst, pump_loopback, 16);
    for (uint32_t i = 0; i < EVS; i++) {
        lanes[i].ev = ev0 + i;
        lanes[i].plane = (uint8_t)(1 + i % 2);
        lanes[i].tmpl_len = tmpl_len;
        if (tmpl != NULL)
            memcpy(lanes[i].tmpl, tmpl, tmpl_len);
    }
    const int id = mrc_pump_path_create(e->p, port, &to, &pc, lanes, src);
    if (id < 0) {
        printf("path: %s\n", mrc_pump_error(e->p));
        abort();
    }
    CHECK_MEM(src, pump_loopback, 16);
    return id;
}

static inline void end_connect(struct end *e, const struct end *peer)
{
    struct mrc_qp_attr a = {.state = MRC_QPS_INIT, .access = 3};
    CHECK_EQ(mrc_pump_qp_modify(e->p, e->qpn, &a, MRC_QP_STATE | MRC_QP_ACCESS), 0);
    a.state = MRC_QPS_RTR;
    a.dest_qpn = peer->qpn;
    a.path_mtu = 1024;
    a.rq_psn = a.sq_psn = 0xFFFF00;
    a.path = e->path;
    a.cc = e->cc;
    a.mpr = a.mpr_dest = 32;
    a.max_wimm = a.max_wimm_dest = 16;
    a.timeout = 14; /* 17 ms */
    a.linear_cnt = 5;
    a.exp_cnt = 5;
    a.dport = peer->udp_port;
    memcpy(a.src, pump_loopback, 16);
    memcpy(a.dst, pump_loopback, 16);
    CHECK_EQ(mrc_pump_qp_modify(e->p, e->qpn, &a,
                                MRC_QP_STATE | MRC_QP_AV | MRC_QP_RQ_PSN | MRC_QP_PATH |
                                    MRC_QP_MPR_DEST | MRC_QP_WIMM_DEST),
             0);
    a.state = MRC_QPS_RTS;
    CHECK_EQ(mrc_pump_qp_modify(e->p, e->qpn, &a,
                                MRC_QP_STATE | MRC_QP_SQ_PSN | MRC_QP_CC | MRC_QP_MPR |
                                    MRC_QP_WIMM | MRC_QP_TIMEOUT | MRC_QP_RETRY),
             0);
}

static inline struct pump_pair pump_pair_open(uint8_t kind, const uint8_t *tmpl, uint16_t tmpl_len)
{
    struct pump_pair w = {0};
    if (kind == MRC_IO_MEM)
        w.wire = mrc_mem_wire_create(512, 11);
    for (uint8_t i = 0; i < 2; i++)
        end_open(&w.e[i], kind, w.wire, i);
    for (uint8_t i = 0; i < 2; i++)
        w.e[i].path = (uint32_t)end_path(&w.e[i], 0, &w.e[1 - i], 0x0003C100, tmpl, tmpl_len);
    for (uint8_t i = 0; i < 2; i++)
        end_connect(&w.e[i], &w.e[1 - i]);
    return w;
}

static inline void pump_pair_close(struct pump_pair *w)
{
    for (int i = 0; i < 2; i++) {
        mrc_pump_destroy(w->e[i].p);
        free(w->e[i].buf);
    }
    if (w->wire != NULL)
        mrc_mem_wire_destroy(w->wire);
}

static inline bool pump_readable(const struct end *e, int ms)
{
    struct pollfd fd = {.fd = mrc_pump_fd(e->p), .events = POLLIN};
    return poll(&fd, 1, ms) == 1;
}

/* Turns of whichever end is ready until `e` has n completions; only ever waits for descriptors. */
static inline int pump_pair_run(struct pump_pair *w, struct end *e, struct mrc_wc *out, int n)
{
    const mrc_ns end = mrc_clock_now() + LIMIT_MS * MRC_MSEC;
    int have = 0;
    while (have < n && mrc_clock_now() < end) {
        struct pollfd fds[2];
        for (int i = 0; i < 2; i++)
            fds[i] = (struct pollfd){.fd = mrc_pump_fd(w->e[i].p), .events = POLLIN};
        poll(fds, 2, LIMIT_MS);
        for (int i = 0; i < 2; i++) {
            if (fds[i].revents == 0)
                continue;
            const int bits = mrc_pump_turn(w->e[i].p, 0);
            CHECK(bits >= 0);
            w->e[i].bits |= bits;
            w->e[i].turns++;
        }
        have += mrc_pump_cq_poll(e->p, e->cq, out + have, n - have);
    }
    return have;
}

static inline void end_write(struct end *e, const struct end *to, uint64_t id, uint32_t offset,
                             uint32_t length)
{
    const struct mrc_send_wr wr = {.wr_id = id,
                                   .laddr = (uint64_t)(uintptr_t)(e->buf + offset),
                                   .raddr = (uint64_t)(uintptr_t)(to->buf + offset),
                                   .length = length,
                                   .lkey = e->rkey,
                                   .rkey = to->rkey,
                                   .opcode = MRC_WR_RDMA_WRITE,
                                   .flags = MRC_SEND_SIGNALED};
    CHECK_EQ(mrc_pump_post_send(e->p, e->qpn, &wr, 1), 1);
}

static inline size_t pump_open_fds(void)
{
    size_t n = 0;
    DIR *d = opendir("/proc/self/fd");
    while (readdir(d) != NULL)
        n++;
    closedir(d);
    return n;
}

#endif
