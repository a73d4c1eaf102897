/* SPDX-License-Identifier: BSD-2-Clause */
/* Looking for the next packet before sleeping (ADR 131): when it is begun, how it ends, and that
 * what was in vain is done less often. No time is measured: turns say when they began. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "pump_pair.h"
#include "t.h"

#include <netinet/in.h>
#include <sched.h>
#include <sys/socket.h>

enum { SMALL = 64, SPIN_US = 1000, SKIP_MAX = 63 };

#define LONG_AGO ((mrc_ns)1)
#define MUCH_LATER (UINT64_MAX / 2)

static struct pump_look look_of(uint32_t spin_us)
{
    struct pump_look l = {0};
    pump_look_set(&l, spin_us);
    return l;
}

static bool turn_at(struct pump_look *l, mrc_ns now, uint32_t moved)
{
    const struct pump_turn t = {.now = now, .moved = moved};
    return pump_look(l, &t, true);
}

/* Occasions that are let pass before the next look; that one is in vain as well. */
static uint32_t passed_over(struct pump_look *l)
{
    uint32_t n = 0;
    while (n <= SKIP_MAX && !turn_at(l, LONG_AGO, 1))
        n++;
    CHECK(!turn_at(l, MUCH_LATER, 0));
    return n;
}

TEST(look__begins_with_a_packet_and_ends_by_itself)
{
    struct pump_look l = look_of(SPIN_US);
    CHECK(!turn_at(&l, LONG_AGO, 0));
    CHECK(turn_at(&l, LONG_AGO, 1));
    CHECK(turn_at(&l, LONG_AGO, 0)); /* a turn that finds nothing does not end it */
    CHECK(!turn_at(&l, MUCH_LATER, 0));
    CHECK(!turn_at(&l, LONG_AGO, 0));
    CHECK_EQ(pump_look_until(&l), 0);
}

TEST(look__never_where_it_is_off_or_not_wanted)
{
    struct pump_look off = look_of(0);
    struct pump_look on = look_of(SPIN_US);
    const struct pump_turn t = {.now = LONG_AGO, .moved = 1};
    CHECK(!pump_look(&off, &t, true));
    CHECK(!pump_look(&on, &t, false));
    CHECK(pump_look(&on, &t, true));
    CHECK(!pump_look(&on, &t, false)); /* nor goes one on then */
}

TEST(look__in_vain_is_done_less_often)
{
    struct pump_look l = look_of(SPIN_US);
    uint32_t last = passed_over(&l);
    CHECK_EQ(last, 0);
    for (int i = 0; i < 5; i++) {
        const uint32_t n = passed_over(&l);
        CHECK_EQ(n, 2 * last + 1);
        last = n;
    }
    CHECK_EQ(last, 31);
    for (int i = 0; i < 3; i++)
        CHECK_EQ(passed_over(&l), SKIP_MAX);
}

TEST(look__that_finds_something_is_done_again)
{
    struct pump_look l = look_of(SPIN_US);
    for (int i = 0; i < 4; i++)
        passed_over(&l);
    while (!turn_at(&l, LONG_AGO, 1))
        ;
    for (int i = 0; i < 10; i++)
        CHECK(turn_at(&l, LONG_AGO, 1));
    CHECK(!turn_at(&l, MUCH_LATER, 1)); /* this one came after the look had ended */
    CHECK(turn_at(&l, LONG_AGO, 1));
}

TEST(look__is_prolonged_by_what_is_sent)
{
    struct pump_look l = look_of(SPIN_US);
    pump_look_on(&l, LONG_AGO);
    CHECK_EQ(pump_look_until(&l), 0); /* nobody looks */
    CHECK(turn_at(&l, LONG_AGO, 1));
    const mrc_ns until = pump_look_until(&l);
    pump_look_on(&l, until - 1);
    CHECK_EQ(pump_look_until(&l), until - 1 + SPIN_US * MRC_USEC);
    pump_look_on(&l, MUCH_LATER);
    CHECK(pump_look_until(&l) < MUCH_LATER); /* it has ended */
    CHECK_EQ(look_of(UINT32_MAX).max, 1000 * MRC_USEC);
}

/* ---- pumps that are turned by hand ---- */

static int bits_of_a_write(uint32_t spin_us)
{
    struct pump_pair w = pump_pair_open(MRC_IO_UDP, NULL, 0);
    struct mrc_wc wc;
    for (int i = 0; i < 2; i++)
        CHECK_EQ(mrc_pump_spin(w.e[i].p, spin_us), 0);
    end_write(&w.e[0], &w.e[1], 1, 0, SMALL);
    CHECK_EQ(pump_pair_run(&w, &w.e[0], &wc, 1), 1);
    const int bits = w.e[0].bits;
    const mrc_ns end = mrc_clock_now() + LIMIT_MS * MRC_MSEC;
    while ((mrc_pump_turn(w.e[0].p, 0) & MRC_TURN_SOON) != 0)
        CHECK(mrc_clock_now() < end); /* nothing comes: it ends */
    CHECK_EQ(mrc_pump_wait(w.e[0].p, 1) & MRC_TURN_CQ, 0);
    pump_pair_close(&w);
    return bits;
}

TEST(look_turn__says_soon_after_a_packet)
{
    CHECK((bits_of_a_write(SPIN_US) & MRC_TURN_SOON) != 0);
    CHECK((bits_of_a_write(0) & MRC_TURN_SOON) == 0);
}

/* A pump that has much to do does not look: what comes meanwhile gathers, and costs less. */
TEST(look_turn__not_in_the_midst_of_bulk)
{
    struct pump_pair w = pump_pair_open(MRC_IO_UDP, NULL, 0);
    CHECK_EQ(mrc_pump_spin(w.e[0].p, SPIN_US), 0);
    end_write(&w.e[0], &w.e[1], 1, 0, 16 * 1024);
    CHECK_EQ(mrc_pump_turn(w.e[0].p, 0) & MRC_TURN_SOON, 0);
    pump_pair_close(&w);
}

static uint64_t dropped(const struct mrc_pump *p)
{
    uint64_t sum = 0;
    for (int d = 0; d < MRC_DROP_COUNT; d++)
        sum += mrc_engine_drops(p->engine, (enum mrc_drop)d);
    return sum;
}

/* What anybody may send to a port is no exchange: he could keep a core busy with next to nothing.
 */
TEST(look_turn__not_for_what_strangers_send)
{
    enum { COUNT = 200 };
    struct pump_pair w = pump_pair_open(MRC_IO_UDP, NULL, 0);
    struct mrc_pump *p = w.e[0].p;
    struct sockaddr_in6 to = {.sin6_family = AF_INET6, .sin6_port = htons(w.e[0].udp_port)};
    const int fd = socket(AF_INET6, SOCK_DGRAM, 0);
    const mrc_ns end = mrc_clock_now() + LIMIT_MS * MRC_MSEC;
    uint8_t junk[COUNT] = {[3] = 0x5A};
    memcpy(&to.sin6_addr, pump_loopback, 16);
    CHECK_EQ(mrc_pump_spin(p, SPIN_US), 0);
    for (size_t len = 1; len <= COUNT; len++) {
        CHECK_EQ(sendto(fd, junk, len, 0, (struct sockaddr *)&to, sizeof to), len);
        while (dropped(p) < len && mrc_clock_now() < end)
            CHECK_EQ(mrc_pump_turn(p, 0) & MRC_TURN_SOON, 0);
        CHECK_EQ(dropped(p), len);
    }
    close(fd);
    pump_pair_close(&w);
}

/* The time looked is a part of the time waited. */
TEST(look_wait__keeps_its_limit)
{
    struct pump_pair w = pump_pair_open(MRC_IO_UDP, NULL, 0);
    const mrc_ns until = mrc_clock_now() + LIMIT_MS * MRC_MSEC;
    atomic_store(&w.e[0].p->look.until, until);
    CHECK(mrc_pump_wait(w.e[0].p, 1) >= 0);
    CHECK(mrc_clock_now() < until);
    pump_pair_close(&w);
}

/* Whoever waits finds the packets that come while he looks, and those that come when he sleeps. */
TEST(look_wait__misses_nothing)
{
    struct pump_pair w = pump_pair_open(MRC_IO_UDP, NULL, 0);
    struct mrc_wc wc;
    CHECK_EQ(mrc_pump_start(w.e[1].p, 0), 0);
    CHECK_EQ(mrc_pump_spin(w.e[0].p, 20), 0);
    for (uint32_t i = 0; i < 2000; i++) {
        int have = 0;
        end_write(&w.e[0], &w.e[1], i, 0, SMALL);
        while (have == 0 && mrc_pump_wait(w.e[0].p, LIMIT_MS) >= 0)
            have = mrc_pump_cq_poll(w.e[0].p, w.e[0].cq, &wc, 1);
        CHECK_EQ(have, 1);
        CHECK_EQ(wc.wr_id, i);
    }
    pump_pair_close(&w);
}

/* ---- a thread that takes the turns, on the core of the application ---- */

/* Both ends on one core; the application of end 1 does not call, as far as its pump knows. */
static bool looks_on_one_core(mrc_ns called)
{
    cpu_set_t before;
    cpu_set_t one;
    struct mrc_wc wc;
    bool looked = false;
    CHECK_EQ(sched_getaffinity(0, sizeof before, &before), 0);
    CPU_ZERO(&one);
    CPU_SET((size_t)sched_getcpu(), &one);
    CHECK_EQ(sched_setaffinity(0, sizeof one, &one), 0);
    struct pump_pair w = pump_pair_open(MRC_IO_UDP, NULL, 0);
    struct mrc_pump *p = w.e[1].p;
    for (int i = 0; i < 2; i++)
        CHECK_EQ(mrc_pump_start(w.e[i].p, i == 1 ? SPIN_US : 0), 0);
    CHECK_EQ(mrc_pump_spin(p, SPIN_US), 0); /* so that it knows from where we call */
    atomic_store(&p->thread.called, called);
    for (uint32_t i = 0; i < 200 && !looked; i++) {
        int have = 0;
        end_write(&w.e[0], &w.e[1], i, 0, SMALL);
        while (have == 0 && mrc_pump_wait(w.e[0].p, LIMIT_MS) >= 0)
            have = mrc_pump_cq_poll(w.e[0].p, w.e[0].cq, &wc, 1);
        CHECK_EQ(have, 1);
        looked = pump_look_until(&p->look) != 0;
    }
    pump_pair_close(&w);
    CHECK_EQ(sched_setaffinity(0, sizeof before, &before), 0);
    return looked;
}

TEST(look_thread__on_the_core_of_an_application_that_sleeps)
{
    CHECK(looks_on_one_core(0));
    CHECK(!looks_on_one_core(MUCH_LATER)); /* it calls all the time */
}
