/* SPDX-License-Identifier: BSD-2-Clause */
/* Thread mode (ADR 122): the same pairs as in test_io_pump.c, but nobody turns them. */
#include "pump_pair.h"
#include "t.h"

#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>

enum { SPIN_US = 30, SMALL = 64 };

static struct pump_pair pair_of_threads(uint8_t kind, uint32_t spin_us)
{
    struct pump_pair w = pump_pair_open(kind, NULL, 0);
    for (int i = 0; i < 2; i++)
        CHECK_EQ(mrc_pump_start(w.e[i].p, spin_us), 0);
    return w;
}

/* n completions of e, waiting for nothing but the descriptor. */
static int collect(struct end *e, struct mrc_wc *out, int n)
{
    const mrc_ns end = mrc_clock_now() + LIMIT_MS * MRC_MSEC;
    int have = mrc_pump_cq_poll(e->p, e->cq, out, n);
    while (have < n && mrc_clock_now() < end) {
        const int bits = mrc_pump_wait(e->p, LIMIT_MS);
        CHECK(bits >= 0);
        e->bits |= bits;
        have += mrc_pump_cq_poll(e->p, e->cq, out + have, n - have);
    }
    return have;
}

static void fill(uint8_t *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        p[i] = (uint8_t)(i * 131 + i / 257);
}

static void transfer(struct pump_pair *w)
{
    struct mrc_wc wc[4];
    fill(w->e[0].buf, BUF);
    for (uint32_t i = 0; i < 4; i++)
        end_write(&w->e[0], &w->e[1], 100 + i, i * (BUF / 4), BUF / 4);
    CHECK_EQ(collect(&w->e[0], wc, 4), 4);
    for (uint32_t i = 0; i < 4; i++) {
        CHECK_EQ(wc[i].status, MRC_WC_SUCCESS);
        CHECK_EQ(wc[i].wr_id, 100 + i);
    }
    CHECK_MEM(w->e[1].buf, w->e[0].buf, BUF);
}

TEST(thread_mem__writes_arrive_without_a_turn_of_ours)
{
    struct pump_pair w = pair_of_threads(MRC_IO_MEM, SPIN_US);
    CHECK_EQ(mrc_mem_wire_faults(w.wire, -1, 10000, 1000), 0);
    transfer(&w);
    CHECK((w.e[0].bits & MRC_TURN_CQ) != 0);
    pump_pair_close(&w);
}

TEST(thread_udp__writes_arrive_without_a_turn_of_ours)
{
    struct pump_pair w = pair_of_threads(MRC_IO_UDP, 0);
    transfer(&w);
    pump_pair_close(&w);
}

TEST(thread_start__once)
{
    struct pump_pair w = pump_pair_open(MRC_IO_MEM, NULL, 0);
    const int loop_fd = mrc_pump_fd(w.e[0].p);
    CHECK_EQ(mrc_pump_start(w.e[0].p, 0), 0);
    CHECK_EQ(mrc_pump_start(w.e[0].p, 0), (uint64_t)MRC_ERR_STATE);
    CHECK(strstr(mrc_pump_error(w.e[0].p), "thread") != NULL);
    CHECK(mrc_pump_fd(w.e[0].p) != loop_fd);
    pump_pair_close(&w);
}

/* One thread turns its pump, the other one is turned by hand: what they send each other is the
 * same.
 */
TEST(thread_one_side__the_other_is_turned_by_hand)
{
    struct pump_pair w = pump_pair_open(MRC_IO_UDP, NULL, 0);
    struct mrc_wc wc[4];
    CHECK_EQ(mrc_pump_start(w.e[1].p, 0), 0);
    fill(w.e[0].buf, BUF);
    for (uint32_t i = 0; i < 4; i++)
        end_write(&w.e[0], &w.e[1], 100 + i, i * (BUF / 4), BUF / 4);
    CHECK_EQ(pump_pair_run(&w, &w.e[0], wc, 4), 4);
    CHECK_MEM(w.e[1].buf, w.e[0].buf, BUF);
    pump_pair_close(&w);
}

/* Bits are told once each, and the descriptor is readable until they are taken, not longer. */
TEST(thread_turn__says_what_was_found_once)
{
    struct pump_pair w = pair_of_threads(MRC_IO_MEM, 0);
    struct end *e = &w.e[0];
    struct mrc_wc wc[4];
    end_write(e, &w.e[1], 1, 0, SMALL);
    CHECK(pump_readable(e, LIMIT_MS));
    CHECK((mrc_pump_turn(e->p, 0) & MRC_TURN_CQ) != 0);
    CHECK_EQ(mrc_pump_turn(e->p, 0) & MRC_TURN_CQ, 0);
    CHECK(!pump_readable(e, 0));
    end_write(e, &w.e[1], 2, 0,
              SMALL); /* the first is still there: this one is told of all the same */
    CHECK(pump_readable(e, LIMIT_MS));
    CHECK((mrc_pump_wait(e->p, 0) & MRC_TURN_CQ) != 0);
    CHECK_EQ(mrc_pump_cq_poll(e->p, e->cq, wc, 4), 2);
    pump_pair_close(&w);
}

/* Who cannot wait for the thread's turn takes one, though it were its last. */
TEST(thread_catch_up__is_a_turn_of_the_caller)
{
    struct pump_pair w = pair_of_threads(MRC_IO_UDP, 0);
    struct end *e = &w.e[0];
    struct mrc_wc wc;
    int have = 0;
    CHECK_EQ(mrc_pump_stop(e->p), 0);
    end_write(e, &w.e[1], 1, 0, SMALL);
    const mrc_ns end = mrc_clock_now() + LIMIT_MS * MRC_MSEC;
    while (have == 0 && mrc_clock_now() < end) {
        CHECK(mrc_pump_catch_up(e->p) >= 0);
        have = mrc_pump_cq_poll(e->p, e->cq, &wc, 1);
    }
    CHECK_EQ(have, 1);
    pump_pair_close(&w);
}

static int rested(struct end *e)
{
    const mrc_ns end = mrc_clock_now() + LIMIT_MS * MRC_MSEC;
    bool rests = false;
    while (!rests && mrc_clock_now() < end) {
        CHECK_EQ(pump_enter(e->p), 0);
        rests = e->p->thread.resting;
        CHECK_EQ(pump_leave(e->p, 0), 0);
    }
    return rests;
}

/* Nobody is woken for what the poster can send himself. */
TEST(thread_post__leaves_at_once_while_the_thread_rests)
{
    struct pump_pair w = pair_of_threads(MRC_IO_UDP, 0);
    struct end *e = &w.e[0];
    struct mrc_wc wc;
    struct mrc_qp_stats s;
    CHECK(rested(e));
    CHECK_EQ(pump_enter(e->p), 0); /* so that the thread cannot help */
    const struct mrc_send_wr wr = {.wr_id = 7,
                                   .laddr = (uint64_t)(uintptr_t)e->buf,
                                   .raddr = (uint64_t)(uintptr_t)w.e[1].buf,
                                   .length = SMALL,
                                   .lkey = e->rkey,
                                   .rkey = w.e[1].rkey,
                                   .flags = MRC_SEND_SIGNALED};
    CHECK_EQ(mrc_qp_post_send(e->p->engine, e->qpn, &wr, 1), 1);
    pump_posted(e->p, MRC_POST);
    CHECK(!e->p->kicked);
    CHECK_EQ(mrc_qp_stats(e->p->engine, e->qpn, &s), 0);
    CHECK_EQ(s.packets_sent, 1);
    CHECK(e->p->armed != MRC_NEVER); /* and its timers run */
    CHECK_EQ(pump_leave(e->p, 0), 0);
    CHECK_EQ(collect(e, &wc, 1), 1);
    CHECK_EQ(wc.wr_id, 7);
    pump_pair_close(&w);
}

/* A kick that the thread has not seen yet stays when somebody posts in between. */
TEST(thread_post__clears_no_kick_of_others)
{
    struct pump_pair w = pair_of_threads(MRC_IO_UDP, 0);
    struct end *e = &w.e[0];
    CHECK(rested(e));
    CHECK_EQ(pump_enter(e->p), 0);
    pump_kick(e->p);
    pump_posted(e->p, MRC_POST);
    CHECK(e->p->kicked);
    CHECK_EQ(pump_leave(e->p, 0), 0);
    pump_pair_close(&w);
}

/* What may wait gathers, whoever rests: it leaves together, or the promise was not kept. */
TEST(thread_post__what_may_wait_leaves_with_the_push)
{
    struct pump_pair w = pair_of_threads(MRC_IO_UDP, 0);
    struct end *e = &w.e[0];
    struct mrc_wc wc[2];
    struct mrc_qp_stats s;
    const struct mrc_send_wr wr = {.laddr = (uint64_t)(uintptr_t)e->buf,
                                   .raddr = (uint64_t)(uintptr_t)w.e[1].buf,
                                   .length = SMALL,
                                   .lkey = e->rkey,
                                   .rkey = w.e[1].rkey,
                                   .flags = MRC_SEND_SIGNALED};
    CHECK(rested(e));
    CHECK_EQ(pump_enter(e->p), 0);
    for (int i = 0; i < 2; i++) {
        CHECK_EQ(mrc_qp_post_send(e->p->engine, e->qpn, &wr, 1), 1);
        pump_posted(e->p, MRC_POST_LATER);
    }
    CHECK(!e->p->kicked);
    CHECK_EQ(mrc_qp_stats(e->p->engine, e->qpn, &s), 0);
    CHECK_EQ(s.packets_sent, 0);
    CHECK_EQ(pump_leave(e->p, 0), 0);
    CHECK_EQ(mrc_pump_push(e->p), 0);
    CHECK_EQ(collect(e, wc, 2), 2);
    pump_pair_close(&w);
}

/* Every write is waited for, so a wake-up that is missed ends the test at its limit: for a write
 * that did not leave no timer runs. */
static void one_by_one(uint8_t kind, uint32_t spin_us, uint32_t writes)
{
    struct pump_pair w = pair_of_threads(kind, spin_us);
    struct mrc_wc wc;
    for (uint32_t i = 0; i < writes; i++) {
        end_write(&w.e[0], &w.e[1], i, 0, SMALL);
        if (collect(&w.e[0], &wc, 1) != 1 || wc.wr_id != i) {
            CHECK_EQ(wc.wr_id, i);
            break;
        }
    }
    pump_pair_close(&w);
}

TEST(thread_wake__none_is_missed_in_memory) { one_by_one(MRC_IO_MEM, 0, 5000); }
TEST(thread_wake__none_is_missed_in_memory_spinning) { one_by_one(MRC_IO_MEM, SPIN_US, 5000); }
TEST(thread_wake__none_is_missed_over_udp) { one_by_one(MRC_IO_UDP, 0, 2000); }

/* ---- many threads ---- */

struct crowd {
    struct end *e;
    atomic_bool over;
    atomic_uint calls;
    atomic_uint wrong;
};

static void wrong_unless(struct crowd *c, bool ok)
{
    if (!ok)
        atomic_fetch_add(&c->wrong, 1);
}

/* Makes, uses and ends objects while packets flow. */
static void *controls(void *arg)
{
    struct crowd *c = arg;
    struct mrc_pump *p = c->e->p;
    uint8_t memory[256];
    while (!atomic_load(&c->over)) {
        uint32_t rkey = 0;
        struct mrc_qp_stats s;
        struct mrc_path_stats path[EVS];
        wrong_unless(c,
                     mrc_pump_mr_register(p, 1, memory, sizeof memory, 3, 0xABCD0000, &rkey) == 0);
        wrong_unless(c, mrc_pump_qp_stats(p, c->e->qpn, &s) == 0);
        wrong_unless(c, mrc_pump_path_stats(p, c->e->path, path, EVS) == EVS);
        const int cq = mrc_pump_cq_create(p, 8);
        wrong_unless(c, cq >= 0 && mrc_pump_cq_destroy(p, (uint32_t)cq) == 0);
        wrong_unless(c, mrc_pump_mr_deregister(p, rkey) == 0);
        wrong_unless(c, mrc_pump_drops(p, 0) != UINT64_MAX);
        wrong_unless(c, mrc_pump_turn(p, 0) >= 0 || atomic_load(&c->over));
        atomic_fetch_add(&c->calls, 1);
    }
    return NULL;
}

TEST(thread_control__calls_come_in_between_turns)
{
    struct pump_pair w = pair_of_threads(MRC_IO_MEM, SPIN_US);
    struct crowd c[2] = {{.e = &w.e[0]}, {.e = &w.e[1]}};
    pthread_t id[2];
    CHECK_EQ(mrc_mem_wire_faults(w.wire, -1, 5000, 5000), 0);
    for (int i = 0; i < 2; i++)
        CHECK_EQ(pthread_create(&id[i], NULL, controls, &c[i]), 0);
    for (int round = 0; round < 5; round++) {
        struct mrc_wc wc[4];
        fill(w.e[0].buf, BUF);
        memset(w.e[1].buf, 0, BUF);
        for (uint32_t i = 0; i < 4; i++)
            end_write(&w.e[0], &w.e[1], i, i * (BUF / 4), BUF / 4);
        int have = 0; /* the other thread takes bits as well: so ask, do not wait */
        const mrc_ns end = mrc_clock_now() + LIMIT_MS * MRC_MSEC;
        while (have < 4 && mrc_clock_now() < end) {
            const int got = mrc_pump_cq_poll(w.e[0].p, w.e[0].cq, wc, 4);
            CHECK(got >= 0);
            have += got;
        }
        CHECK_EQ(have, 4);
        CHECK_MEM(w.e[1].buf, w.e[0].buf, BUF);
    }
    for (int i = 0; i < 2; i++) {
        atomic_store(&c[i].over, true);
        pthread_join(id[i], NULL);
        CHECK(atomic_load(&c[i].calls) > 10);
        CHECK_EQ(atomic_load(&c[i].wrong), 0);
    }
    pump_pair_close(&w);
}

/* Who leaves and comes back at once finds that the thread has had its turn. */
TEST(thread_turn__comes_before_those_who_come_again)
{
    struct pump_pair w = pair_of_threads(MRC_IO_UDP, 0);
    struct mrc_pump *p = w.e[0].p;
    for (int round = 0; round < 50; round++) {
        CHECK_EQ(pump_enter(p), 0);
        while (!p->thread.resting) {
            CHECK_EQ(pump_leave(p, 0), 0);
            sched_yield();
            CHECK_EQ(pump_enter(p), 0);
        }
        pump_kick(p);
        while (!atomic_load(&p->thread.next)) /* it has woken up and wants to come in */
            sched_yield();
        CHECK_EQ(pump_leave(p, 0), 0);
        CHECK_EQ(pump_enter(p), 0);
        CHECK(!p->kicked);
        CHECK_EQ(pump_leave(p, 0), 0);
    }
    pump_pair_close(&w);
}

static void *calls(void *arg)
{
    struct crowd *c = arg;
    struct mrc_ev_event event[4];
    while (!atomic_load(&c->over)) {
        wrong_unless(c, mrc_pump_events(c->e->p, event, 4) >= 0);
        atomic_fetch_add(&c->calls, 1);
    }
    return NULL;
}

TEST(thread_turn__is_not_kept_out_by_a_crowd)
{
    struct pump_pair w = pair_of_threads(MRC_IO_UDP, SPIN_US);
    struct crowd c = {.e = &w.e[0]};
    pthread_t id[6];
    struct mrc_wc wc;
    for (int i = 0; i < 6; i++)
        CHECK_EQ(pthread_create(&id[i], NULL, calls, &c), 0);
    for (uint32_t i = 0; i < 20; i++) {
        end_write(&w.e[0], &w.e[1], i, 0, SMALL);
        CHECK_EQ(collect(&w.e[0], &wc, 1), 1);
        CHECK_EQ(wc.wr_id, i);
    }
    atomic_store(&c.over, true);
    for (int i = 0; i < 6; i++)
        pthread_join(id[i], NULL);
    CHECK(atomic_load(&c.calls) > 0);
    CHECK_EQ(atomic_load(&c.wrong), 0);
    pump_pair_close(&w);
}

/* ---- ends ---- */

TEST(thread_close__while_packets_flow)
{
    for (int round = 0; round < 20; round++) {
        struct pump_pair w = pair_of_threads(MRC_IO_MEM, round % 2 == 0 ? SPIN_US : 0);
        for (uint32_t i = 0; i < 4; i++) {
            end_write(&w.e[0], &w.e[1], i, i * (BUF / 4), BUF / 4);
            end_write(&w.e[1], &w.e[0], i, i * (BUF / 4), BUF / 4);
        }
        CHECK_EQ(mrc_pump_close(w.e[round / 2 % 2].p), 0);
        struct mrc_qp_stats s;
        CHECK_EQ(mrc_pump_qp_stats(w.e[round / 2 % 2].p, w.e[0].qpn, &s), (uint64_t)MRC_ERR_STATE);
        CHECK_EQ(mrc_pump_turn(w.e[round / 2 % 2].p, 0), (uint64_t)MRC_ERR_BUSY);
        pump_pair_close(&w);
    }
}

TEST(thread_close__leaves_no_descriptor)
{
    const size_t before = pump_open_fds();
    struct pump_pair w = pair_of_threads(MRC_IO_UDP, 0);
    transfer(&w);
    pump_pair_close(&w);
    CHECK_EQ(pump_open_fds(), before);
}

static void *waits(void *arg)
{
    struct crowd *c = arg;
    wrong_unless(c, mrc_pump_wait(c->e->p, LIMIT_MS) >= 0);
    atomic_store(&c->over, true);
    return NULL;
}

TEST(thread_close__is_refused_while_another_thread_waits)
{
    struct pump_pair w = pair_of_threads(MRC_IO_MEM, 0);
    struct crowd c = {.e = &w.e[0]};
    struct mrc_wc wc;
    pthread_t id;
    CHECK_EQ(pthread_create(&id, NULL, waits, &c), 0);
    while (atomic_load(&w.e[0].p->waiters) == 0)
        sched_yield();
    CHECK_EQ(mrc_pump_idle(w.e[0].p), (uint64_t)MRC_ERR_BUSY);
    CHECK_EQ(mrc_pump_close(w.e[0].p), (uint64_t)MRC_ERR_BUSY);
    end_write(&w.e[0], &w.e[1], 1, 0, SMALL); /* all of it is as it was */
    pthread_join(id, NULL);
    CHECK(atomic_load(&c.over));
    CHECK_EQ(atomic_load(&c.wrong), 0);
    CHECK_EQ(mrc_pump_cq_poll(w.e[0].p, w.e[0].cq, &wc, 1), 1);
    CHECK_EQ(mrc_pump_close(w.e[0].p), 0);
    pump_pair_close(&w);
}

/* Once it is said that the pump will be closed nothing can come in between, and calls go on. */
TEST(thread_closing__nobody_begins_to_wait)
{
    for (int threads = 0; threads < 2; threads++) {
        struct pump_pair w = pump_pair_open(MRC_IO_MEM, NULL, 0);
        struct mrc_pump *p = w.e[0].p;
        struct mrc_qp_stats s;
        if (threads == 1)
            CHECK_EQ(mrc_pump_start(p, 0), 0);
        atomic_fetch_add(&p->waiters, 1); /* as if one slept in mrc_pump_wait */
        CHECK_EQ(mrc_pump_closing(p), (uint64_t)MRC_ERR_BUSY);
        atomic_fetch_sub(&p->waiters, 1);
        CHECK(mrc_pump_wait(p, 1) >= 0);
        CHECK_EQ(mrc_pump_closing(p), 0);
        CHECK_EQ(mrc_pump_closing(p), 0);
        CHECK_EQ(mrc_pump_wait(p, 1), (uint64_t)MRC_ERR_BUSY);
        if (threads == 0)
            CHECK_EQ(mrc_pump_turn(p, 0), (uint64_t)MRC_ERR_BUSY);
        CHECK_EQ(mrc_pump_qp_stats(p, w.e[0].qpn, &s), 0);
        CHECK_EQ(mrc_pump_close(p), 0);
        pump_pair_close(&w);
    }
}

/* Those who call while it is closed wait, then are told. */
TEST(thread_close__under_a_crowd)
{
    for (int round = 0; round < 20; round++) {
        struct pump_pair w = pair_of_threads(MRC_IO_MEM, SPIN_US);
        struct crowd c[3] = {{.e = &w.e[0]}, {.e = &w.e[0]}, {.e = &w.e[0]}};
        pthread_t id[3];
        for (int i = 0; i < 3; i++)
            CHECK_EQ(pthread_create(&id[i], NULL, controls, &c[i]), 0);
        while (atomic_load(&c[0].calls) == 0)
            sched_yield();
        CHECK_EQ(mrc_pump_close(w.e[0].p), 0); /* also while one of them takes bits */
        for (int i = 0; i < 3; i++)
            atomic_store(&c[i].over, true);
        for (int i = 0; i < 3; i++)
            pthread_join(id[i], NULL);
        pump_pair_close(&w);
    }
}

TEST(thread_stop__no_more_turns_but_all_else)
{
    struct pump_pair w = pair_of_threads(MRC_IO_MEM, SPIN_US);
    struct end *e = &w.e[0];
    struct mrc_qp_stats s;
    struct mrc_wc wc;
    transfer(&w);
    CHECK_EQ(mrc_pump_stop(e->p), 0);
    CHECK_EQ(mrc_pump_stop(e->p), 0);
    CHECK(mrc_pump_wait(e->p, 1) >= 0); /* what its last turns found and nobody took */
    CHECK_EQ(mrc_pump_qp_stats(e->p, e->qpn, &s), 0);
    const uint64_t sent = s.packets_sent;
    end_write(e, &w.e[1], 1, 0, SMALL);
    CHECK_EQ(mrc_pump_wait(e->p, 20), 0);
    CHECK_EQ(mrc_pump_qp_stats(e->p, e->qpn, &s), 0);
    CHECK_EQ(s.packets_sent, sent);
    CHECK_EQ(mrc_pump_qp_destroy(e->p, e->qpn), 0);
    CHECK_EQ(mrc_pump_cq_poll(e->p, e->cq, &wc, 1), 1);
    CHECK_EQ(wc.status, MRC_WC_WR_FLUSH_ERR);
    pump_pair_close(&w);
}

/* The peer goes in the middle. How patient the queue pair is, is not a matter of the thread; that
 * it is there to end it is. */
TEST(thread_peer__gone_under_traffic)
{
    struct pump_pair w = pair_of_threads(MRC_IO_UDP, 0);
    struct mrc_wc wc[4];
    const struct mrc_qp_attr end = {.state = MRC_QPS_ERR};
    for (uint32_t i = 0; i < 4; i++)
        end_write(&w.e[0], &w.e[1], i, i * (BUF / 4), BUF / 4);
    CHECK_EQ(mrc_pump_close(w.e[1].p), 0);
    CHECK_EQ(mrc_pump_qp_modify(w.e[0].p, w.e[0].qpn, &end, MRC_QP_STATE), 0);
    CHECK_EQ(collect(&w.e[0], wc, 4), 4);
    pump_pair_close(&w);
}

TEST(thread_cq__an_overrun_is_told)
{
    struct pump_pair w = pair_of_threads(MRC_IO_MEM, 0);
    struct end *e = &w.e[0];
    const int fd = mrc_pump_channel_fd(e->p, 0);
    struct pollfd event = {.fd = fd, .events = POLLIN};
    int posted = 0;
    while (posted <= CQ_DEPTH) {
        const struct mrc_send_wr wr = {.wr_id = (uint64_t)posted,
                                       .lkey = e->rkey,
                                       .rkey = w.e[1].rkey,
                                       .laddr = (uint64_t)(uintptr_t)e->buf,
                                       .raddr = (uint64_t)(uintptr_t)w.e[1].buf,
                                       .length = SMALL,
                                       .flags = MRC_SEND_SIGNALED};
        const int got = mrc_pump_post_send(e->p, e->qpn, &wr, 1);
        CHECK(got == 1 || got == MRC_ERR_FULL);
        posted += got == 1 ? 1 : 0;
        if (got != 1 && got != MRC_ERR_FULL)
            break;
    }
    struct mrc_async_event told;
    do {
        CHECK_EQ(poll(&event, 1, LIMIT_MS), 1);
        CHECK_EQ(mrc_pump_async_take(e->p, &told), 1);
    } while (told.type != MRC_ASYNC_CQ_ERR && t_failures == 0);
    CHECK_EQ(mrc_pump_cq_overrun(e->p, e->cq), 1);
    CHECK_EQ(told.type, MRC_ASYNC_CQ_ERR);
    CHECK_EQ(told.id, e->cq);
    pump_pair_close(&w);
}

/* field report 77: the thread is not in the child, and may have been in the middle of a turn. */
TEST(thread_fork__a_child_neither_hangs_nor_harms)
{
    struct pump_pair w = pair_of_threads(MRC_IO_MEM, SPIN_US);
    for (int round = 0; round < 20; round++) {
        struct mrc_wc wc[2];
        for (uint32_t i = 0; i < 2; i++)
            end_write(&w.e[0], &w.e[1], i, 0, BUF);
        fflush(NULL);
        const pid_t pid = fork();
        if (pid == 0) {
            struct mrc_qp_stats s;
            alarm(LIMIT_MS / 1000);
            const bool ok = mrc_pump_turn(w.e[0].p, 0) == MRC_ERR_STATE &&
                            mrc_pump_wait(w.e[0].p, -1) == MRC_ERR_STATE &&
                            mrc_pump_stop(w.e[0].p) == MRC_ERR_STATE &&
                            mrc_pump_qp_stats(w.e[0].p, w.e[0].qpn, &s) == MRC_ERR_STATE &&
                            mrc_mem_wire_faults(w.wire, -1, 0, 0) == MRC_ERR_STATE;
            pump_pair_close(&w);
            _exit(ok ? 0 : 1);
        }
        int status = 0;
        CHECK(waitpid(pid, &status, 0) == pid);
        CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
        CHECK_EQ(collect(&w.e[0], wc, 2), 2);
    }
    transfer(&w);
    pump_pair_close(&w);
}

/* Signals of the process are for the application's threads. */
TEST(thread_signals__none_reaches_the_thread)
{
    struct pump_pair w = pair_of_threads(MRC_IO_MEM, 0);
    sigset_t now;
    pthread_sigmask(SIG_SETMASK, NULL, &now); /* our own mask is as it was */
    CHECK(!sigismember(&now, SIGINT));
    sigset_t block;
    sigset_t before;
    sigemptyset(&block);
    sigaddset(&block, SIGUSR1);
    pthread_sigmask(SIG_BLOCK, &block, &before); /* nobody is left who would take it */
    CHECK_EQ(kill(getpid(), SIGUSR1), 0);
    sigset_t pending;
    sigpending(&pending);
    CHECK(sigismember(&pending, SIGUSR1));
    int got;
    sigwait(&block, &got);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pump_pair_close(&w);
}
