/* SPDX-License-Identifier: BSD-2-Clause */
/* What the bare loops share: a clock, sockets with large buffers, options, what they print. */
#ifndef MRC_BENCH_LOOP_H
#define MRC_BENCH_LOOP_H

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum {
    LOOP_SOCKETS_MAX = 256,
    LOOP_BATCH_MAX = 64,
    LOOP_MESSAGE_MAX = 65507, /* largest UDP payload, hence the largest train */
    LOOP_IDLE_MS = 1000,
    LOOP_FIRST_MS = 10000,
    LOOP_RCVBUF_BYTES = 8 << 20,
    LOOP_SNDBUF_BYTES = 4 << 20,
};

struct counts {
    uint64_t packets;
    uint64_t bytes;
    uint64_t calls;
    uint64_t refused; /* sends the kernel did not take */
    uint64_t copied;  /* sends without a copy, asked for, for which the kernel made one after all */
    double seconds;
};

static inline double loop_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

_Noreturn static inline void loop_die(const char *what)
{
    fprintf(stderr, "%s: %s: %s\n", program_invocation_short_name, what, strerror(errno));
    exit(4);
}

static inline void loop_set(int fd, int level, int name, int value, const char *what)
{
    if (setsockopt(fd, level, name, &value, sizeof value) != 0)
        loop_die(what);
}

/* The larger buffer where we may, the allowed one where not. */
static inline void loop_buffer(int fd, int force, int plain, int bytes)
{
    if (setsockopt(fd, SOL_SOCKET, force, &bytes, sizeof bytes) != 0)
        loop_set(fd, SOL_SOCKET, plain, bytes, "socket buffer");
}

/* Memory shared with the kernel, as a descriptor offers it; NULL with errno: it does not. */
static inline void *loop_map(int fd, size_t bytes, uint64_t at)
{
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, (off_t)at);
    return p == MAP_FAILED ? NULL : p;
}

static inline void loop_print(const struct counts *c)
{
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    double cpu = (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
                 1e-6 * (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
    printf("{\"packets\": %llu, \"bytes\": %llu, \"calls\": %llu, \"refused\": %llu, "
           "\"copied\": %llu, \"seconds\": %.6f, \"cpu_seconds\": %.6f}\n",
           (unsigned long long)c->packets, (unsigned long long)c->bytes,
           (unsigned long long)c->calls, (unsigned long long)c->refused,
           (unsigned long long)c->copied, c->seconds, cpu);
}

static inline int loop_socket(const struct sockaddr_in6 *local, const struct sockaddr_in6 *peer)
{
    int fd = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        loop_die("socket");
    loop_set(fd, SOL_SOCKET, SO_REUSEADDR, 1, "SO_REUSEADDR");
    if (bind(fd, (const struct sockaddr *)local, sizeof *local) != 0)
        loop_die("bind");
    if (peer != NULL && connect(fd, (const struct sockaddr *)peer, sizeof *peer) != 0)
        loop_die("connect");
    return fd;
}

/* A socket that sends from `sport`; each message is cut into datagrams of size_bytes when it may
 * hold several. */
static inline int loop_lane(const struct sockaddr_in6 *peer, int sport, int size_bytes,
                            int segments)
{
    const struct sockaddr_in6 local = {.sin6_family = AF_INET6,
                                       .sin6_port = htons((uint16_t)sport)};
    int fd = loop_socket(&local, peer);
    loop_buffer(fd, SO_SNDBUFFORCE, SO_SNDBUF, LOOP_SNDBUF_BYTES);
    if (segments > 1)
        loop_set(fd, SOL_UDP, UDP_SEGMENT, size_bytes, "UDP_SEGMENT");
    return fd;
}

/* Bytes of one datagram in a message of len bytes: the segment size the kernel reports. */
static inline size_t loop_segment(struct msghdr *m, size_t len)
{
    for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c != NULL; c = CMSG_NXTHDR(m, c)) {
        int size;
        if (c->cmsg_level != SOL_UDP || c->cmsg_type != UDP_GRO)
            continue;
        memcpy(&size, CMSG_DATA(c), sizeof size);
        if (size > 0)
            return (size_t)size;
    }
    return len > 0 ? len : 1;
}

static inline uint64_t loop_segments(struct msghdr *m, size_t len)
{
    const size_t size = loop_segment(m, len);
    return len > 0 ? (len + size - 1) / size : 1;
}

static inline int loop_number(const char *text, long low, long high)
{
    char *end;
    long v = strtol(text, &end, 10);
    if (*text != '\0' && *end == '\0' && v >= low && v <= high)
        return (int)v;
    fprintf(stderr, "%s: %s: must be %ld..%ld\n", program_invocation_short_name, text, low, high);
    exit(1);
}

/* What each loop may be told; the letters are those of bare.c. */
struct loop_options {
    double seconds;
    int size_bytes;
    int sockets;
    int batch;
    int segments;
    int sport;
};

#define LOOP_LETTERS "t:s:n:b:k:p:"
#define LOOP_DEFAULTS                                                                              \
    {                                                                                              \
        .seconds = 3, .size_bytes = 4132, .sockets = 1, .batch = 32, .segments = 1, .sport = 49152 \
    }

/* Takes one of LOOP_LETTERS; false: it is another's. */
static inline int loop_option(struct loop_options *o, int letter, const char *text)
{
    switch (letter) {
    case 't': o->seconds = loop_number(text, 1, 3600); return 1;
    case 's': o->size_bytes = loop_number(text, 1, LOOP_MESSAGE_MAX); return 1;
    case 'n': o->sockets = loop_number(text, 1, LOOP_SOCKETS_MAX); return 1;
    case 'b': o->batch = loop_number(text, 1, LOOP_BATCH_MAX); return 1;
    case 'k': o->segments = loop_number(text, 1, 64); return 1;
    case 'p': o->sport = loop_number(text, 1, 65535 - LOOP_SOCKETS_MAX); return 1;
    default: return 0;
    }
}

static inline void loop_check(const struct loop_options *o)
{
    if (o->size_bytes * o->segments > LOOP_MESSAGE_MAX) {
        fprintf(stderr, "%s: a train is at most %d bytes\n", program_invocation_short_name,
                LOOP_MESSAGE_MAX);
        exit(1);
    }
}

#endif
