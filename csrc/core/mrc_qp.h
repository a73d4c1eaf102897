/* SPDX-License-Identifier: BSD-2-Clause */
/* The queue pair: states and attributes (MRC C.3), one requester, one responder. Dispatches packets
 * and time to the two roles and turns a fatal verdict of either into state ERR with all work
 * flushed. Knows nothing of other QPs.
 *
 *   mrc_qp.c        creation, packets, time, work, the end
 *   mrc_qp_attr.c   the state table, attributes, transitions */
#ifndef MRC_QP_H
#define MRC_QP_H

#include "mrc_heap.h"
#include "mrc_list.h"
#include "mrc_req.h"
#include "mrc_resp.h"

/* Why attributes were refused. */
enum mrc_qp_why {
    MRC_QP_WHY_NONE,
    MRC_QP_WHY_RANGE,
    MRC_QP_WHY_NOENT,   /* the id stands for nothing */
    MRC_QP_WHY_MISSING, /* the transition needs it */
    MRC_QP_WHY_PLACE,   /* the state or transition does not take it */
    MRC_QP_WHY_FIXED,   /* B.12: the window, without dynamic MPR */
    MRC_QP_WHY_QUEUED,  /* B.8: max_wimm 0 under a queued immediate */
    MRC_QP_WHY_OVERRUN, /* its completion queue takes nothing */
    MRC_QP_WHY_ONE_PATH,
};

struct mrc_qp {
    struct mrc_env *env;
    struct mrc_path_table *path;    /* set with MRC_QP_PATH */
    struct mrc_cc *cc;              /* set with MRC_QP_CC */
    const struct mrc_qp_hint *hint; /* set with MRC_QP_HINT; NULL: none */
    struct mrc_peer peer;
    struct mrc_qp_init init;
    struct mrc_qp_attr attr;
    uint32_t set; /* MRC_QP_* given since RESET */
    struct mrc_qp_stats stats;
    struct mrc_req req;
    struct mrc_resp resp;
    /* The engine's threads through its QPs. */
    struct mrc_heap_node timer;
    struct mrc_link control;   /* has control packets due */
    struct mrc_link data;      /* may have data to send; in a list of its controller */
    struct mrc_link path_link; /* users of the path table */
    struct mrc_link cc_link;   /* users of the controller */
    mrc_ns retry_path_at;      /* no usable EV: look again then; MRC_NEVER */
    struct mrc_link urgent;    /* has a probe or query due */
    uint8_t turn_left;         /* packets left of a turn that was broken off; 0: a new turn */
    bool again;                /* `data` is in the list of those that send again */
    uint8_t refused_why;       /* enum mrc_qp_why: of the last mrc_qp_apply, ... */
    uint32_t refused;          /* ... and which attributes, MRC_QP_* */
};

size_t mrc_qp_bytes(const struct mrc_qp_init *init); /* 0: out of range */
struct mrc_qp *mrc_qp_init_at(void *mem, struct mrc_env *env, const struct mrc_qp_init *init,
                              uint32_t qpn, uint64_t seed);

/* What the ids in the attributes stand for. NULL: not in the mask, no such object, or no hint. */
struct mrc_qp_refs {
    struct mrc_path_table *path;
    struct mrc_cc *cc;
    const struct mrc_qp_hint *hint;
};
/* Check and apply attributes. */
int mrc_qp_apply(struct mrc_qp *q, const struct mrc_qp_attr *a, uint32_t mask,
                 const struct mrc_qp_refs *refs, mrc_ns now);
/* What the mask names, the state excepted; the rest of *to stays. */
void mrc_qp_copy_attr(struct mrc_qp_attr *to, const struct mrc_qp_attr *a, uint32_t mask);
/* Enter ERR: everything posted completes, the oldest send with `cause`. */
void mrc_qp_fail(struct mrc_qp *q, enum mrc_wc_status cause, mrc_ns now);
/* The same in silence: its owner knows, for it resets or destroys the QP. */
void mrc_qp_flush(struct mrc_qp *q, enum mrc_wc_status cause, mrc_ns now);

/* A packet for this QP whose iCRC is right. trimmed: class TRIMMED or TRIMMED_LASTHOP. */
void mrc_qp_rx(struct mrc_qp *q, const struct mrc_pkt *p, uint32_t ev, bool ce, mrc_ns now);
/* Short cut, see mrc_resp_middle: nothing but what is due and received changes. */
bool mrc_qp_rx_middle(struct mrc_qp *q, const struct mrc_pkt *p, uint32_t ev, mrc_ns now);
void mrc_qp_rx_trimmed(struct mrc_qp *q, const struct mrc_pkt *p, uint32_t ev, bool lasthop,
                       mrc_ns now);
/* A packet for this QP, of its peer, whose iCRC is wrong (H29). */
void mrc_qp_rx_broken(struct mrc_qp *q, const struct mrc_pkt *p, uint32_t ev, mrc_ns now);
void mrc_qp_tick(struct mrc_qp *q, mrc_ns now);
mrc_ns mrc_qp_deadline(const struct mrc_qp *q);

bool mrc_qp_control_due(const struct mrc_qp *q);
/* Up to max of those, as far as a path can carry them; how many. */
size_t mrc_qp_tx_control(struct mrc_qp *q, struct mrc_tx_pkt *out, size_t max, mrc_ns now);
/* Up to max packets; *sent: how many. SENT: all of them, else why not. */
enum mrc_req_block mrc_qp_tx_data(struct mrc_qp *q, struct mrc_tx_pkt *out, size_t max, mrc_ns now,
                                  size_t *sent);
void mrc_qp_tx_probe(struct mrc_qp *q, uint16_t entry, uint16_t id, struct mrc_tx_pkt *out,
                     mrc_ns now);
void mrc_qp_lane_failed(struct mrc_qp *q, uint16_t entry, mrc_ns now);

int mrc_qp_send(struct mrc_qp *q, const struct mrc_send_wr *wr, int n);
int mrc_qp_recv(struct mrc_qp *q, const uint64_t *wr_id, int n);
void mrc_qp_read_stats(const struct mrc_qp *q, struct mrc_qp_stats *out);

#endif
