/* SPDX-License-Identifier: BSD-2-Clause */
/* Whole engines on a simulated network under virtual time, watched.
 *
 * Hosts, each one engine; one link per ordered pair of hosts and path; one heap of events keyed by
 * (time, sequence). One step takes the earliest of {event, engine deadline}, moves the clock there
 * and gives one host a turn: packets in, time, packets out. The world believes nothing an engine
 * says: it decodes what leaves, knows what every packet of every work request must look like, and
 * compares memory. The first thing that is wrong is kept (w->failure) and ends the run.
 *
 *   world_new -> world_connect -> world_load -> world_run / world_finish -> w->failure
 *
 * Same configuration, same calls: same w->hash. */
#ifndef MRC_WORLD_H
#define MRC_WORLD_H

#include <stdio.h>

#include "../core/mrc_engine.h"
#include "../core/mrc_icrc.h"
#include "../core/mrc_psn.h"
#include "../sim/sim_link.h"
#include "../sim/sim_queue.h"
#include "world_cover.h"

enum {
    WORLD_BURST = 32, /* packets per call of a door */
    WORLD_EVENTS_KEPT = 1024,
    WORLD_PSN_RING = 16384, /* more than twice the largest window */
    WORLD_GUARD = 256,      /* bytes around and between that nobody may touch */
    WORLD_PATHS_MAX = 256,
    WORLD_FLOWS_MAX = 64,
    WORLD_NO_FLOW = 0xFFFFFF,
    WORLD_HELD_MAX = 256, /* packets that wait for a stalled host; more are lost */
    WORLD_DSCP_TRIMMED = 12,
    WORLD_DSCP_TRIMMED_LASTHOP = 16,
};

/* Bits for sim_link_cfg.fault_kinds: what a packet is. */
enum {
    WORLD_KIND_DATA = 1,
    WORLD_KIND_ACK = 2,
    WORLD_KIND_SACK = 4,
    WORLD_KIND_NACK = 8,
    WORLD_KIND_PROBE = 16,
    WORLD_KIND_PROBE_ANSWER = 32, /* SACK with pr = 1 */
    WORLD_KIND_ENDPOINT = 64,
};

struct world_cfg {
    uint64_t seed;
    uint32_t hosts;   /* 2.. */
    uint16_t paths;   /* per ordered pair of hosts: EV i is plane 1 + i % planes */
    uint16_t backups; /* of those, the last so many are reserve */
    uint16_t min_active;
    uint8_t planes;
    mrc_ns start_ns; /* clock at the beginning */
    mrc_ns turn_ns;  /* a host looks at arrivals this long after the first one */
    mrc_ns skew_ns;  /* path i takes i times this longer */
    uint8_t
        trim_dscp;    /* what a trimmed packet becomes: TRIMMED, TRIMMED_LASTHOP; 0: both in turn */
    uint32_t ooo_max; /* receive budgets and the like, mrc_engine.h */
    uint32_t imm_max;
    uint32_t pool_kib;
    uint8_t penalty_percent;
    uint8_t icrc_skip_percent;
    bool service_time;
    bool late_rings; /* completion queues and events begin just before their indices wrap */
    struct sim_link_cfg link;
    struct mrc_cc_cfg cc;      /* one controller per ordered pair */
    struct sim_queue_cfg port; /* rate not 0: all links to a host end in one such port, which all
                                  who send to it share */
    uint8_t reverse;           /* enum mrc_reverse_rule */
    bool own_evs;              /* each host has EVs that the others do not know */
    uint8_t litter; /* not 0: memory lies elsewhere, and what engines are given is full of this */
};

/* A QP at each of two hosts, connected. All zero but a, b: see world_qp_defaults. */
struct world_qp_cfg {
    uint32_t a;
    uint32_t b;
    uint32_t depth; /* send queue; receive queue is the same */
    uint16_t mtu;
    uint16_t mpr;      /* both directions, units of 128 */
    uint16_t mpr_dest; /* what the responders really track; 0: the same */
    uint16_t max_wimm;
    uint32_t psn_ab;
    uint32_t psn_ba;
    uint32_t sack_threshold;
    uint8_t timeout;
    uint8_t linear_cnt;
    uint8_t exp_cnt;
    uint8_t train_max;
    bool dynamic_mpr;
    bool timestamps;   /* timestamps in data packets */
    uint8_t recovery;  /* enum mrc_recovery */
    bool late_numbers; /* MSN, RQMSN, AETH.msn, rcvd_bytes, ring indices begin before their wrap */
    uint8_t mode;      /* enum mrc_qp_mode; rc: one path */
};

/* What one direction of a QP is to carry. */
struct world_load {
    uint64_t messages;
    uint32_t outstanding; /* posted at a time, <= depth; 0 = depth */
    uint32_t bytes_min;   /* of one message */
    uint32_t bytes_max;   /* <= the bytes_max of world_connect */
    uint8_t imm_percent;
    uint8_t unsignaled_percent;
};

/* One posted work request as the world knows it. */
struct world_wr {
    uint64_t id;
    const uint8_t *src;
    uint8_t *dst;
    uint64_t raddr;
    uint32_t rkey;
    uint32_t length;
    uint32_t imm;
    uint16_t rqmsn; /* once its first packet has left */
    bool is_imm;
    bool signaled;
    bool solicited;
};

/* What the world remembers of a PSN that left. */
struct world_sent {
    uint32_t psn;
    uint32_t packet; /* index in the message */
    uint64_t wr;     /* running number of the work request */
    uint32_t sends;
};

/* One direction of a connection: requestor at `from`, responder at `to`. */
struct world_flow {
    uint32_t from;
    uint32_t to;
    uint32_t qpn_from;
    uint32_t qpn_to;
    uint32_t reverse; /* index of the other direction */
    bool retired;     /* its QPs have begun another life, or are no more */
    bool may_fail;    /* something was done to it that ends QPs */
    bool noise;       /* packets that are not its own may reach its QPs */
    struct world_qp_cfg qp;
    struct world_load load;
    struct mrc_rand rand;
    /* memory: slot k of both regions belongs to work request n with n % slots == k */
    uint8_t *src;
    uint8_t *dst;
    uint8_t *image; /* what dst must look like where nothing is outstanding */
    uint64_t va;    /* the address of dst[0] on the wire: drawn, for where dst lies is chance */
    size_t bytes;   /* of the whole region, guards included */
    size_t slot_bytes;
    uint32_t slots;
    uint32_t lkey;
    uint32_t rkey;
    /* requestor's application; running numbers */
    struct world_wr *wr; /* ring of slots */
    uint64_t posted;
    uint64_t completed;
    uint64_t placed; /* all before this were seen in the responder's memory */
    uint8_t status;  /* enum mrc_wc_status of the first failure */
    bool dead;       /* the QP at `from` failed */
    bool ended;      /* it was destroyed */
    /* responder's application */
    uint64_t recv_posted;
    uint64_t recv_taken; /* receives completed, flushed included */
    uint64_t *imm_wr;    /* ring: immediates posted and not yet delivered */
    uint64_t imm_posted;
    uint64_t imm_taken;
    uint8_t recv_status;
    /* packets */
    struct world_sent *sent; /* ring by PSN */
    uint8_t *arrived;        /* bit per PSN: reached the responder intact */
    struct mrc_psn max_arrived;
    uint32_t window;     /* PSNs the requestor may be ahead of acked, as last told */
    uint8_t mpr_min;     /* smallest window a SACK offered; 0: none did */
    uint32_t rcvd_seen;  /* newest CC_STATE.rcvd_bytes that reached the requestor */
    uint16_t msn_base;   /* of the message before the first */
    uint16_t rqmsn;      /* last begun */
    uint32_t msn_done;   /* what the responder's count of messages begins at */
    uint64_t rcvd_start; /* and that of bytes */
    uint64_t wr_sending; /* work request whose packets are leaving for the first time */
    uint32_t packet_next;
    struct mrc_psn psn_next;
    struct mrc_psn acked;     /* highest cumulative PSN that reached the requestor */
    struct mrc_psn acked_tp;  /* same by transport ACKs only */
    struct mrc_psn cack_sent; /* last cack that left the responder */
    uint32_t *wimm_last;      /* PSN of the last packet of each immediate in flight, ring */
    uint32_t wimm_head;
    uint32_t wimm_tail;
    uint64_t data_packets;
    uint64_t rtx_packets;
    mrc_ns last_data_ns; /* when a data packet last left */
    mrc_ns last_done_ns; /* when a work request last completed */
};

struct world_packet;  /* in flight; world_int.h */
struct world_hostile; /* what the third host does; world_hostile.c */

/* A packet on its way, for filters. */
struct world_hop {
    uint32_t from;
    uint32_t to;
    uint16_t path;
    uint32_t kind;
    const struct mrc_pkt *pkt;
};
struct world;
/* Return false to lose the packet; *extra is added to its delay. */
typedef bool (*world_filter_fn)(struct world *w, const struct world_hop *hop, mrc_ns *extra);
typedef void (*world_action_fn)(struct world *w, void *arg, uint32_t n);

struct world_event {
    mrc_ns at;
    uint64_t seq;
    struct world_packet *packet; /* arrival, or NULL */
    world_action_fn action;
    void *arg;
    uint32_t n;
};

struct world_host {
    struct mrc_engine *e;
    void *mem;
    uint32_t cq_send;
    uint32_t cq_recv;
    uint32_t *path_id; /* per peer */
    struct mrc_path_table **table;
    struct mrc_cc **cc;
    uint32_t *cc_id;
    bool turn_queued;
    mrc_ns last_turn;
    uint32_t turns_at_once;    /* turns without time passing */
    mrc_ns stalled_until;      /* gets no turn before */
    struct world_packet *held; /* what waits meanwhile, oldest first */
    struct world_packet **held_end;
    uint32_t held_n;
    uint64_t asked;    /* data packets, probes, endpoint requests handed to it */
    uint64_t answered; /* control packets it sent */
    struct sim_queue port;
};

struct world {
    struct world_cfg cfg;
    mrc_ns now;
    uint64_t seq;
    uint64_t hash;
    uint64_t steps;
    struct world_host *host;
    struct sim_link *link; /* [from][to][path] */
    struct world_flow *flow;
    uint32_t flows;
    struct world_event *heap;
    uint32_t heap_n;
    uint32_t heap_max;
    struct world_packet *free;
    uint32_t packets_live;
    world_filter_fn filter;
    void *filter_arg;
    bool no_repost; /* receives that were used up are not posted again */
    mrc_crc32_fn crc;
    struct world_hostile *hostile; /* NULL: no third host */
    uint64_t cover[WORLD_COVER_COUNT];
    uint64_t packet_id; /* of the last packet that left */
    FILE *trace;        /* a line per packet and completion, or NULL */
    FILE *log;          /* the same for machines, docs/reference/trace.md, or NULL */
    struct mrc_ev_event events[WORLD_EVENTS_KEPT]; /* path events of host 0 and up, as polled */
    uint32_t events_n;
    void **blocks; /* everything allocated */
    uint32_t blocks_n;
    char failure[512]; /* "" while all is well */
    bool narrow;       /* the scenario shrinks an MTU: a path may be retired for it */
};

/* ---- world_make.c ---- */
struct world_cfg world_defaults(uint64_t seed);
struct world *world_new(const struct world_cfg *cfg);
/* Write the log from here on; before anything is connected. */
void world_log_to(struct world *w, FILE *log);
void world_log_note(struct world *w, const char *what, uint32_t a, uint32_t b, uint32_t c);
void world_free(struct world *w);

/* ---- world_net.c ---- */
struct sim_link *world_link(struct world *w, uint32_t from, uint32_t to, uint16_t path);
/* Both directions of a path. */
void world_cut(struct world *w, uint32_t a, uint32_t b, uint16_t path, bool cut);
/* A packet that no engine sent reaches host `to` at that time; as_flow: it is a copy of one of this
 * flow, WORLD_NO_FLOW: of none. The bytes are copied. */
void world_inject(struct world *w, uint32_t to, const struct mrc_rx_pkt *rx, uint32_t as_flow,
                  mrc_ns at);

/* ---- world.c: time ---- */
void world_at(struct world *w, mrc_ns at, world_action_fn fn, void *arg, uint32_t n);
/* Until that time or the first failure; false when failed. */
bool world_run(struct world *w, mrc_ns until);
/* Everything that has reached this host is seen by its engine. */
void world_turn(struct world *w, uint32_t host);
/* Let the engine at this host do what became possible (after posting). */
void world_kick(struct world *w, uint32_t host);
/* This host gets no turn for so long; what arrives waits in a buffer of WORLD_HELD_MAX. */
void world_stall(struct world *w, uint32_t host, mrc_ns for_ns);
/* Until all loads are done or their QPs are dead; failure when that takes longer than limit, or
 * when the quiet state afterwards is not clean. */
bool world_finish(struct world *w, mrc_ns limit);
void *world_alloc(struct world *w, size_t bytes); /* zeroed; freed with the world */
void *world_lend(struct world *w, size_t bytes);  /* for an engine, which expects nothing of it */
__attribute__((format(printf, 2, 3))) void world_fail(struct world *w, const char *fmt, ...);
void world_mix(struct world *w, uint64_t x); /* into the hash */
static inline void world_seen(struct world *w, enum world_cover what) { w->cover[what]++; }
static inline void world_seen_if(struct world *w, bool yes, enum world_cover what)
{
    w->cover[what] += yes;
}

/* ---- world_flow.c: connections, memory, work ---- */
struct world_qp_cfg world_qp_defaults(void);
/* Index of the flow a -> b; b -> a is the next one. */
uint32_t world_connect(struct world *w, const struct world_qp_cfg *qp, uint32_t bytes_max);
void world_load(struct world *w, uint32_t flow, const struct world_load *load);
/* Take what is in the CQs of this host and post more; true when something was posted. */
bool world_completions(struct world *w, uint32_t host);
/* Count what was done in silence before the flow's QP ended: its queue no longer holds it. */
void world_settle(const struct world *w, struct world_flow *f);
bool world_flow_done(const struct world *w, const struct world_flow *f);
/* One work request of this size; false when the queue is full. */
bool world_post(struct world *w, struct world_flow *f, uint32_t length, bool imm, bool signaled);
/* The same to any remote address and key. */
bool world_post_to(struct world *w, struct world_flow *f, uint32_t length, uint64_t raddr,
                   uint32_t rkey);
void world_memory_check(struct world *w, struct world_flow *f);
struct mrc_qp_stats world_stats(struct world *w, const struct world_flow *f);      /* at `from` */
struct mrc_qp_stats world_stats_peer(struct world *w, const struct world_flow *f); /* at `to` */

/* ---- world_life.c: what becomes of QPs ---- */
/* Both QPs through RESET into a new life with numbers far from the old ones; what was posted is
 * flushed. Index of the flow that takes the place of `flow`; its reverse is the next one. */
uint32_t world_reset(struct world *w, uint32_t flow);
/* The QP that sends this flow is destroyed with all it has to do; its peer is not told. */
void world_destroy(struct world *w, uint32_t flow);
/* The QP that sends this flow enters ERR. */
void world_error(struct world *w, uint32_t flow);
/* One work request with a key that is not one. */
void world_bad_key(struct world *w, uint32_t flow);
/* The application at this host takes nothing new for so long. */
void world_pause(struct world *w, uint32_t host, mrc_ns for_ns);
/* The responder of this flow offers another window (B.12). */
void world_mpr(struct world *w, uint32_t flow, uint16_t mpr);
/* After all is done: every QP is destroyed, each posted request has completed, all memory comes
 * back. */
void world_end(struct world *w);

/* ---- world_hostile.c ---- */
enum { WORLD_STRANGER = 1, WORLD_REPLAY = 2, WORLD_FORGE = 4 };
/* A third host sees every packet and answers some with packets of its own until `end`. */
void world_hostile(struct world *w, uint32_t kinds, uint32_t ppm, mrc_ns end);

/* ---- world_cover.c ---- */
const char *world_cover_name(uint32_t kind);
/* At the end of a run: what links and engines counted themselves. */
void world_cover_flow(struct world *w, const struct world_flow *f);
void world_cover_links(struct world *w);

/* ---- world_check.c: every packet that leaves ---- */
/* Returns the WORLD_KIND of a packet that leaves host `from`; decoded in *pkt; *flow: whose. */
uint32_t world_check_sent(struct world *w, uint32_t from, uint32_t to, uint16_t path,
                          const struct mrc_rx_pkt *rx, struct mrc_pkt *pkt, uint32_t *flow);
struct world_flow *world_flow_by_sender(struct world *w, uint32_t from, uint32_t to, uint32_t dqp);
struct world_flow *world_flow_by_answer(struct world *w, uint32_t from, uint32_t to, uint32_t dqp);

#endif
