/* SPDX-License-Identifier: BSD-2-Clause */
#include "mrc_async.h"

/* What a peer can cause as often as it likes: the state of its ports, and so of our paths. */
static bool async_news(uint8_t type)
{
    return type == MRC_ASYNC_PEER_PORT_ACTIVE || type == MRC_ASYNC_PEER_PORT_ERR ||
           type == MRC_ASYNC_PATHS_BAD || type == MRC_ASYNC_PATHS_OK;
}

static bool async_paths(uint8_t type)
{
    return type == MRC_ASYNC_PATHS_BAD || type == MRC_ASYNC_PATHS_OK;
}

/* An event about the same that nobody has taken yet: only how it is now matters. */
static bool async_replace(struct mrc_async *a, const struct mrc_async_event *ev)
{
    for (uint32_t i = a->tail; i != a->taken; i--) {
        struct mrc_async_event *was = &a->ring[(i - 1) % MRC_ASYNC_RING];
        if (!async_news(was->type) || async_paths(was->type) != async_paths(ev->type) ||
            was->id != ev->id || was->plane != ev->plane)
            continue;
        was->type = ev->type;
        was->time = ev->time;
        return true;
    }
    return false;
}

void mrc_async_push(struct mrc_async *a, struct mrc_async_event ev)
{
    const bool news = async_news(ev.type);
    if (news && async_replace(a, &ev))
        return;
    if (a->tail - a->acked >= (news ? MRC_ASYNC_NEWS : MRC_ASYNC_RING)) {
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
