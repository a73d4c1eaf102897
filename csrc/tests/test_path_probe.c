/* SPDX-License-Identifier: BSD-2-Clause */
/* PathTable: probing (MRC F.2) over virtual time, with paths that work, lose, are slow or dead. */
#include "t.h"

#include "path_rig.h"

enum { FLIGHTS = 4096 };

struct flight { /* an answer on its way */
    mrc_ns arrives;
    uint16_t id;
    uint8_t mark;
    bool used;
};

struct net {
    struct rig r;
    struct mrc_rand rand;
    mrc_ns now;
    mrc_ns rtt_ns;
    uint64_t dead;     /* entries 0..63: bit i = nothing comes back */
    uint32_t loss_ppm; /* of probes and of data */
    uint32_t probes;   /* sent */
    uint32_t out_max;  /* most answers awaited at a time */
    struct flight flight[FLIGHTS];
};

static struct net *net_new(uint16_t count, uint16_t min_active, mrc_ns rtt, uint64_t seed)
{
    struct net *n = calloc(1, sizeof *n);
    n->r = rig_new(count, count >= 4 ? 4 : 1, min_active, seed);
    n->rtt_ns = rtt;
    n->now = MRC_SEC;
    mrc_rand_seed(&n->rand, seed);
    return n;
}

static void net_free(struct net *n)
{
    rig_free(&n->r);
    free(n);
}

static bool net_lost(struct net *n) { return mrc_rand_below(&n->rand, 1000000) < n->loss_ppm; }

static void net_launch(struct net *n, uint16_t entry, uint16_t id)
{
    n->probes++;
    CHECK(id < 0x8000);
    if ((entry < 64 && (n->dead >> entry & 1) != 0) || net_lost(n) || net_lost(n))
        return;
    uint32_t k = 0;
    while (n->flight[k].used)
        k++;
    n->flight[k] = (struct flight){.arrives = n->now + n->rtt_ns, .id = id, .used = true};
}

/* Answers that have arrived, time passes, probes leave: one turn of an engine. */
static void net_turn(struct net *n)
{
    for (uint32_t k = 0; k < FLIGHTS; k++) {
        if (!n->flight[k].used || n->flight[k].arrives > n->now)
            continue;
        n->flight[k].used = false;
        mrc_path_on_probe(n->r.t, n->flight[k].id, n->flight[k].mark, n->now);
    }
    mrc_path_tick(n->r.t, n->now);
    CHECK(mrc_path_deadline(n->r.t) > n->now); /* field report 25 */
    uint16_t id;
    for (uint16_t i; (i = mrc_path_probe_due(n->r.t, &id, n->now)) != MRC_EV_NONE;)
        net_launch(n, i, id);
    CHECK(!mrc_path_probe_pending(n->r.t));
    CHECK(mrc_path_deadline(n->r.t) > n->now);
}

/* From event to event until the time given. */
static void net_run(struct net *n, mrc_ns until)
{
    for (;;) {
        net_turn(n);
        mrc_ns next = mrc_path_deadline(n->r.t);
        for (uint32_t k = 0; k < FLIGHTS; k++)
            if (n->flight[k].used)
                next = mrc_min64(next, n->flight[k].arrives);
        if (next > until)
            break;
        n->now = next;
    }
    n->now = until;
}

static void net_lose(struct net *n, uint16_t i)
{
    mrc_path_on_loss(n->r.t, i, MRC_EV_R_LOSS, n->now, n->now);
}

TEST(path_probe__one_lost_packet_costs_less_than_5_ms)
{
    struct net *n = net_new(16, 4, 200 * MRC_USEC, 1);
    net_lose(n, 5);
    net_run(n, n->now + 2 * MRC_MSEC);
    CHECK_EQ(mrc_path_state(n->r.t, 5), MRC_EV_ASSUMED_BAD); /* three answers, 1 ms apart */
    net_run(n, n->now + 300 * MRC_USEC);
    CHECK_EQ(mrc_path_state(n->r.t, 5), MRC_EV_GOOD);
    CHECK_EQ(n->probes, 3);
    rig_event(&n->r, 5, MRC_EV_GOOD, MRC_EV_ASSUMED_BAD, MRC_EV_R_LOSS);
    rig_event(&n->r, 5, MRC_EV_ASSUMED_BAD, MRC_EV_GOOD, MRC_EV_R_PROBE);
    struct mrc_path_stats s;
    mrc_path_stats(n->r.t, 5, &s);
    CHECK_EQ(s.probes_sent, 3);
    CHECK_EQ(s.probes_answered, 3);
    CHECK_EQ(s.rtt_max_ns, 200 * MRC_USEC);
    CHECK_EQ(s.good_since_ns, MRC_SEC + 2200 * MRC_USEC);
    mrc_path_on_loss(n->r.t, 5, MRC_EV_R_TIMEOUT, MRC_SEC + 1, n->now); /* sent before it healed */
    CHECK_EQ(mrc_path_state(n->r.t, 5), MRC_EV_GOOD);
    CHECK_EQ(mrc_path_deadline(n->r.t), MRC_NEVER);
    net_free(n);
}

TEST(path_probe__twelve_of_sixteen_return_together)
{
    struct net *n = net_new(16, 4, 300 * MRC_USEC, 2);
    n->dead = 0xF000; /* the last four are in use and fine, or dead: no matter */
    for (uint16_t i = 0; i < 12; i++)
        net_lose(n, i);
    CHECK_EQ(mrc_path_active(n->r.t), 4);
    net_run(n, n->now + 5 * MRC_MSEC);
    CHECK_EQ(mrc_path_active(n->r.t), 16);
    net_free(n);
}

TEST(path_probe__dead_paths_do_not_hold_up_the_others)
{
    struct net *n = net_new(16, 2, 300 * MRC_USEC, 3);
    n->dead = 0xF;
    for (uint16_t i = 0; i < 4; i++)
        net_lose(n, i);
    net_run(n, n->now + 500 * MRC_MSEC);
    for (int round = 0; round < 20; round++) {
        for (uint16_t i = 4; i < 14; i++)
            net_lose(n, i);
        net_run(n, n->now + 5 * MRC_MSEC);
        CHECK_EQ(mrc_path_active(n->r.t), 12);
    }
    net_free(n);
}

TEST(path_probe__a_dead_path_costs_only_its_backed_off_probes)
{
    struct net *n = net_new(16, 4, 300 * MRC_USEC, 4);
    n->dead = 1;
    net_lose(n, 0);
    net_run(n, n->now + 10 * MRC_SEC);
    CHECK(n->probes >= 10000 / 50);
    CHECK(n->probes <= 10000 / 50 + 8); /* 1, 2, 4, 8, 16, 32 ms, then every 50 */
    net_free(n);
}

TEST(path_probe__healed_path_is_back_within_200_ms) /* field report 33 */
{
    for (uint64_t seed = 1; seed <= 50; seed++) {
        struct net *n = net_new(16, 4, 500 * MRC_USEC, seed);
        n->dead = 0xF;
        n->loss_ppm = seed > 25 ? 10000 : 0;
        for (uint16_t i = 0; i < 4; i++)
            net_lose(n, i);
        net_run(n, n->now + MRC_MSEC * (1 + mrc_rand_below(&n->rand, 30000)));
        CHECK_EQ(mrc_path_active(n->r.t), 12);
        n->dead = 0;
        net_run(n, n->now + 200 * MRC_MSEC);
        CHECK_EQ(mrc_path_active(n->r.t), 16);
        net_free(n);
    }
}

TEST(path_probe__rtt_above_the_timeout_is_not_death) /* field report 39 */
{
    static const mrc_ns rtts[] = {MRC_MSEC, 5 * MRC_MSEC, 30 * MRC_MSEC, 120 * MRC_MSEC};
    for (size_t k = 0; k < sizeof rtts / sizeof rtts[0]; k++) {
        struct net *n = net_new(16, 4, rtts[k], k);
        for (uint16_t i = 0; i < 12; i++)
            net_lose(n, i); /* no RTT sample yet: the floor of 3 ms is all there is */
        net_run(n, n->now + 500 * MRC_MSEC);
        CHECK_EQ(mrc_path_active(n->r.t), 16);
        /* The RTT is known now: no probe is given up, so a lost packet costs three round trips. */
        net_lose(n, 3);
        n->probes = 0;
        net_run(n, n->now + 3 * mrc_max64(rtts[k], MRC_MSEC));
        CHECK_EQ(mrc_path_active(n->r.t), 16);
        CHECK_EQ(n->probes, 3);
        net_free(n);
    }
}

TEST(path_probe__data_rtts_stretch_the_timeout) /* field report 39 */
{
    struct net *n = net_new(4, 1, 18 * MRC_MSEC, 5);
    for (int i = 0; i < 100; i++)
        mrc_path_on_rtt(n->r.t, 1, 10 * MRC_MSEC);
    net_lose(n, 0);
    net_turn(n);
    CHECK_EQ(mrc_path_deadline(n->r.t), n->now + 20 * MRC_MSEC);
    for (int i = 0; i < 100000; i++)
        mrc_path_on_rtt(n->r.t, 1, MRC_MSEC); /* and it shrinks again */
    net_run(n, n->now + 400 * MRC_MSEC);
    CHECK_EQ(mrc_path_active(n->r.t), 4);
    net_free(n);
}

/* A packet every 10 us over all usable paths (3.3 Gbit/s), one in a hundred lost: most stay usable.
 */
TEST(path_probe__one_percent_loss_leaves_most_paths_usable)
{
    for (uint64_t seed = 1; seed <= 5; seed++) {
        struct net *n = net_new(16, 4, 300 * MRC_USEC, seed);
        n->loss_ppm = 10000;
        uint64_t active = 0;
        const uint32_t packets = 50000;
        for (uint32_t k = 0; k < packets; k++) {
            const uint16_t i = rig_select(&n->r, MRC_EV_NONE);
            active += mrc_path_active(n->r.t);
            CHECK(mrc_path_active(n->r.t) >= 4);
            if (net_lost(n))
                net_lose(n, i);
            n->now += 10 * MRC_USEC;
            net_turn(n);
        }
        CHECK(active / packets >= 12);
        for (int i = 0; i < 16; i++) /* and carry about the same */
            CHECK(n->r.used[i] > 3125 * 7 / 10 && n->r.used[i] < 3125 * 13 / 10);
        net_free(n);
    }
}

TEST(path_probe__limit_is_5_percent_but_16_in_any_table)
{
    static const uint16_t counts[] = {10, 16, 64, 320, 400, 4096};
    static const uint16_t limits[] = {10, 16, 16, 16, 20, 204};
    for (size_t k = 0; k < sizeof counts / sizeof counts[0]; k++) {
        struct net *n = net_new(counts[k], 0, MRC_MSEC, 6);
        for (uint16_t i = 0; i < counts[k]; i++)
            net_lose(n, i);
        net_turn(n);
        CHECK_EQ(n->probes, limits[k]);
        net_turn(n);
        CHECK_EQ(n->probes, limits[k]);
        net_run(n, n->now + 300 * MRC_MSEC);
        CHECK_EQ(mrc_path_active(n->r.t), counts[k]);
        net_free(n);
    }
}

TEST(path_probe__answers_count_once_and_strangers_not)
{
    struct net *n = net_new(16, 4, MRC_MSEC, 7);
    struct mrc_path_table *t = n->r.t;
    uint16_t id = 0;
    net_lose(n, 9);
    CHECK_EQ(mrc_path_probe_due(t, &id, n->now), 9);
    for (uint32_t other = 0; other <= 0xFFFF; other++)
        if (other != id)
            CHECK_EQ(mrc_path_on_probe(t, (uint16_t)other, 0, n->now), MRC_EV_NONE);
    CHECK_EQ(mrc_path_on_probe(t, id, 0, n->now + 100), 9);
    for (int i = 0; i < 5; i++) /* the network duplicates it */
        CHECK_EQ(mrc_path_on_probe(t, id, 0, n->now + 100), MRC_EV_NONE);
    CHECK_EQ(mrc_path_state(t, 9), MRC_EV_ASSUMED_BAD);
    mrc_path_set_state(t, 9, MRC_EV_GOOD, n->now + 200);
    net_lose(n, 9); /* condemned anew: answers to probes from before no longer count */
    CHECK_EQ(mrc_path_on_probe(t, id, 0, n->now + 300), MRC_EV_NONE);
    net_free(n);
}

TEST(path_probe__successes_must_be_in_a_row)
{
    struct net *n = net_new(4, 1, 0, 8);
    struct mrc_path_table *t = n->r.t;
    net_lose(n, 2);
    for (int round = 0; round < 10; round++) { /* two answered, one not */
        for (int k = 0; k < 3; k++) {
            uint16_t id;
            while (mrc_path_probe_due(t, &id, n->now) == MRC_EV_NONE)
                n->now = mrc_path_deadline(t);
            if (k < 2)
                CHECK_EQ(mrc_path_on_probe(t, id, 0, n->now + 1000), 2);
        }
        CHECK_EQ(mrc_path_state(t, 2), MRC_EV_ASSUMED_BAD);
    }
    net_free(n);
}

TEST(path_probe__marks) /* H12, D.5 */
{
    const struct {
        uint8_t mark;
        enum mrc_ev_state end;
    } cases[] = {
        {0, MRC_EV_GOOD}, {1, MRC_EV_SKIP}, {2, MRC_EV_ASSUMED_BAD}, {3, MRC_EV_ASSUMED_BAD}};
    for (size_t k = 0; k < 4; k++) {
        struct net *n = net_new(4, 1, 0, 9);
        net_lose(n, 2);
        for (int probe = 0; probe < 3; probe++) {
            uint16_t id;
            while (mrc_path_probe_due(n->r.t, &id, n->now) == MRC_EV_NONE)
                n->now = mrc_path_deadline(n->r.t);
            CHECK_EQ(mrc_path_on_probe(n->r.t, id, cases[k].mark, n->now + 1000), 2);
        }
        CHECK_EQ(mrc_path_state(n->r.t, 2), cases[k].end);
        net_free(n);
    }
}

TEST(path_probe__none_while_the_plane_is_down)
{
    struct net *n = net_new(16, 0, 200 * MRC_USEC, 10);
    struct mrc_path_table *t = n->r.t;
    n->dead = ~0u;
    for (uint16_t i = 0; i < 16; i++)
        net_lose(n, i);
    net_run(n, n->now + MRC_SEC);
    mrc_path_set_planes(t, ~(1u << 1), ~(1u << 2)); /* entries 0, 4, 8, 12 and 1, 5, 9, 13 */
    struct mrc_path_stats before;
    mrc_path_stats(t, 4, &before);
    n->dead = 0;
    net_run(n, n->now + 2 * MRC_SEC);
    CHECK_EQ(mrc_path_active(t), 8);
    struct mrc_path_stats after;
    mrc_path_stats(t, 4, &after);
    CHECK_EQ(after.probes_sent, before.probes_sent);
    mrc_path_set_planes(t, ~0u, ~0u); /* its turn came long ago: probed at once */
    net_run(n, n->now + 3 * MRC_MSEC);
    CHECK_EQ(mrc_path_active(t), 16);
    mrc_path_set_planes(t, ~(1u << 1), ~0u);
    mrc_path_stats(t, 4, &before);
    net_lose(n, 4); /* a verdict when it is down already */
    net_run(n, n->now + MRC_SEC);
    mrc_path_stats(t, 4, &after);
    CHECK_EQ(after.probes_sent, before.probes_sent);
    CHECK_EQ(mrc_path_state(t, 4), MRC_EV_ASSUMED_BAD);
    net_free(n);
}

/* A plane that flaps, as a hostile peer reports it, makes us send no more than a calm one does. */
TEST(path_probe__a_plane_that_flaps_costs_no_more_probes)
{
    uint32_t sent[2];
    for (int flaps = 0; flaps < 2; flaps++) {
        struct net *n = net_new(64, 0, 200 * MRC_USEC, 14);
        n->dead = ~(uint64_t)0;
        for (uint16_t i = 0; i < 64; i++)
            net_lose(n, i);
        net_run(n, n->now + MRC_SEC);
        const uint32_t before = n->probes;
        for (int k = 0; k < 4000; k++) {
            if (flaps != 0)
                mrc_path_set_planes(n->r.t, ~0u, k % 2 == 0 ? 0 : ~0u);
            net_run(n, n->now + 50 * MRC_USEC);
            uint32_t waiting = 0; /* what is out stays in the budget */
            for (uint16_t i = 0; i < 64; i++)
                waiting += n->r.t->entry[i].probe == PATH_PROBE_WAITING;
            CHECK_EQ(n->r.t->probes_out, waiting);
        }
        sent[flaps] = n->probes - before;
        net_free(n);
    }
    CHECK(sent[1] > 0 && sent[1] <= sent[0]);
}

TEST(path_probe__denied_stops_it) /* field report 37 */
{
    struct net *n = net_new(4, 1, 0, 11);
    uint16_t id;
    net_lose(n, 1);
    CHECK_EQ(mrc_path_probe_due(n->r.t, &id, n->now), 1);
    mrc_path_set_state(n->r.t, 1, MRC_EV_DENIED, n->now);
    CHECK_EQ(mrc_path_on_probe(n->r.t, id, 0, n->now), MRC_EV_NONE);
    CHECK_EQ(mrc_path_deadline(n->r.t), MRC_NEVER);
    CHECK_EQ(mrc_path_state(n->r.t, 1), MRC_EV_DENIED);
    net_free(n);
}

TEST(path_tick__a_long_pause_leaves_no_timer_behind) /* field report 25 */
{
    struct net *n = net_new(64, 0, 0, 12);
    n->dead = ~(uint64_t)0;
    for (uint16_t i = 0; i < 64; i++)
        net_lose(n, i);
    net_turn(n);
    for (int k = 0; k < 10; k++) {
        n->now += 3600 * MRC_SEC;
        mrc_path_tick(n->r.t, n->now);
        CHECK(mrc_path_deadline(n->r.t) > n->now);
        CHECK(mrc_path_probe_pending(n->r.t)); /* all that is due waits for tx, not for a timer */
        net_turn(n);
    }
    net_free(n);
}
