/* SPDX-License-Identifier: BSD-2-Clause */
/* Lanes of the UDP port: opening, sharing, closing, source addresses. */
#include "io_port.h"
#include "t.h"

TEST(udp_open__taken_port_leads_to_the_next)
{
    struct mrc_port_cfg cfg = port_cfg(MRC_IO_UDP);
    struct port a = port_try(&cfg);
    cfg.udp_port = a.io->stats.udp_port;
    cfg.udp_port_tries = 50;
    struct port b = port_try(&cfg);
    CHECK(b.io != NULL && b.io->stats.udp_port > cfg.udp_port);
    cfg.udp_port_tries = 0;
    const size_t fds = port_open_fds();
    struct port c = port_try(&cfg);
    CHECK(c.io == NULL);
    CHECK_EQ(c.err, -(1000 + EADDRINUSE));
    CHECK(strstr(c.error, "taken") != NULL);
    CHECK_EQ(port_open_fds(), fds);
    port_close(&a);
    port_close(&b);
}

TEST(udp_lane__shared_by_key_and_closed_with_the_last)
{
    struct port a = port_open(MRC_IO_UDP);
    struct port b = port_open(MRC_IO_UDP);
    const size_t fds = port_open_fds();
    const uint32_t one = port_lane(&a, &b, 0x0001C123);
    CHECK_EQ(port_lane(&a, &b, 0x0001C123), one);
    CHECK(port_lane(&a, &b, 0x0002C123) != one);
    CHECK_EQ(port_open_fds(), fds + 2);
    mrc_io_lane_put(a.io, one);
    CHECK_EQ(port_open_fds(), fds + 2);
    mrc_io_lane_put(a.io, one);
    CHECK_EQ(port_open_fds(), fds + 1);
    CHECK_EQ(port_lane(&a, &b, 0x0003C123), one); /* its number is free again */
    port_close(&a);
    port_close(&b);
}

TEST(udp_lane__hundreds_to_one_peer)
{
    struct port a = port_open(MRC_IO_UDP);
    struct port b = port_open(MRC_IO_UDP);
    for (uint32_t i = 0; i < 300; i++) {
        struct mrc_tx_pkt pkt = port_pkt(&a, port_lane(&a, &b, i << 16 | (50000 + i)), i, 8);
        port_tx(&a, &pkt, 1);
    }
    size_t n = 0;
    const struct arrival *in = port_rx(&b, 300, &n);
    CHECK_EQ(n, 300);
    for (uint32_t i = 0; i < n; i++)
        CHECK_EQ(mrc_wire_ev(in[i].pkt.flow_label, in[i].pkt.sport), i << 16 | (50000 + i));
    port_close(&a);
    port_close(&b);
}

TEST(udp_lane__refuses_what_cannot_be_a_source_port)
{
    struct port a = port_open(MRC_IO_UDP);
    struct mrc_lane_key key = port_key(&a, 0x00050000);
    const size_t fds = port_open_fds();
    CHECK_EQ(mrc_io_lane_get(a.io, &key), (uint64_t)MRC_ERR_INVAL);
    key.ev = a.io->stats.udp_port; /* the peer's packets would end in the lane's socket */
    CHECK_EQ(mrc_io_lane_get(a.io, &key), (uint64_t)MRC_ERR_INVAL);
    key.ev = 0xC123;
    key.tmpl_len = 40;
    CHECK_EQ(mrc_io_lane_get(a.io, &key), (uint64_t)MRC_ERR_INVAL);
    CHECK(strstr(a.io->error, "raw") != NULL);
    CHECK_EQ(a.io->lane_count, 0);
    CHECK_EQ(port_open_fds(), fds);
    port_close(&a);
}

TEST(udp_source__is_what_the_kernel_uses)
{
    struct mrc_port_cfg cfg = port_cfg(MRC_IO_UDP);
    memset(cfg.addr, 0, 16);
    struct port a = port_try(&cfg);
    struct mrc_peer_addr peer = {.dport = 1};
    uint8_t src[16];
    memcpy(peer.dst, port_loopback, 16);
    CHECK_EQ(mrc_io_source(a.io, &peer, src), 0);
    CHECK_MEM(src, port_loopback, 16);
    port_close(&a);
    a = port_open(MRC_IO_UDP);
    peer.src[0] = 0xFD; /* not where this port listens */
    CHECK_EQ(mrc_io_source(a.io, &peer, src), (uint64_t)MRC_ERR_INVAL);
    port_close(&a);
}
