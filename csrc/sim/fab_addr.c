/* SPDX-License-Identifier: BSD-2-Clause */
/* Numbers and addresses (MRC A.13.1, D.9): a uSID is role(4) plane(4) number(8), counted from 1, or
 * role(4) plane(3) number(9), counted from 0, for switches of 512 ports. */
#include "fab_int.h"

#define ADDR_BLOCK 0xFCBBBBBBu

static uint32_t addr_base(const struct fab_cfg *c) { return c->number_bits == 8 ? 1 : 0; }

uint16_t fab_usid(const struct fab_cfg *c, enum fab_role role, uint32_t plane, uint32_t number)
{
    const uint32_t base = addr_base(c);
    return (uint16_t)((uint32_t)role << 12 | (plane + base) << c->number_bits | (number + base));
}

void fab_inner_address(uint8_t out[16], uint32_t host)
{
    memset(out, 0, 16);
    out[0] = 0xFD;
    mrc_put32(out + 12, host + 1);
}

/* The EV says plane and uplink, the rest is where the two hosts are. */
void fab_carrier(const struct fab_cfg *c, uint8_t out[16], uint32_t from, uint32_t to, uint32_t ev)
{
    const uint32_t base = addr_base(c);
    const uint32_t plane = (ev >> 24) - 1; /* EVs name planes as the protocol does */
    const uint32_t uplink = (ev >> 16 & 0xFF) - base;
    const uint32_t t0_from = from / c->hosts_per_t0;
    const uint32_t t0_to = to / c->hosts_per_t0;
    uint8_t *p = out + 4;
    memset(out, 0, 16);
    mrc_put32(out, ADDR_BLOCK);
    mrc_put16(p, fab_usid(c, FAB_ROLE_T0, plane, t0_from));
    p += 2;
    if (t0_from != t0_to) {
        mrc_put16(p, fab_usid(c, FAB_ROLE_T1, plane, uplink));
        mrc_put16(p + 2, fab_usid(c, FAB_ROLE_T0, plane, t0_to));
        p += 4;
    }
    mrc_put16(p, fab_usid(c, FAB_ROLE_HOST, plane, to % c->hosts_per_t0));
}

int fab_address(const struct fab *f, uint32_t from, uint32_t to, uint32_t ev, uint8_t out[16])
{
    if (from >= f->cfg.hosts || to >= f->cfg.hosts)
        return MRC_ERR_INVAL;
    fab_carrier(&f->cfg, out, from, to, ev);
    return MRC_OK;
}

/* ---- routes ---- */

static uint32_t addr_hash(uint16_t usid) { return usid * 0x9E3779B1u >> 16; }

uint32_t fab_routes_room(uint32_t entries) { return mrc_pow2(2 * entries + 1); }

void fab_route_add(struct fab_routes *r, uint16_t usid, uint32_t link)
{
    uint32_t at = addr_hash(usid) & r->mask;
    while (r->slot[at].usid != 0)
        at = (at + 1) & r->mask;
    r->slot[at] = (struct fab_route){.usid = usid, .link = link};
    r->count++;
}

uint32_t fab_route_find(const struct fab_routes *r, uint16_t usid)
{
    if (usid == 0)
        return FAB_NONE;
    for (uint32_t at = addr_hash(usid) & r->mask; r->slot[at].usid != 0; at = (at + 1) & r->mask)
        if (r->slot[at].usid == usid)
            return r->slot[at].link;
    return FAB_NONE;
}

uint16_t fab_un_shift(uint8_t da[16], uint16_t own)
{
    if (mrc_get32(da) != ADDR_BLOCK)
        return 0; /* no route for such */
    if (mrc_get16(da + 4) == own) {
        memmove(da + 4, da + 6, 10);
        mrc_put16(da + 14, 0);
    }
    return mrc_get16(da + 4);
}
