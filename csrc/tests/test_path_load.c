/* SPDX-License-Identifier: BSD-2-Clause */
/* How long a mark keeps its path out: marks are compared (MRC D.5, D.6; ADR 96). */
#include <stdlib.h>

#include "t.h"

#include "path_rig.h"

static const mrc_ns RTT = MRC_MSEC;

/* A table whose paths have all delivered 40 packets, none of them marked, in a round trip each. */
static struct rig load_rig(uint16_t count, uint8_t planes, uint8_t rule)
{
    struct mrc_path_entry_cfg e[MRC_EV_MAX];
    for (uint32_t i = 0; i < count; i++)
        e[i] = (struct mrc_path_entry_cfg){.ev = rig_ev(i), .plane = (uint8_t)(1 + i % planes)};
    struct rig r = rig_of((struct mrc_path_cfg){.count = count, .seed = 3, .skip = rule}, e);
    for (uint16_t i = 0; i < count; i++) {
        mrc_path_on_rtt(r.t, i, RTT);
        for (int k = 0; k < 40; k++)
            mrc_path_size_passed(r.t, i, 4000);
    }
    return r;
}

static uint16_t load_select(struct rig *r, mrc_ns now)
{
    const uint16_t i = mrc_path_select(r->t, &r->c, ~0u, MRC_EV_NONE, now);
    r->used[i]++;
    return i;
}

/* Marks on entry i, each of a packet sent after the mark before it was over. */
static void load_mark(struct rig *r, uint16_t i, int n, mrc_ns now)
{
    for (int k = 0; k < n; k++) {
        mrc_path_size_passed(r->t, i, 4000);
        mrc_path_on_mark(r->t, i, 1, now);
        for (int s = 0; s < 4 && mrc_path_state(r->t, i) == MRC_EV_SKIP; s++)
            load_select(r, now);
    }
}

/* How long is entry i out from now on, in steps of an eighth of a round trip; 0: a turn. */
static mrc_ns load_out(struct rig *r, uint16_t i, mrc_ns now)
{
    mrc_ns at = now;
    for (;; at += RTT / 8) {
        rig_clear(r);
        for (int s = 0; s < 40; s++)
            load_select(r, at);
        if (r->used[i] != 0)
            return at - now;
    }
}

TEST(path_load__marked_alone_it_is_out_for_round_trips_twice_as_many_each_time)
{
    struct rig r = load_rig(2, 1, MRC_SKIP_COMPARED);
    mrc_ns now = MRC_SEC;
    load_mark(&r, 0, 4, now); /* may be chance: a turn each */
    CHECK_EQ(mrc_path_state(r.t, 0), MRC_EV_GOOD);
    const mrc_ns want[] = {1, 2, 4, 8, 16, 16};
    for (size_t k = 0; k < sizeof want / sizeof want[0]; k++) {
        mrc_path_on_mark(r.t, 0, 1, now);
        const mrc_ns out = load_out(&r, 0, now);
        CHECK_EQ(out, want[k] * RTT);
        now += out;
    }
    rig_free(&r);
}

TEST(path_load__while_it_is_out_marks_change_nothing) /* D.5: not extended */
{
    struct rig r = load_rig(2, 1, MRC_SKIP_COMPARED);
    load_mark(&r, 0, 5, MRC_SEC);
    CHECK_EQ(mrc_path_state(r.t, 0), MRC_EV_SKIP);
    for (int k = 0; k < 20; k++) {
        mrc_path_on_mark(r.t, 0, 1, MRC_SEC + RTT / 2);
        mrc_path_on_trim(r.t, 0, MRC_SEC + RTT / 2);
    }
    CHECK_EQ(load_out(&r, 0, MRC_SEC), RTT);
    rig_free(&r);
}

TEST(path_load__cuts_count_as_marks)
{
    struct rig r = load_rig(2, 1, MRC_SKIP_COMPARED);
    for (int k = 0; k < 5; k++) {
        mrc_path_on_trim(r.t, 0, MRC_SEC);
        for (int s = 0; s < 4; s++)
            load_select(&r, MRC_SEC);
    }
    CHECK_EQ(mrc_path_state(r.t, 0), MRC_EV_SKIP);
    rig_free(&r);
}

TEST(path_load__where_all_are_marked_alike_it_is_a_turn)
{
    struct rig r = load_rig(8, 1, MRC_SKIP_COMPARED);
    for (int k = 0; k < 100; k++)
        for (uint16_t i = 0; i < 8; i++)
            load_mark(&r, i, 1, MRC_SEC);
    for (uint16_t i = 0; i < 8; i++) {
        mrc_path_on_mark(r.t, i, 1, MRC_SEC);
        CHECK_EQ(load_out(&r, i, MRC_SEC), 0);
    }
    rig_free(&r);
}

TEST(path_load__twice_the_marks_of_the_others_may_be_chance)
{
    struct rig r = load_rig(4, 1, MRC_SKIP_COMPARED);
    for (int k = 0; k < 12; k++)
        for (uint16_t i = 0; i < 4; i++)
            load_mark(&r, i, i == 0 ? 2 : 1, MRC_SEC);
    mrc_path_on_mark(r.t, 0, 1, MRC_SEC);
    CHECK_EQ(load_out(&r, 0, MRC_SEC), 0);
    rig_free(&r);
}

TEST(path_load__the_setting_turn_compares_nothing)
{
    struct rig r = load_rig(2, 1, MRC_SKIP_TURN);
    load_mark(&r, 0, 50, MRC_SEC);
    mrc_path_on_mark(r.t, 0, 1, MRC_SEC);
    CHECK_EQ(load_out(&r, 0, MRC_SEC), 0);
    rig_free(&r);
    CHECK_EQ(mrc_path_size(&(struct mrc_path_cfg){.count = 2, .skip = MRC_SKIP_TURN + 1}), 0);
}

TEST(path_load__planes_are_not_compared) /* D.7: load is never shifted between them */
{
    struct rig r = load_rig(2, 2, MRC_SKIP_COMPARED);
    for (int k = 0; k < 50; k++) {
        mrc_path_size_passed(r.t, 0, 4000);
        mrc_path_on_mark(r.t, 0, 1, MRC_SEC);
        const uint16_t a = load_select(&r, MRC_SEC);
        CHECK(load_select(&r, MRC_SEC) != a);
    }
    CHECK_EQ(r.t->entry[0].skip_until_ns, 0);
    rig_free(&r);
}

TEST(path_load__half_of_a_plane_stays_in_use)
{
    struct rig r = load_rig(4, 1, MRC_SKIP_COMPARED);
    load_mark(&r, 0, 5, MRC_SEC);
    load_mark(&r, 1, 20, MRC_SEC); /* the first has had five of 45 marked: more than twice that */
    CHECK_EQ(rig_count(&r, MRC_EV_SKIP), 2);
    rig_clear(&r);
    for (int s = 0; s < 50; s++)
        load_select(&r, MRC_SEC + RTT / 2);
    CHECK_EQ(r.used[0] + r.used[1], 0);
    mrc_path_on_mark(r.t, 2, 1, MRC_SEC + RTT / 2); /* fewer: the turn counts again */
    uint32_t left = 3;
    for (int s = 0; s < 50; s++) {
        load_select(&r, MRC_SEC + RTT / 2);
        const uint32_t now = rig_count(&r, MRC_EV_SKIP);
        CHECK(now == left || now + 1 == left); /* D.6: one for each packet */
        left = now;
    }
    CHECK_EQ(left, 1); /* two are half of four, with one more there is room to wait */
    rig_free(&r);
}

TEST(path_load__a_path_that_does_well_is_like_any_other_again)
{
    struct rig r = load_rig(2, 1, MRC_SKIP_COMPARED);
    load_mark(&r, 0, 5, MRC_SEC);
    for (int k = 0; k < 64; k++) {
        mrc_path_size_passed(r.t, 0, 4000);
        mrc_path_size_passed(r.t, 1, 4000);
    }
    const mrc_ns later = MRC_SEC + 2 * RTT;
    CHECK_EQ(load_out(&r, 0, later), 0);
    mrc_path_on_mark(r.t, 0, 1, later);
    CHECK_EQ(load_out(&r, 0, later), 0);
    CHECK_EQ(r.t->entry[0].skips, 0);
    rig_free(&r);
}

TEST(path_load__a_new_ev_and_a_healed_one_begin_without_a_past)
{
    struct rig r = load_rig(2, 1, MRC_SKIP_COMPARED);
    load_mark(&r, 0, 5, MRC_SEC);
    const struct mrc_path_entry_cfg to = {.ev = 5, .plane = 1};
    CHECK_EQ(mrc_path_replace(r.t, 0, &to, MRC_EV_GOOD, MRC_SEC), MRC_OK);
    mrc_path_on_rtt(r.t, 0, RTT);
    load_mark(&r, 0, 4, MRC_SEC);
    CHECK_EQ(mrc_path_state(r.t, 0), MRC_EV_GOOD);
    load_mark(&r, 0, 1, MRC_SEC);
    CHECK_EQ(mrc_path_state(r.t, 0), MRC_EV_SKIP);
    mrc_path_on_loss(r.t, 0, MRC_EV_R_TIMEOUT, MRC_SEC, MRC_SEC);
    for (int k = 0; k < 3; k++) { /* healed, into SKIP (H12) */
        mrc_path_tick(r.t, MRC_SEC + (mrc_ns)k * MRC_MSEC);
        uint16_t id = 0;
        CHECK_EQ(mrc_path_probe_due(r.t, &id, MRC_SEC + (mrc_ns)k * MRC_MSEC), 0);
        CHECK_EQ(mrc_path_on_probe(r.t, id, 1, MRC_SEC + (mrc_ns)k * MRC_MSEC + 1), 0);
    }
    CHECK_EQ(mrc_path_state(r.t, 0), MRC_EV_SKIP);
    CHECK_EQ(load_out(&r, 0, MRC_SEC), 0);
    rig_free(&r);
}

TEST(path_load__no_round_trip_is_so_long)
{
    struct rig r = load_rig(2, 1, MRC_SKIP_COMPARED);
    for (int k = 0; k < 200; k++)
        mrc_path_on_rtt(r.t, 0, 1000 * MRC_SEC);
    load_mark(&r, 0, 5, MRC_SEC);
    CHECK_EQ(r.t->entry[0].skip_until_ns, 2 * MRC_SEC);
    rig_free(&r);
}

TEST(path_load__what_a_peer_says_stays_in_bounds)
{
    struct rig r = load_rig(2, 1, MRC_SKIP_COMPARED);
    for (int k = 0; k < 100000; k++) /* marks of packets that never were */
        mrc_path_on_mark(r.t, 0, 1, MRC_SEC);
    CHECK(r.t->entry[0].load.marked < 64);
    rig_check(&r, ~0u);
    rig_free(&r);
}

/* Trains are acknowledged as such, and counted by their packets; the memory stays as short. */
TEST(path_load__a_train_counts_as_its_packets)
{
    struct rig r = load_rig(2, 1, MRC_SKIP_COMPARED);
    mrc_path_sizes_passed(r.t, 0, 4000, 15);
    CHECK_EQ(r.t->entry[0].load.seen, 40 + 15);
    CHECK_EQ(r.t->load[1].seen, 40 + 15 + 40);
    mrc_path_sizes_passed(r.t, 0, 4000, 300);
    CHECK(r.t->entry[0].load.seen >= 32 && r.t->entry[0].load.seen < 64);
    CHECK_EQ(r.t->load[1].seen, r.t->entry[0].load.seen + 40);
    CHECK_EQ(r.t->passed, 2 * 40 + 315);
    rig_free(&r);
}
