/* SPDX-License-Identifier: BSD-2-Clause */
/* Records that cross the core's border: packets in and out, work requests, completions,
 * attributes. */
#ifndef MRC_TYPES_H
#define MRC_TYPES_H

#include "mrc_base.h"
#include "mrc_wire.h"

/* One packet that arrived, from BTH to the end of the iCRC, with what the headers above said. */
struct mrc_rx_pkt {
    const uint8_t *bytes; /* BTH first; valid during mrc_engine_rx only */
    uint32_t len;         /* bytes present; for a trimmed packet less than udp_len - 8 */
    uint16_t udp_len;     /* the UDP length field */
    uint16_t sport;
    uint16_t dport;
    uint8_t tclass; /* inner DSCP and ECN */
    bool outer_ce;  /* the outer header was CE-marked (A.13.1) */
    uint32_t flow_label;
    uint8_t src[16]; /* inner addresses */
    uint8_t dst[16];
    uint8_t port; /* I/O port it came by */
};

/* One packet to send: hdr[0..hdr_len) | payload | tail[0..tail_len). The payload stays in the
 * memory region; it is valid until the next call of mrc_engine_tx or until the region goes. */
struct mrc_tx_pkt {
    const uint8_t *payload;
    uint32_t payload_len;
    uint32_t ev;
    uint32_t lane;
    uint8_t port;
    uint8_t tclass;   /* DSCP << 2 | ECN */
    uint8_t hdr_len;  /* BTH and extension headers */
    uint8_t tail_len; /* pad and iCRC: 4..7 */
    uint8_t train;    /* most packets that may leave as one message with this one; 0: no limit */
    uint8_t hdr[MRC_HDR_MAX];
    uint8_t tail[8];
};
static inline uint16_t mrc_tx_udp_len(const struct mrc_tx_pkt *p)
{
    return (uint16_t)(8u + p->hdr_len + p->payload_len + p->tail_len);
}

enum mrc_access { MRC_ACCESS_LOCAL_WRITE = 1, MRC_ACCESS_REMOTE_WRITE = 2 };

enum mrc_wr_opcode { MRC_WR_RDMA_WRITE = 0, MRC_WR_RDMA_WRITE_WITH_IMM = 1 };
enum { MRC_SEND_SIGNALED = 1, MRC_SEND_SOLICITED = 2 };

struct mrc_send_wr {
    uint64_t wr_id;
    uint64_t laddr; /* address inside the region of lkey */
    uint64_t raddr;
    uint32_t length; /* bytes, 0..2^31 */
    uint32_t lkey;
    uint32_t rkey;
    uint32_t imm;   /* host order; sent big-endian */
    uint8_t opcode; /* enum mrc_wr_opcode */
    uint8_t flags;
    uint8_t pad_[6];
};

enum mrc_wc_status {
    MRC_WC_SUCCESS = 0,
    MRC_WC_LOC_PROT_ERR = 1,
    MRC_WC_WR_FLUSH_ERR = 2,
    MRC_WC_RETRY_EXC_ERR = 3,
    MRC_WC_REM_INV_REQ_ERR = 4,
    MRC_WC_REM_ACCESS_ERR = 5,
    MRC_WC_REM_OP_ERR = 6,
    MRC_WC_LOC_QP_OP_ERR = 7,
};
enum mrc_wc_opcode { MRC_WC_RDMA_WRITE = 0, MRC_WC_RECV_RDMA_WITH_IMM = 1 };
enum { MRC_WC_WITH_IMM = 1, MRC_WC_SOLICITED = 2 };

struct mrc_wc { /* 32 bytes */
    uint64_t wr_id;
    uint32_t qpn;
    uint32_t byte_len;
    uint32_t imm;
    uint8_t status; /* enum mrc_wc_status */
    uint8_t opcode; /* enum mrc_wc_opcode */
    uint8_t flags;
    uint8_t pad_;
    uint64_t pad2_;
};

enum mrc_qp_state {
    MRC_QPS_RESET = 0,
    MRC_QPS_INIT = 1,
    MRC_QPS_RTR = 2,
    MRC_QPS_RTS = 3,
    MRC_QPS_ERR = 4
};

/* Sizes fixed when the QP is made. */
struct mrc_qp_init {
    uint32_t pd;
    uint32_t send_cq;
    uint32_t recv_cq;
    uint32_t sq_depth; /* power of two is not needed; rounded up */
    uint32_t rq_depth;
    uint16_t mpr_max;       /* units of 128 PSNs; largest value mpr and mpr_dest may take */
    uint16_t max_wimm_dest; /* WIMM stash size */
    uint16_t ev_max;        /* largest path table it may use */
};

enum { MRC_VENDOR_BYTES = 128 };
#define MRC_HINT_NONE 0xFFFFFFFFu

/* Mask bits of mrc_qp_modify and mrc_qp_query. */
enum {
    MRC_QP_STATE = 1 << 0,
    MRC_QP_ACCESS = 1 << 1,
    MRC_QP_AV = 1 << 2, /* src, dst, dport, dest_qpn, path_mtu */
    MRC_QP_RQ_PSN = 1 << 3,
    MRC_QP_SQ_PSN = 1 << 4,
    MRC_QP_PATH = 1 << 5, /* path table id */
    MRC_QP_CC = 1 << 6,   /* controller id */
    MRC_QP_MPR = 1 << 7,
    MRC_QP_MPR_DEST = 1 << 8,
    MRC_QP_WIMM = 1 << 9,
    MRC_QP_WIMM_DEST = 1 << 10,
    MRC_QP_TIMEOUT = 1 << 11,
    MRC_QP_RETRY = 1 << 12,
    MRC_QP_SACK = 1 << 13, /* sack_threshold */
    MRC_QP_TRAIN = 1 << 14,
    MRC_QP_CAP = 1 << 15,
    MRC_QP_RX_PAUSED = 1 << 18,
    MRC_QP_RX_PENALTY = 1 << 19,
    MRC_QP_TIMESTAMPS = 1 << 16,
    MRC_QP_RECOVERY = 1 << 17,
    MRC_QP_HINT = 1 << 20,    /* hint id, or MRC_HINT_NONE */
    MRC_QP_VENDOR = 1 << 21,  /* vendor: kept, without meaning here */
    MRC_QP_VERSION = 1 << 22, /* version */
    MRC_QP_MODE = 1 << 23,    /* mode: before RTR */
};
enum { MRC_QP_CAP_NO_TRIM_NACK = 1, MRC_QP_CAP_DYNAMIC_MPR = 2, MRC_QP_CAP_NO_SERVICE_TIME = 4 };

/* What to do when so much has arrived above a gap that the gap must be a loss (B.10, ADR 70). */
enum mrc_recovery {
    MRC_RECOVERY_GUARDED = 0, /* send again what is also later than normal on its own path */
    MRC_RECOVERY_OFF = 1,     /* leave it to the rules that know paths, and to the timers */
    MRC_RECOVERY_PLAIN = 2,   /* send again all that is missing: for fabrics of equal paths */
};

/* MRC; or, for comparison only, what it is compared with: one path, data taken in order only, and
 * all of it sent again from the first that is missing (ADR 95). Both ends have the same. */
enum mrc_qp_mode { MRC_MODE_MRC = 0, MRC_MODE_RC = 1 };

/* One row of the state table (C.3). from == to: attributes without a transition. Any state may go
 * to RESET or ERR, without attributes. */
struct mrc_qp_rule {
    uint8_t from;
    uint8_t to;
    uint32_t required; /* now or before */
    uint32_t optional; /* what is in neither is refused */
};

struct mrc_qp_attr {
    uint8_t state;      /* enum mrc_qp_state */
    uint8_t access;     /* enum mrc_access */
    uint8_t timeout;    /* 0..24: 1.024 us x 2^n (B.9) */
    uint8_t linear_cnt; /* 0..7 */
    uint8_t exp_cnt;    /* 0..25, 25 = forever */
    uint8_t train_max;  /* 0 = auto, else 1..MRC_TRAIN_MAX */
    uint16_t path_mtu;  /* 256, 512, 1024, 2048, 4096 */
    uint16_t mpr;       /* as requestor, units of 128: min(own, peer's) */
    uint16_t mpr_dest;  /* as responder */
    uint16_t max_wimm;
    uint16_t max_wimm_dest;
    uint16_t dport; /* peer's UDP port */
    uint16_t pad_;
    uint32_t dest_qpn;
    uint32_t sq_psn;
    uint32_t rq_psn;
    uint32_t path;
    uint32_t cc;
    uint32_t sack_threshold; /* bytes; 0 = 16384 (H7) */
    uint32_t cap;
    uint8_t src[16];    /* own inner address */
    uint8_t dst[16];    /* peer's inner address; packets from elsewhere, but for the path table's
                           addresses of planes, are dropped */
    uint8_t rx_paused;  /* 1: take no new data, the peer is to try again (NO_RESOURCE) */
    uint8_t rx_penalty; /* E.6: 0..127, at least that in every SACK; 0xFF: never any */
    uint8_t timestamps; /* 1: TSETH in every data packet (A.5): 4 bytes more, and every round trip
                           is known whichever copy was answered; default 0 */
    uint8_t recovery;   /* enum mrc_recovery */
    uint32_t hint;
    uint32_t version; /* one bit of MRC_WIRE_VERSIONS, or 0: ours to choose */
    uint8_t vendor[MRC_VENDOR_BYTES];
    uint8_t mode; /* enum mrc_qp_mode */
    uint8_t pad2_[3];
};

/* Per QP, ever growing unless said otherwise. */
struct mrc_qp_stats {
    uint64_t packets_sent; /* data, retransmissions included */
    uint64_t bytes_sent;   /* payload, retransmissions included */
    uint64_t packets_retransmitted;
    uint64_t bytes_acked; /* payload of completed work requests */
    uint64_t spurious_retransmits;
    uint64_t sacks_received;
    uint64_t nacks_received;
    uint64_t acks_received;
    uint64_t timeouts;
    uint64_t losses_inferred;
    uint64_t probes_sent;
    uint64_t ecn_marks;
    uint64_t packets_received; /* new data packets placed */
    uint64_t bytes_received;   /* payload of those */
    uint64_t duplicates_received;
    uint64_t ooo_received; /* arrived above a gap */
    uint64_t ce_received;
    uint64_t trims_received;
    uint64_t sacks_sent;
    uint64_t nacks_sent;
    uint64_t acks_sent;
    uint64_t cwnd_bytes;    /* now */
    int64_t inflight_bytes; /* now */
    uint32_t outstanding;   /* packets sent, not known received; now */
    uint32_t sq_used;       /* now */
    uint8_t state;          /* now */
    uint8_t error;          /* enum mrc_wc_status that ended it */
    uint8_t pad_[6];
};

/* ---- endpoint operations (F.1) ---- */

#define MRC_PLANES_ALL 0xFFFFFFFEu /* bit N = plane N; bit 0 is none (H19) */
#define MRC_EP_TIMEOUT_MAX_NS (60 * MRC_SEC)
enum {
    MRC_EP_DSCP_CONTROL = 0xFF, /* the control class, whatever its DSCP */
    MRC_EP_PROBES = 256,        /* EV probes of one engine, results not polled included */
    MRC_EP_ID_OWN = 0xF000,     /* request ids from here on are of the engine's own making (D.8) */
};

/* The node a path table leads to, and how it reaches us. */
struct mrc_ep_addr {
    uint8_t src[16]; /* own inner address */
    uint8_t dst[16];
    uint16_t dport;    /* the node's UDP port */
    uint16_t own_port; /* ours */
};

/* An EV probe (C.7). */
struct mrc_ep_req {
    mrc_ns timeout_ns; /* 1..MRC_EP_TIMEOUT_MAX_NS, from posting */
    uint32_t path;
    uint32_t ev;          /* of that table, in whatever state */
    uint16_t id;          /* not used again towards this node while an answer may be on its way */
    uint8_t dscp;         /* request class: 0..63, or MRC_EP_DSCP_CONTROL */
    uint8_t service_time; /* 1: that node has agreed to correct the timestamp it reflects (H11) */
    uint8_t port_status;  /* 1: no probe, but a port status update of the mask; C.7 */
    uint8_t pad_[3];
    uint32_t port_status_mask; /* bit N = plane N up */
    uint32_t pad2_;
};

/* What became of it. */
struct mrc_ep_rsp {
    mrc_ns rtt_ns; /* from the packet's sending to its answer; MRC_NEVER: no answer in time */
    uint32_t path;
    uint32_t ev;
    uint16_t id;
    uint8_t plane;    /* of the EV */
    uint8_t port;     /* plane the answer came by, 1..; 0: its EV does not say */
    uint8_t adjusted; /* 1: rtt_ns is without the time the node took to answer */
    uint8_t pad_[3];
};

/* Plane masks of one path table. */
struct mrc_ep_planes {
    uint32_t local_up;
    uint32_t remote_up; /* as the peer reported */
    uint32_t told;      /* what the peer has acknowledged of ours */
    uint32_t pending;   /* 1: it is being told something else */
};

/* ---- a controller and its QPs (E.2, E.5) ---- */

enum mrc_cc_state {
    MRC_CCS_IDLE = 0,    /* nothing to send, nothing in flight */
    MRC_CCS_PENDING = 1, /* nothing to send, something in flight */
    MRC_CCS_ACTIVE = 2,  /* something to send, and the window is closed */
    MRC_CCS_READY = 3,   /* something to send, and the window lets it */
};

/* Of one QPCC, now; sums are over its QPs. */
struct mrc_cc_info {
    uint64_t cwnd_bytes;    /* UINT64_MAX: no controller */
    uint64_t max_wnd_bytes; /* ceiling now */
    int64_t inflight_bytes; /* nominal sizes; may be slightly negative (E.1) */
    uint64_t backlog_bytes; /* payload posted that has not left a first time */
    uint64_t rtx_bytes;     /* nominal, waits to leave again */
    mrc_ns base_rtt_ns;     /* shortest round trip, or as configured */
    mrc_ns avg_delay_ns;    /* NSCC's mean of the queueing delay */
    uint32_t waiting_rtx;   /* packets that wait to leave again */
    uint32_t inflight_pkts; /* sent, neither known received nor lost */
    uint32_t qps;
    uint8_t state; /* enum mrc_cc_state */
    uint8_t kind;  /* enum mrc_cc_kind */
    uint8_t pad_[2];
};

/* ---- device, hints, asynchronous events (C.1, C.2, C.8) ---- */

#define MRC_API_VERSION 0x01000001u /* major << 24 | minor << 16 | subminor (C.8) */
enum {
    MRC_WIRE_VERSIONS = 1, /* bitmap; bit 0 = wire version 1 */
    MRC_WIMM_DEST_MAX = 1 << 14,
    MRC_WIMM_SRC_MAX = 0xFFFF,
    MRC_HINT_MAX = 1 << 16,
    MRC_POOL_KIB_MAX = 1 << 22,
    MRC_CQ_DEPTH_MAX = 1 << 22,
    MRC_SQ_DEPTH_MAX = 1 << 20,
    MRC_RQ_DEPTH_MAX = 1 << 20,
};
enum { MRC_DEV_TRIM_NACK = 1, MRC_DEV_DYNAMIC_MPR = 2, MRC_DEV_SERVICE_TIME = 4 };

struct mrc_device_attr {
    uint32_t api_version;
    uint32_t mrc_protocol_version; /* MRC_WIRE_VERSIONS */
    uint32_t max_qp_hint;
    uint32_t cap; /* MRC_DEV_* */
    uint16_t max_wimm;
    uint16_t max_wimm_dest;
    uint16_t max_mpr;        /* units of 128 PSNs */
    uint16_t mpr_resolution; /* same */
    uint32_t max_qp;
    uint32_t max_cq;
    uint32_t max_mr;
    uint32_t max_cqe;
    uint32_t max_qp_wr;
};

/* What an application says of the traffic to come; mask bits say which fields it said. */
enum {
    MRC_HINT_QPS_PER_PEER = 1 << 0,
    MRC_HINT_PEERS = 1 << 1,
    MRC_HINT_INCAST = 1 << 2,
};
#define MRC_HINT_VENDOR 0x80000000u
struct mrc_qp_hint {
    uint32_t mask;
    uint32_t qps_per_peer; /* QPs to one peer in use at the same time */
    uint32_t peers;        /* peers this side sends to at once */
    uint32_t incast;       /* remote QPs that target the same receiver as ours */
    uint8_t vendor[MRC_VENDOR_BYTES];
};

enum mrc_async_type {
    MRC_ASYNC_CQ_ERR = 0,      /* id: CQ, which overran */
    MRC_ASYNC_QP_FATAL = 1,    /* id: QPN; status: why it went to ERR */
    MRC_ASYNC_QP_LAST_WQE = 2, /* id: QPN in ERR: its last completion is in its CQs */
    MRC_ASYNC_COMM_EST = 3,    /* id: QPN in RTR got its first packet */
    MRC_ASYNC_PORT_ACTIVE = 4, /* plane came up here */
    MRC_ASYNC_PORT_ERR = 5,
    MRC_ASYNC_PEER_PORT_ACTIVE = 6, /* id: path table; plane, as its peer reported */
    MRC_ASYNC_PEER_PORT_ERR = 7,
    MRC_ASYNC_PATHS_BAD = 8, /* id: path table of which no path is known to work */
    MRC_ASYNC_PATHS_OK = 9,
};
struct mrc_async_event {
    mrc_ns time;
    uint32_t id;
    uint32_t drop_count; /* events lost just before this one */
    uint8_t type;        /* enum mrc_async_type */
    uint8_t status;      /* enum mrc_wc_status */
    uint8_t plane;
    uint8_t pad_[5];
};

#endif
