/* SPDX-License-Identifier: BSD-2-Clause */
/* The raw backend: what it sends is looked at from outside. What it receives: test_rawrx.c. */
#include "raw_rig.h"

#include <arpa/inet.h>
#include <linux/capability.h>
#include <linux/if_ether.h>
#include <sys/syscall.h>

/* No encapsulation, uSID carrier, uSID carrier and SRH: the same packet arrives. */
static int child_round_trip(void)
{
    child_fabric();
    struct port a = port_open(MRC_IO_RAW);
    struct port b = port_open(MRC_IO_RAW);
    for (int kind = 0; kind < 3; kind++) {
        const uint32_t lane = raw_lane(&a, &b, 0xBEEFC123, kind);
        struct mrc_tx_pkt pkts[40];
        for (uint32_t i = 0; i < 40; i++) {
            pkts[i] = port_pkt(&a, lane, i, i * 100);
            pkts[i].tclass = (uint8_t)(4 * i + 2);
        }
        port_tx(&a, pkts, 40);
        size_t n = 0;
        const struct arrival *in = port_rx(&b, 40, &n);
        CHECK_EQ(n, 40);
        for (uint32_t i = 0; i < n; i++) {
            CHECK(port_same(&in[i], i, i * 100));
            CHECK_EQ(mrc_wire_ev(in[i].pkt.flow_label, in[i].pkt.sport), 0xBEEFC123);
            CHECK_EQ(in[i].pkt.tclass, 4 * i + 2);
            CHECK_EQ(in[i].pkt.dport, b.io->stats.udp_port);
            CHECK_EQ(in[i].pkt.port, 3);
            CHECK_MEM(in[i].pkt.src, port_loopback, 16);
            CHECK_MEM(in[i].pkt.dst, port_loopback, 16);
        }
        size_t stray = 0;
        port_rx(&a, 0, &stray); /* its filter keeps out what is for b */
        CHECK_EQ(stray, 0);
        port_rx(&b, 0, &stray); /* nothing comes twice, whichever sockets could have it */
        CHECK_EQ(stray, 0);
    }
    CHECK_EQ(a.io->stats.tx_packets, 120);
    CHECK_EQ(a.io->stats.tx_errors, 0);
    CHECK_EQ(b.io->stats.rx_malformed, 0);
    port_close(&a);
    port_close(&b);
    return 0;
}

/* Field report 67: all three stacks, through the kernel, whole at the other end. */
TEST(raw_tx__plain_usid_and_srh_arrive)
{
    child_run("raw_tx__plain_usid_and_srh_arrive", child_round_trip);
}

/* Every byte of the headers, as another socket sees them. */
static int child_bytes(void)
{
    child_fabric();
    struct port a = port_open(MRC_IO_RAW);
    const int tap = socket(AF_INET6, SOCK_RAW | SOCK_CLOEXEC, NH_IPV6);
    const uint32_t lane = raw_lane(&a, &a, 0xBEEFC123, 1);
    struct mrc_tx_pkt pkt = port_pkt(&a, lane, 1, 100);
    pkt.tclass = 0xBA;
    port_tx(&a, &pkt, 1);
    uint8_t got[512];
    uint8_t want[IP_LEN + UDP_LEN];
    CHECK_EQ(recv(tap, got, sizeof got, 0), IP_LEN + UDP_LEN + 136);
    put_ip(want, 0xBA, UDP_LEN + 136, NH_UDP, port_loopback);
    mrc_put32(want, 0x6BA00000u | 0xBEEF); /* field report 70 */
    mrc_put16(want + IP_LEN, 0xC123);
    mrc_put16(want + IP_LEN + 2, a.io->stats.udp_port);
    mrc_put16(want + IP_LEN + 4, UDP_LEN + 136);
    mrc_put16(want + IP_LEN + 6, 0); /* field report 69: zero (H37), never a partial sum */
    CHECK_MEM(got, want, sizeof want);
    for (uint32_t i = 0; i < 136; i++)
        CHECK_EQ(got[IP_LEN + UDP_LEN + i], port_byte(1, i));
    close(tap);
    port_close(&a);
    return 0;
}

TEST(raw_tx__header_bytes) { child_run("raw_tx__header_bytes", child_bytes); }

/* What goes in front, as the link sees it: class, ECN and label are those inside (A.13.1). */
static int child_outer(void)
{
    child_fabric();
    struct port a = port_open(MRC_IO_RAW);
    const int tap = socket(AF_PACKET, SOCK_DGRAM | SOCK_CLOEXEC, htons(ETH_P_IPV6));
    CHECK(tap >= 0);
    for (int kind = 1; kind < 3; kind++) {
        struct mrc_tx_pkt pkt = port_pkt(&a, raw_lane(&a, &a, 0xBEEFC123, kind), 1, 100);
        const size_t outer = kind == 2 ? IP_LEN + SRH_LEN : IP_LEN;
        uint8_t got[512];
        uint8_t want[IP_LEN + SRH_LEN];
        pkt.tclass = 0xB9;
        port_tx(&a, &pkt, 1);
        CHECK_EQ(recv(tap, got, sizeof got, 0), outer + IP_LEN + UDP_LEN + 136);
        (void)put_template(want, kind == 2);
        mrc_put32(want, 0x6B900000u | 0xBEEF);
        mrc_put16(want + 4, (uint16_t)(outer - IP_LEN + IP_LEN + UDP_LEN + 136));
        CHECK_MEM(got, want, outer);
        CHECK_MEM(got + outer, want, 4);                     /* version, class, label once more */
        while (recv(tap, got, sizeof got, MSG_DONTWAIT) > 0) /* loopback shows it twice */
            ;
    }
    close(tap);
    port_close(&a);
    return 0;
}

TEST(raw_tx__outer_header_bytes) { child_run("raw_tx__outer_header_bytes", child_outer); }

/* An ordinary UDP port hears a raw one without encapsulation: the zero checksum is accepted (H37).
 */
static int child_to_udp(void)
{
    child_fabric();
    struct port a = port_open(MRC_IO_RAW);
    struct port b = port_open(MRC_IO_UDP);
    struct mrc_tx_pkt pkt = port_pkt(&a, raw_lane(&a, &b, 0x0001C123, 0), 1, 100);
    port_tx(&a, &pkt, 1);
    struct mrc_tx_pkt back = port_pkt(&b, port_lane(&b, &a, 0x0002C124), 2, 100);
    port_tx(&b, &back, 1);
    size_t n = 0;
    const struct arrival *in = port_rx(&b, 1, &n);
    CHECK(n == 1 && port_same(in, 1, 100));
    in = port_rx(&a, 1, &n);
    CHECK(n == 1 && port_same(in, 2, 100) && in->pkt.flow_label == 2);
    port_close(&a);
    port_close(&b);
    return 0;
}

TEST(raw_tx__to_and_from_a_udp_port) { child_run("raw_tx__to_and_from_a_udp_port", child_to_udp); }

static int raw_fault_left;
static int raw_fault(int fd, struct mmsghdr *msgs, unsigned int n, int flags)
{
    if (raw_fault_left-- > 0)
        return sendmmsg(fd, msgs, n < 2 ? n : 2, flags);
    errno = EAGAIN;
    return -1;
}

static int child_blocked(void)
{
    child_fabric();
    struct port a = port_open(MRC_IO_RAW);
    struct port b = port_open(MRC_IO_RAW);
    const uint32_t lane = raw_lane(&a, &b, 0xC123, 1);
    struct mrc_tx_pkt pkts[10];
    for (uint32_t i = 0; i < 10; i++)
        pkts[i] = port_pkt(&a, lane, i, 100);
    a.io->sys_sendmmsg = raw_fault;
    raw_fault_left = 2;
    port_tx(&a, pkts, 8);
    CHECK_EQ(a.io->queues_held, 1);
    port_tx(&a, pkts + 8, 2);
    raw_fault_left = 100;
    port_poll(&a, PORT_WAIT_MS);
    size_t n = 0;
    const struct arrival *in = port_rx(&b, 10, &n);
    CHECK_EQ(n, 10);
    for (uint32_t i = 0; i < n; i++)
        CHECK(port_same(&in[i], i, 100));
    CHECK_EQ(a.io->queues_held, 0);
    port_close(&a);
    port_close(&b);
    return 0;
}

TEST(raw_tx__full_socket_resumes_in_order)
{
    child_run("raw_tx__full_socket_resumes_in_order", child_blocked);
}

/* No route for one carrier: its lane fails, the other goes on. Too big is an error as well. */
static int child_refused(void)
{
    child_fabric();
    struct port a = port_open(MRC_IO_RAW);
    struct port b = port_open(MRC_IO_RAW);
    struct mrc_lane_key key = port_key(&b, 0xC124);
    put_ip(key.tmpl, 0, 0, NH_IPV6, carrier);
    key.tmpl[24] = 0x20;
    key.tmpl_len = IP_LEN;
    const uint32_t bad = (uint32_t)mrc_io_lane_get(a.io, &key);
    const uint32_t good = raw_lane(&a, &b, 0xC123, 1);
    struct mrc_tx_pkt pkts[10];
    for (uint32_t i = 0; i < 10; i++)
        pkts[i] = port_pkt(&a, i % 2 ? good : bad, i, 100);
    port_tx(&a, pkts, 10);
    size_t n = 0;
    port_rx(&b, 5, &n);
    CHECK_EQ(n, 5);
    CHECK_EQ(a.io->stats.tx_errors, 5);
    CHECK_EQ(a.io->failed_count, 1);
    CHECK_EQ(a.io->failed[0], bad);
    child_loopback(1500);
    struct mrc_tx_pkt big = port_pkt(&a, good, 1, 4096);
    port_tx(&a, &big, 1);
    CHECK_EQ(a.io->stats.tx_errno, EMSGSIZE);
    CHECK_EQ(a.io->failed_count, 2);
    CHECK(a.io->lanes[good].narrow && !a.io->lanes[bad].narrow);
    CHECK_EQ(a.io->ops->lane_room(a.io, good), 1500 - 48 - IP_LEN); /* its outer header counts */
    port_close(&a);
    port_close(&b);
    return 0;
}

TEST(raw_tx__refusals_stay_with_their_lane)
{
    child_run("raw_tx__refusals_stay_with_their_lane", child_refused);
}

static int child_templates(void)
{
    child_fabric();
    struct port a = port_open(MRC_IO_RAW);
    struct mrc_lane_key good = port_key(&a, 0xC123);
    good.tmpl_len = (uint16_t)put_template(good.tmpl, true);
    const struct {
        uint16_t at;
        uint8_t value;
        uint16_t len;
    } wrong[] = {
        {0, 0x40, 64}, {6, NH_UDP, 64}, {6, NH_IPV6, 64}, {40, NH_UDP, 64},
        {41, 4, 64},   {41, 255, 64},   {7, 64, 39},      {7, 64, 40},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct mrc_lane_key key = good;
        key.tmpl[wrong[i].at] = wrong[i].value;
        key.tmpl_len = wrong[i].len;
        CHECK_EQ(mrc_io_lane_get(a.io, &key), (uint64_t)MRC_ERR_INVAL);
    }
    CHECK(mrc_io_lane_get(a.io, &good) >= 0);
    port_close(&a);
    return 0;
}

TEST(raw_lane__templates_are_checked)
{
    child_run("raw_lane__templates_are_checked", child_templates);
}

static int child_no_privilege(void)
{
    child_fabric();
    const size_t fds = port_open_fds();
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct none[2] = {{0}};
    CHECK_EQ(syscall(SYS_capset, &head, none), 0);
    const struct mrc_port_cfg cfg = port_cfg(MRC_IO_RAW);
    struct port p = port_try(&cfg);
    CHECK(p.io == NULL);
    CHECK_EQ(p.err, -(1000 + EPERM));
    CHECK(strstr(p.error, "CAP_NET_RAW") != NULL);
    CHECK_EQ(port_open_fds(), fds);
    return 0;
}

TEST(raw_open__names_the_missing_capability)
{
    child_run("raw_open__names_the_missing_capability", child_no_privilege);
}
