/* SPDX-License-Identifier: BSD-2-Clause */
/* Requester: what counts as lost before a timer says so (MRC B.10; ADR 30, 33, 70). */
#include "req_rig.h"

enum { LOST = MRC_SLOT_LOST, FLYING = MRC_SLOT_INFLIGHT };

static uint16_t entry_of(const struct rig *r, uint32_t psn)
{
    return mrc_txtrack_slot(&req_of(r)->tx, mrc_psn(psn))->ev;
}

/* So many packets sprayed one by one, long timers, so that only inference acts. */
static void sprayed(struct rig *r, uint32_t count)
{
    req_open(r, MRC_CC_FIXED);
    r->s[0].cc.cfg.max_cwnd_bytes = 4 * REQ_WINDOW * REQ_NOMINAL;
    req_of(r)->timeout = 22;
    req_of(r)->train_max = 1;
    req_post(r, 1, count * RIG_MTU, WRITE);
    CHECK_EQ(req_send(r), count);
}

/* A SACK for exactly these PSNs above REQ_START - 1; the trigger is the last of them. */
static void hear_bits(struct rig *r, uint64_t bits, uint16_t ooo)
{
    const uint32_t top = 63 - (uint32_t)__builtin_clzll(bits);
    const uint32_t in_order = (uint32_t)__builtin_ctzll(~bits);
    struct mrc_pkt f = req_sack(r, REQ_START - 1 + in_order, REQ_START + top, 0);
    f.sack_bitmap = bits >> in_order;
    f.ooo_count = (uint16_t)(ooo - in_order);
    req_hear(r, &f);
}

static uint32_t bits_set(uint64_t x) { return (uint32_t)__builtin_popcountll(x); }

/* ---- order on one path ---- */

TEST(req_infer__a_later_arrival_on_the_same_ev_is_proof)
{
    struct rig r;
    sprayed(&r, 32);
    const uint16_t ev = entry_of(&r, REQ_START + 31);
    uint64_t others = 0; /* everything on other EVs, and the last on this one */
    for (uint32_t i = 0; i < 32; i++)
        if (entry_of(&r, REQ_START + i) != ev || i == 31)
            others |= 1ull << i;
    const int64_t before = r.s[0].cc.inflight;
    hear_bits(&r, others, (uint16_t)bits_set(others));
    for (uint32_t i = 0; i < 32; i++)
        CHECK_EQ(req_state_of(&r, REQ_START + i), (others >> i & 1) != 0 ? MRC_SLOT_ACKED : LOST);
    CHECK_EQ(mrc_path_state(r.s[0].path, ev), MRC_EV_ASSUMED_BAD); /* S8: at once */
    CHECK_EQ(req_qp(&r)->stats.losses_inferred, 32 - bits_set(others));
    CHECK_EQ(r.s[0].cc.inflight, before - (32 - bits_set(others)) * REQ_NOMINAL);
    CHECK_EQ(req_of(&r)->retry, 0); /* costs nothing of the budget */
    req_close(&r);
}

TEST(req_infer__a_gap_between_paths_is_no_loss) /* field report 16 */
{
    struct rig r;
    sprayed(&r, 32);
    const uint16_t ev = entry_of(&r, REQ_START);
    uint64_t others = 0;
    for (uint32_t i = 0; i < 32; i++)
        if (entry_of(&r, REQ_START + i) != ev)
            others |= 1ull << i;
    hear_bits(&r, others, (uint16_t)bits_set(others));
    for (uint32_t i = 0; i < 32; i++)
        CHECK_EQ(req_state_of(&r, REQ_START + i), (others >> i & 1) != 0 ? MRC_SLOT_ACKED : FLYING);
    req_close(&r);
}

/* A retransmission class may overtake in a queue of its own: it proves nothing about the other. */
TEST(req_infer__classes_are_compared_apart)
{
    struct rig r;
    req_open(&r, MRC_CC_NONE);
    r.s[0].e->env.tclass_retx = 8 << 2 | 2;
    for (uint16_t i = 1; i < RIG_EVS; i++)
        CHECK_EQ(mrc_path_set_state(r.s[0].path, i, MRC_EV_DENIED, r.now), MRC_OK);
    req_post(&r, 1, 4 * RIG_MTU, WRITE);
    CHECK_EQ(req_send(&r), 4);
    req_hear_nack(&r, REQ_START, MRC_NACK_TRIMMED);
    CHECK_EQ(req_send(&r), 1);
    struct mrc_pkt f = req_sack(&r, REQ_START, REQ_START, 0);
    f.rtx = true; /* the copy, which left last, is here */
    req_hear(&r, &f);
    for (uint32_t i = 1; i < 4; i++)
        CHECK_EQ(req_state_of(&r, REQ_START + i), FLYING);
    req_close(&r);
}

/* But copies stay in order among themselves, also where nothing else is on their path. */
TEST(req_infer__copies_are_compared_with_copies)
{
    struct rig r;
    req_open(&r, MRC_CC_NONE);
    r.s[0].e->env.tclass_retx = 8 << 2 | 2;
    for (uint16_t i = 1; i < RIG_EVS; i++)
        CHECK_EQ(mrc_path_set_state(r.s[0].path, i, MRC_EV_DENIED, r.now), MRC_OK);
    req_post(&r, 1, 4 * RIG_MTU, WRITE);
    CHECK_EQ(req_send(&r), 4);
    req_hear_nack(&r, REQ_START, MRC_NACK_TRIMMED);
    req_hear_nack(&r, REQ_START + 1, MRC_NACK_TRIMMED);
    CHECK_EQ(req_send(&r), 2);
    struct mrc_pkt f = req_sack(&r, REQ_START - 1, REQ_START + 1, 0);
    f.rtx = true; /* the second copy is here, and both packets that were not sent again */
    f.sack_bitmap = 0xE;
    f.ooo_count = 3;
    req_hear(&r, &f);
    CHECK_EQ(req_state_of(&r, REQ_START), LOST);
    req_close(&r);
}

/* The end of the bitmap is not the end of the world: what it does not cover may have arrived. */
TEST(req_infer__no_proof_no_loss)
{
    struct rig r;
    sprayed(&r, 100);
    const uint16_t ev = entry_of(&r, REQ_START + 99);
    struct mrc_pkt f = req_sack(&r, REQ_START - 1, REQ_START + 99, 0);
    f.ooo_count = 60; /* the peer knows more than it shows here */
    req_hear(&r, &f);
    for (uint32_t i = 1; i < 99; i++)
        if (entry_of(&r, REQ_START + i) == ev)
            CHECK_EQ(req_state_of(&r, REQ_START + i), FLYING);
    req_close(&r);
}

/* ---- age ---- */

TEST(req_infer__much_later_departures_that_arrived_are_proof) /* B.10's age rule */
{
    for (int late = 0; late < 2; late++) {
        struct rig r;
        sprayed(&r, 8);
        const mrc_ns margin = (500 + 4 * 500) * MRC_USEC; /* base_rtt + 4 x target_qdelay */
        for (uint16_t i = 0; i < RIG_EVS; i++)
            mrc_path_on_rtt(r.s[0].path, i, 100 * MRC_USEC); /* all have reported before */
        uint32_t gap = REQ_START + 1;
        const uint16_t ev = entry_of(&r, gap);
        CHECK_EQ(mrc_path_set_state(r.s[0].path, ev, MRC_EV_DENIED, r.now), MRC_OK);
        r.now += late != 0 ? margin + 1000 : margin - 1000;
        req_post(&r, 1, RIG_MTU, WRITE);
        (void)mrc_engine_tx(r.s[0].e, req_raw, 8, r.now);
        CHECK_EQ(req_of(&r)->tx.max_sent.v, REQ_START + 8);
        hear_bits(&r, 0x101, 2); /* the first, and the late one */
        CHECK_EQ(req_state_of(&r, gap), late != 0 ? LOST : FLYING);
        req_close(&r);
    }
}

/* ---- the gap that has grown too wide ---- */

/* The rig's window of 1024 PSNs halved: 512 above the gap. `report` packets arrive, none on the EV
 * of the first, which therefore has nothing but the gap to speak for it. */
static uint16_t wide_gap(struct rig *r, uint32_t sent, uint16_t ooo, uint8_t recovery, mrc_ns age)
{
    sprayed(r, sent < 128 ? sent : 128);
    for (uint32_t left = sent - (sent < 128 ? sent : 128); left > 0;
         left -= left < 128 ? left : 128)
        req_post(r, 1, (left < 128 ? left : 128) * RIG_MTU, WRITE);
    (void)req_send(r);
    req_of(r)->recovery = recovery;
    const uint16_t ev = entry_of(r, REQ_START);
    uint64_t bits = 0;
    for (uint32_t i = 0; i < 63; i++)
        if (entry_of(r, REQ_START + i) != ev)
            bits |= 1ull << i;
    const mrc_ns sent_at = r->now;
    r->now += 100 * MRC_USEC;
    hear_bits(r, bits, 1); /* what the others take */
    r->now = sent_at + age;
    /* One packet more, so that the newest arrival left `age` after the gap. */
    req_post(r, 1, RIG_MTU, WRITE);
    CHECK_EQ(mrc_path_set_state(r->s[0].path, ev, MRC_EV_DENIED, r->now), MRC_OK);
    (void)mrc_engine_tx(r->s[0].e, req_raw, 16, r->now);
    struct mrc_pkt f = req_sack(r, REQ_START - 1, req_of(r)->tx.max_sent.v, 0);
    f.ooo_count = ooo;
    r->now += 100 * MRC_USEC;
    req_hear(r, &f);
    return ev;
}

/* Above the threshold, and late by the path's own measure: sent again; below or early: not. */
TEST(req_recovery__guarded_takes_a_wide_gap_and_lateness)
{
    static const struct {
        uint16_t ooo;
        mrc_ns age;
        uint8_t want;
    } row[] = {
        {511, 2200 * MRC_USEC, FLYING},
        {512, 2200 * MRC_USEC, LOST},
        {512, 1800 * MRC_USEC,
         FLYING}, /* twice base_rtt + target_qdelay is what an unknown path gets */
    };
    for (size_t k = 0; k < sizeof row / sizeof *row; k++) {
        struct rig r;
        wide_gap(&r, 700, row[k].ooo, MRC_RECOVERY_GUARDED, row[k].age);
        CHECK_EQ(req_state_of(&r, REQ_START), row[k].want);
        req_close(&r);
    }
}

TEST(req_recovery__off_and_plain)
{
    struct rig r;
    wide_gap(&r, 700, 600, MRC_RECOVERY_OFF, 2200 * MRC_USEC);
    CHECK_EQ(req_state_of(&r, REQ_START), FLYING);
    CHECK(!req_of(&r)->recovering);
    req_close(&r);
    wide_gap(&r, 700, 511, MRC_RECOVERY_PLAIN, 200 * MRC_USEC);
    CHECK_EQ(req_state_of(&r, REQ_START), FLYING);
    req_close(&r);
    wide_gap(&r, 700, 512, MRC_RECOVERY_PLAIN, 200 * MRC_USEC);
    CHECK_EQ(req_state_of(&r, REQ_START), LOST);
    CHECK(req_of(&r)->recovering);
    CHECK_EQ(req_of(&r)->recovery_psn.v, req_of(&r)->tx.max_sent.v);
    req_close(&r);
}

/* max(min(1.5 x cwnd, maxwnd), 5 x pkt): with windows of its own size, and five for tiny ones. */
TEST(req_recovery__threshold)
{
    static const struct {
        uint32_t cwnd_pkts;
        uint16_t ooo;
        bool enter;
    } row[] = {{40, 39, false}, {40, 40, true}, {2, 4, false}, {2, 5, true}};
    for (size_t k = 0; k < sizeof row / sizeof *row; k++) {
        struct rig r;
        sprayed(&r, 100);
        r.s[0].cc.cfg.max_cwnd_bytes = row[k].cwnd_pkts * REQ_NOMINAL; /* FIXED: also the most */
        req_of(&r)->recovery = MRC_RECOVERY_PLAIN;
        hear_bits(&r, 2, row[k].ooo);
        CHECK_EQ(req_of(&r)->recovering, row[k].enter);
        req_close(&r);
    }
}

/* 1.5 x cwnd while the window may still grow beyond that. */
TEST(req_recovery__threshold_is_half_again_a_window_that_can_grow)
{
    for (uint16_t ooo = 59; ooo <= 60; ooo++) {
        struct rig r;
        sprayed(&r, 100);
        r.s[0].cc.cfg.kind = MRC_CC_NSCC;
        r.s[0].cc.nscc.cwnd = 40 * REQ_NOMINAL;
        r.s[0].cc.nscc.max_wnd = 1000 * REQ_NOMINAL;
        r.s[0].cc.nscc.last_adjust = r.now; /* the window stays as it is */
        req_of(&r)->recovery = MRC_RECOVERY_PLAIN;
        hear_bits(&r, 2, ooo);
        CHECK_EQ(req_of(&r)->recovering, ooo == 60);
        req_close(&r);
    }
}

/* Each once, within a window above cack, until cack has come to where it all began. */
TEST(req_recovery__each_once_up_to_a_window_until_the_end_is_reached)
{
    struct rig r;
    sprayed(&r, 60);
    r.s[0].cc.cfg.max_cwnd_bytes = 20 * REQ_NOMINAL;
    req_of(&r)->recovery = MRC_RECOVERY_PLAIN;
    hear_bits(&r, 1ull << 5, 30);
    for (uint32_t i = 0; i < 60; i++)
        CHECK_EQ(req_state_of(&r, REQ_START + i), i == 5 ? MRC_SLOT_ACKED : i < 20 ? LOST : FLYING);
    r.s[0].cc.inflight = 0;
    CHECK_EQ(req_send(&r) >= 19, true);
    hear_bits(&r, 1ull << 6, 31); /* those have been sent again since: not once more */
    for (uint32_t i = 0; i < 20; i++)
        CHECK(req_state_of(&r, REQ_START + i) != LOST);
    req_hear_sack(&r, REQ_START + 29, REQ_START + 29, 0); /* the window moves on */
    CHECK_EQ(req_state_of(&r, REQ_START + 35), LOST);
    CHECK(req_of(&r)->recovering);
    req_hear_sack(&r, REQ_START + 59, REQ_START + 59, 0);
    CHECK(!req_of(&r)->recovering);
    req_close(&r);
}

/* ---- what comes in between ---- */

TEST(req_lose__acknowledged_while_it_waits_to_leave_again) /* field report 19 */
{
    struct rig r;
    sprayed(&r, 4);
    req_hear_nack(&r, REQ_START + 2, MRC_NACK_TRIMMED_LASTHOP);
    CHECK_EQ(req_state_of(&r, REQ_START + 2), LOST);
    req_hear_sack(&r, REQ_START + 3, REQ_START + 3, 3 * REQ_NOMINAL);
    CHECK_EQ(req_send(&r), 0);
    CHECK_EQ(mrc_txtrack_outstanding(&req_of(&r)->tx), 0);
    CHECK_EQ(r.s[0].cc.inflight, 0);
    req_close(&r);
}
