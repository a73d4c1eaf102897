/* SPDX-License-Identifier: BSD-2-Clause */
/* What waiting costs: the ping-pong of ping.c, its client waiting in another way each time.
 *
 *   wake serve ADDR PORT                       answers, and never sleeps
 *   wake go ADDR PORT -m WAY [-t SECONDS] [-s BYTES]
 *   wake hand -m eventfd|futex [-t SECONDS]    two threads of one core, there and back, no network
 *
 *   spin          ask the socket until something is there
 *   epoll         epoll_wait, then ask: an event loop's way
 *   uring         send and receive are one call of io_uring
 *   eventfd       a thread waits in recv and wakes us by eventfd and epoll
 *   futex         the same by futex
 *   spin-eventfd  the same by eventfd; the thread asks the socket without a pause
 *
 * Prints what round trips took as one JSON object. */
#include <linux/futex.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>

#include "../loop.h"
#include "../quantile.h"

#if __has_include(<linux/io_uring.h>)
#include <linux/io_uring.h>
#endif
#ifdef IORING_SEND_ZC_REPORT_USAGE
#include "uring.h"
#endif

enum way { SPIN, EPOLL, URING, EVENTFD, FUTEX, SPIN_EVENTFD, WAYS };
static const char *const names[WAYS] = {"spin",    "epoll", "uring",
                                        "eventfd", "futex", "spin-eventfd"};

/* Wakes another thread: a counter that it waits for, or an eventfd in an epoll set. */
struct bell {
    enum way way;
    int fd;
    int set;
    _Atomic uint32_t rung;
};

struct wake {
    enum way way;
    int fd; /* socket */
    int set;
    size_t bytes;
    struct bell there;
    struct bell back;
};

static uint8_t out[LOOP_MESSAGE_MAX];
static uint8_t in[LOOP_MESSAGE_MAX];

static uint64_t wake_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static int wake_watch(int fd)
{
    struct epoll_event e = {.events = EPOLLIN};
    int set = epoll_create1(EPOLL_CLOEXEC);
    if (set < 0 || epoll_ctl(set, EPOLL_CTL_ADD, fd, &e) != 0)
        loop_die("epoll");
    return set;
}

static void wake_sleep(int set)
{
    struct epoll_event e;
    if (epoll_wait(set, &e, 1, LOOP_IDLE_MS) != 1)
        loop_die("epoll_wait");
}

static void bell_hang(struct bell *b, enum way way)
{
    b->way = way == SPIN_EVENTFD ? EVENTFD : way;
    b->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (b->fd < 0)
        loop_die("eventfd");
    b->set = wake_watch(b->fd);
}

static void bell_ring(struct bell *b)
{
    if (b->way == EVENTFD) {
        if (eventfd_write(b->fd, 1) != 0)
            loop_die("eventfd");
        return;
    }
    atomic_fetch_add(&b->rung, 1);
    syscall(SYS_futex, &b->rung, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

/* Until it has been rung once more than `heard` times. */
static void bell_wait(struct bell *b, uint32_t heard)
{
    eventfd_t n;
    if (b->way == EVENTFD) {
        wake_sleep(b->set);
        if (eventfd_read(b->fd, &n) != 0)
            loop_die("eventfd");
        return;
    }
    while (atomic_load(&b->rung) == heard)
        syscall(SYS_futex, &b->rung, FUTEX_WAIT_PRIVATE, heard, NULL, NULL, 0);
}

/* The thread that receives for us. */
static void *wake_pump(void *arg)
{
    struct wake *w = arg;
    const int flags = w->way == SPIN_EVENTFD ? MSG_DONTWAIT : 0;
    for (;;) {
        if (recv(w->fd, in, sizeof in, flags) >= 0)
            bell_ring(&w->back);
        else if (errno != EAGAIN)
            return NULL;
    }
}

static void *wake_echo(void *arg)
{
    struct wake *w = arg;
    for (uint32_t heard = 0;; heard++) {
        bell_wait(&w->there, heard);
        bell_ring(&w->back);
    }
    return NULL;
}

static void wake_thread(struct wake *w, void *(*work)(void *))
{
    pthread_t t;
    bell_hang(&w->there, w->way);
    bell_hang(&w->back, w->way);
    if (pthread_create(&t, NULL, work, w) != 0)
        loop_die("pthread_create");
}

static void wake_send(const struct wake *w)
{
    if (send(w->fd, out, w->bytes, 0) < 0)
        loop_die("send");
}

static void wake_spin(const struct wake *w)
{
    const uint64_t end = wake_now() + LOOP_IDLE_MS * 1000000ull;
    while (recv(w->fd, in, sizeof in, MSG_DONTWAIT) < 0)
        if (errno != EAGAIN || wake_now() > end)
            loop_die("recv");
}

#ifdef IORING_SEND_ZC_REPORT_USAGE
static struct uring ring;

static void wake_uring(const struct wake *w)
{
    struct io_uring_cqe *e;
    struct io_uring_sqe *s = uring_next(&ring);
    *s = (struct io_uring_sqe){.opcode = IORING_OP_SEND,
                               .fd = w->fd,
                               .addr = (uint64_t)(uintptr_t)out,
                               .len = (uint32_t)w->bytes};
    s = uring_next(&ring);
    *s = (struct io_uring_sqe){
        .opcode = IORING_OP_RECV, .fd = w->fd, .addr = (uint64_t)(uintptr_t)in, .len = sizeof in};
    if (!uring_enter(&ring, 2, LOOP_IDLE_MS))
        loop_die("io_uring");
    for (; (e = uring_peek(&ring)) != NULL; uring_seen(&ring))
        if (e->res < 0)
            loop_die("io_uring");
}

static void wake_uring_open(void)
{
    if (!uring_open(&ring, 8))
        loop_die("io_uring");
}
#else
static void wake_uring(const struct wake *w) { (void)w; }
static void wake_uring_open(void) { loop_die("io_uring"); }
#endif

/* One round trip; `before` is how many there have been. */
static void wake_trip(struct wake *w, uint32_t before)
{
    switch (w->way) {
    case SPIN:
        wake_send(w);
        wake_spin(w);
        return;
    case EPOLL:
        wake_send(w);
        wake_sleep(w->set);
        wake_spin(w);
        return;
    case URING: wake_uring(w); return;
    case EVENTFD:
    case FUTEX:
    case SPIN_EVENTFD:
        wake_send(w);
        bell_wait(&w->back, before);
        return;
    case WAYS:
    default: abort();
    }
}

static void wake_go(struct wake *w, const struct sockaddr_in6 *to, double seconds)
{
    const struct sockaddr_in6 any = {.sin6_family = AF_INET6};
    struct quantile taken = {0};
    uint32_t trips = 0;
    uint64_t now;
    if (to != NULL) {
        w->fd = loop_socket(&any, to);
        w->set = wake_watch(w->fd);
    }
    if (w->way == URING)
        wake_uring_open();
    if (to == NULL || w->way >= EVENTFD)
        wake_thread(w, to == NULL ? wake_echo : wake_pump);
    const uint64_t end = wake_now() + (uint64_t)(seconds * 1e9);
    while ((now = wake_now()) < end) {
        if (to != NULL) {
            wake_trip(w, trips);
        } else {
            bell_ring(&w->there);
            bell_wait(&w->back, trips);
        }
        trips++;
        quantile_add(&taken, wake_now() - now);
    }
    quantile_print(&taken);
}

_Noreturn static void wake_serve(const struct sockaddr_in6 *at)
{
    struct sockaddr_in6 from;
    const int fd = loop_socket(at, NULL);
    puts("ready");
    fflush(stdout);
    for (;;) {
        socklen_t len = sizeof from;
        ssize_t n = recvfrom(fd, in, sizeof in, MSG_DONTWAIT, (struct sockaddr *)&from, &len);
        if (n >= 0)
            n = sendto(fd, in, (size_t)n, 0, (const struct sockaddr *)&from, len);
        if (n < 0 && errno != EAGAIN)
            loop_die("answer");
    }
}

static enum way wake_way(const char *name)
{
    for (enum way w = SPIN; w < WAYS; w++)
        if (strcmp(name, names[w]) == 0)
            return w;
    fprintf(stderr, "wake: %s: no such way\n", name);
    exit(1);
}

int main(int argc, char **argv)
{
    struct sockaddr_in6 addr = {.sin6_family = AF_INET6};
    struct loop_options o = LOOP_DEFAULTS;
    struct wake w = {.way = WAYS};
    const bool hand = argc > 1 && strcmp(argv[1], "hand") == 0;
    const int words = hand ? 1 : 3;
    int opt;
    if (argc <= words || (!hand && inet_pton(AF_INET6, argv[2], &addr.sin6_addr) != 1)) {
        fputs("usage: wake serve|go IPV6-ADDRESS PORT, or hand; see the top of wake.c\n", stderr);
        return 1;
    }
    if (!hand)
        addr.sin6_port = htons((uint16_t)loop_number(argv[3], 1, 65535));
    while ((opt = getopt(argc - words, argv + words, LOOP_LETTERS "m:")) != -1) {
        if (opt == 'm')
            w.way = wake_way(optarg);
        else if (!loop_option(&o, opt, optarg))
            return 1;
    }
    w.bytes = (size_t)o.size_bytes;
    if (strcmp(argv[1], "serve") == 0)
        wake_serve(&addr);
    if (w.way == WAYS || (hand && w.way != EVENTFD && w.way != FUTEX)) {
        fputs("wake: -m says how\n", stderr);
        return 1;
    }
    wake_go(&w, hand ? NULL : &addr, o.seconds);
    return 0;
}
