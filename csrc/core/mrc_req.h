/* SPDX-License-Identifier: BSD-2-Clause */
/* Requester: work requests to packets, feedback to retransmissions and completions (MRC B.2, B.5,
 * B.6, B.7, B.9 to B.13, E.7). Never includes the responder.
 *
 *   mrc_req.c        creation, posting, what may leave next, sending
 *   mrc_req_rx.c     SACK, NACK, transport ACK
 *   mrc_req_loss.c   loss inference
 *   mrc_req_timer.c  local ACK timer, probes, retry budget
 *   mrc_req_gbn.c    mode rc: all of it again from the first that is missing */
#ifndef MRC_REQ_H
#define MRC_REQ_H

#include "mrc_cc.h"
#include "mrc_emit.h"
#include "mrc_txtrack.h"

enum {
    MRC_PROBE_RING = 8,         /* probes whose answer is still of interest */
    MRC_PROBE_ID_TAIL = 0x8000, /* bit 15 of a probe id: ours; clear: the path table's */
};

/* A work request in the send queue. */
struct mrc_wqe {
    uint64_t wr_id;
    const uint8_t *from;
    uint64_t raddr;
    uint32_t length;
    uint32_t lkey;
    uint32_t rkey;
    uint32_t imm;
    uint32_t npkts;
    struct mrc_psn first; /* valid once it has begun */
    uint16_t msn;
    uint16_t rqmsn;
    uint8_t opcode; /* enum mrc_wr_opcode */
    uint8_t flags;
};

/* A reliability probe of this QP (B.11): for the tail, or for the base round trip (E.7). */
struct mrc_req_probe {
    mrc_ns sent_ns; /* 0: unused */
    uint16_t id;
    uint16_t ev;
    bool base; /* left in the control class, for the round trip without queues */
};

struct mrc_req {
    struct mrc_txtrack tx;
    struct mrc_wqe *sq;
    uint32_t sq_mask;
    uint32_t sq_depth;
    uint32_t head;       /* oldest not completed; free-running, as the next two */
    uint32_t next;       /* the one being cut into packets */
    uint32_t tail;       /* next to post */
    uint32_t next_pkt;   /* index of its next packet */
    uint64_t backlog;    /* packets posted that have not left a first time */
    uint32_t window;     /* PSNs: MPR x 128 in force; the peer may change it (B.12) ... */
    uint32_t window_own; /* ... up to this, which was agreed */
    uint16_t msn;        /* last given out (H18) */
    uint16_t rqmsn;
    uint16_t max_wimm;
    uint16_t wimm_out; /* WIMMs in flight (B.8) */
    uint8_t timeout;
    uint8_t linear_cnt;
    uint8_t exp_cnt;
    uint8_t train_max;      /* 0 = auto */
    uint32_t retry;         /* B.9: one counter */
    mrc_ns nack_counted_ns; /* when a NACK was counted last, 0: never */
    /* Timeouts since a packet was last acknowledged that had left once only: after an
     * acknowledgement of a copy nobody knows which copy it was for, and the timer must not shrink
     * on a guess. */
    uint32_t backoff;
    mrc_ns backoff_ns;     /* when it grew last */
    mrc_ns retry_spent_ns; /* when a timeout spent a retry last */
    mrc_ns report_max_ns;  /* decaying maximum from departure to report, such packets only */
    mrc_ns report_min_ns;  /* the shortest of them ever, MRC_NEVER: none */
    uint32_t prev_rcvd;    /* newest CC_STATE.rcvd_bytes */
    int64_t inflight;      /* this QP's share of the controller's */
    int64_t parked;        /* of it: lent to the other QPs while nothing is heard */
    struct mrc_path_cursor cursor;
    uint16_t train_ev;
    uint16_t train_left;
    mrc_ns probe_at; /* next tail probe, MRC_NEVER */
    uint8_t probe_shift;
    bool probe_due;
    uint16_t probe_seq;
    struct mrc_req_probe probes[MRC_PROBE_RING];
    bool base_probe_due;
    mrc_ns ack_at;    /* lost transport ACK suspected: ask then (H16), MRC_NEVER */
    mrc_ns ack_since; /* the local ACK timer of that wait runs since */
    uint8_t ack_shift;
    bool ack_query_due;
    bool timestamps;  /* TSETH in data packets */
    uint8_t recovery; /* enum mrc_recovery */
    bool recovering;  /* B.10: until unack reaches recovery_psn */
    struct mrc_psn recovery_psn;
    uint64_t recovery_order; /* transmissions up to this one are older than the recovery */
    uint8_t error;           /* enum mrc_wc_status; SUCCESS while all is well */
    uint8_t room_shift;      /* waits in a row */
    uint32_t room;      /* PSNs above unack that may be out: less than `window` after a shortage */
    mrc_ns room_cut_ns; /* when it was halved last, 0: never */
    mrc_ns hold_at;     /* nothing leaves before; MRC_NEVER */
    mrc_ns no_path_since; /* no EV has been usable since then; MRC_NEVER */
    mrc_ns news_ns;       /* the peer was last known to have received something new; 0: never */
    mrc_ns quiet_since;   /* what is out has brought no news, refusal or timeout since */
    mrc_ns stalled_since; /* nothing is in flight and the rest may not leave; MRC_NEVER */
    mrc_ns srtt_ns;       /* round trip, smoothed over all paths; 0: none yet */
    uint32_t ack_retry;   /* B.9 for the wait for a transport ACK: only a completion resets it */
};

/* Why nothing leaves. */
enum mrc_req_block {
    MRC_REQ_SENT,      /* something left */
    MRC_REQ_IDLE,      /* nothing to send, or MPR or WIMM limit: an acknowledgement will
                          change that */
    MRC_REQ_NO_CREDIT, /* the controller says no */
    MRC_REQ_NO_PATH,   /* no EV is usable */
};

struct mrc_req_ctx {
    struct mrc_env *env;
    const struct mrc_peer *peer;
    struct mrc_qp_stats *stats;
    struct mrc_path_table *path;
    struct mrc_cc *cc;
    mrc_ns now;
    uint32_t pd;
    uint32_t send_cq;
    bool dynamic_mpr;
    bool no_trim;      /* the peer does not answer trimmed packets (B.7) */
    bool service_time; /* the peer takes its own time off the timestamps that it reflects (H11) */
    bool in_order;     /* mode rc: the peer takes nothing but the next PSN (ADR 95) */
};

size_t mrc_req_bytes(uint32_t window_max, uint32_t sq_depth, uint16_t ev_max);
void mrc_req_init(struct mrc_req *r, void *mem, uint32_t window_max, uint32_t sq_depth,
                  uint16_t ev_max, uint64_t seed);
/* Agreed MPR, units of 128 PSNs: what the QP may have outstanding (B.12). */
void mrc_req_set_window(struct mrc_req *r, uint16_t mpr);
/* Enter RTS. The timers and limits are set by the caller before. */
void mrc_req_start(struct mrc_req *r, struct mrc_psn sq_psn, mrc_ns now);

/* One work request: MRC_OK, FULL, INVAL, ACCESS. */
int mrc_req_post(struct mrc_req *r, const struct mrc_req_ctx *c, const struct mrc_send_wr *wr);

/* Feedback. A result other than SUCCESS ends the QP. */
enum mrc_wc_status mrc_req_sack(struct mrc_req *r, const struct mrc_req_ctx *c,
                                const struct mrc_pkt *p);
enum mrc_wc_status mrc_req_nack(struct mrc_req *r, const struct mrc_req_ctx *c,
                                const struct mrc_pkt *p);
enum mrc_wc_status mrc_req_ack(struct mrc_req *r, const struct mrc_req_ctx *c,
                               const struct mrc_pkt *p);

mrc_ns mrc_req_deadline(const struct mrc_req *r);
enum mrc_wc_status mrc_req_tick(struct mrc_req *r, const struct mrc_req_ctx *c);
/* Everything in flight on this entry is lost: the I/O side could not send there. */
void mrc_req_ev_failed(struct mrc_req *r, const struct mrc_req_ctx *c, uint16_t ev);

/* Before a turn of up to max packets: room to remember them, if the pool has it. */
void mrc_req_widen(struct mrc_req *r, const struct mrc_req_ctx *c, size_t max);

/* One packet. */
enum mrc_req_block mrc_req_tx(struct mrc_req *r, const struct mrc_req_ctx *c,
                              struct mrc_tx_pkt *out);
/* Up to max more of the message that the packet out[-1] belongs to, which left just now, for the
 * first time: those that leave in any case. Zero says nothing. */
size_t mrc_req_tx_more(struct mrc_req *r, const struct mrc_req_ctx *c, struct mrc_tx_pkt *out,
                       size_t max);
/* Probe of an ASSUMED_BAD entry, with the id the path table gave. */
void mrc_req_path_probe(struct mrc_req *r, const struct mrc_req_ctx *c, uint16_t ev, uint16_t id,
                        struct mrc_tx_pkt *out);

/* The QP ends: every posted work request completes, the oldest with `cause`, the rest flushed. */
void mrc_req_flush(struct mrc_req *r, const struct mrc_req_ctx *c, enum mrc_wc_status cause);

/* ---- between the files ---- */

/* A slot in flight is lost (B.10): path, controller and retransmission list learn of it. */
void mrc_req_lose(struct mrc_req *r, const struct mrc_req_ctx *c, struct mrc_slot *s,
                  enum mrc_ev_reason why);
/* What a report says of packets that it does not show (B.10). */
struct mrc_req_view {
    struct mrc_psn base;
    uint64_t bitmap;
    int top;       /* highest set bit, -1: none */
    bool complete; /* after it we know every arrival that the peer knew of */
    uint16_t ooo;  /* packets that the peer holds above cack */
};
/* Look for losses that the latest acknowledgements prove. */
void mrc_req_infer(struct mrc_req *r, const struct mrc_req_ctx *c, const struct mrc_req_view *v);
/* A probe that left at sent_ns was answered now: what left before it and is still missing is lost.
 */
void mrc_req_probe_answered(struct mrc_req *r, const struct mrc_req_ctx *c, mrc_ns sent_ns);
/* A NACK came: spend one retry, at most one per interval of the local ACK timer and per round trip
 * (B.9). RETRY_EXC_ERR when the budget is gone. */
enum mrc_wc_status mrc_req_nack_retry(struct mrc_req *r, mrc_ns now, mrc_ns round_trip_ns);
/* The responder has no room for this packet; or packets have arrived. */
enum { MRC_ROOM_ALL = 1 << 16 }; /* more than any window */
void mrc_req_room_start(struct mrc_req *r);
void mrc_req_room_short(struct mrc_req *r, const struct mrc_req_ctx *c, struct mrc_psn psn);
void mrc_req_room_news(struct mrc_req *r, uint32_t packets);
/* Up to how far above unack something may leave. */
static inline int32_t mrc_req_reach(const struct mrc_req *r)
{
    return (int32_t)mrc_min32(mrc_min32(r->window, r->room), mrc_txtrack_room(&r->tx));
}
/* Mode rc: everything in flight from this PSN on leaves again. The first counts as lost. */
void mrc_req_go_back(struct mrc_req *r, const struct mrc_req_ctx *c, struct mrc_psn from);
/* Mode rc: a NACK that is news, of a packet not acknowledged. */
enum mrc_wc_status mrc_req_gbn_nack(struct mrc_req *r, const struct mrc_req_ctx *c,
                                    const struct mrc_pkt *p, const struct mrc_slot *s);
/* Packets that left once only were answered after so long; timers learn from it. */
void mrc_req_report_time(struct mrc_req *r, mrc_ns took_ns, uint32_t packets);
/* News: what was thought lost or in flight has arrived, so the retry counter starts anew (B.9). */
void mrc_req_progress(struct mrc_req *r, mrc_ns now);
/* Interval of the local ACK timer now (B.9). */
mrc_ns mrc_req_timeout_ns(const struct mrc_req *r);
/* Lend the room of what is in flight to the other QPs of the controller; and before anything
 * happens to it, take it back. */
void mrc_req_park(struct mrc_req *r, const struct mrc_req_ctx *c);
void mrc_req_unpark(struct mrc_req *r, const struct mrc_req_ctx *c);
/* After any sign of life: tail probe and transport ACK timers anew. */
void mrc_req_rearm(struct mrc_req *r, const struct mrc_req_ctx *c);

static inline struct mrc_psn mrc_wqe_last(const struct mrc_wqe *w)
{
    return mrc_psn_add(w->first, (int32_t)w->npkts - 1);
}
/* Is there a probe or a query to send, which leaves whatever the window says? */
static inline bool mrc_req_urgent(const struct mrc_req *r)
{
    return (r->probe_due | r->base_probe_due | r->ack_query_due) != 0;
}
/* Has wqe (free-running index) had its first packet cut? */
static inline bool mrc_req_begun(const struct mrc_req *r, uint32_t wqe)
{
    return (int32_t)(wqe - r->next) < 0 || (wqe == r->next && r->next_pkt > 0);
}

/* What waits and what is out (E.2); walks the queue. */
struct mrc_req_load {
    uint64_t backlog_bytes; /* payload that has not left a first time */
    uint64_t rtx_bytes;     /* nominal, of packets to send again */
};
struct mrc_req_load mrc_req_load(const struct mrc_req *r, uint32_t mtu);

#endif
