/* SPDX-License-Identifier: BSD-2-Clause */
/* Named scenarios: memory that must not be touched, and how queue pairs end. */
#include "world_case.h"

static struct world *small_world(uint64_t seed)
{
    const struct world_cfg cfg = world_defaults(seed);
    const struct world_qp_cfg q = world_qp_defaults();
    return case_world(&cfg, &q, 8192);
}

/* A write that the responder must refuse: error at the sender, nothing stored, both QPs in ERR. */
static void refused(uint64_t raddr_off, uint32_t length, bool bad_key, bool absolute)
{
    struct world *const w = small_world(1);
    struct world_flow *const f = &w->flow[0];
    const uint64_t base = f->va;
    CHECK(world_post(w, f, 3000, true, true)); /* one good write before it */
    world_kick(w, 0);
    CHECK(case_finish(w, MRC_SEC));
    CHECK(world_post_to(w, f, length, absolute ? raddr_off : base + raddr_off,
                        bad_key ? f->rkey ^ 0x5A5A0000 : f->rkey));
    CHECK(world_post(w, f, 100, true, true)); /* and one after */
    world_kick(w, 0);
    CHECK(case_finish(w, MRC_SEC));
    CHECK(f->dead);
    CHECK_EQ(f->status, MRC_WC_REM_ACCESS_ERR);
    CHECK_EQ(f->completed, 3);
    CHECK_EQ(f->placed, 1);
    CHECK_EQ(f->imm_taken, 1);
    CHECK_EQ(world_stats_peer(w, f).bytes_received, 3000);
    CHECK_EQ(world_stats_peer(w, f).state, MRC_QPS_ERR);
    CHECK_EQ(mrc_engine_drops(w->host[1].e, MRC_DROP_ACCESS), 1);
    case_end(w);
}

TEST(memory__target_wraps_at_the_end_of_the_address_space) /* FR 43, 44 */
{
    refused(UINT64_MAX - 3, 8, false, true);
    refused(UINT64_MAX, 1, false, true);
    refused(UINT64_MAX - 99, 100, false, true);
}

TEST(memory__target_outside_the_region) /* FR 43, 44 */
{
    struct world *const w = small_world(2);
    const uint64_t end = w->flow[0].bytes - WORLD_GUARD;
    world_free(w);
    refused(end, 1, false, false);
    refused(end - 7, 8, false, false);
    refused(WORLD_GUARD - 1, 8, false, false);
    refused(end + 1, 0, false, false);
}

TEST(memory__wrong_key) /* FR 43, 44 */ { refused(WORLD_GUARD, 8, true, false); }

TEST(memory__region_without_remote_write) /* FR 45 */
{
    struct world *const w = small_world(3);
    struct world_flow *const f = &w->flow[0];
    /* The source region of the other direction is at host 1 and local only. */
    const struct world_flow *const back = &w->flow[1];
    CHECK(world_post_to(w, f, 64, (uint64_t)(uintptr_t)(back->src + 1000), back->lkey));
    world_kick(w, 0);
    CHECK(case_finish(w, MRC_SEC));
    CHECK_EQ(f->status, MRC_WC_REM_ACCESS_ERR);
    for (int i = 0; i < 64; i++)
        CHECK_EQ(back->src[1000 + i], 0);
    case_end(w);
}

TEST(memory__region_deregistered_under_way)
{
    struct world *const w = small_world(4);
    struct world_flow *const f = &w->flow[0];
    CHECK(world_post(w, f, 3000, false, true));
    CHECK_EQ(mrc_mr_deregister(w->host[0].e, f->lkey), MRC_ERR_BUSY);
    CHECK_EQ(mrc_mr_deregister(w->host[1].e, f->rkey), MRC_OK);
    world_kick(w, 0);
    CHECK(case_finish(w, MRC_SEC));
    CHECK_EQ(f->status, MRC_WC_REM_ACCESS_ERR);
    CHECK_EQ(f->placed, 0);
    CHECK_EQ(mrc_mr_deregister(w->host[0].e, f->lkey), MRC_OK);
    case_end(w);
}

/* ---- ends ---- */

TEST(end__destroy_with_a_full_queue_completes_each_once) /* FR 47, 49 */
{
    struct world_cfg cfg = world_defaults(5);
    struct world_qp_cfg q = world_qp_defaults();
    q.depth = 128;
    struct world *const w = case_world(&cfg, &q, 8192);
    struct world_flow *const f = &w->flow[0];
    for (int i = 0; i < 100; i++)
        CHECK(world_post(w, f, 8192, i % 2 == 0, i % 3 != 0));
    world_kick(w, 0);
    CHECK(world_run(w, w->now + 15 * MRC_USEC));
    void *const mem = mrc_qp_destroy(w->host[0].e, f->qpn_from);
    CHECK(mem != NULL);
    memset(mem, 0xEE, 64); /* the memory is ours again */
    f->load.messages = 0;
    world_completions(w, 0);
    CHECK(f->dead);
    CHECK_EQ(f->completed, 100);
    CHECK_EQ(w->flow[1].recv_taken, 128); /* the receives of that QP too */
    CHECK_EQ(w->flow[1].recv_status, MRC_WC_WR_FLUSH_ERR);
    world_run(w, w->now + 100 * MRC_MSEC); /* late packets for a QP that is gone */
    CHECK(mrc_engine_drops(w->host[0].e, MRC_DROP_QPN) > 0);
    case_end(w);
}

TEST(end__error_state_by_hand_flushes_and_tells_the_peer)
{
    struct world *const w = small_world(6);
    struct world_flow *const f = &w->flow[0];
    const struct mrc_qp_attr err = {.state = MRC_QPS_ERR};
    for (int i = 0; i < 20; i++)
        CHECK(world_post(w, f, 8000, false, true));
    world_kick(w, 0);
    CHECK(world_run(w, w->now + 15 * MRC_USEC));
    CHECK_EQ(mrc_qp_modify(w->host[1].e, f->qpn_to, &err, MRC_QP_STATE, w->now), MRC_OK);
    world_kick(w, 1);
    CHECK(case_finish(w, MRC_SEC));
    CHECK(f->dead);
    CHECK_EQ(f->status, MRC_WC_REM_OP_ERR); /* long before any retry budget */
    CHECK(f->last_done_ns - w->cfg.start_ns < 10 * MRC_MSEC);
    CHECK_EQ(f->completed, 20);
    case_end(w);
}

TEST(end__immediate_without_a_receive) /* B.8 */
{
    struct world_cfg cfg = world_defaults(7);
    struct world_qp_cfg q = world_qp_defaults();
    q.depth = 4;
    q.max_wimm = 4;
    struct world *const w = case_world(&cfg, &q, 1000);
    struct world_flow *const f = &w->flow[0];
    w->no_repost = true;
    for (int i = 0; i < 4; i++)
        CHECK(world_post(w, f, 100, true, true));
    world_kick(w, 0);
    CHECK(case_finish(w, MRC_SEC));
    CHECK(!f->dead);
    CHECK(world_post(w, f, 100, true, true)); /* the fifth finds no receive */
    world_kick(w, 0);
    CHECK(world_run(w, w->now + 100 * MRC_MSEC));
    CHECK(f->dead);
    CHECK_EQ(f->status, MRC_WC_REM_OP_ERR);
    CHECK_EQ(f->imm_taken, 4);
    CHECK_EQ(mrc_engine_drops(w->host[1].e, MRC_DROP_NO_RECV), 1);
    case_end(w);
}

TEST(end__completions_in_order_under_every_mix_of_signals)
{
    for (uint64_t seed = 300; seed < 310; seed++) {
        struct world_cfg cfg = world_defaults(seed);
        const struct world_qp_cfg q = world_qp_defaults();
        const struct world_load load = {.messages = 500,
                                        .bytes_max = 3000,
                                        .imm_percent = 40,
                                        .unsignaled_percent = (uint8_t)(10 * (seed - 300))};
        cfg.link.loss_ppm = 10000;
        struct world *const w = case_world(&cfg, &q, 3000);
        world_load(w, 0, &load);
        world_load(w, 1, &load);
        CHECK(case_finish(w, 20 * MRC_SEC));
        CHECK_EQ(w->flow[0].completed, 500);
        case_end(w);
    }
}
