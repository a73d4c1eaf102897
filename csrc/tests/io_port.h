/* SPDX-License-Identifier: BSD-2-Clause */
/* One port without a pump: what the tests of the backends share. */
#ifndef MRC_TEST_IO_PORT_H
#define MRC_TEST_IO_PORT_H

#include "../io/mrc_io.h"

#include <dirent.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { PORT_WAIT_MS = 2000, PORT_RX_MAX = 2048, PORT_BYTES = 8192 };

struct port {
    int epoll_fd;
    int err;
    struct mrc_io *io;
    char error[MRC_IO_ERROR_MAX];
};

struct arrival {
    struct mrc_rx_pkt pkt;
    uint8_t bytes[PORT_BYTES];
};

static const uint8_t port_loopback[16] = {[15] = 1};

/* Test runs in parallel start their search for a free port at different places. */
static inline struct mrc_port_cfg port_cfg(uint8_t kind)
{
    struct mrc_port_cfg cfg = {.kind = kind, .udp_port_tries = 2000};
    cfg.udp_port = (uint16_t)(20000 + getpid() % 20000);
    memcpy(cfg.addr, port_loopback, sizeof cfg.addr);
    return cfg;
}

/* io is NULL when it could not be opened; err and error say why. */
static inline struct port port_try(const struct mrc_port_cfg *cfg)
{
    struct port p = {.epoll_fd = epoll_create1(EPOLL_CLOEXEC)};
    char *error = malloc(MRC_IO_ERROR_MAX); /* outlives the move of p */
    error[0] = '\0';
    p.io = mrc_io_open(cfg, 3, p.epoll_fd, error, &p.err);
    memcpy(p.error, error, sizeof p.error);
    if (p.io == NULL) {
        close(p.epoll_fd);
        free(error);
    }
    return p;
}

static inline struct port port_open(uint8_t kind)
{
    const struct mrc_port_cfg cfg = port_cfg(kind);
    struct port p = port_try(&cfg);
    if (p.io == NULL) {
        printf("cannot open a port: %s\n", p.error);
        abort();
    }
    return p;
}

static inline void port_close(struct port *p)
{
    char *error = p->io->error;
    mrc_io_close(p->io, true);
    close(p->epoll_fd);
    free(error);
}

static inline struct mrc_lane_key port_key(const struct port *to, uint32_t ev)
{
    struct mrc_lane_key key = {.ev = ev, .dport = to->io->stats.udp_port};
    memcpy(key.src, port_loopback, 16);
    memcpy(key.dst, port_loopback, 16);
    return key;
}

static inline uint32_t port_lane(struct port *from, const struct port *to, uint32_t ev)
{
    const struct mrc_lane_key key = port_key(to, ev);
    const int64_t lane = mrc_io_lane_get(from->io, &key);
    if (lane < 0) {
        printf("cannot open lane %08x: %s\n", (unsigned)ev, from->io->error);
        abort();
    }
    return (uint32_t)lane;
}

/* Packet number n: every byte follows from n and its place. */
static inline uint8_t port_byte(uint32_t n, uint32_t i)
{
    return (uint8_t)(n * 37 + i * 5 + i / 251);
}

static uint8_t port_payload[256][4096];

static inline struct mrc_tx_pkt port_pkt(const struct port *p, uint32_t lane, uint32_t n,
                                         uint32_t payload_len)
{
    struct mrc_tx_pkt pkt = {.lane = lane, .ev = p->io->lanes[lane].key.ev, .port = 3};
    pkt.tclass = 2;
    pkt.hdr_len = 32;
    pkt.tail_len = 4;
    pkt.payload_len = payload_len;
    pkt.payload = port_payload[n % 256];
    for (uint32_t i = 0; i < 32; i++)
        pkt.hdr[i] = port_byte(n, i);
    for (uint32_t i = 0; i < payload_len; i++)
        port_payload[n % 256][i] = port_byte(n, 32 + i);
    for (uint32_t i = 0; i < 4; i++)
        pkt.tail[i] = port_byte(n, 32 + payload_len + i);
    return pkt;
}

static inline void port_tx(struct port *p, const struct mrc_tx_pkt *pkts, size_t n)
{
    const struct mrc_tx_pkt *list[MRC_IO_BURST_MAX];
    for (size_t i = 0; i < n; i++)
        list[i] = &pkts[i];
    p->io->ops->tx(p->io, list, n);
}

/* Handle what the epoll set says now; waits for at most ms. */
static inline void port_poll(struct port *p, int ms)
{
    struct epoll_event ev[32];
    const int n = epoll_wait(p->epoll_fd, ev, 32, ms);
    for (int i = 0; i < n; i++) {
        const uint32_t tag = (uint32_t)ev[i].data.u64;
        if (tag >= MRC_IO_RX_TAG)
            p->io->rx_ready |= 1u << (tag - MRC_IO_RX_TAG);
        else
            p->io->ops->resume(p->io, tag);
    }
}

/* Receive until `want` packets are there, or nothing comes for PORT_WAIT_MS. want = 0: what is
 * there after one look. Returns a static array. */
static inline struct arrival *port_rx(struct port *p, size_t want, size_t *got)
{
    static struct arrival in[PORT_RX_MAX];
    struct mrc_rx_pkt burst[48];
    size_t n = 0;
    do {
        if (p->io->rx_ready == 0)
            port_poll(p, want == 0 ? 0 : PORT_WAIT_MS);
        if (p->io->rx_ready == 0)
            break;
        const size_t k = p->io->ops->rx(p->io, burst, 48);
        for (size_t i = 0; i < k && n < PORT_RX_MAX; i++, n++) {
            in[n].pkt = burst[i];
            memcpy(in[n].bytes, burst[i].bytes, burst[i].len);
        }
    } while (n < want || (want == 0 && p->io->rx_ready != 0));
    *got = n;
    return in;
}

/* Are these the bytes of packet n? */
static inline bool port_same(const struct arrival *a, uint32_t n, uint32_t payload_len)
{
    if (a->pkt.len != 36 + payload_len || a->pkt.udp_len != 44 + payload_len)
        return false;
    for (uint32_t i = 0; i < a->pkt.len; i++) {
        if (a->bytes[i] != port_byte(n, i))
            return false;
    }
    return true;
}

static inline size_t port_open_fds(void)
{
    size_t n = 0;
    DIR *d = opendir("/proc/self/fd");
    while (readdir(d) != NULL)
        n++;
    closedir(d);
    return n;
}

#endif
