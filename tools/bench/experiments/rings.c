/* SPDX-License-Identifier: BSD-2-Clause */
/* Past the socket: whole frames, built here, handed to the device. The receiver is bare.c's.
 *
 *   rings can call|ring|xdp         why not; nothing when it can
 *   rings send ADDR PORT -f FROM -d DEVICE -e MAC [-m call|ring|xdp] [-t SECONDS] [-s BYTES]
 *                        [-n SOURCE-PORTS] [-b BATCH] [-k SEGMENTS] [-p SPORT]
 *
 *   call  AF_PACKET, sendmmsg past the queueing discipline
 *   ring  AF_PACKET's ring of frames in memory that is shared with the kernel
 *   xdp   AF_XDP, copy mode, frames of two descriptors; single datagrams only
 *
 * A batch is one system call. Data are copied into shared memory here: they never lie there by
 * themselves. Nobody computes checksums, as with the sockets: the device is told to. Prints one
 * JSON object. */
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/if_xdp.h>
#include <linux/virtio_net.h>
#include <net/if.h>
#include <poll.h>
#include <sys/mman.h>

#include "../loop.h"
#include "xsk.h"

enum {
    IPV6_BYTES = 40,
    UDP_BYTES = 8,
    UDP_AT = ETH_HLEN + IPV6_BYTES,
    HEADERS = UDP_AT + UDP_BYTES,
    GSO_UDP = 5, /* VIRTIO_NET_HDR_GSO_UDP_L4, which older headers lack */
    RING_BYTES = 8 << 20,
    BLOCK_BYTES = 1 << 16,
    FRAME_BYTES = 1 << 13, /* of one datagram; a train has a block */
};

enum way { CALL, RING, XDP, WAYS };
static const char *const names[WAYS] = {"call", "ring", "xdp"};

struct options {
    struct loop_options loop;
    enum way way;
    struct in6_addr from;
    struct in6_addr to;
    uint16_t port;
    const char *device;
    uint8_t mac[ETH_ALEN];
};

struct frame {
    struct virtio_net_hdr vnet;
    uint8_t headers[HEADERS];
} __attribute__((packed));

static uint8_t message[LOOP_MESSAGE_MAX];

static uint16_t rings_sum(const uint8_t *p, size_t n, uint32_t sum)
{
    for (size_t i = 0; i < n; i += 2)
        sum += (uint32_t)(p[i] << 8 | p[i + 1]);
    while (sum >> 16 != 0)
        sum = (sum & 0xffff) + (sum >> 16);
    return (uint16_t)sum;
}

/* What precedes the data of a frame with this source port. The checksum is begun: the device, or
 * whoever takes the frame, is to end it. */
static void rings_frame(struct frame *f, const struct options *o, int sport)
{
    const size_t data = (size_t)(o->loop.size_bytes * o->loop.segments);
    const uint16_t udp_len = (uint16_t)(UDP_BYTES + data);
    uint8_t *ip = f->headers + ETH_HLEN;
    memset(f, 0, sizeof *f);
    memcpy(f->headers, o->mac, ETH_ALEN);
    f->headers[6] = 0x02; /* a local address; nobody asks for it */
    f->headers[12] = ETH_P_IPV6 >> 8;
    f->headers[13] = ETH_P_IPV6 & 255;
    ip[0] = 0x60;
    ip[4] = (uint8_t)(udp_len >> 8);
    ip[5] = (uint8_t)udp_len;
    ip[6] = IPPROTO_UDP;
    ip[7] = 64;
    memcpy(ip + 8, &o->from, sizeof o->from);
    memcpy(ip + 24, &o->to, sizeof o->to);
    const uint16_t sum = rings_sum(ip + 8, 32, (uint32_t)udp_len + IPPROTO_UDP);
    const uint16_t udp[4] = {htons((uint16_t)sport), htons(o->port), htons(udp_len), htons(sum)};
    memcpy(f->headers + UDP_AT, udp, sizeof udp);
    f->vnet.flags = VIRTIO_NET_HDR_F_NEEDS_CSUM;
    f->vnet.csum_start = UDP_AT;
    f->vnet.csum_offset = 6;
    f->vnet.hdr_len = HEADERS;
    if (o->loop.segments > 1) {
        f->vnet.gso_type = GSO_UDP;
        f->vnet.gso_size = (uint16_t)o->loop.size_bytes;
    }
}

static int rings_packet(const struct options *o)
{
    int fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0); /* 0: it receives nothing */
    const struct sockaddr_ll at = {.sll_family = AF_PACKET,
                                   .sll_protocol = htons(ETH_P_IPV6),
                                   .sll_ifindex = (int)if_nametoindex(o->device)};
    if (fd < 0)
        loop_die("packet socket");
    loop_set(fd, SOL_PACKET, PACKET_QDISC_BYPASS, 1, "PACKET_QDISC_BYPASS");
    loop_set(fd, SOL_PACKET, PACKET_VNET_HDR, 1, "PACKET_VNET_HDR");
    loop_buffer(fd, SO_SNDBUFFORCE, SO_SNDBUF, LOOP_SNDBUF_BYTES);
    if (at.sll_ifindex == 0)
        loop_die("interface");
    if (bind(fd, (const struct sockaddr *)&at, sizeof at) != 0)
        loop_die("bind");
    return fd;
}

static void rings_done(struct counts *c, const struct options *o, int n)
{
    if (n < 0 && errno != ENOBUFS && errno != EAGAIN && errno != EINTR)
        loop_die("send");
    c->calls++;
    c->refused += n < 0;
    c->packets += n < 0 ? 0 : (uint64_t)(n * o->loop.segments);
    c->bytes += n < 0 ? 0 : (uint64_t)(n * o->loop.segments * o->loop.size_bytes);
}

static void rings_call(const struct options *o, struct frame *frames, struct counts *c)
{
    const int fd = rings_packet(o);
    struct mmsghdr msgs[LOOP_BATCH_MAX] = {0};
    struct iovec iov[LOOP_BATCH_MAX][2];
    const size_t data = (size_t)(o->loop.size_bytes * o->loop.segments);
    int lane = 0;
    const double start = loop_now();
    do {
        for (int i = 0; i < o->loop.batch; i++) {
            iov[i][0] = (struct iovec){&frames[lane], sizeof frames[lane]};
            iov[i][1] = (struct iovec){message, data};
            msgs[i].msg_hdr = (struct msghdr){.msg_iov = iov[i], .msg_iovlen = 2};
            lane = lane + 1 == o->loop.sockets ? 0 : lane + 1;
        }
        rings_done(c, o, sendmmsg(fd, msgs, (unsigned)o->loop.batch, 0));
    } while ((c->calls & 15) != 0 || loop_now() < start + o->loop.seconds);
    c->seconds = loop_now() - start;
}

static void rings_ring(const struct options *o, struct frame *frames, struct counts *c)
{
    const int fd = rings_packet(o);
    const unsigned each = o->loop.segments > 1 ? BLOCK_BYTES : FRAME_BYTES;
    const struct tpacket_req req = {.tp_block_size = BLOCK_BYTES,
                                    .tp_block_nr = RING_BYTES / BLOCK_BYTES,
                                    .tp_frame_size = each,
                                    .tp_frame_nr = RING_BYTES / each};
    const size_t data = (size_t)(o->loop.size_bytes * o->loop.segments);
    unsigned at = 0;
    int lane = 0;
    loop_set(fd, SOL_PACKET, PACKET_VERSION, TPACKET_V2, "TPACKET_V2");
    if (setsockopt(fd, SOL_PACKET, PACKET_TX_RING, &req, sizeof req) != 0)
        loop_die("PACKET_TX_RING");
    uint8_t *ring = mmap(NULL, RING_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (ring == MAP_FAILED)
        loop_die("mmap of the ring");
    const double start = loop_now();
    do {
        int n = 0;
        for (; n < o->loop.batch; n++) {
            struct tpacket2_hdr *h = (void *)(ring + (size_t)at * each);
            if (__atomic_load_n(&h->tp_status, __ATOMIC_ACQUIRE) != TP_STATUS_AVAILABLE)
                break;
            uint8_t *p = (uint8_t *)(h + 1); /* 32 bytes: TPACKET_ALIGN adds none */
            memcpy(p, &frames[lane], sizeof frames[lane]);
            memcpy(p + sizeof frames[lane], message, data);
            h->tp_len = (uint32_t)(sizeof frames[lane] + data);
            __atomic_store_n(&h->tp_status, TP_STATUS_SEND_REQUEST, __ATOMIC_RELEASE);
            at = at + 1 == req.tp_frame_nr ? 0 : at + 1;
            lane = lane + 1 == o->loop.sockets ? 0 : lane + 1;
        }
        struct pollfd p = {fd, POLLOUT, 0};
        if (n == 0 && poll(&p, 1, LOOP_IDLE_MS) < 0)
            loop_die("poll");
        const ssize_t sent = send(fd, NULL, 0, MSG_DONTWAIT);
        rings_done(c, o, sent < 0 && errno != EAGAIN && errno != ENOBUFS ? -1 : n);
    } while ((c->calls & 15) != 0 || loop_now() < start + o->loop.seconds);
    c->seconds = loop_now() - start;
}

static void rings_xdp(const struct options *o, struct frame *frames, struct counts *c)
{
    struct xsk x;
    int lane = 0;
    if (!xsk_open(&x) || !xsk_bind(&x, if_nametoindex(o->device)))
        loop_die("AF_XDP");
    const double start = loop_now();
    do {
        int n = 0;
        xsk_reap(&x);
        for (; n < o->loop.batch; n++) {
            uint8_t *head;
            uint8_t *tail;
            const size_t whole = HEADERS + (size_t)o->loop.size_bytes;
            if (!xsk_next(&x, whole, UDP_AT, &head, &tail))
                break;
            const size_t first = whole < XSK_HEAD_BYTES ? whole : XSK_HEAD_BYTES;
            memcpy(head, frames[lane].headers, HEADERS);
            memcpy(head + HEADERS, message, first - HEADERS);
            memcpy(tail, message, whole - first);
            lane = lane + 1 == o->loop.sockets ? 0 : lane + 1;
        }
        const ssize_t kicked = xsk_kick(&x);
        rings_done(c, o,
                   kicked < 0 && errno != EAGAIN && errno != EBUSY && errno != ENOBUFS ? -1 : n);
    } while ((c->calls & 15) != 0 || loop_now() < start + o->loop.seconds);
    c->seconds = loop_now() - start;
}

static const char *rings_why_not(enum way way)
{
    struct xsk x;
    if (way == XDP)
        return xsk_open(&x) ? "" : "this kernel or user has no AF_XDP that completes checksums";
    return socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0) < 0 ? "packet sockets need CAP_NET_RAW"
                                                             : "";
}

static enum way rings_way(const char *name)
{
    for (enum way w = CALL; w < WAYS; w++)
        if (strcmp(name, names[w]) == 0)
            return w;
    fprintf(stderr, "rings: %s: call, ring or xdp\n", name);
    exit(1);
}

static void rings_mac(const char *text, uint8_t mac[ETH_ALEN])
{
    if (sscanf(text, "%hhx:%hhx:%hhx:%hhx:%hhx:%hhx", &mac[0], &mac[1], &mac[2], &mac[3], &mac[4],
               &mac[5]) == ETH_ALEN)
        return;
    fprintf(stderr, "rings: %s: no MAC address\n", text);
    exit(1);
}

int main(int argc, char **argv)
{
    static struct frame frames[LOOP_SOCKETS_MAX];
    static void (*const send_by[WAYS])(const struct options *, struct frame *,
                                       struct counts *) = {rings_call, rings_ring, rings_xdp};
    struct options o = {.loop = LOOP_DEFAULTS};
    struct counts c = {0};
    int opt;
    if (argc == 3 && strcmp(argv[1], "can") == 0) {
        puts(rings_why_not(rings_way(argv[2])));
        return 0;
    }
    if (argc < 4 || strcmp(argv[1], "send") != 0 || inet_pton(AF_INET6, argv[2], &o.to) != 1) {
        fputs("usage: rings send IPV6-ADDRESS PORT options, see the top of rings.c\n", stderr);
        return 1;
    }
    o.port = (uint16_t)loop_number(argv[3], 1, 65535);
    while ((opt = getopt(argc - 3, argv + 3, LOOP_LETTERS "f:d:e:m:")) != -1) {
        switch (opt) {
        case 'd': o.device = optarg; break;
        case 'e': rings_mac(optarg, o.mac); break;
        case 'm': o.way = rings_way(optarg); break;
        case 'f':
            if (inet_pton(AF_INET6, optarg, &o.from) != 1)
                return 1;
            break;
        default:
            if (!loop_option(&o.loop, opt, optarg))
                return 1;
        }
    }
    loop_check(&o.loop);
    if (o.device == NULL || (o.way == XDP && o.loop.segments > 1) ||
        (o.loop.segments == 1 && o.loop.size_bytes > FRAME_BYTES - 256)) {
        fputs("rings: no device, or more than the way can carry\n", stderr);
        return 1;
    }
    for (int i = 0; i < o.loop.sockets; i++)
        rings_frame(&frames[i], &o, o.loop.sport + i);
    send_by[o.way](&o, frames, &c);
    loop_print(&c);
    return 0;
}
