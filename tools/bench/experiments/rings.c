/* SPDX-License-Identifier: BSD-2-Clause */
/* Past the socket: whole frames, built here, handed to the device. The receiver is bare.c's.
 *
 *   rings can call|ring|xdp         why not; nothing when it can
 *   rings send ADDR PORT -f FROM -r DEVICE/MAC[/OUTER],... [-m call|ring|xdp] [-t SECONDS] [-s
 * BYTES]
 *                        [-n SOURCE-PORTS] [-b BATCH] [-k SEGMENTS] [-p SPORT]
 *
 *   call  AF_PACKET, sendmmsg past the queueing discipline
 *   ring  AF_PACKET's ring of frames in memory that is shared with the kernel
 *   xdp   AF_XDP, copy mode, frames of two descriptors; single datagrams only
 *
 * Source port i takes road i: a device, the next hop, and the address of an outer IPv6 header if
 * there is to be one; `call` may have several roads. A batch is one system call. Data are copied
 * into shared memory here: they never lie there by themselves. Nobody computes checksums, as with
 * the sockets: the device is told to. Prints one JSON object. */
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/if_xdp.h>
#include <linux/virtio_net.h>
#include <net/if.h>
#include <poll.h>

#include "../loop.h"
#include "xsk.h"

enum {
    IPV6_BYTES = 40,
    UDP_BYTES = 8,
    UDP_AT = ETH_HLEN + IPV6_BYTES,
    HEADERS = UDP_AT + UDP_BYTES,
    HEADERS_MAX = HEADERS + IPV6_BYTES,
    GSO_UDP = 5, /* VIRTIO_NET_HDR_GSO_UDP_L4, which older headers lack */
    RING_BYTES = 8 << 20,
    BLOCK_BYTES = 1 << 16,
    FRAME_BYTES = 1 << 13, /* of one datagram; a train has a block */
};

enum way { CALL, RING, XDP, WAYS };
static const char *const names[WAYS] = {"call", "ring", "xdp"};

struct road {
    int ifindex;
    uint8_t mac[ETH_ALEN];
    bool wrapped;
    struct in6_addr outer;
};

struct options {
    struct loop_options loop;
    enum way way;
    struct in6_addr from;
    struct in6_addr to;
    uint16_t port;
    int roads;
    struct road roads_of[LOOP_SOCKETS_MAX];
};

struct frame {
    struct sockaddr_ll to;
    size_t len; /* of headers */
    struct {
        struct virtio_net_hdr vnet;
        uint8_t headers[HEADERS_MAX];
    } __attribute__((packed)) head;
};

static uint8_t message[LOOP_MESSAGE_MAX];

static uint16_t rings_sum(const uint8_t *p, size_t n, uint32_t sum)
{
    for (size_t i = 0; i < n; i += 2)
        sum += (uint32_t)(p[i] << 8 | p[i + 1]);
    while (sum >> 16 != 0)
        sum = (sum & 0xffff) + (sum >> 16);
    return (uint16_t)sum;
}

static uint8_t *rings_ip(uint8_t *at, size_t len, uint8_t next, const struct in6_addr *from,
                         const struct in6_addr *to)
{
    at[0] = 0x60;
    at[4] = (uint8_t)(len >> 8);
    at[5] = (uint8_t)len;
    at[6] = next;
    at[7] = 64;
    memcpy(at + 8, from, sizeof *from);
    memcpy(at + 24, to, sizeof *to);
    return at + IPV6_BYTES;
}

/* What precedes the data of a frame of this lane. The checksum is begun: the device, or whoever
 * takes the frame, is to end it. */
static void rings_frame(struct frame *f, const struct options *o, int lane)
{
    const struct road *road = &o->roads_of[lane % o->roads];
    const size_t len = UDP_BYTES + (size_t)(o->loop.size_bytes * o->loop.segments);
    uint8_t *at = f->head.headers;
    memset(f, 0, sizeof *f);
    f->to = (struct sockaddr_ll){
        .sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_IPV6), .sll_ifindex = road->ifindex};
    memcpy(at, road->mac, ETH_ALEN);
    at[6] = 0x02; /* a local address; nobody asks for it */
    at[12] = ETH_P_IPV6 >> 8;
    at[13] = ETH_P_IPV6 & 255;
    at += ETH_HLEN;
    if (road->wrapped)
        at = rings_ip(at, IPV6_BYTES + len, IPPROTO_IPV6, &o->from, &road->outer);
    at = rings_ip(at, len, IPPROTO_UDP, &o->from, &o->to);
    const uint16_t sum = rings_sum(at - 32, 32, (uint32_t)len + IPPROTO_UDP);
    const uint16_t udp[4] = {htons((uint16_t)(o->loop.sport + lane)), htons(o->port),
                             htons((uint16_t)len), htons(sum)};
    memcpy(at, udp, sizeof udp);
    f->len = (size_t)(at - f->head.headers) + UDP_BYTES;
    f->head.vnet.flags = VIRTIO_NET_HDR_F_NEEDS_CSUM;
    f->head.vnet.csum_start = (uint16_t)(f->len - UDP_BYTES);
    f->head.vnet.csum_offset = 6;
    f->head.vnet.hdr_len = (uint16_t)f->len;
    if (o->loop.segments > 1) {
        f->head.vnet.gso_type = GSO_UDP;
        f->head.vnet.gso_size = (uint16_t)o->loop.size_bytes;
    }
}

/* Bytes before the data as a packet socket wants them. */
static size_t rings_head_len(const struct frame *f) { return sizeof f->head.vnet + f->len; }

static int rings_packet(const struct frame *frames)
{
    int fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0); /* 0: it receives nothing */
    if (fd < 0)
        loop_die("packet socket");
    loop_set(fd, SOL_PACKET, PACKET_QDISC_BYPASS, 1, "PACKET_QDISC_BYPASS");
    loop_set(fd, SOL_PACKET, PACKET_VNET_HDR, 1, "PACKET_VNET_HDR");
    loop_buffer(fd, SO_SNDBUFFORCE, SO_SNDBUF, LOOP_SNDBUF_BYTES);
    if (bind(fd, (const struct sockaddr *)&frames[0].to, sizeof frames[0].to) != 0)
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
    const int fd = rings_packet(frames);
    struct mmsghdr msgs[LOOP_BATCH_MAX] = {0};
    struct iovec iov[LOOP_BATCH_MAX][2];
    const size_t data = (size_t)(o->loop.size_bytes * o->loop.segments);
    int lane = 0;
    const double start = loop_now();
    do {
        for (int i = 0; i < o->loop.batch; i++) {
            iov[i][0] = (struct iovec){&frames[lane].head, rings_head_len(&frames[lane])};
            iov[i][1] = (struct iovec){message, data};
            msgs[i].msg_hdr = (struct msghdr){.msg_name = &frames[lane].to,
                                              .msg_namelen = sizeof frames[lane].to,
                                              .msg_iov = iov[i],
                                              .msg_iovlen = 2};
            lane = lane + 1 == o->loop.sockets ? 0 : lane + 1;
        }
        rings_done(c, o, sendmmsg(fd, msgs, (unsigned)o->loop.batch, 0));
    } while ((c->calls & 15) != 0 || loop_now() < start + o->loop.seconds);
    c->seconds = loop_now() - start;
}

static void rings_ring(const struct options *o, struct frame *frames, struct counts *c)
{
    const int fd = rings_packet(frames);
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
    uint8_t *ring = loop_map(fd, RING_BYTES, 0);
    if (ring == NULL)
        loop_die("mmap of the ring");
    const double start = loop_now();
    do {
        int n = 0;
        for (; n < o->loop.batch; n++) {
            struct tpacket2_hdr *h = (void *)(ring + (size_t)at * each);
            if (__atomic_load_n(&h->tp_status, __ATOMIC_ACQUIRE) != TP_STATUS_AVAILABLE)
                break;
            uint8_t *p = (uint8_t *)(h + 1); /* 32 bytes: TPACKET_ALIGN adds none */
            const size_t head = rings_head_len(&frames[lane]);
            memcpy(p, &frames[lane].head, head);
            memcpy(p + head, message, data);
            h->tp_len = (uint32_t)(head + data);
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
    if (!xsk_open(&x) || !xsk_bind(&x, (unsigned)frames[0].to.sll_ifindex))
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
            memcpy(head, frames[lane].head.headers, HEADERS);
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

/* DEVICE/MAC[/OUTER],... */
static void rings_roads(char *list, struct options *o)
{
    char *next;
    for (char *word = strtok_r(list, ",", &next); word != NULL; word = strtok_r(NULL, ",", &next)) {
        struct road *r = &o->roads_of[o->roads++ % LOOP_SOCKETS_MAX];
        char *rest;
        const char *device = strtok_r(word, "/", &rest);
        const char *mac = strtok_r(NULL, "/", &rest);
        const char *outer = strtok_r(NULL, "/", &rest);
        r->ifindex = device != NULL ? (int)if_nametoindex(device) : 0;
        r->wrapped = outer != NULL;
        if (r->ifindex == 0 || mac == NULL || o->roads > LOOP_SOCKETS_MAX ||
            sscanf(mac, "%hhx:%hhx:%hhx:%hhx:%hhx:%hhx", &r->mac[0], &r->mac[1], &r->mac[2],
                   &r->mac[3], &r->mac[4], &r->mac[5]) != ETH_ALEN ||
            (outer != NULL && inet_pton(AF_INET6, outer, &r->outer) != 1)) {
            fputs("rings: -r DEVICE/MAC[/OUTER],...\n", stderr);
            exit(1);
        }
    }
}

int main(int argc, char **argv)
{
    static struct frame frames[LOOP_SOCKETS_MAX];
    static void (*const send_by[WAYS])(const struct options *, struct frame *,
                                       struct counts *) = {rings_call, rings_ring, rings_xdp};
    static struct options o = {.loop = LOOP_DEFAULTS};
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
    while ((opt = getopt(argc - 3, argv + 3, LOOP_LETTERS "f:r:m:")) != -1) {
        switch (opt) {
        case 'r': rings_roads(optarg, &o); break;
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
    const bool one = o.roads == 1 && !o.roads_of[0].wrapped;
    if (o.roads == 0 || (o.way != CALL && !one) || (o.way == XDP && o.loop.segments > 1) ||
        (o.loop.segments == 1 && o.loop.size_bytes > FRAME_BYTES - 256)) {
        fputs("rings: no road, or more than the way can carry\n", stderr);
        return 1;
    }
    for (int i = 0; i < o.loop.sockets; i++)
        rings_frame(&frames[i], &o, i);
    send_by[o.way](&o, frames, &c);
    loop_print(&c);
    return 0;
}
