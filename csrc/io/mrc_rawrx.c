/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "mrc_rawrx.h"
#include "mrc_rxsock.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <unistd.h>

enum {
    RAWRX_RCVBUF = 8 << 20,
    RAWRX_CODE_MAX = 512, /* instructions of a filter */
    RAWRX_CODE_TAIL = 16, /* of them after the interfaces */
    RAWRX_SRH_TYPE = 4,   /* RFC 8754 */
    RAWRX_ECN_CE = 3,
};

/* ---- which packets wake us ---- */

static bool rawrx_seg6_enabled(const char *name)
{
    char path[64 + IF_NAMESIZE];
    char c = '0';
    (void)snprintf(path, sizeof path, "/proc/sys/net/ipv6/conf/%s/seg6_enabled", name);
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    if (read(fd, &c, 1) != 1)
        c = '0';
    close(fd);
    return c != '0';
}

/* Where seg6_enabled is set, the kernel itself removes a used-up SRH with the header before it, and
 * the UDP socket gets the inside: what comes by those interfaces must not arrive here as well. */
static size_t rawrx_filter_seg6(struct sock_filter *code, size_t room)
{
    size_t n = 0;
    if (!rawrx_seg6_enabled("all")) /* the kernel wants both */
        return 0;
    struct if_nameindex *list = if_nameindex();
    if (list == NULL)
        return 0;
    code[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
                                             (uint32_t)(SKF_AD_OFF + SKF_AD_IFINDEX));
    for (const struct if_nameindex *i = list; i->if_index != 0 && n + 2 <= room; i++) {
        if (!rawrx_seg6_enabled(i->if_name))
            continue;
        code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, i->if_index, 0, 1);
        code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, 0);
    }
    if_freenameindex(list);
    return n;
}

/* Only inner UDP packets to our port: other programs' tunnels share the protocols. Of routing
 * headers only SRHs: one of another type, used up, is passed over by the kernel (RFC 8200), which
 * then finds protocol 41. All else is checked, and counted, when the packet is here. Out of bounds
 * is a no. */
static int rawrx_filter(int fd, uint8_t protocol, uint16_t dport)
{
    struct sock_filter code[RAWRX_CODE_MAX];
    size_t n = 0;
    if (protocol == MRC_NH_ROUTING) { /* X: where the inner header begins */
        const struct sock_filter skip[] = {
            BPF_STMT(BPF_LD | BPF_B | BPF_ABS, 2),
            BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, RAWRX_SRH_TYPE, 1, 0),
            BPF_STMT(BPF_RET | BPF_K, 0),
            BPF_STMT(BPF_LD | BPF_B | BPF_ABS, 1),
            BPF_STMT(BPF_ALU | BPF_LSH | BPF_K, 3),
            BPF_STMT(BPF_ALU | BPF_ADD | BPF_K, 8),
            BPF_STMT(BPF_MISC | BPF_TAX, 0),
        };
        n = rawrx_filter_seg6(code, RAWRX_CODE_MAX - RAWRX_CODE_TAIL);
        memcpy(code + n, skip, sizeof skip);
        n += sizeof skip / sizeof skip[0];
    } else {
        code[n++] = (struct sock_filter)BPF_STMT(BPF_LDX | BPF_W | BPF_IMM, 0);
    }
    const struct sock_filter inner[] = {
        BPF_STMT(BPF_LD | BPF_B | BPF_IND, 6),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, MRC_NH_UDP, 0, 3),
        BPF_STMT(BPF_LD | BPF_H | BPF_IND, MRC_IPV6_LEN + 2),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, dport, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, UINT32_MAX),
        BPF_STMT(BPF_RET | BPF_K, 0),
    };
    memcpy(code + n, inner, sizeof inner);
    n += sizeof inner / sizeof inner[0];
    const struct sock_fprog prog = {.len = (unsigned short)n, .filter = code};
    return setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &prog, sizeof prog);
}

/* ---- opening ---- */

int mrc_raw_socket(struct mrc_io *io, int protocol)
{
    const int fd = socket(AF_INET6, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, protocol);
    if (fd < 0 && (errno == EPERM || errno == EACCES))
        return mrc_io_fail(io, errno, "raw ports need CAP_NET_RAW");
    return fd < 0 ? mrc_io_fail(io, errno, "cannot open a raw IPv6 socket") : fd;
}

void mrc_rawrx_init(struct mrc_rawrx *x)
{
    x->sockets[0] = (struct mrc_rawrx_socket){.fd = -1, .protocol = MRC_NH_IPV6};
    x->sockets[1] = (struct mrc_rawrx_socket){.fd = -1, .protocol = MRC_NH_ROUTING};
    for (uint32_t i = 0; i < MRC_RAWRX_MSGS; i++) {
        x->iov[i] = (struct iovec){x->bytes[i], MRC_RAWRX_BYTES};
        x->msgs[i].msg_hdr = (struct msghdr){.msg_iov = &x->iov[i], .msg_iovlen = 1};
        x->msgs[i].msg_hdr.msg_control = x->control[i];
    }
}

static int rawrx_socket(struct mrc_io *io, struct mrc_rawrx_socket *s,
                        const struct mrc_port_cfg *cfg, uint32_t n)
{
    const int on = 1;
    s->fd = mrc_raw_socket(io, s->protocol);
    if (s->fd < 0)
        return s->fd;
    if (setsockopt(s->fd, IPPROTO_IPV6, IPV6_RECVTCLASS, &on, sizeof on) != 0)
        return mrc_io_fail(io, errno, "the kernel does not tell the outer traffic class");
    if (rawrx_filter(s->fd, s->protocol, io->stats.udp_port) != 0)
        return mrc_io_fail(io, errno, "cannot filter protocol %u", (unsigned)s->protocol);
    (void)setsockopt(s->fd, SOL_SOCKET, SO_RXQ_OVFL, &on, sizeof on);
    const uint32_t want = cfg->rcvbuf_bytes != 0 ? cfg->rcvbuf_bytes : RAWRX_RCVBUF;
    io->stats.rcvbuf_bytes = mrc_sock_buffer(s->fd, true, want);
    const int err = mrc_io_watch(io, s->fd, EPOLLIN, MRC_IO_RX_TAG + n);
    return err < 0 ? mrc_io_fail(io, -err, "cannot watch the raw socket") : 0;
}

int mrc_rawrx_open(struct mrc_io *io, struct mrc_rawrx *x, const struct mrc_port_cfg *cfg,
                   uint32_t n)
{
    int err = 0;
    for (uint32_t i = 0; i < MRC_RAWRX_SOCKETS && err == 0; i++)
        err = rawrx_socket(io, &x->sockets[i], cfg, n + i);
    return err;
}

void mrc_rawrx_close(struct mrc_io *io, struct mrc_rawrx *x)
{
    for (uint32_t i = 0; i < MRC_RAWRX_SOCKETS; i++) {
        struct mrc_rawrx_socket *s = &x->sockets[i];
        if (s->fd < 0)
            continue;
        mrc_io_unwatch(io, s->fd);
        close(s->fd);
        s->fd = -1;
    }
}

/* ---- packets ---- */

/* Length of a used-up SRH in front of IPv6, 0: it is none (A.13.2, RFC 8754). Its entries are
 * history: nothing of them is looked at but that they are there. */
static uint32_t rawrx_srh_len(const uint8_t *p, uint32_t len)
{
    if (len < MRC_SRH_LEN || p[0] != MRC_NH_IPV6 || p[2] != RAWRX_SRH_TYPE)
        return 0;
    const uint32_t ext = p[1]; /* in units of 8 bytes, TLVs after the entries included */
    const uint32_t left = p[3];
    const uint32_t last = p[4];
    if (left != 0 || ext < 2 * (last + 1) || len < MRC_SRH_LEN + 8 * ext)
        return 0;
    return MRC_SRH_LEN + 8 * ext;
}

/* A trimmed packet may be shorter than its length fields say (A.13.6): len is what is there,
 * udp_len what was sent. */
bool mrc_rawrx_parse(const struct mrc_io *io, uint8_t protocol, const uint8_t *p, uint32_t len,
                     struct mrc_rx_pkt *out)
{
    if (protocol == MRC_NH_ROUTING) {
        const uint32_t srh = rawrx_srh_len(p, len);
        if (srh == 0)
            return false;
        p += srh;
        len -= srh;
    }
    if (len < MRC_IPV6_LEN + MRC_UDP_LEN || p[0] >> 4 != 6 || p[6] != MRC_NH_UDP)
        return false;
    const uint8_t *udp = p + MRC_IPV6_LEN;
    const uint16_t udp_len = mrc_get16(udp + 4);
    if (udp_len < MRC_UDP_LEN || mrc_get16(udp + 2) != io->stats.udp_port)
        return false;
    static const uint8_t any[16];
    if (memcmp(io->addr, any, 16) != 0 && memcmp(io->addr, p + 24, 16) != 0)
        return false; /* bound to another address than this packet's */
    memset(out, 0, sizeof *out);
    const uint32_t word = mrc_get32(p);
    out->tclass = (uint8_t)(word >> 20);
    out->flow_label = word & 0xFFFFF;
    memcpy(out->src, p + 8, 16);
    memcpy(out->dst, p + 24, 16);
    out->sport = mrc_get16(udp);
    out->dport = io->stats.udp_port;
    out->udp_len = udp_len;
    out->bytes = udp + MRC_UDP_LEN;
    out->len = mrc_min32(len - MRC_IPV6_LEN - MRC_UDP_LEN, udp_len - (uint32_t)MRC_UDP_LEN);
    out->port = io->index;
    return true;
}

static uint8_t rawrx_outer_class(struct mrc_io *io, struct mrc_rawrx_socket *s, struct msghdr *h)
{
    uint8_t outer = 0;
    for (struct cmsghdr *c = CMSG_FIRSTHDR(h); c != NULL; c = CMSG_NXTHDR(h, c)) {
        if (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_TCLASS) {
            int tclass;
            memcpy(&tclass, CMSG_DATA(c), sizeof tclass);
            outer = (uint8_t)tclass;
        } else if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SO_RXQ_OVFL) {
            uint32_t drops;
            memcpy(&drops, CMSG_DATA(c), sizeof drops);
            io->stats.rx_socket_drops += (uint32_t)(drops - s->drops);
            s->drops = drops;
        }
    }
    return outer;
}

/* What switches wrote into the outer header counts: CE (RFC 6040), and the class of trimmed
 * packets, since a switch sees no header but the outer one. */
static void rawrx_outer_merge(const struct mrc_io *io, uint8_t outer, struct mrc_rx_pkt *pkt)
{
    const uint8_t dscp = outer >> 2;
    pkt->outer_ce = (outer & 3) == RAWRX_ECN_CE;
    if (dscp != 0 && (dscp == io->dscp_trimmed[0] || dscp == io->dscp_trimmed[1]))
        pkt->tclass = (uint8_t)(dscp << 2 | (pkt->tclass & 3));
}

/* One call into slots from *used on; clears bit n of io->rx_ready when that was all. */
static size_t rawrx_read(struct mrc_io *io, struct mrc_rawrx *x, uint32_t which, uint32_t n,
                         size_t *used, struct mrc_rx_pkt *out, size_t max)
{
    struct mrc_rawrx_socket *s = &x->sockets[which];
    struct mmsghdr *msgs = &x->msgs[*used];
    const size_t room = mrc_min32((uint32_t)max, (uint32_t)(MRC_RAWRX_MSGS - *used));
    if (room == 0)
        return 0;
    for (size_t i = 0; i < room; i++)
        msgs[i].msg_hdr.msg_controllen = MRC_RAWRX_CONTROL;
    io->stats.rx_calls++;
    const int count = recvmmsg(s->fd, msgs, (unsigned)room, 0, NULL);
    if (count < (int)room)
        io->rx_ready &= ~(1u << n);
    size_t got = 0;
    for (int i = 0; i < count; i++) {
        struct msghdr *h = &msgs[i].msg_hdr;
        const uint8_t outer = rawrx_outer_class(io, s, h);
        if ((h->msg_flags & MSG_TRUNC) != 0 ||
            !mrc_rawrx_parse(io, s->protocol, x->bytes[*used + (size_t)i], msgs[i].msg_len,
                             &out[got])) {
            io->stats.rx_malformed++;
            continue;
        }
        rawrx_outer_merge(io, outer, &out[got]);
        io->stats.rx_bytes += out[got].len;
        got++;
    }
    *used += count > 0 ? (size_t)count : 0;
    io->stats.rx_packets += got;
    return got;
}

size_t mrc_rawrx_burst(struct mrc_io *io, struct mrc_rawrx *x, uint32_t n, struct mrc_rx_pkt *out,
                       size_t max)
{
    size_t used = 0;
    size_t got = 0;
    if (max == 0) /* no turn lost */
        return 0;
    x->turn++;
    for (uint32_t i = 0; i < MRC_RAWRX_SOCKETS; i++) {
        const uint32_t which = (x->turn + i) % MRC_RAWRX_SOCKETS;
        if ((io->rx_ready >> (n + which) & 1u) != 0)
            got += rawrx_read(io, x, which, n + which, &used, out + got, max - got);
    }
    return got;
}
