/* SPDX-License-Identifier: BSD-2-Clause */
/* One port in front of each host: the bottleneck of everybody who sends there. */
#include "world_int.h"

void world_port_init(struct world *w)
{
    for (uint32_t i = 0; i < w->cfg.hosts; i++)
        sim_queue_init(&w->host[i].port, &w->cfg.port, mrc_mix64(w->cfg.seed ^ ~(uint64_t)i));
}

void world_port_describe(struct world_packet *p, const struct sim_packet *sp, bool cut)
{
    const bool data = (sp->kind & (WORLD_KIND_DATA | WORLD_KIND_PROBE)) != 0;
    p->item = (struct sim_item){
        .len_bytes = cut ? (uint32_t)MRC_NOMINAL_HDR + 8 + p->rx.len : sp->len_bytes,
        .cls = (uint8_t)(cut    ? SIM_TRIMMED
                         : data ? SIM_DATA
                                : SIM_CONTROL),
        .ect = sp->ect,
        .trimmable = sp->trimmable && !cut,
    };
}

static void port_leave(struct world *w, void *arg, uint32_t host)
{
    (void)arg;
    struct sim_queue *const q = &w->host[host].port;
    struct sim_item *const item = sim_queue_pop(q, w->now);
    MRC_ASSERT(item != NULL);
    if (sim_queue_deadline(q) != MRC_NEVER)
        world_at(w, sim_queue_deadline(q), port_leave, NULL, host);
    struct world_packet *const p = (struct world_packet *)(void *)item;
    if (item->ce)
        p->rx.tclass |= 3;
    world_arrive(w, p);
}

void world_port_enter(struct world *w, struct world_packet *p)
{
    struct sim_queue *const q = &w->host[p->to].port;
    const bool idle = sim_queue_deadline(q) == MRC_NEVER;
    switch (sim_queue_push(q, &p->item, w->now)) {
    case SIM_QUEUED: break;
    case SIM_CUT: world_trim(w, &p->rx, w->cfg.port.trim_bytes); break;
    case SIM_DROPPED: world_packet_free(w, p); return;
    }
    if (idle)
        world_at(w, sim_queue_deadline(q), port_leave, NULL, p->to);
}
