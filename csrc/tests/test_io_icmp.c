/* SPDX-License-Identifier: BSD-2-Clause */
/* A stranger that guesses who talks to whom, and says by ICMPv6 that packets do not get through.
 * It need not be on the path, nor lie about its address: only the packet it quotes is looked at. */
#include "raw_rig.h"

#include "t.h"

#ifndef IPV6_MTU
#define IPV6_MTU 24
#endif

enum { ICMP_UNREACH = 1, ICMP_TOO_BIG = 2, ICMP_PARAM = 4, ICMP_QUOTE = 1000 };

/* About a packet from ::1, this port, to ::1, that one. */
static void icmp_forge(uint8_t type, uint8_t code, uint32_t mtu, uint16_t sport, uint16_t dport)
{
    uint8_t b[8 + IP_LEN + UDP_LEN + 32] = {type, code};
    uint8_t *const udp = b + 8 + IP_LEN;
    mrc_put32(b + 4, mtu);
    put_ip(b + 8, 0, ICMP_QUOTE, NH_UDP, port_loopback);
    mrc_put16(udp, sport);
    mrc_put16(udp + 2, dport);
    mrc_put16(udp + 4, ICMP_QUOTE);
    struct sockaddr_in6 to = {.sin6_family = AF_INET6};
    memcpy(&to.sin6_addr, port_loopback, 16);
    const int fd = socket(AF_INET6, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_ICMPV6);
    CHECK_EQ(sendto(fd, b, sizeof b, 0, (const struct sockaddr *)&to, sizeof to), sizeof b);
    close(fd);
}

/* An unconnected socket on a port of its own; *port is which. */
static int icmp_socket(uint16_t *port)
{
    struct sockaddr_in6 sa = {.sin6_family = AF_INET6};
    socklen_t len = sizeof sa;
    const int fd = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    memcpy(&sa.sin6_addr, port_loopback, 16);
    CHECK_EQ(bind(fd, (const struct sockaddr *)&sa, sizeof sa), 0);
    CHECK_EQ(getsockname(fd, (struct sockaddr *)&sa, &len), 0);
    *port = ntohs(sa.sin6_port);
    return fd;
}

static int icmp_route_mtu(void)
{
    struct sockaddr_in6 sa = {.sin6_family = AF_INET6, .sin6_port = htons(9)};
    int mtu = 0;
    socklen_t len = sizeof mtu;
    const int fd = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    memcpy(&sa.sin6_addr, port_loopback, 16);
    CHECK_EQ(connect(fd, (const struct sockaddr *)&sa, sizeof sa), 0);
    CHECK_EQ(getsockopt(fd, IPPROTO_IPV6, IPV6_MTU, &mtu, &len), 0);
    close(fd);
    return mtu;
}

/* Full packets, a train and one alone, arrive whole, and nothing is said of the lane. */
static void icmp_check_full(struct port *a, struct port *b, uint32_t lane)
{
    struct mrc_tx_pkt pkts[3];
    for (uint32_t i = 0; i < 3; i++)
        pkts[i] = port_pkt(a, lane, i, 4096);
    port_tx(a, pkts, 3);
    port_tx(a, pkts, 1);
    size_t n = 0;
    const struct arrival *in = port_rx(b, 4, &n);
    CHECK_EQ(n, 4);
    for (uint32_t i = 0; i < n; i++)
        CHECK(port_same(&in[i], i % 3, 4096));
    CHECK_EQ(a->io->stats.tx_errors, 0);
    CHECK_EQ(a->io->failed_count, 0);
}

static void icmp_too_big(uint8_t kind)
{
    struct port a = port_open(kind);
    struct port b = port_open(kind);
    const uint32_t lane = port_lane(&a, &b, 0xC123);
    icmp_check_full(&a, &b, lane);
    icmp_forge(ICMP_TOO_BIG, 0, 1280, 0xC123, b.io->stats.udp_port);
    icmp_forge(ICMP_TOO_BIG, 0, 1280, a.io->stats.udp_port, b.io->stats.udp_port);
    CHECK_EQ(icmp_route_mtu(), 9000); /* our sockets tell the host nothing either */
    uint16_t port;
    const int other = icmp_socket(&port);
    icmp_forge(ICMP_TOO_BIG, 0, 1280, port, b.io->stats.udp_port);
    CHECK_EQ(icmp_route_mtu(), 1280); /* somebody else's did */
    icmp_check_full(&a, &b, lane);
    close(other);
    port_close(&a);
    port_close(&b);
}

static int child_too_big_udp(void)
{
    child_loopback(9000);
    icmp_too_big(MRC_IO_UDP);
    return 0;
}

TEST(io_icmp__a_packet_too_big_is_not_believed)
{
    child_run("io_icmp__a_packet_too_big_is_not_believed", child_too_big_udp);
}

static int child_too_big_raw(void)
{
    child_loopback(9000);
    icmp_too_big(MRC_IO_RAW);
    return 0;
}

TEST(io_icmp__nor_by_a_raw_port) { child_run("io_icmp__nor_by_a_raw_port", child_too_big_raw); }

/* What ICMPv6 calls fatal for a connected socket; a report a packet costs a call, no packet. */
static int child_unreachable(void)
{
    static const uint8_t said[][2] = {
        {ICMP_UNREACH, 1}, {ICMP_UNREACH, 4}, {ICMP_UNREACH, 5}, {ICMP_UNREACH, 6}, {ICMP_PARAM, 0},
    };
    child_loopback(9000);
    struct port a = port_open(MRC_IO_UDP);
    struct port b = port_open(MRC_IO_UDP);
    const uint32_t lane = port_lane(&a, &b, 0xC123);
    for (uint32_t k = 0; k < sizeof said / sizeof said[0]; k++) {
        icmp_forge(said[k][0], said[k][1], 0, 0xC123, b.io->stats.udp_port);
        icmp_check_full(&a, &b, lane);
        CHECK_EQ(a.io->stats.tx_refused, k + 1);
    }
    port_close(&a);
    port_close(&b);
    return 0;
}

TEST(io_icmp__unreachable_costs_no_packet_and_no_lane)
{
    child_run("io_icmp__unreachable_costs_no_packet_and_no_lane", child_unreachable);
}
