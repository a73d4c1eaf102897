/* SPDX-License-Identifier: BSD-2-Clause */
/* Ports and their backends. The first half is what the caller of the pump configures and reads; the
 * second half is the seam: one backend is one file with a table of functions. A backend knows
 * packets as the engine gives and takes them; it never sees the engine. */
#ifndef MRC_IO_H
#define MRC_IO_H

#include "../core/mrc_types.h"

enum mrc_io_kind { MRC_IO_UDP = 0, MRC_IO_RAW = 1, MRC_IO_MEM = 2 };

/* Capability word: what a port turned out to have. */
enum {
    MRC_IO_CAP_GSO = 1,
    MRC_IO_CAP_GRO = 2,
    MRC_IO_CAP_OUTER_ECN = 4,
    MRC_IO_CAP_TRIM = 8,       /* sees trimmed packets */
    MRC_IO_CAP_FLOWLABEL = 16, /* carries and sees the high half of the EV */
    MRC_IO_CAP_NO_FLOWINFO = 32,
};

struct mrc_mem_wire; /* two ends in one process, see mrc_io_mem.c */

struct mrc_port_cfg {
    uint8_t kind;   /* enum mrc_io_kind */
    uint8_t no_gso; /* 1: do not try */
    uint8_t no_gro;
    uint8_t mem_end;         /* MRC_IO_MEM: 0 or 1 */
    uint16_t udp_port;       /* wanted; 0 = 4791 */
    uint16_t udp_port_tries; /* further ports tried upward when it is taken; 0 = only that one */
    uint32_t scope_id;
    uint32_t sndbuf_bytes;     /* 0 = 4 MiB */
    uint32_t rcvbuf_bytes;     /* 0 = 8 MiB */
    uint8_t addr[16];          /* local address to bind, :: = any */
    struct mrc_mem_wire *wire; /* MRC_IO_MEM */
};

struct mrc_lane_cfg {
    uint32_t ev;
    uint8_t plane;
    uint8_t backup;
    uint16_t tmpl_len; /* raw: outer IPv6 [+ SRH]; 0 = no encapsulation */
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
    uint64_t tx_calls;    /* system calls */
    uint64_t tx_trains;   /* messages handed to the kernel, trains counted once */
    uint64_t tx_blocked;  /* EAGAIN, ENOBUFS */
    uint64_t tx_errors;   /* packets a socket refused; they count as lost */
    uint64_t tx_refused;  /* ICMP errors that a send reported; the packet was tried again */
    uint64_t gso_refused; /* times GSO was switched off */
    uint64_t rx_packets;
    uint64_t rx_bytes;
    uint64_t rx_calls;
    uint64_t rx_malformed;    /* not an IPv6+UDP packet for us (raw) */
    uint64_t rx_socket_drops; /* SO_RXQ_OVFL */
    uint32_t caps;            /* MRC_IO_CAP_* */
    uint32_t sndbuf_bytes;    /* got */
    uint32_t rcvbuf_bytes;    /* got */
    uint16_t udp_port;        /* got */
    uint8_t kind;
    uint8_t tx_errno; /* why a packet was last refused; 0: none was */
};

/* A wire in memory between two pumps of one process; faults are drawn from its seed. */
struct mrc_mem_wire *mrc_mem_wire_create(uint32_t ring, uint64_t seed);
void mrc_mem_wire_destroy(struct mrc_mem_wire *w);
/* Per million: loss and duplication of packets; ev >= 0 restricts both to that EV (cut = loss of
 * all). */
int mrc_mem_wire_faults(struct mrc_mem_wire *w, int64_t ev, uint32_t loss_ppm, uint32_t dup_ppm);

/* ---- between the pump and a backend ---- */

struct mmsghdr;
struct mrc_io;

enum {
    MRC_IO_RX_TAG = 0x40000000, /* epoll tag of receive descriptor n: this + n; below: lanes */
    MRC_IO_ERROR_MAX = 256,     /* bytes of a sentence */
    MRC_IO_PENDING_MAX = 2048,  /* packets a port keeps while its sockets are full */
    MRC_IO_BURST_MAX = 256,     /* packets of one tx call */
};

/* What makes two path entries the same way out: they share one lane. */
struct mrc_lane_key {
    uint8_t src[16];
    uint8_t dst[16];
    uint32_t scope_id;
    uint32_t ev;
    uint16_t dport;
    uint16_t tmpl_len;
    uint8_t tmpl[128];
};

/* Packets that wait for a socket, in order. Slots come from the port's pool. */
struct mrc_txq {
    uint32_t head; /* slot index, or UINT32_MAX */
    uint32_t tail;
    uint32_t count;
};

struct mrc_txq_slot {
    struct mrc_tx_pkt pkt;
    uint32_t next;
};

struct mrc_lane {
    struct mrc_lane_key key;
    uint32_t refs;  /* path tables that use it; 0: the slot is free */
    bool failed;    /* already in mrc_io.failed */
    bool narrow;    /* ... because a packet was too long */
    uint32_t stamp; /* mrc_io_group: burst that touched it, and its packets in that burst */
    uint16_t first;
    uint16_t last;
};

struct mrc_io_ops {
    const char *name;
    size_t state_bytes; /* size of the backend's struct, which begins with struct mrc_io */
    /* Make the port ready to receive. On failure: negative, a sentence, nothing left behind. */
    int (*open)(struct mrc_io *io, const struct mrc_port_cfg *cfg);
    void (*close)(struct mrc_io *io);
    /* io->lanes[lane].key is filled in. On failure: negative, a sentence, nothing left behind. */
    int (*lane_open)(struct mrc_io *io, uint32_t lane);
    void (*lane_close)(struct mrc_io *io, uint32_t lane);
    /* Up to max packets, valid until the next call. Clears bits of io->rx_ready when drained. */
    size_t (*rx)(struct mrc_io *io, struct mrc_rx_pkt *out, size_t max);
    /* All n are taken: sent, kept until the socket has room, or counted as refused. */
    void (*tx)(struct mrc_io *io, const struct mrc_tx_pkt *const *pkts, size_t n);
    /* A socket may have room again: send what was kept for this lane (the tag given to
     * mrc_io_watch), or for all: UINT32_MAX. */
    void (*resume)(struct mrc_io *io, uint32_t lane);
    /* Forget kept packets whose payload lies in [addr, addr + len). */
    void (*forget)(struct mrc_io *io, const uint8_t *addr, uint64_t len);
    /* Bytes from BTH to iCRC that a packet of this lane may have, as far as the host knows now: MTU
     * of its route less all headers in front. UINT32_MAX: any. */
    uint32_t (*lane_room)(struct mrc_io *io, uint32_t lane);
};

/* The part of a port that all backends have. */
struct mrc_io {
    const struct mrc_io_ops *ops;
    char *error; /* MRC_IO_ERROR_MAX bytes, the pump's */
    int epoll_fd;
    uint8_t index;
    uint8_t addr[16]; /* bound to; :: = any */
    uint32_t scope_id;
    uint8_t dscp_trimmed[2]; /* what switches make of a trimmed packet; 0: not used (A.13.5) */
    uint32_t rx_ready;       /* bit n: receive descriptor n has packets */
    uint32_t queues_held;    /* queues that wait for a socket */
    bool retry;              /* memory was short: resume without waiting for a socket */
    bool overflowed;         /* a packet found the pool empty and was dropped */
    struct mrc_lane *lanes;
    uint32_t lane_count; /* slots in use or free */
    uint32_t lane_room;  /* slots allocated */
    uint32_t *failed; /* lanes that could not send since the pump last looked; lane_room entries */
    uint32_t failed_count;
    uint32_t stamp;
    struct mrc_txq_slot *slots;
    uint32_t slot_free;  /* head of the free list */
    uint32_t slot_fresh; /* from here on none was ever used */
    uint32_t slot_free_count;
    struct mrc_port_stats stats;
    /* Tests replace it. */
    int (*sys_sendmmsg)(int fd, struct mmsghdr *msgs, unsigned int n, int flags);
};

extern const struct mrc_io_ops mrc_io_udp_ops;
extern const struct mrc_io_ops mrc_io_raw_ops;
extern const struct mrc_io_ops mrc_io_mem_ops;

/* ---- shared by the backends: mrc_io.c ---- */

/* Puts the sentence in place; errnum 0: MRC_ERR_INVAL, else -(1000 + errnum) and strerror
 * appended. */
int mrc_io_fail(struct mrc_io *io, int errnum, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Port of cfg->kind with its lanes and pool; NULL and *err on failure. error: MRC_IO_ERROR_MAX
 * bytes that live as long as the port. */
struct mrc_io *mrc_io_open(const struct mrc_port_cfg *cfg, uint8_t index, int epoll_fd, char *error,
                           int *err);
/* watched = false in a forked child, whose epoll set is still the parent's. */
void mrc_io_close(struct mrc_io *io, bool watched);

int mrc_io_watch(struct mrc_io *io, int fd, uint32_t events, uint32_t tag);
void mrc_io_unwatch(struct mrc_io *io, int fd);

/* Source address towards a peer: what the caller wants, what the port is bound to, or what the
 * kernel would choose. INVAL when the port would not hear the answers. */
int mrc_io_source(struct mrc_io *io, const struct mrc_peer_addr *peer, uint8_t src[16]);

/* Lane for this key, opened or shared. Negative on failure. */
int64_t mrc_io_lane_get(struct mrc_io *io, const struct mrc_lane_key *key);
void mrc_io_lane_put(struct mrc_io *io, uint32_t lane);
/* The lane cannot send: the pump will tell the engine, once however often this is called. EMSGSIZE
 * is about packets as long as this one; any other reason is about all. */
void mrc_io_lane_failed(struct mrc_io *io, uint32_t lane, int error);

/* Sort a burst by lane, order kept inside each lane. Fills touched[] (n entries of room) with the
 * lanes, next[] with the chain of packet indices (UINT16_MAX ends). Returns the number of lanes. */
size_t mrc_io_group(struct mrc_io *io, const struct mrc_tx_pkt *const *pkts, size_t n,
                    uint32_t *touched, uint16_t *next);

void mrc_txq_init(struct mrc_txq *q);
/* false: pool empty, the packet was dropped, counted and its lane reported. */
bool mrc_txq_push(struct mrc_io *io, struct mrc_txq *q, const struct mrc_tx_pkt *pkt);
/* Pointers to the first packets; returns how many. */
size_t mrc_txq_peek(const struct mrc_io *io, const struct mrc_txq *q, const struct mrc_tx_pkt **out,
                    size_t max);
void mrc_txq_drop(struct mrc_io *io, struct mrc_txq *q, size_t n);
/* Kept packets that go with their region, or with their lane. */
void mrc_txq_forget_lane(struct mrc_io *io, struct mrc_txq *q, uint32_t lane);
void mrc_txq_forget(struct mrc_io *io, struct mrc_txq *q, const uint8_t *addr, uint64_t len);

#endif
