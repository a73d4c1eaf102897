/* SPDX-License-Identifier: BSD-2-Clause */
/* Completion queues: polling, overrun, and the events of armed queues (MRC C.1). */
#include "mrc_cq.h"
#include "t.h"

enum { CQS = 3, DEPTH = 4, CHANNEL = 5 };

struct cqs {
    struct mrc_cq_table t;
    struct mrc_cq cq[CQS];
    struct mrc_wc ring[CQS][DEPTH];
};

static void cqs_open(struct cqs *c)
{
    memset(c, 0, sizeof *c);
    mrc_cq_table_init(&c->t, c->cq, CQS);
    for (int i = 0; i < CQS; i++)
        CHECK_EQ(mrc_cq_add(&c->t, c->ring[i], DEPTH), i);
}

static bool push(struct cqs *c, uint32_t id, uint8_t status, uint8_t flags)
{
    const struct mrc_wc wc = {.wr_id = id, .status = status, .flags = flags};
    return mrc_cq_push(&c->t, id, &wc);
}

static bool plain(struct cqs *c, uint32_t id) { return push(c, id, MRC_WC_SUCCESS, 0); }

TEST(cq__depth_has_bounds)
{
    CHECK_EQ(mrc_cq_ring_bytes(0), 0);
    CHECK_EQ(mrc_cq_ring_bytes(MRC_CQ_DEPTH_MAX + 1u), 0);
    CHECK_EQ(mrc_cq_ring_bytes(3), 4 * sizeof(struct mrc_wc));
}

TEST(cq__overrun_keeps_what_came_before_and_takes_no_more)
{
    struct cqs c;
    struct mrc_wc wc[2 * DEPTH];
    cqs_open(&c);
    for (int i = 0; i < DEPTH; i++)
        CHECK(plain(&c, 0));
    CHECK(!c.cq[0].overrun);
    CHECK(!plain(&c, 0));
    CHECK(c.cq[0].overrun);
    CHECK_EQ(c.t.failed, 1);
    CHECK(!plain(&c, 0));
    CHECK_EQ(c.t.failed, 1); /* told once */
    CHECK_EQ(mrc_cq_take(&c.t, 0, wc, 2 * DEPTH), DEPTH);
    CHECK(!plain(&c, 0)); /* room or not: one was lost, so it stays in error */
    CHECK_EQ(mrc_cq_take(&c.t, 0, wc, 2 * DEPTH), 0);
    CHECK(mrc_cq_drop(&c.t, 0) == c.ring[0]);
    CHECK_EQ(c.t.failed, 0);
}

TEST(cq__fires_once_for_each_arming)
{
    struct cqs c;
    cqs_open(&c);
    CHECK_EQ(mrc_cq_notify(&c.cq[1], false), MRC_ERR_STATE); /* no channel */
    CHECK_EQ(mrc_cq_bind(&c.cq[1], CHANNEL), MRC_OK);
    CHECK(plain(&c, 1));
    CHECK(!mrc_cq_event_any(&c.t, CHANNEL)); /* not armed */
    CHECK_EQ(mrc_cq_notify(&c.cq[1], false), MRC_OK);
    CHECK(!mrc_cq_event_any(&c.t, CHANNEL)); /* what waits already makes none */
    CHECK(plain(&c, 1));
    CHECK(plain(&c, 1));
    CHECK(mrc_cq_event_any(&c.t, CHANNEL));
    CHECK(!mrc_cq_event_any(&c.t, CHANNEL + 1));
    CHECK_EQ(mrc_cq_event(&c.t, CHANNEL + 1), MRC_ERR_NOENT);
    CHECK_EQ(mrc_cq_event(&c.t, CHANNEL), 1);
    CHECK_EQ(mrc_cq_event(&c.t, CHANNEL), MRC_ERR_NOENT);
}

TEST(cq__armings_before_an_event_is_taken_add_up)
{
    struct cqs c;
    cqs_open(&c);
    for (uint32_t i = 0; i < 2; i++)
        CHECK_EQ(mrc_cq_bind(&c.cq[i], CHANNEL), MRC_OK);
    for (int n = 0; n < 2; n++) {
        for (uint32_t i = 0; i < 2; i++) {
            CHECK_EQ(mrc_cq_notify(&c.cq[i], false), MRC_OK);
            CHECK(plain(&c, i));
        }
    }
    static const int order[] = {0, 1, 0, 1}; /* in turn */
    for (int n = 0; n < 4; n++)
        CHECK_EQ(mrc_cq_event(&c.t, CHANNEL), order[n]);
    CHECK_EQ(mrc_cq_event(&c.t, CHANNEL), MRC_ERR_NOENT);
    CHECK_EQ(c.cq[0].unacked, 2);
}

TEST(cq__solicited_only)
{
    struct cqs c;
    cqs_open(&c);
    CHECK_EQ(mrc_cq_bind(&c.cq[0], CHANNEL), MRC_OK);
    CHECK_EQ(mrc_cq_notify(&c.cq[0], true), MRC_OK);
    CHECK(push(&c, 0, MRC_WC_SUCCESS, MRC_WC_WITH_IMM));
    CHECK(!mrc_cq_event_any(&c.t, CHANNEL));
    CHECK(push(&c, 0, MRC_WC_SUCCESS, MRC_WC_WITH_IMM | MRC_WC_SOLICITED));
    CHECK_EQ(mrc_cq_event(&c.t, CHANNEL), 0);
    CHECK_EQ(mrc_cq_notify(&c.cq[0], true), MRC_OK);
    CHECK(push(&c, 0, MRC_WC_WR_FLUSH_ERR, 0)); /* an error is worth an event */
    CHECK_EQ(mrc_cq_event(&c.t, CHANNEL), 0);
}

TEST(cq__armed_for_any_stays_so)
{
    struct cqs c;
    cqs_open(&c);
    CHECK_EQ(mrc_cq_bind(&c.cq[0], CHANNEL), MRC_OK);
    CHECK_EQ(mrc_cq_notify(&c.cq[0], false), MRC_OK);
    CHECK_EQ(mrc_cq_notify(&c.cq[0], true), MRC_OK);
    CHECK(plain(&c, 0));
    CHECK_EQ(mrc_cq_event(&c.t, CHANNEL), 0);
    CHECK_EQ(mrc_cq_notify(&c.cq[0], true), MRC_OK); /* a new arming: by its own word */
    CHECK(plain(&c, 0));
    CHECK(!mrc_cq_event_any(&c.t, CHANNEL));
    CHECK_EQ(mrc_cq_notify(&c.cq[0], false), MRC_OK); /* and widened */
    CHECK(plain(&c, 0));
    CHECK_EQ(mrc_cq_event(&c.t, CHANNEL), 0);
}

TEST(cq__overrun_is_an_event)
{
    struct cqs c;
    cqs_open(&c);
    CHECK_EQ(mrc_cq_bind(&c.cq[0], CHANNEL), MRC_OK);
    for (int i = 0; i < DEPTH; i++)
        CHECK(plain(&c, 0));
    CHECK_EQ(mrc_cq_notify(&c.cq[0], true), MRC_OK);
    CHECK(!plain(&c, 0));
    CHECK_EQ(mrc_cq_event(&c.t, CHANNEL), 0);
}

TEST(cq__stays_while_events_are_not_acknowledged)
{
    struct cqs c;
    cqs_open(&c);
    CHECK_EQ(mrc_cq_bind(&c.cq[2], CHANNEL), MRC_OK);
    for (int n = 0; n < 2; n++) {
        CHECK_EQ(mrc_cq_notify(&c.cq[2], false), MRC_OK);
        CHECK(plain(&c, 2));
        CHECK_EQ(mrc_cq_event(&c.t, CHANNEL), 2);
    }
    CHECK_EQ(mrc_cq_bind(&c.cq[2], CHANNEL + 1), MRC_ERR_BUSY);
    CHECK_EQ(mrc_cq_ack(&c.cq[2], 3), MRC_ERR_INVAL);
    CHECK_EQ(mrc_cq_ack(&c.cq[2], 1), MRC_OK);
    CHECK(mrc_cq_drop(&c.t, 2) == NULL);
    CHECK_EQ(mrc_cq_ack(&c.cq[2], 1), MRC_OK);
    CHECK_EQ(mrc_cq_notify(&c.cq[2], false), MRC_OK);
    CHECK(plain(&c, 2));
    CHECK(mrc_cq_drop(&c.t, 2) == c.ring[2]); /* one that nobody took goes with it */
    CHECK_EQ(mrc_cq_event(&c.t, CHANNEL), MRC_ERR_NOENT);
    CHECK_EQ(c.t.waiting, 0);
}
