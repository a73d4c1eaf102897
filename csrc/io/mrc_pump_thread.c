/* SPDX-License-Identifier: BSD-2-Clause */
/* Thread mode (ADR 122): a thread that takes the turns, and how everybody else comes in between two
 * of them. The engine is touched by the one who holds `own`, and by nobody else. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "mrc_clock.h"
#include "mrc_pump_int.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum {
    THREAD_BUDGET = 128,   /* packets a turn: so long those who want to come in may have to wait */
    THREAD_COURTESY = 500, /* looks at those who wait before the thread lies down for them */
};
/* An application that has not called for so long sleeps, as far as the thread is concerned. */
#define THREAD_QUIET_NS (1 * MRC_MSEC)

/* ---- those who come in ---- */

int pump_enter_between(struct mrc_pump *p)
{
    struct pump_thread *t = &p->thread;
    atomic_store_explicit(&t->other_cpu, sched_getcpu(), memory_order_relaxed);
    atomic_store_explicit(&t->called, mrc_clock_now(), memory_order_relaxed);
    atomic_fetch_add(&t->waiting, 1);
    pthread_mutex_lock(&t->own);
    while (atomic_load(&t->next))
        pthread_cond_wait(&t->gate, &t->own);
    atomic_fetch_sub(&t->waiting, 1);
    if (t->owed > 0)
        t->owed--;
    if (!atomic_load(&p->closed))
        return MRC_OK;
    pump_leave_between(p);
    return pump_turn_away(MRC_ERR_STATE, "the context is closed");
}

void pump_leave_between(struct mrc_pump *p)
{
    struct pump_thread *t = &p->thread;
    const bool wake = t->yielding && (t->owed == 0 || atomic_load(&t->waiting) == 0);
    if (wake)
        atomic_store(&t->next, true);
    pthread_mutex_unlock(&t->own);
    if (wake)
        pthread_cond_signal(&t->passed);
}

/* The thread has the mutex again: those whom `next` kept off may queue for it. */
static void thread_is_in(struct pump_thread *t)
{
    if (atomic_exchange(&t->next, false))
        pthread_cond_broadcast(&t->gate);
}

/* A mutex is not fair: the thread would have it again before those who wait have woken up. It steps
 * aside for as many as wait now, and no more: those who come again and again would keep it out.
 * Whoever leaves sees that it waits, or it sees that nobody does: both look while they hold the
 * mutex. */
static void thread_give_way(struct pump_thread *t)
{
    t->owed = atomic_load(&t->waiting);
    if (t->owed == 0)
        return;
    t->yielding = true;
    pthread_mutex_unlock(&t->own);
    for (int i = 0; i < THREAD_COURTESY && atomic_load(&t->waiting) != 0; i++)
        pump_pause();
    pthread_mutex_lock(&t->own);
    while (t->owed != 0 && atomic_load(&t->waiting) != 0)
        pthread_cond_wait(&t->passed, &t->own);
    t->owed = 0;
    t->yielding = false;
    thread_is_in(t);
}

int pump_take(struct mrc_pump *p)
{
    struct pump_thread *t = &p->thread;
    uint64_t count;
    /* In this order: a bit that comes in between is taken now, and its signal is one too many. */
    (void)!read(t->ready_fd, &count, sizeof count);
    return (int)atomic_exchange(&t->ready, 0);
}

/* ---- the thread ---- */

/* Completions are told of once: those who did not poll them all know that there are more. So are
 * the events of channels, or one that nobody takes would wake the loop with every turn. True: the
 * application does not know yet. */
static bool thread_news(struct mrc_pump *p, int bits)
{
    struct pump_thread *t = &p->thread;
    const uint32_t pushed = mrc_cq_pushed(p->engine);
    const uint32_t async = mrc_engine_async_pushed(p->engine);
    uint32_t news = (uint32_t)bits & (MRC_TURN_EVENT | MRC_TURN_EP);
    if (pushed != t->told)
        news |= MRC_TURN_CQ;
    if (async != t->told_async || t->noted)
        news |= MRC_TURN_NOTIFY;
    t->told = pushed;
    t->told_async = async;
    t->noted = false;
    return news != 0 && (news & ~atomic_fetch_or(&t->ready, news)) != 0;
}

/* Not while we hold the mutex: whoever wakes up on the same core would only wait for it. */
static void thread_tell(struct pump_thread *t)
{
    const uint64_t one = 1;
    (void)!write(t->ready_fd, &one, sizeof one);
}

/* Until a turn is due. Nothing is missed: packets and the timer make the descriptor readable until
 * a turn deals with them, and who posts now sees `resting` and makes it so. It does not give up the
 * core while it spins (a thread that yields again and again is put behind all others for as long as
 * it pleases the scheduler), so spin_ns is what somebody on the same core may have to wait. */
static void thread_rest(struct mrc_pump *p)
{
    struct pollfd fd = {.fd = p->epoll_fd, .events = POLLIN};
    if (!pump_look_around(&p->look, p->epoll_fd, MRC_NEVER))
        (void)poll(&fd, 1, -1);
}

/* Not on one core with the application, which it would keep from running; unless that sleeps, and
 * single packets come. */
static bool thread_may_look(struct pump_thread *t, uint32_t moved, bool news)
{
    if (sched_getcpu() != atomic_load_explicit(&t->other_cpu, memory_order_relaxed))
        return true;
    return !news && moved <= PUMP_FEW &&
           mrc_clock_now() >
               atomic_load_explicit(&t->called, memory_order_relaxed) + THREAD_QUIET_NS;
}

static void *thread_main(void *arg)
{
    struct mrc_pump *p = arg;
    struct pump_thread *t = &p->thread;
    pthread_mutex_lock(&t->own);
    while (!t->stop) {
        struct pump_turn turn = {.budget = THREAD_BUDGET};
        t->due = false;
        p->error[0] = '\0';
        const int bits = pump_turn_inside(p, &turn);
        pump_signal(p);
        const bool news = thread_news(p, bits);
        (void)pump_look(&p->look, &turn, thread_may_look(t, turn.moved, news));
        if (t->due || atomic_load(&t->waiting) != 0) {
            if (news)
                thread_tell(t);
            thread_give_way(t);
            continue;
        }
        t->resting = true;
        pthread_mutex_unlock(&t->own);
        if (news)
            thread_tell(t);
        thread_rest(p);
        atomic_store(&t->next, true);
        pthread_mutex_lock(&t->own);
        thread_is_in(t);
        t->resting = false;
    }
    t->running = false;
    pthread_cond_broadcast(&t->ended);
    pthread_mutex_unlock(&t->own);
    return NULL;
}

/* Signals are for the threads of the application. */
static int thread_create(struct mrc_pump *p)
{
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const int err = pthread_create(&p->thread.id, NULL, thread_main, p);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (err == 0)
        (void)pthread_setname_np(p->thread.id, "mrc-pump");
    return err;
}

static int thread_start(struct mrc_pump *p, uint32_t spin_us)
{
    struct pump_thread *t = &p->thread;
    pump_look_set(&p->look, spin_us);
    t->ready_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (t->ready_fd < 0)
        return errno;
    atomic_init(&t->waiting, 0);
    atomic_init(&t->other_cpu, -1);
    atomic_init(&t->called, 0);
    atomic_init(&t->ready, 0);
    atomic_init(&t->next, false);
    pthread_mutexattr_t kind;
    pthread_mutexattr_init(&kind);
    pthread_mutexattr_settype(&kind, PTHREAD_MUTEX_ADAPTIVE_NP);
    pthread_mutex_init(&t->own, &kind);
    pthread_mutexattr_destroy(&kind);
    pthread_cond_init(&t->passed, NULL);
    pthread_cond_init(&t->gate, NULL);
    pthread_cond_init(&t->ended, NULL);
    pthread_mutex_lock(&t->own);
    const int err = thread_create(p);
    t->running = t->joinable = err == 0;
    atomic_store_explicit(&p->threaded, err == 0, memory_order_release);
    pthread_mutex_unlock(&t->own);
    if (err != 0)
        close(t->ready_fd);
    return err;
}

int mrc_pump_start(struct mrc_pump *p, uint32_t spin_us)
{
    if (atomic_load(&p->threaded))
        return pump_turn_away(MRC_ERR_STATE, "the pump has a thread already");
    const int result = pump_enter(p);
    if (result < 0)
        return result;
    const int err = thread_start(p, spin_us);
    if (err == 0)
        return MRC_OK; /* `busy` stays set: whoever has not seen the thread yet is turned away */
    snprintf(p->error, sizeof p->error, "cannot start a thread: %s", strerror(err));
    return pump_leave(p, -(1000 + err));
}

void pump_thread_end(struct mrc_pump *p)
{
    struct pump_thread *t = &p->thread;
    atomic_fetch_add(&t->waiting, 1);
    pthread_mutex_lock(&t->own);
    atomic_fetch_sub(&t->waiting, 1);
    t->stop = true;
    pump_kick(p);
    pthread_cond_signal(&t->passed);
    while (t->running)
        pthread_cond_wait(&t->ended, &t->own);
    const bool join = t->joinable;
    t->joinable = false;
    pthread_mutex_unlock(&t->own);
    if (join)
        (void)pthread_join(t->id, NULL);
}

int mrc_pump_stop(struct mrc_pump *p)
{
    const int err = mrc_pump_fork_guard(p);
    if (err < 0)
        return err;
    if (atomic_load(&p->threaded) && !atomic_load(&p->closed))
        pump_thread_end(p);
    return MRC_OK;
}
