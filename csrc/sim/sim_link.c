/* SPDX-License-Identifier: BSD-2-Clause */
#include "sim_link.h"

enum { LINK_PPM = 1000000 };

void sim_link_init(struct sim_link *l, const struct sim_link_cfg *cfg, uint64_t seed)
{
    memset(l, 0, sizeof(*l));
    l->cfg = *cfg;
    mrc_rand_seed(&l->rand, seed);
}

/* Draws nothing for a fault that is off, so that switching one on leaves the others' draws alone
 * as long as it strikes nothing. */
static bool link_strikes(struct sim_link *l, uint32_t ppm)
{
    return ppm != 0 && mrc_rand_below(&l->rand, LINK_PPM) < ppm;
}

/* Time that many bytes take at the link's rate. */
static mrc_ns link_time(const struct sim_link *l, uint64_t bytes)
{
    return l->cfg.rate_bps == 0 ? 0 : bytes * 8 * MRC_SEC / l->cfg.rate_bps;
}

static mrc_ns link_wait(const struct sim_link *l, mrc_ns now)
{
    return l->free_at > now ? l->free_at - now : 0;
}

uint64_t sim_link_backlog(const struct sim_link *l, mrc_ns now)
{
    return link_wait(l, now) / 8 * (l->cfg.rate_bps / MRC_MSEC) / 1000;
}

static bool link_lost(struct sim_link *l, bool faulty)
{
    if (l->cut)
        return true;
    if (!faulty)
        return false;
    const uint64_t n = l->seq++;
    const bool masked = ((l->cfg.loss_mask >> (n % 64)) & 1) != 0;
    return link_strikes(l, l->cfg.loss_ppm) || masked;
}

static bool link_marked(struct sim_link *l, mrc_ns wait)
{
    if (link_strikes(l, l->cfg.mark_ppm))
        return true;
    if (l->cfg.mark_hi_bytes == 0)
        return false;
    const mrc_ns lo = link_time(l, l->cfg.mark_lo_bytes);
    const mrc_ns hi = link_time(l, l->cfg.mark_hi_bytes);
    if (wait <= lo)
        return false;
    return wait >= hi || link_strikes(l, (uint32_t)((wait - lo) * LINK_PPM / (hi - lo)));
}

static void link_deliver(struct sim_link *l, struct sim_delivery *d, mrc_ns sent, bool ce,
                         bool faulty)
{
    *d = (struct sim_delivery){.at = sent + l->cfg.delay_ns, .ce = ce};
    if (l->cfg.jitter_ns != 0 && link_strikes(l, l->cfg.jitter_ppm))
        d->at += mrc_rand_next(&l->rand) % l->cfg.jitter_ns;
    if (faulty && link_strikes(l, l->cfg.corrupt_ppm)) {
        d->corrupt = mrc_rand_next(&l->rand) | 1;
        l->stats.corrupted++;
    }
}

int sim_link_submit(struct sim_link *l, const struct sim_packet *p, mrc_ns now,
                    struct sim_delivery out[SIM_COPIES_MAX])
{
    const bool faulty = l->cfg.fault_kinds == 0 || (l->cfg.fault_kinds & p->kind) != 0;
    const mrc_ns wait = link_wait(l, now);

    l->stats.packets++;
    l->stats.bytes += p->len_bytes;
    if (l->cfg.mtu_bytes != 0 && p->len_bytes > l->cfg.mtu_bytes) {
        l->stats.too_long++;
        return 0;
    }
    if (link_lost(l, faulty)) {
        l->stats.lost++;
        return 0;
    }
    if (l->cfg.queue_bytes != 0 && wait > link_time(l, l->cfg.queue_bytes)) {
        if (!p->trimmable || l->cfg.trim_bytes == 0 || p->len_bytes <= l->cfg.trim_bytes) {
            l->stats.overflowed++;
            return 0;
        }
        l->stats.trimmed++; /* goes ahead of the queue, in the class of its own that it got */
        out[0] = (struct sim_delivery){
            .at = now + link_time(l, l->cfg.trim_bytes) + l->cfg.delay_ns, .trimmed = true};
        return 1;
    }
    const bool ce = p->ect && link_marked(l, wait);
    l->stats.marked += ce;
    l->free_at = now + wait + link_time(l, p->len_bytes);
    link_deliver(l, &out[0], l->free_at, ce, faulty);
    if (!faulty || !link_strikes(l, l->cfg.dup_ppm))
        return 1;
    l->stats.duplicated++;
    link_deliver(l, &out[1], l->free_at, ce, faulty);
    return 2;
}

void sim_corrupt(uint8_t *bytes, uint32_t len, uint64_t seed)
{
    struct mrc_rand r;
    mrc_rand_seed(&r, seed);
    const uint32_t flips = 1 + mrc_rand_below(&r, 8);
    for (uint32_t i = 0; i < flips; i++) {
        const uint32_t bit = mrc_rand_below(&r, len * 8);
        bytes[bit / 8] ^= (uint8_t)(1u << (bit % 8));
    }
}
