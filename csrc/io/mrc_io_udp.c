/* SPDX-License-Identifier: BSD-2-Clause */
/* UDP over IPv6 without any privilege. One connected socket per entropy value ("lane"): its source
 * port and its leased flow label are the two halves of the EV (A.12), and the kernel keeps the
 * route it found for them. Packets of one lane leave together, equal ones as one offloaded
 * train; where the length of trains is given, in the order in which their paths were chosen (ADR
 * 130). */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "mrc_rxsock.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/filter.h>
#include <netinet/in.h>
#include <linux/in6.h>
#include <netinet/udp.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#endif

enum {
    UDP_SEGMENTS_MAX = 64, /* of one train, what every kernel with UDP_SEGMENT takes */
    /* Payload of one train: 65535 less UDP header, an encapsulating header and an SRH. */
    UDP_TRAIN_BYTES = 65535 - 8 - 40 - 128,
    UDP_CONTROL = CMSG_SPACE(sizeof(int)) + CMSG_SPACE(sizeof(uint16_t)),
    UDP_SNDBUF = 4 << 20,
    UDP_HEADERS =
        40 + 8, /* IPv6 and UDP; what the kernel wraps around them is off the route's MTU */
    UDP_CLASS_TRUST = 4, /* packets of another class in a row until the socket's class follows */
};

struct udp_lane {
    int fd;
    bool watched;   /* in the epoll set for EPOLLOUT */
    int16_t tclass; /* the socket's own traffic class, -1: not set yet */
    uint8_t trust;  /* falls with messages of other classes */
    struct mrc_txq kept;
};

struct udp_msg {
    uint16_t first; /* packets of this message in the list being sent */
    uint16_t count;
    uint32_t bytes;
};

struct mrc_io_udp {
    struct mrc_io io;
    struct mrc_rxsock rx;
    bool gso;
    bool gso_doubt; /* refused, and nothing was sent since */
    uint32_t sndbuf_bytes;
    struct udp_lane *lanes;
    uint32_t lane_room;
    uint32_t touched[MRC_IO_BURST_MAX]; /* scratch of one tx call */
    uint16_t next[MRC_IO_BURST_MAX];
    const struct mrc_tx_pkt *list[MRC_IO_BURST_MAX];
    struct udp_msg plan[MRC_IO_BURST_MAX];
    struct mmsghdr msgs[MRC_IO_BURST_MAX];
    struct iovec iov[3 * MRC_IO_BURST_MAX];
    _Alignas(struct cmsghdr) uint8_t control[MRC_IO_BURST_MAX][UDP_CONTROL];
};

/* ---- port ---- */

static bool udp_gso_known(int fd)
{
    int value = 0;
    socklen_t len = sizeof value;
    return getsockopt(fd, IPPROTO_UDP, UDP_SEGMENT, &value, &len) == 0;
}

static int udp_open(struct mrc_io *io, const struct mrc_port_cfg *cfg)
{
    struct mrc_io_udp *u = (struct mrc_io_udp *)io;
    const int err = mrc_rxsock_open(io, &u->rx, cfg, 0);
    if (err < 0)
        return err;
    u->sndbuf_bytes = cfg->sndbuf_bytes != 0 ? cfg->sndbuf_bytes : UDP_SNDBUF;
    u->gso = !cfg->no_gso && udp_gso_known(u->rx.fd);
    if (u->gso)
        io->stats.caps |= MRC_IO_CAP_GSO;
    return 0;
}

static void udp_close(struct mrc_io *io)
{
    struct mrc_io_udp *u = (struct mrc_io_udp *)io;
    mrc_rxsock_close(io, &u->rx);
    free(u->lanes);
}

static size_t udp_rx(struct mrc_io *io, struct mrc_rx_pkt *out, size_t max)
{
    return mrc_rxsock_burst(io, &((struct mrc_io_udp *)io)->rx, 0, out, max);
}

/* ---- lanes ---- */

/* The high half of the EV, or no label at all: the kernel must not invent one (A.12). */
static int udp_lane_label(struct mrc_io *io, int fd, const struct mrc_lane_key *key)
{
    const int off = 0;
    const int on = 1;
    const uint32_t label = key->ev >> 16;
    if (setsockopt(fd, IPPROTO_IPV6, IPV6_AUTOFLOWLABEL, &off, sizeof off) != 0)
        return mrc_io_fail(io, errno, "the kernel insists on its own flow labels");
    if (label == 0)
        return 0;
    struct in6_flowlabel_req req = {
        .flr_label = htonl(label),
        .flr_action = IPV6_FL_A_GET,
        .flr_share = IPV6_FL_S_ANY,
        .flr_flags = IPV6_FL_F_CREATE,
    };
    memcpy(&req.flr_dst, key->dst, 16);
    if (setsockopt(fd, IPPROTO_IPV6, IPV6_FLOWLABEL_MGR, &req, sizeof req) != 0)
        return mrc_io_fail(io, errno,
                           "flow label 0x%05x is not to be had (without CAP_NET_ADMIN the kernel "
                           "leases about 3000 at a time)",
                           (unsigned)label);
    if (setsockopt(fd, IPPROTO_IPV6, IPV6_FLOWINFO_SEND, &on, sizeof on) != 0)
        return mrc_io_fail(io, errno, "flow labels cannot be sent");
    return 0;
}

/* A lane never receives: whatever a stranger sends to its port is refused at once. */
static int udp_lane_deaf(int fd)
{
    struct sock_filter drop = {.code = BPF_RET | BPF_K, .k = 0};
    const struct sock_fprog prog = {.len = 1, .filter = &drop};
    return setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &prog, sizeof prog);
}

static int udp_lane_options(struct mrc_io *io, int fd)
{
    const int on = 1;
    if (udp_lane_deaf(fd) != 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0 ||
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on) != 0 || mrc_sock_own_mtu(fd) != 0)
        return mrc_io_fail(io, errno, "cannot set up a sending socket");
    return 0;
}

static int udp_lane_connect(struct mrc_io *io, int fd, const struct mrc_lane_key *key)
{
    const uint16_t sport = (uint16_t)key->ev;
    struct sockaddr_in6 local = {.sin6_family = AF_INET6, .sin6_port = htons(sport)};
    struct sockaddr_in6 peer = {.sin6_family = AF_INET6, .sin6_port = htons(key->dport)};
    char text[INET6_ADDRSTRLEN];
    memcpy(&local.sin6_addr, key->src, 16);
    memcpy(&peer.sin6_addr, key->dst, 16);
    if (IN6_IS_ADDR_LINKLOCAL(&local.sin6_addr))
        local.sin6_scope_id = key->scope_id;
    if (IN6_IS_ADDR_LINKLOCAL(&peer.sin6_addr))
        peer.sin6_scope_id = key->scope_id;
    if (bind(fd, (const struct sockaddr *)&local, sizeof local) != 0) {
        inet_ntop(AF_INET6, key->src, text, sizeof text);
        return mrc_io_fail(io, errno, "cannot send from [%s]:%u%s", text, (unsigned)sport,
                           errno == EACCES ? " (ports below 1024 need CAP_NET_BIND_SERVICE)" : "");
    }
    peer.sin6_flowinfo = htonl(key->ev >> 16);
    if (connect(fd, (const struct sockaddr *)&peer, sizeof peer) != 0) {
        inet_ntop(AF_INET6, key->dst, text, sizeof text);
        return mrc_io_fail(io, errno, "no way to [%s] from source port %u", text, (unsigned)sport);
    }
    return 0;
}

static bool udp_lanes_grow(struct mrc_io_udp *u)
{
    if (u->lane_room >= u->io.lane_room)
        return true;
    struct udp_lane *lanes = realloc(u->lanes, u->io.lane_room * sizeof *lanes);
    if (lanes == NULL)
        return false;
    u->lanes = lanes;
    u->lane_room = u->io.lane_room;
    return true;
}

static int udp_lane_open(struct mrc_io *io, uint32_t lane)
{
    struct mrc_io_udp *u = (struct mrc_io_udp *)io;
    const struct mrc_lane_key *key = &io->lanes[lane].key;
    if (key->tmpl_len != 0)
        return mrc_io_fail(io, 0, "a udp port cannot send an outer header; use a raw port");
    if ((uint16_t)key->ev == 0 || (uint16_t)key->ev == io->stats.udp_port)
        return mrc_io_fail(io, 0, "EV 0x%08x: source port %u is %s", (unsigned)key->ev,
                           (unsigned)(uint16_t)key->ev,
                           (uint16_t)key->ev == 0 ? "not a port" : "where this port receives");
    if (!udp_lanes_grow(u))
        return mrc_io_fail(io, ENOMEM, "lane %u", (unsigned)lane);
    const int fd = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return mrc_io_fail(io, errno, "cannot open a socket for EV 0x%08x%s", (unsigned)key->ev,
                           errno == EMFILE ? " (one per EV; raise the limit of ulimit -n)" : "");
    int err = udp_lane_options(io, fd);
    if (err == 0)
        err = udp_lane_label(io, fd, key);
    if (err == 0)
        err = udp_lane_connect(io, fd, key);
    if (err < 0) {
        close(fd);
        return err;
    }
    io->stats.sndbuf_bytes = mrc_sock_buffer(fd, false, u->sndbuf_bytes);
    u->lanes[lane] = (struct udp_lane){.fd = fd, .tclass = -1};
    mrc_txq_init(&u->lanes[lane].kept);
    return 0;
}

static void udp_lane_close(struct mrc_io *io, uint32_t lane)
{
    struct udp_lane *l = &((struct mrc_io_udp *)io)->lanes[lane];
    mrc_txq_drop(io, &l->kept, l->kept.count);
    if (l->watched)
        mrc_io_unwatch(io, l->fd);
    close(l->fd);
    l->fd = -1;
}

/* ---- building messages ---- */

/* How many packets from list[0] on make one message: equal class and length, a shorter one ends
 * it, and no more than the sender wants to have in one. */
static struct udp_msg udp_plan(const struct mrc_io_udp *u, size_t at, size_t n)
{
    const struct mrc_tx_pkt *first = u->list[at];
    const uint32_t segment = mrc_tx_udp_len(first) - 8u;
    struct udp_msg m = {.first = (uint16_t)at, .count = 1, .bytes = segment};
    const uint32_t most = first->train != 0 ? first->train : UDP_SEGMENTS_MAX;
    while (u->gso && at + m.count < n && m.count < most) {
        const struct mrc_tx_pkt *pkt = u->list[at + m.count];
        const uint32_t len = mrc_tx_udp_len(pkt) - 8u;
        if (pkt->tclass != first->tclass || len > segment || m.bytes + len > UDP_TRAIN_BYTES)
            break;
        m.count++;
        m.bytes += len;
        if (len < segment)
            break;
    }
    return m;
}

static size_t udp_iovecs(struct iovec *iov, const struct mrc_tx_pkt *const *list, size_t n)
{
    size_t k = 0;
    for (size_t i = 0; i < n; i++) {
        const struct mrc_tx_pkt *pkt = list[i];
        iov[k++] = (struct iovec){(void *)(uintptr_t)pkt->hdr, pkt->hdr_len};
        if (pkt->payload_len > 0)
            iov[k++] = (struct iovec){(void *)(uintptr_t)pkt->payload, pkt->payload_len};
        if (pkt->tail_len > 0)
            iov[k++] = (struct iovec){(void *)(uintptr_t)pkt->tail, pkt->tail_len};
    }
    return k;
}

static uint8_t *udp_control_add(uint8_t *at, int level, int type, const void *value, size_t len)
{
    struct cmsghdr *c = (struct cmsghdr *)(void *)at;
    c->cmsg_level = level;
    c->cmsg_type = type;
    c->cmsg_len = CMSG_LEN(len);
    memcpy(CMSG_DATA(c), value, len);
    return at + CMSG_SPACE(len);
}

/* The class belongs to the socket where it can: with a control message for it the kernel forgets
 * the route it cached and looks it up for each message. The socket follows the majority. */
static bool udp_class_inline(struct udp_lane *l, uint8_t tclass)
{
    if (l->tclass >= 0 && l->trust > 0) {
        l->trust--;
        return true;
    }
    const int value = tclass;
    if (setsockopt(l->fd, IPPROTO_IPV6, IPV6_TCLASS, &value, sizeof value) != 0)
        return true;
    l->tclass = tclass;
    l->trust = UDP_CLASS_TRUST;
    return false;
}

/* Messages for list[0..n). The class of the socket is settled by the first message: changing it
 * later would repaint messages that wait in the same batch. */
static size_t udp_build(struct mrc_io_udp *u, struct udp_lane *l, size_t n)
{
    size_t count = 0;
    size_t iovs = 0;
    for (size_t at = 0; at < n; count++) {
        const struct udp_msg m = udp_plan(u, at, n);
        const struct mrc_tx_pkt *first = u->list[at];
        struct msghdr *h = &u->msgs[count].msg_hdr;
        uint8_t *end = u->control[count];
        bool other = l->tclass != first->tclass;
        if (!other)
            l->trust = UDP_CLASS_TRUST;
        else if (count == 0)
            other = udp_class_inline(l, first->tclass);
        if (m.count > 1) {
            const uint16_t segment = (uint16_t)(mrc_tx_udp_len(first) - 8);
            end = udp_control_add(end, IPPROTO_UDP, UDP_SEGMENT, &segment, sizeof segment);
        }
        if (other) {
            const int value = first->tclass;
            end = udp_control_add(end, IPPROTO_IPV6, IPV6_TCLASS, &value, sizeof value);
        }
        *h = (struct msghdr){.msg_iov = &u->iov[iovs]};
        h->msg_iovlen = udp_iovecs(&u->iov[iovs], &u->list[at], m.count);
        h->msg_controllen = (size_t)(end - u->control[count]);
        h->msg_control = h->msg_controllen > 0 ? u->control[count] : NULL;
        iovs += h->msg_iovlen;
        u->plan[count] = m;
        at += m.count;
    }
    return count;
}

/* ---- sending ---- */

enum udp_verdict { UDP_AGAIN, UDP_FULL, UDP_SKIP, UDP_DEAD, UDP_REBUILD };

/* A train was refused: it is sent packet by packet from now on, unless already the first of these
 * turns out to be too long for the path, of which the kernel says nothing else of a train. */
static void udp_gso_doubt(struct mrc_io_udp *u, bool refused)
{
    struct mrc_port_stats *s = &u->io.stats;
    if (u->gso_doubt == refused)
        return;
    u->gso_doubt = refused;
    u->gso = !refused;
    s->gso_refused += refused ? 1 : (uint64_t)-1;
    s->caps ^= (uint32_t)MRC_IO_CAP_GSO;
}

static enum udp_verdict udp_judge(struct mrc_io_udp *u, const struct udp_msg *m, int error,
                                  bool *retried)
{
    struct mrc_io *io = &u->io;
    switch (error) {
    case EAGAIN: io->stats.tx_blocked++; return UDP_FULL;
    case ENOBUFS:
    case ENOMEM: /* the socket has room: EPOLLOUT would not wait */
        io->stats.tx_blocked++;
        io->retry = true;
        return UDP_FULL;
    case EINTR: return UDP_AGAIN;
    case EMSGSIZE: /* perhaps this one is too long: a shorter one may pass, and a train of them */
        udp_gso_doubt(u, false);
        /* fall through */
    case EACCES:
    case EPROTO:
    case ECONNREFUSED: /* ICMPv6 about an earlier packet, whoever sent it; this one is not tried */
        io->stats.tx_refused++;
        if (!*retried) {
            *retried = true;
            return UDP_AGAIN;
        }
        return UDP_SKIP;
    case EIO:
    case EINVAL: /* accepted at set-up, refused by the device on the way (no checksum offload) */
        if (m->count == 1)
            return UDP_DEAD;
        udp_gso_doubt(u, true);
        return UDP_REBUILD;
    default: /* ENETUNREACH, EHOSTUNREACH, ENETDOWN, EPERM, ...: about the lane */ return UDP_DEAD;
    }
}

static void udp_lost(struct mrc_io *io, uint32_t lane, size_t packets, int error)
{
    io->stats.tx_errors += packets;
    io->stats.tx_errno = (uint8_t)error;
    mrc_io_lane_failed(io, lane, error);
}

static void udp_count(struct mrc_io *io, const struct udp_msg *plan, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        io->stats.tx_packets += plan[i].count;
        io->stats.tx_bytes += plan[i].bytes;
    }
    io->stats.tx_trains += n;
}

/* Sends list[0..n). Returns how many packets are done with, sent or refused; the others must
 * wait. */
static size_t udp_send(struct mrc_io_udp *u, uint32_t lane, size_t n)
{
    struct mrc_io *io = &u->io;
    struct udp_lane *l = &u->lanes[lane];
    size_t count = udp_build(u, l, n);
    size_t at = 0;
    bool retried = false;
    while (at < count) {
        io->stats.tx_calls++;
        const int sent = io->sys_sendmmsg(l->fd, &u->msgs[at], (unsigned)(count - at), 0);
        if (sent > 0) {
            udp_count(io, &u->plan[at], (size_t)sent);
            u->gso_doubt = false;
            at += (size_t)sent; /* fewer than asked is no error: the next call tells why */
            retried = false;
            continue;
        }
        const int error = sent < 0 ? errno : EAGAIN;
        const size_t done = u->plan[at].first;
        switch (udp_judge(u, &u->plan[at], error, &retried)) {
        case UDP_AGAIN: break;
        case UDP_FULL: return done;
        case UDP_SKIP:
            udp_lost(io, lane, u->plan[at].count, error);
            retried = false;
            at++;
            break;
        case UDP_DEAD: udp_lost(io, lane, n - done, error); return n;
        case UDP_REBUILD: /* the rest, packet by packet */
            memmove(u->list, u->list + done, (n - done) * sizeof u->list[0]);
            return done + udp_send(u, lane, n - done);
        }
    }
    return n;
}

static void udp_wait(struct mrc_io *io, struct udp_lane *l, uint32_t lane)
{
    if (l->watched || io->retry)
        return;
    if (mrc_io_watch(io, l->fd, EPOLLOUT, lane) == 0)
        l->watched = true;
    else
        io->retry = true;
}

/* Packets of one lane, in the chain that begins with this one. */
static void udp_tx_chain(struct mrc_io_udp *u, uint32_t lane, const struct mrc_tx_pkt *const *pkts,
                         uint16_t first)
{
    struct mrc_io *io = &u->io;
    struct udp_lane *l = &u->lanes[lane];
    size_t count = 0;
    for (uint16_t i = first; i != UINT16_MAX; i = u->next[i])
        u->list[count++] = pkts[i];
    size_t done = l->kept.count == 0 ? udp_send(u, lane, count) : 0;
    if (done == count)
        return;
    /* udp_send may have shifted the list, so walk the chain again. */
    uint16_t i = first;
    for (; done > 0; done--)
        i = u->next[i];
    for (; i != UINT16_MAX; i = u->next[i])
        mrc_txq_push(io, &l->kept, pkts[i]);
    if (l->kept.count > 0)
        udp_wait(io, l, lane);
}

/* Whoever limits the trains wants no lumps on a path: then the order in which paths were chosen is
 * worth a call for each change of the lane. */
static bool udp_ordered(const struct mrc_tx_pkt *const *pkts, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (pkts[i]->train != 0)
            return true;
    }
    return false;
}

static void udp_tx_ordered(struct mrc_io_udp *u, const struct mrc_tx_pkt *const *pkts, size_t n)
{
    for (size_t at = 0, end; at < n; at = end) {
        for (end = at + 1; end < n && pkts[end]->lane == pkts[at]->lane; end++)
            u->next[end - 1] = (uint16_t)end;
        u->next[end - 1] = UINT16_MAX;
        udp_tx_chain(u, pkts[at]->lane, pkts, (uint16_t)at);
    }
}

static void udp_tx(struct mrc_io *io, const struct mrc_tx_pkt *const *pkts, size_t n)
{
    struct mrc_io_udp *u = (struct mrc_io_udp *)io;
    if (udp_ordered(pkts, n)) {
        udp_tx_ordered(u, pkts, n);
        return;
    }
    const size_t lanes = mrc_io_group(io, pkts, n, u->touched, u->next);
    for (size_t k = 0; k < lanes; k++)
        udp_tx_chain(u, u->touched[k], pkts, io->lanes[u->touched[k]].first);
}

static void udp_resume_lane(struct mrc_io_udp *u, uint32_t lane)
{
    struct mrc_io *io = &u->io;
    struct udp_lane *l = &u->lanes[lane];
    while (l->kept.count > 0) {
        const size_t n = mrc_txq_peek(io, &l->kept, u->list, MRC_IO_BURST_MAX);
        const size_t done = udp_send(u, lane, n);
        mrc_txq_drop(io, &l->kept, done);
        if (done < n) {
            udp_wait(io, l, lane);
            return;
        }
    }
    if (l->watched) {
        mrc_io_unwatch(io, l->fd);
        l->watched = false;
    }
}

static void udp_resume(struct mrc_io *io, uint32_t lane)
{
    const uint32_t first = lane == UINT32_MAX ? 0 : lane;
    const uint32_t end = lane == UINT32_MAX ? io->lane_count : lane + 1;
    for (uint32_t i = first; i < end; i++) {
        if (io->lanes[i].refs != 0)
            udp_resume_lane((struct mrc_io_udp *)io, i);
    }
}

static void udp_forget(struct mrc_io *io, const uint8_t *addr, uint64_t len)
{
    struct mrc_io_udp *u = (struct mrc_io_udp *)io;
    for (uint32_t i = 0; i < io->lane_count; i++) {
        if (io->lanes[i].refs != 0)
            mrc_txq_forget(io, &u->lanes[i].kept, addr, len);
    }
}

static uint32_t udp_lane_room(struct mrc_io *io, uint32_t lane)
{
    return mrc_sock_room(((struct mrc_io_udp *)io)->lanes[lane].fd, UDP_HEADERS);
}

const struct mrc_io_ops mrc_io_udp_ops = {
    .name = "udp",
    .state_bytes = sizeof(struct mrc_io_udp),
    .open = udp_open,
    .close = udp_close,
    .lane_open = udp_lane_open,
    .lane_close = udp_lane_close,
    .rx = udp_rx,
    .tx = udp_tx,
    .resume = udp_resume,
    .forget = udp_forget,
    .lane_room = udp_lane_room,
};
