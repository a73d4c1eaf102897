/* SPDX-License-Identifier: BSD-2-Clause */
#include "mrc_wire.h"

/* Layout of the bytes that follow the BTH, A.1. */
enum wire_kind {
    WIRE_UNKNOWN = 0,
    WIRE_WRITE,     /* METH, [TSETH], RETH */
    WIRE_WRITE_IMM, /* METH, [TSETH], RETH, ImmDt */
    WIRE_ACK,       /* AETH */
    WIRE_EP_REQ,    /* ERTH */
    WIRE_EP_RSP,    /* EETH */
    WIRE_SACK,      /* SETH, CC_STATE */
    WIRE_NACK,      /* NETH */
    WIRE_PROBE,     /* PETH */
};

enum {
    WIRE_METH_LEN = 4,
    WIRE_TSETH_LEN = 4,
    WIRE_RETH_LEN = 16,
    WIRE_IMM_LEN = 4,
    WIRE_SETH_LEN = 28,
    WIRE_PREFIX = 0xC0, /* the 110 range that IBTA leaves to manufacturers, A.3 */
    WIRE_PREFIX_MASK = 0xE0,
};

struct wire_op {
    uint8_t kind; /* enum wire_kind */
    uint8_t flags;
};

/* A.3, indexed by the low five bits. */
static const struct wire_op wire_ops[32] = {
    [0x06] = {WIRE_WRITE, MRC_OPF_KNOWN | MRC_OPF_DATA | MRC_OPF_FIRST},
    [0x07] = {WIRE_WRITE, MRC_OPF_KNOWN | MRC_OPF_DATA},
    [0x08] = {WIRE_WRITE, MRC_OPF_KNOWN | MRC_OPF_DATA | MRC_OPF_LAST},
    [0x09] = {WIRE_WRITE_IMM, MRC_OPF_KNOWN | MRC_OPF_DATA | MRC_OPF_LAST | MRC_OPF_IMM},
    [0x0A] = {WIRE_WRITE, MRC_OPF_KNOWN | MRC_OPF_DATA | MRC_OPF_FIRST | MRC_OPF_LAST},
    [0x0B] = {WIRE_WRITE_IMM,
              MRC_OPF_KNOWN | MRC_OPF_DATA | MRC_OPF_FIRST | MRC_OPF_LAST | MRC_OPF_IMM},
    [0x11] = {WIRE_ACK, MRC_OPF_KNOWN},
    [0x18] = {WIRE_EP_REQ, MRC_OPF_KNOWN},
    [0x19] = {WIRE_EP_RSP, MRC_OPF_KNOWN},
    [0x1C] = {WIRE_SACK, MRC_OPF_KNOWN},
    [0x1D] = {WIRE_NACK, MRC_OPF_KNOWN},
    [0x1E] = {WIRE_PROBE, MRC_OPF_KNOWN},
};

/* Bytes after the BTH, without TSETH, A.1. */
static const uint8_t wire_ext_len[] = {
    [WIRE_WRITE] = WIRE_METH_LEN + WIRE_RETH_LEN,
    [WIRE_WRITE_IMM] = WIRE_METH_LEN + WIRE_RETH_LEN + WIRE_IMM_LEN,
    [WIRE_ACK] = 4,
    [WIRE_EP_REQ] = 16,
    [WIRE_EP_RSP] = 36,
    [WIRE_SACK] = WIRE_SETH_LEN + 8,
    [WIRE_NACK] = 20,
    [WIRE_PROBE] = 16,
};

static struct wire_op wire_lookup(uint8_t opcode)
{
    const struct wire_op none = {WIRE_UNKNOWN, 0};
    return (opcode & WIRE_PREFIX_MASK) == WIRE_PREFIX ? wire_ops[opcode & 0x1F] : none;
}

uint8_t mrc_opcode_flags(uint8_t opcode) { return wire_lookup(opcode).flags; }

/* ---- decode ---- */

/* A.4 */
static void wire_get_bth(struct mrc_pkt *out, const uint8_t *p)
{
    out->opcode = p[0];
    out->m_bit = (p[1] & 0x80) != 0;
    out->se = (p[1] & 0xC0) != 0; /* either bit, H2 */
    out->pad = (p[1] >> 4) & 3;
    out->tver = p[1] & 0x0F;
    out->p_key = mrc_get16(p + 2);
    out->var_res = p[4];
    out->dqp = mrc_get24(p + 5);
    out->a = (p[8] & 0x80) != 0;
    out->rtx = (p[8] & 0x20) != 0;
    out->ts = (p[8] & 0x10) != 0;
    out->inv_res = p[8] & 0x0F;
    out->psn = mrc_get24(p + 9);
}

/* The four bytes of TSETH; probes and endpoint requests end with the same, A.5, A.10, A.11. */
static void wire_get_ts(struct mrc_pkt *out, const uint8_t *p)
{
    out->tx_timestamp = mrc_get16(p);
    out->tsr = (p[2] & 0x80) != 0;
    out->ftype = p[3] & 0x0F;
}

/* A.5 */
static void wire_get_reth(struct mrc_pkt *out, const uint8_t *p)
{
    out->va = mrc_get64(p);
    out->r_key = mrc_get32(p + 8);
    out->dmalen = mrc_get32(p + 12);
}

/* The part SETH and NETH share: bytes 4..16, A.7, A.9. */
static void wire_get_refs(struct mrc_pkt *out, const uint8_t *p)
{
    out->entropy = mrc_get32(p + 4);
    out->spdcid = mrc_get16(p + 8);
    out->dpdcid = mrc_get16(p + 10);
    out->cack_psn = mrc_get24(p + 13);
    out->cc_type = p[16] >> 4;
    out->cc_fl = p[16] & 0x0F;
}

/* SETH and CC_STATE, A.7, A.8. */
static void wire_get_sack(struct mrc_pkt *out, const uint8_t *p)
{
    out->mark = (p[1] >> 5) & 3;
    out->pr = (p[1] & 0x02) != 0;
    if (out->pr)
        out->probe_id = mrc_get16(p + 2);
    else
        out->ack_psn_offset = (int16_t)mrc_get16(p + 2);
    wire_get_refs(out, p);
    out->mpr = p[17];
    out->sack_offset = (int16_t)mrc_get16(p + 18);
    out->sack_bitmap = mrc_get64(p + 20);

    const uint8_t *cc = p + WIRE_SETH_LEN;
    out->tx_timestamp = mrc_get16(cc);
    out->ooo_count = mrc_get16(cc + 2) & 0x7FFF;
    out->restore_cwnd = (cc[4] & 0x80) != 0;
    out->rcv_cwnd_pen = cc[4] & 0x7F;
    out->rcvd_bytes = mrc_get24(cc + 5);
}

static void wire_get_control(struct mrc_pkt *out, const uint8_t *p, enum wire_kind kind)
{
    switch (kind) {
    case WIRE_ACK: /* A.6 */
        out->syndrome = p[0];
        out->aeth_msn = mrc_get24(p + 1);
        break;
    case WIRE_SACK: wire_get_sack(out, p); break;
    case WIRE_NACK: /* A.9 */
        out->nack_reason = p[2];
        out->vendor_info = p[3];
        wire_get_refs(out, p);
        out->tx_timestamp = mrc_get16(p + 18);
        break;
    case WIRE_PROBE: /* A.10 */
        out->vendor_info = p[3];
        out->probe_id = mrc_get16(p + 4);
        out->spdcid = mrc_get16(p + 8);
        out->dpdcid = mrc_get16(p + 10);
        wire_get_ts(out, p + 12);
        break;
    case WIRE_EP_REQ: /* A.11 */
        out->ep_op = p[1] & 3;
        out->vendor_info = p[3];
        out->port_status_mask = mrc_get32(p + 4);
        wire_get_ts(out, p + 12);
        break;
    case WIRE_EP_RSP: /* A.11, op position H3 */
        out->ep_op = (p[1] >> 2) & 3;
        out->tx_timestamp = mrc_get16(p + 28);
        break;
    case WIRE_UNKNOWN:
    case WIRE_WRITE:
    case WIRE_WRITE_IMM: break;
    }
}

/* A Write that a switch cut: whatever headers survived, A.13.6. p is after the BTH. */
static enum mrc_wire_err wire_get_trimmed(struct mrc_pkt *out, const uint8_t *p, size_t len,
                                          bool imm)
{
    const size_t need = WIRE_METH_LEN + (out->ts ? (size_t)WIRE_TSETH_LEN : 0);
    if (len < need)
        return MRC_WIRE_SHORT;
    out->rqmsn = mrc_get16(p);
    out->msn = mrc_get16(p + 2);
    if (out->ts)
        wire_get_ts(out, p + WIRE_METH_LEN);
    p += need;
    len -= need;
    out->payload = p;
    if (len < WIRE_RETH_LEN)
        return MRC_WIRE_OK;
    wire_get_reth(out, p);
    p += WIRE_RETH_LEN;
    len -= WIRE_RETH_LEN;
    out->payload = p;
    if (imm) {
        if (len < WIRE_IMM_LEN)
            return MRC_WIRE_OK;
        out->imm = mrc_get32(p);
        p += WIRE_IMM_LEN;
        len -= WIRE_IMM_LEN;
    }
    out->payload = p;
    out->payload_len = (uint32_t)len;
    return MRC_WIRE_OK;
}

/* A whole Write without its iCRC. p is after the BTH. */
static enum mrc_wire_err wire_get_write(struct mrc_pkt *out, const uint8_t *p, size_t len, bool imm)
{
    const size_t need = WIRE_METH_LEN + (out->ts ? (size_t)WIRE_TSETH_LEN : 0) + WIRE_RETH_LEN +
                        (imm ? (size_t)WIRE_IMM_LEN : 0);
    if (len < need)
        return MRC_WIRE_SHORT;
    if (out->pad > len - need)
        return MRC_WIRE_LENGTH;
    out->rqmsn = mrc_get16(p);
    out->msn = mrc_get16(p + 2);
    p += WIRE_METH_LEN;
    if (out->ts) {
        wire_get_ts(out, p);
        p += WIRE_TSETH_LEN;
    }
    wire_get_reth(out, p);
    p += WIRE_RETH_LEN;
    if (imm) {
        out->imm = mrc_get32(p);
        p += WIRE_IMM_LEN;
    }
    out->payload = p;
    out->payload_len = (uint32_t)(len - need - out->pad);
    return MRC_WIRE_OK;
}

enum mrc_wire_err mrc_wire_decode(struct mrc_pkt *out, const uint8_t *bytes, size_t len,
                                  bool trimmed)
{
    memset(out, 0, sizeof(*out));
    const size_t tail = trimmed ? 0 : (size_t)MRC_ICRC_LEN;
    if (len < MRC_BTH_LEN + tail)
        return MRC_WIRE_SHORT;
    wire_get_bth(out, bytes);
    out->icrc_absent = trimmed;
    if (out->tver != 0)
        return MRC_WIRE_TVER;

    const struct wire_op op = wire_lookup(out->opcode);
    const uint8_t *ext = bytes + MRC_BTH_LEN;
    const size_t ext_len = len - MRC_BTH_LEN - tail;
    switch ((enum wire_kind)op.kind) {
    case WIRE_UNKNOWN: return MRC_WIRE_OPCODE;
    case WIRE_WRITE:
    case WIRE_WRITE_IMM:
        return trimmed ? wire_get_trimmed(out, ext, ext_len, op.kind == WIRE_WRITE_IMM)
                       : wire_get_write(out, ext, ext_len, op.kind == WIRE_WRITE_IMM);
    case WIRE_ACK:
    case WIRE_EP_REQ:
    case WIRE_EP_RSP:
    case WIRE_SACK:
    case WIRE_NACK:
    case WIRE_PROBE: break;
    }
    out->ts = false; /* TSETH exists in data packets only, A.4 */
    if (ext_len < wire_ext_len[op.kind])
        return MRC_WIRE_SHORT;
    if (out->pad != 0 || (!trimmed && ext_len != wire_ext_len[op.kind]))
        return MRC_WIRE_LENGTH;
    wire_get_control(out, ext, (enum wire_kind)op.kind);
    return MRC_WIRE_OK;
}

/* ---- encode: the mirror image, into zeroed bytes so that reserved fields are 0 ---- */

static void wire_put_bth(uint8_t *p, const struct mrc_pkt *in, bool data)
{
    p[0] = in->opcode;
    p[1] = (uint8_t)((in->m_bit ? 0x80 : 0) | (in->se ? 0x40 : 0) | ((in->pad & 3) << 4) |
                     (in->tver & 0x0F));
    mrc_put16(p + 2, in->p_key);
    p[4] = in->var_res;
    mrc_put24(p + 5, in->dqp);
    p[8] = (uint8_t)((in->a ? 0x80 : 0) | (in->rtx ? 0x20 : 0) | (data && in->ts ? 0x10 : 0) |
                     (in->inv_res & 0x0F));
    mrc_put24(p + 9, in->psn);
}

static void wire_put_ts(uint8_t *p, const struct mrc_pkt *in)
{
    mrc_put16(p, in->tx_timestamp);
    p[2] = in->tsr ? 0x80 : 0;
    p[3] = in->ftype & 0x0F;
}

static void wire_put_refs(uint8_t *p, const struct mrc_pkt *in)
{
    mrc_put32(p + 4, in->entropy);
    mrc_put16(p + 8, in->spdcid);
    mrc_put16(p + 10, in->dpdcid);
    mrc_put24(p + 13, in->cack_psn);
    p[16] = (uint8_t)((in->cc_type << 4) | (in->cc_fl & 0x0F));
}

static void wire_put_sack(uint8_t *p, const struct mrc_pkt *in)
{
    p[1] = (uint8_t)(((in->mark & 3) << 5) | (in->pr ? 0x02 : 0));
    mrc_put16(p + 2, in->pr ? in->probe_id : (uint16_t)in->ack_psn_offset);
    wire_put_refs(p, in);
    p[17] = in->mpr;
    mrc_put16(p + 18, (uint16_t)in->sack_offset);
    mrc_put64(p + 20, in->sack_bitmap);

    uint8_t *cc = p + WIRE_SETH_LEN;
    mrc_put16(cc, in->tx_timestamp);
    mrc_put16(cc + 2, in->ooo_count & 0x7FFF);
    cc[4] = (uint8_t)((in->restore_cwnd ? 0x80 : 0) | (in->rcv_cwnd_pen & 0x7F));
    mrc_put24(cc + 5, in->rcvd_bytes);
}

/* Returns the length: the only kind whose headers vary. */
static size_t wire_put_write(uint8_t *p, const struct mrc_pkt *in, bool imm)
{
    uint8_t *const start = p;
    mrc_put16(p, in->rqmsn);
    mrc_put16(p + 2, in->msn);
    p += WIRE_METH_LEN;
    if (in->ts) {
        wire_put_ts(p, in);
        p += WIRE_TSETH_LEN;
    }
    mrc_put64(p, in->va);
    mrc_put32(p + 8, in->r_key);
    mrc_put32(p + 12, in->dmalen);
    p += WIRE_RETH_LEN;
    if (imm) {
        mrc_put32(p, in->imm);
        p += WIRE_IMM_LEN;
    }
    return (size_t)(p - start);
}

size_t mrc_wire_encode(uint8_t out[MRC_HDR_MAX], const struct mrc_pkt *in)
{
    const struct wire_op op = wire_lookup(in->opcode);
    uint8_t *const p = out + MRC_BTH_LEN;
    size_t ext_len = wire_ext_len[op.kind];

    MRC_ASSERT(op.kind != WIRE_UNKNOWN);
    memset(out, 0, MRC_HDR_MAX);
    wire_put_bth(out, in, (op.flags & MRC_OPF_DATA) != 0);
    switch ((enum wire_kind)op.kind) {
    case WIRE_WRITE:
    case WIRE_WRITE_IMM: ext_len = wire_put_write(p, in, op.kind == WIRE_WRITE_IMM); break;
    case WIRE_ACK:
        p[0] = in->syndrome;
        mrc_put24(p + 1, in->aeth_msn);
        break;
    case WIRE_SACK: wire_put_sack(p, in); break;
    case WIRE_NACK:
        p[2] = in->nack_reason;
        p[3] = in->vendor_info;
        wire_put_refs(p, in);
        mrc_put16(p + 18, in->tx_timestamp);
        break;
    case WIRE_PROBE:
        p[3] = in->vendor_info;
        mrc_put16(p + 4, in->probe_id);
        mrc_put16(p + 8, in->spdcid);
        mrc_put16(p + 10, in->dpdcid);
        wire_put_ts(p + 12, in);
        break;
    case WIRE_EP_REQ:
        p[1] = in->ep_op & 3;
        p[3] = in->vendor_info;
        mrc_put32(p + 4, in->port_status_mask);
        wire_put_ts(p + 12, in);
        break;
    case WIRE_EP_RSP:
        p[1] = (uint8_t)((in->ep_op & 3) << 2);
        mrc_put16(p + 28, in->tx_timestamp);
        break;
    case WIRE_UNKNOWN: break;
    }
    return MRC_BTH_LEN + ext_len;
}
