/* SPDX-License-Identifier: BSD-2-Clause */
/* Which EVs of one peer deliver broken packets (MRC H29). Watches an EV from its first broken
 * packet on, so that a clean network costs one comparison a packet. Knows neither packets nor
 * paths. */
#ifndef MRC_RXEV_H
#define MRC_RXEV_H

#include "mrc_base.h"

enum { MRC_RXEV_SLOTS = 8 };

struct mrc_rxev_slot {
    uint32_t ev;
    uint16_t good; /* packets since it is watched, halved now and then */
    uint16_t bad;  /* 0: the slot is free */
    bool tell;     /* too many: the peer is to avoid it */
};

struct mrc_rxev {
    struct mrc_rxev_slot slot[MRC_RXEV_SLOTS];
    uint8_t used; /* slots in use */
};

void mrc_rxev_start(struct mrc_rxev *x);
/* A packet of this EV came broken; more than `percent` of them is too many. */
void mrc_rxev_bad(struct mrc_rxev *x, uint32_t ev, uint32_t percent);
/* A packet of this EV came whole while some EV is watched. True, once for each verdict: this one is
 * to be avoided. */
bool mrc_rxev_good(struct mrc_rxev *x, uint32_t ev);

#endif
