/* SPDX-License-Identifier: BSD-2-Clause */
/* Completion queues: a ring each, sized at creation. Overrun is an error state, never a silent
 * loss. */
#ifndef MRC_CQ_H
#define MRC_CQ_H

#include "mrc_types.h"

struct mrc_cq {
    struct mrc_wc *ring; /* NULL: free entry of the table */
    uint32_t mask;
    uint32_t head; /* next to poll, free-running */
    uint32_t tail; /* next to fill */
    uint32_t refs; /* QPs that complete here */
    bool overrun;
    bool armed;
    bool armed_solicited;
    bool fired; /* an armed CQ got its completion */
};

struct mrc_cq_table {
    struct mrc_cq *cq;
    uint32_t max;
    uint32_t waiting; /* completions in all rings */
};

size_t mrc_cq_table_bytes(uint32_t max);
void mrc_cq_table_init(struct mrc_cq_table *t, void *mem, uint32_t max);

size_t mrc_cq_ring_bytes(uint32_t depth);
int mrc_cq_add(struct mrc_cq_table *t, void *mem, uint32_t depth); /* -> id, INVAL, FULL */
void *mrc_cq_drop(struct mrc_cq_table *t, uint32_t id);            /* memory; NULL when in use */
struct mrc_cq *mrc_cq_get(struct mrc_cq_table *t, uint32_t id);    /* NULL: no such */

/* False when the ring is full: the CQ is overrun from then on and takes nothing more. */
bool mrc_cq_push(struct mrc_cq_table *t, uint32_t id, const struct mrc_wc *wc);
int mrc_cq_take(struct mrc_cq_table *t, uint32_t id, struct mrc_wc *out, int max);

#endif
