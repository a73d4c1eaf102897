/* SPDX-License-Identifier: BSD-2-Clause */
/* The way back (MRC D.8, H38): which entry carries an answer, and how the set learns. First the
 * table alone, then two hosts of which one only receives. */
#include "world_case.h"

#include "mrc_engine_int.h"
#include "path_rig.h"

enum { STRANGE = 0xBEEF };

static struct rig rig_reverse(enum mrc_reverse_rule rule, uint64_t seed)
{
    struct mrc_path_entry_cfg e[8];
    for (uint32_t i = 0; i < 8; i++) /* entries 0, 2, 4, 6 in plane 1, the others in plane 2 */
        e[i] = (struct mrc_path_entry_cfg){.ev = rig_ev(i), .plane = (uint8_t)(1 + i % 2)};
    return rig_of((struct mrc_path_cfg){.count = 8, .reverse = (uint8_t)rule, .seed = seed}, e);
}

static uint16_t answer(struct rig *r, uint32_t ev) { return mrc_path_reverse(r->t, &r->c, ev); }

TEST(path_reverse__reflect_takes_the_evs_own_entry_while_it_is_good)
{
    struct rig r = rig_reverse(MRC_REVERSE_REFLECT, 1);
    for (uint16_t i = 0; i < 8; i++)
        CHECK_EQ(answer(&r, rig_ev(i)), i);
    mrc_path_on_mark(r.t, 5, 1, 0);
    CHECK_EQ(answer(&r, rig_ev(5)), 5);
    mrc_path_on_loss(r.t, 4, MRC_EV_R_LOSS, 0, 0); /* our own packets die there */
    CHECK_EQ(answer(&r, rig_ev(4)), 0);            /* the set's of its plane */
    mrc_path_set_state(r.t, 5, MRC_EV_DENIED, 0);
    CHECK_EQ(answer(&r, rig_ev(5)), 1);
    rig_free(&r);
}

TEST(path_reverse__own_begins_with_the_first_of_each_plane) /* D.8 */
{
    struct rig r = rig_reverse(MRC_REVERSE_OWN, 2);
    for (uint16_t i = 0; i < 16; i++) /* 0, 0, 1, 1, ...: not as planes take turns */
        CHECK_EQ(answer(&r, rig_ev(i / 2)), i / 2 % 2);
    rig_free(&r);
}

TEST(path_reverse__h38_own_random_begins_with_any_of_the_plane) /* H38 */
{
    uint32_t seen = 0;
    for (uint64_t seed = 0; seed < 64; seed++) {
        struct rig r = rig_reverse(MRC_REVERSE_OWN_RANDOM, seed);
        const uint16_t i = answer(&r, rig_ev(3));
        CHECK_EQ(mrc_path_entry(r.t, i)->plane, 2);
        CHECK_EQ(answer(&r, rig_ev(3)), i); /* and stays with it */
        seen |= 1u << i;
        rig_free(&r);
    }
    CHECK_EQ(seen, 0xAA); /* each of the plane in some run */
}

TEST(path_reverse__an_ev_we_do_not_have_takes_the_planes_in_turn)
{
    static const enum mrc_reverse_rule rules[] = {MRC_REVERSE_REFLECT, MRC_REVERSE_OWN};
    for (size_t k = 0; k < 2; k++) {
        struct rig r = rig_reverse(rules[k], 3);
        const uint16_t first = answer(&r, STRANGE);
        CHECK(first < 2);
        for (int i = 1; i < 20; i++)
            CHECK_EQ(answer(&r, STRANGE), (first + i) % 2);
        rig_free(&r);
    }
}

TEST(path_reverse__an_ev_may_say_its_plane) /* D.9: plane in bits 31:24 */
{
    struct mrc_path_entry_cfg e[4];
    for (uint32_t i = 0; i < 4; i++)
        e[i] = (struct mrc_path_entry_cfg){.ev = (1 + i) << 24 | 1, .plane = (uint8_t)(1 + i)};
    struct rig r = rig_of(
        (struct mrc_path_cfg){
            .count = 4, .reverse = MRC_REVERSE_OWN, .ev_plane_shift = 24, .ev_plane_bits = 8},
        e);
    for (uint32_t p = 4; p >= 1; p--)
        CHECK_EQ(answer(&r, p << 24 | STRANGE), p - 1);
    CHECK(answer(&r, 77u << 24) < 4); /* no plane of that number: any */
    CHECK(answer(&r, 9u << 24) < 4);
    rig_free(&r);
}

TEST(path_reverse__falls_back_to_another_plane_and_returns) /* D.8, H39 */
{
    for (int rule = MRC_REVERSE_REFLECT; rule <= MRC_REVERSE_OWN; rule++) {
        struct rig r = rig_reverse((enum mrc_reverse_rule)rule, 4);
        mrc_path_set_planes(r.t, ~(1u << 1), ~0u);
        for (uint16_t i = 0; i < 8; i++)
            CHECK_EQ(mrc_path_entry(r.t, answer(&r, rig_ev(i)))->plane, 2);
        mrc_path_set_planes(r.t, ~0u, ~(1u << 2)); /* the peer's port */
        for (uint16_t i = 0; i < 8; i++)
            CHECK_EQ(mrc_path_entry(r.t, answer(&r, rig_ev(i)))->plane, 1);
        mrc_path_set_planes(r.t, ~0u, ~0u);
        CHECK_EQ(mrc_path_entry(r.t, answer(&r, rig_ev(1)))->plane, 2);
        mrc_path_set_planes(r.t, ~0u, 0); /* it says all are down, and yet it asked */
        const uint16_t last = answer(&r, rig_ev(5));
        CHECK(rule == MRC_REVERSE_REFLECT ? last == 5 : last < 8);
        mrc_path_set_planes(r.t, 0, ~0u);
        CHECK_EQ(answer(&r, rig_ev(1)), MRC_EV_NONE);
        rig_free(&r);
    }
}

TEST(path_reverse__nothing_left_is_answered_on_what_it_came_on)
{
    struct rig r = rig_reverse(MRC_REVERSE_REFLECT, 5);
    for (uint16_t i = 0; i < 8; i++)
        mrc_path_on_loss(r.t, i, MRC_EV_R_LOSS, 0, 0);
    CHECK_EQ(answer(&r, rig_ev(6)), 6);
    mrc_path_set_state(r.t, 6, MRC_EV_DENIED, 0);
    mrc_path_set_planes(r.t, ~(1u << 2), ~0u);
    uint32_t seen = 0;
    for (int k = 0; k < 100; k++)
        seen |= 1u << answer(&r, k % 2 == 0 ? STRANGE : rig_ev(6));
    CHECK_EQ(seen, 1u << 0 | 1u << 2 | 1u << 4); /* any that nobody here has switched off */
    for (uint16_t i = 0; i < 8; i++)
        mrc_path_set_state(r.t, i, MRC_EV_DENIED, 0);
    CHECK_EQ(answer(&r, rig_ev(6)), MRC_EV_NONE);
    CHECK_EQ(answer(&r, STRANGE), MRC_EV_NONE);
    rig_free(&r);
}

TEST(path_reverse__data_reported_received_chooses) /* D.8 */
{
    struct rig r = rig_reverse(MRC_REVERSE_OWN, 6);
    mrc_path_on_rtt(r.t, 6, 100);
    CHECK_EQ(answer(&r, rig_ev(2)), 6);
    CHECK_EQ(answer(&r, rig_ev(3)), 1);
    mrc_path_on_rtt(r.t, 2, 100); /* the latest */
    CHECK_EQ(answer(&r, rig_ev(0)), 2);
    mrc_path_on_loss(r.t, 2, MRC_EV_R_LOSS, 0, 0);
    CHECK(answer(&r, rig_ev(0)) != 2); /* bad: another of the plane */
    CHECK_EQ(mrc_path_entry(r.t, answer(&r, rig_ev(0)))->plane, 1);
    mrc_path_on_rtt(r.t, 2, 100); /* a late report does not bring a bad one in */
    CHECK(answer(&r, rig_ev(0)) != 2);
    rig_free(&r);
}

/* Answers data at `now`, then lets time pass; the entry to be probed, or MRC_EV_NONE. */
static uint16_t round_of(struct rig *r, mrc_ns now, mrc_ns later)
{
    mrc_path_reverse_data(r->t, &r->c, STRANGE, now);
    mrc_path_tick(r->t, now + later);
    return mrc_path_reverse_probe(r->t);
}

TEST(path_reverse__a_probe_in_each_round_that_receives_and_sends_nothing) /* D.8 */
{
    struct rig r = rig_reverse(MRC_REVERSE_OWN, 7);
    int times[8] = {0};
    CHECK_EQ(mrc_path_deadline(r.t), MRC_NEVER);
    for (mrc_ns i = 0; i < 800; i++) {
        const mrc_ns now = i * 2 * MRC_MSEC;
        mrc_path_reverse_data(r.t, &r.c, STRANGE, now);
        CHECK_EQ(mrc_path_deadline(r.t), now + MRC_MSEC);
        mrc_path_tick(r.t, now + MRC_MSEC - 1);
        CHECK_EQ(mrc_path_reverse_probe(r.t), MRC_EV_NONE);
        mrc_path_tick(r.t, now + MRC_MSEC);
        const uint16_t e = mrc_path_reverse_probe(r.t);
        CHECK(e < 8);
        times[e & 7]++;
        CHECK_EQ(mrc_path_reverse_probe(r.t), MRC_EV_NONE); /* one */
        CHECK_EQ(mrc_path_deadline(r.t), MRC_NEVER);        /* idle: none */
    }
    for (int i = 0; i < 8; i++)
        CHECK(times[i] > 60); /* any of them; 100 expected */
    rig_free(&r);
}

TEST(path_reverse__no_probe_while_data_is_sent_or_answers_are_reflected)
{
    struct rig r = rig_reverse(MRC_REVERSE_OWN, 8);
    mrc_path_on_sent(r.t, 3, 100, false);
    CHECK(round_of(&r, 0, MRC_MSEC) != MRC_EV_NONE); /* before the round does not count */
    mrc_path_reverse_data(r.t, &r.c, STRANGE, 10 * MRC_MSEC);
    mrc_path_on_sent(r.t, 3, 100, false);
    mrc_path_tick(r.t, 20 * MRC_MSEC);
    CHECK_EQ(mrc_path_reverse_probe(r.t), MRC_EV_NONE);
    mrc_path_reverse(r.t, &r.c, STRANGE); /* not an answer to data */
    CHECK_EQ(mrc_path_deadline(r.t), MRC_NEVER);
    rig_free(&r);
    r = rig_reverse(MRC_REVERSE_REFLECT, 8);
    mrc_path_reverse_data(r.t, &r.c, rig_ev(3), 0);
    CHECK_EQ(mrc_path_deadline(r.t), MRC_NEVER);
    CHECK(round_of(&r, 0, MRC_MSEC) != MRC_EV_NONE); /* reflect knows no way: the set, probed */
    rig_free(&r);
}

TEST(path_reverse__an_answered_probe_chooses_and_its_time_is_the_round) /* D.8 */
{
    struct rig r = rig_reverse(MRC_REVERSE_OWN, 9);
    mrc_path_on_reverse(r.t, 4, 20 * MRC_MSEC);
    CHECK_EQ(answer(&r, rig_ev(0)), 4);
    CHECK_EQ(round_of(&r, 0, 20 * MRC_MSEC - 1), MRC_EV_NONE);
    mrc_path_tick(r.t, 20 * MRC_MSEC);
    CHECK(mrc_path_reverse_probe(r.t) != MRC_EV_NONE);
    mrc_path_on_reverse(r.t, 2, MRC_SEC * 1000); /* absurd: bounded */
    CHECK(round_of(&r, MRC_SEC, 100 * MRC_MSEC) != MRC_EV_NONE);
    mrc_path_set_state(r.t, 6, MRC_EV_DENIED, 0);
    mrc_path_on_reverse(r.t, 6, 1); /* denied meanwhile */
    CHECK_EQ(answer(&r, rig_ev(0)), 2);
    rig_free(&r);
}

TEST(path_reverse__no_probe_on_what_is_not_usable)
{
    struct rig r = rig_reverse(MRC_REVERSE_OWN, 10);
    for (uint16_t i = 0; i < 6; i++)
        mrc_path_set_state(r.t, i, MRC_EV_DENIED, 0);
    mrc_path_set_planes(r.t, ~(1u << 2), ~0u);
    for (mrc_ns i = 0; i < 50; i++)
        CHECK_EQ(round_of(&r, i * 2 * MRC_MSEC, MRC_MSEC), 6);
    mrc_path_set_planes(r.t, 0, 0);
    CHECK_EQ(round_of(&r, MRC_SEC, MRC_MSEC), MRC_EV_NONE);
    rig_free(&r);
}

/* ---- two hosts ---- */

static struct world_cfg apart(uint64_t seed, enum mrc_reverse_rule rule)
{
    struct world_cfg cfg = world_defaults(seed);
    cfg.paths = 16;
    cfg.planes = 4;
    cfg.link.rate_bps = 1000000000;
    cfg.link.delay_ns = 40 * MRC_USEC;
    cfg.cc.link_bps = 4000000000;
    cfg.cc.base_rtt_ns = 120 * MRC_USEC;
    cfg.cc.max_cwnd_bytes = 120000;
    cfg.reverse = (uint8_t)rule;
    cfg.own_evs = true;
    return cfg;
}

static struct world_qp_cfg bulk_qp(void)
{
    struct world_qp_cfg q = world_qp_defaults();
    q.timeout = 13;
    q.exp_cnt = 25;
    q.mpr = 16;
    return q;
}

static const struct world_load bulk = {.messages = 1000000, .bytes_min = 16384, .bytes_max = 16384};

static uint64_t back_packets(struct world *w, uint16_t path)
{
    return world_link(w, 1, 0, path)->stats.packets;
}

/* Host 1 only receives; one path of each plane dies towards host 0. Its probes find out. */
TEST(path_reverse__a_receiver_leaves_a_dead_way_back)
{
    for (int rule = MRC_REVERSE_REFLECT; rule <= MRC_REVERSE_OWN_RANDOM; rule++) {
        const struct world_cfg cfg = apart(21, (enum mrc_reverse_rule)rule);
        const struct world_qp_cfg q = bulk_qp();
        struct world *const w = case_world(&cfg, &q, 16384);
        uint64_t before[16];
        world_load(w, 0, &bulk);
        CHECK(world_run(w, w->now + 10 * MRC_MSEC));
        for (uint16_t i = 0; i < 12; i++) /* of the 4 in each plane 1 remains */
            world_link(w, 1, 0, i)->cut = true;
        CHECK(world_run(w, w->now + 200 * MRC_MSEC)); /* each plane meets its live one */
        for (uint16_t i = 0; i < 16; i++)
            before[i] = back_packets(w, i);
        CHECK(world_run(w, w->now + 100 * MRC_MSEC));
        uint64_t dead = 0;
        uint64_t live = 0;
        for (uint16_t i = 0; i < 16; i++)
            *(i < 12 ? &dead : &live) += back_packets(w, i) - before[i];
        CHECK(dead < 150); /* its probes, one a millisecond */
        CHECK(live > 10 * dead);
        w->flow[0].load.messages = w->flow[0].posted;
        CHECK(case_finish(w, MRC_SEC));
        case_end(w);
    }
}

TEST(path_reverse__own_evs_carry_answers_in_every_plane)
{
    const struct world_cfg cfg = apart(22, MRC_REVERSE_OWN);
    const struct world_qp_cfg q = bulk_qp();
    struct world *const w = case_world(&cfg, &q, 16384);
    world_load(w, 0, &bulk);
    CHECK(world_run(w, w->now + 50 * MRC_MSEC));
    for (uint32_t p = 0; p < 4; p++) {
        uint64_t n = 0;
        for (uint32_t k = 0; k < 4; k++)
            n += back_packets(w, (uint16_t)(p + 4 * k));
        CHECK(n > 50);
    }
    w->flow[0].load.messages = w->flow[0].posted;
    CHECK(case_finish(w, MRC_SEC));
    case_end(w);
}

/* Both send: no probes, the reports of data are enough. */
TEST(path_reverse__who_sends_data_sends_no_probes)
{
    const struct world_cfg cfg = apart(23, MRC_REVERSE_OWN);
    const struct world_qp_cfg q = bulk_qp();
    struct world *const w = case_world(&cfg, &q, 16384);
    world_load(w, 0, &bulk);
    world_load(w, 1, &bulk);
    CHECK(world_run(w, w->now + 10 * MRC_MSEC));
    const struct mrc_ep *const ep = &w->host[1].e->ep;
    const uint16_t id = ep->reverse_next;
    CHECK(world_run(w, w->now + 100 * MRC_MSEC));
    CHECK_EQ(ep->reverse_next, id);
    for (uint32_t i = 0; i < w->flows; i++)
        w->flow[i].load.messages = w->flow[i].posted;
    CHECK(case_finish(w, MRC_SEC));
    case_end(w);
}
