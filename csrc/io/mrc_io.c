/* SPDX-License-Identifier: BSD-2-Clause */
/* What every backend has: lanes shared by reference, packets kept while a socket is full, errors as
 * sentences. Lanes and pools are allocated when ports and lanes open, never in a turn. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "mrc_io.h"
#include "mrc_pages.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    IO_LANES_FIRST = 16,
    IO_SLOTS_BYTES = MRC_IO_PENDING_MAX * sizeof(struct mrc_txq_slot),
};
#define IO_NO_SLOT UINT32_MAX

/* ---- errors ---- */

int mrc_io_fail(struct mrc_io *io, int errnum, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int n = vsnprintf(io->error, MRC_IO_ERROR_MAX, format, args);
    va_end(args);
    if (errnum == 0)
        return MRC_ERR_INVAL;
    if (n >= 0 && n < MRC_IO_ERROR_MAX)
        snprintf(io->error + n, (size_t)(MRC_IO_ERROR_MAX - n), ": %s", strerror(errnum));
    return -(1000 + errnum);
}

/* ---- creation ---- */

static const struct mrc_io_ops *io_ops(uint8_t kind)
{
    static const struct mrc_io_ops *const all[] = {
        [MRC_IO_UDP] = &mrc_io_udp_ops,
        [MRC_IO_RAW] = &mrc_io_raw_ops,
        [MRC_IO_MEM] = &mrc_io_mem_ops,
    };
    return kind < sizeof all / sizeof all[0] ? all[kind] : NULL;
}

static bool io_alloc(struct mrc_io *io)
{
    io->slots = mrc_pages_get(IO_SLOTS_BYTES);
    io->lanes = calloc(IO_LANES_FIRST, sizeof *io->lanes);
    io->failed = calloc(IO_LANES_FIRST, sizeof *io->failed);
    io->lane_room = IO_LANES_FIRST;
    if (io->slots == NULL || io->lanes == NULL || io->failed == NULL)
        return false;
    io->slot_free = IO_NO_SLOT;
    io->slot_free_count = MRC_IO_PENDING_MAX;
    return true;
}

static void io_free(struct mrc_io *io)
{
    mrc_pages_put(io->slots, IO_SLOTS_BYTES);
    free(io->lanes);
    free(io->failed);
    mrc_pages_put(io, io->ops->state_bytes);
}

struct mrc_io *mrc_io_open(const struct mrc_port_cfg *cfg, uint8_t index, int epoll_fd, char *error,
                           int *err)
{
    const struct mrc_io_ops *ops = io_ops(cfg->kind);
    if (ops == NULL) {
        snprintf(error, MRC_IO_ERROR_MAX, "port kind %u is unknown", (unsigned)cfg->kind);
        *err = MRC_ERR_INVAL;
        return NULL;
    }
    struct mrc_io *io = mrc_pages_get(ops->state_bytes);
    if (io == NULL) {
        snprintf(error, MRC_IO_ERROR_MAX, "no memory for a port");
        *err = -(1000 + ENOMEM);
        return NULL;
    }
    io->ops = ops;
    io->error = error;
    io->epoll_fd = epoll_fd;
    io->index = index;
    io->scope_id = cfg->scope_id;
    memcpy(io->addr, cfg->addr, sizeof io->addr);
    io->stats.kind = cfg->kind;
    io->sys_sendmmsg = sendmmsg;
    *err = io_alloc(io) ? ops->open(io, cfg) : mrc_io_fail(io, ENOMEM, "port buffers");
    if (*err < 0) {
        io_free(io);
        return NULL;
    }
    return io;
}

void mrc_io_close(struct mrc_io *io, bool watched)
{
    if (!watched)
        io->epoll_fd = -1;
    for (uint32_t i = 0; i < io->lane_count; i++) {
        if (io->lanes[i].refs != 0)
            io->ops->lane_close(io, i);
    }
    io->ops->close(io);
    io_free(io);
}

/* ---- descriptors ---- */

int mrc_io_watch(struct mrc_io *io, int fd, uint32_t events, uint32_t tag)
{
    struct epoll_event ev = {.events = events, .data.u64 = ((uint64_t)io->index << 32) | tag};
    return epoll_ctl(io->epoll_fd, EPOLL_CTL_ADD, fd, &ev) == 0 ? 0 : -errno;
}

void mrc_io_unwatch(struct mrc_io *io, int fd)
{
    if (io->epoll_fd >= 0)
        (void)epoll_ctl(io->epoll_fd, EPOLL_CTL_DEL, fd, NULL);
}

/* ---- source address ---- */

/* Ask the routing table, by a socket that never sends. */
static int io_source_ask(struct mrc_io *io, const struct mrc_peer_addr *peer, uint8_t src[16])
{
    struct sockaddr_in6 sa = {.sin6_family = AF_INET6, .sin6_port = htons(MRC_UDP_PORT)};
    socklen_t len = sizeof sa;
    char text[INET6_ADDRSTRLEN];
    memcpy(&sa.sin6_addr, peer->dst, 16);
    if (IN6_IS_ADDR_LINKLOCAL(&sa.sin6_addr))
        sa.sin6_scope_id = peer->scope_id != 0 ? peer->scope_id : io->scope_id;
    const int fd = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return mrc_io_fail(io, errno, "cannot open an IPv6 UDP socket");
    int err = 0;
    if (connect(fd, (const struct sockaddr *)&sa, sizeof sa) != 0 ||
        getsockname(fd, (struct sockaddr *)&sa, &len) != 0) {
        const int errnum = errno;
        inet_ntop(AF_INET6, peer->dst, text, sizeof text);
        err = mrc_io_fail(io, errnum, "no way to [%s]", text);
    } else {
        memcpy(src, &sa.sin6_addr, 16);
    }
    close(fd);
    return err;
}

int mrc_io_source(struct mrc_io *io, const struct mrc_peer_addr *peer, uint8_t src[16])
{
    static const uint8_t any[16];
    const bool bound = memcmp(io->addr, any, 16) != 0;
    const bool wanted = memcmp(peer->src, any, 16) != 0;
    if (bound && wanted && memcmp(io->addr, peer->src, 16) != 0)
        return mrc_io_fail(io, 0, "the source address is not the one the port receives on");
    if (!bound && !wanted && io->stats.kind != MRC_IO_MEM)
        return io_source_ask(io, peer, src);
    memcpy(src, wanted ? peer->src : io->addr, 16);
    return MRC_OK;
}

/* ---- lanes ---- */

static bool io_key_equal(const struct mrc_lane_key *a, const struct mrc_lane_key *b)
{
    return a->ev == b->ev && a->dport == b->dport && a->scope_id == b->scope_id &&
           a->tmpl_len == b->tmpl_len && memcmp(a->dst, b->dst, sizeof a->dst) == 0 &&
           memcmp(a->src, b->src, sizeof a->src) == 0 && memcmp(a->tmpl, b->tmpl, a->tmpl_len) == 0;
}

static bool io_lanes_grow(struct mrc_io *io)
{
    const uint32_t room = io->lane_room * 2;
    struct mrc_lane *lanes = realloc(io->lanes, room * sizeof *lanes);
    if (lanes == NULL)
        return false;
    io->lanes = lanes;
    uint32_t *failed = realloc(io->failed, room * sizeof *failed);
    if (failed == NULL)
        return false;
    io->failed = failed;
    io->lane_room = room;
    return true;
}

int64_t mrc_io_lane_get(struct mrc_io *io, const struct mrc_lane_key *key)
{
    uint32_t slot = io->lane_count;
    for (uint32_t i = 0; i < io->lane_count; i++) {
        struct mrc_lane *lane = &io->lanes[i];
        if (lane->refs == 0) {
            slot = i;
        } else if (io_key_equal(&lane->key, key)) {
            lane->refs++;
            return i;
        }
    }
    if (slot == io->lane_room && !io_lanes_grow(io))
        return mrc_io_fail(io, ENOMEM, "lane %u", (unsigned)slot);
    struct mrc_lane *lane = &io->lanes[slot];
    memset(lane, 0, sizeof *lane);
    lane->key = *key;
    int err = io->ops->lane_open(io, slot);
    if (err < 0)
        return err;
    lane->refs = 1;
    if (slot == io->lane_count)
        io->lane_count++;
    return slot;
}

void mrc_io_lane_put(struct mrc_io *io, uint32_t lane)
{
    MRC_ASSERT(lane < io->lane_count && io->lanes[lane].refs > 0);
    if (--io->lanes[lane].refs > 0)
        return;
    io->ops->lane_close(io, lane);
    if (!io->lanes[lane].failed)
        return;
    for (uint32_t i = 0; i < io->failed_count; i++) {
        if (io->failed[i] == lane) {
            io->failed[i] = io->failed[--io->failed_count];
            break;
        }
    }
}

void mrc_io_lane_failed(struct mrc_io *io, uint32_t lane, int error)
{
    io->lanes[lane].narrow =
        error == EMSGSIZE && (io->lanes[lane].narrow || !io->lanes[lane].failed);
    if (io->lanes[lane].failed)
        return;
    io->lanes[lane].failed = true;
    MRC_ASSERT(io->failed_count < io->lane_room);
    io->failed[io->failed_count++] = lane;
}

size_t mrc_io_group(struct mrc_io *io, const struct mrc_tx_pkt *const *pkts, size_t n,
                    uint32_t *touched, uint16_t *next)
{
    MRC_ASSERT(n <= MRC_IO_BURST_MAX);
    size_t count = 0;
    io->stamp++;
    for (size_t i = 0; i < n; i++) {
        MRC_ASSERT(pkts[i]->lane < io->lane_count);
        struct mrc_lane *lane = &io->lanes[pkts[i]->lane];
        MRC_ASSERT(lane->refs > 0);
        next[i] = UINT16_MAX;
        if (lane->stamp != io->stamp) {
            lane->stamp = io->stamp;
            lane->first = (uint16_t)i;
            touched[count++] = pkts[i]->lane;
        } else {
            next[lane->last] = (uint16_t)i;
        }
        lane->last = (uint16_t)i;
    }
    return count;
}

/* ---- packets that wait ---- */

void mrc_txq_init(struct mrc_txq *q)
{
    q->head = IO_NO_SLOT;
    q->tail = IO_NO_SLOT;
    q->count = 0;
}

/* One that was used before, if there is one: most ports never need many. */
static uint32_t io_slot_take(struct mrc_io *io)
{
    const uint32_t i = io->slot_free != IO_NO_SLOT           ? io->slot_free
                       : io->slot_fresh < MRC_IO_PENDING_MAX ? io->slot_fresh++
                                                             : IO_NO_SLOT;
    if (i == IO_NO_SLOT)
        return i;
    if (i == io->slot_free)
        io->slot_free = io->slots[i].next;
    io->slot_free_count--;
    return i;
}

bool mrc_txq_push(struct mrc_io *io, struct mrc_txq *q, const struct mrc_tx_pkt *pkt)
{
    const uint32_t i = io_slot_take(io);
    if (i == IO_NO_SLOT) {
        io->stats.tx_errors++;
        io->stats.tx_errno = EAGAIN;
        io->overflowed = true;
        mrc_io_lane_failed(io, pkt->lane, EAGAIN);
        return false;
    }
    struct mrc_txq_slot *slot = &io->slots[i];
    slot->pkt = *pkt;
    slot->next = IO_NO_SLOT;
    if (q->head == IO_NO_SLOT) {
        q->head = i;
        io->queues_held++;
    } else {
        io->slots[q->tail].next = i;
    }
    q->tail = i;
    q->count++;
    return true;
}

size_t mrc_txq_peek(const struct mrc_io *io, const struct mrc_txq *q, const struct mrc_tx_pkt **out,
                    size_t max)
{
    size_t n = 0;
    for (uint32_t i = q->head; i != IO_NO_SLOT && n < max; i = io->slots[i].next)
        out[n++] = &io->slots[i].pkt;
    return n;
}

static void io_slot_give(struct mrc_io *io, uint32_t i)
{
    io->slots[i].next = io->slot_free;
    io->slot_free = i;
    io->slot_free_count++;
}

void mrc_txq_drop(struct mrc_io *io, struct mrc_txq *q, size_t n)
{
    MRC_ASSERT(n <= q->count);
    if (n == 0)
        return;
    for (size_t k = 0; k < n; k++) {
        const uint32_t i = q->head;
        q->head = io->slots[i].next;
        io_slot_give(io, i);
    }
    q->count -= (uint32_t)n;
    if (q->head == IO_NO_SLOT) {
        q->tail = IO_NO_SLOT;
        io->queues_held--;
    }
}

/* One rule for both: what a packet must match to be forgotten. */
struct io_victim {
    const uint8_t *addr; /* NULL: by lane */
    uint64_t len;
    uint32_t lane;
};

static bool io_victim_is(const struct io_victim *v, const struct mrc_tx_pkt *pkt)
{
    if (v->addr == NULL)
        return pkt->lane == v->lane;
    return pkt->payload_len > 0 && (uintptr_t)pkt->payload - (uintptr_t)v->addr < v->len;
}

static void io_txq_filter(struct mrc_io *io, struct mrc_txq *q, const struct io_victim *v)
{
    const bool held = q->head != IO_NO_SLOT;
    uint32_t i = q->head;
    mrc_txq_init(q);
    while (i != IO_NO_SLOT) {
        const uint32_t next = io->slots[i].next;
        if (io_victim_is(v, &io->slots[i].pkt)) {
            io_slot_give(io, i);
        } else {
            if (q->head == IO_NO_SLOT)
                q->head = i;
            else
                io->slots[q->tail].next = i;
            io->slots[i].next = IO_NO_SLOT;
            q->tail = i;
            q->count++;
        }
        i = next;
    }
    if (held && q->head == IO_NO_SLOT)
        io->queues_held--;
}

void mrc_txq_forget(struct mrc_io *io, struct mrc_txq *q, const uint8_t *addr, uint64_t len)
{
    const struct io_victim v = {.addr = addr, .len = len};
    if (addr != NULL)
        io_txq_filter(io, q, &v);
}

void mrc_txq_forget_lane(struct mrc_io *io, struct mrc_txq *q, uint32_t lane)
{
    const struct io_victim v = {.lane = lane};
    io_txq_filter(io, q, &v);
}
