/* SPDX-License-Identifier: BSD-2-Clause */
/* Short cuts do what the long way does (ADR 113). Two pairs of engines get the same calls, but for
 * one thing: one pair is asked for its packets, and given them, one at a time, so that no packet
 * follows another in the same call. All that can be seen must be the same. */
#include "hostile_rig.h"
#include "mrc_path_priv.h"
#include "t.h"

enum { CUT_MAX = RIG_BURST, CUT_ROUNDS = 300 };

struct cut {
    struct rig r[2]; /* 0: one at a time */
    struct mrc_rand rand;
    struct mrc_tx_pkt tx[2][CUT_MAX];
    struct rig_pkt wire[2][2 * CUT_MAX];
    size_t n;
    uint64_t posted;
    uint32_t faults; /* percent */
};

static void cut_set(struct cut *k, uint32_t mask, const struct mrc_qp_attr *a)
{
    for (int i = 0; i < 2; i++)
        for (int side = 0; side < 2; side++)
            RIG_NEED(mrc_qp_modify(k->r[i].s[side].e, k->r[i].s[side].qpn, a, mask, k->r[i].now) ==
                     MRC_OK);
}

/* One packet of each pair is as the other's; places are compared by their offset in the region. */
static void cut_same_packet(const struct cut *k, int from, const struct mrc_tx_pkt *a,
                            const struct mrc_tx_pkt *b)
{
    struct rig_pkt bytes[2];
    struct mrc_pkt p[2];
    const struct mrc_tx_pkt *t[2] = {a, b};
    for (int i = 0; i < 2; i++) {
        const struct rig *r = &k->r[i];
        rig_from_tx(r, from, t[i], &bytes[i]);
        CHECK_EQ(mrc_wire_decode(&p[i], bytes[i].bytes, bytes[i].rx.len, false), MRC_WIRE_OK);
        p[i].payload = NULL;
        if ((mrc_opcode_flags(p[i].opcode) & MRC_OPF_DATA) != 0)
            p[i].va -= rig_va(&r->s[1 - from], RIG_RW);
        const uint32_t sealed = mrc_get32(bytes[i].bytes + bytes[i].rx.len - MRC_ICRC_LEN);
        rig_seal(r, 1 - from, &bytes[i]);
        CHECK_EQ(mrc_get32(bytes[i].bytes + bytes[i].rx.len - MRC_ICRC_LEN), sealed);
    }
    CHECK_MEM(&p[1], &p[0], sizeof p[0]);
    CHECK_EQ(b->ev, a->ev);
    CHECK_EQ(b->lane, a->lane);
    CHECK_EQ(b->port, a->port);
    CHECK_EQ(b->tclass, a->tclass);
    CHECK_EQ(b->train, a->train);
    CHECK_EQ(b->hdr_len, a->hdr_len);
    CHECK_EQ(b->tail_len, a->tail_len);
    if (a->payload_len > 0)
        CHECK_EQ(b->payload - rig_buf(&k->r[1].s[from], RIG_RW),
                 a->payload - rig_buf(&k->r[0].s[from], RIG_RW));
}

static void cut_tx(struct cut *k, int from)
{
    const mrc_ns now = k->r[0].now;
    size_t n = 0;
    while (n < CUT_MAX && mrc_engine_tx(k->r[0].s[from].e, &k->tx[0][n], 1, now) == 1)
        n++;
    k->n = mrc_engine_tx(k->r[1].s[from].e, k->tx[1], CUT_MAX, now);
    CHECK_EQ(k->n, n);
    for (size_t i = 0; i < n && i < k->n; i++)
        cut_same_packet(k, from, &k->tx[0][i], &k->tx[1][i]);
}

/* What a careless or hostile peer or network makes of a packet, to both copies. A place in memory
 * is moved by as much as in the other; what is broken after the iCRC was made stays so. */
static void cut_spoil(struct cut *k, int to, struct rig_pkt *a, struct rig_pkt *b)
{
    const uint32_t at = mrc_rand_below(&k->rand, mrc_min32(a->rx.len, 40));
    const uint8_t bit = (uint8_t)(1 << mrc_rand_below(&k->rand, 8));
    const uint32_t kind = mrc_rand_below(&k->rand, 6);
    struct rig_pkt *p[2] = {a, b};
    for (int i = 0; i < 2; i++) {
        switch (kind) {
        case 0: p[i]->rx.tclass |= 3; break; /* marked */
        case 1: p[i]->rx.outer_ce = true; break;
        case 2: p[i]->rx.src[3] ^= bit; break;
        case 3: p[i]->bytes[at] ^= bit; break; /* broken */
        case 4: p[i]->rx.sport ^= bit & 3; break;
        default: /* whole, with another field */
            if (at < 16 || at >= 24)
                p[i]->bytes[at] ^= bit;
            break;
        }
        if (kind >= 4)
            rig_seal(&k->r[i], to, p[i]);
    }
}

/* What left goes across: some of it lost, twice, late or spoilt, alike for both pairs. */
static void cut_rx(struct cut *k, int from)
{
    const bool congested = mrc_rand_below(&k->rand, 30) < k->faults; /* all are marked */
    size_t n = 0;
    for (size_t i = 0; i < k->n; i++) {
        const uint32_t fate = mrc_rand_below(&k->rand, 100);
        for (int copy = 0; copy < (fate < k->faults ? (int)(fate % 3) : 1); copy++, n++) {
            for (int j = 0; j < 2; j++) {
                rig_from_tx(&k->r[j], from, &k->tx[j][i], &k->wire[j][n]);
                k->wire[j][n].rx.tclass |= congested ? 3 : 0;
            }
            if (mrc_rand_below(&k->rand, 100) < k->faults)
                cut_spoil(k, 1 - from, &k->wire[0][n], &k->wire[1][n]);
        }
    }
    for (size_t i = 1; i < n; i++) {
        if (mrc_rand_below(&k->rand, 100) >= k->faults)
            continue;
        for (int j = 0; j < 2; j++) {
            static struct rig_pkt swap;
            swap = k->wire[j][i];
            k->wire[j][i] = k->wire[j][i - 1];
            k->wire[j][i - 1] = swap;
        }
    }
    static struct mrc_rx_pkt rx[2 * CUT_MAX];
    uint8_t *block[2 * CUT_MAX];
    for (size_t i = 0; i < n; i++) {
        rig_deliver(&k->r[0], 1 - from, &k->wire[0][i]);
        rx[i] = k->wire[1][i].rx;
        block[i] = malloc(rx[i].len);
        memcpy(block[i], k->wire[1][i].bytes, rx[i].len);
        rx[i].bytes = block[i];
    }
    mrc_engine_rx(k->r[1].s[1 - from].e, rx, n, k->r[1].now);
    for (size_t i = 0; i < n; i++)
        free(block[i]);
}

static void cut_same(const struct cut *k)
{
    for (int side = 0; side < 2; side++) {
        const struct rig_side *a = &k->r[0].s[side];
        const struct rig_side *b = &k->r[1].s[side];
        const struct mrc_qp *p = rig_qp(a);
        const struct mrc_qp *q = rig_qp(b);
        CHECK_MEM(&q->stats, &p->stats, sizeof p->stats);
        CHECK_MEM(b->e->env.drops, a->e->env.drops, sizeof a->e->env.drops);
        CHECK_MEM(rig_buf(b, RIG_RW), rig_buf(a, RIG_RW), RIG_BUF);
        CHECK_EQ(q->resp.due_tail, p->resp.due_tail);
        CHECK_EQ(q->resp.sack_trigger_bytes, p->resp.sack_trigger_bytes);
        CHECK_EQ(q->resp.rx.cack.v, p->resp.rx.cack.v);
        CHECK_EQ(q->resp.rx.rcvd_bytes, p->resp.rx.rcvd_bytes);
        CHECK_EQ(q->resp.rx.ooo_count, p->resp.rx.ooo_count);
        CHECK_MEM(&q->cc->nscc, &p->cc->nscc, sizeof p->cc->nscc);
        CHECK_EQ(q->cc->inflight, p->cc->inflight);
        CHECK_EQ(q->req.inflight, p->req.inflight);
        CHECK_EQ(q->req.backlog, p->req.backlog);
        CHECK_EQ(q->req.train_left, p->req.train_left);
        CHECK_EQ(q->req.tx.order, p->req.tx.order);
        CHECK_EQ(q->req.tx.inflight_count, p->req.tx.inflight_count);
        CHECK_EQ(q->req.report_max_ns, p->req.report_max_ns);
        CHECK_EQ(q->attr.state, p->attr.state);
        CHECK_EQ(mrc_engine_deadline(b->e), mrc_engine_deadline(a->e));
        /* One may have been told to send what the next packet said had arrived. */
        CHECK(mrc_engine_tx_pending(a->e) || !mrc_engine_tx_pending(b->e));
        for (uint16_t ev = 0; ev < RIG_EVS; ev++) {
            struct mrc_path_stats s[2];
            memset(s, 0, sizeof s);
            mrc_path_stats(a->path, ev, &s[0]);
            mrc_path_stats(b->path, ev, &s[1]);
            CHECK_MEM(&s[1], &s[0], sizeof s[0]);
        }
    }
}

static void cut_post(struct cut *k)
{
    static const uint32_t len[] = {0, 1, 255, 256, 257, 1024, 4000, 8192, 16384};
    const uint32_t n = len[mrc_rand_below(&k->rand, sizeof len / sizeof len[0])];
    const uint64_t off = mrc_rand_below(&k->rand, RIG_BUF - n + 1);
    const uint8_t op =
        mrc_rand_below(&k->rand, 8) == 0 ? MRC_WR_RDMA_WRITE_WITH_IMM : MRC_WR_RDMA_WRITE;
    const uint64_t recv = k->posted;
    for (int i = 0; i < 2; i++) {
        (void)mrc_qp_post_recv(k->r[i].s[1].e, k->r[i].s[1].qpn, &recv, 1);
        (void)rig_post(&k->r[i], 0, off, n, op);
    }
    k->posted++;
}

static uint64_t cut_run(uint64_t seed, uint32_t faults, uint8_t cc, uint8_t train, uint8_t stamps)
{
    static struct cut k;
    const struct mrc_qp_attr a = {.train_max = train};
    struct mrc_wc wc[16];
    const uint64_t cwnd = seed % 2 == 0 ? 1 << 20 : 20000; /* the small one asks for answers */
    uint64_t done = 0;
    memset(&k, 0, sizeof k);
    mrc_rand_seed(&k.rand, seed);
    k.faults = faults;
    for (int i = 0; i < 2; i++) {
        rig_open(&k.r[i], 0xFFFF00, cc, (seed & 1) != 0);
        rig_qp(&k.r[i].s[0])->req.timestamps = stamps != 0;
        rig_qp(&k.r[i].s[0])->req.window = rig_qp(&k.r[i].s[0])->req.window_own =
            seed % 3 == 0 ? 40 : RIG_MPR * MRC_MPR_UNIT;
        k.r[i].s[0].cc.cfg.max_cwnd_bytes = cwnd;
        k.r[i].s[0].cc.nscc.max_wnd = k.r[i].s[0].cc.nscc.cwnd = (double)cwnd;
        for (uint32_t n = 0; n < RIG_BUF; n++)
            rig_buf(&k.r[i].s[0], RIG_RW)[n] = (uint8_t)(n * 7 + (n >> 8));
    }
    cut_set(&k, MRC_QP_TRAIN, &a);
    for (int round = 0; round < CUT_ROUNDS && t_failures == 0; round++) {
        while (mrc_rand_below(&k.rand, 3) != 0)
            cut_post(&k);
        const mrc_ns step = mrc_rand_below(&k.rand, 8) == 0 ? MRC_MSEC : 20 * MRC_USEC;
        k.r[0].now += step;
        k.r[1].now += step;
        for (int from = 0; from < 2; from++) {
            cut_tx(&k, from);
            cut_rx(&k, from);
            for (int i = 0; i < 2; i++)
                mrc_engine_tick(k.r[i].s[from].e, k.r[i].now);
        }
        for (int side = 0; side < 2; side++) {
            const int n = mrc_cq_poll(k.r[0].s[side].e, 0, wc, 16);
            CHECK_EQ(mrc_cq_poll(k.r[1].s[side].e, 0, wc, 16), n);
            done += (uint64_t)n;
        }
        cut_same(&k);
    }
    CHECK(rig_guards_ok(&k.r[1]));
    for (int i = 0; i < 2; i++)
        rig_close(&k.r[i]);
    return done;
}

/* The parts by themselves: what the engines of one pair cannot tell from the other. */

TEST(wire_follows__as_decoded)
{
    struct mrc_rand rand;
    uint32_t followed = 0;
    mrc_rand_seed(&rand, 5);
    for (int round = 0; round < 200000; round++) {
        uint8_t a[2][128];
        struct mrc_pkt p;
        struct mrc_pkt whole;
        for (uint32_t i = 0; i < sizeof a[0]; i++)
            a[0][i] = (uint8_t)mrc_rand_next(&rand);
        a[0][0] = mrc_rand_below(&rand, 2) == 0 ? MRC_OP_WRITE_FIRST : MRC_OP_WRITE_MIDDLE;
        a[0][1] &= 0xF0;
        if (mrc_rand_below(&rand, 2) == 0)
            a[0][8] |= 0x10; /* TSETH */
        memcpy(a[1], a[0], sizeof a[0]);
        a[1][0] = mrc_rand_below(&rand, 8) == 0 ? MRC_OP_WRITE_LAST : MRC_OP_WRITE_MIDDLE;
        mrc_put32(a[1] + 8, (mrc_get32(a[1] + 8) & 0x7F000000) | mrc_rand_below(&rand, 1 << 24) |
                                mrc_rand_below(&rand, 2) << 31);
        for (uint32_t n = mrc_rand_below(&rand, 3); n > 0; n--)
            a[1][mrc_rand_below(&rand, 36)] ^= (uint8_t)(1 << mrc_rand_below(&rand, 8));
        CHECK_EQ(mrc_wire_decode(&p, a[0], sizeof a[0], false), MRC_WIRE_OK);
        if (!mrc_wire_follows(&p, a[0], a[1]))
            continue;
        mrc_wire_follow(&p, a[0], a[1]);
        followed++;
        CHECK_EQ(mrc_wire_decode(&whole, a[1], sizeof a[1], false), MRC_WIRE_OK);
        CHECK_MEM(&p, &whole, sizeof p);
    }
    CHECK(followed > 50000);
}

TEST(wire_middle__as_encoded)
{
    struct mrc_rand rand;
    mrc_rand_seed(&rand, 6);
    for (int round = 0; round < 20000; round++) {
        uint8_t hdr[2][MRC_HDR_MAX];
        struct mrc_pkt p = {.opcode = round % 2 == 0 ? MRC_OP_WRITE_FIRST : MRC_OP_WRITE_MIDDLE,
                            .p_key = 0xFFFF,
                            .dqp = mrc_rand_below(&rand, 1 << 24),
                            .psn = mrc_rand_below(&rand, 1 << 24),
                            .a = mrc_rand_below(&rand, 2) == 0,
                            .ts = mrc_rand_below(&rand, 2) == 0,
                            .tx_timestamp = (uint16_t)mrc_rand_next(&rand),
                            .ftype = 1,
                            .msn = (uint16_t)mrc_rand_next(&rand),
                            .va = mrc_rand_next(&rand),
                            .r_key = (uint32_t)mrc_rand_next(&rand),
                            .dmalen = (uint32_t)mrc_rand_next(&rand)};
        mrc_wire_encode(hdr[0], &p);
        p.opcode = MRC_OP_WRITE_MIDDLE;
        p.psn = mrc_rand_below(&rand, 1 << 24);
        p.a = mrc_rand_below(&rand, 2) == 0;
        p.va = mrc_rand_next(&rand);
        mrc_wire_middle(hdr[0], p.psn, p.a, p.va);
        mrc_wire_encode(hdr[1], &p);
        CHECK_MEM(hdr[0], hdr[1], sizeof hdr[1]);
    }
}

enum { CUT_WINDOW = 64, CUT_EVS = 3 };

/* All but what nobody reads: links of slots that are not in flight. */
static void cut_same_track(const struct mrc_txtrack *a, const struct mrc_txtrack *b)
{
    CHECK_EQ(b->unack.v, a->unack.v);
    CHECK_EQ(b->ar_passed.v, a->ar_passed.v);
    CHECK_EQ(b->newest_acked_ns, a->newest_acked_ns);
    CHECK_EQ(b->inflight_count, a->inflight_count);
    CHECK_EQ(b->acked_count, a->acked_count);
    CHECK_EQ(b->lost_count, a->lost_count);
    CHECK_EQ(b->head, a->head);
    CHECK_EQ(b->tail, a->tail);
    CHECK_MEM(b->ev, a->ev, CUT_EVS * sizeof *a->ev);
    for (uint32_t i = 0; i <= a->mask; i++) {
        CHECK_EQ(b->slot[i].state, a->slot[i].state);
        if (a->slot[i].state == MRC_SLOT_INFLIGHT)
            CHECK_MEM(&b->slot[i], &a->slot[i], offsetof(struct mrc_slot, cls) + 1);
    }
}

/* One report, one packet at a time, and by the train. */
static void cut_report(struct mrc_txtrack *a, struct mrc_txtrack *b, struct mrc_psn cack)
{
    const struct mrc_slot *last = NULL;
    for (struct mrc_psn p = mrc_psn_add(a->unack, 1); !mrc_psn_after(p, cack);
         p = mrc_psn_add(p, 1))
        (void)mrc_txtrack_ack(a, p, false);
    mrc_txtrack_advance(a, cack);
    for (uint32_t n; (n = mrc_txtrack_take(b, cack, &last)) > 0;) {
        CHECK_EQ(last->psn, b->unack.v);
        for (; n > 0; n--) {
            const struct mrc_slot *s = mrc_txtrack_slot(b, mrc_psn_add(b->unack, 1 - (int32_t)n));
            CHECK(s->sent_ns == last->sent_ns && s->ev == last->ev && s->cls == last->cls &&
                  s->nominal == last->nominal && s->rtx == 0);
        }
    }
    for (struct mrc_psn p = mrc_psn_add(b->unack, 1); !mrc_psn_after(p, cack);
         p = mrc_psn_add(p, 1))
        (void)mrc_txtrack_ack(b, p, false);
    mrc_txtrack_advance(b, cack);
}

TEST(txtrack_take__as_one_by_one)
{
    static _Alignas(64) uint8_t mem[2][1 << 14];
    struct mrc_txtrack t[2];
    struct mrc_rand rand;
    mrc_rand_seed(&rand, 9);
    for (int i = 0; i < 2; i++) {
        RIG_NEED(mrc_txtrack_bytes(CUT_WINDOW, CUT_WINDOW, CUT_EVS) <= sizeof mem[i]);
        mrc_txtrack_init(&t[i], mem[i], CUT_WINDOW, CUT_WINDOW, CUT_EVS);
        mrc_txtrack_start(&t[i], mrc_psn(0xFFFFC0));
    }
    mrc_ns now = 1;
    uint16_t ev = 0;
    for (int round = 0; round < 40000 && t_failures == 0; round++) {
        const struct mrc_psn next = mrc_psn_add(t[0].max_sent, 1);
        const int32_t out = mrc_psn_diff(t[0].max_sent, t[0].unack);
        const uint32_t what = mrc_rand_below(&rand, 20);
        const struct mrc_psn any =
            mrc_psn_add(t[0].unack, 1 + (int32_t)mrc_rand_below(&rand, (uint32_t)out + 1));
        const bool ar = mrc_rand_below(&rand, 5) == 0;
        const uint16_t size = mrc_rand_below(&rand, 9) == 0 ? 500 : 1000;
        const bool on = t[0].tail != MRC_SLOT_NIL && t[0].slot[t[0].tail].psn == t[0].max_sent.v &&
                        t[0].slot[t[0].tail].rtx == 0 && t[0].slot[t[0].tail].sent_ns == now;
        now += mrc_rand_below(&rand, 12) == 0 ? 100 : 0;
        ev = mrc_rand_below(&rand, 8) == 0 ? (uint16_t)mrc_rand_below(&rand, CUT_EVS) : ev;
        for (int i = 0; i < 2; i++) {
            struct mrc_slot *s;
            if (what < 14) {
                if (out >= CUT_WINDOW)
                    continue;
                if (i == 1 && on && t[1].slot[t[1].tail].sent_ns == now &&
                    t[1].slot[t[1].tail].nominal == size)
                    s = mrc_txtrack_sent_next(&t[1], ev);
                else
                    s = mrc_txtrack_sent(&t[i], next, 0, ev, 0, size, now);
                s->ar = ar;
            } else if (what == 14 && (s = mrc_txtrack_find(&t[i], any)) != NULL &&
                       s->state == MRC_SLOT_INFLIGHT) {
                mrc_txtrack_lose(&t[i], s);
            } else if (what == 15 && (s = mrc_txtrack_find(&t[i], any)) != NULL &&
                       s->state == MRC_SLOT_LOST) {
                mrc_txtrack_sent(&t[i], any, 0, ev, (uint8_t)(ar ? 1 : 0), s->nominal, now);
            } else if (what == 16 && out > 0 && !mrc_psn_after(any, t[i].max_sent)) {
                (void)mrc_txtrack_ack(&t[i], any, false);
                mrc_txtrack_advance(&t[i], t[i].unack);
            }
        }
        if (what > 16 && !mrc_psn_after(any, t[0].max_sent))
            cut_report(&t[0], &t[1], any);
        cut_same_track(&t[0], &t[1]);
    }
}

/* A copy tells nothing of when its original left, nor by which path: no run goes on over it. */
TEST(txtrack_take__a_copy_is_in_no_run)
{
    static _Alignas(64) uint8_t mem[1 << 14];
    struct mrc_txtrack t;
    const struct mrc_slot *last;
    mrc_txtrack_init(&t, mem, CUT_WINDOW, CUT_WINDOW, CUT_EVS);
    mrc_txtrack_start(&t, mrc_psn(0));
    for (uint32_t n = 0; n < 2; n++)
        mrc_txtrack_sent(&t, mrc_psn(n), 0, 0, 0, 1000, 1);
    mrc_txtrack_lose(&t, mrc_txtrack_slot(&t, mrc_psn(1)));
    mrc_txtrack_sent(&t, mrc_psn(1), 0, 0, 0, 1000, 1);
    CHECK_EQ(mrc_txtrack_take(&t, mrc_psn(1), &last), 1);
    CHECK_EQ(mrc_txtrack_take(&t, mrc_psn(1), &last), 0);
}

TEST(short_cuts__what_a_train_delivers_is_counted_by_the_packet)
{
    struct rig r;
    const struct mrc_qp_attr a = {.train_max = 8};
    rig_open(&r, 0xFFFFF0, MRC_CC_NSCC, false);
    CHECK_EQ(mrc_qp_modify(r.s[0].e, r.s[0].qpn, &a, MRC_QP_TRAIN, r.now), MRC_OK);
    CHECK_EQ(rig_post(&r, 0, 0, 40 * RIG_MTU, MRC_WR_RDMA_WRITE), 1);
    CHECK(rig_settle(&r));
    CHECK_EQ(r.s[0].path->passed, 40);
    rig_close(&r);
}

TEST(path_on_sent_more__as_one_by_one)
{
    struct rig r[2];
    struct mrc_path_stats s[2];
    for (int i = 0; i < 2; i++)
        rig_open(&r[i], 0, MRC_CC_NSCC, false);
    for (uint32_t n = 1, sent = 0; sent < 30000; sent += n, n = n % 16 + 1) {
        for (uint32_t k = 0; k < n; k++)
            mrc_path_on_sent(r[0].s[0].path, (uint16_t)(n % RIG_EVS), 1000, false);
        mrc_path_on_sent_more(r[1].s[0].path, (uint16_t)(n % RIG_EVS), n, 1000);
        for (int i = 0; i < 2; i++) {
            memset(&s[i], 0, sizeof s[i]);
            mrc_path_stats(r[i].s[0].path, (uint16_t)(n % RIG_EVS), &s[i]);
        }
        CHECK_MEM(&s[1], &s[0], sizeof s[0]);
        CHECK_EQ(r[1].s[0].path->recent_sent, r[0].s[0].path->recent_sent);
        for (uint16_t ev = 0; ev < RIG_EVS; ev++)
            CHECK_EQ(r[1].s[0].path->entry[ev].recent_sent, r[0].s[0].path->entry[ev].recent_sent);
    }
    for (int i = 0; i < 2; i++)
        rig_close(&r[i]);
}

/* Nothing leaves 2^22 PSNs beyond the oldest request that is not complete: nobody could tell then
 * whether that is behind or ahead. The last that may asks for an answer. */
TEST(short_cuts__end_where_the_oldest_request_is_too_far_behind)
{
    enum { AHEAD = 1 << 22, LEFT = 5 };
    static struct cut k;
    memset(&k, 0, sizeof k);
    for (int i = 0; i < 2; i++) {
        rig_open(&k.r[i], 0xFFFF00, MRC_CC_NSCC, false);
        CHECK_EQ(rig_post(&k.r[i], 0, 0, 1, MRC_WR_RDMA_WRITE), 1);
    }
    cut_tx(&k, 0);
    for (int i = 0; i < 2; i++) {
        struct mrc_req *r = &rig_qp(&k.r[i].s[0])->req;
        r->sq[r->head & r->sq_mask].first = mrc_psn_add(r->tx.max_sent, LEFT - AHEAD);
        CHECK_EQ(rig_post(&k.r[i], 0, 0, 20 * RIG_MTU, MRC_WR_RDMA_WRITE), 1);
    }
    cut_tx(&k, 0);
    CHECK_EQ(k.n, LEFT);
    CHECK_EQ(k.tx[1][LEFT - 2].hdr[8] & 0x80, 0);
    CHECK_EQ(k.tx[1][LEFT - 1].hdr[8] & 0x80, 0x80);
    for (int i = 0; i < 2; i++)
        rig_close(&k.r[i]);
}

TEST(short_cuts__clean_network)
{
    for (uint8_t train = 0; train <= 8; train += 4)
        for (uint8_t stamps = 0; stamps < 2; stamps++)
            CHECK(cut_run(train + stamps, 0, MRC_CC_NSCC, train, stamps) > 200);
}

TEST(short_cuts__faults_and_forged_fields)
{
    uint64_t done = 0;
    for (uint64_t seed = 1; seed <= 60; seed++)
        done += cut_run(seed, (uint32_t)(1 + seed % 12), seed % 3 == 0 ? MRC_CC_FIXED : MRC_CC_NSCC,
                        (uint8_t)(seed % 5 * 2), seed % 4 == 0);
    CHECK(done > 1000);
}
