/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "mrc_pages.h"
#include "mrc_rxsock.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#ifndef UDP_NO_CHECK6_RX
#define UDP_NO_CHECK6_RX 102
#endif
#ifndef UDP_GRO
#define UDP_GRO 104
#endif
#ifndef IPV6_FLOWINFO
#define IPV6_FLOWINFO 11
#endif

enum {
    RXSOCK_MSGS = 32,
    RXSOCK_BYTES = 65536, /* a merged train may fill all of it */
    RXSOCK_CONTROL = CMSG_SPACE(sizeof(struct in6_pktinfo)) + 4 * CMSG_SPACE(sizeof(uint32_t)),
    RXSOCK_RCVBUF = 8 << 20,
    RXSOCK_SNDBUF = 4 << 20,
};

struct mrc_rxsock_state {
    struct mmsghdr msgs[RXSOCK_MSGS];
    struct iovec iov[RXSOCK_MSGS];
    struct sockaddr_in6 from[RXSOCK_MSGS];
    _Alignas(struct cmsghdr) uint8_t control[RXSOCK_MSGS][RXSOCK_CONTROL];
    uint32_t count;         /* messages of the last call */
    uint32_t at;            /* message being taken apart */
    uint32_t offset;        /* in that message */
    uint32_t segment;       /* its segment size */
    bool more;              /* the last call filled all messages: there may be more */
    uint32_t drops;         /* last SO_RXQ_OVFL seen */
    struct mrc_rx_pkt head; /* what the segments of this message have in common */
    uint8_t bytes[RXSOCK_MSGS][RXSOCK_BYTES];
};

/* ---- opening ---- */

uint32_t mrc_sock_room(int fd, uint32_t headers)
{
    int mtu = 0;
    socklen_t len = sizeof mtu;
    if (getsockopt(fd, IPPROTO_IPV6, IPV6_MTU, &mtu, &len) != 0)
        return UINT32_MAX;
    return (uint32_t)mtu > headers ? (uint32_t)mtu - headers : 0;
}

uint32_t mrc_sock_buffer(int fd, bool receive, uint32_t want)
{
    const int force = receive ? SO_RCVBUFFORCE : SO_SNDBUFFORCE;
    const int plain = receive ? SO_RCVBUF : SO_SNDBUF;
    const int value = want > INT32_MAX / 2 ? INT32_MAX / 2 : (int)want;
    if (setsockopt(fd, SOL_SOCKET, force, &value, sizeof value) != 0)
        (void)setsockopt(fd, SOL_SOCKET, plain, &value, sizeof value);
    int got = 0;
    socklen_t len = sizeof got;
    if (getsockopt(fd, SOL_SOCKET, plain, &got, &len) != 0 || got < 0)
        return 0;
    return (uint32_t)got / 2; /* the kernel doubles what it is asked for */
}

int mrc_sock_own_mtu(int fd)
{
    const int interface = IPV6_PMTUDISC_INTERFACE;
    return setsockopt(fd, IPPROTO_IPV6, IPV6_MTU_DISCOVER, &interface, sizeof interface);
}

static int rxsock_bind(struct mrc_io *io, int fd, const struct mrc_port_cfg *cfg)
{
    const uint32_t first = cfg->udp_port != 0 ? cfg->udp_port : MRC_UDP_PORT;
    const uint32_t last = first + cfg->udp_port_tries;
    struct sockaddr_in6 sa = {.sin6_family = AF_INET6, .sin6_scope_id = cfg->scope_id};
    char text[INET6_ADDRSTRLEN];
    memcpy(&sa.sin6_addr, cfg->addr, 16);
    inet_ntop(AF_INET6, cfg->addr, text, sizeof text);
    for (uint32_t port = first; port <= last && port <= UINT16_MAX; port++) {
        sa.sin6_port = htons((uint16_t)port);
        if (bind(fd, (const struct sockaddr *)&sa, sizeof sa) == 0) {
            io->stats.udp_port = (uint16_t)port;
            return 0;
        }
        if (errno != EADDRINUSE)
            return mrc_io_fail(io, errno, "cannot receive on [%s]:%u", text, (unsigned)port);
    }
    if (first == last)
        return mrc_io_fail(io, EADDRINUSE, "UDP port %u of [%s] is taken", (unsigned)first, text);
    return mrc_io_fail(io, EADDRINUSE, "UDP ports %u to %u of [%s] are all taken", (unsigned)first,
                       (unsigned)last, text);
}

static int rxsock_options(struct mrc_io *io, int fd, const struct mrc_port_cfg *cfg)
{
    const int on = 1;
    if (setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on) != 0 ||
        setsockopt(fd, IPPROTO_IPV6, IPV6_RECVPKTINFO, &on, sizeof on) != 0 ||
        setsockopt(fd, IPPROTO_IPV6, IPV6_RECVTCLASS, &on, sizeof on) != 0 ||
        mrc_sock_own_mtu(fd) != 0)
        return mrc_io_fail(io, errno, "the kernel does not tell addresses and traffic class");
    if (setsockopt(fd, IPPROTO_IPV6, IPV6_FLOWINFO, &on, sizeof on) == 0)
        io->stats.caps |= MRC_IO_CAP_FLOWLABEL;
    else
        io->stats.caps |= MRC_IO_CAP_NO_FLOWINFO;
    if (!cfg->no_gro && setsockopt(fd, IPPROTO_UDP, UDP_GRO, &on, sizeof on) == 0)
        io->stats.caps |= MRC_IO_CAP_GRO;
    /* Without these two the port still works: raw peers' zero checksums (H37) and the count of
     * what the socket dropped are lost. */
    (void)setsockopt(fd, IPPROTO_UDP, UDP_NO_CHECK6_RX, &on, sizeof on);
    (void)setsockopt(fd, SOL_SOCKET, SO_RXQ_OVFL, &on, sizeof on);
    io->stats.rcvbuf_bytes =
        mrc_sock_buffer(fd, true, cfg->rcvbuf_bytes != 0 ? cfg->rcvbuf_bytes : RXSOCK_RCVBUF);
    /* Never sent from, but it shows what the sending sockets will get. */
    io->stats.sndbuf_bytes =
        mrc_sock_buffer(fd, false, cfg->sndbuf_bytes != 0 ? cfg->sndbuf_bytes : RXSOCK_SNDBUF);
    return 0;
}

static void rxsock_prepare(struct mrc_rxsock_state *st)
{
    for (uint32_t i = 0; i < RXSOCK_MSGS; i++) {
        st->iov[i].iov_base = st->bytes[i];
        st->iov[i].iov_len = RXSOCK_BYTES;
        struct msghdr *m = &st->msgs[i].msg_hdr;
        m->msg_iov = &st->iov[i];
        m->msg_iovlen = 1;
        m->msg_name = &st->from[i];
        m->msg_namelen = sizeof st->from[i];
        m->msg_control = st->control[i];
        m->msg_controllen = RXSOCK_CONTROL;
    }
}

int mrc_rxsock_open(struct mrc_io *io, struct mrc_rxsock *s, const struct mrc_port_cfg *cfg,
                    uint32_t n)
{
    s->fd = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (s->fd < 0)
        return mrc_io_fail(io, errno, "cannot open an IPv6 UDP socket");
    s->state = mrc_pages_get(sizeof *s->state);
    int err = s->state != NULL ? 0 : mrc_io_fail(io, ENOMEM, "receive buffers");
    if (err == 0)
        err = rxsock_options(io, s->fd, cfg);
    if (err == 0)
        err = rxsock_bind(io, s->fd, cfg);
    if (err == 0) {
        rxsock_prepare(s->state);
        const int e = mrc_io_watch(io, s->fd, EPOLLIN, MRC_IO_RX_TAG + n);
        if (e < 0)
            err = mrc_io_fail(io, -e, "cannot watch the receiving socket");
    }
    if (err < 0)
        mrc_rxsock_close(io, s);
    return err;
}

void mrc_rxsock_close(struct mrc_io *io, struct mrc_rxsock *s)
{
    if (s->fd >= 0) {
        mrc_io_unwatch(io, s->fd);
        close(s->fd);
    }
    s->fd = -1;
    mrc_pages_put(s->state, sizeof *s->state);
    s->state = NULL;
}

/* ---- receiving ---- */

/* Addresses, class, label, segment size and drops of one message. false: not usable. */
static bool rxsock_message(struct mrc_io *io, struct mrc_rxsock_state *st)
{
    struct mmsghdr *m = &st->msgs[st->at];
    const struct sockaddr_in6 *from = &st->from[st->at];
    struct mrc_rx_pkt *h = &st->head;
    bool have_dst = false;
    uint32_t flowinfo = 0;
    int value = 0;

    memset(h, 0, sizeof *h);
    st->segment = m->msg_len;
    for (struct cmsghdr *c = CMSG_FIRSTHDR(&m->msg_hdr); c; c = CMSG_NXTHDR(&m->msg_hdr, c)) {
        if (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_PKTINFO) {
            memcpy(h->dst, CMSG_DATA(c) + offsetof(struct in6_pktinfo, ipi6_addr), 16);
            have_dst = true;
        } else if (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_TCLASS) {
            memcpy(&value, CMSG_DATA(c), sizeof value);
            h->tclass = (uint8_t)value;
        } else if (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_FLOWINFO) {
            memcpy(&flowinfo, CMSG_DATA(c), sizeof flowinfo);
        } else if (c->cmsg_level == IPPROTO_UDP && c->cmsg_type == UDP_GRO) {
            memcpy(&value, CMSG_DATA(c), sizeof value); /* an int, whatever older texts say */
            if (value > 0 && (uint32_t)value < st->segment)
                st->segment = (uint32_t)value;
        } else if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SO_RXQ_OVFL) {
            uint32_t drops;
            memcpy(&drops, CMSG_DATA(c), sizeof drops);
            io->stats.rx_socket_drops += (uint32_t)(drops - st->drops);
            st->drops = drops;
        }
    }
    if (!have_dst || m->msg_len == 0 || (m->msg_hdr.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0)
        return false;
    h->flow_label = ntohl(flowinfo) & 0xFFFFF;
    h->sport = ntohs(from->sin6_port);
    h->dport = io->stats.udp_port;
    h->port = io->index;
    memcpy(h->src, &from->sin6_addr, 16);
    return true;
}

/* Next batch from the kernel. false: nothing there. */
static bool rxsock_fill(struct mrc_io *io, struct mrc_rxsock *s)
{
    struct mrc_rxsock_state *st = s->state;
    for (uint32_t i = 0; i < st->count; i++) { /* the kernel wrote over these */
        st->msgs[i].msg_hdr.msg_namelen = sizeof st->from[i];
        st->msgs[i].msg_hdr.msg_controllen = RXSOCK_CONTROL;
    }
    st->count = 0;
    st->at = 0;
    st->offset = 0;
    io->stats.rx_calls++;
    const int n = recvmmsg(s->fd, st->msgs, RXSOCK_MSGS, 0, NULL);
    st->more = n == RXSOCK_MSGS;
    if (n <= 0)
        return false;
    st->count = (uint32_t)n;
    return true;
}

size_t mrc_rxsock_burst(struct mrc_io *io, struct mrc_rxsock *s, uint32_t n, struct mrc_rx_pkt *out,
                        size_t max)
{
    struct mrc_rxsock_state *st = s->state;
    size_t got = 0;
    if (st->at == st->count && !rxsock_fill(io, s)) {
        io->rx_ready &= ~(1u << n);
        return 0;
    }
    while (got < max && st->at < st->count) {
        const uint32_t len = st->msgs[st->at].msg_len;
        if (st->offset == 0 && !rxsock_message(io, st)) {
            io->stats.rx_malformed++;
            st->at++;
            continue;
        }
        const uint32_t part = mrc_min32(st->segment, len - st->offset);
        struct mrc_rx_pkt *pkt = &out[got++];
        *pkt = st->head;
        pkt->bytes = st->bytes[st->at] + st->offset;
        pkt->len = part;
        pkt->udp_len = (uint16_t)(8 + part);
        io->stats.rx_bytes += part;
        st->offset += part;
        if (st->offset == len) {
            st->offset = 0;
            st->at++;
        }
    }
    io->stats.rx_packets += got;
    if (st->at == st->count && !st->more)
        io->rx_ready &= ~(1u << n);
    return got;
}
