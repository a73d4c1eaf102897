/* SPDX-License-Identifier: BSD-2-Clause */
#include "mrc_rxload.h"

enum {
    MRC_RXLOAD_ALL = 1 << 16,
    MRC_RXLOAD_SHIFT = 3, /* mean over about eight turns */
    MRC_PENALTY_MAX = 127,
};

void mrc_rxload_turn(struct mrc_rxload *l, bool more)
{
    l->backlog -= l->backlog >> MRC_RXLOAD_SHIFT;
    if (more)
        l->backlog += MRC_RXLOAD_ALL >> MRC_RXLOAD_SHIFT;
}

uint32_t mrc_rxload_share(uint32_t used, uint32_t max)
{
    if (max == 0)
        return 0;
    return used >= max ? 100 : (uint32_t)((uint64_t)used * 100 / max);
}

static uint32_t rxload_max(uint32_t a, uint32_t b) { return a > b ? a : b; }

static uint32_t rxload_free(uint32_t used, uint32_t max) { return used < max ? max - used : 0; }

bool mrc_rxload_full(uint32_t own, uint32_t used, uint32_t max)
{
    return max != 0 && own >= rxload_free(used, max);
}

/* Its share is half of what the others leave. */
static uint32_t rxload_held(uint32_t own, uint32_t used, uint32_t max)
{
    if (own == 0 || max == 0)
        return 0;
    return mrc_rxload_share(2 * own, own + rxload_free(used, max));
}

uint32_t mrc_rxload_pressure(const struct mrc_rxload *l, uint32_t ooo, uint32_t imm)
{
    const uint32_t pools = rxload_max(rxload_held(ooo, l->ooo_used, l->ooo_max),
                                      rxload_held(imm, l->imm_used, l->imm_max));
    return rxload_max(pools, mrc_rxload_share(l->backlog, MRC_RXLOAD_ALL));
}

uint8_t mrc_rxload_penalty(const struct mrc_rxload *l, uint32_t pressure)
{
    const uint32_t from = l->penalty_percent;
    if (from == 0 || pressure <= from)
        return 0;
    const uint32_t over = mrc_min32(pressure, 100) - from;
    return (uint8_t)(over * MRC_PENALTY_MAX / (100 - from));
}

uint16_t mrc_rxload_mpr(const struct mrc_rxload *l, uint32_t ooo, uint16_t most)
{
    const uint32_t used = rxload_held(ooo, l->ooo_used, l->ooo_max);
    if (used <= 50)
        return most;
    const uint32_t units = (uint32_t)most * (100 - used) / 50;
    return (uint16_t)(units > 0 ? units : 1);
}
