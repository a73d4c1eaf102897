/* SPDX-License-Identifier: BSD-2-Clause */
/* A wire in memory between two ports of one process: packets are copied into a ring, faults are
 * drawn from a seed. A full ring holds the sender back as a full socket does. The two pumps may run
 * in two threads: a lock is held per burst. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "../core/mrc_rand.h"
#include "mrc_io.h"
#include "mrc_pages.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum {
    MEM_FAULTS_MAX = 256, /* EVs with faults of their own */
    MEM_PPM = 1000000,
    MEM_RX_BURST = 64,
    MEM_PKT_MAX = MRC_HDR_MAX + MRC_MTU_MAX + 8,
};

struct mem_slot {
    struct mrc_rx_pkt pkt; /* bytes and port are filled in on arrival */
    uint8_t bytes[MEM_PKT_MAX];
};

struct mem_fault {
    uint32_t ev;
    uint32_t loss_ppm;
    uint32_t dup_ppm;
};

struct mem_end { /* packets on their way to this end */
    struct mem_slot *ring;
    uint64_t head; /* next to deliver; both grow until they meet */
    uint64_t tail;
    int event_fd; /* readable: packets came, or room for what this end wanted to send */
    bool waits;   /* this end was held back by a full ring */
    bool open;    /* a port is attached */
    struct mrc_rand rand;
};

struct mrc_mem_wire {
    pthread_mutex_t lock;
    pid_t pid;     /* whose: a forked child must not wait for a thread that it does not have */
    uint32_t refs; /* creator and attached ports */
    uint32_t room; /* packets each way */
    struct mem_end end[2];
    struct mem_fault all; /* EVs without an entry */
    struct mem_fault faults[MEM_FAULTS_MAX];
    uint32_t fault_count;
};

struct mrc_io_mem {
    struct mrc_io io;
    struct mrc_mem_wire *wire;
    uint8_t me;
    struct mrc_txq kept;
    const struct mrc_tx_pkt *list[MRC_IO_BURST_MAX]; /* scratch of one tx call */
    uint8_t bytes[MEM_RX_BURST][MEM_PKT_MAX];
};

/* ---- the wire ---- */

static void mem_free(struct mrc_mem_wire *w)
{
    for (int i = 0; i < 2; i++) {
        if (w->end[i].event_fd >= 0)
            close(w->end[i].event_fd);
        mrc_pages_put(w->end[i].ring, w->room * sizeof *w->end[i].ring);
    }
    pthread_mutex_destroy(&w->lock);
    free(w);
}

static void mem_unref(struct mrc_mem_wire *w)
{
    if (getpid() != w->pid)
        return;
    pthread_mutex_lock(&w->lock);
    const bool last = --w->refs == 0;
    pthread_mutex_unlock(&w->lock);
    if (last)
        mem_free(w);
}

struct mrc_mem_wire *mrc_mem_wire_create(uint32_t ring, uint64_t seed)
{
    struct mrc_mem_wire *w = calloc(1, sizeof *w);
    if (w == NULL)
        return NULL;
    pthread_mutex_init(&w->lock, NULL);
    w->refs = 1;
    w->pid = getpid();
    w->room = ring != 0 ? ring : 1024;
    bool ok = w->room <= 1u << 20;
    for (uint32_t i = 0; i < 2; i++) {
        struct mem_end *e = &w->end[i];
        e->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        e->ring = ok ? mrc_pages_get(w->room * sizeof *e->ring) : NULL;
        mrc_rand_seed(&e->rand, seed + i);
        ok = ok && e->event_fd >= 0 && e->ring != NULL;
    }
    if (ok)
        return w;
    mem_free(w);
    return NULL;
}

void mrc_mem_wire_destroy(struct mrc_mem_wire *w)
{
    if (w != NULL)
        mem_unref(w);
}

static struct mem_fault *mem_fault(struct mrc_mem_wire *w, uint32_t ev)
{
    for (uint32_t i = 0; i < w->fault_count; i++) {
        if (w->faults[i].ev == ev)
            return &w->faults[i];
    }
    return NULL;
}

int mrc_mem_wire_faults(struct mrc_mem_wire *w, int64_t ev, uint32_t loss_ppm, uint32_t dup_ppm)
{
    int err = MRC_OK;
    if (w == NULL || loss_ppm > MEM_PPM || dup_ppm > MEM_PPM || ev > UINT32_MAX)
        return MRC_ERR_INVAL;
    if (getpid() != w->pid)
        return MRC_ERR_STATE;
    pthread_mutex_lock(&w->lock);
    struct mem_fault *f = ev < 0 ? &w->all : mem_fault(w, (uint32_t)ev);
    if (f == NULL && w->fault_count < MEM_FAULTS_MAX)
        f = &w->faults[w->fault_count++];
    if (f == NULL)
        err = MRC_ERR_FULL;
    else
        *f = (struct mem_fault){(uint32_t)(ev < 0 ? 0 : ev), loss_ppm, dup_ppm};
    pthread_mutex_unlock(&w->lock);
    return err;
}

static void mem_signal(struct mem_end *e)
{
    const uint64_t one = 1;
    (void)!write(e->event_fd, &one, sizeof one);
}

/* ---- port ---- */

static void mem_detach(struct mrc_io_mem *m)
{
    if (getpid() != m->wire->pid)
        return;
    pthread_mutex_lock(&m->wire->lock);
    m->wire->end[m->me].open = false;
    pthread_mutex_unlock(&m->wire->lock);
    mem_unref(m->wire);
}

static int mem_open(struct mrc_io *io, const struct mrc_port_cfg *cfg)
{
    struct mrc_io_mem *m = (struct mrc_io_mem *)io;
    struct mrc_mem_wire *w = cfg->wire;
    if (w == NULL || cfg->mem_end > 1 || w->pid != getpid())
        return mrc_io_fail(io, 0, "a mem port needs a wire and end 0 or 1 of it");
    mrc_txq_init(&m->kept);
    m->wire = w;
    m->me = cfg->mem_end;
    pthread_mutex_lock(&w->lock);
    struct mem_end *e = &w->end[m->me];
    const bool taken = e->open;
    if (!taken) {
        e->open = true;
        w->refs++;
    }
    pthread_mutex_unlock(&w->lock);
    if (taken)
        return mrc_io_fail(io, 0, "end %u of the wire is taken", (unsigned)m->me);
    const int err = mrc_io_watch(io, e->event_fd, EPOLLIN, MRC_IO_RX_TAG);
    if (err < 0) {
        mem_detach(m);
        return mrc_io_fail(io, -err, "cannot watch the wire");
    }
    io->stats.udp_port = cfg->udp_port != 0 ? cfg->udp_port : MRC_UDP_PORT;
    io->stats.sndbuf_bytes = w->room * (uint32_t)sizeof(struct mem_slot);
    io->stats.rcvbuf_bytes = io->stats.sndbuf_bytes;
    io->stats.caps = MRC_IO_CAP_FLOWLABEL | MRC_IO_CAP_OUTER_ECN | MRC_IO_CAP_TRIM;
    return 0;
}

static void mem_close(struct mrc_io *io)
{
    struct mrc_io_mem *m = (struct mrc_io_mem *)io;
    mrc_io_unwatch(io, m->wire->end[m->me].event_fd);
    mem_detach(m);
}

static int mem_lane_open(struct mrc_io *io, uint32_t lane)
{
    (void)io;
    (void)lane;
    return 0;
}

static void mem_lane_close(struct mrc_io *io, uint32_t lane)
{
    mrc_txq_forget_lane(io, &((struct mrc_io_mem *)io)->kept, lane);
}

/* ---- sending ---- */

static void mem_copy(const struct mrc_lane_key *key, const struct mrc_tx_pkt *pkt,
                     struct mem_slot *s)
{
    const uint16_t udp_len = mrc_tx_udp_len(pkt);
    MRC_ASSERT(udp_len - 8u <= MEM_PKT_MAX);
    uint8_t *p = s->bytes;
    memcpy(p, pkt->hdr, pkt->hdr_len);
    p += pkt->hdr_len;
    if (pkt->payload_len > 0)
        memcpy(p, pkt->payload, pkt->payload_len);
    memcpy(p + pkt->payload_len, pkt->tail, pkt->tail_len);
    s->pkt = (struct mrc_rx_pkt){
        .len = udp_len - 8u,
        .udp_len = udp_len,
        .sport = (uint16_t)pkt->ev,
        .dport = key->dport,
        .tclass = pkt->tclass,
        .flow_label = pkt->ev >> 16,
    };
    memcpy(s->pkt.src, key->src, 16);
    memcpy(s->pkt.dst, key->dst, 16);
}

/* Copies this packet takes on the wire: none, one or two. One draw each, so that the sequence for
 * one EV does not depend on the rates of another. */
static uint32_t mem_copies(struct mrc_mem_wire *w, struct mem_end *to, uint32_t ev)
{
    const struct mem_fault *own = mem_fault(w, ev);
    const struct mem_fault *f = own != NULL ? own : &w->all;
    const bool lost = mrc_rand_below(&to->rand, MEM_PPM) < f->loss_ppm;
    const bool twice = mrc_rand_below(&to->rand, MEM_PPM) < f->dup_ppm;
    return lost ? 0 : twice ? 2 : 1;
}

/* Returns how many of list[0..n) are done with; the others must wait for room. */
static size_t mem_send(struct mrc_io_mem *m, size_t n)
{
    struct mrc_io *io = &m->io;
    struct mrc_mem_wire *w = m->wire;
    size_t done = 0;
    pthread_mutex_lock(&w->lock);
    struct mem_end *to = &w->end[1 - m->me];
    const bool was_empty = to->head == to->tail;
    while (done < n && (!to->open || to->tail - to->head + 2 <= w->room)) {
        const struct mrc_tx_pkt *pkt = m->list[done++];
        uint32_t copies = mem_copies(w, to, pkt->ev);
        if (!to->open)
            copies = 0; /* nobody there: like a cable that leads nowhere */
        for (; copies > 0; copies--)
            mem_copy(&io->lanes[pkt->lane].key, pkt, &to->ring[to->tail++ % w->room]);
        io->stats.tx_packets++;
        io->stats.tx_bytes += mrc_tx_udp_len(pkt) - 8u;
    }
    if (done < n) {
        w->end[m->me].waits = true;
        io->stats.tx_blocked++;
    }
    if (was_empty && to->head != to->tail)
        mem_signal(to);
    pthread_mutex_unlock(&w->lock);
    io->stats.tx_calls++;
    io->stats.tx_trains++;
    return done;
}

static void mem_tx(struct mrc_io *io, const struct mrc_tx_pkt *const *pkts, size_t n)
{
    struct mrc_io_mem *m = (struct mrc_io_mem *)io;
    MRC_ASSERT(n <= MRC_IO_BURST_MAX);
    size_t done = 0;
    if (m->kept.count == 0) {
        for (size_t i = 0; i < n; i++)
            m->list[i] = pkts[i];
        done = mem_send(m, n);
    }
    for (; done < n; done++)
        mrc_txq_push(io, &m->kept, pkts[done]);
}

static void mem_resume(struct mrc_io *io, uint32_t lane)
{
    struct mrc_io_mem *m = (struct mrc_io_mem *)io;
    (void)lane;
    while (m->kept.count > 0) {
        const size_t n = mrc_txq_peek(io, &m->kept, m->list, MRC_IO_BURST_MAX);
        const size_t done = mem_send(m, n);
        mrc_txq_drop(io, &m->kept, done);
        if (done < n)
            return;
    }
}

static void mem_forget(struct mrc_io *io, const uint8_t *addr, uint64_t len)
{
    mrc_txq_forget(io, &((struct mrc_io_mem *)io)->kept, addr, len);
}

/* ---- receiving ---- */

/* The descriptor also says that the other side made room, so what was kept goes first. It is read
 * before the ring is looked at: a signal that comes later is then never lost. */
static size_t mem_rx(struct mrc_io *io, struct mrc_rx_pkt *out, size_t max)
{
    struct mrc_io_mem *m = (struct mrc_io_mem *)io;
    struct mrc_mem_wire *w = m->wire;
    size_t got = 0;
    uint64_t count;
    (void)!read(w->end[m->me].event_fd, &count, sizeof count);
    mem_resume(io, UINT32_MAX);
    pthread_mutex_lock(&w->lock);
    struct mem_end *e = &w->end[m->me];
    for (; got < max && got < MEM_RX_BURST && e->head != e->tail; got++) {
        const struct mem_slot *s = &e->ring[e->head++ % w->room];
        out[got] = s->pkt;
        memcpy(m->bytes[got], s->bytes, s->pkt.len);
        out[got].bytes = m->bytes[got];
        out[got].port = io->index;
        io->stats.rx_bytes += s->pkt.len;
    }
    if (e->head == e->tail) {
        io->rx_ready = 0;
        e->head = e->tail = 0; /* the same places again: the others are never touched */
    }
    struct mem_end *peer = &w->end[1 - m->me];
    if (got > 0 && peer->waits) {
        peer->waits = false;
        mem_signal(peer);
    }
    pthread_mutex_unlock(&w->lock);
    io->stats.rx_packets += got;
    io->stats.rx_calls++;
    return got;
}

static uint32_t mem_lane_room(struct mrc_io *io, uint32_t lane)
{
    (void)io;
    (void)lane;
    return UINT32_MAX;
}

const struct mrc_io_ops mrc_io_mem_ops = {
    .name = "mem",
    .state_bytes = sizeof(struct mrc_io_mem),
    .open = mem_open,
    .close = mem_close,
    .lane_open = mem_lane_open,
    .lane_close = mem_lane_close,
    .rx = mem_rx,
    .tx = mem_tx,
    .resume = mem_resume,
    .forget = mem_forget,
    .lane_room = mem_lane_room,
};
