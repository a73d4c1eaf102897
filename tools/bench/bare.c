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
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum {
    SOCKETS_MAX = 256,
    BATCH_MAX = 64,
    MESSAGE_MAX = 65507, /* largest UDP payload, hence the largest train */
    IDLE_MS = 1000,
    FIRST_MS = 10000,
    RCVBUF_BYTES = 8 << 20,
    SNDBUF_BYTES = 4 << 20,
    OUTER_MAX = 256,
    IPV6_BYTES = 40,
    UDP_BYTES = 8,
    HEADER_BYTES = 2 * IPV6_BYTES + UDP_BYTES, /* of a raw packet */
};

struct counts {
    uint64_t packets;
    uint64_t bytes;
    uint64_t calls;
    uint64_t refused; /* sends the kernel did not take */
    double seconds;
};

struct options {
    double seconds;
    int size_bytes;
    int sockets;
    int batch;
    int segments;
    int sport;
    int outers;
    bool gro;
    bool raw;
    struct in6_addr outer[OUTER_MAX];
};

static double bare_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void bare_die(const char *what)
{
    fprintf(stderr, "bare: %s: %s\n", what, strerror(errno));
    exit(4);
}

/* The larger buffer where we may, the allowed one where not. */
static void bare_buffer(int fd, int force, int plain, int bytes)
{
    if (setsockopt(fd, SOL_SOCKET, force, &bytes, sizeof bytes) != 0 &&
        setsockopt(fd, SOL_SOCKET, plain, &bytes, sizeof bytes) != 0)
        bare_die("socket buffer");
}

static void bare_print(const struct counts *c)
{
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    double cpu = (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
                 1e-6 * (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
    printf("{\"packets\": %llu, \"bytes\": %llu, \"calls\": %llu, \"refused\": %llu, "
           "\"seconds\": %.6f, \"cpu_seconds\": %.6f}\n",
           (unsigned long long)c->packets, (unsigned long long)c->bytes,
           (unsigned long long)c->calls, (unsigned long long)c->refused, c->seconds, cpu);
}

static int bare_socket(const struct sockaddr_in6 *local, const struct sockaddr_in6 *peer)
{
    int fd = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        bare_die("socket");
    int one = 1;
    if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one) != 0)
        bare_die("SO_REUSEADDR");
    if (bind(fd, (const struct sockaddr *)local, sizeof *local) != 0)
        bare_die("bind");
    if (peer != NULL && connect(fd, (const struct sockaddr *)peer, sizeof *peer) != 0)
        bare_die("connect");
    return fd;
}

/* Datagrams in one message: the segment size the kernel reports, or the message itself. */
static uint64_t bare_segments(struct msghdr *m, size_t len)
{
    for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c != NULL; c = CMSG_NXTHDR(m, c)) {
        int size;
        if (c->cmsg_level != SOL_UDP || c->cmsg_type != UDP_GRO)
            continue;
        memcpy(&size, CMSG_DATA(c), sizeof size);
        if (size > 0)
            return (len + (size_t)size - 1) / (size_t)size;
    }
    return 1;
}

static int bare_raw(int protocol)
{
    int fd = socket(AF_INET6, SOCK_RAW | SOCK_CLOEXEC, protocol);
    if (fd < 0)
        bare_die("raw socket");
    return fd;
}

static void bare_recv(const struct sockaddr_in6 *local, const struct options *o)
{
    static uint8_t buf[BATCH_MAX][MESSAGE_MAX + 1];
    static uint8_t control[BATCH_MAX][CMSG_SPACE(sizeof(int))];
    struct mmsghdr msgs[BATCH_MAX];
    struct iovec iov[BATCH_MAX];
    struct counts c = {0};
    int fd = o->raw ? bare_raw(IPPROTO_IPV6) : bare_socket(local, NULL);
    int one = 1;
    bare_buffer(fd, SO_RCVBUFFORCE, SO_RCVBUF, RCVBUF_BYTES);
    if (o->gro && setsockopt(fd, SOL_UDP, UDP_GRO, &one, sizeof one) != 0)
        bare_die("UDP_GRO");
    puts("ready");
    fflush(stdout);

    double first = 0.0;
    double last = 0.0;
    for (;;) {
        for (int i = 0; i < BATCH_MAX; i++) {
            iov[i] = (struct iovec){buf[i], sizeof buf[i]};
            msgs[i].msg_hdr = (struct msghdr){.msg_iov = &iov[i],
                                              .msg_iovlen = 1,
                                              .msg_control = control[i],
                                              .msg_controllen = sizeof control[i]};
        }
        int n = recvmmsg(fd, msgs, BATCH_MAX, MSG_DONTWAIT, NULL);
        if (n < 0 && errno != EAGAIN && errno != EINTR)
            bare_die("recvmmsg");
        if (n < 0) {
            struct pollfd p = {fd, POLLIN, 0};
            if (poll(&p, 1, c.packets != 0 ? IDLE_MS : FIRST_MS) == 0)
                break;
            continue;
        }
        last = bare_now();
        if (c.packets == 0)
            first = last;
        c.calls++;
        for (int i = 0; i < n; i++) {
            c.packets += bare_segments(&msgs[i].msg_hdr, msgs[i].msg_len);
            c.bytes += msgs[i].msg_len;
        }
    }
    c.seconds = last - first;
    bare_print(&c);
}

static void bare_send(const struct sockaddr_in6 *peer, const struct options *o)
{
    static uint8_t message[MESSAGE_MAX];
    int fds[SOCKETS_MAX];
    struct iovec iov = {message, (size_t)(o->size_bytes * o->segments)};
    struct mmsghdr msgs[BATCH_MAX] = {0};
    struct counts c = {0};
    for (int i = 0; i < o->batch; i++)
        msgs[i].msg_hdr = (struct msghdr){.msg_iov = &iov, .msg_iovlen = 1};
    for (int i = 0; i < o->sockets; i++) {
        struct sockaddr_in6 local = {.sin6_family = AF_INET6};
        local.sin6_port = htons((uint16_t)(o->sport + i));
        fds[i] = bare_socket(&local, peer);
        bare_buffer(fds[i], SO_SNDBUFFORCE, SO_SNDBUF, SNDBUF_BYTES);
        int size = o->size_bytes;
        if (o->segments > 1 && setsockopt(fds[i], SOL_UDP, UDP_SEGMENT, &size, sizeof size) != 0)
            bare_die("UDP_SEGMENT");
    }
    double start = bare_now();
    double end = start + o->seconds;
    int turn = 0;
    do {
        int n = sendmmsg(fds[turn], msgs, (unsigned)o->batch, 0);
        turn = turn + 1 == o->sockets ? 0 : turn + 1;
        c.calls++;
        if (n < 0 && errno != ENOBUFS && errno != EAGAIN && errno != EINTR)
            bare_die("sendmmsg");
        if (n < 0) {
            c.refused++;
            continue;
        }
        c.packets += (uint64_t)n * (uint64_t)o->segments;
        c.bytes += (uint64_t)n * iov.iov_len;
    } while ((c.calls & 15) != 0 || bare_now() < end);
    c.seconds = bare_now() - start;
    bare_print(&c);
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
    int probe = bare_socket(&local, peer); /* the address that the kernel would send from */
    if (getsockname(probe, (struct sockaddr *)&local, &len) != 0)
        bare_die("getsockname");
    close(probe);
    const int udp_len = UDP_BYTES + o->size_bytes;
    const uint16_t udp[4] = {htons((uint16_t)(o->sport + lane)), peer->sin6_port,
                             htons((uint16_t)udp_len), 0};
    bare_header(at, IPV6_BYTES + udp_len, IPPROTO_IPV6, &local.sin6_addr, &o->outer[lane]);
    bare_header(at + IPV6_BYTES, udp_len, IPPROTO_UDP, &local.sin6_addr, &peer->sin6_addr);
    memcpy(at + 2 * IPV6_BYTES, udp, sizeof udp);
}

static void bare_send_raw(const struct sockaddr_in6 *peer, const struct options *o)
{
    static uint8_t message[MESSAGE_MAX];
    static uint8_t headers[OUTER_MAX][HEADER_BYTES];
    static struct sockaddr_in6 to[OUTER_MAX];
    struct iovec iov[BATCH_MAX][2];
    struct mmsghdr msgs[BATCH_MAX] = {0};
    struct counts c = {0};
    int fd = bare_raw(IPPROTO_RAW);
    bare_buffer(fd, SO_SNDBUFFORCE, SO_SNDBUF, SNDBUF_BYTES);
    for (int i = 0; i < o->outers; i++) {
        to[i] = (struct sockaddr_in6){.sin6_family = AF_INET6, .sin6_addr = o->outer[i]};
        bare_headers(headers[i], peer, o, i);
    }
    double start = bare_now();
    double end = start + o->seconds;
    int lane = 0;
    do {
        for (int i = 0; i < o->batch; i++) {
            iov[i][0] = (struct iovec){headers[lane], HEADER_BYTES};
            iov[i][1] = (struct iovec){message, (size_t)o->size_bytes};
            msgs[i].msg_hdr = (struct msghdr){.msg_name = &to[lane],
                                              .msg_namelen = sizeof to[lane],
                                              .msg_iov = iov[i],
                                              .msg_iovlen = 2};
            lane = lane + 1 == o->outers ? 0 : lane + 1;
        }
        int n = sendmmsg(fd, msgs, (unsigned)o->batch, 0);
        c.calls++;
        if (n < 0 && errno != ENOBUFS && errno != EAGAIN && errno != EINTR)
            bare_die("sendmmsg");
        c.refused += n < 0;
        c.packets += n > 0 ? (uint64_t)n : 0;
    } while ((c.calls & 15) != 0 || bare_now() < end);
    c.bytes = c.packets * (uint64_t)o->size_bytes;
    c.seconds = bare_now() - start;
    bare_print(&c);
}

static int bare_number(const char *text, long low, long high)
{
    char *end;
    long v = strtol(text, &end, 10);
    if (*text != '\0' && *end == '\0' && v >= low && v <= high)
        return (int)v;
    fprintf(stderr, "bare: %s: must be %ld..%ld\n", text, low, high);
    exit(1);
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
    struct options o = {
        .seconds = 3, .size_bytes = 4132, .sockets = 1, .batch = 32, .segments = 1, .sport = 49152};
    int opt;
    while ((opt = getopt(argc, argv, "t:s:n:b:k:p:o:gr")) != -1) {
        switch (opt) {
        case 't': o.seconds = bare_number(optarg, 1, 3600); break;
        case 's': o.size_bytes = bare_number(optarg, 1, MESSAGE_MAX); break;
        case 'n': o.sockets = bare_number(optarg, 1, SOCKETS_MAX); break;
        case 'b': o.batch = bare_number(optarg, 1, BATCH_MAX); break;
        case 'k': o.segments = bare_number(optarg, 1, 64); break;
        case 'p': o.sport = bare_number(optarg, 1, 65535 - SOCKETS_MAX); break;
        case 'o': bare_outers(optarg, &o); break;
        case 'g': o.gro = true; break;
        case 'r': o.raw = true; break;
        default: exit(1);
        }
    }
    if (o.size_bytes * o.segments > MESSAGE_MAX) {
        fprintf(stderr, "bare: a train is at most %d bytes\n", MESSAGE_MAX);
        exit(1);
    }
    return o;
}

int main(int argc, char **argv)
{
    struct sockaddr_in6 addr = {.sin6_family = AF_INET6};
    if (argc < 4 || inet_pton(AF_INET6, argv[2], &addr.sin6_addr) != 1) {
        fputs("usage: bare send|recv IPV6-ADDRESS PORT [options], see the top of bare.c\n", stderr);
        return 1;
    }
    addr.sin6_port = htons((uint16_t)bare_number(argv[3], 1, 65535));
    struct options o = bare_options(argc - 3, argv + 3);
    if (strcmp(argv[1], "recv") == 0)
        bare_recv(&addr, &o);
    else if (o.outers > 0)
        bare_send_raw(&addr, &o);
    else
        bare_send(&addr, &o);
    return 0;
}
