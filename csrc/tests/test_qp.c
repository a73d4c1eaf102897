/* SPDX-License-Identifier: BSD-2-Clause */
/* The queue pair's states and attributes (MRC C.3), its lives, its end (B.13). */
#include "hostile_rig.h"
#include "t.h"

enum { STATES = 5 };

static int modify(struct rig *r, int i, const struct mrc_qp_attr *a, uint32_t mask)
{
    return mrc_qp_modify(r->s[i].e, r->s[i].qpn, a, mask, r->now);
}

static struct mrc_qp_attr query(const struct rig *r, int i)
{
    struct mrc_qp_attr a;
    CHECK_EQ(mrc_qp_query(r->s[i].e, r->s[i].qpn, &a, UINT32_MAX), MRC_OK);
    return a;
}

/* Values that are right in every place. */
static struct mrc_qp_attr right(const struct rig *r, int i)
{
    struct mrc_qp_attr a = {.access = 3,
                            .timeout = 10,
                            .linear_cnt = 3,
                            .exp_cnt = 3,
                            .train_max = 4,
                            .path_mtu = RIG_MTU,
                            .mpr = 4,
                            .mpr_dest = 4,
                            .max_wimm = 4,
                            .max_wimm_dest = 4,
                            .dest_qpn = r->s[1 - i].qpn,
                            .path = r->s[i].path_id,
                            .cc = r->s[i].cc_id,
                            .hint = MRC_HINT_NONE,
                            .version = 1};
    memcpy(a.src, r->s[i].addr, 16);
    memcpy(a.dst, r->s[1 - i].addr, 16);
    return a;
}

static void to_state(struct rig *r, int i, enum mrc_qp_state state)
{
    rig_reset(r, i);
    rig_bring_up(r, i, state == MRC_QPS_ERR ? MRC_QPS_RTS : state);
    const struct mrc_qp_attr err = {.state = MRC_QPS_ERR};
    if (state == MRC_QPS_ERR)
        CHECK_EQ(modify(r, i, &err, MRC_QP_STATE), MRC_OK);
    CHECK_EQ(query(r, i).state, state);
}

static const struct mrc_qp_rule *rule_of(int from, int to)
{
    const struct mrc_qp_rule *rule;
    for (uint32_t i = 0; (rule = mrc_qp_rule(i)) != NULL; i++)
        if (rule->from == from && rule->to == to)
            return rule;
    return NULL;
}

/* ---- transitions ---- */

TEST(qp__transitions_of_C3)
{
    static const bool forward[STATES][STATES] = {[MRC_QPS_RESET][MRC_QPS_INIT] = true,
                                                 [MRC_QPS_INIT][MRC_QPS_RTR] = true,
                                                 [MRC_QPS_RTR][MRC_QPS_RTS] = true};
    struct rig r;
    rig_open(&r, 5, MRC_CC_FIXED, false);
    for (int from = 0; from < STATES; from++) {
        for (int to = 0; to < STATES; to++) {
            to_state(&r, 0, (enum mrc_qp_state)from);
            struct mrc_qp_attr a = right(&r, 0);
            const struct mrc_qp_rule *rule = rule_of(from, to);
            const bool any = to == MRC_QPS_RESET || to == MRC_QPS_ERR;
            const bool ok = any || forward[from][to];
            a.state = (uint8_t)to;
            const uint32_t mask = MRC_QP_STATE | (ok && !any ? rule->required : 0);
            const int err = modify(&r, 0, &a, mask);
            if (to == MRC_QPS_RESET)
                r.s[0].qpn = (uint32_t)err;
            CHECK(ok ? err >= 0 : err == MRC_ERR_STATE);
            CHECK_EQ(query(&r, 0).state, ok ? to : from);
        }
    }
    const struct mrc_qp_attr beyond = {.state = STATES}; /* SQD and what else verbs has */
    CHECK_EQ(modify(&r, 0, &beyond, MRC_QP_STATE), MRC_ERR_INVAL);
    rig_close(&r);
}

/* What C.3 prints, against the table. */
TEST(qp__required_attributes_of_C3)
{
    static const struct mrc_qp_rule want[] = {
        {MRC_QPS_RESET, MRC_QPS_INIT, MRC_QP_ACCESS, 0},
        {MRC_QPS_INIT, MRC_QPS_RTR,
         MRC_QP_AV | MRC_QP_RQ_PSN | MRC_QP_PATH | MRC_QP_MPR_DEST | MRC_QP_WIMM_DEST, 0},
        {MRC_QPS_RTR, MRC_QPS_RTS,
         MRC_QP_SQ_PSN | MRC_QP_CC | MRC_QP_MPR | MRC_QP_WIMM | MRC_QP_TIMEOUT | MRC_QP_RETRY, 0},
    };
    struct rig r;
    rig_open(&r, 5, MRC_CC_FIXED, false);
    for (int k = 0; k < 3; k++) {
        CHECK_EQ(rule_of(want[k].from, want[k].to)->required, want[k].required);
        for (uint32_t bit = 1; bit != 0; bit <<= 1) {
            if ((want[k].required & bit) == 0)
                continue;
            to_state(&r, 0, (enum mrc_qp_state)want[k].from);
            struct mrc_qp_attr a = right(&r, 0);
            a.state = want[k].to;
            CHECK_EQ(modify(&r, 0, &a, MRC_QP_STATE | (want[k].required & ~bit)), MRC_ERR_INVAL);
            CHECK_EQ(query(&r, 0).state, want[k].from);
            CHECK_EQ(modify(&r, 0, &a, MRC_QP_STATE | want[k].required), MRC_OK);
        }
    }
    rig_close(&r);
}

/* The profiles of INIT may be given there already, and are not needed again. */
TEST(qp__required_attributes_may_have_come_before)
{
    struct rig r;
    rig_open(&r, 5, MRC_CC_FIXED, false);
    to_state(&r, 0, MRC_QPS_RESET);
    struct mrc_qp_attr a = right(&r, 0);
    a.state = MRC_QPS_INIT;
    CHECK_EQ(
        modify(&r, 0, &a, MRC_QP_STATE | MRC_QP_ACCESS | MRC_QP_PATH | MRC_QP_CC | MRC_QP_HINT),
        MRC_OK);
    a.state = MRC_QPS_RTR;
    const uint32_t rtr = rule_of(MRC_QPS_INIT, MRC_QPS_RTR)->required & ~(uint32_t)MRC_QP_PATH;
    CHECK_EQ(modify(&r, 0, &a, MRC_QP_STATE | rtr), MRC_OK);
    a.state = MRC_QPS_RTS;
    const uint32_t rts = rule_of(MRC_QPS_RTR, MRC_QPS_RTS)->required & ~(uint32_t)MRC_QP_CC;
    CHECK_EQ(modify(&r, 0, &a, MRC_QP_STATE | rts), MRC_OK);
    rig_close(&r);
}

/* Every attribute in every place: taken when the table has it, else refused and nothing changed. */
TEST(qp__attributes_have_their_places)
{
    struct rig r;
    rig_open(&r, 5, MRC_CC_FIXED, true);
    for (int from = 0; from < STATES; from++) {
        for (int to = 0; to < STATES; to++) {
            const struct mrc_qp_rule *rule = rule_of(from, to);
            if (rule == NULL && from != to)
                continue;
            for (uint32_t bit = 2; bit != 0; bit <<= 1) {
                to_state(&r, 0, (enum mrc_qp_state)from);
                struct mrc_qp_attr a = right(&r, 0);
                a.state = (uint8_t)to;
                uint32_t mask = bit;
                if (from != to)
                    mask |= MRC_QP_STATE | rule->required;
                const bool has = rule != NULL && (bit & (rule->required | rule->optional)) != 0;
                const struct mrc_qp_attr before = query(&r, 0);
                const int err = modify(&r, 0, &a, mask);
                const struct mrc_qp_attr after = query(&r, 0);
                CHECK(has ? err == MRC_OK : err == MRC_ERR_INVAL || err == MRC_ERR_STATE);
                if (!has)
                    CHECK_MEM(&after, &before, sizeof after);
            }
        }
    }
    to_state(&r, 0, MRC_QPS_RTS);
    struct mrc_qp_attr a = {.state = MRC_QPS_ERR, .timeout = 3};
    CHECK_EQ(modify(&r, 0, &a, MRC_QP_STATE | MRC_QP_TIMEOUT), MRC_ERR_INVAL);
    CHECK_EQ(query(&r, 0).state, MRC_QPS_RTS);
    rig_close(&r);
}

TEST(qp__running_attributes_change_what_runs)
{
    struct rig r;
    rig_open(&r, 5, MRC_CC_FIXED, true);
    const struct mrc_qp *q = rig_qp(&r.s[0]);
    struct mrc_qp_attr a = {.timeout = 17,
                            .linear_cnt = 1,
                            .exp_cnt = 25,
                            .train_max = 7,
                            .mpr = 2,
                            .mpr_dest = 3,
                            .max_wimm = 5,
                            .sack_threshold = 4321};
    CHECK_EQ(modify(&r, 0, &a,
                    MRC_QP_TIMEOUT | MRC_QP_RETRY | MRC_QP_TRAIN | MRC_QP_MPR | MRC_QP_MPR_DEST |
                        MRC_QP_WIMM | MRC_QP_SACK | MRC_QP_ACCESS),
             MRC_OK);
    CHECK(q->req.timeout == 17 && q->req.linear_cnt == 1 && q->req.exp_cnt == 25);
    CHECK(q->req.train_max == 7 && q->req.max_wimm == 5);
    CHECK_EQ(q->req.window, 2 * MRC_MPR_UNIT);
    CHECK_EQ(q->resp.sack_threshold_bytes, 4321);
    CHECK_EQ(query(&r, 0).mpr_dest, 3);
    /* Without remote write the same peer is refused at once. */
    CHECK_EQ(rig_post(&r, 1, 0, 100, MRC_WR_RDMA_WRITE), 1);
    CHECK(rig_move(&r, 1) > 0);
    CHECK_EQ(mrc_engine_drops(r.s[0].e, MRC_DROP_ACCESS), 1);
    rig_close(&r);
}

TEST(qp__ranges)
{
    static const struct {
        uint32_t mask;
        struct mrc_qp_attr a;
    } bad[] = {
        {MRC_QP_TIMEOUT, {.timeout = 25}},
        {MRC_QP_RETRY, {.linear_cnt = 8}},
        {MRC_QP_RETRY, {.exp_cnt = 26}},
        {MRC_QP_TRAIN, {.train_max = MRC_TRAIN_MAX + 1}},
        {MRC_QP_MPR, {.mpr = 0}},
        {MRC_QP_MPR, {.mpr = RIG_MPR + 1}},
        {MRC_QP_MPR_DEST, {.mpr_dest = 0}},
        {MRC_QP_MPR_DEST, {.mpr_dest = RIG_MPR + 1}},
        {MRC_QP_ACCESS, {.access = 4}},
        {MRC_QP_CAP, {.cap = 8}},
        {MRC_QP_VERSION, {.version = 2}},
        {MRC_QP_WIMM_DEST, {.max_wimm_dest = RIG_WIMM + 1}},
        {MRC_QP_SQ_PSN, {.sq_psn = 1 << 24}},
        {MRC_QP_RQ_PSN, {.rq_psn = 1 << 24}},
    };
    struct rig r;
    rig_open(&r, 5, MRC_CC_FIXED, true);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        CHECK_EQ(modify(&r, 0, &bad[i].a, bad[i].mask), MRC_ERR_INVAL);
    rig_close(&r);
}

/* What is refused is named. */
static void refused(struct rig *r, struct mrc_qp_attr a, uint32_t mask, const char *words)
{
    char said[128];
    const int err = modify(r, 0, &a, mask);
    CHECK(err < 0);
    const size_t n = mrc_qp_refusal(r->s[0].e, r->s[0].qpn, err, said, sizeof said);
    CHECK_EQ(n, strlen(words));
    CHECK(strcmp(said, words) == 0);
    char little[8]; /* as much as there is room for */
    CHECK_EQ(mrc_qp_refusal(r->s[0].e, r->s[0].qpn, err, little, sizeof little), sizeof little - 1);
    CHECK_MEM(little, words, sizeof little - 1);
}

TEST(qp__a_refusal_names_the_attribute)
{
    struct rig r;
    rig_open(&r, 5, MRC_CC_FIXED, false);
    refused(&r, (struct mrc_qp_attr){.rx_penalty = 200}, MRC_QP_RX_PENALTY,
            "rx_penalty: out of range");
    refused(&r, (struct mrc_qp_attr){.access = 4, .timeout = 25}, MRC_QP_ACCESS | MRC_QP_TIMEOUT,
            "access, timeout: out of range");
    refused(&r, (struct mrc_qp_attr){.mpr_dest = 2}, MRC_QP_MPR_DEST,
            "mpr_dest: fixed from RTR on, without dynamic MPR");
    refused(&r, (struct mrc_qp_attr){.cap = 8}, MRC_QP_CAP, "cap: out of range");
    refused(&r, (struct mrc_qp_attr){.cap = 2}, MRC_QP_CAP,
            "cap: not taken in this state or transition");
    refused(&r, (struct mrc_qp_attr){.state = MRC_QPS_INIT}, MRC_QP_STATE,
            "state: not taken in this state or transition");
    rig_reset(&r, 0);
    refused(&r, (struct mrc_qp_attr){.state = MRC_QPS_INIT}, MRC_QP_STATE, "access: missing");
    rig_bring_up(&r, 0, MRC_QPS_INIT);
    refused(&r, (struct mrc_qp_attr){.version = 2}, MRC_QP_VERSION, "version: out of range");
    refused(&r, (struct mrc_qp_attr){.path = 99}, MRC_QP_PATH, "path: no such object");
    refused(&r, (struct mrc_qp_attr){.hint = 99}, MRC_QP_HINT, "hint: no such object");
    refused(&r, (struct mrc_qp_attr){.cc = 99}, MRC_QP_CC, "cc: out of range");
    const struct mrc_qp_attr a = {.access = 1}; /* and what is right leaves nothing to say */
    char said[64];
    CHECK_EQ(modify(&r, 0, &a, MRC_QP_ACCESS), MRC_OK);
    CHECK_EQ(mrc_qp_refusal(r.s[0].e, r.s[0].qpn, MRC_OK, said, sizeof said), 0);
    rig_close(&r);
}

/* A completion queue that has overrun takes nothing: no queue pair begins on it, new or again. */
TEST(qp__none_begins_on_a_queue_that_has_overrun)
{
    struct rig r;
    char said[96];
    rig_open(&r, 5, MRC_CC_FIXED, false);
    struct mrc_cq_table *cqs = &r.s[0].e->env.cqs;
    const struct mrc_wc wc = {.wr_id = 1};
    while (mrc_cq_push(cqs, 0, &wc))
        ;
    void *mem = malloc(mrc_qp_size(&rig_qp_init));
    CHECK_EQ(mrc_qp_create(r.s[0].e, mem, &rig_qp_init), MRC_ERR_STATE);
    CHECK(mrc_qp_refusal(r.s[0].e, 0, MRC_ERR_STATE, said, sizeof said) > 0);
    CHECK(strcmp(said, "its completion queue has overrun and takes nothing any more") == 0);
    free(mem);
    rig_reset(&r, 0);
    refused(&r, (struct mrc_qp_attr){.state = MRC_QPS_INIT, .access = 3},
            MRC_QP_STATE | MRC_QP_ACCESS,
            "state: its completion queue has overrun and takes nothing any more");
    rig_close(&r);
}

/* B.12: a window that the peer is not told of cannot change under it. */
TEST(qp__window_is_fixed_without_dynamic_mpr)
{
    struct rig r;
    const struct mrc_qp_attr a = {.mpr_dest = 2};
    rig_open(&r, 5, MRC_CC_FIXED, false);
    CHECK_EQ(modify(&r, 0, &a, MRC_QP_MPR_DEST), MRC_ERR_STATE);
    CHECK_EQ(query(&r, 0).mpr_dest, RIG_MPR);
    rig_close(&r);
}

/* ---- queries ---- */

TEST(qp__query_gives_what_was_asked_in_every_state)
{
    struct rig r;
    rig_open(&r, 5, MRC_CC_FIXED, false);
    for (int state = 0; state < STATES; state++) {
        to_state(&r, 0, (enum mrc_qp_state)state);
        struct mrc_qp_attr got;
        struct mrc_qp_attr want;
        memset(&got, 0xEE, sizeof got);
        CHECK_EQ(mrc_qp_query(r.s[0].e, r.s[0].qpn, &got, MRC_QP_STATE | MRC_QP_TIMEOUT), MRC_OK);
        memset(&want, 0, sizeof want);
        want.state = (uint8_t)state;
        want.timeout = query(&r, 0).timeout;
        CHECK_MEM(&got, &want, sizeof got);
    }
    CHECK_EQ(query(&r, 0).timeout, 10);
    CHECK_EQ(mrc_qp_query(r.s[0].e, 3, &(struct mrc_qp_attr){0}, 1), MRC_ERR_NOENT);
    rig_close(&r);
}

TEST(qp__vendor_bytes_and_version_are_kept)
{
    struct rig r;
    rig_open(&r, 5, MRC_CC_FIXED, false);
    struct mrc_qp_attr a = {.version = 1};
    for (int i = 0; i < MRC_VENDOR_BYTES; i++)
        a.vendor[i] = (uint8_t)(i ^ 0x55);
    CHECK_EQ(modify(&r, 0, &a, MRC_QP_VENDOR), MRC_OK);
    CHECK_MEM(query(&r, 0).vendor, a.vendor, MRC_VENDOR_BYTES);
    CHECK_EQ(modify(&r, 0, &a, MRC_QP_VERSION), MRC_ERR_STATE); /* too late */
    rig_reset(&r, 0);
    CHECK_EQ(query(&r, 0).vendor[0], 0);
    rig_bring_up(&r, 0, MRC_QPS_INIT);
    CHECK_EQ(modify(&r, 0, &a, MRC_QP_VERSION), MRC_OK);
    CHECK_EQ(query(&r, 0).version, 1);
    rig_close(&r);
}

/* ---- work ---- */

TEST(qp__work_is_taken_in_its_states)
{
    struct rig r;
    const uint64_t id = 9;
    rig_open(&r, 5, MRC_CC_FIXED, false);
    for (int state = 0; state < STATES; state++) {
        to_state(&r, 0, (enum mrc_qp_state)state);
        const bool recv = state == MRC_QPS_INIT || state == MRC_QPS_RTR || state == MRC_QPS_RTS;
        CHECK_EQ(mrc_qp_post_recv(r.s[0].e, r.s[0].qpn, &id, 1), recv ? 1 : MRC_ERR_STATE);
        CHECK_EQ(rig_post(&r, 0, 0, 10, MRC_WR_RDMA_WRITE),
                 state == MRC_QPS_RTS ? 1 : MRC_ERR_STATE);
    }
    to_state(&r, 0, MRC_QPS_RTS);
    CHECK_EQ(rig_post(&r, 0, 0, 10, 2), MRC_ERR_INVAL); /* no SEND, READ, ATOMIC */
    rig_close(&r);
}

/* Work of both queues, as it comes out at the end: in order, once each, the first send with the
 * cause (B.13). */
static void check_flushed(struct rig *r, int sends, int recvs, uint8_t cause)
{
    struct mrc_wc wc[RIG_CQ];
    CHECK_EQ(mrc_cq_poll(r->s[0].e, 0, wc, RIG_CQ), sends + recvs);
    for (int i = 0; i < sends + recvs; i++) {
        const bool send = i < sends;
        CHECK_EQ(wc[i].opcode, send ? MRC_WC_RDMA_WRITE : MRC_WC_RECV_RDMA_WITH_IMM);
        CHECK_EQ(wc[i].status, i == 0 ? cause : MRC_WC_WR_FLUSH_ERR);
        CHECK_EQ(wc[i].wr_id, send ? (uint64_t)i * 1000 : (uint64_t)(100 + i - sends));
    }
    CHECK_EQ(mrc_cq_poll(r->s[0].e, 0, wc, RIG_CQ), 0);
}

static void post_all(struct rig *r)
{
    static const uint64_t ids[16] = {100, 101, 102, 103, 104, 105, 106, 107,
                                     108, 109, 110, 111, 112, 113, 114, 115};
    CHECK_EQ(mrc_qp_post_recv(r->s[0].e, r->s[0].qpn, ids, 16), 16);
    for (uint64_t i = 0; i < 16; i++)
        CHECK_EQ(rig_post(r, 0, i * 1000, 1000, MRC_WR_RDMA_WRITE), 1);
    struct mrc_tx_pkt tx[RIG_BURST];
    CHECK(mrc_engine_tx(r->s[0].e, tx, 20, r->now) == 20); /* some of it is on its way */
}

/* Field reports 47 and 49. */
TEST(qp__destroy_completes_all_work_once)
{
    struct rig r;
    rig_open(&r, 5, MRC_CC_FIXED, false);
    post_all(&r);
    CHECK(mrc_mr_deregister(r.s[0].e, r.s[0].key[RIG_RW]) == MRC_ERR_BUSY);
    void *mem = mrc_qp_destroy(r.s[0].e, r.s[0].qpn);
    CHECK(mem == r.s[0].qp_mem);
    memset(mem, 0xDD, mrc_qp_size(&rig_qp_init)); /* nothing reads it any more */
    check_flushed(&r, 16, 16, MRC_WC_WR_FLUSH_ERR);
    r.now += MRC_SEC;
    mrc_engine_tick(r.s[0].e, r.now);
    CHECK_EQ(rig_move(&r, 0), 0);
    CHECK_EQ(r.s[0].cc.inflight, 0);
    r.s[0].qpn = (uint32_t)mrc_qp_create(r.s[0].e, mem, &rig_qp_init);
    rig_close(&r);
}

TEST(qp__error_flushes_both_queues_in_order)
{
    struct rig r;
    const struct mrc_qp_attr err = {.state = MRC_QPS_ERR};
    rig_open(&r, 5, MRC_CC_FIXED, false);
    post_all(&r);
    CHECK_EQ(modify(&r, 0, &err, MRC_QP_STATE), MRC_OK);
    check_flushed(&r, 16, 16, MRC_WC_WR_FLUSH_ERR);
    CHECK_EQ(modify(&r, 0, &err, MRC_QP_STATE), MRC_OK); /* twice is once */
    check_flushed(&r, 0, 0, 0);
    rig_close(&r);
}

TEST(qp__first_flushed_send_has_the_cause)
{
    struct rig r;
    rig_open(&r, 5, MRC_CC_FIXED, false);
    post_all(&r);
    for (int i = 0; i < 1000 && query(&r, 0).state != MRC_QPS_ERR; i++) {
        r.now = mrc_engine_deadline(r.s[0].e);
        mrc_engine_tick(r.s[0].e, r.now);
        struct mrc_tx_pkt tx[RIG_BURST];
        (void)mrc_engine_tx(r.s[0].e, tx, RIG_BURST, r.now);
    }
    check_flushed(&r, 16, 16, MRC_WC_RETRY_EXC_ERR);
    struct mrc_qp_stats stats;
    CHECK_EQ(mrc_qp_stats(r.s[0].e, r.s[0].qpn, &stats), MRC_OK);
    CHECK_EQ(stats.error, MRC_WC_RETRY_EXC_ERR);
    rig_close(&r);
}

/* ---- lives ---- */

TEST(qp__reset_flushes_and_forgets)
{
    struct rig r;
    rig_open(&r, 5, MRC_CC_FIXED, false);
    post_all(&r);
    rig_reset(&r, 0);
    check_flushed(&r, 16, 16, MRC_WC_WR_FLUSH_ERR);
    const struct mrc_qp_attr a = query(&r, 0);
    const struct mrc_qp_attr blank = {.state = MRC_QPS_RESET, .hint = MRC_HINT_NONE};
    CHECK_MEM(&a, &blank, sizeof a);
    CHECK_EQ(r.s[0].cc.inflight, 0);
    CHECK(mrc_path_detach(r.s[0].e, r.s[0].path_id) == r.s[0].path); /* nothing refers to them */
    CHECK(mrc_cc_detach(r.s[0].e, r.s[0].cc_id) == &r.s[0].cc);
    r.s[0].path_id = (uint32_t)mrc_path_attach(r.s[0].e, r.s[0].path);
    r.s[0].cc_id = (uint32_t)mrc_cc_attach(r.s[0].e, &r.s[0].cc);
    rig_close(&r);
}

/* The hardest case: the second life begins with the same PSNs, peers and keys, and every packet of
 * the first arrives again in the midst of it, data and control. */
TEST(qp__packets_of_a_former_life_find_nobody)
{
    enum { KEPT = 256 };
    static struct rig_pkt kept[2][KEPT];
    size_t count[2] = {0, 0};
    struct rig r;
    const uint64_t recv[2] = {1, 2};
    struct mrc_wc wc[RIG_CQ];
    rig_open(&r, 0xFFFFF8, MRC_CC_FIXED, false);
    CHECK_EQ(mrc_qp_post_recv(r.s[1].e, r.s[1].qpn, recv, 2), 2);
    memset(rig_buf(&r.s[0], RIG_RW), 0x11, 8000);
    CHECK_EQ(rig_post(&r, 0, 0, 4000, MRC_WR_RDMA_WRITE), 1);
    CHECK_EQ(rig_post(&r, 0, 4000, 4000, MRC_WR_RDMA_WRITE_WITH_IMM), 1);
    for (int round = 0; round < 50; round++) { /* one life, written down */
        for (int from = 0; from < 2; from++) {
            struct mrc_tx_pkt tx[RIG_BURST];
            const size_t n = mrc_engine_tx(r.s[from].e, tx, RIG_BURST, r.now);
            for (size_t k = 0; k < n && count[from] < KEPT; k++) {
                rig_from_tx(&r, from, &tx[k], &kept[from][count[from]]);
                rig_deliver(&r, 1 - from, &kept[from][count[from]++]);
            }
        }
        r.now += 10 * MRC_USEC;
    }
    CHECK(count[0] > 30 && count[1] > 1);
    CHECK_EQ(mrc_cq_poll(r.s[0].e, 0, wc, RIG_CQ), 2);
    CHECK(mrc_cq_poll(r.s[1].e, 0, wc, RIG_CQ) >= 1);
    for (int i = 0; i < 2; i++)
        rig_reset(&r, i);
    for (int i = 0; i < 2; i++)
        rig_bring_up(&r, i, MRC_QPS_RTS);
    (void)mrc_cq_poll(r.s[1].e, 0, wc, RIG_CQ); /* the receive that was flushed */
    memset(rig_buf(&r.s[0], RIG_RW), 0x22, 8000);
    CHECK_EQ(rig_post(&r, 0, 0, 4000, MRC_WR_RDMA_WRITE), 1);
    CHECK(rig_move(&r, 0) > 0);
    uint8_t half[8000];
    memcpy(half, rig_buf(&r.s[1], RIG_RW), sizeof half);
    const uint64_t dropped[2] = {mrc_engine_drops(r.s[0].e, MRC_DROP_QPN),
                                 mrc_engine_drops(r.s[1].e, MRC_DROP_QPN)};
    for (int from = 0; from < 2; from++)
        for (size_t k = 0; k < count[from]; k++)
            rig_deliver(&r, 1 - from, &kept[from][k]);
    for (int i = 0; i < 2; i++)
        CHECK_EQ(mrc_engine_drops(r.s[i].e, MRC_DROP_QPN) - dropped[i], count[1 - i]);
    CHECK_MEM(rig_buf(&r.s[1], RIG_RW), half, sizeof half);
    CHECK_EQ(mrc_cq_poll(r.s[0].e, 0, wc, RIG_CQ), 0); /* no old answer completes new work */
    CHECK_EQ(mrc_cq_poll(r.s[1].e, 0, wc, RIG_CQ), 0);
    CHECK(rig_settle(&r));
    CHECK_EQ(mrc_cq_poll(r.s[0].e, 0, wc, RIG_CQ), 1);
    CHECK_EQ(wc[0].status, MRC_WC_SUCCESS);
    rig_close(&r);
}

TEST(qp__reset_gives_a_number_never_handed_out_lately)
{
    enum { LIVES = 2000 };
    static uint32_t seen[LIVES];
    struct rig r;
    rig_open(&r, 5, MRC_CC_FIXED, false);
    for (int i = 0; i < LIVES; i++) {
        seen[i] = r.s[0].qpn;
        rig_reset(&r, 0);
        struct mrc_qp_attr a;
        CHECK_EQ(mrc_qp_query(r.s[0].e, seen[i], &a, 1), MRC_ERR_NOENT);
        CHECK_EQ(r.s[0].qpn & 3, seen[i] & 3); /* same place in the table */
        for (int k = 0; k <= i; k++)
            CHECK(seen[k] != r.s[0].qpn);
    }
    rig_close(&r);
}

/* Field report 51: nothing that ages while nobody sends may stand in the way afterwards. */
TEST(qp__write_after_an_idle_gap)
{
    static const mrc_ns gap[] = {5 * MRC_SEC, 60 * MRC_SEC, 36000 * MRC_SEC};
    for (uint8_t cc = MRC_CC_NONE; cc <= MRC_CC_NSCC; cc++) {
        struct rig r;
        struct mrc_wc wc[RIG_CQ];
        rig_open(&r, 5, cc, false);
        for (size_t i = 0; i < sizeof gap / sizeof *gap; i++) {
            CHECK_EQ(rig_post(&r, 0, 0, 8000, MRC_WR_RDMA_WRITE), 1);
            CHECK(rig_settle(&r));
            CHECK_EQ(mrc_cq_poll(r.s[0].e, 0, wc, RIG_CQ), 1);
            CHECK_EQ(wc[0].status, MRC_WC_SUCCESS);
            const mrc_ns end = r.now + gap[i];
            int idle = 0; /* what timers still want to say comes to an end, too */
            for (int k = 0; k < 2; k++)
                while (mrc_engine_deadline(r.s[k].e) < end && idle++ < 100) {
                    r.now = mrc_engine_deadline(r.s[k].e);
                    mrc_engine_tick(r.s[k].e, r.now);
                    (void)rig_move(&r, k);
                    (void)rig_move(&r, 1 - k);
                }
            CHECK(idle < 100);
            r.now = end;
        }
        CHECK_EQ(rig_post(&r, 0, 0, 8000, MRC_WR_RDMA_WRITE), 1);
        CHECK(rig_settle(&r));
        CHECK_EQ(mrc_cq_poll(r.s[0].e, 0, wc, RIG_CQ), 1);
        CHECK_EQ(rig_qp(&r.s[0])->stats.timeouts, 0);
        CHECK_EQ(rig_qp(&r.s[0])->stats.packets_retransmitted, 0);
        rig_close(&r);
    }
}

/* While running with dynamic MPR our own limit may widen, but not what the peer allowed (B.12). */
TEST(qp__own_window_limit_widens_nothing_by_itself)
{
    struct rig r;
    struct mrc_qp_attr a = {.mpr = 2};
    rig_open(&r, 5, MRC_CC_FIXED, true);
    const struct mrc_qp *q = rig_qp(&r.s[0]);
    CHECK_EQ(modify(&r, 0, &a, MRC_QP_MPR), MRC_OK);
    CHECK_EQ(q->req.window, 2 * MRC_MPR_UNIT);
    a.mpr = RIG_MPR;
    CHECK_EQ(modify(&r, 0, &a, MRC_QP_MPR), MRC_OK);
    CHECK_EQ(q->req.window, 2 * MRC_MPR_UNIT);
    CHECK_EQ(rig_post(&r, 0, 0, 100, MRC_WR_RDMA_WRITE), 1);
    CHECK(rig_settle(&r)); /* the answer says what the peer allows */
    CHECK_EQ(q->req.window, RIG_MPR * MRC_MPR_UNIT);
    rig_close(&r);
    rig_open(&r, 5, MRC_CC_FIXED, false); /* without it the attribute is the window */
    a.mpr = 2;
    CHECK_EQ(modify(&r, 0, &a, MRC_QP_MPR), MRC_OK);
    a.mpr = RIG_MPR;
    CHECK_EQ(modify(&r, 0, &a, MRC_QP_MPR), MRC_OK);
    CHECK_EQ(rig_qp(&r.s[0])->req.window, RIG_MPR * MRC_MPR_UNIT);
    rig_close(&r);
}
