/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory that queue pairs borrow (ADR 124): the pool, the send-time table that grows out of it, and
 * what a queue pair does when it is empty. */
#include <stdlib.h>

#include "mrc_pool.h"
#include "mrc_rand.h"
#include "mrc_txtrack.h"
#include "t.h"

enum { UNITS = 100, HELD = 200 };

static void *pool_open(struct mrc_pool *p, uint32_t units)
{
    void *const mem = aligned_alloc(64, mrc_align(mrc_pool_bytes(units)));
    mrc_pool_init(p, mem, units);
    return mem;
}

TEST(pool__all_of_it_is_lent_once)
{
    struct mrc_pool p;
    void *const mem = pool_open(&p, UNITS);
    uint8_t *block[UNITS];
    for (int round = 0; round < 3; round++) {
        for (uint32_t i = 0; i < UNITS; i++) {
            block[i] = mrc_pool_take(&p, 0);
            CHECK(block[i] != NULL);
            memset(block[i], (int)i, MRC_POOL_UNIT);
        }
        CHECK(mrc_pool_take(&p, 0) == NULL);
        CHECK_EQ(p.used, UNITS);
        for (uint32_t i = 0; i < UNITS; i++) {
            CHECK_EQ(block[i][0], i); /* nobody else wrote there */
            CHECK_EQ(block[i][MRC_POOL_UNIT - 1], i);
            mrc_pool_give(&p, block[i], 0);
        }
        CHECK_EQ(p.used, 0);
        void *const large = mrc_pool_take(&p, 6); /* halves have become one again */
        CHECK(large != NULL && mrc_pool_take(&p, 6) == NULL);
        mrc_pool_give(&p, large, 6);
    }
    free(mem);
}

TEST(pool__blocks_of_all_sizes_never_overlap)
{
    struct mrc_pool p;
    void *const mem = pool_open(&p, UNITS);
    struct {
        uint8_t *at;
        uint8_t order;
    } held[HELD] = {{NULL, 0}};
    struct mrc_rand rand;
    mrc_rand_seed(&rand, 4);
    uint32_t used = 0;
    for (int n = 0; n < 20000; n++) {
        const uint32_t i = mrc_rand_below(&rand, HELD);
        if (held[i].at != NULL) {
            for (size_t k = 0; k < (size_t)MRC_POOL_UNIT << held[i].order; k += 512)
                CHECK_EQ(held[i].at[k], (uint8_t)i);
            mrc_pool_give(&p, held[i].at, held[i].order);
            used -= 1u << held[i].order;
            held[i].at = NULL;
        } else {
            held[i].order = (uint8_t)mrc_rand_below(&rand, 5);
            held[i].at = mrc_pool_take(&p, held[i].order);
            if (held[i].at == NULL)
                continue;
            memset(held[i].at, (int)i, (size_t)MRC_POOL_UNIT << held[i].order);
            used += 1u << held[i].order;
        }
        CHECK_EQ(p.used, used);
        CHECK(used <= UNITS);
    }
    free(mem);
}

TEST(pool__orders_are_the_smallest_that_do)
{
    CHECK_EQ(mrc_pool_order(1), 0);
    CHECK_EQ(mrc_pool_order(MRC_POOL_UNIT), 0);
    CHECK_EQ(mrc_pool_order(MRC_POOL_UNIT + 1), 1);
    CHECK(mrc_pool_order(MRC_MPR_MAX * MRC_MPR_UNIT * sizeof(struct mrc_slot)) < MRC_POOL_ORDERS);
}

/* Whoever comes next finds half of what is left, and who gives one back for another is judged by
 * what he will have. */
TEST(pool_fair__nobody_has_more_than_he_leaves)
{
    struct mrc_pool p = {.units = 64};
    CHECK(mrc_pool_fair(&p, 0, 0, 5) && !mrc_pool_fair(&p, 0, 0, 6));
    CHECK(!mrc_pool_fair(&p, 1, 0, 5));
    p.used = 32;
    CHECK(mrc_pool_fair(&p, 0, 0, 4) && !mrc_pool_fair(&p, 0, 0, 5));
    CHECK(!mrc_pool_fair(&p, 32, 0, 0)); /* that is his */
    p.used = 8;
    CHECK(mrc_pool_fair(&p, 0, 8, 5));
    CHECK(!mrc_pool_fair(&p, 0, 7, 5));
    p.used = 64;
    CHECK(!mrc_pool_fair(&p, 0, 0, 0));
    const struct mrc_pool none = {.units = 0};
    CHECK(!mrc_pool_fair(&none, 0, 0, 0));
}

/* ---- the send-time table ---- */

enum { WINDOW = 512, EVS = 5 };

/* All that is in flight, in the order of sending, of everybody and of one EV. */
static void same_lists(const struct mrc_txtrack *a, const struct mrc_txtrack *b)
{
    uint16_t i = a->head;
    uint16_t k = b->head;
    for (; i != MRC_SLOT_NIL && k != MRC_SLOT_NIL; i = a->slot[i].next, k = b->slot[k].next) {
        const struct mrc_slot *const s = &a->slot[i];
        const struct mrc_slot *const d = &b->slot[k];
        CHECK(s->psn == d->psn && s->order == d->order && s->ev == d->ev && s->wqe == d->wqe &&
              s->nominal == d->nominal && s->sent_ns == d->sent_ns && s->joined == d->joined);
    }
    CHECK(i == MRC_SLOT_NIL && k == MRC_SLOT_NIL);
    for (uint32_t e = 0; e < 2 * EVS; e++) {
        i = a->ev[e / 2].head[e & 1];
        k = b->ev[e / 2].head[e & 1];
        uint16_t last = MRC_SLOT_NIL;
        for (; i != MRC_SLOT_NIL && k != MRC_SLOT_NIL;
             last = k, i = a->slot[i].ev_next, k = b->slot[k].ev_next) {
            CHECK_EQ(a->slot[i].psn, b->slot[k].psn);
            CHECK_EQ(b->slot[k].ev_prev, last);
        }
        CHECK(i == MRC_SLOT_NIL && k == MRC_SLOT_NIL && b->ev[e / 2].tail[e & 1] == last);
    }
    CHECK_EQ(a->inflight_count, b->inflight_count);
    CHECK_EQ(a->lost_count, b->lost_count);
    CHECK_EQ(a->acked_count, b->acked_count);
    CHECK_EQ(a->unack.v, b->unack.v);
}

static void grow_step(struct mrc_txtrack *t, uint32_t what, struct mrc_psn psn, uint16_t ev,
                      uint8_t cls, mrc_ns now)
{
    struct mrc_slot *const s = mrc_txtrack_find(t, psn);
    struct mrc_psn lost;
    if (what < 8)
        (void)mrc_txtrack_sent(t, mrc_psn_add(t->max_sent, 1), 7, ev, cls, 900, now);
    else if (what < 9 && mrc_txtrack_next_lost(t, &lost))
        (void)mrc_txtrack_sent(t, lost, 7, ev, cls, 900, now);
    else if (what < 11 && s != NULL && s->state == MRC_SLOT_INFLIGHT)
        mrc_txtrack_lose(t, s);
    else if (s != NULL)
        (void)mrc_txtrack_ack(t, psn, false);
    mrc_txtrack_advance(t, t->unack);
}

/* One table is as large as the window from the beginning; the other grows as it is needed, and is
 * given back whenever nothing is out. */
TEST(txtrack_widen__changes_nothing_but_the_room)
{
    struct mrc_pool p;
    void *const pool = pool_open(&p, UNITS);
    struct mrc_txtrack t[2];
    const uint32_t own[2] = {WINDOW, MRC_SLOTS_OWN};
    void *mem[2];
    uint32_t largest = 0;
    uint32_t narrowed = 0;
    struct mrc_rand rand;
    mrc_rand_seed(&rand, 12);
    for (int i = 0; i < 2; i++) {
        mem[i] = aligned_alloc(64, mrc_align(mrc_txtrack_bytes(WINDOW, own[i], EVS)));
        mrc_txtrack_init(&t[i], mem[i], WINDOW, own[i], EVS);
        mrc_txtrack_start(&t[i], mrc_psn(0xFFFF00));
    }
    bool drain = false;
    for (uint32_t n = 0; n < 60000 && t_failures == 0; n++) {
        const uint32_t out = (uint32_t)mrc_psn_diff(t[0].max_sent, t[0].unack);
        drain = out >= WINDOW - 1 || (out > 0 && (drain || mrc_rand_below(&rand, 300) == 0));
        const uint32_t what = mrc_rand_below(&rand, 20) + (drain ? 8 : 0);
        const struct mrc_psn psn =
            mrc_psn_add(t[0].unack, 1 + (int32_t)mrc_rand_below(&rand, drain ? 2 : out + 1));
        const uint16_t ev = (uint16_t)mrc_rand_below(&rand, EVS);
        const uint8_t cls = (uint8_t)mrc_rand_below(&rand, 2);
        mrc_txtrack_widen(&t[1], &p, out + 1);
        for (int i = 0; i < 2; i++)
            grow_step(&t[i], what, psn, ev, cls, n);
        same_lists(&t[0], &t[1]);
        largest = mrc_txtrack_room(&t[1]) > largest ? mrc_txtrack_room(&t[1]) : largest;
        if (mrc_psn_eq(t[1].unack, t[1].max_sent) && mrc_txtrack_borrows(&t[1])) {
            mrc_txtrack_narrow(&t[1], &p);
            narrowed++;
        }
    }
    CHECK_EQ(largest, WINDOW);
    CHECK(narrowed > 10);
    mrc_txtrack_narrow(&t[1], &p);
    CHECK_EQ(p.used, 0);
    free(mem[0]), free(mem[1]), free(pool);
}

TEST(txtrack_widen__an_empty_pool_changes_nothing)
{
    struct mrc_pool p;
    void *const pool = pool_open(&p, 1);
    struct mrc_txtrack t;
    void *const mem = aligned_alloc(64, mrc_align(mrc_txtrack_bytes(WINDOW, MRC_SLOTS_OWN, EVS)));
    mrc_txtrack_init(&t, mem, WINDOW, MRC_SLOTS_OWN, EVS);
    mrc_txtrack_start(&t, mrc_psn(5));
    mrc_txtrack_widen(&t, &p, 100);
    CHECK(mrc_txtrack_room(&t) == MRC_SLOTS_OWN && !mrc_txtrack_borrows(&t));
    mrc_txtrack_widen(&t, &p, MRC_SLOTS_OWN + 1);
    CHECK(mrc_txtrack_room(&t) == 4 * MRC_SLOTS_OWN && mrc_txtrack_borrows(&t));
    mrc_txtrack_widen(&t, &p, 100);
    CHECK_EQ(mrc_txtrack_room(&t), 4 * MRC_SLOTS_OWN);
    mrc_txtrack_narrow(&t, &p);
    CHECK(mrc_txtrack_room(&t) == MRC_SLOTS_OWN && p.used == 0);
    free(mem), free(pool);
}
