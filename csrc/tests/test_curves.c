/* SPDX-License-Identifier: BSD-2-Clause */
/* Convergence of NSCC (MRC E): N senders, one port, whole engines. Each case is a file under
 * tests/golden/nscc, compared exactly; `test_curves --write` makes them anew, to be reviewed as
 * any change. What must hold of the figures is checked from the run itself. */
#include "t.h"
#include "world.h"

enum {
    FLOWS_MAX = 32,
    ROWS_MAX = 120,
    EVS = 4,
    MTU = 4096,
    MESSAGE = 65536,
};
static const char GOLDEN[] = "tests/golden/nscc/";

/* 100 Gbit/s and 12 us, as in hardware; 10 Gbit/s and 200 us, as between event loops. */
struct curve_net {
    uint64_t rate_bps;
    mrc_ns rtt_ns;
    mrc_ns delay_ns; /* of each link, so that the shortest round trip there is, that of a cut
                        packet, takes rtt_ns */
    uint32_t bdp_bytes;
};
static const struct curve_net hardware = {100000000000, 12000, 5825, 150000};
static const struct curve_net software = {10000000000, 200000, 97000, 250000};

struct curve_step { /* at this round trip the port's rate becomes so many percent */
    uint32_t at;
    uint32_t percent;
};

struct curve {
    const char *name;
    const struct curve_net *net;
    uint32_t flows;
    bool trim;
    bool ecn;
    bool steady;
    uint32_t rtts;  /* length of the run */
    uint32_t every; /* round trips between rows */
    struct curve_step step[2];
    uint32_t join_at; /* when the last flow begins; 0: with the others */
    uint32_t stop_at; /* when the last flow has posted its last message; 0: never */
};

/* A row: one interval. */
struct curve_row {
    uint32_t rtt;
    uint64_t bytes; /* data bytes that left the port */
    uint64_t packets;
    mrc_ns wait_ns; /* of all those packets */
    uint64_t lost;  /* dropped or cut at the port */
    uint64_t cwnd[FLOWS_MAX];
    uint64_t delivered[FLOWS_MAX];
};

struct curve_run {
    const struct curve *c;
    struct world *w;
    uint32_t rows;
    struct curve_row row[ROWS_MAX];
};

/* ---- running ---- */

static struct world *curve_world(const struct curve *c)
{
    struct world_cfg cfg = world_defaults(1);
    cfg.hosts = c->flows + 1;
    cfg.paths = EVS;
    cfg.min_active = EVS;
    cfg.turn_ns = 500;
    cfg.link = (struct sim_link_cfg){.rate_bps = c->net->rate_bps, .delay_ns = c->net->delay_ns};
    cfg.port.rate_bps = c->net->rate_bps;
    cfg.port.weight[SIM_DATA] = 1;
    cfg.port.weight[SIM_CONTROL] = 10;
    cfg.port.weight[SIM_TRIMMED] = 1;
    if (c->trim) {
        cfg.port.limit_bytes[SIM_DATA] =
            c->net->bdp_bytes + c->net->bdp_bytes / 2; /* last hop, E.8 */
        cfg.port.limit_bytes[SIM_TRIMMED] = c->net->bdp_bytes;
        cfg.port.trim_bytes = 128;
        cfg.link.trim_bytes = 128; /* the peers agree to trims */
    } else {
        cfg.port.limit_bytes[SIM_DATA] = 5 * c->net->bdp_bytes;
    }
    if (c->ecn) {
        cfg.port.mark_lo_bytes = c->net->bdp_bytes / 5;
        cfg.port.mark_hi_bytes = c->net->bdp_bytes / 5 * 4;
    }
    cfg.cc = (struct mrc_cc_cfg){.kind = MRC_CC_NSCC,
                                 .trimming = c->trim,
                                 .mtu_bytes = MTU,
                                 .link_bps = c->net->rate_bps,
                                 .base_rtt_ns = c->net->rtt_ns,
                                 .steady = c->steady};
    return world_new(&cfg);
}

static void curve_start(struct curve_run *r)
{
    struct world_qp_cfg q = world_qp_defaults();
    q.depth = 8;
    q.mtu = MTU;
    q.timeout = (uint8_t)(r->c->net == &hardware ? 8 : 12);
    q.exp_cnt = 25;
    for (uint32_t i = 0; i < r->c->flows; i++) {
        q.a = i + 1;
        q.b = 0;
        world_connect(r->w, &q, MESSAGE);
    }
}

static void curve_load(struct curve_run *r, uint32_t flow)
{
    const struct world_load bulk = {
        .messages = UINT64_MAX, .bytes_min = MESSAGE, .bytes_max = MESSAGE};
    world_load(r->w, 2 * flow, &bulk);
}

static void curve_events(struct curve_run *r, uint32_t rtt)
{
    const struct curve *c = r->c;
    const uint32_t last = c->flows - 1;
    for (uint32_t i = 0; rtt == 0 && i < c->flows; i++)
        if (i != last || c->join_at == 0)
            curve_load(r, i);
    if (c->join_at != 0 && rtt == c->join_at)
        curve_load(r, last);
    if (c->stop_at != 0 && rtt == c->stop_at)
        r->w->flow[2 * last].load.messages = r->w->flow[2 * last].posted;
    for (uint32_t i = 0; i < 2; i++)
        if (c->step[i].percent != 0 && rtt == c->step[i].at)
            sim_queue_set_rate(&r->w->host[0].port, c->net->rate_bps / 100 * c->step[i].percent);
}

static void curve_row(struct curve_run *r, uint32_t rtt, struct sim_queue_stats *before)
{
    struct curve_row *row = &r->row[r->rows++];
    const struct sim_queue_stats *now = &r->w->host[0].port.stats;
    *row = (struct curve_row){
        .rtt = rtt,
        .bytes = now->bytes[SIM_DATA] - before->bytes[SIM_DATA],
        .packets = now->packets[SIM_DATA] - before->packets[SIM_DATA],
        .wait_ns = now->wait_ns[SIM_DATA] - before->wait_ns[SIM_DATA],
        .lost = now->trimmed + now->dropped[SIM_DATA] - before->trimmed - before->dropped[SIM_DATA],
    };
    for (uint32_t i = 0; i < r->c->flows; i++) {
        row->cwnd[i] = mrc_cc_cwnd(r->w->host[i + 1].cc[0]);
        row->delivered[i] = world_stats_peer(r->w, &r->w->flow[2 * i]).bytes_received;
    }
    *before = *now;
}

static struct curve_run *curve_run(const struct curve *c)
{
    struct curve_run *r = calloc(1, sizeof *r);
    if (r == NULL)
        abort();
    r->c = c;
    r->w = curve_world(c);
    curve_start(r);
    struct sim_queue_stats before = {0};
    for (uint32_t rtt = 0; rtt <= c->rtts; rtt++) {
        if (rtt > 0 && rtt % c->every == 0)
            curve_row(r, rtt, &before);
        curve_events(r, rtt);
        if (!world_run(r->w, r->w->cfg.start_ns + (rtt + 1) * c->net->rtt_ns))
            t_fail(__FILE__, __LINE__, r->w->failure);
    }
    return r;
}

static void curve_end(struct curve_run *r)
{
    world_free(r->w);
    free(r);
}

/* ---- the file ---- */

static size_t curve_text(const struct curve_run *r, char *out, size_t room)
{
    const struct curve *c = r->c;
    const uint64_t full = c->net->rate_bps / 8 * c->every * c->net->rtt_ns / MRC_SEC;
    size_t n = 0;
#define PUT(...) n += (size_t)snprintf(out + n, room - n, __VA_ARGS__)
    PUT("# %u flows, %u Gbit/s, base RTT %u us, %s, %s%s\n", c->flows,
        (unsigned)(c->net->rate_bps / 1000000000), (unsigned)(c->net->rtt_ns / 1000),
        c->trim ? "trimming at 1.5 BDP" : "tail drop at 5 BDP",
        c->ecn ? "ECN between 0.2 and 0.8 BDP" : "no ECN", c->steady ? ", steady" : "");
    PUT("rtt,utilisation_permille,queue_ns,lost");
    for (uint32_t i = 0; i < c->flows; i++)
        PUT(",cwnd%u", i);
    PUT("\n");
    for (uint32_t k = 0; k < r->rows; k++) {
        const struct curve_row *row = &r->row[k];
        PUT("%u,%u,%u,%u", row->rtt, (unsigned)(row->bytes * 1000 / full),
            (unsigned)(row->packets != 0 ? row->wait_ns / row->packets : 0), (unsigned)row->lost);
        for (uint32_t i = 0; i < c->flows; i++)
            PUT(",%u", (unsigned)row->cwnd[i]);
        PUT("\n");
    }
#undef PUT
    return n;
}

static void curve_golden(const struct curve_run *r)
{
    enum { ROOM = 1 << 16 };
    static char got[ROOM];
    static char want[ROOM];
    char path[128];
    const size_t n = curve_text(r, got, ROOM);
    snprintf(path, sizeof path, "%s%s.csv", GOLDEN, r->c->name);
    FILE *f = fopen(path, t_write ? "w" : "r");
    if (f == NULL) {
        t_fail(__FILE__, __LINE__, path);
        return;
    }
    if (t_write)
        CHECK_EQ(fwrite(got, 1, n, f), n);
    else if (fread(want, 1, ROOM, f) != n || memcmp(got, want, n) != 0)
        t_fail(__FILE__, __LINE__, path);
    fclose(f);
}

/* ---- what must hold ---- */

struct curve_verdict {
    double utilisation; /* of the rate that the port has */
    double queue_ns;    /* mean wait */
    double jain;        /* of what was delivered */
    uint64_t lost;
    uint64_t packets;
};

/* Over the rows after `from` up to `to`, of the first `flows` flows. */
static struct curve_verdict curve_judge(const struct curve_run *r, uint32_t from, uint32_t to,
                                        uint32_t flows, uint32_t percent)
{
    struct curve_verdict v = {0};
    const struct curve_row *first = NULL;
    const struct curve_row *last = NULL;
    uint64_t bytes = 0;
    uint64_t packets = 0;
    mrc_ns wait = 0;
    for (uint32_t k = 0; k < r->rows; k++) {
        const struct curve_row *row = &r->row[k];
        if (row->rtt == from)
            first = row;
        if (row->rtt <= from || row->rtt > to)
            continue;
        last = row;
        bytes += row->bytes;
        packets += row->packets;
        wait += row->wait_ns;
        v.lost += row->lost;
    }
    if (first == NULL || last == NULL || packets == 0)
        return v;
    double sum = 0;
    double squares = 0;
    for (uint32_t i = 0; i < flows; i++) {
        const double x = (double)(last->delivered[i] - first->delivered[i]);
        sum += x;
        squares += x * x;
    }
    const double rtts = (double)(to - from) * (double)r->c->net->rtt_ns;
    const double room = (double)r->c->net->rate_bps / 8e9 * rtts * percent / 100;
    v.utilisation = (double)bytes / room;
    v.packets = packets;
    v.queue_ns = (double)wait / (double)packets;
    v.jain = squares > 0 ? sum * sum / (flows * squares) : 0;
    if (getenv("CURVES") != NULL)
        printf("%-20s %4u..%4u utilisation %.3f queue %.1f us Jain %.4f lost %u\n", r->c->name,
               from, to, v.utilisation, v.queue_ns / 1e3, v.jain, (unsigned)v.lost);
    return v;
}

/* ---- N flows, steady ---- */

enum { LENGTH = 2000, SETTLED = 500, EVERY = 50 };

/* Converged by SETTLED, and from there on: the port busy, the queue at the target, shares alike. */
static void curve_steady(const char *name, uint32_t flows, bool trim)
{
    const struct curve c = {.name = name,
                            .net = &hardware,
                            .flows = flows,
                            .trim = trim,
                            .ecn = true,
                            .rtts = LENGTH,
                            .every = EVERY};
    struct curve_run *r = curve_run(&c);
    const struct curve_verdict v = curve_judge(r, SETTLED, LENGTH, flows, 100);
    const double target_ns = (double)mrc_cc_target_delay(r->w->host[1].cc[0]);
    curve_golden(r);
    CHECK(v.utilisation >= 0.95);
    CHECK(v.jain >= 0.98);
    CHECK(v.queue_ns <= 1.2 * target_ns);
    if (flows > 1) /* one alone is stopped by its ceiling, half a BDP above what the wire holds */
        CHECK(v.queue_ns >= 0.8 * target_ns);
    CHECK(v.lost * 1000 <= v.packets); /* 32 windows of two packets: a burst now and then */
    curve_end(r);
}

TEST(curves__one_flow_with_trimming) { curve_steady("trim-ecn-1", 1, true); }
TEST(curves__two_flows_with_trimming) { curve_steady("trim-ecn-2", 2, true); }
TEST(curves__eight_flows_with_trimming) { curve_steady("trim-ecn-8", 8, true); }
TEST(curves__thirty_two_flows_with_trimming) { curve_steady("trim-ecn-32", 32, true); }
TEST(curves__one_flow_with_tail_drop) { curve_steady("drop-ecn-1", 1, false); }
TEST(curves__two_flows_with_tail_drop) { curve_steady("drop-ecn-2", 2, false); }
TEST(curves__eight_flows_with_tail_drop) { curve_steady("drop-ecn-8", 8, false); }
TEST(curves__thirty_two_flows_with_tail_drop) { curve_steady("drop-ecn-32", 32, false); }

/* ---- changes ---- */

TEST(curves__capacity_halves_and_returns)
{
    const struct curve c = {.name = "step-8",
                            .net = &hardware,
                            .flows = 8,
                            .trim = true,
                            .ecn = true,
                            .rtts = 1500,
                            .every = 20,
                            .step = {{500, 50}, {1000, 100}}};
    struct curve_run *r = curve_run(&c);
    curve_golden(r);
    const struct curve_verdict before = curve_judge(r, 300, 500, 8, 100);
    const struct curve_verdict half = curve_judge(r, 600, 1000, 8, 50);
    const struct curve_verdict after = curve_judge(r, 1020, 1500, 8, 100);
    CHECK(before.utilisation >= 0.95 && half.utilisation >= 0.95 && after.utilisation >= 0.95);
    CHECK(half.jain >= 0.95 && after.jain >= 0.95); /* windows as short as this one */
    /* Marks begin at so many bytes: at half the rate that is twice the time. */
    CHECK(half.queue_ns <= 2 * 9000 && after.queue_ns <= 1.2 * 9000);
    CHECK_EQ(half.lost + after.lost, 0);
    curve_end(r);
}

TEST(curves__one_joins_late_and_leaves_again)
{
    const struct curve c = {.name = "join-leave-4",
                            .net = &hardware,
                            .flows = 4,
                            .trim = true,
                            .ecn = true,
                            .rtts = 2400,
                            .every = 40,
                            .join_at = 600,
                            .stop_at = 1800};
    struct curve_run *r = curve_run(&c);
    curve_golden(r);
    const struct curve_verdict three = curve_judge(r, 200, 600, 3, 100);
    const struct curve_verdict four = curve_judge(r, 1000, 1800, 4, 100);
    const struct curve_verdict rest = curve_judge(r, 1840, 2400, 3, 100);
    CHECK(three.utilisation >= 0.95 && four.utilisation >= 0.95 && rest.utilisation >= 0.95);
    CHECK(three.jain >= 0.98 && four.jain >= 0.98 && rest.jain >= 0.98);
    CHECK(four.queue_ns <= 1.2 * 9000 && rest.queue_ns <= 1.2 * 9000);
    curve_end(r);
}

/* ---- what NSCC cannot do without marks ---- */

/* The table of E.3 decreases on marks, cuts and losses only: without ECN the queue stands at the
 * point where those begin, and who is hit is chance. */
static void curve_unmarked(const char *name, bool trim)
{
    const struct curve c = {
        .name = name, .net = &hardware, .flows = 8, .trim = trim, .rtts = LENGTH, .every = EVERY};
    struct curve_run *r = curve_run(&c);
    curve_golden(r);
    const struct curve_verdict v = curve_judge(r, SETTLED, LENGTH, 8, 100);
    CHECK(v.utilisation >= 0.95);
    CHECK(v.lost > 0);
    curve_end(r);
}

TEST(curves__without_ecn_with_trimming) { curve_unmarked("trim-8", true); }
TEST(curves__without_ecn_with_tail_drop) { curve_unmarked("drop-8", false); }

/* ---- software: ADR 76 ---- */

static struct curve_verdict curve_software(const char *name, bool steady)
{
    const struct curve c = {.name = name,
                            .net = &software,
                            .flows = 8,
                            .ecn = true,
                            .steady = steady,
                            .rtts = 1000,
                            .every = EVERY};
    struct curve_run *r = curve_run(&c);
    curve_golden(r);
    const struct curve_verdict v = curve_judge(r, SETTLED, 1000, 8, 100);
    curve_end(r);
    return v;
}

TEST(curves__software_steady_holds_the_target)
{
    const struct curve_verdict letter = curve_software("software-8", false);
    const struct curve_verdict steady = curve_software("software-steady-8", true);
    CHECK(steady.utilisation >= 0.95 && steady.jain >= 0.98);
    CHECK(steady.queue_ns >= 0.8 * 200000 && steady.queue_ns <= 1.2 * 200000);
    CHECK_EQ(steady.lost, 0);
    CHECK(letter.queue_ns > 2 * 200000); /* why the setting is there */
    CHECK(letter.lost > 0);
}
