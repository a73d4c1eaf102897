/* SPDX-License-Identifier: BSD-2-Clause */
/* Acting out a plan. */
#include "world_plan.h"

/* The world counts what reached a host as known to it only when the engine has seen it: let them
 * all see it before something changes behind their backs. */
static void faults_turn_all(struct world *w)
{
    for (uint32_t i = 0; i < w->cfg.hosts; i++)
        world_turn(w, i);
}

static void faults_kick_all(struct world *w)
{
    for (uint32_t i = 0; i < w->cfg.hosts; i++)
        world_kick(w, i);
}

static void faults_refuse(struct world *w, uint32_t from, uint32_t to, uint16_t path)
{
    const struct mrc_path_entry_cfg *const e = mrc_path_entry(w->host[from].table[to], path);
    mrc_engine_lane_failed(w->host[from].e, e->port, e->lane, MRC_EV_R_SEND_ERROR, w->now);
    world_seen(w, WORLD_C_REFUSED);
    world_log_note(w, "refused", from, to, path);
}

/* Faults of the two directions between two hosts. */
static void faults_between(struct world *w, const struct plan_action *a)
{
    for (uint32_t side = 0; side < 2; side++) {
        const uint32_t from = side == 0 ? a->a : a->b;
        const uint32_t to = side == 0 ? a->b : a->a;
        const bool ours = ((a->sides >> side) & 1) != 0;
        struct sim_link *const l = world_link(w, from, to, a->path);
        struct mrc_path_table *const t = w->host[from].table[to];
        switch (a->what) {
        case PLAN_CUT: l->cut = l->cut || ours; break;
        case PLAN_HEAL: l->cut = false; break;
        case PLAN_LINK: l->cfg = a->link; break;
        case PLAN_DENY: mrc_path_set_state(t, a->path, MRC_EV_DENIED, w->now); break;
        case PLAN_ALLOW: mrc_path_set_state(t, a->path, MRC_EV_GOOD, w->now); break;
        case PLAN_PLANES:
            if (ours)
                mrc_path_planes_set(w->host[from].e, w->host[from].path_id[to], a->n, UINT32_MAX);
            break;
        default: faults_refuse(w, from, to, a->path); break;
        }
    }
}

/* The links of one port of one host, and what the host knows of it. */
static void faults_port(struct world *w, const struct plan_action *a)
{
    const bool up = a->n != 0;
    for (uint32_t peer = 0; peer < w->cfg.hosts; peer++) {
        struct mrc_ep_planes planes;
        if (peer == a->a)
            continue;
        for (uint16_t i = 0; i < w->cfg.paths; i++)
            if (mrc_path_entry(w->host[a->a].table[peer], i)->plane == a->path)
                world_cut(w, a->a, peer, i, !up);
        const uint32_t id = w->host[a->a].path_id[peer];
        const uint32_t bit = 1u << a->path;
        mrc_path_planes(w->host[a->a].e, id, &planes);
        mrc_path_planes_set(w->host[a->a].e, id,
                            up ? planes.local_up | bit : planes.local_up & ~bit, planes.remote_up);
    }
    world_seen(w, up ? WORLD_C_PORT_UP : WORLD_C_PORT_DOWN);
}

static void faults_life(struct world *w, struct plan *v, const struct plan_action *a)
{
    uint32_t *const flow = &v->flow[a->qp];
    const uint32_t own = a->sides == 1 ? *flow : w->flow[*flow].reverse;
    const bool ended = w->flow[own].ended || w->flow[w->flow[own].reverse].ended;
    switch (a->what) {
    case PLAN_MPR: world_mpr(w, own, (uint16_t)a->n); break;
    case PLAN_DESTROY: world_destroy(w, own); break;
    case PLAN_ERROR: world_error(w, own); break;
    case PLAN_BAD_KEY: world_bad_key(w, own); break;
    default:
        if (!ended && w->flows + 2 <= WORLD_FLOWS_MAX)
            *flow = world_reset(w, *flow);
        break;
    }
}

static void faults_seen(struct world *w, const struct plan_action *a)
{
    world_seen_if(w, a->what == PLAN_CUT, a->sides == 3 ? WORLD_C_CUT : WORLD_C_CUT_ONE_WAY);
    world_seen_if(w, a->what == PLAN_CUT, WORLD_C_PATH_DIED);
    world_seen_if(w, a->what == PLAN_HEAL, WORLD_C_PATH_HEALED);
    world_seen_if(w, a->what == PLAN_LINK, WORLD_C_PATH_BAD);
    world_seen_if(w, a->what == PLAN_DENY, WORLD_C_DENIED);
    world_seen_if(w, a->what == PLAN_ALLOW, WORLD_C_ALLOWED);
    if (a->what == PLAN_PLANES || a->what == PLAN_PORT || a->what == PLAN_DENY)
        world_log_note(w, "paths", a->a, a->b, 0);
}

static void faults_act(struct world *w, void *arg, uint32_t n)
{
    struct plan *const v = arg;
    const struct plan_action *const a = &v->action[n];
    faults_turn_all(w);
    faults_seen(w, a);
    if (a->what == PLAN_STALL)
        world_stall(w, a->a, a->n * MRC_USEC);
    else if (a->what == PLAN_PAUSE)
        world_pause(w, a->a, a->n * MRC_USEC);
    else if (a->what == PLAN_PORT)
        faults_port(w, a);
    else if (a->what >= PLAN_MPR)
        faults_life(w, v, a);
    else
        faults_between(w, a);
    if (w->trace != NULL)
        fprintf(w->trace, "action %u on path %u sides %u\n", a->what, a->path, a->sides);
    faults_kick_all(w);
}

/* The network between two hosts is perfect from now on. */
static void faults_calm_pair(struct world *w, uint32_t from, uint32_t to)
{
    mrc_path_planes_set(w->host[from].e, w->host[from].path_id[to], UINT32_MAX, UINT32_MAX);
    for (uint16_t i = 0; i < w->cfg.paths; i++) {
        struct sim_link *const l = world_link(w, from, to, i);
        struct mrc_path_table *const t = w->host[from].table[to];
        l->cut = false;
        l->cfg.loss_ppm = 0;
        l->cfg.loss_mask = 0;
        l->cfg.jitter_ppm = 0;
        l->cfg.dup_ppm = 0;
        l->cfg.corrupt_ppm = 0;
        l->cfg.mark_ppm = 0;
        if (mrc_path_state(t, i) == MRC_EV_DENIED)
            mrc_path_set_state(t, i, MRC_EV_GOOD, w->now);
    }
}

static void faults_calm(struct world *w, void *arg, uint32_t n)
{
    (void)arg;
    (void)n;
    for (uint32_t i = 0; i < w->cfg.hosts; i++)
        w->host[i].stalled_until = 0;
    faults_turn_all(w);
    for (uint32_t a = 0; a < w->cfg.hosts; a++)
        for (uint32_t b = 0; b < w->cfg.hosts; b++)
            if (a != b)
                faults_calm_pair(w, a, b);
    faults_kick_all(w);
}

void plan_begin(struct plan *v, struct world *w)
{
    if (v->hostile != 0)
        world_hostile(w, v->hostile, v->hostile_ppm, v->faults_end);
    world_seen_if(w, v->cfg.hosts > 2, WORLD_C_HOSTS);
    world_seen_if(w, v->qps > 1 && v->cfg.hosts == 2, WORLD_C_SHARED);
    for (uint32_t i = 0; i < v->qps; i++) {
        const uint32_t a = v->load[i][0].bytes_max;
        const uint32_t b = v->load[i][1].bytes_max;
        v->flow[i] = world_connect(w, &v->qp[i], a > b ? a : b);
    }
    for (uint32_t i = 0; i < v->actions; i++)
        world_at(w, v->action[i].at, faults_act, v, i);
    world_at(w, v->faults_end, faults_calm, NULL, 0);
    for (uint32_t i = 0; i < v->qps; i++) {
        world_load(w, v->flow[i], &v->load[i][0]);
        world_load(w, w->flow[v->flow[i]].reverse, &v->load[i][1]);
    }
}
