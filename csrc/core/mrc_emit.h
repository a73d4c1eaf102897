/* SPDX-License-Identifier: BSD-2-Clause */
/* What the roles of a QP share: the tables, the classes, the peer's address; and the last step of
 * every packet: header bytes, pad, iCRC. */
#ifndef MRC_EMIT_H
#define MRC_EMIT_H

#include "mrc_async.h"
#include "mrc_cq.h"
#include "mrc_icrc.h"
#include "mrc_mr.h"
#include "mrc_path.h"
#include "mrc_pool.h"
#include "mrc_rxload.h"
#include "mrc_trace.h"

/* One per engine. */
struct mrc_env {
    struct mrc_mr_table mrs;
    struct mrc_cq_table cqs;
    mrc_crc32_fn crc;
    uint8_t tclass_data; /* DSCP and ECN as they go on the wire (A.13.5) */
    uint8_t tclass_retx;
    uint8_t tclass_control;
    uint8_t dscp_trimmed; /* 0: off */
    uint8_t dscp_trimmed_lasthop;
    bool se_bit7;
    uint64_t drops[MRC_DROP_COUNT];
    struct mrc_rxload rx;
    uint8_t
        icrc_skip_percent; /* broken packets of one EV that make it one to avoid (H29); 0: off */
    bool service_time;     /* reflected timestamps are moved by our dwell time (H11) */
    uint8_t tclass_no_trim;
    struct mrc_async async;
    struct mrc_pool pool;    /* of what QPs need only while they are busy: to send, ... */
    struct mrc_pool rx_pool; /* ... and to receive. Apart, for what is received others decide */
};

/* One per QP: where its packets go, unless their plane has addresses of its own. */
struct mrc_peer {
    uint8_t src[16];
    uint8_t dst[16];
    uint16_t dport;
    uint16_t path_mtu;
    uint32_t qpn;      /* own */
    uint32_t dest_qpn; /* peer's */
};

/* The clock of timestamps: 128 ns, 16 bits (B.1). */
static inline uint16_t mrc_timestamp(mrc_ns now) { return (uint16_t)(now >> 7); }

/* A timestamp as it goes back: moved on by the time since `arrived` when we correct for it, so that
 * the asker's round trip is the network's (H11). */
static inline uint16_t mrc_env_reflect(const struct mrc_env *env, uint16_t timestamp,
                                       uint16_t arrived, mrc_ns now)
{
    const uint16_t dwell = (uint16_t)(mrc_timestamp(now) - arrived);
    return env->service_time ? (uint16_t)(timestamp + dwell) : timestamp;
}

/* Class of a data packet (A.13.5): NO_TRIM for a peer that does not answer trimmed ones (B.7). */
static inline uint8_t mrc_env_tclass(const struct mrc_env *env, bool no_trim, bool rtx)
{
    return no_trim ? env->tclass_no_trim : rtx ? env->tclass_retx : env->tclass_data;
}

/* Classes differ on the wire: a retransmission may then overtake in a queue of its own (B.10). */
static inline uint8_t mrc_env_retx_class(const struct mrc_env *env, bool no_trim)
{
    return mrc_env_tclass(env, no_trim, false) == mrc_env_tclass(env, no_trim, true) ? 0 : 1;
}

/* BTH to ImmDt of a Write packet (A.1). */
static inline uint32_t mrc_data_hdr_len(uint8_t opcode, bool tseth)
{
    const bool imm = (mrc_opcode_flags(opcode) & MRC_OPF_IMM) != 0;
    return 32u + (tseth ? 4u : 0u) + (imm ? 4u : 0u);
}

/* Nominal size of a data packet with this payload (E.1): UDP length + 40. */
static inline uint32_t mrc_nominal_bytes(uint32_t hdr_len, uint32_t payload_len)
{
    return 8u + hdr_len + ((payload_len + 3u) & ~3u) + MRC_ICRC_LEN + MRC_NOMINAL_HDR;
}

/* Finish a packet: fills every field of out. pkt->pad is set here. */
void mrc_emit(const struct mrc_env *env, const struct mrc_peer *peer,
              const struct mrc_path_entry_cfg *entry, uint8_t tclass, struct mrc_pkt *pkt,
              struct mrc_tx_pkt *out);

/* The same in two steps, for a packet in the middle of a message: *out is a copy of one before it
 * of the same size, a full one, and its payload is set. By this entry: the iCRC begins so for all
 * of that size. */
uint32_t mrc_emit_by(const struct mrc_env *env, const struct mrc_peer *peer,
                     const struct mrc_path_entry_cfg *entry, struct mrc_tx_pkt *out);
void mrc_emit_middle(const struct mrc_env *env, uint32_t reg, uint32_t psn, bool a, uint64_t va,
                     struct mrc_tx_pkt *out);

#endif
