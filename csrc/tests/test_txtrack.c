/* SPDX-License-Identifier: BSD-2-Clause */
#include "mrc_txtrack.h"
#include "t.h"

enum { WINDOW = 128, EVS = 4 };

static _Alignas(64) uint8_t mem[32768];

static struct mrc_txtrack fresh(uint32_t sq_psn)
{
    struct mrc_txtrack t;
    CHECK(mrc_txtrack_bytes(WINDOW, WINDOW, EVS) <= sizeof mem);
    mrc_txtrack_init(&t, mem, WINDOW, WINDOW, EVS);
    mrc_txtrack_start(&t, mrc_psn(sq_psn));
    return t;
}

static struct mrc_slot *send_on(struct mrc_txtrack *t, uint32_t psn, uint16_t ev, mrc_ns now)
{
    return mrc_txtrack_sent(t, mrc_psn(psn), 0, ev, 0, 1000, now);
}

TEST(txtrack_sent__send_order_and_order_on_each_ev)
{
    struct mrc_txtrack t = fresh(10);
    for (uint32_t i = 0; i < 8; i++)
        send_on(&t, 10 + i, (uint16_t)(i % 2), i);
    CHECK_EQ(mrc_txtrack_outstanding(&t), 8);
    CHECK_EQ(t.slot[t.head].psn, 10);
    CHECK_EQ(t.slot[t.tail].psn, 17);
    CHECK_EQ(t.slot[t.ev[1].head[0]].psn, 11);
    CHECK_EQ(t.slot[t.slot[t.ev[1].head[0]].ev_next].psn, 13);
}

TEST(txtrack_ack__out_of_order_then_advance)
{
    struct mrc_txtrack t = fresh(0xFFFFFE);
    for (uint32_t i = 0; i < 4; i++)
        send_on(&t, (0xFFFFFE + i) & 0xFFFFFF, 0, i);
    CHECK(mrc_txtrack_ack(&t, mrc_psn(0), false));
    CHECK(!mrc_txtrack_ack(&t, mrc_psn(0), false)); /* once is news */
    CHECK(mrc_txtrack_ack(&t, mrc_psn(0xFFFFFE), false));
    CHECK(mrc_txtrack_ack(&t, mrc_psn(0xFFFFFF), false));
    mrc_txtrack_advance(&t, mrc_psn(0));
    CHECK_EQ(t.unack.v, 0);
    CHECK_EQ(mrc_txtrack_outstanding(&t), 1);
    CHECK(mrc_txtrack_find(&t, mrc_psn(0)) == NULL);
    CHECK(mrc_txtrack_find(&t, mrc_psn(1)) != NULL);
    CHECK(!mrc_txtrack_ack(&t, mrc_psn(2), false)); /* never sent */
}

TEST(txtrack_lose__lowest_psn_goes_first_and_on_another_ev)
{
    struct mrc_txtrack t = fresh(0);
    struct mrc_psn p;
    for (uint32_t i = 0; i < 6; i++)
        send_on(&t, i, 0, i);
    mrc_txtrack_lose(&t, mrc_txtrack_slot(&t, mrc_psn(4)));
    mrc_txtrack_lose(&t, mrc_txtrack_slot(&t, mrc_psn(2)));
    CHECK(mrc_txtrack_next_lost(&t, &p) && p.v == 2);
    struct mrc_slot *s = send_on(&t, 2, 3, 100);
    CHECK(s->rtx == 1 && s->ev == 3 && s->state == MRC_SLOT_INFLIGHT);
    CHECK_EQ(t.slot[t.tail].psn, 2); /* sent last, so its timer runs out last */
    CHECK(mrc_txtrack_next_lost(&t, &p) && p.v == 4);
    /* Field report 19: acknowledged while it waits to be sent again. */
    CHECK(mrc_txtrack_ack(&t, mrc_psn(4), false));
    CHECK(!mrc_txtrack_next_lost(&t, &p));
    CHECK_EQ(mrc_txtrack_outstanding(&t), 5);
}

/* B.10: the arrival of a packet that was sent twice says nothing of the second EV unless echoed. */
TEST(txtrack_ack__retransmission_proves_its_ev_only_when_echoed)
{
    struct mrc_txtrack t = fresh(0);
    send_on(&t, 0, 0, 1);
    send_on(&t, 1, 1, 2);
    mrc_txtrack_lose(&t, mrc_txtrack_slot(&t, mrc_psn(0)));
    send_on(&t, 0, 1, 3);
    CHECK(mrc_txtrack_ack(&t, mrc_psn(0), false));
    CHECK(!t.ev[1].acked_any[0]);
    CHECK_EQ(t.newest_acked_ns, 0);
    mrc_txtrack_lose(&t, mrc_txtrack_slot(&t, mrc_psn(1)));
    send_on(&t, 1, 2, 4);
    CHECK(mrc_txtrack_ack(&t, mrc_psn(1), true));
    CHECK(t.ev[2].acked_any[0]);
    CHECK_EQ(t.newest_acked_ns, 4);
}

TEST(txtrack_start__forgets_the_former_life)
{
    struct mrc_txtrack t = fresh(0);
    for (uint32_t i = 0; i < 100; i++)
        send_on(&t, i, 0, i);
    mrc_txtrack_lose(&t, mrc_txtrack_slot(&t, mrc_psn(50)));
    mrc_txtrack_start(&t, mrc_psn(50));
    CHECK_EQ(mrc_txtrack_outstanding(&t), 0);
    CHECK(mrc_txtrack_find(&t, mrc_psn(50)) == NULL);
    CHECK(t.head == MRC_SLOT_NIL && t.ev[0].head[0] == MRC_SLOT_NIL);
}
