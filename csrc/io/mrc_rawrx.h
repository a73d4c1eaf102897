/* SPDX-License-Identifier: BSD-2-Clause */
/* The raw receiving sockets of a port: IPv6 in IPv6 (protocol 41) and the same behind a segment
 * routing header (protocol 43). They see the outer header as the network left it: ECN marks and the
 * class of trimmed packets (A.13.1, A.13.6). */
#ifndef MRC_RAWRX_H
#define MRC_RAWRX_H

#include "mrc_io.h"

#include <sys/socket.h>

enum {
    MRC_RAWRX_SOCKETS = 2,
    MRC_RAWRX_MSGS = 64,
    MRC_RAWRX_BYTES = 9216, /* one packet; longer ones are not for us */
    MRC_RAWRX_CONTROL = CMSG_SPACE(sizeof(int)) + CMSG_SPACE(sizeof(uint32_t)),
    MRC_IPV6_LEN = 40,
    MRC_UDP_LEN = 8,
    MRC_SRH_LEN = 8, /* without its entries */
    MRC_NH_UDP = 17,
    MRC_NH_IPV6 = 41,
    MRC_NH_ROUTING = 43,
};

struct mrc_rawrx_socket {
    int fd;
    uint8_t protocol;
    uint32_t drops; /* last SO_RXQ_OVFL seen */
};

struct mrc_rawrx {
    struct mrc_rawrx_socket sockets[MRC_RAWRX_SOCKETS];
    uint32_t turn; /* the socket that is read first alternates */
    struct mmsghdr msgs[MRC_RAWRX_MSGS];
    struct iovec iov[MRC_RAWRX_MSGS];
    _Alignas(struct cmsghdr) uint8_t control[MRC_RAWRX_MSGS][MRC_RAWRX_CONTROL];
    uint8_t bytes[MRC_RAWRX_MSGS][MRC_RAWRX_BYTES];
};

/* A raw IPv6 socket that does not block; negative and a sentence on failure. */
int mrc_raw_socket(struct mrc_io *io, int protocol);

void mrc_rawrx_init(struct mrc_rawrx *x);
/* The sockets enter the epoll set as receive descriptors n and n + 1. io->stats.udp_port must be
 * known. On failure the caller closes. */
int mrc_rawrx_open(struct mrc_io *io, struct mrc_rawrx *x, const struct mrc_port_cfg *cfg,
                   uint32_t n);
void mrc_rawrx_close(struct mrc_io *io, struct mrc_rawrx *x);
/* Up to max packets; clears bits n and n + 1 of io->rx_ready when there are no more. */
size_t mrc_rawrx_burst(struct mrc_io *io, struct mrc_rawrx *x, uint32_t n, struct mrc_rx_pkt *out,
                       size_t max);

/* What stands behind an outer IPv6 header with this next header; false: not ours. Total over any
 * bytes. */
bool mrc_rawrx_parse(const struct mrc_io *io, uint8_t protocol, const uint8_t *p, uint32_t len,
                     struct mrc_rx_pkt *out);

#endif
