/* SPDX-License-Identifier: BSD-2-Clause */
/* A world from its configuration: hosts, path tables, controllers, links. */
#include "../core/mrc_engine_int.h"
#include "world_int.h"

#include <stdlib.h>

enum { WORLD_SPORT_BASE = 49152 };

/* ---- making and ending ---- */

struct world_cfg world_defaults(uint64_t seed)
{
    return (struct world_cfg){
        .seed = seed,
        .hosts = 2,
        .paths = 8,
        .min_active = 1,
        .planes = 4,
        .start_ns = MRC_SEC,
        .trim_dscp = WORLD_DSCP_TRIMMED,
        .turn_ns = 1000,
        .link = {.rate_bps = 10000000000, .delay_ns = 10 * MRC_USEC},
        .cc = {.kind = MRC_CC_FIXED,
               .mtu_bytes = 1024,
               .link_bps = 10000000000,
               .base_rtt_ns = 30 * MRC_USEC,
               .max_cwnd_bytes = 1 << 20},
    };
}

static void world_host_paths(struct world *w, uint32_t host, uint32_t peer)
{
    struct world_host *const h = &w->host[host];
    struct mrc_path_entry_cfg entry[WORLD_PATHS_MAX];
    const struct mrc_path_cfg cfg = {
        .count = w->cfg.paths,
        .min_active = w->cfg.min_active,
        .probe_successes = 3,
        .event_ring = 1024,
        .probe_interval_ns = MRC_MSEC,
        .probe_interval_max_ns = 50 * MRC_MSEC,
        .probe_timeout_ns = MRC_MSEC,
        .seed = mrc_mix64(w->cfg.seed ^ host << 8 ^ peer),
        .reverse = w->cfg.reverse,
    };
    const uint32_t base = WORLD_SPORT_BASE + (w->cfg.own_evs ? host * WORLD_PATHS_MAX : 0);
    for (uint16_t i = 0; i < w->cfg.paths; i++) {
        const uint8_t plane = (uint8_t)(1 + i % w->cfg.planes);
        entry[i] = (struct mrc_path_entry_cfg){
            .ev = (uint32_t)(mrc_mix64(w->cfg.seed + i) << 16) | (uint32_t)(base + i),
            .plane = plane,
            .port = (uint8_t)(plane - 1),
            .lane = peer * w->cfg.paths + i,
            .backup = i >= w->cfg.paths - w->cfg.backups,
        };
    }
    h->table[peer] = mrc_path_init(world_lend(w, mrc_path_size(&cfg)), &cfg, entry, w->now);
    MRC_ASSERT(h->table[peer] != NULL);
    h->path_id[peer] = (uint32_t)mrc_path_attach(h->e, h->table[peer]);
    struct mrc_ep_addr to = {.dport = MRC_UDP_PORT, .own_port = MRC_UDP_PORT};
    world_address(to.src, host);
    world_address(to.dst, peer);
    MRC_ASSERT(mrc_path_lead(h->e, h->path_id[peer], &to) == MRC_OK);
    h->cc[peer] = world_lend(w, sizeof(struct mrc_cc));
    MRC_ASSERT(mrc_cc_init(h->cc[peer], &w->cfg.cc, w->now) == MRC_OK);
    h->cc_id[peer] = (uint32_t)mrc_cc_attach(h->e, h->cc[peer]);
}

static void world_host_init(struct world *w, uint32_t host)
{
    enum { CQ_DEPTH = 16384 };
    struct world_host *const h = &w->host[host];
    h->held_end = &h->held;
    const struct mrc_engine_cfg cfg = {
        .seed = mrc_mix64(w->cfg.seed + 1000 + host),
        .qp_max = 64,
        .mr_max = 256,
        .cq_max = 2,
        .path_max = w->cfg.hosts,
        .cc_max = w->cfg.hosts,
        .ooo_max = w->cfg.ooo_max,
        .imm_max = w->cfg.imm_max,
        .pool_kib = w->cfg.pool_kib,
        .penalty_percent = w->cfg.penalty_percent,
        .icrc_skip_percent = w->cfg.icrc_skip_percent,
        .service_time = w->cfg.service_time,
        .dscp_control = 46,
        .dscp_trimmed = WORLD_DSCP_TRIMMED,
        .dscp_trimmed_lasthop = WORLD_DSCP_TRIMMED_LASTHOP,
    };
    h->mem = world_lend(w, mrc_engine_size(&cfg));
    h->e = mrc_engine_init(h->mem, &cfg, w->now);
    h->cq_send = (uint32_t)mrc_cq_create(h->e, world_lend(w, mrc_cq_size(CQ_DEPTH)), CQ_DEPTH);
    h->cq_recv = (uint32_t)mrc_cq_create(h->e, world_lend(w, mrc_cq_size(CQ_DEPTH)), CQ_DEPTH);
    if (w->cfg.late_rings) {
        struct mrc_cq *const cqs = h->e->env.cqs.cq;
        cqs[h->cq_send].head = cqs[h->cq_send].tail = 0xFFFFFFF0;
        cqs[h->cq_recv].head = cqs[h->cq_recv].tail = 0xFFFFFFF0;
        h->e->ep.answer_in = h->e->ep.answer_out = 0xFFFFFFFE;
    }
    h->path_id = world_alloc(w, w->cfg.hosts * sizeof(*h->path_id));
    h->table = world_alloc(w, w->cfg.hosts * sizeof(*h->table));
    h->cc = world_alloc(w, w->cfg.hosts * sizeof(struct mrc_cc *));
    h->cc_id = world_alloc(w, w->cfg.hosts * sizeof(*h->cc_id));
    for (uint32_t peer = 0; peer < w->cfg.hosts; peer++)
        if (peer != host)
            world_host_paths(w, host, peer);
}

struct world *world_new(const struct world_cfg *cfg)
{
    struct world *const w = calloc(1, sizeof(*w));
    if (w == NULL || cfg->paths > WORLD_PATHS_MAX)
        abort();
    w->cfg = *cfg;
    w->now = cfg->start_ns;
    w->crc = mrc_crc32_select();
    w->host = world_alloc(w, cfg->hosts * sizeof(*w->host));
    w->flow = world_alloc(w, WORLD_FLOWS_MAX * sizeof(*w->flow));
    w->link = world_alloc(w, (size_t)cfg->hosts * cfg->hosts * cfg->paths * sizeof(*w->link));
    for (uint32_t a = 0; a < cfg->hosts; a++)
        for (uint32_t b = 0; b < cfg->hosts; b++)
            for (uint16_t i = 0; i < cfg->paths; i++) {
                struct sim_link_cfg link = cfg->link;
                link.delay_ns += cfg->skew_ns * i;
                sim_link_init(world_link(w, a, b, i), &link,
                              mrc_mix64(cfg->seed ^ a << 24 ^ b << 16 ^ i));
            }
    for (uint32_t a = 0; a < cfg->hosts; a++)
        world_host_init(w, a);
    world_port_init(w);
    return w;
}

void world_free(struct world *w)
{
    for (uint32_t i = 0; i < w->blocks_n; i++)
        free(w->blocks[i]);
    free(w->blocks);
    free(w->heap);
    free(w);
}
