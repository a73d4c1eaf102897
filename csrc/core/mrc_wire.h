/* SPDX-License-Identifier: BSD-2-Clause */
/* Packet bytes from BTH to iCRC, decoded and encoded (MRC A.3 to A.11). Knows bytes, not QPs. */
#ifndef MRC_WIRE_H
#define MRC_WIRE_H

#include "mrc_base.h"

/* Opcodes (A.3). */
enum mrc_opcode {
    MRC_OP_WRITE_FIRST = 0xC6,
    MRC_OP_WRITE_MIDDLE = 0xC7,
    MRC_OP_WRITE_LAST = 0xC8,
    MRC_OP_WRITE_LAST_IMM = 0xC9,
    MRC_OP_WRITE_ONLY = 0xCA,
    MRC_OP_WRITE_ONLY_IMM = 0xCB,
    MRC_OP_ACK = 0xD1,
    MRC_OP_EP_REQUEST = 0xD8,
    MRC_OP_EP_RESPONSE = 0xD9,
    MRC_OP_SACK = 0xDC,
    MRC_OP_NACK = 0xDD,
    MRC_OP_PROBE = 0xDE,
};

/* Opcode flags, from the table in mrc_wire.c. */
enum {
    MRC_OPF_KNOWN = 1,
    MRC_OPF_DATA = 2,  /* METH + RETH, consumes a PSN */
    MRC_OPF_FIRST = 4, /* first or only */
    MRC_OPF_LAST = 8,  /* last or only */
    MRC_OPF_IMM = 16,
};
uint8_t mrc_opcode_flags(uint8_t opcode);

/* NACK reasons (A.9). */
enum mrc_nack_reason {
    MRC_NACK_TRIMMED = 0x01,
    MRC_NACK_TRIMMED_LASTHOP = 0x02,
    MRC_NACK_NO_BITMAP = 0x06,
    MRC_NACK_NO_PKT_BUFFER = 0x07,
    MRC_NACK_NO_RESOURCE = 0x0A,
    MRC_NACK_PSN_OOR_WINDOW = 0x0B,
    MRC_NACK_UNEXP_EVENT = 0x19,
};

/* Syndromes of a transport ACK (A.6). */
enum mrc_aeth {
    MRC_AETH_ACK = 0x1F,
    MRC_AETH_NAK_PSN_SEQ = 0x60,
    MRC_AETH_NAK_INVALID_REQUEST = 0x61,
    MRC_AETH_NAK_REMOTE_ACCESS = 0x62,
    MRC_AETH_NAK_REMOTE_OPERATION = 0x63,
};

enum mrc_sack_mark { MRC_MARK_NONE = 0, MRC_MARK_SKIP = 1, MRC_MARK_ALWAYS_SKIP = 2 };
enum { MRC_EP_OP_PORT_STATUS = 0, MRC_EP_OP_EV_PROBE = 1 };

enum {
    MRC_BTH_LEN = 12,
    MRC_HDR_MAX = 48, /* BTH + largest extension headers, A.1 */
    MRC_ICRC_LEN = 4,
    MRC_QPN_EP = 2,      /* destination QP of endpoint operations; QPNs 0..2 are never handed out */
    MRC_UDP_PORT = 4791, /* H1 */
    MRC_NOMINAL_HDR = 40, /* nominal size = UDP length + 40 (E.1) */
};

/* One packet, decoded. Fields of headers that the opcode does not have are zero. */
struct mrc_pkt {
    uint8_t opcode;
    uint8_t pad;      /* bytes after the payload, 0..3 */
    bool se;          /* solicited event (either bit on receive, H2) */
    bool m_bit;       /* BTH bit 8; always sent 0 */
    bool a;           /* acknowledge request */
    bool rtx;         /* retransmission; in a SACK: echo */
    bool ts;          /* TSETH present */
    bool icrc_absent; /* trimmed: no iCRC, payload is what was left */
    uint8_t tver;
    uint8_t var_res;
    uint8_t inv_res; /* 4 bits */
    uint16_t p_key;
    uint32_t dqp; /* 24 bits */
    uint32_t psn; /* 24 bits */
    /* METH */
    uint16_t rqmsn;
    uint16_t msn;
    /* TSETH; probes and endpoint requests carry the same three */
    uint16_t tx_timestamp; /* 128 ns; also CC_STATE, NETH, EETH: reflected */
    bool tsr;
    uint8_t ftype;
    /* RETH, ImmDt */
    uint64_t va;
    uint32_t r_key;
    uint32_t dmalen;
    uint32_t imm;
    /* AETH */
    uint8_t syndrome;
    uint32_t aeth_msn; /* 24 bits */
    /* SETH, NETH, PETH */
    uint8_t mark;      /* SETH.m, enum mrc_sack_mark */
    bool pr;           /* SETH.pr */
    uint16_t probe_id; /* PETH, or SETH with pr=1 */
    int16_t ack_psn_offset;
    uint32_t entropy;
    uint16_t spdcid;
    uint16_t dpdcid;
    uint32_t cack_psn; /* SETH.cack_psn or NETH.nack_psn, 24 bits */
    uint8_t cc_type;
    uint8_t cc_fl;
    uint8_t mpr;
    int16_t sack_offset;
    uint64_t sack_bitmap;
    uint8_t nack_reason;
    uint8_t vendor_info;
    /* CC_STATE */
    uint16_t ooo_count; /* 15 bits */
    bool restore_cwnd;
    uint8_t rcv_cwnd_pen; /* 7 bits */
    uint32_t rcvd_bytes;  /* 24 bits, 256-byte units */
    /* ERTH, EETH */
    uint8_t ep_op;
    uint32_t port_status_mask;
    /* Data */
    const uint8_t *payload; /* points into the caller's bytes; NULL when encoding headers only */
    uint32_t payload_len;   /* without pad */
};

/* Why bytes are not a packet. 0 is success; values continue enum mrc_drop in mrc_trace.h. */
enum mrc_wire_err {
    MRC_WIRE_OK = 0,
    MRC_WIRE_SHORT,  /* headers do not fit the bytes */
    MRC_WIRE_TVER,   /* transport version not 0 */
    MRC_WIRE_OPCODE, /* unknown opcode */
    MRC_WIRE_LENGTH, /* pad exceeds payload, or bytes after a header-only packet */
};

/* Decode `len` bytes from BTH to the end of the iCRC. `trimmed`: there is no iCRC and the payload
 * was cut; data packets need BTH and METH (and TSETH when ts=1) only, RETH if it is there (A.13.6).
 * Does not check the iCRC. Total function: any bytes give a verdict, nothing is read beyond len. */
enum mrc_wire_err mrc_wire_decode(struct mrc_pkt *out, const uint8_t *bytes, size_t len,
                                  bool trimmed);

/* Encode BTH and extension headers of in->opcode into out; returns their length (<= MRC_HDR_MAX).
 * The opcode must be known (asserted). pad is taken from in->pad. */
size_t mrc_wire_encode(uint8_t out[MRC_HDR_MAX], const struct mrc_pkt *in);

/* The header of a packet of a Write, made into that of a later one in the middle of the same
 * message: in nothing else do they differ. */
static inline void mrc_wire_middle(uint8_t hdr[MRC_HDR_MAX], uint32_t psn, bool a, uint64_t va)
{
    const size_t reth = MRC_BTH_LEN + 4 + ((hdr[8] & 0x10) != 0 ? 4 : 0); /* METH, TSETH (A.1) */
    hdr[0] = MRC_OP_WRITE_MIDDLE;
    mrc_put32(hdr + 8, (uint32_t)(hdr[8] & 0x7F) << 24 | (uint32_t)a << 31 | psn);
    mrc_put64(hdr + reth, va);
}

/* Is this such a header: that of a packet in the middle of the message that `before` belongs to, of
 * the same length and, but for PSN, address, AR and timestamp, the same? *p is decoded from
 * `before`, which has no immediate. */
static inline bool mrc_wire_follows(const struct mrc_pkt *p, const uint8_t *before,
                                    const uint8_t *bytes)
{
    const size_t reth = (size_t)(p->payload - before) - 16; /* the last of the headers */
    return bytes[0] == MRC_OP_WRITE_MIDDLE && memcmp(before + 1, bytes + 1, 4) == 0 &&
           memcmp(before + 4, bytes + 4, 4) == 0 && ((before[8] ^ bytes[8]) & 0x7F) == 0 &&
           memcmp(before + MRC_BTH_LEN, bytes + MRC_BTH_LEN, 4) == 0 &&
           (!p->ts || memcmp(before + reth - 2, bytes + reth - 2, 2) == 0) &&
           memcmp(before + reth + 8, bytes + reth + 8, 8) == 0;
}

/* Then *p is made what decoding `bytes` gives. */
static inline void mrc_wire_follow(struct mrc_pkt *p, const uint8_t *before, const uint8_t *bytes)
{
    const size_t len = (size_t)(p->payload - before);
    const size_t reth = len - 16;
    const uint32_t a_psn = mrc_get32(bytes + 8);
    if (p->ts)
        p->tx_timestamp = mrc_get16(bytes + reth - 4);
    p->opcode = MRC_OP_WRITE_MIDDLE;
    p->a = a_psn >> 31 != 0;
    p->psn = a_psn & 0xFFFFFF;
    p->va = mrc_get64(bytes + reth);
    p->payload = bytes + len;
}

/* Entropy from the fields that carry it (A.12): flow label low 16 bits, UDP source port. */
static inline uint32_t mrc_wire_ev(uint32_t flow_label, uint16_t sport)
{
    return ((flow_label & 0xFFFF) << 16) | sport;
}

#endif
