/* SPDX-License-Identifier: BSD-2-Clause */
/* The turn: packets in, time, packets out, timer. One epoll descriptor stands for all sockets, the
 * timer and posted work. A turn is bounded by its budget and allocates nothing. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "mrc_clock.h"
#include "mrc_pump_int.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

enum {
    PUMP_BUDGET = 1024,
    PUMP_PUSH = 32, /* packets that whoever posts sends by himself */
    PUMP_EPOLL = 64,
    PUMP_RX_FLOOR = 16, /* what a burst costs of the budget, however little came out of it */
    PUMP_TAG_TIMER = 0,
    PUMP_TAG_KICK = 1,
};
#define PUMP_SELF UINT32_MAX /* "port" of the pump's own descriptors */
/* A port whose pool is full may hold up the others for so long; then its packets count as lost. */
#define PUMP_STALL_NS (10 * MRC_MSEC)
#define PUMP_RETRY_NS (1 * MRC_MSEC)
#define PUMP_EARLY_NS (200 * MRC_USEC)

/* ---- creation ---- */

static int pump_watch(struct mrc_pump *p, int fd, uint32_t tag)
{
    struct epoll_event ev = {.events = EPOLLIN, .data.u64 = ((uint64_t)PUMP_SELF << 32) | tag};
    return epoll_ctl(p->epoll_fd, EPOLL_CTL_ADD, fd, &ev);
}

struct mrc_pump *mrc_pump_create(const struct mrc_engine_cfg *cfg)
{
    const size_t size = mrc_engine_size(cfg);
    struct mrc_pump *p = size != 0 ? calloc(1, sizeof *p) : NULL;
    if (p == NULL)
        return NULL;
    p->cfg = *cfg;
    p->cfg.mem_zeroed = 1; /* as pump_alloc gives it */
    mrc_fork_watch();
    p->pid = getpid();
    p->forks = mrc_fork_count();
    p->armed = MRC_NEVER;
    p->local_up = MRC_PLANES_ALL;
    atomic_flag_clear(&p->busy);
    atomic_init(&p->closed, false);
    atomic_init(&p->closing, false);
    atomic_init(&p->waiters, 0);
    atomic_init(&p->takers, 0);
    atomic_init(&p->threaded, false);
    p->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    p->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    p->kick_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    p->mrs = calloc(cfg->mr_max, sizeof *p->mrs);
    p->paths = calloc(cfg->path_max, sizeof *p->paths);
    p->cq_channel = calloc(cfg->cq_max, sizeof *p->cq_channel);
    void *mem = pump_alloc(p, size);
    if (p->epoll_fd < 0 || p->timer_fd < 0 || p->kick_fd < 0 || p->mrs == NULL ||
        p->paths == NULL || p->cq_channel == NULL || mem == NULL ||
        pump_watch(p, p->timer_fd, PUMP_TAG_TIMER) != 0 ||
        pump_watch(p, p->kick_fd, PUMP_TAG_KICK) != 0) {
        mrc_pump_destroy(p);
        return NULL;
    }
    p->engine = mrc_engine_init(mem, &p->cfg, mrc_clock_now());
    return p;
}

static void pump_close_fd(int fd)
{
    if (fd >= 0)
        close(fd);
}

static int pump_waited(struct mrc_pump *p)
{
    snprintf(p->error, sizeof p->error, "another thread waits");
    return MRC_ERR_BUSY;
}

/* Whoever sleeps in mrc_pump_wait watches the descriptor that is to be closed. The flag is up
 * before they are counted, and they count themselves before they look at it: one of the two sees
 * the other.
 */
static int pump_retire(struct mrc_pump *p)
{
    int err = pump_enter(p);
    while (err == MRC_ERR_BUSY && atomic_load(&p->closing)) { /* by a call that soon returns */
        sched_yield();
        err = pump_enter(p);
    }
    if (err < 0)
        return err;
    atomic_store(&p->closed, true);
    if (atomic_load(&p->waiters) == 0) {
        if (pump_threaded(p)) {
            pump_leave_between(p); /* whoever comes now finds it closed */
            pump_thread_end(p);
        }
        while (atomic_load(&p->takers) != 0)
            sched_yield();
        return MRC_OK;
    }
    atomic_store(&p->closed, false);
    return pump_leave(p, pump_waited(p));
}

int mrc_pump_close(struct mrc_pump *p)
{
    /* A forked child closes its copies and leaves the shared epoll set alone. */
    const bool owner = mrc_fork_count() == p->forks;
    const int err = owner ? pump_retire(p) : MRC_OK;
    if (err < 0)
        return err;
    atomic_store(&p->closed, true);
    for (uint32_t i = 0; i < p->port_count; i++)
        mrc_io_close(p->ports[i].io, owner);
    pump_close_channels(p);
    if (pump_threaded(p))
        pump_close_fd(p->thread.ready_fd);
    pump_close_fd(p->kick_fd);
    pump_close_fd(p->timer_fd);
    pump_close_fd(p->epoll_fd);
    while (p->blocks != NULL)
        pump_free(p, p->blocks->bytes);
    free(p->mrs);
    free(p->paths);
    free(p->cq_channel);
    p->epoll_fd = p->thread.ready_fd = -1;
    return MRC_OK;
}

int mrc_pump_idle(struct mrc_pump *p)
{
    const int err = pump_enter(p);
    if (err < 0)
        return err;
    return pump_leave(p, atomic_load(&p->waiters) != 0 ? pump_waited(p) : MRC_OK);
}

int mrc_pump_closing(struct mrc_pump *p)
{
    const int err = pump_enter(p);
    if (err < 0)
        return err;
    atomic_store(&p->closing, true);
    if (atomic_load(&p->waiters) == 0)
        return pump_leave(p, MRC_OK);
    atomic_store(&p->closing, false);
    return pump_leave(p, pump_waited(p));
}

void mrc_pump_destroy(struct mrc_pump *p)
{
    if (p == NULL)
        return;
    const int err = atomic_load(&p->closed) ? MRC_OK : mrc_pump_close(p);
    MRC_ASSERT(err == MRC_OK);
    free(p);
}

/* ---- guards ---- */

/* Like errno: what one thread was refused is not what another one reads. */
static _Thread_local char pump_words[MRC_IO_ERROR_MAX];

int mrc_pump_fork_guard(struct mrc_pump *p)
{
    if (mrc_fork_count() == p->forks)
        return MRC_OK;
    snprintf(pump_words, sizeof pump_words,
             "this context belongs to process %d, which forked; a child must open its own",
             (int)p->pid);
    return MRC_ERR_STATE;
}

int pump_turn_away(int err, const char *words)
{
    snprintf(pump_words, sizeof pump_words, "%s", words);
    return err;
}

int pump_enter(struct mrc_pump *p)
{
    int err = mrc_pump_fork_guard(p);
    if (err < 0)
        return err;
    if (pump_threaded(p)) {
        err = pump_enter_between(p);
    } else if (atomic_flag_test_and_set_explicit(&p->busy, memory_order_acquire)) {
        err = atomic_load(&p->closed) ? pump_turn_away(MRC_ERR_STATE, "the context is closed")
                                      : pump_turn_away(MRC_ERR_BUSY, "another thread is inside");
    }
    if (err == MRC_OK)
        p->error[0] = '\0';
    return err;
}

int pump_leave(struct mrc_pump *p, int result)
{
    if (result < 0)
        memcpy(pump_words, p->error, sizeof pump_words);
    pump_signal(p);
    if (pump_threaded(p))
        pump_leave_between(p);
    else
        atomic_flag_clear_explicit(&p->busy, memory_order_release);
    return result;
}

int pump_refuse(struct mrc_pump *p, int err, const char *what)
{
    static const char *const words[] = {
        [-MRC_ERR_INVAL] = "an argument is out of its range",
        [-MRC_ERR_STATE] = "not in a state that allows it",
        [-MRC_ERR_FULL] = "no room",
        [-MRC_ERR_NOENT] = "no such object",
        [-MRC_ERR_BUSY] = "still in use",
        [-MRC_ERR_ACCESS] = "key, access flags or bounds refuse the memory",
    };
    if (err < 0 && err >= MRC_ERR_ACCESS)
        snprintf(p->error, sizeof p->error, "%s: %s", what, words[-err]);
    return err;
}

int pump_refuse_qp(struct mrc_pump *p, uint32_t qpn, int err)
{
    if (err < 0 && mrc_qp_refusal(p->engine, qpn, err, p->error, sizeof p->error) > 0)
        return err;
    return pump_refuse(p, err, "queue pair");
}

void pump_kick(struct mrc_pump *p)
{
    const uint64_t one = 1;
    if (pump_threaded(p) && !p->thread.resting)
        p->thread.due = true; /* the thread looks before it rests */
    else if (!p->kicked && write(p->kick_fd, &one, sizeof one) == (ssize_t)sizeof one)
        p->kicked = true;
}

/* ---- ports ---- */

int mrc_pump_port_add(struct mrc_pump *p, const struct mrc_port_cfg *cfg)
{
    int err = pump_enter(p);
    if (err < 0)
        return err;
    if (p->port_count == PUMP_PORTS_MAX)
        return pump_leave(p, pump_refuse(p, MRC_ERR_FULL, "port"));
    const uint32_t n = p->port_count;
    struct mrc_io *io = mrc_io_open(cfg, (uint8_t)n, p->epoll_fd, p->error, &err);
    if (io == NULL)
        return pump_leave(p, err);
    io->dscp_trimmed[0] = p->cfg.dscp_trimmed;
    io->dscp_trimmed[1] = p->cfg.dscp_trimmed_lasthop;
    p->ports[n] = (struct pump_port){.io = io};
    p->port_count++;
    return pump_leave(p, (int)n);
}

int mrc_pump_port_stats(struct mrc_pump *p, uint32_t port, struct mrc_port_stats *out)
{
    const int err = pump_enter(p);
    if (err < 0)
        return err;
    if (port >= p->port_count)
        return pump_leave(p, pump_refuse(p, MRC_ERR_NOENT, "port"));
    *out = p->ports[port].io->stats;
    return pump_leave(p, MRC_OK);
}

/* ---- the turn ---- */

/* Which descriptors have something: sets rx_ready, resumes lanes that can send again. */
static void pump_ready(struct mrc_pump *p)
{
    struct epoll_event ev[PUMP_EPOLL];
    const int n = epoll_wait(p->epoll_fd, ev, PUMP_EPOLL, 0);
    for (int i = 0; i < n; i++) {
        const uint32_t port = (uint32_t)(ev[i].data.u64 >> 32);
        const uint32_t tag = (uint32_t)ev[i].data.u64;
        if (port == PUMP_SELF) {
            if (tag == PUMP_TAG_TIMER)
                p->armed = 0; /* expired: whatever comes, it must be set again to fall silent */
            continue;
        }
        MRC_ASSERT(port < p->port_count);
        struct mrc_io *io = p->ports[port].io;
        if (tag >= MRC_IO_RX_TAG)
            io->rx_ready |= 1u << (tag - MRC_IO_RX_TAG);
        else
            io->ops->resume(io, tag);
    }
}

/* The budget is shared fairly: each port in turn, one burst at a time. */
static void pump_rx(struct mrc_pump *p, struct pump_turn *t)
{
    uint32_t left = t->budget;
    bool any = true;
    while (any && left > 0) {
        any = false;
        for (uint32_t i = 0; i < p->port_count && left > 0; i++) {
            struct mrc_io *io = p->ports[i].io;
            if (io->rx_ready == 0)
                continue;
            const size_t n = io->ops->rx(io, p->rx, mrc_min32(left, PUMP_RX_BURST));
            if (n > 0 && mrc_engine_rx(p->engine, p->rx, n, t->now))
                t->moved += (uint32_t)n;
            /* What the port threw away cost time as well: a flood of it must not hold the turn. */
            left -= mrc_min32(left, (uint32_t)mrc_max64(n, PUMP_RX_FLOOR));
            any = any || io->rx_ready != 0;
        }
    }
    for (uint32_t i = 0; i < p->port_count; i++)
        t->more = t->more || p->ports[i].io->rx_ready != 0;
    mrc_engine_rx_backlog(p->engine, t->more);
}

/* Packets kept because memory was short have no descriptor to wake them. */
static void pump_retry(struct pump_port *port, mrc_ns now)
{
    if (!port->io->retry)
        return;
    if (port->retry_at == 0) {
        port->retry_at = now + PUMP_RETRY_NS;
    } else if (now >= port->retry_at) {
        port->retry_at = 0;
        port->io->retry = false;
        port->io->ops->resume(port->io, UINT32_MAX);
        if (port->io->retry)
            port->retry_at = now + PUMP_RETRY_NS;
    }
}

/* May the engine be asked for packets? Not while a port has no room to keep them, unless that port
 * has had its time: then it must not hold up the others. */
static bool pump_room(struct mrc_pump *p, mrc_ns now)
{
    bool room = true;
    for (uint32_t i = 0; i < p->port_count; i++) {
        struct pump_port *port = &p->ports[i];
        if (port->io->slot_free_count >= MRC_IO_BURST_MAX)
            port->stall_until = 0;
        else if (port->stall_until == 0)
            port->stall_until = now + PUMP_STALL_NS;
        room = room && now >= port->stall_until;
    }
    return room;
}

static void pump_dispatch(struct mrc_pump *p, size_t n)
{
    uint32_t ports = 0;
    for (size_t i = 0; i < n; i++) {
        MRC_ASSERT(p->tx[i].port < p->port_count);
        ports |= 1u << p->tx[i].port;
    }
    while (ports != 0) {
        const uint32_t port = (uint32_t)__builtin_ctz(ports);
        size_t count = 0;
        for (size_t i = 0; i < n; i++) {
            if (p->tx[i].port == port)
                p->list[count++] = &p->tx[i];
        }
        p->ports[port].io->ops->tx(p->ports[port].io, p->list, count);
        ports &= ports - 1;
    }
}

static void pump_tx(struct mrc_pump *p, struct pump_turn *t)
{
    uint32_t left = t->budget;
    for (uint32_t i = 0; i < p->port_count; i++)
        pump_retry(&p->ports[i], t->now);
    while (left > 0 && pump_room(p, t->now)) {
        const uint32_t want = mrc_min32(left, MRC_IO_BURST_MAX);
        const size_t n = mrc_engine_tx(p->engine, p->tx, want, t->now);
        pump_dispatch(p, n);
        t->moved += (uint32_t)n;
        left -= (uint32_t)n;
        if (n < want)
            break;
    }
    if (left == 0 && mrc_engine_tx_pending(p->engine))
        t->more = true;
    for (uint32_t i = 0; i < p->port_count; i++)
        t->blocked = t->blocked || p->ports[i].io->queues_held > 0;
}

static void pump_lanes_failed(struct mrc_pump *p, mrc_ns now)
{
    for (uint32_t i = 0; i < p->port_count; i++) {
        struct mrc_io *io = p->ports[i].io;
        for (uint32_t k = 0; k < io->failed_count; k++) {
            struct mrc_lane *lane = &io->lanes[io->failed[k]];
            const enum mrc_ev_reason why = lane->narrow ? MRC_EV_R_MTU : MRC_EV_R_SEND_ERROR;
            lane->failed = lane->narrow = false;
            mrc_engine_lane_failed(p->engine, (uint8_t)i, io->failed[k], why, now);
        }
        io->failed_count = 0;
    }
}

/* A timer that goes off too early, much later than now, costs less than taking each one back. */
static bool pump_arms(const struct mrc_pump *p, mrc_ns when, mrc_ns now)
{
    return when < p->armed || (when > p->armed && p->armed < now + PUMP_EARLY_NS);
}

/* Set the timer; more: its time has come. */
static void pump_arm(struct mrc_pump *p, struct pump_turn *t)
{
    mrc_ns when = mrc_engine_deadline(p->engine);
    for (uint32_t i = 0; i < p->port_count; i++) {
        const struct pump_port *port = &p->ports[i];
        if (port->stall_until > t->now)
            when = mrc_min64(when, port->stall_until);
        if (port->io->retry)
            when = mrc_min64(when, port->retry_at != 0 ? port->retry_at : t->now + PUMP_RETRY_NS);
    }
    if (when <= t->now)
        t->more = true;
    else if (pump_arms(p, when, t->now) && mrc_clock_arm(p->timer_fd, when) == 0)
        p->armed = when;
}

/* Ask for another turn at once, or fall silent. */
static void pump_again(struct mrc_pump *p, const struct pump_turn *t)
{
    uint64_t count;
    if (t->more)
        pump_kick(p);
    else if (p->kicked && read(p->kick_fd, &count, sizeof count) == (ssize_t)sizeof count)
        p->kicked = false;
}

int pump_turn_inside(struct mrc_pump *p, struct pump_turn *t)
{
    if (t->budget == 0)
        t->budget = PUMP_BUDGET;
    pump_ready(p);
    t->now = mrc_clock_now();
    pump_rx(p, t);
    mrc_engine_tick(p->engine, t->now);
    pump_lanes_failed(p, t->now);
    pump_tx(p, t);
    pump_lanes_failed(p, t->now);
    pump_collect_events(p);
    pump_arm(p, t);
    pump_again(p, t);
    return (t->more ? MRC_TURN_MORE : 0) | (t->blocked ? MRC_TURN_BLOCKED : 0) |
           (mrc_cq_any(p->engine) ? MRC_TURN_CQ : 0) |
           (mrc_engine_ep_any(p->engine) ? MRC_TURN_EP : 0) |
           (p->event_head != p->event_tail ? MRC_TURN_EVENT : 0);
}

/* What leaves at once does so from the thread of whoever posts: nobody has to be woken for it. Who
 * takes the turns gets the rest, if it is much. */
void pump_posted(struct mrc_pump *p, int when)
{
    const bool others = pump_threaded(p) ? !p->thread.resting || p->thread.stop : when == MRC_POST;
    if (others)
        pump_kick(p);
    if (others || when == MRC_POST_LATER)
        return;
    struct pump_turn t = {.budget = PUMP_PUSH, .now = mrc_clock_now()};
    pump_tx(p, &t);
    for (uint32_t i = 0; i < p->port_count; i++)
        t.more = t.more || p->ports[i].io->failed_count > 0; /* there will be something to tell */
    pump_lanes_failed(p, t.now);
    pump_arm(p, &t);
    if (t.more)
        pump_kick(p);
    pump_look_on(&p->look, t.now);
}

int pump_turn(struct mrc_pump *p, uint32_t budget)
{
    const int err = pump_enter(p);
    if (err < 0)
        return err;
    struct pump_turn t = {.budget = budget};
    const int bits = pump_turn_inside(p, &t);
    const bool soon = pump_look(&p->look, &t, t.moved <= PUMP_FEW);
    return pump_leave(p, bits | (soon ? MRC_TURN_SOON : 0));
}

int mrc_pump_fd(const struct mrc_pump *p)
{
    return pump_threaded(p) ? p->thread.ready_fd : p->epoll_fd;
}

const char *mrc_pump_error(const struct mrc_pump *p)
{
    (void)p;
    return pump_words;
}

uint64_t mrc_pump_now(struct mrc_pump *p)
{
    (void)p;
    return mrc_clock_now();
}
