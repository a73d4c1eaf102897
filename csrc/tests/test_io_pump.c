/* SPDX-License-Identifier: BSD-2-Clause */
/* Engines, pumps and backends together, as the Python side drives them. */
#include "net_child.h"
#include "pump_pair.h"
#include "t.h"

#include <netinet/in.h>
#include <pthread.h>
#include <sys/socket.h>
#include <sys/wait.h>

static void fill(uint8_t *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        p[i] = (uint8_t)(i * 131 + i / 257);
}

/* Four writes of a quarter each; everything must have arrived. */
static void transfer(struct pump_pair *w)
{
    struct mrc_wc wc[4];
    fill(w->e[0].buf, BUF);
    for (uint32_t i = 0; i < 4; i++)
        end_write(&w->e[0], &w->e[1], 100 + i, i * (BUF / 4), BUF / 4);
    CHECK_EQ(pump_pair_run(w, &w->e[0], wc, 4), 4);
    for (uint32_t i = 0; i < 4; i++) {
        CHECK_EQ(wc[i].status, MRC_WC_SUCCESS);
        CHECK_EQ(wc[i].wr_id, 100 + i);
    }
    CHECK_MEM(w->e[1].buf, w->e[0].buf, BUF);
    CHECK((w->e[0].bits & MRC_TURN_CQ) != 0);
}

static uint64_t drops(const struct end *e)
{
    uint64_t n = 0;
    for (int i = 0; i < MRC_DROP_COUNT; i++)
        n += mrc_pump_drops(e->p, i);
    return n;
}

TEST(pump_udp__writes_arrive_over_all_paths)
{
    struct pump_pair w = pump_pair_open(MRC_IO_UDP, NULL, 0);
    transfer(&w);
    struct mrc_path_stats s[EVS + 1];
    CHECK_EQ(mrc_pump_path_stats(w.e[0].p, w.e[0].path, s, EVS + 1), EVS);
    for (uint32_t i = 0; i < EVS; i++) {
        CHECK_EQ(s[i].ev, 0x0003C100 + i);
        CHECK(s[i].packets_sent > 0);
    }
    for (int i = 0; i < 2; i++)
        CHECK_EQ(drops(&w.e[i]), 0);
    struct mrc_port_stats ps;
    CHECK_EQ(mrc_pump_port_stats(w.e[0].p, 0, &ps), 0);
    CHECK_EQ(ps.tx_errors, 0);
    CHECK(ps.tx_trains < ps.tx_packets); /* offload happens */
    pump_pair_close(&w);
}

TEST(pump_mem__writes_arrive_through_loss)
{
    struct pump_pair w = pump_pair_open(MRC_IO_MEM, NULL, 0);
    CHECK_EQ(mrc_mem_wire_faults(w.wire, -1, 10000, 1000), 0);
    transfer(&w);
    struct mrc_qp_stats s;
    CHECK_EQ(mrc_pump_qp_stats(w.e[0].p, w.e[0].qpn, &s), 0);
    CHECK(s.packets_retransmitted > 0);
    pump_pair_close(&w);
}

static int child_raw(void)
{
    uint8_t tmpl[40] = {0x60, [6] = 41, [7] = 64, [23] = 1, [39] = 1};
    child_loopback(9000);
    struct pump_pair w = pump_pair_open(MRC_IO_RAW, tmpl, sizeof tmpl);
    transfer(&w);
    struct mrc_port_stats ps;
    CHECK_EQ(mrc_pump_port_stats(w.e[1].p, 0, &ps), 0);
    CHECK_EQ(ps.rx_malformed, 0);
    pump_pair_close(&w);
    return 0;
}

TEST(pump_raw__writes_arrive_encapsulated)
{
    child_run("pump_raw__writes_arrive_encapsulated", child_raw);
}

TEST(pump_events__a_dead_path_is_reported)
{
    struct pump_pair w = pump_pair_open(MRC_IO_MEM, NULL, 0);
    CHECK_EQ(mrc_mem_wire_faults(w.wire, 0x0003C102, 1000000, 0), 0);
    transfer(&w);
    CHECK((w.e[0].bits & MRC_TURN_EVENT) != 0);
    struct mrc_ev_event ev[4];
    int dead = 0; /* a busy host may make others late as well */
    int n;
    do {
        n = mrc_pump_events(w.e[0].p, ev, 4);
        for (int i = 0; i < n; i++) {
            dead += ev[i].ev == 0x0003C102 && ev[i].to == MRC_EV_ASSUMED_BAD ? 1 : 0;
            CHECK_EQ(ev[i].table, w.e[0].path);
        }
    } while (n == 4);
    CHECK(dead >= 1);
    CHECK_EQ(mrc_pump_events(w.e[0].p, ev, 4), 0);
    pump_pair_close(&w);
}

/* The descriptor is readable whenever a turn is due, and only then. */
TEST(pump_fd__readable_when_a_turn_is_due)
{
    struct pump_pair w = pump_pair_open(MRC_IO_UDP, NULL, 0);
    struct end *e = &w.e[0];
    while (pump_readable(e, 0)) /* what connecting left behind */
        CHECK(mrc_pump_turn(e->p, 0) >= 0);
    end_write(e, &w.e[1], 1, 0, 100000);
    CHECK(pump_readable(e, 0));
    const int bits = mrc_pump_turn(e->p, 10);
    CHECK((bits & MRC_TURN_MORE) != 0); /* ten packets were not all */
    CHECK(pump_readable(e, 0));
    CHECK((mrc_pump_turn(e->p, 0) & MRC_TURN_MORE) == 0);
    /* All is out, and the other end has not answered yet: silence until the timer. */
    CHECK(!pump_readable(e, 0) || mrc_clock_now() >= e->p->armed);
    CHECK(e->p->armed != MRC_NEVER);
    CHECK(pump_readable(e, LIMIT_MS));
    struct mrc_wc wc;
    CHECK_EQ(pump_pair_run(&w, e, &wc, 1), 1);
    CHECK_EQ(wc.status, MRC_WC_SUCCESS);
    pump_pair_close(&w);
}

/* A post that says so needs no turn, and asks for none; what may wait asks for none either. */
TEST(pump_post__leaves_at_once_or_with_the_next_turn)
{
    struct pump_pair w = pump_pair_open(MRC_IO_UDP, NULL, 0);
    struct end *e = &w.e[0];
    struct mrc_qp_stats s;
    struct mrc_wc wc[2];
    const struct mrc_send_wr wr = {.laddr = (uint64_t)(uintptr_t)e->buf,
                                   .raddr = (uint64_t)(uintptr_t)w.e[1].buf,
                                   .length = 64,
                                   .lkey = e->rkey,
                                   .rkey = w.e[1].rkey,
                                   .flags = MRC_SEND_SIGNALED};
    while (pump_readable(e, 0)) /* what connecting left behind */
        CHECK(mrc_pump_turn(e->p, 0) >= 0);
    CHECK_EQ(mrc_pump_post(e->p, e->qpn, &wr, 1, MRC_POST_NOW), 1);
    CHECK_EQ(mrc_pump_qp_stats(e->p, e->qpn, &s), 0);
    CHECK_EQ(s.packets_sent, 1);
    CHECK(!e->p->kicked);
    CHECK_EQ(mrc_pump_post(e->p, e->qpn, &wr, 1, MRC_POST_LATER), 1);
    CHECK_EQ(mrc_pump_qp_stats(e->p, e->qpn, &s), 0);
    CHECK_EQ(s.packets_sent, 1);
    CHECK(!e->p->kicked);
    CHECK(mrc_pump_turn(e->p, 0) >= 0);
    CHECK_EQ(mrc_pump_qp_stats(e->p, e->qpn, &s), 0);
    CHECK_EQ(s.packets_sent, 2);
    CHECK_EQ(pump_pair_run(&w, e, wc, 2), 2);
    pump_pair_close(&w);
}

/* What the timer is set to after a turn of an idle pump for which it was set to `to`. */
static mrc_ns armed_after(struct end *e, mrc_ns to)
{
    CHECK_EQ(mrc_clock_arm(e->p->timer_fd, to), 0);
    e->p->armed = to;
    CHECK(mrc_pump_turn(e->p, 0) >= 0);
    return e->p->armed;
}

/* A time-out that is taken back leaves the timer alone, unless it would go off soon. */
TEST(pump_arm__a_timer_is_not_taken_back_for_later_times)
{
    struct pump_pair w = pump_pair_open(MRC_IO_UDP, NULL, 0);
    struct end *e = &w.e[0];
    transfer(&w);
    const mrc_ns end = mrc_clock_now() + LIMIT_MS * MRC_MSEC;
    while (mrc_engine_deadline(e->p->engine) != MRC_NEVER && mrc_clock_now() < end) {
        for (int i = 0; i < 2; i++)
            CHECK(mrc_pump_wait(w.e[i].p, 1) >= 0);
    }
    CHECK_EQ(mrc_engine_deadline(e->p->engine), MRC_NEVER);
    const mrc_ns far = mrc_clock_now() + LIMIT_MS * MRC_MSEC;
    CHECK_EQ(armed_after(e, far), far);
    CHECK_EQ(armed_after(e, mrc_clock_now() + MRC_MSEC) != MRC_NEVER, true);
    CHECK_EQ(armed_after(e, mrc_clock_now()), MRC_NEVER);
    pump_pair_close(&w);
}

/* Datagrams that the port throws away are paid for as well, or a flood of them would hold a turn
 * for as long as it lasts. */
TEST(pump_turn__a_flood_of_empty_datagrams_does_not_hold_it)
{
    enum { FLOOD = 2000, BUDGET = 64 };
    struct pump_pair w = pump_pair_open(MRC_IO_UDP, NULL, 0);
    struct mrc_port_stats ps;
    CHECK_EQ(mrc_pump_port_stats(w.e[0].p, 0, &ps), 0);
    struct sockaddr_in6 to = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    to.sin6_port = htons(ps.udp_port);
    const int fd = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    for (int i = 0; i < FLOOD; i++)
        CHECK_EQ(sendto(fd, "", 0, 0, (struct sockaddr *)&to, sizeof to), 0);
    CHECK((mrc_pump_turn(w.e[0].p, BUDGET) & MRC_TURN_MORE) != 0);
    CHECK_EQ(mrc_pump_port_stats(w.e[0].p, 0, &ps), 0);
    CHECK(ps.rx_malformed > 0 && ps.rx_malformed <= 4 * BUDGET);
    transfer(&w); /* and the others are served meanwhile */
    CHECK_EQ(mrc_pump_port_stats(w.e[0].p, 0, &ps), 0);
    CHECK_EQ(ps.rx_malformed + ps.rx_socket_drops, FLOOD);
    close(fd);
    pump_pair_close(&w);
}

/* field report 25: nothing to do means no turns */
TEST(pump_fd__idle_pump_sleeps)
{
    struct pump_pair w = pump_pair_open(MRC_IO_UDP, NULL, 0);
    transfer(&w);
    uint32_t turns = 0;
    const mrc_ns end = mrc_clock_now() + 200 * MRC_MSEC;
    for (mrc_ns now = mrc_clock_now(); now < end; now = mrc_clock_now()) {
        struct pollfd fds[2];
        for (int i = 0; i < 2; i++)
            fds[i] = (struct pollfd){.fd = mrc_pump_fd(w.e[i].p), .events = POLLIN};
        poll(fds, 2, (int)((end - now) / MRC_MSEC));
        for (int i = 0; i < 2; i++) {
            if (fds[i].revents != 0) {
                CHECK(mrc_pump_turn(w.e[i].p, 0) >= 0);
                turns++;
            }
        }
    }
    CHECK(turns < 50);
    pump_pair_close(&w);
}

TEST(pump_enter__second_thread_is_refused)
{
    struct pump_pair w = pump_pair_open(MRC_IO_MEM, NULL, 0);
    struct end *e = &w.e[0];
    struct mrc_wc wc;
    struct mrc_qp_stats s;
    uint64_t id = 1;
    CHECK(!atomic_flag_test_and_set(&e->p->busy)); /* as if a thread were inside */
    CHECK_EQ(mrc_pump_turn(e->p, 0), (uint64_t)MRC_ERR_BUSY);
    CHECK_EQ(mrc_pump_wait(e->p, 0), (uint64_t)MRC_ERR_BUSY);
    CHECK_EQ(mrc_pump_cq_poll(e->p, e->cq, &wc, 1), (uint64_t)MRC_ERR_BUSY);
    CHECK_EQ(mrc_pump_post_recv(e->p, e->qpn, &id, 1), (uint64_t)MRC_ERR_BUSY);
    CHECK_EQ(mrc_pump_qp_stats(e->p, e->qpn, &s), (uint64_t)MRC_ERR_BUSY);
    CHECK_EQ(mrc_pump_drops(e->p, 0), UINT64_MAX);
    atomic_flag_clear(&e->p->busy);
    CHECK_EQ(mrc_pump_qp_stats(e->p, e->qpn, &s), 0);
    pump_pair_close(&w);
}

static void *waiter(void *arg)
{
    struct end *e = arg;
    struct mrc_wc wc;
    const mrc_ns end = mrc_clock_now() + LIMIT_MS * MRC_MSEC;
    int done = 0;
    while (done == 0 && mrc_clock_now() < end) {
        int got = mrc_pump_wait(e->p, LIMIT_MS);
        CHECK(got >= 0 || got == MRC_ERR_BUSY); /* posting takes a moment, too */
        got = mrc_pump_cq_poll(e->p, e->cq, &wc, 1);
        done = got > 0;
    }
    CHECK_EQ(done, 1);
    return NULL;
}

static void *mirror(void *arg)
{
    struct end *e = ((struct end **)arg)[0];
    const struct end *stop = ((struct end **)arg)[1];
    while (__atomic_load_n(&stop->turns, __ATOMIC_ACQUIRE) == 0)
        CHECK(mrc_pump_wait(e->p, 5) >= 0);
    return NULL;
}

TEST(pump_wait__work_posted_by_another_thread_wakes)
{
    struct pump_pair w = pump_pair_open(MRC_IO_MEM, NULL, 0);
    struct end *both[2] = {&w.e[1], &w.e[0]};
    pthread_t sends;
    pthread_t answers;
    fill(w.e[0].buf, 1 << 20);
    CHECK_EQ(pthread_create(&answers, NULL, mirror, both), 0);
    CHECK_EQ(pthread_create(&sends, NULL, waiter, &w.e[0]), 0);
    const struct mrc_send_wr wr = {.wr_id = 1,
                                   .laddr = (uint64_t)(uintptr_t)w.e[0].buf,
                                   .raddr = (uint64_t)(uintptr_t)w.e[1].buf,
                                   .length = 1 << 20,
                                   .lkey = w.e[0].rkey,
                                   .rkey = w.e[1].rkey,
                                   .flags = MRC_SEND_SIGNALED};
    int got;
    do
        got = mrc_pump_post_send(w.e[0].p, w.e[0].qpn, &wr, 1);
    while (got == MRC_ERR_BUSY);
    CHECK_EQ(got, 1);
    pthread_join(sends, NULL);
    __atomic_store_n(&w.e[0].turns, 1, __ATOMIC_RELEASE);
    pthread_join(answers, NULL);
    CHECK_MEM(w.e[1].buf, w.e[0].buf, 1 << 20);
    pump_pair_close(&w);
}

/* field report 77 */
TEST(pump_fork__child_is_told_and_does_no_harm)
{
    struct pump_pair w = pump_pair_open(MRC_IO_UDP, NULL, 0);
    fflush(NULL);
    const pid_t pid = fork();
    if (pid == 0) {
        struct end *e = &w.e[0];
        uint64_t id = 1;
        bool ok = mrc_pump_fork_guard(e->p) == MRC_ERR_STATE &&
                  mrc_pump_turn(e->p, 0) == MRC_ERR_STATE &&
                  mrc_pump_wait(e->p, -1) == MRC_ERR_STATE &&
                  mrc_pump_post_recv(e->p, e->qpn, &id, 1) == MRC_ERR_STATE &&
                  strstr(mrc_pump_error(e->p), "fork") != NULL;
        pump_pair_close(&w);
        _exit(ok ? 0 : 1);
    }
    int status = 0;
    CHECK(waitpid(pid, &status, 0) == pid);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    CHECK_EQ(mrc_pump_fork_guard(w.e[0].p), 0);
    transfer(&w);
    pump_pair_close(&w);
}

static int blocked_sendmmsg(int fd, struct mmsghdr *msgs, unsigned int n, int flags)
{
    (void)fd;
    (void)msgs;
    (void)n;
    (void)flags;
    errno = EAGAIN;
    return -1;
}

static unsigned odd_calls;

/* Every third call fails for want of memory, with nothing sent. */
static int moody_sendmmsg(int fd, struct mmsghdr *msgs, unsigned int n, int flags)
{
    if (++odd_calls % 3 == 0) {
        errno = ENOBUFS;
        return -1;
    }
    return sendmmsg(fd, msgs, n, flags);
}

/* Field report 27: what a socket refuses is no credit lost. */
TEST(pump_tx__refused_calls_cost_no_credit)
{
    struct pump_pair w = pump_pair_open(MRC_IO_UDP, NULL, 0);
    struct end *e = &w.e[0];
    struct mrc_io *io = e->p->ports[0].io;
    struct mrc_qp_stats stats;
    struct mrc_wc wc[8];
    odd_calls = 0;
    io->sys_sendmmsg = moody_sendmmsg;
    fill(e->buf, BUF);
    for (uint32_t i = 0; i < 8; i++)
        end_write(e, &w.e[1], i, i * 65536, 65536);
    CHECK_EQ(pump_pair_run(&w, e, wc, 8), 8);
    for (int i = 0; i < 8; i++)
        CHECK_EQ(wc[i].status, MRC_WC_SUCCESS);
    CHECK(odd_calls > 6);
    CHECK_EQ(mrc_pump_qp_stats(e->p, e->qpn, &stats), 0);
    CHECK_EQ(stats.inflight_bytes, 0);
    CHECK_EQ(stats.outstanding, 0);
    for (int i = 0; i < 1000 && io->slot_free_count != MRC_IO_PENDING_MAX; i++) {
        usleep(1000); /* a last probe may wait for its turn */
        mrc_pump_turn(e->p, 0);
    }
    CHECK_EQ(io->slot_free_count, MRC_IO_PENDING_MAX);
    CHECK_MEM(w.e[1].buf, e->buf, 8 * 65536);
    pump_pair_close(&w);
}

static int counted_blocked_sendmmsg(int fd, struct mmsghdr *msgs, unsigned int n, int flags)
{
    odd_calls++;
    return blocked_sendmmsg(fd, msgs, n, flags);
}

/* Field report 29: a socket that takes nothing is tried a bounded number of times a turn, and what
 * waits for it does not grow for ever. */
TEST(pump_turn__a_blocked_socket_costs_a_bounded_effort)
{
    struct pump_pair w = pump_pair_open(MRC_IO_UDP, NULL, 0);
    struct end *e = &w.e[0];
    struct mrc_io *io = e->p->ports[0].io;
    struct mrc_qp_stats stats;
    struct mrc_wc wc;
    odd_calls = 0;
    io->sys_sendmmsg = counted_blocked_sendmmsg;
    fill(e->buf, BUF);
    end_write(e, &w.e[1], 1, 0, BUF);
    uint64_t sent = 0;
    for (unsigned turn = 1; turn <= 100; turn++) {
        const unsigned before = odd_calls;
        CHECK((mrc_pump_turn(e->p, 0) & MRC_TURN_BLOCKED) != 0);
        CHECK(odd_calls - before <= 2 * EVS); /* each lane once, and once more */
        CHECK_EQ(mrc_pump_qp_stats(e->p, e->qpn, &stats), 0);
        CHECK(stats.packets_sent - sent <= 2 * MRC_IO_PENDING_MAX);
        sent = stats.packets_sent;
        CHECK(stats.inflight_bytes <= (int64_t)stats.cwnd_bytes + 4096);
    }
    io->sys_sendmmsg = sendmmsg;
    CHECK_EQ(pump_pair_run(&w, e, &wc, 1), 1);
    CHECK_EQ(wc.status, MRC_WC_SUCCESS);
    CHECK_MEM(w.e[1].buf, e->buf, BUF);
    pump_pair_close(&w);
}

TEST(pump_mr__packets_that_wait_go_with_their_region)
{
    struct pump_pair w = pump_pair_open(MRC_IO_UDP, NULL, 0);
    struct end *e = &w.e[0];
    struct mrc_io *io = e->p->ports[0].io;
    io->sys_sendmmsg = blocked_sendmmsg;
    end_write(e, &w.e[1], 1, 0, 65536);
    CHECK((mrc_pump_turn(e->p, 0) & MRC_TURN_BLOCKED) != 0);
    CHECK_EQ(io->slot_free_count, MRC_IO_PENDING_MAX - 64);
    CHECK_EQ(mrc_pump_mr_deregister(e->p, e->rkey), (uint64_t)MRC_ERR_BUSY);
    CHECK(strstr(mrc_pump_error(e->p), "in use") != NULL);
    CHECK_EQ(mrc_pump_qp_destroy(e->p, e->qpn), 0);
    CHECK_EQ(mrc_pump_mr_deregister(e->p, e->rkey), 0);
    CHECK_EQ(io->slot_free_count, MRC_IO_PENDING_MAX);
    struct mrc_wc wc;
    CHECK_EQ(mrc_pump_cq_poll(e->p, e->cq, &wc, 1), 1); /* field report 49 */
    CHECK_EQ(wc.status, MRC_WC_WR_FLUSH_ERR);
    CHECK_EQ(mrc_pump_path_destroy(e->p, e->path), 0);
    CHECK_EQ(mrc_pump_path_destroy(e->p, e->path), (uint64_t)MRC_ERR_NOENT);
    pump_pair_close(&w);
}

/* A port that takes nothing must not stop the others (field report 60). */
TEST(pump_tx__stuck_port_does_not_hold_up_the_others)
{
    struct pump_pair w = pump_pair_open(MRC_IO_UDP, NULL, 0);
    struct end *e = &w.e[0];
    const struct mrc_port_cfg second = {.kind = MRC_IO_UDP,
                                        .udp_port = (uint16_t)(e->udp_port + 1),
                                        .udp_port_tries = 2000,
                                        .addr = {[15] = 1}};
    CHECK_EQ(mrc_pump_port_add(e->p, &second), 1);
    const struct mrc_qp_init init = {.pd = 1,
                                     .send_cq = e->cq,
                                     .recv_cq = e->cq,
                                     .sq_depth = 16,
                                     .rq_depth = 16,
                                     .mpr_max = 32,
                                     .max_wimm_dest = 16,
                                     .ev_max = EVS};
    struct end other = *e;
    other.qpn = (uint32_t)mrc_pump_qp_create(e->p, &init);
    other.path = (uint32_t)end_path(e, 1, &w.e[1], 0x0004C200, NULL, 0);
    struct end peer = w.e[1];
    peer.qpn = (uint32_t)mrc_pump_qp_create(peer.p, &init);
    end_connect(&other, &peer);
    end_connect(&peer, &other);
    e->p->ports[0].io->sys_sendmmsg = blocked_sendmmsg;
    end_write(e, &w.e[1], 1, 0, BUF); /* more packets than the stuck port can keep */
    const mrc_ns begin = mrc_clock_now();
    CHECK((mrc_pump_turn(e->p, 1 << 20) & MRC_TURN_BLOCKED) != 0);
    fill(e->buf, 65536);
    end_write(&other, &peer, 2, 0, 65536);
    struct mrc_wc wc;
    CHECK_EQ(pump_pair_run(&w, e, &wc, 1), 1);
    CHECK_EQ(wc.wr_id, 2);
    CHECK_EQ(wc.status, MRC_WC_SUCCESS);
    CHECK(mrc_clock_now() - begin < MRC_SEC);
    pump_pair_close(&w);
}

TEST(pump_create__refuses_and_leaks_nothing)
{
    struct mrc_engine_cfg cfg = {0};
    const size_t fds = pump_open_fds();
    CHECK(mrc_pump_create(&cfg) == NULL);
    struct pump_pair w = pump_pair_open(MRC_IO_UDP, NULL, 0);
    struct mrc_pump *p = w.e[0].p;
    struct mrc_peer_addr to = {.dport = w.e[1].udp_port, .dst = {[15] = 1}};
    struct mrc_path_cfg pc = {.count = 3, .min_active = 1, .event_ring = 64};
    struct mrc_lane_cfg lanes[3] = {{.ev = 0xC200, .plane = 1}, {.ev = 0xC201, .plane = 1}};
    uint8_t src[16];
    const size_t open = pump_open_fds();
    /* The last lane is wrong, a table with a twin, no such port, no such table. */
    CHECK_EQ(mrc_pump_path_create(p, 0, &to, &pc, lanes, src), (uint64_t)MRC_ERR_INVAL);
    lanes[2] = lanes[1];
    CHECK_EQ(mrc_pump_path_create(p, 0, &to, &pc, lanes, src), (uint64_t)MRC_ERR_INVAL);
    CHECK(strstr(mrc_pump_error(p), "twice") != NULL);
    CHECK_EQ(mrc_pump_path_create(p, 7, &to, &pc, lanes, src), (uint64_t)MRC_ERR_NOENT);
    CHECK_EQ(mrc_pump_path_destroy(p, 3), (uint64_t)MRC_ERR_NOENT);
    CHECK_EQ(mrc_pump_path_destroy(p, w.e[0].path), (uint64_t)MRC_ERR_BUSY);
    CHECK_EQ(mrc_pump_path_set_state(p, w.e[0].path, 1, MRC_EV_DENIED), (uint64_t)MRC_ERR_NOENT);
    CHECK_EQ(mrc_pump_path_set_state(p, w.e[0].path, 0x0003C100, MRC_EV_SKIP),
             (uint64_t)MRC_ERR_INVAL);
    CHECK_EQ(mrc_pump_path_set_state(p, w.e[0].path, 0x0003C100, MRC_EV_DENIED), 0);
    CHECK_EQ(pump_open_fds(), open);
    pump_pair_close(&w);
    CHECK_EQ(pump_open_fds(), fds);
}

static void *refused_elsewhere(void *arg)
{
    struct end *e = arg;
    CHECK_EQ(mrc_pump_mr_deregister(e->p, 0), (uint64_t)MRC_ERR_NOENT);
    CHECK(strstr(mrc_pump_error(e->p), "no such object") != NULL);
    return NULL;
}

TEST(pump_error__is_of_the_thread_that_was_refused)
{
    struct pump_pair w = pump_pair_open(MRC_IO_MEM, NULL, 0);
    struct end *e = &w.e[0];
    pthread_t other;
    CHECK(!atomic_flag_test_and_set(&e->p->busy)); /* as if a thread were inside */
    CHECK_EQ(mrc_pump_turn(e->p, 0), (uint64_t)MRC_ERR_BUSY);
    atomic_flag_clear(&e->p->busy);
    CHECK_EQ(pthread_create(&other, NULL, refused_elsewhere, e), 0);
    pthread_join(other, NULL);
    CHECK(strstr(mrc_pump_error(e->p), "another thread") != NULL);
    pump_pair_close(&w);
}

TEST(pump_close__is_refused_while_a_thread_is_inside_or_waits)
{
    struct pump_pair w = pump_pair_open(MRC_IO_MEM, NULL, 0);
    struct mrc_pump *p = w.e[0].p;
    CHECK(!atomic_flag_test_and_set(&p->busy)); /* as if a thread were inside */
    CHECK_EQ(mrc_pump_idle(p), (uint64_t)MRC_ERR_BUSY);
    CHECK_EQ(mrc_pump_close(p), (uint64_t)MRC_ERR_BUSY);
    atomic_flag_clear(&p->busy);
    atomic_fetch_add(&p->waiters, 1); /* as if one slept in mrc_pump_wait */
    CHECK_EQ(mrc_pump_idle(p), (uint64_t)MRC_ERR_BUSY);
    CHECK_EQ(mrc_pump_close(p), (uint64_t)MRC_ERR_BUSY);
    CHECK(strstr(mrc_pump_error(p), "another thread waits") != NULL);
    atomic_fetch_sub(&p->waiters, 1);
    CHECK(mrc_pump_turn(p, 0) >= 0); /* nothing was closed */
    CHECK_EQ(mrc_pump_idle(p), 0);
    pump_pair_close(&w);
}

TEST(pump_close__a_call_on_its_way_finds_it_closed)
{
    struct pump_pair w = pump_pair_open(MRC_IO_MEM, NULL, 0);
    struct mrc_pump *p = w.e[0].p;
    struct mrc_wc wc;
    const size_t fds = pump_open_fds();
    CHECK_EQ(mrc_pump_close(p), 0);
    CHECK(pump_open_fds() < fds);
    CHECK_EQ(mrc_pump_turn(p, 0), (uint64_t)MRC_ERR_STATE);
    CHECK_EQ(mrc_pump_cq_poll(p, w.e[0].cq, &wc, 1), (uint64_t)MRC_ERR_STATE);
    CHECK(strstr(mrc_pump_error(p), "closed") != NULL);
    CHECK(mrc_pump_wait(p, 0) < 0);
    CHECK_EQ(mrc_pump_close(p), (uint64_t)MRC_ERR_STATE); /* and is not closed twice */
    pump_pair_close(&w);
}
