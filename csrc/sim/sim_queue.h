/* SPDX-License-Identifier: BSD-2-Clause */
/* One output port of a host or switch: packets wait in classes for one transmitter (MRC A.13.5,
 * A.13.6, E.8).
 *
 * Sans-I/O like the core: no clock, no memory, every draw from a seed. The queue links the caller's
 * packets by the struct sim_item inside them; whoever owns the packets owns the events:
 *
 *   sim_queue_push      a packet comes to the port: it waits, is cut, or is refused
 *   sim_queue_deadline  when the last bit of the one being sent has left
 *   sim_queue_pop       takes it then, and begins with the next
 *
 * What a wire adds (delay, jitter, loss, corruption) is sim_link with rate 0, behind the port. A
 * switch is a table of ports. */
#ifndef SIM_QUEUE_H
#define SIM_QUEUE_H

#include "../core/mrc_base.h"
#include "../core/mrc_rand.h"

enum sim_class {
    SIM_DATA = 0,
    SIM_CONTROL = 1,
    SIM_TRIMMED = 2, /* what is left of cut packets */
};
enum { SIM_CLASSES = 3 };

/* Inside the caller's packet. The first part is set before the push, the rest is the queue's. */
struct sim_item {
    struct sim_item *next;
    uint32_t len_bytes; /* on the wire; what was cut is cut here too */
    uint8_t cls;        /* enum sim_class; a cut packet changes to SIM_TRIMMED */
    bool ect;           /* may be marked */
    bool trimmable;     /* may be cut */
    bool ce;            /* was marked here */
    bool trimmed;       /* was cut here */
    mrc_ns pushed_ns;
};

struct sim_queue_cfg {
    uint64_t rate_bps;                 /* bit/s, not 0 */
    uint32_t limit_bytes[SIM_CLASSES]; /* most that may wait; 0: no limit */
    uint32_t weight[SIM_CLASSES];      /* shares of the rate while several wait; 0 counts as 1 */
    uint32_t mark_lo_bytes;            /* CE never when this much waits behind, always above hi, */
    uint32_t mark_hi_bytes;            /* linear between (E.8: 0.2 to 0.8 BDP); hi = 0: never */
    uint32_t trim_bytes; /* a data packet that finds its class full is cut to this; 0: lost */
};

/* Ever growing. */
struct sim_queue_stats {
    uint64_t packets[SIM_CLASSES]; /* sent */
    uint64_t bytes[SIM_CLASSES];
    uint64_t dropped[SIM_CLASSES]; /* by the class they came in */
    uint64_t trimmed;
    uint64_t marked;
    mrc_ns wait_ns[SIM_CLASSES]; /* sum over the packets, from push to the first bit */
};

struct sim_queue {
    struct sim_queue_cfg cfg;
    struct sim_queue_stats stats;
    struct mrc_rand rand;
    struct sim_item *head[SIM_CLASSES];
    struct sim_item *tail[SIM_CLASSES];
    struct sim_item *sending; /* NULL: idle */
    uint64_t carry;
    mrc_ns done_at; /* when its last bit has left; MRC_NEVER when idle */
    uint64_t waiting_bytes[SIM_CLASSES];
    uint64_t served[SIM_CLASSES]; /* virtual time: bytes over weight */
};

enum sim_verdict { SIM_QUEUED, SIM_CUT, SIM_DROPPED };

void sim_queue_init(struct sim_queue *q, const struct sim_queue_cfg *cfg, uint64_t seed);
/* On SIM_DROPPED the item stays the caller's; otherwise until sim_queue_pop gives it back. */
enum sim_verdict sim_queue_push(struct sim_queue *q, struct sim_item *item, mrc_ns now);
/* MRC_NEVER when idle. Changes with push (from idle) and pop only. */
mrc_ns sim_queue_deadline(const struct sim_queue *q);
/* The packet whose last bit has left by now, NULL: none. */
struct sim_item *sim_queue_pop(struct sim_queue *q, mrc_ns now);
/* A packet that has not left, whatever its place; NULL: none is left, and the port is idle. */
struct sim_item *sim_queue_flush(struct sim_queue *q);
/* From the next packet on. */
void sim_queue_set_rate(struct sim_queue *q, uint64_t rate_bps);

#endif
