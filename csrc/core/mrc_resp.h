/* SPDX-License-Identifier: BSD-2-Clause */
/* Responder: takes data packets in any order, places them, says what arrived (MRC B.3 to B.8).
 * rx only marks what is due; tx emits it. Never includes the requester.
 *
 *   mrc_resp.c      packets in: verdict, placement, what becomes due
 *   mrc_resp_due.c  what is due, and waits for the next turn of sending
 *   mrc_resp_imm.c  immediates and receives: order, limits, delivery (B.8)
 *   mrc_resp_tx.c   packets out: SACK, NACK, transport ACK (B.4, B.6, B.7) */
#ifndef MRC_RESP_H
#define MRC_RESP_H

#include "mrc_emit.h"
#include "mrc_rxev.h"
#include "mrc_rxtrack.h"

enum {
    MRC_DUE_RING = 32,  /* SACKs, and */
    MRC_NACK_RING = 32, /* NACKs that may be due at a time */
    MRC_DUE_OWN = 8,    /* of each, without borrowing (ADR 129) */
    MRC_STASH_OWN = 8,  /* the same for immediates that wait: one less, and the next in order */
};

/* A SACK that is due, and because of which packet (B.4). */
struct mrc_sack_due {
    struct mrc_psn psn;
    uint32_t ev;
    uint16_t timestamp;
    uint16_t probe_id;
    uint16_t arrived; /* timestamp clock */
    uint8_t mark;     /* enum mrc_sack_mark */
    bool rtx;
    bool pr;
    bool timed; /* timestamp is one, in the unit we know: it may be corrected */
};

struct mrc_nack_due {
    struct mrc_psn psn;
    uint32_t ev;
    uint16_t timestamp;
    uint16_t arrived;
    uint8_t reason; /* enum mrc_nack_reason */
    bool timed;
};

/* An immediate that arrived before everything in front of it had (B.8). */
struct mrc_imm_stash {
    struct mrc_psn psn;
    uint32_t imm;
    uint32_t byte_len; /* of its own packet; of the message once that is complete */
    uint16_t rqmsn;
    bool solicited;
    bool only; /* a message of one packet */
};

struct mrc_resp {
    struct mrc_rxtrack rx;
    struct mrc_sack_due *due;  /* two rings of equal length: due_own and nack_own, ... */
    struct mrc_nack_due *nack; /* ... or in a block that is borrowed */
    uint32_t due_mask;
    uint32_t due_head;
    uint32_t due_tail;
    uint32_t nack_head;
    uint32_t nack_tail;
    bool ack_due;
    bool nak_due;
    uint8_t nak_syndrome; /* 0: none was ever due */
    struct mrc_psn nak_psn;
    uint32_t ack_ev; /* EV of the packet that made the transport ACK due */
    uint32_t sack_trigger_bytes;
    uint32_t sack_threshold_bytes;
    bool prev_ar;      /* an AR still waits for its second SACK (B.4 trigger 6) */
    bool any_received; /* the first packet of a connection is answered at once */
    uint32_t stale_duplicates;
    uint32_t msn_done; /* AETH.msn: messages completed, modulo 2^24 */
    uint64_t *rq;      /* wr_id of posted receives */
    uint32_t rq_mask;
    uint32_t rq_head;
    uint32_t rq_tail;
    struct mrc_imm_stash *stash; /* in order of their PSNs: stash_own, or a block borrowed */
    uint8_t stash_order;         /* of that block */
    uint32_t lent;               /* units of the engine's rx_pool */
    uint16_t stash_max;
    uint16_t stash_count;
    uint16_t max_wimm_dest;
    uint16_t rqmsn_done; /* of the last immediate delivered */
    bool rqmsn_known;
    uint8_t restore_left;          /* SACKs that still carry restore_cwnd (E.6) */
    struct mrc_path_cursor cursor; /* for control packets without a better EV */
    struct mrc_rxev rxev;
    bool gap_told;          /* mode rc: the PSN that is due has been NACKed, ... */
    struct mrc_psn gap_psn; /* ... this one */
    struct mrc_sack_due due_own[MRC_DUE_OWN];
    struct mrc_nack_due nack_own[MRC_DUE_OWN];
    struct mrc_imm_stash stash_own[MRC_STASH_OWN];
};

enum {
    MRC_RX_PENALTY_OFF = 0xFF, /* rx_penalty: none, whatever the engine's policy says */
    MRC_RESTORE_SACKS = 16,    /* SACKs after an episode that tell of its end */
};

/* What the responder needs of its QP for one call. */
struct mrc_resp_ctx {
    struct mrc_env *env;
    const struct mrc_peer *peer;
    struct mrc_qp_stats *stats;
    struct mrc_path_table *path;
    mrc_ns now;
    uint32_t pd;
    uint32_t recv_cq;
    const struct mrc_qp_attr *attr; /* access, mpr_dest, cap, rx_* */
};

enum mrc_resp_result {
    MRC_RESP_OK,    /* something may be due */
    MRC_RESP_FATAL, /* a NAK is due and the QP must go to ERR */
};

size_t mrc_resp_bytes(uint32_t window_max, uint32_t rq_depth);
void mrc_resp_init(struct mrc_resp *r, void *mem, uint32_t window_max, uint32_t rq_depth,
                   uint16_t wimm_max, uint64_t seed);
/* Nothing is borrowed. */
void mrc_resp_start(struct mrc_resp *r, struct mrc_psn rq_psn, uint32_t window,
                    uint32_t sack_threshold_bytes, uint16_t max_wimm_dest);

/* A data packet whose iCRC and peer are right. ev: its entropy; ce: inner or outer mark. */
enum mrc_resp_result mrc_resp_data(struct mrc_resp *r, const struct mrc_resp_ctx *c,
                                   const struct mrc_pkt *p, uint32_t ev, bool ce);
/* The same, in few steps, for most: a packet WRITE_MIDDLE without mark, new, that asks for nothing,
 * while no immediate waits. False: it is not of that kind, or is to be refused; nothing was done.
 */
bool mrc_resp_middle(struct mrc_resp *r, const struct mrc_resp_ctx *c, const struct mrc_pkt *p,
                     uint32_t ev);
/* A trimmed data packet (A.13.6). */
void mrc_resp_trimmed(struct mrc_resp *r, const struct mrc_resp_ctx *c, const struct mrc_pkt *p,
                      uint32_t ev, bool lasthop);
/* A reliability probe (B.11). */
void mrc_resp_probe(struct mrc_resp *r, const struct mrc_resp_ctx *c, const struct mrc_pkt *p,
                    uint32_t ev, bool ce);
/* Data for a QP in ERR: repeat the NAK, or NACK UNEXP_EVENT, so that the peer learns of it. */
void mrc_resp_refuse(struct mrc_resp *r, const struct mrc_resp_ctx *c, const struct mrc_pkt *p,
                     uint32_t ev);
/* A data packet whose iCRC is wrong, with all of its headers right as far as one can see. Counts
 * against its EV (H29); nothing else comes of it. */
void mrc_resp_broken(struct mrc_resp *r, const struct mrc_resp_ctx *c, const struct mrc_pkt *p,
                     uint32_t ev);
/* The QP ends: what it holds of the engine's pools goes back. */
void mrc_resp_release(struct mrc_resp *r, struct mrc_env *env);
void mrc_resp_set_threshold(struct mrc_resp *r, uint32_t bytes); /* 0: default (H7) */

bool mrc_resp_due(const struct mrc_resp *r);
/* One control packet; false when nothing is due or no path can carry it. */
bool mrc_resp_tx(struct mrc_resp *r, const struct mrc_resp_ctx *c, struct mrc_tx_pkt *out);

int mrc_resp_post_recv(struct mrc_resp *r, const uint64_t *wr_id, int n); /* -> accepted */
/* Next posted receive, for flushing; false when none. */
bool mrc_resp_take_recv(struct mrc_resp *r, uint64_t *wr_id);

/* ---- between the files ---- */

/* A block of the engine's rx_pool, for one that is given back; returns: its units, 0: none. NULL:
 * no more for this QP. */
void *mrc_resp_borrow(struct mrc_resp *r, struct mrc_env *env, uint32_t returns, uint8_t order);
void mrc_resp_return(struct mrc_resp *r, struct mrc_env *env, void *block, uint8_t order);

/* One more SACK is due; where there is no room for it, it takes the place of the newest. */
void mrc_resp_due_sack(struct mrc_resp *r, struct mrc_env *env, const struct mrc_sack_due *d);
/* Is there room for the answer to a probe, beside as many SACKs? */
bool mrc_resp_due_probe(struct mrc_resp *r, struct mrc_env *env);
void mrc_resp_due_nack(struct mrc_resp *r, struct mrc_env *env, const struct mrc_nack_due *d);
/* Give back what is borrowed for what is due; of that the oldest stay. */
void mrc_resp_due_narrow(struct mrc_resp *r, struct mrc_env *env);

/* This packet is refused: a NACK becomes due. */
void mrc_resp_nack(struct mrc_resp *r, const struct mrc_resp_ctx *c, const struct mrc_pkt *p,
                   uint32_t ev, uint8_t reason);

/* A NAK becomes due; the QP is over. */
enum mrc_resp_result mrc_resp_nak(struct mrc_resp *r, const struct mrc_resp_ctx *c,
                                  struct mrc_psn psn, uint8_t syndrome, uint32_t ev,
                                  enum mrc_drop why);
/* May this immediate be taken in? False: *out says whether that ends the QP. */
bool mrc_resp_imm_admit(struct mrc_resp *r, const struct mrc_resp_ctx *c, const struct mrc_pkt *p,
                        uint32_t ev, enum mrc_resp_result *out);
/* Few wait: give back what is borrowed for many. */
void mrc_resp_imm_narrow(struct mrc_resp *r, struct mrc_env *env);
void mrc_resp_imm_stash(struct mrc_resp *r, const struct mrc_resp_ctx *c, const struct mrc_pkt *p);
/* All before them has arrived, cack has not moved: how long are their messages? */
void mrc_resp_imm_measure(struct mrc_resp *r, const struct mrc_resp_ctx *c);
/* Deliver those that cack has passed. */
enum mrc_resp_result mrc_resp_imm_deliver(struct mrc_resp *r, const struct mrc_resp_ctx *c,
                                          uint32_t ev);

#endif
