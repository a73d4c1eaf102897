/* SPDX-License-Identifier: BSD-2-Clause */
/* The table of MRC D.5, row by row and for every other pair of state and event; event masks (C.6);
 * an EV replaced while the table is in use (C.5). */
#include "t.h"

#include "path_rig.h"

/* ---- the states of one entry ---- */

/* A table whose entry 0 is in that state at time 1000; the rest is GOOD. Rotations are not turned,
 * so that nothing is restored. */
static struct rig in_state(enum mrc_ev_state s)
{
    struct rig r = rig_new(8, 2, 1, 3);
    switch (s) {
    case MRC_EV_GOOD: break;
    case MRC_EV_SKIP: mrc_path_on_mark(r.t, 0, 1, 1000); break;
    case MRC_EV_ASSUMED_BAD: mrc_path_on_loss(r.t, 0, MRC_EV_R_LOSS, 1000, 1000); break;
    case MRC_EV_DENIED: mrc_path_set_state(r.t, 0, MRC_EV_DENIED, 1000); break;
    }
    CHECK_EQ(mrc_path_state(r.t, 0), s);
    return r;
}

enum event {
    MARK_NONE, /* SACK m=0 */
    MARK_SKIP, /* SACK m=1 */
    MARK_BAD,  /* SACK m=2 */
    MARK_RESERVED,
    TRIMMED,
    TIMEOUT,
    LOSS,
    REFUSED, /* the socket */
    DELIVERED,
    PROBES_ANSWERED,
    PROBES_MARKED, /* the last answer has m=1 */
    PROBE_SILENT,
    PLANE_DOWN,
    PEER_DOWN,
    SET_DENIED,
    SET_GOOD,
    EVENTS,
};

/* Three probes of the bad entry; the last answer carries `mark`. Nothing happens to another. */
static void probe_all(struct rig *r, uint8_t mark)
{
    uint16_t id = 0;
    for (int k = 0; k < 3; k++) {
        const mrc_ns now = (mrc_ns)(10 + k) * MRC_MSEC;
        if (mrc_path_probe_due(r->t, &id, now) != 0)
            return;
        mrc_path_on_probe(r->t, id, k == 2 ? mark : 0, now + 1000);
    }
}

static void happen(struct rig *r, enum event e)
{
    const mrc_ns now = 2000;
    uint16_t id;
    switch (e) {
    case MARK_NONE: mrc_path_on_mark(r->t, 0, 0, now); break;
    case MARK_SKIP: mrc_path_on_mark(r->t, 0, 1, now); break;
    case MARK_BAD: mrc_path_on_mark(r->t, 0, 2, now); break;
    case MARK_RESERVED: mrc_path_on_mark(r->t, 0, 3, now); break;
    case TRIMMED: mrc_path_on_trim(r->t, 0, now); break;
    case TIMEOUT: mrc_path_on_loss(r->t, 0, MRC_EV_R_TIMEOUT, now, now); break;
    case LOSS: mrc_path_on_loss(r->t, 0, MRC_EV_R_LOSS, now, now); break;
    case REFUSED: mrc_path_on_loss(r->t, 0, MRC_EV_R_SEND_ERROR, now, now); break;
    case DELIVERED: mrc_path_on_rtt(r->t, 0, 1000); break;
    case PROBES_ANSWERED: probe_all(r, 0); break;
    case PROBES_MARKED: probe_all(r, 1); break;
    case PROBE_SILENT:
        mrc_path_probe_due(r->t, &id, now);
        mrc_path_tick(r->t, now + 10 * MRC_MSEC);
        break;
    case PLANE_DOWN: mrc_path_set_planes(r->t, ~(1u << 1), ~0u); break;
    case PEER_DOWN: mrc_path_set_planes(r->t, ~0u, ~(1u << 1)); break;
    case SET_DENIED: mrc_path_set_state(r->t, 0, MRC_EV_DENIED, now); break;
    case SET_GOOD: mrc_path_set_state(r->t, 0, MRC_EV_GOOD, now); break;
    case EVENTS: break;
    }
}

enum { G = MRC_EV_GOOD, S = MRC_EV_SKIP, B = MRC_EV_ASSUMED_BAD, D = MRC_EV_DENIED };

/* [event][state before] = state after. Probes of what is not bad are never sent. */
static const uint8_t d5[EVENTS][4] = {
    [MARK_NONE] = {G, S, B, D},     [MARK_SKIP] = {S, S, B, D},
    [MARK_BAD] = {B, B, B, D},      [MARK_RESERVED] = {G, S, B, D},
    [TRIMMED] = {S, S, B, D},       [TIMEOUT] = {B, B, B, D},
    [LOSS] = {B, B, B, D},          [REFUSED] = {B, B, B, D},
    [DELIVERED] = {G, S, B, D},     [PROBES_ANSWERED] = {G, S, G, D},
    [PROBES_MARKED] = {G, S, S, D}, /* H12 */
    [PROBE_SILENT] = {G, S, B, D},  [PLANE_DOWN] = {G, S, B, D},
    [PEER_DOWN] = {G, S, B, D},     [SET_DENIED] = {D, D, D, D},
    [SET_GOOD] = {G, G, G, G},
};

static void check_row(enum event e)
{
    for (uint8_t s = G; s <= D; s++) {
        struct rig r = in_state((enum mrc_ev_state)s);
        happen(&r, e);
        CHECK_EQ(mrc_path_state(r.t, 0) | (uint32_t)e << 8 | (uint32_t)s << 4,
                 d5[e][s] | (uint32_t)e << 8 | (uint32_t)s << 4);
        for (uint16_t i = 1; i < 8; i++)
            CHECK_EQ(mrc_path_state(r.t, i), MRC_EV_GOOD);
        rig_free(&r);
    }
}

TEST(path_d5__congestion)
{
    check_row(MARK_NONE);
    check_row(MARK_SKIP);
    check_row(TRIMMED);
    check_row(MARK_RESERVED);
}

TEST(path_d5__always_skip_is_assumed_bad) { check_row(MARK_BAD); }

TEST(path_d5__loss)
{
    check_row(TIMEOUT);
    check_row(LOSS);
    check_row(REFUSED);
    check_row(DELIVERED); /* brings nobody back */
}

TEST(path_d5__probes)
{
    check_row(PROBES_ANSWERED);
    check_row(PROBES_MARKED);
    check_row(PROBE_SILENT);
}

TEST(path_d5__planes_mask) /* D.7, H39 */
{
    check_row(PLANE_DOWN);
    check_row(PEER_DOWN);
    for (uint8_t s = G; s <= S; s++) { /* unusable without a change of state, and back as it was */
        struct rig r = in_state((enum mrc_ev_state)s);
        CHECK_EQ(mrc_path_active(r.t), 8);
        happen(&r, PLANE_DOWN);
        CHECK_EQ(mrc_path_active(r.t), 4);
        mrc_path_set_planes(r.t, ~0u, ~0u);
        CHECK_EQ(mrc_path_active(r.t), 8);
        CHECK_EQ(mrc_path_state(r.t, 0), s);
        rig_free(&r);
    }
}

TEST(path_d5__control)
{
    check_row(SET_DENIED);
    check_row(SET_GOOD);
}

/* Whatever happens to it for a long time: DENIED stays until the controller says otherwise. */
TEST(path_d5__denied_never_returns_by_itself)
{
    struct rig r = in_state(MRC_EV_DENIED);
    struct mrc_rand q;
    mrc_rand_seed(&q, 9);
    mrc_ns now = 2000;
    uint16_t id;
    for (int k = 0; k < 20000; k++) {
        now += mrc_rand_below(&q, 5) * MRC_MSEC;
        const uint32_t e = mrc_rand_below(&q, SET_DENIED);
        happen(&r, (enum event)e);
        mrc_path_set_planes(r.t, ~0u, ~0u);
        mrc_path_tick(r.t, now);
        if (mrc_path_probe_due(r.t, &id, now) != MRC_EV_NONE)
            CHECK((id & 0xFFF) != 0);
        CHECK_EQ(mrc_path_state(r.t, 0), MRC_EV_DENIED);
        CHECK(rig_select(&r, MRC_EV_NONE) != 0);
        CHECK(mrc_path_reverse(r.t, &r.c, rig_ev(0)) != 0);
    }
    rig_free(&r);
}

/* All bad and no floor: none is given, and probing goes on until one answers (D.6). */
TEST(path_d6__nothing_qualifies_and_probing_goes_on)
{
    struct rig r = rig_new(4, 2, 0, 3);
    uint16_t id = 0;
    for (uint16_t i = 0; i < 4; i++)
        mrc_path_on_loss(r.t, i, MRC_EV_R_LOSS, 1000, 1000);
    CHECK_EQ(rig_select(&r, MRC_EV_NONE), MRC_EV_NONE);
    uint32_t probed = 0;
    for (mrc_ns now = MRC_MSEC; now < MRC_SEC; now += MRC_MSEC) {
        mrc_path_tick(r.t, now);
        const uint16_t i = mrc_path_probe_due(r.t, &id, now);
        if (i != MRC_EV_NONE)
            probed |= 1u << i;
        if (i == 2)
            mrc_path_on_probe(r.t, id, 0, now + 1000);
    }
    CHECK_EQ(probed, 15);
    CHECK_EQ(rig_select(&r, MRC_EV_NONE), 2);
    rig_free(&r);
}

/* ---- the reserve ---- */

TEST(path_backup__any_of_the_plane_is_promoted) /* D.7 */
{
    uint32_t seen = 0;
    for (uint64_t seed = 0; seed < 64; seed++) {
        struct mrc_path_entry_cfg e[8]; /* 2 to 7 are backups, in planes 1 and 2 in turn */
        struct mrc_path_stats s;
        for (uint32_t i = 0; i < 8; i++)
            e[i] = (struct mrc_path_entry_cfg){
                .ev = rig_ev(i), .plane = (uint8_t)(1 + i % 2), .backup = i >= 2};
        struct rig r = rig_of((struct mrc_path_cfg){.count = 8, .min_active = 2, .seed = seed}, e);
        mrc_path_on_loss(r.t, 0, MRC_EV_R_LOSS, 1, 1);
        for (uint16_t i = 2; i < 8; i++) {
            mrc_path_stats(r.t, i, &s);
            seen |= (s.backup ? 0u : 1u) << i;
        }
        probe_all(&r, 0); /* it comes back, as a backup */
        mrc_path_stats(r.t, 0, &s);
        CHECK_EQ(s.state, MRC_EV_GOOD);
        CHECK(s.backup);
        CHECK_EQ(mrc_path_active(r.t), 2);
        rig_free(&r);
    }
    CHECK_EQ(seen, 1u << 2 | 1u << 4 | 1u << 6); /* each of plane 1, none of plane 2 */
}

/* ---- event mask ---- */

/* Into ASSUMED_BAD, back by probes, DENIED, back by control, a verdict the floor holds back. */
static struct rig with_mask(uint8_t mask)
{
    struct mrc_path_entry_cfg e[2] = {{.ev = rig_ev(0), .plane = 1}, {.ev = rig_ev(1), .plane = 1}};
    struct rig r = rig_of(
        (struct mrc_path_cfg){.count = 2, .min_active = 1, .event_mask = mask, .event_ring = 16},
        e);
    mrc_path_on_loss(r.t, 0, MRC_EV_R_LOSS, 1, 1);
    mrc_path_on_loss(r.t, 1, MRC_EV_R_LOSS, 1, 1); /* held back */
    mrc_path_on_rtt(r.t, 1, 1000);
    probe_all(&r, 1); /* back as SKIP, which is service */
    mrc_path_set_state(r.t, 1, MRC_EV_DENIED, 100 * MRC_MSEC);
    mrc_path_set_state(r.t, 1, MRC_EV_GOOD, 101 * MRC_MSEC);
    return r;
}

static void expect(struct rig *r, const uint8_t *to, size_t n)
{
    struct mrc_ev_event v;
    for (size_t i = 0; i < n; i++) {
        CHECK_EQ(mrc_path_event_poll(r->t, &v), 1);
        CHECK_EQ(v.to, to[i]);
    }
    rig_no_event(r);
    rig_free(r);
}

TEST(path_event__mask_chooses_the_new_states) /* C.6 */
{
    static const uint8_t all[] = {B, G, S, D, G};
    static const uint8_t good[] = {S, G};
    static const uint8_t bad[] = {B, G}; /* the second: held back, old state GOOD, new GOOD */
    struct rig r = with_mask(0);
    expect(&r, all, 5);
    r = with_mask(MRC_EV_EVENTS_GOOD);
    expect(&r, good, 2);
    r = with_mask(MRC_EV_EVENTS_BAD);
    expect(&r, bad, 2);
    r = with_mask(MRC_EV_EVENTS_NONE);
    expect(&r, NULL, 0);
}

TEST(path_event__mask_changes_at_run_time_and_masked_ones_are_not_lost_ones)
{
    struct mrc_path_entry_cfg e[1] = {{.ev = 1, .plane = 1}};
    struct rig r = rig_of((struct mrc_path_cfg){.count = 1, .event_ring = 2}, e);
    struct mrc_ev_event v;
    mrc_path_set_events(r.t, MRC_EV_EVENTS_NONE);
    for (mrc_ns i = 0; i < 10; i++)
        mrc_path_set_state(r.t, 0, i % 2 == 0 ? MRC_EV_DENIED : MRC_EV_GOOD, i);
    mrc_path_set_events(r.t, MRC_EV_EVENTS_GOOD);
    for (mrc_ns i = 10; i < 20; i++) /* five of them into GOOD, room for two */
        mrc_path_set_state(r.t, 0, i % 2 == 0 ? MRC_EV_DENIED : MRC_EV_GOOD, i);
    for (mrc_ns i = 0; i < 2; i++) {
        CHECK_EQ(mrc_path_event_poll(r.t, &v), 1);
        CHECK_EQ(v.time, 11 + 2 * i);
        CHECK_EQ(v.drop_count, 0);
    }
    rig_no_event(&r);
    mrc_path_set_state(r.t, 0, MRC_EV_DENIED, 20);
    mrc_path_set_state(r.t, 0, MRC_EV_GOOD, 21);
    CHECK_EQ(mrc_path_event_poll(r.t, &v), 1);
    CHECK_EQ(v.time, 21);
    CHECK_EQ(v.drop_count, 3);
    rig_free(&r);
}

/* ---- another EV in an entry's place ---- */

static struct mrc_path_entry_cfg other(const struct rig *r, uint16_t i, uint32_t ev)
{
    struct mrc_path_entry_cfg e = *mrc_path_entry(r->t, i);
    e.ev = ev;
    e.lane = 99;
    return e;
}

TEST(path_replace__the_new_ev_is_found_and_the_old_one_not)
{
    struct rig r = rig_new(4096, 4, 4, 0);
    struct mrc_path_stats s;
    mrc_path_on_sent(r.t, 7, 100, true);
    mrc_path_on_rtt(r.t, 7, 1000);
    const struct mrc_path_entry_cfg e = other(&r, 7, 0xABCD0001);
    CHECK_EQ(mrc_path_replace(r.t, 7, &e, MRC_EV_GOOD, 50), MRC_OK);
    CHECK_EQ(mrc_path_find(r.t, 0xABCD0001), 7);
    CHECK_EQ(mrc_path_find(r.t, rig_ev(7)), MRC_EV_NONE);
    for (uint32_t i = 0; i < 4096; i++)
        if (i != 7)
            CHECK_EQ(mrc_path_find(r.t, rig_ev(i)), i);
    CHECK_EQ(mrc_path_entry(r.t, 7)->lane, 99);
    CHECK_EQ(mrc_path_srtt(r.t, 7), 0);
    mrc_path_stats(r.t, 7, &s);
    CHECK_EQ(s.packets_sent, 0);
    CHECK_EQ(s.ev, 0xABCD0001);
    mrc_path_on_loss(r.t, 7, MRC_EV_R_TIMEOUT, 49, 60); /* of the former EV */
    CHECK_EQ(mrc_path_state(r.t, 7), MRC_EV_GOOD);
    rig_free(&r);
}

TEST(path_replace__a_bad_one_starts_anew_and_a_denied_one_as_told)
{
    struct rig r = rig_new(8, 2, 1, 0);
    uint16_t id = 0;
    mrc_path_on_loss(r.t, 2, MRC_EV_R_LOSS, 1, 1);
    CHECK_EQ(mrc_path_probe_due(r.t, &id, 2), 2);
    struct mrc_path_entry_cfg e = other(&r, 2, 77);
    CHECK_EQ(mrc_path_replace(r.t, 2, &e, MRC_EV_GOOD, 10), MRC_OK);
    CHECK_EQ(mrc_path_state(r.t, 2), MRC_EV_GOOD);
    CHECK_EQ(mrc_path_active(r.t), 8);
    CHECK_EQ(mrc_path_on_probe(r.t, id, 0, 20), MRC_EV_NONE); /* it was the former's */
    CHECK_EQ(mrc_path_deadline(r.t), MRC_NEVER);
    e = other(&r, 2, 78);
    CHECK_EQ(mrc_path_replace(r.t, 2, &e, MRC_EV_DENIED, 30), MRC_OK);
    CHECK_EQ(mrc_path_active(r.t), 7);
    rig_free(&r);
}

TEST(path_replace__refuses_what_cannot_be)
{
    struct rig r = rig_new(8, 2, 1, 0);
    struct mrc_path_entry_cfg e = other(&r, 2, rig_ev(3));
    CHECK(mrc_path_replace(r.t, 2, &e, MRC_EV_GOOD, 0) == MRC_ERR_INVAL); /* there already */
    e = other(&r, 2, 5);
    CHECK(mrc_path_replace(r.t, 8, &e, MRC_EV_GOOD, 0) == MRC_ERR_INVAL);
    CHECK(mrc_path_replace(r.t, 2, &e, MRC_EV_SKIP, 0) == MRC_ERR_INVAL);
    e.plane = 2; /* D.7: the same plane */
    CHECK(mrc_path_replace(r.t, 2, &e, MRC_EV_GOOD, 0) == MRC_ERR_INVAL);
    CHECK_EQ(mrc_path_find(r.t, rig_ev(2)), 2);
    e = other(&r, 2, rig_ev(2));
    CHECK_EQ(mrc_path_replace(r.t, 2, &e, MRC_EV_GOOD, 0), MRC_OK); /* by itself: a fresh start */
    rig_free(&r);
}

TEST(path_rtt_anew__begins_with_what_comes)
{
    struct rig r = rig_new(4, 1, 0, 0);
    mrc_path_on_rtt(r.t, 1, 1000);
    mrc_path_on_rtt(r.t, 1, 90000);
    mrc_path_rtt_anew(r.t);
    mrc_path_on_rtt(r.t, 1, 8000);
    struct mrc_path_stats s;
    mrc_path_stats(r.t, 1, &s);
    CHECK_EQ(s.rtt_min_ns, 8000);
    CHECK_EQ(s.rtt_max_ns, 8000);
    CHECK_EQ(s.rtt_count, 3);
    rig_free(&r);
}
