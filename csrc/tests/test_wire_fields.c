/* SPDX-License-Identifier: BSD-2-Clause */
/* Every field of every header where the tables put it (A.4 to A.11): this file is the tables, typed
 * once more. Each bit of a field is set alone: the encoder must set that bit of the packet and no
 * other, the decoder must find it in that field and nowhere else. */
#include "t.h"

#include "../core/mrc_wire.h"

#include <stddef.h>

enum { PR = 1, TS = 2 }; /* variants of the packet a field lives in */

struct place {
    const char *name;
    uint8_t op;
    uint8_t variant;
    uint8_t width; /* bits */
    uint8_t size;  /* bytes of the member */
    size_t member;
    size_t end_bit; /* bits from the start of BTH to just behind the field */
};

#define MEMBER(m) .size = sizeof(((struct mrc_pkt *)0)->m), .member = offsetof(struct mrc_pkt, m)
/* A field of `w` bits whose last one is bit `lo` (bit 0 the lowest) of byte `b` of the header that
 * starts at byte `at` of the packet. */
#define FIELD(o, v, at, m, w, b, lo)                                                               \
    {                                                                                              \
        .name = #m, .op = (o), .variant = (v), .width = (w), MEMBER(m),                            \
        .end_bit = 8 * ((at) + (b)) + 8 - (lo)                                                     \
    }

static struct mrc_pkt base_of(uint8_t op, uint8_t variant)
{
    return (struct mrc_pkt){.opcode = op, .pr = (variant & PR) != 0, .ts = (variant & TS) != 0};
}

static void member_set(struct mrc_pkt *p, const struct place *f, uint64_t value)
{
    const uint8_t v8 = (uint8_t)value;
    const uint16_t v16 = (uint16_t)value;
    const uint32_t v32 = (uint32_t)value;
    const void *from = f->size == 1   ? (const void *)&v8
                       : f->size == 2 ? (const void *)&v16
                       : f->size == 4 ? (const void *)&v32
                                      : (const void *)&value;
    memcpy((uint8_t *)p + f->member, from, f->size);
}

static void bad(const struct place *f, unsigned bit, const char *what)
{
    char s[128];
    snprintf(s, sizeof s, "%s of opcode 0x%02x, bit %u: %s", f->name, f->op, bit, what);
    t_fail(__FILE__, __LINE__, s);
}

static void check_bit(const struct place *f, unsigned bit)
{
    const size_t at = f->end_bit - 1u - bit;
    const uint8_t mask = (uint8_t)(0x80 >> at % 8);
    uint8_t want[MRC_HDR_MAX + 8] = {0};
    uint8_t got[MRC_HDR_MAX];
    struct mrc_pkt p = base_of(f->op, f->variant);
    struct mrc_pkt before;
    struct mrc_pkt after;

    const size_t len = mrc_wire_encode(want, &p);
    const size_t all = len + 3 + MRC_ICRC_LEN; /* room for any pad behind a Write */
    const bool data = (mrc_opcode_flags(f->op) & MRC_OPF_DATA) != 0;
    const size_t given = data ? all : len + MRC_ICRC_LEN;
    CHECK_EQ(mrc_wire_decode(&before, want, given, false), MRC_WIRE_OK);

    want[at / 8] ^= mask;
    member_set(&p, f, (uint64_t)1 << bit);
    if (mrc_wire_encode(got, &p) != len || memcmp(got, want, len) != 0)
        bad(f, bit, "encoded elsewhere");
    if (mrc_wire_decode(&after, want, given, false) != MRC_WIRE_OK)
        bad(f, bit, "refused");
    if (f->member == offsetof(struct mrc_pkt, pad)) /* it says how much is no payload */
        before.payload_len -= 1u << bit;
    member_set(&before, f, (uint64_t)1 << bit);
    if (memcmp(&before, &after, sizeof after) != 0)
        bad(f, bit, "decoded elsewhere");
}

static void check_places(const struct place *f, size_t n)
{
    for (; n > 0; n--, f++)
        for (unsigned bit = 0; bit < f->width; bit++)
            check_bit(f, bit);
}
#define CHECK_PLACES(list) check_places(list, sizeof(list) / sizeof(list)[0])

/* Tables 6-3, 7-10. The version has no bit that may be set: test_wire.c refuses it. */
#define BTH(o, v)                                                                                  \
    FIELD(o, v, 0, se, 1, 1, 6), FIELD(o, v, 0, p_key, 16, 3, 0),                                  \
        FIELD(o, v, 0, var_res, 8, 4, 0), FIELD(o, v, 0, dqp, 24, 7, 0),                           \
        FIELD(o, v, 0, a, 1, 8, 7), FIELD(o, v, 0, rtx, 1, 8, 5),                                  \
        FIELD(o, v, 0, inv_res, 4, 8, 0), FIELD(o, v, 0, psn, 24, 11, 0)

TEST(wire_fields__bth)
{
    static const uint8_t ops[] = {0xC6, 0xC7, 0xC8, 0xC9, 0xCA, 0xCB,
                                  0xD1, 0xD8, 0xD9, 0xDC, 0xDD, 0xDE};
    for (size_t i = 0; i < sizeof ops; i++) {
        const struct place places[] = {BTH(ops[i], 0)};
        CHECK_PLACES(places);
        uint8_t b[MRC_HDR_MAX];
        const struct mrc_pkt p = base_of(ops[i], 0);
        (void)mrc_wire_encode(b, &p);
        CHECK_EQ(b[0], ops[i]);
    }
}

/* pad and TSETH exist in data packets only. */
TEST(wire_fields__bth_of_data)
{
    for (uint8_t op = MRC_OP_WRITE_FIRST; op <= MRC_OP_WRITE_ONLY_IMM; op++) {
        const struct place pad[] = {FIELD(op, 0, 0, pad, 2, 1, 4)};
        CHECK_PLACES(pad);
        uint8_t b[MRC_HDR_MAX];
        const struct mrc_pkt p = base_of(op, TS);
        (void)mrc_wire_encode(b, &p);
        CHECK_EQ(b[8], 0x10);
    }
    struct mrc_pkt out;
    uint8_t b[MRC_HDR_MAX] = {0};
    const struct mrc_pkt ack = base_of(MRC_OP_ACK, TS);
    const size_t len = mrc_wire_encode(b, &ack);
    CHECK_EQ(b[8], 0);
    b[8] = 0x10; /* a peer that sets it all the same adds no header */
    CHECK_EQ(mrc_wire_decode(&out, b, len + MRC_ICRC_LEN, false), MRC_WIRE_OK);
    CHECK(!out.ts);
}

TEST(wire_fields__meth_reth_immdt)
{
    for (uint8_t op = MRC_OP_WRITE_FIRST; op <= MRC_OP_WRITE_ONLY_IMM; op++)
        for (uint8_t v = 0; v <= TS; v += TS) {
            const size_t reth = v == TS ? 20 : 16;
            const struct place places[] = {
                FIELD(op, v, 12, rqmsn, 16, 1, 0),     FIELD(op, v, 12, msn, 16, 3, 0),
                FIELD(op, v, reth, va, 64, 7, 0),      FIELD(op, v, reth, r_key, 32, 11, 0),
                FIELD(op, v, reth, dmalen, 32, 15, 0),
            };
            CHECK_PLACES(places);
            const struct place imm[] = {FIELD(op, v, reth, imm, 32, 19, 0)};
            if ((mrc_opcode_flags(op) & MRC_OPF_IMM) != 0)
                CHECK_PLACES(imm);
        }
}

/* The last four bytes of TSETH, PETH and ERTH. */
#define STAMP(o, v, at)                                                                            \
    FIELD(o, v, at, tx_timestamp, 16, 1, 0), FIELD(o, v, at, tsr, 1, 2, 7),                        \
        FIELD(o, v, at, ftype, 4, 3, 0)

TEST(wire_fields__tseth)
{
    for (uint8_t op = MRC_OP_WRITE_FIRST; op <= MRC_OP_WRITE_ONLY_IMM; op++) {
        const struct place places[] = {STAMP(op, TS, 16)};
        CHECK_PLACES(places);
    }
}

TEST(wire_fields__aeth)
{
    static const struct place places[] = {
        FIELD(MRC_OP_ACK, 0, 12, syndrome, 8, 0, 0),
        FIELD(MRC_OP_ACK, 0, 12, aeth_msn, 24, 3, 0),
    };
    CHECK_PLACES(places);
}

/* What SETH and NETH have in common. */
#define REFS(o, v)                                                                                 \
    FIELD(o, v, 12, entropy, 32, 7, 0), FIELD(o, v, 12, spdcid, 16, 9, 0),                         \
        FIELD(o, v, 12, dpdcid, 16, 11, 0), FIELD(o, v, 12, cack_psn, 24, 15, 0),                  \
        FIELD(o, v, 12, cc_type, 4, 16, 4), FIELD(o, v, 12, cc_fl, 4, 16, 0)

#define SETH(v)                                                                                    \
    FIELD(MRC_OP_SACK, v, 12, mark, 2, 1, 5), REFS(MRC_OP_SACK, v),                                \
        FIELD(MRC_OP_SACK, v, 12, mpr, 8, 17, 0),                                                  \
        FIELD(MRC_OP_SACK, v, 12, sack_offset, 16, 19, 0),                                         \
        FIELD(MRC_OP_SACK, v, 12, sack_bitmap, 64, 27, 0)

TEST(wire_fields__seth)
{
    static const struct place places[] = {
        SETH(0),
        SETH(PR),
        FIELD(MRC_OP_SACK, 0, 12, ack_psn_offset, 16, 3, 0),
        FIELD(MRC_OP_SACK, PR, 12, probe_id, 16, 3, 0),
        FIELD(MRC_OP_SACK, 0, 12, pr, 1, 1, 1),
    };
    CHECK_PLACES(places);
}

TEST(wire_fields__cc_state)
{
    static const struct place places[] = {
        FIELD(MRC_OP_SACK, 0, 40, tx_timestamp, 16, 1, 0),
        FIELD(MRC_OP_SACK, 0, 40, ooo_count, 15, 3, 0),
        FIELD(MRC_OP_SACK, 0, 40, restore_cwnd, 1, 4, 7),
        FIELD(MRC_OP_SACK, 0, 40, rcv_cwnd_pen, 7, 4, 0),
        FIELD(MRC_OP_SACK, 0, 40, rcvd_bytes, 24, 7, 0),
    };
    CHECK_PLACES(places);
}

TEST(wire_fields__neth)
{
    static const struct place places[] = {
        FIELD(MRC_OP_NACK, 0, 12, nack_reason, 8, 2, 0),
        FIELD(MRC_OP_NACK, 0, 12, vendor_info, 8, 3, 0),
        REFS(MRC_OP_NACK, 0),
        FIELD(MRC_OP_NACK, 0, 12, tx_timestamp, 16, 19, 0),
    };
    CHECK_PLACES(places);
}

TEST(wire_fields__peth)
{
    static const struct place places[] = {
        FIELD(MRC_OP_PROBE, 0, 12, vendor_info, 8, 3, 0),
        FIELD(MRC_OP_PROBE, 0, 12, probe_id, 16, 5, 0),
        FIELD(MRC_OP_PROBE, 0, 12, spdcid, 16, 9, 0),
        FIELD(MRC_OP_PROBE, 0, 12, dpdcid, 16, 11, 0),
        STAMP(MRC_OP_PROBE, 0, 24),
    };
    CHECK_PLACES(places);
}

TEST(wire_fields__erth)
{
    static const struct place places[] = {
        FIELD(MRC_OP_EP_REQUEST, 0, 12, ep_op, 2, 1, 0),
        FIELD(MRC_OP_EP_REQUEST, 0, 12, vendor_info, 8, 3, 0),
        FIELD(MRC_OP_EP_REQUEST, 0, 12, port_status_mask, 32, 7, 0),
        STAMP(MRC_OP_EP_REQUEST, 0, 24),
    };
    CHECK_PLACES(places);
}

TEST(wire_fields__eeth)
{
    static const struct place places[] = {
        FIELD(MRC_OP_EP_RESPONSE, 0, 12, ep_op, 2, 1, 2), /* H3 */
        FIELD(MRC_OP_EP_RESPONSE, 0, 12, tx_timestamp, 16, 29, 0),
    };
    CHECK_PLACES(places);
}

/* ---- reserved bits: sent as 0, ignored on receive (A) ---- */

/* Bits of the packet that belong to a field, as the encoder shows: everything set. */
static size_t used_bits(uint8_t op, uint8_t variant, uint8_t mask[MRC_HDR_MAX])
{
    struct mrc_pkt p;
    memset(&p, 0xFF, sizeof p);
    p.opcode = op;
    p.se = p.m_bit = p.a = p.rtx = p.restore_cwnd = p.tsr = true;
    p.pr = (variant & PR) != 0;
    p.ts = (variant & TS) != 0;
    const size_t len = mrc_wire_encode(mask, &p);
    mask[0] = 0xFF; /* opcode */
    mask[1] = 0xFF; /* all of this byte has a meaning */
    mask[8] |= 0x10;
    if (op == MRC_OP_SACK)
        mask[13] |= 0x02; /* pr */
    return len;
}

/* How many bits of BTH and extension headers the tables reserve. */
static unsigned reserved_bits(uint8_t op, uint8_t variant)
{
    const unsigned bth = 1; /* R */
    switch (op) {
    case MRC_OP_ACK: return bth;
    case MRC_OP_SACK: return bth + 4 + 5 + 3 + 1 + 8 + 1; /* type nxt r r res; CC_STATE r */
    case MRC_OP_NACK: return bth + 16 + 8 + 8;
    case MRC_OP_PROBE: return bth + 16 + 8 + 16 + 11;
    case MRC_OP_EP_REQUEST: return bth + 14 + 8 + 32 + 11;
    case MRC_OP_EP_RESPONSE: return bth + 12 + 2 + 16 + 192 + 16 + 32;
    default: return bth + ((variant & TS) != 0 ? 11 : 0);
    }
}

TEST(wire_fields__reserved_bits_are_zero_and_ignored)
{
    for (unsigned op = 0; op < 256; op++) {
        if (mrc_opcode_flags((uint8_t)op) == 0)
            continue;
        for (uint8_t v = 0; v <= (PR | TS); v++) {
            uint8_t used[MRC_HDR_MAX];
            uint8_t b[MRC_HDR_MAX + MRC_ICRC_LEN] = {0};
            const struct mrc_pkt p = base_of((uint8_t)op, v);
            const size_t len = used_bits((uint8_t)op, v, used);
            struct mrc_pkt plain;
            struct mrc_pkt out;
            CHECK_EQ(mrc_wire_encode(b, &p), len);
            CHECK_EQ(mrc_wire_decode(&plain, b, len + MRC_ICRC_LEN, false), MRC_WIRE_OK);
            unsigned reserved = 0;
            for (size_t bit = 0; bit < 8 * len; bit++) {
                const uint8_t mask = (uint8_t)(1u << bit % 8);
                if ((used[bit / 8] & mask) != 0)
                    continue;
                reserved++;
                CHECK_EQ(b[bit / 8] & mask, 0);
                b[bit / 8] ^= mask;
                CHECK_EQ(mrc_wire_decode(&out, b, len + MRC_ICRC_LEN, false), MRC_WIRE_OK);
                CHECK(memcmp(&out, &plain, sizeof out) == 0);
                b[bit / 8] ^= mask;
            }
            CHECK_EQ(reserved, reserved_bits((uint8_t)op, v));
        }
    }
}
