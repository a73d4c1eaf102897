/* SPDX-License-Identifier: BSD-2-Clause */
/* How evenly a host spreads what it sends over its paths: looks at each message on its way out.
 *
 *   paths PORT [-n PATHS] [-p SPORT] [-t SECONDS] [-w WINDOW-KB] [-u WINDOW-US]
 *
 * It counts from SKIP_MS after the first message until SECONDS after it. Path i has source port
 * SPORT + i; an outer IPv6 header may precede the one with UDP. Windows of bytes and windows of
 * time are filled one after the other; of each the coefficient of variation of the bytes per path
 * counts, and the busiest path's share of the mean. Headers alone are looked at. Prints medians as
 * one JSON object. */
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <math.h>
#include <poll.h>

#include "../loop.h"

enum {
    PATHS_MAX = 256,
    WINDOWS_MAX = 1 << 16,
    SNAP_BYTES = 96,
    IPV6_BYTES = 40,
    SKIP_MS = 300, /* after the first message: slow start */
    STOP_MS = 100, /* before the end: what drains */
};

struct windows {
    uint64_t bytes[PATHS_MAX];
    uint64_t total;
    double cov[WINDOWS_MAX];
    double most[WINDOWS_MAX];
    int count;
};

struct options {
    struct loop_options loop;
    uint16_t port;
    uint64_t window_bytes;
    double window_s;
};

static int paths_compare(const void *a, const void *b)
{
    const double x = *(const double *)a;
    const double y = *(const double *)b;
    return (x > y) - (x < y);
}

static double paths_median(double *v, int n)
{
    qsort(v, (size_t)n, sizeof *v, paths_compare);
    return n > 0 ? v[n / 2] : 0;
}

/* Judges what is in the window and begins the next one. */
static void paths_close(struct windows *w, int paths)
{
    const double mean = (double)w->total / paths;
    double square = 0;
    uint64_t most = 0;
    if (w->total > 0 && w->count < WINDOWS_MAX) {
        for (int i = 0; i < paths; i++) {
            square += ((double)w->bytes[i] - mean) * ((double)w->bytes[i] - mean);
            most = w->bytes[i] > most ? w->bytes[i] : most;
        }
        w->cov[w->count] = sqrt(square / paths) / mean;
        w->most[w->count++] = (double)most / mean;
    }
    memset(w->bytes, 0, sizeof w->bytes);
    w->total = 0;
}

static void paths_add(struct windows *w, int path, uint64_t bytes)
{
    w->bytes[path] += bytes;
    w->total += bytes;
}

/* The path of a packet that begins with an IPv6 header; -1: another's. */
static int paths_of(const uint8_t *p, size_t len, const struct options *o)
{
    uint16_t ports[2];
    if (len >= 2 * IPV6_BYTES && p[6] == IPPROTO_IPV6)
        p += IPV6_BYTES, len -= IPV6_BYTES;
    if (len < IPV6_BYTES + sizeof ports || p[6] != IPPROTO_UDP)
        return -1;
    memcpy(ports, p + IPV6_BYTES, sizeof ports);
    const int path = ntohs(ports[0]) - o->loop.sport;
    return ntohs(ports[1]) == o->port && path >= 0 && path < o->loop.sockets ? path : -1;
}

/* When the kernel had it, in seconds. */
static double paths_when(struct msghdr *m)
{
    struct timespec t = {0};
    struct cmsghdr *c = CMSG_FIRSTHDR(m);
    if (c != NULL && c->cmsg_type == SCM_TIMESTAMPNS)
        memcpy(&t, CMSG_DATA(c), sizeof t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

struct inbox {
    uint8_t buf[LOOP_BATCH_MAX][SNAP_BYTES];
    uint8_t control[LOOP_BATCH_MAX][CMSG_SPACE(sizeof(struct timespec))];
    struct sockaddr_ll from[LOOP_BATCH_MAX];
    struct iovec iov[LOOP_BATCH_MAX];
    struct mmsghdr msgs[LOOP_BATCH_MAX];
};

static void paths_offer(struct inbox *in)
{
    for (int i = 0; i < LOOP_BATCH_MAX; i++) {
        in->iov[i] = (struct iovec){in->buf[i], SNAP_BYTES};
        in->msgs[i].msg_hdr = (struct msghdr){.msg_name = &in->from[i],
                                              .msg_namelen = sizeof in->from[i],
                                              .msg_iov = &in->iov[i],
                                              .msg_iovlen = 1,
                                              .msg_control = in->control[i],
                                              .msg_controllen = sizeof in->control[i]};
    }
}

static void paths_watch(int fd, const struct options *o)
{
    static struct inbox in;
    static struct windows by_bytes;
    static struct windows by_time;
    static uint64_t all[PATHS_MAX];
    uint64_t messages = 0;
    uint64_t rows = 0; /* of messages on one path */
    int before = -1;
    uint64_t bytes = 0;
    double until = 0; /* end of the window of time */
    double begin = 0; /* of counting; 0: nothing seen */
    double end = loop_now() + LOOP_FIRST_MS / 1e3;
    while (loop_now() < end) {
        paths_offer(&in);
        int n = recvmmsg(fd, in.msgs, LOOP_BATCH_MAX, MSG_DONTWAIT | MSG_TRUNC, NULL);
        if (n < 0) {
            struct pollfd p = {fd, POLLIN, 0};
            poll(&p, 1, 10);
            continue;
        }
        for (int i = 0; i < n; i++) {
            const int path =
                in.from[i].sll_pkttype == PACKET_OUTGOING ? paths_of(in.buf[i], SNAP_BYTES, o) : -1;
            if (path < 0)
                continue;
            const double when = paths_when(&in.msgs[i].msg_hdr);
            if (begin == 0) {
                begin = when + SKIP_MS / 1e3;
                end = loop_now() + o->loop.seconds - STOP_MS / 1e3;
            }
            if (when < begin)
                continue;
            if (when >= until) {
                paths_close(&by_time, o->loop.sockets);
                until = when + o->window_s;
            }
            messages++;
            rows += path != before;
            before = path;
            all[path] += in.msgs[i].msg_len;
            bytes += in.msgs[i].msg_len;
            paths_add(&by_time, path, in.msgs[i].msg_len);
            paths_add(&by_bytes, path, in.msgs[i].msg_len);
            if (by_bytes.total >= o->window_bytes)
                paths_close(&by_bytes, o->loop.sockets);
        }
    }
    printf("{\"messages\": %llu, \"bytes\": %llu, \"rows\": %llu, \"windows\": %d, "
           "\"cov_bytes\": %.5f, \"most_bytes\": %.5f, \"cov_time\": %.5f, \"most_time\": %.5f, "
           "\"each\": [",
           (unsigned long long)messages, (unsigned long long)bytes, (unsigned long long)rows,
           by_bytes.count, paths_median(by_bytes.cov, by_bytes.count),
           paths_median(by_bytes.most, by_bytes.count), paths_median(by_time.cov, by_time.count),
           paths_median(by_time.most, by_time.count));
    for (int i = 0; i < o->loop.sockets; i++)
        printf("%s%llu", i > 0 ? ", " : "", (unsigned long long)all[i]);
    puts("]}");
}

int main(int argc, char **argv)
{
    struct options o = {.loop = LOOP_DEFAULTS, .window_bytes = 1000000, .window_s = 1e-3};
    int opt;
    if (argc < 2) {
        fputs("usage: paths PORT [options], see the top of paths.c\n", stderr);
        return 1;
    }
    o.loop.sockets = 16;
    o.port = (uint16_t)loop_number(argv[1], 1, 65535);
    while ((opt = getopt(argc - 1, argv + 1, LOOP_LETTERS "w:u:")) != -1) {
        if (opt == 'w')
            o.window_bytes = 1000 * (uint64_t)loop_number(optarg, 1, 1 << 20);
        else if (opt == 'u')
            o.window_s = 1e-6 * loop_number(optarg, 1, 1 << 30);
        else if (!loop_option(&o.loop, opt, optarg))
            return 1;
    }
    const int fd = socket(AF_PACKET, SOCK_DGRAM | SOCK_CLOEXEC, htons(ETH_P_ALL));
    if (fd < 0)
        loop_die("packet socket");
    loop_buffer(fd, SO_RCVBUFFORCE, SO_RCVBUF, LOOP_RCVBUF_BYTES);
    loop_set(fd, SOL_SOCKET, SO_TIMESTAMPNS, 1, "SO_TIMESTAMPNS");
    puts("ready");
    fflush(stdout);
    paths_watch(fd, &o);
    return 0;
}
