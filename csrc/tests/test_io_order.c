/* SPDX-License-Identifier: BSD-2-Clause */
/* The order in which packets leave: with trains of a given length it is that in which their paths
 * were chosen, at the port and, for a whole queue pair, as a bystander on the wire sees it. */
#include "io_port.h"
#include "net_child.h"
#include "pump_pair.h"
#include "t.h"

#include <linux/filter.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <netinet/ip6.h>

enum { LANES = 8, PACKETS = 64 };

/* Lanes of two ports, and packets for them: `row` to each before the next one. */
struct order {
    struct port a;
    struct port b;
    uint32_t lanes[LANES];
    struct mrc_tx_pkt pkts[PACKETS];
};

static void order_open(struct order *o, uint8_t train, uint32_t row)
{
    o->a = port_open(MRC_IO_UDP);
    o->b = port_open(MRC_IO_UDP);
    for (uint32_t i = 0; i < LANES; i++)
        o->lanes[i] = port_lane(&o->a, &o->b, 0xC200 + i);
    for (uint32_t i = 0; i < PACKETS; i++) {
        o->pkts[i] = port_pkt(&o->a, o->lanes[i / row % LANES], i, 512);
        o->pkts[i].train = train;
    }
}

static void order_close(struct order *o)
{
    port_close(&o->a);
    port_close(&o->b);
}

static void order_is_kept(struct order *o, uint32_t trains)
{
    size_t n = 0;
    port_tx(&o->a, o->pkts, PACKETS);
    CHECK_EQ(o->a.io->stats.tx_trains, trains);
    const struct arrival *in = port_rx(&o->b, PACKETS, &n);
    CHECK_EQ(n, PACKETS);
    for (uint32_t i = 0; i < n; i++)
        CHECK(port_same(&in[i], i, 512));
}

TEST(udp_order__single_packets_leave_as_their_paths_were_chosen)
{
    struct order o;
    order_open(&o, 1, 1);
    order_is_kept(&o, PACKETS);
    order_close(&o);
}

TEST(udp_order__limited_trains_do_not_gather)
{
    struct order o;
    order_open(&o, 4, 4);
    order_is_kept(&o, PACKETS / 4);
    order_close(&o);
}

/* Control packets have no limit; those among data do not undo the order. */
TEST(udp_order__is_kept_around_packets_without_a_limit)
{
    struct order o;
    order_open(&o, 1, 1);
    for (uint32_t i = 0; i < PACKETS; i += 5)
        o.pkts[i].train = 0;
    order_is_kept(&o, PACKETS);
    order_close(&o);
}

static int full_fd; /* the socket that has no room; -1: all have */

static int full_sendmmsg(int fd, struct mmsghdr *msgs, unsigned int n, int flags)
{
    if (full_fd == -2)
        full_fd = fd; /* the first one used */
    if (fd != full_fd)
        return sendmmsg(fd, msgs, n, flags);
    errno = EAGAIN;
    return -1;
}

TEST(udp_order__a_full_lane_waits_alone_and_in_order)
{
    struct order o;
    size_t n = 0;
    order_open(&o, 1, 1);
    o.a.io->sys_sendmmsg = full_sendmmsg;
    full_fd = -2;
    port_tx(&o.a, o.pkts, PACKETS);
    const struct arrival *in = port_rx(&o.b, PACKETS - PACKETS / LANES, &n);
    CHECK_EQ(n, PACKETS - PACKETS / LANES);
    for (uint32_t i = 0, k = 0; i < PACKETS && k < n; i++) {
        if (i % LANES != 0)
            CHECK(port_same(&in[k++], i, 512));
    }
    CHECK_EQ(o.a.io->stats.tx_blocked, 1); /* the later ones queue behind the first */
    full_fd = -1;
    o.a.io->ops->resume(o.a.io, UINT32_MAX);
    in = port_rx(&o.b, PACKETS / LANES, &n);
    CHECK_EQ(n, PACKETS / LANES);
    for (uint32_t i = 0; i < n; i++)
        CHECK(port_same(&in[i], i * LANES, 512));
    order_close(&o);
}

/* ---- a bystander ---- */

/* Sees what leaves by the loopback interface to this port, headers first, if it is as long as
 * data. */
static int order_watch(uint16_t dport, uint16_t longer)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)(SKF_AD_OFF + SKF_AD_PKTTYPE)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, PACKET_OUTGOING, 0, 5), /* ETH_P_ALL sees those, too */
        BPF_STMT(BPF_LD | BPF_H | BPF_ABS, 4),
        BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, longer, 0, 3),
        BPF_STMT(BPF_LD | BPF_H | BPF_ABS, sizeof(struct ip6_hdr) + 2),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, dport, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, UINT32_MAX),
        BPF_STMT(BPF_RET | BPF_K, 0),
    };
    const struct sock_fprog prog = {.len = sizeof code / sizeof code[0], .filter = code};
    struct sockaddr_ll at = {.sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL)};
    at.sll_ifindex = (int)if_nametoindex("lo");
    const int fd = socket(AF_PACKET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    CHECK(fd >= 0);
    CHECK_EQ(setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &prog, sizeof prog), 0);
    CHECK_EQ(bind(fd, (const struct sockaddr *)&at, sizeof at), 0);
    return fd;
}

/* Of what was seen: how many packets, and how many in a row on one path at most. */
static uint32_t order_rows(int fd, uint32_t *most)
{
    uint8_t head[sizeof(struct ip6_hdr) + 8];
    uint32_t n = 0;
    uint32_t row = 0;
    uint16_t before = 0;
    *most = 0;
    while (recv(fd, head, sizeof head, MSG_TRUNC) > (ssize_t)sizeof head) {
        const uint16_t sport = mrc_get16(head + sizeof(struct ip6_hdr));
        row = sport == before ? row + 1 : 1;
        *most = row > *most ? row : *most;
        before = sport;
        n++;
    }
    return n;
}

/* One write of so many packets, trains as given. */
static uint32_t order_of_write(uint8_t train_max)
{
    struct pump_pair w = pump_pair_open(MRC_IO_UDP, NULL, 0);
    const struct mrc_qp_attr a = {.train_max = train_max};
    struct mrc_wc wc;
    uint32_t most;
    CHECK_EQ(mrc_pump_qp_modify(w.e[0].p, w.e[0].qpn, &a, MRC_QP_TRAIN), 0);
    const int watch = order_watch(w.e[1].udp_port, 1024);
    end_write(&w.e[0], &w.e[1], 1, 0, PACKETS * 1024);
    CHECK_EQ(pump_pair_run(&w, &w.e[0], &wc, 1), 1);
    CHECK_EQ(wc.status, MRC_WC_SUCCESS);
    const uint32_t seen = order_rows(watch, &most);
    if (train_max == 1)
        CHECK(seen >= PACKETS);
    CHECK(seen >= PACKETS / 16);
    close(watch);
    pump_pair_close(&w);
    return most;
}

static int order_child(void)
{
    child_loopback(65536);
    CHECK_EQ(order_of_write(1), 1);
    CHECK_EQ(order_of_write(4), 1); /* each seen is a train */
    return 0;
}

TEST(pump_order__a_bystander_sees_spraying)
{
    child_run("pump_order__a_bystander_sees_spraying", order_child);
}
