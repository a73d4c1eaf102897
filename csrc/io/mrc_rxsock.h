/* SPDX-License-Identifier: BSD-2-Clause */
/* The receiving UDP socket of a port: many datagrams a call, offloaded trains taken apart again. */
#ifndef MRC_RXSOCK_H
#define MRC_RXSOCK_H

#include "mrc_io.h"

struct mrc_rxsock_state; /* buffers and control messages */

struct mrc_rxsock {
    int fd;
    struct mrc_rxsock_state *state;
};

/* Binds cfg->addr and the first free of cfg->udp_port..+udp_port_tries, sets buffers and options,
 * enters the epoll set as receive descriptor n. Fills io->stats and capabilities. */
int mrc_rxsock_open(struct mrc_io *io, struct mrc_rxsock *s, const struct mrc_port_cfg *cfg,
                    uint32_t n);
void mrc_rxsock_close(struct mrc_io *io, struct mrc_rxsock *s);
/* Up to max packets; clears bit n of io->rx_ready when there are no more. */
size_t mrc_rxsock_burst(struct mrc_io *io, struct mrc_rxsock *s, uint32_t n, struct mrc_rx_pkt *out,
                        size_t max);

/* Ask for a buffer of `want` bytes, past the sysctl limit where privilege allows; returns the size
 * in force, in the unit of the sysctl. */
uint32_t mrc_sock_buffer(int fd, bool receive, uint32_t want);
/* What is left for a packet, behind headers of that many bytes, of the MTU that the kernel knows
 * for the way of a connected socket. UINT32_MAX: it knows none. */
uint32_t mrc_sock_room(int fd, uint32_t headers);
/* Too big for the interface is an error, never fragments; and what ICMPv6 says of the MTU of the
 * path is not believed, for who says it is not known: anybody may, once who talks to whom is
 * guessed, and all connections to that address would be cut off for ten minutes (ADR 93). */
int mrc_sock_own_mtu(int fd);

#endif
