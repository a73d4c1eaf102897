/* SPDX-License-Identifier: BSD-2-Clause */
/* The relay of mrc-lab between packet sockets on a loopback interface: every frame comes once, as
 * it was but for its mark, whatever is in it; what is too long or for nobody is counted. */
#include "net_child.h"

#include "../lab/mrc_relay.c"

#include <arpa/inet.h>
#include <linux/filter.h>
#include <net/ethernet.h>

enum { MTU = 1500, FRAMES = 120, LONGEST = 60000 };

struct wire {
    struct mrc_relay *relay;
    int link;
    int out;     /* frames go in here */
    int in;      /* and what the relay sends comes here */
    int here[2]; /* the control descriptor, and what makes it readable */
};

static int wire_socket(bool marked)
{
    /* as relay.py has it: fresh frames for the relay; here also the others, for the test */
    struct sock_filter code[] = {
        {0x30, 0, 0, RELAY_SOURCE},
        {0x45, marked, !marked, RELAY_BIT},
        {6, 0, 0, 0},
        {6, 0, 0, 0xFFFFFFFF},
    };
    const struct sock_fprog program = {.len = 4, .filter = code};
    const struct sockaddr_ll at = {
        .sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL), .sll_ifindex = 1};
    const int on = 1;
    const int room = 1 << 23;
    const int fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
    CHECK_EQ(setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program), 0);
    CHECK_EQ(setsockopt(fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, &on, sizeof on), 0);
    (void)setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof room);
    CHECK_EQ(bind(fd, (const struct sockaddr *)&at, sizeof at), 0);
    return fd;
}

static int wire_sender(void)
{
    const struct sockaddr_ll at = {.sll_family = AF_PACKET, .sll_ifindex = 1};
    const int fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
    CHECK_EQ(bind(fd, (const struct sockaddr *)&at, sizeof at), 0);
    return fd;
}

static struct wire wire_open(uint64_t delay_ns)
{
    child_loopback(65536);
    struct wire w = {.relay = mrc_relay_new(1), .in = wire_socket(true), .out = wire_sender()};
    CHECK(w.relay != NULL);
    w.link = mrc_relay_add(w.relay, wire_socket(false), wire_sender(), MTU);
    CHECK(w.link >= 0);
    mrc_relay_set(w.relay, (uint32_t)w.link, delay_ns, 0);
    CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, w.here), 0);
    return w;
}

/* Until so many frames have been dealt with. */
static void wire_run(struct wire *w, uint64_t frames)
{
    for (int turn = 0; turn < 5000; turn++) {
        struct mrc_relay_stats s;
        char byte;
        CHECK_EQ(write(w->here[1], "x", 1), 1);
        mrc_relay_run(w->relay, w->here[0]);
        CHECK_EQ(read(w->here[0], &byte, 1), 1);
        mrc_relay_read_stats(w->relay, &s);
        if (s.relayed + s.refused + s.no_room + s.too_long >= frames)
            return;
        (void)poll(NULL, 0, 1);
    }
    t_fail(__FILE__, __LINE__, "the relay dealt with all frames in time");
}

/* A frame of such length with anything in it, but not the mark of the relay. */
static void frame_fill(uint8_t *p, uint32_t len, uint32_t seed)
{
    for (uint32_t i = 0; i < len; i++) {
        seed = seed * 1664525u + 1013904223u;
        p[i] = (uint8_t)(seed >> 24);
    }
    p[RELAY_SOURCE] &= (uint8_t)~RELAY_BIT;
}

static uint32_t frame_len(uint32_t n) { return n < 20 ? ETH_HLEN + n : 60 + n * 11; }

static int frames_of_any_kind(void)
{
    static uint8_t sent[4096], got[4096];
    struct wire w = wire_open(2000000);
    uint32_t count = 0;
    for (uint32_t n = 0; n < FRAMES; n++) {
        frame_fill(sent, frame_len(n), n);
        CHECK_EQ(send(w.out, sent, frame_len(n), 0), (ssize_t)frame_len(n));
    }
    wire_run(&w, FRAMES);
    for (uint32_t n = 0; n < FRAMES; n++) {
        const ssize_t len = recv(w.in, got, sizeof got, MSG_DONTWAIT);
        if (len < 0)
            break;
        count++;
        frame_fill(sent, frame_len(n), n);
        sent[RELAY_SOURCE] |= RELAY_BIT;
        CHECK_EQ(len, frame_len(n));
        CHECK_MEM(got, sent, (size_t)len);
    }
    CHECK_EQ(count, FRAMES); /* in the order they came, and each once: */
    CHECK(recv(w.in, got, sizeof got, MSG_DONTWAIT) < 0);
    return (int)t_failures;
}

static int frames_too_long(void)
{
    static uint8_t frame[LONGEST];
    struct wire w = wire_open(0);
    struct mrc_relay_stats s;
    const uint32_t lens[] = {1900, 2500, 9000, LONGEST, 100};
    for (uint32_t n = 0; n < 5; n++) {
        frame_fill(frame, lens[n], n);
        CHECK_EQ(send(w.out, frame, lens[n], 0), (ssize_t)lens[n]);
    }
    wire_run(&w, 5);
    mrc_relay_read_stats(w.relay, &s);
    CHECK_EQ(s.too_long, 3);
    CHECK_EQ(s.relayed, 2);
    return (int)t_failures;
}

static int an_end_with_frames_kept(void)
{
    static uint8_t frame[200], got[400];
    struct wire w = wire_open(20000000);
    for (uint32_t n = 0; n < 10; n++) {
        frame_fill(frame, sizeof frame, n);
        CHECK_EQ(send(w.out, frame, sizeof frame, 0), (ssize_t)sizeof frame);
    }
    mrc_relay_end(w.relay, (uint32_t)w.link);
    CHECK_EQ(w.relay->links[w.link].kept, 10);
    wire_run(&w, 10);
    for (uint32_t n = 0; n < 10; n++)
        CHECK_EQ(recv(w.in, got, sizeof got, MSG_DONTWAIT), (ssize_t)sizeof frame);
    CHECK_EQ(w.relay->bytes_kept, 0);
    CHECK_EQ(w.relay->links[w.link].tx, -1);
    const int again = mrc_relay_add(w.relay, wire_socket(false), wire_sender(), MTU);
    CHECK_EQ(again, w.link);
    return (int)t_failures;
}

static int sockets_that_are_none(void)
{
    child_loopback(65536);
    struct mrc_relay *r = mrc_relay_new(1);
    CHECK_EQ(mrc_relay_add(r, -1, -1, MTU), -EBADF);
    CHECK_EQ(mrc_relay_add(r, wire_socket(false), -1, MTU), -EBADF);
    CHECK_EQ(r->links[0].rx, -1);
    CHECK(r->links[0].ring == NULL);
    CHECK_EQ(mrc_relay_add(r, wire_socket(false), wire_sender(), MTU), 0);
    return (int)t_failures;
}

TEST(relay__frames_of_any_kind_come_once_and_as_they_were)
{
    child_run("relay", frames_of_any_kind);
}

TEST(relay__what_is_longer_than_its_ring_takes_is_counted) { child_run("relay", frames_too_long); }

TEST(relay__what_is_kept_leaves_after_the_end_of_its_link)
{
    child_run("relay", an_end_with_frames_kept);
}

TEST(relay__a_link_that_cannot_be_made_leaves_nothing)
{
    child_run("relay", sockets_that_are_none);
}
