/* SPDX-License-Identifier: BSD-2-Clause */
#include "t.h"

#include "../core/mrc_rand.h"
#include "../core/mrc_trace.h"
#include "../core/mrc_wire.h"

static const uint8_t all_ops[] = {0xC6, 0xC7, 0xC8, 0xC9, 0xCA, 0xCB,
                                  0xD1, 0xD8, 0xD9, 0xDC, 0xDD, 0xDE};
enum { OPS = sizeof(all_ops) };

/* Header bytes of each with and without TSETH, A.1. */
static size_t hdr_len(uint8_t op, bool ts)
{
    switch (op) {
    case MRC_OP_WRITE_LAST_IMM:
    case MRC_OP_WRITE_ONLY_IMM: return ts ? 40 : 36;
    case MRC_OP_ACK: return 16;
    case MRC_OP_SACK:
    case MRC_OP_EP_RESPONSE: return 48;
    case MRC_OP_NACK: return 32;
    case MRC_OP_PROBE:
    case MRC_OP_EP_REQUEST: return 28;
    default: return ts ? 36 : 32;
    }
}

/* A packet whose every carried field is random and within its width; all others zero. */
static struct mrc_pkt random_pkt(struct mrc_rand *r, uint8_t op)
{
    struct mrc_pkt p = {
        .opcode = op,
        .se = mrc_rand_below(r, 2) != 0,
        .a = mrc_rand_below(r, 2) != 0,
        .rtx = mrc_rand_below(r, 2) != 0,
        .var_res = (uint8_t)mrc_rand_next(r),
        .inv_res = (uint8_t)mrc_rand_below(r, 16),
        .p_key = (uint16_t)mrc_rand_next(r),
        .dqp = mrc_rand_below(r, 1u << 24),
        .psn = mrc_rand_below(r, 1u << 24),
    };
    const uint8_t flags = mrc_opcode_flags(op);
    if ((flags & MRC_OPF_DATA) != 0) {
        p.ts = mrc_rand_below(r, 2) != 0;
        p.pad = (uint8_t)mrc_rand_below(r, 4);
        p.rqmsn = (uint16_t)mrc_rand_next(r);
        p.msn = (uint16_t)mrc_rand_next(r);
        p.va = mrc_rand_next(r);
        p.r_key = (uint32_t)mrc_rand_next(r);
        p.dmalen = (uint32_t)mrc_rand_next(r);
        p.imm = (flags & MRC_OPF_IMM) != 0 ? (uint32_t)mrc_rand_next(r) : 0;
    }
    if (p.ts || op == MRC_OP_PROBE || op == MRC_OP_EP_REQUEST) {
        p.tsr = mrc_rand_below(r, 2) != 0;
        p.ftype = (uint8_t)mrc_rand_below(r, 16);
    }
    if (op != MRC_OP_ACK && ((flags & MRC_OPF_DATA) == 0 || p.ts))
        p.tx_timestamp = (uint16_t)mrc_rand_next(r);
    if (op == MRC_OP_ACK) {
        p.syndrome = (uint8_t)mrc_rand_next(r);
        p.aeth_msn = mrc_rand_below(r, 1u << 24);
    }
    if (op == MRC_OP_SACK || op == MRC_OP_NACK) {
        p.entropy = (uint32_t)mrc_rand_next(r);
        p.cack_psn = mrc_rand_below(r, 1u << 24);
        p.cc_type = (uint8_t)mrc_rand_below(r, 16);
        p.cc_fl = (uint8_t)mrc_rand_below(r, 16);
    }
    if (op == MRC_OP_SACK || op == MRC_OP_NACK || op == MRC_OP_PROBE) {
        p.spdcid = (uint16_t)mrc_rand_next(r);
        p.dpdcid = (uint16_t)mrc_rand_next(r);
    }
    if (op == MRC_OP_SACK) {
        p.mark = (uint8_t)mrc_rand_below(r, 4);
        p.pr = mrc_rand_below(r, 2) != 0;
        p.mpr = (uint8_t)mrc_rand_next(r);
        p.sack_offset = (int16_t)mrc_rand_next(r);
        p.sack_bitmap = mrc_rand_next(r);
        p.ooo_count = (uint16_t)mrc_rand_below(r, 1u << 15);
        p.restore_cwnd = mrc_rand_below(r, 2) != 0;
        p.rcv_cwnd_pen = (uint8_t)mrc_rand_below(r, 128);
        p.rcvd_bytes = mrc_rand_below(r, 1u << 24);
    }
    if (p.pr || op == MRC_OP_PROBE)
        p.probe_id = (uint16_t)mrc_rand_next(r);
    if (op == MRC_OP_SACK && !p.pr)
        p.ack_psn_offset = (int16_t)mrc_rand_next(r);
    if (op == MRC_OP_NACK)
        p.nack_reason = (uint8_t)mrc_rand_next(r);
    if (op == MRC_OP_NACK || op == MRC_OP_PROBE || op == MRC_OP_EP_REQUEST)
        p.vendor_info = (uint8_t)mrc_rand_next(r);
    if (op == MRC_OP_EP_REQUEST || op == MRC_OP_EP_RESPONSE)
        p.ep_op = (uint8_t)mrc_rand_below(r, 4);
    if (op == MRC_OP_EP_REQUEST)
        p.port_status_mask = (uint32_t)mrc_rand_next(r);
    return p;
}

static void check_same(const struct mrc_pkt *a, const struct mrc_pkt *b)
{
    CHECK_EQ(a->opcode, b->opcode);
    CHECK_EQ(a->pad, b->pad);
    CHECK_EQ(a->se, b->se);
    CHECK_EQ(a->m_bit, b->m_bit);
    CHECK_EQ(a->a, b->a);
    CHECK_EQ(a->rtx, b->rtx);
    CHECK_EQ(a->ts, b->ts);
    CHECK_EQ(a->tver, b->tver);
    CHECK_EQ(a->var_res, b->var_res);
    CHECK_EQ(a->inv_res, b->inv_res);
    CHECK_EQ(a->p_key, b->p_key);
    CHECK_EQ(a->dqp, b->dqp);
    CHECK_EQ(a->psn, b->psn);
    CHECK_EQ(a->rqmsn, b->rqmsn);
    CHECK_EQ(a->msn, b->msn);
    CHECK_EQ(a->tx_timestamp, b->tx_timestamp);
    CHECK_EQ(a->tsr, b->tsr);
    CHECK_EQ(a->ftype, b->ftype);
    CHECK_EQ(a->va, b->va);
    CHECK_EQ(a->r_key, b->r_key);
    CHECK_EQ(a->dmalen, b->dmalen);
    CHECK_EQ(a->imm, b->imm);
    CHECK_EQ(a->syndrome, b->syndrome);
    CHECK_EQ(a->aeth_msn, b->aeth_msn);
    CHECK_EQ(a->mark, b->mark);
    CHECK_EQ(a->pr, b->pr);
    CHECK_EQ(a->probe_id, b->probe_id);
    CHECK_EQ(a->ack_psn_offset, b->ack_psn_offset);
    CHECK_EQ(a->entropy, b->entropy);
    CHECK_EQ(a->spdcid, b->spdcid);
    CHECK_EQ(a->dpdcid, b->dpdcid);
    CHECK_EQ(a->cack_psn, b->cack_psn);
    CHECK_EQ(a->cc_type, b->cc_type);
    CHECK_EQ(a->cc_fl, b->cc_fl);
    CHECK_EQ(a->mpr, b->mpr);
    CHECK_EQ(a->sack_offset, b->sack_offset);
    CHECK_EQ(a->sack_bitmap, b->sack_bitmap);
    CHECK_EQ(a->nack_reason, b->nack_reason);
    CHECK_EQ(a->vendor_info, b->vendor_info);
    CHECK_EQ(a->ooo_count, b->ooo_count);
    CHECK_EQ(a->restore_cwnd, b->restore_cwnd);
    CHECK_EQ(a->rcv_cwnd_pen, b->rcv_cwnd_pen);
    CHECK_EQ(a->rcvd_bytes, b->rcvd_bytes);
    CHECK_EQ(a->ep_op, b->ep_op);
    CHECK_EQ(a->port_status_mask, b->port_status_mask);
}

TEST(opcode_flags__table_of_A3)
{
    unsigned known = 0;
    for (unsigned op = 0; op < 256; op++)
        known += mrc_opcode_flags((uint8_t)op) != 0;
    CHECK_EQ(known, OPS);
    for (size_t i = 0; i < OPS; i++) {
        const uint8_t f = mrc_opcode_flags(all_ops[i]);
        CHECK((f & MRC_OPF_KNOWN) != 0);
        CHECK_EQ((f & MRC_OPF_DATA) != 0, all_ops[i] <= 0xCB);
    }
    CHECK_EQ(mrc_opcode_flags(MRC_OP_WRITE_MIDDLE), MRC_OPF_KNOWN | MRC_OPF_DATA);
    CHECK_EQ(mrc_opcode_flags(MRC_OP_WRITE_ONLY_IMM),
             MRC_OPF_KNOWN | MRC_OPF_DATA | MRC_OPF_FIRST | MRC_OPF_LAST | MRC_OPF_IMM);
    CHECK_EQ(mrc_opcode_flags(0x0A), 0); /* RC Write Only: not ours, 0.3 */
}

TEST(opcodes__numbers_of_A3)
{
    static const uint8_t ours[OPS] = {
        MRC_OP_WRITE_FIRST, MRC_OP_WRITE_MIDDLE,   MRC_OP_WRITE_LAST, MRC_OP_WRITE_LAST_IMM,
        MRC_OP_WRITE_ONLY,  MRC_OP_WRITE_ONLY_IMM, MRC_OP_ACK,        MRC_OP_EP_REQUEST,
        MRC_OP_EP_RESPONSE, MRC_OP_SACK,           MRC_OP_NACK,       MRC_OP_PROBE,
    };
    CHECK_MEM(ours, all_ops, OPS);
}

TEST(nack_reasons__table_of_A9)
{
    CHECK_EQ(MRC_NACK_TRIMMED, 0x01);
    CHECK_EQ(MRC_NACK_TRIMMED_LASTHOP, 0x02);
    CHECK_EQ(MRC_NACK_NO_BITMAP, 0x06);
    CHECK_EQ(MRC_NACK_NO_PKT_BUFFER, 0x07);
    CHECK_EQ(MRC_NACK_NO_RESOURCE, 0x0A);
    CHECK_EQ(MRC_NACK_PSN_OOR_WINDOW, 0x0B);
    CHECK_EQ(MRC_NACK_UNEXP_EVENT, 0x19);
}

TEST(syndromes__of_A6)
{
    CHECK_EQ(MRC_AETH_ACK, 0x1F);
    CHECK_EQ(MRC_AETH_NAK_PSN_SEQ, 0x60);
    CHECK_EQ(MRC_AETH_NAK_INVALID_REQUEST, 0x61);
    CHECK_EQ(MRC_AETH_NAK_REMOTE_ACCESS, 0x62);
    CHECK_EQ(MRC_AETH_NAK_REMOTE_OPERATION, 0x63);
}

TEST(encode__length_of_every_opcode)
{
    uint8_t out[MRC_HDR_MAX];
    for (size_t i = 0; i < OPS; i++)
        for (int ts = 0; ts < 2; ts++) {
            const struct mrc_pkt p = {.opcode = all_ops[i], .ts = ts != 0};
            CHECK_EQ(mrc_wire_encode(out, &p), hdr_len(all_ops[i], ts != 0));
        }
}

TEST(decode__undoes_encode)
{
    struct mrc_rand r;
    mrc_rand_seed(&r, 42);
    for (int n = 0; n < 20000; n++) {
        const struct mrc_pkt in = random_pkt(&r, all_ops[mrc_rand_below(&r, OPS)]);
        const bool data = (mrc_opcode_flags(in.opcode) & MRC_OPF_DATA) != 0;
        uint8_t b[MRC_HDR_MAX + 64 + MRC_ICRC_LEN];
        size_t len = mrc_wire_encode(b, &in);
        const uint32_t payload = data ? mrc_rand_below(&r, 60) : 0;
        memset(b + len, 0x5A, sizeof(b) - len);
        struct mrc_pkt out;
        const size_t all = len + payload + in.pad + MRC_ICRC_LEN;
        CHECK_EQ(mrc_wire_decode(&out, b, all, false), MRC_WIRE_OK);
        check_same(&out, &in);
        CHECK_EQ(out.payload_len, payload);
        CHECK(!data || out.payload == b + len);
        CHECK(!out.icrc_absent);
    }
}

/* Bytes typed from the tables, not made by the encoder. */
TEST(decode__write_only_imm_bytes)
{
    static const uint8_t b[] = {
        0xCB, 0x70, 0x80, 0x01, 0xEE, 0x12, 0x34, 0x56, 0xB5, 0xFF, 0xFF, 0xF0, /* BTH */
        0x01, 0x02, 0x03, 0x04,                                                 /* METH */
        0xAB, 0xCD, 0x80, 0x01,                                                 /* TSETH */
        0x00, 0x00, 0x7F, 0x00, 0x11, 0x22, 0x33, 0x44,                         /* RETH */
        0xCA, 0xFE, 0xBA, 0xBE, 0x00, 0x00, 0x00, 0x01, 0xDE, 0xAD, 0xBE, 0xEF, /* ImmDt */
        0x77, 0x00, 0x00, 0x00,                                                 /* payload, pad */
        0x00, 0x00, 0x00, 0x00,                                                 /* iCRC */
    };
    struct mrc_pkt p;
    CHECK_EQ(mrc_wire_decode(&p, b, sizeof(b), false), MRC_WIRE_OK);
    CHECK_EQ(p.opcode, MRC_OP_WRITE_ONLY_IMM);
    CHECK(p.se && !p.m_bit && p.a && p.rtx && p.ts && p.tsr);
    CHECK_EQ(p.pad, 3);
    CHECK_EQ(p.p_key, 0x8001);
    CHECK_EQ(p.var_res, 0xEE);
    CHECK_EQ(p.dqp, 0x123456);
    CHECK_EQ(p.inv_res, 5);
    CHECK_EQ(p.psn, 0xFFFFF0);
    CHECK_EQ(p.rqmsn, 0x0102);
    CHECK_EQ(p.msn, 0x0304);
    CHECK_EQ(p.tx_timestamp, 0xABCD);
    CHECK_EQ(p.ftype, 1);
    CHECK_EQ(p.va, 0x7F0011223344);
    CHECK_EQ(p.r_key, 0xCAFEBABE);
    CHECK_EQ(p.dmalen, 1);
    CHECK_EQ(p.imm, 0xDEADBEEF);
    CHECK_EQ(p.payload_len, 1);
    CHECK(p.payload == b + 40);
}

/* The asymmetric bitmap of B.4's worked example among odd neighbours: field report 3. */
TEST(decode__sack_bytes)
{
    static const uint8_t b[] = {
        0xDC, 0x00, 0xFF, 0xFF, 0x00, 0x00, 0x03, 0x04, 0x20, 0x00, 0x00, 0x04, /* BTH */
        0x00, 0x20, 0xFF, 0xFE, 0x12, 0x34, 0xC0, 0xDE, 0x0A, 0x0B, 0x0C, 0x0D, /* SETH */
        0x00, 0x00, 0x00, 0x04, 0x00, 0x02, 0x00, 0x01, 0x80, 0x00, 0x00, 0x00,
        0x00, 0x00, 0x00, 0x76, 0x11, 0x22, 0xFF, 0xFF, 0x85, 0x00, 0x12, 0x34, /* CC_STATE */
        0x00, 0x00, 0x00, 0x00,
    };
    struct mrc_pkt p;
    CHECK_EQ(mrc_wire_decode(&p, b, sizeof(b), false), MRC_WIRE_OK);
    CHECK_EQ(p.mark, MRC_MARK_SKIP);
    CHECK(!p.pr && p.rtx && p.restore_cwnd);
    CHECK(p.ack_psn_offset == -2);
    CHECK_EQ(p.entropy, 0x1234C0DE);
    CHECK_EQ(p.spdcid, 0x0A0B);
    CHECK_EQ(p.dpdcid, 0x0C0D);
    CHECK_EQ(p.cack_psn, 4);
    CHECK_EQ(p.mpr, 2);
    CHECK_EQ(p.sack_offset, 1);
    CHECK_EQ(p.sack_bitmap, 0x8000000000000076);
    CHECK_EQ(p.tx_timestamp, 0x1122);
    CHECK_EQ(p.ooo_count, 0x7FFF);
    CHECK_EQ(p.rcv_cwnd_pen, 5);
    CHECK_EQ(p.rcvd_bytes, 0x1234);
}

TEST(decode__either_solicited_bit) /* H2 */
{
    uint8_t b[MRC_HDR_MAX + 4] = {0};
    const struct mrc_pkt in = {.opcode = MRC_OP_WRITE_ONLY};
    const size_t len = mrc_wire_encode(b, &in) + MRC_ICRC_LEN;
    struct mrc_pkt p;
    for (uint8_t bits = 0; bits < 4; bits++) {
        b[1] = (uint8_t)(bits << 6);
        CHECK_EQ(mrc_wire_decode(&p, b, len, false), MRC_WIRE_OK);
        CHECK_EQ(p.se, bits != 0);
        CHECK_EQ(p.m_bit, bits >> 1);
    }
}

TEST(decode__refuses_version_and_opcode)
{
    uint8_t b[MRC_HDR_MAX + 4] = {0};
    const struct mrc_pkt in = {.opcode = MRC_OP_WRITE_ONLY};
    const size_t len = mrc_wire_encode(b, &in) + MRC_ICRC_LEN;
    struct mrc_pkt p;
    b[1] = 0x01;
    CHECK_EQ(mrc_wire_decode(&p, b, len, false), MRC_WIRE_TVER);
    b[1] = 0;
    for (unsigned op = 0; op < 256; op++) {
        b[0] = (uint8_t)op;
        if (mrc_opcode_flags((uint8_t)op) == 0)
            CHECK_EQ(mrc_wire_decode(&p, b, len, false), MRC_WIRE_OPCODE);
    }
}

TEST(decode__every_short_length)
{
    uint8_t b[MRC_HDR_MAX + 4];
    struct mrc_pkt p;
    for (size_t i = 0; i < OPS; i++) {
        const bool data = (mrc_opcode_flags(all_ops[i]) & MRC_OPF_DATA) != 0;
        const struct mrc_pkt in = {.opcode = all_ops[i], .ts = data};
        const size_t need = mrc_wire_encode(b, &in) + MRC_ICRC_LEN;
        for (size_t len = 0; len < need; len++)
            CHECK_EQ(mrc_wire_decode(&p, b, len, false), MRC_WIRE_SHORT);
        CHECK_EQ(mrc_wire_decode(&p, b, need, false), MRC_WIRE_OK);
    }
}

TEST(decode__refuses_bad_lengths)
{
    uint8_t b[MRC_HDR_MAX + 8] = {0};
    struct mrc_pkt p;
    struct mrc_pkt in = {.opcode = MRC_OP_WRITE_ONLY, .pad = 3};
    size_t len = mrc_wire_encode(b, &in);
    CHECK_EQ(mrc_wire_decode(&p, b, len + 2 + MRC_ICRC_LEN, false), MRC_WIRE_LENGTH);
    CHECK_EQ(mrc_wire_decode(&p, b, len + 3 + MRC_ICRC_LEN, false), MRC_WIRE_OK);
    CHECK_EQ(p.payload_len, 0);
    for (size_t i = 6; i < OPS; i++) { /* control packets carry nothing else */
        in = (struct mrc_pkt){.opcode = all_ops[i]};
        len = mrc_wire_encode(b, &in);
        CHECK_EQ(mrc_wire_decode(&p, b, len + 4 + MRC_ICRC_LEN, false), MRC_WIRE_LENGTH);
        in.pad = 1;
        len = mrc_wire_encode(b, &in);
        CHECK_EQ(mrc_wire_decode(&p, b, len + MRC_ICRC_LEN, false), MRC_WIRE_LENGTH);
    }
}

/* A.13.6: BTH and METH (and TSETH) must be there; RETH, ImmDt, payload as far as they are. */
TEST(decode__trimmed_at_every_length)
{
    struct mrc_rand r;
    mrc_rand_seed(&r, 3);
    for (size_t i = 0; i < 6; i++)
        for (int n = 0; n < 20; n++) {
            uint8_t b[MRC_HDR_MAX + 16];
            struct mrc_pkt in = random_pkt(&r, all_ops[i]);
            struct mrc_pkt p;
            memset(b, 0xEE, sizeof(b));
            const size_t whole = mrc_wire_encode(b, &in);
            memset(b + whole, 0xEE, sizeof(b) - whole);
            const size_t need = in.ts ? 20 : 16;
            const bool imm = (mrc_opcode_flags(in.opcode) & MRC_OPF_IMM) != 0;
            for (size_t len = 0; len <= sizeof(b); len++) {
                const enum mrc_wire_err e = mrc_wire_decode(&p, b, len, true);
                CHECK_EQ(e, len < need ? MRC_WIRE_SHORT : MRC_WIRE_OK);
                if (e != MRC_WIRE_OK)
                    continue;
                CHECK(p.icrc_absent);
                CHECK_EQ(p.psn, in.psn);
                CHECK_EQ(p.msn, in.msn);
                CHECK_EQ(p.tx_timestamp, in.tx_timestamp);
                CHECK_EQ(p.va, len >= need + 16 ? in.va : 0);
                CHECK_EQ(p.imm, imm && len >= whole ? in.imm : 0);
                CHECK_EQ(p.payload_len, len > whole ? len - whole : 0);
            }
        }
}

TEST(wire_ev__label_is_the_high_half) /* A.12, H4 */
{
    CHECK_EQ(mrc_wire_ev(0xA1234, 0xC0DE), 0x1234C0DE);
    CHECK_EQ(mrc_wire_ev(0, 49152), 49152);
}

TEST(drop_name__all_named_and_different)
{
    for (int i = 0; i < MRC_DROP_COUNT; i++) {
        CHECK(strcmp(mrc_drop_name((enum mrc_drop)i), "unknown") != 0);
        for (int j = 0; j < i; j++)
            CHECK(strcmp(mrc_drop_name((enum mrc_drop)i), mrc_drop_name((enum mrc_drop)j)) != 0);
    }
    CHECK(strcmp(mrc_drop_name(MRC_DROP_COUNT), "unknown") == 0);
}
