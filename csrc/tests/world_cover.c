/* SPDX-License-Identifier: BSD-2-Clause */
#include "world_int.h"

const char *world_cover_name(uint32_t kind)
{
#define WORLD_COVER_NAME(id, name) name,
    static const char *const names[] = {WORLD_COVER_LIST(WORLD_COVER_NAME)};
    return names[kind];
}

void world_cover_event(struct world *w, const struct mrc_ev_event *e)
{
    if (e->from == e->to) {
        world_seen(w, WORLD_C_EV_HELD);
    } else if (e->to == MRC_EV_DENIED) {
        world_seen(w, WORLD_C_EV_DENIED);
    } else if (e->from == MRC_EV_DENIED) {
        world_seen(w, WORLD_C_EV_ALLOWED);
    } else if (e->to == MRC_EV_ASSUMED_BAD) {
        world_seen_if(w, e->reason == MRC_EV_R_TIMEOUT, WORLD_C_EV_BAD_TIMEOUT);
        world_seen_if(w, e->reason == MRC_EV_R_LOSS, WORLD_C_EV_BAD_LOSS);
        world_seen_if(w, e->reason == MRC_EV_R_ALWAYS_SKIP, WORLD_C_EV_BAD_TOLD);
        world_seen_if(w, e->reason == MRC_EV_R_SEND_ERROR, WORLD_C_EV_BAD_SEND);
    } else if (e->reason == MRC_EV_R_PROBE) {
        world_seen(w, WORLD_C_EV_HEALED);
    }
}

void world_cover_flow(struct world *w, const struct world_flow *f)
{
    const struct mrc_qp_stats s = world_stats(w, f);
    w->cover[WORLD_C_TIMEOUT] += s.timeouts;
    w->cover[WORLD_C_INFERRED] += s.losses_inferred;
    w->cover[WORLD_C_SPURIOUS] += s.spurious_retransmits;
    w->cover[WORLD_C_DUPLICATE_SEEN] += s.duplicates_received;
    w->cover[WORLD_C_OOO_SEEN] += s.ooo_received;
    w->cover[WORLD_C_CE_SEEN] += s.ce_received;
    world_seen_if(w, f->status == MRC_WC_RETRY_EXC_ERR, WORLD_C_RETRY_EXCEEDED);
    world_seen_if(w, f->status == MRC_WC_REM_ACCESS_ERR, WORLD_C_ACCESS_ERROR);
    world_seen_if(w, f->status == MRC_WC_REM_OP_ERR, WORLD_C_REMOTE_ERROR);
}

void world_cover_links(struct world *w)
{
    const uint32_t n = w->cfg.hosts * w->cfg.hosts * w->cfg.paths;
    for (uint32_t i = 0; i < n; i++) {
        const struct sim_link_stats *const s = &w->link[i].stats;
        w->cover[WORLD_C_LOST] += s->lost;
        w->cover[WORLD_C_OVERFLOWED] += s->overflowed;
        w->cover[WORLD_C_DUPLICATED] += s->duplicated;
        w->cover[WORLD_C_CORRUPTED] += s->corrupted;
        w->cover[WORLD_C_MARKED] += s->marked;
    }
}
