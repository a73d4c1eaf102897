/* SPDX-License-Identifier: BSD-2-Clause */
#include "io_port.h"
#include "net_child.h"
#include "t.h"

#include <netinet/udp.h>

#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#endif

/* ---- a kernel that misbehaves ---- */

static struct {
    int error;           /* what refused calls report */
    unsigned take;       /* messages taken per call at most; 0: all */
    unsigned calls_good; /* calls that work before the error sets in */
    bool trains_only;    /* the error is for messages with UDP_SEGMENT */
    int only_fd;         /* the error is for this descriptor; -1: all */
    unsigned refused;
    unsigned most; /* refusals; 0: no limit */
} fault;

static bool fault_hits(int fd, const struct mmsghdr *m)
{
    if (fault.error == 0 || (fault.only_fd >= 0 && fault.only_fd != fd) ||
        (fault.most != 0 && fault.refused >= fault.most))
        return false;
    if (fault.calls_good > 0) {
        fault.calls_good--;
        return false;
    }
    struct msghdr h = m->msg_hdr;
    bool train = false;
    for (struct cmsghdr *c = CMSG_FIRSTHDR(&h); c != NULL; c = CMSG_NXTHDR(&h, c))
        train = train || (c->cmsg_level == IPPROTO_UDP && c->cmsg_type == UDP_SEGMENT);
    return train || !fault.trains_only;
}

static int fault_sendmmsg(int fd, struct mmsghdr *msgs, unsigned int n, int flags)
{
    if (fault_hits(fd, msgs)) {
        fault.refused++;
        errno = fault.error;
        return -1;
    }
    return sendmmsg(fd, msgs, fault.take != 0 && fault.take < n ? fault.take : n, flags);
}

static void fault_set(struct port *p, int error)
{
    memset(&fault, 0, sizeof fault);
    fault.error = error;
    fault.only_fd = -1;
    p->io->sys_sendmmsg = fault_sendmmsg;
}

/* ---- what arrives ---- */

TEST(udp_tx__arrives_with_addresses_class_and_entropy)
{
    struct port a = port_open(MRC_IO_UDP);
    struct port b = port_open(MRC_IO_UDP);
    const uint32_t evs[] = {0xBEEFC123, 0x0001C124, 0xFFFFC125, 0x0000C126};
    for (uint32_t i = 0; i < 4; i++) {
        struct mrc_tx_pkt pkt = port_pkt(&a, port_lane(&a, &b, evs[i]), i, 1000);
        pkt.tclass = (uint8_t)(46 << 2 | i);
        port_tx(&a, &pkt, 1);
        size_t n = 0;
        const struct arrival *in = port_rx(&b, 1, &n);
        CHECK_EQ(n, 1);
        CHECK(port_same(in, i, 1000));
        /* field report 70: sixteen bits in a field of twenty, and no label of the kernel's own */
        CHECK_EQ(mrc_wire_ev(in->pkt.flow_label, in->pkt.sport), evs[i]);
        CHECK_EQ(in->pkt.flow_label >> 16, 0);
        CHECK_EQ(in->pkt.dport, b.io->stats.udp_port);
        CHECK_EQ(in->pkt.tclass, 46 << 2 | i);
        CHECK_EQ(in->pkt.port, 3);
        CHECK(!in->pkt.outer_ce);
        CHECK_MEM(in->pkt.src, port_loopback, 16);
        CHECK_MEM(in->pkt.dst, port_loopback, 16);
    }
    CHECK_EQ(a.io->stats.tx_packets, 4);
    CHECK_EQ(a.io->stats.tx_bytes, 4 * 1036);
    CHECK_EQ(b.io->stats.rx_packets, 4);
    CHECK_EQ(b.io->stats.rx_bytes, 4 * 1036);
    port_close(&a);
    port_close(&b);
}

TEST(udp_tx__class_may_change_with_every_packet)
{
    struct port a = port_open(MRC_IO_UDP);
    struct port b = port_open(MRC_IO_UDP);
    const uint32_t lane = port_lane(&a, &b, 0x00A5C123);
    static const uint8_t classes[] = {2, 2, 184, 2, 184, 184, 184, 184, 184, 184, 184, 2, 3, 0};
    struct mrc_tx_pkt pkts[sizeof classes];
    for (uint32_t round = 0; round < 3; round++) {
        for (uint32_t i = 0; i < sizeof classes; i++) {
            pkts[i] = port_pkt(&a, lane, i, 100);
            pkts[i].tclass = classes[(i + round) % sizeof classes];
            if (round == 2)
                port_tx(&a, &pkts[i], 1);
        }
        if (round < 2)
            port_tx(&a, pkts, sizeof classes);
        size_t n = 0;
        const struct arrival *in = port_rx(&b, sizeof classes, &n);
        CHECK_EQ(n, sizeof classes);
        for (uint32_t i = 0; i < n; i++) {
            CHECK_EQ(in[i].pkt.tclass, classes[(i + round) % sizeof classes]);
            CHECK_EQ(in[i].pkt.flow_label, 0xA5);
            CHECK(port_same(&in[i], i, 100));
        }
    }
    port_close(&a);
    port_close(&b);
}

/* field report 55 */
TEST(udp_tx__train_with_odd_last_segment)
{
    struct port a = port_open(MRC_IO_UDP);
    struct port b = port_open(MRC_IO_UDP);
    const uint32_t lane = port_lane(&a, &b, 0x0007C123);
    struct mrc_tx_pkt pkts[15];
    for (uint32_t i = 0; i < 15; i++)
        pkts[i] = port_pkt(&a, lane, i, i == 14 ? 17 : 4096);
    port_tx(&a, pkts, 15);
    size_t n = 0;
    const struct arrival *in = port_rx(&b, 15, &n);
    CHECK_EQ(n, 15);
    for (uint32_t i = 0; i < n; i++) {
        CHECK(port_same(&in[i], i, i == 14 ? 17 : 4096));
        CHECK_EQ(in[i].pkt.flow_label, 7);
    }
    CHECK((a.io->stats.caps & MRC_IO_CAP_GSO) != 0);
    CHECK_EQ(a.io->stats.tx_trains, 1);
    CHECK_EQ(a.io->stats.tx_calls, 1);
    CHECK_EQ(b.io->stats.rx_malformed, 0);
    port_close(&a);
    port_close(&b);
}

TEST(udp_tx__trains_stay_below_the_limits_of_a_datagram)
{
    struct port a = port_open(MRC_IO_UDP);
    struct port b = port_open(MRC_IO_UDP);
    const uint32_t lane = port_lane(&a, &b, 0xC123);
    static struct mrc_tx_pkt pkts[116];
    for (uint32_t i = 0; i < 116; i++) /* 16 of 4132 bytes are too many for one train */
        pkts[i] = port_pkt(&a, lane, i, i < 16 ? 4096 : 0);
    port_tx(&a, pkts, 116);
    size_t n = 0;
    const struct arrival *in = port_rx(&b, 116, &n);
    CHECK_EQ(n, 116);
    for (uint32_t i = 0; i < n; i++)
        CHECK(port_same(&in[i], i, i < 16 ? 4096 : 0));
    CHECK_EQ(a.io->stats.tx_packets, 116);
    /* 15 of the long; the last long with a short one behind it; 64 short, 35 short */
    CHECK_EQ(a.io->stats.tx_trains, 4);
    CHECK_EQ(a.io->stats.tx_errors, 0);
    CHECK_EQ(a.io->stats.gso_refused, 0);
    port_close(&a);
    port_close(&b);
}

TEST(udp_tx__packets_of_a_lane_leave_together_and_in_order)
{
    struct port a = port_open(MRC_IO_UDP);
    struct port b = port_open(MRC_IO_UDP);
    uint32_t lanes[8];
    struct mrc_tx_pkt pkts[64];
    for (uint32_t i = 0; i < 8; i++)
        lanes[i] = port_lane(&a, &b, 0xC200 + i);
    for (uint32_t i = 0; i < 64; i++)
        pkts[i] = port_pkt(&a, lanes[i % 8], i, 512);
    port_tx(&a, pkts, 64);
    CHECK_EQ(a.io->stats.tx_trains, 8);
    size_t n = 0;
    uint32_t next[8] = {0};
    const struct arrival *in = port_rx(&b, 64, &n);
    CHECK_EQ(n, 64);
    for (size_t i = 0; i < n; i++) {
        const uint32_t lane = in[i].pkt.sport - 0xC200u;
        CHECK(port_same(&in[i], lane + 8 * next[lane], 512));
        next[lane]++;
    }
    port_close(&a);
    port_close(&b);
}

TEST(udp_rx__without_offloads_the_same_packets)
{
    struct mrc_port_cfg cfg = port_cfg(MRC_IO_UDP);
    cfg.no_gso = 1;
    cfg.no_gro = 1;
    struct port a = port_try(&cfg);
    struct port b = port_try(&cfg);
    CHECK_EQ(a.io->stats.caps & (MRC_IO_CAP_GSO | MRC_IO_CAP_GRO), 0);
    const uint32_t lane = port_lane(&a, &b, 0xC123);
    struct mrc_tx_pkt pkts[100];
    for (uint32_t i = 0; i < 100; i++)
        pkts[i] = port_pkt(&a, lane, i, 1024);
    port_tx(&a, pkts, 100);
    CHECK_EQ(a.io->stats.tx_trains, 100);
    size_t n = 0;
    const struct arrival *in = port_rx(&b, 100, &n);
    CHECK_EQ(n, 100);
    for (uint32_t i = 0; i < n; i++)
        CHECK(port_same(&in[i], i, 1024));
    port_close(&a);
    port_close(&b);
}

TEST(udp_rx__empty_and_foreign_datagrams_do_no_harm)
{
    struct port a = port_open(MRC_IO_UDP);
    struct port b = port_open(MRC_IO_UDP);
    struct sockaddr_in6 to = {.sin6_family = AF_INET6};
    memcpy(&to.sin6_addr, port_loopback, 16);
    to.sin6_port = htons(b.io->stats.udp_port);
    const int fd = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    CHECK_EQ(sendto(fd, "", 0, 0, (struct sockaddr *)&to, sizeof to), 0);
    CHECK_EQ(sendto(fd, "x", 1, 0, (struct sockaddr *)&to, sizeof to), 1);
    struct mrc_tx_pkt pkt = port_pkt(&a, port_lane(&a, &b, 0xC123), 9, 64);
    port_tx(&a, &pkt, 1);
    size_t n = 0;
    const struct arrival *in = port_rx(&b, 2, &n);
    CHECK_EQ(n, 2);
    CHECK_EQ(in[0].pkt.len, 1);
    CHECK(port_same(&in[1], 9, 64));
    CHECK_EQ(b.io->stats.rx_malformed, 1);
    close(fd);
    port_close(&a);
    port_close(&b);
}

/* ---- refusals ---- */

/* field report 56 */
TEST(udp_tx__refused_train_is_sent_packet_by_packet)
{
    const int errors[] = {EIO, EINVAL};
    for (int k = 0; k < 2; k++) {
        struct port a = port_open(MRC_IO_UDP);
        struct port b = port_open(MRC_IO_UDP);
        const uint32_t lane = port_lane(&a, &b, 0xC123);
        struct mrc_tx_pkt pkts[12];
        for (uint32_t i = 0; i < 12; i++) /* two trains; the first leaves before the refusal */
            pkts[i] = port_pkt(&a, lane, i, i < 5 ? 2000 : 3000);
        fault_set(&a, errors[k]);
        fault.trains_only = true;
        fault.take = 1;
        fault.calls_good = 1;
        port_tx(&a, pkts, 12);
        size_t n = 0;
        const struct arrival *in = port_rx(&b, 12, &n);
        CHECK_EQ(n, 12);
        for (uint32_t i = 0; i < n; i++)
            CHECK(port_same(&in[i], i, i < 5 ? 2000 : 3000));
        CHECK_EQ(a.io->stats.gso_refused, 1);
        CHECK_EQ(a.io->stats.caps & MRC_IO_CAP_GSO, 0);
        CHECK_EQ(a.io->stats.tx_errors, 0);
        CHECK_EQ(a.io->failed_count, 0);
        port_tx(&a, pkts, 12);
        CHECK_EQ(fault.refused, 1);
        port_rx(&b, 12, &n);
        CHECK_EQ(n, 12);
        port_close(&a);
        port_close(&b);
    }
}

/* field report 58 */
TEST(udp_tx__short_count_is_no_error)
{
    struct port a = port_open(MRC_IO_UDP);
    struct port b = port_open(MRC_IO_UDP);
    const uint32_t lane = port_lane(&a, &b, 0xC123);
    struct mrc_tx_pkt pkts[20];
    for (uint32_t i = 0; i < 20; i++) /* growing: none may follow another in a train */
        pkts[i] = port_pkt(&a, lane, i, 100 + i);
    fault_set(&a, 0);
    fault.take = 3;
    port_tx(&a, pkts, 20);
    size_t n = 0;
    const struct arrival *in = port_rx(&b, 20, &n);
    CHECK_EQ(n, 20);
    for (uint32_t i = 0; i < n; i++)
        CHECK(port_same(&in[i], i, 100 + i));
    CHECK_EQ(a.io->stats.tx_calls, 7);
    CHECK_EQ(a.io->stats.tx_blocked, 0);
    port_close(&a);
    port_close(&b);
}

TEST(udp_tx__full_socket_keeps_its_lane_only)
{
    struct port a = port_open(MRC_IO_UDP);
    struct port b = port_open(MRC_IO_UDP);
    const uint32_t one = port_lane(&a, &b, 0xC123);
    const uint32_t two = port_lane(&a, &b, 0xC124);
    struct mrc_tx_pkt pkts[20];
    for (uint32_t i = 0; i < 20; i++)
        pkts[i] = port_pkt(&a, i % 2 ? two : one, i, 100 + i);
    fault_set(&a, EAGAIN);
    fault.take = 1;
    fault.calls_good = 2; /* two packets of the first lane, then its socket is full */
    port_tx(&a, pkts, 20);
    CHECK_EQ(a.io->queues_held, 2);
    CHECK_EQ(a.io->slot_free_count, MRC_IO_PENDING_MAX - 18);
    fault.error = 0; /* room again: EPOLLOUT says so */
    port_poll(&a, PORT_WAIT_MS);
    CHECK_EQ(a.io->queues_held, 0);
    CHECK_EQ(a.io->slot_free_count, MRC_IO_PENDING_MAX);
    size_t n = 0;
    const struct arrival *in = port_rx(&b, 20, &n);
    CHECK_EQ(n, 20);
    uint32_t next[2] = {0, 1};
    for (size_t i = 0; i < n; i++) {
        const uint32_t lane = in[i].pkt.sport - 0xC123u;
        CHECK(port_same(&in[i], next[lane], 100 + next[lane]));
        next[lane] += 2;
    }
    CHECK_EQ(a.io->stats.tx_errors, 0);
    struct epoll_event ev;
    CHECK_EQ(epoll_wait(a.epoll_fd, &ev, 1, 0), 0); /* and no longer watched for room */
    port_close(&a);
    port_close(&b);
}

TEST(udp_tx__later_packets_queue_behind_kept_ones)
{
    struct port a = port_open(MRC_IO_UDP);
    struct port b = port_open(MRC_IO_UDP);
    const uint32_t lane = port_lane(&a, &b, 0xC123);
    struct mrc_tx_pkt pkts[10];
    for (uint32_t i = 0; i < 10; i++)
        pkts[i] = port_pkt(&a, lane, i, 100 + i);
    fault_set(&a, EAGAIN);
    port_tx(&a, pkts, 5);
    fault.error = 0;
    port_tx(&a, pkts + 5, 5);
    port_poll(&a, PORT_WAIT_MS);
    size_t n = 0;
    const struct arrival *in = port_rx(&b, 10, &n);
    CHECK_EQ(n, 10);
    for (uint32_t i = 0; i < n; i++)
        CHECK(port_same(&in[i], i, 100 + i));
    port_close(&a);
    port_close(&b);
}

TEST(udp_tx__short_memory_is_retried_without_a_descriptor)
{
    struct port a = port_open(MRC_IO_UDP);
    struct port b = port_open(MRC_IO_UDP);
    struct mrc_tx_pkt pkt = port_pkt(&a, port_lane(&a, &b, 0xC123), 1, 100);
    fault_set(&a, ENOBUFS);
    port_tx(&a, &pkt, 1);
    CHECK(a.io->retry);
    struct epoll_event ev;
    CHECK_EQ(epoll_wait(a.epoll_fd, &ev, 1, 0), 0); /* else the loop would spin */
    fault.error = 0;
    a.io->retry = false;
    a.io->ops->resume(a.io, UINT32_MAX);
    size_t n = 0;
    port_rx(&b, 1, &n);
    CHECK_EQ(n, 1);
    port_close(&a);
    port_close(&b);
}

TEST(udp_tx__full_pool_drops_and_reports_the_lane)
{
    struct port a = port_open(MRC_IO_UDP);
    struct port b = port_open(MRC_IO_UDP);
    const uint32_t lane = port_lane(&a, &b, 0xC123);
    struct mrc_tx_pkt pkts[128];
    for (uint32_t i = 0; i < 128; i++)
        pkts[i] = port_pkt(&a, lane, i, 100);
    fault_set(&a, EAGAIN);
    for (uint32_t i = 0; i < MRC_IO_PENDING_MAX / 128; i++)
        port_tx(&a, pkts, 128);
    CHECK_EQ(a.io->slot_free_count, 0);
    CHECK_EQ(a.io->failed_count, 0);
    port_tx(&a, pkts, 3);
    CHECK_EQ(a.io->stats.tx_errors, 3);
    CHECK_EQ(a.io->failed_count, 1);
    CHECK_EQ(a.io->failed[0], lane);
    port_close(&a);
    port_close(&b);
}

/* field reports 35 and 61 */
TEST(udp_tx__unreachable_lane_fails_alone_and_is_reported_once)
{
    const int errors[] = {ENETUNREACH, EHOSTUNREACH, ENETDOWN, EPERM};
    for (int k = 0; k < 4; k++) {
        struct port a = port_open(MRC_IO_UDP);
        struct port b = port_open(MRC_IO_UDP);
        const int next_fd = dup(0); /* the number the first lane's socket will get */
        close(next_fd);
        const uint32_t bad = port_lane(&a, &b, 0xC123);
        const uint32_t good = port_lane(&a, &b, 0xC124);
        struct mrc_tx_pkt pkts[20];
        for (uint32_t i = 0; i < 20; i++)
            pkts[i] = port_pkt(&a, i % 2 ? good : bad, i, 100 + i);
        fault_set(&a, errors[k]);
        fault.only_fd = next_fd;
        port_tx(&a, pkts, 20);
        port_tx(&a, pkts, 20);
        size_t n = 0;
        const struct arrival *in = port_rx(&b, 20, &n);
        CHECK_EQ(n, 20);
        for (size_t i = 0; i < n; i++)
            CHECK_EQ(in[i].pkt.sport, 0xC124);
        CHECK_EQ(a.io->stats.tx_errors, 20);
        CHECK_EQ(a.io->stats.tx_errno, errors[k]);
        CHECK_EQ(fault.refused, 2); /* one call a burst, not one a packet */
        CHECK_EQ(a.io->failed_count, 1);
        CHECK_EQ(a.io->failed[0], bad);
        CHECK_EQ(a.io->queues_held, 0);
        port_close(&a);
        port_close(&b);
    }
}

TEST(udp_tx__icmp_answer_costs_no_packet)
{
    struct port a = port_open(MRC_IO_UDP);
    struct port b = port_open(MRC_IO_UDP);
    const uint32_t lane = port_lane(&a, &b, 0xC123);
    struct mrc_tx_pkt pkt = port_pkt(&a, lane, 1, 100);
    port_close(&b); /* nobody receives any more: port unreachable */
    port_tx(&a, &pkt, 1);
    port_tx(&a, &pkt, 1);
    CHECK_EQ(a.io->stats.tx_refused, 1);
    CHECK_EQ(a.io->stats.tx_packets, 2);
    CHECK_EQ(a.io->stats.tx_errors, 0);
    CHECK_EQ(a.io->failed_count, 0);
    port_close(&a);
}

/* ---- ports and lanes ---- */

/* A.2: never a fragment. What is too big for the path is an error of the lane. */
static int child_too_big(void)
{
    child_loopback(1500);
    struct port a = port_open(MRC_IO_UDP);
    struct port b = port_open(MRC_IO_UDP);
    const uint32_t lane = port_lane(&a, &b, 0xC123);
    struct mrc_tx_pkt pkts[5];
    for (uint32_t i = 0; i < 5; i++)
        pkts[i] = port_pkt(&a, lane, i, i < 4 ? 4096 : 64);
    pkts[4].tclass = 184;
    port_tx(&a, pkts, 3);     /* a train */
    port_tx(&a, pkts + 3, 2); /* the message behind fits and still passes */
    struct mrc_tx_pkt fits = port_pkt(&a, lane, 9, 1024);
    port_tx(&a, &fits, 1);
    size_t n = 0;
    const struct arrival *in = port_rx(&b, 2, &n);
    CHECK_EQ(n, 2);
    CHECK(port_same(&in[0], 4, 64));
    CHECK(port_same(&in[1], 9, 1024));
    CHECK_EQ(a.io->stats.tx_errors, 4);
    CHECK_EQ(a.io->stats.tx_errno, EMSGSIZE);
    CHECK_EQ(a.io->failed_count, 1);
    CHECK(a.io->lanes[lane].narrow);
    /* That the train was too long for the path says nothing of trains. */
    CHECK_EQ(a.io->stats.gso_refused, 0);
    CHECK(a.io->stats.caps & MRC_IO_CAP_GSO);
    /* The same from a kernel that says less of a train. */
    fault_set(&a, EINVAL);
    fault.trains_only = true;
    port_tx(&a, pkts, 3);
    CHECK_EQ(fault.refused, 1);
    CHECK_EQ(a.io->stats.tx_errors, 4 + 3);
    CHECK_EQ(a.io->stats.gso_refused, 0);
    CHECK(a.io->stats.caps & MRC_IO_CAP_GSO);
    fault.error = 0;
    /* To the byte: what there is room for passes. */
    const uint32_t room = a.io->ops->lane_room(a.io, lane);
    CHECK_EQ(room, 1500 - 48);
    for (uint32_t i = 0; i < 2; i++) {
        struct mrc_tx_pkt edge = port_pkt(&a, lane, 10 + i, 1024);
        edge.payload_len = (uint16_t)(room - 36 + i);
        port_tx(&a, &edge, 1);
        CHECK_EQ(a.io->stats.tx_errors, 7 + i);
    }
    port_close(&a);
    port_close(&b);
    return 0;
}

/* An answer to an earlier packet is no verdict on this one, nor on the lane; and what cannot leave
 * at all is not narrow. */
TEST(udp_tx__too_big_is_what_is_refused_twice)
{
    struct port a = port_open(MRC_IO_UDP);
    struct port b = port_open(MRC_IO_UDP);
    const uint32_t lane = port_lane(&a, &b, 0xC123);
    struct mrc_tx_pkt pkt = port_pkt(&a, lane, 1, 100);
    fault_set(&a, EMSGSIZE);
    fault.most = 1;
    port_tx(&a, &pkt, 1);
    CHECK_EQ(a.io->stats.tx_packets, 1);
    CHECK_EQ(a.io->stats.tx_refused, 1);
    CHECK_EQ(a.io->failed_count, 0);
    CHECK(!a.io->lanes[lane].narrow);
    const int errors[] = {EMSGSIZE, ENETUNREACH, EMSGSIZE};
    for (int k = 0; k < 3; k++) {
        fault_set(&a, errors[k]);
        port_tx(&a, &pkt, 1);
        CHECK_EQ(a.io->failed_count, 1);
        CHECK_EQ(a.io->lanes[lane].narrow, k == 0);
    }
    port_close(&a);
    port_close(&b);
}

TEST(udp_tx__too_big_is_an_error_not_fragments)
{
    child_run("udp_tx__too_big_is_an_error_not_fragments", child_too_big);
}

TEST(udp_forget__packets_of_a_region_that_goes)
{
    struct port a = port_open(MRC_IO_UDP);
    struct port b = port_open(MRC_IO_UDP);
    const uint32_t lane = port_lane(&a, &b, 0xC123);
    struct mrc_tx_pkt pkts[6];
    for (uint32_t i = 0; i < 6; i++)
        pkts[i] = port_pkt(&a, lane, i, i == 3 ? 0 : 100 + i);
    fault_set(&a, EAGAIN);
    port_tx(&a, pkts, 6);
    /* the region of packets 2, 3 and 4; 3 has no payload to lose */
    a.io->ops->forget(a.io, port_payload[2], 3 * sizeof port_payload[0]);
    CHECK_EQ(a.io->slot_free_count, MRC_IO_PENDING_MAX - 4);
    fault.error = 0;
    port_poll(&a, PORT_WAIT_MS);
    size_t n = 0;
    const struct arrival *in = port_rx(&b, 4, &n);
    CHECK_EQ(n, 4);
    CHECK(port_same(&in[0], 0, 100));
    CHECK(port_same(&in[1], 1, 101));
    CHECK(port_same(&in[2], 3, 0));
    CHECK(port_same(&in[3], 5, 105));
    CHECK_EQ(a.io->queues_held, 0);
    port_close(&a);
    port_close(&b);
}
