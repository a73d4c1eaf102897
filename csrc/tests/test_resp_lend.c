/* SPDX-License-Identifier: BSD-2-Clause */
/* What the receive side of a queue pair borrows (ADR 129): room for immediates that wait, and for
 * what is due; from a pool that peers may ask much of, which so must never be needed. */
#include "resp_rig.h"
#include "t.h"

enum { CQ = 2048, MANY = 600, QPS = 3, ALL = 1 << 16 };

static const struct mrc_qp_init lend_init = {.pd = RIG_PD,
                                             .sq_depth = 16,
                                             .rq_depth = 1024,
                                             .mpr_max = RIG_MPR,
                                             .max_wimm_dest = MANY,
                                             .ev_max = RIG_EVS,
                                             .recv_cq = 1};
static struct mrc_wc wc[CQ];
static void *cq_mem;
static uint32_t first_qpn;

static struct mrc_pool *pool(void) { return &resp_engine()->env.rx_pool; }
static struct mrc_resp *role(void) { return &resp_qp()->resp; }
static int polled(void) { return mrc_cq_poll(resp_engine(), 1, wc, CQ); }

/* The pool has so many units. */
static void lend_pool(uint32_t units)
{
    CHECK_EQ(pool()->used, 0);
    if (units != ALL)
        mrc_pool_init(pool(), pool()->mem - mrc_align(pool()->units), units);
}

/* Another queue pair, of whose peer MANY immediates may be under way, is the one that packets go to
 * from now on. */
static void *lend_qp(void)
{
    struct rig_side *const s = &resp.r.s[1];
    void *const mem = malloc(mrc_qp_size(&lend_init));
    s->qpn = (uint32_t)mrc_qp_create(s->e, mem, &lend_init);
    rig_bring_up(&resp.r, 1, MRC_QPS_RTS);
    role()->max_wimm_dest = MANY;
    for (uint64_t i = 0; i < 1024; i++)
        RIG_NEED(mrc_qp_post_recv(s->e, s->qpn, &i, 1) == 1);
    return mem;
}

static void lend_open(uint32_t units)
{
    resp_open(false);
    cq_mem = malloc(mrc_cq_size(CQ));
    RIG_NEED(mrc_cq_create(resp_engine(), cq_mem, CQ) == 1);
    first_qpn = resp.r.s[1].qpn;
    lend_pool(units);
}

static void lend_close(void)
{
    CHECK_EQ(pool()->used, 0);
    resp.r.s[1].qpn = first_qpn;
    resp_close();
    free(cq_mem);
}

static void lend_end(void *mem)
{
    CHECK(mrc_qp_destroy(resp_engine(), resp.r.s[1].qpn) == mem);
    (void)polled(); /* receives flushed */
    free(mem);
}

/* The immediate at PSN i, the i-th. */
static void imm_at(uint32_t i)
{
    struct mrc_pkt p = resp_pkt(i, MRC_OP_WRITE_ONLY_IMM);
    p.rqmsn = (uint16_t)i;
    p.imm = i;
    resp_give(&p);
}

static void in_order(int n, uint32_t from)
{
    CHECK_EQ(polled(), n);
    for (int i = 0; i < n; i++)
        CHECK(wc[i].imm == from + (uint32_t)i && wc[i].status == MRC_WC_SUCCESS);
}

/* ---- immediates ---- */

TEST(resp_lend__early_immediates_wait_in_what_is_lent)
{
    struct mrc_rand rand;
    uint32_t order[MANY - 1];
    mrc_rand_seed(&rand, 5);
    lend_open(ALL);
    void *const mem = lend_qp();
    for (uint32_t i = 0; i < MANY - 1; i++) { /* 1.. in any order */
        const uint32_t k = mrc_rand_below(&rand, i + 1);
        order[i] = order[k];
        order[k] = i + 1;
    }
    for (uint32_t i = 0; i < MANY - 1; i++) {
        imm_at(order[i]);
        CHECK_EQ(pool()->used != 0, i + 1 >= MRC_STASH_OWN);
    }
    CHECK_EQ(role()->stash_count, MANY - 1);
    CHECK_EQ(pool()->used, 16); /* 96, 384, 1536 */
    CHECK_EQ(role()->lent, 16);
    CHECK_EQ(polled(), 0);
    imm_at(0);
    in_order(MANY, 0);
    CHECK(pool()->used == 0 && role()->lent == 0 && role()->stash == role()->stash_own);
    CHECK_EQ(resp_load()->imm_used, 0);
    lend_end(mem);
    lend_close();
}

/* What few own places hold needs nobody. */
TEST(resp_lend__few_borrow_nothing)
{
    lend_open(ALL);
    void *const mem = lend_qp();
    for (uint32_t k = 0; k < 50; k++) {
        for (uint32_t i = MRC_STASH_OWN - 1; i > 0; i--)
            imm_at(MRC_STASH_OWN * k + i);
        CHECK_EQ(pool()->used, 0);
        imm_at(MRC_STASH_OWN * k);
        in_order(MRC_STASH_OWN, MRC_STASH_OWN * k);
    }
    lend_end(mem);
    lend_close();
}

/* Nothing is lent: what there is no place for is refused, and comes again; what is next never is.
 */
TEST(resp_lend__without_a_pool_the_next_is_taken_and_the_others_come_again)
{
    const uint32_t n = 40;
    lend_open(0);
    void *const mem = lend_qp();
    uint32_t done = 0;
    for (uint32_t round = 0; done < n && round < n; round++) {
        const uint64_t refused = resp_drops(MRC_DROP_NO_BUFFER);
        const uint32_t kept = role()->stash_count;
        for (uint32_t i = n - 1; i > done; i--) /* those kept already are duplicates */
            imm_at(i);
        const uint64_t now = resp_drops(MRC_DROP_NO_BUFFER) - refused;
        const uint32_t held = role()->stash_count;
        CHECK_EQ(held, mrc_min32(MRC_STASH_OWN - 1, n - 1 - done));
        CHECK_EQ(now, n - 1 - done - held);
        if (round == 0) {
            (void)resp_take();
            CHECK(resp_count(MRC_OP_NACK) == MRC_DUE_OWN && now > MRC_DUE_OWN);
            CHECK_EQ(resp_first(MRC_OP_NACK)->nack_reason, MRC_NACK_NO_PKT_BUFFER);
            CHECK_EQ(resp_buf()[1 * RIG_MTU], 0x5A); /* forgotten */
        }
        imm_at(done);
        done += (uint32_t)polled();
        CHECK(resp_qp()->attr.state == MRC_QPS_RTS);
        CHECK(kept <= held);
    }
    CHECK_EQ(done, n);
    CHECK_EQ(resp_qp()->stats.packets_received, n);
    lend_end(mem);
    lend_close();
}

/* One whose gap never closes has no more than it leaves, though there is a block of 16 units, and
 * the next ones find as much. */
TEST(resp_lend__nobody_takes_a_whole_pool)
{
    const uint32_t units = 4;
    const uint32_t room = units * MRC_POOL_UNIT / sizeof(struct mrc_imm_stash);
    void *mem[QPS];
    uint32_t qpn[QPS];
    lend_open(31);
    for (uint32_t k = 0; k < QPS; k++) {
        mem[k] = lend_qp();
        qpn[k] = resp.r.s[1].qpn;
        for (uint32_t i = 1; i < MANY; i++) {
            imm_at(i);
            (void)resp_take(); /* or refusals want room as well */
        }
        CHECK_EQ(role()->lent, units);
        CHECK_EQ(role()->stash_count, room - 1);
        CHECK(resp_qp()->attr.state == MRC_QPS_RTS);
    }
    CHECK_EQ(pool()->used, QPS * units);
    for (uint32_t k = 0; k < QPS; k++) {
        resp.r.s[1].qpn = qpn[k];
        imm_at(0);
        in_order((int)room, 0);
        CHECK_EQ(role()->lent, 0);
        lend_end(mem[k]);
    }
    lend_close();
}

/* ---- what is due ---- */

/* So many packets with a mark each, which no other SACK may tell of. */
static void marked(uint32_t n)
{
    resp_begin();
    for (uint32_t i = 1; i <= n; i++) {
        const struct mrc_pkt p = resp_pkt(i, MRC_OP_WRITE_ONLY);
        resp_give_as(&p, RIG_EV0 + i % RIG_EVS, 3);
    }
}

TEST(resp_lend__a_burst_of_marks_is_answered_one_by_one)
{
    lend_open(ALL);
    void *const mem = lend_qp();
    marked(MRC_DUE_RING);
    CHECK_EQ(pool()->used, 1);
    CHECK_EQ(resp_take(), MRC_DUE_RING);
    for (uint32_t i = 0; i < MRC_DUE_RING; i++) {
        const struct mrc_pkt *const p = resp_answer(MRC_OP_SACK, i);
        CHECK(p != NULL && p->mark == MRC_MARK_SKIP && resp_acked(p) == RESP_FIRST + 1 + i &&
              p->entropy == RIG_EV0 + (1 + i) % RIG_EVS);
    }
    CHECK(pool()->used == 0 && role()->due == role()->due_own);
    lend_end(mem);
    lend_close();
}

/* Nothing is lent: the newest takes the place of the one before. */
TEST(resp_lend__without_a_pool_the_snapshot_is_the_newest)
{
    lend_open(0);
    void *const mem = lend_qp();
    marked(MRC_DUE_RING);
    CHECK_EQ(resp_take(), MRC_DUE_OWN);
    for (uint32_t i = 0; i < MRC_DUE_OWN - 1; i++)
        CHECK_EQ(resp_acked(resp_answer(MRC_OP_SACK, i)), RESP_FIRST + 1 + i);
    CHECK_EQ(resp_acked(resp_answer(MRC_OP_SACK, MRC_DUE_OWN - 1)), RESP_FIRST + MRC_DUE_RING);
    lend_end(mem);
    lend_close();
}

TEST(resp_lend__refusals_and_probes_without_a_pool)
{
    for (int lent = 0; lent < 2; lent++) {
        lend_open(lent ? ALL : 0);
        void *const mem = lend_qp();
        const struct mrc_pkt probe = {.opcode = MRC_OP_PROBE, .dqp = resp.r.s[1].qpn, .ftype = 1};
        const uint32_t ring = lent ? MRC_DUE_RING : MRC_DUE_OWN;
        resp_begin();
        mrc_engine_rx_pause(resp_engine(), true);
        for (uint32_t i = 1; i <= 100; i++)
            resp_only(i);
        CHECK_EQ(resp_take(), ring);
        CHECK_EQ(resp_count(MRC_OP_NACK), ring);
        for (uint32_t i = 0; i < ring; i++)
            CHECK_EQ(resp_answer(MRC_OP_NACK, i)->cack_psn, RESP_FIRST + 1 + i);
        mrc_engine_rx_pause(resp_engine(), false);
        for (uint32_t i = 0; i < 100; i++)
            resp_give(&probe);
        CHECK_EQ(resp_take(), ring / 2);
        CHECK_EQ(resp_drops(MRC_DROP_PROBE_RATE), 100 - ring / 2);
        lend_end(mem);
        lend_close();
    }
}

/* ---- the end ---- */

static void end_to(enum mrc_qp_state state)
{
    const struct mrc_qp_attr a = {.state = (uint8_t)state};
    const int qpn = resp_modify(&a, MRC_QP_STATE);
    RIG_NEED(qpn >= 0);
    if (state == MRC_QPS_RESET)
        resp.r.s[1].qpn = (uint32_t)qpn;
}

/* Whichever way it ends, nothing stays lent; and the oldest of what was due leaves still. */
TEST(resp_lend__the_end_gives_all_back)
{
    for (int way = 0; way < 4; way++) {
        lend_open(ALL);
        void *const mem = lend_qp();
        for (uint32_t i = 200; i < 400; i++)
            imm_at(i);
        marked(20);
        CHECK_EQ(pool()->used, 4 + 1);
        CHECK_EQ(role()->lent, 5);
        if (way == 1)
            end_to(MRC_QPS_ERR);
        else if (way == 2)
            end_to(MRC_QPS_RESET);
        else if (way == 3) { /* H14 */
            role()->max_wimm_dest = 200;
            imm_at(400);
        }
        if (way > 0) {
            CHECK_EQ(pool()->used, 0);
            CHECK_EQ(resp_take(), way == 2 ? 0 : MRC_DUE_OWN + (way == 3));
        }
        if (way == 2) { /* and it lives again */
            rig_bring_up(&resp.r, 1, MRC_QPS_RTS);
            marked(20);
            CHECK_EQ(pool()->used, 1);
            CHECK_EQ(resp_take(), 20);
        }
        lend_end(mem);
        lend_close();
    }
}
