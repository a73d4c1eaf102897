/* SPDX-License-Identifier: BSD-2-Clause */
/* What messages and answers look like packet by packet as engines send them: the contents of part A
 * that are not a matter of the codec. */
#include "hostile_rig.h"
#include "t.h"

enum { MAX = 64 };

struct heard {
    struct mrc_pkt p[MAX];
    struct mrc_tx_pkt tx[MAX];
    size_t n;
};

/* Everything side `from` sends now, decoded; it reaches the other side when `carry` is set. */
static void hear(struct rig *r, int from, struct heard *h, bool carry)
{
    static struct rig_pkt wire[MAX];
    h->n = mrc_engine_tx(r->s[from].e, h->tx, MAX, r->now);
    for (size_t i = 0; i < h->n; i++) {
        rig_from_tx(r, from, &h->tx[i], &wire[i]);
        CHECK_EQ(mrc_wire_decode(&h->p[i], wire[i].bytes, wire[i].rx.len, false), MRC_WIRE_OK);
        if (carry)
            rig_deliver(r, 1 - from, &wire[i]);
    }
}

static void open_pair(struct rig *r) { rig_open(r, 0xFFFFFE, MRC_CC_FIXED, false); }

static int post(struct rig *r, uint32_t len, uint8_t opcode, uint8_t flags)
{
    const struct mrc_send_wr wr = {.laddr = rig_va(&r->s[0], RIG_RW),
                                   .raddr = rig_va(&r->s[1], RIG_RW) + 1000,
                                   .length = len,
                                   .lkey = r->s[0].key[RIG_RW],
                                   .rkey = r->s[1].key[RIG_RW],
                                   .imm = 0xA1B2C3D4,
                                   .opcode = opcode,
                                   .flags = flags};
    return mrc_qp_post_send(r->s[0].e, r->s[0].qpn, &wr, 1);
}

/* A.3, A.5: opcodes, addresses and lengths of one message of `len` bytes. */
static void check_message(const struct heard *h, size_t at, uint32_t len, bool imm, uint64_t va)
{
    const size_t n = len == 0 ? 1 : (len + RIG_MTU - 1) / RIG_MTU;
    CHECK(h->n >= at + n);
    for (size_t k = 0; k < n && at + k < h->n; k++) {
        const struct mrc_pkt *p = &h->p[at + k];
        const bool last = k == n - 1;
        const uint8_t want = n == 1 ? (imm ? 0xCB : 0xCA)
                             : last ? (imm ? 0xC9 : 0xC8)
                                    : (k == 0 ? 0xC6 : 0xC7);
        CHECK_EQ(p->opcode, want);
        CHECK_EQ(p->va, va + k * RIG_MTU);
        CHECK_EQ(p->dmalen, len); /* of the message: H21 */
        CHECK_EQ(p->payload_len, last ? len - k * RIG_MTU : RIG_MTU);
        CHECK_EQ(p->imm, last && imm ? 0xA1B2C3D4 : 0);
        CHECK_EQ(p->msn, h->p[at].msn);
        CHECK_EQ(p->rqmsn, h->p[at].rqmsn);
    }
}

TEST(packets__of_messages)
{
    static const uint32_t lengths[] = {0, 1, 255, 256, 257, 512, 1000};
    struct rig r;
    struct heard h;
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++)
        for (uint8_t op = MRC_WR_RDMA_WRITE; op <= MRC_WR_RDMA_WRITE_WITH_IMM; op++) {
            open_pair(&r);
            const uint64_t va = rig_va(&r.s[1], RIG_RW) + 1000;
            CHECK_EQ(post(&r, lengths[i], op, 0), 1);
            CHECK_EQ(post(&r, lengths[i], op, 0), 1);
            hear(&r, 0, &h, false);
            CHECK_EQ(h.n % 2, 0);
            check_message(&h, 0, lengths[i], op != 0, va);
            check_message(&h, h.n / 2, lengths[i], op != 0, va);
            for (size_t k = 0; k < h.n; k++) {
                CHECK_EQ(h.p[k].psn, (0xFFFFFE + k) & 0xFFFFFF); /* consecutive: B.1 */
                CHECK_EQ(h.p[k].r_key, r.s[1].key[RIG_RW]);
                CHECK_EQ(h.p[k].dqp, r.s[1].qpn);
                CHECK(!h.p[k].rtx);
            }
            rig_close(&r);
        }
}

/* H18: the first message is 1; plain writes have no RQMSN, immediates count from 1. */
TEST(packets__message_numbers)
{
    struct rig r;
    struct heard h;
    open_pair(&r);
    static const uint8_t ops[] = {0, 1, 0, 1, 1};
    static const uint16_t rqmsn[] = {0, 1, 0, 2, 3};
    for (size_t i = 0; i < sizeof ops; i++)
        CHECK_EQ(post(&r, 300, ops[i], 0), 1);
    hear(&r, 0, &h, false);
    CHECK_EQ(h.n, 10);
    for (size_t i = 0; i < h.n; i++) {
        CHECK_EQ(h.p[i].msn, i / 2 + 1);
        CHECK_EQ(h.p[i].rqmsn, rqmsn[i / 2]);
    }
    rig_close(&r);
}

TEST(packets__solicited_on_the_last_only)
{
    struct rig r;
    struct heard h;
    open_pair(&r);
    CHECK_EQ(post(&r, 600, MRC_WR_RDMA_WRITE_WITH_IMM, MRC_SEND_SOLICITED), 1);
    CHECK_EQ(post(&r, 10, MRC_WR_RDMA_WRITE_WITH_IMM, 0), 1);
    hear(&r, 0, &h, false);
    CHECK_EQ(h.n, 4);
    for (size_t i = 0; i < h.n; i++)
        CHECK_EQ(h.p[i].se, i == 2);
    rig_close(&r);
}

/* A.5: payload at `va`, pad behind it, four-byte lengths. */
TEST(packets__payload_is_the_memory)
{
    struct rig r;
    struct heard h;
    open_pair(&r);
    for (uint32_t i = 0; i < 1000; i++)
        rig_buf(&r.s[0], RIG_RW)[i] = (uint8_t)(i * 7);
    CHECK_EQ(post(&r, 515, MRC_WR_RDMA_WRITE, 0), 1);
    hear(&r, 0, &h, true);
    CHECK_EQ(h.n, 3);
    CHECK_EQ(h.tx[2].payload_len, 3);
    CHECK_EQ(h.p[2].pad, 1);
    CHECK_EQ(mrc_tx_udp_len(&h.tx[2]) % 4, 0);
    CHECK_MEM(rig_buf(&r.s[1], RIG_RW) + 1000, rig_buf(&r.s[0], RIG_RW), 515);
    CHECK_EQ(rig_buf(&r.s[1], RIG_RW)[1515], 0x5A); /* the pad is not placed */
    rig_close(&r);
}

/* B.2.3: all but rtx, EV and timestamp as the first time. */
TEST(packets__of_a_retransmission)
{
    struct rig r;
    struct heard h;
    struct heard again;
    open_pair(&r);
    CHECK_EQ(post(&r, 700, MRC_WR_RDMA_WRITE_WITH_IMM, MRC_SEND_SIGNALED), 1);
    hear(&r, 0, &h, false);
    CHECK_EQ(h.n, 3);
    size_t seen = 0;
    for (int round = 0; round < 200 && seen < 3; round++) {
        r.now += 100 * MRC_USEC;
        mrc_engine_tick(r.s[0].e, r.now);
        hear(&r, 0, &again, false);
        for (size_t i = 0; i < again.n; i++) {
            if (again.p[i].opcode == MRC_OP_PROBE)
                continue;
            struct mrc_pkt p = again.p[i];
            CHECK(p.rtx);
            CHECK(again.tx[i].ev != h.tx[seen].ev);
            p.rtx = false;
            p.tx_timestamp = h.p[seen].tx_timestamp;
            p.payload = h.p[seen].payload;
            CHECK(memcmp(&p, &h.p[seen], sizeof p) == 0);
            seen++;
        }
    }
    CHECK_EQ(seen, 3);
    rig_close(&r);
}

/* ---- answers ---- */

TEST(packets__of_a_sack_and_an_ack) /* A.4, A.6, A.7, A.8 */
{
    struct rig r;
    struct heard h;
    open_pair(&r);
    CHECK_EQ(post(&r, 700, MRC_WR_RDMA_WRITE, MRC_SEND_SIGNALED), 1);
    hear(&r, 0, &h, true);
    const uint32_t ev = h.tx[2].ev;
    hear(&r, 1, &h, true);
    CHECK(h.n >= 2);
    const struct mrc_pkt *s = &h.p[0]; /* H15: before the transport ACK */
    const struct mrc_pkt *a = &h.p[h.n - 1];
    CHECK_EQ(s->opcode, MRC_OP_SACK);
    CHECK_EQ(s->dqp, r.s[0].qpn);
    CHECK_EQ(s->psn, s->cack_psn);
    CHECK_EQ(s->cack_psn, 0);
    CHECK(!s->a && !s->rtx && !s->pr && !s->se && !s->m_bit);
    CHECK_EQ(s->ack_psn_offset, 0);
    CHECK_EQ(s->entropy, ev);
    CHECK_EQ(s->cc_type, 0);
    CHECK_EQ(s->cc_fl, 0);
    CHECK_EQ(s->mpr, 0);        /* static */
    CHECK(s->sack_offset >= 1); /* H40 */
    CHECK_EQ(s->sack_bitmap, 0);
    CHECK_EQ(s->ooo_count, 0);
    CHECK_EQ(s->spdcid, r.s[1].qpn & 0xFFFF); /* H5 */
    CHECK_EQ(s->dpdcid, r.s[0].qpn & 0xFFFF);
    CHECK_EQ(a->opcode, MRC_OP_ACK);
    CHECK_EQ(a->dqp, r.s[0].qpn);
    CHECK_EQ(a->psn, 0);
    CHECK_EQ(a->syndrome, 0x1F);
    CHECK_EQ(a->aeth_msn, 1);
    CHECK(!a->a && !a->rtx);
    rig_close(&r);
}

static void nack_of(struct rig *r, struct heard *h, uint8_t dscp)
{
    struct rig_pkt w;
    CHECK_EQ(post(r, 64, MRC_WR_RDMA_WRITE, 0), 1);
    hear(r, 0, h, false);
    CHECK_EQ(h->n, 1);
    rig_from_tx(r, 0, &h->tx[0], &w);
    w.rx.tclass = (uint8_t)(dscp << 2 | 3); /* H33: CE says nothing more */
    rig_deliver(r, 1, &w);
}

TEST(packets__of_a_nack) /* A.4, A.9 */
{
    struct rig r;
    struct heard h;
    open_pair(&r);
    nack_of(&r, &h, RIG_TRIMMED);
    const struct mrc_tx_pkt sent = h.tx[0];
    hear(&r, 1, &h, true);
    CHECK_EQ(h.n, 1);
    const struct mrc_pkt *p = &h.p[0];
    CHECK_EQ(p->opcode, MRC_OP_NACK);
    CHECK_EQ(p->dqp, r.s[0].qpn);
    CHECK_EQ(p->psn, 0xFFFFFE);
    CHECK_EQ(p->cack_psn, 0xFFFFFE);
    CHECK_EQ(p->nack_reason, MRC_NACK_TRIMMED);
    CHECK_EQ(p->entropy, sent.ev);
    CHECK_EQ(p->cc_type, 2); /* H31 */
    CHECK_EQ(p->cc_fl, 0);
    CHECK_EQ(p->vendor_info, 0);
    CHECK(!p->a && !p->rtx);
    CHECK_EQ(rig_qp(&r.s[1])->stats.ce_received, 0);
    rig_close(&r);
}

TEST(packets__trimmed_at_the_last_hop)
{
    struct rig r;
    struct heard h;
    open_pair(&r);
    nack_of(&r, &h, RIG_TRIMMED_LASTHOP);
    hear(&r, 1, &h, true);
    CHECK_EQ(h.n, 1);
    CHECK_EQ(h.p[0].nack_reason, MRC_NACK_TRIMMED_LASTHOP);
    rig_close(&r);
}

/* H31, H10: what only a sender fills in is not looked at. */
TEST(packets__nack_is_taken_whatever_its_cc_type)
{
    for (uint8_t type = 0; type < 16; type++) {
        struct rig r;
        struct heard h;
        struct rig_pkt w;
        open_pair(&r);
        nack_of(&r, &h, RIG_TRIMMED);
        hear(&r, 1, &h, false);
        h.p[0].cc_type = type;
        rig_forge(&r, 0, &h.p[0], 0, &w);
        rig_deliver(&r, 0, &w);
        CHECK_EQ(rig_qp(&r.s[0])->stats.nacks_received, 1);
        hear(&r, 0, &h, true);
        CHECK(h.n == 1 && h.p[0].rtx);
        rig_close(&r);
    }
}

/* A.4, A.10: no PSN, the data class, an id that comes back. */
TEST(packets__of_a_probe_and_its_answer)
{
    struct rig r;
    struct heard h;
    open_pair(&r);
    const struct mrc_pkt f = {.opcode = MRC_OP_PROBE,
                              .dqp = r.s[1].qpn,
                              .psn = 0x123456, /* reserved: S3's senders put an id there */
                              .probe_id = 0xBEEF,
                              .tx_timestamp = 0x1234,
                              .tsr = true, /* H22 */
                              .ftype = 1};
    struct rig_pkt w;
    rig_forge(&r, 1, &f, 0, &w);
    rig_deliver(&r, 1, &w);
    hear(&r, 1, &h, true);
    CHECK_EQ(h.n, 1);
    CHECK_EQ(h.p[0].opcode, MRC_OP_SACK);
    CHECK(h.p[0].pr);
    CHECK_EQ(h.p[0].probe_id, 0xBEEF);
    CHECK_EQ(h.p[0].tx_timestamp, 0x1234);
    CHECK_EQ(h.p[0].entropy, RIG_EV0);
    CHECK_EQ(rig_qp(&r.s[1])->stats.packets_received, 0);

    CHECK_EQ(post(&r, 64, MRC_WR_RDMA_WRITE, MRC_SEND_SIGNALED), 1);
    hear(&r, 0, &h, false);
    for (int round = 0; round < 100 && h.n != 0 && h.p[0].opcode != MRC_OP_PROBE; round++) {
        do {
            r.now += 10 * MRC_USEC;
            mrc_engine_tick(r.s[0].e, r.now);
            hear(&r, 0, &h, false);
        } while (h.n == 0);
    }
    CHECK_EQ(h.p[0].opcode, MRC_OP_PROBE);
    CHECK_EQ(h.p[0].psn, 0);
    CHECK_EQ(h.p[0].dqp, r.s[1].qpn);
    CHECK(!h.p[0].a && !h.p[0].rtx);
    CHECK(!h.p[0].tsr);
    CHECK_EQ(h.p[0].ftype, 1);
    CHECK_EQ(h.p[0].tx_timestamp, (r.now / 128) & 0xFFFF);
    rig_close(&r);
}

/* B.4: the echo of rtx, and CE outside or inside as a mark (A.13.1, field report 68). */
TEST(packets__sack_reflects_rtx_and_both_marks)
{
    for (int how = 0; how < 4; how++) {
        struct rig r;
        struct heard h;
        struct rig_pkt w;
        open_pair(&r);
        const struct mrc_pkt f = {.opcode = MRC_OP_WRITE_ONLY,
                                  .dqp = r.s[1].qpn,
                                  .psn = 0xFFFFFE,
                                  .a = true,
                                  .rtx = how == 1,
                                  .va = rig_va(&r.s[1], RIG_RW),
                                  .r_key = r.s[1].key[RIG_RW],
                                  .payload_len = 4};
        rig_forge(&r, 1, &f, 0, &w);
        w.rx.outer_ce = how == 2;
        w.rx.tclass = how == 3 ? 3 : 2;
        rig_deliver(&r, 1, &w);
        hear(&r, 1, &h, false);
        CHECK_EQ(h.p[0].opcode, MRC_OP_SACK);
        CHECK_EQ(h.p[0].rtx, how == 1);
        CHECK_EQ(h.p[0].mark, how >= 2 ? MRC_MARK_SKIP : MRC_MARK_NONE);
        CHECK_EQ(h.p[0].tx_timestamp, 0); /* it had none (A.8) */
        rig_close(&r);
    }
}

TEST(packets__of_a_nak) /* H32: the PSN of the request; both sides end */
{
    struct rig r;
    struct heard h;
    open_pair(&r);
    CHECK_EQ(post(&r, 64, MRC_WR_RDMA_WRITE, 0), 1);
    CHECK_EQ(post(&r, 64, MRC_WR_RDMA_WRITE, 0), 1);
    CHECK_EQ(mrc_mr_deregister(r.s[1].e, r.s[1].key[RIG_RW]), MRC_OK);
    hear(&r, 0, &h, true);
    CHECK_EQ(h.n, 2);
    hear(&r, 1, &h, true);
    CHECK(h.n >= 1);
    CHECK_EQ(h.p[0].opcode, MRC_OP_ACK);
    CHECK_EQ(h.p[0].syndrome, 0x62);
    CHECK_EQ(h.p[0].psn, 0xFFFFFE);
    CHECK_EQ(rig_qp(&r.s[0])->attr.state, MRC_QPS_ERR);
    CHECK_EQ(rig_qp(&r.s[1])->attr.state, MRC_QPS_ERR);
    CHECK_EQ(mrc_mr_register(r.s[1].e, RIG_PD, rig_buf(&r.s[1], RIG_RW), RIG_BUF, 3, 0x77,
                             &r.s[1].key[RIG_RW]),
             MRC_OK);
    rig_close(&r);
}

TEST(packets__ooo_count_saturates) /* A.8 */
{
    struct rig r;
    struct heard h;
    struct rig_pkt w;
    open_pair(&r);
    rig_qp(&r.s[1])->resp.rx.ooo_count = 40000;
    const struct mrc_pkt f = {.opcode = MRC_OP_PROBE, .dqp = r.s[1].qpn, .ftype = 1};
    rig_forge(&r, 1, &f, 0, &w);
    rig_deliver(&r, 1, &w);
    hear(&r, 1, &h, false);
    CHECK_EQ(h.p[0].ooo_count, 0x7FFF);
    rig_qp(&r.s[1])->resp.rx.ooo_count = 0;
    rig_close(&r);
}

/* A.8, E.1: UDP length + 40 of each new packet, in units of 256 bytes, rounded up, 24 bits. */
TEST(packets__received_bytes_wrap)
{
    struct rig r;
    struct heard h;
    open_pair(&r);
    CHECK_EQ(post(&r, 64, MRC_WR_RDMA_WRITE, MRC_SEND_SIGNALED), 1);
    hear(&r, 0, &h, true);
    const uint32_t nominal = mrc_tx_udp_len(&h.tx[0]) + 40u;
    hear(&r, 1, &h, true);
    CHECK_EQ(h.p[0].rcvd_bytes, (nominal + 255) / 256);
    rig_qp(&r.s[1])->resp.rx.rcvd_bytes = 256ull * 0xABFFFF;
    CHECK_EQ(post(&r, 64, MRC_WR_RDMA_WRITE, MRC_SEND_SIGNALED), 1);
    hear(&r, 0, &h, true);
    hear(&r, 1, &h, true);
    CHECK_EQ(h.p[0].rcvd_bytes, 0xABFFFF + (nominal + 255) / 256);
    rig_qp(&r.s[1])->resp.rx.rcvd_bytes = 256ull * 0xFFFFFF;
    CHECK_EQ(post(&r, 64, MRC_WR_RDMA_WRITE, MRC_SEND_SIGNALED), 1);
    hear(&r, 0, &h, true);
    hear(&r, 1, &h, true);
    CHECK_EQ(h.p[0].rcvd_bytes, (0xFFFFFF + (nominal + 255) / 256) & 0xFFFFFF);
    rig_close(&r);
}

TEST(packets__limits_of_a_message) /* H20 */
{
    struct rig r;
    open_pair(&r);
    CHECK_EQ(post(&r, UINT32_MAX, MRC_WR_RDMA_WRITE, 0), (uint64_t)MRC_ERR_INVAL);
    CHECK_EQ(post(&r, 0x80000001, MRC_WR_RDMA_WRITE, 0), (uint64_t)MRC_ERR_INVAL);
    /* 2^31 is a length like others: only this region is smaller. */
    CHECK_EQ(post(&r, 0x80000000, MRC_WR_RDMA_WRITE, 0), (uint64_t)MRC_ERR_ACCESS);
    rig_close(&r);
}

TEST(packets__numbers_of_queue_pairs) /* A.4: 0, 1 and 2 are never handed out */
{
    struct mrc_engine_cfg cfg = {.mr_max = 1, .cq_max = 1, .path_max = 1, .cc_max = 1};
    const struct mrc_qp_init init = {
        .sq_depth = 1, .rq_depth = 1, .mpr_max = 1, .max_wimm_dest = 1, .ev_max = 1};
    for (cfg.qp_max = 1; cfg.qp_max < 20; cfg.qp_max++) {
        void *mem = malloc(mrc_engine_size(&cfg));
        void *cq = malloc(mrc_cq_size(1));
        void *qp = malloc(mrc_qp_size(&init));
        struct mrc_engine *e = mrc_engine_init(mem, &cfg, 0);
        CHECK_EQ(mrc_cq_create(e, cq, 1), 0);
        for (int n = 0; n < 100; n++) {
            for (uint32_t i = 0; i < cfg.qp_max && n == 50; i++) /* soon round */
                e->qp_generation[i] = (1u << (24 - e->qp_index_bits)) - 2;
            const int qpn = mrc_qp_create(e, qp, &init);
            CHECK(qpn > 2 && qpn <= 0xFFFFFF);
            CHECK(mrc_qp_destroy(e, (uint32_t)qpn) == qp);
        }
        free(mem);
        free(cq);
        free(qp);
    }
}

TEST(packets__path_mtu_is_one_of_five) /* A.1 */
{
    struct rig r;
    rig_open(&r, 5, MRC_CC_FIXED, false);
    rig_reset(&r, 0);
    rig_bring_up(&r, 0, MRC_QPS_INIT);
    for (uint32_t mtu = 0; mtu <= 0xFFFF; mtu++) {
        const bool good = mtu == 256 || mtu == 512 || mtu == 1024 || mtu == 2048 || mtu == 4096;
        struct mrc_qp_attr a = {.state = MRC_QPS_RTR,
                                .path_mtu = (uint16_t)mtu,
                                .dest_qpn = r.s[1].qpn,
                                .path = r.s[0].path_id,
                                .mpr_dest = 1,
                                .max_wimm_dest = 1};
        memcpy(a.dst, r.s[1].addr, 16);
        const int err = mrc_qp_modify(r.s[0].e, r.s[0].qpn, &a,
                                      MRC_QP_STATE | MRC_QP_AV | MRC_QP_RQ_PSN | MRC_QP_PATH |
                                          MRC_QP_MPR_DEST | MRC_QP_WIMM_DEST,
                                      r.now);
        CHECK_EQ(err, good ? MRC_OK : MRC_ERR_INVAL);
        if (!good)
            continue;
        rig_reset(&r, 0);
        rig_bring_up(&r, 0, MRC_QPS_INIT);
    }
    rig_close(&r);
}
