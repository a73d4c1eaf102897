/* SPDX-License-Identifier: BSD-2-Clause */
/* What is promised of four paths of 500 Mbit/s (docs/explanation/congestion-control.md), with whole
 * engines under virtual time. Each figure holds with a fabric that is known to the controller or
 * not, that marks or not, and for both sizes of packets. FIGURES=1 prints what was measured. */
#include "figure_rig.h"

static const struct fig_net {
    const char *name;
    uint16_t mtu;
    bool known;
    bool ecn;
} nets[] = {
    {"default settings", 4096, false, false}, {"marks", 4096, false, true},
    {"fabric known", 4096, true, false},      {"fabric known, marks", 4096, true, true},
    {"path MTU 1024", 1024, false, false},    {"path MTU 1024, marks", 1024, false, true},
};
enum { NETS = sizeof nets / sizeof nets[0] };

static struct fig_cfg net_cfg(const struct fig_net *n)
{
    struct fig_cfg c = fig_defaults();
    c.mtu = n->mtu;
    c.known = n->known;
    c.ecn = n->ecn;
    return c;
}

static void say(const struct fig_net *n, const char *what, double value)
{
    if (getenv("FIGURES") != NULL)
        printf("%-24s %-40s %8.4f\n", n->name, what, value);
}

/* The first event of this path at the sender that led to `state` after `since`, relative to it. */
static mrc_ns event_after(const struct fig *f, uint16_t path, uint8_t state, mrc_ns since)
{
    const struct world *w = f->w;
    const mrc_ns from = w->cfg.start_ns + since;
    const uint32_t ev = mrc_path_entry(w->host[0].table[1], path)->ev;
    for (uint32_t i = 0; i < w->events_n && i < WORLD_EVENTS_KEPT; i++)
        if (w->events[i].ev == ev && w->events[i].to == state && w->events[i].time >= from)
            return w->events[i].time - from;
    return MRC_NEVER;
}

static double share_of_capacity(const struct fig_cfg *c, mrc_ns for_ns)
{
    struct fig *f = fig_open(c);
    fig_run(f, for_ns);
    const double share = fig_rate(f, for_ns / 4, for_ns) / fig_capacity(c);
    fig_close(f);
    return share;
}

TEST(figure__clean_paths_are_full)
{
    for (size_t i = 0; i < NETS; i++) {
        const struct fig_cfg c = net_cfg(&nets[i]);
        const double share = share_of_capacity(&c, 240 * MRC_MSEC);
        say(&nets[i], "share of the wire", share);
        CHECK(share >= 0.985);
    }
}

TEST(figure__one_percent_on_all_paths_leaves_95)
{
    for (size_t i = 0; i < NETS; i++) {
        struct fig_cfg c = net_cfg(&nets[i]);
        const double clean = share_of_capacity(&c, 240 * MRC_MSEC);
        c.loss_ppm = 10000;
        const double lossy = share_of_capacity(&c, 240 * MRC_MSEC);
        say(&nets[i], "1 % loss everywhere, of clean", lossy / clean);
        CHECK(lossy >= 0.95 * clean);
    }
}

TEST(figure__five_percent_on_one_path_and_it_stays_out)
{
    for (size_t i = 0; i < NETS; i++) {
        const struct fig_cfg c = net_cfg(&nets[i]);
        struct fig *f = fig_open(&c);
        fig_run(f, 200 * MRC_MSEC);
        const double whole = fig_rate(f, 100 * MRC_MSEC, 200 * MRC_MSEC);
        world_link(f->w, 0, 1, 1)->cfg.loss_ppm = 50000;
        world_link(f->w, 1, 0, 1)->cfg.loss_ppm = 50000;
        const mrc_ns left = event_after(f, 1, MRC_EV_ASSUMED_BAD, 200 * MRC_MSEC);
        fig_run(f, 100 * MRC_MSEC);
        CHECK(left == MRC_NEVER); /* not before it lost anything */
        CHECK(event_after(f, 1, MRC_EV_ASSUMED_BAD, 200 * MRC_MSEC) < 100 * MRC_MSEC);
        const struct mrc_qp_stats a = world_stats(f->w, &f->w->flow[0]);
        fig_run(f, 700 * MRC_MSEC);
        const struct mrc_qp_stats b = world_stats(f->w, &f->w->flow[0]);
        const double rate = fig_rate(f, 300 * MRC_MSEC, 1000 * MRC_MSEC);
        const double lost = (double)(b.packets_retransmitted - a.packets_retransmitted) /
                            (double)(b.packets_sent - a.packets_sent);
        say(&nets[i], "5 % on one: rate, of 3/4 of clean", rate / (0.75 * whole));
        say(&nets[i], "5 % on one: later loss, percent", 100 * lost);
        CHECK(rate >= 0.97 * 0.75 * whole);
        CHECK(lost < 0.001);
        fig_close(f);
    }
}

TEST(figure__a_black_hole_is_bypassed_and_the_healed_path_is_full_again)
{
    for (size_t i = 0; i < NETS; i++) {
        const struct fig_cfg c = net_cfg(&nets[i]);
        struct fig *f = fig_open(&c);
        const mrc_ns cut = 200 * MRC_MSEC;
        fig_run(f, cut);
        const double whole = fig_rate(f, cut / 2, cut);
        world_cut(f->w, 0, 1, 1, true);
        fig_run(f, 220 * MRC_MSEC);
        const mrc_ns heal = fig_now(f);
        world_cut(f->w, 0, 1, 1, false);
        fig_run(f, 220 * MRC_MSEC);
        const mrc_ns gap = fig_gap(f, cut, fig_now(f));
        const mrc_ns back = fig_time_to(f, cut, 0.95 * 0.75 * whole);
        const mrc_ns full = fig_time_to(f, heal, 0.95 * whole);
        say(&nets[i], "black hole: longest gap, ms", (double)gap / 1e6);
        say(&nets[i], "black hole: to 95 % of the rest, ms", (double)back / 1e6);
        say(&nets[i], "heal: to 95 %, ms", (double)full / 1e6);
        CHECK(gap <= 20 * MRC_MSEC);
        CHECK(back <= 100 * MRC_MSEC);
        CHECK(fig_rate(f, cut + 100 * MRC_MSEC, heal) >= 0.95 * 0.75 * whole);
        CHECK(full <= 200 * MRC_MSEC);
        fig_close(f);
    }
}

TEST(figure__a_path_that_flaps_each_second_costs_its_own_time)
{
    const struct fig_cfg c = fig_defaults();
    struct fig *f = fig_open(&c);
    fig_run(f, 500 * MRC_MSEC);
    const mrc_ns from = fig_now(f);
    const double whole = fig_rate(f, from / 2, from);
    for (int k = 0; k < 4; k++)
        for (int half = 0; half < 2; half++) {
            world_cut(f->w, 0, 1, 1, half == 0);
            fig_run(f, 500 * MRC_MSEC);
        }
    const double rate = fig_rate(f, from, fig_now(f));
    say(&nets[0], "flap: of the mean capacity", rate / (0.875 * whole));
    CHECK(rate >= 0.9 * 0.875 * whole);
    CHECK(!f->w->flow[0].dead);
    fig_close(f);
}

TEST(figure__delays_of_one_two_four_eight_cost_nothing)
{
    for (size_t i = 0; i < NETS; i++) {
        const struct fig_cfg c = net_cfg(&nets[i]);
        if (c.known) /* it would be told the longest round trip, and believe the shortest: E.3 */
            continue;
        struct fig *f = fig_open(&c);
        for (uint16_t k = 0; k < c.paths; k++) {
            world_link(f->w, 0, 1, k)->cfg.delay_ns = c.delay_ns << k;
            world_link(f->w, 1, 0, k)->cfg.delay_ns = c.delay_ns << k;
        }
        fig_run(f, 300 * MRC_MSEC);
        const double share = fig_rate(f, 100 * MRC_MSEC, 300 * MRC_MSEC) / fig_capacity(&c);
        const struct mrc_qp_stats s = world_stats(f->w, &f->w->flow[0]);
        const double twice = (double)world_stats_peer(f->w, &f->w->flow[0]).duplicates_received /
                             (double)s.packets_sent;
        say(&nets[i], "delays 1:2:4:8: share of the wire", share);
        say(&nets[i], "delays 1:2:4:8: sent twice, percent", 100 * twice);
        CHECK(share >= 0.95);
        CHECK(twice < 0.005);
        fig_close(f);
    }
}

/* ---- a port that goes down ---- */

struct told { /* when the sender was told, and what it sent on that plane afterwards */
    mrc_ns at;
    uint32_t after;
};

static bool watch_plane(struct world *w, const struct world_hop *hop, mrc_ns *extra)
{
    struct told *t = w->filter_arg;
    (void)extra;
    if (hop->kind == WORLD_KIND_ENDPOINT && hop->from == 0 && t->at == 0)
        t->at = w->now; /* the answer to the update: it has been read */
    else if (hop->from == 0 && hop->path == 2 && t->at != 0 && w->now > t->at)
        t->after++;
    return true;
}

TEST(figure__nothing_leaves_on_a_plane_once_its_port_was_told_down)
{
    for (size_t i = 0; i < NETS; i++) {
        const struct fig_cfg c = net_cfg(&nets[i]);
        struct fig *f = fig_open(&c);
        struct told told = {0, 0};
        fig_run(f, 200 * MRC_MSEC);
        const mrc_ns down = f->w->now;
        f->w->filter_arg = &told;
        f->w->filter = watch_plane;
        world_cut(f->w, 0, 1, 2, true);
        CHECK(mrc_path_planes_set(f->w->host[1].e, f->w->host[1].path_id[0],
                                  MRC_PLANES_ALL & ~(1u << 3), MRC_PLANES_ALL) == MRC_OK);
        world_kick(f->w, 1);
        fig_run(f, 100 * MRC_MSEC);
        CHECK(told.at != 0);
        say(&nets[i], "port down: told after, ms", (double)(told.at - down) / 1e6);
        CHECK_EQ(told.after, 0);
        CHECK(fig_gap(f, 200 * MRC_MSEC, 300 * MRC_MSEC) <= 20 * MRC_MSEC);
        fig_close(f);
    }
}

/* ---- turns that come late ---- */

/* A host that is busy elsewhere for some milliseconds, again and again: what it then finds in its
 * socket first is not all that was delivered. */
TEST(figure__late_turns_do_not_close_the_window)
{
    struct fig_cfg c = fig_defaults();
    c.turn_ns = MRC_MSEC;
    struct fig *f = fig_open(&c);
    const uint64_t open = 937500;
    uint64_t least = open;
    for (uint32_t k = 0; k < 40; k++) {
        fig_run(f, 15 * MRC_MSEC + k * 7919 % 50 * 200 * MRC_USEC);
        world_stall(f->w, k % 3 == 1, (1000 + k * 6151 % 4000) * MRC_USEC);
        if (k % 3 == 2)
            world_stall(f->w, 1, (1000 + k * 6151 % 4000) * MRC_USEC);
        least = mrc_min64(least, mrc_cc_cwnd(f->w->host[0].cc[1]));
    }
    say(&nets[0], "late turns: least window, bytes", (double)least);
    CHECK(least > open / 2);
    fig_close(f);
}

/* ---- the ceiling that is found where nobody knows the fabric (ADR 121) ---- */

/* Four paths of 2.5 Gbit/s whose queues hold the default window, and not much more: looking for
 * room there costs next to nothing, and nothing is gained. */
TEST(figure__looking_for_room_that_is_not_there_costs_next_to_nothing)
{
    struct fig_cfg c = fig_defaults();
    c.rate_bps = 2500000000;
    c.queue_bytes = 300000;
    struct fig *f = fig_open(&c);
    fig_run(f, 2500 * MRC_MSEC);
    const struct mrc_qp_stats s = world_stats(f->w, &f->w->flow[0]);
    const double share = fig_rate(f, 100 * MRC_MSEC, 2500 * MRC_MSEC) / fig_capacity(&c);
    const double lost = (double)s.packets_retransmitted / (double)s.packets_sent;
    say(&nets[0], "short queues: share of the wire", share);
    say(&nets[0], "short queues: lost, percent", 100 * lost);
    CHECK(s.packets_retransmitted > 0); /* it did look */
    CHECK(lost < 0.0005);
    CHECK(share >= 0.985);
    fig_close(f);
}

/* Where the paths are the bottleneck, a longer queue is all there is to be had. */
TEST(figure__no_room_is_found_in_a_queue_of_the_network)
{
    const struct fig_cfg c = fig_defaults();
    struct fig *f = fig_open(&c);
    for (int i = 0; i < 50; i++) {
        fig_run(f, 10 * MRC_MSEC);
        CHECK_EQ(mrc_cc_max_wnd(f->w->host[0].cc[1]), 937500);
    }
    fig_close(f);
}

/* Two hosts that take long turns on a fast network: there is room, and it is worth something. */
TEST(figure__room_is_found_where_turns_are_long)
{
    struct fig_cfg c = fig_defaults();
    c.rate_bps = 5000000000;
    c.queue_bytes = 1250000;
    c.turn_ns = 600 * MRC_USEC;
    struct fig *f = fig_open(&c);
    fig_run(f, 20 * MRC_MSEC);
    const double before = fig_rate(f, 0, 20 * MRC_MSEC);
    fig_run(f, 180 * MRC_MSEC);
    const double after = fig_rate(f, 100 * MRC_MSEC, 200 * MRC_MSEC);
    say(&nets[0], "long turns: times the rate of the default window", after / before);
    CHECK(after > 1.3 * before);
    fig_close(f);
}
