/* SPDX-License-Identifier: BSD-2-Clause */
/* PathTable: the addresses of its planes (C.4). Few, so that looking through them is no cost. */
#include "mrc_path_priv.h"

static bool path_addr_set(const uint8_t addr[16])
{
    static const uint8_t unspecified[16];
    return memcmp(addr, unspecified, 16) != 0;
}

const struct mrc_plane_addr *path_addr_of(const struct mrc_path_table *t, uint8_t plane)
{
    for (uint32_t k = 0; k < t->addr_count; k++)
        if (t->addr[k].plane == plane)
            return &t->addr[k];
    return NULL;
}

bool path_addrs_init(struct mrc_path_table *t, const struct mrc_path_cfg *cfg)
{
    for (; t->addr_count < cfg->addr_count; t->addr_count++) {
        const struct mrc_plane_addr *a = &cfg->addrs[t->addr_count];
        if (a->plane < 1 || a->plane > MRC_PLANE_MAX || path_addr_of(t, a->plane) != NULL ||
            !path_addr_set(a->src) || !path_addr_set(a->dst))
            return false;
        t->addr[t->addr_count] = *a;
    }
    return true;
}

const struct mrc_plane_addr *mrc_path_addr(const struct mrc_path_table *t, uint32_t k)
{
    return k < t->addr_count ? &t->addr[k] : NULL;
}

bool mrc_path_from(const struct mrc_path_table *t, const uint8_t src[16])
{
    for (uint32_t k = 0; k < t->addr_count; k++)
        if (memcmp(t->addr[k].dst, src, 16) == 0)
            return true;
    return false;
}
