/* SPDX-License-Identifier: BSD-2-Clause */
/* Inside the endpoint operations: mrc_ep.c and mrc_ep_addr.c. */
#ifndef MRC_EP_PRIV_H
#define MRC_EP_PRIV_H

#include "mrc_ep.h"

static inline struct ep_node *ep_of(const struct mrc_ep *ep, uint32_t slot)
{
    return &ep->node[mrc_ep_path(slot)];
}

static inline struct ep_slot *ep_slot(const struct mrc_ep *ep, uint32_t slot)
{
    return &ep_of(ep, slot)->slot[mrc_ep_place(slot)];
}

/* Once node[path] has its table and its first address, and before it loses them. */
void ep_addrs_add(struct mrc_ep *ep, uint32_t path);
void ep_addrs_remove(struct mrc_ep *ep, uint32_t path);
/* Is this one of the node's addresses? */
bool ep_has(const struct ep_node *n, const uint8_t addr[16]);
/* Between so many addresses a node's budget is divided. */
uint32_t ep_share(const struct mrc_ep *ep, uint32_t slot);

#endif
