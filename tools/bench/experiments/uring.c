/* SPDX-License-Identifier: BSD-2-Clause */
/* The bare loops by io_uring: is it the system call that costs?
 *
 *   uring can                                why not; nothing when it can
 *   uring recv ADDR PORT                     multishot receive into provided buffers, UDP_GRO
 *   uring send ADDR PORT [-z] [-i] [-t SECONDS] [-s BYTES] [-n SOCKETS] [-b BATCH] [-k SEGMENTS]
 *                        [-p SPORT]          -z: SEND_ZC from a registered buffer
 *
 * A turn of the sender is one io_uring_enter for BATCH sends, by registered sockets: all by one,
 * then all by the next, or, with -i, each by the next. Both print one JSON object. */
#include <stdbool.h>

#include "../loop.h"

#if __has_include(<linux/io_uring.h>)
#include <linux/io_uring.h>
#endif

#ifdef IORING_SEND_ZC_REPORT_USAGE
#include "uring.h"

enum {
    ENTRIES = 128,
    BUFFERS = 64, /* a power of two */
    CONTROL_BYTES = CMSG_SPACE(sizeof(int)),
    BUFFER_BYTES = 66 << 10, /* what precedes a message, and the longest one */
};

static uint8_t buffers[BUFFERS][BUFFER_BYTES];
static struct io_uring_buf free_buffers[BUFFERS] __attribute__((aligned(4096)));

static void uring_give(uint16_t id, uint16_t at)
{
    _Atomic uint16_t *tail = (void *)&free_buffers[0].resv; /* the kernel's place for it */
    struct io_uring_buf *b = &free_buffers[at & (BUFFERS - 1)];
    b->addr = (uint64_t)(uintptr_t)buffers[id];
    b->len = BUFFER_BYTES;
    b->bid = id;
    atomic_store_explicit(tail, (uint16_t)(at + 1), memory_order_release);
}

static void uring_listen(struct uring *u, int fd)
{
    static struct msghdr m = {.msg_controllen = CONTROL_BYTES};
    struct io_uring_sqe *s = uring_next(u);
    s->opcode = IORING_OP_RECVMSG;
    s->fd = fd;
    s->addr = (uint64_t)(uintptr_t)&m;
    s->len = 1;
    s->ioprio = IORING_RECV_MULTISHOT;
    s->flags = IOSQE_BUFFER_SELECT;
}

static void uring_count(struct counts *c, uint8_t *p)
{
    struct io_uring_recvmsg_out out;
    memcpy(&out, p, sizeof out);
    struct msghdr m = {.msg_control = p + sizeof out, .msg_controllen = out.controllen};
    c->packets += loop_segments(&m, out.payloadlen);
    c->bytes += out.payloadlen;
}

static void uring_recv(const struct sockaddr_in6 *local)
{
    const struct io_uring_buf_reg reg = {.ring_addr = (uint64_t)(uintptr_t)free_buffers,
                                         .ring_entries = BUFFERS};
    struct counts c = {0};
    struct io_uring_cqe *e;
    struct uring u;
    uint16_t given = 0;
    double first = 0;
    double last = 0;
    int fd = loop_socket(local, NULL);
    loop_buffer(fd, SO_RCVBUFFORCE, SO_RCVBUF, LOOP_RCVBUF_BYTES);
    loop_set(fd, SOL_UDP, UDP_GRO, 1, "UDP_GRO");
    if (!uring_open(&u, ENTRIES) || uring_register(&u, IORING_REGISTER_PBUF_RING, &reg, 1) != 0)
        loop_die("io_uring");
    for (uint16_t i = 0; i < BUFFERS; i++)
        uring_give(i, given++);
    uring_listen(&u, fd);
    puts("ready");
    fflush(stdout);
    while (uring_enter(&u, 1, c.packets != 0 ? LOOP_IDLE_MS : LOOP_FIRST_MS)) {
        last = loop_now();
        c.calls++;
        while ((e = uring_peek(&u)) != NULL) {
            if (e->res < 0 && e->res != -ENOBUFS) {
                errno = -e->res;
                loop_die("receive by io_uring");
            }
            first = c.packets == 0 ? last : first;
            if (e->res >= 0 && (e->flags & IORING_CQE_F_BUFFER) != 0) {
                const uint16_t id = (uint16_t)(e->flags >> IORING_CQE_BUFFER_SHIFT);
                uring_count(&c, buffers[id]);
                uring_give(id, given++);
            }
            if ((e->flags & IORING_CQE_F_MORE) == 0)
                uring_listen(&u, fd);
            uring_seen(&u);
        }
    }
    c.seconds = last - first;
    loop_print(&c);
}

static void uring_ask(struct uring *u, struct msghdr *m, int socket, bool zero_copy)
{
    struct io_uring_sqe *s = uring_next(u);
    s->fd = socket;
    s->flags = IOSQE_FIXED_FILE;
    if (zero_copy) {
        s->opcode = IORING_OP_SEND_ZC;
        s->addr = (uint64_t)(uintptr_t)m->msg_iov->iov_base;
        s->len = (uint32_t)m->msg_iov->iov_len;
        s->ioprio = IORING_RECVSEND_FIXED_BUF | IORING_SEND_ZC_REPORT_USAGE;
    } else {
        s->opcode = IORING_OP_SENDMSG;
        s->addr = (uint64_t)(uintptr_t)m;
        s->len = 1;
    }
}

/* Completions so far: sends, and what became of those without a copy. */
static void uring_reap(struct uring *u, struct counts *c, int segments)
{
    struct io_uring_cqe *e;
    for (; (e = uring_peek(u)) != NULL; uring_seen(u)) {
        if ((e->flags & IORING_CQE_F_NOTIF) != 0) {
            c->copied += ((uint32_t)e->res & IORING_NOTIF_USAGE_ZC_COPIED) != 0;
            continue;
        }
        if (e->res < 0 && e->res != -ENOBUFS && e->res != -EAGAIN) {
            errno = -e->res;
            loop_die("send by io_uring");
        }
        c->refused += e->res < 0;
        c->packets += e->res < 0 ? 0 : (uint64_t)segments;
        c->bytes += e->res < 0 ? 0 : (uint64_t)e->res;
    }
}

static void uring_send(const struct sockaddr_in6 *peer, const struct loop_options *o,
                       bool zero_copy, bool interleaved)
{
    static uint8_t message[LOOP_MESSAGE_MAX];
    int fds[LOOP_SOCKETS_MAX];
    struct iovec iov = {message, (size_t)(o->size_bytes * o->segments)};
    struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1};
    struct counts c = {0};
    struct uring u;
    int turn = 0;
    for (int i = 0; i < o->sockets; i++)
        fds[i] = loop_lane(peer, o->sport + i, o->size_bytes, o->segments);
    if (!uring_open(&u, ENTRIES) ||
        uring_register(&u, IORING_REGISTER_FILES, fds, (unsigned)o->sockets) != 0 ||
        uring_register(&u, IORING_REGISTER_BUFFERS, &iov, 1) != 0)
        loop_die("io_uring");
    const double start = loop_now();
    do {
        for (int i = 0; i < o->batch; i++) {
            uring_ask(&u, &m, turn, zero_copy);
            if (interleaved || i + 1 == o->batch)
                turn = turn + 1 == o->sockets ? 0 : turn + 1;
        }
        uring_enter(&u, (unsigned)o->batch, 0);
        uring_reap(&u, &c, o->segments);
        c.calls++;
    } while ((c.calls & 15) != 0 || loop_now() < start + o->seconds);
    c.seconds = loop_now() - start;
    loop_print(&c);
}

static const char *uring_why_not(void)
{
    struct uring u;
    const struct io_uring_buf_reg reg = {.ring_addr = (uint64_t)(uintptr_t)free_buffers,
                                         .ring_entries = BUFFERS};
    if (!uring_open(&u, ENTRIES))
        return errno == EPERM ? "io_uring is forbidden here" : "this kernel's io_uring is too old";
    if (uring_register(&u, IORING_REGISTER_PBUF_RING, &reg, 1) != 0)
        return "this kernel's io_uring has no rings of buffers";
    return "";
}
#else
static const char *uring_why_not(void)
{
    return "compiled with headers of a kernel older than 6.2";
}
static void uring_recv(const struct sockaddr_in6 *local) { (void)local; }
static void uring_send(const struct sockaddr_in6 *peer, const struct loop_options *o,
                       bool zero_copy, bool interleaved)
{
    (void)peer, (void)o, (void)zero_copy, (void)interleaved;
}
#endif

int main(int argc, char **argv)
{
    struct loop_options o = LOOP_DEFAULTS;
    struct sockaddr_in6 addr = {.sin6_family = AF_INET6};
    const char *why = uring_why_not();
    bool zero_copy = false;
    bool interleaved = false;
    int opt;
    if (argc == 2 && strcmp(argv[1], "can") == 0) {
        puts(why);
        return 0;
    }
    if (*why != '\0' || argc < 4 || inet_pton(AF_INET6, argv[2], &addr.sin6_addr) != 1) {
        fprintf(stderr, "uring: %s\n", *why != '\0' ? why : "see the top of uring.c");
        return 1;
    }
    addr.sin6_port = htons((uint16_t)loop_number(argv[3], 1, 65535));
    while ((opt = getopt(argc - 3, argv + 3, LOOP_LETTERS "zi")) != -1) {
        if (opt == 'z')
            zero_copy = true;
        else if (opt == 'i')
            interleaved = true;
        else if (!loop_option(&o, opt, optarg))
            return 1;
    }
    loop_check(&o);
    if (strcmp(argv[1], "recv") == 0)
        uring_recv(&addr);
    else
        uring_send(&addr, &o, zero_copy, interleaved);
    return 0;
}
