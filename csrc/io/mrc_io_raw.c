/* SPDX-License-Identifier: BSD-2-Clause */
/* Whole IPv6 packets of our own making: outer header (and SRH) from the lane's template, inner IPv6
 * and UDP (A.1, A.13). Receives what arrives encapsulated, with or without an SRH, on raw sockets
 * (mrc_rawrx.c), and what the kernel has decapsulated by itself on an ordinary UDP socket. Each
 * packet arrives on one of them only. Needs CAP_NET_RAW. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "mrc_rawrx.h"
#include "mrc_rxsock.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    RAW_RX_UDP = 0, /* receive descriptors: the UDP socket, */
    RAW_RX_RAW = 1, /* and two raw ones */
    RAW_PREFIX_MAX = 128 + MRC_IPV6_LEN + MRC_UDP_LEN,
    RAW_HOP_LIMIT = 64, /* A.2 */
    RAW_BUF = 4 << 20,
};

struct raw_lane {
    uint32_t prefix_len;
    struct sockaddr_in6 to;         /* decides the route; the header repeats it */
    uint8_t prefix[RAW_PREFIX_MAX]; /* all headers above BTH; lengths and class are patched */
};

struct mrc_io_raw {
    struct mrc_io io;
    struct mrc_rxsock udp;
    bool udp_first; /* takes turns */
    int tx_fd;
    bool watched;
    struct mrc_txq kept; /* one socket, one queue */
    struct raw_lane *lanes;
    uint32_t lane_room;
    const struct mrc_tx_pkt *list[MRC_IO_BURST_MAX];
    struct mmsghdr tx_msgs[MRC_IO_BURST_MAX];
    struct iovec tx_iov[MRC_IO_BURST_MAX][4];
    uint8_t tx_prefix[MRC_IO_BURST_MAX][RAW_PREFIX_MAX];
    struct mrc_rawrx rawrx;
};

/* ---- port ---- */

static int raw_open_tx(struct mrc_io_raw *r, const struct mrc_port_cfg *cfg)
{
    struct mrc_io *io = &r->io;
    r->tx_fd = mrc_raw_socket(io, IPPROTO_RAW);
    if (r->tx_fd < 0)
        return r->tx_fd;
    if (mrc_sock_own_mtu(r->tx_fd) != 0)
        return mrc_io_fail(io, errno, "cannot set up a sending socket");
    const int none = 0;
    (void)setsockopt(r->tx_fd, SOL_SOCKET, SO_RCVBUF, &none, sizeof none);
    const uint32_t want = cfg->sndbuf_bytes != 0 ? cfg->sndbuf_bytes : RAW_BUF;
    io->stats.sndbuf_bytes = mrc_sock_buffer(r->tx_fd, false, want);
    return 0;
}

static void raw_close(struct mrc_io *io)
{
    struct mrc_io_raw *r = (struct mrc_io_raw *)io;
    mrc_rxsock_close(io, &r->udp);
    mrc_rawrx_close(io, &r->rawrx);
    if (r->tx_fd >= 0) {
        if (r->watched)
            mrc_io_unwatch(io, r->tx_fd);
        close(r->tx_fd);
    }
    free(r->lanes);
}

static int raw_open(struct mrc_io *io, const struct mrc_port_cfg *cfg)
{
    struct mrc_io_raw *r = (struct mrc_io_raw *)io;
    r->udp.fd = -1;
    r->tx_fd = -1;
    mrc_rawrx_init(&r->rawrx);
    mrc_txq_init(&r->kept);
    /* The UDP socket reserves the port and takes what the kernel decapsulates. */
    int err = mrc_rxsock_open(io, &r->udp, cfg, RAW_RX_UDP);
    if (err == 0)
        err = mrc_rawrx_open(io, &r->rawrx, cfg, RAW_RX_RAW);
    if (err == 0)
        err = raw_open_tx(r, cfg);
    if (err < 0) {
        raw_close(io);
        return err;
    }
    io->stats.caps |= MRC_IO_CAP_OUTER_ECN | MRC_IO_CAP_TRIM | MRC_IO_CAP_FLOWLABEL;
    return 0;
}

/* ---- lanes ---- */

/* Outer IPv6, then nothing or one routing header, then IPv6: and nothing past the end. */
static bool raw_template_ok(const struct mrc_lane_key *key)
{
    const uint8_t *t = key->tmpl;
    if (key->tmpl_len == 0)
        return true;
    if (key->tmpl_len < MRC_IPV6_LEN || key->tmpl_len > sizeof key->tmpl || t[0] >> 4 != 6)
        return false;
    if (key->tmpl_len == MRC_IPV6_LEN)
        return t[6] == MRC_NH_IPV6;
    return t[6] == MRC_NH_ROUTING && key->tmpl_len >= MRC_IPV6_LEN + 8 &&
           t[MRC_IPV6_LEN] == MRC_NH_IPV6 &&
           key->tmpl_len == MRC_IPV6_LEN + 8 + 8 * (uint32_t)t[MRC_IPV6_LEN + 1];
}

static void raw_lane_prefix(struct raw_lane *l, const struct mrc_lane_key *key)
{
    const uint32_t label = key->ev >> 16; /* bits 19:16 stay zero (A.12) */
    uint8_t *inner = l->prefix + key->tmpl_len;
    uint8_t *udp = inner + MRC_IPV6_LEN;
    memset(l, 0, sizeof *l);
    memcpy(l->prefix, key->tmpl, key->tmpl_len);
    mrc_put32(inner, 0x60000000u | label);
    inner[6] = MRC_NH_UDP;
    inner[7] = RAW_HOP_LIMIT;
    memcpy(inner + 8, key->src, 16);
    memcpy(inner + 24, key->dst, 16);
    mrc_put16(udp, (uint16_t)key->ev);
    mrc_put16(udp + 2, key->dport);
    /* The checksum stays zero (H37): iCRC covers the packet. */
    l->prefix_len = key->tmpl_len + MRC_IPV6_LEN + MRC_UDP_LEN;
    l->to.sin6_family = AF_INET6;
    memcpy(&l->to.sin6_addr, l->prefix + 24, 16);
    if (IN6_IS_ADDR_LINKLOCAL(&l->to.sin6_addr))
        l->to.sin6_scope_id = key->scope_id;
}

static int raw_lane_open(struct mrc_io *io, uint32_t lane)
{
    struct mrc_io_raw *r = (struct mrc_io_raw *)io;
    const struct mrc_lane_key *key = &io->lanes[lane].key;
    if (!raw_template_ok(key))
        return mrc_io_fail(io, 0,
                           "EV 0x%08x: the outer header is not IPv6 [+ routing header] of "
                           "exactly %u bytes in front of IPv6",
                           (unsigned)key->ev, (unsigned)key->tmpl_len);
    if (r->lane_room < io->lane_room) {
        struct raw_lane *lanes = realloc(r->lanes, io->lane_room * sizeof *lanes);
        if (lanes == NULL)
            return mrc_io_fail(io, ENOMEM, "lane %u", (unsigned)lane);
        r->lanes = lanes;
        r->lane_room = io->lane_room;
    }
    raw_lane_prefix(&r->lanes[lane], key);
    return 0;
}

/* Kept packets of this lane would be sent by whoever gets its number next. */
static void raw_lane_close(struct mrc_io *io, uint32_t lane)
{
    mrc_txq_forget_lane(io, &((struct mrc_io_raw *)io)->kept, lane);
}

/* ---- sending ---- */

static void raw_build(struct mrc_io_raw *r, size_t i, const struct mrc_tx_pkt *pkt)
{
    struct raw_lane *l = &r->lanes[pkt->lane];
    uint8_t *p = r->tx_prefix[i];
    const uint32_t outer_len = l->prefix_len - MRC_IPV6_LEN - MRC_UDP_LEN;
    uint8_t *inner = p + outer_len;
    const uint16_t udp_len = mrc_tx_udp_len(pkt);
    const uint32_t word = 0x60000000u | (uint32_t)pkt->tclass << 20 | pkt->ev >> 16;
    memcpy(p, l->prefix, l->prefix_len);
    if (outer_len > 0) { /* class, ECN and label outside are those inside (A.13.1) */
        mrc_put32(p, word);
        mrc_put16(p + 4, (uint16_t)(outer_len + udp_len));
    }
    mrc_put32(inner, word);
    mrc_put16(inner + 4, udp_len);
    mrc_put16(inner + MRC_IPV6_LEN + 4, udp_len);

    struct iovec *iov = r->tx_iov[i];
    size_t k = 0;
    iov[k++] = (struct iovec){p, l->prefix_len};
    iov[k++] = (struct iovec){(void *)(uintptr_t)pkt->hdr, pkt->hdr_len};
    if (pkt->payload_len > 0)
        iov[k++] = (struct iovec){(void *)(uintptr_t)pkt->payload, pkt->payload_len};
    if (pkt->tail_len > 0)
        iov[k++] = (struct iovec){(void *)(uintptr_t)pkt->tail, pkt->tail_len};
    r->tx_msgs[i].msg_hdr = (struct msghdr){
        .msg_name = &l->to, .msg_namelen = sizeof l->to, .msg_iov = iov, .msg_iovlen = k};
}

/* Sends list[0..n). Returns how many are done with, sent or refused; the others must wait. */
static size_t raw_send(struct mrc_io_raw *r, size_t n)
{
    struct mrc_io *io = &r->io;
    for (size_t i = 0; i < n; i++)
        raw_build(r, i, r->list[i]);
    size_t at = 0;
    while (at < n) {
        io->stats.tx_calls++;
        const int sent = io->sys_sendmmsg(r->tx_fd, &r->tx_msgs[at], (unsigned)(n - at), 0);
        if (sent > 0) {
            for (const size_t end = at + (size_t)sent; at < end; at++)
                io->stats.tx_bytes += mrc_tx_udp_len(r->list[at]) - 8u;
            io->stats.tx_packets += (size_t)sent;
            io->stats.tx_trains += (size_t)sent;
            continue;
        }
        const int error = sent < 0 ? errno : EAGAIN;
        if (error == EINTR)
            continue;
        if (error == EAGAIN || error == ENOBUFS || error == ENOMEM) {
            io->stats.tx_blocked++;
            io->retry = io->retry || error != EAGAIN;
            return at;
        }
        io->stats.tx_errors++;
        io->stats.tx_errno = (uint8_t)error;
        mrc_io_lane_failed(io, r->list[at]->lane, error);
        at++;
    }
    return n;
}

static void raw_wait(struct mrc_io_raw *r)
{
    if (r->watched || r->io.retry)
        return;
    if (mrc_io_watch(&r->io, r->tx_fd, EPOLLOUT, 0) == 0)
        r->watched = true;
    else
        r->io.retry = true;
}

static void raw_tx(struct mrc_io *io, const struct mrc_tx_pkt *const *pkts, size_t n)
{
    struct mrc_io_raw *r = (struct mrc_io_raw *)io;
    size_t done = 0;
    MRC_ASSERT(n <= MRC_IO_BURST_MAX);
    if (r->kept.count == 0) {
        for (size_t i = 0; i < n; i++)
            r->list[i] = pkts[i];
        done = raw_send(r, n);
    }
    if (done == n)
        return;
    for (size_t i = done; i < n; i++)
        mrc_txq_push(io, &r->kept, pkts[i]);
    raw_wait(r);
}

static void raw_resume(struct mrc_io *io, uint32_t lane)
{
    struct mrc_io_raw *r = (struct mrc_io_raw *)io;
    (void)lane;
    while (r->kept.count > 0) {
        const size_t n = mrc_txq_peek(io, &r->kept, r->list, MRC_IO_BURST_MAX);
        const size_t done = raw_send(r, n);
        mrc_txq_drop(io, &r->kept, done);
        if (done < n) {
            raw_wait(r);
            return;
        }
    }
    if (r->watched) {
        mrc_io_unwatch(io, r->tx_fd);
        r->watched = false;
    }
}

static void raw_forget(struct mrc_io *io, const uint8_t *addr, uint64_t len)
{
    mrc_txq_forget(io, &((struct mrc_io_raw *)io)->kept, addr, len);
}

/* The route is that of the outer header. */
static uint32_t raw_lane_room(struct mrc_io *io, uint32_t lane)
{
    const struct raw_lane *l = &((struct mrc_io_raw *)io)->lanes[lane];
    struct sockaddr_in6 to = l->to;
    to.sin6_port = htons(9); /* nothing is sent */
    const int fd = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return UINT32_MAX;
    const bool known = connect(fd, (const struct sockaddr *)&to, sizeof to) == 0;
    const uint32_t room = known ? mrc_sock_room(fd, l->prefix_len) : UINT32_MAX;
    close(fd);
    return room;
}

/* ---- receiving ---- */

static size_t raw_rx_udp(struct mrc_io_raw *r, struct mrc_rx_pkt *out, size_t max)
{
    if (max == 0 || (r->io.rx_ready & 1u << RAW_RX_UDP) == 0)
        return 0;
    return mrc_rxsock_burst(&r->io, &r->udp, RAW_RX_UDP, out, max);
}

static size_t raw_rx(struct mrc_io *io, struct mrc_rx_pkt *out, size_t max)
{
    struct mrc_io_raw *r = (struct mrc_io_raw *)io;
    r->udp_first = !r->udp_first; /* a socket that never runs dry must not starve the others */
    size_t n = r->udp_first ? raw_rx_udp(r, out, max) : 0;
    n += mrc_rawrx_burst(io, &r->rawrx, RAW_RX_RAW, out + n, max - n);
    if (!r->udp_first)
        n += raw_rx_udp(r, out + n, max - n);
    return n;
}

const struct mrc_io_ops mrc_io_raw_ops = {
    .name = "raw",
    .state_bytes = sizeof(struct mrc_io_raw),
    .open = raw_open,
    .close = raw_close,
    .lane_open = raw_lane_open,
    .lane_close = raw_lane_close,
    .rx = raw_rx,
    .tx = raw_tx,
    .resume = raw_resume,
    .forget = raw_forget,
    .lane_room = raw_lane_room,
};
