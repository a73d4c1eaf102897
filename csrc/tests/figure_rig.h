/* SPDX-License-Identifier: BSD-2-Clause */
/* One sender, one receiver, four paths of 500 Mbit/s and bulk data, watched in steps of virtual
 * time: what the published figures are made of (docs/explanation/congestion-control.md). */
#ifndef MRC_FIGURE_RIG_H
#define MRC_FIGURE_RIG_H

#include <stdlib.h>

#include "world_case.h"

enum {
    FIG_STEP_NS = 200 * MRC_USEC, /* how often the receiver's bytes are looked at */
    FIG_STEPS_MAX = 60000,
    FIG_MESSAGE = 262144,
};

struct fig_cfg {
    uint64_t seed;
    uint16_t paths; /* each a plane */
    uint8_t planes; /* 0: as many as paths */
    uint64_t rate_bps;
    mrc_ns delay_ns; /* one way */
    uint32_t queue_bytes;
    bool ecn;   /* marks between 1/5 and 4/5 of what a path holds */
    bool known; /* the controller is told link rate and round trip */
    uint16_t mtu;
    uint8_t train_max;
    mrc_ns turn_ns;
    uint32_t loss_ppm;
    uint8_t mode; /* enum mrc_mode */
};

struct fig {
    struct fig_cfg cfg;
    struct world *w;
    uint32_t steps;
    uint64_t bytes[FIG_STEPS_MAX]; /* placed at the receiver by the end of each step */
};

static inline struct fig_cfg fig_defaults(void)
{
    return (struct fig_cfg){.seed = 5,
                            .paths = 4,
                            .rate_bps = 500000000,
                            .delay_ns = 50 * MRC_USEC,
                            .queue_bytes = 625000, /* 10 ms, as the queues of the lab */
                            .mtu = 4096,
                            .turn_ns = 50 * MRC_USEC};
}

/* What the paths can carry of payload, bit/s. */
static inline double fig_capacity(const struct fig_cfg *c)
{
    const double header = MRC_NOMINAL_HDR + 8 + 32 + 4;
    return (double)c->rate_bps * c->paths * c->mtu / (c->mtu + header);
}

static inline struct fig *fig_open(const struct fig_cfg *c)
{
    struct fig *f = calloc(1, sizeof *f);
    if (f == NULL)
        abort();
    f->cfg = *c;
    struct world_cfg cfg = world_defaults(c->seed);
    const uint64_t wire = (uint64_t)(c->mtu + 84) * 8 * MRC_SEC / c->rate_bps;
    const mrc_ns rtt = 2 * c->delay_ns + 2 * c->turn_ns + wire;
    const uint32_t holds = (uint32_t)(c->rate_bps / 8 * rtt / MRC_SEC);
    cfg.paths = c->paths;
    cfg.planes = c->planes != 0 ? c->planes : (uint8_t)c->paths;
    cfg.turn_ns = c->turn_ns;
    cfg.link = (struct sim_link_cfg){.rate_bps = c->rate_bps,
                                     .delay_ns = c->delay_ns,
                                     .queue_bytes = c->queue_bytes,
                                     .loss_ppm = c->loss_ppm,
                                     .mark_lo_bytes = c->ecn ? holds / 5 : 0,
                                     .mark_hi_bytes = c->ecn ? holds / 5 * 4 : 0};
    cfg.cc = (struct mrc_cc_cfg){.kind = MRC_CC_NSCC, .mtu_bytes = c->mtu};
    if (c->known) {
        cfg.cc.link_bps = c->rate_bps * c->paths;
        cfg.cc.base_rtt_ns = rtt;
    }
    struct world_qp_cfg q = world_qp_defaults();
    q.mtu = c->mtu;
    q.mpr = 16;
    q.timeout = 16;
    q.linear_cnt = 3;
    q.exp_cnt = 6;
    q.depth = 16;
    q.train_max = c->train_max;
    q.mode = c->mode;
    f->w = case_world(&cfg, &q, FIG_MESSAGE);
    const struct world_load bulk = {
        .messages = UINT64_MAX, .bytes_min = FIG_MESSAGE, .bytes_max = FIG_MESSAGE};
    world_load(f->w, 0, &bulk);
    return f;
}

static inline void fig_close(struct fig *f)
{
    case_end(f->w);
    free(f);
}

static inline mrc_ns fig_now(const struct fig *f) { return (mrc_ns)f->steps * FIG_STEP_NS; }

static inline void fig_run(struct fig *f, mrc_ns for_ns)
{
    for (const mrc_ns end = fig_now(f) + for_ns; fig_now(f) < end && f->steps < FIG_STEPS_MAX;) {
        const mrc_ns at = fig_now(f) + FIG_STEP_NS;
        world_run(f->w, f->w->cfg.start_ns + at);
        f->bytes[f->steps++] = world_stats_peer(f->w, &f->w->flow[0]).bytes_received;
    }
}

static inline uint64_t fig_bytes_at(const struct fig *f, mrc_ns at)
{
    const uint64_t step = at / FIG_STEP_NS;
    return step == 0 ? 0 : f->bytes[step - 1];
}

/* Mean goodput between two times since the start, bit/s. */
static inline double fig_rate(const struct fig *f, mrc_ns from, mrc_ns to)
{
    return 8e9 * (double)(fig_bytes_at(f, to) - fig_bytes_at(f, from)) / (double)(to - from);
}

/* The longest time without a new byte. */
static inline mrc_ns fig_gap(const struct fig *f, mrc_ns from, mrc_ns to)
{
    mrc_ns longest = 0;
    mrc_ns since = from;
    for (mrc_ns t = from; t < to; t += FIG_STEP_NS) {
        if (fig_bytes_at(f, t + FIG_STEP_NS) != fig_bytes_at(f, t))
            since = t + FIG_STEP_NS;
        longest = mrc_max64(longest, t + FIG_STEP_NS - since);
    }
    return longest;
}

/* How long after `from` the mean over the next 20 ms is at least this rate; MRC_NEVER: not. */
static inline mrc_ns fig_time_to(const struct fig *f, mrc_ns from, double rate)
{
    const mrc_ns window = 20 * MRC_MSEC;
    for (mrc_ns t = from; t + window <= fig_now(f); t += FIG_STEP_NS)
        if (fig_rate(f, t, t + window) >= rate)
            return t - from;
    return MRC_NEVER;
}

#endif
