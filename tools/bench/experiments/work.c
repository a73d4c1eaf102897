/* SPDX-License-Identifier: BSD-2-Clause */
/* The bare loop with, one after the other, what a transport cannot leave out; and without what
 * it might.
 *
 *   work recv ADDR PORT [-P] [-C] [-A] [-X]
 *   work send ADDR PORT [-R] [-C] [-A] [-W KB] [-Z] [-t SECONDS] [-s BYTES] [-n SOCKETS]
 *                       [-b BATCH] [-k SEGMENTS] [-p SPORT]
 *
 *   -R  data come from a region larger than the caches, gathered between header and CRC
 *   -P  the receiver moves data to their place in such a region
 *   -C  the CRC of the iCRC over each datagram, at both ends
 *   -A  the receiver answers each ANSWER_EACH datagrams with one, on the path of the last;
 *       the sender reads answers between two sends
 *   -W  at most so many KB may be unanswered (with -A)
 *   -Z  MSG_ZEROCOPY: the kernel may send from our pages
 *   -X  the receiver takes the first bytes only: no copy of the data at all
 *
 * Both print one JSON object. */
#include <poll.h>
#include <stdbool.h>

#include "../loop.h"
#include "mrc_icrc.h"

#include <linux/errqueue.h> /* needs <time.h> before it */

enum {
    REGION_BYTES = 16 << 20,
    HEADER_BYTES = 32, /* BTH, METH, RETH */
    CRC_BYTES = 4,
    SEGMENTS_MAX = 64,
    ANSWER_EACH = 42, /* packets a SACK speaks of in bulk */
    ANSWER_BYTES = 68,
    ANSWER_PORT = 4792,
    STUCK_MS = 100, /* no answer for so long: what is in flight is lost */
    PEEK_BYTES = 64,
};

struct options {
    struct loop_options loop;
    bool region;
    bool place;
    bool crc;
    bool answer;
    bool zerocopy;
    bool peek;
    int64_t window_bytes;
};

static uint8_t region[REGION_BYTES];
static mrc_crc32_fn crc32;

_Noreturn void mrc_panic(const char *file, int line, const char *what)
{
    fprintf(stderr, "%s:%d: %s\n", file, line, what);
    abort();
}

/* -- receiver -----------------------------------------------------------------------------------
 */

struct receiver {
    struct counts c;
    size_t at; /* in the region */
    uint32_t sum;
    uint64_t answered; /* packets */
    int lanes[LOOP_SOCKETS_MAX];
};

/* What one message of datagrams asks of the receiver. */
static void work_take(struct receiver *r, const struct options *o, const uint8_t *p, size_t len,
                      size_t size)
{
    for (size_t n; len > HEADER_BYTES + CRC_BYTES; p += n, len -= n) {
        n = len < size ? len : size;
        if (n <= HEADER_BYTES + CRC_BYTES)
            break;
        const size_t data = n - HEADER_BYTES - CRC_BYTES;
        if (o->crc)
            r->sum ^= crc32(UINT32_MAX, p, n - CRC_BYTES);
        if (o->place) {
            if (r->at + data > REGION_BYTES)
                r->at = 0;
            memcpy(region + r->at, p + HEADER_BYTES, data);
            r->at += data;
        }
    }
}

/* Back on the path by which the last packets came: its source port is ours for the way back. */
static void work_answer(struct receiver *r, const struct sockaddr_in6 *from,
                        const struct options *o)
{
    uint8_t answer[ANSWER_BYTES] = {0};
    const int lane = ntohs(from->sin6_port) - o->loop.sport;
    if (r->c.packets - r->answered < ANSWER_EACH || lane < 0 || lane >= LOOP_SOCKETS_MAX)
        return;
    if (r->lanes[lane] == 0) {
        struct sockaddr_in6 to = *from;
        to.sin6_port = htons(ANSWER_PORT);
        r->lanes[lane] = loop_lane(&to, ntohs(from->sin6_port), ANSWER_BYTES, 1);
    }
    memcpy(answer, &r->c.packets, sizeof r->c.packets);
    if (send(r->lanes[lane], answer, sizeof answer, MSG_DONTWAIT) == ANSWER_BYTES)
        r->answered = r->c.packets;
}

static void work_recv(const struct sockaddr_in6 *local, const struct options *o)
{
    static uint8_t buf[LOOP_BATCH_MAX][LOOP_MESSAGE_MAX + 1];
    static uint8_t control[LOOP_BATCH_MAX][CMSG_SPACE(sizeof(int))];
    static struct receiver r;
    struct sockaddr_in6 from[LOOP_BATCH_MAX];
    struct mmsghdr msgs[LOOP_BATCH_MAX];
    struct iovec iov[LOOP_BATCH_MAX];
    const size_t room = o->peek ? PEEK_BYTES : sizeof buf[0];
    const int flags = MSG_DONTWAIT | (o->peek ? MSG_TRUNC : 0);
    double first = 0;
    double last = 0;
    int fd = loop_socket(local, NULL);
    loop_buffer(fd, SO_RCVBUFFORCE, SO_RCVBUF, LOOP_RCVBUF_BYTES);
    loop_set(fd, SOL_UDP, UDP_GRO, 1, "UDP_GRO");
    puts("ready");
    fflush(stdout);
    for (;;) {
        for (int i = 0; i < LOOP_BATCH_MAX; i++) {
            iov[i] = (struct iovec){buf[i], room};
            msgs[i].msg_hdr = (struct msghdr){.msg_name = &from[i],
                                              .msg_namelen = sizeof from[i],
                                              .msg_iov = &iov[i],
                                              .msg_iovlen = 1,
                                              .msg_control = control[i],
                                              .msg_controllen = sizeof control[i]};
        }
        int n = recvmmsg(fd, msgs, LOOP_BATCH_MAX, flags, NULL);
        if (n < 0 && errno != EAGAIN && errno != EINTR)
            loop_die("recvmmsg");
        if (n < 0) {
            struct pollfd p = {fd, POLLIN, 0};
            if (poll(&p, 1, r.c.packets != 0 ? LOOP_IDLE_MS : LOOP_FIRST_MS) == 0)
                break;
            continue;
        }
        last = loop_now();
        first = r.c.packets == 0 ? last : first;
        r.c.calls++;
        for (int i = 0; i < n; i++) {
            const size_t len = msgs[i].msg_len;
            if (!o->peek)
                work_take(&r, o, buf[i], len, loop_segment(&msgs[i].msg_hdr, len));
            r.c.packets += loop_segments(&msgs[i].msg_hdr, len);
            r.c.bytes += len;
            if (o->answer)
                work_answer(&r, &from[i], o);
        }
    }
    region[0] = (uint8_t)r.sum; /* the sums are wanted */
    r.c.seconds = last - first;
    loop_print(&r.c);
}

/* -- sender -------------------------------------------------------------------------------------
 */

/* A message: the datagrams of a train. */
struct train {
    uint8_t headers[SEGMENTS_MAX][HEADER_BYTES];
    uint8_t sums[SEGMENTS_MAX][CRC_BYTES];
    struct iovec iov[3 * SEGMENTS_MAX];
};

struct sender {
    struct counts c;
    size_t at; /* in the region */
    int answers;
    uint64_t arrived; /* packets that are answered, or given up */
    struct train trains[LOOP_BATCH_MAX];
    struct mmsghdr msgs[LOOP_BATCH_MAX];
};

/* Header, data, CRC of each datagram of a train. */
static void work_gather(struct sender *s, struct train *t, const struct options *o)
{
    const size_t data = (size_t)o->loop.size_bytes - HEADER_BYTES - CRC_BYTES;
    for (int i = 0; i < o->loop.segments; i++) {
        struct iovec *iov = &t->iov[3 * i];
        if (s->at + data > REGION_BYTES)
            s->at = 0;
        if (o->crc) {
            uint32_t reg = crc32(UINT32_MAX, t->headers[i], HEADER_BYTES);
            mrc_icrc_end(crc32(reg, region + s->at, data), t->sums[i]);
        }
        iov[0] = (struct iovec){t->headers[i], HEADER_BYTES};
        iov[1] = (struct iovec){region + s->at, data};
        iov[2] = (struct iovec){t->sums[i], CRC_BYTES};
        s->at += data;
    }
}

static void work_read_answers(struct sender *s, const struct options *o)
{
    const int64_t size = o->loop.size_bytes;
    uint8_t answer[ANSWER_BYTES];
    for (;;) {
        while (recv(s->answers, answer, sizeof answer, MSG_DONTWAIT) == ANSWER_BYTES) {
            uint64_t arrived;
            memcpy(&arrived, answer, sizeof arrived);
            s->arrived = arrived > s->arrived ? arrived : s->arrived;
        }
        if (o->window_bytes == 0 || (int64_t)(s->c.packets - s->arrived) * size < o->window_bytes)
            return;
        struct pollfd p = {s->answers, POLLIN, 0};
        if (poll(&p, 1, STUCK_MS) == 0)
            s->arrived = s->c.packets;
    }
}

/* Completions of zero-copy sends: the kernel says whether it copied after all. */
static void work_reap(struct sender *s, int fd)
{
    uint8_t control[128];
    struct msghdr m = {.msg_control = control, .msg_controllen = sizeof control};
    while (recvmsg(fd, &m, MSG_ERRQUEUE | MSG_DONTWAIT) == 0) {
        struct cmsghdr *c = CMSG_FIRSTHDR(&m);
        struct sock_extended_err e = {0};
        if (c != NULL && c->cmsg_len >= CMSG_LEN(sizeof e))
            memcpy(&e, CMSG_DATA(c), sizeof e);
        if (e.ee_origin == SO_EE_ORIGIN_ZEROCOPY && (e.ee_code & SO_EE_CODE_ZEROCOPY_COPIED) != 0)
            s->c.copied += e.ee_data - e.ee_info + 1;
        m.msg_controllen = sizeof control;
    }
}

static void work_send(const struct sockaddr_in6 *peer, const struct options *o)
{
    static struct sender s;
    static uint8_t message[LOOP_MESSAGE_MAX];
    const struct sockaddr_in6 any = {.sin6_family = AF_INET6, .sin6_port = htons(ANSWER_PORT)};
    const size_t bytes = (size_t)(o->loop.size_bytes * o->loop.segments);
    int fds[LOOP_SOCKETS_MAX];
    int turn = 0;
    if (o->answer)
        s.answers = loop_socket(&any, NULL);
    for (int i = 0; i < o->loop.sockets; i++) {
        fds[i] = loop_lane(peer, o->loop.sport + i, o->loop.size_bytes, o->loop.segments);
        if (o->zerocopy)
            loop_set(fds[i], SOL_SOCKET, SO_ZEROCOPY, 1, "SO_ZEROCOPY");
    }
    for (int i = 0; i < o->loop.batch; i++) {
        struct msghdr *m = &s.msgs[i].msg_hdr;
        m->msg_iov = s.trains[i].iov;
        m->msg_iovlen = o->region ? 3 * (size_t)o->loop.segments : 1;
        m->msg_iov[0] = (struct iovec){message, bytes};
    }
    const double start = loop_now();
    do {
        for (int i = 0; i < o->loop.batch && o->region; i++)
            work_gather(&s, &s.trains[i], o);
        const int n =
            sendmmsg(fds[turn], s.msgs, (unsigned)o->loop.batch, o->zerocopy ? MSG_ZEROCOPY : 0);
        if (n < 0 && errno != ENOBUFS && errno != EAGAIN && errno != EINTR)
            loop_die("sendmmsg");
        if (o->zerocopy)
            work_reap(&s, fds[turn]);
        turn = turn + 1 == o->loop.sockets ? 0 : turn + 1;
        s.c.calls++;
        s.c.refused += n < 0;
        s.c.packets += n < 0 ? 0 : (uint64_t)(n * o->loop.segments);
        s.c.bytes += n < 0 ? 0 : (uint64_t)n * bytes;
        if (o->answer)
            work_read_answers(&s, o);
    } while ((s.c.calls & 15) != 0 || loop_now() < start + o->loop.seconds);
    s.c.seconds = loop_now() - start;
    loop_print(&s.c);
}

static struct options work_options(int argc, char **argv)
{
    struct options o = {.loop = LOOP_DEFAULTS};
    int opt;
    while ((opt = getopt(argc, argv, LOOP_LETTERS "RPCAZXW:")) != -1) {
        switch (opt) {
        case 'R': o.region = true; break;
        case 'P': o.place = true; break;
        case 'C': o.crc = true; break;
        case 'A': o.answer = true; break;
        case 'Z': o.zerocopy = true; break;
        case 'X': o.peek = true; break;
        case 'W': o.window_bytes = 1000 * (int64_t)loop_number(optarg, 1, 1 << 20); break;
        default:
            if (!loop_option(&o.loop, opt, optarg))
                exit(1);
        }
    }
    loop_check(&o.loop);
    if (o.loop.size_bytes <= HEADER_BYTES + CRC_BYTES || o.loop.size_bytes > REGION_BYTES) {
        fprintf(stderr, "work: a datagram has more than %d bytes\n", HEADER_BYTES + CRC_BYTES);
        exit(1);
    }
    return o;
}

int main(int argc, char **argv)
{
    struct sockaddr_in6 addr = {.sin6_family = AF_INET6};
    if (argc < 4 || inet_pton(AF_INET6, argv[2], &addr.sin6_addr) != 1) {
        fputs("usage: work send|recv IPV6-ADDRESS PORT [options], see the top of work.c\n", stderr);
        return 1;
    }
    addr.sin6_port = htons((uint16_t)loop_number(argv[3], 1, 65535));
    const struct options o = work_options(argc - 3, argv + 3);
    crc32 = mrc_crc32_select();
    for (size_t i = 0; i < REGION_BYTES; i++)
        region[i] = (uint8_t)(i * 31);
    if (strcmp(argv[1], "recv") == 0)
        work_recv(&addr, &o);
    else
        work_send(&addr, &o);
    return 0;
}
