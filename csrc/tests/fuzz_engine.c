/* SPDX-License-Identifier: BSD-2-Clause */
/* A connected pair of engines under a program of hostile acts: forged packets with a right iCRC and
 * mostly right numbers, caught packets changed, cut, repeated and held back, between posts, ticks
 * and leaps of time. No input may end in a panic, a sanitizer's report, a write outside a region, a
 * deadline in the past, or more in flight than the window.
 *
 * With clang: -fsanitize=fuzzer,address,undefined. Without: add -DMRC_FUZZ_MAIN for a main that
 * replays files, or random programs: fuzz_engine [-n COUNT] [-s SEED] [FILE ...]. */
#include "hostile_rig.h"

_Noreturn void mrc_panic(const char *file, int line, const char *what)
{
    fprintf(stderr, "%s:%d: panic: %s\n", file, line, what);
    abort();
}

enum { FUZZ_CAUGHT = 16, FUZZ_STEPS = 400 };

struct fuzz {
    struct rig r;
    const uint8_t *in;
    size_t left;
    struct rig_pkt caught[2][FUZZ_CAUGHT]; /* by the side they go to */
    uint32_t caught_count[2];
};

/* ---- the program's bytes ---- */

static uint64_t fuzz_take(struct fuzz *f, size_t bytes)
{
    uint64_t v = 0;
    for (; bytes > 0 && f->left > 0; bytes--, f->left--)
        v = v << 8 | *f->in++;
    return v;
}
static uint8_t fuzz_u8(struct fuzz *f) { return (uint8_t)fuzz_take(f, 1); }
static uint32_t fuzz_below(struct fuzz *f, uint32_t n) { return fuzz_u8(f) % n; }

/* ---- forging ---- */

/* A PSN that means something to this flow, give or take. */
static uint32_t fuzz_psn(struct fuzz *f, int to)
{
    const struct mrc_qp *q = rig_qp(&f->r.s[to]);
    const struct mrc_qp *peer = rig_qp(&f->r.s[1 - to]);
    const int8_t off = (int8_t)fuzz_u8(f);
    uint32_t base = 0;
    switch (fuzz_below(f, 8)) {
    case 0: base = q->req.tx.unack.v; break;
    case 1: base = q->req.tx.max_sent.v; break;
    case 2: base = q->resp.rx.cack.v; break;
    case 3: base = q->resp.rx.max_rcv.v; break;
    case 4: base = q->resp.rx.cack.v + q->resp.rx.window; break;
    case 5: base = peer->req.tx.max_sent.v; break;
    case 6: base = q->resp.rx.cack.v + (uint32_t)fuzz_below(f, 200) * 5; break;
    default: return (uint32_t)fuzz_take(f, 3);
    }
    return (base + (uint32_t)off / 4) & 0xFFFFFF;
}

static void fuzz_reth(struct fuzz *f, int to, struct mrc_pkt *p)
{
    const struct rig_side *s = &f->r.s[to];
    const uint32_t how = fuzz_below(f, 16);
    const enum rig_region k = how < 14 ? RIG_RW : how == 14 ? RIG_LOCAL : RIG_OTHER_PD;
    p->r_key = s->key[k];
    p->va = rig_va(s, k);
    switch (fuzz_below(f, 8)) {
    case 0: p->va += (uint64_t)(int64_t)(int8_t)fuzz_u8(f); break;
    case 1: p->va += RIG_BUF + (uint64_t)(int64_t)(int8_t)fuzz_u8(f); break;
    case 2: p->va = fuzz_take(f, 8); break;
    case 3: p->r_key = (uint32_t)fuzz_take(f, 4); break;
    default: p->va += (uint64_t)fuzz_below(f, 128) * 255; break;
    }
    p->dmalen = fuzz_below(f, 4) == 0 ? (uint32_t)fuzz_take(f, 4) : p->payload_len;
}

static void fuzz_data(struct fuzz *f, int to, struct mrc_pkt *p)
{
    p->psn = fuzz_psn(f, to);
    p->msn = (uint16_t)fuzz_u8(f);
    p->imm = 0xDEADBEEF;
    switch (fuzz_below(f, 8)) {
    case 0: p->payload_len = fuzz_below(f, 256); break;
    case 1: p->payload_len = 0; break;
    case 2: p->payload_len = (uint32_t)fuzz_take(f, 2) % 8000; break;
    default: p->payload_len = RIG_MTU; break;
    }
    fuzz_reth(f, to, p);
}

static void fuzz_sack(struct fuzz *f, int to, struct mrc_pkt *p)
{
    const struct mrc_qp *q = rig_qp(&f->r.s[to]);
    p->cack_psn = fuzz_psn(f, to);
    p->psn = p->cack_psn;
    p->pr = fuzz_below(f, 4) == 0;
    p->mark = (uint8_t)fuzz_below(f, 4);
    p->sack_offset = fuzz_below(f, 4) == 0 ? (int16_t)fuzz_take(f, 2) : 1;
    p->sack_bitmap = fuzz_take(f, fuzz_below(f, 9));
    p->ack_psn_offset =
        fuzz_below(f, 4) == 0 ? (int16_t)fuzz_take(f, 2) : (int16_t)(int8_t)fuzz_u8(f);
    p->probe_id = (uint16_t)fuzz_take(f, 2);
    if (p->pr && fuzz_below(f, 2) == 0)
        p->probe_id = (uint16_t)(MRC_PROBE_ID_TAIL | ((q->req.probe_seq - 1) & 0x7FFF));
    p->mpr = fuzz_u8(f);
    p->ooo_count = fuzz_below(f, 3) == 0 ? (uint16_t)(fuzz_take(f, 2) & 0x7FFF)
                                         : (uint16_t)q->req.tx.acked_count;
    p->restore_cwnd = fuzz_below(f, 4) == 0;
    p->rcv_cwnd_pen = fuzz_below(f, 4) == 0 ? fuzz_u8(f) & 0x7F : 0;
    p->rcvd_bytes = fuzz_below(f, 2) == 0 ? (uint32_t)fuzz_take(f, 3)
                                          : (q->req.prev_rcvd + fuzz_u8(f)) & 0xFFFFFF;
}

static void fuzz_endpoint(struct fuzz *f, struct mrc_pkt *p)
{
    const uint8_t what = fuzz_u8(f);
    if ((what & 0x80) != 0)
        p->opcode = MRC_OP_EP_RESPONSE;
    if ((what & 0x70) != 0)
        p->dqp = MRC_QPN_EP;
    p->ep_op = what & 3;
    p->vendor_info = what & 4;
    p->psn = fuzz_below(f, 8);
    p->port_status_mask = fuzz_u8(f);
    p->tx_timestamp = (uint16_t)fuzz_take(f, 2);
}

static void fuzz_forge(struct fuzz *f)
{
    static const uint8_t ops[] = {0xC6, 0xC7, 0xC8, 0xC9, 0xCA, 0xCB, 0xCA, 0xC7,
                                  0xD1, 0xDC, 0xDC, 0xDC, 0xDD, 0xDD, 0xDE, 0xD8};
    const uint8_t how = fuzz_u8(f);
    const int to = how & 1;
    const struct rig_side *s = &f->r.s[to];
    struct mrc_pkt p;
    struct rig_pkt out;
    memset(&p, 0, sizeof p);
    p.opcode = ops[(how >> 1) & 15];
    p.dqp = s->qpn;
    p.rtx = (how & 0x20) != 0;
    p.a = (how & 0x40) != 0;
    p.ts = (how & 0x80) != 0;
    p.entropy = RIG_EV0 + fuzz_below(f, RIG_EVS + 1);
    if ((mrc_opcode_flags(p.opcode) & MRC_OPF_DATA) != 0) {
        fuzz_data(f, to, &p);
    } else if (p.opcode == MRC_OP_SACK) {
        fuzz_sack(f, to, &p);
    } else if (p.opcode == MRC_OP_NACK) {
        static const uint8_t reasons[] = {1, 2, 6, 7, 0x0A, 0x0B, 0x55, 1, 1, 1, 0x0B, 0x19};
        p.cack_psn = fuzz_psn(f, to);
        p.nack_reason = reasons[fuzz_below(f, sizeof reasons)];
        const struct mrc_slot *slot = mrc_txtrack_find(&rig_qp(s)->req.tx, mrc_psn(p.cack_psn));
        if (slot != NULL)
            p.entropy = mrc_path_entry(s->path, slot->ev)->ev;
    } else if (p.opcode == MRC_OP_ACK) {
        static const uint8_t syndromes[] = {0x1F, 0x1F, 0x1F, 0x1F, 0x1F, 0x1F, 0x1F, 0x00,
                                            0x20, 0x40, 0x9F, 0x61, 0x62, 0x63, 0x60, 0x7F};
        p.psn = fuzz_psn(f, to);
        p.syndrome = syndromes[fuzz_below(f, sizeof syndromes)];
    } else if (p.opcode == MRC_OP_EP_REQUEST) {
        fuzz_endpoint(f, &p);
    } else {
        p.probe_id = (uint16_t)fuzz_take(f, 2);
    }
    rig_forge(&f->r, to, &p, fuzz_u8(f), &out);
    const uint8_t air = fuzz_u8(f);
    if ((air & 0x0F) == 0)
        out.rx.tclass = RIG_TRIMMED << 2;
    if ((air & 0x0F) == 1)
        out.rx.tclass = RIG_TRIMMED_LASTHOP << 2;
    if ((air & 0x0F) == 2)
        out.rx.outer_ce = true;
    for (uint32_t n = 1 + (air >> 6); n > 0; n--)
        rig_deliver(&f->r, to, &out);
}

/* ---- the wire ---- */

/* One burst of a side: each packet passes, is lost, is doubled, or is caught for later. */
static void fuzz_move(struct fuzz *f, int from)
{
    struct mrc_tx_pkt tx[RIG_BURST];
    struct rig_pkt p;
    const uint32_t max = 1 + fuzz_below(f, RIG_BURST);
    uint64_t fate = fuzz_take(f, 4);
    const size_t n = mrc_engine_tx(f->r.s[from].e, tx, max, f->r.now);
    for (size_t i = 0; i < n; i++, fate = fate >> 2 | fate << 62) {
        rig_from_tx(&f->r, from, &tx[i], &p);
        if ((fate & 3) == 1)
            continue;
        if ((fate & 3) == 2)
            f->caught[1 - from][f->caught_count[1 - from]++ % FUZZ_CAUGHT] = p;
        else
            rig_deliver(&f->r, 1 - from, &p);
        if ((fate & 3) == 3)
            rig_deliver(&f->r, 1 - from, &p);
    }
}

/* A caught packet, changed in some bytes or cut, with or without an iCRC that fits. */
static void fuzz_caught(struct fuzz *f)
{
    const int to = fuzz_u8(f) & 1;
    const uint32_t have = mrc_min32(f->caught_count[to], FUZZ_CAUGHT);
    if (have == 0)
        return;
    struct rig_pkt p = f->caught[to][fuzz_below(f, have)];
    const uint8_t how = fuzz_u8(f);
    for (uint32_t n = how & 3; n > 0 && p.rx.len > 0; n--) {
        const uint32_t at = fuzz_below(f, mrc_min32(p.rx.len, 64));
        p.bytes[at] = (uint8_t)(p.bytes[at] ^ fuzz_u8(f));
    }
    if ((how & 4) != 0)
        p.rx.len = fuzz_below(f, p.rx.len + 1);
    if ((how & 0x30) != 0)
        rig_seal(&f->r, to, &p);
    if ((how & 0xC0) == 0xC0)
        p.rx.tclass = RIG_TRIMMED << 2;
    rig_deliver(&f->r, to, &p);
}

/* ---- the application, and time ---- */

static void fuzz_post(struct fuzz *f)
{
    const uint8_t how = fuzz_u8(f);
    const uint32_t len = (how & 2) != 0 ? (uint32_t)fuzz_take(f, 2) % 20000 : fuzz_below(f, 256);
    const uint8_t op = (how & 4) != 0 ? MRC_WR_RDMA_WRITE_WITH_IMM : MRC_WR_RDMA_WRITE;
    (void)rig_post(&f->r, how & 1, fuzz_below(f, 64), len, op);
}

static void fuzz_recv(struct fuzz *f)
{
    const struct rig_side *s = &f->r.s[fuzz_u8(f) & 1];
    const uint64_t ids[4] = {1, 2, 3, 4};
    (void)mrc_qp_post_recv(s->e, s->qpn, ids, 1 + (int)fuzz_below(f, 4));
}

static void fuzz_poll(struct fuzz *f)
{
    struct mrc_wc wc[8];
    (void)mrc_cq_poll(f->r.s[fuzz_u8(f) & 1].e, 0, wc, 8);
}

static void fuzz_time(struct fuzz *f)
{
    const uint8_t how = fuzz_u8(f);
    f->r.now += ((uint64_t)1 << (how % 36)) + (how >> 4);
    for (int i = 0; i < 2; i++) {
        mrc_engine_tick(f->r.s[i].e, f->r.now);
        MRC_ASSERT(mrc_engine_deadline(f->r.s[i].e) > f->r.now);
    }
}

static void fuzz_probe(struct fuzz *f, const struct rig_side *s)
{
    struct mrc_ep_rsp rsp[4];
    const struct mrc_ep_req req = {.timeout_ns = 1 + fuzz_take(f, 3),
                                   .path = s->path_id,
                                   .ev = RIG_EV0 + fuzz_below(f, RIG_EVS + 1),
                                   .id = (uint16_t)fuzz_below(f, 8),
                                   .dscp = MRC_EP_DSCP_CONTROL};
    (void)mrc_engine_ep_post(s->e, &req, 1, f->r.now);
    (void)mrc_engine_ep_poll(s->e, rsp, (int)fuzz_below(f, 4));
}

/* A receiver is short of something, takes nothing, or offers another window. */
static void fuzz_receiver(struct fuzz *f, struct rig_side *s, uint8_t how)
{
    const struct mrc_qp_attr a = {.rx_paused = how & 1,
                                  .rx_penalty = fuzz_u8(f),
                                  .mpr_dest = (uint16_t)(1 + fuzz_below(f, RIG_MPR))};
    struct mrc_env *env = &s->e->env;
    env->rx.ooo_max = fuzz_below(f, 64);
    env->rx.imm_max = fuzz_below(f, 4);
    env->rx.penalty_percent = (uint8_t)fuzz_below(f, 100);
    env->icrc_skip_percent = (uint8_t)fuzz_below(f, 20);
    env->service_time = (how & 2) != 0;
    mrc_engine_rx_pause(s->e, (how & 12) == 12);
    mrc_engine_rx_backlog(s->e, (how & 1) != 0);
    (void)mrc_qp_modify(s->e, s->qpn, &a, MRC_QP_RX_PAUSED, f->r.now);
    (void)mrc_qp_modify(s->e, s->qpn, &a, MRC_QP_RX_PENALTY, f->r.now);
    (void)mrc_qp_modify(s->e, s->qpn, &a, MRC_QP_MPR_DEST, f->r.now);
}

/* A QP ends, and perhaps lives again, under a new number or the old one. */
static void fuzz_life(struct fuzz *f)
{
    const uint8_t how = fuzz_u8(f);
    struct rig_side *s = &f->r.s[how & 1];
    struct mrc_qp_attr a = {.state = MRC_QPS_ERR};
    switch (how >> 1 & 7) {
    case 0: (void)mrc_qp_modify(s->e, s->qpn, &a, MRC_QP_STATE, f->r.now); break;
    case 1:
        RIG_NEED(mrc_qp_destroy(s->e, s->qpn) == s->qp_mem);
        s->qpn = (uint32_t)mrc_qp_create(s->e, s->qp_mem, &rig_qp_init);
        rig_bring_up(&f->r, how & 1, (enum mrc_qp_state)(how >> 4 & 3));
        break;
    case 2:
    case 3: /* both anew: they may understand each other again */
        for (int i = 0; i < 2; i++)
            rig_reset(&f->r, i);
        for (int i = 0; i < 2; i++)
            rig_bring_up(&f->r, i, MRC_QPS_RTS);
        break;
    case 4:
        (void)mrc_path_set_state(s->path, (uint16_t)fuzz_below(f, RIG_EVS),
                                 (how & 0x80) != 0 ? MRC_EV_GOOD : MRC_EV_DENIED, f->r.now);
        break;
    case 5: {
        const uint8_t x = fuzz_u8(f);
        mrc_engine_lane_failed(s->e, 0, x % RIG_EVS, x < 224 ? MRC_EV_R_SEND_ERROR : MRC_EV_R_MTU,
                               f->r.now);
        break;
    }
    case 6:
        (void)mrc_path_planes_set(s->e, s->path_id, fuzz_u8(f) | 2u, UINT32_MAX);
        fuzz_probe(f, s);
        break;
    default:
        fuzz_poll(f);
        fuzz_receiver(f, s, how >> 4);
        break;
    }
}

static void fuzz_check(const struct fuzz *f)
{
    for (int i = 0; i < 2; i++) {
        const struct mrc_qp *q = rig_qp(&f->r.s[i]);
        const struct mrc_txtrack *t = &q->req.tx;
        MRC_ASSERT(mrc_psn_diff(t->max_sent, t->unack) <= (int32_t)(RIG_MPR * MRC_MPR_UNIT));
        MRC_ASSERT(q->req.inflight >= -(1 << 20) && q->req.inflight <= 4 << 20);
        MRC_ASSERT(q->cc == NULL || q->cc->inflight == q->req.inflight);
        MRC_ASSERT(q->resp.stash_count <= RIG_WIMM);
        const struct mrc_rxload *l = &f->r.s[i].e->env.rx; /* one QP: it holds all that is held */
        const bool ended = q->attr.state == MRC_QPS_ERR;   /* and has given it back */
        MRC_ASSERT(l->ooo_used == (ended ? 0 : q->resp.rx.ooo_count));
        MRC_ASSERT(l->imm_used == (ended ? 0u : q->resp.stash_count));
        MRC_ASSERT(f->r.s[i].e->env.rx_pool.used == q->resp.lent && (!ended || q->resp.lent == 0));
        MRC_ASSERT(q->resp.rx.news_count <= q->resp.rx.ooo_count);
        MRC_ASSERT(q->req.tail - q->req.head <= 16 && q->req.wimm_out <= RIG_WIMM);
        /* A SACK and a transport ACK each, and one more SACK for every arrival above a gap. */
        MRC_ASSERT(q->stats.sacks_sent + q->stats.nacks_sent + q->stats.acks_sent <=
                   3 * f->r.s[i].delivered);
    }
    MRC_ASSERT(rig_guards_ok(&f->r));
}

/* Whatever happened, a new connection over the same engines, paths and controllers works. */
static void fuzz_recovers(struct fuzz *f)
{
    struct mrc_wc wc[RIG_CQ];
    for (int i = 0; i < 2; i++) {
        struct rig_side *s = &f->r.s[i];
        (void)mrc_cq_poll(s->e, 0, wc, RIG_CQ);
        rig_reset(&f->r, i);
        memset(&s->e->env.rx, 0, sizeof s->e->env.rx);
        MRC_ASSERT(s->cc.inflight == 0);
        RIG_NEED(mrc_path_planes_set(s->e, s->path_id, UINT32_MAX, UINT32_MAX) == MRC_OK);
        for (uint16_t k = 0; k < RIG_EVS; k++)
            RIG_NEED(mrc_path_set_state(s->path, k, MRC_EV_GOOD, f->r.now) == MRC_OK);
        if (mrc_cq_overrun(s->e, 0)) /* for good */
            return;
    }
    rig_bring_up(&f->r, 0, MRC_QPS_RTS);
    rig_bring_up(&f->r, 1, MRC_QPS_RTS);
    for (int i = 0; i < 2; i++) {
        (void)mrc_cq_poll(f->r.s[i].e, 0, wc, RIG_CQ);
        memset(rig_buf(&f->r.s[i], RIG_RW) + 3000 * i, 0x33 + i, 3000);
        RIG_NEED(rig_post(&f->r, i, 3000 * (uint64_t)i, 3000, MRC_WR_RDMA_WRITE) == 1);
    }
    MRC_ASSERT(rig_settle(&f->r));
    for (int i = 0; i < 2; i++) {
        MRC_ASSERT(rig_qp(&f->r.s[i])->attr.state == MRC_QPS_RTS);
        MRC_ASSERT(mrc_cq_poll(f->r.s[i].e, 0, wc, RIG_CQ) == 1);
    }
    MRC_ASSERT(memcmp(rig_buf(&f->r.s[0], RIG_RW), rig_buf(&f->r.s[1], RIG_RW), 6000) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct fuzz f;
    f.in = data;
    f.left = size;
    f.caught_count[0] = f.caught_count[1] = 0;
    const uint8_t how = fuzz_u8(&f);
    rig_open(&f.r, (how & 4) != 0 ? 0xFFFFF0 : 5, how % 3, (how & 8) != 0);
    for (int i = 0; (how & 16) != 0 && i < 2; i++) { /* little or nothing is lent */
        struct mrc_pool *const pool = &f.r.s[i].e->env.rx_pool;
        mrc_pool_init(pool, pool->mem - mrc_align(pool->units), how >> 5);
    }
    for (int i = 0; i < FUZZ_STEPS && f.left > 0; i++) {
        switch (fuzz_below(&f, 16)) {
        case 0:
        case 1: fuzz_post(&f); break;
        case 2: fuzz_recv(&f); break;
        case 3:
        case 4: fuzz_move(&f, 0); break;
        case 5: fuzz_move(&f, 1); break;
        case 6: fuzz_time(&f); break;
        case 7:
        case 8: fuzz_caught(&f); break;
        case 9: fuzz_life(&f); break;
        default: fuzz_forge(&f); break;
        }
        if (i % 16 == 0)
            fuzz_check(&f);
    }
    fuzz_check(&f);
    fuzz_recovers(&f);
    rig_close(&f.r);
    return 0;
}

#ifdef MRC_FUZZ_MAIN
static void fuzz_file(const char *name)
{
    static uint8_t buf[1 << 16];
    FILE *file = fopen(name, "rb");
    if (file == NULL) {
        perror(name);
        exit(2);
    }
    const size_t n = fread(buf, 1, sizeof(buf), file);
    fclose(file);
    LLVMFuzzerTestOneInput(buf, n);
}

int main(int argc, char **argv)
{
    unsigned long count = 2000;
    unsigned long long seed = 1;
    bool files = false;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "-n") == 0 && i + 1 < argc) {
            count = strtoul(argv[++i], NULL, 0);
        } else if (strcmp(argv[i], "-s") == 0 && i + 1 < argc) {
            seed = strtoull(argv[++i], NULL, 0);
        } else {
            fuzz_file(argv[i]);
            files = true;
        }
    }
    if (files)
        return 0;
    struct mrc_rand r;
    mrc_rand_seed(&r, seed);
    for (unsigned long k = 0; k < count; k++) {
        uint8_t program[2048];
        for (size_t i = 0; i < sizeof program; i++)
            program[i] = (uint8_t)(mrc_rand_next(&r) >> 56);
        LLVMFuzzerTestOneInput(program, sizeof program);
    }
    printf("%lu programs, seed %llu\n", count, seed);
    return 0;
}
#endif
