/* SPDX-License-Identifier: BSD-2-Clause */
#include "load.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { LOAD_EV0 = 0xC000, LOAD_MPR = 16, LOAD_WIMM = 128, LOAD_RQ = 1, LOAD_PLANES = 4 };

static double load_clock(clockid_t id)
{
    struct timespec t;
    clock_gettime(id, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

double load_wall(void) { return load_clock(CLOCK_MONOTONIC); }
double load_cpu(void) { return load_clock(CLOCK_PROCESS_CPUTIME_ID); }

void load_must(bool ok, const struct load_end *e, const char *what)
{
    if (ok)
        return;
    const char *words = e != NULL && e->pump != NULL ? mrc_pump_error(e->pump) : strerror(errno);
    fprintf(stderr, "load: %s: %s\n", what, words);
    exit(2);
}

/* ---- options ---- */

static double load_number(const char *text, double low, double high)
{
    char *end;
    const double v = strtod(text, &end);
    if (*text != '\0' && *end == '\0' && v >= low && v <= high)
        return v;
    fprintf(stderr, "load: %s: must be %.0f..%.0f\n", text, low, high);
    exit(1);
}

struct load_options load_parse(int argc, char **argv)
{
    struct load_options o = {.qps = 1,
                             .evs = 16,
                             .bytes = 1 << 20,
                             .depth = 16,
                             .path_mtu = MRC_MTU_MAX,
                             .seconds = 1,
                             .threads = 1};
    int opt;
    while ((opt = getopt(argc, argv, "q:e:s:d:m:k:w:t:p:lj:")) != -1) {
        switch (opt) {
        case 'q': o.qps = (uint32_t)load_number(optarg, 1, 65536); break;
        case 'e': o.evs = (uint32_t)load_number(optarg, 1, MRC_EV_MAX); break;
        case 's': o.bytes = (uint32_t)load_number(optarg, 1, LOAD_REGION_BYTES); break;
        case 'd': o.depth = (uint32_t)load_number(optarg, 1, 65536); break;
        case 'm': o.path_mtu = (uint32_t)load_number(optarg, 256, MRC_MTU_MAX); break;
        case 'k': o.train = (uint32_t)load_number(optarg, 0, 16); break;
        case 'w': o.window = (uint32_t)load_number(optarg, 0, 1 << 30); break;
        case 't': o.seconds = load_number(optarg, 0.01, 3600); break;
        case 'p':
            o.threaded = true;
            o.spin_us = (uint32_t)load_number(optarg, 0, 1000);
            break;
        case 'l': o.latency = true; break;
        case 'j': o.threads = (uint32_t)load_number(optarg, 1, 256); break;
        default: exit(1);
        }
    }
    return o;
}

uint32_t load_depth(const struct load_options *o)
{
    return o->depth > o->qps ? o->depth / o->qps : 1;
}

/* ---- one end ---- */

static struct mrc_qp_init load_init(const struct load_options *o)
{
    return (struct mrc_qp_init){.pd = 1,
                                .sq_depth = load_depth(o),
                                .rq_depth = LOAD_RQ,
                                .mpr_max = LOAD_MPR,
                                .max_wimm_dest = LOAD_WIMM,
                                .ev_max = (uint16_t)o->evs};
}

static struct mrc_engine_cfg load_limits(uint32_t qps)
{
    return (struct mrc_engine_cfg){.seed = 1,
                                   .qp_max = qps,
                                   .mr_max = 1,
                                   .cq_max = 1,
                                   .path_max = 1,
                                   .cc_max = 1,
                                   .dscp_control = 46};
}

void load_open(struct load_end *e, const struct load_options *o, struct mrc_mem_wire *wire,
               uint8_t side)
{
    const struct mrc_engine_cfg limits = load_limits(o->qps);
    struct mrc_port_cfg port = {.kind = wire != NULL ? MRC_IO_MEM : MRC_IO_UDP,
                                .udp_port_tries = 16,
                                .wire = wire,
                                .mem_end = side};
    const struct mrc_cc_cfg cc = {.kind = o->window != 0 ? MRC_CC_FIXED : MRC_CC_NSCC,
                                  .max_cwnd_bytes = o->window,
                                  .mtu_bytes = o->path_mtu};
    struct mrc_qp_init init = load_init(o);
    if (wire != NULL)
        e->addr[15] = (uint8_t)(side + 1);
    memcpy(port.addr, e->addr, 16);
    e->qps = o->qps;
    e->pump = mrc_pump_create(&limits);
    e->region = calloc(1, LOAD_REGION_BYTES);
    e->qpn = calloc(o->qps, sizeof *e->qpn);
    load_must(e->pump != NULL && e->region != NULL && e->qpn != NULL, NULL, "memory");
    load_must(mrc_pump_port_add(e->pump, &port) >= 0, e, "port");
    load_must(mrc_pump_mr_register(e->pump, 1, e->region, LOAD_REGION_BYTES,
                                   MRC_ACCESS_LOCAL_WRITE | MRC_ACCESS_REMOTE_WRITE, 77,
                                   &e->rkey) >= 0,
              e, "region");
    const int cc_id = mrc_pump_cc_create(e->pump, &cc);
    load_must(cc_id >= 0, e, "controller");
    const int cq = mrc_pump_cq_create(e->pump, load_depth(o) * o->qps + 64);
    load_must(cq >= 0, e, "completion queue");
    e->cc = (uint32_t)cc_id;
    e->cq = init.send_cq = init.recv_cq = (uint32_t)cq;
    for (uint32_t q = 0; q < o->qps; q++) {
        const int qpn = mrc_pump_qp_create(e->pump, &init);
        load_must(qpn > 0, e, "queue pair");
        e->qpn[q] = (uint32_t)qpn;
    }
    if (o->threaded)
        load_must(mrc_pump_start(e->pump, o->spin_us) >= 0, e, "thread");
}

void load_tell(const struct load_end *e, struct load_card *out)
{
    struct mrc_port_stats stats;
    load_must(mrc_pump_port_stats(e->pump, 0, &stats) >= 0, e, "port");
    *out = (struct load_card){
        .raddr = (uint64_t)(uintptr_t)e->region, .rkey = e->rkey, .udp_port = stats.udp_port};
    memcpy(out->addr, e->addr, 16);
}

static void load_path(struct load_end *e, const struct load_options *o)
{
    const struct mrc_path_cfg cfg = {.count = (uint16_t)o->evs,
                                     .min_active = (uint16_t)mrc_min32(4, o->evs),
                                     .probe_successes = 3,
                                     .event_ring = 1024,
                                     .probe_interval_ns = MRC_MSEC,
                                     .probe_interval_max_ns = 50 * MRC_MSEC,
                                     .probe_timeout_ns = 3 * MRC_MSEC,
                                     .seed = 1};
    struct mrc_peer_addr to = {.dport = e->peer.udp_port};
    struct mrc_lane_cfg *lanes = calloc(o->evs, sizeof *lanes);
    uint8_t src[16];
    load_must(lanes != NULL, NULL, "memory");
    memcpy(to.src, e->addr, 16);
    memcpy(to.dst, e->peer.addr, 16);
    for (uint32_t i = 0; i < o->evs; i++) {
        lanes[i].ev = LOAD_EV0 + i;
        lanes[i].plane = (uint8_t)(1 + i % LOAD_PLANES);
    }
    const int id = mrc_pump_path_create(e->pump, 0, &to, &cfg, lanes, src);
    load_must(id >= 0, e, "paths");
    e->path = (uint32_t)id;
    e->path_made = true;
    free(lanes);
}

void load_connect(struct load_end *e, const struct load_options *o, uint32_t q, uint32_t qpn)
{
    if (!e->path_made)
        load_path(e, o);
    struct mrc_qp_attr a = {.state = MRC_QPS_INIT,
                            .access = MRC_ACCESS_LOCAL_WRITE | MRC_ACCESS_REMOTE_WRITE,
                            .timeout = 16,
                            .linear_cnt = 3,
                            .exp_cnt = 6,
                            .train_max = (uint8_t)o->train,
                            .path_mtu = (uint16_t)o->path_mtu,
                            .mpr = LOAD_MPR,
                            .mpr_dest = LOAD_MPR,
                            .max_wimm = LOAD_WIMM,
                            .max_wimm_dest = LOAD_WIMM,
                            .dport = e->peer.udp_port,
                            .dest_qpn = qpn,
                            .path = e->path,
                            .cc = e->cc};
    memcpy(a.src, e->addr, 16);
    memcpy(a.dst, e->peer.addr, 16);
    const uint32_t mask[] = {MRC_QP_STATE | MRC_QP_ACCESS,
                             MRC_QP_STATE | MRC_QP_AV | MRC_QP_RQ_PSN | MRC_QP_PATH |
                                 MRC_QP_MPR_DEST | MRC_QP_WIMM_DEST,
                             MRC_QP_STATE | MRC_QP_SQ_PSN | MRC_QP_CC | MRC_QP_MPR | MRC_QP_WIMM |
                                 MRC_QP_TIMEOUT | MRC_QP_RETRY};
    for (size_t i = 0; i < 3; i++, a.state++) {
        const uint32_t train = i == 2 && o->train != 0 ? MRC_QP_TRAIN : 0;
        load_must(mrc_pump_qp_modify(e->pump, e->qpn[q], &a, mask[i] | train) == MRC_OK, e,
                  "queue pair state");
    }
}

/* ---- figures ---- */

static void load_stats(const struct load_end *e, uint32_t q, struct mrc_qp_stats *out)
{
    load_must(mrc_pump_qp_stats(e->pump, e->qpn[q], out) >= 0, e, "statistics");
}

uint64_t load_packets(const struct load_end *e)
{
    uint64_t sum = 0;
    struct mrc_qp_stats s;
    for (uint32_t q = 0; q < e->qps; q++) {
        load_stats(e, q, &s);
        sum += s.packets_sent;
    }
    return sum;
}

uint64_t load_again(const struct load_end *e)
{
    uint64_t sum = 0;
    struct mrc_qp_stats s;
    for (uint32_t q = 0; q < e->qps; q++) {
        load_stats(e, q, &s);
        sum += s.packets_retransmitted;
    }
    return sum;
}

uint64_t load_trains(const struct load_end *e)
{
    struct mrc_port_stats s;
    load_must(mrc_pump_port_stats(e->pump, 0, &s) >= 0, e, "port");
    return s.tx_trains;
}

/* Of a queue pair with the library's usual limits and room for one write; the engine's tables count
 * as well. The window of PSNs is what grows with mpr: its slope is what the bitmaps take. */
int load_size(void)
{
    const struct load_options one = {.qps = 1, .evs = 16, .depth = 1};
    struct mrc_qp_init init = load_init(&one);
    const struct mrc_engine_cfg few = load_limits(1000);
    const struct mrc_engine_cfg many = load_limits(2000);
    const size_t whole = mrc_qp_size(&init);
    init.mpr_max = 2 * LOAD_MPR;
    const size_t wider = mrc_qp_size(&init);
    const double table = (double)(mrc_engine_size(&many) - mrc_engine_size(&few)) / 1000;
    printf("{\"qp_bytes\": %zu, \"window_bytes\": %zu, \"engine_bytes_per_qp\": %.1f}\n", whole,
           wider - whole, table);
    return 0;
}

/* ---- meeting ---- */

int load_meet(bool dial, const char *addr, const char *port, uint8_t own[16])
{
    struct sockaddr_in6 at = {.sin6_family = AF_INET6};
    struct sockaddr_in6 here;
    socklen_t len = sizeof here;
    const int on = 1;
    load_must(inet_pton(AF_INET6, addr, &at.sin6_addr) == 1, NULL, addr);
    at.sin6_port = htons((uint16_t)load_number(port, 1, 65535));
    int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
    load_must(fd >= 0, NULL, "socket");
    if (dial) {
        load_must(connect(fd, (const struct sockaddr *)&at, sizeof at) == 0, NULL, "connect");
    } else {
        load_must(setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) == 0 &&
                      bind(fd, (const struct sockaddr *)&at, sizeof at) == 0 && listen(fd, 1) == 0,
                  NULL, "bind");
        puts("ready");
        fflush(stdout);
        const int conn = accept4(fd, NULL, NULL, SOCK_CLOEXEC);
        load_must(conn >= 0, NULL, "accept");
        close(fd);
        fd = conn;
    }
    load_must(getsockname(fd, (struct sockaddr *)&here, &len) == 0, NULL, "getsockname");
    memcpy(own, &here.sin6_addr, 16);
    return fd;
}

void load_swap(int tcp, const void *own, size_t size, void *theirs)
{
    load_must(send(tcp, own, size, MSG_NOSIGNAL) == (ssize_t)size, NULL, "send to the peer");
    load_must(recv(tcp, theirs, size, MSG_WAITALL) == (ssize_t)size, NULL, "the peer went away");
}
