/* SPDX-License-Identifier: BSD-2-Clause */
/* Faults, from now on: knobs of links and switches. */
#include "fab_int.h"

enum { FAULT_PPM = 1000000 };

uint32_t fab_link_id(const struct fab *f, enum fab_tier tier, uint32_t plane, uint32_t a,
                     uint32_t b)
{
    const struct fab_cfg *const c = &f->cfg;
    const uint32_t base = plane * f->links_plane;
    const bool host = tier == FAB_HOST_UP || tier == FAB_HOST_DOWN;
    if (plane >= c->planes || (host ? a >= c->hosts : a >= c->t0 || b >= c->t1))
        return FAB_NONE;
    switch (tier) {
    case FAB_HOST_UP: return base + a;
    case FAB_HOST_DOWN: return base + c->hosts + a;
    case FAB_T0_T1: return base + 2 * c->hosts + a * c->t1 + b;
    case FAB_T1_T0: return base + 2 * c->hosts + c->t0 * c->t1 + b * c->t0 + a;
    }
    return FAB_NONE;
}

uint32_t fab_switch_id(const struct fab *f, bool t1, uint32_t plane, uint32_t a)
{
    const struct fab_cfg *const c = &f->cfg;
    if (plane >= c->planes || a >= (t1 ? c->t1 : c->t0))
        return FAB_NONE;
    return plane * (c->t0 + c->t1) + (t1 ? c->t0 + a : a);
}

/* ---- carriers ---- */

static void fault_carrier(struct fab *f, const struct fab_link *l)
{
    const uint32_t host = l->tier == FAB_HOST_UP ? l->from : l->to;
    const uint32_t port = host * f->cfg.planes + l->plane;
    if (l->tier != FAB_HOST_UP && l->tier != FAB_HOST_DOWN)
        return; /* switches know, and have nothing to do but drop */
    if (f->cfg.carrier_ns == 0) {
        fab_host_carrier(f, host, l->plane);
    } else if (!f->carrier_due[port]) {
        f->carrier_due[port] = true;
        fab_timer_add(f, f->now + f->cfg.carrier_ns, f->msgs + f->bulks + port);
    }
}

static void fault_down(struct fab *f, uint32_t link, bool was)
{
    const struct fab_link *const l = &f->link[link];
    if (fab_link_is_down(l) == was)
        return;
    if (!was)
        fab_link_flush(f, link, FAB_DROP_DOWN);
    fault_carrier(f, l);
}

/* ---- links ---- */

static void fault_jitter(struct fab_link *l, mrc_ns jitter_ns)
{
    l->wire.cfg.jitter_ns = jitter_ns;
    if (jitter_ns != 0 && l->wire.cfg.jitter_ppm == 0)
        l->wire.cfg.jitter_ppm = FAULT_PPM;
}

static int fault_value(const struct fab *f, enum fab_knob knob, uint64_t v)
{
    switch (knob) {
    case FAB_LOSS_PPM:
    case FAB_CORRUPT_PPM:
    case FAB_DUP_PPM:
    case FAB_JITTER_PPM:
    case FAB_MARK_PPM: return v <= FAULT_PPM ? MRC_OK : MRC_ERR_INVAL;
    case FAB_TRIM_PPM:
        return v == 0 || (v <= FAULT_PPM && f->cfg.trim_bytes != 0) ? MRC_OK : MRC_ERR_INVAL;
    case FAB_DELAY_NS:
    case FAB_JITTER_NS: return v <= 60 * MRC_SEC ? MRC_OK : MRC_ERR_INVAL;
    case FAB_MTU: return v <= UINT16_MAX ? MRC_OK : MRC_ERR_INVAL;
    case FAB_CUT:
    case FAB_DOWN: return v <= 1 ? MRC_OK : MRC_ERR_INVAL;
    case FAB_RATE_BPS: return v == 0 || v >= 1000 ? MRC_OK : MRC_ERR_INVAL;
    case FAB_LOSS_MASK: return MRC_OK;
    case FAB_KNOBS: break;
    }
    return MRC_ERR_INVAL;
}

int fab_link_set(struct fab *f, uint32_t link, enum fab_knob knob, uint64_t value)
{
    if (link >= f->links || fault_value(f, knob, value) != MRC_OK)
        return MRC_ERR_INVAL;
    struct fab_link *const l = &f->link[link];
    struct sim_link_cfg *const w = &l->wire.cfg;
    const bool was = fab_link_is_down(l);
    fab_mix(f, f->now ^ (uint64_t)link << 32 ^ (uint64_t)knob << 24 ^ value);
    switch (knob) {
    case FAB_LOSS_PPM: w->loss_ppm = (uint32_t)value; break;
    case FAB_LOSS_MASK:
        w->loss_mask = value;
        l->wire.seq = 0;
        break;
    case FAB_CORRUPT_PPM: w->corrupt_ppm = (uint32_t)value; break;
    case FAB_DUP_PPM: w->dup_ppm = (uint32_t)value; break;
    case FAB_DELAY_NS: w->delay_ns = f->cfg.delay_ns + value; break;
    case FAB_JITTER_NS: fault_jitter(l, value); break;
    case FAB_JITTER_PPM: w->jitter_ppm = (uint32_t)value; break;
    case FAB_RATE_BPS: sim_queue_set_rate(&l->port, value != 0 ? value : l->rate_bps); break;
    case FAB_TRIM_PPM: l->trim_ppm = (uint32_t)value; break;
    case FAB_MTU: l->mtu = (uint32_t)(value != 0 ? value : f->cfg.mtu_bytes); break;
    case FAB_CUT: l->wire.cut = value != 0; break;
    case FAB_DOWN: l->down = value != 0; break;
    case FAB_MARK_PPM: l->mark_ppm = (uint32_t)value; break;
    case FAB_KNOBS: break;
    }
    l->plain = !l->wire.cut && w->loss_ppm == 0 && w->loss_mask == 0 && w->corrupt_ppm == 0 &&
               w->dup_ppm == 0 && w->jitter_ns == 0;
    fault_down(f, link, was);
    return MRC_OK;
}

/* ---- switches ---- */

static void fault_off(struct fab *f, uint32_t sw, bool off)
{
    struct fab_switch *const s = &f->sw[sw];
    if (s->off == off)
        return;
    s->off = off;
    for (uint32_t i = 0; i < f->links_plane; i++) {
        const uint32_t link = s->plane * f->links_plane + i;
        struct fab_link *const l = &f->link[link];
        const bool from = l->tier != FAB_HOST_UP && l->from == sw;
        const bool to = l->tier != FAB_HOST_DOWN && l->to == sw;
        const bool was = fab_link_is_down(l);
        if (!from && !to)
            continue;
        l->ends_off = (uint8_t)(off ? l->ends_off + 1 : l->ends_off - 1);
        fault_down(f, link, was);
    }
}

int fab_switch_set(struct fab *f, uint32_t sw, enum fab_switch_knob knob, bool on)
{
    if (sw >= f->switches)
        return MRC_ERR_INVAL;
    fab_mix(f, f->now ^ (uint64_t)sw << 32 ^ (uint64_t)knob << 8 ^ on);
    switch (knob) {
    case FAB_STOPPED: f->sw[sw].stopped = on; return MRC_OK;
    case FAB_OFF: fault_off(f, sw, on); return MRC_OK;
    case FAB_NO_ROUTES: f->sw[sw].no_routes = on; return MRC_OK;
    }
    return MRC_ERR_INVAL;
}
