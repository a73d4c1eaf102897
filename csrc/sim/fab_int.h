/* SPDX-License-Identifier: BSD-2-Clause */
/* Inside of the fabric, for its own files only. */
#ifndef FAB_INT_H
#define FAB_INT_H

#include "fab.h"

enum {
    FAB_IPV6 = 40,
    FAB_HEADS = 2 * FAB_IPV6 + 8, /* outer, inner, UDP */
    FAB_DSCP_DATA = 4,            /* A.13.5, our defaults */
    FAB_DSCP_RETX = 8,
    FAB_DSCP_TRIMMED = 12,
    FAB_DSCP_LASTHOP = 16,
    FAB_DSCP_CONTROL = 46,
    FAB_GUARD = 64, /* bytes around what may be written */
    FAB_POISON = 0xD5,
    FAB_PATTERN_SLACK = 4096, /* messages begin anywhere in the first bytes of the pattern */
};

/* A packet in flight. The headers are bytes, as on the wire; the payload stays in the pattern,
 * which never changes, until it is put together for its receiver. */
struct fab_packet {
    struct sim_item item; /* first: a port gives these back */
    struct fab_packet *next;
    struct fab_packet *prev;
    mrc_ns at; /* reaches the end of the wire */
    uint64_t corrupt;
    const uint8_t *payload;
    uint32_t payload_len;
    uint32_t ip_bytes; /* present, from the outer header on */
    uint8_t hdr_len;
    uint8_t tail_len;
    uint8_t heads[FAB_HEADS];
    uint8_t hdr[MRC_HDR_MAX];
    uint8_t tail[8];
};

struct fab_link {
    struct sim_queue port;
    struct sim_link wire;
    struct fab_packet *head; /* on the wire, by arrival */
    struct fab_packet *tail;
    uint32_t from; /* a switch, or a host of FAB_HOST_UP */
    uint32_t to;
    uint8_t tier; /* enum fab_tier */
    uint8_t plane;
    bool down;        /* the cable */
    bool plain;       /* the wire does nothing but delay */
    uint8_t ends_off; /* switches at its ends that are off */
    uint32_t trim_ppm;
    uint32_t mark_ppm;
    uint32_t mtu;
    uint64_t rate_bps; /* its own */
    uint64_t peak_bytes;
    uint64_t refused;
    struct mrc_rand rand;
};

/* Static routes: uSID -> port, open addressing. */
struct fab_route {
    uint16_t usid; /* 0: free */
    uint16_t pad_;
    uint32_t link;
};
struct fab_routes {
    struct fab_route *slot;
    uint32_t mask;
    uint32_t count;
};

struct fab_switch {
    struct fab_routes routes;
    uint16_t usid; /* own */
    bool t1;
    bool stopped;
    bool off;
    bool no_routes;
    uint8_t plane;
    uint32_t index;
};

/* A path table or a controller of a host, and for whom it was made. */
struct fab_shared {
    void *object;
    uint32_t id;
    uint32_t peer;
    uint32_t key; /* first EV, or cc profile */
    uint32_t key2;
};

struct fab_host {
    struct mrc_engine *e;
    uint32_t cq_send;
    uint32_t cq_recv;
    uint32_t lkey;
    uint32_t rkey;
    uint8_t *memory; /* what peers write to */
    uint64_t memory_bytes;
    struct fab_shared *path;
    struct fab_shared *cc;
    uint32_t paths;
    uint32_t ccs;
    uint32_t qps;
    uint32_t *flow_of; /* by the low bits of a QPN: the flow that QP sends */
    uint32_t qpn_mask;
    uint32_t local_up; /* planes, as its engine knows */
    struct fab_packet *held;
    struct fab_packet **held_end;
    mrc_ns turn_at;
    uint64_t waiting_bytes; /* in its ports */
    bool more;              /* the engine has packets, the ports have no room */
    bool fresh;             /* work was posted since it was last asked */
};

/* One direction of a queue pair, and what it is to carry. */
struct fab_flow {
    uint32_t from;
    uint32_t to;
    uint32_t qpn;      /* of the sender */
    uint32_t qpn_peer; /* of the receiver */
    uint32_t path;     /* in the sender's table of paths */
    uint32_t depth;
    uint32_t posted; /* and not completed */
    uint32_t ready;  /* messages that have started: head of their list */
    uint32_t ready_tail;
    uint32_t bulk; /* FAB_NONE: none */
    bool dead;
    uint64_t arrived;
    uint64_t arrived_bulk;
    uint64_t failed;
    uint64_t bulk_posted;
    uint64_t bulk_target; /* offset of its slots in the receiver's memory */
};

struct fab_state { /* of a message */
    mrc_ns started;
    mrc_ns arrived;
    mrc_ns done;
    uint64_t target; /* offset in the receiver's memory */
    uint32_t next;   /* in the list of its flow */
    uint32_t waits;  /* for so many arrivals */
    uint32_t edge;   /* first of those who wait for it */
    uint8_t status;
    bool given_up;
};

struct fab_timer {
    mrc_ns at;
    uint32_t what;
};

/* One entry per source of events, keyed by (time, sequence number). */
struct fab_heap {
    struct fab_heap_item {
        mrc_ns at;
        uint64_t seq;
        uint32_t source;
    } * item;
    uint32_t *place; /* source -> index + 1 */
    uint32_t count;
    uint64_t seq;
};

struct fab {
    struct fab_cfg cfg;
    mrc_ns start; /* of the engines' clock */
    mrc_ns now;
    uint64_t hash;
    struct fab_heap heap;
    uint32_t links;
    uint32_t links_plane;
    uint32_t switches;
    struct fab_link *link;
    struct fab_switch *sw;
    struct fab_host *host;
    struct fab_packet *free;
    uint32_t packets;
    struct mrc_tx_pkt *tx;
    uint8_t *rx; /* where a packet is put together */
    uint8_t *pattern;
    uint64_t pattern_bytes;
    uint8_t *sink; /* everybody's target without verify */
    uint32_t message_max;
    /* tables, copied */
    struct fab_ev *ev;
    struct fab_qp *qp;
    struct mrc_cc_cfg *cc;
    struct fab_msg *msg;
    struct fab_bulk *bulk;
    uint32_t evs;
    uint32_t qps;
    uint32_t ccs;
    uint32_t msgs;
    uint32_t bulks;
    uint32_t flows;
    struct fab_flow *flow;
    struct fab_state *state;
    uint32_t *edge;          /* 2m, 2m + 1: the next in the list of after[0], after[1] of m */
    struct fab_timer *timer; /* heap of what starts at a time */
    uint32_t timers;
    uint32_t timers_max;
    uint64_t left; /* messages */
    bool *carrier_due;
    struct fab_totals totals;
    struct fab_event *log; /* ring */
    struct fab_event *log_spare;
    uint32_t log_head;
    uint32_t log_tail;
    uint32_t log_sorted; /* up to here */
    uint32_t log_mask;
    uint64_t memory_bytes;
    void **block;
    uint32_t blocks;
    char failure[FAB_WHY_MAX];
};

static inline void fab_mix(struct fab *f, uint64_t x) { f->hash = mrc_mix64(f->hash ^ x); }
static inline bool fab_link_is_down(const struct fab_link *l) { return l->down || l->ends_off; }

/* ---- fab_heap.c ---- */
void fab_heap_set(struct fab_heap *h, uint32_t source, mrc_ns at); /* MRC_NEVER: out */
static inline uint32_t fab_source_tx(uint32_t link) { return link; }
static inline uint32_t fab_source_arrive(const struct fab *f, uint32_t link)
{
    return f->links + link;
}
static inline uint32_t fab_source_host(const struct fab *f, uint32_t host)
{
    return 2 * f->links + host;
}
static inline uint32_t fab_source_timer(const struct fab *f) { return 2 * f->links + f->cfg.hosts; }

/* ---- fab_addr.c: who has which number (D.9) ---- */
enum fab_role { FAB_ROLE_T0 = 1, FAB_ROLE_T1 = 2, FAB_ROLE_HOST = 3 };
/* plane and number from 0. */
uint16_t fab_usid(const struct fab_cfg *c, enum fab_role role, uint32_t plane, uint32_t number);
void fab_inner_address(uint8_t out[16], uint32_t host);
/* Outer destination for this EV. */
void fab_carrier(const struct fab_cfg *c, uint8_t out[16], uint32_t from, uint32_t to, uint32_t ev);
uint32_t fab_routes_room(uint32_t entries); /* slots */
void fab_route_add(struct fab_routes *r, uint16_t usid, uint32_t link);
uint32_t fab_route_find(const struct fab_routes *r, uint16_t usid); /* link, or FAB_NONE */
/* uN: is it for us? Then the next uSID moves up. What the table is asked for. */
uint16_t fab_un_shift(uint8_t da[16], uint16_t own);

/* ---- fab_pkt.c ---- */
struct fab_packet *fab_packet_new(struct fab *f); /* NULL: none left */
void fab_packet_free(struct fab *f, struct fab_packet *p);
void fab_packet_drop(struct fab *f, struct fab_packet *p, enum fab_drop why);
/* What the engine of `from` emitted, with all headers. */
void fab_packet_fill(struct fab *f, struct fab_packet *p, uint32_t from, uint32_t to,
                     const struct mrc_tx_pkt *tx);
void fab_packet_cut(const struct fab *f, struct fab_packet *p, bool lasthop);
/* As its receiver sees it, in f->rx. False: not for this host and plane. */
bool fab_packet_open(struct fab *f, const struct fab_packet *p, uint32_t host, uint32_t plane,
                     struct mrc_rx_pkt *out);

/* ---- fab_net.c ---- */
void fab_link_enter(struct fab *f, uint32_t link, struct fab_packet *p);
void fab_link_flush(struct fab *f, uint32_t link, enum fab_drop why);
void fab_link_event(struct fab *f, uint32_t source); /* of a link: sent, or arrived */

/* ---- fab_host.c ---- */
void fab_host_arrive(struct fab *f, uint32_t host, uint32_t plane, struct fab_packet *p);
void fab_host_turn(struct fab *f, uint32_t host);
void fab_host_tx(struct fab *f, uint32_t host);
/* A turn now, after the event that is being dealt with. */
void fab_host_wake(struct fab *f, uint32_t host);
void fab_host_room(struct fab *f, uint32_t host, uint32_t bytes); /* a port has sent so much */
void fab_host_carrier(struct fab *f, uint32_t host, uint32_t plane);
void fab_host_events(struct fab *f, uint32_t host);

/* ---- fab_work.c ---- */
void fab_work_completions(struct fab *f, uint32_t host);
void fab_work_timers(struct fab *f);
void fab_timer_add(struct fab *f, mrc_ns at, uint32_t what);
void fab_work_start(struct fab *f);
uint64_t fab_message_offset(uint64_t id); /* in the pattern */

/* ---- fab_run.c ---- */
__attribute__((format(printf, 2, 3))) void fab_fail(struct fab *f, const char *format, ...);
void fab_log(struct fab *f, const struct fab_event *e);

/* ---- fab_make.c ---- */
void *fab_alloc(struct fab *f, size_t bytes); /* zeroed; NULL: no memory */

/* ---- fab_join.c: queue pairs and their memory ---- */
/* Where the memory of a host begins on the wire: where it lies is chance. */
static inline uint64_t fab_memory_va(uint32_t host) { return (uint64_t)(host + 1) << 40; }
bool fab_join(struct fab *f, char why[FAB_WHY_MAX]);

#endif
