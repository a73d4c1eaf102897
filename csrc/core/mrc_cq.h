/* SPDX-License-Identifier: BSD-2-Clause */
/* Completion queues: a ring each, sized at creation; arming and the events of armed queues (MRC
 * C.1). Overrun is an error state, never a silent loss. */
#ifndef MRC_CQ_H
#define MRC_CQ_H

#include "mrc_list.h"
#include "mrc_types.h"

struct mrc_cq {
    struct mrc_wc *ring; /* NULL: free entry of the table */
    uint32_t mask;
    uint32_t head; /* next to poll, free-running */
    uint32_t tail; /* next to fill */
    uint32_t refs; /* QPs that complete here */
    bool overrun;
    bool told; /* the owner of the table knows of the overrun */
    bool armed;
    bool armed_solicited;
    uint32_t channel;      /* whose events they are; 0: nobody's */
    uint32_t events;       /* fired and not taken */
    uint32_t unacked;      /* taken and not acknowledged */
    struct mrc_link fired; /* in the table's list while events > 0 */
};

struct mrc_cq_table {
    struct mrc_cq *cq;
    uint32_t max;
    uint32_t waiting; /* completions in all rings */
    uint32_t failed;  /* overrun and not told */
    struct mrc_link fired;
    uint32_t pushed; /* completions ever, free-running */
};

size_t mrc_cq_table_bytes(uint32_t max);
void mrc_cq_table_init(struct mrc_cq_table *t, void *mem, uint32_t max); /* mem: zeroed */

size_t mrc_cq_ring_bytes(uint32_t depth);
int mrc_cq_add(struct mrc_cq_table *t, void *mem, uint32_t depth); /* -> id, INVAL, FULL */
/* Its memory. NULL while QPs refer to it, or events of it are not acknowledged. */
void *mrc_cq_drop(struct mrc_cq_table *t, uint32_t id);
struct mrc_cq *mrc_cq_get(struct mrc_cq_table *t, uint32_t id); /* NULL: no such */

/* Where events go from now on. BUSY while there are some. */
int mrc_cq_bind(struct mrc_cq *cq, uint32_t channel);
/* One event at the next completion: any, or solicited and errors only. What was armed for any stays
 * so. An overrun is an event too. STATE without a channel. */
int mrc_cq_notify(struct mrc_cq *cq, bool solicited_only);
/* The next CQ with an event of this channel, or NOENT. It is to be acknowledged. */
int mrc_cq_event(struct mrc_cq_table *t, uint32_t channel);
bool mrc_cq_event_any(const struct mrc_cq_table *t, uint32_t channel);
int mrc_cq_ack(struct mrc_cq *cq, uint32_t n); /* INVAL: not so many */

/* False when the ring is full: the CQ is overrun from then on and takes nothing more. */
bool mrc_cq_push(struct mrc_cq_table *t, uint32_t id, const struct mrc_wc *wc);
int mrc_cq_take(struct mrc_cq_table *t, uint32_t id, struct mrc_wc *out, int max);

#endif
