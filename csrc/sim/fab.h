/* SPDX-License-Identifier: BSD-2-Clause */
/* The emulated fabric: whole engines on a multi-plane two-tier Clos network, in virtual time.
 *
 * Sans-I/O: no clock, no system call, every draw from one seed; the same tables and the same calls
 * give the same trace hash. All memory is taken when the fabric is made, nothing while it runs.
 *
 *   hosts      each one production engine; one port, one cable per plane, to its T0 of that plane
 *   switches   T0 and T1 of every plane; uN forwarding by the outer IPv6 destination (MRC A.13.1)
 *   links      one direction of a cable: a sim_queue at the port that sends, a sim_link behind it
 *   work       messages, each a Write with Immediate, started by time or by arrivals; bulk flows
 *
 * The caller gives tables, says run_until, reads counters in bulk, and sets faults in between.
 * Inside everything is counted from 0; a plane that the protocol names is 1 more. */
#ifndef FAB_H
#define FAB_H

#include "../core/mrc_engine.h"
#include "sim_link.h"
#include "sim_queue.h"

#define FAB_NONE UINT32_MAX

/* ---- tables ---- */

struct fab_cfg {
    uint64_t seed;
    uint32_t planes;       /* 1..15 with number_bits 8, 1..8 with 9 */
    uint32_t t0;           /* per plane */
    uint32_t t1;           /* per plane; 0: hosts under one T0 reach each other only */
    uint32_t hosts;        /* host h is under T0 h / hosts_per_t0 of every plane */
    uint32_t hosts_per_t0; /* 0: as even as can be */
    uint32_t number_bits;  /* of a uSID: role(4) plane(12 - number_bits) number; 8 or 9, 0: 8 */
    uint64_t rate_bps;     /* of host cables */
    uint64_t t1_rate_bps;  /* of T0-T1 cables; 0: the same */
    mrc_ns delay_ns;       /* of each cable */
    mrc_ns jitter_ns;      /* a packet struck takes up to this much longer */
    uint32_t jitter_ppm;
    uint32_t mtu_bytes;                /* largest IP packet, outer header included; 0: any */
    uint32_t frame_bytes;              /* what a packet takes of the rate besides its IP bytes */
    uint32_t queue_bytes[SIM_CLASSES]; /* of a switch port; 0: no limit */
    uint32_t lasthop_bytes;            /* data queue towards a host; 0: as the others */
    uint32_t weight[SIM_CLASSES];      /* 0: 3, 30, 1 (E.8: cut packets a quarter beside data) */
    uint32_t mark_lo_bytes; /* CE never below, always above hi; never towards a host; hi = 0: off */
    uint32_t mark_hi_bytes;
    uint32_t trim_bytes; /* IP bytes kept of a packet without room; 0: such packets are lost */
    uint8_t trim_keeps_lengths; /* 1: as hardware does, lengths go on saying the original size */
    uint8_t icrc;               /* 0: not computed; a corrupted packet is still seen as such */
    uint8_t verify;             /* 1: every message has its own target, compared on arrival */
    uint8_t service_time;       /* engines correct reflected timestamps (H11) */
    mrc_ns turn_ns;             /* from a packet's arrival to the host's turn; packets gather */
    mrc_ns carrier_ns;          /* from the loss or return of a carrier to the host's noticing */
    uint32_t nic_bytes;         /* a port: the engine is asked while less waits; 0: 32768 */
    uint32_t packets_max;       /* in flight at a time; 0: by the number of hosts */
    uint32_t log_max;           /* events kept until taken; 0: 65536 */
};

/* An entry of an EV profile: plane(8) uplink(8) entropy(16), as D.9 splits it. The uplink is the
 * number of the T1 in uSIDs: index + 1 with number_bits 8, index with 9. */
struct fab_ev {
    uint32_t ev;
    uint8_t backup;
    uint8_t pad_[3];
};

enum fab_mode { FAB_MRC = 0, FAB_RC = 1 };

/* A queue pair at each of two hosts. Pairs of the same hosts with the same EVs share path tables,
 * with the same cc controllers. */
struct fab_qp {
    uint32_t a;
    uint32_t b;
    uint32_t ev_first; /* in the table of EVs */
    uint32_t ev_count;
    uint32_t cc;         /* in the table of cc profiles */
    uint32_t depth;      /* send queue and receive queue; 0: 64 */
    uint32_t mode;       /* enum fab_mode */
    uint32_t sack_bytes; /* SACK threshold; 0: default */
    uint16_t mtu;        /* path MTU */
    uint16_t mpr;        /* units of 128 PSNs; 0: 8 */
    uint16_t min_active; /* EVs */
    uint16_t event_ring; /* EV events kept between two runs; 0: 64 */
    uint8_t timeout;     /* 1.024 us x 2^n */
    uint8_t linear_cnt;
    uint8_t exp_cnt; /* 25: for ever */
    uint8_t train_max;
    uint8_t timestamps;
    uint8_t recovery;         /* enum mrc_recovery */
    uint8_t loss;             /* enum mrc_loss_rule */
    uint8_t reverse;          /* enum mrc_reverse_rule */
    mrc_ns probe_interval_ns; /* 0: the table's defaults */
    mrc_ns probe_interval_max_ns;
    mrc_ns probe_timeout_ns;
    uint8_t skip; /* enum mrc_skip_rule */
};

/* A message: flow 2q is queue pair q from a to b, 2q + 1 from b to a. It starts delay_ns after the
 * messages it waits for have all arrived at their receivers; without any, delay_ns after the start.
 * Messages of one flow that have started are sent in the order of starting. */
struct fab_msg {
    uint32_t flow;
    uint32_t bytes;
    uint32_t after[2]; /* FAB_NONE: nothing */
    mrc_ns delay_ns;
};

/* Messages without end from start to stop: a next one for each that completes. */
struct fab_bulk {
    uint32_t flow;
    uint32_t bytes;
    uint32_t outstanding; /* 0: 8; at most the depth */
    uint32_t pad_;
    mrc_ns start_ns;
    mrc_ns stop_ns; /* 0: never */
};

struct fab_tables {
    const struct fab_ev *ev;
    const struct fab_qp *qp;
    const struct mrc_cc_cfg *cc;
    const struct fab_msg *msg;
    const struct fab_bulk *bulk; /* at most one of a flow */
    uint32_t evs;
    uint32_t qps;
    uint32_t ccs;
    uint32_t msgs;
    uint32_t bulks;
    uint32_t pad_;
};

enum { FAB_WHY_MAX = 256 };

struct fab;

/* NULL, and a sentence in why: a table that makes no sense, or no memory. */
struct fab *fab_create(const struct fab_cfg *cfg, const struct fab_tables *tables,
                       char why[FAB_WHY_MAX]);
void fab_destroy(struct fab *f);

/* ---- time ---- */

/* Everything up to and at that time, counted from the start. With `done`: or until no message is
 * left that can arrive. MRC_OK, or MRC_ERR_STATE after a failure (fab_failure). */
int fab_run(struct fab *f, mrc_ns until, bool done);
mrc_ns fab_now(const struct fab *f);             /* since the start */
uint64_t fab_hash(const struct fab *f);          /* of all that happened */
const char *fab_failure(const struct fab *f);    /* "": none; what must never happen has */
uint64_t fab_messages_left(const struct fab *f); /* neither arrived nor given up */

/* ---- faults: from now on ---- */

enum fab_tier { FAB_HOST_UP, FAB_HOST_DOWN, FAB_T0_T1, FAB_T1_T0 };
/* Directed link: a is the host (host links) or the T0; b the T1. FAB_NONE: no such. */
uint32_t fab_link_id(const struct fab *f, enum fab_tier tier, uint32_t plane, uint32_t a,
                     uint32_t b);
/* Switch number a of the T0s, or of the T1s, of a plane. */
uint32_t fab_switch_id(const struct fab *f, bool t1, uint32_t plane, uint32_t a);

enum fab_knob {
    FAB_LOSS_PPM = 0, /* seeded */
    FAB_LOSS_MASK,    /* bit n % 64: the n-th packet from now is lost */
    FAB_CORRUPT_PPM,
    FAB_DUP_PPM,
    FAB_DELAY_NS, /* on top of the cable's own */
    FAB_JITTER_NS,
    FAB_JITTER_PPM,
    FAB_RATE_BPS, /* 0: the cable's own */
    FAB_TRIM_PPM, /* cut although there is room; needs trim_bytes */
    FAB_MTU,      /* larger ones vanish; 0: any */
    FAB_CUT,      /* silent: the carrier stays */
    FAB_DOWN,     /* visible: the port drops what it has; a host at either end notices */
    FAB_MARK_PPM, /* CE whatever the queue, not in E.8: to make one path look congested */
    FAB_KNOBS
};
/* MRC_ERR_INVAL: no such link or knob, or a value out of its range. Zero heals. */
int fab_link_set(struct fab *f, uint32_t link, enum fab_knob knob, uint64_t value);

enum fab_switch_knob {
    FAB_STOPPED = 0, /* takes packets, forwards none; carriers stay */
    FAB_OFF,         /* all its carriers are gone */
    FAB_NO_ROUTES,   /* up, with an empty table */
};
int fab_switch_set(struct fab *f, uint32_t sw, enum fab_switch_knob knob, bool on);

/* ---- reading ---- */

enum fab_drop {
    FAB_DROP_QUEUE = 0, /* no room at the port */
    FAB_DROP_LOSS,      /* seeded or masked */
    FAB_DROP_CUT,
    FAB_DROP_DOWN,
    FAB_DROP_STOPPED,
    FAB_DROP_NO_ROUTE,
    FAB_DROP_HOP_LIMIT,
    FAB_DROP_MTU,
    FAB_DROP_STRAY, /* reached a host it is not for */
    FAB_DROP_POOL,  /* packets_max is too small */
    FAB_DROPS
};
const char *fab_drop_name(enum fab_drop d);

/* sent + copied = delivered + dropped + in flight, always. */
struct fab_totals {
    uint64_t sent;
    uint64_t copied; /* by duplicating links */
    uint64_t delivered;
    uint64_t in_flight;
    uint64_t dropped[FAB_DROPS];
    uint64_t events; /* steps of the emulation */
    uint64_t hops;   /* packets through ports */
    uint64_t log_lost;
    uint64_t arrived; /* messages, bulk included */
    uint64_t failed;  /* work requests that ended with an error */
};
void fab_totals(const struct fab *f, struct fab_totals *out);

/* Rows of columns, so that a caller gets arrays. Each returns how many rows were written. */
enum fab_flow_col {
    FAB_F_DELIVERED = 0, /* payload bytes placed in the receiver's memory */
    FAB_F_MESSAGES,      /* arrived */
    FAB_F_SENT_BYTES,    /* payload, retransmissions included */
    FAB_F_SENT,          /* packets, the same */
    FAB_F_RETRANSMITTED,
    FAB_F_SPURIOUS,
    FAB_F_LOST, /* inferred */
    FAB_F_TIMEOUTS,
    FAB_F_MARKED,  /* CE, at the receiver */
    FAB_F_TRIMMED, /* at the receiver */
    FAB_F_OOO,
    FAB_F_DUPLICATES,
    FAB_F_NACKS,
    FAB_F_PROBES,
    FAB_F_ACKED, /* payload of completed work requests */
    FAB_F_CWND,
    FAB_F_INFLIGHT, /* bytes; the controller's share of this QP, not below 0 */
    FAB_F_OUTSTANDING,
    FAB_F_STATE, /* enum mrc_qp_state */
    FAB_F_ERROR, /* enum mrc_wc_status */
    FAB_F_ACTIVE_EVS,
    FAB_F_COLS
};
uint32_t fab_read_flows(const struct fab *f, uint64_t *out, uint32_t first, uint32_t rows);

enum fab_path_col {
    FAB_P_EV = 0,
    FAB_P_PLANE, /* 1.. */
    FAB_P_STATE, /* enum mrc_ev_state */
    FAB_P_BACKUP,
    FAB_P_SENT,
    FAB_P_BYTES,
    FAB_P_LOST,
    FAB_P_RETRANSMITTED,
    FAB_P_MARKED,
    FAB_P_TRIMMED,
    FAB_P_PROBES,
    FAB_P_ANSWERED,
    FAB_P_RTT_COUNT,
    FAB_P_RTT_SUM_NS,
    FAB_P_RTT_MIN_NS,
    FAB_P_RTT_MAX_NS,
    FAB_P_BAD_SINCE_NS, /* since the start; 0: never */
    FAB_P_GOOD_SINCE_NS,
    FAB_P_COLS
};
/* Entries of the table the flow's sender uses. */
uint32_t fab_read_paths(const struct fab *f, uint32_t flow, uint64_t *out, uint32_t rows);

enum fab_link_col {
    FAB_L_PACKETS = 0,
    FAB_L_BYTES,
    FAB_L_QUEUE,   /* bytes that wait now, all classes */
    FAB_L_PEAK,    /* most since the last reading with reset */
    FAB_L_DROPPED, /* at the port, for want of room */
    FAB_L_TRIMMED,
    FAB_L_MARKED,
    FAB_L_LOST, /* on the wire: seeded, masked, cut */
    FAB_L_CORRUPTED,
    FAB_L_REFUSED, /* down, MTU */
    FAB_L_WAIT_NS, /* sum over data packets */
    FAB_L_COLS
};
uint32_t fab_read_links(struct fab *f, uint64_t *out, uint32_t first, uint32_t rows, bool reset);

enum fab_msg_col {
    FAB_M_STARTED_NS = 0, /* MRC_NEVER: not yet, as the next two */
    FAB_M_ARRIVED_NS,     /* all of it is in the receiver's memory, and the receiver knows */
    FAB_M_DONE_NS,        /* the sender knows */
    FAB_M_STATUS,         /* enum mrc_wc_status of the sender */
    FAB_M_COLS
};
uint32_t fab_read_messages(const struct fab *f, uint64_t *out, uint32_t first, uint32_t rows);

/* Why engines dropped packets: MRC_DROP_COUNT values of one host. */
uint32_t fab_read_drops(const struct fab *f, uint32_t host, uint64_t *out);

enum fab_event_kind {
    FAB_E_EV = 0, /* an entry changed state: from, to, reason */
    FAB_E_ASYNC,  /* reason: enum mrc_async_type */
    FAB_E_FAILED, /* a flow's work ended with an error: reason: enum mrc_wc_status */
};
struct fab_event {
    mrc_ns time; /* since the start */
    uint32_t kind;
    uint32_t host;
    uint32_t peer; /* FAB_NONE: none in particular */
    uint32_t ev;   /* FAB_E_EV; FAB_E_ASYNC: the id; FAB_E_FAILED: the flow */
    uint8_t plane;
    uint8_t from;
    uint8_t to;
    uint8_t reason;
    uint32_t lost; /* events lost before this one */
};
/* In order of time. */
uint32_t fab_take_events(struct fab *f, struct fab_event *out, uint32_t max);

/* Outer IPv6 destination of a packet between two hosts on this EV (MRC D.9), as bytes. INVAL: no
 * such host. */
int fab_address(const struct fab *f, uint32_t from, uint32_t to, uint32_t ev, uint8_t out[16]);

/* Sizes, for whoever wonders. */
struct fab_sizes {
    uint64_t memory_bytes;
    uint32_t links;
    uint32_t switches;
    uint32_t routes_t0; /* entries of the largest table */
    uint32_t routes_t1;
    uint32_t packets_max;
};
void fab_sizes(const struct fab *f, struct fab_sizes *out);

#endif
