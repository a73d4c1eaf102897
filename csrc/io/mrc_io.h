/* SPDX-License-Identifier: BSD-2-Clause */
/* One I/O backend = one file with this table. Knows packets as the engine gives and takes them. */
#ifndef MRC_IO_H
#define MRC_IO_H

#include "../core/mrc_types.h"

enum mrc_io_kind { MRC_IO_UDP = 0, MRC_IO_RAW = 1, MRC_IO_MEM = 2 };

enum { /* capability word: what a port turned out to have */
    MRC_IO_CAP_GSO = 1,
    MRC_IO_CAP_GRO = 2,
    MRC_IO_CAP_OUTER_ECN = 4,
    MRC_IO_CAP_TRIM = 8,      /* sees trimmed packets */
    MRC_IO_CAP_FLOWLABEL = 16, /* carries and sees the high half of the EV */
    MRC_IO_CAP_NO_FLOWINFO = 32,
};

struct mrc_mem_wire; /* two ends in one process, see mrc_io_mem.c */

struct mrc_port_cfg {
    uint8_t kind;      /* enum mrc_io_kind */
    uint8_t no_gso;    /* 1: do not try */
    uint8_t no_gro;
    uint8_t mem_end;   /* MRC_IO_MEM: 0 or 1 */
    uint16_t udp_port; /* wanted; 0 = 4791 */
    uint16_t udp_port_tries; /* further ports tried upward when it is taken; 0 = only that one */
    uint32_t scope_id;
    uint32_t sndbuf_bytes; /* 0 = 4 MiB */
    uint32_t rcvbuf_bytes; /* 0 = 8 MiB */
    uint8_t addr[16];  /* local address to bind, :: = any */
    struct mrc_mem_wire *wire; /* MRC_IO_MEM */
};

struct mrc_lane_cfg {
    uint32_t ev;
    uint8_t plane;
    uint8_t backup;
    uint16_t tmpl_len;   /* raw: outer IPv6 [+ SRH]; 0 = no encapsulation */
    uint8_t tmpl[128]; /* by mrc/headers.py; lengths, class and flow label are patched here */
};

struct mrc_peer_addr {
    uint8_t src[16]; /* :: = let the kernel choose; read back with mrc_pump_peer_src */
    uint8_t dst[16];
    uint32_t scope_id;
    uint16_t dport;
    uint16_t pad_;
};

struct mrc_port_stats {
    uint64_t tx_packets;
    uint64_t tx_bytes;
    uint64_t tx_calls;      /* system calls */
    uint64_t tx_trains;     /* messages handed to the kernel, trains counted once */
    uint64_t tx_blocked;    /* EAGAIN, ENOBUFS */
    uint64_t tx_errors;     /* packets a socket refused */
    uint64_t gso_refused;   /* times GSO was switched off */
    uint64_t rx_packets;
    uint64_t rx_bytes;
    uint64_t rx_calls;
    uint64_t rx_malformed;  /* not an IPv6+UDP packet for us (raw) */
    uint64_t rx_socket_drops; /* SO_RXQ_OVFL */
    uint32_t caps;          /* MRC_IO_CAP_* */
    uint32_t sndbuf_bytes;  /* got */
    uint32_t rcvbuf_bytes;  /* got */
    uint16_t udp_port;      /* got */
    uint8_t kind;
    uint8_t pad_;
};

#endif
