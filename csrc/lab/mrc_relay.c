/* SPDX-License-Identifier: BSD-2-Clause */
/* Delay on a link of the lab, without netem: the relay takes packets from the end of a link, keeps
 * them, and puts them into its beginning again, where they pass for the packets they are.
 *
 * A filter at the end of the link drops what comes without RELAY_BIT in the source address; a
 * packet socket there sees packets before the filter does. What the relay sends has the bit, and
 * passes. Both sockets are opened by whoever may; here it takes no privilege. Packets come in by a
 * ring that no socket buffer limits, single (trains are cut up before), with the kernel's note on
 * an unfinished checksum in front, which goes back with them.
 *
 * One thread. Called by ctypes: mrc_relay_new, _add, _set, _end, and _run until the control
 * descriptor is readable. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "mrc_relay.h"

#include <errno.h>
#include <linux/if_packet.h>
#include <linux/virtio_net.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

enum {
    RELAY_LINKS_MAX = 1024,
    RELAY_FRAMES = 256,    /* of a ring: 8 ms at 500 Mbit/s with 4 KB packets */
    RELAY_BLOCK = 1 << 20, /* bytes of a piece of a ring */
    RELAY_BATCH = 64,      /* packets in one system call */
    RELAY_BIT = 0x04,      /* of the source address's first byte */
    RELAY_SOURCE = 6,      /* where that byte is in a frame */
    RELAY_VNET = sizeof(struct virtio_net_hdr),
    RELAY_BYTES_MAX = 256 << 20, /* kept at a time, all links together */
};

struct relay_packet {
    uint64_t due_ns;
    uint64_t number; /* those due at one time leave in the order they came */
    uint32_t link;
    uint32_t len_bytes;
    uint8_t bytes[]; /* virtio_net_hdr, then the frame */
};

struct relay_link {
    int rx; /* -1: takes nothing more */
    int tx; /* -1: free */
    uint8_t *ring;
    size_t ring_bytes;
    uint32_t frame_bytes;
    uint32_t frames;
    uint32_t next;
    uint32_t kept; /* packets on their way */
    uint64_t delay_ns;
    uint64_t jitter_ns;
};

struct mrc_relay {
    int epoll;
    int timer;
    struct relay_link links[RELAY_LINKS_MAX];
    struct relay_packet **heap;
    uint32_t heap_len;
    uint32_t heap_room;
    uint64_t bytes_kept;
    uint64_t numbers;
    uint64_t random;
    uint64_t armed_ns;
    struct mrc_relay_stats stats;
};

static uint64_t relay_now(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* ---- the packets that wait ---- */

static bool relay_before(const struct relay_packet *a, const struct relay_packet *b)
{
    return a->due_ns != b->due_ns ? a->due_ns < b->due_ns : a->number < b->number;
}

static bool relay_push(struct mrc_relay *r, struct relay_packet *p)
{
    if (r->heap_len == r->heap_room) {
        const uint32_t room = r->heap_room == 0 ? 1024 : r->heap_room * 2;
        struct relay_packet **grown = realloc(r->heap, room * sizeof(struct relay_packet *));
        if (grown == NULL)
            return false;
        r->heap = grown;
        r->heap_room = room;
    }
    uint32_t i = r->heap_len++;
    while (i > 0 && relay_before(p, r->heap[(i - 1) / 2])) {
        r->heap[i] = r->heap[(i - 1) / 2];
        i = (i - 1) / 2;
    }
    r->heap[i] = p;
    return true;
}

static struct relay_packet *relay_pop(struct mrc_relay *r)
{
    struct relay_packet *first = r->heap[0];
    struct relay_packet *last = r->heap[--r->heap_len];
    uint32_t i = 0;
    for (;;) {
        uint32_t child = 2 * i + 1;
        if (child >= r->heap_len)
            break;
        if (child + 1 < r->heap_len && relay_before(r->heap[child + 1], r->heap[child]))
            child++;
        if (!relay_before(r->heap[child], last))
            break;
        r->heap[i] = r->heap[child];
        i = child;
    }
    if (r->heap_len > 0)
        r->heap[i] = last;
    return first;
}

/* xorshift64: only how much later a packet comes depends on it. */
static uint64_t relay_random_below(struct mrc_relay *r, uint64_t limit)
{
    r->random ^= r->random << 13;
    r->random ^= r->random >> 7;
    r->random ^= r->random << 17;
    return limit == 0 ? 0 : r->random % limit;
}

/* ---- in ---- */

static void relay_keep(struct mrc_relay *r, uint32_t id, const uint8_t *bytes, uint32_t len)
{
    struct relay_link *l = &r->links[id];
    struct relay_packet *p = NULL;
    if (r->bytes_kept + len <= RELAY_BYTES_MAX)
        p = malloc(sizeof *p + len);
    if (p == NULL) {
        r->stats.no_room++;
        return;
    }
    p->due_ns = relay_now() + l->delay_ns + relay_random_below(r, l->jitter_ns + 1);
    p->number = r->numbers++;
    p->link = id;
    p->len_bytes = len;
    memcpy(p->bytes, bytes, len);
    p->bytes[RELAY_VNET + RELAY_SOURCE] |= RELAY_BIT;
    if (!relay_push(r, p)) {
        free(p);
        r->stats.no_room++;
        return;
    }
    r->bytes_kept += len;
    l->kept++;
}

static void relay_receive(struct mrc_relay *r, uint32_t id)
{
    struct relay_link *l = &r->links[id];
    for (uint32_t n = 0; n < l->frames; n++) {
        uint8_t *frame = l->ring + (size_t)l->next * l->frame_bytes;
        struct tpacket2_hdr *h = (struct tpacket2_hdr *)(void *)frame;
        const uint32_t status = __atomic_load_n(&h->tp_status, __ATOMIC_ACQUIRE);
        if ((status & TP_STATUS_USER) == 0)
            return;
        if (h->tp_snaplen == h->tp_len && h->tp_len > RELAY_SOURCE)
            relay_keep(r, id, frame + h->tp_mac - RELAY_VNET, h->tp_snaplen + RELAY_VNET);
        else
            r->stats.too_long++;
        __atomic_store_n(&h->tp_status, TP_STATUS_KERNEL, __ATOMIC_RELEASE);
        l->next = (l->next + 1) % l->frames;
    }
}

/* ---- out ---- */

static void relay_free_link(struct relay_link *l)
{
    if (l->rx < 0 && l->kept == 0 && l->tx >= 0) {
        close(l->tx);
        l->tx = -1;
    }
}

static void relay_send(struct mrc_relay *r, struct relay_packet **batch, uint32_t count)
{
    struct mmsghdr msgs[RELAY_BATCH] = {0};
    struct iovec iov[RELAY_BATCH];
    struct relay_link *l = &r->links[batch[0]->link];
    for (uint32_t i = 0; i < count; i++) {
        iov[i] = (struct iovec){batch[i]->bytes, batch[i]->len_bytes};
        msgs[i].msg_hdr = (struct msghdr){.msg_iov = &iov[i], .msg_iovlen = 1};
    }
    for (uint32_t sent = 0; sent < count;) {
        const int n = sendmmsg(l->tx, msgs + sent, count - sent, 0);
        if (n > 0) {
            sent += (uint32_t)n;
            r->stats.relayed += (uint64_t)n;
        } else if (errno != EINTR) {
            r->stats.refused++; /* the interface is down, or has no room: that one is lost */
            sent++;
        }
    }
    for (uint32_t i = 0; i < count; i++) {
        r->bytes_kept -= batch[i]->len_bytes;
        free(batch[i]);
    }
    l->kept -= count;
    relay_free_link(l);
}

/* All that is due, neighbours of one link together. */
static void relay_send_due(struct mrc_relay *r)
{
    struct relay_packet *batch[RELAY_BATCH];
    uint32_t count = 0;
    const uint64_t now = relay_now();
    while (r->heap_len > 0 && r->heap[0]->due_ns <= now) {
        struct relay_packet *p = relay_pop(r);
        if (count > 0 && (count == RELAY_BATCH || batch[0]->link != p->link)) {
            relay_send(r, batch, count);
            count = 0;
        }
        batch[count++] = p;
    }
    if (count > 0)
        relay_send(r, batch, count);
}

static void relay_arm(struct mrc_relay *r)
{
    const uint64_t due_ns = r->heap_len > 0 ? r->heap[0]->due_ns : 0;
    if (due_ns == r->armed_ns)
        return;
    const struct itimerspec at = {.it_value = {.tv_sec = (time_t)(due_ns / 1000000000u),
                                               .tv_nsec = (long)(due_ns % 1000000000u)}};
    (void)timerfd_settime(r->timer, TFD_TIMER_ABSTIME, &at, NULL);
    r->armed_ns = due_ns;
}

/* ---- the doors ---- */

struct mrc_relay *mrc_relay_new(uint64_t seed)
{
    struct mrc_relay *r = calloc(1, sizeof *r);
    if (r == NULL)
        return NULL;
    r->random = seed | 1;
    r->epoll = epoll_create1(EPOLL_CLOEXEC);
    r->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    for (uint32_t i = 0; i < RELAY_LINKS_MAX; i++)
        r->links[i].rx = r->links[i].tx = -1;
    struct epoll_event timer = {.events = EPOLLIN, .data.u32 = RELAY_LINKS_MAX};
    if (r->epoll < 0 || r->timer < 0 || epoll_ctl(r->epoll, EPOLL_CTL_ADD, r->timer, &timer) != 0)
        return NULL;
    return r;
}

static int relay_open_ring(struct relay_link *l, int rx, uint32_t mtu_bytes)
{
    const int version = TPACKET_V2;
    const int on = 1;
    uint32_t frame = 2048;
    while (frame < mtu_bytes + 256) /* link header, both notes of the kernel */
        frame *= 2;
    struct tpacket_req req = {.tp_block_size = RELAY_BLOCK,
                              .tp_frame_size = frame,
                              .tp_block_nr = frame * RELAY_FRAMES / RELAY_BLOCK,
                              .tp_frame_nr = RELAY_FRAMES};
    if (req.tp_block_nr == 0) {
        req.tp_block_nr = 1;
        req.tp_frame_nr = RELAY_BLOCK / frame;
    }
    if (setsockopt(rx, SOL_PACKET, PACKET_VERSION, &version, sizeof version) != 0 ||
        setsockopt(rx, SOL_PACKET, PACKET_VNET_HDR, &on, sizeof on) != 0 ||
        setsockopt(rx, SOL_PACKET, PACKET_RX_RING, &req, sizeof req) != 0)
        return -errno;
    const size_t bytes = (size_t)req.tp_block_size * req.tp_block_nr;
    void *ring = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, rx, 0);
    if (ring == MAP_FAILED)
        return -errno;
    *l = (struct relay_link){.rx = rx,
                             .tx = -1,
                             .ring = ring,
                             .ring_bytes = bytes,
                             .frame_bytes = frame,
                             .frames = req.tp_frame_nr};
    return 0;
}

int mrc_relay_add(struct mrc_relay *r, int rx, int tx, uint32_t mtu_bytes)
{
    uint32_t id = 0;
    const int on = 1;
    while (id < RELAY_LINKS_MAX && r->links[id].tx >= 0)
        id++;
    if (id == RELAY_LINKS_MAX)
        return -ENOSPC;
    const int error = relay_open_ring(&r->links[id], rx, mtu_bytes);
    if (error != 0)
        return error;
    struct epoll_event event = {.events = EPOLLIN, .data.u32 = id};
    if (setsockopt(tx, SOL_PACKET, PACKET_VNET_HDR, &on, sizeof on) != 0 ||
        setsockopt(tx, SOL_PACKET, PACKET_QDISC_BYPASS, &on, sizeof on) != 0 ||
        epoll_ctl(r->epoll, EPOLL_CTL_ADD, rx, &event) != 0) {
        const int why = errno;
        (void)munmap(r->links[id].ring, r->links[id].ring_bytes);
        close(rx);
        r->links[id] = (struct relay_link){.rx = -1, .tx = -1};
        return -why;
    }
    r->links[id].tx = tx;
    return (int)id;
}

void mrc_relay_set(struct mrc_relay *r, uint32_t id, uint64_t delay_ns, uint64_t jitter_ns)
{
    r->links[id].delay_ns = delay_ns;
    r->links[id].jitter_ns = jitter_ns;
}

void mrc_relay_end(struct mrc_relay *r, uint32_t id)
{
    struct relay_link *l = &r->links[id];
    relay_receive(r, id);
    (void)munmap(l->ring, l->ring_bytes);
    close(l->rx); /* leaves the epoll set with it */
    l->rx = -1;
    relay_free_link(l);
}

void mrc_relay_run(struct mrc_relay *r, int control)
{
    enum { EVENTS = 64, CONTROL = RELAY_LINKS_MAX + 1 };
    struct epoll_event listen = {.events = EPOLLIN, .data.u32 = CONTROL};
    if (epoll_ctl(r->epoll, EPOLL_CTL_ADD, control, &listen) != 0)
        return;
    for (bool asked = false; !asked;) {
        struct epoll_event events[EVENTS];
        relay_arm(r);
        const int n = epoll_wait(r->epoll, events, EVENTS, -1);
        for (int i = 0; i < n; i++) {
            const uint32_t what = events[i].data.u32;
            uint64_t ticks;
            if (what == CONTROL)
                asked = true;
            else if (what == RELAY_LINKS_MAX)
                r->armed_ns = read(r->timer, &ticks, sizeof ticks) > 0 ? 0 : r->armed_ns;
            else if (r->links[what].rx >= 0)
                relay_receive(r, what);
        }
        relay_send_due(r);
    }
    (void)epoll_ctl(r->epoll, EPOLL_CTL_DEL, control, NULL);
}

void mrc_relay_read_stats(const struct mrc_relay *r, struct mrc_relay_stats *out)
{
    *out = r->stats;
}
