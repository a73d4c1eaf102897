/* SPDX-License-Identifier: BSD-2-Clause */
/* What every packet of ours has in common: fixed fields of BTH, pad, iCRC; and the traffic class it
 * leaves in (A.13.5), looked at where an engine hands packets to the I/O side. */
#include "hostile_rig.h"
#include "t.h"

static const uint8_t all_ops[] = {0xC6, 0xC7, 0xC8, 0xC9, 0xCA, 0xCB,
                                  0xD1, 0xD8, 0xD9, 0xDC, 0xDD, 0xDE};

static const struct mrc_peer peer = {
    .src = {0xFD, 1, [15] = 0x0A},
    .dst = {0xFD, 2, [15] = 0x0B},
    .dport = 4791,
    .path_mtu = 256,
    .qpn = 0x123456,
    .dest_qpn = 0xABCDEF,
};
static const struct mrc_path_entry_cfg entry = {.ev = 0x1234C0DE, .lane = 5, .port = 3, .plane = 1};

static struct mrc_tx_pkt emitted(struct mrc_env *env, struct mrc_pkt *p)
{
    struct mrc_tx_pkt out;
    memset(&out, 0xEE, sizeof out);
    env->crc = mrc_crc32_portable;
    mrc_emit(env, &peer, &entry, 0xBA, p, &out);
    return out;
}

TEST(emit__fixed_fields) /* H5, H6; A.4 */
{
    struct mrc_env env = {0};
    for (size_t i = 0; i < sizeof all_ops; i++) {
        struct mrc_pkt p = {.opcode = all_ops[i], .psn = 77};
        const struct mrc_tx_pkt out = emitted(&env, &p);
        CHECK_EQ(out.hdr[0], all_ops[i]);
        CHECK_EQ(out.hdr[1] & 0xCF, 0); /* m, se, tver */
        CHECK_EQ(mrc_get16(out.hdr + 2), 0xFFFF);
        CHECK_EQ(out.hdr[4], 0);
        CHECK_EQ(mrc_get24(out.hdr + 5), 0xABCDEF);
        CHECK_EQ(out.hdr[8], 0);
        CHECK_EQ(mrc_get24(out.hdr + 9), 77);
        CHECK_EQ(out.ev, entry.ev);
        CHECK_EQ(out.lane, 5);
        CHECK_EQ(out.port, 3);
        CHECK_EQ(out.tclass, 0xBA);
        if (all_ops[i] >= MRC_OP_SACK) { /* SACK, NACK, probe: sender's id first */
            CHECK_EQ(mrc_get16(out.hdr + 20), 0x3456);
            CHECK_EQ(mrc_get16(out.hdr + 22), 0xCDEF);
        }
    }
}

TEST(emit__solicited_in_bit_6_or_by_option_7) /* H2 */
{
    for (int bit7 = 0; bit7 < 2; bit7++) {
        struct mrc_env env = {.se_bit7 = bit7 != 0};
        for (int se = 0; se < 2; se++) {
            struct mrc_pkt p = {.opcode = MRC_OP_WRITE_ONLY_IMM, .se = se != 0};
            const struct mrc_tx_pkt out = emitted(&env, &p);
            CHECK_EQ(out.hdr[1] & 0xC0, se == 0 ? 0 : bit7 != 0 ? 0x80 : 0x40);
        }
    }
}

/* A.13.3 as the definition has it, a bit at a time over the bytes of the pseudo packet. */
static uint32_t icrc_by_definition(const struct mrc_tx_pkt *t, size_t covered)
{
    uint8_t b[8 + 40 + 8 + MRC_HDR_MAX + 64];
    const uint8_t *const tail_start = t->tail;
    size_t n = 8 + 40 + 8;
    memset(b, 0xFF, n);
    b[8] = 0x6F;
    mrc_put16(b + 12, mrc_tx_udp_len(t));
    b[14] = 17;
    memcpy(b + 16, peer.src, 16);
    memcpy(b + 32, peer.dst, 16);
    mrc_put16(b + 48, (uint16_t)entry.ev);
    mrc_put16(b + 50, peer.dport);
    mrc_put16(b + 52, mrc_tx_udp_len(t));
    memcpy(b + n, t->hdr, t->hdr_len);
    b[n + 4] = 0xFF;
    n += t->hdr_len;
    if (t->payload_len > 0)
        memcpy(b + n, t->payload, t->payload_len);
    n += t->payload_len;
    memcpy(b + n, tail_start, covered);
    n += covered;
    uint32_t reg = 0xFFFFFFFF;
    for (size_t i = 0; i < n; i++) {
        reg ^= b[i];
        for (int k = 0; k < 8; k++)
            reg = reg >> 1 ^ ((reg & 1) != 0 ? 0xEDB88320u : 0);
    }
    return ~reg;
}

TEST(emit__pad_and_icrc)
{
    static const uint8_t payload[16] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};
    struct mrc_env env = {0};
    for (size_t i = 0; i < sizeof all_ops; i++) {
        const bool data = (mrc_opcode_flags(all_ops[i]) & MRC_OPF_DATA) != 0;
        for (uint32_t len = 0; len <= (data ? sizeof payload : 0); len++) {
            struct mrc_pkt p = {.opcode = all_ops[i], .payload = payload, .payload_len = len};
            const struct mrc_tx_pkt out = emitted(&env, &p);
            const uint32_t pad = (4 - len % 4) % 4;
            CHECK_EQ(out.hdr[1] >> 4 & 3, pad);
            CHECK_EQ(out.payload_len, len);
            CHECK_EQ(out.tail_len, pad + 4);
            CHECK_EQ(mrc_tx_udp_len(&out), 8 + out.hdr_len + len + pad + 4);
            for (uint32_t k = 0; k < pad; k++)
                CHECK_EQ(out.tail[k], 0);
            const uint32_t crc = icrc_by_definition(&out, pad);
            for (uint32_t k = 0; k < 4; k++) /* least significant byte first */
                CHECK_EQ(out.tail[pad + k], crc >> 8 * k & 0xFF);
        }
    }
}

/* ---- classes ---- */

static struct mrc_engine_cfg small(void)
{
    return (struct mrc_engine_cfg){
        .qp_max = 1, .mr_max = 1, .cq_max = 1, .path_max = 1, .cc_max = 1};
}

TEST(classes__numbers_are_the_operators)
{
    struct mrc_engine_cfg cfg = small();
    uint8_t *mem = malloc(mrc_engine_size(&cfg));
    const struct mrc_env *env = &mrc_engine_init(mem, &cfg, 0)->env;
    CHECK_EQ(env->tclass_data, 2);
    CHECK_EQ(env->tclass_retx, 2);
    CHECK_EQ(env->tclass_no_trim, 2);
    CHECK_EQ(env->tclass_control, 46 << 2);
    cfg.dscp_data = 10;
    (void)mrc_engine_init(mem, &cfg, 0);
    CHECK_EQ(env->tclass_retx, 10 << 2 | 2);
    cfg.dscp_exact = 1; /* 0 is a class like others */
    (void)mrc_engine_init(mem, &cfg, 0);
    CHECK_EQ(env->tclass_data, 10 << 2 | 2);
    CHECK_EQ(env->tclass_retx, 2);
    CHECK_EQ(env->tclass_control, 0);
    cfg.dscp_retx = 63;
    cfg.dscp_no_trim = 62;
    cfg.dscp_control = 61;
    cfg.dscp_trimmed = 60;
    cfg.dscp_trimmed_lasthop = 59;
    (void)mrc_engine_init(mem, &cfg, 0);
    CHECK_EQ(env->tclass_retx, 63 << 2 | 2);
    CHECK_EQ(env->tclass_no_trim, 62 << 2 | 2);
    CHECK_EQ(env->tclass_control, 61 << 2);
    CHECK_EQ(env->dscp_trimmed, 60);
    CHECK_EQ(env->dscp_trimmed_lasthop, 59);
    free(mem);
}

TEST(classes__that_cannot_be)
{
    for (int field = 0; field < 6; field++) {
        struct mrc_engine_cfg cfg = small();
        uint8_t *const dscp[6] = {&cfg.dscp_data,    &cfg.dscp_retx,    &cfg.dscp_no_trim,
                                  &cfg.dscp_control, &cfg.dscp_trimmed, &cfg.dscp_trimmed_lasthop};
        *dscp[field] = 64;
        CHECK_EQ(mrc_engine_size(&cfg), 0);
        *dscp[field] = 63;
        CHECK(mrc_engine_size(&cfg) > 0);
        for (int cut = 4; cut < 6 && field < 4; cut++) { /* would be taken for trimmed */
            *dscp[cut] = 63;
            CHECK_EQ(mrc_engine_size(&cfg), 0);
            *dscp[cut] = 0;
        }
    }
}

enum { DATA = 4 << 2 | 2, RETX = 8 << 2 | 2, NO_TRIM = 20 << 2 | 2, CONTROL = 46 << 2 };

static void open_pair(struct rig *r, uint32_t cap)
{
    rig_open(r, 100, MRC_CC_FIXED, false);
    for (int i = 0; i < 2; i++) {
        r->s[i].e->env.tclass_data = DATA;
        r->s[i].e->env.tclass_retx = RETX;
        r->s[i].e->env.tclass_no_trim = NO_TRIM;
        r->s[i].e->env.tclass_control = CONTROL;
        rig_qp(&r->s[i])->attr.cap = cap;
    }
}

/* Both sides talk until quiet, the first burst of each side and every fourth packet are lost.
 * seen[opcode][0]: class of its first transmissions, [1]: of those with rtx; 0: none, 1: several.
 */
static void listen(struct rig *r, uint8_t seen[256][2])
{
    memset(seen, 0, 512);
    uint32_t count = 0;
    for (int round = 0; round < 4000; round++) {
        r->now += 50 * MRC_USEC;
        for (int i = 0; i < 2; i++) {
            struct mrc_tx_pkt tx[RIG_BURST];
            const size_t n = mrc_engine_tx(r->s[i].e, tx, RIG_BURST, r->now);
            for (size_t k = 0; k < n; k++) {
                const bool data = (mrc_opcode_flags(tx[k].hdr[0]) & MRC_OPF_DATA) != 0;
                uint8_t *c = &seen[tx[k].hdr[0]][data && (tx[k].hdr[8] & 0x20) != 0];
                *c = *c == 0 || *c == tx[k].tclass ? tx[k].tclass : 1;
                struct rig_pkt p;
                rig_from_tx(r, i, &tx[k], &p);
                if (count++ % 4 != 0)
                    rig_deliver(r, 1 - i, &p);
            }
            mrc_engine_tick(r->s[i].e, r->now);
        }
    }
}

static void talk(struct rig *r, uint8_t seen[256][2])
{
    const uint64_t id = 1;
    CHECK_EQ(mrc_qp_post_recv(r->s[1].e, r->s[1].qpn, &id, 1), 1);
    CHECK_EQ(rig_post(r, 0, 0, 8 * RIG_MTU, MRC_WR_RDMA_WRITE), 1);
    CHECK_EQ(rig_post(r, 0, 0, 9 * RIG_MTU, MRC_WR_RDMA_WRITE_WITH_IMM), 1);
    listen(r, seen);
}

TEST(classes__of_every_kind_of_packet)
{
    struct rig r;
    uint8_t seen[256][2];
    open_pair(&r, 0);
    talk(&r, seen);
    for (uint8_t op = MRC_OP_WRITE_FIRST; op <= MRC_OP_WRITE_LAST_IMM; op++)
        CHECK_EQ(seen[op][0], DATA);
    CHECK_EQ(seen[MRC_OP_WRITE_MIDDLE][1], RETX);
    CHECK_EQ(seen[MRC_OP_PROBE][0], DATA);
    CHECK_EQ(seen[MRC_OP_SACK][0], CONTROL); /* Not-ECT */
    CHECK_EQ(seen[MRC_OP_ACK][0], CONTROL);
    CHECK_EQ(mrc_path_planes_set(r.s[1].e, r.s[1].path_id, MRC_PLANES_ALL & ~4u, MRC_PLANES_ALL),
             MRC_OK);
    listen(&r, seen);
    CHECK_EQ(seen[MRC_OP_EP_REQUEST][0], CONTROL);
    CHECK_EQ(seen[MRC_OP_EP_RESPONSE][0], CONTROL);
    rig_close(&r);
}

TEST(classes__no_trim_to_a_peer_that_does_not_answer_trimmed_packets) /* B.7, H43 */
{
    struct rig r;
    uint8_t seen[256][2];
    open_pair(&r, MRC_QP_CAP_NO_TRIM_NACK);
    talk(&r, seen);
    for (uint8_t op = MRC_OP_WRITE_FIRST; op <= MRC_OP_WRITE_LAST_IMM; op++)
        CHECK_EQ(seen[op][0], NO_TRIM);
    CHECK_EQ(seen[MRC_OP_WRITE_MIDDLE][1], NO_TRIM);
    CHECK_EQ(seen[MRC_OP_PROBE][0], NO_TRIM);
    CHECK_EQ(seen[MRC_OP_SACK][0], CONTROL);
    rig_close(&r);
}

/* A trimmed packet is answered in the control class, too. */
TEST(classes__of_a_nack)
{
    struct rig r;
    struct mrc_tx_pkt tx[RIG_BURST];
    struct rig_pkt p;
    open_pair(&r, 0);
    CHECK_EQ(rig_post(&r, 0, 0, 64, MRC_WR_RDMA_WRITE), 1);
    CHECK_EQ(mrc_engine_tx(r.s[0].e, tx, RIG_BURST, r.now), 1);
    rig_from_tx(&r, 0, &tx[0], &p);
    p.rx.tclass = RIG_TRIMMED << 2;
    rig_deliver(&r, 1, &p);
    CHECK_EQ(mrc_engine_tx(r.s[1].e, tx, RIG_BURST, r.now), 1);
    CHECK_EQ(tx[0].hdr[0], MRC_OP_NACK);
    CHECK_EQ(tx[0].tclass, CONTROL);
    CHECK(rig_settle(&r));
    rig_close(&r);
}

TEST(classes__a_class_not_in_use_is_not_dscp_0)
{
    struct rig r;
    struct mrc_wc wc;
    rig_open(&r, 100, MRC_CC_FIXED, false);
    for (int i = 0; i < 2; i++)
        r.s[i].e->env.dscp_trimmed_lasthop = 0; /* and data leaves as DSCP 0 */
    CHECK_EQ(rig_post(&r, 0, 0, 5000, MRC_WR_RDMA_WRITE), 1);
    CHECK(rig_settle(&r));
    CHECK_EQ(mrc_cq_poll(r.s[0].e, 0, &wc, 1), 1);
    CHECK_EQ(rig_qp(&r.s[1])->stats.trims_received, 0);
    CHECK_EQ(rig_qp(&r.s[0])->stats.packets_retransmitted, 0);
    rig_close(&r);
}
