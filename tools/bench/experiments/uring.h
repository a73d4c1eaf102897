/* SPDX-License-Identifier: BSD-2-Clause */
/* An io_uring by plain system calls: liburing need not be there. One thread, completions taken when
 * it asks for them (DEFER_TASKRUN), which is what costs least. */
#ifndef MRC_BENCH_URING_H
#define MRC_BENCH_URING_H

#include <linux/io_uring.h>
#include <stdatomic.h>
#include <sys/syscall.h>

#include "../loop.h"

struct uring {
    int fd;
    unsigned entries;
    unsigned queued; /* submissions the kernel has not been told of */
    _Atomic uint32_t *sq_tail;
    uint32_t sq_mask;
    struct io_uring_sqe *sqes;
    _Atomic uint32_t *cq_head;
    _Atomic uint32_t *cq_tail;
    uint32_t cq_mask;
    struct io_uring_cqe *cqes;
};

static inline void *uring_map(int fd, size_t bytes, uint64_t what)
{
    void *p = loop_map(fd, bytes, what);
    if (p == NULL)
        loop_die("mmap of io_uring");
    return p;
}

/* False with errno: there is none. Ends with its process. */
static inline int uring_open(struct uring *u, unsigned entries)
{
    struct io_uring_params p = {.flags = IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN |
                                         IORING_SETUP_CQSIZE,
                                .cq_entries = 8 * entries};
    u->fd = (int)syscall(__NR_io_uring_setup, entries, &p);
    if (u->fd < 0)
        return 0;
    uint8_t *sq = uring_map(u->fd, p.sq_off.array + p.sq_entries * 4, IORING_OFF_SQ_RING);
    uint8_t *cq =
        uring_map(u->fd, p.cq_off.cqes + p.cq_entries * sizeof *u->cqes, IORING_OFF_CQ_RING);
    u->sqes = uring_map(u->fd, p.sq_entries * sizeof *u->sqes, IORING_OFF_SQES);
    u->entries = p.sq_entries;
    u->queued = 0;
    u->sq_tail = (void *)(sq + p.sq_off.tail);
    u->sq_mask = *(uint32_t *)(void *)(sq + p.sq_off.ring_mask);
    u->cq_head = (void *)(cq + p.cq_off.head);
    u->cq_tail = (void *)(cq + p.cq_off.tail);
    u->cq_mask = *(uint32_t *)(void *)(cq + p.cq_off.ring_mask);
    u->cqes = (void *)(cq + p.cq_off.cqes);
    uint32_t *array = (void *)(sq + p.sq_off.array);
    for (uint32_t i = 0; i < p.sq_entries; i++)
        array[i] = i;
    return 1;
}

/* Something the kernel is told beforehand. */
static inline int uring_register(struct uring *u, unsigned what, const void *arg, unsigned n)
{
    return (int)syscall(__NR_io_uring_register, u->fd, what, arg, n);
}

/* The next submission, all zero; never more than `entries` before uring_enter. */
static inline struct io_uring_sqe *uring_next(struct uring *u)
{
    const uint32_t at = atomic_load_explicit(u->sq_tail, memory_order_relaxed) + u->queued++;
    struct io_uring_sqe *s = &u->sqes[at & u->sq_mask];
    memset(s, 0, sizeof *s);
    return s;
}

/* Submits what is queued and waits for so many completions, at most wait_ms (0: for ever). False:
 * none in time. */
static inline int uring_enter(struct uring *u, unsigned complete, int wait_ms)
{
    struct __kernel_timespec t = {wait_ms / 1000, (wait_ms % 1000) * 1000000LL};
    struct io_uring_getevents_arg arg = {.ts = (uint64_t)(uintptr_t)&t};
    const unsigned flags = IORING_ENTER_GETEVENTS | (wait_ms > 0 ? IORING_ENTER_EXT_ARG : 0);
    atomic_fetch_add_explicit(u->sq_tail, u->queued, memory_order_release);
    const unsigned queued = u->queued;
    u->queued = 0;
    const long n = syscall(__NR_io_uring_enter, u->fd, queued, complete, flags,
                           wait_ms > 0 ? (void *)&arg : NULL, wait_ms > 0 ? sizeof arg : 0);
    if (n < 0 && errno != ETIME && errno != EINTR && errno != EBUSY && errno != EAGAIN)
        loop_die("io_uring_enter");
    return n >= 0 || errno != ETIME;
}

/* The oldest completion, NULL when there is none; uring_seen gives it back. */
static inline struct io_uring_cqe *uring_peek(struct uring *u)
{
    const uint32_t head = atomic_load_explicit(u->cq_head, memory_order_relaxed);
    if (head == atomic_load_explicit(u->cq_tail, memory_order_acquire))
        return NULL;
    return &u->cqes[head & u->cq_mask];
}

static inline void uring_seen(struct uring *u)
{
    atomic_fetch_add_explicit(u->cq_head, 1, memory_order_release);
}

#endif
