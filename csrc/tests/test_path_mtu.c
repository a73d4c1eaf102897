/* SPDX-License-Identifier: BSD-2-Clause */
/* PathTable: entries that full packets do not fit through (ADR 92). */
#include "t.h"

#include "path_rig.h"

enum { FULL = 4136, SMALL = 140, OTHERS = 200 };

/* Three probes, answered. */
static void answered(struct rig *r, uint8_t mark, mrc_ns *now)
{
    for (int k = 0; k < 3; k++) {
        uint16_t id;
        *now = mrc_max64(*now + 1, mrc_path_deadline(r->t) == MRC_NEVER ? 0 : *now + MRC_MSEC);
        const uint16_t i = mrc_path_probe_due(r->t, &id, *now);
        CHECK(i != MRC_EV_NONE);
        if (i == MRC_EV_NONE)
            return;
        mrc_path_on_probe(r->t, id, mark, *now + 1000);
    }
    *now += MRC_MSEC;
}

static void lose(struct rig *r, uint16_t i, uint32_t n, uint32_t bytes, mrc_ns *now)
{
    for (uint32_t k = 0; k < n; k++) {
        mrc_path_size_lost(r->t, i, bytes);
        mrc_path_on_loss(r->t, i, MRC_EV_R_TIMEOUT, *now, *now);
    }
}

static void pass(struct rig *r, uint16_t i, uint32_t n, uint32_t bytes)
{
    for (uint32_t k = 0; k < n; k++)
        mrc_path_size_passed(r->t, i, bytes);
}

/* What entry 0 does while the others deliver: n full packets lost, then probes answered, in turn.
 */
static void hole(struct rig *r, uint32_t rounds, uint32_t n, uint8_t mark, mrc_ns *now)
{
    for (uint32_t k = 0; k < rounds && mrc_path_state(r->t, 0) <= MRC_EV_SKIP; k++) {
        lose(r, 0, n, FULL, now);
        pass(r, 1, OTHERS, FULL);
        if (mrc_path_state(r->t, 0) == MRC_EV_ASSUMED_BAD)
            answered(r, mark, now);
    }
}

TEST(path_mtu__what_the_socket_says_is_final)
{
    const enum mrc_ev_state from[] = {MRC_EV_GOOD, MRC_EV_SKIP, MRC_EV_ASSUMED_BAD};
    for (int k = 0; k < 3; k++) {
        struct rig r = rig_new(4, 2, 1, 7);
        uint16_t id;
        if (k == 1)
            mrc_path_on_mark(r.t, 2, 1, 5);
        if (k == 2)
            mrc_path_on_loss(r.t, 2, MRC_EV_R_TIMEOUT, 5, 5);
        CHECK_EQ(mrc_path_state(r.t, 2), from[k]);
        rig_drain(&r);
        mrc_path_on_loss(r.t, 2, MRC_EV_R_MTU, 7, 7);
        rig_event(&r, 2, from[k], MRC_EV_DENIED, MRC_EV_R_MTU);
        CHECK_EQ(mrc_path_state(r.t, 2), MRC_EV_DENIED);
        /* No probe, no answer, nothing else brings it back. */
        CHECK_EQ(mrc_path_probe_due(r.t, &id, MRC_SEC), MRC_EV_NONE);
        for (int n = 0; n < 9; n++)
            mrc_path_on_answer(r.t, 2, 0, MRC_SEC);
        mrc_path_on_loss(r.t, 2, MRC_EV_R_MTU, MRC_SEC, MRC_SEC);
        mrc_path_on_loss(r.t, 2, MRC_EV_R_SEND_ERROR, MRC_SEC, MRC_SEC);
        CHECK_EQ(mrc_path_state(r.t, 2), MRC_EV_DENIED);
        rig_no_event(&r);
        for (int n = 0; n < 100; n++)
            CHECK(rig_select(&r, MRC_EV_NONE) != 2);
        /* Control does. */
        CHECK_EQ(mrc_path_set_state(r.t, 2, MRC_EV_GOOD, 2 * MRC_SEC), MRC_OK);
        rig_event(&r, 2, MRC_EV_DENIED, MRC_EV_GOOD, MRC_EV_R_CONTROL);
        rig_free(&r);
    }
}

TEST(path_mtu__a_backup_takes_the_place)
{
    const struct mrc_path_entry_cfg e[] = {{.ev = rig_ev(0), .plane = 1},
                                           {.ev = rig_ev(1), .plane = 1, .backup = true}};
    struct rig r = rig_of((struct mrc_path_cfg){.count = 2, .min_active = 1, .seed = 3}, e);
    mrc_path_on_loss(r.t, 0, MRC_EV_R_MTU, 7, 7);
    CHECK_EQ(mrc_path_state(r.t, 0), MRC_EV_DENIED);
    CHECK_EQ(mrc_path_active(r.t), 1);
    CHECK_EQ(rig_select(&r, MRC_EV_NONE), 1);
    rig_free(&r);
}

/* The last ones stay in use for want of better, which is told with the reason, once. */
TEST(path_mtu__the_floor_holds_until_others_are_back)
{
    struct rig r = rig_new(2, 1, 1, 7);
    mrc_ns now = 7;
    mrc_path_on_loss(r.t, 0, MRC_EV_R_TIMEOUT, now, now);
    rig_event(&r, 0, MRC_EV_GOOD, MRC_EV_ASSUMED_BAD, MRC_EV_R_TIMEOUT);
    mrc_path_on_loss(r.t, 1, MRC_EV_R_TIMEOUT, now, now);
    rig_event(&r, 1, MRC_EV_GOOD, MRC_EV_GOOD, MRC_EV_R_TIMEOUT);
    mrc_path_on_loss(r.t, 1, MRC_EV_R_MTU, now, now);
    rig_event(&r, 1, MRC_EV_GOOD, MRC_EV_GOOD, MRC_EV_R_MTU);
    mrc_path_on_loss(r.t, 1, MRC_EV_R_MTU, now, now);
    mrc_path_on_loss(r.t, 1, MRC_EV_R_TIMEOUT, now, now);
    rig_no_event(&r);
    CHECK(mrc_path_all_bad(r.t));
    answered(&r, 0, &now);
    rig_event(&r, 0, MRC_EV_ASSUMED_BAD, MRC_EV_GOOD, MRC_EV_R_PROBE);
    rig_event(&r, 1, MRC_EV_GOOD, MRC_EV_DENIED, MRC_EV_R_MTU);
    rig_free(&r);
}

TEST(path_mtu__a_hole_for_full_packets_is_found)
{
    struct rig r = rig_new(4, 1, 1, 7);
    mrc_ns now = MRC_SEC;
    hole(&r, 100, 4, 0, &now);
    CHECK_EQ(mrc_path_state(r.t, 0), MRC_EV_DENIED);
    for (int k = 0; k < 3; k++) {
        rig_event(&r, 0, MRC_EV_GOOD, MRC_EV_ASSUMED_BAD, MRC_EV_R_TIMEOUT);
        rig_event(&r, 0, MRC_EV_ASSUMED_BAD, MRC_EV_GOOD, MRC_EV_R_PROBE);
    }
    rig_event(&r, 0, MRC_EV_GOOD, MRC_EV_ASSUMED_BAD, MRC_EV_R_TIMEOUT);
    rig_event(&r, 0, MRC_EV_ASSUMED_BAD, MRC_EV_DENIED, MRC_EV_R_MTU); /* the sixteenth */
    rig_no_event(&r);
    rig_free(&r);
}

TEST(path_mtu__small_packets_that_pass_do_not_hide_it)
{
    struct rig r = rig_new(4, 1, 1, 7);
    mrc_ns now = MRC_SEC;
    for (int k = 0; k < 10; k++) {
        hole(&r, 1, 4, 0, &now);
        pass(&r, 0, 10, SMALL);
    }
    CHECK_EQ(mrc_path_state(r.t, 0), MRC_EV_DENIED);
    rig_free(&r);
}

/* A path that loses much, but not all; congestion, of which probes tell; a storm that strikes all
 * paths; the only path; a path that loses all and is not said to work by anybody. */
TEST(path_mtu__what_looks_like_it_for_a_while)
{
    struct rig r = rig_new(4, 1, 1, 7);
    mrc_ns now = MRC_SEC;
    for (int k = 0; k < 10; k++) {
        hole(&r, 3, 5, 0, &now);
        pass(&r, 0, 1, FULL);
    }
    CHECK(mrc_path_state(r.t, 0) <= MRC_EV_SKIP);
    rig_free(&r);

    r = rig_new(4, 1, 1, 7);
    hole(&r, 50, 4, 1, &now);
    CHECK(mrc_path_state(r.t, 0) <= MRC_EV_SKIP);
    rig_free(&r);

    r = rig_new(4, 1, 1, 7);
    for (int k = 0; k < 50; k++) {
        lose(&r, 0, 4, FULL, &now);
        for (uint16_t i = 1; i < 4; i++) {
            for (int n = 0; n < 4; n++)
                mrc_path_size_lost(r.t, i, FULL);
            pass(&r, i, 3, FULL);
        }
        answered(&r, 0, &now);
    }
    CHECK(mrc_path_state(r.t, 0) <= MRC_EV_SKIP);
    rig_free(&r);

    r = rig_new(4, 1, 1, 7); /* marks and trims of data, too */
    for (int k = 0; k < 50; k++) {
        hole(&r, 1, 5, 0, &now);
        mrc_path_on_trim(r.t, 0, now);
        hole(&r, 1, 5, 0, &now);
        mrc_path_on_mark(r.t, 0, 1, now);
    }
    CHECK(mrc_path_state(r.t, 0) <= MRC_EV_SKIP);
    rig_free(&r);

    r = rig_new(4, 1, 1, 7); /* a link that flaps: probes are lost as well */
    for (int k = 0; k < 50 && mrc_path_state(r.t, 0) <= MRC_EV_SKIP; k++) {
        uint16_t id;
        lose(&r, 0, 4, FULL, &now);
        pass(&r, 1, OTHERS, FULL);
        CHECK_EQ(mrc_path_probe_due(r.t, &id, now), 0);
        now = mrc_path_deadline(r.t);
        mrc_path_tick(r.t, now);
        now += 50 * MRC_MSEC;
        answered(&r, 0, &now);
    }
    CHECK(mrc_path_state(r.t, 0) <= MRC_EV_SKIP);
    rig_free(&r);

    r = rig_new(1, 1, 0, 7);
    for (int k = 0; k < 50; k++) {
        lose(&r, 0, 4, FULL, &now);
        answered(&r, 0, &now);
    }
    CHECK(mrc_path_state(r.t, 0) <= MRC_EV_SKIP);
    rig_free(&r);

    r = rig_new(4, 1, 1, 7);
    lose(&r, 0, 100, FULL, &now);
    pass(&r, 1, OTHERS, FULL);
    lose(&r, 0, 100, FULL, &now);
    CHECK_EQ(mrc_path_state(r.t, 0), MRC_EV_ASSUMED_BAD);
    rig_free(&r);
}

/* IPv6 carries 1280 bytes everywhere. */
TEST(path_mtu__what_fits_every_link_is_not_lost_for_its_size)
{
    struct rig r = rig_new(4, 1, 1, 7);
    mrc_ns now = MRC_SEC;
    for (int k = 0; k < 50; k++) {
        lose(&r, 0, 4, 1280 - 128, &now);
        pass(&r, 1, OTHERS, FULL);
        answered(&r, 0, &now);
    }
    CHECK(mrc_path_state(r.t, 0) <= MRC_EV_SKIP);
    rig_free(&r);
}

/* What was held against it is forgotten when control has it back, or another EV takes its place. */
TEST(path_mtu__a_new_life_begins_without_suspicion)
{
    for (int k = 0; k < 2; k++) {
        struct rig r = rig_new(4, 1, 1, 7);
        mrc_ns now = MRC_SEC;
        hole(&r, 3, 5, 0, &now);
        CHECK_EQ(mrc_path_state(r.t, 0), MRC_EV_GOOD);
        if (k == 0) {
            mrc_path_set_state(r.t, 0, MRC_EV_GOOD, now);
        } else {
            const struct mrc_path_entry_cfg to = {.ev = 77, .plane = 1};
            CHECK_EQ(mrc_path_replace(r.t, 0, &to, MRC_EV_GOOD, now), MRC_OK);
        }
        now += MRC_MSEC;
        hole(&r, 3, 5, 0, &now);
        CHECK_EQ(mrc_path_state(r.t, 0), MRC_EV_GOOD);
        hole(&r, 1, 5, 0, &now);
        CHECK_EQ(mrc_path_state(r.t, 0), MRC_EV_DENIED);
        rig_free(&r);
    }
}

/* It is tried again after a second, then two, to a minute; a full packet that passed begins anew.
 */
TEST(path_mtu__a_verdict_is_for_a_time)
{
    struct rig r = rig_new(4, 1, 1, 7);
    mrc_ns now = MRC_SEC;
    for (uint32_t k = 0; k < 10; k++) {
        const mrc_ns wait = MRC_SEC << (k < 6 ? k : k < 8 ? 6 : k - 8);
        if (k == 8)
            pass(&r, 2, 1, FULL);
        mrc_path_on_loss(r.t, 2, MRC_EV_R_MTU, now, now);
        rig_event(&r, 2, MRC_EV_GOOD, MRC_EV_DENIED, MRC_EV_R_MTU);
        CHECK_EQ(mrc_path_deadline(r.t), now + wait);
        now += wait;
        mrc_path_tick(r.t, now - 1);
        CHECK_EQ(mrc_path_state(r.t, 2), MRC_EV_DENIED);
        mrc_path_tick(r.t, now);
        rig_event(&r, 2, MRC_EV_DENIED, MRC_EV_GOOD, MRC_EV_R_MTU);
        CHECK_EQ(mrc_path_deadline(r.t), MRC_NEVER);
        pass(&r, 2, 1, SMALL);
    }
    rig_free(&r);
}

/* Whom control denies, before or afterwards, is out until control says otherwise. */
TEST(path_mtu__control_is_not_overruled)
{
    struct rig r = rig_new(4, 1, 1, 7);
    mrc_path_on_loss(r.t, 2, MRC_EV_R_MTU, 7, 7);
    CHECK_EQ(mrc_path_set_state(r.t, 2, MRC_EV_DENIED, 8), MRC_OK);
    CHECK_EQ(mrc_path_set_state(r.t, 3, MRC_EV_DENIED, 8), MRC_OK);
    mrc_path_on_loss(r.t, 3, MRC_EV_R_MTU, 9, 9);
    CHECK_EQ(mrc_path_deadline(r.t), MRC_NEVER);
    mrc_path_tick(r.t, 100 * MRC_SEC);
    CHECK_EQ(mrc_path_state(r.t, 2), MRC_EV_DENIED);
    CHECK_EQ(mrc_path_state(r.t, 3), MRC_EV_DENIED);
    rig_free(&r);
}
