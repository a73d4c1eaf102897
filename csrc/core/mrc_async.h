/* SPDX-License-Identifier: BSD-2-Clause */
/* Asynchronous events (MRC C.1): a bounded ring per engine. An event keeps its place until it is
 * acknowledged; when all places are taken further events are counted, and the next one that finds
 * room says how many were lost before it. What a peer can cause at will (its
 * ports, our paths) never takes the places of an end: such an event replaces an older one about the
 * same that nobody has taken, and finds no room in the last half. */
#ifndef MRC_ASYNC_H
#define MRC_ASYNC_H

#include "mrc_types.h"

enum {
    MRC_ASYNC_RING = 256, /* power of two */
    MRC_ASYNC_NEWS = 128, /* places up to which peers' ports and paths are told */
};

struct mrc_async {
    struct mrc_async_event ring[MRC_ASYNC_RING];
    uint32_t acked; /* free-running, as the next two: acked <= taken <= tail */
    uint32_t taken;
    uint32_t tail;
    uint32_t drops; /* since the newest event in the ring */
};

/* drop_count is filled in here. */
void mrc_async_push(struct mrc_async *a, struct mrc_async_event ev);
int mrc_async_take(struct mrc_async *a, struct mrc_async_event *out); /* 1, or 0: none */
/* n events taken are done with: INVAL when there are not so many. */
int mrc_async_ack(struct mrc_async *a, uint32_t n);

#endif
