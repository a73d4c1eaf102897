/* SPDX-License-Identifier: BSD-2-Clause */
#include "world_plan.h"

static uint32_t plan_below(struct plan *v, uint32_t n) { return mrc_rand_below(&v->rand, n); }
static bool plan_one_in(struct plan *v, uint32_t n) { return plan_below(v, n) == 0; }

static void plan_word(struct plan *v, const char *word, uint64_t n)
{
    const size_t at = strlen(v->words);
    snprintf(v->words + at, sizeof(v->words) - at, " %s=%llu", word, (unsigned long long)n);
}

/* ---- network, connections, work ---- */

static void plan_trims(struct plan *v, struct world_cfg *c)
{
    static const uint8_t dscps[] = {WORLD_DSCP_TRIMMED, WORLD_DSCP_TRIMMED_LASTHOP, 0};
    c->link.trim_bytes = 128 + 4 * plan_below(v, 40);
    c->trim_dscp = dscps[plan_below(v, 3)];
    c->cc.trimming = true;
    plan_word(v, "trim", c->link.trim_bytes);
}

/* All who send to a host share its port. */
static void plan_port(struct plan *v, struct sim_queue_cfg *p, uint64_t rate_bps)
{
    p->rate_bps = rate_bps;
    p->limit_bytes[SIM_DATA] = 30000 + plan_below(v, 300000);
    p->mark_lo_bytes = p->limit_bytes[SIM_DATA] / 5;
    p->mark_hi_bytes = plan_one_in(v, 2) ? p->limit_bytes[SIM_DATA] * 4 / 5 : 0;
    p->trim_bytes = plan_one_in(v, 2) ? 128 + 4 * plan_below(v, 40) : 0;
    plan_word(v, "shared", rate_bps);
}

static void plan_network(struct plan *v, uint64_t seed)
{
    static const uint16_t paths[] = {1, 2, 3, 4, 8, 16, 32, 64};
    static const uint64_t rates[] = {0, 100000000, 1000000000, 10000000000, 100000000000};
    struct world_cfg *const c = &v->cfg;

    *c = world_defaults(seed);
    c->hosts = plan_one_in(v, 4) ? 3 + plan_below(v, 2) : 2;
    c->paths = paths[plan_below(v, c->hosts > 2 ? 6 : 8)];
    c->planes = (uint8_t)(1 + plan_below(v, c->paths < 8 ? c->paths : 8));
    c->min_active = (uint16_t)(1 + plan_below(v, c->paths > 4 ? 4 : c->paths));
    if (plan_one_in(v, 4))
        c->backups = (uint16_t)plan_below(v, c->paths / 4u + 1u);
    if (c->paths - c->backups < c->min_active)
        c->backups = 0;
    c->start_ns = plan_one_in(v, 4) ? 1 : mrc_rand_next(&v->rand) >> 20;
    if (plan_one_in(v, 2)) /* field report 80: the 16 bits of the timestamp wrap at once */
        c->start_ns = (c->start_ns | 0x7FFFFF) - plan_below(v, 400000);
    c->late_rings = plan_one_in(v, 2); /* field report 11 */
    c->turn_ns = plan_one_in(v, 3) ? 0 : plan_below(v, 20000);
    c->skew_ns = plan_one_in(v, 3) ? plan_below(v, 50000) : 0;
    c->link.rate_bps = rates[plan_below(v, 5)];
    c->link.delay_ns = 1000 + plan_below(v, 100000);
    c->link.queue_bytes = plan_one_in(v, 3) ? 20000 + plan_below(v, 200000) : 0;
    if (c->link.queue_bytes != 0 && plan_one_in(v, 2))
        plan_trims(v, c);
    if (c->link.rate_bps != 0 && plan_one_in(v, 3)) {
        c->link.mark_lo_bytes = 10000;
        c->link.mark_hi_bytes = 50000;
    }
    c->cc.kind = (uint8_t)plan_below(v, 3);
    if (c->cc.kind == MRC_CC_NONE && c->link.rate_bps != 0 && c->link.queue_bytes != 0)
        c->cc.kind = MRC_CC_FIXED; /* without a window a small queue only ever overflows */
    if (c->link.rate_bps >= 1000000000 && plan_one_in(v, 5)) {
        plan_port(v, &c->port, c->link.rate_bps);
        c->cc.kind = c->cc.kind == MRC_CC_NONE ? MRC_CC_NSCC : c->cc.kind;
    }
    c->cc.link_bps = c->link.rate_bps != 0 ? c->link.rate_bps : 100000000000;
    c->cc.base_rtt_ns = 2 * (c->link.delay_ns + c->turn_ns) + 20 * MRC_USEC;
    c->cc.max_cwnd_bytes = plan_one_in(v, 4) ? 10000 : UINT64_C(1) << (16 + plan_below(v, 6));
}

static void plan_qp(struct plan *v, struct world_qp_cfg *q)
{
    static const uint16_t mtus[] = {256, 512, 1024, 2048, 4096};
    static const uint16_t mprs[] = {1, 2, 8, 16, 64};
    *q = world_qp_defaults();
    q->a = plan_below(v, v->cfg.hosts);
    q->b = (q->a + 1 + plan_below(v, v->cfg.hosts - 1)) % v->cfg.hosts;
    q->depth = plan_one_in(v, 5) ? 1 + plan_below(v, 4) : 1 + plan_below(v, 128);
    q->mtu = mtus[plan_below(v, 5)];
    q->mpr = mprs[plan_below(v, 5)];
    q->max_wimm = (uint16_t)(1 + plan_below(v, q->depth > 32 ? 32 : q->depth));
    if (plan_one_in(v, 4))
        q->max_wimm = 1;
    q->psn_ab = plan_one_in(v, 2) ? 0xFFFFFF - plan_below(v, 3000) : plan_below(v, 1u << 24);
    q->psn_ba = plan_one_in(v, 2) ? 0xFFFFFF - plan_below(v, 3000) : plan_below(v, 1u << 24);
    q->timeout = (uint8_t)(8 + plan_below(v, 5));
    q->linear_cnt = (uint8_t)plan_below(v, 8);
    q->exp_cnt = plan_one_in(v, 2) ? 25 : (uint8_t)(3 + plan_below(v, 6));
    q->sack_threshold = plan_one_in(v, 2) ? 0 : 1024u << plan_below(v, 6);
    q->train_max = (uint8_t)plan_below(v, MRC_TRAIN_MAX + 1);
    q->dynamic_mpr = plan_one_in(v, 3);
    q->late_numbers = plan_one_in(v, 2);
    q->timestamps = plan_one_in(v, 2);
    q->recovery = (uint8_t)plan_below(v, 3);
}

static void plan_load(struct plan *v, struct world_load *l, const struct world_qp_cfg *q)
{
    static const uint32_t most[] = {0, 100, 2000, 20000, 100000};
    const uint32_t cap = 3000000u / q->depth; /* memory of a region */
    l->bytes_max = most[plan_below(v, 5)];
    l->bytes_max = l->bytes_max > cap ? cap : l->bytes_max;
    l->messages = 1 + plan_below(v, l->bytes_max > 5000 ? 150 : 1500);
    l->imm_percent = (uint8_t)(plan_one_in(v, 3) ? 0 : plan_below(v, 101));
    l->unsignaled_percent = (uint8_t)(plan_one_in(v, 2) ? 0 : plan_below(v, 101));
}

/* ---- faults ---- */

static void plan_add(struct plan *v, struct plan_action a)
{
    if (v->actions < PLAN_ACTIONS)
        v->action[v->actions++] = a;
}

static mrc_ns plan_when(struct plan *v)
{
    return v->cfg.start_ns + (mrc_ns)plan_below(v, v->span_us) * MRC_USEC;
}

/* Some change between the hosts of some connection. */
static struct plan_action plan_between(struct plan *v, uint8_t what, uint16_t path)
{
    const uint32_t qp = plan_below(v, v->qps);
    return (struct plan_action){.at = plan_when(v),
                                .what = what,
                                .sides = 3,
                                .path = path,
                                .a = v->qp[qp].a,
                                .b = v->qp[qp].b,
                                .qp = qp};
}

/* Faults that every link has from the start. */
static void plan_link_faults(struct plan *v)
{
    static const uint32_t kinds[] = {0, WORLD_KIND_DATA, WORLD_KIND_SACK, WORLD_KIND_ACK,
                                     WORLD_KIND_SACK | WORLD_KIND_ACK};
    struct sim_link_cfg *const l = &v->cfg.link;
    if (plan_one_in(v, 2)) {
        l->loss_ppm = plan_one_in(v, 2) ? 10000 : plan_below(v, 200000);
        plan_word(v, "loss", l->loss_ppm);
    }
    if (plan_one_in(v, 3)) {
        l->jitter_ppm = 1 + plan_below(v, 500000);
        l->jitter_ns = 1 + plan_below(v, plan_one_in(v, 2) ? 2000000 : 50000);
        plan_word(v, "jitter", l->jitter_ns);
    }
    if (plan_one_in(v, 3)) {
        l->dup_ppm = plan_below(v, 200000);
        plan_word(v, "dup", l->dup_ppm);
    }
    if (plan_one_in(v, 3)) {
        l->corrupt_ppm = plan_below(v, 100000);
        plan_word(v, "corrupt", l->corrupt_ppm);
    }
    if (plan_one_in(v, 6)) {
        l->mark_ppm = plan_below(v, 300000);
        plan_word(v, "mark", l->mark_ppm);
    }
    l->fault_kinds = kinds[plan_one_in(v, 2) ? 0 : plan_below(v, 5)];
    if (l->fault_kinds != 0)
        plan_word(v, "kinds", l->fault_kinds);
}

/* Paths die one by one, in one direction or both, and heal in another order. */
static void plan_deaths(struct plan *v)
{
    const uint32_t n = 1 + plan_below(v, v->cfg.paths > 12 ? 12 : v->cfg.paths);
    const uint32_t first = plan_below(v, v->cfg.paths);
    const uint8_t sides = (uint8_t)(plan_one_in(v, 3) ? 1 + plan_below(v, 2) : 3);
    for (uint32_t i = 0; i < n; i++) {
        const uint16_t path = (uint16_t)((first + i) % v->cfg.paths);
        struct plan_action die = plan_between(v, PLAN_CUT, path);
        struct plan_action heal = die;
        const mrc_ns b = plan_when(v);
        die.sides = sides;
        heal.what = PLAN_HEAL;
        heal.at = mrc_max64(die.at, b);
        die.at = mrc_min64(die.at, b);
        plan_add(v, die);
        plan_add(v, heal);
    }
    plan_word(v, sides == 3 ? "cut" : "cut1", n);
}

static void plan_denials(struct plan *v)
{
    struct plan_action a = plan_between(v, PLAN_DENY, (uint16_t)plan_below(v, v->cfg.paths));
    plan_add(v, a);
    a.what = PLAN_ALLOW;
    a.at += plan_below(v, 20000000);
    plan_add(v, a);
    plan_word(v, "deny", a.path);
}

/* Planes go down and come back as far as one side or both know (D.7); nothing really happens. */
static void plan_planes(struct plan *v)
{
    struct plan_action a = plan_between(v, PLAN_PLANES, 0);
    a.sides = (uint8_t)(1 + plan_below(v, 3));
    a.n = plan_below(v, 1u << v->cfg.planes) << 1;
    plan_word(v, "planes", a.n);
    plan_add(v, a);
    a.n = 0xFFFF;
    a.at += plan_below(v, 20000000);
    plan_add(v, a);
}

/* A port of a host really loses its link, several times; the host knows, its peers are told. */
static void plan_port_flaps(struct plan *v)
{
    const uint32_t n = 1 + plan_below(v, 6);
    for (uint32_t i = 0; i < n; i++) {
        struct plan_action a =
            plan_between(v, PLAN_PORT, (uint16_t)(1 + plan_below(v, v->cfg.planes)));
        if (plan_one_in(v, 2))
            a.a = a.b;
        plan_add(v, a);
        a.n = 1;
        a.at += 1000 + plan_below(v, 10000000);
        plan_add(v, a);
    }
    plan_word(v, "port", n);
}

/* Sockets refuse packets of a path: what ENETUNREACH and the like become. */
static void plan_refusals(struct plan *v)
{
    const uint32_t n = 1 + plan_below(v, 5);
    for (uint32_t i = 0; i < n; i++)
        plan_add(v, plan_between(v, PLAN_REFUSED, (uint16_t)plan_below(v, v->cfg.paths)));
    plan_word(v, "refused", n);
}

/* One path much worse than the others for a while. */
static void plan_bad_path(struct plan *v)
{
    struct plan_action a = plan_between(v, PLAN_LINK, (uint16_t)plan_below(v, v->cfg.paths));
    a.link = v->cfg.link;
    a.link.fault_kinds = 0;
    if (plan_one_in(v, 2)) { /* H29: the receiver sees it first */
        v->cfg.icrc_skip_percent = (uint8_t)(1 + plan_below(v, 20));
        a.link.corrupt_ppm = 300000;
    } else {
        a.link.loss_ppm = 50000 + plan_below(v, 900000);
    }
    plan_add(v, a);
    plan_word(v, "bad", a.link.loss_ppm);
}

static void plan_stalls(struct plan *v)
{
    const uint32_t n = 1 + plan_below(v, 4);
    const uint32_t most_us = plan_one_in(v, 2) ? 500 : 8000;
    for (uint32_t i = 0; i < n; i++) {
        struct plan_action a = plan_between(v, PLAN_STALL, 0);
        if (plan_one_in(v, 2))
            a.a = a.b;
        a.n = 1 + plan_below(v, most_us);
        plan_add(v, a);
    }
    plan_word(v, "stall", n);
}

/* Receivers with less room than the windows promise, or with none for a while (B.3, E.6). */
static void plan_scarcity(struct plan *v)
{
    struct world_cfg *const c = &v->cfg;
    if (plan_one_in(v, 2))
        c->ooo_max = 1 + plan_below(v, 200);
    if (plan_one_in(v, 2))
        c->imm_max = 1 + plan_below(v, 8);
    if (plan_one_in(v, 2))
        c->penalty_percent = (uint8_t)(1 + plan_below(v, 99));
    if (plan_one_in(v, 2)) /* 1: nothing is lent */
        c->pool_kib = 1 + plan_below(v, 24);
    /* Nothing but the window keeps a sender from repeating what is refused at once. */
    if (c->cc.kind == MRC_CC_NONE)
        c->cc.kind = MRC_CC_FIXED;
    if (c->cc.max_cwnd_bytes > 65536)
        c->cc.max_cwnd_bytes = 65536;
    plan_word(v, "scarce", c->ooo_max);
    for (uint32_t n = plan_below(v, 3); n > 0; n--) {
        struct plan_action a = plan_between(v, PLAN_PAUSE, 0);
        if (plan_one_in(v, 2))
            a.a = a.b;
        a.n = 1 + plan_below(v, 3000);
        plan_add(v, a);
    }
}

/* Responders change their mind about the window, those that may (B.12). */
static void plan_mpr_changes(struct plan *v)
{
    for (uint32_t i = 0; i < v->qps; i++) {
        const uint32_t n = v->qp[i].dynamic_mpr ? plan_below(v, 8) : 0;
        for (uint32_t k = 0; k < n; k++) {
            struct plan_action a = plan_between(v, PLAN_MPR, 0);
            a.qp = i;
            a.sides = (uint8_t)(1 + plan_below(v, 2));
            a.n = 1 + plan_below(v, v->qp[i].mpr);
            plan_add(v, a);
        }
        if (n != 0)
            plan_word(v, "mpr", n);
    }
}

/* QPs are reset, destroyed, failed. */
static void plan_lives(struct plan *v)
{
    static const uint8_t whats[] = {PLAN_RESET, PLAN_RESET, PLAN_DESTROY, PLAN_ERROR, PLAN_BAD_KEY};
    const uint32_t n = 1 + plan_below(v, 4);
    for (uint32_t i = 0; i < n; i++) {
        struct plan_action a = plan_between(v, whats[plan_below(v, 5)], 0);
        a.sides = (uint8_t)(1 + plan_below(v, 2));
        plan_add(v, a);
        plan_word(v, a.what == PLAN_RESET ? "reset" : "life", a.qp);
    }
}

static void plan_faults(struct plan *v)
{
    if (!plan_one_in(v, 10)) {
        plan_link_faults(v);
        if (plan_one_in(v, 2))
            plan_deaths(v);
        if (plan_one_in(v, 4))
            plan_bad_path(v);
    }
    if (v->cfg.paths > 1 && plan_one_in(v, 6))
        plan_denials(v);
    if (plan_one_in(v, 8))
        plan_planes(v);
    if (plan_one_in(v, 6))
        plan_port_flaps(v);
    if (plan_one_in(v, 8))
        plan_refusals(v);
    if (plan_one_in(v, 5))
        plan_stalls(v);
    if (plan_one_in(v, 5))
        plan_lives(v);

    plan_mpr_changes(v);
    if (plan_one_in(v, 5))
        plan_scarcity(v);

    v->cfg.service_time = plan_one_in(v, 3);
    if (plan_one_in(v, 3)) {
        v->cfg.reverse = (uint8_t)plan_below(v, 3);
        v->cfg.own_evs = plan_one_in(v, 2);
        plan_word(v, v->cfg.own_evs ? "own-evs" : "reverse", v->cfg.reverse);
    }
    if (plan_one_in(v, 6)) {
        v->hostile = 1 + plan_below(v, 7);
        v->hostile_ppm = 1000 + plan_below(v, 150000);
        plan_word(v, "hostile", v->hostile);
    }
}

void plan_draw(struct plan *v, uint64_t seed)
{
    static const uint32_t spans_us[] = {500, 5000, 40000};
    memset(v, 0, sizeof(*v));
    mrc_rand_seed(&v->rand, seed);
    plan_network(v, seed);
    v->span_us = spans_us[plan_below(v, 3)];
    v->qps = plan_one_in(v, 3) || v->cfg.hosts > 2 ? 1 + plan_below(v, PLAN_QPS_MAX) : 1;
    for (uint32_t i = 0; i < v->qps; i++) {
        plan_qp(v, &v->qp[i]);
        plan_load(v, &v->load[i][0], &v->qp[i]);
        if (!plan_one_in(v, 3))
            plan_load(v, &v->load[i][1], &v->qp[i]);
        if (v->cfg.cc.mtu_bytes < v->qp[i].mtu)
            v->cfg.cc.mtu_bytes = v->qp[i].mtu;
    }
    plan_faults(v);
    v->faults_end = v->cfg.start_ns + 60 * MRC_MSEC;
}
