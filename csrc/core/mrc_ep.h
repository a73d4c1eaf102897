/* SPDX-License-Identifier: BSD-2-Clause */
/* Endpoint operations (MRC F.1, A.11): EV probes and port status updates between nodes, without a
 * connection. A node is an address that some path table leads to; strangers get no answer. Knows
 * path tables, not QPs; each table has its place here under the engine's path id.
 *
 * Three parts, all bounded: a ring of answers to give, paced per node; a pool of EV probes of our
 * own, whose slot is also where the result waits to be polled; and per table what the peer must be
 * told of our planes, sent again until it has acknowledged it. */
#ifndef MRC_EP_H
#define MRC_EP_H

#include "mrc_emit.h"
#include "mrc_heap.h"
#include "mrc_list.h"
#include "mrc_types.h"

enum {
    MRC_EP_ANSWERS = 1024, /* waiting for tx; power of two */
    MRC_EP_BURST = 256,    /* requests of one node answered back to back ... */
    MRC_EP_FLAPS = 16,     /* changes of its planes heard back to back ... */
    MRC_EP_REPEATS = 3,    /* sendings of a port status update at the first gap (F.1) */
    MRC_EP_PLACE_BITS = 5, /* a slot is path << 5 | place in the addresses of its peer */
    MRC_EP_NOWHERE = 0xFFFFFFFF,
};
#define MRC_EP_PACE_NS (10 * MRC_USEC)      /* ... and after that one in this time */
#define MRC_EP_FLAP_PACE_NS (10 * MRC_MSEC) /* ... and after that one in this time */
#define MRC_EP_GAP_NS MRC_MSEC /* between sendings of an update; doubles after the third */
#define MRC_EP_GAP_MAX_NS MRC_SEC

/* An address of a node, as one table has it. Budgets are those of the first slot of an address:
 * what comes from one address is never at the cost of another. */
struct ep_slot {
    mrc_ns pace_ns; /* when the address's budget of answers is whole again */
    mrc_ns flap_ns; /* ... that of plane changes */
    uint32_t next;  /* of the same hash */
};

struct ep_node {                  /* the endpoint side of a path table; mrc_ep*.c only */
    struct mrc_heap_node timer;   /* first: the next port status update */
    struct mrc_link due;          /* in mrc_ep.telling while one is due */
    struct mrc_path_table *table; /* NULL: free, or leads to nobody we know */
    struct mrc_peer peer;
    struct mrc_path_cursor cursor;
    uint32_t local_up;
    uint32_t remote_up;
    mrc_ns heard_ns;     /* last port status update that counted; 0: none */
    uint32_t told;       /* mask the peer acknowledged last */
    uint32_t tell_tried; /* planes used by the sendings so far */
    uint16_t heard_ts;   /* timestamp of the update heard */
    uint16_t tell_id;    /* id of our update, the same in all sendings */
    uint8_t tell_sends;
    bool telling;     /* until it is acknowledged */
    uint8_t own_hint; /* low bytes of the UDP ports, see ep_asker */
    uint8_t peer_hint;
    /* The probe for the reverse set (D.8): one at a time, an unanswered one is forgotten. */
    struct mrc_link reverse; /* in mrc_ep.reversing while it is to be sent */
    mrc_ns reverse_sent_ns;
    uint16_t reverse_entry;
    uint16_t reverse_id;
    bool reverse_waiting;
    struct ep_slot slot[1u << MRC_EP_PLACE_BITS]; /* by place: first address, those of planes */
};

struct ep_answer {
    uint32_t path;
    uint32_t ev;
    uint16_t id;
    uint16_t timestamp;
    uint16_t arrived; /* timestamp clock */
    uint8_t op;
    bool timed; /* the timestamp's unit is ours */
};

enum ep_step { EP_FREE = 0, EP_SEND, EP_WAIT, EP_DONE };

struct ep_probe {
    struct mrc_heap_node timer; /* first: when it has failed */
    struct mrc_link link;       /* by step: free, sending, (none), done */
    struct mrc_ep_req req;
    mrc_ns sent_ns;
    struct mrc_ep_rsp rsp;
    uint16_t entry;
    uint8_t step; /* enum ep_step */
};

struct mrc_ep {
    struct mrc_env *env;
    struct ep_node *node; /* by path id */
    uint32_t *bucket;     /* address -> first slot */
    uint64_t seed;
    uint32_t node_max;
    uint32_t bucket_mask;
    uint16_t tell_next;    /* id of the next update */
    uint16_t reverse_next; /* of the next probe for a reverse set: MRC_EP_ID_OWN and above */
    struct mrc_heap timers;
    struct mrc_link telling;
    struct mrc_link sending;
    struct mrc_link reversing;
    struct mrc_link done;
    struct mrc_link unused;
    uint32_t answer_in;
    uint32_t answer_out;
    struct ep_answer answer[MRC_EP_ANSWERS];
    struct ep_probe probe[MRC_EP_PROBES];
};

size_t mrc_ep_bytes(uint32_t path_max); /* beside struct mrc_ep */
void mrc_ep_init(struct mrc_ep *ep, void *mem, struct mrc_env *env, uint32_t path_max,
                 uint64_t seed);

/* This path table leads to that node. A plane that the node reported down is down for it at once.
 * INVAL: path out of range or in use, dst unspecified. */
int mrc_ep_lead(struct mrc_ep *ep, uint32_t path, struct mrc_path_table *t,
                const struct mrc_ep_addr *to);
/* The table goes: answers to give are dropped, probes fail. */
void mrc_ep_forget(struct mrc_ep *ep, uint32_t path);
/* The slots that have an address, one of a table, in turn; MRC_EP_NOWHERE ends. Those that have it
 * as their first one come first. */
uint32_t mrc_ep_first(const struct mrc_ep *ep, const uint8_t addr[16]);
uint32_t mrc_ep_next(const struct mrc_ep *ep, uint32_t slot);
static inline uint32_t mrc_ep_path(uint32_t slot) { return slot >> MRC_EP_PLACE_BITS; }
static inline uint32_t mrc_ep_place(uint32_t slot) { return slot % (1u << MRC_EP_PLACE_BITS); }

/* Plane masks of one table, bit N = plane N up; the peer is told of the local one. NOENT: leads
 * nowhere. */
int mrc_ep_set_planes(struct mrc_ep *ep, uint32_t path, uint32_t local_up, uint32_t remote_up);
int mrc_ep_planes(const struct mrc_ep *ep, uint32_t path, struct mrc_ep_planes *out);

/* An endpoint request or response, iCRC right. True: the plane masks of all tables that lead to
 * its source have changed. */
bool mrc_ep_rx(struct mrc_ep *ep, const struct mrc_rx_pkt *rx, const struct mrc_pkt *p, mrc_ns now);
void mrc_ep_tick(struct mrc_ep *ep, mrc_ns now);
size_t mrc_ep_tx(struct mrc_ep *ep, struct mrc_tx_pkt *out, size_t max, mrc_ns now);
bool mrc_ep_tx_pending(const struct mrc_ep *ep);
static inline mrc_ns mrc_ep_deadline(const struct mrc_ep *ep) { return mrc_heap_key(&ep->timers); }

/* EV probes of our own: accepted in order, how many is returned, or why the first was not. NOENT:
 * no such path, or no such EV in it. INVAL: class or timeout. BUSY: the id waits for an answer of
 * the same node. FULL. Each gives one result. */
int mrc_ep_post(struct mrc_ep *ep, const struct mrc_ep_req *req, int n, mrc_ns now);
int mrc_ep_take(struct mrc_ep *ep, struct mrc_ep_rsp *out, int max); /* -> count */
/* The reverse set of this table wants to know whether that entry reaches the peer (D.8). */
void mrc_ep_reverse(struct mrc_ep *ep, uint32_t path, uint16_t entry);
static inline bool mrc_ep_results(const struct mrc_ep *ep) { return !mrc_list_empty(&ep->done); }

#endif
