/* SPDX-License-Identifier: BSD-2-Clause */
/* The ruler: how fast this kernel moves datagrams of MRC's size with no protocol on top.
 *
 *   bare recv ADDR PORT [-g | -r]            -g: UDP_GRO; -r: a raw socket for IPv6 in IPv6
 *   bare send ADDR PORT [-t SECONDS] [-s BYTES] [-n SOCKETS] [-b BATCH] [-k SEGMENTS] [-p SPORT]
 *                       [-o OUTER,...]       whole packets in an outer header to these addresses
 *
 * The sender goes round SOCKETS connected sockets with source ports SPORT, SPORT + 1, ...; each
 * turn is one sendmmsg of BATCH messages of SEGMENTS datagrams (UDP_SEGMENT when more than one).
 * With -o it is one raw socket, and each packet of a batch goes to the next OUTER. The receiver
 * counts between the first packet and the last, ends when nothing came for a second, and both print
 * one JSON object. */
#include <poll.h>
#include <stdbool.h>

#include "loop.h"

enum {
    OUTER_MAX = 256,
    IPV6_BYTES = 40,
    UDP_BYTES = 8,
    HEADER_BYTES = 2 * IPV6_BYTES + UDP_BYTES, /* of a raw packet */
};

struct options {
    struct loop_options loop;
    int outers;
    bool gro;
    bool raw;
    struct in6_addr outer[OUTER_MAX];
};

static int bare_raw(int protocol)
{
    int fd = socket(AF_INET6, SOCK_RAW | SOCK_CLOEXEC, protocol);
    if (fd < 0)
        loop_die("raw socket");
    return fd;
}

static void bare_recv(const struct sockaddr_in6 *local, const struct options *o)
{
    static uint8_t buf[LOOP_BATCH_MAX][LOOP_MESSAGE_MAX + 1];
    static uint8_t control[LOOP_BATCH_MAX][CMSG_SPACE(sizeof(int))];
    struct mmsghdr msgs[LOOP_BATCH_MAX];
    struct iovec iov[LOOP_BATCH_MAX];
    struct counts c = {0};
    int fd = o->raw ? bare_raw(IPPROTO_IPV6) : loop_socket(local, NULL);
    loop_buffer(fd, SO_RCVBUFFORCE, SO_RCVBUF, LOOP_RCVBUF_BYTES);
    if (o->gro)
        loop_set(fd, SOL_UDP, UDP_GRO, 1, "UDP_GRO");
    puts("ready");
    fflush(stdout);

    double first = 0.0;
    double last = 0.0;
    int used = LOOP_BATCH_MAX; /* the others are still as they were */
    for (;;) {
        for (int i = 0; i < used; i++) {
            iov[i] = (struct iovec){buf[i], sizeof buf[i]};
            msgs[i].msg_hdr = (struct msghdr){.msg_iov = &iov[i],
                                              .msg_iovlen = 1,
                                              .msg_control = control[i],
                                              .msg_controllen = sizeof control[i]};
        }
        int n = recvmmsg(fd, msgs, LOOP_BATCH_MAX, MSG_DONTWAIT, NULL);
        used = n > 0 ? n : 0;
        if (n < 0 && errno != EAGAIN && errno != EINTR)
            loop_die("recvmmsg");
        if (n < 0) {
            struct pollfd p = {fd, POLLIN, 0};
            if (poll(&p, 1, c.packets != 0 ? LOOP_IDLE_MS : LOOP_FIRST_MS) == 0)
                break;
            continue;
        }
        last = loop_now();
        if (c.packets == 0)
            first = last;
        c.calls++;
        for (int i = 0; i < n; i++) {
            c.packets += loop_segments(&msgs[i].msg_hdr, msgs[i].msg_len);
            c.bytes += msgs[i].msg_len;
        }
    }
    c.seconds = last - first;
    loop_print(&c);
}

static void bare_send(const struct sockaddr_in6 *peer, const struct options *o)
{
    static uint8_t message[LOOP_MESSAGE_MAX];
    int fds[LOOP_SOCKETS_MAX];
    struct iovec iov = {message, (size_t)(o->loop.size_bytes * o->loop.segments)};
    struct mmsghdr msgs[LOOP_BATCH_MAX] = {0};
    struct counts c = {0};
    for (int i = 0; i < o->loop.batch; i++)
        msgs[i].msg_hdr = (struct msghdr){.msg_iov = &iov, .msg_iovlen = 1};
    for (int i = 0; i < o->loop.sockets; i++)
        fds[i] = loop_lane(peer, o->loop.sport + i, o->loop.size_bytes, o->loop.segments);
    double start = loop_now();
    double end = start + o->loop.seconds;
    int turn = 0;
    do {
        int n = sendmmsg(fds[turn], msgs, (unsigned)o->loop.batch, 0);
        turn = turn + 1 == o->loop.sockets ? 0 : turn + 1;
        c.calls++;
        if (n < 0 && errno != ENOBUFS && errno != EAGAIN && errno != EINTR)
            loop_die("sendmmsg");
        if (n < 0) {
            c.refused++;
            continue;
        }
        c.packets += (uint64_t)n * (uint64_t)o->loop.segments;
        c.bytes += (uint64_t)n * iov.iov_len;
    } while ((c.calls & 15) != 0 || loop_now() < end);
    c.seconds = loop_now() - start;
    loop_print(&c);
}

static void bare_header(uint8_t *at, int payload_len, uint8_t next, const struct in6_addr *src,
                        const struct in6_addr *dst)
{
    memset(at, 0, IPV6_BYTES);
    at[0] = 0x60;
    at[4] = (uint8_t)(payload_len >> 8);
    at[5] = (uint8_t)payload_len;
    at[6] = next;
    at[7] = 64;
    memcpy(at + 8, src, sizeof *src);
    memcpy(at + 24, dst, sizeof *dst);
}

/* Outer IPv6, inner IPv6, UDP: what MRC puts before BTH when it builds SRv6 itself. */
static void bare_headers(uint8_t *at, const struct sockaddr_in6 *peer, const struct options *o,
                         int lane)
{
    struct sockaddr_in6 local = {.sin6_family = AF_INET6};
    socklen_t len = sizeof local;
    int probe = loop_socket(&local, peer); /* the address that the kernel would send from */
    if (getsockname(probe, (struct sockaddr *)&local, &len) != 0)
        loop_die("getsockname");
    close(probe);
    const int udp_len = UDP_BYTES + o->loop.size_bytes;
    const uint16_t udp[4] = {htons((uint16_t)(o->loop.sport + lane)), peer->sin6_port,
                             htons((uint16_t)udp_len), 0};
    bare_header(at, IPV6_BYTES + udp_len, IPPROTO_IPV6, &local.sin6_addr, &o->outer[lane]);
    bare_header(at + IPV6_BYTES, udp_len, IPPROTO_UDP, &local.sin6_addr, &peer->sin6_addr);
    memcpy(at + 2 * IPV6_BYTES, udp, sizeof udp);
}

static void bare_send_raw(const struct sockaddr_in6 *peer, const struct options *o)
{
    static uint8_t message[LOOP_MESSAGE_MAX];
    static uint8_t headers[OUTER_MAX][HEADER_BYTES];
    static struct sockaddr_in6 to[OUTER_MAX];
    struct iovec iov[LOOP_BATCH_MAX][2];
    struct mmsghdr msgs[LOOP_BATCH_MAX] = {0};
    struct counts c = {0};
    int fd = bare_raw(IPPROTO_RAW);
    loop_buffer(fd, SO_SNDBUFFORCE, SO_SNDBUF, LOOP_SNDBUF_BYTES);
    for (int i = 0; i < o->outers; i++) {
        to[i] = (struct sockaddr_in6){.sin6_family = AF_INET6, .sin6_addr = o->outer[i]};
        bare_headers(headers[i], peer, o, i);
    }
    double start = loop_now();
    double end = start + o->loop.seconds;
    int lane = 0;
    do {
        for (int i = 0; i < o->loop.batch; i++) {
            iov[i][0] = (struct iovec){headers[lane], HEADER_BYTES};
            iov[i][1] = (struct iovec){message, (size_t)o->loop.size_bytes};
            msgs[i].msg_hdr = (struct msghdr){.msg_name = &to[lane],
                                              .msg_namelen = sizeof to[lane],
                                              .msg_iov = iov[i],
                                              .msg_iovlen = 2};
            lane = lane + 1 == o->outers ? 0 : lane + 1;
        }
        int n = sendmmsg(fd, msgs, (unsigned)o->loop.batch, 0);
        c.calls++;
        if (n < 0 && errno != ENOBUFS && errno != EAGAIN && errno != EINTR)
            loop_die("sendmmsg");
        c.refused += n < 0;
        c.packets += n > 0 ? (uint64_t)n : 0;
    } while ((c.calls & 15) != 0 || loop_now() < end);
    c.bytes = c.packets * (uint64_t)o->loop.size_bytes;
    c.seconds = loop_now() - start;
    loop_print(&c);
}

static void bare_outers(char *list, struct options *o)
{
    for (char *word = strtok(list, ","); word != NULL; word = strtok(NULL, ",")) {
        if (o->outers == OUTER_MAX || inet_pton(AF_INET6, word, &o->outer[o->outers++]) != 1) {
            fprintf(stderr, "bare: %s: at most %d IPv6 addresses\n", word, OUTER_MAX);
            exit(1);
        }
    }
}

static struct options bare_options(int argc, char **argv)
{
    struct options o = {.loop = LOOP_DEFAULTS};
    int opt;
    while ((opt = getopt(argc, argv, LOOP_LETTERS "o:gr")) != -1) {
        switch (opt) {
        case 'o': bare_outers(optarg, &o); break;
        case 'g': o.gro = true; break;
        case 'r': o.raw = true; break;
        default:
            if (!loop_option(&o.loop, opt, optarg))
                exit(1);
        }
    }
    loop_check(&o.loop);
    return o;
}

int main(int argc, char **argv)
{
    struct sockaddr_in6 addr = {.sin6_family = AF_INET6};
    if (argc < 4 || inet_pton(AF_INET6, argv[2], &addr.sin6_addr) != 1) {
        fputs("usage: bare send|recv IPV6-ADDRESS PORT [options], see the top of bare.c\n", stderr);
        return 1;
    }
    addr.sin6_port = htons((uint16_t)loop_number(argv[3], 1, 65535));
    struct options o = bare_options(argc - 3, argv + 3);
    if (strcmp(argv[1], "recv") == 0)
        bare_recv(&addr, &o);
    else if (o.outers > 0)
        bare_send_raw(&addr, &o);
    else
        bare_send(&addr, &o);
    return 0;
}
