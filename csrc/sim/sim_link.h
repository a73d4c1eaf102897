/* SPDX-License-Identifier: BSD-2-Clause */
/* One direction of one link of the simulated network: a queue with a rate, a delay, and faults.
 *
 * Sans-I/O like the core: no clock, no memory, every draw from a seed. The link keeps no
 * packets. It is told "this many bytes enter now" and answers when they come out, how often, and in
 * what shape; whoever asked keeps the bytes and the events. A path of several hops is several
 * links. */
#ifndef SIM_LINK_H
#define SIM_LINK_H

#include "../core/mrc_base.h"
#include "../core/mrc_rand.h"

struct sim_link_cfg {
    uint64_t rate_bps;      /* bit/s; 0: infinitely fast, no queue */
    mrc_ns delay_ns;        /* propagation */
    mrc_ns jitter_ns;       /* a packet struck by jitter takes up to this much longer: reordering */
    uint32_t jitter_ppm;    /* packets struck, per million */
    uint32_t queue_bytes;   /* a packet that finds more waiting is lost; 0: no limit */
    uint32_t trim_bytes;    /* not 0: such a packet is cut to this and overtakes (A.13.6) */
    uint32_t mark_lo_bytes; /* CE never below, always above hi, linear between; hi = 0: never */
    uint32_t mark_hi_bytes;
    uint32_t mark_ppm; /* CE whatever the queue */
    uint32_t loss_ppm;
    uint32_t dup_ppm;
    uint32_t corrupt_ppm;
    uint32_t fault_kinds; /* loss, mask, duplication, corruption strike these kinds; 0: all */
    uint64_t loss_mask;   /* bit n % 64 set: the n-th packet of those kinds is lost */
    uint32_t mtu_bytes;   /* what is longer vanishes; 0: no limit */
};

/* Ever growing. */
struct sim_link_stats {
    uint64_t packets;
    uint64_t bytes;
    uint64_t lost;       /* seeded, masked or cut */
    uint64_t overflowed; /* queue full */
    uint64_t trimmed;    /* queue full, but cut and forwarded */
    uint64_t duplicated;
    uint64_t corrupted;
    uint64_t marked;
    uint64_t too_long;
};

struct sim_link {
    struct sim_link_cfg cfg;
    struct sim_link_stats stats;
    struct mrc_rand rand;
    mrc_ns free_at; /* when the last bit now queued has left */
    uint64_t seq;   /* packets that faults may strike */
    bool cut;       /* everything vanishes silently */
};

struct sim_packet {
    uint32_t len_bytes; /* on the wire */
    uint32_t kind;      /* one bit, meaning is the caller's; see fault_kinds */
    bool ect;           /* may be marked */
    bool trimmable;     /* may be cut */
};

struct sim_delivery {
    mrc_ns at;
    uint64_t corrupt; /* 0: intact; else a seed for which bits to flip */
    bool ce;
    bool trimmed; /* only the first cfg.trim_bytes are there */
};

enum { SIM_COPIES_MAX = 2 };

void sim_link_init(struct sim_link *l, const struct sim_link_cfg *cfg, uint64_t seed);
/* A packet enters at now. Returns how many come out (0: lost, 2: duplicated) and fills out. Times
 * are not before now; without jitter they never decrease. */
int sim_link_submit(struct sim_link *l, const struct sim_packet *p, mrc_ns now,
                    struct sim_delivery out[SIM_COPIES_MAX]);
/* Bytes that wait to be sent. */
uint64_t sim_link_backlog(const struct sim_link *l, mrc_ns now);
/* Flip 1..8 bits that the seed of a corrupted delivery chooses. */
void sim_corrupt(uint8_t *bytes, uint32_t len, uint64_t seed);

#endif
