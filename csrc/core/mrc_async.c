/* SPDX-License-Identifier: BSD-2-Clause */
#include "mrc_async.h"

void mrc_async_push(struct mrc_async *a, struct mrc_async_event ev)
{
    if (a->tail - a->acked == MRC_ASYNC_RING) {
        a->drops++;
        return;
    }
    ev.drop_count = a->drops;
    a->drops = 0;
    a->ring[a->tail++ % MRC_ASYNC_RING] = ev;
}

int mrc_async_take(struct mrc_async *a, struct mrc_async_event *out)
{
    if (a->taken == a->tail)
        return 0;
    *out = a->ring[a->taken++ % MRC_ASYNC_RING];
    return 1;
}

int mrc_async_ack(struct mrc_async *a, uint32_t n)
{
    if (n > a->taken - a->acked)
        return MRC_ERR_INVAL;
    a->acked += n;
    return MRC_OK;
}
