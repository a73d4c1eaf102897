/* SPDX-License-Identifier: BSD-2-Clause */
/* Endpoint operations: which path tables lead to an address. A node has a first address, and one
 * more for each plane that has its own (C.4). */
#include "mrc_ep_priv.h"
#include "mrc_rand.h"

/* Seeded, so that a stranger cannot choose addresses that fall together. */
static uint32_t *ep_bucket(const struct mrc_ep *ep, const uint8_t addr[16])
{
    const uint64_t h = mrc_mix64(mrc_mix64(ep->seed ^ mrc_get64(addr)) ^ mrc_get64(addr + 8));
    return &ep->bucket[(uint32_t)h & ep->bucket_mask];
}

/* NULL: the table has no address there. */
static const uint8_t *ep_addr(const struct ep_node *n, uint32_t place)
{
    if (place == 0)
        return n->peer.dst;
    const struct mrc_plane_addr *a = mrc_path_addr(n->table, place - 1);
    return a != NULL ? a->dst : NULL;
}

bool ep_has(const struct ep_node *n, const uint8_t addr[16])
{
    return memcmp(n->peer.dst, addr, 16) == 0 || mrc_path_from(n->table, addr);
}

/* Several planes may have one address: a table is in a chain once. */
static bool ep_addr_twice(const struct ep_node *n, uint32_t place)
{
    for (uint32_t k = 0; k < place; k++)
        if (memcmp(ep_addr(n, k), ep_addr(n, place), 16) == 0)
            return true;
    return false;
}

/* First addresses go before, and others behind: a node that names another's address as that of a
 * plane of its own comes after it. */
void ep_addrs_add(struct mrc_ep *ep, uint32_t path)
{
    struct ep_node *n = &ep->node[path];
    const uint8_t *addr;
    for (uint32_t k = 0; (addr = ep_addr(n, k)) != NULL; k++) {
        if (ep_addr_twice(n, k))
            continue;
        uint32_t *link = ep_bucket(ep, addr);
        while (k > 0 && *link != MRC_EP_NOWHERE)
            link = &ep_slot(ep, *link)->next;
        n->slot[k] = (struct ep_slot){.next = *link};
        *link = path << MRC_EP_PLACE_BITS | k;
    }
}

void ep_addrs_remove(struct mrc_ep *ep, uint32_t path)
{
    struct ep_node *n = &ep->node[path];
    const uint8_t *addr;
    for (uint32_t k = 0; (addr = ep_addr(n, k)) != NULL; k++) {
        if (ep_addr_twice(n, k))
            continue;
        uint32_t *link = ep_bucket(ep, addr);
        while (*link != (path << MRC_EP_PLACE_BITS | k))
            link = &ep_slot(ep, *link)->next;
        *link = n->slot[k].next;
    }
}

/* This one or the first after it in the chain that has the address. */
static uint32_t ep_same(const struct mrc_ep *ep, uint32_t slot, const uint8_t addr[16])
{
    while (slot != MRC_EP_NOWHERE && memcmp(ep_addr(ep_of(ep, slot), mrc_ep_place(slot)), addr, 16))
        slot = ep_slot(ep, slot)->next;
    return slot;
}

uint32_t mrc_ep_first(const struct mrc_ep *ep, const uint8_t addr[16])
{
    return ep_same(ep, *ep_bucket(ep, addr), addr);
}

uint32_t mrc_ep_next(const struct mrc_ep *ep, uint32_t slot)
{
    return ep_same(ep, ep_slot(ep, slot)->next, ep_addr(ep_of(ep, slot), mrc_ep_place(slot)));
}

/* Addresses of planes share what a node has beside that of its first one. */
uint32_t ep_share(const struct mrc_ep *ep, uint32_t slot)
{
    uint32_t n = 1;
    while (mrc_ep_place(slot) > 0 && mrc_path_addr(ep_of(ep, slot)->table, n) != NULL)
        n++;
    return n;
}
