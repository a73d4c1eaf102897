/* SPDX-License-Identifier: BSD-2-Clause */
/* Ends for load.c: a pump with its queue pairs, and how two of them meet. */
#ifndef MRC_BENCH_LOAD_H
#define MRC_BENCH_LOAD_H

#include <poll.h>
#include <stdint.h>

#include "mrc_pump.h"

enum {
    LOAD_REGION_BYTES = 1 << 26,
    LOAD_BATCH = 64,
    LOAD_MEM_RING = 4096,
    LOAD_WAIT_MS = 100,
    LOAD_PATIENCE_S = 10,
};

struct load_options {
    uint32_t qps;
    uint32_t evs;
    uint32_t bytes;
    uint32_t depth; /* of all queue pairs together */
    uint32_t path_mtu;
    uint32_t train;
    uint32_t window;
    double seconds;
    uint32_t threads; /* pairs of ends over a wire in memory, a thread each */
    bool latency;
    bool threaded;
    uint32_t spin_us;
};

/* What the peer must know; exchanged as it lies in memory, between two programs of one build. */
struct load_card {
    uint64_t raddr;
    uint32_t rkey;
    uint16_t udp_port;
    uint8_t pad_[2];
    uint8_t addr[16];
};

struct load_end {
    struct mrc_pump *pump;
    uint8_t *region;
    uint32_t *qpn;
    uint32_t qps;
    uint32_t rkey;
    uint32_t cq;
    uint32_t cc;
    uint32_t path;
    bool path_made;
    uint8_t addr[16];
    struct load_card peer;
};

struct load_options load_parse(int argc, char **argv);
uint32_t load_depth(const struct load_options *o); /* writes in flight of one queue pair */

/* Ends the program when `ok` is false, with the pump's own words. */
void load_must(bool ok, const struct load_end *e, const char *what);
void load_open(struct load_end *e, const struct load_options *o, struct mrc_mem_wire *wire,
               uint8_t side);
void load_tell(const struct load_end *e, struct load_card *out);
/* Queue pair q, to the peer's of that number; e->peer is known. */
void load_connect(struct load_end *e, const struct load_options *o, uint32_t q, uint32_t qpn);

/* TCP to ADDR PORT, or from there; own: this end's address. */
int load_meet(bool dial, const char *addr, const char *port, uint8_t own[16]);
void load_swap(int tcp, const void *own, size_t size, void *theirs);

uint64_t load_packets(const struct load_end *e); /* data packets sent */
uint64_t load_again(const struct load_end *e);   /* of them sent again */
uint64_t load_trains(const struct load_end *e);  /* messages handed to the kernel */
int load_size(void);

double load_wall(void); /* s */
double load_cpu(void);  /* of this process, s */

#endif
