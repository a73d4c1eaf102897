/* SPDX-License-Identifier: BSD-2-Clause */
/* Between two turns: waiting for the next one, awake or asleep. A core that sleeps takes longer to
 * wake than a small write takes on its way, so whoever is in an exchange of single packets looks
 * for the next one a while before it sleeps (ADR 131). */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "mrc_clock.h"
#include "mrc_pump_int.h"

#include <poll.h>

enum {
    LOOK_MAX_US = 1000,
    LOOK_SKIP_MAX = 63, /* occasions let pass after many looks in vain */
};

/* ---- looking ---- */

void pump_look_set(struct pump_look *l, uint32_t spin_us)
{
    l->max = mrc_min32(spin_us, LOOK_MAX_US) * MRC_USEC;
}

/* What the last look was worth: packets came before its end, or not. */
static void look_judge(struct pump_look *l, bool found)
{
    l->skip = found ? 0 : mrc_min32(2 * l->skip + 1, LOOK_SKIP_MAX);
    l->left = l->skip;
    atomic_store_explicit(&l->until, 0, memory_order_relaxed);
}

bool pump_look(struct pump_look *l, const struct pump_turn *t, bool may)
{
    const mrc_ns until = pump_look_until(l);
    if (until != 0 && (t->moved != 0 || t->now >= until))
        look_judge(l, t->now < until);
    if (t->moved == 0)
        return pump_look_until(l) != 0;
    if (l->max == 0 || !may)
        return false;
    if (l->left > 0) {
        l->left--;
        return false;
    }
    atomic_store_explicit(&l->until, mrc_clock_now() + l->max, memory_order_relaxed);
    return true;
}

void pump_look_on(struct pump_look *l, mrc_ns now)
{
    if (now < pump_look_until(l))
        atomic_store_explicit(&l->until, now + l->max, memory_order_relaxed);
}

void pump_pause(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

bool pump_look_around(const struct pump_look *l, int fd, mrc_ns limit)
{
    struct pollfd one = {.fd = fd, .events = POLLIN};
    while (mrc_clock_now() < mrc_min64(pump_look_until(l), limit)) {
        if (poll(&one, 1, 0) != 0)
            return true;
        pump_pause();
    }
    return false;
}

int mrc_pump_spin(struct mrc_pump *p, uint32_t spin_us)
{
    const int err = pump_enter(p);
    if (err < 0)
        return err;
    pump_look_set(&p->look, spin_us);
    return pump_leave(p, MRC_OK);
}

/* ---- turns of the caller, and waiting for them ---- */

static int pump_being_closed(void)
{
    return pump_turn_away(MRC_ERR_BUSY, "the context is being closed");
}

/* Whoever closes waits for those who take: they are soon done. */
static int pump_news(struct mrc_pump *p)
{
    int result = mrc_pump_fork_guard(p);
    if (result < 0)
        return result;
    atomic_fetch_add(&p->takers, 1);
    result = atomic_load(&p->closed) ? pump_being_closed() : pump_take(p);
    atomic_fetch_sub(&p->takers, 1);
    return result;
}

int mrc_pump_turn(struct mrc_pump *p, uint32_t budget)
{
    if (pump_threaded(p))
        return pump_news(p);
    return atomic_load(&p->closing) ? pump_being_closed() : pump_turn(p, budget);
}

int mrc_pump_catch_up(struct mrc_pump *p)
{
    const int err = pump_enter(p);
    if (err < 0)
        return err;
    struct pump_turn t = {0};
    const int bits = pump_turn_inside(p, &t);
    if (pump_threaded(p))
        pump_kick(p); /* the thread tells those who wait what was found */
    return pump_leave(p, bits);
}

static mrc_ns wait_limit(int timeout_ms)
{
    return timeout_ms < 0 ? MRC_NEVER : mrc_clock_now() + (mrc_ns)timeout_ms * MRC_MSEC;
}

/* In ms, for poll: what is left is rounded up, so that the limit has passed when it returns. */
static int wait_left(mrc_ns limit)
{
    if (limit == MRC_NEVER)
        return -1;
    const mrc_ns now = mrc_clock_now();
    return now < limit ? (int)((limit - now + MRC_MSEC - 1) / MRC_MSEC) : 0;
}

/* Outside, so that nobody closes the descriptor meanwhile. */
static int pump_sleep(struct mrc_pump *p, int timeout_ms)
{
    int err = mrc_pump_fork_guard(p);
    if (err < 0)
        return err;
    atomic_fetch_add(&p->waiters, 1);
    if (atomic_load(&p->closed) || atomic_load(&p->closing)) {
        err = pump_being_closed();
    } else {
        struct pollfd fd = {.fd = mrc_pump_fd(p), .events = POLLIN};
        const mrc_ns limit = wait_limit(timeout_ms);
        if (pump_threaded(p) || !pump_look_around(&p->look, fd.fd, limit))
            (void)poll(&fd, 1, wait_left(limit)); /* a signal ends it like a timeout */
        err = mrc_pump_turn(p, 0);
    }
    atomic_fetch_sub(&p->waiters, 1);
    return err;
}

int mrc_pump_wait(struct mrc_pump *p, int timeout_ms)
{
    return timeout_ms == 0 ? mrc_pump_turn(p, 0) : pump_sleep(p, timeout_ms);
}
