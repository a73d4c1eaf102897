/* SPDX-License-Identifier: BSD-2-Clause */
/* The engine: QPs, regions, completion queues, path tables and controllers behind three doors.
 *
 *   rx    packets in          marks what became due
 *   tick  time passes         ages
 *   tx    packets out         emits
 *
 * No door calls another. No system call, no clock, no allocation: every object lives in memory that
 * the caller gives and takes back. One thread at a time. */
#ifndef MRC_ENGINE_H
#define MRC_ENGINE_H

#include "mrc_cc.h"
#include "mrc_path.h"
#include "mrc_trace.h"
#include "mrc_types.h"

struct mrc_engine_cfg {
    uint64_t seed;
    uint32_t qp_max; /* QPs at the same time; 1..65536 */
    uint32_t mr_max;
    uint32_t cq_max;
    uint32_t path_max;
    uint32_t cc_max;
    uint8_t dscp_data;            /* class TRIMMABLE; default 0 (A.13.5) */
    uint8_t dscp_retx;            /* class TRIMMABLE_RETX; default = dscp_data */
    uint8_t dscp_control;         /* default 46 */
    uint8_t dscp_trimmed;         /* default 12; 0 = trimming unknown here */
    uint8_t dscp_trimmed_lasthop; /* default 16 */
    uint8_t se_bit7;              /* 1: solicited event in bit 7 of BTH byte 1 (H2) */
    /* What the receive side may hold for all QPs together; beyond it packets are refused with a
     * NACK and come again (B.3). 0: as much as the windows allow. */
    uint32_t ooo_max;          /* PSNs that arrived above a gap: NO_BITMAP */
    uint32_t imm_max;          /* immediates that wait for earlier data: NO_PKT_BUFFER */
    uint8_t penalty_percent;   /* 0..99: share of a receive budget in use from which senders are
                                  slowed (E.6); 0: never */
    uint8_t icrc_skip_percent; /* 0..99: share of broken packets above which the peer is told to
                                  leave that EV (H29); 0: never */
    uint8_t service_time;      /* 1: reflected timestamps are moved by our dwell time (H11) */
    uint8_t dscp_no_trim;      /* data to peers that do not answer trimmed packets; default 0 */
    uint8_t dscp_exact;        /* 1: a DSCP of 0 is meant, and stands for no default */
    uint8_t pad2_[3];
    uint32_t hint_max;    /* QP hint objects; may be 0 */
    uint32_t api_version; /* the caller's MRC_API_VERSION; newer than ours is refused (C.8) */
    uint32_t pool_kib;  /* what QPs borrow while they are busy, so much to send and so much again to
                           receive (ADR 124, 129), at most MRC_POOL_KIB_MAX; 0: as much as 64 QPs
                           with 2048 packets each in flight want, less for few */
    uint8_t mem_zeroed; /* 1: the memory given is zeroed, and is not touched before it is needed */
};

struct mrc_engine;

size_t mrc_engine_size(const struct mrc_engine_cfg *cfg); /* 0: out of range */
struct mrc_engine *mrc_engine_init(void *mem, const struct mrc_engine_cfg *cfg, mrc_ns now);

/* ---- the three doors ---- */
/* True: some were for queue pairs of ours, from their peers. */
bool mrc_engine_rx(struct mrc_engine *e, const struct mrc_rx_pkt *pkts, size_t n, mrc_ns now);
void mrc_engine_tick(struct mrc_engine *e, mrc_ns now);
/* Up to max packets. Consecutive packets of equal lane, tclass and length form a train; only the
 * last of a train may be shorter. Returns how many; fewer than max: nothing more to send now. */
size_t mrc_engine_tx(struct mrc_engine *e, struct mrc_tx_pkt *out, size_t max, mrc_ns now);
/* When tick is needed next. In the past never after a tick. */
mrc_ns mrc_engine_deadline(const struct mrc_engine *e);
/* The I/O side could not send on this entry, for ENETUNREACH and the like (MRC_EV_R_SEND_ERROR), or
 * because the packet is longer than the path takes (MRC_EV_R_MTU): treat it as loss at once. */
void mrc_engine_lane_failed(struct mrc_engine *e, uint8_t port, uint32_t lane,
                            enum mrc_ev_reason why, mrc_ns now);

/* ---- objects; ids are small integers, negative returns are enum mrc_err ---- */
/* key: 32 random bits from the caller; the low bits are replaced by the table index. */
int mrc_mr_register(struct mrc_engine *e, uint32_t pd, void *addr, uint64_t len, uint8_t access,
                    uint32_t key, uint32_t *rkey);
/* The same, with addresses that begin at va instead of where the memory lies: what work requests
 * and packets then say of it depends on the caller alone. */
int mrc_mr_register_at(struct mrc_engine *e, uint32_t pd, void *addr, uint64_t va, uint64_t len,
                       uint8_t access, uint32_t key, uint32_t *rkey);
/* BUSY while a work request refers to it. */
int mrc_mr_deregister(struct mrc_engine *e, uint32_t rkey);

size_t mrc_cq_size(uint32_t depth);
int mrc_cq_create(struct mrc_engine *e, void *mem, uint32_t depth);
/* Gives the memory back. NULL while a QP completes there or events are not acknowledged. */
void *mrc_cq_destroy(struct mrc_engine *e, uint32_t cq);
int mrc_cq_poll(struct mrc_engine *e, uint32_t cq, struct mrc_wc *out, int max);
/* Completion events (C.1), as mrc_cq.h explains. A channel is a number, above 0. */
int mrc_cq_set_channel(struct mrc_engine *e, uint32_t cq, uint32_t channel);
int mrc_cq_arm(struct mrc_engine *e, uint32_t cq, bool solicited_only);
int mrc_cq_next_event(struct mrc_engine *e, uint32_t channel); /* -> cq, or NOENT */
bool mrc_cq_has_event(const struct mrc_engine *e, uint32_t channel);
int mrc_cq_ack_events(struct mrc_engine *e, uint32_t cq, uint32_t n);
/* Any CQ with entries waiting, or an overrun? */
bool mrc_cq_any(const struct mrc_engine *e);
uint32_t mrc_cq_pushed(const struct mrc_engine *e); /* completions ever, of all queues */
bool mrc_cq_overrun(const struct mrc_engine *e, uint32_t cq);

int mrc_path_attach(struct mrc_engine *e, struct mrc_path_table *t);         /* -> path id */
struct mrc_path_table *mrc_path_get(struct mrc_engine *e, uint32_t path);    /* NULL: no such */
struct mrc_path_table *mrc_path_detach(struct mrc_engine *e, uint32_t path); /* NULL when BUSY */
bool mrc_path_used(struct mrc_engine *e, uint32_t path);                     /* by a QP */

/* Endpoint operations (F.1). A table takes part once it is known where it leads: that node's
 * requests are answered, and a plane it reports down is down for all tables that lead to it. */
int mrc_path_lead(struct mrc_engine *e, uint32_t path, const struct mrc_ep_addr *to);
/* Plane masks, bit N = plane N up (D.7). The node is told of the local one until it has said that
 * it knows. */
int mrc_path_planes_set(struct mrc_engine *e, uint32_t path, uint32_t local_up, uint32_t remote_up);
int mrc_path_planes(const struct mrc_engine *e, uint32_t path, struct mrc_ep_planes *out);
/* EV probes: how many were accepted, or why the first was not (mrc_ep.h). Each gives one result. */
int mrc_engine_ep_post(struct mrc_engine *e, const struct mrc_ep_req *req, int n, mrc_ns now);
int mrc_engine_ep_poll(struct mrc_engine *e, struct mrc_ep_rsp *out, int max); /* -> count */
bool mrc_engine_ep_any(const struct mrc_engine *e); /* results are waiting */

int mrc_cc_attach(struct mrc_engine *e, struct mrc_cc *cc);      /* -> cc id */
struct mrc_cc *mrc_cc_detach(struct mrc_engine *e, uint32_t cc); /* NULL when BUSY */
/* NOENT: no such controller. Looks at every work request and lost packet: not for each packet. */
int mrc_cc_query(const struct mrc_engine *e, uint32_t cc, struct mrc_cc_info *out);

size_t mrc_qp_size(const struct mrc_qp_init *init); /* 0: out of range */
int mrc_qp_create(struct mrc_engine *e, void *mem, const struct mrc_qp_init *init); /* -> QPN */
/* MRC_OK. To RESET: the QP's new number, which is positive; it goes by the old one no more, so that
 * packets of its former life find nobody. STATE, INVAL, NOENT: nothing was changed. */
int mrc_qp_modify(struct mrc_engine *e, uint32_t qpn, const struct mrc_qp_attr *attr, uint32_t mask,
                  mrc_ns now);
/* What the last mrc_qp_modify of this QP refused (qpn 0: mrc_qp_create), with that result, in
 * words: "rx_penalty: out of range". Returns the length; 0: nothing to say. */
size_t mrc_qp_refusal(const struct mrc_engine *e, uint32_t qpn, int err, char *out, size_t size);
/* What the mask names, the rest zero; in every state. */
int mrc_qp_query(const struct mrc_engine *e, uint32_t qpn, struct mrc_qp_attr *attr, uint32_t mask);
const struct mrc_qp_rule *mrc_qp_rule(uint32_t i); /* rows of C.3; NULL after the last */
/* Flushes what is outstanding into the CQs, then forgets the QP; gives the memory back. */
void *mrc_qp_destroy(struct mrc_engine *e, uint32_t qpn);
/* -> how many were accepted */
int mrc_qp_post_send(struct mrc_engine *e, uint32_t qpn, const struct mrc_send_wr *wr, int n);
int mrc_qp_post_recv(struct mrc_engine *e, uint32_t qpn, const uint64_t *wr_id, int n);
int mrc_qp_stats(const struct mrc_engine *e, uint32_t qpn, struct mrc_qp_stats *out);

/* The application takes nothing new for now, on any QP: data is refused with NO_RESOURCE and comes
 * again, as long as the peer's retries last. One QP alone: MRC_QP_RX_PAUSED. */
void mrc_engine_rx_pause(struct mrc_engine *e, bool paused);
/* Once per turn of the I/O side: did it leave packets waiting? Counts as pressure (E.6). */
void mrc_engine_rx_backlog(struct mrc_engine *e, bool more);
/* ---- device, hints, asynchronous events ---- */

void mrc_device_query(struct mrc_device_attr *out);                             /* of this build */
void mrc_engine_query(const struct mrc_engine *e, struct mrc_device_attr *out); /* as configured */

int mrc_hint_create(struct mrc_engine *e, const struct mrc_qp_hint *hint); /* -> id; INVAL, FULL */
int mrc_hint_query(const struct mrc_engine *e, uint32_t id, struct mrc_qp_hint *out);
/* What hint->mask names. QPs that have not begun to send heed it. */
int mrc_hint_modify(struct mrc_engine *e, uint32_t id, const struct mrc_qp_hint *hint);
int mrc_hint_destroy(struct mrc_engine *e, uint32_t id); /* BUSY while a QP has it */

int mrc_engine_async_take(struct mrc_engine *e, struct mrc_async_event *out); /* 1, or 0: none */
int mrc_engine_async_ack(struct mrc_engine *e, uint32_t n);
bool mrc_engine_async_any(const struct mrc_engine *e);
uint32_t mrc_engine_async_pushed(const struct mrc_engine *e); /* ever */
/* Bit N: plane N is up here. Tells applications, not path tables. */
void mrc_engine_ports(struct mrc_engine *e, uint32_t up);

uint64_t mrc_engine_drops(const struct mrc_engine *e, enum mrc_drop d);
/* Is there a packet to send right now (ignoring timers)? */
bool mrc_engine_tx_pending(const struct mrc_engine *e);

#endif
