/* SPDX-License-Identifier: BSD-2-Clause */
/* What the receive side of one engine can hold, how much of it is in use, and what senders are told
 * of that: the window offered (MRC B.12) and the penalty (E.6). Bounded pools, shared by all QPs:
 * none may hold more of a pool than it leaves free, so that a QP whose gap never closes cannot keep
 * the others from tracking theirs. Knows no packet. */
#ifndef MRC_RXLOAD_H
#define MRC_RXLOAD_H

#include "mrc_types.h"

struct mrc_rxload {
    uint32_t ooo_max; /* PSNs tracked above a gap, all QPs together; 0: no limit */
    uint32_t ooo_used;
    uint32_t imm_max; /* immediates that wait for what was sent before them; 0: no limit */
    uint32_t imm_used;
    uint32_t backlog;        /* share of turns that left packets waiting: mean, 2^16 = all */
    uint8_t penalty_percent; /* of a budget in use, from which senders are slowed; 0: never */
    bool paused;             /* the application takes nothing for now */
};

/* Once per turn: were packets left waiting when its budget was spent? */
void mrc_rxload_turn(struct mrc_rxload *l, bool more);
/* A QP that holds so many of the places used may not have one more. max 0: never. */
bool mrc_rxload_full(uint32_t own, uint32_t used, uint32_t max);
/* Percent of a budget that is in use, 0..100. used beyond max counts as all. */
uint32_t mrc_rxload_share(uint32_t used, uint32_t max); /* max 0: 0 */
/* Percent of the scarcest budget for a QP that holds so many places of the pools. */
uint32_t mrc_rxload_pressure(const struct mrc_rxload *l, uint32_t ooo, uint32_t imm);
/* rcv_cwnd_pen for a pressure of so many percent: 0 up to penalty_percent, then rising to 127. */
uint8_t mrc_rxload_penalty(const struct mrc_rxload *l, uint32_t pressure);
/* The window to offer to a QP that holds so many places, of at most `most` units: all of it while
 * less than half of its share is in use, then less and less, never nothing. */
uint16_t mrc_rxload_mpr(const struct mrc_rxload *l, uint32_t ooo, uint16_t most);

#endif
