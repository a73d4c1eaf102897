/* SPDX-License-Identifier: BSD-2-Clause */
/* vopr: a seed becomes a topology, a workload and a series of faults; the world watches.
 *
 *   vopr [-v] [-f FILE] [SEED [COUNT]]
 *
 * One line a seed: verdict, what was drawn, how much happened, trace hash. -v traces every packet
 * to stderr. -f runs the seeds of a file (first word of each line, # comments). Exit code 1 when a
 * seed failed. The same seed gives the same hash, on every run and every compiler. */
#include <stdlib.h>

#include "world.h"

static uint64_t vopr_seed; /* for the panic message */

_Noreturn void mrc_panic(const char *file, int line, const char *what);
_Noreturn void mrc_panic(const char *file, int line, const char *what)
{
    fflush(stdout);
    fprintf(stderr, "seed %llu PANIC %s:%d: %s\n", (unsigned long long)vopr_seed, file, line, what);
    abort();
}

enum { VOPR_ACTIONS = 64, VOPR_QPS_MAX = 3 };

/* One change of the network at one time. */
struct vopr_action {
    mrc_ns at;
    uint8_t what;  /* enum vopr_what */
    uint8_t sides; /* bit 0: 0 -> 1, bit 1: 1 -> 0 */
    uint16_t path;
    struct sim_link_cfg link; /* VOPR_LINK */
};
enum vopr_what {
    VOPR_CUT,
    VOPR_HEAL,
    VOPR_LINK,
    VOPR_DENY,
    VOPR_ALLOW,
    VOPR_PLANES,
    VOPR_REFUSED,
    VOPR_PAUSE,
    VOPR_WINDOW
};

struct vopr {
    struct mrc_rand rand;
    struct world_cfg cfg;
    struct world_qp_cfg qp[VOPR_QPS_MAX];
    struct world_load load[VOPR_QPS_MAX][2];
    uint32_t qps;
    struct vopr_action action[VOPR_ACTIONS];
    uint32_t actions;
    mrc_ns faults_end;
    char words[160]; /* the faults, for the line */
};

static uint32_t vopr_below(struct vopr *v, uint32_t n) { return mrc_rand_below(&v->rand, n); }
static bool vopr_one_in(struct vopr *v, uint32_t n) { return vopr_below(v, n) == 0; }

static void vopr_word(struct vopr *v, const char *word, uint64_t n)
{
    const size_t at = strlen(v->words);
    snprintf(v->words + at, sizeof(v->words) - at, " %s=%llu", word, (unsigned long long)n);
}

/* ---- drawing ---- */

static void vopr_draw_network(struct vopr *v, uint64_t seed)
{
    static const uint16_t paths[] = {1, 2, 3, 4, 8, 16, 32, 64};
    static const uint64_t rates[] = {0, 100000000, 1000000000, 10000000000, 100000000000};
    struct world_cfg *const c = &v->cfg;

    *c = world_defaults(seed);
    c->paths = paths[vopr_below(v, 8)];
    c->planes = (uint8_t)(1 + vopr_below(v, c->paths < 8 ? c->paths : 8));
    c->min_active = (uint16_t)(1 + vopr_below(v, c->paths > 4 ? 4 : c->paths));
    if (vopr_one_in(v, 4))
        c->backups = (uint16_t)vopr_below(v, c->paths / 4u + 1u);
    if (c->paths - c->backups < c->min_active)
        c->backups = 0;
    c->start_ns = vopr_one_in(v, 4) ? 1 : mrc_rand_next(&v->rand) >> 20;
    c->turn_ns = vopr_one_in(v, 3) ? 0 : vopr_below(v, 20000);
    c->skew_ns = vopr_one_in(v, 3) ? vopr_below(v, 50000) : 0;
    c->link.rate_bps = rates[vopr_below(v, 5)];
    c->link.delay_ns = 1000 + vopr_below(v, 100000);
    c->link.queue_bytes = vopr_one_in(v, 3) ? 20000 + vopr_below(v, 200000) : 0;
    if (c->link.queue_bytes != 0 && vopr_one_in(v, 2)) {
        c->link.trim_bytes = 128 + 4 * vopr_below(v, 40);
        c->trim_dscp = vopr_one_in(v, 2) ? WORLD_DSCP_TRIMMED : WORLD_DSCP_TRIMMED_LASTHOP;
        c->cc.trimming = true;
        vopr_word(v, "trim", c->link.trim_bytes);
    }
    if (c->link.rate_bps != 0 && vopr_one_in(v, 3)) {
        c->link.mark_lo_bytes = 10000;
        c->link.mark_hi_bytes = 50000;
    }
    c->cc.kind = (uint8_t)vopr_below(v, 3);
    if (c->cc.kind == MRC_CC_NONE && c->link.rate_bps != 0 && c->link.queue_bytes != 0)
        c->cc.kind = MRC_CC_FIXED; /* without a window a small queue only ever overflows */
    c->cc.link_bps = c->link.rate_bps != 0 ? c->link.rate_bps : 100000000000;
    c->cc.base_rtt_ns = 2 * (c->link.delay_ns + c->turn_ns) + 20 * MRC_USEC;
    c->cc.max_cwnd_bytes = vopr_one_in(v, 4) ? 10000 : UINT64_C(1) << (16 + vopr_below(v, 6));
}

static void vopr_draw_qp(struct vopr *v, struct world_qp_cfg *q)
{
    static const uint16_t mtus[] = {256, 512, 1024, 2048, 4096};
    static const uint16_t mprs[] = {1, 2, 8, 16, 64};
    *q = world_qp_defaults();
    q->depth = vopr_one_in(v, 5) ? 1 + vopr_below(v, 4) : 1 + vopr_below(v, 128);
    q->mtu = mtus[vopr_below(v, 5)];
    q->mpr = mprs[vopr_below(v, 5)];
    q->max_wimm = (uint16_t)(1 + vopr_below(v, q->depth > 32 ? 32 : q->depth));
    q->psn_ab = vopr_one_in(v, 2) ? 0xFFFFFF - vopr_below(v, 3000) : vopr_below(v, 1u << 24);
    q->psn_ba = vopr_one_in(v, 2) ? 0xFFFFFF - vopr_below(v, 3000) : vopr_below(v, 1u << 24);
    q->timeout = (uint8_t)(8 + vopr_below(v, 5));
    q->linear_cnt = (uint8_t)vopr_below(v, 8);
    q->exp_cnt = vopr_one_in(v, 2) ? 25 : (uint8_t)(3 + vopr_below(v, 10));
    q->sack_threshold = vopr_one_in(v, 2) ? 0 : 1024u << vopr_below(v, 6);
    q->train_max = (uint8_t)vopr_below(v, MRC_TRAIN_MAX + 1);
}

static void vopr_draw_load(struct vopr *v, struct world_load *l, const struct world_qp_cfg *q)
{
    static const uint32_t most[] = {0, 100, 2000, 20000, 100000};
    const uint32_t cap = 3000000u / q->depth; /* memory of a region */
    l->bytes_max = most[vopr_below(v, 5)];
    l->bytes_max = l->bytes_max > cap ? cap : l->bytes_max;
    l->messages = 1 + vopr_below(v, l->bytes_max > 5000 ? 150 : 1500);
    l->imm_percent = (uint8_t)(vopr_one_in(v, 3) ? 0 : vopr_below(v, 101));
    l->unsignaled_percent = (uint8_t)(vopr_one_in(v, 2) ? 0 : vopr_below(v, 101));
}

static void vopr_add(struct vopr *v, struct vopr_action a)
{
    if (v->actions < VOPR_ACTIONS)
        v->action[v->actions++] = a;
}

static mrc_ns vopr_when(struct vopr *v)
{
    return v->cfg.start_ns + (mrc_ns)vopr_below(v, 40000) * MRC_USEC;
}

/* Faults that every link has from the start. */
static void vopr_draw_link_faults(struct vopr *v)
{
    static const uint32_t kinds[] = {0, WORLD_KIND_DATA, WORLD_KIND_SACK, WORLD_KIND_ACK,
                                     WORLD_KIND_SACK | WORLD_KIND_ACK};
    struct sim_link_cfg *const l = &v->cfg.link;
    if (vopr_one_in(v, 2)) {
        l->loss_ppm = vopr_one_in(v, 2) ? 10000 : vopr_below(v, 200000);
        vopr_word(v, "loss", l->loss_ppm);
    }
    if (vopr_one_in(v, 3)) {
        l->jitter_ppm = 1 + vopr_below(v, 500000);
        l->jitter_ns = 1 + vopr_below(v, vopr_one_in(v, 2) ? 2000000 : 50000);
        vopr_word(v, "jitter", l->jitter_ns);
    }
    if (vopr_one_in(v, 3)) {
        l->dup_ppm = vopr_below(v, 200000);
        vopr_word(v, "dup", l->dup_ppm);
    }
    if (vopr_one_in(v, 3)) {
        l->corrupt_ppm = vopr_below(v, 100000);
        vopr_word(v, "corrupt", l->corrupt_ppm);
    }
    if (vopr_one_in(v, 6)) {
        l->mark_ppm = vopr_below(v, 300000);
        vopr_word(v, "mark", l->mark_ppm);
    }
    l->fault_kinds = kinds[vopr_one_in(v, 2) ? 0 : vopr_below(v, 5)];
    if (l->fault_kinds != 0)
        vopr_word(v, "kinds", l->fault_kinds);
}

/* Paths die one by one, in one direction or both, and heal in another order. */
static void vopr_draw_deaths(struct vopr *v)
{
    const uint32_t n = 1 + vopr_below(v, v->cfg.paths > 12 ? 12 : v->cfg.paths);
    const uint32_t first = vopr_below(v, v->cfg.paths);
    const uint8_t sides = (uint8_t)(vopr_one_in(v, 3) ? 1 + vopr_below(v, 2) : 3);
    for (uint32_t i = 0; i < n; i++) {
        const uint16_t path = (uint16_t)((first + i) % v->cfg.paths);
        const mrc_ns a = vopr_when(v);
        const mrc_ns b = vopr_when(v);
        vopr_add(v, (struct vopr_action){
                        .at = a < b ? a : b, .what = VOPR_CUT, .sides = sides, .path = path});
        vopr_add(v, (struct vopr_action){
                        .at = a < b ? b : a, .what = VOPR_HEAL, .sides = 3, .path = path});
    }
    vopr_word(v, sides == 3 ? "cut" : "cut1", n);
}

static void vopr_draw_denials(struct vopr *v)
{
    const uint16_t path = (uint16_t)vopr_below(v, v->cfg.paths);
    const mrc_ns a = vopr_when(v);
    vopr_add(v, (struct vopr_action){.at = a, .what = VOPR_DENY, .path = path});
    vopr_add(v, (struct vopr_action){
                    .at = a + vopr_below(v, 20000000), .what = VOPR_ALLOW, .path = path});
    vopr_word(v, "deny", path);
}

/* A plane's port goes down and comes back, seen by one side or both (D.7). */
static void vopr_draw_planes(struct vopr *v)
{
    const uint8_t sides = (uint8_t)(1 + vopr_below(v, 3));
    const uint16_t up = (uint16_t)(vopr_below(v, 1u << v->cfg.planes) << 1);
    const mrc_ns a = vopr_when(v);
    vopr_add(v, (struct vopr_action){.at = a, .what = VOPR_PLANES, .sides = sides, .path = up});
    vopr_add(v, (struct vopr_action){.at = a + vopr_below(v, 20000000),
                                     .what = VOPR_PLANES,
                                     .sides = sides,
                                     .path = 0xFFFF});
    vopr_word(v, "planes", up);
}

/* Sockets refuse packets of a path: what ENETUNREACH and the like become. */
static void vopr_draw_refusals(struct vopr *v)
{
    const uint32_t n = 1 + vopr_below(v, 5);
    for (uint32_t i = 0; i < n; i++) {
        const mrc_ns at = vopr_when(v);
        const uint16_t path = (uint16_t)vopr_below(v, v->cfg.paths);
        vopr_add(v, (struct vopr_action){.at = at, .what = VOPR_REFUSED, .path = path});
    }
    vopr_word(v, "refused", n);
}

/* One path much worse than the others for a while. */
static void vopr_draw_bad_path(struct vopr *v)
{
    const uint16_t path = (uint16_t)vopr_below(v, v->cfg.paths);
    struct sim_link_cfg bad = v->cfg.link;
    bad.loss_ppm = 50000 + vopr_below(v, 900000);
    bad.fault_kinds = 0;
    vopr_add(v, (struct vopr_action){
                    .at = vopr_when(v), .what = VOPR_LINK, .sides = 3, .path = path, .link = bad});
    vopr_word(v, "bad", bad.loss_ppm);
}

/* Receivers that are short of something, or take nothing for a while, or change their minds. */
static void vopr_draw_receivers(struct vopr *v)
{
    const bool dynamic = vopr_one_in(v, 2);
    v->cfg.ooo_max = vopr_one_in(v, 3) ? 0 : 1 + vopr_below(v, 1u << vopr_below(v, 10));
    v->cfg.imm_max = vopr_one_in(v, 3) ? 1 + vopr_below(v, 8) : 0;
    v->cfg.penalty_percent = (uint8_t)(vopr_one_in(v, 2) ? vopr_below(v, 100) : 0);
    v->cfg.icrc_skip_percent = vopr_one_in(v, 2) ? 5 : 0;
    v->cfg.service_time = vopr_one_in(v, 2);
    vopr_word(v, "ooo", v->cfg.ooo_max);
    vopr_word(v, "imm", v->cfg.imm_max);
    for (uint32_t i = 0; i < v->qps; i++)
        v->qp[i].dynamic_mpr = dynamic;
    for (uint32_t n = vopr_below(v, 4); n > 0; n--) {
        struct vopr_action a = {.at = vopr_when(v), .what = VOPR_PAUSE, .path = 1};
        a.sides = (uint8_t)(1 + vopr_below(v, 3));
        vopr_add(v, a);
        a.at += vopr_below(v, 5000) * MRC_USEC;
        a.path = 0;
        vopr_add(v, a);
        vopr_word(v, "pause", a.sides);
    }
    for (uint32_t n = dynamic ? vopr_below(v, 6) : 0; n > 0; n--)
        vopr_add(v, (struct vopr_action){.at = vopr_when(v),
                                         .what = VOPR_WINDOW,
                                         .sides = (uint8_t)(1 + vopr_below(v, 3)),
                                         .path = (uint16_t)vopr_below(v, 64)});
}

static void vopr_draw(struct vopr *v, uint64_t seed)
{
    memset(v, 0, sizeof(*v));
    mrc_rand_seed(&v->rand, seed);
    vopr_draw_network(v, seed);
    v->qps = vopr_one_in(v, 3) ? 1 + vopr_below(v, VOPR_QPS_MAX) : 1;
    for (uint32_t i = 0; i < v->qps; i++) {
        vopr_draw_qp(v, &v->qp[i]);
        vopr_draw_load(v, &v->load[i][0], &v->qp[i]);
        if (!vopr_one_in(v, 3))
            vopr_draw_load(v, &v->load[i][1], &v->qp[i]);
        if (v->cfg.cc.mtu_bytes < v->qp[i].mtu)
            v->cfg.cc.mtu_bytes = v->qp[i].mtu;
    }
    if (!vopr_one_in(v, 10)) {
        vopr_draw_link_faults(v);
        if (vopr_one_in(v, 2))
            vopr_draw_deaths(v);
        if (vopr_one_in(v, 6))
            vopr_draw_bad_path(v);
    }
    if (v->cfg.paths > 1 && vopr_one_in(v, 6))
        vopr_draw_denials(v);
    if (vopr_one_in(v, 8))
        vopr_draw_planes(v);
    if (vopr_one_in(v, 8))
        vopr_draw_refusals(v);
    if (vopr_one_in(v, 3)) {
        v->cfg.reverse = (uint8_t)vopr_below(v, 3);
        v->cfg.own_evs = vopr_one_in(v, 2);
        vopr_word(v, v->cfg.own_evs ? "own-evs" : "reverse", v->cfg.reverse);
    }
    if (vopr_one_in(v, 3))
        vopr_draw_receivers(v);
    v->faults_end = v->cfg.start_ns + 60 * MRC_MSEC;
    for (uint32_t i = 0; i < v->qps; i++) { /* drawn last: older seeds keep their networks */
        v->qp[i].timestamps = vopr_one_in(v, 2);
        v->qp[i].recovery = (uint8_t)vopr_below(v, MRC_RECOVERY_PLAIN + 1);
    }
}

/* ---- running ---- */

static void vopr_refuse(struct world *w, uint32_t side, uint16_t path)
{
    const struct mrc_path_entry_cfg *const e = mrc_path_entry(w->host[side].table[1 - side], path);
    mrc_engine_lane_failed(w->host[side].e, e->port, e->lane, w->now);
}

/* Every QP at this host offers another window, as far as it may. */
static void vopr_window(struct world *w, uint32_t side, uint16_t draw)
{
    for (uint32_t i = 0; i < w->flows; i++) {
        const struct world_flow *const f = &w->flow[i];
        if (f->to != side)
            continue;
        const struct mrc_qp_attr a = {.mpr_dest = (uint16_t)(1 + draw % f->qp.mpr)};
        (void)mrc_qp_modify(w->host[side].e, f->qpn_to, &a, MRC_QP_MPR_DEST, w->now);
    }
}

static void vopr_act(struct world *w, void *arg, uint32_t n)
{
    struct vopr *const v = arg;
    const struct vopr_action *const a = &v->action[n];
    /* The world counts what has arrived as known; let the engines know it before they must act. */
    world_turn(w, 0);
    world_turn(w, 1);
    for (uint32_t side = 0; side < 2; side++) {
        struct sim_link *const l = world_link(w, side, 1 - side, a->path);
        struct mrc_path_table *const t = w->host[side].table[1 - side];
        switch ((enum vopr_what)a->what) {
        case VOPR_CUT: l->cut = l->cut || ((a->sides >> side) & 1) != 0; break;
        case VOPR_HEAL: l->cut = false; break;
        case VOPR_LINK: l->cfg = a->link; break;
        case VOPR_DENY: mrc_path_set_state(t, a->path, MRC_EV_DENIED, w->now); break;
        case VOPR_ALLOW: mrc_path_set_state(t, a->path, MRC_EV_GOOD, w->now); break;
        case VOPR_PLANES:
            if (((a->sides >> side) & 1) != 0)
                mrc_path_planes_set(w->host[side].e, w->host[side].path_id[1 - side], a->path,
                                    UINT32_MAX);
            break;
        case VOPR_REFUSED: vopr_refuse(w, side, a->path); break;
        case VOPR_PAUSE:
            if (((a->sides >> side) & 1) != 0)
                mrc_engine_rx_pause(w->host[side].e, a->path != 0);
            break;
        case VOPR_WINDOW:
            if (((a->sides >> side) & 1) != 0)
                vopr_window(w, side, a->path);
            break;
        }
    }
    if (w->trace != NULL)
        fprintf(w->trace, "action %u on path %u sides %u\n", a->what, a->path, a->sides);
    world_kick(w, 0);
    world_kick(w, 1);
}

/* The network is perfect from now on. */
static void vopr_calm(struct world *w, void *arg, uint32_t n)
{
    (void)arg;
    (void)n;
    for (uint32_t side = 0; side < 2; side++)
        mrc_engine_rx_pause(w->host[side].e, false);
    for (uint32_t side = 0; side < 2; side++)
        mrc_path_planes_set(w->host[side].e, w->host[side].path_id[1 - side], UINT32_MAX,
                            UINT32_MAX);
    for (uint32_t side = 0; side < 2; side++)
        for (uint16_t i = 0; i < w->cfg.paths; i++) {
            struct sim_link *const l = world_link(w, side, 1 - side, i);
            l->cut = false;
            l->cfg.loss_ppm = 0;
            l->cfg.loss_mask = 0;
            l->cfg.jitter_ppm = 0;
            l->cfg.dup_ppm = 0;
            l->cfg.corrupt_ppm = 0;
            l->cfg.mark_ppm = 0;
            if (mrc_path_state(w->host[side].table[1 - side], i) == MRC_EV_DENIED)
                mrc_path_set_state(w->host[side].table[1 - side], i, MRC_EV_GOOD, w->now);
        }
    world_kick(w, 0);
    world_kick(w, 1);
}

/* A QP ends here only because its retries ran out, or because its peer's did and refuses. */
static void vopr_check_error(struct world *w, const struct world_flow *f)
{
    const struct world_flow *const back = &w->flow[f->reverse];
    if (!f->dead || f->status == 0)
        return;
    if (f->status == MRC_WC_RETRY_EXC_ERR && f->qp.exp_cnt == 25)
        world_fail(w, "QP with unlimited retries ran out of them");
    else if (f->status != MRC_WC_RETRY_EXC_ERR && !back->dead)
        world_fail(w, "QP failed with status %u, which this network cannot cause", f->status);
}

static bool vopr_run(uint64_t seed, bool verbose)
{
    struct vopr v;
    vopr_seed = seed;
    vopr_draw(&v, seed);
    struct world *const w = world_new(&v.cfg);
    w->trace = verbose ? stderr : NULL;
    uint32_t flow[VOPR_QPS_MAX];
    for (uint32_t i = 0; i < v.qps; i++) {
        const uint32_t a = v.load[i][0].bytes_max;
        const uint32_t b = v.load[i][1].bytes_max;
        flow[i] = world_connect(w, &v.qp[i], a > b ? a : b);
    }
    for (uint32_t i = 0; i < v.actions; i++)
        world_at(w, v.action[i].at, vopr_act, &v, i);
    world_at(w, v.faults_end, vopr_calm, NULL, 0);
    for (uint32_t i = 0; i < v.qps; i++) {
        world_load(w, flow[i], &v.load[i][0]);
        world_load(w, flow[i] + 1, &v.load[i][1]);
    }
    /* What is left after the faults: the whole work at a tenth of the rate, and a backed-off timer
     * that may have just been set. */
    world_finish(w, v.faults_end + 60 * MRC_SEC);

    uint64_t sent = 0;
    uint64_t again = 0;
    uint32_t errors = 0;
    for (uint32_t i = 0; i < w->flows; i++) {
        vopr_check_error(w, &w->flow[i]);
        sent += w->flow[i].data_packets;
        again += w->flow[i].rtx_packets;
        errors += w->flow[i].dead;
    }
    const bool ok = w->failure[0] == '\0';
    printf("seed %llu %s paths %u/%u qps %u cc %u t %.3f s steps %llu data %llu rtx %llu errors %u "
           "hash %016llx%s%s%s\n",
           (unsigned long long)seed, ok ? "ok" : "FAIL", v.cfg.paths, v.cfg.planes, v.qps,
           v.cfg.cc.kind, (double)(w->now - v.cfg.start_ns) / 1e9, (unsigned long long)w->steps,
           (unsigned long long)sent, (unsigned long long)again, errors, (unsigned long long)w->hash,
           v.words, ok ? "" : " : ", w->failure);
    world_free(w);
    return ok;
}

static unsigned vopr_file(const char *name, bool verbose)
{
    char line[1024];
    unsigned failed = 0;
    FILE *const f = fopen(name, "r");
    if (f == NULL) {
        perror(name);
        exit(2);
    }
    while (fgets(line, sizeof(line), f) != NULL)
        if (line[0] >= '0' && line[0] <= '9')
            failed += !vopr_run(strtoull(line, NULL, 0), verbose);
    fclose(f);
    return failed;
}

int main(int argc, char **argv)
{
    bool verbose = false;
    unsigned failed = 0;
    int i = 1;
    for (; i < argc && argv[i][0] == '-'; i++) {
        if (strcmp(argv[i], "-v") == 0) {
            verbose = true;
        } else if (strcmp(argv[i], "-f") == 0 && i + 1 < argc) {
            failed += vopr_file(argv[++i], verbose);
        } else {
            fprintf(stderr, "usage: vopr [-v] [-f FILE] [SEED [COUNT]]\n");
            return 2;
        }
    }
    if (i < argc) {
        const uint64_t seed = strtoull(argv[i], NULL, 0);
        const uint64_t count = i + 1 < argc ? strtoull(argv[i + 1], NULL, 0) : 1;
        for (uint64_t s = seed; s < seed + count; s++)
            failed += !vopr_run(s, verbose);
    }
    return failed != 0;
}
